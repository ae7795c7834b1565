from collections.abc import Hashable

from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from cdd_agent.engine.approval_mode import ACCEPTED_RUN, TITLES, ApprovalMode
from cdd_agent.tui.faults import GuardedWidget

_CLASSES = {
    TITLES["ask"]: "-ask",
    TITLES["edits"]: "-edits",
    TITLES["auto"]: "-auto",
    ACCEPTED_RUN: "-auto",
}


class PromptFrame(GuardedWidget, Horizontal):
    """A round border in the colour of the approval mode. A low screen has `ModeLabel`
    instead.
    """

    DEFAULT_CSS = """
    PromptFrame {
        height: auto; padding: 0 1; background: $background;
        border: round $foreground 50%;
        border-title-background: $background; border-title-style: none;
    }
    PromptFrame.-ask { border-title-color: $text-success; }
    PromptFrame.-edits { border-title-color: $text-primary; }
    PromptFrame.-auto { border-title-color: $text-warning; border-title-style: bold; }
    PromptFrame.-ask:focus-within { border: round $text-success; }
    PromptFrame.-edits:focus-within { border: round $text-primary; }
    PromptFrame.-auto:focus-within { border: round $text-warning; }
    """

    def show_mode(self, mode: ApprovalMode) -> None:
        _set_class(self, mode)
        self.border_title = Content.assemble(
            mode.title, (" · Shift+Tab", "$text-muted not bold")
        )

    def seen(self) -> Hashable:
        return self.border_title


class ModeLabel(GuardedWidget, Static):
    """The approval mode in the last row, on screens without a frame."""

    DEFAULT_CSS = """
    ModeLabel { display: none; width: auto; padding: 0 0 0 1; text-style: bold; }
    ModeLabel.-ask { color: $text-success; }
    ModeLabel.-edits { color: $text-primary; }
    ModeLabel.-auto { color: $text-warning; }
    """

    def show_mode(self, mode: ApprovalMode) -> None:
        _set_class(self, mode)
        self.update(Content(mode.short_title))


def _set_class(widget: PromptFrame | ModeLabel, mode: ApprovalMode) -> None:
    widget.remove_class(*_CLASSES.values())
    widget.add_class(_CLASSES[mode.title])
