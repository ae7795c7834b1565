"""The one parser of plans: from plan.md as people and models write it, to what it says and which lines say it.

A plan is read from what comes out, checking names its lines, and rewriting replaces them. It reads tolerantly: any text
is a plan, if an empty one. Lines are counted from 0.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct, field

from cdd_agent.tickets.markdown import Document, Heading, Line, is_rule, parse, prose, split_lines
from cdd_agent.tickets.plan_labels import PLAN_FIELDS, Field, field_in, has_label
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.plan_wrapping import plan_lines
from cdd_agent.tickets.step_reading import StepReader


class ParsedStep(Struct, frozen=True):
    """A step, and where it stands."""

    step: PlanStep
    depth: int
    """Of its heading."""
    written: range
    """From its heading to the last line that is neither blank nor a thematic break."""
    section: range
    """From its heading to the next section."""


class ParsedPlan(Struct):
    """The parts of a plan, and where they stand."""

    source: list[str]
    """All lines of the text, with their ends."""
    lines: range
    """The plan's own: all, but for those that it is wrapped in."""
    title: str = ""
    fields: dict[Field, str] = field(default_factory=dict)
    field_lines: dict[Field, int] = field(default_factory=dict)
    introduction: str = ""
    """The words below the title: the beginning of the overview."""
    overview: list[str] = field(default_factory=list)
    overview_at: range | None = None
    """The lines below the first heading of an overview, without blank ones around them."""
    steps: list[ParsedStep] = field(default_factory=list)
    risks: list[str] = field(default_factory=list)
    risks_at: range | None = None
    top_end: int = 0
    """Where the first section begins."""


def parse_plan(text: str) -> ParsedPlan:
    """Raises `BadInput` for Markdown that nests too deeply, and for dependencies that cannot be read."""
    source = split_lines(text)
    plan = ParsedPlan(source, plan_lines(source))
    above = "\n" * plan.lines.start  # so that each line has its number in the whole text
    document = parse(above + "".join(source[plan.lines.start : plan.lines.stop]))
    numbers: list[int] = []
    for section in _sections(document, plan.lines.stop):
        written = document.written(section.body)
        match section.kind:
            case _Kind.TOP:
                _read_top(plan, document, section)
            case _Kind.OVERVIEW:
                plan.overview.append(prose(document.at(section.body)))
                plan.overview_at = written if plan.overview_at is None else plan.overview_at
            case _Kind.RISKS:
                plan.risks.extend(_risks(document.at(section.body)))
                plan.risks_at = written if plan.risks_at is None else plan.risks_at
            case _Kind.STEP:
                line = section.line
                step = StepReader(document, section.body).read(section.number, section.title, line + 1, numbers)
                at = range(line, written.stop), range(line, section.body.stop)
                plan.steps.append(ParsedStep(step, section.depth, *at))
                numbers.append(section.number)
            case _Kind.OTHER:
                pass
    plan.overview = [text for text in plan.overview if text]
    plan.risks = [risk for risk in plan.risks if risk]
    return plan


class _Kind(Enum):
    TOP = auto()
    """All above the first section: the plan's title and fields."""
    OVERVIEW = auto()
    RISKS = auto()
    STEP = auto()
    OTHER = auto()


class _Section(Struct):
    kind: _Kind
    depth: int
    line: int
    """Of its heading; -1 where there is none."""
    body: range
    """The lines below its heading."""
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


def _sections(document: Document, end: int) -> Iterator[_Section]:
    section = _Section(_Kind.TOP, 6, -1, range(end))
    is_titled = False
    for heading in document.headings.values():
        if _is_text(heading, document):
            continue
        following = _section_named(heading, end)
        if following is None and section.kind is _Kind.TOP and not is_titled:
            named = _PLAN_TITLE.fullmatch(heading.text)
            title = (named[1] if named else heading.text).strip()
            following, is_titled = _Section(_Kind.TOP, 6, heading.line, range(heading.end, end), title), True
        if following is None:
            if heading.depth > section.depth:
                continue  # a part of this section
            following = _Section(_Kind.OTHER, heading.depth, heading.line, range(heading.end, end))
        section.body = range(section.body.start, heading.line)
        yield section
        section = following
    yield section


def _is_text(heading: Heading, document: Document) -> bool:
    """Whether lines above a `---` make a heading only because nobody left a blank line between them."""
    if heading.end - heading.line == 2:
        return has_label(document.lines[heading.line])
    return heading.end - heading.line > 2


def _section_named(heading: Heading, end: int) -> _Section | None:
    """The section that a heading opens by its words, up to `end`; None when they say nothing."""
    title = _BOLD_START.sub(r"\2", heading.text, count=1) if heading.text[:2] in {"**", "__"} else heading.text
    body = range(heading.end, end)
    if step := _STEP_TITLE.fullmatch(title):
        return _Section(_Kind.STEP, heading.depth, heading.line, body, step[2].strip(), int(step[1]))
    for kind, words in _SECTION_TITLES.items():
        if words.fullmatch(title.rstrip(": ")):
            return _Section(kind, heading.depth, heading.line, body)
    return None


def _read_top(plan: ParsedPlan, document: Document, section: _Section) -> None:
    plan.title = plan.title or section.title
    plan.top_end = section.body.stop
    text: list[Line] = []
    for at, line in zip(section.body, document.at(section.body), strict=True):
        found = None if line.code else field_in(line.text, PLAN_FIELDS, plain=True)
        if found is None or found[0] in plan.fields:
            text.append(line)
        else:
            plan.fields[found[0]] = found[1]
            plan.field_lines[found[0]] = at
    if section.line >= 0:  # words above the first heading introduce the file, not the plan
        plan.introduction = prose(text)
        plan.overview.append(plan.introduction)


def _risks(lines: list[Line]) -> Iterator[str]:
    """Each list item with all its lines, and each paragraph outside the list."""
    item: list[Line] = []
    indent = width = 0
    after_blank = True
    for line in lines:
        deeper = line.text.startswith((" ", "\t"))
        if line.item and (not item or line.item[0] <= indent):
            yield prose(item)
            indent, text = line.item
            width = len(line.text) - len(text)
            item = [Line(text)]
        elif not deeper and line.text and (after_blank or is_rule(line.text)) and not line.code:
            yield prose(item)
            indent, width = 0, 0
            item = [line]
        else:
            dedented = line.text[min(width, len(line.text) - len(line.text.lstrip(" "))) :]
            item.append(Line(dedented, line.code))
        after_blank = not line.text.strip(" \t")
    yield prose(item)
