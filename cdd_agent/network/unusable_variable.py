"""A variable of the environment that stops calls over the network."""

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal


class UnusableVariable(BadInput):
    """A variable names a proxy or certificates that cannot be used. No call that needs
    it can succeed before the user changes it.
    """

    refusal = Refusal.ENVIRONMENT_UNUSABLE
