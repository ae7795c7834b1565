"""The JSON schema of the events, made from their types and docstrings.

`python -m cdd_agent.cli.json_schema` prints it for docs/reference/events-schema.json.
"""

import json
import sys
from typing import Any, get_args

from msgspec.json import schema_components

from cdd_agent.events.stream import JSON_VERSION, Event
from cdd_agent.fleet.board_lines import AnyBoardLine

_REFERENCE = "#/$defs/{name}"


def line_schema() -> dict[str, Any]:
    """Return the schema of one line. `ticket` and `run` are in the events of several
    runs.
    """
    types = (*get_args(Event), *get_args(AnyBoardLine))
    references, definitions = schema_components(types, ref_template=_REFERENCE)
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


def schema_text() -> str:
    return json.dumps(line_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
