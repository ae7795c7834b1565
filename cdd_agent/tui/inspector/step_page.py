"""The page of one step: outcome, text, tests, changes, and an attempt's prompt and
reply.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import evidence_in_words
from cdd_agent.tickets.plan import NO_CHECK
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.inspector.words import count_of, span, step_name
from cdd_agent.tui.transcript.actions import show_diff, text_block
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.verification.outcomes import Result
from cdd_agent.wording.step_signs import step_remark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdd_agent.engine.step_details import AttemptDetails, SeenTest, StepDetails
    from cdd_agent.events.step_summary import StepSummary
    from cdd_agent.tui.transcript.folds import Fold, Foldable
    from cdd_agent.tui.transcript.widget import Transcript

_SHOWN_TESTS = 500

Block = tuple[BlockKind, str]


class StepPage(Struct):
    """The page of one attempt. Blocks that the user opened stay open when it is written
    again.
    """

    details: StepDetails
    attempt: AttemptDetails | None
    folds: dict[str, Fold]

    def write(self, transcript: Transcript) -> None:
        for kind, text in self._outcome():
            transcript.add(kind, text)
        transcript.add(BlockKind.MARKDOWN, _text_of(self.details))
        if self.attempt is None:
            return
        self._write_tests(transcript, self.attempt)
        if self.attempt.diff:
            transcript.add(BlockKind.HEADING, "Changes")
            show_diff(transcript, self.attempt.diff)
        texts = {
            "output of the check": self.attempt.output,
            "prompt": self.attempt.request,
            "reply": self.attempt.reply,
        }
        if any(texts.values()):
            transcript.add(BlockKind.HEADING, "Texts")
        for subject, text in texts.items():
            if text:
                self._add_folded(transcript, subject, text_block(text, subject))

    def _add_folded(
        self, transcript: Transcript, subject: str, block: Foldable
    ) -> None:
        block.header.fold = self.folds.setdefault(subject, block.header.fold)
        transcript.add_foldable(block)

    def _outcome(self) -> Iterator[Block]:
        view, attempt = self.details.view, self.attempt
        if view.status is StepStatus.COMPLETED and view.evidence is not None:
            kind = BlockKind.WARNING if step_remark(view) else BlockKind.GOOD
            yield kind, f"Evidence: {evidence_in_words(view.evidence)}"
        error = ""
        if view.error and view.status is StepStatus.FAILED:
            error = view.error
            yield BlockKind.ERROR, error
        if view.reason and view.status is StepStatus.SKIPPED:
            yield BlockKind.WARNING, f"Skipped: {view.reason}"
        if view.changed:
            text = "This step has changed in the plan since it ran."
            yield BlockKind.WARNING, text
        if attempt is None:
            yield BlockKind.NOTE, "Nothing yet: no attempt has been made."
            return
        if attempt.guidance:
            yield BlockKind.NOTE, f"Guidance: {attempt.guidance}"
        # The failure begins with the error above.
        failure = attempt.failure.removeprefix(error).strip()
        if failure:
            yield BlockKind.OUTPUT, failure

    def _write_tests(self, transcript: Transcript, attempt: AttemptDetails) -> None:
        """Write changed tests first, and fold the others."""
        if not attempt.tests:
            return
        transcript.add(BlockKind.HEADING, "Tests")
        stayed: list[str] = []
        for test in attempt.tests:
            if test.result is test.before:
                stayed.append(_test_in_words(test)[1])
            else:
                transcript.add(*_test_in_words(test))
        if not stayed:
            return
        shown = stayed[:_SHOWN_TESTS]
        if len(stayed) > len(shown):
            shown.append(f"and {len(stayed) - len(shown):,} more")
        title = f"{count_of(len(stayed), 'test')} with the same result as before"
        block = text_block("\n".join([title, *shown]), "list")
        self._add_folded(transcript, "stayed", block)


def step_heading(view: StepSummary) -> str:
    return sanitize_for_display(step_name(view))


def step_facts(
    view: StepSummary, attempt: int, attempts: int, activity: str = ""
) -> str:
    """Return the line of facts below the heading. `attempt` counts from 1."""
    facts = [f"running: {activity}" if activity else _standing(view)]
    if attempts:
        facts.append(f"attempt {attempt} of {attempts}")
    if view.seconds is not None:
        facts.append(span(view.seconds))
    if view.cost.tokens:
        facts.append(view.cost.in_full())
    return sanitize_for_display(" · ".join(facts))


def _standing(view: StepSummary) -> str:
    words = view.status.value.replace("_", " ")
    remark = step_remark(view)
    if remark:
        words += f", {remark}"
    if view.completed_at:
        time = datetime.fromisoformat(view.completed_at).astimezone()
        words += f" at {time:%H:%M}"
    return words


def _text_of(details: StepDetails) -> str:
    step = details.step
    verify = "the project's check"
    if step.checks is not None:
        verify = ", ".join(f"`{check}`" for check in step.checks) or NO_CHECK
    depends = ", ".join(details.depends_on) or "none"
    files = "\n".join(f"- `{file.place}`" for file in step.files_affected)
    fields = f"**Depends on:** {depends}  \n**Verify:** {verify}"
    return f"{step.description}\n\n{fields}\n\n{files}"


def _test_in_words(test: SeenTest) -> Block:
    earlier_result = "new" if test.before is None else f"{test.before.value} before"
    match test.result, test.before:
        case Result.FAILED, Result.FAILED:
            return BlockKind.WARNING, f"{test.name}  failed, also before"
        case Result.FAILED, _:
            return BlockKind.ERROR, f"{test.name}  failed, {earlier_result}"
        case Result.PASSED, Result.PASSED:
            return BlockKind.GOOD, test.name
        case Result.PASSED, _:
            return BlockKind.GOOD, f"{test.name}  passed, {earlier_result}"
        case _:
            return BlockKind.NOTE, f"{test.name}  {test.result.value}, {earlier_result}"
