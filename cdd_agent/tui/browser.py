"""The shell in a page that `cdd serve` serves: its screen and its keys are packets on
the standard streams.
"""

import sys
from asyncio import get_running_loop

from textual.drivers.web_driver import WebDriver


class BrowserDriver(WebDriver):
    """Ends the shell when the server is gone, and keeps what is printed out of the
    packets.
    """

    def start_application_mode(self) -> None:
        self._loop = get_running_loop()
        # for what the command says after the shell; the server prints it
        sys.stdout = sys.stderr
        super().start_application_mode()

    def run_input_thread(self) -> None:
        super().run_input_thread()
        if not self.exit_event.is_set():
            # of the `Shell`
            self._loop.call_soon_threadsafe(self._app.action_vanish)  # type: ignore[attr-defined]
