"""Packages that the manifests of a Python project declare, with the places of the
declarations. Nothing is resolved, and no tool runs.
"""

import configparser
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from cdd_agent.files.charsets import Charsets
from cdd_agent.files.manifests import (
    Manifests,
    ManifestUnreadable,
    parse_manifest,
    section,
)
from cdd_agent.files.text import decode_file
from cdd_agent.pattern import Pattern

_NAME = Pattern(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
_REQUIREMENT = Pattern(
    rf"\s*({_NAME.pattern})\s*(?:\[[^\]]*\])?\s*(?:$|[<>=!~;@#(,].*)"
)
_STRING = Pattern(r"""["']([^"'\n]{1,100})["']""")
_LIST_ITEM = Pattern(r"^[ \t]*-[ \t]+[\"']?([^\s\"'#:]+)", re.MULTILINE)
_TABLES = (
    ("project", "optional-dependencies"),
    ("dependency-groups",),
    ("tool", "poetry", "dependencies"),
    ("tool", "poetry", "dev-dependencies"),
    ("tool", "poetry", "group"),
    ("tool", "pdm", "dev-dependencies"),
    ("tool", "uv", "dev-dependencies"),
    ("tool", "rye", "dev-dependencies"),
    ("tool", "hatch", "envs"),
    ("tool", "pixi"),
    ("tool", "tox"),
)
"""Tables of pyproject.toml that contain packages at any depth, as list items or
keys.
"""


def declared_packages(folder: Path) -> dict[str, str]:
    """Return the normalised names of the packages that a folder's manifests declare,
    with their first places. Raises `ManifestUnreadable`.
    """
    packages: dict[str, str] = {}
    for name, place in _declarations(Manifests(folder)):
        packages.setdefault(normalise(name), place)
    return packages


def normalise(name: str) -> str:
    """Return a package name in the form that indexes compare."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _declarations(manifests: Manifests) -> Iterator[tuple[str, str]]:
    yield from _in_pyproject(manifests)
    charsets = Charsets(manifests.root)
    for patterns, read in _READERS:
        for pattern in patterns:
            for file in sorted(manifests.root.glob(pattern)):
                place = file.relative_to(manifests.root).as_posix()
                data = manifests.data(place)
                # PowerShell writes requirements in UTF-16, which pip reads
                text = decode_file(PurePosixPath(place), data, charsets).shown
                try:
                    packages = list(read(text))
                except ManifestUnreadable as error:
                    raise ManifestUnreadable(place, error.why) from error
                for package in packages:
                    yield package, place


def _in_pyproject(manifests: Manifests) -> Iterator[tuple[str, str]]:
    content = manifests.content("pyproject.toml")
    for package in _names_in(section(content, "project").get("dependencies")):
        yield package, "pyproject.toml [project]"
    for keys in _TABLES:
        table: object = section(content, *keys[:-1]).get(keys[-1])
        for package in _names_in(table):
            yield package, f"pyproject.toml [{'.'.join(keys)}]"


def _names_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from _requirement(value)
    elif isinstance(value, list):
        for item in value:
            yield from _names_in(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            # `pytest = "^8"`, and a group of packages: `dev = ["pytest"]`
            if not isinstance(inner, list):
                yield from _requirement(str(key))
            yield from _names_in(inner) if not isinstance(inner, str) else ()


def _in_toml(text: str) -> Iterator[str]:
    yield from _names_in(parse_manifest("x.toml", text))


def _in_ini(text: str) -> Iterator[str]:
    reader = configparser.RawConfigParser(strict=False)
    with suppress(configparser.Error):
        reader.read_string(text)
    for title in reader.sections():
        for key, value in reader.items(title):
            is_list = "require" in key or key == "deps" or "extras_require" in title
            for line in value.splitlines() if is_list else ():
                # tox: `py311: pytest`
                yield from _requirement(line.rpartition(": ")[2])


def _in_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from _requirement(line)


def _in_code(text: str) -> Iterator[str]:
    for string in _STRING.findall(text):
        yield from _requirement(string)


def _in_yaml(text: str) -> Iterator[str]:
    for item in _LIST_ITEM.findall(text):
        yield from _requirement(item.rpartition("::")[2])


def _requirement(text: str) -> Iterator[str]:
    match = _REQUIREMENT.fullmatch(text)
    if match:
        yield match[1]


_READERS: tuple[tuple[tuple[str, ...], Callable[[str], Iterator[str]]], ...] = (
    (("tox.toml", "hatch.toml", "pixi.toml", "Pipfile"), _in_toml),
    (("setup.cfg", "tox.ini"), _in_ini),
    (("*requirement*.txt", "*requirement*.in"), _in_lines),
    (("requirements/*.txt", "requirements/*.in"), _in_lines),
    (("setup.py", "noxfile.py"), _in_code),
    (("environment.yml", "environment.yaml"), _in_yaml),
)
"""Patterns of manifests other than pyproject.toml, with their readers."""
