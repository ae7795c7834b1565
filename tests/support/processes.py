"""Processes that tests may kill: forks of one that has imported everything they
need.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Mapping
from multiprocessing.util import get_temp_dir

PROCESSES = multiprocessing.get_context("forkserver")
# early: a test that sets another TMPDIR may have too long a name, and its folder is
# deleted with the test
get_temp_dir()
# all tests of a process share one such server; the last list before its start counts
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
    """Call this first in a fork. Its environment is that of the first test in the
    process, with a cached folder for temporary files that may be deleted.
    """
    os.environ.clear()
    os.environ.update(variables)
    tempfile.tempdir = None
