"""The inspector's actions on a step, and reasons why an action is impossible."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from cdd_agent.engine.run_inspection import RunInspection
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.outcome_words import steps_in_words
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.transcript.blocks import BlockKind

if TYPE_CHECKING:
    from cdd_agent.events.step_events import UndoPreview

Block = tuple[BlockKind, str]


class RunAction(StrEnum):
    UNDO = "undo"
    RETRY = "retry"
    SKIP = "skip"


KEYS = {RunAction.RETRY: "r", RunAction.SKIP: "s", RunAction.UNDO: "u"}


class ActionOffer(Struct, frozen=True):
    title: str
    line: str
    effects: tuple[str, ...]
    longer_line: str = ""
    """The line for the prompt, to be completed there; empty if it is `line`."""
    previews_undo_of: int | None = None


def refusal(action: RunAction, step: StepSummary, *, is_running: bool) -> str:
    """Return why the step does not allow an action; empty if it does."""
    status = step.status
    if status is StepStatus.IN_PROGRESS and is_running:
        return f"Step {step.label} is running. Stop it first: Esc on the main screen."
    match action:
        case RunAction.UNDO if not status.is_over:
            return f"Step {step.label} is not over, so there is nothing to undo."
        case RunAction.RETRY if status.is_over:
            return f"Step {step.label} is over. To run it again, undo it first."
        case RunAction.RETRY if status is StepStatus.PENDING:
            return f"Step {step.label} has not failed, so there is nothing to retry."
        case RunAction.SKIP if status.is_over:
            return f"Step {step.label} is over already."
        case _:
            return ""


def offered_actions(step: StepSummary, *, is_running: bool) -> list[RunAction]:
    return [
        action for action in KEYS if not refusal(action, step, is_running=is_running)
    ]


def describe_action(action: RunAction, step: StepSummary) -> tuple[str, ...]:
    """Return the effect of an action on a step. An undo has a preview instead."""
    match action:
        case RunAction.RETRY:
            effect = (
                f"The model is asked again for step {step.label}, and its check runs."
                " Its cost counts for the run."
            )
            return effect, "To add guidance, press Tab and write it after `because`."
        case RunAction.SKIP:
            effect = (
                f"Step {step.label} is left out: its check does not run, and criteria"
                " that it serves stay unverified."
            )
            return effect, "To say why, press Tab and write it after `because`."
        case _:
            return ()


def describe_redo(inspection: RunInspection) -> str:
    labels = [step.label for step in inspection.undone]
    return f"This restores the changes of {steps_in_words(labels)}, which were undone."


def describe_preview(preview: UndoPreview) -> list[Block]:
    names = steps_in_words(preview.labels)
    blocks = [(BlockKind.NOTE, f"This undoes {names}.")]
    for label, paths, kind in (
        ("Reverts:", preview.restored, BlockKind.OUTPUT),
        ("merged with your edits:", preview.merged, BlockKind.NOTE),
        ("edited since, left unchanged:", preview.kept, BlockKind.WARNING),
        (
            "restored with the edits made between the steps:",
            preview.edited,
            BlockKind.WARNING,
        ),
    ):
        for path in paths:
            blocks.append((kind, sanitize_for_display(f"{label} {path}")))
    return blocks
