"""The files of a project's rules that a step's prompt shows as files to edit."""

from collections.abc import Collection, Mapping
from pathlib import Path

from cdd_agent.files.atomic import digest, read_bytes
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
    """Return the digests of the rules files that the step may edit, by path.

    These are the files of the step and those that an attempt missed. A file that only
    the words of the step name is one of them if it has no blanks.
    """
    wanted = {*missed, *declared.paths}
    words = _words_of(step, guidance)
    edited: dict[str, str] = {}
    for path in sorted(rules.paths):
        is_named = path in words and _is_filled(root / path)
        content = read_bytes(root / path)
        if content is not None and (path in wanted or is_named):
            edited[path] = digest(content) or ""
    return edited


def _words_of(step: PlanStep, guidance: str) -> str:
    notes = [file.note for file in step.files_affected]
    texts = (step.title, step.description, *(step.checks or ()), guidance, *notes)
    return "\n".join(texts)


def _is_filled(file: Path) -> bool:
    text = file.read_text(encoding="utf-8", errors="replace")
    return without_unfilled(text) == text
