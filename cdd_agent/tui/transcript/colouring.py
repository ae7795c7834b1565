"""Colours source code with Pygments."""

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from cdd_agent.tui.transcript.lines import Ink, Mark, clip

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

_TOKEN_INKS = {
    "Comment": "comment",
    "Keyword": "keyword",
    "Literal.Number": "number",
    "Literal.String": "string",
    "Name.Builtin": "builtin",
    "Name.Class": "name",
    "Name.Decorator": "name",
    "Name.Function": "name",
    "Name.Tag": "keyword",
    "Name.Attribute": "name",
    "Operator.Word": "keyword",
    "Generic.Deleted": "deleted",
    "Generic.Inserted": "inserted",
    "Generic.Heading": "name",
    "Generic.Subheading": "name",
}


def coloured(language: str, texts: list[str]) -> list[list[Mark]]:
    """Return the marks of each of these neighbouring lines; none for an unknown
    language.
    """
    marks: list[list[Mark]] = [[] for _ in texts]
    if (lexer := _lexer(language)) is None:
        return marks
    starts = [0]
    for text in texts:
        starts.append(starts[-1] + len(text) + 1)
    # The line in which the token begins.
    first = 0
    for begin, token, value in lexer.get_tokens_unprocessed(
        "".join(f"{text}\n" for text in texts)
    ):
        if ink := _token_ink(token):
            end = begin + len(value)
            while first < len(texts) and starts[first + 1] <= begin:
                first += 1
            for number in range(first, len(texts)):
                if starts[number] >= end:
                    break
                marks[number] += clip(
                    [(begin, end, ink)],
                    starts[number],
                    starts[number + 1] - 1,
                    -starts[number],
                )
    return marks


@cache
def _token_ink(token: tuple[str, ...]) -> Ink:
    for length in range(len(token), 0, -1):
        if ink := _TOKEN_INKS.get(".".join(token[:length])):
            return ink
    return ""


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    # late: the first screen has no code
    from pygments import lexers, util  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        return lexers.get_lexer_by_name(language)
    except util.ClassNotFound:
        return None


@lru_cache(maxsize=256)
def language_of(path: str) -> str:
    """Return the language of a file by its name; empty if it is unknown."""
    # late: the first screen has no code
    from pygments import lexers  # noqa: PLC0415

    lexer = lexers.find_lexer_class_for_filename(path.rpartition("/")[2])
    return lexer.aliases[0] if lexer is not None and lexer.aliases else ""
