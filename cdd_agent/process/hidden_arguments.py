"""Find hidden files that a command could show, judged by its text.

Every part of a word that names a hidden file counts, whatever the option around it.
Programs that print only names may run. For programs that read whole folders, the files
in the folder count.

A program of the project can still read anything: only a sandbox could prevent that.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.globs import PatternRefused, expand
from cdd_agent.files.hidden_from_models import BY_NAME, HiddenFiles, is_secret_path
from cdd_agent.pattern import Pattern
from cdd_agent.process.command_segments import (
    SHELLS,
    Segment,
    Word,
    split_nested,
    split_segments,
)
from cdd_agent.settings.user_folders import home_folder

_NAMES_ONLY = frozenset(
    (
        *("ls", "pwd", "echo", "printf", "wc", "which", "type", "test", "["),
        *("true", "false", "cd", "mkdir", "touch", "chmod", "chown", "rm", "rmdir"),
        *("du", "df", "stat", "basename", "dirname", "realpath", "readlink"),
        *("tree", "sleep", "exit", "md5sum", "sha1sum"),
        *("sha256sum", "sha512sum"),
    )
)
"""Programs that do not print the content of the files they name."""
_READS_NAMES = Pattern(r"--f.*")
"""Options that make some of them print lines of a file: `wc --files0-from .env`."""
_NAMES_ONLY_OF_GIT = frozenset(
    (
        *("add", "branch", "check-ignore", "checkout", "clean", "commit", "fetch"),
        *("init", "ls-files", "ls-tree", "merge", "pull", "push", "remote"),
        *("reset", "restore", "rev-list", "rev-parse", "rm", "shortlog", "status"),
        *("switch", "tag", "update-index", "version"),
    )
)
_SEARCHES = {
    "grep": "-lsZ",
    "egrep": "-lsZ",
    "fgrep": "-lsZ",
    "rg": "-l0",
    "ag": "-l",
    "ack": "-l",
}
"""Programs that search files, with the option that lists matching files."""
_READ_THEIR_FOLDER = frozenset(("rg", "ag", "ack"))
"""Programs that search the current folder by default."""
_QUIET = Pattern(
    r"-[abEFGHhiInoPrRsTUvVwxyzZ]*[qlLc][A-Za-z]*|--(?:quiet|silent|count|files-with.*)"
)
_QUIET_ELSEWHERE = Pattern(r"-[qlc]|--(?:quiet|count|files-with.*)")
"""Options with which a search prints no lines: for `grep`, and for other programs."""
_FLAG = Pattern(
    r"-[EFGHhiInoPRrsvwxyzZ]+|--(?:recursive|ignore-case|no-messages|line-number"
    r"|fixed-strings|extended-regexp|word-regexp|hidden|color|colour)|--[\w-]+=.*"
)
"""Search options without a separate value."""
_FOLDER_READERS = frozenset(
    (
        *("cpio", "tar", "bsdtar", "zip", "7z", "rsync", "rgrep", "ugrep", "zgrep"),
        *("xargs", "parallel"),
    )
)
"""Programs that read all files of a folder."""
_RECURSIVE = frozenset(("cp", "diff", "scp", *_SEARCHES))
"""Programs that read all files of a folder with an option."""
_RECURSIVE_OPTION = Pattern(r"-[A-Za-z]*[rRad][A-Za-z]*|--(?:rec|deref|arch|dir).*")
_FIND_RUNS = frozenset(
    ("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch")
)
_FIND_NAMES = frozenset(("-name", "-iname", "-path", "-ipath", "-wholename"))
_PATCHES_OF_GIT = frozenset(("diff", "show", "grep", "whatchanged", "range-diff"))
_COPIES_OF_GIT = frozenset(("archive", "format-patch", "fast-export", "bundle"))
"""Commands of git that copy files, perhaps to names that are not hidden."""
_PATCH_OPTION = Pattern(
    r"-p|-u|--patc.*|-U\d*|--uni.*|-L.*|-c|--cc|--dd|-m|-G.*|--bin.*|--reme.*"
)
_OBJECTS_OF_GIT = frozenset(("cat-file", "unpack-file", "difftool", "checkout-index"))
"""Commands of git that show or copy any object, whatever its name."""
_SHOWS_OBJECTS = Pattern(r".*%\(raw.*|.*\balias\..*|commit\.verbose.*", re.DOTALL)
"""Arguments with which other commands show objects or become another command."""
_CHANGES_SHOWN = {
    "status": Pattern(r"-[a-z]*v.*|--verb.*"),
    "commit": Pattern(r"-[a-zA-Z]*[vp].*|--(?:verb|pat|inter).*"),
    **dict.fromkeys(
        ("add", "checkout", "reset", "restore", "stash"),
        Pattern(r"-[a-zA-Z]*[pie].*|--(?:pat|inter|edit).*"),
    ),
}
"""Options with which commands of git print changes of tracked files."""
_WITH_VALUE_OF_GIT = ("-S", "-G", "-O", "-l", "-n", "--diff-filter", "--format")
_PLACES_OF_GIT = (
    *("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"),
    *("--attr-source", "--super-prefix"),
)
"""Options before a command of git that take the next word."""
_NO_PATCH = Pattern(
    r"--(?:stat|name-only|name-status|shortstat|numstat|summary|no-patch|quiet"
    r"|dirstat)(?:=.*)?|-[sq]"
)
_PATTERN_OPTION = Pattern(r"-[A-Za-z]*[ef].*|--(?:reg|fil|match).*")
_TARGET = Pattern(r"-[A-Za-z]*[tr].*|-[A-Za-z]*[RTa].*|--.*")
"""Options of `cp` with which its last word may be more than the target."""
_ALL_ENTRIES = Pattern(r"-[A-Za-z]*[aAf][A-Za-z]*|--al.*|--almost-all")
"""Options with which `ls` lists dotfiles."""
_LISTERS = ("ls", "find", "fd", "git")
"""Programs whose output may be file names for another program."""
_MOST_COMMANDS = 500
_MOST_FOLDERS = 30
_MOST_LISTERS = 20
"""Maximum number of commands in one text whose folders are searched."""
_LISTED = "it could show hidden files"
_ANY_OBJECT = "it can show any file of the history"
_PARTS = Pattern(r"[\s'\"`()<>|;&=,:@{}\[\]]+")
_MOST_PARTS = 300
_MOST_ENTRIES = 20_000
_INSTALLED = frozenset(
    (".git", "node_modules", ".venv", "venv", "site-packages", ".tox", "__pycache__")
)
"""Folders without files of the project."""
PRINTERS = frozenset(
    (
        *("cat", "tac", "nl", "head", "tail", "less", "more", "bat", "sed", "awk"),
        *("cut", "sort", "uniq", "paste", "tr", "fold", "column", "strings", "tee"),
        *("xxd", "od", "hexdump", "base64", "base32", "diff", "cmp", "git", "jq", "yq"),
        *_SEARCHES,
    )
)
"""Programs that print the content of the files they name."""


class HiddenUse(Struct, frozen=True):
    program: str
    reason: str
    listings: tuple[tuple[str, ...], ...] = ()
    """Commands that list the files it would show. The reason holds if a listed file is
    hidden, or if a listing fails.
    """


def find_hidden_uses(
    text: str, root: Path, folder: Path, argv: Sequence[str] = ()
) -> list[HiddenUse]:
    """Return the reasons why a command could show hidden files of the project or of the
    home folder. It runs in `folder`: as `argv` without a shell, else as `text` in one.
    """
    commands = _Commands(root.resolve(), folder)
    if argv:
        words = [Word(word, word, word) for word in argv]
        started = Segment(words)
        segments = [started, *split_nested(started)]
    else:
        segments = split_segments(text)
        segments += _scripts_of_pipes(segments)
    if len(segments) > _MOST_COMMANDS:
        return [HiddenUse("", "it has too many commands to check what they show")]
    commands.enter_folders(segments)
    listings = commands.find_listings(segments)
    earlier: list[Segment] = []
    uses: list[HiddenUse] = []
    for segment in segments:
        use = commands.find_use(segment, earlier)
        use = use or commands.find_use_of_listing(segment, listings)
        if use:
            uses.append(use)
        earlier = [*earlier, segment] if segment.is_piped_on else []
    return uses


def list_hidden(names: str, root: Path, folder: Path) -> str:
    """Return the reason for the first hidden file in a listing, or an empty text."""
    hidden = HiddenFiles(root)
    for name in re.split(r"[\0\n]", names):
        for place in (folder / name, root / name):
            path = os.path.relpath(place, root)
            if name and (why := hidden.why(path)):
                return f"{name} is hidden from models: {why}"
    return ""


class _Listing(Struct, frozen=True):
    is_substituted: bool
    why: str
    listings: tuple[tuple[str, ...], ...]
    """As in `HiddenUse`."""


class _Commands(Struct, dict=True):
    root: Path
    folder: Path

    @cached_property
    def hidden(self) -> HiddenFiles:
        return HiddenFiles(self.root)

    @cached_property
    def folders(self) -> list[Path]:
        """Folders that words may be relative to."""
        return [self.folder]

    def enter_folders(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            for word in segment.words:
                for part in _parts(word.text):
                    place = self.folder / part
                    if (
                        len(self.folders) < _MOST_FOLDERS
                        and _is_folder(place)
                        and place not in self.folders
                    ):
                        self.folders.append(place)

    def find_use(
        self, segment: Segment, earlier: Sequence[Segment]
    ) -> HiddenUse | None:
        program = segment.program
        if why := self._find_why(segment.read_from):
            return HiddenUse(program, why)
        if program == "git":
            return self._find_use_of_git(segment)
        texts = [word.text for word in segment.arguments]
        if program in _SEARCHES and _is_quiet(program, texts):
            return None
        arguments = _select_read(segment)
        if why := self._find_why((*segment.words[: segment.start + 1], *arguments)):
            return HiddenUse(program, why)
        return self._find_use_of_folders(segment, arguments, earlier)

    def find_listings(self, segments: Sequence[Segment]) -> list[_Listing]:
        listing_uses = []
        listers = (each for each in segments if each.program in _LISTERS)
        for lister in islice(listers, _MOST_LISTERS):
            words = [word.text for word in lister.arguments]
            listings: tuple[tuple[str, ...], ...] = ()
            why = ""
            if lister.program == "git":
                listings = (("git", *words, "-z"),) if "ls-files" in words else ()
            elif lister.program != "ls" or any(map(_ALL_ENTRIES.fullmatch, words)):
                places = self._find_folders(lister.arguments)
                names = _names_of_find([lister])
                why = self._why_of_folders(places or [self.folder], names)
            if why or listings:
                listing_uses.append(
                    _Listing(lister.is_substituted, why or _LISTED, listings)
                )
        return listing_uses

    def find_use_of_listing(
        self, segment: Segment, listings: Sequence[_Listing]
    ) -> HiddenUse | None:
        """Return the use of files that another command lists: `cat $(ls -a)`."""
        program = segment.program
        runs_on = program in ("xargs", "parallel")
        if runs_on and {word.text for word in segment.arguments} & _NAMES_ONLY:
            return None
        if segment.is_substituted or program in {*_NAMES_ONLY, "for", "while", "in"}:
            return None
        gets_any = runs_on or any(
            word.is_variable and not word.without_variables.strip("/")
            for word in segment.arguments
        )
        for listing in listings:
            if gets_any or listing.is_substituted:
                return HiddenUse(program, listing.why, listing.listings)
        return None

    def _find_use_of_folders(
        self, segment: Segment, arguments: list[Word], earlier: Sequence[Segment]
    ) -> HiddenUse | None:
        program = segment.program
        places = self._find_folders(arguments)
        if not _reads_folders(segment, has_folders=bool(places)):
            return None
        if program in ("xargs", "parallel"):
            if _gets_no_hidden_names(arguments, earlier):
                return None
            places = self._find_folders(
                word for other in earlier for word in other.arguments
            )
        names = _names_of_find([*earlier, segment])
        why = self._why_of_folders(places or [self.folder], names)
        if not why:
            return None
        if program in _SEARCHES and not any(map(_may_become_names, arguments)):
            words = [word.text for word in segment.arguments]
            name = segment.words[segment.start].text
            return HiddenUse(program, why, ((name, _SEARCHES[program], *words),))
        return HiddenUse(program, why)

    def _find_use_of_git(self, segment: Segment) -> HiddenUse | None:
        words = [word.text for word in segment.arguments]
        place = _place_of_subcommand(words)
        if why := self._find_why(segment.arguments[:place]):
            return HiddenUse("git", why)
        if any(map(_SHOWS_OBJECTS.fullmatch, words)):
            return HiddenUse("git", _ANY_OBJECT)
        if place == len(words):
            return None
        options, name, rest = tuple(words[:place]), words[place], words[place + 1 :]
        if name in _CHANGES_SHOWN and any(map(_CHANGES_SHOWN[name].fullmatch, rest)):
            return self._use_of_listing(segment, (*options, "ls-files", "-z"))
        if name in _NAMES_ONLY_OF_GIT:
            return None
        if why := self._find_why_of_named(name, segment.arguments[place + 1 :]):
            return HiddenUse("git", why)
        return self._find_use_of_contents(segment, options, name, rest)

    def _find_why_of_named(self, name: str, named: list[Word]) -> str:
        """Return the reason for a hidden file, on disk or in a commit, that the
        arguments of a git command name.
        """
        if name == "grep":
            named = _without_pattern(named)
        for word in named:
            if why := self._why_of_word(word) or self._why_in_history(word.text):
                return why
        return ""

    def _find_use_of_contents(
        self, segment: Segment, options: tuple[str, ...], name: str, rest: Sequence[str]
    ) -> HiddenUse | None:
        if name in _OBJECTS_OF_GIT and not any(":" in word for word in rest):
            return HiddenUse("git", _ANY_OBJECT)
        if _prints_files(name, rest):
            commits = [
                (*options, "rev-parse", "--verify", f"{word}^{{commit}}")
                for word in self._objects_in(name, rest)
            ]
            listing = (*options, *_list_instead(name, rest))
            return self._use_of_listing(segment, listing, *commits)
        return self._find_use_of_all_files() if name in _COPIES_OF_GIT else None

    def _find_use_of_all_files(self) -> HiddenUse | None:
        why = self._why_of_folders([self.folder], ())
        return HiddenUse("git", why) if why else None

    def _use_of_listing(
        self, segment: Segment, *listings: tuple[str, ...]
    ) -> HiddenUse | None:
        if any(word.is_pattern or word.is_variable for word in segment.arguments):
            return self._find_use_of_all_files()
        commands = tuple(("git", *listing) for listing in listings)
        return HiddenUse("git", _LISTED, commands)

    def _objects_in(self, name: str, rest: Sequence[str]) -> Iterator[str]:
        if name not in ("show", "diff"):
            return
        for before, word in pairwise(("", *rest)):
            if word == "--":
                return
            is_value = before in _WITH_VALUE_OF_GIT
            if word.startswith("-") or is_value or ".." in word or ":" in word:
                continue
            if not (self.folder / word).exists():
                yield word

    def _why_in_history(self, word: str) -> str:
        _, colon, path = word.rpartition(":")
        if not colon:
            return ""
        why = BY_NAME if is_secret_path(path) else self.hidden.why(path)
        return _reason(path, why) if why else ""

    def _find_why(self, words: Iterable[Word]) -> str:
        return next(filter(None, map(self._why_of_word, words)), "")

    def _why_of_word(self, word: Word) -> str:
        texts = _parts(word.text)
        if word.is_pattern or word.is_variable:
            texts += self._matches_of(word)
        for text in texts:
            for folder in self.folders:
                if why := self._why_of_path(folder / _without_home(text)):
                    return _reason(text, why)
        return ""

    def _why_of_path(self, place: Path) -> str:
        try:
            if not place.is_file():
                return ""
        except (OSError, ValueError):
            return ""
        for spelling in (Path(os.path.normpath(place)), place.resolve()):
            if spelling.is_relative_to(self.root):
                return self.hidden.why(spelling.relative_to(self.root).as_posix())
            if is_secret_path(spelling.as_posix()):
                return BY_NAME
        return ""

    def _matches_of(self, word: Word) -> Iterator[str]:
        try:
            patterns = [*expand(word.pattern), *expand(word.without_variables)]
        except PatternRefused:
            return
        for pattern in dict.fromkeys(patterns):
            # the value of a lone variable can be anything
            if word.is_variable and not pattern.strip("*/"):
                continue
            path = Path(pattern.partition("=")[2] or pattern)
            for folder in self.folders:
                yield from _matching_files(folder, path.parts, word.is_variable)

    def _find_folders(self, words: Iterable[Word]) -> list[Path]:
        return [place for word in words for place in self._folders_of(word)]

    def _folders_of(self, word: Word) -> list[Path]:
        places = (self.folder / _without_home(text) for text in _parts(word.text))
        return [place for place in places if _is_folder(place)]

    def _why_of_folders(self, folders: Sequence[Path], names: Sequence[str]) -> str:
        """Return the reason if a folder holds a hidden file that matches one of
        `names`, or any hidden file if `names` is empty.
        """
        remaining = _MOST_ENTRIES
        for top in dict.fromkeys(folders):
            for folder, inner, files in os.walk(top):
                inner[:] = [name for name in inner if name not in _INSTALLED]
                remaining -= len(files)
                if remaining < 0:
                    return f"{top.name}/ has too many files to check for hidden ones"
                for name in files:
                    if names and not any(_fits(name, pattern) for pattern in names):
                        continue
                    if why := self._why_by_name(Path(folder, name)):
                        return _reason(os.path.relpath(f"{folder}/{name}", top), why)
        return ""

    def _why_by_name(self, place: Path) -> str:
        if place.is_relative_to(self.root):
            return self.hidden.why_by_name(place.relative_to(self.root).as_posix())
        return BY_NAME if is_secret_path(place.as_posix()) else ""


def _scripts_of_pipes(segments: Sequence[Segment]) -> list[Segment]:
    """Return the commands that one command writes for a shell: `echo "cat .env" |
    sh`.
    """
    return [
        inner
        for writer, reader in pairwise(segments)
        if writer.is_piped_on and reader.program in SHELLS
        for word in writer.arguments
        for inner in split_segments(word.text)
    ]


def _reason(name: str, why: str) -> str:
    return f"{name} is hidden from models: {why}"


def _parts(text: str) -> list[str]:
    """Return what in a word may be the name of a file, each name once: `.env` in
    `--file=.env`.
    """
    parts = filter(None, _split_word(text))
    return list(dict.fromkeys(islice(parts, _MOST_PARTS)))


def _split_word(text: str) -> Iterator[str]:
    yield text
    if text.startswith("-") and not text.startswith("--"):
        yield text[2:]
    for sign in "=:@":
        if sign in text:
            yield text.partition(sign)[2]
    for part in _PARTS.split(text):
        yield part
        yield part.removeprefix("file").lstrip("/") if part.startswith("//") else ""


def _without_home(text: str) -> str:
    """Expand a leading `~/` or `$HOME/`, and drop `file://`."""
    for sign in ("~/", "$HOME/", "${HOME}/"):
        if text.startswith(sign) and (home := home_folder()):
            return f"{home}/{text.removeprefix(sign)}"
    if text.startswith("/"):
        # these are the command's folder and the root
        text = re.sub(r"^/+proc/[^/]+/(?:task/[^/]+/)?cwd/+", "", text)
        text = re.sub(r"^/+proc/[^/]+/(?:task/[^/]+/)?root/+", "/", text)
    return text.removeprefix("file://")


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except (OSError, ValueError):
        return False


def _matching_files(
    folder: Path, parts: Sequence[str], is_variable: bool
) -> Iterator[str]:
    """Yield the paths in a folder that match a pattern, part by part. A shell's `*`
    does not match a leading dot; the value of a variable can.
    """
    paths = [""]
    for part in parts:
        files: list[str] = []
        for path in paths:
            if part in ("..", ".", "/"):
                files.append(f"{path}{part.rstrip('/')}/")
                continue
            try:
                names = [entry.name for entry in (folder / path).iterdir()]
            except OSError:
                continue
            for name in names:
                has_dot = name.startswith(".") and not part.startswith(".")
                if fnmatchcase(name, part) and (is_variable or not has_dot):
                    files.append(f"{path}{name}/")
        paths = files[:_MOST_PARTS]
    for path in paths:
        yield path.rstrip("/")


def _fits(name: str, pattern: str) -> bool:
    last = pattern.rpartition("/")[2]
    return fnmatchcase(name.casefold(), last.casefold())


def _select_read(segment: Segment) -> list[Word]:
    program, arguments = segment.program, segment.arguments
    texts = [word.text for word in arguments]
    if segment.is_substituted and program in ("ls", "echo", "printf", "find", "fd"):
        # another program reads the names that it prints
        return arguments
    if program in _NAMES_ONLY:
        return arguments if any(map(_READS_NAMES.fullmatch, texts)) else []
    if program in _SEARCHES:
        return _without_pattern(arguments)
    if program == "cp" and len(arguments) > 1:
        # the last argument is written, unless an option names the target
        return arguments if any(map(_TARGET.fullmatch, texts)) else arguments[:-1]
    if program in ("sed", "gsed"):
        return [*arguments, *_files_in_script(arguments)]
    if program in ("find", "fd") and not _runs_programs(arguments):
        return []
    return arguments


def _reads_folders(segment: Segment, *, has_folders: bool) -> bool:
    """True if a program reads all files of a folder. `has_folders`: it names one."""
    program, arguments = segment.program, segment.arguments
    if program in ("find", "fd"):
        return _runs_programs(arguments)
    if program in _FOLDER_READERS or program in _READ_THEIR_FOLDER:
        return True
    if program == "diff" and has_folders:
        return True
    options = (_RECURSIVE_OPTION.fullmatch(word.text) for word in arguments)
    return program in _RECURSIVE and any(options)


def _gets_no_hidden_names(arguments: list[Word], earlier: Sequence[Segment]) -> bool:
    """True if `xargs` runs a program that prints only names, or if git lists the files,
    which is judged as a listing.
    """
    runs_names_only = bool({word.text for word in arguments} & _NAMES_ONLY)
    return runs_names_only or any(other.program == "git" for other in earlier)


def _may_become_names(word: Word) -> bool:
    return word.is_variable or (word.is_pattern and not word.text.startswith("--"))


def _without_pattern(arguments: list[Word]) -> list[Word]:
    if any(_PATTERN_OPTION.fullmatch(word.text) for word in arguments):
        return arguments
    for place, word in enumerate(arguments):
        if not word.text.startswith("-"):
            return [*arguments[:place], *arguments[place + 1 :]]
    return arguments


def _is_quiet(program: str, words: Sequence[str]) -> bool:
    """True if a search prints no lines of files. An option may be the value of another
    option: `grep -e -q`.
    """
    pattern = _QUIET if program in ("grep", "egrep", "fgrep") else _QUIET_ELSEWHERE
    for previous, word in pairwise(("", *words)):
        if word == "--":
            return False
        if pattern.fullmatch(word):
            return not previous.startswith("-") or bool(_FLAG.fullmatch(previous))
    return False


def _files_in_script(arguments: list[Word]) -> list[Word]:
    """Return the files that a `sed` script names: `r.env`."""
    return [
        Word(name, name, name)
        for word in arguments
        for name in re.findall(r"[rRwW]\s*([^\s;}]+)", word.text)
    ]


def _runs_programs(arguments: list[Word]) -> bool:
    return any(word.text in _FIND_RUNS for word in arguments)


def _names_of_find(segments: Sequence[Segment]) -> list[str]:
    names: list[str] = []
    for segment in segments:
        words = [word.text for word in segment.arguments]
        if segment.program == "find":
            names += [
                value for option, value in pairwise(words) if option in _FIND_NAMES
            ]
    return names


def _place_of_subcommand(words: Sequence[str]) -> int:
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _PLACES_OF_GIT else 1
    return min(place, len(words))


def _prints_files(name: str, rest: Sequence[str]) -> bool:
    if name == "grep":
        return not _is_quiet(name, rest)
    if any(map(_PATCH_OPTION.fullmatch, rest)):
        return True
    return name in _PATCHES_OF_GIT and not any(map(_NO_PATCH.fullmatch, rest))


def _list_instead(name: str, rest: Sequence[str]) -> tuple[str, ...]:
    """Return the git arguments that list the files instead of printing them."""
    if name == "grep":
        return (name, "-l", "-z", *rest)
    options = ("--name-only", "--no-renames", "-z")
    if name == "stash":
        return (name, rest[0], *options, *rest[1:])
    if name == "diff":
        return (name, *options, *rest)
    return (name, "--format=", *options, *rest)
