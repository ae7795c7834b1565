"""The colour of the terminal's background: asked for where the terminal can be asked,
and told as a message.
"""

import os

from textual.driver import Driver
from textual.message import Message


class BackgroundTold(Message):
    """The terminal's background, as it names it: `rgb:1e1e/1e1e/1e1e`."""

    def __init__(self, colour: str) -> None:
        super().__init__()
        self.colour = colour


def asking(driver: type[Driver]) -> type[Driver]:
    """The driver that can ask in place of this one, where there is one."""
    if os.name == "nt":
        return driver
    from textual.drivers.linux_driver import LinuxDriver

    from cdd_agent.tui.asking_driver import AskingDriver  # Windows has no such terminal

    return AskingDriver if driver is LinuxDriver else driver


def ask_for_background(driver: Driver | None) -> None:
    """Nobody waits for the answer; what cannot answer says nothing."""
    if os.name != "nt":
        from cdd_agent.tui.asking_driver import AskingDriver

        if isinstance(driver, AskingDriver):
            driver.ask_for_background()
