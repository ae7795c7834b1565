"""Opens a project for work: the user decides about settings that need trust."""

import os
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from cdd_agent.cli.invocation import Invocation
from cdd_agent.commands.trust_words import ANSWERS, SHOW, in_lines, numbered_file
from cdd_agent.faces.terminal import find_keyboard, forget_what_was_typed
from cdd_agent.session.open_project import (
    Decide,
    NotTrusted,
    Project,
    TrustAnswer,
    TrustQuestion,
    accept_once,
    open_project,
)
from cdd_agent.text.sanitize import sanitize_for_display

_LONGEST_ANSWER = 65536


def open_for_work(
    invocation: Invocation,
    settings: Mapping[str, Any],
    *,
    exactly: bool = False,
    as_json: bool,
) -> Project:
    """Open a project with all its settings. `as_json`: no questions. Raises `BadInput`,
    and `NotTrusted` if settings need trust and there is no user to ask.
    """
    decide = decision(invocation, may_ask=not as_json)
    project = open_project(invocation.project, settings, exactly=exactly, decide=decide)
    if project.trust.not_stored:
        _print(f"cdd: {project.trust.not_stored}")
    return project


def decision(invocation: Invocation, *, may_ask: bool = True) -> Decide:
    """Return how to decide: by the flag, at the terminal, or by refusal."""
    if invocation.trust:
        return accept_once
    keyboard = find_keyboard() if may_ask else None
    if keyboard is None:
        return refuse
    return partial(ask_at, keyboard)


def refuse(question: TrustQuestion) -> TrustAnswer:
    raise NotTrusted(
        "\n".join(in_lines(question)),
        hint=(
            "Review them first with `cdd trust`. To accept them, add `--trust` or set"
            " CDD_TRUST=1 for one run, or run `cdd trust --give` for all."
        ),
    )


def ask_at(keyboard: int, question: TrustQuestion) -> TrustAnswer:
    """Ask on standard error, and read the answer from the terminal. Raises `NotTrusted`
    after Ctrl+D.
    """
    _print("\n".join(in_lines(question)))
    offered = "  ".join(f"[{key}] {words}" for key, words in ANSWERS.items())
    while True:
        forget_what_was_typed(keyboard)
        sys.stderr.write(f"{offered} > ")
        sys.stderr.flush()
        line = os.read(keyboard, _LONGEST_ANSWER)
        if not line:
            sys.stderr.write("\n")
            raise NotTrusted("No answer came; nothing was done")
        typed = line.decode("utf-8", errors="replace").strip().lower()
        chosen = next(
            (words for key, words in ANSWERS.items() if typed in (key, words)), ""
        )
        if chosen == SHOW:
            _print(numbered_file(question))
        elif chosen:
            return TrustAnswer(chosen)
        else:
            _print("Type one of the letters.")


def _print(text: str) -> None:
    for line in text.split("\n"):
        sys.stderr.write(sanitize_for_display(line) + "\n")
