"""A project's rules for agents: the files in which people write down how work is to be
done here.
"""

import os
from pathlib import Path

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.files.read import read_source
from cdd_agent.project.unfilled import without_unfilled
from cdd_agent.sanitize import sanitize_for_display

NAMES = ("AGENTS.md", "CLAUDE.md", "CDD.md")
LONGEST = 20_000
"""Characters of one file that are used."""
LONGEST_TOGETHER = 40_000
RULES_FOR_AGENTS = "the project's rules for agents"
"""Their name where a prompt had no room for them."""


class ProjectRules(Struct, frozen=True):
    """The texts of the files, the nearest first, and what has to be said of how they
    were read.
    """

    text: str = ""
    notes: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        """As a part of a prompt; empty where there are none."""
        return f"# The project's rules\n\n{self.text}" if self.text else ""


def project_rules(root: Path) -> ProjectRules:
    """The rules at the project's root, then those of the folders around it, up to the
    top of its git repository.

    A file that says the same as one before it (they are often links to each other) is
    there once. What `cdd init` left for people to fill in is not there while nobody
    has.
    """
    parts: list[str] = []
    notes: list[str] = []
    seen: set[str] = set()
    room = LONGEST_TOGETHER
    around = (root.resolve(), *root.resolve().parents)
    top = next(
        (depth for depth, folder in enumerate(around) if (folder / ".git").exists()), 0
    )
    for depth, folder in enumerate(around[: top + 1]):
        for name in NAMES:
            path = f"{'../' * depth}{name}"
            if not os.path.lexists(folder / name):
                continue
            try:
                source = read_source(folder, name, limit=LONGEST)
            except CddError as error:
                notes.append(f"The rules in {path} are left out: {error.message}.")
                continue
            text = without_unfilled(source.text.strip())
            if source.is_folder or not text or text in seen:
                continue
            seen.add(text)
            if not room:
                notes.append(
                    f"The rules in {path} are left out: the others have"
                    f" {LONGEST_TOGETHER:,} characters."
                )
                continue
            if source.cut or len(text) > room:
                text = text[:room]
                notes.append(
                    f"The rules in {path} are cut: only the first {len(text):,}"
                    " characters are used."
                )
            room -= len(text)
            parts.append(f"## {sanitize_for_display(path)}\n\n{text}")
    return ProjectRules("\n\n".join(parts), tuple(notes))
