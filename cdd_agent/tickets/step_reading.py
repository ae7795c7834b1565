"""Reading the section of one step, without losing a word of it: whatever is neither a field nor an affected file is its
description."""

import re
from collections.abc import Iterator, Sequence

from cdd_agent.errors import BadInput
from cdd_agent.late_regex import late_regex
from cdd_agent.tickets.markdown import Document, Line, code_spans, is_rule, prose
from cdd_agent.tickets.plan_labels import STEP_FIELDS, Field, field_in, field_of_heading
from cdd_agent.tickets.plan_step import NO_CHECK, AffectedFile, PlanStep


class StepReader:
    """Reads one step line by line."""

    def __init__(self, document: Document, lines: range) -> None:
        """`lines` are those below its heading."""
        self._headings = document.headings
        self._lines = dict(zip(lines, document.at(lines), strict=True))
        self._fields: dict[Field, str] = {}
        self._files: list[AffectedFile] = []
        self._text: list[Line] = []
        self._open: Field | None = None
        """The field whose value may go on in the lines that follow."""
        self._labelled_by_heading = False
        self._apart = False
        """Whether a blank line came after its label, so that a paragraph is not its value."""
        self._file_indent: int | None = None
        texts = (line.text for line in self._lines.values() if not line.code)
        self._has_plain_labels = not any(field_in(text, STEP_FIELDS) for text in texts)
        """A label counts without being bold only where none is bold: else it may be a line of the description."""

    def read(self, number: int, title: str, line: int, earlier: Sequence[int]) -> PlanStep:
        """The step; `earlier` are the numbers of those before it. Raises `BadInput` for what it cannot depend on."""
        for at, text in self._lines.items():
            if found := self._field_at(at, text):
                name, value = found
                self._fields[name] = value
                self._open = name if name in {Field.DESCRIPTION, Field.FILES} or not value else None
                self._labelled_by_heading, self._apart = at in self._headings, False
                if name is Field.DESCRIPTION:
                    self._separate()
                    self._text.append(Line(value, code=True))
                elif name is Field.FILES:
                    self._files.extend(_files_on_one_line(value))
            elif self._open is Field.FILES:
                self._take_file(text)
            elif self._open is Field.VERIFY:
                self._take_check(text)
            elif self._open is None and not text.text:
                self._separate()
            elif self._open is None or self._open is Field.DESCRIPTION:
                self._text.append(text)
            else:
                self._take_value(self._open, text)
        said = self._fields.get
        return PlanStep(
            number,
            title,
            prose(self._text),
            said(Field.COMPLEXITY, ""),
            said(Field.ESTIMATED_TIME, ""),
            _dependencies(said(Field.DEPENDENCIES, ""), earlier, line),
            tuple(self._files),
            _command(said(Field.VERIFY, "")),
            _numbers(_LABEL.sub("", _REMARK.sub("", said(Field.SERVES, "")))),
            line,
        )

    def _field_at(self, at: int, line: Line) -> tuple[Field, str] | None:
        if line.code:
            return None
        heading = self._headings.get(at)
        if heading is not None and heading.end - heading.line == 1:
            found = field_of_heading(heading.text, STEP_FIELDS)
        else:
            found = field_in(line.text, STEP_FIELDS, plain=self._has_plain_labels)
        if found is None or found[0] in self._fields:
            return None  # said twice: the second is kept as text
        if found[0] is Field.SERVES and not _are_criteria(found[1]):
            return None  # "the whole team": text, whatever its label
        return found

    def _separate(self) -> None:
        if self._text and self._text[-1].text:
            self._text.append(Line(""))

    def _close(self, line: Line) -> None:
        """The value is over, and the line is text."""
        self._open = None
        self._separate()
        self._text.append(line)

    def _take_file(self, line: Line) -> None:
        text = line.text.strip()
        if not text:
            return
        indent, told = line.item or (len(line.text) - len(line.text.lstrip()), line.text)
        if self._files and self._file_indent is not None and indent > self._file_indent + 1 and not line.code:
            file = self._files[-1]
            self._files[-1] = AffectedFile(file.path, f"{file.note} {told}")
        elif line.item:
            self._file_indent = indent
            self._files.extend(_file(told))
        elif text.startswith("`") and not text.startswith("```"):
            self._files.extend(_files_on_one_line(text))
        else:
            self._close(line)

    def _take_value(self, name: Field, line: Line) -> None:
        """The value on the lines below its label: one line, or for the dependencies a list."""
        value = line.item[1] if line.item else line.text
        known = self._fields[name]
        many = line.item is not None and name in {Field.DEPENDENCIES, Field.SERVES}
        is_over = (known or self._apart) and not many
        if not value.strip():
            self._apart = not self._labelled_by_heading
        elif line.code or is_rule(line.text) or is_over or (name is Field.SERVES and not _are_criteria(value)):
            self._close(line)
        else:
            self._fields[name] = f"{known}, {value}" if known else value
            self._open = name if many else None

    def _take_check(self, line: Line) -> None:
        """The command below its label: on one line, or in a fence (then several lines are all to succeed)."""
        text = line.text.strip()
        known = self._fields[Field.VERIFY]
        fence = text.startswith(("```", "~~~"))
        if line.code:
            if fence:
                self._open = None
            elif text and not text.startswith("#"):
                self._fields[Field.VERIFY] = f"{known} && {text}" if known else text
        elif not text:
            self._apart = not self._labelled_by_heading
        elif known or is_rule(text) or (self._apart and not fence and not text.startswith("`")):
            self._close(line)
        elif not fence:
            self._fields[Field.VERIFY] = line.item[1] if line.item else text
            self._open = None


# ----------------------------------------------------------------------------------------------- numbers

_REMARK = re.compile(r"\([^()]*\)")
"""Words in brackets beside a number: they say nothing of it that is read."""
_CRITERIA = late_regex(
    r"\W*(?:none|n/a)?\W*|(?:acceptance|criteri(?:on|a)|\bac|and|to|through|[0-9]|[\s,;:&#`+._\-–—])*", re.IGNORECASE
)
_LABEL = re.compile(r"\bAC[-_ ]?(?=[0-9])", re.IGNORECASE)  # AC1, AC-2: acceptance criteria
_NOBODY = re.compile(r"(?:none|nothing|no|n/a|-|–|—)\b|[-–—]?$", re.IGNORECASE)
_EVERYBODY = late_regex(r"\ball\b.*\b(?:previous|prior|preceding|earlier|above|before)\b", re.IGNORECASE)
_THE_LAST = late_regex(r"(?:the\s+)?(?:previous|prior|preceding)\s+step\b", re.IGNORECASE)
_NUMBER = r"(?<![\w.])([0-9]{1,9})(?!\w|\.[0-9])"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s*(?:-|–|—|to|through)\s*(?:steps?\s*)?{_NUMBER})?", re.IGNORECASE)
_LONGEST_RANGE = 100_000


def _are_criteria(value: str) -> bool:
    return _CRITERIA.fullmatch(_REMARK.sub("", value)) is not None


def _dependencies(text: str, earlier: Sequence[int], line: int) -> tuple[int, ...]:
    text = _REMARK.sub("", text).strip("*_` \t.")
    if _NOBODY.match(text):
        return ()
    if _EVERYBODY.search(text):
        return tuple(earlier)
    if _THE_LAST.match(text):
        return tuple(earlier[-1:])
    numbers = _numbers(text)
    if text and not numbers:
        raise BadInput(
            f"The step in line {line} has dependencies that cannot be read: {text[:80]!r}",
            hint="Write `None`, `Step 1`, `Steps 1-3` or `All previous steps`.",
        )
    return numbers


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers that a list such as `1, 3-5 and 8` names."""
    numbers: list[int] = []
    for first, last in _NUMBERS.findall(text):
        numbers.append(int(first))
        if last:
            numbers.append(int(last))
            if int(last) - int(first) < _LONGEST_RANGE:  # of an absurd one the ends are enough for `check`
                numbers.extend(range(int(first), int(last)))
    return tuple(numbers)


# ------------------------------------------------------------------------------------- commands and files

_NO_COMMAND = late_regex(r"(?:none|n/a)\b[.!]?\s*(?:\(.*\))?", re.IGNORECASE | re.DOTALL)
_NOT_GIVEN = late_regex(r"(?:none specified|not specified|unspecified|tbd)\b.*", re.IGNORECASE | re.DOTALL)
_RUN = re.compile(r"(?:(?:run|execute|running)\b:?\s*)?(?=`)", re.IGNORECASE)
_NO_FILES = re.compile(
    r"(?:none|nothing|nil|n/a|tbd|no files?|not (?:specified|applicable|known)|unspecified)[.,;:!]?(?:\s.*)?|[-–—]?",
    re.IGNORECASE | re.DOTALL,
)
"""Words that say that there are no files, with whatever follows: `None specified`."""
_CHECKBOX = re.compile(r"\[[ xX]\][ \t]+")
_PATH_AND_NOTE = late_regex(r"(?P<path>.*?)(?:[ \t]+(?P<note>\(.*\)|[-–—:][ \t].*)|:[ \t]+(?P<rest>.*))?", re.DOTALL)


def _command(value: str) -> str:
    """The first code span where the value starts with one (perhaps as "Run `…`"), else all of it."""
    span = next(code_spans(value), None) if _RUN.match(value) else None
    if span is not None:
        return span.text
    return "" if _NOT_GIVEN.fullmatch(value) else NO_CHECK if _NO_COMMAND.fullmatch(value) else value


def _files_on_one_line(value: str) -> Iterator[AffectedFile]:
    """Files separated by commas; a comma in a code span is part of the path."""
    if _NO_FILES.fullmatch(value.strip()):
        return
    covered = [(span.start, span.end) for span in code_spans(value)]
    start = 0
    for comma in re.finditer(",|$", value):
        if not any(first <= comma.start() < end for first, end in covered):
            yield from _file(value[start : comma.start()])
            start = comma.end()


def _file(item: str) -> Iterator[AffectedFile]:
    """The file of a list item with its note, or nothing where it says that there are no files."""
    item = _CHECKBOX.sub("", item.strip(), count=1) if item.startswith("[") else item.strip()
    span = next(code_spans(item), None)
    if span is not None:
        yield AffectedFile(span.text, f"{_note(item[: span.start])} {_note(item[span.end :])}")
    elif not _NO_FILES.fullmatch(item):
        found = _PATH_AND_NOTE.fullmatch(item)
        assert found is not None
        yield AffectedFile(found["path"].strip("* \t"), _note(found["note"] or found["rest"] or ""))


def _note(text: str) -> str:
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and len(text) > 1:
        return text[1:-1]
    return text.strip("*").lstrip("-–—:").rstrip(":").strip()
