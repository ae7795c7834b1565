"""How a step's result is checked: which command, and what its outcome means.

The command is the step's own (`**Verify:**` in the plan), else the config's, else found by what the project holds.
"""

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import NO_CHECK, PlanStep
from cdd_agent.tickets.status import Verification
from cdd_agent.workspace.process import CommandResult, OutputChunk, run_command

_PYTEST_NOTHING_COLLECTED = 5  # https://docs.pytest.org/en/stable/reference/exit-codes.html
_NPM_PLACEHOLDER = "no test specified"  # what `npm init` writes as the test script
_SHELL = "|&;<>"
_END_LINES, _END_CHARACTERS = 80, 6000


@dataclass(frozen=True)
class Check:
    """One command that decides about a step."""

    argv: tuple[str, ...]
    shown: str
    """As people write it."""
    found: bool = False
    """Nobody asked for it by name: it was found by what the project holds, and may have nothing to say yet."""

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


def check_for(step: PlanStep, test_command: str | None, root: Path) -> Check | None:
    """What verifies this step; None when there is nothing to run. Raises `BadInput` for an unusable command."""
    if step.verify is not None:
        return None if step.verify == NO_CHECK else parse_command(step.verify, root)
    return parse_command(test_command, root) if test_command else detect(root)


def detect(root: Path) -> Check | None:
    """The project's own tests, by the files it holds; None when no test framework is found."""
    if _uses_pytest(root):
        return _check(*_pytest(root))
    if _NPM_PLACEHOLDER not in (test := _npm_test(root)) and test:
        return _check("npm", "test")
    if (root / "Cargo.toml").is_file():
        return _check("cargo", "test")
    if (root / "go.mod").is_file():
        return _check("go", "test", "./...")
    makefile = next((root / name for name in ("GNUmakefile", "Makefile", "makefile") if (root / name).is_file()), None)
    if makefile and re.search(r"^test\s*:(?!=)", _text(makefile), re.MULTILINE):
        return _check("make", "test")
    return None


def parse_command(command: str, root: Path) -> Check:
    """A command as people write it; `pytest` and `python` mean the project's own environment's."""
    try:
        argv = shlex.split(command)
        words = shlex.shlex(command, posix=False, punctuation_chars=_SHELL)  # quoted ones keep their quotes
        needs_shell = any(set(word) <= set(_SHELL) for word in words) or "=" in argv[0] if argv else False
    except ValueError as error:
        raise BadInput(f"The check `{command}` cannot be read: {error}") from error
    if not argv:
        raise BadInput("The check is empty", hint="Write `none` for no check.")
    if needs_shell:
        raise BadInput(
            f"The check `{command}` needs a shell, and checks run without one",
            hint="Put it into a script or a Makefile target and name that.",
        )
    if argv[0] == "pytest":
        argv[:1] = _pytest(root)
    elif argv[0] in ("python", "python3"):
        argv[0] = _python(argv[0], root)
    return Check(tuple(argv), command)


async def verify(check: Check, root: Path, limit: float) -> AsyncGenerator[OutputChunk | Verdict, None]:
    """Run a check: its output as it comes, then one `Verdict`. A timeout is a failure.

    Raises `BadInput` when it cannot be started: no reply of a model would mend that.
    """
    # Bytecode of a file rewritten within the same second and with the same size would be taken for current.
    async for item in run_command(check.argv, cwd=root, limit=limit, env={"PYTHONDONTWRITEBYTECODE": "1"}):
        if isinstance(item, CommandResult) and not item.started:
            raise BadInput(
                f"The check `{check.shown}` could not be run: {item.stderr}",
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


def _check(*argv: str) -> Check:
    return Check(argv, shlex.join((Path(argv[0]).name, *argv[1:])), found=True)


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


def _pytest(root: Path) -> tuple[str, ...]:
    """How pytest is run in this project: its own environment first, this program's own as the last resort."""
    poetry = "poetry" in _toml(root / "pyproject.toml").get("tool", {}) or (root / "poetry.lock").is_file()
    if poetry and shutil.which("poetry"):
        return ("poetry", "run", "pytest")
    if (root / "uv.lock").is_file() and shutil.which("uv"):
        return ("uv", "run", "pytest")
    own = _own_python(root)
    if own and any(own.parent.glob("pytest*")):
        return (str(own), "-m", "pytest")
    return ("pytest",) if shutil.which("pytest") else (sys.executable, "-m", "pytest")


def _python(name: str, root: Path) -> str:
    """The project's own Python, else the one on the path (many systems have only `python3`), else this program's."""
    own = _own_python(root)
    return str(own) if own else next(filter(shutil.which, (name, "python3")), sys.executable)


def _own_python(root: Path) -> Path | None:
    inside = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    return next((root / name / inside for name in (".venv", "venv") if (root / name / inside).exists()), None)


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
