"""Completes the line in the prompt: commands, tickets, models, words and files, as
declared by the commands.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence

from cdd_agent.agents.mention_completion import complete_choice, complete_mention
from cdd_agent.commands.declaration import Command, Parameter, ValueKind, load_address
from cdd_agent.commands.registry import commands
from cdd_agent.llm.known_models import known_model, models_of
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.session.session import Session
from cdd_agent.settings.config import ROLES
from cdd_agent.settings.models import fallbacks_of
from cdd_agent.text.completion import Completion, CompletionKind, find_matches

_MOST = 50


def complete(
    session: Session | None, line: str, ask_again: Callable[[], None] = lambda: None
) -> list[Completion]:
    """Return the completions of a line, the best first. `ask_again` is called when more
    are available. Without a session, only commands, flags and fixed words are
    completed.
    """
    if not line.startswith("/"):
        if session is None or "@" not in line:
            return []
        session.files.freshen(ask_again)
        return complete_mention(session.files, line)
    name, space, _ = line[1:].partition(" ")
    if not space:
        return _complete_name(name)
    command = commands().get(name)
    if command is None:
        return []
    stem, _, last = line.rpartition(" ")
    if last.startswith("-") and command.flags:
        return _complete_flag(command, stem, last)
    offered = [each for each in command.arguments if each.offers]
    if offered:
        return _complete_word(offered, stem, last)
    if session is None:
        return []
    return _complete_value(session, command, line, ask_again)


def _complete_name(typed: str) -> list[Completion]:
    """Return the commands that match a typed name. An exact match comes first."""
    names = find_matches(typed, commands()).best
    offers = []
    for name in sorted(names, key=lambda name: name != typed.lower()):
        command = commands()[name]
        kind = CompletionKind.OPENING if command.required else CompletionKind.COMMAND
        shown = f"/{name} {command.required}".rstrip()
        offers.append(
            Completion(f"/{name}", shown, command.summary, kind, command.group)
        )
    return offers


def _complete_flag(command: Command, stem: str, typed: str) -> list[Completion]:
    used_words = stem.split()
    offers = []
    for name, flag in command.flags.items():
        if name.startswith(typed) and name != typed and name not in used_words:
            offers.append(Completion(f"{stem} {name}", name, flag.note))
    return offers


def _complete_word(
    parameters: Sequence[Parameter], stem: str, typed: str
) -> list[Completion]:
    """Complete the last argument with the words of parameters. Each parameter is given
    once, in any order.
    """
    used_words = [word for word in stem.split()[1:] if not word.startswith("--")]
    remaining = []
    for parameter in parameters:
        words = _load_words(parameter)
        if not set(words) & set(used_words):
            remaining.append((parameter, words))
    # A given word belongs to no parameter, or two belong to the same.
    if len(remaining) != len(parameters) - len(used_words):
        return []
    return [
        Completion(f"{stem} {word}", word, parameter.value_name.lower())
        for parameter, words in remaining
        for word in words
        if word.startswith(typed) and word != typed
    ]


def _load_words(parameter: Parameter) -> tuple[str, ...]:
    offers = load_address(parameter.offers)
    words: tuple[str, ...] = offers() if callable(offers) else offers
    return words


def _complete_value(
    session: Session, command: Command, line: str, ask_again: Callable[[], None]
) -> list[Completion]:
    stem, _, typed = line.rpartition(" ")
    used_words = stem.split()[1:]
    kinds = {each.kind for each in command.arguments}
    if ValueKind.PIN in kinds:
        session.files.freshen(ask_again)
        return complete_choice(session.files, line)
    if ValueKind.MODEL in kinds and (
        not used_words or (len(used_words) == 1 and used_words[0] in ROLES)
    ):
        return _complete_model(session, f"{stem} ", typed)
    if used_words:
        return []
    if ValueKind.SESSION in kinds:
        offers = _complete_ticket(session, f"{stem} ", typed)
        if "list".startswith(typed) and typed != "list":
            offers.insert(0, Completion(f"{stem} list", "list", "the earlier sessions"))
        return offers
    if ValueKind.TICKET in kinds:
        return _complete_ticket(session, f"{stem} ", typed)
    return []


def _complete_ticket(session: Session, stem: str, typed: str) -> list[Completion]:
    tickets = {ticket.slug: ticket for ticket in session.project.tickets.list()}
    slugs = [slug for slug in find_matches(typed, tickets).good if slug != typed]
    return [
        Completion(stem + slug, slug, tickets[slug].summary()) for slug in slugs[:_MOST]
    ]


def _complete_model(session: Session, stem: str, typed: str) -> list[Completion]:
    models = {shlex.quote(name): help_ for name, help_ in find_models(session).items()}
    names = []
    if not typed:
        names = [shlex.quote(offer.name) for offer in session.offers]
    if not names:
        names = [name for name in find_matches(typed, models).good if name != typed]
    return [Completion(stem + name, name, models[name]) for name in names[:_MOST]]


def find_models(session: Session) -> Mapping[str, str]:
    """Return the models of local servers, the current model, the fallbacks, and known
    models of providers whose key is in the environment.
    """
    models = {
        offer.name: f"by {offer.server}, on this computer" for offer in session.offers
    }
    config = session.project.config
    if config.model is not None:
        models.setdefault(config.model, "asked now")
    for fallback in fallbacks_of(config):
        if fallback.model is not None:
            models.setdefault(fallback.model, "a fallback")
    for provider, row in PROVIDERS.items():
        has_key = any(os.environ.get(key, "").strip() for key in row.keys)
        if row.needs_key and has_key:
            for name in models_of(provider):
                models.setdefault(name, known_model(name).in_short)
    return models
