"""The home screen: transcript, plan, spec, prompt and status line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Horizontal, Vertical
from textual.events import DescendantBlur, DescendantFocus, Key
from textual.geometry import Region
from textual.screen import Screen

from cdd_agent.agents.meaning import GUIDANCE
from cdd_agent.commands.registry import read_command, read_line
from cdd_agent.events.notices import Notice
from cdd_agent.events.question_events import ApprovalChanged
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened, PlanProposed
from cdd_agent.git.branch import current_branch
from cdd_agent.tui.displays.display import Display, lines_of
from cdd_agent.tui.displays.every_display import show_on_home
from cdd_agent.tui.drafts import Drafts
from cdd_agent.tui.faults import GuardedWidget, guarded
from cdd_agent.tui.hints import BETWEEN, fit_hint
from cdd_agent.tui.history import PromptHistory
from cdd_agent.tui.keys import shown
from cdd_agent.tui.quiet_enter import EnterGuard
from cdd_agent.tui.transcript.actions import review_block
from cdd_agent.tui.transcript.blocks import BLOCKS
from cdd_agent.tui.transcript.find_bar import FindInput
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import ActivityBar
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.tui.widgets.prompt_frame import ModeLabel, PromptFrame
from cdd_agent.tui.widgets.proposal import ProposalPanel
from cdd_agent.tui.widgets.spec import SpecPanel
from cdd_agent.tui.widgets.status_line import StatusLine
from cdd_agent.tui.widgets.steps import StepList
from cdd_agent.tui.widgets.welcome import Welcome

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

    from cdd_agent.agents.base import Agent
    from cdd_agent.agents.meaning import Meaning
    from cdd_agent.session.session import Session
    from cdd_agent.text.completion import Completion
    from cdd_agent.tui.answering import KeyClock


BESIDE = 100
"""Columns from which a panel fits next to the transcript."""
_LEAST_NOTIFICATION_ROWS = 4
"""Rows of the transcript that a notification needs."""
_IDLE = "@: files · F1: help · Ctrl+D: quit · Ctrl+R: earlier lines"
_IN_CHAT = "Ask anything, or type / for commands"
_AT_WORK = "Type ahead: lines are queued · /status, /diff and /cost run now"
_IN_LIST = "↓: choose"
_BESIDE_PROMPT = 8
_AT_A_COMMAND = "Tab: insert it · Esc: close the list"
_IN_SUGGESTION = "Esc: clear · type to replace"


class Home(GuardedWidget, Screen[None]):
    AUTO_FOCUS = "PromptArea"

    def __init__(self, root: Path, clock: KeyClock, *, has_welcome: bool) -> None:
        super().__init__(classes="-welcome" if has_welcome else "")
        self._clock = clock
        self.session: Session | None = None
        self.enter = EnterGuard(clock)
        self.lines_wait = False
        """True if a new line is queued until the turn ends, unless it can run at any
        time.
        """
        self._is_at_work = False
        self.is_asking = False
        self._root = root

    def compose(self) -> ComposeResult:
        with Horizontal(id="main"):
            yield Welcome(self._clock)
            yield Transcript(self._root)
            yield StepList()
            yield SpecPanel()
            yield ProposalPanel()
        yield Vertical(id="questions")
        yield Prompt(
            self._complete,
            PromptHistory(self._root),
            Drafts(self._root),
            self._is_too_soon,
            self.read_line,
        )
        yield ActivityBar(_IDLE)
        with Horizontal(id="status"):
            yield ModeLabel()
            yield StatusLine(self._root.name or str(self._root))

    def on_mount(self) -> None:
        self._display = Display(self)
        self.prompt.when_empty = self.welcome.take_key
        self.say_what_to_type()
        self.screen_layout_refresh_signal.subscribe(self, self._place_notifications)
        self.bar.branch = current_branch(self._root) or ""

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def welcome(self) -> Welcome:
        return self.query_one(Welcome)

    @property
    def reading_region(self) -> Region:
        """The region of the transcript, or of the welcome in its place."""
        return (self.welcome if self.has_welcome else self.transcript).region

    def _place_notifications(self, _: Screen[object]) -> None:
        """Keep notifications inside the transcript, so that they cover nothing else."""
        region = self.reading_region
        # The last row may show the number of new lines.
        rows = region.height - 1 if self.has_room_for_notifications else 0
        for rack in self.query("ToastRack"):
            rack.styles.margin = (0, 0, self.size.height - region.bottom + 1, 0)
            rack.styles.width = region.width
            rack.styles.max_height = rows

    @property
    def has_room_for_notifications(self) -> bool:
        """False if a question or a long prompt takes nearly all rows."""
        return self.reading_region.height >= _LEAST_NOTIFICATION_ROWS

    @property
    def has_welcome(self) -> bool:
        """True until the first line or event."""
        return self.has_class("-welcome")

    def end_welcome(self) -> None:
        """Replace the welcome by the transcript for the rest of the session."""
        if self.has_welcome:
            self.remove_class("-welcome")
            self.say_what_enter_does()

    @property
    def steps(self) -> StepList:
        return self.query_one(StepList)

    @property
    def spec(self) -> SpecPanel:
        return self.query_one(SpecPanel)

    @property
    def proposal(self) -> ProposalPanel:
        return self.query_one(ProposalPanel)

    @property
    def bar(self) -> StatusLine:
        return self.query_one(StatusLine)

    @property
    def activity(self) -> ActivityBar:
        return self.query_one(ActivityBar)

    @property
    def agent(self) -> Agent | None:
        return self.session.agent if self.session is not None else None

    def _complete(self, line: str) -> list[Completion]:
        # late: the first screen shows sooner
        from cdd_agent.commands.completing import complete  # noqa: PLC0415

        return complete(self.session, line, self.prompt.offer_again)

    def show_opening(self, notice: Notice) -> None:
        """Show a notice during the opening, both in the welcome and in the
        transcript.
        """
        for text, tone in lines_of(notice):
            if self.has_welcome:
                self.welcome.add_note(text)
            self.transcript.add(BLOCKS[tone], text)

    def show(self, event: Event) -> None:
        if isinstance(event, ApprovalChanged):
            self.show_approval()
            if not self._is_at_work:
                return
        self.end_welcome()
        show_on_home(event, self._display)

    def show_review(self, text: str, diff: str, answer: str) -> None:
        self.transcript.settle()
        self.transcript.add_foldable(
            review_block(text, diff, answer, self.transcript.diff_layout)
        )

    @property
    def has_room_for_panel(self) -> bool:
        # The screen has no class for its width at first.
        return self.app.size.width >= BESIDE

    def say_what_to_type(self) -> None:
        text = _AT_WORK if self.lines_wait else _IN_CHAT
        if self.agent is not None and not self.lines_wait:
            text = (
                self.steps.has_failed and self.agent.after_a_failure
            ) or self.agent.placeholder
        room = self.app.size.width - _BESIDE_PROMPT
        self.prompt.area.placeholder = fit_hint(text, room)
        self.say_what_enter_does()

    def on_resize(self) -> None:
        if not self.is_asking:
            self.say_what_to_type()

    @property
    def takes_blank(self) -> bool:
        """True if the active agent waits for Enter in an empty prompt."""
        return self.agent is not None and not self.lines_wait and not self.is_asking

    def read_line(self, line: str) -> Meaning | None:
        if self.session is None:
            return read_command(line)
        return read_line(self.session, line)

    def _note_effect(self) -> None:
        prompt = self.prompt
        line = prompt.text
        # Until the session is open, lines are queued.
        effect: object = self.read_line(line) or "queue"
        if self.is_asking or not (line.strip() or self.takes_blank):
            effect = None
        self.enter.show(line, effect, is_typed=prompt.is_typed)

    def press_enter_elsewhere(self, enter: Key) -> None:
        """Note an Enter on a screen above this one. It may close that screen."""
        self.enter.press_elsewhere(enter)
        self.welcome.press_elsewhere(enter)

    def _is_too_soon(self, enter: Key) -> bool:
        self._note_effect()
        return self.enter.is_too_soon(enter)

    @on(DescendantFocus)
    @on(DescendantBlur)
    @on(Prompt.DoingChanged)
    @on(Transcript.ChoiceChanged)
    @on(Welcome.HintChanged)
    @guarded
    def say_what_enter_does(self) -> None:
        self.welcome.note_prompt(self.prompt.text)
        self._note_effect()
        elsewhere = self.transcript.doing
        if self.steps.has_focus:
            elsewhere = "Enter: open the step · ↑↓: other steps · F2: fold the plan"
        elif isinstance(self.focused, FindInput):
            elsewhere = "Enter: next match · ↑: previous match · Esc: close"
        queued = ""
        line = self.prompt.line_to_send
        if line.strip() and (self.lines_wait or self.session is None):
            queued = self._hint_of_queue(line)
        self.activity.tell_meaning(
            self._hint_of_line(line), self.prompt.doing or elsewhere or queued
        )

    def _hint_of_line(self, line: str) -> str:
        """Return the effect of Enter on a line; empty for a message to chat."""
        if self.welcome.hint:
            return self.welcome.hint
        meaning = self.read_line(line)
        hint = meaning.hint if meaning is not None else ""
        hint = hint or self.prompt.about_text
        parts = [hint] if hint else []
        if self.prompt.is_suggesting:
            parts.append(_IN_SUGGESTION)
        elif self.prompt.has_choice:
            parts.append(_AT_A_COMMAND)
        elif self.prompt.offers:
            parts.append(_IN_LIST)
        elif not line.strip() and self.agent is not None:
            parts.append("F1: help")
        return BETWEEN.join(parts)

    def say_that_nothing_is_done(self, key: str) -> None:
        """Show until the next key that a key has no effect. An empty `key` removes the
        hint.
        """
        self.activity.say_once(
            f"{shown(key)} does nothing here · F1: all keys" if key else ""
        )

    def say_that_enter_was_ignored(self) -> None:
        hint = self._hint_of_line(self.prompt.line_to_send).partition(BETWEEN)[0]
        parts = ["Too soon, ignored", hint] if hint else ["Too soon, ignored"]
        self.activity.say_once(BETWEEN.join(parts))

    def _hint_of_queue(self, line: str) -> str:
        if self.session is None:
            return "Enter: send as soon as cdd has started"
        command = read_command(line, self.session)
        if command is not None and command.runs_beside:
            return command.hint
        meaning = self.read_line(line)
        if meaning is not None and meaning.is_refused_at_work:
            return "Enter does nothing while something runs · Esc: stop it"
        if meaning is not None and meaning.name == GUIDANCE:
            return "Enter: for the running step, or queue it · Esc: stop"
        return "Enter: queue it · Esc: stop what runs"

    def begin(self) -> None:
        self.end_welcome()
        self.lines_wait = self._is_at_work = True
        self.say_what_to_type()

    def settle(self) -> None:
        """Reset the screen after a turn, whatever its result."""
        self.lines_wait = self._is_at_work = False
        self._display.side.running.clear()
        self.transcript.settle()
        self.activity.rest()
        self._display.show_cost()
        self.bar.branch = current_branch(self._root) or ""
        self.show_steps()
        self.say_what_to_type()

    def show_approval(self) -> None:
        if self.session is not None:
            self.query_one(PromptFrame).show_mode(self.session.approval)
            self.query_one(ModeLabel).show_mode(self.session.approval)

    def show_steps(self) -> None:
        """Show the active agent's proposed plan, otherwise its steps."""
        events = self.agent.view() if self.agent is not None else ()
        proposal = None
        for event in events:
            if isinstance(event, PlanProposed):
                proposal = event
        self.proposal.show(proposal)
        if proposal is not None:
            self.steps.show(())
            return
        for event in events:
            if isinstance(event, PlanOpened):
                self.steps.show(event.steps, event.former_cost)
