"""How the person's editor is called: by words, and by paths with spaces, on each
system.
"""

import os
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.process.editor import editor_argv, words_of
from tests.support.tables import each_row

VIM = r"C:\Program Files\Vim\vim91\gvim.exe"


@each_row(
    ("command", "on_posix", "on_windows"),
    [
        ("vim", ["vim"], ["vim"]),
        ("code --wait", ["code", "--wait"], ["code", "--wait"]),
        ("  nano   -w ", ["nano", "-w"], ["nano", "-w"]),
        (
            '"/opt/my editor/ed" -w',
            ["/opt/my editor/ed", "-w"],
            ["/opt/my editor/ed", "-w"],
        ),
        (
            "'/opt/my editor/ed' -w",
            ["/opt/my editor/ed", "-w"],
            ["'/opt/my", "editor/ed'", "-w"],
        ),
        (r"/opt/my\ editor/ed", ["/opt/my editor/ed"], ["/opt/my\\", "editor/ed"]),
        (f'"{VIM}" -f', [VIM, "-f"], [VIM, "-f"]),
        (r"C:\bin\hx.exe -c", ["C:binhx.exe", "-c"], [r"C:\bin\hx.exe", "-c"]),
        (r"C:\Users\O'Neill\ed.exe", None, [r"C:\Users\O'Neill\ed.exe"]),
        (
            'ed --title="a b" #1',
            ["ed", "--title=a b", "#1"],
            ["ed", "--title=a b", "#1"],
        ),
        ('"ed', None, None),
        ('""', [""], [""]),
    ],
)
def test_a_command_is_split_as_each_system_writes_it(
    command: str, on_posix: list[str] | None, on_windows: list[str] | None
) -> None:
    for words, posix in ((on_posix, True), (on_windows, False)):
        if words is None:
            with pytest.raises(ValueError, match="No closing quotation"):
                words_of(command, posix=posix)
        else:
            assert words_of(command, posix=posix) == words


@pytest.fixture
def editor(tmp_path: Path) -> str:
    """A program in a folder with a space in its name."""
    program = tmp_path / "my editor" / ("ed.bat" if os.name == "nt" else "ed")
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return str(program)


@each_row("variable", ["VISUAL", "EDITOR"])
def test_a_program_in_a_folder_with_a_space_is_found(
    editor: str, variable: str
) -> None:
    assert editor_argv({variable: f'"{editor}" -w'}) == [editor, "-w"]
    # as it is there, nothing has to be guessed
    assert editor_argv({variable: editor}) == [editor]


@each_row("command", ['"vi', '""', "no-such-editor -w", '"no such editor"'])
def test_one_that_cannot_be_called_is_named(command: str) -> None:
    with pytest.raises(BadInput, match=r"\$EDITOR"):
        editor_argv({"EDITOR": command})
