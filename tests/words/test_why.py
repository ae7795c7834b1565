"""Why a step counts as done, or failed: what was seen, in a line."""

from pathlib import Path

from cdd_agent.tickets.outcome_words import evidence_in_words
from cdd_agent.tickets.status import Evidence
from cdd_agent.verification.checks import parse_command
from cdd_agent.verification.verdict import Verdict
from tests.support.tables import each_row
from tests.support.verdicts import judge_all, judge_one, run_of


@each_row(
    ("seen", "words"),
    [
        (Evidence("`make check` passed"), "`make check` passed"),
        (
            Evidence("cdd found no test runner that it knows"),
            "cdd found no test runner that it knows",
        ),
        (
            Evidence("x", 44, fixed=3),
            "3 tests went red → green, 41 others stayed green",
        ),
        (Evidence("x", 2, new=1), "1 new test passed, 1 other stayed green"),
        (
            Evidence("x", 44, fixed=1, new=2),
            "1 test went red → green, 2 new tests passed, 41 others stayed green",
        ),
        (Evidence("x", 1, new=1), "1 new test passed"),
        (Evidence("x", 44), "44 stayed green"),
        (
            Evidence("x", 44, failed=2, old_failures=2),
            "44 stayed green, 2 tests also failed before",
        ),
        (
            Evidence("x", 40, failed=3, old_failures=1),
            "40 stayed green, 2 tests failed, 1 test also failed before",
        ),
        (Evidence("x", 0), "no test passed"),
        (
            Evidence("x", 3, new=3, failed=2, excused=2, excused_until="3"),
            "3 new tests passed, 2 tests may fail until step 3",
        ),
        (Evidence("x", 0, failed=1, excused=1), "1 test may fail by the plan"),
        (
            Evidence("x", 5, failed=4, old_failures=1, excused=2, excused_until="2b"),
            "5 stayed green, 1 test failed, 2 tests may fail until step 2b, 1 test also failed before",
        ),
    ],
)
def test_what_was_seen_is_said_in_a_line(seen: Evidence, words: str) -> None:
    assert evidence_in_words(seen) == words


def test_where_tests_left_no_report_the_exit_code_is_said_to_decide(
    tmp_path: Path,
) -> None:
    check = parse_command("jest", tmp_path)
    run = run_of(check, 0, unread="there is none")
    assert judge_one(check, run).reason == (
        "`jest` ended with exit code 0, but reported no tests: there is none"
    )


def test_several_checks_are_named_with_their_results(tmp_path: Path) -> None:
    good, bad = (0, "fine"), (1, "line 3")

    def judge(*results: tuple[int, str]) -> Verdict:
        ran = []
        commands = ("python lint.py", "mypy", "ruff check")
        for command, (code, output) in zip(commands, results, strict=False):
            check = parse_command(command, tmp_path)
            ran.append((check, run_of(check, code, output=output)))
        return judge_all(ran)

    by_code = "ended with exit code 0, but reported no tests"
    assert judge(good, good).reason == (f"`python lint.py` {by_code}; `mypy` {by_code}")
    failed = judge(good, bad, good)
    assert failed.reason == "`mypy` failed (exit code 1); not run: `ruff check`"
    assert failed.useful_output == "Output of `mypy`:\nline 3"
    assert judge(bad).useful_output == "line 3"
