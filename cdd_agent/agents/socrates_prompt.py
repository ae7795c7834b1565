"""What Socrates' model is told: first what stays the same for all turns (cacheable), last the spec as it stands."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cdd_agent.agents.notebook import Notebook, bounded, without_json
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.spec_draft import Draft, Proposal
from cdd_agent.dialogue.fitted_prompt import FittedPrompt
from cdd_agent.dialogue.structured import how_to_answer
from cdd_agent.dialogue.token_budget import MARGIN, TokenBudget, for_answers
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.errors import CddError
from cdd_agent.files.read import read_source
from cdd_agent.llm.budget import estimated_prompt, estimated_tokens
from cdd_agent.llm.port import Message, Request
from cdd_agent.project.rules import RULES_FOR_AGENTS, ProjectRules, project_rules
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.related import Related, related_tickets
from cdd_agent.tickets.store import Ticket, TicketStore

BEGIN = "I have opened this ticket. Look around where it is about, then begin with your first questions."
GO_DEEPER = "The spec is complete. Look for what it does not say yet, or leaves to chance, and ask about that."
GO_ON = "Go on."
TOOL_ANSWERS = "what the tools showed in this turn"
"""Their name where a prompt had no room for them."""
_LONGEST_LISTING = 5_000


_MOST_HISTORY = 60_000
"""Characters of earlier turns that a model gets to see; what came of all of them is in the draft."""


@dataclass(frozen=True)
class Surroundings:
    """What there is around a ticket; looked up anew for each turn."""

    rules: ProjectRules
    related: Sequence[Related]
    listing: str

    @classmethod
    def of(cls, ticket: Ticket, tickets: TicketStore) -> "Surroundings":
        rules, related = project_rules(ticket.root), related_tickets(ticket, tickets.list())
        return cls(rules, related, _listing(ticket.root))


def packed(root: Path, slug: str, around: Surroundings, notebook: Notebook, dialogue: Dialogue) -> FittedPrompt:
    """The request of a turn: the spec and what the person says in any case, of all else what there is room for.

    Raises `BadInput` for a prompt of the project's own that cannot be used.
    """
    kind, window = notebook.draft.spec.type, dialogue.model.window
    own, ticket = load_prompt(root, "socrates"), f"# The ticket\n\n`{slug}`, a {kind}."
    first, *others = notebook.under_way
    first = replace(first, content=with_draft(first.content, notebook.draft))

    def needed() -> int:
        said = replace(dialogue, tools=()).size((Message("system", f"{own}\n\n{ticket}"), first, *others))
        return said + estimated_tokens(how_to_answer(Proposal)) + MARGIN

    room = TokenBudget(window, needed())
    if room.is_over and len(others) >= len(notebook.said):
        others = list(notebook.asked[1:])
        room = TokenBudget(window, needed())
        room.leave_out(TOOL_ANSWERS)

    of_type = room.part(load_prompt(root, f"socrates-{kind}"), f"what to find out for a {kind}")
    *older, last = [(), *_turns(notebook.history)]
    last = _fitting(last, room)
    equipped = dialogue.with_tools_that_fit(room, for_answers(window))
    rules = room.part(around.rules.section, RULES_FOR_AGENTS)
    listing = room.part(
        f"# At the top of the project\n\n{fenced(around.listing)}", "the files at the top of the project"
    )
    related = room.part(_titles(around.related), "tickets that may be about something near")
    history = (*_latest(older, room), *last)
    parts = (own, of_type, rules, listing, related, ticket, room.note())
    system = Message("system", "\n\n".join(filter(None, parts)))
    return FittedPrompt(equipped, (system, *history, first, *others), tuple(room.left_out))


Exchange = tuple[Message, ...]
"""What a person said, and the model's answer to it."""


def _turns(history: Sequence[Message]) -> list[Exchange]:
    messages = bounded(history, _MOST_HISTORY)
    return list(zip(messages[::2], messages[1::2], strict=True))


def _fitting(last: Exchange, room: TokenBudget) -> Exchange:
    """The turn before this one; where there is no room for it, without its data, which the draft has as well."""
    if not last or room.takes(_size(last)):
        return last
    asked, answer = last
    brief = (asked, Message("assistant", without_json(answer.content) or "…"))
    if room.takes(_size(brief)):
        return brief
    room.leave_out("the turn before this one")
    return ()


def _latest(turns: Sequence[Exchange], room: TokenBudget) -> Exchange:
    kept: Exchange = ()
    for turn in reversed(turns):
        if not room.takes(_size(turn)):
            room.leave_out("earlier turns")
            break
        kept = (*turn, *kept)
    return kept


def _size(messages: Exchange) -> int:
    return estimated_prompt(Request(messages))


def _titles(related: Sequence[Related]) -> str:
    titles = "\n".join(f"- `{ticket.slug}`: {ticket.title or '(no title)'}" for ticket in related)
    return f"# Other tickets that may be about something near\n\n{titles}" if titles else ""


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
