"""Shared by the tests of steps with tools: rounds of calls, and runs of a step."""

import json
from collections.abc import Callable

from cdd_agent.engine.engine import Engine
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tools.base import parse_answer
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import Sandbox, Step, check

STEP = Step("a.txt", check("a.txt"))
FORMAT = (
    "python -c \"p='a.txt'; t=open(p).read().strip(); open(p, 'w').write(t + '\\n')\""
)
"""A formatter: it gives a.txt one line end."""


def calls(*made: tuple[str, object], text: str = "") -> ScriptedReply:
    """A round of the model; arguments that are a text are written as they are."""
    return ScriptedReply(
        text,
        tool_calls=tuple(
            ToolCall(
                f"call-{number}",
                name,
                arguments if isinstance(arguments, str) else json.dumps(arguments),
            )
            for number, (name, arguments) in enumerate(made)
        ),
    )


def create(path: str, content: str) -> tuple[str, object]:
    return "create_file", {"file_path": path, "content": content}


def replace(path: str, find: str, new: str) -> tuple[str, object]:
    return "edit_file", {"file_path": path, "find": find, "replace": new}


def read(path: str) -> tuple[str, object]:
    return "read_file", {"path": path}


def execute(command: str) -> tuple[str, object]:
    return "execute_command", {"command": command}


async def run(sandbox: Sandbox, *, attempts: int = 1) -> list[Event]:
    engine = sandbox.engine()
    try:
        return [
            *await collect(engine.recover()),
            *await collect(engine.run_all(attempts=attempts)),
        ]
    finally:
        engine.close()


def finished(events: list[Event]) -> StepFinished:
    (last,) = [event for event in events if isinstance(event, StepFinished)]
    return last


def problems(events: list[Event]) -> list[str]:
    return [event.problem for event in events if isinstance(event, ToolFinished)]


def answers(sandbox: Sandbox, request: int) -> list[dict[str, object]]:
    """The tools' answers of the last round before a request."""
    messages = sandbox.model.requests[request].messages
    last = max(
        place for place, message in enumerate(messages) if message.role == "assistant"
    )
    return [
        parse_answer(message.content)
        for message in messages[last + 1 :]
        if message.role == "tool"
    ]


async def stopped_after(engine: Engine, seen: str) -> list[Event]:
    """Run until a tool was used that is shown so, then stop as Esc does; what is told
    until it is stopped.
    """
    return await stop_at(
        engine.run_all(),
        lambda event: isinstance(event, ToolFinished) and seen in event.call,
    )


async def run_with(
    sandbox: Sandbox, seen: str, act: Callable[[], object]
) -> list[Event]:
    """Run the plan; `act` when a tool was used that is shown so, before anything else
    happens.
    """

    def listen(event: Event) -> None:
        if isinstance(event, ToolFinished) and seen in event.call:
            act()

    engine = sandbox.engine()
    try:
        with told_to(listen):
            return await collect(engine.run_all())
    finally:
        engine.close()


async def leave_out(sandbox: Sandbox) -> None:
    """Skip the first step, with what it left."""
    engine = sandbox.engine()
    await collect(engine.skip(engine.run.plan.steps[0], "no", keep=False))
    engine.close()
