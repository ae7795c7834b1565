"""The shell in windows of all sizes, on terminals of several kinds, and over a line
that takes its time.
"""

import json
import re
from collections.abc import Iterator, Mapping
from time import monotonic

import pytest

from cdd_agent.frontend import REST
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.screens import Screen
from tests.support.terminals import CDD, Terminal, resize

pytestmark = [
    pytest.mark.pty,
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded:DeprecationWarning"
    ),
]
CTRL_C, PAGE_DOWN = b"\x03", b"\x1b[6~"
LONG = "\n\n".join(
    f"Paragraph {number} of what there is to say, and some words more."
    for number in range(40)
)


@pytest.fixture
def started() -> Iterator[list[Terminal]]:
    started = list[Terminal]()
    yield started
    for terminal in started:
        terminal.end()


def shell(
    sandbox: Sandbox,
    reply: str,
    size: tuple[int, int],
    env: Mapping[str, str | None] | None = None,
    pace: int = 0,
) -> Terminal:
    script = json.dumps({"replies": [{"reply": reply}], "pace": pace})
    (sandbox.root / ".cdd/script.yaml").write_text(script)
    return Terminal(
        sandbox.root, CDD, "--model", "script:.cdd/script.yaml", size=size, env=env
    )


@pytest.mark.parametrize(
    ("size", "variables"),
    [
        ((40, 10), {"TERM": "linux"}),
        ((300, 80), {"TERM": "screen"}),
        ((80, 24), {"TERM": "xterm-16color", "NO_COLOR": "1"}),
    ],
)
def test_a_question_can_be_read_and_answered(
    sandbox: Sandbox,
    started: list[Terminal],
    size: tuple[int, int],
    variables: dict[str, str | None],
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    (sandbox.root / ".cdd/config.yaml").write_text("approval: ask\n")
    terminal = shell(sandbox, says("a.txt", "good\n" * 12), size, variables)
    started.append(terminal)
    screen = Screen(terminal, *size)

    is_written = (sandbox.root / "a.txt").exists

    def sees(text: str) -> None:
        terminal.until(lambda: text in screen.text)

    def reads() -> None:
        """A key that is pressed at once may be part of a word."""
        until = monotonic() + 2 * REST
        terminal.until(lambda: monotonic() > until)

    sees("❯")
    terminal.type(f"/exec {SLUG}")
    sees("Plan 0/1")
    terminal.type("continue")
    sees("[y] ")
    sees("Waiting for your answer")
    sees("❯")
    reads()
    while "↓" in screen.text:
        before = screen.text
        terminal.press(PAGE_DOWN)
        terminal.until(lambda: screen.text != before)  # noqa: B023  # asked at once
    reads()
    for _ in range(3):
        terminal.press(b"y")
        terminal.until(
            lambda: is_written() or re.search("Enter: at once|Tab, then", screen.text)
        )
        reads()
        if is_written():
            break
        # The shell was stopped meanwhile, and the letter came too early for it.
        terminal.press(b"\r" if "Enter: at once" in screen.text else b"\t")
        reads()
    terminal.until(is_written)
    sees("Plan 1/1")


def test_a_window_of_six_rows_takes_a_line(
    sandbox: Sandbox, started: list[Terminal]
) -> None:
    sandbox.write(Step("a.txt"))
    terminal = shell(sandbox, "Good day.", (20, 6))
    started.append(terminal)
    screen = Screen(terminal, 20, 6)
    terminal.until(lambda: "❯" in screen.text)
    terminal.type("hello")
    terminal.until(lambda: "Good day." in screen.text)


def test_a_growing_text_looks_the_same_after_the_window_was_resized(
    sandbox: Sandbox, started: list[Terminal]
) -> None:
    sandbox.write(Step("a.txt"))
    terminal = shell(
        sandbox, LONG, (120, 40), {"COLUMNS": None, "LINES": None}, pace=800
    )
    started.append(terminal)
    wide, narrow = Screen(terminal, 120, 40), Screen(terminal, 50, 15)
    terminal.until(lambda: "❯" in wide.text)
    terminal.type("hello")
    terminal.until(lambda: "Paragraph 12" in wide.text)
    resize(terminal, 50, 15)
    terminal.until(lambda: "@: files" in narrow.text and "Paragraph 39" in narrow.text)
    after = [line for line in narrow.text.split("\n") if line]

    (sandbox.root / "another").mkdir()
    other = Sandbox(sandbox.root / "another").write(Step("a.txt"))
    fresh = shell(other, LONG, (50, 15))
    started.append(fresh)
    screen = Screen(fresh, 50, 15)
    fresh.until(lambda: "❯" in screen.text)
    fresh.type("hello")
    fresh.until(lambda: "@: files" in screen.text and "Paragraph 39" in screen.text)
    shown = [line for line in screen.text.split("\n") if line]
    assert without_the_bar(after[1:-2]) == without_the_bar(shown[1:-2])


def without_the_bar(rows: list[str]) -> list[str]:
    """Textual moves the bar of a text that scrolls a frame later."""
    return [re.sub("\\s*[▁-█]?$", "", row) for row in rows]


def test_ctrl_c_during_a_reply_leaves_a_screen_that_works(
    sandbox: Sandbox, started: list[Terminal]
) -> None:
    sandbox.write(Step("a.txt"))
    terminal = shell(sandbox, LONG, (80, 24), pace=100)
    started.append(terminal)
    screen = Screen(terminal)
    terminal.until(lambda: "❯" in screen.text)
    terminal.type("hello")
    terminal.until(lambda: "Paragraph 5" in screen.text)
    terminal.press(CTRL_C)
    terminal.until(lambda: "Stopped." in screen.text)
    terminal.press(b"go on")
    terminal.until(lambda: "❯ go on" in screen.text)
    terminal.press(CTRL_C + CTRL_C)
    terminal.until_ended()
    # the last before it: the keyboard as it was
    assert terminal.seen.rpartition(b"\x1b[?1049l")[0].endswith(b"u")
    # in no style of ours
    assert re.findall(rb"\x1b\[[0-9;]*m", terminal.seen)[-1] == b"\x1b[0m"
