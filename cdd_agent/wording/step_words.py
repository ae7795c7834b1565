"""Words of the events of a step."""

from collections.abc import Sequence

from cdd_agent.engine.named_files import named
from cdd_agent.events.notices import Tone
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    ChangesPutBack,
    CheckpointStarted,
    CommandOutput,
    GuidanceTaken,
    StepCommitted,
    StepDiff,
    StepsRedone,
    StepStarted,
    StepsUndone,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.outcome_words import OUTCOME_WORDS, evidence_in_words
from cdd_agent.tickets.status import StepOutcome, StepStatus, Verification
from cdd_agent.wording.registry import Lines, words_of
from cdd_agent.wording.step_signs import clause, step_remark


@words_of.register
def describe_step_started(event: StepStarted) -> Lines:
    attempt = f" (attempt {event.attempt})" if event.attempt > 1 else ""
    if event.side_tree:
        text = f"Step {event.label} starts in a separate tree: {event.title}{attempt}"
        return [(text, Tone.QUIET)]
    return [(f"Step {event.label}: {event.title}{attempt}", Tone.HEADING)]


@words_of.register
def describe_guidance_taken(event: GuidanceTaken) -> Lines:
    return [(f"sent to step {event.label}: {event.text}", Tone.QUIET)]


@words_of.register
def describe_changes_applied(event: ChangesApplied) -> Lines:
    new_names = {new: old for old, new in event.renamed}
    lines: Lines = []
    for path in event.created:
        words = f"created {path}"
        if path in new_names:
            words = f"renamed {new_names[path]} to {path}"
        lines.append((words, Tone.PLAIN))
    lines += [(f"changed {path}", Tone.PLAIN) for path in event.modified]
    lines += [
        (f"deleted {path}", Tone.PLAIN)
        for path in event.deleted
        if path not in new_names.values()
    ]
    if event.undeclared:
        names = ", ".join(event.undeclared)
        text = f"not listed in the plan for this step: {names}"
        lines.append((text, Tone.WARNING))
    return lines


@words_of.register
def describe_changes_put_back(event: ChangesPutBack) -> Lines:
    return describe_restored("restored", event.restored, event.kept, event.merged)


def describe_restored(
    how: str, restored: Sequence[str], kept_paths: Sequence[str], merged: Sequence[str]
) -> Lines:
    lines = []
    if restored:
        lines.append((f"{how} {', '.join(restored)}", Tone.QUIET))
    if merged:
        lines.append((f"merged with your edits: {', '.join(merged)}", Tone.PLAIN))
    if kept_paths:
        text = f"edited since, left unchanged: {', '.join(kept_paths)}"
        lines.append((text, Tone.WARNING))
    return lines


@words_of.register
def describe_step_committed(event: StepCommitted) -> Lines:
    commits = [event.commit[:10]]
    for path, commit in event.submodule_commits.items():
        commits.append(f"{commit[:10]} in {path}")
    return [(f"committed as {', '.join(commits)}", Tone.PLAIN)]


@words_of.register
def describe_steps_undone(event: StepsUndone) -> Lines:
    tone = Tone.WARNING if event.kept or event.edited else Tone.GOOD
    them = "it" if len(event.steps) == 1 else "them"
    redo = f"/redo {event.ticket_slug}".rstrip()
    text = f"{_steps(event.labels)} undone. Type `{redo}` to restore {them}."
    lines = [
        (text, tone),
        *describe_restored("Reverted:", event.restored, event.kept, event.merged),
    ]
    if event.others:
        names = named(event.others)
        text = f"changed by commands outside the step's files, left unchanged: {names}"
        lines.append((text, Tone.WARNING))
    if event.edited:
        names = ", ".join(event.edited)
        text = f"restored with the edits made between the steps: {names}"
        lines.append((text, Tone.WARNING))
    if event.commits:
        commits = ", ".join(commit[:10] for commit in event.commits)
        text = f"commits still on their branch: {commits}"
        lines.append((text, Tone.WARNING))
    return lines


@words_of.register
def describe_steps_redone(event: StepsRedone) -> Lines:
    lines = describe_restored("Restored:", event.restored, event.kept, event.merged)
    return [(f"{_steps(event.labels)} redone.", Tone.GOOD), *lines]


def _steps(labels: Sequence[str]) -> str:
    names = ", ".join(labels)
    return f"Step {names}" if len(labels) == 1 else f"Steps {names}"


@words_of.register
def describe_step_diff(event: StepDiff) -> Lines:
    if not event.diff:
        return [(f"Step {event.label} changed no files.", Tone.PLAIN)]
    return [(event.diff.rstrip("\n"), Tone.PLAIN)]


@words_of.register
def describe_tests_finished(event: TestsFinished) -> Lines:
    lines = []
    timed = f"{event.reason} ({event.seconds:.1f} s)"
    # the event of the attempt or the step contains the reason
    if event.verification is Verification.PASSED:
        lines.append((timed, Tone.GOOD))
    elif event.verification in (Verification.BASELINE, Verification.EXIT_CODE):
        lines.append((timed, Tone.WARNING))
    elif event.verification is Verification.NONE:
        lines.append((f"Unverified: {event.reason}", Tone.WARNING))
    return [*lines, *((note, Tone.WARNING) for note in event.notes)]


@words_of.register
def describe_attempt_failed(event: AttemptFailed) -> Lines:
    # the event of the step contains the reason
    if not event.will_retry:
        return []
    which = ""
    if event.last_attempt:
        which = f", attempt {event.attempt + 1} of {event.last_attempt}"
    text = (
        f"Attempt {event.attempt} failed: {clause(event.error)}. Asking again{which}."
    )
    return [(text, Tone.WARNING)]


@words_of.register
def describe_step_finished(event: StepFinished) -> Lines:
    where = f"({event.done}/{event.total})"
    match event.status:
        case StepStatus.COMPLETED:
            return [_completed(event, where)]
        case StepStatus.SKIPPED:
            text = f"Step {event.label} skipped: {event.reason} {where}"
            return [(text, Tone.WARNING)]
        case StepStatus.FAILED if event.is_earlier_failure:
            text = (
                f"Step {event.label} of {event.total} got no reply, so it was not"
                f" tried again. Its last attempt failed: {clause(event.error)}"
            )
            return [(text, Tone.WARNING)]
        case StepStatus.FAILED:
            text = f"Step {event.label} of {event.total} failed: {clause(event.error)}"
            return [(text, Tone.ERROR), *_explanation(event.refusal)]
        case _:
            return [(f"Step {event.label} is pending {where}", Tone.QUIET)]


def _explanation(refusal_id: str) -> Lines:
    refusal = Refusal.find(refusal_id)
    return [(refusal.reference, Tone.QUIET)] if refusal else []


def _completed(event: StepFinished, where: str) -> tuple[str, Tone]:
    remark = step_remark(event)
    if event.outcome is StepOutcome.MAY_FAIL:
        # the evidence contains the number of tests
        remark = OUTCOME_WORDS[event.outcome].remark
    text = f"Step {event.label} completed"
    if remark:
        text += f", {remark}"
    text += f" {where}"
    if event.evidence is not None and event.evidence.passed is not None:
        text += f": {evidence_in_words(event.evidence)}"
    return text, Tone.WARNING if remark else Tone.GOOD


@words_of.register
def leave_out_progress(
    event: CheckpointStarted | TestsStarted | CommandOutput,
) -> Lines:
    del event
    return []
