"""Files that a line mentions: `@src/app.py`, `@docs/`, `@"a name with spaces.md"`.

A mentioned file goes with the line, whole or not at all. What only looks like a mention
(an e-mail address, a decorator) is left alone.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.files.read import SourceMissing, SourceText, locate, read_source
from cdd_agent.llm.pictures import (
    MOST,
    PictureUnusable,
    is_meant_as_picture,
    picture_at,
)
from cdd_agent.llm.port import Picture
from cdd_agent.project.rules import NAMES, ProjectRules, project_rules
from cdd_agent.project.unfilled import without_unfilled
from cdd_agent.sanitize import fenced, sanitize_for_display

LARGEST = 100_000
"""Characters of one file that goes with a line."""
_BEFORE = r"(?<![^\s(\[{,;:'`])"
"""Before a mention: nothing, a space, or what opens or separates."""
_HEADING = "# What the message mentions, as it is now"
_MENTION = re.compile(
    rf"{_BEFORE}@(?:\"(?P<quoted>[^\"\n]+)\"|(?P<plain>[^\s\"'`()<>|]+)(?P<call>\()?)"
)
OPEN = re.compile(rf"{_BEFORE}@(?:\"(?P<quoted>[^\"\n]*)|(?P<plain>[^\s\"'`()<>|]*))\Z")
"""A mention that is still being typed, at the end of a line."""
_ENDS = ".,;:!?]}"
"""Marks after a mention that do not belong to it."""
_LOOKS_LIKE_A_FILE = re.compile(r".*[/\\].*|.*\w\.[A-Za-z]\w{0,3}")
_MOST_MISSING = 3
"""Files that are not there and are told of one by one, each with what may have been
meant: that takes a walk.
"""
PLAIN_NAME = re.compile(r"[^\s\"'`()<>|]+")
"""A path that needs no quotes."""


class Mentions(Struct, frozen=True):
    """A line with the files that it mentions, and what a person has to know of them."""

    text: str
    notices: tuple[Notice, ...]
    pictures: tuple[Picture, ...] = ()


def with_mentions(root: Path, line: str, room: int) -> Mentions:
    """Read what a line mentions, `room` characters at most; what is not there, or
    cannot go with it, is told.

    Raises `CddError` for a picture that cannot: without it the words would ask about
    nothing.
    """
    attached, missing = _Attached(root, room), 0
    for name, is_there in _names(root, line):
        missing += not is_there
        if is_there or missing <= _MOST_MISSING:
            attached.add(name)
    if missing > _MOST_MISSING:
        text = f"{missing - _MOST_MISSING:,} more that look like files are not there."
        attached.warn(text)
    _expect_not_too_many(attached.pictures)
    notices = tuple(attached.notices)
    if not attached.parts:
        return Mentions(line, notices)
    text = "\n\n".join([line, _HEADING, *attached.parts])
    return Mentions(text, notices, tuple(attached.pictures))


class _Attached(Struct, dict=True):
    """What goes with a line."""

    root: Path
    room: int
    """Characters that may be added."""
    parts: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    @cached_property
    def rules(self) -> ProjectRules:
        """The rules that the prompt has anyway."""
        return project_rules(self.root)

    def add(self, name: str) -> None:
        """Attach what a mention names, or warn. Raises `CddError` for a picture that
        cannot be sent.
        """
        try:
            if picture := _picture(self.root, name):
                self.pictures.append(picture)
                shown = sanitize_for_display(name)
                self.parts.append(f"{shown} is a picture, and comes with this message.")
                return
            source = read_source(self.root, name, limit=LARGEST)
        except PictureUnusable:
            raise
        except CddError as error:
            self.warn(f"{_reason(error)}; only its name is sent.")
            return
        if str(source.path) in self.rules.paths:
            shown = sanitize_for_display(str(source.path))
            self.parts.append(f"{shown} is among the project's rules for agents.")
            self.confirm(f"{name} is sent as one of the project's rules.")
        elif source.cut or len(source.text) > self.room:
            self.warn(
                f"{name} is too big to go with a message ({_size(source)}); only its"
                " name is sent. The model can read parts of it."
            )
        else:
            self.room -= len(source.text)
            self.parts.append(_part(source))
            self.confirm(f"Sent with it: {name} ({_size(source)}).")

    def warn(self, text: str) -> None:
        self.notices.append(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SENT))

    def confirm(self, text: str) -> None:
        self.notices.append(Notice(text, Tone.QUIET, kind=NoticeKind.SENT))


def as_typed(message: str) -> str:
    """A message without what was sent with it."""
    return message.partition(f"\n\n{_HEADING}\n")[0]


def with_pictures(root: Path, line: str) -> Mentions:
    """The same for pictures alone: other files stay names, for a model that looks at
    them by itself.
    """
    pictures, notices = list[Picture](), list[Notice]()
    for name, is_there in _names(root, line):
        if not (is_there or is_meant_as_picture(name)):
            continue
        try:
            if picture := _picture(root, name):
                pictures.append(picture)
        except SourceMissing as error:
            notices.append(
                Notice(f"{_reason(error)}; only its name is sent.", Tone.WARNING)
            )
        except PictureUnusable:
            raise
        except CddError:
            continue  # the tools by which the model looks say why it cannot be read
    _expect_not_too_many(pictures)
    return Mentions(line, tuple(notices), tuple(pictures))


def _picture(root: Path, name: str) -> Picture | None:
    """Raises `PictureUnusable` also for what is called like a picture and must not be
    read; else as `read_source`.
    """
    try:
        return picture_at(root, name)
    except SourceMissing:
        raise
    except CddError as error:
        if is_meant_as_picture(name) and not isinstance(error, PictureUnusable):
            raise PictureUnusable(error.message, hint=error.hint) from error
        raise


def _expect_not_too_many(pictures: Sequence[Picture]) -> None:
    if len(pictures) > MOST:
        raise PictureUnusable(
            f"{len(pictures)} pictures are too many for one message: models take {MOST}"
        )


def _names(root: Path, line: str) -> Iterator[tuple[str, bool]]:
    """Names that are there, or look as if they were meant to be files; each once, and
    whether it is there.
    """
    seen: set[str] = set()
    for mention in _MENTION.finditer(line):
        plain = mention["plain"] or ""
        candidates = (
            (mention["quoted"],) if mention["quoted"] else (plain, plain.rstrip(_ENDS))
        )
        name = next(
            (name for name in candidates if name and _exists(root, name)),
            candidates[-1],
        )
        looks = (
            mention["call"] is None and _LOOKS_LIKE_A_FILE.fullmatch(name) is not None
        )
        if not name or name in seen:
            continue
        seen.add(name)
        is_there = _exists(root, name)
        if is_there or mention["quoted"] or looks:
            yield name, is_there


def _exists(root: Path, name: str) -> bool:
    # a pasted text may have thousands of names that no file has
    place = root / name.replace("\\", "/")
    if name.isascii() and not os.path.lexists(place):
        return False
    try:
        return (root / locate(root, name)).exists()
    except (CddError, OSError):
        return False


def _reason(error: CddError) -> str:
    return " ".join(
        filter(
            None, (error.message.rstrip("."), f"({error.hint})" if error.hint else "")
        )
    )


def _size(source: SourceText) -> str:
    count = len(source.text.splitlines())
    if source.is_folder:
        return f"{'over ' * source.cut}{count:,} {'entry' if count == 1 else 'entries'}"
    return (
        f"{source.size:,} bytes"
        if source.cut
        else f"{count:,} line{'' if count == 1 else 's'}"
    )


def _part(source: SourceText) -> str:
    """Return a file or a folder as a message has it."""
    name = sanitize_for_display(str(source.path))
    note = f" ({source.note})" if source.note else ""
    if source.is_folder:
        return f"{name}/ holds{note}:\n{fenced(source.text)}"
    text = without_unfilled(source.text) if source.path.name in NAMES else source.text
    return f"{name}{note}:\n{fenced(text, source.path.suffix.lstrip('.'))}"
