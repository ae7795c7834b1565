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
from tests.support.homes import HOME_VARIABLES
from tests.support.kinds import LONG, QUICK, SLOW, choose_sample, mark_unit_tests
from tests.support.patience import be_patient
from tests.support.projects import Begin, Copied, Sandbox

# A job in the background ignores SIGINT, and programs started by tests would inherit
# that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Write bytecode, so that workers and programs started by tests need not compile again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Projects in tests use the programs of this environment: others may be slow or old.
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
    # Tests mostly wait for disk syncs, and none needs its files to survive a power cut.
    os.environ["TMPDIR"] = str(_MEMORY)
    tempfile.tempdir = None  # is computed again
# No deadlines, since a computer may be slow, and the same examples each time.
# `--hypothesis-profile many` tries more.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", _PATIENT, max_examples=25, derandomize=True)
settings.register_profile("many", _PATIENT, max_examples=4_000)
settings.load_profile("same")
be_patient()
gc.disable()  # objects made during collection stay; see pytest_collection_finish


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample", type=float, help="run only this share of the tests, from 0 to 1"
    )
    parser.addoption(
        "--sample-seed", default="", help="choose another sample with another text"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Sample the tests that other options left selected, hence last."""
    share: float | None = config.getoption("--sample")
    if share is None:
        return
    chosen, others = choose_sample(items, share, config.getoption("--sample-seed"))
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def pytest_itemcollected(item: pytest.Item) -> None:
    mark_unit_tests([item])


def pytest_configure(config: pytest.Config) -> None:
    for name, text in {**QUICK, **SLOW, **LONG}.items():
        config.addinivalue_line("markers", f"{name}: {text}")
    # One round of collection at the end is enough for CPython.
    config.stash[gc_collect_iterations_key] = 1


def pytest_collection_finish() -> None:
    """Keep the collected tests out of garbage collection, and collect rarely.

    Collection took a quarter of the time of the shell's tests.
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
def project_pytest(
    request: pytest.FixtureRequest,
    refusing_pytest: PytestGuard,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Put a quick `pytest` on the PATH; in a unit test, one that fails the test."""
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


@pytest.fixture(scope="session", autouse=True)
def trusted_projects() -> Iterator[None]:
    """Trust the projects that a fixture of the whole session uses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDD_TRUST", "1")
        yield


@pytest.fixture(autouse=True)
def isolate_from_user(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's settings: an empty home folder and no `CDD_*` variables. The
    projects of tests are trusted; tests about trust remove `CDD_TRUST`.

    Plugins are off in the projects' pytest, which then starts faster.
    """
    home = tempfile.mkdtemp(dir=homes)
    for name in HOME_VARIABLES:
        monkeypatch.setenv(name, home)
    for name in [name for name in os.environ if name.startswith(("CDD_", "HIVE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CDD_TRUST", "1")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def untrusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has not said that projects are trusted."""
    monkeypatch.delenv("CDD_TRUST")


@pytest.fixture
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Sandbox:
    """A project. In a unit test, its commands and checkpoints start no process."""
    sandbox = Sandbox(tmp_path)
    if request.node.get_closest_marker("unit"):
        return sandbox.in_process()
    return sandbox


@pytest.fixture
def in_git(sandbox: Sandbox) -> None:
    """Keep the checkpoints of `sandbox` in git."""
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
    """Return a function that makes `sandbox` a copy of a prepared run.

    Each run is prepared once. The copy has no record of the model's requests.
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
