"""Run many tickets on a local cluster: `python -m benchmarks.cluster [--tickets 200]`.

Prints two ratios of one run: the time of all tickets to that of a single one times
their number, divided by the workers; and the client's memory at the end to that after
50 tickets (a quarter of them, if there are fewer than 100). A model on loopback answers
after a delay. The default is a small run, for a busy machine.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from msgspec import Struct

from benchmarks.checkpoints import git

_SPEC = """\
title: Say words
type: feature
description: The files say the right words.
acceptance_criteria: [a file says good]
technical_notes: Keep it short.
priority: high
"""


class _Model(BaseHTTPRequestHandler):
    """Answers with the step's file, after a delay."""

    protocol_version = "HTTP/1.1"
    seconds = 0.0

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        path = re.findall(r"# Step \d+ of \d+: Make ([\w./-]+\.txt)", asked)[-1]
        time.sleep(self.seconds)
        text = f"Here it is.\n\n```text:{path}\ngood\n```\n"
        end = {
            "choices": [
                {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
            ]
        }
        body = f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def model_server(seconds: float) -> Iterator[str]:
    _Model.seconds = seconds
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()


def make_project(root: Path, tickets: int, steps: int, test: float) -> None:
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    for number in range(100):
        (root / f"module_{number}.py").write_text(f"VALUE = {number}\n" * 20)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    for number in range(tickets):
        folder = root / "tickets" / f"feature-{number:03}"
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(_SPEC)
        plan = (
            "# Implementation Plan: Say words\n\n"
            f"**Ticket:** `{folder.name}`\n\n"
            "## Implementation Steps\n"
        )
        for step in range(1, steps + 1):
            path = f"{folder.name}-{step}.txt"
            check = (
                f"import time; time.sleep({test}); raise SystemExit('good' not in"
                f" open('{path}').read())"
            )
            plan += (
                "\n"
                f"### Step {step}: Make {path}\n\n"
                "**Description:** Make it.\n"
                "**Dependencies:** "
            )
            plan += (
                f"{f'Step {step - 1}' if step > 1 else 'None'}\n"
                f'**Verify:** `python -c "{check}"`\n\n'
            )
            plan += f"**Files Affected:**\n- `{path}`\n"
        (folder / "plan.md").write_text(plan)


def memory(process: int) -> int:
    """Return KB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(
        next(
            line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")
        )
    )


def cdd(folder: Path, url: str, *words: str) -> subprocess.Popen[bytes]:
    """Start `cdd exec` with a separate home folder and JSON output."""
    private = {
        "OPENAI_API_KEY": "none",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HOME": str(folder),
    }
    for kind in ("CACHE", "STATE", "CONFIG"):
        private[f"XDG_{kind}_HOME"] = str(folder / kind)
    for who in ("AUTHOR", "COMMITTER"):
        for what in ("NAME", "EMAIL"):
            private[f"GIT_{who}_{what}"] = "a@example.org"
    program = [sys.executable, "-m", "cdd_agent", "-C", str(folder / "project")]
    model = ["--model", "openai/any", "--api-base", url]
    return subprocess.Popen(
        [*program, "exec", *words, "--json", *model],
        stdout=subprocess.PIPE,
        env=os.environ | private,
    )


def time_single(folder: Path, url: str, ticket: str) -> float:
    """Return the seconds of one ticket alone, in its own worktree."""
    started = time.perf_counter()
    with cdd(folder, url, ticket, "--worktree") as process:
        assert process.stdout is not None
        process.stdout.read()
    assert process.returncode == 0, "the single ticket failed"
    return time.perf_counter() - started


class Measured(Struct):
    """The figures of a run of all tickets."""

    done: int = 0
    seconds: float = 0.0
    """From the start of the first ticket to the end of the last."""
    memory: dict[int, int] = {}
    """KB of the client, by the number of finished tickets."""


def run_all(folder: Path, url: str, workers: int, marks: tuple[int, ...]) -> Measured:
    """Run all planned tickets. Measure the memory at the marks."""
    measured, started = Measured(), 0.0
    words = ("--all", "planned", "--on", "local", "--jobs", str(workers))
    with cdd(folder, url, *words) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "ticket_started":
                started = started or time.perf_counter()
            if event["event"] != "ticket_finished":
                continue
            measured.done += event["state"] == "done"
            measured.seconds = time.perf_counter() - started
            if measured.done in marks:
                measured.memory[measured.done] = memory(process.pid)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tickets", type=int, default=16)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument(
        "--answer", type=float, default=2.0, help="seconds until a model answers"
    )
    parser.add_argument("--test", type=float, default=0.0, help="seconds of a check")
    options = parser.parse_args()
    early = 50 if options.tickets >= 100 else max(options.tickets // 4, 1)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name, model_server(options.answer) as url:
        folder = Path(name).resolve()
        make_project(
            folder / "project", options.tickets + 2, options.steps, options.test
        )
        singles = [
            time_single(folder, url, f"feature-{number:03}") for number in range(2)
        ]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = run_all(folder, url, options.workers, (early, options.tickets))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    single = sum(singles) / len(singles)
    ideal = single * options.tickets / options.workers
    first, last = run.memory.get(early, 0), run.memory.get(options.tickets, 0)
    print(f"load before: {load:.1f} on {os.cpu_count()} cores")
    print(f"{run.done} of {options.tickets} tickets done by {options.workers} workers")
    print(f"a single ticket: {single:.1f} s; ideal for all: {ideal:.0f} s")
    print(f"time: {run.seconds:.0f} s, ratio {run.seconds / ideal:.2f} (at most 1.25)")
    print(f"processor time: {used / options.tickets:.2f} s a ticket, all processes")
    print(
        f"memory of the client: {first // 1024} MB after {early} tickets,"
        f" {last // 1024} MB after {options.tickets}; ratio"
        f" {last / max(first, 1):.2f} (at most 1.1)"
    )


if __name__ == "__main__":
    main()
