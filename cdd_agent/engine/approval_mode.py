"""A session's approval mode: what happens without a question.

There is one `ApprovalMode` for a session, read just before each question. A change
takes effect at once, even in a running step.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from msgspec import Struct

from cdd_agent.settings.config import Approval, Commands

MODES: tuple[Approval, ...] = get_args(Approval)
"""Strictest first."""
TITLES: Mapping[Approval, str] = {
    "ask": "ask before edits",
    "edits": "edits without asking",
    "auto": "auto: edits and commands",
}
"""Short titles, for the frame of the prompt."""
ACCEPTED_RUN = "edits · this run"
"""The title while all changes of a run are accepted."""
MEANINGS: Mapping[Approval, str] = {
    "ask": "cdd asks before it changes files.",
    "edits": "cdd changes files without asking.",
    "auto": "cdd changes files and runs commands without asking.",
}
_LISTED = "Commands on the list (`commands.allow`) run without asking in every mode."
_OTHERS: Mapping[str, str] = {
    "safe": f"{_LISTED} Other commands are refused (`commands.mode: safe`).",
    "ask": f"{_LISTED} cdd asks before it runs other commands, except in `auto`.",
    "unsafe": "Any command runs without asking (`commands.mode: unsafe`).",
}
_ALWAYS_ASKED = (
    "In every mode cdd asks before a step removes tests, and before a command shows"
    " files that are hidden from models."
)


def describe_limits(commands: Commands) -> str:
    """Return sentences on what the modes do not decide."""
    return f"{_OTHERS[commands.mode]} {_ALWAYS_ASKED}"


class ApprovalMode(Struct, eq=False):
    value: Approval = "edits"
    accepted_run: Path | None = None
    """Folder of the run whose changes are written without asking, as the user chose at
    a review.
    """

    def asks_before_edits(self, run: Path | None = None) -> bool:
        """True if the user is asked before files change, inside or outside a run."""
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
    def short_title(self) -> str:
        title = self.title
        return title if title == ACCEPTED_RUN else self.value

    @property
    def toggled(self) -> Approval:
        """The mode after Shift+Tab, never `auto`."""
        is_asking = self.value == "ask" and self.accepted_run is None
        return "edits" if is_asking else "ask"

    def change(self, value: Approval) -> None:
        """Change the mode, and stop accepting all changes of a run."""
        self.value, self.accepted_run = value, None
