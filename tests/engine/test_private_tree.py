"""A private tree has the project's files as they are now, and nothing in it reaches the
project.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cdd_agent.engine.private_tree import (
    PrivateTree,
    private_tree,
    remove_abandoned_trees,
)
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.process.ending import alive
from cdd_agent.process.policy import CommandRunner
from cdd_agent.text.redaction import Redactor
from tests.git.checkpoints import skip_where_all_is_allowed, state, write
from tests.git.repositories import git, make_repository
from tests.support.insensitive_disk import InsensitivePath
from tests.support.tables import each_row

Change = Callable[[Path], object]


def files_of(tree: PrivateTree) -> dict[str, tuple[str, object]]:
    """All files and links of a tree, without git's and those behind links."""
    return state(tree.root)


def private_trees(root: Path) -> list[str]:
    folder = root / ".cdd" / "runs" / ".private"
    return [path.name for path in folder.glob("*") if path.name != "lock"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_repository(tmp_path.resolve() / "project")
    ignored = "node_modules/\n.venv/\n*.log\n.env\nclone/\n__pycache__/\n"
    write(
        root,
        {
            ".gitignore": ignored,
            ".cdd/.gitignore": "runs/\n",
            "src/code.py": "committed\n",
            "gone.txt": "x\n",
            "run.sh": "#!/bin/sh\n",
            "folder/inner.txt": "x\n",
        },
    )
    (root / "run.sh").chmod(0o755)
    (root / "to_code").symlink_to("src/code.py")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    git(root, "tag", "v1")
    return root


def clone(root: Path, name: str) -> None:
    """Make a repository below the project, with a commit and an edit."""
    make_repository(root / name)
    (root / name / "lib.txt").write_text("committed\n")
    git(root / name, "add", "--all")
    git(root / name, "commit", "--quiet", "--message=A library")
    (root / name / "lib.txt").write_text("edited\n")


def track_a_part(root: Path) -> None:
    write(root, {"venv/tracked.py": "x"})
    git(root, "add", "venv")
    write(root, {"venv/new.py": "x"})


def add_submodule(root: Path) -> None:
    clone(root, "lib")
    git(root, "add", "lib")
    git(root, "commit", "--quiet", "--message=A submodule")


@each_row(
    "change, path, expected",
    [
        (lambda root: None, "src/code.py", ("0o644", b"committed\n")),
        (lambda root: None, "run.sh", ("0o755", b"#!/bin/sh\n")),
        (lambda root: None, "to_code", ("link", Path("src/code.py"))),
        (
            lambda root: write(root, {"src/code.py": "edited"}),
            "src/code.py",
            ("0o644", b"edited"),
        ),
        (
            lambda root: write(root, {"a b\n.txt": "new"}),
            "a b\n.txt",
            ("0o644", b"new"),
        ),
        (lambda root: (root / "gone.txt").unlink(), "gone.txt", None),
        (
            lambda root: (root / "run.sh").chmod(0o600),
            "run.sh",
            ("0o600", b"#!/bin/sh\n"),
        ),
        (lambda root: write(root, {".env": "KEY=1"}), ".env", ("0o644", b"KEY=1")),
        (lambda root: write(root, {"big.log": b"x" * 2_000_000}), "big.log", None),
        (
            lambda root: write(root, {"__pycache__/x.pyc": "x"}),
            "__pycache__/x.pyc",
            None,
        ),
        (
            lambda root: write(root, {"folder": "a file now"}),
            "folder",
            ("0o644", b"a file now"),
        ),
        (
            lambda root: (
                write(root, {"folder": None}),
                (root / "folder").symlink_to("src"),
            ),
            "folder",
            ("link", Path("src")),
        ),
        (lambda root: os.mkfifo(root / "pipe"), "pipe", None),
        (lambda root: clone(root, "lib"), "lib/lib.txt", ("0o644", b"edited\n")),
        (add_submodule, "lib/lib.txt", ("0o644", b"edited\n")),
        (lambda root: clone(root, "clone"), "clone/lib.txt", None),
        (track_a_part, "venv/tracked.py", ("0o644", b"x")),
        (track_a_part, "venv/new.py", ("0o644", b"x")),
        (
            lambda root: write(root, {".cdd/runs/x/state.json": "{}"}),
            ".cdd/runs/x/state.json",
            None,
        ),
    ],
    ids=[
        "a tracked file",
        "a program",
        "a link",
        "an edited file",
        "a new file with an odd name",
        "a deleted file",
        "unusual permissions",
        "an ignored file",
        "a large ignored file",
        "an ignored folder",
        "a folder that became a file",
        "a folder that became a link",
        "a pipe",
        "a repository below",
        "a submodule",
        "an ignored repository",
        "a tracked file in a folder with a name of installed packages",
        "a new file in such a folder",
        "the record of a run",
    ],
)
async def test_the_tree_has_the_files_as_they_are_now(
    root: Path, change: Change, path: str, expected: object
) -> None:
    change(root)
    async with private_tree(root) as tree:
        assert files_of(tree).get(path) == expected


async def test_a_file_that_got_another_spelling_of_its_name_is_copied_once(
    root: Path,
) -> None:
    write(root, {"readme.md": "all of it\n"})
    git(root, "add", "readme.md")
    (root / "readme.md").rename(root / "README.md")
    async with private_tree(InsensitivePath(root), ["README.md"]) as tree:
        names = [entry.name for entry in Path(str(tree.root)).iterdir()]
        assert "README.md" in names
        assert "readme.md" not in names


@pytest.mark.parametrize("has_git", [True, False])
async def test_a_folder_without_git_is_copied_by_its_ignore_files(
    tmp_path: Path, *, has_git: bool
) -> None:
    root = tmp_path.resolve() / "project"
    root.mkdir()
    if has_git:
        make_repository(root)
    write(root, {".gitignore": "built/\n", "a.txt": "a", "built/b.txt": "b"})
    async with private_tree(root) as tree:
        assert files_of(tree).keys() == {".gitignore", "a.txt"}
        assert tree.missing == ("built/",)


async def test_asked_files_are_copied_though_git_ignores_them(root: Path) -> None:
    write(root, {"__pycache__/made.py": "x", "big.log": b"x" * 2_000_000})
    clone(root, "clone")
    outside = root.parent / "outside.txt"
    outside.write_text("x")
    asked = ["__pycache__/made.py", "big.log", "clone/lib.txt", "../outside.txt"]
    async with private_tree(root, [*asked, str(outside), "not/there"]) as tree:
        assert files_of(tree).keys() >= set(asked[:3])
        assert not (tree.root.parent / "outside.txt").exists()


async def test_a_project_in_a_folder_of_a_repository_has_the_whole_repository(
    root: Path,
) -> None:
    write(root, {"packages/a/a.txt": "a", ".env": "KEY=1"})
    async with private_tree(root / "packages" / "a") as tree:
        assert (tree.root / "a.txt").read_text() == "a"
        assert (tree.root / "../../src/code.py").read_text() == "committed\n"
        assert (tree.root / "../../.env").exists()


async def test_a_link_out_of_the_project_leads_to_the_same_file(root: Path) -> None:
    (root.parent / "shared.txt").write_text("shared")
    (root / "shared").symlink_to("../shared.txt")
    async with private_tree(root) as tree:
        assert (tree.root / "shared").read_text() == "shared"


async def test_what_cannot_be_read_is_named(root: Path) -> None:
    skip_where_all_is_allowed(root)
    write(root, {"closed.txt": "x"})
    (root / "closed.txt").chmod(0)
    async with private_tree(root) as tree:
        assert "closed.txt" in tree.missing


async def test_git_in_the_tree_is_a_repository_of_its_own(root: Path) -> None:
    write(root, {"src/code.py": "edited"})
    before = state(root), git(root, "for-each-ref"), git(root, "status", "--porcelain")
    objects = sorted((root / ".git" / "objects").rglob("*"))
    async with private_tree(root) as tree:
        assert git(tree.root, "rev-parse", "--show-toplevel") == str(tree.root)
        assert git(tree.root, "status", "--porcelain") == "M src/code.py"
        assert git(tree.root, "describe", "--tags") == "v1"
        assert git(tree.root, "branch", "--show-current") == "main"
        git(tree.root, "commit", "--quiet", "--all", "--message=In the tree")
        git(tree.root, "tag", "v2")
        write(tree.root, {"src/code.py": "other", "run.sh": None})
    after = state(root), git(root, "for-each-ref"), git(root, "status", "--porcelain")
    assert after == before
    assert sorted((root / ".git" / "objects").rglob("*")) == objects


async def test_installed_folders_are_links_at_any_depth(root: Path) -> None:
    names = ["node_modules", ".venv", "packages/a/node_modules", "backend/.venv"]
    for name in names:
        write(root, {f"{name}/x/y.txt": "x", f"{name}/../code.txt": "x"})
    async with private_tree(root) as tree:
        for name in names:
            assert (tree.root / name).readlink() == root / name
            assert f"{name}/" not in tree.missing
    for name in names:
        assert (root / name / "x" / "y.txt").exists()


async def test_commands_run_in_the_tree(root: Path) -> None:
    write(root, {"tally/__init__.py": "", "src/lib/__init__.py": ""})
    runner = CommandRunner(root, env={"LEVEL": "1"})
    async with private_tree(root, env=runner.env) as tree:
        commands = tree.commands(runner)
        program = (
            "import os, lib; print(os.getcwd(), lib.__file__, os.environ['LEVEL'])"
        )
        code = f"import sys; sys.path.insert(0, 'src'); {program}"
        result = await commands.start(
            commands.judge(f'python -c "{code}"', trusted=True)
        )
        lib = tree.root / "src" / "lib" / "__init__.py"
        assert result.stdout.split() == [str(tree.root), str(lib), "1"]


async def test_the_tree_is_gone_afterwards(root: Path) -> None:
    async with private_tree(root) as tree:
        write(tree.root, {"closed/inner/x": "x"})
        (tree.root / "closed" / "inner").chmod(0)
        (tree.root / "closed").chmod(0o555)
    assert not tree.folder.exists()
    assert private_trees(root) == []


async def test_a_cancelled_copy_leaves_nothing(root: Path) -> None:
    async def use() -> None:
        async with private_tree(root):
            await asyncio.sleep(60)

    for wait in range(12):
        task = asyncio.create_task(use())
        await asyncio.sleep(wait / 100)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert private_trees(root) == []


async def test_two_trees_of_a_project_can_exist_at_once(root: Path) -> None:
    async with private_tree(root) as one, private_tree(root) as two:
        write(one.root, {"src/code.py": "one"})
        remove_abandoned_trees(root)
        assert (two.root / "src" / "code.py").read_text() == "committed\n"
    assert private_trees(root) == []


async def test_a_place_that_cannot_be_written_is_refused(root: Path) -> None:
    write(root, {".cdd/runs": "a file"})
    with pytest.raises(BadInput):
        async with private_tree(root):
            pass


_SLEEPS = """\
import os, time, pathlib
pathlib.Path(f"{os.getpid()}.pid").touch()
time.sleep(99)
"""
_HOLDS_A_TREE = f"""\
import asyncio, sys
from pathlib import Path
from cdd_agent.engine.private_tree import private_tree
from cdd_agent.process.run import run_command

async def main():
    async with private_tree(Path(sys.argv[1])) as tree:
        command = [sys.executable, "-c", {_SLEEPS!r}]
        await run_command(command, cwd=tree.root, limit=99, noted_in=tree.folder)

asyncio.run(main())
"""


@pytest.mark.parametrize("next_start", ["a private tree", "a run"])
@pytest.mark.crash
async def test_a_killed_process_leaves_nothing_to_the_next_start(
    root: Path, next_start: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _HOLDS_A_TREE, str(root)
    )
    folder = root / ".cdd" / "runs" / ".private"
    while not (found := list(folder.glob("*/tree/*.pid"))):
        await asyncio.sleep(0.01)
    process.kill()
    await process.wait()
    if next_start == "a run":
        RunRecord.of(root, "feature-x", Redactor()).tidy()
    else:
        async with private_tree(root) as tree:
            assert len(private_trees(root)) == 2
            assert tree.folder.name in private_trees(root)
    assert private_trees(root) == []
    with suppress(psutil.NoSuchProcess):
        assert not alive([psutil.Process(int(found[0].stem))])
