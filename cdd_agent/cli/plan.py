"""`cdd plan`: make a ticket's plan without a dialogue, show it, or check it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import NamedTuple

from cdd_agent.agents.plan_desk import PlanDesk
from cdd_agent.agents.planning import Planning
from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.trusting import open_for_work
from cdd_agent.cli.without_screen import (
    open_for_reading,
    print_json,
    print_text,
    printer_for,
)
from cdd_agent.cli.working import Output, preparing_model
from cdd_agent.engine.spec_notices import read_spec_problems, spec_notices
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit, Event
from cdd_agent.events.ticket_events import PlanChecked
from cdd_agent.faces.printer import Printer, TextPrinter
from cdd_agent.frontend import Nobody
from cdd_agent.session.open_project import Project
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.plan import Problem
from cdd_agent.tickets.plan_check import find_misfits, only_errors
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.slugs import EnoughOfSlug
from cdd_agent.tickets.store import Ticket
from cdd_agent.wiring.projects import open_commands, open_desk
from cdd_agent.wiring.root import Wiring

_DECIDE_YOURSELF = (
    "Nobody can answer now. Decide, and write each assumption into `risks`:"
    " `Assumed: …`."
)


class _Making(NamedTuple):
    yes: bool
    """Write the plan even if it has errors."""
    regenerate: bool
    basic: bool
    """Make the plan without a model."""


def plan(
    invocation: Invocation,
    *,
    words: Sequence[str],
    as_json: bool,
    yes: bool,
    regenerate: bool,
    basic: bool,
) -> int:
    *verbs, slug = words
    if verbs not in ([], ["show"], ["check"]):
        raise BadInput(
            f"There is no `cdd plan {' '.join(verbs)}`",
            hint="Usage: cdd plan [show | check] SLUG",
        )
    if not verbs:
        settings = invocation.model_settings
        project = open_for_work(invocation, settings, as_json=as_json)
        ticket = project.tickets.find(slug)
        making = _Making(yes, regenerate, basic)
        return _make(project, ticket, making, as_json=as_json)
    if yes or regenerate or basic:
        raise BadInput(
            f"`cdd plan {verbs[0]}` does not take --yes, --regenerate or --basic"
        )
    project = open_for_reading(invocation)
    if verbs == ["show"]:
        ticket = project.tickets.find(slug, EnoughOfSlug.WORDS)
        return _show(ticket, as_json=as_json)
    return _check(project, project.tickets.find(slug), as_json=as_json)


def _show(ticket: Ticket, *, as_json: bool) -> ExitCode:
    """Raise `PlanInvalid`."""
    plan = ticket.read_plan()
    source = ticket.shown(ticket.plan_path)
    plan.check(source)
    if as_json:
        print_json(plan.to_json())
        return ExitCode.DONE
    print_text(write_plan(plan))
    in_spec = (ticket.shown(ticket.spec_path), read_spec_problems(ticket))
    for path, findings in (in_spec, (source, plan.findings)):
        for finding in findings:
            text = f"{path}:{finding.line}: warning: {finding.text}"
            sys.stderr.write(f"{sanitize_for_display(text)}\n")
    return ExitCode.DONE


def _check(project: Project, ticket: Ticket, *, as_json: bool) -> ExitCode:
    """Compile the plan and print its problems. Return FAILED if there is an error."""
    desk = open_desk(project, ticket, open_commands(project, Nobody()))
    present = desk.present()
    problems = desk.problems(
        present.plan or ticket.read_plan(), ticket.read_spec(), present
    )
    wrong = only_errors(problems)
    if as_json:
        values = [problem.to_json() for problem in problems]
        in_spec = [problem.to_json() for problem in read_spec_problems(ticket)]
        print_json(
            {
                "ticket_slug": ticket.slug,
                "ok": not wrong,
                "problems": values,
                "spec_problems": in_spec,
            }
        )
    else:
        printer = TextPrinter()
        for notice in spec_notices(ticket):
            printer.show(notice)
        printer.show(PlanChecked(ticket.slug, desk.shown_path, tuple(problems)))
    return ExitCode.FAILED if wrong else ExitCode.DONE


def _make(
    project: Project, ticket: Ticket, making: _Making, *, as_json: bool
) -> ExitCode:
    """Make the plan and write it. Without `--regenerate`, an existing plan stays.

    Return FAILED if the plan has errors and `--yes` is missing; the proposal is then
    saved but not written. The model's messages are saved even after an error or
    interrupt.
    """
    output = Output(printer_for(as_json))
    printer = output.printer
    wiring = Wiring(project, Nobody(), output.emit, watched=False)
    desk = open_desk(project, ticket, wiring.commands)
    for notice in spec_notices(ticket):
        printer.show(notice)
    spec = desk.complete_spec()
    present = desk.present()
    if present.plan is not None and not making.regenerate:
        problems = desk.problems(present.plan, spec, present)
        return _report_existing(printer, desk, problems)

    with closing(wiring.planning(ticket, may_ask=False)) as planning:
        output.carry_out(
            _propose(planning, basic=making.basic, replaces=making.regenerate)
        )
        wrong = only_errors(planning.problems())
        if wrong and not making.yes:
            text = (
                f"{desk.shown_path} was not written. The proposal is saved. Change it"
                f" with `/plan {ticket.slug}` in the shell, or write it unchanged with"
            )
            text += f" `cdd plan {ticket.slug} --yes`."
            printer.show(Notice(text, Tone.ERROR, kind=NoticeKind.PLAN_KEPT))
            return ExitCode.FAILED
        planning.write()
    text = f"Wrote {desk.shown_path}. Next: `cdd exec {ticket.slug}`."
    printer.show(Notice(text, Tone.GOOD, kind=NoticeKind.PLAN_WRITTEN))
    return ExitCode.DONE


def _report_existing(
    printer: Printer, desk: PlanDesk, problems: Sequence[Problem]
) -> ExitCode:
    """Report that the existing plan stays. Return FAILED if it needs changes."""
    stays = f"Kept the existing {desk.shown_path}"
    wrong = only_errors(problems)
    if not wrong:
        text = f"{stays}. Add `--regenerate` to replace it."
        printer.show(Notice(text, kind=NoticeKind.PLAN_KEPT))
        return ExitCode.DONE
    slug = desk.ticket.slug
    printer.show(PlanChecked(slug, desk.shown_path, tuple(wrong)))
    reason = "it no longer fits the spec"
    if not find_misfits(wrong):
        reason = "it has errors"
    text = (
        f"{stays}, but {reason}. Change it with `/plan {slug}` in the shell, or make a"
        f" new one with `cdd plan {slug} --regenerate`; completed steps stay."
    )
    printer.show(Notice(text, Tone.WARNING, kind=NoticeKind.PLAN_KEPT))
    return ExitCode.FAILED


async def _propose(planning: Planning, *, basic: bool, replaces: bool) -> None:
    notes, emit = planning.notes, planning.recorder.emit
    is_under_way = bool(notes.is_open or notes.questions)
    has_proposal = bool(notes.proposal) and not replaces and not is_under_way
    with planning.recorder.recording():
        for notice in planning.file.news:
            emit(notice)
        if basic:
            _emit_all(emit, planning.basic())
        elif has_proposal:
            text = "Using the plan that was proposed earlier and not written."
            emit(Notice(text, kind=NoticeKind.RESUMED))
            _emit_all(emit, planning.shown())
        else:
            with preparing_model():
                planning.model().warm_up()
            if notes.task == "plan" and is_under_way:
                await _resume(planning)
            else:
                await planning.plan()


def _emit_all(emit: Emit, events: Iterable[Event]) -> None:
    for event in events:
        emit(event)


async def _resume(planning: Planning) -> None:
    """Resume interrupted planning. The model answers its open questions itself."""
    text = "Resuming the interrupted planning."
    planning.recorder.emit(Notice(text, kind=NoticeKind.RESUMED))
    if planning.notes.is_open:
        await planning.resume()
    else:
        await planning.answer(_DECIDE_YOURSELF)
