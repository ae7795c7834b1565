"""The programs that run tests and tell of each. A new one is a module here with a
`TestRunner`, and a line below.
"""

from cdd_agent.verification.runner import TestRunner
from cdd_agent.verification.runners.cargo import Cargo
from cdd_agent.verification.runners.go import Go
from cdd_agent.verification.runners.jest import Jest, Vitest
from cdd_agent.verification.runners.node import Node
from cdd_agent.verification.runners.pytest import Pytest
from cdd_agent.verification.runners.unittest import Unittest

RUNNERS: tuple[TestRunner, ...] = (
    Pytest(),
    Unittest(),
    Jest(),
    Vitest(),
    Node(),
    Go(),
    Cargo(),
)
