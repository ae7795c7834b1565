"""Selects the events of concurrent steps that a user interface shows."""

from cdd_agent.events.dialogue_events import ModelReplaced
from cdd_agent.events.notices import Notice
from cdd_agent.events.question_events import ChangesReviewed
from cdd_agent.events.run_events import QuestionAsked, RunFinished
from cdd_agent.events.shell_events import AgentChanged
from cdd_agent.events.step_events import AttemptFailed, ChangesPutBack, StepStarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event

_TOLD = (
    StepStarted,
    StepFinished,
    AttemptFailed,
    ModelReplaced,
    ChangesReviewed,
    ChangesPutBack,
    Notice,
)


class SideSteps:
    """Steps in side trees. Their beginnings, and what the user should know, are shown
    at once; the rest when they come into the user's tree.
    """

    def __init__(self) -> None:
        self.running: dict[int, str] = {}
        """Number → label."""

    def holds_back(self, event: Event) -> bool:
        """True if the event is not shown. Every event must be passed here."""
        match event:
            case StepStarted(step=step, side_tree=True, label=label):
                self.running[step] = label
            case StepStarted(step=step) | StepFinished(step=step):
                self.running.pop(step, None)
            case RunFinished() | QuestionAsked() | AgentChanged():
                # also if it was stopped
                self.running.clear()
            case _:
                pass
        return self._label(event) is not None and not isinstance(event, _TOLD)

    def prefix(self, event: Event) -> str:
        label = self._label(event)
        if label is None or isinstance(event, StepStarted):
            return ""
        return f"Step {label}: "

    def in_words(self) -> str:
        """Return which steps run; empty without any."""
        labels = [self.running[number] for number in sorted(self.running)]
        if len(labels) < 2:
            return f"Step {labels[0]} runs in a separate tree" if labels else ""
        return f"Steps {', '.join(labels[:-1])} and {labels[-1]} run side by side"

    def _label(self, event: Event) -> str | None:
        return self.running.get(getattr(event, "step", None) or 0)
