"""Finds the file that a reply names for a code block: in the info string, on the line
above, or in the first line.

A sentence that mentions a file names no block. The block's language must fit the name.
The table in `verdicts.py` decides.
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
    grade_name,
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
from cdd_agent.changes.formats.project_names import NO_PROJECT_NAMES, ProjectNames
from cdd_agent.changes.formats.verdicts import (
    BlockText,
    BlockVerdict,
    NameForm,
    find_text_kind,
    judge,
)
from cdd_agent.pattern import Pattern

_LONGEST = 500
"""Longest line that can name a file, in characters."""
_LONGEST_INFO = 2_500
DIFFS = {"diff", "patch", "udiff"}
_TITLES = ("title", "name", "src")
_KEYED = Pattern(
    r"(?:^|[\s{,:])(?P<key>file_?name|file_?path|file|path|title|name|src)\s*[=:]\s*"
    r"(?:\"([^\"]+)\"|'([^']+)'|((?:[^\s}\"',=]+"
    r" )+[^\s}\"',=]+\.\w+(?=\s*\}?$))|([^\s\"',]+?)(?=\}?(?:[\s,]|$)))",
    re.IGNORECASE,
)
_COLON = Pattern(r"^(?P<language>[\w+#.-]*):(?P<path>\S.*)$")
_PARTLY = (
    r"\b(?:parts?|sections?|lines?|only|snippets?|excerpts?|portion|fragment"
    r"|function|method|class)\b"
)
_WHOLE = rf"\b(?!(?:(?!\b(?:with|to)\b)[^()\[\]])*{_PARTLY})"
"""A look-ahead after a word about a whole file. It accepts `(updated with the new
method)`, but not `(updated method)`.
"""
_NOTE = Pattern(
    r"(?<!\s)\s*+[\(\[](?:new|updated?|modif(?:y|ied)|edit(?:ed)?|changed?|created?"
    r"|full|complete|add(?:ed)?)"
    rf"{_WHOLE}[^()\[\]]*[\)\]]"
    rf"|(?<!\s)\s++[-–—]+\s+(?:new|updated?|modified|changed?|created?|full"
    rf"|complete){_WHOLE}.*$",
    re.IGNORECASE,
)
_LABEL = Pattern(
    r"^(?!file:/)\**(?:(?:new|full|updated?|modified|complete)\s+)?(?:file\s?name"
    r"|file\s?path|file\s+to\s+(?:add|change|create|edit|modify|update|write)|file"
    r"|path|created?|updated?|modify"
    r"|modified|edit|add|new|write)(?:\s+(?:an?"
    r"|the))?(?:\s+new)?(?:\s+file)?(?:\s+#?\d+)?"
    r"(?:\s*[:=]\**|\**[:=]|\**\s)\s*(?=[\s`*\"'\w./])",
    re.IGNORECASE,
)
_LEAD = Pattern(
    r"^\s*(?:>\s*)*(?:#{1,6}\s+|[-*+]\s+|\(?\d+(?:\.\d+)*[.)]\s+|\d+(?:\.\d+)+\s+"
    r"|step\s+\d+\s*[.:)–—-]\s*"
    r"|[^\w\s!-/:-@\[-`{-~]+\s+)*",
    re.IGNORECASE,
)
_RULED = Pattern(
    r"^(?P<rule>={2,}+|-{3,}+|//(?=\s)|<!--)\s*(?P<text>\S+)\s*(?:(?P=rule)|-->|$)$"
)
_LINK = Pattern(r"^\[(?P<text>[^\]]+)\]\((?P<target>[^()]*)\)$")
_TAG = Pattern(
    r"^<\w*(?:file|document|artifact|code)\w*\s(?:[^<>]*\s)?(?:file_?name|file_?path"
    r"|path|name|src|title)\s*=\s*+"
    r"(?:[\"']\s*+)?(?P<text>[^<>\"'=\s](?:[^<>\"'=]*?[^<>\"'=\s])??)"
    r"(?:\s*+[\"'])?(?:\s+\w+=[^<>]*)?\s*/?>$"
)
_IN_TAGS = Pattern(r"^<(?P<tag>\w+)>(?P<text>[^<>]+)</(?P=tag)>$")
_COMMENT = Pattern(
    r"^\s*(?:#+|//+|--|;+|%+|/\*+|<!--|\"\"\"|'''"
    r"|\{#)\s*(?P<text>\S(?:.*?\S)??)\s*+(?:\*+/|-->|\"\"\"|'''|#\})?\s*+$"
)
_PAIRS = (
    ("**", "**"),
    ("__", "__"),
    ("_", "_"),
    ("*", "*"),
    ("`", "`"),
    ('"', '"'),
    ("'", "'"),
    ("<", ">"),
    ("(", ")"),
    ("[", "]"),
)
"""Marks around a name, in the order of removal."""
_FILE_LABEL = Pattern(
    r"^(?!file:/)(?:file\s?name|file\s?path|file|path)"
    r"(?:\s+to\s+(?:add|change|create|edit|modify|update|write))?\s*[:=]\s*",
    re.IGNORECASE,
)


class Named(Struct, frozen=True):
    path: str
    is_file: bool
    """False if the block may or may not be this file."""


def name_in_info(
    info: str, project_names: ProjectNames = NO_PROJECT_NAMES
) -> tuple[str, Named | None]:
    """Return the language in lower case, and the name."""
    info = info.strip()
    words = info.split(maxsplit=1)
    if len(info) > _LONGEST_INFO:
        return words[0].lower(), None
    if is_absolute(info) or (project_names.is_file(info) and not is_language(info)):
        return _guess_language(info), Named(info, True)
    if (keyed := _read_keyed_info(info, project_names)) is not None:
        return keyed
    colon = _COLON.match(info)
    if colon and not colon["language"].isdigit():
        language = colon["language"].lower()
        return language, _read_name_after_colon(
            _without_note(colon["path"]), language, project_names
        )
    if len(words) < 2:
        return _read_single_word(info, project_names)
    word, rest = words
    if "/" in word and is_spaced(info):
        return _guess_language(info), Named(info, True)
    if word.startswith(("{", "[")):
        return word.strip("{}.").lower(), None
    language = word.lower()
    return language, _read_name_after_language(language, rest, info, project_names)


def _read_keyed_info(
    info: str, project_names: ProjectNames
) -> tuple[str, Named] | None:
    """Reads `python file=NAME`."""
    keyed = _KEYED.search(info)
    if keyed is None:
        return None
    language = re.split(r"[\s{:,]", info.lstrip("{. "), maxsplit=1)[0].lower()
    if "=" in language:
        language = ""
    named = _read_name_after_key(info, keyed, language, project_names)
    return (language, named) if named else None


def _read_single_word(
    word: str, project_names: ProjectNames
) -> tuple[str, Named | None]:
    name = _unwrap(word)
    if is_language(name):
        could_be = name in BARE_NAMES or name.endswith("file")
        is_possible = could_be and project_names.is_file(name)
        return name.lower(), Named(name, False) if is_possible else None
    is_name = is_path(name) and name not in BARE_NAMES | WORDS
    if (
        is_name
        or is_absolute(name)
        or project_names.is_file(name)
        or project_names.is_named(name)
    ):
        return _guess_language(name), Named(name, True)
    if name in BARE_NAMES or is_in_capitals(name):
        return name.lower(), Named(name, False)
    return word.strip("{}.").lower(), None


def name_in_line(
    line: str, language: str = "", project_names: ProjectNames = NO_PROJECT_NAMES
) -> Named | None:
    """Return the name, if the line says nothing else."""
    if len(line) > _LONGEST:
        return None
    line = _remove_invisible(line)
    if line.lstrip().startswith("</"):
        return None
    text = _LEAD.sub("", line).strip()
    readings = [text]
    text = _NOTE.sub("", text).strip().rstrip(":").strip()
    form = NameForm.BACKTICKS if "`" in line else NameForm.HEADED
    if _TAG.match(text):
        form = NameForm.DECLARED
    # emphasis, label and name in any order: `**File: [a.py](src/a.py)**`
    for _ in range(3):
        bare = _LEAD.sub("", _unwrap(text))
        text = _LABEL.sub("", bare).strip().rstrip(":").strip()
        readings += [bare, text]
        if text == bare.rstrip(":").strip():
            continue
        if _FILE_LABEL.match(bare):
            form = NameForm.DECLARED
        elif form is NameForm.HEADED:
            form = NameForm.LABELLED
    text = _NOTE.sub("", _unwrap(text)).strip()
    name = next(
        (reading for reading in readings if project_names.is_file(reading)), text
    )
    named = _judge_fitting_name(name, language, project_names, form)
    if named is None or named.is_file:
        return named
    return Named(_known_ending(named.path, project_names), False)


def _known_ending(name: str, project_names: ProjectNames) -> str:
    """Return the last word if that is a file: `This is app.py`."""
    last = name.split()[-1]
    return (
        last
        if project_names.is_file(last) or project_names.is_requested(last)
        else name
    )


def name_in_comment(
    line: str, language: str, project_names: ProjectNames = NO_PROJECT_NAMES
) -> Named | None:
    """Return the name in the first line, if it is a comment that says nothing else."""
    comment = _COMMENT.match(_remove_invisible(line)) if len(line) <= _LONGEST else None
    if comment is None:
        return None
    bare = line.strip()
    is_one_word = not re.search(r"\s", bare)
    # `//server/x` is an absolute path, and `//x` a comment
    if is_one_word and is_absolute(bare) and "/" in bare.strip("/"):
        path_grade = grade_name(bare)
        if path_grade is not Grade.NONE:
            return Named(bare, path_grade is Grade.FILE)
    text = _FILE_LABEL.sub("", comment["text"])
    form = NameForm.COMMENT if text == comment["text"] else NameForm.DECLARED
    name = _unwrap(_NOTE.sub("", text).strip())
    return _judge_fitting_name(name, language, project_names, form)


def is_comment(line: str) -> bool:
    return len(line) <= _LONGEST and _COMMENT.match(line) is not None


def find_name_above_edits(
    line: str, project_names: ProjectNames = NO_PROJECT_NAMES
) -> str | None:
    """Return the file that the line above search/replace blocks names.

    These always change a file, so a possible name is enough.
    """
    named = name_in_line(line, "", project_names) or name_in_comment(
        line, "", project_names
    )
    if named is None:
        return None
    is_word = grade_name(named.path) is Grade.WORD
    return named.path if named.is_file or not is_word else None


def find_mentioned_files(
    line: str, project_names: ProjectNames = NO_PROJECT_NAMES
) -> list[str]:
    if len(line) > _LONGEST:
        return []
    names: list[str] = []
    for word in line.split():
        name = word.lstrip("`*\"'(<").rstrip("`*\"'.,:;()<>")
        is_set_off = "`" in word or grade_name(name) is not Grade.WORD
        is_certain = names_file(name) and name not in WORDS
        if is_certain or (is_set_off and project_names.is_file(name)):
            names.append(name)
    return names


def _judge_name(
    name: str, language: str, project_names: ProjectNames, form: NameForm
) -> Named | None:
    """None if the name cannot be a block's file."""
    if not name or name.endswith(("/", "\\")):
        return None
    if form is not NameForm.DECLARED and project_names.is_folder(name):
        return None
    if project_names.is_file(name):
        is_word = form is NameForm.COMMENT and not re.search(r"[./\\]", name)
        # a remark such as `# TODO`
        is_remark = is_word and find_text_kind(language) is not BlockText.PLAIN
        return None if is_remark else Named(name, True)
    verdict = judge(name, form, language, is_named=project_names.is_named(name))
    return (
        None
        if verdict is BlockVerdict.NONE
        else Named(name, verdict is BlockVerdict.FILE)
    )


def _judge_fitting_name(
    name: str, language: str, project_names: ProjectNames, form: NameForm
) -> Named | None:
    """None if the name does not fit the language."""
    named = _judge_name(name, language, project_names, form)
    if named is None or not (fits(language, name) or is_absolute(name)):
        return None
    return named if named.is_file else Named(without_beginning(name), False)


def _read_name_after_key(
    info: str, keyed: re.Match[str], language: str, project_names: ProjectNames
) -> Named | None:
    """Reads `file=NAME`, also unquoted with spaces."""
    name = next(filter(None, keyed.groups()[1:]))
    tail = info[keyed.start(5) :].strip(" }") if keyed[5] else name
    if tail != name and project_names.is_file(tail):
        return Named(tail, True)
    if keyed["key"].lower() in _TITLES:
        return _judge_name(name, language, project_names, NameForm.TITLE)
    has_more = tail != name and not re.search(r"[=\[\]{}]", tail)
    if has_more and grade_name(name) < Grade.FILE:
        return Named(tail, False)
    return Named(name, True)


def _read_name_after_language(
    language: str, rest: str, info: str, project_names: ProjectNames
) -> Named | None:
    """Reads `language NAME`, and `my notes.txt`."""
    name = _without_note(re.sub(r"^(?:#\s*|(?://|--)\s+)", "", rest))
    if not is_path(name) or project_names.is_folder(name):
        return _judge_name(name, language, project_names, NameForm.WORD_AFTER_LANGUAGE)
    if is_language(language) or is_in_language(language, name) or "/" in name:
        return Named(name, True)
    return Named(info, project_names.is_named(info))


def _read_name_after_colon(
    name: str, language: str, project_names: ProjectNames
) -> Named | None:
    """Reads `language:NAME`. None for a title that cannot be a name."""
    if is_absolute(name) or project_names.is_file(name) or is_path(name):
        return Named(name, True)
    if " " in name:
        return _read_spaced_name(name, language)
    if grade_name(name, language) is Grade.NONE or language in DIFFS:
        return Named(name, False) if project_names.is_named(name) else None
    if is_caption(name) and not is_in_capitals(name):
        return Named(name, False)
    is_foreign = not name.isascii() and find_text_kind(language) is BlockText.SHELL
    return Named(name, not is_foreign)


def _read_spaced_name(name: str, language: str) -> Named | None:
    if is_spaced(name) and fits(language, name):
        return Named(name, True)
    for word in name.split()[:5]:
        # a word of a title, such as `a(b)` or `os.path`
        if "." in word or grade_name(word) is Grade.NONE:
            return None
    return Named(name, False)


def _guess_language(path: str) -> str:
    return PurePosixPath(path).suffix.lstrip(".").lower()


def _without_note(text: str) -> str:
    return _unwrap(_NOTE.sub("", text).strip())


def _remove_invisible(text: str) -> str:
    return "".join(
        char
        for char in text
        if unicodedata.category(char) != "Cf" and char not in "\ufe0e\ufe0f"
    )


def _unwrap(text: str) -> str:
    text = text.strip()
    for pattern in (_RULED, _TAG, _IN_TAGS):
        if match := pattern.match(text):
            text = match["text"]
    if link := _LINK.match(text):
        text = _read_link(_unwrap(link["text"]), link["target"])
    for opening, closing in _PAIRS:
        bare = text.rstrip(":")
        is_pair = text.startswith(opening) and bare.endswith(closing)
        if not is_pair or len(text) <= 2 * len(opening):
            continue
        inside = bare.removeprefix(opening).removesuffix(closing).strip()
        # `(x)` and `[x]` wrap only paths
        if opening not in "([" or is_path(inside):
            text = inside
    return text


def _read_link(text: str, target: str) -> str:
    """Return the name in a link, or its target if the text lacks the folder."""
    if "/" in text or not target.endswith(f"/{text}"):
        return text
    return target if is_path(target) and not target.startswith("/") else ""
