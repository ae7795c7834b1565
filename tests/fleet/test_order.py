"""Orders for runs: `cdd exec` reads the order that its arguments were made from, and
the values of `argparse` go no further than its parser.
"""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

import cdd_agent
from cdd_agent.cli.orders import ExecOptions, read_order
from cdd_agent.cli.parser import parse_arguments
from cdd_agent.errors import BadInput
from cdd_agent.fleet.order import RunOrder

# any text that a program's argument may have
TEXT = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1
)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
NUMBERS = st.integers(1, 99)


@st.composite
def orders(draw: st.DrawFn) -> RunOrder:
    is_driven = draw(st.booleans())
    return RunOrder(
        project=Path(draw(NAMES)),
        ticket=draw(NAMES),
        own_tree=draw(st.booleans()),
        variant=draw(st.just("") | NAMES),
        base=draw(st.none() | TEXT),
        model=draw(st.none() | TEXT),
        api_base=draw(st.none() | TEXT),
        record=draw(st.none() | TEXT),
        max_attempts=draw(st.none() | NUMBERS),
        require=draw(st.sampled_from([None, "verified", "off"])),
        jobs=draw(st.none() | NUMBERS),
        approves_all=draw(st.booleans()),
        starts_over=draw(st.booleans()),
        trusts_all=draw(st.booleans()),
        as_json=is_driven or draw(st.booleans()),
        is_driven=is_driven,
        asks_before_calls=is_driven and draw(st.booleans()),
    )


@given(order=orders())
def test_a_process_reads_the_order_that_it_was_given(order: RunOrder) -> None:
    typed = parse_arguments(order.arguments)
    options = convert(typed.values, ExecOptions)
    assert read_order(typed.invocation, options) == order


def test_the_arguments_of_the_command_line_end_in_their_parser() -> None:
    package = Path(cdd_agent.__file__).parent
    readers = set()
    for path in package.rglob("*.py"):
        text = path.read_text()
        if "Namespace" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute | ast.Name):
                names = [node.attr if isinstance(node, ast.Attribute) else node.id]
            if "Namespace" in names:
                readers.add(path.relative_to(package).as_posix())
    assert readers == {"cli/parser.py"}


def test_only_a_driver_is_asked_before_calls() -> None:
    typed = parse_arguments(["exec", "x", "--ask-before-calls"])
    with pytest.raises(BadInput, match="--driven"):
        read_order(typed.invocation, convert(typed.values, ExecOptions))
