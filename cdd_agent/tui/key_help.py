"""All keys, for the help and the palette."""

from textual.binding import BindingType

from cdd_agent.tui.bindings import SHELL_BINDINGS
from cdd_agent.tui.inspector.criteria_tab import CriteriaTab
from cdd_agent.tui.inspector.row_list import RowList
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.step_tab import StepTab
from cdd_agent.tui.keys import IN_THE_PROMPT, IN_THE_TRANSCRIPT, KeyHelp, keys_of
from cdd_agent.tui.screens.chooser import Chooser
from cdd_agent.tui.screens.overlay import Overlay
from cdd_agent.tui.transcript.find_bar import FindBar
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.prompt_area import PromptArea
from cdd_agent.tui.widgets.steps import StepList


def all_of_the_shell() -> tuple[KeyHelp, ...]:
    return (
        *IN_THE_PROMPT,
        *keys_of(PromptArea.BINDINGS),
        *everywhere(),
        *IN_THE_TRANSCRIPT,
    )


def everywhere() -> tuple[KeyHelp, ...]:
    return tuple(keys_of(SHELL_BINDINGS))


def on_screens() -> dict[str, tuple[KeyHelp, ...]]:
    """Return the keys by the title of their table in the help."""

    def keys(*bindings: list[BindingType]) -> tuple[KeyHelp, ...]:
        return tuple(key for group in bindings for key in keys_of(group))

    return {
        "A selected block": (
            *keys(Transcript.BINDINGS),
            KeyHelp("Ctrl+C", "Copy the whole block, even if folded"),
        ),
        "Finding": keys(FindBar.BINDINGS),
        "The plan": keys(StepList.BINDINGS),
        "The inspector": keys(InspectorScreen.BINDINGS),
        "The inspector's step": keys(StepTab.BINDINGS),
        "The inspector's lists": keys(RowList.BINDINGS),
        "The inspector's criteria": keys(CriteriaTab.BINDINGS),
        "Lists: commands, tickets, settings": keys(Chooser.BINDINGS, Overlay.BINDINGS),
    }
