"""Checks of texts in their formats: a fault has its line, and valid texts have none."""

import json
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.files.kinds import FileKind
from cdd_agent.files.syntax import find_fault
from tests.support.tables import each_row

values = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)
comments = st.sampled_from(["", " ", "/* a, ' */", '// b "\n', "/**/", "\r\n"])

FAULTS = [
    (FileKind.JSON, '{\n"a": 1\n"b": 2}', "line 3:"),
    (FileKind.COMMENTED_JSON, '{\n/* a\nb */ "a": 1\n"b": 2}', "line 4:"),
    (FileKind.COMMENTED_JSON, "{a: 'b\\\nc'\nd: 2}", "line 3:"),
    (FileKind.COMMENTED_JSON, "[1.5.2]", "line 1:"),
    (FileKind.COMMENTED_JSON, '{"a": b}', "line 1:"),
    (FileKind.COMMENTED_JSON, '{"a": 1,,}', "line 1:"),
    (FileKind.COMMENTED_JSON, '{"a": 1 /* b}', "line 1:"),
    (FileKind.JSON_LINES, "{}\n\n[1,]\n", "line 3:"),
    (FileKind.PYTHON, "x = 1\ny = (\n", "line 2:"),
    (FileKind.PYTHON, "x = '\0'\n", "null"),
    (FileKind.TOML, "a = 1\nb = \n", "line 2"),
    (FileKind.YAML, "a: 1\nb: [\n", "line 3:"),
    (FileKind.NOTEBOOK, '{"nbformat": 4, "cells": [{"cell_type": "raw"}]}', "cell 1 "),
    (FileKind.NOTEBOOK, '{"nbformat": 4}', "`cells`"),
    (FileKind.NOTEBOOK, '{"cells": []}', "`nbformat`"),
    (FileKind.NOTEBOOK, "[]", "object"),
]


@each_row("kind, text, place", FAULTS)
def test_a_fault_has_its_place(kind: FileKind, text: str, place: str) -> None:
    assert place in find_fault(kind, text)


NO_FAULTS = [
    *((kind, "") for kind in FileKind),
    *((kind, " \n") for kind in FileKind),
    (FileKind.JSON, "[" * 100_000),
    (FileKind.COMMENTED_JSON, "[" * 100_000),
    (FileKind.NOTEBOOK, "[" * 100_000),
    (FileKind.TOML, "a = " + "[" * 100_000),
    (FileKind.YAML, "[" * 100_000),
    (FileKind.JSON, "\n" * 5_000_001 + "{"),
    (FileKind.COMMENTED_JSON, "{$a: -0xF, 'b\"': +Infinity, c: [NaN, 5., .5e-3,],}"),
    (FileKind.COMMENTED_JSON, '["http://a", "/* b */", "c,]", /* "d */ 1]'),
    (FileKind.TOML, "a = {\n  b = 1,\n}\n"),
    (FileKind.YAML, "a: !Tag {b: *c}\n---\n- x%"),
]


@each_row("kind, text", NO_FAULTS, ids=lambda value: str(value)[:40])
def test_blank_deep_and_large_texts_are_no_fault(kind: FileKind, text: str) -> None:
    assert find_fault(kind, text) == ""


SLOW = {
    "a name": "a" * 200_000,
    "digits": "[" + "1" * 200_000 + "x",
    "digits after a point": "[." + "1" * 200_000 + "x",
    "quotes that are escaped": '"' + '\\"' * 100_000,
    "quotes within others": "\"it's " + "\\\"'" * 100_000,
    "comments without an end": "/* " * 100_000,
    "commas": ", " * 100_000,
}


@each_row("text", SLOW.values(), ids=SLOW.keys())
def test_no_text_takes_long(text: str) -> None:
    begun = time.process_time()
    assert find_fault(FileKind.COMMENTED_JSON, text)
    assert time.process_time() - begun < 5


@given(values)
def test_json_is_also_json_with_comments(value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    assert find_fault(FileKind.JSON, text) == ""
    assert find_fault(FileKind.COMMENTED_JSON, text) == ""
    assert find_fault(FileKind.JSON_LINES, json.dumps(value)) == ""


@given(st.lists(values | st.booleans(), max_size=3), comments, comments)
def test_comments_may_be_between_all_values(
    items: list[Any], first: str, second: str
) -> None:
    separator = f"{first},{second}"
    text = f"[{first}{separator.join(map(json.dumps, items))}{second}]"
    assert find_fault(FileKind.COMMENTED_JSON, text) == ""


@given(values, st.data())
def test_what_is_not_json_is_a_fault(value: Any, data: st.DataObject) -> None:
    text = json.dumps({"a": value}, indent=1)
    place = data.draw(st.integers(0, len(text) - 1))
    broken = text[:place] + text[place + 1 :]
    try:
        json.loads(broken)
    except ValueError:
        assert find_fault(FileKind.JSON, broken)
    else:
        assert find_fault(FileKind.JSON, broken) == ""


@given(st.sampled_from(FileKind), st.text("ab\\\"'\n[]{}(),:/*#=1.é\t", max_size=60))
def test_any_text_is_read(kind: FileKind, text: str) -> None:
    assert isinstance(find_fault(kind, text), str)
