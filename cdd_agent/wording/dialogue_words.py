"""Words of the events of a dialogue with a model."""

from collections.abc import Sequence

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.dialogue_events import (
    ConversationShortened,
    ModelReplaced,
    PromptMade,
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyLost,
    ReplyRestarted,
    ReplyStarted,
    ThinkingDelta,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.events.notices import Tone
from cdd_agent.wording.registry import Lines, words_of

_VERBS = {
    "read_file": "read",
    "list_files": "list",
    "glob_files": "find",
    "grep_files": "search",
    "git_status": "git status",
    "git_log": "git log",
    "git_diff": "git diff",
    "create_file": "create",
    "edit_file": "edit",
    "execute_command": "$",
    "chat_with_user": "ask:",
    "research": "look up",
}
"""By tool. The object follows."""


def thought(seconds: float | None, tokens: int, *, estimated: bool) -> str:
    """Return how long and how much a model thought. If `seconds` is None, its thoughts
    were not shown.
    """
    about = "~" if estimated else ""
    count = f"{about}{tokens:,} tokens"
    if seconds is None:
        return count
    return f"{seconds:.0f} s, {count}"


def tool_use(event: ToolStarted | ToolFinished) -> str:
    verb = _VERBS.get(event.tool)
    if verb is None:
        return " ".join(filter(None, (event.tool, event.target))) or event.call
    words = " ".join([verb, *event.target.split()])
    if event.first_line is None and event.last_line is None:
        return words
    last = "" if event.last_line is None else event.last_line
    return f"{words}:{event.first_line or 1}-{last}"


def lines_changed(files: Sequence[FileDiff]) -> str:
    """Return the numbers of added and removed lines, such as `+12 −3`."""
    added = sum(file.added for file in files)
    removed = sum(file.removed for file in files)
    parts = []
    if added:
        parts.append(f"+{added:,}")
    if removed:
        parts.append(f"−{removed:,}")
    return " ".join(parts)


@words_of.register
def describe_model_replaced(event: ModelReplaced) -> Lines:
    text = f"Using {event.model} instead of {event.instead_of}: {event.reason}"
    return [(text, Tone.WARNING)]


@words_of.register
def describe_thinking_finished(event: ThinkingFinished) -> Lines:
    amount = thought(event.seconds, event.tokens, estimated=event.estimated)
    if event.seconds is None:
        return [(f"thought (hidden by the provider): {amount}", Tone.QUIET)]
    return [(f"thought for {amount}", Tone.QUIET)]


@words_of.register
def describe_tool_finished(event: ToolFinished) -> Lines:
    if event.problem:
        return [(f"{tool_use(event)}: {event.problem}", Tone.WARNING)]
    words = filter(None, (tool_use(event), lines_changed(event.files)))
    return [(" ".join(words), Tone.QUIET)]


@words_of.register
def describe_conversation_shortened(event: ConversationShortened) -> Lines:
    promise = "Your own messages stay word for word"
    if not event.has_all_lines:
        promise = (
            f"{event.lines:,} of your own messages stay word for word, the latest first"
        )
    see = "`/conversation` shows what the model receives instead."
    messages = "1 older message was"
    if event.messages != 1:
        messages = f"{event.messages:,} older messages were"
    if not event.problem:
        return [(f"{messages} replaced by a summary. {promise}. {see}", Tone.PLAIN)]
    text = (
        f"The model's summary cannot be used: it {event.problem}. {messages} left"
        f" out of the prompt. {promise}. {see}"
    )
    return [(text, Tone.WARNING)]


@words_of.register
def leave_out_stream(
    event: (
        PromptMade
        | ReplyStarted
        | ReplyDelta
        | ReplyDelayed
        | ReplyRestarted
        | ReplyLost
        | ReplyFinished
        | ThinkingDelta
        | ToolStarted
    ),
) -> Lines:
    del event
    return []
