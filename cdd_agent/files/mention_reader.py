"""Find the files that a line mentions with an at sign: `@src/app.py`, `@docs/`, `@"my
notes.md"`, `@src/app.py:3-5`.

A mention means the longest name that exists in the project and ends where a name can
end. If no such name exists, text that looks like a file is reported, and no shorter
name replaces it: `@src/(auth)/page.tsx` never means `src/`.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.files.paths import PathRefused, parse_path
from cdd_agent.files.read import locate
from cdd_agent.files.spelling import compose
from cdd_agent.pattern import Pattern

_LONGEST = 1_000
"""Maximum characters of a mention."""
_LONGEST_PART = 255
"""Maximum characters of a file name on common disks."""
_MOST_BLANKS = 6
"""Maximum blanks in a name without quotes."""
_MOST_CLOSERS = 6
"""Maximum number of places where a quoted name may end."""
_SIGN = Pattern("[@＠]")
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": "”",
    "”": "”",
    "„": "“”",
    "‘": "’",
    "’": "’",
    "‚": "‘’",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "《": "》",
    "＂": "＂",
}
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"))
_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f"
    "\uff01-\uff60\uffe0-\uffe6"
)
"""Letters and marks of scripts without blanks between words."""
_WIDE_OPENERS = "（［｛「『【〈《〔"
_WIDE_MARKS = "、。，．：；！？）］｝」』】〉》〕…＂＇"
_BEFORE = Pattern(rf"[\s(\[{{<>,;:|*\"'`“„”‘‚’«»‹›{_WIDE}]")
"""Signs that may precede the at sign. After a letter it is an e-mail address."""
_MARKS = rf".,:;!?)\]}}>*|\"'`“”‘’«»‹›–{_WIDE_MARKS}"
_NAME_SIGN = rf"(?![{_WIDE}])[\w/\\$#~+%&=-]"
_END = Pattern(rf"\Z|[\s<|—]|[{_WIDE_MARKS}]|['’]s\b|[{_MARKS}]++(?!{_NAME_SIGN})")
"""Text that may follow a name: marks that no sign of a longer name follows."""
_WIDE_LETTER = Pattern(rf"(?![{_WIDE_OPENERS}])[{_WIDE}]")
_LINES = Pattern(
    r"(?:[:：]L?|#L?)(?P<first>[0-9]{1,9})(?:[:C][0-9]{1,9})?"
    r"(?:[-–—]L?(?P<last>[0-9]{1,9})(?:[:C][0-9]{1,9})?)?"
)
"""Line numbers after a name, as editors, compilers and web sites write them."""
_NAME_WITH_LINES = Pattern(rf"(?P<name>.+?){_LINES.pattern}")
_LOOKS_LIKE_A_FILE = Pattern(
    r".*[/\\].*|\.[A-Za-z][\w.-]*|.*[^\s.]\.(?:[A-Za-z]\w{0,3}|astro|cshtml|dockerfile"
    r"|gradle|graphql|ipynb|jinja2?|jsonc|jsonl|markdown|parquet|plist|proto|razor|scala"
    r"|sqlite|svelte|swift|tfvars|xhtml)(?:\W.*)?"
)
"""A path, a hidden file, or a short or well-known ending. Decorators such as
`@app.route` have longer ones.
"""
_CALL = Pattern(r"[\w.]+\([^()]*\)?")
"""A decorator with arguments."""
_ASIDE = Pattern(r"\([^()]*(?:\)(?![\w/]|\.\w)|\Z)")
"""Words in brackets directly after a name."""
_BARE_WORD = Pattern(r"[\w-]+")
_DOTTED_NAME = Pattern(r"[\w-]+(?:\.\w+)*")
_END_OF_KEY = Pattern(r'"\s*:')
_AT_RULE = Pattern(
    r"\s*@(?:charset|container|counter-style|font-face|font-feature-values|import"
    r"|keyframes|layer|media|namespace|page|property|scope|starting-style|supports"
    r"|apply|config|custom-variant|plugin|screen|tailwind|theme|utility|variant"
    r"|at-root|each|else|extend|for|forward|function|if|include|mixin|return|use|while"
    r"|-\w+-\w+)\b.*[{;]\s*"
)
"""A line of a style sheet: CSS, Tailwind, Sass, and browser-specific names."""
_DECORATED = Pattern(
    r"\s*(?:(?:async|export|default|public|private|protected|static|final|abstract|"
    r"internal|override|open)\s+)*"
    r"(?:(?:def|class|function|func|fun|fn|interface|enum|struct|record)\s+\w+\s*[(<:{]"
    r"|(?:public|private|protected|static|final|internal|override)\s[^.]*[({=;])"
)
"""The definition below decorators or annotations."""
_PLAIN_NAME = Pattern(rf"(?![{''.join(_QUOTES)}])\S+")


class LineRange(Struct, frozen=True):
    """Lines of a file, from 1, both included."""

    first: int
    last: int


class Mention(Struct, frozen=True):
    name: str
    """As typed, without quotes and line numbers."""
    path: PurePosixPath | None
    """Relative to the root; None if the name does not exist."""
    lines: LineRange | None = None

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The lines as ranges; empty for the whole file."""
        if self.lines is None:
            return ()
        return ((self.lines.first, max(self.lines.first, self.lines.last)),)


class OpenMention(Struct, frozen=True):
    """A mention at the end of a line that is still being typed."""

    start: int
    """Index of the at sign in the line."""
    name: str


def find_mentions(root: Path, text: str) -> list[Mention]:
    """Return the mentions in a text, each once, in order: names that exist, and other
    names that look like files.
    """
    project = _ProjectNames(root)
    mentions: dict[tuple[str, LineRange | None], Mention] = {}
    end = 0
    for sign in _SIGN.finditer(text):
        if sign.start() < end or not _may_begin(text, sign.start()):
            continue
        mention, length = _Typed.at(text, sign.end()).find(project)
        if mention is None or _is_code(text, sign.start(), mention):
            continue
        end = sign.end() + length
        mentions.setdefault((str(mention.path or mention.name), mention.lines), mention)
    return list(mentions.values())


def mentioned_name(root: Path, word: str) -> str:
    """Return the name that a word mentions, or the word itself. Where a command expects
    a path, `@src` means `src`.
    """
    if not _SIGN.match(word):
        return word
    mentions = find_mentions(root, word)
    return mentions[0].name if len(mentions) == 1 else word


def find_open_mention(text: str) -> OpenMention | None:
    line_start = max(text.rfind("\n") + 1, len(text) - _LONGEST)
    for sign in _SIGN.finditer(text, line_start):
        if not _may_begin(text, sign.start()):
            continue
        typed = text[sign.end() :]
        closers = _QUOTES.get(typed[:1], "")
        if closers:
            typed = typed[1:]
            is_over = any(closer in typed for closer in closers)
        else:
            is_over = any(map(str.isspace, typed))
        if not is_over:
            return OpenMention(sign.start(), typed)
    return None


def write_mention(path: str) -> str | None:
    """Return the mention of an existing path; None if no mention can name it. A
    folder's mention ends in `/`, so that the user can continue with a name.
    """
    if not _is_usable(path):
        path = f"./{path}"
        if not _is_usable(path):
            return None
    if _PLAIN_NAME.fullmatch(path):
        return f"@{path}"
    end = "" if path.endswith("/") else '"'
    return f'@"{path}{end}'


def _is_usable(path: str) -> bool:
    if "\\" in path:
        return False
    try:
        parse_path(path)
    except PathRefused:
        return False
    return True


class _ProjectNames:
    """The file and folder names of a project. A pasted text may have thousands of at
    signs; one listing per folder rules out most of them.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._listings: dict[Path, set[str]] = {}
        self._paths: dict[str, PurePosixPath | None] = {}

    def find(self, name: str, *, is_file: bool) -> PurePosixPath | None:
        """Return the path of an existing file, or also of a folder."""
        if not self._may_exist(name):
            return None
        if name not in self._paths:
            self._paths[name] = self._locate(name)
        path = self._paths[name]
        if is_file and path is not None and not (self._root / path).is_file():
            return None
        return path

    def _locate(self, name: str) -> PurePosixPath | None:
        try:
            path = locate(self._root, name)
            return path if (self._root / path).exists() else None
        except (CddError, OSError):
            return None

    def _may_exist(self, name: str) -> bool:
        """False if a part of the name is missing in its folder."""
        folder = self._root
        for part in _parts(name):
            if len(part) > _LONGEST_PART:
                return False
            names = self._list(folder)
            if part == ".." or (part not in names and _fold(part) in names):
                # the disk decides about this spelling
                return True
            if part not in names:
                return False
            folder /= part
        return True

    def _list(self, folder: Path) -> set[str]:
        """Return the names in a folder, as written and case-folded."""
        if folder not in self._listings:
            names = set()
            with suppress(OSError, ValueError):
                for entry in folder.iterdir():
                    names |= {entry.name, _fold(entry.name)}
            self._listings[folder] = names
        return self._listings[folder]


def _parts(name: str) -> Iterator[str]:
    for part in re.split(r"[/\\]", name):
        if part not in ("", "."):
            yield part


def _fold(name: str) -> str:
    return compose(name).casefold()


class _Candidate(Struct, frozen=True):
    text: str
    end: int
    """Index of its end in the text after the at sign."""
    is_file: bool = False
    """True if it cannot be a folder: `src/(a)` may name another folder."""

    def readings(self) -> Iterator[tuple[str, LineRange | None]]:
        text = self.text
        yield text, None
        if "\\ " in text:
            # a blank escaped as in a shell
            text = text.replace("\\ ", " ")
            yield text, None
        # the pattern is slow for a long text
        if text[-1].isdigit() and (ranged := _NAME_WITH_LINES.fullmatch(text)):
            first = int(ranged["first"])
            last = int(ranged["last"] or first)
            yield ranged["name"], LineRange(first, last)


class _Typed(Struct, frozen=True):
    candidates: list[_Candidate]
    """Shortest first."""
    is_quoted: bool
    is_call: bool = False

    @classmethod
    def at(cls, text: str, start: int) -> "_Typed":
        line, _, _ = text[start : start + _LONGEST].partition("\n")
        closers = _QUOTES.get(line[:1], "")
        if not closers:
            is_call = _CALL.fullmatch(line.partition(" ")[0]) is not None
            return cls(_read_plain(line, 0), is_quoted=False, is_call=is_call)
        if quoted := _read_quoted(line, closers):
            return cls(quoted, is_quoted=True)
        # the user forgot the closing quote
        return cls(_read_plain(line, 1), is_quoted=False)

    def find(self, project: _ProjectNames) -> tuple[Mention | None, int]:
        """Return the mention and its length, or None if the text is no mention."""
        for candidate in reversed(self.candidates):
            for name, lines in candidate.readings():
                path = project.find(name, is_file=candidate.is_file)
                if path is not None:
                    return Mention(name, path, lines), candidate.end
        complete = [each for each in self.candidates if not each.is_file]
        if not complete or self.is_call:
            return None, 0
        wanted = complete[0]
        for candidate in complete:
            if not self.is_quoted and _is_balanced(candidate.text):
                wanted = candidate
                break
        *_, (name, lines) = wanted.readings()
        if not self.is_quoted and not _LOOKS_LIKE_A_FILE.fullmatch(name):
            return None, 0
        return Mention(name, None, lines), wanted.end


def _read_quoted(line: str, closers: str) -> list[_Candidate]:
    candidates = []
    for closer in islice(re.finditer(f"[{closers}]", line[2:]), _MOST_CLOSERS):
        place = closer.start() + 2
        name = line[1:place]
        candidates.append(_Candidate(name, place + 1))
        if lines := _LINES.match(line, place + 1):
            candidates.append(_Candidate(name + lines[0], lines.end()))
    return candidates


def _read_plain(line: str, start: int) -> list[_Candidate]:
    candidates = []
    blanks = 0
    for place in range(start, len(line)):
        blanks += line[place].isspace()
        if blanks > _MOST_BLANKS:
            break
        end = place + 1
        if _may_end(line, end):
            candidates.append(_Candidate(line[start:end], end))
        elif _ASIDE.match(line, end):
            candidates.append(_Candidate(line[start:end], end, is_file=True))
    return candidates


def _may_end(line: str, place: int) -> bool:
    last = line[place - 1]
    if last.isspace():
        return False
    if last == "/" and line.startswith("*", place):
        # a pattern, not the folder
        return False
    if _END.match(line, place):
        return True
    return not _WIDE_LETTER.match(last) and bool(_WIDE_LETTER.match(line, place))


def _is_balanced(name: str) -> bool:
    return all(name.count(opener) == name.count(closer) for opener, closer in _BRACKETS)


def _may_begin(text: str, place: int) -> bool:
    return place == 0 or _BEFORE.match(text, place - 1) is not None


def _is_code(text: str, place: int, mention: Mention) -> bool:
    """True if the text after an at sign is code: a key of JSON, a rule of a style
    sheet, or a decorator above a definition. An existing file whose name has a dot or
    slash is not.
    """
    name = _DOTTED_NAME if mention.path is None else _BARE_WORD
    is_bare = name.fullmatch(mention.name) is not None
    if mention.path is not None and not is_bare:
        return False
    end = place + 1 + len(mention.name)
    if text[place - 1 : place] == '"' and _END_OF_KEY.match(text, end):
        return True
    start = text.rfind("\n", 0, place) + 1
    if not is_bare or text[start:place].strip():
        return False
    line, *following = text[start : start + _LONGEST].split("\n")
    if _AT_RULE.fullmatch(line):
        return True
    for other in following:
        if other.strip() and not other.lstrip().startswith("@"):
            return _DECORATED.match(other) is not None
    return False
