"""The worker's side of a run, with a program in place of `cdd`."""

import asyncio
import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import field

from cdd_agent.cluster.messages import Begun, Reaction, WorkerOrder
from cdd_agent.cluster.worker import Relay, WorkerTree, carry_out
from cdd_agent.version import VERSION

pytestmark = pytest.mark.fork
SECRET = "secret-of-the-worker-0123456789"
PROGRAM = """
import json, sys, time

def show(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)

show("step_finished")
if "--ask-before-calls" in sys.argv:
    show("answer_needed", id=1, kind="call", text="?", tokens=1, usd=None)
    sys.stdin.read()
    show("call_ended", id=1)
show("step_finished")
time.sleep(2.5)
sys.stderr.write("cdd: the server refused secret-of-the-worker-0123456789\\n")
sys.exit(130)
"""


class TreeThatIsNotSent(WorkerTree):
    """Counts the times that it is packed."""

    packed: list[str] = field(default_factory=list)

    async def pack(self) -> tuple[str, Path]:
        self.packed.append("")
        file = self.place / "saved.bundle"
        file.touch()
        return "0" * 40, file


def begun() -> Begun:
    return Begun(
        attempt=1,
        slug="feature-words",
        tip="0" * 40,
        size=0,
        have=(),
        branch="cdd/feature-words",
        prefix="",
        folder="tickets/feature-words",
        settings={},
        author=("Ann", "ann@example.org"),
    )


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TreeThatIsNotSent:
    package = tmp_path / "programs" / "cdd_agent"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    tree = TreeThatIsNotSent(begun(), tmp_path)
    tree.root.mkdir()
    return tree


async def stop(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer of a client that wants the run to stop."""
    assert question["kind"] == "printed"
    return Reaction(is_stopping=True).to_values()


async def test_a_run_is_packed_only_while_its_process_waits(
    tree: TreeThatIsNotSent,
) -> None:
    await asyncio.wait_for(Relay(tree, stop, 20.0).run(), 60)
    assert len(tree.packed) == 1


async def test_the_reason_of_an_end_is_sent_without_secrets(
    tree: TreeThatIsNotSent,
) -> None:
    relay = Relay(tree, stop, 20.0)
    end = await asyncio.wait_for(relay.run(), 60)
    assert SECRET in end.stderr
    assert SECRET not in relay.describe(end)
    assert "the server refused" in relay.describe(end)


async def test_a_worker_without_space_for_a_folder_is_unfit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**options: Any) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def begin(question: Mapping[str, Any]) -> Mapping[str, Any]:
        monkeypatch.setattr(tempfile, "mkdtemp", refuse)
        return begun().to_values()

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    order = WorkerOrder("feature-words", "0", VERSION, "", 20.0).to_values()
    end = await carry_out(order, begin, tmp_path, "one")
    assert end.is_unfit
    assert end.worker == "one"
