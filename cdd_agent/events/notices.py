"""Sentences of the program itself: notices, each with a kind, and answers."""

from enum import StrEnum

from cdd_agent.events.base_event import BaseEvent


class Tone(StrEnum):
    """The meaning of a sentence, by which a face colours it."""

    PLAIN = "plain"
    QUIET = "quiet"
    HEADING = "heading"
    GOOD = "good"
    WARNING = "warning"
    ERROR = "error"


# Some kinds also have an effect: see `engine/retelling.py` and `fleet/local_runs.py`.
class NoticeKind(StrEnum):
    """The subject of a notice, for scripts."""

    # the shell and its agents
    WHAT_NEXT = "what_next"
    """The lines or commands that make sense now."""
    RESUMED = "resumed"
    """Earlier work was found and continues, or can be continued."""
    NOT_DONE = "not_done"
    """The line was not understood, or nothing could be done for it."""
    AGENT_LEFT = "agent_left"
    """The user left an agent."""
    COST = "cost"
    """The cost of this session or of a run."""
    CREATED = "created"
    """A file of the project was created: a ticket, a page, settings."""
    TRUST = "trust"
    """Settings of the project need the user's trust."""
    STARTED_OVER = "started_over"
    """The run or the conversation starts from scratch; the earlier one is kept."""

    # prompts, replies and conversations
    SENT = "sent"
    """Files or pictures that the model gets with the prompt, or the contents of a push
    that is only tried.
    """
    NOT_SENT = "not_sent"
    """Files, pictures or parts of a prompt that the model or another copy of the
    project does not get, or not in full.
    """
    SEARCHING = "searching"
    """The program or the model searches the project for code."""
    NO_TOOLS = "no_tools"
    """The model is asked without tools."""
    REPLY_UNUSABLE = "reply_unusable"
    """The model's reply is incomplete or wrong."""
    NOT_SAVED = "not_saved"
    """The conversation could not be saved."""
    DAMAGED = "damaged"
    """A saved conversation was damaged; the text names what was dropped or renamed."""
    UNANSWERED = "unanswered"
    """The user's last words have no answer yet. They are kept."""

    # specs and plans
    SPEC_COMPLETE = "spec_complete"
    """The spec is complete."""
    SPEC_INCOMPLETE = "spec_incomplete"
    """The spec lacks something; the text names it."""
    SPEC_WRITTEN = "spec_written"
    """spec.yaml was written."""
    WORDS_LOST = "words_lost"
    """Words of the spec are removed or reworded."""
    SPEC_CHANGED = "spec_changed"
    """spec.yaml or its draft has changed since it was last shown or used."""
    SPEC_FINDING = "spec_finding"
    """A line of spec.yaml may be read in another way than you meant."""
    PLAN_WRITTEN = "plan_written"
    """plan.md was written."""
    PLAN_KEPT = "plan_kept"
    """plan.md was not written; the existing plan or the proposal is kept."""
    PLAN_FINDING = "plan_finding"
    """A line of plan.md may be read in another way than you meant."""
    PLAN_EDITED = "plan_edited"
    """plan.md was edited; the run continues with the new version."""
    STEP_CHANGED = "step_changed"
    """A step that is over was edited in plan.md or removed from it."""
    RENUMBERED = "renumbered"
    """The steps in plan.md have other numbers than before."""

    # a run
    ALL_DONE = "all_done"
    """No step remains."""
    STEP_FAILED = "step_failed"
    """The step that is next has failed before; the text has the reason."""
    SIDE_BY_SIDE = "side_by_side"
    """Why steps do not run side by side, or why one of them is made again."""
    STATE_RECOVERED = "state_recovered"
    """The state file was rebuilt, is older than the record, or is of an older
    version.
    """
    STATE_COPIED = "state_copied"
    """The ticket's folder is a copy of another; its run starts at the first step."""
    TICKET_RENAMED = "ticket_renamed"
    """The ticket's folder was renamed; its run continues."""
    OTHER_RUN = "other_run"
    """Another run works in the same project."""
    CUT_OFF = "cut_off"
    """Work outside of tickets whose process was killed."""
    LEFT_AS_IS = "left_as_is"
    """Files that commands of a step may have made and that were not removed."""
    CHANGED_BESIDE = "changed_beside"
    """Files that changed while a step ran, or since, perhaps by the user. They are
    kept.
    """
    NOT_APPROVED = "not_approved"
    """The run stopped because it needs the user's approval."""
    NO_BUDGET = "no_budget"
    """The run stopped because its budget is spent."""
    COME_BACK_LATER = "come_back_later"
    """The run stopped because the provider asks to come back later."""
    CHECK_UNUSABLE = "check_unusable"
    """The run stopped because a check of a step cannot run at all."""
    MODEL_FAILED = "model_failed"
    """The run stopped because the model could not be asked or gave no usable reply."""
    SAVED_WORK = "saved_work"
    """An interrupted step continues with a reply that was paid for before."""
    FAILURE_REINSTATED = "failure_reinstated"
    """A step keeps its earlier failure, because its next attempt got no reply."""
    COMMAND_ENDED = "command_ended"
    """A command of a killed run was still running and was ended."""
    DEPENDENTS = "dependents"
    """Steps that depend on one that was skipped or undone."""
    FILE_NOTE = "file_note"
    """A remark about a file or a block of a reply."""
    NOT_IN_CHECKPOINT = "not_in_checkpoint"
    """Files that could not be read and that undo therefore does not cover."""
    NOT_COMMITTED = "not_committed"
    """A step's files were not committed; the text has the reason."""

    LEFT_OUT_OF_COMMIT = "left_out_of_commit"
    """Files that a step's commit leaves out."""

    # runs in other places
    RUN_MOVED = "run_moved"
    """The run was pushed or pulled, or is carried out elsewhere."""
    OWN_TREE = "own_tree"
    """The run has a separate working tree."""
    EDITABLE_INSTALL = "editable_install"
    """A package is installed from another tree than the run's; PYTHONPATH fixes it."""
    LANDED = "landed"
    """The run's work was merged into the user's branch."""
    NO_WORKER = "no_worker"
    """No worker of the cluster takes the run."""
    LEASE = "lease"
    """The run is held here, and the lease matters to other copies of the project."""


class Notice(BaseEvent, frozen=True):
    """A sentence of the program."""

    text: str
    tone: Tone = Tone.PLAIN
    kind: NoticeKind | None = None
    """None if no script or test needs to recognise it."""
    step: int | None = None
    """The step that it is about if several are under way."""


class Answer(BaseEvent, frozen=True):
    """The answer of a command, as Markdown."""

    text: str


Words = Notice | Answer
