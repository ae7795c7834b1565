"""The keys that the shell binds on all its screens."""

from textual.binding import Binding, BindingType

SHELL_BINDINGS: list[BindingType] = [
    Binding(
        "ctrl+c",
        "stop",
        "Copy what is selected, or stop what runs; twice: leave",
        show=False,
        priority=True,
    ),
    Binding("ctrl+d", "leave", "Leave", show=False, priority=True),
    Binding("ctrl+z", "suspend_process", "Suspend", show=False, priority=True),
    Binding("f1", "open_screen('help')", "Help", show=False, priority=True),
    Binding(
        "ctrl+p",
        "open_screen('palette')",
        "Find a command, a ticket, a key",
        show=False,
        priority=True,
    ),
    Binding("f4", "open_screen('tickets')", "The tickets", show=False, priority=True),
    Binding("f5", "open_screen('settings')", "The settings", show=False, priority=True),
    Binding(
        "ctrl+t",
        "toggle_thoughts",
        "Open or fold thoughts",
        show=False,
        priority=True,
    ),
    Binding(
        "f3",
        "show_criteria",
        "The ticket's acceptance criteria",
        show=False,
        priority=True,
    ),
    Binding("f7", "show_timeline", "The run as a timeline", show=False, priority=True),
    Binding(
        "f2",
        "toggle_plan",
        "The plan: go to it, fold it",
        show=False,
        priority=True,
    ),
    Binding("ctrl+f", "find", "Find in the transcript", show=False, priority=True),
    Binding(
        "ctrl+up",
        "choose_block(-1)",
        "Choose the block above",
        show=False,
        priority=True,
    ),
    Binding(
        "ctrl+down",
        "choose_block(1)",
        "Choose the block below",
        show=False,
        priority=True,
    ),
    Binding(
        "f6", "turn_diffs", "Diffs side by side, or not", show=False, priority=True
    ),
    Binding(
        "pageup,shift+pageup",
        "scroll_transcript('page_up')",
        "A page up",
        show=False,
        priority=True,
    ),
    Binding(
        "pagedown,shift+pagedown",
        "scroll_transcript('page_down')",
        "A page down",
        show=False,
        priority=True,
    ),
]
