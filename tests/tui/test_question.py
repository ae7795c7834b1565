"""With `approval: ask` nothing is written before the person said yes."""

import pytest

from cdd_agent.tui.widgets.question import Question
from tests.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import Person, person_at


@pytest.fixture
def asking(sandbox: Sandbox) -> Sandbox:
    sandbox.flags = {"approval": "ask"}
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    (sandbox.root / "a.txt").write_text("before\n")
    return sandbox.replies(says("a.txt", "good") + says("[bold]c.txt", "x"), says("b.txt", "good"))


async def until_asked(person: Person) -> None:
    await person.begin("")
    await person.until(lambda: person.app.query(Question))
    await person.until(lambda: person.app.focused is person.app.query_one(Question))


async def answer(person: Person, key: str) -> None:
    await person.press(key)
    await person.until(lambda: not person.is_waiting)
    assert not person.app.query(Question)
    assert person.app.focused is person.prompt.area


async def test_the_question_names_the_files_and_nothing_is_written_yet(asking: Sandbox) -> None:
    async with person_at(asking, f"/exec {SLUG}") as person:
        await until_asked(person)
        assert "May step 1 write this?" in person.screen
        assert "create [bold]c.txt" in person.screen
        assert "change a.txt" in person.screen
        assert "[y] yes   [n] no" in person.screen
        assert person.activity == "Waiting for your answer"
        assert asking.text("a.txt") == "before\n"
        await answer(person, "n")


async def test_y_writes(asking: Sandbox) -> None:
    async with person_at(asking, f"/exec {SLUG}") as person:
        await until_asked(person)
        await answer(person, "y")
        assert asking.text("a.txt") == "good\n"
        assert asking.statuses() == ["completed", "pending"]


@pytest.mark.parametrize("key", ["n", "escape"])
async def test_a_no_leaves_no_trace_and_the_step_can_go_on(asking: Sandbox, key: str) -> None:
    async with person_at(asking, f"/exec {SLUG}") as person:
        await until_asked(person)
        await answer(person, key)

        assert asking.text("a.txt") == "before\n"
        assert asking.statuses() == ["pending", "pending"]
        assert "were not approved; nothing was written" in person.told
        assert person.steps[1] == "○ 1. Make a.txt"

        await until_asked(person)
        await answer(person, "y")
        assert person.steps[1] == "✓ 1. Make a.txt"
        assert len(asking.model.requests) == 1


async def test_ctrl_c_during_the_question_stops_the_step(asking: Sandbox) -> None:
    async with person_at(asking, f"/exec {SLUG}") as person:
        await until_asked(person)
        await answer(person, "ctrl+c")
        assert "Stopped;" in person.told
        assert asking.statuses() == ["pending", "pending"]


async def test_a_line_sent_instead_of_an_answer_leads_back_to_the_question(asking: Sandbox) -> None:
    async with person_at(asking, f"/exec {SLUG}") as person:
        await until_asked(person)
        person.prompt.area.focus()
        await person.begin("yes please")
        await person.until(lambda: person.app.focused is person.app.query_one(Question))
        assert person.prompt.text == "yes please"
        await answer(person, "y")


async def test_leaving_during_the_question_writes_nothing(asking: Sandbox) -> None:
    async with person_at(asking, f"/exec {SLUG}") as person:
        await until_asked(person)
        await person.press("ctrl+d")
        await person.until(lambda: not person.app.is_running)
    assert asking.text("a.txt") == "before\n"
    assert asking.statuses() == ["pending", "pending"]


async def test_a_long_list_of_files_leaves_room_for_the_keys(asking: Sandbox) -> None:
    asking.replies("".join(says(f"deep/folder/file-{number:02}.txt", "x") for number in range(40)))
    async with person_at(asking, f"/exec {SLUG}") as person:
        await until_asked(person)
        assert "file-04.txt\n" in person.screen.replace(" ", "")
        assert "and 35 more files" in person.screen
        assert "[y] yes   [n] no" in person.screen
        await answer(person, "n")
