"""Files that are sent with a line that mentions them: `@src/app.py`, `@docs/`,
`@src/app.py:3-5`, `@shot.png`.

A file, or the lines that the mention names, is sent whole or not at all. The user sees
which.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.files.mention_reader import LineRange, Mention, find_mentions
from cdd_agent.files.read import (
    NO_ENTRIES,
    SourceMissing,
    SourceText,
    SourceUnreadable,
    read_source,
)
from cdd_agent.llm.pictures import (
    MOST,
    PictureUnusable,
    is_meant_as_picture,
    picture_at,
)
from cdd_agent.llm.port import Model, Picture
from cdd_agent.project.rules import NAMES, ProjectRules, project_rules
from cdd_agent.project.unfilled import without_unfilled
from cdd_agent.text.sanitize import fenced, sanitize_for_display

_LARGEST = 100_000
_ROOM_IN_UNKNOWN_WINDOW = 48_000
_MOST_MISSING = 3
"""Maximum missing files that are reported one by one: suggestions for each need a walk
through the project.
"""
_HEADING = "# What the message mentions, as it is now"


class LineWithFiles(Struct, frozen=True):
    text: str
    notices: tuple[Notice, ...]
    pictures: tuple[Picture, ...] = ()


def room_for_files(model: Model) -> int:
    """Return the maximum characters of files in one message, about a quarter of the
    model's window.
    """
    if model.window is None:
        return _ROOM_IN_UNKNOWN_WINDOW
    return model.window * 3 // 4


def attach_files(
    root: Path, line: str, room: int, *, takes_pictures: bool = True
) -> LineWithFiles:
    """Read the files that a line mentions, at most `room` characters.

    Raises `PictureUnusable` for a picture that no model accepts: without the picture,
    the line makes no sense.
    """
    attachments = _Attachments(root, room, takes_pictures)
    missing = []
    for mention in find_mentions(root, line):
        if mention.path is None:
            missing.append(mention)
        else:
            attachments.add(mention)
    attachments.add_missing(missing)
    if len(attachments.pictures) > MOST:
        raise PictureUnusable(
            f"The message has {len(attachments.pictures)} pictures, and models"
            f" take at most {MOST}"
        )
    text = line
    if attachments.parts:
        text = "\n\n".join([line, _HEADING, *attachments.parts])
    return LineWithFiles(text, tuple(attachments.notices), tuple(attachments.pictures))


def report_missing(root: Path, line: str) -> tuple[Notice, ...]:
    attachments = _Attachments(root, room=0, takes_pictures=False)
    missing = [each for each in find_mentions(root, line) if each.path is None]
    attachments.add_missing(missing)
    return tuple(attachments.notices)


def without_files(message: str) -> str:
    """Return the line as the user typed it."""
    return message.partition(f"\n\n{_HEADING}\n")[0]


class _Attachments(Struct, dict=True):
    root: Path
    room: int
    takes_pictures: bool
    parts: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    @cached_property
    def rules(self) -> ProjectRules:
        return project_rules(self.root)

    def add(self, mention: Mention) -> None:
        """Raise `PictureUnusable`."""
        try:
            picture = _read_picture(self.root, mention.name)
            if picture is not None:
                self._add_picture(picture, mention)
            else:
                self._add_text(_read_text(self.root, mention), mention)
        except PictureUnusable:
            raise
        except CddError as error:
            reason = error.message.rstrip(".")
            if error.hint:
                reason += f" ({error.hint})"
            self.warn(f"{reason}. Only the name is sent.")

    def add_missing(self, missing: Sequence[Mention]) -> None:
        for mention in missing[:_MOST_MISSING]:
            self.add(mention)
        more = len(missing) - _MOST_MISSING
        if more > 0:
            self.warn(f"{more:,} more names look like files but do not exist.")

    def _add_picture(self, picture: Picture, mention: Mention) -> None:
        shown = sanitize_for_display(mention.name)
        if mention.lines is not None:
            raise SourceUnreadable(f"{shown} is a picture, so it has no lines")
        if not self.takes_pictures:
            raise SourceUnreadable(f"{shown} is a picture. Pictures are not sent here")
        self.pictures.append(picture)
        self.parts.append(f"{shown} is a picture, and comes with this message.")

    def _add_text(self, source: SourceText, mention: Mention) -> None:
        name = mention.name
        if str(source.path) in self.rules.paths:
            shown = sanitize_for_display(str(source.path))
            self.parts.append(f"{shown} is among the project's rules for agents.")
            self.confirm(
                f"{name} is already in the prompt, as one of the project's rules."
            )
            return
        if source.cut or len(source.text) > self.room:
            self.warn(
                f"{name} is too big for one message ({_size(source)}). Only its"
                " name is sent; the model can read parts of the file."
            )
            return
        self.room -= len(source.text)
        self.parts.append(_part(source, mention.lines))
        count = _size(source)
        if mention.lines is not None:
            count = _lines_in_words(source, mention.lines)
        self.confirm(f"Sent with your message: {name} ({count}).")

    def warn(self, text: str) -> None:
        self.notices.append(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SENT))

    def confirm(self, text: str) -> None:
        self.notices.append(Notice(text, Tone.QUIET, kind=NoticeKind.SENT))


def _read_picture(root: Path, name: str) -> Picture | None:
    """Return a picture; None for another file. Raises the errors of `read_source`, and
    `PictureUnusable` even for an unreadable file with a picture's name.
    """
    try:
        return picture_at(root, name)
    except (SourceMissing, PictureUnusable):
        raise
    except CddError as error:
        if is_meant_as_picture(name):
            raise PictureUnusable(error.message, hint=error.hint) from error
        raise


def _read_text(root: Path, mention: Mention) -> SourceText:
    """Raise the errors of `read_source`."""
    lines = mention.lines
    if lines is None:
        return read_source(root, mention.name, limit=_LARGEST)
    source = read_source(root, mention.name, lines.first, lines.last, limit=_LARGEST)
    if source.is_folder:
        raise SourceUnreadable(f"{source.path} is a folder and has no lines")
    return source


def _size(source: SourceText) -> str:
    count = len(source.text.splitlines())
    if source.is_folder and source.text.strip() == NO_ENTRIES:
        return "empty"
    if source.is_folder:
        entries = "entry" if count == 1 else "entries"
        return f"over {count:,} {entries}" if source.cut else f"{count:,} {entries}"
    if source.cut:
        return f"{source.size:,} bytes"
    return f"{count:,} line{'' if count == 1 else 's'}"


def _lines_in_words(source: SourceText, lines: LineRange) -> str:
    count = len(source.text.splitlines())
    if count < 2:
        return f"line {lines.first:,}"
    return f"lines {lines.first:,} to {lines.first + count - 1:,}"


def _part(source: SourceText, lines: LineRange | None) -> str:
    name = sanitize_for_display(str(source.path))
    note = f" ({source.note})" if source.note else ""
    language = source.path.suffix.lstrip(".")
    if source.is_folder:
        return f"{name}/ holds{note}:\n{fenced(source.text)}"
    if lines is not None:
        numbered = _number_lines(source.text, lines.first)
        heading = f"{name}, {_lines_in_words(source, lines)}, each with its number"
        return f"{heading}{note}:\n{fenced(numbered, language)}"
    text = source.text
    if source.path.name in NAMES:
        text = without_unfilled(text)
    return f"{name}{note}:\n{fenced(text, language)}"


def _number_lines(text: str, first: int) -> str:
    lines = text.splitlines()
    width = len(str(first + len(lines)))
    numbered = [f"{first + at:>{width}}  {line}" for at, line in enumerate(lines)]
    return "\n".join(numbered) + "\n"
