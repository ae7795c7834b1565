"""Plans, and changes of plans, as models write them in JSON; and plans without a
model.
"""

from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from string import ascii_lowercase, digits
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from cdd_agent.tickets.criteria import name_criteria
from cdd_agent.tickets.plan import (
    DELETED,
    NEW,
    AffectedFile,
    ImplementationPlan,
    MayFail,
    PlanStep,
)
from cdd_agent.tickets.spec import TicketSpec

BASIC_PLAN_MARK = (
    "**Basic plan**, made from the acceptance criteria alone: without a model, and"
    " without reading the project."
)
_MAX_TITLE = 70
_MAX_STEPS = 100
_ID_SIGNS = digits + ascii_lowercase
_ID_LENGTH = 4
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
        """Return the file, with the note of the step's previous version if it means the
        same.
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


class MayFailDraft(Struct, frozen=True, forbid_unknown_fields=True):
    tests: tuple[str, ...]
    until: Annotated[
        int | None, Meta(description="The step that makes them pass, if a later one.")
    ] = None


class StepDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a plan."""

    number: _Number
    title: Annotated[_Text, Meta(description="A few words, in the imperative.")]
    description: Annotated[
        _Text,
        Meta(
            description=(
                "What to do, in Markdown, for a model that reads no other step."
            )
        ),
    ]
    complexity: _Complexity
    estimated_time: Annotated[_Text, Meta(description="As `30 min` or `2 hours`.")]
    dependencies: Annotated[
        tuple[_Number, ...],
        Meta(description="The numbers of the steps that it needs."),
    ]
    files: tuple[FileDraft, ...]
    checks: Annotated[
        tuple[_Text, ...],
        Meta(
            description=(
                "Commands, as `pytest tests/test_user.py`; empty only for a step that"
                " changes no files."
            )
        ),
    ]
    serves: Annotated[
        tuple[str | int, ...],
        Meta(description="The criteria that it serves, by number or by words."),
    ]
    removes_tests: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "Existing tests, by id or file, that it removes, skips or weakens."
            )
        ),
    ] = ()
    may_fail: Annotated[
        tuple[MayFailDraft, ...],
        Meta(
            description=(
                "Tests written before their code, or broken until a later step."
            )
        ),
    ] = ()

    def to_step(
        self,
        previous: PlanStep | None = None,
        labels: Mapping[int, str] | None = None,
    ) -> PlanStep:
        """`previous` is the replaced version, whose label and id are kept. `labels`
        maps numbers to labels, if they differ.

        If the draft has no checks or tests to remove, and `previous` says nothing
        either, neither does the step: `none` would forbid what the shell can ask about.
        """
        may_fail = []
        for leave in self.may_fail:
            until = ""
            if leave.until is not None:
                until = (labels or {}).get(leave.until, str(leave.until))
            may_fail += [MayFail(tests, until) for tests in leave.tests]
        checks: tuple[str, ...] | None = self.checks
        if not checks and previous and previous.checks is None:
            checks = None
        removes_tests: tuple[str, ...] | None = self.removes_tests
        if not removes_tests and not (previous and previous.removes_tests == ()):
            removes_tests = None
        return PlanStep(
            number=self.number,
            title=self.title,
            description=self.description,
            complexity=self.complexity,
            estimated_time=self.estimated_time,
            dependencies=self.dependencies,
            files_affected=tuple(file.to_file(previous) for file in self.files),
            checks=checks,
            serves=tuple(map(str, self.serves)),
            removes_tests=removes_tests,
            may_fail=tuple(may_fail),
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
    steps: Annotated[
        tuple[StepDraft, ...],
        Meta(min_length=1, max_length=_MAX_STEPS),
    ]
    risks: Annotated[
        tuple[str, ...],
        Meta(
            description=(
                "What may go wrong, and every assumption that the plan rests on."
            )
        ),
    ]

    def to_plan(
        self, spec: TicketSpec, slug: str, used_ids: Collection[str] = ()
    ) -> ImplementationPlan:
        """Return the plan, whose steps get unused ids."""
        steps = add_ids([step.to_step() for step in self.steps], slug, used_ids)
        return ImplementationPlan(
            ticket_slug=slug,
            ticket_title=spec.title,
            ticket_type=spec.type.value,
            overview=self.overview,
            total_complexity=self.complexity,
            total_estimated_time=self.estimated_time,
            steps=tuple(steps),
            risks=self.risks,
        )


class ChangedStep(StepDraft, frozen=True):
    """The new version of a step, or a new step."""

    after: Annotated[
        int | None,
        Meta(
            description=(
                "Only for a new step: the number of the step that it follows; 0: before"
                " all."
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
                "What was changed and why, in one or two sentences for the user."
            ),
        ),
    ]
    steps: Annotated[
        tuple[ChangedStep, ...],
        Meta(max_length=_MAX_STEPS),
    ] = ()
    removed: Annotated[
        tuple[int, ...], Meta(description="The numbers of the steps to remove.")
    ] = ()
    overview: Annotated[str | None, Meta(description="null: unchanged.")] = None
    complexity: _Complexity | None = None
    estimated_time: str | None = None
    risks: Annotated[
        tuple[str, ...] | None,
        Meta(description="All of them if any changes; null: unchanged."),
    ] = None


def make_basic_plan(
    spec: TicketSpec,
    slug: str,
    *,
    first_number: int = 1,
    served: Collection[int] = (),
    used_ids: Collection[str] = (),
) -> ImplementationPlan:
    """Return a plan with a step for each criterion that is not `served`, to be refined
    by hand.
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
            serves=name_criteria((criterion_number,), spec.acceptance_criteria),
        )
        steps.append(step)
    return ImplementationPlan(
        ticket_slug=slug,
        ticket_title=spec.title,
        ticket_type=spec.type.value,
        overview=(
            f"{BASIC_PLAN_MARK} Give each step its files and its check before you run"
            f" it.\n\n{spec.description}"
        ),
        steps=tuple(add_ids(steps, slug, used_ids)),
        risks=(
            (
                "No step names its files. The model sees none of them until a step"
                " names them."
            ),
        ),
    )


def add_ids(
    steps: Iterable[PlanStep], slug: str, used: Collection[str]
) -> list[PlanStep]:
    """Add unused ids. The same plan always gets the same ids."""
    used_ids = set(used)
    result = []
    for step in steps:
        step_id = _free_id(f"{slug}\n{step.number}\n{step.title}", used_ids)
        used_ids.add(step_id)
        result.append(replace(step, id=step_id))
    return result


def _free_id(text: str, used_ids: Collection[str]) -> str:
    attempt = 0
    step_id = ""
    while not step_id or step_id in used_ids:
        content = f"{text}\n{attempt}".encode("utf-8", "surrogatepass")
        value = int.from_bytes(sha256(content).digest())
        step_id = ""
        for _ in range(_ID_LENGTH):
            value, place = divmod(value, len(_ID_SIGNS))
            step_id += _ID_SIGNS[place]
        attempt += 1
    return step_id
