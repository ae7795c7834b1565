from textual import events
from textual.message import Message

from cdd_agent.text.sanitize import is_text, text_of_paste


class TypedKey(events.Key):
    """A key with text that Python does not call printable: spaces of other scripts,
    joiners, direction marks, private use.
    """

    @property
    def is_printable(self) -> bool:
        return True

    def copy(self) -> "TypedKey":
        return TypedKey(self.key, self.character)


# The usual key handlers receive it.
TypedKey.handler_name = events.Key.handler_name


def key_event(key: str, character: str | None) -> events.Key:
    event = events.Key(key, character)
    if character is None or len(character) != 1 or event.is_printable:
        return event
    return TypedKey(key, character) if is_text(character) else event


def refine_message(message: Message) -> Message:
    """Return a driver's message with the shell's keys and pastes."""
    if isinstance(message, events.Paste):
        message.text = text_of_paste(message.text)
    elif isinstance(message, events.Key) and not message.is_printable:
        return key_event(message.key, message.character)
    return message
