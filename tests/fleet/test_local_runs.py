"""What the disk says of runs: which are planned, which are done, and the board that the
shell shows.
"""

import json
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from cdd_agent.commands.criteria import criteria_events
from cdd_agent.commands.listing import opened, view
from cdd_agent.cost import Cost
from cdd_agent.engine.lock import TicketLock
from cdd_agent.events.ticket_events import CriteriaShown, PlanOpened
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.job import TicketJob
from cdd_agent.fleet.local_runs import (
    board_here,
    find_planned,
    folder_of,
    load_board,
    load_row,
    save_board,
    save_planned,
)
from cdd_agent.session.open_project import open_project
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.tickets.store import TicketStore
from tests.fleet.tickets import TESTED, cdd, project, script, tree
from tests.support.homes import at_home, with_quick_pytest
from tests.support.projects import says
from tests.travel.copies import copied

SLUGS = ("bug-a", "bug-b", "bug-c")


@pytest.fixture(scope="module")
def prepared(
    tmp_path_factory: pytest.TempPathFactory, quick_pytest_folder: str
) -> Path:
    folder = tmp_path_factory.mktemp("known").resolve()
    with at_home(folder), pytest.MonkeyPatch.context() as patch:
        tickets = dict.fromkeys(SLUGS, TESTED)
        root = project(folder / "made", tickets, patch)
        model = script(folder, says("a.txt", "good"))
        with with_quick_pytest(quick_pytest_folder):
            assert cdd(root, "exec", "bug-a", "--worktree", "--model", model) == 0
    return root.parent


@pytest.fixture
def root(prepared: Path, tmp_path: Path) -> Path:
    """A project with three tickets, of which one was carried out in its own tree."""
    return copied(prepared, tmp_path.resolve() / "known") / "project"


def test_planned_are_those_not_carried_out_and_what_the_command_began_with(
    root: Path,
) -> None:
    tickets, folder = TicketStore(root).list(), folder_of(root)
    a, b, c = tickets
    assert find_planned(root, tickets, folder, "") == [b, c]
    save_planned(folder, [a, b])
    assert find_planned(root, tickets, folder, "") == [a, b, c]
    save_planned(folder, [a])  # all of that is done: it is another command's turn
    assert find_planned(root, tickets, folder, "") == [b, c]
    c.state_path.write_text("{}")  # begun in the person's own tree
    assert find_planned(root, tickets, folder, "") == [b]


def test_a_run_is_known_from_its_own_tree_and_by_its_rule(root: Path) -> None:
    a, b, _ = TicketStore(root).list()
    row = load_row(root, "", TicketJob("bug-a"), a, "verified")
    assert (row.state, row.tally, row.tries) == (
        RunState.DONE,
        StepTally(passed=1),
        {1: 1},
    )
    assert load_row(root, "", TicketJob("bug-b"), b).state is RunState.WAITING
    state = tree(root, "bug-a") / "tickets" / "bug-a" / "execution-state.json"
    of_step = json.loads(state.read_text())
    of_step["step_executions"]["1"]["verification"] = "none"
    state.write_text(json.dumps(of_step))
    assert load_row(root, "", TicketJob("bug-a"), a).state is RunState.COMPLETED
    assert (
        load_row(root, "", TicketJob("bug-a"), a, "verified").state is RunState.FAILED
    )


def test_a_run_whose_spec_was_edited_since_is_not_done(root: Path) -> None:
    a = TicketStore(root).list()[0]
    assert view(a).state == "done"
    spec = a.spec_path  # the user's own; the run's tree has a copy from before
    content = yaml.safe_load(spec.read_text()) | {"acceptance_criteria": ["It is new"]}
    spec.write_text(yaml.safe_dump(content))
    assert view(a).state == "spec changed"
    seen = opened(a)
    assert isinstance(seen, PlanOpened)
    assert [edited.text for edited in seen.edited_criteria] == ["It is new"]
    (shown,) = criteria_events(open_project(root, {}), "bug-a")
    assert isinstance(shown, CriteriaShown)
    assert [proof.text for proof in shown.criteria] == ["It is new"]
    row = load_row(root, "", TicketJob("bug-a"), a)
    assert (row.state, row.why) == (
        RunState.FAILED,
        "criterion 1 is changed since it was verified",
    )
    finished = {
        "event": "run_finished",
        "seconds": 2.0,
        "tally": {"unverified": 1},
        "edited_criteria": [{"place": 1, "text": "It is new", "edit": "new"}],
    }
    assert Row(TicketJob("bug-b")).after_event(finished).why == "criterion 1 is new"


def test_a_run_that_failed_or_is_under_way_is_known_with_its_step(root: Path) -> None:
    a = TicketStore(root).list()[0]
    path = tree(root, "bug-a") / "tickets" / "bug-a" / "execution-state.json"
    state = json.loads(path.read_text())
    state["step_executions"]["1"] |= {"status": "failed", "error": "`pytest` failed"}
    path.write_text(json.dumps(state | {"status": "failed"}))
    row = load_row(root, "", TicketJob("bug-a"), a)
    assert (row.state, list(row.steps), row.why) == (
        RunState.FAILED,
        [1],
        "`pytest` failed",
    )
    state["step_executions"]["1"]["status"] = "in_progress"
    path.write_text(json.dumps(state | {"status": "in_progress"}))
    row = load_row(root, "", TicketJob("bug-a"), a)
    assert (list(row.steps), row.why) == ([1], "")


def test_the_board_of_the_shell_has_runs_that_go_on_and_trees_that_wait(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tickets, folder = TicketStore(root).list(), folder_of(root)
    folder.mkdir()
    running = replace(
        Row(TicketJob("bug-b")),
        state=RunState.RUNNING,
        costs={1: Cost(50, 0.1)},
        tests=(3, 0),
    )
    save_board(folder, Board({"bug-b": running}))
    assert load_board(folder) == Board({"bug-b": running})

    def states() -> dict[str, RunState]:
        return {name: row.state for name, row in board_here(root, tickets).rows.items()}

    assert states() == {"bug-a": RunState.DONE}  # whoever saved it is gone
    lock = TicketLock.take(folder, folder.name, "2026-11-21T10:00:00+00:00")
    assert states() == {"bug-a": RunState.DONE, "bug-b": RunState.RUNNING}
    lock.release()
    own = TicketLock.take(
        _made(root / ".cdd" / "runs" / "bug-c"), "bug-c", "2026-11-21T10:00:00+00:00"
    )
    assert states() == {"bug-a": RunState.DONE, "bug-c": RunState.RUNNING}
    own.release()
    capsys.readouterr()
    assert cdd(root, "board") == 0
    assert "✓ bug-a" in capsys.readouterr().out
    assert cdd(root, "board", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["event"] == "board_shown"
    assert [(run["ticket"], run["state"], run["branch"]) for run in told["runs"]] == [
        ("bug-a", "done", "cdd/bug-a")
    ]


def test_a_run_whose_log_cannot_be_read_is_on_the_board(root: Path) -> None:
    """Why it stopped is not known then."""
    path = tree(root, "bug-a") / "tickets" / "bug-a" / "execution-state.json"
    state = json.loads(path.read_text())
    state["step_executions"]["1"]["status"] = "pending"
    path.write_text(json.dumps(state | {"status": "in_progress"}))
    log = tree(root, "bug-a") / ".cdd" / "runs" / "bug-a" / "events.jsonl"
    log.unlink()
    log.mkdir()
    (row,) = board_here(root, TicketStore(root).list()).rows.values()
    assert (row.job.name, row.state, row.why) == ("bug-a", RunState.STOPPED, "")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def test_a_board_is_saved_also_where_a_run_ended_with_half_of_a_character(
    tmp_path: Path,
) -> None:
    save_board(
        tmp_path, Board({"bug-b": replace(Row(TicketJob("bug-b")), why="half \ud83d")})
    )
    board = load_board(tmp_path)
    assert board is not None
    assert board.rows["bug-b"].why == "half ?"
