"""The plan as a list of steps with their status; drawn line by line, so that its length does not matter.

Where there is room for all titles in full, they are; otherwise each step has one row.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cdd_agent.events import StepView
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.wrapping import wrap
from cdd_agent.wording import REMARKS, STEP_GLYPHS


class StepList(GuardedWidget, ScrollView, can_focus=False):
    """Shows where the run is. The first line, which stays when the list scrolls, is the progress of the whole."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*(f"steps--{status.value}" for status in StepStatus), "steps--total"}
    DEFAULT_CSS = """
    StepList {
        padding: 0 1; background: $surface; scrollbar-size-vertical: 1; overflow-x: hidden;
        & > .steps--pending { color: $text-muted; }
        & > .steps--in_progress { color: $text-accent; text-style: bold; }
        & > .steps--completed { color: $text-success; }
        & > .steps--failed { color: $text-error; text-style: bold; }
        & > .steps--skipped { color: $text-warning; }
        & > .steps--total { text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._steps: list[StepView] = []
        self._in_full: list[tuple[StepView, str]] = []
        """The rows of titles that are longer than one; empty where there is no room for them."""
        self.display = False

    def show(self, steps: Iterable[StepView]) -> None:
        """Show these steps; none hides the list."""
        self._steps = list(steps)
        self.display = bool(self._steps)
        self._lay_out()
        self.refresh(layout=True)
        self._follow()

    @property
    def is_over(self) -> bool:
        """Nothing of the plan is left to do."""
        return all(step.status.over for step in self._steps)

    def on_resize(self) -> None:
        self._lay_out()
        self._follow()

    def mark(self, number: int, status: StepStatus, verification: Verification | None = None) -> None:
        """One step has got another status."""
        for index, step in enumerate(self._steps):
            if step.number == number:
                self._steps[index] = replace(step, status=status, verification=verification)
        self._lay_out()
        self._follow()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        del container, viewport, width
        return len(self._steps) + 1

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self._strip(self._progress(), self.get_component_rich_style("steps--total"))
        row = y + self.scroll_offset.y
        if self._in_full and row <= len(self._in_full):
            step, text = self._in_full[row - 1]
        elif not self._in_full and row <= len(self._steps):
            step = self._steps[row - 1]
            text = _sign(step) + _words(step)
        else:
            return Strip.blank(self.size.width, self.rich_style)
        return self._strip(text, self.get_component_rich_style(f"steps--{step.status.value}"))

    def _lay_out(self) -> None:
        self._in_full = []
        if len(self._steps) < self.size.height:
            rows = [(step, row) for step in self._steps for row in _wrapped(step, self._room)]
            self._in_full = rows if len(rows) < self.size.height else []
        self.virtual_size = Size(self.size.width, len(self._in_full or self._steps) + 1)
        self.refresh()  # what was drawn at this size before it was known is out of date

    def _progress(self) -> str:
        done, total = sum(step.status.over for step in self._steps), len(self._steps)
        width = min(10, max(self.size.width - 14, 0))
        filled = width * done // total if total else 0
        return f"Plan {done}/{total} {'━' * filled}{'╌' * (width - filled)}"

    @property
    def _room(self) -> int:
        """The cells of a row that are not behind the scrollbar."""
        return self.scrollable_content_region.width

    def _strip(self, text: str, style: Style) -> Strip:
        width = self._room
        strip = Strip([Segment(text, style)])
        if strip.cell_length > width:
            strip = Strip([*strip.crop(0, max(width - 1, 0)), Segment("…", style)])
        return strip.adjust_cell_length(width, style).apply_style(self.rich_style + style)

    def _follow(self) -> None:
        """Keep the step that matters now in view, once it is known how much of the list is."""
        self.call_after_refresh(self._show_current)

    def _show_current(self) -> None:
        now = (StepStatus.IN_PROGRESS, StepStatus.FAILED)
        current = next((i for i, step in enumerate(self._steps) if step.status in now), None)
        if current is None:
            current = next((i for i, step in enumerate(self._steps) if not step.status.over), len(self._steps) - 1)
        self.scroll_to(y=max(current + 1 - self.size.height // 2, 0), animate=False, immediate=True)


def _sign(step: StepView) -> str:
    return f"{STEP_GLYPHS[step.status]} {step.number}. "


def _words(step: StepView) -> str:
    remark = f" ({REMARKS[step.verification]})" if step.verification in REMARKS else ""
    return f"{sanitize_for_display(step.title)}{remark}"


def _wrapped(step: StepView, width: int) -> list[str]:
    """The rows of a step, those below the first under its title."""
    sign, words = _sign(step), _words(step)
    hang = " " * cell_len(sign)
    rows = wrap(words, max(width - len(hang), 1), by_words=True)
    return [(hang if start else sign) + words[start:end] for start, end in rows]
