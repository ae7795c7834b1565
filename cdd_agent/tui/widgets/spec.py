"""The spec that fills up beside a conversation with Socrates; drawn line by line, as
the list of steps is.
"""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from cdd_agent.events.ticket_events import SpecShown
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.transcript.wrapping import wrap
from cdd_agent.wording.spec_words import named_fields

_DONE, _OPEN = "✓", "○"
_MOST_ROWS = 4
"""Rows of one text; `summary` shows all of it."""


class _Row(NamedTuple):
    text: str
    look: str


class SpecPanel(GuardedWidget, ScrollView, can_focus=False):
    """Shows what is known of the spec, and what is open. The first line, which stays,
    is how much of it there is.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"spec--{look}"
        for look in ("total", "done", "open", "question", "text", "quiet")
    }
    DEFAULT_CSS = """
    SpecPanel {
        padding: 0 1; background: $surface; scrollbar-size-vertical: 1;
        overflow-x: hidden;
        &.-empty { display: none; }
        & > .spec--total { text-style: bold; }
        & > .spec--done { color: $text-success; }
        & > .spec--open { color: $text-muted; }
        & > .spec--question { color: $text-warning; }
        & > .spec--quiet { color: $text-muted; text-style: italic; }
    }
    """

    def __init__(self) -> None:
        super().__init__(classes="-empty")
        self._spec: SpecShown | None = None
        self._rows: list[_Row] = []

    def show(self, spec: SpecShown | None) -> None:
        """Show this spec; None hides the panel."""
        self._spec = spec
        self.set_class(spec is None, "-empty")
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        self._rows = (
            list(_rows(self._spec, width)) if self._spec is not None and width else []
        )
        self.virtual_size = Size(width, len(self._rows) + 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self._strip(_Row(self._progress(), "total"))
        row = y + self.scroll_offset.y - 1
        return self._strip(
            self._rows[row] if row < len(self._rows) else _Row("", "text")
        )

    def _progress(self) -> str:
        parts = list(_parts(self._spec).values()) if self._spec is not None else []
        width = min(10, max(self.size.width - 14, 0))
        filled = width * sum(parts) // max(len(parts), 1)
        return f"Spec {sum(parts)}/{len(parts)} {'━' * filled}{'╌' * (width - filled)}"

    def _strip(self, row: _Row) -> Strip:
        style = self.get_component_rich_style(f"spec--{row.look}")
        strip = Strip([Segment(row.text, style)]).adjust_cell_length(
            self.size.width, style
        )
        return strip.apply_style(self.rich_style + style)


def _parts(spec: SpecShown) -> dict[str, bool]:
    """Return each part that a spec needs, and True if it is there. Criteria are there
    if each has a check. Open questions are a part as long as there are some.

    Words of spec.yaml that approving would remove or reword are a part, too, and the
    part that they are in is not there: a removal is not progress.
    """
    missing = {line.partition(":")[0] for line in spec.missing}
    not_there = missing | {words.field for words in spec.lost}
    all_checked = all(item.check for item in spec.criteria)
    parts = {
        "Title": "title" not in not_there,
        "Description": "description" not in not_there,
        "Acceptance criteria": "acceptance_criteria" not in not_there and all_checked,
    }
    if spec.open_questions:
        parts["Open questions"] = False
    if spec.lost:
        parts["Removals"] = False
    return parts


def _rows(spec: SpecShown, width: int) -> Iterator[_Row]:
    title, description, criteria, *_ = (_head(*part) for part in _parts(spec).items())
    yield title
    yield from _text(spec.title, width)
    yield description
    yield from _text(spec.description, width)
    yield criteria
    for item in spec.criteria:
        mark, look = (_DONE, "text") if item.check else ("?", "question")
        yield from _text(item.text, width, f"  {mark} ", look)
    if spec.scope:
        yield _head("Scope", done=True)
        for area, items in spec.scope:
            yield from _text(f"{area}: {', '.join(items)}", width)
    if spec.technical_notes:
        yield _head("Technical notes", done=True)
        yield from _text(spec.technical_notes, width)
    if spec.open_questions:
        yield _Row("? Open questions", "question")
        for question in spec.open_questions:
            yield from _text(question.text, width, f"  {question.number} ")
    if spec.lost:
        yield _Row("! To be removed or changed", "question")
        for words in spec.lost:
            yield from _text(words.text, width, "  - ")
    if spec.not_written:
        yield _Row("", "text")
        yield from _text(
            f"Not in spec.yaml yet: {named_fields(spec.not_written)}",
            width,
            "",
            "quiet",
        )


def _head(name: str, done: bool) -> _Row:
    return _Row(f"{_DONE if done else _OPEN} {name}", "done" if done else "open")


def _text(
    text: str, width: int, first: str = "  ", look: str = "text"
) -> Iterator[_Row]:
    """A text in so many cells, of which the first rows are shown."""
    room = max(width - len(first), 1)
    lines = [
        sanitize_for_display(line.strip()) for line in text.splitlines() if line.strip()
    ]
    rows = [
        line[start:end]
        for line in lines
        for start, end in wrap(line, room - 1, by_words=True)
    ]
    shown = rows[:_MOST_ROWS]
    if len(rows) > len(shown):
        shown[-1] = f"{shown[-1]}…"
    for number, row in enumerate(shown):
        yield _Row(f"{first if number == 0 else ' ' * len(first)}{row}", look)
