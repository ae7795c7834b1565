"""Calls a user who looks at another window, with the bell, a desktop notification, the
terminal's title and the taskbar.

The same sequence is progress in one terminal and a notification in another, so a
terminal gets only sequences that it is known to support. An unknown terminal gets the
bell and a title. The setting `notifications` turns each of them off.
"""

from __future__ import annotations

import re
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct

from cdd_agent.events.question_events import (
    ActionProposed,
    Choice,
    CommandProposed,
    Proposal,
    TestLossProposed,
    UndoProposed,
)
from cdd_agent.events.shell_events import AgentChanged
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.tui.recap import Recap
from cdd_agent.wording.question_words import question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdd_agent.changes.review import Review
    from cdd_agent.cost import Cost
    from cdd_agent.frontend import Decision, Frontend
    from cdd_agent.settings.config import Notifications

_LONGEST = 160
_AGAIN = 5.0
"""Seconds after which progress is repeated: some terminals drop stale progress."""
_KEEP_TITLE, _BRING_BACK_TITLE = "\x1b[22;0t", "\x1b[23;0t"
_NO_PROGRESS = "\x1b]9;4;0\x07"


class _Activity(NamedTuple):
    sign: str
    colour: int
    """The taskbar's colour in OSC 9;4."""


_ASKING = _Activity("?", 4)
_FAILED = _Activity("✗", 2)
_AT_WORK = _Activity("…", 1)
_AT_REST = _Activity("", 0)

Desktop = Literal["osc9", "osc777", ""]


class TerminalKind(Struct, frozen=True):
    titles: bool
    desktop: Desktop
    progress: bool
    is_tmux: bool = False

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> TerminalKind:
        term = environment.get("TERM", "")
        if "WT_SESSION" in environment or environment.get("ConEmuANSI") == "ON":
            return cls(titles=True, desktop="", progress=True)
        if not _TERMS_WITH_TITLES.match(term):
            return cls(titles=False, desktop="", progress=False)
        # The terminal around a multiplexer is unknown.
        if "TMUX" in environment or term.startswith(("tmux", "screen")):
            is_tmux = "TMUX" in environment
            return cls(titles=True, desktop="", progress=False, is_tmux=is_tmux)
        return cls._of_program(environment, term)

    @classmethod
    def _of_program(cls, environment: Mapping[str, str], term: str) -> TerminalKind:
        program = environment.get("TERM_PROGRAM", "")
        version = _numbers(environment.get("TERM_PROGRAM_VERSION", ""))
        if program in _PROGRAMS:
            desktop, with_progress = _PROGRAMS[program]
            return cls(titles=True, desktop=desktop, progress=version >= with_progress)
        vte = _numbers(environment.get("VTE_VERSION", ""))
        is_known = bool(vte) or term.startswith(_TERMS_WITH_DESKTOP)
        is_known |= not _VARIABLES_WITH_DESKTOP.isdisjoint(environment)
        known_desktop: Desktop = "osc777" if is_known else ""
        return cls(titles=True, desktop=known_desktop, progress=vte >= (7900,))


_TERMS_WITH_TITLES = Pattern(
    r"xterm|tmux|screen|rxvt|alacritty|foot|wezterm|konsole|vte|st-|contour|mintty"
)
_PROGRAMS: dict[str, tuple[Desktop, tuple[int, ...]]] = {
    "iTerm.app": ("osc9", (3, 6, 6)),
    "WezTerm": ("osc777", (20250301,)),
    "ghostty": ("osc777", ()),
    "mintty": ("", ()),
}
"""For each program, its sequence for notifications, and the first version with
progress.
"""
_TERMS_WITH_DESKTOP = ("xterm-kitty", "foot", "rxvt-unicode", "contour")
_VARIABLES_WITH_DESKTOP = {"KITTY_WINDOW_ID", "KONSOLE_VERSION"}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d{1,9}", version)[:3]))


class Attention:
    """Tracks whether the terminal has the focus, and calls the user if not. It writes
    nothing before `open`.
    """

    def __init__(
        self, write: Callable[[str], None], terminal: TerminalKind, project: str
    ) -> None:
        self._write = write
        self._terminal = terminal
        self._project = project
        self._settings: Notifications | None = None
        self._is_lent = False
        self._away: Recap | None = None
        self._ticket: str | None = None
        self._done = self._total = 0
        self._last: StepFinished | None = None
        self._is_at_work = self._is_asking = self._has_failed = False
        self._shown: tuple[str, str] = ("", "")
        self._shown_at = 0.0
        self.session: Recap | None = None

    def open(self, settings: Notifications, spent: Callable[[], Cost]) -> None:
        self._settings = settings
        self._spent = spent
        self.session = Recap(spent)
        self.take_back()

    def change_settings(self, settings: Notifications) -> None:
        self.lend()
        self._settings = settings
        self.take_back()

    def close(self) -> None:
        self.lend()
        self._settings = None

    def lend(self) -> None:
        """Restore the title and the taskbar for another program."""
        if not self._is_lent and self._settings is not None:
            if self._shown[1]:
                self._send(self._wrap_for_tmux(_NO_PROGRESS))
            if self._shown[0]:
                self._send(_BRING_BACK_TITLE)
            self._shown = ("", "")
        self._is_lent = True

    def take_back(self) -> None:
        self._is_lent = False
        self._show()

    def begin(self) -> None:
        self._is_at_work, self._has_failed, self._last = True, False, None
        self._show()

    def end(self, problem: str = "", *, stopped: bool = False) -> None:
        """Note that a turn has ended and no queued line follows. `problem` is the error
        that ended the turn.
        """
        failed = self._last is not None and self._last.status is StepStatus.FAILED
        self._is_at_work, self._has_failed = False, bool(problem) or failed
        for recap in self._recaps:
            recap.turns += 1
            recap.problem = problem
        if not stopped:
            self._call(problem or self._progress_text)
        self._show()

    @property
    def _recaps(self) -> list[Recap]:
        return [recap for recap in (self._away, self.session) if recap is not None]

    def ask(self, question: str) -> None:
        self._is_asking = True
        for recap in self._recaps:
            recap.questions += 1
        self._call(f"Needs your answer: {question.strip().partition(chr(10))[0]}")
        self._show()

    def answered(self) -> None:
        self._is_asking = False
        self._show()

    def receive(self, event: Event) -> None:
        for recap in self._recaps:
            recap.receive(event)
        match event:
            case AgentChanged(agent=agent, ticket_slug=slug):
                self._ticket = slug if agent == "executor" else None
                self._done = self._total = 0
            case PlanOpened(ticket_slug=slug, steps=steps) if slug == self._ticket:
                tally = StepTally.count(step.outcome for step in steps)
                self._done, self._total = tally.over, tally.total
            case StepFinished(done=done, total=total):
                self._done, self._total, self._last = done, total, event
            case _:
                if monotonic() - self._shown_at < _AGAIN or not self._shown[1]:
                    return
                self._shown = (self._shown[0], "")
        self._show()

    def look_away(self) -> None:
        if self.session is not None and self._away is None:
            self._away = Recap(self._spent, ticket=self.session.ticket)

    def look_back(self) -> str:
        """Note that the terminal has the focus again. Return a summary of the absence,
        if anything happened.
        """
        absence, self._away = self._away, None
        if absence is None or absence.is_empty:
            return ""
        facts = [absence.steps, absence.cost]
        if absence.questions:
            facts.append(
                f"{absence.questions} question{'s' * (absence.questions != 1)}"
            )
        if self._is_asking:
            facts.append("one needs your answer")
        if absence.problem:
            facts.append(f"error: {absence.problem}")
        if not self._is_asking:
            facts.append("still running" if self._is_at_work else "it is your turn")
        words = " · ".join(filter(None, facts))
        return f"While you were away ({absence.time}): {words}"

    @property
    def _progress_text(self) -> str:
        last = self._last
        if last is None:
            return "It is your turn"
        if last.status is StepStatus.FAILED:
            return f"Step {last.label} failed: {last.title}"
        if last.done >= last.total:
            return f"All {last.total} steps finished"
        return f"Step {last.label} of {last.total} finished: {last.title}"

    def _call(self, text: str) -> None:
        settings = self._settings
        if self._away is None or settings is None:
            return
        if settings.bell:
            self._send("\x07")
        desktop: str = settings.desktop
        if desktop == "auto":
            desktop = self._terminal.desktop
        name, text = _plain(f"cdd · {self._project}"), _plain(text)
        if desktop == "osc9":
            self._send(self._wrap_for_tmux(f"\x1b]9;{name}: {text}\x07"))
        elif desktop == "osc777":
            title, body = name.replace(";", ","), text.replace(";", ",")
            self._send(self._wrap_for_tmux(f"\x1b]777;notify;{title};{body}\x07"))

    def _show(self) -> None:
        settings = self._settings
        if settings is None or self._is_lent:
            return
        shown_title, shown_progress = self._shown
        title = progress = ""
        if settings.title and self._terminal.titles:
            title = self._title()
            if title != shown_title:
                keep = "" if shown_title else _KEEP_TITLE
                self._send(f"{keep}\x1b]2;{title}\x07")
        is_auto = settings.progress == "auto" and self._terminal.progress
        if is_auto or settings.progress == "on":
            progress = self._progress()
            if progress != shown_progress:
                self._send(self._wrap_for_tmux(progress or _NO_PROGRESS))
                self._shown_at = monotonic()
        self._shown = (title, progress)

    @property
    def _activity(self) -> _Activity:
        if self._is_asking:
            return _ASKING
        if self._has_failed:
            return _FAILED
        return _AT_WORK if self._is_at_work else _AT_REST

    def _title(self) -> str:
        count = f"{self._done}/{self._total}" if self._has_plan else ""
        status = f"{self._activity.sign} {count}".strip()
        parts = (status, self._ticket or self._project, "cdd")
        return _plain(" · ".join(filter(None, parts)))

    def _progress(self) -> str:
        """Return the taskbar's sequence; empty without a plan or an activity."""
        colour = self._activity.colour
        if not colour or not self._has_plan:
            return ""
        return f"\x1b]9;4;{colour};{100 * self._done // self._total}\x07"

    @property
    def _has_plan(self) -> bool:
        return bool(self._total and self._ticket)

    def _wrap_for_tmux(self, sequence: str) -> str:
        """Wrap a sequence for tmux (`allow-passthrough`)."""
        escaped = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{escaped}\x1b\\" if self._terminal.is_tmux else sequence

    def _send(self, text: str) -> None:
        if not self._is_lent:
            self._write(text)


class Calling(Struct, frozen=True):
    """The `Frontend` port, with a call to the user before each question. Other people
    may see the desktop, so a call contains no text of a model, a command or a file.
    """

    frontend: Frontend
    attention: Attention

    async def approve(self, proposal: Proposal) -> Choice:
        self.attention.ask(_call_for(proposal))
        try:
            return await self.frontend.approve(proposal)
        finally:
            self.attention.answered()

    async def review(self, review: Review) -> Decision:
        self.attention.ask(question(review, diff=False))
        try:
            return await self.frontend.review(review)
        finally:
            self.attention.answered()

    async def ask(self, prompt: str) -> str:
        self.attention.ask("The model has a question.")
        try:
            return await self.frontend.ask(prompt)
        finally:
            self.attention.answered()


def _call_for(proposal: Proposal) -> str:
    match proposal:
        case CommandProposed():
            return "Run a command?"
        case ActionProposed():
            return "Allow an action?"
        case TestLossProposed():
            return "Let a step remove tests?"
        case UndoProposed():
            return "Undo a change?"


def _plain(text: str) -> str:
    return sanitize_for_display(" ".join(text.split()))[:_LONGEST]
