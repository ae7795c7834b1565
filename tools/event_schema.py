"""The schema of the JSON lines, made from the types of the events and the notes in
their source.

`python -m tools.event_schema` prints it for docs/reference/events-schema.json.
"""

import json
import re
import sys
from enum import Enum
from typing import Any, get_args

from msgspec import Struct
from msgspec.inspect import EnumType, StructType, multi_type_info
from msgspec.json import schema_components

from cdd_agent.events.stream import JSON_VERSION, Event
from cdd_agent.fleet.board_lines import AnyBoardLine
from tools.source_notes import class_notes

EVENT_TYPES = (*get_args(Event), *get_args(AnyBoardLine))
_REFERENCE = "#/$defs/{name}"


def line_schema() -> dict[str, Any]:
    """Return the JSON schema of one line. Every line is one of the events; `ticket` and
    `run` are in the events of several runs.
    """
    references, definitions = schema_components(EVENT_TYPES, ref_template=_REFERENCE)
    types = _declared_types()
    for name, definition in definitions.items():
        _describe(definition, types[name])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"JSON lines of cdd, version {JSON_VERSION}",
        "description": (
            "One line of `--json` output. Events and fields may be added within a"
            " version: ignore what you do not know."
        ),
        "type": "object",
        "required": ["v", "event"],
        "properties": {
            "v": {"const": JSON_VERSION, "description": "The version of the lines."},
            "time": {"type": "string", "description": "In a run's log: the time."},
            "ticket": {"type": "string", "description": "Of several runs: the ticket."},
            "run": {"type": "string", "description": "Of several runs: the run."},
        },
        "oneOf": list(references),
        "$defs": definitions,
    }


def _declared_types() -> dict[str, type]:
    """Return the structs and enums of which events consist, by their names."""
    types: dict[str, type] = {}

    def visit(value: object) -> None:
        if isinstance(value, StructType | EnumType):
            if value.cls.__name__ in types:
                return
            types[value.cls.__name__] = value.cls
        if isinstance(value, tuple):
            for item in value:
                visit(item)
        elif isinstance(value, Struct):
            for name in value.__struct_fields__:
                visit(getattr(value, name))

    visit(tuple(multi_type_info(EVENT_TYPES)))
    return types


def _describe(definition: dict[str, Any], documented: type) -> None:
    """Add the notes of the fields, or of the members of an enum."""
    notes = class_notes(documented)
    lines = [" ".join(definition.pop("description", "").split())]
    if issubclass(documented, Enum):
        lines += [
            f"- `{member.value}`: {notes[member.name]}"
            for member in documented
            if member.name in notes
        ]
    text = "\n".join(lines).strip()
    if text:
        definition["description"] = in_json_terms(text)
    for name, field in definition.get("properties", {}).items():
        if name in notes:
            field["description"] = in_json_terms(notes[name])


def in_json_terms(text: str) -> str:
    """Return a docstring with `null` in place of None."""
    return re.sub(r"`?\bNone\b`?", "`null`", text)


def schema_text() -> str:
    return json.dumps(line_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
