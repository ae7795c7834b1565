"""`cdd` as tests call it: in this process, or as a separate program."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.cli.main import main
from tests.support.forked import Forked
from tests.support.projects import Sandbox, Step, check

STEPS = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))


def script(sandbox: Sandbox, *replies: str, pace: int = 0) -> str:
    """Write the replies as a script into the project. Return the value for --model."""
    lines = [json.dumps({"reply": reply}) for reply in replies]
    text = f"pace: {pace}\nreplies: [{', '.join(lines)}]\n"
    (sandbox.root / ".cdd" / "script.yaml").write_text(text)
    return "script:.cdd/script.yaml"


def cdd(sandbox: Sandbox, *arguments: str) -> int:
    return main([*arguments, "-C", str(sandbox.root)])


def events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def process(sandbox: Sandbox, *arguments: str) -> Forked:
    return Forked(*arguments, cwd=sandbox.root)


def started(
    sandbox: Sandbox, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `cdd` as a new Python process, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "cdd_agent", *arguments],
        cwd=sandbox.root,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def wait_for(condition: Any, seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def without_override(*arguments: str) -> list[str]:
    """Return the command without root's right to write everywhere."""
    if os.geteuid() != 0:
        return list(arguments)
    if shutil.which("setpriv") is None:
        pytest.skip("runs as root, and setpriv is not there to give up root's rights")
    dropped = "-dac_override,-dac_read_search,-fowner"
    return ["setpriv", "--bounding-set", dropped, "--inh-caps", dropped, *arguments]
