"""The last row: folder and branch, agent and ticket, model, context window, cost.

The order is fixed, each number has a unit, and unknown values have placeholders, so
nothing moves when a value becomes known. A narrow row shortens texts, then drops parts.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget


class StatusPlace(NamedTuple):
    folder: str
    branch: str
    """Empty outside a repository."""
    agent: str
    ticket: str


class StatusValues(NamedTuple):
    model: str | None
    context: str
    """The share of the model's window in the last call, such as `12%`; empty if
    unknown.
    """
    cost: Cost


class _StatusPart(NamedTuple):
    text: str
    style: str = ""


class _Limits(NamedTuple):
    place: int
    """Also of the branch."""
    ticket: int
    model: int


_LIMITS = (_Limits(24, 32, 40), _Limits(16, 24, 24), _Limits(12, 16, 16))
"""From wide to narrow rows."""
_LEFT = ("folder", "branch", "agent")
_RIGHT = ("model", "context", "cost")
_DROPPED = ("cost", "branch", "context", "folder", "model")
"""Parts that a narrow row drops, the least important first."""
_COLUMNS = {"context": cell_len("ctx 100%"), "cost": cell_len("1.2k tokens")}
"""Cells reserved for a number, so that it never moves its neighbours."""
_GAP = 2
_UNKNOWN = "$text-muted"


class StatusLine(GuardedWidget, Widget):
    DEFAULT_CSS = """
    StatusLine { width: 1fr; height: 1; padding: 0 1; text-wrap: nowrap; }
    """
    agent: reactive[str] = reactive("chat")
    ticket: reactive[str] = reactive("")
    branch: reactive[str] = reactive("")
    model: reactive[str | None] = reactive("…")
    cost: reactive[Cost] = reactive(NO_COST)
    context: reactive[str] = reactive("")

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def render(self) -> Content:
        place = StatusPlace(self._folder, self.branch, self.agent, self.ticket)
        values = StatusValues(self.model, self.context, self.cost)
        return lay_out_status(place, values, self.size.width)


def lay_out_status(place: StatusPlace, values: StatusValues, width: int) -> Content:
    parts = _fitting_parts(place, values, width)
    left_parts = [parts[name] for name in _LEFT if name in parts]
    right = [parts[name] for name in _RIGHT if name in parts]
    if not right:
        return Content.assemble(*_spaced(left_parts))
    # Measured as a whole, because a joiner at the end of a text absorbs the next space.
    space = width + _GAP - _cells([*left_parts, *right])
    return Content.assemble(*_spaced(left_parts), " " * space, *_spaced(right))


def _fitting_parts(
    place: StatusPlace, values: StatusValues, width: int
) -> dict[str, _StatusPart]:
    for limits in _LIMITS:
        parts = _left_parts(place, limits) | _right_parts(values, limits)
        if _cells(list(parts.values())) <= width:
            return parts
    for name in _DROPPED:
        del parts[name]
        if _cells(list(parts.values())) <= width:
            return parts
    agent = parts["agent"]
    return {"agent": agent._replace(text=shorten(agent.text, width))}


def _left_parts(place: StatusPlace, limits: _Limits) -> dict[str, _StatusPart]:
    folder, branch, agent, ticket = map(sanitize_for_display, place)
    if ticket:
        agent = f"{agent} · {shorten(ticket, limits.ticket)}"
    if branch:
        branch_part = _StatusPart(f"⎇ {shorten(branch, limits.place)}")
    else:
        branch_part = _StatusPart("⎇ –", _UNKNOWN)
    return {
        "folder": _StatusPart(shorten(folder, limits.place)),
        "branch": branch_part,
        "agent": _StatusPart(agent, "bold"),
    }


def _right_parts(values: StatusValues, limits: _Limits) -> dict[str, _StatusPart]:
    is_spent = values.cost.tokens > 0
    parts = {
        "model": _model_part(values.model, limits.model),
        "context": _StatusPart(
            f"ctx {values.context or '–'}", "" if values.context else _UNKNOWN
        ),
        "cost": _StatusPart(cost_with_unit(values.cost), "" if is_spent else _UNKNOWN),
    }
    for name, column in _COLUMNS.items():
        text, style = parts[name]
        parts[name] = _StatusPart(" " * (column - cell_len(text)) + text, style)
    return parts


def _model_part(model: str | None, limit: int) -> _StatusPart:
    if model is None:
        return _StatusPart("no model", _UNKNOWN)
    name = sanitize_for_display(model)
    if cell_len(name) > limit:
        # The end distinguishes models of one provider.
        name = name.rpartition("/")[2]
    return _StatusPart(shorten(name, limit, keep_end=True))


def cost_with_unit(cost: Cost) -> str:
    """Return the cost in dollars, or in tokens if no price is known."""
    if cost.usd == 0:
        return "$0.00"
    return cost.in_short("tokens") or "0 tokens"


def shorten(text: str, cells: int, *, keep_end: bool = False) -> str:
    """Return a text of at most `cells` cells, with … at the cut."""
    if cell_len(text) <= cells:
        return text
    if cells < 1:
        return ""
    text_so_far = text
    while cell_len(text_so_far) > cells - 1:
        text_so_far = text_so_far[1:] if keep_end else text_so_far[:-1]
    return f"…{text_so_far}" if keep_end else f"{text_so_far}…"


def _cells(parts: Sequence[_StatusPart]) -> int:
    return cell_len((" " * _GAP).join(part.text for part in parts))


def _spaced(parts: Sequence[_StatusPart]) -> Iterator[tuple[str, str]]:
    for number, part in enumerate(parts):
        if number:
            yield " " * _GAP, ""
        yield part
