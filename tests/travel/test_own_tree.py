"""A run in a tree of its own, and bringing it over: merged, checked, and only then
landed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.engine.whereabouts import OwnTreeMade
from cdd_agent.git.worktree import Trees
from cdd_agent.refusals.kinds import Refusal
from tests.support.homes import at_home
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.travel.copies import (
    GOOD,
    TWO_STEPS,
    cdd,
    copied,
    events,
    files,
    git,
    left_running,
    many_processes,
    scripted,
)


def run(sandbox: Sandbox, *replies: str, more: tuple[str, ...] = ()) -> int:
    """Go on in the run's own tree, as long as there are replies."""
    words = (
        "--max-attempts",
        "1",
        "--model",
        scripted(sandbox, *replies),
        "--worktree",
    )
    return cdd(sandbox, "exec", SLUG, *words, *more)


def tree_of(sandbox: Sandbox) -> Path:
    return sandbox.root / ".cdd" / "runs" / SLUG / "tree"


def head(sandbox: Sandbox) -> str:
    return git(sandbox.root, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def ann(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    monkeypatch.delenv("PYTHONPATH", raising=False)


@pytest.fixture(scope="session")
def prepared_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project").resolve() / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    (root / "README").write_text("one\ntwo\nthree\n")
    (root / ".gitignore").write_text(
        "__pycache__/\n*.egg-info\n.venv/\n.pytest_cache/\n"
    )
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    Sandbox(root).write(*TWO_STEPS)
    return root.parent


@pytest.fixture(scope="session")
def prepared_run(
    prepared_project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("run").resolve()
    root = copied(prepared_project, folder / "project") / "project"
    with at_home(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_AUTHOR_NAME", "Ann")
        patch.setenv("GIT_AUTHOR_EMAIL", "ann@example.org")
        patch.setenv("GIT_COMMITTER_NAME", "Ann")
        patch.setenv("GIT_COMMITTER_EMAIL", "ann@example.org")
        assert run(Sandbox(root), *GOOD) == 0
    return root.parent


@pytest.fixture
def mine(prepared_project: Path, tmp_path: Path) -> Sandbox:
    """A project under git, whose ticket is not committed."""
    return Sandbox(copied(prepared_project, tmp_path.resolve() / "mine") / "project")


@pytest.fixture
def done(prepared_run: Path, tmp_path: Path) -> Sandbox:
    """The same, with a run in a tree of its own whose steps are all over."""
    return Sandbox(copied(prepared_run, tmp_path.resolve() / "mine") / "project")


def test_the_persons_tree_is_left_alone_and_the_run_lands(
    mine: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine.root / "README").write_text("not committed\n")
    before, at = files(mine.root), head(mine)
    assert run(mine, *GOOD) == 0
    assert files(mine.root) == before
    assert head(mine) == at
    assert git(mine.root, "log", "--oneline", f"cdd/{SLUG}").count("\n") == 2
    assert (tree_of(mine) / "README").read_text() == "one\ntwo\nthree\n"
    assert git(mine.root, "status", "--porcelain") == "M README\n?? .cdd/\n?? tickets/"

    capsys.readouterr()
    assert cdd(mine, "land", SLUG, "--json") == 0
    assert [event["kind"] for event in events(capsys.readouterr().out)][-1] == "landed"
    assert mine.text("b.txt") == "good\n"
    assert mine.text("README") == "not committed\n"
    assert git(mine.root, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert mine.statuses() == ["completed"] * 2
    assert not tree_of(mine).exists()
    assert git(mine.root, "branch", "--list", "cdd/*") == ""
    assert git(mine.root, "worktree", "list").count("\n") == 0
    assert cdd(mine, "land", SLUG) == 2
    # nothing is left to be made or landed
    assert "--worktree" not in capsys.readouterr().err
    assert cdd(mine, "diff", SLUG, "--step", "2") == 0
    assert "b.txt" in capsys.readouterr().out
    assert cdd(mine, "undo", SLUG, "--step", "2") == 0
    assert not (mine.root / "b.txt").exists()


@pytest.mark.fork
def test_a_check_that_outlived_its_landing_is_ended_by_the_next_one(
    done: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    with left_running(tree_of(done) / ".cdd" / "runs" / SLUG) as command:
        assert cdd(done, "land", SLUG, "--json") == 0
        assert command.poll() is not None
    assert events(capsys.readouterr().out)[0]["kind"] == "command_ended"


def test_what_came_after_a_landing_that_was_refused_is_not_lost(done: Sandbox) -> None:
    """The person has merged the run's branch by hand meanwhile, as it was."""
    (done.root / "a.txt").write_text("mine\n")
    assert cdd(done, "land", SLUG) != 0
    (done.root / "a.txt").unlink()
    git(done.root, "merge", "--quiet", f"cdd/{SLUG}")
    (tree_of(done) / "d.txt").write_text("later\n")
    git(tree_of(done), "add", "d.txt")
    git(tree_of(done), "commit", "--quiet", "--message=Later")
    assert cdd(done, "land", SLUG) == 0
    assert done.text("d.txt") == "later\n"


@many_processes
def test_it_goes_on_where_it_stopped_and_not_in_the_persons_tree(
    mine: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(mine, GOOD[0]) != 0
    capsys.readouterr()
    assert cdd(mine, "status", SLUG, "--json") == 0
    told = events(capsys.readouterr().out)
    assert [event.get("kind") for event in told] == [None, "run_moved"]
    assert [step["status"] for step in told[0]["steps"]] == ["completed", "pending"]

    assert cdd(mine, "land", SLUG) == 2
    assert cdd(mine, "exec", SLUG, "--model", "script:nothing") != 0
    assert not (mine.root / "a.txt").exists()
    assert "--worktree" in capsys.readouterr().err
    assert run(mine, *GOOD[1:]) == 0
    assert cdd(mine, "land", SLUG) == 0


@many_processes
def test_other_trees_of_the_repository_are_left_alone(mine: Sandbox) -> None:
    """Also one that is on a disk that is not there just now."""
    elsewhere = mine.root.parent / "elsewhere"
    git(mine.root, "worktree", "add", "--quiet", "-b", "other", str(elsewhere))
    elsewhere.rename(mine.root.parent / "taken-out")
    mine.write(TWO_STEPS[0])
    assert run(mine, *GOOD) == 0
    assert cdd(mine, "land", str(mine.ticket / "plan.md")) == 0
    (mine.root.parent / "taken-out").rename(elsewhere)
    assert git(elsewhere, "rev-parse", "--abbrev-ref", "HEAD") == "other"


@pytest.mark.parametrize("how", [(), ("--rebase",)])
def test_both_sides_are_brought_together(done: Sandbox, how: tuple[str, ...]) -> None:
    (done.root / "mine.txt").write_text("meanwhile\n")
    git(done.root, "add", "mine.txt")
    git(done.root, "commit", "--quiet", "--message=Meanwhile")
    at = head(done)
    assert cdd(done, "land", SLUG, *how) == 0
    assert done.text("mine.txt") == "meanwhile\n"
    assert done.text("a.txt") == "good\n"
    parents = git(done.root, "rev-list", "--parents", "-1", "HEAD").split()[1:]
    assert len(parents) == (1 if how else 2)
    assert git(done.root, "merge-base", at, "HEAD") == at


@pytest.mark.parametrize("how", [(), ("--rebase",)])
def test_a_conflict_is_shown_and_nothing_is_changed(
    done: Sandbox, how: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (done.root / "a.txt").write_text("mine\n")
    git(done.root, "add", "a.txt")
    git(done.root, "commit", "--quiet", "--message=Mine")
    before, at, branch = (
        files(done.root),
        head(done),
        git(done.root, "rev-parse", f"cdd/{SLUG}"),
    )
    assert cdd(done, "land", SLUG, *how) == 1
    assert "a.txt" in capsys.readouterr().err
    assert (files(done.root), head(done)) == (before, at)
    assert git(done.root, "rev-parse", f"cdd/{SLUG}") == branch
    assert git(done.root, "worktree", "list").count("\n") == 1
    assert tree_of(done).exists()


@pytest.mark.story
def test_what_fails_on_the_result_does_not_land(
    mine: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each side passes, and together they do not."""
    test = (
        "from pathlib import Path\n\n"
        "def test_few():\n"
        "    assert len([*Path('.').glob('*.txt')]) < 2\n"
    )
    (mine.root / "test_few.py").write_text(test)
    git(mine.root, "add", "test_few.py")
    git(mine.root, "commit", "--quiet", "--message=A test")
    mine.write(Step("a.txt"))
    assert run(mine, GOOD[0]) == 0
    (mine.root / "more.txt").write_text("one too many\n")
    git(mine.root, "add", "more.txt")
    git(mine.root, "commit", "--quiet", "--message=More")
    before, at = files(mine.root), head(mine)
    assert cdd(mine, "land", SLUG) == 1
    assert "test_few" in capsys.readouterr().err
    assert (files(mine.root), head(mine)) == (before, at)

    (mine.root / "more.txt").unlink()
    git(mine.root, "commit", "--quiet", "--all", "--message=Fewer")
    assert cdd(mine, "land", SLUG) == 0


@many_processes
def test_each_check_of_a_step_runs_on_the_result(
    mine: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    no_more = "python -S -c \"import os; raise SystemExit(os.path.exists('more.txt'))\""
    mine.write(Step("a.txt", checks=(check("a.txt"), no_more)))
    assert run(mine, GOOD[0]) == 0
    (mine.root / "more.txt").write_text("one too many\n")
    git(mine.root, "add", "more.txt")
    git(mine.root, "commit", "--quiet", "--message=More")
    capsys.readouterr()
    assert cdd(mine, "land", SLUG) == 1
    printed = capsys.readouterr()
    assert no_more in printed.err
    assert check("a.txt") not in printed.err

    (mine.root / "more.txt").unlink()
    git(mine.root, "commit", "--quiet", "--all", "--message=Fewer")
    assert cdd(mine, "land", SLUG) == 0


@many_processes
def test_old_failures_do_not_keep_it_from_landing(mine: Sandbox) -> None:
    (mine.root / "test_old.py").write_text(
        "def test_old():\n    assert 0\n\ndef test_fine():\n    pass\n"
    )
    git(mine.root, "add", "test_old.py")
    git(mine.root, "commit", "--quiet", "--message=A failing test")
    mine.write(Step("a.txt"))
    assert run(mine, GOOD[0]) == 0
    assert cdd(mine, "land", SLUG) == 0


def test_what_a_person_has_not_committed_is_not_overwritten(
    mine: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.write(Step("README", check("README")))
    assert run(mine, says("README", "good")) == 0
    (mine.root / "README").write_text("mine\n")
    at = head(mine)
    assert cdd(mine, "land", SLUG) == 1
    assert "README" in capsys.readouterr().err
    assert mine.text("README") == "mine\n"
    assert head(mine) == at
    git(mine.root, "checkout", "--quiet", "README")
    assert cdd(mine, "land", SLUG) == 0
    assert mine.text("README") == "good\n"


def test_files_that_nobody_committed_are_kept_aside(done: Sandbox) -> None:
    (tree_of(done) / "notes.txt").write_text("by hand\n")
    (tree_of(done) / "README").write_text("by hand\n")
    assert cdd(done, "land", SLUG) == 2
    git(tree_of(done), "checkout", "--quiet", "README")
    assert cdd(done, "land", SLUG) == 0
    (aside,) = tree_of(done).parent.glob("tree.aside-*")
    assert (aside / "notes.txt").read_text() == "by hand\n"


def test_a_new_file_of_a_step_lands_only_with_a_commit(
    done: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    tree, before = tree_of(done), head(done)
    git(tree, "reset", "--quiet", "HEAD^")
    assert "?? b.txt" in git(tree, "status", "--porcelain")

    assert cdd(done, "land", SLUG) == 2
    told = capsys.readouterr().err
    assert "b.txt" in told
    assert Refusal.WORKTREE_UNUSABLE.reference in told
    assert head(done) == before

    git(tree, "add", "b.txt")
    git(tree, "commit", "--quiet", "--message=By hand")
    assert cdd(done, "land", SLUG) == 0
    assert done.text("b.txt") == "good\n"


def test_a_commit_of_a_submodule_that_only_the_tree_has_does_not_land(
    done: Sandbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, tree, source = done.root, tree_of(done), tmp_path / "source"
    allowed = ("-c", "protocol.file.allow=always")
    source.mkdir()
    git(source, "init", "-q", "-b", "main")
    git(source, "commit", "-q", "--allow-empty", "-m", "start")
    git(root, *allowed, "submodule", "--quiet", "add", str(source), "lib")
    git(root, "commit", "-q", "-m", "lib", "lib", ".gitmodules")
    git(tree, "merge", "-q", "--no-edit", head(done).strip())
    git(tree, *allowed, "submodule", "--quiet", "update", "--init", "lib")
    git(tree / "lib", "commit", "-q", "--allow-empty", "-m", "work")
    git(tree, "commit", "-q", "-m", "work", "lib")
    commit = git(tree / "lib", "rev-parse", "HEAD").strip()
    before = head(done)

    assert cdd(done, "land", SLUG) == 2
    assert f"git -C lib fetch {tree}/lib HEAD" in capsys.readouterr().err
    assert head(done) == before
    assert tree.is_dir()

    git(root / "lib", *allowed, "fetch", "-q", str(tree / "lib"), "HEAD")
    assert cdd(done, "land", SLUG) == 0
    assert git(root, "rev-parse", "HEAD:lib").strip() == commit
    assert git(root / "lib", "cat-file", "-t", commit).strip() == "commit"


def test_a_landing_that_was_killed_is_finished(
    done: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """As by kill -9."""

    forward = Trees.forward

    async def die_later(trees: Trees, commit: str) -> None:
        await forward(trees, commit)
        raise Killed

    async def die(trees: Trees, branch: str) -> None:
        raise Killed

    for name, kill in (("forward", die_later), ("delete_branch", die)):
        with monkeypatch.context() as patch:
            patch.setattr(Trees, name, kill)
            with pytest.raises(Killed):
                cdd(done, "land", SLUG, "--rebase")
    (done.root / "later.txt").write_text("later\n")
    git(done.root, "add", "later.txt")
    git(done.root, "commit", "--quiet", "--message=Later")
    # of the state, which was being written
    torn = done.ticket / ".cdd-0123456789ab-999999999-01234567.tmp"
    torn.touch()
    at = head(done)
    assert cdd(done, "land", SLUG, "--rebase") == 0
    assert head(done) == at
    assert not torn.exists()
    assert not tree_of(done).exists()
    assert done.statuses() == ["completed"] * 2


@pytest.mark.crash
def test_a_tree_that_was_killed_while_it_was_made_is_made_again(mine: Sandbox) -> None:
    record = tree_of(mine).parent
    record.mkdir(parents=True)
    OwnTreeMade(branch=f"cdd/{SLUG}", base=head(mine)).keep(record)
    git(
        mine.root, "worktree", "add", "--quiet", "-b", f"cdd/{SLUG}", str(tree_of(mine))
    )
    (tree_of(mine) / "README").unlink()
    mine.write(TWO_STEPS[0])
    assert run(mine, *GOOD) == 0
    assert (tree_of(mine) / "README").exists()


def test_a_branch_of_the_same_name_is_left_alone(
    mine: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    git(mine.root, "branch", f"cdd/{SLUG}")
    assert run(mine, *GOOD) == 2
    told = capsys.readouterr().err
    assert f"cdd/{SLUG}" in told
    assert Refusal.WORKTREE_UNUSABLE.reference in told
    assert not tree_of(mine).exists()


def test_it_takes_a_repository_with_a_commit(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path.resolve()).write(*TWO_STEPS)
    assert run(sandbox, *GOOD) == 2
    git(sandbox.root, "init", "--quiet")
    assert run(sandbox, *GOOD) == 2


@many_processes
def test_a_project_below_the_top_has_its_tree_too(mine: Sandbox) -> None:
    inner = Sandbox(mine.root / "app").write(TWO_STEPS[0])
    git(mine.root, "add", "app/tickets")
    git(mine.root, "commit", "--quiet", "--message=An app")
    assert run(inner, *GOOD) == 0
    assert not (inner.root / "a.txt").exists()
    assert cdd(inner, "land", SLUG) == 0
    assert inner.text("a.txt") == "good\n"


@pytest.mark.fork
def test_the_environment_is_linked_and_an_editable_install_is_noticed(
    mine: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    """The project's package is installed from the person's tree: without more, the
    run's tests would import that.
    """
    package = mine.root / "src" / "shop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("WORD = 'bad'\n")
    (mine.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (mine.root / "tests").mkdir()
    (mine.root / "tests" / "test_shop.py").write_text(
        "import shop\n\ndef test_word():\n    assert shop.WORD == 'good'\n"
    )
    git(mine.root, "add", "src", "tests", "pyproject.toml")
    git(mine.root, "commit", "--quiet", "--message=A package")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(mine.root / ".venv")],
        check=True,
    )
    (site,) = (mine.root / ".venv").glob("lib/python*/site-packages")
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "shop.pth").write_text(f"{mine.root / 'src'}\n{ours}\n")
    (mine.root / "node_modules" / "x").mkdir(parents=True)
    (mine.root / "node_modules" / "x" / "index.js").touch()

    mine.write(Step("src/shop/__init__.py", description="`tests/test_shop.py` passes."))
    assert (
        run(mine, says("src/shop/__init__.py", "WORD = 'good'"), more=("--json",)) == 0
    )
    told = [event.get("kind") for event in events(capsys.readouterr().out)]
    assert told.count("editable_install") == 1
    assert (tree_of(mine) / ".venv").is_symlink()
    assert (tree_of(mine) / "node_modules").is_symlink()
    assert str(tree_of(mine) / "src") in os.environ["PYTHONPATH"].split(os.pathsep)
    assert (package / "__init__.py").read_text() == "WORD = 'bad'\n"
    os.environ.pop("PYTHONPATH")
    assert cdd(mine, "land", SLUG) == 0
    assert (package / "__init__.py").read_text() == "WORD = 'good'\n"
    assert (mine.root / ".venv" / "bin" / "python").exists()
