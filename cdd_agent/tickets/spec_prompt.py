"""A spec in the prompts of all agents."""

from collections.abc import Iterable

from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.values.guarded_yaml import format_tree


def render_spec(spec: TicketSpec) -> str:
    """Return the spec as Markdown with numbered criteria."""
    kind = f"{spec.type}, priority {spec.priority}"
    parts = [f"# Ticket: {spec.title} ({kind})", spec.description]
    if spec.acceptance_criteria:
        criteria = [
            f"{number}. {_indent(text)}"
            for number, text in enumerate(spec.acceptance_criteria, 1)
        ]
        parts.append("## Acceptance criteria\n" + "\n".join(criteria))
    for area, items in spec.implementation_scope.items():
        parts.append(f"## Scope: {area}\n{_bullets(items)}")
    if spec.technical_notes:
        parts.append(f"## Technical notes\n{spec.technical_notes}")
    parts.append(render_unknown_keys(spec))
    return "\n\n".join(part for part in parts if part.strip())


def render_unknown_keys(spec: TicketSpec) -> str:
    """Return unknown keys and their values as written; empty without any."""
    if not spec.extra:
        return ""
    return f"## Also in the spec\n{format_tree(dict(spec.extra))}"


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {_indent(item)}" for item in items)


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")
