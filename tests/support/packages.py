"""Packages that add parts to cdd, and the examples of docs/how-to/extend.md."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/how-to/extend.md"
LONGEST_EXAMPLE = 20


def write_package(
    folder: Path, group: str, entry: str, name: str = "shrimp-tests"
) -> None:
    """Write the metadata of a package with one entry point."""
    information = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    (information / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")


def read_example(heading: str) -> str:
    """Return the code below this heading of the page."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.+?)```", section, re.DOTALL)
    assert isinstance(code, str)
    assert len([line for line in code.splitlines() if line]) <= LONGEST_EXAMPLE
    return code
