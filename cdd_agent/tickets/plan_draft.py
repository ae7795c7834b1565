"""A plan, or the changes of one, as JSON that a model writes. A typo is an error."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_step import DELETED, NEW, AffectedFile, PlanStep
from cdd_agent.tickets.spec import TicketSpec

_MOST_STEPS = 100
_Number = Annotated[int, Meta(ge=0, le=999_999)]
_Text = Annotated[str, Meta(min_length=1)]
_Complexity = Literal["simple", "medium", "complex"]


class FileDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that a step creates, edits or deletes."""

    path: Annotated[_Text, Meta(description="Relative to the project's root, with forward slashes.")]
    change: Annotated[
        Literal["create", "edit", "delete"],
        Meta(description="`create` only if it does not exist yet and no earlier step creates it."),
    ]

    def affected(self, before: PlanStep | None) -> AffectedFile:
        """With the note that the step had for it, where that says the same."""
        plain = AffectedFile(self.path, {"create": NEW, "delete": DELETED, "edit": ""}[self.change])
        known = next((file for file in before.files_affected if file.path == plain.path), None) if before else None
        if known and (known.is_created, known.is_deleted) == (plain.is_created, plain.is_deleted):
            return known
        return plain


class StepDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """One step: one change that can be made, checked and restored as a whole."""

    number: _Number
    title: Annotated[_Text, Meta(description="A few words, in the imperative.")]
    description: Annotated[
        _Text,
        Meta(description="What to do, in Markdown; whoever does it reads this and the spec, and no other step."),
    ]
    complexity: _Complexity
    estimated_time: Annotated[_Text, Meta(description="As `30 min` or `2 hours`.")]
    dependencies: Annotated[
        tuple[_Number, ...], Meta(description="The numbers of the steps that have to be done before.")
    ]
    files: tuple[FileDraft, ...]
    verify: Annotated[
        _Text,
        Meta(
            description="The command that checks this step, without pipes or `&&`, as `pytest tests/test_user.py`; "
            "`none` only for a step that changes no files."
        ),
    ]
    serves: Annotated[tuple[_Number, ...], Meta(description="The numbers of the acceptance criteria that it serves.")]

    def to_step(self, before: PlanStep | None = None) -> PlanStep:
        """`before`: the step that it takes the place of."""
        return PlanStep(
            number=self.number,
            title=self.title,
            description=self.description,
            complexity=self.complexity,
            estimated_time=self.estimated_time,
            dependencies=self.dependencies,
            files_affected=tuple(file.affected(before) for file in self.files),
            verify=self.verify,
            serves=self.serves,
        )


class PlanDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole plan."""

    overview: Annotated[
        str, Meta(min_length=1, description="Why it is done like this, in a few sentences of Markdown.")
    ]
    complexity: _Complexity
    estimated_time: _Text
    steps: Annotated[tuple[StepDraft, ...], Meta(min_length=1, max_length=_MOST_STEPS)]
    risks: Annotated[
        tuple[str, ...], Meta(description="What may go wrong, and every assumption that the plan rests on.")
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
    """A step as it is to be from now on, or a new one."""

    after: Annotated[
        int | None,
        Meta(description="Only of a new step: the number of the step that it stands behind; 0: before all."),
    ] = None


class PlanChanges(Struct, frozen=True, forbid_unknown_fields=True):
    """The changes of a plan. What is not named stays as it is, word for word."""

    summary: Annotated[
        str, Meta(min_length=1, description="What was changed and why, in one or two sentences for the person.")
    ]
    steps: Annotated[tuple[ChangedStep, ...], Meta(max_length=_MOST_STEPS)] = ()
    removed: Annotated[tuple[int, ...], Meta(description="The numbers of steps that are to go.")] = ()
    overview: Annotated[str | None, Meta(description="null: stays as it is.")] = None
    complexity: _Complexity | None = None
    estimated_time: str | None = None
    risks: Annotated[tuple[str, ...] | None, Meta(description="All of them, if any is different.")] = None
