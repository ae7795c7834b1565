"""How a model says which file a code block is: in its info string, just before it, or in its first line.

Read narrowly: a sentence that mentions a file names no block, and the language of a block must fit its file's name.
"""

import re
import unicodedata
from pathlib import PurePosixPath

from cdd_agent.actions.formats.file_names import (
    BARE_NAMES,
    SHELLS,
    WORDS,
    fits,
    is_language,
    is_path,
    is_spaced,
    names_file,
)

_LONGEST = 500
"""Characters of a line that can name a file."""
_LONGEST_INFO = 2_500
_KEYED = re.compile(
    r"(?:^|[\s{,:])(?P<key>file_?name|file_?path|file|path|title|name|src)\s*[=:]\s*"
    r"(?:\"([^\"]+)\"|'([^']+)'|((?:[^\s}\"',=]+ )+[^\s}\"',=]+\.\w+(?=\s*\}?$))|([^\s\"',]+?)(?=\}?(?:[\s,]|$)))",
    re.IGNORECASE,
)
_COLON = re.compile(r"^(?P<language>[\w+#.-]*):(?P<path>\S.*)$")
_PARTLY = r"\b(?:parts?|sections?|lines?|only|snippets?|excerpts?|portion|fragment|function|method|class)\b"
_WHOLE = rf"\b(?!(?:(?!\b(?:with|to)\b)[^()\[\]])*{_PARTLY})"
"""What is said of a whole file: `(updated with the new method)`, but not `(updated method)`."""
_NOTE = re.compile(
    r"\s*[\(\[](?:new|updated?|modif(?:y|ied)|edit(?:ed)?|changed?|created?|full|complete|add(?:ed)?)"
    rf"{_WHOLE}[^()\[\]]*[\)\]]"
    rf"|\s+[-–—]+\s+(?:new|updated?|modified|changed?|created?|full|complete){_WHOLE}.*$",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^\**(?:(?:new|full|updated?|modified|complete)\s+)?(?:file\s?name|file\s?path|file|path|created?|updated?|modify"
    r"|modified|edit|add|new|write)(?:\s+(?:an?|the))?(?:\s+new)?(?:\s+file)?(?:\s+#?\d+)?"
    r"(?:\s*[:=]\**|\**[:=]|\**\s)\s*(?=[\s`*\"'\w./])",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^\s*(?:>\s*)*(?:#{1,6}\s+|[-*+]\s+|\(?\d+(?:\.\d+)*[.)]\s+|\d+(?:\.\d+)+\s+|step\s+\d+\s*[.:)–—-]\s*"
    r"|[^\w\s!-/:-@\[-`{-~]+\s+)*",
    re.IGNORECASE,
)
_RULED = re.compile(r"^(?P<rule>={2,}|-{3,}|//|<!--)\s*(?P<text>\S+)\s*(?:(?P=rule)|-->|$)$")
_LINK = re.compile(r"^\[(?P<text>[^\]]+)\]\((?P<target>[^()]*)\)$")
_TAG = re.compile(
    r"^<\w*(?:file|document|artifact|code)\w*\s(?:[^<>]*\s)?(?:file_?name|file_?path|path|name|src|title)\s*=\s*"
    r"[\"']?(?P<text>[^<>\"'=]+?)[\"']?(?:\s+\w+=[^<>]*)?\s*/?>$"
)
_IN_TAGS = re.compile(r"^<(?P<tag>\w+)>(?P<text>[^<>]+)</(?P=tag)>$")
_COMMENT = re.compile(
    r"^\s*(?:#+|//+|--|;+|%+|/\*+|<!--|\"\"\"|'''|\{#)\s*(?P<text>\S.*?)\s*(?:\*+/|-->|\"\"\"|'''|#\})?\s*$"
)
_FILE_LABEL = re.compile(r"^(?:file\s?name|file\s?path|file|path)\s*[:=]\s*", re.IGNORECASE)


def in_info(info: str) -> tuple[str, str | None]:
    """A fence's language in lower case, and the path that its info string names."""
    info = info.strip()
    word, rest = [*info.split(maxsplit=1), "", ""][:2]
    if len(info) > _LONGEST_INFO:
        return word.lower(), None
    if keyed := _KEYED.search(info):
        path = next(filter(None, keyed.groups()[1:]))
        language = re.split(r"[\s{:,]", info.lstrip("{. "), maxsplit=1)[0].lower()
        if names_file(path, language) or keyed["key"].lower() not in ("title", "name", "src"):
            return ("" if "=" in language else language), path
    if (colon := _COLON.match(info)) and not colon["language"].isdigit():
        language, path = colon["language"].lower(), _plain(colon["path"])
        is_file = is_path(path) or (is_spaced(path) and fits(language, path))
        return language, path if is_file else None
    if "/" in word and is_spaced(info):
        return PurePosixPath(info).suffix.lstrip(".").lower(), info
    if rest and is_path(path := _plain(re.sub(r"^(?:#|//|--)\s*", "", rest))) and not word.startswith(("{", "[")):
        return word.lower(), path
    is_word = is_language(word) or word in BARE_NAMES | WORDS
    if not rest and is_path(path := _unquoted(word)) and not is_word:
        return PurePosixPath(path).suffix.lstrip(".").lower(), path
    return word.strip("{}.").lower(), None


def in_line(line: str, language: str = "") -> str | None:
    """The path that a line before a block names, and nothing but that."""
    if len(line) > _LONGEST:
        return None
    text = _LEAD.sub("", _visible(line)).strip()
    text = _NOTE.sub("", text).strip().rstrip(":").strip()
    is_certain = _TAG.match(text) is not None
    for _ in range(3):  # `**File: \\`a.py\\`**`: emphasis, a label, the name
        is_certain |= text.startswith("`") and "/" in text and language in SHELLS  # `bin/deploy`
        bare = _LEAD.sub("", _unquoted(text))
        text = _LABEL.sub("", bare).strip().rstrip(":").strip()
        is_certain |= text != bare.rstrip(":").strip() and _FILE_LABEL.match(bare) is not None
    text = _NOTE.sub("", _unquoted(text)).strip()
    is_file = (names_file(text, language) and (text not in WORDS or "`" in line)) or (is_certain and is_path(text))
    return text if is_file and " " not in text and fits(language, text) else None


def in_comment(line: str, language: str) -> str | None:
    """The path that a block's first line names, if it is a comment and says only that."""
    found = _COMMENT.match(_visible(line)) if len(line) <= _LONGEST else None
    if found is None:
        return None
    text = found["text"]
    labelled = _FILE_LABEL.sub("", text)
    path = _unquoted(_NOTE.sub("", labelled).strip())
    if not is_path(path) or " " in path or not fits(language, path):
        return None
    is_word = path in WORDS and path in BARE_NAMES
    return path if labelled != text or (names_file(path, language) and not is_word) else None


def mentioned(line: str) -> list[str]:
    """The files that a sentence speaks of."""
    if len(line) > _LONGEST:
        return []
    words = (word.strip("`*\"'.,:;()<>") for word in line.split())
    return [word for word in words if names_file(word) and word not in WORDS]


def _plain(text: str) -> str:
    return _unquoted(_NOTE.sub("", text).strip())


def _visible(text: str) -> str:
    """Without characters that have no width, and what makes an emoji of a character."""
    return "".join(char for char in text if unicodedata.category(char) != "Cf" and char not in "\ufe0e\ufe0f")


def _unquoted(text: str) -> str:
    """Without what sets a name off: quotes, backticks, emphasis, a rule on both sides, a tag, a link."""
    text = text.strip()
    for around in (_RULED, _TAG, _IN_TAGS):
        if found := around.match(text):
            text = found["text"]
    if link := _LINK.match(text):
        text = _linked(_unquoted(link["text"]), link["target"])
    for mark in ("**", "__", "_", "*", "`", '"', "'", "<", "(", "["):
        other = {"<": ">", "(": ")", "[": "]"}.get(mark, mark)
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.rstrip(":").endswith(other):
            inside = text.rstrip(":").removeprefix(mark).removesuffix(other).strip()
            text = inside if mark not in "([" or is_path(inside) else text
    return text


def _linked(name: str, target: str) -> str:
    """The path that a link stands for: a name without its folder has it in the target, or is not known."""
    if "/" in name or not target.endswith(f"/{name}"):
        return name
    return target if is_path(target) and not target.startswith("/") else ""
