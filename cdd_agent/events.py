"""Everything the engine and the commands can tell a face: one frozen struct each, by
subject.

The shell, the headless printer and the `--json` printer read the same stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import force_setattr

from cdd_agent.edits.file_diff import FileDiff, LeftOut
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.port import PromptShare, Usage
from cdd_agent.tickets.run_outcome import judge_run
from cdd_agent.tickets.served_criteria import edited_criteria
from cdd_agent.tickets.state import edited_steps
from cdd_agent.tickets.status import (
    NO_COST,
    Cost,
    CriterionEdit,
    EditedCriterion,
    Evidence,
    MissingWork,
    RunStatus,
    StepStatus,
    Unproven,
    Verification,
    fill_label,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cdd_agent.tickets.plan import ImplementationPlan, PlanStep, Problem
    from cdd_agent.tickets.state import ExecutionState, StepExecution


# names of steps


class NamesStep(Struct, frozen=True, kw_only=True):
    """An event that a face shows with the name of its step. `step` is the number that
    everything is keyed by.
    """

    label: str = ""
    """What the user sees and types: the number as the plan writes it, such as `1b`."""

    def __post_init__(self) -> None:
        step = getattr(self, "step", None)
        if step is not None:
            fill_label(self, step)


class NamesSteps(Struct, frozen=True, kw_only=True):
    """The same for an event about several `steps`."""

    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.labels:
            numbers = getattr(self, "steps", ())
            force_setattr(self, "labels", tuple(map(str, numbers)))


# what is said


class Tone(StrEnum):
    """How words are meant, so that a face can colour them."""

    PLAIN = "plain"
    QUIET = "quiet"
    HEADING = "heading"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"


class Choice(StrEnum):
    """The answers to a proposal."""

    YES = "yes"
    NO = "no"
    ALWAYS = "always"
    """Yes, and to everything like it for as long as this session lasts."""
    QUIT = "quit"
    """No, and to all that would follow."""


class About(StrEnum):
    """The subject of a notice, for those who cannot go by its words: scripts and
    tests.
    """

    # the shell and its agents
    NEXT_STEP = "next_step"
    NOT_DONE = "not_done"
    """A line that was not understood, or cannot be done now: nothing was."""
    MEANT_ANOTHER_STEP = "meant_another_step"
    NO_FAILURE = "no_failure"
    STEP_FAILED = "step_failed"
    ALL_DONE = "all_done"
    GOING_ON = "going_on"
    LEFT = "left"
    """The agent, by the person."""
    AGENT_CLOSED = "agent_closed"
    RUN_LEFT = "run_left"
    NOTHING_TO_RESUME = "nothing_to_resume"
    RESUMED = "resumed"
    NOTHING_TO_APPROVE = "nothing_to_approve"
    COST = "cost"
    NO_MODEL = "no_model"
    NO_SERVERS = "no_servers"
    MADE = "made"
    UNREADABLE = "unreadable"
    """A file of the project from which something was to be learnt."""
    NOTHING_NEW = "nothing_new"
    TRUST = "trust"
    """Settings of the project that need the user's trust."""

    # a conversation and what the model is told
    SENT = "sent"
    NOT_SENT = "not_sent"
    LEFT_OUT = "left_out"
    CHOSEN = "chosen"
    """Files that prompts show, or leave out, as a person wants it."""
    LOOKING = "looking"
    """For code, which takes a while."""
    NOT_SHOWN = "not_shown"
    """A file that the step names, or rules for agents, and why the model does not get
    it, or not all of it.
    """
    NO_TOOLS = "no_tools"
    REPLY_INCOMPLETE = "reply_incomplete"
    ANSWER_WRONG = "answer_wrong"
    SUMMED_UP = "summed_up"
    NOT_SUMMED_UP = "not_summed_up"
    NOT_SAVED = "not_saved"
    DAMAGED = "damaged"
    """Lines of the saved conversation."""
    SET_ASIDE = "set_aside"
    """A saved conversation about a ticket that could not be read."""
    STARTED_OVER = "started_over"
    UNANSWERED = "unanswered"
    EXPLORED = "explored"

    # specs and plans
    SPEC_COMPLETE = "spec_complete"
    SPEC_INCOMPLETE = "spec_incomplete"
    SPEC_WRITTEN = "spec_written"
    WORDS_LOST = "words_lost"
    """Words of a spec that a turn, or approving the draft, removes or rewords."""
    QUESTIONS_CLOSED = "questions_closed"
    """Open questions that were answered or dropped."""
    SPEC_CHANGED = "spec_changed"
    CHANGED_MEANWHILE = "changed_meanwhile"
    CHANGED_UNSEEN = "changed_unseen"
    """The spec, with the words that approve it."""
    WHAT_NEXT = "what_next"
    CHANGES = "changes"
    """The model's summary of how it would change the plan."""
    INTERRUPTED = "interrupted"
    PROPOSED_BEFORE = "proposed_before"
    PLAN_WRITTEN = "plan_written"
    PLAN_NOT_WRITTEN = "plan_not_written"
    PLAN_KEPT = "plan_kept"
    SPEC_FINDING = "spec_finding"
    """A line of spec.yaml that is not read as it may be meant."""
    PLAN_FINDING = "plan_finding"
    """A line of plan.md that is not read as it may be meant."""
    PLAN_EDITED = "plan_edited"

    # a run
    RENUMBERED = "renumbered"
    ONE_BY_ONE = "one_by_one"
    """Steps that were to run side by side cannot."""
    OVERLAP = "overlap"
    """Files that a step beside others was made on, and that are others by now: it is
    made once more.
    """
    SET_APART = "set_apart"
    """A step that failed makes room for those beside it."""
    STEP_CHANGED = "step_changed"
    STEP_REMOVED = "step_removed"
    STATE_REBUILT = "state_rebuilt"
    STATE_OLDER = "state_older"
    STATE_COPIED = "state_copied"
    TICKET_RENAMED = "ticket_renamed"
    STATE_TAKEN_OVER = "state_taken_over"
    OTHER_RUN = "other_run"
    LEFT_AS_IS = "left_as_is"
    """Files that a step's commands may have made: `undo` takes them back."""
    NOT_APPROVED = "not_approved"
    """A run stops, and waits for a person; by the next two, for a larger budget or a
    provider.
    """
    NO_BUDGET = "no_budget"
    COME_BACK_LATER = "come_back_later"
    MODEL_FAILED = "model_failed"
    """The model could not be asked, or gave no usable reply: the run's error."""
    SAVED_WORK = "saved_work"
    """An interrupted step goes on from what was paid for before."""
    FAILURE_REINSTATED = "failure_reinstated"
    """A failed step is as it was, because its next attempt got no reply."""
    COMMAND_ENDED = "command_ended"
    """A command of a run that was killed, and that had outlived it."""
    CHANGED_BESIDE = "changed_beside"
    """Files that changed while a step ran, or since, and that could be the person's:
    `undo` leaves them, too.
    """
    DEPENDENTS = "dependents"
    DOUBT = "doubt"
    """A block of a reply that could be a file, and was taken for explanation."""
    FILE_NOTE = "file_note"
    """A file of a reply: what did not have to be done, or could not be judged."""
    NOT_DONE_AGAIN = "not_done_again"
    NOT_IN_CHECKPOINT = "not_in_checkpoint"
    NOT_COMMITTED = "not_committed"
    LEFT_OUT_OF_COMMIT = "left_out_of_commit"
    NOTHING_TO_UNDO = "nothing_to_undo"
    RUN_PUSHED = "run_pushed"
    RUN_PULLED = "run_pulled"
    ELSEWHERE = "elsewhere"
    """The run, of which only what is known here is shown."""
    OWN_TREE = "own_tree"
    EDITABLE_INSTALL = "editable_install"
    LANDED = "landed"
    CHECKED = "checked"
    AT_WORKER = "at_worker"
    """The worker of a cluster that a run goes on at."""
    NO_WORKER = "no_worker"
    """There is none that takes it, or one that does not."""
    NOT_RENEWED = "not_renewed"
    STILL_HELD = "still_held"
    """The lease of a run that was pulled: the remote cannot be asked."""


class Notice(Struct, frozen=True):
    """Words of the program itself."""

    text: str
    tone: Tone = Tone.PLAIN
    about: About | None = None
    """None where nobody has to tell it from others."""
    step: int | None = None
    """The step that it is about, where several are under way."""


class Answer(Struct, frozen=True):
    """The answer of a command, as Markdown."""

    text: str


Words = Notice | Answer


# the shell


class Cleared(Struct, frozen=True):
    """The person wants an empty transcript."""


class ExitRequested(Struct, frozen=True):
    """The person wants to leave the program."""


class ScreenAsked(Struct, frozen=True):
    """The person wants to see one of the screens around the work: `help`, `tickets`,
    `board`, `settings`, `theme`.
    """

    screen: str
    instead: str
    """Said by a face that has no such screen."""
    choice: str = ""
    """Of `theme`, the one to use; of `help`, the agent it is about."""


class PersonSaid(Struct, frozen=True):
    """A line of the person's, for an agent. Kept in logs; no face is told of it while
    it is said.
    """

    text: str


class SessionView(Struct, frozen=True):
    """Something that can be gone on with: a conversation in chat, or the work on a
    ticket.
    """

    key: str
    """The name by which `/resume` knows it: a ticket's slug, or `chat-` and when it
    began.
    """
    agent: str
    """`chat`, or the agent that was at work on the ticket last."""
    touched: str
    """When it was gone on with last, in ISO 8601."""
    progress: str = ""
    last: str = ""
    """The last line of it, shortened."""


class SessionsListed(Struct, frozen=True):
    """Earlier sessions that can be gone on with, the latest first."""

    sessions: tuple[SessionView, ...]


class SessionRestored(Struct, frozen=True):
    """The events and words of an earlier session, as far as they were kept: nothing of
    it happens now.
    """

    key: str
    events: tuple[Event, ...]
    left_out: bool = False
    """There was more before."""


class AgentChanged(Struct, frozen=True):
    """Which agent plain text goes to from now on; None: back in chat."""

    agent: str | None
    ticket_slug: str | None = None


class ModelsFound(Struct, frozen=True):
    """The models that servers on this computer offer; a person may choose one by its
    number, from 1.
    """

    models: tuple[OfferedModel, ...]
    without_models: tuple[str, ...] = ()
    """Servers that run and offer none."""
    more: int = 0
    """Models that are found too and are not among `models`."""


class ModelChosen(Struct, frozen=True):
    """Another model is asked from now on."""

    model: str
    api_base: str | None
    saved_in: str | None = None
    """The file in which it was set, for the time after this session too."""
    role: str | None = None
    """Who asks it; None: all who have none of their own."""


class OwnCommandStarted(Struct, frozen=True):
    """The person runs a command of their own."""

    command: str


class OwnCommandFinished(Struct, frozen=True):
    """It ended, by itself or because the person ended it."""

    command: str
    result: str
    """How, in a few words; empty when it succeeded."""


ShellEvent = (
    Cleared
    | ExitRequested
    | ScreenAsked
    | PersonSaid
    | SessionsListed
    | SessionRestored
    | AgentChanged
    | ModelsFound
    | ModelChosen
    | OwnCommandStarted
    | OwnCommandFinished
)


# tickets, their specs and plans


TICKET_STATES = (
    "empty",
    "spec",
    "planned",
    "in progress",
    "failed",
    "done",
    "spec changed",
    "unreadable",
)


class TicketView(Struct, frozen=True):
    """One ticket as a list shows it. `state` is one of `TICKET_STATES`."""

    slug: str
    state: str
    done: int = 0
    total: int = 0
    error: str = ""
    type: str = ""
    """Empty where neither the slug nor the spec says it."""
    where: str = ""
    """Where its run goes on, in a few words, if not in the person's own files here."""


class TicketsListed(Struct, frozen=True):
    """The tickets; with `state` or `type`, only those in it and of it."""

    tickets: tuple[TicketView, ...]
    state: str | None = None
    type: str | None = None


class SpecOpened(Struct, frozen=True):
    """A ticket without a plan, and what its spec needs to be complete, a line each."""

    ticket_slug: str
    title: str
    """Empty while it is not written."""
    path: str
    missing: tuple[str, ...]
    """The fields that are not written."""
    open_points: tuple[str, ...] = ()
    """Questions and criteria without a check that the conversation with Socrates has
    left open.
    """


class CriterionView(Struct, frozen=True):
    """An acceptance criterion, and how it is checked; empty while that is not known."""

    text: str
    check: str = ""


class QuestionView(Struct, frozen=True):
    """An open question, and the number with which the user can drop it."""

    number: int
    text: str


class SpecWords(Struct, frozen=True):
    """A sentence or an item of a spec, with the field that it is in."""

    field: str
    text: str


class SpecShown(Struct, frozen=True):
    """A ticket's spec as it stands in the conversation about it. What is not written
    yet is empty.
    """

    ticket_slug: str
    title: str
    type: str
    priority: str
    description: str
    criteria: tuple[CriterionView, ...]
    scope: tuple[tuple[str, tuple[str, ...]], ...]
    technical_notes: str
    missing: tuple[str, ...]
    """The reasons why it is not complete, a line each."""
    open_questions: tuple[QuestionView, ...]
    not_written: tuple[str, ...]
    """The fields that spec.yaml says otherwise."""
    lost: tuple[SpecWords, ...] = ()
    """Sentences and items of spec.yaml that approving the draft would remove or
    reword.
    """
    in_full: bool = False
    """A person asked to see all of it."""


class StepView(Struct, frozen=True):
    """One step as a face shows it."""

    number: int
    title: str
    status: StepStatus = StepStatus.PENDING
    verification: Verification | None = None
    error: str | None = None
    reason: str | None = None
    changed: bool = False
    """It is over, and the plan says something else of it now."""
    folder: int = 0
    """The number of its folder in the run's record; 0, in older logs: its own."""
    depends_on: tuple[int, ...] = ()
    attempts: int = 0
    seconds: float | None = None
    """From its start to its end."""
    completed_at: str | None = None
    """When it was over or failed, in ISO 8601."""
    evidence: Evidence | None = None
    cost: Cost = NO_COST
    """Of all its attempts."""
    label: str = ""
    """See `NamesStep`."""

    def __post_init__(self) -> None:
        fill_label(self, self.number)

    @classmethod
    def of(
        cls,
        now: StepExecution,
        plan: ImplementationPlan,
        *,
        changed: bool = False,
    ) -> StepView:
        """A step as the state has it. Its title is that of the plan, if it is still
        there.
        """
        step = plan.step(now.step_number)
        return cls(
            now.step_number,
            (step.title if step else now.title) or "",
            now.status,
            now.verification,
            now.error,
            now.reason,
            changed,
            now.folder,
            step.dependencies if step else (),
            now.attempts,
            now.seconds,
            _iso(now.completed_at),
            now.evidence,
            now.spent,
            plan.label_of(now.step_number),
        )


class PlanOpened(Struct, frozen=True):
    """A ticket's plan is at hand: all steps, in the order in which they run, with their
    status.
    """

    ticket_slug: str
    title: str
    steps: tuple[StepView, ...]
    resumed: bool
    """An earlier run left a state."""
    former_cost: Cost = NO_COST
    """Of steps that are no longer in the plan."""
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria of the spec that are new, or were changed since the run began, and that
    no step serves.
    """
    missing: tuple[MissingWork, ...] = ()
    """Files of steps that are not in the project's tree, where somebody looked."""

    @property
    def cost(self) -> Cost:
        """That of the run."""
        return sum((step.cost for step in self.steps), self.former_cost)

    @classmethod
    def of(
        cls,
        title: str,
        plan: ImplementationPlan,
        state: ExecutionState,
        criteria: Sequence[str],
    ) -> PlanOpened:
        """`title` and `criteria` are those of the spec as it is now."""
        changed = frozenset(edited_steps(plan, state))
        steps = (
            StepView.of(state.step(step.number), plan, changed=step.number in changed)
            for step in plan.order()
        )
        former = sum((step.spent for step in state.former_steps.values()), NO_COST)
        return cls(
            state.ticket_slug,
            title,
            tuple(steps),
            state.started_at is not None,
            former,
            edited_criteria(plan, state, criteria),
        )


class CriterionProof(Struct, frozen=True):
    """An acceptance criterion, and what was done and seen for it."""

    number: int
    """Its place in the spec, from 1."""
    text: str
    steps: tuple[StepView, ...] = ()
    """Those that served its words, or are to serve them."""
    tests: tuple[str, ...] = ()
    """Those that these steps have made pass: new ones, and ones that failed before."""
    files: tuple[str, ...] = ()
    """Those that these steps have changed."""
    edit: CriterionEdit | None = None
    """Why nothing that the run did counts for it; None if the run knows its words, or a
    step is to serve them.
    """
    missing: tuple[str, ...] = ()
    """Files of these steps that are not in the project's tree as the run left them."""

    @property
    def is_seen(self) -> bool:
        """Every step that serves it is completed, tests have shown that, and the files
        are there.
        """
        is_verified = bool(self.steps) and all(
            step.verification is Verification.PASSED for step in self.steps
        )
        return is_verified and not self.missing


class CriteriaShown(Struct, frozen=True):
    """The acceptance criteria of a ticket."""

    ticket_slug: str
    title: str
    criteria: tuple[CriterionProof, ...]


class PlanChecked(Struct, frozen=True):
    """The findings of compiling a plan. Where none of them is an error, the plan can be
    carried out.
    """

    ticket_slug: str
    source: str
    """The plan as people are told of it: a file, or one that is not written yet."""
    problems: tuple[Problem, ...]


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time else None


TicketEvent = (
    TicketsListed | SpecOpened | SpecShown | PlanOpened | CriteriaShown | PlanChecked
)


# a model's replies


class PromptMade(NamesStep, frozen=True):
    """A prompt is put together; the model is about to be asked."""

    step: int | None
    parts: tuple[PromptShare, ...]
    left_out: tuple[str, ...] = ()
    """The parts that there was no room for, the most important first."""
    window: int | None = None
    """Tokens that the model takes in; None where that is not known."""


class ReplyStarted(Struct, frozen=True):
    """The model is asked; or, with `saved`, a reply that was paid for earlier is used
    again.

    Here and in the others about replies and tools, `step` is None outside of a run.
    """

    step: int | None
    model: str
    saved: bool = False
    prompt_tokens: int = 0
    """Of the request, estimated: all that is known of a call that a killed process had
    begun.
    """


class ReplyDelta(Struct, frozen=True):
    step: int | None
    text: str


class ThinkingDelta(Struct, frozen=True):
    """A piece of what the model thinks before or between the pieces of its reply; no
    part of the reply.
    """

    step: int | None
    text: str
    seconds: float = 0.0
    """For how long it has thought in this reply, up to this piece."""
    tokens: int = 0
    """How many tokens that was, by an estimate."""


class ThinkingFinished(Struct, frozen=True):
    """The model has thought, and its reply is over; or what came of it does not
    count.
    """

    step: int | None
    seconds: float | None
    """None: its provider did not show its thoughts, and only counted them."""
    tokens: int
    estimated: bool


class ReplyDelayed(Struct, frozen=True):
    """The model will be asked again after this many seconds; told anew as they pass."""

    step: int | None
    seconds: float
    reason: str


class ReplyRestarted(Struct, frozen=True):
    """The model is asked again: the reply begins anew, and what came of it before does
    not count.
    """

    step: int | None
    was_thought: bool = False
    """It was not asked again: what came turns out to be its thoughts, and the reply
    begins now.
    """


class ModelReplaced(Struct, frozen=True):
    """Another model is asked from here on, as the one before it cannot be, or can be
    again; the reply is its.
    """

    step: int | None
    model: str
    instead_of: str
    reason: str


class ReplyLost(Struct, frozen=True):
    """A call took tokens and brought no whole reply: it was cut off, empty, or stopped.
    Only the run's log is told.
    """

    usage: Usage
    step: int | None = None
    """None in older logs: the one that was asked for last."""


def cost_of(usage: Usage) -> Cost:
    return Cost(
        usage.prompt_tokens + usage.completion_tokens, usage.usd, usage.estimated
    )


class ReplyFinished(Struct, frozen=True):
    step: int | None
    usage: Usage | None


class ToolStarted(Struct, frozen=True):
    """The model uses a tool. `call` is its name and arguments, in a line."""

    step: int | None
    call: str
    tool: str = ""
    """Its name; empty where there is no such tool."""
    target: str = ""
    """The object of the call: a path, a command, a pattern, a question; all of it."""
    first_line: int | None = None
    last_line: int | None = None
    """Of the target, where the model wants some of its lines."""


class ToolFinished(Struct, frozen=True):
    """A call of a tool is over; `problem` is empty when it did what it was called
    for.
    """

    step: int | None
    call: str
    problem: str = ""
    tool: str = ""
    target: str = ""
    first_line: int | None = None
    last_line: int | None = None
    seconds: float = 0.0
    """Without those in which a person was asked."""
    exit_code: int | None = None
    """Of a command that came to its end."""
    output: str = ""
    """The end of what a command printed, or the beginning of what else was found."""
    files: tuple[FileDiff, ...] = ()
    """The changes to the project's files, where it was not a command."""


ReplyEvent = (
    PromptMade
    | ReplyStarted
    | ReplyDelta
    | ThinkingDelta
    | ThinkingFinished
    | ReplyDelayed
    | ReplyRestarted
    | ModelReplaced
    | ReplyLost
    | ReplyFinished
    | ToolStarted
    | ToolFinished
)


# what a person is asked first


class ChangesProposed(Struct, frozen=True):
    """Changes of files are valid; nothing is written yet. What a person is asked about
    them is a `Review`.
    """

    step: int
    created: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...] = ()


class ChangesReviewed(Struct, frozen=True):
    """A person has looked at proposed changes. `step` is None in chat."""

    step: int | None
    choice: Choice
    reason: str = ""
    """Why nothing is taken of them, where the model is told."""
    left_out: tuple[LeftOut, ...] = ()
    edited: tuple[str, ...] = ()
    """Files whose result they have changed."""


class AcceptingAll(Struct, frozen=True):
    """From now on the changes of this run are asked about no more (or again), because a
    person said so.
    """

    is_on: bool


class CommandProposed(Struct, frozen=True):
    """A command wants to run that the policy does not let through by itself."""

    choices: ClassVar = (Choice.YES, Choice.NO, Choice.ALWAYS)

    command: str
    reason: str
    """Why it is asked about, as a sentence: "`rm` is not on the list of allowed
    commands".
    """


class ActionProposed(Struct, frozen=True):
    """The next action of an action plan, before anything of it is done."""

    choices: ClassVar = (Choice.YES, Choice.NO, Choice.ALWAYS, Choice.QUIT)

    number: int
    total: int
    title: str
    """The action in a line."""
    details: str = ""
    """Shown before a person says yes: the content of a file, an edit's two texts."""


class LostTest(Struct, frozen=True):
    """A test that proves less than before a step, or nothing."""

    test: str
    how: str
    """What is wrong with it, as the end of a sentence: "is skipped"."""


class TestLossProposed(Struct, frozen=True):
    """A step removes or weakens tests, and its plan does not say which tests it may
    remove. Everything else about the step is fine.
    """

    choices: ClassVar = (Choice.YES, Choice.NO)
    __test__ = False  # not a test class, whatever its name

    step: int
    label: str
    """The step's number, as the plan writes it."""
    tests: tuple[LostTest, ...]


Proposal = CommandProposed | ActionProposed | TestLossProposed
"""A face can be asked to approve these, besides changes of files; `choices` are the
answers that make sense.
"""


class PersonAnswered(Struct, frozen=True):
    """A person's answer to a question of the program's."""

    question: str
    """All that they were shown."""
    answer: str
    """Empty where the question was taken away before they gave one."""


AskingEvent = (
    Proposal | ChangesProposed | ChangesReviewed | AcceptingAll | PersonAnswered
)


# a run


class BaselineStarted(Struct, frozen=True):
    """The project's own check is run before a run changes anything, while the model is
    asked.
    """

    step: int
    """The step that comes after it."""
    command: str


class BaselineAwaited(Struct, frozen=True):
    """From here on the step has to know what came of the baseline: if that is not over
    yet, it is waited for.
    """

    step: int
    command: str


class BaselineTaken(NamesStep, frozen=True):
    """How many tests passed, failed and were skipped in the baseline, where it tells;
    else its exit code.
    """

    step: int
    command: str
    return_code: int | None
    """None when it did not come to its end."""
    passed: int | None
    failed: int | None
    skipped: int | None
    seconds: float
    problem: str
    """Why its outcome is of no use, or not of full use, as a clause; then a failure
    counts as new.
    """


class CheckpointStarted(Struct, frozen=True):
    """The state of the project's files is being kept, to go back to."""

    step: int


class StepStarted(NamesStep, frozen=True):
    step: int
    title: str
    attempt: int
    side_tree: bool = False
    """It runs beside other steps, in a tree of its own; what it comes to begins anew in
    the person's tree.
    """


class GuidanceTaken(NamesStep, frozen=True):
    """Words that a person has said to a running step have reached the model, with the
    answers to its calls.
    """

    step: int
    text: str


class ChangesApplied(Struct, frozen=True):
    """Files were written. `step` is None in chat."""

    step: int | None
    created: tuple[str, ...]
    modified: tuple[str, ...]
    undeclared: tuple[str, ...]
    """Files among them that the plan did not name for this step."""
    deleted: tuple[str, ...] = ()
    files: tuple[FileDiff, ...] = ()
    """The difference of each of them."""


class ChangesPutBack(Struct, frozen=True):
    """The files an attempt wrote are as they were before it; those in `kept` were
    edited since and left alone.
    """

    step: int
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    merged: tuple[str, ...] = ()
    """Files that were edited since: the attempt's changes are gone, the edit is
    there.
    """


class TestsStarted(Struct, frozen=True):
    """A check of a step starts. A step can have several, which run in order."""

    step: int
    command: str

    __test__ = False  # not a test class, whatever its name


class CommandOutput(Struct, frozen=True):
    """A piece of what a command prints, as it comes: a step's check, or a person's own
    (`step` is None).
    """

    step: int | None
    text: str


class FailedTest(Struct, frozen=True):
    """A test that a check saw fail."""

    test: str
    """Its id: file and name."""
    message: str
    """The failed assertion, or what else went wrong, in a line; empty where the report
    does not say it.
    """
    place: str
    """The line in which it failed, as `path:line`; empty where that is not known."""
    text: str
    """The report's text on it."""
    is_old: bool
    """It failed before too, and does not count."""

    __test__ = False


class TestsFinished(Struct, frozen=True):
    """A check of a step is over. `verification` is None if it failed, and `reason` says
    why. The last check of a step also reports a failure of the step as a whole.
    """

    step: int
    verification: Verification | None
    reason: str
    seconds: float
    notes: tuple[str, ...] = ()
    """What the user should look at, also if the step passed: old failures, tests that
    are gone, changes to how tests are run. With the last check of the step.
    """
    command: str = ""
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    """How many tests did, where the check tells of each of them."""
    failures: tuple[FailedTest, ...] = ()
    """The first of those that failed; those that count before the others."""
    evidence: Evidence | None = None
    """Of all checks of the step, with the last one. None in older logs."""
    not_run: tuple[str, ...] = ()
    """The checks of the step that did not run because this one failed."""

    __test__ = False


class AttemptFailed(NamesStep, frozen=True):
    step: int
    attempt: int
    error: str
    will_retry: bool


class StepFinished(NamesStep, frozen=True):
    """A step is over, failed, or pending again (interrupted)."""

    step: int
    title: str
    status: StepStatus
    verification: Verification | None
    error: str | None
    reason: str | None
    files_created: tuple[str, ...]
    files_modified: tuple[str, ...]
    done: int
    total: int
    files_deleted: tuple[str, ...] = ()
    attempts: int = 0
    seconds: float | None = None
    """From its start to its end."""
    completed_at: str | None = None
    """In ISO 8601."""
    evidence: Evidence | None = None
    cost: Cost = NO_COST
    """Of all its attempts so far."""
    is_earlier_failure: bool = False
    """True for a failure of an earlier attempt: the last one got no reply."""

    @classmethod
    def of(
        cls, step: PlanStep, plan: ImplementationPlan, state: ExecutionState
    ) -> StepFinished:
        now = state.step(step.number)
        return cls(
            step.number,
            step.title,
            now.status,
            now.verification,
            now.error,
            now.reason,
            now.files_created,
            now.files_modified,
            done=state.finished_count,
            total=len(plan.steps),
            files_deleted=now.files_deleted,
            attempts=now.attempts,
            seconds=now.seconds,
            completed_at=_iso(now.completed_at),
            evidence=now.evidence,
            cost=now.spent,
            label=step.label,
        )


class StepCommitted(Struct, frozen=True):
    """A completed step's files were committed on the user's branch."""

    step: int
    commit: str
    submodule_commits: dict[str, str] = {}
    """The commits in submodules, by the submodule's path."""


class QuestionAsked(Struct, frozen=True):
    """The person asks something about a run, before or after this step; no step runs
    for it.
    """

    step: int
    question: str


class QuestionAnswered(Struct, frozen=True):
    """The model has had its say about it, or could not be asked."""

    step: int


class UndoPreview(NamesSteps, frozen=True):
    """The effect that an undo would have now."""

    steps: tuple[int, ...]
    """Those that would be pending again, in the order in which they were over."""
    restored: tuple[str, ...]
    """Files that would be as they were before these steps."""
    kept: tuple[str, ...]
    """Files that these steps changed and somebody has edited since: they would stay as
    they are.
    """
    edited: tuple[str, ...] = ()
    """Files that were edited in between: they would be as they were edited, not as
    before.
    """
    merged: tuple[str, ...] = ()
    """Files that were edited since: they would keep the edit and lose the steps'
    changes.
    """


class StepsUndone(NamesSteps, frozen=True):
    """Steps are pending again, and what they changed is as it was before them, but for
    a person's edits.
    """

    steps: tuple[int, ...]
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were edited since, and left alone."""
    commits: tuple[str, ...] = ()
    """Commits that were made of them, and that stay."""
    edited: tuple[str, ...] = ()
    """Files that were edited between the steps, or their attempts: they are as they
    were edited.
    """
    merged: tuple[str, ...] = ()
    """Files that were edited since: the steps' changes are gone, the edit is there."""
    others: tuple[str, ...] = ()
    """Files that commands and checks of the steps changed beside the steps' own: they
    stay as they are.
    """


class StepsRedone(NamesSteps, frozen=True):
    """An undo was undone: the steps are what they were, and what they changed is there
    again.
    """

    steps: tuple[int, ...]
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    merged: tuple[str, ...] = ()
    """Files that were edited since the undo: they have the changes and the edit."""


class StepDiff(NamesStep, frozen=True):
    """The changes of a step, as a unified diff."""

    step: int
    title: str
    diff: str


class RunFinished(Struct, frozen=True):
    """Nothing more will run now: all steps are over, or one failed."""

    ticket_slug: str
    status: RunStatus
    completed: int
    skipped: int
    unverified: int
    total: int
    seconds: float | None
    """The time of all steps together, waiting for a person left out."""
    files: tuple[str, ...]
    with_old_failures: int = 0
    """Completed steps whose check still shows failures that were there before the run.
    """
    unproven: tuple[Unproven, ...] = ()
    """The steps that were skipped, are unverified, or left old failures."""
    require: Literal["verified"] | None = None
    """The rule that held, if one did: by it each of those has failed the run."""
    commits: tuple[str, ...] = ()
    """Those that were made of its steps, where its last step has just ended."""
    to_commit: tuple[int, ...] = ()
    """Steps with changes that nobody has committed, where its last step has just ended.
    """
    labels_to_commit: tuple[str, ...] = ()
    """See `NamesStep`."""
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria that are new, or that were changed since, where all steps are over."""
    missing: tuple[MissingWork, ...] = ()
    """The work that the project's tree does not have, where all steps are over."""

    def __post_init__(self) -> None:
        if not self.labels_to_commit:
            force_setattr(self, "labels_to_commit", tuple(map(str, self.to_commit)))

    @classmethod
    def of(
        cls,
        plan: ImplementationPlan,
        state: ExecutionState,
        criteria: Sequence[str],
        require: Literal["verified"] | None = None,
        missing: tuple[MissingWork, ...] = (),
    ) -> RunFinished:
        """`criteria` are those of the spec as it is now."""
        outcome = judge_run(plan, state, criteria, require, missing)
        steps = [state.step(step.number) for step in plan.steps]
        worked = [step.seconds for step in steps if step.seconds is not None]
        files = {
            path
            for step in steps
            for path in (*step.files_created, *step.files_modified, *step.files_deleted)
        }
        return cls(
            state.ticket_slug,
            outcome.status,
            completed=sum(step.status is StepStatus.COMPLETED for step in steps),
            skipped=sum(step.status is StepStatus.SKIPPED for step in steps),
            unverified=sum(step.verification is Verification.NONE for step in steps),
            total=len(steps),
            seconds=sum(worked) if worked else None,
            files=tuple(sorted(files)),
            with_old_failures=sum(
                step.verification is Verification.BASELINE for step in steps
            ),
            unproven=outcome.unproven,
            require=require,
            edited_criteria=outcome.edited_criteria,
            missing=missing,
        )


RunEvent = (
    BaselineStarted
    | BaselineAwaited
    | BaselineTaken
    | CheckpointStarted
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
    | QuestionAsked
    | QuestionAnswered
    | StepsUndone
    | StepsRedone
    | StepDiff
    | RunFinished
)


# an action plan


class ActionStarted(Struct, frozen=True):
    number: int
    total: int
    title: str


class ActionOutput(Struct, frozen=True):
    """A piece of what an action prints, reads or is told, as it comes."""

    number: int
    text: str


class ActionFinished(Struct, frozen=True):
    """`status` is SUCCESS, FAILURE or COMPLETED; a failed one has an `error`."""

    number: int
    total: int
    title: str
    status: str
    error: str


class ActionsFinished(Struct, frozen=True):
    """An action plan is over. `seconds` with the waiting for answers."""

    succeeded: int
    failed: int
    not_run: int
    """Not approved, or after a "quit"."""
    seconds: float
    cwd: str


ActionEvent = ActionStarted | ActionOutput | ActionFinished | ActionsFinished


# a run that another program drives (`cdd exec --driven`)


class QuestionKind(StrEnum):
    """The kinds of questions that a driven run asks."""

    CHANGES = "changes"
    """May these changes be written?"""
    COMMAND = "command"
    ACTION = "action"
    TEST_LOSS = "test_loss"
    """May the step remove or weaken these tests?"""
    TEXT = "text"
    """Wants words, and has no choices."""
    TRUST = "trust"
    """May these settings of the project take effect? All, none or some."""
    CALL = "call"
    """May the next model call be made? Asked where there is a budget."""


class AnswerNeeded(Struct, frozen=True):
    """The run waits for a line on standard input that answers this question."""

    id: int
    kind: QuestionKind
    text: str
    """The question in full, for a user."""
    choices: tuple[str, ...] = ()
    """The answers that are accepted; none for a `text`."""
    tokens: int | None = None
    """The most tokens that the `call` could take."""
    usd: float | None = None
    settings: tuple[str, ...] = ()
    """The digests of the settings that need `trust`."""


class AnswerTaken(Struct, frozen=True):
    """The answer to a question has arrived, and the run continues."""

    id: int
    choice: str


class CallEnded(Struct, frozen=True):
    """The model call of a `call` question is over, or was not made."""

    id: int


class BudgetSpent(Struct, frozen=True):
    """A model call has taken this. With a budget, what remains of it."""

    tokens: int
    usd: float | None
    estimated: bool
    tokens_left: int | None = None
    """None without a budget in tokens."""
    usd_left: float | None = None


class Alive(Struct, frozen=True):
    """The run's process is alive. Printed at regular intervals."""


class InputRefused(Struct, frozen=True):
    """A line on standard input was ignored because it made no sense."""

    reason: str


DrivenEvent = (
    AnswerNeeded | AnswerTaken | CallEnded | BudgetSpent | Alive | InputRefused
)


# all of them

Event = (
    Words
    | ShellEvent
    | TicketEvent
    | ReplyEvent
    | AskingEvent
    | RunEvent
    | ActionEvent
    | DrivenEvent
)

Emit = Callable[[Event], None]
"""Tells what happens to whoever wants to know. It returns at once, and never fails:
work does not wait for a face.
"""


_is_beside: ContextVar[bool] = ContextVar("is_beside", default=False)


@contextmanager
def beside_the_turn() -> Iterator[None]:
    """Around a line that is carried out while a turn runs: no event of it ends what the
    turn is telling.
    """
    token = _is_beside.set(True)
    try:
        yield
    finally:
        _is_beside.reset(token)


def is_beside_the_turn() -> bool:
    """Whether what is told just now is told beside the turn."""
    return _is_beside.get()


def unheard(event: Event) -> None:
    """For work that nobody watches."""


def event_name(kind: type[Event]) -> str:
    """A kind of event as scripts know it: its name in snake case."""
    return re.sub(r"(?<=.)([A-Z])", r"_\1", kind.__name__).lower()


def to_json(event: Event) -> dict[str, Any]:
    """An event as one JSON object: its name in snake case under `event`, then its
    fields.
    """
    return {"event": event_name(type(event)), **to_builtins(event)}
