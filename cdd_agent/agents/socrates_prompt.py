"""What Socrates' model is told: first what stays the same for all turns (cacheable), last the spec as it stands."""

import json
from collections.abc import Sequence
from pathlib import Path

from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.spec_draft import Draft
from cdd_agent.errors import CddError
from cdd_agent.harmless import fenced
from cdd_agent.llm.port import Message
from cdd_agent.tickets.related import Related
from cdd_agent.tickets.spec import TicketType
from cdd_agent.workspace.project_rules import ProjectRules
from cdd_agent.workspace.reading import read_source

BEGIN = "I have opened this ticket. Look around where it is about, then begin with your first questions."
GO_DEEPER = "The spec is complete. Look for what it does not say yet, or leaves to chance, and ask about that."
GO_ON = "Go on."
_LONGEST_LISTING = 5_000


def system_message(root: Path, slug: str, kind: TicketType, rules: ProjectRules, related: Sequence[Related]) -> Message:
    """Raises `BadInput` for a prompt of the project's own that cannot be used."""
    parts = [load_prompt(root, "socrates"), load_prompt(root, f"socrates-{kind}")]
    if rules.section:
        parts.append(rules.section)
    parts.append(f"# At the top of the project\n\n{fenced(_listing(root))}")
    if related:
        titles = "\n".join(f"- `{ticket.slug}`: {ticket.title or '(no title)'}" for ticket in related)
        parts.append(f"# Other tickets that may be about something near\n\n{titles}")
    parts.append(f"# The ticket\n\n`{slug}`, a {kind}.")
    return Message("system", "\n\n".join(parts))


def with_draft(said: str, draft: Draft) -> str:
    """A person's words with the spec as it stands before them."""
    spec, shown = draft.spec, draft.shown("")
    fields = {
        "title": shown.title,
        "priority": spec.priority,
        "description": shown.description,
        "acceptance_criteria": [{"text": item.text, "check": item.check} for item in shown.criteria],
        "implementation_scope": {area: list(items) for area, items in shown.scope},
        "technical_notes": shown.technical_notes,
        "open_questions": list(draft.open_questions),
        "facts": list(draft.facts),
    }
    present = {name: value for name, value in fields.items() if value}
    state = fenced(json.dumps(present, ensure_ascii=False, indent=1), "json")
    missing = "\n".join(f"- {line}" for line in shown.missing) or "- nothing"
    return f"# The spec as it stands\n\n{state}\n\nMissing:\n{missing}\n\n# The person says\n\n{said}"


def _listing(root: Path) -> str:
    try:
        text = read_source(root, ".").as_text()
    except CddError as error:
        return f"({error.message})"
    if len(text) <= _LONGEST_LISTING:
        return text
    return f"{text[:_LONGEST_LISTING]}\n… (cut; list_files shows more)"
