"""Between a run and whoever watches it: what is told is logged first, and a full disk
breaks no step.
"""

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.engine.log import RunLog
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.events.stream import Event
from tests.support.listening import stop_at
from tests.support.projects import SLUG, Sandbox, Step, check, says

SECRET = "kM9hunter2-hunter2-4242xyz"
HALF = SECRET[:16]


async def test_a_disk_that_is_full_for_a_moment_ends_the_step_and_not_the_session(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    session = sandbox.session()
    await handle(session, f"/exec {SLUG}")

    def refuse(log: RunLog, event: Event) -> None:
        raise BadInput("No space is left")

    with monkeypatch.context() as full:
        full.setattr(RunLog, "add", refuse)
        with pytest.raises(CddError, match="No space"):
            await handle(session, "continue")
    assert sandbox.statuses() == ["pending"]
    assert not (sandbox.root / "a.txt").exists()
    await handle(session, "continue")
    assert sandbox.statuses() == ["completed"]


async def test_half_a_secret_is_not_shown_when_a_check_is_stopped(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", SECRET)
    slow = (
        f"python -c \"import time; print('begun {HALF}', end='', flush=True);"
        ' time.sleep(60)"'
    )
    sandbox.write(Step("a.txt", slow)).replies(says("a.txt", "good"))
    engine = sandbox.engine()

    async def run() -> None:
        with engine.recording():
            await engine.run_all()

    events = await stop_at(run(), lambda event: isinstance(event, CommandOutput))
    engine.close()
    shown = "".join(event.text for event in events if isinstance(event, CommandOutput))
    assert shown.startswith("begun")
    assert HALF not in shown
