"""Compares requests with recorded ones: a run that is repeated elsewhere and later has
other paths, times and numbers of processes in its prompts.
"""

import re
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
from cdd_agent.redaction import Redactor

_FOLDER = "project folder"
_FOLDER_MARK = f"[redacted: {_FOLDER}]"
"""Stands in records for the folder of the project."""
_MAX_QUOTE = 80
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?"
_CHANGES_EACH_TIME = re.compile(
    rf"""
    # absolute paths; a name with a space in it must be followed by a slash
      (?<![\w:/.\\<]) (?:file://|~)? (?:/(?:[\w.@+~%#=-]|\ (?=[\w.-]+/))+){{2,}} /?
    | (?<!\w) [A-Za-z]:[\\/] [^\s"'`<>|:*?]+
    # dates and times
    | \b \d{{4}}-\d\d-\d\d (?:[T\ ]{_CLOCK} (?:\ ?Z|\ ?[+-]\d\d:?\d\d|\ UTC)?)?
    | \b (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\ +)?
      (?:{_MONTH}\.?\ +\d{{1,2}} | \d{{1,2}}[\ -]{_MONTH} (?!\ +\d{{1,2}}(?![\d:]))) \b
      (?:,?[\ -]\d{{4}}\b)? (?:,?\ +{_CLOCK} (?:\ [A-Z]{{3,4}})? (?:\ \d{{4}}\b)?)?
    | (?<![\w:.]) {_CLOCK} (?![\w:])
    | \b 1\d{{9}} (?:\d{{3}}|\.\d+)? \b
    # durations
    | \b (?:\d+m\ ?)? \d+(?:[.,]\d+)? \ ?
      (?:[nmµu]?s|secs?|seconds?|min(?:ute)?s?|hours?) \b
    | \b (?:time|duration(?:_ms)?|elapsed|seconds|pid|process|port|seed|timestamp)
      ["']? (?:\ ?[:=])? \ ? ["']? (?:{_CLOCK} | \d+(?:\.\d+)?)
    # addresses of objects and servers, hashes, names of temporary files
    | \b 0x[0-9a-f]{{4,}} \b
    | (?:localhost|127\.0\.0\.1|\[::1\]):\d+
    | \b [0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}} \b
    | \b (?=[a-f]*\d)(?=\d*[a-f]) [0-9a-f]{{7,64}} \b
    | \b tmp[a-z0-9_]{{8}} \b
    """,
    re.VERBOSE | re.IGNORECASE,
)


class ComparedRequest:
    """The messages of a request, line by line."""

    def __init__(self, request: Request) -> None:
        self._roles = [message.role for message in request.messages]
        self._messages = [_lines_of(message) for message in request.messages]

    def matches(self, other: "ComparedRequest") -> bool:
        """True if the requests differ only in what changes each time."""
        if self._roles != other._roles:
            return False
        pairs = zip(self._roles, self._messages, other._messages, strict=True)
        return not any(_differs(role, old, new) for role, old, new in pairs)

    def has_more_or_fewer_lines(self, other: "ComparedRequest") -> bool:
        """True if each message has all lines of the other request's, or the other
        way round. Prompts of steps side by side tell of the steps that ended before.
        """
        if self._roles != other._roles:
            return False
        pairs = zip(self._roles, self._messages, other._messages, strict=True)
        return all(
            not _differs(role, old, new) or _is_part(old, new) or _is_part(new, old)
            for role, old, new in pairs
        )

    def count_equal_lines(self, other: "ComparedRequest") -> int:
        count = 0
        for old, new in zip(self._messages, other._messages, strict=False):
            count += sum(map(str.__eq__, old, new))
        return count

    def describe_difference(self, new: "ComparedRequest") -> str:
        """Return the first place where a new request differs from this one."""
        for index in range(min(len(self._roles), len(new._roles))):
            role = new._roles[index]
            if role != self._roles[index]:
                old_role = self._roles[index]
                return (
                    f"message {index + 1} is of the {role}, and was of the {old_role}"
                )
            before, after = self._messages[index], new._messages[index]
            if _differs(role, before, after):
                place = _find_difference(before, after)
                return f"in message {index + 1} ({role}), {place}"
        return f"the messages are {len(new._roles)}, and were {len(self._roles)}"


def _differs(role: str, old: list[str], new: list[str]) -> bool:
    # A tool that was interrupted, or whose lines come in another order, has another
    # result, and the same call before it.
    if role == "tool":
        return False
    return old != new and bool(_find_difference(old, new))


def _is_part(part: list[str], whole: list[str]) -> bool:
    """True if the lines of a part are in the whole, in the same order."""
    rest = map(_without_changes, whole)
    return all(line in rest for line in map(_without_changes, part))


def _find_difference(old: list[str], new: list[str]) -> str:
    """Return the first differing line in words; empty if there is none."""
    for number, (was, is_) in enumerate(zip(old, new, strict=False), 1):
        # most lines are equal, and a substitution takes long
        if was != is_ and _without_changes(was) != _without_changes(is_):
            return f"line {number}, it was {_quote(was)} and is {_quote(is_)}"
    if len(new) > len(old):
        return f"line {len(old) + 1}, {_quote(new[len(old)])} is new"
    if len(new) < len(old):
        return f"line {len(new) + 1}, {_quote(old[len(new)])} is missing"
    return ""


def _without_changes(line: str) -> str:
    return _CHANGES_EACH_TIME.sub("…", line)


def hide_folder(redactor: Redactor, root: Path) -> Redactor:
    """Return a redactor that also hides where the project is."""
    names = {}
    for folder in (root, root.resolve()):
        if folder != Path(folder.anchor):
            names[str(folder)] = _FOLDER
    return redactor.with_names(names)


def show_folder(event: ModelEvent, root: Path) -> ModelEvent:
    """Return an event with the project's folder in place of the mark in a record."""
    match event:
        case TextDelta() | ThoughtDelta() if _FOLDER_MARK in event.text:
            return replace(event, text=event.text.replace(_FOLDER_MARK, str(root)))
        case ToolCall() if _FOLDER_MARK in event.arguments:
            arguments = event.arguments.replace(_FOLDER_MARK, str(root))
            return replace(event, arguments=arguments)
        case _:
            return event


def as_recorded(request: Request, redactor: Redactor) -> Request:
    """Return the request without secrets, and with hashes of its pictures. Definitions
    of tools are the program's own text and have no secrets.
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
    """Return all of a message that is compared."""
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
