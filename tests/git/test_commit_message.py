"""A commit's message: whatever its parts are, it is one subject, a body, and one
trailer.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.git.commit_message import CommitMessage, carries

UNSHOWN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]|[ \t]$|^(---|#|diff -)", re.MULTILINE
)

TRAILER = "Cdd-Step: feature-words/2"
LINES = [
    "Cdd-Step: feature-words/9",
    "cdd-step : x",
    TRAILER,
    "---",
    "# no",
    "diff --git a/a b/a",
    "",
    " ",
    "words",
]
TEXTS = st.text() | st.lists(st.sampled_from(LINES) | st.text(), max_size=8).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n", "\r", "\x0b", "\u2028", "\x00"]).map(
        lambda end: end.join(lines)
    )
)


@given(TEXTS, TEXTS)
def test_no_text_is_taken_for_the_trailer(subject: str, body: str) -> None:
    message = CommitMessage(subject, body, TRAILER)
    lines = message.text.split("\n")
    assert lines[-3:] == ["", TRAILER, ""]
    assert [
        line for line in lines if re.match(r"cdd-step\s*:", line, re.IGNORECASE)
    ] == [TRAILER]
    assert carries(message.text, TRAILER)
    assert not carries(message.text, LINES[0])


@given(TEXTS, TEXTS)
def test_a_message_is_a_subject_and_text_that_any_tool_shows(
    subject: str, body: str
) -> None:
    text = CommitMessage(subject, body, TRAILER).text
    first, second, *_ = text.split("\n")
    assert 0 < len(first) <= 72
    assert second == ""
    assert "\n\n\n" not in text
    assert not UNSHOWN.search(text)
    assert text.encode().decode().splitlines() == text.split("\n")[:-1]


def test_a_subject_is_one_line_of_up_to_72_characters() -> None:
    assert (
        CommitMessage("  Create\nit\t   ", "", TRAILER).text
        == f"Create it\n\n{TRAILER}\n"
    )
    assert CommitMessage("", "", TRAILER).first_line == "(no title)"
    assert CommitMessage("x" * 73, "", TRAILER).first_line == "x" * 71 + "…"
    assert CommitMessage(TRAILER, "", TRAILER).first_line == f"“{TRAILER}”"


def test_a_body_keeps_its_lines() -> None:
    body = (
        "\n\n"
        "One line.  \n\n\n\n"
        "- a list\n"
        "    code\n"
        "Note: this stays.\n"
        "# this is no comment\n"
    )
    kept = (
        "One line.\n\n- a list\n    code\nNote: this stays.\n    # this is no comment"
    )
    assert (
        CommitMessage("Subject", body, TRAILER).text
        == f"Subject\n\n{kept}\n\n{TRAILER}\n"
    )


@pytest.mark.parametrize(
    "trailer", ["", "words", "Key:", ": value", "Key:value", "two words: x"]
)
def test_a_trailer_has_a_key_and_a_value(trailer: str) -> None:
    with pytest.raises(ValueError, match="a trailer is"):
        CommitMessage("Subject", "", trailer)


def test_a_trailer_is_one_line() -> None:
    message = CommitMessage("Subject", "", "Cdd-Step: one\nSigned-off-by: Eve")
    *_, last = message.text.splitlines()
    assert last.split() == message.trailer.split()
    assert carries(message.text, message.trailer)
