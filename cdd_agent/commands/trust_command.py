"""`/trust` and `cdd trust`: show the settings that need trust, trust them, or revoke
trust.
"""

from collections.abc import Iterator

from cdd_agent.commands.slash_call import WrongUsage
from cdd_agent.commands.trust_words import described
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Event
from cdd_agent.session.open_project import Project, look_at_trust, trust_project
from cdd_agent.trust.rules import ProjectSetting
from cdd_agent.trust.store import TrustStore

_NEXT_START = "Restart an open shell to use them there."


def trust_events(
    project: Project, *, give: bool = False, revoke: bool = False
) -> Iterator[Event]:
    if give and revoke:
        raise WrongUsage("trust [--give] [--revoke]", hint="Choose one of the two.")
    if revoke:
        yield _revoke(project)
        return
    if give:
        settings, untrusted = trust_project(project), list[ProjectSetting]()
    else:
        settings, untrusted = look_at_trust(project)
    if not settings:
        yield Notice(
            "No setting of this project needs your trust.", kind=NoticeKind.TRUST
        )
        return
    yield from _describe_state(project, settings, untrusted)
    if untrusted:
        yield Notice("To trust them, add `--give`.", Tone.QUIET)
    if give:
        yield Notice(_NEXT_START, Tone.QUIET)


def _revoke(project: Project) -> Notice:
    text = "No setting of this project was trusted."
    if TrustStore.open().revoke(project.root):
        text = "The settings of this project are no longer trusted."
    return Notice(text, kind=NoticeKind.TRUST)


def _describe_state(
    project: Project, settings: list[ProjectSetting], untrusted: list[ProjectSetting]
) -> Iterator[Notice]:
    accepted = project.trust.accepted
    trusted = [s for s in settings if s not in untrusted]
    once = [s for s in untrusted if s.digest in accepted]
    left_out = [s for s in untrusted if s.digest not in accepted]
    for title, tone, group in (
        ("These settings of the project are trusted:", Tone.PLAIN, trusted),
        ("These settings are accepted for this run only:", Tone.PLAIN, once),
        (
            "These settings of the project are not trusted and not used:",
            Tone.WARNING,
            left_out,
        ),
    ):
        if group:
            yield Notice(title, tone, kind=NoticeKind.TRUST)
            yield Notice("\n".join(described(group)))
