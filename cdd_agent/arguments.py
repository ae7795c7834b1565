"""What can be typed after `cdd`: the commands, their arguments and flags, and their help. What they do is in `cli`."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias

from cdd_agent.version import VERSION

if TYPE_CHECKING:
    from argparse import _SubParsersAction

Commands: TypeAlias = "_SubParsersAction[ArgumentParser]"

_DESCRIPTION = "A terminal shell in which a ticket becomes verified code. Without a command it opens the shell."
_EXAMPLES = """\
examples:
  cdd demo                         see the main job on a sample project: no key, no network
  cdd init && cdd new feature login
  cdd                              open the shell, then: /exec feature-login
  cdd exec feature-login --yes     the same without a screen
  cdd exec feature-login --json    one event a line, for scripts

exit codes:
  0 done   1 a step failed   2 bad input   3 not approved, or no budget left   75 come back later   130 interrupted
"""
_DEFAULTS = {
    "project": Path(),
    "debug": False,
    "json": False,
    "yes": False,
    "headless": False,
    "slug": None,
    "kind": None,
    "words": (),
    "model": None,
    "api_base": None,
    "max_attempts": None,
    "require": None,
    "record": None,
    "interrupted": "What was done is saved; the same command goes on from here.",
    "root": None,
    "yaml": False,
    "dry_run": False,
    "paths": (),
    "start_over": False,
    "step": None,
    "templates": False,
    "regenerate": False,
    "basic": False,
}
"""Of all commands: each can be asked for any of them."""


class _Parser(ArgumentParser):
    """Its words for a mistyped command name the one that was probably meant."""

    def error(self, message: str) -> NoReturn:
        import difflib
        import re

        if wrong := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)$", message):
            near = difflib.get_close_matches(wrong[1], re.findall(r"'(.*?)'", wrong[2]), n=1)
            message += f"; did you mean {near[0]}?" if near else ""
        super().error(message)


def parsed(arguments: Sequence[str]) -> Namespace:
    """The arguments by name, and the `command`, None for the shell. Exits where they are wrong, or ask for help."""
    parser = _Parser("cdd", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=RawDescriptionHelpFormatter)
    _common_flags(parser)
    parser.add_argument("-V", "--version", action="version", version=f"cdd-agent {VERSION}")
    _model_flags(parser)
    parser.set_defaults(**_DEFAULTS)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", parser_class=ArgumentParser)
    for add in (_demo, _init, _new, _list, _status, _plan, _exec, _undo, _redo, _diff, _run, _apply, _context, _doctor):
        add(commands)
    return parser.parse_args(arguments)


def _command(commands: Commands, name: str, text: str, *examples: str) -> ArgumentParser:
    added = commands.add_parser(
        name,
        help=text,
        description=text[:1].upper() + text[1:] + ".",
        epilog="examples:\n" + "\n".join(f"  {example}" for example in examples),
        argument_default=SUPPRESS,  # a flag not given here leaves alone what was given before the command
        formatter_class=RawDescriptionHelpFormatter,
    )
    _common_flags(added)
    return added


def _common_flags(parser: ArgumentParser) -> None:
    parser.add_argument("-C", "--project", type=Path, metavar="DIR", help="work in this folder")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")


def _model_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--model", metavar="M", help="any litellm model string, script:FILE or replay:FILE")
    parser.add_argument("--record", metavar="FILE", help="keep what the model is asked and answers, for replay:FILE")
    parser.add_argument("--api-base", metavar="URL", help="the endpoint, for a server of your own")


def _slug(parser: ArgumentParser, nargs: Literal["?"] | None = None) -> None:
    parser.add_argument("slug", metavar="SLUG", nargs=nargs, help="a ticket's slug, a unique prefix, or a path")


def _json(parser: ArgumentParser, text: str = "one event a line") -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _step(parser: ArgumentParser) -> None:
    parser.add_argument("--step", type=int, metavar="N", help="the step (default: the last one)")


def _demo(commands: Commands) -> None:
    demo = _command(commands, "demo", "see the main job on a sample project", "cdd demo", "cdd demo --headless")
    demo.add_argument("--headless", action="store_true", help="without the shell")
    _json(demo, "one event a line; implies --headless")


def _init(commands: Commands) -> None:
    init = _command(
        commands, "init", "make this project a cdd project", "cdd init", "cdd init --templates -C ~/src/shop"
    )
    init.add_argument(
        "--templates", action="store_true", help="copy the templates for tickets to .cdd/templates, to be changed"
    )


def _new(commands: Commands) -> None:
    new = _command(
        commands,
        "new",
        "make a ticket, or a page of documentation",
        "cdd new feature user-auth",
        'cdd new bug "Login fails"',
        'cdd new documentation guide "How to deploy"',
    )
    new.add_argument("type", metavar="TYPE", help="feature, bug, enhancement, spike, refactor; or documentation")
    new.add_argument("kind", metavar="KIND", nargs="?", help="of documentation: guide or feature")
    new.add_argument("name", metavar="NAME", help="in a few words; it becomes the name of a folder or file")


def _list(commands: Commands) -> None:
    listing = _command(
        commands, "list", "list the tickets and how far each is", "cdd list bug failed", "cdd list --json"
    )
    listing.add_argument(
        "words",
        metavar="FILTER",
        nargs="*",
        help="only those of a type (bug), in a state (failed, in-progress), or both",
    )
    _json(listing)


def _status(commands: Commands) -> None:
    status = _command(commands, "status", "show how far a ticket is", "cdd status", "cdd status feature-user-auth")
    _slug(status, nargs="?")
    _json(status)


def _plan(commands: Commands) -> None:
    plan = _command(
        commands,
        "plan",
        "make, show or check a ticket's plan",
        "cdd plan feature-user-auth",
        "cdd plan feature-user-auth --basic       # without a model: a step for each acceptance criterion",
        "cdd plan show feature-user-auth          # the plan as it was read",
        "cdd plan check feature-user-auth         # compile it: exit code 1 where it has to be changed",
        "",
        "Nobody is asked: what the model assumes is written into the plan's risks. In the shell, `/plan SLUG` is a",
        "dialogue.",
    )
    plan.usage = "cdd plan [show | check] SLUG [--json] [--yes] [--regenerate] [--basic] [--model M] [-C DIR]"
    plan.add_argument("words", metavar="SLUG", nargs="+", help="a ticket's slug, a unique prefix, or a path")
    _json(plan, "one event a line; of show and check, one JSON object")
    plan.add_argument("--yes", action="store_true", help="write the plan also where compiling it finds errors")
    plan.add_argument("--regenerate", action="store_true", help="in the place of a plan that is there; done steps stay")
    plan.add_argument("--basic", action="store_true", help="without a model")
    _model_flags(plan)
    plan.set_defaults(interrupted="What was learnt is kept; the same command goes on from here.")


def _exec(commands: Commands) -> None:
    execute = _command(
        commands,
        "exec",
        "carry out a ticket's plan to its end",
        "cdd exec feature-user-auth --yes",
        "cdd exec feature-user-auth --model openai/gpt-5 --max-attempts 5",
        "cdd exec feature-user-auth --require verified --json",
        "CDD_API_BASE=http://127.0.0.1:8080/v1 cdd exec feature-user --model openai/qwen3-coder",
    )
    _slug(execute)
    execute.add_argument("--yes", action="store_true", help="approve everything (`approval: auto`)")
    _json(execute, "one event a line, nothing else on standard output")
    _model_flags(execute)
    execute.add_argument("--max-attempts", type=int, metavar="N", help="model attempts a step, the first included")
    execute.add_argument(
        "--require",
        choices=("verified", "off"),
        help="verified: a step that is only unharmed, unverified or skipped fails the run (exit code 1)",
    )
    execute.add_argument("--start-over", action="store_true", help="from the first step; the old run's record is kept")


def _undo(commands: Commands) -> None:
    undo = _command(
        commands,
        "undo",
        "go back to before a ticket's last step, or the one named",
        "cdd undo feature-user-auth",
        "cdd undo feature-user-auth --step 2      # step 2 and all that were carried out after it",
        "cdd redo feature-user-auth               # undo the undo",
    )
    _slug(undo)
    _json(undo)
    _step(undo)


def _redo(commands: Commands) -> None:
    redo = _command(commands, "redo", "undo the last undo of a ticket", "cdd redo feature-user-auth")
    _slug(redo)
    _json(redo)


def _diff(commands: Commands) -> None:
    diff = _command(
        commands,
        "diff",
        "show what a ticket's last step, or the one named, changed",
        "cdd diff feature-user-auth",
        "cdd diff feature-user-auth --step 2 > step-2.patch",
    )
    _slug(diff)
    _json(diff)
    _step(diff)


def _run(commands: Commands) -> None:
    run = _command(
        commands,
        "run",
        "carry out an action plan: a list of actions in YAML",
        "cdd run plan.yaml",
        "cdd run plan.yaml --yes --json > report.json",
        "cat plan.yaml | cdd run - --root ~/src/shop",
        "",
        "The format is in docs/action-plan.md. In short:",
        '- execute: "pytest -q"',
        "- action: create_file",
        "  file_path: hello.txt",
        '  content: "hi"',
    )
    run.add_argument("plan", metavar="PLAN.yaml", help="the plan; - reads it from standard input")
    run.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="the folder that no action leaves; its own settings hold (default: the project)",
    )
    run.add_argument("--yes", action="store_true", help="do not ask before each action")
    forms = run.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="the report as one JSON object, nothing else on stdout")
    forms.add_argument("--yaml", action="store_true", help="the report as YAML")
    run.set_defaults(interrupted="What was done is done; the rest was not begun.")


def _apply(commands: Commands) -> None:
    apply = _command(
        commands,
        "apply",
        "apply one saved reply of a model, all of it or nothing",
        "cdd apply reply.md --dry-run",
        "cdd apply reply.md --root ~/src/shop --json",
        "pbpaste | cdd apply -",
        "",
        "Whole files in code blocks, search/replace blocks, unified diffs, `*** Begin Patch` and lists of",
        "actions are understood, also mixed; see docs/replies.md.",
        "Exit codes: 0 applied, 1 an edit failed and nothing was written, 2 bad input.",
    )
    apply.add_argument("reply", metavar="REPLY", help="the reply as text; - reads it from standard input")
    apply.add_argument("--root", type=Path, metavar="DIR", help="the folder that no edit leaves (default: the project)")
    apply.add_argument("--dry-run", action="store_true", help="write nothing; show the changes as a diff")
    _json(apply, "created, modified, deleted, failed, explanation as one JSON object")
    apply.set_defaults(interrupted="Nothing was left half done.")


def _context(commands: Commands) -> None:
    context = _command(
        commands,
        "context",
        "print the project context that a model would get",
        "cdd context",
        "cdd context README.md src --json",
    )
    context.add_argument(
        "paths", metavar="PATH", nargs="*", help="files and folders to include, relative to the project"
    )
    _json(context, "one JSON object")


def _doctor(commands: Commands) -> None:
    _command(commands, "doctor", "show what is set up and what is missing", "cdd doctor")
