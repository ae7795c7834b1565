"""Printed without a screen: the catalogue of the sentences that events have in
`cdd exec` and the others.
"""

import pytest

from cdd_agent.events.action_events import (
    ActionFinished,
    ActionsFinished,
    ActionStarted,
)
from cdd_agent.events.dialogue_events import ModelReplaced, ReplyDelta, ReplyFinished
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.outside_events import (
    OutsideDiff,
    OutsideListed,
    OutsideRedone,
    OutsideUndone,
    OutsideView,
)
from cdd_agent.events.question_events import PersonAnswered
from cdd_agent.events.run_events import BaselineTaken, RunFinished
from cdd_agent.events.shell_events import ModelChosen, ModelsFound, OwnCommandFinished
from cdd_agent.events.step_events import (
    ChangesApplied,
    ChangesPutBack,
    StepsRedone,
    StepsUndone,
    TestsFinished,
)
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.stream import Event, beside_the_turn
from cdd_agent.events.ticket_events import (
    CriteriaShown,
    CriterionProof,
    PlanChecked,
    PlanOpened,
    SpecOpened,
    TicketsListed,
    TicketView,
)
from cdd_agent.faces.printer import PlainPrinter, TextPrinter
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.tickets.plan import Problem
from cdd_agent.tickets.status import (
    CriterionEdit,
    EditedCriterion,
    MissingWork,
    RunStatus,
    StepOutcome,
    StepStatus,
    Unproven,
    Verification,
)
from tests.support.tables import each_row
from tests.words.examples import RUN, SLUG


def printed(capsys: pytest.CaptureFixture[str], *events: Event) -> str:
    printer = TextPrinter()
    for event in events:
        printer.show(event)
    printer.close()
    return capsys.readouterr().out


RUN_SAID = """\
bug-login: Login fails
  ○ 1. Test it
  ○ 2. Fix it
Before step 1, `pytest`: 4 passed, 1 failed. These existing failures won't count against unrelated steps (2.0 s)
Step 1: Test it
asking any/model
read login.py:1-40
! read lost.py: lost.py does not exist
edit login.py +1 −1
! $ ruff check .: exit code 1
reply: 1,200 tokens in, 300 out
created tests/test_login.py
changed login.py
deleted old.py
! not listed in the plan for this step: notes.txt
! Attempt 1 failed: `pytest` failed (exit code 1). Asking again.
restored login.py
merged with your edits: README.md
! edited since, left unchanged: tests/test_login.py
Step 1: Test it (attempt 2)
✓ `pytest` passed (1.2 s)
✓ Step 1 completed (1/2)
committed as 0123456789, 89abcdef01 in lib/core
! `pytest`: 5 passed, 1 failed as before step 1 (1.0 s)
! failed before too: tests/test_old.py::test_old
! Step 2 completed, old failures remain (2/2)
✓ bug-login done: 1/2 steps passed, 1 with old failures, 2 files, 0:01:15
!   old failures remain: 2. Fix it
Committed: 0123456789.
Review the changes of step 2 and commit them.
"""


def test_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *RUN) == RUN_SAID


DONE = StepSummary(1, "Make it", StepStatus.COMPLETED, Verification.PASSED)
EDITED = (
    EditedCriterion(2, "A user can log in", CriterionEdit.CHANGED_SINCE_VERIFIED),
    EditedCriterion(3, "It is safe", CriterionEdit.NEW),
)


@each_row(
    ("event", "lines"),
    [
        (
            Notice("Words of the program.", Tone.WARNING),
            ["! Words of the program."],
        ),
        (
            TicketsListed(()),
            ["No tickets yet. Create one: `cdd new feature NAME`."],
        ),
        (
            TicketsListed((), state="done", type="bug"),
            ["No ticket of the type bug is done."],
        ),
        (
            TicketsListed(
                (
                    TicketView(SLUG, "in progress", 1, 2, where="in its own tree"),
                    TicketView("spike-x", "unreadable", error="spec.yaml:1"),
                )
            ),
            [
                "bug-login  in progress 1/2  in its own tree",
                "spike-x    unreadable  spec.yaml:1",
            ],
        ),
        (
            SpecOpened(
                SLUG,
                "",
                f"tickets/{SLUG}/spec.yaml",
                ("title: one line", "description: what, and why"),
            ),
            [
                "bug-login",
                "! tickets/bug-login/spec.yaml is not complete. Missing:",
                "  title: one line",
                "  description: what, and why",
                "Next: write them into tickets/bug-login/spec.yaml, or let Socrates ask you: `/socrates bug-login` in the shell.",
            ],
        ),
        (
            SpecOpened(SLUG, "Login fails", f"tickets/{SLUG}/spec.yaml", ()),
            [
                "bug-login: Login fails",
                "✓ The spec is complete.",
                "Next: make a plan with `/plan bug-login` in the shell.",
            ],
        ),
        (
            SpecOpened(
                SLUG,
                "Login fails",
                f"tickets/{SLUG}/spec.yaml",
                (),
                ("no check yet: It is fast", "open: How many seconds?"),
            ),
            [
                "bug-login: Login fails",
                "! tickets/bug-login/spec.yaml is not complete. Open:",
                "  no check yet: It is fast",
                "  open: How many seconds?",
                "Next: answer them with `/socrates bug-login` in the shell, or plan without the answers: `cdd plan bug-login`.",
            ],
        ),
        (
            PlanChecked(SLUG, "plan.md", ()),
            ["✓ Plan check passed."],
        ),
        (
            PlanChecked(
                SLUG,
                "plan.md",
                (Problem("no_check", 1, 7, "step 1 has no check", is_warning=True),),
            ),
            [
                "! plan.md:7: warning: step 1 has no check",
                "✓ Plan check passed.",
            ],
        ),
        (
            PlanChecked(
                SLUG,
                "plan.md",
                (Problem("cycle", None, 7, "dependency cycle: 1 → 2 → 1"),),
            ),
            [
                "✗ plan.md:7: dependency cycle: 1 → 2 → 1",
                "✗ Plan check failed: 1 problem.",
            ],
        ),
        (
            BaselineTaken(
                1,
                "pytest",
                None,
                None,
                None,
                None,
                3.0,
                "it is still running after 3 s",
            ),
            [
                "! Before step 1, `pytest` gave no usable result: it is still running after 3 s. Every failure will count as new."
            ],
        ),
        (
            BaselineTaken(
                *(1, "make check", 2, None, None, None, 1.0, ""),
                reason="`mypy` is not installed",
            ),
            [
                "! Before step 1, `make check` already fails (exit code 2: `mypy` is not installed). It does not report individual tests, so a step passes only if the whole command does."
            ],
        ),
        (
            BaselineTaken(1, "make check", 2, None, None, None, 1.0, "", is_own=True),
            ["Before step 1, `make check`: failed (exit code 2) (1.0 s)"],
        ),
        (
            BaselineTaken(
                *(1, "npm test", 127, None, None, None, 1.0, ""),
                reason="`vitest` is not installed",
            ),
            [
                "! Before step 1, `npm test` already fails (exit code 127: `vitest` is not installed). It does not report individual tests, so a step passes only if the whole command does."
            ],
        ),
        (
            BaselineTaken(
                *(1, "npm test", 127, None, None, None, 1.0, ""),
                is_own=True,
                reason="`vitest` is not installed",
            ),
            [
                "Before step 1, `npm test`: failed (exit code 127: `vitest` is not installed) (1.0 s)"
            ],
        ),
        (
            BaselineTaken(
                *(1, "pytest a.py", 1, 5, 0, 0, 1.0, ""),
                is_own=True,
                reason="the required coverage of 80% is not reached",
            ),
            [
                "Before step 1, `pytest a.py`: 5 passed, exit code 1: the required coverage of 80% is not reached (1.0 s)"
            ],
        ),
        (
            BaselineTaken(
                *(1, "pytest", 1, 5, 0, 0, 1.0, ""),
                reason="the required coverage of 80% is not reached",
            ),
            [
                "Before step 1, `pytest`: 5 passed, exit code 1: the required coverage of 80% is not reached (1.0 s)"
            ],
        ),
        (
            BaselineTaken(
                *(1, "npm test", None, None, None, None, 1.0),
                "it never ends: it watches files",
                is_unusable=True,
            ),
            [
                "✗ Before step 1, `npm test` never ends: it watches files. Steps that use this check cannot pass. Make the command run first, or set another one."
            ],
        ),
        (
            BaselineTaken(1, "pytest a.py", 1, 1, 2, 0, 1.0, "", is_own=True),
            ["Before step 1, `pytest a.py`: 1 passed, 2 failed (1.0 s)"],
        ),
        (
            BaselineTaken(
                *(1, "pytest a.py", 4, None, None, None, 1.0),
                "it wrote no test report (exit code 4)",
                is_own=True,
            ),
            [
                "Before step 1, `pytest a.py`: it wrote no test report (exit code 4) (1.0 s)"
            ],
        ),
        (
            TestsFinished(
                1, Verification.NONE, "cdd found no test runner that it knows", 0.0
            ),
            ["! Unverified: cdd found no test runner that it knows"],
        ),
        (
            StepFinished(
                1,
                "Test it",
                StepStatus.COMPLETED,
                Verification.NONE,
                None,
                None,
                ("a",),
                (),
                done=1,
                total=2,
            ),
            ["! Step 1 completed, unverified (1/2)"],
        ),
        (
            StepFinished(
                1,
                "Test it",
                StepStatus.FAILED,
                None,
                "the reply gives no file.",
                None,
                (),
                (),
                done=0,
                total=2,
            ),
            ["✗ Step 1 of 2 failed: the reply gives no file"],
        ),
        (
            StepFinished(
                1,
                "Test it",
                StepStatus.FAILED,
                None,
                "2 tests failed.",
                None,
                (),
                (),
                done=0,
                total=2,
                is_earlier_failure=True,
            ),
            [
                "! Step 1 of 2 got no reply, so it was not tried again. Its last attempt failed: 2 tests failed",
            ],
        ),
        (
            StepFinished(
                1,
                "Test it",
                StepStatus.SKIPPED,
                None,
                None,
                "not needed",
                (),
                (),
                done=0,
                total=2,
            ),
            ["! Step 1 skipped: not needed (0/2)"],
        ),
        (
            StepFinished(
                1,
                "Test it",
                StepStatus.PENDING,
                None,
                None,
                None,
                (),
                (),
                done=0,
                total=2,
            ),
            ["Step 1 is pending (0/2)"],
        ),
        (
            StepsUndone(
                (2, 3),
                ("a.py",),
                ("b.py",),
                ("0123456789abcdef",),
                ("c.py",),
                merged=("d.py", "e.py"),
                others=(*"abcdefgh",),
            ),
            [
                "! Steps 2, 3 undone. Type `cdd redo` to restore them.",
                "Reverted: a.py",
                "merged with your edits: d.py, e.py",
                "! edited since, left unchanged: b.py",
                (
                    "! changed by commands outside the step's files, left"
                    " unchanged: a, b, c, d, e, f and 2 more"
                ),
                "! restored with the edits made between the steps: c.py",
                "! commits still on their branch: 0123456789",
            ],
        ),
        (
            StepsRedone((2,), ("a.py",), ("b.py",), ("c.py",)),
            [
                "✓ Step 2 redone.",
                "Restored: a.py",
                "merged with your edits: c.py",
                "! edited since, left unchanged: b.py",
            ],
        ),
        (
            ChangesApplied(
                1,
                ("b.py", "c.py"),
                (),
                (),
                ("a.py",),
                renamed=(("a.py", "b.py"),),
            ),
            ["renamed a.py to b.py", "created c.py"],
        ),
        (
            ChangesPutBack(1, (), (), ("a.py",)),
            ["merged with your edits: a.py"],
        ),
        (
            OutsideUndone(
                "cdd apply reply.md",
                "2026-11-26 10:00",
                ("a.py",),
                ("b.py",),
                ("c.py", "d.py"),
                ("e.py",),
            ),
            [
                "! Undone: `cdd apply reply.md` (2026-11-26 10:00). Type `cdd redo` to restore it.",
                "Reverted: a.py",
                "merged with your edits: c.py, d.py",
                "! edited since, left unchanged: b.py",
                "! changed by commands, left unchanged: e.py",
            ],
        ),
        (
            OutsideRedone("chat: write it", "2026-11-26 10:00", ("a.py",), ()),
            [
                "✓ Redone: `chat: write it` (2026-11-26 10:00).",
                "Restored: a.py",
            ],
        ),
        (
            OutsideDiff("cdd run x.yaml", "2026-11-26 10:00", ""),
            ["`cdd run x.yaml` changed no files itself."],
        ),
        (
            OutsideListed(
                (
                    OutsideView(
                        "chat: go",
                        "2026-11-26 10:02",
                        (),
                        ("x",),
                        is_under_way=True,
                        name="change-8",
                    ),
                    OutsideView(
                        "chat: go",
                        "2026-11-26 10:01",
                        ("a", "b"),
                        is_undone=True,
                        name="change-7",
                    ),
                    OutsideView(
                        "step 1 of feature-a, Add",
                        "2026-11-26 10:00",
                        ("a",),
                        name="feature-a 1",
                    ),
                )
            ),
            [
                "2026-11-26 10:02  change-8  chat: go (under way): no files itself; by commands: x",
                "2026-11-26 10:01  change-7  chat: go (undone): a, b",
                "2026-11-26 10:00  feature-a 1  step 1 of feature-a, Add: a",
            ],
        ),
        (OutsideListed(()), ["No changes that can be undone."]),
        (
            RunFinished(
                SLUG,
                RunStatus.FAILED,
                1,
                1,
                1,
                3,
                None,
                ("a",),
                0,
                (
                    Unproven(1, "Test it", StepOutcome.UNVERIFIED),
                    Unproven(2, "Fix it", StepOutcome.SKIPPED),
                ),
                "verified",
            ),
            [
                "✗ bug-login failed: 0/3 steps passed, 1 unverified, 1 skipped, 1 open, 1 file",
                "!   unverified: 1. Test it",
                "!   skipped: 2. Fix it",
                "✗ The run does not meet `require: verified`: not each step's tests have passed.",
            ],
        ),
        (
            RunFinished(
                SLUG, RunStatus.COMPLETED, 1, 0, 0, 1, 2.0, (), require="verified"
            ),
            [
                "✓ bug-login done: 1/1 step passed, 0 files, 0:00:02",
                ("✓ The run meets `require: verified`: each step's tests have passed."),
            ],
        ),
        (
            RunFinished(
                SLUG,
                RunStatus.FAILED,
                8,
                0,
                0,
                8,
                None,
                ("a",),
                require="verified",
                missing=(
                    MissingWork(
                        1,
                        "Test it",
                        missing=("a", "b", "c", "d"),
                        tests=("test_a.py::test_a",),
                        label="1b",
                    ),
                    MissingWork(2, "Fix it", reverted=("e",), restored=("f",)),
                    *(MissingWork(number, "Go on", ("g",)) for number in range(3, 9)),
                ),
            ),
            [
                "✗ bug-login is not done in this tree: 8/8 steps passed, 1 file",
                "!   1b. Test it: missing files: a, b, c and 1 more; missing tests: test_a.py::test_a",
                "!   2. Fix it: files without the step's change: e; deleted files that exist again: f",
                "!   3. Go on: missing files: g",
                "!   4. Go on: missing files: g",
                "!   5. Go on: missing files: g",
                "!   6. Go on: missing files: g",
                "!   and 2 more steps",
                (
                    "✗ The work of 8 steps is missing in this tree, so the run is"
                    " not done here."
                ),
                "To continue, switch to the branch that has the work (`git switch`), undo the steps (`cdd undo bug-login --step 1b`), or start over (`cdd exec bug-login --start-over`).",
            ],
        ),
        (
            RunFinished(
                SLUG,
                RunStatus.IN_PROGRESS,
                2,
                0,
                0,
                2,
                75.0,
                ("a",),
                edited_criteria=(EDITED[1],),
            ),
            [
                "! bug-login is not done: 2/2 steps passed, 1 file, 0:01:15",
                "!   criterion 3 is new: “It is safe”",
                "! No step serves its current wording. Add a step whose `**Serves:**` names it: `/plan bug-login` in the shell, `cdd plan bug-login --regenerate`, or by hand.",
            ],
        ),
        (
            RunFinished(
                SLUG,
                RunStatus.FAILED,
                1,
                0,
                1,
                1,
                2.0,
                (),
                0,
                (Unproven(1, "Test it", Verification.NONE),),
                "verified",
                edited_criteria=EDITED,
            ),
            [
                "✗ bug-login failed: 0/1 step passed, 1 unverified, 0 files, 0:00:02",
                "!   unverified: 1. Test it",
                "!   criterion 2 is changed since it was verified: “A user can log in”",
                "!   criterion 3 is new: “It is safe”",
                "! No step serves their current wording. Add a step whose `**Serves:**` names them: `/plan bug-login` in the shell, `cdd plan bug-login --regenerate`, or by hand.",
                "✗ The run does not meet `require: verified`: not each step's tests have passed; criterion 2 is changed since it was verified; criterion 3 is new.",
            ],
        ),
        (
            PlanOpened(
                SLUG,
                "Log in",
                (DONE,),
                resumed=True,
                edited_criteria=tuple(
                    EditedCriterion(place, "It is safe", CriterionEdit.CHANGED)
                    for place in range(1, 9)
                ),
            ),
            [
                "bug-login: Log in",
                "  ✓ 1. Make it",
                "  1/1 step passed",
                *(
                    f"!   criterion {place} is changed since the run began: “It is safe”"
                    for place in range(1, 7)
                ),
                "!   and 2 more criteria",
            ],
        ),
        (
            ModelsFound(
                (OfferedModel("llama3.2", "Ollama", "http://127.0.0.1:11434/v1"),),
                ("LM Studio",),
                more=2,
            ),
            [
                "LM Studio is running on this computer but has no model yet.",
                "Models on this computer:",
                "  1  llama3.2  Ollama",
                "  and 2 more: type `cdd model` to list them",
                "Type `cdd model 1 --save` to use the first one for this project.",
            ],
        ),
        (
            ModelChosen("any/model", None),
            [
                "✓ The model is now any/model, for this session (add --save to keep it for the project)."
            ],
        ),
        (
            ModelChosen(
                "any/model", "http://127.0.0.1:9/v1", ".cdd/config.yaml", "planner"
            ),
            [
                "✓ The planner model is now any/model at http://127.0.0.1:9/v1, saved in .cdd/config.yaml."
            ],
        ),
        (
            ModelReplaced(1, "second", "first", "No money is left."),
            ["! Using second instead of first: No money is left."],
        ),
        (
            OwnCommandFinished("ls", "Exit code 3"),
            ["! Exit code 3"],
        ),
        (
            PersonAnswered("May this run?", "yes"),
            [
                "May this run?",
                "Your answer: yes",
            ],
        ),
        (
            PersonAnswered("May this run?", ""),
            [
                "May this run?",
                "! Not answered",
            ],
        ),
        (
            ActionStarted(1, 2, "create a.txt (1 line)"),
            ["[1/2] create a.txt (1 line)"],
        ),
        (
            ActionFinished(1, 2, "create a.txt (1 line)", "SUCCESS", ""),
            ["✓ done"],
        ),
        (
            ActionFinished(2, 2, "run `ls`", "FAILURE", "Exit code 3"),
            ["✗ Exit code 3"],
        ),
        (
            ActionsFinished(1, 1, 1, 2.5, "/srv/shop"),
            ["! 1 of 3 actions succeeded, 1 failed, 1 not run, in 2.5 s, in /srv/shop"],
        ),
        (
            CriteriaShown(
                "bug-login",
                "Log in",
                (
                    CriterionProof(
                        1,
                        "It is quick",
                        (DONE,),
                        tuple(f"t{n}" for n in range(8)),
                        ("a.py",),
                    ),
                    CriterionProof(2, "It is safe", (DONE, StepSummary(2, "Hash"))),
                    CriterionProof(3, "It is nice"),
                    CriterionProof(4, "It is new", edit=CriterionEdit.NEW),
                    CriterionProof(
                        5, "It is old", edit=CriterionEdit.CHANGED_SINCE_VERIFIED
                    ),
                ),
            ),
            [
                "bug-login: Log in",
                "✓ 1. It is quick",
                "    step ✓ 1. Make it",
                "    tests: t0, t1, t2, t3, t4, t5 and 2 more",
                "    files: a.py",
                "◐ 2. It is safe",
                "    step ✓ 1. Make it",
                "    step ○ 2. Hash",
                "○ 3. It is nice",
                "!     no step of the plan covers it",
                "○ 4. It is new",
                ("!     new; no step of the plan covers its current text"),
                "○ 5. It is old",
                "!     changed since it was verified; no step of the plan covers its current text",
            ],
        ),
        (
            CriteriaShown("bug-login", "Log in", ()),
            ["bug-login: Log in", "! The spec has no acceptance criteria yet."],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_else_is_told(
    event: Event, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, event).splitlines() == lines


def test_a_look_breaks_no_line_of_a_reply(capsys: pytest.CaptureFixture[str]) -> None:
    printer = PlainPrinter()
    printer.show(ReplyDelta(1, "one\ntw"))
    with beside_the_turn():
        printer.show(Notice("so far: 2 calls"))
    printer.show(ReplyDelta(1, "o\nthree"))
    printer.show(ReplyFinished(1, None))
    assert capsys.readouterr().out == "one\nso far: 2 calls\ntwo\nthree\n"
