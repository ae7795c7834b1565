"""Which runner a command comes to, itself or by way of a script of `package.json`."""

import json
from pathlib import Path, PurePosixPath

from cdd_agent.edits.changes import FileChange
from cdd_agent.verification.harness import changes_of_harness
from cdd_agent.verification.invocation import Invocation, invocation
from cdd_agent.verification.outcomes import Selection
from tests.support.tables import each_row

REPORT = Path("/r/report")


def of(root: Path, script: str, command: str = "npm test") -> Invocation | None:
    (root / "package.json").write_text(
        json.dumps({"scripts": {"test": script, "unit": script}})
    )
    return invocation(command.split(), root)


@each_row(
    ("script", "runner"),
    [
        ("jest --ci", "jest"),
        ("vitest run", "vitest"),
        ("node --test", "node --test"),
        ("NODE_ENV=test TZ=UTC jest", "jest"),
        ("cross-env NODE_ENV=test jest", "jest"),
        ("node --test 'test/**/*.js'", "node --test"),
        ("pytest -q", "pytest"),
        ("python -m unittest", "unittest"),
        ("tsc && jest", None),
        ("jest; true", None),
        ("jest > log", None),
        ("mocha", None),
        ("", None),
        ("'open", None),
    ],
)
def test_a_script_of_one_plain_command_is_looked_into(
    tmp_path: Path, script: str, runner: str | None
) -> None:
    found = of(tmp_path, script)
    assert (found.runner.name if found else None) == runner


@each_row(
    ("command", "words"),
    [
        ("npm test", ["npm", "test", "--", "--json"]),
        ("npm t -- a.test.js", ["npm", "t", "--", "a.test.js", "--json"]),
        ("npm run unit", ["npm", "run", "unit", "--", "--json"]),
        ("yarn test a.test.js", ["yarn", "test", "a.test.js", "--json"]),
        ("pnpm run unit", ["pnpm", "run", "unit", "--json"]),
    ],
)
def test_words_go_through_to_the_script(
    tmp_path: Path, command: str, words: list[str]
) -> None:
    found = of(tmp_path, "jest", command)
    assert found
    made = found.reporting(REPORT)
    assert made
    assert list(made.argv[: len(words)]) == words
    (tmp_path / "a.test.js").touch()
    paths = ("a.test.js",) if "a.test.js" in command else ()
    assert found.selection == Selection(paths, runner="jest")


@each_row(
    "command",
    [
        "npm test a.test.js",
        "npm install",
        "npm",
        "npm run",
        "npm run none",
        "make test",
    ],
)
def test_other_commands_come_to_no_runner(tmp_path: Path, command: str) -> None:
    assert of(tmp_path, "jest", command) is None


@each_row(
    "text",
    ["", "[", "[]", '{"scripts": []}', '{"scripts": {"test": 1}}', "[" * 100_000, "\0"],
)
def test_a_package_json_that_cannot_be_read_comes_to_none(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "package.json").write_text(text)
    assert invocation(["npm", "test"], tmp_path) is None


def test_words_that_belong_into_the_middle_of_a_script_cannot_be_added(
    tmp_path: Path,
) -> None:
    found = of(tmp_path, "python -m unittest")
    assert found
    assert found.reporting(REPORT) is None


def test_people_see_the_script_as_it_is(tmp_path: Path) -> None:
    found = of(tmp_path, "jest --ci")
    assert found
    made = found.reporting(REPORT)
    assert made
    echoed = f"> jest --ci {' '.join(made.argv[3:])}\n"
    assert str(REPORT) in echoed
    assert found.shown(echoed, REPORT) == "> jest --ci\n"


def test_the_script_decides_about_the_run_too(tmp_path: Path) -> None:
    found = of(tmp_path, "jest")

    def changed(path: str, before: str, after: str) -> tuple[str, ...]:
        return changes_of_harness(
            [FileChange(PurePosixPath(path), before.encode(), after.encode())], found
        )

    assert changed(
        "package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}'
    )
    assert changed("jest.config.js", "", "x")
    assert not changed("pytest.ini", "", "x")
    assert not changed("package.json", "{}", '{"dependencies": {}}')
