"""Slash commands that other packages add."""

import asyncio
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdd_agent.commands import registry
from cdd_agent.commands.added_commands import AddedCommands, CommandFailed
from cdd_agent.commands.completing import complete
from cdd_agent.commands.help import command_help, commands_help
from cdd_agent.commands.registry import commands, handle
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer, Notice
from tests.commands.completions import completions
from tests.support.commandline import cdd
from tests.support.listening import collect
from tests.support.packages import read_example, write_package
from tests.support.projects import Sandbox, Step
from tests.support.tables import each_row

HEAD = """\
from cdd_agent.commands.extension import CommandExtension, argument, switch
from cdd_agent.errors import BadInput
class Todo(CommandExtension):
    summary = "List shrimps"
"""
Install = Callable[..., AddedCommands]


@pytest.fixture
def folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder of installed packages."""
    folder = tmp_path_factory.mktemp("site")
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with the module `shrimp_commands`."""

    def write(
        text: str, entry: str = "todo = shrimp_commands:Todo", *, waits: bool = True
    ) -> AddedCommands:
        write_package(folder, "cdd_agent.commands", entry)
        (folder / "shrimp_commands.py").write_text(text)
        importlib.invalidate_caches()
        added = AddedCommands()
        monkeypatch.setattr(registry, "ADDED", added)
        monkeypatch.setattr("cdd_agent.cli.examining.ADDED", added)
        if waits:
            added.wait()
        return added

    yield write
    sys.modules.pop("shrimp_commands", None)


def example() -> str:
    """Return the code of the page."""
    return read_example("A command")


async def test_the_command_of_the_page_is_one_of_the_shell(
    sandbox: Sandbox, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(example())
    (sandbox.root / "src").mkdir()
    (sandbox.root / "src/a.py").write_text("x = 1\ny = 2  # TODO: more\n")
    session = sandbox.session()
    assert await collect(handle(session, "/todo")) == [
        Answer("- src/a.py:2 `y = 2  # TODO: more`")
    ]
    assert await collect(handle(session, "/todo src --count")) == [Answer("1 comments")]
    with pytest.raises(BadInput, match=r"Usage: /todo \[FOLDER\] \[--count\]"):
        await collect(handle(session, "/todo a b"))

    assert completions(session, "/tod") == ["/todo"]
    assert completions(session, "/todo src --c") == ["/todo src --count"]
    assert "| `/todo [FOLDER] [--count]` | List the TODO comments" in commands_help()
    assert "package shrimp-tests" in command_help(commands()["todo"])
    await asyncio.to_thread(cdd, sandbox, "doctor")
    assert re.search(r"✓ added +/todo of shrimp-tests", capsys.readouterr().out)


@each_row(
    ("entry", "text", "reason"),
    [
        ("exec = shrimp_commands:Todo", HEAD, "cdd itself has a command /exec"),
        ("todo = shrimp_commands:Todo", "import nowhere_at_all", "nowhere_at_all"),
        ("todo = shrimp_commands:Todo", "raise SystemExit(3)", "SystemExit: 3"),
        ("todo = shrimp_commands:Todo", "class Todo: pass", "not a CommandExtension"),
        ("todo = shrimp_commands:Todo", "", "Todo"),
        ("todo = shrimp_commands:Todo", HEAD + "    summary = 3", "not a str"),
        ("todo = shrimp_commands:Todo", HEAD + "    parameters = ('x',)", "Parameter"),
        (
            "todo = shrimp_commands:Todo",
            HEAD + "    parameters = (argument('x', 'X', 'x', offers='no:where'),)",
            "offers",
        ),
        ("to/do = shrimp_commands:Todo", HEAD, "cannot be the name"),
    ],
)
async def test_a_command_that_cannot_be_used_is_named_with_the_reason(
    sandbox: Sandbox,
    install: Install,
    capsys: pytest.CaptureFixture[str],
    entry: str,
    text: str,
    reason: str,
) -> None:
    sys.modules.pop("shrimp_commands", None)
    added = install(text, entry)
    name = entry.partition(" ")[0]
    assert set(commands()) & {"todo", "to/do"} == set()
    assert reason in added.explain_missing(name)
    if name == "todo":
        with pytest.raises(BadInput) as caught:
            await collect(handle(sandbox.session(), "/todo"))
        assert "todo of shrimp-tests" in caught.value.hint
        assert reason in caught.value.hint
    await asyncio.to_thread(cdd, sandbox, "doctor")
    assert f"{name} of shrimp-tests is not used" in capsys.readouterr().out


def test_of_two_commands_with_one_name_the_second_is_named(
    install: Install, folder: Path
) -> None:
    entry = "todo = shrimp_commands:Todo"
    write_package(folder, "cdd_agent.commands", entry, "other-shrimps")
    added = install(HEAD, entry)
    assert set(added.loaded) == {"todo"}
    ((name, reason),) = added.extensions.left_out.items()
    assert name in ("todo of shrimp-tests", "todo of other-shrimps")
    assert "another package adds a command /todo" in reason


@each_row(
    ("body", "message"),
    [
        ("        raise ValueError('no shrimps')", "ValueError: no shrimps"),
        ("        yield 3", "TypeError"),
        ("        return 'a text'", "TypeError"),
        ("        return None", "TypeError"),
        ("        yield 'a'\n        raise OSError('gone')", "OSError: gone"),
        ("        raise SystemExit(3)", "SystemExit: 3"),
        ("        yield 'a'\n        raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
async def test_an_error_while_it_runs_names_the_package_and_the_shell_continues(
    sandbox: Sandbox, install: Install, body: str, message: str
) -> None:
    sys.modules.pop("shrimp_commands", None)
    install(f"{HEAD}    def run(self, root):\n{body}\n")
    session = sandbox.write(Step("a.txt")).session()
    with pytest.raises(CommandFailed) as caught:
        await collect(handle(session, "/todo"))
    assert "todo of shrimp-tests" in caught.value.message
    assert message in caught.value.message
    assert await collect(handle(session, "/list"))


async def test_a_command_that_never_ends_can_be_stopped(
    sandbox: Sandbox, install: Install
) -> None:
    sys.modules.pop("shrimp_commands", None)
    body = "        __import__('time').sleep(60)\n        yield 'late'\n"
    install(f"{HEAD}    def run(self, root):\n{body}")
    turn = asyncio.create_task(collect(handle(sandbox.session(), "/todo")))
    while not any(thread.name == "command" for thread in threading.enumerate()):
        await asyncio.sleep(0.01)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    # the program does not wait for such a thread
    (thread,) = [each for each in threading.enumerate() if each.name == "command"]
    assert thread.daemon


async def test_bad_input_is_shown_as_it_was_raised(
    sandbox: Sandbox, install: Install
) -> None:
    sys.modules.pop("shrimp_commands", None)
    install(f"{HEAD}    def run(self, root):\n        raise BadInput('no shrimps')\n")
    with pytest.raises(BadInput, match=r"^no shrimps$"):
        await collect(handle(sandbox.session(), "/todo"))


async def test_while_a_package_loads_slowly_the_shell_works_and_names_it(
    sandbox: Sandbox, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    sys.modules.pop("shrimp_commands", None)
    monkeypatch.setattr("cdd_agent.commands.added_commands._NOTICE_DELAY", 0.05)
    body = "    def run(self, root):\n        yield 'shrimps'\n"
    text = f"import time; time.sleep(0.5)\n{HEAD}{body}"
    added = install(text, waits=False)
    session = sandbox.session()
    added.begin_loading()
    while not added.extensions.waiting:
        await asyncio.sleep(0.01)
    assert [offer.line for offer in complete(session, "/lis")] == ["/list"]
    assert await collect(handle(session, "/list"))
    assert added.is_expected("todo")
    loading, answer = await collect(handle(session, "/todo"))
    assert isinstance(loading, Notice)
    assert "todo of shrimp-tests" in loading.text
    assert answer == Answer("shrimps")
