"""Judging new content: no file is cut short by a remark, shrunk, emptied, or made what
its language cannot read.
"""

import difflib
import json
import re
import tomllib
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import yaml
from msgspec import Struct

from cdd_agent.changes.model import PartialEdits, ReplyRefused
from cdd_agent.changes.newer_syntax import KNOWN_PYTHON, OLDER
from cdd_agent.guarded_yaml import LOADER
from cdd_agent.project.interpreters import OURS, allows, opinion

_DOTS = r"[\(\[<{]*\s*(?:\.\.\.|…)"
_REST = (
    r"(?:rest|existing|unchanged|same|previous|remaining|omitted|before|other"
    r"|above|below|keep)"
)
_STAYS = (
    r"(?:\.\.\.|…|\b(?:unchanged|the same|as (?:before|is|above)|omitted|goes"
    r" here|(?:remain|stay)s?)\b)"
)
_THINGS = (
    r"(?:code|file|imports?|functions?|methods?|classe?s?|module|content"
    r"|implementation|logic|tests?|routes?|styles?|jsx"
    r"|html|body|lines?)"
)
_COMMENT = r"^\s*+(?:#+|//+|\{?/\*+|--|;|%|<!--|\*)\s*+(?:[-=~]{2,}\s*+)?"
_ELISION = re.compile(
    rf"{_COMMENT}(?:"
    rf"{_DOTS}\W*$"  # a comment of nothing but dots
    rf"|{_DOTS}.*\b{_REST}\b.*"
    r"|[\(\[<{]*(?:the\s+)?(?:rest of|remaining|existing|previous|other|everything"
    rf" else)\b.*{_STAYS}.*"
    rf"|[\(\[<{{]*(?:the\s+)?rest of (?:the\s+|this\s+)?{_THINGS}\W*$"
    r"|keep (?:the )?(?:rest|everything|existing)\b.*"
    rf")|^\s*+{_DOTS}\s*(?=\w).*\b{_REST}\b.*",  # or a line that begins with dots
    re.IGNORECASE,
)
"""A line that says that others are left out."""
_CAPTION = re.compile(
    rf"{_COMMENT}[\(\[<{{]*(?:"
    rf"(?:(?:your|all|the|other|existing|previous|original|remaining|unchanged)\s+)*"
    rf"(?:existing|previous|original|remaining|unchanged)\s+{_THINGS}(?:\s+(?:here"
    rf"|above|below|continues))?"
    rf"|(?:{_THINGS}\s+)?(?:unchanged|omitted|snip(?:ped)?|truncated"
    rf"|continues)(?:\s+for\s+\w+)?"
    r"|no changes?(?:\s+(?:here|below|above|needed|to (?:the )?rest\b.*))?"
    r"|(?:the )?same as (?:the )?(?:above|before|original)"
    r")\W*$",
    re.IGNORECASE,
)
"""A comment that may stand for lines, or be about those below it."""
_NUMBERED = re.compile(r"^\s*(\d{1,7})(?:\s*[|:→]|\t)")
_MARK = re.compile(
    r"^(?:<{3,}|={3,}|>{3,})(?=\s*$|\s*(?:SEARCH|ORIGINAL|HEAD|REPLACE|UPDATED)\b| \w)",
    re.IGNORECASE,
)
PROSE = frozenset({".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc"})
_HAVE_DOTS = PROSE | {".py", ".pyi", ".yaml", ".yml", ""}
"""Files in which a line may be nothing but dots."""
_SHORT = 10
"""Lines, blank ones not counted, that a file has at most to be shortened freely."""
_LARGEST_CHECKED = 1_000_000
_LARGEST_YAML = 200_000
_DEEPEST_YAML = 200
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\$\{[\w.]+\}|@@?\w+@@?|__[a-z]+(?:_[a-z]+)*__\}")

_MEANT_TO_BE_WRONG = re.compile(
    r"(?:^|[\W_])(?:bad|broken|invalid|malformed|syntax_?error)(?:$|[\W_])",
    re.IGNORECASE,
)
_WITH_COMMENTS = re.compile(
    r"(?:^|/)(?:(?:ts|js)config|\.eslintrc|devcontainer|\.swcrc|\.babelrc)[^/]*$|(?:^"
    r"|/)\.vscode/"
    r"|(?:^|/)(?:(?:ts|type)doc|tslint|babel\.config|turbo|biome|deno|wrangler|angular"
    r"|api-extractor|pyrightconfig"
    r"|\.?cspell|appsettings|\.markdownlint|\.luarc|rush)(?:\.[^/]*)?$"
)
"""JSON whose readers take comments and last commas."""


def refuse_whole(
    path: PurePosixPath, before: bytes | None, content: str, parts: PartialEdits
) -> None:
    """Raises `ReplyRefused` if what is given as a whole file cannot be all of it."""
    _refuse_marks(path, before, content, parts)
    if before is None:
        return
    if before.strip() and not content.strip():
        raise ReplyRefused(f"{path} would be emptied.")
    old, new = (
        before.decode("utf-8", errors="replace"),
        {line.strip() for line in content.splitlines()},
    )
    # else no remark can stand for a line of it
    if any(line.strip() not in new for line in old.splitlines()):
        _refuse_left_out(path, before, old, content, parts)
    if _is_listing(content) and not _is_listing(old):
        raise ReplyRefused(
            f"{path} is given with the numbers of its lines.",
            hint="Send its lines without them.",
        )


def refuse_part(
    path: PurePosixPath, before: bytes | None, old: str, new: str, parts: PartialEdits
) -> None:
    """Raises `ReplyRefused` if the text that takes the place of another in a file is
    not meant as it is.
    """
    _refuse_marks(path, before, new, parts)
    _refuse_left_out(path, before, old, new, parts)


def _refuse_left_out(
    path: PurePosixPath, before: bytes | None, old: str, new: str, parts: PartialEdits
) -> None:
    """No line of a new text stands for lines of the file, but for one that the file has
    already.
    """
    lines = new.splitlines()
    remarks = [place for place, line in enumerate(lines) if _leaves_out(path, line)]
    there = (
        set((before or b"").decode("utf-8", errors="replace").splitlines())
        if remarks
        else set()
    )
    for place in remarks:
        line = lines[place]
        if line not in there and (
            not _CAPTION.match(line) or _is_instead(old.splitlines(), lines, place)
        ):
            raise ReplyRefused(
                f"{path} is given with a part left out (line {place + 1}:"
                f" {line.strip()[:80]!r}). The whole file is needed, every line of it,"
                f" or {parts.name} for what changes.",
                hint="A comment that stays in the file has to be worded otherwise.",
            )


def _leaves_out(path: PurePosixPath, line: str) -> bool:
    """A line that stands for others. In prose, `#` begins a heading and not a
    comment.
    """
    if line.strip() in ("...", "…"):
        return path.suffix.lower() not in _HAVE_DOTS
    prose = path.suffix.lower() in PROSE and line.lstrip().startswith(("#", "*", "-"))
    return not prose and bool(_ELISION.match(line) or _CAPTION.match(line))


def _is_instead(old: Sequence[str], new: Sequence[str], place: int) -> bool:
    """Whether more lines go than come where a line of the new text stands, itself not
    counted.
    """
    for _, old_from, old_to, new_from, new_to in difflib.SequenceMatcher(
        None, old, new
    ).get_opcodes():
        if new_from <= place < new_to:
            gone, come = (
                sum(map(bool, map(str.strip, lines)))
                for lines in (old[old_from:old_to], new[new_from:new_to])
            )
            return gone > come - 1
    return False


def _refuse_marks(
    path: PurePosixPath, before: bytes | None, content: str, parts: PartialEdits
) -> None:
    """No marks of a merge or of a search/replace block become part of a file."""
    marks = [line for line in content.splitlines() if _MARK.match(line)]
    kinds = "".join(dict.fromkeys(line[0] for line in marks))
    if kinds != "<=>" or path.suffix.lower() in PROSE or is_whole(str(path), content):
        return
    if marks[0].encode() not in (before or b""):
        raise ReplyRefused(
            f"{path} would have the line {marks[0][:80]!r} in it.",
            hint=f"To change a part of a file, {parts.how}.",
        )


def _is_listing(text: str) -> bool:
    """Whether each line begins with its number, as files are shown by some tools."""
    found = [_NUMBERED.match(line) for line in text.splitlines() if line.strip()]
    numbers = [int(match[1]) for match in found if match]
    return len(found) > 2 and numbers == list(
        range(numbers[0] if numbers else 0, (numbers or [0])[0] + len(found))
    )


def refuse_shrunk(
    path: PurePosixPath, before: bytes, content: str, parts: PartialEdits
) -> None:
    """Raises `ReplyRefused` if a whole file has less than half of its lines left: then
    most likely a part was sent.
    """
    old = sum(bool(line.strip()) for line in before.splitlines())
    new = sum(bool(line.strip()) for line in content.splitlines())
    if old > _SHORT and new * 2 < old:
        raise ReplyRefused(
            f"{path} has {old} lines and would have {new}: a whole file is never"
            " shortened by more than half.",
            hint=(
                f"Send all of its lines, or take out with {parts.name} what is to be"
                " removed."
            ),
        )


def refuse_unreadable(
    root: Path, path: PurePosixPath, before: bytes | None, after: bytes
) -> str:
    """Raises `ReplyRefused` for a file that its language cannot read, unless it was so
    before.

    A new file, too: it is as broken as a changed one. Not one that looks like a
    template, or whose name says that it is meant to be wrong; nor new YAML, which is a
    template more often than anything else. Nor what may be right in a newer version of
    the language, which this program cannot read: for people, what comes back says so.
    """
    if not complaint(path, after) or (
        before is None and _is_wrong_on_purpose(path, after)
    ):
        return ""
    found = _read(root, path, after)
    if found.wrong and (before is None or not _read(root, path, before).wrong):
        raise ReplyRefused(
            f"{path} would not be valid: {found.wrong}.",
            hint="Check the new text, and send it in full.",
        )
    return found.doubt


def _is_wrong_on_purpose(path: PurePosixPath, new: bytes) -> bool:
    if path.suffix in (".yaml", ".yml") or _MEANT_TO_BE_WRONG.search(str(path)):
        return True
    if path.suffix in (".py", ".pyi"):
        return re.search(rb"\{%|\{\{ ?\w[\w.]* ?\}\}", new) is not None
    return _TEMPLATE.search(new.decode("utf-8", errors="replace")) is not None


class _SyntaxReading(Struct, frozen=True):
    """Either field says something, or the file can be read."""

    wrong: str = ""
    doubt: str = ""
    """Why nobody here can say whether it is wrong."""


def _read(root: Path, path: PurePosixPath, data: bytes) -> _SyntaxReading:
    """By this program's parsers, and where these cannot read a file, by the Python that
    its project is for.
    """
    wrong, may_be_newer, reader = (
        complaint(path, data),
        _may_be_newer(path, data),
        "TOML 1.0",
    )
    if not wrong:
        return _SyntaxReading()
    if path.suffix.lower() in (".py", ".pyi"):
        said, reader = opinion(root, data), f"Python {OURS[0]}.{OURS[1]}"
        if said is not None and not said.wrong:
            return _SyntaxReading()
        if said is not None and (
            said.is_of_project or said.version >= KNOWN_PYTHON or not may_be_newer
        ):
            return _SyntaxReading(
                f"{said.wrong} (Python {said.version[0]}.{said.version[1]})"
            )
        newer = ((OURS[0], minor) for minor in range(OURS[1] + 1, KNOWN_PYTHON[1] + 1))
        may_be_newer = may_be_newer and any(allows(root, version) for version in newer)
    if not may_be_newer:
        return _SyntaxReading(wrong)
    return _SyntaxReading(
        doubt=(
            f"{path} is more than {reader} can read ({wrong}); a newer version may, so"
            " it was not refused"
        )
    )


def is_whole(path: str, content: str) -> bool:
    """Whether a content is known to be all of a file: its language can read it by
    itself.
    """
    place, data = PurePosixPath(path), content.encode("utf-8", "replace")
    is_read = place.suffix in _STRICT and (
        not complaint(place, data) or _may_be_newer(place, data)
    )
    return bool(content.strip()) and is_read


def _may_be_newer(path: PurePosixPath, data: bytes) -> bool:
    """Whether a file that cannot be read here could be, if what is known to be newer in
    it were said in older words.
    """
    older = OLDER.get(path.suffix.lower())
    if older is None or len(data) > _LARGEST_CHECKED:
        return False
    try:
        text = data.decode("utf-8-sig")
        return not complaint(path, older(text.replace("\r\n", "\n")).encode())
    except (UnicodeError, RecursionError, MemoryError):
        return False


def complaint(path: PurePosixPath, data: bytes) -> str:
    """The fault of a file, with its line, as a clause; empty where there is none, or
    nobody can say.
    """
    check = (_STRICT | {".yaml": _yaml, ".yml": _yaml}).get(path.suffix.lower())
    if (
        check is None
        or len(data) > _LARGEST_CHECKED
        or _WITH_COMMENTS.search(str(path))
        or not data.strip()
    ):
        return ""
    try:
        return check(data)
    except (RecursionError, MemoryError):
        # nested deeper than the parser goes: no reason to say that it is wrong
        return ""


def _python(data: bytes) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except ValueError as error:  # a null byte
        return str(error)
    return ""


def _json(data: bytes) -> str:
    try:
        json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        return f"line {error.lineno}: {error.msg}"
    except ValueError as error:  # not UTF-8, or a number that is too long
        return str(error)
    return ""


def _toml(data: bytes) -> str:
    try:
        tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except ValueError as error:
        return str(error)
    return ""


def _yaml(data: bytes) -> str:
    if len(data) > _LARGEST_YAML:
        return ""
    try:
        depth = 0
        for event in yaml.parse(data, Loader=LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
                event, yaml.CollectionEndEvent
            )
            if depth > _DEEPEST_YAML:
                return ""
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return f"line {mark.line + 1 if mark else 1}: {error.problem or error.context}"
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return " ".join(str(error).split())
    return ""


_STRICT: dict[str, Callable[[bytes], str]] = {
    ".py": _python,
    ".pyi": _python,
    ".json": _json,
    ".toml": _toml,
}
