from collections.abc import Iterator
from typing import ClassVar

from cdd_agent.events.ticket_events import SpecShown
from cdd_agent.tui.widgets.row_panel import PanelRow, RowPanel, wrapped_rows
from cdd_agent.wording.spec_words import named_fields

_DONE, _OPEN = "✓", "○"
_MOST_ROWS = 4
_BAR = 10


class SpecPanel(RowPanel):
    """The draft of a spec. Its heading is the progress."""

    PREFIX = "spec"
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"spec--{look}"
        for look in ("total", "done", "open", "question", "text", "quiet")
    }
    DEFAULT_CSS = """
    SpecPanel {
        & > .spec--total { text-style: bold; }
        & > .spec--done { color: $text-success; }
        & > .spec--open { color: $text-muted; }
        & > .spec--question { color: $text-warning; }
        & > .spec--quiet { color: $text-muted; text-style: italic; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._spec: SpecShown | None = None

    def show(self, spec: SpecShown | None) -> None:
        self._spec = spec
        self.show_rows(is_empty=spec is None)

    def heading(self) -> str:
        parts = list(_parts(self._spec).values()) if self._spec is not None else []
        width = min(_BAR, max(self.size.width - 14, 0))
        filled = width * sum(parts) // max(len(parts), 1)
        bar = "━" * filled + "╌" * (width - filled)
        return f"Spec {sum(parts)}/{len(parts)} {bar}"

    def rows(self, width: int) -> Iterator[PanelRow]:
        assert self._spec is not None
        return _rows(self._spec, width)


def _parts(spec: SpecShown) -> dict[str, bool]:
    """Return the parts of a spec; True for each complete part. Criteria are complete if
    each has a check. Open questions are a part only while there are some.

    Text of spec.yaml that approval would remove or reword makes its part incomplete: a
    removal is not progress.
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


def _rows(spec: SpecShown, width: int) -> Iterator[PanelRow]:
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
        yield PanelRow("? Open questions", "question")
        for question in spec.open_questions:
            yield from _text(question.text, width, f"  {question.number} ")
    if spec.lost:
        yield PanelRow("! To be removed or changed", "question")
        for words in spec.lost:
            yield from _text(words.text, width, "  - ")
    if spec.not_written:
        yield PanelRow("", "text")
        yield from _text(
            f"Not in spec.yaml yet: {named_fields(spec.not_written)}",
            width,
            "",
            "quiet",
        )


def _head(name: str, done: bool) -> PanelRow:
    if done:
        return PanelRow(f"{_DONE} {name}", "done")
    return PanelRow(f"{_OPEN} {name}", "open")


def _text(
    text: str, width: int, first: str = "  ", look: str = "text"
) -> Iterator[PanelRow]:
    return wrapped_rows(text, width, first, look, _MOST_ROWS)
