"""Lines about a run and its steps, even while no run is open."""

import re

from msgspec import Struct

from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.pattern import Pattern
from cdd_agent.tickets.plan import STEP_LABEL

NO_RUN = "No run is open."

_STEP_LINE = Pattern(
    rf"(?P<word>[a-z]*)(?:\s+(?:step\s+)?(?P<label>{STEP_LABEL.pattern}))?"
    r"(?P<keep>\s+keep)?(?:\s+because\s+(?P<reason>.+))?",
    re.IGNORECASE | re.DOTALL,
)
_USUAL_WORDS = {
    **{word: word for word in ("all", "undo", "redo", "diff")},
    **dict.fromkeys(("continue", "c", "next", "n"), "continue"),
    **dict.fromkeys(("status", "st"), "status"),
    **dict.fromkeys(("retry", "r"), "retry"),
    **dict.fromkeys(("skip", "s"), "skip"),
}
_FROM_LOG = ("undo", "redo", "diff")
_NEWEST = {
    "undo": "Enter: name the newest change of this session, and ask before undoing it",
    "redo": "Enter: redo the last undo of this session",
    "diff": "Enter: show the newest change of this session",
}
_ABOUT_A_RUN = (*_FROM_LOG, "status", "retry", "skip")


class RunLine(Struct, frozen=True):
    """A line for a run: `WORD [step LABEL] [keep] [because REASON]`."""

    typed: str
    """The first word, in lower case."""
    step: str = ""
    keeps: bool = False
    reason: str = ""

    @classmethod
    def parse(cls, text: str) -> "RunLine | None":
        match = _STEP_LINE.fullmatch(text)
        if match is None:
            return None
        return cls(
            match["word"].lower(),
            match["label"] or "",
            match["keep"] is not None,
            match["reason"] or "",
        )

    @property
    def has_ending(self) -> bool:
        return self.keeps or bool(self.reason)

    @property
    def word(self) -> str:
        return _USUAL_WORDS.get(self.typed, self.typed)

    @property
    def is_conversation(self) -> bool:
        """True if the user may also say this to a model, such as `all`, or `n` for
        no.
        """
        return self.has_ending or self.typed not in _ABOUT_A_RUN

    @property
    def is_from_log(self) -> bool:
        """True if it concerns past steps, and needs no next step."""
        return self.word in _FROM_LOG

    @property
    def as_typed(self) -> str:
        return f"{self.word} {self.step}".strip()

    def hint(self, slug: str) -> str:
        """Return the effect of Enter if the run is closed."""
        if self.is_from_log and not self.step:
            return _NEWEST[self.word]
        which = f"step {self.step}"
        match self.word:
            case "undo":
                return f"Enter: undo {which} of {slug}"
            case "diff":
                return f"Enter: show the changes of {which} of {slug}"
            case "status":
                return f"Enter: show the plan of {slug} and its progress"
            case _:
                return f"Enter does nothing. {NO_RUN}"


def all_steps_over(slug: str, *, has_own_tree: bool) -> Notice:
    """Return the answer to a line for a run without remaining steps."""
    text = (
        f"All steps are done, so no step ran. Review: `/diff {slug}`. Undo:"
        f" `/undo {slug}`."
    )
    if has_own_tree:
        text += f" Merge into your tree: `/land {slug}`."
    return Notice(text, Tone.GOOD, kind=NoticeKind.ALL_DONE)


def no_run_open(
    run_line: RunLine, slug: str | None, *, is_first: bool = False
) -> Notice:
    """Return the answer to a line for a run while none is open. `is_first`: it is the
    first line of the session.
    """
    if run_line.is_from_log or run_line.word == "status":
        command = " ".join(
            filter(None, (f"/{run_line.word}", slug or "SLUG", run_line.step))
        )
        text = f"No ticket is open. Type `{command}`."
    else:
        text = f"{NO_RUN} Type `/exec {slug or 'SLUG'}` to open one."
    if is_first:
        text += " Type `/resume` to return to your last session."
    return Notice(text, kind=NoticeKind.NOT_DONE)


def read_run_line(text: str) -> RunLine | None:
    line = RunLine.parse(text.strip())
    if line is None or line.typed not in _USUAL_WORDS:
        return None
    if line.has_ending and line.word not in ("retry", "skip"):
        return None
    return line
