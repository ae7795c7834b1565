"""Write the files of an arriving run into a separate folder. Names, kinds and sizes
come from the remote and are checked first.
"""

from __future__ import annotations

import re
from pathlib import Path

from cdd_agent.files.atomic import NotWritten
from cdd_agent.files.json_file import from_json
from cdd_agent.git.objects import find_objects
from cdd_agent.pattern import Pattern
from cdd_agent.travel.manifest import (
    EMPTY_TREES,
    LARGEST_LEASE,
    LARGEST_MANIFEST,
    LEASE,
    MANIFEST,
    VERSION_OF_FORM,
    Manifest,
    is_run_file,
)
from cdd_agent.travel.reference import NotARun, RunReference

_LARGEST = {MANIFEST: LARGEST_MANIFEST, LEASE: LARGEST_LEASE}
_MOST_FILES = 200_000
LARGEST_FILE = 200_000_000
_MOST_BYTES = 1_000_000_000
"""Maximum size of a ticket and its record."""
_CHECKPOINT = Pattern(r"[a-z0-9-]+(/[A-Za-z0-9-]+)+")
_CHUNK = 1 << 20
_FILE = "100644"


async def unpack_run(reference: RunReference, tip: str, folder: Path) -> Manifest:
    """Write the files of the run in a commit into a folder. Raises `NotARun`, and
    `BadInput` if the disk refuses.
    """
    contents = await _list_contents(reference, tip)
    asked, batch = reference.folder / "asked", reference.folder / "batch"
    try:
        asked.write_text("".join(f"{name}\n" for name in contents.values()))
    except OSError as error:
        raise NotWritten(asked, error) from error
    await reference.git("cat-file", "--batch", "--buffer", stdin=asked, stdout=batch)
    try:
        _write_files(batch, folder, list(contents))
        batch.unlink()
    except OSError as error:
        raise NotWritten(folder, error) from error
    place = folder / MANIFEST
    if not place.exists():
        raise NotARun(f"it has no {MANIFEST}")
    manifest = _read_manifest(place.read_bytes(), reference.slug)
    await _expect_trees(reference, tip, manifest)
    return manifest


async def _list_contents(reference: RunReference, tip: str) -> dict[str, str]:
    listed = reference.folder / "listed"
    words = ("-r", "-l", "-z", tip, "--", MANIFEST, LEASE, "ticket/", "record/")
    await reference.git("ls-tree", *words, stdout=listed)
    with listed.open("rb") as file:
        entries = file.read(_MOST_FILES * 200).split(b"\0")[:-1]
    if len(entries) > _MOST_FILES:
        raise NotARun(f"it has more than {_MOST_FILES} files")
    contents, total = dict[str, str](), 0
    for entry in entries:
        head, _, path = entry.decode(errors="replace").partition("\t")
        mode, kind, content, size = head.split()
        if mode != _FILE or kind != "blob" or not is_run_file(path):
            raise NotARun(f"{path[:200]!r} does not belong in it")
        total += int(size)
        if int(size) > _LARGEST.get(path, LARGEST_FILE) or total > _MOST_BYTES:
            raise NotARun(f"{path} is too large")
        contents[path] = content
    return contents


def _write_files(batch: Path, folder: Path, paths: list[str]) -> None:
    """Write the contents that `git cat-file` printed in this order."""
    for name in ("ticket", "record"):
        (folder / name).mkdir(parents=True)
    with batch.open("rb") as file:
        for path in paths:
            _, kind, size = file.readline().split()
            if kind != b"blob":
                raise NotARun(f"{path} is not there")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            remaining = int(size)
            with target.open("wb") as copy:
                while remaining and (data := file.read(min(remaining, _CHUNK))):
                    remaining -= copy.write(data)
            file.read(1)


def _read_manifest(data: bytes, slug: str) -> Manifest:
    version = re.match(rb'\{\s*"version":\s*([0-9]+)', data)
    if version and int(version[1]) > VERSION_OF_FORM:
        raise NotARun("it was pushed by a newer cdd; update cdd here, too")
    try:
        manifest = from_json(data, Manifest)
        for one in (manifest.project_checkpoint, *manifest.list_checkpoints().values()):
            one.part("")  # raises for an invalid name
    except ValueError as error:
        raise NotARun(f"{MANIFEST}: {error}") from error
    _check_names(manifest, slug)
    return manifest


def _check_names(manifest: Manifest, slug: str) -> None:
    if manifest.slug != slug:
        raise NotARun(f"it is the run of {manifest.slug[:100]!r}")
    for one in manifest.notes:
        if manifest.checkpoints.get(one.name) != one.id or one.saved or one.inner:
            raise NotARun(f"the notes of {one.name[:100]!r} do not belong to it")
    for name in manifest.checkpoints:
        if not _CHECKPOINT.fullmatch(name) or name.startswith("travel/"):
            raise NotARun(f"{name[:100]!r} is not the name of a checkpoint")


async def _expect_trees(reference: RunReference, tip: str, manifest: Manifest) -> None:
    """Check that each tree of the manifest is in the commit. In version 0.1 it has the
    entry `files`.
    """
    trees = {"project": manifest.project_checkpoint}
    for name, one in manifest.list_checkpoints().items():
        trees[f"checkpoints/{name}"] = one
    names = list[str]()
    for path in trees:
        names += [f"{tip}:{path}", f"{tip}:{path}/files"]
    objects = await find_objects(reference.git, reference.folder, names)
    for (path, one), tree, files in zip(
        trees.items(), objects[::2], objects[1::2], strict=True
    ):
        is_old = one.files != one.id
        if one.id in EMPTY_TREES and not is_old:
            continue
        is_there = tree is not None and tree.kind == "tree" and tree.id == one.id
        has_files = files is not None and files.kind == "tree"
        if not is_there or (is_old and not has_files):
            raise NotARun(f"{path} is not there")
