"""A ticket's run: `cdd exec` carries its plan out to the end; `cdd undo`, `redo` and
`diff` go through what it did.
"""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from cdd_agent.commands.terminal import (
    JSON,
    MODEL_FLAGS,
    SLUG,
    SLUG_HELP,
    Argument,
    at_least_one,
    flag,
    terminal_command,
)
from cdd_agent.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from cdd_agent.cli.working import Output
    from cdd_agent.engine.engine import Engine
    from cdd_agent.llm.shared import Shared
    from cdd_agent.open_project import Project

_STEP = Argument("--step", "the step (default: the last one)", type=int, metavar="N")


@terminal_command(
    "exec",
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
        "--all", "all tickets whose plan is not carried out yet", choices=("planned",)
    ),
    Argument(
        "--jobs",
        "of several tickets: how many at once (default: 3); of one: steps that run at"
        " once, each in a tree of its own until it is done (default: `jobs` of the"
        " config)",
        type=at_least_one,
        metavar="N",
    ),
    Argument(
        "--on",
        "tickets on the workers of a Dask cluster: tcp://HOST:PORT, tls://HOST:PORT, or"
        " local",
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
        "verified: a step fails the run (exit code 1) unless its tests have passed; so"
        " it does where it has none, some that failed before the run still fail, or it"
        " is skipped",
        choices=("verified", "off"),
    ),
    flag("--start-over", "from the first step; the old run's record is kept"),
    flag(
        "--worktree",
        "in a git worktree on the branch cdd/SLUG, which leaves your files alone; see"
        " `cdd land`",
    ),
    Argument("--beside", SUPPRESS, type=Path),
    Argument("--variant", SUPPRESS, default=""),
    Argument("--base", SUPPRESS),
)
def execute(options: Namespace) -> int:
    from cdd_agent.cli.without_screen import reference
    from cdd_agent.config import only_model
    from cdd_agent.open_project import open_project

    flags = {
        name: getattr(options, name)
        for name in ("model", "api_base", "max_attempts", "jobs", "require", "record")
    }
    flags |= {"approval": "auto"} if options.yes else {}
    if options.variant:  # it is the settings' address that is no other provider's
        flags |= {"model": None, "api_base": None}
    if options.on:
        flags["jobs"] = None  # of tickets
    if options.all or options.on or len(options.slugs) > 1:
        from cdd_agent.cli.many import execute_many

        return execute_many(options, flags)
    if not options.slugs:
        raise BadInput("Which ticket?", hint="Name one, several, or `--all planned`.")
    shared = _one_of_several(options) if options.beside else None
    project, slug = open_project(options.project, flags), reference(options.slugs[0])
    if options.worktree:
        from cdd_agent.cli.land import in_own_tree

        own = {"variant": options.variant, "base": options.base}
        project, slug = in_own_tree(project, slug, flags, as_json=options.json, **own)
    if options.variant:
        from msgspec.structs import replace

        project = replace(
            project, config=only_model(project.config, options.model, options.api_base)
        )
    lands = options.worktree and shared is None
    return run_plan(
        project,
        slug,
        as_json=options.json,
        start_over=options.start_over,
        shared=shared,
        lands=lands,
    )


@terminal_command(
    "undo",
    """
    cdd undo feature-user-auth
    cdd undo feature-user-auth --step 2  # step 2 and all that were carried out after it
    cdd redo feature-user-auth           # undo the undo
    """,
    SLUG,
    JSON,
    _STEP,
)
def undo(options: Namespace) -> int:
    return _going_through(options, lambda engine: engine.undo(options.step))


@terminal_command("redo", "cdd redo feature-user-auth", SLUG, JSON)
def redo(options: Namespace) -> int:
    return _going_through(options, lambda engine: engine.redo())


@terminal_command(
    "diff",
    """
    cdd diff feature-user-auth
    cdd diff feature-user-auth --step 2 > step-2.patch
    """,
    SLUG,
    JSON,
    _STEP,
)
def diff(options: Namespace) -> int:
    return _going_through(
        options, lambda engine: engine.diff(options.step), is_look=True
    )


def _one_of_several(options: Namespace) -> Shared:
    """What this run shares with others, beside which somebody has begun it: it ends
    with them.
    """
    from cdd_agent.fleet.place import TicketJob
    from cdd_agent.llm.shared import Shared
    from cdd_agent.process.child import stop_with_stdin

    stop_with_stdin()
    shared = Shared(options.beside, TicketJob(options.slugs[0], options.variant).name)
    shared.hold()
    return shared


def run_plan(
    project: Project,
    slug: str,
    *,
    as_json: bool,
    start_over: bool = False,
    shared: Shared | None = None,
    lands: bool = False,
) -> ExitCode:
    """Run a ticket's plan to its end. `lands`: it is in a tree of its own, and a person
    is told how it gets from there. Raises `CddError`, `KeyboardInterrupt` when
    interrupted.
    """
    from cdd_agent.cli.without_screen import printer_for
    from cdd_agent.cli.working import Output, preparing_model
    from cdd_agent.engine.whereabouts import how_to_hand_back
    from cdd_agent.events import About, Notice
    from cdd_agent.tickets.status import RunStatus
    from cdd_agent.wiring import keeping_lease, prepare_model

    output = Output(printer_for(as_json))
    engine = _open_engine(project, slug, output, start_over=start_over, shared=shared)
    with preparing_model():
        prepare_model(engine)

    async def whole_run() -> None:
        async with keeping_lease(engine.run.record, output.emit):
            await engine.carry_out(attempts=project.config.max_attempts)
        if text := how_to_hand_back(engine.run.record.folder):
            output.emit(Notice(text, about=About.STILL_HELD))
        if lands and engine.run.summary().status is RunStatus.COMPLETED:
            output.emit(
                Notice(
                    f"`cdd land {slug}` brings it over from its own tree.",
                    about=About.OWN_TREE,
                )
            )

    return _recorded(engine, whole_run(), output)


def _going_through(
    options: Namespace,
    what: Callable[[Engine], Coroutine[object, object, None]],
    *,
    is_look: bool = False,
) -> ExitCode:
    """`is_look`: nothing is changed, and standard output has nothing but what is looked
    at.
    """
    from contextlib import nullcontext

    from cdd_agent.cli.without_screen import open_project_of, reference
    from cdd_agent.cli.working import Output
    from cdd_agent.engine.whereabouts import in_its_tree
    from cdd_agent.open_project import open_project
    from cdd_agent.printer import JsonPrinter, TextPrinter
    from cdd_agent.wiring import keeping_lease

    output = Output(JsonPrinter() if options.json else TextPrinter(to_stderr=is_look))
    project = open_project_of(options)
    ticket = in_its_tree(project.tickets.find(reference(options.slug)))
    if ticket.root != project.root:
        project = open_project(ticket.root, {}, exactly=True)
    engine = _open_engine(project, ticket.slug, output)

    async def work() -> None:
        async with (
            nullcontext() if is_look else keeping_lease(engine.run.record, output.emit)
        ):
            await what(engine)

    _recorded(engine, work(), output)
    return ExitCode.DONE


def _recorded(
    engine: Engine, work: Coroutine[object, object, None], output: Output
) -> ExitCode:
    """Do it, and record it; at the end, however it comes, the ticket is let go of."""

    async def recorded() -> None:
        with engine.recording():
            await work

    with closing(engine):
        output.carry_out(recorded())
        return engine.exit_code


def _open_engine(
    project: Project,
    slug: str,
    output: Output,
    *,
    start_over: bool = False,
    shared: Shared | None = None,
) -> Engine:
    from cdd_agent.cli.working import whoever_is_there
    from cdd_agent.frontend import Nobody
    from cdd_agent.printer import JsonPrinter
    from cdd_agent.wiring import Wiring

    frontend = (
        Nobody()
        if isinstance(output.printer, JsonPrinter)
        else whoever_is_there(output.printer)
    )
    wiring = Wiring(project, frontend, output.emit, watched=False, shared=shared)
    return wiring.engine(project.tickets.find(slug), start_over=start_over)
