"""The model's first call beside the baseline: what may be done before it is over, and
what waits for it.

The project's own check is one that is over when the test lets it, and says at its end
what was in the project then.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from msgspec import structs

from cdd_agent import work_clock
from cdd_agent.events.dialogue_events import (
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.events.question_events import ChangesProposed, CommandProposed
from cdd_agent.events.run_events import BaselineAwaited, BaselineStarted, BaselineTaken
from cdd_agent.events.step_events import AttemptFailed, CheckpointStarted, StepStarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import AuthenticationFailed, QuotaUsedUp
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.process.run import CommandResult, OutputChunk
from cdd_agent.tickets.status import StepStatus
from tests.engine.tool_steps import calls, create, execute, read, replace
from tests.support.commandline import process, script, wait_for
from tests.support.fake_programs import FakePrograms
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says

T = TypeVar("T")
CHECK = "held check"
LEAVES = "open('left.txt', 'w').write('by the tests')\n"
GOOD = says("a.txt", "good")
STEP = Step("a.txt")


def of(kind: type[T], events: list[Event]) -> list[T]:
    return [event for event in events if isinstance(event, kind)]


class Held(FakePrograms):
    """The project's own check goes on until the test lets it go. Then it prints which
    text files are in the project, and executes `code`.
    """

    def __init__(self, sandbox: Sandbox, code: str = "") -> None:
        super().__init__()
        self.code, self.record = code, sandbox.root / ".cdd/runs" / SLUG
        self.gate = asyncio.Event()
        sandbox.flags = {"test_command": CHECK, "test_timeout": 90}
        sandbox.run_program = self

    async def __call__(self, argv: Sequence[str], **how: Any) -> CommandResult:
        if list(argv) != CHECK.split():
            return await super().__call__(argv, **how)
        how["on_output"](OutputChunk("under way\n", "stdout"))
        await self.gate.wait()
        listing = (
            "import os; names = sorted(os.listdir());"
            " print('there is', *(name for name in names if name.endswith('.txt')))"
        )
        result = await super().__call__(
            ["python", "-c", f"{listing}\n{self.code}"], **how
        )
        return structs.replace(result, stdout=f"under way\n{result.stdout}")

    def let_go(self) -> None:
        self.gate.set()

    @property
    def is_over(self) -> bool:
        return (self.record / "baseline.json").exists()

    @property
    def saw(self) -> str:
        """The project's files at its end."""
        return (
            (self.record / "baseline.txt").read_text().partition("there is ")[2].strip()
        )


@pytest.fixture
def held(sandbox: Sandbox) -> Held:
    return Held(sandbox.write(STEP))


async def let_go_at(
    held: Held,
    sandbox: Sandbox,
    kind: type[Event],
    also: Callable[[], None] = lambda: None,
) -> list[Event]:
    """Carry the plan out; the check is let go when this is told, and not before."""

    def listen(event: Event) -> None:
        if isinstance(event, kind) and not held.gate.is_set():
            assert not held.is_over
            also()
            held.let_go()

    with told_to(listen):
        return await run_all(sandbox)


async def test_the_model_is_asked_beside_it_and_nothing_is_changed_before_it_is_over(
    sandbox: Sandbox, held: Held
) -> None:
    sandbox.replies(GOOD)

    def nothing_yet() -> None:
        assert len(sandbox.model.requests) == 1
        assert not (sandbox.root / "a.txt").exists()

    events = await let_go_at(held, sandbox, BaselineAwaited, nothing_yet)

    assert sandbox.statuses() == ["completed"]
    assert held.saw == ""
    kinds = [type(event) for event in events if not isinstance(event, ReplyDelta)]
    told = [
        kinds.index(kind)
        for kind in (BaselineStarted, StepStarted, ReplyStarted, ReplyFinished)
    ]
    told += [
        kinds.index(kind)
        for kind in (BaselineAwaited, BaselineTaken, ChangesProposed, CheckpointStarted)
    ]
    assert told == sorted(told)
    assert kinds.count(BaselineAwaited) == kinds.count(BaselineTaken) == 1


async def test_what_comes_of_it_is_told_at_the_same_place_however_long_it_takes(
    sandbox: Sandbox, held: Held
) -> None:
    sandbox.replies(GOOD)
    # it is over long before the reply, or after it
    events = await let_go_at(held, sandbox, BaselineStarted)

    kinds = [type(event) for event in events]
    assert (
        kinds.index(ReplyFinished)
        < kinds.index(BaselineAwaited)
        < kinds.index(BaselineTaken)
    )
    assert kinds.index(BaselineTaken) == kinds.index(BaselineAwaited) + 1


async def test_what_it_leaves_behind_is_no_doing_of_the_step(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    held = Held(sandbox.write(STEP), LEAVES)
    await let_go_at(held, sandbox.replies(GOOD), BaselineAwaited)
    assert sandbox.text("left.txt") == "by the tests"
    assert (
        "left.txt" not in (held.record / "step-01/attempt-1/changes.diff").read_text()
    )

    engine = sandbox.engine()
    await collect(engine.undo())
    engine.close()
    assert sandbox.text("left.txt") == "by the tests"
    assert not (sandbox.root / "a.txt").exists()


async def test_a_model_with_tools_looks_around_beside_it_and_acts_when_it_is_over(
    sandbox: Sandbox, held: Held
) -> None:
    (sandbox.root / "old.txt").write_text("old\n")
    made = create("a.txt", "good\n"), replace("old.txt", "old", "new")
    sandbox.replies(calls(read("old.txt")), calls(*made), ScriptedReply("Done."))

    events = await let_go_at(held, sandbox, BaselineAwaited)

    assert sandbox.statuses() == ["completed"]
    assert held.saw == "old.txt"
    assert sandbox.text("old.txt") == "new\n"
    kinds = [type(event) for event in events]
    first, second = [place for place, kind in enumerate(kinds) if kind is ToolFinished][
        :2
    ]
    assert (
        first
        < kinds.index(BaselineAwaited)
        < kinds.index(BaselineTaken)
        < kinds.index(ChangesProposed)
        < second
    )


async def test_so_does_a_command_of_the_model(sandbox: Sandbox, held: Held) -> None:
    command = "python -c \"open('made.txt', 'w').write('x')\""
    sandbox.replies(
        calls(execute(command)),
        calls(create("a.txt", "good\n")),
        ScriptedReply("Done."),
    )
    events = await let_go_at(held, sandbox, BaselineAwaited)
    assert (sandbox.statuses(), held.saw) == (["completed"], "")
    kinds = [type(event) for event in events]
    assert (
        kinds.index(ToolStarted)
        < kinds.index(BaselineTaken)
        < kinds.index(ToolFinished)
    )


async def test_waiting_for_it_takes_nothing_of_the_time_that_a_turn_has(
    sandbox: Sandbox, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(work_clock, "monotonic", lambda: now)

    def an_hour_later() -> None:
        nonlocal now
        now += 3600

    sandbox.replies(
        calls(create("a.txt", "good\n"), create("b.txt", "too\n")),
        ScriptedReply("Done."),
    )
    events = await let_go_at(held, sandbox, BaselineAwaited, an_hour_later)
    assert [(event.problem, event.seconds) for event in of(ToolFinished, events)] == [
        ("", 0),
        ("", 0),
    ]
    assert (sandbox.statuses(), sandbox.text("b.txt")) == (["completed"], "too\n")


async def test_a_person_is_asked_about_changes_when_it_is_over(
    sandbox: Sandbox, held: Held
) -> None:
    sandbox.flags |= {"approval": "ask"}
    events = await let_go_at(held, sandbox.replies(GOOD), BaselineAwaited)
    kinds = [type(event) for event in events]
    assert kinds.index(BaselineTaken) < kinds.index(ChangesProposed)
    assert sandbox.statuses() == ["pending"]  # nobody is there to answer


async def test_so_they_are_about_the_check_of_the_step(
    sandbox: Sandbox, held: Held
) -> None:
    sandbox.flags |= {"commands": {"mode": "ask"}}
    sandbox.write(Step("a.txt", "nmap a.txt"), Step("b.txt"))
    events = await let_go_at(held, sandbox, BaselineAwaited)
    kinds = [type(event) for event in events]
    assert kinds.index(BaselineTaken) < kinds.index(CommandProposed)
    assert (sandbox.statuses(), sandbox.model.requests) == (["pending", "pending"], [])


async def test_a_stop_ends_it_and_leaves_nothing_and_the_reply_is_not_paid_for_twice(
    sandbox: Sandbox, held: Held
) -> None:
    engine = sandbox.replies(GOOD).engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, BaselineAwaited))
    engine.close()
    assert sandbox.statuses() == ["pending"]
    assert not held.is_over
    assert not list(held.record.glob("check-*"))
    assert not (sandbox.root / "a.txt").exists()

    events = await let_go_at(held, sandbox, BaselineStarted)
    assert len(sandbox.model.requests) == 1
    assert [event.saved for event in of(ReplyStarted, events)] == [True]
    assert (sandbox.statuses(), held.saw) == (["completed"], "")


async def test_what_came_of_it_is_told_also_where_the_run_is_stopped_before_the_reply(
    sandbox: Sandbox, held: Held
) -> None:
    held.let_go()
    engine = sandbox.replies(ScriptedReply(GOOD, slow=600)).engine()
    task, events = asyncio.ensure_future(engine.run_all()), list[Event]()
    with told_to(events.append):
        while not held.is_over:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
    engine.close()
    assert task.cancelled()
    assert len(of(BaselineTaken, events)) == 1

    events = await run_all(sandbox.replies(GOOD))
    assert of(BaselineTaken, events) == []
    assert sandbox.statuses() == ["completed"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AuthenticationFailed("No key"), StepStatus.PENDING),
        (QuotaUsedUp("Nothing left"), StepStatus.PENDING),
    ],
)
async def test_where_no_reply_comes_that_is_told_and_the_baseline_kept_for_resuming(
    sandbox: Sandbox, held: Held, error: QuotaUsedUp, status: StepStatus
) -> None:
    events = await let_go_at(held, sandbox.replies(error), BaselineAwaited)
    kinds = [type(event) for event in events]
    assert kinds.index(StepFinished) < kinds.index(BaselineTaken)
    assert (held.is_over, sandbox.statuses()) == (True, [status])

    assert of(BaselineStarted, await run_all(sandbox.replies(GOOD))) == []
    assert sandbox.statuses() == ["completed"]


async def test_a_reply_that_cannot_be_used_waits_for_it_too(
    sandbox: Sandbox, held: Held
) -> None:
    sandbox.replies("```text:a.txt\ncut")
    events = await let_go_at(held, sandbox, BaselineAwaited)
    kinds = [type(event) for event in events]
    assert kinds.index(BaselineTaken) < kinds.index(AttemptFailed)


async def test_a_file_that_it_changes_under_the_model_costs_no_attempt(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    counts = "open('a.txt', 'w').write('by the tests\\n')\n"
    held = Held(sandbox.write(STEP), counts)
    (sandbox.root / "a.txt").write_text("old\n")

    events = await let_go_at(
        held, sandbox.replies(GOOD, says("a.txt", "good, too")), BaselineAwaited
    )

    assert [event.will_retry for event in of(AttemptFailed, events)] == [True]
    assert "by the tests" in sandbox.prompt(1)
    assert sandbox.statuses() == ["completed"]


async def test_where_others_look_at_the_project_before_a_call_it_is_over_by_then(
    sandbox: Sandbox, held: Held
) -> None:
    engine = sandbox.replies(GOOD).engine()
    engine.waits_for_baseline = True

    def asked_nobody(event: Event) -> None:
        if isinstance(event, BaselineAwaited):
            assert sandbox.model.requests == []
            held.let_go()

    with told_to(asked_nobody):
        events = await collect(engine.run_all())
    engine.close()
    kinds = [type(event) for event in events]
    assert kinds.index(BaselineTaken) < kinds.index(StepStarted)
    assert sandbox.statuses() == ["completed"]


async def test_one_that_cannot_be_started_is_told_and_ends_nothing(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"test_command": "no-such-program --at-all"}
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt")).replies(GOOD)
    events = await run_all(sandbox)
    (taken,) = of(BaselineTaken, events)
    assert "no-such-program" in taken.problem
    assert sandbox.statuses()[0] == "completed"


async def test_a_disk_that_does_not_keep_it_fails_the_step_before_anything_is_changed(
    sandbox: Sandbox, held: Held
) -> None:
    def in_the_way() -> None:
        (held.record / "baseline.txt").mkdir()

    events = await let_go_at(held, sandbox.replies(GOOD), BaselineAwaited, in_the_way)
    assert sandbox.statuses() == ["failed"]
    assert of(ChangesProposed, events) == []
    assert not (sandbox.root / "a.txt").exists()


_HELD = """\
import os, sys, time

until = time.monotonic() + 60
while not os.path.exists(sys.argv[1]) and time.monotonic() < until:
    time.sleep(0.01)
print("there is", *sorted(name for name in os.listdir() if name.endswith(".txt")))
"""


@pytest.mark.fork
@pytest.mark.parametrize(("pace", "last"), [(0, "reply.md"), (1, "request.md")])
def test_after_a_kill_in_it_the_run_goes_on_and_it_is_taken_again(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory, pace: int, last: str
) -> None:
    gate = tmp_path_factory.mktemp("held") / "gate"
    held = gate.with_name("held.py")
    held.write_text(_HELD)
    record = sandbox.write(STEP).root / ".cdd/runs" / SLUG
    sandbox.flags = {
        "test_command": f"{sys.executable} {held} {gate}",
        "test_timeout": 90,
    }
    settings = "\n".join(f"{name}: {value}" for name, value in sandbox.flags.items())
    (sandbox.root / ".cdd/config.yaml").write_text(f"approval: auto\n{settings}\n")
    model = script(sandbox, GOOD, pace=pace)
    running = process(sandbox, "exec", SLUG, "--model", model)
    wait_for((record / "step-01/attempt-1" / last).exists)
    running.kill()
    running.communicate()
    assert not (record / "baseline.json").exists()
    assert not (sandbox.root / "a.txt").exists()

    # what was paid for is not asked for again
    script(sandbox, *([] if last == "reply.md" else [GOOD]))
    gate.touch()
    _, err = process(sandbox, "exec", SLUG, "--model", model, "--json").communicate()
    assert sandbox.statuses() == ["completed"], err
    assert (record / "baseline.json").exists()
