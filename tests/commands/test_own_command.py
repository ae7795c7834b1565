"""`!command`: a person's own commands."""

import asyncio
import sys

import psutil
import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.events.notices import Notice
from cdd_agent.events.shell_events import OwnCommandFinished, OwnCommandStarted
from cdd_agent.events.step_events import CommandOutput
from cdd_agent.events.stream import Event
from cdd_agent.session.session import Session
from tests.support.listening import collect, stop_at
from tests.support.projects import SLUG, Sandbox, Step, check
from tests.support.tables import each_row

PIPE = "ls *.txt | tr a b && X=1 && echo $X"
FAILS = "echo out; echo err >&2; exit 3"

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the commands are written for a POSIX shell"
)


async def say(session: Session, line: str) -> list[Event]:
    return await collect(handle(session, line))


def printed(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, CommandOutput))


async def last_message(sandbox: Sandbox, session: Session) -> str:
    """The message to the model when something is said next."""
    await say(session, "and?")
    return sandbox.model.requests[-1].messages[-1].content


async def test_a_command_runs_in_a_real_shell_in_the_project(sandbox: Sandbox) -> None:
    (sandbox.root / "a.txt").touch()
    events = await say(sandbox.session(), f"!{PIPE}")
    assert events[0] == OwnCommandStarted(PIPE)
    assert printed(events) == "b.txt\n1\n"
    assert events[-1] == OwnCommandFinished(PIPE, "")


async def test_the_model_receives_the_output(sandbox: Sandbox) -> None:
    session = sandbox.replies("I see.").session()
    await say(session, f"!{FAILS}")
    told = await last_message(sandbox, session)
    assert f"```sh\n{FAILS}\n```\n\n" in told
    assert "out\n" in told
    assert "err\n" in told
    assert told.endswith("\n\nand?")


@each_row(
    ("command", "result"),
    [
        ("false", "Exit code 1"),
        ("no-such-program", "Exit code 127"),
        ("kill -9 $$", "Ended by SIGKILL"),
        ("true", ""),
    ],
)
async def test_the_end_of_a_command_is_reported(
    sandbox: Sandbox, command: str, result: str
) -> None:
    assert (await say(sandbox.session(), f"!{command}"))[-1] == OwnCommandFinished(
        command, result
    )


async def test_the_model_gets_the_start_and_end_of_long_output(
    sandbox: Sandbox,
) -> None:
    session = sandbox.replies("Much.").session()
    events = await say(session, "!seq 1 200000")
    assert printed(events).endswith("\n200000\n")
    told = await last_message(sandbox, session)
    assert len(told) < 23_000
    assert "\n1\n2\n3\n" in told
    assert "\n200000\n" in told
    assert "left out" in told or "not shown" in told  # what was shown is what is told


async def test_bytes_that_are_not_text_do_no_harm(sandbox: Sandbox) -> None:
    session = sandbox.replies("Odd.").session()
    assert printed(await say(session, r"!printf 'a\377\0b\n'")) == "a\ufffd\0b\n"
    assert "a\ufffd\ufffdb" in await last_message(sandbox, session)


async def test_colours_are_removed_for_the_model(sandbox: Sandbox) -> None:
    session = sandbox.replies("Red.").session()
    await say(session, r"!printf '\033[31mred\033[0m\n'")
    assert "```\nred\n```" in await last_message(sandbox, session)


async def test_the_input_of_a_command_is_closed(sandbox: Sandbox) -> None:
    events = await say(sandbox.session(), "!cat; echo over")
    assert printed(events) == "over\n"


async def test_secrets_are_neither_passed_on_nor_shown(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "s3cr3t-of-the-shop")
    (sandbox.root / "key.txt").write_text("s3cr3t-of-the-shop\n")
    session = sandbox.replies("No.").session()
    echoed = await say(session, '!echo "<$SHOP_API_KEY>"; cat key.txt')
    assert printed(echoed).splitlines() == ["<>", f"[redacted: {'SHOP_API_KEY'}]"]
    assert "s3cr3t" not in await last_message(sandbox, session)


async def test_cancelling_ends_the_command_and_the_model_learns_it(
    sandbox: Sandbox,
) -> None:
    session = sandbox.replies("Stopped.").session()
    work = handle(session, "!echo begun; sleep 61; echo never")
    await stop_at(work, lambda event: isinstance(event, CommandOutput))
    await asyncio.sleep(0.1)
    assert ["sleep", "61"] not in [
        one.cmdline() for one in psutil.Process().children(recursive=True)
    ]
    told = await last_message(sandbox, session)
    assert "The user stopped it" in told
    assert "begun\n" in told


@each_row("line", ["!", "!  "])
async def test_an_empty_command_explains_its_use(sandbox: Sandbox, line: str) -> None:
    (notice,) = await say(sandbox.session(), line)
    assert isinstance(notice, Notice)
    assert "`!git status`" in notice.text


async def test_a_command_works_while_an_agent_is_active(sandbox: Sandbox) -> None:
    session = sandbox.write(Step("a.txt", check("a.txt"))).session()
    await say(session, f"/exec {SLUG}")
    assert printed(await say(session, " !echo hi")) == "hi\n"
    assert session.agent is not None
    assert sandbox.model.requests == []
    session.leave()
