"""Search for files and lines in a project, without what git ignores."""

import re
import stat
import sys
from collections.abc import Iterable, Iterator
from json import dumps, loads
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import asdict

from cdd_agent.errors import CddError
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.globs import Glob, PatternRefused
from cdd_agent.files.hidden_from_models import (
    HiddenFiles,
    is_secret_path,
    secret_in,
)
from cdd_agent.files.line_list import LineList
from cdd_agent.files.read import (
    LARGEST_DECODED,
    SourceHidden,
    file_mode,
    locate,
    resolved,
)
from cdd_agent.files.regular_files import open_file
from cdd_agent.files.text import HEAD, Origin, decode_file, lines_of
from cdd_agent.files.walk import Kind, WalkEntry, walk
from cdd_agent.process.run import WHOLE, CommandResult, run_command
from cdd_agent.refusals.kinds import Refusal

_FILES, _LINES = 1_000, 200
_SECONDS = 20.0
_MAX_LINE = 300
"""Characters of a line to show."""
_MAX_FILE = LARGEST_DECODED
"""Maximum bytes of a file to search."""
_MAX_PATTERN = 2_000
_PACKAGE = Path(__file__).resolve().parents[2]
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); import cdd_agent.project.search as s;"
    " s.search(sys.argv[2])"
)
_LINE, _WRONG, _CUT, _NOTE, _DONE = "=!<#."
"""First characters of the search process's output lines."""


class SearchFailed(CddError):
    """A search failed without an answer."""

    refusal = Refusal.BAD_PATTERN


def list_files(root: Path, under: str = ".", limit: int = _FILES) -> LineList:
    """List the files below a folder. Raises `SourceMissing` or `SourceHidden`."""
    return _list_paths(_entries(root, locate(root, under)), limit)


def glob_files(root: Path, pattern: str, limit: int = _FILES) -> LineList:
    """List the files with a matching path: `*` and `?` within a name, `**` for folders,
    `[ab]`, `{a,b}`. Raises `PatternRefused` or `PathRefused`.
    """
    glob = Glob(root, pattern)
    return _list_paths(_matching_entries(root, glob), limit)


async def grep_files(
    root: Path,
    pattern: str,
    under: str = ".",
    glob: str | None = None,
    ignore_case: bool = False,
    limit: int = _LINES,
    *,
    seconds: float = _SECONDS,
) -> LineList:
    """Return matching lines as `path:number:line`. `glob` selects files; without a `/`,
    by name alone. Raises `PatternRefused`.

    Some expressions never end on some lines, so a process with a time limit searches.
    """
    path = locate(root, under)
    _expect_shown(root, path)
    if len(pattern) > _MAX_PATTERN:
        raise PatternRefused(
            f"A regular expression of {len(pattern):,} characters is too long"
        )
    if glob is not None:
        glob = glob.replace("\\", "/")
        if "/" not in glob:
            glob = f"**/{glob}"
        Glob(root, glob)  # refuse an invalid pattern without a search
    root = root.absolute()  # noqa: ASYNC240  # no disk is asked
    wanted = _Wanted(str(root), pattern, str(path), glob, ignore_case, limit)
    argv = [sys.executable, "-I", "-W", "ignore", "-c", _CHILD, str(_PACKAGE)]
    argv.append(dumps(asdict(wanted)))
    result = await run_command(argv, cwd=_PACKAGE, limit=seconds, most=WHOLE)
    return _answer(pattern, result)


def _answer(pattern: str, result: CommandResult) -> LineList:
    """Raises `PatternRefused` or `SearchFailed`."""
    by_kind: dict[str, list[str]] = {
        kind: [] for kind in (_LINE, _WRONG, _CUT, _NOTE, _DONE)
    }
    for line in result.stdout.split("\n")[:-1]:
        by_kind[line[0]].append(line[1:])
    if by_kind[_WRONG]:
        raise PatternRefused(
            f"{pattern!r} is not a regular expression: {by_kind[_WRONG][0]}"
        )
    lines = tuple(by_kind[_LINE])
    if result.timed_out:
        seconds = f"{result.seconds:.0f} s"
        note = f"not everything was searched: it took longer than {seconds}"
        return LineList(lines, cut=True, note=note)
    if not by_kind[_DONE] and not by_kind[_CUT]:
        last_line = result.stderr.strip().rpartition("\n")[2]
        raise SearchFailed(f"The search ended early. {last_line}".strip())
    return LineList(lines, cut=bool(by_kind[_CUT]), note="; ".join(by_kind[_NOTE]))


def search(wanted: str) -> None:
    """Run in the process of `grep_files`; write each line at once."""
    for line in _search(_Wanted(**loads(wanted))):
        sys.stdout.buffer.write(line.encode("utf-8", errors="replace") + b"\n")
        sys.stdout.buffer.flush()


class _Wanted(Struct, frozen=True):
    root: str
    pattern: str
    under: str
    glob: str | None
    ignore_case: bool
    limit: int


def _search(wanted: _Wanted) -> Iterator[str]:
    flags = re.IGNORECASE if wanted.ignore_case else 0
    try:
        expression = re.compile(wanted.pattern, flags)
    except re.error as error:
        where = "" if error.pos is None else f" (character {error.pos + 1})"
        yield f"{_WRONG}{error.msg}{where}"
        return
    except (OverflowError, RecursionError) as error:
        yield f"{_WRONG}{error}"
        return
    root = Path(wanted.root)
    charsets = Charsets(root)
    count = left_out = 0
    for entry in _files_to_search(root, wanted):
        text = _read_text(root, entry, charsets)
        if text is None:
            left_out += 1
            continue
        for line in _matching_lines(expression, entry.shown, text):
            if count == wanted.limit:
                yield _CUT
                return
            yield f"{_LINE}{line}"
            count += 1
    if left_out:
        yield f"{_NOTE}{_note_of_unsearched(left_out)}"
    yield _DONE


def _note_of_unsearched(count: int) -> str:
    files = f"{count:,} files were"
    if count == 1:
        files = "1 file was"
    size = _MAX_FILE // 1_000_000
    return f"{files} not searched: over {size} MB, unreadable, or holding secrets"


def _files_to_search(root: Path, wanted: _Wanted) -> Iterator[WalkEntry]:
    glob = None if wanted.glob is None else Glob(root, wanted.glob)
    for entry in _entries(root, PurePosixPath(wanted.under)):
        if entry.kind is Kind.FILE and (glob is None or glob.matches(entry.text)):
            yield entry


def _matching_lines(expression: re.Pattern[str], path: str, text: str) -> Iterator[str]:
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.rstrip("\r\n") for line in lines_of(text)]
    for number, line in enumerate(lines, 1):
        if match := expression.search(line):
            yield f"{path}:{number}:{_around(line, match.start())}"


def _read_text(root: Path, entry: WalkEntry, charsets: Charsets) -> str | None:
    """Return a text: empty for a binary file, None for an excluded one."""
    if is_secret_path(entry.text):
        return None
    path = PurePosixPath(entry.text)
    try:
        with open_file(root / entry.text) as file:
            data = file.read(HEAD)
            if (
                b"\0" in data
                and decode_file(path, data, charsets, is_cut=True).is_binary
            ):
                return ""
            data += file.read(_MAX_FILE + 1 - len(data))
    except OSError:
        return None
    if len(data) > _MAX_FILE or secret_in(entry.text, data):
        return None
    decoded = decode_file(path, data, charsets)
    if decoded.encoding.origin is Origin.NONE:
        return decoded.shown
    return decoded.text


def _around(line: str, at: int) -> str:
    if len(line) <= _MAX_LINE:
        return line
    start = max(0, min(at - _MAX_LINE // 3, len(line) - _MAX_LINE))
    end = start + _MAX_LINE
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def _matching_entries(root: Path, glob: Glob) -> Iterator[WalkEntry]:
    for entry in walk(root, glob.folder):
        if entry.kind is Kind.UNREADABLE or glob.matches(entry.text):
            yield entry


def _entries(root: Path, path: PurePosixPath) -> Iterator[WalkEntry]:
    mode = _expect_shown(root, path)
    if stat.S_ISDIR(mode):
        yield from walk(root, path)
    elif stat.S_ISREG(mode):
        yield WalkEntry(str(resolved(root, path)), Kind.FILE)


def _expect_shown(root: Path, path: PurePosixPath) -> int:
    """Raises `SourceMissing` or `SourceHidden`."""
    mode = file_mode(root, path)
    if path.parts and (why := HiddenFiles(root).why_by_name(str(path))):
        raise SourceHidden(path, why)
    return mode


def _list_paths(entries: Iterable[WalkEntry], limit: int) -> LineList:
    lines: list[str] = []
    closed = 0
    for entry in entries:
        if entry.kind is Kind.UNREADABLE:
            closed += 1
        elif entry.kind in (Kind.FILE, Kind.LINK):
            if len(lines) == limit:
                return LineList(tuple(lines), cut=True)
            lines.append(entry.shown)
    if not closed:
        return LineList(tuple(lines))
    folders = f"{closed:,} folders"
    if closed == 1:
        folders = "1 folder"
    return LineList(tuple(lines), note=f"{folders} could not be read")
