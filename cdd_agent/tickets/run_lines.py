"""Finds commands that a step says to run, such as "Run: `pytest`"."""

import re
from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.check_reader import (
    expects_failure,
    is_check_command,
    is_expectation,
    needs_shell,
    read_check,
    read_commands,
    split_chain,
)
from cdd_agent.tickets.markdown import code_spans
from cdd_agent.tickets.text_pieces import Piece, PieceKind

_RUN_LINE = Pattern(
    r"(?:\[[ xX]\]\s*)?(?:(?:\*\*|__)[^*_`]*\b(?:run|verify|test|check)\b[^*_`]*"
    r"(?:\*\*|__)\s*[:—–-]?\s*(?:run\s+)?|(?:run|verify|test)\b\s*:?\s*)(?=`)",
    re.IGNORECASE,
)
_CHECK_WORDS = Pattern(
    r"\b(?:verif(?:y|ies|ied)|ensure|make sure|confirm|pass(?:es)?|succeeds?|green"
    r"|run)\b"
    r"|:\s*`[^`]*`\W*$",
    re.IGNORECASE,
)
_RUN_ALONE = Pattern(r"[*_]*run[*_]*:[*_]*", re.IGNORECASE)


class CommandsToRun(Struct, frozen=True):
    commands: tuple[str, ...]
    lines: tuple[int, ...]

    @property
    def is_check(self) -> bool:
        """True if the commands can decide about the step."""
        return all(map(is_check_command, self.commands))

    @property
    def is_lost(self) -> bool:
        """True if the commands may be a check that needs a shell."""
        return any(map(needs_shell, self.commands))


def find_runs(pieces: Sequence[Piece]) -> list[CommandsToRun]:
    """Return commands after or below "Run:", and in code blocks above their expected
    output, except those meant to fail.
    """
    runs = []
    is_open = False
    for position, piece in enumerate(pieces):
        below = pieces[position + 1].text if position + 1 < len(pieces) else ""
        commands = _read_commands(piece, below, is_open=is_open)
        is_expected_to_fail = expects_failure(piece.text) or expects_failure(below)
        if commands and not is_expected_to_fail:
            runs.append(CommandsToRun(tuple(commands), piece.lines))
        is_open = bool(_RUN_ALONE.fullmatch(piece.text)) or (is_open and bool(commands))
    return runs


def find_mentioned_checks(pieces: Sequence[Piece]) -> list[CommandsToRun]:
    """Return commands in sentences such as "Make sure that `make lint` passes"."""
    mentions = []
    for position, piece in enumerate(pieces):
        below = pieces[position + 1].text if position + 1 < len(pieces) else ""
        is_text = piece.kind in {PieceKind.LINE, PieceKind.ITEM}
        if not is_text or not _CHECK_WORDS.search(piece.text):
            continue
        if expects_failure(piece.text) or expects_failure(below):
            continue
        for span in code_spans(piece.text):
            if len(span.text.split()) > 1 and is_check_command(span.text):
                mentions.append(
                    CommandsToRun(tuple(split_chain(span.text)), piece.lines)
                )
    return mentions


def _read_commands(piece: Piece, below: str, *, is_open: bool) -> list[str]:
    """`is_open`: the piece is below a "Run:"."""
    check = None
    match = _RUN_LINE.match(piece.text)
    if piece.kind is PieceKind.FENCE:
        if piece.text and (is_open or is_expectation(below)):
            check = read_commands(piece.text, piece.code)
    elif piece.kind is PieceKind.ITEM and is_open:
        check = read_check(piece.text)
    elif piece.kind in {PieceKind.LINE, PieceKind.ITEM} and match:
        check = read_check(piece.text[match.end() :])
    commands: list[str] = []
    for text in check.commands if check else ():
        commands += split_chain(text)
    return commands
