"""Print THIRD_PARTY_LICENSES.md: the licence and size of each dependency.

The packages are those of requirements-run.lock; the facts come from the metadata of the
installed packages. `make licences` calls this program.
"""

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements-run.lock"
HEAD = """\
# Licences of dependencies

`make licences` makes this page from the metadata of the installed packages. cdd itself
is under the MIT licence (`LICENSE`). No dependency is part of the wheel: pip installs
each from its own package, which contains its licence text.

Sizes are of the installed files on Linux, with Python 3.11, without bytecode.

| package | version | licence | MB |
|---|---|---|---|
"""
LONGEST = 60
"""Characters of a licence's name."""


def main() -> None:
    sys.stdout.write(HEAD)
    total = 0
    lock = LOCK.read_text("utf-8")
    for name, version in re.findall(r"(?m)^([\w.-]+)==([\w.]+)", lock):
        try:
            package = distribution(name)
        except PackageNotFoundError:
            sys.stdout.write(f"| {name} | {version} | other systems only | - |\n")
            continue
        size = installed_bytes(package)
        total += size
        licence = find_licence(package)
        sys.stdout.write(f"| {name} | {version} | {licence} | {size / 1e6:.1f} |\n")
    sys.stdout.write(f"| **all** | | | **{total / 1e6:.0f}** |\n")


def find_licence(package: Distribution) -> str:
    """Return the SPDX expression, the classifiers, or a short licence field."""
    metadata = package.metadata
    for expression in metadata.get_all("License-Expression") or []:
        return str(expression)
    names = []
    for classifier in metadata.get_all("Classifier") or []:
        if classifier.startswith("License :: "):
            names.append(classifier.rpartition(" :: ")[2])
    if names:
        return ", ".join(names)
    # the field may be the whole licence text, whose first line is its name
    for text in metadata.get_all("License") or []:
        name = str(text).strip().partition("\n")[0]
        if name and len(name) <= LONGEST:
            return name
    return "see the package"


def installed_bytes(package: Distribution) -> int:
    total = 0
    for file in package.files or []:
        path = Path(str(package.locate_file(file)))
        if path.suffix != ".pyc" and path.is_file():
            total += path.stat().st_size
    return total


if __name__ == "__main__":
    main()
