"""Trees beside the person's own: what is in them, and that nothing of them stays."""

import asyncio
from pathlib import Path

import pytest

from cdd_agent.engine.ledger import Ledger
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.side_tree import NoSideTrees, SideTrees, remove_all
from cdd_agent.text.redaction import Redactor
from tests.travel.copies import git


def in_repository(folder: Path, prefix: str = "") -> Path:
    """A project with what a person has: committed, changed, new, ignored, a link, a
    file that only its owner reads.
    """
    top = folder.resolve() / "repository"
    root = top / prefix
    root.mkdir(parents=True)
    git(top, "init", "--quiet")
    (top / "above.txt").write_text("above\n")
    (root / "kept.txt").write_text("kept\n")
    (root / "changed.txt").write_text("before\n")
    (root / ".gitignore").write_text(".cdd/\nignored.txt\n.venv/\n")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message=start")
    (root / "changed.txt").write_text("now\r\n")
    (root / "new.txt").write_text("new\n")
    (root / "new.txt").chmod(0o600)
    (root / "link").symlink_to("kept.txt")
    (root / "ignored.txt").write_text("mine\n")
    (root / ".venv").mkdir()
    return root


async def made(root: Path) -> tuple[dict[str, str], str]:
    """The files of a tree, and what git says there; it is removed again."""
    record = RunRecord.of(root, "feature", Redactor())
    record.prepare()
    ledger = Ledger(record)
    trees = await SideTrees.of(ledger, {})
    tree = await trees.make(3, await trees.base(["ignored.txt"]))
    assert (tree.root / "new.txt").stat().st_mode & 0o777 == 0o600
    assert (tree.root / "link").readlink() == Path("kept.txt")
    assert (tree.root / ".venv").resolve() == root / ".venv"
    before = await (await tree.ledger.open()).take("before")
    (tree.root / "made.txt").write_text("made\n")
    after = await (await tree.ledger.open()).take("after")
    changes = await (await tree.ledger.open()).changes(before, after)
    assert [change.path for change in changes] == ["made.txt"]
    around = {path.name: path.read_text() for path in tree.place.glob("*.txt")}
    files = {path.name: path.read_bytes().decode() for path in tree.root.glob("*.txt")}
    said = git(tree.place, "status", "--porcelain", "--untracked-files=no")
    assert not (root / "made.txt").exists()
    await remove_all(ledger)
    return {**around, **files}, said


EXPECTED = {
    "kept.txt": "kept\n",
    "changed.txt": "now\r\n",
    "new.txt": "new\n",
    "ignored.txt": "mine\n",
    "made.txt": "made\n",
}


def test_a_tree_has_the_files_as_they_are_and_is_gone_without_a_trace(
    tmp_path: Path,
) -> None:
    root = in_repository(tmp_path)
    files, said = asyncio.run(made(root))
    assert files == {**EXPECTED, "above.txt": "above\n"}
    assert said == "M changed.txt"
    assert list((root / ".cdd" / "runs" / "feature").rglob("side")) == []
    assert git(root, "worktree", "list").count("\n") == 0
    assert git(root, "for-each-ref", "refs/cdd") == ""


def test_a_project_below_the_top_has_what_is_around_it(tmp_path: Path) -> None:
    root = in_repository(tmp_path, "packages/one")
    files, said = asyncio.run(made(root))
    assert files == {**EXPECTED, "above.txt": "above\n"}
    assert said == "M packages/one/changed.txt"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "a git repository with a commit"), ("inner", "submodules or repositories")],
)
async def test_there_are_no_trees_where_they_would_miss_files(
    tmp_path: Path, name: str, reason: str
) -> None:
    """The repository has no commit yet, or another one is inside the project."""
    git(tmp_path, "init", "--quiet")
    if name:
        (tmp_path / "a.txt").write_text("a\n")
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "--message=start")
        git(tmp_path, "init", "--quiet", name)
    record = RunRecord.of(tmp_path, "feature", Redactor())
    record.prepare()
    with pytest.raises(NoSideTrees, match=reason):
        await SideTrees.of(Ledger(record), {})
