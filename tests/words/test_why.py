"""Why a step counts as done, or failed: what was seen, in a line."""

from pathlib import Path

from cdd_agent.process.run import CommandResult
from cdd_agent.tickets.outcome_words import evidence_in_words
from cdd_agent.tickets.status import Evidence
from cdd_agent.verification.before import Before
from cdd_agent.verification.check_run import Ran
from cdd_agent.verification.checks import parse_command
from cdd_agent.verification.verdict import Verdict, Work
from tests.support.tables import each_row
from tests.support.verdicts import judge_all, judge_one


@each_row(
    ("seen", "words"),
    [
        (Evidence("`make check` passed"), "`make check` passed"),
        (Evidence("no tests were found"), "no tests were found"),
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
            "44 stayed green, 2 tests failed before, too",
        ),
        (
            Evidence("x", 40, failed=3, old_failures=1),
            "40 stayed green, 2 tests failed, 1 test failed before, too",
        ),
        (Evidence("x", 0), "no test passed"),
        (
            Evidence("x", 3, new=3, failed=2, excused=2, excused_until="3"),
            "3 new tests passed, 2 tests may fail until step 3",
        ),
        (Evidence("x", 0, failed=1, excused=1), "1 test may fail yet"),
        (
            Evidence("x", 5, failed=4, old_failures=1, excused=2, excused_until="2b"),
            "5 stayed green, 1 test failed, 2 tests may fail until step 2b, 1 test failed before, too",
        ),
    ],
)
def test_what_was_seen_is_said_in_a_line(seen: Evidence, words: str) -> None:
    assert evidence_in_words(seen) == words


def test_where_tests_left_no_report_the_exit_code_is_said_to_decide(
    tmp_path: Path,
) -> None:
    ran = Ran(CommandResult("", "", 0), unread="there is none")
    assert judge_one(parse_command("jest", tmp_path), ran, Before(), Work()).reason == (
        "`jest` passed, by its exit code alone, as its tests left no report that can be used: there is none"
    )


def test_several_checks_are_named_with_their_results(tmp_path: Path) -> None:
    good, bad = CommandResult("fine", "", 0), CommandResult("line 3", "", 1)

    def judge(*results: CommandResult) -> Verdict:
        commands = ("python lint.py", "mypy", "ruff check")
        return judge_all(
            [
                (parse_command(command, tmp_path), Ran(result))
                for command, result in zip(commands, results, strict=False)
            ]
        )

    assert judge(good, good).reason == "`python lint.py` passed; `mypy` passed"
    failed = judge(good, bad, good)
    assert failed.reason == "`mypy` failed (exit code 1); not run: `ruff check`"
    assert failed.useful_output == "Output of `mypy`:\nline 3"
    assert judge(bad).useful_output == "line 3"
