"""The generated project: tickets of one to four steps with checks that run.

The description of each step has a mark that tells the loopback model what to write, so
the model needs no copy of the plan.
"""

import random
import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_SPEC = """\
title: Say the words of {slug}
type: feature
description: Files say the words of their steps.
acceptance_criteria:
  - Each file says its word
"""
_PLAN = """\
# Implementation Plan: Say the words of {slug}

**Ticket:** `{slug}`

## Implementation Steps

{steps}
"""
_STEP = """\
### Step {number}: Write {path}

**Description:** Write the word `{word}` into the file. {mark}
**Dependencies:** None
**Verify:** `{check}`

**Files Affected:**
- `{path}`
"""
_TEST = """\
from pathlib import Path


def test_word():
    assert {word!r} in Path({path!r}).read_text()
"""
_CONFIG = """\
model_adapter: direct
approval: auto
tool_calls: "on"
max_attempts: 3
commands: {allow: [python]}
"""
_MARK = re.compile(r"\[soak (\w+) (\S+) (\w+) (\w+)\]")
_LINES = 40


class StepKind(StrEnum):
    """The way in which the model carries out a step."""

    CREATE = "create"
    """The reply has a new file."""
    EDIT = "edit"
    """The reply edits an existing file."""
    TOOLS = "tools"
    """Tools create the file and edit it."""
    COMMAND = "command"
    """A command writes the file."""
    TESTED = "tested"
    """The reply has a new file, and pytest runs a test of it."""


_WEIGHTS = {
    StepKind.CREATE: 40,
    StepKind.EDIT: 25,
    StepKind.TOOLS: 20,
    StepKind.COMMAND: 10,
    StepKind.TESTED: 5,
}


@dataclass(frozen=True)
class SoakStep:
    """A step of a generated plan."""

    kind: StepKind
    path: str
    word: str
    is_wrong_first: bool
    """The first reply has the wrong word, so the first check fails."""

    @property
    def mark(self) -> str:
        first = "wrong" if self.is_wrong_first else "right"
        return f"[soak {self.kind} {self.path} {self.word} {first}]"

    @classmethod
    def from_prompt(cls, prompt: str) -> "SoakStep | None":
        """Return the step that a prompt asks for; None if the prompt has no mark."""
        marks = _MARK.findall(prompt)
        if not marks:
            return None
        kind, path, word, first = marks[-1]
        return cls(StepKind(kind), path, word, first == "wrong")

    @property
    def test_path(self) -> str:
        return self.path.replace("/", "_").replace("-", "_").removesuffix(".txt")

    @property
    def check(self) -> str:
        if self.kind is StepKind.TESTED:
            return f"pytest -q checks/{self.test_path}.py"
        code = f"raise SystemExit('{self.word}' not in open('{self.path}').read())"
        return f'python -S -c "{code}"'

    def holds(self, root: Path, environment: Mapping[str, str]) -> bool:
        """Run the step's check in a folder."""
        # `PATH` of this process would otherwise find the program
        command = ["env", *shlex.split(self.check)]
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, check=False
        )
        return done.returncode == 0

    def original(self) -> str | None:
        """Return the file's text before the run; None if there is no file."""
        if self.kind is not StepKind.EDIT:
            return None
        return "".join(f"line {number}\n" for number in range(1, _LINES + 1))


@dataclass(frozen=True)
class Ticket:
    """A generated ticket."""

    slug: str
    steps: tuple[SoakStep, ...]

    def write(self, root: Path) -> None:
        """Write the spec and the files before the run."""
        folder = root / "tickets" / self.slug
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(_SPEC.format(slug=self.slug))
        for step in self.steps:
            self._write_files(root, step)

    def write_plan(self, root: Path) -> None:
        """Write the plan. From now on `cdd exec --all planned` includes the ticket."""
        (root / "tickets" / self.slug / "plan.md").write_text(self._plan())

    def _plan(self) -> str:
        parts = []
        for place, step in enumerate(self.steps, 1):
            part = _STEP.format(
                number=place,
                path=step.path,
                word=step.word,
                mark=step.mark,
                check=step.check,
            )
            parts.append(part)
        return _PLAN.format(slug=self.slug, steps="\n".join(parts))

    def _write_files(self, root: Path, step: SoakStep) -> None:
        original = step.original()
        if original is not None:
            path = root / step.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(original)
        if step.kind is StepKind.TESTED:
            test = root / "checks" / f"{step.test_path}.py"
            test.parent.mkdir(exist_ok=True)
            test.write_text(_TEST.format(word=step.word, path=step.path))

    def originals(self) -> Mapping[str, bytes | None]:
        """Return the files of the steps before the run; None for a missing file."""
        originals: dict[str, bytes | None] = {}
        for step in self.steps:
            text = step.original()
            originals[step.path] = None if text is None else text.encode()
        return originals

    def files(self, root: Path) -> Mapping[str, bytes | None]:
        """Return the files of the steps as they are in a folder."""
        files: dict[str, bytes | None] = {}
        for step in self.steps:
            path = root / step.path
            files[step.path] = path.read_bytes() if path.exists() else None
        return files


def generate_tickets(count: int, seed: int) -> tuple[Ticket, ...]:
    """Return different tickets for each seed."""
    rng = random.Random(seed)
    kinds, weights = list(_WEIGHTS), list(_WEIGHTS.values())
    tickets = []
    for number in range(1, count + 1):
        slug = f"feature-soak-{number:03}"
        steps = []
        for place in range(1, rng.randint(1, 4) + 1):
            step = SoakStep(
                kind=rng.choices(kinds, weights)[0],
                path=f"words/{slug}/{place}.txt",
                word=f"word{rng.randrange(10**6)}",
                is_wrong_first=rng.random() < 0.25,
            )
            steps.append(step)
        tickets.append(Ticket(slug, tuple(steps)))
    return tuple(tickets)


def write_project(root: Path, tickets: Iterable[Ticket]) -> None:
    """Write the project and commit it."""
    (root / ".cdd").mkdir(parents=True)
    (root / ".cdd/config.yaml").write_text(_CONFIG)
    (root / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    for ticket in tickets:
        ticket.write(root)
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "config", "user.name", "Soak")
    git(root, "config", "user.email", "soak@localhost")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "Tickets")


def git(root: Path, *arguments: str) -> str:
    """Run git in a folder and return its output. Raises `CalledProcessError`."""
    done = subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    )
    return done.stdout
