"""Which runner a command starts, itself or by way of scripts."""

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.changes.change_set import FileChange
from cdd_agent.process.run import CommandResult
from cdd_agent.verification.harness import changes_of_harness
from cdd_agent.verification.invocation import RunnerInvocation, invocation
from cdd_agent.verification.outcomes import Result, Selection
from cdd_agent.verification.runner import Reported, ReportUnreadable
from tests.support.tables import each_row

REPORT = Path("/r/report")


def find(root: Path, script: str, command: str = "npm test") -> RunnerInvocation | None:
    scripts = {"test": script, "unit": script, "lint": "eslint ."}
    (root / "package.json").write_text(json.dumps({"scripts": scripts}))
    return invocation(command.split(), root)


@each_row(
    ("script", "runner"),
    [
        ("jest --ci", "jest"),
        ("vitest run", "vitest"),
        ("mocha", "mocha"),
        ("node --test", "node --test"),
        ("NODE_ENV=test TZ=UTC jest", "jest"),
        ("cross-env NODE_ENV=test jest", "jest"),
        ("node --test 'test/**/*.js'", "node --test"),
        ("pytest -q", "pytest"),
        ("python -m unittest", "unittest"),
        ("tsc && jest", "jest"),
        ("npm run lint && jest", "jest"),
        ("npm run lint && npm run unit", None),
        ("react-scripts test", "jest"),
        ("jest; true", None),
        ("jest || true", None),
        ("jest > log", None),
        ("jest | tee log", None),
        ("", None),
        ("'open", None),
        ("turbo run test", None),
    ],
)
def test_a_script_of_plain_commands_is_read(
    tmp_path: Path, script: str, runner: str | None
) -> None:
    found = find(tmp_path, script)
    assert (found.runner.name if found else None) == runner


@each_row(
    ("command", "words"),
    [
        ("npm test", ["npm", "test", "--", "--reporters=default"]),
        ("npm t -- a.test.js", ["npm", "t", "--", "a.test.js", "--reporters=default"]),
        ("npm test a.test.js", ["npm", "test", "a.test.js", "--"]),
        ("npm run unit", ["npm", "run", "unit", "--", "--reporters=default"]),
        ("npm --silent run unit", ["npm", "--silent", "run", "unit", "--"]),
        ("yarn test a.test.js", ["yarn", "test", "a.test.js", "--reporters=default"]),
        ("yarn unit", ["yarn", "unit", "--reporters=default"]),
        ("pnpm run unit", ["pnpm", "run", "unit", "--reporters=default"]),
        ("bun run unit", ["bun", "run", "unit", "--reporters=default"]),
    ],
)
def test_words_go_through_to_the_script(
    tmp_path: Path, command: str, words: list[str]
) -> None:
    found = find(tmp_path, "jest", command)
    assert found
    made = found.reporting(REPORT)
    assert made
    assert list(made.argv[: len(words)]) == words
    (tmp_path / "a.test.js").touch()
    selected = ("a.test.js",) if "a.test.js" in command else ()
    assert found.selection == Selection(selected, runner="jest")


@each_row(
    ("script", "separators"),
    [
        ("jest", 1),
        ("npm run inner", 2),
        ("tsc && npm run inner", 2),
        ("yarn inner", 1),
        ("npm run inner --", 1),
    ],
)
def test_each_npm_on_the_way_takes_a_separator(
    tmp_path: Path, script: str, separators: int
) -> None:
    scripts = {"test": script, "inner": "jest"}
    (tmp_path / "package.json").write_text(json.dumps({"scripts": scripts}))
    found = invocation(["npm", "test"], tmp_path)
    assert found
    made = found.reporting(REPORT)
    assert made
    assert list(made.argv).count("--") == separators


@each_row(
    "command",
    [
        "npm test --foo",
        "npm --foo test",
        "npm install",
        "npm",
        "npm run",
        "npm run none",
        "npm unit",
        "pnpm --filter ...a test",
        "yarn none",
        "cat package.json",
    ],
)
def test_another_command_starts_no_runner(tmp_path: Path, command: str) -> None:
    assert find(tmp_path, "jest", command) is None


@each_row(
    "text",
    ["", "[", "[]", '{"scripts": []}', '{"scripts": {"test": 1}}', "[" * 100_000, "\0"],
)
def test_a_package_json_that_cannot_be_read_starts_none(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "package.json").write_text(text)
    assert invocation(["npm", "test"], tmp_path) is None


def test_a_script_that_starts_itself_is_read_to_an_end(tmp_path: Path) -> None:
    assert find(tmp_path, "npm test && npm test") is None


@each_row(
    ("script", "reason"),
    [
        ("jest && vitest run", "several runners of tests (jest, vitest)"),
        ("turbo run test && jest", "`turbo`"),
        ("cd sub && pytest", "in another folder"),
        ("pytest a && pytest b", "more than once"),
        ("python -m unittest", "no place"),
        ("jest && eslint .", "no place"),
        ("jest --json", "another report"),
    ],
)
def test_a_report_that_would_cover_a_part_is_not_asked_for(
    tmp_path: Path, script: str, reason: str
) -> None:
    found = find(tmp_path, script)
    assert found
    assert found.reporting(REPORT) is None
    assert reason in found.why_unread


def test_a_runner_that_reports_by_the_environment_may_be_anywhere(
    tmp_path: Path,
) -> None:
    found = find(tmp_path, "node --test a && node --test b && eslint .")
    assert found
    made = found.reporting(REPORT)
    assert made
    assert made.argv == ("npm", "test")


WORKSPACES: Mapping[str, object] = {
    "package.json": {
        "workspaces": ["packages/*", "tools/**", "!packages/old"],
        "scripts": {"test": "npm test --workspaces", "e2e": "mocha e2e"},
    },
    "packages/a/package.json": {"name": "@x/a", "scripts": {"test": "mocha"}},
    "packages/b/package.json": {"name": "@x/b", "scripts": {"test": "mocha b"}},
    "packages/old/package.json": {"name": "old", "scripts": {"test": "jest"}},
    "packages/none/package.json": {"name": "none"},
    "packages/a/node_modules/c/package.json": {"scripts": {"test": "jest"}},
    "tools/deep/c/package.json": {"name": "c", "scripts": {"test": "mocha c"}},
    "other/package.json": {"name": "other", "scripts": {"test": "jest"}},
}


@pytest.fixture
def workspaces(tmp_path: Path) -> Path:
    for name, content in WORKSPACES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "pnpm-workspace.yaml").write_text(
        "packages:\n  - packages/*\n  - '!packages/old'\n"
    )
    return tmp_path


@each_row(
    ("command", "packages"),
    [
        ("npm test --workspaces", "packages/a packages/b tools/deep/c"),
        ("npm test -ws --if-present", "packages/a packages/b tools/deep/c"),
        ("npm test", "packages/a packages/b tools/deep/c"),
        ("npm test -w @x/a", "packages/a"),
        ("npm test --workspace=packages/b", "packages/b"),
        ("npm test -w packages", "packages/a packages/b"),
        ("npm --workspace @x/a --workspace c run test", "packages/a tools/deep/c"),
        ("npm run e2e", "."),
        ("npm --prefix packages/a test", "packages/a"),
        ("yarn workspace @x/b test", "packages/b"),
        ("yarn workspaces run test", "packages/a packages/b tools/deep/c"),
        ("yarn workspaces foreach -A run test", "packages/a packages/b tools/deep/c"),
        ("yarn --cwd packages/a test", "packages/a"),
        ("pnpm -r test", "packages/a packages/b"),
        ("pnpm --filter @x/a test", "packages/a"),
        ("pnpm --filter=@x/* run test", "packages/a packages/b"),
        ("pnpm --filter ./packages/b test", "packages/b"),
        ("pnpm -C packages/a test", "packages/a"),
        ("bun run --filter @x/b test", "packages/b"),
    ],
)
def test_the_packages_of_a_command_are_known(
    workspaces: Path, command: str, packages: str
) -> None:
    found = invocation(command.split(), workspaces)
    assert found
    folders = [part.folder.relative_to(workspaces).as_posix() for part in found.parts]
    assert " ".join(sorted(folders)) == packages
    assert found.runner.name == "mocha"
    assert found.reporting(REPORT)


@each_row(
    ("command", "words"),
    [
        ("pnpm -r test", "pnpm --no-bail -r test --reporter="),
        ("pnpm --no-bail -r test", "pnpm --no-bail -r test --reporter="),
        ("pnpm --filter @x/a test", "pnpm --filter @x/a test --reporter="),
    ],
)
def test_a_package_that_fails_does_not_hide_the_others(
    workspaces: Path, command: str, words: str
) -> None:
    found = invocation(command.split(), workspaces)
    assert found
    made = found.reporting(REPORT)
    assert made
    assert " ".join(made.argv).startswith(words)


def report(folder: Path, name: str, file: Path, result: str) -> None:
    test = {"file": str(file), "names": ["adds"], "result": result, "text": ""}
    lines = [json.dumps(test), json.dumps({"end": True})]
    (folder / name).write_text("\n".join(lines))


def test_the_results_of_all_packages_are_merged_or_none_counts(
    workspaces: Path,
) -> None:
    folder = workspaces / "check"
    folder.mkdir()
    found = invocation(["pnpm", "-r", "test"], workspaces)
    assert found
    reported = Reported(folder, CommandResult("", "", 1))
    report(folder, "report-1", workspaces / "packages/a/a.js", "passed")
    with pytest.raises(ReportUnreadable, match="only 1 of 2 runs left one"):
        found.read(reported)
    report(folder, "report-2", workspaces / "packages/b/b.js", "failed")
    assert found.read(reported).results == {
        "packages/a/a.js::adds": Result.PASSED,
        "packages/b/b.js::adds": Result.FAILED,
    }


@each_row(
    "echo",
    [
        "> jest --ci {words}\n",
        "$ jest --ci {words}\n",
        "packages/a test$ jest --ci {words}\n",
        "> npm run lint && jest --ci {words}\n",
        "Task test jest --ci '{words}'\n",
    ],
)
def test_the_user_sees_the_script_without_added_words(
    tmp_path: Path, echo: str
) -> None:
    found = find(tmp_path, "jest --ci")
    assert found
    made = found.reporting(REPORT)
    assert made
    words = " ".join(made.argv[3:])
    line = echo.format(words=words)
    assert found.may_be_about_report(line.partition("jest")[0])
    shown = echo.replace(" {words}", "").replace(" '{words}'", "")
    assert found.shown(line, REPORT) == shown
    assert found.shown("> jest --ci\n", REPORT) == "> jest --ci\n"


def test_the_script_decides_about_the_run_too(tmp_path: Path) -> None:
    found = find(tmp_path, "jest")

    def changed(path: str, before: str, after: str) -> tuple[str, ...]:
        return changes_of_harness(
            [FileChange(PurePosixPath(path), before.encode(), after.encode())], found
        )

    assert changed(
        "package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}'
    )
    assert changed("packages/a/package.json", "{}", '{"scripts": {"test": "true"}}')
    assert changed("jest.config.js", "", "x")
    assert not changed("pytest.ini", "", "x")
    assert not changed("package.json", "{}", '{"dependencies": {}}')
