"""Finds what YAML may read otherwise than the user meant: text that is cut, dropped or
structure, and misspelt keys.

All are warnings. Text that is not YAML has none, because its error names the remedy.
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator

import yaml
from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.text.misspelling import is_misspelt
from cdd_agent.tickets.findings import Findings
from cdd_agent.tickets.plan import ImplementationPlan, Problem
from cdd_agent.tickets.spec import FIELDS, OLD_DESCRIPTION_KEYS, TicketType
from cdd_agent.values.guarded_yaml import read_node
from cdd_agent.values.yaml_remedies import quotes_advice, separate_key, split_lines

_PROSE = frozenset(FIELDS).difference({"type", "priority"}).union(OLD_DESCRIPTION_KEYS)
"""Keys whose values are prose."""
_NEEDED = ("title", "description", "acceptance_criteria")
_ONE_TEXT = ("title", "description", "technical_notes", *OLD_DESCRIPTION_KEYS)
_NULL, _TEXT = "tag:yaml.org,2002:null", "tag:yaml.org,2002:str"
_NULL_WORDS = ("~", "null", "Null", "NULL")
_MAX_SHOWN = 60
_COMMENT = Pattern("([ \t]+)(#[^\n\r\x85\u2028\u2029]*)")
_COMMENT_BELOW = Pattern("[ \t]*(?:\r\n|[\n\r])([ \t]+)(#[^\n\r]*)")
# `#42` is rather text; `# text`, `##` and `#---` are comments.
_TIGHT = Pattern(r"#[^\s#=*~_!-]")
_PROPERTY = Pattern(r"[&!]\S*")
_KNOWN_TAG = Pattern(
    r"!!(?:str|int|float|bool|null|seq|map|timestamp|binary|set|omap|pairs)\Z"
)
_KEY_LINE = Pattern(r"[^\W\d][\w -]*:(?:\s|$)")
_ITEM_LINE = Pattern(r"-[ \t]+\S")
_TIGHT_ITEM_LINE = Pattern(r"-[^\s-]")


class _Place(Struct, frozen=True):
    is_prose: bool
    is_type: bool = False
    takes_one_text: bool = False
    is_item: bool = False
    is_known: bool = True
    """True if the key is one that specs have."""
    margin: int = 0
    """Columns up to here are outside the value."""


def find_spec_problems(text: str) -> tuple[Problem, ...]:
    """Return findings by line."""
    text = text.removeprefix("\ufeff")
    try:
        node = read_node(text, "spec.yaml")
    except BadInput:
        return ()
    if not isinstance(node, yaml.MappingNode):
        return ()
    findings = Findings()
    _SpecReader(text, node, findings).read_top(node)
    return findings.to_problems(ImplementationPlan())


class _SpecReader:
    def __init__(self, text: str, node: yaml.MappingNode, findings: Findings) -> None:
        self._text = text
        self._findings = findings
        self._uses = _count_uses(node)
        self._seen: set[int] = set()

    def read_top(self, node: yaml.MappingNode) -> None:
        names = {str(key.value) for key, _ in node.value}
        for key, value in node.value:
            self._check_name(key, value, names)
            self._read_pair(key, value, _place_of(str(key.value), key))
            if key.value == "ticket" and isinstance(value, yaml.MappingNode):
                inner_names = {str(key.value) for key, _ in value.value}
                for inner_key, inner_value in value.value:
                    self._check_name(inner_key, inner_value, names | inner_names)
        if names.isdisjoint(_NEEDED) and not self._findings.items:
            for key, value in node.value:
                self._check_level(key, value)

    def _warn(
        self, kind: str, node: yaml.Node, text: str, *, line: int | None = None
    ) -> None:
        if line is None:
            line = node.start_mark.line
        self._findings.warn(kind, line, text)

    # Keys

    def _check_name(
        self, key: yaml.Node, value: yaml.Node, others: Collection[str]
    ) -> None:
        if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
            return
        similar = _similar_field(key.value, value, others)
        if similar:
            text = f"unknown key {_shorten(key.value)}; did you mean `{similar}`?"
            self._warn("unknown_key", key, text)

    def _check_level(self, key: yaml.Node, value: yaml.Node) -> None:
        name = _shorten(str(key.value))
        if name != "ticket" and "title" in _field_names(value):
            self._warn(
                "level",
                key,
                f"the fields below {name} are not the ticket's; remove the line {name}:"
                " and the spaces before them",
            )
        elif isinstance(value, yaml.SequenceNode):
            tickets = [item for item in value.value if _field_names(item)]
            if len(tickets) > 1:
                self._warn(
                    "level",
                    key,
                    f"{name} has {len(tickets)} items that look like tickets; put each"
                    " of them into the spec.yaml of a separate folder",
                )

    def _read_pair(self, key: yaml.Node, value: yaml.Node, place: _Place) -> None:
        start = key.start_mark.index
        before = self._text[max(start - _MAX_SHOWN, 0) : start].rstrip()
        if before.endswith("?") and not self._has_colon(key, value):
            text = self._slice(key)
            self._warn(
                "question",
                key,
                f"`? {_shorten(text)}` is read as a key without a value;"
                f" {quotes_advice(f'? {text}')}",
            )
        self._read(key, place)
        self._read(value, place)

    # Values

    def _read(self, node: yaml.Node, place: _Place) -> None:
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        self._check_property(node)
        if isinstance(node, yaml.ScalarNode):
            self._read_scalar(node, place)
        elif isinstance(node, yaml.SequenceNode):
            self._check_brackets(node, place)
            for item in node.value:
                self._read(item, _item_place(item, place))
        elif isinstance(node, yaml.MappingNode):
            if self._is_text_in_braces(node, place):
                return
            self._check_repeated_keys(node)
            for key, value in node.value:
                inner = _Place(
                    place.is_prose,
                    is_known=place.is_known,
                    margin=key.start_mark.column + 1,
                )
                self._read_pair(key, value, inner)

    def _read_scalar(self, node: yaml.ScalarNode, place: _Place) -> None:
        if node.style in ("'", '"'):
            self._check_open_quote(node)
        elif not node.style:
            self._check_comment(node, place)
            self._check_joined_lines(node, place)
            self._check_null_item(node, place)

    def _has_colon(self, key: yaml.Node, value: yaml.Node) -> bool:
        """True unless the value and its colon are missing. An alias points to an
        earlier node.
        """
        between = slice(key.end_mark.index, value.start_mark.index)
        return between.start > between.stop or ":" in self._text[between]

    def _slice(self, node: yaml.Node) -> str:
        return self._text[node.start_mark.index : node.end_mark.index].strip()

    def _check_property(self, node: yaml.Node) -> None:
        written = self._slice(node)
        name = _PROPERTY.match(written)
        if name is None:
            return
        kind = "anchor" if name[0].startswith("&") else "tag"
        if kind == "anchor":
            is_meant = self._uses[id(node)] > 1 or not isinstance(node, yaml.ScalarNode)
        else:
            is_meant = bool(_KNOWN_TAG.match(name[0]))
        if not is_meant:
            words = "an anchor" if kind == "anchor" else "a tag"
            self._warn(
                kind,
                node,
                f"`{_shorten(name[0])}` is read as {words} and is no part of the text;"
                f" {quotes_advice(written)}",
            )

    def _check_comment(self, node: yaml.ScalarNode, place: _Place) -> None:
        is_text = place.is_known or node.tag in (_TEXT, _NULL)
        if place.is_type or not is_text:
            return
        after = self._comment_after(node)
        below = self._comment_below(node, place)
        words = below or after
        is_tight = bool(_TIGHT.match(words))
        if not words or not (is_tight or place.is_prose):
            return
        advice = quotes_advice(" ".join(f"{self._slice(node)} {words}".split()))
        if not is_tight:
            advice = f"if it is text, {advice}"
        self._warn(
            "comment",
            node,
            f"`{_shorten(words)}` is a comment and no part of the text; {advice}",
            line=node.end_mark.line + bool(below),
        )

    def _comment_after(self, node: yaml.ScalarNode) -> str:
        comment = _COMMENT.match(self._text, node.end_mark.index)
        if comment is None:
            return ""
        words = comment[2].rstrip()
        is_column = bool(node.value) and len(comment[1]) > 1
        # Comments are aligned in a column, text is not.
        return "" if is_column and not _TIGHT.match(words) else words

    def _comment_below(self, node: yaml.ScalarNode, place: _Place) -> str:
        comment = _COMMENT_BELOW.match(self._text, node.end_mark.index)
        if comment is None or not node.value or len(comment[1]) < place.margin:
            return ""
        return comment[2].rstrip() if _TIGHT.match(comment[2]) else ""

    def _check_joined_lines(self, node: yaml.ScalarNode, place: _Place) -> None:
        lines = [line.strip() for line in split_lines(self._slice(node))]
        if len(lines) < 2:
            return
        first, *others = lines
        if _TIGHT_ITEM_LINE.match(first) and any(map(_TIGHT_ITEM_LINE.match, others)):
            text = f"put a space after the dash: - {first[1:]}"
            self._warn(
                "joined_lines", node, f"these lines are read as one text; {text}"
            )
            return
        for number, line in enumerate(others, node.start_mark.line + 1):
            if _ITEM_LINE.match(line):
                advice = "write a text of several lines below `|`"
                if place.is_item:
                    advice = "begin it in the column of the items above"
                self._warn(
                    "joined_lines",
                    node,
                    f"`{_shorten(line)}` is read as part of the text above; {advice}",
                    line=number,
                )
                return

    def _check_null_item(self, node: yaml.ScalarNode, place: _Place) -> None:
        if place.is_item and place.is_prose and self._slice(node) in _NULL_WORDS:
            written = self._slice(node)
            self._warn(
                "null",
                node,
                f"`{written}` is read as nothing; {quotes_advice(written)}",
            )

    def _check_open_quote(self, node: yaml.ScalarNode) -> None:
        lines = split_lines(self._slice(node))
        if any(map(_KEY_LINE.match, lines[1:])):
            first, last = node.start_mark.line + 1, node.end_mark.line + 1
            self._warn(
                "open_quote",
                node,
                f"the quotes that open here close in line {last}, so that the keys"
                f" between are text; close them in line {first}",
            )

    def _check_brackets(self, node: yaml.SequenceNode, place: _Place) -> None:
        is_text = place.is_item or (place.takes_one_text and len(node.value) == 1)
        written = self._slice(node)
        if node.flow_style and place.is_prose and is_text:
            self._warn(
                "brackets",
                node,
                f"`{_shorten(written)}` is read as a list; {quotes_advice(written)}",
            )

    def _is_text_in_braces(self, node: yaml.MappingNode, place: _Place) -> bool:
        """Find `{name}`, and `{key:value}` without a space."""
        if not node.flow_style:
            return False
        if not node.value and not (place.is_item and place.is_prose):
            return False
        if any(self._has_colon(key, value) for key, value in node.value):
            return False
        written = self._slice(node)
        advice = quotes_advice(written)
        tight = [separate_key(str(key.value)) for key, _ in node.value]
        if tight and all(tight):
            advice = f"put a space after the colon: {{{', '.join(tight)}}}"
        self._warn(
            "braces",
            node,
            f"`{_shorten(written)}` is read as a mapping; {advice}",
        )
        return True

    def _check_repeated_keys(self, node: yaml.MappingNode) -> None:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                continue
            first = lines.setdefault(key.value, key.start_mark.line + 1)
            if first != key.start_mark.line + 1:
                self._warn(
                    "repeated_key",
                    key,
                    f"the key {_shorten(key.value)} appears twice, first in line"
                    f" {first}, whose value is not read; rename one of them",
                )


def _place_of(name: str, key: yaml.Node) -> _Place:
    return _Place(
        is_prose=name in _PROSE,
        is_type=name == "type",
        takes_one_text=name in _ONE_TEXT,
        is_known=name in FIELDS or name in OLD_DESCRIPTION_KEYS,
        margin=key.start_mark.column + 1,
    )


def _item_place(item: yaml.Node, place: _Place) -> _Place:
    return _Place(
        place.is_prose,
        is_item=True,
        is_known=place.is_known,
        margin=item.start_mark.column,
    )


def _field_names(node: yaml.Node) -> list[str]:
    if not isinstance(node, yaml.MappingNode):
        return []
    names = {_letters(str(key.value)) for key, _ in node.value}
    return [name for name in _NEEDED if _letters(name) in names]


def _count_uses(node: yaml.Node) -> Counter[int]:
    """Count a node's occurrences. Aliases share a node."""
    uses: Counter[int] = Counter()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        uses[id(current)] += 1
        if uses[id(current)] == 1:
            waiting += _children(current)
    return uses


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


# Misspelt keys

_OTHER_NAMES = {
    "title": ("issuetitle", "name", "titulo"),
    "description": ("desc", "descricao", "descripcion", "objective", "why"),
    "acceptance_criteria": (
        "ac",
        "acceptance",
        "acceptancescenarios",
        "acceptancetests",
        "criteria",
        "criteriosaceitacao",
        "criteriosaceite",
        "criteriosaceptacion",
        "definitionofdone",
        "successcriteria",
    ),
}
"""Other tools' names for fields, without case and signs."""


def _similar_field(name: str, value: yaml.Node, others: Collection[str]) -> str:
    """Return the field that an unknown key may mean, or "". A field that is present
    counts only if case and signs alone differ.
    """
    if name in FIELDS or name in OLD_DESCRIPTION_KEYS:
        return ""
    letters = _letters(name)
    for field in FIELDS:
        if letters == _letters(field):
            return field
    free = [field for field in FIELDS if field not in others]
    for field in free:
        if letters in _OTHER_NAMES.get(field, ()):
            return field
    for field in free:
        # `types` is a different word, and a spec may lack its type.
        is_possible = field != "type" or _is_ticket_type(value)
        if is_possible and is_misspelt(letters, _letters(field)):
            return field
    return ""


def _is_ticket_type(value: yaml.Node) -> bool:
    if not isinstance(value, yaml.ScalarNode):
        return False
    return value.value.strip().lower() in set(TicketType)


def _letters(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in plain if letter.isalnum())
