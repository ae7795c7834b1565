"""Folders with installed packages are links in another tree of a project, wherever they
are, and tests there use the tree's own files.
"""

from pathlib import Path

import pytest

from cdd_agent.engine.ledger import no_part
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.project.tree_needs import Equipment, linked_folders, load_tree_needs
from tests.git.checkpoints import write
from tests.git.repositories import git, make_repository
from tests.support.tables import each_row

IGNORED = "node_modules/\n.venv/\nvenv/\nvendor/\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path.resolve() / "project")


def commit(root: Path, *names: str) -> None:
    write(root, {".gitignore": IGNORED, **dict.fromkeys(names, "x\n")})
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--message=A project")


async def link(root: Path) -> tuple[Path, list[str]]:
    """Make a worktree of the project's last commit and link what is installed."""
    tree = root.with_name(f"{root.name}-tree")
    git(root, "worktree", "add", "--quiet", "--detach", str(tree))
    needs = await (await Equipment.find(root)).link_into(tree)
    return tree, list(needs.linked)


@each_row(
    "tracked, installed, expected",
    [
        (["a.js"], ["node_modules/x/i.js"], ["node_modules"]),
        (["a/a.js"], ["a/node_modules/x/i.js"], ["a/node_modules"]),
        (
            ["a/b/c/d/e.js", "a/i.js"],
            ["a/b/c/d/node_modules/x/i.js", "a/node_modules/x/i.js"],
            ["a/b/c/d/node_modules", "a/node_modules"],
        ),
        (["backend/a.py"], ["backend/.venv/bin/python"], ["backend/.venv"]),
        (["a.py"], ["venv/bin/python"], ["venv"]),
        (["a.php"], ["vendor/org/x.php"], ["vendor"]),
        (["vendor/org/x.go"], [], []),
        (["a.js"], ["node_modules/x/node_modules/y/i.js"], ["node_modules"]),
        (["a.js"], ["new/node_modules/x/i.js"], []),
        (["a.py"], ["build/lib.py"], []),
        (
            ["ünï cödé/a b/a.js"],
            ["ünï cödé/a b/node_modules/x/i.js"],
            ["ünï cödé/a b/node_modules"],
        ),
    ],
    ids=[
        "at the top",
        "in a folder",
        "deep, and one in a folder above",
        "a Python environment in a folder",
        "without a dot",
        "vendor",
        "a tracked vendor",
        "one inside another",
        "in a folder that the tree does not have",
        "another folder",
        "odd names",
    ],
)
async def test_installed_folders_are_linked(
    root: Path, tracked: list[str], installed: list[str], expected: list[str]
) -> None:
    commit(root, *tracked)
    write(root, dict.fromkeys(installed, "x\n"))
    tree, linked = await link(root)
    assert linked == expected
    for name in expected:
        assert (tree / name).readlink() == root / name


async def test_an_environment_that_ignores_itself_is_linked(root: Path) -> None:
    """Python's venv and uv write such an ignore file."""
    commit(root, "a.py")
    write(root, {".gitignore": "", ".venv/.gitignore": "*\n", ".venv/bin/python": "x"})
    git(root, "commit", "--quiet", "--all", "--message=Nothing is ignored")
    tree, linked = await link(root)
    assert linked == [".venv"]
    assert (tree / ".venv").is_symlink()


async def test_a_link_to_a_shared_folder_is_linked(root: Path) -> None:
    """`node_modules/` in an ignore file is not about a link."""
    commit(root, "a.js")
    write(root.parent, {"shared/x/i.js": "x"})
    (root / "node_modules").symlink_to("../shared")
    tree, linked = await link(root)
    assert linked == ["node_modules"]
    assert (tree / "node_modules" / "x" / "i.js").exists()


@each_row(
    "place, leads_to",
    [
        ("node_modules/a", "../packages/a"),
        ("node_modules/@org/a", "../../packages/a"),
        ("packages/b/node_modules/a", "../../a"),
        ("vendor/org/a", "../../packages/a"),
    ],
    ids=["npm and yarn", "a scope", "pnpm", "a path repository of Composer"],
)
async def test_a_package_of_the_project_is_the_tree_s_own(
    root: Path, place: str, leads_to: str
) -> None:
    commit(root, "packages/a/index.js", "packages/b/index.js")
    folder = (root / place).parent
    write(root, {f"{folder.relative_to(root)}/other/index.js": "installed"})
    (root / place).symlink_to(leads_to)
    tree, _ = await link(root)
    assert (tree / place).resolve() == tree / "packages" / "a"
    other = (tree / place).parent / "other"
    assert (other / "index.js").read_text() == "installed"
    assert other.resolve() == folder / "other"
    assert git(tree, "status", "--porcelain", "--", ":!.cdd") == ""


async def test_programs_of_the_project_are_the_tree_s_own(root: Path) -> None:
    commit(root, "packages/a/cli.js")
    write(root, {"node_modules/.bin/other": "x", "node_modules/x/cli.js": "x"})
    (root / "node_modules" / "a").symlink_to("../packages/a")
    (root / "node_modules" / ".bin" / "a").symlink_to("../a/cli.js")
    (root / "node_modules" / ".bin" / "x").symlink_to("../x/cli.js")
    tree, _ = await link(root)
    programs = tree / "node_modules" / ".bin"
    assert (programs / "a").resolve() == tree / "packages" / "a" / "cli.js"
    assert (programs / "x").resolve() == root / "node_modules" / "x" / "cli.js"
    assert (programs / "other").read_text() == "x"


async def test_composer_finds_the_tree_by_its_autoloader(root: Path) -> None:
    """Its files look for the project in the folder above their own."""
    commit(root, "src/App.php")
    names = ["autoload.php", "composer/autoload_real.php", "bin/phpunit", "org/p/P.php"]
    write(root, {f"vendor/{name}": "x" for name in names})
    tree, _ = await link(root)
    for name in names[:3]:
        assert (tree / "vendor" / name).resolve() == tree / "vendor" / name
    assert (tree / "vendor" / "org").readlink() == root / "vendor" / "org"


async def test_git_clean_leaves_what_is_installed(root: Path) -> None:
    commit(root, "a.js", "packages/a/index.js")
    write(root, {"node_modules/x/i.js": "x", "packages/a/node_modules/y/i.js": "x"})
    (root / "node_modules" / "a").symlink_to("../packages/a")
    tree, linked = await link(root)
    git(tree, "clean", "--force", "-d", "-x")
    assert not any((tree / name).exists() for name in linked)
    assert (root / "node_modules" / "x" / "i.js").exists()
    assert (root / "node_modules" / "a" / "index.js").exists()
    assert (root / "packages" / "a" / "node_modules" / "y" / "i.js").exists()


async def test_a_folder_without_an_ignore_file_is_linked(root: Path) -> None:
    commit(root, "a.js", "app/vendor.py")
    write(root, {".gitignore": "", "node_modules/x/i.js": "x", "vendor/mine.py": "x"})
    git(root, "commit", "--quiet", "--all", "--message=Nothing is ignored")
    _, linked = await link(root)
    assert linked == ["node_modules"]


async def test_a_project_below_the_top_uses_what_is_installed_above(root: Path) -> None:
    commit(root, "packages/a/index.js")
    write(root, {"node_modules/x/i.js": "x", "packages/a/node_modules/y/i.js": "x"})
    tree = root.with_name("tree")
    git(root, "worktree", "add", "--quiet", "--detach", str(tree))
    equipment = await Equipment.find(root / "packages" / "a")
    needs = await equipment.link_into(tree / "packages" / "a")
    assert (tree / "node_modules").readlink() == root / "node_modules"
    assert needs.linked == ("node_modules",)
    assert linked_folders(tree / "packages" / "a") == ("node_modules",)


async def test_links_are_known_when_the_tree_is_equipped_again(root: Path) -> None:
    commit(root, "a.js", "b/b.js")
    write(root, {"node_modules/x/i.js": "x"})
    tree, _ = await link(root)
    write(root, {"b/node_modules/x/i.js": "x"})
    needs = await (await Equipment.find(root)).link_into(tree)
    assert set(needs.linked) == {"node_modules", "b/node_modules"}
    assert load_tree_needs(tree) == needs


@each_row(
    "files, expected",
    [
        ({".env": "KEY=1"}, (".env",)),
        ({"data/big.bin": "x", "data/more/x": "x"}, ("data/",)),
        ({"__pycache__/a.pyc": "x", ".pytest_cache/x": "x", "a.pyc": "x"}, ()),
        ({".ruff_cache/.gitignore": "*", ".ruff_cache/0/x": "x"}, ()),
        ({"node_modules/x/i.js": "x"}, ()),
        ({"new.js": "x"}, ()),
    ],
    ids=[
        "a file",
        "a folder",
        "caches",
        "a cache that ignores itself",
        "what is linked",
        "what is not ignored",
    ],
)
async def test_what_a_tree_lacks_is_known(
    root: Path, files: dict[str, str], expected: tuple[str, ...]
) -> None:
    commit(root, "a.js")
    ignored = IGNORED + ".env\ndata/\n__pycache__/\n.pytest_cache/\n*.pyc\n"
    write(root, {".gitignore": ignored})
    git(root, "commit", "--quiet", "--all", "--message=More is ignored")
    write(root, dict(files))
    tree, _ = await link(root)
    assert load_tree_needs(tree).missing == expected


async def test_a_submodule_that_is_not_checked_out_is_missing(root: Path) -> None:
    commit(root, "a.js")
    make_repository(root / "lib")
    commit(root / "lib", "lib.js")
    git(root, "add", "lib")
    git(root, "commit", "--quiet", "--message=A submodule")
    tree, _ = await link(root)
    assert load_tree_needs(tree).missing == ("lib/",)


async def test_no_checkpoint_has_the_links(root: Path) -> None:
    commit(root, "a.js", "packages/a/a.js")
    write(root, {"packages/a/node_modules/x/i.js": "x"})
    tree, linked = await link(root)
    checkpoints = await Checkpoints.open(
        tree, tree / ".cdd" / "runs" / "login", "login", no_part(tree, ())
    )
    before = await checkpoints.take("before")
    (tree / linked[0]).unlink()
    after = await checkpoints.take("after")
    assert await checkpoints.changes(before, after) == ()
