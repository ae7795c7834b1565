"""`cdd undo` without a ticket, by real processes: after `cdd apply`, a `cdd run` that
was killed, and a turn of chat.
"""

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
import yaml

from tests.support.commandline import wait_for
from tests.support.forked import Forked, ran

pytestmark = pytest.mark.fork
TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / "a.txt").write_text(TEXT)
    return root


def undo(root: Path) -> str:
    done = ran("undo", cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_saved_reply(root: Path) -> None:
    reply = root.parent / "reply.md"
    reply.write_text("```text:new.txt\nhi\n```\n")
    done = ran("apply", str(reply), cwd=root)
    assert (done.returncode, done.stdout) == (0, "")
    assert "Undo it with `cdd undo`." in done.stderr
    assert "`cdd apply" in undo(root)
    assert not (root / "new.txt").exists()


def test_a_run_of_actions_that_was_killed(root: Path) -> None:
    """Its command goes on, and is ended before anything is restored."""
    code = (
        "import os, time; open('a.txt', 'w').write('half'); open('pid', 'w').write("
        "str(os.getpid())); time.sleep(600)"
    )
    (root / "plan.yaml").write_text(
        yaml.safe_dump(
            [
                {
                    "action": "edit",
                    "file_path": "a.txt",
                    "find": "two",
                    "replace": "TWO",
                },
                {
                    "action": "create_file",
                    "file_path": "new.txt",
                    "content": "hi\n",
                },
                {"action": "execute", "command": f'python -c "{code}"'},
            ]
        )
    )
    process = Forked("run", "plan.yaml", "--yes", cwd=root)
    wait_for(lambda: (root / "pid").exists() and (root / "pid").read_text())
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    command = int((root / "pid").read_text())
    assert is_running(command)
    told = undo(root)
    assert not is_running(command)
    assert not (root / "new.txt").exists()
    # a command that was killed cannot be told from the user
    assert "edited since, left unchanged: a.txt" in told
    assert (root / "a.txt").read_text() == "half"


def test_a_turn_of_chat(root: Path) -> None:
    edit = {"file_path": "a.txt", "find": "two", "replace": "TWO"}
    call = {"name": "edit_file", "arguments": edit}
    (root / ".cdd").mkdir()
    (root / ".cdd" / "script.yaml").write_text(
        yaml.safe_dump({"replies": [{"tool_calls": [call]}, {"reply": "Done."}]})
    )
    words = ("--plain", "--model", "script:.cdd/script.yaml")
    done = ran(*words, cwd=root, typed="write it large\n")
    assert done.returncode == 0, done.stderr
    assert (root / "a.txt").read_text() == TEXT.replace("two", "TWO")
    done = ran(*words, cwd=root, typed="/undo\n")
    assert "Undone: `chat: write it large`" in done.stdout
    assert (root / "a.txt").read_text() == TEXT
