"""Measure the time to the first piece of a reply: each protocol called directly,
against httpx alone and litellm.

Run with `python -m benchmarks.models`. Each figure is a ratio of minimums from
alternating runs on one machine. Every run is a new Python process, from its start to
the first piece from a server on loopback, in another process. Also measured: the time
of a call after all imports, the memory, and the growth of a loop's rounds.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

RUNS = 7
CALLS = 15
"""Further calls in each run."""
_SCRIPT = 'replies:\n  - when: ""\n    reply: "Hello there, you."\n'
_MEASURED = """
import asyncio, sys, time

{ask}

first = []

def on_event(piece):
    if not first:
        first.append(time.time())

async def main():
    await ask(on_event)
    print(first[0])
    times = []
    for _ in range({calls}):
        before = time.perf_counter()
        await ask(on_event)
        times.append(time.perf_counter() - before)
    print(min(times))
    status = open("/proc/self/status")
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))

asyncio.run(main())
"""
_HTTPX = """
import json, ssl
import httpx

async def ask(on_event):
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello."}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    # nobody: reading certificates is not what is measured
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    address = sys.argv[1] + "/chat/completions"
    async with httpx.AsyncClient(trust_env=False, verify=trusted) as client:
        async with client.stream("POST", address, json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    choices = json.loads(line[6:])["choices"]
                    on_event(choices[0]["delta"].get("content") if choices else None)
"""
_ADAPTER = """
from cdd_agent.llm.port import Message, Request

def ask(on_event):
    return model.reply(Request((Message("user", "Hello."),)), on_event)
"""
_DIRECT = """
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.providers import endpoint_of

base = sys.argv[1].removesuffix("{without}")
model = DirectModel("{name}", endpoint_of("{name}", base))
"""


def _direct(name: str) -> str:
    """Ollama's own API has another address than the compatible one."""
    return _DIRECT.format(name=name, without="/v1" if name.startswith("ollama") else "")


_PROTOCOLS = {
    "chat completions": "openai/m",
    "responses": "openai/responses/m",
    "messages": "anthropic/m",
    "ollama": "ollama/m",
}
"""The protocols to call directly, by model names that select them."""
_LOOPS = 3
_LOOP = """
import asyncio, sys, time
from cdd_agent.llm.port import Message, Request, ToolCall

async def main():
    asked = [Message("system", "Be brief."), Message("user", "Do it. " * 2_000)]
    times = []
    for number in range({rounds}):
        before = time.perf_counter()
        await model.reply(Request(tuple(asked)), lambda event: None)
        times.append(time.perf_counter() - before)
        call = ToolCall(str(number), "read_file", "{{}}")
        answer = Message("tool", "so it is " * 100, tool_call_id=call.id)
        asked += [Message("assistant", "", (call,)), answer]
    print(min(times[2:9]))
    print(min(times[-7:]))

asyncio.run(main())
"""
ROUNDS = 25
_LITELLM = """
from cdd_agent.llm.litellm_adapter import LitellmModel

model = LitellmModel("openai/m", sys.argv[1])
"""
_PROGRAMS = {
    "httpx": _HTTPX,
    **{protocol: _direct(name) + _ADAPTER for protocol, name in _PROTOCOLS.items()},
    "litellm": _LITELLM + _ADAPTER,
}


@dataclass(frozen=True)
class Run:
    """One process: seconds to the first piece, seconds of a later call, maximum MiB."""

    first: float
    later: float
    mebibytes: float


def main() -> None:
    runs: dict[str, list[Run]] = {name: [] for name in _PROGRAMS}
    with _server() as url:
        for number in range(RUNS + 1):
            for name, program in _PROGRAMS.items():
                run = _run(program, url)
                if number:  # the first warms the disk cache
                    runs[name].append(run)
        loops = {protocol: _loop(name, url) for protocol, name in _PROTOCOLS.items()}
    for protocol in _PROTOCOLS:
        _ratio(runs, "first piece, from nothing", "first", protocol, "httpx", 1.5)
        _ratio(runs, "first piece, from nothing", "first", protocol, "litellm", 0.2)
        _ratio(runs, "a later call", "later", protocol, "httpx", 1.5)
        _ratio(runs, "a later call", "later", protocol, "litellm", 1.0)
        _ratio(runs, "memory", "mebibytes", protocol, "litellm", 0.4)
        early, late = loops[protocol]
        print(
            f"rounds 19 to 25 of a loop / rounds 3 to 9, {protocol}: {late:.4f} /"
            f" {early:.4f} = {late / early:.2f}"
        )


def _ratio(
    runs: dict[str, list[Run]], what: str, field: str, one: str, other: str, aim: float
) -> None:
    a, b = (min(getattr(run, field) for run in runs[name]) for name in (one, other))
    print(
        f"{what}, {one} / {other}: {a:.3f} / {b:.3f} = {a / b:.2f} (aim: at most {aim})"
    )


def _run(program: str, url: str) -> Run:
    code = _MEASURED.format(ask=program, calls=CALLS)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().endswith("_PROXY")
    }
    before = time.time()
    done = subprocess.run(
        [sys.executable, "-c", code, url],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    first, later, kibibytes = done.stdout.split()
    return Run(float(first) - before, float(later), int(kibibytes) / 1024)


def _loop(name: str, url: str) -> tuple[float, float]:
    """Return the seconds of an early and a late round of a loop with tools, without the
    model: the minimum of several loops.
    """
    code = "import sys\n" + _direct(name) + _LOOP.format(rounds=ROUNDS)
    rounds = []
    for _ in range(_LOOPS):
        done = subprocess.run(
            [sys.executable, "-c", code, url],
            check=True,
            capture_output=True,
            text=True,
        )
        rounds.append(tuple(map(float, done.stdout.split())))
    early, late = map(min, zip(*rounds, strict=True))
    return early, late


@contextmanager
def _server() -> Iterator[str]:
    """Run the tests' server in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.yaml"
        script.write_text(_SCRIPT)
        command = [sys.executable, "-m", "tests.llm.server", "--script", str(script)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                yield server.stdout.readline().strip()
            finally:
                server.terminate()


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("Reads /proc: Linux only.")
    main()
