"""Measure a walk through a project, against git and the bare file system: `python -m
benchmarks.walking`.

The tree has 20,000 files, a .gitignore of usual length, and an ignored folder of 5,000
more files.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cdd_agent.files.walk import Kind, walk

FOLDERS, FILES = 200, 100
IGNORED = 5_000
ROUNDS = 5
GITIGNORE = """\
# Python
__pycache__/
*.py[cod]
*.so
build/
dist/
*.egg-info/
.venv/
.mypy_cache/
.pytest_cache/
.coverage
htmlcov/
# others
node_modules/
*.log
*.tmp
.DS_Store
/docs/_build/
/data/**/*.bin
!keep.log
"""


def make_tree(root: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    (root / ".gitignore").write_text(GITIGNORE)
    for folder in range(FOLDERS):
        place = root / f"package_{folder % 20}" / f"part_{folder}"
        place.mkdir(parents=True)
        for number in range(FILES):
            (place / f"module_{number}.py").touch()
    (root / "node_modules").mkdir()
    for number in range(IGNORED):
        (root / "node_modules" / f"{number}.js").touch()


def seconds(work: Callable[[], int]) -> tuple[float, int]:
    """Return the best of a few rounds, so that a busy machine does not count, and the
    number of files.
    """
    best, count = float("inf"), 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        count = work()
        best = min(best, time.perf_counter() - start)
    return best, count


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_tree(root)
        listing = [
            "git",
            "ls-files",
            "-z",
            "--others",
            "--cached",
            "--exclude-standard",
        ]

        def by_git() -> int:
            return subprocess.run(
                listing, cwd=root, capture_output=True, check=True
            ).stdout.count(b"\0")

        ours, count = seconds(
            lambda: sum(entry.kind is Kind.FILE for entry in walk(root))
        )
        git, listed = seconds(by_git)
        plain, all_files = seconds(
            lambda: sum(len(files) for _, _, files in os.walk(root))
        )
        print(f"{count} files of {all_files}; git lists {listed}")
        print(f"git ls-files: {git:.3f} s")
        print(f"os.walk:      {plain:.3f} s (ignored files too)")
        print(
            f"walk:         {ours:.3f} s, {ours / git:.1f} times git,"
            f" {ours / plain:.1f} times os.walk"
        )


if __name__ == "__main__":
    main()
