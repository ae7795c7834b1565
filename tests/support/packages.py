"""Installed packages that add parts to cdd."""

from pathlib import Path


def write_package(
    folder: Path, group: str, entry: str, name: str = "shrimp-tests"
) -> None:
    """Write the metadata of a package with one entry point."""
    information = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    (information / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
