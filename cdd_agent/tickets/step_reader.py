"""Reads a step's section. Each line is a field's value or prose, which becomes the
description. A line that only looks like a value is a finding.
"""

import re
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.check_reader import (
    CheckText,
    is_check_command,
    is_command,
    is_expectation,
    is_tool_name,
    read_check,
    read_commands,
)
from cdd_agent.tickets.criteria import CriterionRef, is_numbers, read_refs
from cdd_agent.tickets.file_list import FileList, read_file_piece
from cdd_agent.tickets.file_reader import is_file_of_project
from cdd_agent.tickets.findings import Findings, line_runs, quote
from cdd_agent.tickets.markdown import (
    Document,
    Line,
    code_spans,
    leading_code,
    prose,
)
from cdd_agent.tickets.plan import AffectedFile, MayFail, PlanStep
from cdd_agent.tickets.plan_labels import (
    Field,
    Label,
    read_heading_label,
    read_label,
)
from cdd_agent.tickets.reference_reader import (
    read_dependencies,
    read_tests,
    refers_to_step,
)
from cdd_agent.tickets.run_lines import CommandsToRun, find_mentioned_checks, find_runs
from cdd_agent.tickets.text_pieces import Piece, PieceKind, split_pieces, table_cells

_BOLD_TAG = Pattern(r"</?(?:b|strong)>|\*{3}(?=\S)|(?<=\S)\*{3}", re.IGNORECASE)
_SPAN = Pattern(r"`[^`]*`")
_REMARK = Pattern(r"\([^()]*\)|\band\b")


class StepHeading(Struct, frozen=True):
    line: int
    word: str
    """`step` or `task`."""
    label: str
    title: str
    id: str = ""

    def continues(self, previous: "StepHeading") -> bool:
        """True for step 3 after step 2, at any heading depth."""
        if self.word != previous.word or not previous.label.isdigit():
            return False
        return self.label == str(int(previous.label) + 1)


class StepSection(Struct, frozen=True):
    heading: StepHeading
    body: range
    position: int
    """Index of the step in the plan."""
    labels: Sequence[str]


class StepText(Struct):
    """A step, with the meaningful lines of its section."""

    step: PlanStep
    field_lines: set[int]
    unknown_labels: dict[int, str]
    """Line → name of a label without a field."""


def read_step(document: Document, section: StepSection, findings: Findings) -> StepText:
    """Read the step. Its dependencies are labels, which the plan resolves."""
    reader = _StepReader(document, section, findings)
    for block in _split_blocks(document, section.body):
        reader.read_block(block)
    reader.read_run_lines()
    return reader.result()


def has_own_fields(document: Document, body: range) -> bool:
    """True if the section has labelled lines of a step, such as files or a check."""
    labels = _find_labels(document, body).values()
    return any(label.field is not Field.DESCRIPTION for label in labels)


def names_work(document: Document, body: range) -> bool:
    """True if the section has files or checks of a step."""
    labels = _find_labels(document, body).values()
    for label in labels:
        if label.field not in {Field.FILES, Field.VERIFY}:
            continue
        if label.is_bold or _is_value_of_step(label):
            return True
    return False


def names_files(document: Document, body: range) -> bool:
    """True if the section has a list of a step's files."""
    labels = _find_labels(document, body).values()
    return any(label.is_bold and label.field is Field.FILES for label in labels)


def _is_value_of_step(label: Label) -> bool:
    value = leading_code(label.value)
    if label.field is Field.VERIFY:
        return bool(value) and is_check_command(value)
    return label.name in {"files", "files affected"} and is_file_of_project(value)


def find_stray_check(
    document: Document, numbers: Iterable[int], known_labels: Collection[str] = ()
) -> int | None:
    """Return the first line with a checking command that is not in `known_labels`: in a
    list item, a shell block, or alone.
    """
    for piece in split_pieces(document, list(numbers)):
        commands = _stray_commands(piece)
        if not set(commands) <= set(known_labels):
            return piece.lines[0]
    return None


def has_only_checks(text: str, known_labels: Collection[str]) -> bool:
    commands = read_check(text).commands
    return bool(commands) and set(commands) <= set(known_labels)


def _stray_commands(piece: Piece) -> tuple[str, ...]:
    if piece.kind is PieceKind.FENCE and piece.text.split(" ")[0]:
        check = read_commands(piece.text, piece.code)
        return tuple(filter(is_check_command, check.commands)) if check else ()
    is_done = piece.text.startswith(("[x]", "[X]", "~~"))
    if piece.kind is PieceKind.ITEM and not is_done:
        spans = code_spans(piece.text)
        is_check = bool(spans) and is_check_command(spans[0].text)
        return (spans[0].text,) if is_check else ()
    if piece.kind in {PieceKind.LINE, PieceKind.OTHER}:
        return _bare_checks(piece)
    return ()


def _bare_checks(piece: Piece) -> tuple[str, ...]:
    text = piece.text.lstrip("> ")
    if piece.kind is PieceKind.OTHER:
        return (text,) if text and is_check_command(text) else ()
    check = read_check(text) if text.startswith("`") else CheckText()
    is_bare = not check.has_prose and all(map(is_check_command, check.commands))
    return check.commands if is_bare else ()


_NO_LABEL = Label("", "", is_bold=False)
"""For text above the first label."""


class _Block(Struct):
    lines: list[int]
    label: Label = _NO_LABEL
    line: int = -1
    is_heading: bool = False
    """True if the label is a heading such as `#### Verify`."""

    def pieces(self, document: Document) -> list[Piece]:
        pieces = []
        value = self.label.value.strip()
        if value:
            pieces.append(Piece(PieceKind.LINE, value, (self.line,)))
        for piece in split_pieces(document, self.lines):
            if self._is_ended_by(piece, pieces):
                break
            pieces.append(piece)
        return pieces

    @property
    def _is_complete(self) -> bool:
        value = self.label.value.strip()
        return bool(value) and not value.endswith(":")

    def _is_ended_by(self, piece: Piece, pieces: Sequence[Piece]) -> bool:
        """True if the piece below the label does not belong to it.

        After a blank line, a paragraph belongs only to a heading, and nothing to a
        label with a value.
        """
        if piece.kind is PieceKind.OTHER or _has_bold_label(piece):
            return True
        begins_new = piece.is_apart or piece.text.startswith("[")
        if begins_new and self._is_complete:
            return True
        if piece.kind is not PieceKind.LINE or not piece.is_apart:
            return False
        if not pieces and self.is_heading:
            return False
        is_in_item = any(piece.indent > above.indent for above in pieces[-1:])
        return not (is_in_item or piece.text.startswith("`"))


class _StepReader(Struct):
    document: Document
    section: StepSection
    findings: Findings
    description: list[str] = field(default_factory=list)
    field_lines: set[int] = field(default_factory=set)
    values: dict[Field, str] = field(default_factory=dict)
    dependencies: list[str] = field(default_factory=list)
    files: list[AffectedFile] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    says_no_check: bool = False
    serves: list[CriterionRef] = field(default_factory=list)
    removes_tests: tuple[str, ...] | None = None
    may_fail: list[MayFail] = field(default_factory=list)

    def read_run_lines(self) -> None:
        """If there is no check, read commands that the text says to run, such as "Run:
        `pytest`". They stay in the description. Report commands that may be meant as a
        check.
        """
        if self.says_no_check:
            return
        numbers = [
            number for number in self.section.body if number not in self.field_lines
        ]
        pieces = split_pieces(self.document, numbers)
        lost: list[CommandsToRun] = []
        for run in find_runs(pieces) if not self.checks else ():
            if run.is_check:
                self.checks += run.commands
                self.field_lines.update(run.lines)
            elif run.is_lost:
                lost.append(run)
        for run in find_mentioned_checks(pieces):
            label = read_label(self._text(run.lines[0]))
            is_reported = label is not None and label.is_bold
            if not (is_reported or set(run.commands) <= set(self.checks)):
                lost.append(run)
        if lost:
            self._warn(
                "unread_run",
                lost[0].lines[0],
                f"says to run {quote(' && '.join(lost[0].commands))}, but nothing runs"
                " it; write it in `**Verify:**` as a command without a shell",
            )

    def result(self) -> StepText:
        heading = self.section.heading
        has_checks = bool(self.checks or self.says_no_check)
        step = PlanStep(
            # the plan numbers its steps
            self.section.position + 1,
            heading.title,
            description="\n\n".join(filter(None, self.description)),
            complexity=self.values.get(Field.COMPLEXITY, ""),
            estimated_time=self.values.get(Field.ESTIMATED_TIME, ""),
            files_affected=tuple(self.files),
            checks=tuple(self.checks) if has_checks else None,
            serves=tuple(self.serves),
            removes_tests=self.removes_tests,
            may_fail=tuple(self.may_fail),
            label=heading.label,
            id=heading.id,
            missing_dependencies=tuple(self.dependencies),
            line=heading.line + 1,
        )
        return StepText(step, self.field_lines, self._unknown_labels())

    def read_block(self, block: _Block) -> None:
        label_field = block.label.field
        match label_field:
            case Field.FILES:
                self._read_files(block)
            case Field.VERIFY:
                self._read_checks(block)
            case Field.DEPENDENCIES:
                self._read_dependencies(block)
            case Field.SERVES:
                self._read_serves(block)
            case Field.REMOVES_TESTS | Field.MAY_FAIL:
                self._read_tests(block)
            case Field.COMPLEXITY | Field.ESTIMATED_TIME:
                self._read_single(block, label_field)
            case Field.DESCRIPTION:
                self._read_description(block)
            case _:
                self._assign_lines(block, ())

    # The fields

    def _read_description(self, block: _Block) -> None:
        self.field_lines.add(block.line)
        value = Line(block.label.value, is_code=True)
        lines = [self.document.lines[number] for number in block.lines]
        self.description.append(prose([value, *lines]))

    def _read_single(self, block: _Block, label_field: Field) -> None:
        """Read a one-line value. A second one is prose."""
        pieces = block.pieces(self.document)
        first = pieces[0] if pieces else None
        if first is None or (first.is_apart and not block.is_heading):
            self._assign_lines(block, ())
            return
        if label_field in self.values:
            name = label_field.name.replace("_", " ").lower()
            text = f"has a second `{name}`, which is read as text"
            self._warn("duplicate_field", block.line, text)
            self.description.append(prose([self.document.lines[block.line]]))
        else:
            self.values[label_field] = first.text
        self._assign_lines(block, first.lines)

    def _read_dependencies(self, block: _Block) -> None:
        earlier = self.section.labels[: self.section.position]
        used_lines: set[int] = set()
        for piece in self._list_of(block):
            is_below = bool(used_lines) and piece.lines[0] != block.line
            if is_below and not refers_to_step(piece.text):
                break
            labels = read_dependencies(piece.text, self.section.labels, earlier)
            if labels is None:
                self._error(
                    "unread_dependencies",
                    piece.lines[0],
                    f"has dependencies that cannot be read: {quote(piece.text)}; write"
                    " `None`, `Step 1`, `Steps 1-3` or `All previous steps`",
                )
            self.dependencies += labels or []
            used_lines.update(piece.lines)
        self._assign_lines(block, used_lines)

    def _read_serves(self, block: _Block) -> None:
        used_lines: set[int] = set()
        for piece in self._list_of(block):
            is_below_value = block.line in used_lines and piece.lines[0] != block.line
            if is_below_value and not is_numbers(piece.text):
                break
            self.serves += read_refs(piece.text)
            used_lines.update(piece.lines)
        self._assign_lines(block, used_lines)

    def _read_tests(self, block: _Block) -> None:
        is_leave_to_fail = block.label.field is Field.MAY_FAIL
        removed: list[str] = []
        used_lines: set[int] = set()
        for piece in self._list_of(block):
            tests = read_tests(piece.text)
            if tests is None:
                self._error(
                    "unread_tests",
                    piece.lines[0],
                    f"names no test in {quote(piece.text)}; write names or files of"
                    " tests in backticks, or `none`",
                )
            elif is_leave_to_fail:
                self.may_fail += tests.to_leave()
            else:
                removed += tests.names
            used_lines.update(piece.lines)
        other = [] if used_lines else block.pieces(self.document)
        if other:
            self._error(
                "unread_tests",
                other[0].lines[0],
                "has tests in a table or a code block, which is not read; write a list"
                " of names in backticks",
            )
        if used_lines and not is_leave_to_fail:
            self.removes_tests = (*(self.removes_tests or ()), *removed)
        self._assign_lines(block, used_lines)

    def _read_checks(self, block: _Block) -> None:
        used_lines: set[int] = set()
        checks: list[CheckText] = []
        words: list[Piece] = []
        pieces = block.pieces(self.document)
        for position, piece in enumerate(pieces):
            has_checks = bool(checks and checks[-1].commands)
            check = _read_check_piece(piece, has_checks=has_checks)
            if check is None:
                continue
            if block.label.is_loose_check:
                check = _only_known_commands(check)
            checks.append(check)
            self.checks += check.commands
            self._report_check(piece, check)
            if check.commands or check.is_none or not check.has_prose:
                used_lines.update(piece.lines)
            elif not check.problem and _is_lost_item(block, pieces, position):
                words.append(piece)
        self._judge_checks(block, checks)
        self._report_words_among_checks(block, checks, words)
        self._report_checks_below(block, used_lines)
        self._assign_lines(block, used_lines)

    def _report_check(self, piece: Piece, check: CheckText) -> None:
        if check.problem:
            self._error(
                "unread_check",
                piece.lines[0],
                f"has a check that cannot be read: {quote(piece.text)} {check.problem}",
            )
        elif check.commands and check.has_prose:
            self._warn(
                "prose_around_check",
                piece.lines[0],
                f"runs only `{'` and `'.join(check.commands)}`; the other words of its"
                " check are text",
            )

    def _judge_checks(self, block: _Block, checks: Sequence[CheckText]) -> None:
        if any(check.is_none for check in checks):
            self.says_no_check = True
        has_prose = any(check.has_prose for check in checks)
        has_commands = any(check.commands for check in checks)
        if has_commands or not has_prose or block.label.is_loose_check:
            return
        self.says_no_check = True
        if not any(check.is_none or check.problem for check in checks):
            self._warn(
                "prose_check",
                block.line,
                "has a check in words, so nothing runs; write a command in backticks",
            )

    def _report_words_among_checks(
        self, block: _Block, checks: Sequence[CheckText], words: Sequence[Piece]
    ) -> None:
        if block.label.is_loose_check or not words:
            return
        if not any(check.commands for check in checks):
            return
        self._warn(
            "prose_check",
            words[0].lines[0],
            f"has words among its checks, so nothing runs for {quote(words[0].text)}"
            f" ({line_runs(piece.lines[0] for piece in words)}); write commands in"
            " backticks",
        )

    def _report_checks_below(self, block: _Block, used_lines: set[int]) -> None:
        remaining = [number for number in block.lines if number not in used_lines]
        stray = find_stray_check(self.document, remaining)
        if stray is not None:
            self._error(
                "unread_check",
                stray,
                f"has a check that is read as text: {quote(self._text(stray))}; write"
                " it directly below the label",
            )

    def _read_files(self, block: _Block) -> None:
        used_lines: set[int] = set()
        last_line = block.line
        files = FileList(block.label.implied_note)
        for piece in block.pieces(self.document):
            if files.add_note(piece):
                used_lines.update(piece.lines)
                continue
            text = read_file_piece(piece, is_below=piece.lines[0] != block.line)
            if text is None:
                break
            last_line = piece.lines[-1]
            if files.add(piece, text):
                used_lines.update(piece.lines)
            else:
                self._warn(
                    "unread_file",
                    piece.lines[0],
                    f"names no file in {quote(piece.text)}, so this is read as text;"
                    " write paths in backticks",
                )
        self.files += files.files
        self._report_files_below(block, last_line)
        self._assign_lines(block, used_lines)

    def _report_files_below(self, block: _Block, last_line: int) -> None:
        below = [number for number in block.lines if number > last_line]
        for piece in split_pieces(self.document, below):
            if piece.kind is PieceKind.FENCE:
                continue
            text = piece.text.lstrip("> ").removeprefix("- ")
            path = leading_code(text) or text
            is_alone = path == text.strip("`") or piece.kind is PieceKind.ITEM
            if is_alone and is_file_of_project(path):
                self._warn(
                    "unread_file",
                    piece.lines[0],
                    f"has the file {quote(path)} in its text; move it into the list of"
                    " files",
                )
                return

    # Pieces

    def _list_of(self, block: _Block) -> list[Piece]:
        result: list[Piece] = []
        for piece in block.pieces(self.document):
            is_line_below = (
                piece.kind is PieceKind.LINE and piece.lines[0] != block.line
            )
            is_paragraph = piece.is_apart and not block.is_heading
            if is_line_below and (result or is_paragraph):
                break
            if piece.kind not in {PieceKind.LINE, PieceKind.ITEM}:
                break
            result.append(piece)
        return result

    # Prose and findings

    def _assign_lines(self, block: _Block, used_lines: Collection[int]) -> None:
        """Mark lines as the field's value. Others join the description."""
        self.field_lines.update(used_lines)
        part: list[Line] = []
        label = block.label
        if label is not _NO_LABEL:
            self.field_lines.add(block.line)
        if label.value.strip() and block.line not in used_lines:
            value = f"{label.name.capitalize()}: {label.value}"
            part.append(Line(value, is_code=True))
        for number in block.lines:
            if number in used_lines:
                self.description.append(prose(part))
                part = []
            else:
                part.append(self.document.lines[number])
        self.description.append(prose(part))

    def _unknown_labels(self) -> dict[int, str]:
        """Return bold labels without a field. A command or path after one is an error:
        nothing would run or show it.
        """
        unknown = {}
        for number in self.section.body:
            line = self.document.lines[number]
            if line.is_example or number in self.field_lines:
                continue
            text = _BOLD_TAG.sub("**", line.text).lstrip("> \t")
            label = _read_row_label(text) or read_label(text)
            if label is None:
                continue
            is_lost = self._report_lost_value(number, label)
            if label.is_bold and not (is_lost or line.is_code):
                unknown[number] = label.name
        return unknown

    def _report_lost_value(self, number: int, label: Label) -> bool:
        """Report a label whose command or file would be read as text. True if there is
        one.
        """
        value = leading_code(label.value)
        if value in self.checks or any(file.path == value for file in self.files):
            return False
        field = replace(label, is_bold=True).field
        if field is Field.VERIFY:
            if not read_check(label.value).commands:
                return False
            text = (
                f"has a check that is read as text: {quote(self._text(number))}; begin"
                " the line with `**Verify:**`"
            )
        elif label.is_bold and is_command(value) and not is_tool_name(value):
            text = (
                f"has a command behind the label {quote(label.name)}, but nothing runs"
                " it; write `**Verify:**`, or put words before the command"
            )
        elif label.is_bold and is_file_of_project(value) and _is_list(label.value):
            text = (
                f"has a file behind the label {quote(label.name)}, but the model does"
                " not see it; write `**Files Affected:**`, or put words before the path"
            )
        else:
            return False
        kind = "unread_check" if field else "unknown_label"
        self._error(kind, number, text)
        return True

    def _text(self, number: int) -> str:
        return self.document.lines[number].text

    def _error(self, kind: str, line: int, text: str) -> None:
        self.findings.error(kind, line, text, self.section.position)

    def _warn(self, kind: str, line: int, text: str) -> None:
        self.findings.warn(kind, line, text, self.section.position)


def _is_list(value: str) -> bool:
    words = _REMARK.sub("", _SPAN.sub("", value))
    return not words.strip(" ,;.")


def _read_row_label(text: str) -> Label | None:
    """Return the label of a table row with files or a check: `| Verify | make |`."""
    cells = table_cells(text) if text.startswith("|") else []
    if len(cells) != 2:
        return None
    label = read_label(f"**{cells[0].strip('*_ :')}:** {cells[1]}")
    if label is None or label.field not in {Field.FILES, Field.VERIFY}:
        return None
    return label


def _is_lost_item(block: _Block, pieces: Sequence[Piece], position: int) -> bool:
    """True if a piece of words may be meant as a check, unlike words above checks
    ("Backend:"), a list item's paragraphs, and a check's result.
    """
    piece = pieces[position]
    below = pieces[position + 1 : position + 2]
    is_above = any(other.indent > piece.indent for other in below)
    if is_above or piece.text.endswith(":") or is_expectation(piece.text):
        return False
    if piece.kind is PieceKind.LINE:
        has_value = bool(block.label.value.strip())
        return not (piece.is_apart or has_value)
    return True


def _read_check_piece(piece: Piece, *, has_checks: bool) -> CheckText | None:
    """None for a code block that is an example."""
    if piece.kind is PieceKind.TABLE_HEAD:
        return CheckText()
    if piece.kind is PieceKind.ROW:
        commands: list[str] = []
        for cell in table_cells(piece.text):
            commands += read_check(cell).commands
        return CheckText(tuple(commands), has_prose=not commands)
    if piece.kind is not PieceKind.FENCE:
        return read_check(piece.text)
    if has_checks and piece.is_apart:
        return None
    check = read_commands(piece.text, piece.code)
    if check is None:
        return CheckText(has_prose=True)
    return check if check.commands else None


def _only_known_commands(check: CheckText) -> CheckText:
    commands = tuple(filter(is_check_command, check.commands))
    return CheckText(commands, has_prose=check.has_prose or not commands)


def _split_blocks(document: Document, body: range) -> list[_Block]:
    blocks = [_Block([])]
    labels = _find_labels(document, body)
    for number in body:
        label = labels.get(number)
        if label is None:
            blocks[-1].lines.append(number)
        else:
            is_heading = _is_heading(document, number)
            blocks.append(_Block([], label, number, is_heading))
    return blocks


def _find_labels(document: Document, body: range) -> dict[int, Label]:
    """Return known labels by line. If any is bold, plain ones such as `Files: a.py` are
    description.
    """
    heading_labels: dict[int, Label] = {}
    line_labels: dict[int, Label] = {}
    for number in body:
        line = document.lines[number]
        if line.is_code:
            continue
        if _is_heading(document, number):
            label = read_heading_label(document.headings[number].text)
            if label:
                heading_labels[number] = label
        else:
            label = read_label(line.text)
            if label and label.field and not _is_sentence(label):
                line_labels[number] = label
    if any(label.is_bold for label in line_labels.values()):
        for number, label in list(line_labels.items()):
            if not label.is_bold:
                del line_labels[number]
    return heading_labels | line_labels


def _is_sentence(label: Label) -> bool:
    is_serves = label.field is Field.SERVES and not label.is_bold
    return is_serves and not is_numbers(label.value)


def _is_heading(document: Document, number: int) -> bool:
    heading = document.headings.get(number)
    return heading is not None and heading.end == number + 1


def _has_bold_label(piece: Piece) -> bool:
    label = read_label(piece.text) if piece.kind is PieceKind.LINE else None
    return label is not None and label.is_bold
