"""The templates of new tickets and documentation pages: the project's own, else the bundled ones."""

import os
from importlib import resources
from pathlib import Path, PurePosixPath

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import create_exclusive, read_bytes
from cdd_agent.guarded_yaml import decoded, read_mapping
from cdd_agent.tickets.spec import TicketSpec, TicketType

FOLDER = PurePosixPath(".cdd/templates")
"""Where a project keeps its own; one is used in place of the bundled one of the same name."""

_BUNDLED = resources.files("cdd_agent.tickets") / "templates"


def spec_template(root: Path, kind: TicketType) -> str:
    """The spec.yaml of a new ticket. Raises `BadInput`, with file and line, for an own one that is no such spec."""
    name = f"{kind}.yaml"
    own = _own(root, name)
    if own is None:
        return _bundled(name)
    source = str(FOLDER / name)
    spec = TicketSpec.from_yaml(own, source, slug=kind)
    if spec.type is not kind:
        entries = read_mapping(own, source, "a spec")
        place = entries.get("type") or entries["ticket"]
        raise BadInput(
            f"{place.at(source)}: the template of a {kind} has the type {spec.type}.", hint=f"Write `type: {kind}`."
        )
    return own


def page_template(root: Path, name: str) -> str:
    """A documentation page's template. Raises `BadInput` for an own one that cannot be read."""
    own = _own(root, name)
    return _bundled(name) if own is None else own


def copy_bundled(root: Path) -> list[Path]:
    """Copy the bundled templates into the project, to be changed there; those that it has stay as they are."""
    made = []
    for template in sorted(_BUNDLED.iterdir(), key=lambda template: template.name):
        copy = root / FOLDER / template.name
        try:
            create_exclusive(copy, template.read_bytes())
        except FileExistsError:
            continue
        made.append(copy)
    return made


def _own(root: Path, name: str) -> str | None:
    path, source = root / FOLDER / name, str(FOLDER / name)
    if not os.path.lexists(path):
        return None
    data = read_bytes(path)
    if data is None:
        raise BadInput(f"{source} is a link that leads nowhere.", hint="Fix it, or remove it to use the bundled one.")
    return decoded(data, source)


def _bundled(name: str) -> str:
    return (_BUNDLED / name).read_text(encoding="utf-8")
