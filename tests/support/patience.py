"""Time limits of the program, made so long that no test reaches them by chance."""

from cdd_agent.agents import mention_completion
from cdd_agent.cli import examining, working
from cdd_agent.dialogue import code_search
from cdd_agent.files import index
from cdd_agent.llm import timeouts
from cdd_agent.project import interpreters

LONG = 120.0


def be_patient() -> None:
    """Lengthen the limits of a few seconds or less, after which the program continues
    without an answer: a machine may stall that long. A test of a limit sets it again.
    """
    mention_completion.COMPLETION_TIMEOUT = LONG
    examining.SERVER_TIMEOUT = LONG
    code_search.NOTICE_DELAY = working.NOTICE_DELAY = LONG
    index._FRESH = LONG
    timeouts.LOCAL_SERVERS_TIMEOUT = timeouts.AFTER_END_TIMEOUT = LONG
    timeouts.FACTS_TIMEOUT = timeouts.LOCAL_FACTS_TIMEOUT = LONG
    interpreters._SECONDS = LONG
