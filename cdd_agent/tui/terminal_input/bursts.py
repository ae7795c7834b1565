"""Recognizes pastes in terminals that do not mark them: several lines that arrive
faster than a user types.
"""

from math import inf

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import is_text
from cdd_agent.tui.terminal_input.splitting import Pasted, PasteEnd, Token

BURST_GAP = 0.01
"""Maximum seconds between characters of a burst."""
_REPORT = Pattern(r"\x1b(?:\[<|\[M|\[[IO]\Z|\[\?|\[48;[\d:;]+t|\]|\[\d+;\d+R)")
"""Sequences that are not keys: mouse, focus, answers of the terminal."""


class BurstFilter:
    """Turns a burst of text with two or more line ends into a paste.

    A character that arrives alone was typed, and passes at once, unless it is a line
    end. Other characters wait a moment for the rest of a burst; from the first line end
    they wait until the burst ends. A line with one Enter, or repeated Enter, is not a
    paste.
    """

    def __init__(self) -> None:
        self.deadline = inf
        """The time to call `tick` if nothing arrives before."""
        self._held: list[Token] = []
        self._holds_lines = False
        self._has_text = False
        self._first_at = self._last_at = -inf
        """The times of the first held token and of the last character."""

    def feed(self, tokens: list[Token], at: float) -> list[Token]:
        """Return the tokens that need not wait, in order."""
        is_in_burst = at < self._last_at + BURST_GAP
        if not (self._held or is_in_burst):
            self._has_text = False
            if len(tokens) == 1 and _is_key_alone(tokens[0]):
                self._last_at = at
                self._has_text = _is_text(tokens[0])
                return tokens
        certain: list[Token] = []
        for token in tokens:
            is_character = isinstance(token, str) and len(token) == 1
            is_of_burst = is_character or isinstance(token, Pasted | PasteEnd)
            if is_of_burst or self._held:
                self._hold(token, at, is_of_burst=is_of_burst)
            else:
                certain.append(token)
        return certain

    def _hold(self, token: Token, at: float, *, is_of_burst: bool) -> None:
        if not self._held:
            self._first_at = at
        self._held.append(token)
        if is_of_burst:
            self._last_at = at
            self._has_text = self._has_text or _is_text(token)
            if token in ("\r", "\n") or isinstance(token, Pasted):
                self._holds_lines = True
        since = self._last_at if self._holds_lines else self._first_at
        self.deadline = since + BURST_GAP

    def tick(self, at: float) -> list[Token]:
        """Return the tokens whose wait is over."""
        if at < self.deadline:
            return []
        tokens, self._held = self._held, []
        if at < self._last_at + BURST_GAP:
            self.deadline = self._last_at + BURST_GAP
            return tokens
        self.deadline = inf
        has_text, self._has_text = self._has_text, False
        self._holds_lines = False
        return _resolve(tokens, has_text=has_text)


def _is_key_alone(token: Token) -> bool:
    is_character = isinstance(token, str) and len(token) == 1
    return is_character and token not in ("\r", "\n")


def _is_text(token: Token) -> bool:
    return isinstance(token, str) and len(token) == 1 and is_text(token)


def _resolve(tokens: list[Token], *, has_text: bool) -> list[Token]:
    # A paste that contains an end marker lasts until its last one.
    ends = [index for index, token in enumerate(tokens) if isinstance(token, PasteEnd)]
    pasted = _as_paste(tokens[: ends[-1]]) if ends else []
    rest = _without_line_feeds_of_enter(tokens[ends[-1] + 1 :] if ends else tokens)
    line_ends = sum(token in ("\r", "\n") for token in rest)
    if has_text and line_ends > 1:
        return _as_paste([*pasted, *rest])
    return pasted + rest


def _without_line_feeds_of_enter(tokens: list[Token]) -> list[Token]:
    remaining: list[Token] = []
    is_behind_enter = False
    for token in tokens:
        if token != "\n" or not is_behind_enter:  # noqa: S105  # no password
            remaining.append(token)
        is_behind_enter = token == "\r"  # noqa: S105  # no password
    return remaining


def _as_paste(tokens: list[Token]) -> list[Token]:
    reports: list[Token] = []
    parts: list[str] = []
    for token in tokens:
        if isinstance(token, Pasted):
            parts.append(token.text)
        elif isinstance(token, str) and len(token) == 1:
            parts.append(token)
        elif isinstance(token, str) and _REPORT.match(token):
            reports.append(token)
    return [*reports, Pasted("".join(parts))]
