"""Sentences of cdd: notices with a kind, and answers."""

from enum import StrEnum

from cdd_agent.events.base_event import BaseEvent


class Tone(StrEnum):
    """The meaning of a sentence. It decides the colour."""

    PLAIN = "plain"
    QUIET = "quiet"
    HEADING = "heading"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"


# Some kinds have an effect: see `engine/retelling.py` and `fleet/local_runs.py`.
class NoticeKind(StrEnum):
    """The subject of a notice, for scripts."""

    # the shell and its agents
    WHAT_NEXT = "what_next"
    """Lines or commands that make sense now."""
    RESUMED = "resumed"
    """Earlier work was found and continues, or can be continued."""
    NOT_DONE = "not_done"
    """A line was not understood, or had no effect."""
    AGENT_LEFT = "agent_left"
    """The user left an agent."""
    COST = "cost"
    """The cost of this session or of a run."""
    CREATED = "created"
    """A file of the project was created: a ticket, a page, settings."""
    TRUST = "trust"
    """Settings of the project need the user's trust."""
    STARTED_OVER = "started_over"
    """The run or the conversation starts from the beginning; the earlier one is
    kept.
    """

    # prompts, replies and conversations
    SENT = "sent"
    """Files or pictures in the prompt for the model, or the contents of a push that is
    only tried.
    """
    NOT_SENT = "not_sent"
    """Files, pictures or parts of a prompt that are not sent, or not in full, to the
    model or to another copy of the project.
    """
    SEARCHING = "searching"
    """A search for code in the project, by cdd or by the model."""
    NO_TOOLS = "no_tools"
    """The model is called without tools."""
    REPLY_UNUSABLE = "reply_unusable"
    """The model's reply is incomplete or wrong."""
    NOT_SAVED = "not_saved"
    """The conversation could not be saved."""
    DAMAGED = "damaged"
    """A saved conversation was damaged; the text says what was discarded or renamed."""
    UNANSWERED = "unanswered"
    """The user's last message has no answer yet. It is kept."""

    # specs and plans
    SPEC_COMPLETE = "spec_complete"
    """The spec is complete."""
    SPEC_INCOMPLETE = "spec_incomplete"
    """The spec lacks something; the text says what."""
    SPEC_WRITTEN = "spec_written"
    """spec.yaml was written."""
    WORDS_LOST = "words_lost"
    """Text of the spec is removed or reworded."""
    SPEC_CHANGED = "spec_changed"
    """spec.yaml or its draft has changed since it was last shown or used."""
    SPEC_FINDING = "spec_finding"
    """A line of spec.yaml may have another meaning than intended."""
    PLAN_WRITTEN = "plan_written"
    """plan.md was written."""
    PLAN_KEPT = "plan_kept"
    """plan.md was not written; the existing plan or the proposal is kept."""
    PLAN_FINDING = "plan_finding"
    """A line of plan.md may have another meaning than intended."""
    PLAN_EDITED = "plan_edited"
    """plan.md was edited; the run continues with the new version."""
    STEP_CHANGED = "step_changed"
    """A finished step was changed in plan.md, or removed from it."""
    RENUMBERED = "renumbered"
    """The steps in plan.md have new numbers."""

    # a run
    ALL_DONE = "all_done"
    """No step remains."""
    STEP_FAILED = "step_failed"
    """The next step has failed before; the text contains the reason."""
    SIDE_BY_SIDE = "side_by_side"
    """The reason why steps do not run side by side, or why one of them is repeated."""
    STATE_RECOVERED = "state_recovered"
    """The state file was rebuilt, is older than the record, or comes from an older
    version.
    """
    STATE_COPIED = "state_copied"
    """The ticket's folder is a copy of another; its run starts at the first step."""
    TICKET_RENAMED = "ticket_renamed"
    """The ticket's folder was renamed; its run continues."""
    OTHER_RUN = "other_run"
    """Another run works in the same project."""
    CUT_OFF = "cut_off"
    """Work outside of tickets was interrupted, because its process was killed."""
    LEFT_AS_IS = "left_as_is"
    """Files that were perhaps made by a step's commands, and are not removed."""
    CHANGED_BESIDE = "changed_beside"
    """Files that changed during or after a step, perhaps by the user. They are kept."""
    NOT_APPROVED = "not_approved"
    """The run stopped because it needs the user's approval."""
    NO_BUDGET = "no_budget"
    """The run stopped because its budget is spent."""
    COME_BACK_LATER = "come_back_later"
    """The run stopped because the provider asks for a pause."""
    CHECK_UNUSABLE = "check_unusable"
    """The run stopped because a step's check cannot run."""
    MODEL_FAILED = "model_failed"
    """The run stopped because a call of the model failed, or the reply was unusable."""
    SAVED_WORK = "saved_work"
    """An interrupted step continues with the reply that it has already paid for."""
    FAILURE_REINSTATED = "failure_reinstated"
    """A step's earlier failure is valid again, because the next attempt got no
    reply.
    """
    COMMAND_ENDED = "command_ended"
    """A command of a killed run was still running, and was stopped."""
    DEPENDENTS = "dependents"
    """Steps that depend on a skipped or undone step."""
    FILE_NOTE = "file_note"
    """A remark about a file or a block of a reply."""
    NOT_IN_CHECKPOINT = "not_in_checkpoint"
    """Files that could not be read, so that undo does not restore them."""
    NOT_COMMITTED = "not_committed"
    """A step's files were not committed; the text contains the reason."""

    LEFT_OUT_OF_COMMIT = "left_out_of_commit"
    """Files that a step's commit leaves out."""

    # runs in other places
    RUN_MOVED = "run_moved"
    """The run was pushed or pulled, or continues on another machine."""
    OWN_TREE = "own_tree"
    """The run has a separate working tree."""
    EDITABLE_INSTALL = "editable_install"
    """A package is installed from another tree than the run's; PYTHONPATH corrects
    this.
    """
    LANDED = "landed"
    """The run's work was merged into the user's branch."""
    NO_WORKER = "no_worker"
    """No worker of the cluster takes the run."""
    LEASE = "lease"
    """This machine has the run, and the lease affects other copies of the project."""


class Notice(BaseEvent, frozen=True):
    """A sentence of cdd."""

    text: str
    tone: Tone = Tone.PLAIN
    kind: NoticeKind | None = None
    """None if neither scripts nor tests need it."""
    step: int | None = None
    """The step, if several run at the same time."""


class Answer(BaseEvent, frozen=True):
    """The answer of a command, in Markdown."""

    text: str


Words = Notice | Answer
