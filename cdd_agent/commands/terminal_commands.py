"""All commands of `cdd`: their arguments, and the functions that carry them out.

The parser reads only this module and the catalogue. The module of a function is
imported when the function runs.
"""

from pathlib import Path

from cdd_agent.commands.terminal import (
    JSON,
    MODEL_FLAGS,
    OPTIONAL_SLUG,
    SLUG,
    SLUG_HELP,
    Argument,
    TerminalCommand,
    at_least_one,
    flag,
)

_STEP = Argument(
    "--step",
    "the number of the step in the plan (default: the last step)",
    metavar="N",
)
_REMOTE = Argument(
    "remote",
    "a git remote or an address (default: where the run came from, else origin)",
    metavar="REMOTE",
    nargs="?",
)
_AGAIN = "Nothing is lost. Run the same command again to continue."

TERMINAL_COMMANDS = {
    "demo": TerminalCommand(
        """
        cdd demo
        cdd demo --headless
        """,
        flag("--headless", "run without the shell"),
        flag("--json", "print one JSON event a line; implies --headless"),
        run="cdd_agent.cli.demo:demo",
        interrupted="`cdd demo` starts again on a new copy.",
    ),
    "init": TerminalCommand(
        "cdd init\ncdd init --templates -C ~/src/shop",
        flag(
            "--templates",
            "copy the ticket templates to .cdd/templates for you to edit",
        ),
        of_project="cdd_agent.commands.initialise:initialise_and_say_next",
    ),
    "new": TerminalCommand(
        """
        cdd new feature user-auth
        cdd new bug "Login fails"
        cdd new feature "ユーザーログイン" --slug user-login
        cdd new documentation guide "How to deploy"
        """,
        Argument(
            "type",
            "feature, bug, enhancement, spike, refactor or documentation",
            metavar="TYPE",
        ),
        Argument(
            "kind", "for documentation: guide or feature", metavar="KIND", nargs="?"
        ),
        Argument(
            "name",
            "a few words: the title, and the name of the folder or file",
            metavar="NAME",
        ),
        Argument(
            "--slug",
            "the name of the ticket's folder (default: made from NAME)",
            metavar="SLUG",
        ),
        of_project="cdd_agent.commands.ticket_commands:new",
    ),
    "list": TerminalCommand(
        "cdd list bug failed\ncdd list --json",
        Argument(
            "words",
            "a type (bug), a state (failed, in-progress), or both",
            metavar="FILTER",
            nargs="*",
        ),
        JSON,
        of_project="cdd_agent.commands.ticket_commands:list_tickets",
    ),
    "status": TerminalCommand(
        "cdd status\ncdd status feature-user-auth",
        OPTIONAL_SLUG,
        JSON,
        of_project="cdd_agent.commands.ticket_commands:status_events",
    ),
    "socrates": TerminalCommand(
        """
        cdd socrates feature-user-auth

        Opens the shell, where Socrates asks what the ticket leaves open.
        """,
        SLUG,
        flag("--start-over", "start the dialogue again from the beginning"),
        *MODEL_FLAGS,
        run="cdd_agent.cli.shell:open_shell_with",
    ),
    "plan": TerminalCommand(
        """
        cdd plan feature-user-auth
        # without a model: one step for each acceptance criterion
        cdd plan feature-user-auth --basic
        # print the plan as cdd reads it
        cdd plan show feature-user-auth
        # check the plan: exit code 1 if it must be changed
        cdd plan check feature-user-auth

        Without the shell nothing is asked: assumptions of the model become risks in the
        plan. For a dialogue, open the shell with `cdd` and type /plan SLUG.
        """,
        Argument("words", SLUG_HELP, metavar="SLUG", nargs="+"),
        flag("--json", "print one JSON event a line; show and check print one object"),
        flag("--yes", "write the plan even if its check finds errors"),
        flag("--regenerate", "replace the existing plan; completed steps stay"),
        flag("--basic", "do not use a model"),
        *MODEL_FLAGS,
        usage="cdd plan [show | check] SLUG [OPTIONS]",
        interrupted="What was learnt is saved. Run the same command again to continue.",
        run="cdd_agent.cli.plan:plan",
    ),
    "exec": TerminalCommand(
        """
        cdd exec feature-user-auth --yes
        cdd exec feature-user-auth --model openai/gpt-5 --max-attempts 5
        cdd exec feature-user-auth --require verified --json
        # run independent steps side by side
        cdd exec feature-user-auth --jobs 4
        cdd exec feature-user-auth --worktree && cdd land feature-user-auth
        # several tickets at once, each in its own worktree
        cdd exec feature-user-auth bug-login --jobs 2
        cdd exec --all planned --stop-on-failure
        # on several machines: see docs/cluster.md
        cdd exec --all planned --on tcp://scheduler:8786
        CDD_API_BASE=http://127.0.0.1:8080/v1 \\
            cdd exec feature-user --model openai/qwen3-coder
        """,
        Argument(
            "slugs",
            f"{SLUG_HELP}; several tickets run at once",
            metavar="SLUG",
            nargs="*",
        ),
        Argument(
            "--all",
            "run all tickets that have a plan and are not done",
            choices=("planned",),
        ),
        Argument(
            "--jobs",
            "several tickets: how many run at once (default: 3); one ticket: how many"
            " steps run at once, each in its own worktree (default: setting `jobs`)",
            type=at_least_one,
            metavar="N",
        ),
        Argument(
            "--on",
            "run the tickets on the workers of a Dask cluster: tcp://HOST:PORT,"
            " tls://HOST:PORT, or local",
            metavar="WHERE",
        ),
        flag(
            "--stop-on-failure",
            "stop all tickets as soon as one is not done in the end",
        ),
        flag("--yes", "approve everything, as `approval: auto` does"),
        flag("--json", "print one JSON event a line, and nothing else"),
        *MODEL_FLAGS,
        Argument(
            "--max-attempts",
            "attempts for each step, including the first",
            type=int,
            metavar="N",
        ),
        Argument(
            "--require",
            "verified: exit code 1 unless the tests of every step passed; checked: exit"
            " code 1 only if a step is unverified or skipped",
            choices=("verified", "checked", "off"),
        ),
        flag("--start-over", "start at the first step; the old record is kept"),
        flag(
            "--worktree",
            "work in a git worktree on the branch cdd/SLUG; your files stay unchanged"
            " until `cdd land`",
        ),
        Argument(
            "--base",
            "with --worktree: start the new tree at this commit (default: HEAD)",
            metavar="COMMIT",
        ),
        Argument(
            "--variant",
            "with --worktree: make another run of the ticket, on the branch"
            " cdd/SLUG--NAME; --model then replaces all models of the settings",
            metavar="NAME",
            default="",
        ),
        flag(
            "--driven",
            "like --json, but another program answers the questions on standard input;"
            " the run stops when the input ends. See docs/driving.md",
        ),
        run="cdd_agent.cli.runs:execute",
    ),
    "resume": TerminalCommand(
        """
        cdd resume
        cdd resume list
        cdd resume feature-user-auth

        Opens the shell where you left it, like `cdd --resume`.
        """,
        Argument(
            "session",
            "a name of the list; `list` shows it (default: the last session)",
            metavar="SESSION",
            nargs="?",
        ),
        *MODEL_FLAGS,
        run="cdd_agent.cli.shell:open_shell_with",
    ),
    "criteria": TerminalCommand(
        "cdd criteria feature-user-auth\ncdd criteria feature-user-auth --json",
        SLUG,
        JSON,
        of_project="cdd_agent.commands.criteria:criteria_events",
    ),
    "verify": TerminalCommand(
        """
        cdd verify feature-user-auth
        cdd verify feature-user-auth --json
        git switch main && cdd verify feature-user-auth
        # count how many small faults in the code the tests notice
        cdd verify feature-user-auth --strength
        cdd verify feature-user-auth --strength --faults 10 --seconds 60

        The checks run on a copy of your files and change nothing. Exit codes: 0 all
        completed steps hold, 1 a check fails, 2 bad input. A strength score does not
        change the exit code. See docs/verify.md and docs/strength.md.
        """,
        SLUG,
        flag("--strength", "measure how many small faults the tests notice"),
        Argument(
            "--faults",
            "at most N faults a step (default: the setting `strength_faults`, 30)",
            type=at_least_one,
            metavar="N",
        ),
        Argument(
            "--seconds",
            "at most N seconds a step (default: the setting `strength_seconds`, 300)",
            type=at_least_one,
            metavar="N",
        ),
        JSON,
        interrupted="Nothing was changed.",
        run="cdd_agent.cli.verify:verify",
    ),
    "board": TerminalCommand(
        "cdd board\ncdd board --json",
        JSON,
        run="cdd_agent.cli.board:show",
    ),
    "undo": TerminalCommand(
        """
    cdd undo feature-user-auth
    cdd undo feature-user-auth --step 2  # step 2 and all later steps
    cdd redo feature-user-auth           # undo the undo
    cdd undo                             # the last cdd apply, cdd run or chat turn
    cdd undo --list                      # list all changes with their names
    cdd undo change-7                    # a change of the list
    """,
        OPTIONAL_SLUG,
        JSON,
        _STEP,
        flag("--list", "list the last changes with their names; undo nothing"),
        run="cdd_agent.cli.runs:undo",
    ),
    "redo": TerminalCommand(
        "cdd redo feature-user-auth\ncdd redo",
        OPTIONAL_SLUG,
        JSON,
        run="cdd_agent.cli.runs:redo",
    ),
    "diff": TerminalCommand(
        """
        cdd diff feature-user-auth
        cdd diff feature-user-auth --step 2 > step-2.patch
        cdd diff
        """,
        OPTIONAL_SLUG,
        JSON,
        _STEP,
        run="cdd_agent.cli.runs:diff",
    ),
    "push": TerminalCommand(
        """
    cdd push feature-user-auth                 # to origin
    cdd push feature-user-auth git@example.org:team/runs.git
    cdd push feature-user-auth --take-over     # replace the run there

    Sends the ticket, its state, record and checkpoints to refs/cdd/runs/SLUG. See
    docs/travelling.md.
    """,
        SLUG,
        _REMOTE,
        flag(
            "--take-over", "replace another run there, even if another machine holds it"
        ),
        JSON,
        interrupted=_AGAIN,
        run="cdd_agent.cli.travel:push",
    ),
    "pull": TerminalCommand(
        """
    cdd pull feature-user-auth && cdd exec feature-user-auth
    cdd pull feature-user-auth upstream --json
    cdd pull feature-user-auth --take-over         # the other machine is dead

    Your project files become those of the run. If changes of yours would be lost,
    nothing is done.
    """,
        Argument("slug", "the ticket's slug", metavar="SLUG"),
        _REMOTE,
        flag("--take-over", "take the run although another machine holds it"),
        flag("--replace", "rename an existing run of the ticket here out of the way"),
        JSON,
        interrupted=_AGAIN,
        run="cdd_agent.cli.travel:pull",
    ),
    "land": TerminalCommand(
        """
    cdd exec feature-user-auth --worktree && cdd land feature-user-auth
    # put the run's commits on top of yours, without a merge commit
    cdd land feature-user-auth --rebase

    The result is built and checked in a separate tree. If there is a conflict or a
    check fails, nothing changes and the exit code is 1. See docs/worktrees.md.
    """,
        SLUG,
        flag(
            "--rebase",
            "put the run's commits on top of your branch instead of merging",
        ),
        flag("--yes", "approve everything, as `approval: auto` does"),
        JSON,
        interrupted=_AGAIN,
        run="cdd_agent.cli.land:land",
    ),
    "compare": TerminalCommand(
        """
    cdd compare feature-user-auth --models openai/gpt-5,anthropic/claude-sonnet-5-5
    cdd compare feature-user-auth bug-login --jobs 4 \\
        --models openai/gpt-5,ollama/qwen3-coder
    git diff cdd/feature-user-auth--compare-openai-gpt-5 \\
        cdd/feature-user-auth--compare-ollama-qwen3-coder
    cdd compare --clear         # remove the trees and branches of all comparisons

    Each run has its own worktree; the ticket's normal run stays unchanged. Finished
    runs are not repeated. Exit code 0: every run reached its end. See
    docs/many-tickets.md.
    """,
        Argument("slugs", SLUG_HELP, metavar="SLUG", nargs="*"),
        Argument("--models", "model strings, separated by commas", metavar="A,B,C"),
        Argument(
            "--jobs",
            "how many runs at the same time (default: 3)",
            type=at_least_one,
            metavar="N",
        ),
        Argument(
            "--max-attempts",
            "attempts for each step, including the first",
            type=int,
            metavar="N",
        ),
        Argument(
            "--api-base",
            "the address of your own server that has all the models",
            metavar="URL",
        ),
        flag("--yes", "approve everything, as `approval: auto` does"),
        flag(
            "--clear",
            "remove the runs, trees and branches of all comparisons, or of these"
            " tickets",
        ),
        flag("--json", "print one JSON event a line; the last one is the comparison"),
        run="cdd_agent.cli.compare:compare",
    ),
    "run": TerminalCommand(
        """
        cdd run plan.yaml
        cdd run plan.yaml --yes --json > report.json
        cat plan.yaml | cdd run - --root ~/src/shop
        cdd undo   # undo what the actions wrote

        docs/action-plan.md describes the format. In short:
        - execute: "pytest -q"
        - action: create_file
          file_path: hello.txt
          content: "hi"
        """,
        Argument("plan", "the file, or - for standard input", metavar="PLAN.yaml"),
        Argument(
            "--root",
            "the only folder that actions may change; its settings are used (default:"
            " the project)",
            type=Path,
            metavar="DIR",
        ),
        flag("--yes", "approve every action"),
        one_of=(
            flag("--json", "print the report as one JSON object, and nothing else"),
            flag("--yaml", "print the report as YAML"),
        ),
        interrupted="The finished actions stay; the others were not started.",
        run="cdd_agent.cli.run:run",
    ),
    "apply": TerminalCommand(
        """
    cdd apply reply.md --dry-run
    cdd apply reply.md --root ~/src/shop --json
    pbpaste | cdd apply -
    cdd undo   # undo it

    Reads whole files in code blocks, search/replace blocks, unified diffs, `*** Begin
    Patch`, lists of actions and tool calls written as text, also mixed. See
    docs/replies.md.
    Exit codes: 0 applied, 1 an edit failed and nothing was written, 2 bad input.
    """,
        Argument(
            "reply",
            "a file with the reply, or - for standard input",
            metavar="REPLY",
        ),
        Argument(
            "--root",
            "the only folder that edits may change (default: the project)",
            type=Path,
            metavar="DIR",
        ),
        flag("--dry-run", "show the changes as a diff and write nothing"),
        flag(
            "--json",
            "print one JSON object: created, modified, deleted, failed, explanation,"
            " blocks",
        ),
        interrupted="No edit was left half done.",
        run="cdd_agent.cli.apply:apply",
    ),
    "model": TerminalCommand(
        """
        cdd model
        cdd model anthropic/claude-sonnet-5-5 --save
        cdd model openai/qwen3-coder http://127.0.0.1:8080/v1 --save

        Opens the shell with your models. Keys come from the environment, such as
        OPENAI_API_KEY. See docs/models.md.
        """,
        Argument(
            "words",
            "a model string, a number of the list, or a role with its model",
            metavar="MODEL",
            nargs="*",
        ),
        flag("--save", "keep the model for this project, in .cdd/config.yaml"),
        run="cdd_agent.cli.shell:open_shell_with",
    ),
    "context": TerminalCommand(
        """
    cdd context
    cdd context README.md src --json
    cdd context "where is the rate limit handled?"
    cdd context "retry with backoff" src/http.py --tokens 4000

    Arguments that are not paths are words: cdd prints the code that they are about,
    and why it was chosen. Paths given with words are always shown.
    """,
        Argument(
            "paths",
            "files and folders to show, or words to find code by",
            metavar="PATH|WORDS",
            nargs="*",
        ),
        Argument(
            "--tokens",
            "with words: at most N tokens of code (default: 8000)",
            metavar="N",
            type=int,
            default=None,
        ),
        flag("--json", "print one JSON object"),
        run="cdd_agent.cli.context:context",
    ),
    "serve": TerminalCommand(
        """
        cdd serve
        cdd serve --open
        cdd serve --host 0.0.0.0 --port 8000
        cdd -C project --model ollama/qwen3 serve
        """,
        Argument(
            "--host",
            "the address to listen on (default: only this computer can connect)",
            default="127.0.0.1",
        ),
        Argument(
            "--port",
            "the port; 0 chooses a free one (default: 8000)",
            metavar="N",
            type=int,
            default=8000,
        ),
        flag("--open", "open the page in your browser"),
        run="cdd_agent.cli.serve:serve",
    ),
    "trust": TerminalCommand(
        """
        cdd trust
        cdd trust --give     # use these settings from now on
        cdd trust --revoke   # ask about them again
        """,
        flag("--give", "trust these settings as they are now"),
        flag("--revoke", "forget your answers for this project"),
        of_project="cdd_agent.commands.trust_command:trust_events",
    ),
    "doctor": TerminalCommand(
        "cdd doctor",
        run="cdd_agent.cli.doctor:doctor",
    ),
}
