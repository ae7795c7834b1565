"""`cdd exec` of several tickets, with real processes: what is told, stopped, gone on
with, and left alone.
"""

import json
import signal
import time
from pathlib import Path

import pytest

from cdd_agent.fleet.board import RunState
from cdd_agent.fleet.local_runs import board_here, folder_of
from cdd_agent.llm.shared_waits import SharedWaits
from cdd_agent.settings.model_names import provider_of
from cdd_agent.tickets.store import TicketStore
from tests.fleet.tickets import (
    GOOD,
    ONE_STEP,
    begun,
    cdd,
    events,
    project,
    script,
    tree,
)
from tests.support.commandline import wait_for
from tests.support.json_lines import faults
from tests.support.projects import Step, check, endless_check, says
from tests.travel.copies import files, git


def state(root: Path, slug: str) -> str:
    found = json.loads(
        (tree(root, slug) / "tickets" / slug / "execution-state.json").read_text()
    )
    return str(found["step_executions"]["1"]["status"])


def waits_for(root: Path, model: str) -> SharedWaits:
    folder = folder_of(root)
    folder.mkdir(parents=True, exist_ok=True)
    return SharedWaits(folder / "waits.json", provider_of(model))


@pytest.mark.story
def test_one_of_two_fails_and_the_same_command_goes_on_with_that_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = (Step("a.txt", check("a.txt", "better")),)
    root = project(tmp_path, {"bug-a": ONE_STEP, "bug-b": bad}, monkeypatch)
    (root / "README").write_text("not committed\n")
    before = files(root)
    words = ("exec", "--all", "planned", "--max-attempts", "1")

    assert cdd(root, *words, "--model", script(tmp_path, GOOD), "--json") == 1

    told = events(capsys.readouterr().out)
    assert [faults(line) for line in told if faults(line)] == []
    assert [told[0]["event"], told[-1]["event"], told[-1]["exit_code"]] == [
        "runs_started",
        "runs_finished",
        1,
    ]
    assert [run["state"] for run in told[-1]["runs"]] == ["done", "failed"]
    assert {event["ticket"] for event in told if event["event"] == "step_started"} == {
        "bug-a",
        "bug-b",
    }
    assert files(root) == before
    # a run that is done is done only with its work
    (tree(root, "bug-a") / "a.txt").rename(tmp_path / "a.txt")
    once_more = (*words, "--model", script(tmp_path, GOOD), "--json")
    assert cdd(root, *once_more) == 1
    runs = events(capsys.readouterr().out)[-1]["runs"]
    assert [run["state"] for run in runs] == ["failed", "failed"]
    assert "step 1" in runs[0]["why"]
    (tmp_path / "a.txt").rename(tree(root, "bug-a") / "a.txt")
    branches = git(
        root, "for-each-ref", "--format=%(refname:short)", "refs/heads"
    ).splitlines()
    assert branches == ["cdd/bug-a", "cdd/bug-b", "main"]

    assert (
        cdd(
            root,
            *words,
            "--model",
            script(tmp_path, says("a.txt", "better")),
            "--jobs",
            "2",
        )
        == 0
    )

    out = capsys.readouterr().out
    assert "bug-b: begins" in out
    assert "bug-a: begins" not in out
    assert "2 runs · 2 done" in out
    assert "\x1b" not in out
    assert cdd(root, *words) == 0  # nothing is left, and no model is needed
    assert cdd(root, "land", "bug-b") == 0
    assert (root / "a.txt").read_text() == "better\n"
    capsys.readouterr()
    assert cdd(root, "exec", "bug-b", "bug-a") == 0
    out = capsys.readouterr().out
    assert "cdd land bug-a" in out
    assert "cdd land bug-b" not in out  # it has landed


@pytest.mark.fork
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed_the_same_command_goes_on_from_the_saved_replies(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    how: signal.Signals,
) -> None:
    root = project(
        tmp_path,
        dict.fromkeys(("bug-a", "bug-b"), (Step("a.txt", endless_check()),)),
        monkeypatch,
    )
    words = ("exec", "bug-a", "bug-b", "--model", script(tmp_path, GOOD))
    running = begun(root, *words)
    wait_for(
        lambda: all(
            (tree(root, slug) / "running").exists() for slug in ("bug-a", "bug-b")
        ),
        120,
    )
    running.send_signal(how)
    code = running.wait(timeout=120)
    if how is signal.SIGINT:
        assert code == 130
        assert [state(root, slug) for slug in ("bug-a", "bug-b")] == [
            "pending",
            "pending",
        ]
    script(tmp_path)  # nobody is asked again

    assert cdd(root, *words, "--json") == 0

    assert [
        event["saved"]
        for event in events(capsys.readouterr().out)
        if event["event"] == "reply_started"
    ] == [True] * 2
    assert [state(root, slug) for slug in ("bug-a", "bug-b")] == [
        "completed",
        "completed",
    ]


@pytest.mark.fork
def test_the_budget_is_one_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = tuple(Step(f"{name}.txt", check(f"{name}.txt")) for name in "abc")
    root = project(tmp_path, {"bug-a": steps, "bug-b": steps}, monkeypatch)
    (root / ".cdd").mkdir()
    (root / ".cdd" / "config.yaml").write_text("budget: {tokens: 9400}\n")
    model = script(tmp_path, *(says(f"{name}.txt", "good") for name in "abc"))

    assert cdd(root, "exec", "--all", "planned", "--model", model, "--json") == 3

    runs = events(capsys.readouterr().out)[-1]["runs"]
    assert [run["state"] for run in runs] == ["no budget", "no budget"]
    assert 0 < sum(run["done"] for run in runs) < 3
    assert 0 < sum(run["tokens"] for run in runs) <= 9_400
    tickets = TicketStore(root).list()
    later = board_here(root, tickets).rows
    assert [later[slug].state for slug in ("bug-a", "bug-b")] == [
        RunState.NO_BUDGET,
        RunState.NO_BUDGET,
    ]
    assert all("budget" in row.why for row in later.values())


@pytest.mark.fork
def test_while_a_provider_asks_to_come_back_later_none_of_them_asks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, model = (
        project(tmp_path, {"bug-a": ONE_STEP, "bug-b": ONE_STEP}, monkeypatch),
        script(tmp_path, GOOD),
    )
    waits_for(root, model).extend(time.time() + 900, "Too many requests.")

    assert (
        cdd(root, "exec", "bug-a", "bug-b", "--jobs", "1", "--json", "--model", model)
        == 75
    )

    told = events(capsys.readouterr().out)
    assert [run["state"] for run in told[-1]["runs"]] == ["later", "waiting"]
    assert "reply_finished" not in [event["event"] for event in told]


@pytest.mark.fork
def test_what_is_not_committed_is_said_to_be_left_out_of_the_trees_that_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, model = (
        project(tmp_path, {"bug-a": ONE_STEP, "bug-b": ONE_STEP}, monkeypatch),
        script(tmp_path, GOOD),
    )
    waits_for(root, model).extend(time.time() + 900, "Too many requests.")
    (root / "notes").write_text("new\n")  # so much is always left out
    words, said = (
        ("exec", "bug-a", "bug-b", "--jobs", "1", "--model", model),
        "uncommitted changes are not in",
    )

    assert cdd(root, *words) == 75
    assert said not in capsys.readouterr().out
    (root / "README").write_text("not committed\n")
    assert cdd(root, *words) == 75
    assert capsys.readouterr().out.splitlines()[0].count(said) == 1
    assert cdd(root, *words, "--json") == 75
    assert capsys.readouterr().out.splitlines()[0].count(said) == 0


def test_words_that_make_no_sense_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project(tmp_path, {"bug-a": ONE_STEP, "bug-b": ONE_STEP}, monkeypatch)
    for words in (
        ("exec",),
        ("exec", "bug-a", "--all", "planned"),
        ("exec", "bug-a", "bug-b", "--start-over"),
        ("exec", "bug-a", "bug-nope"),
        ("exec", "bug-a", "bug-b", "--record", str(tmp_path / "one.yaml")),
        ("compare", "bug-a"),
    ):
        assert cdd(root, *words) == 2, words
        assert capsys.readouterr().out == ""
    assert not tree(root, "bug-a").exists()
