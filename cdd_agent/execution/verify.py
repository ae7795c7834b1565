"""How a step's result is checked: which command, and what its outcome means.

The command is the step's own (`**Verify:**` in the plan), else the config's, else found by what the project holds. It
is run by the same runner as every other command.
"""

import json
import re
import shlex
import tomllib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdd_agent.config import Commands, runs_others
from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import NO_CHECK, PlanStep
from cdd_agent.tickets.status import Verification
from cdd_agent.workspace.commands import Command, CommandRefused, CommandRunner, split
from cdd_agent.workspace.process import CommandResult, OutputChunk
from cdd_agent.workspace.programs import as_started

_PYTEST_NOTHING_COLLECTED = 5  # https://docs.pytest.org/en/stable/reference/exit-codes.html
_NPM_PLACEHOLDER = "no test specified"  # what `npm init` writes as the test script
_END_LINES, _END_CHARACTERS = 80, 6000


@dataclass(frozen=True)
class Check:
    """One command that decides about a step."""

    command: Command
    found: bool = False
    """Nobody asked for it by name: it was found by what the project holds, and may have nothing to say yet."""

    @property
    def argv(self) -> tuple[str, ...]:
        return self.command.argv

    @property
    def shown(self) -> str:
        """As people write it."""
        return self.command.text

    @property
    def is_pytest(self) -> bool:
        return "pytest" in {Path(word).name for word in self.argv[:4]}


@dataclass(frozen=True)
class Verdict:
    """`verification` is None when the check failed; `reason` says what was seen, in a line."""

    verification: Verification | None
    reason: str
    output: str = ""
    seconds: float = 0.0


def check_for(step: PlanStep, test_command: str | None, commands: CommandRunner) -> Check | None:
    """What verifies this step; None when there is nothing to run. Raises `BadInput` for an unusable command.

    The plan's own is judged like any command that a model asks for, but may also use the program of the project's
    tests. In the check's `command` is whether a person has to be asked.
    """
    root, settings = commands.root, commands.settings
    if step.verify is None:
        return parse_command(test_command, root, settings) if test_command else detect(root)
    if step.verify == NO_CHECK:
        return None
    if step.verify == test_command:
        return parse_command(step.verify, root, settings)
    return _judged(step.verify, commands, also=lambda program: program == _test_program(test_command, root))


def detect(root: Path) -> Check | None:
    """The project's own tests, by the files it holds; None when no test framework is found."""
    if _uses_pytest(root):
        return _found(root, "pytest")
    if _NPM_PLACEHOLDER not in (test := _npm_test(root)) and test:
        return _found(root, "npm", "test")
    if (root / "Cargo.toml").is_file():
        return _found(root, "cargo", "test")
    if (root / "go.mod").is_file():
        return _found(root, "go", "test", "./...")
    makefile = next((root / name for name in ("GNUmakefile", "Makefile", "makefile") if (root / name).is_file()), None)
    if makefile and re.search(r"^test\s*:(?!=)", _text(makefile), re.MULTILINE):
        return _found(root, "make", "test")
    return None


def parse_command(command: str, root: Path, settings: Commands | None = None) -> Check:
    """The person's own command for tests: it may use any program, but a shell only in unsafe mode."""
    return _judged(command, CommandRunner(root, settings or Commands()), trusted=True)


async def verify(check: Check, commands: CommandRunner, limit: float) -> AsyncGenerator[OutputChunk | Verdict, None]:
    """Run a check: its output as it comes, then one `Verdict`. A timeout is a failure.

    Raises `BadInput` when it cannot be started: no reply of a model would mend that.
    """
    # Bytecode of a file rewritten within the same second and with the same size would be taken for current.
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    async with aclosing(commands.start(check.command, env=env, limit=limit)) as items:
        async for item in items:
            if isinstance(item, CommandResult) and not item.started:
                raise BadInput(
                    f"The check `{check.shown}` could not be run: {item.stderr.removeprefix('Error: ')}",
                    hint="Install it, or set `test_command` in .cdd/config.yaml or the step's `**Verify:**`.",
                )
            yield item if isinstance(item, OutputChunk) else judge(check, item, limit)


def judge(check: Check, result: CommandResult, limit: float) -> Verdict:
    """What a check's result means."""
    output = result.stdout + ("\n" if result.stdout and result.stderr else "") + result.stderr

    def verdict(verification: Verification | None, reason: str) -> Verdict:
        return Verdict(verification, reason, output, result.seconds)

    if result.timed_out:
        return verdict(None, f"`{check.shown}` was still running after {limit:g} s and was ended")
    if result.return_code == 0:
        return verdict(Verification.PASSED, f"`{check.shown}` passed")
    if check.found and check.is_pytest and result.return_code == _PYTEST_NOTHING_COLLECTED:
        return verdict(Verification.NONE, f"`{check.shown}` found no tests")
    return verdict(None, f"`{check.shown}` failed (exit code {result.return_code})")


def useful_end(output: str) -> str:
    """The part of a failed check's output that tells why: pytest's failures, else the end."""
    failures = re.search(r"^=+ (FAILURES|ERRORS) =+$", output, re.MULTILINE)
    lines = (output[failures.start() :] if failures else output).strip().splitlines()
    cut = [*lines[:20], "…", *lines[20 - _END_LINES :]] if failures and len(lines) > _END_LINES else lines[-_END_LINES:]
    text = "\n".join(cut)
    return text if len(text) <= _END_CHARACTERS else "…" + text[-_END_CHARACTERS:]


def _judged(command: str, commands: CommandRunner, **how: Any) -> Check:
    try:
        return Check(commands.judge(command, **how))
    except CommandRefused as refusal:
        hint = refusal.hint or "Write `none` for no check."
        raise BadInput(f"The check `{command}` cannot be run: {refusal.message}", hint=hint) from refusal


def _test_program(test_command: str | None, root: Path) -> str | None:
    """The program that runs the project's tests; None for a shell and the like, which would run anything."""
    try:
        check = parse_command(test_command, root) if test_command else detect(root)
    except BadInput:  # that is a matter of the steps that use it
        return None
    program = split(check.shown).argv[0] if check else None
    return program if program and not runs_others(Path(program).name) else None


def _found(root: Path, *argv: str) -> Check:
    started = as_started(argv, root)
    shown = argv if started[1:] == argv[1:] else (Path(started[0]).name, *started[1:])
    return Check(Command(shlex.join(shown), started, root), found=True)


def _uses_pytest(root: Path) -> bool:
    if any((root / name).is_file() for name in ("pytest.ini", "conftest.py", ".pytest.ini")):
        return True
    if "pytest" in _toml(root / "pyproject.toml").get("tool", {}):
        return True
    configured = (("tox.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]"))
    if any(section in _text(root / name) for name, section in configured):
        return True
    folders = (root, *(root / name for name in ("tests", "test")))
    return any(file for folder in folders if folder.is_dir() for file in _test_files(folder))


def _test_files(folder: Path) -> list[Path]:
    depth = ("*", "*/*", "*/*/*") if folder.name in ("tests", "test") else ("*",)
    return [
        file
        for pattern in depth
        for file in folder.glob(f"{pattern}.py")
        if file.name.startswith("test_") or file.stem.endswith("_test")
    ]


def _npm_test(root: Path) -> str:
    try:
        scripts = json.loads(_text(root / "package.json") or "{}").get("scripts", {})
        return str(scripts.get("test", ""))
    except (ValueError, AttributeError) as error:
        raise BadInput(f"{root / 'package.json'} cannot be read: {error}") from error


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} cannot be read: {error}", hint="Set test_command in .cdd/config.yaml.") from error


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
