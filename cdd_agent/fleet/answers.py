"""The lines on a driven run's standard input: answers to its questions, or a request to
stop. See docs/reference/events.md.
"""

from __future__ import annotations

from msgspec import DecodeError, Struct, ValidationError, json

NOBODY = "nobody"
"""A driver's choice without a user to ask. The run then stops, as without a driver."""


class AnswerLine(
    Struct, frozen=True, tag_field="command", tag="answer", forbid_unknown_fields=True
):
    id: int
    choice: str = ""
    """One of the question's choices, or `nobody`."""
    text: str = ""
    """The text for a `text` question, or the reason for a no."""
    settings: tuple[str, ...] = ()
    """The digests of the settings to trust, with the choice `some`."""
    tokens_left: int | None = None
    """The remaining budget, with the answer to a `call`."""
    usd_left: float | None = None

    @property
    def line(self) -> bytes:
        return json.encode(self) + b"\n"


class CancelLine(
    Struct, frozen=True, tag_field="command", tag="cancel", forbid_unknown_fields=True
):
    """Stop as after Ctrl+C: restore the step's files, save the state."""


def read_input_line(line: bytes) -> AnswerLine | CancelLine:
    """Raises `ValueError` with the reason for a bad line."""
    try:
        # a line that is not UTF-8 is not JSON either
        return json.decode(line, type=AnswerLine | CancelLine)
    except (ValidationError, DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error
