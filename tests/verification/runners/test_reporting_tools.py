"""The runners that write a report of their own: which commands they are, and what their
reports say. The reports are those of the tools.
"""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.process.run import CommandResult
from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import Reported, ReportUnreadable, TestRunner
from cdd_agent.verification.runners.reporting_tools import REPORTING_TOOLS
from tests.support.tables import each_row

REPORT = Path("/r/report")
RUNNERS: dict[str, TestRunner] = {runner.name: runner for runner in REPORTING_TOOLS}
PASSED, FAILED, SKIPPED = Result.PASSED, Result.FAILED, Result.SKIPPED


@each_row(
    ("command", "runner"),
    [
        ("ctest --test-dir build", "ctest"),
        ("phpunit", "PHPUnit"),
        ("vendor/bin/phpunit tests", "PHPUnit"),
        ("php vendor/bin/phpunit", "PHPUnit"),
        ("rspec", "RSpec"),
        ("bundle exec rspec spec", "RSpec"),
        ("deno test -A", "deno test"),
        ("bun test", "bun test"),
        ("mvn -q test", "Maven"),
        ("./mvnw verify", "Maven"),
        ("./gradlew test", "Gradle"),
        ("gradle :app:test --offline", "Gradle"),
        ("dotnet test --no-build", "dotnet test"),
        ("deno task test", None),
        ("bun run test", None),
        ("mvn compile", None),
        ("gradle build", None),
        ("dotnet build", None),
        ("cat phpunit", None),
        ("docker run rspec", None),
        ("", None),
    ],
)
def test_a_command_is_recognised(command: str, runner: str | None) -> None:
    known = [each.name for each in RUNNERS.values() if each.recognises(command.split())]
    assert known == ([runner] if runner else [])


@each_row(
    ("command", "added"),
    [
        ("ctest -j 4", "ctest -j 4 --output-junit /r/report"),
        ("phpunit", "phpunit --log-junit /r/report"),
        (
            "rspec",
            "rspec --format progress --no-fail-fast --format json --out /r/report",
        ),
        ("rspec -fd", "rspec -fd --no-fail-fast --format json --out /r/report"),
        ("deno test", "deno test --junit-path=/r/report"),
        (
            "bun test",
            "bun test --reporter=junit --reporter-outfile=/r/report",
        ),
        ("mvn test", "mvn test --fail-at-end"),
        (
            "gradle build :a:test test",
            "gradle build :a:cleanTest :a:test cleanTest test --continue",
        ),
        (
            "dotnet test",
            "dotnet test --logger trx;LogFilePrefix=report --results-directory /r",
        ),
        ("ctest -N", None),
        ("ctest --stop-on-failure", None),
        ("phpunit --log-junit own.xml", None),
        ("rspec --dry-run", None),
        ("deno test --watch", None),
        ("deno test -- x", None),
        ("bun test --bail=1", None),
        ("mvn test -DskipTests", None),
        ("mvn test -Dmaven.test.skip=true", None),
        ("gradle test -x test", None),
        ("dotnet test --list-tests", None),
    ],
)
def test_a_command_is_made_to_report(command: str, added: str | None) -> None:
    argv = command.split()
    runner = next(each for each in RUNNERS.values() if each.recognises(argv))
    made = runner.reporting(argv, REPORT)
    assert (" ".join(made.argv) if made else None) == added


CTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="5" failures="1" disabled="1" skipped="2" hostname="">
  <testcase name="good" classname="good" status="run"><system-out/></testcase>
  <testcase name="bad" classname="bad" time="0.00" status="fail">
    <failure message=""/><system-out>oops</system-out></testcase>
  <testcase name="off" classname="off" time="0" status="disabled">
    <system-out>Disabled</system-out></testcase>
  <testcase name="gone" classname="gone" time="0" status="notrun">
    <skipped message="Unable to find executable"/>
    <system-out>Unable to find executable: nothere_x</system-out></testcase>
  <testcase name="skip" classname="skip" time="0.00" status="notrun">
    <skipped message="SKIP_RETURN_CODE=77"/><system-out/></testcase>
</testsuite>"""
PHPUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="App\\CalcTest" file="{root}/tests/CalcTest.php" tests="5">
  <testcase name="testAdd" class="App\\CalcTest" classname="App.CalcTest"
    file="{root}/tests/CalcTest.php" line="4" assertions="1" time="0.006"/>
  <testcase name="testSub" class="App\\CalcTest" classname="App.CalcTest"
    file="{root}/tests/CalcTest.php" line="5" assertions="1" time="0.000">
    <failure type="ExpectationFailedException">2 is not 1</failure></testcase>
  <testcase name="testSkip" class="App\\CalcTest" classname="App.CalcTest"
    file="{root}/tests/CalcTest.php"><skipped/></testcase>
  <testsuite name="App\\CalcTest::testRow" tests="2">
    <testcase name="testRow with data set #0" class="App\\CalcTest"
      classname="App.CalcTest" file="{root}/tests/CalcTest.php"/>
    <testcase name="testRow with data set &quot;x&quot;" class="App\\CalcTest"
      classname="App.CalcTest" file="{root}/tests/CalcTest.php"/>
  </testsuite></testsuite></testsuites>"""
RSPEC = """{{"examples": [
  {{"id": "./spec/calc_spec.rb[1:1]", "full_description": "calc adds",
    "status": "passed", "file_path": "./spec/calc_spec.rb"}},
  {{"full_description": "calc subs", "status": "failed",
    "file_path": "./spec/calc_spec.rb", "exception": {{"message": "expected: 2"}}}},
  {{"full_description": "calc later", "status": "pending",
    "file_path": "./spec/calc_spec.rb"}}],
  "summary": {{"errors_outside_of_examples_count": 0}}}}"""
DENO = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="3" failures="1" errors="0" time="0.094">
  <testsuite name="./t/a_test.ts" tests="3" disabled="0" errors="0" failures="1">
    <testcase name="adds" classname="./t/a_test.ts" line="1" col="6"></testcase>
    <testcase name="b" classname="./t/a_test.ts" line="1" col="35">
      <failure message="Uncaught Error: no"></failure></testcase>
    <testcase name="b &gt; inner" classname="./t/a_test.ts" line="1"></testcase>
  </testsuite></testsuites>"""
BUN = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="bun test" tests="3" assertions="1" failures="1" skipped="1">
  <testsuite name="t/a.test.ts" file="t/a.test.ts" tests="3">
    <testsuite name="calc" file="t/a.test.ts" line="1" tests="3">
      <testcase name="adds" classname="calc" file="t/a.test.ts" line="1"/>
      <testcase name="b" classname="calc" file="t/a.test.ts" line="1">
        <failure type="AssertionError" message="no">Expected: 2</failure></testcase>
      <testcase name="c" classname="calc" file="t/a.test.ts"><skipped/></testcase>
    </testsuite></testsuite></testsuites>"""
TRX = """\ufeff<?xml version="1.0" encoding="utf-8"?>
<TestRun id="1" xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010">
  <Times creation="2026-11-27T02:00:00" /><Results>
  <UnitTestResult executionId="e1" testId="t1" testName="Calc.Tests.CalcTests.Adds"
    outcome="Passed" />
  <UnitTestResult executionId="e2" testId="t2" testName="Calc.Tests.CalcTests.Subs"
    outcome="Failed"><Output><ErrorInfo><Message>Expected: 1</Message></ErrorInfo>
    </Output></UnitTestResult>
  <UnitTestResult executionId="e3" testId="t3"
    testName="Calc.Tests.CalcTests.Row(a: 1)" outcome="NotExecuted" />
  </Results><TestDefinitions>
  <UnitTest name="x" storage="x" id="t1"><Execution id="e1" />
    <TestMethod codeBase="{root}/tests/bin/Debug/net8.0/Calc.Tests.dll"
      className="Calc.Tests.CalcTests" name="Adds" /></UnitTest>
  <UnitTest name="x" storage="x" id="t2"><Execution id="e2" />
    <TestMethod codeBase="{root}/tests/bin/Debug/net8.0/Calc.Tests.dll"
      className="Calc.Tests.CalcTests" name="Subs" /></UnitTest>
  <UnitTest name="x" storage="x" id="t3"><Execution id="e3" />
    <TestMethod codeBase="{root}/tests/bin/Debug/net8.0/Calc.Tests.dll"
      className="Calc.Tests.CalcTests" name="Row" /></UnitTest>
  </TestDefinitions></TestRun>"""
SUREFIRE = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="com.example.CalcTest" time="0.05" tests="4" errors="0" failures="1">
  <properties><property name="java.version" value="17"/></properties>
  <testcase name="adds" classname="com.example.CalcTest" time="0.02"/>
  <testcase name="subtracts" classname="com.example.CalcTest" time="0.01">
    <failure message="expected: 1" type="Error">at CalcTest</failure></testcase>
  <testcase name="flaky" classname="com.example.CalcTest">
    <flakyFailure message="once" type="AssertionError">x</flakyFailure></testcase>
  <testcase name="inner()" classname="com.example.CalcTest$More"><skipped/></testcase>
</testsuite>"""

SAMPLES: dict[str, tuple[str, dict[str, Result], str]] = {
    "ctest": (
        CTEST,
        {
            "CMakeLists.txt::good": PASSED,
            "CMakeLists.txt::bad": FAILED,
            "CMakeLists.txt::off": SKIPPED,
            "CMakeLists.txt::gone": FAILED,
            "CMakeLists.txt::skip": SKIPPED,
        },
        "CMakeLists.txt::bad",
    ),
    "PHPUnit": (
        PHPUNIT,
        {
            "tests/CalcTest.php::CalcTest > testAdd": PASSED,
            "tests/CalcTest.php::CalcTest > testSub": FAILED,
            "tests/CalcTest.php::CalcTest > testSkip": SKIPPED,
            "tests/CalcTest.php::CalcTest > testRow": PASSED,
        },
        "tests/CalcTest.php::CalcTest > testSub",
    ),
    "RSpec": (
        RSPEC.replace("{{", "{").replace("}}", "}"),
        {
            "spec/calc_spec.rb::calc adds": PASSED,
            "spec/calc_spec.rb::calc subs": FAILED,
            "spec/calc_spec.rb::calc later": SKIPPED,
        },
        "spec/calc_spec.rb::calc subs",
    ),
    "deno test": (
        DENO,
        {
            "t/a_test.ts::adds": PASSED,
            "t/a_test.ts::b": FAILED,
            "t/a_test.ts::b > inner": PASSED,
        },
        "t/a_test.ts::b",
    ),
    "bun test": (
        BUN,
        {
            "t/a.test.ts::calc > adds": PASSED,
            "t/a.test.ts::calc > b": FAILED,
            "t/a.test.ts::calc > c": SKIPPED,
        },
        "t/a.test.ts::calc > b",
    ),
    "dotnet test": (
        TRX,
        {
            "tests/CalcTests.cs::CalcTests > Adds": PASSED,
            "tests/CalcTests.cs::CalcTests > Subs": FAILED,
            "tests/CalcTests.cs::CalcTests > Row(a: 1)": SKIPPED,
        },
        "tests/CalcTests.cs::CalcTests > Subs",
    ),
}
ROOTLESS = Path("/project")


def read(name: str, folder: Path, root: Path) -> SuiteRun:
    reported = Reported(folder, CommandResult("", "", 1))
    return RUNNERS[name].read(reported, Selection(), root)


@each_row("name", list(SAMPLES))
def test_a_report_is_read(tmp_path: Path, name: str) -> None:
    text, results, failed = SAMPLES[name]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/CalcTests.cs").touch()
    folder = tmp_path / "check"
    folder.mkdir()
    (folder / "report").write_text(text.replace("{root}", str(tmp_path)))
    run = read(name, folder, tmp_path)
    assert run.results == results
    assert run.texts[failed]


@each_row(
    ("name", "places"),
    [
        ("Maven", ("target/surefire-reports", "web/target/failsafe-reports")),
        ("Gradle", ("build/test-results/test", "web/build/test-results/test")),
    ],
)
def test_the_reports_of_all_modules_are_read_and_old_ones_are_not(
    tmp_path: Path, name: str, places: tuple[str, str]
) -> None:
    (tmp_path / "web/src/test/java/com/example").mkdir(parents=True)
    (tmp_path / "web/src/test/java/com/example/CalcTest.java").touch()
    folder = tmp_path / "check"
    for place in places:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "TEST-com.example.OldTest.xml").write_text(
            SUREFIRE.replace("CalcTest", "OldTest")
        )
        os.utime(tmp_path / place / "TEST-com.example.OldTest.xml", (1, 1))
    folder.mkdir()
    with pytest.raises(ReportUnreadable):
        read(name, folder, tmp_path)
    for place in places:
        (tmp_path / place / "TEST-com.example.CalcTest.xml").write_text(SUREFIRE)
    file = "web/src/test/java/com/example/CalcTest.java"
    assert read(name, folder, tmp_path).results == {
        "com.example.CalcTest::adds": PASSED,
        "com.example.CalcTest::subtracts": FAILED,
        "com.example.CalcTest::flaky": PASSED,
        "com.example.CalcTest::More > inner": SKIPPED,
        f"{file}::CalcTest > adds": PASSED,
        f"{file}::CalcTest > subtracts": FAILED,
        f"{file}::CalcTest > flaky": PASSED,
        f"{file}::CalcTest > More > inner": SKIPPED,
    }


def test_each_project_of_dotnet_has_a_report(tmp_path: Path) -> None:
    text = TRX.replace("{root}", str(tmp_path))
    (tmp_path / "report_net8.0_1.trx").write_text(text)
    (tmp_path / "report_net8.0_2.trx").write_text(text.replace("Adds", "Divides"))
    tests = read("dotnet test", tmp_path, ROOTLESS).results
    assert "Calc.Tests.CalcTests::Adds" in tests
    assert "Calc.Tests.CalcTests::Divides" in tests


def test_a_file_that_rspec_cannot_load_makes_its_report_unreadable(
    tmp_path: Path,
) -> None:
    text = SAMPLES["RSpec"][0].replace('examples_count": 0', 'examples_count": 1')
    (tmp_path / "report").write_text(text)
    with pytest.raises(ReportUnreadable):
        read("RSpec", tmp_path, ROOTLESS)


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa">]>'


@each_row(
    ("name", "text"),
    [
        (name, text)
        for name, (sample, _, _) in SAMPLES.items()
        for text in ("", "{}", "[" * 100_000, "<a/>", sample[:-20], sample + sample)
    ]
    + [
        (name, sample.replace("?>", f"?>{BOMB}", 1))
        for name, (sample, _, _) in SAMPLES.items()
        if name != "RSpec"
    ],
)
def test_anything_else_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "report").write_text(text)
    with pytest.raises(ReportUnreadable):
        read(name, tmp_path, ROOTLESS)


@given(st.sampled_from(sorted(SAMPLES)), st.binary(max_size=100), st.integers(0, 2000))
def test_any_bytes_are_a_report_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes, at: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    sample = SAMPLES[name][0].encode()
    for candidate in (data, sample[:at] + data + sample[at:]):
        (folder / "report").write_bytes(candidate)
        with contextlib.suppress(ReportUnreadable):
            assert isinstance(read(name, folder, ROOTLESS), SuiteRun)
