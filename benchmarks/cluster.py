"""Many tickets on a local cluster: `python -m benchmarks.cluster [--tickets 200]`.

The time from the first ticket's start to the last one's end, against the sum of what
models and checks took, over the number of workers; the processor time that a ticket
takes beside that, in all processes; and the memory of the client when the 20th ticket
is done (or a quarter of them, if there are fewer than 80) and at the end. A model that
answers after a while is played on loopback; checks sleep. By default it is a small run,
for a machine that is busy.
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
    """Gives the file that a step is about, after a while."""

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
        """Nothing is said."""


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
    """In KB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(
        next(
            line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tickets", type=int, default=16)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument(
        "--answer", type=float, default=5.0, help="seconds until a model answers"
    )
    parser.add_argument("--test", type=float, default=2.0, help="seconds of a check")
    options = parser.parse_args()
    early = 20 if options.tickets >= 80 else max(options.tickets // 4, 1)
    with tempfile.TemporaryDirectory() as name, model_server(options.answer) as url:
        folder = Path(name).resolve()
        make_project(folder / "project", options.tickets, options.steps, options.test)
        own = {
            "OPENAI_API_KEY": "none",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "HOME": str(folder),
        }
        own |= {
            f"XDG_{kind}_HOME": str(folder / kind)
            for kind in ("CACHE", "STATE", "CONFIG")
        }
        own |= {
            f"GIT_{who}_{what}": "a@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        words = [
            "-C",
            str(folder / "project"),
            "exec",
            "--all",
            "planned",
            "--on",
            "local",
            "--json",
        ]
        words += [
            "--jobs",
            str(options.workers),
            "--model",
            "openai/any",
            "--api-base",
            url,
        ]
        asked_at, began, ended, tests, done = time.perf_counter(), 0.0, 0.0, 0.0, 0
        sizes = list[int]()
        with subprocess.Popen(
            [sys.executable, "-m", "cdd_agent", *words],
            stdout=subprocess.PIPE,
            env=os.environ | own,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                event = json.loads(line)
                match event["event"]:
                    case "ticket_started":
                        began = began or time.perf_counter()
                    case "tests_finished":
                        tests += event["seconds"]
                    case "ticket_finished":
                        done += event["state"] == "done"
                        ended = time.perf_counter()
                        if done in (early, options.tickets):
                            sizes.append(memory(process.pid))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        waits = options.tickets * options.steps * options.answer + tests
        print(
            f"{done} of {options.tickets} tickets done, {options.workers} workers, exit"
            f" code {process.returncode}"
        )
        print(
            f"models and checks: {waits:.0f} s; over the workers:"
            f" {waits / options.workers:.0f} s"
        )
        print(
            f"time: {ended - began:.0f} s, ratio"
            f" {(ended - began) * options.workers / waits:.2f} (at most 1.25)"
        )
        print(
            "with the start and the end of the cluster:"
            f" {time.perf_counter() - asked_at:.0f} s"
        )
        print(
            "processor time a ticket, all processes:"
            f" {(used.ru_utime + used.ru_stime) / options.tickets:.2f} s"
        )
        first, last = sizes[0], sizes[-1]
        print(
            f"memory of the client: {first // 1024} MB after {early} tickets,"
            f" {last // 1024} MB at the end, ",
            end="",
        )
        print(f"ratio {last / first:.2f} (at most 1.1)")


if __name__ == "__main__":
    main()
