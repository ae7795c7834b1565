"""Fixtures that every folder of tests uses."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.unraisableexception import gc_collect_iterations_key
from hypothesis import HealthCheck, settings

from tests.support.forked_pytest import quick_pytest
from tests.support.guard import PytestGuard
from tests.support.kinds import SLOW, choose_sample, mark_unit_tests
from tests.support.patience import be_patient
from tests.support.projects import Begin, Copied, Sandbox

# of a job in the background; what we start would inherit it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# What is compiled once need not be compiled again by each worker and each program that
# tests start.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# The pytest of these tests is also that of the projects in them: whichever else there
# is may be slow to start, or old.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
)
_MEMORY = Path("/dev/shm")  # Linux has it
_ROOM = 2_000_000_000  # bytes, far more than a run takes
if (
    "TMPDIR" not in os.environ
    and _MEMORY.is_dir()
    and os.access(_MEMORY, os.W_OK)
    and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(_MEMORY).free > _ROOM
):
    # most of the waiting is for a disk to sync, and a power cut is played by the tests
    # themselves
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None  # it is asked for anew
# A busy machine is no failure, and what passed once passes again: `pytest
# --hypothesis-profile many` looks further.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", _PATIENT, max_examples=50, derandomize=True)
settings.register_profile("many", _PATIENT, max_examples=4_000)
settings.load_profile("same")
be_patient()
gc.disable()  # until all tests are collected: what is made till then stays to the end


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample", type=float, help="run only this share of the tests, from 0 to 1"
    )
    parser.addoption(
        "--sample-seed", default="", help="a text: another one, another sample"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Sample what is left after other options deselected tests, hence last."""
    share: float | None = config.getoption("--sample")
    if share is None:
        return
    chosen, others = choose_sample(items, share, config.getoption("--sample-seed"))
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def pytest_itemcollected(item: pytest.Item) -> None:
    mark_unit_tests([item])


def pytest_configure(config: pytest.Config) -> None:
    # at the end: the other four are for Pythons that count no references
    config.stash[gc_collect_iterations_key] = 1


def pytest_collection_finish() -> None:
    """Thousands of collected tests are not looked through again each time that garbage
    is collected, and that is seldom: shells come and go, and looking for what they
    leave takes a quarter of their time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


@pytest.fixture(scope="session")
def quick_pytest_folder() -> Iterator[str]:
    with quick_pytest() as folder:
        yield folder


@pytest.fixture(scope="session")
def refusing_pytest(tmp_path_factory: pytest.TempPathFactory) -> PytestGuard:
    return PytestGuard(tmp_path_factory.mktemp("guard"))


@pytest.fixture(autouse=True)
def checks_of_projects(
    request: pytest.FixtureRequest,
    refusing_pytest: PytestGuard,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """The `pytest` on the PATH of projects in tests: a quick one. In a unit test it is
    one that fails the test.
    """
    if request.node.get_closest_marker("unit") is None:
        folder = request.getfixturevalue("quick_pytest_folder")
        monkeypatch.setenv("PATH", folder, prepend=os.pathsep)
        yield
        return
    monkeypatch.setenv("PATH", refusing_pytest.path)
    yield
    if refusing_pytest.was_started_by(request.node.nodeid):
        pytest.fail("it started pytest: mark it `story`, or use Sandbox.in_process()")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def nobody_else(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of whoever runs the tests: an empty home folder, no `CDD_*`
    variables, no plugins for a project's own pytest, which starts faster without.
    """
    home = tempfile.mkdtemp(dir=homes)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, home)
    for name in [name for name in os.environ if name.startswith(("CDD_", "HIVE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Sandbox:
    """A project. In a unit test, its commands and checkpoints start no process."""
    sandbox = Sandbox(tmp_path)
    kinds = {mark.name for mark in request.node.iter_markers()}
    return sandbox if kinds & (SLOW | {"story"}) else sandbox.in_process()


@pytest.fixture
def in_git(sandbox: Sandbox) -> None:
    """The checkpoints of the project are in git after all."""
    sandbox.open_checkpoints = None


@pytest.fixture(scope="session")
def beginnings() -> dict[tuple[Begin, bool], Path]:
    """The projects that `copied` copies."""
    return {}


@pytest.fixture
def copied(
    sandbox: Sandbox,
    beginnings: dict[tuple[Begin, bool], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Copied:
    """For tests that begin with the same run: it is carried out for the first of them,
    and each gets a copy of the project as it is then. What the model was asked is not
    in it.
    """

    async def copy(begin: Begin) -> Sandbox:
        known = begin, sandbox.open_checkpoints is None
        if known not in beginnings:
            made = Sandbox(tmp_path_factory.mktemp("beginning"))
            made.run_program = sandbox.run_program
            made.open_checkpoints = sandbox.open_checkpoints
            await begin(made)
            beginnings[known] = made.root
        shutil.copytree(
            beginnings[known], sandbox.root, symlinks=True, dirs_exist_ok=True
        )
        return sandbox

    return copy
