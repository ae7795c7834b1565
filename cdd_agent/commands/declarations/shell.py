"""Commands about the shell itself."""

from cdd_agent.commands.declaration import (
    Command,
    Group,
    SlashFront,
    TerminalFront,
    Times,
    ValueKind,
    argument,
    option,
    switch,
)

SHELL = (
    Command(
        "help",
        Group.SHELL,
        "Explain commands, agents and keys",
        (
            argument(
                "topic",
                "TOPIC",
                "a command, an agent (chat, socrates, planner, executor), keys, or the"
                " id of a refusal",
                times=Times.OPTIONAL,
                offers="cdd_agent.commands.help:help_topics",
            ),
        ),
        SlashFront(
            "Show all commands. With a TOPIC, explain it.",
            "/help exec",
            run="cdd_agent.commands.shell_commands:show_help",
            any_time=True,
        ),
    ),
    Command(
        "settings",
        Group.SHELL,
        "Show and change the settings",
        slash=SlashFront(
            "Show all settings, where each value comes from, and change them.",
            "/settings",
            run="cdd_agent.commands.shell_commands:show_settings",
            any_time=True,
        ),
    ),
    Command(
        "theme",
        Group.SHELL,
        "Choose the colours",
        (
            argument(
                "name",
                "NAME",
                "a theme such as dark, light, contrast, auto or nord",
                times=Times.OPTIONAL,
                offers="cdd_agent.tui.themes:THEME_NAMES",
            ),
        ),
        SlashFront(
            "Choose the colours from a list. With a NAME, use that theme for all"
            " projects; auto follows the background of the terminal.",
            "/theme light",
            run="cdd_agent.commands.shell_commands:choose_theme",
            any_time=True,
        ),
    ),
    Command(
        "clear",
        Group.SHELL,
        "Clear the screen and start a new chat",
        slash=SlashFront(
            "Empty the transcript and start a new conversation. `/resume` brings the"
            " old one back.",
            "/clear",
            run="cdd_agent.commands.shell_commands:clear",
        ),
    ),
    Command(
        "chat",
        Group.SHELL,
        "Save the work and return to chat",
        slash=SlashFront(
            "Return to chat. The agent's work is saved.",
            "/chat",
            run="cdd_agent.commands.shell_commands:close_agent",
        ),
    ),
    Command(
        "exit",
        Group.SHELL,
        "Save all work and quit cdd",
        slash=SlashFront(
            "Leave cdd; all work is saved, and `/resume` continues it.",
            "/exit",
            run="cdd_agent.commands.shell_commands:leave",
            any_time=True,
        ),
    ),
    Command(
        "serve",
        Group.SHELL,
        "Open the shell in a browser",
        (
            option(
                "--host",
                "",
                "the address to listen on (default: only this computer can connect)",
                default="127.0.0.1",
            ),
            option(
                "--port",
                "N",
                "the port; 0 chooses a free one (default: 8000)",
                ValueKind.NUMBER,
                default=8000,
            ),
            switch("--open", "open the page in your browser", key="opens_browser"),
        ),
        terminal=TerminalFront(
            """
            cdd serve
            cdd serve --open
            cdd serve --host 0.0.0.0 --port 8000
            cdd -C project --model ollama/qwen3 serve
            """,
            run="cdd_agent.cli.serve:serve",
        ),
    ),
)
