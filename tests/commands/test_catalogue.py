"""Every command is declared once, in few words, and is found in every list."""

import inspect
import re

import pytest
from msgspec.structs import fields

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.main import main
from cdd_agent.cli.orders import ExecOptions
from cdd_agent.commands.catalogue import CATALOGUE, in_groups, terminal_commands
from cdd_agent.commands.completing import complete
from cdd_agent.commands.declaration import Front, Group, load_address
from cdd_agent.commands.help import command_help, commands_help
from cdd_agent.commands.registry import commands, handle
from cdd_agent.errors import BadInput
from cdd_agent.events.shell_events import ScreenAsked
from tests.support.listening import collect
from tests.support.projects import Sandbox
from tests.support.typed_lines import command_hint

NARROW = 60


def test_every_command_has_a_front_and_every_front_has_a_function() -> None:
    for command in CATALOGUE.values():
        assert command.slash or command.terminal
        if command.slash is not None:
            assert callable(load_address(command.slash.run or command.events))
        if command.terminal is not None and not command.terminal.opens_shell:
            assert callable(load_address(command.terminal.run or command.events))


def test_a_function_takes_the_values_that_its_command_declares() -> None:
    wrong = {}
    for command in CATALOGUE.values():
        front = command.terminal
        if front is None or not front.run:
            continue
        taken = inspect.signature(load_address(front.run)).parameters
        names = [name for name in taken if name != "invocation"]
        if names == ["typed"]:
            names = [field.name for field in fields(ExecOptions)]
        declared = [
            each.value_key
            for each in command.parameters_in(Front.TERMINAL)
            if each.value_key not in Invocation._fields
        ]
        if sorted(names) != sorted(declared):
            wrong[command.name] = (names, declared)
    assert wrong == {}


def test_a_summary_is_a_short_imperative() -> None:
    wrong = {
        name: command.summary
        for name, command in CATALOGUE.items()
        if not re.fullmatch(r"[A-Z][a-z]+,? [^.;]*[^.;\s]", command.summary)
    }
    assert wrong == {}


def test_a_slash_command_has_an_example_that_the_shell_accepts() -> None:
    wrong = {}
    for name, command in commands().items():
        assert command.slash is not None
        example = command.slash.example
        hint = command_hint(example)
        if not example.startswith(f"/{name}") or "nothing" in hint:
            wrong[name] = (example, hint)
        assert example in command_help(command)
    assert wrong == {}


def test_the_help_of_a_command_explains_every_argument_and_flag() -> None:
    for command in commands().values():
        for parameter in (*command.arguments, *command.flags.values()):
            assert parameter.note in command_help(command)


def test_every_command_is_in_one_group() -> None:
    grouped = [each.name for _, members in in_groups(CATALOGUE) for each in members]
    assert sorted(grouped) == sorted(CATALOGUE)


def test_lists_show_the_commands_in_their_groups(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = [each.name for _, members in in_groups(commands()) for each in members]
    offered = complete(sandbox.session(), "/")
    assert [offer.line.removeprefix("/") for offer in offered] == expected
    assert re.findall(r"\| `/(\w+)", commands_help()) == expected
    groups = [group for group in Group if group is not Group.ADDED]
    assert re.findall(r"\*\*(.+)\*\*", commands_help()) == groups

    with pytest.raises(SystemExit):
        main(["--help"])
    printed = capsys.readouterr().out
    for group, members in in_groups(terminal_commands()):
        names = [each.name for each in members]
        section = printed.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  (\w+) ", section, re.MULTILINE) == names


def test_no_offered_command_is_cut_at_60_columns(sandbox: Sandbox) -> None:
    offered = complete(sandbox.session(), "/")
    widest = max(len(offer.shown) for offer in offered)
    margins = 5
    cut = [o.line for o in offered if widest + 2 + len(o.help) > NARROW - margins]
    assert cut == []


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.split("\n")
    assert [line for line in lines if len(line) > min(columns, 80)] == []
    assert not any(line.endswith(("-", "…")) for line in lines)


def test_help_as_a_word_is_the_help_of_a_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for spelled, same in ((["help"], ["--help"]), (["help", "exec"], ["exec", "-h"])):
        printed = []
        for arguments in (spelled, same):
            with pytest.raises(SystemExit) as caught:
                main(arguments)
            assert caught.value.code == 0
            printed.append(capsys.readouterr().out)
        assert printed[0] == printed[1]
    with pytest.raises(SystemExit) as caught:
        main(["help", "exce"])
    assert caught.value.code == 2
    assert "exec?" in capsys.readouterr().err


async def test_help_explains_one_command(sandbox: Sandbox) -> None:
    session = sandbox.session()
    for topic in ("exec", "/exec", "EXEC"):
        (shown,) = await collect(handle(session, f"/help {topic}"))
        assert isinstance(shown, ScreenAsked)
        assert shown.choice == "exec"
        for words in ("/exec SLUG", "--worktree", "Example: `/exec"):
            assert words in shown.instead
    with pytest.raises(BadInput) as caught:
        await collect(handle(session, "/help exce"))
    assert "`/help exec`" in caught.value.hint
