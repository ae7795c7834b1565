"""The words about the text of spec.yaml: what is not read as it may be meant, and what
to do about an error.
"""

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.spec_findings import find_spec_problems
from tests.support.tables import each_row

CRITERIA = "acceptance_criteria"


@each_row(
    ("text", "words"),
    [
        (
            "title: Fix #42",
            '`#42` is a comment and no part of the text; put the text in quotes: "Fix #42"',
        ),
        (
            "title: Fix # it",
            '`# it` is a comment and no part of the text; if it is text, put the text in quotes: "Fix # it"',
        ),
        (
            f"title: {'a' * 100} #1",
            "`#1` is a comment and no part of the text; put the text in quotes",
        ),
        (
            "title: &co is new",
            '`&co` is read as an anchor and is no part of the text; put the text in quotes: "&co is new"',
        ),
        (
            "title: !co is new",
            '`!co` is read as a tag and is no part of the text; put the text in quotes: "!co is new"',
        ),
        (
            f"{CRITERIA}:\n- ? why",
            '`? why` is read as a key without a value; put the text in quotes: "? why"',
        ),
        (
            f"{CRITERIA}:\n- [x]",
            '`[x]` is read as a list; put the text in quotes: "[x]"',
        ),
        (
            f"{CRITERIA}:\n- {{name}}",
            '`{name}` is read as a mapping; put the text in quotes: "{name}"',
        ),
        (
            "implementation_scope: {a:b}",
            "`{a:b}` is read as a mapping; put a space after the colon: {a: b}",
        ),
        (f"{CRITERIA}:\n- ~", '`~` is read as nothing; put the text in quotes: "~"'),
        (
            f"{CRITERIA}:\n  -a\n  -b",
            "these lines are read as one text; put a space after the dash: - a",
        ),
        (
            f"{CRITERIA}:\n- a\n  - b",
            "`- b` is read as part of the text above; begin it in the column of the items above",
        ),
        (
            "description: a\n  - b",
            "`- b` is read as part of the text above; write a text of several lines below `|`",
        ),
        (
            'title: "a\ntype: b"',
            "the quotes that open here close in line 2, so that the keys between are text; close them in line 1",
        ),
        (
            "x:\n  a: b\n  a: c",
            "the key a appears twice, first in line 2, whose value is not read; rename one of them",
        ),
        ("Title: x", "unknown key Title; did you mean `title`?"),
        (
            "story: {title: x}",
            "the fields below story are not the ticket's; remove the line story: and the spaces before them",
        ),
        (
            "items: [{title: x}, {title: y}]",
            "items has 2 items that look like tickets; put each of them into the spec.yaml of a separate folder",
        ),
    ],
)
def test_findings(text: str, words: str) -> None:
    assert [problem.text for problem in find_spec_problems(text)] == [words]


@each_row(
    ("text", "words"),
    [
        ("title: a: b", 'Put the text in quotes: title: "a: b"'),
        (f"title: a: {'b' * 100}", "Put the text of line 1 in quotes"),
        ("title: [x]", 'Put the text in quotes: title: "[x]"'),
        ("title:Fix", "Put a space after the colon: title: Fix"),
        ("title:Fix\ntype: bug", "Put a space after the colon: title: Fix"),
        (
            'title: "Fix\ntype: bug',
            'Close the quote that opens in line 1: title: "Fix"',
        ),
        ("x: [a, b", "Close the bracket in line 1: x: [a, b]"),
        ("x:\n\t- a", "Use plain spaces instead of the tab at the start of line 2."),
        (
            "title: x\ndescription: |\n\u00a0\u00a0a\ntype: bug",
            "Use plain spaces instead of the other kind of space at the start of line 3.",
        ),
        (
            f"{CRITERIA}: [a #1, b]",
            'Text after a space and # is a comment: put the text in quotes: "a #1"',
        ),
        (
            f"{CRITERIA}:\n- 'a'\n  'b'",
            "If line 3 is an item, put a dash before it: - 'b'",
        ),
        (
            "title: x\n type: bug",
            "Begin line 2 in the same column as line 1. If it is text: write a text of several lines below title: |",
        ),
        ("x:\n  - a\n - b", "Begin line 3 in the same column as line 2."),
        (
            "description: a\nb c\ntype: bug",
            "Indent line 2: each line of a text begins with spaces.",
        ),
        (
            "title: x\n---\nText",
            "A second document begins in line 2: put its text below a key, such as notes: |, or remove it with that line.",
        ),
        ("```\ntitle: x\n```", "Remove the fence in line 1."),
        (
            "title: x\n**a**: b",
            "Line 2 is not `key: value`: put text below a key, such as notes: |, with spaces at the start of each line.",
        ),
        (
            "- title: x",
            "Remove the dash before its first key, and the spaces before all keys.",
        ),
        (
            "- title: x\n- title: y",
            "It has 2 items: keep one of them, without its dash.",
        ),
    ],
)
def test_remedies(text: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        TicketSpec.from_yaml(text)
    assert caught.value.hint == words
