"""The shell in a page of `cdd serve`. The screen and the keys are packets on the
standard streams.
"""

import json
import os
import select
import sys
from collections.abc import Iterator
from time import monotonic

from textual.drivers.web_driver import WebDriver

from cdd_agent.tui.terminal_input.driver_messages import InputEnded, PageAttached
from cdd_agent.tui.terminal_input.parser import TerminalParser

_PAGE_MODES = (
    "\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h\x1b[?2004h"
)
"""Alternate screen, no cursor, mouse, bracketed paste."""
_LONGEST_PAUSE = 0.1
"""Seconds between the reader's checks for the end of the shell."""
_LARGEST_READ = 65_536
_HEAD = 5
"""Bytes of a packet's head: its kind and its size."""


class BrowserDriver(WebDriver):
    """Reads keys like a terminal, and ends the shell when the server is gone."""

    def start_application_mode(self) -> None:
        # The server prints the command's last output.
        sys.stdout = sys.stderr
        super().start_application_mode()

    def run_input_thread(self) -> None:
        if sys.platform == "win32":
            # Windows cannot wait for a pipe.
            super().run_input_thread()
        else:
            self._read_packets()
        if not self.exit_event.is_set():
            self.send_message(InputEnded(is_gone=True))

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type != "attach":
            super().on_meta(packet_type, payload)
            return
        self.write(_PAGE_MODES)
        self.send_message(PageAttached())

    def _read_packets(self) -> None:
        assert sys.__stdin__ is not None
        stdin = sys.__stdin__.fileno()
        parser, packets = TerminalParser(), PacketReader()
        while not self.exit_event.is_set():
            pause = min(max(parser.deadline - monotonic(), 0.0), _LONGEST_PAUSE)
            if not select.select([stdin], [], [], pause)[0]:
                for message in parser.tick(monotonic()):
                    self.process_message(message)
                continue
            data = os.read(stdin, _LARGEST_READ)
            if not data:
                return
            for kind, payload in packets.feed(data):
                if kind != b"D":
                    meta = json.loads(payload)
                    self.on_meta(meta["type"], meta)
                    continue
                for message in parser.feed(payload, monotonic()):
                    self.process_message(message)


class PacketReader:
    """Splits bytes into packets: a kind, the size in four bytes, and the payload."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._rest += data
        while len(self._rest) >= _HEAD:
            end = _HEAD + int.from_bytes(self._rest[1:_HEAD], "big")
            if len(self._rest) < end:
                return
            kind, payload = self._rest[:1], self._rest[_HEAD:end]
            self._rest = self._rest[end:]
            yield kind, payload
