"""What a face tells of steps that run side by side, so that nobody has to sort out what
belongs to which.
"""

from cdd_agent.events import (
    AgentChanged,
    AttemptFailed,
    ChangesPutBack,
    ChangesReviewed,
    Event,
    ModelReplaced,
    Notice,
    QuestionAsked,
    RunFinished,
    StepFinished,
    StepStarted,
)

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
        self.running: set[int] = set()

    def holds_back(self, event: Event) -> bool:
        """Whether an event is not for a face; each has to come through here."""
        match event:
            case StepStarted(step=step, side_tree=True):
                self.running.add(step)
            case StepStarted(step=step) | StepFinished(step=step):
                self.running.discard(step)
            case RunFinished() | QuestionAsked() | AgentChanged():
                # also of one that was stopped
                self.running.clear()
            case _:
                pass
        return self._is_of_one(event) and not isinstance(event, _TOLD)

    def prefix(self, event: Event) -> str:
        """Before the words of an event that is told in between."""
        is_named = isinstance(event, StepStarted) or not self._is_of_one(event)
        return "" if is_named else f"Step {getattr(event, 'step', '')}: "

    def in_words(self) -> str:
        """Which they are; empty without any."""
        numbers = [str(number) for number in sorted(self.running)]
        if len(numbers) < 2:
            return f"Step {numbers[0]} runs in a tree of its own" if numbers else ""
        return f"Steps {', '.join(numbers[:-1])} and {numbers[-1]} run side by side"

    def _is_of_one(self, event: Event) -> bool:
        return getattr(event, "step", None) in self.running
