"""Steps that run side by side, in the shell."""

from pathlib import Path

import pytest

from cdd_agent.events.step_summary import StepFinished
from tests.engine.together import Together, project_in
from tests.support.projects import SLUG, Step, says
from tests.tui.person import person_at

pytestmark = pytest.mark.story


async def test_the_panel_shows_all_that_run_and_the_transcript_tells_one_by_one(
    tmp_path: Path,
) -> None:
    sandbox = project_in(tmp_path).write(
        Step("a.txt", "none"), Step("b.txt", "none"), Step("c.txt", "none", "Step 2")
    )
    said = {
        number: says(f"{name}.txt", "good", f"I say {number}.")
        for number, name in enumerate("abc", 1)
    }
    # three never come: the reply waits for a word
    sandbox.real_model = model = Together(said, at_once=3)
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 30)) as person:
        await person.begin("all")
        await person.until(lambda: len(model.asked) == 2)
        await person.until(lambda: "Steps 1 and 2 run side by side" in person.activity)
        assert person.steps[1:] == [
            "◐ 1. Make a.txt",
            "◐ 2. Make b.txt",
            "○ 3. Make c.txt",
        ]
        model.let_go()
        await person.until(lambda: not person.is_waiting)

        assert sandbox.statuses() == ["completed"] * 3
        assert person.steps[0].startswith("Plan 3/3")
        order = [
            event.step for event in person.shown if isinstance(event, StepFinished)
        ]
        places = [person.told.index(f"Step {number} completed") for number in order]
        assert places == sorted(places)
        first, second = order[0], order[1]
        own = person.told[person.told.index(f"Step {first}: Make") : places[0]]
        assert f"Step {second}: Make" not in own
