"""The known test runners.

Built-in runners are classes here or rows of a table. Other packages add theirs as entry
points of `cdd_agent.test_runners`.
"""

from functools import lru_cache

from cdd_agent.verification.runner import TestRunner
from cdd_agent.verification.runners.added import load_added
from cdd_agent.verification.runners.cargo import Cargo
from cdd_agent.verification.runners.go import Go
from cdd_agent.verification.runners.javascript import JAVASCRIPT_RUNNERS
from cdd_agent.verification.runners.pytest import Pytest
from cdd_agent.verification.runners.reporting_tools import REPORTING_TOOLS
from cdd_agent.verification.runners.unittest import Unittest
from cdd_agent.verification.runners.wrapped_pytest import WrappedPytest


@lru_cache(1)
def all_runners() -> tuple[TestRunner, ...]:
    """The first that recognises a command is used."""
    built_in = (Pytest(), Unittest(), *JAVASCRIPT_RUNNERS, Go(), Cargo())
    # last, because it may start pytest
    return (*built_in, *REPORTING_TOOLS, *load_added(), WrappedPytest())
