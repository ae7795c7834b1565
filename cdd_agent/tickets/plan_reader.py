"""Read plan.md as people and models write it: the plan, and the lines of its parts.

Any text is a plan, if an empty one. Lines are counted from 0.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto

from msgspec import Struct, field

from cdd_agent.tickets.line_edits import split_lines
from cdd_agent.tickets.markdown import (
    Document,
    Heading,
    Line,
    code_spans,
    parse_markdown,
    prose,
)
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_fence import plan_lines
from cdd_agent.tickets.plan_labels import PLAN_FIELDS, Field, find_label, has_label
from cdd_agent.tickets.step_reader import read_step


class ParsedStep(Struct, frozen=True):
    """A step and its lines."""

    step: PlanStep
    depth: int
    """Depth of its heading."""
    written: range
    """From its heading to the last line that is neither blank nor a thematic break."""
    section: range
    """From its heading to the next section."""


class ParsedPlan(Struct):
    """The parts of a plan and their lines."""

    source: list[str]
    """All lines of the text, with their line ends."""
    lines: range
    """The lines of the plan, without the code block around it."""
    title: str = ""
    fields: dict[Field, str] = field(default_factory=dict)
    field_lines: dict[Field, int] = field(default_factory=dict)
    introduction: str = ""
    """The text below the title, which begins the overview."""
    overview: list[str] = field(default_factory=list)
    overview_lines: range | None = None
    """The text below the first overview heading."""
    risks: list[str] = field(default_factory=list)
    risk_lines: range | None = None
    steps: list[ParsedStep] = field(default_factory=list)
    top_end: int = 0
    """The line where the first section begins."""

    def to_plan(self) -> ImplementationPlan:
        return ImplementationPlan(
            ticket_slug=_without_ticks(self.fields.get(Field.TICKET, "")),
            ticket_title=self.title,
            ticket_type=_without_ticks(self.fields.get(Field.TYPE, "")),
            overview="\n\n".join(self.overview),
            total_complexity=self.fields.get(Field.COMPLEXITY, ""),
            total_estimated_time=self.fields.get(Field.ESTIMATED_TIME, ""),
            risks=tuple(self.risks),
            steps=tuple(parsed.step for parsed in self.steps),
        )


def read_plan(text: str) -> ImplementationPlan:
    """Read tolerantly; `ImplementationPlan.check` reports whether the plan can run.

    Raises `BadInput` for Markdown that is nested too deeply, and for dependencies that
    are not step numbers.
    """
    return parse_plan(text).to_plan()


def parse_plan(text: str) -> ParsedPlan:
    """Read a plan with the lines of its parts. Raises `BadInput` as `read_plan`
    does.
    """
    source = split_lines(text)
    plan = ParsedPlan(source, plan_lines(source))
    # Blank lines in place of the text before the plan keep the line numbers right.
    above = "\n" * plan.lines.start
    document = parse_markdown(
        above + "".join(source[plan.lines.start : plan.lines.stop])
    )
    for section in _split_sections(document, plan.lines.stop):
        lines = document.lines[section.body.start : section.body.stop]
        written = document.without_separators(section.body)
        match section.kind:
            case _Kind.TOP:
                _read_top(plan, section, lines)
            case _Kind.OVERVIEW:
                plan.overview.append(prose(lines))
                plan.overview_lines = (
                    written if plan.overview_lines is None else plan.overview_lines
                )
            case _Kind.RISKS:
                plan.risks += _read_risks(lines)
                plan.risk_lines = (
                    written if plan.risk_lines is None else plan.risk_lines
                )
            case _Kind.STEP:
                plan.steps.append(_parse_step(plan, section, document))
    plan.overview = list(filter(None, plan.overview))
    return plan


class _Kind(Enum):
    TOP = auto()
    """Everything above the first section: the title and the fields of the plan."""
    OVERVIEW = auto()
    RISKS = auto()
    STEP = auto()
    OTHER = auto()


class _Section(Struct):
    kind: _Kind
    depth: int
    line: int
    """Line of its heading; -1 if it has none."""
    body: range
    title: str = ""
    number: int = 0


_TOP_DEPTH = 6  # no heading is deeper, so no heading is a part of the top
_PLAN_TITLE = re.compile(
    r"(?:implementation\s+plan|plan(?=\s*:|$))\s*[:\-–—]?\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)
_STEP_TITLE = re.compile(
    r"\W*step\s+#?([0-9]{1,9})(?!\w|\.[0-9])\s*[:.)\-–—]?\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)
_SECTION_TITLES = {
    _Kind.OVERVIEW: re.compile(
        r"(?:plan |implementation )?(?:overview|summary)", re.IGNORECASE
    ),
    _Kind.RISKS: re.compile(
        r"(?:potential |known )?risks?(?:\W.*)?", re.IGNORECASE | re.DOTALL
    ),
    _Kind.OTHER: re.compile(r"(?:implementation |plan )?steps", re.IGNORECASE),
}
_BOLD_START = re.compile(r"(\*\*|__)(.*?)\1")


def _split_sections(document: Document, end: int) -> list[_Section]:
    top = _Section(_Kind.TOP, _TOP_DEPTH, -1, range(end))
    sections = [top]
    for heading in document.headings.values():
        if _is_paragraph(heading, document):
            continue
        body = range(heading.end, end)
        section = _named_section(heading, body)
        if section is None and sections == [top]:
            match = _PLAN_TITLE.fullmatch(heading.text)
            title = match[1] if match else heading.text
            section = _Section(_Kind.TOP, _TOP_DEPTH, heading.line, body, title.strip())
        if section is None:
            if heading.depth > sections[-1].depth:
                continue
            section = _Section(_Kind.OTHER, heading.depth, heading.line, body)
        sections[-1].body = range(sections[-1].body.start, heading.line)
        sections.append(section)
    return sections


def _parse_step(plan: ParsedPlan, section: _Section, document: Document) -> ParsedStep:
    earlier = [parsed.step.number for parsed in plan.steps]
    step = read_step(
        document, section.body, section.number, section.title, section.line, earlier
    )
    end = document.without_separators(section.body).stop
    return ParsedStep(
        step,
        section.depth,
        range(section.line, end),
        range(section.line, section.body.stop),
    )


def _is_paragraph(heading: Heading, document: Document) -> bool:
    """True if text above a `---` is a heading only because no blank line is between
    them.
    """
    lines = heading.end - heading.line
    return lines > 2 or (lines == 2 and has_label(document.lines[heading.line].text))


def _named_section(heading: Heading, body: range) -> _Section | None:
    """Return the section that a heading opens by its words, or None."""
    title = (
        _BOLD_START.sub(r"\2", heading.text, count=1)
        if heading.text.startswith(("**", "__"))
        else heading.text
    )
    step = _STEP_TITLE.fullmatch(title)
    if step:
        return _Section(
            _Kind.STEP, heading.depth, heading.line, body, step[2].strip(), int(step[1])
        )
    for kind, words in _SECTION_TITLES.items():
        if words.fullmatch(title.rstrip(": ")):
            return _Section(kind, heading.depth, heading.line, body)
    return None


def _read_top(plan: ParsedPlan, section: _Section, lines: Sequence[Line]) -> None:
    plan.title = plan.title or section.title
    plan.top_end = section.body.stop
    text = []
    for number, line in enumerate(lines, section.body.start):
        label = None if line.is_code else find_label(line.text, PLAN_FIELDS)
        if label is None or label.field in plan.fields:
            text.append(line)
        else:
            plan.fields[label.field] = label.value
            plan.field_lines[label.field] = number
    # Text above the first heading introduces the file, not the plan.
    if section.line >= 0:
        plan.introduction = prose(text)
        plan.overview.append(plan.introduction)


def _read_risks(lines: Sequence[Line]) -> list[str]:
    """Return each list item with its continuation lines, and each paragraph outside the
    list.
    """
    risks: list[list[Line]] = [[]]
    list_indent = 0
    text_column = 0
    is_after_blank = True
    for line in lines:
        text = line.text
        item = line.item
        if item and (not risks[-1] or item.indent <= list_indent):
            list_indent = item.indent
            text_column = len(text) - len(item.text)
            risks.append([Line(item.text)])
        elif _starts_paragraph(line, is_after_blank=is_after_blank):
            list_indent = text_column = 0
            risks.append([line])
        else:
            margin = len(text) - len(text.lstrip(" "))
            risks[-1].append(Line(text[min(text_column, margin) :], line.is_code))
        is_after_blank = not text.strip(" \t")
    return list(filter(None, map(prose, risks)))


def _starts_paragraph(line: Line, *, is_after_blank: bool) -> bool:
    if not line.text or line.is_code or line.text.startswith((" ", "\t")):
        return False
    return is_after_blank or line.is_rule


def _without_ticks(value: str) -> str:
    """Return the code span with which a value begins, else the whole value."""
    spans = code_spans(value)
    return spans[0].text if spans and spans[0].start == 0 else value
