"""Reads references of a step: labels of steps and names of tests."""

import re
from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.markdown import code_spans
from cdd_agent.tickets.plan import STEP_LABEL, MayFail

_REMARK = Pattern(r"\([^()]*\)")
_NO_STEPS = Pattern(r"(?:none|nothing|no|n/a|-|–|—)\b|[-–—]?$", re.IGNORECASE)
_ALL_STEPS = Pattern(
    r"\ball\b.*\b(?:previous|prior|preceding|earlier|above|before)\b", re.IGNORECASE
)
_PREVIOUS_STEP = Pattern(
    r"(?:the\s+)?(?:previous|prior|preceding)\s+(?:step|task)\b", re.IGNORECASE
)
_LABEL = rf"(?<![\w.])({STEP_LABEL.pattern})(?!\w|\.[0-9])"
_LABELS = Pattern(
    rf"{_LABEL}(?:\s*(?:-|–|—|to|through)\s*(?:(?:steps?|tasks?)\s*)?#?{_LABEL})?",
    re.IGNORECASE,
)
_TITLE = Pattern(rf"((?:step|task)\s*#?{_LABEL})\s*[:–—]\s[^,;]*", re.IGNORECASE)
_REFERENCE = Pattern(rf"\W*(?:(?:steps?|tasks?)\s*#?)?{_LABEL}", re.IGNORECASE)
_NO_TESTS = Pattern(
    r"(?:none|nothing|nil|no|n/a|no tests?|[-–—])[.!]?(?:\s*[(,;–—-].*)?",
    re.IGNORECASE | re.DOTALL,
)
_UNTIL_WORD = Pattern(r"\b(?:until|till)\b", re.IGNORECASE)
_UNTIL = Pattern(
    rf",?\s*\(?\b(?:until|till)\s+(?:step|task)?\s*#?(?P<label>{STEP_LABEL.pattern})"
    r"(?!\w)\s*\)?[.\s]*$",
    re.IGNORECASE,
)


class TestNames(Struct, frozen=True):
    names: tuple[str, ...] = ()
    until: str = ""
    """The label after "until step"."""
    is_none: bool = False

    __test__ = False

    def to_leave(self) -> list[MayFail]:
        return [MayFail(name, self.until) for name in self.names]


def read_dependencies(
    text: str, labels: Sequence[str], earlier: Sequence[str]
) -> list[str] | None:
    """Return the named steps' labels; None if unreadable.

    `labels` are those of all steps, `earlier` of those above.
    """
    value = _TITLE.sub(r"\1", _REMARK.sub("", text)).strip("*_` \t.")
    if _NO_STEPS.match(value):
        return []
    if _ALL_STEPS.search(value):
        return list(earlier)
    if _PREVIOUS_STEP.match(value):
        return list(earlier[-1:])
    named: list[str] = []
    for first, last in _LABELS.findall(value):
        named.append(first)
        if last:
            ends = (_order(first), _order(last))
            named += [label for label in labels if ends[0] < _order(label) < ends[1]]
            named.append(last)
    return named or None


def refers_to_step(text: str) -> bool:
    """True if the text begins with a step's label."""
    return _REFERENCE.match(text) is not None


def read_tests(text: str) -> TestNames | None:
    """Return named tests, files or folders. None if unreadable, or if "until" is not
    last. Names with spaces need backticks.
    """
    text = text.strip()
    if _NO_TESTS.fullmatch(text):
        return TestNames(is_none=True)
    label = ""
    until = _UNTIL.search(text)
    if until:
        label = until["label"]
        text = text[: until.start()]
    spans = code_spans(text)
    for span in reversed(spans):
        text = f"{text[: span.start]},{text[span.end :]}"
    if _UNTIL_WORD.search(text):
        return None
    words = (name.strip("*_ ") for name in re.split(r",|\band\b|;", text))
    plain_names = list(filter(None, words))
    names = [span.text for span in spans]
    if any(re.search(r"\s", name) for name in plain_names):
        # without backticks, a sentence
        plain_names = []
    names += plain_names
    return TestNames(tuple(names), label) if names else None


def _order(label: str) -> list[tuple[int, str]]:
    """Return a sort key: 1, 1b, 1.5, 2."""
    parts = re.findall(r"[0-9]+|[A-Za-z]+", label)
    return [
        (int(part), "") if part.isdigit() else (0, part.casefold()) for part in parts
    ]
