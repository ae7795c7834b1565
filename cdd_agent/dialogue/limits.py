"""Limits of a turn of the model."""

from msgspec import Struct


class Used(Struct, frozen=True):
    rounds: int = 0
    seconds: float = 0.0


class Limits(Struct, frozen=True):
    rounds: int = 25
    """Rounds with tools. The model has one more round for its last reply."""
    seconds: float = 900.0
    """After this time, no round and no call begins."""

    def describe_exhausted(self, used: Used) -> str:
        """Return why tools can no longer be used, as a clause; empty if they can."""
        if used.rounds >= self.rounds:
            return f"the {self.rounds} rounds of this turn are used"
        if used.seconds > self.seconds:
            return f"the {self.seconds:.0f} seconds of this turn are over"
        return ""
