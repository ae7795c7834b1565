"""The plan as a list of steps.

Only visible rows are drawn. If all full titles fit, they are wrapped; otherwise each
step has one row.
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
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import signs_of
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.wrapping import wrap
from cdd_agent.wording.step_signs import step_glyph, step_remark

_BAR = 10
_TITLE = 0.55
"""Minimum share of a row for a title that needs it."""


class StepList(GuardedWidget, ScrollView, can_focus=True):
    """The steps with status, time, tests and dependencies. A fixed first line shows the
    progress of the plan. The arrows select a step, and Enter opens it.
    """

    FOCUS_ON_CLICK = False
    """After a click, Enter is still for the prompt."""
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
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__()
        self._steps: list[StepSummary] = []
        self._to_do: set[int] = set()
        self._former_cost = self._total = NO_COST
        self._wrapped_rows: list[tuple[StepSummary, str]] = []
        """The rows of all full titles; empty if they do not fit."""
        self._cursor: int | None = None
        """The index of the step that the user selected; None for the current step."""
        self._opened = 0
        """The number of opened steps: Enter shows its effect a moment later."""
        self._is_folded = False
        self.display = False

    def keeps(self, key: str) -> bool:
        """True for a key that the list handles while it has the focus."""
        return key in ("up", "down", "home", "end", "enter")

    def seen(self) -> Hashable:
        return self._selected, self.display, self._opened

    def show(self, steps: Iterable[StepSummary], former_cost: Cost = NO_COST) -> None:
        """Show these steps; without steps, hide the list. `former_cost` is the cost of
        steps that are no longer in the plan.
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
        self._is_folded = is_folded
        self.show(self._steps, self._former_cost)

    @property
    def has_steps(self) -> bool:
        return bool(self._steps)

    @property
    def is_over(self) -> bool:
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
        for step in self._steps:
            if step.number == number:
                self._change(number, cost=step.cost + cost)
        self._add_up()

    def _add_up(self) -> None:
        self._total = sum((step.cost for step in self._steps), self._former_cost)

    def _change(self, number: int, **update: object) -> None:
        for index, step in enumerate(self._steps):
            if step.number == number:
                changed = replace(step, **update)
                self._steps[index] = changed
                self._to_do.discard(number)
                if not changed.status.is_over:
                    self._to_do.add(number)
        self._lay_out()
        self._follow()

    def action_walk(self, by: int) -> None:
        self.walk(by)

    def walk(self, by: int) -> int | None:
        """Move the selection. Return the number of the step; None without steps."""
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
        offset = event.get_content_offset(self)
        if offset is None or offset.y == 0:
            return
        row = offset.y + self.scroll_offset.y - 1
        steps = self._steps
        if self._wrapped_rows:
            steps = [step for step, _ in self._wrapped_rows]
        if row < len(steps):
            self._cursor = self._steps.index(steps[row])
            self.refresh()
            self.action_open()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        del container, viewport, width
        return len(self._steps) + 1

    def render_line(self, y: int) -> Strip:
        if y == 0:
            style = self.get_component_rich_style("steps--total")
            return self._strip([Segment(self._progress(), style)])
        place = y + self.scroll_offset.y - 1
        if self._wrapped_rows and place < len(self._wrapped_rows):
            step, text = self._wrapped_rows[place]
            is_first = place == 0 or self._wrapped_rows[place - 1][0] is not step
            return self._row(step, text, is_first=is_first)
        if not self._wrapped_rows and place < len(self._steps):
            step = self._steps[place]
            return self._row(step, _sign(step) + _words(step), is_first=True)
        return Strip.blank(self.size.width, self.rich_style)

    def _row(self, step: StepSummary, text: str, *, is_first: bool) -> Strip:
        look = "remark" if step_remark(step) else step.status.value
        style = self.get_component_rich_style(f"steps--{look}")
        if self.has_focus and self._steps[self._selected] is step:
            style += self.get_component_rich_style("steps--cursor", partial=True)
        facts = self._facts(step, text) if is_first else ""
        title_room = self._room
        if facts:
            title_room -= cell_len(facts) + 1
        title = Strip([Segment(text, style)])
        if title.cell_length > title_room:
            title = title.crop(0, max(title_room - 1, 0))
            title = Strip([*title, Segment("…", style)])
        segments = list(title.adjust_cell_length(title_room, style))
        if facts:
            segments.append(Segment(f" {facts}", style))
        return self._strip(segments, style)

    def _lay_out(self) -> None:
        height = self.size.height
        rows: list[tuple[StepSummary, str]] = []
        if len(self._steps) < height:
            for step in self._steps:
                rows += [(step, row) for row in self._wrap_title(step)]
        self._wrapped_rows = rows if len(rows) < height else []
        row_count = len(self._wrapped_rows or self._steps) + 1
        self.virtual_size = Size(self.size.width, row_count)
        # Rows from before the size was known are outdated.
        self.refresh()

    def _wrap_title(self, step: StepSummary) -> list[str]:
        sign, words = _sign(step), _words(step)
        indent = " " * cell_len(sign)
        room = self._room - len(indent)
        facts = self._facts(step, sign + words)
        if facts:
            room -= cell_len(facts) + 1
        rows = []
        for start, end in wrap(words, max(room, 1), by_words=True):
            rows.append((indent if start else sign) + words[start:end])
        return rows

    def _progress(self) -> str:
        """Return the progress: counts, a bar, signs of steps without passed tests, and
        the cost. A narrow row drops the cost, then the bar.
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
        """Return the facts that fit next to a title. The cost is dropped first."""
        facts, cost = self._status_facts(step), step.cost.in_short()
        for candidate in (" ".join(filter(None, (facts, cost))), facts):
            width = cell_len(candidate)
            fits = cell_len(text) + width + 1 <= self._room
            if fits or width <= self._room * (1 - _TITLE):
                return candidate
        return ""

    def _status_facts(self, step: StepSummary) -> str:
        if step.status is StepStatus.PENDING:
            return self._describe_waiting(step)
        facts = []
        if step.seconds is not None and step.status is not StepStatus.SKIPPED:
            facts.append(_span(step.seconds))
        evidence = step.evidence
        if evidence is not None and evidence.passed is not None:
            facts.append(f"{evidence.passed}✓")
            if evidence.fixed + evidence.new:
                facts.append(f"+{evidence.fixed + evidence.new}")
            if evidence.new_failures:
                facts.append(f"{evidence.new_failures}✗")
        if step.attempts > 1:
            facts.append(f"↻{step.attempts}")
        return " ".join(facts)

    def _describe_waiting(self, step: StepSummary) -> str:
        labels = []
        for other in self._steps:
            if other.number in step.depends_on and other.number in self._to_do:
                labels.append(other.label)
        if not labels:
            return ""
        if len(labels) > 2 and len(labels) == len(self._steps) - 1:
            return "← all"
        more = ",…" if len(labels) > 2 else ""
        return f"← {','.join(labels[:2])}{more}"

    @property
    def _room(self) -> int:
        return self.scrollable_content_region.width

    def _strip(self, segments: list[Segment], style: Style | None = None) -> Strip:
        strip = Strip(segments)
        if strip.cell_length > self._room:
            strip = strip.crop(0, self._room)
        return strip.adjust_cell_length(self._room, style).apply_style(
            self.rich_style + (style or Style())
        )

    def _follow(self) -> None:
        """Scroll to the selected step once the height is known."""
        self.call_after_refresh(self._show_selected)

    @property
    def _selected(self) -> int:
        """The index of the step that the user selected, otherwise of the running or
        failed step, otherwise of the first unfinished one.
        """
        if self._cursor is not None:
            return self._cursor
        for place, step in enumerate(self._steps):
            if step.status in (StepStatus.IN_PROGRESS, StepStatus.FAILED):
                return place
        for place, step in enumerate(self._steps):
            if not step.status.is_over:
                return place
        return len(self._steps) - 1

    def _show_selected(self) -> None:
        place = self._selected
        if place < len(self._steps):
            for row, (step, _) in enumerate(self._wrapped_rows):
                if step is self._steps[place]:
                    place = row
                    break
        y = max(place + 1 - self.size.height // 2, 0)
        self.scroll_to(y=y, animate=False, immediate=True)


def _sign(step: StepSummary) -> str:
    return f"{step_glyph(step)} {step.label}. "


def _words(step: StepSummary) -> str:
    remark = f" ({step_remark(step)})" if step_remark(step) else ""
    return f"{sanitize_for_display(step.title)}{remark}"


def _span(seconds: float) -> str:
    if seconds < 99.5:
        return f"{seconds:.0f}s"
    if seconds < 99.5 * 60:
        return f"{seconds / 60:.0f}m"
    return f"{seconds / 3600:.0f}h"
