"""All commands of `cdd`: what can be typed, and the function that carries it out.

The parser reads only this module; the function's module is imported when it runs.
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
    "the step, as the plan numbers it (default: the last one)",
    metavar="N",
)
_REMOTE = Argument(
    "remote",
    "a git remote, or an address (default: the one it last came from, else origin)",
    metavar="REMOTE",
    nargs="?",
)
_AGAIN = "Nothing is lost; the same command goes on from here."

TERMINAL_COMMANDS = {
    "demo": TerminalCommand(
        "see the main job on a sample project",
        """
        cdd demo
        cdd demo --headless
        """,
        flag("--headless", "without the shell"),
        flag("--json", "one event a line; implies --headless"),
        run="cdd_agent.cli.demo:demo",
        interrupted="`cdd demo` starts again from the beginning, on a new copy.",
    ),
    "init": TerminalCommand(
        "make this project a cdd project",
        "cdd init\ncdd init --templates -C ~/src/shop",
        flag(
            "--templates",
            "copy the templates for tickets to .cdd/templates, to be changed",
        ),
        of_project="cdd_agent.commands.initialise:initialise",
    ),
    "new": TerminalCommand(
        "make a ticket, or a page of documentation",
        """
        cdd new feature user-auth
        cdd new bug "Login fails"
        cdd new feature "ユーザーログイン" --slug user-login
        cdd new documentation guide "How to deploy"
        """,
        Argument(
            "type",
            "feature, bug, enhancement, spike, refactor; or documentation",
            metavar="TYPE",
        ),
        Argument(
            "kind", "of documentation: guide or feature", metavar="KIND", nargs="?"
        ),
        Argument(
            "name",
            "in a few words; it becomes the title, and the name of a folder or file",
            metavar="NAME",
        ),
        Argument(
            "--slug",
            "the name of the ticket's folder, if not made from NAME",
            metavar="SLUG",
        ),
        of_project="cdd_agent.commands.ticket_commands:new",
    ),
    "list": TerminalCommand(
        "list the tickets and how far each is",
        "cdd list bug failed\ncdd list --json",
        Argument(
            "words",
            "only those of a type (bug), in a state (failed, in-progress), or both",
            metavar="FILTER",
            nargs="*",
        ),
        JSON,
        of_project="cdd_agent.commands.ticket_commands:list_tickets",
    ),
    "status": TerminalCommand(
        "show how far a ticket is",
        "cdd status\ncdd status feature-user-auth",
        OPTIONAL_SLUG,
        JSON,
        of_project="cdd_agent.commands.ticket_commands:status_events",
    ),
    "plan": TerminalCommand(
        "make, show or check a ticket's plan",
        """
        cdd plan feature-user-auth
        # without a model: a step for each acceptance criterion
        cdd plan feature-user-auth --basic
        # the plan as it was read
        cdd plan show feature-user-auth
        # compile it: exit code 1 where it has to be changed
        cdd plan check feature-user-auth

        Nobody is asked: what the model assumes is written into the plan's risks. In the
        shell, `/plan SLUG` is a dialogue.
        """,
        Argument("words", SLUG_HELP, metavar="SLUG", nargs="+"),
        flag("--json", "one event a line; of show and check, one JSON object"),
        flag("--yes", "write the plan also where compiling it finds errors"),
        flag("--regenerate", "in the place of a plan that is there; done steps stay"),
        flag("--basic", "without a model"),
        *MODEL_FLAGS,
        usage=(
            "cdd plan [show | check] SLUG [--json] [--yes] [--regenerate] [--basic]"
            " [--model M] [-C DIR]"
        ),
        interrupted="What was learnt is kept; the same command goes on from here.",
        run="cdd_agent.cli.plan:plan",
    ),
    "exec": TerminalCommand(
        "carry out a ticket's plan to its end",
        """
        cdd exec feature-user-auth --yes
        cdd exec feature-user-auth --model openai/gpt-5 --max-attempts 5
        cdd exec feature-user-auth --require verified --json
        # steps that need not wait for each other, at once
        cdd exec feature-user-auth --jobs 4
        cdd exec feature-user-auth --worktree && cdd land feature-user-auth
        # several at once, each in a tree of its own
        cdd exec feature-user-auth bug-login --jobs 2
        cdd exec --all planned --stop-on-failure
        # on many machines, see docs/cluster.md
        cdd exec --all planned --on tcp://scheduler:8786
        CDD_API_BASE=http://127.0.0.1:8080/v1 \\
            cdd exec feature-user --model openai/qwen3-coder
        """,
        Argument(
            "slugs",
            f"{SLUG_HELP}; several are carried out at once",
            metavar="SLUG",
            nargs="*",
        ),
        Argument(
            "--all",
            "all tickets whose plan is not carried out yet",
            choices=("planned",),
        ),
        Argument(
            "--jobs",
            "of several tickets: how many at once (default: 3); of one: steps that"
            " run at once, each in a tree of its own until it is done (default: `jobs`"
            " of the config)",
            type=at_least_one,
            metavar="N",
        ),
        Argument(
            "--on",
            "tickets on the workers of a Dask cluster: tcp://HOST:PORT,"
            " tls://HOST:PORT, or local",
            metavar="WHERE",
        ),
        flag(
            "--stop-on-failure",
            "when one of several tickets is not done in the end, stop the others",
        ),
        flag("--yes", "approve everything (`approval: auto`)"),
        flag("--json", "one event a line, nothing else on standard output"),
        *MODEL_FLAGS,
        Argument(
            "--max-attempts",
            "model attempts a step, the first included",
            type=int,
            metavar="N",
        ),
        Argument(
            "--require",
            "verified: a step fails the run (exit code 1) unless its tests have"
            " passed; checked: only if it is unverified or skipped, so an exit code"
            " and old failures are enough",
            choices=("verified", "checked", "off"),
        ),
        flag("--start-over", "from the first step; the old run's record is kept"),
        flag(
            "--worktree",
            "in a git worktree on the branch cdd/SLUG, which leaves your files alone;"
            " see `cdd land`",
        ),
        Argument(
            "--base",
            "with --worktree: the commit at which a new tree begins (default: HEAD)",
            metavar="COMMIT",
        ),
        Argument(
            "--variant",
            "with --worktree: another run of the ticket, on the branch"
            " cdd/SLUG--NAME; --model replaces all models of the settings in it",
            metavar="NAME",
            default="",
        ),
        flag(
            "--driven",
            "as --json, and another program answers the run's questions on standard"
            " input; its end stops the run. See docs/driving.md",
        ),
        run="cdd_agent.cli.runs:execute",
    ),
    "criteria": TerminalCommand(
        "show which steps, tests and files serve each acceptance criterion",
        "cdd criteria feature-user-auth\ncdd criteria feature-user-auth --json",
        SLUG,
        JSON,
        of_project="cdd_agent.commands.criteria:criteria_events",
    ),
    "verify": TerminalCommand(
        "run the checks of a ticket's completed steps again, and show what no longer"
        " holds",
        """
        cdd verify feature-user-auth
        cdd verify feature-user-auth --json
        git switch main && cdd verify feature-user-auth
        # how many small faults in the lines of its steps do its tests notice?
        cdd verify feature-user-auth --strength
        cdd verify feature-user-auth --strength --faults 10 --seconds 60

        The checks run on a copy of your files, and change nothing of yours. Exit codes:
        0 all completed steps hold, 1 one of them does not, 2 bad input. A score never
        changes the exit code. See docs/verify.md and docs/strength.md.
        """,
        SLUG,
        flag("--strength", "measure the tests with small faults instead"),
        Argument(
            "--faults",
            "of a step at most (default: `strength_faults` of the config, 30)",
            type=at_least_one,
            metavar="N",
        ),
        Argument(
            "--seconds",
            "for the faults of a step (default: `strength_seconds` of the config, 300)",
            type=at_least_one,
            metavar="N",
        ),
        JSON,
        interrupted="Nothing was changed.",
        run="cdd_agent.cli.verify:verify",
    ),
    "board": TerminalCommand(
        "show the runs of this project: how far each is, what it took, what it waits"
        " for",
        "cdd board\ncdd board --json",
        JSON,
        run="cdd_agent.cli.board:show",
    ),
    "undo": TerminalCommand(
        "go back to before a ticket's last step, or undo the last change outside of"
        " tickets",
        """
    cdd undo feature-user-auth
    cdd undo feature-user-auth --step 2  # step 2 and all that were carried out after it
    cdd redo feature-user-auth           # undo the undo
    cdd undo                             # the last `cdd apply`, `cdd run`, turn of chat
    cdd undo --list                      # which ones there are, and their files
    """,
        OPTIONAL_SLUG,
        JSON,
        _STEP,
        flag("--list", "show the last changes outside of tickets, and undo nothing"),
        run="cdd_agent.cli.runs:undo",
    ),
    "redo": TerminalCommand(
        "undo the last undo, of a ticket or outside of tickets",
        "cdd redo feature-user-auth\ncdd redo",
        OPTIONAL_SLUG,
        JSON,
        run="cdd_agent.cli.runs:redo",
    ),
    "diff": TerminalCommand(
        "show what a ticket's last step changed, or the last change outside of tickets",
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
        "send a ticket's run to a git remote, to go on elsewhere",
        """
    cdd push feature-user-auth                 # to origin
    cdd push feature-user-auth git@example.org:team/runs.git
    cdd push feature-user-auth --take-over     # replace what is there, whoever holds it

    The ticket, its state, record and checkpoints go to refs/cdd/runs/SLUG; see
    docs/travelling.md.
    """,
        SLUG,
        _REMOTE,
        flag(
            "--take-over", "also where another run is there, or somebody else holds it"
        ),
        JSON,
        interrupted=_AGAIN,
        run="cdd_agent.cli.travel:push",
    ),
    "pull": TerminalCommand(
        "take a ticket's run from a git remote, to go on here",
        """
    cdd pull feature-user-auth && cdd exec feature-user-auth
    cdd pull feature-user-auth upstream --json
    cdd pull feature-user-auth --take-over         # the machine that holds it is dead

    The project's files become what they were there; where that would lose something of
    yours, nothing is done.
    """,
        Argument("slug", "the ticket's slug", metavar="SLUG"),
        _REMOTE,
        flag("--take-over", "also while somebody else holds it: that machine is dead"),
        flag("--replace", "set aside another run of the ticket that is here"),
        JSON,
        interrupted=_AGAIN,
        run="cdd_agent.cli.travel:pull",
    ),
    "land": TerminalCommand(
        "bring a run over from its own tree: merge, check, and only then count it"
        " landed",
        """
    cdd exec feature-user-auth --worktree && cdd land feature-user-auth
    # the run's commits on top of yours, no merge commit
    cdd land feature-user-auth --rebase

    The result is made and checked in a tree beside yours. A conflict, or a check that
    fails, changes nothing: exit code 1. See docs/worktrees.md.
    """,
        SLUG,
        flag(
            "--rebase",
            "put the run's commits on top of your branch, instead of merging",
        ),
        flag("--yes", "approve everything (`approval: auto`)"),
        JSON,
        interrupted="Nothing is lost; the same command goes on from here.",
        run="cdd_agent.cli.land:land",
    ),
    "compare": TerminalCommand(
        "carry tickets out by several models beside each other, and compare",
        """
    cdd compare feature-user-auth --models openai/gpt-5,anthropic/claude-sonnet-4-5
    cdd compare feature-user-auth bug-login --jobs 4 \\
        --models openai/gpt-5,ollama/qwen3-coder
    git diff cdd/feature-user-auth--compare-openai-gpt-5 \\
        cdd/feature-user-auth--compare-ollama-qwen3-coder
    cdd compare --clear         # remove the trees and branches of all comparisons

    Each run has a tree of its own; a run of the ticket itself is left alone. A run that
    is done or has failed is not made again. Exit code 0: every run came to its end. See
    docs/many-tickets.md.
    """,
        Argument("slugs", SLUG_HELP, metavar="SLUG", nargs="*"),
        Argument(
            "--models", "model strings, with commas between them", metavar="A,B,C"
        ),
        Argument(
            "--jobs",
            "how many runs at once (default: 3)",
            type=at_least_one,
            metavar="N",
        ),
        Argument(
            "--max-attempts",
            "model attempts a step, the first included",
            type=int,
            metavar="N",
        ),
        Argument(
            "--api-base",
            "the endpoint, for a server of your own that has all the models",
            metavar="URL",
        ),
        flag("--yes", "approve everything (`approval: auto`)"),
        flag(
            "--clear",
            "remove the runs, trees and branches of comparisons, of these tickets or"
            " of all",
        ),
        flag("--json", "one event a line, the comparison in the last"),
        run="cdd_agent.cli.compare:compare",
    ),
    "run": TerminalCommand(
        "carry out an action plan: a list of actions in YAML",
        """
        cdd run plan.yaml
        cdd run plan.yaml --yes --json > report.json
        cat plan.yaml | cdd run - --root ~/src/shop
        cdd undo   # takes back what its actions wrote

        The format is in docs/action-plan.md. In short:
        - execute: "pytest -q"
        - action: create_file
          file_path: hello.txt
          content: "hi"
        """,
        Argument(
            "plan", "the plan; - reads it from standard input", metavar="PLAN.yaml"
        ),
        Argument(
            "--root",
            "the folder that no action leaves; its own settings hold (default: the"
            " project)",
            type=Path,
            metavar="DIR",
        ),
        flag("--yes", "do not ask before each action"),
        one_of=(
            flag("--json", "the report as one JSON object, nothing else on stdout"),
            flag("--yaml", "the report as YAML"),
        ),
        interrupted="What was done is done; the rest was not begun.",
        run="cdd_agent.cli.run:run",
    ),
    "apply": TerminalCommand(
        "apply one saved reply of a model, all of it or nothing",
        """
    cdd apply reply.md --dry-run
    cdd apply reply.md --root ~/src/shop --json
    pbpaste | cdd apply -
    cdd undo   # takes it back

    Whole files in code blocks, search/replace blocks, unified diffs, `*** Begin Patch`,
    lists of actions and calls of tools written as text are read, also mixed; see
    docs/replies.md.
    Exit codes: 0 applied, 1 an edit failed and nothing was written, 2 bad input.
    """,
        Argument(
            "reply",
            "the reply as text; - reads it from standard input",
            metavar="REPLY",
        ),
        Argument(
            "--root",
            "the folder that no edit leaves (default: the project)",
            type=Path,
            metavar="DIR",
        ),
        flag("--dry-run", "write nothing; show the changes as a diff"),
        flag(
            "--json",
            "created, modified, deleted, failed, explanation and blocks, as one JSON"
            " object",
        ),
        interrupted="Nothing was left half done.",
        run="cdd_agent.cli.apply:apply",
    ),
    "context": TerminalCommand(
        "print the project context that a model would get",
        """
    cdd context
    cdd context README.md src --json
    cdd context "where is the rate limit handled?"
    cdd context "retry with backoff" src/http.py --tokens 4000

    What is no path of the project and has a space, or neither a dot nor a slash, is
    words: the code that they are about is printed, with the reasons. Paths beside words
    are shown in any case.
    """,
        Argument(
            "paths",
            "files and folders to include, or words to find code by",
            metavar="PATH|WORDS",
            nargs="*",
        ),
        Argument(
            "--tokens",
            "with words: how many tokens of code at most (8000)",
            metavar="N",
            type=int,
            default=None,
        ),
        flag("--json", "one JSON object"),
        run="cdd_agent.cli.context:context",
    ),
    "serve": TerminalCommand(
        "open the shell in a browser",
        """
        cdd serve
        cdd serve --open
        cdd serve --host 0.0.0.0 --port 8000
        cdd -C project --model ollama/qwen3 serve
        """,
        Argument(
            "--host",
            "the address to listen on; without it only this computer can connect",
            default="127.0.0.1",
        ),
        Argument(
            "--port", "0 chooses one that is free", metavar="N", type=int, default=8000
        ),
        flag("--open", "open the browser, too"),
        run="cdd_agent.cli.serve:serve",
    ),
    "trust": TerminalCommand(
        "show the project's settings that need your trust, and trust them",
        """
        cdd trust
        cdd trust --give     # they take effect from now on
        cdd trust --revoke   # they are asked about again
        """,
        flag("--give", "trust the settings as they are now"),
        flag("--revoke", "forget all earlier answers for this project"),
        of_project="cdd_agent.commands.trust_command:trust_events",
    ),
    "doctor": TerminalCommand(
        "show what is set up and what is missing",
        "cdd doctor",
        run="cdd_agent.cli.doctor:doctor",
    ),
}
