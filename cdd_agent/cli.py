"""The command line: arguments → one use case, exit codes, and the one place where a `CddError` becomes words.

What a command needs is imported when it runs: `cdd --version` and `cdd --help` start at once.
"""

from __future__ import annotations

import sys

from cdd_agent.version import VERSION

TYPE_CHECKING = False  # the name that type checkers know; `typing` itself takes a tenth of the time of `--version`
if TYPE_CHECKING:
    import argparse
    from pathlib import Path
    from typing import Any

    from cdd_agent.errors import CddError
    from cdd_agent.events import Notice
    from cdd_agent.execution.frontend import Frontend
    from cdd_agent.session import Project, Session

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


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"cdd-agent {VERSION}\n")
        return 0
    import io

    _open_closed_streams()
    from cdd_agent.errors import CddError, ExitCode

    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that knows only ASCII still gets the words
        sys.stdout.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except CddError as error:
        if options.debug:
            raise
        _complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        if options.debug:
            raise
        sys.stderr.write(f"\nInterrupted. {options.interrupted}\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # whoever read our output has left
        sys.stderr.close()
        return ExitCode.FAILED
    except OSError as error:
        if options.debug or error.filename is not None:  # files are answered for where they are used
            raise
        sys.stderr.write(f"cdd: the output could not be written: {error.strerror or error}\n")
        return ExitCode.FAILED


def _reference(options: argparse.Namespace) -> str:
    """A ticket as it was typed; a path is one from here, not from the project's root."""
    from pathlib import Path

    typed: str = options.slug
    is_path = "/" in typed or typed in (".", "..")
    return str(Path(typed).resolve()) if is_path and Path(typed).exists() else typed


def _open_closed_streams() -> None:
    """What the caller closed (`>&-`) goes nowhere, instead of being no stream at all."""
    import os
    from pathlib import Path

    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # for as long as we run


def _from_here(root: Path, typed: str) -> str:
    """A path as the project knows it: what is there from here on, else as it was typed."""
    from pathlib import Path

    place = Path(typed).resolve()
    return (place.relative_to(root).as_posix() or ".") if place.exists() and place.is_relative_to(root) else typed


def _print_text(text: str) -> None:
    """Text from files: as it is into a file or a pipe, but a terminal is not steered by it."""
    from cdd_agent.harmless import harmless

    sys.stdout.write("\n".join(map(harmless, text.split("\n"))) if sys.stdout.isatty() else text)


def _complain(error: CddError) -> None:
    from cdd_agent.harmless import harmless

    for line in [*f"cdd: {error.message}".split("\n"), *error.hint.split("\n")]:
        if line:
            sys.stderr.write(harmless(line) + "\n")


def _parser() -> argparse.ArgumentParser:
    import argparse
    from pathlib import Path

    parser = argparse.ArgumentParser(
        "cdd",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _common_flags(parser)
    parser.add_argument("-V", "--version", action="version", version=f"cdd-agent {VERSION}")
    _model_flags(parser)
    parser.set_defaults(run=_shell, project=Path(), debug=False, json=False, yes=False, headless=False)
    parser.set_defaults(slug=None, kind=None, words=(), model=None, api_base=None, max_attempts=None, record=None)
    parser.set_defaults(interrupted="What was done is saved; the same command goes on from here.")
    parser.set_defaults(root=None, yaml=False, dry_run=False, paths=(), start_over=False, step=None, templates=False)
    parser.set_defaults(regenerate=False, basic=False)
    _add_commands(parser.add_subparsers(title="commands", metavar="COMMAND"))
    return parser


def _add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    import argparse
    from pathlib import Path

    def add(name: str, run: Any, text: str, *examples: str) -> argparse.ArgumentParser:
        epilog = "examples:\n" + "\n".join(f"  {example}" for example in examples)
        added = commands.add_parser(
            name,
            help=text,
            description=text[:1].upper() + text[1:] + ".",
            epilog=epilog,
            argument_default=argparse.SUPPRESS,  # a flag not given here leaves alone what was given before the command
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _common_flags(added)
        added.set_defaults(run=run)
        return added

    demo = add("demo", _demo, "see the main job on a sample project", "cdd demo", "cdd demo --headless")
    demo.add_argument("--headless", action="store_true", help="without the shell")
    demo.add_argument("--json", action="store_true", help="one event a line; implies --headless")

    init = add("init", _init, "make this project a cdd project", "cdd init", "cdd init --templates -C ~/src/shop")
    init.add_argument(
        "--templates", action="store_true", help="copy the templates for tickets to .cdd/templates, to be changed"
    )

    new = add(
        "new",
        _new,
        "make a ticket, or a page of documentation",
        "cdd new feature user-auth",
        'cdd new bug "Login fails"',
        'cdd new documentation guide "How to deploy"',
    )
    new.add_argument("type", metavar="TYPE", help="feature, bug, enhancement, spike, refactor; or documentation")
    new.add_argument("kind", metavar="KIND", nargs="?", help="of documentation: guide or feature")
    new.add_argument("name", metavar="NAME", help="in a few words; it becomes the name of a folder or file")

    listing = add("list", _list, "list the tickets and how far each is", "cdd list bug failed", "cdd list --json")
    listing.add_argument(
        "words",
        metavar="FILTER",
        nargs="*",
        help="only those of a type (bug), in a state (failed, in-progress), or both",
    )
    listing.add_argument("--json", action="store_true", help="one event a line")

    status = add("status", _status, "show how far a ticket is", "cdd status", "cdd status feature-user-auth")
    status.add_argument("slug", metavar="SLUG", nargs="?", help="a ticket's slug, a unique prefix, or a path")
    status.add_argument("--json", action="store_true", help="one event a line")

    plan = add(
        "plan",
        _plan,
        "make, show or check a ticket's plan",
        "cdd plan feature-user-auth",
        "cdd plan feature-user-auth --basic       # without a model: a step for each acceptance criterion",
        "cdd plan show feature-user-auth          # the plan as it was read",
        "cdd plan check feature-user-auth         # compile it: exit code 1 where it has to be changed",
        "",
        "Nobody is asked: what the model assumes is written into the plan's risks. In the shell, `/plan SLUG` is a",
        "dialogue.",
    )
    plan.add_argument("words", metavar="SLUG", nargs="+", help="a ticket's slug, a unique prefix, or a path")
    plan.add_argument("--json", action="store_true", help="one event a line; of show and check, one JSON object")
    plan.add_argument("--yes", action="store_true", help="write the plan also where compiling it finds errors")
    plan.add_argument("--regenerate", action="store_true", help="in the place of a plan that is there; done steps stay")
    plan.add_argument("--basic", action="store_true", help="without a model")
    plan.usage = "cdd plan [show | check] SLUG [--json] [--yes] [--regenerate] [--basic] [--model M] [-C DIR]"
    plan.set_defaults(interrupted="What was learnt is kept; the same command goes on from here.")
    _model_flags(plan)

    execute = add(
        "exec",
        _exec,
        "carry out a ticket's plan to its end",
        "cdd exec feature-user-auth --yes",
        "cdd exec feature-user-auth --model openai/gpt-5 --max-attempts 5",
        "CDD_API_BASE=http://127.0.0.1:11434/v1 cdd exec feature-user --model openai/qwen3-coder",
    )
    execute.add_argument("slug", metavar="SLUG", help="a ticket's slug, a unique prefix, or a path")
    execute.add_argument("--yes", action="store_true", help="approve everything (`approval: auto`)")
    execute.add_argument("--json", action="store_true", help="one event a line, nothing else on standard output")
    _model_flags(execute)
    execute.add_argument("--max-attempts", type=int, metavar="N", help="model attempts a step, the first included")

    execute.add_argument("--start-over", action="store_true", help="from the first step; the old run's record is kept")

    back = add(
        "undo",
        _undo,
        "go back to before a ticket's last step, or the one named",
        "cdd undo feature-user-auth",
        "cdd undo feature-user-auth --step 2      # step 2 and all that were carried out after it",
        "cdd redo feature-user-auth               # undo the undo",
    )
    again = add("redo", _redo, "undo the last undo of a ticket", "cdd redo feature-user-auth")
    diff = add(
        "diff",
        _diff,
        "show what a ticket's last step, or the one named, changed",
        "cdd diff feature-user-auth",
        "cdd diff feature-user-auth --step 2 > step-2.patch",
    )
    for going in (back, again, diff):
        going.add_argument("slug", metavar="SLUG", help="a ticket's slug, a unique prefix, or a path")
        going.add_argument("--json", action="store_true", help="one event a line")
    for stepwise in (back, diff):
        stepwise.add_argument("--step", type=int, metavar="N", help="the step (default: the last one)")

    run = add(
        "run",
        _run_actions,
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
    run.set_defaults(interrupted="What was done is done; the rest was not begun.")
    forms = run.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="the report as one JSON object, nothing else on stdout")
    forms.add_argument("--yaml", action="store_true", help="the report as YAML")

    apply = add(
        "apply",
        _apply,
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
    apply.add_argument(
        "--json", action="store_true", help="created, modified, deleted, failed, explanation as one JSON object"
    )
    apply.set_defaults(interrupted="Nothing was left half done.")

    context = add(
        "context",
        _context,
        "print the project context that a model would get",
        "cdd context",
        "cdd context README.md src --json",
    )
    context.add_argument(
        "paths", metavar="PATH", nargs="*", help="files and folders to include, relative to the project"
    )
    context.add_argument("--json", action="store_true", help="one JSON object")

    add("doctor", _doctor, "show what is set up and what is missing", "cdd doctor")


def _common_flags(parser: argparse.ArgumentParser) -> None:
    from pathlib import Path

    parser.add_argument("-C", "--project", type=Path, metavar="DIR", help="work in this folder")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")


def _model_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="M", help="any litellm model string, script:FILE or replay:FILE")
    parser.add_argument("--record", metavar="FILE", help="keep what the model is asked and answers, for replay:FILE")
    parser.add_argument("--api-base", metavar="URL", help="the endpoint, for a server of your own")


def _shell(options: argparse.Namespace) -> int:
    from cdd_agent.errors import BadInput

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("The shell needs a terminal", hint="Without one: cdd exec SLUG --json, cdd --help.")
    return _open_shell(options)


def _open_shell(options: argparse.Namespace, note: str = "", first: str = "") -> int:
    from cdd_agent.tui.app import Shell
    from cdd_agent.workspace.paths import find_root

    root = find_root(options.project)
    shell = Shell(root, lambda frontend: _session(options, frontend, note), first)
    error = shell.run()
    if error is not None:
        raise error
    return shell.return_code or 0


def _session(options: argparse.Namespace, frontend: Frontend, note: str) -> tuple[Session, tuple[Notice, ...]]:
    """The shell's session, and what it says first. Called when the first screen is drawn."""
    from cdd_agent.events import Notice, Tone
    from cdd_agent.wiring import NO_MODEL_HINT, open_session

    project = _project(options, model=options.model, api_base=options.api_base, record=options.record)
    notices = [Notice(note or _OPENING)]
    if not (project.root / ".cdd").is_dir():
        notices.append(Notice("This is no cdd project yet: `/init` makes it one."))
    if project.config.model is None:
        notices += [Notice("No model is configured.", Tone.WARNING), Notice(NO_MODEL_HINT)]
    return open_session(project, frontend), tuple(notices)


def _demo(options: argparse.Namespace) -> int:
    from cdd_agent.demo.sample import SLUG, copy_sample

    folder = copy_sample()
    seen = sys.stdin.isatty() and sys.stdout.isatty()
    if seen and not (options.headless or options.json):
        options.project = folder
        code = _open_shell(options, _DEMO_NOTE.format(folder=folder), f"/exec {SLUG}")
        sys.stderr.write(f"The demo's project stays in {folder}; `cdd -C {folder}` opens it again.\n")
        return code
    sys.stderr.write(_DEMO_NOTE.format(folder=folder) + "\n")
    return _run_plan(options, folder, SLUG, approve=True)


_OPENING = (
    "Ask anything. `/new` makes a ticket, `/socrates` asks until it is clear, `/plan` plans it, `/exec` carries it "
    "out; `/help` says more."
)
_DEMO_NOTE = """\
This is a demo: the replies come from a script, everything else is real (files, git, pytest).
The project is a copy in {folder}. For your own: `cdd init`, and `cdd doctor` says how to set up a model."""


def _exec(options: argparse.Namespace) -> int:
    flags = {name: getattr(options, name) for name in ("model", "api_base", "max_attempts", "record")}
    return _run_plan(
        options,
        options.project,
        _reference(options),
        approve=options.yes,
        start_over=options.start_over,
        **flags,
    )


def _undo(options: argparse.Namespace) -> int:
    from cdd_agent.headless.runs import run_undo

    return run_undo(_project(options), _reference(options), options.step, as_json=options.json)


def _redo(options: argparse.Namespace) -> int:
    from cdd_agent.headless.runs import run_redo

    return run_redo(_project(options), _reference(options), as_json=options.json)


def _diff(options: argparse.Namespace) -> int:
    from cdd_agent.headless.runs import run_diff

    return run_diff(_project(options), _reference(options), options.step, as_json=options.json)


def _run_plan(
    options: argparse.Namespace, folder: Path, slug: str, *, approve: bool, start_over: bool = False, **flags: Any
) -> int:
    from cdd_agent.headless.runs import run_plan
    from cdd_agent.wiring import open_project

    project = open_project(folder, flags | ({"approval": "auto"} if approve else {}))
    return run_plan(project, slug, as_json=options.json, start_over=start_over)


def _project(options: argparse.Namespace, **flags: Any) -> Project:
    from cdd_agent.wiring import open_project

    return open_project(options.project, flags)


def _command(options: argparse.Namespace, line: str, *arguments: str) -> int:
    """A slash command, carried out without a screen."""
    from cdd_agent.headless.command_line import run_command_line

    return run_command_line(_project(options), line, arguments, as_json=options.json)


def _init(options: argparse.Namespace) -> int:
    return _command(options, "init", *(["--templates"] if options.templates else []))


def _new(options: argparse.Namespace) -> int:
    return _command(options, "new", options.type, *filter(None, [options.kind]), options.name)


def _list(options: argparse.Namespace) -> int:
    return _command(options, "list", *options.words)


def _status(options: argparse.Namespace) -> int:
    return _command(options, "status", *([_reference(options)] if options.slug else []))


def _plan(options: argparse.Namespace) -> int:
    from cdd_agent.errors import BadInput

    *what, options.slug = options.words
    if what not in ([], ["show"], ["check"]):
        raise BadInput(f"There is no `cdd plan {' '.join(what)}`", hint="Usage: cdd plan [show | check] SLUG")
    if what and (options.yes or options.regenerate or options.basic):
        raise BadInput(f"--yes, --regenerate and --basic are for making a plan, not for `cdd plan {what[0]}`")
    if what == ["show"]:
        return _plan_show(options)
    from cdd_agent.headless.planning import run_plan_check, run_planning

    if what == ["check"]:
        return run_plan_check(_project(options), _reference(options), as_json=options.json)
    flags = {name: getattr(options, name) for name in ("model", "api_base", "record")}
    return run_planning(
        _project(options, **flags),
        _reference(options),
        as_json=options.json,
        approve=options.yes,
        regenerate=options.regenerate,
        basic=options.basic,
    )


def _plan_show(options: argparse.Namespace) -> int:
    ticket = _project(options).tickets.find(_reference(options))
    plan = ticket.read_plan()
    plan.check(ticket.shown(ticket.plan_path))
    if options.json:
        import json

        sys.stdout.write(json.dumps(plan.to_json(), ensure_ascii=False) + "\n")
    else:
        _print_text(plan.to_markdown())
    return 0


def _run_actions(options: argparse.Namespace) -> int:
    from cdd_agent.headless.action_plan import run_actions
    from cdd_agent.wiring import open_project

    project = open_project(options.root or options.project, {}, exactly=options.root is not None)
    form: Any = "json" if options.json else "yaml" if options.yaml else "text"
    return run_actions(project, options.plan, confirm=not options.yes, form=form)


def _apply(options: argparse.Namespace) -> int:
    from cdd_agent.applying import apply_reply
    from cdd_agent.wiring import open_project

    project = open_project(options.root or options.project, {}, exactly=options.root is not None)
    return apply_reply(project, options.reply, dry_run=options.dry_run, as_json=options.json)


def _context(options: argparse.Namespace) -> int:
    from cdd_agent.workspace.context import project_context

    root = _project(options).root
    context = project_context(root, [_from_here(root, path) for path in options.paths])
    if options.json:
        import json

        sys.stdout.write(json.dumps(context.to_json(), ensure_ascii=False) + "\n")
    else:
        _print_text(context.as_text())
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from cdd_agent.doctor import examine

    return examine(options.project)
