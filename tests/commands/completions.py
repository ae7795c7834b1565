"""Completions of a line, as the lines that it can become."""

from cdd_agent.commands.completing import complete
from cdd_agent.session.session import Session


def completions(session: Session, line: str) -> list[str]:
    return [offer.line for offer in complete(session, line)]
