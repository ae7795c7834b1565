"""How a model says which file a code block is: in its info string, just before it, or
in its first line.

Read narrowly: a sentence that mentions a file names no block, and the language of a
block must fit its file's name.
"""

import re
import unicodedata
from enum import Enum
from pathlib import PurePosixPath

from msgspec import Struct

from cdd_agent.changes.formats.file_names import (
    BARE_NAMES,
    SHELLS,
    WORDS,
    Grade,
    fits,
    grade,
    is_absolute,
    is_caption,
    is_code,
    is_in_capitals,
    is_in_language,
    is_language,
    is_path,
    is_spaced,
    names_file,
)
from cdd_agent.changes.formats.known import NOTHING_KNOWN, KnownNames

_LONGEST = 500
"""Characters of a line that can name a file."""
_LONGEST_INFO = 2_500
DIFFS = {"diff", "patch", "udiff"}
_TITLES = ("title", "name", "src")
_KEYED = re.compile(
    r"(?:^|[\s{,:])(?P<key>file_?name|file_?path|file|path|title|name|src)\s*[=:]\s*"
    r"(?:\"([^\"]+)\"|'([^']+)'|((?:[^\s}\"',=]+"
    r" )+[^\s}\"',=]+\.\w+(?=\s*\}?$))|([^\s\"',]+?)(?=\}?(?:[\s,]|$)))",
    re.IGNORECASE,
)
_COLON = re.compile(r"^(?P<language>[\w+#.-]*):(?P<path>\S.*)$")
_PARTLY = (
    r"\b(?:parts?|sections?|lines?|only|snippets?|excerpts?|portion|fragment"
    r"|function|method|class)\b"
)
_WHOLE = rf"\b(?!(?:(?!\b(?:with|to)\b)[^()\[\]])*{_PARTLY})"
"""Follows words that are said of a whole file: `(updated with the new method)`, but not
`(updated method)`.
"""
_NOTE = re.compile(
    r"(?<!\s)\s*+[\(\[](?:new|updated?|modif(?:y|ied)|edit(?:ed)?|changed?|created?"
    r"|full|complete|add(?:ed)?)"
    rf"{_WHOLE}[^()\[\]]*[\)\]]"
    rf"|(?<!\s)\s++[-–—]+\s+(?:new|updated?|modified|changed?|created?|full"
    rf"|complete){_WHOLE}.*$",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^(?!file:/)\**(?:(?:new|full|updated?|modified|complete)\s+)?(?:file\s?name"
    r"|file\s?path|file|path|created?|updated?|modify"
    r"|modified|edit|add|new|write)(?:\s+(?:an?"
    r"|the))?(?:\s+new)?(?:\s+file)?(?:\s+#?\d+)?"
    r"(?:\s*[:=]\**|\**[:=]|\**\s)\s*(?=[\s`*\"'\w./])",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^\s*(?:>\s*)*(?:#{1,6}\s+|[-*+]\s+|\(?\d+(?:\.\d+)*[.)]\s+|\d+(?:\.\d+)+\s+"
    r"|step\s+\d+\s*[.:)–—-]\s*"
    r"|[^\w\s!-/:-@\[-`{-~]+\s+)*",
    re.IGNORECASE,
)
_RULED = re.compile(
    r"^(?P<rule>={2,}+|-{3,}+|//(?=\s)|<!--)\s*(?P<text>\S+)\s*(?:(?P=rule)|-->|$)$"
)
_LINK = re.compile(r"^\[(?P<text>[^\]]+)\]\((?P<target>[^()]*)\)$")
_TAG = re.compile(
    r"^<\w*(?:file|document|artifact|code)\w*\s(?:[^<>]*\s)?(?:file_?name|file_?path"
    r"|path|name|src|title)\s*=\s*+"
    r"(?:[\"']\s*+)?(?P<text>[^<>\"'=\s](?:[^<>\"'=]*?[^<>\"'=\s])??)"
    r"(?:\s*+[\"'])?(?:\s+\w+=[^<>]*)?\s*/?>$"
)
_IN_TAGS = re.compile(r"^<(?P<tag>\w+)>(?P<text>[^<>]+)</(?P=tag)>$")
_COMMENT = re.compile(
    r"^\s*(?:#+|//+|--|;+|%+|/\*+|<!--|\"\"\"|'''"
    r"|\{#)\s*(?P<text>\S(?:.*?\S)??)\s*+(?:\*+/|-->|\"\"\"|'''|#\})?\s*+$"
)
_FILE_LABEL = re.compile(
    r"^(?!file:/)(?:file\s?name|file\s?path|file|path)\s*[:=]\s*", re.IGNORECASE
)


class Named(Struct, frozen=True):
    """The name that a block is given."""

    path: str
    is_file: bool
    """It is that file's for certain; else it could be, and nobody says so."""


class _Form(Enum):
    """How plainly a form says that what it names is a file."""

    SAID = "`text:NAME`, `file=NAME`, `File: NAME`, a tag"
    QUOTED = "in backticks, `title=NAME`, after a block's language"
    HEADED = "a heading, bold, or plain"
    COMMENT = "a comment in the first line"


def in_info(info: str, known: KnownNames = NOTHING_KNOWN) -> tuple[str, Named | None]:
    """A fence's language in lower case, and what its info string names."""
    info = info.strip()
    word, rest = [*info.split(maxsplit=1), "", ""][:2]
    if len(info) > _LONGEST_INFO:
        return word.lower(), None
    if is_absolute(info) or (known.is_file(info) and not is_language(info)):
        return _language_of(info), Named(info, True)
    if keyed := _KEYED.search(info):
        language = re.split(r"[\s{:,]", info.lstrip("{. "), maxsplit=1)[0].lower()
        language = "" if "=" in language else language
        if named := _keyed(info, keyed, language, known):
            return language, named
    if (colon := _COLON.match(info)) and not colon["language"].isdigit():
        language = colon["language"].lower()
        return language, _after_colon(_plain(colon["path"]), language, known)
    if "/" in word and is_spaced(info):
        return _language_of(info), Named(info, True)
    if rest and not word.startswith(("{", "[")):
        return word.lower(), _after_word(word.lower(), rest, info, known)
    path = _unquoted(word)
    if is_language(path):
        could_be = (path in BARE_NAMES or path.endswith("file")) and known.is_file(path)
        return path.lower(), Named(path, False) if could_be else None
    is_name = (is_path(path) and path not in BARE_NAMES | WORDS) or is_absolute(path)
    if not rest and (is_name or known.is_file(path) or known.is_told(path)):
        return _language_of(path), Named(path, True)
    if not rest and (path in BARE_NAMES or is_in_capitals(path)):
        return path.lower(), Named(path, False)
    return word.strip("{}.").lower(), None


def in_line(
    line: str, language: str = "", known: KnownNames = NOTHING_KNOWN
) -> Named | None:
    """The name in a line before a block, if the line says nothing but that."""
    if len(line) > _LONGEST:
        return None
    seen = _visible(line)
    text = _LEAD.sub("", seen).strip()
    forms = [text]
    text = _NOTE.sub("", text).strip().rstrip(":").strip()
    form = (
        _Form.SAID
        if _TAG.match(text)
        else _Form.QUOTED
        if "`" in seen
        else _Form.HEADED
    )
    is_labelled = False
    for _ in range(3):  # `**File: \\`a.py\\`**`: emphasis, a label, the name
        bare = _LEAD.sub("", _unquoted(text))
        text = _LABEL.sub("", bare).strip().rstrip(":").strip()
        forms += [bare, text]
        if text != bare.rstrip(":").strip():
            is_labelled = True
            form = _Form.SAID if _FILE_LABEL.match(bare) else form
    text = _NOTE.sub("", _unquoted(text)).strip()
    path = next((name for name in (*forms, text) if known.is_file(name)), text)
    named = _judged(path, language, known, form)
    if named is None or not (fits(language, path) or is_absolute(path)):
        return None
    is_word = (
        not named.is_file and grade(path) is Grade.WORD and not known.is_told(path)
    )
    is_title = (
        is_code(language)
        or language in SHELLS
        or (is_labelled and form is _Form.HEADED)
    )
    return None if is_word and is_title else named


def in_comment(
    line: str, language: str, known: KnownNames = NOTHING_KNOWN
) -> Named | None:
    """The name in a block's first line, if that is a comment and says nothing else."""
    found = _COMMENT.match(_visible(line)) if len(line) <= _LONGEST else None
    if found is None:
        return None
    bare = line.strip()
    if (
        not re.search(r"\s", bare)
        and is_absolute(bare)
        and "/" in bare.strip("/")
        and grade(bare) > Grade.NONE
    ):
        return Named(bare, grade(bare) is Grade.FILE)
    text = found["text"]
    labelled = _FILE_LABEL.sub("", text)
    path = _unquoted(_NOTE.sub("", labelled).strip())
    named = _judged(
        path, language, known, _Form.SAID if labelled != text else _Form.COMMENT
    )
    return named if fits(language, path) or is_absolute(path) else None


def of_edits(line: str, known: KnownNames = NOTHING_KNOWN) -> str | None:
    """The file that a line just before search/replace blocks names: they are of some
    file, so a name is enough.
    """
    named = in_line(line, "", known) or in_comment(line, "", known)
    return (
        named.path
        if named and (named.is_file or grade(named.path) is not Grade.WORD)
        else None
    )


def _judged(path: str, language: str, known: KnownNames, form: _Form) -> Named | None:
    """The name of a block in a language, given in this form; None where it can be
    none.
    """
    if (
        not path
        or path.endswith(("/", "\\"))
        or (form is not _Form.SAID and known.is_folder(path))
    ):
        return None
    is_plain = not is_code(language) and language not in SHELLS
    if known.is_file(path):
        is_word = form is _Form.COMMENT and not re.search(r"[./\\]", path)
        return None if is_word and not is_plain else Named(path, True)  # "# TODO"
    if " " in path:
        is_file = is_spaced(path) and (
            form in (_Form.SAID, _Form.QUOTED) or known.is_told(path)
        )
        could_be = (is_spaced(path) and path.count(" ") < 3) or form is _Form.SAID
        return Named(path, is_file) if is_file or could_be else None
    found = grade(path, language)
    if found is Grade.NONE:
        return None
    if is_absolute(path):
        return Named(path, found is Grade.FILE or form is _Form.SAID)
    if (
        found is Grade.FILE
        or form is _Form.SAID
        or (path in WORDS and form is _Form.QUOTED)
    ):
        return Named(path, True)
    is_told = known.is_told(path)
    if is_caption(path) and not is_told:
        return None
    has_capitals = is_in_capitals(path) and is_plain
    if (
        is_told
        and found is Grade.NAME
        and (is_plain or (language in SHELLS and "/" in path))
    ):
        return Named(path, True)
    is_comment = form is _Form.COMMENT and not is_told
    could_be = is_plain and (
        has_capitals or "." in path or ("/" in path and path.islower())
    )
    return None if is_comment and not could_be else Named(path, False)


def _keyed(
    info: str, keyed: re.Match[str], language: str, known: KnownNames
) -> Named | None:
    """The name in `file=NAME`, also where one with spaces has no quotes around it."""
    path = next(filter(None, keyed.groups()[1:]))
    tail = info[keyed.start(5) :].strip(" }") if keyed[5] else path
    if tail != path and known.is_file(tail):
        return Named(tail, True)
    if keyed["key"].lower() in _TITLES:
        return _judged(path, language, known, _Form.QUOTED)
    is_cut = (
        tail != path and not re.search(r"[=\[\]{}]", tail) and grade(path) < Grade.FILE
    )
    return Named(tail if is_cut else path, not is_cut)


def _after_word(language: str, rest: str, info: str, known: KnownNames) -> Named | None:
    """The name in `language NAME`, and `my notes.txt`."""
    path = _plain(re.sub(r"^(?:#\s*|(?://|--)\s+)", "", rest))
    if is_path(path) and not known.is_folder(path):
        is_all = is_language(language) or is_in_language(language, path) or "/" in path
        return Named(path, True) if is_all else Named(info, known.is_told(info))
    named = _judged(path, language, known, _Form.QUOTED)
    is_option = (
        named is not None
        and not named.is_file
        and grade(path) is Grade.WORD
        and not known.is_told(path)
    )
    return None if is_option else named


def _after_colon(path: str, language: str, known: KnownNames) -> Named | None:
    """The name in `language:NAME`; a title that cannot be a file's name is told from
    one that could.
    """
    if is_absolute(path) or known.is_file(path) or is_path(path):
        return Named(path, True)
    if " " in path:
        is_file = is_spaced(path) and fits(language, path)
        could_be = is_file or all(
            grade(word) is not Grade.NONE and "." not in word
            for word in path.split()[:5]
        )
        return Named(path, is_file) if could_be else None
    if grade(path, language) is Grade.NONE or language in DIFFS:
        return Named(path, False) if known.is_told(path) else None
    is_title = is_caption(path) and not is_in_capitals(path)
    return Named(path, not is_title and (path.isascii() or language not in SHELLS))


def _language_of(path: str) -> str:
    return PurePosixPath(path).suffix.lstrip(".").lower()


def mentioned(line: str, known: KnownNames = NOTHING_KNOWN) -> list[str]:
    """The files that a sentence speaks of."""
    if len(line) > _LONGEST:
        return []
    names: list[str] = []
    for word in line.split():
        name = word.lstrip("`*\"'(<").rstrip("`*\"'.,:;()<>")
        is_set_off = "`" in word or grade(name) is not Grade.WORD
        if (names_file(name) and name not in WORDS) or (
            is_set_off and known.is_file(name)
        ):
            names.append(name)
    return names


def _plain(text: str) -> str:
    return _unquoted(_NOTE.sub("", text).strip())


def _visible(text: str) -> str:
    """Without characters that have no width, and what makes an emoji of a character."""
    return "".join(
        char
        for char in text
        if unicodedata.category(char) != "Cf" and char not in "\ufe0e\ufe0f"
    )


def _unquoted(text: str) -> str:
    """Without what sets a name off: quotes, backticks, emphasis, a rule on both sides,
    a tag, a link.
    """
    text = text.strip()
    for around in (_RULED, _TAG, _IN_TAGS):
        if found := around.match(text):
            text = found["text"]
    if link := _LINK.match(text):
        text, target = _unquoted(link["text"]), link["target"]
        # a name without its folder has it in the target
        if "/" not in text and target.endswith(f"/{text}"):
            text = target if is_path(target) and not target.startswith("/") else ""
    for mark in ("**", "__", "_", "*", "`", '"', "'", "<", "(", "["):
        other = {"<": ">", "(": ")", "[": "]"}.get(mark, mark)
        if (
            len(text) > 2 * len(mark)
            and text.startswith(mark)
            and text.rstrip(":").endswith(other)
        ):
            inside = text.rstrip(":").removeprefix(mark).removesuffix(other).strip()
            text = inside if mark not in "([" or is_path(inside) else text
    return text
