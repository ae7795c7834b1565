"""The sample project of the demo."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdd_agent.cli.main import main
from cdd_agent.demo.sample import copy_sample, own_environment
from cdd_agent.errors import ExitCode
from cdd_agent.llm.port import Message, Request
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.settings.config import Config
from cdd_agent.settings.reading import VARIABLES
from cdd_agent.tickets.served_criteria import places_of_step
from cdd_agent.tickets.store import TicketStore
from tests.git.repositories import git
from tests.support.screens import Screen
from tests.support.settings import load_config
from tests.support.terminals import CDD, Terminal

REPOSITORY = Path(__file__).parents[2]
KEYS = sorted(
    {
        name
        for provider in PROVIDERS.values()
        for name in (*provider.keys, *provider.addresses)
    }
)
OUTSIDE = {
    **dict.fromkeys(
        (*VARIABLES, *KEYS, "ANTHROPIC_API_KEY", "OPENAI_ORGANIZATION"), "not a setting"
    ),
    "CDD_MODEL": "openai/gpt-5",
    "CDD_MODLE": "openai/gpt-5",
    "CDD_ENABLE_UNSAFE_COMMANDS": "true",
    "HIVE_ENABLE_UNSAFE_COMMANDS": "true",
    "PYTEST_ADDOPTS": "--no-such-option",
    "PYTEST_PLUGINS": "no_such_plugin",
    "PYTHONWARNINGS": "error",
    "API_TOKEN": "completed",  # a poor secret, and all over what is shown
}


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the demo is copied to: everything around it is set, and wrong."""
    files = {
        ".cdd/config.yaml": "model: openai/parents\n",
        "conftest.py": "raise RuntimeError('not of the demo')\n",
        "pytest.ini": "[pytest]\naddopts = --no-such-option\n",
        "user.yaml": "modle: typo\n",
        "home/.gitconfig": (
            "[core]\n    excludesFile = ~/ignored\n[commit]\n    template = ~/missing\n"
        ),
        "home/ignored": "*.csv\ntests/\n",
        "bin/pytest": "#!/bin/sh\necho another pytest; exit 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "bin/pytest").chmod(0o755)
    places = {
        "CDD_USER_CONFIG": tmp_path / "user.yaml",
        "HOME": tmp_path / "home",
        "TMPDIR": tmp_path,
    }
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    for name, value in {**OUTSIDE, **places, "PATH": path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield tmp_path
    monkeypatch.setattr("tempfile.tempdir", None)


def test_the_sample_is_under_git_of_its_own_also_in_a_hook_of_another_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    folder = copy_sample()
    try:
        monkeypatch.delenv("GIT_DIR")
        assert len(git(folder, "log", "--format=%s").splitlines()) == 1
        assert git(folder, "status", "--porcelain") == ""
        assert git(tmp_path, "status", "--porcelain") == ""
    finally:
        shutil.rmtree(folder)


def test_its_script_answers_whatever_is_asked_as_often_as_it_is() -> None:
    folder = copy_sample()
    try:
        model = ScriptedModel.from_file(folder / ".cdd/demo-script.yaml")
    finally:
        shutil.rmtree(folder)
    answered = {
        model.next_reply(Request((Message("user", question),))).text
        for question in ("why did it fail?", "hello", "why did it fail?")
    }
    (answer,) = answered
    step = Request((Message("user", "# Step 1 of 4: Read the file"),))
    assert model.next_reply(step).text != answer


def test_each_step_of_its_plan_serves_criteria_and_each_criterion_is_served() -> None:
    folder = copy_sample()
    try:
        ticket = TicketStore(folder).find("feature-monthly-report")
        plan = ticket.read_plan()
        criteria = ticket.read_spec().acceptance_criteria
    finally:
        shutil.rmtree(folder)
    served = [places_of_step(step, None, criteria) for step in plan.steps]
    assert all(served)
    assert frozenset().union(*served) == {*range(1, len(criteria) + 1)}


@pytest.mark.story
def test_no_setting_from_outside_reaches_a_run_of_it(
    surroundings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = dict(os.environ)
    assert main(["demo", "--json"]) == ExitCode.DONE
    assert dict(os.environ) == environment
    out, err = capsys.readouterr()
    assert "script" in err
    events = [json.loads(line) for line in out.splitlines()]
    failed = [event for event in events if event["event"] == "attempt_failed"]
    assert [(event["step"], event["will_retry"]) for event in failed] == [(3, True)]
    assert (events[-1]["completed"], events[-1]["unverified"]) == (4, 0)
    assert {
        event["model"] for event in events if event["event"] == "reply_started"
    } == {"scripted"}
    assert "redacted" not in out
    (folder,) = surroundings.glob("cdd-demo-*")
    assert "expenses.csv" in git(folder, "ls-files")
    assert len(git(folder, "log", "--oneline").splitlines()) == 1


@pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
@pytest.mark.pty
def test_no_setting_from_outside_reaches_its_shell(surroundings: Path) -> None:
    terminal = Terminal(surroundings, CDD, "demo", size=(120, 40))
    try:
        screen = Screen(terminal, 120, 40)
        terminal.until(lambda: "Next: step 1" in screen.text)
        terminal.until(lambda: "demo-script" in screen.text)
        assert "gpt-5" not in screen.text
    finally:
        terminal.end()


def test_no_variable_means_anything_to_it(surroundings: Path) -> None:
    folder = copy_sample()
    with own_environment():
        left = [n for n in OUTSIDE if os.environ.get(n) not in (None, os.devnull)]
        config = load_config(folder, {})
    assert left == []
    assert config == Config(model="script:.cdd/demo-script.yaml", approval="edits")


def test_a_model_of_ones_own_is_no_part_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--model", "openai/gpt-5", "demo"]) == ExitCode.BAD_INPUT
    assert "--model" in capsys.readouterr().err


def test_its_lock_has_the_same_files_as_developing_and_no_developer_tools() -> None:
    everything, running = (
        _locked(name) for name in ("requirements.lock", "requirements-run.lock")
    )
    assert running.items() < everything.items()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    needed = {
        _name(text)
        for text in (*project["project"]["dependencies"], *groups["install"])
    }
    assert needed <= {_name(line) for line in running}
    tools = {_name(text) for text in groups["dev"] if isinstance(text, str)}
    assert not tools & {_name(line) for line in running}


def _locked(name: str) -> dict[str, frozenset[str]]:
    """Each package of a lock file, with its version and for which computers, and the
    hashes of its files.
    """
    blocks = re.split(r"^(?=\w)", (REPOSITORY / name).read_text(), flags=re.MULTILINE)
    return {
        block.split(" \\")[0]: frozenset(re.findall(r"sha256:\w+", block))
        for block in blocks
        if block
    }


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement)[0].lower()
