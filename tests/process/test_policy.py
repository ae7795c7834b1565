"""Which commands run, what becomes of the others, and that nothing of them was started."""

import asyncio
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdd_agent.config import Commands, runs_others
from cdd_agent.process.policy import (
    ALWAYS_ALLOWED,
    Command,
    CommandRefused,
    CommandRunner,
    IShellExecutor,
    Permission,
    Refused,
    as_tool_answer,
    split,
)
from cdd_agent.process.programs import as_started, find_program
from cdd_agent.process.run import CommandResult, Hear, OutputChunk, unheard
from tests.promised import NOT_ALLOWED, NOT_FOUND, TIMED_OUT

USERS = "the user's own"

posix = pytest.mark.skipif(os.name != "posix", reason="a POSIX shell and its programs")


async def outcome(runner: CommandRunner, command: str, **how: Any) -> CommandResult:
    return await runner.run(command, **how)


def script(file: Path, body: str) -> Path:
    """A program that exists."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


@dataclass
class Person:
    """Answers what it is asked, and keeps the questions."""

    answers: list[Permission]
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, command: str, reason: str) -> Permission:
        self.asked.append((command, reason))
        return self.answers.pop(0)


YES, NO, ALWAYS = Permission.YES, Permission.NO, Permission.ALWAYS


# --- Reading a text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("a | b", "|"),
        ("a|b", "|"),
        ("a || b", "||"),
        ("a ; b", ";"),
        ("a;", ";"),
        ("a & b", "&"),
        ("a &", "&"),
        ("a && b", "&&"),
        ("a < b", "<"),
        ("a << b", "<<"),
        ("a <<< b", "<<<"),
        ("a > b", ">"),
        ("a >> b", ">>"),
        ("a 2>&1", ">&"),
        ("a\nb", "\n"),
        ("a `b`", "`"),
        ("a $(b)", "$("),
        ("a $((1 + 1))", "$("),
        ("a <(b)", "<"),
        ('a "`b`"', "`"),
        ('a "$(b)"', "$("),
        ('a "x$(b)y" z', "$("),
        ('a "\\\\$(b)"', "$("),
        ('a "\\\\`b`"', "`"),
        ("a \\\\;b", ";"),
        ("a \\\\\nb", "\n"),
        ("a '\\'; b", ";"),
        ("a ''; b", ";"),
        ("a '\"' ; b '\"'", ";"),
        ("; b", ";"),
        ("|", "|"),
    ],
)
def test_what_only_a_shell_can_do_is_found(text: str, operator: str) -> None:
    assert split(text).operator == operator


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("grep -E 'a|b' '>' f", ["grep", "-E", "a|b", ">", "f"]),
        ("echo '`a` $(b); c & d'", ["echo", "`a` $(b); c & d"]),
        ('echo "a|b;c&d<e>f"', ["echo", "a|b;c&d<e>f"]),
        ('echo "\\`a\\` \\$(b)"', ["echo", "`a` $(b)"]),
        ("echo a\\;b \\| \\& \\< \\> \\` \\$\\(", ["echo", "a;b", "|", "&", "<", ">", "`", "$("]),
        ("echo $HOME $ $x", ["echo", "$HOME", "$", "$x"]),
        ("echo a\\\n  b", ["echo", "a", "b"]),
        ("echo a\\\nb", ["echo", "ab"]),
        ('echo "a\\\nb"', ["echo", "ab"]),
        ("echo 'a\\\nb'", ["echo", "a\\\nb"]),
        ('python -c "a\nb"', ["python", "-c", "a\nb"]),
        ('l""s', ["ls"]),
        ("l's' -l", ["ls", "-l"]),
        ("l\\s", ["ls"]),
        ("echo '' \"\"", ["echo", "", ""]),
        ("echo 'it'\\''s'", ["echo", "it's"]),
        ('echo "a \\" b" "\\\\" "\\n"', ["echo", 'a " b', "\\", "\\n"]),
        ("echo\ta  \t b", ["echo", "a", "b"]),
        ("echo a#b # c", ["echo", "a#b", "#", "c"]),
        ("echo (a) {b,c} *.py ~ !", ["echo", "(a)", "{b,c}", "*.py", "~", "!"]),
        ("echo ä\u00a0ö", ["echo", "ä\u00a0ö"]),
    ],
)
def test_words_are_split_as_a_shell_would_and_nothing_is_done_about_them(text: str, argv: list[str]) -> None:
    words = split(text)
    assert (list(words.argv), words.operator) == (argv, "")


@posix
@pytest.mark.parametrize(
    "text",
    [
        "a 'b c' \"d e\" f\\ g",
        "a'b'\"c\"d",
        'a "b\\"c" "d\\\\" "\\e" "\\`" "\\$(x)"',
        "a\\\nb c",
        'a "b\\\nc"',
        "a 'b\\\nc' 'd\ne'",
        "'|' \\; '&&' \"<>\"",
        "a '' \"\" b",
    ],
)
def test_the_words_are_those_of_a_real_shell(text: str) -> None:
    printed = subprocess.run(["/bin/sh", "-c", f"printf '%s\\0' {text}"], capture_output=True, text=True, check=True)
    assert "".join(f"{word}\0" for word in split(text).argv) == printed.stdout


@given(st.text(alphabet=st.sampled_from("ab '\"\t-=.$*~#!()"), max_size=20))
def test_without_backslashes_words_are_those_of_shlex(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        expected = []
    try:
        words = split(text)
    except CommandRefused:
        assert not expected or not expected[0]
        return
    assert words.operator == "$(" or list(words.argv) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  \n\t ", "empty"),
        ("''", "empty"),
        ('"" ls', "empty"),
        ("echo 'open", "has no end"),
        ('echo "open', "has no end"),
        ('echo "open\\"', "has no end"),
        ("echo open\\", "has no end"),
        ("echo a\0b", "U+0000"),
        ("echo 'a\0b'", "U+0000"),
        ("ls\rrm x", "U+000D"),
        ("ls \x1b[2J", "U+001B"),
        ("ls \x7f", "U+007F"),
        ("ls \x85 x", "U+0085"),
        ("ls \u2028 x", "U+2028"),
        ("ls \u202etxt.sl", "U+202E"),
        ("ls \u2066x", "U+2066"),
        ("ls \udc80", "U+DC80"),
        ("echo " + "x" * 100_000, "too long"),
    ],
)
async def test_what_is_no_readable_command_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    for mode in ("safe", "ask"):
        result = await outcome(CommandRunner(tmp_path, Commands(mode=mode)), text)  # type: ignore[arg-type]
        assert (result.refused, result.started, result.return_code) == (True, False, 126)
        assert reason in result.stderr


# --- What is refused, and that nothing ran ----------------------------------------------------------------------------

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
ATTEMPTS = [*CHAINS, *SUBSTITUTIONS, *REDIRECTIONS, *OTHER_PROGRAMS, *PATHS, *LOOK_ALIKES, *ASSIGNMENTS]


@dataclass(frozen=True)
class Mine:
    """A project full of canaries: whatever program is started, allowed or not, sings."""

    root: Path
    sang: Path

    def is_untouched(self) -> bool:
        names = {path.relative_to(self.root.parent).as_posix() for path in self.root.parent.rglob("*")}
        return names == self.names and (self.root / "precious.txt").read_text() == "precious\n"

    @property
    def names(self) -> set[str]:
        return set((self.root.parent.parent / "names").read_text().splitlines())


@pytest.fixture(scope="session")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Mine:
    top = tmp_path_factory.mktemp("mine")
    root, sang = top / "work/app", top / "work/sang"
    song = f"echo sang >> {sang}"
    others = {word for text in OTHER_PROGRAMS for word in text.split()[:1] if word.isalpha()}
    for name in {*ALWAYS_ALLOWED, *others, "canary", "ls canary", "ls.exe", "LS", "bin\\ls", "C:ls"}:
        script(top / "work/path" / name, song)
    for file in ("ls", "canary", "evil/ls", "evil/canary", "bin/ls"):
        script(root / file, song)
    (root / "precious.txt").write_text("precious\n")
    (root / "inside").mkdir()
    (top / "work/app-evil").mkdir()
    (root / "link").symlink_to(top / "work/app-evil")
    names = (path.relative_to(root.parent).as_posix() for path in root.parent.rglob("*"))
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
        assert (await outcome(CommandRunner(trapped.root), command)).return_code == 0
    unsafe = CommandRunner(trapped.root, Commands(mode="unsafe"))
    for command in ("./ls", "canary", "echo $(canary)", "ls;canary"):
        await outcome(unsafe, command)
    assert trapped.sang.read_text() == "sang\n" * 8
    assert not trapped.is_untouched()
    trapped.sang.unlink()
    assert trapped.is_untouched()


@posix
@pytest.mark.parametrize("command", ATTEMPTS)
async def test_nothing_of_a_refused_command_runs(trapped: Mine, command: str) -> None:
    result = await outcome(CommandRunner(trapped.root), command)
    assert trapped.is_untouched()
    assert (type(result), result.refused, result.started, result.return_code) == (Refused, True, False, 126)
    assert result.stderr


def test_there_are_many_attempts_and_each_is_another_one() -> None:
    assert len(set(ATTEMPTS)) == len(ATTEMPTS) > 150


OUTSIDE = [
    *("..", "../..", "inside/../..", "../app-evil", "../app-evil/new", "link", "link/new", "link/..", "inside/../link"),
    *("/", "/tmp", "//server/share", "\\\\server\\share", "C:\\", "C:/x", "C:foo", "c:", "\\x", "~", "~/x", "~root"),
    *("..\\app-evil", "inside\\..\\..", "precious.txt", "precious.txt/x", "ls", "a\0b", "a\nb", " ", " inside"),
    *("x" * 2000, "x" * 300, "inside/" + "x" * 300, "\ud800"),
]


@posix
@pytest.mark.parametrize("cwd", OUTSIDE)
async def test_a_folder_outside_is_refused_before_anything_runs_or_is_made(trapped: Mine, cwd: str) -> None:
    result = await outcome(CommandRunner(trapped.root), "ls", cwd=cwd)
    assert trapped.is_untouched()
    assert (result.refused, result.started) == (True, False)


@posix
@pytest.mark.parametrize(
    "env",
    [{"": "x"}, {"A=B": "x"}, {"=": "x"}, {"A\0": "x"}, {"A": "x\0y"}],
)
async def test_a_variable_that_cannot_be_is_refused(trapped: Mine, env: dict[str, str]) -> None:
    result = await outcome(CommandRunner(trapped.root), "ls", env=env)
    assert trapped.is_untouched()
    assert result.refused
    assert not result.started


@posix
async def test_a_refusal_makes_no_folder(trapped: Mine) -> None:
    await outcome(CommandRunner(trapped.root), "canary", cwd="new")
    await outcome(CommandRunner(trapped.root, Commands(mode="ask")), "canary", cwd="new")
    assert trapped.is_untouched()


# --- Which program a name means ---------------------------------------------------------------------------------------


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with programs of other names' names in it; the user's own `ls` says who it is."""
    root = tmp_path / "app"
    for folder in (root, root / "evil", root / "evil/evil", tmp_path / "elsewhere"):
        for name in ("ls", "black", "flake8"):
            script(folder / name, "echo evil")
    script(tmp_path / "path/ls", 'echo "the user\'s own, PATH=$PATH"')
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return root


@posix
@pytest.mark.parametrize(
    "path", ["evil", "./evil", ".", "", ":", "{root}/evil", "{root}/evil:/bin", "{outside}", "..:."]
)
@pytest.mark.parametrize("cwd", [None, "evil"])
async def test_a_commands_own_path_does_not_choose_its_program(named: Path, path: str, cwd: str | None) -> None:
    path = path.format(root=named, outside=named.parent / "elsewhere")
    result = await outcome(CommandRunner(named), "ls", cwd=cwd, env={"PATH": path})
    assert result.stdout == f"{USERS}, PATH={path}\n"
    missing = await outcome(CommandRunner(named), "flake8", cwd=cwd, env={"PATH": path})
    assert (missing.return_code, missing.stderr) == (127, NOT_FOUND.format("flake8"))
    assert not missing.refused


@posix
@pytest.mark.parametrize("path", [".:{user}", ":{user}", "evil:{user}", "{user}:", "./:../app:{user}"])
async def test_relative_entries_of_the_users_path_are_not_looked_in(
    named: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(named)
    monkeypatch.setenv("PATH", path.format(user=named.parent / "path"))
    assert (await outcome(CommandRunner(named), "ls")).stdout.startswith(USERS)
    assert (await outcome(CommandRunner(named), "black", cwd="evil")).return_code == 127


@posix
async def test_the_projects_own_environment_comes_first(named: Path) -> None:
    own = script(named / "venv/bin/ruff", "echo own")
    assert (await outcome(CommandRunner(named), "ruff")).stdout == "own\n"
    better = script(named / ".venv/bin/ruff", "echo better")
    assert (await outcome(CommandRunner(named), "ruff")).stdout == "better\n"
    assert find_program("ruff", [own.parent, better.parent]) == own
    assert as_started(["ruff", "-x"], named) == (str(better), "-x")


@posix
def test_a_program_is_a_file_that_may_be_started(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("x")
    script(tmp_path / "program", "")
    found = [find_program(name, [tmp_path]) for name in ("program", "folder", "text", "", ".", "x" * 5000, "a/program")]
    assert found == [tmp_path / "program", *[None] * 6]


# --- What runs --------------------------------------------------------------------------------------------------------

BENIGN = [
    "ls",
    "ls -la",
    "ls -la src",
    " ls ",
    "ls\n",
    "ls \\\n  -l",
    'l""s',
    "'ls' -l",
    "ls 'a b'",
    "ls -- -x",
    "pwd",
    "cat a.txt",
    "cat a.txt src/main.py",
    "cat 'a b'",
    "echo hello",
    'echo "a; b && c | d > e"',
    "echo 'a; $(b) `c`'",
    "echo a\\;b",
    "echo $HOME",
    "echo *.py",
    "echo ~",
    "echo A=1",
    "echo 100% #1",
    "echo (a)",
    "echo '<html>'",
    'echo "it\'s"',
    "echo äöü 日本 👍",
    "echo -n ''",
    "wc -l a.txt",
    "head -n 1 a.txt",
    "head -c 5 a.txt",
    "tail -n 1 a.txt",
    'python -c "print(1)"',
    "python -c 'import sys; print(sys.argv)' a b",
    "python -c 'x = 1\nif x > 0 and x < 2:\n    print(x)'",
    'python -c "print({1 | 2})"',
    "python3 -c 'print(1)'",
    "python -m json.tool a.json",
    "python src/main.py --flag=a\\;b",
    "python -V",
    "pip --version",
    "pytest --version",
    "pytest -k 'a or b' --version",
    'pytest "tests/test_x.py::test_y[a|b]" --version',
    "ruff --version",
    "ruff check --select E501 src",
    "black --version",
    "mypy --version",
    "flake8 --version",
    "make -n",
    "make -n all",
    "make --version",
]


@pytest.fixture(scope="session")
def plain_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("plain")
    (root / "src").mkdir()
    for name, text in {
        "a.txt": "one\ntwo\n",
        "a b": "",
        "a.json": "{}",
        "src/main.py": "print('main')\n",
        "Makefile": "all:\n\ttrue\n",
    }.items():
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize("command", BENIGN)
async def test_ordinary_commands_run(plain_project: Path, command: str) -> None:
    runner = CommandRunner(plain_project)
    judged = runner.judge(command)
    assert (judged.objection, judged.in_shell) == ("", False)
    result = await outcome(runner, command)
    assert not result.refused
    assert result.started or result.return_code == 127
    if Path(judged.argv[0]).is_absolute() and "'a b'" not in command and "-x" not in command:
        assert result.return_code == 0, result.stderr


def test_there_are_many_ordinary_commands() -> None:
    assert len(set(BENIGN)) == len(BENIGN) >= 45


@posix
async def test_what_an_ordinary_command_says_and_where_it_is(plain_project: Path) -> None:
    runner = CommandRunner(plain_project)
    assert (await outcome(runner, "echo $HOME '*'")).stdout == "$HOME *\n"
    assert (await outcome(runner, "pwd")).stdout == f"{plain_project}\n"
    assert (await outcome(runner, "pwd", cwd="")).stdout == f"{plain_project}\n"
    assert (await outcome(runner, "pwd", cwd="src/../src")).stdout == f"{plain_project}/src\n"


@posix
async def test_a_missing_folder_inside_is_made(tmp_path: Path) -> None:
    result = await outcome(CommandRunner(tmp_path), "pwd", cwd="new/deep")
    assert result.stdout == f"{tmp_path}/new/deep\n"


async def test_variables_hold_for_one_command_over_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "users")
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("SEAL", "s3cret")
    monkeypatch.setenv("CACHE_KEY", "shown")
    runner = CommandRunner(tmp_path, Commands(hide_env=("SEAL",), pass_env=("CACHE_KEY",)))
    names = "OURS OPENAI_API_KEY SEAL CACHE_KEY MODE"
    code = f"python -c 'import os; print(*map(os.environ.get, \"{names}\".split()))'"
    with_variables = await outcome(runner, code, env={"MODE": "x", "OURS": "actions"})
    assert with_variables.stdout.split() == ["actions", "None", "None", "shown", "x"]
    assert (await outcome(runner, code)).stdout.split() == ["users", "None", "None", "shown", "None"]


async def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    sleep = "python -c 'import time; print(1, flush=True); time.sleep(60)'"
    for runner, limit in ((CommandRunner(tmp_path, Commands(timeout=1)), None), (CommandRunner(tmp_path), 1)):
        result = await outcome(runner, sleep, limit=limit)
        assert (result.timed_out, result.stdout, result.limit) == (True, "1\n", 1)


async def test_leaving_early_ends_the_command(tmp_path: Path) -> None:
    code = "python -c 'import os, time; print(os.getpid(), flush=True); time.sleep(600)'"
    said: list[str] = []

    def hear(chunk: OutputChunk) -> None:
        said.append(chunk.text)
        running.cancel()

    running = asyncio.ensure_future(CommandRunner(tmp_path).run(code, hear=hear))
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(int(said[0]), 0)


@posix
async def test_programs_may_be_added_to_the_list(tmp_path: Path) -> None:
    runner = CommandRunner(tmp_path, Commands(allow=("touch",)))
    assert (await outcome(runner, "touch a")).return_code == 0
    assert (tmp_path / "a").exists()
    for refused in ("touch a; touch b", "/usr/bin/touch b"):
        assert (await outcome(runner, refused)).refused
    assert not (tmp_path / "b").exists()
    assert runner.allowed == tuple(sorted((*ALWAYS_ALLOWED, "touch")))


# --- Asking -----------------------------------------------------------------------------------------------------------


def asking(root: Path, *answers: Permission) -> tuple[CommandRunner, Person]:
    person = Person(list(answers))
    return CommandRunner(root, Commands(mode="ask"), person), person


@posix
async def test_in_ask_mode_a_person_decides(tmp_path: Path) -> None:
    runner, person = asking(tmp_path, YES, NO, YES, NO)
    assert (await outcome(runner, "touch a")).return_code == 0
    refused = await outcome(runner, "touch b")
    assert (await outcome(runner, "echo x > c && cat c")).stdout == "x\n"
    assert (await outcome(runner, "echo x > d")).refused
    assert (await outcome(runner, "ls")).stdout == "a\nc\n"
    assert not (tmp_path / "b").exists()
    assert refused.refused
    assert [(command, reason.split()[0]) for command, reason in person.asked] == [
        ("touch a", "`touch`"),
        ("touch b", "`touch`"),
        ("echo x > c && cat c", "`>`"),
        ("echo x > d", "`>`"),
    ]


@posix
async def test_always_is_for_the_very_command_in_its_folder(tmp_path: Path) -> None:
    runner, person = asking(tmp_path, ALWAYS, ALWAYS, NO, NO)
    for command in ("touch a", "touch a", "echo x > c", "echo x > c"):
        assert (await outcome(runner, command)).return_code == 0
    assert (await outcome(runner, "touch b")).refused
    assert (await outcome(runner, "touch a", cwd="sub")).refused
    assert [command for command, _ in person.asked] == ["touch a", "echo x > c", "touch b", "touch a"]


@posix
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("touch a", "touch a; touch b"),
        ("env touch a", "env touch b"),
        ("sh -c 'touch a'", "sh -c 'touch b'"),
        ("/bin/sh -c 'touch a'", "/bin/sh -c 'touch b'"),
        ("./tool a", "sub/tool a"),
        ("./tool a", "tool a"),
        ("A=1 touch a", "A=2 touch a"),
    ],
)
async def test_always_does_not_reach_further(tmp_path: Path, first: str, second: str) -> None:
    for folder in (tmp_path, tmp_path / "sub"):
        script(folder / "tool", 'touch "$1"')
    runner, person = asking(tmp_path, ALWAYS, NO)
    assert (await outcome(runner, first)).return_code == 0
    assert (tmp_path / "a").exists()
    assert (await outcome(runner, second)).refused
    assert (await outcome(runner, first)).return_code == 0
    assert len(person.asked) == 2


@posix
async def test_a_path_to_a_program_means_the_one_in_the_commands_folder(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "sub"):
        script(folder / "tool", "pwd")
    runner, person = asking(tmp_path, ALWAYS, ALWAYS, ALWAYS)
    assert (await outcome(runner, "./tool")).stdout == f"{tmp_path}\n"
    assert (await outcome(runner, "./tool", cwd="sub")).stdout == f"{tmp_path}/sub\n"
    assert (await outcome(runner, "./tool x", cwd="sub")).return_code == 0
    assert len(person.asked) == 3


async def test_where_nobody_is_there_the_answer_is_no(tmp_path: Path) -> None:
    assert (await outcome(CommandRunner(tmp_path, Commands(mode="ask")), "touch a")).refused


async def test_nobody_is_asked_about_what_cannot_run_anyway(tmp_path: Path) -> None:
    runner, person = asking(tmp_path)
    for command, how in (
        ("touch a", {"cwd": ".."}),
        ("touch 'a", {}),
        ("", {}),
        ("touch \0", {}),
        ("touch a", {"env": {"A=B": ""}}),
    ):
        assert (await outcome(runner, command, **how)).refused  # type: ignore[arg-type]
    assert not person.asked


@posix
async def test_a_folder_that_became_a_way_out_while_the_person_thought_is_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "app", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()

    async def slow(command: str, reason: str) -> Permission:
        (root / "sub").rmdir()
        (root / "sub").symlink_to(outside)
        return YES

    result = await outcome(CommandRunner(root, Commands(mode="ask"), slow), "touch a", cwd="sub")
    assert result.refused
    assert not list(outside.iterdir())


# --- Unsafe -----------------------------------------------------------------------------------------------------------


@posix
async def test_in_unsafe_mode_a_shell_runs_anything_and_it_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runner = CommandRunner(tmp_path, Commands(mode="unsafe"))
    commands = {
        "echo a | tr a b": "b\n",
        "touch x && ls": "x\n",
        "A=1; echo $A": "1\n",
        "cat <<EOF\nh $((1 + 1))\nEOF\n": "h 2\n",
        "cd / && pwd": "/\n",
        "echo \x1b": "\x1b\n",
    }
    for command, said in commands.items():
        assert (await outcome(runner, command)).stdout == said
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == len(commands)
    assert all("Unsafe" in record.getMessage() for record in warnings)
    assert (await outcome(runner, "echo 'open")).return_code == 2
    for command in ("", "a\0b", "x" * 100_001):
        assert (await outcome(runner, command)).refused
    assert (await outcome(runner, "ls", cwd="..")).refused
    assert (await outcome(runner, "ls", env={"=": ""})).refused


@posix
async def test_also_in_a_shell_python_means_the_projects_own(tmp_path: Path) -> None:
    script(tmp_path / ".venv/bin/python", "echo own")
    script(tmp_path / ".venv/bin/tool", "echo tool")
    runner = CommandRunner(tmp_path, Commands(mode="unsafe"))
    own = str(tmp_path / ".venv/bin/python")
    assert runner.judge("python -c 1").argv == (own, "-c", "1")
    assert runner.judge("python $X").in_shell
    assert runner.judge("python 'a' > b").in_shell
    assert (await outcome(runner, "python; tool")).stdout == "own\ntool\n"
    assert (await outcome(runner, "tool", env={"PATH": "/bin"})).return_code == 127


@posix
async def test_starts_and_ends_are_logged_without_variables(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    await outcome(CommandRunner(tmp_path), "ls nothing-here", env={"SEAL": "s3cret"})
    await outcome(CommandRunner(tmp_path), "rm x", env={"SEAL": "s3cret"})
    told = [record.getMessage() for record in caplog.records if record.name.startswith("cdd_agent")]
    assert [text.split()[0] for text in told] == ["Running", "Ended", "Refused"]
    assert "s3cret" not in str(told)


# --- Whatever the text ------------------------------------------------------------------------------------------------

WORDS = ("$(", "&&", "ls", "echo", "python", "pytest", "sh", "env", "canary", "A=1", "ä")
PIECES = st.sampled_from([*"|;&<>`$()'\"\\\n\r\t \0=#*~{}!-/.", *WORDS])
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=40)


@dataclass(frozen=True)
class Watched(CommandRunner):
    """Keeps what would be started, and starts nothing."""

    started: list[Command] = field(default_factory=list)

    async def start(
        self,
        command: Command,
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        limit: float | None = None,
        hear: Hear = unheard,
    ) -> CommandResult:
        self.started.append(command)
        return CommandResult("", "", 0)


@given(TEXTS, st.none() | TEXTS, st.none() | st.dictionaries(TEXTS, TEXTS, max_size=2))
@example("ls", "x" * 256, None)
@example("ls\ncanary", None, None)
@example("ls \ud800", "\ud800", {"\ud800": "x"})
async def test_in_safe_mode_no_text_starts_a_shell_or_raises(
    tmp_path_factory: pytest.TempPathFactory, text: str, cwd: str | None, env: dict[str, str] | None
) -> None:
    root = tmp_path_factory.getbasetemp() / "any" / "project"
    root.mkdir(parents=True, exist_ok=True)
    runner = Watched(root)
    result = await outcome(runner, text, cwd=cwd, env=env)
    assert result.refused is not bool(runner.started)
    for command in runner.started:
        name = split(command.text).argv[0]
        assert name in ALWAYS_ALLOWED
        assert (command.in_shell, command.objection) == (False, "")
        assert command.argv[0] in (name, sys.executable, str(find_program(name)), str(find_program("python3")))
        assert not runs_others(Path(command.argv[0]).name)


@given(TEXTS)
async def test_what_needs_a_person_never_runs_without_one(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    runner = Watched(tmp_path_factory.getbasetemp(), Commands(mode="ask"))
    await outcome(runner, text)
    assert not any(command.objection or command.in_shell for command in runner.started)


# --- As a tool answers ------------------------------------------------------------------------------------------------


async def test_the_tools_answers_have_the_promised_forms(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("fail:\n\t@exit 3\n")
    runner = CommandRunner(tmp_path, Commands(timeout=1))

    async def answer(command: str, cwd: str = ".") -> dict[str, object]:
        return as_tool_answer(command, await outcome(runner, command, cwd=cwd), cwd)

    said = await answer("python -c 'import sys; print(1); print(2, file=sys.stderr); sys.exit(3)'", "new")
    assert list(said) == ["success", "command", "return_code", "stdout", "stderr", "cwd"]
    assert said["success"] is True
    assert list(said.values())[2:] == [3, "1\n", "2\n", "new"]
    refused = await answer("rm -rf x")
    assert refused == {"error": NOT_ALLOWED.format("rm"), "allowed_commands": sorted(ALWAYS_ALLOWED)}
    assert (await answer("./ls"))["error"] == NOT_ALLOWED.format("./ls")
    for text, named in (("ls; rm x", "`;`"), ("A=1 ls", "`A=`"), (" ", ""), ("echo 'a", ""), ("echo \0", "U+0000")):
        said = await answer(text)
        assert said.keys() == {"error", "allowed_commands"}
        assert named in str(said["error"])
        assert said["allowed_commands"] == sorted(ALWAYS_ALLOWED)
    assert list(await answer("ls", "..")) == ["error"]
    assert "allowed_commands" not in await answer("ls", "..")
    slow = await answer("python -c 'import time; print(1, flush=True); time.sleep(9)'")
    assert slow == {"error": TIMED_OUT.format(1), "stdout": "1\n"}


NOT_THERE = "Error: Command not found: black"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (CommandResult("", "", -9, timed_out=True, limit=60), {"error": "Command timed out after 60 seconds"}),
        (
            CommandResult("", "x", -9, timed_out=True, limit=0.5),
            {"error": "Command timed out after 0.5 seconds", "stderr": "x"},
        ),
        (CommandResult("", "no", 126, started=False), {"error": "Failed to execute command: no"}),
        (
            CommandResult("", NOT_THERE, 127, started=False),
            {
                "success": True,
                "command": "black .",
                "return_code": 127,
                "stdout": "",
                "stderr": NOT_THERE,
                "cwd": "src",
            },
        ),
    ],
)
def test_other_results_have_them_too(result: CommandResult, answer: dict[str, object]) -> None:
    assert as_tool_answer("black .", result, "src") == answer


async def test_the_port_gives_the_result_alone(tmp_path: Path) -> None:
    executor: IShellExecutor = CommandRunner(tmp_path)
    result = await executor.execute("python -c 'import os; print(os.getcwd(), os.environ[\"A\"])'", "new", {"A": "1"})
    assert (result.return_code, result.stdout) == (0, f"{tmp_path.resolve() / 'new'} 1\n")
    assert (await executor.execute("rm x")).refused
