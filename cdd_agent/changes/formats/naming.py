"""How a model names the file of a code block: in the info string, on the line before
the block, or in the block's first line.

A sentence that mentions a file names no block, and the language of a block must fit the
name of its file. `verdicts.py` has the table that decides.
"""

import re
import unicodedata
from pathlib import PurePosixPath

from msgspec import Struct

from cdd_agent.changes.formats.file_names import (
    BARE_NAMES,
    WORDS,
    Grade,
    fits,
    grade,
    is_absolute,
    is_caption,
    is_in_capitals,
    is_in_language,
    is_language,
    is_path,
    is_spaced,
    names_file,
    without_beginning,
)
from cdd_agent.changes.formats.known import NOTHING_KNOWN, KnownNames
from cdd_agent.changes.formats.verdicts import (
    BlockText,
    NameForm,
    Verdict,
    find_text_kind,
    judge,
)

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
"""After a word about a whole file: `(updated with the new method)`, but not `(updated
method)`.
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
    r"|file\s?path|file\s+to\s+(?:add|change|create|edit|modify|update|write)|file"
    r"|path|created?|updated?|modify"
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
    r"^(?!file:/)(?:file\s?name|file\s?path|file|path)"
    r"(?:\s+to\s+(?:add|change|create|edit|modify|update|write))?\s*[:=]\s*",
    re.IGNORECASE,
)


class Named(Struct, frozen=True):
    """The name that a block is given."""

    path: str
    is_file: bool
    """False if the block could be this file, and nothing says so for certain."""


def name_in_info(
    info: str, known: KnownNames = NOTHING_KNOWN
) -> tuple[str, Named | None]:
    """Return the language of an info string in lower case, and the name in it."""
    info = info.strip()
    words = info.split(maxsplit=1)
    if len(info) > _LONGEST_INFO:
        return words[0].lower(), None
    if is_absolute(info) or (known.is_file(info) and not is_language(info)):
        return _language_of(info), Named(info, True)
    if (keyed := _info_with_key(info, known)) is not None:
        return keyed
    colon = _COLON.match(info)
    if colon and not colon["language"].isdigit():
        language = colon["language"].lower()
        return language, _name_after_colon(_plain(colon["path"]), language, known)
    if len(words) < 2:
        return _info_of_one_word(info, known)
    word, rest = words
    if "/" in word and is_spaced(info):
        return _language_of(info), Named(info, True)
    if word.startswith(("{", "[")):
        return word.strip("{}.").lower(), None
    language = word.lower()
    return language, _name_after_language(language, rest, info, known)


def _info_with_key(info: str, known: KnownNames) -> tuple[str, Named] | None:
    """Return the language and the name of `python file=NAME`."""
    keyed = _KEYED.search(info)
    if keyed is None:
        return None
    language = re.split(r"[\s{:,]", info.lstrip("{. "), maxsplit=1)[0].lower()
    if "=" in language:
        language = ""
    named = _name_after_key(info, keyed, language, known)
    return (language, named) if named else None


def _info_of_one_word(word: str, known: KnownNames) -> tuple[str, Named | None]:
    """Return the language and the name of an info string that is one or the other."""
    name = _unquoted(word)
    if is_language(name):
        could_be = name in BARE_NAMES or name.endswith("file")
        is_possible = could_be and known.is_file(name)
        return name.lower(), Named(name, False) if is_possible else None
    is_name = is_path(name) and name not in BARE_NAMES | WORDS
    if is_name or is_absolute(name) or known.is_file(name) or known.is_named(name):
        return _language_of(name), Named(name, True)
    if name in BARE_NAMES or is_in_capitals(name):
        return name.lower(), Named(name, False)
    return word.strip("{}.").lower(), None


def name_in_line(
    line: str, language: str = "", known: KnownNames = NOTHING_KNOWN
) -> Named | None:
    """Return the name in a line before a block, if the line says nothing else."""
    seen = _visible(line) if len(line) <= _LONGEST else ""
    if seen.lstrip().startswith("</"):
        return None
    text = _LEAD.sub("", seen).strip()
    readings = [text]
    text = _NOTE.sub("", text).strip().rstrip(":").strip()
    form = NameForm.BACKTICKS if "`" in seen else NameForm.HEADED
    if _TAG.match(text):
        form = NameForm.SAID
    # emphasis, a label and the name, in any order: `**File: [a.py](src/a.py)**`
    for _ in range(3):
        bare = _LEAD.sub("", _unquoted(text))
        text = _LABEL.sub("", bare).strip().rstrip(":").strip()
        readings += [bare, text]
        if text == bare.rstrip(":").strip():
            continue
        if _FILE_LABEL.match(bare):
            form = NameForm.SAID
        elif form is NameForm.HEADED:
            form = NameForm.LABELLED
    text = _NOTE.sub("", _unquoted(text)).strip()
    name = next((reading for reading in readings if known.is_file(reading)), text)
    named = _judged(name, language, known, form)
    if named is None or not (fits(language, name) or is_absolute(name)):
        return None
    if named.is_file:
        return named
    return Named(_known_ending(without_beginning(name), known), False)


def _known_ending(name: str, known: KnownNames) -> str:
    """Return the last word of a doubtful name if that is a file: `This is app.py`."""
    last = name.split()[-1]
    return last if known.is_file(last) or known.is_requested(last) else name


def name_in_comment(
    line: str, language: str, known: KnownNames = NOTHING_KNOWN
) -> Named | None:
    """Return the name in the first line of a block, if it is a comment and says nothing
    else.
    """
    comment = _COMMENT.match(_visible(line)) if len(line) <= _LONGEST else None
    if comment is None:
        return None
    bare = line.strip()
    is_one_word = not re.search(r"\s", bare)
    # `//server/x` is an absolute path, and `//x` a comment
    if is_one_word and is_absolute(bare) and "/" in bare.strip("/"):
        found = grade(bare)
        if found is not Grade.NONE:
            return Named(bare, found is Grade.FILE)
    text = _FILE_LABEL.sub("", comment["text"])
    form = NameForm.COMMENT if text == comment["text"] else NameForm.SAID
    name = _unquoted(_NOTE.sub("", text).strip())
    named = _judged(name, language, known, form)
    if named is None or not (fits(language, name) or is_absolute(name)):
        return None
    return named if named.is_file else Named(without_beginning(name), False)


def is_comment(line: str) -> bool:
    """True for a line that is a comment in some language."""
    return len(line) <= _LONGEST and _COMMENT.match(line) is not None


def name_above_edits(line: str, known: KnownNames = NOTHING_KNOWN) -> str | None:
    """Return the file that a line just before search/replace blocks names. The blocks
    are of some file, so a possible name is enough.
    """
    named = name_in_line(line, "", known) or name_in_comment(line, "", known)
    if named is None:
        return None
    return named.path if named.is_file or grade(named.path) is not Grade.WORD else None


def files_mentioned(line: str, known: KnownNames = NOTHING_KNOWN) -> list[str]:
    """Return the files that a sentence mentions."""
    if len(line) > _LONGEST:
        return []
    names: list[str] = []
    for word in line.split():
        name = word.lstrip("`*\"'(<").rstrip("`*\"'.,:;()<>")
        is_set_off = "`" in word or grade(name) is not Grade.WORD
        is_certain = names_file(name) and name not in WORDS
        if is_certain or (is_set_off and known.is_file(name)):
            names.append(name)
    return names


def _judged(
    name: str, language: str, known: KnownNames, form: NameForm
) -> Named | None:
    """Return the name of a block, given in this form; None if it can be none."""
    if not name or name.endswith(("/", "\\")):
        return None
    if form is not NameForm.SAID and known.is_folder(name):
        return None
    if known.is_file(name):
        is_word = form is NameForm.COMMENT and not re.search(r"[./\\]", name)
        # a remark such as `# TODO`
        is_remark = is_word and find_text_kind(language) is not BlockText.PLAIN
        return None if is_remark else Named(name, True)
    verdict = judge(name, form, language, is_named=known.is_named(name))
    return None if verdict is Verdict.NONE else Named(name, verdict is Verdict.FILE)


def _name_after_key(
    info: str, keyed: re.Match[str], language: str, known: KnownNames
) -> Named | None:
    """Return the name in `file=NAME`, also one with spaces and without quotes."""
    name = next(filter(None, keyed.groups()[1:]))
    tail = info[keyed.start(5) :].strip(" }") if keyed[5] else name
    if tail != name and known.is_file(tail):
        return Named(tail, True)
    if keyed["key"].lower() in _TITLES:
        return _judged(name, language, known, NameForm.TITLE)
    has_more = tail != name and not re.search(r"[=\[\]{}]", tail)
    if has_more and grade(name) < Grade.FILE:
        return Named(tail, False)
    return Named(name, True)


def _name_after_language(
    language: str, rest: str, info: str, known: KnownNames
) -> Named | None:
    """Return the name in `language NAME`, and in `my notes.txt`."""
    name = _plain(re.sub(r"^(?:#\s*|(?://|--)\s+)", "", rest))
    if not is_path(name) or known.is_folder(name):
        return _judged(name, language, known, NameForm.WORD_AFTER_LANGUAGE)
    if is_language(language) or is_in_language(language, name) or "/" in name:
        return Named(name, True)
    return Named(info, known.is_named(info))


def _name_after_colon(name: str, language: str, known: KnownNames) -> Named | None:
    """Return the name in `language:NAME`; None for a title that cannot be a name."""
    if is_absolute(name) or known.is_file(name) or is_path(name):
        return Named(name, True)
    if " " in name:
        if is_spaced(name) and fits(language, name):
            return Named(name, True)
        words = name.split()[:5]
        is_title = any(grade(word) is Grade.NONE or "." in word for word in words)
        return None if is_title else Named(name, False)
    if grade(name, language) is Grade.NONE or language in DIFFS:
        return Named(name, False) if known.is_named(name) else None
    is_title = is_caption(name) and not is_in_capitals(name)
    is_foreign = not name.isascii() and find_text_kind(language) is BlockText.SHELL
    return Named(name, not is_title and not is_foreign)


def _language_of(path: str) -> str:
    return PurePosixPath(path).suffix.lstrip(".").lower()


def _plain(text: str) -> str:
    return _unquoted(_NOTE.sub("", text).strip())


def _visible(text: str) -> str:
    """Remove characters without width, and those that make an emoji of a character."""
    return "".join(
        char
        for char in text
        if unicodedata.category(char) != "Cf" and char not in "\ufe0e\ufe0f"
    )


def _unquoted(text: str) -> str:
    """Remove what sets a name off: quotes, backticks, emphasis, a rule on both sides,
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
