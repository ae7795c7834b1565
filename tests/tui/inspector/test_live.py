"""The inspector of a step that runs: events arrive in the open screen."""

from cdd_agent.tui.inspector.row_list import RowList
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.step_tab import StepTab
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.tui.held_model import HeldModel
from tests.tui.person import Person, person_at


def page(person: Person) -> str:
    tabs = person.app.screen.query(StepTab)
    return tabs.first().transcript.plain_text() if tabs else ""


def timeline(person: Person) -> list[str]:
    rows = person.app.screen.query("#pane-timeline RowList")
    return rows.first(RowList).texts if rows else []


async def test_a_running_step_is_followed_to_its_end(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", "none"))
    sandbox.model = model = HeldModel(says("a.txt", "good"), says("b.txt", "x"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 30)) as person:
        await person.begin("continue")
        await person.until(lambda: model.requests)
        await person.press("f2", "home", "enter")
        await person.until(lambda: "running" in person.screen)
        assert isinstance(person.app.screen, InspectorScreen)
        person.time.pass_by(1)
        await person.press("3")
        await person.until(lambda: "◐ 1. Make a.txt" in "".join(timeline(person)))
        await person.press("1")
        await person.press("r")
        assert isinstance(person.app.screen, InspectorScreen)
        model.release()
        await person.until(lambda: not person.is_waiting)
        await person.until(lambda: "completed" in person.screen)
        await person.until(lambda: "+good" in page(person))
        assert "The reply arrives" not in page(person)
        await person.press("3")
        heads = [text for text in timeline(person) if "1. Make a.txt" in text]
        assert len(heads) == 1
        assert "◐" not in heads[0]
        await person.press("right")
        events = [text for text in timeline(person) if "reply" in text]
        assert len(events) == 1


async def test_the_open_inspector_shows_the_same_as_one_that_is_opened_later(
    sandbox: Sandbox,
) -> None:
    """Events give the same rows as the log."""
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", "none"))
    sandbox.replies(says("a.txt", "bad"), says("a.txt", "good"), says("b.txt", "x"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 30)) as person:
        await person.say("continue")
        person.app.inspect("timeline", SLUG)
        await person.until(lambda: timeline(person))
        for line in ("retry", "continue"):
            person.app.on_prompt_submitted(person.prompt.Submitted(line))
            await person.until(lambda: not person.is_waiting)
        await person.until(lambda: len(timeline(person)) >= 3)
        await person.pilot.pause()
        followed = timeline(person)
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
        person.app.inspect("timeline", SLUG)
        await person.until(lambda: timeline(person))
        assert [text[11:] for text in timeline(person)] == [
            text[11:] for text in followed
        ]


async def test_events_of_another_run_do_not_reach_the_inspector(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"))
    sandbox.replies(says("a.txt", "x"))
    other = sandbox.root / "tickets" / "feature-other"
    other.mkdir()
    for name in ("spec.yaml", "plan.md"):
        (other / name).write_text((sandbox.ticket / name).read_text())
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 30)) as person:
        person.app.inspect("step", other.name)
        await person.until(lambda: "Nothing yet" in page(person))
        person.app.on_prompt_submitted(person.prompt.Submitted("continue"))
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses()[0] == "completed"
        assert "pending" in person.screen
        assert "○ 1. Make a.txt" in person.screen
