"""Find git's `core.excludesFile`. Starting git would take longer than most walks."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cdd_agent.files.regular_files import read_small
from cdd_agent.pattern import Pattern
from cdd_agent.settings.user_folders import git_config_folder, home_folder

_LARGEST = 100_000
"""Bytes of a settings file to read."""
_DEEPEST = 5
"""Maximum depth of includes."""
_SECTION = Pattern(r"\s*\[\s*([\w.-]+)[^\]]*\](.*)")
_SETTING = Pattern(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)")
_VALUE = Pattern(r'(?:"(?:[^"\\]|\\.)*"|[^#;"])*')
_PATHS = {("core", "excludesfile"), ("include", "path")}


def find_excludes_file(git: Path) -> Path | None:
    """Return the path of the list, which need not exist. `git` is a repository's git
    folder. Conditional sections (`includeIf`) are not read.
    """
    paths: list[Path] = []
    for settings in (*_list_user_settings(), git / "config"):
        paths += _find_excludes(settings, _DEEPEST)
    if paths:
        return paths[-1]
    folder = git_config_folder()
    return folder / "ignore" if folder else None


def _list_user_settings() -> Iterator[Path]:
    if not os.environ.get("GIT_CONFIG_NOSYSTEM"):
        yield Path(os.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
    if "GIT_CONFIG_GLOBAL" in os.environ:
        yield Path(os.environ["GIT_CONFIG_GLOBAL"])
        return
    if folder := git_config_folder():
        yield folder / "config"
    if home := home_folder():
        yield home / ".gitconfig"


def _find_excludes(settings: Path, depth: int) -> Iterator[Path]:
    for name, value in _read_paths(settings):
        place = _expand(value, settings)
        if place is None:
            continue
        if name == "excludesfile":
            yield place
        elif depth:
            yield from _find_excludes(place, depth - 1)


def _read_paths(settings: Path) -> Iterator[tuple[str, str]]:
    section = ""
    for line in read_small(settings, _LARGEST).splitlines():
        rest = line
        if head := _SECTION.match(line):
            # skips `[includeIf "..."]` and `[core "x"]`
            section = head[1].lower() if '"' not in head[0] else ""
            rest = head[2]
        if setting := _SETTING.match(rest):
            name = setting[1].lower()
            if (section, name) in _PATHS:
                yield name, _unquote(setting[2])


def _unquote(text: str) -> str:
    value = _VALUE.match(text)
    bare = value[0].strip() if value else ""
    return re.sub(r'\\(.)|"', lambda sign: sign[1] or "", bare)


def _expand(text: str, settings: Path) -> Path | None:
    if text.startswith("~/"):
        home = home_folder()
        return home / text[2:] if home else None
    return settings.parent / text if text else None
