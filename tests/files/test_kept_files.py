"""Files that the version before this one wrote: they are read, and what is read is
written just so.
"""

import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from cdd_agent.agents.planning_notes import PlanningNotes
from cdd_agent.agents.spec_notes import SpecNotes
from cdd_agent.agents.store import LastActive, read_conversation
from cdd_agent.engine import approval, attempt
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.record import GoingBack
from cdd_agent.engine.whereabouts import OwnTreeMade, Whereabouts
from cdd_agent.files.json_file import Damaged, JsonFile, as_json, from_json
from cdd_agent.fleet.local_runs import load_board, save_board
from cdd_agent.tickets.state import ExecutionState, StateUnreadable
from cdd_agent.travel.came_back import CameBack
from cdd_agent.travel.lease import Lease
from cdd_agent.travel.manifest import Manifest
from cdd_agent.verification.baseline import Baseline
from tests.support.tables import each_row

KEPT = Path(__file__).with_name("kept")
FORMS: dict[str, type[JsonFile]] = {
    "answer-4.json": approval._SavedOutcome,
    "baseline.json": Baseline,
    "before.json": attempt._Before,
    "checks.json": attempt._Checks,
    "choices.json": Choices,
    "cluster.json": CameBack,
    "context.json": attempt.RankedContext,
    "dialogue.json": attempt._Dialogue,
    "failure.json": attempt.AttemptFailure,
    "going-back.json": GoingBack,
    "last-active.json": LastActive,
    "lease.json": Lease,
    "meanwhile.json": attempt._Meanwhile,
    "run.json": Manifest,
    "shown.json": attempt.Shown,
    "tests.json": attempt._Tests,
    "tree.json": OwnTreeMade,
    "whereabouts.json": Whereabouts,
}

OF_AGENTS: dict[str, type[Struct]] = {
    "planning.json": PlanningNotes,
    "socrates.json": SpecNotes,
}


def expect_part_of(older: Path, newer: Path) -> None:
    """All that an older file says is in the newer one, which may say more."""
    expect_part(json.loads(older.read_bytes()), json.loads(newer.read_bytes()))


def expect_part(older: object, newer: object) -> None:
    if isinstance(older, dict) and isinstance(newer, dict):
        for key, value in older.items():
            assert key in newer
            expect_part(value, newer[key])
    elif isinstance(older, list) and isinstance(newer, list):
        assert len(older) == len(newer)
        for one, other in zip(older, newer, strict=True):
            expect_part(one, other)
    else:
        assert older == newer


def test_every_file_of_it_is_read_here() -> None:
    others = {
        "execution-state.json",
        "board.json",
        "conversation.jsonl",
        "baseline-v1.json",
    }
    assert {
        path.name for path in KEPT.iterdir()
    } == FORMS.keys() | OF_AGENTS.keys() | others


@each_row("name", FORMS)
def test_it_is_written_as_it_was(tmp_path: Path, name: str) -> None:
    value = FORMS[name].load(KEPT / name)
    assert value is not None
    value.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == as_json(value)
    expect_part_of(KEPT / name, tmp_path / name)


def test_a_baseline_of_version_0_1_is_read_as_one_run(tmp_path: Path) -> None:
    older = json.loads((KEPT / "baseline-v1.json").read_bytes())
    baseline = Baseline.load(KEPT / "baseline-v1.json")
    assert baseline is not None
    (only,) = baseline.runs
    assert (baseline.step, only.step, only.already) == (1, 1, ())
    run = only.run
    assert (run.command, run.return_code, run.seconds, run.problem) == (
        older["command"],
        older["return_code"],
        older["seconds"],
        older["problem"],
    )
    assert run.tests is not None
    expect_part(older["tests"], json.loads(as_json(run.tests)))

    for changes, runs in (
        # there was nothing to run
        ({"command": None, "return_code": None, "tests": None}, 0),
        # it was ended, so its tests are not the whole result
        ({"return_code": None, "problem": "was ended"}, 1),
    ):
        (tmp_path / "baseline.json").write_text(json.dumps(older | changes))
        baseline = Baseline.load(tmp_path / "baseline.json")
        assert baseline is not None
        assert (len(baseline.runs), baseline.tests) == (runs, ())


@each_row(
    ("text", "why"),
    [
        ('{"step": 1, "runs": [{"step": "x", "run": {}}]}', "runs[0].step"),
        ('{"step": 1, "runs": [], "more": 1}', "more"),
        ("{", "truncated"),
    ],
)
def test_a_damaged_baseline_is_reported_as_one_of_this_version(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(Damaged, match=re.escape(why)):
        Baseline.load(path)


def test_what_was_shown_before_criteria_were_kept_is_read(tmp_path: Path) -> None:
    older = json.loads((KEPT / "shown.json").read_text())
    del older["criteria"]
    (tmp_path / "shown.json").write_text(json.dumps(older))
    shown = attempt.Shown.load(tmp_path / "shown.json")
    assert shown is not None
    assert shown.criteria is None


@each_row("name", OF_AGENTS)
def test_so_is_what_an_agent_keeps(name: str) -> None:
    data = (KEPT / name).read_bytes()
    written = as_json(from_json(data, OF_AGENTS[name]))
    # messages got this field later
    assert re.sub(rb',\n *"is_typed": false', b"", written) == data.rstrip(b"\n")


def test_so_is_a_state(tmp_path: Path) -> None:
    kept = KEPT / "execution-state.json"
    state = ExecutionState.from_json(kept.read_bytes(), "s")
    (tmp_path / "state.json").write_bytes(state.to_json())
    expect_part_of(kept, tmp_path / "state.json")


def test_so_is_a_board(tmp_path: Path) -> None:
    board = load_board(KEPT)
    assert board is not None
    save_board(tmp_path, board)
    kept = json.loads((KEPT / "board.json").read_bytes())
    for row in kept["rows"].values():
        # nothing reads these
        del row["attempts"], row["done"], row["total"]
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    expect_part_of(tmp_path / "kept.json", tmp_path / "board.json")
    assert load_board(tmp_path) == board


def test_a_dialogue_goes_on_with_its_pictures_and_its_providers_data() -> None:
    system, user, assistant, tool = Attempt(KEPT, KEPT).dialogue
    assert (system.role, user.content) == ("system", "Step 1: ü ☃ 🚀")
    assert (user.pictures[0].data[:4], len(user.pictures[0].data)) == (b"\x89PNG", 115)
    assert (assistant.tool_calls[0].id, tool.tool_call_id) == ("call_1", "call_1")
    assert assistant.data_from("anthropic/x https://models.example").startswith(
        '[{"type":"thinking"'
    )


def test_a_conversation_is_taken_up_again() -> None:
    messages, damaged = read_conversation(KEPT / "conversation.jsonl")
    assert [message.role for message in messages] == ["user", "assistant", "tool"]
    assert len(messages[0].pictures[0].data) == 115
    assert not damaged


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.just("\ud83d"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


def spoilt(draw: st.DrawFn, content: object) -> object:
    """The content with something else in one place, or without it, or with something
    more.
    """
    if isinstance(content, (dict, list)) and content and draw(st.integers(0, 4)):
        places = (
            list(content) if isinstance(content, dict) else list(range(len(content)))
        )
        place = draw(st.sampled_from(places))
        changed = content.copy()
        match draw(st.integers(0, 4)):
            case 0:
                del changed[place]
            case 1 if isinstance(changed, dict):
                changed[draw(st.text(max_size=5))] = draw(JSON)
            case _:
                changed[place] = spoilt(draw, content[place])
        return changed
    return draw(JSON)


@st.composite
def damaged_files(draw: st.DrawFn, *names: str) -> tuple[str, bytes]:
    name = draw(st.sampled_from(names))
    data = (KEPT / name).read_bytes()
    match draw(st.integers(0, 3)):
        case 0:
            cut = draw(st.integers(0, len(data)))
            return name, data[:cut] + draw(st.binary(max_size=9)) + data[
                cut + draw(st.integers(0, 5)) :
            ]
        case 1:
            deep = draw(
                st.sampled_from(
                    [
                        b"[" * 100_000,
                        b'{"a":' * 100_000,
                        b"1" * 9_000,
                        b"1e999",
                        b"NaN",
                        b"\xff",
                    ]
                )
            )
            return name, draw(
                st.sampled_from(
                    [
                        deep,
                        b'{"step": ' + deep + b"}",
                        data[:-1] + b', "files": ' + deep,
                    ]
                )
            )
        case _:
            return name, json.dumps(spoilt(draw, json.loads(data))).encode()


@given(damaged_files(*FORMS))
def test_whatever_is_in_a_file_it_is_read_or_told_to_be_damaged(
    tmp_path_factory: pytest.TempPathFactory, file: tuple[str, bytes]
) -> None:
    name, data = file
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(data)
    with contextlib.suppress(Damaged):
        value = FORMS[name].load(path)
        assert value is not None
        as_json(value)


@given(damaged_files("execution-state.json"))
def test_so_is_a_state_and_what_was_read_is_kept(file: tuple[str, bytes]) -> None:
    with contextlib.suppress(StateUnreadable):
        state = ExecutionState.from_json(file[1], "s")
        assert ExecutionState.from_json(state.to_json(), "s") == state
