"""The prompt of a step: first what stays the same for the whole run (cacheable), last the step itself."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

from cdd_agent.execution.record import Shown
from cdd_agent.harmless import fenced
from cdd_agent.llm.port import Message, Request
from cdd_agent.tickets.plan import NO_CHECK, ImplementationPlan, PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import StepStatus
from cdd_agent.workspace.files import digest, read_bytes
from cdd_agent.workspace.paths import PathRefused, confine

_LARGEST_SHOWN = 200_000
"""Bytes of a file that is shown; a larger one is named, never half shown."""


@dataclass(frozen=True)
class Earlier:
    """What the attempt before this one did, and why that was not good."""

    reason: str
    reply: str


@dataclass(frozen=True)
class Prompt:
    """A request, and what it shows."""

    request: Request
    shown: Shown

    def with_tools(self) -> "Prompt":
        """The same to a model that is offered tools."""
        first, *others = self.request.messages
        told = replace(first, content=f"{first.content}\n\n{_text('tools.md')}")
        return replace(self, request=Request((told, *others)))

    @property
    def text(self) -> str:
        return "\n\n".join(f"<!-- {message.role} -->\n{message.content}" for message in self.request.messages)


def step_prompt(
    root: Path,
    spec: TicketSpec,
    plan: ImplementationPlan,
    state: ExecutionState,
    step: PlanStep,
    *,
    earlier: Earlier | None = None,
    also_show: frozenset[str] = frozenset(),
    guidance: str = "",
) -> Prompt:
    """Build the prompt of one attempt. Reads the affected files, and `also_show`, as they are now."""
    wanted = [file.path for file in step.files_affected]
    extra = sorted(also_show - set(wanted)) + [path for path in _checked_files(root, step) if path not in wanted]
    shown, seen = _present_files(root, list(dict.fromkeys([*wanted, *extra])))
    parts = [_earlier(plan, state, step), shown, _step(plan, step), _failed(earlier), _guided(guidance)]
    request = Request(
        (
            Message("system", f"{_text('rules.md')}\n\n{_ticket(spec)}\n\n{_overview(plan)}"),
            Message("user", "\n\n".join(part for part in parts if part)),
        )
    )
    return Prompt(request, Shown(step=step_digest(step, guidance), files=seen))


def step_digest(step: PlanStep, guidance: str) -> str:
    """What identifies what a step asks for: a reply to something else is not used for it."""
    asked = (step.number, step.title, step.description, [file.path for file in step.files_affected], step.verify)
    return digest(repr((asked, guidance)).encode("utf-8", "surrogatepass")) or ""


def _text(name: str) -> str:
    return files("cdd_agent.execution").joinpath(name).read_text(encoding="utf-8").strip()


def _ticket(spec: TicketSpec) -> str:
    parts = [f"# Ticket: {spec.title} ({spec.type})", spec.description]
    if spec.acceptance_criteria:
        parts.append("## Acceptance criteria\n" + _bullets(spec.acceptance_criteria))
    for area, items in spec.implementation_scope.items():
        parts.append(f"## Scope: {area}\n" + _bullets(items))
    if spec.technical_notes:
        parts.append(f"## Technical notes\n{spec.technical_notes}")
    return "\n\n".join(part for part in parts if part.strip())


def _overview(plan: ImplementationPlan) -> str:
    steps = "\n".join(f"{step.number}. {step.title}" for step in plan.steps)
    risks = "\n\n## Risks\n" + _bullets(plan.risks) if plan.risks else ""
    return f"# Plan\n\n{plan.overview}\n\n{steps}{risks}".replace("\n\n\n", "\n\n")


def _earlier(plan: ImplementationPlan, state: ExecutionState, step: PlanStep) -> str:
    lines = []
    for other in plan.steps:
        done = state.of(other.number)
        if other.number == step.number or not done.status.over:
            continue
        if done.status is StepStatus.SKIPPED:
            what = f"skipped ({done.reason}); its result does not exist"
        else:
            what = ", ".join(
                [f"created {path}" for path in done.files_created]
                + [f"changed {path}" for path in done.files_modified]
                + [f"deleted {path}" for path in done.files_deleted]
            )
        needed = " (this step depends on it)" if other.number in step.dependencies else ""
        lines.append(f"- {other.number}. {other.title}{needed}: {what or 'no files'}")
    return "# What earlier steps did\n\n" + "\n".join(lines) if lines else ""


def _present_files(root: Path, paths: list[str]) -> tuple[str, dict[str, str | None]]:
    seen: dict[str, str | None] = {}
    parts = []
    for name in paths:
        try:
            path = str(confine(root, name))
        except PathRefused as refusal:
            parts.append(f"{refusal.message}.")
            continue
        place = root / path
        if place.is_dir():
            parts.append(f"{path} is a folder.")
            continue
        data = read_bytes(place)
        text = _as_text(data)
        if data is None:
            seen[path] = None
            parts.append(f"{path} does not exist yet.")
        elif text is None:
            parts.append(f"{path} exists and cannot be shown: it is not UTF-8 text, or over {_LARGEST_SHOWN} bytes.")
        else:
            seen[path] = digest(data)
            parts.append(f"{path}:\n{fenced(text, _language(path))}")
    return ("# Present files\n\n" + "\n\n".join(parts) if parts else ""), seen


def _as_text(data: bytes | None) -> str | None:
    if data is None or len(data) > _LARGEST_SHOWN:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _language(path: str) -> str:
    return path.rpartition(".")[2] if "." in path else ""


def _checked_files(root: Path, step: PlanStep) -> list[str]:
    """Files that the step's own check names: its author cannot aim at a test that they cannot read."""
    try:
        words = shlex.split(step.verify or "")
    except ValueError:
        return []
    names = [word.partition("::")[0] for word in words]
    return [name for name in names if not name.startswith("-") and _is_file(root, name)]


def _is_file(root: Path, name: str) -> bool:
    try:
        return (root / confine(root, name)).is_file()
    except PathRefused:
        return False


def _step(plan: ImplementationPlan, step: PlanStep) -> str:
    files_affected = _bullets(f"{file.path} ({file.note})" if file.note else file.path for file in step.files_affected)
    head = f"# Step {step.number} of {len(plan.steps)}: {step.title}\n\n{step.description}"
    check = f"\n\nChecked by: {step.verify}" if step.verify not in (None, NO_CHECK) else ""
    return head + (f"\n\nFiles of this step:\n{files_affected}" if files_affected else "") + check


def _failed(earlier: Earlier | None) -> str:
    if earlier is None:
        return ""
    return (
        "# The last attempt failed\n\nEverything it wrote was taken back, so send every file that this step needs.\n\n"
        f"What went wrong:\n\n{fenced(earlier.reason)}\n\nThe reply was:\n\n{fenced(earlier.reply, 'md')}"
    )


def _guided(guidance: str) -> str:
    return f"# Guidance for this step\n\n{guidance}" if guidance else ""


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
