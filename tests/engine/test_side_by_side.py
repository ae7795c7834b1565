"""Steps side by side: at once where that can be, and in the end as if they had been run
one after the other.
"""

import asyncio
import gc
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cdd_agent.changes.review import Review
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.prompt import LAST_FAILED
from cdd_agent.engine.side_tree import SideTree, SideTrees
from cdd_agent.errors import BadInput, NotApproved
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.question_events import ChangesProposed, Choice
from cdd_agent.events.step_events import StepDiff, StepStarted, TestsStarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.llm.port import ToolCall
from tests.engine.together import Together, WithTools, carried_out, project_in
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import SLUG, Sandbox, Step, check, noticed, says
from tests.travel.copies import git


@dataclass
class SlowPerson(Nobody):
    """Takes all changes but those of one step, after some thought."""

    refuses: str = ""
    """The label of that step."""
    asked: list[str] = field(default_factory=list)
    most: int = 0
    _now: int = 0

    async def review(self, review: Review) -> Decision:
        self.asked.append(review.step or "")
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(0.01)  # time for another question, if there may be one
        self._now -= 1
        return Decision(
            Choice.NO if review.step == self.refuses else Choice.YES, review
        )


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return project_in(tmp_path)


def nothing_is_left(sandbox: Sandbox) -> None:
    assert not (sandbox.root / ".cdd" / "runs" / SLUG / "side").exists()
    assert git(sandbox.root, "worktree", "list").count("\n") == 0
    assert "/side/" not in git(sandbox.root, "for-each-ref", "refs/cdd")


async def test_steps_that_are_apart_run_at_once(sandbox: Sandbox) -> None:
    sandbox.write(*(Step(f"{name}.txt", check(f"{name}.txt")) for name in "abc"))
    model = Together(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)}, at_once=3
    )
    events = await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 3
    assert [sandbox.text(f"{name}.txt") for name in "abc"] == ["good\n"] * 3
    assert sorted(model.asked) == [1, 2, 3]
    assert sorted(
        event.step for event in events if isinstance(event, StepFinished)
    ) == [1, 2, 3]
    assert {
        event.step
        for event in events
        if isinstance(event, StepStarted) and event.side_tree
    } == {1, 2, 3}
    nothing_is_left(sandbox)


async def test_what_overlaps_is_done_once_more_on_top_of_the_others(
    sandbox: Sandbox,
) -> None:
    """Both steps write a file that neither of them declares."""
    (sandbox.root / "list.txt").write_text("")
    steps = [
        Step(f"{name}.txt", description="Add a line to list.txt.") for name in "ab"
    ]
    sandbox.write(*steps)

    def adds(name: str) -> Callable[[str], str]:
        def answer(prompt: str) -> str:
            (known,) = re.findall(r"\nlist\.txt:\n```\w*\n(.*?)```", prompt, re.DOTALL)
            return (
                says(f"{name}.txt", "good")
                + "\n"
                + says("list.txt", f"{known.lstrip()}{name}")
            )

        return answer

    model = Together({1: adds("a"), 2: adds("b")}, at_once=2, after={2: 1})
    events = await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 2
    assert sandbox.text("list.txt") == "a\nb\n"
    assert sorted(model.asked) == [1, 2, 2]
    assert NoticeKind.SIDE_BY_SIDE in noticed(events)
    nothing_is_left(sandbox)


async def test_replies_that_find_their_places_come_together(sandbox: Sandbox) -> None:
    """Each adds a line to a file that none was shown, as to a list of changes."""
    (sandbox.root / "list.txt").write_text("# Changes\n\nthe end\n")
    sandbox.write(Step("a.txt"), Step("b.txt"), Step("c.txt"))
    adds = (
        "list.txt\n<<<<<<< SEARCH\n# Changes\n=======\n# Changes\n{}\n>>>>>>> REPLACE\n"
    )
    answers = {
        n: f"{says(f'{name}.txt', 'good')}\n{adds.format(name)}"
        for n, name in enumerate("abc", 1)
    }
    model = Together(answers, at_once=3, after={2: 1, 3: 2})
    await carried_out(sandbox, model)
    assert sandbox.text("list.txt") == "# Changes\nc\nb\na\n\nthe end\n"
    assert sorted(model.asked) == [1, 2, 3]


async def test_what_fails_on_top_of_the_others_is_repaired_there(
    sandbox: Sandbox,
) -> None:
    """Each is good alone. The check names no file of a step by its path."""
    alone = (
        "python -c \"import os; found = {name[0] for name in os.listdir('.')};"
        " raise SystemExit({'a', 'b'} <= found)\""
    )
    sandbox.write(Step("a.txt", alone), Step("b.txt", alone))
    model = Together(
        {
            1: says("a.txt", "good"),
            2: [says("b.txt", "good"), says("c.txt", "instead")],
        },
        at_once=2,
        after={2: 1},
    )
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 2
    assert sorted(model.asked) == [1, 2, 2]
    assert LAST_FAILED in model.prompts[-1]
    assert not (sandbox.root / "b.txt").exists()
    assert sandbox.text("c.txt") == "instead\n"


async def test_a_step_that_fails_does_not_stop_those_beside_it(
    sandbox: Sandbox,
) -> None:
    sandbox.write(
        Step("a.txt", check("a.txt")),
        Step("b.txt", check("b.txt")),
        Step("c.txt", check("c.txt"), "Step 1"),
        Step("d.txt", check("d.txt")),
    )
    model = Together(
        {1: says("a.txt", "bad"), 2: says("b.txt", "good"), 4: says("d.txt", "bad")},
        at_once=3,
    )
    events = await carried_out(sandbox, model)
    assert sandbox.statuses() == ["failed", "completed", "pending", "failed"]
    assert sandbox.text("a.txt") == "bad\n"  # to be looked at
    assert sandbox.text("b.txt") == "good\n"
    assert not (sandbox.root / "d.txt").exists()
    # once more on top of the one that was completed
    assert sorted(model.asked) == [1, 1, 1, 2, 4, 4]
    assert sandbox.state()["status"] == "failed"
    assert {event.step for event in events if isinstance(event, StepFinished)} == {
        1,
        2,
        4,
    }
    nothing_is_left(sandbox)

    model = Together(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abcd", 1)}
    )
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 4
    assert sorted(model.asked) == [1, 3, 4]
    assert sum(LAST_FAILED in prompt for prompt in model.prompts) == 2


async def test_what_is_missing_in_the_trees_alone_fails_no_step(
    sandbox: Sandbox,
) -> None:
    """A file that git ignores is in the person's tree, and not in those of steps."""
    (sandbox.root / ".git" / "info" / "exclude").write_text("local.txt\n")
    (sandbox.root / "local.txt").write_text("here")
    sandbox.write(
        Step("a.txt", check("local.txt", "here")),
        Step("b.txt", check("b.txt")),
        Step("c.txt", depends="1"),
    )
    model = Together(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)}, at_once=2
    )
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 3
    assert sorted(model.asked) == [1, 1, 2, 3]


async def test_a_stop_loses_no_reply(sandbox: Sandbox) -> None:
    sandbox.write(*(Step(f"{name}.txt", check(f"{name}.txt")) for name in "abc"))
    model = Together(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)}, at_once=3
    )
    sandbox.real_model = model
    engine, checked = sandbox.engine(), set[int]()

    def all_are_checked(event: Event) -> bool:
        checked.update({event.step} if isinstance(event, TestsStarted) else ())
        return len(checked) == 3

    with engine.recording():
        await collect(engine.recover())
        await stop_at(engine.run_all(), all_are_checked)
    engine.close()
    assert set(sandbox.statuses()) <= {"pending", "completed"}
    nothing_is_left(sandbox)

    sandbox.flags["jobs"] = 1
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 3
    assert sorted(model.asked) == [1, 2, 3]


async def test_a_tree_that_cannot_be_removed_at_once_is_removed_in_the_end(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(trees: SideTrees, tree: SideTree) -> None:
        raise BadInput(f"{tree.place} is in use")

    monkeypatch.setattr(SideTrees, "remove", refuse)
    unheard = list[object]()
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: unheard.append(context)
    )
    sandbox.write(*(Step(f"{name}.txt", check(f"{name}.txt")) for name in "ab"))
    await carried_out(
        sandbox,
        Together(
            {n: says(f"{name}.txt", "good") for n, name in enumerate("ab", 1)},
            at_once=2,
        ),
    )
    gc.collect()
    assert unheard == []
    assert sandbox.statuses() == ["completed"] * 2
    nothing_is_left(sandbox)


async def test_a_plan_that_cannot_be_read_for_a_while_costs_no_reply(
    sandbox: Sandbox,
) -> None:
    """An editor is just saving it when a step comes to its end."""
    sandbox.write(*(Step(f"{name}.txt", check(f"{name}.txt")) for name in "abc"))
    plan = sandbox.ticket / "plan.md"
    whole = plan.read_text()

    class Edited(Together):
        def listen(self, event: Event) -> None:
            if isinstance(event, StepFinished):
                plan.write_text("" if event.step == 1 else whole)
            super().listen(event)

    model = Edited(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)},
        at_once=3,
        after={2: 1, 3: 2},
    )
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 3
    assert sorted(model.asked) == [1, 2, 3]


async def test_a_persons_edits_stay_and_are_seen(sandbox: Sandbox) -> None:
    sandbox.write(
        Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), also=("README",))
    )
    root = sandbox.root

    def while_it_runs(prompt: str) -> str:
        if "mine" not in prompt:
            (root / "README").write_text("mine\n")
        return says("b.txt", "good")

    model = Together({1: says("a.txt", "good"), 2: while_it_runs}, at_once=2)
    events = await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 2
    assert sandbox.text("README") == "mine\n"
    assert NoticeKind.SIDE_BY_SIDE in noticed(events)
    assert "mine" in model.prompts[-1]


async def test_going_back_knows_steps_that_ran_side_by_side(sandbox: Sandbox) -> None:
    sandbox.write(*(Step(f"{name}.txt", check(f"{name}.txt")) for name in "abc"))
    answers = {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)}
    await carried_out(sandbox, Together(answers, at_once=3, after={2: 1, 3: 2}))
    engine = sandbox.engine()
    with engine.recording():
        (diff,) = [
            event
            for event in await collect(engine.diff(2))
            if isinstance(event, StepDiff)
        ]
        assert "+good" in diff.diff
        assert "b.txt" in diff.diff
        assert "a.txt" not in diff.diff
        await engine.undo(2)
    engine.close()
    assert sandbox.statuses() == ["completed", "pending", "pending"]
    assert (sandbox.root / "a.txt").exists()
    assert not (sandbox.root / "b.txt").exists()


async def test_a_step_that_names_no_files_runs_alone_at_its_place(
    sandbox: Sandbox,
) -> None:
    sandbox.write(
        Step("a.txt"), Step("b.txt"), Step(None, "none"), Step("c.txt"), Step("d.txt")
    )
    answers = {
        1: says("a.txt", "1"),
        2: says("b.txt", "2"),
        3: "It is decided.",
        4: says("c.txt", "4"),
    }
    model = Together({**answers, 5: says("d.txt", "5")}, at_once=2)
    events = await carried_out(sandbox, model)
    begun = [
        (event.step, event.side_tree)
        for event in events
        if isinstance(event, StepStarted)
    ]
    assert (3, False) in begun
    assert begun.index((3, False)) > max(
        begun.index((1, False)), begun.index((2, False))
    )
    assert min(begun.index((4, True)), begun.index((5, True))) > begun.index((3, False))
    assert sandbox.statuses() == ["completed"] * 5


async def test_without_a_repository_steps_run_one_after_the_other(
    tmp_path: Path,
) -> None:
    sandbox = Sandbox(tmp_path.resolve(), flags={"jobs": 3}).write(
        Step("a.txt"), Step("b.txt")
    )
    model = Together({1: says("a.txt", "1"), 2: says("b.txt", "2")})
    events = await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 2
    assert NoticeKind.SIDE_BY_SIDE in noticed(events)


def _call(name: str, **arguments: str) -> ToolCall:
    return ToolCall("same", name, json.dumps(arguments))


async def test_what_commands_made_beside_comes_along(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("made.txt")), Step("b.txt", check("b.txt")))
    makes = (
        "python -c \"open('made.txt', 'w').write('good'); open('a.txt',"
        " 'a').write('more')\""
    )
    rounds = {
        1: [
            _call("create_file", file_path="a.txt", content="a\n"),
            _call("execute_command", command=makes),
        ]
    }
    model = WithTools({1: "Done.", 2: says("b.txt", "good")}, at_once=2, rounds=rounds)
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 2
    assert sandbox.text("made.txt") == "good"
    assert sandbox.text("a.txt") == "a\nmore"
    assert sorted(model.asked) == [1, 1, 1, 2]
    engine = sandbox.engine()
    with engine.recording():
        await engine.undo(1)
    engine.close()
    assert not (sandbox.root / "made.txt").exists()


async def test_a_file_that_was_only_read_counts(sandbox: Sandbox) -> None:
    (sandbox.root / "read.txt").write_text("old\n")
    sandbox.write(Step("a.txt"), Step("b.txt"))
    model = WithTools(
        {
            1: [says("a.txt", "good") + says("new/read.txt", "x")],
            2: says("b.txt", "good"),
        },
        at_once=2,
        after={2: 1},
        rounds={
            1: [_call("edit_file", file_path="read.txt", find="old", replace="new")],
            2: [_call("read_file", path="read.txt")],
        },
    )
    events = await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 2
    assert NoticeKind.SIDE_BY_SIDE in noticed(events)
    assert model.asked.count(2) == 4


async def test_each_step_has_its_own_costs(sandbox: Sandbox) -> None:
    """Also of calls that came to nothing, whoever else was asked meanwhile."""
    sandbox.write(*(Step(f"{name}.txt", "none") for name in "abc"))
    model = Together(
        {n: says(f"{name}.txt", f"{n} " * 50 * n) for n, name in enumerate("abc", 1)},
        at_once=3,
    )
    model.breaks = {2}
    await carried_out(sandbox, model)
    engine = sandbox.engine()
    efforts = LoggedRun.read(engine.run.record.log).efforts
    spent = {
        number: step.spent for number, step in engine.run.state.step_executions.items()
    }
    engine.close()
    assert {number: effort.cost for number, effort in efforts.items()} == spent
    assert [efforts[number].model_calls for number in (1, 2, 3)] == [1, 2, 1]
    assert spent[2].tokens > spent[1].tokens
    report = json.loads(
        (sandbox.root / ".cdd" / "runs" / SLUG / "report.json").read_text()
    )
    assert [step["models"] for step in report["steps"]] == [["together"]] * 3


async def test_a_person_is_asked_one_question_at_a_time_and_about_each_change_once(
    sandbox: Sandbox,
) -> None:
    sandbox.flags["approval"] = "ask"
    sandbox.write(*(Step(f"{name}.txt", check(f"{name}.txt")) for name in "abc"))
    person = sandbox.frontend = SlowPerson()
    model = Together(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)}, at_once=3
    )
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 3
    assert sorted(person.asked) == ["1", "2", "3"]
    assert person.most == 1


async def test_a_question_that_waits_for_its_turn_follows_the_mode(
    sandbox: Sandbox,
) -> None:
    sandbox.flags["approval"] = "ask"
    sandbox.write(*(Step(f"{name}.txt", check(f"{name}.txt")) for name in "abc"))
    sandbox.real_model = model = Together(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)}, at_once=3
    )

    class Loosening(SlowPerson):
        async def review(self, review: Review) -> Decision:
            answer = await super().review(review)
            while len(proposed) < 3:  # the others wait for their turn
                await asyncio.sleep(0.01)
            engine.runner.approval.mode.change("edits")
            return answer

    def note(event: Event) -> None:
        model.listen(event)
        if isinstance(event, ChangesProposed):
            proposed.append(event.step)

    proposed: list[int] = []
    person = sandbox.frontend = Loosening()
    engine = sandbox.engine()
    with engine.recording(), told_to(note):
        await collect(engine.run_all())
    engine.close()
    assert sandbox.statuses() == ["completed"] * 3
    assert len(person.asked) == 1


async def test_a_no_stops_the_run_and_what_others_did_is_kept(sandbox: Sandbox) -> None:
    sandbox.flags["approval"] = "ask"
    sandbox.write(
        *(Step(f"{name}.txt", check(f"{name}.txt")) for name in "ab"),
        Step("c.txt", depends="Step 2"),
    )
    sandbox.frontend = SlowPerson(refuses="1")
    model = Together(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)},
        at_once=2,
        after={2: 1},
    )
    sandbox.real_model = model
    engine = sandbox.engine()
    with engine.recording(), told_to(model.listen):
        await collect(engine.run_all())
    assert isinstance(engine.stopped_by, NotApproved)
    engine.close()
    assert sandbox.statuses()[0] == "pending"
    assert not (sandbox.root / "a.txt").exists()
    assert sandbox.statuses()[1:] == ["completed", "pending"]


async def test_what_a_step_lacked_of_another_is_there_in_the_end(
    sandbox: Sandbox,
) -> None:
    """The plan does not say that it depends on it."""
    sandbox.write(
        Step("a.txt", check("a.txt")),
        Step("b.txt", check("a' + '.txt")),  # without the path of step 1
        Step("c.txt", "none", "Step 2"),
    )
    model = Together(
        {n: says(f"{name}.txt", "good") for n, name in enumerate("abc", 1)}, at_once=2
    )
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 3
    assert sorted(model.asked) == [1, 2, 2, 3]


async def test_what_is_said_in_words_has_its_step(sandbox: Sandbox) -> None:
    """Here that a file of the step cannot be shown."""
    (sandbox.root / "data.bin").write_bytes(b"\x00\x80\xff")
    sandbox.write(Step("a.txt", "none", also=("data.bin",)), Step("b.txt", "none"))
    events = await carried_out(
        sandbox,
        Together({1: says("a.txt", "good"), 2: says("b.txt", "good")}, at_once=2),
    )
    assert sandbox.statuses() == ["completed"] * 2
    assert [
        event.step
        for event in events
        if isinstance(event, Notice) and event.kind is NoticeKind.NOT_SENT
    ] == [1]


async def test_steps_with_a_file_in_common_wait_for_each_other(
    sandbox: Sandbox,
) -> None:
    """Also where one names a folder that the other's file is in."""
    sandbox.write(
        Step("a/one.txt", "none"),
        Step("b.txt", "none"),
        Step("a/one.txt", "none"),
        Step("a", "none"),
    )
    model = Together(
        {
            1: says("a/one.txt", "1"),
            2: says("b.txt", "2"),
            3: says("a/one.txt", "3"),
            4: says("a/two.txt", "4"),
        }
    )
    await carried_out(sandbox, model, attempts=3)
    assert sandbox.statuses() == ["completed"] * 4
    assert [step for step in model.asked if step != 2] == [1, 3, 4]
    assert sandbox.text("a/one.txt") == "3\n"
