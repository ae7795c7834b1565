"""Thoughts as the printers tell them."""

import json

import pytest

from cdd_agent.events import Event, ReplyDelta, ThinkingDelta, ThinkingFinished
from cdd_agent.printer import JsonPrinter, TextPrinter

THOUGHTS: tuple[Event, ...] = (
    ThinkingDelta(1, "They ", 0.0, 2),
    ThinkingDelta(1, "ask ", 0.4, 3),
    ThinkingDelta(1, "why.", 1.1, 5),
    ReplyDelta(1, "Because."),
    ThinkingFinished(1, 1.6, 1200, estimated=True),
)


def test_json_has_thoughts_by_the_second(capsys: pytest.CaptureFixture[str]) -> None:
    printer = JsonPrinter()
    for event in THOUGHTS:
        printer.show(event)

    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told[:2] == [
        {"event": "thinking_delta", "step": 1, "text": "They ask ", "seconds": 0.4, "tokens": 3},
        {"event": "thinking_delta", "step": 1, "text": "why.", "seconds": 1.1, "tokens": 5},
    ]
    assert [line["event"] for line in told[2:]] == ["reply_delta", "thinking_finished"]


def test_json_has_thoughts_that_were_broken_off(capsys: pytest.CaptureFixture[str]) -> None:
    printer = JsonPrinter()
    printer.show(THOUGHTS[0])
    assert capsys.readouterr().out == ""

    printer.close()

    assert json.loads(capsys.readouterr().out)["text"] == "They "


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (THOUGHTS[-1], "thought for 2 s, ~1,200 tokens\n"),
        (ThinkingFinished(1, None, 80, estimated=False), "thought, without showing it: 80 tokens\n"),
    ],
)
def test_people_read_one_line_about_them(event: Event, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    printer = TextPrinter()
    for told in (*THOUGHTS[:-1], event):
        printer.show(told)

    assert capsys.readouterr().out == line
