"""The list of earlier sessions, the latest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.cells import set_cell_size

from cdd_agent.tui.screens.chooser import Chooser, ChooserRow
from cdd_agent.tui.screens.tickets import ago

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdd_agent.events.shell_events import SessionView

_SIGNS = {"chat": "❯", "executor": "◐", "planner": "≡", "socrates": "?"}


class SessionsScreen(Chooser):
    """The result is the line that resumes the session."""

    KEYS = "Enter: resume · Esc: close"
    NOTHING = "No session matches."

    def __init__(self, sessions: Sequence[SessionView]) -> None:
        now = datetime.now(UTC)
        super().__init__(
            f"Earlier sessions: {len(sessions)}",
            [_row(session, now) for session in sessions],
        )


def _row(session: SessionView, now: datetime) -> ChooserRow:
    when = ago(datetime.fromisoformat(session.touched), now)
    name = "chat" if session.agent == "chat" else session.key
    columns = ((f"{when:>10}", 11), (session.progress, 16))
    facts = "".join(set_cell_size(text, width) for text, width in columns)
    return ChooserRow(
        f"/resume {session.key}",
        name,
        f"{facts} {session.last}",
        _SIGNS.get(session.agent, "·"),
    )
