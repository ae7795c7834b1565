"""Compaction: what replaces the older part of a conversation, and that what the user
decided stays.
"""

import asyncio
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.agents.compaction import (
    LONGEST_LINE,
    Room,
    can_compact,
    choose_lines,
    compact,
    describe_older_part,
    divide,
    shorten,
)
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.store import read_conversation
from cdd_agent.commands.registry import handle
from cdd_agent.dialogue.token_budget import largest_request
from cdd_agent.errors import BudgetExhausted
from cdd_agent.events.dialogue_events import (
    ConversationShortened,
    ReplyDelta,
    ReplyStarted,
)
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.stream import Event, SessionRestored, ignore_event
from cdd_agent.llm.port import (
    AuthenticationFailed,
    ContextTooLong,
    Message,
    Request,
    StopReason,
    ToolCall,
)
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.session.session import Session
from tests.support.listening import collect, stop_at
from tests.support.projects import Sandbox, noticed
from tests.support.tables import each_row

DECISION = "Never touch billing.py!"
SUMMARY = (
    "The developer wants a report of the tally. It was found that `report.py` rounds"
    " 12.50 to 12.5; nothing was changed yet, and the tests still have to be run."
)
NEXT = "and now?"
FULL = 0
"""The window that `filled` makes: the next line compacts the conversation."""
CALL = ToolCall("1", "read_file", json.dumps({"path": "a.txt"}))


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    (sandbox.root / ".cdd").mkdir()
    sandbox.flags = {"tool_calls": "on"}
    return sandbox


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


async def filled(
    project: Sandbox, *script: object, window: int | None = FULL
) -> Session:
    """A conversation that the next line compacts, with the script that follows."""
    if window == FULL:
        window = await full_window(project)
    replies = [f"{word} " * 850 for word in ("one", "two", "six")]
    project.model = ScriptedModel([*replies, *script], window=window)  # type: ignore[list-item]
    session = project.session()
    await say(session, DECISION, "second", "third")
    return session


async def full_window(project: Sandbox) -> int:
    """The window of which the instructions, the tools and the replies above leave no
    room for another line.
    """
    await say(project.replies("Yes.").session(), "Hello?")
    taken = estimate_prompt(project.model.requests[0])
    shutil.rmtree(project.root / ".cdd" / "conversations")
    return (taken + 3_250) * 8 // 5


def shortened(events: list[Event]) -> list[ConversationShortened]:
    return [event for event in events if isinstance(event, ConversationShortened)]


def answered(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReplyDelta))


def prompt_of(project: Sandbox) -> str:
    """The messages that the model got last, without the instructions."""
    messages = project.model.requests[-1].messages[1:]
    return "\n\n".join(message.content for message in messages)


def requests_for_summaries(project: Sandbox) -> list[Request]:
    title = load_prompt(project.root, "compaction").partition("\n")[0]
    return [
        request
        for request in project.model.requests
        if request.messages[0].content.startswith(title)
    ]


async def test_a_summary_and_the_user_s_lines_replace_the_older_part(
    project: Sandbox,
) -> None:
    session = await filled(project, SUMMARY, "Four.")
    events = await say(session, NEXT)
    assert shortened(events) == [ConversationShortened(4, 2, True, SUMMARY, "")]
    assert answered(events) == "Four."
    (request,) = requests_for_summaries(project)
    assert DECISION in request.messages[1].content
    assert "one one" in request.messages[1].content
    _, first, *others = project.model.requests[-1].messages
    summary, heading, *lines = first.content.rsplit("\n\n", 4)
    assert SUMMARY in summary
    assert heading.startswith("# ")
    assert lines == [DECISION, "second", "third"]
    assert [message.content[:9] for message in others] == ["six six s", NEXT]


BAD_SUMMARIES: dict[str, object] = {
    "a word": "OK",
    "a sentence": "We talked about the project and some files.",
    "empty": "",
    "blank": " \n\n ",
    "thoughts only": ScriptedReply(thinking=SUMMARY),
    "a call of a tool": ScriptedReply("I look.", tool_calls=(CALL,)),
    "a refusal": "I'm sorry, but I can't help with summing up this conversation. " * 2,
    "headings without content": (
        "# Decisions\n\nNone.\n\n# Findings\n\n- No prior history.\n\n# Changes\n\nN/A"
        "\n\n# Open\n\n- Nothing.\n\n# Names in this part of the conversation\n\nNone"
    ),
    "cut": ScriptedReply(SUMMARY, stop=StopReason.LENGTH),
    "stopped by a filter": ScriptedReply(SUMMARY, stop=StopReason.REFUSED),
    "a part of the conversation": "one " * 500,
}


@each_row("bad", [*BAD_SUMMARIES.values(), None], ids=[*BAD_SUMMARIES, "the prompt"])
async def test_an_unusable_summary_is_refused_and_the_lines_stay(
    project: Sandbox, bad: object
) -> None:
    bad = load_prompt(project.root, "compaction") if bad is None else bad
    again = replace(bad) if isinstance(bad, ScriptedReply) else bad
    session = await filled(project, bad, again, "Four.")
    (event,) = shortened(await say(session, NEXT))
    assert event.problem
    assert event.summary == ""
    assert len(requests_for_summaries(project)) == 2
    if event.problem != "is empty":
        assert event.problem in requests_for_summaries(project)[1].messages[1].content
    prompt = prompt_of(project)
    assert [word in prompt for word in (DECISION, "second", "one one")] == [
        *(True, True, False)
    ]
    assert prompt.endswith(NEXT)
    # The saved conversation still has all messages.
    (file,) = (project.root / ".cdd" / "conversations").glob("*.jsonl")
    assert "one one" in file.read_text()


async def test_a_second_summary_is_accepted(project: Sandbox) -> None:
    session = await filled(project, "OK", SUMMARY, "Four.")
    (event,) = shortened(await say(session, NEXT))
    assert (event.summary, event.problem) == (SUMMARY, "")


async def test_a_very_long_summary_is_cut(project: Sandbox) -> None:
    session = await filled(project, "begin " + "word " * 10_000 + "end", "Four.")
    (event,) = shortened(await say(session, NEXT))
    assert event.problem == ""
    assert len(event.summary) < 3_000
    assert event.summary.startswith("begin ")
    assert event.summary.endswith(" end")


async def test_an_unusable_summary_keeps_the_former_one(project: Sandbox) -> None:
    script = (SUMMARY, "Four.", "ten " * 850, "six " * 850, "OK", "OK", "Seven.")
    session = await filled(project, *script)
    await say(session, NEXT, "fifth", "sixth")
    (event,) = shortened(await say(session, "seventh"))
    assert event.problem
    assert SUMMARY in prompt_of(project)


async def test_two_compactions_keep_the_lines_of_the_first(project: Sandbox) -> None:
    later = f"{SUMMARY} Then the numbers were counted up to six, one after the other."
    script = (SUMMARY, "Four.", "ten " * 850, "six " * 850, later, "Seven.")
    session = await filled(project, *script)
    events = await say(session, NEXT, "fifth", "sixth", "seventh")
    assert [event.summary for event in shortened(events)] == [SUMMARY, later]
    prompt = prompt_of(project)
    lines = (DECISION, "second", "third", NEXT, "fifth", "sixth", "seventh")
    places = [prompt.index(line) for line in lines]
    assert places == sorted(places)
    assert prompt.count(DECISION) == 1
    assert prompt.count("# My own lines") == 1


async def test_the_next_turns_do_not_compact_again(project: Sandbox) -> None:
    session = await filled(project, SUMMARY, *["An answer. " * 20] * 12)
    events = await say(session, *(f"Question {number}?" for number in range(12)))
    assert len(shortened(events)) == 1


async def test_a_resumed_conversation_shows_its_summary_and_keeps_the_lines(
    project: Sandbox,
) -> None:
    session = await filled(project, SUMMARY, "Four.")
    await say(session, NEXT)
    again = project.replies("Five.").session()
    events = await say(again, "/resume", "fifth")
    (restored,) = [event for event in events if isinstance(event, SessionRestored)]
    (summary,) = shortened(list(restored.events))
    assert SUMMARY in summary.summary
    said = [event.text for event in restored.events if isinstance(event, PersonSaid)]
    assert said == [DECISION, "second", "third", NEXT]
    assert DECISION in prompt_of(project)
    assert SUMMARY in prompt_of(project)


async def test_a_command_shows_what_replaces_the_older_part(project: Sandbox) -> None:
    session = await filled(project, SUMMARY, "Four.")
    assert noticed(await say(session, "/conversation")) == []
    await say(session, NEXT)
    (answer,) = await say(session, "/conversation")
    assert isinstance(answer, Answer)
    assert SUMMARY in answer.text
    assert DECISION in answer.text
    assert "six six see" not in answer.text


async def test_escape_during_compaction_changes_nothing(project: Sandbox) -> None:
    session = await filled(project, ScriptedReply(SUMMARY, slow=0.01), SUMMARY, "Four.")
    before = len(project.model.requests)
    await stop_at(
        handle(session, NEXT),
        lambda event: (
            isinstance(event, ReplyStarted)
            and len(project.model.requests) == before
            and event.prompt_tokens > 0
        ),
    )
    (file,) = (project.root / ".cdd" / "conversations").glob("*.jsonl")
    contents = [message.content for message in read_conversation(file)[0]]
    assert contents[0] == DECISION
    assert contents[-1] == NEXT
    assert "one one" in contents[1]
    (event,) = shortened(await say(session, "go on"))
    assert event.summary == SUMMARY


async def test_an_error_changes_nothing_and_the_turn_goes_on(project: Sandbox) -> None:
    session = await filled(project, AuthenticationFailed("It is down."), "Four.")
    events = await say(session, NEXT)
    assert noticed(events) == [NoticeKind.NOT_DONE]
    assert answered(events) == "Four."
    assert "one one" in prompt_of(project)


async def test_an_error_is_raised_if_the_conversation_must_be_shorter(
    project: Sandbox,
) -> None:
    errors = ContextTooLong("It is too long."), AuthenticationFailed("It is down.")
    session = await filled(project, *errors, window=14_000)
    with pytest.raises(AuthenticationFailed):
        await say(session, NEXT)


async def test_a_conversation_too_long_for_its_own_summary_is_cut(
    project: Sandbox,
) -> None:
    too_long = ContextTooLong("It is too long.")
    session = await filled(project, too_long, too_long, "Four.", window=None)
    events = await say(session, NEXT)
    assert [event.summary for event in shortened(events)] == [""]
    assert answered(events) == "Four."
    assert DECISION in prompt_of(project)


async def test_a_budget_ends_the_turn_and_changes_nothing(project: Sandbox) -> None:
    session = await filled(project, SUMMARY, "Four.")
    session.leave()
    project.flags["budget"] = {"tokens": 1_000}
    project.model = ScriptedModel([SUMMARY, "Four."], window=9_000)
    limited = project.session()
    with pytest.raises(BudgetExhausted):
        await say(limited, "/resume", NEXT)
    assert project.model.requests == []
    assert await say(limited, "/conversation") == [
        Notice("The model receives the whole conversation.")
    ]


async def test_a_line_larger_than_the_window_is_refused_unsent(
    project: Sandbox,
) -> None:
    session = await filled(project, "Never.")
    before = len(project.model.requests)
    with pytest.raises(ContextTooLong) as error:
        await say(session, "long " * 7_900)
    assert "`context_window`" in error.value.hint
    assert len(project.model.requests) == before


async def test_a_large_line_makes_room_for_itself(project: Sandbox) -> None:
    session = await filled(project, SUMMARY, "Four.")
    events = await say(session, "long " * 2_900)
    assert len(shortened(events)) == 1
    assert answered(events) == "Four."
    assert DECISION in prompt_of(project)


async def test_a_window_of_2_000_tokens_keeps_the_decision(project: Sandbox) -> None:
    replies = [f"Answer {number}. " + "So it is. " * 12 for number in range(60)]
    project.model = ScriptedModel(replies, window=2_000)
    session = project.session()
    lines = [f"Question {number}?" for number in range(14)]
    events = await say(session, DECISION, *lines)
    assert shortened(events)
    assert DECISION in prompt_of(project)
    turns = len(lines) + 1
    assert len(requests_for_summaries(project)) < turns / 2


async def test_the_configured_window_decides_when_to_compact(
    project: Sandbox,
) -> None:
    project.flags["context_window"] = await full_window(project)
    session = await filled(project, SUMMARY, "Four.", window=None)
    assert len(shortened(await say(session, NEXT))) == 1


async def test_a_request_refused_as_too_long_is_sent_again_once(
    project: Sandbox,
) -> None:
    too_long = ContextTooLong("The model takes 4,000 tokens.")
    session = await filled(project, too_long, SUMMARY, "Four.", window=14_000)
    events = await say(session, NEXT)
    assert answered(events) == "Four."
    assert SUMMARY in prompt_of(project)
    script = too_long, SUMMARY, too_long, "Never."
    session = await filled(project, *script, window=14_000)
    with pytest.raises(ContextTooLong):
        await say(session, NEXT)


@each_row("tool_calls", ["on", "off"])
async def test_a_turn_compacts_its_own_results_and_keeps_its_line(
    project: Sandbox, tool_calls: str
) -> None:
    (project.root / "big.txt").write_text("word " * 3_000)
    project.flags = {"tool_calls": tool_calls}
    reads = ScriptedReply(
        tool_calls=(replace(CALL, arguments=json.dumps({"path": "big.txt"})),)
    )
    if tool_calls == "off":
        reads = ScriptedReply(
            '```tool\n{"tool": "read_file", "arguments": {"path": "big.txt"}}\n```'
        )
    script = reads, replace(reads), SUMMARY, "Words."
    project.model = ScriptedModel(script, window=7_000)
    events = await say(project.session(), DECISION)
    assert len(shortened(events)) == 1
    assert answered(events).endswith("Words.")
    assert DECISION in prompt_of(project)
    assert SUMMARY in prompt_of(project)
    (file,) = (project.root / ".cdd" / "conversations").glob("*.jsonl")
    assert DECISION in [message.content for message in read_conversation(file)[0]]


# The rules, without a model


def typed(text: str) -> Message:
    return Message("user", text, is_typed=True)


def size(*messages: Message) -> int:
    return estimate_prompt(Request(messages))


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.content for message in messages]


def test_decisions_are_kept_before_pasted_texts_and_are_never_shortened() -> None:
    paste = "begin" + "x" * 5_000 + "end"
    decisions = [typed(f"Decision {number}. " + "y" * 900) for number in range(4)]
    older = (decisions[0], typed(paste), *decisions[1:])
    assert texts(choose_lines(older, 10_000))[1].startswith("begin")
    assert texts(choose_lines(older, 10_000))[1].endswith("end")
    assert len(texts(choose_lines(older, 10_000))[1]) <= LONGEST_LINE
    kept = choose_lines(older, 10_000)
    assert choose_lines(kept, 10_000) == kept, "a paste is shortened once"
    assert choose_lines(older, size(*decisions) + 99) == tuple(decisions)
    assert choose_lines(older, size(*decisions[2:])) == tuple(decisions[2:])


@given(text=st.text(max_size=300), most=st.integers(0, 300))
def test_a_shortened_text_has_its_beginning_and_its_end(text: str, most: int) -> None:
    short = shorten(text, most)
    head, note, tail = short.partition(" characters left out) …\n")
    if not note:
        assert short == text
        assert len(text) <= most
        return
    head, _, omitted = head.rpartition("\n… (")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(omitted) == len(text) - len(head) - len(tail) > 0
    assert len(short) <= max(most, len(shorten("x" * len(text), 0)))


def test_a_second_compaction_says_that_lines_of_the_first_are_missing(
    tmp_path: Path,
) -> None:
    lines = [typed(f"Decision {number}. " + "y" * 300) for number in range(40)]
    rows = " ".join(f"Row {number} of the tally is wrong." for number in range(9))
    later = f"{SUMMARY} {rows} Then the numbers were counted, one after the other."
    model = ScriptedModel([f"{rows} {SUMMARY}", later])
    events: list[Event] = []
    messages: tuple[Message, ...] = tuple(lines)
    for window in (3_000, 8_000):
        model.window = window
        room = Room.for_model(model, 300)
        latest = typed("And now?")
        more = (Message("assistant", "An answer. " * 3_000), latest)
        messages = asyncio.run(
            compact(tmp_path, model, messages + more, latest, room, emit=events.append)
        )
    assert [event.has_all_lines for event in shortened(events)] == [False, False]


def test_only_typed_lines_are_kept_each_once_and_without_files() -> None:
    older = (
        typed("yes"),
        Message("assistant", "Done."),
        Message("user", "I ran a command of my own in the project:\n\n…"),
        typed("see @a.py\n\n# What the message mentions, as it is now\n\na.py:\n…"),
        typed("yes"),
    )
    assert texts(choose_lines(older, 1_000)) == ["see @a.py", "yes"]


ROLES = st.sampled_from(["typed", "user", "assistant", "tool"])


@st.composite
def conversations(draw: Callable[..., object]) -> tuple[Message, ...]:
    parts = draw(st.lists(st.tuples(ROLES, st.integers(0, 3_000)), max_size=40))
    messages = []
    for number, (role, length) in enumerate(parts):  # type: ignore[arg-type, var-annotated]
        text = f"{number} " + "w" * length
        if role == "typed":
            messages.append(typed(text))
        elif role == "tool":
            call = replace(CALL, id=str(number))
            messages.append(Message("assistant", "", (call,)))
            messages.append(Message("tool", text, tool_call_id=call.id))
        else:
            messages.append(Message(role, text))
    return tuple(messages)


@given(
    messages=conversations(),
    latest_size=st.integers(0, 4_000),
    window=st.integers(1_000, 30_000),
    taken_share=st.integers(5, 60),
    summary=st.sampled_from(["OK", SUMMARY, SUMMARY * 30, "word " * 10_000]),
    must=st.booleans(),
    place=st.integers(0, 40),
)
def test_compaction_makes_room_for_the_next_turns(
    tmp_path_factory: pytest.TempPathFactory,
    messages: tuple[Message, ...],
    latest_size: int,
    window: int,
    taken_share: int,
    summary: str,
    must: bool,
    place: int,
) -> None:
    latest = typed("latest " + "w" * latest_size)
    while 0 < place < len(messages) and messages[place].role == "tool":
        place += 1
    messages = (*messages[:place], latest, *messages[place:])
    model = ScriptedModel([summary, summary], window=window)
    room = Room.for_model(model, window * taken_share // 100)
    if not can_compact(messages, latest, room, must=must):
        return
    root = tmp_path_factory.getbasetemp()
    work = compact(root, model, messages, latest, room, ignore_event, must=must)
    after = asyncio.run(work)
    before = [message for message in messages if message is not latest]
    others = [message for message in after if message is not latest]
    assert sum(message is latest for message in after) == 1
    assert size(*others) < size(*before)
    shared = room.for_messages(messages, latest, must=must)
    assert size(*others) <= max(shared * 3 // 4, 100)
    if not must and shared > 200:
        free = room.full - room.taken - size(*after)
        assert free >= shared // 4 - 9
    for request in model.requests:
        assert estimate_prompt(request) <= largest_request(window)
    calls = {call.id for message in after for call in message.tool_calls}
    assert calls == {m.tool_call_id for m in after if m.role == "tool"}
    assert describe_older_part(after)
    if can_compact(after, latest, room, must=True):
        model = ScriptedModel([summary, summary], window=window)
        work = compact(root, model, after, latest, room, ignore_event, must=True)
        assert size(*asyncio.run(work)) < size(*after)


@given(messages=conversations(), most=st.integers(0, 3_000))
def test_dividing_loses_no_message_and_no_answer(
    messages: tuple[Message, ...], most: int
) -> None:
    older, newest = divide(messages, typed("latest"), most)
    assert older + newest == messages
    assert newest[:1] == () or newest[0].role != "tool"
    assert not newest or size(*newest) <= most + len(newest) * 4


def test_an_old_line_with_the_words_of_the_latest_one_is_older(tmp_path: Path) -> None:
    old, latest = typed("first"), typed("first")
    older, newest = divide((old, Message("assistant", "x" * 900), latest), latest, 100)
    assert older[0] is old
    assert newest == (latest,)


@given(st.text(alphabet="ab 字\n", max_size=300), st.integers(0, 300))
def test_a_shortened_text_has_whole_words_and_counts_what_is_left_out(
    text: str, most: int
) -> None:
    short = shorten(text, most)
    if len(text) <= most:
        assert short == text
        return
    beginning, note, end = re.split(r"\n(… \(.*\) …)\n", short, maxsplit=1)
    assert text.startswith(beginning)
    assert text.endswith(end)
    assert len(beginning) + len(end) <= most
    left_out = int(re.sub(r"\D", "", note))
    assert len(text) - most <= left_out <= len(text) - len(beginning) - len(end)


def test_words_are_not_cut_when_a_text_is_shortened() -> None:
    text = " ".join(f"word{number:03}" for number in range(100))
    words = text.split()
    for most in range(100, 200):
        beginning, _, end = shorten(text, most).split("\n")
        assert set((beginning + " " + end).split()) <= set(words)
