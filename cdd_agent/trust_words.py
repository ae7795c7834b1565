"""The words of the question about settings that need trust, for all faces."""

from collections.abc import Iterable, Iterator, Mapping

from cdd_agent.config import PROJECT_FILE
from cdd_agent.open_project import TrustAnswer, TrustQuestion
from cdd_agent.trust import Setting

SHOW = "show the file"
ANSWERS = {
    "t": TrustAnswer.TRUST.value,
    "s": SHOW,
    "c": TrustAnswer.DEFAULTS.value,
}
"""By the keys that choose them."""


def in_lines(question: TrustQuestion) -> Iterator[str]:
    """Yield the question: what is asked, and each setting with its effect."""
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
    settings: Iterable[Setting], trusted_before: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the place and the value of each setting, its effect, and the value that
    was trusted before.
    """
    for setting in settings:
        yield f"  {setting.place}: {setting.shown}"
        yield f"      {setting.why}"
        if trusted_before and setting.name in trusted_before:
            yield f"      trusted before: {trusted_before[setting.name]}"


def numbered_file(question: TrustQuestion) -> str:
    """Return the settings file with the numbers of its lines."""
    lines = [f"{PROJECT_FILE.as_posix()}:"]
    for number, line in enumerate(question.text.splitlines(), 1):
        lines.append(f"{number:>5}  {line}")
    return "\n".join(lines)
