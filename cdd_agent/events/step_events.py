"""Events of one step: its attempts, changes, checks, undo."""

from msgspec import Struct, field

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.base_event import BaseEvent, NamesStep, NamesSteps
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.tickets.status import Evidence, Verification


class CheckpointStarted(BaseEvent, frozen=True):
    """The project's files are being saved."""

    step: int


class StepStarted(NamesStep, frozen=True):
    """An attempt at a step starts."""

    step: int
    title: str
    attempt: int
    side_tree: bool = False
    """True if it runs side by side with other steps, in a separate tree. Later it
    starts again in the user's tree.
    """


class GuidanceTaken(NamesStep, frozen=True):
    """The model got a message that the user sent during the step."""

    step: int
    text: str


class ChangesApplied(BaseEvent, frozen=True):
    """Files were written. In chat, `step` is None."""

    step: int | None
    created: tuple[str, ...]
    modified: tuple[str, ...]
    undeclared: tuple[str, ...]
    """Files among them that the plan's step does not name."""
    deleted: tuple[str, ...] = ()
    files: tuple[FileDiff, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    """The old and new names of files that were moved without a change. These files are
    also in `deleted` and `created`.
    """


class ChangesPutBack(BaseEvent, frozen=True):
    """The files of an attempt were restored."""

    step: int
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were edited since, and are not restored."""
    merged: tuple[str, ...] = ()
    """Files that were edited since. The attempt's changes were removed, the edit is
    kept.
    """


class TestsStarted(BaseEvent, frozen=True):
    """A check of a step starts. Several checks of a step run in order."""

    step: int
    command: str

    # pytest would collect a class of this name
    __test__ = False


class CommandOutput(BaseEvent, frozen=True):
    """A piece of a command's output. For the user's own command, `step` is None."""

    step: int | None
    text: str


class FailedTest(Struct, frozen=True):
    """A test that failed in a check."""

    test: str
    """The test's id: file and name."""
    message: str
    """The failed assertion or another reason, in a line; empty if unknown."""
    place: str
    """The failed line, as `path:line`; empty if unknown."""
    text: str
    is_old: bool
    """True if it failed before the step, too, and does not count."""

    # pytest would collect a class of this name
    __test__ = False


class TestsFinished(BaseEvent, frozen=True):
    """A check of a step is over. The step's last check also reports failures of the
    step as a whole.
    """

    step: int
    verification: Verification | None
    """None if the check failed."""
    reason: str
    seconds: float
    notes: tuple[str, ...] = ()
    """With the step's last check: points for the user to look at, even if the step
    passed. They are old failures, removed tests, and changes to how tests are run.
    """
    command: str = ""
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    """Numbers of tests; None if the check does not report single tests."""
    failures: tuple[FailedTest, ...] = ()
    """The first failed tests; those that count come first."""
    evidence: Evidence | None = None
    """With the step's last check: the evidence of all its checks. None in older
    logs.
    """
    not_run: tuple[str, ...] = ()
    """The checks of the step that did not run because this one failed."""

    # pytest would collect a class of this name
    __test__ = False


class AttemptFailed(NamesStep, frozen=True):
    """An attempt failed."""

    step: int
    attempt: int
    error: str
    will_retry: bool
    last_attempt: int = 0
    """The number of the last attempt that the run will make; 0 in older logs."""
    refusal: str = ""
    """The id of the kind of failure, for `cdd help`. Empty in older logs."""


class StepCommitted(BaseEvent, frozen=True):
    """The files of a completed step were committed."""

    step: int
    commit: str
    submodule_commits: dict[str, str] = field(default_factory=dict)


class UndoPreview(NamesSteps, frozen=True):
    """The effect of an undo."""

    steps: tuple[int, ...]
    """The steps that would be pending again, in the order of their ends."""
    restored: tuple[str, ...]
    """Files that would be restored."""
    kept: tuple[str, ...]
    """Files of these steps that were edited since, and would be kept."""
    edited: tuple[str, ...] = ()
    """Files that were edited between the steps. The edits would be kept."""
    merged: tuple[str, ...] = ()
    """Files that were edited since. The steps' changes would be removed, the edit
    kept.
    """
    others: tuple[str, ...] = ()
    """Other files that commands and checks changed. They would be kept."""
    commits: tuple[str, ...] = ()
    """The commits of these steps. They would be kept."""
    commands: tuple[str, ...] = ()
    """Commands of the model that ran. Their other effects cannot be undone."""


class StepsUndone(NamesSteps, frozen=True):
    """The steps are pending again. The user's edits are kept."""

    steps: tuple[int, ...]
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were edited since, and are kept."""
    commits: tuple[str, ...] = ()
    """The commits of these steps. They are kept."""
    edited: tuple[str, ...] = ()
    """Files that were edited between the steps or attempts. The edits are kept."""
    merged: tuple[str, ...] = ()
    """Files that were edited since. The steps' changes were removed, the edit is
    kept.
    """
    others: tuple[str, ...] = ()
    """Other files that commands and checks of the steps changed. They are kept."""
    ticket_slug: str = ""
    """Empty in older logs."""


class StepsRedone(NamesSteps, frozen=True):
    """The undo was reversed."""

    steps: tuple[int, ...]
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    merged: tuple[str, ...] = ()
    """Files that were edited since the undo. They contain the changes and the edit."""


class StepDiff(NamesStep, frozen=True):
    """The changes of a step, as a unified diff."""

    step: int
    title: str
    diff: str


StepEvent = (
    CheckpointStarted
    | StepStarted
    | GuidanceTaken
    | ChangesApplied
    | ChangesPutBack
    | TestsStarted
    | CommandOutput
    | TestsFinished
    | AttemptFailed
    | StepFinished
    | StepCommitted
    | StepsUndone
    | StepsRedone
    | StepDiff
)
