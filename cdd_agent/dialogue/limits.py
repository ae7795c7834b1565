"""Limits of a turn of the model."""

from msgspec import Struct


class Used(Struct, frozen=True):
    """The part of a turn's limits that is used."""

    rounds: int = 0
    seconds: float = 0.0


class Limits(Struct, frozen=True):
    rounds: int = 25
    """Rounds with tools. The model has one more for its last reply."""
    seconds: float = 900.0
    """No round begins and no call is made after this time."""

    def describe_exhausted(self, used: Used) -> str:
        """Return why no more tools can be used, as a clause; empty if they can."""
        if used.rounds >= self.rounds:
            return f"the {self.rounds} rounds of this turn are used"
        if used.seconds > self.seconds:
            return f"the {self.seconds:.0f} seconds of this turn are over"
        return ""
