"""The page that a run's report is for people, word for word."""

from msgspec.structs import replace

from cdd_agent.engine.effort import RunEffort
from cdd_agent.engine.report_page import to_markdown
from cdd_agent.tickets.status import (
    CriterionEdit,
    EditedCriterion,
    MissingWork,
    StepStatus,
)
from tests.engine.test_report import a_report, a_step


def test_criteria_that_were_edited_since_are_on_the_page() -> None:
    edited = EditedCriterion(2, "It is *safe*", CriterionEdit.CHANGED_SINCE_VERIFIED)
    report = replace(a_report(a_step(1, "Make it")), edited_criteria=(edited,))
    line = (
        "- not done: criterion 2 is changed since it was verified: It is \\*safe\\*\n"
    )
    assert line in to_markdown(report)
    page = to_markdown(replace(report, require="verified"))
    reason = "criterion 2 is changed since it was verified"
    assert f"- does not meet `require: verified`: {reason}\n" in page
    assert line in page


def test_the_page_says_what_there_is_to_know() -> None:
    page = to_markdown(
        a_report(
            a_step(1, "Make it"),
            a_step(2, "Fix it", StepStatus.FAILED, "E  assert 1 == 2"),
        )
    )
    assert page.startswith(
        "# feature-x: Say \\| words\n\n- **failed**: 1/2 steps passed, 1 failed\n"
    )
    assert (
        "- tests before: 4 passed, 1 failed, 0 skipped\n- tests after: 9 passed, 0 failed, 1 skipped\n"
        in page
    )
    assert "- the tokens of 2 of 4 model calls are not known\n" in page
    assert (
        "| 1. Make it | completed | 2 | 5 ✓ 0 ✗ 1 – | 1 | 0:01:15 | 2 | 12,000 | 345 |\n"
        in page
    )
    assert "## Step 2 failed: Fix it\n\n```text\nE  assert 1 == 2\n```\n" in page


def test_the_page_says_that_the_rule_holds_only_with_all_work_there() -> None:
    report = replace(a_report(a_step(1, "Make it")), require="verified")
    assert (
        "- `require: verified` is met: each step's tests have passed\n"
        in to_markdown(report)
    )
    page = to_markdown(replace(report, missing=(MissingWork(1, "Make it", ("a",)),)))
    assert "- the work of step 1 is missing in the project's tree\n" in page
    assert "holds" not in page


def test_amounts_that_contain_an_estimate_are_marked() -> None:
    effort = RunEffort(60.0, 2, 2, 5_000, 300, 1, 0.25, thinking_tokens=90)
    step = replace(a_step(1, "Make it"), effort=effort)
    page = to_markdown(replace(a_report(step), effort=effort))
    assert "| 2 | ~5,000 | ~300 |\n" in page
    assert ", ~90 tokens\n" in page
    assert "- cost: ~$0.2500, by the prices that are known\n" in page
