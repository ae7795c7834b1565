"""YAML of unknown origin: what is too deep is refused, however it is spelled and
however small the text is.
"""

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.guarded_yaml import read_node
from tests.support.tables import each_row

SPELLINGS = {
    "lists in brackets": lambda levels: "[" * levels + "]" * levels,
    "mappings in braces": lambda levels: "{a: " * levels + "x" + "}" * levels,
    "lists in a line": lambda levels: "- " * levels + "x",
    "mappings, a line each": lambda levels: "\n".join(
        " " * level + "a:" for level in range(levels)
    ),
    "keys that are told": lambda levels: "? " * levels + "x",
}
MOST = 49


@each_row("spelling", SPELLINGS)
@each_row("before", ["", "# *\n"], ids=["plainly small", "looked through"])
def test_so_many_levels_are_read_and_no_more(spelling: str, before: str) -> None:
    text = SPELLINGS[spelling]
    assert read_node(before + text(MOST), "a.yaml") is not None
    with pytest.raises(BadInput, match="nested more than"):
        read_node(before + text(MOST + 1), "a.yaml")


def test_aliases_are_counted_however_small_the_text_is() -> None:
    lists = ["a: &a [" + ", ".join("x" * 9) + "]"]
    lists += [
        f"{key}: &{key} [{', '.join([f'*{last}'] * 9)}]"
        for last, key in zip("abcdefg", "bcdefgh", strict=True)
    ]
    with pytest.raises(BadInput, match="aliases make the document too large"):
        read_node("\n".join(lists), "a.yaml")
