"""Settings are removed from a file, and everything else in it stays."""

import pytest
import yaml

from cdd_agent.errors import BadInput
from cdd_agent.settings.writing import without_setting

FILE = """\
# Ours.
approval: ask   # until we trust it

budget:   # of a run
  # dollars
  usd: 2
  tokens: 5
commands:
  allow:
    - npm
    # for the docs
    - make
  # below
request:
  body: {top_p: 1}
notifications: {bell: false, title: true}
web:
  private: true
# end
"""
REMOVED = {
    "approval": ("approval: ask   # until we trust it\n",),
    "budget.usd": ("  usd: 2\n",),
    "budget.tokens": ("  tokens: 5\n",),
    "commands.allow": (
        "commands:\n  allow:\n    - npm\n    # for the docs\n    - make\n",
    ),
    "request.body": ("request:\n  body: {top_p: 1}\n",),
    "web.private": ("web:\n  private: true\n",),
}


@pytest.mark.parametrize("name", REMOVED)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_the_lines_of_the_setting_are_removed(name: str, end: str) -> None:
    expected = FILE
    for lines in REMOVED[name]:
        assert lines in expected
        expected = expected.replace(lines, "")
    text = without_setting(FILE.replace("\n", end), "config.yaml", name)
    assert text == expected.replace("\n", end)
    yaml.safe_load(text)


def test_the_last_setting_leaves_an_empty_file() -> None:
    assert without_setting("theme: nord", "config.yaml", "theme") == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("notifications: {bell: false, title: true}\n", "notifications.bell"),
        ("{approval: ask, jobs: 2}\n", "jobs"),
        ("a: &x {usd: 1}\nbudget: *x\n", "a"),
    ],
)
def test_a_setting_that_shares_its_line_is_not_removed(text: str, name: str) -> None:
    with pytest.raises(BadInput, match="not changed") as refusal:
        without_setting(text, "config.yaml", name)
    assert refusal.value.hint.startswith(f"Remove `{name}` from line")


def test_comments_above_the_only_key_of_a_section_stay() -> None:
    text = "theme: nord\nbudget:\n  # agreed with Ann\n  usd: 5\n# end\n"
    kept = "theme: nord\n  # agreed with Ann\n# end\n"
    assert without_setting(text, "config.yaml", "budget.usd") == kept
