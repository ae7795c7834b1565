"""The screens around a run show the labels of steps, and put them into the prompt."""

from cdd_agent.tui.inspector.action_screen import ActionScreen
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.step_tab import StepTab
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import SLUG, Sandbox
from tests.test_step_labels import GOOD, NUMBER_SHOWN, STEPS
from tests.tui.person import Person, person_at


def shown(person: Person) -> str:
    texts = [part.plain_text() for part in person.app.screen.query(Transcript)]
    return "\n".join([person.screen, *texts])


async def test_each_screen_shows_labels(sandbox: Sandbox) -> None:
    sandbox.write(*STEPS).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 40)) as person:
        assert [row.strip() for row in person.steps[1:4]] == [
            "○ 7. Make a.txt",
            "○ 7b. Make b.txt",
            "○ 9. Make c.txt",
        ]
        assert "← 7b" in person.step_list.render_line(3).text
        await person.say("continue")
        await person.say("continue")

        await person.press("f2", "up")
        person.app.open_step(2)
        await person.until(lambda: "7b. Make b.txt" in person.screen)
        await person.until(
            lambda: any(tab.details for tab in person.app.screen.query(StepTab))
        )
        person.time.pass_by(1)
        assert "**Depends on:** 7  " in shown(person)
        await person.press("u")
        await person.until(lambda: isinstance(person.app.screen, ActionScreen))
        await person.until(lambda: "undoes step 7b." in shown(person))
        await person.press("tab")
        await person.until(lambda: person.prompt.text == "undo 7b")
        person.prompt.area.clear()

        await person.press("f7")
        await person.until(lambda: "~ 7b. Make b.txt" in person.screen)
        assert "~ 7. Make a.txt" in person.screen
        assert not NUMBER_SHOWN.search(shown(person))
        person.time.pass_by(1)

        await person.press("f3")
        await person.until(lambda: "9. Make c.txt" in shown(person))
        assert not NUMBER_SHOWN.search(shown(person))
        await person.press("escape")
        await person.until(lambda: not isinstance(person.app.screen, InspectorScreen))
        assert not NUMBER_SHOWN.search(f"{person.screen}\n{person.told}")
