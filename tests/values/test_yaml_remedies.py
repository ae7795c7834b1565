"""For each usual error in YAML, the hint has the line that repairs it."""

from typing import Any

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.tickets.spec import TicketSpec
from tests.support.tables import each_row

CRITERIA = "acceptance_criteria"
QUOTED = [
    # The text after `title: `, and the text in quotes
    ("Fix: the bug", '"Fix: the bug"'),
    ("see http://x.org: it", '"see http://x.org: it"'),
    ("C:\\x: it", "'C:\\x: it'"),
    ("@ada sees it", '"@ada sees it"'),
    ("`make` works", '"`make` works"'),
    ("%d is shown", '"%d is shown"'),
    ("*x", '"*x"'),
    ("*bold* text", '"*bold* text"'),
    ("** text", '"** text"'),
    ("& more", '"& more"'),
    ("&co: new", '"&co: new"'),
    ("{name} is shown", '"{name} is shown"'),
    ("[x] is shown", '"[x] is shown"'),
    ("> 5 users", '"> 5 users"'),
    ("| is shown", '"| is shown"'),
    ("- is shown", '"- is shown"'),
    (", is shown", '", is shown"'),
    ("] is shown", '"] is shown"'),
    ("} is shown", '"} is shown"'),
    ("? is shown", '"? is shown"'),
    (": is shown", '": is shown"'),
    ("'don't'", '"don\'t"'),
    ('"quoted" and more', "'\"quoted\" and more'"),
    ("'quoted' and more", "\"'quoted' and more\""),
    ('"a" and "b"', '\'"a" and "b"\''),
    ("\"it's\" and 'b'", "'\"it''s\" and ''b'''"),
    ('"a \\d b"', "'a \\d b'"),
    ('"press "Upload" now"', "'press \"Upload\" now'"),
    ("[x]", '"[x]"'),
    ("{name}", '"{name}"'),
    ("{{name}}", '"{{name}}"'),
]
REPAIRED = [
    # A text, the number of the wrong line, the right line, and what is read then
    ("title:Fix", 1, "title: Fix", "title", "Fix"),
    ("title:Fix\ntype: bug", 1, "title: Fix", "title", "Fix"),
    ("type: bug\ntitle:Fix\npriority: low", 2, "title: Fix", "title", "Fix"),
    ("type: bug\ntitle:Fix", 2, "title: Fix", "title", "Fix"),
    ("title:Fix\nnote:d\ntype: bug", 2, "note: d", "", ""),
    ("title:Fix\ntype:bug\nnote:d\ntags:\n-a\n-b\n", 3, "note: d", "", ""),
    ('title: "Fix\ntype: bug', 1, 'title: "Fix"', "title", "Fix"),
    ("title: 'Fix\ntype: bug", 1, "title: 'Fix'", "title", "Fix"),
    ('title: "Fix\ndescription: "y"', 1, 'title: "Fix"', "title", "Fix"),
    ("title: 'Fix\ndescription: it's x", 1, "title: 'Fix'", "title", "Fix"),
    (f"{CRITERIA}: [a, b\ntype: bug", 1, f"{CRITERIA}: [a, b]", CRITERIA, ("a", "b")),
    (
        "implementation_scope: {api: [a]",
        1,
        "implementation_scope: {api: [a]}",
        "",
        None,
    ),
    (f"{CRITERIA}:\n- [ ] a", 2, '- "[ ] a"', CRITERIA, ("[ ] a",)),
    (f"{CRITERIA}:\n- [x] a\n- [ ] b", 2, '- "[x] a"', "", None),
    (f"{CRITERIA}:\n- *bold* a", 2, '- "*bold* a"', CRITERIA, ("*bold* a",)),
    (f"{CRITERIA}:\n- @a b", 2, '- "@a b"', CRITERIA, ("@a b",)),
    (f'{CRITERIA}:\n- "a" works', 2, "- '\"a\" works'", CRITERIA, ('"a" works',)),
    (f"{CRITERIA}:\n- run: `a`", 2, '- run: "`a`"', CRITERIA, ("run: `a`",)),
    (f"{CRITERIA}:\n- 'a'\n  'b'", 3, "- 'b'", CRITERIA, ("a", "b")),
]
ADVISED = [
    # Texts with the line that the hint names
    (f"{CRITERIA}:\n\t- a", "line 2"),
    ("description: |\n\ttext", "line 2"),
    ("title: x\n\ttype: bug", "line 2"),
    ("ticket:\n\ttitle: x", "line 2"),
    ("title: x\ndescription: |\n\u00a0\u00a0a\n  b\ntype: bug", "line 3"),
    ("title: x\n type: bug", "line 1"),
    (f"{CRITERIA}:\n  - a\n - b", "line 2"),
    (
        f"{CRITERIA}:\n  - a: b\n\t- it's: 'a'",
        "instead of the tab at the start of line 3",
    ),
    (
        f"{CRITERIA}:\n  - |\n    a\n\t- 'don't'",
        "instead of the tab at the start of line 4",
    ),
    ("scope:\n  - api:\n    - b\n   - c", "line 3"),
    ("description: one\nand two\ntype: bug", "line 2"),
    ("description: |\n# one\n  two", "line 2"),
    ("description: |\none\ntype: bug", "line 2"),
    ("description: one\n  two: three", "description: |"),
    ("description: one\n  #2 and\n  three", "description: |"),
    (f"{CRITERIA}: [a, b #1]", '"b #1"'),
    (f"{CRITERIA}: [Fix #42, b]", '"Fix #42"'),
    (f"{CRITERIA}: [\n  Fix #42,\n  b\n]", '"Fix #42"'),
    ("title: x\n---\ntext", "line 2"),
    ("---\ntitle: x\n---\n# Heading\n- [ ] a", "line 3"),
    ("```yaml\ntitle: x\n```", "line 1"),
    ("title: x\n**bold**: text", "Line 2"),
    ("- title: x\n  type: bug", "dash"),
    ("- title: x\n- title: y", "2 items"),
]


def hint(text: str) -> str:
    with pytest.raises(BadInput) as caught:
        TicketSpec.from_yaml(text)
    return caught.value.hint


@each_row(("text", "quoted"), QUOTED)
def test_text_that_yaml_does_not_accept_is_put_in_quotes(
    text: str, quoted: str
) -> None:
    line = f"title: {quoted}"
    assert hint(f"type: bug\ntitle: {text}\npriority: low\n").endswith(line)
    in_quotes = ("'don't'", '"a \\d b"', '"press "Upload" now"')
    words = text[1:-1] if text in in_quotes else text
    assert TicketSpec.from_yaml(line).title == words


@each_row(("text", "number", "line", "name", "value"), REPAIRED)
def test_the_line_of_the_hint_repairs_the_text(
    text: str, number: int, line: str, name: str, value: Any
) -> None:
    assert hint(text).endswith(line)
    lines = text.splitlines()
    lines[number - 1] = line
    if name:
        assert getattr(TicketSpec.from_yaml("\n".join(lines)), name) == value


@each_row(("text", "words"), ADVISED)
def test_the_hint_names_what_to_change(text: str, words: str) -> None:
    assert words in hint(text)


@each_row("text", ["title: x\n%y", "x: [\n" * 4])
def test_without_a_remedy_the_place_is_named(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        TicketSpec.from_yaml(text)
    assert caught.value.message.startswith("spec.yaml:")
    assert caught.value.hint


def test_a_long_text_is_not_repeated() -> None:
    assert hint(f"title: a: {'b' * 200}").endswith("line 1 in quotes")
