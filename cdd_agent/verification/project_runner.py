"""A test runner of a project, as its files declare it."""

from msgspec import Struct


class ProjectRunner(Struct, frozen=True):
    """The command that runs the tests of one language in one folder."""

    language: str
    argv: tuple[str, ...]
    """The words as the user writes them."""
    reason: str
    """The evidence, as a clause, such as "declared in requirements.txt"."""
