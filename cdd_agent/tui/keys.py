"""The keys of the shell and what they do, in words: from the bindings themselves; of
the prompt, the questions and the mouse from here. Help, palette and docs/shell.md say
the same.
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


class Key(NamedTuple):
    """Keys that do the same."""

    names: str
    """As people read them: `Ctrl+P`."""
    words: str
    action: str = ""
    """Of a binding, what it runs."""


IN_THE_PROMPT = (
    Key("Enter", "Send the line; in an agent, also an empty one"),
    Key("Shift+Enter, Alt+Enter, Ctrl+J", "A new line"),
    Key("Tab", "Complete"),
    Key("↑, ↓", "Earlier lines, later ones"),
    Key("Ctrl+R", "Search earlier lines; again: the next older one"),
    Key("Ctrl+G", "Your editor (`$VISUAL` or `$EDITOR`), with what you have typed"),
    Key("Esc", "Stop what runs; take back what waits"),
)
AT_A_QUESTION = (
    Key("a letter, a word", "The answer, when nothing follows, or with Enter"),
    Key("Esc", "No"),
    Key("Tab", "Put a draft aside, to see the letters"),
    Key("PgUp, PgDn", "Scroll what is asked about"),
)


IN_THE_TRANSCRIPT = (
    Key("End", "In an empty prompt: to the end of the transcript"),
    Key("a click on a block's line", "Open or fold the block"),
    Key(
        "Ctrl+click on `path:line`, or on a link",
        "Open the file in your editor at that line; open the link",
    ),
)


def shown(key: str) -> str:
    """A key as people read it."""
    return "+".join(_NAMES.get(part) or part.capitalize() for part in key.split("+"))


def keys_of(bindings: Iterable[BindingType]) -> Iterator[Key]:
    """Those of them that have words."""
    for binding in bindings:
        assert isinstance(binding, Binding)
        if binding.description:
            yield Key(
                ", ".join(map(shown, binding.key.split(","))),
                binding.description,
                binding.action,
            )
