"""The schema of the JSON lines: committed, documented, and true of what is printed."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cdd_agent.events.stream import to_json
from tests.support.commandline import cdd, events, script
from tests.support.every_event import EXAMPLES
from tests.support.json_lines import SCHEMA, faults
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tools.event_schema import schema_text

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = (REFERENCE / "events-schema.json").read_text()
    assert committed == schema_text(), "make reference writes it"


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_each_type_of_the_schema_is_described() -> None:
    types = SCHEMA["$defs"]
    assert [name for name in types if not types[name].get("description")] == []


def test_every_event_fits_the_schema() -> None:
    lines = [json.loads(json.dumps(to_json(event))) for event in EXAMPLES]
    wrong = {line["event"]: faults(line) for line in lines if faults(line)}
    assert wrong == {}


def test_a_wrong_line_does_not_fit() -> None:
    line = json.loads(json.dumps(to_json(EXAMPLES[0])))
    assert faults(line) == []
    for wrong in (
        {**line, "v": 2},
        {**line, "event": "unknown"},
        {**line, "text": 1},
        {**line, "kind": "unknown"},
        {**line, "about": "unknown"},
        {key: value for key, value in line.items() if key != "text"},
        {key: value for key, value in line.items() if key != "v"},
    ):
        assert faults(wrong), wrong


@pytest.mark.story
def test_lines_of_commands_fit_the_schema(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    model = script(sandbox, says("a.txt", "bad"), says("a.txt", "good"), says("b", "c"))
    lines = []
    for command in (
        ("status", SLUG),
        ("list",),
        ("exec", SLUG, "--model", model, "--max-attempts", "2"),
        ("status", SLUG),
        ("criteria", SLUG),
        ("diff", SLUG),
        ("undo", SLUG),
        ("redo", SLUG),
        ("board",),
    ):
        cdd(sandbox, *command, "--json")
        lines += events(capsys)
    log = sandbox.root / ".cdd" / "runs" / SLUG / "events.jsonl"
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"step_finished", "attempt_failed", "steps_undone", "board_shown"} <= {
        line["event"] for line in lines
    }
    assert [faults(line) for line in (*lines, *logged) if faults(line)] == []
