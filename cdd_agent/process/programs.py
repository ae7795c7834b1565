"""Look up programs on the PATH of this process."""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

IS_WINDOWS = os.name == "nt"


def find_program(name: str, first: Sequence[Path] = ()) -> Path | None:
    """Return the path of a program in `first` or on the PATH of this process.

    Relative entries are ignored: `.` would mean another program in each folder.
    """
    if Path(name).name != name:
        return None
    endings = [""]
    if IS_WINDOWS:
        suffixes = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")
        endings = [""] if Path(name).suffix.upper() in suffixes else suffixes
    for folder in (*first, *_absolute(tuple(os.get_exec_path()))):
        for ending in endings:
            file = folder / f"{name}{ending}"
            if is_program(file):
                return file
    return None


def is_program(file: Path) -> bool:
    try:
        return file.is_file() and os.access(file, os.X_OK)
    except (OSError, ValueError):  # a name that no disk can hold
        return False


@lru_cache(8)
def _absolute(path: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(folder for folder in map(Path, path) if folder.is_absolute())
