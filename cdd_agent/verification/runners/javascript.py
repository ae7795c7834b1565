"""Jest, vitest, mocha and `node --test`. Each loads a reporter of `injected/`, and each
process writes its own report.
"""

import os
import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.verification.outcomes import Selection, SuiteRun
from cdd_agent.verification.paths import paths_and_options
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    TestRunner,
    whole,
)
from cdd_agent.verification.runners.launchers import (
    WRAPPERS,
    find_word,
    first_programs,
)
from cdd_agent.verification.runners.lines import INJECTED, REPORT_VARIABLE, read_lines
from cdd_agent.verification.settings import package_json

_LAUNCHERS = (
    *("npx", "pnpm", "yarn", "bunx", "bun", "cross-env", "node", "c8", "nyc"),
    *WRAPPERS,
)
_ENDINGS = ("", ".js", ".mjs", ".cjs")


class _Tool(Struct, frozen=True):
    name: str
    added: tuple[str, ...]
    """Words that make it report. `{}` is the reporters' folder."""
    conflicts: tuple[str, ...]
    """Options that ask for another report, watch files, or run no tests."""
    plain: tuple[str, ...]
    """Options that select no tests."""
    with_value: tuple[str, ...]
    """Options that take the next word."""
    settings: str = r"\0"
    """Pattern for names of settings files."""
    ends_with: frozenset[int] = frozenset((0, 1))
    starters: tuple[tuple[str, str], ...] = ()
    """Program, subcommand: other ways to start it."""
    forbids_snapshots: bool = False
    screen_reporters: tuple[str, ...] = ()
    """Reporters that only show a run. Ours runs next to them or replaces them."""


_REPORTER_OPTIONS = ("--reporter", "-R", "--reporters")
_TOOLS = (
    _Tool(
        "jest",
        # these replace the reporters of its settings
        (
            *("--reporters=default", "--reporters={}/jest_reporter.cjs"),
            *("--bail=0", "--watchAll=false"),
        ),
        (
            *("--", "--json", "--outputFile", "--reporters", "--watch", "--watchAll"),
            *("--listTests", "--showConfig", "--help", "-h", "--version", "-v"),
        ),
        (
            *("--ci", "--verbose", "--silent", "--coverage", "--no-coverage"),
            *("--colors", "-i", "--runInBand", "-b", "--bail", "--watchAll=false"),
        ),
        (
            *("-t", "--testNamePattern", "-c", "--config", "--selectProjects"),
            *("--rootDir", "--testPathIgnorePatterns", "--shard", "--env"),
        ),
        settings=r"jest\.(config|workspace)\..*",
        starters=(
            ("react-scripts", "test"),
            ("craco", "test"),
            ("react-app-rewired", "test"),
        ),
        forbids_snapshots=True,
    ),
    _Tool(
        "vitest",
        (
            *("--reporter=default", "--reporter={}/vitest_reporter.mjs"),
            *("--bail=0", "--run"),
        ),
        (
            *("--", "--reporter", "--outputFile", "--watch", "-w", "bench", "list"),
            *("watch", "dev", "init", "--help", "-h", "--version", "-v"),
        ),
        (
            *("run", "--run", "--coverage", "--no-coverage", "--silent", "--color"),
            "--no-color",
        ),
        (
            *("-t", "--testNamePattern", "-c", "--config", "--project", "--root", "-r"),
            *("--dir", "--exclude", "--shard", "--mode", "--environment"),
            "--reporter",
        ),
        settings=r"vitest\.(config|workspace)\..*",
        forbids_snapshots=True,
        screen_reporters=("default", "basic", "verbose", "dot", "tree"),
    ),
    _Tool(
        "mocha",
        ("--reporter={}/mocha_reporter.cjs", "--no-bail"),
        (
            *("--", "--reporter", "-R", "--reporters", "--watch", "-w", "--dry-run"),
            *("--list-files", "--help", "-h", "--version", "-V"),
        ),
        ("--bail", "-b", "--color", "--colors", "-c", "--parallel", "-p", "--exit"),
        (
            *("-g", "--grep", "-f", "--fgrep", "-r", "--require", "--config"),
            *("--ignore", "--exclude", "--spec", "--timeout", "-t", "--ui", "-u"),
            *("--retries", "--extension", "--jobs", "-j", "--reporter", "-R"),
        ),
        settings=r"\.mocharc(\..*)?",
        # the number of failures
        ends_with=frozenset(range(256)),
        screen_reporters=("spec", "dot", "list", "min", "nyan", "landing", "progress"),
    ),
)
_NODE = _Tool(
    "node --test",
    (),
    ("--test-reporter", "--test-reporter-destination", "--watch"),
    (
        *("--test", "--enable-source-maps", "--no-warnings"),
        "--experimental-test-coverage",
    ),
    (
        *("--import", "-r", "--require", "--loader", "--test-name-pattern"),
        *("--test-skip-pattern", "--test-shard"),
    ),
)


class JavaScript(TestRunner):
    reports_per_process = True

    def __init__(self, tool: _Tool) -> None:
        self._tool = tool
        self.name = tool.name
        self.ends_with = tool.ends_with
        self.forbids_snapshots = tool.forbids_snapshots

    def place(self, argv: Sequence[str]) -> int | None:
        place = place_of_tool(argv, self.name)
        for starter, subcommand in self._tool.starters:
            at = place_of_tool(argv, starter)
            if at is not None and list(argv[at + 1 : at + 2]) == [subcommand]:
                place = at + 1
        return place

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        if self._conflicts(argv):
            return None
        added = (word.replace("{}", str(INJECTED)) for word in self._tool.added)
        return Reporting((*argv, *added), {REPORT_VARIABLE: str(report)})

    def _conflicts(self, words: Sequence[str]) -> bool:
        for word, following in zip_longest(words, words[1:], fillvalue=""):
            name, _, value = word.partition("=")
            shows = (value or following) in self._tool.screen_reporters
            if value == "false" or (shows and name in _REPORTER_OPTIONS):
                continue
            if name in self._tool.conflicts or word.startswith("--outputFile."):
                return True
        return False

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        tool = self._tool
        return paths_and_options(self.words(argv), root, tool.plain, tool.with_value)

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return read_lines(reported.all_data(), selection, root, " > ")

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        if path.name == "package.json":
            return package_json
        return whole if re.fullmatch(self._tool.settings, path.name) else None


class Node(JavaScript):
    """`NODE_OPTIONS` names its reporter, so that scripts may start it."""

    def __init__(self) -> None:
        super().__init__(_NODE)

    def place(self, argv: Sequence[str]) -> int | None:
        place = place_of_tool(argv, "node")
        return place if place is not None and "--test" in argv[place + 1 :] else None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        options = os.environ.get("NODE_OPTIONS", "")
        if self._conflicts((*argv, *options.split())):
            return None
        reporter = (INJECTED / "node_reporter.mjs").as_uri()
        added = (
            *("--test-reporter=spec", "--test-reporter-destination=stdout"),
            *(f"--test-reporter={reporter}", "--test-reporter-destination=stdout"),
        )
        joined = " ".join(filter(None, (options, *added)))
        return Reporting(
            tuple(argv), {"NODE_OPTIONS": joined, REPORT_VARIABLE: str(report)}
        )


JAVASCRIPT_RUNNERS = (*map(JavaScript, _TOOLS), Node())


def place_of_tool(argv: Sequence[str], tool: str) -> int | None:
    """Return the index of the word that starts the tool, or None."""
    names = first_programs(argv)
    place = find_word(names, {tool + ending for ending in _ENDINGS})
    if place is None or place == 0:
        return place
    # `node node_modules/.bin/jest`, but not `node run.js jest`
    if names[0] == "node":
        is_first_file = all(word.startswith("-") for word in argv[1:place])
        return place if is_first_file and argv[place] != names[place] else None
    is_launched = names[0] in _LAUNCHERS or tuple(names[:2]) == ("npm", "exec")
    return place if is_launched else None
