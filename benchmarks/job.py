"""Measure a job's cost beyond the model and the tests: `python -m benchmarks.job`, with
`long` also for 2,000 steps.

`cdd exec` carries out five steps on a small project, with one reply per step, and with
tools. It is compared with a bare loop around the model that has only four tools, makes
the same files and runs the tests as often: twice. The model is a server on this
computer that answers at once. The rounds alternate; a figure is the median of the
rounds' ratios. On a shared machine, processor time is more reliable than seconds, and
counts are most reliable.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

ROUNDS = 5
STEPS = 5
LONG = 2_000
_PYTHON = sys.executable
_PROGRAMS = Path(_PYTHON).parent
_BARE = """
import asyncio, json, ssl, subprocess, sys
from pathlib import Path
import httpx

def read_file(path):
    return Path(path).read_text()
def write_file(path, content):
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(content)
    return "written"
def edit_file(path, find, replace):
    Path(path).write_text(Path(path).read_text().replace(find, replace))
    return "edited"
def run_command(command):
    return subprocess.run(command.split(), capture_output=True, text=True).stdout
WORKING = (read_file, write_file, edit_file, run_command)
TOOLS = {tool.__name__: tool for tool in WORKING}
def definition(name, tool):
    words = {word: {"type": "string"} for word in tool.__code__.co_varnames}
    return {"type": "function", "function": {
        "name": name,
        "description": name.replace("_", " "),
        "parameters": {"type": "object", "properties": words},
    }}
DEFINITIONS = [definition(name, tool) for name, tool in TOOLS.items()]

async def main():
    plan = Path("tickets/feature-stock/plan.md").read_text()
    messages = [{"role": "user", "content": plan}]
    address = sys.argv[1] + "/chat/completions"
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    async with httpx.AsyncClient(trust_env=False, verify=trusted) as client:
        while True:
            body = {
                "model": "m",
                "messages": messages,
                "tools": DEFINITIONS,
                "stream": True,
            }
            text, calls = "", {}
            async with client.stream("POST", address, json=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        for choice in json.loads(line[6:])["choices"]:
                            text += choice["delta"].get("content") or ""
                            for call in choice["delta"].get("tool_calls", ()):
                                calls[call["index"]] = call
            said = {"role": "assistant", "content": text}
            messages.append(said | {"tool_calls": list(calls.values())})
            if not calls:
                break
            for call in calls.values():
                called = call["function"]
                answer = TOOLS[called["name"]](**json.loads(called["arguments"]))
                answered = {"role": "tool", "tool_call_id": call["id"]}
                messages.append(answered | {"content": answer})

asyncio.run(main())
"""
_ONE_CALL_OF_LITELLM = """
import asyncio, sys
import litellm

async def main():
    asked = [{"role": "user", "content": "Hello"}]
    chunks = await litellm.acompletion(
        "openai/m",
        asked,
        api_base=sys.argv[1],
        stream=True,
        stream_options={"include_usage": True},
    )
    async for chunk in chunks:
        pass

asyncio.run(main())
"""
_CONFIG = (
    "model: openai/m\nmodel_adapter: {adapter}\napproval: auto\ntool_calls: {calls}\n"
)
_SPEC = """\
title: Know the stock
type: feature
description: A shop knows what it has of each thing, and what that is worth.
acceptance_criteria:
  - What there is of a thing is told by its name.
  - The worth of all is in cents.
"""
_TEST = (
    "from shop.base import total\n\n\n"
    "def test_total():\n"
    "    assert total([1, 2]) == 3\n"
)


def module(number: int, value: int = 1) -> str:
    return (
        f'"""Part {number} of the stock."""\n\n\n'
        f"def part_{number}() -> int:\n"
        f"    return {value}\n"
    )


def new_file(number: int) -> str:
    return f"shop/part_{number}.py"


def one_of_twenty(number: int) -> str:
    return f"shop/more_{number % 20}.py"


Call = tuple[str, dict[str, str]]


@dataclass
class Server:
    """The model: answers by a script, and records the times of requests and answers,
    and the size of requests.
    """

    script: list[str | Call]
    asked: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    """Characters of the requests, by part."""
    counted: list[int] = field(default_factory=list)
    log: Path | None = None
    """A file in which git processes are counted."""

    def answer(self, body: bytes) -> bytes:
        self.asked.append(time.perf_counter())
        self._divide(body)
        if self.log is not None:
            self.counted.append(
                len(self.log.read_text().splitlines()) if self.log.exists() else 0
            )
        entry = self.script[len(self.asked) - 1]
        if isinstance(entry, str):
            pieces: list[dict[str, Any]] = [{"content": entry}]
        else:
            name, arguments = entry
            function: dict[str, Any] = {
                "name": name,
                "arguments": json.dumps(arguments),
            }
            call = {
                "index": 0,
                "id": f"call-{len(self.asked)}",
                "type": "function",
                "function": function,
            }
            pieces = [{"tool_calls": [call]}]
        reason = "stop" if isinstance(entry, str) else "tool_calls"
        choices: list[list[dict[str, Any]]] = [
            [{"index": 0, "delta": piece, "finish_reason": None}] for piece in pieces
        ]
        choices.append([{"index": 0, "delta": {}, "finish_reason": reason}])
        usage: Any = {
            "prompt_tokens": len(body) // 4,
            "completion_tokens": 10,
            "total_tokens": len(body) // 4 + 10,
        }
        events: list[dict[str, Any]] = [
            {"id": "1", "choices": each} for each in choices
        ]
        events.append({"id": "1", "choices": [], "usage": usage})
        return (
            b"".join(f"data: {json.dumps(each)}\n\n".encode() for each in events)
            + b"data: [DONE]\n\n"
        )

    def _divide(self, body: bytes) -> None:
        request = json.loads(body)
        system, step, *since = (
            request["messages"]
            if len(request["messages"]) > 1
            else ("", *request["messages"])
        )
        parts = {
            "definitions": request.get("tools", ""),
            "system": system,
            "step": step,
        }
        sizes = {name: _size(part) for name, part in parts.items() if part}
        sizes["calls and answers"] = sum(map(_size, since))
        self.sent.update({**sizes, "all else": len(body) - sum(sizes.values())})

    @contextmanager
    def running(self) -> Iterator[str]:
        http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        http.daemon_threads, http.block_on_close = True, False
        http.model = self  # type: ignore[attr-defined]
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}/v1"
        finally:
            http.shutdown()
            http.server_close()

    def gaps(self, numbers: Sequence[int]) -> list[float]:
        """Return the seconds from the end of these answers to the next request."""
        return [self.asked[number + 1] - self.answered[number] for number in numbers]


def _size(part: object) -> int:
    return len(json.dumps(part, ensure_ascii=False, separators=(",", ":")).encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # head and body in one write: the second of two small writes would wait for the
    # acknowledgement of the first
    wbufsize = -1

    def do_POST(self) -> None:
        model = cast("Server", self.server.model)  # type: ignore[attr-defined]
        answer = model.answer(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        self.wfile.flush()
        model.answered.append(time.perf_counter())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@dataclass(frozen=True)
class Ran:
    """The figures of one job."""

    seconds: float
    processor: float
    mebibytes: float
    first: float
    """Seconds from the start to the first request."""
    gap: float
    """Median seconds between two requests without a command between them."""
    sent: Counter[str]
    """Characters, by part of a request."""

    @property
    def characters(self) -> int:
        return self.sent.total()


def one_reply(steps: int, written: Callable[[int], str] = new_file) -> list[str | Call]:
    """Each reply writes a file, by the step's number."""
    return [
        f"Here it is.\n\n```python:{written(number)}\n{module(number)}```\n"
        for number in range(1, steps + 1)
    ]


def with_tools(steps: int) -> list[str | Call]:
    """Twelve rounds in five steps."""
    script: list[str | Call] = []
    for number in range(1, steps + 1):
        script.append(
            (
                "create_file",
                {"file_path": f"shop/part_{number}.py", "content": module(number)},
            )
        )
        if number in (2, 4):
            edit = {
                "file_path": f"shop/part_{number}.py",
                "find": "return 1",
                "replace": "return 2",
            }
            script.append(("edit_file", edit))
        script.append("It is done.")
    return script


def bare() -> list[str | Call]:
    """The same files in as many rounds, and the tests before and after."""
    script: list[str | Call] = [("run_command", {"command": f"{_PYTHON} -m pytest"})]
    for number in range(1, STEPS + 1):
        script.append(
            (
                "write_file",
                {"path": f"shop/part_{number}.py", "content": module(number)},
            )
        )
        if number in (2, 4):
            script.append(
                (
                    "edit_file",
                    {
                        "path": f"shop/part_{number}.py",
                        "find": "return 1",
                        "replace": "return 2",
                    },
                )
            )
        if number < STEPS - 1:
            script.append(("read_file", {"path": f"shop/part_{number}.py"}))
    return [
        *script,
        ("run_command", {"command": f"{_PYTHON} -m pytest"}),
        "It is done.",
    ]


def project(
    root: Path,
    steps: int,
    *,
    calls: str,
    written: Callable[[int], str] = new_file,
    adapter: str = "direct",
) -> None:
    """Create a small project in git, with a ticket of which only the last step has a
    check: the project's tests.
    """
    files = {
        "shop/__init__.py": "",
        "shop/base.py": "def total(values):\n    return sum(values)\n",
        "tests/test_base.py": _TEST,
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
        ".gitignore": "__pycache__/\n.pytest_cache/\n",
        **{f"shop/more_{number}.py": module(number) for number in range(20)},
        ".cdd/config.yaml": _CONFIG.format(calls=calls, adapter=adapter),
        "tickets/feature-stock/spec.yaml": _SPEC,
        "tickets/feature-stock/plan.md": plan(steps, written),
    }
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for words in (
        ("init", "--quiet"),
        ("add", "--all"),
        (*author, "commit", "--quiet", "--message=begin"),
    ):
        subprocess.run(["git", *words], cwd=root, check=True)


def plan(steps: int, written: Callable[[int], str]) -> str:
    parts = [
        (
            "# Implementation Plan: Know the stock\n\n"
            "**Ticket:** `feature-stock`\n\n"
            "## Implementation Steps\n"
        )
    ]
    for number in range(1, steps + 1):
        check = "pytest" if number == steps else "none"
        parts.append(
            f"### Step {number}: Part {number}\n\n"
            f"**Description:** Create `part_{number}()`: what there is.\n"
            "**Dependencies:** None\n"
            f"**Verify:** `{check}`\n\n"
            "**Files Affected:**\n"
            f"- `{written(number)}`\n"
        )
    return "\n".join(parts)


def run(
    command: Sequence[str],
    root: Path,
    server: Server,
    *,
    quiet: Sequence[int],
    path: str = "",
) -> Ran:
    """Carry a job out. `quiet`: the answers after which no command runs before the next
    request.
    """
    with server.running() as url:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().endswith("_PROXY")
        }
        environment |= {
            "CDD_API_BASE": url,
            "OPENAI_API_KEY": "none",
            "CDD_USER_CONFIG": os.devnull,
            "CDD_TRUST": "1",
        }
        environment["PATH"] = os.pathsep.join(
            filter(None, (path, str(_PROGRAMS), environment["PATH"]))
        )
        output = root.parent / "output"
        with output.open("wb") as file:
            begun = time.perf_counter()
            words = [url if word == "URL" else word for word in command]
            process = subprocess.Popen(
                words, cwd=root, env=environment, stdout=file, stderr=file
            )
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode or len(server.asked) != len(server.script):
            sys.exit(
                f"{' '.join(map(str, command))} ended with {process.returncode}:\n"
                f"{output.read_text()[-3000:]}"
            )
    gap = statistics.median(server.gaps(quiet)) if quiet else 0.0
    first = server.asked[0] - begun
    return Ran(
        seconds,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
        first,
        gap,
        server.sent,
    )


def job(folder: Path, kind: str) -> Ran:
    """Carry out one kind of job in a new project."""
    root = folder / kind
    shutil.rmtree(root, ignore_errors=True)
    adapter = "litellm" if kind == "litellm" else "direct"
    project(root, STEPS, calls="on" if kind == "tools" else "off", adapter=adapter)
    if kind == "one call of litellm":
        # otherwise litellm fetches them from the network
        local_prices = "LITELLM_LOCAL_MODEL_COST_MAP=True"
        return run(
            ["env", local_prices, _PYTHON, "-c", _ONE_CALL_OF_LITELLM, "URL"],
            root,
            Server(["Hello."]),
            quiet=[],
        )
    if kind == "bare":
        server = Server(bare())
        return run(
            [_PYTHON, "-c", _BARE, "URL"],
            root,
            server,
            quiet=range(1, len(server.script) - 3),
        )
    server = Server(with_tools(STEPS) if kind == "tools" else one_reply(STEPS))
    calls = [
        number
        for number, entry in enumerate(server.script)
        if not isinstance(entry, str)
    ]
    quiet = calls if kind == "tools" else range(STEPS - 1)
    return run(
        [str(_PROGRAMS / "cdd"), "exec", "feature-stock", "--yes"],
        root,
        server,
        quiet=quiet,
    )


def processes(folder: Path, kind: str) -> list[int]:
    """Return how many git processes were started before each request."""
    root, counting = folder / "counted", folder / "counting"
    for place in (root, counting):
        shutil.rmtree(place, ignore_errors=True)
    counting.mkdir()
    log, program = counting / "log", counting / "git"
    program.write_text(
        f'#!/bin/sh\necho "$@" >>{log}\nexec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    project(root, STEPS, calls="on" if kind == "tools" else "off")
    server = Server(with_tools(STEPS) if kind == "tools" else one_reply(STEPS), log=log)
    command = [str(_PROGRAMS / "cdd"), "exec", "feature-stock", "--yes"]
    run(command, root, server, quiet=[0], path=str(counting))
    asked = [
        number
        for number, entry in enumerate(server.script)
        if number == 0 or isinstance(server.script[number - 1], str)
    ]
    return [
        *(server.counted[number] for number in asked),
        len(log.read_text().splitlines()),
    ]


def floor() -> float:
    """Return the seconds of a process that only imports what a call needs."""
    begun = time.perf_counter()
    subprocess.run([_PYTHON, "-c", "import httpx"], check=True)
    return time.perf_counter() - begun


def print_ratio(
    what: str,
    values: Sequence[float],
    references: Sequence[float],
    aim: float,
    unit: str = "s",
) -> None:
    ratio = statistics.median(a / b for a, b in zip(values, references, strict=True))
    a, b = statistics.median(values), statistics.median(references)
    print(f"{what}: {a:.3f} / {b:.3f} {unit} = {ratio:.2f} (aim: at most {aim})")


def long_run(
    folder: Path, steps: int, written: Callable[[int], str], what: str
) -> None:
    root = folder / "long"
    shutil.rmtree(root, ignore_errors=True)
    project(root, steps, calls="off", written=written)
    text = (
        (root / "tickets/feature-stock/plan.md")
        .read_text()
        .replace("**Verify:** `pytest`", "**Verify:** `none`")
    )
    (root / "tickets/feature-stock/plan.md").write_text(text)
    server = Server(one_reply(steps, written))
    run(
        [str(_PROGRAMS / "cdd"), "exec", "feature-stock", "--yes"],
        root,
        server,
        quiet=[0],
    )
    early = statistics.median(server.gaps(range(5, 45)))
    late = statistics.median(server.gaps(range(steps - 42, steps - 2)))
    ratio = (
        f"{late * 1000:.0f} / {early * 1000:.0f} ms = {late / early:.2f} (aim: at most"
        " 1.2)"
    )
    print(f"a step at {steps:,} / at 10, {what}: {ratio}")


def through_litellm(folder: Path) -> None:
    """Compare the job with the bare loop plus a process that imports litellm and makes
    one call.
    """
    kinds = ("litellm", "bare", "one call of litellm")
    rounds = [{kind: job(folder, kind).seconds for kind in kinds} for _ in range(4)][1:]
    floors = [each["bare"] + each["one call of litellm"] for each in rounds]
    what = (
        "the job through litellm / the bare loop, and litellm imported and asked once"
    )
    print_ratio(what, [each["litellm"] for each in rounds], floors, 1.0)


def main() -> None:
    kinds = ("bare", "one reply a step", "tools")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        rounds = []
        for number in range(ROUNDS + 1):
            ran = {kind: job(folder, kind) for kind in kinds}, floor()
            if number:  # the first warms the disk cache
                rounds.append(ran)
        jobs = {kind: [each[kind] for each, _ in rounds] for kind in kinds}
        imports = [each for _, each in rounds]
        bare_jobs = jobs["bare"]
        for kind, aim in (("one reply a step", 1.4), ("tools", 1.6)):
            print_ratio(
                f"the job, {kind} / the bare loop",
                [j.seconds for j in jobs[kind]],
                [j.seconds for j in bare_jobs],
                aim,
            )
            print_ratio(
                "  processor time",
                [j.processor for j in jobs[kind]],
                [j.processor for j in bare_jobs],
                aim,
            )
            print_ratio(
                "  memory",
                [j.mebibytes for j in jobs[kind]],
                [j.mebibytes for j in bare_jobs],
                1.5,
                "MiB",
            )
            print_ratio(
                "  start to the first call / import httpx",
                [j.first for j in jobs[kind]],
                imports,
                1.5,
            )
            gap, of_bare = (
                statistics.median(j.gap for j in jobs[kind]),
                statistics.median(j.gap for j in bare_jobs),
            )
            most = 10 if kind == "tools" else 40
            print(
                f"  between two calls: {gap * 1000:.0f} ms; bare: {of_bare * 1000:.1f}"
                f" (aim: at most {most} ms)"
            )
            counted = processes(folder, kind)
            steps = [after - before for before, after in pairwise(counted)]
            print(
                f"  git processes before the first call: {counted[0]}; by each step:"
                f" {steps} (aim: at most 2)"
            )
        sent, least = (
            [j.characters for j in jobs[kind]] for kind in ("tools", "one reply a step")
        )
        print_ratio(
            "characters sent, tools / one reply a step", sent, least, 4, "characters"
        )
        for kind in ("tools", "one reply a step"):
            print(
                f"  {kind}:",
                ", ".join(
                    f"{name} {size:,}" for name, size in jobs[kind][-1].sent.items()
                ),
            )
        through_litellm(folder)
        if "long" in sys.argv[1:]:
            long_run(folder, LONG, one_of_twenty, "each writes one of twenty files")
            long_run(
                folder,
                LONG,
                new_file,
                "each makes a file, so that there are two thousand",
            )


if __name__ == "__main__":
    if sys.platform == "win32":
        sys.exit("Waits for processes as POSIX does.")
    main()
