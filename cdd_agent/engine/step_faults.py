"""Faults that measure a completed step's tests, in lines that it changed and that still
exist.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.engine.accepted import accepted
from cdd_agent.engine.ledger_entries import in_order
from cdd_agent.engine.net_changes import NetChange, fold
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.saved_contents import find_contents, read_content
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.text import FileText, Origin, decode_file, decode_versions
from cdd_agent.git.restore import CheckpointGone
from cdd_agent.project.subjects import is_test_file
from cdd_agent.threads import stop_if_left
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.verification.strength.fault import Fault
from cdd_agent.verification.strength.faults import choose_faults, faults_in
from cdd_agent.verification.strength.lines import find_changed_lines
from cdd_agent.verification.testcode.test_files import LikelihoodOfTests, place_of


class StepFaults(Struct, frozen=True):
    """Faults to try, in order."""

    faults: tuple[Fault, ...] = ()
    texts: Mapping[str, str] = {}
    """Current texts of their files, without byte order marks."""


def find_step_faults(
    state: ExecutionState, record: RunRecord, most: int
) -> dict[int, StepFaults]:
    """Return step number → at most `most` faults. A line belongs to the last step that
    changed it. Files with contents on another computer have none. Raises `BadInput` for
    a damaged record.
    """
    faults_by_file: dict[str, frozenset[int]] = {}
    faults_by_step: dict[int, StepFaults] = {}
    for step in reversed(accepted(state)):
        faults: list[Fault] = []
        texts: dict[str, str] = {}
        for path, text, lines in _find_lines(step, record):
            stop_if_left()
            free = lines - faults_by_file.get(path, frozenset())
            faults_by_file[path] = faults_by_file.get(path, frozenset()) | lines
            faults += faults_in(path, text, free)
            texts[path] = text
        chosen = choose_faults(faults, texts, most)
        faults_by_step[step.step_number] = StepFaults(tuple(chosen), texts)
    return faults_by_step


def _find_lines(
    step: StepExecution, record: RunRecord
) -> Iterator[tuple[str, str, frozenset[int]]]:
    attempt = record.attempt(step.folder, step.attempts)
    charsets = Charsets(record.root)
    changes = [one for one in fold(in_order([attempt])).changes if _is_code(one)]
    entries = [entry for one in changes for entry in (one.before, one.after)]
    contents = find_contents([attempt], entries)
    for change in changes:
        try:
            old = read_content(contents, change.before) or b""
            new = read_content(contents, change.after) or b""
        except CheckpointGone:
            continue
        path = PurePosixPath(change.path)
        before, after = decode_versions(path, old, new, charsets)
        current = read_text_of(record.root, path, charsets)
        if before is None or after is None or current is None:
            continue
        lines = find_changed_lines(before.text, after.text, current.text)
        yield change.path, current.text, lines


def _is_code(change: NetChange) -> bool:
    if change.after is None:
        return False
    path = PurePosixPath(change.path)
    if path.suffix == ".rs":  # tests can be in any file, and are marked
        return not is_test_file(path)
    return place_of(change.path) is LikelihoodOfTests.NONE


def read_text_of(
    root: Path, path: PurePosixPath, charsets: Charsets
) -> FileText | None:
    """Return the text of a regular file; None for anything else, or if not completely
    decodable.
    """
    place = root / path
    try:
        if place.is_symlink() or not place.is_file():
            return None
        text = decode_file(path, place.read_bytes(), charsets)
    except OSError:
        return None
    return None if text.encoding.origin is Origin.NONE else text
