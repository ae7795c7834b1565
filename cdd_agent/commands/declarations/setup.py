"""Commands that set up a project and inspect it."""

from cdd_agent.commands.declaration import (
    Command,
    Front,
    Group,
    SlashFront,
    TerminalFront,
    argument,
    described_json,
    switch,
)

SETUP = (
    Command(
        "demo",
        Group.SETUP,
        "Watch a sample ticket run",
        (
            switch("--headless", "run without the shell"),
            described_json("print one JSON event a line; implies --headless"),
        ),
        terminal=TerminalFront(
            "cdd demo\ncdd demo --headless",
            run="cdd_agent.cli.demo:demo",
            interrupted="`cdd demo` starts again on a new copy.",
        ),
    ),
    Command(
        "init",
        Group.SETUP,
        "Make this folder a cdd project",
        (
            switch(
                "--templates",
                "copy the ticket templates to .cdd/templates for you to edit",
            ),
        ),
        SlashFront(
            "Create what a cdd project needs and does not have yet: a settings file, a"
            " folder for tickets, and AGENTS.md. Existing files stay unchanged.",
            "/init",
        ),
        TerminalFront("cdd init\ncdd init --templates -C ~/src/shop"),
        events="cdd_agent.commands.initialise:initialise_and_say_next",
    ),
    Command(
        "completion",
        Group.SETUP,
        "Print a completion script for a shell",
        (
            argument(
                "shell",
                "SHELL",
                "bash, zsh or fish; `tickets` prints the tickets, one a line",
                only=Front.TERMINAL,
            )._replace(choices=("bash", "zsh", "fish", "tickets")),
        ),
        terminal=TerminalFront(
            """
            cdd completion bash > ~/.local/share/bash-completion/completions/cdd
            cdd completion zsh > ~/.zfunc/_cdd   # a folder of your fpath
            cdd completion fish > ~/.config/fish/completions/cdd.fish
            # or for this terminal alone
            source <(cdd completion bash)
            """,
            run="cdd_agent.cli.completion_scripts.command:completion",
            notes=(
                "The script completes commands, flags, their values, tickets and"
                " files. Print it again after an update of cdd."
            ),
        ),
    ),
    Command(
        "doctor",
        Group.SETUP,
        "Show what is set up and what is missing",
        terminal=TerminalFront("cdd doctor", run="cdd_agent.cli.examining:doctor"),
    ),
    Command(
        "trust",
        Group.SETUP,
        "Review settings that need your trust",
        (
            switch("--give", "trust the current values of these settings"),
            switch("--revoke", "forget your answers for this project"),
        ),
        SlashFront(
            "Show the project's settings that need your trust, and whether they have"
            " it.",
            "/trust --give",
            any_time=True,
        ),
        TerminalFront(
            """
            cdd trust
            cdd trust --give     # use these settings from now on
            cdd trust --revoke   # ask about them again
            """
        ),
        events="cdd_agent.commands.trust_command:trust_events",
    ),
)
