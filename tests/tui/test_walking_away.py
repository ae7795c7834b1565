"""A real terminal that somebody leaves, comes back to, and closes the shell in."""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.screens import Screen
from tests.support.terminals import CDD, Terminal

pytestmark = [
    pytest.mark.pty,
    pytest.mark.filterwarnings(
        "ignore:This process .* is multi-threaded:DeprecationWarning"
    ),
]
AWAY, BACK = b"\x1b[O", b"\x1b[I"
Open = Callable[..., Terminal]


def sees(terminal: Terminal, text: str) -> None:
    screen = Screen(terminal)
    terminal.until(lambda: text in screen.text)


@pytest.fixture
def open_(sandbox: Sandbox) -> Iterator[Open]:
    """Opens the shell on a terminal of a kind, in a project with a run of two steps."""
    sandbox.write(
        Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1")
    )
    replies = json.dumps(
        [{"reply": says("a.txt", "good")}, {"reply": says("b.txt", "bad")}]
    )
    (sandbox.root / ".cdd/script.yaml").write_text(f"replies: {replies}\n")
    (sandbox.root / ".cdd/config.yaml").write_text("model: script:.cdd/script.yaml\n")
    opened = list[Terminal]()

    def open_it(**variables: str) -> Terminal:
        terminal = Terminal(
            sandbox.root, CDD, size=(80, 24), env={"TMUX": None, **variables}
        )
        opened.append(terminal)
        sees(terminal, "New ticket")
        return terminal

    yield open_it
    for terminal in opened:
        terminal.end()


def left_in(terminal: Terminal) -> str:
    """The text that stays in the terminal after the shell."""
    after = terminal.seen.rpartition(b"\x1b[?1004l")[2]
    return re.sub(rb"\x1b\[[?0-9;]*[a-z]", b"", after).decode()


def test_a_run_reports_its_progress_to_a_user_who_is_away(open_: Open) -> None:
    terminal = open_(TERM_PROGRAM="ghostty")
    terminal.type(f"/exec {SLUG}")
    terminal.until(lambda: b"\x1b]2;0/2" in terminal.seen)
    terminal.press(AWAY)
    terminal.type("all")
    terminal.until(lambda: b"\x07" in terminal.seen.partition(b"\x1b]777;notify;")[2])
    note = terminal.seen.partition(b"\x1b]777;")[2].partition(b"\x07")[0].decode()
    assert note.startswith("notify;cdd")
    assert note.endswith("Step 2 failed: Make b.txt")
    assert "\x1b]2;… 1/2 · feature-words · cdd\x07".encode() in terminal.seen
    assert b"\x1b]9;4;1;50\x07" in terminal.seen

    screen = Screen(terminal)
    assert "While you were away" not in screen.text
    terminal.press(BACK)
    terminal.until(lambda: "While you were away" in screen.text)
    assert "1 step by exit code, 1 failed" in screen.text

    terminal.press(b"\x04")
    terminal.until_ended()
    assert terminal.seen.count(b"\x1b[22;0t") == terminal.seen.count(b"\x1b[23;0t") == 1
    assert terminal.seen.index(b"\x1b]9;4;0\x07") < terminal.seen.index(b"\x1b[23;0t")


def test_ctrl_z_restores_the_title_and_fg_sets_it_again(open_: Open) -> None:
    terminal = open_()
    terminal.press(b"\x1a")
    terminal.until(lambda: b"\x1b[?1049l" in terminal.seen)
    assert terminal.seen.index(b"\x1b[23;0t") < terminal.seen.rindex(b"\x1b[?1049l")
    terminal.until(
        lambda: psutil.Process(terminal.pid).status() == psutil.STATUS_STOPPED
    )
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.until(lambda: terminal.seen.count(b"\x1b[22;0t") == 2)


def test_a_terminal_that_is_not_known_is_sent_a_title_and_a_bell_alone(
    open_: Open,
) -> None:
    terminal = open_(TERM_PROGRAM="somebody's")
    terminal.press(AWAY)
    terminal.type("/status")
    terminal.until(
        lambda: (
            re.search(
                rb"(?<!\])\x07", re.sub(rb"\x1b\]2+;[^\x07]*\x07", b"", terminal.seen)
            )
            is not None
        )
    )
    assert b"\x1b]9;" not in terminal.seen
    assert b"\x1b]777;" not in terminal.seen


def test_a_disabled_notification_is_not_sent(open_: Open, sandbox: Sandbox) -> None:
    off = "notifications: {bell: false, desktop: off, title: false, progress: off}\n"
    (sandbox.root / ".cdd/config.yaml").write_text(
        f"model: script:.cdd/script.yaml\n{off}"
    )
    terminal = open_(TERM_PROGRAM="ghostty")
    terminal.press(AWAY)
    terminal.type(f"/exec {SLUG}")
    sees(terminal, "Next: step 1")
    terminal.press(b"\x04")
    terminal.until_ended()
    # Textual's, for the mouse pointer
    assert terminal.seen.count(b"\x07") == terminal.seen.count(b"\x1b]22;")
    assert b"\x1b[22;0t" not in terminal.seen


def test_leaving_prints_a_summary(open_: Open) -> None:
    terminal = open_()
    terminal.type(f"/exec {SLUG}")
    sees(terminal, "Next: step 1")
    terminal.type("all")
    sees(terminal, "retry")
    terminal.press(b"\x04")
    terminal.until_ended()
    first, second, third, _ = left_in(terminal).split("\r\n")
    assert first.startswith(f"{SLUG}: 1 step by exit code, 1 failed · ")
    assert second == f"Report: .cdd/runs/{SLUG}/report.md"
    assert third == "Continue with: cdd resume"


def test_the_summary_of_a_completed_run_offers_no_resume(
    open_: Open, sandbox: Sandbox
) -> None:
    replies = json.dumps([{"reply": says(path, "good")} for path in ("a.txt", "b.txt")])
    (sandbox.root / ".cdd/script.yaml").write_text(f"replies: {replies}\n")
    terminal = open_()
    terminal.type(f"/exec {SLUG}")
    terminal.until(lambda: b"Next: step 1" in terminal.seen)
    terminal.type("all")
    terminal.until(lambda: b"2 by exit code" in terminal.seen)
    terminal.press(b"\x04")
    terminal.until_ended()
    first, second, rest = left_in(terminal).split("\r\n")
    assert first.startswith(f"{SLUG}: 2 steps by exit code · ")
    assert second.startswith("Report: ")
    assert rest == ""


def test_no_summary_is_printed_when_nothing_was_done(open_: Open) -> None:
    terminal = open_()
    terminal.type("/status")
    sees(terminal, SLUG)
    terminal.press(b"\x04")
    terminal.until_ended()
    assert left_in(terminal) == ""


def test_a_closed_terminal_ends_the_shell_also_where_another_program_is_its_first(
    sandbox: Sandbox,
) -> None:
    """As `make` is where a terminal was opened for `make demo` alone: only that one is
    sent a SIGHUP.
    """
    command = f"trap '' HUP; '{sys.executable}' -m cdd_agent; true"
    terminal = Terminal(sandbox.root, "/bin/sh", "-c", command, size=(80, 24))
    sees(terminal, "New ticket")
    terminal.close()
    terminal.until(terminal.has_ended)
