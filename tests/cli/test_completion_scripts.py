"""`cdd completion`: the scripts of all shells complete the same lines."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.cli.completion_scripts.bash import bash_script
from cdd_agent.cli.completion_scripts.declared_words import (
    flags_with_values,
    read_commands,
)
from cdd_agent.cli.completion_scripts.fish import fish_script
from cdd_agent.cli.completion_scripts.zsh import zsh_script
from cdd_agent.cli.main import main
from cdd_agent.commands.catalogue import terminal_commands
from tests.support.projects import SLUG, Sandbox, Step

SCRIPTS = {"bash": bash_script, "fish": fish_script, "zsh": zsh_script}
EVIL = "$(touch ran)"
LINES: dict[str, set[str]] = {
    "cdd ex": {"exec"},
    "cdd --pl": {"--plain"},
    "cdd exec --req": {"--require"},
    "cdd exec --require ": {"verified", "checked", "off"},
    "cdd exec --all ": {"planned"},
    "cdd exec ": {"feature-a", "feature-b", EVIL},
    "cdd exec feature-a feature-": {"feature-a", "feature-b"},
    "cdd --model exec status feature-b": {"feature-b"},
    "cdd -C inner exec ": {"bug-c"},
    "cdd exec --project inner b": {"bug-c"},
    "cdd status feature-a ": set(),
    "cdd plan s": {"show"},
    "cdd plan show feature-b": {"feature-b"},
    "cdd list feature pl": {"planned"},
    "cdd new doc": {"documentation"},
    "cdd help comp": {"compare", "completion"},
    "cdd completion ": {"bash", "zsh", "fish", "tickets"},
    "cdd apply re": {"reply one.md"},
    "cdd apply reply.md --root in": {"inner"},
    "cdd land --reb": {"--rebase"},
    "cdd doctor ": set(),
}
"""A typed line, and what Tab offers for its last word."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a `cdd` that has two projects, and the scripts."""
    folder = tmp_path / "work"
    (folder / "inner").mkdir(parents=True)
    (folder / "reply one.md").touch()
    (folder / ".tickets").write_text(
        f"feature-a\tTitle: one\nfeature-b\tTwo\n{EVIL}\tThree\n"
    )
    (folder / "inner" / ".tickets").write_text("bug-c\tThe inner one\n")
    program = tmp_path / "bin" / "cdd"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = -C ] && cd "$2"\ncat .tickets\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    for name, render in SCRIPTS.items():
        (tmp_path / f"script.{name}").write_text(render())
    return folder


def run(folder: Path, *argv: str) -> list[str]:
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def complete_in_bash(folder: Path, line: str) -> set[str]:
    words = line.split(" ")
    code = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cdd;'
        ' ((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"'
    )
    script = str(folder.parent / "script.bash")
    found = run(folder, "bash", "-c", code, "bash", script, *words)
    # the line has the name of the ticket quoted
    return {each.replace(r"\$\(touch\ ran\)", EVIL) for each in found}


def complete_in_fish(folder: Path, line: str) -> set[str]:
    code = f"source ../script.fish; complete -C {line!r}"
    found = run(folder, "fish", "--no-config", "-c", code)
    return {each.partition("\t")[0].rstrip("/") for each in found}


def complete_in_zsh(folder: Path, line: str) -> set[str]:
    driver = str(Path(__file__).with_name("complete.zsh"))
    found = set(run(folder, "zsh", "-f", driver, "../script.zsh", line))
    if line.endswith(" "):
        # zsh offers the flags where no argument can follow
        found = {each for each in found if not each.startswith("-")}
    return found


@pytest.mark.parametrize(
    ("shell", "complete"),
    [
        pytest.param("bash", complete_in_bash, marks=pytest.mark.fork),
        pytest.param("fish", complete_in_fish, marks=pytest.mark.real),
        pytest.param("zsh", complete_in_zsh, marks=pytest.mark.real),
    ],
)
def test_a_line_is_completed(
    folder: Path, shell: str, complete: Callable[[Path, str], set[str]]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    wrong = {}
    for line, expected in LINES.items():
        offered = complete(folder, line)
        if offered != expected:
            wrong[line] = offered
    assert wrong == {}
    assert not (folder / "ran").exists()


@pytest.mark.fork
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_a_value_after_an_equals_sign(folder: Path) -> None:
    assert complete_in_bash(folder, "cdd exec --require = ver") == {"verified"}
    assert complete_in_bash(folder, "cdd exec --require =") == {
        "verified",
        "checked",
        "off",
    }


def test_every_script_has_every_command_and_flag() -> None:
    for render in SCRIPTS.values():
        script = render()
        for command in read_commands():
            assert command.name in script
            for flag in command.flags:
                for name in flag.names:
                    assert name.lstrip("-") in script
        assert "@FLAGS" not in script
        assert "@VALUES" not in script
        assert "@C" not in script
    names = {each.name for each in read_commands()}
    assert names == {"", "help", *terminal_commands()}


def test_a_flag_takes_a_value_in_all_commands_or_in_none() -> None:
    commands = read_commands()
    taking = set(flags_with_values(commands))
    switches = {
        name
        for command in commands
        for flag in command.flags
        if flag.is_switch
        for name in flag.names
    }
    assert taking & switches == set()


def test_the_tickets_are_printed_with_their_summaries(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.py"))
    assert main(["completion", "tickets", "-C", str(sandbox.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == [SLUG]
    assert "planned" in lines[0]


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_printed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]()
