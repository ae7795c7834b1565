"""Actions in the transcript: tools' calls, written files, checks and failed tests."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    CommandOutput,
    FailedTest,
    StepStarted,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tui.transcript.actions import ActionBlocks
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.folds import FoldHeader
from cdd_agent.tui.transcript.widget import Transcript
from tests.engine.tool_steps import calls, execute, replace
from tests.support.projects import SLUG, Sandbox, Step, add_test, says
from tests.tui.person import person_at
from tests.tui.test_transcript import numbered, screen, shown

LONG = FileDiff.compare(
    "src/a.py", None, "".join(f"line_{n} = {n}\n" for n in range(30)).encode()
)
SHORT = FileDiff.compare("b.py", b"x = 1\n", b"x = 2\n")
GONE = FileDiff.compare("c.py", b"x = 1\n", None)
TEXT = "def test_two():\nE  assert 500 == 409"
FAILED = FailedTest(
    "tests/test_a.py::test_two", "assert 500 == 409", "tests/test_a.py:31", TEXT, False
)


@asynccontextmanager
async def acting(
    width: int = 80, height: int = 40
) -> AsyncIterator[tuple[ActionBlocks, Transcript, Pilot[None]]]:
    async with shown(width, height) as (transcript, pilot):
        yield ActionBlocks(transcript), transcript, pilot


def words(transcript: Transcript) -> list[str]:
    """The rows of the screen, with runs of spaces joined."""
    return [" ".join(row.split()) for row in screen(transcript) if row]


CALLS: tuple[tuple[ToolFinished, str], ...] = (
    (
        ToolFinished(
            1, "x", tool="read_file", target="src/a.py", first_line=3, last_line=9
        ),
        "read src/a.py:3-9",
    ),
    (
        ToolFinished(1, "x", tool="read_file", target="src/a.py", first_line=3),
        "read src/a.py:3-",
    ),
    (ToolFinished(1, "x", tool="list_files"), "list"),
    (
        ToolFinished(
            1, "x", tool="grep_files", target="def \x1b[31mby_", output="a.py:1"
        ),
        "▸ search def by_",
    ),
    (
        ToolFinished(
            1,
            "x",
            tool="execute_command",
            target="ls -l",
            exit_code=0,
            seconds=0.24,
        ),
        "$ ls -l 0.2 s",
    ),
    (
        ToolFinished(
            1,
            "x",
            "exit code 2",
            "execute_command",
            "make",
            exit_code=2,
            seconds=61,
            output="no",
        ),
        "▾ $ make exit code 2 · 61 s",
    ),
    (
        ToolFinished(1, "x", "it is not there", "read_file", "c.py"),
        "▾ read c.py failed",
    ),
    (ToolFinished(1, "old_log(path=a)"), "old_log(path=a)"),
    (
        ToolFinished(1, "x", tool="edit_file", target="b.py", files=(SHORT,)),
        "▾ edit b.py +1 −1",
    ),
)


async def test_each_call_is_a_line_in_words() -> None:
    async with acting() as (actions, transcript, _):
        for event, header in CALLS:
            transcript.clear()
            actions.show(event)
            assert words(transcript)[0] == header


async def test_a_long_edit_shows_twelve_lines_and_the_rest_once_it_is_opened() -> None:
    async with acting() as (actions, transcript, pilot):
        actions.show(
            ToolFinished(1, "x", tool="create_file", target="src/a.py", files=(LONG,))
        )
        await pilot.pause()
        first, *lines, more = words(transcript)
        assert (first, more) == ("▾ create src/a.py +30", "… 18 more lines")
        assert (len(lines), lines[0]) == (12, "1 + line_0 = 0")
        await pilot.click(Transcript, offset=(4, 0))
        await pilot.pause()
        assert "30 + line_29 = 29" in words(transcript)
        transcript.choose_block(-1)
        assert transcript.chosen_text == f"create src/a.py\n{LONG.diff}"


async def test_a_failed_command_shows_its_last_lines() -> None:
    async with acting() as (actions, transcript, _):
        actions.show(
            ToolFinished(
                1,
                "x",
                "exit code 1",
                "execute_command",
                "make",
                exit_code=1,
                output=numbered(30) + "\n",
            )
        )
        assert words(transcript)[1:] == [
            "… 22 more lines",
            *(f"│ line {n}" for n in range(22, 30)),
        ]


async def test_the_changes_of_a_step_are_open_file_by_file() -> None:
    async with acting(height=60) as (actions, transcript, pilot):
        changed = (LONG, SHORT, GONE)
        actions.show(
            ChangesApplied(1, ("src/a.py",), ("b.py",), ("b.py",), ("c.py",), changed)
        )
        rows = words(transcript)
        assert rows[:2] == ["▾ create src/a.py +30", "1 + line_0 = 0"]
        assert rows[31:36] == [
            "▾ edit b.py +1 −1",
            "1 - x = 1",
            "1 + x = 2",
            "▾ delete c.py −1",
            "1 - x = 1",
        ]
        assert rows[36:] == ["! not listed in the plan for this step: b.py"]
        await pilot.click(Transcript, offset=(4, 0))
        assert words(transcript)[:2] == ["▸ create src/a.py +30", "▾ edit b.py +1 −1"]


async def test_a_file_with_very_many_changes_shows_the_first_of_them() -> None:
    text = "".join(f"+{n}\n" for n in range(300))
    huge = FileDiff(
        "a.py", 300, 0, f"--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,300 @@\n{text}"
    )
    async with acting(height=20) as (actions, transcript, _):
        actions.show(ChangesApplied(1, ("a.py",), (), (), files=(huge,)))
        assert words(transcript)[-1] == "… 100 more lines"


async def test_the_diff_of_a_step_folds_the_calls_that_made_it() -> None:
    async with acting() as (actions, transcript, _):
        call = ToolFinished(1, "x", tool="edit_file", target="b.py", files=(SHORT,))
        in_chat = ToolFinished(
            None, "x", tool="edit_file", target="b.py", files=(SHORT,)
        )
        open_block = ["▾ edit b.py +1 −1", "1 - x = 1", "1 + x = 2"]
        actions.show(in_chat)
        actions.show(ChangesApplied(None, (), ("b.py",), (), files=(SHORT,)))
        assert words(transcript) == open_block
        actions.show(StepStarted(1, "Make it", 1))
        actions.show(call)
        assert words(transcript) == [*open_block, *open_block]
        actions.show(ChangesApplied(1, (), ("b.py",), (), files=(SHORT,)))
        assert words(transcript) == [*open_block, "▸ edit b.py +1 −1", *open_block]


REPLY = """\
I change it.

b.py
<<<<<<< SEARCH
x = 1
=======
x = 2
>>>>>>> REPLACE
"""


async def test_the_diff_of_a_step_folds_the_reply() -> None:
    async with acting() as (actions, transcript, pilot):
        transcript.write(REPLY)
        await pilot.pause()
        drawn = ["I change it.", "b.py +1 −1", "- x = 1", "+ x = 2"]
        assert words(transcript) == drawn
        transcript.settle()
        actions.show(ChangesApplied(1, (), ("b.py",), (), files=(SHORT,)))
        assert words(transcript) == [
            "▸ Reply · 1 file · 8 lines",
            "▾ edit b.py +1 −1",
            "1 - x = 1",
            "1 + x = 2",
        ]
        await pilot.click(Transcript, offset=(4, 0))
        assert words(transcript)[:5] == ["▾ Reply · 1 file · 8 lines", *drawn]
        transcript.choose_block(-1)
        transcript.choose_block(-1)
        assert transcript.chosen_text == REPLY


async def test_a_failed_attempt_is_folded_and_the_next_one_is_open() -> None:
    async with acting() as (actions, transcript, pilot):
        transcript.write("I cannot do that.\n")
        transcript.settle()
        transcript.write(REPLY)
        await pilot.pause()
        transcript.settle()
        actions.show(ChangesApplied(1, (), ("b.py",), (), files=(SHORT,)))
        is_action = actions.show(AttemptFailed(1, 1, "1 test failed", True))
        assert not is_action
        assert words(transcript) == [
            "▸ Reply · I cannot do that. 1 line",
            "▸ Reply · 1 file · 8 lines",
            "▸ edit b.py +1 −1",
        ]


async def test_the_chat_before_a_step_stays_open() -> None:
    async with acting() as (actions, transcript, pilot):
        transcript.write(REPLY)
        transcript.add(BlockKind.USER, "/run")
        transcript.write("All is done already.")
        await pilot.pause()
        transcript.settle()
        before = words(transcript)
        actions.show(ChangesApplied(1, (), (), (), files=()))
        actions.show(ChangesApplied(1, (), ("b.py",), (), files=(SHORT,)))
        assert words(transcript)[: len(before)] == before


async def test_a_check_that_passes_is_one_line() -> None:
    async with acting() as (actions, transcript, pilot):
        actions.show(TestsStarted(1, "pytest -q"))
        actions.show(CommandOutput(1, "....\n4 passed in 0.1s\n"))
        await pilot.pause()
        assert words(transcript) == ["▸ $ pytest -q", "│ ....", "│ 4 passed in 0.1s"]
        reason = "`pytest -q` passed"
        actions.show(
            TestsFinished(
                1,
                Verification.PASSED,
                reason,
                3.2,
                (),
                "pytest -q",
                passed=4,
                failed=0,
                skipped=1,
            )
        )
        assert words(transcript) == ["▸ $ pytest -q ✓ 4 passed, 1 skipped · 3 s"]
        await pilot.click(Transcript, offset=(4, 0))
        assert words(transcript)[1:] == ["│ ....", "│ 4 passed in 0.1s"]


async def test_each_of_several_checks_is_one_line() -> None:
    checks = (("pytest -q", Verification.PASSED), ("make lint", None))
    async with acting() as (actions, transcript, pilot):
        for command, verification in checks:
            actions.show(TestsStarted(1, command))
            actions.show(CommandOutput(1, f"output of {command}\n"))
            reason = f"`{command}` passed" if verification else "failed"
            actions.show(TestsFinished(1, verification, reason, 0.2, command=command))
        await pilot.pause()
        assert words(transcript) == [
            "▸ $ pytest -q ✓ passed · 0.2 s",
            "▸ $ make lint ✗ failed · 0.2 s",
        ]


async def test_a_command_of_the_user_shows_its_last_lines_and_all_once_it_is_opened(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, size=(80, 60)) as person:
        transcript = person.app.home.transcript
        # a short output is shown whole, and no output does not fold
        for command in ("true", "echo one", "seq 20"):
            await person.say(f"!{command}")
        assert person.screen.count("▾") == 2
        assert "more line" not in person.screen
        assert "▸" not in person.screen

        transcript.clear()
        await person.say("!seq 0 49; exit 3")
        rows = words(transcript)
        at = next(place for place, row in enumerate(rows) if row.startswith("▾ $ "))
        assert rows[at + 1] == "… 30 more lines"
        assert rows[at + 2 : at + 22] == [f"│ {number}" for number in range(30, 50)]
        assert rows[at + 22] == "! Exit code 3"
        while not isinstance(transcript._choice.line, FoldHeader):
            await person.press("ctrl+up")
        await person.press("enter")
        assert words(transcript)[at + 1 : at + 51] == [
            f"│ {number}" for number in range(50)
        ]
        await person.press("enter")
        assert words(transcript)[at + 1] == "! Exit code 3"


async def test_a_running_command_of_the_user_shows_its_last_lines_and_escape_ends_it(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, size=(80, 60)) as person:
        await person.begin("!seq 100; sleep 600")
        await person.until(lambda: "│ 100" in person.screen)
        assert "│ 81" in person.screen
        assert "│ 80" not in person.screen
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        assert "… 80 more lines" in person.screen


async def test_failed_tests_show_the_assertion_first_and_fold_the_output() -> None:
    old = FailedTest("tests/test_b.py::test_old", "", "", "", True)
    async with acting() as (actions, transcript, pilot):
        actions.show(TestsStarted(1, "pytest"))
        actions.show(CommandOutput(1, numbered(50)))
        actions.show(
            TestsFinished(
                1, None, "`pytest` failed", 3.2, (), "pytest", 43, 2, 0, (FAILED, old)
            )
        )
        await pilot.pause()
        assert words(transcript) == [
            "▾ ✗ tests/test_a.py::test_two",
            "assert 500 == 409",
            "tests/test_a.py:31",
            "… 2 more lines",
            "✗ tests/test_b.py::test_old (also failed before)",
            "▸ $ pytest ✗ 2 failed, 43 passed · 3 s",
        ]
        await pilot.click(Transcript, offset=(4, 0))
        assert "│ def test_two():" in words(transcript)


async def test_other_results_of_a_check_are_a_line_below_it() -> None:
    async with acting() as (actions, transcript, _):
        for verification, reason, said in (
            (
                Verification.BASELINE,
                "`make`: 4 passed, 1 failed as before step 1",
                "! `make`: 4 passed",
            ),
            (Verification.NONE, "`make` found no tests", "! Unverified: `make`"),
            (
                Verification.PASSED,
                "`make` passed, by its exit code alone",
                "✓ `make` passed, by its exit code alone",
            ),
        ):
            transcript.clear()
            actions.show(TestsStarted(1, "make"))
            actions.show(
                TestsFinished(1, verification, reason, 0.2, ("look here",), "make")
            )
            rows = words(transcript)
            assert rows[0].startswith("$ make")
            assert rows[1].startswith(said.replace("`", ""))
            assert rows[2] == "! look here"


async def test_output_continues_below_a_note_that_comes_in_between() -> None:
    async with acting() as (actions, transcript, pilot):
        actions.show(TestsStarted(1, "make"))
        actions.show(CommandOutput(1, "first\n"))
        transcript.add(BlockKind.NOTE, "a note")
        actions.show(CommandOutput(1, "**second**\n"))
        actions.show(
            TestsFinished(1, Verification.PASSED, "`make` passed", 0.2, (), "make")
        )
        await pilot.pause()
        assert words(transcript) == [
            "▸ $ make ✓ passed · 0.2 s",
            "a note",
            "│ **second**",
        ]


@pytest.mark.story
async def test_a_run_with_tools_and_failed_tests_in_the_shell(sandbox: Sandbox) -> None:
    """From the model's calls to the screen: with real files, a real command and real
    checks.
    """
    sandbox.write(
        Step("a.txt", add_test(sandbox.root, "a.txt")),
        Step("test_sum.py", "pytest -q test_sum.py", "Step 1"),
    )
    (sandbox.root / "a.txt").write_text("bad\n")
    sandbox.replies(
        calls(replace("a.txt", "bad", "good")),
        calls(execute("cat a.txt")),
        "It says good now.",
        says("test_sum.py", "def test_sum():\n    assert 1 + 1 == 3\n"),
    )
    sandbox.flags = {"max_attempts": 1}
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 80)) as person:
        await person.say("all")
        rows = [" ".join(row.split()) for row in person.screen.splitlines()]
        assert "▾ edit a.txt +1 −1" in rows
        assert "▸ edit a.txt +1 −1" in rows
        assert "1 - bad" in rows
        assert "1 + good" in rows
        assert any(re.match(r"▸ \$ cat a\.txt \d", row) for row in rows)
        assert any(re.search(r"✓ 1 passed · \d", row) for row in rows)
        at = rows.index("▾ ✗ test_sum.py::test_sum")
        assert rows[at + 1 : at + 3] == ["assert (1 + 1) == 3", "test_sum.py:2"]
        assert any("✗ 1 failed" in row for row in rows)
    assert sandbox.statuses() == [StepStatus.COMPLETED, StepStatus.FAILED]
    *_, failed = [event for event in person.shown if isinstance(event, TestsFinished)]
    assert (failed.passed, failed.failed, failed.skipped) == (0, 1, 0)
