"""Read the section of one step. Text that is neither a field nor an affected file
becomes its description.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.tickets.markdown import Document, Line, code_spans, prose
from cdd_agent.tickets.plan import NO_CHECK, AffectedFile, PlanStep
from cdd_agent.tickets.plan_labels import STEP_FIELDS, Field, Label, find_label


def read_step(
    document: Document,
    body: range,
    number: int,
    title: str,
    heading_line: int,
    earlier: Sequence[int],
) -> PlanStep:
    """Read the step with this heading; `earlier` are the numbers of the steps above it.

    Raises `BadInput` for dependencies that are not step numbers.
    """
    values: dict[Field, str] = {}
    files: list[AffectedFile] = []
    description = []
    for block in _split_blocks(document, body):
        text = block.lines
        match block.field:
            case Field.FILES:
                block_files, text = _read_files(block)
                files += block_files
            case Field.VERIFY:
                values[block.field], text = _read_command(block)
            case (
                Field.DEPENDENCIES
                | Field.SERVES
                | Field.COMPLEXITY
                | Field.ESTIMATED_TIME
            ):
                values[block.field], text = _read_value(block)
            case Field.DESCRIPTION:
                text = [Line(block.value, is_code=True), *text]
        description.append(prose(text))
    return PlanStep(
        number,
        title,
        description="\n\n".join(filter(None, description)),
        complexity=values.get(Field.COMPLEXITY, ""),
        estimated_time=values.get(Field.ESTIMATED_TIME, ""),
        dependencies=_parse_dependencies(
            values.get(Field.DEPENDENCIES, ""), earlier, heading_line + 1
        ),
        files_affected=tuple(files),
        checks=_parse_checks(values.get(Field.VERIFY, "")),
        serves=_parse_criteria(values.get(Field.SERVES, "")),
        line=heading_line + 1,
    )


class _Block(Struct):
    """The lines from one label to the next."""

    field: Field | None = None
    """None for the text above the first label."""
    value: str = ""
    """The text behind the label."""
    is_heading: bool = False
    """True if the label is a heading such as `#### Verify`."""
    lines: list[Line] = []

    def first_text(self) -> int:
        """Return the index of the first line that is not blank."""
        for index, line in enumerate(self.lines):
            if line.text.strip():
                return index
        return len(self.lines)

    def value_below(self) -> tuple[str, list[Line]]:
        """Return the line below the label, and the remaining lines. Below headings, a
        blank line may precede it.
        """
        first = self.first_text()
        if first == len(self.lines) or (first > 0 and not self.is_heading):
            return "", self.lines
        line = self.lines[first]
        if line.is_code or line.is_rule:
            return "", self.lines
        return line.item.text if line.item else line.text.strip(), self.lines[
            first + 1 :
        ]


def _split_blocks(document: Document, body: range) -> list[_Block]:
    blocks = [_Block()]
    seen: set[Field] = set()
    for number, label in _find_labels(document, body).items():
        if label is None or label.field in seen:
            blocks[-1].lines.append(document.lines[number])
        else:
            seen.add(label.field)
            blocks.append(
                _Block(label.field, label.value, _is_heading(document, number))
            )
    return blocks


def _find_labels(document: Document, body: range) -> dict[int, Label | None]:
    """Return the label of each line. If a label is bold, a plain `Files: a.py` may be a
    line of the description.
    """
    labels = {number: _label_at(document, number) for number in body}
    in_text = {
        number: label
        for number, label in labels.items()
        if label and not _is_heading(document, number)
    }
    if any(label.is_bold for label in in_text.values()):
        labels |= {
            number: None for number, label in in_text.items() if not label.is_bold
        }
    return labels


def _is_heading(document: Document, number: int) -> bool:
    heading = document.headings.get(number)
    return heading is not None and heading.end == number + 1


def _label_at(document: Document, number: int) -> Label | None:
    line = document.lines[number]
    if line.is_code:
        return None
    label = find_label(line.text, STEP_FIELDS)
    if _is_heading(document, number):
        text = document.headings[number].text
        label = find_label(text, STEP_FIELDS) or find_label(f"{text}:", STEP_FIELDS)
    if label and label.field is Field.SERVES and not _is_criteria(label.value):
        return None
    return label


def _read_value(block: _Block) -> tuple[str, list[Line]]:
    """Return the value, which may be below its label, and the remaining lines."""
    if block.value:
        return block.value, block.lines
    if block.field in {Field.DEPENDENCIES, Field.SERVES}:
        value, rest = _read_number_list(block)
        if value:
            return value, rest
    value, rest = block.value_below()
    if block.field is Field.SERVES and not _is_criteria(value):
        return "", block.lines
    return value, rest


def _read_number_list(block: _Block) -> tuple[str, list[Line]]:
    """Return the items of a Markdown list such as `- Step 1`, joined by commas, and the
    remaining lines.
    """
    items = []
    stop = 0
    for index, line in enumerate(block.lines):
        if line.item and (
            block.field is Field.DEPENDENCIES or _is_criteria(line.item.text)
        ):
            items.append(line.item.text)
            stop = index + 1
        elif line.text.strip():
            break
    return ", ".join(items), block.lines[stop:]


def _read_command(block: _Block) -> tuple[str, list[Line]]:
    """Return the command and the remaining lines. Below the label it is one line, or a
    fence of commands.
    """
    if block.value:
        return block.value, block.lines
    first = block.first_text()
    rest = block.lines[first:]
    opening = rest[0].text.strip() if rest else ""
    if opening.startswith(("```", "~~~")):
        commands: list[str] = []
        for stop, line in enumerate(rest[1:], 1):
            command = line.text.strip()
            if not line.is_code:
                return " && ".join(commands), rest[stop:]
            if command and not command.startswith(("#", "```", "~~~")):
                commands.append(command)
        return " && ".join(commands), []
    if opening.startswith("`"):
        return opening, rest[1:]
    return block.value_below()


def _read_files(block: _Block) -> tuple[list[AffectedFile], list[Line]]:
    """Return the files on the line of the label and in the list below it, and the
    remaining lines.

    Indented lines below a list item are its note.
    """
    files = _parse_file_list(block.value)
    note_indent = 1000
    for index, line in enumerate(block.lines):
        text = line.text.strip()
        indent = len(line.text) - len(line.text.lstrip())
        if files and text and indent >= note_indent and not line.is_code:
            files[-1] = AffectedFile(
                files[-1].path,
                f"{files[-1].note} {line.item.text if line.item else text}",
            )
        elif line.item:
            note_indent = line.item.indent + 2
            files += _parse_file(line.item.text)
        elif _CODE_SPAN_START.match(text):
            files += _parse_file_list(text)
        elif text:
            return files, block.lines[index:]
    return files, []


# Numbers of steps and criteria

_REMARK = re.compile(r"\([^()]*\)")
_CRITERIA = re.compile(
    r"\W*(?:none|n/a)?\W*|(?:acceptance|criteri(?:on|a)|\bac|and|to|through|[0-9]"
    r"|[\s,;:&#`+._\-–—])*",
    re.IGNORECASE,
)
_CRITERION_LABEL = re.compile(r"\bAC[-_ ]?(?=[0-9])", re.IGNORECASE)
_NO_STEPS = re.compile(r"(?:none|nothing|no|n/a|-|–|—)\b|[-–—]?$", re.IGNORECASE)
_ALL_STEPS = re.compile(
    r"\ball\b.*\b(?:previous|prior|preceding|earlier|above|before)\b", re.IGNORECASE
)
_PREVIOUS_STEP = re.compile(
    r"(?:the\s+)?(?:previous|prior|preceding)\s+step\b", re.IGNORECASE
)
_NUMBER = r"(?<![\w.])([0-9]{1,9})(?!\w|\.[0-9])"
_NUMBERS = re.compile(
    rf"{_NUMBER}(?:\s*(?:-|–|—|to|through)\s*(?:steps?\s*)?{_NUMBER})?", re.IGNORECASE
)
_MAX_RANGE = 100_000


def _parse_dependencies(
    value: str, earlier: Sequence[int], line: int
) -> tuple[int, ...]:
    value = _REMARK.sub("", value).strip("*_` \t.")
    if _NO_STEPS.match(value):
        return ()
    if _ALL_STEPS.search(value):
        return tuple(earlier)
    if _PREVIOUS_STEP.match(value):
        return tuple(earlier[-1:])
    numbers = _parse_numbers(value)
    if value and not numbers:
        raise BadInput(
            f"The step in line {line} has dependencies that cannot be read:"
            f" {value[:80]!r}",
            hint="Write `None`, `Step 1`, `Steps 1-3` or `All previous steps`.",
        )
    return numbers


def _is_criteria(value: str) -> bool:
    return _CRITERIA.fullmatch(_REMARK.sub("", value)) is not None


def _parse_criteria(value: str) -> tuple[int, ...]:
    return _parse_numbers(_CRITERION_LABEL.sub("", _REMARK.sub("", value)))


def _parse_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as `1, 3-5 and 8`. Of an absurdly long range,
    return only the ends.
    """
    numbers: list[int] = []
    for first, last in _NUMBERS.findall(text):
        numbers.append(int(first))
        if last and int(last) - int(first) < _MAX_RANGE:
            numbers += range(int(first), int(last))
        if last:
            numbers.append(int(last))
    return tuple(numbers)


# Commands and files

_NO_COMMAND = re.compile(
    r"(?:none|n/a)\b[.!]?\s*(?:\(.*\))?", re.IGNORECASE | re.DOTALL
)
_UNSPECIFIED = re.compile(
    r"(?:none specified|not specified|unspecified|tbd)\b.*", re.IGNORECASE | re.DOTALL
)
_BEFORE_COMMAND = re.compile(r"(?:(?:run|execute|running)\b:?\s*)?(?=`)", re.IGNORECASE)
_NO_FILES = re.compile(
    r"(?:none|nothing|nil|n/a|tbd|no files?|not"
    r" (?:specified|applicable|known)|unspecified)[.,;:!]?(?:\s.*)?|[-–—]?",
    re.IGNORECASE | re.DOTALL,
)
_CODE_SPAN_START = re.compile("`(?!``)")
_CHECKBOX = re.compile(r"\[[ xX]\][ \t]+")
_PATH_AND_NOTE = re.compile(
    r"(?P<path>.*?)(?P<note>[ \t]+\(.*\)|[ \t]+[-–—:][ \t].*|:[ \t]+.*)?", re.DOTALL
)


def _parse_command(value: str) -> str:
    """Return the code span of "`make`" and "Run `make`"; otherwise the whole value."""
    if _BEFORE_COMMAND.match(value):
        spans = code_spans(value)
        if spans:
            return spans[0].text
    if _UNSPECIFIED.fullmatch(value):
        return ""
    return NO_CHECK if _NO_COMMAND.fullmatch(value) else value


def _parse_checks(value: str) -> tuple[str, ...] | None:
    command = _parse_command(value)
    return (command,) if command else None


def _parse_file_list(value: str) -> list[AffectedFile]:
    """Return the files of a list separated by commas. A comma in a code span is a part
    of the path.
    """
    if _NO_FILES.fullmatch(value.strip()):
        return []
    spans = code_spans(value)
    files = []
    start = 0
    for comma in re.finditer(",|$", value):
        if not any(span.start <= comma.start() < span.end for span in spans):
            files += _parse_file(value[start : comma.start()])
            start = comma.end()
    return files


def _parse_file(item: str) -> list[AffectedFile]:
    """Return the file of a list item with its note; no file for an item such as
    "None".
    """
    item = (
        _CHECKBOX.sub("", item.strip(), count=1)
        if item.lstrip().startswith("[")
        else item.strip()
    )
    spans = code_spans(item)
    if spans:
        before, after = item[: spans[0].start], item[spans[0].end :]
        return [
            AffectedFile(spans[0].text, f"{_clean_note(before)} {_clean_note(after)}")
        ]
    match = _PATH_AND_NOTE.fullmatch(item)
    if match is None or _NO_FILES.fullmatch(item):
        return []
    return [AffectedFile(match["path"].strip("* \t"), _clean_note(match["note"] or ""))]


def _clean_note(text: str) -> str:
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and len(text) > 1:
        return text[1:-1]
    return text.strip("*").lstrip("-–—:").rstrip(":").strip()
