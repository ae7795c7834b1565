"""Bounds of what the program waits for, which tests of anything else never come to."""

from cdd_agent.agents import mention_completion
from cdd_agent.cli import examining, working
from cdd_agent.dialogue import looking
from cdd_agent.files import index
from cdd_agent.llm import timeouts
from cdd_agent.project import interpreters

LONG = 120.0


def be_patient() -> None:
    """A second or less is what a person is kept waiting for a completion, for facts of
    a model, or for news of what goes on. A machine that stalls for so long must not
    decide what a test sees; one of such a bound sets it anew.
    """
    mention_completion._SECONDS = LONG
    examining._PATIENCE = LONG
    looking._PATIENCE = working._SLOW = LONG
    index._FRESH = LONG
    timeouts.LOCAL_SERVERS_TIMEOUT = LONG
    timeouts.FACTS_TIMEOUT = timeouts.LOCAL_FACTS_TIMEOUT = LONG
    interpreters._SECONDS = LONG
