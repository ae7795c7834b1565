"""Chooses the driver: the shell's own for a terminal, Textual's for Windows and
browsers.
"""

import sys
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.driver import Driver
from textual.message import Message

from cdd_agent.tui.terminal_input.typed_text import refine_message

if sys.platform != "win32":
    from textual.drivers.linux_driver import LinuxDriver

    from cdd_agent.tui.terminal_input.driver import TerminalDriver


def choose_driver(
    by_textual: type[Driver], on_made: Callable[[Driver], None]
) -> type[Driver]:
    """Return the driver class to use instead of Textual's. `on_made` receives the
    driver, because Textual's app has no public access to it.
    """
    chosen = by_textual
    if sys.platform != "win32" and by_textual is LinuxDriver:
        chosen = TerminalDriver

    # mypy does not support a base class that is chosen at runtime.
    class ShellDriver(chosen):  # type: ignore[misc, valid-type]
        def __init__(self, app: App[Any], **options: Any) -> None:
            super().__init__(app, **options)
            on_made(self)

        def process_message(self, message: Message) -> None:
            super().process_message(refine_message(message))

    return ShellDriver


def ask_for_background(driver: Driver | None) -> None:
    """Ask the terminal for its background colour. The answer, if any, is a message."""
    if sys.platform != "win32" and isinstance(driver, TerminalDriver):
        driver.ask_for_background()
