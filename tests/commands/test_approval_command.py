"""`/approval` shows and changes the approval mode, and saves it if asked to."""

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.engine.approval_mode import MODES
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.question_events import ApprovalChanged
from cdd_agent.events.stream import Event
from cdd_agent.session.open_project import open_project
from cdd_agent.settings.config import Approval
from tests.support.listening import collect
from tests.support.projects import Sandbox
from tests.support.tables import each_row


def config_text(sandbox: Sandbox) -> str:
    file = sandbox.root / ".cdd/config.yaml"
    return file.read_text() if file.exists() else ""


def changed(events: list[Event]) -> list[Approval]:
    return [event.approval for event in events if isinstance(event, ApprovalChanged)]


@each_row("mode", MODES)
async def test_a_mode_counts_for_the_session_alone(
    sandbox: Sandbox, mode: Approval
) -> None:
    session = sandbox.session()
    events = await collect(handle(session, f"/approval {mode.upper()}"))
    assert session.approval.value == mode
    assert changed(events) == [mode]
    assert config_text(sandbox) == ""
    assert sandbox.session().approval.value == "edits"


async def test_without_a_mode_it_says_which_one_is_on(sandbox: Sandbox) -> None:
    sandbox.flags = {"approval": "ask"}
    session = sandbox.session()
    events = await collect(handle(session, "/approval"))
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert "`ask`" in notices[0]
    assert "`commands.mode: safe`" in notices[1]
    assert changed(events) == []


@each_row("line", ["/approval all", "/approval --save", "/approval always --save"])
async def test_another_word_is_no_mode(sandbox: Sandbox, line: str) -> None:
    session = sandbox.session()
    with pytest.raises(BadInput) as error:
        await handle(session, line)
    assert all(mode in error.value.hint for mode in MODES)
    assert session.approval.value == "edits"
    assert config_text(sandbox) == ""


async def test_a_saved_mode_is_trusted_and_nothing_else_of_the_file(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CDD_TRUST")
    (sandbox.root / ".cdd").mkdir()
    file = sandbox.root / ".cdd/config.yaml"
    file.write_text("approval: auto\ncommit: step\n")
    session = sandbox.session()
    # the project's file alone cannot loosen the mode
    assert session.approval.value == "edits"
    await handle(session, "/approval auto --save")
    assert session.approval.value == "auto"
    config = open_project(sandbox.root, {}).config
    assert (config.approval, config.commit) == ("auto", "off")


async def test_a_variable_that_goes_before_the_file_is_named(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDD_APPROVAL", "edits")
    session = sandbox.session()
    events = await collect(handle(session, "/approval ask --save"))
    assert session.approval.value == "ask"
    (warning,) = [
        event.text
        for event in events
        if isinstance(event, Notice) and event.tone is Tone.WARNING
    ]
    assert "CDD_APPROVAL" in warning
