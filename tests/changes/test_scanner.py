"""The scanner of a streaming reply: its edits are those that are read at the end."""

import re
from contextlib import suppress
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.changes.formats.project_names import plain_name
from cdd_agent.changes.model import (
    Edit,
    Renaming,
    Replacement,
    ReplyRefused,
)
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.reply.scanned_parts import (
    EditEnded,
    EditNote,
    EditStarted,
    HunkLine,
    LineOfFile,
    LinesReplaced,
    ReplyPart,
    ReplyWords,
)
from cdd_agent.changes.reply.scanner import ReplyScanner
from tests.changes.replies_of_tests import all_replies
from tests.support.examples import count_examples
from tests.support.tables import each_row

_NOT_SCANNED = re.compile(
    r"<think|</think|<\w+_\w+>|<invoke|<function|Action:|functools|\"name\":|\"tool\""
    r"|^old mode|^new mode|\[TOOL|<\||^<source>|^```text\n- action",
    re.MULTILINE,
)
"""Thoughts, which are removed before; calls in the text; permissions alone; a tag that
counts only if its end is there; a list in a block of text, which its later lines tell.
"""


_CHANGES = LineOfFile | HunkLine | LinesReplaced


def scan(text: str) -> list[ReplyPart]:
    scanner = ReplyScanner()
    parts: list[ReplyPart] = []
    for line in text.removesuffix("\n").split("\n"):
        parts += scanner.take(line.removesuffix("\r"))
    return parts + scanner.finish()


def files_of(parts: list[ReplyPart]) -> set[str]:
    return {plain_name(part.path) for part in parts if isinstance(part, EditStarted)}


@cache
def edits_of_tests() -> dict[str, tuple[Edit, ...]]:
    """Return the edits of each reply in the tables that a scanner sees as well."""
    edits: dict[str, tuple[Edit, ...]] = {}
    for reply in all_replies().values():
        if not _NOT_SCANNED.search(reply):
            with suppress(ReplyRefused):
                edits[reply] = parse_reply(reply).edits
    return edits


def test_the_files_are_those_that_are_read_at_the_end() -> None:
    different: list[str] = []
    for reply, edits in edits_of_tests().items():
        if not edits:
            # a diff that changes nothing is shown all the same
            parts = scan(reply)
            is_changed = any(isinstance(part, _CHANGES) for part in parts)
            if is_changed and files_of(parts) != {""}:
                different.append(reply)
            continue
        moved = {
            plain_name(edit.to): plain_name(edit.path)
            for edit in edits
            if isinstance(edit, Renaming)
        }
        expected = {plain_name(edit.path) for edit in edits}
        found = files_of(scan(reply)) - {""}
        if {moved.get(path, path) for path in found} != {
            moved.get(path, path) for path in expected
        }:
            different.append(f"{expected} {found}\n{reply}")
    assert not different, "\n\n".join(different)
    assert len(edits_of_tests()) > 250


def test_replaced_lines_are_those_that_are_read() -> None:
    compared = 0
    for reply, edits in edits_of_tests().items():
        if not edits or not all(isinstance(edit, Replacement) for edit in edits):
            continue
        replaced = [
            (part.find, part.new)
            for part in scan(reply)
            if isinstance(part, LinesReplaced)
        ]
        read = [
            (edit.find, edit.replace) for edit in edits if isinstance(edit, Replacement)
        ]
        if replaced:
            compared += 1
            assert [lines for lines in read if lines in replaced] == replaced, reply
    assert compared > 50


HOSTILE = {
    "a block that is never closed": "a.py\n<<<<<<< SEARCH\nx\n",
    "no divider": "a.py\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n",
    "two dividers": (
        "a.py\n<<<<<<< SEARCH\nx\n=======\ny\n=======\nz\n>>>>>>> REPLACE\n"
    ),
    "a block in a block": (
        "a.py\n<<<<<<< SEARCH\nx\n<<<<<<< SEARCH\ny\n=======\nz\n>>>>>>> REPLACE\n"
    ),
    "an end without a beginning": "a.py\nx\n=======\ny\n>>>>>>> REPLACE\nz\n",
    "a fence that is never closed": "```python:a.py\nx = 1\n",
    "only the first line of a fence": "```python:a.py",
    "a fence in a fence": "```md:a.md\nx\n```py\ny\n```\nz\n```\nw\n",
    "a wrapped one": "```markdown\nI do it.\n\n```python:a.py\nx\n```\n\nIt is.\n```\n",
    "a patch without its end": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y",
    "a name above an empty patch": (
        "lost.py\n```\n*** Begin Patch\n```\nb.py\n```py\nx\n```\n"
    ),
    "a patch without a file": "*** Begin Patch\n+x\n*** End Patch\n",
    "a diff of nothing": "```diff\n-x\n+y\n```\n",
    "names without hunks": "--- a/x.py\n+++ b/x.py\nand words\n",
    "a rule and a list": "--- \n+ one\n+ two\n",
    "a list of actions that is cut": "```yaml\n- action: create_file\n  file_path: a",
    "a list with a fault": "```yaml\n- action: create_file\n  path: [\n```\n",
    "tags": "a.py\n<source>\nx = 1\n</source>\n",
    "a long name line": "x" * 2_000 + "\n```\ny\n```\n",
}
_MARKS = re.compile(
    r"[<>=]{5,}|SEARCH|REPLACE|\*\*\* (?:Begin|End) Patch|\*\*\* \w+ File:|```\w*"
    r"|^(?:---|\+\+\+) (?:[ab]/)?|source",
    re.MULTILINE,
)


def text_of(part: ReplyPart) -> str:
    match part:
        case ReplyWords(text=text) | LineOfFile(text=text) | EditNote(text=text):
            return text
        case HunkLine(text=text):
            return text
        case LinesReplaced(find=find, new=new):
            return "\n".join((*find, *new))
        case EditStarted(path=path):
            return path
        case _:
            return ""


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", _MARKS.sub(" ", text))


@each_row("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_word_is_lost(reply: str) -> None:
    shown = {word for part in scan(reply) for word in words_of(text_of(part))}
    assert set(words_of(reply)) <= shown | {"markdown", "python", "a", "py"}


def test_words_stay_below_the_name_above_them() -> None:
    parts = scan("first.py\n```\n*** Begin Patch\nsecond\n*** End Patch\n```\n")
    shown = "".join(text_of(part) for part in parts)
    assert shown.startswith("first.py\nsecond\n")


BLOCKS = [
    "Some words.",
    "",
    "src/app.py",
    "```python:src/a.py\nx = 1\n```",
    "```\nx\n```",
    "```diff\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n```",
    "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE",
    "<<<<<<< SEARCH",
    "=======",
    ">>>>>>> REPLACE",
    "```python",
    "```",
    "*** Begin Patch\n*** Update File: c.py\n@@ def f\n-x\n+y\n*** End Patch",
    "*** Begin Patch",
    "--- a/d.py\n+++ b/d.py\n@@ -1,2 +1,2 @@\n-x\n+y\n z",
    "--- a/d.py",
    "- an item\n  ```python:e.py\n  x\n  ```",
]


@given(st.lists(st.sampled_from(BLOCKS), max_size=12))
@settings(max_examples=count_examples(300), deadline=None)
def test_any_order_of_blocks_is_read_to_the_end(blocks: list[str]) -> None:
    parts = scan("\n".join(blocks))
    depth = 0
    for part in parts:
        if isinstance(part, EditStarted):
            assert depth == 0
            depth = 1
        elif isinstance(part, EditEnded):
            assert depth == 1
            depth = 0
        elif not isinstance(part, ReplyWords):
            assert depth == 1
    assert depth == 0
