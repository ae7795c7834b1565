"""Words of a spec: in a line, and in full."""

from collections.abc import Iterable, Sequence

from cdd_agent.events.notices import Tone
from cdd_agent.events.ticket_events import CriterionView, SpecOpened, SpecShown
from cdd_agent.wording.registry import Lines, words_of

_FIELD_NAMES = {
    "acceptance_criteria": "criteria",
    "implementation_scope": "scope",
    "technical_notes": "notes",
}


@words_of.register
def describe_spec_shown(event: SpecShown) -> Lines:
    if event.in_full:
        return [(spec_in_full(event), Tone.PLAIN)]
    return [(f"Spec: {spec_in_short(event)}", Tone.QUIET)]


@words_of.register
def describe_spec_opened(event: SpecOpened) -> Lines:
    slug = event.ticket_slug
    heading = f"{slug}: {event.title}" if event.title else slug
    if event.missing:
        what, points = "Missing", event.missing
        them = "it" if len(points) == 1 else "them"
        following = (
            f"Next: write {them} into {event.path}, or let Socrates ask you:"
            f" `/socrates {slug}` in the shell."
        )
    elif event.open_points:
        what, points = "Open", event.open_points
        following = (
            f"Next: answer them with `/socrates {slug}` in the shell, or plan"
            f" without the answers: `/plan {slug}`."
        )
    else:
        following = f"Next: make a plan with `/plan {slug}` in the shell."
        return [
            (heading, Tone.HEADING),
            ("The spec is complete.", Tone.GOOD),
            (following, Tone.PLAIN),
        ]
    return [
        (heading, Tone.HEADING),
        (f"{event.path} is not complete. {what}:", Tone.WARNING),
        *((f"  {line}", Tone.PLAIN) for line in points),
        (following, Tone.PLAIN),
    ]


def spec_in_short(spec: SpecShown) -> str:
    """Return the state of a spec, in a line."""
    parts = []
    count = len(spec.criteria)
    if count:
        parts.append(f"{count} {'criterion' if count == 1 else 'criteria'}")
    unchecked = sum(not item.check for item in spec.criteria)
    if unchecked:
        parts.append(f"{unchecked} without a check")
    asked = len(spec.open_questions)
    if asked:
        parts.append(f"{asked} open question{'s' * (asked != 1)}")
    if spec.missing:
        fields = [line.partition(":")[0] for line in spec.missing]
        parts.append(f"missing: {named_fields(fields)}")
    if spec.not_written:
        parts.append("not written yet")
    if spec.lost:
        parts.append(f"{len(spec.lost)} to be removed or reworded")
    return " · ".join(parts)


def named_fields(names: Iterable[str]) -> str:
    """Return the fields with the names that users know."""
    return ", ".join(_FIELD_NAMES.get(name, name) for name in names)


def spec_in_full(spec: SpecShown) -> str:
    """Return a spec and its open points, as Markdown."""
    title = spec.title or "(no title yet)"
    criteria = "\n".join(map(_criterion, spec.criteria)) or "*(none yet)*"
    parts = [
        (f"## {title}\n\n{spec.ticket_slug} · {spec.type} · priority {spec.priority}"),
        spec.description or "*(no description yet)*",
        f"### Acceptance criteria\n\n{criteria}",
    ]
    parts += [f"### Scope: {area}\n\n{_bullets(items)}" for area, items in spec.scope]
    if spec.technical_notes:
        parts.append(f"### Technical notes\n\n{spec.technical_notes}")
    if spec.missing:
        parts.append(f"### Missing\n\n{_bullets(spec.missing)}")
    if spec.open_questions:
        questions = "\n".join(
            f"{each.number}. {each.text}" for each in spec.open_questions
        )
        parts.append(
            f"### Open questions\n\n{questions}\n\nType `drop 1` to drop question 1."
        )
    if spec.lost:
        lost = _bullets([words.text for words in spec.lost])
        parts.append(f"### To be removed or reworded in spec.yaml\n\n{lost}")
    if spec.not_written:
        parts.append(f"Not in spec.yaml yet: {named_fields(spec.not_written)}.")
    return "\n\n".join(parts)


def _criterion(item: CriterionView) -> str:
    if item.check:
        return f"- {item.text}\n  - *checked by: {item.check}*"
    return f"- {item.text}\n  - *no check yet*"


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
