"""A step is opened from the plan: what is known of it, part by part, and the way back
to the prompt.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.drivers.headless_driver import HeadlessDriver

from cdd_agent.events import CommandProposed
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.tui.criteria_screen import CriteriaScreen
from cdd_agent.tui.step_screen import StepScreen
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.find_bar import FindBar
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.steps import StepList
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import Person, person_at

GUIDANCE = "Write it in lower case, please."
STEPS = (
    Step("a.txt", check("a.txt")),
    Step("b.txt", check("b.txt"), "Step 1", "Say it of b."),
    Step("c.txt", None, "Step 2"),
)


def screen(person: Person) -> StepScreen:
    assert isinstance(person.app.screen, StepScreen)
    return person.app.screen


def shown(person: Person) -> str:
    return screen(person).query_one(Transcript).plain_text()


async def opened(person: Person, *keys: str) -> None:
    """Go to the plan by its key, and open the step that these keys lead to."""
    await person.press("f2", *keys, "enter")
    await person.until(lambda: isinstance(person.app.screen, StepScreen))


@pytest.fixture
def one_done(sandbox: Sandbox) -> Sandbox:
    """The first step is done at its second attempt."""
    return sandbox.write(*STEPS).replies(
        says("a.txt", "bad"), says("a.txt", "good", "Better now."), says("b.txt", "bad")
    )


async def test_a_completed_step_says_why_it_is_done_and_shows_each_attempt(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.say("continue")
        await person.say("retry")
        await opened(person, "home")
        assert "1. Make a.txt" in person.screen
        assert "2 of 2" in person.screen
        assert "Seen: " in shown(person)
        assert "Make it." in shown(person)
        parts = dict[str, str]()
        for part in StepScreen.PARTS:
            parts[part] = shown(person)
            await person.press("right")
        assert "a.txt" in parts["Prompt"]
        assert "Better now." in parts["Reply"]
        assert "+good" in parts["Changes"]
        assert "it says good" in parts["Checks"]
        await person.press("left", "left_square_bracket")
        assert "it says bad" in shown(person)
        assert "1 of 2" in person.screen


async def test_one_goes_from_step_to_step_and_back_to_the_prompt(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person)
        assert "Make it." in shown(person)
        await person.press("n")
        await person.until(lambda: "Say it of b." in shown(person))
        await person.press("right", "n")
        await person.until(lambda: "3. Make c.txt" in person.screen)
        await person.press("n", "p", "p", "p")
        await person.until(lambda: "1. Make a.txt" in person.screen)
        await person.press("escape")
        await person.until(lambda: person.app.focused is person.prompt.area)
        assert person.prompt.text == ""


@pytest.mark.parametrize(
    ("key", "line"), [("r", "retry 1"), ("s", "skip 1 because "), ("u", "undo 1")]
)
async def test_what_is_chosen_stands_in_the_prompt_and_is_not_done(
    one_done: Sandbox, key: str, line: str
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.say("continue")
        before = one_done.statuses()
        person.prompt.replace("a draft")
        await opened(person, "home")
        await person.press(key)
        await person.until(lambda: person.app.focused is person.prompt.area)
        assert person.prompt.text == line
        assert one_done.statuses() == before
        assert not person.is_waiting
        await person.press("up")
        assert person.prompt.text == "a draft"


async def test_a_reason_typed_after_it_skips_the_step(one_done: Sandbox) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person)
        await person.press("s")
        await person.until(lambda: person.app.focused is person.prompt.area)
        reason = "it can wait"
        await person.say(reason)
        assert one_done.statuses() == ["skipped", "pending", "pending"]
        await opened(person, "home")
        assert reason in shown(person)


async def test_a_failed_step_is_tried_again_with_guidance(one_done: Sandbox) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.say("continue")
        await opened(person)
        await person.press("r")
        await person.until(lambda: person.prompt.text == "retry 1")
        person.prompt.area.insert(f" because {GUIDANCE}")
        await person.until(lambda: "with this guidance" in person.screen)
        await person.say("")
        assert one_done.statuses()[0] == "completed"
        assert GUIDANCE in one_done.prompt()
        await opened(person, "home")
        assert f"Guidance: {GUIDANCE}" in shown(person)


@pytest.mark.parametrize(
    ("key", "line"),
    [("u", f"/undo {SLUG} 2"), ("r", f"/exec {SLUG}"), ("s", f"/exec {SLUG}")],
)
async def test_where_the_run_is_closed_the_command_that_does_it_is_offered(
    sandbox: Sandbox, key: str, line: str
) -> None:
    sandbox.write(*STEPS[:2]).replies(says("a.txt", "good"), says("b.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        assert person.app.home.agent is None
        await opened(person, "end")
        await person.press(key)
        await person.until(lambda: person.prompt.text == line)
        if key == "u":
            await person.say("")
            assert sandbox.statuses() == ["completed", "pending"]


async def test_a_step_can_be_looked_at_while_another_one_runs(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.begin("all")
        await opened(person, "end")
        assert "3. Make c.txt" in person.screen
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)


async def test_escape_before_a_step_has_opened_keeps_it_closed_and_stops_nothing(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.begin("all")
        person.app.open_step(3)
        person.app.on_prompt_stopped()
        await person.until(lambda: not person.is_waiting)
        assert one_done.statuses()[0] == "failed"  # by its check: it ran to its end
        assert person.app.screen is person.app.home


async def test_a_plan_that_is_broken_meanwhile_is_a_word_and_no_end(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        Path(one_done.ticket / "plan.md").write_text("# nothing\n")
        await person.press("f2", "enter")
        await person.until(lambda: person.app._notifications)
        assert person.app.screen is person.app.home


async def test_the_line_below_the_prompt_says_what_enter_does_in_the_plan(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.press("f2")
        await person.until(lambda: "Enter opens the step" in person.screen)
        await person.press("x")
        await person.until(lambda: "Enter opens the step" not in person.screen)


async def test_the_plan_folds_by_its_key_and_typing_goes_to_the_prompt_from_it(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}", size=(120, 30)) as person:
        await person.press("f2")
        assert person.app.focused is person.step_list
        await person.press("x")
        assert person.app.focused is person.prompt.area
        assert person.prompt.text == "x"
        await person.press("f2", "f2")
        assert not person.step_list.region
        assert person.app.focused is person.prompt.area
        await person.press("f2")
        assert person.step_list.region
        assert person.app.focused is person.step_list


async def test_the_keys_of_the_screen_that_lies_on_top_are_its_own(
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
        await person.until(lambda: isinstance(person.app.screen, CriteriaScreen))
        await person.press("f3")
        await person.until(lambda: person.app.screen is person.app.home)


async def test_a_step_whose_list_has_gone_leads_to_no_other(one_done: Sandbox) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person)
        person.step_list.show(())
        await person.press("n")
        await person.pilot.pause()
        assert "1. Make a.txt" in person.screen


async def test_after_a_look_at_a_step_by_a_click_the_list_follows_the_run_again(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}", size=(120, 30)) as person:
        assert await person.pilot.click(StepList, offset=(4, 3))
        await person.until(lambda: isinstance(person.app.screen, StepScreen))
        assert "3. Make c.txt" in person.screen
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.step_list.walk(0) == 1


async def test_opening_a_step_breaks_off_nothing_that_is_looked_at(
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


async def test_who_comes_back_from_a_step_to_a_question_has_not_seen_it_before(
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
    """Makes a program the person's editor: it writes what an expression over the `text`
    gives.
    """
    monkeypatch.setattr(HeadlessDriver, "can_suspend", True)

    def use(expression: str) -> None:
        script = tmp_path / "editor.py"
        script.write_text(
            "import pathlib, sys\n"
            "file = pathlib.Path(sys.argv[-1])\n"
            "text = file.read_text()\n"
            f"file.write_text({expression})\n"
        )
        monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")

    return use


async def test_a_steps_text_is_edited_and_the_plan_beside_it_says_so(
    one_done: Sandbox, editor: Callable[[str], None]
) -> None:
    editor(
        "text.replace('Make b.txt', 'Write b.txt').replace('Say it of b.', 'Say it"
        " twice.')"
    )
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person, "down")
        await person.press("e")
        await person.until(lambda: "Written to" in shown(person))
        assert "does nothing" not in person.screen
        assert "Say it twice." in shown(person)
        assert "2. Write b.txt" in person.screen
        await person.press("escape")
        await person.until(lambda: any("Write b.txt" in row for row in person.steps))
        assert "Say it twice." in (one_done.ticket / "plan.md").read_text()
        assert "The plan was edited" not in person.told


async def test_what_was_edited_wrong_is_told_and_opened_again(
    one_done: Sandbox, editor: Callable[[str], None]
) -> None:
    editor("text + 'by me\\n\\n### Step 9: More\\n'")
    before = (one_done.ticket / "plan.md").read_text()
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person, "down")
        await person.press("right", "e")
        await person.until(lambda: "has to be step 2" in shown(person))
        assert "Your text is kept" in shown(person)
        assert (one_done.ticket / "plan.md").read_text() == before
        editor("text.partition('### Step 9')[0] if 'by me' in text else 'lost'")
        await person.press("e")
        await person.until(lambda: "Written to" in shown(person))
        assert "by me" in (one_done.ticket / "plan.md").read_text()


async def test_a_step_that_is_done_says_why_it_is_not_edited(
    one_done: Sandbox, editor: Callable[[str], None]
) -> None:
    editor("'never'")
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.say("continue")
        await person.say("retry")
        await opened(person, "home")
        await person.press("e")
        await person.until(lambda: "undo 1" in shown(person))
        assert "kept" not in shown(person)


async def test_a_step_is_edited_while_another_one_runs_which_it_does_not_disturb(
    one_done: Sandbox, editor: Callable[[str], None]
) -> None:
    editor("text.replace('Make it.', 'Make it well.')")
    one_done.replies(
        says("a.txt", "good", "long " * 5000),
        says("b.txt", "good"),
        says("c.txt", "good"),
    )
    one_done.model.pace = 400
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await person.begin("all")
        await person.until_told("long")
        await opened(person, "home")
        await person.press("e")
        await person.until(lambda: "under way" in shown(person))
        await person.press("escape")
        await opened(person, "end")
        await person.press("e")
        await person.until(lambda: "Written to" in shown(person))
        await person.press("escape")
        one_done.model.pace = 0
        await person.until(lambda: not person.is_waiting)
        assert one_done.statuses() == ["completed"] * 3
        assert "Make it well." in one_done.prompt()


async def test_keys_from_before_the_step_was_seen_are_the_prompts(
    one_done: Sandbox,
) -> None:
    async with person_at(one_done, f"/exec {SLUG}") as person:
        await opened(person)
        step, _ = person.app._opened_step
        # it is drawn a second later
        person.app._opened_step = (step, person.time.now + 1)
        await person.press("r", "s", "u")
        assert person.app.screen is step
        person.time.pass_by(1)
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.prompt.text == "rsu"
