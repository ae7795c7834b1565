"""The inspector while it reads a run whose events continue."""

from threading import Event as Gate

from msgspec.structs import replace

from cdd_agent.engine.run_inspection import RunInspection
from cdd_agent.engine.timeline import Timeline
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.inspector.source import InspectorTab
from cdd_agent.tui.inspector.step_tab import StepTab
from tests.support.projects import SLUG, Sandbox, Step
from tests.tui.inspector.examples import FakeRun, inspection_of, inspector
from tests.tui.person import Person, person_at

FIRST, SECOND = StepSummary(1, "Read"), StepSummary(2, "Write")


class SlowRun(FakeRun):
    """A run whose files are read when the test allows it."""

    def __init__(self, inspection: RunInspection) -> None:
        super().__init__(inspection)
        self.may_read, self.may_read_log = Gate(), Gate()
        self.times_read = self.times_log_read = 0

    def read(self) -> RunInspection:
        inspection = self.inspection
        self.times_read += 1
        self.may_read.wait(10)
        return inspection

    def read_timeline(self, size: int | None = None) -> Timeline:
        self.times_log_read += 1
        self.may_read_log.wait(10)
        return Timeline()


def heading(person: Person) -> str:
    details = person.app.screen.query_one(StepTab).details
    return details.view.title if details else ""


async def test_an_event_during_the_first_read_is_in_the_timeline(
    sandbox: Sandbox,
) -> None:
    run = SlowRun(inspection_of([FIRST, SECOND]))
    screen = inspector(run, InspectorTab.TIMELINE, is_followed=True)
    run.may_read.set()
    async with person_at(sandbox.write(Step("a.txt")), size=(100, 30)) as person:
        await person.app.push_screen(screen)
        await person.until(lambda: run.times_log_read)
        screen.receive(StepStarted(2, "Write", 1))
        run.may_read_log.set()
        await person.until(lambda: "◐ 2. Write" in person.screen)


async def test_an_event_during_a_later_read_is_not_forgotten(sandbox: Sandbox) -> None:
    run = SlowRun(inspection_of([FIRST, SECOND]))
    screen = inspector(run, InspectorTab.STEP, 2, is_followed=True)
    run.may_read.set()
    run.may_read_log.set()
    async with person_at(sandbox.write(Step("a.txt")), size=(100, 30)) as person:
        await person.app.push_screen(screen)
        await person.until(lambda: heading(person) == "Write")
        run.may_read.clear()
        screen.receive(StepFinished(1, "Read", StepStatus.COMPLETED))
        await person.until(lambda: run.times_read == 2)
        screen.receive(StepStarted(2, "Write", 1))
        run.may_read.set()
        await person.app.workers.wait_for_complete()
        await person.pilot.pause()
        assert screen.step is not None
        assert screen.step.status is StepStatus.IN_PROGRESS


async def test_a_step_that_leaves_the_plan_gives_its_page_to_the_current_one(
    sandbox: Sandbox,
) -> None:
    run = FakeRun(inspection_of([FIRST, SECOND]))
    screen = inspector(run, InspectorTab.STEP, 2, is_followed=True)
    async with person_at(sandbox.write(Step("a.txt")), size=(100, 30)) as person:
        await person.app.push_screen(screen)
        await person.until(lambda: heading(person) == "Write")
        run.inspection = replace(run.inspection, steps=(FIRST,))
        screen.receive(PlanOpened(SLUG, "X", (FIRST,), resumed=True))
        await person.until(lambda: heading(person) == "Read")
