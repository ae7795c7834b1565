"""Finding files and lines in a project: all files, files by name, lines by what is in
them.

What git ignores is not found. Each answer says whether it is all there is.
"""

import re
import stat
import sys
from collections.abc import Iterable, Iterator
from json import dumps, loads
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import asdict

from cdd_agent.errors import CddError
from cdd_agent.files.found import Found
from cdd_agent.files.globs import Glob, PatternRefused
from cdd_agent.files.read import file_mode, holds_secrets, is_binary, locate, resolved
from cdd_agent.files.regular_files import open_file
from cdd_agent.files.walk import Kind, WalkEntry, walk
from cdd_agent.process.run import WHOLE, run_command

_FILES, _LINES = 1_000, 200
_SECONDS = 20.0
_MAX_LINE = 300
"""Characters of a line that are shown."""
_MAX_FILE = 5_000_000
"""Bytes; files that people read are smaller."""
_MAX_PATTERN = 2_000
_PACKAGE = Path(__file__).resolve().parents[2]
"""The folder that this package is imported from."""
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); import cdd_agent.project.search as s;"
    " s.search(sys.argv[2])"
)
_LINE, _WRONG, _CUT, _NOTE, _DONE = "=!<#."
"""The kind of a line of the searching process, by its first character."""


class SearchFailed(CddError):
    """A search that came to no answer."""


def list_files(root: Path, under: str = ".", limit: int = _FILES) -> Found:
    """All files in a folder and in the folders below it. Raises `SourceMissing` where
    nothing is.
    """
    return _gathered(_entries(root, locate(root, under)), limit)


def glob_files(root: Path, pattern: str, limit: int = _FILES) -> Found:
    """Files whose path from the root matches: `*` and `?` within a name, `**` for any
    folders, `[ab]`, `{a,b}`.

    Raises `PatternRefused` for a pattern that means nothing, `PathRefused` for one that
    leaves the project.
    """
    glob = Glob(root, pattern)
    entries = (
        entry
        for entry in walk(root, glob.folder)
        if entry.kind is Kind.UNREADABLE or glob.matches(entry.text)
    )
    return _gathered(entries, limit)


async def grep_files(
    root: Path,
    pattern: str,
    under: str = ".",
    glob: str | None = None,
    ignore_case: bool = False,
    limit: int = _LINES,
    *,
    seconds: float = _SECONDS,
) -> Found:
    """Lines that a regular expression (Python's) matches, as `path:number:line`, in a
    file or below a folder.

    `glob` keeps to files that match it; without a `/` it is about the name alone.
    Binary files, large ones and those that hold secrets are left out. Some expressions
    take for ever on some lines, so the search is a process of its own, which is ended
    when its time is up; what it found until then is the answer.

    Raises `PatternRefused`, which says what is wrong with the expression and where.
    """
    path = locate(root, under)
    file_mode(root, path)
    if len(pattern) > _MAX_PATTERN:
        raise PatternRefused(
            f"A regular expression of {len(pattern):,} characters is too long"
        )
    if glob is not None:
        glob = glob.replace("\\", "/")
        glob = glob if "/" in glob else f"**/{glob}"
        Glob(root, glob)  # what can be refused without a search is refused
    root = root.absolute()  # noqa: ASYNC240  # no disk is asked
    wanted = _Wanted(str(root), pattern, str(path), glob, ignore_case, limit)
    argv = [
        sys.executable,
        "-I",
        "-W",
        "ignore",
        "-c",
        _CHILD,
        str(_PACKAGE),
        dumps(asdict(wanted)),
    ]
    result = await run_command(argv, cwd=_PACKAGE, limit=seconds, most=WHOLE)
    said: dict[str, list[str]] = {
        kind: [] for kind in (_LINE, _WRONG, _CUT, _NOTE, _DONE)
    }
    for line in result.stdout.split("\n")[:-1]:
        said[line[0]].append(line[1:])
    found = tuple(said[_LINE])
    if said[_WRONG]:
        raise PatternRefused(
            f"{pattern!r} is not a regular expression: {said[_WRONG][0]}"
        )
    if result.timed_out:
        return Found(
            found,
            cut=True,
            note=(
                "not everything was searched: it took longer than"
                f" {result.seconds:.0f} s"
            ),
        )
    if not said[_DONE] and not said[_CUT]:
        last_line = result.stderr.strip().rpartition("\n")[2]
        raise SearchFailed(f"The search ended early. {last_line}".strip())
    return Found(found, cut=bool(said[_CUT]), note="; ".join(said[_NOTE]))


def search(wanted: str) -> None:
    """The work of the process that `grep_files` starts: writes what it finds as it
    finds it.
    """
    for line in _search(_Wanted(**loads(wanted))):
        sys.stdout.buffer.write(line.encode("utf-8", errors="replace") + b"\n")
        sys.stdout.buffer.flush()


class _Wanted(Struct, frozen=True):
    """The search, as the process is told it."""

    root: str
    pattern: str
    under: str
    glob: str | None
    ignore_case: bool
    limit: int


def _search(wanted: _Wanted) -> Iterator[str]:
    try:
        expression = re.compile(
            wanted.pattern, re.IGNORECASE if wanted.ignore_case else 0
        )
    except re.error as error:
        where = "" if error.pos is None else f" (character {error.pos + 1})"
        yield f"{_WRONG}{error.msg}{where}"
        return
    except (OverflowError, RecursionError) as error:
        yield f"{_WRONG}{error}"
        return
    root, found, left_out = Path(wanted.root), 0, 0
    glob = None if wanted.glob is None else Glob(root, wanted.glob)
    for entry in _entries(root, PurePosixPath(wanted.under)):
        if entry.kind is not Kind.FILE or (glob and not glob.matches(entry.text)):
            continue
        text = _text(root, entry)
        left_out += text is None
        for number, line in enumerate((text or "").split("\n"), 1):
            if match := expression.search(line.removesuffix("\r")):
                if found == wanted.limit:
                    yield _CUT
                    return
                yield f"{_LINE}{entry.shown}:{number}:{_around(line, match.start())}"
                found += 1
    if left_out:
        files = "1 file was" if left_out == 1 else f"{left_out:,} files were"
        yield (
            f"{_NOTE}{files} not searched: over {_MAX_FILE // 1_000_000} MB,"
            " unreadable, or holding secrets"
        )
    yield _DONE


def _text(root: Path, entry: WalkEntry) -> str | None:
    """A file's text; empty for a binary one, None for one that is left out."""
    if holds_secrets(entry.name):
        return None
    try:
        with open_file(root / entry.text) as file:
            if is_binary(file):
                return ""
            data = file.read(_MAX_FILE + 1)
    except OSError:
        return None
    return data.decode("utf-8", errors="replace") if len(data) <= _MAX_FILE else None


def _around(line: str, at: int) -> str:
    """The line without its end, or, of a long one, the part where the match is."""
    line = line.removesuffix("\r")
    if len(line) <= _MAX_LINE:
        return line
    start = max(0, min(at - _MAX_LINE // 3, len(line) - _MAX_LINE))
    end = start + _MAX_LINE
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def _entries(root: Path, path: PurePosixPath) -> Iterator[WalkEntry]:
    """One file, or what is in a folder."""
    mode = file_mode(root, path)
    if stat.S_ISDIR(mode):
        yield from walk(root, path)
    elif stat.S_ISREG(mode):
        yield WalkEntry(str(resolved(root, path)), Kind.FILE)


def _gathered(entries: Iterable[WalkEntry], limit: int) -> Found:
    lines: list[str] = []
    closed = 0
    for entry in entries:
        closed += entry.kind is Kind.UNREADABLE
        if entry.kind in (Kind.FILE, Kind.LINK):
            if len(lines) == limit:
                return Found(tuple(lines), cut=True)
            lines.append(entry.shown)
    folders = "1 folder" if closed == 1 else f"{closed:,} folders"
    return Found(
        tuple(lines), note=f"{folders} could not be looked into" if closed else ""
    )
