"""Parallel steps: `python -m benchmarks.side_by_side [SECONDS] [FILES]`.

First a plan of 12 steps in 4 independent chains, in a git repository with 200 small
files (or FILES), with `--jobs 4` against `--jobs 1`. The model answers in 5 seconds (or
SECONDS), and `python -c` checks each step. Then a plan of one chain, in which nothing
can run in parallel, with a model that answers at once: the cost of the option itself.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.checkpoints import git, make_tree

SLUG = "feature-bench"
ROUNDS = 3


def write(root: Path, chains: int, length: int, slow: float) -> None:
    """Write the ticket, and a script of the model's replies."""
    ticket = root / "tickets" / SLUG
    ticket.mkdir(parents=True)
    (root / ".cdd").mkdir(exist_ok=True)
    (ticket / "spec.yaml").write_text(
        "title: Chains\n"
        "type: feature\n"
        "description: Some files.\n"
        "acceptance_criteria: [they are there]\n"
    )
    plan, script = (
        ["# Implementation Plan: Chains\n\n## Implementation Steps\n"],
        ["replies:\n"],
    )
    for number in range(1, chains * length + 1):
        place, chain = divmod(number - 1, chains)
        path = f"chain_{chain}/part_{place}.py"
        depends = f"Step {number - chains}" if place else "None"
        plan.append(
            f"### Step {number}: Write {path}\n\n"
            "**Description:** Give it a value.\n"
            f"**Dependencies:** {depends}\n"
            '**Verify:** `python -c "import ast;'
            f" ast.parse(open('{path}').read())\"`\n\n"
            "**Files Affected:**\n"
            f"- `{path}` (new)\n"
        )
        script.append(
            f'  - when: "# Step {number} of "\n    slow: {slow}\n'
            f"    reply: |\n      ```python:{path}\n      VALUE = {number}\n      ```\n"
        )
    (ticket / "plan.md").write_text("\n".join(plan))
    (root / ".cdd" / "script.yaml").write_text("".join(script))


def seconds(root: Path, jobs: int) -> float:
    """Return the seconds of a whole run, and remove its results."""
    command = [
        sys.executable,
        "-m",
        "cdd_agent",
        "exec",
        SLUG,
        "--yes",
        "--jobs",
        str(jobs),
    ]
    start = time.perf_counter()
    done = subprocess.run(
        [*command, "--model", "script:.cdd/script.yaml", "-C", str(root)],
        check=False,
        capture_output=True,
        text=True,
    )
    duration = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(
            f"the run ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    git(
        root,
        "clean",
        "-fdxq",
        "--exclude=tickets",
        "--exclude=.cdd/script.yaml",
        "--exclude=.cdd/config.yaml",
    )
    (root / "tickets" / SLUG / "execution-state.json").unlink()
    return duration


def main() -> None:
    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull}
    # as if activated
    os.environ["PATH"] = os.pathsep.join(
        (str(Path(sys.executable).parent), os.environ["PATH"])
    )
    slow = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    files = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    for chains, length, wait, what in (
        (
            4,
            3,
            slow,
            f"12 steps in 4 chains, the model answers in {slow:g} s, {files} files",
        ),
        (1, 6, 0.0, f"6 steps in one chain, the model answers at once, {files} files"),
    ):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name).resolve() / "project"
            make_tree(root, files)
            write(root, chains, length, wait)
            rounds = 1 if wait > 1 else ROUNDS
            seconds_by_jobs = {
                jobs: min(seconds(root, jobs) for _ in range(rounds)) for jobs in (1, 4)
            }
        print(what)
        for jobs, each in seconds_by_jobs.items():
            print(f"  --jobs {jobs}: {each:.1f} s")
        print(
            f"  --jobs 1 takes {seconds_by_jobs[1] / seconds_by_jobs[4]:.2f} times as"
            " long as --jobs 4",
            flush=True,
        )


if __name__ == "__main__":
    main()
