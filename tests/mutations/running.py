"""A mutation run: small faults are put into the program, one at a time, and its tests
have to notice each.

Each is tried in a copy of the project of its own, with only the tests that are named
for it.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil

from tests.support.kinds import SLOW

_NOT_COPIED = shutil.ignore_patterns(".*", "*.svg")
_SHOWN_OUTPUT = 2000


@dataclass(frozen=True)
class Mutation:
    """One fault: in `file`, `old` becomes `new`."""

    rule: str
    """The rule of the program that is broken by it."""
    file: str
    """Relative to the package."""
    old: str
    new: str
    tests: str
    """Those that have to notice, as pytest's arguments."""

    def __str__(self) -> str:
        return f"{self.file}: {self.rule}"


class Fate(Enum):
    KILLED = "killed"
    SURVIVED = "SURVIVED"
    BROKEN = "BROKEN"
    """Nothing was shown: its tests could not be run."""


@dataclass(frozen=True)
class Tried:
    fate: Fate
    output: str = ""


class BadMutation(Exception):
    """A mutation that is out of date: the program has been changed since."""


def mutated(text: str, mutation: Mutation) -> str:
    """Raises `BadMutation` where what is to be changed is not there exactly once."""
    found = text.count(mutation.old)
    if found != 1 or mutation.old == mutation.new:
        raise BadMutation(
            f"{mutation}: there {found} times, and must be once:\n{mutation.old}"
        )
    return text.replace(mutation.old, mutation.new)


def tried(root: Path, mutation: Mutation, limit: float) -> Tried:
    """The verdict of its tests on the program with this fault. One that never ends is
    noticed, too.
    """
    with tempfile.TemporaryDirectory(prefix="cdd-mutation-") as folder:
        copy = Path(folder) / "project"
        # keeps times: what was compiled stays good
        shutil.copytree(root, copy, ignore=_NOT_COPIED)
        file = copy / "cdd_agent" / mutation.file
        file.write_text(mutated(file.read_text(), mutation))
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()  # its time and size could be those of the new text
        return _tested(copy, ["-x", *mutation.tests.split()], limit)


def untouched(
    root: Path, mutations: Sequence[Mutation], limit: float, jobs: int
) -> Tried:
    """The verdict of all the tests on the program as it is: only then do they mean
    something.
    """
    with tempfile.TemporaryDirectory(prefix="cdd-mutation-") as folder:
        copy = Path(folder) / "project"
        shutil.copytree(root, copy, ignore=_NOT_COPIED)
        tests = dict.fromkeys(
            test for mutation in mutations for test in mutation.tests.split()
        )
        return _tested(copy, ["-n", str(jobs), "--dist", "loadgroup", *tests], limit)


def _tested(copy: Path, arguments: Sequence[str], limit: float) -> Tried:
    """Run unit tests and stories, and return KILLED if one fails.

    Programs that the tests start use the copy's package, too.
    """
    temporary = copy.parent / "tmp"
    temporary.mkdir()
    outer = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTEST_")
    }
    env = {**outer, "PYTHONPATH": str(copy), "TMPDIR": str(temporary)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--tb=short",
        "-m",
        f"not ({' or '.join(sorted(SLOW))})",
        *arguments,
    ]
    output = copy.parent / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=copy,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return Tried(Fate.KILLED, f"still running after {limit:g} s")
        finally:
            _end(process)
    said = output.read_text(errors="replace")[-_SHOWN_OUTPUT:]
    return Tried({0: Fate.SURVIVED, 1: Fate.KILLED}.get(code, Fate.BROKEN), said)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the process and everything that it started, in whichever group or session.

    Parents end before their children: a parent that outlives its child may start
    another one.
    """
    if process.poll() is not None:
        return
    with contextlib.suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process.pid)
        parent.suspend()  # it starts nothing while its children are listed
        started = parent.children(recursive=True)
        for each in (parent, *started):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        # the system ends them a little later
        psutil.wait_procs(started, timeout=10)
    process.wait()
