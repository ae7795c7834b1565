"""Diffs: read from any text, numbered, with the words that changed, in one column or
two.
"""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.changes.file_diff import LONGEST_DIFF, FileDiff
from cdd_agent.events.step_events import StepDiff
from cdd_agent.tui.transcript.actions import ActionBlocks
from cdd_agent.tui.transcript.diff import (
    SIDE_BY_SIDE_WIDTH,
    DiffLayout,
    DiffLine,
    changed_words,
)
from cdd_agent.tui.transcript.diff_reading import MOST_LINES, DiffOfFile, diff_files
from cdd_agent.tui.transcript.lines import TranscriptLine
from tests.tui.test_transcript import colours, screen, shown, text

GIT = """\
diff --git a/src/totals.py b/src/totals.py
index 5d0c5f1..61e3fc1 100644
--- a/src/totals.py
+++ b/src/totals.py
@@ -1,4 +1,5 @@
 import csv
-def total(entries):
-    return sum(entries)
+def total(entries: list[int]) -> int:
+    return sum(entries)  # of one month
+
 # the end
@@ -90 +91 @@ def report():
-old = 1
+old = 2
\\ No newline at end of file
diff --git a/data.bin b/data.bin
new file mode 100644
Binary files /dev/null and b/data.bin differ
"""


def rows(lines: Iterable[TranscriptLine], width: int = 80) -> list[str]:
    return [
        (
            "".join(piece for piece, _ in (line.hang if start else line.gutter))
            + line.text[start:end]
        ).rstrip()
        for one in lines
        for line, start, end in one.rows(width)
    ]


def of(source: str, layout: DiffLayout | None = None) -> list[DiffOfFile]:
    return diff_files(source, layout or DiffLayout())


def test_each_file_has_its_lines_numbered_and_counted() -> None:
    code, binary = of(GIT)
    assert (code.path, code.added, code.removed) == ("src/totals.py", 4, 3)
    assert rows(code.lines) == [
        "  1   import csv",
        "  2 - def total(entries):",
        "  3 -     return sum(entries)",
        "  2 + def total(entries: list[int]) -> int:",
        "  3 +     return sum(entries)  # of one month",
        "  4 +",
        "  5   # the end",
        "  ⋯   def report():",
        " 90 - old = 1",
        " 91 + old = 2",
        "    No newline at end of file",
    ]
    assert (binary.path, binary.added, binary.removed) == ("data.bin", 0, 0)
    assert [row.strip() for row in rows(binary.lines)] == [
        "new file",
        "Binary files /dev/null and b/data.bin differ",
    ]
    assert code.source + binary.source == GIT


def test_new_and_deleted_files_have_no_header_lines_and_keep_their_colours() -> None:
    source = (
        "diff --git a/new.py b/new.py\n"
        "new file mode 100644\n"
        "index 0000000..1\n"
        "--- /dev/null\n"
        "+++ b/new.py\n"
        "@@ -0,0 +1 @@\n"
        "+import csv\n"
        "diff --git a/old.py b/old.py\n"
        "deleted file mode 100644\n"
        "index 1..0000000\n"
        "--- a/old.py\n"
        "+++ /dev/null\n"
        "@@ -1 +0,0 @@\n"
        "-import csv\n"
    )
    new, old = of(source)
    assert (new.path, rows(new.lines)) == (
        "new.py",
        ["    new file", "  1 + import csv"],
    )
    assert (old.path, rows(old.lines)) == (
        "old.py",
        ["    deleted file", "  1 - import csv"],
    )
    for line in (*new.lines, *old.lines):
        assert not isinstance(line, DiffLine) or any(
            "keyword" in ink for _, _, ink in line.inks()
        )


def test_the_words_that_changed_are_marked() -> None:
    removed, added = (
        line
        for line in of(GIT)[0].lines
        if isinstance(line, DiffLine) and "total(" in line.text
    )
    marked = [
        added.text[start:end] for start, end, ink in added.inks() if "added-word" in ink
    ]
    assert "".join(marked) == ": list[int] -> int"
    assert not [ink for _, _, ink in removed.inks() if "removed-word" in ink]
    # the language's colours stay
    assert any("keyword" in ink for _, _, ink in added.inks())


def test_the_parts_of_a_line_that_changed_are_found() -> None:
    for before, after, old, new in (
        ("a = 1", "a = 2", ["1"], ["2"]),
        ("return x", "return x", [], []),
        ("nothing alike here", "quite = different()", [], []),
        ("", "new", [], []),
        ("f(a, b)", "f(b)", ["a, "], []),
        (
            "x" * 50 + " = 1  # " + "word " * 300,
            "x" * 50 + " = 2  # " + "word " * 300,
            ["1"],
            ["2"],
        ),
    ):
        gone, come = changed_words(before, after)
        assert [before[start:end] for start, end in gone] == old, before
        assert [after[start:end] for start, end in come] == new, after


def test_each_removed_line_is_compared_with_the_added_line_most_like_it() -> None:
    source = (
        "--- a\n"
        "+++ a\n"
        "@@ -1 +1,2 @@\n"
        "-value = compute(first)\n"
        "+import math\n"
        "+value = compute(second)\n"
    )
    (file,) = of(source)
    lines = [line for line in file.lines if isinstance(line, DiffLine)]
    assert [line.counterpart.text if line.counterpart else None for line in lines] == [
        "value = compute(second)",
        None,
        "value = compute(first)",
    ]


def test_side_by_side_each_line_is_next_to_its_previous_content() -> None:
    wide = rows(of(GIT)[0].lines, SIDE_BY_SIDE_WIDTH)
    halves = [(row[:69].rstrip(), row[69:].rstrip()) for row in wide]
    assert halves[:5] == [
        ("  1   import csv", "  1   import csv"),
        ("  2 - def total(entries):", "  2 + def total(entries: list[int]) -> int:"),
        (
            "  3 -     return sum(entries)",
            "  3 +     return sum(entries)  # of one month",
        ),
        ("", "  4 +"),
        ("  4   # the end", "  5   # the end"),
    ]
    layout = DiffLayout(is_side_by_side=False)
    assert rows(of(GIT, layout)[0].lines, SIDE_BY_SIDE_WIDTH) == rows(of(GIT)[0].lines)


def test_long_lines_are_wrapped_in_their_column_and_very_long_ones_cut() -> None:
    (file,) = of(
        "--- a\n+++ a\n@@ -1 +1 @@\n-" + "x" * 100 + "\n+" + "y" * 5_000 + "\n"
    )
    wide = rows(file.lines, 160)
    assert wide[0].startswith("  1 - " + "x" * 60)
    assert wide[1].startswith("    ↳ " + "x" * 20)
    assert all(len(row) <= 160 for row in wide)
    assert "…4,000morecharacters" in "".join(
        row[79:].strip().removeprefix("↳ ").replace(" ", "") for row in wide
    )


def test_a_huge_diff_is_bounded_and_says_so() -> None:
    source = "--- a\n+++ a\n@@ -0,0 +1,9000 @@\n" + "+x\n" * 9_000
    (file,) = of(source)
    assert len(file.lines) == MOST_LINES + 1
    assert rows(file.lines)[-1].strip() == "… 6,000 more lines"
    assert (file.added, file.source) == (9_000, source)


def test_whatever_is_no_diff_does_no_harm() -> None:
    for source in (
        "",
        "\n",
        "no diff at all",
        "@@ -999999999,999999999 +1,999999999 @@\n+x",
        "@@ -1 +1 @@\n" * 50,
        "--- \n+++ \n@@ -1 +1 @@\n-\x1b[31mred\x07\n+\ud800\u202e\n",
        "diff --git a/ b/\n" * 3,
        "--- a\t2026\n+++ b\t2026\n@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n",
        "@@ -1 +1 @@\n--- a\n+++ b\n",
    ):
        for width in (2, 20, 200):
            assert not any(
                "\x1b" in row or "\u202e" in row
                for file in of(source)
                for row in rows(file.lines, width)
            ), source


HOSTILE = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "--- a/x.py",
                "+++ b/x.py",
                "diff --git a/x b/x",
                "@@ -1,3 +1,3 @@ f",
                "@@ -2 +9 @@",
                "\\ x",
            ]
        ),
        st.builds(
            lambda sign, words: sign + words,
            st.sampled_from("+- "),
            st.text("ab (\t日\"'#", max_size=90),
        ),
        st.text(max_size=20).map(lambda words: words.replace("\n", "")),
    ),
    max_size=30,
)


@given(HOSTILE, st.integers(4, 200), st.booleans())
def test_any_text_is_read_drawn_and_kept(
    lines: list[str], width: int, is_side_by_side: bool
) -> None:
    """Its source is kept whole, every line of code is in a row, and no ink lies beside
    the text or over another.
    """
    source = "".join(f"{line}\n" for line in lines)
    files = of(source, DiffLayout(is_side_by_side))
    assert "".join(file.source for file in files) == source
    for file in files:
        drawn = [row for line in file.lines for row in line.rows(width)]
        for row in drawn:
            end = 0
            for begin, stop, _ in row.line.inks():
                assert end <= begin < stop <= len(row.line.text)
                end = stop
        together = "".join(row.line.text[row.start : row.end] for row in drawn)
        if not (is_side_by_side and width >= SIDE_BY_SIDE_WIDTH):
            whole = "".join(line.text for line in file.lines)
            assert together.replace(" ", "") == whole.replace(" ", "")


async def test_a_transcript_turns_its_diffs() -> None:
    async with shown(width=150) as (transcript, pilot):
        ActionBlocks(transcript).show(StepDiff(2, "Add them up", GIT))
        await pilot.pause()
        assert sum("import csv" in row for row in screen(transcript)) == 1
        assert text(transcript).count("import csv") == 2
        transcript.diff_layout.is_side_by_side = False
        transcript.lay_out_diffs()
        await pilot.pause()
        assert text(transcript).count("import csv") == 1
        assert colours(transcript, "-") != colours(transcript, "+")
        await pilot.resize_terminal(100, 24)
        transcript.diff_layout.is_side_by_side = False
        transcript.lay_out_diffs()
        await pilot.pause()
        # there is no room for two columns
        assert text(transcript).count("import csv") == 1


def test_the_diff_of_a_file_is_bounded() -> None:
    assert FileDiff.compare("a.py", None, b"one\ntwo\n") == FileDiff(
        "a.py", 2, 0, "--- /dev/null\n+++ a.py\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    )
    long = FileDiff.compare("a.py", b"", b"".join(b"%040d\n" % n for n in range(9_000)))
    assert (long.added, len(long.diff) < LONGEST_DIFF + 100) == (9_000, True)
    assert long.diff.endswith("more characters\n")
    for size in (600_000, 20_000):
        huge = FileDiff.compare("a.bin", b"", b"x\n" * size)
        assert (huge.added, huge.removed) == (0, 0)
        assert "too many to show" in huge.diff
