"""Parse YAML of unknown origin.

Files that are too large or too deep, also after expanding aliases, are refused before
any costly work. Duplicate keys are refused, because YAML would drop a value. A value is
read as its text (`Tree`), so that `version: 1.10` and `answer: no` stay unchanged, or
with its YAML type (`YamlEntry.value`).
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from msgspec import Struct, field

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.values.yaml_remedies import find_remedy, list_advice, separate_key

# some builds of PyYAML lack the loader in C
try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

Tree: TypeAlias = "str | list[Tree] | dict[str, Tree]"

MAX_BYTES = 5_000_000
_MAX_DEPTH = 50
_MAX_VALUES = 100_000
_MAX_EXPANDED = 10_000_000
"""Characters and values of a document with expanded aliases."""
_NULL, _TEXT = "tag:yaml.org,2002:null", "tag:yaml.org,2002:str"
_MERGE, _INTEGER = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:int"


class DoubleKey(yaml.MarkedYAMLError):
    """A key appears twice in a mapping."""


class GuardedLoader(SafeLoader):
    """Refuses duplicate keys, and numbers that Python cannot print."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace `<<: *other` by its keys. The keys of `node` win."""
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if name in lines and key.tag != _MERGE and isinstance(key.value, str):
                problem = f"the key {key.value} appears twice, first in line"
                raise DoubleKey(
                    problem=f"{problem} {lines[name]}", problem_mark=key.start_mark
                )
            lines[name] = key.start_mark.line + 1
        super().flatten_mapping(node)
        unique = {(key.tag, str(key.value)): (key, value) for key, value in node.value}
        node.value = [*unique.values()]

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number = super().construct_yaml_int(node)
        # raises `ValueError` for a hexadecimal number of too many digits
        str(number)
        return number


GuardedLoader.add_constructor(_INTEGER, GuardedLoader.construct_yaml_int)


class YamlEntry(Struct, frozen=True):
    """One key of a mapping, with value and line."""

    tree: Tree
    line: int
    node: yaml.Node
    key: yaml.Node | None = None

    @classmethod
    def from_node(cls, node: yaml.Node) -> "YamlEntry":
        return cls(read_tree(node), node.start_mark.line + 1, node)

    @property
    def is_null(self) -> bool:
        return _is_null(self.node)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def at(self, source: str) -> str:
        return f"{source}:{self.line}"

    def value(self, source: str) -> object:
        """Raises `BadInput`, for example for the date 2024-13-45."""
        return _construct(self.node, source)

    def entries(self, source: str) -> dict[object, "YamlEntry"]:
        return read_entries(self.node, source)

    def without(self, names: set[str]) -> "YamlEntry | None":
        """Return the mapping without some keys; None if no key remains."""
        pairs = [pair for pair in self.node.value if pair[0].value not in names]
        if not pairs:
            return None
        start, end = self.node.start_mark, self.node.end_mark
        node = yaml.MappingNode(self.node.tag, pairs, start, end)
        return YamlEntry(read_tree(node), self.line, node)


def read_file(path: Path) -> str | None:
    """Return the text of a file, or None without a file. Raises `BadInput`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(
            f"{path} could not be read: {reason}", refusal=Refusal.DISK
        ) from error
    return decode(data, str(path))


def decode(data: bytes, source: str) -> str:
    """Raises `BadInput`."""
    if len(data) > MAX_BYTES:
        raise _too_large(source)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{source} is not UTF-8 text: {error.reason} at byte {error.start}.",
            hint="Save it as UTF-8.",
            refusal=Refusal.WRONG_ENCODING,
        ) from error


def read_node(text: str, source: str) -> yaml.Node | None:
    """Return the root of a document; None if it is empty. Raises `BadInput` with place
    and reason.
    """
    text = text.removeprefix("\ufeff")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadInput(
            f"{source}: not valid text: {error.reason}.", refusal=Refusal.NOT_YAML
        ) from error
    if size > MAX_BYTES:
        raise _too_large(source)
    try:
        counter = _Counter(source)
        for event in yaml.parse(text, Loader=GuardedLoader):
            counter.add(event)
        node: yaml.Node | None = yaml.compose(text, Loader=GuardedLoader)
    except yaml.MarkedYAMLError as error:
        remedy = find_remedy(text, error, _find_error_line)
        raise BadInput(
            f"{_locate_error(error, source)}: not YAML: {_reason(error)}.",
            hint=remedy or "Fix the YAML there.",
            refusal=Refusal.NOT_YAML,
        ) from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        hint = "Is it a text file?"
        raise BadInput(
            f"{source}: not YAML: {reason}.", hint=hint, refusal=Refusal.NOT_YAML
        ) from error
    return None if node is None or _is_null(node) else node


def _find_error_line(text: str) -> int | None:
    """Return the line of the first error, from 0. Events are cheap at any depth."""
    anchors: set[str | None] = set()
    documents = 0
    try:
        for event in yaml.parse(text, Loader=GuardedLoader):
            documents += isinstance(event, yaml.DocumentStartEvent)
            is_unknown = (
                isinstance(event, yaml.AliasEvent) and event.anchor not in anchors
            )
            if is_unknown or documents > 1:
                return event.start_mark.line if event.start_mark else 0
            if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
                anchors.add(event.anchor)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return mark.line if mark else 0
    except yaml.YAMLError:
        return 0
    return None


def compose_exactly(text: str, source: str) -> Any:
    """Return the root of a document, with exact positions. Raises `BadInput`.

    The C scanner ends some values too late. The Python one accepts no tab after a
    value, so each tab becomes a space.
    """
    read_node(text, source)
    for readable in (text, text.replace("\t", " ")):
        with contextlib.suppress(yaml.YAMLError):
            return yaml.compose(readable, Loader=yaml.SafeLoader)
    raise BadInput(
        f"{source}: cannot find the lines of its values.",
        hint="Write it as plain `key: value` lines.",
        refusal=Refusal.NOT_YAML,
    )


def read_mapping(text: str, source: str, kind: str) -> dict[object, YamlEntry]:
    """Return the top-level keys of a document. `kind` is its name in messages, such as
    "a spec". Raises `BadInput`.
    """
    node = read_node(text, source)
    if node is None:
        return {}
    if isinstance(node, yaml.MappingNode):
        return read_entries(node, source)
    hint = "Write it as `key: value` lines."
    key = separate_key(text.strip())
    items = list_items(node) or []
    if key:
        hint = f"Put a space after the colon: {key}"
    elif items and all(isinstance(item, yaml.MappingNode) for item in items):
        hint = list_advice(len(items))
    raise BadInput(
        f"{locate(node, source)}: {kind} is a mapping of keys; this is"
        f" {describe_kind(node)}.",
        hint=hint,
        refusal=Refusal.NOT_YAML,
    )


def read_entries(node: yaml.Node, source: str) -> dict[object, YamlEntry]:
    """Return the keys of a mapping. Raises `BadInput`."""
    assert isinstance(node, yaml.MappingNode)
    try:
        GuardedLoader("").flatten_mapping(node)
    except yaml.MarkedYAMLError as error:
        place = _locate_error(error, source)
        raise BadInput(
            f"{place}: {_reason(error)}.", refusal=Refusal.NOT_YAML
        ) from error
    entries: dict[object, YamlEntry] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        entry = YamlEntry(read_tree(value_node), line, value_node, key_node)
        if not isinstance(key_node, yaml.ScalarNode):
            raise BadInput(
                f"{entry.at(source)}: a list or mapping cannot be a key.",
                refusal=Refusal.NOT_YAML,
            )
        entries[_construct(key_node, source)] = entry
    return entries


def locate(node: yaml.Node, source: str) -> str:
    return f"{source}:{node.start_mark.line + 1}"


def describe_kind(node: yaml.Node) -> str:
    if _is_null(node):
        return "empty"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "plain text"


def list_items(node: yaml.Node) -> list[yaml.Node] | None:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else None


# guards


class _Counter(Struct):
    """Counts the levels and values of a document. An alias counts as its value."""

    source: str
    values: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    """By anchor."""
    open_nodes: list[tuple[str, int]] = field(default_factory=lambda: [("", 0)])
    """Anchors and sizes of the lists and mappings around an event."""

    def add(self, event: yaml.Event) -> None:
        """Raises `BadInput` once there is too much."""
        self.values += 1
        if isinstance(event, yaml.ScalarEvent):
            self._add_size(event.anchor or "", 1 + len(event.value))
        elif isinstance(event, yaml.CollectionStartEvent):
            self.open_nodes.append((event.anchor or "", 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._add_size(*self.open_nodes.pop())
        elif isinstance(event, yaml.AliasEvent):
            self._add_alias(event)
        if self.values > _MAX_VALUES:
            self._refuse(event, f"more than {_MAX_VALUES:,} values, which is too much")
        if len(self.open_nodes) > _MAX_DEPTH:
            self._refuse(event, f"nested more than {_MAX_DEPTH} levels deep")
        if self.open_nodes[-1][1] > _MAX_EXPANDED:
            self._refuse(event, "the aliases make the document too large")

    def _add_alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor or ""
        is_open = name in [anchor for anchor, _ in self.open_nodes]
        if is_open and name not in self.sizes:
            self._refuse(event, f"the value *{name} contains itself")
        self._add_size("", self.sizes.get(name, 1))

    def _add_size(self, anchor: str, size: int) -> None:
        if anchor:
            self.sizes[anchor] = size
        outer_anchor, outer_size = self.open_nodes[-1]
        self.open_nodes[-1] = (outer_anchor, outer_size + size)

    def _refuse(self, event: yaml.Event, reason: str) -> None:
        mark = event.start_mark
        place = f"{self.source}:{mark.line + 1}" if mark else self.source
        raise BadInput(f"{place}: {reason}.", refusal=Refusal.NOT_YAML)


def _construct(node: yaml.Node, source: str) -> object:
    # most values are text, and making a loader is slow
    if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
        return node.value
    loader = GuardedLoader("")
    try:
        return loader.construct_document(node)
    except DoubleKey as error:
        place = _locate_error(error, source)
        raise BadInput(
            f"{place}: {_reason(error)}.", refusal=Refusal.NOT_YAML
        ) from error
    # PyYAML does not wrap errors of int(), date() and the like
    except (
        yaml.YAMLError,
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
        OverflowError,
    ) as error:
        reason = str(error)
        if isinstance(error, yaml.MarkedYAMLError):
            reason = _reason(error)
        raise BadInput(
            f"{locate(node, source)}: a value cannot be read: {reason}.",
            hint="Put it in quotes.",
            refusal=Refusal.NOT_YAML,
        ) from error
    finally:
        loader.dispose()


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL


def _too_large(source: str) -> BadInput:
    return BadInput(
        f"{source}: more than {MAX_BYTES:,} bytes, which is too much for YAML.",
        refusal=Refusal.NOT_YAML,
    )


def _locate_error(error: yaml.MarkedYAMLError, source: str) -> str:
    mark = error.problem_mark or error.context_mark
    return f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source


def _reason(error: yaml.MarkedYAMLError) -> str:
    return " ".join(filter(None, [error.context, error.problem]))


# values as text


def read_tree(node: yaml.Node) -> Tree:
    """Return the text of a node; null is empty."""
    if isinstance(node, yaml.MappingNode):
        tree: dict[str, Tree] = {}
        for key_node, value in node.value:
            key = read_tree(key_node)
            tree[key if isinstance(key, str) else format_tree(key)] = read_tree(value)
        return tree
    if isinstance(node, yaml.SequenceNode):
        return [read_tree(item) for item in node.value]
    return "" if node.tag == _NULL else str(node.value)


def format_tree(tree: Tree) -> str:
    match tree:
        case str(text):
            return text.strip()
        case list(items):
            lines = [format_tree(item).replace("\n", "\n  ") for item in items]
            return "\n".join(f"- {line}" for line in lines)
        case dict(mapping):
            return "\n".join(_format_key(key, value) for key, value in mapping.items())


def _format_key(key: str, value: Tree) -> str:
    text = format_tree(value)
    if isinstance(value, str) and "\n" not in text:
        return f"{key}: {text}".rstrip()
    return f"{key}:\n  " + text.replace("\n", "\n  ")


def list_texts(tree: Tree) -> Iterator[str]:
    """Yield the items of a list and its nested lists; anything else is one item."""
    match tree:
        case list(items):
            for item in items:
                yield from list_texts(item)
        case dict(mapping):
            for key, value in mapping.items():
                yield _format_key(key, value)
        case str(text):
            yield text
