"""Finds what a check's output states about its own run.

The output comes from the project: it may be false and of any length. A statement
explains an exit code, but never turns a failure into a pass.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import remove_escapes, sanitize_for_display
from cdd_agent.verification.outcomes import Statement, StatementKind

_HEAD, _TAIL = 32_000, 96_000
"""Characters to read at the beginning and end of a stream."""
_LONGEST_LINE = 1000
_HEAD_LINES, _TAIL_LINES = 150, 450
_NOT_FOUND_CODES = (127, 9009)
"""Shells' exit codes for a missing program; 9009 on Windows."""

_NAME = r"[\"'`‘“]?([^\s\"'`‘’“”:]{1,200})[\"'`’”]?"
"""A name, perhaps quoted, as one group."""

_NONE_RAN = "no tests ran"
_FOREVER = "it watches files"

_SENTENCES: dict[StatementKind, tuple[tuple[str, str], ...]] = {
    StatementKind.NO_TESTS: (
        (
            # ctest, pytest, jest, vitest, Playwright, PHPUnit, RSpec, Deno, Maven,
            # nextest, Bazel, Meson, ExUnit
            (
                r"(?i)^\W*(?:(?:error|info|warning|testing: warning)\W+)?"
                r"(?:there are )?(?:no|zero) (?:tests?|test files|test modules"
                r"|test targets|test suites?|examples|specs|spec files)(?: were)?"
                r" (?:ran|run|found|executed|to run|defined|collected)\b"
            ),
            _NONE_RAN,
        ),
        (
            # unittest and Django, Cargo, node, mocha, RSpec, minitest, XCTest, karma,
            # prove, Google Test, Cucumber, behave; the last one is TAP
            (
                r"^\W*(?:ℹ )?(?:Ran 0 tests|[rR]unning 0 tests|tests 0$|0 passing"
                r"|0 (?:examples|runs|tests|scenarios|specs)(?:,|$)|0 features passed"
                r", 0|Executed 0 (?:of 0|tests)|Files=\d+, Tests=0\b|1\.\.0$)"
            ),
            _NONE_RAN,
        ),
        (r"^\?\s+\S+\s+\[no test files\]|\[no tests to run\]$", _NONE_RAN),
        (r"^No test (?:is available in|matches the given)", _NONE_RAN),
        (r"^error: 0 test files matching", _NONE_RAN),
        (r"Couldn.t find any files to test", _NONE_RAN),
        (r"^> Task \S*:\w*[tT]est\w* NO-SOURCE", _NONE_RAN),
        (r"^\[INFO\] Tests are skipped\.", "the tests are skipped"),
        (r"^Result: NOTESTS|^No test configuration file found!", _NONE_RAN),
        (
            rf"^g?make(?:\[\d+\])?: Nothing to be done for {_NAME}",
            r"make has nothing to do for `\1`",
        ),
        (
            rf"^g?make(?:\[\d+\])?: {_NAME} is up to date\.",
            r"make has nothing to do for `\1`",
        ),
        (r"^Error: no test specified", "the script `test` of package.json is empty"),
        (
            rf"None of the selected packages has a {_NAME} script",
            r"no package has a script `\1`",
        ),
        (r"^No projects matched the filters", "no package was selected"),
    ),
    StatementKind.WATCHES: (
        (
            r"(?i)\b(?:watching|waiting|monitoring) (?:for|on) (?:\w+ ){0,3}changes?\b",
            _FOREVER,
        ),
        (
            r"(?i)\bwatching (?:the )?(?:files\b|path\(s\)|directory\b|extensions:)",
            _FOREVER,
        ),
        (
            (
                r"(?i)waiting for a file to change|restarting on file change"
                r"|starting compilation in watch mode|guard is now watching"
            ),
            _FOREVER,
        ),
        (
            (
                r"(?i)press h (?:\+ enter )?to show help|^\W*watch usage\b"
                r"|^\[Finished running\. Exit status: |^(?:completed|failed) running '"
            ),
            _FOREVER,
        ),
        (
            (
                r"(?i)(?:press|hit|use) (?:ctrl|control|\^)[-+ ]?c to (?:quit|stop"
                r"|exit)|quit the server with"
            ),
            "it is a server",
        ),
    ),
    StatementKind.THRESHOLD: (
        (
            r"Required test coverage of ([\d.]+)%? not reached",
            r"the required coverage of \1% is not reached",
        ),
        (
            r"Coverage failure: total of [\d.]+ is less than fail-under=([\d.]+)",
            r"the required coverage of \1% is not reached",
        ),
        (
            r"^Jest: \"(.{1,200})\" coverage threshold for (\w+) \((-?[\d.]+%?)\) not",
            r"the coverage threshold for \2 (\1: \3) is not met",
        ),
        (
            (
                r"^Jest: Uncovered count for (\w+) \(\d+\) exceeds (.{1,200}) threshold"
                r" \((\d+)\)"
            ),
            r"the coverage threshold for \1 (\2: at most \3 uncovered) is not met",
        ),
        (
            # vitest, nyc, c8
            (
                r"Coverage for (\w+) \([\d.]+%\) does not meet ([^()]{0,200}?) ?"
                r"threshold \(([\d.]+%)\)( for \S{1,200})?"
            ),
            r"the \2 coverage threshold for \1 (\3) is not met\4",
        ),
        (
            # node
            r"[\d.]+% (\w+) coverage does not meet threshold of ([\d.]+)%?",
            r"the coverage threshold for \1 (\2%) is not met",
        ),
        (
            # SimpleCov
            (
                r"^(\w+) coverage \([\d.]+%\) is below the expected minimum coverage"
                r" \(([\d.]+%)\)"
            ),
            r"the \1 coverage is below \2",
        ),
        (
            # JaCoCo, Kover
            (
                r"(\w+) covered (?:ratio|percentage) is [\d.]+, but expected minimum is"
                r" ([\d.]+)"
            ),
            r"the coverage of \1 is below \2",
        ),
        (
            # tarpaulin
            r"Coverage is below the failure threshold [\d.]+% < ([\d.]+%)",
            r"the coverage is below \1",
        ),
        (
            # coverlet
            r"The (\w+) (\w+) coverage is below the specified ([\d.]+)",
            r"the \1 coverage of \2 is below \3",
        ),
        (
            # go-test-coverage
            r"(\w+) coverage threshold \(([\d.]+%)\) satisfied:\s*FAIL",
            r"the \1 coverage is below \2",
        ),
        (
            # PHP's coverage-check
            r"[Cc]ode coverage is [\d.]+ ?% which is below the accepted ([\d.]+) ?%",
            r"the coverage is below \1%",
        ),
        (r"Coverage is below ([\d.]+%)", r"the coverage is below \1"),
        (r"RESULT: FAILED \(minimum: ([\d.]+%)", r"the coverage of docs is below \1"),
    ),
    StatementKind.WARNINGS: (
        (
            r"^Treating warnings as errors because process\.env\.CI = true",
            "warnings count as errors because `CI` is set",
        ),
        (
            (
                r"\ball warnings being treated as errors"
                r"|implied by `(?:#\[deny\(warnings\)\]|-D warnings)`"
            ),
            "warnings count as errors",
        ),
        (
            r"^(?:E +|INTERNALERROR> )?(?:\w+\.)*(\w+Warning): (.{1,120})",
            r"the warning \1 counts as an error: \2",
        ),
        (
            r"✖ ([1-9]\d*) problems? \(([^()]{1,80})\)",
            r"a linter found problems: \2",
        ),
        (
            r"ESLint found too many warnings \(maximum: (\d+)\)",
            r"ESLint found more than \1 warnings",
        ),
        # ruff, mypy, tsc, Biome
        (r"^Found ([1-9]\d*) errors?\b", r"a linter or type checker found errors: \1"),
        (r"^([1-9]\d* files?) would be reformatted", r"a formatter would change \1"),
        (
            r"Code style issues (?:were )?found in ([^.]{1,80})\. ",
            r"Prettier found code style issues in \1",
        ),
        (r"\b([1-9]\d*) offenses? detected", r"RuboCop found offenses: \1"),
    ),
    StatementKind.PROGRAM_MISSING: (
        (
            # shells and make
            (
                r"^\S+: (?:line )?(?:\d{1,6}: )?([^\s:]{1,200}):"
                r" (?:(?:[Cc]ommand )?not found|Command not found)$"
            ),
            r"`\1` is not installed",
        ),
        (rf"(?i)\bcommand not found: {_NAME}$", r"`\1` is not installed"),
        (rf"\b[Uu]nknown command:? {_NAME}$", r"`\1` is not a known command"),
        (
            rf"^(?:\S*/)?(?:env|g?make(?:\[\d+\])?): {_NAME}: No such file or dir",
            r"`\1` is not installed",
        ),
        (
            rf"^{_NAME} is not recognized as an internal or external command",
            r"`\1` is not installed",
        ),
        (
            r"python[\d.]*(?:\.exe)?: No module named '?([\w.]{1,200})",
            r"the Python module `\1` is not installed",
        ),
        # pipenv, PDM
        (
            rf"(?i)\bcommand {_NAME} (?:could not be found|is not found in your PATH)",
            r"`\1` is not installed",
        ),
        (rf"Failed to spawn: {_NAME}", r"`\1` is not installed"),
        (rf"no such (?:sub)?command: {_NAME}", r"the command `\1` is not installed"),
        (
            rf"The requested resource {_NAME} could not be found",
            r"there is no package `\1`",
        ),
        (
            (
                r"could not determine executable to run"
                r"|the specified command or file was not found"
            ),
            "a program that it starts was not found",
        ),
    ),
    StatementKind.SCRIPT_MISSING: (
        (rf"No rule to make target {_NAME}", r"there is no rule to make `\1`"),
        (rf"\b[Mm]issing script:? {_NAME}", r"there is no script `\1`"),
        (rf"Couldn't find a script named {_NAME}", r"there is no script `\1`"),
        (rf"Script not found {_NAME}", r"there is no script `\1`"),
        (rf"Don't know how to build task {_NAME}", r"there is no task `\1`"),
        (rf"[Jj]ustfile does not contain recipe {_NAME}", r"there is no recipe `\1`"),
        (rf"[Tt]ask {_NAME} does not exist", r"there is no task `\1`"),
        (
            # yarn, pnpm, Composer
            (
                rf"(?i)\bcommand {_NAME} (?:(?:is )?not found(?! in your PATH)"
                r"|is not defined)"
            ),
            r"there is no command `\1`",
        ),
    ),
    StatementKind.ENVIRONMENT: (
        (
            r"\b(?:ModuleNotFound|Import)Error: No module named '?([\w.]{1,200})",
            r"the Python module `\1` is missing",
        ),
        (
            r"Cannot find (?:module|package) ['\"]([^'\"./][^'\"]{0,200})['\"]",
            r"the package `\1` is missing",
        ),
        (
            r"cannot load such file -- ([\w-][\w/-]{0,200})",
            r"the Ruby library `\1` is missing",
        ),
        (
            r"error while loading shared libraries: ([^\s:]{1,200})",
            r"the library `\1` is missing",
        ),
        (
            r"\bECONNREFUSED ([\w.:\[\]-]{1,100})",
            r"no server answers at \1",
        ),
        (r"(?i)\bconnection refused\b", "a server does not answer"),
        (r"Cannot connect to the Docker daemon", "Docker is not running"),
        (
            r"getaddrinfo (?:ENOTFOUND|EAI_AGAIN) ([\w.-]{1,200})",
            r"the host `\1` cannot be found",
        ),
        (
            # Go; curl, git and Cargo; Java
            (
                r"\blookup ([\w.-]{1,200})(?: on \S{1,100})?: no such host"
                r"|(?i:could not resolve host(?:name)?): ?([\w.-]{1,200})"
                r"|\b(?:UnknownHostException:|Unknown host) ([\w.-]{1,200})"
            ),
            r"the host `\1\2\3` cannot be found",
        ),
        (
            r"module lookup disabled by GOPROXY=off|, you're using offline mode \(",
            "a package is not there, and downloads are turned off",
        ),
        (
            (
                r"Temporary failure in name resolution|Name or service not known"
                r"|could not translate host name"
            ),
            "a host cannot be found",
        ),
        (r"Executable doesn't exist at", "a browser is not installed"),
        (r"No space left on device", "the disk is full"),
        (r"\bEADDRINUSE\b|Address already in use", "a port is in use"),
        (r"\bJAVA_HOME\b.{0,40}\bnot (?:set|defined)", "`JAVA_HOME` is not set"),
        (r"linker `([^`]{1,200})` not found", r"the linker `\1` is not installed"),
        (
            rf"No version is set for (?:command )?{_NAME}",
            r"no version of `\1` is chosen",
        ),
    ),
}
"""Sentences of tools: a pattern for a line, and the reason as a clause. Reasons name
limits, counts of problems and programs, never measured values.
"""

_WATCHERS = (
    *("nodemon", "ptw", "pytest-watch", "pytest-watcher", "watchexec", "entr"),
    *("chokidar", "onchange", "guard", "watchman-make"),
)
_WATCH_WORDS = {
    "vitest": ("watch", "dev", "-w"),
    "cargo": ("watch",),
    "dotnet": ("watch",),
    "webpack": ("watch", "serve", "-w"),
    **dict.fromkeys(("tsc", "mocha", "rollup"), ("-w",)),
    **dict.fromkeys(("gradle", "gradlew"), ("-t", "--continuous")),
    "mix": ("test.watch",),
}
_WATCH_OPTION = Pattern(r"--watch(?:All)?(?:=true)?")
_NO_WATCH_OPTION = Pattern(r"--run|--no-watch|--watch(?:All)?=false")

_RAN_TESTS = Pattern(
    r"""
      \b[1-9]\d*\ (?:passed|passing|pass\b|failed|failing|examples?\b|runs,|skipped)
    | \b(?:Ran|[Rr]unning|Executed|out\ of)\ [1-9]\d*\b
    | \b[Tt]ests(?::\ +|\ run:\ |\ |=)[1-9]
    | ^[1-9]\d*\ (?:tests|scenarios|specs)\b
    | ^\s*(?:not\ )?ok\ [1-9]
    | ^\s*---\ (?:PASS|FAIL|SKIP):
    | ^(?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\))(?!.*\[no\ tests\ to\ run\])
    """,
    re.VERBOSE,
)
"""Says that tests ran: one of several runs may have had none."""


_PACKAGE = Pattern(r"^(?:[\w@.-]*/[\w@./-]+[ :][\w.-]+|\[[\w@./-]+\]): ")
"""The prefix of pnpm, bun, yarn and turbo for a package's line."""


class _Row(Struct, frozen=True):
    kind: StatementKind
    pattern: Pattern[str]
    reason: str

    def state(self, line: str) -> Statement | None:
        match = self.pattern.search(line)
        if match is None:
            return None
        text = " ".join(match.expand(self.reason).split())
        return Statement(self.kind, sanitize_for_display(text))


_ROWS = tuple(
    _Row(kind, Pattern(pattern), reason)
    for kind, sentences in _SENTENCES.items()
    for pattern, reason in sentences
)
_WATCH_ROWS = tuple(row for row in _ROWS if row.kind is StatementKind.WATCHES)
_NOT_FOUND = (StatementKind.PROGRAM_MISSING, StatementKind.SCRIPT_MISSING)
_OF_ANY_EXIT = (StatementKind.NO_TESTS, StatementKind.WATCHES)
"""The other kinds explain only failures."""


def find_statements(return_code: int, *streams: str) -> tuple[Statement, ...]:
    """Return each statement in the streams once, in the order of the table."""
    lines = [line for stream in streams for line in _read_lines(stream)]
    rows = [row for row in _ROWS if return_code or row.kind in _OF_ANY_EXIT]
    if any(map(_RAN_TESTS.search, lines)):
        rows = [row for row in rows if row.kind is not StatementKind.NO_TESTS]
    statements = dict.fromkeys(_find(rows, lines))
    has_name = any(one.kind in _NOT_FOUND for one in statements)
    if return_code in _NOT_FOUND_CODES and not has_name:
        reason = f"something that it starts was not found (exit code {return_code})"
        statements[Statement(StatementKind.SCRIPT_MISSING, reason)] = None
    return tuple(statements)


def _find(rows: Sequence[_Row], lines: Sequence[str]) -> Iterator[Statement]:
    for row in rows:
        for line in lines:
            if statement := row.state(line):
                yield statement


def _read_lines(stream: str) -> list[str]:
    if len(stream) > _HEAD + _TAIL:
        stream = f"{stream[:_HEAD]}\n{stream[-_TAIL:]}"
    lines = [line for line in remove_escapes(stream).splitlines() if line.strip()]
    if len(lines) > _HEAD_LINES + _TAIL_LINES:
        lines = lines[:_HEAD_LINES] + lines[-_TAIL_LINES:]
    return [_PACKAGE.sub("", line[:_LONGEST_LINE]) for line in lines]


def find_watch_word(argv: Sequence[str]) -> Statement | None:
    """Return the statement that a command watches files, by its words: without a
    terminal, `node --test`, Jest and webpack print nothing about it.
    """
    program, words = PurePath(argv[0]).stem.lower() if argv else "", argv[1:]
    word = program if program in _WATCHERS else ""
    special = _WATCH_WORDS.get(program, ())
    for index, each in enumerate(words):
        # subcommands come first
        is_special = each in special and (index == 0 or each.startswith("-"))
        if is_special or _WATCH_OPTION.fullmatch(each):
            word = each
    if not word or any(map(_NO_WATCH_OPTION.fullmatch, words)):
        return None
    return Statement(StatementKind.WATCHES, f"`{word}` makes it watch files")


class OutputWatch:
    """Recognises while a check runs that it waits for file changes.

    The sentence must be near the current end: a test may print it too, but then
    continues.
    """

    _NEAR_END = 8
    """In lines. Jest lists its keys after the sentence."""

    def __init__(self) -> None:
        self._end = ""

    def add(self, text: str) -> Statement | None:
        """Add output, and return the statement that it now ends with."""
        self._end = (self._end + text)[-4 * _LONGEST_LINE :]
        lines = _read_lines(self._end)[-self._NEAR_END :]
        return next(_find(_WATCH_ROWS, lines), None)
