"""Project rules that a prompt shows as editable files."""

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath

from cdd_agent.files.atomic import digest, read_bytes
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.text import decode_file
from cdd_agent.project.rules import ProjectRules
from cdd_agent.project.unfilled import without_unfilled
from cdd_agent.tickets.declared_files import DeclaredFiles
from cdd_agent.tickets.plan import PlanStep


def edited_rules(
    root: Path,
    rules: ProjectRules,
    step: PlanStep,
    declared: DeclaredFiles,
    guidance: str,
    missed: Collection[str],
) -> Mapping[str, str]:
    """Return path → digest of rules files that the step may edit.

    These are its files and those that an attempt missed. Names in the step's text count
    if they have no spaces.
    """
    wanted = {*missed, *declared.paths}
    words = _words_of(step, guidance)
    edited: dict[str, str] = {}
    charsets = Charsets(root)
    for path in sorted(rules.paths):
        content = read_bytes(root / path)
        if content is None:
            continue
        text = decode_file(PurePosixPath(path), content, charsets).shown
        is_named = path in words and without_unfilled(text) == text
        if path in wanted or is_named:
            edited[path] = digest(content) or ""
    return edited


def _words_of(step: PlanStep, guidance: str) -> str:
    notes = [file.note for file in step.files_affected]
    texts = (step.title, step.description, *(step.checks or ()), guidance, *notes)
    return "\n".join(texts)
