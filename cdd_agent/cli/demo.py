"""`cdd demo`: the main job on a sample project, with a model that plays a script."""

import sys
from argparse import Namespace
from pathlib import Path

from cdd_agent.commands.terminal import flag, terminal_command
from cdd_agent.errors import BadInput

_NOTE = """\
This is a demo: the replies come from a script, everything else is real (files, git, \
pytest). None of your settings and keys are used.
The project is a copy in {folder}. For your own: `cdd init`, and `cdd doctor` says how \
to set up a model."""


@terminal_command(
    "demo",
    """
    cdd demo
    cdd demo --headless
    """,
    flag("--headless", "without the shell"),
    flag("--json", "one event a line; implies --headless"),
)
def demo(options: Namespace) -> int:
    from cdd_agent.cli.runs import run_plan
    from cdd_agent.demo.sample import SLUG, copy_sample, own_environment
    from cdd_agent.open_project import open_project

    if options.model or options.api_base or options.record:
        raise BadInput(
            "The demo's replies come from its own script: --model, --api-base and"
            " --record have no meaning there",
            hint=(
                "To see a model of yours at work: cdd --model M in a project of your"
                " own."
            ),
        )
    with own_environment():
        folder = copy_sample()
        seen = sys.stdin.isatty() and sys.stdout.isatty()
        if seen and not (options.headless or options.json):
            return _in_the_shell(options, folder)
        sys.stderr.write(_NOTE.format(folder=folder) + "\n")
        return run_plan(
            open_project(folder, {"approval": "auto"}), SLUG, as_json=options.json
        )


def open_demo(options: Namespace) -> int:
    """The demo in the shell."""
    from cdd_agent.demo.sample import copy_sample, own_environment

    with own_environment():
        return _in_the_shell(options, copy_sample())


def _in_the_shell(options: Namespace, folder: Path) -> int:
    from cdd_agent.cli.shell import run_shell
    from cdd_agent.demo.sample import SLUG

    options.project = folder
    code = run_shell(options, _NOTE.format(folder=folder), f"/exec {SLUG}")
    sys.stderr.write(
        f"The demo's project stays in {folder}; `cdd -C {folder}` opens it again.\n"
    )
    return code
