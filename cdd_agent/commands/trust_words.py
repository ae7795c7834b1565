"""The question about settings that need trust, as text."""

from collections.abc import Iterable, Iterator, Mapping

from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.session.open_project import ProjectTrust, TrustAnswer, TrustQuestion
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.trust.rules import ProjectSetting

SHOW = "show the file"
ANSWERS = {
    "t": TrustAnswer.TRUST.value,
    "s": SHOW,
    "c": TrustAnswer.DEFAULTS.value,
}
"""By key."""


def in_lines(question: TrustQuestion) -> Iterator[str]:
    yield heading(question)
    yield from described(question.settings, question.trusted_before)
    if question.note:
        yield question.note


def heading(question: TrustQuestion) -> str:
    return (
        f"{question.root} has settings that need your trust. Trust them"
        " only if you trust its authors."
    )


def described(
    settings: Iterable[ProjectSetting], trusted_before: Mapping[str, str] | None = None
) -> Iterator[str]:
    for setting in settings:
        yield f"{setting.place}: {setting.shown}"
        yield f"    {setting.why}"
        if trusted_before and setting.name in trusted_before:
            yield f"    trusted before: {trusted_before[setting.name]}"


def left_out_in_words(trust: ProjectTrust) -> str:
    """Return the names of ignored settings, as a clause."""
    names = dict.fromkeys(setting.name for setting in trust.left_out)
    return f"not trusted and ignored: {', '.join(names)}"


def leaves_out_model(trust: ProjectTrust) -> bool:
    """True if the project sets a model that is ignored."""
    return any(setting.name == "model" for setting in trust.left_out)


def notices_at_start(trust: ProjectTrust) -> Iterator[Notice]:
    """Yield notices about the project's settings for the start of a shell."""
    if trust.not_stored:
        yield Notice(trust.not_stored, Tone.WARNING, kind=NoticeKind.TRUST)
    if trust.left_out:
        words = left_out_in_words(trust)
        text = (
            f"Some settings of this project are {words}. To review them, type `/trust`."
        )
        yield Notice(text, Tone.WARNING, kind=NoticeKind.TRUST)


def numbered_file(question: TrustQuestion) -> str:
    lines = [f"{PROJECT_FILE.as_posix()}:"]
    for number, line in enumerate(question.text.splitlines(), 1):
        lines.append(f"{number:>5}  {line}")
    return "\n".join(lines)
