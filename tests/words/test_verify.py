"""Words about verifying a ticket again."""

from cdd_agent.events.notices import Tone
from cdd_agent.events.ticket_events import PlanOpened, TicketsListed, TicketView
from cdd_agent.events.verify_events import (
    StepResult,
    VerifiedCheck,
    VerifiedStep,
    VerifyFinished,
    VerifyStarted,
)
from cdd_agent.tickets.status import (
    ChangedFiles,
    CriterionEdit,
    EditedCriterion,
    MissingWork,
)
from cdd_agent.wording.describe import describe
from tests.support.tables import each_row

CHECKS = (
    VerifiedCheck("pytest", ("1", "2"), True, "`pytest` failed (exit code 1): test_a"),
    VerifiedCheck("make lint", ("3", "4"), True, "`make lint` failed (exit code 2)"),
)


def lines(*steps: VerifiedStep, **more: tuple[object, ...]) -> list[str]:
    event = VerifyFinished("feature-x", steps, CHECKS, **more)  # type: ignore[arg-type]
    return [text for text, _ in describe(event)]


def broken(number: int, title: str, **what: object) -> VerifiedStep:
    return VerifiedStep(number, title, StepResult.BROKEN, **what)  # type: ignore[arg-type]


def test_the_beginning() -> None:
    assert describe(VerifyStarted("feature-x", ("pytest", "make lint")))[0][0] == (
        "feature-x: running 2 checks of completed steps on a copy of your files"
    )


@each_row(
    "results, tone",
    [
        (("holds", "holds"), Tone.GOOD),
        (("holds", "skipped", "open"), Tone.GOOD),
        (("holds", "unverified"), Tone.WARNING),
        (("unverified",), Tone.WARNING),
        (("skipped", "open"), Tone.WARNING),
        (("holds", "broken", "unverified"), Tone.ERROR),
    ],
)
def test_only_steps_that_hold_are_good(results: tuple[str, ...], tone: Tone) -> None:
    steps = [
        VerifiedStep(number, "T", StepResult(one)) for number, one in enumerate(results)
    ]
    (_, first), *_ = describe(VerifyFinished("feature-x", tuple(steps), CHECKS))
    assert first is tone


def test_all_steps_hold() -> None:
    steps = [VerifiedStep(number, "T", StepResult.HOLDS) for number in (1, 2)]
    assert lines(*steps) == ["feature-x: 2 steps hold"]


def test_each_finding_has_its_words() -> None:
    missing = MissingWork(2, "B", missing=("b.py",), reverted=("c.py",))
    assert lines(
        broken(1, "A", failed=("test_a",), lost=("test_b", "test_c")),
        broken(2, "B", missing=missing),
        broken(3, "C", checks=("make lint",)),
        broken(4, "D", checks=("make lint",)),
        broken(5, "E", has_lost_check=True),
        VerifiedStep(6, "F", StepResult.HOLDS, label="6a"),
    ) == [
        "feature-x: 1 step holds, 5 no longer hold",
        "  1. A: tests that passed now fail: test_a; tests that passed are now missing or skipped: test_b, test_c",
        "  2. B: missing files: b.py; files without the step's change: c.py",
        "  3. C, 4. D: `make lint` failed (exit code 2)",
        "  5. E: the check that verified it is missing or no longer runs tests",
    ]


def test_steps_without_proof_are_never_among_those_that_hold() -> None:
    assert lines(
        VerifiedStep(1, "A", StepResult.UNVERIFIED),
        VerifiedStep(2, "B", StepResult.SKIPPED),
        VerifiedStep(3, "C", StepResult.OPEN, label="2b"),
        VerifiedStep(4, "D", StepResult.OPEN),
    ) == [
        "feature-x: 1 unverified, 1 skipped, 2 open",
        "  unverified: 1. A",
        "  skipped: 2. B",
        "  open: 2b. C, 4. D",
    ]


def test_what_is_not_about_a_step() -> None:
    edited = EditedCriterion(2, "It adds", CriterionEdit.CHANGED_SINCE_VERIFIED)
    assert lines(
        VerifiedStep(1, "A", StepResult.HOLDS),
        other_failures=("test_mine",),
        missing=("data/", "big.bin"),
        edited_criteria=(edited,),
    ) == [
        "feature-x: 1 step holds",
        "  failing tests that no completed step ran: test_mine",
        "  not in the copy, because git ignores it: data/, big.bin",
        "  criterion 2 is changed since it was verified: “It adds”",
    ]


def test_what_has_changed_since_a_run() -> None:
    steps = (
        ChangedFiles(2, "Add it", ("a.py", "b.py", "c.py", "d.py"), "1b"),
        *(ChangedFiles(number, "Go on", ("g.py",)) for number in range(3, 10)),
    )
    event = PlanOpened("feature-x", "X", (), True, changed=steps, spec_changed=True)
    lines = [text for text, _ in describe(event)]
    assert lines[1] == "  changed since step 1b, Add it: a.py, b.py, c.py and 1 more"
    assert lines[7:] == [
        "  and files of 2 more steps",
        "  spec.yaml has changed since the run",
        "  Run the checks again: `cdd verify feature-x`",
    ]


def test_the_list_counts_what_has_changed() -> None:
    tickets = (
        TicketView("feature-x", "done", 2, 2, changed=1, where="in its own tree"),
        TicketView("bug-y", "done", 2, 2, changed=2),
        TicketView("bug-z", "done", 2, 2),
    )
    assert [text for text, _ in describe(TicketsListed(tickets))] == [
        "feature-x  done  1 file has changed since; in its own tree",
        "bug-y      done  2 files have changed since",
        "bug-z      done",
    ]
