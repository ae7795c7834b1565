"""Tests that a step removed, weakened or only changed, by the text of their files."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.files.charsets import Charsets
from cdd_agent.tickets.declared_files import declare_files
from cdd_agent.tickets.plan import AffectedFile, PlanStep
from cdd_agent.verification.facts import Work
from cdd_agent.verification.lost_tests import (
    Comparison,
    Versions,
    Weakening,
    compare_tests,
)
from cdd_agent.verification.permissions import Permissions
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.testcode.reader import read_tests
from cdd_agent.verification.testcode.test_files import LikelihoodOfTests, place_of
from tests.support.encoded_files import ENCODED, Encoded
from tests.support.examples import count_examples
from tests.support.tables import each_row
from tests.support.verdicts import judge_unchecked


@dataclass(frozen=True)
class Sample:
    """A test file of a language with the two tests `add` and `sub`, and what can become
    of the second.
    """

    path: str
    head: str
    add: str
    sub: str
    empty: str
    skipped: str
    renamed: str
    tail: str = ""

    def file(self, *parts: str) -> str:
        return "\n".join((self.head, *parts, self.tail))


pytestmark = pytest.mark.xdist_group("queries of languages")
"""Compiling the queries takes seconds: one worker does it."""
SAMPLES = {
    "pytest": Sample(
        "tests/test_calc.py",
        "import pytest\nfrom calc import add, sub\n\n",
        "def test_add():\n    assert add(1, 2) == 3\n\n",
        "def test_sub():\n    assert sub(3, 1) == 2\n\n",
        "def test_sub():\n    pass\n\n",
        "@pytest.mark.skip\ndef test_sub():\n    assert sub(3, 1) == 2\n\n",
        "def test_subtracting():\n    assert sub(3, 1) == 2  # renamed\n\n",
    ),
    "unittest": Sample(
        "calc/tests.py",
        "import unittest\n"
        "from calc import add, sub\n\n"
        "class CalcTest(unittest.TestCase):\n",
        "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n\n",
        "    def test_sub(self):\n        self.assertEqual(sub(3, 1), 2)\n\n",
        "    def test_sub(self):\n        '''Subtracts.'''\n\n",
        "    @unittest.skip('later')\n"
        "    def test_sub(self):\n"
        "        self.assertEqual(sub(3, 1), 2)\n\n",
        "    def test_subtracting(self):\n        self.assertEqual(sub(3, 1), 2)\n\n",
    ),
    "Python that cannot be parsed": Sample(
        "tests/test_calc.py",
        "import pytest\nfrom calc import add, sub\nprint 'old'\n",
        "def test_add():\n    assert add(1, 2) == 3\n\n",
        "def test_sub():\n    assert sub(3, 1) == 2\n\n",
        "def test_sub():\n    pass\n\n",
        "def test_sub():\n    pytest.skip()\n    assert sub(3, 1) == 2\n\n",
        "def test_subtracting():\n    assert sub(3, 1) == 2\n\n",
    ),
    "mocha": Sample(
        "test/calc.test.js",
        "const assert = require('assert');\n"
        "const { add, sub } = require('../calc');\n"
        "describe('calc', () => {\n",
        "  it('adds (two)', () => { assert.equal(add(1, 2), 3); });\n",
        "  it('subtracts', () => {\n"
        "    // it('is', () => {\n"
        "    assert.equal(sub(3, 1), 2);\n"
        "  });\n",
        "  it('subtracts', () => {});\n",
        "  it.skip('subtracts', () => { assert.equal(sub(3, 1), 2); });\n",
        "  it('takes away', () => {\n    assert.equal(sub(3, 1), 2);\n  });\n",
        "});\n",
    ),
    "node:test": Sample(
        "test/calc.mjs",
        "import test from 'node:test';\n",
        "test('adds', async (t) => { assert.equal(add(1, 2), 3); });\n",
        "test('subtracts', async (t) => { assert.equal(sub(3, 1), 2); });\n",
        "test('subtracts', async (t) => { return; assert.equal(sub(3, 1), 2); });\n",
        "test('subtracts', { skip: true }, async (t) => { assert.equal(sub(3, 1), 2);"
        " });\n",
        "test('takes away', async (t) => { assert.equal(sub(3, 1), 2) });\n",
    ),
    "jest in TypeScript": Sample(
        "src/__tests__/calc.ts",
        "import { add, sub } from '../calc';\ndescribe('calc', function () {\n",
        "  test('adds', () => expect(add(1, 2)).toBe(3));\n",
        "  test('subtracts', () => expect(sub(3, 1)).toBe(2));\n",
        "  test('subtracts', () => { expect(true).toBe(true); });\n",
        "  xtest('subtracts', () => expect(sub(3, 1)).toBe(2));\n",
        "  test('takes away', () => expect(sub(3, 1)).toBe(2));\n",
        "});\n",
    ),
    "Go": Sample(
        "calc_test.go",
        'package calc\n\nimport "testing"\n\n',
        "func TestAdd(t *testing.T) {\n"
        "\tif Add(1, 2) != 3 {\n"
        '\t\tt.Error("no")\n'
        "\t}\n"
        "}\n",
        "func TestSub(t *testing.T) {\n"
        "\tif Sub(3, 1) != 2 {\n"
        '\t\tt.Fatalf("got }")\n'
        "\t}\n"
        "}\n",
        "func TestSub(t *testing.T) {\n}\n",
        "func TestSub(t *testing.T) {\n"
        '\tt.Skip("later")\n'
        "\tif Sub(3, 1) != 2 {\n"
        '\t\tt.Fatalf("got }")\n'
        "\t}\n"
        "}\n",
        "func TestSubtract(t *testing.T) {\n"
        "\tif Sub(3, 1) != 2 {\n"
        '\t\tt.Fatalf("got }")\n'
        "\t}\n"
        "}\n",
    ),
    "Rust": Sample(
        "src/lib.rs",
        "pub fn sub(a: i32, b: i32) -> i32 { a - b }\n"
        "#[cfg(test)]\n"
        "mod tests {\n"
        "    use super::*;\n",
        "    #[test]\n    fn adds() { assert_eq!(add(1, 2), 3); }\n",
        "    #[test]\n    fn subtracts() { assert_eq!(sub::<'static>(3, 1), 2); }\n",
        "    #[test]\n    fn subtracts() {}\n",
        "    #[test]\n"
        "    #[ignore]\n"
        "    fn subtracts() { assert_eq!(sub::<'static>(3, 1), 2); }\n",
        "    #[test]\n    fn takes_away() { assert_eq!(sub::<'static>(3, 1), 2); }\n",
        "}\n",
    ),
    "JUnit": Sample(
        "src/test/java/CalcTest.java",
        "class CalcTest {\n",
        "    @Test\n"
        '    @DisplayName("adds (it)")\n'
        "    void adds() { assertEquals(3, Calc.add(1, 2)); }\n",
        "    @Test\n"
        "    public void subtracts() throws Exception { assertEquals(2, Calc.sub(3,"
        " 1)); }\n",
        "    @Test\n    public void subtracts() throws Exception { }\n",
        "    @Disabled @Test\n"
        "    public void subtracts() throws Exception { assertEquals(2, Calc.sub(3,"
        " 1)); }\n",
        "    @Test\n"
        "    public void takesAway() throws Exception { assertEquals(2, Calc.sub(3,"
        " 1)); }\n",
        "}\n",
    ),
    "Kotlin": Sample(
        "src/test/kotlin/CalcTest.kt",
        "class CalcTest {\n",
        "    @Test\n    fun `adds two`() { assertEquals(3, add(1, 2)) }\n",
        "    @Test\n    fun `takes one away`() { assertEquals(2, sub(3, 1)) }\n",
        "    @Test\n    fun `takes one away`() { }\n",
        "    @Ignore\n"
        "    @Test\n"
        "    fun `takes one away`() { assertEquals(2, sub(3, 1)) }\n",
        "    @Test\n    fun subtracts() { assertEquals(2, sub(3, 1)) }\n",
        "}\n",
    ),
    "C#": Sample(
        "Calc.Tests/CalcTests.cs",
        "public class CalcTests {\n",
        "    [Fact]\n    public void Adds() { Assert.Equal(3, Calc.Add(1, 2)); }\n",
        "    [Fact]\n"
        "    public async Task Subtracts() { Assert.Equal(2, Calc.Sub(3, 1)); }\n",
        "    [Fact]\n    public async Task Subtracts() { }\n",
        '    [Fact(Skip = "later")]\n'
        "    public async Task Subtracts() { Assert.Equal(2, Calc.Sub(3, 1)); }\n",
        "    [Fact]\n"
        "    public async Task TakesAway() { Assert.Equal(2, Calc.Sub(3, 1)); }\n",
        "}\n",
    ),
    "GoogleTest": Sample(
        "calc_unittest.cc",
        '#include "calc.h"\n',
        "TEST(Calc, Adds) { EXPECT_EQ(add(1, 2), 3); }\n",
        "TEST_F(Calc, Subtracts) {\n  EXPECT_EQ(sub(3, 1), 2);\n}\n",
        "TEST_F(Calc, Subtracts) {\n}\n",
        "TEST_F(Calc, DISABLED_Subtracts) {\n  EXPECT_EQ(sub(3, 1), 2);\n}\n",
        "TEST_F(Calc, TakesAway) {\n  EXPECT_EQ(sub(3, 1), 2);\n}\n",
    ),
    "RSpec": Sample(
        "spec/calc_spec.rb",
        "RSpec.describe Calc do\n",
        "  it 'adds' do\n    expect(add(1, 2)).to eq(3)\n  end\n\n",
        "  it 'subtracts' do\n    expect(sub(3, 1)).to eq(2)\n  end\n\n",
        "  it 'subtracts' do\n  end\n\n",
        "  xit 'subtracts' do\n    expect(sub(3, 1)).to eq(2)\n  end\n\n",
        "  it 'takes away' do\n    expect(sub(3, 1)).to eq(2)\n  end\n\n",
        "end\n",
    ),
    "minitest": Sample(
        "test/calc_test.rb",
        "class CalcTest < Minitest::Test\n",
        "  def test_add\n    assert_equal 3, add(1, 2)\n  end\n\n",
        "  def test_sub\n    assert_equal 2, sub(3, 1)\n  end\n\n",
        "  def test_sub\n  end\n\n",
        "  def test_sub\n    skip\n    assert_equal 2, sub(3, 1)\n  end\n\n",
        "  def test_subtract\n    assert_equal 2, sub(3, 1)\n  end\n\n",
        "end\n",
    ),
    "ExUnit": Sample(
        "test/calc_test.exs",
        "defmodule CalcTest do\n  use ExUnit.Case\n",
        '  test "adds" do\n    assert Calc.add(1, 2) == 3\n  end\n\n',
        '  test "subtracts" do\n    assert Calc.sub(3, 1) == 2\n  end\n\n',
        '  test "subtracts" do\n  end\n\n',
        "  @tag :skip\n"
        '  test "subtracts" do\n'
        "    assert Calc.sub(3, 1) == 2\n"
        "  end\n\n",
        '  test "takes away" do\n    assert Calc.sub(3, 1) == 2\n  end\n\n',
        "end\n",
    ),
    "PHPUnit": Sample(
        "tests/CalcTest.php",
        "<?php\nclass CalcTest extends TestCase {\n",
        "    public function testAdd(): void { $this->assertSame(3, add(1, 2)); }\n",
        "    public function testSub(): void { $this->assertSame(2, sub(3, 1)); }\n",
        "    public function testSub(): void { }\n",
        "    public function testSub(): void { $this->markTestSkipped();"
        " $this->assertSame(2, sub(3, 1)); }\n",
        "    public function testSubtract(): void { $this->assertSame(2, sub(3, 1));"
        " }\n",
        "}\n",
    ),
    "XCTest": Sample(
        "Tests/CalcTests/CalcTests.swift",
        "final class CalcTests: XCTestCase {\n",
        "    func testAdd() { XCTAssertEqual(add(1, 2), 3) }\n",
        "    func testSub() throws { XCTAssertEqual(sub(3, 1), 2) }\n",
        "    func testSub() throws { }\n",
        "    func testSub() throws { throw XCTSkip(); XCTAssertEqual(sub(3, 1), 2) }\n",
        "    func testSubtract() throws { XCTAssertEqual(sub(3, 1), 2) }\n",
        "}\n",
    ),
    "bats": Sample(
        "test/calc.bats",
        "#!/usr/bin/env bats\n",
        '@test "adds" {\n  [ "$(calc 1 + 2)" -eq 3 ]\n}\n',
        '@test "subtracts" {\n  [ "$(calc 3 - 1)" -eq 2 ]\n}\n',
        '@test "subtracts" {\n  true\n}\n',
        '@test "subtracts" {\n  skip "later"\n  [ "$(calc 3 - 1)" -eq 2 ]\n}\n',
        '@test "takes away" {\n  [ "$(calc 3 - 1)" -eq 2 ]\n}\n',
    ),
    "C with a main": Sample(
        "tests/test_calc.c",
        '#include <assert.h>\n#include "calc.h"\n',
        "static void test_add(void) { assert(add(1, 2) == 3); }\n",
        "static void test_sub(void) { assert(sub(3, 1) == 2); }\n",
        "static void test_sub(void) { }\n",
        "#if 0\n"
        "#endif\n"
        "static void test_sub(void) { TEST_IGNORE(); assert(sub(3, 1) == 2); }\n",
        "static void test_subtract(void) { assert(sub(3, 1) == 2); }\n"
        "#define test_sub test_subtract\n",
        "int main(void) { test_add(); test_sub(); return 0; }\n",
    ),
}
each_language = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)

ASSERTIONS = {
    "pytest": ("assert sub(3, 1) == 2", "\n    "),
    "unittest": ("self.assertEqual(sub(3, 1), 2)", "\n        "),
    "Python that cannot be parsed": ("assert sub(3, 1) == 2", "\n    "),
    "mocha": ("assert.equal(sub(3, 1), 2)", "; "),
    "node:test": ("assert.equal(sub(3, 1), 2)", "; "),
    "jest in TypeScript": ("expect(sub(3, 1)).toBe(2)", " && "),
    "Go": ('if Sub(3, 1) != 2 {\n\t\tt.Fatalf("got }")\n\t}', "\n\t"),
    "Rust": ("assert_eq!(sub::<'static>(3, 1), 2)", ";\n        "),
    "JUnit": ("assertEquals(2, Calc.sub(3, 1))", "; "),
    "Kotlin": ("assertEquals(2, sub(3, 1))", "; "),
    "C#": ("Assert.Equal(2, Calc.Sub(3, 1))", "; "),
    "GoogleTest": ("EXPECT_EQ(sub(3, 1), 2)", ";\n  "),
    "RSpec": ("expect(sub(3, 1)).to eq(2)", "\n    "),
    "minitest": ("assert_equal 2, sub(3, 1)", "\n    "),
    "ExUnit": ("assert Calc.sub(3, 1) == 2", "\n    "),
    "PHPUnit": ("$this->assertSame(2, sub(3, 1))", "; "),
    "XCTest": ("XCTAssertEqual(sub(3, 1), 2)", "; "),
    "bats": ('[ "$(calc 3 - 1)" -eq 2 ]', "\n  "),
    "C with a main": ("assert(sub(3, 1) == 2)", "; "),
}
"""The assertion in `sub`, and what separates it from another one."""


def other_values(text: str) -> str:
    return text.replace("3", "5").replace("2", "4")


def with_second_check(language: str) -> str:
    """Return `sub` with one assertion more."""
    assertion, joint = ASSERTIONS[language]
    sub = SAMPLES[language].sub
    assert assertion in sub
    return sub.replace(assertion, f"{assertion}{joint}{other_values(assertion)}")


def became(path: str, before: str | None, after: str | None) -> Comparison:
    versions = (None if text is None else text.encode() for text in (before, after))
    return compare_tests([Versions(path, *versions)])


@each_row("encoded", ENCODED)
def test_tests_of_a_file_in_any_encoding(tmp_path: Path, encoded: Encoded) -> None:
    encoded.write(tmp_path)
    one = f"def test_one():\n    assert shop() == '{encoded.word}'\n\n\n"
    two = f"def test_two():\n    assert shop() != '{encoded.word}'\n"
    path = f"test_{encoded.path}"
    charsets = Charsets(tmp_path)
    if encoded.declared:
        (tmp_path / ".editorconfig").write_text(
            f"root = true\n[*]\ncharset = {encoded.declared}\n"
        )
    head = encoded.text.partition("\n")[0] + "\n" if "coding" in encoded.text else ""
    before, weaker, after = (
        encoded.mark + text.encode(encoded.codec)
        for text in (
            f"{head}{one}{two}",
            f"{head}{one}{two.replace('assert ', '')}",
            f"{head}{one}",
        )
    )
    same = compare_tests([Versions(path, before, before)], charsets)
    assert (same.removed, same.changed) == ((), ())
    weakened = compare_tests([Versions(path, before, weaker)], charsets).weakened
    assert weakened == {TestId(path, "test_two"): Weakening.UNCHECKED}
    removed = compare_tests([Versions(path, before, after)], charsets)
    assert removed.removed == (TestId(path, "test_two"),)
    assert encoded.word in removed.contents[path]


def lost(changes: Comparison) -> int:
    return len(changes.removed) + len(changes.weakened)


def kinds(changes: Comparison) -> list[Weakening]:
    return list(changes.weakened.values())


@each_language
def test_a_deleted_test_is_removed(sample: Sample) -> None:
    whole = sample.file(sample.add, sample.sub)
    assert len(became(sample.path, whole, sample.file(sample.add)).removed) == 1
    assert len(became(sample.path, whole, None).removed) == 2
    assert len(became(sample.path, whole, "").removed) == 2
    assert lost(became(sample.path, whole, whole)) == 0


@each_language
def test_an_emptied_test_is_weakened(sample: Sample) -> None:
    changes = became(
        sample.path,
        sample.file(sample.add, sample.sub),
        sample.file(sample.add, sample.empty),
    )
    assert lost(changes) == 1, changes
    assert kinds(changes)[0] in (Weakening.EMPTIED, Weakening.UNCHECKED)
    assert (
        lost(became(sample.path, sample.file(sample.empty), sample.file(sample.sub)))
        == 0
    )


@each_language
def test_a_test_that_is_skipped_is_told_from_one_that_was_skipped_before(
    sample: Sample,
) -> None:
    changes = became(
        sample.path,
        sample.file(sample.add, sample.sub),
        sample.file(sample.add, sample.skipped),
    )
    assert (lost(changes), kinds(changes)) == (1, [Weakening.SKIPPED]), changes
    assert (
        lost(
            became(
                sample.path, sample.file(sample.skipped), sample.file(sample.skipped)
            )
        )
        == 0
    )


@each_language
def test_a_test_with_another_name_is_not_gone(sample: Sample) -> None:
    changes = became(
        sample.path,
        sample.file(sample.add, sample.sub),
        sample.file(sample.renamed, sample.add),
    )
    assert lost(changes) == 0, changes
    assert not changes.changed


@each_language
def test_a_test_in_another_file_is_not_gone(sample: Sample) -> None:
    folder, _, name = sample.path.rpartition("/")
    other = f"{folder}/more/{name}".removeprefix("/")
    both, one, two = (
        sample.file(*parts).encode()
        for parts in ((sample.add, sample.sub), (sample.add,), (sample.sub,))
    )
    changes = compare_tests(
        [Versions(sample.path, both, one), Versions(other, None, two)]
    )
    assert lost(changes) == 0, changes


@each_language
def test_a_test_that_is_more_than_before_is_no_matter(sample: Sample) -> None:
    changes = became(
        sample.path, sample.file(sample.sub), sample.file(sample.add, sample.sub)
    )
    assert lost(changes) == 0, changes


# --- Python, and what is special elsewhere --------------------------------------------

PY = "tests/test_calc.py"
SUBTRACTS = "def test_sub():\n    assert sub(3, 1) == 2\n"
CASES = (
    "@pytest.mark.parametrize('a, b, c', [{}])\n"
    "def test_sub(a, b, c):\n"
    "    assert sub(a, b) == c\n"
)
TWO = (
    "def test_one():\n"
    "    assert sub(3, 1) == 2\n\n"
    "def test_two():\n"
    "    assert sub(5, 1) == 4\n"
)
MOCHA = (
    "it('adds', () => { assert.equal(add(1, 2), 3); });\n"
    "it('subtracts', () => { assert.equal(sub(3, 1), 2); });\n"
)
PROGRAM = (
    "const assert = require('assert');\n"
    "assert.equal(add(1, 2), 3);\n"
    "assert.equal(sub(3, 1), 2);\n"
)
SCRIPT = '#!/bin/sh\nset -e\ntest "$(./add 1 2)" = 3\ntest "$(./sub 3 1)" = 2\n'

GO_RUNS = """\
func TestSub(t *testing.T) {
\tt.Run("one", func(t *testing.T) { check(t, Sub(3, 1), 2) })
\tt.Run("two", func(t *testing.T) { check(t, Sub(5, 1), 4) })
}
"""
RUST_PROGRAM = (
    "fn main() {\n"
    "    if std::env::args().count() < 2 { std::process::exit(2); }\n"
    "    run();\n"
    "}\n"
)
RUST_TEST = "#[test]\nfn adds() { assert_eq!(add(1, 2), 3); }\n"
EQUAL = "def equal(a, b):\n    assert a == b\n\n"

TAKEN: dict[str, tuple[str, str, str | None]] = {
    "an easier test instead": (
        PY,
        SUBTRACTS,
        "def test_easy():\n    assert sub(3, 1) == 4\n",
    ),
    "an easier test with the same values": (
        PY,
        SUBTRACTS,
        "def test_easy():\n    assert (3, 1, 2)\n",
    ),
    "the name means something else": (PY, SUBTRACTS, f"{SUBTRACTS}\ntest_sub = None\n"),
    "the name is deleted": (PY, SUBTRACTS, f"{SUBTRACTS}\ndel test_sub\n"),
    "a second one of its name": (
        PY,
        SUBTRACTS,
        f"{SUBTRACTS}\ndef test_sub():\n    pass\n",
    ),
    "never defined": (
        PY,
        SUBTRACTS,
        f"if False:\n    {SUBTRACTS.replace(chr(10), chr(10) + '    ')}\n",
    ),
    "within a function": (
        PY,
        SUBTRACTS,
        f"def later():\n    {SUBTRACTS.replace(chr(10), chr(10) + '    ')}\n",
    ),
    "in a class that nobody collects": (
        PY,
        SUBTRACTS,
        "class Old:\n    def test_sub(self):\n        assert sub(3, 1) == 2\n",
    ),
    "in a comment": (PY, SUBTRACTS, "# " + SUBTRACTS.replace("\n", "\n# ")),
    "in a string": (PY, SUBTRACTS, f"'''\n{SUBTRACTS}'''\n"),
    "asserts nothing": (PY, SUBTRACTS, "def test_sub():\n    sub(3, 1)\n"),
    "prints instead": (PY, SUBTRACTS, "def test_sub():\n    print(sub(3, 1) == 2)\n"),
    "asserts what is always true": (
        PY,
        SUBTRACTS,
        "def test_sub():\n    assert 1 + 1 == 2\n",
    ),
    "returns first": (
        PY,
        SUBTRACTS,
        "def test_sub():\n    return\n    assert sub(3, 1) == 2\n",
    ),
    "in a dead branch": (
        PY,
        SUBTRACTS,
        "def test_sub():\n    if 0:\n        assert sub(3, 1) == 2\n",
    ),
    "no helper is left to check": (
        PY,
        (
            "def equal(a, b):\n"
            "    assert a == b\n\n"
            "def test_sub():\n"
            "    equal(sub(3, 1), 2)\n"
        ),
        "def equal(a, b):\n    pass\n\ndef test_sub():\n    equal(sub(3, 1), 2)\n",
    ),
    "fewer cases": (
        PY,
        CASES.format("(3, 1, 2), (5, 1, 4), (1, 1, 0)"),
        CASES.format("(3, 1, 2), (1, 1, 0)"),
    ),
    "all skipped by a mark": (
        PY,
        SUBTRACTS,
        f"pytestmark = pytest.mark.skip\n{SUBTRACTS}",
    ),
    "all skipped when it is imported": (
        PY,
        SUBTRACTS,
        f"pytest.skip('x', allow_module_level=True)\n{SUBTRACTS}",
    ),
    "all skipped for what is not there": (
        PY,
        SUBTRACTS,
        f"pytest.importorskip('no_such')\n{SUBTRACTS}",
    ),
    "no test, it says": (PY, SUBTRACTS, f"__test__ = False\n{SUBTRACTS}"),
    "skipped within": (
        PY,
        SUBTRACTS,
        "def test_sub():\n    pytest.skip()\n    assert sub(3, 1) == 2\n",
    ),
    "expected to fail": (PY, SUBTRACTS, f"@pytest.mark.xfail(reason='x')\n{SUBTRACTS}"),
    "skipped if true": (
        PY,
        SUBTRACTS,
        f"@pytest.mark.skipif(True, reason='x')\n{SUBTRACTS}",
    ),
    "fewer assertions at the top of a file": (
        PY,
        "assert add(1) == 2\nassert sub(2) == 1\n",
        "assert add(1) == 2\n",
    ),
    "a file that runners do not find": ("test/calc.test.js", MOCHA, None),
    "only another one": (
        "test/a.js",
        MOCHA,
        MOCHA.replace("it('adds'", "it.only('adds'"),
    ),
    "only another one, shorter": (
        "test/a.js",
        MOCHA,
        MOCHA.replace("it('adds'", "fit('adds'"),
    ),
    "pending": (
        "test/a.js",
        MOCHA,
        MOCHA.replace(
            "'subtracts', () => { assert.equal(sub(3, 1), 2); }", "'subtracts'"
        ),
    ),
    "its group is skipped": (
        "test/a.js",
        f"describe('x', () => {{\n{MOCHA}}});",
        f"describe.skip('x', () => {{\n{MOCHA}}});",
    ),
    "skips itself": (
        "test/a.js",
        MOCHA,
        MOCHA.replace(
            "() => { assert.equal(sub", "function () { this.skip(); assert.equal(sub"
        ),
    ),
    "asserts nothing in JavaScript": (
        "test/a.js",
        MOCHA,
        MOCHA.replace("assert.equal(sub(3, 1), 2)", "sub(3, 1)"),
    ),
    "a program of assertions with fewer": (
        "test/calc.js",
        PROGRAM,
        PROGRAM.replace("assert.equal(sub(3, 1), 2);\n", ""),
    ),
    "a program of assertions with none": (
        "test/calc.js",
        PROGRAM,
        "console.log('ok');\n",
    ),
    "a script with fewer lines": (
        "tests/run.sh",
        SCRIPT,
        SCRIPT.replace('test "$(./sub 3 1)" = 2\n', ""),
    ),
    "a program in a folder for tests": ("tests/cli.rs", RUST_PROGRAM, "fn main() {}\n"),
    "a program that is called a test": ("src/calc-test.js", PROGRAM, None),
    "a test beside what it tests": (
        "src/main.rs",
        f"{RUST_PROGRAM}{RUST_TEST}",
        RUST_PROGRAM,
    ),
    "a script that does nothing": ("tests/run.sh", SCRIPT, "#!/bin/sh\nexit 0\n"),
    "a script that is gone": ("tests/run.sh", SCRIPT, None),
    "an expected output that is gone": ("tests/expected/sub.txt", "2\n", None),
    "an expected output that is emptied": ("tests/expected/sub.txt", "2\n", ""),
    "a snapshot that is gone": (
        "src/__snapshots__/calc.test.js.snap",
        "exports[`x`] = `2`;\n",
        None,
    ),
    "a table test's run": (
        "calc_test.go",
        GO_RUNS,
        GO_RUNS.replace(
            '\tt.Run("two", func(t *testing.T) { check(t, Sub(5, 1), 4) })\n', ""
        ),
    ),
    "no longer called by its program": (
        "tests/test_c.c",
        *(
            "static void test_sub(void) { assert(sub(3, 1) == 2); }\n"
            f"int main(void) {{ {call} return 0; }}\n"
            for call in ("test_sub();", "")
        ),
    ),
}


EACH = "test.each([[3, 2],[5, 4]])('%i', (a, c) => { expect(sub(a)).toBe(c); });\n"
CSV = (
    'class A {{ @ParameterizedTest @CsvSource({{"3,2"{}}})\n'
    "void subs(int a, int c) {{ assertEquals(c, sub(a)); }} }}\n"
)
INLINE = (
    "class A {{\n[Theory] [InlineData(3, 2)] {}\n"
    "public void Subs(int a, int c) {{ Assert.Equal(c, Sub(a)); }} }}\n"
)
RSTEST = (
    "#[rstest]\n#[case(3, 2)]\n{}fn subs(a: u8, c: u8) {{ assert_eq!(sub(a), c); }}\n"
)
TABLE = (
    "func TestSub(t *testing.T) {{\n\tfor _, c := range []struct{{a, c int}}{{\n"
    "\t\t{{3, 2}},\n{}\t}} {{\n\t\tif Sub(c.a) != c.c {{ t.Fatal(c) }}\n\t}}\n}}\n"
)
IN_CLASS = "class A {\n@Test void subs() { assertEquals(2, sub(3)); }\n}\n"
MACRO = "rgtest!(subs, |dir: Dir| {\n    assert_eq!(sub(3), 2);\n});\n"
TAKEN |= {
    "fewer rows of jest": ("a.test.js", EACH, EACH.replace(",[5, 4]", "")),
    "a row of jest in a comment": (
        "a.test.ts",
        EACH,
        EACH.replace(",[5, 4]", "/*,[5, 4]*/"),
    ),
    "fewer rows of JUnit": ("ATest.java", CSV.format(', "5,4"'), CSV.format("")),
    "fewer rows of xUnit": (
        "ATests.cs",
        INLINE.format("[InlineData(5, 4)]"),
        INLINE.format(""),
    ),
    "fewer rows of rstest": (
        "tests/a.rs",
        RSTEST.format("#[case(5, 4)]\n"),
        RSTEST.format(""),
    ),
    "fewer rows of a table in Go": (
        "a_test.go",
        TABLE.format("\t\t{5, 4},\n"),
        TABLE.format(""),
    ),
    "its class is skipped": ("ATest.java", IN_CLASS, f"@Disabled {IN_CLASS}"),
    "its class in Python is skipped": (
        PY,
        "class TestSub:\n    def test_sub(self):\n        assert sub(3, 1) == 2\n",
        (
            "@pytest.mark.skip\nclass TestSub:\n    def test_sub(self):\n"
            "        assert sub(3, 1) == 2\n"
        ),
    ),
    "a test without a name": (
        "spec/a_spec.rb",
        "describe A do\n  it { is_expected.to eq 3 }\nend\n",
        "describe A do\n  it { }\nend\n",
    ),
    "a test that a macro makes": ("tests/a.rs", f"{MACRO}{RUST_TEST}", RUST_TEST),
    "broken beyond recognition": (
        "test/a.js",
        MOCHA,
        MOCHA.replace("it('subtracts', () =>", "it(}'subtracts ((=>"),
    ),
    "an assertion in text that cannot be parsed": (
        "test/a.test.js",
        "}}} ((( assert.equal(add(1, 2), 3);\nassert.equal(sub(3, 1), 2);\n",
        "}}} ((( assert.equal(add(1, 2), 3);\n",
    ),
}


@each_row(("path", "before", "after"), TAKEN.values(), ids=TAKEN)
def test_what_is_taken_away_is_found(path: str, before: str, after: str | None) -> None:
    assert lost(became(path, before, after))
    assert lost(became(path, before, before)) == 0


@each_row(
    "name",
    ["tests/calc_old.py", "tests/test_calc.py.bak", "old/test_calc.txt", "src/calc.py"],
)
def test_a_test_that_runners_do_not_find_any_more_is_gone(name: str) -> None:
    content = SUBTRACTS.encode()
    assert compare_tests(
        [Versions(PY, content, None), Versions(name, None, content)]
    ).removed


HONEST = {
    "another expectation": (PY, SUBTRACTS, SUBTRACTS.replace("== 2", "== 5 - 3")),
    "in other words": (
        PY,
        SUBTRACTS,
        "def test_sub():\n    result = sub(3, 1)\n    assert result == 2, 'no'\n",
    ),
    "a helper checks": (
        PY,
        SUBTRACTS,
        f"{EQUAL}def test_sub():\n    equal(sub(3, 1), 2)\n",
    ),
    "a helper from elsewhere": (
        PY,
        SUBTRACTS,
        "from helpers import same\n\ndef test_sub():\n    same(sub(3, 1), 2)\n",
    ),
    "renamed with its function": (PY, SUBTRACTS, SUBTRACTS.replace("sub", "subtract")),
    "in a class": (
        PY,
        SUBTRACTS,
        "class TestSub:\n    def test_sub(self):\n        assert sub(3, 1) == 2\n",
    ),
    "from unittest to pytest": (
        PY,
        (
            "class SubTest(TestCase):\n"
            "    def test_sub(self):\n"
            "        self.assertEqual(sub(3, 1), 2)\n"
        ),
        SUBTRACTS,
    ),
    "one for several": (PY, TWO, CASES.format("(3, 1, 2), (5, 1, 4)")),
    "one for several, with more": (
        PY,
        TWO,
        CASES.format("(3, 1, 2), (5, 1, 4), (1, 1, 0)"),
    ),
    "one for several, computed": (
        PY,
        TWO,
        "SETS = [(3, 1, 2), (5, 1, 4)]\n"
        + CASES.replace("[{}]", "[(3, 1, 2), (5, 1, 4), *SETS]"),
    ),
    "both in one": (
        PY,
        TWO,
        "def test_both():\n    assert sub(3, 1) == 2\n    assert sub(5, 1) == 4\n",
    ),
    "several for one": (PY, CASES.format("(3, 1, 2), (5, 1, 4)"), TWO),
    "other cases": (
        PY,
        CASES.format("(3, 1, 2), (5, 1, 4)"),
        CASES.format("(3, 1, 2), (6, 1, 5)"),
    ),
    "another import": (
        PY,
        f"from calc import sub\n{SUBTRACTS}",
        f"from pkg.calc import sub\n\n\n{SUBTRACTS}",
    ),
    "a fixture": (
        PY,
        SUBTRACTS,
        "def test_sub(calc):\n    assert calc.sub(3, 1) == 2\n",
    ),
    "async": (
        PY,
        SUBTRACTS,
        f"@pytest.mark.asyncio\nasync {SUBTRACTS}".replace("sub(3", "await sub(3"),
    ),
    "raises": (
        PY,
        SUBTRACTS,
        "def test_sub():\n    with pytest.raises(TypeError):\n        sub('3', 1)\n",
    ),
    "no longer skipped": (PY, f"@pytest.mark.skip\n{SUBTRACTS}", SUBTRACTS),
    "no test at all, and now one": (PY, "", SUBTRACTS),
    "another layout": (
        PY,
        SUBTRACTS,
        "def test_sub( ):\n    # it subtracts\n    assert (sub(3, 1)\n        == 2)\n",
    ),
    "a helper file of no use any more": (
        "tests/helpers.py",
        "def make():\n    return 1\n",
        None,
    ),
    "an empty package file": ("tests/__init__.py", "", None),
    "what a cache holds": ("tests/__pycache__/test_calc.cpython-312.pyc", "x", None),
    "a page of words": ("tests/README.md", "Run them.\n", None),
    "another expected output": ("tests/expected/sub.txt", "2\n", "2.0\n"),
    "a program that is no test": (
        "tests/helpers.js",
        "function same(a, b) { assert.equal(a, b); }\n",
        None,
    ),
    "promises for callbacks": (
        "test/a.js",
        (
            "it('saves', function (done) { save(1, (error) => { assert.ifError(error);"
            " done(); }); });\n"
        ),
        (
            "it('saves', async () => { await save(1); assert.ok(true === await"
            " saved(1)); });\n"
        ),
    ),
    "a table for several": (
        "test/a.test.ts",
        (
            "test('one', () => { expect(sub(3, 1)).toBe(2); });\n"
            "test('two', () => { expect(sub(5, 1)).toBe(4); });\n"
        ),
        (
            "test.each([\n"
            "  [3, 1, 2],\n"
            "  [5, 1, 4],\n"
            "])('%i - %i', (a, b, c) => { expect(sub(a, b)).toBe(c); });\n"
        ),
    ),
    "a group around them": (
        "test/a.js",
        MOCHA,
        f"describe('calc', () => {{\n{MOCHA}}});\n",
    ),
    "from words to another word": (
        "test/a.js",
        MOCHA,
        MOCHA.replace("it('subtracts'", "test('subtracts'"),
    ),
    "a regex with quotes": ("test/a.js", MOCHA, f"const quotes = /['\"{{(]/;\n{MOCHA}"),
    "from Go's errors to a helper": (
        "calc_test.go",
        (
            "func TestSub(t *testing.T) {\n"
            "\tif got := Sub(3, 1); got != 2 {\n"
            '\t\tt.Errorf("got %d", got)\n'
            "\t}\n"
            "}\n"
        ),
        "func TestSub(t *testing.T) {\n\trequire.Equal(t, 2, Sub(3, 1))\n}\n",
    ),
    "a script with more lines": (
        "tests/run.sh",
        SCRIPT,
        f'{SCRIPT}test "$(./sub 5 1)" = 4\n',
    ),
    "a script in other words": (
        "tests/run.sh",
        SCRIPT,
        SCRIPT.replace('test "$(./sub 3 1)" = 2', "./sub 3 1 | grep -qx 2"),
    ),
    "a program with a framework": ("test/calc.js", PROGRAM, MOCHA),
    **{
        f"a program that is no test: {path}": (path, before, after)
        for path, before, after in (
            (
                "src/main.rs",
                RUST_PROGRAM,
                RUST_PROGRAM.replace("std::process::exit(2)", "return"),
            ),
            (
                "src/main.rs",
                RUST_PROGRAM.replace("std::process::exit(2)", 'panic!("no file")'),
                "fn main() {}\n",
            ),
            (
                "src/bin/app.rs",
                RUST_PROGRAM.replace("std::process::exit(2)", "check_usage(2)"),
                None,
            ),
            (
                "src/JobSpec.ts",
                "check(config);\nexport class JobSpec {}\n",
                "export class JobSpec {}\n",
            ),
            (
                "src/main/java/PodSpec.java",
                "class PodSpec { static void main(String[] a) { verify(a); } }\n",
                None,
            ),
            ("src/JobSpec.py", "validate(config)\n", "config = {}\n"),
        )
    },
    "no test file": ("src/calc.py", "def test():\n    assert True\n", None),
}


@each_row(("path", "before", "after"), HONEST.values(), ids=HONEST)
def test_honest_work_on_tests_is_not_blamed(
    path: str, before: str, after: str | None
) -> None:
    changes = became(path, before, after)
    assert lost(changes) == 0, changes


def test_tests_with_values_in_their_titles_are_known_as_tables() -> None:
    table = (
        "describe('calc', () => { test.each([%s])('adds %%i', (a) => {"
        " expect(add(a)).toBe(a); }); });\n"
    )
    changes = became("test/a.test.js", f"{MOCHA}{table % 1}", f"{MOCHA}{table % 2}")
    assert [str(test) for test in changes.tables] == ["test/a.test.js::calc > adds %i"]
    assert lost(changes) == 0
    assert became("test/a.test.js", table % 1, MOCHA).tables == ()


THREE = (
    "def test_sub():\n"
    "    assert sub(3, 1) == 2\n"
    "    assert sub(5, 1) == 4\n"
    "    assert sub(9, 1) == 8\n"
)
IN_A_LOOP = (
    "def test_sub():\n"
    "    for a, c in [(3, 2), (5, 4), (9, 8)]:\n"
    "        assert sub(a, 1) == c\n"
)
SKIPIF = f"@pytest.mark.skipif(sys.platform == 'win32', reason='x')\n{SUBTRACTS}"
SKIP_INSIDE = SUBTRACTS.replace(
    "    assert", "    if windows:\n        pytest.skip()\n    assert"
)
COMPARED: dict[str, tuple[str, str, str]] = {
    "nothing": (SUBTRACTS, SUBTRACTS, ""),
    "a test more": (SUBTRACTS, f"{SUBTRACTS}\ndef test_more():\n    assert True\n", ""),
    "another expectation": (SUBTRACTS, SUBTRACTS.replace("== 2", "== 3"), "changed"),
    "no expectation": (SUBTRACTS, SUBTRACTS.replace(" == 2", ""), "changed"),
    "a skip mark on a condition": (SUBTRACTS, SKIPIF, Weakening.MAYBE_SKIPPED),
    "a skip in a branch": (SUBTRACTS, SKIP_INSIDE, Weakening.MAYBE_SKIPPED),
    "from a condition to always": (
        SKIPIF,
        f"@pytest.mark.skip\n{SUBTRACTS}",
        Weakening.SKIPPED,
    ),
    "an xfail mark": (
        SUBTRACTS,
        f"@pytest.mark.xfail\n{SUBTRACTS}",
        Weakening.SKIPPED,
    ),
    "no longer skipped": (SKIPIF, SUBTRACTS, ""),
    "an assertion less": (
        THREE,
        THREE.replace("    assert sub(9, 1) == 8\n", ""),
        Weakening.FEWER_CHECKS,
    ),
    "an assertion less, with the same values": (
        "def test_sub():\n    assert sub(3, 1) == 2\n    assert sub(3, 2) == 1\n",
        SUBTRACTS + "    print(1, 2, 3)\n",
        Weakening.FEWER_CHECKS,
    ),
    "an assertion for a call": (
        THREE,
        THREE.replace("assert sub(9, 1) == 8", "prepare(9, 1)"),
        Weakening.FEWER_CHECKS,
    ),
    "all in a helper": (
        THREE,
        THREE.replace("assert sub(9, 1) == 8", "same(sub(9, 1), 8)"),
        "changed",
    ),
    "a loop over all values": (THREE, IN_A_LOOP, "changed"),
    "a loop over fewer values": (
        IN_A_LOOP,
        IN_A_LOOP.replace(", (9, 8)", ""),
        Weakening.FEWER_CHECKS,
    ),
    "no assertion": (
        THREE,
        THREE.replace("assert sub", "print"),
        Weakening.UNCHECKED,
    ),
    "fewer rows": (
        CASES.format("(3, 1, 2), (5, 1, 4)"),
        CASES.format("(3, 1, 2)"),
        Weakening.FEWER_ROWS,
    ),
}


def test_fewer_assertions_rows_and_marks_weaken_a_test_and_other_changes_do_not() -> (
    None
):
    wrong = []
    for name, (before, after, expected) in COMPARED.items():
        changes = became(PY, before, after)
        found = [*kinds(changes), *("changed" for _ in changes.changed)]
        if found != [expected] * bool(expected) or changes.removed:
            wrong.append((name, found))
    assert wrong == []


def id_of_sub(language: str) -> str:
    sample = SAMPLES[language]
    both, one = sample.file(sample.add, sample.sub), sample.file(sample.add)
    (test,) = became(sample.path, both, one).removed
    return str(test)


def what_becomes_of_sub(language: str) -> dict[str, tuple[Comparison, bool]]:
    """Return each kind of change, and whether the step needs leave for it."""
    sample = SAMPLES[language]
    folder, _, name = sample.path.rpartition("/")
    twice = with_second_check(language)
    other = other_values(sample.renamed)

    def change(before: tuple[str, ...], after: tuple[str, ...]) -> Comparison:
        return became(sample.path, sample.file(*before), sample.file(*after))

    moved = [
        Versions(
            sample.path,
            sample.file(sample.add, sample.sub).encode(),
            sample.file(sample.add).encode(),
        ),
        Versions(
            f"{folder}/more/{name}".removeprefix("/"),
            None,
            sample.file(sample.sub).encode(),
        ),
    ]
    add, sub = sample.add, sample.sub
    return {
        "removed": (change((add, sub), (add,)), True),
        "emptied": (change((add, sub), (add, sample.empty)), True),
        "skipped": (change((add, sub), (add, sample.skipped)), True),
        "fewer assertions": (change((add, twice), (add, sub)), True),
        "moved": (compare_tests(moved), False),
        "renamed": (change((add, sub), (add, sample.renamed)), False),
        "split": (change((add, twice), (add, sub, other)), False),
        "merged": (change((add, sub, other), (add, twice)), False),
    }


def fields_about(test: str) -> dict[str, tuple[tuple[str, ...] | None, bool]]:
    """Return values of `Removes tests`, and whether they give leave for a test."""
    file, _, name = test.partition("::")
    own = re.split(r"::| > ", name)[-1]
    folder, _, file_name = file.rpartition("/")
    fields: dict[str, tuple[tuple[str, ...] | None, bool]] = {
        "no field": (None, False),
        "none": ((), False),
        "its id": ((test,), True),
        "its name": ((own,), True),
        "its file": ((file,), True),
        "the name of its file": ((file_name,), True),
        "another test": ((f"{file}::another",), False),
        "another file": ((f"other/{file}",), False),
        "a longer name": ((f"{own}_2",), False),
        "several": (("another", test), True),
    }
    if folder:
        fields["its folder"] = ((f"{folder}/",), True)
    return fields


@pytest.mark.parametrize("language", SAMPLES)
def test_a_step_removes_and_weakens_only_tests_that_its_field_names(
    language: str,
) -> None:
    test = id_of_sub(language)
    wrong = []
    for kind, (changes, needs_leave) in what_becomes_of_sub(language).items():
        for name, (removes, gives_leave) in fields_about(test).items():
            permissions = Permissions(removes=removes)
            verdict = judge_unchecked(Work(permissions=permissions, tests=changes))
            is_refused = verdict.verification is None
            in_question = tuple(lost.test for lost in verdict.needs_leave)
            expected = (test,) if needs_leave and removes is None else ()
            if is_refused != (needs_leave and not gives_leave):
                wrong.append(f"{kind}, {name}: refused {is_refused}, {changes}")
            if in_question != expected:
                wrong.append(f"{kind}, {name}: in question {in_question}")
    assert wrong == []


def test_an_entry_with_parameters_gives_leave_for_rows_alone() -> None:
    rows = became(PY, CASES.format("(3, 1, 2), (5, 1, 4)"), CASES.format("(3, 1, 2)"))
    gone = became(PY, CASES.format("(3, 1, 2), (5, 1, 4)"), "")
    permissions = Permissions(removes=("test_sub[5-1-4]",))
    verdicts = [
        judge_unchecked(Work(permissions=permissions, tests=tests)).verification
        for tests in (rows, gone)
    ]
    assert [verdict is None for verdict in verdicts] == [False, True]


@each_row(
    ("note", "is_refused"),
    [
        ("deleted", False),
        ("to be removed, as `sub` is", False),
        ("moved to tests/unit", False),
        ("renamed to x.py", False),
        ("extended", True),
        ("test_sub is renamed", True),
        ("", True),
    ],
)
def test_the_note_of_a_deleted_file_gives_leave(note: str, is_refused: bool) -> None:
    step = PlanStep(1, files_affected=(AffectedFile(f"./{PY}", note),))
    permissions = Permissions.of_step(step, declare_files(Path.cwd(), step))
    work = Work(permissions=permissions, tests=became(PY, SUBTRACTS, None))
    assert (judge_unchecked(work).verification is None) is is_refused


@each_row(
    ("path", "place"),
    [
        ("test_a.py", LikelihoodOfTests.NAMED),
        ("a/b_test.py", LikelihoodOfTests.NAMED),
        ("app/tests.py", LikelihoodOfTests.NAMED),
        ("src/a.test.js", LikelihoodOfTests.NAMED),
        ("src/a.spec.tsx", LikelihoodOfTests.NAMED),
        ("a_test.go", LikelihoodOfTests.NAMED),
        ("spec/a_spec.rb", LikelihoodOfTests.NAMED),
        ("src/test/java/ATest.java", LikelihoodOfTests.NAMED),
        ("src/main/TestThing.java", LikelihoodOfTests.NAMED),
        ("t/basic.t", LikelihoodOfTests.NAMED),
        ("src/__tests__/a.js", LikelihoodOfTests.WITHIN),
        ("tests/cli.rs", LikelihoodOfTests.WITHIN),
        ("src/lib.rs", LikelihoodOfTests.WITHIN),
        ("tests/data/a.json", LikelihoodOfTests.WITHIN),
        ("tests/test.db", LikelihoodOfTests.NONE),
        ("tests/app.sqlite3-wal", LikelihoodOfTests.NONE),
        ("tests/tmp/out.json", LikelihoodOfTests.NONE),
        ("tests/output/report.xml", LikelihoodOfTests.NONE),
        ("tests/output/test_writer.py", LikelihoodOfTests.NAMED),
        ("tests/expected_output/a.xml", LikelihoodOfTests.WITHIN),
        ("Shop.Tests/Basket.cs", LikelihoodOfTests.WITHIN),
        ("testdata/a.golden", LikelihoodOfTests.WITHIN),
        ("spec/support/x.rb", LikelihoodOfTests.WITHIN),
        ("spec/openapi.yaml", LikelihoodOfTests.NONE),
        ("src/contest.py", LikelihoodOfTests.NONE),
        ("contests/a.py", LikelihoodOfTests.NONE),
        ("src/latest.js", LikelihoodOfTests.NONE),
        ("docs/test.md", LikelihoodOfTests.NONE),
        ("tests/.pytest_cache/x.json", LikelihoodOfTests.NONE),
        ("tests/__pycache__/test_a.py", LikelihoodOfTests.NONE),
        ("node_modules/x/test/a.js", LikelihoodOfTests.NONE),
        ("pytest.ini", LikelihoodOfTests.NONE),
        ("src/exit.py", LikelihoodOfTests.NONE),
    ],
)
def test_what_a_test_file_is(path: str, place: LikelihoodOfTests) -> None:
    assert place_of(path) is place


HOSTILE = {
    "one long word": (".js", "it('a', () => {{{}}})", "a"),
    "assertions in one word": (".js", "it('a', () => {{{}}})", "assert"),
    "marks in Rust": (".rs", "{}", "#[test]\n"),
    "marks in Java": (".java", "{}", "@Test "),
    "marks with words between them": (".java", "{}", "@Test x "),
    "no end of what is left out": (".c", "{}", "#if 0\n"),
    "no end of a string in Rust": (".rs", "{}", 'r#"'),
    "no end of a string in C++": (".cpp", "{}", 'R"('),
    "no end of a regex": (".js", "{}", "=/["),
    "one long number": (".js", "it('a', () => {{ assert.equal({}, a) }})", "1"),
    "brackets in Python": (".py", "{}", "(("),
    "types in C#": (".cs", "{}", "<a"),
    "groups in groups": (".js", "{}", "describe('a', () => {"),
    "skips": (".js", "it('a', () => {{{}}})", "if (x) { this.skip(); return; }"),
    "assignments in Python": (".py", "def test_a():\n    assert a\n{}", "test_a = 1\n"),
}


def seconds_to_read(suffix: str, text: str) -> float:
    started = process_time()
    read_tests(suffix.removeprefix("."), text)
    return process_time() - started


@cache
def seconds_for_honest_text() -> float:
    return seconds_to_read(
        ".js",
        "".join(
            f"it('adds {number}', () => {{ expect(add(1, {number})).toBe(3); }});\n"
            for number in range(2000)
        ),
    )


@each_row(("suffix", "around", "piece"), HOSTILE.values(), ids=HOSTILE, most=8)
def test_hostile_text_takes_no_longer_than_its_length_explains(
    suffix: str, around: str, piece: str
) -> None:
    text = around.format(piece * (100_000 // len(piece)))
    limit = 15 * (seconds_for_honest_text() + 0.02)
    assert seconds_to_read(suffix, text) < limit


PIECES = [
    piece
    for each in SAMPLES.values()
    for piece in (each.head, each.add, each.sub, each.empty, each.skipped, each.tail)
]
PIECES += [
    "/*",
    "*/",
    "'",
    '"',
    "`",
    "//",
    "#",
    "(",
    ")",
    "{",
    "}",
    "[",
    "\\",
    "\n",
    "/[",
    "it(",
    "test.each",
    "@",
    "#[",
    "r#",
    "\0",
    "é",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map(
    "".join
)
PATHS = st.sampled_from(
    [
        *(each.path for each in SAMPLES.values()),
        "tests/a.hs",
        "tests/a.lua",
        "tests/a.txt",
        "t/a.t",
        "tests/a.scala",
    ]
)


@given(path=PATHS, before=TEXTS, after=TEXTS)
@settings(max_examples=count_examples(300), deadline=None)
def test_any_text_can_be_read_and_the_same_text_has_lost_nothing(
    path: str, before: str, after: str
) -> None:
    became(path, before, after)
    same = became(path, before, before)
    assert (lost(same), same.changed) == (0, ())
