"""Collects the files below a label: items with notes, groups, tables and code
blocks.
"""

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.tickets.file_reader import (
    ListedFiles,
    is_file_of_project,
    is_path,
    read_file_row,
    read_files,
)
from cdd_agent.tickets.markdown import leading_code
from cdd_agent.tickets.plan import AffectedFile
from cdd_agent.tickets.text_pieces import Piece, PieceKind

_NO_NOTES = 1000


class FileList(Struct):
    implied_note: str = ""
    """The label's note for all files, such as `new`."""
    files: list[AffectedFile] = field(default_factory=list)
    note_indent: int = _NO_NOTES
    groups: list[tuple[int, str]] = field(default_factory=list)
    """Open groups, such as "Create:", with the indents of their items."""

    def add_note(self, piece: Piece) -> bool:
        """Add an indented line to the last file's note. False if the piece is no
        note.
        """
        if not self.files or piece.indent < self.note_indent or _is_file_item(piece):
            return False
        last = self.files[-1]
        self.files[-1] = replace(last, note=f"{last.note} {piece.text}")
        return True

    def add(self, piece: Piece, text: ListedFiles) -> bool:
        """Add the files of a piece. False if it names none."""
        while self.groups and self.groups[-1][0] >= piece.indent:
            self.groups.pop()
        if text.group and piece.kind is PieceKind.ITEM:
            self.groups.append((piece.indent, text.group))
            return True
        notes = [self.implied_note, *(words for _, words in self.groups)]
        for file in text.files:
            note = " ".join([*filter(None, notes), file.note])
            self.files.append(replace(file, note=note))
        is_read = bool(text.files) or text.is_none or piece.kind is PieceKind.TABLE_HEAD
        if is_read and piece.kind is PieceKind.ITEM:
            self.note_indent = piece.indent + 2
        return is_read


def read_file_piece(piece: Piece, *, is_below: bool) -> ListedFiles | None:
    """Return the files of a piece; None for a paragraph below the label, which ends the
    list.
    """
    if piece.kind is PieceKind.TABLE_HEAD:
        return ListedFiles()
    if piece.kind is PieceKind.ROW:
        return read_file_row(piece.text)
    if piece.kind is PieceKind.FENCE:
        return _read_fence(piece)
    is_paragraph = piece.kind is PieceKind.LINE and is_below
    if is_paragraph and not piece.text.startswith("`"):
        first_word = piece.text.split()[0]
        return read_files(piece.text) if is_path(first_word) else None
    return read_files(piece.text)


def _read_fence(piece: Piece) -> ListedFiles:
    """Return the files of a code block, if each line is one."""
    files: list[AffectedFile] = []
    for line in piece.code:
        if line and not line.startswith("#"):
            line_files = read_files(line).files
            if not line_files or not all(is_path(file.path) for file in line_files):
                return ListedFiles()
            files += line_files
    return ListedFiles(tuple(files))


def _is_file_item(piece: Piece) -> bool:
    path = leading_code(piece.text)
    return piece.kind is PieceKind.ITEM and is_file_of_project(path)
