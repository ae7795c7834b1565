"""The keys and their descriptions, for the help, the palette and
docs/reference/shell.md. Descriptions come from bindings, or from here for the prompt,
the questions and the mouse.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from textual.binding import Binding, BindingType

_NAMES = {
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "question_mark": "?",
    "underscore": "_",
}


class KeyHelp(NamedTuple):
    """Keys with the same effect."""

    names: str
    """As shown to the user: `Ctrl+P`."""
    words: str
    action: str = ""


IN_THE_PROMPT = (
    KeyHelp("Enter", "Send the line; in an agent, also an empty one"),
    KeyHelp("Shift+Enter, Alt+Enter, Ctrl+J", "A new line"),
    KeyHelp("Tab", "Complete"),
    KeyHelp("↑, ↓", "Earlier and later lines"),
    KeyHelp("Ctrl+R", "Search earlier lines; again: next older match"),
    KeyHelp("Ctrl+G", "Edit the line in your editor (`$VISUAL` or `$EDITOR`)"),
    KeyHelp("Esc", "Return a queued line to the prompt, or stop"),
)
AT_A_QUESTION = (
    KeyHelp("a letter, a word", "Answer: a letter by itself, a word with Enter"),
    KeyHelp("Esc", "No"),
    KeyHelp("Tab", "Stash the draft to answer; it returns afterwards"),
    KeyHelp("PgUp, PgDn", "Scroll the question"),
)


IN_THE_TRANSCRIPT = (
    KeyHelp("End", "Go to the end of the transcript, if the prompt is empty"),
    KeyHelp("a click on a block's line", "Open or fold the block"),
    KeyHelp(
        "Ctrl+click on `path:line`, or on a link",
        "Open the file in your editor at that line; open the link",
    ),
)


def shown(key: str) -> str:
    return "+".join(_NAMES.get(part) or part.capitalize() for part in key.split("+"))


def actions_by_key(kind: type) -> dict[str, str]:
    actions = {}
    for base in reversed(kind.__mro__):
        for binding in Binding.make_bindings(vars(base).get("BINDINGS", ())):
            actions[binding.key] = binding.action
    return actions


def keys_of(bindings: Iterable[BindingType]) -> Iterator[KeyHelp]:
    for binding in bindings:
        assert isinstance(binding, Binding)
        if binding.description:
            yield KeyHelp(
                ", ".join(map(shown, binding.key.split(","))),
                binding.description,
                binding.action,
            )
