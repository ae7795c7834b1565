"""`cdd demo`: a run on a sample project, with scripted replies."""

import sys

from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.runs import run_plan
from cdd_agent.cli.shell import DEMO_NOTE, run_demo_in_shell
from cdd_agent.cli.without_screen import printer_for
from cdd_agent.cli.working import Output, frontend_for
from cdd_agent.demo.sample import SLUG, copy_sample, own_environment
from cdd_agent.errors import BadInput
from cdd_agent.fleet.order import RunOrder
from cdd_agent.session.open_project import accept_once, open_project


def demo(invocation: Invocation, *, headless: bool, as_json: bool) -> int:
    if invocation.model or invocation.api_base or invocation.record:
        raise BadInput(
            "The demo uses scripted replies; --model, --api-base and --record do not"
            " work there",
            hint=("To use your own model, run `cdd --model M` in a project of yours."),
        )
    with own_environment():
        folder = copy_sample()
        can_draw = sys.stdin.isatty() and sys.stdout.isatty()
        if can_draw and not (headless or as_json):
            return run_demo_in_shell(invocation, folder, SLUG)
        sys.stderr.write(DEMO_NOTE.format(folder=folder) + "\n")
        project = open_project(folder, {"approval": "auto"}, decide=accept_once)
        output = Output(printer_for(as_json))
        order = RunOrder(folder, SLUG)
        return run_plan(project, order, output, frontend_for(output.printer))
