"""A run in its own tree whose checks need files that are not in git: it is told before
the model is asked, and no step is blamed.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.git.checkpoints import write
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.tables import each_row
from tests.travel.copies import cdd, events, git, scripted

pytestmark = pytest.mark.fork


def reads(path: str) -> str:
    """A check that passes if a file says `good`."""
    code = f"raise SystemExit('good' not in open('{path}').read())"
    return f'python -S -c "{code}"'


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    root = tmp_path.resolve() / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    ignored = ".env\ndata/\nnode_modules/\n"
    write(root, {".gitignore": ignored, "README": "x\n", "packages/a/i.js": "x"})
    commit(root)
    return Sandbox(root)


def run(sandbox: Sandbox, check: str) -> int:
    sandbox.write(Step("a.txt", check))
    reply = scripted(sandbox, says("a.txt", "good"))
    words = ("--worktree", "--max-attempts", "1", "--json", "--model", reply)
    return cdd(sandbox, "exec", SLUG, *words)


def tree_of(sandbox: Sandbox) -> Path:
    return sandbox.root / ".cdd" / "runs" / SLUG / "tree"


def make_submodule(root: Path) -> None:
    git(root, "init", "--quiet", "--template=", "lib")
    write(root, {"lib/lib.txt": "good"})
    git(root / "lib", "add", "--all")
    git(root / "lib", "commit", "--quiet", "--message=A library")
    commit(root)


@each_row(
    "prepare, check, missing",
    [
        (lambda root: write(root, {".env": "good"}), reads(".env"), ".env"),
        (lambda root: write(root, {"data/x": "good"}), reads("data/x"), "data/"),
        (make_submodule, reads("lib/lib.txt"), "lib/"),
    ],
    ids=["an ignored file", "an ignored folder", "a submodule"],
)
def test_missing_files_are_named_before_the_model_is_asked(
    mine: Sandbox,
    prepare: Callable[[Path], object],
    check: str,
    missing: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(mine.root, {"data/other": "x"})
    prepare(mine.root)
    capsys.readouterr()
    assert run(mine, check) == 2
    printed = capsys.readouterr()
    names = [event["event"] for event in events(printed.out)]
    assert "step_started" not in names
    assert f"only your tree has: {missing}" in printed.err

    # the next start looks again
    place = tree_of(mine) / missing.rstrip("/")
    if place.exists():
        place.rmdir()
    place.symlink_to(mine.root / missing)
    assert run(mine, check) == 0
    if prepare is not make_submodule:
        # the check runs in a third tree
        assert cdd(mine, "land", SLUG) == 0
        assert (mine.root / missing).exists()


@each_row(
    "files, check",
    [
        ({".env": "x"}, reads("README")),
        ({".env": "x", "README": "good"}, reads("README")),
        ({"packages/a/node_modules/x": "good"}, reads("packages/a/node_modules/x")),
    ],
    ids=[
        "the check fails with them, too",
        "the user has a change that is not committed",
        "what is installed is linked",
    ],
)
def test_a_run_goes_on_if_the_files_do_not_help(
    mine: Sandbox, files: dict[str, str], check: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(mine.root, dict(files))
    capsys.readouterr()
    expected = 0 if "node_modules" in check else 1
    assert run(mine, check) == expected
    names = [event["event"] for event in events(capsys.readouterr().out)]
    assert "step_started" in names
    for path, text in files.items():
        assert (mine.root / path).read_text() == text


def test_single_tests_are_compared(
    mine: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    """An old failure does not hide one that is there for want of a file."""
    tests = (
        "def test_old():\n    assert 0\n\n"
        "def test_needs():\n    assert open('.env').read() == 'good'\n"
    )
    write(mine.root, {"test_it.py": tests})
    commit(mine.root)
    write(mine.root, {".env": "good"})
    capsys.readouterr()
    assert run(mine, "pytest -q") == 2
    printed = capsys.readouterr()
    assert "test_needs" in printed.err
    assert "test_old" not in printed.err
