"""The user's own folders. No other module looks for the home folder.

A user may have none: a container may run under a user id without a passwd entry and
without `HOME`. Each function then returns None, and the caller saves nothing. An empty
or relative `HOME` or `XDG_*` variable counts as not set. The folders may not exist, and
none is created.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import platformdirs

if sys.platform != "win32":
    import pwd

_PLATFORM_NAME = "cdd-agent"
"""The name of the settings, cache and data folders, as in older versions."""
_XDG_NAME = "cdd"


def home_folder() -> Path | None:
    if sys.platform == "win32":
        try:
            return Path.home()
        except RuntimeError:
            return None
    else:
        home = Path(os.environ.get("HOME", ""))
        if not home.is_absolute():
            try:
                home = Path(pwd.getpwuid(os.getuid()).pw_dir)
            except KeyError:
                return None
        return home if home.is_absolute() else None


def config_folder() -> Path | None:
    """Return the folder of the user's settings for all projects."""
    return _platform_folder(platformdirs.user_config_path)


def data_folder() -> Path | None:
    return _platform_folder(platformdirs.user_data_path)


def cache_folder() -> Path | None:
    return _platform_folder(platformdirs.user_cache_path)


def state_folder() -> Path | None:
    """Return the folder of state outside projects, on every platform
    `$XDG_STATE_HOME/cdd` or `~/.local/state/cdd`.
    """
    return _xdg_folder("XDG_STATE_HOME", ".local/state")


def git_config_folder() -> Path | None:
    """Return the folder of git's settings next to `~/.gitconfig`."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if base.is_absolute():
        return base / "git"
    home = home_folder()
    return home / ".config" / "git" if home else None


def worker_cache_folder() -> Path | None:
    """Return the folder of the projects on a cluster worker, on every platform in
    `$XDG_CACHE_HOME/cdd` or `~/.cache/cdd`.
    """
    folder = _xdg_folder("XDG_CACHE_HOME", ".cache")
    return folder / "cluster" if folder else None


def _platform_folder(find: Callable[[str], Path]) -> Path | None:
    try:
        folder = find(_PLATFORM_NAME)
    # platformdirs knows no home folder
    except RuntimeError:
        return None
    # older versions of platformdirs return `~/.config` then
    return folder if folder.is_absolute() else None


def _xdg_folder(variable: str, in_home: str) -> Path | None:
    base = Path(os.environ.get(variable, ""))
    if base.is_absolute():
        return base / _XDG_NAME
    home = home_folder()
    return home / in_home / _XDG_NAME if home else None
