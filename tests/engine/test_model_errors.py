"""Errors of the model are errors of the run. They never replace a step's failure."""

import json
import shutil
from collections.abc import Awaitable, Callable
from typing import Any

from cdd_agent.engine.engine import Engine
from cdd_agent.engine.step_details import step_details
from cdd_agent.errors import BudgetExhausted, CddError, ExitCode
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import ChangesPutBack, StepDiff, StepStarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    QuotaUsedUp,
    RateLimited,
    RequestRejected,
)
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.status import StepStatus
from tests.engine.together import project_in
from tests.engine.tool_steps import calls, create, replace
from tests.support.examples import IS_THOROUGH
from tests.support.listening import collect, stop_at
from tests.support.projects import (
    SLUG,
    Copied,
    Sandbox,
    Step,
    check,
    noticed,
    says,
)
from tests.support.tables import each_row

NO_KEY = AuthenticationFailed("No API key for m.", hint="Set M_API_KEY.")
REFUSED = ConnectionFailed("The server of m could not be reached: connection refused")
NO_NAME = ConnectionFailed("The server of m could not be reached: no such name")
ERRORS: list[ModelError] = [
    AuthenticationFailed("The key for m was refused (401)."),
    ModelNotFound("There is no model m (404)."),
    REFUSED,
    NO_NAME,
    ConnectionFailed("m did not answer in time."),
    RateLimited("Too many requests", retry_after=9e5),
    QuotaUsedUp("Nothing is left"),
    ContextTooLong("The request is too long for m"),
    RequestRejected("A bad parameter"),
    BadAnswer("Not JSON"),
]
TIMES = 9
"""More often than any error is asked again for."""


class Unusable(ScriptedModel):
    """A model whose check finds the error."""

    def __init__(self, error: ModelError, *, needs_connection: bool) -> None:
        super().__init__([error] * TIMES)
        self._error, self._needs_connection = error, needs_connection

    async def check(self, *, connect: bool) -> None:
        if connect or not self._needs_connection:
            raise self._error


def models() -> list[ScriptedModel]:
    """Models that give no reply, each for another reason."""
    return [
        Unusable(NO_KEY, needs_connection=False),
        Unusable(REFUSED, needs_connection=True),
        Unusable(NO_NAME, needs_connection=True),
        *(ScriptedModel([error] * TIMES) for error in ERRORS),
    ]


def error_of(model: ScriptedModel) -> ModelError:
    (error, *_) = [reply.error for reply in model.script if reply.error]
    return error


Act = Callable[[Engine], Awaitable[object]]


async def retry(engine: Engine) -> None:
    step = engine.run.next_step
    assert step is not None
    await engine.run_step(step)


async def retry_with_guidance(engine: Engine) -> None:
    step = engine.run.next_step
    assert step is not None
    await engine.run_step(step, guidance="Mind the word.")


async def carry_out(engine: Engine) -> None:
    await engine.carry_out(attempts=3)


ACTS: list[Act] = [retry, retry_with_guidance, carry_out]


async def act_on(
    sandbox: Sandbox, act: Act, model: ScriptedModel
) -> tuple[Engine, list[Event]]:
    sandbox.model = model
    engine = sandbox.engine()
    try:
        with engine.recording():
            return engine, await collect(act(engine))
    finally:
        engine.close()


def step_as_seen(sandbox: Sandbox, number: str = "2") -> dict[str, Any]:
    """The step in the state, without what an attempt costs."""
    step = dict(sandbox.state()["step_executions"][number])
    for key in ("spent", "open_attempt"):
        step.pop(key, None)
    return step


def failure_as_seen(sandbox: Sandbox) -> dict[str, Any]:
    """Everything that shows the failure of step 2: state, files, panel, F3, report."""
    project, redactor = sandbox.project, Redactor()
    ticket = project.tickets.find(SLUG)
    report = json.loads((sandbox.root / f".cdd/runs/{SLUG}/report.json").read_text())
    engine = sandbox.engine()
    view = engine.run.opened().steps[1]
    engine.close()
    return {
        "step": step_as_seen(sandbox),
        "files": {
            path.name: (path.read_text(), path.stat().st_mode)
            for path in sandbox.root.glob("*.txt")
        },
        "details": step_details(ticket, 2, redactor).attempts,
        "panel": (view.status, view.error, view.verification, view.attempts),
        "report": {
            key: report["steps"][1][key]
            for key in ("status", "error", "attempts", "tests", "files_created")
        },
    }


async def failed(sandbox: Sandbox) -> Sandbox:
    """Step 1 is done, step 2 failed and left two files, one of them executable."""
    (sandbox.root / "old.txt").write_text("old\n")
    (sandbox.root / "old.txt").chmod(0o755)
    sandbox.write(
        Step("a.txt", check("a.txt")),
        Step("b.txt", check("b.txt"), also=("old.txt",)),
    )
    bad = says("b.txt", "bad") + says("old.txt", "new")
    await act_on(sandbox, carry_out_once, ScriptedModel([says("a.txt", "good"), bad]))
    assert sandbox.statuses() == ["completed", "failed"]
    assert (sandbox.text("b.txt"), sandbox.text("old.txt")) == ("bad\n", "new\n")
    return sandbox


def copies(sandbox: Sandbox, count: int) -> list[Sandbox]:
    """Return that many copies of the project."""
    made = []
    for number in range(count):
        root = sandbox.root.with_name(f"{sandbox.root.name}-{number}")
        shutil.copytree(sandbox.root, root, symlinks=True)
        made.append(sandbox.at(root))
    return made


async def carry_out_once(engine: Engine) -> None:
    await engine.carry_out(attempts=1)


async def test_no_error_of_the_model_replaces_the_failure_of_a_step(
    copied: Copied,
) -> None:
    wrong = list[str]()
    rows = [
        (act, model)
        for number, act in enumerate(ACTS)
        for place, model in enumerate(models())
        # each error in one act
        if IS_THOROUGH or place % len(ACTS) == number
    ]
    sandboxes = copies(await copied(failed), len(rows))
    for (act, model), sandbox in zip(rows, sandboxes, strict=True):
        error, before = error_of(model), failure_as_seen(sandbox)
        engine, events = await act_on(sandbox, act, model)
        after = failure_as_seen(sandbox)
        row = f"{act.__name__}, {error.message}"
        if after != before:
            wrong.append(f"{row}: {after} instead of {before}")
        if engine.stopped_by is None or engine.stopped_by.message != error.message:
            wrong.append(f"{row}: stopped by {engine.stopped_by!r}")
        if engine.exit_code is not error.exit_code:
            wrong.append(f"{row}: {engine.exit_code!r}")
        if isinstance(model, Unusable):
            touched = (StepStarted, ChangesPutBack)
            if any(isinstance(event, touched) for event in events):
                wrong.append(f"{row}: something was touched before the check")
            if model.requests:
                wrong.append(f"{row}: the model was called")
    assert not wrong, "\n".join(wrong)


async def test_a_pending_step_stays_pending_whatever_the_model_lacks(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    for model in models():
        error = error_of(model)
        engine, events = await act_on(sandbox, carry_out, model)
        step = engine.run.state.step(1)
        assert (step.status, step.error) == (StepStatus.PENDING, None), error.message
        assert engine.exit_code is error.exit_code, error.message
        assert {*noticed(events)} & {
            NoticeKind.MODEL_FAILED,
            NoticeKind.COME_BACK_LATER,
        }
    await act_on(sandbox, carry_out, ScriptedModel([says("a.txt", "good")]))
    assert sandbox.statuses() == ["completed"]


async def test_a_used_up_budget_leaves_the_failure_as_it_was(
    copied: Copied,
) -> None:
    sandboxes = copies(await copied(failed), len(ACTS))
    for act, sandbox in zip(ACTS, sandboxes, strict=True):
        before = failure_as_seen(sandbox)
        sandbox.flags["budget"] = {"tokens": 10}
        engine, events = await act_on(sandbox, act, ScriptedModel(["never"]))
        sandbox.flags.clear()
        assert isinstance(engine.stopped_by, BudgetExhausted)
        assert NoticeKind.NO_BUDGET in noticed(events)
        assert failure_as_seen(sandbox) == before


async def test_after_an_error_of_the_model_the_step_can_be_retried_and_undone(
    copied: Copied,
) -> None:
    sandbox = await copied(failed)
    await act_on(sandbox, retry_with_guidance, ScriptedModel([REFUSED] * TIMES))

    good = ScriptedModel([says("b.txt", "good")])
    await act_on(sandbox, retry, good)

    assert sandbox.statuses() == ["completed", "completed"]
    # the attempt that got no reply is resumed, with its guidance
    assert "Mind the word." in sandbox.prompt()
    assert "it says bad" in sandbox.prompt()
    assert sandbox.state()["step_executions"]["2"]["attempts"] == 2
    assert sandbox.text("old.txt") == "old\n"
    engine = sandbox.engine()
    await collect(engine.undo(2))
    engine.close()
    assert not (sandbox.root / "b.txt").exists()


@each_row("keep", [False, True])
async def test_after_an_error_of_the_model_the_failed_step_can_be_skipped(
    copied: Copied,
    keep: bool,
) -> None:
    sandbox = await copied(failed)
    await act_on(sandbox, retry, ScriptedModel([REFUSED] * TIMES))

    async def skip(engine: Engine) -> None:
        await engine.skip(engine.run.plan.steps[1], "no", keep=keep)

    await act_on(sandbox, skip, ScriptedModel([]))
    assert (sandbox.root / "b.txt").exists() is keep
    assert sandbox.text("old.txt") == ("new\n" if keep else "old\n")


async def test_a_file_that_was_edited_after_the_retry_began_is_not_replaced(
    copied: Copied,
) -> None:
    sandbox = await copied(failed)

    class Edits(ScriptedModel):
        async def reply(self, *given: Any) -> Any:
            (sandbox.root / "old.txt").write_text("mine\n")
            return await super().reply(*given)

    await act_on(sandbox, retry, Edits([REFUSED] * TIMES))
    assert sandbox.text("old.txt") == "mine\n"
    assert sandbox.text("b.txt") == "bad\n"


async def test_no_files_of_an_older_attempt_come_back(copied: Copied) -> None:
    sandbox = await copied(failed)
    await act_on(sandbox, retry, ScriptedModel(["I have done it."]))
    before = failure_as_seen(sandbox)
    assert "b.txt" not in before["files"]

    await act_on(sandbox, retry, ScriptedModel([REFUSED] * TIMES))

    assert failure_as_seen(sandbox) == before


async def test_a_file_that_the_user_removed_before_the_retry_does_not_come_back(
    copied: Copied,
) -> None:
    sandbox = await copied(failed)
    (sandbox.root / "b.txt").unlink()
    await act_on(sandbox, retry, ScriptedModel([REFUSED] * TIMES))
    assert not (sandbox.root / "b.txt").exists()
    assert sandbox.text("old.txt") == "new\n"


async def test_the_diff_of_a_failure_that_was_put_back_has_its_files(
    copied: Copied,
) -> None:
    sandbox = await copied(failed)
    await act_on(sandbox, retry, ScriptedModel([REFUSED] * TIMES))
    engine = sandbox.engine()
    (shown,) = await collect(engine.diff(2))
    engine.close()
    assert isinstance(shown, StepDiff)
    assert ("+bad" in shown.diff, "+new" in shown.diff) == (True, True)


async def test_tool_rounds_before_the_error_are_resumed_and_nothing_of_them_stays(
    copied: Copied,
) -> None:
    sandbox = await copied(failed)
    before = failure_as_seen(sandbox)
    rounds = calls(create("c.txt", "c\n"), create("b.txt", "half\n"))
    _, events = await act_on(
        sandbox, retry, ScriptedModel([rounds, *[REFUSED] * TIMES])
    )
    assert failure_as_seen(sandbox) == before
    (finished,) = [one for one in events if isinstance(one, StepFinished)]
    assert (finished.status, finished.is_earlier_failure) == (StepStatus.FAILED, True)

    model = ScriptedModel([calls(replace("b.txt", "half", "good")), "Done."])
    await act_on(sandbox, retry, model)
    assert sandbox.statuses() == ["completed", "completed"]
    assert (sandbox.text("b.txt"), sandbox.text("c.txt")) == ("good\n", "c\n")
    assert len(model.requests) == 2
    engine = sandbox.engine()
    await collect(engine.undo(2))
    engine.close()
    assert {path.name for path in sandbox.root.glob("*.txt")} == {"a.txt", "old.txt"}
    assert sandbox.text("old.txt") == "old\n"


async def test_undo_of_a_failure_that_was_put_back_restores_everything(
    copied: Copied,
) -> None:
    sandbox = await copied(failed)
    rounds = calls(create("c.txt", "c\n"), create("b.txt", "half\n"))
    await act_on(sandbox, retry, ScriptedModel([rounds, *[REFUSED] * TIMES]))
    engine = sandbox.engine()
    await collect(engine.undo(2))
    engine.close()
    assert {path.name for path in sandbox.root.glob("*.txt")} == {"a.txt", "old.txt"}
    assert sandbox.text("old.txt") == "old\n"


async def test_an_error_after_a_failed_attempt_leaves_that_attempts_failure(
    sandbox: Sandbox,
) -> None:
    """All attempts belong to the same run."""
    sandbox.write(Step("a.txt", check("a.txt")))
    model = ScriptedModel([says("a.txt", "bad"), *[REFUSED] * TIMES])
    engine, _ = await act_on(sandbox, carry_out, model)
    assert engine.exit_code is ExitCode.FAILED
    step = step_as_seen(sandbox, "1")
    assert (step["status"], step["attempts"]) == ("failed", 1)
    assert "reached" not in step["error"]
    assert sandbox.text("a.txt") == "bad\n"


async def test_an_interrupted_step_with_a_saved_reply_needs_no_model(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    await stop_at(
        engine.run_all(), lambda event: type(event).__name__ == "ChangesApplied"
    )
    engine.close()
    await act_on(sandbox, carry_out, Unusable(NO_KEY, needs_connection=False))
    assert sandbox.statuses() == ["completed"]


async def test_side_by_side_too_the_failure_stays_as_it_was(tmp_path: Any) -> None:
    wrong = list[str]()
    found_by_check, found_by_call = models()[1], models()[-1]
    waits = ScriptedModel([RateLimited("Too many requests", retry_after=9e5)] * TIMES)
    rows = [(model, "b.txt") for model in (found_by_check, found_by_call, waits)]
    # a step that declares no file runs alone
    rows.append((models()[-1], None))
    for number, (model, path) in enumerate(rows):
        folder = tmp_path / str(number)
        folder.mkdir()
        sandbox = project_in(folder)
        sandbox.flags["jobs"] = 1
        sandbox.write(
            Step("a.txt", check("a.txt")),
            Step(path, check("b.txt")),
            Step("c.txt", check("c.txt")),
        )
        first = ScriptedModel([says("a.txt", "good"), says("b.txt", "bad")])
        await act_on(sandbox, carry_out_once, first)
        before = failure_as_seen(sandbox)
        sandbox.flags["jobs"] = 3
        engine, _ = await act_on(sandbox, carry_out, model)
        error: CddError = error_of(model)
        if failure_as_seen(sandbox) != before:
            wrong.append(f"{error.message}: {failure_as_seen(sandbox)}, not {before}")
        if sandbox.statuses()[2] != "pending":
            wrong.append(f"{error.message}: step 3 is {sandbox.statuses()[2]}")
        if engine.exit_code is not error.exit_code:
            wrong.append(f"{error.message}: {engine.exit_code!r}")
    assert not wrong, "\n".join(wrong)
