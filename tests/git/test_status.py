"""A project as git sees it; asking changes nothing and runs nothing."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.files.line_list import LineList
from cdd_agent.files.paths import PathRefused
from cdd_agent.git.branch import current_branch
from cdd_agent.git.command import GitUnusable, NoGit, NoRepository
from cdd_agent.git.status import git_diff, git_log, git_status
from tests.git.repositories import git, make_repository


def commit(folder: Path, message: str, **files: str) -> str:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    git(folder, "add", "--all")
    told = git(folder, "commit", "--allow-empty", f"--message={message}")
    found = re.match(r"\[.* ([0-9a-f]+)\]", told)
    assert found, told
    return found[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project")


# Status


async def test_the_status_is_the_branch_and_what_differs(project: Path) -> None:
    branch, changes = (await git_status(project)).lines
    assert branch.endswith("main")
    commit(project, "one", a_txt="a\n", b_txt="b\n")
    assert (await git_status(project)).lines == ("## main", changes)

    (project / "a.txt").write_text("new\n")
    (project / "grün\n.txt").touch()
    git(project, "rm", "--quiet", "b.txt")

    assert (await git_status(project)).lines == (
        "## main",
        " M a.txt",
        "D  b.txt",
        '?? "grün\\n.txt"',
    )


async def test_a_project_inside_a_repository_is_all_that_is_looked_at(
    project: Path,
) -> None:
    inner = project / "packages" / "app"
    inner.mkdir(parents=True)
    one = commit(project, "outside", a_txt="a\n")
    two = commit(inner, "inside", b_txt="b\n")
    for name in ("a.txt", "packages/app/b.txt"):
        (project / name).write_text("new\n")

    git(project, "config", "status.relativePaths", "false")

    assert (await git_status(inner)).lines == ("## main", " M b.txt")
    assert [
        line.split()[-1]
        for line in (await git_diff(inner)).lines
        if line.startswith("diff")
    ] == ["b/b.txt"]
    assert [line[: len(two)] for line in (await git_log(inner)).lines] == [two]
    assert (await git_diff(inner, commit=one)).lines == ("No changes.",)


# Commits


async def test_commits_are_listed_the_newest_first(project: Path) -> None:
    assert len((await git_log(project)).lines) == 1
    names = [
        commit(project, f"Change {number}\n\nbody", a_txt=f"{number}\n")
        for number in range(3)
    ]
    other = commit(project, "Größe", b_txt="b\n")

    today = git(project, "log", "-1", "--date=short", "--format=%ad")
    lines = [
        f"{name} {today} Ann: Change {number}" for number, name in enumerate(names)
    ]
    assert (await git_log(project)).lines == (
        f"{other} {today} Ann: Größe",
        *reversed(lines),
    )
    assert await git_log(project, "a.txt", 2) == LineList(
        (lines[2], lines[1]), cut=True
    )
    assert await git_log(project, "a.txt", 3) == LineList(tuple(reversed(lines)))
    assert (await git_log(project, "nothing.txt")).lines == ("No commits.",)


# Changes


async def test_changes_are_shown_as_a_diff(project: Path) -> None:
    commit(project, "one", a_txt="a\n")
    assert (await git_diff(project)).lines == ("No changes.",)
    (project / "a.txt").write_text("b\nno end")

    shown = (await git_diff(project)).lines
    assert shown[0].split()[2:] == ["a/a.txt", "b/a.txt"]
    assert shown[-5:-1] == ("@@ -1 +1,2 @@", "-a", "+b", "+no end")
    assert (await git_diff(project, staged=True)).lines == ("No changes.",)

    git(project, "add", "a.txt")
    assert (await git_diff(project)).lines == ("No changes.",)
    assert (await git_diff(project, staged=True)).lines == shown
    assert (await git_diff(project, "a.txt", True)).lines == shown
    assert (await git_diff(project, "b.txt", True)).lines == ("No changes.",)


async def test_in_an_empty_repository_there_are_no_changes_but_staged_ones(
    project: Path,
) -> None:
    (project / "a.txt").write_text("a\n")
    assert (await git_diff(project)).lines == ("No changes.",)
    git(project, "add", "a.txt")
    assert (await git_diff(project, staged=True)).lines[-1] == "+a"


async def test_the_changes_of_one_commit(project: Path) -> None:
    first = commit(project, "one", a_txt="a\n")
    commit(project, "two", a_txt="b\n", c_txt="c\n")
    git(project, "checkout", "--quiet", "-b", "side", first)
    commit(project, "side", d_txt="d\n")
    git(project, "checkout", "--quiet", "main")
    git(project, "merge", "--quiet", "--no-ff", "--message=merge", "side")

    def changed(found: LineList) -> list[str]:
        return [
            line
            for line in found.lines
            if line[:1] in "+-" and line[:3] not in ("+++", "---")
        ]

    assert changed(await git_diff(project, commit=first)) == ["+a"]
    assert changed(await git_diff(project, commit="HEAD~1")) == ["-a", "+b", "+c"]
    assert changed(await git_diff(project, "c.txt", commit="main~")) == ["+c"]
    # a merge: what it brought to the branch
    assert changed(await git_diff(project, commit="main")) == ["+d"]


NO_COMMITS = (
    *("nothing", "--output=stolen", "-O/etc/passwd", "", "HEAD HEAD", "HEAD..HEAD"),
    *("a\nb", "HEAD:a.txt", "\0"),
)


async def test_a_commit_that_is_none_is_refused(project: Path) -> None:
    commit(project, "one", a_txt="a\n")
    for text in NO_COMMITS:
        with pytest.raises(BadInput, match="is not a commit of this repository"):
            await git_diff(project, commit=text)
    assert not (project / "stolen").exists()


async def test_a_renamed_file_is_shown_as_renamed(project: Path) -> None:
    commit(project, "one", a_txt="line\n" * 50)
    git(project, "mv", "a.txt", "b.txt")
    assert {
        line.split()[-1]
        for line in (await git_diff(project, staged=True)).lines
        if line.startswith("rename")
    } == {
        *("a.txt", "b.txt"),
    }


async def test_a_long_diff_is_cut_at_a_line_and_says_so(project: Path) -> None:
    commit(project, "one", a_txt="", b_txt="")
    (project / "a.txt").write_text("x" * 99 + "\n" + "y" * 99 + "\n" * 300_000)

    found = await git_diff(project)

    assert found.cut
    assert sum(len(line) + 1 for line in found.lines) <= 100_000
    assert found.lines[-1] == "+"
    assert found.as_text().splitlines()[-1].startswith("… ")


async def test_files_that_hold_secrets_are_left_out_and_named(project: Path) -> None:
    commit(project, "one", _env="KEY=first\n", a_txt="a\n")
    (project / "a.txt").write_text("b\n")
    (project / ".env").write_text("KEY=s3cret\n")
    (project / "[x]*.pem").write_text("s3cret\n")
    (project / os.fsdecode(b"\xff.key")).write_text("s3cret\n")
    git(project, "add", "--all")

    found = await git_diff(project, staged=True)
    assert "+b" in found.lines
    assert "s3cret" not in found.as_text()
    assert found.note.rpartition(": ")[2].split(", ") == [
        ".env",
        "[x]*.pem",
        "\ufffd.key",
    ]

    git(project, "mv", ".env", "notes.txt")  # renamed: what it was is still not shown
    assert "first" not in (await git_diff(project, staged=True)).as_text()
    only = await git_diff(project, ".env", staged=True)
    assert only.note.endswith(" .env")
    assert only.lines == (await git_diff(project, "nothing", staged=True)).lines


# Paths are paths


LITERAL = (
    *("--output=stolen", "*.txt", ":(exclude)a.txt", ":/", "!a.txt"),
    *(":(top)x", "a.???"),
)


async def test_a_path_is_taken_literally(project: Path) -> None:
    commit(project, "one", a_txt="a\n")
    (project / "a.txt").write_text("b\n")
    for path in LITERAL:
        assert (await git_diff(project, path)).lines == ("No changes.",), path
        assert (await git_log(project, path)).lines == ("No commits.",), path
    assert not (project / "stolen").exists()


async def test_a_path_outside_is_refused(project: Path) -> None:
    for path in ("../x", "/etc/passwd", "", "~", "a\nb"):
        for ask in (git_diff, git_log):
            with pytest.raises(PathRefused):
                await ask(project, path)


async def test_the_variables_of_a_git_around_this_program_do_not_count(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = commit(project, "one", a_txt="a\n")
    (project / "a.txt").write_text("b\n")
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet", "--initial-branch=elsewhere")
    for name in ("GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'diff.noprefix'='true'")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / "index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {tmp_path}/canary;")
    monkeypatch.setenv("GIT_TRACE", "1")

    assert "+b" in (await git_diff(project, "a.txt")).lines
    assert (await git_diff(project, "A.TXT")).lines == ("No changes.",)
    assert (await git_status(project)).lines == ("## main", " M a.txt")
    assert [line[: len(first)] for line in (await git_log(project)).lines] == [first]
    assert not (tmp_path / "canary").exists()


# Nothing changes, nothing runs


ASKS: dict[str, Callable[[Path], Awaitable[LineList]]] = {
    "status": git_status,
    "log": git_log,
    "diff": git_diff,
    "staged": lambda root: git_diff(root, staged=True),
    "commit": lambda root: git_diff(root, commit="HEAD"),
}


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(place): place.read_bytes()
        for place in sorted(folder.rglob("*"))
        if place.is_file()
    }


async def test_asking_changes_nothing_in_the_repository(project: Path) -> None:
    commit(project, "one", a_txt="a\n", b_txt="b\n")
    (project / "a.txt").write_text("changed\n")
    os.utime(project / "b.txt", (1, 1))  # git wants to note that it is still the same
    before = files(project / ".git")
    for name, ask in ASKS.items():
        found = await ask(project)
        assert files(project / ".git") == before, name
        assert "b.txt" not in found.as_text() or "+b" in found.lines, name


HOSTILE = """
[core]
    fsmonitor = {run}
    pager = {run}
    editor = {run}
    hooksPath = hooks
    sshCommand = {run}
    askPass = {run}
[pager]
    status = {run}
    log = {run}
    diff = {run}
    show = {run}
[diff]
    external = {run}
    submodule = log
[diff "evil"]
    command = {run}
    textconv = {run}
    cachetextconv = true
[filter "evil"]
    clean = {run}
    smudge = {run}
    required = true
[filter "sly.one"]
    process = {run}
    required = true
[log]
    showSignature = true
[gpg]
    program = {run}
[gpg "ssh"]
    program = {run}
[status]
    submoduleSummary = true
[alias]
    status = !{run}
    diff = !{run}
    log = !{run}
[protocol]
    allow = always
[protocol "ext"]
    allow = always
[remote "evil"]
    url = ext::{run}
    promisor = true
    partialCloneFilter = blob:none
[core]
    repositoryFormatVersion = 1
[extensions]
    partialClone = evil
"""


@pytest.fixture
def hostile(project: Path, tmp_path: Path) -> Path:
    """A repository whose every setting that names a program leaves a file behind when
    it is run.
    """
    (tmp_path / "run.sh").write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\ncat\n")
    (tmp_path / "run.sh").chmod(0o755)
    (project / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
    (project / ".git/info/attributes").write_text("*.dat filter=sly.one diff=evil\n")
    commit(project, "one", a_txt="a\n", b_dat="b\n")
    header, _, message = git(project, "cat-file", "commit", "HEAD").partition("\n\n")
    (tmp_path / "signed").write_text(
        f"{header}\ngpgsig -----BEGIN PGP SIGNATURE-----\n\n{message}\n"
    )
    git(
        project,
        "reset",
        "--soft",
        git(project, "hash-object", "-t", "commit", "-w", str(tmp_path / "signed")),
    )
    for name in ("post-index-change", "pre-commit", "post-checkout"):
        (project / "hooks").mkdir(exist_ok=True)
        (project / "hooks" / name).symlink_to(tmp_path / "run.sh")
    with (project / ".git/config").open("a") as config:
        config.write(HOSTILE.format(run=tmp_path / "run.sh"))
    (project / "a.txt").write_text("new\n")
    (project / "b.dat").write_text("new\n")
    return project


async def test_nothing_that_a_repository_configures_is_run(
    hostile: Path, tmp_path: Path
) -> None:
    found = {name: (await ask(hostile)).lines for name, ask in ASKS.items()}
    assert all(found.values())
    assert {" M a.txt", " M b.dat"} <= set(found["status"])
    assert {"-a", "-b", "+new"} <= set(found["diff"])
    assert not (tmp_path / "canary").exists()

    # git itself does run it
    for arguments in (["status"], ["diff"], ["log"], ["show"]):
        subprocess.run(
            ["git", *arguments], cwd=hostile, capture_output=True, check=False
        )
        assert (tmp_path / "canary").exists(), arguments
        (tmp_path / "canary").unlink()


async def test_objects_that_are_missing_are_not_fetched(
    hostile: Path, tmp_path: Path
) -> None:
    blob = git(hostile, "-c", "core.fsmonitor=false", "rev-parse", "HEAD:a.txt")
    (hostile / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for ask in (ASKS["diff"], ASKS["commit"]):
        with pytest.raises(GitUnusable):
            await ask(hostile)
    assert not (tmp_path / "canary").exists()


async def test_a_submodule_is_not_asked(hostile: Path, tmp_path: Path) -> None:
    inner = hostile / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    commit(inner, "one", a_txt="a\n")
    git(
        hostile,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{git(inner, 'rev-parse', 'HEAD')},inner",
    )
    with (inner / ".git/config").open("a") as config:
        config.write(HOSTILE.format(run=tmp_path / "run.sh"))

    def forget() -> None:
        (tmp_path / "canary").unlink(missing_ok=True)

    (inner / "a.txt").write_text("b\n")
    forget()
    assert "A  inner" in (await git_status(hostile)).lines
    assert not any("Subproject" in line for line in (await git_diff(hostile)).lines)
    assert not (tmp_path / "canary").exists()

    git(
        inner,
        "-c",
        "core.fsmonitor=false",
        "-c",
        "core.hooksPath=/dev/null",
        "commit",
        "--quiet",
        "-am",
        "two",
    )
    forget()
    assert "AM inner" in (await git_status(hostile)).lines
    assert any(
        line.startswith("+Subproject commit")
        for line in (await git_diff(hostile)).lines
    )
    assert not (tmp_path / "canary").exists()


async def test_settings_that_would_change_the_answer_do_not_count(
    project: Path,
) -> None:
    first = commit(project, "one", a_txt="a\n")
    (project / "a.txt").write_text("b\n")
    (project / "grün").touch()
    plain = [await ask(project) for ask in ASKS.values()]

    with (project / ".git/config").open("a") as config:
        config.write(
            "[color]\n"
            " ui = always\n"
            "[core]\n"
            " quotePath = true\n"
            "[log]\n"
            " showRoot = false\n"
            " decorate = full\n"
        )
        config.write(
            "[diff]\n noprefix = true\n mnemonicPrefix = true\n orderFile = nothing\n"
            " relative = false\n"
        )
        config.write(
            "[status]\n"
            " relativePaths = false\n"
            " showUntrackedFiles = no\n"
            " branch = false\n"
            " short = false\n"
        )

    assert [await ask(project) for ask in ASKS.values()] == plain
    assert "+a" in (await git_diff(project, commit=first)).lines


REPOSITORIES: dict[str, Callable[[Path], Path]] = {}
"""How repositories may be kept, beside the usual way; each is made in an empty folder,
and its top returned.
"""


def kept(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
    REPOSITORIES[make.__name__] = make
    return make


@kept
def sha256(folder: Path) -> Path:
    git(folder, "init", "--quiet", "--initial-branch=main", "--object-format=sha256")
    return folder


@kept
def split_index(folder: Path) -> Path:
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "config", "core.splitIndex", "true")
    return folder


@kept
def git_folder_elsewhere(folder: Path) -> Path:
    git(
        folder,
        "init",
        "--quiet",
        "--initial-branch=main",
        f"--separate-git-dir={folder.parent / 'elsewhere.git'}",
    )
    return folder


@kept
def linked_worktree(folder: Path) -> Path:
    git(folder, "init", "--quiet", "--initial-branch=other")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=other")
    git(folder, "worktree", "add", "--quiet", "-b", "main", "linked")
    git(folder / "linked", "update-ref", "-d", "HEAD")
    return folder / "linked"


@kept
def odd_name(folder: Path) -> Path:
    (top := folder / "~ $HOME %d\n-c [x] {grün} 'é").mkdir()
    git(top, "init", "--quiet", "--initial-branch=main")
    return top


async def test_however_a_repository_is_kept_its_answers_are_the_same(
    project: Path, tmp_path: Path
) -> None:
    async def answers(root: Path) -> dict[str, str]:
        commit(root, "one", a_txt="a\n", b_txt="b\n")
        commit(root, "two", a_txt="a\nb\n")
        (root / "b.txt").write_text("staged\n")
        git(root, "add", "b.txt")
        (root / "a.txt").write_text("changed\n")
        (root / "c.txt").touch()
        return {
            name: re.sub(r"\b[0-9a-f]{7}\b", "id", (await ask(root)).as_text())
            for name, ask in ASKS.items()
        }

    usual = await answers(project)
    for name, make in REPOSITORIES.items():
        (tmp_path / name).mkdir()
        assert await answers(make(tmp_path / name)) == usual, name


UNREADABLE = {
    "an endless file": "[include]\n path = /dev/zero\n",
    "no settings": "\0\xff\n",
    "includes itself": "[include]\n path = config\n",
}


async def test_settings_that_cannot_be_read_to_an_end_are_an_error(
    project: Path,
) -> None:
    config = project / ".git/config"
    usual = config.read_text()
    for settings in UNREADABLE.values():
        config.write_text(usual + settings)
        for ask in ASKS.values():
            with pytest.raises(GitUnusable):
                await ask(project)


@pytest.mark.parametrize("has_git", [True, False], ids=["git", "no git"])
def test_to_get_ready_for_looking_runs_no_git(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_git: bool
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    if has_git:
        program.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("GIT_DIR", str(project / ".git"))
    before = dict(os.environ)
    for name in [*sys.modules]:
        if name.partition(".")[0] == "git" or name == "cdd_agent.git.look":
            monkeypatch.delitem(sys.modules, name)

    importlib.import_module("cdd_agent.git.look")

    assert dict(os.environ) == before
    assert not (tmp_path / "canary").exists()


async def test_a_filter_with_an_empty_name_is_not_run(
    project: Path, tmp_path: Path
) -> None:
    commit(project, "one", a_txt="a\n", _gitattributes="*.txt filter=\n")
    with (project / ".git/config").open("a") as config:
        config.write(
            f'[filter ""]\n clean = "touch {tmp_path}/canary; cat"\n required = true\n'
        )
    (project / "a.txt").write_text("b\n")
    for name, ask in ASKS.items():
        assert (await ask(project)).lines, name
        assert not (tmp_path / "canary").exists(), name
    git(project, "diff")  # git itself does run it
    assert (tmp_path / "canary").exists()


async def test_colours_that_the_repository_asks_for_are_not_used(project: Path) -> None:
    commit(project, "one", a_txt="a\n")
    (project / "a.txt").write_text("b\n")
    plain = [await ask(project) for ask in ASKS.values()]
    for name in ("ui", "status", "branch", "diff", "showBranch"):
        git(project, "config", f"color.{name}", "always")
    assert [await ask(project) for ask in ASKS.values()] == plain


async def test_what_people_wrote_cannot_steer_the_terminal(project: Path) -> None:
    commit(project, "a\x1b[31mred\x07\u202e end", a_txt="a\n")
    git(project, "checkout", "--quiet", "-b", "b\u202e\x9bx")
    (project / "c\x9b\u202e.txt").touch()

    assert (await git_log(project)).lines[0].endswith("a␛[31mred␇\ufffd end")
    assert (await git_status(project)).lines == (
        "## b\ufffd\ufffdx",
        "?? c\ufffd\ufffd.txt",
    )


async def test_a_filter_that_cannot_be_named_is_a_reason_to_refuse(
    project: Path,
) -> None:
    with (project / ".git/config").open("a") as config:
        config.write('[filter "a=b"]\n    clean = touch canary\n')
    with pytest.raises(GitUnusable, match=": a=b"):
        await git_status(project)


async def test_a_repository_for_the_files_of_another_folder_is_refused(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    git(project, "config", "core.worktree", str(tmp_path / "other"))
    with pytest.raises(GitUnusable, match="another folder"):
        await git_status(project)


# Where git is of no use


async def test_outside_a_repository_every_question_is_an_error_with_a_hint(
    tmp_path: Path,
) -> None:
    for ask in ASKS.values():
        with pytest.raises(NoRepository) as caught:
            await ask(tmp_path)
        assert "`git init`" in caught.value.hint


async def test_without_git_every_question_is_an_error_with_a_hint(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = project / "git"
    program.write_text("#!/bin/sh\ntouch canary\n")
    program.chmod(0o755)
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", ".:")
    with pytest.raises(NoGit) as caught:
        await git_status(project)
    assert "PATH" in caught.value.hint
    assert not (project / "canary").exists()


async def test_a_repository_that_is_broken_is_an_error_in_gits_words(
    project: Path,
) -> None:
    (project / ".git" / "config").write_text("[core\n")
    with pytest.raises(GitUnusable, match="bad config"):
        await git_status(project)


# The branch


def test_the_branch_is_read_without_git(project: Path, tmp_path: Path) -> None:
    inner = project / "a" / "b"
    inner.mkdir(parents=True)
    assert current_branch(inner) == "main"
    name = commit(project, "one", a_txt="a")
    git(project, "checkout", "--quiet", "-b", "feature/ümlaut")
    assert current_branch(project) == "feature/ümlaut"
    git(project, "worktree", "add", "--quiet", "../other", "main")
    assert current_branch(tmp_path / "other") == "main"
    git(project, "checkout", "--quiet", "--detach")
    assert (current_branch(project) or "").startswith(name)


def test_without_a_repository_there_is_no_branch(tmp_path: Path) -> None:
    assert current_branch(tmp_path) is None
    (tmp_path / ".git").mkdir()
    assert current_branch(tmp_path) is None
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert current_branch(tmp_path) is None
