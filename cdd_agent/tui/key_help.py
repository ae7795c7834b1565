"""All keys of the shell and of its screens, for the help and the palette."""

from textual.binding import BindingType

from cdd_agent.tui.bindings import SHELL_BINDINGS
from cdd_agent.tui.criteria_screen import CriteriaScreen
from cdd_agent.tui.keys import IN_THE_PROMPT, IN_THE_TRANSCRIPT, Key, keys_of
from cdd_agent.tui.screens.chooser import Chooser
from cdd_agent.tui.screens.overlay import Overlay
from cdd_agent.tui.step_screen import StepScreen
from cdd_agent.tui.timeline_screen import TimelineScreen
from cdd_agent.tui.transcript.find_bar import FindBar
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.prompt_area import PromptArea
from cdd_agent.tui.widgets.steps import StepList


def all_of_the_shell() -> tuple[Key, ...]:
    """Return the keys of the shell's main screen."""
    return (
        *IN_THE_PROMPT,
        *keys_of(PromptArea.BINDINGS),
        *everywhere(),
        *IN_THE_TRANSCRIPT,
    )


def everywhere() -> tuple[Key, ...]:
    """Return the keys that work on every screen."""
    return tuple(keys_of(SHELL_BINDINGS))


def on_screens() -> dict[str, tuple[Key, ...]]:
    """Return the keys of the parts of the shell that can have the focus, and of the
    screens over it, by the title of their table in the help.
    """

    def keys(*bindings: list[BindingType]) -> tuple[Key, ...]:
        return tuple(key for group in bindings for key in keys_of(group))

    return {
        "A selected block": (
            *keys(Transcript.BINDINGS),
            Key("Ctrl+C", "Copy the whole block, even if folded"),
        ),
        "Finding": keys(FindBar.BINDINGS),
        "The plan": keys(StepList.BINDINGS),
        "A step": keys(StepScreen.BINDINGS),
        "The criteria": keys(CriteriaScreen.BINDINGS),
        "The timeline": keys(TimelineScreen.BINDINGS),
        "Lists: commands, tickets, settings": keys(Chooser.BINDINGS, Overlay.BINDINGS),
    }
