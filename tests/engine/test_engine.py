"""Steps are transactions: each becomes true as a whole or leaves no trace, and any run
can go on.
"""

import asyncio
import os
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TypeVar

import pytest

from cdd_agent.changes.change_set import ChangeSet, build_changed_refusal
from cdd_agent.changes.model import ReplyFault
from cdd_agent.changes.review import Review
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.ledger_file import EntryKind, LedgerFile
from cdd_agent.engine.lock import TicketTaken
from cdd_agent.errors import BadInput, ExitCode, NotApproved
from cdd_agent.events.dialogue_events import ReplyDelta, ReplyStarted
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.question_events import Choice
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    ChangesPutBack,
    CommandOutput,
    TestsFinished,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.files.atomic import NotWritten
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.git.restore import held
from cdd_agent.llm.port import AuthenticationFailed, RateLimited, StopReason
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tickets.status import RunStatus, StepStatus, Verification
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import SLUG, Sandbox, Step, check, notice, run_all, says
from tests.support.tables import each_row

DESCRIPTION = "Word for word *this*."
SAYS_BAD = "it says bad"
BY_HAND = "almost, by hand"
NOW = "as it is now"
LEFTOVER = f".cdd-{'0' * 12}-{os.getpid()}-{'0' * 8}.tmp"
"""A file that a killed write of this process left."""
TORN = '{"ticket_slug": "feature-wo'

T = TypeVar("T")


def lose_state(sandbox: Sandbox) -> None:
    """The ticket's own file and its copy."""
    (sandbox.ticket / "execution-state.json").unlink()
    (sandbox.root / ".cdd/runs" / SLUG / "state.json").unlink()


def hash_of(sandbox: Sandbox, path: str) -> str:
    """The name by which the ledger knows a file's content."""
    found = held((sandbox.root / path).read_bytes(), 0).content
    assert isinstance(found, str)
    return found


def of(kind: type[T], events: list[Event]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


async def test_a_plan_is_carried_out_and_its_state_kept(sandbox: Sandbox) -> None:
    sandbox.write(
        Step("a.txt", tested="good"), Step("b/c.txt", check("b/c.txt"), "Step 1")
    )
    sandbox.replies(says("a.txt", "good"), says("b/c.txt", "good"))

    events = await run_all(sandbox)

    assert sandbox.text("b/c.txt") == "good\n"
    assert of(RunFinished, events)[-1].status is RunStatus.COMPLETED
    state = sandbox.state()
    assert (state["ticket_slug"], state["status"], state["current_step"]) == (
        SLUG,
        "completed",
        3,
    )
    assert state["completed_at"]
    first = state["step_executions"]["1"]
    assert (first["files_created"], first["files_modified"], first["verification"]) == (
        ["a.txt"],
        [],
        "passed",
    )
    assert state["step_executions"]["2"]["verification"] == "exit_code"


async def test_steps_run_in_the_order_of_their_dependencies(sandbox: Sandbox) -> None:
    sandbox.write(
        Step("a.txt", check("b.txt"), "Step 2"), Step("b.txt", check("b.txt"))
    )
    sandbox.replies(says("b.txt", "good"), says("a.txt", "x"))
    events = await run_all(sandbox)
    assert [event.step for event in of(StepFinished, events)] == [2, 1]


async def test_the_prompt_holds_what_the_step_needs_and_ends_with_the_step(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "old.txt").write_text("present content")
    sandbox.write(
        Step("a.txt", check("a.txt")),
        Step("old.txt", check("a.txt"), description=DESCRIPTION),
    )
    sandbox.replies(says("a.txt", "good"), says("old.txt", "new"))

    await run_all(sandbox)

    system, user = (message.content for message in sandbox.model.requests[1].messages)
    for stable in (
        "Say words",
        "a.txt says good",
        "Keep it short.",
        "1. Make a.txt",
        "language:path",
    ):
        assert stable in system
    assert system == sandbox.model.requests[0].messages[0].content
    assert "present content" in user
    assert "created a.txt" in user
    shown, step, description = map(
        user.index, ("present content", "Make old", DESCRIPTION)
    )
    assert shown < step < description


async def test_a_failed_attempt_is_taken_back_and_tried_again_with_the_reason(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("before\n")
    sandbox.write(Step("a.txt", check("a.txt")))
    sandbox.replies(
        "Two files.\n\n```text:a.txt\nbad\n```\n```text:new/extra.txt\nx\n```\n",
        says("a.txt", "good"),
    )

    events = await run_all(sandbox, attempts=3)

    assert sandbox.text("a.txt") == "good\n"
    assert not (sandbox.root / "new").exists()
    assert of(ChangesPutBack, events) == [
        ChangesPutBack(1, ("a.txt", "new/extra.txt"), ())
    ]
    assert SAYS_BAD in sandbox.prompt()
    assert "before" in sandbox.prompt()
    assert sandbox.state()["step_executions"]["1"]["files_modified"] == ["a.txt"]
    assert sandbox.state()["step_executions"]["1"]["files_created"] == []


async def test_after_the_last_attempt_the_step_is_failed_and_its_files_stay(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt"))
    sandbox.replies(says("a.txt", "bad"), says("a.txt", "worse"))

    events = await run_all(sandbox, attempts=2)

    assert [event.will_retry for event in of(AttemptFailed, events)] == [True, False]
    assert sandbox.text("a.txt") == "worse\n"
    assert sandbox.statuses() == ["failed", "pending"]
    assert sandbox.state()["status"] == "failed"
    assert len(sandbox.model.requests) == 2


async def test_a_later_run_retries_the_failed_step_from_where_it_started(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    await run_all(sandbox.replies(says("a.txt", "bad")))

    events = await run_all(sandbox.replies(says("b.txt", "x") + says("a.txt", "good")))

    assert of(ChangesPutBack, events)[0].restored == ("a.txt",)
    assert SAYS_BAD in sandbox.prompt()
    assert "\na.txt " in sandbox.prompt()
    assert sandbox.statuses() == ["completed"]


async def test_a_persons_edit_of_a_failed_step_is_kept_and_told_and_shown_to_the_model(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    await run_all(sandbox.replies(says("a.txt", "bad")))
    (sandbox.root / "a.txt").write_text(f"{BY_HAND}\n")

    events = await run_all(sandbox.replies(says("a.txt", "good")))

    assert of(ChangesPutBack, events)[0].kept == ("a.txt",)
    assert BY_HAND in sandbox.prompt()
    assert sandbox.text("a.txt") == "good\n"


async def test_a_finished_ticket_asks_no_model(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    await run_all(sandbox.replies(says("a.txt", "good")))
    before = (sandbox.ticket / "execution-state.json").read_bytes()

    events = await run_all(sandbox.replies())

    assert [type(event) for event in events] == [RunFinished]
    assert sandbox.model.requests == []
    assert (sandbox.ticket / "execution-state.json").read_bytes() == before


@each_row(
    ("reply", "words"),
    [
        ("All done, tests pass!", ReplyFault.NO_FILES.words),
        ("```python\nprint(1)\n```", ReplyFault.NO_FILES.words),
        (says("../out.txt", "x"), ReplyFault.FORBIDDEN.words),
        (says(".cdd/config.yaml", "x"), ReplyFault.FORBIDDEN.words),
        (
            says(f"tickets/{SLUG}/execution-state.json", "{}"),
            ReplyFault.FORBIDDEN.words,
        ),
        ("```text:a.txt\ncut", ReplyFault.UNFINISHED.words),
        (
            ScriptedReply("```text:a.txt\ngood\n```\n", stop=StopReason.LENGTH),
            "length limit",
        ),
        (ScriptedReply("I can't", stop=StopReason.REFUSED), "content filter"),
    ],
)
async def test_a_reply_that_cannot_be_used_fails_the_attempt_and_writes_nothing(
    sandbox: Sandbox, reply: str | ScriptedReply, words: str
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    events = await run_all(sandbox.replies(reply))
    assert words in (of(StepFinished, events)[0].error or "")
    assert sorted(path.name for path in sandbox.root.iterdir()) == [".cdd", "tickets"]
    assert not (sandbox.root.parent / "out.txt").exists()
    assert sandbox.statuses() == ["failed"]


async def test_a_file_that_the_model_had_not_seen_is_shown_to_it_on_the_next_attempt(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "other.txt").write_text("precious")
    sandbox.write(Step("a.txt", check("a.txt")))
    both = says("a.txt", "good") + says("other.txt", "precious, more")

    await run_all(sandbox.replies(both, both), attempts=2)

    assert "precious" not in sandbox.prompt(0)
    assert "precious" in sandbox.prompt(1)
    assert sandbox.text("other.txt") == "precious, more"


async def test_a_file_edited_while_the_model_writes_is_not_overwritten(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("old")
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    engine = sandbox.engine()

    def edit(event: Event) -> None:
        if isinstance(event, ReplyStarted):
            (sandbox.root / "a.txt").write_text(BY_HAND)

    with told_to(edit):
        await engine.run_all()
    engine.close()

    assert sandbox.text("a.txt") == BY_HAND
    assert (
        build_changed_refusal(PurePosixPath("a.txt")).for_user
        in sandbox.state()["step_executions"]["1"]["error"]
    )


async def test_a_step_that_names_no_files_is_completed_by_words(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step(None, "none"), Step("a.txt", check("a.txt")))
    await run_all(sandbox.replies("I would use SQLite.", says("a.txt", "good")))
    assert sandbox.state()["step_executions"]["1"]["verification"] == "none"
    assert sandbox.statuses() == ["completed", "completed"]


async def test_without_a_test_framework_a_step_is_completed_and_says_it_is_unverified(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    events = await run_all(sandbox.replies(says("a.txt", "good")))
    assert of(TestsFinished, events)[0].verification is Verification.NONE
    assert of(StepFinished, events)[0].verification is Verification.NONE
    assert of(RunFinished, events)[0].unverified == 1


async def test_a_check_that_takes_too_long_fails(sandbox: Sandbox) -> None:
    sandbox.flags = {"test_timeout": 0.05}
    sandbox.write(Step("a.txt", 'python -c "import time; time.sleep(60)"'))
    events = await run_all(sandbox.replies(says("a.txt", "good")))
    assert " 0.05 s" in (of(StepFinished, events)[0].error or "")


async def test_a_model_that_cannot_be_asked_ends_the_run_with_its_exit_code(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    error = AuthenticationFailed("no")
    engine = sandbox.replies(error, says("a.txt", "good")).engine()
    events = await collect(engine.run_all(attempts=3))
    engine.close()
    assert engine.stopped_by is error
    assert engine.stopped_by.exit_code is ExitCode.BAD_INPUT
    assert of(StepFinished, events)[0].status is StepStatus.PENDING
    assert notice(events, NoticeKind.MODEL_FAILED) == "no"
    assert len(sandbox.model.requests) == 1


async def test_a_provider_that_asks_to_come_back_later_leaves_the_step_pending(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    engine = sandbox.replies(
        RateLimited("Later.", retry_after=600), says("a.txt", "good")
    ).engine()
    events = await collect(engine.run_all(attempts=3))
    engine.close()
    assert engine.stopped_by
    assert engine.stopped_by.exit_code is ExitCode.COME_BACK_LATER
    assert "at 12:10" in str(of(Notice, events)[-1].text)
    assert sandbox.statuses() == ["pending"]
    assert len(sandbox.model.requests) == 1

    await run_all(sandbox.replies(says("a.txt", "good")))

    assert sandbox.statuses() == ["completed"]
    assert sandbox.state()["step_executions"]["1"]["attempts"] == 1


async def test_a_retry_after_the_model_could_not_be_asked_works(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    await run_all(sandbox.replies(AuthenticationFailed("no")))
    await run_all(sandbox.replies(says("a.txt", "good")))
    assert sandbox.statuses() == ["completed"]


class Refusal(Nobody):
    async def review(self, review: Review) -> Decision:
        return Decision(Choice.NO, review)


async def test_changes_that_are_not_approved_leave_no_trace_and_cost_no_second_reply(
    sandbox: Sandbox,
) -> None:
    sandbox.flags, sandbox.frontend = {"approval": "ask"}, Refusal()
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    await collect(engine.run_all())
    engine.close()
    assert isinstance(engine.stopped_by, NotApproved)
    assert sandbox.statuses() == ["pending"]
    assert not (sandbox.root / "a.txt").exists()

    sandbox.flags = {"approval": "auto"}
    events = await run_all(sandbox.replies())

    assert [event.saved for event in of(ReplyStarted, events)] == [True]
    assert sandbox.statuses() == ["completed"]


def is_under_way(event: Event, moment: str) -> bool:
    match moment:
        case "reply":
            return isinstance(event, ReplyDelta)
        case _:
            return isinstance(event, CommandOutput)


@each_row("moment", ["reply", "tests"])
@each_row("how", ["at once", "soon"])
async def test_a_stopped_step_leaves_no_trace_and_goes_on(
    sandbox: Sandbox, moment: str, how: str
) -> None:
    code = (
        "import time; print('running', flush=True); time.sleep(0.3); assert 'good' in"
        " open('a.txt').read()"
    )
    (sandbox.root / "a.txt").write_text("before")
    sandbox.write(Step("a.txt", f'python -c "{code}"')).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    reached = asyncio.Event()

    def listen(event: Event) -> None:
        if is_under_way(event, moment):
            reached.set()
            if how == "at once":
                task.cancel()

    with told_to(listen):
        task = asyncio.create_task(engine.run_all())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    engine.close()

    assert sandbox.text("a.txt") == "before"
    assert sandbox.statuses() == ["pending"]

    await run_all(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert len(sandbox.model.requests) == (2 if moment == "reply" else 1)
    assert sandbox.state()["step_executions"]["1"]["attempts"] == 1


async def test_guidance_given_after_a_stop_asks_anew(sandbox: Sandbox) -> None:
    sandbox.flags, sandbox.frontend = {"approval": "ask"}, Refusal()
    sandbox.write(Step("a.txt", check("a.txt"))).replies(
        says("a.txt", "good"), says("a.txt", "good, in blue")
    )
    engine = sandbox.engine()
    await collect(engine.run_all())
    step = engine.run.next_step
    assert step
    await collect(engine.run_step(step, guidance=DESCRIPTION))
    engine.close()
    assert sandbox.prompt().endswith(DESCRIPTION)


async def test_a_step_found_in_progress_is_put_back_and_goes_on_from_its_saved_reply(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    killed, record = b"", dict[Path, bytes]()

    def is_checked(event: Event) -> bool:
        nonlocal killed, record
        if not isinstance(event, CommandOutput):
            return False
        killed = (sandbox.ticket / "execution-state.json").read_bytes()
        record = {
            path: path.read_bytes()
            for path in (sandbox.root / ".cdd/runs").rglob("*")
            if path.is_file()
        }
        return True

    await stop_at(engine.run_step(step), is_checked)
    engine.close()
    for path, data in record.items():  # the disk as a kill would have left it
        path.write_bytes(data)
    (sandbox.root / "a.txt").write_text("good\n")
    (sandbox.ticket / "execution-state.json").write_bytes(killed)
    assert sandbox.statuses() == ["in_progress"]

    events = await run_all(sandbox.replies())

    assert of(ChangesPutBack, events)[0].restored == ("a.txt",)
    assert sandbox.statuses() == ["completed"]
    assert sandbox.model.requests == []


def step_one(engine: Engine) -> StepStatus:
    return engine.run.state.step(1).status


async def test_skip_discards_what_the_step_left_and_frees_those_that_depend_on_it(
    sandbox: Sandbox,
) -> None:
    sandbox.write(
        Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1")
    )
    engine = sandbox.replies(says("a.txt", "bad"), says("b.txt", "good")).engine()
    await collect(engine.run_all())
    step = engine.run.next_step
    assert step
    assert sandbox.text("a.txt") == "bad\n"

    told = await collect(engine.skip(step, "not needed", keep=False))
    await collect(engine.run_all())
    engine.close()

    assert not (sandbox.root / "a.txt").exists()
    assert "Step 2" in notice(told, NoticeKind.DEPENDENTS)
    assert sandbox.statuses() == ["skipped", "completed"]
    assert sandbox.state()["step_executions"]["1"]["reason"] == "not needed"
    assert "(not needed)" in sandbox.prompt()
    assert sandbox.state()["status"] == "completed"


async def test_skip_keep_keeps_the_files_and_says_which(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    engine = sandbox.replies(says("a.txt", "bad")).engine()
    await collect(engine.run_all())
    step = engine.run.next_step
    assert step
    await collect(engine.skip(step, "mine", keep=True))
    engine.close()
    assert sandbox.text("a.txt") == "bad\n"
    assert sandbox.state()["step_executions"]["1"]["files_created"] == ["a.txt"]


async def test_a_second_engine_on_the_same_ticket_is_refused(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    engine = sandbox.engine()
    with pytest.raises(TicketTaken) as refused:
        sandbox.engine()
    since = refused.value.who.partition(", since ")[2]
    assert datetime.strptime(since, "%Y-%m-%d %H:%M")  # by the clock on the wall
    engine.close()
    sandbox.engine().close()


async def test_an_unreadable_state_is_set_aside_and_told_and_not_overwritten(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    state = sandbox.ticket / "execution-state.json"
    state.write_text(TORN)

    with pytest.raises(BadInput, match="execution-state"):
        sandbox.engine()

    assert [path.read_text() for path in sandbox.ticket.glob("*.aside-*")] == [TORN]
    assert not state.exists()


async def test_a_state_that_was_removed_starts_the_run_afresh(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    await run_all(sandbox.replies(says("a.txt", "one")))
    lose_state(sandbox)

    events = await run_all(sandbox.replies(says("a.txt", "two")))

    assert [event.saved for event in of(ReplyStarted, events)] == [False]
    assert of(ChangesPutBack, events) == []
    assert sandbox.text("a.txt") == "two\n"
    assert sandbox.state()["step_executions"]["1"]["files_modified"] == ["a.txt"]


async def test_skipping_after_the_state_was_removed_is_empty_back(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    await run_all(sandbox.replies(says("a.txt", "one")))
    lose_state(sandbox)
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    await collect(engine.skip(step, "done already", keep=False))
    engine.close()
    assert sandbox.text("a.txt") == "one\n"


async def test_a_disk_that_refuses_leaves_the_step_failed_and_nothing_half_written(
    sandbox: Sandbox,
) -> None:
    """The second file's folder becomes a file between the judgement and the write."""
    sandbox.flags = {"approval": "ask"}

    class Saboteur(Nobody):
        async def review(self, review: Review) -> Decision:
            (sandbox.root / "b").write_text("in the way")
            return Decision(Choice.YES, review)

    sandbox.frontend = Saboteur()
    sandbox.write(Step("a.txt", check("a.txt")))
    events = await run_all(
        sandbox.replies(says("a.txt", "good") + says("b/c.txt", "x"))
    )

    assert "b/c.txt" in (of(StepFinished, events)[0].error or "")
    assert not (sandbox.root / "a.txt").exists()


# What a hard look at the engine found: nothing that a person wrote may ever be only in
# memory.


async def test_an_edit_made_while_approval_is_asked_for_is_not_overwritten(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"approval": "ask"}
    (sandbox.root / "a.txt").write_text("before")

    class Thoughtful(Nobody):
        async def review(self, review: Review) -> Decision:
            (sandbox.root / "a.txt").write_text(BY_HAND)
            return Decision(Choice.YES, review)

    sandbox.frontend = Thoughtful()
    sandbox.write(Step("a.txt", check("a.txt")))
    events = await run_all(sandbox.replies(says("a.txt", "good")))

    assert build_changed_refusal(PurePosixPath("a.txt")).for_user in (
        of(StepFinished, events)[0].error or ""
    )
    assert sandbox.text("a.txt") == BY_HAND


async def test_what_an_attempt_replaced_is_kept_also_when_the_check_rewrites_the_file(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("ORIGINAL")
    code = "open('a.txt', 'a').write('formatted'); raise SystemExit(1)"
    sandbox.write(Step("a.txt", f'python -c "{code}"'))
    await run_all(
        sandbox.replies(*[says("a.txt", f"bad {n}") for n in range(3)]), attempts=3
    )

    saved = sandbox.root / ".cdd/runs" / SLUG / "versions"
    assert "ORIGINAL" in [path.read_text() for path in saved.iterdir()]


async def test_after_a_lost_state_the_record_of_the_old_run_is_set_aside_not_lost(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("ORIGINAL")
    sandbox.write(Step("a.txt", check("a.txt")))
    await run_all(sandbox.replies(says("a.txt", "bad")))
    lose_state(sandbox)

    await run_all(sandbox.replies(says("a.txt", "good")))

    runs = sandbox.root / ".cdd/runs" / SLUG
    (aside,) = runs.glob("step-01/ledger*.aside-*")
    (reply,) = [
        entry for entry in LedgerFile(aside).entries() if entry.kind is EntryKind.REPLY
    ]
    before = reply.changes[0].before
    assert before
    assert (runs / "versions" / before.content).read_text() == "ORIGINAL"


async def test_a_reply_of_a_run_whose_state_was_taken_back_is_not_used(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    await run_all(sandbox.replies(says("a.txt", "bad")))
    before = (sandbox.ticket / "execution-state.json").read_bytes()
    await run_all(sandbox.replies(says("a.txt", "worse")))
    # as `git checkout` would
    (sandbox.ticket / "execution-state.json").write_bytes(before)

    await run_all(sandbox.replies(says("a.txt", "good")))

    assert len(sandbox.model.requests) == 1
    assert sandbox.text("a.txt") == "good\n"


async def test_a_saved_reply_to_a_step_that_was_rewritten_since_is_not_used(
    sandbox: Sandbox,
) -> None:
    sandbox.flags, sandbox.frontend = {"approval": "ask"}, Refusal()
    sandbox.write(Step("a.txt", check("a.txt"), description="Old words."))
    await run_all(sandbox.replies(says("a.txt", "good, old")))
    sandbox.flags = {"approval": "auto"}
    sandbox.write(Step("a.txt", check("a.txt"), description="New words."))

    await run_all(sandbox.replies(says("a.txt", "good, new")))

    assert "New words." in sandbox.prompt()
    assert sandbox.text("a.txt") == "good, new\n"


@each_row("edit", ["edited", "removed", "created"])
async def test_a_saved_reply_is_not_used_when_a_file_that_was_shown_is_another_since(
    sandbox: Sandbox, edit: str
) -> None:
    """Also a file that the reply does not write: the model went by what it saw
    there.
    """
    notes = sandbox.root / "notes.txt"
    if edit != "created":
        notes.write_text("as it was shown\n")
    sandbox.flags, sandbox.frontend = {"approval": "ask"}, Refusal()
    sandbox.write(Step("a.txt", check("a.txt"), also=("`notes.txt`",)))
    await run_all(sandbox.replies(says("a.txt", "good, by the old notes")))
    sandbox.flags = {"approval": "auto"}
    if edit == "removed":
        notes.unlink()
    else:
        notes.write_text(f"{NOW}\n")

    await run_all(sandbox.replies(says("a.txt", "good new")))

    assert (NOW in sandbox.prompt()) == (edit != "removed")
    assert sandbox.text("a.txt") == "good new\n"


@each_row("refuses", ["the ticket's", "the copy"])
async def test_what_could_not_be_saved_is_not_believed(
    sandbox: Sandbox, refuses: str
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    engine = sandbox.engine()
    believed = engine.run.state
    places = {
        "the ticket's": engine.run.ticket.state_path,
        "the copy": engine.run.record.state,
    }
    (places[refuses] / "in the way").mkdir(parents=True)

    with pytest.raises(NotWritten):
        engine.run.save(
            believed.started(engine.run.plan.steps[0], engine.clock(), attempt=1)
        )
    engine.close()

    assert engine.run.state is believed
    assert places["the ticket's"].is_file() == (refuses == "the copy")
    assert not places["the copy"].is_file()


async def test_the_ledger_is_on_the_disk_before_the_first_file_is_written(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill comes between the two, and the next process finds what it needs."""
    sandbox.write(Step("a.txt", check("a.txt"))).replies(
        says("a.txt", "good") + says("b.txt", "new")
    )
    (sandbox.root / "a.txt").write_text("ORIGINAL")
    found: list[tuple[list[EntryKind], dict[str, str | None], list[str]]] = []
    apply = ChangeSet.apply

    def looked_at(changes: ChangeSet, root: Path) -> None:
        run = root / ".cdd/runs" / SLUG
        entries = LedgerFile(run / "step-01/ledger.jsonl").entries()
        kinds = [entry.kind for entry in entries]
        written = {
            change.path: change.after.content if change.after else None
            for change in entries[-1].changes
        }
        saved = [path.read_text() for path in (run / "versions").iterdir()]
        found.append((kinds, written, sorted(saved)))
        assert (root / "a.txt").read_text() == "ORIGINAL"
        assert not (root / "b.txt").exists()
        apply(changes, root)

    monkeypatch.setattr(ChangeSet, "apply", looked_at)
    await run_all(sandbox)

    ((kinds, written, saved),) = found
    assert kinds == [EntryKind.BEGIN, EntryKind.REPLY]
    assert written == {
        "a.txt": hash_of(sandbox, "a.txt"),
        "b.txt": hash_of(sandbox, "b.txt"),
    }
    assert saved == ["ORIGINAL", "good", "new\n"]
    assert sandbox.statuses() == ["completed"]


async def test_a_step_that_was_removed_from_the_plan_is_history_and_does_not_count(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    await run_all(sandbox.replies(says("a.txt", "good"), says("b.txt", "bad")))
    assert sandbox.state()["status"] == "failed"
    sandbox.write(Step("a.txt", check("a.txt")))

    events = await run_all(sandbox.replies())

    assert of(RunFinished, events)[0].status is RunStatus.COMPLETED


async def test_a_check_that_cannot_be_run_is_told_before_any_model_is_asked(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", "cd x; pytest"))
    with pytest.raises(BadInput, match=r"^Step 2"):
        sandbox.engine()


@each_row(
    "path",
    ["hooks/pre-commit", "tickets/bug-other/execution-state.json", "away/plan.md"],
)
async def test_links_do_not_lead_a_reply_to_what_is_not_its_own(
    sandbox: Sandbox, path: str
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    (sandbox.root / ".git/hooks").mkdir(parents=True)
    (sandbox.root / "hooks").symlink_to(sandbox.root / ".git/hooks")
    (sandbox.root / "away").symlink_to(sandbox.ticket)
    events = await run_all(sandbox.replies(says(path, "x")))
    assert path in (of(StepFinished, events)[0].error or "")
    assert sandbox.statuses() == ["failed"]


async def test_a_link_is_not_written_through(sandbox: Sandbox) -> None:
    (sandbox.root / "link.txt").symlink_to("target.txt")
    sandbox.write(Step("link.txt", check("link.txt")))
    events = await run_all(sandbox.replies(says("link.txt", "good")))
    assert "is a link" in (of(StepFinished, events)[0].error or "")
    assert (sandbox.root / "link.txt").is_symlink()
    assert not (sandbox.root / "target.txt").exists()


async def test_a_file_with_secrets_is_not_shown_because_a_reply_names_it(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".env").write_text("PASSWORD=topsecret")
    sandbox.write(Step("a.txt", check("a.txt")))
    both = says("a.txt", "good") + says(".env", "X=1")
    await run_all(sandbox.replies(both, both), attempts=2)
    assert "topsecret" not in sandbox.prompt()
    assert sandbox.text(".env") == "PASSWORD=topsecret"


@each_row("length", [300, 2000])
async def test_a_name_that_no_disk_takes_is_refused(
    sandbox: Sandbox, length: int
) -> None:
    code = "x = 'a.b'; " + "y = 1; " * 60
    sandbox.write(Step("a.txt", f'python -c "{code}"'))
    events = await run_all(sandbox.replies(says("x" * length + ".py", "x")))
    assert of(StepFinished, events)[0].status is StepStatus.FAILED
    assert "xxx" in (of(StepFinished, events)[0].error or "")


async def test_what_is_edited_while_a_check_runs_is_saved_before_it_is_discarded(
    sandbox: Sandbox,
) -> None:
    """An edit of the step's own file cannot be told from a change of the check."""
    slow = "python -c \"import time; print('running', flush=True); time.sleep(30)\""
    sandbox.write(Step("a.txt", slow)).replies(
        says("a.txt", "good") + says("b.txt", "x")
    )
    engine = sandbox.engine()

    def is_checked(event: Event) -> bool:
        if isinstance(event, CommandOutput):
            (sandbox.root / "a.txt").write_text(BY_HAND)
            (sandbox.root / "c.txt").write_text(BY_HAND)
        return isinstance(event, CommandOutput)

    events = await stop_at(engine.run_all(), is_checked)
    assert of(ChangesPutBack, events) == [ChangesPutBack(1, ("a.txt", "b.txt"), ())]
    assert "c.txt" in notice(events, NoticeKind.LEFT_AS_IS)
    engine.close()
    assert not (sandbox.root / "a.txt").exists()
    assert sandbox.text("c.txt") == BY_HAND
    kept = sandbox.root / ".cdd/runs" / SLUG / "kept"
    assert {path.name: path.read_text() for path in kept.iterdir()} == {
        "a.txt": BY_HAND
    }


async def test_what_is_edited_before_a_check_starts_is_kept_and_named(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(
        says("a.txt", "bad") + says("b.txt", "x")
    )
    engine = sandbox.engine()

    def edit(event: Event) -> None:
        if isinstance(event, ChangesApplied):
            (sandbox.root / "a.txt").write_text(BY_HAND)

    with told_to(edit):
        await engine.run_all()
    step = engine.run.next_step
    assert step
    events = await collect(engine.skip(step, "no", keep=False))
    engine.close()
    assert of(ChangesPutBack, events) == [ChangesPutBack(1, ("b.txt",), ("a.txt",))]
    assert sandbox.text("a.txt") == BY_HAND


async def test_leftovers_of_a_killed_write_are_removed(sandbox: Sandbox) -> None:
    sandbox.write(Step("new/deep/a.txt", check("new/deep/a.txt"))).replies(
        says("new/deep/a.txt", "good")
    )
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    folder = sandbox.root / "new/deep"

    def is_checked(event: Event) -> bool:
        if isinstance(event, CommandOutput):
            # a kill between the write and the rename
            (folder / "a.txt").rename(folder / LEFTOVER)
        return isinstance(event, CommandOutput)

    await stop_at(engine.run_step(step), is_checked)
    engine.close()
    assert not (sandbox.root / "new").exists()


async def test_what_got_no_answer_is_no_attempt(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    for _ in range(3):
        await run_all(sandbox.replies(AuthenticationFailed("no")), attempts=3)
    await run_all(sandbox.replies(says("a.txt", "good")))
    assert sandbox.state()["step_executions"]["1"]["attempts"] == 1


async def test_a_check_that_cannot_start_ends_the_run_and_the_reply_is_used_later(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    sandbox.flags = {"test_command": "no-such-tester"}
    engine = sandbox.replies(says("a.txt", "good"), says("a.txt", "again")).engine()
    await collect(engine.run_all(attempts=3))
    engine.close()
    assert engine.stopped_by
    assert engine.stopped_by.exit_code is ExitCode.BAD_INPUT
    assert not (sandbox.root / "a.txt").exists()

    sandbox.flags = {"test_command": "ls"}
    await run_all(sandbox)

    assert len(sandbox.model.requests) == 1
    assert sandbox.statuses() == ["completed"]


async def test_a_spec_that_is_not_filled_in_is_told(sandbox: Sandbox) -> None:
    sandbox.write(
        Step("a.txt"), spec="title: '<one line: what is wanted>'\ndescription: x\n"
    )
    engine = sandbox.engine()
    told = await collect(engine.recover())
    engine.close()
    lacking = [
        event.text
        for event in told
        if isinstance(event, Notice) and event.kind is NoticeKind.SPEC_INCOMPLETE
    ]
    assert any("title" in line for line in lacking)
    assert any("acceptance_criteria" in line for line in lacking)
