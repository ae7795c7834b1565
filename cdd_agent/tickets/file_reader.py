"""Reads the files, with notes, of a list item, table row or line.

A name is a code span, a Markdown link or a plain path.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.markdown import code_spans, without_checkbox
from cdd_agent.tickets.plan import AffectedFile
from cdd_agent.tickets.text_pieces import table_cells

_BARE_NAMES_TEXT = """
brewfile build.bazel caddyfile changelog codeowners containerfile dockerfile gemfile
gnumakefile jenkinsfile justfile license makefile podfile procfile rakefile readme
vagrantfile
"""
_BARE_NAMES = frozenset(_BARE_NAMES_TEXT.split())
_EXTENSION = Pattern(r"\.[A-Za-z0-9_+~-]{1,12}")
_SOURCE_EXTENSIONS_TEXT = """
bash bat c cc cfg clj cmd conf cpp cs css csv dart env erl ex exs fs go gradle
graphql h hpp hs htm html ini ipynb java js json jsonl jsx kt kts less lock lua md
mdx mjs ml php pl po proto ps1 py pyi r rb rs rst sass scala scss sh sql svelte svg
swift tf toml ts tsx txt vue xml yaml yml zig
"""
_SOURCE_EXTENSIONS = frozenset(_SOURCE_EXTENSIONS_TEXT.split())
_NO_FILES = Pattern(
    r"(?:none|nothing|nil|n/a|tbd|no files?|not"
    r" (?:specified|applicable|known)|unspecified)[.,;:!]?(?:\s.*)?|[-–—]?",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = Pattern(r"([\"'])(\S[^\"']*)\1(?=\s|$)")
_STRUCK = Pattern(r"~~(.+)~~")
_LINK = Pattern(
    r"\[(?P<text>[^\[\]]*)\]"
    r"\((?P<target><[^<>\n]*>|(?:[^()\s]|\([^()\s]*\))*)(?:[ \t]+\"[^\"]*\")?\)"
)
_WEB = Pattern(r"(?:https?|mailto|ftp):", re.IGNORECASE)
_ANCHOR = Pattern(r"#(?!L[0-9]).*")
_SEPARATOR = Pattern(r"(?:[,;、，]\s*(?:and\s)?|\s(?:and|&|\+)\s)\s*")
_ARROW = Pattern(r"\s*(?:→|->|=>|⇒|(?:is |to be )?(?:renamed|moved) to)\s*")
_LINES_BEHIND = Pattern(
    r"\s*(?:[:(,]?\s*(?:lines?|L)\s*|:)(?P<first>[0-9]{1,9})"
    r"(?:\s*[-–]\s*L?(?P<last>[0-9]{1,9}))?\b",
    re.IGNORECASE,
)
_VERB_BEFORE = Pattern(
    r"(?P<verb>\[?(?:create|add|new(?: file)?|modify|modified|update|edit|change|delete"
    r"|remove|test|rename|move)s?d?\]?\s*:?)\s+(?P<path>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_PATH_AND_NOTE = Pattern(
    r"(?P<path>.*?)(?P<note>[ \t]+\(.*\)|[ \t]+[-–—:][ \t].*|:[ \t]+.*)?", re.DOTALL
)


class ListedFiles(Struct, frozen=True):
    files: tuple[AffectedFile, ...] = ()
    is_none: bool = False
    """True if the text says that there are no files."""
    group: str = ""
    """The words of an item such as "Create:", for the items below."""


def read_files(text: str) -> ListedFiles:
    """Read a list item, or the text after a label."""
    text = without_checkbox(text)
    if _NO_FILES.fullmatch(text):
        return ListedFiles(is_none=True)
    names = _find_names(text)
    parts = _split_list(text, names)
    files = _read_list(parts, names)
    if files:
        return ListedFiles(files)
    plain = text.strip("*").strip()
    if plain.endswith(":") and not names and not is_path(plain[:-1]):
        return ListedFiles(group=plain[:-1].strip("* "))
    return ListedFiles(_read_one(text))


def read_file_row(row: str) -> ListedFiles:
    """The first cell with files names them; the others are their note."""
    cells = [cell for cell in table_cells(row) if cell]
    for position, cell in enumerate(cells):
        files = read_files(cell).files
        if files and all(_is_path_with_blanks(file.path) for file in files):
            others = [_clean_note(cell) for cell in cells]
            del others[position]
            others.sort(key=lambda text: not _says_change(text))
            if any(_says_change(file.note) for file in files):
                return ListedFiles(files)
            return ListedFiles(_with_note(files, ", ".join(others)))
    return ListedFiles()


def is_path(text: str) -> bool:
    """True if a text without backticks looks like a path."""
    text = text.strip().lstrip("@")
    if not text or "\n" in text or _WEB.match(text) or re.search(r"\s", text):
        return False
    name = re.split(r"[/\\]", text.rstrip("/\\"))[-1]
    has_folder = "/" in text or "\\" in text
    return has_folder or bool(_EXTENSION.search(name)) or name.lower() in _BARE_NAMES


def is_file_of_project(text: str) -> bool:
    """True if a code span is the path of a source file, not a URL or dotted name."""
    if re.search(r"\s", text) or text.startswith("/") or _WEB.match(text):
        return False
    path = re.sub(r"(?::|#L)[0-9-L]+$", "", text)
    _, dot, extension = path.rpartition(".")
    is_source = bool(dot) and extension.lower() in _SOURCE_EXTENSIONS
    return is_source or path.lower() in _BARE_NAMES


class _Name(Struct, frozen=True):
    start: int
    end: int
    path: str


def _find_names(text: str) -> list[_Name]:
    spans = code_spans(text)
    names = []
    links = []
    for match in _LINK.finditer(text):
        if not any(span.start < match.start() < span.end for span in spans):
            links.append(match)
            path = _link_path(match["text"], match["target"])
            if path:
                names.append(_Name(match.start(), match.end(), path))
    for span in spans:
        is_in_link = any(link.start() < span.start < link.end() for link in links)
        if not is_in_link:
            names.append(_Name(span.start, span.end, span.text))
    return sorted(names, key=lambda name: name.start)


def _link_path(text: str, target: str) -> str:
    text = text.strip("`* ")
    target = target.strip("<>")
    if _WEB.match(target) or not target or target.startswith("#"):
        return text if is_path(text) else ""
    path = _ANCHOR.sub("", target)
    return path if path.lower().startswith("file://") else unquote(path)


def _split_list(text: str, names: Sequence[_Name]) -> list[str]:
    words = text
    for name in names:
        length = name.end - name.start - 1
        words = f"{words[: name.start]}`{'x' * length}{words[name.end :]}"
    parts = []
    start = 0
    for match in _SEPARATOR.finditer(words):
        before = words[: match.start()]
        depth = sum(before.count(sign) for sign in "({")
        if depth <= sum(before.count(sign) for sign in ")}"):
            parts.append(text[start : match.start()])
            start = match.end()
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _read_list(
    parts: Sequence[str], names: Sequence[_Name]
) -> tuple[AffectedFile, ...]:
    """Return a list's files; none if only one part names a file. Other parts are notes
    of the file before.
    """
    if not names and len(parts) > 1 and all(len(part.split()) == 1 for part in parts):
        return tuple(file for part in parts for file in _read_one(part))
    if sum(map(_names_one_file, parts)) < 2 or not _names_one_file(parts[0]):
        return ()
    files: list[AffectedFile] = []
    for part in parts:
        if _names_one_file(part):
            files += _read_one(part)
        else:
            files[-1] = replace(files[-1], note=f"{files[-1].note}, {part}")
    return tuple(files)


def _names_one_file(part: str) -> bool:
    names = []
    for name in _find_names(part):
        before = part[: name.start]
        if before.count("(") <= before.count(")"):
            names.append(name)
    if names:
        return len(names) == 1 and _is_path_with_blanks(names[0].path)
    words = part.split()
    return bool(words) and is_path(words[0])


def _is_path_with_blanks(text: str) -> bool:
    return is_path(re.sub(r"\s+", "_", text.strip()))


def _read_one(text: str) -> tuple[AffectedFile, ...]:
    """Return the text's first file, with the other words as its note. A rename has two
    files.
    """
    names = _find_names(text)
    if _STRUCK.fullmatch(text):
        return ()
    if not names and _LINK.search(text):
        return ()
    if not names:
        return _read_plain(text.strip("*").strip())
    if len(names) > 1 and _ARROW.fullmatch(text[names[0].end : names[1].start]):
        return _moved(names[0].path, names[1].path)
    before, after = text[: names[0].start], text[names[0].end :]
    lines = ""
    line_range = _LINES_BEHIND.match(after)
    if line_range:
        lines = "-".join(filter(None, line_range.groups()))
        if after.startswith(":"):
            after = after[line_range.end() :]
    note = f"{_clean_note(before)} {_clean_note(after)}"
    return (AffectedFile(names[0].path, note, lines),)


def _moved(old: str, new: str) -> tuple[AffectedFile, ...]:
    return (
        AffectedFile(old, f"moved to {new}"),
        AffectedFile(new, f"moved from {old}"),
    )


def _read_plain(text: str) -> tuple[AffectedFile, ...]:
    quoted = _QUOTED.match(text)
    if quoted:
        return (AffectedFile(quoted[2], _clean_note(text[quoted.end() :])),)
    verb = _VERB_BEFORE.fullmatch(text)
    if verb and is_path(verb["path"].split()[0].rstrip(",:")):
        return _with_note(_read_plain(verb["path"]), _clean_note(verb["verb"]))
    moved = _ARROW.split(text)
    if len(moved) == 2 and all(map(is_path, moved)):
        return _moved(moved[0], moved[1])
    match = _PATH_AND_NOTE.fullmatch(text)
    if match is None:
        return ()
    path, note = match["path"].strip("* \t"), match["note"] or ""
    words = path.split()
    if len(words) > 1:
        paths = list(filter(is_path, words))
        if not paths:
            return ()
        words.remove(paths[0])
        note = " ".join([*words, note])
        path = paths[0].rstrip(",;:")
    return (AffectedFile(path, _clean_note(note)),)


def _says_change(note: str) -> bool:
    file = AffectedFile("x", note)
    return file.is_created or file.is_deleted


def _with_note(files: Sequence[AffectedFile], note: str) -> tuple[AffectedFile, ...]:
    return tuple(replace(file, note=f"{note} {file.note}") for file in files)


def _clean_note(text: str) -> str:
    text = text.strip().strip("*").strip()
    for opening, closing in ("()", "[]"):
        if text.startswith(opening) and text.endswith(closing) and len(text) > 1:
            return text[1:-1]
    return text.strip("*").lstrip("-–—:").rstrip(":").strip()
