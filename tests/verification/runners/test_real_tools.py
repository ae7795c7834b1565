"""Real projects with their real tools: each test is known, and a step is judged by what
became of each.

Where a tool is not installed, its stories are skipped. Jest and vitest are looked for
on the PATH.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from cdd_agent.process.policy import CommandRunner
from cdd_agent.tickets.status import Verification
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun, run_check
from cdd_agent.verification.checks import parse_command
from cdd_agent.verification.outcomes import Reference, Result
from cdd_agent.verification.verdict import Verdict
from tests.support.verdicts import verify

HOME = Path.home()
"""Before tests get a home of their own: toolchains are in the real one."""
PASSED, FAILED, SKIPPED = Result.PASSED, Result.FAILED, Result.SKIPPED


@dataclass(frozen=True)
class Kind:
    """A calculator in one language, whose `sub` is broken."""

    tool: str
    """The program that must be installed. Python always is."""
    command: str
    code: str
    code_text: str
    tests: str
    tests_text: str
    adds: str
    """The id of the test that passes."""
    subtracts: str
    """The id of the one that fails."""
    remove: str
    """In the tests' text, what makes the first of them."""
    skip: tuple[str, str]
    """In the tests' text, what has it skipped."""
    others: Mapping[str, str]
    plus: str = "a + b"
    """In the code, the sum of each function."""


JS_TEST = """\
describe('calc', () => {
  it('adds two', () => { if (add(1, 2) !== 3) throw new Error('add') });
  it('subtracts', () => { if (sub(2, 1) !== 1) throw new Error('sub') });
});
"""
JS_ADDS = "  it('adds two', () => { if (add(1, 2) !== 3) throw new Error('add') });\n"
JS = {
    "code": "calc.mjs",
    "code_text": (
        "export const add = (a, b) => a + b;\nexport const sub = (a, b) => a + b;\n"
    ),
    "tests": "test/calc.test.mjs",
    "adds": "test/calc.test.mjs::calc > adds two",
    "subtracts": "test/calc.test.mjs::calc > subtracts",
    "remove": JS_ADDS,
    "skip": ("it('adds", "it.skip('adds"),
}
NODE_TEST = (
    "import {describe, it} from 'node:test';\n"
    "import {add, sub} from '../calc.mjs';\n"
    f"{JS_TEST}"
)
CJS = {
    **JS,
    "code": "calc.js",
    "code_text": "exports.add = (a, b) => a + b;\nexports.sub = (a, b) => a + b;\n",
    "tests": "test/calc.test.js",
    "adds": "test/calc.test.js::calc > adds two",
    "subtracts": "test/calc.test.js::calc > subtracts",
}
PYTHON = {
    "code": "calc.py",
    "code_text": "def add(a, b): return a + b\ndef sub(a, b): return a + b\n",
    "tests": "tests/test_calc.py",
    "tests_text": (
        "import sys\n\nsys.path.insert(0, '.')\n"
        "import pytest\nfrom calc import add, sub\n\n\n"
        "def test_add():\n    assert add(1, 2) == 3\n\n\n"
        "def test_sub():\n    assert sub(2, 1) == 1\n"
    ),
    "adds": "tests/test_calc.py::test_add",
    "subtracts": "tests/test_calc.py::test_sub",
    "remove": "def test_add():\n    assert add(1, 2) == 3\n\n\n",
    "skip": ("def test_add", "@pytest.mark.skip\ndef test_add"),
}
TOX = (
    "[tox]\nskipsdist = true\n[testenv]\nskip_install = true\n"
    "allowlist_externals = *\ncommands = {}\n"
)
NOX = (
    "import nox\n\n\n@nox.session(venv_backend='none')\n"
    "def tests(session):\n    session.run('python', '-m', 'pytest', '-q')\n"
)
DENO = {
    **JS,
    "tests": "test/calc_test.mjs",
    "tests_text": (
        "import {add, sub} from '../calc.mjs';\n"
        "const is = (a, b) => { if (a !== b) throw new Error('wrong'); };\n"
        "Deno.test('adds two', () => is(add(1, 2), 3));\n"
        "Deno.test('subtracts', () => is(sub(2, 1), 1));\n"
    ),
    "adds": "test/calc_test.mjs::adds two",
    "subtracts": "test/calc_test.mjs::subtracts",
    "remove": "Deno.test('adds two', () => is(add(1, 2), 3));\n",
    "skip": ("Deno.test('adds", "Deno.test.ignore('adds"),
}
CTEST = {
    "code": "calc.sh",
    "code_text": (
        "add() { awk -v a=$1 -v b=$2 'BEGIN { print a + b }'; }\n"
        "sub() { awk -v a=$1 -v b=$2 'BEGIN { print a + b }'; }\n"
    ),
    "tests": "CTestTestfile.cmake",
    "tests_text": (
        'add_test(adds sh -c ". ./calc.sh; test $(add 1 2) = 3")\n'
        'add_test(subtracts sh -c ". ./calc.sh; sub 2 1; test $(sub 2 1) = 1")\n'
    ),
    "adds": "CMakeLists.txt::adds",
    "subtracts": "CMakeLists.txt::subtracts",
    "remove": 'add_test(adds sh -c ". ./calc.sh; test $(add 1 2) = 3")\n',
    "skip": (
        "add_test(subtracts",
        "set_tests_properties(adds PROPERTIES DISABLED TRUE)\nadd_test(subtracts",
    ),
}
RSPEC = {
    "code": "lib/calc.rb",
    "code_text": "def add(a, b) = a + b\ndef sub(a, b) = a + b\n",
    "tests": "spec/calc_spec.rb",
    "tests_text": (
        "require_relative '../lib/calc'\nRSpec.describe 'calc' do\n"
        "  it('adds') { expect(add(1, 2)).to eq 3 }\n"
        "  it('subtracts') { expect(sub(2, 1)).to eq 1 }\nend\n"
    ),
    "adds": "spec/calc_spec.rb::calc adds",
    "subtracts": "spec/calc_spec.rb::calc subtracts",
    "remove": "  it('adds') { expect(add(1, 2)).to eq 3 }\n",
    "skip": ("  it('adds", "  xit('adds"),
}
PHP = {
    "code": "calc.php",
    "code_text": (
        "<?php\nfunction add($a, $b) { return $a + $b; }\n"
        "function sub($a, $b) { return $a + $b; }\n"
    ),
    "plus": "$a + $b",
    "tests": "tests/CalcTest.php",
    "tests_text": (
        "<?php\nrequire_once __DIR__ . '/../calc.php';\n"
        "class CalcTest extends PHPUnit\\Framework\\TestCase {\n"
        "  function testAdd() { $this->assertSame(3, add(1, 2)); }\n"
        "  function testSub() { $this->assertSame(1, sub(2, 1)); }\n}\n"
    ),
    "adds": "tests/CalcTest.php::CalcTest > testAdd",
    "subtracts": "tests/CalcTest.php::CalcTest > testSub",
    "remove": "  function testAdd() { $this->assertSame(3, add(1, 2)); }\n",
    "skip": ("testAdd() { ", "testAdd() { $this->markTestSkipped('no'); "),
}
WORKSPACE = {
    **CJS,
    "code": "packages/a/calc.js",
    "tests": "packages/a/test/calc.test.js",
    "adds": "packages/a/test/calc.test.js::calc > adds two",
    "subtracts": "packages/a/test/calc.test.js::calc > subtracts",
    "tests_text": f"const {{add, sub}} = require('../calc');\n{JS_TEST}",
}
PACKAGES = {
    "package.json": '{"private": true, "workspaces": ["packages/*"]}',
    "pnpm-workspace.yaml": "packages:\n  - packages/*\n",
    "packages/a/package.json": (
        '{"name": "@x/a", "version": "1.0.0", "scripts": {"test": "mocha test"}}'
    ),
    "packages/b/package.json": (
        '{"name": "@x/b", "version": "1.0.0", "scripts": {"test": "mocha test"}}'
    ),
    "packages/b/test/b.js": "it('is in b', () => {});\n",
}
KINDS = {
    "make": Kind(
        tool="make",
        command="make test",
        others={"Makefile": "test:\n\tpython -m pytest -q\n"},
        **PYTHON,
    ),
    "tox": Kind(
        tool="tox",
        command="tox",
        others={"tox.ini": TOX.format(f"{sys.executable} -m pytest -q")},
        **PYTHON,
    ),
    "nox": Kind(tool="nox", command="nox", others={"noxfile.py": NOX}, **PYTHON),
    "deno": Kind(tool="deno", command="deno test", others={}, **DENO),
    "bun": Kind(
        tool="bun",
        command="bun test",
        tests_text=f"import {{add, sub}} from '../calc.mjs';\n{JS_TEST}",
        others={"package.json": "{}"},
        **JS,
    ),
    "mocha": Kind(
        tool="mocha",
        command="mocha test",
        tests_text=f"const {{add, sub}} = require('../calc');\n{JS_TEST}",
        others={"package.json": "{}"},
        **CJS,
    ),
    "mocha behind a chain": Kind(
        tool="mocha",
        command="npm test",
        tests_text=f"const {{add, sub}} = require('../calc');\n{JS_TEST}",
        others={
            "package.json": (
                '{"scripts": {"test": "npm run lint && npm run unit",'
                ' "lint": "node --version", "unit": "mocha test"}}'
            )
        },
        **CJS,
    ),
    "npm workspace": Kind(
        tool="mocha", command="npm test --workspace @x/a", others=PACKAGES, **WORKSPACE
    ),
    "pnpm package": Kind(
        tool="pnpm", command="pnpm --filter @x/a test", others=PACKAGES, **WORKSPACE
    ),
    "yarn workspace": Kind(
        tool="yarn", command="yarn workspace @x/a test", others=PACKAGES, **WORKSPACE
    ),
    "ctest": Kind(tool="ctest", command="ctest", others={}, **CTEST),
    "rspec": Kind(tool="rspec", command="rspec", others={}, **RSPEC),
    "phpunit": Kind(tool="phpunit", command="phpunit tests", others={}, **PHP),
    "unittest": Kind(
        "python",
        "python -m unittest",
        "calc.py",
        "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a + b\n",
        "test_calc.py",
        "import unittest\n"
        "from calc import add, sub\n\n\n"
        "class TestCalc(unittest.TestCase):\n"
        "    def test_add(self):\n"
        "        self.assertEqual(add(1, 2), 3)\n\n"
        "    def test_sub(self):\n"
        "        self.assertEqual(sub(2, 1), 1)\n",
        "test_calc.py::TestCalc::test_add",
        "test_calc.py::TestCalc::test_sub",
        "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n\n",
        ("    def test_add", "    @unittest.skip('no')\n    def test_add"),
        {},
    ),
    "node": Kind(
        tool="node", command="node --test", tests_text=NODE_TEST, others={}, **JS
    ),
    "npm": Kind(
        tool="npm",
        command="npm test",
        tests_text=NODE_TEST,
        others={
            "package.json": (
                '{"scripts": {"test": "FORCE_COLOR=0 node --test test/calc.test.mjs"}}'
            )
        },
        **JS,
    ),
    "jest": Kind(
        tool="jest",
        command="jest",
        tests_text=f"const {{add, sub}} = require('../calc');\n{JS_TEST}",
        others={"package.json": "{}"},
        **CJS,
    ),
    "jest by npm": Kind(
        tool="jest",
        command="npm test -- test",
        tests_text=f"const {{add, sub}} = require('../calc');\n{JS_TEST}",
        others={"package.json": '{"scripts": {"test": "jest --ci"}}'},
        **CJS,
    ),
    "vitest": Kind(
        tool="vitest",
        command="vitest run --globals",
        tests_text=f"import {{add, sub}} from '../calc.mjs';\n{JS_TEST}",
        others={},
        **JS,
    ),
    "go": Kind(
        "go",
        "go test ./...",
        "calc.go",
        "package calc\n\n"
        "func Add(a, b int) int { return a + b }\n"
        "func Sub(a, b int) int { return a + b }\n",
        "calc_test.go",
        "package calc\n\n"
        'import "testing"\n\n'
        "func TestAdd(t *testing.T) {\n"
        "\tif Add(1, 2) != 3 {\n"
        '\t\tt.Fatal("add")\n'
        "\t}\n"
        "}\n\n"
        "func TestSub(t *testing.T) {\n"
        "\tif Sub(2, 1) != 1 {\n"
        '\t\tt.Fatal("sub")\n'
        "\t}\n"
        "}\n",
        "calc_test.go::TestAdd",
        "calc_test.go::TestSub",
        "func TestAdd(t *testing.T) {\n"
        "\tif Add(1, 2) != 3 {\n"
        '\t\tt.Fatal("add")\n'
        "\t}\n"
        "}\n\n",
        (
            "func TestAdd(t *testing.T) {\n",
            'func TestAdd(t *testing.T) {\n\tt.Skip("no")\n',
        ),
        {"go.mod": "module example.com/calc\n\ngo 1.18\n"},
    ),
    "cargo": Kind(
        "cargo",
        "cargo test",
        "src/lib.rs",
        "pub fn add(a: i32, b: i32) -> i32 { a + b }\n"
        "pub fn sub(a: i32, b: i32) -> i32 { a + b }\n",
        "tests/calc.rs",
        "#[test]\nfn adds() { assert_eq!(calc::add(1, 2), 3); }\n\n"
        "#[test]\nfn subtracts() { assert_eq!(calc::sub(2, 1), 1); }\n",
        "tests/calc.rs::adds",
        "tests/calc.rs::subtracts",
        "#[test]\nfn adds() { assert_eq!(calc::add(1, 2), 3); }\n\n",
        ("#[test]\nfn adds", "#[test]\n#[ignore]\nfn adds"),
        {
            "Cargo.toml": (
                '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n'
            )
        },
    ),
}


@dataclass
class Project:
    """One of them on the disk."""

    root: Path
    kind: Kind

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    @property
    def check(self) -> Check:
        return parse_command(self.kind.command, self.root)

    @property
    def commands(self) -> CommandRunner:
        return CommandRunner(self.root)

    async def ran(self) -> CheckRun:
        return await run_check(self.check, self.commands, 300, self.root.parent)

    async def before(self) -> Before:
        baseline = Baseline(step=1).add(1, await self.ran(), ())
        assert baseline.tests
        return Before(baseline, Reference().after(*baseline.tests))

    async def judged(self, before: Before) -> Verdict:
        return await verify(self.check, self.commands, 300, self.root.parent, before)


@cache
def is_installed(tool: str) -> bool:
    """Also a launcher may be there, such as rustup's, that has nothing to launch."""
    asks = [tool, "version" if tool == "go" else "--version"]
    return (
        shutil.which(tool) is not None
        and subprocess.run(asks, capture_output=True, check=False).returncode == 0
    )


def marked_kinds() -> list[object]:
    """Return the kinds, marked by whether their tool must be installed."""
    kinds = []
    for name, kind in KINDS.items():
        mark = pytest.mark.story if kind.tool == "python" else pytest.mark.real
        kinds.append(pytest.param(name, marks=mark))
    return kinds


@pytest.fixture(params=marked_kinds())
def project(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Project:
    kind = KINDS[request.param]
    for name, folder in (
        ("RUSTUP_HOME", ".rustup"),
        ("CARGO_HOME", ".cargo"),
        ("GOCACHE", ".cache/go-build"),
    ):
        monkeypatch.setenv(name, os.environ.get(name, str(HOME / folder)))
    if kind.tool != "python" and not is_installed(kind.tool):
        pytest.skip(f"{kind.tool} is not installed")
    monkeypatch.setenv("npm_config_update_notifier", "false")
    monkeypatch.setenv(
        "PATH", os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    )
    project = Project(tmp_path / "a project", kind)
    for path, text in {
        kind.code: kind.code_text,
        kind.tests: kind.tests_text,
        **kind.others,
    }.items():
        project.write(path, text)
    return project


async def test_each_test_is_told_of_and_its_id_stays(project: Project) -> None:
    ran = await project.ran()
    assert ran.tests
    assert ran.tests.results == {
        project.kind.adds: PASSED,
        project.kind.subtracts: FAILED,
    }, ran.output
    assert ran.tests.is_finished
    assert ran.tests.texts[project.kind.subtracts]
    assert "report" not in ran.output
    assert '"Action"' not in ran.output
    again = await project.ran()
    assert again.tests
    assert again.tests.results == ran.tests.results


async def test_an_old_failure_is_excused_and_a_new_one_is_not(project: Project) -> None:
    before = await project.before()
    assert (await project.judged(before)).verification is Verification.BASELINE
    kind = project.kind
    minus = kind.plus.replace("+", "-")
    project.write(kind.code, kind.code_text.replace(kind.plus, minus))
    verdict = await project.judged(before)
    assert verdict.verification is None
    assert kind.adds in verdict.reason
    first, _, second = kind.code_text.partition(kind.plus)
    project.write(kind.code, f"{first}{kind.plus}{second.replace(kind.plus, minus)}")
    assert (await project.judged(before)).verification is Verification.PASSED


async def test_a_test_that_goes_or_is_skipped_is_missed(project: Project) -> None:
    before, kind = await project.before(), project.kind
    for text, how in (
        (kind.tests_text.replace(kind.remove, ""), "finds"),
        (kind.tests_text.replace(*kind.skip), "skips"),
    ):
        assert text != kind.tests_text
        project.write(kind.tests, text)
        verdict = await project.judged(before)
        assert verdict.verification is None
        assert how in verdict.reason
        assert kind.adds in verdict.reason


async def test_what_cannot_be_read_fails_and_passes_nothing(project: Project) -> None:
    before, kind = await project.before(), project.kind
    project.write(kind.tests, f"{kind.tests_text}\n)(")
    assert (await project.judged(before)).verification is None


@pytest.mark.real
@pytest.mark.skipif(shutil.which("vitest") is None, reason="vitest is not installed")
@pytest.mark.parametrize(
    "output", ["'own.json'", "{json: 'own.json', junit: 'own.xml'}"]
)
async def test_reporters_of_a_vitest_config_do_not_get_in_the_way(
    tmp_path: Path, output: str
) -> None:
    """Their files are not written for a check, and the check's report is not written
    into one of them.
    """
    project = Project(tmp_path / "a project", KINDS["vitest"])
    kind = project.kind
    config = (
        "export default {test: {reporters: ['json', 'junit'], outputFile:"
        f" {output}}}}}"
    )
    for path, text in {
        kind.code: kind.code_text,
        kind.tests: kind.tests_text,
        "vitest.config.mjs": config,
    }.items():
        project.write(path, text)
    ran = await project.ran()
    assert ran.tests
    assert ran.tests.results == {kind.adds: PASSED, kind.subtracts: FAILED}
    assert not list(project.root.glob("own.*"))


EXIT_IN_JS = ("if (add(1, 2) !== 3) throw new Error('add')", "process.exit(0)")
EXIT_IN_PYTHON = ("assert add(1, 2) == 3", "__import__('os')._exit(0)")
EXITS = {
    **dict.fromkeys(("make", "tox", "nox"), EXIT_IN_PYTHON),
    "deno": ("is(add(1, 2), 3)", "Deno.exit(0)"),
    "rspec": ("expect(add(1, 2)).to eq 3", "exit!(0)"),
    "phpunit": ("$this->assertSame(3, add(1, 2));", "exit(0);"),
    "python": ("self.assertEqual(add(1, 2), 3)", "__import__('os')._exit(0)"),
    "cargo": ("assert_eq!(calc::add(1, 2), 3);", "std::process::exit(0);"),
    "go": (
        '"testing"\n\nfunc TestAdd',
        (
            "(\n"
            '\t"os"\n'
            '\t"testing"\n'
            ")\n\n"
            "func TestMain(m *testing.M) { os.Exit(0) }\n\n"
            "func TestAdd"
        ),
    ),
}


async def test_a_program_that_a_test_ends_with_zero_passes_nothing(
    project: Project,
) -> None:
    if project.kind.tool == "ctest":
        pytest.skip("a test of CTest is a program")
    before, kind = await project.before(), project.kind
    text = kind.tests_text.replace(*EXITS.get(kind.tool, EXIT_IN_JS))
    assert text != kind.tests_text
    project.write(kind.tests, text)
    assert (await project.judged(before)).verification is None
