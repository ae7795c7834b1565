"""Commands about changes: show them, undo them, and make some without a ticket."""

from cdd_agent.commands.declaration import (
    JSON,
    OPTIONAL_TICKET,
    TICKET_NOTE,
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

_STEP = (
    argument(
        "step",
        "STEP",
        "the number of the step in the plan (default: the last step)",
        ValueKind.STEP,
        Times.OPTIONAL,
        only=Front.SHELL,
    ),
    option(
        "--step",
        "N",
        "the number of the step in the plan (default: the last step)",
        ValueKind.STEP,
    ),
)

CHANGES = (
    Command(
        "diff",
        Group.CHANGES,
        "Show the newest change, or a step",
        (OPTIONAL_TICKET, JSON, *_STEP),
        SlashFront(
            "Show what the last step of a ticket changed, or step STEP. Without a"
            " ticket, show the newest change of the session; in a terminal, the newest"
            " outside of tickets.",
            "/diff feature-user-auth 2",
            run="cdd_agent.commands.change_commands:diff",
            any_time=True,
        ),
        TerminalFront(
            """
            cdd diff feature-user-auth
            cdd diff feature-user-auth --step 2 > step-2.patch
            cdd diff
            """,
            run="cdd_agent.cli.runs:diff",
        ),
    ),
    Command(
        "undo",
        Group.CHANGES,
        "Undo the newest change, or a step",
        (
            OPTIONAL_TICKET._replace(
                note=f"{TICKET_NOTE}, or a change that `--list` names"
            ),
            JSON,
            *_STEP,
            switch(
                "--list",
                "list the last changes with their names, and undo nothing",
                key="lists",
            ),
            switch(
                "--yes", "undo the newest change without a question", only=Front.SHELL
            ),
        ),
        SlashFront(
            "Undo the last step of a ticket, or STEP and all later steps. Without a"
            " ticket, undo the newest change of the session; in a terminal, the newest"
            " outside of tickets. The shell asks first, except with STEP. Your later"
            " edits are kept.",
            "/undo feature-user-auth 2",
            run="cdd_agent.commands.change_commands:undo",
        ),
        TerminalFront(
            """
            cdd undo feature-user-auth
            cdd undo feature-user-auth --step 2  # step 2 and all later steps
            cdd redo feature-user-auth           # undo the undo
            cdd undo                             # the newest change without a ticket
            cdd undo --list                      # list all changes with their names
            cdd undo change-7                    # a change of the list
            """,
            run="cdd_agent.cli.runs:undo",
        ),
    ),
    Command(
        "redo",
        Group.CHANGES,
        "Undo the last undo",
        (OPTIONAL_TICKET, JSON),
        SlashFront(
            "Undo the last undo of a ticket, until something is changed again. Without"
            " a ticket, undo the last undo of the session; in a terminal, the last"
            " outside of tickets.",
            "/redo feature-user-auth",
            run="cdd_agent.commands.change_commands:redo",
        ),
        TerminalFront(
            "cdd redo feature-user-auth\ncdd redo", run="cdd_agent.cli.runs:redo"
        ),
    ),
    Command(
        "apply",
        Group.CHANGES,
        "Apply a saved reply of a model",
        (
            argument(
                "reply",
                "REPLY",
                "a file with the reply, or - for standard input",
                ValueKind.FILE,
            ),
            option(
                "--root",
                "DIR",
                "the only folder that edits may change (default: the project)",
                ValueKind.PATH,
            ),
            switch("--dry-run", "show the changes as a diff and write nothing"),
            described_json(
                "print one JSON object: created, modified, deleted, failed,"
                " explanation, blocks"
            ),
        ),
        terminal=TerminalFront(
            """
            cdd apply reply.md --dry-run
            cdd apply reply.md --root ~/src/shop --json
            pbpaste | cdd apply -
            cdd undo   # undo it
            """,
            run="cdd_agent.cli.applying:apply",
            notes=(
                "Reads whole files in code blocks, search/replace blocks, unified"
                " diffs, `*** Begin Patch`, lists of actions and tool calls written as"
                " text, also mixed. See docs/reference/replies.md."
            ),
            exit_codes=(
                (0, "applied"),
                (1, "an edit failed and nothing was written"),
            ),
            interrupted="No edit was left half done.",
        ),
    ),
    Command(
        "run",
        Group.CHANGES,
        "Carry out a YAML list of actions",
        (
            argument(
                "plan", "PLAN.yaml", "the file, or - for standard input", ValueKind.FILE
            ),
            option(
                "--root",
                "DIR",
                "the only folder that actions may change; its settings are used"
                " (default: the project)",
                ValueKind.PATH,
            ),
            switch("--yes", "approve every action"),
            described_json("print the report as one JSON object, and nothing else"),
            switch("--yaml", "print the report as YAML", key="as_yaml"),
        ),
        terminal=TerminalFront(
            """
            cdd run plan.yaml
            cdd run plan.yaml --yes --json > report.json
            cat plan.yaml | cdd run - --root ~/src/shop
            cdd undo   # undo what the actions wrote
            """,
            run="cdd_agent.cli.run:run",
            notes="""docs/reference/commands.md describes the format. In short:
- execute: "pytest -q"
- action: create_file
  file_path: hello.txt
  content: "hi\"""",
            exclusive=("--json", "--yaml"),
            interrupted="The finished actions stay; the others were not started.",
        ),
    ),
)
