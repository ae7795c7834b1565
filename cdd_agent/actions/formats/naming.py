"""How a model says which file a code block is: in its info string, just before it, or in its first line.

Read narrowly: a sentence that mentions a file names no block, and the language of a block must fit its file's name.
"""

import re
from pathlib import PurePosixPath

_BARE_NAMES = frozenset(
    (
        "Makefile",
        "Dockerfile",
        "Procfile",
        "LICENSE",
        "Jenkinsfile",
        "Gemfile",
        "Rakefile",
        "Vagrantfile",
        "Justfile",
        "justfile",
        "README",
        "CHANGELOG",
        "VERSION",
        "NOTICE",
        "AUTHORS",
        "CODEOWNERS",
        "Pipfile",
        "Brewfile",
    )
)
_NO_PATHS = {"asp.net", "vb.net", "node.js", "vue.js", "next.js", "react.js", "e.g.", "i.e.", "etc."}
_SUFFIXES = {
    **dict.fromkeys(("python", "py", "python3"), "py pyi pyw"),
    **dict.fromkeys(("javascript", "js", "jsx"), "js mjs cjs jsx"),
    **dict.fromkeys(("typescript", "ts", "tsx"), "ts mts cts tsx"),
    **dict.fromkeys(("yaml", "yml"), "yaml yml"),
    **dict.fromkeys(("markdown", "md"), "md markdown mdx"),
    **dict.fromkeys(("bash", "sh", "shell", "zsh"), "sh bash zsh"),
    **dict.fromkeys(("console", "shell-session", "shellsession", "output"), ""),
    "json": "json",
    "toml": "toml",
    "html": "html htm",
    "css": "css",
    "sql": "sql",
    "rust": "rs",
    "go": "go",
    "java": "java",
    "kotlin": "kt kts",
    "ruby": "rb",
    "php": "php",
    "c": "c h",
    "cpp": "cpp cc cxx hpp h hh",
    "csharp": "cs",
    "swift": "swift",
    "xml": "xml svg",
    "ini": "ini cfg conf",
    "powershell": "ps1",
    "log": "log",
}
"""What files in a language are called, for those that models use; of any other language nothing is known."""
_SHELLS = {"bash", "sh", "shell", "zsh"}
_PATH = re.compile(r"[\w.@+\[\]()$~-]+(?:[/\\][\w.@+\[\]()$~ -]+)*")
_SUFFIX = re.compile(r"\.[A-Za-z][\w-]{0,14}$")
_KEYED = re.compile(
    r"(?:^|[\s{,])(?:file_?name|file_?path|file|path|title|name|src)\s*[=:]\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s}\"',]+))",
    re.IGNORECASE,
)
_COLON = re.compile(r"^(?P<language>[\w+#.-]*):(?P<path>\S.*)$")
_NOTE = re.compile(
    r"\s*[\(\[](?:new|updated?|modified|edit(?:ed)?|changed?|created?|existing|full|complete|add(?:ed)?)\b[^()\[\]]*[\)\]]"
    r"|\s+[-–—]+\s+(?:new|updated?|modified|changed?|created?|full|complete)\b.*$",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^\**(?:(?:new|full|updated?|modified|complete)\s+)?(?:file\s?name|file\s?path|file|path|created?|updated?|modify"
    r"|modified|edit|add|new|write)(?:\s+file)?(?:\s*[:=]\**|\**[:=]|\s)\s*(?=[\s`*\"'\w./])",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^\s*(?:>\s*)*(?:#{1,6}\s+|[-*+]\s+|\(?\d+[.)]\s+|step\s+\d+[.:)]\s*)*", re.IGNORECASE)
_COMMENT = re.compile(
    r"^\s*(?:#+|//+|--|;+|%+|/\*+|<!--|\"\"\"|'''|\{#)\s*(?P<text>.*?)\s*(?:\*+/|-->|\"\"\"|'''|#\})?\s*$"
)
_FILE_LABEL = re.compile(r"^(?:file\s?name|file\s?path|file|path)\s*[:=]\s*", re.IGNORECASE)


def in_info(info: str) -> tuple[str, str | None]:
    """A fence's language in lower case, and the path that its info string names."""
    info = info.strip()
    word, _, rest = info.partition(" ")
    if keyed := _KEYED.search(info):
        path = next(filter(None, keyed.groups()))
        language = re.split(r"[\s{:,]", info.lstrip("{. "), maxsplit=1)[0].lower()
        if is_path(path) or "/" in path:
            return ("" if "=" in language else language), path
    if (colon := _COLON.match(info)) and not colon["language"].isdigit():
        path = _plain(colon["path"])
        return colon["language"].lower(), path or None
    if rest and is_path(path := _plain(rest)) and not word.startswith(("{", "[")):
        return word.lower(), path
    if not rest and is_path(path := _unquoted(word)) and word.lower() not in _SUFFIXES and path not in _BARE_NAMES:
        return PurePosixPath(path).suffix.lstrip(".").lower(), path
    return word.strip("{}.").lower(), None


def in_line(line: str, language: str = "") -> str | None:
    """The path that a line before a block names, and nothing but that."""
    text = _LEAD.sub("", line).strip()
    text = _NOTE.sub("", text).strip().rstrip(":").strip()
    for _ in range(3):  # `**File: \\`a.py\\`**`: emphasis, a label, the name
        text = _LABEL.sub("", _unquoted(text)).strip().rstrip(":").strip()
    text = _NOTE.sub("", _unquoted(text)).strip()
    return text if is_path(text) and " " not in text and fits(language, text) else None


def in_comment(line: str, language: str) -> str | None:
    """The path that a block's first line names, if it is a comment and says only that."""
    found = _COMMENT.match(line)
    if found is None:
        return None
    text = found["text"]
    labelled = _FILE_LABEL.sub("", text)
    path = _unquoted(_NOTE.sub("", labelled).strip())
    if not is_path(path) or " " in path or not fits(language, path):
        return None
    known = language in _SUFFIXES and bool(_SUFFIX.search(path))
    return path if labelled != text or "/" in path or known else None


def is_path(text: str) -> bool:
    """Whether a text looks like a file's path: with a folder or a suffix, or one of the names that need none."""
    if text in _BARE_NAMES:
        return True
    if text.lower() in _NO_PATHS or "://" in text or not _PATH.fullmatch(text.removeprefix("/")):
        return False
    if re.fullmatch(r"v?\d+(?:\.\d+)*\w*", text) or text.endswith(("/", "\\")):
        return False
    name = re.split(r"[/\\]", text)[-1]
    return name in _BARE_NAMES or bool(_SUFFIX.search(name)) or ("/" in text and not name.isdigit() and " " not in text)


def fits(language: str, path: str) -> bool:
    """Whether a block in a language can be this file: commands below a file's name are not the file."""
    name = PurePosixPath(path.replace("\\", "/"))
    suffix = name.suffix.lstrip(".").lower()
    if language in _SHELLS and not suffix:
        return name.name not in _BARE_NAMES
    if language not in _SUFFIXES or not suffix:
        return _SUFFIXES.get(language) != ""
    return suffix in _SUFFIXES[language].split() or (language not in _SHELLS and bool(_SUFFIXES[language]))


def _plain(text: str) -> str:
    return _unquoted(_NOTE.sub("", text).strip())


def _unquoted(text: str) -> str:
    """Without what sets a name off: quotes, backticks, emphasis."""
    text = text.strip()
    for mark in ("**", "__", "*", "`", '"', "'", "<"):
        other = {"<": ">"}.get(mark, mark)
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.rstrip(":").endswith(other):
            text = text.rstrip(":").removeprefix(mark).removesuffix(other).strip()
    return text
