"""Programs that a command starts through a manifest's scripts: `npm test`, `yarn
workspace a test`, `pnpm -r test`, `deno task test`.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct, field

from cdd_agent.errors import BadInput
from cdd_agent.files.globs import Glob
from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section
from cdd_agent.pattern import Pattern
from cdd_agent.process.command_segments import PIECE
from cdd_agent.process.policy import CommandRefused, split
from cdd_agent.values.guarded_yaml import read_node, read_tree
from cdd_agent.verification.runners.launchers import program_name

_DEEPEST = 5
"""Depth of scripts that start scripts."""
_NO_PACKAGES = ("node_modules", ".git", ".venv")
_ASSIGNMENT = Pattern(r"[A-Za-z_]\w*=.*", re.DOTALL)
_SETS_VARIABLES = ("cross-env", "env")


class StartedProgram(Struct, frozen=True):
    words: tuple[str, ...]
    folder: Path
    separators: int | None = 0
    """Number of `--` before words at the command's end, so that they reach the program.
    None if they cannot reach it.
    """


class _Manager(Struct, frozen=True):
    aliases: tuple[str, ...] = ()
    """Subcommands that run the script `test`."""
    plain: tuple[str, ...] = ()
    """Irrelevant options and words before the script's name."""
    everywhere: tuple[str, ...] = ()
    """Options that run the script in each package."""
    selects: tuple[str, ...] = ()
    """Options that take a package name."""
    moves: tuple[str, ...] = ()
    """Options that take a folder."""
    runs: tuple[str, ...] = ("run", "run-script")
    has_short_names: bool = True
    """True if a script's name is a subcommand."""
    has_separator: bool = False
    """True if options may follow the name, up to `--`."""
    manifest: str = "package.json"
    section: str = "scripts"
    packages_file: str = ""


_MANAGERS = {
    "npm": _Manager(
        ("test", "t", "tst"),
        plain=("--if-present", "--silent", "-s", "--include-workspace-root"),
        everywhere=("--workspaces", "-ws"),
        selects=("--workspace", "-w"),
        moves=("--prefix", "-C"),
        has_short_names=False,
        has_separator=True,
    ),
    "pnpm": _Manager(
        ("test", "t", "tst"),
        plain=(
            *("--if-present", "--silent", "-s", "--stream", "--parallel", "--no-bail"),
            *("--aggregate-output", "--sequential", "--no-sort"),
        ),
        everywhere=("-r", "--recursive"),
        selects=("--filter", "-F"),
        moves=("-C", "--dir"),
        packages_file="pnpm-workspace.yaml",
    ),
    "yarn": _Manager(
        ("test",),
        plain=(
            *("--silent", "-s", "foreach", "-A", "--all", "-p", "--parallel", "-v"),
            *("--verbose", "-i", "--interlaced", "-t", "--topological", "-W"),
        ),
        everywhere=("workspaces",),
        selects=("workspace",),
        moves=("--cwd",),
    ),
    "bun": _Manager(plain=("--silent",), selects=("--filter",), moves=("--cwd",)),
    "deno": _Manager(
        runs=("task",), has_short_names=False, manifest="deno.json", section="tasks"
    ),
    "composer": _Manager(
        ("test",),
        plain=("--quiet", "-q"),
        has_separator=True,
        manifest="composer.json",
    ),
}


class _Call(Struct):
    manager: _Manager
    folder: Path
    name: str = ""
    rest: list[str] = field(default_factory=list)
    """Words for the script."""
    is_everywhere: bool = False
    packages: list[str] = field(default_factory=list)
    has_end_of_options: bool = False

    @property
    def separators(self) -> int:
        return int(self.manager.has_separator and not self.has_end_of_options)

    def take_option(self, word: str, following: list[str]) -> bool:
        """Take a word before or after the script's name. False if it is unknown."""
        manager = self.manager
        option, is_joined, value = word.partition("=")
        if option in (*manager.selects, *manager.moves):
            if not is_joined:
                value = following.pop(0) if following else ""
            if option in manager.selects:
                self.packages.append(value)
            else:
                self.folder /= value
            return True
        self.is_everywhere |= word in manager.everywhere
        return word in (*manager.everywhere, *manager.plain)


def find_started(
    argv: Sequence[str], folder: Path, depth: int = 0
) -> tuple[StartedProgram, ...]:
    """Return the programs that a command starts in sequence; the command itself if it
    runs no script. A script that needs more of a shell than `&&` counts as one unknown
    program.
    """
    itself = (StartedProgram(tuple(argv), folder),)
    call = _read_call(argv, folder) if depth < _DEEPEST else None
    if call is None:
        return itself
    started: list[StartedProgram] = []
    for place in _find_packages(call):
        text = _read_script(place, call)
        if text:
            started += _read_chain(text, place, call, depth)
    return tuple(started) or itself


def run_all_packages(argv: Sequence[str]) -> tuple[str, ...]:
    """Make pnpm run all packages even if one fails."""
    is_pnpm = bool(argv) and program_name(argv[0]) == "pnpm"
    if not is_pnpm or {"--bail", "--no-bail"} & {*argv}:
        return tuple(argv)
    return (argv[0], "--no-bail", *argv[1:])


def _read_chain(
    text: str, folder: Path, call: _Call, depth: int
) -> Iterator[StartedProgram]:
    commands = _split_chain(text)
    if not commands:
        yield StartedProgram((text,), folder, None)
    for index, command in enumerate(commands):
        if command[0] == "cd" and len(command) == 2:
            folder = folder / command[1]
            continue
        is_last = index == len(commands) - 1
        words = (*command, *call.rest) if is_last else command
        for inner in find_started(words, folder, depth + 1):
            separators = None
            if is_last and inner.separators is not None:
                separators = inner.separators + call.separators
            yield StartedProgram(inner.words, inner.folder, separators)


def _split_chain(text: str) -> list[tuple[str, ...]]:
    """Split a script at `&&`, without variable assignments. Empty if it needs a shell
    otherwise.
    """
    pieces = [""]
    for piece in PIECE.finditer(text):
        if piece.lastgroup == "operator" and piece[0] == "&&":
            pieces.append("")
        else:
            pieces[-1] += piece[0]
    commands = []
    for command in pieces:
        try:
            words = split(command)
        except CommandRefused:
            return []
        argv = list(words.argv)
        while argv and (argv[0] in _SETS_VARIABLES or _ASSIGNMENT.fullmatch(argv[0])):
            argv.pop(0)
        if words.operator or not argv:
            return []
        commands.append(tuple(argv))
    return commands


def _read_call(argv: Sequence[str], folder: Path) -> _Call | None:
    """None if the command runs no script or has an unknown option."""
    manager = _MANAGERS.get(program_name(argv[0]).lower()) if argv else None
    if manager is None:
        return None
    call = _Call(manager, folder)
    words = list(argv[1:])
    is_run = _read_name(call, words)
    if manager.has_separator and not _read_options(call, words):
        return None
    call.rest += words
    if is_run:
        is_script = True
    elif call.name in manager.aliases:
        call.name = "test"
        is_script = True
    else:
        is_script = manager.has_short_names and bool(_read_script(folder, call))
    return call if is_script and not call.name.startswith("-") else None


def _read_name(call: _Call, words: list[str]) -> bool:
    """True if the words include the subcommand that runs scripts."""
    is_run = False
    while words and not call.name:
        word = words.pop(0)
        if not is_run and word in call.manager.runs:
            is_run = True
        elif not call.take_option(word, words):
            call.name = word
    return is_run


def _read_options(call: _Call, words: list[str]) -> bool:
    """Read words up to `--`. False for an unknown option."""
    while words:
        word = words.pop(0)
        if word == "--":
            call.has_end_of_options = True
            return True
        if call.take_option(word, words):
            continue
        if word.startswith("-"):
            return False
        call.rest.append(word)
    return True


def _read_script(folder: Path, call: _Call) -> str:
    """Return the script's text; empty if there is none."""
    try:
        content = Manifests(folder).content(call.manager.manifest)
    except ManifestUnreadable:
        return ""
    script = section(content, call.manager.section).get(call.name)
    if isinstance(script, Mapping):  # Deno
        script = script.get("command")
    if isinstance(script, list) and len(script) == 1:  # Composer
        script = script[0]
    return script if isinstance(script, str) else ""


def _find_packages(call: _Call) -> list[Path]:
    """Return the folders whose script runs; empty if unknown."""
    if not call.is_everywhere and not call.packages:
        return [call.folder]
    packages = _list_packages(call.folder, call.manager.packages_file)
    if not call.packages:
        return list(packages)
    chosen: dict[Path, None] = {}
    for wanted in call.packages:
        # pnpm's dependents, dependencies, exclusions and commit ranges
        if "..." in wanted or wanted.startswith(("!", "^", "[")):
            return []
        place = call.folder / wanted.strip("{}")
        for folder, name in packages.items():
            if fnmatchcase(name, wanted) or folder.is_relative_to(place):
                chosen[folder] = None
    return list(chosen)


def _list_packages(root: Path, packages_file: str) -> dict[Path, str]:
    """Folder → package name."""
    included, excluded = list[Glob](), list[Glob]()
    for pattern in _read_patterns(root, packages_file):
        globs = excluded if pattern.startswith("!") else included
        with contextlib.suppress(BadInput):
            globs.append(Glob(root, pattern.removeprefix("!").rstrip("/")))
    packages: dict[Path, str] = {}
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _NO_PACKAGES)
        folder = Path(place)
        path = folder.relative_to(root).as_posix()
        is_excluded = any(glob.matches(path) for glob in excluded)
        is_included = any(glob.matches(path) for glob in included)
        if "package.json" not in files or is_excluded or not is_included:
            continue
        with contextlib.suppress(ManifestUnreadable):
            content = Manifests(folder).content("package.json")
            packages[folder] = str(content.get("name", ""))
    return packages


def _read_patterns(root: Path, packages_file: str) -> list[str]:
    manifests = Manifests(root)
    patterns: object = None
    try:
        if not packages_file:
            patterns = manifests.content("package.json").get("workspaces")
        else:
            node = read_node(manifests.text(packages_file), packages_file)
            patterns = read_tree(node) if node else None
    except (ManifestUnreadable, BadInput):
        return []
    if isinstance(patterns, Mapping):
        patterns = patterns.get("packages")
    if not isinstance(patterns, list):
        return []
    return [pattern for pattern in patterns if isinstance(pattern, str) and pattern]
