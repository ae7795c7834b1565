"""No secret is told, however its text is cut into events, and whatever is told in
between.
"""

from itertools import pairwise

from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.events.action_events import ActionOutput
from cdd_agent.events.dialogue_events import ReplyDelta, ReplyFinished, ThinkingDelta
from cdd_agent.events.notices import Answer, Notice
from cdd_agent.events.shell_events import ModelChosen, ModelsFound, ScreenAsked
from cdd_agent.events.step_events import CommandOutput, StepDiff
from cdd_agent.events.stream import Event, beside_the_turn
from cdd_agent.events.ticket_events import (
    CriteriaShown,
    PlanOpened,
    SpecOpened,
    TicketsListed,
)
from cdd_agent.text.redaction import Redactor
from tests.support.tables import each_row

SECRET = "horse-battery-staple-42"
TEXT = f"before {SECRET} after"
CUTS = range(len(TEXT) + 1)
LOOKS: tuple[Event, ...] = (
    Notice("2 calls"),
    Answer("# Help"),
    ScreenAsked("help", "commands"),
    TicketsListed(()),
    SpecOpened("a", "A", "spec.yaml", ()),
    PlanOpened("a", "A", (), resumed=False),
    StepDiff(1, "A", "+new\n"),
    CriteriaShown("a", "A", ()),
    ModelsFound(()),
    ModelChosen("any/model", None),
)


def of(step: int, text: str, kind: type[Event]) -> Event:
    return kind(step, text)  # type: ignore[arg-type, call-arg]


@each_row("look", LOOKS, ids=lambda event: type(event).__name__)
@each_row("kind", [ReplyDelta, ThinkingDelta, CommandOutput, ActionOutput])
def test_a_read_only_command_does_not_end_the_stream(
    kind: type[Event], look: Event
) -> None:
    for cut in CUTS:
        told = list[Event]()
        redacted = RedactedEvents(Redactor({SECRET: "TOKEN"}), told.append)
        redacted.emit(of(1, TEXT[:cut], kind))
        with beside_the_turn():
            redacted.emit(look)
        redacted.emit(of(1, TEXT[cut:], kind))
        redacted.emit(ReplyFinished(1, None))

        assert look in told
        streamed = "".join(
            event.text
            for event in told
            if isinstance(event, kind) and not isinstance(event, Notice)
        )
        assert streamed == "before [redacted: TOKEN] after", cut


def test_a_secret_cut_anywhere_is_redacted() -> None:
    for first, second in pairwise(CUTS):
        told = list[Event]()
        redacted = RedactedEvents(Redactor({SECRET: "TOKEN"}), told.append)
        for piece in (TEXT[:first], TEXT[first:second], TEXT[second:]):
            redacted.emit(ReplyDelta(1, piece))
        redacted.emit(ReplyFinished(1, None))
        texts = [event.text for event in told if isinstance(event, ReplyDelta)]
        assert "".join(texts) == "before [redacted: TOKEN] after"
        assert isinstance(told[-1], ReplyFinished)


def test_events_of_read_only_commands_are_redacted() -> None:
    told = list[Event]()
    redacted = RedactedEvents(Redactor({SECRET: "TOKEN"}), told.append)
    redacted.emit(ReplyDelta(1, SECRET[:5]))
    with beside_the_turn():
        redacted.emit(Notice(f"it is {SECRET}"))
    assert told == [Notice("it is [redacted: TOKEN]")]
