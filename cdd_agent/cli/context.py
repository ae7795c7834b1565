"""`cdd context`: show the project context or code that a model would receive."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.without_screen import open_for_reading, print_json, print_text
from cdd_agent.commands.code_context import FoundCode, find_code, is_words
from cdd_agent.context.finder import CodeFinder
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.engine.related_code import MOST
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Event
from cdd_agent.files.mention_reader import mentioned_name
from cdd_agent.project.context import ContextResult, project_context
from cdd_agent.session.open_project import Project
from cdd_agent.wiring.projects import list_paths_without_code

_EXAMPLE = 'Example: `cdd context "rate limit" --tokens 4000`.'
_READING = "Reading the project's code …"


def context(
    invocation: Invocation, *, paths: Sequence[str], tokens: int | None, as_json: bool
) -> int:
    project = open_for_reading(invocation)
    words, files = list[str](), list[str]()
    for typed in paths:
        name = mentioned_name(project.root, typed)
        if is_words(project.root, name):
            words.append(name)
        else:
            files.append(_relative_to_project(project.root, name))
    if tokens is not None and not words:
        raise BadInput("--tokens needs words that the code is about", hint=_EXAMPLE)
    if tokens is not None and tokens < 1:
        raise BadInput("--tokens must be a number from 1", hint=_EXAMPLE)
    shown: FoundCode | ContextResult
    if words:
        shown = _find_code(project, " ".join(words), tokens or MOST, files)
    else:
        shown = project_context(project.root, files)
    if as_json:
        print_json(shown.to_json())
    else:
        print_text(shown.as_text())
    return 0


def _find_code(
    project: Project, words: str, tokens: int, paths: Sequence[str]
) -> FoundCode:
    def print_notice(event: Event) -> None:
        if isinstance(event, Notice):
            sys.stderr.write(f"{event.text}\n")

    finder = CodeFinder(project.root, list_paths_without_code(project))
    find = partial(find_code, project.root, finder, words, tokens, paths)
    return asyncio.run(search_in_thread(find, print_notice, _READING))


def _relative_to_project(root: Path, typed: str) -> str:
    """Return a path relative to the project, if it exists in the current folder;
    otherwise unchanged.
    """
    place = Path(typed).resolve()
    if place.exists() and place.is_relative_to(root):
        return place.relative_to(root).as_posix()
    return typed
