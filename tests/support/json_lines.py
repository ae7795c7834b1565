"""The faults of JSON lines, by the schema."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

from tools.event_schema import line_schema

SCHEMA = line_schema()
VALIDATOR = Draft202012Validator(SCHEMA)


def faults(line: Mapping[str, Any]) -> list[str]:
    """Return the faults of a line, including keys that the schema lacks."""
    found = [error.message for error in VALIDATOR.iter_errors(line)]
    definition = next(
        (
            each
            for each in SCHEMA["$defs"].values()
            if each.get("properties", {}).get("event", {}).get("enum")
            == [line.get("event")]
        ),
        {"properties": {}},
    )
    known = {*SCHEMA["properties"], *definition["properties"]}
    return [
        *found,
        *(f"{key} is not in the schema" for key in line if key not in known),
    ]
