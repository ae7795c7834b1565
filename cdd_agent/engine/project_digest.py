"""A digest of a project's files: if it is equal, checks have equal results."""

import hashlib
import os
from pathlib import Path

from cdd_agent.files.walk import Kind, walk
from cdd_agent.threads import stop_if_left

_DOCUMENTS = (".md", ".rst", ".txt")
_CHUNK = 1 << 20


def digest_project(root: Path, tickets_dir: str) -> str:
    """Digest unignored files, without documents, tickets and this program's files."""
    skipped = (".cdd/", "specs/tickets/", f"{tickets_dir.strip('/')}/")
    digest = hashlib.blake2b(digest_size=16)
    entries = [
        entry
        for entry in walk(root)
        if entry.kind in (Kind.FILE, Kind.LINK)
        and not entry.text.startswith(skipped)
        and not entry.text.lower().endswith(_DOCUMENTS)
    ]
    for entry in sorted(entries):
        stop_if_left()
        content = _digest_content(root / entry.text, entry.kind)
        digest.update(os.fsencode(entry.text) + b"\0" + content)
    return digest.hexdigest()


def _digest_content(place: Path, kind: Kind) -> bytes:
    content = hashlib.blake2b(digest_size=16)
    try:
        if kind is Kind.LINK:
            content.update(os.fsencode(place.readlink()))
            return content.digest()
        with place.open("rb") as file:
            while data := file.read(_CHUNK):
                content.update(data)
    except OSError:
        return b""
    return content.digest()
