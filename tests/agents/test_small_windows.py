"""Models that take in little: the least important is left out first and named, and nothing is sent that does not fit."""

import json
from collections.abc import Sequence

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.dialogue.room import most_of
from cdd_agent.events import Event, Notice
from cdd_agent.llm.budget import estimated_prompt
from cdd_agent.llm.port import AuthenticationFailed, ContextTooLong, ToolCall
from cdd_agent.llm.scripted import ScriptedReply
from cdd_agent.session import Session
from tests.agents.asking import TEMPLATE, asks
from tests.projects import SLUG, Sandbox

WINDOWS = [1_000, 1_500, 2_000, 2_500, 3_000, 4_096, 5_000, 6_000, 8_192, 12_000, 16_384, 32_000]
RULES = "Words are lower case.\n" * 120


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in [event async for event in handle(session, line)]]


async def tried(session: Session, *lines: str) -> tuple[list[Event], ContextTooLong | None]:
    """What happened as far as it went."""
    events: list[Event] = []
    try:
        for line in lines:
            async for event in handle(session, line):
                events.append(event)
    except ContextTooLong as error:
        return events, error
    return events, None


def left_out(events: Sequence[Event]) -> list[str]:
    notices = [event.text for event in events if isinstance(event, Notice) and event.text.startswith("Left out of")]
    return [name for text in notices for name in text.partition(": ")[2].split(", ")]


def reads(path: str) -> ScriptedReply:
    return ScriptedReply("I look.", tool_calls=(ToolCall("1", "read_file", json.dumps({"path": path})),))


@pytest.fixture
def busy(sandbox: Sandbox) -> Sandbox:
    """A project with rules, files, and other tickets."""
    sandbox.write(spec=TEMPLATE)
    (sandbox.root / "AGENTS.md").write_text(RULES)
    for number in range(30):
        (sandbox.root / f"a_file_of_the_project_{number}.py").write_text("x = 1\n" * 500)
    for number in range(5):
        (sandbox.root / "tickets" / f"bug-words-{number}").mkdir()
        (sandbox.root / "tickets" / f"bug-words-{number}" / "spec.yaml").write_text(f"title: Words are lost {number}\n")
    return sandbox


def fits(sandbox: Sandbox, window: int) -> None:
    """What each turn began with leaves room for a reply."""
    for request in sandbox.model.requests:
        is_first = request.messages[-1].role == "user"
        assert estimated_prompt(request) <= (most_of(window) if is_first else window)


# ----------------------------------------------------------------------------------------------------- Socrates


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("tool_calls", ["on", "off"])
async def test_socrates_asks_with_what_there_is_room_for(busy: Sandbox, window: int, tool_calls: str) -> None:
    busy.flags = {"context_window": window, "tool_calls": tool_calls}
    session = busy.replies(*(asks(f"Who needs word {number}? " + "Why? " * 30) for number in range(4))).session()
    events, error = await tried(session, f"/socrates {SLUG}", "Readers.", "All of them.", "Yes.")
    fits(busy, window)
    if window < 2_500:
        assert error is not None
        assert f"with a window of {window:,}" in error.message
        assert "`context_window`" in error.hint
        assert busy.model.requests == []
    else:
        assert error is None
        assert len(busy.model.requests) == 4
        assert busy.prompt().endswith("# The person says\n\nYes.")
    if window == 32_000:
        assert left_out(events) == []
    session.leave()


async def test_socrates_leaves_out_what_matters_least_and_says_so_once(busy: Sandbox) -> None:
    busy.flags = {"context_window": 4_096, "tool_calls": "on"}
    session = busy.replies(asks("Who?"), asks("Where?"), asks("When?")).session()
    events = await say(session, f"/socrates {SLUG}")
    assert "the project's rules for agents" in left_out(events)
    assert "Words are lower case" not in busy.prompt()
    assert "- the project's rules for agents" in busy.prompt()
    assert "# What to find out for a feature" in busy.prompt()
    told = left_out(events + await say(session, "Readers.", "Here."))
    assert len(told) == len(set(told))
    session.leave()


async def test_the_last_questions_go_before_older_turns(busy: Sandbox) -> None:
    busy.flags = {"context_window": 4_096, "tool_calls": "off"}
    session = busy.replies(*(asks(f"What about {name}? " + "Hm. " * 250) for name in ("A", "B", "C"))).session()
    events = await say(session, f"/socrates {SLUG}", "One.", "Two.")
    assert "What about B?" in busy.prompt()
    assert "What about A?" not in busy.prompt()
    assert "earlier turns" in left_out(events)
    session.leave()


async def test_what_tools_showed_goes_before_the_turn_is_given_up(busy: Sandbox) -> None:
    busy.flags = {"context_window": 8_192, "tool_calls": "on"}
    session = busy.replies(reads("a_file_of_the_project_1.py"), AuthenticationFailed("The key is old.")).session()
    with pytest.raises(AuthenticationFailed):
        await say(session, f"/socrates {SLUG}")
    session.leave()
    busy.flags = {"context_window": 3_000, "tool_calls": "on"}
    session = busy.replies(asks("Who?")).session()
    events = await say(session, f"/socrates {SLUG}", "")
    fits(busy, 3_000)
    assert "what the tools showed in this turn" in left_out(events)
    session.leave()
