"""Commands that work on tickets: spec, plan, run, checks, and copies elsewhere."""

from cdd_agent.commands.declaration import (
    JSON,
    MAX_ATTEMPTS,
    MODEL_FLAGS,
    OPTIONAL_TICKET_IN_SHELL,
    REPEAT_TO_CONTINUE,
    TICKET,
    TICKET_IN_TERMINAL,
    TICKET_NOTE,
    YES,
    Command,
    Front,
    Group,
    SlashFront,
    TerminalFront,
    Times,
    ValueKind,
    argument,
    described_json,
    option,
    switch,
)

PLAN_VERBS = ("show", "check")
"""Words that may precede the ticket of `cdd plan`."""
_TICKET_IN_SHELL = TICKET._replace(only=Front.SHELL)
_START_OVER = switch(
    "--start-over", "start again from the beginning; the earlier record is kept"
)
_REMOTE = argument(
    "remote",
    "REMOTE",
    "a git remote or an address (default: where the run came from, else origin)",
    times=Times.OPTIONAL,
)

WORK = (
    Command(
        "socrates",
        Group.WORK,
        "Work out a ticket's spec in a dialogue",
        (TICKET, _START_OVER, *MODEL_FLAGS),
        SlashFront(
            "Open Socrates on a ticket. It asks questions until the spec is complete;"
            " you approve before the spec is written.",
            "/socrates feature-user-auth",
            run="cdd_agent.commands.work_commands:socrates",
        ),
        TerminalFront(
            "cdd socrates feature-user-auth",
            notes="Opens the shell, where Socrates asks what the ticket leaves open.",
            opens_shell=True,
        ),
    ),
    Command(
        "plan",
        Group.WORK,
        "Turn a ticket's spec into a plan",
        (
            _TICKET_IN_SHELL,
            argument(
                "words",
                "SLUG",
                TICKET_NOTE,
                ValueKind.TICKET,
                Times.SOME,
                offers="cdd_agent.commands.declarations.work:PLAN_VERBS",
                only=Front.TERMINAL,
            ),
            described_json(
                "print one JSON event a line; show and check print one object"
            ),
            switch(
                "--yes",
                "write the plan even if its check finds errors",
                only=Front.TERMINAL,
            ),
            switch(
                "--regenerate",
                "replace the existing plan; completed steps stay",
                only=Front.TERMINAL,
            ),
            switch("--basic", "do not use a model", only=Front.TERMINAL),
            *MODEL_FLAGS,
        ),
        SlashFront(
            "Open the Planner on a ticket. It proposes a plan, or changes the existing"
            " one; nothing is written before you approve.",
            "/plan feature-user-auth",
            run="cdd_agent.commands.work_commands:plan",
        ),
        TerminalFront(
            """
            cdd plan feature-user-auth
            # without a model: one step for each acceptance criterion
            cdd plan feature-user-auth --basic
            # print the plan as cdd reads it
            cdd plan show feature-user-auth
            # check the plan
            cdd plan check feature-user-auth
            """,
            run="cdd_agent.cli.plan:plan",
            notes=(
                "Without the shell nothing is asked: assumptions of the model become"
                " risks in the plan. For a dialogue, open the shell with `cdd` and type"
                " /plan SLUG."
            ),
            exit_codes=((1, "the plan has errors and must be changed"),),
            usage="cdd plan [show | check] SLUG [OPTIONS]",
            interrupted=(
                "What was learnt is saved. Run the same command again to continue."
            ),
        ),
    ),
    Command(
        "exec",
        Group.WORK,
        "Carry out a ticket's plan, step by step",
        (
            _TICKET_IN_SHELL,
            argument(
                "slugs",
                "SLUG",
                TICKET_NOTE,
                ValueKind.TICKET,
                Times.ANY,
                only=Front.TERMINAL,
            ),
            option(
                "--all",
                "",
                "run all tickets that have a plan and no run in this tree",
                choices=("planned",),
                key="selection",
            ),
            option(
                "--jobs",
                "N",
                "how many tickets run at once (default: 3); of one ticket, how many"
                " steps (default: the setting `jobs`)",
                ValueKind.COUNT,
            ),
            option(
                "--on",
                "WHERE",
                "run on the workers of a Dask cluster: tcp://HOST:PORT,"
                " tls://HOST:PORT, or local",
                key="cluster",
            ),
            switch(
                "--stop-on-failure",
                "stop all tickets when one has ended and is not done",
                only=Front.TERMINAL,
            ),
            YES,
            JSON,
            *MODEL_FLAGS,
            MAX_ATTEMPTS,
            option(
                "--require",
                "",
                "verified: exit code 1 unless the tests of every step passed; checked:"
                " exit code 1 only if a step is unverified or skipped",
                choices=("verified", "checked", "off"),
            ),
            _START_OVER,
            switch(
                "--worktree",
                "work in a git worktree on the branch cdd/SLUG; your files stay"
                " unchanged until you land it",
            ),
            option(
                "--base",
                "COMMIT",
                "with --worktree: start the new tree at this commit (default: HEAD)",
            ),
            option(
                "--variant",
                "NAME",
                "with --worktree: make another run of the ticket, on the branch"
                " cdd/SLUG--NAME; --model then replaces all models of the settings",
                default="",
            ),
            switch(
                "--driven",
                "like --json, but another program answers the questions on standard"
                " input; the run stops when the input ends. See"
                " docs/reference/events.md",
                only=Front.TERMINAL,
            ),
            switch(
                "--ask-before-calls",
                "with --driven: ask before each model call, also without a budget",
                only=Front.TERMINAL,
            ),
        ),
        SlashFront(
            "Open the Executor on a ticket. It carries out the plan, one step for each"
            " Enter, and runs the step's check before the next one.",
            "/exec feature-user-auth",
            run="cdd_agent.commands.work_commands:execute",
        ),
        TerminalFront(
            """
            cdd exec feature-user-auth --yes
            cdd exec feature-user-auth --model openai/gpt-5 --max-attempts 5
            cdd exec feature-user-auth --require verified --json
            # run independent steps side by side
            cdd exec feature-user-auth --jobs 4
            cdd exec feature-user-auth --worktree && cdd land feature-user-auth
            # several tickets at once
            cdd exec feature-user-auth bug-login --jobs 2
            cdd exec --all planned --stop-on-failure
            # on several machines: see docs/how-to/other-machines.md
            cdd exec --all planned --on tcp://scheduler:8786
            CDD_API_BASE=http://127.0.0.1:8080/v1 \\
                cdd exec feature-user --model openai/qwen3-coder
            """,
            run="cdd_agent.cli.runs:execute",
            notes=(
                "In a terminal, all remaining steps run. Several tickets run at once,"
                " each in its own worktree."
            ),
        ),
    ),
    Command(
        "resume",
        Group.WORK,
        "Continue where you left off",
        (
            argument(
                "session",
                "SESSION",
                "a name in the list; `list` shows it (default: the last session)",
                ValueKind.SESSION,
                Times.OPTIONAL,
            ),
            *MODEL_FLAGS,
        ),
        SlashFront(
            "Reopen the last session with its transcript. `/resume list` lists the"
            " earlier sessions; `/resume NAME` reopens one of them.",
            "/resume list",
            run="cdd_agent.commands.sessions:resume",
        ),
        TerminalFront(
            """
            cdd resume
            cdd resume list
            cdd resume feature-user-auth
            """,
            notes="Opens the shell where you left it, like `cdd --resume`.",
            opens_shell=True,
        ),
    ),
    Command(
        "verify",
        Group.WORK,
        "Run the checks of completed steps again",
        (
            OPTIONAL_TICKET_IN_SHELL,
            TICKET_IN_TERMINAL,
            switch(
                "--strength",
                "count how many small faults in the code the tests notice",
            ),
            option(
                "--faults",
                "N",
                "at most N faults a step (default: the setting `strength_faults`, 30)",
                ValueKind.COUNT,
            ),
            option(
                "--seconds",
                "N",
                "at most N seconds a step (default: the setting `strength_seconds`,"
                " 300)",
                ValueKind.COUNT,
            ),
            JSON,
        ),
        SlashFront(
            "Run the checks of a ticket's completed steps again, on a copy of your"
            " files, and show which of them fail now.",
            "/verify feature-user-auth",
            run="cdd_agent.commands.work_commands:verify",
        ),
        TerminalFront(
            """
            cdd verify feature-user-auth
            cdd verify feature-user-auth --json
            git switch main && cdd verify feature-user-auth
            cdd verify feature-user-auth --strength
            cdd verify feature-user-auth --strength --faults 10 --seconds 60
            """,
            run="cdd_agent.cli.verify:verify",
            notes="Nothing is changed. See docs/reference/verification.md.",
            exit_codes=(
                (0, "all completed steps hold, or the strength was measured"),
                (1, "a check fails"),
            ),
            interrupted="Nothing was changed.",
        ),
    ),
    Command(
        "land",
        Group.WORK,
        "Merge a run's worktree into your branch",
        (
            TICKET,
            switch(
                "--rebase",
                "put the run's commits on top of your branch, without a merge",
            ),
            YES,
            JSON,
        ),
        SlashFront(
            "Merge a run's worktree into your branch. The result is checked in a"
            " separate tree first; if there is a conflict or a check fails, nothing"
            " changes.",
            "/land feature-user-auth",
            run="cdd_agent.commands.work_commands:land",
        ),
        TerminalFront(
            """
            cdd exec feature-user-auth --worktree && cdd land feature-user-auth
            cdd land feature-user-auth --rebase
            """,
            run="cdd_agent.cli.land:land",
            notes="See docs/how-to/several-tickets.md.",
            exit_codes=((1, "a conflict, or a check fails; nothing was changed"),),
            interrupted=REPEAT_TO_CONTINUE,
        ),
    ),
    Command(
        "board",
        Group.WORK,
        "Show this project's runs and worktrees",
        (JSON,),
        SlashFront(
            "Show the runs of this project on this machine: progress, time, cost, and"
            " what each one waits for. Worktrees that wait for `/land` are listed too.",
            "/board",
            run="cdd_agent.commands.work_commands:show_board",
            any_time=True,
        ),
        TerminalFront(
            "cdd board\ncdd board --json", run="cdd_agent.cli.board:show_board"
        ),
    ),
    Command(
        "compare",
        Group.WORK,
        "Compare models on the same tickets",
        (
            argument("slugs", "SLUG", TICKET_NOTE, ValueKind.TICKET, Times.ANY),
            option("--models", "A,B,C", "model strings, separated by commas"),
            option(
                "--jobs",
                "N",
                "how many runs at the same time (default: 3)",
                ValueKind.COUNT,
            ),
            MAX_ATTEMPTS,
            option(
                "--api-base",
                "URL",
                "the address of your own server that has all the models",
            ),
            YES,
            switch(
                "--clear",
                "remove the runs, trees and branches of all comparisons, or of these"
                " tickets",
            ),
            described_json(
                "print one JSON event a line; the last one is the comparison"
            ),
        ),
        terminal=TerminalFront(
            """
            cdd compare feature-user-auth \\
                --models openai/gpt-5,anthropic/claude-sonnet-5-5
            cdd compare feature-user-auth bug-login --jobs 4 \\
                --models openai/gpt-5,ollama/qwen3-coder
            git diff cdd/feature-user-auth--compare-openai-gpt-5 \\
                cdd/feature-user-auth--compare-ollama-qwen3-coder
            # remove the trees and branches of all comparisons
            cdd compare --clear
            """,
            run="cdd_agent.cli.compare:compare",
            notes=(
                "Each run has its own worktree; the ticket's normal run stays"
                " unchanged. Finished runs are not repeated."
                " See docs/how-to/several-tickets.md."
            ),
            exit_codes=((0, "every run reached its end"),),
        ),
    ),
    Command(
        "push",
        Group.WORK,
        "Send a run to a git remote",
        (
            TICKET,
            _REMOTE,
            switch(
                "--take-over",
                "replace another run there, even if another machine holds it",
            ),
            switch(
                "--dry-run",
                "only list what would be sent and what would not, and send nothing",
            ),
            JSON,
        ),
        terminal=TerminalFront(
            """
            cdd push feature-user-auth                 # to origin
            cdd push feature-user-auth --dry-run       # send nothing
            cdd push feature-user-auth git@example.org:team/runs.git
            cdd push feature-user-auth --take-over     # replace the run there
            """,
            run="cdd_agent.cli.travel:push",
            notes=(
                "Sends the ticket, its state, record and checkpoints to"
                " refs/cdd/runs/SLUG. See docs/how-to/other-machines.md."
            ),
            interrupted=REPEAT_TO_CONTINUE,
        ),
    ),
    Command(
        "pull",
        Group.WORK,
        "Fetch a run from a git remote",
        (
            TICKET._replace(note="the ticket's whole slug"),
            _REMOTE,
            switch("--take-over", "take the run although another machine holds it"),
            switch("--replace", "first rename the run of this ticket that exists here"),
            JSON,
        ),
        terminal=TerminalFront(
            """
            cdd pull feature-user-auth && cdd exec feature-user-auth
            cdd pull feature-user-auth upstream --json
            cdd pull feature-user-auth --take-over     # the other machine is dead
            """,
            run="cdd_agent.cli.travel:pull",
            notes=(
                "Your project files become those of the run. If changes of yours would"
                " be lost, nothing is done."
            ),
            interrupted=REPEAT_TO_CONTINUE,
        ),
    ),
)
