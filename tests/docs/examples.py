"""Runs the commands of an example in a project with the tickets that it names. Models
are scripts, the remote is a folder, and the network is not reached.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import yaml
from msgspec import Struct

NOT_RUN = {
    "cdd serve": "serves until it is stopped",
    "dask": "starts a server",
    "docker": "is another program",
    "gh": "needs an account",
    "make": "needs a checkout; a test checks that the target exists",
    "npm": "installs a program",
    "ollama": "starts a server",
    "pip": "installs a program",
    "pipx": "installs a program",
    "ssh": "needs a host",
    "uv": "installs a program",
    "uvx": "installs a program",
}
"""Programs that are not started, with the reason."""
_ELSEWHERE = "another machine"
"""In a comment: this command and those after it run in a clone."""
_SLUG = re.compile(
    r"(?<![\w/.-])(?:feature|bug|spike|refactor|enhancement)-[a-z][a-z-]*"
)
_PLACEHOLDERS = {"SLUG": "feature-login", "A": "a", "B": "b", "C": "c"}
_NEEDS_RUN = re.compile(
    r"\bcdd (?:diff|undo|redo|verify|land|criteria|push|board)\b|\.cdd/runs/|refs/cdd"
)
_PLAN = """\
# Implementation Plan: Greet

## Implementation Steps

### Step 1: Write the greeting

**Description:** Write `{name}.py` and its test.
**Verify:** `pytest -q test_{name}.py`

**Files Affected:**
- `{name}.py` (new)
- `test_{name}.py` (new)

### Step 2: Write more

**Description:** Write `{name}_more.py`.
**Dependencies:** Step 1
**Verify:** `pytest -q test_{name}.py`

**Files Affected:**
- `{name}_more.py` (new)
"""
_SPEC = """\
title: Greet
type: feature
description: |
  Users want a greeting.
acceptance_criteria:
  - The greeting is there
"""
_REPLY = """\
```python:{name}.py
def greet():
    return "hello"
```

```python:test_{name}.py
from {name} import greet


def test_greet():
    assert greet() == "hello"
```
"""
_MORE = """\
```python:{name}_more.py
MORE = 1
```
"""
_PROPOSAL = {
    "plan": {
        "overview": "One module.",
        "complexity": "simple",
        "estimated_time": "1 hour",
        "steps": [
            {
                "number": 1,
                "title": "Write the greeting",
                "description": "Write `planned.py` and its test.",
                "complexity": "simple",
                "estimated_time": "20 min",
                "dependencies": [],
                "files": [
                    {"path": "planned.py", "change": "create"},
                    {"path": "test_planned.py", "change": "create"},
                ],
                "checks": ["pytest -q test_planned.py"],
                "serves": [1],
            }
        ],
        "risks": [],
    }
}


class Command(Struct, frozen=True):
    """A line that is typed."""

    text: str
    comment: str = ""

    @property
    def reason(self) -> str:
        """Why it is not executed, or nothing."""
        if " --on tcp" in self.text:
            return "needs a cluster; tests/cluster has one"
        for program, reason in NOT_RUN.items():
            if re.match(rf"(?:[A-Z_]+=\S+ )*{program}\b", self.text):
                return reason
        return ""

    @property
    def exit_codes(self) -> set[int]:
        """The codes with which it may end; its comment names others than 0."""
        return {0, *map(int, re.findall(r"exit code (\d+)", self.comment))}


class Example(Struct, frozen=True):
    """The commands of a block, and the lines that they print."""

    commands: tuple[Command, ...]
    output: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> "Example":
        """In a block with `$ `, all other lines are output. In the output `…` stands
        for anything, and numbers and folders may differ.
        """
        has_prompt = re.search(r"^\$ ", text, re.MULTILINE) is not None
        commands: list[Command] = []
        output: list[str] = []
        for line in text.replace("\\\n", " ").splitlines():
            if has_prompt and not line.startswith("$ "):
                output.append(line)
                continue
            typed, _, comment = line.removeprefix("$ ").partition("  #")
            if typed.strip() and not typed.startswith("#"):
                commands.append(Command(typed.strip(), comment.strip()))
        return cls(tuple(commands), tuple(filter(str.strip, output)))

    @property
    def text(self) -> str:
        return "\n".join(command.text for command in self.commands)

    @property
    def patterns(self) -> Iterator[re.Pattern[str]]:
        for line in self.output:
            text = re.escape(line.strip())
            text = re.sub(r"…|\\\.\\\.\\\.", ".*", text)
            text = re.sub(r"\d+(?:\\\.\d+)?", r"\\d+(?:\\.\\d+)?", text)
            yield re.compile(re.sub(r"(?:/[\w-]+)+/", ".*/", text))


class Place(Struct, dict=True):
    """A folder with a project, its remote and a home folder."""

    folder: Path

    @cached_property
    def environment(self) -> dict[str, str]:
        who = {f"GIT_{role}_NAME": "you" for role in ("AUTHOR", "COMMITTER")}
        mail = {f"GIT_{role}_EMAIL": "you@host" for role in ("AUTHOR", "COMMITTER")}
        programs = Path(sys.executable).parent
        return {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "CDD_TRUST": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "TERM": "dumb",
            "COLUMNS": "200",
            "PYTHONUTF8": "1",
            **who,
            **mail,
        }

    def run(
        self, command: str, folder: str = "shop"
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder / folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def clone(self) -> None:
        self.run("git push -q origin HEAD:main && git clone -q ../remote.git ../clone")


def prepare(folder: Path, text: str) -> Place:
    """Make a project with the tickets that the commands name. Their runs have ended,
    if the commands are about runs.
    """
    place = Place(folder)
    project = folder / "shop"
    new = {f"{kind}-{name}" for kind, name in re.findall(r"cdd new (\w+) (\S+)", text)}
    named = {*_SLUG.findall(text), *re.findall(r"(?<=\s)[abc](?=\s|$)", text)} - new
    slugs = sorted(named) or ["feature-login"]
    _write_project(project, slugs)
    (folder / "remote.git").mkdir()
    place.run("git init -q --bare -b main", "remote.git")
    place.run(
        "git init -q -b main && git add -A && git commit -qm begin && git branch"
        " my-branch && git remote add origin ../remote.git"
    )
    needs_run = _NEEDS_RUN.search(text)
    if needs_run is None or "cdd exec" in text[: needs_run.start()]:
        return place
    has_tree = "cdd land" in text or "/tree" in text
    for slug in slugs:
        place.run(f"cdd exec {slug} --yes{' --worktree' if has_tree else ''}")
        if "refs/cdd/runs" in text or "cdd pull" in text:
            place.run(f"cdd push {slug}")
    if re.search(r"cdd (undo|diff|redo)(?! +[a-z])", text):
        place.run("cdd apply reply.md")
    if "cdd redo" in text:
        place.run("cdd undo")
    return place


def _write_project(project: Path, slugs: list[str]) -> None:
    (project / ".cdd").mkdir(parents=True)
    (project / ".cdd" / "config.yaml").write_text("model: script:.cdd/script.yaml\n")
    (project / ".cdd" / ".gitignore").write_text("runs/\n")
    (project / "app.py").write_text("TOTAL = 1\n")
    (project / "reply.md").write_text(_REPLY.format(name="applied"))
    (project / "plan.yaml").write_text("- execute: ls\n")
    replies = []
    for name in [*(slug.replace("-", "_") for slug in slugs), "planned"]:
        more, reply = _MORE.format(name=name), _REPLY.format(name=name)
        replies.append({"when": f"Write `{name}_more.py`", "reply": more})
        replies.append({"when": f"Write `{name}.py`", "reply": reply})
    for slug in slugs:
        ticket = project / "tickets" / slug
        ticket.mkdir(parents=True)
        (ticket / "spec.yaml").write_text(_SPEC)
        (ticket / "plan.md").write_text(_PLAN.format(name=slug.replace("-", "_")))
    proposal = f"```json\n{json.dumps(_PROPOSAL)}\n```\n"
    replies.append({"when": "", "reply": proposal})
    for name in ("script", "other"):
        text = yaml.safe_dump({"replies": replies})
        (project / ".cdd" / f"{name}.yaml").write_text(text)


def fill_placeholders(command: str) -> str:
    """Return a command with real tickets and models that need no key."""
    for placeholder, slug in _PLACEHOLDERS.items():
        command = re.sub(rf"(?<=[\s/]){placeholder}(?=[\s/]|$)", slug, command)
    scripts = "script:.cdd/script.yaml,script:.cdd/other.yaml"
    command = re.sub(r"(--models[ =])\S+", rf"\1{scripts}", command)
    return re.sub(r"(--model[ =])[a-z]\S+", r"\1script:.cdd/script.yaml", command)


def run_example(folder: Path, example: Example) -> tuple[str, list[str]]:
    """Execute the commands in order. One that fails is tried in a project of its own:
    a block may list alternatives. Return what they printed, and the failures.
    """
    text = fill_placeholders(example.text)
    (folder / "0").mkdir()
    place = prepare(folder / "0", text)
    where, printed = "shop", ""
    failures: list[str] = []
    for number, command in enumerate(example.commands, start=1):
        if command.reason or re.match(r"cd [~.]|mkdir \.\.", command.text):
            continue
        if _ELSEWHERE in command.comment and where == "shop":
            place.clone()
            where = "clone"
        line = fill_placeholders(command.text)
        done = place.run(line, where)
        if done.returncode not in command.exit_codes:
            (folder / str(number)).mkdir()
            again = prepare(folder / str(number), line)
            done = again.run(line)
        if done.returncode not in command.exit_codes:
            failures.append(f"{line}: {done.returncode}\n{done.stdout}{done.stderr}")
        printed += done.stdout
        if re.search(r"\bcdd new\b", line):
            _complete_specs(place.folder / where)
    shutil.rmtree(folder, ignore_errors=True)
    return printed, failures


def _complete_specs(project: Path) -> None:
    """Do what the user does after `cdd new`."""
    for spec in project.glob("tickets/*/spec.yaml"):
        spec.write_text(_SPEC)
