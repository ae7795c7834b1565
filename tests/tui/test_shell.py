"""A plan is carried out by typing: what the person says, and what the screen then
shows.
"""

import pytest

from cdd_agent.events import (
    About,
    Answer,
    BaselineTaken,
    ChangesApplied,
    Notice,
    PlanOpened,
    RunFinished,
    StepFinished,
    StepView,
    Tone,
)
from cdd_agent.llm.port import AuthenticationFailed
from cdd_agent.tickets.status import Verification
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.wording import REMARKS
from tests.support.projects import (
    SLUG,
    SPEC,
    Sandbox,
    Step,
    check,
    notice,
    noticed,
    plan,
    says,
)
from tests.tui.person import Person, person_at

WHY = "it can wait"
GUIDANCE = "Write it in lower case."
HINT = "Set OPENAI_API_KEY."
LOUD = "[bold]Loud[/bold] [/nope]"


def run_finished(person: Person) -> RunFinished:
    """The summary that was shown last."""
    return [event for event in person.shown if isinstance(event, RunFinished)][-1]


TWO_STEPS = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))
GOOD = (says("a.txt", "good"), says("b.txt", "good"))


async def test_exec_opens_the_plan_and_its_agent(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS)
    async with person_at(sandbox) as person:
        assert "chat" in person.title
        assert person.steps == []

        await person.say(f"/exec {SLUG}")

        assert f"executor · {SLUG}" in person.title
        assert person.steps == [
            "Plan 0/2 ╌╌╌╌╌╌╌╌╌╌",
            "○ 1. Make a.txt",
            "○ 2. Make b.txt",
        ]
        assert f"{SLUG}: Say words" in person.told
        assert "Make a.txt" in notice(person.shown, About.NEXT_STEP)
        assert person.prompt.area.placeholder.startswith("Enter runs")


@pytest.mark.parametrize("word", ["continue", "c", "next", "N", ""])
async def test_a_word_or_enter_alone_runs_the_next_step(
    sandbox: Sandbox, word: str
) -> None:
    sandbox.write(*TWO_STEPS).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say(word)

        assert sandbox.text("a.txt") == "good\n"
        assert sandbox.statuses() == ["completed", "pending"]
        assert person.steps == [
            "Plan 1/2 ━━━━━╌╌╌╌╌",
            "✓ 1. Make a.txt",
            "○ 2. Make b.txt",
        ]
        assert says("a.txt", "").partition("\n")[0] in person.told
        assert "says good" in person.told
        assert "Step 1 completed (1/2)" in person.told
        assert person.activity.startswith("Enter runs step 2: Make b.txt")


async def test_before_the_first_change_the_tests_are_run_once_and_that_is_shown(
    sandbox: Sandbox,
) -> None:
    waits = "while not Path('.cdd/go').exists():\n        time.sleep(0.01)"
    slow = (
        "import time\n"
        "from pathlib import Path\n\n\n"
        "def test_slow():\n"
        f"    {waits}\n"
        "    assert 0\n"
    )
    (sandbox.root / "test_a.py").write_text(slow)
    sandbox.write(Step("a.txt"), Step("b.txt")).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("all")
        await person.until(
            lambda: (
                len(sandbox.model.requests) == 1 and "Running pytest" in person.activity
            )
        )
        assert not (sandbox.root / "a.txt").exists()
        (sandbox.root / ".cdd/go").touch()
        await person.until(lambda: not person.is_waiting)

        (taken,) = [event for event in person.shown if isinstance(event, BaselineTaken)]
        assert (taken.step, taken.failed) == (1, 1)
        first, *_ = [
            event
            for event in person.shown
            if isinstance(event, BaselineTaken | ChangesApplied)
        ]
        assert first is taken
        assert "test_a.py::test_slow" in person.told
        assert run_finished(person).with_old_failures == 2
        assert person.steps[1] == f"~ 1. Make a.txt ({REMARKS[Verification.BASELINE]})"


async def test_the_end_of_the_run_returns_to_chat(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")

        assert (run_finished(person).completed, run_finished(person).total) == (2, 2)
        assert "2/2" in person.told
        assert "chat" in person.title
        assert person.steps[0] == "Plan 2/2 ━━━━━━━━━━"
        assert person.app.session.agent is None

        await person.say(f"/exec {SLUG}")

        assert About.ALL_DONE in noticed(person.shown)
        assert len(sandbox.model.requests) == 2


async def test_a_failed_step_is_shown_and_retried(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS).replies(says("a.txt", "bad"), *GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("")

        assert person.steps[1] == "✗ 1. Make a.txt"
        assert person.prompt.area.placeholder.startswith("retry, skip")
        assert [
            event.status for event in person.shown if isinstance(event, StepFinished)
        ] == ["failed"]
        assert "`retry`, `skip`" in person.told

        await person.say("")  # Enter does not repeat what failed
        assert len(sandbox.model.requests) == 1

        await person.say("retry")

        assert person.steps[1] == "✓ 1. Make a.txt"
        assert person.prompt.area.placeholder.startswith("Enter runs")
        assert "(attempt 2)" in person.told
        assert "says bad" in sandbox.prompt()


async def test_all_stops_at_the_first_failure(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS).replies(says("a.txt", "good"), says("b.txt", "bad"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        assert person.steps[1:] == ["✓ 1. Make a.txt", "✗ 2. Make b.txt"]
        assert f"executor · {SLUG}" in person.title


async def test_a_skipped_step_leaves_nothing_behind_and_frees_the_next(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS).replies(says("a.txt", "bad"), says("b.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("")
        await person.say(f"skip because {WHY}")

        assert not (sandbox.root / "a.txt").exists()
        assert person.steps[:2] == ["Plan 1/2 ━━━━━╌╌╌╌╌", "– 1. Make a.txt"]
        assert WHY in person.told
        assert "Step 2" in notice(person.shown, About.DEPENDENTS)

        await person.say("")
        assert "1 skipped" in person.told


async def test_status_shows_the_whole_plan_in_the_transcript(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("")
        for words in ("status", "/status"):
            await person.say("/clear")
            await person.say(words)
            assert "✓ 1. Make" in person.told
            assert "○ 2. Make" in person.told


async def test_a_sentence_guides_the_step(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say(GUIDANCE)
        assert GUIDANCE in sandbox.prompt()
        assert sandbox.statuses() == ["completed", "pending"]


async def test_exit_goes_back_to_chat_and_the_state_stays(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS).replies(GOOD[0], "Here I am.")
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("")
        await person.say("exit")

        assert "chat" in person.title
        assert person.steps == []
        assert sandbox.statuses() == ["completed", "pending"]
        sandbox.engine().close()  # the lock is free

        await person.say("anyone there?")
        assert "Here I am." in person.told

        await person.say(f"/exec {SLUG}")
        assert person.steps[1:] == ["✓ 1. Make a.txt", "○ 2. Make b.txt"]


async def test_an_error_of_the_model_is_words_with_a_hint(sandbox: Sandbox) -> None:
    error = AuthenticationFailed(GUIDANCE, hint=HINT)
    sandbox.write(*TWO_STEPS).replies(error, *GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("")
        assert GUIDANCE.rstrip(".") in person.told
        assert HINT in person.told

        await person.say("retry")
        assert person.steps[1] == "✓ 1. Make a.txt"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/exce x", "Did you mean /exec?"),
        ("/exec", "Usage: /exec SLUG"),
        ("/exec nothing-like-it", "nothing-like-it"),
        ('/exec "half', "Close the quotation mark."),
        ("/", "There is no command /"),
        ("hello", "The script has no reply left"),
        ("exit", "`/exit` leaves the shell"),
        ("!", "runs a command of your own"),
        ("/list", "There are no tickets yet."),
    ],
)
async def test_a_line_that_leads_nowhere_is_answered(
    sandbox: Sandbox, line: str, told: str
) -> None:
    async with person_at(sandbox) as person:
        await person.say(line)
        assert told in person.told
        assert person.prompt.text == ""


async def test_a_plan_with_a_cycle_is_refused_and_chat_goes_on(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", depends="Step 2"), Step("b.txt", depends="Step 1"))
    async with person_at(sandbox) as person:
        await person.say(f"/exec {SLUG}")
        assert "plan.md:7:" in person.told
        assert "1 → 2 → 1" in person.told
        assert person.steps == []
        assert "chat" in person.title


async def test_another_plan_takes_the_place_of_the_first(sandbox: Sandbox) -> None:
    other = sandbox.root / "tickets" / "bug-other"
    sandbox.write(*TWO_STEPS)
    other.mkdir()
    (other / "spec.yaml").write_text(SPEC)
    (other / "plan.md").write_text(plan([Step("z.txt")]))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("/exec bug-other")
        assert person.steps[1:] == ["○ 1. Make z.txt"]
        assert person.title.count("bug-other") == 1
        sandbox.engine().close()  # the first one's lock is free


async def test_clear_empties_the_transcript_and_keeps_the_active_plan(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("/clear")
        assert person.told == ""
        assert len(person.steps) == 3

        await person.say("exit")
        await person.say("/clear")
        assert person.steps == []


async def test_after_the_last_step_it_says_that_the_executor_closed_and_what_is_left(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("continue")
        closed = notice(person.shown, About.AGENT_CLOSED)
        assert f"`/diff {SLUG}`" in closed
        assert f"`/undo {SLUG}`" in closed
        await person.say(f"/undo {SLUG}")
        assert sandbox.statuses() == ["pending"]


LONG = Answer("\n\n".join("paragraph" for _ in range(60)))


async def test_who_sends_a_line_from_further_up_sees_what_comes_of_it(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.app.show(LONG)
        await person.pilot.pause()
        await person.press("pageup")
        transcript = person.app.query_one(Transcript)
        assert transcript.scroll_y < transcript.max_scroll_y
        await person.say("/list")
        assert transcript.scroll_y == transcript.max_scroll_y


async def test_slash_exit_leaves_the_agent_then_the_shell(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("/exit")
        assert "chat" in person.title
        assert person.app.is_running

        await person.begin("/exit")
        await person.until(lambda: not person.app.is_running)
        assert person.app.return_code == 0


async def test_page_keys_scroll_the_transcript_while_the_prompt_has_the_focus(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.app.show(LONG)
        await person.pilot.pause()
        transcript = person.app.query_one(Transcript)
        end = transcript.scroll_y
        assert end == transcript.max_scroll_y > 0

        await person.press("pageup")
        assert transcript.scroll_y < end

        await person.press("pagedown", "pagedown")
        assert transcript.scroll_y == end


NASTY = "[bold]Loud[/bold] [/nope] \x1b[31mred\x07 $(x)"


async def test_markup_and_escapes_from_files_and_models_stay_inert(
    sandbox: Sandbox,
) -> None:
    sandbox.write(
        *TWO_STEPS, spec=SPEC.replace("Say words", '"[bold]Loud[/bold] [/nope]"')
    )
    plan_file = sandbox.ticket / "plan.md"
    plan_file.write_text(plan_file.read_text().replace("Make a.txt", NASTY))
    sandbox.replies(says("a.txt", NASTY, words=NASTY))
    async with person_at(sandbox, size=(120, 40)) as person:
        await person.say(f"/exec {SLUG}")
        assert LOUD.split()[0] in person.steps[1]
        assert "── " in person.screen
        assert LOUD in person.screen

        await person.say("")
        person.app.show(Notice(NASTY, Tone.WARNING))
        person.app.home.bar.agent = person.app.home.bar.branch = NASTY
        await person.pilot.pause()

        assert f"! {LOUD}" in person.screen
        assert "[bold]Loud[/bold]" in person.screen.splitlines()[0]
        assert "\x1b" not in person.screen
        assert "\x07" not in person.screen


@pytest.mark.parametrize("steps", [2, 60])
async def test_titles_with_wide_characters_keep_the_columns(
    sandbox: Sandbox, steps: int
) -> None:
    title = "支払いの画面を作る👩‍🚀 " * 4
    many = [Step(f"{number}.txt") for number in range(steps)]
    sandbox.write(*many, spec=SPEC.replace("Say words", f'"{title}"'))
    plan_file = sandbox.ticket / "plan.md"
    plan_file.write_text(plan_file.read_text().replace("Make 0.txt", title))
    async with person_at(sandbox, f"/exec {SLUG}", size=(120, 40)) as person:
        rows = [
            person.step_list.render_line(y) for y in range(person.step_list.size.height)
        ]
        assert {row.cell_length for row in rows} == {
            person.step_list.scrollable_content_region.width
        }
        titled = [row.text.rstrip() for row in rows if "支払い" in row.text]
        assert len(titled) > 1 if steps == 2 else [row[-1] for row in titled] == ["…"]
        assert "支払いの画面を作る" in person.screen
        assert {
            strip.cell_length for strip in person.app.screen._compositor.render_strips()
        } == {120}


async def test_a_plan_of_a_thousand_steps_shows_where_the_run_is(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*(Step(f"{number}.txt") for number in range(1000)))
    sandbox.replies(says("0.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}", size=(120, 40)) as person:
        await person.say("")
        assert person.steps[0].startswith("Plan 1/1000 ")
        assert [step.split(" (")[0] for step in person.steps[1:3]] == [
            "~ 1. Make 0.txt",
            "○ 2. Make 1.txt",
        ]
        assert len(person.steps) == person.step_list.size.height < 40


async def test_events_of_a_plan_that_is_not_the_active_one_leave_the_list_alone(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        person.app.show(
            PlanOpened("other", "Other", (StepView(1, "Elsewhere"),), resumed=False)
        )
        await person.pilot.pause()
        assert "○ 1. Make a.txt" in person.steps
        assert "○ 1. Elsewhere" in person.told
