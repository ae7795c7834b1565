"""A model on loopback that carries out the generated tickets, and misbehaves by seed.

`python -m tests.soak.model_server --seed 1 --log FILE` prints its address. It writes a
JSON line about each request into the log.
"""

import argparse
import json
import random
import threading
import time
from collections import Counter
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from cdd_agent.engine.prompt import LAST_FAILED
from cdd_agent.llm.port import Request, ToolCall
from tests.llm.server import Answer, LoopbackServer, failure
from tests.soak.tickets import SoakStep, StepKind


class ServerFault(StrEnum):
    """A way in which the server misbehaves."""

    RATE_LIMIT = "429"
    LONG_RATE_LIMIT = "429, wait two minutes"
    SERVER_ERROR = "500"
    CUT_STREAM = "cut stream"
    EARLY_CUT = "cut before the first byte"
    SLOW = "slow reply"
    GARBAGE = "garbage in the stream"
    WEB_PAGE = "web page instead of a reply"
    EMPTY = "empty reply"
    LENGTH = "cut by the length limit"


_LONG_WAIT = "125"
"""Seconds. After more than two minutes a run stops, and all runs of a fleet wait."""
FAULT_RATES = {
    ServerFault.RATE_LIMIT: 0.05,
    ServerFault.LONG_RATE_LIMIT: 0.005,
    ServerFault.SERVER_ERROR: 0.03,
    ServerFault.CUT_STREAM: 0.04,
    ServerFault.EARLY_CUT: 0.02,
    ServerFault.SLOW: 0.05,
    ServerFault.GARBAGE: 0.02,
    ServerFault.WEB_PAGE: 0.005,
    ServerFault.EMPTY: 0.02,
    ServerFault.LENGTH: 0.01,
}
"""The share of requests with each fault: a quarter of all together."""


class SoakModel:
    """Answers requests of generated steps. Threads may call it."""

    def __init__(self, seed: int, log: Path) -> None:
        self._seed = seed
        self._log = log
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def answer(self, request: Request) -> Answer:
        question = next(
            message.content for message in request.messages if message.role == "user"
        )
        step = SoakStep.from_prompt(question)
        if step is None:
            return failure(400, "This request has no step.")
        answered = sum(bool(message.tool_calls) for message in request.messages)
        is_wrong = step.is_wrong_first and LAST_FAILED not in question
        fault, number = self._choose_fault(step)
        self._write(step, number, fault)
        answer = _right_answer(step, answered, is_wrong=is_wrong)
        return answer if fault is None else _spoil(answer, fault)

    def _choose_fault(self, step: SoakStep) -> tuple[ServerFault | None, int]:
        """Return the fault of the step's next request, and the number of the
        request.
        """
        with self._lock:
            self._counts[step.path] += 1
            number = self._counts[step.path]
        rng = random.Random(f"{self._seed} {step.path} {number}")
        value = rng.random()
        for fault, rate in FAULT_RATES.items():
            value -= rate
            if value < 0:
                return fault, number
        return None, number

    def _write(self, step: SoakStep, number: int, fault: ServerFault | None) -> None:
        entry = {
            "time": time.time(),
            "path": step.path,
            "request": number,
            "fault": fault,
        }
        with self._lock, self._log.open("a") as file:
            file.write(f"{json.dumps(entry)}\n")


def _right_answer(step: SoakStep, answered: int, *, is_wrong: bool) -> Answer:
    """`answered` is the number of earlier rounds of tools."""
    word = "nothing" if is_wrong else step.word
    match step.kind:
        case StepKind.CREATE | StepKind.TESTED:
            return Answer(f"Here it is.\n\n```text:{step.path}\nIt says {word}\n```\n")
        case StepKind.EDIT:
            return Answer(
                f"Here it is.\n\n{step.path}\n<<<<<<< SEARCH\nline 7\n=======\n"
                f"line 7 {word}\n>>>>>>> REPLACE\n"
            )
        case StepKind.TOOLS | StepKind.COMMAND:
            return _answer_with_tools(_rounds(step, word), answered)


def _rounds(step: SoakStep, word: str) -> list[tuple[str, dict[str, str]]]:
    """Return the calls of a step, one for each round."""
    path = step.path
    if step.kind is StepKind.TOOLS:
        edit = {"file_path": path, "find": "First.", "replace": word}
        return [
            ("create_file", {"file_path": path, "content": "First.\n"}),
            ("read_file", {"path": path}),
            ("edit_file", edit),
        ]
    code = (
        f"import pathlib; path = pathlib.Path('{path}');"
        " path.parent.mkdir(parents=True, exist_ok=True);"
        f" path.write_text('{word}')"
    )
    return [("execute_command", {"command": f'python -S -c "{code}"'})]


def _answer_with_tools(
    rounds: list[tuple[str, dict[str, str]]], answered: int
) -> Answer:
    if answered >= len(rounds):
        return Answer("The file says the word.")
    name, arguments = rounds[answered]
    call = ToolCall(f"call-{answered}", name, json.dumps(arguments))
    return Answer("I continue.", tool_calls=(call,), finish_reason="tool_calls")


def _spoil(answer: Answer, fault: ServerFault) -> Answer:
    if fault in _CHANGES:
        return replace(answer, **_CHANGES[fault])
    return _REPLACEMENTS[fault]


_CHANGES: dict[ServerFault, dict[str, Any]] = {
    ServerFault.CUT_STREAM: {"cut_after": 2},
    ServerFault.EARLY_CUT: {"cut_after": 0},
    ServerFault.SLOW: {"wait": 1.0, "pause": 0.1},
    ServerFault.GARBAGE: {"garbage": True},
    ServerFault.LENGTH: {"finish_reason": "length"},
}
"""Fields of the right answer that a fault changes."""
_REPLACEMENTS = {
    ServerFault.RATE_LIMIT: failure(429, "Slow down.", headers={"Retry-After": "1"}),
    ServerFault.LONG_RATE_LIMIT: failure(
        429, "Slow down.", headers={"Retry-After": _LONG_WAIT}
    ),
    ServerFault.SERVER_ERROR: failure(500, "A fault."),
    ServerFault.WEB_PAGE: Answer(
        raw="<html><body>Sign in</body></html>", content_type="text/html"
    ),
    ServerFault.EMPTY: Answer(""),
}
"""Answers instead of the right one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args()
    model = SoakModel(options.seed, options.log)
    with LoopbackServer(model.answer) as server:
        print(server.url, flush=True)
        server.join()


if __name__ == "__main__":
    main()
