"""A variable of the environment that stops calls over the network."""

from cdd_agent.errors import BadInput


class UnusableVariable(BadInput):
    """A variable names a proxy or certificates that cannot be used. No call that needs
    it can succeed before the user changes it.
    """
