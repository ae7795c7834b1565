"""Code that a prompt shows although the step does not name it: related to the step or,
after a failure, to the failure.
"""

from collections.abc import Collection, Iterable

from cdd_agent.context.choosing import choose_code
from cdd_agent.context.code_text import ShownCode
from cdd_agent.engine.attempt import RankedContext
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.shown_files import ShownFiles
from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.llm.port import PromptShare
from cdd_agent.llm.token_estimates import estimate_tokens
from cdd_agent.tickets.declared_files import DeclaredFiles

MOST = 8_000
"""Tokens of related code; in a small window, two thirds of the remaining room."""
MOST_WITH_TOOLS = 4_000
"""The limit for a model with tools, which can search."""
_MOST_AFTER_FAILURE = 3_000
"""In tokens; in a small window, half of the remaining room."""
_HEADING = (
    "# Code that the step may be about\n\nIt was found by the step's words; what is in"
    " part is not to be given whole."
)


def find_related_code(
    shown: ShownFiles,
    declared: DeclaredFiles,
    identity: str,
    choices: Choices,
    saved: RankedContext | None,
    most: int,
) -> RankedContext | None:
    """Return related code of at most `most` tokens, if the step declares no file or the
    user pinned folders; else None, because the plan chose the files.

    Code `saved` by an earlier attempt is repeated if its files are unchanged and it
    fits.
    """
    room = shown.room
    has_pinned_folder = any((shown.root / place).is_dir() for place in choices.pinned)
    if declared.paths and not has_pinned_folder:
        return None
    identity = repr((identity, choices.pinned, choices.without))
    if (
        saved is not None
        and saved.step == identity
        and _is_unchanged(shown, saved)
        and room.take(estimate_tokens(saved.text))
    ):
        return saved
    tokens = most if room.remaining is None else min(most, room.remaining * 2 // 3)
    chosen = choose_code(
        shown.reader,
        shown.search.ranked,
        shown.search.outline,
        tokens - estimate_tokens(_HEADING),
        shown_whole=shown.whole_paths,
        shown_in_part=shown.in_part,
    )
    text = f"{_HEADING}\n\n{chosen.text}" if chosen.files else ""
    if not text or not room.take(estimate_tokens(text)):
        return RankedContext(step=identity)
    return _as_context(identity, text, chosen.files)


def _as_context(identity: str, text: str, chosen: Iterable[ShownCode]) -> RankedContext:
    files = {}
    in_part = {}
    shares = []
    for code in chosen:
        shares.append(PromptShare(code.name, code.tokens, code.why))
        if code.form == "outline":
            continue
        files[code.path] = code.digest
        if code.lines is not None:
            in_part[code.path] = code.lines
    return RankedContext(
        step=identity, text=text, files=files, in_part=in_part, shares=tuple(shares)
    )


def _is_unchanged(shown: ShownFiles, saved: RankedContext) -> bool:
    for path, content in saved.files.items():
        if digest(read_bytes(shown.root / path)) != content:
            return False
        if shown.reader.hidden.why(path):
            return False
    return True


def follow_failure(
    shown: ShownFiles, failure: str, missed: Collection[str], files: Collection[str]
) -> None:
    """Show code about a failure: lines of its traceback, and places in the files that
    these or the `missed` tests import. Only `files` are shown, and none that is shown
    whole already.
    """
    room = shown.room
    tokens = _MOST_AFTER_FAILURE
    if room.remaining is not None:
        tokens = min(tokens, room.remaining // 2)
    ranked = shown.search.rank_failure(
        shown.root, failure, missed, files, shown.whole_paths
    )
    chosen = choose_code(
        shown.reader,
        ranked,
        shown.search.outline,
        tokens,
        shown_whole=shown.whole_paths,
        shown_in_part=shown.in_part,
    )
    for code in chosen.files:
        if room.take(code.tokens):
            shown.show(code, code.why, added=True)
