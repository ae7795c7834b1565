"""How many examples Hypothesis makes for properties that take long."""

from hypothesis import settings


def fewer(divisor: int) -> settings:
    """Return settings with that fraction of the examples that the profile asks for."""
    return settings(max_examples=settings().max_examples // divisor)
