"""How a check is run."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult
from cdd_agent.settings.config import Commands
from cdd_agent.verification.check_run import run_check
from cdd_agent.verification.checks import parse_command
from tests.support.tables import each_row


class Programs:
    """Records the environment of the programs that it is asked to run."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}

    async def __call__(self, argv: Any, **how: Any) -> CommandResult:
        self.env = dict(how["env"])
        return CommandResult("", "", 0)


@each_row(
    ("outer", "hidden", "of_all", "expected"),
    [
        (None, (), {}, "1"),
        ("true", (), {}, None),
        ("", (), {}, None),
        (None, ("CI",), {}, None),
        (None, (), {"CI": "false"}, "false"),
    ],
)
async def test_ci_is_set_for_a_check_unless_the_user_sets_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outer: str | None,
    hidden: tuple[str, ...],
    of_all: dict[str, str],
    expected: str | None,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if outer is not None:
        monkeypatch.setenv("CI", outer)
    programs = Programs()
    commands = CommandRunner(
        tmp_path, Commands(hide_env=hidden), env=of_all, run_program=programs
    )
    await run_check(parse_command("make test", tmp_path), commands, 9, tmp_path)
    assert programs.env.get("CI") == expected


async def test_a_command_that_is_no_check_gets_no_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    programs = Programs()
    commands = replace(CommandRunner(tmp_path), run_program=programs)
    await commands.run("make test")
    assert "CI" not in programs.env
