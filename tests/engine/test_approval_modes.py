"""What each approval mode asks about, wherever the question comes from; and that a
change of the mode counts from the next question on.
"""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from cdd_agent.changes.review import Review
from cdd_agent.commands.registry import handle
from cdd_agent.engine.approval_mode import ACCEPTED_RUN, MODES, TITLES, ApprovalMode
from cdd_agent.engine.record import RunRecord
from cdd_agent.events.question_events import (
    AcceptingAll,
    ApprovalChanged,
    Choice,
    Proposal,
)
from cdd_agent.events.step_events import CheckpointStarted
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult
from cdd_agent.settings.config import Approval, Commands
from cdd_agent.text.redaction import Redactor
from cdd_agent.verification.checks import checks_for
from tests.engine.calculator import calculator
from tests.engine.test_test_leave import REMOVES, STEP
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row

ASK, EDITS, AUTO = MODES
CHANGES = {"ask": True, "edits": False, "auto": False}
UNLISTED = {"ask": True, "edits": True, "auto": False}
ALWAYS = dict.fromkeys(MODES, True)
NEVER = dict.fromkeys(MODES, False)
CREATE = {"file_path": "new.py", "content": "x = 1\n"}
OF_CHAT = {
    "a change of a file": ("create_file", CREATE, "ask", CHANGES),
    "a listed command": ("execute_command", {"command": "pwd"}, "ask", NEVER),
    "another command": ("execute_command", {"command": "true"}, "ask", UNLISTED),
    "a pipe": ("execute_command", {"command": "pwd | pwd"}, "ask", UNLISTED),
    "a secret": ("execute_command", {"command": "cat .env"}, "ask", ALWAYS),
    "a secret by another program": (
        "execute_command",
        {"command": "sed -n 1p .env"},
        "ask",
        ALWAYS,
    ),
    "a search that finds a secret": (
        "execute_command",
        {"command": "git grep KEY"},
        "ask",
        ALWAYS,
    ),
    "a search that finds none": (
        "execute_command",
        {"command": "git grep harmless"},
        "ask",
        UNLISTED,
    ),
    "a refused command": ("execute_command", {"command": "true"}, "safe", NEVER),
    "any command": ("execute_command", {"command": "true"}, "unsafe", NEVER),
}


async def run_nothing(argv: Sequence[str], **options: object) -> CommandResult:
    """Stand in for every program. A search for anything harmful lists a secret file."""
    del options
    return CommandResult("a.py\0" if "harmless" in argv else ".env\0", "", 0)


class User(Nobody):
    """Says yes to everything, and keeps what was asked."""

    def __init__(self, choice: Choice = Choice.YES) -> None:
        self.asked: list[Proposal | Review] = []
        self.choice = choice

    async def approve(self, proposal: Proposal) -> Choice:
        self.asked.append(proposal)
        return Choice.YES

    async def review(self, review: Review) -> Decision:
        self.asked.append(review)
        return Decision(self.choice, review)


def rows() -> list[tuple[str, Approval, Approval]]:
    """Every event in every mode, set at the start or changed before the event."""
    return [
        (event, first, mode) for event in OF_CHAT for first in MODES for mode in MODES
    ]


@each_row(("event", "first", "mode"), rows())
async def test_chat_asks_what_the_mode_of_this_moment_asks(
    sandbox: Sandbox, event: str, first: Approval, mode: Approval
) -> None:
    tool, arguments, commands, expected = OF_CHAT[event]
    (sandbox.root / ".env").write_text("KEY=secret\n")
    sandbox.flags = {"approval": first}
    sandbox.frontend, sandbox.run_program = User(), run_nothing
    call = ToolCall("call-1", tool, json.dumps(arguments))
    sandbox.replies(ScriptedReply(tool_calls=(call,)), "Done.")
    project = sandbox.project
    config = replace(project.config, commands=Commands(mode=commands))
    wiring = replace(sandbox.wiring(), project=replace(project, config=config))
    session = wiring.session
    session.change_approval(mode)
    await handle(session, "do it")
    assert bool(sandbox.frontend.asked) is expected[mode]  # type: ignore[attr-defined]


@each_row(("first", "mode"), [(first, mode) for first in MODES for mode in MODES])
async def test_a_step_asks_what_the_mode_of_this_moment_asks(
    sandbox: Sandbox, first: Approval, mode: Approval
) -> None:
    sandbox.flags = {"approval": first}
    sandbox.frontend = user = User()
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    session = sandbox.session()
    await handle(session, f"/exec {SLUG}")
    session.change_approval(mode)
    await handle(session, "continue")
    assert len(user.asked) == CHANGES[mode]
    assert sandbox.statuses() == ["completed"]


async def test_a_mode_that_changes_while_the_checkpoint_is_taken_counts(
    sandbox: Sandbox,
) -> None:
    def ask_from_the_checkpoint_on(event: Event) -> None:
        if isinstance(event, CheckpointStarted):
            session.approval.change("ask")

    sandbox.frontend = user = User()
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    session = sandbox.session(ask_from_the_checkpoint_on)
    await handle(session, f"/exec {SLUG}")
    await handle(session, "continue")
    assert len(user.asked) == 1
    assert sandbox.statuses() == ["completed"]


@each_row("mode", MODES)
async def test_every_mode_asks_before_a_step_removes_tests(
    sandbox: Sandbox, mode: Approval
) -> None:
    sandbox.frontend = user = User(Choice.ALWAYS)
    session = calculator(sandbox, STEP).replies(REMOVES).session()
    session.change_approval(mode)
    await handle(session, f"/exec {SLUG}")
    await handle(session, "continue")
    proposals = [asked for asked in user.asked if not isinstance(asked, Review)]
    assert len(proposals) == 1


@each_row(
    ("is_trusted", "mode", "is_asked"),
    [
        *[(True, mode, UNLISTED[mode]) for mode in MODES],
        *[(False, mode, True) for mode in MODES],
    ],
)
def test_a_check_that_is_not_trusted_is_asked_about_in_every_mode(
    sandbox: Sandbox, is_trusted: bool, mode: Approval, is_asked: bool
) -> None:
    approval = ApprovalMode(mode)
    commands = CommandRunner(
        sandbox.root, Commands(mode="ask"), asks=lambda: approval.asks_before_commands
    )
    accepts = replace(commands.trusted_checks, accepts=lambda line: is_trusted)
    commands = replace(commands, trusted_checks=accepts)
    sandbox.write(Step("a.txt", "ship it"))
    (step,) = sandbox.project.tickets.find(SLUG).read_plan().steps
    (planned,) = checks_for(step, None, commands)
    assert commands.must_ask(planned.command) is is_asked


@each_row("mode", MODES)
def test_a_run_without_a_shell_asks_about_commands_in_every_mode(
    sandbox: Sandbox, mode: Approval
) -> None:
    sandbox.flags = {"approval": mode}
    assert replace(sandbox.wiring(), watched=False).commands.asks()
    assert sandbox.wiring().commands.asks() is (mode != "auto")


async def test_all_of_a_run_is_accepted_until_its_agent_is_left(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"approval": "ask"}
    sandbox.frontend = user = User(Choice.ALWAYS)
    sandbox.write(Step("a.txt"), Step("b.txt")).replies(says("a.txt", "good"))
    session = sandbox.session()
    assert session.approval.title == TITLES["ask"]
    await handle(session, f"/exec {SLUG}")
    await handle(session, "continue")
    assert session.approval.title == ACCEPTED_RUN
    assert not session.approval.asks_before_edits(session.approval.accepted_run)
    assert session.approval.asks_before_edits()  # outside of the run
    await handle(session, f"/diff {SLUG}")
    assert session.approval.title == ACCEPTED_RUN
    session.leave()
    assert session.approval.title == TITLES["ask"]
    assert len(user.asked) == 1


@each_row(
    ("mode", "accepts_run", "toggled"),
    [
        ("ask", False, "edits"),
        ("ask", True, "ask"),
        ("edits", False, "ask"),
        ("edits", True, "ask"),
        ("auto", False, "ask"),
    ],
)
def test_a_toggle_never_leads_to_auto_and_ends_what_was_accepted(
    sandbox: Sandbox, mode: Approval, accepts_run: bool, toggled: Approval
) -> None:
    run = sandbox.root
    approval = ApprovalMode(mode, run if accepts_run else None)
    assert approval.toggled == toggled
    approval.change(approval.toggled)
    assert approval.asks_before_edits(run) is (toggled == "ask")


async def test_a_change_of_the_mode_is_in_the_log_of_the_open_run(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt")).replies(says("a.txt", "good"))
    session = sandbox.session()
    await handle(session, f"/exec {SLUG}")
    events = await collect(handle(session, "/approval ask"))
    events += await collect(handle(session, "ask"))
    assert [e for e in events if isinstance(e, ApprovalChanged)] == [
        ApprovalChanged("ask")
    ]
    log = RunRecord.of_ticket(sandbox.project.tickets.find(SLUG), Redactor()).log
    logged = [entry.event for entry in log.entries()]
    assert logged.count(ApprovalChanged("ask")) == 1
    session.change_approval("edits")
    await handle(session, "ask")
    assert session.approval.value == "ask"


async def test_accepting_all_counts_for_its_own_run_alone(sandbox: Sandbox) -> None:
    sandbox.flags = {"approval": "ask"}
    sandbox.frontend = User(Choice.ALWAYS)
    sandbox.write(Step("a.txt"), Step("b.txt"))
    events = await run_all(
        sandbox.replies(says("a.txt", "good"), says("b.txt", "good"))
    )
    accepted = [event.is_on for event in events if isinstance(event, AcceptingAll)]
    assert accepted == [True, False]
