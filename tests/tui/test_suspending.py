"""The terminal is lent to others: to the shell that started this one (Ctrl+Z), and to
an editor (Ctrl+G).
"""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.projects import Sandbox
from tests.support.screens import Screen
from tests.support.terminals import Terminal
from tests.tui.person import Person, person_at

multi_threaded = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
CTRL_Z, CTRL_G = b"\x1a", b"\x07"
CDD = shlex.join([sys.executable, "-m", "cdd_agent"])


class AtWork:
    """A person at a shell with job control, in a project, who has started cdd with some
    variables set.
    """

    def __init__(self, root: Path, **variables: str) -> None:
        (root / ".cdd").mkdir(exist_ok=True)
        self.terminal = Terminal(root, "/bin/sh", "-i", size=(80, 24))
        self.screen = Screen(self.terminal)
        # else one is offered, over what is typed
        variables = {"CDD_MODEL": "openai/any-model", **variables}
        set_ = "".join(
            f"{name}={shlex.quote(value)} " for name, value in variables.items()
        )
        self.terminal.type(f"PS1='at-home> '; {set_}{CDD}")
        self.sees("❯")
        self.sees("@: files")

    def sees(self, text: str) -> None:
        self.terminal.until(lambda: text in self.screen.text)

    def type(self, text: str) -> None:
        """Without Enter, and until it is in the prompt."""
        self.terminal.press(text.encode())
        self.sees(text)


@pytest.fixture
def started() -> Iterator[list[AtWork]]:
    started = list[AtWork]()
    yield started
    for person in started:
        person.terminal.end()


@pytest.mark.pty
@multi_threaded
def test_ctrl_z_goes_to_the_shell_and_fg_comes_back_to_the_draft(
    sandbox: Sandbox, started: list[AtWork]
) -> None:
    person = AtWork(sandbox.root)
    started.append(person)
    person.type("half a thought")

    person.terminal.press(CTRL_Z)
    person.sees("at-home>")
    assert "❯" not in person.screen.text
    assert (
        person.terminal.seen.rstrip()
        .rpartition(b"\x1b[?1049l")[2]
        .count(b"\x1b[?1049h")
        == 0
    )
    person.terminal.type("echo $((6 * 7))")
    person.sees("42")

    person.terminal.type("fg")
    person.sees("half a thought")
    person.type(" goes on")
    assert "at-home>" not in person.screen.text
    person.terminal.press(b"\x04")
    person.sees("at-home>")
    person.terminal.type("echo ended=$?")
    person.sees("ended=0")


def editor(root: Path, *lines: str) -> str:
    """A program that is called with the file to edit."""
    script = root / "editor.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    script.chmod(0o755)
    return str(script)


@pytest.mark.pty
@multi_threaded
def test_the_editor_gets_the_terminal_and_its_text_goes_to_the_prompt(
    sandbox: Sandbox, started: list[AtWork]
) -> None:
    program = editor(
        sandbox.root,
        'echo "editing: $(cat "$2")"',
        "read answer",
        'printf "%s\\nand a second line\\n" "$answer" > "$2"',
    )
    person = AtWork(sandbox.root, VISUAL=f"{program} --wait")
    started.append(person)
    person.type("half a thought")

    person.terminal.press(CTRL_G)
    person.sees("editing: half a thought")
    assert "❯" not in person.screen.text
    person.terminal.type("a whole thought")

    person.sees("and a second line")
    assert "❯ a whole thought" in person.screen.text
    person.sees("Enter: send 2 lines")


@pytest.mark.pty
@multi_threaded
@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["exit 3"], "ended with exit code 3"),
        (['rm "$1"'], "cannot be read"),
        (["kill -9 $$"], "exit code -9"),
    ],
)
def test_a_failing_editor_is_reported_and_the_draft_stays(
    sandbox: Sandbox, started: list[AtWork], lines: list[str], told: str
) -> None:
    person = AtWork(sandbox.root, EDITOR=editor(sandbox.root, *lines), VISUAL="")
    started.append(person)
    person.type("half a thought")
    person.terminal.press(CTRL_G)
    person.terminal.until(
        lambda: (
            told
            in " ".join(
                line.partition("▌")[2].strip()
                for line in person.screen.text.split("\n")
            )
        )
    )
    person.sees("❯ half a thought")


@pytest.mark.pty
@multi_threaded
def test_ctrl_c_in_the_editor_is_the_editors(
    sandbox: Sandbox, started: list[AtWork]
) -> None:
    program = editor(
        sandbox.root,
        "trap 'echo stopped > \"$1\"; exit 0' INT",
        "echo editing",
        "sleep 60 & wait",
    )
    person = AtWork(sandbox.root, EDITOR=program, VISUAL="")
    started.append(person)
    person.terminal.press(CTRL_G)
    person.sees("editing")
    person.terminal.press(b"\x03")
    person.sees("❯ stopped")


def told(person: Person) -> str:
    return "\n".join(note.message for note in person.app._notifications)


async def test_a_missing_editor_is_reported(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor --wait")
    async with person_at(sandbox) as person:
        await person.press(*"half", "ctrl+g")
        await person.until(lambda: "no-such-editor" in told(person))
        assert person.prompt.text == "half"


async def test_ctrl_z_reports_that_the_shell_cannot_be_suspended(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.press("ctrl+z")
        await person.until(lambda: "Cannot suspend the shell" in told(person))


async def test_ctrl_g_reports_that_there_is_no_terminal_for_the_editor(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "true")
    async with person_at(sandbox) as person:
        await person.press(*"half", "ctrl+g")
        await person.until(lambda: "cannot run an editor" in told(person))
        assert person.prompt.text == "half"
