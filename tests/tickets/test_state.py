"""How far a run is: a value, its transitions, and the file that is promised."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.state import (
    ExecutionState,
    Files,
    StateUnreadable,
    StepExecution,
    load_state,
    read_state,
    ready,
    save_state,
)
from cdd_agent.tickets.status import Cost, RunStatus, StepStatus, Verification

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
PROMISED = """{"ticket_slug": "feature-user-auth", "current_step": 2, "status": "in_progress",
 "started_at": "2026-11-21T10:00:00+00:00", "completed_at": null,
 "step_executions": {"1": {"step_number": 1, "status": "completed", "started_at": "2026-11-21T10:00:00+00:00",
   "completed_at": "2026-11-21T10:01:00+00:00", "error": null, "files_created": ["src/models/user.py"],
   "files_modified": []}}}"""


def plan(**dependencies: tuple[int, ...]) -> ImplementationPlan:
    steps = tuple(
        PlanStep(number=int(name[1:]), title=name, description="", dependencies=needs)
        for name, needs in dependencies.items()
    )
    return ImplementationPlan(ticket_slug="feature-user-auth", ticket_title="x", steps=steps)


def state(**statuses: StepStatus) -> ExecutionState:
    entries = {int(name[1:]): StepExecution(int(name[1:]), status=StepStatus(of)) for name, of in statuses.items()}
    return ExecutionState("feature-user-auth", step_executions=entries)


def test_an_older_file_with_only_the_promised_keys_loads(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(PROMISED)
    loaded = load_state(tmp_path / "s.json", "feature-user-auth", plan(s1=(), s2=()))
    assert loaded
    assert loaded.of(1).files_created == ("src/models/user.py",)
    assert (loaded.of(1).status, loaded.of(2).status) == (StepStatus.COMPLETED, StepStatus.PENDING)


def test_the_file_has_the_promised_keys_in_their_form(tmp_path: Path) -> None:
    begun = ExecutionState(ticket_slug="feature-x").with_steps([1, 2]).started(PlanStep(1, "a"), NOW, attempt=1)
    save_state(begun.completed(1, NOW, Verification.PASSED, Files(created=("a.py",))), tmp_path / "s.json")

    saved = json.loads((tmp_path / "s.json").read_text())

    assert list(saved) == ["ticket_slug", "current_step", "status", "started_at", "completed_at", "step_executions"]
    assert (saved["status"], saved["started_at"]) == ("in_progress", "2026-11-21T10:00:00+00:00")
    assert saved["step_executions"]["1"]["files_created"] == ["a.py"]
    assert saved["step_executions"]["1"]["completed_at"] == "2026-11-21T10:00:00+00:00"
    assert saved["step_executions"]["2"]["status"] == "pending"


def test_keys_of_a_newer_version_are_kept() -> None:
    newer = json.loads(PROMISED) | {"plan_digest": "abc"}
    newer["step_executions"]["1"]["cost"] = 3
    again = json.loads(ExecutionState.from_json(json.dumps(newer).encode(), "s").to_json())
    assert (again["plan_digest"], again["step_executions"]["1"]["cost"]) == ("abc", 3)


@pytest.mark.parametrize("key", ["more", "", "spent_in_total", "step"])
def test_so_is_any_key_at_any_place(key: str) -> None:
    newer = json.loads(PROMISED) | {key: {"a": [1.5, None]}}
    newer["step_executions"]["1"][key] = [{}]
    newer["undone"] = [{"id": "u", "steps": [newer["step_executions"]["1"]], key: "u"}]
    again = json.loads(ExecutionState.from_json(json.dumps(newer).encode(), "s").to_json())
    assert again[key] == {"a": [1.5, None]}
    assert again["step_executions"]["1"][key] == [{}]
    assert (again["undone"][0][key], again["undone"][0]["steps"][0][key]) == ("u", [{}])


def test_what_is_nested_so_deeply_that_it_could_not_be_saved_is_told() -> None:
    for levels in (150, 100_000):
        newer = PROMISED.replace('"current_step"', f'"deep": {"[" * levels}{"]" * levels}, "current_step"')
        with pytest.raises(StateUnreadable, match="deep"):
            ExecutionState.from_json(newer.encode(), "s")


def test_what_steps_took_stays_unknown_where_the_file_does_not_say() -> None:
    state = ExecutionState.from_json(PROMISED.encode(), "s")
    assert state.of(1).lacks_costs
    assert ExecutionState.from_json(state.to_json(), "s").of(1).lacks_costs
    known = state.with_costs({1: Cost(7)})
    assert not ExecutionState.from_json(known.to_json(), "s").of(1).lacks_costs


def test_half_of_a_character_in_an_error_is_no_reason_not_to_save_it(tmp_path: Path) -> None:
    begun = ExecutionState("feature-x").with_steps([1]).started(PlanStep(1, "a"), NOW, attempt=1)
    save_state(begun.failed(1, NOW, "half \ud83d"), tmp_path / "s.json")
    saved = read_state(tmp_path / "s.json", "feature-x")
    assert saved is not None
    assert saved.of(1).error == "half ?"


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, RunStatus.IN_PROGRESS),
        ({"s1": "completed", "s2": "pending"}, RunStatus.IN_PROGRESS),
        ({"s1": "completed", "s2": "in_progress"}, RunStatus.IN_PROGRESS),
        ({"s1": "completed", "s2": "failed"}, RunStatus.FAILED),
        ({"s1": "completed", "s2": "skipped"}, RunStatus.COMPLETED),
    ],
)
def test_the_runs_status_is_computed(statuses: dict[str, StepStatus], expected: RunStatus) -> None:
    assert state(**statuses).status is expected


def test_a_status_that_somebody_wrote_into_the_file_is_not_believed() -> None:
    text = PROMISED.replace('"in_progress"', '"completed"').replace(
        '"status": "completed", "started', '"status": "failed", "started'
    )
    assert json.loads(text)["status"] == "completed"
    assert ExecutionState.from_json(text.encode(), "s").status is RunStatus.FAILED


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '{"ticket_slug": 3}', '{"step_executions": {}}', "\ufeff{}", "[" * 100_000,
     '{"ticket_slug": "a", "step_executions": {"x": {}}}', '{"ticket_slug": "a", "current_step": "one"}'],
)  # fmt: skip
def test_a_file_that_is_no_state_is_told_with_its_name(text: str) -> None:
    with pytest.raises(StateUnreadable, match="here/state"):
        ExecutionState.from_json(text.encode(), "here/state.json")


OF_STATE = ("ticket_slug", "current_step", "status", "started_at", "completed_at", "step_executions")
OF_STEP = ("step_number", "status", "started_at", "completed_at", "error", "files_created", "files_modified")
WRONG: dict[str, tuple[object, ...]] = {
    "ticket_slug": (None, 3, ["x"]),
    "current_step": (None, "2", 2.5, True),
    "status": (None, 1, ["completed"]),
    "started_at": (3, "yesterday", {}),
    "completed_at": (3, "", []),
    "step_executions": (None, [], "1", {"one": {}}, {"1": None}, {"1": []}),
    "step_number": (None, 2, "1", True),
    "error": (3, ["x"]),
    "files_created": (None, "a.py", [3], {"a.py": 1}),
    "files_modified": (None, "a.py", [None]),
}


def damaged(place: str, key: str, *values: object) -> bytes:
    """A whole state, but for a key of the state itself or of a step in it, that is missing or has another value."""
    content = json.loads(PROMISED)
    content["former_steps"] = {"7": content["step_executions"]["1"] | {"step_number": 7}}
    ExecutionState.from_json(json.dumps(content).encode(), "s")
    record: dict[str, Any] = content if place == "state" else next(iter(content[place].values()))
    del record[key]
    for value in values:
        record[key] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("place", "key"),
    [
        *(("state", key) for key in OF_STATE),
        *((place, key) for place in ("step_executions", "former_steps") for key in OF_STEP),
    ],
)
def test_a_state_that_lacks_what_is_promised_or_has_it_wrong_is_damaged(place: str, key: str) -> None:
    for data in (damaged(place, key), *(damaged(place, key, value) for value in WRONG[key])):
        with pytest.raises(StateUnreadable, match=key):
            ExecutionState.from_json(data, "s")


@pytest.mark.parametrize("place", ["step_executions", "former_steps"])
@pytest.mark.parametrize("word", ["done", "paused", "", "COMPLETED"])
def test_a_step_with_an_unknown_status_is_damaged(place: str, word: str) -> None:
    with pytest.raises(StateUnreadable, match="status"):
        ExecutionState.from_json(damaged(place, "status", word), "s")


def test_what_an_older_tool_took_for_done_is_unverified() -> None:
    done = ExecutionState.from_json(PROMISED.encode(), "s")
    assert done.of(1).verification is Verification.NONE
    assert ExecutionState.from_json(done.to_json(), "s") == done


@given(st.binary(max_size=200))
def test_any_bytes_are_a_state_or_unreadable(data: bytes) -> None:
    with pytest.raises(StateUnreadable):
        ExecutionState.from_json(data, "s")


def test_a_state_of_another_ticket_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(PROMISED)
    with pytest.raises(BadInput, match="feature-user-auth"):
        load_state(tmp_path / "s.json", "bug-x", plan(s1=()))


def test_no_file_is_no_state(tmp_path: Path) -> None:
    assert load_state(tmp_path / "s.json", "bug-x", plan(s1=())) is None


@pytest.mark.parametrize(
    ("statuses", "number"),
    [
        ({}, 2),
        ({"s2": "completed"}, 1),
        ({"s2": "skipped"}, 1),
        ({"s2": "failed"}, 2),
        ({"s2": "in_progress"}, 2),
        ({"s2": "completed", "s1": "completed"}, 3),
        ({"s2": "completed", "s1": "completed", "s3": "completed"}, None),
    ],
)
def test_the_next_step_is_the_first_whose_dependencies_are_over(
    statuses: dict[str, StepStatus], number: int | None
) -> None:
    step = ready(plan(s1=(2,), s2=(), s3=(1, 2)), state(**statuses))
    assert (step.number if step else None) == number


def test_an_interrupted_step_leaves_no_trace_but_its_count() -> None:
    begun = ExecutionState(ticket_slug="a").with_steps([1]).started(PlanStep(1, "a"), NOW, attempt=2)
    back = begun.restore(1).of(1)
    assert (back.status, back.started_at, back.attempts) == (StepStatus.PENDING, None, 2)


def test_a_completed_run_that_is_started_again_is_not_complete() -> None:
    done = ExecutionState(ticket_slug="a").with_steps([1]).started(PlanStep(1, "a"), NOW, attempt=1)
    done = done.completed(1, NOW, Verification.NONE, Files())
    assert done.completed_at == NOW
    assert done.with_steps([1, 2]).started(PlanStep(2, "b"), NOW, attempt=1).completed_at is None
