"""Events of a dialogue with a model: prompts, replies, thoughts, tools. In all of them
`step` is None outside of a run.
"""

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.base_event import BaseEvent, NamesStep
from cdd_agent.llm.port import PromptShare, Usage


class PromptMade(NamesStep, frozen=True):
    """A prompt was built; the model is about to be asked."""

    step: int | None
    parts: tuple[PromptShare, ...]
    left_out: tuple[str, ...] = ()
    """The parts for which there was no room, the most important first."""
    window: int | None = None
    """The model's context window in tokens; None if it is not known."""


class ReplyStarted(BaseEvent, frozen=True):
    """The model is asked; with `saved`, an earlier reply is used again."""

    step: int | None
    model: str
    saved: bool = False
    prompt_tokens: int = 0
    """An estimate of the request: all that is known of a call if the process is
    killed.
    """


class ReplyDelta(BaseEvent, frozen=True):
    """A piece of the reply."""

    step: int | None
    text: str


class ThinkingDelta(BaseEvent, frozen=True):
    """A piece of the model's thoughts."""

    step: int | None
    text: str
    seconds: float = 0.0
    """The time that the model has thought in this reply so far."""
    tokens: int = 0
    """An estimate of the tokens of these thoughts so far."""


class ThinkingFinished(BaseEvent, frozen=True):
    """The thoughts are over, or were dropped."""

    step: int | None
    seconds: float | None
    """None if the provider only counted the thoughts and did not show them."""
    tokens: int
    estimated: bool


class ReplyDelayed(BaseEvent, frozen=True):
    """The model is asked again after these seconds. The event is repeated as they
    pass.
    """

    step: int | None
    seconds: float
    reason: str


class ReplyRestarted(BaseEvent, frozen=True):
    """Earlier pieces of the reply do not count."""

    step: int | None
    was_thought: bool = False
    """True if the model was not asked again: the earlier pieces were thoughts, and the
    reply begins now.
    """


class ModelReplaced(BaseEvent, frozen=True):
    """Another model continues."""

    step: int | None
    model: str
    instead_of: str
    reason: str


class ReplyLost(BaseEvent, frozen=True):
    """A call cost tokens and gave no complete reply. Only the run's log gets this
    event.
    """

    usage: Usage
    step: int | None = None
    """None in older logs: the step that was asked for last."""


class ReplyFinished(BaseEvent, frozen=True):
    """The reply is complete."""

    step: int | None
    usage: Usage | None


class ToolStarted(BaseEvent, frozen=True):
    """The model uses a tool."""

    step: int | None
    call: str
    """The call's name and arguments, in a line."""
    tool: str = ""
    """The tool's name; empty if there is no such tool."""
    target: str = ""
    """The object of the call: a path, a command, a pattern, a question."""
    first_line: int | None = None
    last_line: int | None = None
    """The lines of the target that the model wants, if it wants only some."""


class ToolFinished(BaseEvent, frozen=True):
    """A call of a tool is over."""

    step: int | None
    call: str
    problem: str = ""
    """Why it failed; empty if it succeeded."""
    tool: str = ""
    target: str = ""
    first_line: int | None = None
    last_line: int | None = None
    seconds: float = 0.0
    """Without the time in which the user was asked."""
    exit_code: int | None = None
    output: str = ""
    """The end of a command's output, or the beginning of another result."""
    files: tuple[FileDiff, ...] = ()
    """The changes to the project's files. Empty for a command."""


class ConversationShortened(BaseEvent, frozen=True):
    """A summary replaced the older part of the chat."""

    messages: int
    """Messages that were replaced. The saved conversation keeps them."""
    lines: int
    """Different lines of the user in them that are kept word for word."""
    has_all_lines: bool
    summary: str
    """The summary of the replaced messages; empty if there is none."""
    problem: str
    """Why there is no new summary, as a clause about it; empty if there is one."""


DialogueEvent = (
    PromptMade
    | ReplyStarted
    | ReplyDelta
    | ThinkingDelta
    | ThinkingFinished
    | ReplyDelayed
    | ReplyRestarted
    | ModelReplaced
    | ReplyLost
    | ReplyFinished
    | ToolStarted
    | ToolFinished
    | ConversationShortened
)
