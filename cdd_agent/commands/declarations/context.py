"""Commands about the model and its context."""

from cdd_agent.commands.declaration import (
    OPTIONAL_TICKET,
    SAVE,
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
)

_OPTIONAL = Times.OPTIONAL

CONTEXT = (
    Command(
        "context",
        Group.CONTEXT,
        "Show the model's context",
        (
            argument(
                "words",
                "PATH|WORDS|+FILE|-FILE",
                "files and folders to show, words to find code by, or files to pin or"
                " leave out",
                ValueKind.PIN,
                Times.ANY,
                only=Front.SHELL,
            ),
            argument(
                "paths",
                "PATH|WORDS",
                "files and folders to show, or words to find code by",
                ValueKind.FILE,
                Times.ANY,
                only=Front.TERMINAL,
            ),
            option(
                "--tokens",
                "N",
                "with words: at most N tokens of code (default: 8000)",
                ValueKind.NUMBER,
            ),
            described_json("print one JSON object"),
        ),
        SlashFront(
            "Show the parts of the last prompt. With a path, show that file; with"
            " words, show the code that they are about. `+FILE` pins a file to the"
            " prompts of the open ticket, `-FILE` leaves it out.",
            "/context +src/app.py",
            run="cdd_agent.commands.context_commands:show_context",
            any_time=True,
        ),
        TerminalFront(
            """
            cdd context
            cdd context README.md src --json
            cdd context "where is the rate limit handled?"
            cdd context "retry with backoff" src/http.py --tokens 4000
            """,
            run="cdd_agent.cli.context:context",
            notes="Paths given with words are always shown.",
        ),
    ),
    Command(
        "model",
        Group.CONTEXT,
        "Show, choose or set up the model",
        (
            argument(
                "role",
                "ROLE",
                "planner, executor, chat or socrates (default: all of them)",
                times=_OPTIONAL,
            ),
            argument(
                "model",
                "MODEL",
                "a model string, or a number of the list",
                ValueKind.MODEL,
                _OPTIONAL,
            )._replace(key="name"),
            argument(
                "address",
                "API_BASE",
                "the address of your own model server",
                times=_OPTIONAL,
            ),
            SAVE,
        ),
        SlashFront(
            "Show the model and the models on this computer, or switch to another"
            " model for this session.",
            "/model anthropic/claude-sonnet-5-5 --save",
            run="cdd_agent.commands.model_choice:choose_model",
            any_time=True,
        ),
        TerminalFront(
            """
            cdd model
            cdd model anthropic/claude-sonnet-5-5 --save
            cdd model openai/qwen3-coder http://127.0.0.1:8080/v1 --save
            """,
            notes=(
                "Opens the shell with your models. Keys come from the environment,"
                " such as OPENAI_API_KEY. See docs/reference/models.md."
            ),
            opens_shell=True,
        ),
    ),
    Command(
        "approval",
        Group.CONTEXT,
        "Choose what cdd asks you about",
        (
            argument(
                "mode",
                "MODE",
                "ask, edits or auto",
                times=_OPTIONAL,
                offers="cdd_agent.engine.approval_mode:MODES",
            ),
            SAVE,
        ),
        SlashFront(
            "Show or choose what happens without asking you: `ask` before edits,"
            " `edits` without asking, `auto` for edits and commands.",
            "/approval edits",
            run="cdd_agent.commands.approval_command:choose_approval",
            any_time=True,
        ),
    ),
    Command(
        "cost",
        Group.CONTEXT,
        "Show the tokens and the money spent",
        (OPTIONAL_TICKET,),
        SlashFront(
            "Show the tokens and the money that this session and a ticket's run have"
            " spent. Without a ticket, show the last one.",
            "/cost",
            run="cdd_agent.commands.context_commands:show_cost",
            any_time=True,
        ),
    ),
    Command(
        "conversation",
        Group.CONTEXT,
        "Show the chat as the model sees it",
        slash=SlashFront(
            "Show the summary that the model gets in place of the older part of the"
            " chat, and the lines of yours that it keeps.",
            "/conversation",
            run="cdd_agent.commands.context_commands:show_conversation",
            any_time=True,
        ),
    ),
)
