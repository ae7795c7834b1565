"""docs/reference/verification.md has the table of rules."""

from pathlib import Path

from cdd_agent.verification.rules import CHANGE_RULES, CHECK_RULES, RESULT_RULES

ROOT = Path(__file__).parents[2]


def test_the_docs_list_each_rule_in_order() -> None:
    text = (ROOT / "docs/reference/verification.md").read_text()
    rows = [
        f"| {rule.seen} | {rule.verdict} |"
        for rule in (*CHANGE_RULES, *CHECK_RULES, *RESULT_RULES)
    ]
    assert "\n".join(rows) in text
