"""Several tickets of one project under git, and scripts of replies for them."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.cli.main import main
from tests.support.projects import SPEC, Step, add_test, check, plan, says
from tests.travel.copies import git

GOOD = says("a.txt", "good")
ONE_STEP = (Step("a.txt", check("a.txt")),)
"""Its check reports no tests."""
TESTED = (Step("a.txt", "pytest -q test_a.py"),)
"""One step that a test verifies; `project` writes the test."""


def project(
    folder: Path,
    tickets: Mapping[str, tuple[Step, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Its root. Whoever commits in it is Ann, and what is begun in it finds this
    program.
    """
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    root = folder.resolve() / "project"
    for slug, steps in tickets.items():
        ticket = root / "tickets" / slug
        ticket.mkdir(parents=True)
        (ticket / "spec.yaml").write_text(SPEC)
        (ticket / "plan.md").write_text(plan(steps).replace("feature-words", slug))
    if TESTED in tickets.values():
        add_test(root, "a.txt")
    (root / "README").write_text("words\n")
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    return root


def script(folder: Path, *replies: str, name: str = "script.yaml") -> str:
    """What to give to --model: each run that asks it hears these replies, from the
    first.
    """
    lines = ", ".join(json.dumps({"reply": reply}) for reply in replies)
    (folder / name).write_text(f"pace: 0\nreplies: [{lines}]\n")
    return f"script:{folder / name}"


def cdd(root: Path, *words: str) -> int:
    return main([*words, "-C", str(root)])


def begun(root: Path, *words: str) -> "subprocess.Popen[bytes]":
    """`cdd` as a process, which may be killed."""
    return subprocess.Popen(
        [sys.executable, "-m", "cdd_agent", *words, "-C", str(root)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def tree(root: Path, slug: str) -> Path:
    return root / ".cdd" / "runs" / slug / "tree"
