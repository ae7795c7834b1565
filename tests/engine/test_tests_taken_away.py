"""A step that removes or weakens tests does not pass, under any runner, unless its plan
or the user allows it.
"""

import json
import re

import pytest

from cdd_agent.events.step_events import TestsFinished
from cdd_agent.events.stream import Event
from cdd_agent.tickets.status import Verification
from cdd_agent.wording.describe import describe
from tests.engine.calculator import (
    CALC,
    FIXED,
    SUB,
    TEST_ADD,
    TEST_SUB,
    TESTS,
    calculator,
    gives,
)
from tests.engine.tool_steps import calls, execute, finished, run, stopped_after
from tests.support.listening import collect
from tests.support.projects import Sandbox, Step, run_all
from tests.support.tables import each_row

BARE = "test_command: python check.py\n"
"""A check that says nothing of single tests, and is content without any."""
CHECK = (
    "import unittest\n\n"
    "unittest.main(module=None, argv=['check.py', 'discover', '-s', 'tests', '-t',"
    " '.'])\n"
)
TOLD = "test_command: python -m unittest discover -s tests -t .\n"
"""The same tests, each of which is known."""
UNIT = """\
import unittest

from calc import add, sub


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)

    def test_sub(self):
        self.assertEqual(sub(3, 1), 2)
"""
UNIT_SUB = "    def test_sub(self):\n        self.assertEqual(sub(3, 1), 2)\n"
RED = (
    "from calc import add, mul, sub\n\n\n"
    f"{TEST_ADD}\n\n"
    "def test_mul():\n"
    "    assert mul(2, 3) == 6\n\n\n"
    f"{TEST_SUB}"
)
"""A test file that cannot be imported yet: there is no `mul`."""
REMOVES = "python -c \"import os; os.remove('tests/test_calc.py')\""
ELSEWHERE = Step("calc.py")
NAMED = Step("calc.py", also=("`tests/test_calc.py`",))


def bare(sandbox: Sandbox, *steps: Step) -> Sandbox:
    """The calculator with tests of the standard library, and a runner that only has an
    exit code.
    """
    calculator(sandbox, *steps, tests__test_calc_dot_py=UNIT)
    (sandbox.root / "tests/__init__.py").touch()
    (sandbox.root / "check.py").write_text(CHECK)
    (sandbox.root / ".cdd/config.yaml").write_text(BARE)
    return sandbox


def deleted(path: str = "tests/test_calc.py") -> str:
    return f"Done!\n\n*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"


def judged(events: list[Event]) -> TestsFinished:
    return [event for event in events if isinstance(event, TestsFinished)][-1]


# --- With pytest: a file that cannot be imported yet ----------------------------------

RED_CLAIMS = {
    "replaced": {"tests__test_calc_dot_py": "def test_easy():\n    pass\n"},
    "a test less": {"tests__test_calc_dot_py": TESTS, "calc_dot_py": FIXED},
    "with a test that does nothing": {
        "tests__test_calc_dot_py": (
            RED.replace("assert mul(2, 3) == 6", "pass").replace("mul, ", "")
        ),
        "calc_dot_py": FIXED,
    },
    "with a comment for a test": {
        "tests__test_calc_dot_py": (
            f"{TESTS}\n# def test_mul(): assert mul(2, 3) == 6\n"
        ),
        "calc_dot_py": FIXED,
    },
}


@each_row("files", RED_CLAIMS.values(), ids=RED_CLAIMS)
async def test_a_test_file_that_cannot_be_imported_yet_keeps_its_tests(
    sandbox: Sandbox, files: dict[str, str]
) -> None:
    calculator(sandbox, NAMED, tests__test_calc_dot_py=RED).replies(gives(**files))
    last = finished(await run_all(sandbox))
    assert (last.status, last.verification) == ("failed", None)
    assert "exit code" not in (last.error or "")  # the check is not what it fails by
    assert "test_mul" in (last.error or "")


async def test_the_code_for_such_a_file_passes(sandbox: Sandbox) -> None:
    code = f"{FIXED}\n\ndef mul(a, b):\n    return a * b\n"
    calculator(sandbox, ELSEWHERE, tests__test_calc_dot_py=RED).replies(
        gives(calc_dot_py=code)
    )
    assert judged(await run_all(sandbox)).verification is Verification.PASSED


async def test_what_an_earlier_step_wrote_as_a_test_counts(sandbox: Sandbox) -> None:
    calculator(sandbox, NAMED, NAMED).replies(
        gives(
            tests__test_calc_dot_py=RED,
            calc_dot_py=f"{FIXED}\n\ndef mul(a, b):\n    return a * b\n",
        ),
        gives(tests__test_calc_dot_py=TESTS, calc_dot_py=FIXED),
    )
    await run_all(sandbox)
    assert sandbox.statuses() == ["completed", "failed"]


# --- With a runner that has an exit code and nothing else -----------------------------

BARE_CLAIMS = {
    "deleted": deleted(),
    "emptied": gives(tests__test_calc_dot_py="# later"),
    "a test less": gives(tests__test_calc_dot_py=UNIT.replace(UNIT_SUB, "")),
    "a test that does nothing": gives(
        tests__test_calc_dot_py=UNIT.replace("self.assertEqual(sub(3, 1), 2)", "pass")
    ),
    "a test that is skipped": gives(
        tests__test_calc_dot_py=UNIT.replace(
            UNIT_SUB, f"    @unittest.skip('later')\n{UNIT_SUB}"
        )
    ),
    "an easier one instead": gives(
        tests__test_calc_dot_py=UNIT.replace(
            UNIT_SUB, "    def test_it(self):\n        self.assertTrue(sub)\n"
        )
    ),
    "a name that is not looked for": (
        f"{deleted()}\n{gives(tests__calc_old_dot_py=UNIT)}"
    ),
}


@each_row("reply", BARE_CLAIMS.values(), ids=BARE_CLAIMS)
async def test_no_runner_makes_it_pass(sandbox: Sandbox, reply: str) -> None:
    bare(sandbox, NAMED).replies(reply)
    events = await run_all(sandbox)
    assert finished(events).status == "failed"
    error = finished(events).error or ""
    assert "tests/test_calc.py" in error
    assert "exit code" not in error  # the check is not what it fails by


async def test_a_reply_that_deletes_the_test_does_not_pass_once_it_was_shown(
    sandbox: Sandbox,
) -> None:
    bare(sandbox, ELSEWHERE).replies(deleted(), deleted(), gives(calc_dot_py=FIXED))

    events = await run_all(sandbox, attempts=3)

    # not shown at first, so it was refused
    assert "tests/test_calc.py" in sandbox.prompt(1)
    assert UNIT in sandbox.prompt(2)
    assert (finished(events).status, sandbox.text("tests/test_calc.py")) == (
        "completed",
        UNIT,
    )


async def test_it_stays_failed_if_the_model_does_not_learn(sandbox: Sandbox) -> None:
    bare(sandbox, ELSEWHERE).replies(deleted(), deleted(), deleted())
    await run_all(sandbox, attempts=3)
    assert sandbox.statuses() == ["failed"]


async def test_the_plan_may_say_so_beside_the_file(sandbox: Sandbox) -> None:
    moved = Step("calc.py", also=("`tests/test_calc.py` (moved to tests/unit)",))
    bare(sandbox, moved).replies(
        gives(tests__test_calc_dot_py=UNIT.replace(UNIT_SUB, ""), calc_dot_py=FIXED)
    )
    assert finished(await run_all(sandbox)).verification is Verification.EXIT_CODE


@each_row("verify", ["none", None])
async def test_without_a_check_it_is_no_step_either(
    sandbox: Sandbox, verify: str | None
) -> None:
    bare(sandbox, Step("calc.py", verify, also=("`tests/test_calc.py`",))).replies(
        deleted()
    )
    if verify is None:
        # with the last test goes what would find it
        (sandbox.root / ".cdd/config.yaml").unlink()
        (sandbox.root / "pyproject.toml").unlink()
    assert finished(await run_all(sandbox)).status == "failed"


# --- By a runner that tells of each test ----------------------------------------------


async def test_unittest_tells_of_each_test_so_that_old_failures_are_known(
    sandbox: Sandbox,
) -> None:
    bare(sandbox, Step("notes.txt"), NAMED).replies(
        gives(notes_dot_txt="x"), gives(calc_dot_py=FIXED)
    )
    (sandbox.root / ".cdd/config.yaml").write_text(TOLD)
    events = await run_all(sandbox)
    verifications = [
        event.verification for event in events if isinstance(event, TestsFinished)
    ]
    assert verifications == [Verification.BASELINE, Verification.PASSED]


async def test_what_a_command_takes_away_is_shown_there_too(sandbox: Sandbox) -> None:
    sandbox.flags["tool_calls"] = "on"
    bare(sandbox, Step(None)).replies(calls(execute(REMOVES)), "Done.", "Done.")
    (sandbox.root / ".cdd/config.yaml").write_text(TOLD)
    assert finished(await run(sandbox, attempts=2)).status == "failed"
    assert f"```\n{UNIT}" in sandbox.prompt(2)


# --- By commands ----------------------------------------------------------------------


@pytest.fixture
def tools(sandbox: Sandbox) -> Sandbox:
    sandbox.flags["tool_calls"] = "on"
    return bare(sandbox, Step(None))


async def test_what_a_command_takes_away_counts_and_is_shown_to_be_written_again(
    tools: Sandbox,
) -> None:
    again = ("create_file", {"file_path": "tests/test_calc.py", "content": UNIT})
    fixes = ("edit_file", {"file_path": "calc.py", "find": "", "replace": FIXED})
    reads = ("read_file", {"path": "calc.py"})
    tools.replies(
        calls(execute(REMOVES)), "Done.", calls(again, reads), calls(fixes), "Done."
    )

    events = await run(tools, attempts=2)

    assert f"```\n{UNIT}" in tools.prompt(2)
    assert finished(events).verification is Verification.EXIT_CODE


async def test_what_an_earlier_attempt_took_away_by_a_command_is_still_missed(
    tools: Sandbox,
) -> None:
    fixes = ("edit_file", {"file_path": "calc.py", "find": "", "replace": FIXED})
    reads = ("read_file", {"path": "calc.py"})
    tools.replies(calls(execute(REMOVES)), "Done.", calls(reads), calls(fixes), "Done.")
    await run(tools, attempts=2)
    assert tools.statuses() == ["failed"]


async def test_what_was_taken_away_before_an_interruption_is_still_missed(
    tools: Sandbox,
) -> None:
    tools.replies(calls(execute(REMOVES)), "never asked for")
    engine = tools.engine()
    try:
        await stopped_after(engine, "os.remove")
    finally:
        engine.close()
    tools.replies("Done.")
    await run(tools)
    assert tools.statuses() == ["failed"]


DATA = "tests/expected/sub.json"
REMOVES_DATA = f"python -c \"import os; os.remove('{DATA}')\""
WRITES = gives(words_dot_txt="good")
DATA_IS_GONE = {
    "by the check": (REMOVES_DATA, [], WRITES, ""),
    "emptied by the check": (f"python -c \"open('{DATA}', 'w')\"", [], WRITES, ""),
    "by the check after a command": (
        REMOVES_DATA,
        [calls(execute("python --version"))],
        "Done.",
        "",
    ),
    "by the reply": ("python --version", [], deleted(DATA), DATA),
    "by a command": ("python --version", [calls(execute(REMOVES_DATA))], "Done.", DATA),
}


@each_row(
    ("check", "rounds", "reply", "missed"), DATA_IS_GONE.values(), ids=DATA_IS_GONE
)
async def test_what_tests_go_by_is_missed_if_the_step_takes_it_away_and_not_its_check(
    sandbox: Sandbox, check: str, rounds: list[str], reply: str, missed: str
) -> None:
    sandbox.flags["tool_calls"] = "on" if rounds else "off"
    calculator(
        sandbox, Step(DATA, check) if missed and not rounds else Step(None, check)
    )
    (sandbox.root / DATA).parent.mkdir()
    (sandbox.root / DATA).write_text("2\n")

    last = judged(await run(sandbox.replies(*rounds, reply)))

    assert missed in last.reason
    assert (last.verification is None) is bool(missed), last.reason


async def test_what_an_earlier_attempts_check_took_away_is_not_missed_either(
    sandbox: Sandbox,
) -> None:
    check = (
        f"python -c \"import os; os.path.exists('{DATA}') and exit(os.remove('{DATA}')"
        ' or 1)"'
    )
    calculator(sandbox, Step("calc.py", check))
    (sandbox.root / DATA).parent.mkdir()
    (sandbox.root / DATA).write_text("2\n")
    await run_all(
        sandbox.replies(gives(calc_dot_py=FIXED), gives(calc_dot_py=FIXED)), attempts=2
    )
    assert sandbox.statuses() == ["completed"]


async def test_what_a_person_takes_away_between_attempts_is_theirs(
    sandbox: Sandbox,
) -> None:
    bare(sandbox, Step("calc.py")).replies(gives(calc_dot_py=CALC + "# still wrong\n"))
    await run_all(sandbox)
    (sandbox.root / "tests/test_calc.py").unlink()
    await run_all(sandbox.replies(gives(calc_dot_py=FIXED)))
    assert sandbox.statuses() == ["completed"]


# --- What is only told ----------------------------------------------------------------

CHANGED = TESTS.replace("sub(3, 1) == 2", "sub(3, 1) == 4")


async def test_a_test_changed_unasked_is_told_in_the_transcript_log_and_report(
    sandbox: Sandbox,
) -> None:
    calculator(sandbox, Step(None)).replies(
        shown_first := gives(tests__test_calc_dot_py=CHANGED), shown_first
    )
    engine = sandbox.engine()

    with engine.recording():
        events = await collect(engine.run_all(attempts=2))

    engine.close()
    (note,) = judged(events).notes
    folder = sandbox.root / ".cdd/runs/feature-words"
    assert note.endswith(SUB)
    assert [text for text, _ in describe(judged(events))][1:] == [note]
    assert note in (folder / "events.jsonl").read_text()
    assert json.loads((folder / "report.json").read_text())["steps"][0]["notes"] == [
        note
    ]
    assert "step 1" in (folder / "report.md").read_text()


async def test_a_test_that_is_emptied_unasked_does_not_pass(sandbox: Sandbox) -> None:
    emptied = TESTS.replace("assert sub(3, 1) == 2", "pass")
    reply = gives(tests__test_calc_dot_py=emptied)
    calculator(sandbox, Step(None)).replies(reply, reply)
    last = finished(await run_all(sandbox, attempts=2))
    assert (last.status, last.verification) == ("failed", None)
    assert SUB in (last.error or "")


async def test_a_test_that_is_renamed_is_told_and_passes(sandbox: Sandbox) -> None:
    renamed = TESTS.replace("test_sub", "test_subtracting")
    calculator(sandbox, NAMED).replies(
        gives(tests__test_calc_dot_py=renamed, calc_dot_py=FIXED)
    )
    last = judged(await run_all(sandbox))
    assert last.verification is Verification.PASSED, last.reason
    (note,) = last.notes
    assert re.findall(r"[\w/.]+::\w+", note) == [SUB, f"{SUB}tracting"]


async def test_tests_that_become_cases_of_one_pass(sandbox: Sandbox) -> None:
    two = (
        "from calc import sub\n\n\n"
        f"{TEST_SUB}\n\n"
        "def test_more():\n"
        "    assert sub(5, 1) == 4\n"
    )
    cases = (
        "import pytest\n"
        "from calc import sub\n\n\n"
        "@pytest.mark.parametrize('a, b, c', [(3, 1, 2), (5, 1, 4)])\n"
    )
    cases += "def test_sub(a, b, c):\n    assert sub(a, b) == c\n"
    calculator(sandbox, NAMED, calc_dot_py=FIXED, tests__test_calc_dot_py=two)
    last = judged(await run_all(sandbox.replies(gives(tests__test_calc_dot_py=cases))))
    assert last.verification is Verification.PASSED, last.reason
