"""A ticket's spec.yaml, in its current form and those of earlier tools."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Self

import yaml
from msgspec import Struct, field

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.placeholders import is_placeholder
from cdd_agent.tickets.plan import normalise
from cdd_agent.tickets.writable_text import one_line, plain_text
from cdd_agent.values.guarded_yaml import (
    Tree,
    YamlEntry,
    describe_kind,
    format_tree,
    list_texts,
    read_mapping,
)
from cdd_agent.values.yaml_remedies import quotes_advice

FIELDS = (
    "title",
    "type",
    "priority",
    "description",
    "acceptance_criteria",
    "implementation_scope",
    "technical_notes",
)
"""Keys of a spec, in writing order."""
DEFAULT_PRIORITY = "medium"


class SpecEmpty(BadInput):
    """The file is empty or has only comments."""

    refusal = Refusal.SPEC_UNUSABLE


class TicketType(StrEnum):
    """The kind of work; also the first word of a slug."""

    FEATURE = "feature"
    BUG = "bug"
    ENHANCEMENT = "enhancement"
    SPIKE = "spike"
    REFACTOR = "refactor"

    @classmethod
    def from_slug(cls, slug: str) -> Self:
        word = slug.partition("-")[0]
        return cls(word) if word in set(cls) else cls("feature")


class TicketSpec(Struct, frozen=True):
    """The request of a ticket. `from_yaml(spec.to_yaml()) == spec`, without
    comments.
    """

    title: str = ""
    type: TicketType = TicketType.FEATURE
    description: str = ""
    acceptance_criteria: tuple[str, ...] = ()
    implementation_scope: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    technical_notes: str = ""
    priority: str = DEFAULT_PRIORITY
    extra: Mapping[str, Tree] = field(default_factory=dict)
    """Unknown keys and values, as the user wrote them."""

    def __post_init__(self) -> None:
        normalise(
            self,
            title=one_line(self.title),
            type=TicketType(self.type),
            description=plain_text(self.description),
            acceptance_criteria=_clean_items(self.acceptance_criteria),
            implementation_scope=_clean_scope(self.implementation_scope),
            technical_notes=plain_text(self.technical_notes),
            priority=one_line(self.priority) or DEFAULT_PRIORITY,
        )

    @classmethod
    def from_yaml(cls, text: str, source: str = "spec.yaml", *, slug: str = "") -> Self:
        """The type defaults to the first word of `slug`. Raises `BadInput` with file
        and line.
        """
        entries = read_mapping(text, source, "a spec")
        if not entries:
            raise SpecEmpty(
                f"{source}: the file is empty.",
                hint="Write at least a title and a description.",
            )
        _lift_ticket(entries, source)
        return cls(
            title=_pop_line(entries, "title", source, text),
            type=_pop_type(entries, source, slug),
            description=_pop_description(entries),
            acceptance_criteria=_pop_criteria(entries),
            implementation_scope=_pop_scope(entries),
            technical_notes=_pop_text(entries, "technical_notes"),
            priority=_pop_line(entries, "priority", source, text),
            extra=_read_unknown_keys(entries, source),
        )

    def fields(self) -> dict[str, Any]:
        """Return `FIELDS` as plain YAML values."""
        scope = {area: list(items) for area, items in self.implementation_scope.items()}
        plain = {
            "type": self.type.value,
            "acceptance_criteria": list(self.acceptance_criteria),
            "implementation_scope": scope,
        }
        return {name: plain.get(name, getattr(self, name)) for name in FIELDS}

    def to_yaml(self) -> str:
        return dump_yaml(self.fields() | dict(self.extra))

    @property
    def has_title(self) -> bool:
        return not is_placeholder(self.title)

    @property
    def is_blank(self) -> bool:
        """True if there is only a title, which a new ticket gets from its name."""
        missing = len(self.missing()) - (not self.has_title)
        return missing == 2 and not self.extra

    def missing(self) -> list[str]:
        """Return why the spec is incomplete. Template placeholders are no answers."""
        reasons = []
        if not self.has_title:
            reasons.append("title: one line that says what is wanted")
        if is_placeholder(self.description):
            reasons.append("description: what is wanted, and why")
        if all(map(is_placeholder, self.acceptance_criteria)):
            reasons.append(
                "acceptance_criteria: at least one thing to check when the work is done"
            )
        return reasons


# Reading


def _clean_items(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(plain_text, items)))


def _clean_scope(scope: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Put each area's name on one line, and merge equal names."""
    clean: dict[str, tuple[str, ...]] = {}
    for area, items in scope.items():
        name = one_line(area)
        clean[name] = (*clean.get(name, ()), *_clean_items(items))
    return clean


def _lift_ticket(entries: dict[object, YamlEntry], source: str) -> None:
    """Move title, type and priority up from `ticket:`, where earlier tools wrote them.
    Top keys win.
    """
    ticket = entries.get("ticket")
    if ticket is None or not isinstance(ticket.tree, dict):
        return
    inner = ticket.entries(source)
    lifted: set[str] = set()
    for name in ("title", "type", "priority"):
        if name in inner and (
            name not in entries or not format_tree(entries[name].tree)
        ):
            entries[name] = inner[name]
            lifted.add(name)
    rest = ticket.without(lifted)
    if rest is None:
        del entries["ticket"]
    else:
        entries["ticket"] = rest


def _read_unknown_keys(
    entries: Mapping[object, YamlEntry], source: str
) -> dict[str, Tree]:
    """Return the remaining keys. `1.10` and `no` stay as written."""
    unknown: dict[str, Tree] = {}
    for key, entry in entries.items():
        name = str(entry.key.value) if entry.key else str(key)
        if name in unknown:
            raise BadInput(
                f"{entry.at(source)}: the key {name} appears twice.",
                refusal=Refusal.SPEC_UNUSABLE,
            )
        unknown[name] = entry.tree
    return unknown


def _pop_text(entries: dict[object, YamlEntry], name: object) -> str:
    entry = entries.pop(name, None)
    return format_tree(entry.tree) if entry else ""


def _pop_line(
    entries: dict[object, YamlEntry], name: str, source: str, text: str
) -> str:
    entry = entries.get(name)
    if entry and not isinstance(entry.tree, str):
        start, end = entry.node.start_mark.index, entry.node.end_mark.index
        written = text.removeprefix("\ufeff")[start:end].strip()
        advice = quotes_advice(written, f"{name}: ")
        raise BadInput(
            f"{entry.at(source)}: {name} must be text, not"
            f" {describe_kind(entry.node)}.",
            hint=advice[0].upper() + advice[1:],
            refusal=Refusal.SPEC_UNUSABLE,
        )
    return _pop_text(entries, name)


def _pop_type(entries: dict[object, YamlEntry], source: str, slug: str) -> TicketType:
    entry = entries.pop("type", None)
    word = format_tree(entry.tree).strip().lower() if entry else ""
    if not word:
        return TicketType.from_slug(slug)
    if entry and word not in set(TicketType):
        allowed = f"Allowed: {', '.join(TicketType)}."
        raise BadInput(
            f"{entry.at(source)}: unknown type {word[:40]!r}.",
            hint=allowed,
            refusal=Refusal.SPEC_UNUSABLE,
        )
    return TicketType(word)


def _pop_scope(entries: dict[object, YamlEntry]) -> dict[str, tuple[str, ...]]:
    entry = entries.pop("implementation_scope", None)
    if entry is None:
        return {}
    if isinstance(entry.tree, dict):
        return {area: tuple(list_texts(items)) for area, items in entry.tree.items()}
    items = tuple(list_texts(entry.tree))
    return {"scope": items} if any(items) else {}


# Keys of earlier tools for the description, with words to put before their texts.
OLD_DESCRIPTION_KEYS = {
    "problem_description": "",
    "problem": "",
    "user_story": "",
    "context": "Context: ",
    "current_state": "Current state: ",
    "desired_state": "Desired state: ",
    "summary": "",
}


def _pop_description(entries: dict[object, YamlEntry]) -> str:
    description = _pop_text(entries, "description")
    if description.strip():
        return description
    parts = []
    for name, prefix in OLD_DESCRIPTION_KEYS.items():
        text = plain_text(_pop_text(entries, name))
        if text:
            parts.append(prefix + text)
    return "\n\n".join(parts)


_BULLET = Pattern(r"\s*(?:[-*+•]|[0-9]{1,9}[.)])\s+(.*)")
_GHERKIN = {"given", "when", "then"}


def _pop_criteria(entries: dict[object, YamlEntry]) -> tuple[str, ...]:
    entry = entries.pop("acceptance_criteria", None)
    match entry.tree if entry else []:
        case str(text):
            return _split_criteria(text)
        case dict(mapping) if _GHERKIN.isdisjoint(key.lower() for key in mapping):
            return tuple(
                f"{name}: {format_tree(tree)}" for name, tree in mapping.items()
            )
        case dict(mapping):
            return (criterion_text(mapping),)
        case list(trees):
            return tuple(criterion_text(tree) for tree in trees)


def _split_criteria(text: str) -> tuple[str, ...]:
    lines = [line for line in text.splitlines() if line.strip()]
    if not any(map(_BULLET.match, lines)):
        return tuple(lines)
    items: list[str] = []
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet or not items:
            items.append(bullet[1] if bullet else line.strip())
        else:
            items[-1] += f"\n{line.strip()}"
    return tuple(items)


def criterion_text(tree: Tree) -> str:
    """Return an item of `acceptance_criteria` as text."""
    if not isinstance(tree, dict):
        return plain_text(format_tree(tree))
    values = {key.lower(): format_tree(value) for key, value in tree.items()}
    if not _GHERKIN.isdisjoint(values):
        return plain_text(_gherkin_sentence(values))
    label = values.pop("id", "")
    words = _pop_criterion_words(values)
    names = {key.lower(): key for key in tree}
    rest = "; ".join(f"{names[key]}: {value}" for key, value in values.items())
    if words and rest:
        words = f"{words} ({rest})"
    return plain_text(": ".join(filter(None, [label, words or rest])))


def _pop_criterion_words(values: dict[str, str]) -> str:
    for key in ("description", "criterion", "text"):
        if key in values:
            return values.pop(key)
    return ""


def _gherkin_sentence(values: Mapping[str, str]) -> str:
    sentence = ", ".join(f"{key} {value}" for key, value in values.items())
    return sentence[:1].upper() + sentence[1:]


# Writing

# Unless escaped, YAML folds these like a newline.
_YAML_LINE_ENDS = Pattern("[\x85\u2028\u2029]")


def dump_yaml(value: object) -> str:
    """Return YAML in the templates' style."""
    return yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )


class _Dumper(yaml.SafeDumper):
    """Writes multi-line text as blocks, and indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = None
        if _YAML_LINE_ENDS.search(data):
            style = '"'
        elif "\n" in data:
            style = "|"
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)
