"""The state of a run: a value, its transitions, and the file with the promised keys."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.cost import Cost
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.state import (
    ExecutionState,
    Files,
    StateIsNewer,
    StateUnreadable,
    StepExecution,
    next_step,
)
from cdd_agent.tickets.state_file import (
    load_state,
    read_state,
    read_state_file,
    save_state,
)
from cdd_agent.tickets.status import RunStatus, StepStatus, Verification
from cdd_agent.tickets.store import Ticket, TicketStore
from tests.support.tables import each_row

SLUG = "feature-user-auth"
NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
PROMISED = """{
 "ticket_slug": "feature-user-auth", "current_step": 2, "status": "in_progress",
 "started_at": "2026-11-21T10:00:00+00:00", "completed_at": null,
 "step_executions": {"1": {"step_number": 1, "status": "completed",
   "started_at": "2026-11-21T10:00:00+00:00",
   "completed_at": "2026-11-21T10:01:00+00:00", "error": null,
   "files_created": ["src/models/user.py"], "files_modified": []}}}"""


def plan(**dependencies: tuple[int, ...]) -> ImplementationPlan:
    """Return a plan with steps such as `s1=(2, 3)`, which depends on steps 2 and 3."""
    steps = [
        PlanStep(int(name[1:]), name, dependencies=needs)
        for name, needs in dependencies.items()
    ]
    return ImplementationPlan(SLUG, steps=tuple(steps))


def state(**statuses: str) -> ExecutionState:
    """Return a state with steps such as `s1="completed"`."""
    steps = {
        int(name[1:]): StepExecution(int(name[1:]), status=StepStatus(s))
        for name, s in statuses.items()
    }
    return ExecutionState(SLUG, step_executions=steps)


def started(attempt: int = 1) -> ExecutionState:
    return (
        ExecutionState(SLUG)
        .with_steps([1, 2])
        .started(PlanStep(1, "a"), NOW, attempt=attempt)
    )


# The file


def test_an_older_file_with_only_the_promised_keys_loads(tmp_path: Path) -> None:
    ticket = Ticket(SLUG, tmp_path, tmp_path)
    ticket.state_path.write_text(PROMISED)
    loaded = load_state(ticket, plan(s1=(), s2=()))
    assert loaded is not None
    assert loaded.step(1).files_created == ("src/models/user.py",)
    assert (loaded.step(1).status, loaded.step(2).status) == (
        StepStatus.COMPLETED,
        StepStatus.PENDING,
    )
    assert loaded.step(1).verification is Verification.NONE
    assert loaded.step(1).lacks_costs
    assert ExecutionState.from_json(loaded.to_json(), "s") == loaded
    assert not loaded.with_costs({1: Cost(7)}).step(1).lacks_costs


def test_a_saved_file_has_the_promised_keys(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    save_state(
        started().completed(1, NOW, Verification.PASSED, Files(created=("a.py",))), path
    )
    saved = json.loads(path.read_text())
    assert list(saved) == list(json.loads(PROMISED))
    assert (saved["status"], saved["started_at"]) == (
        "in_progress",
        "2026-11-21T10:00:00+00:00",
    )
    step = saved["step_executions"]["1"]
    assert step.keys() >= json.loads(PROMISED)["step_executions"]["1"].keys()
    assert (step["files_created"], step["completed_at"]) == (
        ["a.py"],
        "2026-11-21T10:00:00+00:00",
    )


def test_half_a_surrogate_pair_can_be_saved(tmp_path: Path) -> None:
    save_state(started().failed(1, NOW, "half \ud83d"), tmp_path / "s.json")
    saved = read_state_file(tmp_path / "s.json")
    assert saved is not None
    assert saved.step(1).error == "half ?"


def test_keys_of_a_newer_version_do_not_keep_a_file_from_loading() -> None:
    newer = json.loads(PROMISED) | {"more": {"a": [1.5, None]}}
    newer["step_executions"]["1"]["more"] = 3
    assert ExecutionState.from_json(json.dumps(newer).encode(), "s").tally.over == 1


@each_row("key", ["step_executions", "former_steps", "undone"])
def test_a_verification_of_a_newer_version_is_named_and_the_file_stays(
    tmp_path: Path, key: str
) -> None:
    newer = json.loads(PROMISED)
    step = newer["step_executions"]["1"] | {"verification": "by_oracle"}
    newer[key] = {"1": step}
    if key == "undone":
        newer[key] = [{"id": "u", "steps": [step]}]
    path = tmp_path / "s.json"
    path.write_text(json.dumps(newer))
    with pytest.raises(StateIsNewer, match="by_oracle"):
        read_state_file(path)
    assert json.loads(path.read_text()) == newer


def test_the_status_in_the_file_is_ignored() -> None:
    content = json.loads(PROMISED) | {"status": "completed"}
    content["step_executions"]["1"]["status"] = "failed"
    assert (
        ExecutionState.from_json(json.dumps(content).encode(), "s").status
        is RunStatus.FAILED
    )


@each_row(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"step_executions": {}}',
        "\ufeff{}",
        "[" * 100_000,
        '{"ticket_slug": "a"}',
    ],
)
def test_a_file_that_is_not_a_state_is_unreadable(text: str) -> None:
    with pytest.raises(StateUnreadable, match="here/state"):
        ExecutionState.from_json(text.encode(), "here/state.json")


@given(st.binary(max_size=200))
def test_any_bytes_are_unreadable(data: bytes) -> None:
    with pytest.raises(StateUnreadable):
        ExecutionState.from_json(data, "s")


WRONG_VALUES: dict[str, tuple[Any, ...]] = {
    "ticket_slug": (None, 3),
    "current_step": (None, "2", True),
    "status": (None, ["completed"]),
    "started_at": (3, "yesterday"),
    "completed_at": (3, ""),
    "step_executions": (None, [], {"one": {}}, {"1": None}),
}
WRONG_STEP_VALUES: dict[str, tuple[Any, ...]] = {
    "step_number": (None, 2, "1"),
    "status": (None, "done"),
    "started_at": (3, "yesterday"),
    "completed_at": (3, ""),
    "error": (3,),
    "files_created": (None, "a.py", [3]),
    "files_modified": (None, {"a.py": 1}),
}


@each_row("key", WRONG_VALUES)
def test_a_promised_key_that_is_missing_or_wrong_makes_the_file_unreadable(
    key: str,
) -> None:
    content = json.loads(PROMISED)
    for value in WRONG_VALUES[key]:
        _assert_unreadable(content | {key: value}, key)
    del content[key]
    _assert_unreadable(content, key)


@each_row("place", ["step_executions", "former_steps"])
@each_row("key", WRONG_STEP_VALUES)
def test_so_does_a_promised_key_of_a_step(place: str, key: str) -> None:
    content = json.loads(PROMISED)
    step = content["step_executions"]["1"]
    for value in WRONG_STEP_VALUES[key]:
        _assert_unreadable(content | {place: {"1": step | {key: value}}}, key)
    _assert_unreadable(
        content | {place: {"1": {k: v for k, v in step.items() if k != key}}}, key
    )


def _assert_unreadable(content: object, reason: str) -> None:
    with pytest.raises(StateUnreadable, match=reason):
        ExecutionState.from_json(json.dumps(content).encode(), "s")


def test_no_file_is_no_state(tmp_path: Path) -> None:
    assert load_state(Ticket("bug-x", tmp_path, tmp_path), plan(s1=())) is None


@each_row(
    ("named", "others", "record", "read_as"),
    [
        ("bug-x", (), None, "bug-x"),
        ("bug-old", (), None, "bug-x"),
        ("bug-old", ("bug-other",), None, "bug-x"),
        # Its record was moved, and the process was killed.
        ("bug-old", (), "bug-old", "bug-x"),
        # The original is there.
        ("bug-old", ("bug-old",), None, None),
        ("bug-old", ("group/bug-old",), None, None),
        # Neither known, nor needed: this ticket has a run of its own.
        ("bug-old", (), "bug-x", StateUnreadable),
        ("", (), None, StateUnreadable),
        ("../bug-old", (), None, StateUnreadable),
        ("a/b", (), None, StateUnreadable),
        (".together", (), None, StateUnreadable),
        ("a\\b", (), None, StateUnreadable),
    ],
)
def test_a_state_is_read_as_that_of_its_folder_unless_it_is_a_copy(
    tmp_path: Path,
    named: str,
    others: tuple[str, ...],
    record: str | None,
    read_as: str | type[StateUnreadable] | None,
) -> None:
    ticket = Ticket("bug-x", tmp_path / "tickets/bug-x", tmp_path)
    save_state(replace(started(), ticket_slug=named), ticket.state_path)
    for other in others:
        (tmp_path / "tickets" / other).mkdir(parents=True)
        (tmp_path / "tickets" / other / "spec.yaml").touch()
    if record is not None:
        copy = tmp_path / ".cdd/runs/bug-x/state.json"
        save_state(replace(started(), ticket_slug=record), copy)

    if read_as is StateUnreadable:
        with pytest.raises(StateUnreadable):
            read_state(ticket)
        return
    state = read_state(ticket)
    assert (state.ticket_slug if state else None) == read_as


def test_each_of_a_chain_of_renamed_tickets_is_known_by_its_state(
    tmp_path: Path,
) -> None:
    # a was renamed to b after b was renamed to c, and c is not there any more.
    for slug, named in (("bug-b", "bug-a"), ("bug-c", "bug-b")):
        ticket = Ticket(slug, tmp_path / "tickets" / slug, tmp_path)
        ticket.folder.mkdir(parents=True)
        ticket.spec_path.touch()
        save_state(replace(started(), ticket_slug=named), ticket.state_path)

    store = TicketStore(tmp_path)

    assert store.find("bug-b").former_slug == "bug-a"
    assert store.find("bug-c").former_slug == "bug-b"


# Status and transitions


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, RunStatus.IN_PROGRESS),
        ({"s1": "completed", "s2": "in_progress"}, RunStatus.IN_PROGRESS),
        ({"s1": "completed", "s2": "failed"}, RunStatus.FAILED),
        ({"s1": "completed", "s2": "skipped"}, RunStatus.COMPLETED),
    ],
)
def test_the_status_of_a_run_is_computed_from_its_steps(
    statuses: dict[str, str], expected: RunStatus
) -> None:
    assert state(**statuses).status is expected


@pytest.mark.parametrize(
    ("statuses", "number"),
    [
        ({}, 2),
        ({"s2": "completed"}, 1),
        ({"s2": "skipped"}, 1),
        ({"s2": "failed"}, 2),
        ({"s2": "in_progress"}, 2),
        ({"s2": "completed", "s1": "completed", "s3": "completed"}, None),
    ],
)
def test_the_next_step_is_the_first_whose_dependencies_are_over(
    statuses: dict[str, str], number: int | None
) -> None:
    step = next_step(plan(s1=(2,), s2=(), s3=(1, 2)), state(**statuses))
    assert (step.number if step else None) == number


def test_an_interrupted_step_keeps_only_its_attempts() -> None:
    step = started(attempt=2).restore(1).step(1)
    assert (step.status, step.started_at, step.attempts) == (
        StepStatus.PENDING,
        None,
        2,
    )


def test_a_completed_run_that_is_continued_is_not_completed() -> None:
    done = (
        ExecutionState(SLUG).with_steps([1]).started(PlanStep(1, "a"), NOW, attempt=1)
    )
    done = done.completed(1, NOW, Verification.NONE, Files())
    assert done.completed_at == NOW
    assert (
        done.with_steps([1, 2]).started(PlanStep(2, "b"), NOW, attempt=1).completed_at
        is None
    )


def test_what_a_state_notes_of_criteria_is_saved_and_older_files_have_none() -> None:
    plain = started()
    saved = json.loads(plain.to_json())
    assert "criteria" not in saved
    assert not {"serves", "spec_version", "is_for_all"} & {
        *saved["step_executions"]["1"]
    }

    step = replace(
        plain.step(1),
        serves={"1": "d1", "login": None},
        spec_version=1,
        is_for_all=True,
    )
    noted = replace(plain, criteria=((), ("d1", "d2")), step_executions={1: step})
    assert ExecutionState.from_json(noted.to_json(), "s.json") == noted
    undone = noted.undo([step], "undo-1")
    assert ExecutionState.from_json(undone.to_json(), "s.json") == undone
    for version in (-1, 2):
        wrong = replace(step, spec_version=version)
        for state in (
            replace(noted, step_executions={1: wrong}),
            noted.undo([wrong], "undo-1"),
        ):
            with pytest.raises(StateUnreadable, match="spec_version"):
                ExecutionState.from_json(state.to_json(), "s.json")


def test_a_redo_reverts_an_undo() -> None:
    done = started().completed(1, NOW, Verification.PASSED, Files(modified=("a.py",)))
    undone = done.undo([done.step(1)], "u")
    assert (undone.step(1).status, undone.step(1).hidden_attempts) == (
        StepStatus.PENDING,
        1,
    )
    assert undone.redo() == done
