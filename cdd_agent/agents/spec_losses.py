"""Text that a change of a spec would remove, and the change as a diff."""

import difflib
from collections import Counter
from collections.abc import Iterator

from cdd_agent.events.ticket_events import SpecWords
from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import fenced
from cdd_agent.tickets.placeholders import is_placeholder
from cdd_agent.tickets.spec import TicketSpec

ONE_LINE_FIELDS = ("title", "priority")
"""Fields with one line, which a change always replaces."""
_SENTENCE_END = Pattern(r"(?<=[.!?…])\s+|(?<=[。！？])")
_LINE_OF_ITS_OWN = Pattern(
    r"\s{2,}|\t|[-*+•]\s|[0-9]{1,9}[.)]\s|[#>|]|[\w '’/-]{1,40}:(?:\s|$)"
)
"""A line outside of paragraphs: a list item, a heading, `Expected: …`."""
_FENCE = Pattern(r"\s*(?:```|~~~)")


def lost_words(before: TicketSpec, after: TicketSpec) -> tuple[SpecWords, ...]:
    """Return the sentences and items of `before` that are not in `after`, in whatever
    order. Placeholders do not count, such as a template's `<what is wanted>`; `TODO` or
    `[see the design]` counts if its field has other text.
    """
    lost = Counter(_words(before)) - Counter(_words(after))
    written_fields = {
        each.field for each in _words(before) if not is_placeholder(each.text)
    }
    areas = [area for area, items in after.implementation_scope.items() if items]
    real = []
    for words in lost.elements():
        is_filled = words.text in [f"{area}:" for area in areas]
        if words.field == "implementation_scope" and is_filled:
            continue
        is_template = is_placeholder(words.text) and (
            words.field not in written_fields or "<" in words.text
        )
        if not is_template:
            real.append(words)
    return tuple(real)


def spec_diff(before: TicketSpec, after: TicketSpec) -> str:
    """Return the difference as a Markdown block: for each changed field, the removed
    and added sentences and items.
    """
    lines: list[str] = []
    old, new = _lines_by_field(before), _lines_by_field(after)
    for name in dict.fromkeys([*old, *new]):
        changed = _changed_lines(old.get(name, []), new.get(name, []))
        if changed:
            lines += [f" {name}:", *changed]
    return fenced("\n".join(lines) or "No differences.", "diff")


def _changed_lines(before: list[str], after: list[str]) -> list[str]:
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))
    # The first two lines name files, and `@@` names line numbers.
    return [line for line in lines[2:] if not line.startswith("@@")]


def _lines_by_field(spec: TicketSpec) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {}
    for words in _words(spec):
        lines.setdefault(words.field, []).extend(_line(words).splitlines())
    return lines


def _line(words: SpecWords) -> str:
    text = words.text.replace("\n", "\n    ")
    is_item = words.field in ("acceptance_criteria", "implementation_scope")
    return f"  - {text}" if is_item else f"  {text}"


def _words(spec: TicketSpec) -> Iterator[SpecWords]:
    for name in ONE_LINE_FIELDS:
        if getattr(spec, name):
            yield SpecWords(name, getattr(spec, name))
    for sentence in sentences(spec.description):
        yield SpecWords("description", sentence)
    for text in spec.acceptance_criteria:
        yield SpecWords("acceptance_criteria", text)
    for area, items in spec.implementation_scope.items():
        for item in items or ("",):
            yield SpecWords("implementation_scope", f"{area}: {item}".rstrip())
    for sentence in sentences(spec.technical_notes):
        yield SpecWords("technical_notes", sentence)


def sentences(text: str) -> list[str]:
    """Split Markdown into the sentences of paragraphs, and other lines. Line breaks
    inside a paragraph make no difference.
    """
    texts: list[str] = []
    paragraph: list[str] = []
    is_code = False
    # The blank line closes the last paragraph.
    for line in [*text.splitlines(), ""]:
        is_fence = _FENCE.match(line) is not None
        is_whole = is_code or is_fence or _LINE_OF_ITS_OWN.match(line) is not None
        if is_whole or not line.strip():
            joined = " ".join(" ".join(paragraph).split())
            texts += filter(None, _SENTENCE_END.split(joined))
            paragraph = []
        if is_code or is_fence:
            texts += filter(None, [line.rstrip()])
        elif is_whole:
            texts += filter(None, _SENTENCE_END.split(line.rstrip()))
        elif line.strip():
            paragraph.append(line)
        if is_fence:
            is_code = not is_code
    return texts
