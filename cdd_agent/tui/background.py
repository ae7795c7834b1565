"""The colour of the terminal's background: asked for where the terminal can be asked,
and told as a message.
"""

import sys

from textual.driver import Driver

if sys.platform != "win32":
    from textual.drivers.linux_driver import LinuxDriver

    from cdd_agent.tui.asking_driver import AskingDriver


def asking(driver: type[Driver]) -> type[Driver]:
    """The driver that can ask in place of this one, where there is one."""
    if sys.platform == "win32":
        return driver
    return AskingDriver if driver is LinuxDriver else driver


def ask_for_background(driver: Driver | None) -> None:
    """Nobody waits for the answer; what cannot answer says nothing."""
    if sys.platform != "win32":
        if isinstance(driver, AskingDriver):
            driver.ask_for_background()
