import json
from itertools import islice
from typing import Any

from cdd_agent.events.dialogue_events import ToolFinished, ToolStarted
from cdd_agent.llm.direct.json_values import read_json
from cdd_agent.llm.port import ToolCall
from cdd_agent.tools.base import Answer, Tool

_LONGEST_VALUE = 60
"""Maximum characters of an argument."""
_MOST_ARGUMENTS = 8
_LONGEST_OUTPUT = 8_000


def shown_call(call: ToolCall) -> str:
    """Return a call in a line: `read_file(path=src/app.py)`."""
    name = _shorten(call.name)
    arguments = _read_arguments(call)
    if arguments is None:
        return f"{name}(…)"
    shown = []
    for argument, value in islice(arguments.items(), _MOST_ARGUMENTS):
        shown.append(f"{_shorten(argument)}={_shorten(value)}")
    if len(arguments) > _MOST_ARGUMENTS:
        shown.append("…")
    return f"{name}({', '.join(shown)})"


def started_event(
    call: ToolCall, tool: Tool[Any] | None, step: int | None
) -> ToolStarted:
    arguments = _read_arguments(call)
    if tool is None or arguments is None:
        return ToolStarted(step, shown_call(call))
    target = arguments.get(tool.main_argument) or ""
    if isinstance(target, list):
        target = "; ".join(map(str, target))
    return ToolStarted(
        step,
        shown_call(call),
        tool.name,
        str(target),
        _line_number(arguments, "start_line"),
        _line_number(arguments, "end_line"),
    )


def finished_event(
    started: ToolStarted, answer: Answer, seconds: float
) -> ToolFinished:
    exit_code = answer.get("return_code")
    problem = str(answer.get("error") or "")
    if exit_code:
        problem = f"exit code {exit_code}"
    return ToolFinished(
        started.step,
        started.call,
        problem,
        started.tool,
        started.target,
        started.first_line,
        started.last_line,
        seconds,
        exit_code if isinstance(exit_code, int) else None,
        _output_of(answer),
    )


def _output_of(answer: Answer) -> str:
    streams = [str(answer[name]) for name in ("stdout", "stderr") if answer.get(name)]
    if streams:
        return "\n".join(streams)[-_LONGEST_OUTPUT:]
    return str(answer.get("output") or "")[:_LONGEST_OUTPUT]


def _read_arguments(call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments, or None if they are not a JSON object."""
    arguments = read_json(call.arguments or "{}")
    return arguments if isinstance(arguments, dict) else None


def _line_number(arguments: dict[str, Any], name: str) -> int | None:
    number = arguments.get(name)
    return number if isinstance(number, int) else None


def _shorten(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line_ends = text.count("\n")
    if line_ends > 1:
        lines = line_ends + (not text.endswith("\n"))
        return f"… {lines} lines"
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_VALUE else f"{line[:_LONGEST_VALUE]}…"
