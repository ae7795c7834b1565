"""YAML of unknown origin, with its places: safe against hostile files, exact about what
is wrong.

The one place that parses YAML. Size, depth and what aliases would expand to are bounded
before anything costly is done. Values are read as text (`Tree`), so that
`version: 1.10` and `answer: no` stay what a person wrote, or made the ordinary way
(`YamlEntry.value`, `constructed`).
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.yaml_remedies import find_remedy, list_advice, separate_key

Tree: TypeAlias = "str | list[Tree] | dict[str, Tree]"

LARGEST = 5_000_000
"""Bytes of a document."""
_MAX_DEPTH = 50
_MAX_VALUES = 100_000
_MAX_EXPANDED = 10_000_000
"""Characters and values of a document in which each alias is written out."""
_BEGINS_A_LEVEL = "[{-:?"


def _number(loader: Any, node: yaml.Node) -> int:
    number: int = loader.construct_yaml_int(node)
    str(
        number
        # raises `ValueError` for one that is written otherwise and has more digits than
        # Python prints
    )
    return number


# The one in C is not in every build of PyYAML.
LOADER: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
LOADER.add_constructor("tag:yaml.org,2002:int", _number)
_NULL, _TEXT = "tag:yaml.org,2002:null", "tag:yaml.org,2002:str"


class YamlEntry(Struct, frozen=True):
    """One key of a mapping: its value as text and as YAML means it, and its line, from
    1.
    """

    tree: Tree
    line: int
    node: yaml.Node
    key: yaml.Node | None = None

    @classmethod
    def of(cls, node: yaml.Node) -> "YamlEntry":
        """A value that has no key of its own."""
        return cls(tree(node), node.start_mark.line + 1, node)

    @property
    def is_null(self) -> bool:
        return _is_null(self.node)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def at(self, source: str) -> str:
        return f"{source}:{self.line}"

    def value(self, source: str) -> object:
        """Raises `BadInput` for a value that is not what it looks like, as the date
        2024-13-45.
        """
        return constructed(self.node, self.at(source))

    def entries(self, source: str) -> dict[object, "YamlEntry"]:
        """The keys of a value that is a mapping."""
        return entries(self.node, source)

    def without(self, names: set[str]) -> "YamlEntry | None":
        """This mapping without some of its keys; None if no key is left."""
        pairs = [
            (key, value) for key, value in self.node.value if key.value not in names
        ]
        node = yaml.MappingNode(
            self.node.tag, pairs, self.node.start_mark, self.node.end_mark
        )
        return YamlEntry(tree(node), self.line, node) if pairs else None


def read_file(path: Path) -> str | None:
    """The text of a YAML file, or None where there is none. Raises `BadInput`; never
    reads much more than `LARGEST`.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadInput(
            f"{path} could not be read: {error.strerror or error}"
        ) from error
    return decoded(data, str(path))


def decoded(data: bytes, source: str) -> str:
    """Bytes of a YAML document as text. Raises `BadInput` when they are too many, or
    not UTF-8.
    """
    if len(data) > LARGEST:
        raise _too_large(source)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{source} is not UTF-8 text: {error.reason} at byte {error.start}.",
            hint="Save it as UTF-8.",
        ) from error


def read_node(text: str, source: str) -> yaml.Node | None:
    """The document as YAML's nodes; None for an empty one. Raises `BadInput` with file,
    line and reason.
    """
    text = text.removeprefix("\ufeff")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise BadInput(f"{source}: not valid text: {error.reason}.") from error
    if size > LARGEST:
        raise _too_large(source)
    try:
        _refuse_hostile(text, source)
        node: yaml.Node | None = yaml.compose(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        remedy = find_remedy(text, error, _find_error_line)
        raise BadInput(
            f"{_place(error, source)}: not YAML: {_reason(error)}.",
            hint=remedy or "Fix the YAML there.",
        ) from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise BadInput(
            f"{source}: not YAML: {reason}.", hint="Is it a text file?"
        ) from error
    return None if node is None or _is_null(node) else node


def _find_error_line(text: str) -> int | None:
    """Return the line of the first error, from 0. Only events are read, so that depth
    and aliases cost nothing.
    """
    anchors: set[str | None] = set()
    documents = 0
    try:
        for event in yaml.parse(text, Loader=LOADER):
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
    """Return the document's node, with positions that are exact to the character.
    Raises `BadInput` as `read_node`.

    PyYAML's own scanner is exact; the one in C ends some values later. It does not
    accept a tab behind a value, which YAML allows; a space is as long.
    """
    read_node(text, source)
    for readable in (text, text.replace("\t", " ")):
        with contextlib.suppress(yaml.YAMLError):
            return yaml.compose(readable, Loader=yaml.SafeLoader)
    raise BadInput(
        f"{source}: where in it the values stand cannot be told.",
        hint="Write it in plainer YAML.",
    )


def read_mapping(text: str, source: str, kind: str) -> dict[object, YamlEntry]:
    """The keys at the top of a document, in its order; none when it is empty. `kind` is
    what it is: "a spec".

    Raises `BadInput` with file, line and reason.
    """
    node = read_node(text, source)
    if node is None:
        return {}
    if not isinstance(node, yaml.MappingNode):
        hint = "Write it as `key: value` lines."
        key = separate_key(text.strip())
        items = list_items(node) or []
        if key:
            hint = f"Put a space after the colon: {key}"
        elif items and all(isinstance(item, yaml.MappingNode) for item in items):
            hint = list_advice(len(items))
        raise BadInput(
            f"{line_of(node, source)}: {kind} is a mapping of keys; this is"
            f" {described(node)}.",
            hint=hint,
        )
    return entries(node, source)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL


def line_of(node: yaml.Node, source: str) -> str:
    """`source:LINE`, the line from 1."""
    return f"{source}:{node.start_mark.line + 1}"


def described(node: yaml.Node) -> str:
    """The kind of a node, in words for people."""
    if _is_null(node):
        return "empty"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, yaml.SequenceNode) else "plain text"


def list_items(node: yaml.Node) -> list[yaml.Node] | None:
    """The items of a list; None for anything else."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else None


def _too_large(source: str) -> BadInput:
    return BadInput(
        f"{source}: more than {LARGEST:,} bytes, which is too much for YAML."
    )


def _refuse_hostile(text: str, source: str) -> None:
    """Depth and expanded size are counted on the events, before anything recursive or
    costly is done. A small text without aliases cannot have too much of either.
    """
    if (
        "*" not in text
        and len(text) <= _MAX_VALUES
        and sum(map(text.count, _BEGINS_A_LEVEL)) < _MAX_DEPTH
    ):
        return
    anchors: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    for number, event in enumerate(yaml.parse(text, Loader=LOADER)):
        if isinstance(event, yaml.ScalarEvent):
            _add(open_nodes, anchors, event.anchor, 1 + len(event.value))
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_nodes.pop()
            _add(open_nodes, anchors, anchor, size)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors and any(
                event.anchor == anchor for anchor, _ in open_nodes
            ):
                raise BadInput(
                    f"{_line_of_event(event, source)}: the value *{event.anchor}"
                    " contains itself."
                )
            _add(open_nodes, anchors, None, anchors.get(event.anchor or "", 1))
        if number > _MAX_VALUES:
            raise BadInput(
                f"{_line_of_event(event, source)}: more than {_MAX_VALUES:,} values,"
                " which is too much."
            )
        if len(open_nodes) > _MAX_DEPTH:
            raise BadInput(
                f"{_line_of_event(event, source)}: nested more than {_MAX_DEPTH} levels"
                " deep."
            )
        if open_nodes[-1][1] > _MAX_EXPANDED:
            raise BadInput(
                f"{_line_of_event(event, source)}: the aliases make the document too"
                " large."
            )


def _line_of_event(event: yaml.Event, source: str) -> str:
    return f"{source}:{event.start_mark.line + 1}" if event.start_mark else source


def _add(
    open_nodes: list[tuple[str | None, int]],
    anchors: dict[str, int],
    anchor: str | None,
    size: int,
) -> None:
    if anchor is not None:
        anchors[anchor] = size
    outer, sum_so_far = open_nodes[-1]
    open_nodes[-1] = (outer, sum_so_far + size)


def entries(node: yaml.Node, source: str) -> dict[object, YamlEntry]:
    """The keys of a mapping. Raises `BadInput` for a key that is there twice, or is no
    scalar.
    """
    assert isinstance(node, yaml.MappingNode)
    found: dict[object, YamlEntry] = {}
    # these win over what `<<: *other` brings
    own = {id(key_node) for key_node, _ in node.value}
    try:
        if any(key_node.tag != _TEXT for key_node, _ in node.value):
            LOADER("").flatten_mapping(node)  # `<<: *other`
    except yaml.MarkedYAMLError as error:
        raise BadInput(f"{_place(error, source)}: {_reason(error)}.") from error
    for key_node, value_node in node.value:
        entry = YamlEntry(
            tree(value_node), key_node.start_mark.line + 1, value_node, key_node
        )
        key = constructed(key_node, entry.at(source))
        try:
            earlier = found.get(key)
        except TypeError as error:
            raise BadInput(
                f"{entry.at(source)}: a list or mapping cannot be a key."
            ) from error
        if earlier is not None and id(earlier.key) in own:
            raise BadInput(
                f"{entry.at(source)}: the key {key} is there twice, first in line"
                f" {earlier.line}."
            )
        found[key] = entry
    return found


def constructed(node: yaml.Node, where: str) -> object:
    """A node's value as YAML means it. Raises `BadInput` for one that is not what it
    looks like.
    """
    # as most are; a loader takes longer to make
    if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
        return node.value
    loader = LOADER("")
    try:
        return loader.construct_document(node)
    except (
        yaml.YAMLError,
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
        OverflowError,
    ) as error:
        # PyYAML lets through whatever int(), date() and the like say of a value that
        # only looks like one.
        reason = (
            _reason(error) if isinstance(error, yaml.MarkedYAMLError) else str(error)
        )
        raise BadInput(
            f"{where}: a value cannot be read: {reason}.", hint="Put it in quotes."
        ) from error
    finally:
        loader.dispose()


def _place(error: yaml.MarkedYAMLError, source: str) -> str:
    mark = error.problem_mark or error.context_mark
    return source if mark is None else f"{source}:{mark.line + 1}:{mark.column + 1}"


def _reason(error: yaml.MarkedYAMLError) -> str:
    return " ".join(filter(None, [error.context, error.problem]))


# text


def tree(node: yaml.Node) -> Tree:
    """A node as the text that was written; nothing for null."""
    if isinstance(node, yaml.MappingNode):
        return {_key(key): tree(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [tree(item) for item in node.value]
    return "" if node.tag == _NULL else str(node.value)


def _key(node: yaml.Node) -> str:
    written = tree(node)
    return written if isinstance(written, str) else as_text(written)


def as_text(tree: Tree) -> str:
    """A list as list items, a mapping as labelled lines."""
    match tree:
        case str(text):
            return text.strip()
        case list(items):
            return "\n".join(
                "- " + as_text(item).replace("\n", "\n  ") for item in items
            )
        case dict(mapping):
            return "\n".join(
                _labelled(label, value) for label, value in mapping.items()
            )


def _labelled(label: str, value: Tree) -> str:
    text = as_text(value)
    if isinstance(value, str) and "\n" not in text:
        return f"{label}: {text}".rstrip()
    return f"{label}:\n  " + text.replace("\n", "\n  ")


def as_items(tree: Tree) -> Iterator[str]:
    """The items of a list, those of lists within it too; anything else is one item."""
    match tree:
        case list(items):
            for item in items:
                yield from as_items(item)
        case dict(mapping):
            yield from (_labelled(label, value) for label, value in mapping.items())
        case str(text):
            yield text
