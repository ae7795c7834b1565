"""Thoughts as the printers tell them."""

import json

import pytest
from msgspec.structs import replace

from cdd_agent.events.dialogue_events import (
    ReplyDelta,
    ReplyStarted,
    ThinkingDelta,
    ThinkingFinished,
)
from cdd_agent.events.notices import Notice
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    CommandOutput,
    StepStarted,
)
from cdd_agent.events.stream import Event
from cdd_agent.faces.printer import JsonPrinter, PlainPrinter, TextPrinter

THOUGHTS = (
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
        {
            "v": 1,
            "event": "thinking_delta",
            "step": 1,
            "text": "They ask ",
            "seconds": 0.4,
            "tokens": 3,
        },
        {
            "v": 1,
            "event": "thinking_delta",
            "step": 1,
            "text": "why.",
            "seconds": 1.1,
            "tokens": 5,
        },
    ]
    assert [line["event"] for line in told[2:]] == ["reply_delta", "thinking_finished"]


def test_json_has_thoughts_that_were_broken_off(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = JsonPrinter()
    printer.show(THOUGHTS[0])
    assert capsys.readouterr().out == ""

    printer.close()

    assert json.loads(capsys.readouterr().out)["text"] == "They "


def test_json_does_not_mix_the_thoughts_of_steps_that_run_side_by_side(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = JsonPrinter()
    for event in (THOUGHTS[0], replace(THOUGHTS[0], step=2), THOUGHTS[1]):
        printer.show(event)
    printer.close()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["step"], line["text"]) for line in told] == [
        (1, "They "),
        (2, "They "),
        (1, "ask "),
    ]


@pytest.mark.parametrize("printer", [TextPrinter, PlainPrinter])
def test_of_a_step_in_a_tree_of_its_own_people_read_what_they_should_know(
    printer: type[TextPrinter], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = printer()
    for event in (
        StepStarted(1, "One", 1, side_tree=True),
        StepStarted(2, "Two", 1, side_tree=True),
        ReplyStarted(2, "some model"),
        ReplyDelta(1, "beside\n"),
        ReplyDelta(2, "beside\n"),
        CommandOutput(2, "beside\n"),
        AttemptFailed(2, 1, "it is wrong", will_retry=True),
        Notice("A word.", step=2),
        StepStarted(1, "One", 1),
        ChangesApplied(1, ("a.txt",), (), ()),
        CommandOutput(2, "beside\n"),
        ChangesApplied(2, ("b.txt",), (), ()),
    ):
        shown.show(event)
    said = capsys.readouterr().out
    assert "beside\n" not in said
    assert "some model" not in said
    assert "b.txt" not in said
    assert said.splitlines()[2:] == [
        "! Step 2: Attempt 1 failed: it is wrong. Asking again.",
        "Step 2: A word.",
        "Step 1: One",
        "created a.txt",
    ]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (THOUGHTS[-1], "thought for 2 s, ~1,200 tokens\n"),
        (
            ThinkingFinished(1, None, 80, estimated=False),
            "thought (hidden by the provider): 80 tokens\n",
        ),
    ],
)
def test_people_read_one_line_about_them(
    event: Event, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = TextPrinter()
    for told in (*THOUGHTS[:-1], event):
        printer.show(told)

    assert capsys.readouterr().out == line
