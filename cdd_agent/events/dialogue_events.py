"""Events of a dialogue with a model: prompts, replies, thoughts, tools. Outside of a
run, `step` is None.
"""

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.base_event import BaseEvent, NamesStep
from cdd_agent.llm.port import PromptShare, Usage


class PromptMade(NamesStep, frozen=True):
    """A prompt is ready; the call of the model follows."""

    step: int | None
    parts: tuple[PromptShare, ...]
    left_out: tuple[str, ...] = ()
    """The parts for which there was no room, the most important first."""
    window: int | None = None
    """The model's context window in tokens; None if unknown."""


class ReplyStarted(BaseEvent, frozen=True):
    """A call of the model starts; with `saved`, an earlier reply is used instead."""

    step: int | None
    model: str
    saved: bool = False
    prompt_tokens: int = 0
    """The estimated tokens of the request. If the process is killed, nothing else is
    known of the call.
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
    """The duration of the thoughts in this reply so far."""
    tokens: int = 0
    """The estimated number of these tokens so far."""


class ThinkingFinished(BaseEvent, frozen=True):
    """The thoughts are over, or were discarded."""

    step: int | None
    seconds: float | None
    """None if the provider counts thoughts without showing them."""
    tokens: int
    estimated: bool


class ReplyDelayed(BaseEvent, frozen=True):
    """The call is repeated after these seconds. The event comes again while they
    pass.
    """

    step: int | None
    seconds: float
    reason: str


class ReplyRestarted(BaseEvent, frozen=True):
    """The pieces of the reply so far are invalid."""

    step: int | None
    was_thought: bool = False
    """True if there is no new call: the pieces so far were thoughts, and the reply
    starts now.
    """


class ModelReplaced(BaseEvent, frozen=True):
    """Another model continues."""

    step: int | None
    model: str
    instead_of: str
    reason: str


class ReplyLost(BaseEvent, frozen=True):
    """A call cost tokens, but gave no complete reply. Only in the run's log."""

    usage: Usage
    step: int | None = None
    """None in older logs: the last called step."""


class ReplyFinished(BaseEvent, frozen=True):
    """The reply is complete."""

    step: int | None
    usage: Usage | None


class ToolStarted(BaseEvent, frozen=True):
    """The model uses a tool."""

    step: int | None
    call: str
    """The tool's name and the arguments, in a line."""
    tool: str = ""
    """Empty for an unknown tool."""
    target: str = ""
    """The object of the call: a path, a command, a pattern, a question."""
    first_line: int | None = None
    last_line: int | None = None
    """The lines of the target that the model wants, if not all."""


class ToolFinished(BaseEvent, frozen=True):
    """A call of a tool is over."""

    step: int | None
    call: str
    problem: str = ""
    """The reason of a failure; empty after success."""
    tool: str = ""
    target: str = ""
    first_line: int | None = None
    last_line: int | None = None
    seconds: float = 0.0
    """Without the time of questions to the user."""
    exit_code: int | None = None
    output: str = ""
    """The end of a command's output, or the beginning of another result."""
    files: tuple[FileDiff, ...] = ()
    """The changes to the project's files; empty for a command."""


class ConversationShortened(BaseEvent, frozen=True):
    """A summary replaces the older part of the chat."""

    messages: int
    """The number of replaced messages. The saved conversation keeps them."""
    lines: int
    """The number of the user's lines in them that are kept word for word."""
    has_all_lines: bool
    summary: str
    """The summary of the replaced messages; empty if there is none."""
    problem: str
    """The reason for having no new summary, as a clause about it; empty if there is
    one.
    """


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
