"""A ticket's plan: made, or compiled and its problems printed."""

import json
import sys
from contextlib import closing
from functools import cache

from cdd_agent.agents.planning import Planning
from cdd_agent.config import of_role
from cdd_agent.errors import ExitCode
from cdd_agent.events import About, Notice, PlanChecked, Tone
from cdd_agent.frontend import Nobody
from cdd_agent.headless.showing import Output, printer_for
from cdd_agent.printer import TextPrinter
from cdd_agent.session import Project
from cdd_agent.tickets.plan_check import errors
from cdd_agent.tickets.store import Ticket
from cdd_agent.wiring import configured_model, open_commands, open_desk, open_planning


def run_planning(
    project: Project, slug: str, *, as_json: bool, approve: bool, regenerate: bool, basic: bool
) -> ExitCode:
    """Make a ticket's plan and write it; one that is there stays, unless it is to be made anew.

    FAILED where compiling the plan finds errors and they are not approved: it is kept, and not written. Raises
    `CddError`, such as `BadInput` when another process is at work on the ticket, `KeyboardInterrupt` when interrupted;
    what was learnt until then is kept, too.
    """
    printer, ticket = printer_for(as_json), project.tickets.find(slug)
    output = Output(printer)
    desk = open_desk(project, ticket, open_commands(project, Nobody()))
    desk.complete_spec()
    if desk.present().plan is not None and not regenerate:
        printer.show(
            Notice(f"{desk.shown_path} is there, and stays. `--regenerate` makes another one.", about=About.PLAN_KEPT)
        )
        return ExitCode.DONE
    with closing(_open_planning(project, ticket, output)) as planning:
        output.carry_out(_plan(planning, basic=basic, anew=regenerate))
        wrong = errors(planning.problems())
        if wrong and not approve:
            text = f"{desk.shown_path} was not written. The plan is kept: `/plan {ticket.slug}` changes it, "
            printer.show(
                Notice(
                    f"{text}`cdd plan {ticket.slug} --yes` writes it as it is.",
                    Tone.ERROR,
                    about=About.PLAN_NOT_WRITTEN,
                )
            )
            return ExitCode.FAILED
        planning.save()
    printer.show(
        Notice(
            f"Wrote {desk.shown_path}. `cdd exec {ticket.slug}` carries it out.", Tone.GOOD, about=About.PLAN_WRITTEN
        )
    )
    return ExitCode.DONE


async def _plan(planning: Planning, *, basic: bool, anew: bool) -> None:
    """Have a plan proposed: the one that an earlier planning left, or from where it was interrupted, or a new one."""
    notes, emit = planning.notes, planning.recorder.emit
    with planning.recorder.recording():
        for notice in planning.kept.news:
            emit(notice)
        is_under_way = notes.is_open or notes.questions
        if basic or (notes.proposal and not (anew or is_under_way)):
            if not basic:
                text = "Taking up the plan that was proposed before, and not written."
                emit(Notice(text, about=About.PROPOSED_BEFORE))
            for event in planning.basic() if basic else planning.shown():
                emit(event)
            return
        planning.model().warm_up()
        if notes.task == "plan" and is_under_way:
            emit(Notice("Going on with the planning that was interrupted.", about=About.GOING_ON))
            nobody = "Nobody can answer now. Decide, and write each assumption into `risks`: `Assumed: …`."
            await (planning.go_on() if notes.is_open else planning.answer(nobody))
        else:
            await planning.plan()


def _open_planning(project: Project, ticket: Ticket, output: Output) -> Planning:
    config = of_role(project.config, "planner")
    model = cache(lambda: configured_model(config, project.root, watched=False))
    return open_planning(project, ticket, model, open_commands(project, Nobody()), output.emit, may_ask=False)


def run_plan_check(project: Project, slug: str, *, as_json: bool) -> ExitCode:
    """Compile a ticket's plan and print its problems; FAILED where one is an error. Raises `BadInput`."""
    ticket = project.tickets.find(slug)
    desk = open_desk(project, ticket, open_commands(project, Nobody()))
    present = desk.present()
    problems = desk.problems(present.plan or ticket.read_plan(), ticket.read_spec(), present)
    wrong = errors(problems)
    if as_json:
        report = {"ticket_slug": ticket.slug, "ok": not wrong, "problems": [problem.to_json() for problem in problems]}
        sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")
    else:
        TextPrinter().show(PlanChecked(ticket.slug, desk.shown_path, tuple(problems)))
    return ExitCode.FAILED if wrong else ExitCode.DONE
