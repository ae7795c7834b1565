"""A model's reply in the transcript: its edits are drawn while they stream."""

from collections.abc import Iterable
from itertools import pairwise
from time import perf_counter, process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.tui.transcript.diff import DiffLayout
from cdd_agent.tui.transcript.edits import compare, compare_beginning
from cdd_agent.tui.transcript.lines import TranscriptLine
from cdd_agent.tui.transcript.reply import ReplyDrawer
from tests.support.examples import count_examples
from tests.support.projects import SLUG, Sandbox, Step, check
from tests.support.tables import each_row
from tests.tui.held_model import HeldModel
from tests.tui.person import person_at

BLOCK = """\
src/app.py
<<<<<<< SEARCH
def total(items):
    return sum(items)


def mean(items):
    return total(items) / len(items)
=======
def total(items: list[int]) -> int:
    return sum(items)
>>>>>>> REPLACE
"""
FILE = """\
```python:src/new.py
def first():
    return 1
```
"""
DIFF = """\
--- a/src/app.py
+++ b/src/app.py
@@ -1,2 +1,2 @@ class Box:
 def total(items):
-    return sum(items)
+    return sum(items, 0)
"""
PATCH = """\
*** Begin Patch
*** Update File: src/app.py
@@ class Box:
 def total(items):
-    return sum(items)
+    return sum(items, 0)
*** Delete File: src/old.py
*** End Patch
"""
ACTIONS = """\
```yaml
- create_file: src/new.py
  content: |
    one = 1
- edit: src/app.py
  find: total
  replace: whole
```
"""


def rows(lines: Iterable[TranscriptLine], width: int = 60) -> list[str]:
    shown: list[str] = []
    for line in lines:
        for row in line.rows(width):
            gutter = row.line.hang if row.start else row.line.gutter
            beginning = "".join(text for text, _ in gutter)
            text = beginning + row.line.text[row.start : row.end]
            shown.append(text.rstrip())
    return shown


def drawn(text: str, cuts: Iterable[int] = ()) -> list[TranscriptLine]:
    reply = ReplyDrawer(DiffLayout())
    lines: list[TranscriptLine] = []
    for start, end in pairwise([0, *sorted(cuts), len(text)]):
        lines += reply.feed(text[start:end])
        # what is drawn in between changes nothing
        rows(reply.tail())
    return lines + reply.finish()


def halfway(text: str, end: str) -> list[str]:
    """The rows when the reply has come up to this text."""
    reply = ReplyDrawer(DiffLayout())
    settled = reply.feed(text[: text.index(end) + len(end)])
    return rows([*settled, *reply.tail()])


DRAWN = {
    "a search/replace block": (
        BLOCK,
        [
            " src/app.py  +1 −5",
            "- def total(items):",
            "+ def total(items: list[int]) -> int:",
            "      return sum(items)",
            "-",
            "-",
            "- def mean(items):",
            "-     return total(items) / len(items)",
        ],
    ),
    "in a code block": (
        f"```python\n{BLOCK}```\n",
        [" src/app.py  +1 −5", "- def total(items):"],
    ),
    "a whole file": (FILE, [" src/new.py", " def first():", "     return 1"]),
    "a file named above": (
        FILE.replace("```python:src/new.py", "src/new.py\n```"),
        [" src/new.py", " def first():", "     return 1"],
    ),
    "a diff": (
        DIFF,
        [
            " src/app.py  +1 −1",
            "⋯   class Box:",
            "  def total(items):",
            "-     return sum(items)",
            "+     return sum(items, 0)",
        ],
    ),
    "a diff in a code block": (
        f"```diff\n{DIFF}```\n",
        [" src/app.py  +1 −1", "⋯   class Box:", "  def total(items):"],
    ),
    "git's diff": (
        f"diff --git a/src/app.py b/src/app.py\nindex 1..2 100644\n{DIFF}",
        [" src/app.py  +1 −1", "⋯   class Box:"],
    ),
    "a patch": (
        PATCH,
        [
            " src/app.py  +1 −1",
            "⋯   class Box:",
            "  def total(items):",
            "-     return sum(items)",
            "+     return sum(items, 0)",
            "",
            " src/old.py  deleted",
        ],
    ),
    "actions": (
        ACTIONS,
        [
            " src/new.py  new",
            " one = 1",
            "",
            " src/app.py  +1 −1",
            "- total",
            "+ whole",
        ],
    ),
    "words around an edit": (
        f"I do **it**:\n\n{FILE}\nDone.\n",
        ["I do it:", "", " src/new.py", " def first():", "     return 1", "", "Done."],
    ),
    "two blocks of a file": (
        f"{BLOCK}\n{BLOCK}",
        [" src/app.py  +2 −10", "- def total(items):"],
    ),
    "commands": ("```bash\npytest -q\n```\n", [" pytest -q"]),
    "a nameless block": ("```python\nx = 1\n```\n", [" x = 1"]),
}


@each_row("text, expected", DRAWN.values(), ids=DRAWN.keys())
def test_each_form_is_drawn(text: str, expected: list[str]) -> None:
    assert rows(drawn(text))[: len(expected)] == expected


def test_a_block_is_drawn_while_it_is_written() -> None:
    name = " src/app.py"
    assert halfway(BLOCK, "SEARCH\n") == [name]
    assert halfway(BLOCK, "def total(items):\n    ret") == [
        name,
        "  def total(items):",
        "      ret",
    ]
    assert halfway(BLOCK, "-> int:\n")[:4] == [
        name,
        "- def total(items):",
        "+ def total(items: list[int]) -> int:",
        "      return sum(items)",
    ]
    assert halfway(FILE, "return") == [" src/new.py", " def first():", "     return"]
    assert halfway(f"```diff\n{DIFF}", "-    return sum(items)\n")[-2:] == [
        "  def total(items):",
        "-     return sum(items)",
    ]


def test_old_lines_that_the_new_ones_have_not_reached_are_unchanged() -> None:
    old = ["a = 1", "b = 2", "c = 3"]
    assert compare_beginning(old, ["a = 1", "b = 20"]) == [
        (" ", "a = 1"),
        ("-", "b = 2"),
        ("+", "b = 20"),
        (" ", "c = 3"),
    ]
    assert [sign for sign, _ in compare(old, ["a = 1", "b = 20"])] == list(" --+")


PIECES = [
    BLOCK,
    FILE,
    DIFF,
    PATCH,
    ACTIONS,
    f"```diff\n{DIFF}```\n",
    "Some *words*.\n\n",
    "1. `src/app.py`:\n   ```python\n   x = 1\n   ```\n",
    "<<<<<<< SEARCH\n",
    "=======\n",
    ">>>>>>> REPLACE\n",
    "```\n",
    "```python\n",
    "*** Begin Patch\n",
    "+ a line\n",
    "x" * 1_500 + "\n",
    "\r\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.data())
@settings(max_examples=count_examples(80), deadline=None)
def test_every_way_to_cut_a_reply_gives_the_same_lines(
    pieces: list[str], data: st.DataObject
) -> None:
    text = "".join(pieces)
    places = st.lists(st.integers(0, len(text)), max_size=60)
    assert rows(drawn(text, data.draw(places))) == rows(drawn(text))


LONG = {
    "a file": "```python:a.py\n" + "x = 1\n" * 6_000 + "```\n",
    "an endless block": "a.py\n<<<<<<< SEARCH\n" + "x = 1\n" * 6_000,
    "blocks": "a.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n" * 600,
    "the same lines": (
        "a.py\n<<<<<<< SEARCH\n" + "}\n" * 300 + "=======\n" + "}\n" * 301
    )
    * 8,
    "a diff": "--- a/a.py\n+++ b/a.py\n@@\n" + "-x = 1\n+x = 2\n" * 3_000,
    "removed lines": "--- a/a.py\n+++ b/a.py\n@@\n" + "-x = 1\n" * 6_000,
    "blank lines in a diff": "--- a/a.py\n+++ b/a.py\n@@\n+x\n" + "\n" * 6_000,
    "names": "src/app.py\n" * 3_000,
    "fences": "```\n" * 6_000,
    "one line": "```python:a.py\n" + "x" * 100_000,
    "a long line of a block": "a.py\n<<<<<<< SEARCH\n" + "x" * 100_000,
}


@each_row("text", LONG.values(), ids=LONG.keys())
def test_a_long_reply_takes_time_in_proportion(text: str) -> None:
    def measure(part: str) -> float:
        started = perf_counter()
        reply = ReplyDrawer(DiffLayout())
        for start in range(0, len(part), 1_000):
            reply.feed(part[start : start + 1_000])
            reply.tail()
        reply.finish()
        return perf_counter() - started

    measure(text[: len(text) // 8])
    quarter = measure(text[: len(text) // 4])
    # in proportion it is 4 times as long, by the square 16 times
    assert measure(text) < 10 * quarter + 0.5


EDITS = (
    "I add a line, and a file.\n\n"
    "a.txt\n<<<<<<< SEARCH\none\ntwo\n=======\none\n2\n>>>>>>> REPLACE\n\n"
    "```text:b.txt\nnew\n```\n"
)


@pytest.mark.story
async def test_a_step_shows_its_edits_while_they_stream_and_then_its_diff(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("one\ntwo\n")
    sandbox.write(Step("b.txt", check("b.txt", "new")))
    held = HeldModel(EDITS, beginning="one\n2\n")
    sandbox.model = held
    async with person_at(sandbox, f"/exec {SLUG}", size=(100, 40)) as person:
        await person.begin("all")
        await person.until(lambda: "+ 2" in person.screen)
        drawn_rows = [row.strip() for row in person.screen.splitlines()]
        at = drawn_rows.index("a.txt")
        assert drawn_rows[at + 1 : at + 4] == ["one", "+ 2", "two"]
        assert "SEARCH" not in person.screen
        held.release()
        await person.until(lambda: not person.is_waiting)
        words = [" ".join(row.split()) for row in person.screen.splitlines()]
        assert any(row.startswith("▸ Reply · 2 files · ") for row in words)
        at = words.index("▾ edit a.txt +1 −1")
        assert words[at + 1 : at + 4] == ["1 one", "2 - two", "2 + 2"]
        assert "▾ create b.txt +1" in words
        assert EDITS in person.told


def test_opening_brackets_do_not_hold_up_the_screen() -> None:
    """Looking for the end of each link took a second for 8,000 characters."""
    lines = ReplyDrawer(DiffLayout())
    start = process_time()
    settled = [*lines.feed("![" * 16_000), *lines.finish()]
    assert process_time() - start < 2
    assert sum(len(line.text) for line in settled) == 32_000
