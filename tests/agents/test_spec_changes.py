"""The spec belongs to the user: what a model does not mention stays, and what it
removes or rewords is shown before it is written.
"""

import json
import re

import pytest

from cdd_agent.agents.added_lines import GO_DEEPER
from cdd_agent.agents.spec_notes import NAME
from cdd_agent.commands.registry import handle
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.stream import Event
from cdd_agent.session.session import Session
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecTooLarge
from tests.agents.asking import COMPLETE, asks, open_questions, shown, told
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, noticed
from tests.support.tables import each_row
from tests.tui.test_spec import panel_of, rows

LOGIN, LOGOUT, RESET = "a user can log in", "logout works", "a password can be reset"
FILE = f"""\
title: Accounts
type: feature
priority: high
description: People need accounts. Only with an invitation.
acceptance_criteria:
  - {LOGIN}  # the first thing
  - {LOGOUT}
implementation_scope:
  api: [login]
  out_of_scope: [mail]
owner: Ada
"""
CHECKS = [{"id": "c1", "check": "pytest"}, {"id": "c2", "check": "pytest"}]
CHECKED = asks(acceptance_criteria=CHECKS)
REMOVES = asks(
    acceptance_criteria=[*CHECKS, {"id": "c2", "remove": True}], words="As you say."
)
OPEN = f"/socrates {SLUG}"


def begun(sandbox: Sandbox, *script: str, spec: str = FILE) -> Session:
    sandbox.write(spec=spec)
    return sandbox.replies(*script).session()


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


def spec_text(sandbox: Sandbox) -> str:
    return (sandbox.ticket / "spec.yaml").read_text()


def criteria(sandbox: Sandbox) -> list[str]:
    return list(TicketSpec.from_yaml(spec_text(sandbox)).acceptance_criteria)


def diffs(events: list[Event]) -> list[str]:
    return [
        event.text
        for event in events
        if isinstance(event, Answer) and event.text.startswith("```diff")
    ]


async def test_a_reply_with_one_other_item_deletes_none(sandbox: Sandbox) -> None:
    reply = asks(acceptance_criteria=[*CHECKS, {"text": RESET, "check": "pytest"}])
    session = begun(sandbox, reply)
    events = await say(session, OPEN, "Also reset it.", "approve")
    assert criteria(sandbox) == [LOGIN, LOGOUT, RESET]
    assert diffs(events) == []
    assert f"  - {LOGIN}  # the first thing\n" in spec_text(sandbox)


LOSSES = {
    "an item": (REMOVES, f"-  - {LOGOUT}"),
    "an item reworded": (
        asks(acceptance_criteria=[*CHECKS, {"id": "c1", "text": "a user may log in"}]),
        f"-  - {LOGIN}",
    ),
    "an area": (
        asks(
            acceptance_criteria=CHECKS,
            implementation_scope=[{"id": "s2", "remove": True}],
        ),
        "-  - out_of_scope: mail",
    ),
    "a sentence": (
        asks(acceptance_criteria=CHECKS, description="People need accounts."),
        "-  Only with an invitation.",
    ),
}
REWORDED = {
    "the title": (asks(acceptance_criteria=CHECKS, title="Users"), "-  Accounts"),
    "the priority": (asks(acceptance_criteria=CHECKS, priority="low"), "-  high"),
}


@each_row("name", LOSSES)
async def test_a_loss_is_shown_in_its_turn_and_before_it_is_written(
    sandbox: Sandbox, name: str
) -> None:
    reply, line = LOSSES[name]
    session = begun(sandbox, reply)
    events = await say(session, OPEN, "Not so much.")
    assert NoticeKind.WORDS_LOST in noticed(events)
    assert line in diffs(events)[0].splitlines()
    assert len([row for row in diffs(events)[0].splitlines() if row[0] == "-"]) == 1
    first = await say(session, "approve")
    assert line in diffs(first)[0].splitlines()
    assert NoticeKind.SPEC_WRITTEN not in noticed(first)
    assert spec_text(sandbox) == FILE
    assert NoticeKind.SPEC_WRITTEN in noticed(await say(session, "approve"))
    assert spec_text(sandbox) != FILE
    assert "owner: Ada\n" in spec_text(sandbox)


@each_row("name", REWORDED)
async def test_a_reworded_line_is_shown_in_its_turn_and_written_by_one_approve(
    sandbox: Sandbox, name: str
) -> None:
    reply, line = REWORDED[name]
    session = begun(sandbox, reply)
    events = await say(session, OPEN, "Not so much.")
    assert line in diffs(events)[0].splitlines()
    assert session.agent is not None
    assert "write" in session.agent.meaning("approve").hint
    events = await say(session, "approve")
    assert line in diffs(events)[0].splitlines()
    assert NoticeKind.SPEC_WRITTEN in noticed(events)
    assert spec_text(sandbox) != FILE
    assert "owner: Ada\n" in spec_text(sandbox)


async def test_an_addition_to_a_text_is_written_at_once(sandbox: Sandbox) -> None:
    more = "People need accounts. Only with an invitation. Ten at most."
    reply = asks(acceptance_criteria=CHECKS, description=more)
    events = await say(begun(sandbox, reply), OPEN, "Ten.", "approve")
    assert diffs(events) == []
    assert TicketSpec.from_yaml(spec_text(sandbox)).description == more


IN_BETWEEN = {
    "nothing": ([], True),
    "summary": (["summary"], True),
    "an edit": (["edit"], False),
    "a turn": (["Hm."], False),
    "leaving": (["close", OPEN], False),
    "an unfinished word": (["drop"], True),
}


@each_row("name", IN_BETWEEN)
@each_row("word", ["approve", "approve anyway"])
async def test_only_an_approval_of_the_diff_that_was_shown_writes(
    sandbox: Sandbox, name: str, word: str
) -> None:
    between, is_written = IN_BETWEEN[name]
    session = begun(sandbox, REMOVES, asks(words="Well."))
    await say(session, OPEN, "Not so much.", word)
    for line in between:
        if line == "edit":
            (sandbox.ticket / "spec.yaml").write_text(FILE + "due: May\n")
        else:
            await say(session, line)
    events = await say(session, word)
    assert (NoticeKind.SPEC_WRITTEN in noticed(events)) == is_written
    assert bool(diffs(events)) != is_written
    assert (LOGOUT in criteria(sandbox)) != is_written
    session.leave()


async def test_approve_anyway_passes_over_what_is_open_and_not_over_a_loss(
    sandbox: Sandbox,
) -> None:
    reply = asks("Why?", acceptance_criteria=[{"id": "c2", "remove": True}])
    session = begun(sandbox, reply)
    events = await say(session, OPEN, "Less.", "approve")
    assert NoticeKind.SPEC_INCOMPLETE in noticed(events)
    await say(session, "approve anyway")
    assert criteria(sandbox) == [LOGIN, LOGOUT]
    await say(session, "approve")
    assert criteria(sandbox) == [LOGIN, LOGOUT]
    await say(session, "approve anyway")
    assert criteria(sandbox) == [LOGIN]


async def test_words_never_approve_a_loss(sandbox: Sandbox) -> None:
    yes = asks(words="Good.", approved=True)
    session = begun(sandbox, REMOVES, yes, yes)
    await say(session, OPEN, "Less.")
    for _ in range(2):
        events = await say(session, "Yes, write it.")
        assert diffs(events)
        assert NoticeKind.SPEC_WRITTEN not in noticed(events)
    assert spec_text(sandbox) == FILE
    await say(session, "approve")
    assert criteria(sandbox) == [LOGIN]


async def test_an_approval_that_waited_does_not_approve_a_diff_shown_since(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, REMOVES)
    await say(session, OPEN, "Less.")
    assert session.agent is not None
    waiting = session.agent.meaning("approve")
    await say(session, "approve")
    now = session.agent.meaning("approve")
    assert waiting != now
    assert waiting.hint != now.hint
    session.leave()


async def test_removing_what_has_no_check_is_no_progress(sandbox: Sandbox) -> None:
    checks = [CHECKS[0]]
    session = begun(
        sandbox,
        asks("How?", acceptance_criteria=checks),
        asks(acceptance_criteria=[{"id": "c2", "remove": True}], answered=["q1"]),
    )
    progress = []
    for line in (OPEN, "Go.", "Not that."):
        async with panel_of(shown(await say(session, line))) as (panel, _):
            done, total = re.findall(r"\d+", rows(panel)[0])
            progress.append(int(done) / int(total))
    assert progress == [2 / 3, 2 / 4, 2 / 4]
    session.leave()


async def test_a_line_that_the_user_adds_between_turns_is_in(sandbox: Sandbox) -> None:
    session = begun(
        sandbox,
        asks("Why?", acceptance_criteria=[*CHECKS, {"id": "c1", "text": "x y"}]),
        asks("How?", answered=["q1"]),
    )
    await say(session, OPEN, "Go.")
    edited = FILE.replace(f"- {LOGIN}  #", "- a user can log in twice  #")
    edited = edited.replace(f"  - {LOGOUT}\n", f"  - {LOGOUT}\n  - mine\n")
    (sandbox.ticket / "spec.yaml").write_text(edited)
    events = await say(session, "Because.")
    assert "x y" in told(events)
    assert '"text": "mine"' in sandbox.prompt()
    texts = [item.text for item in shown(events).criteria]
    assert texts == ["a user can log in twice", LOGOUT, "mine"]
    await say(session, "approve anyway")
    assert spec_text(sandbox) == edited


# ---------------------------------------------------------------------------- questions


async def test_a_question_that_is_not_answered_holds_approve_up(
    sandbox: Sandbox,
) -> None:
    session = begun(
        sandbox,
        asks("How fast?", acceptance_criteria=CHECKS),
        asks(words="Let us go on.", approved=True),
    )
    await say(session, OPEN, "Go.")
    events = await say(session, "Write it.")
    assert "How fast?" in told(events)
    assert NoticeKind.SPEC_WRITTEN not in noticed(events)
    assert open_questions(await say(session, "summary")) == ("How fast?",)
    session.leave()


@each_row(
    ("line", "still_open"),
    [
        ("drop 1", ("For whom?", "When?")),
        ("drop 2", ("How fast?", "When?")),
        ("DROP 3 1", ("For whom?",)),
        ("drop 1, 2", ("When?",)),
        ("drop all", ()),
        ("drop", ("How fast?", "For whom?", "When?")),
        ("drop 4", ("How fast?", "For whom?", "When?")),
        ("drop 0", ("How fast?", "For whom?", "When?")),
    ],
)
async def test_the_user_drops_questions(
    sandbox: Sandbox, line: str, still_open: tuple[str, ...]
) -> None:
    session = begun(
        sandbox, asks("How fast?", "For whom?", "When?", acceptance_criteria=CHECKS)
    )
    await say(session, OPEN, "Go.", line)
    session.leave()
    session = sandbox.session()
    events = await say(session, OPEN, "approve")
    assert (NoticeKind.SPEC_WRITTEN in noticed(events)) == (still_open == ())
    if still_open:
        assert open_questions(events) == still_open
    assert len(sandbox.model.requests) == 1
    session.leave()


async def test_words_that_begin_with_drop_go_to_socrates(sandbox: Sandbox) -> None:
    session = begun(sandbox, asks("How fast?"), asks("For whom?"))
    await say(session, OPEN, "Go.", "drop the export from this ticket")
    assert "drop the export" in sandbox.prompt()
    assert open_questions(await say(session, "summary")) == ("How fast?", "For whom?")
    session.leave()


# ------------------------------------------------------------------------- coming back

RESUMED: dict[str, tuple[list[str], list[str], bool, bool]] = {
    # the replies, what is said, whether it is complete, whether Enter goes deeper
    "a question is open": ([asks("Fast?", **COMPLETE)], [], False, False),
    "its question is answered": (
        [asks("Fast?", **COMPLETE), asks(answered=["q1"])],
        ["Yes."],
        True,
        True,
    ),
    "its question is not answered": (
        [asks("Fast?", **COMPLETE), asks("Slow?")],
        ["Well."],
        False,
        False,
    ),
    "its question is dropped": ([asks("Fast?", **COMPLETE)], ["drop all"], False, True),
    "a question in its words alone": (
        [asks(words="Is that all?", **COMPLETE)],
        [],
        False,
        True,
    ),
    "no question": ([asks(**COMPLETE)], [], True, True),
}


@each_row("name", RESUMED)
async def test_an_open_question_and_complete_never_stand_together(
    sandbox: Sandbox, name: str
) -> None:
    replies, said, is_complete, is_deeper = RESUMED[name]
    session = begun(sandbox, *replies, spec="title: x\n")
    await say(session, OPEN, *said, "close")
    session = sandbox.replies(asks("And?")).session()
    events = await say(session, OPEN)
    assert (NoticeKind.SPEC_COMPLETE in noticed(events)) == is_complete
    assert not ("?" in told(events) and "is complete" in told(events))
    await say(session, "")
    assert (GO_DEEPER in sandbox.prompt()) == is_deeper
    session.leave()


async def test_enter_has_the_last_words_answered_after_a_stop(sandbox: Sandbox) -> None:
    session = begun(sandbox, asks("Fast?"))
    await say(session, OPEN, "Go.")
    session.leave()
    notes = sandbox.root / ".cdd" / "runs" / SLUG / NAME
    saved = json.loads(notes.read_text())
    said = {**saved["history"][0], "content": "Two seconds."}
    notes.write_text(
        json.dumps({**saved, "said": ["Two seconds."], "under_way": [said]})
    )
    session = sandbox.replies(asks("Slow?", answered=["q1"])).session()
    events = await say(session, OPEN)
    assert noticed(events)[-1] is NoticeKind.UNANSWERED
    last = events[-1]
    assert isinstance(last, Notice)
    assert "no answer yet: “Two seconds.”. Press Enter" in last.text
    events = await say(session, "")
    assert open_questions(events) == ("Slow?",)
    assert sandbox.prompt().count("Two seconds.") == 1
    session.leave()


async def test_ids_survive_a_restart(sandbox: Sandbox) -> None:
    session = begun(
        sandbox, asks("Why?", acceptance_criteria=[{"text": RESET}, {"text": "x y"}])
    )
    await say(session, OPEN, "Go.", "close")
    reply = asks(
        "How?",
        acceptance_criteria=[{"id": "c4", "remove": True}, {"text": "z"}],
        answered=["q1"],
    )
    session = sandbox.replies(reply, asks("Who?")).session()
    events = await say(session, OPEN, "Because.")
    texts = [item.text for item in shown(events).criteria]
    assert texts == [LOGIN, LOGOUT, RESET, "z"]
    await say(session, "Hm.")
    last = sandbox.model.requests[-1].messages[-1].content
    assert re.findall(r'"id": "([cq]\d+)"', last) == [*("c1", "c2", "c3", "c5", "q2")]
    session.leave()


async def test_a_file_that_is_gone_comes_back_with_the_user_s_other_keys(
    sandbox: Sandbox,
) -> None:
    session = begun(sandbox, CHECKED)
    await say(session, OPEN, "Go.", "close")
    (sandbox.ticket / "spec.yaml").unlink()
    await say(sandbox.session(), OPEN, "approve")
    assert criteria(sandbox) == [LOGIN, LOGOUT]
    assert TicketSpec.from_yaml(spec_text(sandbox)).extra == {"owner": "Ada"}


async def test_a_spec_that_is_too_large_for_its_file_is_not_written(
    sandbox: Sandbox,
) -> None:
    spec = FILE + f"log: {'w' * 150_000}\n"
    reply = asks(acceptance_criteria=CHECKS, technical_notes="w " * 30_000)
    session = begun(sandbox, reply, spec=spec)
    await say(session, OPEN, "Go.")
    with pytest.raises(SpecTooLarge):
        await say(session, "approve")
    assert spec_text(sandbox) == spec
    session.leave()
