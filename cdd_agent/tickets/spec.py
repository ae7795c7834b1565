"""The spec of a ticket: spec.yaml, read with care and with what earlier tools wrote in it."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

import yaml
from msgspec import Struct, field
from msgspec.structs import force_setattr

from cdd_agent.errors import BadInput
from cdd_agent.guarded_yaml import Tree, YamlEntry, as_items, as_text, described, read_mapping

_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
_PRIORITY = "medium"


class SpecEmpty(BadInput):
    """The file holds nothing, or nothing but comments."""


class TicketType(StrEnum):
    """The kind of work that a ticket is; also the first word of its slug."""

    FEATURE = "feature"
    BUG = "bug"
    ENHANCEMENT = "enhancement"
    SPIKE = "spike"
    REFACTOR = "refactor"

    @classmethod
    def of_slug(cls, slug: str) -> Self:
        word = slug.partition("-")[0]
        return cls(word) if word in set(cls) else cls("feature")


_HEADED = {
    "problem_description": "",
    "problem": "",
    "user_story": "",
    "context": "Context",
    "current_state": "Current state",
    "desired_state": "Desired state",
    "summary": "",
}
"""Where earlier tools put the description, in reading order, and the words before it there."""


class TicketSpec(Struct, frozen=True):
    """All that is wanted. `from_yaml(spec.to_yaml()) == spec`; comments of a file are not kept."""

    title: str = ""
    type: TicketType = TicketType.FEATURE
    description: str = ""
    acceptance_criteria: tuple[str, ...] = ()
    implementation_scope: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    technical_notes: str = ""
    priority: str = _PRIORITY
    extra: Mapping[object, object] = field(default_factory=dict)
    """The keys of the file that are not ours, kept as they are."""

    def __post_init__(self) -> None:
        scope = {
            " ".join(_text(area).split()): tuple(filter(None, map(_text, items)))
            for area, items in self.implementation_scope.items()
        }
        normalised = {
            "title": " ".join(_text(self.title).split()),
            "type": TicketType(self.type),
            "description": _text(self.description),
            "acceptance_criteria": tuple(filter(None, map(_text, self.acceptance_criteria))),
            "implementation_scope": scope,
            "technical_notes": _text(self.technical_notes),
            "priority": " ".join(_text(self.priority).split()) or _PRIORITY,
        }
        for name, value in normalised.items():
            force_setattr(self, name, value)

    @classmethod
    def from_yaml(cls, text: str, source: str = "spec.yaml", *, slug: str = "") -> Self:
        """Raises `BadInput` with file, line and reason. A type that is not said is the first word of `slug`."""
        entries = read_mapping(text, source, "a spec")
        if not entries:
            raise SpecEmpty(f"{source}: the file is empty.", hint="Write at least a title and a description.")
        _lift_ticket(entries, source)
        for name in ("title", "priority"):
            if name in entries and not isinstance(entries[name].tree, str):
                raise BadInput(f"{entries[name].at(source)}: {name} must be text, not {described(entries[name].node)}.")
        kind = entries.pop("type", None)
        word = as_text(kind.tree).strip().lower() if kind else ""
        if kind and word and word not in set(TicketType):
            allowed = f"Allowed: {', '.join(TicketType)}."
            raise BadInput(f"{kind.at(source)}: the type {word[:40]!r} is not known.", hint=allowed)
        scope = entries.pop("implementation_scope", None)
        areas = scope.tree if scope else {}
        if not isinstance(areas, dict):
            areas = {"scope": areas} if any(as_items(areas)) else {}
        return cls(
            title=_taken(entries, "title"),
            type=TicketType(word) if word else TicketType.of_slug(slug),
            description=_description(entries),
            acceptance_criteria=_criteria(entries.pop("acceptance_criteria", None)),
            implementation_scope={area: tuple(as_items(tree)) for area, tree in areas.items()},
            technical_notes=_taken(entries, "technical_notes"),
            priority=_taken(entries, "priority"),
            extra={key: entry.value(source) for key, entry in entries.items()},
        )

    def fields(self) -> dict[str, Any]:
        """Its own keys as plain values for YAML, in the order in which they are written."""
        return {
            "title": self.title,
            "type": self.type.value,
            "priority": self.priority,
            "description": self.description,
            "acceptance_criteria": list(self.acceptance_criteria),
            "implementation_scope": {area: list(items) for area, items in self.implementation_scope.items()},
            "technical_notes": self.technical_notes,
        }

    def to_yaml(self) -> str:
        """The spec as spec.yaml."""
        return dumped(self.fields() | dict(self.extra))

    @property
    def has_title(self) -> bool:
        return not unwritten(self.title)

    @property
    def is_blank(self) -> bool:
        """Nothing of what makes a spec complete is written."""
        return all(map(unwritten, (self.title, self.description, *self.acceptance_criteria)))

    def missing(self) -> list[str]:
        """The reasons why the spec is not complete, one line each; a template's placeholder is not an answer."""
        lines = []
        if not self.has_title:
            lines.append("title: one line that says what is wanted")
        if unwritten(self.description):
            lines.append("description: what is wanted, and why")
        if all(map(unwritten, self.acceptance_criteria)):
            lines.append("acceptance_criteria: at least one thing to check when the work is done")
        return lines


def _text(value: str) -> str:
    return value and _UNWRITABLE.sub("", value).replace("\r\n", "\n").replace("\r", "\n").strip()


# -------------------------------------------------------------------------------------------- the entries


def _lift_ticket(entries: dict[object, YamlEntry], source: str) -> None:
    """Earlier tools kept these under `ticket:`; what the file says at its top goes before."""
    ticket = entries.get("ticket")
    if ticket is None or not isinstance(ticket.tree, dict):
        return
    inner = ticket.entries(source)
    lifted: set[str] = set()
    for name in ("title", "type", "priority"):
        if name in inner and (name not in entries or not as_text(entries[name].tree)):
            entries[name] = inner[name]
            lifted.add(name)
    rest = ticket.without(lifted)
    if rest is None:
        del entries["ticket"]
    else:
        entries["ticket"] = rest


def _taken(entries: dict[object, YamlEntry], name: str) -> str:
    entry = entries.pop(name, None)
    return "" if entry is None else as_text(entry.tree)


def _description(entries: dict[object, YamlEntry]) -> str:
    written = _taken(entries, "description")
    if written.strip():
        return written
    parts = [(heading, _text(_taken(entries, name))) for name, heading in _HEADED.items() if name in entries]
    return "\n\n".join(f"{heading}: {part}" if heading else part for heading, part in parts if part)


_CRITERION = re.compile(r"\s*(?:[-*+•]|[0-9]{1,9}[.)])\s+(.*)")


def _criteria(entry: YamlEntry | None) -> tuple[str, ...]:
    if entry is None:
        return ()
    match entry.tree:
        case str(text):
            lines = [line for line in text.splitlines() if line.strip()]
            if not any(map(_CRITERION.match, lines)):
                return tuple(lines)
            items = list[list[str]]([[]])
            for line in lines:  # a list item goes on in the lines below it
                if found := _CRITERION.match(line):
                    items.append([found[1]])
                else:
                    items[-1].append(line.strip())
            return tuple("\n".join(item) for item in items)
        case dict(mapping) if not {"given", "when", "then"} & {key.lower() for key in mapping}:
            return tuple(f"{name}: {as_text(tree)}" for name, tree in mapping.items())
        case dict(mapping):
            return (criterion_of(mapping),)
        case list(trees):
            return tuple(map(criterion_of, trees))


def criterion_of(tree: Tree) -> str:
    """One item of `acceptance_criteria`, as the spec has it."""
    if not isinstance(tree, dict):
        return _text(as_text(tree))
    named = {key.lower(): as_text(value) for key, value in tree.items()}
    if {"given", "when", "then"} & named.keys():
        sentence = ", ".join(f"{key} {value}" for key, value in named.items())
        return _text(sentence[:1].upper() + sentence[1:])
    words = next((named.pop(key) for key in ("description", "criterion", "text") if key in named), "")
    label = named.pop("id", "")
    rest = "; ".join(f"{key}: {as_text(value)}" for key, value in tree.items() if key.lower() in named)
    return _text(": ".join(filter(None, [label, words])) + (f" ({rest})" if words and rest else rest))


# ------------------------------------------------------------------------------------------- placeholders

_PLACEHOLDER = re.compile(
    r"\s*(?:[-*+]\s+)?(?:[\w '’/-]{1,40}:\s*)?"
    r"(?:<[^<>]*\s[^<>]*>|\[[^\[\]]*\s[^\[\]]*\]|TODO|TBD|FIXME|\.{3}|…)[.:]?\s*"
)


def unwritten(text: str) -> bool:
    """Nothing, or a template's placeholder."""
    return all(not line.strip() or _PLACEHOLDER.fullmatch(line) for line in text.split("\n"))


# ------------------------------------------------------------------------------------------------ writing


def dumped(value: object) -> str:
    """A value as YAML, as the templates have it."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


_YAML_LINE_ENDS = re.compile("[\x85\u2028\u2029]")  # YAML folds these as it does a newline, unless escaped


class _Dumper(yaml.SafeDumper):
    """Text of several lines is written as a block, and lists are indented, as a person would."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = '"' if _YAML_LINE_ENDS.search(data) else "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)
