"""Other Pythons than cdd's own, to compile a text that may need a newer version.

A text is compiled but not run: in isolated mode, without site-packages, in an empty
folder, with a time limit. Interpreters inside the project are not started.
"""

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section
from cdd_agent.process.environments import own_python
from cdd_agent.process.programs import find_program
from cdd_agent.process.run import run_command
from cdd_agent.threads import waited_for

Version = tuple[int, int]

OURS: Version = (sys.version_info.major, sys.version_info.minor)
NEWEST: Version = (3, 30)
"""The newest version to look for by name."""
_SECONDS = 10.0
"""The time limit of one interpreter. After this time no other one starts."""
_QUESTION = """\
import sys
print("Python %d.%d" % sys.version_info[:2])
try:
    compile(sys.stdin.buffer.read(), "file", "exec", dont_inherit=True)
except SyntaxError as error:
    print("line %d: %s" % (error.lineno or 1, error.msg))
except ValueError as error:
    print(error)
"""


class Opinion(Struct, frozen=True):
    version: Version
    wrong: str
    """Why the text does not compile, or empty."""
    is_of_project: bool = False
    """True for the project environment's interpreter, which decides."""


def opinion(root: Path, source: bytes) -> Opinion | None:
    """Compile a text with the Python of the project's environment. Without one, any
    newer Python that `requires-python` allows may accept it; if all refuse, the newest
    one's error counts. None if there is no such Python.
    """
    deadline = time.monotonic() + _SECONDS
    with tempfile.TemporaryDirectory(prefix="cdd-") as folder:
        text = Path(folder, "text")
        text.write_bytes(source)
        python = own_python(root)
        if python and _is_outside(root, python):
            result = _compile(python.resolve(), text)
            if result is not None:
                return Opinion(*result, is_of_project=True)
        refusals: list[Opinion] = []
        for program in _installed_pythons(root):
            if time.monotonic() > deadline:
                break
            result = _compile(program, text)
            if result is None or result[0] <= OURS or not allows(root, result[0]):
                continue
            if not result[1]:
                return Opinion(*result)
            refusals.append(Opinion(*result))
    return max(refusals, key=lambda refusal: refusal.version, default=None)


def allows(root: Path, version: Version) -> bool:
    """True unless `requires-python` in pyproject.toml forbids a version."""
    try:
        project = section(Manifests(root).content("pyproject.toml"), "project")
    except ManifestUnreadable:
        return True
    clauses = re.findall(
        r"([<>=~!]=?)\s*(\d+)\.(\d+)([.\d*]*)", str(project.get("requires-python", ""))
    )
    return all(_matches(version, *clause) for clause in clauses)


def _matches(
    version: Version, operator: str, major: str, minor: str, rest: str
) -> bool:
    named = (int(major), int(minor))
    match operator:
        case ">=" | ">":
            return version >= named
        case "<":
            is_zero = re.fullmatch(r"[.0*]*", rest) is not None
            return version < named or (version == named and not is_zero)
        case "<=":
            return version <= named
        case "==" | "=":
            return version == named
        case "~=":
            return version == named or (not rest and version > named)
        case _:
            return True


def _installed_pythons(root: Path) -> Iterator[Path]:
    minors = range(NEWEST[1], OURS[1], -1)
    for name in (*(f"python3.{minor}" for minor in minors), "python", "python3"):
        program = find_program(name)
        if program and _is_outside(root, program):
            yield program


def _is_outside(root: Path, program: Path) -> bool:
    try:
        return not program.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _compile(program: Path, text: Path) -> tuple[Version, str] | None:
    """Return an interpreter's version and error. None without an answer: it is a shim
    of a missing version, or the text is nested too deeply.
    """
    run = run_command(
        [str(program), "-I", "-S", "-B", "-W", "ignore", "-c", _QUESTION],
        cwd=text.parent,
        limit=_SECONDS,
        stdin=text,
    )
    result = waited_for(run)
    answer = re.fullmatch(r"Python (\d+)\.(\d+)\r?\n(.*)", result.stdout, re.DOTALL)
    if result.return_code or result.timed_out or answer is None:
        return None
    return (int(answer[1]), int(answer[2])), " ".join(answer[3].split())
