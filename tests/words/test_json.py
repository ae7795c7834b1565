"""`--json` has no sentences of its own: a script goes by names, numbers and states, and
so it can.
"""

import json
import re
from enum import StrEnum

import pytest

from cdd_agent.events.base_event import event_name
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Event, to_json
from cdd_agent.faces.printer import JsonPrinter
from tests.support.tables import each_row
from tests.words.examples import RUN


def test_a_run_is_its_events_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    printer = JsonPrinter()
    for event in RUN:
        printer.show(event)
    printer.close()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [json.loads(json.dumps(to_json(event))) for event in RUN]
    assert [line["event"] for line in lines] == [
        *(
            "plan_opened",
            "baseline_taken",
            "step_started",
            "reply_started",
            *("tool_finished",) * 4,
        ),
        *(
            "reply_finished",
            "changes_applied",
            "tests_started",
            "tests_finished",
            "attempt_failed",
        ),
        *(
            "changes_put_back",
            "step_started",
            "tests_started",
            "tests_finished",
            "step_finished",
            "step_committed",
        ),
        *("tests_finished", "step_finished", "run_finished"),
    ]


@each_row("event", RUN, ids=lambda event: type(event).__name__)
def test_nothing_is_said_that_the_event_does_not_hold(event: Event) -> None:
    told = to_json(event)
    assert told.pop("event") == event_name(type(event).__name__)
    assert told.pop("v") == 1
    assert tuple(told) == event.__struct_encode_fields__


def test_a_notice_says_what_it_is_about() -> None:
    told = to_json(Notice("The plan was edited.", Tone.WARNING, NoticeKind.PLAN_EDITED))
    assert told == {
        "v": 1,
        "event": "notice",
        "text": "The plan was edited.",
        "tone": "warning",
        "kind": "plan_edited",
        "step": None,
    }


@each_row("names", [NoticeKind, Tone])
def test_names_are_words_for_scripts(names: type[StrEnum]) -> None:
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names)
