"""Processes of the tests' own, which may be killed: forks of one that has imported what
they need.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Mapping
from multiprocessing.util import get_temp_dir

PROCESSES = multiprocessing.get_context("forkserver")
# now: that of a test which sets another TMPDIR may have too long a name, and goes with
# the test
get_temp_dir()
# There is one such server for all tests of a process, and the last list that it is
# given before it starts is the one.
PROCESSES.set_forkserver_preload(
    [
        *(
            "tests.crash.driver",
            "tests.support.projects",
            "cdd_agent.cli.working",
            "cdd_agent.travel.push",
            "cdd_agent.travel.pull",
        ),
        *(
            "cdd_agent.cli.parser",
            "cdd_agent.cli.plain",
            "cdd_agent.tui.app",
            "cdd_agent.wiring.root",
            "tests.support.forked",
        ),
        *(
            "cdd_agent.agents.base",
            "cdd_agent.engine.step_check",
            "cdd_agent.changes.build",
            "tests.support.held_replies",
            "tests.support.patience",
        ),
        *(
            "cdd_agent.engine.report_page",
            "filelock",
            "markdown_it",
            "platformdirs",
            "psutil",
            "pytest",
        ),
    ]
)


def take_environment(variables: Mapping[str, str]) -> None:
    """To be called first in a fork. What it has is that of the test which came first in
    its process, and with that a folder for temporary files which may be gone: something
    that was imported has asked for it.
    """
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
