"""Every command for a user without a home folder: no settings of theirs, no traceback.

The same commands run for each kind of user: without HOME and passwd entry, with a HOME
that is no folder, and with nothing but `XDG_*`.
"""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.cli.main import main
from tests.git.test_status import git
from tests.support.commandline import without_override
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import person_at

Cdd = Callable[..., int]
"""Runs one command and returns its exit code. `typed` is its standard input."""
Prepare = Callable[[pytest.MonkeyPatch, Path], None]
"""Gives this process the environment of a kind of user. The folder is empty."""

_IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Ann"), ("EMAIL", "ann@example.org"))
}
_USER_ID = 54_321
_STATE = {"machine", "cache-key"}
_KEEPS = {"missing_home": _STATE, "only_xdg": _STATE}
"""The files in the state folder of those kinds of users that have one."""


def no_passwd_entry(user_id: int) -> pwd.struct_passwd:
    raise KeyError(f"getpwuid(): uid not found: {user_id}")


def no_home(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("HOME")


def empty_home(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("HOME", "")


def relative_home(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("HOME", "home")


def missing_home(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("HOME", str(folder / "nothing" / "here"))


def file_as_home(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("HOME", str(folder / "file"))


def only_xdg(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("HOME")
    for name in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / "xdg" / name.lower()))


HOMES = (no_home, missing_home, file_as_home)
OTHER_HOMES = (empty_home, relative_home, only_xdg)
"""They are the same to the program as the first or the second one, by the tests of
`user_folders`.
"""
PARAMETERS = (
    *HOMES,
    *(pytest.param(home, marks=pytest.mark.long) for home in OTHER_HOMES),
)


@pytest.fixture(params=PARAMETERS, ids=lambda home: home.__name__)
def home(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Make this process that of such a user, and return what kind it is."""
    folder = tmp_path / "around"
    folder.mkdir()
    for name in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_passwd_entry)
    for name, value in _IDENTITY.items():
        monkeypatch.setenv(name, value)
    request.param(monkeypatch, folder)
    return str(request.param.__name__)


@pytest.fixture
def project(tmp_path: Path) -> Sandbox:
    return make_project(tmp_path)


def make_project(folder: Path) -> Sandbox:
    """A project under git with a remote, a ticket with two steps, and their replies."""
    root = folder / "project"
    root.mkdir()
    sandbox = Sandbox(root).write(
        Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1")
    )
    replies = [says("a.txt", "good"), says("b.txt", "good")]
    script = json.dumps({"replies": [{"reply": reply} for reply in replies]})
    (root / ".cdd" / "script.yaml").write_text(script)
    (root / ".cdd" / "config.yaml").write_text("model: script:.cdd/script.yaml\n")
    (root / "actions.yaml").write_text("- execute: ls\n")
    (root / "reply.md").write_text(says("c.txt", "good"))
    git(folder, "init", "--quiet", "--bare", str(folder / "remote.git"))
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "remote", "add", "origin", str(folder / "remote.git"))
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    return sandbox


IN_A_TERMINAL = {"demo", "serve", "socrates", "model", "resume", "help"}
"""Commands that open the shell or a server, and the help."""


def commands_in_help(text: str) -> set[str]:
    return set(re.findall(r"^  ([a-z]+) ", text, re.MULTILINE))


def run_every_command(cdd: Cdd) -> None:
    """Check the exit codes of all commands, in an order in which they succeed."""
    assert cdd("init") == 0
    assert cdd("new", "feature", "other") == 0
    assert cdd("plan", "feature-other", "--basic") == 2  # the spec is not complete
    assert cdd("plan", "check", SLUG) == 0
    assert cdd("list") == 0
    assert cdd("completion", "bash") == 0
    assert cdd("doctor") == 0
    assert cdd("trust") == 0
    assert cdd("context", "where is the good one?") == 0
    assert cdd("run", "actions.yaml", "--yes") == 0
    assert cdd("apply", "reply.md") == 0
    assert cdd("exec", SLUG, "--yes", "--worktree") == 0
    assert cdd("board") == 0
    assert cdd("land", SLUG, "--yes") == 0
    assert cdd("status", SLUG) == 0
    assert cdd("criteria", SLUG) == 0
    assert cdd("verify", SLUG) == 0
    assert cdd("diff", SLUG) == 0
    assert cdd("exec", SLUG, "--yes", "--start-over") == 0
    assert cdd("undo", SLUG) == 0
    assert cdd("redo", SLUG) == 0
    assert cdd("push", SLUG) == 0
    assert cdd("pull", SLUG) == 0
    assert cdd("compare", "--clear") == 0
    assert cdd("--plain", typed="/status\n/model\n!echo hello\n/exit\n") == 0


@pytest.mark.story
def test_every_command_works(
    project: Sandbox,
    home: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(project.root)

    def cdd(*words: str, typed: str = "") -> int:
        lines = tmp_path / "typed"
        lines.write_text(typed)
        with lines.open() as stdin, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", stdin)
            return main(list(words))

    run_every_command(cdd)

    assert not (project.root / "~").exists()
    assert not (project.root / "home").exists()
    kept = (tmp_path / "around").rglob("cdd/*")
    in_project = project.root / ".cdd" / "runs" / "machine"
    assert in_project.exists() == (home not in _KEEPS)
    assert {path.name for path in kept} == _KEEPS.get(home, set())


def test_the_table_has_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    used = set()

    def record(*words: str, typed: str = "") -> int:
        used.add(words[0])
        return 2 if "--basic" in words else 0

    run_every_command(record)

    named = commands_in_help(capsys.readouterr().out)
    assert used - {"--plain"} == named - IN_A_TERMINAL - {"cdd"}


@pytest.mark.long
@pytest.mark.story
@pytest.mark.parametrize("home", [no_home], indirect=True)
def test_the_demo_works(home: str) -> None:
    assert main(["demo", "--headless"]) == 0


async def test_the_shell_works(project: Sandbox, home: str) -> None:
    async with person_at(project, size=(120, 40)) as person:
        await person.press("f5")
        await person.until(lambda: "Server address" in person.screen)


@pytest.fixture
def user_without_entry(project: Sandbox) -> list[str]:
    """Return the beginning of a command that runs as a user without a passwd entry.

    The user owns the project. They may read every file, since Python and the project
    may be in folders that only root may enter.
    """
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root on Linux can become a user without a passwd entry")
    for path in (project.root.parent, *project.root.parent.rglob("*")):
        os.chown(path, _USER_ID, _USER_ID, follow_symlinks=False)
    become = [f"--reuid={_USER_ID}", f"--regid={_USER_ID}", "--clear-groups"]
    read = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
    # `access` would do without the right to read otherwise
    keep = "--securebits=+no_setuid_fixup"
    return ["setpriv", *become, *read, keep, sys.executable, "-m", "cdd_agent"]


def run_as_program(sandbox: Sandbox, argv: list[str], **environment: str) -> None:
    """Check the commands that use files of the user, each as a process."""
    for words in (
        ["doctor"],
        ["exec", SLUG, "--yes"],
        ["push", SLUG],
        ["context", "where is the good one?"],
        ["--plain"],
    ):
        done = subprocess.run(
            [*argv, *words],
            cwd=sandbox.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    server = subprocess.Popen(
        [*argv, "serve", "--port", "0"],
        cwd=sandbox.root,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("http://127.0.0.1:")
        server.send_signal(signal.SIGINT)


@pytest.fixture
def environment() -> dict[str, str]:
    """Return the variables of a program that is started without any of the user's."""
    kept = ("PATH", "TMPDIR", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    variables = {name: os.environ[name] for name in kept if name in os.environ}
    variables |= {"PYTHONPATH": str(Path(__file__).parents[1]), "CDD_TRUST": "1"}
    return {**variables, **_IDENTITY}


@pytest.mark.fork
def test_a_real_user_may_have_no_passwd_entry(
    project: Sandbox, user_without_entry: list[str], environment: dict[str, str]
) -> None:
    run_as_program(project, user_without_entry, **environment)


@pytest.mark.fork
@pytest.mark.parametrize("permissions", [0o000, 0o500])
def test_a_home_folder_may_refuse_to_be_read_or_written(
    project: Sandbox, tmp_path: Path, environment: dict[str, str], permissions: int
) -> None:
    home = tmp_path / "refusing"
    home.mkdir()
    home.chmod(permissions)
    argv = without_override(sys.executable, "-m", "cdd_agent")

    run_as_program(project, argv, HOME=str(home), **environment)

    home.chmod(0o700)
    assert list(home.iterdir()) == []
