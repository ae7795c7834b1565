"""Errors that a user can act on, and the exit codes of the program.

    CddError               what happened, and a hint what to do next
    ├── BadInput           no such ticket, a bad plan, a bad config          exit 2
    ├── StepFailed         a step, an action or an edit failed               exit 1
    ├── NotApproved        stopped because an approval is missing            exit 3
    ├── BudgetExhausted    stopped before a call that could pass the budget  exit 3
    └── ModelError         the model gave no usable answer (`llm/port.py`)   exit 1, 2
                                                                             or 75

Any other exception is a bug in this program and keeps its traceback.
"""

from enum import IntEnum
from typing import ClassVar

from cdd_agent.refusals.kinds import Refusal


class ExitCode(IntEnum):
    """The exit codes for scripts."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    NOT_APPROVED = 3
    COME_BACK_LATER = 75
    INTERRUPTED = 130


class CddError(Exception):
    """An error that a user caused or can fix. It is shown as a message, never as a
    traceback.

    `message` says what happened and where, with file and line if possible. `hint` says
    what to do next. `refusal` is the kind that the help explains; None if the message
    is enough.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    refusal: Refusal | None = None

    def __init__(
        self, message: str, *, hint: str = "", refusal: Refusal | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if refusal is not None:
            self.refusal = refusal

    @property
    def remedy(self) -> str:
        """The hint and the command that explains the refusal, for the user."""
        if self.refusal is None:
            return self.hint
        return f"{_end_sentence(self.hint)} {self.refusal.reference}".lstrip()

    @property
    def in_a_line(self) -> str:
        """Message and hint as sentences in one line."""
        message = _end_sentence(self.message) if self.hint else self.message
        return f"{message} {self.hint}".rstrip()


def _end_sentence(text: str) -> str:
    if not text or text.endswith((".", "!", "?", ":")):
        return text
    return f"{text}."


class BadInput(CddError):
    """A ticket, plan, config, path or argument cannot be used."""

    exit_code = ExitCode.BAD_INPUT


class CheckUnusable(BadInput):
    """A check of a step cannot run at all: its program is missing, or it never ends. No
    code change would help.
    """

    refusal = Refusal.CHECK_UNUSABLE


class StepFailed(CddError):
    """A step of a plan failed."""

    exit_code = ExitCode.FAILED


class NotApproved(CddError):
    """Work stopped because no one approved its next action."""

    refusal = Refusal.NOT_APPROVED
    exit_code = ExitCode.NOT_APPROVED


class BudgetExhausted(CddError):
    """Work stopped because the next model call could exceed the budget."""

    refusal = Refusal.BUDGET_SPENT
    exit_code = ExitCode.NOT_APPROVED
