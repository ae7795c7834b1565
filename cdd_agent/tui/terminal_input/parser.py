from codecs import getincrementaldecoder
from collections.abc import Iterable
from itertools import chain

from textual.message import Message

from cdd_agent.tui.terminal_input.bursts import BurstFilter
from cdd_agent.tui.terminal_input.decoding import Decoder
from cdd_agent.tui.terminal_input.splitting import Splitter, Token


class TerminalParser:
    """Parses a terminal's bytes into Textual's events.

    The bytes may be split anywhere. Call `tick` if nothing arrives before the
    `deadline`.
    """

    def __init__(self) -> None:
        self._utf8 = getincrementaldecoder("utf-8")("replace")
        self._splitter = Splitter()
        self._bursts = BurstFilter()
        self._decoder = Decoder()

    @property
    def deadline(self) -> float:
        return min(self._splitter.deadline, self._bursts.deadline)

    def expect_answer(self, at: float) -> None:
        self._splitter.expect_answer(at)

    def feed(self, data: bytes, at: float) -> list[Message]:
        """Return the events of bytes that arrived at the time `at`."""
        tokens = self._splitter.feed(self._utf8.decode(data), at)
        return self._events(self._bursts.feed(tokens, at))

    def tick(self, at: float) -> list[Message]:
        """Return the events whose wait is over."""
        tokens = self._bursts.tick(at)
        tokens += self._bursts.feed(self._splitter.tick(at), at)
        return self._events(tokens)

    def _events(self, tokens: Iterable[Token]) -> list[Message]:
        return list(chain.from_iterable(map(self._decoder.decode, tokens)))
