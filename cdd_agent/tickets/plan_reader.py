"""Reads plan.md as users and models write it, with the lines of its parts.

Every text is a plan, perhaps empty. Each non-blank line has one owner: a step, a field,
prose, or a finding. Lines count from 0.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from enum import Enum, auto

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.findings import Findings, line_runs, quote
from cdd_agent.tickets.line_edits import split_lines
from cdd_agent.tickets.markdown import (
    Document,
    Line,
    leading_code,
    parse_markdown,
    prose,
)
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_fence import plan_lines
from cdd_agent.tickets.plan_headings import (
    PlanHeading,
    Title,
    find_headings,
    read_step_line,
)
from cdd_agent.tickets.plan_labels import (
    Field,
    read_heading_label,
    read_label,
)
from cdd_agent.tickets.step_reader import (
    StepHeading,
    StepSection,
    find_stray_check,
    has_only_checks,
    has_own_fields,
    names_files,
    names_work,
    read_step,
)


class Owner(Enum):
    STEP = auto()
    """A step's heading."""
    FIELD = auto()
    """A field with its label."""
    PROSE = auto()
    FINDING = auto()


class ParsedStep(Struct):
    step: PlanStep
    depth: int
    written: range
    """From its heading on, without trailing blank lines and thematic breaks."""
    section: range
    """From its heading to the next section."""


class ParsedPlan(Struct):
    source: list[str]
    """All lines of the text, with line ends."""
    lines: range
    """Lines of the plan, inside a surrounding code block."""
    owners: dict[int, Owner] = field(default_factory=dict)
    """Line → its owner. Blank lines have none."""
    title: str = ""
    fields: dict[Field, str] = field(default_factory=dict)
    field_lines: dict[Field, int] = field(default_factory=dict)
    introduction: str = ""
    """The text below the title, which begins the overview."""
    overview: list[str] = field(default_factory=list)
    overview_lines: range | None = None
    """Below the first overview heading."""
    risks: list[str] = field(default_factory=list)
    risk_lines: range | None = None
    notes: list[str] = field(default_factory=list)
    """Text of all other sections, with headings."""
    steps: list[ParsedStep] = field(default_factory=list)
    steps_end: int | None = None
    """End of the section above the first step."""
    top_end: int = 0
    """First line of the first section."""
    findings: Findings = field(default_factory=Findings)

    def to_plan(self) -> ImplementationPlan:
        plan = ImplementationPlan(
            ticket_slug=_without_ticks(self.fields.get(Field.TICKET, "")),
            ticket_title=self.title,
            ticket_type=_without_ticks(self.fields.get(Field.TYPE, "")),
            overview="\n\n".join(self.overview),
            total_complexity=self.fields.get(Field.COMPLEXITY, ""),
            total_estimated_time=self.fields.get(Field.ESTIMATED_TIME, ""),
            risks=tuple(self.risks),
            steps=tuple(parsed.step for parsed in self.steps),
            notes="\n\n".join(self.notes),
        )
        return replace(plan, findings=self.findings.to_problems(plan))


def read_plan(text: str) -> ImplementationPlan:
    """Read tolerantly; `ImplementationPlan.check` reports whether the plan can run.

    Raises `BadInput` for Markdown that is nested too deeply.
    """
    return parse_plan(text).to_plan()


def parse_plan(text: str) -> ParsedPlan:
    """Read a plan with the lines of its parts. Raises `BadInput` as `read_plan`
    does.
    """
    source = split_lines(text)
    plan = ParsedPlan(source, plan_lines(source))
    # Blank lines replace the text above, to keep line numbers.
    above = "\n" * plan.lines.start
    document = parse_markdown(
        above + "".join(source[plan.lines.start : plan.lines.stop])
    )
    reader = _PlanReader(document, plan)
    reader.read()
    plan.overview = list(filter(None, plan.overview))
    plan.notes = list(filter(None, plan.notes))
    steps = plan.to_plan().steps  # numbered, with dependencies
    for parsed, step in zip(plan.steps, steps, strict=True):
        parsed.step = step
    return plan


class _Kind(Enum):
    TOP = auto()
    """All above the first section: title and fields of the plan."""
    OVERVIEW = auto()
    RISKS = auto()
    STEP = auto()
    STRUCK = auto()
    """A step that is struck out."""
    STEPS = auto()
    """The heading above the steps."""
    GROUP = auto()
    """A step that has only sub-steps."""
    NOTES = auto()
    OTHER = auto()


_KINDS = {
    Title.OVERVIEW: _Kind.OVERVIEW,
    Title.RISKS: _Kind.RISKS,
    Title.STEPS: _Kind.STEPS,
    Title.NOTES: _Kind.NOTES,
}
_TOP_DEPTH = 100  # deeper than any heading, so that none is part of the top


class _Section(Struct):
    kind: _Kind
    depth: int
    body: range
    heading: PlanHeading | None = None
    title: str = ""
    step: StepHeading | None = None
    inner_headings: list[PlanHeading] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.heading.line if self.heading else self.body.start

    @property
    def parts(self) -> list[tuple[PlanHeading, range]]:
        if self.heading is None:
            return []
        headings = [self.heading, *self.inner_headings]
        ends = [*(heading.line for heading in self.inner_headings), self.body.stop]
        parts = []
        for heading, end in zip(headings, ends, strict=True):
            parts.append((heading, range(heading.end, end)))
        return parts


_PLAN_TITLE = Pattern(
    r"(?:implementation\s+plan|plan(?=\s*:|$))\s*[:\-–—]?\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)


class _PlanReader(Struct):
    document: Document
    plan: ParsedPlan
    headings: list[PlanHeading] = field(default_factory=list)

    def read(self) -> None:
        sections = self._split_sections()
        steps = [section for section in sections if section.kind is _Kind.STEP]
        labels = [section.step.label for section in steps if section.step]
        unknown: dict[int, str] = {}
        for section in sections:
            match section.kind:
                case _Kind.TOP:
                    self._read_top(section)
                case _Kind.OVERVIEW:
                    self._read_overview(section)
                case _Kind.RISKS:
                    self._read_risks(section)
                case _Kind.STEP:
                    unknown |= self._read_step(section, labels)
                case _Kind.STRUCK:
                    self._skip_struck(section)
                case _:
                    self._read_other(section)
        for section in sections:
            if section.kind not in {_Kind.STEP, _Kind.STRUCK}:
                self._find_stray_checks(section)
        self._depend_on_groups(sections)
        self._report_unknown_labels(unknown)
        self._find_lost_steps(sections)
        self._find_step_lines(sections, labels)
        self._find_wrong_ids(steps)
        self._report_outside_lines()
        self._set_owners(steps)

    # Sections

    def _split_sections(self) -> list[_Section]:
        end = self.plan.lines.stop
        top = _Section(_Kind.TOP, _TOP_DEPTH, range(end))
        sections = [top]
        headings = find_headings(self.document, range(end))
        self.headings = headings
        for index, heading in enumerate(headings):
            section = self._open_section(headings, index, sections)
            if section is None:
                sections[-1].inner_headings.append(heading)
                continue
            sections[-1].body = range(sections[-1].body.start, heading.line)
            sections.append(section)
        for position, section in enumerate(sections):
            if self._is_group(sections, position):
                section.kind = _Kind.GROUP
        return sections

    def _open_section(
        self, headings: Sequence[PlanHeading], index: int, sections: list[_Section]
    ) -> _Section | None:
        """None if the heading belongs to the open section."""
        heading = headings[index]
        current = sections[-1]
        body = range(heading.end, self.plan.lines.stop)
        if len(sections) == 1 and self._is_plan_title(headings):
            match = _PLAN_TITLE.fullmatch(heading.text)
            title = match[1] if match else heading.text
            return _Section(_Kind.TOP, _TOP_DEPTH, body, heading, title.strip())
        is_deeper = heading.depth > current.depth
        is_in_step = is_deeper and current.kind is _Kind.STEP
        step = heading.to_step()
        if step:
            if is_in_step and self._is_prose_step(headings, index, current):
                return None
            return _Section(_Kind.STEP, heading.depth, body, heading, step=step)
        if heading.is_struck:
            return _Section(_Kind.STRUCK, heading.depth, body, heading)
        if is_in_step:
            return None
        if heading.title:
            return _Section(_KINDS[heading.title], heading.depth, body, heading)
        if is_deeper:
            return None
        return _Section(_Kind.OTHER, heading.depth, body, heading)

    def _is_plan_title(self, headings: Sequence[PlanHeading]) -> bool:
        """True for the first heading, unless it begins a step or section of an untitled
        plan.
        """
        heading = headings[0]
        if heading.to_step() is None:
            return heading.title is None and not heading.is_struck
        return heading.depth == 1 and any(
            other.depth > 1 and other.to_step() for other in headings[1:]
        )

    def _is_prose_step(
        self, headings: Sequence[PlanHeading], index: int, parent: _Section
    ) -> bool:
        """True if a sub-step without fields is prose of the step around it.

        Step 2 below step 1 is no sub-step, despite a deeper heading.
        """
        heading = headings[index]
        step = heading.to_step()
        has_sub_steps = any(inner.to_step() for inner in parent.inner_headings)
        if step and parent.step and step.continues(parent.step) and not has_sub_steps:
            return False
        end = self.plan.lines.stop
        for other in headings[index + 1 :]:
            if other.depth <= heading.depth or other.to_step():
                end = other.line
                break
        return not has_own_fields(self.document, range(heading.end, end))

    def _is_group(self, sections: Sequence[_Section], position: int) -> bool:
        """True for a step with only sub-steps below."""
        section = sections[position]
        following = sections[position + 1 : position + 2]
        if section.kind is not _Kind.STEP or not following:
            return False
        has_text = any(
            not self.document.lines[number].is_separator for number in section.body
        )
        first, step = following[0], following[0].step
        if section.step is None or step is None or has_text:
            return False
        return first.depth > section.depth and not step.continues(section.step)

    # The parts

    def _read_top(self, section: _Section) -> None:
        plan = self.plan
        plan.title = plan.title or section.title
        plan.top_end = section.body.stop
        text = []
        for number in section.body:
            line = self.document.lines[number]
            label = None if line.is_code else read_label(line.text)
            if label is None or label.plan_field is None:
                text.append(line)
            elif label.plan_field in plan.fields:
                text.append(line)
                problem = f"the plan has a second `{label.name}`, which is read as text"
                plan.findings.warn("duplicate_field", number, problem)
            else:
                plan.fields[label.plan_field] = label.value
                plan.field_lines[label.plan_field] = number
        if section.heading:
            plan.introduction = prose(text)
            plan.overview.append(plan.introduction)
        else:
            # Text above the first heading introduces the file, not the plan.
            plan.notes.append(prose(text))

    def _read_overview(self, section: _Section) -> None:
        self.plan.overview.append(prose(self._lines(section.body)))
        if self.plan.overview_lines is None:
            self.plan.overview_lines = self.document.without_separators(section.body)

    def _read_risks(self, section: _Section) -> None:
        self.plan.risks += _read_risks(self._lines(section.body))
        if self.plan.risk_lines is None:
            self.plan.risk_lines = self.document.without_separators(section.body)

    def _read_step(self, section: _Section, labels: Sequence[str]) -> dict[int, str]:
        assert section.step
        plan = self.plan
        text = read_step(
            self.document,
            StepSection(section.step, section.body, len(plan.steps), labels),
            plan.findings,
        )
        end = self.document.without_separators(section.body).stop
        plan.steps.append(
            ParsedStep(
                text.step,
                section.depth,
                range(section.start, end),
                range(section.start, section.body.stop),
            )
        )
        plan.owners.update(dict.fromkeys(text.field_lines, Owner.FIELD))
        return text.unknown_labels

    def _depend_on_groups(self, sections: Sequence[_Section]) -> None:
        """Replace dependencies on a group by its sub-steps."""
        groups: dict[str, list[str]] = {}
        open_group: _Section | None = None
        for section in sections:
            if open_group and section.depth <= open_group.depth:
                open_group = None
            if section.kind is _Kind.GROUP:
                open_group = section
            elif open_group and open_group.step and section.step:
                members = groups.setdefault(open_group.step.label.casefold(), [])
                members.append(section.step.label)
        for parsed in self.plan.steps if groups else ():
            labels: list[str] = []
            for label in parsed.step.missing_dependencies:
                labels += groups.get(label.casefold(), [label])
            parsed.step = replace(parsed.step, missing_dependencies=tuple(labels))

    def _read_other(self, section: _Section) -> None:
        """Add the section to the notes, without the headings "Steps" and "Notes"."""
        if section.kind is _Kind.STEPS and self.plan.steps_end is None:
            self.plan.steps_end = section.body.stop
        has_heading = section.kind in {_Kind.OTHER, _Kind.GROUP}
        start = section.start if has_heading else section.body.start
        self.plan.notes.append(prose(self._lines(range(start, section.body.stop))))

    def _skip_struck(self, section: _Section) -> None:
        lines = self._written(range(section.start, section.body.stop))
        heading = quote(self.document.lines[section.start].text)
        self.plan.findings.warn(
            "struck_step",
            section.start,
            f"{heading} is struck out, so it does not run ({line_runs(lines)})",
        )
        self.plan.owners.update(dict.fromkeys(lines, Owner.FINDING))

    # Findings

    def _find_stray_checks(self, section: _Section) -> None:
        known_labels: set[str] = set()
        for parsed in self.plan.steps:
            known_labels.update(parsed.step.checks or ())
        strays = []
        for number in section.body:
            strays.append(self._find_stray_field(number, section, known_labels))
        for heading, body in section.parts:
            label = read_heading_label(heading.text)
            if label and label.field is Field.VERIFY:
                strays.append(find_stray_check(self.document, body, known_labels))
        for stray in strays:
            if stray is not None:
                self._report_stray_check(stray)

    def _find_stray_field(
        self, number: int, section: _Section, known_labels: Collection[str]
    ) -> int | None:
        """Return the line of a check in a `**Verify:**` outside the steps."""
        line = self.document.lines[number]
        if line.is_code or number in self.plan.field_lines.values():
            return None
        label = read_label(line.text)
        if label is None or label.field is not Field.VERIFY or not label.is_bold:
            return None
        if not label.value and not label.is_loose_check:
            below = range(number + 1, section.body.stop)
            return find_stray_check(self.document, below, known_labels)
        if "`" not in label.value or has_only_checks(label.value, known_labels):
            return None
        return number

    def _report_stray_check(self, number: int) -> None:
        text = (
            f"{quote(self.document.lines[number].text)} is a check outside the steps,"
            " so nothing runs it; move it to the `**Verify:**` of a step"
        )
        self._report_line("stray_check", number, text)

    def _find_lost_steps(self, sections: Sequence[_Section]) -> None:
        """Report headings that resemble a step but are not read as one."""
        for position, section in enumerate(sections):
            if section.kind in {_Kind.TOP, _Kind.STEP, _Kind.STRUCK, _Kind.GROUP}:
                continue
            has_steps = _contains_steps(sections, position)
            for heading, body in section.parts:
                is_around_steps = has_steps and heading is section.heading
                if self._is_lost(
                    section, heading, body, is_around_steps=is_around_steps
                ):
                    self._report_lost_step(heading.line, heading.text)

    def _is_lost(
        self,
        section: _Section,
        heading: PlanHeading,
        body: range,
        *,
        is_around_steps: bool,
    ) -> bool:
        """True if a heading resembles a step, or has a step's files or check. Headings
        around steps may be numbered.
        """
        label = read_heading_label(heading.text)
        has_work = names_work(self.document, body)
        if label:
            has_work = label.field is Field.VERIFY and names_files(self.document, body)
        if section.kind in {_Kind.OVERVIEW, _Kind.RISKS}:
            is_inner = heading is not section.heading
            return is_inner and heading.is_numbered and has_work
        if has_work:
            return True
        if is_around_steps and not heading.has_step_word:
            return False
        if heading.resembles_step:
            return True
        return heading.is_numbered and self._is_among_steps(section, heading)

    def _is_among_steps(self, section: _Section, heading: PlanHeading) -> bool:
        """True for a numbered heading among steps: below the same heading, or with the
        number after the last step.
        """
        steps = self.plan.steps
        if section.kind is _Kind.STEPS or not steps:
            return True
        above = [parsed for parsed in steps if parsed.section.start < heading.line]
        last = above[-1].step.label if above else ""
        if last.isdigit() and heading.number == str(int(last) + 1):
            return True
        parent = self._parent_line(heading.line, heading.depth)
        for parsed in steps:
            line = parsed.section.start
            is_same_depth = parsed.depth == heading.depth
            if is_same_depth and self._parent_line(line, parsed.depth) == parent:
                return True
        return False

    def _parent_line(self, line: int, depth: int) -> int:
        """Return the line of the enclosing heading, or -1."""
        for heading in reversed(self.headings):
            if heading.line < line and heading.depth < depth:
                return heading.line
        return -1

    def _find_step_lines(
        self, sections: Sequence[_Section], labels: Sequence[str]
    ) -> None:
        for section in sections:
            for number in section.body:
                line = self.document.lines[number]
                is_value = number in self.plan.owners and "#" not in line.text
                if line.is_example or is_value:
                    continue
                step = read_step_line(line.text)
                if step and _is_new_step(step, line.text, section, labels):
                    self._report_lost_step(number, line.text)

    def _report_lost_step(self, number: int, text: str) -> None:
        text = (
            f"{quote(text)} looks like a step but is not one; write a heading such as"
            " `### Step 1: …`, or leave out the number"
        )
        self._report_line("unread_step", number, text)

    def _report_line(self, kind: str, number: int, text: str) -> None:
        self.plan.findings.error(kind, number, text)
        self.plan.owners[number] = Owner.FINDING

    def _find_wrong_ids(self, steps: Sequence[_Section]) -> None:
        for position, section in enumerate(steps):
            wrong_id = section.heading.wrong_id if section.heading else None
            if wrong_id is not None:
                self.plan.findings.warn(
                    "wrong_id",
                    section.start,
                    f"has the invalid id {quote(wrong_id)}; an id has four to eight of"
                    " a-z and 0-9",
                    position,
                )

    def _report_unknown_labels(self, unknown: dict[int, str]) -> None:
        if not unknown:
            return
        names = list(dict.fromkeys(unknown.values()))
        shown = ", ".join(f"“{name}”" for name in names[:5])
        if len(names) > 5:
            shown += f" and {len(names) - 5} more"
        self.plan.findings.warn(
            "unknown_label",
            min(unknown),
            f"unknown labels are read as text of the description: {shown}"
            f" ({line_runs(unknown)})",
        )

    def _report_outside_lines(self) -> None:
        """Report text outside the plan's code block."""
        plan = self.plan
        source = plan.source
        outside = [
            number
            for number in range(len(source))
            if number not in plan.lines and source[number].strip()
        ]
        if outside:
            text = (
                "the plan is in a code block; the text around it is not read"
                f" ({line_runs(outside)})"
            )
            plan.findings.warn("outside_plan", outside[0], text)
            plan.owners.update(dict.fromkeys(outside, Owner.FINDING))

    def _set_owners(self, steps: Iterable[_Section]) -> None:
        plan = self.plan
        plan.owners.update(dict.fromkeys(plan.field_lines.values(), Owner.FIELD))
        for section in steps:
            plan.owners[section.start] = Owner.STEP
        for item in plan.findings.items:
            plan.owners.setdefault(item.line, Owner.FINDING)
        owners = {}
        for number, text in enumerate(plan.source):
            if text.strip():
                owners[number] = plan.owners.get(number, Owner.PROSE)
        plan.owners = owners

    def _lines(self, numbers: range) -> list[Line]:
        return self.document.lines[numbers.start : numbers.stop]

    def _written(self, numbers: Iterable[int]) -> list[int]:
        lines = self.document.lines
        return [number for number in numbers if lines[number].text.strip()]


def _is_new_step(
    step: StepHeading, text: str, section: _Section, labels: Sequence[str]
) -> bool:
    if not labels:
        return True
    is_next = section.step is not None and step.continues(section.step)
    is_open = section.kind is _Kind.OTHER and "[ ]" in text
    return step.label not in labels and (is_next or is_open)


def _contains_steps(sections: Sequence[_Section], position: int) -> bool:
    depth = sections[position].depth
    for section in sections[position + 1 :]:
        if section.depth <= depth:
            return False
        if section.kind is _Kind.STEP:
            return True
    return False


def _read_risks(lines: Sequence[Line]) -> list[str]:
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
    return leading_code(value) or value
