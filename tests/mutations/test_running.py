"""The mutation run itself: what it says of a fault is true, and its table is of the
program as it is.
"""

import time
import uuid
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from psutil import process_iter

from tests.mutations.running import (
    BadMutation,
    Fate,
    Mutation,
    mutated,
    tried,
    untouched,
)
from tests.mutations.table import MUTATIONS
from tests.support.tables import each_row

PACKAGE = Path(__file__).parents[2] / "cdd_agent"
SOURCE = "def double(number):\n    return number * 2\n"
TESTS = """\
import subprocess, sys
from cdd_agent.sums import double

def test_double():
    assert double(3) == 6

def test_of_nothing():
    assert double

def test_in_another_process(tmp_path):
    code = "from cdd_agent.sums import double; assert double(3) == 6"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
"""
TRIPLE = "number * 2", "number * 3"
ENDLESS_MARK = f"endless-{uuid.uuid4().hex}"
"""An argument of the processes that `ENDLESS` starts, one after the other."""
ENDLESS = (
    "return number * 2",
    (
        "while True: subprocess.run([sys.executable, '-c', 'import time;"
        f" time.sleep(600)', '{ENDLESS_MARK}'])"
    ),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "cdd_agent").mkdir()
    (tmp_path / "cdd_agent/__init__.py").touch()
    (tmp_path / "cdd_agent/sums.py").write_text("import subprocess, sys\n\n" + SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_sums.py").write_text(TESTS)
    # to import, and not needed here
    slow = {plugin.name for plugin in entry_points(group="pytest11")} - {"xdist"}
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\naddopts = {' '.join(f'-p no:{name}' for name in sorted(slow))}\n"
    )
    return tmp_path


def fault(change: tuple[str, str], test: str = "") -> Mutation:
    return Mutation("doubles", "sums.py", *change, f"tests/test_sums.py{test}")


@each_row("mutation", MUTATIONS, ids=str)
def test_each_mutation_is_of_the_program_as_it_is(mutation: Mutation) -> None:
    text = (PACKAGE / mutation.file).read_text()
    compile(mutated(text, mutation), mutation.file, "exec")
    for test in mutation.tests.split():
        assert (PACKAGE.parent / test.partition("::")[0]).is_file(), test


@each_row(
    ("change", "times"),
    [(("a / b", "a"), 0), (("number", "n"), 2), ((TRIPLE[0], TRIPLE[0]), 1)],
)
def test_one_that_is_out_of_date_is_an_error_that_names_it(
    change: tuple[str, str], times: int
) -> None:
    with pytest.raises(BadMutation, match=f"sums.py: doubles: .*{times} times"):
        mutated(SOURCE, fault(change))


@pytest.mark.parametrize(
    ("test", "fate"),
    [
        ("::test_double", Fate.KILLED),
        ("::test_in_another_process", Fate.KILLED),
        ("::test_of_nothing", Fate.SURVIVED),
        ("::test_that_is_gone", Fate.BROKEN),
        ("_gone.py", Fate.BROKEN),
    ],
)
def test_a_fault_is_noticed_by_its_tests_or_not_and_the_program_stays_as_it_is(
    root: Path, test: str, fate: Fate
) -> None:
    assert tried(root, fault(TRIPLE, test), 60).fate is fate
    assert SOURCE in (root / "cdd_agent/sums.py").read_text()


def test_a_fault_that_does_not_end_is_noticed_and_ended_with_what_it_started(
    root: Path,
) -> None:
    start = time.monotonic()
    result = tried(root, fault(ENDLESS, "::test_double"), 3)
    assert result.fate is Fate.KILLED
    assert " 3 s" in result.output
    assert time.monotonic() - start < 300
    commands = [process.info["cmdline"] or [] for process in process_iter(["cmdline"])]
    assert not [command for command in commands if ENDLESS_MARK in command]


@pytest.mark.parametrize(
    ("text", "fate"), [(TESTS, Fate.SURVIVED), (TESTS.replace("6", "7"), Fate.KILLED)]
)
def test_the_tests_have_to_pass_without_a_fault(
    root: Path, text: str, fate: Fate
) -> None:
    (root / "tests/test_sums.py").write_text(text)
    assert untouched(root, [fault(TRIPLE)], 120, jobs=1).fate is fate


def test_what_a_run_is_for_is_there_in_number() -> None:
    places = {mutation.file.partition("/")[0] for mutation in MUTATIONS}
    assert places >= {
        "changes",
        "engine",
        "files",
        "git",
        "llm",
        "tickets",
        "verification",
    }
    assert len(MUTATIONS) >= 60
    assert len({str(mutation) for mutation in MUTATIONS}) == len(MUTATIONS)
