"""Commits of named files: nothing else is in them, and what the user had staged stays
as it was.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cdd_agent.git.commit import (
    already_committed,
    commit_files,
    expect_ready,
    settle_commits,
)
from cdd_agent.git.commit_git import CommitFailed, CommitRefused
from cdd_agent.git.commit_message import CommitMessage
from tests.git import repositories
from tests.git.repositories import make_repository
from tests.support.commandline import wait_for
from tests.support.homes import at_home

MESSAGE = CommitMessage(
    "Create the user model",
    "Step 2 of feature-user-auth.",
    "Cdd-Step: feature-user-auth/2",
)


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, check=check, capture_output=True, text=True
    )
    return done.stdout.strip("\n")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def user_commits(folder: Path, files: dict[str, str], message: str = "theirs") -> str:
    write(folder, files)
    git(folder, "add", "--force", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", f"--message={message}")
    return git(folder, "rev-parse", "HEAD")


async def commit(
    folder: Path, paths: Sequence[str], message: CommitMessage = MESSAGE
) -> str | None:
    """Commit files that the step does not declare, and return the commit."""
    return (await commit_files(folder, paths, message)).name


def commit_nothing(folder: Path, times: int) -> None:
    """Add so many empty commits to the current branch."""
    branch = git(folder, "symbolic-ref", "HEAD")
    who = "committer Ann <ann@example.org> now"
    stream = f"commit {branch}\n{who}\ndata 0\nfrom {branch}^0\n"
    stream += f"commit {branch}\n{who}\ndata 0\n" * (times - 1)
    subprocess.run(
        ["git", "fast-import", "--quiet", "--date-format=now"],
        cwd=folder,
        input=stream,
        text=True,
        check=True,
    )


def in_commit(folder: Path, name: str | None) -> dict[str, str]:
    """The paths of a commit, each with what became of it: `A`, `M`, `D` or `T`."""
    assert name is not None
    show = git(
        folder, "show", "--format=", "--name-status", "--no-renames", "-z", name
    ).strip("\0")
    fields = show.split("\0")
    return dict(zip(fields[1::2], fields[::2], strict=True))


def status(folder: Path) -> list[str]:
    return git(
        folder, "-c", "core.quotePath=false", "status", "--porcelain"
    ).splitlines()


def index(folder: Path) -> set[str]:
    return set(git(folder, "ls-files", "--stage", "-z").strip("\0").split("\0"))


@pytest.fixture(autouse=True)
def ann(isolate_from_user: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person with a name in an empty home folder, on a machine without settings."""
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (Path(os.environ["HOME"]) / ".gitconfig").write_text(
        "[user]\n name = Ann\n email = ann@example.org\n"
    )


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    return make_repository(root)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    root = make_repository(folder / "project")
    write(root, {"a.txt": "a\n", "b.txt": "b\n", "folder/c.txt": "c\n"})
    with at_home(folder):
        repositories.git(root, "add", "--all")
        repositories.git(root, "commit", "--quiet", "--message=theirs")
    return root


@pytest.fixture
def project(prepared: Path, tmp_path: Path) -> Path:
    """A repository with a commit, whose index still fits its files."""
    root = shutil.copytree(prepared, tmp_path / "project")
    git(root, "update-index", "--refresh")
    return root


# What is in a commit


async def test_a_commit_has_the_files_that_are_named_and_no_others(
    project: Path,
) -> None:
    parent = git(project, "rev-parse", "HEAD")
    write(
        project,
        {
            "a.txt": "new\n",
            "b.txt": "not named\n",
            "folder/new.txt": "new\n",
            "other.txt": "not named\n",
        },
    )
    (project / "folder/c.txt").unlink()

    name = await commit(project, ["a.txt", "folder/new.txt", "folder/c.txt"], MESSAGE)

    assert in_commit(project, name) == {
        "a.txt": "M",
        "folder/new.txt": "A",
        "folder/c.txt": "D",
    }
    assert git(project, "rev-parse", "refs/heads/main", "main^").split() == [
        name,
        parent,
    ]
    assert git(project, "log", "-1", "--format=%an/%cn") == "Ann/Ann"
    assert git(project, "log", "-1", "--format=%B").rstrip("\n") == MESSAGE.text.rstrip(
        "\n"
    )
    assert (
        git(project, "log", "-1", "--format=%(trailers:only)").strip()
        == MESSAGE.trailer
    )
    assert MESSAGE.first_line in git(project, "reflog", "-1", "--format=%gs")
    assert status(project) == [" M b.txt", "?? other.txt"]


NASTY = [
    "with space.txt",
    " leading",
    "-rf",
    "--all",
    "*",
    "*.txt",
    "[ab].txt",
    "a?b",
    ":(top)a.txt",
    ":/a",
    ":!a.txt",
    "!bang",
    "#hash",
    "grün/日本.txt",
    "line\nfeed",
    "tab\there",
    'quote"s',
    "back\\slash",
    "$(touch x)",
    "~",
    ".hidden",
    "end.lock",
    "deep/er/est/f",
]


async def test_every_path_is_taken_literally_and_a_thousand_fit(project: Path) -> None:
    entries = index(project)
    paths = [*NASTY, *(f"many/{number}/{'x' * 100}.py" for number in range(1000))]
    # each of these would match one of the paths, if that were a pattern
    write(project, {"ab.txt": "", "a-b": "", "x.txt": ""})
    write(project, dict.fromkeys(paths, "new\n"))
    name = await commit(project, paths, MESSAGE)
    assert in_commit(project, name) == dict.fromkeys(paths, "A")
    assert status(project) == ["?? a-b", "?? ab.txt", "?? x.txt"]

    for path in paths:
        (project / path).unlink()
    name = await commit(project, paths, MESSAGE)
    assert in_commit(project, name) == dict.fromkeys(paths, "D")
    assert index(project) == entries


async def test_nothing_to_commit_is_no_commit(project: Path) -> None:
    before = git(project, "rev-parse", "HEAD")
    write(project, {"b.txt": "new\n"})
    assert await commit(project, ["a.txt", "never/was.txt", "folder"], MESSAGE) is None
    assert await commit(project, [], MESSAGE) is None
    assert git(project, "rev-parse", "HEAD") == before


async def test_the_exec_bit_and_links_are_committed_as_what_they_are(
    project: Path,
) -> None:
    (project / "a.txt").chmod(0o755)
    (project / "link").symlink_to("folder")
    (project / "nowhere").symlink_to("/not/there")
    (project / "b.txt").unlink()
    (project / "b.txt").symlink_to("a.txt")

    name = await commit(project, ["a.txt", "link", "nowhere", "b.txt"], MESSAGE)

    assert in_commit(project, name) == {
        "a.txt": "M",
        "link": "A",
        "nowhere": "A",
        "b.txt": "T",
    }
    modes = {entry.partition("\t")[2]: entry[:6] for entry in index(project)}
    assert [modes[path] for path in ("a.txt", "link", "b.txt")] == [
        "100755",
        "120000",
        "120000",
    ]
    assert status(project) == []


async def test_modes_that_the_disk_does_not_know_stay(project: Path) -> None:
    git(project, "update-index", "--chmod=+x", "a.txt")
    git(project, "commit", "--quiet", "--message=theirs")
    git(project, "config", "core.fileMode", "false")
    (project / "a.txt").write_text("new\n")
    await commit(project, ["a.txt"], MESSAGE)
    assert git(project, "ls-tree", "HEAD", "a.txt").startswith("100755")


async def test_a_file_becomes_a_folder_and_a_folder_a_file(project: Path) -> None:
    (project / "a.txt").unlink()
    (project / "folder/c.txt").unlink()
    (project / "folder").rmdir()
    write(project, {"a.txt/inside": "new\n", "folder": "new\n"})
    for paths in (["a.txt/inside", "a.txt"], ["folder/c.txt", "folder"]):
        assert set(in_commit(project, await commit(project, paths, MESSAGE))) == set(
            paths
        )
    assert status(project) == []


async def test_a_folder_in_the_place_of_a_file_is_not_committed_with_it(
    project: Path,
) -> None:
    (project / "a.txt").unlink()
    write(project, {"a.txt/theirs": "not named\n"})
    assert in_commit(project, await commit(project, ["a.txt"], MESSAGE)) == {
        "a.txt": "D"
    }


async def test_line_ends_and_filters_are_the_users(project: Path) -> None:
    git(project, "config", "core.autocrlf", "true")
    git(project, "config", "filter.upper.clean", "tr a-z A-Z")
    user_commits(project, {".gitattributes": "*.up filter=upper\n"})
    (project / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (project / "x.up").write_text("words\n")

    await commit(project, ["a.txt", "x.up"], MESSAGE)

    assert git(project, "show", "HEAD:a.txt") == "one\ntwo"
    assert git(project, "show", "HEAD:x.up") == "WORDS"
    assert (project / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert status(project) == []


async def test_what_is_ignored_and_not_tracked_is_left_out(project: Path) -> None:
    user_commits(
        project, {".gitignore": "*.log\n", "tracked.log": "old\n", "[x].txt": ""}
    )
    write(
        project,
        {
            "new.log": "",
            "[a].log": "",
            "a.log": "",
            "tracked.log": "new\n",
            "added.log": "",
            "c.txt": "c\n",
        },
    )
    git(project, "add", "--force", "added.log", "a.log")
    git(project, "rm", "--quiet", "--cached", "[[]x].txt")
    paths = ["new.log", "[a].log", "tracked.log", "added.log", "c.txt"]

    name = await commit(project, paths, MESSAGE)

    assert in_commit(project, name) == {
        "tracked.log": "M",
        "added.log": "A",
        "c.txt": "A",
    }
    assert await commit(project, ["new.log"], MESSAGE) is None


async def test_what_the_user_stopped_tracking_and_ignores_is_left_out(
    project: Path,
) -> None:
    user_commits(project, {".env": "KEY=1\n"})
    git(project, "rm", "--quiet", "--cached", ".env")
    write(project, {".gitignore": ".env\n", ".env": "KEY=2\n"})
    assert await commit(project, [".env"], MESSAGE) is None
    assert status(project) == ["D  .env", "?? .gitignore"]


# What the user had staged


async def test_other_files_that_are_staged_stay_staged(project: Path) -> None:
    write(project, {"b.txt": "staged\n", "new.txt": "staged\n", "a.txt": "step\n"})
    git(project, "add", "b.txt", "new.txt")
    git(project, "rm", "--quiet", "folder/c.txt")
    git(project, "update-index", "--assume-unchanged", "b.txt")
    write(project, {"b.txt": "and edited again\n", "intended.txt": "x\n"})
    git(project, "add", "--intent-to-add", "intended.txt")
    entries, staged = index(project), git(project, "diff", "--cached")

    name = await commit(project, ["a.txt"], MESSAGE)

    assert in_commit(project, name) == {"a.txt": "M"}
    assert git(project, "diff", "--cached") == staged
    # the old one, the new one
    assert [entry[-6:] for entry in entries ^ index(project)] == ["\ta.txt"] * 2
    assert status(project) == [
        "M  b.txt",
        "D  folder/c.txt",
        " A intended.txt",
        "A  new.txt",
    ]
    assert git(project, "ls-files", "-v", "b.txt").startswith("h")


async def test_a_file_staged_as_the_step_left_it_is_clean_afterwards(
    project: Path,
) -> None:
    write(project, {"a.txt": "step\n"})
    git(project, "add", "a.txt")  # also what a kill before the end leaves
    assert in_commit(project, await commit(project, ["a.txt"], MESSAGE)) == {
        "a.txt": "M"
    }
    assert status(project) == []


async def test_a_staged_file_is_not_displaced_by_a_folder_of_its_name(
    project: Path,
) -> None:
    write(project, {"new": "staged\n"})
    git(project, "add", "new")
    (project / "new").unlink()
    write(project, {"new/inside": "step\n"})
    entries = index(project)
    done = await commit_files(project, ["new/inside"], MESSAGE)
    assert (done.name, [*done.left_out]) == (None, ["new/inside"])
    with pytest.raises(CommitRefused, match="staged changes: new"):
        await expect_ready(project, ["new/inside"])
    assert index(project) == entries


async def test_a_conflict_that_is_not_a_merges_stays_for_the_user_to_solve(
    project: Path,
) -> None:
    write(project, {"a.txt": "stashed\n", "b.txt": "stashed\n"})
    git(project, "stash", "--quiet")
    user_commits(project, {"a.txt": "theirs\n", "b.txt": "theirs\n"})
    git(project, "stash", "pop", "--quiet", check=False)
    write(project, {"a.txt": "step\n"})
    (project / "b.txt").unlink()
    entries = index(project)
    assert len(entries) == 7  # three of each file that is in conflict

    done = await commit_files(
        project, ["a.txt", "b.txt"], MESSAGE, lambda path: path == "a.txt"
    )

    assert (done.name, sorted(done.left_out)) == (None, ["a.txt", "b.txt"])
    assert index(project) == entries


# Where HEAD is


async def test_the_first_commit_of_a_branch_has_no_parent(empty: Path) -> None:
    write(empty, {"a.txt": "a\n", "b.txt": "b\n"})
    git(empty, "add", "b.txt")
    name = await commit(empty, ["a.txt"], MESSAGE)
    assert git(empty, "log", "--format=%H %P").strip() == name
    assert in_commit(empty, name) == {"a.txt": "A"}
    assert status(empty) == ["A  b.txt"]


async def test_a_detached_head_moves_and_no_branch_does(project: Path) -> None:
    main = git(project, "rev-parse", "main")
    git(project, "checkout", "--quiet", "--detach")
    write(project, {"a.txt": "new\n"})
    name = await commit(project, ["a.txt"], MESSAGE)
    assert git(project, "rev-parse", "HEAD", "HEAD^", "main").split() == [
        name,
        main,
        main,
    ]


async def test_a_project_inside_a_repository(project: Path) -> None:
    inner = project / "packages" / "my-app"
    write(inner, {"a.txt": "new\n", ".gitignore": "*.log\n", "x.log": ""})
    write(project, {"a.txt": "not named\n"})
    name = await commit(inner, ["a.txt", "x.log"], MESSAGE)
    assert in_commit(project, name) == {"packages/my-app/a.txt": "A"}
    assert [line.split()[-1] for line in status(project)] == [
        "a.txt",
        "packages/my-app/.gitignore",
    ]


async def test_a_worktree_has_a_branch_and_an_index_of_its_own(
    project: Path, tmp_path: Path
) -> None:
    git(project, "worktree", "add", "--quiet", "-b", "side", "../other")
    main = git(project, "rev-parse", "main")
    write(tmp_path / "other", {"a.txt": "new\n"})
    name = await commit(tmp_path / "other", ["a.txt"], MESSAGE)
    assert git(project, "rev-parse", "side", "main").split() == [name, main]
    assert status(tmp_path / "other") == status(project) == []


async def test_variables_of_another_git_do_not_count(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_WORK_TREE",
        "GIT_OBJECT_DIRECTORY",
    ):
        monkeypatch.setenv(variable, "/not/there")
    write(project, {"a.txt": "new\n"})
    assert await commit(project, ["a.txt"], MESSAGE)


async def test_a_name_in_the_environment_counts(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Bob")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "bob@example.org")
    write(project, {"a.txt": "new\n"})
    await commit(project, ["a.txt"], MESSAGE)
    assert git(project, "log", "-1", "--format=%an/%cn") == "Bob/Ann"


async def test_no_hook_is_run(project: Path) -> None:
    names = (
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "reference-transaction",
    )
    for name in (*names, "post-index-change"):
        hook = project / ".git/hooks" / name
        hook.write_text("#!/bin/sh\ntouch canary\nexit 1\n")
        hook.chmod(0o755)
    git(project, "config", "core.fsmonitor", "touch canary; false")
    write(project, {"a.txt": "new\n"})
    assert await commit(project, ["a.txt"], MESSAGE)
    assert not list(project.rglob("canary"))


# Where there is no commit


def everything(project: Path) -> tuple[str, set[str], list[str]]:
    return git(project, "rev-parse", "--all", "HEAD"), index(project), status(project)


async def refused(
    project: Path, match: str, paths: tuple[str, ...] = ("a.txt",)
) -> CommitRefused:
    """A refusal that changed nothing and left nothing behind."""
    before = everything(project)
    with pytest.raises(CommitRefused, match=match) as caught:
        await commit(project, paths, MESSAGE)
    assert everything(project) == before
    return caught.value


MIDDLES = {
    "merge": ("A merge is in progress", ["merge", "side"]),
    "rebase": ("A rebase is in progress", ["rebase", "side"]),
    "rebase by patches": (
        "A rebase or `git am` is in progress",
        ["rebase", "--apply", "side"],
    ),
    "cherry-pick": ("A cherry-pick is in progress", ["cherry-pick", "side"]),
    "revert": ("A revert is in progress", ["revert", "--no-edit", "HEAD^"]),
    "bisect": ("A bisect is in progress", ["bisect", "start"]),
}


async def test_in_the_middle_of_something_there_is_no_commit(
    project: Path, tmp_path: Path
) -> None:
    git(project, "checkout", "--quiet", "-b", "side")
    user_commits(project, {"a.txt": "side\n"})
    git(project, "checkout", "--quiet", "main")
    user_commits(project, {"a.txt": "main\n"})
    user_commits(project, {"a.txt": "main again\n"})
    for name, (match, command) in MIDDLES.items():
        root = shutil.copytree(project, tmp_path / name)
        git(root, *command, check=False)
        error = await refused(root, match, ("b.txt",))
        assert "abort" in error.hint, name


MOVES = (
    "#!/bin/sh\n"
    "export GIT_INDEX_FILE=\n"
    "cd {root} && git commit-tree -p HEAD -m theirs 'HEAD^{{tree}}' > ../moved\n"
)
MOVES += "git update-ref HEAD $(cat ../moved)\ncat\n"


async def test_a_branch_that_moves_meanwhile_is_not_overwritten(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "move.sh").write_text(MOVES.format(root=project))
    (project / ".git/info/attributes").write_text("a.txt filter=moves\n")
    git(project, "config", "filter.moves.clean", f"sh {tmp_path}/move.sh")
    write(project, {"a.txt": "step\n", "new.txt": "step\n", "b.txt": "staged\n"})
    git(project, "add", "b.txt")
    (project / "folder/c.txt").unlink()
    entries = index(project)

    with pytest.raises(CommitFailed, match="moved") as caught:
        await commit(project, ["a.txt", "new.txt", "folder/c.txt"], MESSAGE)

    assert caught.value.hint
    assert git(project, "rev-parse", "main") == (tmp_path / "moved").read_text().strip()
    assert index(project) == entries
    assert (project / "a.txt").read_text() == "step\n"


async def test_outside_a_repository(tmp_path: Path) -> None:
    for ask in (
        commit_files(tmp_path, ["a.txt"], MESSAGE),
        already_committed(tmp_path, MESSAGE.trailer),
    ):
        with pytest.raises(CommitRefused, match="not in a git repository") as caught:
            await ask
        assert "git init" in caught.value.hint
        assert "commit: off" in caught.value.hint


async def test_a_bare_repository(project: Path, tmp_path: Path) -> None:
    git(project, "clone", "--quiet", "--bare", ".", "../bare")
    with pytest.raises(CommitRefused, match="is bare"):
        await commit(tmp_path / "bare", ["a.txt"], MESSAGE)


async def test_a_repository_for_the_files_of_another_folder(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    git(project, "config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(CommitRefused, match="another folder"):
        await commit(project, ["a.txt"], MESSAGE)


async def test_nobody_in_particular(project: Path) -> None:
    (Path(os.environ["HOME"]) / ".gitconfig").write_text(
        "[user]\n useConfigOnly = true\n"
    )
    write(project, {"a.txt": "new\n"})
    error = await refused(project, "git does not know who you are")
    assert "`git config" in error.hint


async def test_without_git(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "")
        with pytest.raises(CommitRefused, match="not found"):
            await commit(project, ["a.txt"], MESSAGE)


async def test_a_lock_that_is_there_is_named(project: Path) -> None:
    write(project, {"a.txt": "new\n"})
    before = everything(project)
    for lock in ("index.lock", "refs/heads/main.lock", "HEAD.lock"):
        (project / ".git" / lock).touch()
        with pytest.raises(CommitFailed, match="The repository is locked") as caught:
            await commit(project, ["a.txt"], MESSAGE)
        assert caught.value.hint.endswith(lock)
        (project / ".git" / lock).unlink()
    assert everything(project) == before
    assert await commit(project, ["a.txt"], MESSAGE)


NO_PATHS = (
    *("", ".", "..", "../x", "a/../../x", "/etc/passwd"),
    *(".git/config", "a/.GIT/x", "a\0b.txt", "bad\udcff"),
)


async def test_what_is_no_path_of_the_project(project: Path) -> None:
    before = everything(project)
    for path in NO_PATHS:
        with pytest.raises(CommitRefused, match="is not a file of the project"):
            await commit(project, [path], MESSAGE)
    assert everything(project) == before


async def test_what_git_does_not_take_is_told_in_its_words(project: Path) -> None:
    (project / "link").symlink_to("folder")
    await refused(
        project,
        r"git update-index failed: .*'link/c\.txt' is beyond a symbolic link",
        ("link/c.txt",),
    )


# Signatures


def signing(project: Path, tmp_path: Path, script: str) -> None:
    program = tmp_path / "gpg.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    git(project, "config", "gpg.program", str(program))
    git(project, "config", "commit.gpgsign", "yes")
    write(project, {"a.txt": "new\n"})


async def test_a_commit_is_signed_where_the_user_signs_but_not_by_way_of_the_terminal(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPG_TTY", "/dev/pts/1")
    signing(
        project,
        tmp_path,
        "cat >/dev/null; echo '[GNUPG:] SIG_CREATED ' >&2; echo SIGNATURE@$GPG_TTY.",
    )
    await commit(project, ["a.txt"], MESSAGE)
    assert "SIGNATURE@." in git(project, "cat-file", "commit", "HEAD")


async def test_a_setting_that_is_wrong_is_told(project: Path, tmp_path: Path) -> None:
    signing(project, tmp_path, "exit 1")
    git(project, "config", "commit.gpgsign", "perhaps")
    await refused(project, r"git config failed: .*commit\.gpgsign")


async def test_a_signature_that_fails_is_no_commit(
    project: Path, tmp_path: Path
) -> None:
    signing(project, tmp_path, "echo 'no pinentry' >&2; exit 2")
    error = await refused(project, "could not be signed")
    assert "commit.gpgsign" in error.hint


# Not twice

KILLER = """\
#!/bin/sh
case "$*" in
    *{command}*)
        test {when} = before && kill -9 $PPID
        {git} "$@"; touch {over}; kill -9 $PPID ;;
    *) exec {git} "$@" ;;
esac
"""
MAIN = """\
import asyncio, pathlib
from cdd_agent.git.commit import commit_files
from tests.git.test_commit import MESSAGE
asyncio.run(commit_files(pathlib.Path({root!r}), ["a.txt", "new.txt"], MESSAGE))
"""


@pytest.mark.crash
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "command", ["commit-tree", "cdd/commit", "--index-info", "update-ref*--stdin"]
)
async def test_after_a_kill_at_any_moment_the_next_try_makes_the_one_commit(
    project: Path, tmp_path: Path, command: str, when: str
) -> None:
    killer = tmp_path / "bin/git"
    over = tmp_path / "over"
    write(
        tmp_path,
        {
            "bin/git": KILLER.format(
                command=command, when=when, git=shutil.which("git"), over=over
            )
        },
    )
    killer.chmod(0o755)
    write(project, {"a.txt": "step\n", "new.txt": "step\n", "b.txt": "staged\n"})
    git(project, "add", "b.txt")
    path = os.pathsep.join((str(killer.parent), os.environ["PATH"]))
    main = [sys.executable, "-c", MAIN.format(root=str(project))]
    done = subprocess.run(
        main, env={**os.environ, "PATH": path, "TMPDIR": str(tmp_path)}
    )
    assert done.returncode == -signal.SIGKILL
    wait_for(over.exists)  # a git that was started goes on without us

    await settle_commits(project)
    assert git(project, "for-each-ref", "refs/worktree") == ""
    await expect_ready(project, ["a.txt", "new.txt"])  # nothing of it is staged
    found = await already_committed(project, MESSAGE.trailer)
    name = await commit(project, ["a.txt", "new.txt"], MESSAGE)

    assert [found, name].count(None) == 1
    assert git(project, "rev-parse", "HEAD") == found or name
    assert in_commit(project, found or name) == {"a.txt": "M", "new.txt": "A"}
    assert git(project, "rev-list", "--count", "HEAD") == "2"
    assert status(project) == ["M  b.txt"]


async def test_a_commit_is_found_again_by_its_trailer(project: Path) -> None:
    assert await already_committed(project, MESSAGE.trailer) is None
    write(project, {"a.txt": "new\n"})
    name = await commit(project, ["a.txt"], MESSAGE)
    user_commits(
        project,
        {"b.txt": "later\n"},
        f"Quotes it\n\n{MESSAGE.trailer}\n\nbut is another one",
    )
    user_commits(project, {}, "Subject\n\nCdd-Step: feature-user-auth/22")
    user_commits(project, {}, MESSAGE.trailer)

    assert await already_committed(project, MESSAGE.trailer) == name
    assert await already_committed(project, f"{MESSAGE.trailer}2") == git(
        project, "rev-parse", "HEAD^"
    )
    assert await already_committed(project, f"{MESSAGE.trailer[:-1]}3") is None


async def test_trailers_that_people_add_do_not_hide_it(project: Path) -> None:
    write(project, {"a.txt": "new\n"})
    await commit(project, ["a.txt"], MESSAGE)
    git(project, "commit", "--quiet", "--amend", "--no-edit", "--signoff")
    assert await already_committed(project, MESSAGE.trailer) == git(
        project, "rev-parse", "HEAD"
    )


async def test_it_is_looked_for_among_the_last_fifty_of_the_branchs_own(
    project: Path,
) -> None:
    git(project, "checkout", "--quiet", "-b", "side")
    write(project, {"a.txt": "new\n"})
    name = await commit(project, ["a.txt"], MESSAGE)
    git(project, "checkout", "--quiet", "main")
    git(project, "merge", "--quiet", "--no-ff", "--no-edit", "side")
    # it came by a merge
    assert await already_committed(project, MESSAGE.trailer) is None
    git(project, "checkout", "--quiet", "side")
    commit_nothing(project, 49)
    assert await already_committed(project, MESSAGE.trailer) == name
    user_commits(project, {})
    assert await already_committed(project, MESSAGE.trailer) is None


async def test_on_a_branch_without_commits_nothing_is_found(empty: Path) -> None:
    assert await already_committed(empty, MESSAGE.trailer) is None


async def test_git_takes_no_part_of_a_message_for_the_trailer(project: Path) -> None:
    forged = (
        "x\r\n"
        "\r\n"
        f"{MESSAGE.trailer}\n"
        "---\n"
        "diff --git a/x b/x\n"
        "Signed-off-by: Eve <eve@example.org>\n"
        "\x00\x1b[31m"
    )
    write(project, {"a.txt": "new\n"})
    other = f"{MESSAGE.trailer[:-1]}9"
    await commit(project, ["a.txt"], CommitMessage(forged, forged, other))
    assert git(project, "log", "-1", "--format=%(trailers:only)").strip() == other
    assert await already_committed(project, MESSAGE.trailer) is None
    patch = git(project, "format-patch", "-1", "--stdout")
    git(project, "reset", "--quiet", "--hard", "HEAD^")
    (project / "mail").write_text(patch)
    git(project, "am", "--quiet", "mail")
    assert git(project, "log", "-1", "--format=%(trailers:only)").strip() == other
