"""The lines of notebooks that models do not see."""

import json
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.files.line_ranges import Ranges, subtract_ranges
from cdd_agent.files.notebooks import (
    find_hidden_lines,
    find_shown_lines,
    replace_hidden_lines,
)
from tests.support.tables import each_row

PICTURE = "iVBORw0KGgo" * 40


def cell(source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source.splitlines(keepends=True), **more}


def output(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"image/png": text}}


def notebook(*cells: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4}


def visible(text: str, path: str = "n.ipynb") -> str:
    lines = text.split("\n")
    ranges = subtract_ranges(((1, len(lines)),), find_hidden_lines(path, text))
    return "\n".join(line for first, last in ranges for line in lines[first - 1 : last])


NOTEBOOKS = [
    notebook(cell("a = 1\nplot(a)\n", outputs=[output(PICTURE)])),
    notebook(cell("a = 1\nplot(a)\n", outputs=[output(PICTURE)] * 3), cell("a = 1\n")),
    notebook(cell("a = 1\n", attachments={"a.png": {"image/png": PICTURE}})),
    notebook(cell("a = 1\n"), widgets={"state": {"1": PICTURE}}),
    notebook(cell('a = 1\n"outputs": [\n'), cell("}\n", outputs=[output(PICTURE)])),
    {
        "nbformat": 3,
        "worksheets": [{"cells": [{"input": ["a = 1"], "outputs": [output(PICTURE)]}]}],
    },
    notebook(cell(f"a = 1\n![](data:image/png;base64,{PICTURE * 10})\n")),
]


@each_row("indent", [1, 2, 4, "\t"])
@each_row("content", NOTEBOOKS)
def test_pictures_and_outputs_are_hidden(
    content: dict[str, Any], indent: int | str
) -> None:
    text = json.dumps(content, indent=indent)
    shown = visible(text)
    assert PICTURE not in shown
    assert "a = 1" in shown
    assert '"nbformat": ' in shown
    assert set(shown.splitlines()) < set(text.splitlines())


def test_all_other_lines_are_visible() -> None:
    def write(outputs: str) -> str:
        plots = cell("a = 1\n", outputs="OUTPUTS")
        text = json.dumps(notebook(plots, cell("b\n")), indent=1)
        return text.replace('"OUTPUTS"', outputs)

    outputs = json.dumps([output(PICTURE)], indent=1).replace("\n", "\n   ")
    assert visible(write(outputs)) == write("[\n   ]")


UNCHANGED = [
    ("n.json", json.dumps(NOTEBOOKS[0], indent=1)),
    ("n.ipynb", json.dumps(notebook(cell("a = 1", outputs=[])), indent=1)),
    ("n.ipynb", json.dumps(notebook(cell("a = 1", outputs=[output("a")])))),
    ("n.ipynb", json.dumps(NOTEBOOKS[0], indent=1) + "}"),
    (
        "n.ipynb",
        json.dumps({"outputs": [1, 2], "metadata": {"outputs": [1]}}, indent=1),
    ),
    ("n.ipynb", "[\n1\n]"),
    ("n.ipynb", '"outputs"'),
    ("n.ipynb", ""),
]


@each_row("path, text", UNCHANGED)
def test_other_files_and_texts_are_visible(path: str, text: str) -> None:
    assert visible(text, path) == text


def test_a_notebook_without_line_ends_is_hidden() -> None:
    assert (
        visible(json.dumps(notebook(cell("a = 1", outputs=[output(PICTURE * 9)]))))
        == ""
    )


REPLACED = [
    ("a\nb\nc\nd\n", 1, ((2, 3),), "a\n… (lines 2 to 3 are not shown)\nd\n"),
    ("b\nc", 2, ((2, 3),), "… (lines 2 to 3 are not shown)\n"),
    ("c\nd", 3, ((2, 3), (6, 7)), "… (lines 2 to 3 are not shown)\nd"),
    ("d\ne", 4, ((2, 3), (6, 7)), "d\ne"),
    ("a\nb", 1, ((2, 3),), "a\n… (lines 2 to 3 are not shown)\n"),
    (
        "a\nb\nc\nd",
        1,
        ((1, 1), (3, 3)),
        "… (line 1 is not shown)\nb\n… (line 3 is not shown)\nd",
    ),
]


def test_the_lines_that_a_text_shows_are_found() -> None:
    content = notebook(cell("a = 1\n", outputs=[output(PICTURE)]), cell("b\n"))
    text = json.dumps(content, indent=1)
    hidden = find_hidden_lines("n.ipynb", text)
    count = len(text.split("\n"))
    visible_lines = subtract_ranges(((1, count),), hidden)
    for first in (1, 3, hidden[0][0], hidden[0][1] + 1):
        lines = "\n".join(text.split("\n")[first - 1 :])
        shown = replace_hidden_lines(lines, first, hidden)
        found = find_shown_lines("n.ipynb", text, f"{shown}\n… (a note)\n", first)
        assert found == subtract_ranges(((first, count),), hidden)
        assert set(found) <= set(visible_lines) or first > 1
    assert find_shown_lines("n.ipynb", text, "something else", 1) == ()
    assert find_shown_lines("n.ipynb", text, "}\nmore", count + 5) == ()


def test_a_notebook_of_many_cells_does_not_take_long() -> None:
    cells = [cell("a\n" * 15, outputs=[output("b")]) for _ in range(2_000)]
    text = json.dumps(notebook(*cells), indent=1)
    hidden = find_hidden_lines("n.ipynb", text)
    shown = replace_hidden_lines(text, 1, hidden)
    begun = time.process_time()
    found = find_shown_lines("n.ipynb", text, shown, 1)
    assert found == subtract_ranges(((1, len(text.split("\n"))),), hidden)
    assert len(found) == 2_001
    assert time.process_time() - begun < 5


@each_row("text, first, hidden, shown", REPLACED)
def test_hidden_lines_are_replaced(
    text: str, first: int, hidden: Ranges, shown: str
) -> None:
    assert replace_hidden_lines(text, first, hidden) == shown


values = st.recursive(
    st.none() | st.integers() | st.text('ab\\"\n[{,:}] é', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cells", "outputs", "metadata", "widgets", "a"]), inner
        )
    ),
    max_leaves=12,
)


@given(values, st.sampled_from([None, 0, 1, "\t"]))
def test_any_json_keeps_the_lines_around_outputs(value: Any, indent: Any) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    hidden = find_hidden_lines("n.ipynb", text)
    lines = text.split("\n")
    for first, last in hidden:
        assert 1 < first <= last < len(lines)
        assert lines[first - 2].rstrip()[-1] in "[{"
        assert lines[last].lstrip()[0] in "]}"
