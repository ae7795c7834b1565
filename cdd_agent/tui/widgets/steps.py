"""The plan as a list of steps: where each one stands, what it took, what was seen of
it, what it waits for.

Drawn line by line, so that its length does not matter. Where there is room for all
titles in full, they are; otherwise each step has one row.
"""

from collections.abc import Hashable, Iterable
from typing import ClassVar

from msgspec.structs import asdict, replace
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import signs_of
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.wrapping import wrap
from cdd_agent.wording.step_signs import step_glyph, step_remark

_BAR = 10
"""Cells of the progress bar, where there is room."""
_TITLE = 0.55
"""The part of a row that a title gets at least, where it needs it."""


class StepList(GuardedWidget, ScrollView, can_focus=True):
    """Shows where the run is. The first line, which stays when the list scrolls, is the
    progress of the whole.

    With the focus, the arrows walk through the steps and Enter opens one.
    """

    FOCUS_ON_CLICK = False
    """Enter stays the prompt's after a click."""
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"steps--{status.value}" for status in StepStatus),
        "steps--remark",
        "steps--total",
        "steps--facts",
        "steps--cursor",
    }
    DEFAULT_CSS = """
    StepList {
        padding: 0 1; background: $surface; scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .steps--pending { color: $text-muted; }
        & > .steps--in_progress { color: $text-accent; text-style: bold; }
        & > .steps--completed { color: $text-success; }
        & > .steps--remark { color: $text-warning; }
        & > .steps--failed { color: $text-error; text-style: bold; }
        & > .steps--skipped { color: $text-warning; }
        & > .steps--total { text-style: bold; }
        & > .steps--facts { text-style: none; }
        & > .steps--cursor { text-style: reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "walk(-1)", "Step above", show=False),
        Binding("down", "walk(1)", "Step below", show=False),
        Binding("home", "walk(-1000000)", "First step", show=False),
        Binding("end", "walk(1000000)", "Last step", show=False),
        Binding("enter", "open", "Open the step", show=False),
    ]

    class StepChosen(Message):
        """The person wants to see all of a step."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__()
        self._steps: list[StepSummary] = []
        self._to_do: set[int] = set()
        """The numbers of the steps that are not over."""
        self._former_cost = self._total = NO_COST
        self._in_full: list[tuple[StepSummary, str]] = []
        """The rows of titles that are longer than one; empty where there is no room for
        them.
        """
        self._cursor: int | None = None
        self._opened = 0
        """How often a step was opened: Enter has its effect a moment later."""
        """The step that the person has walked to, by its place; None: the one that
        matters now.
        """
        self._is_folded = False
        self.display = False

    def keeps(self, key: str) -> bool:
        """Whether a key is the list's while it has the focus."""
        return key in ("up", "down", "home", "end", "enter")

    def seen(self) -> Hashable:
        return self._selected, self.display, self._opened

    def show(self, steps: Iterable[StepSummary], former_cost: Cost = NO_COST) -> None:
        """Show these steps, and the cost of the run with that of former ones; without
        steps the list is hidden.
        """
        self._steps, self._former_cost = list(steps), former_cost
        self._to_do = {step.number for step in self._steps if not step.status.is_over}
        self.display = bool(self._steps) and not self._is_folded
        self._add_up()
        if self._cursor is not None and self._cursor >= len(self._steps):
            self._cursor = None
        self._lay_out()
        self.refresh(layout=True)
        self._follow()

    def fold(self, *, is_folded: bool) -> None:
        """Make room for the transcript, or show the steps again."""
        self._is_folded = is_folded
        self.show(self._steps, self._former_cost)

    @property
    def has_steps(self) -> bool:
        """There is a plan, folded or not."""
        return bool(self._steps)

    @property
    def is_over(self) -> bool:
        """Nothing of the plan is left to do."""
        return not self._to_do

    @property
    def has_failed(self) -> bool:
        return any(step.status is StepStatus.FAILED for step in self._steps)

    @property
    def tally(self) -> StepTally:
        return StepTally.count(step.outcome for step in self._steps)

    def on_resize(self) -> None:
        self._lay_out()
        self._follow()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.follow()

    def follow(self) -> None:
        """Stay at the step that matters now."""
        self._cursor = None
        self.refresh()
        self._follow()

    def begin(self, event: StepStarted) -> None:
        self._change(
            event.step,
            status=StepStatus.IN_PROGRESS,
            attempts=event.attempt,
            evidence=None,
            seconds=None,
        )

    def finish(self, event: StepFinished) -> None:
        self._change(**asdict(event.summary))
        self._add_up()

    def spend(self, number: int, cost: Cost) -> None:
        """One more call was made for a step."""
        before = next(
            (step.cost for step in self._steps if step.number == number), NO_COST
        )
        self._change(number, cost=before + cost)
        self._add_up()

    def _add_up(self) -> None:
        self._total = sum((step.cost for step in self._steps), self._former_cost)

    def _change(self, number: int, **update: object) -> None:
        for index, step in enumerate(self._steps):
            if step.number == number:
                changed = replace(step, **update)
                self._steps[index] = changed
                (self._to_do.discard if changed.status.is_over else self._to_do.add)(
                    number
                )
        self._lay_out()
        self._follow()

    def action_walk(self, by: int) -> None:
        self.walk(by)

    def walk(self, by: int) -> int | None:
        """Go to the step so many places further on; its number. There may be no steps
        any more.
        """
        if not self._steps:
            return None
        self._cursor = min(max(self._selected + by, 0), len(self._steps) - 1)
        self.refresh()
        self._follow()
        return self._steps[self._cursor].number

    def action_open(self) -> None:
        if self._steps:
            self._opened += 1
            self.post_message(self.StepChosen(self._steps[self._selected].number))

    def on_click(self, event: events.Click) -> None:
        if (offset := event.get_content_offset(self)) is None or offset.y == 0:
            return
        row = offset.y + self.scroll_offset.y - 1
        shown = [step for step, _ in self._in_full] if self._in_full else self._steps
        if row < len(shown):
            self._cursor = self._steps.index(shown[row])
            self.refresh()
            self.action_open()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        del container, viewport, width
        return len(self._steps) + 1

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self._strip(
                [
                    Segment(
                        self._progress(), self.get_component_rich_style("steps--total")
                    )
                ]
            )
        row = y + self.scroll_offset.y
        if self._in_full and row <= len(self._in_full):
            step, text = self._in_full[row - 1]
            is_first = row == 1 or self._in_full[row - 2][0] is not step
        elif not self._in_full and row <= len(self._steps):
            step, is_first = self._steps[row - 1], True
            text = _sign(step) + _words(step)
        else:
            return Strip.blank(self.size.width, self.rich_style)
        return self._row(step, text, is_first=is_first)

    def _row(self, step: StepSummary, text: str, *, is_first: bool) -> Strip:
        look = "remark" if step_remark(step) else step.status.value
        style = self.get_component_rich_style(f"steps--{look}")
        if self.has_focus and self._steps[self._selected] is step:
            style += self.get_component_rich_style("steps--cursor", partial=True)
        room, facts = self._room, self._facts(step, text) if is_first else ""
        title = Strip([Segment(text, style)])
        left = room - (cell_len(facts) + 1 if facts else 0)
        if title.cell_length > left:
            title = Strip([*title.crop(0, max(left - 1, 0)), Segment("…", style)])
        title = title.adjust_cell_length(left, style)
        return self._strip(
            [*title, Segment(f" {facts}", style)] if facts else list(title), style
        )

    def _lay_out(self) -> None:
        self._in_full = []
        if len(self._steps) < self.size.height:
            rows = [(step, row) for step in self._steps for row in self._wrapped(step)]
            self._in_full = rows if len(rows) < self.size.height else []
        self.virtual_size = Size(self.size.width, len(self._in_full or self._steps) + 1)
        self.refresh()  # what was drawn at this size before it was known is out of date

    def _wrapped(self, step: StepSummary) -> list[str]:
        """The rows of a step, those below the first under its title."""
        sign, words = _sign(step), _words(step)
        hang, facts = " " * cell_len(sign), self._facts(step, sign + words)
        beside = cell_len(facts) + 1 if facts else 0
        rows = wrap(words, max(self._room - len(hang) - beside, 1), by_words=True)
        return [(hang if start else sign) + words[start:end] for start, end in rows]

    def _progress(self) -> str:
        """Return the steps that are over, a bar, the signs of those without passed
        tests, and the cost. Where there is little room, the cost goes, then the bar.
        """
        tally = self.tally
        counted, signs = f"Plan {tally.over}/{tally.total} ", signs_of(tally)
        if signs:
            signs = f" {signs}"
        room = self._room - cell_len(counted) - cell_len(signs)
        width = min(_BAR, max(room, 0))
        over, passed = 0, 0
        if tally.total:
            over = width * tally.over // tally.total
            passed = width * tally.passed // tally.total
        bar = "━" * passed + "╍" * (over - passed) + "╌" * (width - over)
        text, cost = f"{counted}{bar}{signs}", self._total.in_short()
        if cost and cell_len(text) + cell_len(cost) + 2 <= self._room:
            text += f"  {cost}"
        return text

    def _facts(self, step: StepSummary, text: str) -> str:
        """The facts beside the title, as many as there is room for: the money goes
        first.
        """
        facts, cost = self._known(step), step.cost.in_short()
        room = self._room
        for candidate in (" ".join(filter(None, (facts, cost))), facts):
            taken = cell_len(candidate)
            if cell_len(text) + taken + 1 <= room or taken <= room * (1 - _TITLE):
                return candidate
        return ""

    def _known(self, step: StepSummary) -> str:
        """In a few cells: what a step took, what was seen of its tests, how often it
        was tried; or its dependencies.
        """
        if step.status is StepStatus.PENDING:
            waits = [
                other.label
                for other in self._steps
                if other.number in step.depends_on and other.number in self._to_do
            ]
            if not waits:
                return ""
            return (
                "← all"
                if len(waits) > 2 and len(waits) == len(self._steps) - 1
                else f"← {_few(waits)}"
            )
        facts = (
            [_span(step.seconds)]
            if step.seconds is not None and step.status is not StepStatus.SKIPPED
            else []
        )
        if (seen := step.evidence) is not None and seen.passed is not None:
            facts += [f"{seen.passed}✓"]
            facts += [f"+{seen.fixed + seen.new}"] if seen.fixed + seen.new else []
            facts += [f"{seen.new_failures}✗"] if seen.new_failures else []
        facts += [f"↻{step.attempts}"] if step.attempts > 1 else []
        return " ".join(facts)

    @property
    def _room(self) -> int:
        """The cells of a row that are not behind the scrollbar."""
        return self.scrollable_content_region.width

    def _strip(self, segments: list[Segment], style: Style | None = None) -> Strip:
        strip = Strip(segments)
        if strip.cell_length > self._room:
            strip = strip.crop(0, self._room)
        return strip.adjust_cell_length(self._room, style).apply_style(
            self.rich_style + (style or Style())
        )

    def _follow(self) -> None:
        """Keep the step that matters now in view, once it is known how much of the list
        is.
        """
        self.call_after_refresh(self._show_selected)

    @property
    def _selected(self) -> int:
        """The place of the step that the person is at, or else of the one that matters
        now.
        """
        if self._cursor is not None:
            return self._cursor
        now = (StepStatus.IN_PROGRESS, StepStatus.FAILED)
        current = next(
            (i for i, step in enumerate(self._steps) if step.status in now), None
        )
        if current is None:
            current = next(
                (i for i, step in enumerate(self._steps) if not step.status.is_over),
                len(self._steps) - 1,
            )
        return current

    def _show_selected(self) -> None:
        place = self._selected
        if self._in_full and place < len(self._steps):
            place = next(
                row
                for row, (step, _) in enumerate(self._in_full)
                if step is self._steps[place]
            )
        self.scroll_to(
            y=max(place + 1 - self.size.height // 2, 0), animate=False, immediate=True
        )


def _sign(step: StepSummary) -> str:
    return f"{step_glyph(step)} {step.label}. "


def _words(step: StepSummary) -> str:
    remark = f" ({step_remark(step)})" if step_remark(step) else ""
    return f"{sanitize_for_display(step.title)}{remark}"


def _few(labels: list[str]) -> str:
    shown = ",".join(labels[:2])
    return f"{shown},…" if len(labels) > 2 else shown


def _span(seconds: float) -> str:
    if seconds < 99.5:
        return f"{seconds:.0f}s"
    return f"{seconds / 60:.0f}m" if seconds < 99.5 * 60 else f"{seconds / 3600:.0f}h"
