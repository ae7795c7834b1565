"""Reading plan.md as people and models write it: tolerantly, and without losing a word of a step.

What comes out is text in its place (`PlanText`); `plan.py` makes values of it. Whatever stands in a step and
is neither a field nor an affected file is its description.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from cdd_agent.tickets.markdown import (
    Document,
    Heading,
    Line,
    code_spans,
    is_rule,
    one_line,
    parse,
    prose,
)
from cdd_agent.tickets.plan_wrapping import wrapping


class Field(Enum):
    """A labelled line of a plan or a step, as `**Complexity:** simple`."""

    TICKET = auto()
    TYPE = auto()
    DESCRIPTION = auto()
    COMPLEXITY = auto()
    ESTIMATED_TIME = auto()
    DEPENDENCIES = auto()
    VERIFY = auto()
    SERVES = auto()
    FILES = auto()


_PLAN_FIELDS = {
    "ticket": Field.TICKET,
    "type": Field.TYPE,
    "complexity": Field.COMPLEXITY,
    "total complexity": Field.COMPLEXITY,
    "estimated time": Field.ESTIMATED_TIME,
    "total estimated time": Field.ESTIMATED_TIME,
}
_STEP_FIELDS = {
    "description": Field.DESCRIPTION,
    "complexity": Field.COMPLEXITY,
    "estimated time": Field.ESTIMATED_TIME,
    "dependencies": Field.DEPENDENCIES,
    "depends on": Field.DEPENDENCIES,
    "verify": Field.VERIFY,
    "serves": Field.SERVES,
    "files affected": Field.FILES,
    "affected files": Field.FILES,
    "files": Field.FILES,
}


@dataclass
class StepText:
    """One step as it is written; `line` counts from 1."""

    number: int
    title: str
    line: int
    end: int
    """Its last line that is not blank or a thematic break."""
    section_end: int
    """The last line before the next section."""
    depth: int
    """Of its heading."""
    fields: dict[Field, str] = field(default_factory=dict)
    description: str = ""
    files: list[tuple[str, str]] = field(default_factory=list)
    """Path and note."""


@dataclass
class PlanText:
    """A plan as it is written."""

    title: str = ""
    fields: dict[Field, str] = field(default_factory=dict)
    introduction: str = ""
    """The words below the title: the beginning of the overview."""
    overview: list[str] = field(default_factory=list)
    risks: list[str] = field(default_factory=list)
    steps: list[StepText] = field(default_factory=list)
    field_lines: dict[Field, int] = field(default_factory=dict)
    """Where the plan's own fields are, from 1."""
    overview_at: list[range] = field(default_factory=list)
    """The lines below each heading of an overview, from 1, without blank ones around them."""
    risks_at: list[range] = field(default_factory=list)
    top_end: int = 0
    """How many lines stand above the first section."""


def read_plan(text: str) -> PlanText:
    """Raises `BadInput` only for Markdown that nests too deeply; anything else is a plan, if an empty one."""
    wrapped = wrapping(text)
    document = parse(wrapped.alone if wrapped else text)
    plan = PlanText()
    for section in _sections(document):
        if section.kind is _Kind.TOP:
            plan.top_end = section.end
        match section.kind:
            case _Kind.TOP:
                _read_top(plan, document, section)
            case _Kind.OVERVIEW:
                plan.overview.append(prose(document.between(section.start, section.end)))
                plan.overview_at.append(_written(document, section))
            case _Kind.RISKS:
                plan.risks.extend(_risks(document, section))
                plan.risks_at.append(_written(document, section))
            case _Kind.STEP:
                plan.steps.append(_StepReader(document, section).read())
            case _Kind.OTHER:
                pass
    plan.overview = [text for text in plan.overview if text]
    plan.risks = [risk for risk in plan.risks if risk]
    return plan


# ----------------------------------------------------------------------------------------------- sections


class _Kind(Enum):
    TOP = auto()
    """What stands above the first section: the plan's title and fields."""
    OVERVIEW = auto()
    RISKS = auto()
    STEP = auto()
    OTHER = auto()


@dataclass
class _Section:
    kind: _Kind
    depth: int
    line: int
    start: int
    end: int
    title: str = ""
    number: int = 0


_PLAN_TITLE = re.compile(r"(?:implementation\s+plan|plan(?=\s*:|$))\s*[:\-–—]?\s*(.*)", re.IGNORECASE | re.DOTALL)
_STEP_TITLE = re.compile(r"\W*step\s+#?([0-9]{1,9})(?!\w|\.[0-9])\s*[:.)\-–—]?\s*(.*)", re.IGNORECASE | re.DOTALL)
_SECTION_TITLES = {
    _Kind.OVERVIEW: re.compile(r"(?:plan |implementation )?(?:overview|summary)", re.IGNORECASE),
    _Kind.RISKS: re.compile(r"(?:potential |known )?risks?(?:\W.*)?", re.IGNORECASE | re.DOTALL),
    _Kind.OTHER: re.compile(r"(?:implementation |plan )?steps", re.IGNORECASE),
}
_BOLD_START = re.compile(r"(\*\*|__)(.*?)\1")


def _sections(document: Document) -> Iterator[_Section]:
    section = _Section(_Kind.TOP, depth=6, line=-1, start=0, end=0)
    titled = False
    for heading in document.headings.values():
        following = _section_at(heading, document)
        if following is None and not titled and section.kind is _Kind.TOP:
            following, titled = _top(heading), True
        if following is None:
            if heading.depth > section.depth or _is_text(heading, document):
                continue  # a part of this section
            following = _Section(_Kind.OTHER, heading.depth, heading.line, heading.end, heading.end)
        section.end = heading.line
        yield section
        section = following
    section.end = len(document.lines)
    yield section


def _section_at(heading: Heading, document: Document) -> _Section | None:
    """The section that a heading opens by its words; None when they say nothing, or it is no real heading."""
    if _is_text(heading, document):
        return None
    title = _BOLD_START.sub(r"\2", heading.text, count=1) if heading.text[:2] in {"**", "__"} else heading.text
    if step := _STEP_TITLE.fullmatch(title):
        return _Section(
            _Kind.STEP, heading.depth, heading.line, heading.end, heading.end, step[2].strip(), int(step[1])
        )
    for kind, words in _SECTION_TITLES.items():
        if words.fullmatch(title.rstrip(": ")):
            return _Section(kind, heading.depth, heading.line, heading.end, heading.end)
    return None


def _top(heading: Heading) -> _Section:
    named = _PLAN_TITLE.fullmatch(heading.text)
    title = named[1] if named else heading.text
    return _Section(_Kind.TOP, 6, heading.line, heading.end, heading.end, title.strip())


def _is_text(heading: Heading, document: Document) -> bool:
    """Whether lines above a `---` make a heading only because nobody left a blank line between them."""
    if heading.end - heading.line != 2:
        return heading.end - heading.line > 2
    line = document.lines[heading.line]
    return _FIELD.match(line) is not None or _field(line, _PLAN_FIELDS | _STEP_FIELDS, plain=True) is not None


def _written(document: Document, section: _Section) -> range:
    """The lines of a section's text, from 1; where there is none, the place behind its heading."""
    lines = document.between(section.start, section.end)
    written = [at for at, line in enumerate(lines, section.start + 1) if not line.separates]
    return range(written[0], written[-1] + 1) if written else range(section.start + 1, section.start + 1)


# ------------------------------------------------------------------------------------------ lines, fields

_FIELD = re.compile(
    r"[ \t]*(?:(?:[-*+•]|[0-9]{1,9}[.)])[ \t]+)?(?:\*\*|__)[ \t]*"
    r"(?P<name>[A-Za-z][A-Za-z ]{0,30}?)[ \t]*(?::[ \t]*(?:\*\*|__)|(?:\*\*|__)[ \t]*:)(?P<value>.*)",
    re.DOTALL,
)
_PLAIN_FIELD = re.compile(
    r"[ \t]*(?:(?:[-*+•]|[0-9]{1,9}[.)])[ \t]+)?(?P<mark>[*_`]?)"
    r"(?P<name>[A-Za-z][A-Za-z ]{0,30}?)[ \t]*(?::[ \t]*(?P=mark)|(?P=mark)[ \t]*:)(?P<value>.*)",
    re.DOTALL,
)
"""A label that is not bold, as `Files: a.py` or `*Files:* a.py`."""
_FIELD_HEADING = re.compile(r"[*_]*(?P<name>[A-Za-z ]+?)[*_]*\s*(?::[*_]*(?P<value>.*))?", re.DOTALL)
REMARK = re.compile(r"\([^()]*\)")
"""Words in brackets beside a number: they say nothing of it that is read."""
_CRITERIA = re.compile(
    r"\W*(?:none|n/a)?\W*|(?:acceptance|criteri(?:on|a)|\bac|and|to|through|[0-9]|[\s,;:&#`+._\-–—])*", re.IGNORECASE
)
_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*+•]|[0-9]{1,9}[.)])(?:[ \t]+(?P<text>.*)|$)", re.DOTALL)


def _field(line: str, known: dict[str, Field], *, plain: bool = False) -> tuple[Field, str] | None:
    found = _FIELD.match(line) if "**" in line or "__" in line else None
    return _named(found or (_PLAIN_FIELD.match(line) if plain and ":" in line else None), known)


def _named(found: re.Match[str] | None, known: dict[str, Field]) -> tuple[Field, str] | None:
    if found is None:
        return None
    name = known.get(" ".join(found["name"].lower().split()))
    return None if name is None else (name, (found["value"] or "").lstrip(" \t"))


def _read_top(plan: PlanText, document: Document, section: _Section) -> None:
    plan.title = plan.title or section.title
    text: list[Line] = []
    for at, line in enumerate(document.between(section.start, section.end), section.start + 1):
        found = None if line.code else _field(line.text, _PLAN_FIELDS, plain=True)
        if found is None or found[0] in plan.fields:
            text.append(line)
        else:
            plan.fields[found[0]] = found[1]
            plan.field_lines[found[0]] = at
    if section.line >= 0:  # words above the first heading introduce the file, not the plan
        plan.introduction = prose(text)
        plan.overview.append(plan.introduction)


def _risks(document: Document, section: _Section) -> Iterator[str]:
    """Each list item with all its lines, and each paragraph outside the list."""
    item: list[Line] = []
    indent = width = 0
    after_blank = True
    for line in document.between(section.start, section.end):
        bullet = None if line.code or is_rule(line.text) else _BULLET.match(line.text)
        deeper = line.text.startswith((" ", "\t"))
        if bullet and (not item or len(bullet["indent"]) <= indent):
            yield prose(item)
            indent, width = len(bullet["indent"]), len(line.text) - len(bullet["text"] or "")
            item = [Line(bullet["text"] or "")]
        elif not deeper and line.text and (after_blank or is_rule(line.text)) and not line.code:
            yield prose(item)
            indent, width = 0, 0
            item = [line]
        else:
            item.append(Line(_dedented(line.text, width), line.code))
        after_blank = not line.text.strip(" \t")
    yield prose(item)


def _dedented(line: str, width: int) -> str:
    return line[min(width, len(line) - len(line.lstrip(" "))) :]


# ------------------------------------------------------------------------------------------------- a step


class _StepReader:
    """Reads one step line by line. Every line is a field, an affected file, or description."""

    def __init__(self, document: Document, section: _Section) -> None:
        self.document = document
        self.section = section
        end = max(_written(document, section).stop - 1, section.start)
        self.step = StepText(section.number, section.title, section.line + 1, end, section.end, section.depth)
        self.text: list[Line] = []
        self.open: Field | None = None
        """The field whose value may go on in the lines that follow."""
        self.labelled_by_heading = False
        self.apart = False
        """Whether a blank line came after its label, so that a paragraph is not its value."""
        self.file_indent: int | None = None

        lines = document.between(section.start, section.end)
        self.has_plain_labels = not any(_field(line.text, _STEP_FIELDS) for line in lines if not line.code)
        """A label counts without being bold only where none is bold: else it may be a line of the description."""

    def read(self) -> StepText:
        start = self.section.start
        for at, line in enumerate(self.document.between(start, self.section.end), start):
            found = self._field_at(at, line)
            if found is None:
                self._take(line)
            else:
                self._start(*found)
                self.labelled_by_heading = at in self.document.headings
        self.step.description = prose(self.text)
        return self.step

    def _field_at(self, at: int, line: Line) -> tuple[Field, str] | None:
        if line.code:
            return None
        heading = self.document.headings.get(at)
        if heading is not None and heading.end - heading.line == 1:
            found = _named(_FIELD_HEADING.fullmatch(heading.text), _STEP_FIELDS)
        else:
            found = _field(line.text, _STEP_FIELDS, plain=self.has_plain_labels)
        if found is None or found[0] in self.step.fields:
            return None  # said twice: the second is kept as text
        if found[0] is Field.SERVES and not _are_criteria(found[1]):
            return None  # "the whole team": text, whatever its label
        return found

    def _start(self, name: Field, value: str) -> None:
        self.step.fields[name] = value
        self.apart = False
        self.open = name if name in {Field.DESCRIPTION, Field.FILES} or not value else None
        if name is Field.DESCRIPTION:
            self._separate()
            self.text.append(Line(value, code=True))
        elif name is Field.FILES:
            self.file_indent = None
            self.step.files.extend(_files_on_one_line(value))

    def _take(self, line: Line) -> None:
        match self.open:
            case None if not line.text:
                self._separate()
            case None | Field.DESCRIPTION:
                self.text.append(line)
            case Field.FILES:
                self._take_file(line)
            case Field.VERIFY:
                self._take_check(line)
            case _:
                self._take_value(line)

    def _separate(self) -> None:
        if self.text and self.text[-1].text:
            self.text.append(Line(""))

    def _close(self, line: Line) -> None:
        self.open = None
        self._separate()
        self.text.append(line)

    def _take_file(self, line: Line) -> None:
        bullet = None if line.code or is_rule(line.text) else _BULLET.match(line.text)
        if bullet is None and not line.text.strip():
            return
        indent = len(bullet["indent"]) if bullet else len(line.text) - len(line.text.lstrip())
        if self.step.files and self.file_indent is not None and indent > self.file_indent + 1 and not line.code:
            path, note = self.step.files[-1]
            more = (bullet["text"] or "") if bullet else line.text
            self.step.files[-1] = (path, one_line(f"{note} {more}"))
        elif bullet:
            self.file_indent = indent
            self.step.files.extend(_file(bullet["text"] or ""))
        elif line.text.lstrip().startswith("`") and not line.text.lstrip().startswith("```"):
            self.step.files.extend(_files_on_one_line(line.text.strip()))
        else:
            self._close(line)

    def _take_value(self, line: Line) -> None:
        """The value on the lines below its label: one line, or for the dependencies a list."""
        assert self.open is not None
        bullet = None if line.code or is_rule(line.text) else _BULLET.match(line.text)
        value = (bullet["text"] or "") if bullet else line.text
        known = self.step.fields[self.open]
        many = bullet is not None and self.open in {Field.DEPENDENCIES, Field.SERVES}
        if not value.strip():
            self.apart = not self.labelled_by_heading
        elif line.code or is_rule(line.text) or ((known or self.apart) and not many) or self._is_no_value(value):
            self._close(line)
        else:
            self.step.fields[self.open] = f"{known}, {value}" if known else value
            self.open = self.open if many else None

    def _is_no_value(self, value: str) -> bool:
        return self.open is Field.SERVES and not _are_criteria(value)

    def _take_check(self, line: Line) -> None:
        """The command below its label: on one line, or in a fence (then several lines are all to succeed)."""
        text = line.text.strip()
        known = self.step.fields[Field.VERIFY]
        fence = text.startswith(("```", "~~~"))
        if line.code:
            if fence:
                self.open = None
            elif text and not text.startswith("#"):
                self.step.fields[Field.VERIFY] = f"{known} && {text}" if known else text
        elif not text:
            self.apart = not self.labelled_by_heading
        elif known or is_rule(text) or (self.apart and not fence and not text.startswith("`")):
            self._close(line)
        elif not fence:
            bullet = _BULLET.match(line.text)
            self.step.fields[Field.VERIFY] = (bullet["text"] or "") if bullet else text
            self.open = None


def _are_criteria(value: str) -> bool:
    return _CRITERIA.fullmatch(REMARK.sub("", value)) is not None


_NO_FILES = re.compile(
    r"(?:none|nothing|nil|n/a|tbd|no files?|not (?:specified|applicable|known)|unspecified)[.,;:!]?(?:\s.*)?|[-–—]?",
    re.IGNORECASE | re.DOTALL,
)
"""Words that say that there are no files, with whatever follows: `None specified`."""
_CHECKBOX = re.compile(r"\[[ xX]\][ \t]+")
_PATH_AND_NOTE = re.compile(r"(?P<path>.*?)(?:[ \t]+(?P<note>\(.*\)|[-–—:][ \t].*)|:[ \t]+(?P<rest>.*))?", re.DOTALL)


def _files_on_one_line(value: str) -> Iterator[tuple[str, str]]:
    """Files separated by commas; a comma in a code span is part of the path."""
    if _NO_FILES.fullmatch(value.strip()):
        return
    covered = [(span.start, span.end) for span in code_spans(value)]
    start = 0
    for comma in re.finditer(",|$", value):
        if not any(first <= comma.start() < end for first, end in covered):
            yield from _file(value[start : comma.start()])
            start = comma.end()


def _file(item: str) -> Iterator[tuple[str, str]]:
    """The path and the note of a list item, or nothing where it says that there are no files."""
    item = _CHECKBOX.sub("", item.strip(), count=1) if item.startswith("[") else item.strip()
    span = next(code_spans(item), None)
    if span is not None:
        before, path, after = item[: span.start], span.text, item[span.end :]
        note = one_line(f"{_note(before)} {_note(after)}")
    else:
        found = _PATH_AND_NOTE.fullmatch(item)
        assert found is not None
        path, note = found["path"].strip("* \t"), _note(found["note"] or found["rest"] or "")
    if span is not None or not _NO_FILES.fullmatch(item):
        yield path, note


def _note(text: str) -> str:
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and len(text) > 1:
        return text[1:-1]
    return text.strip("*").lstrip("-–—:").rstrip(":").strip()
