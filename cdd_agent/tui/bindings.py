from textual.binding import Binding, BindingType

_KEYS = (
    ("ctrl+c", "stop", "Copy the selection, or stop; twice: quit"),
    ("ctrl+d", "leave", "Quit"),
    ("ctrl+z", "suspend_process", "Suspend"),
    ("f1", "open_screen('help')", "Help"),
    ("ctrl+p", "open_screen('palette')", "Find a command, a ticket or a key"),
    ("f4", "open_screen('tickets')", "Tickets"),
    ("f5", "open_screen('settings')", "Settings"),
    ("shift+tab", "toggle_approval", "Switch the approval mode: ask or edits"),
    ("ctrl+t", "toggle_thoughts", "Show or fold the model's thoughts"),
    ("f3", "inspect('criteria')", "Acceptance criteria of the ticket"),
    ("f7", "inspect('timeline')", "Timeline of the run"),
    ("f8", "inspect('strength')", "Strength of the tests of the run"),
    ("f2", "toggle_plan", "Go to the plan; again: fold it"),
    ("ctrl+f", "find", "Find in the transcript"),
    ("ctrl+up", "choose_block(-1)", "Select the block above"),
    ("ctrl+down", "choose_block(1)", "Select the block below"),
    ("f6", "turn_diffs", "Diffs side by side, or in one column"),
    ("pageup,shift+pageup", "scroll_transcript('page_up')", "Page up"),
    ("pagedown,shift+pagedown", "scroll_transcript('page_down')", "Page down"),
)
SHELL_BINDINGS: list[BindingType] = [
    Binding(keys, action, description, show=False, priority=True)
    for keys, action, description in _KEYS
]
