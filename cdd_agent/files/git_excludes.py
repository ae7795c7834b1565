"""The user's own list of ignored files for all repositories: `core.excludesFile`.

Git's settings are read here without git: the walk asks for the list in each
repository, and a process would take longer than most walks.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cdd_agent.files.regular_files import read_small
from cdd_agent.user_folders import git_config_folder, home_folder

_LARGEST = 100_000
"""Bytes of a settings file that are read."""
_DEEPEST = 5
"""Files that include each other."""
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)[^\]]*\](.*)")
_SETTING = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)")
_VALUE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^#;"])*')
_PATHS = {("core", "excludesfile"), ("include", "path")}


def find_excludes_file(git: Path) -> Path | None:
    """Return the path of the list, which need not exist. `git` is the folder of the
    repository's settings. Sections with conditions (`includeIf`) are not read.
    """
    chosen: Path | None = None
    for settings in (*_settings_of_the_user(), git / "config"):
        for value in _excludes_files(settings, _DEEPEST):
            chosen = value
    if chosen is None and (folder := git_config_folder()):
        chosen = folder / "ignore"
    return chosen


def _settings_of_the_user() -> Iterator[Path]:
    """Yield git's settings of this machine and of the user. The last one wins."""
    if not os.environ.get("GIT_CONFIG_NOSYSTEM"):
        yield Path(os.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
    if chosen := os.environ.get("GIT_CONFIG_GLOBAL"):
        yield Path(chosen)
        return
    if folder := git_config_folder():
        yield folder / "config"
    if home := home_folder():
        yield home / ".gitconfig"


def _excludes_files(settings: Path, depth: int) -> Iterator[Path]:
    for name, value in _read_paths(settings):
        place = _expand(value, settings)
        if place is None:
            continue
        if name == "excludesfile":
            yield place
        elif depth:
            yield from _excludes_files(place, depth - 1)


def _read_paths(settings: Path) -> Iterator[tuple[str, str]]:
    """Yield the settings that are about files, in the order of the text."""
    section = ""
    for line in read_small(settings, _LARGEST).splitlines():
        rest = line
        if head := _SECTION.match(line):
            # `[includeIf "..."]` and `[core "x"]` are other sections
            section = head[1].lower() if '"' not in head[0] else ""
            rest = head[2]
        if setting := _SETTING.match(rest):
            name = setting[1].lower()
            if (section, name) in _PATHS:
                yield name, _unquote(setting[2])


def _unquote(text: str) -> str:
    """Return a value without its comment and quotes."""
    value = _VALUE.match(text)
    bare = value[0].strip() if value else ""
    return re.sub(r'\\(.)|"', lambda found: found[1] or "", bare)


def _expand(text: str, settings: Path) -> Path | None:
    if text.startswith("~/"):
        home = home_folder()
        return home / text[2:] if home else None
    return settings.parent / text if text else None
