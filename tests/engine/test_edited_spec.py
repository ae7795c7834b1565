"""The spec is edited before, during and after a run: evidence stays with the words that
it was for, and a ticket with criteria that no step saw is not done.
"""

import json
from collections.abc import Callable, Sequence

import yaml

from cdd_agent.commands.listing import listed, opened, view
from cdd_agent.commands.overview import overviews
from cdd_agent.engine.criteria import criteria_of
from cdd_agent.errors import ExitCode
from cdd_agent.events.dialogue_events import ReplyStarted
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.step_events import ChangesApplied
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.plan_check import check_plan
from cdd_agent.tickets.state_file import load_state
from cdd_agent.tickets.status import CriterionEdit, RunStatus
from cdd_agent.tickets.store import Ticket
from tests.support.examples import cover_values
from tests.support.listening import collect, stop_at
from tests.support.projects import SLUG, SPEC, Sandbox, Step, noticed, says
from tests.support.tables import each_row

A, B, C = "a.txt says good", "b.txt says good", "c.txt says good"
STEPS = tuple(Step(f"{name}.txt", tested="good") for name in "abc")
Edit = Callable[[list[str]], list[str]]
EDITS: dict[str, Edit] = {
    "insert": lambda old: ["A user can log in", *old],
    "remove": lambda old: [A, C],
    "swap": lambda old: [B, A, C],
    "reword": lambda old: [A, "b.txt says nothing", C],
    "append": lambda old: [*old, "A user can log in"],
    "replace all": lambda old: ["x is true", "y is true", "z is true"],
    "white space": lambda old: [f"  {A.replace(' ', '   ')}\n", B, "c.txt\nsays good"],
    "move": lambda old: [C, A, B],
    "duplicate": lambda old: [A, B, C, B],
    "reword, restore": lambda old: [A, "b.txt says nothing", C],
}
RESTORED = "reword, restore"
# For each edit and each kind of plan, the criteria of the spec in their order: the
# steps that serve each; `-` if none does, or else why not.
EXPECTED = """
                | numbers                    | words                      | none
insert          |                            |                            |
  before        | 1 2 3 -                    | - 1 2 3                    | - - - -
  during        | new 1 2 3                  | new 1 2 3                  | - - - -
  after         | new 1 2 3                  | new 1 2 3                  | new - - -
remove          |                            |                            |
  before        | 1 2                        | 1 3                        | - -
  during        | 1 23                       | 1 3                        | - -
  after         | 1 3                        | 1 3                        | - -
swap            |                            |                            |
  before        | 1 2 3                      | 2 1 3                      | - - -
  during        | 2 1 3                      | 2 1 3                      | - - -
  after         | 2 1 3                      | 2 1 3                      | - - -
reword          |                            |                            |
  before        | 1 2 3                      | 1 - 3                      | - - -
  during        | 1 2 3                      | 1 changed 3                | - - -
  after         | 1 verified 3               | 1 verified 3               | - verified -
append          |                            |                            |
  before        | 1 2 3 -                    | 1 2 3 -                    | - - - -
  during        | 1 2 3 new                  | 1 2 3 new                  | - - - -
  after         | 1 2 3 new                  | 1 2 3 new                  | - - - new
replace all     |                            |                            |
  before        | 1 2 3                      | - - -                      | - - -
  during        | verified 2 3               | verified changed changed   | - - -
  after         | verified verified verified | verified verified verified | verified verified verified
white space     |                            |                            |
  before        | 1 2 3                      | 1 2 3                      | - - -
  during        | 1 2 3                      | 1 2 3                      | - - -
  after         | 1 2 3                      | 1 2 3                      | - - -
move            |                            |                            |
  before        | 1 2 3                      | 3 1 2                      | - - -
  during        | 3 1 2                      | 3 1 2                      | - - -
  after         | 3 1 2                      | 3 1 2                      | - - -
duplicate       |                            |                            |
  before        | 1 2 3 2                    | 1 2 3 2                    | - - - -
  during        | 1 2 3 2                    | 1 2 3 2                    | - - - -
  after         | 1 2 3 2                    | 1 2 3 2                    | - - - -
reword, restore |                            |                            |
  before        | 1 2 3                      | 1 2 3                      | - - -
  during        | 1 changed 3                | 1 changed 3                | - - -
  after         | 1 2 3                      | 1 2 3                      | - - -
"""  # noqa: E501
MARKS = {
    "new": CriterionEdit.NEW,
    "changed": CriterionEdit.CHANGED,
    "verified": CriterionEdit.CHANGED_SINCE_VERIFIED,
}


def rows() -> list[tuple[str, str, str, str]]:
    """The edit, its time, the kind of plan, and what is expected of each criterion."""
    table = []
    edit = ""
    for line in EXPECTED.strip("\n").splitlines()[1:]:
        name, *expected = (cell.strip() for cell in line.split("|"))
        if name in EDITS:
            edit = name
            continue
        for kind, cell in zip(("numbers", "words", "none"), expected, strict=True):
            table.append((edit, name, kind, cell))
    assert {row[0] for row in table} == set(EDITS)
    return table


def ticket(sandbox: Sandbox) -> Ticket:
    return sandbox.project.tickets.find(SLUG)


def write_criteria(sandbox: Sandbox, criteria: Sequence[str]) -> None:
    spec = yaml.safe_load(SPEC) | {"acceptance_criteria": list(criteria)}
    (sandbox.ticket / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))


def write_ticket(sandbox: Sandbox, kind: str) -> None:
    """A ticket with three steps for three criteria."""
    sandbox.write(*STEPS)
    write_criteria(sandbox, (A, B, C))
    refs: dict[str, tuple[int | str, ...]] = {"numbers": (1, 2, 3), "words": (A, B, C)}
    text = (sandbox.ticket / "plan.md").read_text()
    if kind in refs:
        for name, ref in zip("abc", refs[kind], strict=True):
            heading = f"Make {name}.txt\n"
            text = text.replace(heading, f"{heading}\n**Serves:** {ref}\n")
    (sandbox.ticket / "plan.md").write_text(text)
    sandbox.replies(*(says(f"{name}.txt", "good") for name in "abc"))


async def run_steps(sandbox: Sandbox, count: int) -> None:
    """Run the next steps, one after the other."""
    engine = sandbox.engine()
    try:
        for _ in range(count):
            step = engine.run.next_step
            assert step is not None
            await collect(engine.run_step(step))
    finally:
        engine.close()


async def carry_out(sandbox: Sandbox, require: str) -> tuple[RunFinished, ExitCode]:
    sandbox.flags = {**sandbox.flags, "require": require}
    engine = sandbox.engine()
    try:
        with engine.recording():
            events = await collect(engine.carry_out())
        (finished,) = [event for event in events if isinstance(event, RunFinished)]
        return finished, engine.exit_code
    finally:
        engine.close()


async def run_and_edit(sandbox: Sandbox, edit: str, when: str) -> None:
    def change() -> None:
        write_criteria(sandbox, EDITS[edit]([A, B, C]))

    def restore() -> None:
        if edit == RESTORED:
            write_criteria(sandbox, (A, B, C))

    if when == "before":
        change()
        restore()
        await run_steps(sandbox, 3)
    elif when == "during":
        await run_steps(sandbox, 1)
        change()
        await run_steps(sandbox, 2)
        restore()
    else:
        await run_steps(sandbox, 3)
        change()
        restore()


@each_row(("edit", "when", "kind", "expected"), cover_values(rows(), 3))
async def test_every_face_has_the_same_answer_to_an_edited_spec(
    sandbox: Sandbox, edit: str, when: str, kind: str, expected: str
) -> None:
    write_ticket(sandbox, kind)
    await run_and_edit(sandbox, edit, when)

    spec = ticket(sandbox).read_spec()
    shown = criteria_of(spec, ticket(sandbox), Redactor()).criteria
    seen = []
    for criterion in shown:
        steps = "".join(str(step.number) for step in criterion.steps) or "-"
        marks = [word for word, mark in MARKS.items() if mark is criterion.edit]
        seen += marks or [steps]
        files = {f"{'abc'[step.number - 1]}.txt" for step in criterion.steps}
        assert set(criterion.files) == files
    assert " ".join(seen) == expected

    edited = [
        (place, MARKS[word])
        for place, word in enumerate(expected.split(), 1)
        if word in MARKS
    ]
    assert view(ticket(sandbox)).state == ("spec changed" if edited else "done")
    (overview,) = overviews(sandbox.project)
    assert overview.next_line == f"/{'plan' if edited else 'diff'} {SLUG}"
    status = opened(ticket(sandbox))
    assert isinstance(status, PlanOpened)
    assert [(each.place, each.edit) for each in status.edited_criteria] == edited
    assert problem_places(sandbox) == [place for place, _ in edited]
    for require, failure in (
        ("off", RunStatus.IN_PROGRESS),
        ("verified", RunStatus.FAILED),
    ):
        finished, exit_code = await carry_out(sandbox, require)
        assert finished.status is (failure if edited else RunStatus.COMPLETED)
        assert [(each.place, each.edit) for each in finished.edited_criteria] == edited
        assert exit_code == (ExitCode.FAILED if edited else ExitCode.DONE)
        report = json.loads(
            (sandbox.root / ".cdd/runs" / SLUG / "report.json").read_text()
        )
        assert report["status"] == finished.status
        assert len(report["edited_criteria"]) == len(edited)


def problem_places(sandbox: Sandbox) -> list[int]:
    """The criteria that `plan check` reports as edited."""
    plan = ticket(sandbox).read_plan()
    state = load_state(ticket(sandbox), plan)
    spec = ticket(sandbox).read_spec()
    problems = check_plan(plan, spec, sandbox.root, state)
    texts = [
        problem.text
        for problem in problems
        if problem.kind == "edited_criterion" and not problem.is_warning
    ]
    return [int(text.split()[2]) for text in texts]


@each_row(
    ("kind", "edit", "is_used"),
    [
        ("numbers", "white space", True),
        ("numbers", "swap", True),
        ("numbers", "reword", True),
        ("numbers", "replace all", False),
        ("words", "insert", True),
        ("words", "replace all", False),
        ("none", "white space", True),
        ("none", "swap", True),
        ("none", "reword", False),
    ],
)
async def test_a_saved_reply_is_used_only_for_the_criteria_that_it_was_asked_for(
    sandbox: Sandbox, kind: str, edit: str, is_used: bool
) -> None:
    write_ticket(sandbox, kind)
    engine = sandbox.engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, ChangesApplied))
    engine.close()
    write_criteria(sandbox, EDITS[edit]([A, B, C]))
    sandbox.replies(says("a.txt", "good"))
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step is not None
    events = await collect(engine.run_step(step))
    engine.close()
    saved = [event.saved for event in events if isinstance(event, ReplyStarted)]
    assert saved == [is_used]


async def test_the_spec_that_is_edited_while_a_run_is_open_is_taken_up(
    sandbox: Sandbox,
) -> None:
    write_ticket(sandbox, "words")
    engine = sandbox.engine()
    try:
        step = engine.run.next_step
        assert step is not None
        await collect(engine.run_step(step))
        write_criteria(sandbox, [A, B, C, "A user can log in"])
        # shown at once, and by the steps to come
        assert [each.place for each in engine.run.opened().edited_criteria] == [4]
        events = await collect(engine.run_all())
        assert NoticeKind.SPEC_CHANGED in noticed(events)
        assert "A user can log in" in sandbox.prompt()
        finished = engine.run.summary()
        assert (finished.completed, finished.status) == (3, RunStatus.IN_PROGRESS)
        # a spec that cannot be read is judged as it was
        (sandbox.ticket / "spec.yaml").write_text("title: [")
        assert engine.run.summary() == finished
    finally:
        engine.close()


async def test_a_run_of_an_earlier_version_is_judged_by_the_spec_of_its_first_opening(
    sandbox: Sandbox,
) -> None:
    write_ticket(sandbox, "numbers")
    await run_steps(sandbox, 3)
    state = sandbox.state()
    for key in ("criteria", "done_spec"):
        del state[key]
    for step in state["step_executions"].values():
        del step["serves"], step["spec_version"]
    (sandbox.ticket / "execution-state.json").write_text(json.dumps(state))
    write_criteria(sandbox, EDITS["reword"]([A, B, C]))
    assert view(ticket(sandbox)).state == "done"
    finished, _ = await carry_out(sandbox, "verified")
    assert finished.status is RunStatus.COMPLETED
    assert sandbox.state()["criteria"]
    write_criteria(sandbox, (A, B, C))
    assert view(ticket(sandbox)).state == "spec changed"


async def test_tickets_whose_spec_was_changed_can_be_listed(sandbox: Sandbox) -> None:
    write_ticket(sandbox, "words")
    await run_steps(sandbox, 3)
    tickets = sandbox.project.tickets
    assert not listed(tickets, ["spec-changed"]).tickets
    write_criteria(sandbox, EDITS["reword"]([A, B, C]))
    (found,) = listed(tickets, ["spec-changed"]).tickets
    assert (found.slug, found.done, found.total) == (SLUG, 3, 3)
    # without criteria nothing is asked for, and nothing is known of a broken spec
    (sandbox.ticket / "spec.yaml").write_text("")
    assert view(ticket(sandbox)).state == "done"
    (sandbox.ticket / "spec.yaml").write_text("title: [")
    assert view(ticket(sandbox)).state == "unreadable"
