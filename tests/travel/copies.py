"""Copies of a project with one bare remote, for tests of runs that travel."""

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.cli.main import main
from cdd_agent.process.ending import MARK
from tests.support.projects import SLUG, Sandbox, Step, check, says

STEPS = (
    Step("a.txt", check("a.txt")),
    Step("b.txt", check("b.txt"), "Step 1"),
    Step("c.txt", check("c.txt"), "Step 2"),
)
TWO_STEPS = STEPS[:2]
many_processes = pytest.mark.fork
"""For tests with many of git's own processes, at both ends of a remote or of a tree."""
REFERENCE = f"refs/cdd/runs/{SLUG}"
GOOD = tuple(says(path, "good") for path in ("a.txt", "b.txt"))


def git(folder: Path, *words: str, data: bytes | None = None) -> str:
    who = (
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.org",
        "-c",
        "commit.gpgsign=false",
    )
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, input=data
    )
    return done.stdout.decode(errors="replace").strip()


@dataclass
class Copies:
    """One bare remote, and what was cloned from it."""

    folder: Path
    remote: Path

    @classmethod
    def made(cls, folder: Path, *steps: Step) -> "Copies":
        folder.mkdir(parents=True, exist_ok=True)
        remote = folder / "remote.git"
        git(
            folder,
            "init",
            "--quiet",
            "--bare",
            "--template=",
            "--initial-branch=main",
            str(remote),
        )
        copies = cls(folder, remote)
        first = copies.clone("first")
        first.write(*(steps or TWO_STEPS))
        (first.root / ".gitignore").write_text("execution-state*.json\nlocal/\n")
        (first.root / "README").write_text("words\n")
        git(first.root, "add", "--all")
        git(first.root, "commit", "--quiet", "--message=A project")
        git(first.root, "push", "--quiet", "origin", "HEAD:main")
        return copies

    def clone(self, name: str) -> Sandbox:
        git(self.folder, "clone", "--quiet", "--template=", str(self.remote), name)
        root = self.folder / name
        (root / ".cdd").mkdir(exist_ok=True)
        return Sandbox(root.resolve())

    def copy_to(self, folder: Path) -> "Copies":
        """The same elsewhere: much cheaper than to make it again."""
        return Copies(copied(self.folder, folder), folder / self.remote.name)

    @property
    def first(self) -> Sandbox:
        return Sandbox((self.folder / "first").resolve())

    @property
    def second(self) -> Sandbox:
        return Sandbox((self.folder / "second").resolve())

    def tip(self) -> str:
        return git(self.remote, "rev-parse", REFERENCE)

    def file(self, path: str) -> str:
        return git(self.remote, "show", f"{REFERENCE}:{path}")

    def everything_sent(self) -> bytes:
        """All contents that the remote has."""
        names = git(self.remote, "rev-list", "--objects", "--all").splitlines()
        asked = "".join(f"{name.split(' ')[0]}\n" for name in names).encode()
        batch = ["git", "cat-file", "--batch", "--buffer"]
        return subprocess.run(
            batch, cwd=self.remote, input=asked, check=True, capture_output=True
        ).stdout


def copied(source: Path, target: Path) -> Path:
    """A folder with repositories and their working trees, which know where they are,
    elsewhere.
    """
    shutil.copytree(source, target, symlinks=True)
    known = [
        *target.glob("*/.git/config"),
        *target.glob("*/.git/worktrees/*/gitdir"),
        *target.rglob("tree/.git"),
    ]
    for file in known:
        file.write_text(file.read_text().replace(str(source), str(target)))
    return target


def scripted(sandbox: Sandbox, *replies: str) -> str:
    """The replies as a script outside of what travels; what to give to --model."""
    lines = ", ".join(json.dumps({"reply": reply}) for reply in replies)
    (sandbox.root / ".cdd" / "runs").mkdir(parents=True, exist_ok=True)
    (sandbox.root / ".cdd" / "runs" / "script.yaml").write_text(f"replies: [{lines}]\n")
    return "script:.cdd/runs/script.yaml"


def cdd(sandbox: Sandbox, *words: str) -> int:
    return main([*words, "-C", str(sandbox.root)])


def run(sandbox: Sandbox, *replies: str, more: tuple[str, ...] = ()) -> int:
    """Go on with the run, as long as there are replies."""
    return cdd(
        sandbox,
        "exec",
        SLUG,
        "--max-attempts",
        "1",
        "--model",
        scripted(sandbox, *replies),
        *more,
    )


def files(root: Path) -> dict[str, tuple[str, object]]:
    """All that is in a project beside what this program and git keep to themselves."""
    found: dict[str, tuple[str, object]] = {}
    for folder, folders, names in os.walk(root):
        for name in names:
            place = Path(folder, name)
            path = place.relative_to(root).as_posix()
            if path.startswith((".git/", ".cdd/")):
                continue
            if place.is_symlink():
                found[path] = ("link", str(place.readlink()))
            else:
                found[path] = (oct(place.stat().st_mode & 0o777), place.read_bytes())
        folders[:] = [name for name in folders if name != ".git"]
    return found


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@contextmanager
def left_running(record: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command of a run that was killed."""
    mark = uuid.uuid4().hex
    sleep = "import time; time.sleep(600)"
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", sleep], env={**os.environ, MARK: mark}
    )
    (record / f"running-{mark}").touch()
    try:
        yield process
    finally:
        process.kill()
        process.wait()
