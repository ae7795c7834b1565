"""A run of 500 steps and 10,000 events opens at once, and its lists draw only what is
visible.
"""

from datetime import UTC, datetime, timedelta
from time import process_time

import pytest

from cdd_agent.engine.log import RunLog
from cdd_agent.engine.record import RunRecord
from cdd_agent.events.dialogue_events import (
    ReplyFinished,
    ReplyStarted,
    ToolFinished,
)
from cdd_agent.events.step_events import StepStarted, TestsFinished
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.llm.port import Usage
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tickets.state_file import save_state
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tui.inspector.row_list import RowList
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.outcomes import Reference, Result, SuiteRun
from tests.support.projects import SLUG, Sandbox, Step
from tests.tui.person import person_at

STEPS = 500
TOOLS = 15
"""Uses of tools in each step."""
START = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


@pytest.fixture
def huge(sandbox: Sandbox) -> Sandbox:
    sandbox.write(*(Step(f"{number}.txt") for number in range(1, STEPS + 1)))
    ticket = sandbox.project.tickets.find(SLUG)
    plan = ticket.read_plan()
    record = RunRecord.of_ticket(ticket, Redactor())
    record.prepare()
    moments = iter(range(1_000_000))
    log = RunLog(record.log.path, lambda: START + timedelta(seconds=next(moments)))
    executions = {}
    for step in plan.steps:
        number = step.number
        executions[number] = StepExecution(
            number,
            step.title,
            status=StepStatus.COMPLETED,
            started_at=START,
            completed_at=START + timedelta(minutes=number),
            end_order=number,
            files_created=(f"{number}.txt",),
            verification=Verification.PASSED,
            attempts=1,
        )
        log.add(StepStarted(number, step.title, 1))
        log.add(ReplyStarted(number, "huge/model"))
        for place in range(TOOLS):
            log.add(
                ToolFinished(number, "read", tool="read_file", target=f"{place}.py")
            )
        log.add(ReplyFinished(number, Usage(1000, 10)))
        log.add(TestsFinished(number, Verification.PASSED, "it passed", 1.0))
        log.add(StepFinished(number, step.title, StepStatus.COMPLETED))
        attempt = record.attempt(number, 1)
        attempt.folder.mkdir(parents=True)
        tests = SuiteRun(
            results={f"test_{number}.py::test_{n}": Result.PASSED for n in range(10)}
        )
        attempt.save_checks([CheckRun("pytest", 0, tests=tests)], Reference())
    state = ExecutionState(SLUG, started_at=START, step_executions=executions)
    save_state(state, ticket.state_path)
    return sandbox


async def test_a_huge_run_opens_at_once(huge: Sandbox) -> None:
    async with person_at(huge, size=(100, 30)) as person:
        session = person.app.session
        assert session is not None
        started = process_time()
        reader = session.run_reader(SLUG)
        inspection = reader.read()
        timeline = reader.read_timeline()
        seconds = process_time() - started
        assert len(inspection.steps) == len(timeline.parts) == STEPS
        assert sum(len(part.events) for part in timeline.parts) >= STEPS * (TOOLS + 3)

        started = process_time()
        person.app.inspect("timeline", SLUG)
        await person.until(
            lambda: any(
                len(rows.texts) == STEPS for rows in person.app.screen.query(RowList)
            )
        )
        shown = process_time() - started
        # 0.3 and 0.6 seconds where this was written
        assert seconds < 2
        assert shown < 3
        person.time.pass_by(1)
        await person.press("home", "right")
        rows = person.app.screen.query_one("#pane-timeline RowList", RowList)
        assert len(rows.texts) == STEPS + TOOLS + 3
