"""The line of keys of each tab. A narrow row cuts the last parts off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.inspector.actions import KEYS, offered_actions
from cdd_agent.tui.inspector.source import InspectorTab

if TYPE_CHECKING:
    from cdd_agent.events.step_summary import StepSummary
    from cdd_agent.tui.inspector.empty import EmptyState

_ALWAYS = ("Esc: close", "1 2 3 4 tab")
_MEASURE = "m measure"


def empty_keys(empty: EmptyState, *, can_measure: bool) -> str:
    parts = []
    if can_measure:
        parts.append(_MEASURE)
    elif empty.command:
        parts.append(f"Enter: {empty.command}")
    return _join(parts)


def step_keys(step: StepSummary, attempts: int, *, is_running: bool) -> str:
    parts = ["n p step"]
    if attempts > 1:
        parts.append("[ ] attempt")
    for action in offered_actions(step, is_running=is_running):
        parts.append(f"{KEYS[action]} {action.value}")
    is_at_work = is_running and step.status is StepStatus.IN_PROGRESS
    if not step.status.is_over and not is_at_work:
        parts.append("e edit")
    return _join(parts)


def list_keys(tab: InspectorTab, *, can_measure: bool = False) -> str:
    parts = ["↑↓ row", "←→ fold", "Enter: step"]
    if can_measure:
        parts.insert(0, _MEASURE)
    if tab is InspectorTab.TIMELINE:
        parts.append("u undo")
    if tab is InspectorTab.CRITERIA:
        return _join(parts, "PgUp PgDn: scroll")
    return _join(parts)


def _join(parts: list[str], *last: str) -> str:
    return " · ".join([*parts, *_ALWAYS, *last])
