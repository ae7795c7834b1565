"""Words of the events of a run: its baseline and its end."""

from datetime import timedelta

from cdd_agent.events.driven_events import (
    Alive,
    AnswerNeeded,
    AnswerTaken,
    BudgetSpent,
    CallEnded,
    InputRefused,
)
from cdd_agent.events.notices import Tone
from cdd_agent.events.run_events import (
    BaselineStarted,
    BaselineTaken,
    QuestionAnswered,
    QuestionAsked,
    RunFinished,
)
from cdd_agent.tickets.outcome_words import (
    proof_in_words,
    run_in_words,
    steps_by_outcome,
    tally_in_words,
)
from cdd_agent.tickets.run_outcome import how_to_serve, reasons_against
from cdd_agent.tickets.status import RunStatus
from cdd_agent.wording.registry import Lines, words_of
from cdd_agent.wording.step_signs import clause, first_names
from cdd_agent.wording.ticket_words import edited_criteria_lines, missing_work


@words_of.register
def describe_baseline(event: BaselineTaken) -> Lines:
    subject = f"Before step {event.label}, `{event.command}`"
    if event.is_unusable:
        text = (
            f"{subject} {clause(event.problem.removeprefix('it '))}. Steps that"
            " use this check cannot pass. Make the command run first, or set"
            " another one."
        )
        return [(text, Tone.ERROR)]
    if event.is_own:
        text = f"{subject}: {_own_result(event)} ({event.seconds:.1f} s)"
        return [(text, Tone.PLAIN)]
    if event.problem:
        text = (
            f"{subject} gave no usable result: {clause(event.problem)}. Every"
            " failure will count as new."
        )
        return [(text, Tone.WARNING)]
    if event.passed is None and event.return_code:
        text = (
            f"{subject} already fails ({_exit_code(event)}). It does not report"
            " individual tests, so a step passes only if the whole command does."
        )
        return [(text, Tone.WARNING)]
    result = _baseline_counts(event)
    if event.reason:
        result += f", {_exit_code(event)}"
    text = f"{subject}: {result} ({event.seconds:.1f} s)"
    return [(text, Tone.PLAIN)]


def _exit_code(event: BaselineTaken) -> str:
    why = f": {event.reason}" if event.reason else ""
    return f"exit code {event.return_code}{why}"


def _own_result(event: BaselineTaken) -> str:
    reason = f": {event.reason}" if event.reason else ""
    if event.problem:
        return clause(event.problem) + reason
    if event.passed is None and event.return_code:
        return f"failed ({_exit_code(event)})"
    if event.passed is None:
        return "passed"
    result = _counts_of_tests(event) or "found no tests"
    return f"{result}, exit code {event.return_code}{reason}" if reason else result


def _baseline_counts(event: BaselineTaken) -> str:
    if event.passed is None:
        return "passed"
    text = _counts_of_tests(event)
    if event.failed:
        text += ". These existing failures won't count against unrelated steps"
    return text or "found no tests"


def _counts_of_tests(event: BaselineTaken) -> str:
    counts = {"passed": event.passed, "failed": event.failed, "skipped": event.skipped}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count)


@words_of.register
def describe_run_finished(event: RunFinished) -> Lines:
    tone = Tone.WARNING
    if event.status is RunStatus.COMPLETED and event.tally.is_done:
        tone = Tone.GOOD
    elif event.status is RunStatus.FAILED:
        tone = Tone.ERROR
    return [
        (f"{event.ticket_slug} {_outcome(event)}: {_counts(event)}", tone),
        *_shortfalls(event),
        *_require_result(event),
        *_work_to_commit(event),
    ]


def _outcome(event: RunFinished) -> str:
    if event.missing:
        return "is not done in this tree"
    if event.edited_criteria and event.status is RunStatus.IN_PROGRESS:
        return "is not done"
    return run_in_words(event.status, event.tally)


def _counts(event: RunFinished) -> str:
    counts = [tally_in_words(event.tally)]
    counts.append("1 file" if len(event.files) == 1 else f"{len(event.files)} files")
    if event.seconds is not None:
        counts.append(str(timedelta(seconds=round(event.seconds))))
    return ", ".join(counts)


def _shortfalls(event: RunFinished) -> Lines:
    lines = []
    for remark, steps in steps_by_outcome(event.unproven).items():
        names = ", ".join(f"{step.label}. {step.title}" for step in steps)
        lines.append((f"  {remark}: {names}", Tone.WARNING))
    lines += [(f"  {line}", Tone.WARNING) for line in missing_work(event.missing)]
    lines += edited_criteria_lines(event.edited_criteria)
    if event.edited_criteria:
        hint = how_to_serve(event.ticket_slug, event.edited_criteria)
        lines.append((hint, Tone.WARNING))
    return lines


def _require_result(event: RunFinished) -> Lines:
    reasons = _reasons_against(event)
    lines = [(reason, Tone.ERROR) for reason in reasons]
    if event.missing:
        lines.append((_how_to_bring_back(event), Tone.PLAIN))
    is_done = event.status is RunStatus.COMPLETED
    if event.require and is_done and not reasons:
        proof = proof_in_words(event.unproven)
        text = f"The run meets `require: {event.require}`: {proof}."
        lines.append((text, Tone.GOOD))
    return lines


def _reasons_against(event: RunFinished) -> list[str]:
    """Return why a run is not done although no step remains. Without a reason,
    `require` is satisfied.
    """
    reasons = []
    if event.missing:
        count = len(event.missing)
        steps = "1 step" if count == 1 else f"{count} steps"
        reasons.append(
            f"The work of {steps} is missing in this tree, so the run is not done here."
        )
    against = reasons_against(event.require, event.unproven, event.edited_criteria)
    if event.require and against:
        reasons.append(
            f"The run does not meet `require: {event.require}`: {'; '.join(against)}."
        )
    return reasons


def _how_to_bring_back(event: RunFinished) -> str:
    slug, first = event.ticket_slug, event.missing[0].label
    return (
        "To continue, switch to the branch that has the work (`git switch`),"
        f" undo the steps (`cdd undo {slug} --step {first}`), or start over (`cdd"
        f" exec {slug} --start-over`)."
    )


def _work_to_commit(event: RunFinished) -> Lines:
    lines = []
    if event.commits:
        names = first_names([commit[:10] for commit in event.commits])
        lines.append((f"Committed: {names}.", Tone.PLAIN))
    if event.to_commit:
        steps = ""
        if event.commits:
            steps = f" of step {', '.join(event.labels_to_commit)}"
        lines.append((f"Review the changes{steps} and commit them.", Tone.PLAIN))
    return lines


@words_of.register
def leave_out_waiting(
    event: BaselineStarted | QuestionAsked | QuestionAnswered,
) -> Lines:
    del event
    return []


@words_of.register
def leave_out_driving(
    event: (
        AnswerNeeded | AnswerTaken | CallEnded | BudgetSpent | Alive | InputRefused
    ),
) -> Lines:
    del event
    return []
