"""`cdd verify`: exit codes, lines of JSON, and what one leaves that did not end."""

import shutil
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from cdd_agent.process.ending import alive
from tests.git.checkpoints import state, write
from tests.git.repositories import git
from tests.support.commandline import cdd, events, process, script
from tests.support.homes import at_home, with_quick_pytest
from tests.support.projects import SLUG, Sandbox, Step, check, says

TEST = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
CALC = "def add(a, b):\n    return a + b\n"
REPLY = f"{says('calc.py', CALC)}\n{says('test_calc.py', TEST)}"


@pytest.fixture(scope="session")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, quick_pytest_folder: str
) -> Path:
    sandbox = Sandbox(tmp_path_factory.mktemp("verified").resolve())
    steps = (Step("calc.py", also=("- `test_calc.py`",)), Step("a.txt", check("a.txt")))
    sandbox.write(*steps)
    root = sandbox.root
    git(root, "init", "--quiet", "--initial-branch=main")
    exclude = "tickets/\n.cdd/\n__pycache__/\n.pytest_cache/\n"
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text(exclude)
    write(root, {"pytest.ini": "[pytest]\n", "calc.py": CALC.replace("+", "-")})
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    git(root, "switch", "--quiet", "--create", "work")
    model = script(sandbox, REPLY, says("a.txt", "good"))
    home = tmp_path_factory.mktemp("home")
    with at_home(home), with_quick_pytest(quick_pytest_folder):
        assert cdd(sandbox, "exec", SLUG, "--model", model) == 0
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=The work")
    return root


@pytest.fixture
def done(prepared: Path, tmp_path: Path) -> Sandbox:
    """Both steps are done and committed on the branch `work`; `main` has neither."""
    root = tmp_path.resolve() / "project"
    shutil.copytree(prepared, root, symlinks=True)
    return Sandbox(root)


def last(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    *_, finished = events(capsys)
    assert finished["event"] == "verify_finished"
    return finished


def results(finished: dict[str, Any]) -> list[str]:
    return [step["result"] for step in finished["steps"]]


def private_trees(root: Path) -> list[str]:
    folder = root / ".cdd" / "runs" / ".private"
    return [path.name for path in folder.glob("*") if path.name != "lock"]


@pytest.mark.story
def test_another_branch_does_not_have_the_work(
    done: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    before, saved = state(done.root), done.state()
    assert cdd(done, "verify", SLUG, "--json") == 0
    assert results(last(capsys)) == ["holds", "holds"]
    assert state(done.root) == before

    git(done.root, "switch", "--quiet", "main")
    assert cdd(done, "verify", SLUG, "--json") == 1
    finished = last(capsys)
    assert results(finished) == ["broken", "broken"]
    assert finished["steps"][0]["lost"] == ["test_calc.py::test_add"]
    assert finished["steps"][1]["missing"]["missing"] == ["a.txt"]
    assert done.state() == saved
    assert private_trees(done.root) == []


@pytest.mark.story
def test_an_edit_that_is_not_committed_counts(
    done: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    write(done.root, {"calc.py": CALC.replace("+", "-")})
    assert cdd(done, "verify", SLUG, "--json") == 1
    assert results(last(capsys)) == ["broken", "holds"]
    write(done.root, {"calc.py": CALC.replace("a + b", "b + a")})
    assert cdd(done, "verify", SLUG, "--json") == 0
    assert results(last(capsys)) == ["holds", "holds"]


STRONG = TEST + "    assert add(0, 0) == 0\n"


@pytest.mark.story
def test_a_weak_test_and_a_strong_one(
    done: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    weak = TEST.replace("add(1, 2) == 3", "add(0, 0) is not False")
    write(done.root, {"test_calc.py": weak})
    before = state(done.root)
    assert cdd(done, "verify", SLUG, "--strength", "--json") == 0
    *_, finished = events(capsys)
    first, second = finished["steps"]
    (fault,) = first["unnoticed"]
    assert (fault["path"], fault["line"]) == ("calc.py", 2)
    assert fault["words"] == "`None` was returned instead of `a + b`"
    assert first["strength"]["noticed"] == 0
    assert second["strength"] is None
    assert state(done.root) == before

    write(done.root, {"test_calc.py": STRONG})
    assert cdd(done, "verify", SLUG, "--strength", "--json") == 0
    *_, finished = events(capsys)
    strength = finished["steps"][0]["strength"]
    assert (strength["noticed"], strength["faults"]) == (1, 1)
    assert private_trees(done.root) == []


@pytest.mark.fork
def test_limits_belong_to_the_measurement(done: Sandbox) -> None:
    for option in ("--faults", "--seconds"):
        assert cdd(done, "verify", SLUG, option, "3") == 2
        with pytest.raises(SystemExit, match="2"):
            cdd(done, "verify", SLUG, "--strength", option, "0")


@pytest.mark.fork
def test_bad_input(done: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert cdd(done, "verify", "no-such-ticket") == 2
    assert cdd(done, "undo", SLUG, "--step", "1") == 0
    assert cdd(done, "verify", SLUG) == 2


def verify_slowly(done: Sandbox) -> tuple[Any, psutil.Process]:
    """Start `cdd verify` with a check that does not end, and wait until it runs."""
    sleeps = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(99)"
    plan = done.ticket / "plan.md"
    plan.write_text(plan.read_text().replace(check("a.txt"), f'python -c "{sleeps}"'))
    running = process(done, "verify", SLUG, "-C", str(done.root))
    folder = done.root / ".cdd" / "runs" / ".private"
    deadline = time.monotonic() + 60
    while True:
        for file in folder.glob("*/tree/pid"):
            if file.read_text():
                return running, psutil.Process(int(file.read_text()))
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.fork
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_leaves_nothing(done: Sandbox, name: str) -> None:
    before = state(done.root)
    plan = (done.ticket / "plan.md").read_text()
    running, command = verify_slowly(done)
    running.send_signal(getattr(signal, name))
    running.communicate()
    assert running.returncode == 130
    assert alive([command]) == []
    assert private_trees(done.root) == []
    (done.ticket / "plan.md").write_text(plan)
    assert state(done.root) == before


@pytest.mark.fork
def test_an_interrupt_of_a_measurement_keeps_what_was_measured(
    done: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = "\n\nimport time\n\n\ndef test_slow():\n    time.sleep(0.5)\n"
    code = CALC.replace("return", "if a < 0 and b < 0:\n        return -1\n    return")
    reply = f"{says('calc.py', code)}\n{says('test_calc.py', TEST + slow)}"
    assert cdd(done, "undo", SLUG, "--step", "1") == 0
    model = script(done, reply, says("a.txt", "good"))
    assert cdd(done, "exec", SLUG, "--model", model) == 0
    capsys.readouterr()
    running = process(done, "verify", SLUG, "--strength", "-C", str(done.root))
    saved = done.root / ".cdd" / "runs" / SLUG / "strength.jsonl"
    deadline = time.monotonic() + 60
    while not saved.exists() or saved.read_bytes().count(b"\n") < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    running.communicate()
    assert running.returncode == 130
    assert private_trees(done.root) == []
    measured = saved.read_bytes().count(b"\n")
    assert cdd(done, "verify", SLUG, "--strength", "--json") == 0
    started = next(one for one in events(capsys) if one["event"] == "strength_started")
    assert started["saved"] == measured


@pytest.mark.crash
def test_a_kill_leaves_nothing_to_the_next_start(done: Sandbox) -> None:
    plan = (done.ticket / "plan.md").read_text()
    running, command = verify_slowly(done)
    running.kill()
    running.communicate()
    assert private_trees(done.root) != []
    (done.ticket / "plan.md").write_text(plan)
    assert cdd(done, "verify", SLUG) == 0
    assert alive([command]) == []
    assert private_trees(done.root) == []


@pytest.mark.fork
def test_it_runs_while_another_process_works_on_the_ticket(
    done: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sleeps = "import time; open('began', 'w'); time.sleep(99)"
    done.write(
        Step("calc.py", also=("- `test_calc.py`",)),
        Step("a.txt", check("a.txt")),
        Step("b.txt", f'python -c "{sleeps}"'),
    )
    model = script(done, says("b.txt", "good"))
    running = process(done, "exec", SLUG, "--model", model, "-C", str(done.root))
    try:
        deadline = time.monotonic() + 60
        while not (done.root / "began").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert cdd(done, "verify", SLUG, "--json") == 0
        assert results(last(capsys)) == ["holds", "holds", "open"]
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate()
