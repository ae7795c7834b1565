"""Chooses the driver of the shell: its own for a terminal, Textual's for Windows and
for a page in a browser.
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
    """Return the driver to use where Textual would use its own. `on_made` gets the
    driver: an app of Textual has no public way to it.
    """
    chosen = by_textual
    if sys.platform != "win32" and by_textual is LinuxDriver:
        chosen = TerminalDriver

    # mypy does not know a base that is chosen here
    class ShellDriver(chosen):  # type: ignore[misc, valid-type]
        def __init__(self, app: App[Any], **options: Any) -> None:
            super().__init__(app, **options)
            on_made(self)

        def process_message(self, message: Message) -> None:
            super().process_message(refine_message(message))

    return ShellDriver


def ask_for_background(driver: Driver | None) -> None:
    """Ask the terminal for its background, if it can answer. A message reports the
    answer.
    """
    if sys.platform != "win32" and isinstance(driver, TerminalDriver):
        driver.ask_for_background()
