"""The code that a step may be about without naming it, and, after a failure, the code
that the failure is about.
"""

from collections.abc import Collection

from msgspec.structs import replace

from cdd_agent.context.places import Place, RankedFile
from cdd_agent.context.query import Query
from cdd_agent.context.traces import frames
from cdd_agent.dialogue.code_context import CodeContext, packed
from cdd_agent.engine.attempt import RankedContext
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.shown_files import ShownFiles
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.llm.port import PromptShare
from cdd_agent.llm.token_estimates import estimated_tokens
from cdd_agent.tickets.declared_files import DeclaredFiles

MOST = 8_000
"""Tokens of the code that is shown because a step may be about it; in a small window
two thirds of what is left.
"""
MOST_WITH_TOOLS = 4_000
"""The same for a model that can look further by itself."""
_MOST_AFTER_A_FAILURE = 3_000
_HEADING = (
    "# Code that the step may be about\n\nIt was found by the step's words; what is in"
    " part is not to be given whole."
)
_AROUND = 12
"""Lines before and after a line of a traceback."""
_FIRST = 1e9
"""The use of a frame: no other place comes before it."""
_MOST_FRAMES = 12


def ranked_context(
    shown: ShownFiles,
    declared: DeclaredFiles,
    identity: str,
    choices: Choices,
    kept: RankedContext | None,
    most: int,
) -> RankedContext | None:
    """Return the code that a step may be about, in at `most` these tokens, if the step
    declares no file or the user has pinned folders. Return None for other steps: their
    plan has chosen the files.

    The code that was `kept` from an earlier attempt is shown again if its files have
    not changed and there is room for it.
    """
    root, room = shown.root, shown.room
    has_pinned_folder = any((root / place).is_dir() for place in choices.pinned)
    if declared.paths and not has_pinned_folder:
        return None
    identity = repr((identity, choices.pinned, choices.without))
    if kept is not None and kept.step == identity:
        is_there = all(
            digest(read_bytes(root / path)) == seen and not shown.hidden.why(path)
            for path, seen in kept.files.items()
        )
        if is_there and room.takes(estimated_tokens(kept.text)):
            return kept
    tokens = most if room.left is None else min(most, room.left * 2 // 3)
    whole = shown.seen.keys() - shown.in_part.keys()
    found = packed(
        root,
        shown.look.ranked,
        shown.look.outline,
        tokens - estimated_tokens(_HEADING),
        but=whole,
        known=shown.in_part,
    )
    text = f"{_HEADING}\n\n{found.text}" if found.files else ""
    if not room.takes(estimated_tokens(text)):
        found, text = CodeContext(), ""
    read = [code for code in found.files if code.lines != ()]
    return RankedContext(
        step=identity,
        text=text,
        files={code.path: code.digest for code in read},
        in_part={code.path: code.lines for code in read if code.lines is not None},
        shares=tuple(
            PromptShare(code.name, code.tokens, code.why) for code in found.files
        ),
    )


def follow(
    shown: ShownFiles,
    failure: str,
    missed: Collection[str],
    query: Query,
    there: Collection[str],
) -> None:
    """Show what a failure leads to: the lines of its traceback, and of the files that
    those import, or the tests that were `missed`, the places that it is about. Only of
    files that are `there` for everybody, not of what git ignores; nothing of what is
    shown whole.
    """
    root, whole = shown.root, shown.seen.keys() - shown.in_part.keys()
    by_file: dict[str, list[Place]] = {}
    for path, line in frames(failure, there, root)[:_MOST_FRAMES]:
        if not shown.hidden.why(path):
            place = Place(
                max(1, line - _AROUND),
                line + _AROUND,
                "",
                "in the traceback",
                use=_FIRST,
            )
            by_file.setdefault(path, []).append(place)
    finder = shown.look.finder
    imported = (
        {path for name in (*by_file, *missed) for path in finder.imported(name)}
        if finder
        else set[str]()
    )
    wanted = imported.intersection(there) - by_file.keys() - whole
    others: list[RankedFile] = []
    if wanted and finder is not None:
        ranked = finder.rank(replace(query, text="", failure=failure))
        others = [file for file in ranked if file.path in wanted]
    first = [
        RankedFile(path, ("in the traceback",), True, tuple(places))
        for path, places in by_file.items()
    ]
    room = shown.room
    tokens = (
        _MOST_AFTER_A_FAILURE
        if room.left is None
        else min(_MOST_AFTER_A_FAILURE, room.left // 2)
    )
    found = packed(
        root,
        [*first, *others],
        shown.look.outline,
        tokens,
        but=whole,
        known=shown.in_part,
    )
    for code in found.files:
        if room.takes(code.tokens):
            shown.show(code, code.why, added=True)
