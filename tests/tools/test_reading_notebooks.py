"""Notebooks as the reading tool and mentions show them: without pictures."""

import json
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.agents.attachments import attach_files
from cdd_agent.files.read import SourceUnreadable, read_source

PICTURE = "iVBORw0KGgo" * 20_000
OUTPUT = {"data": {"image/png": PICTURE}, "metadata": {}, "output_type": "x"}
CELL: dict[str, Any] = {
    "cell_type": "code",
    "execution_count": 1,
    "metadata": {},
    "outputs": [OUTPUT],
    "source": ["price = 3"],
}
TEXT = json.dumps({"cells": [CELL, CELL], "metadata": {}, "nbformat": 4}, indent=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "n.ipynb").write_text(TEXT)
    return tmp_path


def test_a_notebook_is_read_without_its_outputs(root: Path) -> None:
    source = read_source(root, "n.ipynb")
    lines = source.text.split("\n")
    remarks = [line for line in lines if line.startswith("… (lines ")]
    assert len(remarks) == 2
    assert set(lines) - set(remarks) <= set(TEXT.split("\n"))
    assert lines.count('    "price = 3"') == 2
    assert not source.cut
    assert "outputs" in source.note


def test_a_range_of_a_notebook_has_no_outputs(root: Path) -> None:
    number = TEXT.split("\n").index(f'      "image/png": "{PICTURE}"') + 1
    source = read_source(root, "n.ipynb", number - 1, number)
    assert source.text.count("\n") <= 1
    assert "not shown" in source.text
    last = len(TEXT.split("\n"))
    assert read_source(root, "n.ipynb", last, last).text == "}"
    with pytest.raises(SourceUnreadable):
        read_source(root, "n.ipynb", last + 1)


def test_a_large_notebook_goes_with_a_line(root: Path) -> None:
    mentions = attach_files(root, "what does @n.ipynb do?", 10_000)
    assert "price = 3" in mentions.text
    assert "iVBOR" not in mentions.text


def test_a_notebook_that_is_too_large_is_not_read(
    root: Path,
) -> None:
    (root / "n.ipynb").write_text(TEXT + " " * 20_000_000)
    with pytest.raises(SourceUnreadable):
        read_source(root, "n.ipynb")
