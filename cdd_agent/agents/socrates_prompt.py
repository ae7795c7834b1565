"""The prompt of Socrates. Parts that stay equal come first, so that providers can cache
them; the current spec comes last.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.agents.added_lines import ADDED_LINES
from cdd_agent.agents.compaction import LONGEST_LINE, shorten
from cdd_agent.agents.prompt_files import load_prompt
from cdd_agent.agents.spec_draft import Draft
from cdd_agent.agents.spec_notes import without_data
from cdd_agent.agents.spec_proposal import Proposal
from cdd_agent.context.finder import CodeFinder, in_words
from cdd_agent.context.query import Query
from cdd_agent.dialogue.fitted_prompt import FittedPrompt, PromptPart, fit
from cdd_agent.dialogue.structured import describe_form
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.errors import CddError
from cdd_agent.files.read import read_source
from cdd_agent.llm.port import Message
from cdd_agent.llm.token_estimates import estimate_tokens
from cdd_agent.project.rules import RULES_FOR_AGENTS, ProjectRules, project_rules
from cdd_agent.text.sanitize import fenced
from cdd_agent.tickets.related import Related, related_tickets
from cdd_agent.tickets.spec_prompt import render_unknown_keys
from cdd_agent.tickets.store import Ticket, TicketStore

TOOL_ANSWERS = "what the tools showed in this turn"
"""Its name in the notice that it did not fit."""
PLACES = "Places in the code that the ticket may be about"
_MOST_FILES = 8
_LONGEST_LISTING, _CUT = 5_000, "… (cut; list_files shows more)"


_MOST_HISTORY = 60_000
"""Maximum characters of earlier turns. Their results are in the draft."""


class Surroundings(Struct, frozen=True):
    """The project around a ticket, read for each turn."""

    rules: ProjectRules
    related: Sequence[Related]
    listing: str
    code: str = ""

    @classmethod
    def find(
        cls, ticket: Ticket, tickets: TicketStore, code: CodeFinder | None, about: str
    ) -> "Surroundings":
        """Read the project around a ticket. `about` is the text to search code for."""
        rules = project_rules(ticket.root)
        places = ""
        if code is not None and about.strip():
            query = Query(about, without=rules.paths)
            places = in_words(ticket.root, code.rank(query, most=_MOST_FILES))
        related = related_tickets(ticket, tickets.list())
        return cls(rules, related, _list_files(ticket.root), places)


def _list_files(root: Path) -> str:
    try:
        listing = read_source(root, ".").as_text()
    except CddError as error:
        return f"({error.message})"
    if len(listing) > _LONGEST_LISTING:
        return f"{listing[:_LONGEST_LISTING]}\n{_CUT}"
    return listing


class TurnMessages(Struct, frozen=True):
    history: tuple[Message, ...]
    under_way: tuple[Message, ...]
    """The messages of this turn; the first is the user's."""
    by_user: tuple[Message, ...]


def make_prompt(
    ticket: Ticket,
    around: Surroundings,
    draft: Draft,
    messages: TurnMessages,
    dialogue: Dialogue,
) -> FittedPrompt:
    """Make the prompt of a turn: the spec and the user's words, and whatever else fits.

    Raises `BadInput` for an unusable project's prompt.
    """
    root = ticket.root
    kind = draft.spec.type
    last = messages.history[-2:]
    older, *shorter = shorten_history(messages.history[:-2], _MOST_HISTORY)
    begun, *others = messages.under_way
    first = replace(begun, content=with_draft(begun.content, draft))
    without_results = []
    if messages.by_user != messages.under_way:
        without_results = [(first, *messages.by_user[1:])]
    titles = "\n".join(
        f"- `{other.slug}`: {other.title or '(no title)'}" for other in around.related
    )
    near = "tickets that may be about something near"
    parts = (
        PromptPart(load_prompt(root, "socrates")),
        PromptPart(
            load_prompt(root, f"socrates-{kind}"),
            f"what to find out for a {kind}",
            rank=1,
        ),
        PromptPart(around.rules.section, RULES_FOR_AGENTS, rank=3),
        PromptPart(
            f"# At the top of the project\n\n{fenced(around.listing)}",
            "the files at the top of the project",
            rank=4,
        ),
        PromptPart(around.code and f"# {PLACES}\n\n{around.code}", PLACES, rank=5),
        PromptPart(titles and f"# Other {near}\n\n{titles}", near, rank=5),
        PromptPart(f"# The ticket\n\n`{ticket.slug}`, a {kind}."),
        PromptPart(
            older,
            "earlier turns",
            rank=6,
            smaller=shorter,
        ),
        PromptPart(
            last,
            "the turn before this one",
            rank=2,
            brief=(*last[:1], *map(without_data, last[1:])),
        ),
        PromptPart(
            (first, *others),
            TOOL_ANSWERS,
            smaller=without_results,
        ),
    )
    return fit(
        dialogue, parts, tools=3, reserved=estimate_tokens(describe_form(Proposal))
    )


def shorten_history(turns: Sequence[Message], most: int) -> list[tuple[Message, ...]]:
    """Return versions of earlier turns with at most `most` characters, the longest
    first. Shorter ones keep only the user's lines of the oldest turns; the shortest
    ones also drop the oldest lines.

    Answers lose their data, which the draft contains.
    """
    lines: list[Message | None] = []
    plain: list[Message] = []
    for message in turns:
        if message.role == "assistant":
            plain.append(without_data(message))
        else:
            plain.append(message)
        if message.role == "user" and message.content not in ADDED_LINES:
            lines.append(Message("user", shorten(message.content, LONGEST_LINE)))
        else:
            lines.append(None)
    versions: list[tuple[Message, ...]] = []
    for start in range(0, len(plain), 2):
        remaining = [line for line in lines[:start] if line is not None]
        versions.append((*remaining, *plain[start:]))
    remaining = [line for line in lines if line is not None]
    for start in range(len(remaining) + 1):
        versions.append(tuple(remaining[start:]))
    fitting = []
    for version in versions:
        if sum(len(message.content) for message in version) <= most:
            fitting.append(version)
    return fitting


def with_draft(text: str, draft: Draft) -> str:
    """Return the user's text after the current spec."""
    shown = draft.shown("")
    is_only_placeholders = not draft.real_criteria
    criteria = () if is_only_placeholders else draft.criteria.present
    fields = {
        "title": shown.title,
        "priority": shown.priority,
        "description": shown.description,
        "acceptance_criteria": [
            _without_empty({"id": item.id, "text": item.line.text, "check": item.check})
            for item in criteria
        ],
        "implementation_scope": [
            _without_empty(
                {"id": item.id, "area": item.line.area, "text": item.line.text}
            )
            for item in draft.scope.present
        ],
        "technical_notes": shown.technical_notes,
        "open_questions": [
            {"id": question.id, "text": question.text} for question in draft.questions
        ],
        "not_to_be_asked_again": list(draft.dropped_questions),
        "facts": list(draft.facts),
    }
    state = json.dumps(_without_empty(fields), ensure_ascii=False, indent=1)
    missing = "\n".join(f"- {line}" for line in shown.missing) or "- nothing"
    parts = (
        f"# The spec as it stands\n\n{fenced(state, 'json')}",
        render_unknown_keys(draft.spec),
        f"Missing:\n{missing}",
        f"# The person says\n\n{text}",
    )
    return "\n\n".join(filter(None, parts))


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
