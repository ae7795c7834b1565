"""`node --test` is made to tell of each test, with a reporter of ours."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cdd_agent.process.run import CommandResult
from cdd_agent.verification.outcomes import Result, Selection
from cdd_agent.verification.runner import Reported
from cdd_agent.verification.runners.javascript import Node
from tests.support.tables import each_row

RUNNER = Node()
TESTS = """\
import test, { describe, it, before } from 'node:test';
import assert from 'node:assert';
describe('adding', () => {
  it('two numbers', () => {});
  describe('more', () => { it('fails', () => assert.equal(1, 2)); });
  it.skip('off', () => {});
  it.todo('later');
});
test('top', async (t) => { await t.test('inner', () => {}); });
describe('hooks', () => {
  before(() => { throw new Error('hook') });
  it('never runs', () => {});
});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_each_test_is_known_in_its_groups(tmp_path: Path) -> None:
    root = tmp_path / "a project"
    (root / "test").mkdir(parents=True)
    (root / "test/a.test.mjs").write_text(TESTS)
    (root / "test/b.test.mjs").write_text(
        "import test from 'node:test';\ntest('two numbers', () => {});\n"
    )
    (root / "test/broken.test.mjs").write_text("import './nothing.mjs';\n")
    argv = ["node", "--test"]
    reporting = RUNNER.reporting(argv, tmp_path / "report")
    assert reporting
    done = subprocess.run(
        reporting.argv,
        cwd=root,
        env={**os.environ, **reporting.env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    run = RUNNER.read(
        Reported(tmp_path, CommandResult("", "", done.returncode)), Selection(), root
    )
    group = "test/a.test.mjs::adding"
    expected = {
        f"{group} > two numbers": Result.PASSED,
        f"{group} > more > fails": Result.FAILED,
        f"{group} > off": Result.SKIPPED,
        f"{group} > later": Result.SKIPPED,
        "test/a.test.mjs::top > inner": Result.PASSED,
        "test/a.test.mjs::top": Result.PASSED,
        "test/b.test.mjs::two numbers": Result.PASSED,
        "test/broken.test.mjs": Result.FAILED,
    }
    assert expected.items() <= run.results.items()
    assert run.results["test/a.test.mjs::hooks"] is Result.FAILED
    assert run.is_finished
    assert "two numbers" in done.stdout


def test_the_persons_own_options_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--max-old-space-size=64")
    made = RUNNER.reporting(["node", "--test", "--import", "tsx"], Path("/a b/report"))
    assert made
    assert made.argv == ("node", "--test", "--import", "tsx")
    assert made.env["NODE_OPTIONS"].startswith("--max-old-space-size=64 ")
    assert "node_reporter.mjs" in made.env["NODE_OPTIONS"]
    assert "/a b/report" in made.env.values()
    monkeypatch.setenv("NODE_OPTIONS", "--test-reporter=tap")
    assert RUNNER.reporting(["node", "--test"], Path("/r")) is None


@each_row("words", ["--test-reporter=junit", "--test-reporter dot", "--watch"])
def test_a_report_of_the_persons_own_is_left_alone(words: str) -> None:
    assert RUNNER.reporting(["node", "--test", *words.split()], Path("/r")) is None


@each_row(
    ("command", "known"),
    [
        ("node --test", True),
        ("/usr/bin/node --import tsx --test test/", True),
        ("npx c8 node --test", True),
        ("node run.js", False),
        ("node", False),
        ("cat node --test", False),
        ("", False),
    ],
)
def test_node_is_known(command: str, known: bool) -> None:
    assert RUNNER.recognises(command.split()) is known
