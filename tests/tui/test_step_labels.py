"""The screens around a run show the labels of steps, and put them into the prompt."""

from cdd_agent.tui.criteria_screen import CriteriaScreen
from cdd_agent.tui.step_screen import StepScreen
from cdd_agent.tui.timeline_screen import TimelineScreen
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import SLUG, Sandbox
from tests.test_step_labels import GOOD, NUMBER_SHOWN, STEPS
from tests.tui.person import Person, person_at


def shown(person: Person) -> str:
    return f"{person.screen}\n{person.app.screen.query_one(Transcript).plain_text()}"


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
        await person.until(lambda: isinstance(person.app.screen, StepScreen))
        await person.until(lambda: "7b. Make b.txt" in person.screen)
        assert "**Depends on:** 7  " in shown(person)
        await person.press("u")
        await person.until(lambda: person.prompt.text == "undo 7b")
        person.prompt.area.clear()

        await person.press("f7")
        await person.until(lambda: isinstance(person.app.screen, TimelineScreen))
        await person.until(lambda: "After step 7b: Make b.txt" in shown(person))
        assert "~7b now" in person.screen
        await person.press("left")
        await person.until(lambda: "After step 7: Make a.txt" in shown(person))
        assert "undoes step 7b." in shown(person)
        await person.press("enter")
        await person.until(lambda: person.prompt.text == "undo 7b")
        person.prompt.area.clear()

        await person.press("f3")
        await person.until(lambda: isinstance(person.app.screen, CriteriaScreen))
        await person.until(lambda: "Step 9: Make c.txt" in shown(person))
        assert not NUMBER_SHOWN.search(shown(person))
        await person.press("escape")
        assert not NUMBER_SHOWN.search(f"{person.screen}\n{person.told}")
