"""The words of the shell: the catalogue of its transcript, its hints and its questions,
as a person reads them.
"""

import re

from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.question_events import (
    ActionProposed,
    Choice,
    CommandProposed,
    LostTest,
    Proposal,
    TestLossProposed,
)
from cdd_agent.events.step_events import StepStarted
from cdd_agent.faces.reviewing import Reviewing, describe_decision
from cdd_agent.frontend import Decision
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.wording.question_words import answers, question
from tests.agents.asking import TEMPLATE, asks
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.reviews import review_of
from tests.support.tables import each_row
from tests.tui.person import person_at
from tests.tui.resting import keys_take_no_time
from tests.words.examples import RUN

__all__ = ["keys_take_no_time"]  # for each test
SCREEN = """\
bug-login: Login fails
○ 1. Test it
○ 2. Fix it
Before step 1, pytest: 4 passed, 1 failed. These existing failures won't count against unrelated
steps (2.0 s)
── Step 1: Test it
▸ read login.py:1-40
▾ read lost.py                                                                                failed
lost.py does not exist
▸ edit login.py                                                                                +1 −1
▾ $ ruff check .                                                                 exit code 1 · 0.3 s
│ Found 1 error.
created tests/test_login.py
changed login.py
deleted old.py
! not listed in the plan for this step: notes.txt
▾ ✗ tests/test_login.py::test_it
assert 1 == 2
tests/test_login.py:3
… 1 more line
$ pytest                                                                ✗ 1 failed, 4 passed · 2 s
! Attempt 1 failed: pytest failed (exit code 1). Asking again.
│ restored login.py
merged with your edits: README.md
! edited since, left unchanged: tests/test_login.py
── Step 1: Test it (attempt 2)
$ pytest                                                                          ✓ 5 passed · 1 s
✓ Step 1 completed (1/2)
committed as 0123456789, 89abcdef01 in lib/core
! pytest: 5 passed, 1 failed as before step 1 (1.0 s)
! failed before too: tests/test_old.py::test_old
! Step 2 completed, old failures remain (2/2)
✓ bug-login done: 1/2 steps passed, 1 with old failures, 2 files, 0:01:15
!   old failures remain: 2. Fix it
Committed: 0123456789.
Review the changes of step 2 and commit them.
"""


async def test_a_run(sandbox: Sandbox) -> None:
    async with person_at(sandbox, size=(130, 60)) as person:
        for event in RUN:
            person.app.show(event)
        await person.pilot.pause()
        _, *transcript = person.screen.splitlines()
        height = person.app.query_one(Transcript).size.height
    assert [
        line.strip().rstrip("─ ") for line in transcript[: height - 1] if line.strip()
    ] == SCREEN.splitlines()


async def test_the_tones_of_a_sentence(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        for tone in Tone:
            person.app.show(Notice(f"so {tone}", tone))
        await person.pilot.pause()
        shown = [
            line.strip().rstrip("─ ")
            for line in person.screen.splitlines()
            if " so " in f" {line}"
        ]
    assert shown == [
        "so plain",
        "│ so quiet",
        "── so heading",
        "✓ so good",
        "! so warning",
        "✗ so error",
    ]


async def test_hints_below_and_in_the_prompt(sandbox: Sandbox) -> None:
    """The lines that can be typed in chat, before a step, after a failure, with
    Socrates and with the Planner.
    """
    sandbox.write(Step("a.txt", check("a.txt")), spec=TEMPLATE).replies(
        says("a.txt", "bad"), asks("Who?")
    )
    hints = {}
    async with person_at(sandbox) as person:
        for line in ("/status", f"/exec {SLUG}", "c", f"/socrates {SLUG}"):
            await person.say(line)
            hints[line] = (person.prompt.area.placeholder, person.activity)
    assert hints == {
        "/status": (
            "Ask anything, or type / for commands",
            "@: files · F1: help · Ctrl+D: quit · Ctrl+R: earlier lines",
        ),
        f"/exec {SLUG}": (
            "status, skip, close, or instructions for the step …",
            "Enter: run step 1, Make a.txt · F1: help",
        ),
        "c": (
            "retry, skip, close, or what to do differently …",
            (
                "Enter does nothing: the step failed. Type retry to run it again ·"
                " F1: help"
            ),
        ),
        f"/socrates {SLUG}": (
            "your answer, or summary, approve, close …",
            "Enter: continue · F1: help",
        ),
    }


@each_row(
    ("proposal", "asked", "keys"),
    [
        (
            CommandProposed("rm -rf build", "`rm` is not on the list"),
            [
                "Run this command? `rm` is not on the list. (always: allow this exact command until cdd exits)",
                "  rm -rf build",
            ],
            ["yes", "no", "always"],
        ),
        (
            ActionProposed(1, 3, "create a.txt (1 line)", "first"),
            ["[1/3] create a.txt (1 line)", "  first"],
            ["yes", "no", "all", "quit"],
        ),
        (
            TestLossProposed(
                2, "1b", (LostTest("tests/test_a.py::test_a", "is removed"),)
            ),
            [
                "Step 1b removes or weakens a test, and the plan does not list them under `Removes tests`. Allow it?",
                "  tests/test_a.py::test_a is removed",
            ],
            ["yes", "no"],
        ),
        (
            TestLossProposed(
                2,
                "2",
                tuple(LostTest(f"a.py::test_{n}", "does nothing") for n in range(23)),
            ),
            [
                "Step 2 removes or weakens 23 tests, and the plan does not list them under `Removes tests`. Allow it?",
                *(f"  a.py::test_{n} does nothing" for n in range(20)),
                "  and 3 more",
            ],
            ["yes", "no"],
        ),
    ],
    ids=["a command", "an action", "a test", "tests"],
)
def test_questions(proposal: Proposal, asked: list[str], keys: list[str]) -> None:
    assert question(proposal).splitlines() == asked
    assert list(answers(proposal)) == keys


def test_a_question_about_changes() -> None:
    review = review_of(
        1,
        {
            "new.py": (None, "x\n"),
            "calc.py": ("a\n", "b\nc\n"),
            "old.py": ("a\n", None),
        },
    )
    assert question(review).splitlines()[:4] == [
        "Apply these changes of step 1?  3 files +3 −2",
        "  delete old.py  −1",
        "  create new.py  +1",
        "  change calc.py  +2 −1",
    ]
    assert question(review).splitlines()[-4:] == [
        "--- old.py",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-a",
    ]
    assert question(
        review_of(None, {"new.py": (None, "x\n")}), diff=False
    ).splitlines() == [
        "Apply these changes?",
        "  create new.py  +1",
    ]


def test_what_is_left_of_changes() -> None:
    review = review_of(1, {"new.py": (None, "x\n"), "calc.py": ("a\n", "b\n")})
    review = review.with_file(0, review.files[0].leave([0], "no new file")).with_file(
        1, review.files[1].edit(b"c\n")
    )
    assert question(review, diff=False).splitlines() == [
        "Apply 1 of 2 parts of step 1?",
        "  change calc.py (edited)  +1 −1",
        "  left out: new.py: no new file",
    ]
    reviewing = Reviewing(review, may_edit=True)
    assert (
        reviewing.offered
        == "[y] apply   [n] reject (n REASON)   [f] per file   [e] edit   [a] accept all in this run"
    )
    reviewing.choose("files")
    assert reviewing.text == "1 of 2: create new.py  +1"
    assert reviewing.offered == "[y] apply   [n] leave out (n REASON)   [q] all changes"
    assert (
        describe_decision(Decision(Choice.YES, review)) == "yes, 1 of 2 parts, edited"
    )
    assert describe_decision(Decision(Choice.NO, review, "not so")) == "no: not so"


def test_what_would_be_written_is_counted_without_what_is_left_out() -> None:
    lines = [f"line {number}\n" for number in range(40)]
    new = ["first\n", *lines[1:39], "last\n", "more\n"]
    review = review_of(
        1, {"calc.py": ("".join(lines), "".join(new)), "new.py": (None, "x\n")}
    )
    review = review.with_file(0, review.files[0].leave([1], "too much"))
    assert question(review, diff=False).splitlines() == [
        "Apply 2 of 3 parts of step 1?  2 files +2 −1",
        "  create new.py  +1",
        "  change calc.py  +1 −1",
        "  left out: calc.py, line 40: too much",
    ]
    everything_left = review.with_file(0, review.files[0].leave([0, 1])).with_file(
        1, review.files[1].leave([0])
    )
    assert question(everything_left, diff=False).splitlines() == [
        "You left out every change. Reject them all?",
        "  left out: calc.py",
        "  left out: new.py",
    ]


async def test_a_step_under_way(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        person.app.show(StepStarted(1, "Fix it", 1))
        await person.pilot.pause()
        # the first sign turns
        assert re.fullmatch(r". Step 1: Fix it  \d s · Esc stops", person.activity)


async def test_a_step_that_is_opened(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"))).replies(
        says("a.txt", "bad")
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        for line in ("continue", "skip because it can wait"):
            await person.say(line)
        await person.press("f2", "home", "enter")
        await person.until(lambda: "attempt 1 of 1" in person.screen)
        person.time.pass_by(1)
        words = person.app.screen.query_one(Transcript)
        assert "Skipped: it can wait" in words.plain_text()
        await person.press("n")
        await person.until(lambda: "2. Make b.txt" in person.screen)
        assert "Nothing yet: no attempt has been made." in words.plain_text()
