"""Commands that create, list and show tickets."""

from cdd_agent.commands.declaration import (
    JSON,
    OPTIONAL_TICKET,
    OPTIONAL_TICKET_IN_SHELL,
    TICKET_IN_TERMINAL,
    Command,
    Group,
    SlashFront,
    TerminalFront,
    Times,
    argument,
    option,
)

TICKETS = (
    Command(
        "new",
        Group.TICKETS,
        "Create a ticket or a documentation page",
        (
            argument(
                "type",
                "TYPE",
                "feature, bug, enhancement, spike, refactor or documentation",
                offers="cdd_agent.commands.ticket_commands:NEW_TYPES",
            ),
            argument(
                "kind",
                "KIND",
                "for documentation: guide or feature",
                times=Times.OPTIONAL,
            ),
            argument(
                "name",
                "NAME",
                "a few words: the title, and the name of the folder or file",
            ),
            option(
                "--slug",
                "SLUG",
                "the name of the ticket's folder (default: made from NAME)",
                only=None,
            ),
        ),
        SlashFront(
            "Create a ticket of a TYPE: feature, bug, enhancement, spike or refactor."
            " `/new documentation guide NAME` creates a page.",
            "/new feature user-auth",
            run="cdd_agent.commands.ticket_commands:create",
        ),
        TerminalFront(
            """
            cdd new feature user-auth
            cdd new bug "Login fails"
            cdd new feature "ユーザーログイン" --slug user-login
            cdd new documentation guide "How to deploy"
            """
        ),
        events="cdd_agent.commands.ticket_commands:new",
    ),
    Command(
        "list",
        Group.TICKETS,
        "List the tickets and their states",
        (
            argument(
                "type",
                "TYPE",
                "a type, such as bug",
                times=Times.OPTIONAL,
                offers="cdd_agent.commands.listing:TYPES",
            ),
            argument(
                "state",
                "STATE",
                "a state, such as failed or in-progress",
                times=Times.OPTIONAL,
                offers="cdd_agent.commands.listing:STATES",
            ),
            JSON,
        ),
        SlashFront(
            "List the tickets and their states. TYPE or STATE filters them.",
            "/list bug failed",
            any_time=True,
        ),
        TerminalFront("cdd list bug failed\ncdd list --json"),
        events="cdd_agent.commands.ticket_commands:list_tickets",
    ),
    Command(
        "tickets",
        Group.TICKETS,
        "Browse all tickets on a screen",
        slash=SlashFront(
            "Browse the tickets with their states, costs and next commands. Type to"
            " filter.",
            "/tickets",
            run="cdd_agent.commands.shell_commands:show_tickets",
            any_time=True,
        ),
    ),
    Command(
        "status",
        Group.TICKETS,
        "Show a ticket's progress",
        (OPTIONAL_TICKET, JSON),
        SlashFront(
            "Show the steps of a ticket and their results. Without a ticket, show the"
            " active one, or list all of them.",
            "/status feature-user-auth",
            run="cdd_agent.commands.ticket_commands:status",
            any_time=True,
        ),
        TerminalFront("cdd status\ncdd status feature-user-auth"),
        events="cdd_agent.commands.ticket_commands:status_events",
    ),
    Command(
        "criteria",
        Group.TICKETS,
        "Show the steps and tests per criterion",
        (OPTIONAL_TICKET_IN_SHELL, TICKET_IN_TERMINAL, JSON),
        SlashFront(
            "Show which steps, tests and files serve each acceptance criterion of a"
            " ticket, and which criteria the tests confirm.",
            "/criteria feature-user-auth",
            run="cdd_agent.commands.ticket_commands:criteria",
            any_time=True,
        ),
        TerminalFront(
            "cdd criteria feature-user-auth\ncdd criteria feature-user-auth --json"
        ),
        events="cdd_agent.commands.criteria:criteria_events",
    ),
)
