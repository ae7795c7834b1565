"""How the files of a prompt share its room."""

import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.context.code_text import CodeText, ShownCode
from cdd_agent.context.finder import CodeSearch
from cdd_agent.context.query import Query
from cdd_agent.context.sharing import Priority, WantedFile, limit_part, share_room
from cdd_agent.files.charsets import Charsets
from cdd_agent.llm.token_estimates import estimate_tokens
from tests.support.tables import each_row

SEARCH = CodeSearch(None, Query(""))
SMALL = 300
"""Tokens of a file that needs less than the minimum."""
LINE = "x = 1  # this line has about ten tokens\n"
TOKENS_OF_LINE = estimate_tokens(LINE * 100) / 100
STEP, PATTERN, OTHER = Priority


def wanted(tokens: int, priority: Priority = OTHER, most: int = 200_000) -> WantedFile:
    text = LINE * int(tokens / TOKENS_OF_LINE)
    charsets = Charsets(Path(tempfile.gettempdir()))
    return WantedFile(CodeText("a.py", text.encode(), charsets), priority, most)


def forms(shown: list[ShownCode | None]) -> list[str]:
    return ["no" if code is None else code.form for code in shown]


WHOLE, IN_PART, NO = "whole", "in part", "no"


@each_row(
    ("room", "files", "expected"),
    [
        # without a limit only the bytes count
        (None, [(STEP, 40_000), (OTHER, 100), (PATTERN, 50)], [WHOLE] * 3),
        (None, [(OTHER, 90_000), (OTHER, 100)], [IN_PART, WHOLE]),
        # what comes after a file that is cut
        (4_000, [(STEP, 50_000), (STEP, SMALL)], [IN_PART, WHOLE]),
        (4_000, [(OTHER, 50_000), (OTHER, SMALL)], [IN_PART, WHOLE]),
        (4_000, [(STEP, 50_000), (OTHER, 300), (OTHER, 900)], [IN_PART, WHOLE, WHOLE]),
        (4_000, [(PATTERN, 50_000), (PATTERN, SMALL)], [IN_PART, WHOLE]),
        (4_000, [(OTHER, 90_000)] * 3 + [(OTHER, SMALL)], [IN_PART] * 3 + [WHOLE]),
        # the order of the same files does not matter
        (3_000, [(STEP, 2_800), (STEP, 1_000)], [IN_PART, WHOLE]),
        (3_000, [(STEP, 1_000), (STEP, 2_800)], [WHOLE, IN_PART]),
        # the files of the step come first, and starve no other
        (3_000, [(OTHER, 2_000), (STEP, 2_000)], [IN_PART, WHOLE]),
        (3_000, [(PATTERN, 2_000), (STEP, 2_000)], [IN_PART, WHOLE]),
        # a pattern: some files whole, not the beginning of each
        (4_000, [(PATTERN, 1_300)] * 9, [WHOLE, WHOLE, IN_PART] + [NO] * 6),
        (4_000, [(STEP, 50_000)] + [(PATTERN, 700)] * 9, [IN_PART, WHOLE, WHOLE]),
        (4_000, [(STEP, 50_000), (PATTERN, 3_000)], [IN_PART, IN_PART]),
        # no room for the minimum of all
        (1_000, [(OTHER, 4_000)] * 3, [IN_PART, NO, NO]),
        (100, [(STEP, 4_000)], [NO]),
        (0, [(STEP, 4_000), (OTHER, 10)], [NO, NO]),
        (-5, [(STEP, 10)], [NO]),
    ],
)
def test_a_file_that_is_cut_hides_none_after_it(
    room: int | None, files: list[tuple[Priority, int]], expected: list[str]
) -> None:
    given_files = [wanted(tokens, priority) for priority, tokens in files]
    window = None if room is None else 30_000
    found = forms(share_room(given_files, SEARCH, room, window))
    assert found[: len(expected)] == expected


FILES = st.lists(
    st.tuples(st.sampled_from(list(Priority)), st.integers(0, 9_000)),
    min_size=1,
    max_size=8,
)


@given(FILES, st.integers(500, 20_000))
def test_a_later_file_that_fits_is_never_left_out(
    files: list[tuple[Priority, int]], room: int
) -> None:
    given_files = [wanted(tokens, priority) for priority, tokens in files]
    shown = share_room(given_files, SEARCH, room, 30_000)
    used = sum(code.tokens + 1 for code in shown if code is not None)
    assert used <= room
    kept_free = room // 8
    rows = list(zip(given_files, shown, strict=True))
    for file, code in rows:
        if code is not None and code.lines is None:
            continue
        # it would not have fitted into what remains
        has = code.tokens + 1 if code else 0
        assert file.text.tokens - has > room - used - kept_free
    cut = [code for _, code in rows if code is not None and code.lines is not None]
    small = [file for file, _ in rows if file.text.tokens < 400]
    if cut and sum(file.text.tokens + 1 for file in small) < room // 4:
        for file, code in rows:
            if file in small and file.priority is not PATTERN:
                assert code is not None
                assert code.lines is None


@given(FILES, st.integers(2_000, 20_000))
def test_no_file_of_the_step_takes_the_minimum_of_another(
    files: list[tuple[Priority, int]], room: int
) -> None:
    given_files = [wanted(tokens, priority) for priority, tokens in files]
    minimums = sum(min(file.text.tokens + 1, 400) for file in given_files)
    if minimums > room // 2:
        return
    for file, code in zip(
        given_files, share_room(given_files, SEARCH, room), strict=True
    ):
        assert code is not None or file.priority is PATTERN
        if code is not None and code.lines is not None:
            assert code.tokens <= limit_part(None)


def test_a_file_with_too_many_bytes_is_shown_in_part_in_any_room() -> None:
    files = [wanted(9_000, most=500), wanted(100, most=500)]
    assert forms(share_room(files, SEARCH, None)) == [IN_PART, WHOLE]


def test_a_notebook_in_part_has_all_lines_that_can_be_shown() -> None:
    outputs = [{"output_type": "display_data", "data": {"image/png": "iVBOR" * 400}}]
    cell = {"cell_type": "code", "outputs": outputs, "source": ["x = 1\n"] * 9}
    notebook = {"cells": [cell] * 9, "metadata": {}, "nbformat": 4}
    charsets = Charsets(Path(tempfile.gettempdir()))
    data = json.dumps(notebook, indent=1).encode()
    text = CodeText("a.ipynb", data, charsets)
    file = WantedFile(text, STEP, 1_000, ((1, 20),))
    (shown,) = share_room([file], SEARCH, None, None)
    assert shown is not None
    assert shown.lines == text.visible_lines
