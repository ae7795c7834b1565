"""A dialogue with Socrates: it asks, what it learns is kept, and spec.yaml is written
when a person says so.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.agents.added_lines import ADDED_LINES, GO_DEEPER
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.retelling import retold
from cdd_agent.agents.spec_notes import NAME
from cdd_agent.commands.registry import handle
from cdd_agent.dialogue.structured import NoUsableAnswer
from cdd_agent.engine.lock import LockGone, TicketTaken
from cdd_agent.errors import BadInput, BudgetExhausted
from cdd_agent.events.dialogue_events import ReplyDelta, ReplyStarted
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.shell_events import AgentChanged, PersonSaid
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Nobody
from cdd_agent.llm.port import (
    AuthenticationFailed,
    ConnectionFailed,
    ContextTooLong,
    Message,
    ProviderData,
    RequestRejected,
    ToolCall,
)
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecTooLarge
from cdd_agent.wiring.models import NoModel
from cdd_agent.wiring.root import Wiring
from tests.agents.asking import (
    COMPLETE,
    TEMPLATE,
    asks,
    looks,
    open_questions,
    shown,
    streamed,
    told,
)
from tests.support.listening import collect, stop_at, tell
from tests.support.projects import SLUG, SPEC, Sandbox, Step, notice, noticed
from tests.support.tables import each_row

TITLE = "Say words"
RULE = "Words are lower case."
FACT = "main.py is long"
OWN_TITLE = "My own title"
FROM_MODEL = "From the model"
OWN_PROMPT = "Ask about money first."
DESCRIPTION = "description: |-\n  Readers need words.\n\n  All of them.\n"
VAGUE = "It is fast"
OPEN_QUESTION = "How many seconds?"
QUESTIONS = "- Who-needs-it?\n- When?"

OPEN = f"/socrates {SLUG}"


def begun(
    sandbox: Sandbox, *script: str | ScriptedReply | Exception, spec: str = TEMPLATE
) -> Session:
    """A project with one ticket, and a model with these things to say."""
    sandbox.write(spec=spec)
    return sandbox.replies(*script).session()  # type: ignore[arg-type]


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


def spec_text(sandbox: Sandbox) -> str:
    return (sandbox.ticket / "spec.yaml").read_text()


def notebook(sandbox: Sandbox) -> Path:
    return sandbox.root / ".cdd" / "runs" / SLUG / NAME


# ------------------------------------------------------------------------- the dialogue


async def test_the_dialogue_starts_with_questions_and_fills_the_spec(
    sandbox: Sandbox,
) -> None:
    session = begun(
        sandbox, asks("Who-needs-it?"), asks("What for?", title=TITLE, answered=["q1"])
    )
    events = await say(session, OPEN)
    assert events[0] == AgentChanged("socrates", SLUG)
    assert streamed(events) == "Who-needs-it?\n\n"
    assert shown(events).title == ""
    events = await say(session, "Readers do.")
    assert shown(events).title == TITLE
    assert open_questions(events) == ("What for?",)
    assert spec_text(sandbox) == TEMPLATE
    session.leave()


async def test_the_prompt_has_rules_nearby_tickets_and_the_type_s_questions(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "AGENTS.md").write_text(f"{RULE}\n")
    (sandbox.root / "main.py").write_text("print()\n")
    for slug, title in (("bug-words-lost", "Lost words"), ("feature-login", "Sign in")):
        (sandbox.root / "tickets" / slug).mkdir(parents=True)
        (sandbox.root / "tickets" / slug / "spec.yaml").write_text(f"title: {title}\n")
    session = begun(sandbox, asks("Who?"))
    await say(session, OPEN)
    prompt = sandbox.prompt()
    assert load_prompt(sandbox.root, "socrates") in prompt
    assert load_prompt(sandbox.root, "socrates-feature") in prompt
    assert RULE in prompt
    assert "bug-words-lost" in prompt
    assert "Lost words" in prompt
    assert "feature-login" not in prompt
    assert "main.py" in prompt
    session.leave()


async def test_socrates_has_read_only_tools(sandbox: Sandbox) -> None:
    (sandbox.root / "main.py").write_text("print('hello')\n")
    session = begun(sandbox, looks("main.py"), asks("main.py prints hello: MEANT?"))
    events = await say(session, OPEN)
    assert "hello" in sandbox.prompt()
    assert "MEANT?" in streamed(events)
    names = {tool.name for tool in sandbox.model.requests[0].tools}
    assert names == {"read_file", "list_files", "glob_files", "grep_files", "find_code"}
    session.leave()


async def test_the_prompt_has_places_that_match_the_ticket(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "limits.py").write_text("class RateLimiter:\n    pass\n")
    session = begun(sandbox, asks("WHICH?"), asks("AND?"))
    await say(session, OPEN)
    assert "class RateLimiter:" not in sandbox.prompt()
    await say(session, "It is about the rate limiter.")
    assert "limits.py: " in sandbox.prompt()
    assert "class RateLimiter:" in sandbox.prompt()
    session.leave()


async def test_socrates_has_no_tool_to_write_files(
    sandbox: Sandbox,
) -> None:
    write = ToolCall(
        "1", "create_file", json.dumps({"file_path": "main.py", "content": "print()"})
    )
    session = begun(
        sandbox,
        ScriptedReply("I write it.", tool_calls=(write,)),
        asks("Who-needs-it?"),
    )
    await say(session, OPEN)
    assert "'create_file'" in sandbox.model.requests[1].messages[-1].content
    assert not (sandbox.root / "main.py").exists()
    session.leave()


@each_row(
    ("wrong", "reason"),
    [
        ("Who-needs-it?", "There is no code block of `json`"),
        ("Who?\n```json\n{\n```\n", "not valid JSON"),
        (asks("a?", "b?", "c?", "d?"), "Ask at most 3"),
        (asks("Who?", titel="x"), "`titel` is unknown (did you mean `title`?)"),
        (asks("Who?", title="<what it is about>"), "`title` is a placeholder"),
        (asks(title="Say words"), "You ask nothing, although something is open"),
        (
            asks("Who?", acceptance_criteria=[{"text": "TODO"}]),
            "`TODO` is a placeholder",
        ),
        (
            asks("Who?", acceptance_criteria=[{"id": "c9", "text": "a"}]),
            "no criterion with the id `c9`",
        ),
        (
            asks("Who?", implementation_scope=[{"id": "s9", "remove": True}]),
            "no item of the scope with the id `s9`",
        ),
        (
            asks("Who?", acceptance_criteria=[{"text": "a", "remove": True}]),
            "give its `id`",
        ),
        (asks("Who?", acceptance_criteria=[{}]), "neither `id` nor `text`"),
        (asks("Who?", answered=["q1"]), "the person has said nothing"),
        (asks("Who?", answered=["q9"]), "no question with the id `q9`"),
        (
            asks(acceptance_criteria=[{"text": "It is fast"}]),
            "Nothing says how these criteria are checked",
        ),
        (asks(**COMPLETE, approved=True), "the person has said nothing in this turn"),
    ],
)
async def test_a_wrong_answer_is_requested_again_with_the_reason(
    sandbox: Sandbox, wrong: str, reason: str
) -> None:
    session = begun(sandbox, wrong, asks("Who-needs-it?"))
    events = await say(session, OPEN)
    assert reason in sandbox.model.requests[1].messages[-1].content
    assert open_questions(events) == ("Who-needs-it?",)
    session.leave()


async def test_an_empty_field_does_not_erase_the_written_one(sandbox: Sandbox) -> None:
    session = begun(
        sandbox,
        asks("Why?", title="", description="  ", acceptance_criteria=[]),
        asks("Why?"),
        spec=SPEC,
    )
    events = await say(session, OPEN, "")
    assert "`title`" in sandbox.model.requests[1].messages[-1].content
    assert shown(events).title == TITLE
    session.leave()


async def test_a_model_without_json_is_an_error_and_the_dialogue_stays(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks("Who?"), "No.", "No.", "No.", asks("What for?"))
    await say(session, OPEN)
    with pytest.raises(NoUsableAnswer, match="in 3 tries"):
        await say(session, "Readers.")
    assert streamed(await say(session, "")) == "What for?\n\n"
    assert "Readers." in sandbox.prompt()
    session.leave()


@each_row("words", ["", "main.py is short. What hurts?"])
async def test_questions_from_the_json_are_shown_and_shown_again(
    sandbox: Sandbox, words: str
) -> None:
    session = begun(sandbox, asks("Who-needs-it?", "When?", words=words))
    assert QUESTIONS in told(await say(session, OPEN))
    session.leave()
    session = sandbox.session()
    assert QUESTIONS in told(await say(session, OPEN))
    session.leave()


async def test_questions_in_the_words_are_not_repeated_from_the_json(
    sandbox: Sandbox,
) -> None:
    session = begun(
        sandbox,
        asks(
            "Who-needs-it?", "When?", words="Whom is it for, if not you? And by when?"
        ),
    )
    assert "Who-needs-it?" not in told(await say(session, OPEN))
    session.leave()


async def test_a_vague_criterion_stays_open_until_it_can_be_checked(
    sandbox: Sandbox,
) -> None:
    vague = asks(
        OPEN_QUESTION, **{**COMPLETE, "acceptance_criteria": [{"text": VAGUE}]}
    )
    session = begun(
        sandbox,
        vague,
        asks(
            acceptance_criteria=[
                {"id": "c2", "text": "It takes 1 s", "check": "time it"}
            ],
            answered=["q1"],
        ),
    )
    events = await say(session, OPEN)
    assert [item.check for item in shown(events).criteria] == [""]
    events = await say(session, "approve")
    lacking = notice(events, NoticeKind.SPEC_INCOMPLETE)
    assert VAGUE in lacking
    assert OPEN_QUESTION in lacking
    assert spec_text(sandbox) == TEMPLATE
    await say(session, "One second.", "approve")
    assert "  - It takes 1 s\n" in spec_text(sandbox)


async def test_earlier_turns_become_words_and_facts_are_kept(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "main.py").write_text("a long text\n")
    script = (
        looks("main.py"),
        asks("First?", facts=[FACT]),
        asks("Second?"),
        asks("Third?"),
    )
    session = begun(sandbox, *script)
    await say(session, OPEN, "one", "two")
    prompt = sandbox.prompt()
    assert "a long text" not in prompt
    assert FACT in prompt
    assert [message.role for message in sandbox.model.requests[-1].messages] == [
        *("system", "user", "assistant", "user", "assistant", "user")
    ]
    assert "First?" in prompt
    assert prompt.count('"questions": ["First?"]') == 0
    assert prompt.count('"questions": ["Second?"]') == 1
    session.leave()


@each_row(("window", "earliest"), [(None, 3), (25_000, 6)])
async def test_a_very_long_conversation_shortens_its_earliest_lines(
    sandbox: Sandbox, window: int | None, earliest: int
) -> None:
    questions = [
        asks(f"Question {number}?", answered=[f"q{number}"] * (number > 0))
        for number in range(9)
    ]
    sandbox.write(spec=TEMPLATE).model = ScriptedModel(questions, window=window)
    session = sandbox.session()
    await say(
        session, OPEN, *(f"answer {number} " + "x" * 15_000 for number in range(8))
    )
    lines = [f"answer {number} " for number in range(8)]
    prompt = sandbox.prompt()
    assert [line in prompt for line in lines] == [True] * 8
    whole = [n for n in range(8) if lines[n] + "x" * 15_000 in prompt]
    assert whole == list(range(earliest, 8))
    session.leave()


async def test_the_budget_holds_after_the_dialogue_is_resumed(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks("Who?"), asks("What?"))
    await say(session, OPEN)
    session.leave()
    sandbox.flags = {"budget": {"tokens": session.tally.spent.tokens + 20}}
    again = sandbox.session()
    await say(again, OPEN)
    with pytest.raises(BudgetExhausted):
        await say(again, "Readers.")
    again.leave()


# ---------------------------------------------------------------------------- approving


async def test_approve_writes_the_spec_and_keeps_everything_else_in_it(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks(**COMPLETE))
    await say(session, OPEN)
    events = await say(session, "approve")
    assert "spec.yaml" in notice(events, NoticeKind.SPEC_WRITTEN)
    assert events[-1] == AgentChanged(None)
    text = spec_text(sandbox)
    assert TicketSpec.from_yaml(text).missing() == []
    assert DESCRIPTION in text
    for line in TEMPLATE.splitlines():
        assert "<" in line or line in (*text.splitlines(), "description: |")


async def test_approve_of_an_incomplete_spec_names_the_gap_and_writes_nothing(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks("What for?", title=TITLE))
    events = await say(session, OPEN, "approve")
    lacking = notice(events, NoticeKind.SPEC_INCOMPLETE)
    assert "description:" in lacking
    assert "acceptance_criteria:" in lacking
    assert spec_text(sandbox) == TEMPLATE
    assert session.agent is not None
    await say(session, "approve anyway")
    assert f"title: {TITLE}\n" in spec_text(sandbox)


async def test_the_user_may_approve_in_other_words(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks(**COMPLETE), asks(words="Good.", approved=True))
    events = await say(session, OPEN, "Ja, passt so.")
    assert "spec.yaml" in notice(events, NoticeKind.SPEC_WRITTEN)
    assert session.agent is None


async def test_an_unseen_change_is_not_approved_by_words(
    sandbox: Sandbox,
) -> None:
    session = begun(
        sandbox, asks(**COMPLETE), asks(title="Say other words", approved=True)
    )
    events = await say(session, OPEN, "Yes, but call it something else.")
    assert noticed(events)[-1] is NoticeKind.SPEC_CHANGED
    assert spec_text(sandbox) == TEMPLATE
    session.leave()


async def test_a_filled_in_spec_is_reported_without_a_model_call(
    sandbox: Sandbox,
) -> None:
    session = begun(
        sandbox,
        asks("What about empty files?"),
        asks(
            acceptance_criteria=[{"id": "c1", "check": "grep good a.txt"}],
            answered=["q1"],
        ),
        asks("What about large files?"),
        spec=SPEC,
    )
    events = await say(session, OPEN)
    assert noticed(events) == [NoticeKind.SPEC_INCOMPLETE]
    assert not [event for event in events if isinstance(event, ReplyStarted)]
    assert "empty files?" in streamed(await say(session, ""))
    assert GO_DEEPER not in sandbox.prompt()
    await say(session, "They are left out.")
    assert "large files?" in streamed(await say(session, ""))
    assert GO_DEEPER in sandbox.prompt()
    session.leave()


async def test_approving_an_unchanged_spec_changes_nothing(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, spec=SPEC)
    events = await say(session, OPEN, "approve anyway")
    assert noticed(events)[-1] is NoticeKind.SPEC_WRITTEN
    assert spec_text(sandbox) == SPEC


async def test_a_ticket_without_a_spec_gets_one(sandbox: Sandbox) -> None:
    session = begun(sandbox, asks(**COMPLETE))
    (sandbox.ticket / "spec.yaml").unlink()
    await say(session, OPEN, "approve")
    assert TicketSpec.from_yaml(spec_text(sandbox)).title == TITLE


# --------------------------------------------------------- a person edits the file, too


async def test_the_user_s_concurrent_edits_win_field_by_field(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks("Who?", **COMPLETE), asks(answered=["q1"]))
    await say(session, OPEN)
    edited = TEMPLATE.replace(
        '"<one line: what people will be able to do>"', f"{OWN_TITLE}  # mine"
    )
    (sandbox.ticket / "spec.yaml").write_text(edited + "estimate: 5\n")
    events = await say(session, "Readers.")
    assert "title" in notice(events, NoticeKind.SPEC_CHANGED)
    assert shown(events).title == OWN_TITLE
    assert f'"title": "{OWN_TITLE}"' in sandbox.prompt()
    await say(session, "approve")
    text = spec_text(sandbox)
    assert f"title: {OWN_TITLE}  # mine\n" in text
    assert "estimate: 5\n" in text
    assert COMPLETE["acceptance_criteria"][0]["text"] in text


async def test_an_edit_between_the_last_turn_and_approve_is_not_overwritten(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks(**COMPLETE))
    await say(session, OPEN)
    (sandbox.ticket / "spec.yaml").write_text(TEMPLATE + "technical_notes: sqlite\n")
    events = await say(session, "approve")
    assert "technical_notes" in told(events)
    assert TicketSpec.from_yaml(spec_text(sandbox)).technical_notes == "sqlite"


async def test_an_edit_between_sessions_is_noticed_on_return(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks("Who?", title=FROM_MODEL, technical_notes="Kept."))
    await say(session, OPEN, "close")
    (sandbox.ticket / "spec.yaml").write_text(TEMPLATE + "technical_notes: Mine.\n")
    again = sandbox.session()
    events = await say(again, OPEN)
    assert "technical_notes" in notice(events, NoticeKind.SPEC_CHANGED)
    assert (shown(events).title, shown(events).technical_notes) == (FROM_MODEL, "Mine.")
    again.leave()


async def test_a_spec_with_yaml_errors_is_not_written(
    sandbox: Sandbox,
) -> None:
    broken = "title: x\ndescription: [a\nowner: Ada\n"
    session = begun(sandbox, spec=broken)
    with pytest.raises(BadInput, match=r"^tickets/feature-words/spec\.yaml:3"):
        await say(session, OPEN)
    assert session.agent is None
    assert spec_text(sandbox) == broken


async def test_a_spec_that_becomes_invalid_is_not_overwritten(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks(**COMPLETE))
    await say(session, OPEN)
    (sandbox.ticket / "spec.yaml").write_text("title: [x\n")
    with pytest.raises(BadInput, match=r"spec\.yaml:"):
        await say(session, "approve")
    assert spec_text(sandbox) == "title: [x\n"
    (sandbox.ticket / "spec.yaml").write_text(TEMPLATE)
    await say(session, "approve")
    assert f"title: {TITLE}\n" in spec_text(sandbox)


async def test_a_huge_spec_is_an_error_with_its_size(sandbox: Sandbox) -> None:
    session = begun(sandbox, spec=SPEC + "log: |\n" + "  a line of a log\n" * 120_000)
    with pytest.raises(SpecTooLarge) as caught:
        await say(session, OPEN)
    assert caught.value.hint


async def test_a_spec_that_is_a_link_out_of_the_project_is_not_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "theirs.yaml").write_text(SPEC)
    (tmp_path / "project").mkdir()
    sandbox = Sandbox(tmp_path / "project")
    session = begun(sandbox, asks("Why?", title="Other"))
    (sandbox.ticket / "spec.yaml").unlink()
    (sandbox.ticket / "spec.yaml").symlink_to(tmp_path / "theirs.yaml")
    with pytest.raises(BadInput, match="outside"):
        await say(session, OPEN, "", "approve anyway", "approve anyway")
    assert (tmp_path / "theirs.yaml").read_text() == SPEC
    session.leave()


# -------------------------------------------------------------- leaving and coming back


async def test_a_dialogue_resumes_after_the_user_leaves(sandbox: Sandbox) -> None:
    session = begun(
        sandbox,
        asks("Who?"),
        asks("What for?", title=TITLE, answered=["q1"]),
        asks(**COMPLETE, answered=["q2"]),
    )
    events = await say(session, OPEN, "Readers.", "close")
    assert f"`/socrates {SLUG}`" in notice(events, NoticeKind.AGENT_LEFT)

    again = sandbox.session()
    events = await say(again, OPEN)
    going_on = notice(events, NoticeKind.RESUMED)
    assert "spec.yaml" in going_on
    assert "title" in going_on
    assert "What for?" in told(events)
    assert "json" not in told(events)
    assert not [event for event in events if isinstance(event, ReplyStarted)]
    await say(again, "For reading.")
    assert "Readers." in sandbox.prompt()
    await say(again, "approve")
    assert f"title: {TITLE}\n" in spec_text(sandbox)


async def test_open_questions_of_earlier_turns_are_shown_again(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks("Who?"), asks("When?", title=TITLE))
    await say(session, OPEN, "Later.", "close")

    again = sandbox.session()
    events = await say(again, OPEN)
    assert "1. Who?\n2. When?" in told(events)
    again.leave()


async def test_a_stopped_turn_resumes(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "main.py").write_text("print('hello')\n")
    session = begun(
        sandbox, asks("Who?"), looks("main.py"), asks("HELLO?"), asks("Then?")
    )
    await say(session, OPEN)
    replies = 0

    def is_second(event: Event) -> bool:
        nonlocal replies
        replies += isinstance(event, ReplyStarted)
        return replies == 2 and isinstance(event, ReplyDelta)

    assert NoticeKind.UNANSWERED in noticed(
        await stop_at(handle(session, "Readers."), is_second)
    )
    session.leave()

    again = sandbox.session()
    events = await say(again, OPEN)
    assert NoticeKind.UNANSWERED in noticed(events)
    asked = len(sandbox.model.requests)
    assert "HELLO?" in streamed(await say(again, "continue"))
    assert len(sandbox.model.requests) == asked + 1
    assert sandbox.prompt().count("print('hello')") == 1
    assert sandbox.prompt().count("Readers.") == 1
    again.leave()


async def test_a_model_error_keeps_the_dialogue(sandbox: Sandbox) -> None:
    session = begun(
        sandbox, asks("Who?"), RequestRejected("Too hot."), asks("What for?")
    )
    await say(session, OPEN)
    with pytest.raises(RequestRejected):
        await say(session, "Readers.")
    assert "What for?" in streamed(await say(session, "And writers."))
    assert "Readers." in sandbox.prompt()
    assert "And writers." in sandbox.prompt()
    session.leave()


async def test_tool_results_are_dropped_when_the_dialogue_is_too_long(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "main.py").write_text("a long text\n")
    script = (
        asks("Who?"),
        looks("main.py"),
        ContextTooLong("Too long."),
        asks("What for?"),
    )
    session = begun(sandbox, *script)
    await say(session, OPEN)
    with pytest.raises(ContextTooLong) as caught:
        await say(session, "Readers.")
    assert "Enter" in caught.value.hint
    assert "What for?" in streamed(await say(session, ""))
    assert "Readers." in sandbox.prompt()
    assert "a long text" not in sandbox.prompt()
    session.leave()


async def test_a_broken_connection_is_retried(sandbox: Sandbox) -> None:
    session = begun(
        sandbox,
        ScriptedReply(asks("Wh"), cut=3),
        ConnectionFailed("It broke."),
        asks("Who?"),
    )
    assert open_questions(await say(session, OPEN)) == ("Who?",)
    assert sandbox.time.waited > 0
    session.leave()


@pytest.mark.fork
async def test_a_kill_loses_at_most_the_current_reply(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path).write(spec=TEMPLATE)
    code = f"""
import asyncio, os, sys
from pathlib import Path
from cdd_agent.commands.registry import handle
from cdd_agent.events.dialogue_events import ReplyDelta
from tests.agents.asking import asks
from tests.support.listening import told_to, collect, tell, stop_at
from tests.support.projects import Sandbox
asked = asks("Who?", title="Say words"), asks("What for?")
sandbox = Sandbox(Path({str(tmp_path)!r})).replies(*asked)
def die(event):
    if isinstance(event, ReplyDelta):
        os.kill(os.getpid(), 9)
async def main():
    session = sandbox.session()
    await handle(session, {OPEN!r})
    with told_to(die):
        await handle(session, "Readers.")
asyncio.run(main())
"""
    tree = str(Path(__file__).parents[2])
    killed = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": tree},
        capture_output=True,
    )
    assert killed.returncode == -9, killed.stderr
    session = sandbox.replies(asks("What for?")).session()
    events = await say(session, OPEN)
    assert shown(events).title == TITLE
    assert NoticeKind.UNANSWERED in noticed(events)
    await say(session, "")
    assert "Readers." in sandbox.prompt()
    session.leave()


@each_row("damage", [b"", b"{", b"[]", b"\xff\0", b'{"version": 2}'])
async def test_a_damaged_record_is_renamed_and_reported(
    sandbox: Sandbox, damage: bytes
) -> None:
    session = begun(sandbox, asks("Who?"), asks("Who again?"))
    await say(session, OPEN, "close")
    notebook(sandbox).write_bytes(damage)
    again = sandbox.session()
    events = await say(again, OPEN)
    assert NoticeKind.DAMAGED in noticed(events)
    assert "Who again?" in streamed(events)
    (aside,) = notebook(sandbox).parent.glob("socrates.aside-*.json")
    assert aside.name in told(events)
    assert aside.read_bytes() == damage
    again.leave()


async def test_a_dialogue_without_its_record_does_not_overwrite_another(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks("Who?"), asks("Who again?"))
    await say(session, OPEN)
    shutil.rmtree(sandbox.root / ".cdd/runs")
    other = sandbox.session()
    assert "Who again?" in streamed(await say(other, OPEN))
    before = notebook(sandbox).read_bytes()
    with pytest.raises(LockGone) as refused:
        await say(session, "Readers.")
    assert refused.value.hint
    session.leave()
    with pytest.raises(TicketTaken, match=str(os.getpid())):
        await say(session, OPEN)
    assert notebook(sandbox).read_bytes() == before
    other.leave()


async def test_starting_over_renames_the_kept_dialogue(sandbox: Sandbox) -> None:
    session = begun(sandbox, asks("Who?", title="Say words"), asks("Who again?"))
    await say(session, OPEN, "close")
    events = await say(session, f"/socrates --start-over {SLUG}")
    assert NoticeKind.STARTED_OVER in noticed(events)
    assert shown(events).title == ""
    assert "Who again?" in streamed(events)
    (aside,) = notebook(sandbox).parent.glob("socrates.aside-*.json")
    assert "Say words" in aside.read_text()
    with pytest.raises(BadInput, match="'--again'"):
        await say(session, f"{OPEN} --again")
    session.leave()


async def test_secrets_are_neither_kept_nor_shown(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "hunter2-hunter2")
    session = begun(
        sandbox,
        asks("Is it hunter2-hunter2?", technical_notes="It is hunter2-hunter2."),
    )
    events = await say(session, OPEN)
    assert "hunter2" not in streamed(events) + told(events) + str(shown(events))
    assert "hunter2" not in notebook(sandbox).read_text()
    session.leave()


async def test_provider_data_is_kept_unchanged_or_not_at_all(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "hunter2-hunter2")
    sandbox.flags = {"tool_calls": "on"}
    datas = [
        ProviderData("scripted", data)
        for data in ('{"thought": "hunter2-hunter2"}', '{"thought": "hm"}')
    ]
    script = [replace(looks("a.txt"), provider_data=data) for data in datas]
    session = begun(sandbox, *script, AuthenticationFailed("The key is old."))
    with pytest.raises(AuthenticationFailed):
        await say(session, OPEN)
    session.leave()
    session = sandbox.replies(asks("Who?")).session()
    await say(session, OPEN, "")
    said = [
        message
        for message in sandbox.model.requests[0].messages
        if message.role == "assistant"
    ]
    assert [message.provider_data for message in said] == [None, datas[1]]
    session.leave()


async def test_the_kept_dialogue_is_private_and_ignored_by_git(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, asks("Who?"))
    await say(session, OPEN)
    assert (sandbox.root / ".cdd" / ".gitignore").read_text().endswith("runs/\n")
    assert notebook(sandbox).parent.stat().st_mode & 0o077 == 0
    session.leave()


async def test_a_second_dialogue_on_a_ticket_is_refused(sandbox: Sandbox) -> None:
    session = begun(sandbox, asks("Who?"))
    await say(session, OPEN)
    with pytest.raises(TicketTaken):
        await say(sandbox.session(), OPEN)
    session.leave()


async def test_summary_shows_the_whole_and_asks_no_model(sandbox: Sandbox) -> None:
    session = begun(sandbox, asks("Who?", **COMPLETE))
    await say(session, OPEN)
    for word in ("summary", "/status"):
        events = await say(session, word)
        assert shown(events).in_full
        assert (
            shown(events).criteria[0].check
            == COMPLETE["acceptance_criteria"][0]["check"]
        )
    assert len(sandbox.model.requests) == 1
    session.leave()


async def test_the_project_s_prompt_is_used(sandbox: Sandbox) -> None:
    session = begun(sandbox, asks("Who?"))
    (sandbox.root / ".cdd" / "prompts").mkdir()
    (sandbox.root / ".cdd" / "prompts" / "socrates.md").write_text(OWN_PROMPT)
    await say(session, OPEN)
    assert sandbox.prompt().startswith(OWN_PROMPT)
    assert load_prompt(Path("elsewhere"), "socrates") not in sandbox.prompt()
    session.leave()


async def test_socrates_needs_a_model(sandbox: Sandbox) -> None:
    session = Wiring(sandbox.write(spec=TEMPLATE).project, Nobody(), tell).session
    with pytest.raises(NoModel):
        await say(session, OPEN)
    assert session.agent is None
    await say(begun(sandbox, asks("Who?")), OPEN, "close")  # its lock was let go of


async def test_the_configured_model_is_asked(sandbox: Sandbox) -> None:
    (sandbox.write(spec=TEMPLATE).root / "script.yaml").write_text(
        json.dumps({"replies": [{"reply": asks("Who?")}]})
    )
    sandbox.flags = {"model": "script:script.yaml"}
    session = Wiring(sandbox.project, Nobody(), tell).session
    assert "Who?" in streamed(await say(session, OPEN))
    assert session.tally.spent.tokens > 0
    session.leave()


async def test_a_run_that_starts_over_keeps_the_dialogue(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step(), spec=SPEC)
    session = sandbox.replies(asks("Why?", title="Other")).session()
    await say(session, OPEN, "", "close", f"/exec {SLUG} --start-over", "close")
    assert shown(await say(session, OPEN)).title == "Other"
    session.leave()


@each_row("content", [None, "", "# mine\n"])
async def test_the_dialogue_survives_a_deleted_file(
    sandbox: Sandbox, content: str | None
) -> None:
    """As while another branch is checked out, or an editor writes the file anew."""
    session = begun(sandbox, asks(**COMPLETE), asks("And?"), asks("So?"))
    await say(session, OPEN)
    path = sandbox.ticket / "spec.yaml"
    path.unlink()
    if content is not None:
        path.write_text(content)
    assert shown(await say(session, "Go on.")).title == COMPLETE["title"]
    session.leave()
    again = sandbox.session()
    assert shown(await say(again, OPEN)).title == COMPLETE["title"]
    path.write_text(TEMPLATE)
    assert shown(await say(again, "Go on.")).title == COMPLETE["title"]
    path.unlink()
    await say(again, "approve anyway")
    assert TicketSpec.from_yaml(spec_text(sandbox)).title == COMPLETE["title"]


async def test_a_written_field_stays_even_if_the_model_removes_it_again(
    sandbox: Sandbox,
) -> None:
    gone = asks(
        "And?",
        title="",
        description="<what is wanted>",
        acceptance_criteria=[],
        technical_notes="Long.",
    )
    session = begun(sandbox, gone, gone, gone, spec=SPEC)
    events = await say(session, OPEN, "Go on.")
    spec, before = shown(events), TicketSpec.from_yaml(SPEC)
    assert spec.missing == ()
    assert (spec.title, spec.description) == (before.title, before.description)
    assert spec.technical_notes == "Long."
    assert NoticeKind.REPLY_UNUSABLE in noticed(events)
    session.leave()


async def test_half_a_surrogate_is_allowed(sandbox: Sandbox) -> None:
    session = begun(
        sandbox, asks("Who?", words="Who \ud83d?"), looks("\udcff"), asks("What for?")
    )
    await say(session, OPEN, "Readers \ud83d do.")
    session.leave()
    again = sandbox.replies().session()
    assert "What for?" in told(await say(again, OPEN))
    again.leave()


async def test_a_second_approve_is_not_sent_to_chat(sandbox: Sandbox) -> None:
    session = begun(sandbox, asks("Who?"), asks(**COMPLETE, answered=["q1"]))
    await say(session, OPEN, "Readers.", "approve")
    text, asked = spec_text(sandbox), len(sandbox.model.requests)
    events = await say(session, "approve", "Approve anyway")
    assert noticed(events).count(NoticeKind.NOT_DONE) == 2
    assert told(events).count(f"`/socrates {SLUG}`") == 2
    assert spec_text(sandbox) == text
    assert len(sandbox.model.requests) == asked


FORMER_BEGIN = (
    "I have opened this ticket. Look around where it is about, then begin with"
    " your first questions."
)
"""A line that an earlier version of the program added."""


@pytest.mark.parametrize("line", sorted(ADDED_LINES | {FORMER_BEGIN}))
async def test_a_line_that_the_program_added_approves_nothing_after_a_restart(
    sandbox: Sandbox, line: str
) -> None:
    session = begun(sandbox, asks(**COMPLETE), AuthenticationFailed("no"))
    await say(session, OPEN)
    with pytest.raises(AuthenticationFailed):
        await say(session, "")
    session.leave()
    saved = json.loads(notebook(sandbox).read_bytes())
    saved["said"] = [line]
    saved["under_way"][0]["content"] = line
    notebook(sandbox).write_text(json.dumps(saved))
    resumed = sandbox.replies(
        asks(words="Good.", approved=True), asks(words="Good.")
    ).session()
    events = await say(resumed, OPEN, "")
    assert "the person has said nothing in this turn" in sandbox.prompt()
    assert line not in told(events)
    assert spec_text(sandbox) == TEMPLATE
    resumed.leave()


@pytest.mark.parametrize("added", sorted(ADDED_LINES))
def test_lines_that_the_user_did_not_type_are_not_shown_again(added: str) -> None:
    conversation = [Message("user", added), Message("user", f"{added} Me, too.")]
    assert retold(conversation) == (PersonSaid(f"{added} Me, too."),)
