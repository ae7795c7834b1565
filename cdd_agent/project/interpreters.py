"""Pythons other than this program's own, asked whether they can read a text: a project
may be for a newer one.

A text is only compiled, and not run: in isolated mode, without the site's packages, in
an empty folder, for a bounded time. An interpreter that is itself a file of the project
is not started.
"""

import re
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section
from cdd_agent.process.programs import find_program, own_python
from cdd_agent.process.run import run_command
from cdd_agent.threads import waited_for

Version = tuple[int, int]

OURS: Version = (sys.version_info.major, sys.version_info.minor)
NEWEST: Version = (3, 30)
"""Up to which one is looked for by its name."""
_SECONDS = 10.0
"""For one of them; and after so many, no other is asked."""
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
    """An interpreter's opinion of a text."""

    version: Version
    wrong: str
    """Why it cannot be read, as a clause; empty if it can."""
    is_of_project: bool = False
    """It is the one of the project's own environment: no other counts."""


def opinion(root: Path, source: bytes) -> Opinion | None:
    """The opinion of the Python for which a project is written, as far as there is one
    here beside this program's.

    That of the project's own environment decides. Without one, any newer one that
    `requires-python` allows may say that the text can be read; where all deny it, the
    newest is quoted.
    """
    until = time.monotonic() + _SECONDS
    with tempfile.TemporaryDirectory(prefix="cdd-") as folder:
        text = Path(folder, "text")
        text.write_bytes(source)
        own = own_python(root)
        if own and _is_outside(root, own) and (said := _asked(own.resolve(), text)):
            return Opinion(*said, is_of_project=True)
        found: list[Opinion] = []
        names = (
            *(f"python3.{minor}" for minor in range(NEWEST[1], OURS[1], -1)),
            "python",
            "python3",
        )
        on_path = (program for name in names if (program := find_program(name)))
        for program in (program for program in on_path if _is_outside(root, program)):
            if time.monotonic() > until:
                break
            said = _asked(program, text)
            if said is None or said[0] <= OURS or not allows(root, said[0]):
                continue
            if not said[1]:
                return Opinion(*said)
            found.append(Opinion(*said))
    return max(found, key=lambda one: one.version, default=None)


def allows(root: Path, version: Version) -> bool:
    """Whether `requires-python` in pyproject.toml lets a project run on a version. What
    cannot be read forbids none.
    """
    try:
        wanted = str(
            section(Manifests(root).content("pyproject.toml"), "project").get(
                "requires-python", ""
            )
        )
    except ManifestUnreadable:
        return True
    return all(
        _fits(version, *clause)
        for clause in re.findall(r"([<>=~!]=?)\s*(\d+)\.(\d+)([.\d*]*)", wanted)
    )


def _fits(version: Version, operator: str, major: str, minor: str, rest: str) -> bool:
    named = (int(major), int(minor))
    match operator:
        case ">=" | ">":
            return version >= named
        case "<":
            return version < named or (
                version == named and re.fullmatch(r"[.0*]*", rest) is None
            )
        case "<=":
            return version <= named
        case "==" | "=":
            return version == named
        case "~=":
            return version == named if rest else version >= named
        case _:
            return True


def _is_outside(root: Path, program: Path) -> bool:
    try:
        return not program.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _asked(program: Path, text: Path) -> tuple[Version, str] | None:
    """None for one that does not answer: a shim for a version that is not there, a text
    that is nested too deeply.
    """
    run = run_command(
        [str(program), "-I", "-S", "-B", "-W", "ignore", "-c", _QUESTION],
        cwd=text.parent,
        limit=_SECONDS,
        stdin=text,
    )
    result = waited_for(run)
    said = re.fullmatch(r"Python (\d+)\.(\d+)\r?\n(.*)", result.stdout, re.DOTALL)
    if result.return_code or result.timed_out or said is None:
        return None
    return (int(said[1]), int(said[2])), " ".join(said[3].split())
