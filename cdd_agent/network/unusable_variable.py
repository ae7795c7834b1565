from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal


class UnusableVariable(BadInput):
    """A variable names an unusable proxy or unusable certificates. No call that needs
    it can succeed before the user changes it.
    """

    refusal = Refusal.ENVIRONMENT_UNUSABLE
