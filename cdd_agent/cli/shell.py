"""`cdd` without a command: the shell."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cdd_agent.cli.invocation import Invocation
from cdd_agent.collector import paused_collector
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.files.paths import find_root
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.sanitize import sanitize_for_display

if TYPE_CHECKING:
    from cdd_agent.frontend import Frontend
    from cdd_agent.session.open_project import Decide
    from cdd_agent.session.session import Session
    from cdd_agent.tui.app import Shell

_OPENING = (
    "Ask anything, or start a ticket: `/new` → `/socrates` (spec) → `/plan` → `/exec`."
    " Help: `/help`"
)
DEMO_NOTE = """\
This is a demo: the replies come from a script; files, git and pytest are real. Your \
settings and keys are not used.
The project is a copy in {folder}. For a project of yours, quit and type `cdd init` \
in the terminal."""


def open_shell(invocation: Invocation, *, resume: str | None) -> int:
    """Open the shell. `resume` is an earlier session; empty for the last one."""
    line = "" if resume is None else f"/resume {resume}".rstrip()
    return open_shell_with(invocation, line=line)


def open_shell_with(invocation: Invocation, *, line: str) -> int:
    """Open the shell and enter a line. Without a terminal for a screen, the shell works
    line by line.
    """
    can_draw = (
        sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    )
    is_in_browser = "TEXTUAL_DRIVER" in os.environ
    if not invocation.plain and (can_draw or is_in_browser):
        return run_shell(invocation, first=line)
    # late: the screen does without it
    from cdd_agent.cli.plain import run_plain  # noqa: PLC0415
    from cdd_agent.cli.trusting import decision  # noqa: PLC0415

    decide = decision(invocation)
    # at a terminal, the user continues after the line
    is_only_line = bool(line) and not sys.stdin.isatty()
    return run_plain(
        lambda frontend, emit: _open_session(
            invocation,
            frontend,
            emit,
            "" if is_only_line else _OPENING,
            decide,
            has_setup=is_only_line or line.split()[:1] == ["/model"],
        ),
        line,
    )


def run_shell(invocation: Invocation, note: str = _OPENING, first: str = "") -> int:
    """Run the shell to its end. `note` is shown first, and `first` is entered for the
    user.
    """
    with paused_collector():
        # late: Textual; other commands do without it
        from cdd_agent.tui.app import Shell  # noqa: PLC0415

    # Textual has read it. A `cdd` started from this shell is not in a browser.
    os.environ.pop("TEXTUAL_DRIVER", None)

    def session(frontend: Frontend, emit: Emit) -> tuple[Session, tuple[Notice, ...]]:
        decide = shell.ask_for_trust
        return _open_session(
            invocation,
            frontend,
            emit,
            note,
            decide,
            has_welcome=not first,
            has_setup=not first or first.split()[0] == "/model",
        )

    root = find_root(invocation.project)
    shell = Shell(root, session, first, helps_to_begin=not first)
    error = shell.run()
    if error is not None:
        raise error
    if shell.return_code and not shell.is_ending:
        raise CddError(
            "Internal error in cdd: the shell ended",
            hint="What you typed and each finished step are saved. Continue with"
            " `/resume`.",
            refusal=Refusal.PROCESS_FAILED,
        )
    for line in _farewell(shell, root):
        sys.stdout.write(f"{line}\n")
    if shell.wants_demo:
        # late: few sessions ask for the demo
        from cdd_agent.demo.sample import (  # noqa: PLC0415
            SLUG,
            copy_sample,
            own_environment,
        )

        with own_environment():
            return run_demo_in_shell(invocation, copy_sample(), SLUG)
    return shell.return_code or 0


def run_demo_in_shell(invocation: Invocation, folder: Path, slug: str) -> int:
    """Run the shell on a copy of the sample project, whose settings are cdd's own."""
    invocation = invocation._replace(project=folder, trust=True)
    code = run_shell(invocation, DEMO_NOTE.format(folder=folder), f"/exec {slug}")
    sys.stderr.write(
        f"The demo project stays in {folder}. Open it again: cdd -C {folder}\n"
    )
    return code


def _farewell(shell: Shell, root: Path) -> Iterator[str]:
    """Yield the summary of a session, its report, and how to continue; nothing if
    nothing was done.
    """
    recap = shell.attention.session
    if recap is None or not (recap.steps or recap.cost):
        return
    words = " · ".join(filter(None, (recap.steps, recap.cost, recap.time)))
    yield sanitize_for_display(f"{recap.name}: {words}")
    report = root / ".cdd" / "runs" / (recap.ticket or "") / "report.md"
    if recap.ticket is not None and report.is_file():
        yield f"Report: {sanitize_for_display(os.path.relpath(report))}"
    if (
        recap.ticket is not None
        and shell.session is not None
        and not _is_something_left(shell.session, recap.ticket)
    ):
        return
    is_here = find_root(Path()) == root
    where = "" if is_here else f" -C {shlex.quote(str(root))}"
    yield f"Continue with: cdd resume{where}"


def _is_something_left(session: Session, slug: str) -> bool:
    # late: the first screen shows sooner
    from cdd_agent.commands.listing import view  # noqa: PLC0415
    from cdd_agent.commands.sessions import find_unfinished_run  # noqa: PLC0415

    try:
        is_over = view(session.project.tickets.find(slug)).is_over
    except CddError:  # the ticket was removed
        is_over = True
    return not is_over or find_unfinished_run(session.project) is not None


def _open_session(
    invocation: Invocation,
    frontend: Frontend,
    emit: Emit,
    note: str,
    decide: Decide,
    *,
    has_welcome: bool = False,
    has_setup: bool = False,
) -> tuple[Session, tuple[Notice, ...]]:
    """Return the session, and notices for its start. The welcome (`has_welcome`) and
    the dialog that sets up a model (`has_setup`) show some of them themselves. Without
    a `note` there is no greeting: the user asked for the result of one line.
    """
    with paused_collector():
        # late: the first screen shows sooner
        from cdd_agent.commands.added_commands import ADDED  # noqa: PLC0415
        from cdd_agent.commands.trust_words import (  # noqa: PLC0415
            leaves_out_model,
            notices_at_start,
        )
        from cdd_agent.commands.welcome import describe_place  # noqa: PLC0415
        from cdd_agent.session.open_project import accept_once, open_project  # noqa: PLC0415
        from cdd_agent.wiring.root import Wiring  # noqa: PLC0415

    project = open_project(
        invocation.project,
        invocation.model_settings,
        decide=accept_once if invocation.trust else decide,
    )
    greets = bool(note) and not has_welcome
    notices = [Notice(note)] if greets else []
    notices += notices_at_start(project.trust)
    if greets and (remark := describe_place(project.root)):
        notices.append(Notice(remark))
    if project.config.model is None and leaves_out_model(project.trust):
        text = (
            "The project sets a model that you do not trust yet. Review it with"
            " `/trust`, or choose another with `/model NAME`."
        )
        notices.append(Notice(text, Tone.WARNING))
    elif project.config.model is None and not has_setup:
        # late: the dialogs do without it
        from cdd_agent.commands.model_setup import how_to_set_up  # noqa: PLC0415

        notices.append(Notice(how_to_set_up(in_shell=True), Tone.WARNING))
    ADDED.begin_loading()
    return Wiring(project, frontend, emit).session, tuple(notices)
