"""What the output of a check states about its own run. The texts are what the tools
print.
"""

import time

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification import statements
from cdd_agent.verification.outcomes import Statement, StatementKind
from cdd_agent.verification.statements import (
    OutputWatch,
    find_statements,
    find_watch_word,
)
from tests.support.tables import each_row

NO_TESTS, WATCHES = StatementKind.NO_TESTS, StatementKind.WATCHES
THRESHOLD, WARNINGS = StatementKind.THRESHOLD, StatementKind.WARNINGS
MISSING, ENVIRONMENT = StatementKind.PROGRAM_MISSING, StatementKind.ENVIRONMENT
NO_SCRIPT = StatementKind.SCRIPT_MISSING

NONE_RAN = "no tests ran"
FOREVER = "it watches files"

STATED: list[tuple[str, StatementKind, str, str]] = [
    # the tool, the kind, a line of its output, the reason
    ("ctest", NO_TESTS, "No tests were found!!!", NONE_RAN),
    ("ctest", NO_TESTS, "No test configuration file found!", NONE_RAN),
    ("pytest", NO_TESTS, "======= no tests ran in 0.02s =======", NONE_RAN),
    ("unittest", NO_TESTS, "Ran 0 tests in 0.000s", NONE_RAN),
    ("cargo", NO_TESTS, "running 0 tests", NONE_RAN),
    ("nextest", NO_TESTS, "error: no tests to run", NONE_RAN),
    ("go", NO_TESTS, "?   \tx.y/z\t[no test files]", NONE_RAN),
    ("go", NO_TESTS, "ok  \tx.y/z/q\t0.007s [no tests to run]", NONE_RAN),
    ("go", NO_TESTS, "testing: warning: no tests to run", NONE_RAN),
    ("node", NO_TESTS, "# tests 0", NONE_RAN),
    ("node", NO_TESTS, "ℹ tests 0", NONE_RAN),
    ("mocha", NO_TESTS, "  0 passing (1ms)", NONE_RAN),
    ("mocha", NO_TESTS, "Error: No test files found", NONE_RAN),
    ("jest", NO_TESTS, "No tests found, exiting with code 1", NONE_RAN),
    ("vitest", NO_TESTS, "No test files found, exiting with code 0", NONE_RAN),
    ("bun", NO_TESTS, "error: 0 test files matching **{.test}.{js,ts}", NONE_RAN),
    ("ava", NO_TESTS, "  ✖ Couldn’t find any files to test", NONE_RAN),
    ("deno", NO_TESTS, "error: No test modules found", NONE_RAN),
    ("phpunit", NO_TESTS, "No tests executed!", NONE_RAN),
    ("rspec", NO_TESTS, "No examples found.", NONE_RAN),
    ("rspec", NO_TESTS, "0 examples, 0 failures", NONE_RAN),
    ("minitest", NO_TESTS, "0 runs, 0 assertions, 0 failures, 0 errors", NONE_RAN),
    ("dotnet", NO_TESTS, "No test is available in /x/a.dll. Make sure", NONE_RAN),
    ("maven", NO_TESTS, "[INFO] No tests to run.", NONE_RAN),
    ("maven", NO_TESTS, "[INFO] Tests are skipped.", "the tests are skipped"),
    ("gradle", NO_TESTS, "> Task :app:test NO-SOURCE", NONE_RAN),
    ("prove", NO_TESTS, "Result: NOTESTS", NONE_RAN),
    ("gtest", NO_TESTS, "[==========] Running 0 tests from 0 test suites.", NONE_RAN),
    ("tap", NO_TESTS, "1..0", NONE_RAN),
    (
        "make",
        NO_TESTS,
        "make: Nothing to be done for 'test'.",
        "make has nothing to do for `test`",
    ),
    (
        "make",
        NO_TESTS,
        "make[1]: 'test' is up to date.",
        "make has nothing to do for `test`",
    ),
    (
        "npm",
        NO_TESTS,
        "Error: no test specified",
        "the script `test` of package.json is empty",
    ),
    (
        "pnpm",
        NO_TESTS,
        'None of the selected packages has a "test" script',
        "no package has a script `test`",
    ),
    (
        "pnpm",
        NO_TESTS,
        'No projects matched the filters in "/x"',
        "no package was selected",
    ),
    (
        "vitest",
        WATCHES,
        "\x1b[42m PASS \x1b[49m \x1b[32mWaiting for file changes...\x1b[39m",
        FOREVER,
    ),
    ("vitest", WATCHES, "       press h to show help, press q to quit", FOREVER),
    (
        "tsc",
        WATCHES,
        "01:59:45 AM - Found 0 errors. Watching for file changes.",
        FOREVER,
    ),
    ("tsc", WATCHES, "12:00:00 - Starting compilation in watch mode...", FOREVER),
    ("mocha", WATCHES, "ℹ [mocha] waiting for changes...", FOREVER),
    (
        "nodemon",
        WATCHES,
        "[nodemon] clean exit - waiting for changes before restart",
        FOREVER,
    ),
    ("nodemon", WATCHES, "[nodemon] watching path(s): *.*", FOREVER),
    ("cargo watch", WATCHES, "[Finished running. Exit status: 0]", FOREVER),
    ("node", WATCHES, "Completed running 't/a.js'", FOREVER),
    (
        "deno",
        WATCHES,
        "Watcher Test finished. Restarting on file change...",
        FOREVER,
    ),
    ("gradle", WATCHES, "Waiting for changes to input files...", FOREVER),
    ("webpack", WATCHES, "webpack is watching the files…", FOREVER),
    ("jest", WATCHES, "Watch Usage", FOREVER),
    (
        "flask",
        WATCHES,
        "Press CTRL+C to quit",
        "it is a server",
    ),
    (
        "pytest-cov",
        THRESHOLD,
        "FAIL Required test coverage of 80% not reached. Total coverage: 50.00%",
        "the required coverage of 80% is not reached",
    ),
    (
        "coverage",
        THRESHOLD,
        "Coverage failure: total of 50 is less than fail-under=80",
        "the required coverage of 80% is not reached",
    ),
    (
        "jest 29",
        THRESHOLD,
        'Jest: "global" coverage threshold for statements (80%) not met: 75%',
        "the coverage threshold for statements (global: 80%) is not met",
    ),
    (
        "jest",
        THRESHOLD,
        'Jest: Uncovered count for lines (3) exceeds "global" threshold (2)',
        'the coverage threshold for lines ("global": at most 2 uncovered) is not met',
    ),
    (
        "jest 30",
        THRESHOLD,
        'Jest: Coverage for branches (50%) does not meet "global" threshold (90%)',
        'the "global" coverage threshold for branches (90%) is not met',
    ),
    (
        "vitest, nyc, c8",
        THRESHOLD,
        "ERROR: Coverage for branches (83.33%) does not meet global threshold (90%)",
        "the global coverage threshold for branches (90%) is not met",
    ),
    (
        "nyc",
        THRESHOLD,
        "ERROR: Coverage for lines (0%) does not meet threshold (90%) for src/a.js",
        "the coverage threshold for lines (90%) is not met for src/a.js",
    ),
    (
        "node",
        THRESHOLD,
        "# Error: 66.67% line coverage does not meet threshold of 80%.",
        "the coverage threshold for line (80%) is not met",
    ),
    (
        "simplecov",
        THRESHOLD,
        "Line coverage (60.00%) is below the expected minimum coverage (80.00%).",
        "the Line coverage is below 80.00%",
    ),
    (
        "jacoco",
        THRESHOLD,
        (
            "[WARNING] Rule violated for bundle x: lines covered ratio is 0.60, but"
            " expected minimum is 0.80"
        ),
        "the coverage of lines is below 0.80",
    ),
    (
        "tarpaulin",
        THRESHOLD,
        'Error: "Coverage is below the failure threshold 60.00% < 80.00%"',
        "the coverage is below 80.00%",
    ),
    (
        "coverlet",
        THRESHOLD,
        "error : The total line coverage is below the specified 80",
        "the total coverage of line is below 80",
    ),
    (
        "go-test-coverage",
        THRESHOLD,
        "Total coverage threshold (80%) satisfied:\tFAIL",
        "the Total coverage is below 80%",
    ),
    (
        "coverage-check",
        THRESHOLD,
        "Total code coverage is 60.00 % which is below the accepted 80%",
        "the coverage is below 80%",
    ),
    (
        "diff-cover",
        THRESHOLD,
        "Failure. Coverage is below 80%.",
        "the coverage is below 80%",
    ),
    (
        "interrogate",
        THRESHOLD,
        "RESULT: FAILED (minimum: 80.0%, actual: 60.0%)",
        "the coverage of docs is below 80.0%",
    ),
    (
        "react-scripts",
        WARNINGS,
        "Treating warnings as errors because process.env.CI = true.",
        "warnings count as errors because `CI` is set",
    ),
    (
        "gcc",
        WARNINGS,
        "cc1: all warnings being treated as errors",
        "warnings count as errors",
    ),
    (
        "cargo",
        WARNINGS,
        "  = note: `#[deny(dead_code)]` implied by `#[deny(warnings)]`",
        "warnings count as errors",
    ),
    (
        "pytest",
        WARNINGS,
        "INTERNALERROR> pytest.PytestConfigWarning: Unknown config option: bogus",
        (
            "the warning PytestConfigWarning counts as an error: Unknown config option:"
            " bogus"
        ),
    ),
    (
        "eslint",
        WARNINGS,
        "✖ 3 problems (1 error, 2 warnings)",
        "a linter found problems: 1 error, 2 warnings",
    ),
    (
        "eslint",
        WARNINGS,
        "ESLint found too many warnings (maximum: 0).",
        "ESLint found more than 0 warnings",
    ),
    (
        "mypy",
        WARNINGS,
        "Found 3 errors in 1 file (checked 2 source files)",
        "a linter or type checker found errors: 3",
    ),
    (
        "black",
        WARNINGS,
        "2 files would be reformatted, 1 file would be left unchanged.",
        "a formatter would change 2 files",
    ),
    (
        "prettier",
        WARNINGS,
        "[warn] Code style issues found in 2 files. Run Prettier with --write to fix.",
        "Prettier found code style issues in 2 files",
    ),
    (
        "rubocop",
        WARNINGS,
        "3 files inspected, 2 offenses detected, 1 offense autocorrectable",
        "RuboCop found offenses: 2",
    ),
    ("dash", MISSING, "sh: 1: vitest: not found", "`vitest` is not installed"),
    (
        "bash",
        MISSING,
        "/bin/bash: line 1: foo: command not found",
        "`foo` is not installed",
    ),
    ("zsh", MISSING, "zsh:1: command not found: foo", "`foo` is not installed"),
    ("poetry", MISSING, "Command not found: pytest", "`pytest` is not installed"),
    ("fish", MISSING, "fish: Unknown command: foo", "`foo` is not a known command"),
    (
        "env",
        MISSING,
        "/usr/bin/env: ‘node’: No such file or directory",
        "`node` is not installed",
    ),
    (
        "make",
        MISSING,
        "make: nothere: No such file or directory",
        "`nothere` is not installed",
    ),
    (
        "cmd",
        MISSING,
        "'jest' is not recognized as an internal or external command,",
        "`jest` is not installed",
    ),
    (
        "make",
        NO_SCRIPT,
        "make: *** No rule to make target 'test'.  Stop.",
        "there is no rule to make `test`",
    ),
    (
        "python",
        MISSING,
        "/usr/bin/python3: No module named pytest",
        "the Python module `pytest` is not installed",
    ),
    ("npm", NO_SCRIPT, 'npm error Missing script: "test"', "there is no script `test`"),
    (
        "pnpm",
        NO_SCRIPT,
        " ERR_PNPM_NO_SCRIPT  Missing script: test",
        "there is no script `test`",
    ),
    (
        "yarn 4",
        NO_SCRIPT,
        'Usage Error: Couldn\'t find a script named "test".',
        "there is no script `test`",
    ),
    (
        "bun",
        NO_SCRIPT,
        'error: Script not found "nothere"',
        "there is no script `nothere`",
    ),
    (
        "yarn",
        NO_SCRIPT,
        'error Command "test" not found.',
        "there is no command `test`",
    ),
    (
        "composer",
        NO_SCRIPT,
        'Command "test" is not defined.',
        "there is no command `test`",
    ),
    (
        "pipenv",
        MISSING,
        "Error: the command pytest could not be found within PATH.",
        "`pytest` is not installed",
    ),
    ("uv", MISSING, "error: Failed to spawn: `pytest`", "`pytest` is not installed"),
    (
        "cargo",
        MISSING,
        "error: no such command: `watch`",
        "the command `watch` is not installed",
    ),
    (
        "rake",
        NO_SCRIPT,
        "Don't know how to build task 'test' (See the list of available tasks)",
        "there is no task `test`",
    ),
    (
        "just",
        NO_SCRIPT,
        "error: Justfile does not contain recipe `test`",
        "there is no recipe `test`",
    ),
    ("task", NO_SCRIPT, 'task: Task "test" does not exist', "there is no task `test`"),
    (
        "npx",
        MISSING,
        (
            "npm error 404  The requested resource 'nothere@*' could not be found or"
            " you do not have permission to access it."
        ),
        "there is no package `nothere@*`",
    ),
    (
        "npx",
        MISSING,
        "npm error could not determine executable to run",
        "a program that it starts was not found",
    ),
    (
        "python",
        ENVIRONMENT,
        "E   ModuleNotFoundError: No module named 'psycopg'",
        "the Python module `psycopg` is missing",
    ),
    (
        "node",
        ENVIRONMENT,
        "Error: Cannot find module '@scope/left-pad'",
        "the package `@scope/left-pad` is missing",
    ),
    (
        "node",
        ENVIRONMENT,
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'chai' imported from /x",
        "the package `chai` is missing",
    ),
    (
        "ruby",
        ENVIRONMENT,
        "cannot load such file -- pg (LoadError)",
        "the Ruby library `pg` is missing",
    ),
    (
        "ld",
        ENVIRONMENT,
        "a.out: error while loading shared libraries: libpq.so.5: cannot open",
        "the library `libpq.so.5` is missing",
    ),
    (
        "node",
        ENVIRONMENT,
        "Error: connect ECONNREFUSED 127.0.0.1:5432",
        "no server answers at 127.0.0.1:5432",
    ),
    (
        "psycopg",
        ENVIRONMENT,
        'connection to server at "localhost", port 5432 failed: Connection refused',
        "a server does not answer",
    ),
    (
        "docker",
        ENVIRONMENT,
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
        "Docker is not running",
    ),
    (
        "node",
        ENVIRONMENT,
        "Error: getaddrinfo ENOTFOUND db.local",
        "the host `db.local` cannot be found",
    ),
    (
        "go",
        ENVIRONMENT,
        (
            'x_test.go:18:2: github.com/x/y@v1.14.5: Get "https://proxy.local/y.zip":'
            " dial tcp: lookup proxy.local on 10.255.255.53:53: no such host"
        ),
        "the host `proxy.local` cannot be found",
    ),
    (
        "go",
        ENVIRONMENT,
        "dial tcp: lookup db.local: no such host",
        "the host `db.local` cannot be found",
    ),
    (
        "go",
        ENVIRONMENT,
        "x.go:3:8: github.com/x/y@v1: module lookup disabled by GOPROXY=off",
        "a package is not there, and downloads are turned off",
    ),
    (
        "cargo",
        ENVIRONMENT,
        "As a reminder, you're using offline mode (--offline) which can sometimes",
        "a package is not there, and downloads are turned off",
    ),
    (
        "git",
        ENVIRONMENT,
        "unable to access 'https://git.local': Could not resolve host: git.local",
        "the host `git.local` cannot be found",
    ),
    (
        "cargo",
        ENVIRONMENT,
        "  [6] Couldn't resolve host name (Could not resolve host: index.local)",
        "the host `index.local` cannot be found",
    ),
    (
        "maven",
        ENVIRONMENT,
        "[ERROR] Could not transfer artifact x:y:jar: Unknown host repo.local",
        "the host `repo.local` cannot be found",
    ),
    (
        "gradle",
        ENVIRONMENT,
        "   > java.net.UnknownHostException: repo.local",
        "the host `repo.local` cannot be found",
    ),
    (
        "python",
        ENVIRONMENT,
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "a host cannot be found",
    ),
    (
        "playwright",
        ENVIRONMENT,
        "Error: browserType.launch: Executable doesn't exist at /x/chrome",
        "a browser is not installed",
    ),
    (
        "any",
        ENVIRONMENT,
        "OSError: [Errno 28] No space left on device",
        "the disk is full",
    ),
    (
        "node",
        ENVIRONMENT,
        "Error: listen EADDRINUSE: address already in use :::3000",
        "a port is in use",
    ),
    (
        "maven",
        ENVIRONMENT,
        "The JAVA_HOME environment variable is not defined correctly,",
        "`JAVA_HOME` is not set",
    ),
    (
        "rustc",
        ENVIRONMENT,
        "error: linker `cc` not found",
        "the linker `cc` is not installed",
    ),
    (
        "asdf",
        ENVIRONMENT,
        "No version is set for command node",
        "no version of `node` is chosen",
    ),
]
"""A row without a reason is a line that states nothing."""


@each_row(("tool", "kind", "line", "reason"), STATED)
def test_a_sentence_of_a_tool_is_a_statement(
    tool: str, kind: StatementKind, line: str, reason: str
) -> None:
    del tool
    expected = (Statement(kind, reason),) if reason else ()
    assert find_statements(1, f"before\n{line}\nafter\n", "") == expected
    assert find_statements(1, "", f"{line}\r\n") == expected
    explains_failures_only = kind not in (NO_TESTS, WATCHES)
    assert find_statements(0, line) == (() if explains_failures_only else expected)


def test_each_row_of_the_table_has_an_example() -> None:
    lines = [line for _, _, line, _ in STATED]
    seen = {
        row
        for row in statements._ROWS
        if any(
            row.state(text) for line in lines for text in statements._read_lines(line)
        )
    }
    assert [row.pattern.pattern for row in statements._ROWS if row not in seen] == []


@each_row(
    "output",
    [
        # of several runs, one had no tests
        "running 0 tests\n\nrunning 2 tests\ntest a ... ok\n",
        "?   \tx/a\t[no test files]\nok  \tx/b\t0.01s\n",
        "?   \tx/a\t[no test files]\nok  \tx/b\t(cached)\tcoverage: 50%\n",
        "  0 passing (1ms)\n\n  1 failing\n",
        "No tests found, exiting with code 0\nTests:       3 passed, 3 total\n",
        "Ran 0 tests in 0.0s\nRan 3 tests in 0.1s\n",
        "[INFO] No tests to run.\n[INFO] Tests run: 4, Failures: 0\n",
        "# tests 0\n# tests 12\n",
        "0 examples, 0 failures\n3 examples, 1 failure\n",
        "1..0\nok 1 - adds\n",
        # lines that are close to a sentence
        "100% tests passed, 0 tests failed out of 3",
        "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured",
        "there is no test ran by hand",
        "10 passing (3ms)",
        "assert 'no tests ran' in output",
        "make: Leaving directory '/x'",
        "I am waiting for you, and watching a film",
        "src/watching.py . [100%]",
        "Required test coverage of 80% reached. Total coverage: 91.00%",
        "Coverage for lines (95%) meets the threshold (90%)",
        "Found 0 errors.",
        "Found 3 files",
        "  /x/test_a.py:3: DeprecationWarning: old",
        "0 files would be reformatted",
        "no offenses detected",
        "E   assert 'foo: not found' == 'bar'",
        "KeyError: 'not found'",
        "Error: Cannot find module './calc'",
        "Error: Cannot find module '/x/calc.js'",
        "AssertionError: connection was closed",
        "",
        "\0\x1b[31m\x1b]8;;",
    ],
)
def test_another_line_states_nothing(output: str) -> None:
    assert find_statements(1, output) == ()


def test_measured_values_do_not_tell_two_outputs_apart_and_limits_do() -> None:
    line = "FAIL Required test coverage of {}% not reached. Total coverage: {}%"
    same = find_statements(1, line.format(80, 50.0))
    assert same == find_statements(1, line.format(80, 61.25))
    assert same != find_statements(1, line.format(70, 50.0))


def test_something_missing_is_known_by_the_exit_code_too() -> None:
    (stated,) = find_statements(127, "nothing that cdd knows")
    assert stated.kind is NO_SCRIPT
    (named,) = find_statements(127, "sh: 1: vitest: not found")
    assert named.text == "`vitest` is not installed"


@each_row("package", ["packages/a test: ", "@x/a test: ", "[@x/a]: ", "@x/a:test: "])
def test_the_line_of_one_of_several_packages_is_read(package: str) -> None:
    (stated,) = find_statements(1, f"{package}sh: 1: vitest: not found")
    assert stated.text == "`vitest` is not installed"


def test_each_statement_is_given_once() -> None:
    line = "E   ModuleNotFoundError: No module named 'psycopg'\n"
    assert len(find_statements(1, line * 50, line)) == 1


def test_both_ends_of_a_huge_output_are_read_in_short_time() -> None:
    begun = time.process_time()
    output = f"sh: 1: a: not found\n{'x' * 40_000_000}\nerror: no such command: `b`"
    assert [each.text for each in find_statements(1, output)] == [
        "`a` is not installed",
        "the command `b` is not installed",
    ]
    for hostile in (
        "0 " * 200_000,
        "(" * 400_000,
        "\n" * 400_000,
        "watching " * 50_000,
    ):
        find_statements(1, hostile)
    assert time.process_time() - begun < 20


@given(st.text(max_size=300), st.integers(-20, 300))
def test_any_output_is_read(output: str, return_code: int) -> None:
    for stated in find_statements(return_code, output):
        assert stated.text.isprintable()


@each_row(
    ("command", "watches"),
    [
        ("jest --watch", True),
        ("jest --watchAll src", True),
        ("node --test --watch", True),
        ("tsc -w", True),
        ("cargo watch -x test", True),
        ("vitest dev", True),
        ("vitest watch", True),
        ("nodemon app.js", True),
        ("/x/node_modules/.bin/webpack --watch", True),
        ("bun test --watch", True),
        ("gradle test -t", True),
        ("vitest", False),
        ("vitest dev --run", False),
        ("jest --watchAll=false", False),
        ("jest -w 2", False),
        ("cargo test watch", False),
        ("python -m pytest -w", False),
        ("", False),
    ],
)
def test_a_command_that_watches_is_known_by_its_words(
    command: str, watches: bool
) -> None:
    assert (find_watch_word(command.split()) is not None) == watches


def test_a_watcher_is_recognised_while_it_runs() -> None:
    watch = OutputWatch()
    assert watch.add(" ✓ t/a.test.mjs (1 test) 3ms\n\n PASS  Wai") is None
    stated = watch.add("ting for file changes...\n")
    assert stated
    assert stated.kind is WATCHES
    assert watch.add("       press h to show help, press q to quit\n")


def test_a_test_that_prints_such_a_sentence_is_no_watcher() -> None:
    watch = OutputWatch()
    assert watch.add("Watching for file changes.\n")
    assert watch.add("".join(f"ok {number}\n" for number in range(8))) is None


def test_a_watch_keeps_little_of_a_long_output() -> None:
    watch = OutputWatch()
    for _ in range(100):
        assert watch.add("x" * 100_000) is None
    assert watch.add("\n[nodemon] watching path(s): *.*\n")
