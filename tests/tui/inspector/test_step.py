"""A step is opened from the plan: its page, and the way back to the prompt."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from textual import events
from textual.drivers.headless_driver import HeadlessDriver

from cdd_agent.engine.step_details import AttemptDetails, SeenTest, StepDetails
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tui.inspector.action_screen import ActionScreen
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.source import InspectorTab
from cdd_agent.tui.inspector.step_tab import StepTab
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.find_bar import FindBar
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.steps import StepList
from cdd_agent.verification.outcomes import Result
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.tui.held_model import HeldModel
from tests.tui.inspector.examples import FakeRun, inspection_of, inspector
from tests.tui.person import Person, person_at, shell
from tests.tui.person import opened as session_opened
from tests.tui.test_typing import StampedTime

DIFF = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
GUIDANCE = "Write it in lower case, please."
STEPS = (
    Step("a.txt", "none"),
    Step("b.txt", "none", "Step 1", "Say it of b."),
    Step("c.txt", None, "Step 2"),
)
BAD = "No file comes with this."


def screen(person: Person) -> InspectorScreen:
    assert isinstance(person.app.screen, InspectorScreen)
    return person.app.screen


def shown(person: Person) -> str:
    return screen(person).query_one(Transcript).plain_text()


async def opened(person: Person, *keys: str) -> None:
    """Go to the plan by its key, and open the step that these keys lead to."""
    await person.press("f2", *keys, "enter")
    await is_read(person)
    person.time.pass_by(1)


async def is_read(person: Person) -> None:
    """Wait until the inspector has read the step."""
    await person.until(
        lambda: any(tab.details is not None for tab in person.app.screen.query(StepTab))
    )


async def closed(person: Person) -> None:
    """Close the inspector, and return to the prompt."""
    await person.press("escape")
    await person.until(lambda: person.app.screen is person.app.home)
    person.app.home.set_focus(person.prompt.area)


async def offered(person: Person, key: str) -> ActionScreen:
    """Press the key of an action, and read what it would do."""
    await person.press(key)
    await person.until(lambda: isinstance(person.app.screen, ActionScreen))
    shown_on = person.app.screen
    assert isinstance(shown_on, ActionScreen)
    await person.until(
        lambda: any(part.plain_text() for part in shown_on.query(Transcript))
    )
    person.time.pass_by(1)
    return shown_on


@pytest.fixture
def one_done(sandbox: Sandbox) -> Sandbox:
    """A project whose first step is done at its second attempt."""
    return sandbox.write(*STEPS).replies(BAD, says("a.txt", "good", "Better now."), BAD)


async def test_the_page_of_a_step_shows_each_attempt(sandbox: Sandbox) -> None:
    seen = SeenTest("test_a.py::test_new", Result.FAILED, Result.PASSED)
    attempts = (
        AttemptDetails(1, "", "# First", "Hm.", "`make` failed", "", "it says bad", ()),
        AttemptDetails(2, "", "# Second", "Better.", "", DIFF, "it says good", (seen,)),
    )
    plan_step = PlanStep(1, "Make a.txt", "Make it.")
    view = StepSummary(1, "Make a.txt", StepStatus.COMPLETED, Verification.PASSED)
    details = StepDetails(SLUG, plan_step, view, attempts)
    run = FakeRun(inspection_of([view]), lambda _: details)
    async with person_at(sandbox) as person:
        person.app.push_screen(inspector(run))
        await is_read(person)
        assert "1. Make a.txt" in person.screen
        assert "2 of 2" in person.screen
        page = shown(person)
        for text in ("Make it.", "# Second", "Better.", "+new", "it says good"):
            assert text in page
        assert "test_a.py::test_new  failed, passed before" in page
        await person.press("left_square_bracket")
        assert "it says bad" in shown(person)
        assert "1 of 2" in person.screen


async def test_n_and_p_show_the_next_and_the_previous_step(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person)
        assert "Make it." in shown(person)
        await person.press("n")
        await person.until(lambda: "Say it of b." in shown(person))
        await person.press("n")
        await person.until(lambda: "3. Make c.txt" in person.screen)
        await person.press("n", "p", "p", "p")
        await person.until(lambda: "1. Make a.txt" in person.screen)
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
        # the focus returns to where it was
        assert person.app.focused is person.step_list
        assert person.prompt.text == ""


async def test_a_chosen_action_is_put_into_the_prompt_and_not_done(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.say("continue")
        before = one_done.statuses()
        for key, line in (("r", "retry 1 because "), ("s", "skip 1 because ")):
            person.prompt.replace("a draft")
            await opened(person, "home")
            await offered(person, key)
            await person.press("tab")
            await person.until(lambda: person.app.focused is person.prompt.area)
            assert person.prompt.text == line
            assert one_done.statuses() == before
            assert not person.is_waiting
            await person.press("up")
            assert person.prompt.text == "a draft"


async def test_a_failed_step_is_retried_with_guidance_or_skipped_with_a_reason(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.say("continue")
        await opened(person)
        await offered(person, "r")
        await person.press("tab")
        await person.until(lambda: person.prompt.text == "retry 1 because ")
        person.write(GUIDANCE)
        await person.say("")
        assert one_done.statuses()[0] == "completed"
        assert GUIDANCE in one_done.prompt()
        await opened(person, "home")
        assert GUIDANCE in shown(person)
        await closed(person)

        await opened(person)
        await offered(person, "s")
        await person.press("tab")
        await person.until(lambda: person.app.focused is person.prompt.area)
        reason = "it can wait"
        await person.say(reason)
        assert one_done.statuses() == ["completed", "skipped", "pending"]
        await opened(person, "home", "down")
        assert reason in shown(person)


async def test_after_the_run_the_command_for_the_chosen_action_is_offered(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*STEPS[:2]).replies(says("a.txt", "good"), says("b.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        assert person.app.home.agent is None
        await opened(person, "end")
        for key in ("r", "s"):
            await person.press(key)
            assert isinstance(person.app.screen, InspectorScreen)
        effect = await offered(person, "u")
        await person.until(
            lambda: "Reverts: b.txt" in effect.query_one(Transcript).plain_text()
        )
        assert f"send `/undo {SLUG} 2`" in person.screen
        await person.press("tab")
        await person.until(lambda: person.prompt.text == f"/undo {SLUG} 2")
        assert sandbox.statuses() == ["completed", "completed"]
        await person.say("")
        assert sandbox.statuses() == ["completed", "pending"]


async def test_escape_before_a_step_is_open_keeps_it_closed_and_stops_nothing(
    one_done: Sandbox,
) -> None:
    one_done.model = model = HeldModel(BAD)
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.begin("all")
        await opened(person, "end")
        assert "3. Make c.txt" in person.screen
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)

        model.release()
        await person.until(lambda: not person.is_waiting)
        # the reply failed, and was not stopped
        assert one_done.statuses()[0] == "failed"
        assert person.app.screen is person.app.home


async def test_a_plan_that_cannot_be_read_any_more_is_reported(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        Path(one_done.ticket / "plan.md").write_text("# nothing\n")
        await person.press("f2", "enter")
        await person.until(lambda: "no steps: a plan needs" in person.screen)
        for tab in ("2", "4"):
            await person.press(tab)
            assert "plan.md" in person.screen


async def test_the_plan_folds_by_its_key_and_typing_goes_to_the_prompt_from_it(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}", size=(120, 30)) as person:
        await person.press("f2")
        assert person.app.focused is person.step_list
        assert "Enter: open the step" in person.screen
        await person.press("x")
        assert "Enter: open the step" not in person.screen
        assert person.app.focused is person.prompt.area
        assert person.prompt.text == "x"
        await person.press("f2", "f2")
        assert not person.step_list.region
        assert person.app.focused is person.prompt.area
        await person.press("f2")
        assert person.step_list.region
        assert person.app.focused is person.step_list


async def test_keys_act_on_the_screen_on_top(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person)
        transcript = screen(person).query_one(Transcript)
        transcript.add(BlockKind.OUTPUT, "line\n" * 200)
        await person.until(lambda: transcript.show_vertical_scrollbar)
        assert transcript.scroll_offset.y == 0
        await person.press("pagedown")
        await person.until(lambda: transcript.scroll_offset.y > 0)
        await person.press("ctrl+f")
        assert not person.app.home.query(FindBar)
        await person.press("f2")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.step_list.display

        await person.press("f3")
        await person.until(lambda: isinstance(person.app.screen, InspectorScreen))
        assert screen(person).tab is InspectorTab.CRITERIA
        person.time.pass_by(1)
        await person.press("f7")
        assert screen(person).tab is InspectorTab.TIMELINE
        await person.press("f7")
        await person.until(lambda: person.app.screen is person.app.home)


async def test_the_inspector_walks_without_the_list_of_the_home_screen(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person)
        person.step_list.show(())
        await person.press("n", "p")
        await person.until(lambda: "1. Make a.txt" in person.screen)


async def test_the_list_follows_the_run_again_after_a_step_was_opened_by_a_click(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}", size=(120, 30)) as person:
        assert await person.pilot.click(StepList, offset=(4, 3))
        await is_read(person)
        assert "3. Make c.txt" in person.screen
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.step_list.walk(0) == 1


async def test_opening_a_step_does_not_cancel_the_search_for_models(
    one_done: Sandbox,
) -> None:
    looks = asyncio.Event()

    async def find_servers() -> tuple[LocalServer, ...]:
        looks.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async with person_at(one_done, find_servers=find_servers) as person:
        await person.until(looks.is_set)
        for key in ("f3", "f2"):
            await person.press(key)
        person.app.open_step(1)
        await person.until(lambda: person.app._notifications)
        assert [
            worker.is_cancelled
            for worker in person.app.workers
            if worker.group == "look"
        ] == [False]


async def test_a_question_that_came_behind_a_step_is_unseen_until_the_step_closes(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person)
        proposal = CommandProposed("make", "it is not known")
        asked = asyncio.ensure_future(person.app.asking.approve(proposal))
        await person.until(lambda: person.app.asking.open is not None)
        await person.rest(5)
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
        await person.press("y")
        await person.rest()
        await person.pilot.pause(0.2)
        assert not asked.done()
        asked.cancel()


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes a shell command over the file `$1` the editor."""
    monkeypatch.setattr(HeadlessDriver, "can_suspend", True)

    def use(command: str) -> None:
        script = tmp_path / "editor.sh"
        script.write_text(f"#!/bin/sh\n{command}\n")
        monkeypatch.setenv("VISUAL", f"/bin/sh {script}")

    return use


def replacing(*replacements: str) -> str:
    """Return a shell command that replaces text by the rules of `sed`."""
    rules = " ".join(f"-e '{rule}'" for rule in replacements)
    return f'sed {rules} "$1" > "$1.new" && cat "$1.new" > "$1" && rm "$1.new"'


async def test_an_edited_step_is_written_to_the_plan_and_shown(
    one_done: Sandbox, editor: Callable[[str], None]
) -> None:
    editor(replacing("s/Make b.txt/Write b.txt/", "s/Say it of b[.]/Say it twice./"))
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person, "down")
        await person.press("e")
        await person.until(lambda: "Saved to" in shown(person))
        assert "does nothing" not in person.screen
        assert "Say it twice." in shown(person)
        assert "2. Write b.txt" in person.screen
        await person.press("escape")
        await person.until(lambda: any("Write b.txt" in row for row in person.steps))
        assert "Say it twice." in (one_done.ticket / "plan.md").read_text()
        assert "The plan was edited" not in person.told


async def test_a_wrong_edit_is_reported_and_opened_again(
    one_done: Sandbox, editor: Callable[[str], None]
) -> None:
    editor("printf 'by me\\n\\n### Step 9: More\\n' >> \"$1\"")
    before = (one_done.ticket / "plan.md").read_text()
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person, "down")
        await person.press("e")
        await person.until(lambda: "must be step 2" in shown(person))
        assert "Your text is saved" in shown(person)
        assert (one_done.ticket / "plan.md").read_text() == before
        editor(replacing("/### Step 9/,$d"))
        await person.press("e")
        await person.until(lambda: "Saved to" in shown(person))
        assert "by me" in (one_done.ticket / "plan.md").read_text()


async def test_a_step_that_is_done_or_runs_is_not_edited_and_others_are(
    one_done: Sandbox, editor: Callable[[str], None]
) -> None:
    editor(replacing("s/Make it[.]/Make it well./"))
    one_done.model = model = HeldModel(
        *(says(f"{name}.txt", "good", "One word.") for name in "abc")
    )
    model.release()
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.say("continue")
        await opened(person, "home")
        await person.press("e")
        await person.until(lambda: "undo 1" in shown(person))
        assert "kept" not in shown(person)
        await closed(person)

        model.hold()
        await person.begin("all")
        await person.until(lambda: len(model.requests) == 2)
        await opened(person, "home", "down")
        before = (one_done.ticket / "plan.md").read_text()
        await person.press("e")
        await person.until(lambda: "Step 2 is running" in shown(person))
        assert (one_done.ticket / "plan.md").read_text() == before
        await closed(person)
        await opened(person, "end")
        await person.press("e")
        await person.until(lambda: "Saved to" in shown(person))
        await closed(person)
        model.release()
        await person.until(lambda: not person.is_waiting)
        assert one_done.statuses() == ["completed"] * 3
        assert "Make it well." in one_done.prompt()


async def test_keys_from_before_the_step_was_seen_go_to_the_prompt(
    one_done: Sandbox,
) -> None:
    time = StampedTime()
    app = shell(one_done, f"/exec {SLUG}", time=time)
    async with app.run_test() as pilot:
        await session_opened(app, pilot)
        person = Person(app, pilot, time)
        await opened(person)

        def press(key: str, at: float) -> None:
            event = events.Key(key, key if len(key) == 1 else None)
            event.time = at
            app.post_message(event)

        for key in "rsu":
            press(key, time.now - 3)
        await person.until(lambda: person.prompt.text == "rsu")
        assert isinstance(app.screen, InspectorScreen)
        press("escape", time.now + 1)
        await person.until(lambda: app.screen is app.home)
        assert person.prompt.text == "rsu"
