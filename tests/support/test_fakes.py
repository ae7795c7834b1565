"""The fakes of the engine's tests behave like the real programs."""

import shlex
import sys
from pathlib import Path

import pytest

from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.diff import Change
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import run_command
from cdd_agent.verification.check_run import run_check
from cdd_agent.verification.checks import parse_command
from tests.support.fake_checkpoints import FakeCheckpoints
from tests.support.fake_programs import FakePrograms

SUITE = """\
import pytest
from calc import add

def test_passes():
    assert add(1, 2) == 3

def test_fails():
    assert add(1, 2) == 4

@pytest.mark.skip
def test_skipped():
    assert False

@pytest.mark.xfail
def test_expected_to_fail():
    assert False

@pytest.mark.parametrize("a, b", [(1, 2), (3, 4)])
def test_rows(a, b):
    assert add(a, b) == 3
"""


@pytest.mark.story
@pytest.mark.parametrize("words", ["", "tests/test_calc.py", "tests/test_far.py"])
async def test_the_fake_pytest_reports_what_the_real_one_reports(
    tmp_path: Path, words: str
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "tests/test_calc.py").write_text(SUITE)
    (tmp_path / "tests/test_far.py").write_text("import not_there\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["."]\n'
    )
    check = parse_command(f"pytest {words}".strip(), tmp_path)
    real = await run_check(check, CommandRunner(tmp_path), 60, tmp_path)
    programs = CommandRunner(tmp_path, run_program=FakePrograms())
    fake = await run_check(check, programs, 60, tmp_path)
    assert real.tests is not None
    assert fake.tests is not None
    assert fake.tests.results == real.tests.results
    assert fake.tests.selection == real.tests.selection
    assert fake.return_code == real.return_code


CODE = [
    "print('out'); import sys; sys.stderr.write('err')",
    "raise SystemExit(3)",
    "raise SystemExit('why')",
    "open('made.txt', 'w').write('x'); import os; print(os.listdir())",
    "import os; os._exit(4)",
    "import sys; print(sys.argv, sys.stdin.read())",
    "import calc; print(calc.add(1, 2))",
    "import os; print(os.environ['SEAL'])",
]


@pytest.mark.story
async def test_fake_programs_execute_python_as_a_process_does(tmp_path: Path) -> None:
    unlike = []
    for number, code in enumerate(CODE):
        ends = []
        for name, run in (("real", run_command), ("fake", FakePrograms())):
            folder = tmp_path / f"{number}-{name}"
            folder.mkdir()
            (folder / "calc.py").write_text("def add(a, b):\n    return a + b\n")
            argv = [sys.executable, "-B", "-c", code]
            end = await run(argv, cwd=folder, limit=60, env={"SEAL": "yes"})
            files = sorted(path.name for path in folder.iterdir())
            ends.append((end.return_code, end.stdout, end.stderr, files))
        if ends[0] != ends[1]:
            unlike.append(f"{shlex.quote(code)}: {ends}")
    assert unlike == []


def before(root: Path) -> None:
    for name in ("changed.txt", "removed.txt", "same.txt", "deep/run.sh", "log/x.log"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(f"{name}\n")
    (root / "link").symlink_to("same.txt")
    (root / ".gitignore").write_text("*.log\nmade.tmp\n")


def after(root: Path) -> None:
    (root / "changed.txt").write_text("changed\n")
    (root / "removed.txt").unlink()
    (root / "deep/run.sh").chmod(0o755)
    (root / "log/x.log").write_text("ignored\n")
    (root / "made.tmp").write_text("asked for\n")
    (root / "new").mkdir()
    (root / "new/file.txt").write_text("new\n")
    (root / "link").unlink()
    (root / "link").symlink_to("changed.txt")


async def test_fake_checkpoints_know_and_restore_what_those_in_git_do(
    tmp_path: Path,
) -> None:
    seen = []
    for kind in (Checkpoints, FakeCheckpoints):
        root = tmp_path / kind.__name__
        root.mkdir()
        before(root)
        checkpoints = await kind.open(
            root, root / ".store/x", "x", ("left-out", ".store")
        )
        first = await checkpoints.take("first", ["made.tmp"])
        after(root)
        (root / "left-out").write_text("x")
        second = await checkpoints.take("second", ["made.tmp"])
        changes = await checkpoints.changes(first, second)
        contents = await checkpoints.read(changes)
        patch = await checkpoints.diff(first, second, ["changed.txt"])
        ignored = await checkpoints.ignored(first, ["log/x.log", "same.txt"])
        (root / "new/file.txt").write_text("an edit\n")
        result = await checkpoints.restore(changes)
        assert (await checkpoints.find("first")) == first
        assert (await checkpoints.find("none")) is None
        shown = [line for line in patch.splitlines() if not line.startswith("index")]
        seen.append((changes, contents, shown, ignored, result, left(root)))
    assert seen[1] == seen[0]
    assert [change.path for change in seen[0][0]] == [
        *("changed.txt", "deep/run.sh", "link", "made.tmp", "new/file.txt"),
        "removed.txt",
    ]
    assert all(isinstance(change, Change) for change in seen[0][0])


def left(root: Path) -> dict[str, str]:
    """Return the files of the project, except those of the checkpoints."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in files
        if ".store" not in path.parts
    }
