"""Which steps of an edited plan are those that were begun: by their words, under
whatever number.
"""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.state import (
    NO_FILES,
    add_missing_identities,
    match_state,
    new_state,
)
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tickets.step_matching import StepIdentity, fingerprint, match_steps
from tests.support.tables import each_row

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def step(number: int, words: str) -> PlanStep:
    """`a` is a step with this title and its usual text, `a:x` one with another text."""
    title, _, text = words.partition(":")
    return PlanStep(number, title, text or f"about {title}")


def plan(*words: str) -> ImplementationPlan:
    steps = tuple(step(number, each) for number, each in enumerate(words, 1) if each)
    return ImplementationPlan(ticket_slug="feature-x", ticket_title="x", steps=steps)


def known(words: dict[int, str]) -> dict[int, StepIdentity]:
    return {
        number: StepIdentity(step(number, each).title, fingerprint(step(number, each)))
        for number, each in words.items()
    }


@each_row(
    ("now", "done", "begun", "former", "expected"),
    [
        pytest.param("a b c", {1: "a", 2: "b"}, {}, {}, {1: 1, 2: 2}, id="as it was"),
        pytest.param(
            "a x b c",
            {1: "a", 2: "b"},
            {},
            {},
            {1: 1, 2: 3},
            id="inserted before a done step",
        ),
        pytest.param(
            "x y a b",
            {1: "a", 2: "b"},
            {},
            {},
            {1: 3, 2: 4},
            id="two inserted before all",
        ),
        pytest.param(
            "b c a",
            {1: "a", 2: "b", 3: "c"},
            {},
            {},
            {1: 3, 2: 1, 3: 2},
            id="in another order",
        ),
        pytest.param(
            "b a c",
            {1: "a", 3: "b"},
            {},
            {},
            {1: 2, 3: 1},
            id="one removed that was not done",
        ),
        pytest.param(
            "a c",
            {1: "a", 2: "b", 3: "c"},
            {},
            {},
            {1: 1, 2: 4, 3: 2},
            id="a done one removed",
        ),
        pytest.param(
            "a", {1: "a", 2: "b"}, {}, {}, {1: 1, 2: 2}, id="the last one removed"
        ),
        pytest.param(
            "a:new b",
            {1: "a", 2: "b"},
            {},
            {},
            {1: 1, 2: 2},
            id="another text, the same number",
        ),
        pytest.param(
            "z:about_a b",
            {1: "a:about_a", 2: "b"},
            {},
            {},
            {1: 1, 2: 2},
            id="another title",
        ),
        pytest.param(
            "z b",
            {1: "a", 2: "b"},
            {},
            {},
            {1: 1, 2: 2},
            id="both, and all others as they were",
        ),
        pytest.param(
            "x a b",
            {1: "a"},
            {2: "b"},
            {},
            {1: 2, 2: 3},
            id="a failed step moves along",
        ),
        pytest.param(
            "x a:new b",
            {1: "a", 2: "b"},
            {},
            {},
            {1: 2, 2: 3},
            id="moved, with another text",
        ),
        pytest.param(
            "a x t t",
            {1: "a", 2: "t", 3: "t"},
            {},
            {},
            {1: 1, 2: 4, 3: 3},
            id="two alike",
        ),
        pytest.param(
            "a x b:fixed",
            {1: "a"},
            {2: "b"},
            {},
            {1: 1, 2: 3},
            id="also with another text",
        ),
        pytest.param(
            "a x b:fixed b:again",
            {1: "a"},
            {2: "b"},
            {},
            {1: 1, 2: 2},
            id="not if it could be two",
        ),
        pytest.param("b a", {2: "a"}, {}, {}, {2: 2}, id="its own number comes first"),
        pytest.param(
            "a t x t",
            {1: "a", 2: "t"},
            {},
            {},
            {1: 1, 2: 2},
            id="one of two alike is where it was",
        ),
        pytest.param(
            "a b", {1: "a"}, {}, {2: "b"}, {1: 1, 2: 2}, id="a removed one comes back"
        ),
        pytest.param(
            "a x b", {1: "a"}, {}, {2: "b"}, {1: 1, 2: 3}, id="under another number"
        ),
        pytest.param(
            "a x",
            {1: "a"},
            {},
            {2: "b"},
            {1: 1, 2: 3},
            id="a new step with a removed one's number",
        ),
        pytest.param(
            "a b:new",
            {1: "a"},
            {},
            {2: "b"},
            {1: 1, 2: 2},
            id="a removed one comes back with another text",
        ),
    ],
)
def test_steps_are_recognised_by_their_words(
    now: str,
    done: dict[int, str],
    begun: dict[int, str],
    former: dict[int, str],
    expected: dict[int, int],
) -> None:
    found = match_steps(plan(*now.split()), known(done | begun), done, known(former))
    assert {old: new for old, new in found.items() if old in expected} == expected


@each_row(
    ("now", "done", "said"),
    [
        pytest.param(
            "x t t", {1: "t"}, ["step 1 ('t')", "step 2 or step 3"], id="could be two"
        ),
        pytest.param(
            "x t",
            {1: "t", 3: "t"},
            ["step 1 ('t')", "step 3 ('t')"],
            id="two could be it",
        ),
        pytest.param(
            "a x z c",
            {1: "a", 2: "b", 3: "c"},
            ["step 2 was 'b', and is 'x'"],
            id="gone, or all its words",
        ),
        pytest.param(
            "x:same z:same b",
            {1: "a:same", 2: "b"},
            ["step 1 was 'a', and is 'x'"],
            id="another title, moved",
        ),
        pytest.param(
            "x y", {1: "a", 2: "b"}, ["another plan", "'a'", "'b'"], id="another plan"
        ),
        pytest.param(
            "x", {1: "a", 2: "b"}, ["another plan", "'a'"], id="another, shorter plan"
        ),
    ],
)
def test_what_is_unclear_is_refused_and_named(
    now: str, done: dict[int, str], said: list[str]
) -> None:
    with pytest.raises(BadInput) as caught:
        match_steps(plan(*now.split()), known(done), done, {})
    assert all(words in caught.value.message for words in said)
    assert "--start-over" in caught.value.hint


UNKNOWN = StepIdentity()


@each_row(
    ("now", "done", "begun"),
    [
        pytest.param("x a b", {2: "b"}, {}, id="another was moved"),
        pytest.param(
            "x z:about_b c", {2: "b:about_b"}, {}, id="another has another title"
        ),
        pytest.param("x y b:new", {}, {2: "b"}, id="one that is not done was moved"),
        pytest.param("b", {2: "b"}, {}, id="one was removed"),
        pytest.param("b a", {3: "b"}, {}, id="both were moved"),
    ],
)
def test_a_done_step_without_words_is_refused_where_others_have_another_number_or_title(
    now: str, done: dict[int, str], begun: dict[int, str]
) -> None:
    with pytest.raises(BadInput, match="step 1") as caught:
        match_steps(
            plan(*now.split()), {1: UNKNOWN} | known(done | begun), {1, *done}, {}
        )
    assert "--start-over" in caught.value.hint


def test_a_step_without_words_that_is_not_done_is_nobodys_loss() -> None:
    assert match_steps(
        plan("x", "a", "b"), {1: UNKNOWN} | known({2: "b"}), {2}, {}
    ) == {1: 1, 2: 3}


@each_row("now", ["a b", "a b:new", "z b x"])
def test_where_no_other_was_moved_its_number_counts(now: str) -> None:
    assert match_steps(
        plan(*now.split()), {1: UNKNOWN} | known({2: "b"}), {1, 2}, {}
    ) == {1: 1, 2: 2}
    assert match_steps(plan(*now.split()), {1: UNKNOWN, 2: UNKNOWN}, {1, 2}, {}) == {
        1: 1,
        2: 2,
    }


def test_a_removed_step_without_words_is_not_the_one_that_has_its_number_now() -> None:
    assert match_steps(plan("a", "x"), known({1: "a"}), {1}, {2: UNKNOWN}) == {
        1: 1,
        2: 3,
    }


NAMES = st.permutations("abcdefgh")


@given(NAMES, NAMES, st.sets(st.integers(1, 5)), st.integers(0, 8))
def test_whatever_is_inserted_removed_and_moved_each_done_step_is_found(
    before: list[str], after: list[str], done: set[int], left: int
) -> None:
    was = {number: before[number - 1] for number in done}
    now = [name for name in after if name in was.values() or after.index(name) < left]
    found = match_steps(plan(*now), known(was), done, {})
    assert found == {number: now.index(name) + 1 for number, name in was.items()}


@given(NAMES, NAMES, st.sets(st.integers(1, 8)), st.integers(0, 8))
def test_no_two_steps_get_the_same_number(
    before: list[str], after: list[str], begun: set[int], left: int
) -> None:
    was = {number: before[number - 1] for number in begun}
    former = {number: name for number, name in was.items() if number % 3 == 0}
    steps = known(
        {number: name for number, name in was.items() if number not in former}
    )
    found = match_steps(plan(*after[:left]), steps, (), known(former))
    assert found.keys() == was.keys()
    assert len(set(found.values())) == len(found)
    for old, new in found.items():
        if was[old] in after[:left]:
            assert after[new - 1] == was[old]


def with_ids(words: str) -> ImplementationPlan:
    """`a#abcd` is step `a` with an id."""
    steps = []
    for number, each in enumerate(words.split(), 1):
        text, _, step_id = each.partition("#")
        plain = step(number, text)
        steps.append(PlanStep(number, plain.title, plain.description, id=step_id))
    return ImplementationPlan(steps=tuple(steps))


def identities(words: str) -> dict[int, StepIdentity]:
    return {
        each.number: StepIdentity(each.title, fingerprint(each), each.id)
        for each in with_ids(words).steps
    }


@each_row(
    ("done", "now", "expected"),
    [
        ("a#aaaa b#bbbb", "a#aaaa b#bbbb", {1: 1, 2: 2}),
        ("a#aaaa b#bbbb", "x#xxxx b#bbbb a#aaaa", {1: 3, 2: 2}),
        ("a#aaaa b#bbbb", "b:new#aaaa a:other#bbbb", {1: 1, 2: 2}),
        ("a#aaaa b#bbbb", "q:new#bbbb r:new#aaaa", {1: 2, 2: 1}),
        ("a#aaaa b#bbbb", "a#cccc b#bbbb", {1: 3, 2: 2}),
        ("a#aaaa b#bbbb", "a b#bbbb", {1: 1, 2: 2}),
        ("a b", "a#aaaa b#bbbb", {1: 1, 2: 2}),
        ("a b", "b#bbbb a#aaaa", {1: 2, 2: 1}),
        ("a#aaaa b", "b a:new#aaaa", {1: 2, 2: 1}),
    ],
)
def test_a_step_with_an_id_is_recognised_by_it(
    done: str, now: str, expected: dict[int, int]
) -> None:
    begun = identities(done)
    assert match_steps(with_ids(now), begun, begun.keys(), {}) == expected


def test_a_plan_in_which_each_done_step_has_another_id_is_another_plan() -> None:
    begun = identities("a#aaaa b#bbbb")
    with pytest.raises(BadInput, match="another plan"):
        match_steps(with_ids("a#cccc b#dddd"), begun, begun.keys(), {})


def test_an_id_stays_with_its_step_in_the_state() -> None:
    steps = with_ids("a#aaaa b").steps
    state = new_state("feature-x", with_ids("a#aaaa b"))
    for each in steps:
        state = state.started(each, NOW, attempt=1)
        state = state.completed(each.number, NOW, Verification.NONE, NO_FILES)
    read = type(state).from_json(state.to_json(), "state.json")
    moved = match_state(read, with_ids("x y:new#aaaa b"))
    assert [moved.step(number).identity.id for number in (1, 2, 3)] == ["", "aaaa", ""]
    assert moved.step(2).status is StepStatus.COMPLETED


def test_a_step_that_was_begun_before_its_plan_had_ids_gets_its_id() -> None:
    state = new_state("feature-x", with_ids("a b"))
    state = state.started(with_ids("a b").steps[0], NOW, attempt=1)
    later = with_ids("a#aaaa b#bbbb")
    state = add_missing_identities(match_state(state, later), later)
    assert [state.step(number).step_id for number in (1, 2)] == ["aaaa", None]
