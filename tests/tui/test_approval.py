"""The frame of the prompt shows the approval mode, and Shift+Tab changes it at once."""

from collections.abc import Callable
from typing import Any

import pytest
from textual.app import RenderResult
from textual.widget import Widget

from cdd_agent.engine.approval_mode import ACCEPTED_RUN, TITLES
from cdd_agent.events.question_events import ApprovalChanged
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import ActivityBar
from cdd_agent.tui.widgets.prompt_frame import ModeLabel, PromptFrame
from cdd_agent.tui.widgets.status_line import StatusLine
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.tables import each_row
from tests.tui.held_model import HeldModel
from tests.tui.person import Person, person_at

ASK, EDITS, AUTO = TITLES["ask"], TITLES["edits"], TITLES["auto"]
TWO = (Step("a.txt", "none"), Step("b.txt", "none"))


def changes(person: Person) -> list[str]:
    return [e.approval for e in person.shown if isinstance(e, ApprovalChanged)]


async def test_shift_tab_toggles_ask_and_edits_and_only_words_lead_to_auto(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        assert person.mode == EDITS
        person.write("a draft")
        modes = []
        for _ in range(3):
            await person.press("shift+tab")
            modes.append(person.mode)
        assert modes == [ASK, EDITS, ASK]
        assert person.prompt.text == "a draft"
        assert person.app.focused is person.prompt.area
        assert "from now on" not in person.told  # nothing runs: the frame says it
        person.prompt.replace("")
        await person.say("/approval auto")
        assert person.mode == AUTO
        assert "commands without asking" in person.told
        await person.press("shift+tab")
        assert person.mode == ASK


async def test_shift_tab_leaves_the_welcome_on_the_screen(sandbox: Sandbox) -> None:
    async with person_at(sandbox, helps_to_begin=True) as person:
        assert person.app.home.has_welcome
        await person.press("shift+tab")
        assert person.mode == ASK
        assert person.app.home.has_welcome


async def test_a_session_begins_with_the_mode_of_the_settings(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"approval": "ask"}
    for _ in range(2):
        async with person_at(sandbox) as person:
            assert person.mode == ASK
            await person.press("shift+tab")
            assert person.mode == EDITS
    assert not (sandbox.root / ".cdd/config.yaml").exists()


async def test_the_settings_show_the_mode_of_the_session(sandbox: Sandbox) -> None:
    async with person_at(sandbox, size=(100, 24)) as person:
        await person.press("shift+tab", "f5", *"approval")
        await person.until(lambda: " session " in person.screen)
        row = next(row for row in person.screen.splitlines() if " ask " in row)
        assert "session" in row


async def test_a_mode_that_is_saved_is_in_the_settings_of_the_next_session(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/approval ask --save")
        assert person.mode == ASK
        await person.press("shift+tab")
    async with person_at(sandbox) as person:
        assert person.mode == ASK


async def test_a_running_step_asks_as_soon_as_the_mode_says_so(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO)
    sandbox.model = model = HeldModel(says("a.txt", "good", "One two."), "unused")
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.begin("continue")
        await person.until_told("One ")
        await person.press("shift+tab")
        assert person.mode == ASK
        assert "asks before it changes files" in person.told
        model.release()
        await person.until_asked()
        # the open question stays, and the next one is not asked
        await person.press("shift+tab")
        assert person.mode == EDITS
        assert person.app.asking.open is not None
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses()[0] == "completed"
        assert changes(person) == ["ask", "edits"]


async def test_shift_tab_ends_that_all_of_a_run_is_accepted(sandbox: Sandbox) -> None:
    sandbox.flags = {"approval": "ask"}
    sandbox.write(*TWO).replies(says("a.txt", "good"), says("b.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.begin("continue")
        await person.answer("a")
        await person.until(lambda: not person.is_waiting)
        assert person.mode == ACCEPTED_RUN
        await person.press("shift+tab")
        assert person.mode == ASK
        await person.begin("continue")
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["completed"] * 2


async def test_ask_ends_whatever_lets_changes_pass(sandbox: Sandbox) -> None:
    sandbox.flags = {"approval": "ask"}
    sandbox.write(*TWO).replies(says("a.txt", "good"), says("b.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.begin("continue")
        await person.until_asked()
        await person.press("shift+tab")
        await person.answer("a")
        await person.until(lambda: not person.is_waiting)
        assert person.mode == EDITS
        await person.say("ask")
        assert person.mode == ASK


async def test_in_a_dialog_shift_tab_changes_no_mode(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        for key in ("f1", "f5", "ctrl+p"):
            await person.press(key)
            await person.until(lambda: len(person.app.screen_stack) == 2)
            await person.press("shift+tab", "escape")
            await person.until(lambda: len(person.app.screen_stack) == 1)
        assert changes(person) == []


async def test_from_the_transcript_shift_tab_changes_the_mode_too(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.app.query_one(Transcript).focus()
        await person.press("shift+tab")
        assert person.mode == ASK
        assert isinstance(person.app.focused, Transcript)


@each_row(
    ("size", "rows"), [((60, 20), 8), ((80, 24), 10), ((120, 40), 30), ((40, 12), 3)]
)
async def test_the_transcript_keeps_its_room_beside_plan_and_frame(
    sandbox: Sandbox, size: tuple[int, int], rows: int
) -> None:
    sandbox.write(*TWO, Step("c.txt"), Step("d.txt"), Step("e.txt"))
    async with person_at(sandbox, f"/exec {SLUG}", size=size) as person:
        assert person.app.query_one(Transcript).region.height >= rows
        places = [person.app.query_one(PromptFrame), person.app.query_one(ActivityBar)]
        places.append(person.app.query_one(StatusLine))
        bottoms = [widget.region.bottom for widget in places]
        assert bottoms == [size[1] - 2, size[1] - 1, size[1]]
        is_low = size[1] < 16
        assert person.app.query_one(ModeLabel).display is is_low
        last = person.screen.splitlines()[-1]
        assert ("edits" in last) is is_low
        assert "executor" in last
        assert (EDITS in person.screen) is not is_low


@each_row("size", [(60, 20), (40, 10), (100, 15), (100, 16), (80, 24)], most=3)
async def test_a_long_question_leaves_room_for_the_last_rows(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    sandbox.flags = {"approval": "ask"}
    text = "".join(f"line {number}\n" for number in range(200))
    sandbox.write(*TWO).replies(says("a.txt", text))
    async with person_at(sandbox, f"/exec {SLUG}", size=size) as person:
        await person.begin("continue")
        await person.until_asked()
        assert person.app.query_one(StatusLine).region.bottom == size[1]
        assert person.app.home.max_scroll_y == 0
        await person.press("escape")


async def test_completions_are_above_the_frame_in_line_with_its_text(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.type("/st")
        rows = person.screen.splitlines()
        frame = next(row for row, text in enumerate(rows) if EDITS in text)
        assert rows[frame - 1].index("/status") == rows[frame + 1].index("❯")


async def test_a_typed_key_draws_neither_the_frame_nor_the_status_line(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    async with person_at(sandbox) as person:
        await person.press("a", "b")
        for kind in (PromptFrame, StatusLine):
            render = kind.render

            def note(
                widget: Widget, render: Callable[[Any], Any] = render
            ) -> RenderResult:
                drawn.append(type(widget).__name__)
                return render(widget)

            monkeypatch.setattr(kind, "render", note)
        await person.press(*"cde f")
        await person.pilot.pause()
        assert drawn == []
        person.app.home.bar.context = "12%"
        await person.press("shift+tab")
        await person.pilot.pause()
        assert set(drawn) == {"PromptFrame", "StatusLine"}


async def test_without_colours_the_mode_is_in_words(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with person_at(sandbox) as person:
        assert EDITS in person.screen
        assert "╭─ " in person.screen
        assert "0 tokens" in person.screen
