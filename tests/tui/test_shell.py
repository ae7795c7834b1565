"""The user carries out a plan in the shell: what each line does, and what is shown."""

from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.llm.port import AuthenticationFailed
from cdd_agent.tui.transcript.widget import Transcript
from tests.support.projects import (
    SLUG,
    SPEC,
    Sandbox,
    Step,
    notice,
    noticed,
    plan,
    says,
)
from tests.support.tables import each_row
from tests.tui.person import Person, person_at

WHY = "it can wait"
GUIDANCE = "Write it in lower case."
HINT = "Set OPENAI_API_KEY."
LOUD = "[bold]Loud[/bold] [/nope]"


def run_finished(person: Person) -> RunFinished:
    """The summary that was shown last."""
    return [event for event in person.shown if isinstance(event, RunFinished)][-1]


TWO_STEPS = (Step("a.txt", "none"), Step("b.txt", "none", "Step 1"))
GOOD = (says("a.txt", "good"), says("b.txt", "good"))
BAD = "No file comes with this."


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
        assert "Make a.txt" in notice(person.shown, NoticeKind.WHAT_NEXT)
        assert person.prompt.area.placeholder.startswith("status, skip")


async def test_a_word_or_enter_alone_runs_the_next_step(sandbox: Sandbox) -> None:
    words = ("continue", "N", "")
    paths = [f"{number}.txt" for number in range(len(words) + 1)]
    sandbox.write(*(Step(path, "none") for path in paths))
    sandbox.replies(*(says(path, "good") for path in paths))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for number, word in enumerate(words, 1):
            await person.say(word)
            assert sandbox.statuses().count("completed") == number, word
            assert person.steps[0].startswith(f"Plan {number}/4 ")
            assert person.activity.startswith(f"Enter: run step {number + 1}")
        assert "Here it is." in person.told
        assert sandbox.text("2.txt") == "good\n"


async def test_the_end_of_the_run_returns_to_chat_and_names_what_can_be_undone(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")

        finished = run_finished(person)
        assert (finished.completed, finished.total) == (2, 2)
        assert "chat" in person.title
        assert person.steps[0] == "Plan 2/2 ╍╍╍╍╍╍╍╍╍╍ 2?"
        assert person.app.session is not None
        assert person.app.session.agent is None
        closed = notice(person.shown, NoticeKind.AGENT_LEFT)
        assert f"`/diff {SLUG}`" in closed
        assert f"`/undo {SLUG}`" in closed

        await person.say(f"/exec {SLUG}")
        assert notice(person.shown, NoticeKind.ALL_DONE)
        assert len(sandbox.model.requests) == 2

        await person.say(f"/undo {SLUG} --yes")
        assert sandbox.statuses() == ["completed", "pending"]


async def test_after_the_end_of_the_run_its_words_do_what_the_line_below_says(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS).replies(*GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("all")
        for count, word in enumerate(("continue", "n", "skip"), 1):
            person.write(word)
            await person.until(lambda: "Enter does nothing" in person.activity)
            await person.say("")
            assert noticed(person.shown).count(NoticeKind.ALL_DONE) == count
        person.write("undo")
        await person.until(lambda: "before undoing it" in person.activity)
        await person.begin("")
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["completed", "pending"]
        assert len(sandbox.model.requests) == len(GOOD)


async def test_a_failed_step_is_shown_and_retried(sandbox: Sandbox) -> None:
    error = AuthenticationFailed(GUIDANCE, hint=HINT)
    sandbox.write(*TWO_STEPS).replies(error, BAD, *GOOD)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        # an error of the model is shown with its hint, and stops the run
        await person.say("all")
        assert len(sandbox.model.requests) == 1
        assert GUIDANCE.rstrip(".") in person.told
        assert HINT in person.told

        await person.say("retry")
        assert person.steps[1] == "✗ 1. Make a.txt"
        assert [
            event.status for event in person.shown if isinstance(event, StepFinished)
        ][-1] == "failed"

        await person.say("")  # Enter does not repeat what failed
        assert len(sandbox.model.requests) == 2

        await person.say("retry")
        assert person.steps[1].startswith("? 1. Make a.txt")
        assert person.prompt.area.placeholder.startswith("status, skip")


async def test_a_skipped_step_frees_the_step_that_depends_on_it(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS).replies(BAD, says("b.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("")
        await person.say(f"skip because {WHY}")

        assert not (sandbox.root / "a.txt").exists()
        assert person.steps[:2] == ["Plan 1/2 ╍╍╍╍╍╌╌╌╌╌ 1–", "– 1. Make a.txt"]
        assert WHY in person.told
        assert "Step 2" in notice(person.shown, NoticeKind.DEPENDENTS)

        for words in ("status", "/status"):
            await person.say("/clear")
            await person.say(words)
            assert "– 1. Make" in person.told
            assert "○ 2. Make" in person.told

        # a sentence guides the step
        await person.say(GUIDANCE)
        assert GUIDANCE in sandbox.prompt()
        assert run_finished(person).skipped == 1


async def test_exit_returns_to_chat_and_keeps_the_state(sandbox: Sandbox) -> None:
    sandbox.write(*TWO_STEPS).replies(GOOD[0], "Here I am.")
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("")
        await person.say("close")

        assert "chat" in person.title
        assert person.steps == []
        assert sandbox.statuses() == ["completed", "pending"]
        sandbox.engine().close()  # the lock is free

        await person.say("anyone there?")
        assert "Here I am." in person.told

        await person.say(f"/exec {SLUG}")
        assert [row[:4] for row in person.steps[1:]] == ["? 1.", "○ 2."]


async def test_a_line_that_leads_nowhere_is_answered(sandbox: Sandbox) -> None:
    answers = {
        "/exce x": "/exec?",
        "/exec ": "/exec SLUG",
        "/exec nothing-like-it": "nothing-like-it",
        '/exec "half': "quotation mark",
        "/": "command /",
        "hello": "has no reply for request",
        "bye": "`/exit`",
        "!": "shell command after",
    }
    async with person_at(sandbox) as person:
        for line, answer in answers.items():
            await person.say("/clear")
            await person.say(line)
            assert answer in person.told, line
            assert person.prompt.text == "", line


async def test_a_plan_with_a_cycle_is_refused_and_chat_continues(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", depends="Step 2"), Step("b.txt", depends="Step 1"))
    async with person_at(sandbox) as person:
        await person.say(f"/exec {SLUG}")
        assert "plan.md:7:" in person.told
        assert "1 → 2 → 1" in person.told
        assert person.steps == []
        assert "chat" in person.title


async def test_opening_another_plan_closes_the_first(sandbox: Sandbox) -> None:
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

        await person.say("close")
        await person.say("/clear")
        assert person.steps == []


LONG = Answer("\n\n".join("paragraph" for _ in range(60)))


async def test_page_keys_scroll_the_transcript_and_a_sent_line_returns_to_its_end(
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

        await person.press("pageup")
        await person.say("/list")
        assert transcript.scroll_y == transcript.max_scroll_y


@each_row("line", ["/exit", "exit", "quit", ":q"])
async def test_one_exit_leaves_the_shell_also_from_an_agent(
    sandbox: Sandbox, line: str
) -> None:
    sandbox.write(*TWO_STEPS)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin(line)
        await person.until(lambda: not person.app.is_running)
        assert person.app.return_code == 0
    sandbox.engine().close()  # the ticket is free


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
        assert "[bold]Loud[/bold]" in person.screen.splitlines()[-1]
        assert "\x1b" not in person.screen
        assert "\x07" not in person.screen


async def test_titles_with_wide_characters_keep_the_columns(sandbox: Sandbox) -> None:
    title = "支払いの画面を作る👩‍🚀 " * 4
    many = [Step(f"{number}.txt") for number in range(60)]
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
        assert [row[-1] for row in titled] == ["…"]
        assert "支払いの画面を作る" in person.screen
        assert {
            strip.cell_length for strip in person.app.screen._compositor.render_strips()
        } == {120}


async def test_events_of_another_plan_do_not_change_the_list_of_steps(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        person.app.show(
            PlanOpened("other", "Other", (StepSummary(1, "Elsewhere"),), resumed=False)
        )
        await person.pilot.pause()
        assert "○ 1. Make a.txt" in person.steps
        assert "○ 1. Elsewhere" in person.told
