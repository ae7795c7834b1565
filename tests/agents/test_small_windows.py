"""Models that take in little: what matters least is left out first and named; what does
not fit is not sent.
"""

import json
from collections.abc import Sequence

import pytest

from cdd_agent.agents.planner_prompt import SAID_BEFORE
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.questions import PLAN_TEXT
from cdd_agent.agents.socrates_prompt import TOOL_ANSWERS
from cdd_agent.commands.registry import handle
from cdd_agent.dialogue.token_budget import largest_request
from cdd_agent.events.dialogue_events import ConversationShortened
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import AuthenticationFailed, ContextTooLong, ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.project.rules import RULES_FOR_AGENTS
from cdd_agent.session.session import Session
from cdd_agent.tickets.spec import TicketSpec
from tests.agents.asking import TEMPLATE, asks
from tests.agents.test_planner import SPEC, changes, plan, step
from tests.support.listening import collect, told_to
from tests.support.projects import SLUG, Sandbox, Step
from tests.support.tables import each_row

WISHES = [f"Make it version {number}." for number in range(6)]
NEW_WORDS = "very best words"
QUESTION = "What do they say?"

WINDOWS = [1_000, 1_500, 2_000, 2_500, 3_000, 4_096, 6_500, 8_192, 32_000]
RULE = "Words are lower case."
RULES = f"{RULE}\n" * 120


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


async def tried(
    session: Session, *lines: str
) -> tuple[list[Event], ContextTooLong | None]:
    """The events, as far as it went."""
    events: list[Event] = []
    try:
        with told_to(events.append):
            for line in lines:
                await handle(session, line)
    except ContextTooLong as error:
        return events, error
    return events, None


def left_out(events: Sequence[Event]) -> list[str]:
    notices = [
        event.text
        for event in events
        if isinstance(event, Notice) and event.kind is NoticeKind.NOT_SENT
    ]
    return [name for text in notices for name in text.partition(": ")[2].split(", ")]


def reads(path: str) -> ScriptedReply:
    return ScriptedReply(
        "I look.", tool_calls=(ToolCall("1", "read_file", json.dumps({"path": path})),)
    )


@pytest.fixture
def busy(sandbox: Sandbox) -> Sandbox:
    """A project with rules, files, and other tickets."""
    sandbox.write(spec=TEMPLATE)
    (sandbox.root / "AGENTS.md").write_text(RULES)
    for number in range(30):
        (sandbox.root / f"a_file_of_the_project_{number}.py").write_text(
            "x = 1\n" * 500
        )
    for number in range(5):
        (sandbox.root / "tickets" / f"bug-words-{number}").mkdir()
        (sandbox.root / "tickets" / f"bug-words-{number}" / "spec.yaml").write_text(
            f"title: Words are lost {number}\n"
        )
    return sandbox


def fits(sandbox: Sandbox, window: int) -> None:
    """The window holds every request, and where one leaves little room for the reply,
    all that may be left out is.
    """
    for request in sandbox.model.requests:
        size = estimate_prompt(request)
        assert size <= window
        if (
            size > largest_request(window)
            and "Sum up a conversation" not in request.messages[0].content
        ):
            assert (
                request.messages[-1].role == "tool"
                or "Words are lower case." not in request.messages[0].content
            )


# ----------------------------------------------------------------------------- Socrates


@each_row("window", WINDOWS, most=5)
@each_row("tool_calls", ["on", "off"], is_sparse=True)
async def test_socrates_fits_his_requests_into_every_window(
    busy: Sandbox, window: int, tool_calls: str
) -> None:
    busy.flags = {"context_window": window, "tool_calls": tool_calls}
    session = busy.replies(
        *(
            asks(
                f"Who needs word {number}? " + "Why? " * 30,
                answered=[f"q{number}"] * (number > 0),
            )
            for number in range(4)
        )
    ).session()
    events, error = await tried(
        session, f"/socrates {SLUG}", "Readers.", "All of them.", "Yes."
    )
    fits(busy, window)
    if window < 2_000:
        assert error is not None
        assert f"{window:,}" in error.message
        assert "`context_window`" in error.hint
        assert busy.model.requests == []
    else:
        assert error is None
        assert len(busy.model.requests) == 4
        assert busy.prompt().endswith("\n\nYes.")
    if window == 32_000:
        assert left_out(events) == []
    session.leave()


async def test_socrates_drops_the_least_important_part_and_reports_it_once(
    busy: Sandbox,
) -> None:
    busy.flags = {"context_window": 4_096, "tool_calls": "on"}
    session = busy.replies(asks("Who?"), asks("Where?"), asks("When?")).session()
    events = await say(session, f"/socrates {SLUG}")
    assert RULES_FOR_AGENTS in left_out(events)
    assert RULE not in busy.prompt()
    assert f"- {RULES_FOR_AGENTS}" in busy.prompt()
    assert load_prompt(busy.root, "socrates-feature") in busy.prompt()
    told = left_out(events + await say(session, "Readers.", "Here."))
    assert len(told) == len(set(told))
    session.leave()


async def test_older_turns_are_dropped_before_the_last_questions(busy: Sandbox) -> None:
    busy.flags = {"context_window": 4_096, "tool_calls": "off"}
    session = busy.replies(
        *(
            asks(f"What about {name}? " + "Hm. " * 250, answered=answered)
            for name, answered in (("A", []), ("B", ["q1"]), ("C", ["q2"]))
        )
    ).session()
    events = await say(session, f"/socrates {SLUG}", "One.", "Two.")
    assert "What about B?" in busy.prompt()
    assert "What about A?" not in busy.prompt()
    assert "One." in busy.prompt()
    assert "earlier turns" in left_out(events)
    session.leave()


async def test_tool_results_are_dropped_before_a_turn_fails(
    busy: Sandbox,
) -> None:
    busy.flags = {"context_window": 8_192, "tool_calls": "on"}
    session = busy.replies(
        reads("a_file_of_the_project_1.py"), AuthenticationFailed("The key is old.")
    ).session()
    with pytest.raises(AuthenticationFailed):
        await say(session, f"/socrates {SLUG}")
    session.leave()
    busy.flags = {"context_window": 3_000, "tool_calls": "on"}
    session = busy.replies(asks("Who?")).session()
    events = await say(session, f"/socrates {SLUG}", "")
    fits(busy, 3_000)
    assert TOOL_ANSWERS in left_out(events)
    session.leave()


# --------------------------------------------------------------------------------- chat


@each_row("window", WINDOWS, most=5)
@each_row("tool_calls", ["on", "off"], is_sparse=True)
async def test_chat_continues_in_a_small_window(
    busy: Sandbox, window: int, tool_calls: str
) -> None:
    busy.flags = {"context_window": window, "tool_calls": tool_calls}
    session = busy.replies(
        *(f"Answer {number}. " + "So. " * 40 for number in range(40))
    ).session()
    lines = [f"Question {number}: " + "why? " * 20 for number in range(9)]
    events, error = await tried(session, *lines)
    fits(busy, window)
    assert error is None
    assert "Question 8" in busy.prompt()
    if window != 2_500:  # by a hair: in words they take more
        assert ("the tools" in left_out(events)) is (window < 2_500)
    if window <= 3_000:
        assert any(isinstance(event, ConversationShortened) for event in events)
    asked = [
        request
        for request in busy.model.requests
        if "Sum up a conversation" in request.messages[0].content
    ]
    assert len(asked) <= len(lines)


async def test_chat_reports_dropped_rules_and_listing(busy: Sandbox) -> None:
    busy.flags = {"context_window": 4_096, "tool_calls": "on"}
    events = await say(busy.replies("Hello.", "Again.").session(), "hi", "hi")
    assert RULES_FOR_AGENTS in left_out(events)
    assert f"- {RULES_FOR_AGENTS}" in busy.prompt()
    assert {tool.name for tool in busy.model.requests[0].tools} >= {
        "read_file",
        "list_files",
    }


async def test_chat_reads_a_long_file_in_parts_and_its_line_is_answered(
    busy: Sandbox,
) -> None:
    busy.flags = {"context_window": 6_000, "tool_calls": "on"}
    looks = (reads("a_file_of_the_project_1.py"), reads("a_file_of_the_project_2.py"))
    busy.replies(*looks, "They were read.", "Both have x.", "Both.")
    events = await say(busy.session(), QUESTION)
    fits(busy, 6_000)
    assert QUESTION in busy.prompt()
    assert events


# -------------------------------------------------------------------------- the Planner


COMPLETE = (
    "title: Say words\n"
    "description: The files say the right words.\n"
    "acceptance_criteria:\n"
    "  - a.txt says good\n"
)


@pytest.fixture
def specified(busy: Sandbox) -> Sandbox:
    (busy.ticket / "spec.yaml").write_text(COMPLETE)
    (busy.ticket / "plan.md").unlink()
    return busy


@each_row("window", WINDOWS, most=5)
@each_row("tool_calls", ["on", "off"], is_sparse=True)
async def test_the_planner_fits_its_requests_into_every_window(
    specified: Sandbox, window: int, tool_calls: str
) -> None:
    specified.flags = {"context_window": window, "tool_calls": tool_calls}
    session = specified.replies(plan(step(1, "a.txt"))).session()
    events, error = await tried(session, f"/plan {SLUG}", "approve")
    fits(specified, window)
    if window <= 2_000:
        assert error is not None
        assert "`context_window`" in error.hint
        assert specified.model.requests == []
        assert not (specified.root / ".cdd" / "runs" / SLUG / "planning.json").exists()
    else:
        assert error is None
        assert (specified.ticket / "plan.md").exists()
        assert (RULES_FOR_AGENTS in left_out(events)) is (window <= 4_096)
    session.leave()


async def test_many_wishes_do_not_fill_the_window_and_all_stay(
    specified: Sandbox,
) -> None:
    specified.flags = {"context_window": 5_500, "tool_calls": "on"}
    wordy = [
        changes(
            steps=[step(1, "a.txt", description=f"Version {number}. " + "So. " * 200)]
        )
        for number in range(6)
    ]
    session = specified.replies(
        plan(step(1, "a.txt")), reads("a_file_of_the_project_1.py"), *wordy
    ).session()
    events = await say(session, f"/plan {SLUG}", *WISHES)
    fits(specified, 5_500)
    assert specified.prompt().rpartition("# ")[2].endswith(f"\n\n{WISHES[5]}")
    assert TicketSpec.from_yaml(COMPLETE).acceptance_criteria[0] in specified.prompt()
    assert [wish in specified.prompt() for wish in WISHES] == [True] * len(WISHES)
    assert "Version 0" not in specified.prompt()
    assert SAID_BEFORE in left_out(events)
    session.leave()


async def test_a_changed_spec_stays_when_earlier_turns_are_dropped(
    specified: Sandbox,
) -> None:
    specified.flags = {"context_window": 6_000, "tool_calls": "on"}
    wordy = [
        changes(
            steps=[step(1, "a.txt", description=f"Version {number}. " + "So. " * 200)]
        )
        for number in range(6)
    ]
    session = specified.replies(plan(step(1, "a.txt")), *wordy).session()
    await say(session, f"/plan {SLUG}")
    (specified.ticket / "spec.yaml").write_text(
        COMPLETE.replace("right words", NEW_WORDS)
    )
    await say(session, *WISHES)
    assert "Version 0" not in specified.prompt()
    assert WISHES[0] in specified.prompt()
    assert NEW_WORDS in specified.prompt()
    session.leave()


async def test_the_planner_drops_the_oldest_words_last(specified: Sandbox) -> None:
    specified.flags = {"context_window": 5_500, "tool_calls": "off"}
    wordy = [f"Wish {number}. {'So be it. ' * 90}" for number in range(12)]
    replies = [changes(steps=[step(1, "a.txt", title=f"T{n}")]) for n in range(12)]
    session = specified.replies(plan(step(1, "a.txt")), *replies).session()
    await say(session, f"/plan {SLUG}", *wordy)
    fits(specified, 5_500)
    kept = [f"Wish {number}." in specified.prompt() for number in range(12)]
    assert kept == sorted(kept)
    assert not kept[0]
    assert sum(kept) > 1
    session.leave()


# ---------------------------------------------------------------- questions about a run


@each_row("window", WINDOWS, most=5)
async def test_a_question_about_a_run_fits_into_every_window(
    busy: Sandbox, window: int
) -> None:
    busy.write(Step("a.txt", description="Write good. " * 300), spec=COMPLETE)
    busy.flags = {"context_window": window, "tool_calls": "on"}
    session = busy.replies("Nothing yet.", "Still nothing.").session()
    events, error = await tried(session, f"/exec {SLUG}", "what was done?", "and now?")
    fits(busy, window)
    assert error is None
    assert "Make a.txt" in busy.prompt()
    assert (PLAN_TEXT in left_out(events)) is (window < 3_000)
    session.leave()


# ----------------------------------------------------------------- windows nobody knows


async def test_the_planner_lists_all_files_for_an_unknown_window(
    sandbox: Sandbox,
) -> None:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    for number in range(150):
        (sandbox.root / f"{'a' * 200}{number}.py").touch()
    await say(sandbox.replies(plan()).session(), f"/plan {SLUG}")
    assert "a149.py" in sandbox.prompt()


async def test_a_long_file_is_attached_completely_for_an_unknown_window(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / "long.txt").write_text("word\n" * 9_000)
    await say(sandbox.replies("Yes.").session(), "What is in @long.txt?")
    assert sandbox.prompt().count("word") >= 9_000
