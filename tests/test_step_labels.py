"""The labels of a plan's steps, wherever a user sees or types a step.

The labels of the plan here are never numbers of its steps, so a number that is shown
in place of a label is found in any text.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath

import pytest
from msgspec import convert

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.run_lines import read_run_line
from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.changes.review import Review
from cdd_agent.commands.code_context import describe_last_prompt
from cdd_agent.commands.registry import handle
from cdd_agent.engine.load_state import drift, renumbered
from cdd_agent.engine.side_events import SideSteps
from cdd_agent.engine.step_commit import step_message
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.run_events import BaselineTaken, RunFinished
from cdd_agent.events.shell_events import ScreenAsked
from cdd_agent.events.step_events import GuidanceTaken, StepStarted, StepsUndone
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.stream import Event, to_json
from cdd_agent.session.session import Session
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import Verification
from cdd_agent.wording.describe import describe
from cdd_agent.wording.question_words import question
from tests.support.commandline import cdd, events, script
from tests.support.listening import told_to
from tests.support.projects import (
    SLUG,
    Sandbox,
    Step,
    check,
    notice,
    noticed,
    run_all,
    says,
)

STEPS = (
    Step("a.txt", check("a.txt"), label="7"),
    Step("b.txt", check("b.txt"), "Step 7", label="7b", also=("c.txt",)),
    Step("c.txt", check("c.txt"), "Step 7b", "Say it.\n\n**Serves:** 1", label="9"),
)
GOOD = tuple(says(f"{name}.txt", "good") for name in "abc")
NOON = datetime(2026, 11, 21, 12, 0)
NUMBER_SHOWN = re.compile(
    rf"(?i)\b(?:steps?|undo|diff|retry|skip|--step|/undo {SLUG}) [123]\b"
    r"|\b[123]\. Make"
)


async def listen(session: Session, line: str) -> list[Event]:
    """Return the events of a line, with an error as a notice."""
    told: list[Event] = []
    try:
        with told_to(told.append):
            await handle(session, line)
    except CddError as error:
        told.append(Notice(f"{error.message}\n{error.hint or ''}"))
    return told


async def words_of(session: Session, line: str) -> str:
    told = await listen(session, line)
    lines = [text for event in told for text, _ in describe(event)]
    lines += [event.instead for event in told if isinstance(event, ScreenAsked)]
    return "\n".join(lines)


def executor(session: Session) -> ExecutorAgent:
    assert isinstance(session.agent, ExecutorAgent)
    return session.agent


async def failed_run(sandbox: Sandbox) -> tuple[Session, str]:
    """Return a session in which the last step has failed, and all its words."""
    bad = says("c.txt", "bad")
    session = sandbox.write(*STEPS).replies(*GOOD[:2], bad, "Because.").session()
    said = [await words_of(session, line) for line in (f"/exec {SLUG}", *"ccc")]
    return session, "\n".join(said)


async def test_no_text_shows_a_number_in_place_of_a_label(sandbox: Sandbox) -> None:
    session, told = await failed_run(sandbox)
    texts = {"the run": told}
    for line in ("/status", "/criteria", "/board", "retry 7", "/context"):
        texts[line] = await words_of(session, line)
    await listen(session, "why?")  # its request is looked at below
    agent = executor(session)
    for line in (*MEANINGS, "all", "status", "make it good, please"):
        texts[f"the hint for {line}"] = agent.meaning(line).hint
    for place in range(len(sandbox.model.requests)):
        texts[f"request {place}"] = sandbox.prompt(place)
    texts["the last prompt"] = describe_last_prompt(session)
    with pytest.raises(BadInput) as caught:
        session.edit_step(2, SLUG).begin()
    texts["editing a step that is done"] = f"{caught.value} {caught.value.hint}"
    for line in ("skip", "undo 7b", "redo", "diff 7b", "diff", f"/undo {SLUG} 7"):
        texts[line] = await words_of(session, line)
    session.leave()
    report = sandbox.root / ".cdd/runs" / SLUG / "report.md"
    texts["the report"] = report.read_text()
    plan = read_plan((sandbox.ticket / "plan.md").read_text())
    texts["a cycle"] = str(
        ImplementationPlan(
            steps=tuple(
                PlanStep(step.number, dependencies=(5 - step.number,), label=step.label)
                for step in plan.steps[1:]
            )
        ).errors
    )

    shown = {
        name: found[0]
        for name, text in texts.items()
        if (found := NUMBER_SHOWN.search(text))
    }
    assert shown == {}
    assert [name for name, text in texts.items() if not text] == []


MEANINGS: Mapping[str, tuple[str, str]] = {
    "retry": ("retry", "Enter: run step 9 again"),
    "retry 9": ("retry", "Enter: run step 9 again"),
    "skip step 9 because slow": ("skip", "Enter: skip step 9, Make c.txt"),
    "undo 7b": ("undo", "Enter: undo step 7b and all later steps"),
    "undo step 7B": ("undo", "Enter: undo step 7b and all later steps"),
    "undo 07": ("undo", "Enter: undo step 7 and all later steps"),
    "diff 7": ("diff", "Enter: show the changes of step 7"),
    "diff": ("diff", "Enter: show the changes of the last step"),
    "> shorter": ("guidance", "Enter: add instructions to step 9, and run it"),
}
UNKNOWN = {
    "undo 0": "There is no step 0. The steps are 7, 7b, 9.",
    "undo 2": "There is no step 2. The steps are 7, 7b, 9.",
    "diff 7c": "There is no step 7c. The steps are 7, 7b, 9.",
    "retry 7b": "Step 7b is not the next one. The next step is 9.",
    "skip 1": "Step 1 is not the next one. The next step is 9.",
}


async def test_the_executor_takes_labels(sandbox: Sandbox) -> None:
    session, _ = await failed_run(sandbox)
    meanings = {line: executor(session).meaning(line) for line in (*MEANINGS, *UNKNOWN)}
    session.leave()
    for line, expected in MEANINGS.items():
        assert (meanings[line].name, meanings[line].hint) == expected, line
    for line, reason in UNKNOWN.items():
        assert meanings[line].name == "nothing", line
        assert meanings[line].hint == f"Enter does nothing. {reason}", line


async def test_a_label_that_is_another_steps_number_is_a_label(
    sandbox: Sandbox,
) -> None:
    labels = ("1", "1b", "2")
    steps = [
        Step(f"{name}.txt", "none", label=label)
        for name, label in zip("abc", labels, strict=True)
    ]
    await run_all(sandbox.write(*steps).replies(*GOOD))
    session = sandbox.session()

    assert "Step 2 undone" in await words_of(session, f"/undo {SLUG} 2")
    assert sandbox.statuses() == ["completed", "completed", "pending"]
    assert "Step 1b undone" in await words_of(session, f"/undo {SLUG} 1b")
    assert sandbox.statuses() == ["completed", "pending", "pending"]
    session.leave()


async def test_the_number_of_a_removed_step_is_taken(sandbox: Sandbox) -> None:
    steps = [Step(f"{name}.txt", "none") for name in "abc"]
    session = sandbox.write(*steps).replies(*GOOD).session()
    for line in (f"/exec {SLUG}", "c", "c"):
        await listen(session, line)
    session.leave()
    sandbox.write(steps[0], Step("c.txt", "none", label="3"))
    told = await listen(session, f"/exec {SLUG}")

    assert "unless you undo step 2" in notice(told, NoticeKind.STEP_CHANGED)
    assert executor(session).meaning("undo 9").name == "nothing"
    assert "Step 2 undone" in await words_of(session, "undo 2")
    assert not (sandbox.root / "b.txt").exists()
    session.leave()


def test_lines_for_a_closed_run_have_labels() -> None:
    for line, step in (("undo 7b", "7b"), ("diff step 1.5", "1.5"), ("undo", "")):
        said = read_run_line(line)
        assert said is not None, line
        assert said.step == step, line
    for line in ("undo 7bc", "undo b", "undo 1.", "diff 7 b"):
        assert read_run_line(line) is None, line


EVENTS: Mapping[str, Event] = {
    "Step 7b: T": StepStarted(2, "T", 1, label="7b"),
    "Step 7b starts in a separate tree: T": StepStarted(
        2, "T", 1, side_tree=True, label="7b"
    ),
    "sent to step 7b: Hm": GuidanceTaken(2, "Hm", label="7b"),
    "Steps 7b, 9 undone. Type `cdd redo` to restore them.": StepsUndone(
        (2, 3), (), (), labels=("7b", "9")
    ),
    "Before step 7b, `make`: passed (1.0 s)": BaselineTaken(
        2, "make", 0, None, None, None, 1.0, "", label="7b"
    ),
}


def test_events_are_told_with_their_labels_and_without_one_with_their_number() -> None:
    for words, event in EVENTS.items():
        assert describe(event)[0][0] == words
        data = to_json(event)
        del data["event"]
        data.pop("label", None)
        data.pop("labels", None)
        older = convert(data, type(event))
        plain = words.replace("7b", "2").replace("9", "3")
        assert describe(older)[0][0] == plain, "an event of an older log"


def test_steps_side_by_side_are_named_by_their_labels() -> None:
    side = SideSteps()
    for number, label in ((2, "7b"), (3, "9")):
        started = StepStarted(number, "T", 1, side_tree=True, label=label)
        assert not side.holds_back(started)
    assert side.in_words() == "Steps 7b and 9 run side by side"
    assert side.prefix(Notice("Hm", step=2)) == "Step 7b: "
    assert side.prefix(Notice("Hm", step=1)) == ""


def test_what_a_step_asks_and_commits_has_its_label() -> None:
    change = FileChange(PurePosixPath("b.txt"), None, b"good")
    asked = question(Review.from_changes("7b", ChangeSet((change,))))
    assert asked.startswith("Apply these changes of step 7b?")
    step = PlanStep(2, "Make b.txt", label="7b")
    message = step_message(SLUG, "T", step, 1, Verification.PASSED)
    assert f"Step 7b of {SLUG}" in message.body


def test_only_steps_that_users_call_otherwise_are_reported_as_renumbered() -> None:
    plan = ImplementationPlan(
        steps=tuple(
            PlanStep(number, f"Step {label}", label=label)
            for number, label in enumerate(("1", "1b", "2"), 1)
        )
    )
    state = ExecutionState(SLUG).with_steps((1, 2))
    for step in (PlanStep(1, "A"), PlanStep(2, "B")):
        state = state.skipped(step, NOON, "no")
    after = state.renumbered({1: 1, 2: 3})
    assert renumbered(state, after, plan) == ()

    moved = state.renumbered({1: 2, 2: 3})
    (told,) = renumbered(state, moved, plan)
    assert "1 is 1b now" in told.text
    assert "2 is" not in told.text


async def test_the_board_has_labels_for_scripts(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    session, _ = await failed_run(sandbox)
    assert cdd(sandbox, "board", "--json") == 0
    session.leave()
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["steps"], row["labels"]) == ([3], ["9"])


async def test_a_step_that_was_edited_or_interrupted_is_named_by_its_label(
    sandbox: Sandbox,
) -> None:
    await run_all(sandbox.write(*STEPS).replies(*GOOD))
    state = sandbox.state()
    state["step_executions"]["2"]["status"] = "in_progress"
    (sandbox.ticket / "execution-state.json").write_text(json.dumps(state))
    engine = sandbox.engine()
    told: list[Event] = []
    with told_to(told.append):
        await engine.recover()
    edited = read_plan((sandbox.ticket / "plan.md").read_text().replace("Say it", "Do"))
    changed = list(drift(edited, engine.run.state))
    engine.close()

    assert notice(told, NoticeKind.RESUMED).startswith("Step 7b was interrupted")
    assert noticed(changed) == [NoticeKind.STEP_CHANGED]
    assert changed[0].text.startswith("The plan's text of step 9")


def test_json_has_number_and_label() -> None:
    view = StepSummary(2, "T", label="7b")
    assert (view.number, view.label) == (2, "7b")
    assert StepSummary(2, "T").label == "2"
    assert to_json(StepStarted(2, "T", 1))["label"] == "2"
    finished = RunFinished(
        SLUG,
        "completed",
        1,
        0,
        0,
        1,
        None,
        (),
        to_commit=(2,),  # type: ignore[arg-type]
    )
    assert finished.labels_to_commit == ("2",)


@pytest.mark.story
def test_a_labelled_plan_from_the_first_step_to_an_undo_and_back(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(*STEPS)
    model = script(sandbox, *GOOD, *GOOD[1:])

    assert cdd(sandbox, "exec", SLUG, "--json", "--model", model) == 0
    told = events(capsys)
    finished = [event for event in told if event["event"] == "step_finished"]
    assert [(event["step"], event["label"]) for event in finished] == [
        (1, "7"),
        (2, "7b"),
        (3, "9"),
    ]

    assert cdd(sandbox, "diff", SLUG, "--step", "7b") == 0
    assert "b.txt" in capsys.readouterr().out
    for line in (("undo", "--step", "2"), ("diff", "--step", "x")):
        assert cdd(sandbox, line[0], SLUG, *line[1:]) == 2
        error = capsys.readouterr().err
        assert f"There is no step {line[2]}" in error
        assert "The steps are 7, 7b, 9." in error

    assert cdd(sandbox, "undo", SLUG, "--step", "7b") == 0
    assert "Steps 7b, 9 undone" in capsys.readouterr().out
    assert sandbox.statuses() == ["completed", "pending", "pending"]
    assert not (sandbox.root / "b.txt").exists()

    assert cdd(sandbox, "exec", SLUG, "--model", model) == 0
    printed = capsys.readouterr().out
    assert "Step 7b completed" in printed
    assert "Step 9 completed" in printed
    assert cdd(sandbox, "status", SLUG) == 0
    shown = capsys.readouterr().out
    for row in ("~ 7. Make a.txt", "~ 7b. Make b.txt", "~ 9. Make c.txt"):
        assert row in shown
    assert not NUMBER_SHOWN.search(printed + shown)
    assert all(Path(sandbox.root, f"{name}.txt").exists() for name in "abc")
