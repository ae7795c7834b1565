"""A proposed plan on the screen: its first line at the top, its steps in a panel."""

import pytest

from cdd_agent.events.notices import Notice
from cdd_agent.events.ticket_events import PlanProposed
from cdd_agent.tui.transcript.widget import Transcript
from tests.agents.test_planner import SPEC, changes, plan, step
from tests.support.examples import long_rows
from tests.support.projects import SLUG, Sandbox
from tests.tui.person import Person, person_at

TITLES = [f"Write the part with the number {number}" for number in range(1, 9)]
FIRST_LINE = "Implementation Plan: Say words"
PANEL = "Proposed · 8 steps · not approved"


def long_plan() -> str:
    steps = []
    for number, title in enumerate(TITLES, 1):
        values = {"title": title, "serves": [1, 2], "checks": [f"pytest {number}.py"]}
        steps.append(step(number, f"{number}.py", **values))
    return plan(*steps)


@pytest.fixture
def planned(sandbox: Sandbox) -> Sandbox:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    new = step(9, "9.py", title="Add an end", serves=[1], after=3)
    changed = step(3, "3.py", title="Better", serves=[1, 2], checks=["pytest new.py"])
    return sandbox.replies(
        long_plan(), changes(steps=[changed, new], removed=[8]), "Here it is."
    )


def top_row(person: Person) -> str:
    return person.app.query_one(Transcript).render_line(0).text.strip()


def bottom_row(person: Person) -> str:
    transcript = person.app.query_one(Transcript)
    return transcript.render_line(transcript.size.height - 1).text


@pytest.mark.parametrize(
    "size", [(60, 20), (99, 30), (100, 30), *long_rows((80, 24), (120, 36))]
)
async def test_a_proposed_plan_opens_at_its_top(
    planned: Sandbox, size: tuple[int, int]
) -> None:
    async with person_at(planned, size=size) as person:
        await person.say(f"/plan {SLUG}")
        assert FIRST_LINE in top_row(person)
        # what follows is announced
        assert "new lines · End" in bottom_row(person)
        assert (PANEL in person.screen) == (size[0] >= 100)
        assert not person.step_list.has_steps
        if size[0] >= 100:
            assert "+ 1. Write the part" in person.screen
            assert "1.py (new)" in person.screen
            assert "check: pytest 1.py" in person.screen
        # what arrives while the user reads moves nothing
        person.app.home.show(Notice("More.\n" * 50))
        await person.pilot.pause()
        assert FIRST_LINE in top_row(person)


async def test_a_proposal_stays_at_its_top_while_the_window_changes(
    planned: Sandbox,
) -> None:
    async with person_at(planned, size=(120, 36)) as person:
        await person.say(f"/plan {SLUG}")
        for size in ((60, 20), (99, 24), (200, 50), (80, 24)):
            await person.pilot.resize_terminal(*size)
            await person.pilot.pause()
            assert FIRST_LINE in top_row(person), size
            assert (PANEL in person.screen) == (size[0] >= 100), size


async def test_a_short_plan_is_shown_whole_with_what_follows(
    planned: Sandbox,
) -> None:
    async with person_at(planned, size=(120, 200)) as person:
        await person.say(f"/plan {SLUG}")
        assert FIRST_LINE in person.screen
        assert "Type approve to write the plan" in person.screen


async def test_a_changed_plan_is_shown_as_changed_steps(planned: Sandbox) -> None:
    async with person_at(planned, size=(120, 30)) as person:
        await person.say(f"/plan {SLUG}")
        await person.say("drop step 8, and make step 3 better")
        top = "Proposed change of the plan: 1 new step, 1 changed, 1 removed"
        assert top in person.screen
        screen = person.screen
        for words in (
            "~ 3. Better",
            f"title: {TITLES[2]} → Better",
            "check: pytest 3.py → pytest new.py",
            "+ 9. Add an end (new, after step 3)",
            f"- 8. {TITLES[7]} (removed)",
            "▸ # Implementation Plan: Say words",
        ):
            assert words in screen, words
        # the panel marks the same steps
        panel = person.app.home.proposal
        rows = [panel.render_line(y).text for y in range(panel.size.height)]
        assert rows[0].startswith(PANEL)
        assert any(row.startswith("· 1. ") for row in rows)
        assert any(row.startswith("~ 3. Better") for row in rows)
        assert any(row.startswith("+ 9. Add an end") for row in rows)
        assert "### Step" not in screen


async def test_a_user_who_reads_above_is_left_there(planned: Sandbox) -> None:
    async with person_at(planned, size=(80, 24)) as person:
        await person.say(f"/plan {SLUG}")
        await person.press("end", "pageup")
        row = top_row(person)
        (proposal,) = [each for each in person.shown if isinstance(each, PlanProposed)]
        person.app.home.show(proposal)
        await person.pilot.pause()
        assert top_row(person) == row
        assert "new lines · End" in bottom_row(person)


async def test_the_panel_goes_with_the_proposal(planned: Sandbox) -> None:
    planned.replies(long_plan(), long_plan())
    async with person_at(planned, size=(120, 36)) as person:
        panel = person.app.home.proposal
        await person.say(f"/plan {SLUG}")
        assert panel.display
        await person.press("f2", "enter")
        # nothing in it can be opened or run
        assert len(person.app.screen_stack) == 1
        await person.say("/status")
        assert "Proposed plan, not approved yet: 8 steps" in person.told
        assert panel.display
        await person.say("discard")
        assert not panel.display
        await person.say("regenerate")
        assert panel.display
        await person.say("approve")
        assert not panel.display
        await person.say(f"/plan {SLUG}")
        assert not panel.display
        assert person.step_list.display


async def test_enter_is_explained_while_a_plan_is_proposed(planned: Sandbox) -> None:
    async with person_at(planned, size=(120, 36)) as person:
        await person.say(f"/plan {SLUG}")
        assert person.prompt.area.placeholder.startswith("approve, discard, or what")
        assert "approve: write the plan" in person.activity
        person.write("approve")
        await person.pilot.pause()
        assert person.activity.startswith(f"Enter: write tickets/{SLUG}/plan.md")
        person.prompt.replace("split step 3")
        await person.pilot.pause()
        assert "Enter: ask the Planner for this change" in person.activity
