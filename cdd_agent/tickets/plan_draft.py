"""A plan, or changes of a plan, as JSON that a model writes; and a plan made without a
model.
"""

from collections.abc import Collection
from typing import Annotated, Literal

from msgspec import Meta, Struct

from cdd_agent.tickets.plan import (
    DELETED,
    NEW,
    AffectedFile,
    ImplementationPlan,
    PlanStep,
)
from cdd_agent.tickets.spec import TicketSpec

BASIC_PLAN_MARK = (
    "**Basic plan**, made from the acceptance criteria without a model: nobody has"
    " looked at the project for it."
)
_MAX_TITLE = 70
_MAX_STEPS = 100
_Number = Annotated[int, Meta(ge=0, le=999_999)]
_Text = Annotated[str, Meta(min_length=1)]
_Complexity = Literal["simple", "medium", "complex"]

_NOTES = {"create": NEW, "delete": DELETED, "edit": ""}


class FileDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that a step creates, edits or deletes."""

    path: Annotated[
        _Text, Meta(description="Relative to the project's root, with forward slashes.")
    ]
    change: Annotated[
        Literal["create", "edit", "delete"],
        Meta(
            description=(
                "`create` only if it does not exist yet and no earlier step creates it."
            )
        ),
    ]

    def to_file(self, previous: PlanStep | None) -> AffectedFile:
        """Return the file, with the note of the previous version of the step if it
        means the same.
        """
        file = AffectedFile(self.path, _NOTES[self.change])
        for old in previous.files_affected if previous else ():
            if (
                old.path == file.path
                and old.is_created == file.is_created
                and old.is_deleted == file.is_deleted
            ):
                return old
        return file


class StepDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """One step: one change that can be made, checked and restored as a whole."""

    number: _Number
    title: Annotated[_Text, Meta(description="A few words, in the imperative.")]
    description: Annotated[
        _Text,
        Meta(
            description=(
                "What to do, in Markdown; whoever does it reads this and the spec, and"
                " no other step."
            )
        ),
    ]
    complexity: _Complexity
    estimated_time: Annotated[_Text, Meta(description="As `30 min` or `2 hours`.")]
    dependencies: Annotated[
        tuple[_Number, ...],
        Meta(description="The numbers of the steps that have to be done before."),
    ]
    files: tuple[FileDraft, ...]
    verify: Annotated[
        _Text,
        Meta(
            description=(
                "The command that checks this step, without pipes or `&&`, as"
                " `pytest tests/test_user.py`; `none` only for a step that changes no"
                " files."
            )
        ),
    ]
    serves: Annotated[
        tuple[_Number, ...],
        Meta(description="The numbers of the acceptance criteria that it serves."),
    ]

    def to_step(self, previous: PlanStep | None = None) -> PlanStep:
        """Return the step; `previous` is the version that it replaces."""
        return PlanStep(
            number=self.number,
            title=self.title,
            description=self.description,
            complexity=self.complexity,
            estimated_time=self.estimated_time,
            dependencies=self.dependencies,
            files_affected=tuple(file.to_file(previous) for file in self.files),
            checks=(self.verify,),
            serves=self.serves,
            label=previous.label if previous else "",
            id=previous.id if previous else "",
        )


class PlanDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole plan."""

    overview: Annotated[
        str,
        Meta(
            min_length=1,
            description="Why it is done like this, in a few sentences of Markdown.",
        ),
    ]
    complexity: _Complexity
    estimated_time: _Text
    steps: Annotated[tuple[StepDraft, ...], Meta(min_length=1, max_length=_MAX_STEPS)]
    risks: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "What may go wrong, and every assumption that the plan rests on."
            )
        ),
    ]

    def to_plan(self, spec: TicketSpec, slug: str) -> ImplementationPlan:
        return ImplementationPlan(
            ticket_slug=slug,
            ticket_title=spec.title,
            ticket_type=spec.type.value,
            overview=self.overview,
            total_complexity=self.complexity,
            total_estimated_time=self.estimated_time,
            steps=tuple(step.to_step() for step in self.steps),
            risks=self.risks,
        )


class ChangedStep(StepDraft, frozen=True):
    """The new version of a step, or a new step."""

    after: Annotated[
        int | None,
        Meta(
            description=(
                "Only of a new step: the number of the step that it stands behind; 0:"
                " before all."
            )
        ),
    ] = None


class PlanChanges(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes of a plan. Everything else stays unchanged, word for word."""

    summary: Annotated[
        str,
        Meta(
            min_length=1,
            description=(
                "What was changed and why, in one or two sentences for the person."
            ),
        ),
    ]
    steps: Annotated[tuple[ChangedStep, ...], Meta(max_length=_MAX_STEPS)] = ()
    removed: Annotated[
        tuple[int, ...], Meta(description="The numbers of steps that are to go.")
    ] = ()
    overview: Annotated[str | None, Meta(description="null: stays as it is.")] = None
    complexity: _Complexity | None = None
    estimated_time: str | None = None
    risks: Annotated[
        tuple[str, ...] | None, Meta(description="All of them, if any is different.")
    ] = None


def make_basic_plan(
    spec: TicketSpec, slug: str, *, first_number: int = 1, served: Collection[int] = ()
) -> ImplementationPlan:
    """Return a plan with one step for each acceptance criterion that is not `served`
    yet, to be completed by hand.
    """
    steps: list[PlanStep] = []
    for criterion_number, criterion in enumerate(spec.acceptance_criteria, 1):
        if criterion_number in served:
            continue
        title = " ".join(criterion.split())
        if len(title) > _MAX_TITLE:
            title = title[:_MAX_TITLE].rpartition(" ")[0] + " …"
        step = PlanStep(
            first_number + len(steps),
            title.rstrip("."),
            f"Make this true, with a test that shows it: {criterion}",
            dependencies=(steps[-1].number,) if steps else (),
            serves=(criterion_number,),
        )
        steps.append(step)
    return ImplementationPlan(
        ticket_slug=slug,
        ticket_title=spec.title,
        ticket_type=spec.type.value,
        overview=(
            f"{BASIC_PLAN_MARK} Give each step its files and its check before it is"
            f" carried out.\n\n{spec.description}"
        ),
        steps=tuple(steps),
        risks=(
            (
                "No step names its files: a model is not shown any of them until they"
                " are named."
            ),
        ),
    )
