"""The words of events for people, the same in the shell and without a screen."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cdd_agent.edits.file_diff import FileDiff
from cdd_agent.events import (
    AcceptingAll,
    ActionFinished,
    ActionProposed,
    ActionsFinished,
    ActionStarted,
    Answer,
    AttemptFailed,
    BaselineTaken,
    ChangesApplied,
    ChangesPutBack,
    ChangesReviewed,
    Choice,
    CommandProposed,
    CriteriaShown,
    CriterionProof,
    Event,
    GuidanceTaken,
    ModelChosen,
    ModelReplaced,
    ModelsFound,
    Notice,
    OwnCommandFinished,
    PersonAnswered,
    PlanChecked,
    PlanOpened,
    Proposal,
    RunFinished,
    ScreenAsked,
    SessionsListed,
    SessionView,
    SpecOpened,
    SpecShown,
    StepCommitted,
    StepDiff,
    StepFinished,
    StepsRedone,
    StepStarted,
    StepsUndone,
    StepView,
    TestLossProposed,
    TestsFinished,
    ThinkingFinished,
    TicketsListed,
    Tone,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.tickets.findings import quote
from cdd_agent.tickets.run_outcome import how_to_serve, reasons_against
from cdd_agent.tickets.status import (
    Cost,
    EditedCriterion,
    Evidence,
    MissingWork,
    RunStatus,
    Shortfall,
    StepStatus,
    Verification,
)

if TYPE_CHECKING:
    from cdd_agent.edits.review import FileReview, Review

_SHOWN_FILES = 6
_SHOWN_MISSING = 3
"""Names of missing files, or tests, that a line has for a step."""
_SHOWN_TESTS = 20
_SHOWN_DIFF = 300
"""Lines of a difference that is to be approved."""
_VERBS = {
    "read_file": "read",
    "list_files": "list",
    "glob_files": "find",
    "grep_files": "search",
    "git_status": "git status",
    "git_log": "git log",
    "git_diff": "git diff",
    "create_file": "create",
    "edit_file": "edit",
    "execute_command": "$",
    "chat_with_user": "ask:",
    "research": "look up",
}
"""The verbs of tools, before what they are used on."""
STEP_GLYPHS = {
    StepStatus.PENDING: "○",
    StepStatus.IN_PROGRESS: "◐",
    StepStatus.COMPLETED: "✓",
    StepStatus.FAILED: "✗",
    StepStatus.SKIPPED: "–",
}
_UNPROVEN = "~"
"""The sign of a step that is completed and that no tests have shown to be done."""
REMARKS: dict[Verification | None, str] = {
    Verification.NONE: "unverified",
    Verification.BASELINE: "old failures remain",
}
"""The remarks on completed steps, by how far they are verified."""
_FIELD_NAMES = {
    "acceptance_criteria": "criteria",
    "implementation_scope": "scope",
    "technical_notes": "notes",
}


def _models_found(found: ModelsFound) -> list[tuple[str, Tone]]:
    lines = [
        (f"{name} runs on this computer, and has no model yet.", Tone.PLAIN)
        for name in found.without_models
    ]
    if found.models:
        width = max(len(offer.name) for offer in found.models)
        rows = [
            f"  {number}  {offer.name:<{width}}  {offer.server}"
            for number, offer in enumerate(found.models, 1)
        ]
        rows += [f"  and {found.more} more: `/model` lists them"] if found.more else []
        lines += [("\n".join(["Models on this computer:", *rows]), Tone.PLAIN)]
        lines += [
            ("`/model 1 --save` sets the first one for this project.", Tone.PLAIN)
        ]
    return lines


def question(proposal: Proposal | Review, *, diff: bool = True) -> str:
    """The question for a person, in full; or about changes without their `diff`."""
    match proposal:
        case CommandProposed(command=command, reason=reason):
            first = (
                f"May this run? {reason}. (Always: this very command, as long as the"
                " program runs.)"
            )
            return "\n  ".join([first, *command.splitlines()])
        case ActionProposed(number=number, total=total, title=title, details=details):
            return "\n  ".join([f"[{number}/{total}] {title}", *details.splitlines()])
        case TestLossProposed():
            return _test_loss(proposal)
        case _:
            return _review(proposal, diff=diff)


def _test_loss(proposal: TestLossProposed) -> str:
    count = len(proposal.tests)
    tests = "a test" if count == 1 else f"{count} tests"
    question = (
        f"Step {proposal.label} removes or weakens {tests}, and its plan does not say"
        " which tests it may remove. Allow it?"
    )
    lines = [question]
    lines += [f"  {lost.test} {lost.how}" for lost in proposal.tests[:_SHOWN_TESTS]]
    if count > _SHOWN_TESTS:
        lines.append(f"  and {count - _SHOWN_TESTS} more")
    return "\n".join(lines)


def _review(review: Review, *, diff: bool) -> str:
    # first what goes, so that none of that is cut off
    order = (
        "delete",
        "rename",
        "create",
        "change",
    )
    taken_of = (
        _taken(file)
        for file in review.files
        if len(file.left_out) < len(file.hunks) or not file.hunks
    )
    files = sorted(taken_of, key=lambda file: order.index(file.verb))
    lines = [
        "  ".join(filter(None, (f"  {_file_in_review(file)}", _counts(file))))
        for file in files
    ]
    if len(lines) > _SHOWN_FILES:
        lines[_SHOWN_FILES - 1 :] = [
            f"  and {len(lines) - _SHOWN_FILES + 1} more files"
        ]
    who = "the model" if review.step is None else f"step {review.step}"
    taken = len(review.parts) - sum(len(file.left_out) for file in review.files)
    what = (
        "this"
        if taken == len(review.parts)
        else f"{taken} of {len(review.parts)} parts"
    )
    ask = (
        f"May {who} write {what}?"
        if not review.takes_nothing
        else "Nothing is taken. Is nothing to be written?"
    )
    problem = (
        [f"  cannot be written: {' '.join(review.problem.split())}"]
        if review.problem
        else []
    )
    count = f"  {len(files)} files {_counts(*files)}".rstrip() if len(files) > 1 else ""
    shown = review.diff().splitlines() if diff else []
    more = (
        [f"… and {len(shown) - _SHOWN_DIFF:,} more lines"]
        if len(shown) > _SHOWN_DIFF
        else []
    )
    left_out = [f"  left out: {part}" for part in review.left_out]
    if len(left_out) > _SHOWN_FILES:
        left_out[_SHOWN_FILES - 1 :] = [
            f"  left out: {len(left_out) - _SHOWN_FILES + 1} more parts"
        ]
    return "\n".join(
        [ask + count, *problem, *lines, *left_out, *shown[:_SHOWN_DIFF], *more]
    )


def _file_in_review(file: FileReview) -> str:
    return f"{file.verb} {file.name}{' (edited)' * file.is_edited}"


def _taken(file: FileReview) -> FileReview:
    """It without the parts that are left out."""
    hunks = tuple(
        hunk for place, hunk in enumerate(file.hunks) if place not in file.left_out
    )
    return replace(file, hunks=hunks, left_out={})


def _counts(*files: FileReview) -> str:
    return lines_changed(
        [FileDiff(file.path, file.added, file.removed, "") for file in files]
    )


def part_in_words(file: FileReview, hunks: Sequence[int]) -> str:
    """Which part of the changes is looked at."""
    if len(hunks) < len(file.hunks):
        hunk = file.hunks[hunks[0]]
        counts = lines_changed([FileDiff(file.path, hunk.added, hunk.removed, "")])
        return f"{_file_in_review(file)}, {hunk.where}  {counts}"
    return f"{_file_in_review(file)}  {_counts(file)}"


def answers(proposal: Proposal) -> dict[str, Choice]:
    """The answers that a person can give, in words; the first letter of each is its
    key.
    """
    always = "all" if isinstance(proposal, ActionProposed) else "always"
    words = {
        Choice.YES: "yes",
        Choice.NO: "no",
        Choice.ALWAYS: always,
        Choice.QUIT: "quit",
    }
    return {words[choice]: choice for choice in proposal.choices}


def thought(seconds: float | None, tokens: int, *, estimated: bool) -> str:
    """How long and how much was thought; of thoughts that nobody saw only how much."""
    counted = f"{'~' if estimated else ''}{tokens:,} tokens"
    return counted if seconds is None else f"{seconds:.0f} s, {counted}"


def tool_use(event: ToolStarted | ToolFinished) -> str:
    """A model's use of a tool, in a line."""
    verb = _VERBS.get(event.tool)
    if verb is None:
        return " ".join(filter(None, (event.tool, event.target))) or event.call
    words = " ".join(filter(None, (verb, " ".join(event.target.split()))))
    if event.first_line is None and event.last_line is None:
        return words
    last = "" if event.last_line is None else event.last_line
    return f"{words}:{event.first_line or 1}-{last}"


def lines_changed(files: Sequence[FileDiff]) -> str:
    """How many lines were added and removed, as `+12 −3`."""
    added, removed = (
        sum(getattr(file, name) for file in files) for name in ("added", "removed")
    )
    return " ".join(
        f"{sign}{count:,}" for sign, count in (("+", added), ("−", removed)) if count
    )


def described(event: Event) -> list[tuple[str, Tone]]:
    """An event in words for people, as lines with a tone; nothing for those that only
    drive a display.
    """
    match event:
        case Notice(text=text, tone=tone):
            return [(text, tone)]
        case Answer(text=text):
            return [(text, Tone.PLAIN)]
        case ScreenAsked(instead=text):
            return [(text, Tone.PLAIN)]
        case ModelsFound():
            return _models_found(event)
        case ModelReplaced(model=model, instead_of=before, reason=reason):
            return [(f"{model} is asked instead of {before}: {reason}", Tone.WARNING)]
        case ModelChosen(model=model, api_base=api_base, saved_in=file, role=role):
            how_long = (
                f"set in {file}"
                if file
                else "for this session; with `--save` it is kept for the project"
            )
            where = f" at {api_base}" if api_base else ""
            return [
                (
                    (
                        f"The {f'{role} ' if role else ''}model is {model}{where},"
                        f" {how_long}."
                    ),
                    Tone.GOOD,
                )
            ]
        case ThinkingFinished(seconds=None, tokens=tokens, estimated=estimated):
            return [
                (
                    (
                        "thought, without showing it:"
                        f" {thought(None, tokens, estimated=estimated)}"
                    ),
                    Tone.QUIET,
                )
            ]
        case ThinkingFinished(seconds=seconds, tokens=tokens, estimated=estimated):
            return [
                (
                    f"thought for {thought(seconds, tokens, estimated=estimated)}",
                    Tone.QUIET,
                )
            ]
        case ChangesReviewed():
            lines = [
                (f"left out by you: {part}", Tone.WARNING) for part in event.left_out
            ]
            return [
                *lines,
                *((f"edited by you: {path}", Tone.PLAIN) for path in event.edited),
            ]
        case AcceptingAll(is_on=True):
            text = (
                "Changes of this run are written without a question from now on. `ask`,"
                " or stopping a step, ends that."
            )
            return [(text, Tone.WARNING)]
        case AcceptingAll():
            return [("Changes are asked about again.", Tone.PLAIN)]
        case PersonAnswered(question=asked, answer=""):
            return [(asked, Tone.QUIET), ("Not answered", Tone.WARNING)]
        case PersonAnswered(question=asked, answer=answer):
            return [(asked, Tone.QUIET), (f"Your answer: {answer}", Tone.PLAIN)]
        case TicketsListed(tickets=(), state=None, type=None):
            return [
                (
                    (
                        "There are no tickets yet. `/new feature NAME` makes one; in a"
                        " terminal, `cdd new feature NAME`."
                    ),
                    Tone.PLAIN,
                )
            ]
        case TicketsListed(tickets=(), state=state, type=kind):
            of_kind = f" of the type {kind}" * bool(kind)
            where = f" is in the state {state}" if state else " is there"
            return [
                (
                    f"No ticket{of_kind}{where}.",
                    Tone.PLAIN,
                )
            ]
        case TicketsListed(tickets=tickets):
            width = max(_cells(ticket.slug) for ticket in tickets)
            lines = []
            for ticket in tickets:
                gap = " " * (width - _cells(ticket.slug) + 2)
                how_far = progress(ticket.state, ticket.done, ticket.total)
                line = f"{ticket.slug}{gap}{how_far}  {ticket.error or ticket.where}"
                lines.append((line.rstrip(), Tone.PLAIN))
            return lines
        case SessionsListed(sessions=()):
            return [("There is no earlier session.", Tone.PLAIN)]
        case SessionsListed(sessions=sessions):
            rows = [
                (f"{session_in_short(one)}  {one.last}".rstrip(), Tone.PLAIN)
                for one in sessions
            ]
            return [
                *rows,
                (
                    "`/resume NAME` goes on with one; `/resume` alone with the last.",
                    Tone.PLAIN,
                ),
            ]
        case PlanOpened():
            title = (f"{event.ticket_slug}: {event.title}", Tone.HEADING)
            steps = [
                (f"  {_step(step)}{_after(in_short(step.cost))}", Tone.PLAIN)
                for step in event.steps
            ]
            total = (
                [(f"  {in_full(event.cost)} so far", Tone.QUIET)]
                if event.cost.tokens
                else []
            )
            edited = _edited_criteria(event.edited_criteria)
            missing = [
                (f"  not in this tree: {line}", Tone.WARNING)
                for line in _missing_work(event.missing)
            ]
            return [title, *steps, *total, *edited, *missing]
        case CriteriaShown():
            return _criteria(event)
        case PlanChecked():
            return _plan_checked(event)
        case SpecOpened():
            return _spec_opened(event)
        case SpecShown(in_full=True):
            return [(spec_in_full(event), Tone.PLAIN)]
        case SpecShown():
            return [(f"Spec: {spec_in_short(event)}", Tone.QUIET)]
        case StepStarted(side_tree=True):
            attempt = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            return [
                (
                    (
                        f"Step {event.label} begins in a tree of its own:"
                        f" {event.title}{attempt}"
                    ),
                    Tone.QUIET,
                )
            ]
        case StepStarted(label=label, title=title, attempt=attempt):
            return [
                (
                    f"Step {label}: {title}"
                    + (f" (attempt {attempt})" if attempt > 1 else ""),
                    Tone.HEADING,
                )
            ]
        case ActionStarted(number=number, total=total, title=title):
            return [(f"[{number}/{total}] {title}", Tone.HEADING)]
        case ActionFinished(status="FAILURE", error=error):
            return [(error, Tone.ERROR)]
        case ActionFinished():
            return [("done", Tone.GOOD)]
        case ActionsFinished(succeeded=succeeded, failed=failed, not_run=not_run):
            words = f"{succeeded} of {succeeded + failed + not_run} actions succeeded"
            words += f", {failed} failed" * bool(
                failed
            ) + f", {not_run} not run" * bool(not_run)
            words += f", in {event.seconds:.1f} s, in {event.cwd}"
            return [(words, Tone.WARNING if failed or not_run else Tone.GOOD)]
        case OwnCommandFinished(result=""):
            return []
        case OwnCommandFinished(result=result):
            return [(result, Tone.WARNING)]
        case ToolFinished(problem=""):
            return [
                (
                    " ".join(
                        filter(None, (tool_use(event), lines_changed(event.files)))
                    ),
                    Tone.QUIET,
                )
            ]
        case ToolFinished(problem=problem):
            return [(f"{tool_use(event)}: {problem}", Tone.WARNING)]
        case GuidanceTaken(label=label, text=text):
            return [(f"step {label} has heard: {text}", Tone.QUIET)]
        case ChangesApplied():
            lines = [(f"created {path}", Tone.PLAIN) for path in event.created]
            lines += [(f"changed {path}", Tone.PLAIN) for path in event.modified]
            lines += [(f"deleted {path}", Tone.PLAIN) for path in event.deleted]
            if event.undeclared:
                lines.append(
                    (
                        (
                            "not named in the plan for this step:"
                            f" {', '.join(event.undeclared)}"
                        ),
                        Tone.WARNING,
                    )
                )
            return lines
        case ChangesPutBack():
            return _restored("restored", event.restored, event.kept, event.merged)
        case StepCommitted(commit=commit, submodule_commits=inside):
            commits = [commit[:10]]
            commits += [f"{name[:10]} in {path}" for path, name in inside.items()]
            return [(f"committed as {', '.join(commits)}", Tone.PLAIN)]
        case StepsUndone():
            stay = ", ".join(commit[:10] for commit in event.commits)
            note = (
                [(f"commits that stay on their branch: {stay}", Tone.WARNING)]
                if stay
                else []
            )
            if event.edited:
                names = ", ".join(event.edited)
                note.insert(
                    0,
                    (
                        f"as they were edited in between, not as before: {names}",
                        Tone.WARNING,
                    ),
                )
            return [
                (
                    (
                        f"{_steps(event.labels)} undone. `redo` brings"
                        f" {'it' if len(event.steps) == 1 else 'them'} back."
                    ),
                    Tone.WARNING if event.kept or event.edited else Tone.GOOD,
                ),
                *_restored("as before:", event.restored, event.kept, event.merged),
                *_left_by_commands(event.others),
                *note,
            ]
        case StepsRedone():
            lines = _restored("there again:", event.restored, event.kept, event.merged)
            return [(f"{_steps(event.labels)} done again.", Tone.GOOD), *lines]
        case StepDiff(diff=""):
            return [(f"Step {event.label} changed no files.", Tone.PLAIN)]
        case StepDiff(diff=diff):
            return [(diff.rstrip("\n"), Tone.PLAIN)]
        case BaselineTaken():
            return [_baseline_taken(event)]
        case TestsFinished():
            return [
                *_tests_finished(event),
                *((note, Tone.WARNING) for note in event.notes),
            ]
        case AttemptFailed(will_retry=True):
            return [
                (
                    (
                        f"Attempt {event.attempt} failed: {_clause(event.error)}."
                        " Asking again."
                    ),
                    Tone.WARNING,
                )
            ]
        case StepFinished():
            return [_step_finished(event)]
        case RunFinished():
            return [*_run_finished(event), *_left_to_do(event)]
        case _:
            return []


def _criteria(event: CriteriaShown) -> list[tuple[str, Tone]]:
    lines = [(f"{event.ticket_slug}: {event.title}", Tone.HEADING)]
    for criterion in event.criteria:
        lines.append(
            (
                f"{criterion_sign(criterion)} {criterion.number}. {criterion.text}",
                Tone.PLAIN,
            )
        )
        lines += [(f"    step {_step(step)}", Tone.PLAIN) for step in criterion.steps]
        if criterion.tests:
            names = ", ".join(criterion.tests[:_SHOWN_FILES])
            lines.append(
                (f"    tests: {names}{_and_more(criterion.tests)}", Tone.QUIET)
            )
        if criterion.files:
            names = ", ".join(criterion.files[:_SHOWN_FILES])
            lines.append(
                (f"    files: {names}{_and_more(criterion.files)}", Tone.QUIET)
            )
        if criterion.missing:
            lines.append((f"    {not_in_this_tree(criterion)}", Tone.WARNING))
        if not criterion.steps:
            lines.append((f"    {unserved(criterion)}", Tone.WARNING))
    if not event.criteria:
        lines.append(("The spec has no acceptance criteria yet.", Tone.WARNING))
    return lines


def unserved(criterion: CriterionProof) -> str:
    """Return the reason why a criterion that no step serves has no evidence."""
    if criterion.edit:
        return f"{criterion.edit}; no step of the plan serves it as it is now"
    return "no step of the plan serves it"


def not_in_this_tree(criterion: CriterionProof) -> str:
    """Return which files of a criterion are gone, or without the change of its step."""
    return f"not in this tree as the run left them: {_few(criterion.missing)}"


def criterion_sign(criterion: CriterionProof) -> str:
    """Whether it is seen to be met, partly done, or open."""
    is_begun = any(step.status.is_over for step in criterion.steps)
    status = StepStatus.COMPLETED if criterion.is_seen else StepStatus.IN_PROGRESS
    return STEP_GLYPHS[status if is_begun else StepStatus.PENDING]


def _and_more(names: Sequence[str]) -> str:
    return f" and {len(names) - _SHOWN_FILES} more" if len(names) > _SHOWN_FILES else ""


def _plan_checked(event: PlanChecked) -> list[tuple[str, Tone]]:
    lines = []
    for problem in event.problems:
        where = f"{event.source}:{problem.line}" if problem.line else event.source
        words = f"{where}: {'warning: ' * problem.is_warning}{problem.text}"
        lines.append((words, Tone.WARNING if problem.is_warning else Tone.ERROR))
    wrong = sum(not problem.is_warning for problem in event.problems)
    if wrong:
        return [
            *lines,
            (
                (
                    f"{wrong} {'problem has' if wrong == 1 else 'problems have'} to be"
                    " fixed."
                ),
                Tone.ERROR,
            ),
        ]
    return [*lines, (f"{event.source} can be carried out.", Tone.GOOD)]


def _spec_opened(event: SpecOpened) -> list[tuple[str, Tone]]:
    heading = (
        f"{event.ticket_slug}: {event.title}" if event.title else event.ticket_slug,
        Tone.HEADING,
    )
    if not event.missing and event.open_points:
        next_one = (
            f"Next: `/socrates {event.ticket_slug}` in the shell asks about them;"
            f" `/plan {event.ticket_slug}` plans without the answers."
        )
        return [
            heading,
            (f"{event.path} is not complete. Open:", Tone.WARNING),
            *((f"  {line}", Tone.PLAIN) for line in event.open_points),
            (next_one, Tone.PLAIN),
        ]
    if not event.missing:
        next_one = (
            f"Next: the plan. `/plan {event.ticket_slug}` in the shell makes it with"
            " you."
        )
        return [heading, ("The spec is complete.", Tone.GOOD), (next_one, Tone.PLAIN)]
    lines = [(f"  {line}", Tone.PLAIN) for line in event.missing]
    next_one = (
        f"Next: write {'it' if len(lines) == 1 else 'them'} in {event.path}, or let"
        " Socrates ask: "
    )
    next_one += f"`/socrates {event.ticket_slug}` in the shell."
    return [
        heading,
        (f"{event.path} is not complete. Missing:", Tone.WARNING),
        *lines,
        (next_one, Tone.PLAIN),
    ]


def spec_in_short(spec: SpecShown) -> str:
    """How far a spec is, in a line."""
    unchecked = sum(not item.check for item in spec.criteria)
    count = len(spec.criteria)
    words = [f"{count} {'criterion' if count == 1 else 'criteria'}"] if count else []
    words += [f"{unchecked} without a check"] if unchecked else []
    asked = len(spec.open_questions)
    words += [f"{asked} open question{'s' * (asked != 1)}"] if asked else []
    words += (
        [f"missing: {named_fields(line.partition(':')[0] for line in spec.missing)}"]
        if spec.missing
        else []
    )
    words += ["not written yet"] if spec.not_written else []
    count = len(spec.lost)
    words += [f"{count} to be removed or reworded"] if count else []
    return " · ".join(words)


def named_fields(names: Iterable[str]) -> str:
    """Fields of a spec as people call them."""
    return ", ".join(_FIELD_NAMES.get(name, name) for name in names)


def spec_in_full(spec: SpecShown) -> str:
    """All of a spec, and what is open, as Markdown."""
    parts = [
        (
            f"## {spec.title or '(no title yet)'}\n\n{spec.ticket_slug} · {spec.type} ·"
            f" priority {spec.priority}"
        )
    ]
    parts.append(spec.description or "*(no description yet)*")
    criteria = "\n".join(
        f"- {item.text}\n  - *checked by: {item.check}*"
        if item.check
        else f"- {item.text}\n  - *nobody knows yet how to check this*"
        for item in spec.criteria
    )
    parts.append(f"### Acceptance criteria\n\n{criteria or '*(none yet)*'}")
    parts += [f"### Scope: {area}\n\n{_bullets(items)}" for area, items in spec.scope]
    parts += (
        [f"### Technical notes\n\n{spec.technical_notes}"]
        if spec.technical_notes
        else []
    )
    parts += [f"### Missing\n\n{_bullets(spec.missing)}"] if spec.missing else []
    if spec.open_questions:
        questions = "\n".join(
            f"{each.number}. {each.text}" for each in spec.open_questions
        )
        parts.append(f"### Open questions\n\n{questions}\n\n`drop 1` drops question 1.")
    if spec.lost:
        lost = _bullets([words.text for words in spec.lost])
        parts.append(f"### To be removed or reworded in spec.yaml\n\n{lost}")
    parts += (
        [f"Not in spec.yaml yet: {named_fields(spec.not_written)}."]
        if spec.not_written
        else []
    )
    return "\n\n".join(parts)


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _restored(
    how: str, restored: Sequence[str], kept: Sequence[str], merged: Sequence[str]
) -> list[tuple[str, Tone]]:
    lines = []
    if restored:
        lines.append((f"{how} {', '.join(restored)}", Tone.QUIET))
    if merged:
        lines.append((f"merged with your edits: {', '.join(merged)}", Tone.PLAIN))
    if kept:
        text = f"edited since, left as it is: {', '.join(kept)}"
        lines.append((text, Tone.WARNING))
    return lines


def _left_by_commands(paths: Sequence[str]) -> list[tuple[str, Tone]]:
    if not paths:
        return []
    text = f"changed by commands outside the step's files, kept: {', '.join(paths)}"
    return [(text, Tone.WARNING)]


def _steps(labels: Sequence[str]) -> str:
    """As the beginning of a sentence that goes on in the past participle."""
    names = ", ".join(labels)
    return f"Step {names} was" if len(labels) == 1 else f"Steps {names} were"


def progress(state: str, done: int, total: int) -> str:
    """How far a ticket is, in a few words."""
    return f"{state} {done}/{total}" if state in ("in progress", "failed") else state


def _baseline_taken(event: BaselineTaken) -> tuple[str, Tone]:
    before = f"Before step {event.label}, `{event.command}`"
    if event.problem:
        return (
            (
                f"{before} was of no use: {_clause(event.problem)}. Every failure will"
                " count as new."
            ),
            Tone.WARNING,
        )
    if event.passed is None and event.return_code:
        why = (
            "its failures cannot be told from new ones, so no step passes by it until"
            " they are fixed"
        )
        return (
            f"{before} fails already (exit code {event.return_code}): {why}.",
            Tone.WARNING,
        )
    counts = {"passed": event.passed, "failed": event.failed, "skipped": event.skipped}
    said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    if event.passed is None:
        said = "passed"
    elif not said:
        said = "found no tests"
    elif event.failed:
        said += "; these failures are not blamed on a step that is not about them"
    return f"{before}: {said} ({event.seconds:.1f} s)", Tone.PLAIN


def _tests_finished(event: TestsFinished) -> list[tuple[str, Tone]]:
    match event.verification:
        case None:
            return []  # the attempt's or the step's failure says it
        case Verification.PASSED:
            return [(f"{event.reason} ({event.seconds:.1f} s)", Tone.GOOD)]
        case Verification.BASELINE:
            return [(f"{event.reason} ({event.seconds:.1f} s)", Tone.WARNING)]
        case Verification.NONE:
            return [(f"Unverified: {event.reason}", Tone.WARNING)]


def _step_finished(event: StepFinished) -> tuple[str, Tone]:
    where = f"({event.done}/{event.total})"
    match event.status:
        case StepStatus.COMPLETED:
            remark = REMARKS.get(event.verification)
            words = f"completed, {remark}" if remark else "completed"
            seen = event.evidence
            because = (
                f": {why(seen)}" if seen is not None and seen.passed is not None else ""
            )
            return (
                f"Step {event.label} {words} {where}{because}",
                Tone.WARNING if remark else Tone.GOOD,
            )
        case StepStatus.SKIPPED:
            return f"Step {event.label} skipped: {event.reason} {where}", Tone.WARNING
        case StepStatus.FAILED if event.is_earlier_failure:
            words = (
                f"Step {event.label} of {event.total} got no reply. Its earlier failure"
                f" stands: {_clause(event.error)}"
            )
            return words, Tone.WARNING
        case StepStatus.FAILED:
            return (
                f"Step {event.label} of {event.total} failed: {_clause(event.error)}",
                Tone.ERROR,
            )
        case _:
            return f"Step {event.label} is pending {where}", Tone.QUIET


def _run_finished(event: RunFinished) -> list[tuple[str, Tone]]:
    counts = [f"{event.completed}/{event.total} steps completed"]
    counts += [f"{event.unverified} of them unverified"] if event.unverified else []
    counts += (
        [f"{event.with_old_failures} of them with old failures"]
        if event.with_old_failures
        else []
    )
    counts += [f"{event.skipped} skipped"] if event.skipped else []
    counts += [f"{len(event.files)} files" if len(event.files) != 1 else "1 file"]
    counts += (
        [str(timedelta(seconds=round(event.seconds)))]
        if event.seconds is not None
        else []
    )
    tone = {RunStatus.COMPLETED: Tone.GOOD, RunStatus.FAILED: Tone.ERROR}.get(
        event.status, Tone.WARNING
    )
    lines = [(f"{event.ticket_slug} {_outcome(event)}: {', '.join(counts)}", tone)]
    return [*lines, *_shortfalls(event), *_require_result(event)]


def _outcome(event: RunFinished) -> str:
    if event.missing:
        return "is not done in this tree"
    if event.status is RunStatus.COMPLETED:
        return "done"
    if event.edited_criteria and event.status is RunStatus.IN_PROGRESS:
        return "is not done"
    return event.status.value.replace("_", " ")


def _shortfalls(event: RunFinished) -> list[tuple[str, Tone]]:
    """Return the steps and criteria for which the run is not a proof."""
    lines = []
    for reason in dict.fromkeys(step.why for step in event.unproven):
        of_these = ", ".join(
            f"{step.label}. {step.title}"
            for step in event.unproven
            if step.why is reason
        )
        remark = (
            "skipped" if reason is Shortfall.SKIPPED else REMARKS[Verification(reason)]
        )
        lines.append((f"  {remark}: {of_these}", Tone.WARNING))
    lines += [(f"  {line}", Tone.WARNING) for line in _missing_work(event.missing)]
    lines += _edited_criteria(event.edited_criteria)
    if event.edited_criteria:
        hint = how_to_serve(event.ticket_slug, event.edited_criteria)
        lines.append((hint, Tone.WARNING))
    return lines


def _require_result(event: RunFinished) -> list[tuple[str, Tone]]:
    reasons = _reasons_against(event)
    lines = [(reason, Tone.ERROR) for reason in reasons]
    if event.missing:
        lines.append((_how_to_bring_back(event), Tone.PLAIN))
    is_done = event.status is RunStatus.COMPLETED
    if event.require and is_done and not reasons:
        lines.append(
            (
                f"`require: {event.require}` held: each step's tests have passed.",
                Tone.GOOD,
            )
        )
    return lines


def _reasons_against(event: RunFinished) -> list[str]:
    """Return why a run is not done although its steps are over, in the order in which
    they are shown. Without a reason, `require` has held.
    """
    reasons = []
    if event.missing:
        count = len(event.missing)
        steps = "1 step" if count == 1 else f"{count} steps"
        reasons.append(f"This tree lacks work of {steps}, so the run is not done here.")
    against = reasons_against(event.unproven, event.edited_criteria)
    if event.require and against:
        reasons.append(
            f"The run has failed by `require: {event.require}`: {'; '.join(against)}."
        )
    return reasons


def _missing_work(missing: Sequence[MissingWork]) -> list[str]:
    """Return a line for each of the first steps whose work is not in the tree."""
    lines = []
    for work in missing[:_SHOWN_FILES]:
        parts = [
            f"{what} {_few(names)}"
            for what, names in (
                ("missing files:", work.missing),
                ("files without its change:", work.reverted),
                ("deleted files that are back:", work.restored),
                ("missing tests:", work.tests),
            )
            if names
        ]
        lines.append(f"{work.label}. {work.title}: {'; '.join(parts)}")
    if len(missing) > _SHOWN_FILES:
        lines.append(f"and {len(missing) - _SHOWN_FILES} more steps")
    return lines


def _few(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _SHOWN_MISSING
    shown = ", ".join(names[:_SHOWN_MISSING])
    return f"{shown} and {more} more" if more > 0 else shown


def _how_to_bring_back(event: RunFinished) -> str:
    slug, first = event.ticket_slug, event.missing[0].label
    return (
        "Bring the work back, for example with `git switch` to its branch; or undo the"
        f" steps with `cdd undo {slug} --step {first}`; or begin again with"
        f" `cdd exec {slug} --start-over`."
    )


def _edited_criteria(edited: Sequence[EditedCriterion]) -> list[tuple[str, Tone]]:
    """The criteria that no step serves as they are now."""
    lines = [
        f"  criterion {criterion.place} is {criterion.edit}: {quote(criterion.text)}"
        for criterion in edited[:_SHOWN_FILES]
    ]
    if len(edited) > _SHOWN_FILES:
        lines.append(f"  and {len(edited) - _SHOWN_FILES} more criteria")
    return [(line, Tone.WARNING) for line in lines]


def _left_to_do(event: RunFinished) -> list[tuple[str, Tone]]:
    lines = []
    if event.commits:
        names = ", ".join(commit[:10] for commit in event.commits[:_SHOWN_FILES])
        more = (
            f" and {len(event.commits) - _SHOWN_FILES} more"
            if len(event.commits) > _SHOWN_FILES
            else ""
        )
        lines.append(f"Committed: {names}{more}.")
    if event.to_commit:
        of_steps = (
            f" of step {', '.join(event.labels_to_commit)}" if event.commits else ""
        )
        lines.append(f"Review the changes{of_steps} and commit them.")
    return [(line, Tone.PLAIN) for line in lines]


def _step(step: StepView) -> str:
    remark = f"  ({REMARKS[step.verification]})" if step.verification in REMARKS else ""
    if step.status is StepStatus.FAILED and step.error:
        remark = f"  (failed: {step.error.splitlines()[0]})"
    elif step.status is StepStatus.SKIPPED and step.reason:
        remark = f"  (skipped: {step.reason})"
    remark += "  (changed in the plan since)" if step.changed else ""
    return f"{step_glyph(step)} {step.label}. {step.title}{remark}"


def session_in_short(session: SessionView) -> str:
    """When it was, what it is called, who was at work and how far it is."""
    when = datetime.fromisoformat(session.touched).astimezone()
    return "  ".join(
        filter(
            None,
            (f"{when:%Y-%m-%d %H:%M}", session.key, session.agent, session.progress),
        )
    )


def in_short(cost: Cost) -> str:
    """In a few cells: the money, or where no price is known the tokens; empty where
    nothing was spent.
    """
    about = "~" if cost.estimated else ""
    if cost.usd:
        return (
            f"{about}${cost.usd:.2f}"
            if cost.usd >= 0.00995
            else f"{about}${max(cost.usd, 0.0001):.4f}"
        )
    if not cost.tokens:
        return ""
    if cost.tokens < 999.5:
        return f"{about}{cost.tokens} tok"
    many, unit = (
        (cost.tokens / 1e3, "k") if cost.tokens < 999_500 else (cost.tokens / 1e6, "M")
    )
    return (
        f"{about}{many:.1f}{unit} tok"
        if many < 9.95
        else f"{about}{many:.0f}{unit} tok"
    )


def in_full(cost: Cost) -> str:
    about = "~" if cost.estimated else ""
    return f"{about}{cost.tokens:,} tokens" + (
        f", {about}${cost.usd:.4f}" if cost.usd else ""
    )


def _after(words: str) -> str:
    return f"  {words}" if words else ""


def step_glyph(step: StepView) -> str:
    """The sign of where a step stands."""
    is_unproven = step.status is StepStatus.COMPLETED and step.verification in REMARKS
    return _UNPROVEN if is_unproven else STEP_GLYPHS[step.status]


def why(evidence: Evidence) -> str:
    """The evidence on which a step was decided, in a line."""
    if evidence.passed is None:
        return evidence.reason
    new_failures = evidence.failed - evidence.old_failures
    parts = [f"{_tests(evidence.fixed)} went red → green"] if evidence.fixed else []
    parts += [f"{_tests(evidence.new, 'new ')} passed"] if evidence.new else []
    others = (" other" if evidence.stayed == 1 else " others") if parts else ""
    parts += [f"{evidence.stayed}{others} stayed green"] if evidence.stayed else []
    parts += [f"{_tests(new_failures)} failed"] if new_failures else []
    parts += (
        [f"{_tests(evidence.old_failures)} failed before, too"]
        if evidence.old_failures
        else []
    )
    return ", ".join(parts) or "no test passed"


def _tests(count: int, kind: str = "") -> str:
    return f"{count} {kind}test{'s' * (count != 1)}"


def _clause(error: str | None) -> str:
    """An error's sentence, to be set within another one."""
    return (error or "").rstrip(".")


def _cells(text: str) -> int:
    """Return the width of a text in a terminal."""
    width = 0
    for sign in text:
        if unicodedata.east_asian_width(sign) in "WF":
            width += 2
        elif unicodedata.category(sign) not in ("Mn", "Me", "Cf"):
            width += 1
    return width
