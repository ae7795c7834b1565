"""Decide which commands may run in a project, and run them.

A program on the list runs, without a shell. `commands.mode` decides about other
commands. This protects against accidents. It is not a sandbox: an allowed `python` can
do whatever its user can.
"""

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.paths import PathRefused, confine_folder
from cdd_agent.pattern import Pattern
from cdd_agent.process.command_segments import PIECE
from cdd_agent.process.environments import (
    OWN_PROGRAMS,
    activated,
    as_started,
    own_folders,
)
from cdd_agent.process.hidden_arguments import PRINTERS, find_hidden_uses, list_hidden
from cdd_agent.process.run import (
    CommandResult,
    OnOutput,
    ignore_output,
    run_command,
    shell_argv,
)
from cdd_agent.process.work_clock import WorkClock
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import Commands
from cdd_agent.text.sanitize import CONTROL_CHARACTERS

ALWAYS_ALLOWED = (
    *("ls", "pwd", "cat", "echo", "wc", "head", "tail"),
    *("python", "python3", "pip", "pytest", "ruff", "black", "mypy", "flake8", "make"),
)
_LONGEST = 100_000  # characters
_LISTING_SECONDS = 10.0
_log = logging.getLogger(__name__)

_IN_DOUBLE_QUOTES = Pattern(r"\\(?P<escaped>.)|(?P<operator>`|\$\()", re.DOTALL)
_EXPANDED = Pattern(r"[$*?\[{}~#!()=^]")
_ASSIGNMENT = Pattern(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
_UNSEEN = Pattern(f"[{CONTROL_CHARACTERS}]")
_OFF_LIST_HINT = (
    "Add the program to `commands.allow` in .cdd/config.yaml, set `commands.mode: ask`,"
    " or put it into a script or a Makefile target that an allowed program runs."
)
_PATH_HINT = (
    "`commands.allow` lists plain program names. Run a script through one (`python"
    " script.py`, a Makefile target), or set `commands.mode: ask`."
)
_CD_HINT = "Commands do not share state. Set `cwd` to run a command in another folder."
_OWN_SHELL_HINT = "Put it into a script or a Makefile target, and run that."
_SHELL_HINT = (
    "Put it into a script or a Makefile target that an allowed program runs, or set"
    " `commands.mode: ask` in .cdd/config.yaml."
)


class CommandRefused(BadInput):
    """A command must not run. `program` is set if it is not allowed. `allowed` lists
    the programs that may run, if the command's text is the reason.
    """

    refusal = Refusal.COMMAND_REFUSED

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        program: str = "",
        allowed: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.program = program
        self.allowed = allowed

    def as_result(self) -> "Refused":
        return Refused(
            "",
            self.message,
            126,
            started=False,
            refused=True,
            program=self.program,
            allowed=self.allowed,
            hint=self.hint,
        )


class Refused(CommandResult, frozen=True):
    """Nothing ran, and `stderr` has the reason. `program` and `allowed` as in
    `CommandRefused`.
    """

    program: str = ""
    allowed: tuple[str, ...] = ()
    hint: str = ""
    """A hint for the user. A model cannot act on it."""

    @property
    def failure(self) -> str:
        return "\n".join(filter(None, (self.stderr, self.hint)))


class Permission(StrEnum):
    YES = "yes"
    NO = "no"
    ALWAYS = "always"
    """Yes, and do not ask again this session for this command in this folder."""


Permit = Callable[[str, str], Awaitable[Permission]]
"""Asks the user about a command and gives the reason."""


async def nobody(command: str, reason: str) -> Permission:
    """Refuse: there is no user to ask."""
    del command, reason
    return Permission.NO


class Words(Struct, frozen=True):
    """A command text, split like a POSIX shell does. Nothing is expanded."""

    argv: tuple[str, ...]
    operator: str
    """The first element that needs a shell (pipe, second command, redirection,
    substitution), or empty.
    """
    expands: bool
    """True if a shell might change the words (variables, patterns, comments)."""


class JudgedCommand(Struct, frozen=True):
    """A command text with the decision about it and the argv that starts it."""

    text: str
    argv: tuple[str, ...]
    folder: Path
    objection: str = ""
    """Why the user must be asked first; empty if the command may run."""
    in_shell: bool = False
    listings: tuple[tuple[str, ...], ...] = ()
    """Commands that list the files it would show. The user is asked if one of them is
    hidden from models.
    """
    is_always_asked: bool = False
    """True if every approval mode must ask: the command could show hidden files, or it
    is a check that the user does not trust.
    """


def split(text: str) -> Words:
    """Raises `CommandRefused` for an empty text or an open quote."""
    words: list[str] = []
    word: str | None = None
    operator, expands = "", False
    for kind, content in _read_pieces(text):
        if kind == "blank":
            words += [word] if word is not None else []
            word = None
            continue
        operator = operator or _find_operator(kind, content)
        expands = expands or _may_expand(kind, content)
        if kind != "operator":
            word = (word or "") + _unquote(kind, content)
    if not operator and (not words or not words[0]):
        raise CommandRefused("The command is empty")
    return Words(tuple(words), operator, expands)


def _read_pieces(text: str) -> Iterator[tuple[str, str]]:
    for piece in PIECE.finditer(text):
        kind = piece.lastgroup or ""
        content = piece[kind]
        if kind == "open":
            raise CommandRefused(f"{_shown(content)} in the command is not closed")
        if kind != "continued":
            yield kind, content
    yield "blank", ""


def _find_operator(kind: str, content: str) -> str:
    """Return the first element of a piece that needs a shell, or an empty text."""
    if kind == "operator":
        return content
    if kind != "double":
        return ""
    inner = (piece["operator"] for piece in _IN_DOUBLE_QUOTES.finditer(content))
    return next(filter(None, inner), "")


def _may_expand(kind: str, content: str) -> bool:
    if kind == "double":
        return "$" in content
    return kind == "plain" and _EXPANDED.search(content) is not None


def _unquote(kind: str, content: str) -> str:
    if kind != "double":
        return content
    return re.sub(r'\\([$`"\\])|\\\n', lambda escaped: escaped[1] or "", content)


class IShellExecutor(Protocol):
    """The port through which tools and action plans run commands."""

    async def execute(
        self, command: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run a command to its end. Failure and refusal are results, not exceptions."""
        ...


async def execute_inside(
    root: Path,
    executor: IShellExecutor,
    command: str,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> CommandResult:
    """Run a command through the port if its folder is inside the project, else
    refuse.
    """
    try:
        confine_folder(root, cwd or "")
    except PathRefused as error:
        return CommandRefused(error.message).as_result()
    return await executor.execute(command, cwd, env)


class RunProgram(Protocol):
    """Runs a program to its end, see `run_command`."""

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limit: float,
        env: Mapping[str, str] | None = None,
        hide: Sequence[str] = (),
        passed: Sequence[str] = (),
        copies: Path | None = None,
        noted_in: Path | None = None,
        on_output: OnOutput = ignore_output,
    ) -> CommandResult: ...


class TrustedChecks(Struct, frozen=True):
    """Checks of plans that run like the user's own commands."""

    accepts: Callable[[str], bool] = lambda check: True
    add: Callable[[Iterable[str]], None] = lambda checks: None
    """Trusts the checks of a plan that the user approved."""


class CommandRunner(Struct, frozen=True):
    """Runs command texts in a project, within its settings and the user's approval."""

    root: Path
    settings: Commands = field(default_factory=Commands)
    permit: Permit = nobody
    asks: Callable[[], bool] = lambda: True
    """True if the user must approve commands that are not on the list. If false, they
    run, except in `commands.mode: safe`.
    """
    clock: WorkClock = field(default_factory=WorkClock)
    """Stopped while the user is asked."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for all commands. Those of a single command take precedence."""
    always: set[tuple[str, str]] = field(default_factory=set)
    """The commands that the user allowed for the session, with their folders relative
    to the root.
    """
    noted_in: Path | None = None
    """Folder for notes of running commands, see `run_command`."""
    trusted_checks: TrustedChecks = TrustedChecks()
    run_program: RunProgram = run_command
    on_output: OnOutput = ignore_output
    """Receives the output of `execute` and `run` as it arrives."""

    @property
    def allowed(self) -> tuple[str, ...]:
        return tuple(sorted({*ALWAYS_ALLOWED, *self.settings.allow}))

    async def execute(
        self, command: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run a command for `IShellExecutor`, with the rules of `run`."""
        return await self.run(command, cwd=cwd, env=env)

    async def run(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        starts: Callable[[], None] = lambda: None,
    ) -> CommandResult:
        """Run a command text. Returns `Refused` if nothing ran.

        `cwd` is relative to the project and created if missing. `env` is for this
        command only. `starts` is called just before the command starts. Raises only
        what `starts` and `permit` raise.
        """
        try:
            folder = self.root.resolve() / confine_folder(self.root, cwd or "")
            judged = await asyncio.to_thread(self._judged, command, folder)
            for name, value in (env or {}).items():
                if not name or "=" in name or "\0" in name + value:
                    why = "a variable needs a name without `=`, and no NUL character"
                    raise CommandRefused(f"{name!r} cannot be set: {why}")
            await self.ask(await self._with_listed(judged))
            starts()
            _make(folder)
        except (CommandRefused, PathRefused) as error:
            _log.info("Refused %.1000r: %.1000r", command, error.message)
            if isinstance(error, CommandRefused):
                return error.as_result()
            return CommandRefused(error.message).as_result()
        return await self.start(judged, env=env, on_output=self.on_output)

    def judge(
        self,
        text: str,
        cwd: Path | None = None,
        *,
        also: Callable[[str], bool] = lambda program: False,
        trusted: bool = False,
        for_model: bool = False,
    ) -> JudgedCommand:
        """Return how a text would be started. Raises `CommandRefused`. If the result
        has an `objection`, `ask` decides.

        `also` accepts further programs. A `trusted` text is the user's own: it may run
        any program without a question. `for_model`: a model reads all of the output, so
        every program counts, not only those that print files.
        """
        command = self.read(text, cwd, also=also, trusted=trusted)
        if trusted:
            return command
        return self._with_hidden_files(command, for_model=for_model)

    def read(
        self,
        text: str,
        cwd: Path | None = None,
        *,
        also: Callable[[str], bool] = lambda program: False,
        trusted: bool = False,
    ) -> JudgedCommand:
        """Return how a text would be started, for callers that do not start it: unlike
        `judge`, this does not look for hidden files. Raises `CommandRefused`.
        """
        folder = cwd or self.root
        if self.settings.mode == "unsafe":
            return self._take_any(_readable(text, unsafe=True), folder)
        text = _readable(text, unsafe=False)
        words = split(text)
        is_final = trusted or self.settings.mode == "safe"
        reason = needs_shell(words)
        if reason:
            if is_final:
                hint = _OWN_SHELL_HINT if trusted else _SHELL_HINT
                raise CommandRefused(reason, hint=hint)
            return JudgedCommand(text, shell_argv(text), folder, reason, in_shell=True)
        program = words.argv[0]
        argv = self._find_argv(words.argv, folder)
        if trusted or program in self.allowed or also(program):
            return JudgedCommand(text, argv, folder)
        reason = f"`{program}` is not on the list of allowed commands"
        if is_final:
            raise CommandRefused(reason, hint=_choose_hint(program), program=program)
        return JudgedCommand(text, argv, folder, reason)

    def _with_hidden_files(
        self, command: JudgedCommand, *, for_model: bool
    ) -> JudgedCommand:
        words = () if command.in_shell else split(command.text).argv
        uses = [
            use
            for use in find_hidden_uses(command.text, self.root, command.folder, words)
            if for_model or use.program in PRINTERS
        ]
        sure = [use.reason for use in uses if not use.listings]
        listings = tuple(listing for use in uses for listing in use.listings)
        reasons = [reason for reason in (command.objection, *sure[:1]) if reason]
        return replace(
            command,
            objection="; ".join(reasons),
            listings=listings,
            is_always_asked=bool(sure),
        )

    async def _with_listed(self, command: JudgedCommand) -> JudgedCommand:
        """Add an objection if a listing contains a hidden file. Nothing is listed if
        the user is asked anyway.
        """
        if command.objection and self.asks():
            # still unchecked, so ask even if the user changes the mode now
            return replace(
                command,
                is_always_asked=command.is_always_asked or bool(command.listings),
            )
        for listing in command.listings:
            result = await self.run_program(
                as_started(listing, self.root),
                cwd=command.folder,
                limit=_LISTING_SECONDS,
                env=self.env,
                hide=self.settings.hide_env,
                passed=self.settings.pass_env,
            )
            why = await asyncio.to_thread(
                list_hidden, result.stdout, self.root, command.folder
            )
            # 1: no match, or files differ; 2 from grep: a file is missing
            codes = (0, 1, 2) if listing[0].endswith("grep") else (0, 1)
            if result.timed_out or result.cut or result.return_code not in codes:
                why = why or "cdd cannot tell which files it would show"
            if why:
                return replace(command, objection=why, is_always_asked=True)
        return command

    def _take_any(self, text: str, folder: Path) -> JudgedCommand:
        """Return the command for a text in unsafe mode: any text runs in a shell.

        A plain call of `python` or `pytest` still uses the project's environment.
        """
        with contextlib.suppress(CommandRefused):
            words = split(text)
            is_plain = not words.operator and not words.expands
            if is_plain and words.argv[0] in OWN_PROGRAMS:
                return JudgedCommand(
                    text, as_started(words.argv, self.root, folder), folder
                )
        return JudgedCommand(text, shell_argv(text), folder, in_shell=True)

    def _find_argv(self, argv: tuple[str, ...], folder: Path) -> tuple[str, ...]:
        program, *rest = argv
        if _is_path(program):
            return (str(folder.absolute() / program), *rest)
        return as_started(argv, self.root, folder)

    def _judged(self, text: str, folder: Path) -> JudgedCommand:
        try:
            return self.judge(text, folder, for_model=True)
        except CommandRefused as refusal:
            refusal.allowed = () if self.settings.mode == "unsafe" else self.allowed
            raise

    def must_ask(self, command: JudgedCommand) -> bool:
        """True if the user must approve the command and has not answered "always"."""
        if not command.objection or self._approval_key(command) in self.always:
            return False
        return command.is_always_asked or self.asks()

    async def ask(self, command: JudgedCommand) -> None:
        """Ask the user if necessary. Raises `CommandRefused` after a refusal."""
        if not self.must_ask(command):
            return
        with self.clock.standing_still():
            permission = await self.permit(command.text, command.objection)
        if permission is Permission.NO:
            raise CommandRefused(
                f"{command.objection}, and it was not approved", allowed=self.allowed
            )
        if permission is Permission.ALWAYS:
            self.always.add(self._approval_key(command))

    def _approval_key(self, command: JudgedCommand) -> tuple[str, str]:
        return command.text, os.path.relpath(command.folder, self.root)

    async def start(
        self,
        command: JudgedCommand,
        *,
        env: Mapping[str, str] | None = None,
        limit: float | None = None,
        copies: Path | None = None,
        on_output: OnOutput = ignore_output,
    ) -> CommandResult:
        """Run a judged command without asking. `copies` and `on_output` as in
        `run_command`.
        """
        if self.settings.mode == "unsafe":
            _log.warning("Unsafe mode: %.1000r runs whatever it is", command.text)
        _log.info("Running %.1000r in %s", command.text, command.folder)
        env = {**self.env, **(env or {})}
        if command.in_shell:
            # the shell looks up programs: the project's come first, unless the command
            # sets PATH
            folders = (*map(str, own_folders(self.root)), *os.get_exec_path())
            env = {"PATH": os.pathsep.join(folders), **env}
        else:
            env = {**activated(command.argv[0]), **env}
        result = await self.run_program(
            command.argv,
            cwd=command.folder,
            limit=self.settings.timeout if limit is None else limit,
            env=env,
            hide=self.settings.hide_env,
            passed=self.settings.pass_env,
            copies=copies,
            noted_in=self.noted_in,
            on_output=on_output,
        )
        end = "time limit" if result.timed_out else f"code {result.return_code}"
        _log.info("Ended %.1000r after %.1f s: %s", command.text, result.seconds, end)
        return result


def as_tool_answer(command: str, result: CommandResult, cwd: str) -> dict[str, object]:
    """Return a result in the format of the `execute_command` tool."""
    match result:
        case Refused(program=str(program), allowed=allowed) if program:
            return {
                "error": f"Command '{program}' is not allowed",
                "allowed_commands": list(allowed),
            }
        case Refused(allowed=allowed) if allowed:
            return {"error": result.stderr, "allowed_commands": list(allowed)}
        case CommandResult(refused=True):
            return {"error": result.stderr}
        case CommandResult(timed_out=True):
            answer: dict[str, object] = {
                "error": f"Command timed out after {result.limit:g} seconds"
            }
            if result.stdout:
                answer["stdout"] = result.stdout
            if result.stderr:
                answer["stderr"] = result.stderr
            return answer
        case CommandResult(started=False) if result.return_code != 127:
            return {"error": f"Failed to execute command: {result.stderr}"}
        case _:
            return {
                "success": True,
                "command": command,
                "return_code": result.return_code,
                "stdout": result.stdout,
                "stderr": result.stderr,
                "cwd": cwd,
            }


def _readable(text: str, *, unsafe: bool) -> str:
    """Strip the text. Raises `CommandRefused` if it is empty, too long, or has
    invisible characters.
    """
    text = text.replace("\r\n", "\n").strip(" \t\r\n")
    if not text:
        raise CommandRefused("The command is empty")
    if len(text) > _LONGEST:
        raise CommandRefused(f"The command is too long: {len(text)} characters")
    odd = re.search("[\0\ud800-\udfff]", text) if unsafe else _UNSEEN.search(text)
    if odd:
        raise CommandRefused(
            f"The command holds a control character: U+{ord(odd[0]):04X}"
        )
    return text


def needs_shell(words: Words) -> str:
    """Return why the words need a shell, or an empty text."""
    if words.operator:
        return f"{_shown(words.operator)} needs a shell, and commands run without one"
    assignment = _ASSIGNMENT.match(words.argv[0])
    if assignment:
        return (
            f"`{assignment[0]}` before a program needs a shell, and commands run"
            " without one; use `env`"
        )
    return ""


def _shown(operator: str) -> str:
    return {
        "\n": "a line break",
        "`": "a backtick",
        "\\": "a backslash",
        "'": "a quote",
        '"': "a quote",
    }.get(operator, f"`{operator}`")


def _choose_hint(program: str) -> str:
    if _is_path(program):
        return _PATH_HINT
    if program == "cd":
        return _CD_HINT
    return _OFF_LIST_HINT


def _is_path(program: str) -> bool:
    return Path(program).name != program


def _make(folder: Path) -> None:
    """Create the folder and check it again: the user's answer may have taken hours."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        confined = folder.resolve() == folder
    except OSError as error:
        raise CommandRefused(
            f"{folder} cannot be opened: {error.strerror or error}"
        ) from error
    if not confined:
        raise CommandRefused(f"{folder} has been replaced by another folder")
