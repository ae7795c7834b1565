"""Outcomes of tests in a run, and how they differ from before."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.outcomes import (
    Difference,
    Reference,
    Result,
    Selection,
    SuiteRun,
    is_in,
)
from cdd_agent.verification.test_id import TestId
from tests.support.tables import each_row

PASSED, FAILED, SKIPPED = Result.PASSED, Result.FAILED, Result.SKIPPED

WHOLE = Selection()
A, B = "tests/test_a.py::test_a", "tests/test_b.py::test_b"
FILE = "tests/test_a.py"


def seen(
    results: Mapping[str, Result], *paths: str, options: tuple[str, ...] = ()
) -> SuiteRun:
    return SuiteRun(Selection(paths, options), dict(results))


def known(*runs: SuiteRun) -> Reference:
    reference = Reference()
    for run in runs:
        reference = reference.after(run)
    return reference


@pytest.mark.parametrize(
    ("before", "now", "difference"),
    [
        ({A: PASSED}, {A: PASSED}, Difference()),
        ({A: PASSED}, {A: FAILED}, Difference(new_failures=(A,))),
        ({A: FAILED}, {A: FAILED}, Difference(old_failures=(A,))),
        ({A: FAILED}, {A: PASSED}, Difference()),
        ({}, {A: FAILED}, Difference(new_failures=(A,))),
        ({}, {A: SKIPPED}, Difference()),
        ({A: SKIPPED}, {A: FAILED}, Difference(new_failures=(A,))),
        ({A: SKIPPED}, {A: SKIPPED}, Difference()),
        ({A: SKIPPED}, {}, Difference()),
        ({A: PASSED}, {A: SKIPPED}, Difference(skipped=(A,))),
        ({A: FAILED}, {A: SKIPPED}, Difference(skipped=(A,))),
        ({A: PASSED, B: PASSED}, {A: PASSED}, Difference(gone=(B,))),
        ({A: FAILED, B: PASSED}, {B: PASSED}, Difference(gone=(A,))),
        # A file that could not be collected, and what is in it.
        ({FILE: FAILED}, {FILE: FAILED}, Difference(old_failures=(FILE,))),
        ({FILE: FAILED}, {A: PASSED}, Difference()),
        ({FILE: FAILED}, {A: FAILED}, Difference(old_failures=(A,))),
        ({FILE: FAILED}, {A: SKIPPED}, Difference()),
        ({FILE: FAILED, B: PASSED}, {B: PASSED}, Difference(gone=(FILE,))),
        ({A: PASSED}, {FILE: FAILED}, Difference(new_failures=(FILE,))),
        ({"tests": FAILED}, {A: FAILED}, Difference(old_failures=(A,))),
        # A file that is skipped as a whole.
        ({A: PASSED, B: PASSED}, {FILE: SKIPPED, B: PASSED}, Difference(skipped=(A,))),
        ({FILE: SKIPPED}, {A: PASSED}, Difference()),
        # Parameters make ids.
        ({f"{A}[1-2]": PASSED}, {f"{A}[1-3]": PASSED}, Difference()),
        (
            {f"{A}[1]": PASSED, f"{A}[2]": PASSED},
            {f"{A}[3]": PASSED},
            Difference(gone=(f"{A}[1]", f"{A}[2]")),
        ),
        (
            {f"{A}[1]": PASSED},
            {f"{A}[2]": FAILED},
            Difference(new_failures=(f"{A}[2]",), gone=(f"{A}[1]",)),
        ),
        ({f"{A}[1]": PASSED}, {f"{A}[2]": SKIPPED}, Difference(gone=(f"{A}[1]",))),
        ({A: PASSED}, {f"{A}[1]": PASSED, f"{A}[2]": PASSED}, Difference()),
        ({A: PASSED}, {f"{A}_renamed": PASSED}, Difference(gone=(A,))),
    ],
)
def test_what_is_different(
    before: dict[str, Result], now: dict[str, Result], difference: Difference
) -> None:
    assert known(seen(before)).compare(seen(now)) == difference


def test_a_skipped_test_that_was_written_so_is_noticed() -> None:
    now = seen({A: SKIPPED, B: SKIPPED})
    assert known(seen({B: SKIPPED})).compare(
        now, written=("tests/test_a.py", "tests/test_b.py")
    ).skipped == (A,)


@each_row(
    ("selection", "gone"),
    [
        (Selection(), (A, B)),
        (Selection(("tests",)), (A, B)),
        (Selection((".",)), (A, B)),
        (Selection(("tests/test_a.py",)), (A,)),
        (Selection((A,)), (A,)),
        (Selection(("tests/test_",)), ()),
        (Selection(("other",)), ()),
        (Selection((), ("-k a",)), ()),
        (Selection(("tests",), ("-k a",)), ()),
    ],
)
def test_only_a_test_that_the_command_would_certainly_run_is_missed(
    selection: Selection, gone: tuple[str, ...]
) -> None:
    reference = known(seen({A: PASSED, B: PASSED}))
    assert reference.compare(SuiteRun(selection, {})).gone == gone


def test_a_command_that_ran_before_has_to_run_the_same_tests_again() -> None:
    reference = known(seen({}), seen({A: PASSED}, options=("-k a",)))
    assert reference.compare(seen({}, options=("-k a",))).gone == (A,)
    assert reference.compare(seen({}, options=("-k b",))).gone == ()
    # where it looks is for its settings to say
    assert known(seen({A: PASSED}, "tests")).compare(seen({})).gone == ()


JS = "test/a.test.js::calc > "


@each_row(
    ("title", "rows"),
    [
        ("adds %i and %i", ["adds 1 and 2", "adds 1 and 3"]),
        ("adds $a", ["adds 1", "adds 3"]),
        ("$a.b of ${a}", ["1 of 2", "3 of 4"]),
        ("%s (%#)", ["one (1)", "two (2)"]),
    ],
)
def test_as_many_other_rows_of_a_table_are_no_fewer_tests(
    title: str, rows: list[str]
) -> None:
    one, other = (JS + row for row in rows)
    tables = [TestId.parse(JS + title)]
    before = known(seen({one: PASSED}))
    # nobody knows that it is one
    assert before.compare(seen({other: PASSED})).gone == (one,)
    assert before.compare(seen({other: PASSED}), tables=tables) == Difference()
    assert before.compare(seen({other: SKIPPED}), tables=tables).gone == (one,)
    assert before.compare(seen({}), tables=tables).gone == (one,)
    both = known(seen({one: PASSED, JS + "other": PASSED}))
    assert both.compare(
        seen({other: PASSED}), tables=[TestId.parse("test/b.test.js::calc > %s")]
    ).gone == (
        one,
        JS + "other",
    )


def test_what_a_completed_step_saw_is_known_from_then_on() -> None:
    reference = known(seen({A: FAILED}), seen({A: PASSED, B: PASSED}))
    assert reference.compare(seen({A: FAILED, B: FAILED})).new_failures == (A, B)
    narrow = reference.after(seen({A: PASSED}, FILE))
    assert narrow.compare(seen({A: PASSED})).gone == (B,)


def test_what_went_with_leave_is_not_missed_again() -> None:
    reference = known(seen({A: PASSED, B: PASSED}), seen({A: PASSED}))
    assert reference.compare(seen({A: PASSED})) == Difference()
    assert (
        known(seen({A: PASSED}), seen({A: SKIPPED})).compare(seen({A: SKIPPED}))
        == Difference()
    )


def test_a_file_that_was_mended_may_not_break_again() -> None:
    reference = known(seen({FILE: FAILED}), seen({A: PASSED}, FILE, options=("-k a",)))
    assert reference.compare(seen({FILE: FAILED})).new_failures == (FILE,)


@each_row(
    ("place", "inside"),
    [
        (".", True),
        ("tests", True),
        ("tests/test_a.py", True),
        ("tests/test_a.py::TestK", True),
        ("tests/test_a.py::TestK::test_x", True),
        ("tests/test_a.py::TestK::test_x[1]", True),
        ("tests/test_a", False),
        ("test_a.py", False),
        ("tests/test_a.py::Test", False),
        ("tests/test_a.py::TestK::test_x[2]", False),
    ],
)
def test_where_a_test_is(place: str, inside: bool) -> None:
    assert is_in("tests/test_a.py::TestK::test_x[1]", (place,)) is inside


# --- Properties -----------------------------------------------------------------------

IDS = [f"tests/test_{file}.py::test_{test}" for file in "ab" for test in "xyz"]
PLACES = ["tests/test_a.py", "tests/test_b.py", "tests"]
SELECTIONS = (
    Selection(),
    Selection(("tests",)),
    Selection(("tests/test_a.py",)),
    Selection((), ("-k x",)),
)


def natural(selection: Selection, results: Mapping[str, Result]) -> SuiteRun:
    """A run as it can be: where something could not be collected, nothing in it was."""
    broken = [place for place in PLACES if place in results]
    inside = {
        test
        for test in results
        for place in broken
        if test != place and is_in(test, (place,))
    }
    return SuiteRun(
        selection,
        {test: result for test, result in results.items() if test not in inside},
    )


RUNS = st.builds(
    lambda selection, results, broken: natural(
        selection, {**results, **dict.fromkeys(broken, FAILED)}
    ),
    st.sampled_from(SELECTIONS),
    st.dictionaries(st.sampled_from(IDS), st.sampled_from(Result), max_size=6),
    st.lists(st.sampled_from(PLACES), max_size=1),
)
REFERENCES = st.lists(RUNS, max_size=3).map(lambda runs: known(*runs))


def is_clean(difference: Difference) -> bool:
    return not (difference.new_failures or difference.gone or difference.skipped)


@given(REFERENCES, RUNS, st.sampled_from([*IDS, *PLACES]))
def test_one_more_failure_makes_nothing_better(
    reference: Reference, run: SuiteRun, test: str
) -> None:
    worse = natural(run.selection, {**run.results, test: FAILED})
    before, after = reference.compare(run), reference.compare(worse)
    if is_clean(
        after
        # then it was clean before, or what failed once more is an old failure that was
        # missed
    ):
        assert is_clean(before) or is_in(test, (*before.gone, *before.skipped))


@given(REFERENCES, RUNS, st.sampled_from(IDS))
def test_a_test_that_passes_and_then_does_not_is_always_noticed(
    reference: Reference, run: SuiteRun, test: str
) -> None:
    results = {
        name: result for name, result in run.results.items() if name not in PLACES
    }
    reference = reference.after(SuiteRun(run.selection, {**results, test: PASSED}))
    for now in (
        {**results, test: FAILED},
        {**results, test: SKIPPED},
        {n: r for n, r in results.items() if n != test},
    ):
        assert not is_clean(reference.compare(SuiteRun(run.selection, now)))


@given(REFERENCES, RUNS)
def test_the_same_run_again_is_no_news(reference: Reference, run: SuiteRun) -> None:
    assert is_clean(reference.after(run).compare(run))
    assert reference.after(run).after(run) == reference.after(run)
