"""Templates of tickets and documentation pages. The project's replace the bundled
ones.
"""

import os
from enum import StrEnum
from importlib import resources
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive, read_bytes
from cdd_agent.files.paths import confine
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.slugs import shorten, to_file_stem
from cdd_agent.tickets.spec import TicketSpec, TicketType
from cdd_agent.tickets.spec_editor import SpecNotWritable, edit_spec
from cdd_agent.values.guarded_yaml import decode, read_mapping

PROJECT_FOLDER = PurePosixPath(".cdd/templates")
_BUNDLED = resources.files("cdd_agent.tickets") / "templates"
_TITLE = "{{title}}"


class PageKind(StrEnum):
    GUIDE = "guide"
    """Step-by-step instructions."""
    FEATURE = "feature"
    """A feature and its limits."""

    @property
    def folder(self) -> str:
        return f"docs/{self}s"


def spec_template(root: Path, kind: TicketType, title: str = "") -> str:
    """Raises `BadInput` if the project's template is no such spec."""
    name = f"{kind}.yaml"
    text = _read_template(root, name)
    source = str(PROJECT_FOLDER / name)
    spec = TicketSpec.from_yaml(text, source, slug=kind)
    if spec.type is not kind:
        entries = read_mapping(text, source, "a spec")
        entry = entries.get("type") or entries["ticket"]
        raise BadInput(
            f"{entry.at(source)}: the template of a {kind} has the type {spec.type}.",
            hint=f"Write `type: {kind}`.",
            refusal=Refusal.TICKET_UNUSABLE,
        )
    if not title:
        return text
    try:
        return edit_spec(text, replace(spec, title=title), source, slug=kind)
    except SpecNotWritable:
        # An older form, which only the user can change.
        return text


def create_page(root: Path, kind: str, name: str) -> Path:
    """Create a documentation page from its template. Raises `BadInput` if it exists."""
    if kind.lower() not in set(PageKind):
        raise BadInput(
            f"Unknown kind of documentation: {shorten(kind)}.",
            hint=f"Allowed: {', '.join(PageKind)}.",
            refusal=Refusal.TICKET_UNUSABLE,
        )
    page = PageKind(kind.lower())
    name = name.strip()
    if name.lower().endswith(".md"):
        name = name[:-3]
    stem = to_file_stem(name)
    path = confine(root, f"{page.folder}/{stem}.md")
    title = sanitize_for_display(" ".join(name.split()))
    if name == stem:
        title = stem.replace("-", " ").capitalize()
    text = _read_template(root, f"documentation-{page}.md").replace(_TITLE, title)
    try:
        create_exclusive(root / path, text.encode())
    except FileExistsError as error:
        raise BadInput(
            f"{path} already exists.",
            hint="Choose another name, or change that page.",
            refusal=Refusal.TICKET_UNUSABLE,
        ) from error
    return root / path


def copy_bundled(root: Path) -> list[Path]:
    """Copy missing templates into the project. Return the new files."""
    copies = []
    for template in sorted(_BUNDLED.iterdir(), key=lambda template: template.name):
        copy = root / PROJECT_FOLDER / template.name
        try:
            create_exclusive(copy, template.read_bytes())
        except FileExistsError:
            continue
        copies.append(copy)
    return copies


def _read_template(root: Path, name: str) -> str:
    path = root / PROJECT_FOLDER / name
    source = str(PROJECT_FOLDER / name)
    if not os.path.lexists(path):
        return (_BUNDLED / name).read_text(encoding="utf-8")
    data = read_bytes(path)
    if data is None:
        raise BadInput(
            f"{source} is a broken link.",
            hint="Fix it, or remove it to use the bundled one.",
            refusal=Refusal.TICKET_UNUSABLE,
        )
    return decode(data, source)
