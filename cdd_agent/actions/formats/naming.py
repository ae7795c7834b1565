"""How a model says which file a code block is: in its info string, just before it, or in its first line.

Read narrowly: a sentence that mentions a file names no block, and the language of a block must fit its file's name.
"""

import re
import unicodedata
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
_WORDS = {"LICENSE", "README", "CHANGELOG", "VERSION", "NOTICE", "AUTHORS"}
"""Bare names that are headings, too."""
_NO_PATHS = frozenset(
    (
        *("asp.net", "vb.net", "e.g.", "i.e.", "etc."),
        *(f"{name}.js" for name in ("node", "vue", "next", "nuxt", "react", "express", "three", "d3", "chart")),
    )
)
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
_PLAIN = {"text", "txt", "plaintext", "plain"}
_DATA = set("md markdown mdx log ini cfg conf json toml yaml yml xml svg html htm".split())  # noqa: SIM905
_CODE = {suffix for names in _SUFFIXES.values() for suffix in names.split()} - _DATA
_OTHERS = (
    "txt rst adoc org env lock proto graphql gql tf tfvars hcl vue svelte astro scss sass less styl dart lua r rmd",
    "qmd pl pm ex exs erl hrl hs ml mli scala sbt clj cljs edn groovy gradle zig nim jl m mm vb fs fsx f90 asm s csv",
    "tsv jsonl ndjson json5 jsonc bat cmd fish awk sed tex bib ipynb j2 jinja jinja2 tmpl tpl template example sample",
    "dist properties xsd xsl xslt plist service timer rego bzl bazel cmake mk mod sum gemspec podspec csproj sln",
    "props targets patch diff po pot prisma sol http ejs hbs erb haml slim pug njk liquid pyx pxd typed in",
)
_KNOWN = _CODE | _DATA | {suffix for names in _OTHERS for suffix in names.split()}
"""Suffixes by which a name without a folder is a file's: `os.path` and `example.com` are none."""
_LONGEST = 500
"""Characters of a line that can name a file."""
_LONGEST_INFO = 2_500
_PATH = re.compile(r"[\w.@+\[\]()$~-]+(?:[/\\][\w.@+\[\]()$~ -]+)*")
_SUFFIX = re.compile(r"\.[A-Za-z][\w-]{0,14}$")
_KEYED = re.compile(
    r"(?:^|[\s{,:])(?P<key>file_?name|file_?path|file|path|title|name|src)\s*[=:]\s*"
    r"(?:\"([^\"]+)\"|'([^']+)'|([^\s}\"',]+))",
    re.IGNORECASE,
)
_COLON = re.compile(r"^(?P<language>[\w+#.-]*):(?P<path>\S.*)$")
_PARTLY = r"\b(?:parts?|sections?|lines?|only|snippets?|excerpts?|portion|fragment|function|method|class)\b"
_WHOLE = rf"\b(?![^()\[\]]*{_PARTLY})"
_NOTE = re.compile(
    r"\s*[\(\[](?:new|updated?|modified|edit(?:ed)?|changed?|created?|full|complete|add(?:ed)?)"
    rf"{_WHOLE}[^()\[\]]*[\)\]]"
    rf"|\s+[-–—]+\s+(?:new|updated?|modified|changed?|created?|full|complete){_WHOLE}.*$",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"^\**(?:(?:new|full|updated?|modified|complete)\s+)?(?:file\s?name|file\s?path|file|path|created?|updated?|modify"
    r"|modified|edit|add|new|write)(?:\s+file)?(?:\s+#?\d+)?(?:\s*[:=]\**|\**[:=]|\s)\s*(?=[\s`*\"'\w./])",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^\s*(?:>\s*)*(?:#{1,6}\s+|[-*+]\s+|\(?\d+[.)]\s+|step\s+\d+\s*[.:)–—-]\s*|[^\w\s!-/:-@\[-`{-~]+\s+)*",
    re.IGNORECASE,
)
_RULED = re.compile(r"^(?P<rule>={2,}|-{3,}|//|<!--)\s*(?P<text>\S+)\s*(?:(?P=rule)|-->|$)$")
_LINK = re.compile(r"^\[(?P<text>[^\]]+)\]\([^()]*\)$")
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
        if names_file(path) or ("/" in path and keyed["key"].lower() not in ("title", "name")):
            return ("" if "=" in language else language), path
    if (colon := _COLON.match(info)) and not colon["language"].isdigit():
        language, path = colon["language"].lower(), _plain(colon["path"])
        is_file = is_path(path) or _is_spaced(path, language)
        return language, path if is_file else None
    if rest and is_path(path := _plain(re.sub(r"^(?:#|//|--)\s*", "", rest))) and not word.startswith(("{", "[")):
        return word.lower(), path
    if not rest and is_path(path := _unquoted(word)) and word.lower() not in _SUFFIXES and path not in _BARE_NAMES:
        return PurePosixPath(path).suffix.lstrip(".").lower(), path
    return word.strip("{}.").lower(), None


def _is_spaced(path: str, language: str) -> bool:
    """Whether it is the name of a file with spaces before its suffix."""
    is_file = names_file(path.replace(" ", "_")) and " " not in PurePosixPath(path).suffix
    return is_file and fits(language, path)


def in_line(line: str, language: str = "") -> str | None:
    """The path that a line before a block names, and nothing but that."""
    if len(line) > _LONGEST:
        return None
    text = _LEAD.sub("", _visible(line)).strip()
    text = _NOTE.sub("", text).strip().rstrip(":").strip()
    is_certain = False
    for _ in range(3):  # `**File: \\`a.py\\`**`: emphasis, a label, the name
        is_certain |= text.startswith("`") and "/" in text and language in _SHELLS  # `bin/deploy`
        bare = _LEAD.sub("", _unquoted(text))
        text = _LABEL.sub("", bare).strip().rstrip(":").strip()
        is_certain |= text != bare.rstrip(":").strip() and _FILE_LABEL.match(bare) is not None
    text = _NOTE.sub("", _unquoted(text)).strip()
    is_file = (names_file(text) and (text not in _WORDS or "`" in line)) or (is_certain and is_path(text))
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
    if path in _BARE_NAMES:
        return path if labelled != text or language == path.lower() else None
    return path if labelled != text or names_file(path) else None


def mentioned(line: str) -> list[str]:
    """The files that a sentence speaks of."""
    if len(line) > _LONGEST:
        return []
    words = (word.strip("`*\"'.,:;()<>") for word in line.split())
    return [word for word in words if names_file(word)]


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


def names_file(text: str) -> bool:
    """Whether it is a file's path and can hardly be anything else, as `Input/Output` and `os.path` can."""
    name = re.split(r"[/\\]", text)[-1]
    if not is_path(text) or name in _BARE_NAMES:
        return is_path(text)
    suffix = _SUFFIX.search(name)
    return suffix is not None and (name != text or name.startswith(".") or suffix[0][1:].lower() in _KNOWN)


def fits(language: str, path: str) -> bool:
    """Whether a block in a language can be this file: commands below a file's name are not the file."""
    name = PurePosixPath(path.replace("\\", "/"))
    suffix = name.suffix.lstrip(".").lower()
    if language in _PLAIN:
        return suffix not in _CODE
    if language in _SHELLS and not suffix:
        return name.name not in _BARE_NAMES
    if language not in _SUFFIXES or not suffix:
        return _SUFFIXES.get(language) != ""
    return suffix in _SUFFIXES[language].split() or (language not in _SHELLS and bool(_SUFFIXES[language]))


def _plain(text: str) -> str:
    return _unquoted(_NOTE.sub("", text).strip())


def _visible(text: str) -> str:
    """Without characters that have no width."""
    return "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Mn"))


def _unquoted(text: str) -> str:
    """Without what sets a name off: quotes, backticks, emphasis, a rule on both sides, a link."""
    text = text.strip()
    for around in (_RULED, _LINK):
        if found := around.match(text):
            text = found["text"]
    for mark in ("**", "__", "*", "`", '"', "'", "<", "(", "["):
        other = {"<": ">", "(": ")", "[": "]"}.get(mark, mark)
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.rstrip(":").endswith(other):
            inside = text.rstrip(":").removeprefix(mark).removesuffix(other).strip()
            text = inside if mark not in "([" or is_path(inside) else text
    return text
