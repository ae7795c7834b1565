"""Completions of the line in the prompt: commands, tickets, models, words and files,
each with a description.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping

from cdd_agent.agents.mention_completion import complete_choice, complete_mention
from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.commands.registry import commands
from cdd_agent.completion import Completion, CompletionKind, find_matches
from cdd_agent.llm.known_models import known_model, models_of
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.session import Session
from cdd_agent.settings.config import ROLES
from cdd_agent.settings.models import fallbacks_of

_MOST = 50


def complete(
    session: Session, line: str, ask_again: Callable[[], None] = lambda: None
) -> list[Completion]:
    """Return the lines that the typed line can become, the best first. `ask_again` is
    called when there may be more later.
    """
    if not line.startswith("/"):
        return _complete_mention(session, line, ask_again) if "@" in line else []
    name, space, rest = line[1:].partition(" ")
    if not space:
        return _complete_command(name)
    known = commands().get(name)
    if known is None:
        return []
    if groups := known.words():
        return _complete_word(
            groups, [kind.strip("[].").lower() for kind in known.usage.split()], line
        )
    if "+FILE" in known.usage:
        return _complete_choice(session, line, ask_again)
    if " " in rest:
        return _complete_second(session, known.usage, name, rest)
    if "SESSION" in known.usage:
        whole = [Completion(f"/{name} list", "list", "the earlier sessions")]
        return [
            *(whole if "list".startswith(rest) and rest != "list" else ()),
            *_of_ticket(session, f"/{name} ", rest),
        ]
    if "SLUG" in known.usage:
        return _of_ticket(session, f"/{name} ", rest)
    return _of_model(session, f"/{name} ", rest) if "MODEL" in known.usage else []


def _complete_command(typed: str) -> list[Completion]:
    """Return the commands that match a typed name. An exact match comes first."""
    names = find_matches(typed, commands()).best
    offers = []
    for name in sorted(names, key=lambda name: name != typed.lower()):
        known = commands()[name]
        kind = CompletionKind.COMMAND
        if known.needs_argument:
            kind = CompletionKind.OPENING
        shown = f"/{name} {known.required}".rstrip()
        group = CATALOGUE[name].group
        offers.append(Completion(f"/{name}", shown, known.summary, kind, group))
    return offers


def _complete_mention(
    session: Session, line: str, ask_again: Callable[[], None]
) -> list[Completion]:
    session.files.freshen(ask_again)
    return complete_mention(session.files, line)


def _complete_choice(
    session: Session, line: str, ask_again: Callable[[], None]
) -> list[Completion]:
    session.files.freshen(ask_again)
    return complete_choice(session.files, line)


def _complete_word(
    groups: tuple[tuple[str, ...], ...], kinds: list[str], line: str
) -> list[Completion]:
    """Return completions of the last argument, from the groups that the arguments
    before it have not used.
    """
    before, _, last = line.rpartition(" ")
    typed = before.split()[1:]
    left = [
        (group, kind)
        for group, kind in zip(groups, kinds, strict=False)
        if not set(group) & set(typed)
    ]
    # some word before is of no group, or of the same as another
    if len(left) != len(groups) - len(typed):
        return []
    return [
        Completion(f"{before} {word}", word, kind)
        for group, kind in left
        for word in group
        if word.startswith(last) and word != last
    ]


def _complete_second(
    session: Session, usage: str, name: str, rest: str
) -> list[Completion]:
    """Return completions of the second argument: a flag, or the model of a role."""
    first, _, last = rest.partition(" ")
    if " " in last:
        return []
    if "MODEL" in usage and first in ROLES:
        return _of_model(session, f"/{name} {first} ", last)
    switches = [word.strip("[]") for word in usage.split() if word.startswith("[--")]
    wanted = (one for one in switches if last and one.startswith(last) and one != last)
    return [Completion(f"/{name} {first} {one}", one) for one in wanted]


def _of_ticket(session: Session, before: str, typed: str) -> list[Completion]:
    tickets = {ticket.slug: ticket for ticket in session.project.tickets.list()}
    slugs = [slug for slug in find_matches(typed, tickets).good if slug != typed][
        :_MOST
    ]
    return [Completion(before + slug, slug, tickets[slug].summary()) for slug in slugs]


def _of_model(session: Session, before: str, typed: str) -> list[Completion]:
    models = {shlex.quote(name): help_ for name, help_ in find_models(session).items()}
    offered = [*session.offers] if not typed else []
    names = [shlex.quote(offer.name) for offer in offered] or [
        n for n in find_matches(typed, models).good if n != typed
    ]
    return [Completion(before + name, name, models[name]) for name in names[:_MOST]]


def find_models(session: Session) -> Mapping[str, str]:
    """Return the models of local servers, the current model, the fallbacks, and the
    known models of providers whose key is in the environment.
    """
    models = {
        offer.name: f"by {offer.server}, on this computer" for offer in session.offers
    }
    config = session.project.config
    for name in (config.model, *(other.model for other in fallbacks_of(config))):
        if name is not None:
            models.setdefault(
                name, "asked now" if name == config.model else "a fallback"
            )
    for provider, row in PROVIDERS.items():
        if row.needs_key and any(os.environ.get(key, "").strip() for key in row.keys):
            models |= {
                name: known_model(name).in_short
                for name in models_of(provider)
                if name not in models
            }
    return models
