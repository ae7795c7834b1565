"""The projects that histories are played in, each made once and copied.

Most have the same files below one of their folders: a repository with a
submodule, an untracked nested clone, an ignored nested clone, links, unusual modes,
names and contents. `submodule` and `plain` have fewer repositories, and are faster.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.engine.histories_tree import Entry, write_entry

SUBMODULE, CLONE, IGNORED_CLONE = "lib/core", "tools/vendor", "cache/clone"
_INNER_FOLDERS = (SUBMODULE, CLONE, IGNORED_CLONE)
_MODULE = ".git/modules/lib/core"
_RULES = b"*.log\n*.tmp\nbuild/\ncache/\n"
_IGNORED_NAMES, _IGNORED_FOLDERS = (".log", ".tmp"), ("build", "cache")
LARGEST = 1 << 20
"""Bytes of an ignored file that undo covers."""


_WORDS = "river stone lamp cloud tiger music paper seven orange north glass winter"


def _lines(name: str, repeat: int = 1, end: str = "\n") -> bytes:
    """Lines of which no two are alike, so that an edit fits one of them."""
    lines = [
        f"{word} {name} {word * 2} {number}{end}"
        for number in range(repeat)
        for word in _WORDS.split()
    ]
    return "".join(lines).encode()


def _file(data: bytes, mode: int = 0o644) -> Entry:
    return Entry(data, mode)


def _link(target: str) -> Entry:
    return Entry(target.encode(), None)


_TRACKED = {
    ".gitignore": _file(_RULES),
    ".gitattributes": _file(b"*.bat text eol=crlf\n"),
    "app.txt": _file(_lines("app")),
    "start.sh": _file(_lines("start"), 0o755),
    "private.txt": _file(_lines("private"), 0o600),
    "docs/two words.txt": _file(_lines("words")),
    "docs/größe.txt": _file(_lines("größe")),
    "win.txt": _file(_lines("win", end="\r\n")),
    "auto.bat": _file(_lines("auto", end="\r\n")),
    "latin.txt": _file(_lines("latin") + b"Gr\xf6\xdfe\n"),
    "data.bin": _file(b"\0\1\2binary\0" * 9),
    "empty.txt": _file(b""),
    "link-file": _link("app.txt"),
    "link-folder": _link("docs"),
    "link-dangling": _link("nowhere.txt"),
}
_UNTRACKED = {
    "notes.txt": _file(_lines("notes")),
    "deep/er/loose.txt": _file(_lines("loose"), 0o640),
    "small.log": _file(_lines("small")),
    "build/out.txt": _file(_lines("out"), 0o600),
    "build/big.log": _file(_lines("big", 3_500)),
}
_INNER = {
    ".gitignore": _file(_RULES),
    "core.txt": _file(_lines("core")),
    "core.sh": _file(_lines("core-sh"), 0o755),
    "sub/core.txt": _file(_lines("sub")),
}
_INNER_UNTRACKED = {
    "fresh.txt": _file(_lines("fresh")),
    "core.tmp": _file(_lines("tmp")),
}
NEW = (
    "new.txt",
    "deep/new/new file.txt",
    "new.sh",
    "docs/neu größe.txt",
    "build/new.txt",
    "new.log",
    f"{SUBMODULE}/new.txt",
    f"{SUBMODULE}/deep/new.txt",
    f"{CLONE}/new.txt",
    f"{IGNORED_CLONE}/new.txt",
)
"""Paths of files that do not exist at first."""


@dataclass(frozen=True)
class Variant:
    """A kind of project. Folders are relative to the folder that is copied."""

    name: str
    root: str = "."
    """The project."""
    main: str = ""
    """The folder of the project, with a slash, that has the files."""
    git_folders: tuple[str, ...] = ()
    """The git directories of the project's repositories."""
    repositories: tuple[str, ...] = ()
    """Their folders, in the same order."""

    @property
    def has_repositories(self) -> bool:
        return bool(self.repositories)


def _inner(main: str, submodule: str) -> dict[str, str]:
    return {
        f"{main}{SUBMODULE}": submodule,
        f"{main}{CLONE}": f"{main}{CLONE}/.git",
        f"{main}{IGNORED_CLONE}": f"{main}{IGNORED_CLONE}/.git",
    }


def _variant(name: str, root: str, main: str, folders: dict[str, str]) -> Variant:
    return Variant(name, root, main, tuple(folders.values()), tuple(folders))


VARIANTS = {
    variant.name: variant
    for variant in (
        _variant("whole", ".", "", {".": ".git", **_inner("", _MODULE)}),
        _variant(
            "subfolder",
            "app",
            "",
            {".": ".git", **_inner("app/", ".git/modules/app/lib/core")},
        ),
        _variant(
            "above",
            ".",
            "one/",
            {"one": "one/.git", **_inner("one/", f"one/{_MODULE}"), "two": "two/.git"},
        ),
        _variant(
            "worktree",
            "tree",
            "",
            {
                "tree": "main/.git/worktrees/tree",
                **_inner("tree/", "main/.git/worktrees/tree/modules/lib/core"),
            },
        ),
        _variant("submodule", ".", "", {".": ".git", SUBMODULE: _MODULE}),
        Variant("plain"),
    )
}


class Projects:
    """Makes copies of the variants at one place, since linked worktrees have absolute
    paths.
    """

    def __init__(self, folder: Path) -> None:
        self.place = folder / "work"
        self._folder = folder
        self._origin = folder / "origin"

    def copy(self, variant: Variant) -> Path:
        """Put a fresh copy at `place`, and return the project's root."""
        template = self._folder / "templates" / variant.name
        if not template.exists():
            self._make(variant)
            for folder in variant.repositories:
                # few files are copied sooner
                _git(self.place / folder, "gc", "--quiet", "--prune=now")
            template.parent.mkdir(exist_ok=True)
            self.place.rename(template)
        self.restore(template)
        return self.place / variant.root

    def save(self) -> Path:
        """Copy all that is at `place` now."""
        saved = self._folder / "saved"
        shutil.rmtree(saved, ignore_errors=True)
        shutil.copytree(self.place, saved, symlinks=True)
        return saved

    def restore(self, saved: Path) -> None:
        # a thread of what was killed may still be at work
        while self.place.exists():
            shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(saved, self.place, symlinks=True)

    def _make(self, variant: Variant) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir(parents=True)
        if not self._origin.exists():
            _write(self._origin, _INNER)
            _commit(self._origin)
        match variant.name:
            case "whole":
                self._make_main(self.place, self.place)
            case "submodule":
                self._make_main(self.place, self.place, inner=(SUBMODULE,))
            case "subfolder":
                _write(self.place, {"outside.txt": _file(_lines("outside"))})
                self._make_main(self.place, self.place / "app")
            case "above":
                self._make_main(self.place / "one", self.place / "one")
                _write(self.place / "two", _INNER)
                _commit(self.place / "two")
                _write(self.place, {"top.txt": _file(_lines("top"))})
                _write(self.place, {"top folder/link": _link("../top.txt")})
            case "worktree":
                main, tree = self.place / "main", self.place / "tree"
                self._make_main(main, main, inner=())
                _git(main, "worktree", "add", "-q", "-b", "side", str(tree))
                self._add_inner(tree, _INNER_FOLDERS)
                _write(tree, _UNTRACKED)
            case _:
                _write(self.place, _TRACKED | _UNTRACKED)

    def _make_main(
        self, repository: Path, folder: Path, inner: Sequence[str] = _INNER_FOLDERS
    ) -> None:
        _write(folder, _TRACKED)
        _commit(repository)
        self._add_inner(folder, inner)
        _write(folder, _UNTRACKED)

    def _add_inner(self, folder: Path, inner: Sequence[str]) -> None:
        if not inner:
            return
        origin = str(self._origin)
        allowed = ("-c", "protocol.file.allow=always")
        _git(folder, *allowed, "submodule", "--quiet", "add", origin, SUBMODULE)
        _git(folder, "commit", "-qm", "submodule")
        _name_user(folder / SUBMODULE)
        for clone in inner[1:]:
            _git(folder, "clone", "-q", origin, clone)
            _name_user(folder / clone)
        for each in inner:
            _write(folder / each, _INNER_UNTRACKED)


def _write(folder: Path, files: dict[str, Entry]) -> None:
    for path, entry in files.items():
        write_entry(folder / path, entry)


def _commit(repository: Path) -> None:
    _git(repository, "init", "-q", "-b", "main")
    _name_user(repository)
    _git(repository, "add", "-A")
    _git(repository, "commit", "-qm", "start")


def _name_user(repository: Path) -> None:
    _git(repository, "config", "user.name", "A")
    _git(repository, "config", "user.email", "a@localhost")


def _git(folder: Path, *words: str) -> None:
    environment = {**os.environ, "GIT_TEMPLATE_DIR": "", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=folder, env=environment, check=True)


def is_ignored(path: str) -> bool:
    *folders, name = path.split("/")
    return name.endswith(_IGNORED_NAMES) or any(
        folder in _IGNORED_FOLDERS for folder in folders
    )


def was_tracked(variant: Variant, path: str) -> bool:
    """True for a file that the main repository or the submodule has at first."""
    short = path.removeprefix(variant.main)
    return short in _TRACKED or short.removeprefix(f"{SUBMODULE}/") in _INNER
