"""Events without a screen: readable lines for people, or one JSON object a line for
scripts.

rich is imported for a terminal only: lines into a file or a pipe need no more than
writing.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cached_property, singledispatchmethod
from typing import Protocol, TextIO

from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from cdd_agent.engine.side_events import SideSteps
from cdd_agent.events.action_events import ActionFinished, ActionOutput
from cdd_agent.events.dialogue_events import (
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyRestarted,
    ReplyStarted,
    ThinkingDelta,
    ToolStarted,
)
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.outside_events import OutsideDiff
from cdd_agent.events.question_events import PersonAnswered
from cdd_agent.events.run_events import BaselineStarted
from cdd_agent.events.shell_events import AgentChanged, OwnCommandFinished, PersonSaid
from cdd_agent.events.step_events import (
    CheckpointStarted,
    CommandOutput,
    StepDiff,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event, SessionRestored, is_beside_the_turn, to_json
from cdd_agent.llm.port import Usage
from cdd_agent.sanitize import remove_escapes, sanitize_for_display
from cdd_agent.tickets.status import StepStatus
from cdd_agent.wording.describe import describe
from cdd_agent.wording.dialogue_words import tool_use
from cdd_agent.wording.faces import Face

TONES = {
    Tone.PLAIN: ("", ""),
    Tone.QUIET: ("", "dim"),
    Tone.HEADING: ("", "bold"),
    Tone.GOOD: ("✓ ", "green"),
    Tone.WARNING: ("! ", "yellow"),
    Tone.ERROR: ("✗ ", "red"),
}
_DIFFTONES = {
    "+++": "bold",
    "---": "bold",
    "diff ": "bold",
    "@@": "cyan",
    "+": "green",
    "-": "red",
}
_TOGETHER = 1.0
"""Seconds of thoughts that are one line of JSON."""
_RESTORED = 12
"""Events of an earlier session."""
_OUTPUT_LINES = 40
_LONGEST_LINE = 10_000
_KEPT = 100_000
"""Characters of a check's output, of which the last lines are shown when it fails."""
_SAID_TO_BE_TERMINALS = frozenset({"FORCE_COLOR", "TTY_COMPATIBLE"})
"""Variables by which the user declares that something is a terminal, or is none.
"""


class Printer(Protocol):
    """A consumer of events."""

    @property
    def is_seen(self) -> bool:
        """True if the user reads at a terminal."""
        ...

    def show(self, event: Event) -> None: ...

    def close(self) -> None: ...


class JsonPrinter:
    """One event a line on standard output, each as soon as it happens; thoughts by the
    second, not by the piece.
    """

    is_seen = False

    def __init__(self) -> None:
        self._thoughts: list[ThinkingDelta] = []
        """Thoughts that wait for their second to end."""

    def show(self, event: Event) -> None:
        if not isinstance(event, ThinkingDelta):
            self._write_thoughts()
            self._write(event)
            return
        if self._thoughts and (
            event.step != self._thoughts[0].step
            or event.seconds - self._thoughts[0].seconds >= _TOGETHER
        ):
            self._write_thoughts()
        self._thoughts.append(event)

    def _write_thoughts(self) -> None:
        thoughts, self._thoughts = self._thoughts, []
        if thoughts:
            self._write(
                replace(
                    thoughts[-1], text="".join(thought.text for thought in thoughts)
                )
            )

    def _write(self, event: Event) -> None:
        if isinstance(event, Notice):
            event = replace(event, text=Face.TERMINAL.name_commands(event.text))
        sys.stdout.write(json.dumps(to_json(event), ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def close(self) -> None:
        self._write_thoughts()
        sys.stdout.flush()


class TextPrinter:
    """Lines for people on standard output. On a terminal, the wait for a reply is shown
    as it grows.
    """

    face = Face.TERMINAL

    def __init__(self, *, to_stderr: bool = False, is_live: bool = True) -> None:
        """`is_live`: on a terminal, one line shows what is waited for."""
        self._to_stderr = to_stderr
        self._live = self._console.status("") if is_live and self.is_seen else None
        self._reply: list[str] = []
        self._delay = 0.0
        """Seconds that the wait which was printed last can still take."""
        self._output = ""
        self._unfinished = ""
        self._side = SideSteps()

    @cached_property
    def is_seen(self) -> bool:
        is_one = self._file.isatty() or not _SAID_TO_BE_TERMINALS.isdisjoint(os.environ)
        return is_one and self._console.is_terminal

    @property
    def _file(self) -> TextIO:
        return sys.stderr if self._to_stderr else sys.stdout

    @cached_property
    def _console(self) -> Console:
        return _console(to_stderr=self._to_stderr)

    def close(self) -> None:
        if self._live:
            self._live.stop()

    def show(self, event: Event) -> None:
        if not self._side.holds_back(event):
            self._print(event)

    @singledispatchmethod
    def _print(self, event: Event) -> None:
        """Print an event: in words, unless its type has a method of its own."""
        self._rest()
        self._describe(event)

    @_print.register
    def _print_start_of_reply(self, event: ReplyStarted) -> None:
        self._reply = []
        if event.saved:
            self._line("using the saved reply", Tone.QUIET)
            self._wait("Using the saved reply")
        else:
            self._line(f"asking {event.model}", Tone.QUIET)
            self._wait(f"Waiting for {event.model}")

    @_print.register
    def _print_thinking(self, event: ThinkingDelta) -> None:
        del event
        self._wait("Thinking …")

    @_print.register
    def _print_piece_of_reply(self, event: ReplyDelta) -> None:
        self._reply.append(event.text)
        count = sum(map(len, self._reply))
        self._wait(f"Receiving the reply: {count:,} characters")

    @_print.register
    def _print_delay(self, event: ReplyDelayed) -> None:
        text = f"Asking again in {event.seconds:.0f} s: {event.reason}"
        # a new wait; the seconds of one wait would be many lines
        if self._live is None and event.seconds > self._delay:
            self._line(text, Tone.QUIET)
        self._delay = event.seconds - 1
        self._wait(text)

    @_print.register
    def _print_restart(self, event: ReplyRestarted) -> None:
        self._reply = []
        if not event.was_thought:
            self._line("asking again", Tone.QUIET)

    @_print.register
    def _print_end_of_reply(self, event: ReplyFinished) -> None:
        self._rest()
        if event.usage:
            self._line(_usage_words(event.usage), Tone.QUIET)

    @_print.register
    def _print_start_of_baseline(self, event: BaselineStarted) -> None:
        self._wait(f"Running {event.command} before the first change")

    @_print.register
    def _print_start_of_check(self, event: TestsStarted) -> None:
        self._output = ""
        self._wait(f"Running {event.command}")

    @_print.register
    def _print_output(self, event: CommandOutput) -> None:
        self._output = (self._output + event.text)[-_KEPT:]

    @_print.register
    def _print_output_of_action(self, event: ActionOutput) -> None:
        self._stream(event.text)

    @_print.register
    def _print_end_of_action(self, event: ActionFinished) -> None:
        self._stream("", ended=True)
        self._describe(event)

    @_print.register
    def _print_end_of_check(self, event: TestsFinished) -> None:
        self._rest()
        if event.verification is None:
            for line in self._output.splitlines()[-_OUTPUT_LINES:]:
                self._line(f"│ {line}", Tone.QUIET)
        self._describe(event)

    @_print.register
    def _print_end_of_step(self, event: StepFinished) -> None:
        has_files = event.files_created or event.files_modified or event.files_deleted
        if event.status is StepStatus.COMPLETED and not has_files:
            # an answer in words is all there is
            self._line("".join(self._reply).strip(), Tone.PLAIN)
        else:
            self._rest()
        self._describe(event)

    @_print.register
    def _print_start_of_tool(self, event: ToolStarted) -> None:
        self._wait(tool_use(event))

    @_print.register
    def _print_start_of_checkpoint(self, event: CheckpointStarted) -> None:
        del event
        self._wait("Taking a checkpoint")

    @_print.register
    def _print_diff(self, event: StepDiff | OutsideDiff) -> None:
        if event.diff:
            self._diff(event.diff)
        else:
            self._rest()
            self._describe(event)

    @_print.register
    def _ignore_agent(self, event: AgentChanged) -> None:
        """The prompt shows the agent."""

    def _stream(self, text: str, *, ended: bool = False) -> None:
        """Output as it comes, in whole lines; one that has no end yet waits for it,
        unless it is very long.
        """
        *lines, rest = (self._unfinished + text).split("\n")
        if rest and (ended or len(rest) > _LONGEST_LINE):
            lines, rest = [*lines, rest], ""
        self._unfinished = rest
        if lines:
            self._line(
                "\n".join(f"│ {remove_escapes(line)}" for line in lines), Tone.QUIET
            )

    def _diff(self, diff: str) -> None:
        """Print a diff: in colours at a terminal, else unchanged, so that it can be
        applied.
        """
        console = _console()
        if not console.is_terminal:
            sys.stdout.write(diff)
            return
        for line in diff.splitlines():
            style = next(
                (
                    style
                    for start, style in _DIFFTONES.items()
                    if line.startswith(start)
                ),
                "",
            )
            _print(console, sanitize_for_display(line), style)

    def _describe(self, event: Event) -> None:
        prefix = self._side.prefix(event)
        for text, tone in describe(event, self.face):
            self._line(prefix + text, tone)

    def _line(self, text: str, tone: Tone) -> None:
        glyph, style = TONES[tone]
        shown = glyph + "\n".join(map(sanitize_for_display, text.split("\n")))
        if self.is_seen:
            _print(self._console, shown, style)
        else:  # plain text needs no laying out, and output can be long
            self._file.write(shown + "\n")

    def _wait(self, text: str) -> None:
        if self._live:
            self._live.update(Text(sanitize_for_display(text)))
            self._live.start()

    def _rest(self) -> None:
        if self._live:
            self._live.stop()


def _usage_words(usage: Usage) -> str:
    """Return the tokens and the price of a reply."""
    about = "~" if usage.estimated else ""
    words = f"reply: {about}{usage.prompt_tokens:,} tokens in"
    if usage.cached_tokens:
        words += f" ({usage.cached_tokens:,} cached)"
    words += f", {about}{usage.completion_tokens:,} out"
    if usage.usd:
        words += f", {about}${usage.usd:.4f}"
    return words


def _console(*, to_stderr: bool = False) -> Console:
    return Console(
        stderr=to_stderr, highlight=False, markup=False, emoji=False, soft_wrap=True
    )


def _print(console: Console, text: str, style: str = "", end: str = "\n") -> None:
    console.print(Text(text, style), end=end)


class PlainPrinter(TextPrinter):
    """Lines for a user who types in between: replies and output in full, each line
    once, none of them redrawn.
    """

    face = Face.SHELL

    def __init__(self) -> None:
        super().__init__(is_live=False)
        self._begun = ""
        """A line of a reply that has no end yet."""

    def show(self, event: Event) -> None:
        match event:
            case _ if self._side.holds_back(event):
                pass
            case _ if is_beside_the_turn():
                super().show(event)  # a line that has no end yet stands whole below it
            case ReplyDelta(text=text):
                *lines, self._begun = (self._begun + text).split("\n")
                for line in lines:
                    self._line(line, Tone.PLAIN)
            case ReplyFinished() | ReplyRestarted():
                self._end_reply()
                super().show(event)
            case BaselineStarted(command=command) | TestsStarted(command=command):
                super().show(event)
                self._line(f"running {command}", Tone.QUIET)
            case CommandOutput(step=None, text=text):
                self._stream(text)
            case OwnCommandFinished():
                self._stream("", ended=True)
                self._describe(event)
            case PersonAnswered():
                pass  # they have just typed it
            case SessionRestored():
                self._restore(event)
            case StepFinished():
                self._describe(event)
            case _:
                self._end_reply()
                super().show(event)

    def _restore(self, session: SessionRestored) -> None:
        """Print the last events of an earlier session."""
        in_full = PersonSaid, ReplyDelta, CommandOutput
        entries = [
            e
            for e in session.events
            if isinstance(e, in_full)
            or (not isinstance(e, StepDiff | OutsideDiff) and describe(e))
        ]
        shown = entries[-_RESTORED:]  # `/diff` shows what was changed
        more = (
            " (the last part)" if session.left_out or len(shown) < len(entries) else ""
        )
        self._line(f"Earlier in {session.key}{more}:", Tone.QUIET)
        for event in shown:
            match event:
                case PersonSaid(text=text):
                    self._line(f"> {text}", Tone.PLAIN)
                case ReplyDelta(text=text) | CommandOutput(text=text):
                    lines = text.strip().splitlines()
                    self._line(
                        "\n".join(f"│ {line}" for line in lines[-_OUTPUT_LINES:]),
                        Tone.QUIET,
                    )
                case _:
                    self._describe(event)

    def _end_reply(self) -> None:
        rest, self._begun = self._begun, ""
        if rest.strip():
            self._line(rest, Tone.PLAIN)

    def say(self, text: str) -> None:
        """Print words that are no event."""
        self._line(self.face.name_commands(text), Tone.PLAIN)

    def prompt(self, text: str) -> None:
        """Show the words before the line that people type now."""
        if self.is_seen:
            _print(self._console, sanitize_for_display(text), "bold", end="")
        else:
            self._file.write(sanitize_for_display(text))
        self._file.flush()
