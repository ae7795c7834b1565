"""The prompt of a step: first what stays the same for the whole run (cacheable), last the step itself."""

import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path, PurePosixPath

from cdd_agent.dialogue.room import Room
from cdd_agent.execution.record import Shown
from cdd_agent.harmless import fenced
from cdd_agent.llm.budget import estimated_tokens
from cdd_agent.llm.port import ContextTooLong, Message, Request
from cdd_agent.tickets.plan import NO_CHECK, ImplementationPlan, PlanStep
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.status import StepStatus
from cdd_agent.workspace.context import repo_tree
from cdd_agent.workspace.files import digest, read_bytes
from cdd_agent.workspace.paths import PathRefused, confine
from cdd_agent.workspace.project_rules import project_rules
from cdd_agent.workspace.reading import holds_secrets

_LARGEST_SHOWN = 200_000
"""Bytes of a file that is shown; a larger one is named, never half shown."""
_MOST_RELATED = 60_000
"""Bytes of the files that are shown because a step is related to them."""
_MARGIN = 200
"""Tokens for the headings of the parts, and for how many files more are left out."""
_UNSEEN = "You have not seen these: do not replace them."
_QUOTED = re.compile(r"`([^`\s]+\.\w+)`")


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
    left_out: tuple[str, ...] = ()
    """What there was no room for, the most important first."""
    notes: tuple[str, ...] = ()
    """What else people should know of how it was made, a sentence each."""

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
    window: int | None = None,
    beside: int = 0,
    own: Collection[str] = (),
    earlier: Earlier | None = None,
    also_show: frozenset[str] = frozenset(),
    guidance: str = "",
) -> Prompt:
    """Build the prompt of one attempt. Reads the project's files as they are now.

    What belongs to the step comes first, then its files, then those that it is related to; a file that does not fit
    under `window`, the tokens that the model takes in, is left out, and named. `beside` of them are for something else.
    `own` are files and folders of this program, which are no part of the project. Raises `ContextTooLong` where not
    even the step itself fits.
    """
    rules = project_rules(root)
    system = _system(rules.section, spec, plan)
    opening, closing = _earlier(plan, state, step), [_step(plan, step), _failed(earlier), _guided(guidance)]
    room = _room(window, beside, [system, opening, *closing])
    if room.is_over and earlier is not None:
        closing[1] = _failed(replace(earlier, reply=""))
        room = _room(window, beside, [system, opening, *closing])
        room.leave_out("the last attempt's reply")
    if room.is_over and rules.text:
        system = _system("", spec, plan)
        without = room.left_out
        room = _room(window, beside, [system, opening, *closing])
        for name in (*without, "the project's rules for agents"):
            room.leave_out(name)
    if room.is_over:
        raise ContextTooLong(
            f"Step {step.number} with its spec and plan has more than the {window:,} tokens that the model takes in.",
            hint="Make them shorter, split the step, or use a model with a larger window.",
        )
    shown = _Files(root, room)
    for path in _wanted(root, plan, state, step, also_show):
        shown.add(path)
    parts = [opening, _tree(root, own, room), shown.text, room.note(_UNSEEN), *closing]
    request = Request((Message("system", system), Message("user", "\n\n".join(part for part in parts if part))))
    identity = Shown(step=step_digest(step, guidance), files=shown.seen)
    return Prompt(request, identity, tuple(room.left_out), (*rules.notes, *shown.notes))


def step_digest(step: PlanStep, guidance: str) -> str:
    """What identifies what a step asks for: a reply to something else is not used for it."""
    asked = (step.number, step.title, step.description, [file.path for file in step.files_affected], step.verify)
    return digest(repr((asked, guidance)).encode("utf-8", "surrogatepass")) or ""


def _system(rules: str, spec: TicketSpec, plan: ImplementationPlan) -> str:
    """What is the same for all steps."""
    return "\n\n".join(filter(None, (_text("rules.md"), rules, _ticket(spec), _overview(plan))))


def size_with_tools() -> int:
    """Tokens that `with_tools` adds to a prompt."""
    return estimated_tokens(_text("tools.md")) + 1


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


def _room(window: int | None, beside: int, texts: Iterable[str]) -> Room:
    return Room(window, _MARGIN + beside + sum(map(estimated_tokens, texts)))


class _Files:
    """The files of a prompt: each whole, or only named."""

    def __init__(self, root: Path, room: Room) -> None:
        self._root, self._room = root, room
        self._parts: list[str] = []
        self.seen: dict[str, str | None] = {}
        self.notes: list[str] = []

    @property
    def text(self) -> str:
        return "# Present files\n\n" + "\n\n".join(self._parts) if self._parts else ""

    def add(self, name: str) -> None:
        try:
            path = str(confine(self._root, name))
        except PathRefused as refusal:
            self._say(f"{refusal.message}.", name)
            return
        if path in self.seen:
            return
        place = self._root / path
        if place.is_dir():
            self._say(f"{path} is a folder.", path)
            return
        data = read_bytes(place)
        text = _as_text(data)
        if data is None:
            self.seen[path] = None
            self._say(f"{path} does not exist yet.", path)
        elif text is None:
            why = f"it has over {_LARGEST_SHOWN:,} bytes" if len(data) > _LARGEST_SHOWN else "it is not UTF-8 text"
            self._say(f"{path} exists and cannot be shown: {why}.", path)
            self.notes.append(f"{path} is not shown to the model: {why}.")
        elif self._say(f"{path}:\n{fenced(text, _language(path))}", f"{path} ({len(data):,} bytes)"):
            self.seen[path] = digest(data)

    def _say(self, part: str, name: str) -> bool:
        """Whether there is room for it."""
        if holds := self._room.holds(part, name):
            self._parts.append(part)
        return holds


def _wanted(
    root: Path, plan: ImplementationPlan, state: ExecutionState, step: PlanStep, also_show: frozenset[str]
) -> list[str]:
    """The files to show, the most important first: those of the step, those that an attempt missed, those of its check,
    and those it is related to: the work of steps that it depends on, and what its description names. What holds secrets
    is shown only as a file of the step or of its check: nobody else but its author says so."""
    own = [file.path for file in step.files_affected]
    missed = (path for path in sorted(also_show) if not _leads_to_secrets(root, path))
    wanted = [*own, *missed, *_checked_files(root, step)]
    before = (state.of(number) for number in step.dependencies)
    related = [path for done in before for path in (*done.files_created, *done.files_modified)]
    related += _QUOTED.findall(step.description)
    size = 0
    for path in related:
        if path in wanted or not _is_file(root, path) or _leads_to_secrets(root, path):
            continue
        size += (root / path).stat().st_size
        if size > _MOST_RELATED:
            break
        wanted.append(path)
    return list(dict.fromkeys(wanted))


def _tree(root: Path, own: Collection[str], room: Room) -> str:
    _, _, inside = repo_tree(root, (".cdd", *own)).partition(
        "\n"
    )  # its own name says nothing, and differs where the run is replayed
    tree = f"# Files of the project\n\n{fenced(inside, 'text')}"
    return tree if room.holds(tree, "the tree of the project's files") else ""


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


def _leads_to_secrets(root: Path, name: str) -> bool:
    """By its own name, or by that of what it is a link to."""
    return holds_secrets(PurePosixPath(name).name) or holds_secrets((root / name).resolve().name)


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
        f"What went wrong:\n\n{fenced(earlier.reason)}"
    ) + (f"\n\nThe reply was:\n\n{fenced(earlier.reply, 'md')}" if earlier.reply else "")


def _guided(guidance: str) -> str:
    return f"# Guidance for this step\n\n{guidance}" if guidance else ""


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
