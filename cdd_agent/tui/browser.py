"""The shell in a page that `cdd serve` serves: its screen and its keys are packets on
the standard streams.
"""

import sys

from textual.drivers.web_driver import WebDriver

from cdd_agent.tui.terminal_input.driver_messages import InputEnded


class BrowserDriver(WebDriver):
    """Ends the shell when the server is gone, and keeps what is printed out of the
    packets.
    """

    def start_application_mode(self) -> None:
        # for what the command says after the shell; the server prints it
        sys.stdout = sys.stderr
        super().start_application_mode()

    def run_input_thread(self) -> None:
        super().run_input_thread()
        if not self.exit_event.is_set():
            self.send_message(InputEnded(is_gone=True))
