"""The shell: shows events, hands lines to the session. It decides nothing."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import ClassVar

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from cdd_agent.commands import builtin  # noqa: F401  # fills the registry
from cdd_agent.commands.registry import complete, handle
from cdd_agent.errors import CddError
from cdd_agent.events import (
    AgentChanged,
    Answer,
    ChangesProposed,
    Cleared,
    CommandOutput,
    Event,
    ExitRequested,
    Notice,
    PlanOpened,
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    StepFinished,
    StepStarted,
    TestsStarted,
    TicketsListed,
    Tone,
)
from cdd_agent.execution.frontend import Frontend
from cdd_agent.session import Session
from cdd_agent.tickets.state import StepStatus
from cdd_agent.tui.history import History
from cdd_agent.tui.widgets.bars import ActivityBar, TitleBar
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.tui.widgets.question import Question
from cdd_agent.tui.widgets.steps import StepList
from cdd_agent.tui.widgets.transcript import BlockKind, Transcript
from cdd_agent.wording import described
from cdd_agent.workspace.git import current_branch

_KEYS = "Enter sends · Tab completes · ↑ earlier lines · Ctrl+D leaves"
_PLACEHOLDERS = {"": "/exec SLUG, /help ...", "executor": "Enter runs the next step; status, skip, exit ..."}
_BLOCKS = {
    Tone.PLAIN: BlockKind.NOTE,
    Tone.QUIET: BlockKind.OUTPUT,
    Tone.HEADING: BlockKind.HEADING,
    Tone.GOOD: BlockKind.GOOD,
    Tone.WARNING: BlockKind.WARNING,
    Tone.ERROR: BlockKind.ERROR,
}


class Shell(App[None]):
    """Transcript, steps, prompt. One turn runs at a time; Escape or Ctrl+C stops it."""

    TITLE = "cdd"
    CSS_PATH = "shell.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012  # declared so by Textual
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "stop", "Stop", show=False, priority=True),
        Binding("ctrl+d", "leave", "Leave", show=False, priority=True),
        Binding("pageup,shift+pageup", "scroll_transcript('page_up')", show=False),
        Binding("pagedown,shift+pagedown", "scroll_transcript('page_down')", show=False),
    ]

    def __init__(self, open_session: Callable[[Frontend], Session], opening: tuple[Notice, ...], first: str) -> None:
        super().__init__()
        self.session = open_session(self)
        self._opening = opening
        self._first = first

    def compose(self) -> ComposeResult:
        project = self.session.project
        yield TitleBar(project.root.name or str(project.root), project.config.model or "no model")
        with Horizontal(id="main"):
            yield Transcript()
            yield StepList()
        yield Vertical(id="questions")
        yield Prompt(self._complete, History(project.root / ".cdd" / "runs" / "history.jsonl"))
        yield ActivityBar(_KEYS)

    def on_mount(self) -> None:
        self.query_one(Prompt).area.focus()
        self.query_one(Prompt).area.placeholder = _PLACEHOLDERS[""]
        self._bar.branch = current_branch(self.session.project.root) or ""
        for notice in self._opening:
            self.show(notice)
        for name in ("SIGTERM", "SIGHUP"):
            with suppress(AttributeError, NotImplementedError):  # Windows has neither such handlers nor a SIGHUP
                asyncio.get_running_loop().add_signal_handler(getattr(signal, name), self.exit)
        if self._first:
            self.on_prompt_submitted(Prompt.Submitted(self._first))

    async def on_unmount(self) -> None:
        self.session.leave()

    async def approve(self, changes: ChangesProposed) -> bool:
        """The `Frontend` port."""
        lines = [f"create {path}" for path in changes.created] + [f"change {path}" for path in changes.modified]
        question = Question(f"Step {changes.step} would " + ", ".join(lines) + ". Write it?")
        await self.query_one("#questions").mount(question)
        try:
            return await question.answer()
        finally:
            self.query_one(Prompt).area.focus()

    def on_prompt_submitted(self, event: Prompt.Submitted) -> None:
        if self._turn_is_running:
            self.notify("A step is running. Esc stops it.", timeout=3)
            return
        prompt = self.query_one(Prompt)
        prompt.accepted(event.line)
        if event.line.strip():
            self._transcript.add(BlockKind.USER, event.line)
        self.take_turn(event.line)

    @work(exclusive=True, group="turn", exit_on_error=True)
    async def take_turn(self, line: str) -> None:
        """One line, carried out to its end, shown as it happens."""
        try:
            async with aclosing(handle(self.session, line)) as events:
                async for event in events:
                    self.show(event)
        except CddError as error:
            self.show(Notice(error.message, Tone.ERROR))
            if error.hint:
                self.show(Notice(error.hint))
        except asyncio.CancelledError:
            if self.is_running:
                self.show(Notice("Stopped. What was not finished left no trace; `continue` goes on.", Tone.WARNING))
            raise
        finally:
            if self.is_running:
                self._settle()

    def show(self, event: Event) -> None:
        """One event, on every part of the screen that it concerns."""
        transcript, activity = self._transcript, self.query_one(ActivityBar)
        match event:
            case ReplyStarted(saved=saved, model=model):
                activity.busy("Using the saved reply" if saved else f"Waiting for {model}")
            case ReplyDelta(text=text):
                transcript.write(text)
            case ReplyFinished():
                transcript.settle()
            case TestsStarted(command=command):
                transcript.begin(BlockKind.OUTPUT)
                activity.busy(f"Running {command}")
            case CommandOutput(text=text):
                transcript.write(text)
            case Answer(text=text):
                transcript.add(BlockKind.MARKDOWN, text)
            case AgentChanged(agent=agent, ticket_slug=slug):
                self._bar.agent = f"{agent} · {slug}" if agent else "chat"
                self.query_one(Prompt).area.placeholder = _PLACEHOLDERS[agent or ""]
                if agent:
                    self.query_one(StepList).show(())
            case PlanOpened() if self._is_new_here(event):
                self.query_one(StepList).show(event.steps)
                transcript.add(BlockKind.HEADING, f"{event.ticket_slug}: {event.title}")
            case Cleared():
                transcript.clear()
            case ExitRequested():
                self.exit()
            case _:
                self._describe(event)

    def _is_new_here(self, event: PlanOpened) -> bool:
        """The active agent's plan, not yet in the list of steps; otherwise the transcript shows it in full."""
        agent = self.session.agent
        return agent is not None and agent.ticket_slug == event.ticket_slug and not self.query_one(StepList).display

    def _describe(self, event: Event) -> None:
        self._transcript.settle()
        steps = self.query_one(StepList)
        match event:
            case StepStarted(step=number):
                steps.mark(number, StepStatus.IN_PROGRESS)
                self.query_one(ActivityBar).busy(f"Step {number}: {event.title}")
            case StepFinished(step=number, status=status, verification=verification):
                steps.mark(number, status, verification)
            case _:
                pass
        for text, tone in _lines(event):
            self._transcript.add(_BLOCKS[tone], text)

    def _settle(self) -> None:
        """After a turn, however it ended: nothing is live, and the steps show what is saved."""
        self._transcript.settle()
        self.query_one(ActivityBar).rest()
        self._bar.branch = current_branch(self.session.project.root) or ""
        if self.session.agent is not None:
            self.query_one(StepList).show(self.session.agent.view().steps)

    def action_stop(self) -> None:
        """Ctrl+C: copy what is selected, else stop what runs, else empty the prompt."""
        prompt = self.query_one(Prompt)
        if selected := self.screen.get_selected_text():
            self.copy_to_clipboard(selected)
            self.screen.clear_selection()
        elif self._turn_is_running:
            self.workers.cancel_group(self, "turn")
        elif prompt.text:
            prompt.replace("")
        else:
            self.notify("Ctrl+D or /exit leaves.", timeout=3)

    def on_prompt_stopped(self) -> None:
        if self._turn_is_running:
            self.workers.cancel_group(self, "turn")

    def action_leave(self) -> None:
        self.exit()

    def action_scroll_transcript(self, how: str) -> None:
        getattr(self._transcript, f"scroll_{how}")(animate=False)

    def _complete(self, line: str) -> list[str]:
        return complete(self.session, line)

    @property
    def _transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def _bar(self) -> TitleBar:
        return self.query_one(TitleBar)

    @property
    def _turn_is_running(self) -> bool:
        return any(worker.group == "turn" and not worker.is_finished for worker in self.workers)


def _lines(event: Event) -> list[tuple[str, Tone]]:
    """What the transcript says; lists are one block."""
    if isinstance(event, TicketsListed | PlanOpened):
        return [("\n".join(text for text, _ in described(event)), Tone.PLAIN)]
    return described(event)
