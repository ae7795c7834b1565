"""`/trust` and `cdd trust`: show the project's settings that need the user's trust,
trust them, or take that back.
"""

from collections.abc import Iterator

from cdd_agent.commands.registry import WrongUsage
from cdd_agent.events import About, Event, Notice, Tone
from cdd_agent.open_project import Project, look_at_trust, trust_project
from cdd_agent.trust_store import TrustStore
from cdd_agent.trust_words import described

_NEXT_START = "A shell that is open uses them from its next start on."


def trust_events(
    project: Project, *, give: bool = False, revoke: bool = False
) -> Iterator[Event]:
    """Show the project's settings that need your trust; `--give` trusts them,
    `--revoke` takes that back.
    """
    if give and revoke:
        raise WrongUsage("trust [--give] [--revoke]", hint="Choose one of the two.")
    if revoke:
        revoked = TrustStore.open().revoke(project.root)
        text = "The settings of this project are not trusted any more."
        if not revoked:
            text = "No setting of this project was trusted."
        yield Notice(text, about=About.TRUST)
        return
    settings, untrusted = look_at_trust(project)
    if not settings:
        yield Notice("No setting of this project needs your trust.", about=About.TRUST)
        return
    if give:
        settings, untrusted = trust_project(project), []
    trusted = [setting for setting in settings if setting not in untrusted]
    if trusted:
        yield Notice("These settings of the project are trusted:", about=About.TRUST)
        yield Notice("\n".join(described(trusted)))
    if untrusted:
        yield Notice(
            "These settings of the project are not trusted, and are left out:",
            Tone.WARNING,
            about=About.TRUST,
        )
        yield Notice("\n".join(described(untrusted)))
        yield Notice("`--give` after this command trusts them.", Tone.QUIET)
    if give:
        yield Notice(_NEXT_START, Tone.QUIET)
