"""The command line: arguments → one use case, exit codes, and the one place where a `CddError` becomes words.

What can be typed is in `arguments`. What a command needs is imported when it runs: `cdd --version` and `cdd --help`
start at once.
"""

from __future__ import annotations

import os
import sys

from cdd_agent.version import VERSION

TYPE_CHECKING = False  # the name that type checkers know; `typing` itself takes a tenth of the time of `--version`
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any

    from cdd_agent.errors import CddError
    from cdd_agent.events import Emit, Notice
    from cdd_agent.frontend import Frontend
    from cdd_agent.session import Project, Session


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"cdd-agent {VERSION}\n")
        return 0
    try:
        _open_streams()
        from cdd_agent.arguments import parsed

        return _carried_out(parsed(arguments))
    except KeyboardInterrupt:
        if "--debug" in arguments:
            raise
        return 130  # nothing was begun yet


def _carried_out(options: argparse.Namespace) -> int:
    from cdd_agent.errors import CddError, ExitCode

    try:
        return _COMMANDS[options.command](options)
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


def _open_streams() -> None:
    """What the caller closed (`>&-`) goes nowhere, instead of being no stream at all; and a terminal that knows only
    ASCII still gets the words."""
    import io
    import os
    from pathlib import Path

    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  # for as long as we run
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _reference(options: argparse.Namespace) -> str:
    """A ticket as it was typed; a path is one from here, not from the project's root."""
    from pathlib import Path

    typed: str = options.slug
    is_path = "/" in typed or typed in (".", "..")
    return str(Path(typed).resolve()) if is_path and Path(typed).exists() else typed


def _from_here(root: Path, typed: str) -> str:
    """A path as the project knows it: what is there from here on, else as it was typed."""
    from pathlib import Path

    place = Path(typed).resolve()
    return (place.relative_to(root).as_posix() or ".") if place.exists() and place.is_relative_to(root) else typed


def _print_text(text: str) -> None:
    """Text from files: as it is into a file or a pipe, but a terminal is not steered by it."""
    from cdd_agent.sanitize import sanitize_for_display

    sys.stdout.write("\n".join(map(sanitize_for_display, text.split("\n"))) if sys.stdout.isatty() else text)


def _complain(error: CddError) -> None:
    from cdd_agent.sanitize import sanitize_for_display

    for line in [*f"cdd: {error.message}".split("\n"), *error.hint.split("\n")]:
        if line:
            sys.stderr.write(sanitize_for_display(line) + "\n")


def _shell(options: argparse.Namespace) -> int:
    from cdd_agent.errors import BadInput

    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise BadInput(
            "The shell needs a terminal that can draw a screen", hint="Without one: cdd exec SLUG --json, cdd --help."
        )
    return _open_shell(options)


def _open_shell(options: argparse.Namespace, note: str = "", first: str = "") -> int:
    from cdd_agent.files.paths import find_root
    from cdd_agent.tui.app import Shell

    root = find_root(options.project)
    shell = Shell(root, lambda frontend, emit: _session(options, frontend, emit, note), first)
    error = shell.run()
    if error is not None:
        raise error
    return shell.return_code or 0


def _session(
    options: argparse.Namespace, frontend: Frontend, emit: Emit, note: str
) -> tuple[Session, tuple[Notice, ...]]:
    """The shell's session, and what it says first. Called when the first screen is drawn."""
    from cdd_agent.events import Notice, Tone
    from cdd_agent.wiring import NO_MODEL_HINT, open_session

    project = _project(options, model=options.model, api_base=options.api_base, record=options.record)
    notices = [Notice(note or _OPENING)]
    if not (project.root / ".cdd").is_dir():
        notices.append(Notice("This is no cdd project yet: `/init` makes it one."))
    if project.config.model is None:
        notices += [Notice("No model is configured.", Tone.WARNING), Notice(NO_MODEL_HINT)]
    return open_session(project, frontend, emit), tuple(notices)


def _demo(options: argparse.Namespace) -> int:
    from cdd_agent.demo.sample import SLUG, copy_sample, own_environment
    from cdd_agent.errors import BadInput

    if options.model or options.api_base or options.record:
        raise BadInput(
            "The demo's replies come from its own script: --model, --api-base and --record have no meaning there",
            hint="To see a model of yours at work: cdd --model M in a project of your own.",
        )
    with own_environment():
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
This is a demo: the replies come from a script, everything else is real (files, git, pytest). None of your settings \
and keys are used.
The project is a copy in {folder}. For your own: `cdd init`, and `cdd doctor` says how to set up a model."""


def _exec(options: argparse.Namespace) -> int:
    flags = {name: getattr(options, name) for name in ("model", "api_base", "max_attempts", "require", "record")}
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
    from cdd_agent.project.context import project_context

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


_COMMANDS: Mapping[str | None, Callable[[argparse.Namespace], int]] = {
    None: _shell,
    "demo": _demo,
    "init": _init,
    "new": _new,
    "list": _list,
    "status": _status,
    "plan": _plan,
    "exec": _exec,
    "undo": _undo,
    "redo": _redo,
    "diff": _diff,
    "run": _run_actions,
    "apply": _apply,
    "context": _context,
    "doctor": _doctor,
}
