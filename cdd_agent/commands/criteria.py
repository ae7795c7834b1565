from collections.abc import Iterator

from cdd_agent.engine.criteria import criteria_of
from cdd_agent.engine.strength_summary import StrengthSettings
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.events.stream import Event
from cdd_agent.session.open_project import Project
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.slugs import EnoughOfSlug
from cdd_agent.tickets.store import Ticket


def criteria_events(project: Project, slug: str) -> Iterator[Event]:
    ticket = project.tickets.find(slug, EnoughOfSlug.WORDS)
    yield from criteria_of_ticket(project, ticket)


def criteria_of_ticket(project: Project, ticket: Ticket) -> Iterator[Event]:
    settings = StrengthSettings.from_config(project.config)
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    yield criteria_of(ticket.read_spec(), in_its_tree(ticket), redactor, settings)
