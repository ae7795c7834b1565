"""Many tickets in parallel against one after the other: `python -m
benchmarks.many_tickets`.

20 tickets of three steps, with a model on loopback that answers in 2 s: `cdd exec` of
each in turn, then `cdd exec --all planned --jobs 8`. Both carry out each ticket in its
own tree. The processor time is that of all processes of a ticket: it does not depend on
the model's latency, and limits the number of jobs on few cores. `--latency 5` changes
the model, `--tickets 8` and `--jobs 4` the numbers.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.checkpoints import git

STEPS = 3
_PLAN = """# Implementation Plan: Say words

**Ticket:** `{slug}`

## Implementation Steps

"""
_STEP = """### Step {number}: Make {path}

**Description:** Make it. file={path}
**Dependencies:** None
**Verify:** `python -c "assert 'good' in open('{path}').read()"`

**Files Affected:**
- `{path}`

"""
_SPEC = (
    "title: Say words\n"
    "type: feature\n"
    "description: Files say words.\n"
    "acceptance_criteria:\n"
    "  - They say good\n"
)


class LoopbackModel:
    """Chat completions: each answer has the file that the request names, after
    `latency` seconds.
    """

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._answer, "127.0.0.1", 0)
        )
        self.port: int = self._server.sockets[0].getsockname()[1]
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        paths = re.findall(rb"file=([\w.-]+)", body)
        if not paths:  # not a request for a reply
            writer.write(
                b"HTTP/1.1 404 Not Found\r\n"
                b"Content-Length: 0\r\n"
                b"Connection: close\r\n"
                b"\r\n"
            )
            writer.close()
            return
        path = paths[-1].decode()
        await asyncio.sleep(self.latency)
        said = {
            "choices": [
                {
                    "index": 0,
                    "delta": {"content": f"Here.\n\n```text:{path}\ngood\n```\n"},
                }
            ]
        }
        usage = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}
        end = {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
            "usage": usage,
        }
        lines = (
            "".join(f"data: {json.dumps(piece)}\n\n" for piece in (said, end))
            + "data: [DONE]\n\n"
        )
        writer.write(
            b"HTTP/1.1 200 OK\r\n"
            b"Content-Type: text/event-stream\r\n"
            b"Connection: close\r\n"
            b"\r\n" + lines.encode()
        )
        await writer.drain()
        writer.close()


def make_project(root: Path, tickets: int) -> list[str]:
    root.mkdir(parents=True)
    slugs = [f"feature-{number:02}" for number in range(1, tickets + 1)]
    for slug in slugs:
        folder = root / "tickets" / slug
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(_SPEC)
        steps = "".join(
            _STEP.format(number=n, path=f"{slug}-{n}.txt") for n in range(1, STEPS + 1)
        )
        (folder / "plan.md").write_text(_PLAN.format(slug=slug) + steps)
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "tickets")
    return slugs


def cdd(root: Path, port: int, *arguments: str) -> None:
    model = ("--model", "openai/bench", "--api-base", f"http://127.0.0.1:{port}/v1")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "cdd_agent",
            "-C",
            str(root),
            "exec",
            *arguments,
            "--json",
            *model,
        ],
        env={**os.environ, "OPENAI_API_KEY": "none-is-needed"},
        stdout=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        sys.exit(f"cdd exec {' '.join(arguments)}: exit code {done.returncode}")


def measured(
    work: "list[tuple[str, ...]]", root: Path, port: int
) -> tuple[float, float]:
    """Return elapsed and processor seconds of some `cdd exec`, one after the other."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    for arguments in work:
        cdd(root, port, *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.perf_counter() - start
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--tickets", type=int, default=20, metavar="N")
    parser.add_argument("--jobs", type=int, default=8, metavar="N")
    options = parser.parse_args()
    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "CDD_USER_CONFIG": os.devnull}
    for name in (
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ):
        os.environ[name] = "bench"
    model = LoopbackModel(options.latency)
    with tempfile.TemporaryDirectory() as name:
        together = Path(name).resolve() / "together"
        make_project(together, options.tickets)
        at_once, cpu = measured(
            [("--all", "planned", "--jobs", str(options.jobs))], together, model.port
        )
        apart = Path(name).resolve() / "apart"
        slugs = make_project(apart, options.tickets)
        after, cpu_after = measured(
            [(slug, "--worktree") for slug in slugs], apart, model.port
        )
    rounds = -(-options.tickets // options.jobs)
    print(
        f"{options.tickets} tickets of {STEPS} steps, a model that answers in"
        f" {options.latency:g} s"
    )
    print(
        f"  one after the other:  {after:6.1f} s  (processor:"
        f" {cpu_after / options.tickets:.2f} s a ticket)"
    )
    print(
        f"  --jobs {options.jobs:<2}             {at_once:6.1f} s  (processor:"
        f" {cpu / options.tickets:.2f} s a ticket)"
    )
    print(
        f"  times as fast:        {after / at_once:6.1f}    (at most"
        f" {options.tickets / rounds:.1f} by the rounds)"
    )


if __name__ == "__main__":
    main()
