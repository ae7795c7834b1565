from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.widgets import Static

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.inspector.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from textual.app import ComposeResult

    from cdd_agent.tui.inspector.empty import EmptyState
    from cdd_agent.tui.inspector.row_list import RowGroup


class ListTab(GuardedWidget, Vertical):
    """A line of facts and a list of rows, or the reason why there are none."""

    DEFAULT_CSS = """
    ListTab {
        & > .facts { height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
        & > .empty { height: auto; padding: 1 1; }
        & > RowList { height: 1fr; }
    }
    """

    def compose(self) -> ComposeResult:
        yield Static(classes="facts", markup=False)
        yield Static(classes="empty", markup=False)
        yield RowList()

    @property
    def rows(self) -> RowList:
        return self.query_one(RowList)

    def show(
        self,
        facts: str,
        groups: Sequence[RowGroup],
        cursor: Hashable | None = None,
    ) -> None:
        self._set_empty(is_empty=False)
        self.query_one(".facts", Static).update(sanitize_for_display(facts))
        self.rows.show(groups, cursor)

    def show_empty(self, empty: EmptyState) -> None:
        self._set_empty(is_empty=True)
        self.rows.show(())
        self.query_one(".empty", Static).update(sanitize_for_display(empty.in_words))

    def _set_empty(self, *, is_empty: bool) -> None:
        # A class would take effect later, but the list must be visible now to take the
        # focus.
        for child in self.children:
            child.display = child.has_class("empty") is is_empty
