"""The page about records has each key of the state and of the report, and no other."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import fields

from cdd_agent.engine.effort import RunEffort
from cdd_agent.engine.report import Report
from cdd_agent.tickets.state import ExecutionState, StepExecution
from tests.docs.pages import DOCS


def keys_of(kind: type[Struct]) -> set[str]:
    return {field.encode_name for field in fields(kind)}


def documented_keys(section: str) -> Iterator[str]:
    """Yield the keys in the first column of a section's tables, without remarks."""
    page = (DOCS / "reference" / "records.md").read_text("utf-8")
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for line in text.splitlines():
        if line.startswith("| `"):
            cell = re.sub(r"\(.*?\)", "", line.replace("](../", "").split("|")[1])
            yield from re.findall(r"`(\w+)`", cell)


def test_the_page_has_each_key_of_the_state() -> None:
    keys = keys_of(ExecutionState) | keys_of(StepExecution) | {"status"}
    assert set(documented_keys("State")) == keys


def test_the_page_has_each_key_of_the_report() -> None:
    keys = keys_of(Report) - {"effort"} | RunEffort().to_json().keys() | {"tally"}
    assert set(documented_keys("Report")) == keys
