"""The first five minutes of a user in the shell, in the order in which they come."""

import re

import pytest

from tests.agents.test_planner import SPEC as PLANNED_SPEC
from tests.agents.test_planner import plan as proposed_plan
from tests.llm.model_lists import LIST, server
from tests.support.examples import long_rows
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.settings import load_config
from tests.tui.person import Person, person_at

SIZES = [(60, 20), (120, 40), *long_rows((80, 24), (200, 50))]
ONE_STEP = Step("a.txt", "none")
GOOD = says("a.txt", "good")


def status_line(person: Person) -> str:
    return person.screen.splitlines()[-1]


# 3. Enter takes the highlighted completion


async def test_enter_sends_a_highlighted_command_that_needs_no_argument(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.type("/stat")
        await person.say("")
        assert "/status" in person.told.splitlines()
        assert person.prompt.text == ""


async def test_enter_inserts_a_highlighted_command_that_needs_an_argument(
    sandbox: Sandbox,
) -> None:
    sandbox.write(ONE_STEP)
    async with person_at(sandbox) as person:
        await person.type("/exe")
        await person.press("enter")
        assert person.prompt.text == "/exec "
        assert "/exec" not in person.told
        # the ticket is offered, and is not chosen before an arrow key does
        assert SLUG in person.screen
        await person.press("down", "enter")
        assert person.prompt.text.strip() == f"/exec {SLUG}"
        assert "/exec" not in person.told


async def test_enter_sends_a_mention_that_was_not_chosen(sandbox: Sandbox) -> None:
    sandbox.write(ONE_STEP).replies("It says good.", "It says good.")
    (sandbox.root / "alpha.txt").write_text("good\n")
    async with person_at(sandbox) as person:
        await person.type("what is in @alph")
        await person.until(lambda: "alpha.txt" in person.screen)
        await person.say("")
        assert "what is in @alph" in person.told.splitlines()

        await person.type("and in @alph")
        await person.until(lambda: "alpha.txt" in person.screen.split("❯ and")[0])
        await person.press("down", "enter")
        assert person.prompt.text.strip() == "and in @alpha.txt"


# 4. What comes next is in the prompt


async def test_the_next_command_is_in_the_prompt_and_a_quick_enter_does_not_send_it(
    sandbox: Sandbox,
) -> None:
    sandbox.write(spec=PLANNED_SPEC)
    (sandbox.ticket / "plan.md").unlink()
    sandbox.replies(proposed_plan())
    async with person_at(sandbox) as person:
        await person.say(f"/plan {SLUG}")
        await person.rest()
        await person.say("approve")
        assert person.prompt.text == f"/exec {SLUG}"

        await person.press("enter")
        assert person.prompt.text == f"/exec {SLUG}"
        assert "executor" not in status_line(person)

        await person.rest()
        await person.press("enter")
        await person.until(lambda: f"executor · {SLUG}" in status_line(person))


async def test_the_next_command_never_replaces_a_draft(sandbox: Sandbox) -> None:
    sandbox.write(ONE_STEP).replies(GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.rest()
        await person.begin("continue")
        await person.type("and then")
        await person.until(lambda: not person.is_waiting)
        assert person.prompt.text == "and then"


# 5. The words for help and for leaving


@pytest.mark.parametrize("line", ["exit", ":q", *long_rows("quit", "/exit")])
@pytest.mark.parametrize("first", ["", f"/exec {SLUG}", f"/plan {SLUG}"])
async def test_one_line_leaves_the_shell_wherever_the_user_is(
    sandbox: Sandbox, first: str, line: str
) -> None:
    sandbox.write(ONE_STEP)
    async with person_at(sandbox, first) as person:
        await person.rest()
        await person.begin(line)
        await person.pilot.pause()
        await person.until(lambda: not person.app.is_running)
    assert person.app.return_code == 0


@pytest.mark.parametrize("first", ["", f"/exec {SLUG}", f"/plan {SLUG}"])
async def test_help_is_a_word_everywhere(sandbox: Sandbox, first: str) -> None:
    sandbox.write(ONE_STEP)
    async with person_at(sandbox, first) as person:
        await person.rest()
        await person.begin("help")
        await person.until(
            lambda: re.search("Esc: close|return to chat", person.screen)
        )
        assert not sandbox.model.requests


@pytest.mark.parametrize("columns", [40, *long_rows(60, 80)])
@pytest.mark.parametrize("first", ["", f"/exec {SLUG}", f"/plan {SLUG}"])
async def test_hints_fit_the_window(sandbox: Sandbox, first: str, columns: int) -> None:
    sandbox.write(ONE_STEP)
    async with person_at(sandbox, first, size=(columns, 20)) as person:
        *_, hint, _ = person.screen.splitlines()
        assert hint.strip()
        assert "…" not in hint, hint


# 6. The welcome


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_screen_names_the_program_and_what_enter_starts(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    sandbox.write(ONE_STEP)
    async with person_at(sandbox, size=size, helps_to_begin=True) as person:
        await read_welcome(person)
        rows = person.screen.splitlines()
        assert not rows[0].strip(), "nothing touches the edge"
        assert any(re.match(r" +cdd +\d", row) for row in rows)
        assert f"Continue {SLUG}" in person.screen
        for words in ("Set up a model", "New ticket", "Open a ticket"):
            assert words in person.screen
        # the line below the prompt names the highlighted row
        assert "Enter: set up a model" in person.activity


async def test_enter_on_the_first_screen_continues_the_last_ticket(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"model": "script:none.yaml"}
    sandbox.write(ONE_STEP, Step("b.txt", "none")).replies(GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.rest()
        await person.say("continue")
    async with person_at(sandbox, helps_to_begin=True) as person:
        await read_welcome(person)
        assert f"continue {SLUG}" in person.activity
        await person.say("")
        assert f"executor · {SLUG}" in status_line(person)
        assert sandbox.statuses() == ["completed", "pending"]


async def test_what_is_typed_on_the_first_screen_goes_to_the_prompt(
    sandbox: Sandbox,
) -> None:
    sandbox.write(ONE_STEP).replies("It is a project of one file.")
    async with person_at(sandbox, helps_to_begin=True) as person:
        await read_welcome(person)
        await person.type("what is this")
        await person.say("")
        assert "It is a project of one file." in person.told
        assert "❯ what is this" in person.screen
        assert "New ticket" not in person.screen


async def read_welcome(person: Person) -> None:
    await person.until(lambda: "Enter: " in person.activity)
    await person.until(lambda: not list(person.app.workers))
    await person.rest()


# 7. Setting up a model


async def test_the_address_of_a_server_is_enough_to_set_up_its_model(
    sandbox: Sandbox,
) -> None:
    async def until_shown(text: str) -> None:
        await person.until(lambda: text in person.screen)
        await person.until(lambda: not list(person.app.screen.workers))
        await person.rest()

    with server({"/v1/models": (200, LIST)}) as (host, _):
        async with person_at(sandbox, helps_to_begin=True) as person:
            await read_welcome(person)
            assert "specs, plans and steps need one" in person.screen
            await person.press("enter")
            await until_shown("Another server")
            await person.type("another server")
            await person.press("enter")
            await until_shown("ddress")
            await person.type(host)
            await person.press("enter")
            await until_shown("two")
            await person.press("down", "enter")
            # the next thing to do
            await until_shown("New ticket: what do you want?")
            await person.press("escape")
            await person.until(lambda: person.app.screen is person.app.home)
            assert "openai/two" in status_line(person)
            assert "specs, plans and steps need one" not in person.screen
    config = load_config(sandbox.root, {})
    assert (config.model, config.api_base) == ("openai/two", f"http://{host}/v1")


# 8. The approval mode


async def test_the_prompts_frame_says_whether_files_are_written_without_asking(
    sandbox: Sandbox,
) -> None:
    sandbox.write(ONE_STEP, Step("b.txt", "none"))
    sandbox.replies(GOOD, says("b.txt", "good"))
    (sandbox.root / ".cdd/config.yaml").write_text("approval: ask\n")
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 30)) as person:
        asking = frame_title(person)
        assert "ask" in asking
        await person.press("shift+tab")
        without_asking = frame_title(person)
        assert "edits" in without_asking != asking

        await person.rest()
        await person.say("continue")
        assert sandbox.text("a.txt") == "good\n"

        await person.press("shift+tab")
        assert frame_title(person) == asking
        await person.rest()
        await person.begin("continue")
        await person.until_asked()
        assert not (sandbox.root / "b.txt").exists()
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
    assert (sandbox.root / ".cdd/config.yaml").read_text() == "approval: ask\n"


async def test_only_the_command_turns_all_questions_off(sandbox: Sandbox) -> None:
    sandbox.write(ONE_STEP)
    async with person_at(sandbox, size=(100, 30)) as person:
        for _ in range(3):
            await person.press("shift+tab")
            assert "auto" not in frame_title(person)
        await person.say("/approval auto")
        assert "auto" in frame_title(person)
        await person.press("shift+tab")
        assert "ask" in frame_title(person)


def frame_title(person: Person) -> str:
    """The upper edge of the prompt's frame."""
    (edge,) = [row for row in person.screen.splitlines() if row.strip()[:1] == "╭"]
    return edge.strip("╭╮─ ")


# 9. The status line


@pytest.mark.parametrize("size", SIZES)
async def test_the_status_line_stays_put_while_a_step_runs(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    sandbox.write(ONE_STEP, Step("b.txt", "none")).replies(GOOD)
    async with person_at(sandbox, f"/exec {SLUG}", size=size) as person:
        before = status_line(person)
        assert "executor" in before
        await person.rest()
        await person.say("continue")
        after = status_line(person)
        assert len(after) <= size[0]
        assert after.index("executor") == before.index("executor")
        assert not re.search(
            r"(?<![\w$.,/-])\d[\d.,]*(?![\w%.,/-])(?! (tokens|tok))", after
        )


# 10. A second Enter does not start a paid step


async def test_a_second_enter_after_exec_runs_nothing(sandbox: Sandbox) -> None:
    sandbox.write(ONE_STEP).replies(GOOD)
    async with person_at(sandbox) as person:
        await person.say(f"/exec {SLUG}")
        await person.press("enter")
        assert not sandbox.model.requests

        await person.rest()
        await person.say("")
        assert sandbox.statuses() == ["completed"]


# 11. Words


async def test_a_refused_reply_says_what_was_wrong_and_what_happens_next(
    sandbox: Sandbox,
) -> None:
    sandbox.write(ONE_STEP).replies("No file comes with this.")
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.rest()
        await person.say("continue")
        assert sandbox.statuses() == ["failed"]
        assert "does not change the files" in person.told
        assert re.search(r"Type .*retry", person.told), person.told
        # in the shell, commands are those of the shell
        assert not re.search(r"\bcdd [a-z]+ ", person.told)


# 12. Commands


async def test_a_part_of_a_tickets_name_is_enough(sandbox: Sandbox) -> None:
    sandbox.write(ONE_STEP)
    async with person_at(sandbox) as person:
        await person.type("/exec words")
        assert SLUG in person.screen
        await person.press("escape")
        await person.say("")
        assert f"executor · {SLUG}" in status_line(person)


async def test_a_slip_in_a_commands_name_offers_the_command(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.type("/stauts")
        assert "/status" in person.screen
