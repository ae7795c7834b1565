"""Changes values in a spec.yaml, and keeps everything else byte for byte.

A changed value's lines are replaced; comments inside it move above. The result is read
back before use.
"""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import yaml
from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.line_edits import LineEdit, apply_edits
from cdd_agent.tickets.spec import FIELDS, TicketSpec, criterion_text, dump_yaml
from cdd_agent.values.guarded_yaml import YamlEntry, compose_exactly, read_mapping

_COMMENT = Pattern("(?:^|[ \t]+)#[^\n\r\x85\u2028\u2029]*", re.MULTILINE)


class SpecNotWritable(BadInput):
    """The spec.yaml cannot be changed without damage, and is unchanged."""

    refusal = Refusal.SPEC_UNUSABLE

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(
            f"{source} cannot be changed safely: {reason.rstrip('.')}. It was not"
            " changed",
            hint=(
                "Write it as plain `key: value` lines, as `/new` does, then try again."
            ),
        )


def edit_spec(
    text: str, spec: TicketSpec, source: str = "spec.yaml", *, slug: str = ""
) -> str:
    """Return the text with the values of `spec.fields()`; `spec.extra` is ignored.

    Raises `BadInput` if the text is no spec, and `SpecNotWritable`.
    """
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(bom)
    current = TicketSpec.from_yaml(text, source, slug=slug)
    changed = {
        name: value
        for name, value in spec.fields().items()
        if getattr(spec, name) != getattr(current, name)
    }
    if not changed:
        return bom + text
    before = SpecText.parse(text, source)
    edits: list[LineEdit] = []
    for name, value in changed.items():
        edits += before.edits(name, value)
    result = "".join(apply_edits(before.lines, edits))
    before.check(result, spec, slug)
    return bom + result


class _Comment(Struct, frozen=True):
    line: int
    text: str
    """With preceding white space."""


class SpecText(Struct, frozen=True):
    """A spec.yaml with the lines of its keys and comments."""

    source: str
    lines: list[str]
    entries: dict[object, YamlEntry]
    values: dict[str, yaml.Node]
    places: dict[str, range]
    """The lines of each key and its value."""
    comments: list[_Comment]

    @classmethod
    def parse(cls, text: str, source: str) -> "SpecText":
        """Raises `SpecNotWritable` unless the text is plain `key: value` lines."""
        lines = text.splitlines(keepends=True)
        top = compose_exactly(text, source)
        if top.flow_style or top.start_mark.column:
            raise SpecNotWritable(source, "all of it is in braces or indented")
        values = {}
        places = {}
        scalars: list[range] = []
        for key, value in top.value:
            scalars += [*_scalar_ranges(key, text), *_scalar_ranges(value, text)]
            if isinstance(key, yaml.ScalarNode):
                values[key.value] = value
                places[key.value] = range(
                    key.start_mark.line, _last_line(value, text) + 1
                )
        return cls(
            source,
            lines,
            read_mapping(text, source, "a spec"),
            values,
            places,
            _find_comments(text, scalars),
        )

    def edits(self, name: str, value: Any) -> list[LineEdit]:
        if name not in self.places:
            line = self._line_for_new_key(name)
            return [LineEdit(range(line, line), _dump_lines({name: value}))]
        items = self._list_items(name)
        if items and isinstance(value, list) and value:
            return self._list_edits(name, items, value)
        self._expect_all_read(name, self.values[name])
        return [self._replace(self.places[name], _dump_lines({name: value}), indent="")]

    def check(self, result: str, spec: TicketSpec, slug: str = "") -> None:
        """Raise `SpecNotWritable` unless `result` has the values of `spec` and all else
        of this text.
        """
        try:
            read = TicketSpec.from_yaml(result, self.source, slug=slug)
            after = SpecText.parse(result, self.source)
        except BadInput as error:
            raise SpecNotWritable(self.source, error.message) from error
        for name in FIELDS:
            if getattr(read, name) != getattr(spec, name):
                raise SpecNotWritable(
                    self.source, f"{name} would be read differently than intended"
                )
        if self._unknown_keys() != after._unknown_keys():
            raise SpecNotWritable(
                self.source, "it would change a key that cdd does not use"
            )
        if self._comment_counts() - after._comment_counts():
            raise SpecNotWritable(self.source, "a comment would be lost")

    def _unknown_keys(self) -> dict[object, object]:
        return {
            key: entry.tree for key, entry in self.entries.items() if key not in FIELDS
        }

    def _comment_counts(self) -> Counter[str]:
        return Counter(comment.text.strip() for comment in self.comments)

    def _line_for_new_key(self, name: str) -> int:
        preceding = [
            field_name
            for field_name in FIELDS[: FIELDS.index(name)]
            if field_name in self.places
        ]
        if not preceding:
            return min(place.start for place in self.places.values())
        line = self.places[preceding[-1]].stop
        for number in range(line, len(self.lines)):
            text = self.lines[number]
            if text.strip().startswith("#") and text.startswith((" ", "\t")):
                line = number + 1
            elif text.strip():
                break
        return line

    def _list_items(self, name: str) -> list[range]:
        """Return each item's lines; none unless the list has one item a line."""
        node = self.values[name]
        if not isinstance(node, yaml.SequenceNode) or node.flow_style:
            return []
        text = "".join(self.lines)
        return [
            range(item.start_mark.line, _last_line(item, text) + 1)
            for item in node.value
        ]

    def _list_edits(
        self, name: str, places: Sequence[range], items: list[str]
    ) -> list[LineEdit]:
        """Change items one by one, so that others keep their lines and comments."""
        tree = self.entries[name].tree
        assert isinstance(tree, list)
        current = [criterion_text(item) for item in tree]
        first_line = self.lines[places[0].start]
        indent = first_line[: len(first_line) - len(first_line.lstrip())]
        edits = []
        nodes = self.values[name].value
        for _, start, stop, new_start, new_stop in SequenceMatcher(
            None, current, items, autojunk=False
        ).get_opcodes():
            new = items[new_start:new_stop]
            if new == current[start:stop]:
                continue
            for node in nodes[start:stop]:
                self._expect_all_read(name, node)
            for place in places[start:stop]:
                lines = _dump_lines([new.pop(0)], indent) if new else []
                edits.append(self._replace(place, lines, indent))
            end = places[stop - 1].stop if stop else places[0].start
            for item in new:
                edits.append(LineEdit(range(end, end), _dump_lines([item], indent)))
        return edits

    def _expect_all_read(self, name: str, node: yaml.Node) -> None:
        """Raise `SpecNotWritable` for a repeated key: one value was not read, and would
        be lost.
        """
        # A criterion's keys are case-insensitive.
        repeated = _find_repeated_key(node, in_any_case=name == "acceptance_criteria")
        if repeated is not None:
            line = repeated.start_mark.line + 1
            raise SpecNotWritable(
                self.source, f"in line {line}, the key {repeated.value} appears twice"
            )

    def _replace(self, place: range, new: list[str], indent: str) -> LineEdit:
        """A single line keeps its comment; other comments move above the new lines."""
        comments = [comment for comment in self.comments if comment.line in place]
        if len(place) == len(new) == len(comments) == 1:
            return LineEdit(place, [new[0] + comments[0].text])
        return LineEdit(
            place, [*(indent + comment.text.strip() for comment in comments), *new]
        )


def _dump_lines(value: object, indent: str = "") -> list[str]:
    lines = dump_yaml(value).removesuffix("\n").split("\n")
    return [indent + line if line else "" for line in lines]


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _last_line(node: yaml.Node, text: str) -> int:
    if _is_block(node):
        content = text[node.start_mark.index : node.end_mark.index].rstrip()
        return node.start_mark.line + len(content.splitlines()) - 1
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        return max(_last_line(child, text) for child in _children(node))
    return node.end_mark.line


def _scalar_ranges(node: yaml.Node, text: str) -> list[range]:
    """Return the scalars' ranges: `#` inside is no comment, except after a
    block's `|`.
    """
    if isinstance(node, yaml.ScalarNode):
        start = node.start_mark.index
        if _is_block(node):
            start = text.find("\n", start)
        return [range(start, node.end_mark.index)]
    return [
        scalar for child in _children(node) for scalar in _scalar_ranges(child, text)
    ]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value)


def _find_repeated_key(node: yaml.Node, *, in_any_case: bool) -> yaml.Node | None:
    """Return the second of two equal keys, or None."""
    if isinstance(node, yaml.ScalarNode):
        return None
    names: set[str] = set()
    keys: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        keys = [key for key, _ in node.value]
    for key in keys:
        name = str(key.value).lower() if in_any_case else str(key.value)
        if name in names:
            return key
        names.add(name)
    for child in _children(node):
        repeated = _find_repeated_key(child, in_any_case=in_any_case)
        if repeated is not None:
            return repeated
    return None


def _find_comments(text: str, scalars: list[range]) -> list[_Comment]:
    comments = []
    position = 0
    end = len(text)
    for scalar in [*sorted(scalars, key=lambda scalar: scalar.start), range(end, end)]:
        for match in _COMMENT.finditer(text, position, scalar.start):
            line = len(text[: match.end()].splitlines()) - 1
            comments.append(_Comment(line, match[0]))
        position = max(position, scalar.stop)
    return comments
