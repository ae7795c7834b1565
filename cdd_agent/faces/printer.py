"""Prints events without a screen, as text or as one JSON object a line."""

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
from cdd_agent.text.sanitize import remove_escapes, sanitize_for_display
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
"""The sign and the style of each tone."""
_DIFF_STYLES = (
    ("+++", "bold"),
    ("---", "bold"),
    ("diff ", "bold"),
    ("@@", "cyan"),
    ("+", "green"),
    ("-", "red"),
)
_THOUGHT_SECONDS = 1.0
"""Seconds of thoughts that become one line of JSON."""
_RESTORED_EVENTS = 12
_OUTPUT_LINES = 40
"""Maximum lines of an output; the last ones are printed."""
_LONGEST_LINE = 10_000
"""Characters after which an unfinished line of output is printed."""
_LONGEST_OUTPUT = 100_000
"""Characters of a check's output that are kept for a failure."""
_TERMINAL_VARIABLES = frozenset({"FORCE_COLOR", "TTY_COMPATIBLE"})
"""Variables by which users declare the output a terminal to rich."""


class Printer(Protocol):
    @property
    def is_on_terminal(self) -> bool: ...

    def show(self, event: Event) -> None: ...

    def close(self) -> None: ...


class JsonPrinter:
    """Prints one event a line on standard output, unbuffered. Thoughts within a second
    are joined.
    """

    is_on_terminal = False

    def __init__(self) -> None:
        self._thoughts: list[ThinkingDelta] = []

    def show(self, event: Event) -> None:
        if not isinstance(event, ThinkingDelta):
            self._print_thoughts()
            self._print_event(event)
            return
        if self._thoughts:
            first = self._thoughts[0]
            is_late = event.seconds - first.seconds >= _THOUGHT_SECONDS
            if is_late or event.step != first.step:
                self._print_thoughts()
        self._thoughts.append(event)

    def _print_thoughts(self) -> None:
        thoughts, self._thoughts = self._thoughts, []
        if thoughts:
            text = "".join(thought.text for thought in thoughts)
            self._print_event(replace(thoughts[-1], text=text))

    def _print_event(self, event: Event) -> None:
        if isinstance(event, Notice):
            event = replace(event, text=Face.TERMINAL.name_commands(event.text))
        sys.stdout.write(json.dumps(to_json(event), ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def close(self) -> None:
        self._print_thoughts()
        sys.stdout.flush()


class TextPrinter:
    """Prints events as lines. On a terminal, one live line shows the progress of a
    reply.
    """

    face = Face.TERMINAL

    def __init__(self, *, to_stderr: bool = False, is_live: bool = True) -> None:
        """`is_live`: on a terminal, show a live line."""
        self._to_stderr = to_stderr
        self._live = None
        if is_live and self.is_on_terminal:
            self._live = self._console.status("")
        self._reply: list[str] = []
        self._delay = 0.0
        """Remaining seconds of the announced wait. A longer delay is a new wait."""
        self._output = ""
        """The end of the running check's output."""
        self._unfinished = ""
        """The last line of an output, still without a line end."""
        self._side = SideSteps()

    @cached_property
    def is_on_terminal(self) -> bool:
        has_variable = not _TERMINAL_VARIABLES.isdisjoint(os.environ)
        may_be_one = self._file.isatty() or has_variable
        return may_be_one and self._console.is_terminal

    @property
    def _file(self) -> TextIO:
        return sys.stderr if self._to_stderr else sys.stdout

    @cached_property
    def _console(self) -> Console:
        return _open_console(to_stderr=self._to_stderr)

    def close(self) -> None:
        self._stop_waiting()

    def show(self, event: Event) -> None:
        if not self._side.holds_back(event):
            self._print_event(event)

    @singledispatchmethod
    def _print_event(self, event: Event) -> None:
        self._stop_waiting()
        self._describe(event)

    @_print_event.register
    def _print_start_of_reply(self, event: ReplyStarted) -> None:
        self._reply = []
        if event.saved:
            self._print_line("using the saved reply", Tone.QUIET)
            self._wait("Using the saved reply")
        else:
            self._print_line(f"asking {event.model}", Tone.QUIET)
            self._wait(f"Waiting for {event.model}")

    @_print_event.register
    def _print_thinking(self, event: ThinkingDelta) -> None:
        del event
        self._wait("Thinking …")

    @_print_event.register
    def _print_progress_of_reply(self, event: ReplyDelta) -> None:
        self._reply.append(event.text)
        count = sum(len(piece) for piece in self._reply)
        self._wait(f"Receiving the reply: {count:,} characters")

    @_print_event.register
    def _print_delay(self, event: ReplyDelayed) -> None:
        text = f"Asking again in {event.seconds:.0f} s: {event.reason}"
        # One line a wait, not one a second.
        if self._live is None and event.seconds > self._delay:
            self._print_line(text, Tone.QUIET)
        self._delay = event.seconds - 1
        self._wait(text)

    @_print_event.register
    def _print_restart_of_reply(self, event: ReplyRestarted) -> None:
        self._reply = []
        if not event.was_thought:
            self._print_line("asking again", Tone.QUIET)

    @_print_event.register
    def _print_usage(self, event: ReplyFinished) -> None:
        self._stop_waiting()
        usage = event.usage
        if not usage:
            return
        about = "~" if usage.estimated else ""
        text = f"reply: {about}{usage.prompt_tokens:,} tokens in"
        if usage.cached_tokens:
            text += f" ({usage.cached_tokens:,} cached)"
        text += f", {about}{usage.completion_tokens:,} out"
        if usage.usd:
            text += f", {about}${usage.usd:.4f}"
        self._print_line(text, Tone.QUIET)

    @_print_event.register
    def _print_start_of_baseline(self, event: BaselineStarted) -> None:
        self._wait(f"Running {event.command} before the first change")

    @_print_event.register
    def _print_start_of_check(self, event: TestsStarted) -> None:
        self._output = ""
        self._wait(f"Running {event.command}")

    @_print_event.register
    def _keep_output_of_check(self, event: CommandOutput) -> None:
        self._output = (self._output + event.text)[-_LONGEST_OUTPUT:]

    @_print_event.register
    def _print_end_of_check(self, event: TestsFinished) -> None:
        self._stop_waiting()
        # Without a verification, only the output explains the failure.
        if event.verification is None:
            for line in self._output.splitlines()[-_OUTPUT_LINES:]:
                self._print_line(f"│ {line}", Tone.QUIET)
        self._describe(event)

    @_print_event.register
    def _print_output_of_action(self, event: ActionOutput) -> None:
        self._print_output(event.text)

    @_print_event.register
    def _print_end_of_action(self, event: ActionFinished) -> None:
        self._print_output("", ended=True)
        self._describe(event)

    @_print_event.register
    def _print_end_of_step(self, event: StepFinished) -> None:
        has_files = event.files_created or event.files_modified or event.files_deleted
        if event.status is StepStatus.COMPLETED and not has_files:
            # The step has no other result than its reply.
            self._print_line("".join(self._reply).strip(), Tone.PLAIN)
        else:
            self._stop_waiting()
        self._describe(event)

    @_print_event.register
    def _print_tool(self, event: ToolStarted) -> None:
        self._wait(tool_use(event))

    @_print_event.register
    def _print_checkpoint(self, event: CheckpointStarted) -> None:
        del event
        self._wait("Taking a checkpoint")

    @_print_event.register
    def _print_diff(self, event: StepDiff | OutsideDiff) -> None:
        """Colour a diff on a terminal. In a file or a pipe it stays unchanged, so that
        `git apply` accepts it.
        """
        if not event.diff:
            self._stop_waiting()
            self._describe(event)
            return
        console = _open_console()
        if not console.is_terminal:
            sys.stdout.write(event.diff)
            return
        for line in event.diff.splitlines():
            _print_styled(console, sanitize_for_display(line), _style_of_diff(line))

    @_print_event.register
    def _ignore(self, event: AgentChanged) -> None:
        """The agent's own events follow."""

    def _print_output(self, text: str, *, ended: bool = False) -> None:
        """Print output in whole lines, except that a very long line is printed
        early.
        """
        *lines, rest = (self._unfinished + text).split("\n")
        if rest and (ended or len(rest) > _LONGEST_LINE):
            lines.append(rest)
            rest = ""
        self._unfinished = rest
        if lines:
            text = "\n".join(f"│ {remove_escapes(line)}" for line in lines)
            self._print_line(text, Tone.QUIET)

    def _describe(self, event: Event) -> None:
        prefix = self._side.prefix(event)
        for text, tone in describe(event, self.face):
            self._print_line(prefix + text, tone)

    def _print_line(self, text: str, tone: Tone) -> None:
        glyph, style = TONES[tone]
        shown_text = glyph + "\n".join(map(sanitize_for_display, text.split("\n")))
        if self.is_on_terminal:
            _print_styled(self._console, shown_text, style)
        else:
            # Output can be long, and plain text needs no layout.
            self._file.write(shown_text + "\n")

    def _wait(self, text: str) -> None:
        if self._live:
            self._live.update(Text(sanitize_for_display(text)))
            self._live.start()

    def _stop_waiting(self) -> None:
        if self._live:
            self._live.stop()


class PlainPrinter(TextPrinter):
    """Prints events for a user who types in between: replies and output in full, and no
    line is redrawn.
    """

    face = Face.SHELL

    def __init__(self) -> None:
        super().__init__(is_live=False)
        self._line_of_reply = ""

    def show(self, event: Event) -> None:
        if self._side.holds_back(event):
            return
        if is_beside_the_turn():
            # An unfinished line of the reply stays buffered, and is printed later.
            self._print_event(event)
        else:
            self._print_in_full(event)

    @singledispatchmethod
    def _print_in_full(self, event: Event) -> None:
        self._end_reply()
        self._print_event(event)

    @_print_in_full.register
    def _print_reply(self, event: ReplyDelta) -> None:
        *lines, self._line_of_reply = (self._line_of_reply + event.text).split("\n")
        for line in lines:
            self._print_line(line, Tone.PLAIN)

    @_print_in_full.register
    def _print_command_of_check(self, event: BaselineStarted | TestsStarted) -> None:
        self._print_event(event)
        self._print_line(f"running {event.command}", Tone.QUIET)

    @_print_in_full.register
    def _print_output_of_command(self, event: CommandOutput) -> None:
        if event.step is None:
            self._print_output(event.text)
        else:
            self._end_reply()
            self._print_event(event)

    @_print_in_full.register
    def _print_end_of_command(self, event: OwnCommandFinished) -> None:
        self._print_output("", ended=True)
        self._describe(event)

    @_print_in_full.register
    def _skip_answer(self, event: PersonAnswered) -> None:
        """The user has just typed it."""

    @_print_in_full.register
    def _print_result_of_step(self, event: StepFinished) -> None:
        self._describe(event)

    @_print_in_full.register
    def _print_restored_session(self, event: SessionRestored) -> None:
        events = [earlier for earlier in event.events if _has_words(earlier)]
        last = events[-_RESTORED_EVENTS:]
        more = ""
        if event.left_out or len(last) < len(events):
            more = " (the last part)"
        self._print_line(f"Earlier in {event.key}{more}:", Tone.QUIET)
        for earlier in last:
            self._print_restored_event(earlier)

    def _print_restored_event(self, event: Event) -> None:
        if isinstance(event, PersonSaid):
            self._print_line(f"> {event.text}", Tone.PLAIN)
        elif isinstance(event, ReplyDelta | CommandOutput):
            lines = event.text.strip().splitlines()[-_OUTPUT_LINES:]
            self._print_line("\n".join(f"│ {line}" for line in lines), Tone.QUIET)
        else:
            self._describe(event)

    def _end_reply(self) -> None:
        rest, self._line_of_reply = self._line_of_reply, ""
        if rest.strip():
            self._print_line(rest, Tone.PLAIN)

    def say(self, text: str) -> None:
        """Print text that is not an event."""
        self._print_line(self.face.name_commands(text), Tone.PLAIN)

    def prompt(self, text: str) -> None:
        """Print the prompt in front of the user's line."""
        text = sanitize_for_display(text)
        if self.is_on_terminal:
            _print_styled(self._console, text, "bold", end="")
        else:
            self._file.write(text)
        self._file.flush()


def _has_words(event: Event) -> bool:
    """True if an event of an earlier session is printed. Diffs are not: `/diff` prints
    them.
    """
    if isinstance(event, StepDiff | OutsideDiff):
        return False
    is_quoted = isinstance(event, PersonSaid | ReplyDelta | CommandOutput)
    return is_quoted or bool(describe(event))


def _style_of_diff(line: str) -> str:
    for beginning, style in _DIFF_STYLES:
        if line.startswith(beginning):
            return style
    return ""


def _open_console(*, to_stderr: bool = False) -> Console:
    return Console(
        stderr=to_stderr, highlight=False, markup=False, emoji=False, soft_wrap=True
    )


def _print_styled(console: Console, text: str, style: str, end: str = "\n") -> None:
    console.print(Text(text, style), end=end)
