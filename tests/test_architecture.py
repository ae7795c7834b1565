"""docs/architecture.md names only files, folders and types that exist, and its table of
layers has each package.
"""

import re
from pathlib import Path

import pytest

import cdd_agent

_PACKAGE = Path(cdd_agent.__file__).parent
_ROOT = _PACKAGE.parent
_PAGE = (_ROOT / "docs" / "architecture.md").read_text("utf-8")
_CODE = set(re.findall(r"`([^`\n]+)`", _PAGE))
_FILES = sorted(name for name in _CODE if re.fullmatch(r"[\w/]+\.(py|json|toml)", name))
_FOLDERS = sorted(name for name in _CODE if re.fullmatch(r"(\w+/)+", name))
_TYPES = sorted(
    name.partition(".")[0] for name in _CODE if re.fullmatch(r"[A-Z]\w+(\.\w+)?", name)
)
_NOT_OURS = {"refs/cdd/", "Struct", "Protocol"}
"""A reference of git, and types of msgspec and Python."""
_PATHS = [file.as_posix() for file in (*_ROOT.glob("*.toml"), *_PACKAGE.rglob("*"))]
_SOURCE = "\n".join(file.read_text("utf-8") for file in _PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("name", [*_FILES, *_FOLDERS])
def test_a_named_path_exists(name: str) -> None:
    ending = f"/{name.rstrip('/')}"
    assert name in _NOT_OURS or any(path.endswith(ending) for path in _PATHS)


@pytest.mark.parametrize("name", sorted(set(_TYPES) - _NOT_OURS))
def test_a_named_type_exists(name: str) -> None:
    definition = rf"^\s*(class {name}\b|{name}(: \w+)? = )"
    assert re.search(definition, _SOURCE, re.MULTILINE)


def test_the_layers_are_the_packages() -> None:
    rows = [line.replace(r"\|", ",") for line in _PAGE.splitlines()]
    cells = [row.split("|")[1] for row in rows if row.startswith("| `")]
    layers = set(re.findall(r"`(\w+)`", " ".join(cells)))
    modules = {path.stem for path in _PACKAGE.iterdir()}
    packages = {path.parent.name for path in _PACKAGE.glob("*/__init__.py")}
    assert sorted(layers - modules) == []
    assert sorted(packages - layers) == []


def test_the_picture_has_the_packages() -> None:
    picture = (_ROOT / "docs" / "architecture.svg").read_text("utf-8")
    bands = re.findall(r'fill="#e2e8f0">(.+?)</text>', picture)
    drawn = [name for band in bands for name in band.split(" · ")]
    assert sorted(drawn) == sorted(
        path.parent.name for path in _PACKAGE.glob("*/__init__.py")
    )
