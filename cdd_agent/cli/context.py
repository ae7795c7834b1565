"""`cdd context`: the project context that a model would get, or the code that it would
see for some words.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cdd_agent.cli.without_screen import open_project_of, print_json, print_text
from cdd_agent.commands.code_context import FoundCode, find_code, is_words
from cdd_agent.context.finder import CodeFinder
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.engine.related_code import MOST
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Event
from cdd_agent.files.mention_reader import mentioned_name
from cdd_agent.open_project import Project
from cdd_agent.project.context import project_context


def context(options: Namespace) -> int:
    project = open_project_of(options)
    given = [mentioned_name(project.root, typed) for typed in options.paths]
    words = [typed for typed in given if is_words(project.root, typed)]
    paths = [_from_here(project.root, typed) for typed in given if typed not in words]
    if options.tokens is not None and (not words or options.tokens < 1):
        why = (
            "needs words that the code is about"
            if not words
            else "must be a number from 1"
        )
        raise BadInput(
            f"--tokens {why}", hint='Example: `cdd context "rate limit" --tokens 4000`.'
        )
    in_words = " ".join(words)
    found = (
        _about(project, in_words, options.tokens, paths)
        if words
        else project_context(project.root, paths)
    )
    if options.json:
        print_json(found.to_json())
    else:
        print_text(found.as_text())
    return 0


def _about(
    project: Project, words: str, tokens: int | None, paths: Sequence[str]
) -> FoundCode:
    def tell(event: Event) -> None:
        if isinstance(event, Notice):
            sys.stderr.write(f"{event.text}\n")

    finder = CodeFinder(project.root, project.tickets.folders)
    look = partial(
        find_code,
        project.root,
        finder,
        words,
        MOST if tokens is None else tokens,
        paths,
    )
    return asyncio.run(search_in_thread(look, tell, "Reading the project's code …"))


def _from_here(root: Path, typed: str) -> str:
    """Return a path relative to the project: from the current folder if it exists
    there, otherwise unchanged.
    """
    place = Path(typed).resolve()
    return (
        (place.relative_to(root).as_posix() or ".")
        if place.exists() and place.is_relative_to(root)
        else typed
    )
