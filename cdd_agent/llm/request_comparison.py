"""Compare requests with recorded ones. A repeated run has other paths, times and
process numbers in its prompts.
"""

import json
import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.llm.port import (
    Message,
    ModelEvent,
    Request,
    TextDelta,
    ThoughtDelta,
    ToolCall,
)
from cdd_agent.pattern import Pattern
from cdd_agent.text.redaction import Redactor

_FOLDER = "project folder"
_FOLDER_MARK = f"[redacted: {_FOLDER}]"
"""Replaces the project folder in records."""
_MAX_QUOTE = 80
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_WEEKDAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?"
_NUMBER = r"\d+(?:[.,]\d+)?"
_DATE = (
    rf"\b(?:{_WEEKDAY},? +)?"
    rf"(?:{_MONTH}\.? +\d{{1,2}}|\d{{1,2}}[ -]{_MONTH}(?! +\d{{1,2}}(?![\d:])))\b"
    rf"(?:,?[ -]\d{{4}}\b)?(?:,? +{_CLOCK}(?: [A-Z]{{3,4}})?(?: \d{{4}}\b)?)?"
)
"""As in `Fri Nov 27 08:10:38 UTC 2026` and `Fri, 27 Nov 2026 08:10:38`."""
_NAMED_NUMBER = (
    r"\b(?:time|duration(?:_ms)?|elapsed|seconds|pid|process|port|seed|timestamp)"
    rf"""["']?(?: ?[:=])? ?["']?(?:{_CLOCK}|{_NUMBER})"""
)
_PATTERNS = (
    # absolute paths; a slash must follow a folder with a blank in its name
    r"(?<![\w:/.\\<])(?:file://|~)?(?:/(?:[\w.@+~%#=-]| (?=[\w.-]+/))+){2,}/?",
    r"""(?<!\w)[A-Z]:[\\/][^\s"'`<>|:*?]+""",
    # 2026-11-27T08:10:38.123Z
    rf"\b\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}(?: ?Z| ?[+-]\d\d:?\d\d| UTC)?)?",
    _DATE,
    rf"(?<![\w:.]){_CLOCK}(?![\w:])",
    # seconds or milliseconds since 1970
    r"\b1\d{9}(?:\d{3}|\.\d+)?\b",
    # durations
    rf"\b(?:\d+m ?)?{_NUMBER} ?(?:[nmµu]?s|secs?|seconds?|min(?:ute)?s?|hours?)\b",
    _NAMED_NUMBER,
    # addresses of objects and of servers on this computer
    r"\b0x[0-9a-f]{4,}\b",
    r"(?:localhost|127\.0\.0\.1|\[::1\]):\d+",
    # UUIDs, hashes and names of temporary files
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
    r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b",
    r"\btmp[a-z0-9_]{8}\b",
)
_CHANGES_EACH_TIME = Pattern("|".join(_PATTERNS), re.IGNORECASE)


class ComparedRequest:
    """The messages of a request, line by line."""

    def __init__(self, request: Request) -> None:
        self._roles = [message.role for message in request.messages]
        self._compared: list[list[str]] = []
        """The lines of each message that must be equal."""
        self._lines: list[str] = []
        for message in request.messages:
            lines = _lines_of(message)
            self._lines += lines
            # A tool's result may differ after an interruption or in line order. The
            # call before it is the same.
            self._compared.append([] if message.role == "tool" else lines)

    def matches(self, other: "ComparedRequest") -> bool:
        """True if the requests differ only in what changes each time."""
        if self._roles != other._roles:
            return False
        pairs = zip(self._compared, other._compared, strict=True)
        return not any(_find_difference(old, new) for old, new in pairs)

    def has_more_or_fewer_lines(self, other: "ComparedRequest") -> bool:
        """True if each message has all lines of the other request's, or the other way
        round. Prompts of parallel steps name the steps that ended before.
        """
        if self._roles != other._roles:
            return False
        pairs = zip(self._compared, other._compared, strict=True)
        return all(_is_part(old, new) or _is_part(new, old) for old, new in pairs)

    def count_equal_lines(self, other: "ComparedRequest") -> int:
        return sum(map(str.__eq__, self._lines, other._lines))

    def describe_difference(self, new: "ComparedRequest") -> str:
        """Return the first place where a new request differs from this one."""
        for index, (was, role) in enumerate(zip(self._roles, new._roles, strict=False)):
            message = f"message {index + 1}"
            if role != was:
                return f"{message} is of the {role}, and was of the {was}"
            place = _find_difference(self._compared[index], new._compared[index])
            if place:
                return f"in {message} ({role}), {place}"
        return f"the messages are {len(new._roles)}, and were {len(self._roles)}"


def _is_part(part: list[str], whole: list[str]) -> bool:
    rest = map(_without_changes, whole)
    return all(line in rest for line in map(_without_changes, part))


def _find_difference(old: list[str], new: list[str]) -> str:
    """Describe the first differing line, or return an empty text."""
    for number, (was, is_) in enumerate(zip(old, new, strict=False), 1):
        if was != is_ and _without_changes(was) != _without_changes(is_):
            return f"line {number}, it was {_quote(was)} and is {_quote(is_)}"
    if len(new) > len(old):
        return f"line {len(old) + 1}, {_quote(new[len(old)])} is new"
    if len(new) < len(old):
        return f"line {len(new) + 1}, {_quote(old[len(new)])} is missing"
    return ""


@lru_cache(maxsize=2**16)
def _without_changes(line: str) -> str:
    # cached, because requests repeat most lines and a substitution is slow
    return _CHANGES_EACH_TIME.sub("…", line)


def hide_folder(redactor: Redactor, root: Path) -> Redactor:
    folders = {}
    for folder in (root, root.resolve()):
        if folder != Path(folder.anchor):
            folders[str(folder)] = _FOLDER
    return redactor.with_folders(folders)


def show_folder(event: ModelEvent, root: Path) -> ModelEvent:
    """Return an event with the project's folder in place of its mark."""
    match event:
        case TextDelta() | ThoughtDelta() if _FOLDER_MARK in event.text:
            return replace(event, text=event.text.replace(_FOLDER_MARK, str(root)))
        case ToolCall() if _FOLDER_MARK in event.arguments:
            folder = json.dumps(str(root), ensure_ascii=False)[1:-1]
            arguments = event.arguments.replace(_FOLDER_MARK, folder)
            return replace(event, arguments=arguments)
        case _:
            return event


def as_recorded(request: Request, redactor: Redactor) -> Request:
    """Return the request without secrets, and with hashes of its pictures. Tool
    definitions are cdd's own text and have no secrets.
    """
    messages = []
    for message in request.messages:
        pictures = []
        for picture in message.pictures:
            pictures.append(replace(picture, data=sha256(picture.data).digest()))
        without_data = replace(message, pictures=tuple(pictures))
        messages.append(redactor.redacted(without_data))
    return Request(tuple(messages), request.tools)


def _lines_of(message: Message) -> list[str]:
    lines = message.content.split("\n")
    for call in message.tool_calls:
        lines += f"{call.name} {call.arguments}".split("\n")
    for picture in message.pictures:
        # in pairs, which do not look like a hash that changes
        lines.append(f"{picture.name} {picture.data.hex(' ')}")
    return lines


def _quote(line: str) -> str:
    if len(line) > _MAX_QUOTE:
        line = f"{line[:_MAX_QUOTE]}…"
    return repr(line)
