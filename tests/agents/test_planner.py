"""The Planner: from a complete spec to a plan.md that a person approved."""

import json
import os
import re
import shutil

import pytest

from cdd_agent.agents.planning import Planning
from cdd_agent.commands.registry import handle
from cdd_agent.dialogue.structured import NoUsableAnswer
from cdd_agent.engine.lock import LockGone, TicketTaken
from cdd_agent.errors import BadInput
from cdd_agent.events.dialogue_events import PromptMade, ReplyDelta, ToolFinished
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.shell_events import AgentChanged
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanChecked, PlanOpened, PlanProposed
from cdd_agent.frontend import Nobody
from cdd_agent.llm.port import (
    AuthenticationFailed,
    ConnectionFailed,
    ProviderData,
    ToolCall,
)
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from cdd_agent.tickets.plan import AffectedFile, ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_draft import add_ids
from cdd_agent.tickets.plan_editor import PlanTextLost
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_file import SpecTooLarge
from cdd_agent.wiring.models import NoModel
from cdd_agent.wiring.projects import open_commands
from cdd_agent.wiring.root import Wiring
from cdd_agent.wording.describe import describe
from tests.support.listening import collect, stop_at, tell
from tests.support.projects import SLUG, Sandbox, Step, check, notice, noticed, says
from tests.support.tables import each_row

OWN_TITLE = "My own words"
BETTER = "Write b.txt well"
SUMMARY = "Changed as asked."
WISH = "step 2 has to be better"
GUIDANCE = "Keep it small."
ANSWER = "The first, and good."
FINE = "b.txt says fine"
OWN_PROMPT = "Plan like a pirate."
RULE = "Use tabs."


def heading(number: int, title: str = "Write b.txt") -> str:
    return f"### Step {number}: {title}"


SPEC = """\
title: Say words
description: The files say the right words.
acceptance_criteria:
  - a.txt says good
  - b.txt says good
"""
IN_WORDS = [("a.txt says good",), ("b.txt says good",)]
"""The criteria that the steps of `plan()` serve."""


def step(
    number: int, path: str, change: str = "create", **values: object
) -> dict[str, object]:
    plain: dict[str, object] = {
        "number": number,
        "title": f"Write {path}",
        "description": f"Make {path} say good.",
        "complexity": "simple",
        "estimated_time": "10 min",
        "dependencies": [],
        "files": [{"path": path, "change": change}],
        "checks": [check(path)],
        "serves": [number],
    }
    return plain | values


GOOD_STEPS = (step(1, "a.txt"), step(2, "b.txt", dependencies=[1]))


def answer(words: str = "Here is the plan.", **value: object) -> str:
    return f"{words}\n\n```json\n{json.dumps(value)}\n```\n"


def plan(*steps: dict[str, object], **values: object) -> str:
    draft = {
        "overview": "One file a step.",
        "complexity": "simple",
        "estimated_time": "20 min",
        "risks": [],
    }
    return answer(plan=draft | {"steps": list(steps or GOOD_STEPS)} | values)


def changes(**values: object) -> str:
    return answer("As you say.", changes={"summary": SUMMARY, **values})


def asking(*questions: str) -> str:
    return answer(
        "I looked.",
        questions=[
            {"question": question, "why": "another file"} for question in questions
        ],
    )


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("1", name, json.dumps(arguments))


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


def told(events: list[Event]) -> str:
    lines = []
    for event in events:
        if isinstance(event, Notice | Answer):
            lines.append(event.text)
        elif isinstance(event, PlanProposed):
            lines += [text for text, _ in describe(event)]
    return "\n".join(lines)


def kinds(events: list[Event]) -> list[str]:
    (checked,) = [event for event in events if isinstance(event, PlanChecked)]
    return [problem.kind for problem in checked.problems]


@pytest.fixture
def ticket(sandbox: Sandbox) -> Sandbox:
    """A ticket with a complete spec and no plan."""
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    return sandbox


def written(sandbox: Sandbox) -> ImplementationPlan:
    return read_plan((sandbox.ticket / "plan.md").read_text())


async def test_a_plan_is_proposed_shown_and_written_only_when_approved(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(plan()).session()
    events = await say(session, f"/plan {SLUG}")
    assert events[0] == AgentChanged("planner", SLUG)
    assert heading(2) in told(events)
    assert kinds(events) == []
    assert "`approve`" in notice(events, NoticeKind.WHAT_NEXT)
    assert not (ticket.ticket / "plan.md").exists()
    assert "```json" not in "".join(
        event.text for event in events if isinstance(event, ReplyDelta)
    )

    events = await say(session, "approve")
    assert [step.serves for step in written(ticket).steps] == IN_WORDS
    assert f"tickets/{SLUG}/plan.md" in notice(events, NoticeKind.PLAN_WRITTEN)
    assert session.agent is None


async def test_the_prompt_contains_the_project_s_rules(ticket: Sandbox) -> None:
    (ticket.root / "AGENTS.md").write_text(f"{RULE}\n")
    await say(ticket.replies(plan()).session(), f"/plan {SLUG}")
    assert f"## AGENTS.md\n\n{RULE}" in ticket.model.requests[0].messages[0].content


async def test_an_incomplete_spec_is_refused_with_what_is_missing(
    ticket: Sandbox,
) -> None:
    (ticket.ticket / "spec.yaml").write_text("title: Say words\n")
    session = ticket.session()
    with pytest.raises(BadInput, match="not complete") as caught:
        await say(session, f"/plan {SLUG}")
    assert "- description:" in caught.value.message
    assert "- acceptance_criteria:" in caught.value.message
    assert session.agent is None
    assert ticket.model.requests == []


async def test_a_huge_spec_is_refused_without_a_model_call(
    ticket: Sandbox,
) -> None:
    (ticket.ticket / "spec.yaml").write_text(
        SPEC + "log: |\n" + "  a line of a log\n" * 120_000
    )
    session = ticket.session()
    with pytest.raises(SpecTooLarge):
        await say(session, f"/plan {SLUG}")
    assert session.agent is None
    assert ticket.model.requests == []


async def test_a_spec_that_is_not_yaml_is_an_error_with_its_line(
    ticket: Sandbox,
) -> None:
    session = ticket.write(
        Step("a.txt"), spec="title: x\ndescription: [a\nowner: Ada\n"
    ).session()
    for line in (f"/plan {SLUG}", f"/exec {SLUG}"):
        with pytest.raises(BadInput, match=r"^tickets/feature-words/spec\.yaml:3:"):
            await say(session, line)
    assert session.agent is None


async def test_the_model_s_tool_calls_are_reported(ticket: Sandbox) -> None:
    (ticket.root / "words.py").write_text("GOOD = 'good'\n")
    looking = ScriptedReply(
        "I look.",
        tool_calls=(call("read_file", path="words.py"), call("list_files", path=".")),
    )
    ticket.replies(looking, plan())
    events = await say(ticket.session(), f"/plan {SLUG}")
    assert re.findall(r"(\d+) of \d+", notice(events, NoticeKind.SEARCHING))[:2] == [
        "1",
        "1",
    ]
    assert "GOOD = 'good'" in ticket.prompt(1)
    assert TicketSpec.from_yaml(SPEC).acceptance_criteria[0] in ticket.prompt(0)
    assert {tool.name for tool in ticket.model.requests[0].tools} == {
        *("read_file", "list_files", "glob_files", "grep_files", "find_code"),
    }


async def test_the_first_prompt_shows_code_that_matches_the_ticket(
    ticket: Sandbox,
) -> None:
    (ticket.root / "speech.py").write_text("def say_words():\n    return ['good']\n")
    events = await say(ticket.replies(plan()).session(), f"/plan {SLUG}")
    assert "speech.py:\n```py\ndef say_words():" in ticket.prompt(0)
    (made,) = [event for event in events if isinstance(event, PromptMade)]
    assert sum(part.tokens for part in made.parts) > 500


async def test_tool_calls_before_the_plan_are_limited(ticket: Sandbox) -> None:
    for number in range(42):
        (ticket.root / f"f{number}.txt").write_text(str(number))
    many = ScriptedReply(
        "",
        tool_calls=tuple(
            call("read_file", path=f"f{number}.txt") for number in range(42)
        ),
    )
    events = await say(ticket.replies(many, plan()).session(), f"/plan {SLUG}")
    refused = [
        event
        for event in events
        if isinstance(event, ToolFinished) and "which is the limit" in event.problem
    ]
    assert len(refused) == 2
    assert "### Step 1" in told(events)


async def test_wrong_arguments_of_a_tool_go_back_to_the_model(ticket: Sandbox) -> None:
    wrong = ScriptedReply(
        "",
        tool_calls=(
            call("read_file", file="a"),
            call("write_file", path="a"),
            call("read_file", path="/etc/passwd"),
        ),
    )
    events = await say(ticket.replies(wrong, plan()).session(), f"/plan {SLUG}")
    problems = [event.problem for event in events if isinstance(event, ToolFinished)]
    assert "`file`" in problems[0]
    assert "'write_file'" in problems[1]
    assert problems[2]
    assert "### Step 1" in told(events)


async def test_wrong_json_is_requested_twice_more_and_then_an_error(
    ticket: Sandbox,
) -> None:
    session = ticket.replies("No plan.", answer(plan={"steps": []}), plan()).session()
    assert "### Step 1" in told(await say(session, f"/plan {SLUG}"))
    await say(session, "discard")
    session.leave()
    ticket.replies(*["No plan."] * 3)
    session = ticket.session()
    with pytest.raises(NoUsableAnswer, match="in 3 tries"):
        await say(session, f"/plan {SLUG}")
    assert not (ticket.ticket / "plan.md").exists()
    assert noticed(await say(session, "")) == [NoticeKind.RESUMED]


async def test_errors_from_compiling_go_back_to_the_model(ticket: Sandbox) -> None:
    cycle = plan(step(1, "a.txt", dependencies=[2]), step(2, "b.txt", dependencies=[1]))
    events = await say(ticket.replies(cycle, plan()).session(), f"/plan {SLUG}")
    assert "dependency cycle: 1 → 2 → 1" in ticket.prompt(1)
    assert kinds(events) == []


async def test_a_warning_goes_back_once_and_is_then_shown(
    ticket: Sandbox,
) -> None:
    (ticket.root / "b.txt").write_text("bad")
    there = plan(step(1, "a.txt"), step(2, "b.txt"))
    events = await say(ticket.replies(there, there).session(), f"/plan {SLUG}")
    assert len(ticket.model.requests) == 2
    assert kinds(events) == ["exists_already"]


async def test_a_plan_with_remaining_errors_is_shown_and_not_written(
    ticket: Sandbox,
) -> None:
    cycle = plan(step(1, "a.txt", dependencies=[2]), step(2, "b.txt", dependencies=[1]))
    session = ticket.replies(cycle, cycle, cycle).session()
    assert kinds(await say(session, f"/plan {SLUG}")) == ["cycle"]
    with pytest.raises(BadInput, match="dependency cycle"):
        await say(session, "approve")
    assert not (ticket.ticket / "plan.md").exists()


async def test_a_check_that_would_be_refused_is_found_before_the_run(
    ticket: Sandbox,
) -> None:
    piped = plan(step(1, "a.txt", checks=["pytest | tail"]), step(2, "b.txt"))
    events = await say(ticket.replies(piped, plan()).session(), f"/plan {SLUG}")
    assert "`|`" in ticket.prompt(1)
    assert kinds(events) == []


async def test_the_planner_asks_at_most_three_questions(
    ticket: Sandbox,
) -> None:
    ticket.replies(
        asking("Which?", "Which words?"), asking("More?", "And more?"), plan()
    )
    session = ticket.session()
    events = await say(session, f"/plan {SLUG}")
    assert "1. Which?" in told(events)
    assert "2. Which words?" in told(events)
    events = await say(session, ANSWER)
    assert ANSWER in ticket.prompt(1)
    assert re.search(r"\b1 more\b", ticket.prompt(2))
    assert "### Step 1" in told(events)


async def test_a_model_that_asks_more_than_it_may_hears_that_it_may_ask_no_more(
    ticket: Sandbox,
) -> None:
    many = asking("A?", "B?", "C?")
    ticket.replies(asking("Which?", "Where?"), many, many, many, many, plan())
    session = ticket.session()
    await say(session, f"/plan {SLUG}", ANSWER)
    await say(session, ANSWER)
    prompts = [ticket.prompt(number) for number in range(len(ticket.model.requests))]
    assert not any("-" in line for line in re.findall("You may ask.*", prompts[-1]))
    assert "You may ask no more questions" in prompts[-1]


async def test_a_plan_that_no_longer_fits_the_spec_says_so_and_the_model_hears_why(
    ticket: Sandbox,
) -> None:
    ticket.write(
        Step("a.txt", check("a.txt"), description="A.\n**Serves:** a.txt says good"),
        Step("b.txt", check("b.txt"), description="B.\n**Serves:** 2"),
        spec=SPEC,
    )
    ticket.replies(changes(steps=[step(1, "a.txt"), step(3, "c.txt", after=2)]))
    session = ticket.session()
    events = await say(session, f"/plan {SLUG}")
    assert "does not fit" not in told(events)
    edited = SPEC.replace("a.txt says good", "a.txt says better")
    (ticket.ticket / "spec.yaml").write_text(f"{edited}  - c.txt says good\n")
    events = await say(session, "")
    assert "The plan no longer matches the spec." in told(events)

    await say(session, WISH)
    misfits = ticket.prompt().partition("# Where the plan does not fit the spec")[2]
    assert "serves “a.txt says good”, which is not an acceptance criterion" in misfits
    assert "(a.txt says better)" in misfits
    assert "(c.txt says good)" in misfits
    await say(session, "approve")
    assert [step.serves for step in written(ticket).steps] == [
        ("a.txt says better",),
        (2,),
        ("c.txt says good",),
    ]


async def test_a_model_may_name_criteria_by_their_words(ticket: Sandbox) -> None:
    named = ["`A.txt` says good.", "2"]
    ticket.replies(plan(step(1, "a.txt", serves=named), step(2, "b.txt", serves=[2])))
    await say(ticket.session(), f"/plan {SLUG}", "approve")
    first, second = written(ticket).steps
    assert first.serves == ("b.txt says good", "a.txt says good")
    assert second.serves == ("b.txt says good",)


async def test_one_step_is_refined_and_the_others_stay_byte_for_byte(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(plan()).session()
    await say(session, f"/plan {SLUG}", "approve")
    by_hand = (
        (ticket.ticket / "plan.md")
        .read_text()
        .replace("## Implementation", "<!-- mine -->\n\n## Implementation")
    )
    (ticket.ticket / "plan.md").write_text(by_hand)

    ticket.replies(changes(steps=[step(2, "b.txt", title=BETTER, dependencies=[1])]))
    session = ticket.session()
    events = await say(session, f"/plan {SLUG}")
    assert any(isinstance(event, PlanOpened) for event in events)
    assert ticket.model.requests == []
    events = await say(session, WISH, "approve")
    assert SUMMARY in told(events)
    assert f"title: Write b.txt → {BETTER}\n" in told(events)
    assert WISH in ticket.prompt()
    text = (ticket.ticket / "plan.md").read_text()
    assert text == by_hand.replace(heading(2), heading(2, BETTER))
    (kept,) = (ticket.root / ".cdd/runs" / SLUG / "plans").iterdir()
    assert kept.read_text() == by_hand


async def test_a_step_beside_one_with_an_absolute_path_is_refined(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(plan()).session()
    await say(session, f"/plan {SLUG}", "approve")
    path = ticket.ticket / "plan.md"
    by_hand = path.read_text().replace("`a.txt`", f"`{ticket.root}/a.txt`")
    assert str(ticket.root) in by_hand
    path.write_text(by_hand)
    ticket.replies(changes(steps=[step(2, "b.txt", title=BETTER, dependencies=[1])]))
    await say(ticket.session(), f"/plan {SLUG}", WISH, "approve")
    first, second = ticket.project.tickets.find(SLUG).read_plan().steps
    assert first.files_affected == (AffectedFile("a.txt", "new"),)
    assert second.title == BETTER


async def test_completed_steps_are_frozen_and_numbers_are_not_reused(
    ticket: Sandbox,
) -> None:
    ticket.write(
        Step("a.txt", check("a.txt")),
        Step("b.txt", check("b.txt"), "Step 1"),
        spec=SPEC,
    )
    session = ticket.replies(says("a.txt", "good")).session()
    await say(session, f"/exec {SLUG}", "continue", "close")
    before = (ticket.ticket / "plan.md").read_text()

    ticket.replies(
        changes(steps=[step(1, "a.txt")]),
        changes(steps=[step(2, "b.txt", serves=[1, 2])], removed=[1]),
        changes(
            steps=[
                step(2, "b.txt", title="B", serves=[1, 2]),
                step(3, "c.txt", after=2, serves=[1]),
            ]
        ),
    )
    session = ticket.session()
    events = await say(session, f"/plan {SLUG}", "split step 2", "approve")
    assert "step 1" in ticket.model.requests[1].messages[-1].content
    assert re.search(r"\bsteps 1\b", ticket.prompt(0))
    assert "Wrote" in told(events)
    text = (ticket.ticket / "plan.md").read_text()
    assert text.startswith(before[: before.index("### Step 2")])
    assert [step.number for step in written(ticket).steps] == [1, 2, 3]

    ticket.replies(
        plan(step(2, "b.txt"), step(3, "c.txt")), plan(step(4, "b.txt", serves=[1, 2]))
    )
    await say(ticket.session(), f"/plan {SLUG}", "regenerate", "approve")
    assert re.search(r"\b2\b.*\b4\b", ticket.model.requests[1].messages[-1].content)
    assert [step.number for step in written(ticket).steps] == [1, 4]
    assert (
        before[before.index("### Step 1") : before.index("### Step 2")]
        in (ticket.ticket / "plan.md").read_text()
    )


async def test_a_plan_is_regenerated_after_its_completed_steps(
    ticket: Sandbox,
) -> None:
    ticket.write(Step("a.txt", check("a.txt")), Step("b.txt"), spec=SPEC).replies(
        says("a.txt", "good")
    )
    path = ticket.ticket / "plan.md"
    path.write_text(
        path.read_text().replace(
            "## Implementation Steps", "My words.\n\n## Overview\n\nOld.\n\n## Steps"
        )
    )
    session = ticket.session()
    await say(session, f"/exec {SLUG}", "c", "close")
    new = step(3, "b.txt", serves=[1, 2], dependencies=[1])
    ticket.replies(plan(new))
    await say(ticket.session(), f"/plan {SLUG}", "regenerate", "approve")
    assert [step.number for step in written(ticket).steps] == [1, 3]
    assert written(ticket).overview.startswith("My words.\n\n")


async def test_a_change_that_would_lose_the_user_s_words_is_not_proposed(
    ticket: Sandbox,
) -> None:
    ticket.write(Step("a.txt"), spec=SPEC)
    file = ticket.ticket / "plan.md"
    file.write_text(
        f"## Overview\n\nOurs.\n\n## Summary\n\nAlso ours.\n\n{file.read_text()}"
    )
    before = file.read_text()
    ticket.replies(changes(overview="New."), changes(risks=["r"]))
    session = ticket.session()
    await say(session, f"/plan {SLUG}", "name the risk")
    assert len(ticket.model.requests) == 2
    assert (await say(session, "approve"))[-1] == AgentChanged(None)
    assert file.read_text() == f"{before}\n## Risks & Considerations\n\n- r\n"

    session = ticket.replies(*[changes(overview="New.")] * 3).session()
    with pytest.raises(NoUsableAnswer, match="cannot be used"):
        await say(session, f"/plan {SLUG}", "another overview")
    with pytest.raises(BadInput, match="no proposed plan"):
        await say(session, "approve")


async def test_a_concurrent_edit_stays_and_a_conflict_is_refused(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(plan()).session()
    await say(session, f"/plan {SLUG}", "approve")
    file = ticket.ticket / "plan.md"

    ticket.replies(
        changes(steps=[step(2, "b.txt", title="B")]),
        changes(steps=[step(2, "b.txt", title="C")]),
    )
    session = ticket.session()
    await say(session, f"/plan {SLUG}", "change step 2")
    file.write_text(
        file.read_text().replace("Step 1: Write a.txt", "Step 1: " + OWN_TITLE)
    )
    await say(session, "approve")
    assert [step.title for step in written(ticket).steps] == [OWN_TITLE, "B"]

    session = ticket.session()
    await say(session, f"/plan {SLUG}", "again")
    file.write_text(file.read_text().replace("Step 2: B", "Step 2: Mine"))
    with pytest.raises(BadInput, match="step 2"):
        await say(session, "approve")
    assert [step.title for step in written(ticket).steps] == [OWN_TITLE, "Mine"]


@each_row(
    "before", [(), ("approve", f"/plan {SLUG}", "B is better")], ids=["new", "changed"]
)
async def test_a_plan_written_before_a_kill_can_be_approved_again(
    ticket: Sandbox, monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...]
) -> None:
    ticket.replies(plan(), changes(steps=[step(2, "b.txt", title="B")]))
    session = ticket.session()
    await say(session, f"/plan {SLUG}", *before)
    with monkeypatch.context() as patched:
        patched.setattr(Planning, "discard", _killed)
        with pytest.raises(KeyboardInterrupt):
            await say(session, "approve")
    session.leave()
    was_written = (ticket.ticket / "plan.md").read_text()

    events = await say(ticket.session(), f"/plan {SLUG}", "approve")
    assert NoticeKind.PLAN_WRITTEN in noticed(events)

    assert (ticket.ticket / "plan.md").read_text() == was_written
    assert not (ticket.root / ".cdd/runs" / SLUG / "planning.json").exists()


async def test_a_plan_outside_the_project_is_not_written(
    ticket: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    theirs = tmp_path_factory.mktemp("theirs") / "plan.md"
    (ticket.ticket / "plan.md").symlink_to(theirs)
    session = ticket.replies(plan()).session()
    with pytest.raises(BadInput, match="outside"):
        await say(session, f"/plan {SLUG}")
    assert not theirs.exists()
    assert session.agent is None


async def test_planning_locks_the_ticket(ticket: Sandbox) -> None:
    first, second = ticket.replies(plan()).session(), ticket.session()
    await say(first, f"/plan {SLUG}")
    for line in (f"/plan {SLUG}", f"/socrates {SLUG}"):
        with pytest.raises(TicketTaken, match=str(os.getpid())):
            await say(second, line)
    assert second.agent is None
    assert NoticeKind.PLAN_WRITTEN in noticed(await say(first, "approve"))
    await say(second, f"/exec {SLUG}")
    with pytest.raises(TicketTaken):
        await say(first, f"/plan {SLUG}")
    # in one shell, one after the other
    await say(second, f"/plan {SLUG}", f"/exec {SLUG}", f"/plan {SLUG}", "close")
    assert "Step" in told(await say(first, f"/plan {SLUG}", "show"))
    first.leave()


async def test_a_planning_without_its_record_writes_nothing(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(plan(), changes(changed=[])).session()
    await say(session, f"/plan {SLUG}")
    shutil.rmtree(ticket.root / ".cdd/runs")
    for line in ("approve", "other names"):
        with pytest.raises(LockGone):
            await say(session, line)
    assert len(ticket.model.requests) == 1
    assert not (ticket.ticket / "plan.md").exists()
    await say(session, "close")
    await say(ticket.replies(plan()).session(), f"/plan {SLUG}")


async def test_a_planning_that_cannot_begin_releases_the_ticket(
    ticket: Sandbox,
) -> None:
    whole = (ticket.ticket / "spec.yaml").read_text()
    (ticket.ticket / "spec.yaml").write_text("title: Say words\n")
    with pytest.raises(BadInput, match="spec"):
        await say(ticket.session(), f"/plan {SLUG}")
    assert not (ticket.root / ".cdd/runs").exists()
    (ticket.ticket / "spec.yaml").write_text(whole)
    await say(ticket.replies(plan()).session(), f"/plan {SLUG}")


async def test_the_planner_shows_what_it_looks_for(ticket: Sandbox) -> None:
    looking = ScriptedReply(
        "I look.", tool_calls=(call("glob_files", pattern="**/*.md"),)
    )
    session = ticket.replies(looking, plan()).session()
    events = await say(session, f"/plan {SLUG}")
    (looked,) = [event for event in events if isinstance(event, ToolFinished)]
    assert looked.target == "**/*.md"


async def test_an_interrupted_planning_resumes_with_its_tool_results(
    ticket: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "hush-hush-hush-1234")
    (ticket.root / "words.py").write_text(
        "KEY = 'hush-hush-hush-1234'\nGOOD = 'good'\n"
    )
    looking = ScriptedReply("I look.", tool_calls=(call("read_file", path="words.py"),))
    session = ticket.replies(looking, plan()).session()
    work = handle(session, f"/plan {SLUG}")
    await stop_at(
        work,
        lambda event: isinstance(event, Notice) and event.kind is NoticeKind.SEARCHING,
    )
    record = ticket.root / ".cdd/runs" / SLUG
    kept = (record / "planning.json").read_text()
    assert "GOOD = 'good'" in kept
    assert not any("hush-hush" in file.read_text() for file in record.glob("planning*"))

    session.leave()
    ticket.replies(plan())
    session = ticket.session()
    events = await say(session, f"/plan {SLUG}")
    assert noticed(events)[-1] is NoticeKind.RESUMED
    assert ticket.model.requests == []
    assert session.agent is not None
    assert session.agent.placeholder.startswith("continue, discard")
    events = await say(session, "continue")
    assert "GOOD = 'good'" in ticket.prompt(0)
    assert "### Step 1" in told(events)


async def test_provider_data_is_kept_unchanged_or_not_at_all(
    ticket: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "hush-hush-hush-1234")
    ticket.flags = {"tool_calls": "on"}
    datas = ['{"thought": "hush-hush-hush-1234"}', '{"thought": "hm"}']
    script = [
        ScriptedReply(
            "I look.",
            tool_calls=(call("list_files"),),
            provider_data=ProviderData("scripted", data),
        )
        for data in datas
    ]
    session = ticket.replies(*script, AuthenticationFailed("The key is old.")).session()
    with pytest.raises(AuthenticationFailed):
        await say(session, f"/plan {SLUG}")
    session.leave()
    session = ticket.replies(plan()).session()
    await say(session, f"/plan {SLUG}", "continue")
    said = [
        message
        for message in ticket.model.requests[0].messages
        if message.role == "assistant"
    ]
    assert [message.provider_data for message in said] == [
        None,
        ProviderData("scripted", datas[1]),
    ]
    session.leave()


async def test_approve_compiles_again_if_the_spec_has_changed(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(plan()).session()
    await say(session, f"/plan {SLUG}")
    (ticket.ticket / "spec.yaml").write_text(SPEC + "  - c.txt says good\n")
    events = await say(session, "approve")
    assert kinds(events) == ["unserved_criterion"]
    assert NoticeKind.SPEC_CHANGED in noticed(events)
    assert len(written(ticket).steps) == 2


@each_row("spec", ["title: [\n", "title: Say words\n", None])
async def test_a_plan_whose_spec_became_invalid_is_not_written(
    ticket: Sandbox, spec: str | None
) -> None:
    session = ticket.replies(plan()).session()
    await say(session, f"/plan {SLUG}")
    (ticket.ticket / "spec.yaml").unlink()
    if spec is not None:
        (ticket.ticket / "spec.yaml").write_text(spec)
    with pytest.raises(BadInput, match=r"spec\.yaml"):
        await say(session, "approve")
    assert not (ticket.ticket / "plan.md").exists()
    (ticket.ticket / "spec.yaml").write_text(SPEC)
    assert NoticeKind.PLAN_WRITTEN in noticed(await say(session, "approve"))


async def test_the_model_receives_a_changed_spec(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(*[ConnectionFailed("gone")] * 10).session()
    with pytest.raises(ConnectionFailed):
        await say(session, f"/plan {SLUG}")
    session.leave()
    (ticket.ticket / "spec.yaml").write_text(SPEC.replace("b.txt says good", FINE))
    await say(ticket.replies(plan()).session(), f"/plan {SLUG}", "continue")
    assert (
        TicketSpec.from_yaml(SPEC).acceptance_criteria[1]
        in ticket.model.requests[0].messages[1].content
    )
    assert FINE in ticket.model.requests[0].messages[-1].content


async def test_planning_needs_a_model(ticket: Sandbox) -> None:
    ticket.write(Step("a.txt"), spec=SPEC)
    session = Wiring(ticket.project, Nobody(), tell).session
    await say(session, f"/plan {SLUG}")
    with pytest.raises(NoModel):
        await say(session, "split step 1")
    assert not (ticket.root / ".cdd/runs" / SLUG / "planning.json").exists()
    assert "runs/" in (ticket.root / ".cdd/.gitignore").read_text()


async def test_the_error_without_a_model_is_in_full_sentences(
    ticket: Sandbox,
) -> None:
    (ticket.root / "s.yaml").write_text("replies:\n  - words: hi\n")
    ticket.flags = {"model": "script:s.yaml"}
    (told_first, *_) = [
        event.text
        for event in await say(
            Wiring(ticket.project, Nobody(), tell).session, f"/plan {SLUG}"
        )
        if isinstance(event, Notice)
    ]
    assert "words" in told_first


async def test_undecodable_file_names_are_allowed(ticket: Sandbox) -> None:
    (ticket.root / os.fsdecode(b"gr\xf6sse.txt")).write_text("")
    looking = ScriptedReply("", tool_calls=(call("list_files", path="."),))
    assert "### Step 1" in told(
        await say(ticket.replies(looking, plan()).session(), f"/plan {SLUG}")
    )


async def test_half_a_surrogate_in_a_call_is_allowed(ticket: Sandbox) -> None:
    looking = ScriptedReply(
        "Look \ud83d.", tool_calls=(ToolCall("1", "read_file", '{"path": "\udcff"}'),)
    )
    assert "### Step 1" in told(
        await say(ticket.replies(looking, plan()).session(), f"/plan {SLUG}")
    )


async def test_the_user_can_continue_after_a_lost_connection(
    ticket: Sandbox,
) -> None:
    broken = [ConnectionFailed("gone")] * 10
    session = ticket.replies(*broken).session()
    with pytest.raises(ConnectionFailed):
        await say(session, f"/plan {SLUG}")
    session.leave()
    ticket.replies(plan())
    session = ticket.session()
    await say(session, f"/plan {SLUG}")
    assert "### Step 1" in told(await say(session, GUIDANCE))
    assert GUIDANCE in ticket.prompt()


async def test_an_open_proposal_is_offered_again_and_can_be_dropped(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(plan()).session()
    await say(session, f"/plan {SLUG}")
    assert NoticeKind.AGENT_LEFT in noticed(await say(session, "close"))
    session = ticket.replies().session()
    events = await say(session, f"/plan {SLUG}")
    assert NoticeKind.RESUMED in noticed(events)
    assert heading(2) in told(events)
    await say(session, "discard")
    assert not (ticket.root / ".cdd/runs" / SLUG / "planning.json").exists()
    with pytest.raises(BadInput, match="no proposed plan"):
        await say(session, "approve")


async def test_a_change_of_an_open_proposal_is_shown_as_changed_steps(
    ticket: Sandbox,
) -> None:
    session = ticket.replies(
        plan(), changes(steps=[step(2, "b.txt", title="B", dependencies=[1])])
    ).session()
    events = await say(session, f"/plan {SLUG}")
    # there is no plan that `keep` could keep
    assert "`discard`" in notice(events, NoticeKind.WHAT_NEXT)
    events = await say(session, "another title")
    assert "1 changed step, 1 unchanged" in told(events)
    assert "  ~ 2. B\n      title: Write b.txt → B\n" in told(events)
    assert "### Step" not in told(events)
    assert "### Step 1" in told(await say(session, "show"))
    assert "`regenerate`" in notice(await say(session, "discard"), NoticeKind.WHAT_NEXT)
    session.leave()


async def test_keep_drops_the_proposal_and_leaves_the_plan(ticket: Sandbox) -> None:
    ticket.write(Step("a.txt"), spec=SPEC)
    before = (ticket.ticket / "plan.md").read_bytes()
    session = ticket.replies(changes(risks=["r"])).session()
    events = await say(session, f"/plan {SLUG}", "add a risk", "keep")
    assert "plan.md" in notice(events, NoticeKind.PLAN_KEPT)
    assert session.agent is None
    assert (ticket.ticket / "plan.md").read_bytes() == before


async def test_show_and_check_use_the_current_plan(ticket: Sandbox) -> None:
    ticket.write(Step("a.txt"), spec=SPEC)
    session = ticket.session()
    await say(session, f"/plan {SLUG}")
    (shown,) = await say(session, "show")
    assert shown == Answer((ticket.ticket / "plan.md").read_text())
    assert kinds(await say(session, "check")) == [
        "no_serves",
        "no_check",
        "missing_file",
    ]


async def test_without_a_model_a_basic_plan_can_be_made(ticket: Sandbox) -> None:
    session = Wiring(ticket.project, Nobody(), tell).session
    events = await say(session, f"/plan {SLUG}")
    assert NoticeKind.NOT_DONE in noticed(events)
    assert re.search(r"Type `basic`", told(events))
    await say(session, "basic", "approve")
    plan = written(ticket)
    assert "Basic plan" in plan.overview
    assert [step.serves for step in plan.steps] == IN_WORDS


async def test_a_basic_plan_that_could_not_be_written_is_not_kept(
    ticket: Sandbox,
) -> None:
    ticket.write(Step("a.txt", check("a.txt")), Step("b.txt"), spec=SPEC).replies(
        says("a.txt", "good")
    )
    path = ticket.ticket / "plan.md"
    path.write_text(f"{path.read_text()}\n## Overview\n\nOne.\n\n## Summary\n\nTwo.\n")
    session = ticket.session()
    await say(session, f"/exec {SLUG}", "c", "close", f"/plan {SLUG}")
    with pytest.raises(PlanTextLost):
        await say(session, "basic")
    await say(session, "close")
    assert NoticeKind.RESUMED not in noticed(
        await say(ticket.session(), f"/plan {SLUG}")
    )


async def test_a_small_window_lists_as_many_files_as_fit(
    ticket: Sandbox,
) -> None:
    for number in range(300):
        (ticket.root / f"a-rather-long-name-of-a-file-{number:03}.txt").write_text("")
    (ticket.root / ".cdd/config.yaml").write_text(
        "context_window: 8000\ntest_command: make test\n"
    )
    await say(ticket.replies(plan()).session(), f"/plan {SLUG}")
    assert "a-rather-long-name-of-a-file-000.txt" in ticket.prompt(0)
    assert "a-rather-long-name-of-a-file-299.txt" not in ticket.prompt(0)
    assert "`make test`" in ticket.prompt(0)
    assert ", ".join(
        open_commands(ticket.project, ticket.frontend).allowed
    ) in ticket.prompt(0)


async def test_a_projects_own_prompt_is_used(ticket: Sandbox) -> None:
    (ticket.root / ".cdd/prompts").mkdir()
    (ticket.root / ".cdd/prompts/planner.md").write_text(OWN_PROMPT)
    await say(ticket.replies(plan()).session(), f"/plan {SLUG}")
    assert ticket.model.requests[0].messages[0].content.startswith(OWN_PROMPT)


async def test_unreadable_notes_are_renamed_and_reported(
    ticket: Sandbox,
) -> None:
    record = ticket.root / ".cdd/runs" / SLUG
    record.mkdir(parents=True)
    (record / "planning.json").write_text("{torn")
    events = await say(ticket.replies(plan()).session(), f"/plan {SLUG}")
    assert f" .cdd/runs/{SLUG}/planning.aside-" in notice(events, NoticeKind.DAMAGED)
    assert "### Step 1" in told(events)


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


LABELLED = """\
# Plan: Say words

## Our rules

Never touch `secret.txt`.

### Step 1: Write a.txt

**Files:** `a.txt` (new)
**Serves:** 1

### Step 1b: Write c.txt

**Files:** `c.txt` (new)

### Step 2: Write b.txt

*By hand.*

**Files:** `b.txt` (new)
**Serves:** 2
"""
LOST = "## Phase 4\n\nMore work.\n"


def numbers_and_ids(sandbox: Sandbox) -> list[tuple[str, str]]:
    return [(step.label, step.id) for step in written(sandbox).steps]


async def test_steps_of_the_planner_have_ids_that_stay(ticket: Sandbox) -> None:
    session = ticket.replies(plan()).session()
    await say(session, f"/plan {SLUG}", "approve")
    first, second = numbers_and_ids(ticket)
    assert re.fullmatch("[a-z0-9]{4}", first[1])
    assert first[1] != second[1]
    path = ticket.ticket / "plan.md"
    path.write_text(path.read_text().replace(f" <!-- id: {first[1]} -->", ""))
    ticket.replies(
        changes(
            steps=[
                step(2, "b.txt", title=BETTER, dependencies=[1]),
                step(3, "c.txt", after=1, serves=[]),
            ]
        )
    )
    await say(ticket.session(), f"/plan {SLUG}", WISH, "approve")
    steps = written(ticket).steps
    assert [(step.label, step.id) for step in steps[::2]] == [("1", ""), second]
    assert re.fullmatch("[a-z0-9]{4}", steps[1].id)
    ticket.replies(plan())
    await say(ticket.session(), f"/plan {SLUG}", "regenerate", "approve")
    assert {second[1], steps[1].id}.isdisjoint(
        step.id for step in written(ticket).steps
    )


async def test_the_id_of_a_former_step_is_not_used_again(ticket: Sandbox) -> None:
    ticket.replies(plan(), says("a.txt", "good"), says("b.txt", "bad"))
    await say(ticket.session(), f"/plan {SLUG}", "approve")
    path = ticket.ticket / "plan.md"
    (_, former) = numbers_and_ids(ticket)
    ticket.flags = {"max_attempts": 1}
    await say(ticket.session(), f"/exec {SLUG}", "c", "c", "close")
    assert ticket.statuses() == ["completed", "failed"]
    path.write_text(path.read_text().partition("### Step 2")[0])
    await say(ticket.session(), f"/exec {SLUG}", "close")
    # The former step has the id that the new one would have.
    expected = add_ids([PlanStep(3, "Write c.txt")], SLUG, ())[0].id
    state = ticket.ticket / "execution-state.json"
    state.write_text(state.read_text().replace(former[1], expected))
    new = step(3, "c.txt", serves=[2])
    ticket.replies(changes(steps=[new]))
    await say(ticket.session(), f"/plan {SLUG}", WISH, "approve")
    assert written(ticket).steps[-1].number == 3
    assert written(ticket).steps[-1].id not in {expected, former[1], ""}


async def test_what_a_step_may_do_to_tests_is_written_where_the_model_says_it(
    ticket: Sandbox,
) -> None:
    leave = {"tests": ["test_b.py::test_b"], "until": 2}
    first = step(
        1, "a.txt", removes_tests=["test_old.py"], may_fail=[leave], checks=["a", "b"]
    )
    ticket.flags = {"commands": {"mode": "unsafe"}}
    ticket.replies(plan(first, step(2, "b.txt")))
    await say(ticket.session(), f"/plan {SLUG}", "approve")
    one, two = written(ticket).steps
    assert one.removes_tests == ("test_old.py",)
    assert [(item.tests, item.until) for item in one.may_fail] == [
        ("test_b.py::test_b", "2")
    ]
    assert one.checks == ("a", "b")
    assert (two.removes_tests, two.may_fail) == (None, ())
    text = (ticket.ticket / "plan.md").read_text()
    assert text.count("**Removes tests:**") == text.count("**May fail:**") == 1


async def test_the_model_plans_in_numbers_and_plan_md_keeps_its_labels(
    ticket: Sandbox,
) -> None:
    path = ticket.ticket / "plan.md"
    path.write_text(LABELLED)
    wrong = changes(steps=[step(3, "b.txt", title=BETTER, dependencies=[2, 9])])
    right = changes(
        steps=[
            step(3, "b.txt", title=BETTER, serves=[2], dependencies=[2, 4]),
            step(4, "d.txt", after=1, serves=[], dependencies=[1]),
        ]
    )
    session = ticket.replies(wrong, right).session()
    await say(session, f"/plan {SLUG}", WISH)
    prompt = ticket.prompt(0)
    assert "### Step 2: Write c.txt\n" in prompt
    assert "step 2 is `1b`, step 3 is `2`" in prompt
    assert "numbered from 4 on" in prompt
    assert "step 3 depends on step 9" in ticket.prompt(1)
    await say(session, "approve")
    text = path.read_text()
    steps = written(ticket).steps
    assert [step.label for step in steps] == ["1", "4", "1b", "2"]
    assert steps[3].title == BETTER
    assert [steps[number - 1].label for number in steps[3].dependencies] == ["4", "1b"]
    assert text.startswith(LABELLED[: LABELLED.index("### Step 1b")])
    kept = LABELLED[LABELLED.index("### Step 1b") : LABELLED.index("### Step 2")]
    assert kept in text


async def test_completed_steps_of_a_labelled_plan_are_frozen_wherever_they_stand(
    ticket: Sandbox,
) -> None:
    path = ticket.ticket / "plan.md"
    path.write_text(LABELLED.replace("**Serves:** 1", "**Verify:** none"))
    session = ticket.replies(says("a.txt", "good")).session()
    await say(session, f"/exec {SLUG}", "continue", "close")
    before = path.read_text()
    first = changes(steps=[step(4, "d.txt", after=0, serves=[1])])
    done = changes(steps=[step(2, "a.txt", serves=[1])])
    second = changes(
        steps=[step(1, "d.txt", title=BETTER), step(5, "e.txt", serves=[])]
    )
    ticket.replies(first, done, second)
    session = ticket.session()
    await say(session, f"/plan {SLUG}", "one before")
    assert "steps 1. Plan the rest" in ticket.prompt(0)
    # the proposal has another number for the completed step
    await say(session, "and one more")
    assert "steps 2. Plan the rest" in ticket.prompt(1)
    assert "step 2 is done" in ticket.prompt(2)
    await say(session, "approve")
    assert [step.label for step in written(ticket).steps] == ["4", "1", "1b", "2", "5"]
    assert written(ticket).steps[0].title == BETTER
    text = path.read_text()
    assert before[before.index("### Step 1:") :].rstrip() in text
    assert ticket.project.tickets.find(SLUG).read_plan().find_step("1") is not None


async def test_a_finding_in_a_draft_goes_back_to_the_model(ticket: Sandbox) -> None:
    lost = plan(
        step(1, "a.txt", description="Do it.\n\n**Run:** `make a`\n\nThen stop."),
        step(2, "b.txt"),
    )
    session = ticket.replies(lost, plan()).session()
    events = await say(session, f"/plan {SLUG}")
    assert "step 1 has a command behind the label “run”" in ticket.prompt(1)
    assert kinds(events) == []

    await say(session, "discard")
    session.leave()
    session = ticket.replies(*[lost] * 3).session()
    events = await say(session, f"/plan {SLUG}")
    assert kinds(events) == ["unknown_label"]
    with pytest.raises(BadInput, match=r"plan\.md:\d+: step 1 has a command"):
        await say(session, "approve")
    assert not (ticket.ticket / "plan.md").exists()


@each_row(
    ("text", "kind", "is_error"),
    [
        (LOST, "unread_step", True),
        ("### Step 3: C\n\n**Owner:** Kim\n", "unknown_label", False),
        ("### ~~Step 3: C~~\n", "struck_step", False),
        ("### Step 3: C\n\n**Verify:** make sure it works\n", "unread_check", True),
    ],
    ids=["phase", "label", "struck", "check"],
)
async def test_findings_of_the_user_s_plan_reach_the_user_and_the_model(
    ticket: Sandbox, text: str, kind: str, is_error: bool
) -> None:
    path = ticket.ticket / "plan.md"
    path.write_text(f"{LABELLED}\n{text}")
    ticket.replies(changes(risks=["r"]))
    session = ticket.session()
    events = await say(session, f"/plan {SLUG}")
    (checked,) = [event for event in events if isinstance(event, PlanChecked)]
    (found,) = [problem for problem in checked.problems if problem.kind == kind]
    assert found.is_warning is not is_error
    assert found.line > LABELLED.count("\n")

    events = await say(session, WISH)
    assert kind in kinds(events)
    assert len(ticket.model.requests) == 1
    severity = "error" if is_error else "warning"
    assert f"- line {found.line}, {severity}: {found.text}" in ticket.prompt()
    if is_error:
        with pytest.raises(BadInput, match=r"plan\.md:"):
            await say(session, "approve")
        assert path.read_text() == f"{LABELLED}\n{text}"
    else:
        await say(session, "approve")
        assert path.read_text().startswith(f"{LABELLED}\n{text}")


async def test_the_user_s_notes_are_in_the_prompt_and_survive_a_new_plan(
    ticket: Sandbox,
) -> None:
    path = ticket.ticket / "plan.md"
    path.write_text(LABELLED)
    ticket.replies(plan(), changes(risks=["r"]))
    session = ticket.session()
    await say(session, f"/plan {SLUG}", "regenerate")
    assert "Never touch `secret.txt`." in ticket.prompt(0)
    await say(session, "name the risk", "approve")
    assert "Never touch `secret.txt`." in ticket.model.requests[1].messages[-1].content
    assert "## Our rules\n\nNever touch `secret.txt`." in path.read_text()
    assert written(ticket).notes == read_plan(LABELLED).notes
