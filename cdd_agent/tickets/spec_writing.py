"""Writing into a spec.yaml that people write in, too: what is meant to change does, to the letter nothing else.

The file is not made anew from what was read of it. The places of the values that change are found in its text, and
only these are replaced; so comments, unknown keys, the order and the layout of all the rest stay as they are. Comments
that were inside a value are put above it. What comes out is read again before anybody gets it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import yaml
from msgspec import Struct, field

from cdd_agent.errors import BadInput
from cdd_agent.guarded_yaml import YamlEntry, read_events, read_mapping
from cdd_agent.tickets.spec import TicketSpec, criterion_of, dumped

FIELDS = tuple(TicketSpec().fields())
"""The keys of a spec that are ours, in the order in which they are written."""
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_COLON = re.compile(r"\s*:")
_DASH = re.compile(r"^ *-(?=\s|$)", re.MULTILINE)
_INDENTED_COMMENTS = re.compile(r"(?:(?:\r?\n[ \t]*)*\r?\n[ \t]+#[^\r\n]*)+")
_COMMENT = re.compile(r"(?<!\S)#[^\n\r\x85\u2028\u2029]*")


class SpecNotWritable(BadInput):
    """A spec.yaml that cannot be changed without touching what is to stay. It is as it was."""

    def __init__(self, source: str, why: str) -> None:
        super().__init__(
            f"{source} is written in a way in which it cannot be changed safely: {why.rstrip('.')}. It stays as it is",
            hint="Write it as plain `key: value` lines, as `/new` does, then try again.",
        )


def rewritten(text: str, spec: TicketSpec, source: str = "spec.yaml", *, slug: str = "") -> str:
    """The text of a spec.yaml with the fields of `spec` in the place of its own; `spec.extra` does not count.

    Raises `BadInput` for a text that is no spec, and `SpecNotWritable`.
    """
    mark, text = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    now = TicketSpec.from_yaml(text, source, slug=slug)
    wanted = {name: value for name, value in spec.fields().items() if getattr(spec, name) != getattr(now, name)}
    if not wanted:
        return mark + text
    before = SpecText.of(text, source)
    new = before.with_values(wanted)
    before.check(new, spec, slug)
    return mark + new


class _TextEdit(NamedTuple):
    start: int
    end: int
    text: str


class _ValuePlace(NamedTuple):
    """Where a key and its value are in the text."""

    key_start: int
    key_end: int
    end: int
    items: tuple[tuple[int, int], ...] = ()
    """Of a list that has one item a line: where each begins, behind its dash, and ends."""


class SpecText(Struct, frozen=True):
    """The text of a spec.yaml that has one key a line, and the places in it."""

    text: str
    source: str
    entries: Mapping[object, YamlEntry]
    places: Mapping[str, _ValuePlace]
    comments: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, text: str, source: str) -> "SpecText":
        """Raises `SpecNotWritable` where a key shares its line with others."""
        reader = _Reader(text, source)
        return cls(text, source, read_mapping(text, source, "a spec"), reader.places(), tuple(reader.comments()))

    def check(self, new: str, spec: TicketSpec, slug: str = "") -> None:
        """Raises `SpecNotWritable` unless a new text says what `spec` does, and nothing else in it is different."""
        try:
            read, after = TicketSpec.from_yaml(new, self.source, slug=slug), SpecText.of(new, self.source)
        except BadInput as error:
            raise SpecNotWritable(self.source, error.message) from error
        if wrong := [name for name in FIELDS if getattr(read, name) != getattr(spec, name)]:
            raise SpecNotWritable(self.source, f"{wrong[0]} would read otherwise than it was meant")
        others, others_after = (
            {key: entry.tree for key, entry in text.entries.items() if key not in FIELDS} for text in (self, after)
        )
        if others != others_after:
            raise SpecNotWritable(self.source, "it would change a key that is not the program's")
        comments, comments_after = ([words.rstrip() for _, words in text.comments] for text in (self, after))
        if Counter(comments) - Counter(comments_after):
            raise SpecNotWritable(self.source, "a comment would be lost")

    def with_values(self, wanted: Mapping[str, Any]) -> str:
        """The text with other values of these keys; see `check`."""
        edits: list[_TextEdit] = []
        for name in (name for name in FIELDS if name in wanted):
            place, value = self.places.get(name), wanted[name]
            if place is None:
                edits.append(self._added(name, value))
            elif place.items and isinstance(value, list) and value:
                edits += self._items_changed(name, place, value)
            else:
                colon = _COLON.match(self.text, place.key_end)
                if colon is None:
                    raise SpecNotWritable(self.source, f"there is something between {name} and its colon")
                edits.append(self._hoisted(place.key_start, colon.end(), place.end))
                edits += self._put(colon.end(), place.end, *_written({name: value}, len(name) + 1))
        line_end = "\r\n" if "\r\n" in self.text else "\n"
        done, pieces = 0, []
        for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
            pieces += [self.text[done : edit.start], edit.text.replace("\n", line_end)]
            done = max(edit.end, done)
        return "".join([*pieces, self.text[done:]])

    def _added(self, name: str, value: Any) -> _TextEdit:
        """A key that is not there yet goes behind the one that it follows, else to the beginning."""
        line = f"{name}:{''.join(_written({name: value}, len(name) + 1))}"
        before = [known for known in FIELDS[: FIELDS.index(name)] if known in self.places]
        if not before:
            at = self._line_start(min(place.key_start for place in self.places.values()))
            return _TextEdit(at, at, f"{line}\n")
        at = _line_end(self.text, self.places[before[-1]].end)
        # Indented comments that follow would be a part of a block that is put before them.
        following = _INDENTED_COMMENTS.match(self.text, at)
        at = following.end() if following else at
        return _TextEdit(at, at, f"\n{line}")

    def _put(self, start: int, end: int, head: str, body: str) -> Iterator[_TextEdit]:
        """A value where another one is. What is behind that in its last line, a comment, stays behind it; where the new
        one is a block or a list, that is in the first line."""
        line_end = _line_end(self.text, end)
        if body and head.lstrip()[:1] not in ("", "|"):  # a text that goes on below: no comment can be between
            yield _TextEdit(start, line_end, f"{head}{body}{self.text[end:line_end]}")
        else:
            yield _TextEdit(start, end, head)
            yield _TextEdit(line_end, line_end, body)

    def _items_changed(self, name: str, place: _ValuePlace, items: list[str]) -> Iterator[_TextEdit]:
        """Item by item, so that those that stay keep their comments and their layout."""
        tree = self.entries[name].tree
        assert isinstance(tree, list)
        old, dashes = [criterion_of(item) for item in tree], self._dashes(place)
        for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, items, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            both = min(i2 - i1, j2 - j1)
            for i, item in zip(range(i1, i2), items[j1:j2], strict=False):
                dash, end = dashes[i], place.items[i][1]
                yield self._hoisted(dash, dash + 1, end)
                yield from self._put(dash + 1, end, *_written([item], 1, self._indent(dash)))
            for i in range(i1 + both, i2):
                yield self._removed(dashes[i], place.items[i][1])
            if new := items[j1 + both : j2]:
                indent = self._indent(dashes[0])
                lines = "\n".join(f"{indent}-{''.join(_written([item], 1, indent))}" for item in new)
                if at := i1 + both:
                    behind = _line_end(self.text, place.items[at - 1][1])
                    yield _TextEdit(behind, behind, f"\n{lines}")
                else:
                    before = self._line_start(dashes[0])
                    yield _TextEdit(before, before, f"{lines}\n")

    def _dashes(self, place: _ValuePlace) -> list[int]:
        found, after = [], place.key_end
        for start, end in place.items:
            dash = _DASH.search(self.text, after, start)
            if dash is None:
                raise SpecNotWritable(self.source, "a list in it has more than one item in a line")
            found.append(dash.end() - 1)
            after = end
        return found

    def _removed(self, dash: int, end: int) -> _TextEdit:
        """An item goes with its lines; a comment in them stays, in a line of its own.

        The line end that goes is the one before it: what is put in behind the list goes behind the other one.
        """
        start, line_end = self._line_start(dash), _line_end(self.text, end)
        kept = self._comments_in(start, line_end, self._indent(dash)).removesuffix("\n")
        before = start - (2 if self.text[:start].endswith("\r\n") else 1)
        return _TextEdit(before, line_end, f"\n{kept}" if kept else "")

    def _hoisted(self, place: int, start: int, end: int) -> _TextEdit:
        """The comments in what is about to be replaced, above the line of it."""
        at = self._line_start(place)
        return _TextEdit(at, at, self._comments_in(start, end, self._indent(place)))

    def _comments_in(self, start: int, end: int, indent: str) -> str:
        return "".join(f"{indent}{comment}\n" for at, comment in self.comments if start <= at < end)

    def _line_start(self, at: int) -> int:
        ends = [found.end() for found in _LINE_END.finditer(self.text, 0, at)]
        return ends[-1] if ends else 0

    def _indent(self, at: int) -> str:
        return " " * (at - self._line_start(at))


def _line_end(text: str, at: int) -> int:
    found = _LINE_END.search(text, at)
    return found.start() if found else len(text)


def _written(value: object, key: int, indent: str = "") -> tuple[str, str]:
    """A value as YAML: what goes into the line of its key or dash, which takes `key` letters, and the lines below."""
    first, *rest = dumped(value).removesuffix("\n").split("\n")
    return first[key:].rstrip(), "".join(f"\n{indent}{line}" if line else "\n" for line in rest)


class _Reader(Struct):
    """Walks through YAML's events and notes where things are."""

    text: str
    source: str
    _values: list[tuple[int, int]] = field(default_factory=list)
    """All that is no white space, comment or sign: there is no comment in these."""
    _headers: list[tuple[int, str]] = field(default_factory=list)
    """Comments behind the `|` of a block."""

    def places(self) -> dict[str, _ValuePlace]:
        events = iter(read_events(self.text, self.source))
        top = next(event for event in events if isinstance(event, yaml.NodeEvent))
        if not isinstance(top, yaml.MappingStartEvent) or top.flow_style:
            raise SpecNotWritable(self.source, "all of it is in braces")
        places: dict[str, _ValuePlace] = {}
        while not isinstance(key := next(events), yaml.MappingEndEvent):
            key_start, key_end, _ = self._node(key, events)
            if _column_of(key) != _column_of(top):
                raise SpecNotWritable(self.source, "a key in it is not at the beginning of its line")
            _, end, items = self._node(next(events), events)
            if isinstance(key, yaml.ScalarEvent):
                places[key.value] = _ValuePlace(key_start, key_end, end, items)
        if _column_of(top) != 0:
            raise SpecNotWritable(self.source, "all of it is indented")
        return places

    def comments(self) -> Iterator[tuple[int, str]]:
        """In their order. To be called after `places`."""
        found, after = list(self._headers), 0
        for start, end in [*sorted(self._values), (len(self.text), len(self.text))]:
            found += [(comment.start(), comment[0]) for comment in _COMMENT.finditer(self.text, after, start)]
            after = max(after, end)
        return iter(sorted(found))

    def _node(self, event: Any, events: Iterator[Any]) -> tuple[int, int, tuple[tuple[int, int], ...]]:
        """Where a node begins and ends, and the items of a list that has one a line."""
        start, end = event.start_mark.index, event.end_mark.index
        if not isinstance(event, yaml.CollectionStartEvent):
            if isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">"):
                end = start + len(self.text[start:end].rstrip())
                header = _COMMENT.search(self.text, start, _line_end(self.text, start))
                self._headers += [(header.start(), header[0])] if header else []
            self._values.append((start, end))
            return start, end, ()
        self._values.append((start, end))
        inner: list[tuple[int, int]] = []
        while not isinstance(child := next(events), yaml.CollectionEndEvent):
            inner.append(self._node(child, events)[:2])
        if event.flow_style:
            closing: Any = child
            return start, closing.end_mark.index, ()
        is_list = isinstance(event, yaml.SequenceStartEvent)
        return start, inner[-1][1] if inner else end, tuple(inner) if is_list else ()


def _column_of(event: Any) -> int:
    column: int = event.start_mark.column
    return column
