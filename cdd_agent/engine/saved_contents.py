"""File contents before and after steps, in the run's folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger_entries import private_paths
from cdd_agent.git.content_store import ContentStore, hash_content
from cdd_agent.git.diff import LINK, Change, TreeEntry
from cdd_agent.git.restore import (
    UNKNOWN,
    CheckpointGone,
    ContentPiece,
    Contents,
    entry_now,
)

LARGEST_SAVED = 50_000_000
"""In bytes. Commands' changes to larger files are kept and named, like those of other
files.
"""


def store_of(attempt: Attempt, path: str) -> ContentStore:
    if path in private_paths(attempt):
        return attempt.private
    return attempt.versions


def save_files(
    root: Path, attempt: Attempt, paths: Iterable[str]
) -> dict[str, TreeEntry | None]:
    """Save files and links.

    Returns checkpoint entries: None for nothing or a folder, `UNKNOWN` for an
    unreadable or too large file.
    """
    private = private_paths(attempt)
    return {
        path: _save(
            root, path, attempt.private if path in private else attempt.versions
        )
        for path in paths
    }


def save_file(root: Path, attempt: Attempt, path: str) -> TreeEntry | None:
    """See `save_files`."""
    return _save(root, path, store_of(attempt, path))


def _save(root: Path, path: str, store: ContentStore) -> TreeEntry | None:
    place = root / path
    if _is_too_large(place):
        return UNKNOWN
    entry = entry_now(root, path)
    if entry is None or entry == UNKNOWN or store.has(entry.content):
        return entry
    if entry.mode == LINK:
        return replace(entry, content=store.put(os.fsencode(place.readlink())))
    return replace(entry, content=store.put(place))


def find_contents(
    attempts: Iterable[Attempt], entries: Iterable[TreeEntry | None]
) -> Contents:
    """Missing contents are left out."""
    names = {entry.content for entry in entries if entry is not None}
    places: dict[str, ContentPiece | bytes] = {}
    stores = {
        store for attempt in attempts for store in (attempt.versions, attempt.private)
    }
    for store in stores:
        for name in names:
            if store.has(name):
                place = store.find(name)
                places[name] = ContentPiece(place, 0, place.stat().st_size)
    return Contents(places)


def find_replaced(attempts: Iterable[Attempt], changes: Sequence[Change]) -> Contents:
    """Raises `CheckpointGone` if one is missing or damaged."""
    wanted = [change.before for change in changes]
    contents = find_contents(attempts, wanted)
    for entry in wanted:
        if entry is not None and not _is_intact(contents, entry.content):
            raise CheckpointGone
    return contents


def read_content(contents: Contents, entry: TreeEntry | None) -> bytes | None:
    """None for no file. Raises `CheckpointGone` if the content is missing."""
    if entry is None:
        return None
    if entry.content not in contents.places:
        raise CheckpointGone
    return b"".join(contents.chunks(entry.content))


def _is_too_large(place: Path) -> bool:
    try:
        return place.lstat().st_size > LARGEST_SAVED
    except (OSError, ValueError):
        return False


def _is_intact(contents: Contents, name: str) -> bool:
    piece = contents.places.get(name)
    if not isinstance(piece, ContentPiece):
        return False
    return hash_content(contents.chunks(name), piece.size, "sha1") == name
