"""Whatever text is tried: what is refused starts nothing."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct, field

from cdd_agent.process.policy import (
    ALWAYS_ALLOWED,
    CommandRunner,
    JudgedCommand,
    Refused,
    split,
)
from cdd_agent.process.programs import find_program
from cdd_agent.process.run import CommandResult, OnOutput, ignore_output
from cdd_agent.settings.config import Commands, runs_others
from tests.process.programs import posix, script
from tests.support.tables import each_row

# --- What is refused, and that nothing ran --------------------------------------------


CHAINS = [
    "ls; canary",
    "ls;canary",
    "ls ;canary",
    "ls && canary",
    "ls || canary",
    "ls | canary",
    "ls |& canary",
    "ls & canary",
    "ls &",
    "ls\ncanary",
    "ls\r\ncanary",
    "ls\rcanary",
    "ls\n\n\ncanary",
    "ls \\\n; canary",
    "ls \\\\\ncanary",
    "; canary",
    "& canary",
    "(canary)",
    "{ canary; }",
    "! canary",
    "if true; then canary; fi",
    "while canary; do break; done",
    "for x in a; do canary; done",
    "canary() { :; }",
    "case x in x) canary;; esac",
    "ls ;; canary",
    "echo a;#b\ncanary",
    "coproc canary",
    "trap canary EXIT",
]


SUBSTITUTIONS = [
    "echo $(canary)",
    "echo `canary`",
    'echo "$(canary)"',
    'echo "`canary`"',
    "echo $(echo $(canary))",
    'echo "a b $(canary) c"',
    "echo 'a' \"$(canary)\"",
    "echo $((`canary`))",
    "echo ${x:-$(canary)}",
    "echo ${x:=`canary`}",
    "$(echo canary)",
    "`echo canary`",
    "l$(canary)s",
    'ls "\\\\$(canary)"',
    'ls "\\\\`canary`"',
    "echo '\\'$(canary)'\\'",
    "echo $'\\'; canary #'",
]


REDIRECTIONS = [
    "echo x > precious.txt",
    "echo x >precious.txt",
    "echo x >> precious.txt",
    "echo x >| precious.txt",
    "echo x &> precious.txt",
    "echo x 2> precious.txt",
    "echo x 1<> precious.txt",
    "> precious.txt",
    ">precious.txt echo x",
    "cat < precious.txt",
    "cat <<EOF\n$(canary)\nEOF",
    "cat <<'EOF' > precious.txt\nx\nEOF",
    "cat <<< $(canary)",
    "cat <(canary)",
    "ls >(canary)",
    "echo x 2>&1",
]


OTHER_PROGRAMS = [
    "canary",
    "rm precious.txt",
    "rm -rf .",
    "sh -c canary",
    "bash -c 'canary'",
    "zsh -c canary",
    "cmd /c canary",
    "powershell -Command canary",
    "env canary",
    "env -i ls",
    "xargs canary",
    "sudo ls",
    "doas ls",
    "nohup ls",
    "nice ls",
    "ionice ls",
    "time ls",
    "timeout 1 ls",
    "stdbuf -o0 ls",
    "setsid ls",
    "exec canary",
    "eval canary",
    "command canary",
    "builtin ls",
    "busybox ls",
    "chroot . ls",
    "unshare ls",
    "script -c canary",
    "watch canary",
    "parallel canary",
    "strace ls",
    "find . -exec canary ;",
    "find . -delete",
    ". ./canary",
    "source ./canary",
    "cd ..",
    "export PATH=evil",
    "alias ls=canary",
    "perl -e 1",
    "curl https://example.org",
]


PATHS = [
    "./ls",
    "./canary",
    "evil/ls",
    "evil/../evil/ls",
    "/bin/ls",
    "/usr/bin/env ls",
    "//bin/ls",
    "../app/evil/ls",
    "~/ls",
    "'./ls'",
    ".//ls",
    "ls/",
    "ls/../evil/ls",
    "bin\\ls",
    "'bin\\ls'",
    ".\\ls",
    "'.\\ls'",
    "'C:\\Windows\\System32\\cmd.exe' /c canary",
    "C:ls",
    "'\\\\server\\share\\ls'",
    "ls.exe",
    "ls.bat",
]


LOOK_ALIKES = [
    "LS",
    "Ls",
    "ｌｓ",  # full width
    "lѕ",  # a Cyrillic letter
    "l\u200bs",
    "l\u00ads",
    "\u00a0ls",
    "ls\u00a0",
    "ls\u3000x",
    "\ufeffls",
    "ls\u2028canary",
    "ls\u202ecanary",
    "ls\x00canary",
    "ls\x1b[1mcanary",
    "ls\x08\x08canary",
    "ls\x0bcanary",
    "ls\x0ccanary",
    "ls\x85canary",
    "-ls",
    "--",
    "ls,canary",
    "'ls canary'",
    '"ls "',
    "ls\\ canary",
    "l\ns",
    "$SHELL -c canary",
    "${0} -c canary",
    "*",
    "?s",
    "[l]s",
    "{ls,canary}",
]


ASSIGNMENTS = [
    "PATH=evil ls",
    "PATH=./evil:$PATH ls",
    "A=1 ls",
    "A= ls",
    "A+=1 ls",
    "A[0]=1 ls",
    "A=1 B=2 canary",
    "LD_PRELOAD=./evil.so ls",
    "PATH=evil",
    "'PATH'=evil ls",
]


ATTEMPTS = [
    *CHAINS,
    *SUBSTITUTIONS,
    *REDIRECTIONS,
    *OTHER_PROGRAMS,
    *PATHS,
    *LOOK_ALIKES,
    *ASSIGNMENTS,
]


class Mine(Struct, frozen=True):
    """A project full of canaries: whatever program is started, allowed or not,
    sings.
    """

    root: Path
    sang: Path

    def is_untouched(self) -> bool:
        names = {
            path.relative_to(self.root.parent).as_posix()
            for path in self.root.parent.rglob("*")
        }
        return (
            names == self.names
            and (self.root / "precious.txt").read_text() == "precious\n"
        )

    @property
    def names(self) -> set[str]:
        return set((self.root.parent.parent / "names").read_text().splitlines())


@pytest.fixture(scope="session")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Mine:
    top = tmp_path_factory.mktemp("mine")
    root, sang = top / "work/app", top / "work/sang"
    song = f"echo sang >> {sang}"
    others = {
        word for text in OTHER_PROGRAMS for word in text.split()[:1] if word.isalpha()
    }
    for name in {
        *ALWAYS_ALLOWED,
        *others,
        "canary",
        "ls canary",
        "ls.exe",
        "LS",
        "bin\\ls",
        "C:ls",
    }:
        script(top / "work/path" / name, song)
    for file in ("ls", "canary", "evil/ls", "evil/canary", "bin/ls"):
        script(root / file, song)
    (root / "precious.txt").write_text("precious\n")
    (root / "inside").mkdir()
    (top / "work/app-evil").mkdir()
    (root / "link").symlink_to(top / "work/app-evil")
    names = (
        path.relative_to(root.parent).as_posix() for path in root.parent.rglob("*")
    )
    (top / "names").write_text("\n".join(names))
    return Mine(root, sang)


@pytest.fixture
def trapped(mine: Mine, monkeypatch: pytest.MonkeyPatch) -> Mine:
    """Every program on the PATH is a canary."""
    monkeypatch.setenv("PATH", str(mine.root.parent / "path"))
    monkeypatch.setenv("SHELL", str(mine.root / "canary"))
    return mine


@posix
async def test_the_canaries_do_sing(trapped: Mine) -> None:
    for command in ("ls", "python", "make"):
        assert (await CommandRunner(trapped.root).run(command)).return_code == 0
    unsafe = CommandRunner(trapped.root, Commands(mode="unsafe"))
    for command in ("./ls", "canary", "echo $(canary)", "ls;canary"):
        await unsafe.run(command)
    assert trapped.sang.read_text() == "sang\n" * 8
    assert not trapped.is_untouched()
    trapped.sang.unlink()
    assert trapped.is_untouched()


@posix
@each_row("command", ATTEMPTS)
async def test_nothing_of_a_refused_command_runs(trapped: Mine, command: str) -> None:
    result = await CommandRunner(trapped.root).run(command)
    assert trapped.is_untouched()
    assert (type(result), result.refused, result.started, result.return_code) == (
        Refused,
        True,
        False,
        126,
    )
    assert result.stderr


def test_there_are_many_attempts_and_each_is_another_one() -> None:
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) > 150


OUTSIDE = [
    *(
        "..",
        "../..",
        "inside/../..",
        "../app-evil",
        "../app-evil/new",
        "link",
        "link/new",
        "link/..",
        "inside/../link",
    ),
    *(
        "/",
        "/tmp",
        "//server/share",
        "\\\\server\\share",
        "C:\\",
        "C:/x",
        "C:foo",
        "c:",
        "\\x",
        "~",
        "~/x",
        "~root",
    ),
    *(
        "..\\app-evil",
        "inside\\..\\..",
        "precious.txt",
        "precious.txt/x",
        "ls",
        "a\0b",
        "a\nb",
        " ",
        " inside",
    ),
    *("x" * 2000, "x" * 300, "inside/" + "x" * 300, "\ud800"),
]


@posix
@each_row("cwd", OUTSIDE)
async def test_a_folder_outside_is_refused_before_anything_runs_or_is_made(
    trapped: Mine, cwd: str
) -> None:
    result = await CommandRunner(trapped.root).run("ls", cwd=cwd)
    assert trapped.is_untouched()
    assert (result.refused, result.started) == (True, False)


@posix
@each_row(
    "env",
    [{"": "x"}, {"A=B": "x"}, {"=": "x"}, {"A\0": "x"}, {"A": "x\0y"}],
)
async def test_a_variable_that_cannot_be_is_refused(
    trapped: Mine, env: dict[str, str]
) -> None:
    result = await CommandRunner(trapped.root).run("ls", env=env)
    assert trapped.is_untouched()
    assert result.refused
    assert not result.started


@posix
async def test_a_refusal_makes_no_folder(trapped: Mine) -> None:
    await CommandRunner(trapped.root).run("canary", cwd="new")
    await CommandRunner(trapped.root, Commands(mode="ask")).run("canary", cwd="new")
    assert trapped.is_untouched()


# --- Whatever the text ----------------------------------------------------------------


WORDS = (
    "$(",
    "&&",
    "ls",
    "echo",
    "python",
    "pytest",
    "sh",
    "env",
    "canary",
    "A=1",
    "ä",
)


PIECES = st.sampled_from([*"|;&<>`$()'\"\\\n\r\t \0=#*~{}!-/.", *WORDS])


TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=40)


class Watched(CommandRunner, frozen=True):
    """Keeps what would be started, and starts nothing."""

    started: list[JudgedCommand] = field(default_factory=list)

    async def start(
        self,
        command: JudgedCommand,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        limit: float | None = None,
        on_output: OnOutput = ignore_output,
    ) -> CommandResult:
        self.started.append(command)
        return CommandResult("", "", 0)


@given(TEXTS, st.none() | TEXTS, st.none() | st.dictionaries(TEXTS, TEXTS, max_size=2))
@example("ls", "x" * 256, None)
@example("ls\ncanary", None, None)
@example("ls \ud800", "\ud800", {"\ud800": "x"})
async def test_in_safe_mode_no_text_starts_a_shell_or_raises(
    tmp_path_factory: pytest.TempPathFactory,
    text: str,
    cwd: str | None,
    env: dict[str, str] | None,
) -> None:
    root = tmp_path_factory.getbasetemp() / "any" / "project"
    root.mkdir(parents=True, exist_ok=True)
    runner = Watched(root)
    result = await runner.run(text, cwd=cwd, env=env)
    assert result.refused is not bool(runner.started)
    for command in runner.started:
        name = split(command.text).argv[0]
        assert name in ALWAYS_ALLOWED
        assert (command.in_shell, command.objection) == (False, "")
        assert command.argv[0] in (
            name,
            sys.executable,
            str(find_program(name)),
            str(find_program("python3")),
        )
        assert not runs_others(Path(command.argv[0]).name)


@given(TEXTS)
async def test_what_needs_a_person_never_runs_without_one(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    runner = Watched(tmp_path_factory.getbasetemp(), Commands(mode="ask"))
    await runner.run(text)
    assert not any(command.objection or command.in_shell for command in runner.started)
