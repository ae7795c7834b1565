"""The approval mode of a session: what happens without a question to the user.

A session has one `ApprovalMode`. Each question reads it when it is about to be asked,
so a change takes effect at once, also in the step that runs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from msgspec import Struct

from cdd_agent.settings.config import Approval, Commands

MODES: tuple[Approval, ...] = get_args(Approval)
"""All modes, the strictest first."""
TITLES: Mapping[Approval, str] = {
    "ask": "ask before edits",
    "edits": "edits without asking",
    "auto": "auto: edits and commands",
}
"""The modes in a few words, for the frame of the prompt."""
ACCEPTED_RUN = "edits · this run"
"""The title while the user accepts all changes of a run."""
_COMMANDS: Mapping[str, str] = {
    "safe": "Other commands are refused (`commands.mode: safe`).",
    "ask": "cdd asks before it runs other commands.",
    "unsafe": "Any command runs without asking (`commands.mode: unsafe`).",
}
_COMMANDS_IN_AUTO = "Other commands run without asking, too."
_ALWAYS_ASKED = (
    "In every mode cdd asks before a step removes tests, and before a command shows"
    " files that are hidden from models."
)


class ApprovalMode(Struct, eq=False):
    """The mode of a session, and the run whose changes the user accepts."""

    value: Approval = "edits"
    accepted_run: Path | None = None
    """The folder of the run whose changes are all written without asking, because the
    user said so at a review.
    """

    def asks_before_edits(self, run: Path | None = None) -> bool:
        """True if the user is asked before files change, in a run or outside of one."""
        is_accepted = run is not None and run == self.accepted_run
        return self.value == "ask" and not is_accepted

    @property
    def asks_before_commands(self) -> bool:
        return self.value != "auto"

    @property
    def title(self) -> str:
        is_accepted = self.value == "ask" and self.accepted_run is not None
        return ACCEPTED_RUN if is_accepted else TITLES[self.value]

    @property
    def toggled(self) -> Approval:
        """The mode that Shift+Tab leads to. It never leads to `auto`."""
        is_asking = self.value == "ask" and self.accepted_run is None
        return "edits" if is_asking else "ask"

    def change(self, value: Approval) -> None:
        """Use another mode. No run is accepted as a whole any more."""
        self.value, self.accepted_run = value, None

    def describe(self, commands: Commands) -> str:
        """Return what the mode allows, as sentences."""
        if self.value == "ask":
            edits = "cdd asks before it changes files."
        else:
            edits = "cdd changes files without asking."
        if self.title == ACCEPTED_RUN:
            edits = "cdd asks before it changes files, except in this run."
        is_auto = self.value == "auto" and commands.mode == "ask"
        others = _COMMANDS_IN_AUTO if is_auto else _COMMANDS[commands.mode]
        listed = "Commands on the list (`commands.allow`) run without asking."
        if commands.mode == "unsafe":
            listed = ""
        return " ".join(filter(None, (edits, listed, others, _ALWAYS_ASKED)))
