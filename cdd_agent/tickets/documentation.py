"""Documentation pages that a project keeps beside its code: where each kind goes, and making one from its template."""

from enum import StrEnum
from pathlib import Path, PurePosixPath

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive
from cdd_agent.files.paths import confine
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.tickets.slugs import file_stem, short
from cdd_agent.tickets.templates import page_template

_TITLE = "{{title}}"
"""Where a template has the page's title."""


class PageKind(StrEnum):
    """The purpose of a documentation page."""

    GUIDE = "guide"
    """How something is done, step by step."""
    FEATURE = "feature"
    """The working of something, and its limits."""


_FOLDERS = {PageKind.GUIDE: PurePosixPath("docs/guides"), PageKind.FEATURE: PurePosixPath("docs/features")}


def create_page(root: Path, kind: str, name: str) -> Path:
    """A new page with the template of its kind. Raises `BadInput` rather than touch one that is there."""
    if kind.lower() not in set(PageKind):
        raise BadInput(f"There is no kind of documentation {short(kind)}.", hint=f"Allowed: {', '.join(PageKind)}.")
    page = PageKind(kind.lower())
    name = name.strip()
    name = name[:-3] if name.lower().endswith(".md") else name
    stem = file_stem(name)
    place = confine(root, (_FOLDERS[page] / f"{stem}.md").as_posix())
    # One that was typed as a file's name gets a title in words.
    title = stem.replace("-", " ").capitalize() if name == stem else sanitize_for_display(" ".join(name.split()))
    template = page_template(root, f"documentation-{page}.md")
    try:
        create_exclusive(root / place, template.replace(_TITLE, title).encode())
    except FileExistsError as error:
        raise BadInput(f"{place} is there already.", hint="Choose another name, or change that page.") from error
    return root / place
