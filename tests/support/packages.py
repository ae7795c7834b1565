"""Installed packages that add parts to cdd."""

from pathlib import Path


def write_package(folder: Path, group: str, entry: str) -> None:
    """Write the metadata of a package `shrimp-tests` with one entry point."""
    information = folder / "shrimp_tests-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Name: shrimp-tests\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
