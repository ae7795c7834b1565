"""What a face tells of steps that run side by side, so that nobody has to sort out what
belongs to which.
"""

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
    """The steps that are in trees of their own just now. Of these a face tells that
    they begin, and what a person should know; all that they do is told when they come
    into the person's tree, one after the other.
    """

    def __init__(self) -> None:
        self.running: dict[int, str] = {}
        """Their labels, by number."""

    def holds_back(self, event: Event) -> bool:
        """Whether an event is not for a face; each has to come through here."""
        match event:
            case StepStarted(step=step, side_tree=True, label=label):
                self.running[step] = label
            case StepStarted(step=step) | StepFinished(step=step):
                self.running.pop(step, None)
            case RunFinished() | QuestionAsked() | AgentChanged():
                # also of one that was stopped
                self.running.clear()
            case _:
                pass
        return self._label(event) is not None and not isinstance(event, _TOLD)

    def prefix(self, event: Event) -> str:
        """Before the words of an event that is told in between."""
        label = self._label(event)
        if label is None or isinstance(event, StepStarted):
            return ""
        return f"Step {label}: "

    def in_words(self) -> str:
        """Which they are; empty without any."""
        labels = [self.running[number] for number in sorted(self.running)]
        if len(labels) < 2:
            return f"Step {labels[0]} runs in a tree of its own" if labels else ""
        return f"Steps {', '.join(labels[:-1])} and {labels[-1]} run side by side"

    def _label(self, event: Event) -> str | None:
        """The label of the running step that the event is about."""
        return self.running.get(getattr(event, "step", None) or 0)
