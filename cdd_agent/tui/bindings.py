"""The keys that the shell binds on all its screens."""

from textual.binding import Binding, BindingType

_KEYS = (
    ("ctrl+c", "stop", "Copy what is selected, or stop what runs; twice: leave"),
    ("ctrl+d", "leave", "Leave"),
    ("ctrl+z", "suspend_process", "Suspend"),
    ("f1", "open_screen('help')", "Help"),
    ("ctrl+p", "open_screen('palette')", "Find a command, a ticket, a key"),
    ("f4", "open_screen('tickets')", "The tickets"),
    ("f5", "open_screen('settings')", "The settings"),
    ("shift+tab", "toggle_approval", "Ask before edits, or edit without asking"),
    ("ctrl+t", "toggle_thoughts", "Open or fold thoughts"),
    ("f3", "show_criteria", "The ticket's acceptance criteria"),
    ("f7", "show_timeline", "The run as a timeline"),
    ("f2", "toggle_plan", "The plan: go to it, fold it"),
    ("ctrl+f", "find", "Find in the transcript"),
    ("ctrl+up", "choose_block(-1)", "Choose the block above"),
    ("ctrl+down", "choose_block(1)", "Choose the block below"),
    ("f6", "turn_diffs", "Diffs side by side, or not"),
    ("pageup,shift+pageup", "scroll_transcript('page_up')", "A page up"),
    ("pagedown,shift+pagedown", "scroll_transcript('page_down')", "A page down"),
)
SHELL_BINDINGS: list[BindingType] = [
    Binding(keys, action, description, show=False, priority=True)
    for keys, action, description in _KEYS
]
