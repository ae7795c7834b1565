"""`cdd context`: the project context that a model would get, or the code that it would
see for some words.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cdd_agent.commands.terminal import Argument, flag, terminal_command

if TYPE_CHECKING:
    from cdd_agent.commands.code_context import FoundCode
    from cdd_agent.open_project import Project


@terminal_command(
    "context",
    """
    cdd context
    cdd context README.md src --json
    cdd context "where is the rate limit handled?"
    cdd context "retry with backoff" src/http.py --tokens 4000

    What is no path of the project and has a space, or neither a dot nor a slash, is
    words: the code that they are about is printed, with the reasons. Paths beside words
    are shown in any case.
    """,
    Argument(
        "paths",
        "files and folders to include, or words to find code by",
        metavar="PATH|WORDS",
        nargs="*",
    ),
    Argument(
        "--tokens",
        "with words: how many tokens of code at most (8000)",
        metavar="N",
        type=int,
        default=None,
    ),
    flag("--json", "one JSON object"),
)
def context(options: Namespace) -> int:
    from cdd_agent.cli.without_screen import open_project_of, print_json, print_text
    from cdd_agent.commands.code_context import is_words
    from cdd_agent.errors import BadInput
    from cdd_agent.project.context import project_context

    project = open_project_of(options)
    words = [typed for typed in options.paths if is_words(project.root, typed)]
    paths = [
        _from_here(project.root, typed) for typed in options.paths if typed not in words
    ]
    if options.tokens is not None and (not words or options.tokens < 1):
        why = (
            "is for words: what the code is to be about"
            if not words
            else "is a number from 1 on"
        )
        raise BadInput(
            f"--tokens {why}", hint='As in `cdd context "rate limit" --tokens 4000`.'
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
    import asyncio
    import sys
    from functools import partial

    from cdd_agent.commands.code_context import find_code
    from cdd_agent.context.finder import CodeFinder
    from cdd_agent.dialogue.looking import told_if_slow
    from cdd_agent.engine.related_code import MOST
    from cdd_agent.events import Event, Notice

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
    return asyncio.run(told_if_slow(look, tell, "Reading the project's code …"))


def _from_here(root: Path, typed: str) -> str:
    """A path as the project knows it: what is there from here on, else as it was
    typed.
    """
    place = Path(typed).resolve()
    return (
        (place.relative_to(root).as_posix() or ".")
        if place.exists() and place.is_relative_to(root)
        else typed
    )
