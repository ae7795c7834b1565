"""Reads the tests that a file's text declares.

Nothing is run or imported. A file without a query for its language, or too large to
parse, is one test.
"""

import builtins
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import prod

from cdd_agent.pattern import Pattern
from cdd_agent.verification.testcode.captures import (
    CallSite,
    Captures,
    Declaration,
    Language,
    Span,
    capture,
    is_check_name,
    language_of,
)
from cdd_agent.verification.testcode.declared import Declared, Skipped
from cdd_agent.verification.testcode.test_files import CODE, SCRIPTS

_MOST_READ = 4_000_000
"""Most bytes of all bodies together: tests may nest."""
_DEEPEST = 20
"""Most surrounding names in a test's name."""
_HARMLESS = frozenset(
    (
        *(name for name in dir(builtins) if name[0].islower()),
        *["println", "printf", "puts", "log", "echo", "sizeof"],
    )
)
"""Calls that hold no assertion and are not tested."""
_IDLE = frozenset(
    re.findall(
        r"\w+",
        "return undefined null nil None pass true false async function func fn def done"
        " end do void t assert expect begin",
    )
)
"""Words that do nothing."""
_IDLE_LINES = frozenset(("#!/bin/sh", "set -e", "exit 0", "true", ":"))
_CONSTANTS = Pattern(
    r"(?:(?:true|True|TRUE|false|False|None|nil|null|and|or|not|is|in)\b|\W|\d[\w.]*+)++"
)
_COMPARES_CONSTANTS = Pattern(
    r"expect|\w*[aA]ssert(?:_true|_equals?|_eq|_ne|\w*True|\w*Equals?)?|ASSERT_\w+"
    r"|EXPECT_\w+|REQUIRE|CHECK"
)
"""Assertions that cannot fail with constants only."""
_WORD = Pattern(r"[A-Za-z_]\w*")
_TOKEN = Pattern(r"\w+|[^\w\s,;]")
_MESSAGE = Pattern(r"(?i)%[a-z+#]|\b(?:expected|got|want)\b")
"""A value that only a failing assertion prints."""
_CHECK_LINE = Pattern(r"\[\[?\s|\b(?:test|diff|cmp|grep|ok|is|like|is_deeply|Then)\b")


def read_tests(suffix: str, text: str) -> tuple[Declared, ...] | None:
    """Return a file's tests and helpers; None if it cannot be parsed."""
    language = language_of(suffix)
    captures = None if language is None else capture(language, text)
    if language is None or captures is None:
        return None
    file = _File(language, captures, text)
    tests = tuple(file.tests())
    if any(test.is_test for test in tests):
        return tests
    is_script = f".{suffix}" in SCRIPTS
    if not is_script and not file.is_program:
        return tests
    return (*tests, file.as_whole())


def read_whole(suffix: str, text: str) -> Declared:
    """Return the whole file as one test."""
    if f".{suffix}" not in CODE:
        # test data, such as an expected output: it exists or not
        return Declared("", text, is_empty=not text.strip())
    has_comments = f".{suffix}" in SCRIPTS
    lines = [
        line
        for line in text.splitlines()
        if not (has_comments and line.lstrip().startswith("#"))
    ]
    checks = 0
    for line in lines:
        words = _WORD.findall(line)
        checks += bool(_CHECK_LINE.search(line)) or any(map(is_check_name, words))
    return _whole(lines, checks, frozenset(re.findall(r"(\w+)\(", text)))


def _whole(lines: Iterable[str], checks: int, calls: frozenset[str]) -> Declared:
    written = tuple(" ".join(line.split()) for line in lines if line.strip())
    return Declared(
        "",
        body="\n".join(written),
        calls=calls - _HARMLESS,
        checks=checks,
        is_empty=_IDLE_LINES.issuperset(written),
        lines=written,
    )


class _Nest:
    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted(set(spans), key=lambda span: (span[0], -span[1]))
        self._starts = [start for start, _ in self.spans]
        self.parents: list[int] = []
        """Index of the span around each; -1 if none."""
        open_spans: list[int] = []
        for number, (start, _) in enumerate(self.spans):
            while open_spans and self.spans[open_spans[-1]][1] <= start:
                open_spans.pop()
            self.parents.append(open_spans[-1] if open_spans else -1)
            open_spans.append(number)

    def around(self, place: int) -> Iterator[int]:
        number = bisect_right(self._starts, place) - 1
        while number >= 0:
            if self.spans[number][1] > place:
                yield number
            number = self.parents[number]

    def contains(self, place: int, *, within: Span | None = None) -> bool:
        """True if a span, itself inside `within` if given, contains the place."""
        number = next(self.around(place), None)
        if number is None:
            return False
        return within is None or self.spans[number][0] >= within[0]


class _Parts:
    def __init__(self, declaration: Declaration, span: Span) -> None:
        self.kind = declaration.kind
        self.names = declaration.names
        self.span = span
        """Including the marks before it."""
        self.around: _Parts | None = None
        self.body: Span | None = None
        self.calls: list[CallSite] = []
        self.values: list[Span] = []
        self.tables: defaultdict[Span, int] = defaultdict(int)
        self.is_computed = False
        self.has_loop = False
        self.skipped = Skipped.NO
        self.is_alone = False
        self.contains_alone = False

    @property
    def is_function(self) -> bool:
        return self.kind not in ("suite", "class")

    @property
    def inside(self) -> Span:
        if self.body is not None:
            return self.body
        return self.after_name, self.span[1]

    @property
    def after_name(self) -> int:
        return self.names[-1][1] if self.names else self.span[0]

    def chain(self) -> Iterator["_Parts"]:
        parts: _Parts | None = self
        for _ in range(_DEEPEST):
            if parts is None:
                return
            yield parts
            parts = parts.around


class _File:
    def __init__(self, language: Language, captures: Captures, text: str) -> None:
        self._language = language
        self._captures = captures
        data = captures.data
        original = text.encode("utf-8", "replace")
        self._names = original if len(original) == len(data) else data
        spans = captures.spans
        self._code = _blanked(
            data, (*spans["comment"], *spans["dead"], *captures.returns)
        )
        strings = [
            (start + 1, end - 1)
            for start, end in spans["value"]
            if not data[start : start + 1].isdigit()
        ]
        self._bare = _blanked(self._code, strings)
        self._all_skipped = Skipped.NO
        self._declare()
        self._fill()
        self._count()
        self._skip()

    def tests(self) -> list[Declared]:
        """If names are unique in the language, a later definition replaces an earlier
        one.
        """
        written = self._written()
        limit = _MOST_READ // max(len(self._parts), 1)
        if self._language.nests:
            return [
                self._declared(parts, written, limit)
                for parts in self._parts
                if parts.is_function
            ]
        tests: dict[str, Declared] = {}
        events: list[tuple[int, str, _Parts | None]] = [
            (parts.span[0], self._full_name(parts), parts) for parts in self._parts
        ]
        names = {name for _, name, _ in events}
        events += (event for event in self._forgotten() if event[1] in names)
        for _, name, parts in sorted(events, key=lambda event: event[0]):
            if parts is not None and parts.is_function:
                tests[name] = self._declared(parts, written, limit)
                continue
            for test in list(tests):
                if test == name or test.startswith(f"{name}{self._language.joint}"):
                    del tests[test]
        return list(tests.values())

    @property
    def is_program(self) -> bool:
        checks = self._free_checks()
        if not checks:
            return False
        if self._captures.has_error or re.search(rb"\bmain\s*\(", self._bare):
            return True
        return any(not self._captures.is_in_function(check) for check in checks)

    def as_whole(self) -> Declared:
        starts = [0, *(match.end() for match in re.finditer(b"\n", self._code))]
        checks = self._free_checks()
        lines = {bisect_right(starts, check.name[0]) for check in checks}
        names = frozenset(
            self._text(call.name) for call in self._captures.calls.values()
        )
        return _whole(_decoded(self._code).splitlines(), len(lines), names)

    def _free_checks(self) -> list[CallSite]:
        return [
            call
            for call in self._captures.calls.values()
            if self._is_code(call.name)
            and self._is_check(call)
            and not any(parts.is_function for parts in self._around(call.name[0]))
        ]

    def _declare(self) -> None:
        marks = sorted(self._captures.spans["mark"], key=lambda span: span[1])
        ends = [end for _, end in marks]
        declarations = {}
        for declaration in self._captures.declarations.values():
            start, end = declaration.span
            if not self._is_code(declaration.span):
                continue
            number = bisect_right(ends, start) - 1
            is_test = declaration.kind != "marked"
            while number >= 0 and not self._code[ends[number] : start].strip():
                is_test |= marks[number] in self._captures.spans["test_mark"]
                start = min(start, marks[number][0])
                number -= 1
            if is_test:
                declarations[start, end] = declaration
        self._nest = _Nest(declarations)
        self._make_parts(declarations)
        self._give_bodies()

    def _make_parts(self, declarations: Mapping[tuple[int, int], Declaration]) -> None:
        self._parts = []
        by_number: list[_Parts] = []
        for number, span in enumerate(self._nest.spans):
            parts = _Parts(declarations[span], span)
            around = self._nest.parents[number]
            parts.around = by_number[around] if around >= 0 else None
            is_inner = parts.around is not None and parts.around.is_function
            if is_inner and not self._language.nests:
                # part of the surrounding function
                by_number.append(by_number[around])
                continue
            by_number.append(parts)
            self._parts.append(parts)
        self._by_number = by_number

    def _give_bodies(self) -> None:
        for body in sorted(self._captures.spans["body"]):
            owner = self._owner(body[0])
            if owner is not None and owner.body is None:
                owner.body = body

    def _fill(self) -> None:
        captures = self._captures
        rows = _Nest(row for table in captures.rows.values() for row in table)
        messages = _Nest(captures.spans["message"])
        calls = [(call.name, call) for call in captures.calls.values()]
        for span, part in (
            *calls,
            *((value, None) for value in captures.spans["value"]),
        ):
            place = span[0]
            if not self._is_code(span) or messages.contains(place):
                continue
            for parts in self._around(place):
                start, end = parts.inside
                is_in = start <= place < end or rows.contains(place)
                if not parts.is_function or not is_in:
                    continue
                if part is not None:
                    parts.calls.append(part)
                else:
                    parts.values.append(span)

    def _count(self) -> None:
        captures = self._captures
        for table, rows in captures.rows.items():
            for row in filter(self._is_code, rows):
                owner = self._owner(row[0])
                if owner is not None:
                    owner.tables[table] += 1
        for loop, items in captures.loops.items():
            owner = self._owner(loop[0])
            if owner is not None and not items:
                owner.has_loop = True
        for span in filter(self._is_stated, captures.spans["computed"]):
            owner = self._owner(span[0])
            if owner is not None:
                owner.is_computed = True
        self._loops = _Nest(loop for loop, items in captures.loops.items() if items)

    def _skip(self) -> None:
        spans = self._captures.spans
        branches = _Nest(spans["branch"])
        for span in filter(self._is_stated, (*spans["skip"], *spans["maybe"])):
            owner = self._owner(span[0])
            skipped = Skipped.YES
            within = None if owner is None else owner.span
            if span not in spans["skip"] or branches.contains(span[0], within=within):
                skipped = Skipped.PERHAPS
            if owner is None:
                self._all_skipped = max(self._all_skipped, skipped)
            else:
                owner.skipped = max(owner.skipped, skipped)
        for span in filter(self._is_code, spans["only"]):
            owner = self._owner(span[0])
            if owner is not None:
                owner.is_alone = True
                for parts in owner.chain():
                    parts.contains_alone = True
        self._is_some_alone = any(parts.is_alone for parts in self._parts)

    def _skipped(self, parts: _Parts) -> Skipped:
        chain = list(parts.chain())
        is_alone = parts.contains_alone or any(each.is_alone for each in chain)
        if self._is_some_alone and not is_alone:
            return Skipped.YES
        if parts.body is None and not re.search(
            rb"\w", self._bare[slice(*parts.inside)]
        ):
            return Skipped.YES
        if parts.kind == "called":
            name = re.escape(self._names[slice(*parts.names[0])])
            if len(re.findall(rb"\b%s\b" % name, self._bare)) < 2:
                return Skipped.YES
        return max(self._all_skipped, *(each.skipped for each in chain))

    def _declared(self, parts: _Parts, written: bytes, limit: int) -> Declared:
        calls = {self._text(call.name) for call in parts.calls}
        subjects = {
            self._text(call.name) for call in parts.calls if not self._is_check(call)
        }
        values = {self._value(value) for value in parts.values} - {""}
        start, end = parts.span
        end = min(end, start + limit)
        inner = _decoded(self._bare[slice(*parts.inside)][:limit])
        bare = _decoded(self._bare[parts.after_name : end])
        return Declared(
            self._full_name(parts),
            body=" ".join(_TOKEN.findall(_decoded(written[start:end]))),
            shape=" ".join((*_TOKEN.findall(_WORD.sub("_", bare)), *sorted(values))),
            words=frozenset(subjects - _HARMLESS | values),
            calls=frozenset(calls - _HARMLESS),
            checks=self._count_checks(parts),
            is_empty=_IDLE.issuperset(_WORD.findall(inner))
            and re.search(r"\d", inner) is None,
            skipped=self._skipped(parts),
            rows=_count_rows(parts),
            is_test=parts.kind in ("test", "called", "marked")
            and all(each.kind != "class" for each in parts.chain()),
        )

    def _count_checks(self, parts: _Parts) -> int:
        """In a loop over listed values, an assertion counts once for each."""
        checks = 0
        for call in parts.calls:
            if not self._is_check(call) or call.name[0] < parts.inside[0]:
                continue
            loops = [
                self._loops.spans[number] for number in self._loops.around(call.name[0])
            ]
            checks += prod(
                len(list(filter(self._is_code, self._captures.loops[loop])))
                for loop in loops
                if loop >= parts.span
            )
        return checks

    def _is_check(self, call: CallSite) -> bool:
        name = self._text(call.name)
        on = self._text(call.receiver) if call.receiver is not None else ""
        is_of_assert = re.fullmatch(r"[aA]ssert(\.\w+)*", on) is not None
        if not (call.is_check or is_of_assert or self._language.checks.fullmatch(name)):
            return False
        if call.arguments is None or not (
            call.is_check or is_of_assert or _COMPARES_CONSTANTS.fullmatch(name)
        ):
            return True
        arguments = _decoded(self._bare[slice(*call.arguments)])
        has_string = name == "expect" and re.search("[\"'`]", arguments) is not None
        is_constant = (
            bool(arguments.strip("() \n"))
            and _CONSTANTS.fullmatch(arguments) is not None
        )
        return has_string or not is_constant

    def _value(self, value: Span) -> str:
        text = self._text(value)
        quoted = re.fullmatch("(?s)\\w*([\"'`]+)(.*?)\\1", text)
        if quoted is None:
            return text
        return "" if _MESSAGE.search(quoted[2]) else f"'{quoted[2]}'"

    def _written(self) -> bytes:
        spans = self._captures.spans
        names = (name for parts in self._parts for name in parts.names)
        written = bytearray(
            _blanked(
                self._code,
                (
                    *names,
                    *spans["skip"],
                    *spans["maybe"],
                    *spans["word"],
                    *spans["cut"],
                ),
            )
        )
        for _, end in spans["block"]:
            if written[end : end + 1].isspace():
                written[end : end + 1] = b"}"
        return bytes(written)

    def _forgotten(self) -> Iterator[tuple[int, str, None]]:
        for span in self._captures.spans["forget"]:
            owner = self._owner(span[0])
            if owner is None:
                yield span[0], self._text(span), None
            elif not owner.is_function:
                name = f"{self._full_name(owner)}{self._language.joint}"
                yield span[0], f"{name}{self._text(span)}", None

    def _full_name(self, parts: _Parts) -> str:
        names = [self._own_name(each) for each in parts.chain()]
        return self._language.joint.join(name for name in reversed(names) if name)

    def _own_name(self, parts: _Parts) -> str:
        names = []
        for name in parts.names:
            text = _decoded(self._names[slice(*name)])
            quoted = re.fullmatch(r"(?s)([\"'`])(.*)\1", text)
            if quoted is not None:
                names.append(quoted[2])
                continue
            text = " ".join(text.split()).removeprefix(":")
            text = text.strip("()") if text.startswith("(") else text
            names.append(text.replace("DISABLED_", ""))
        return ", ".join(names)

    def _owner(self, place: int) -> _Parts | None:
        number = next(self._nest.around(place), None)
        return None if number is None else self._by_number[number]

    def _around(self, place: int) -> Iterable[_Parts]:
        owner = self._owner(place)
        return () if owner is None else owner.chain()

    def _is_code(self, span: Span) -> bool:
        return not self._code[span[0] : span[0] + 1].isspace()

    def _is_stated(self, span: Span) -> bool:
        return self._is_code(span) or span in self._captures.spans["comment"]

    def _text(self, span: Span) -> str:
        return _decoded(self._captures.data[slice(*span)])


def _count_rows(parts: _Parts) -> int | None:
    tables: dict[Span, int] = {}
    for each in parts.chain():
        if each.is_computed:
            return None
        if each is parts or not each.is_function:
            tables |= each.tables
    if not tables:
        return None if parts.has_loop else 0
    return prod(tables.values())


def _blanked(data: bytes, spans: Iterable[Span]) -> bytes:
    """Replace the spans by spaces, except line ends."""
    pieces = []
    place = 0
    for start, end in sorted(spans):
        if end > place and end > start:
            first = max(start, place)
            pieces += [data[place:first], re.sub(rb"[^\n]", b" ", data[first:end])]
            place = end
    return b"".join((*pieces, data[place:]))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")
