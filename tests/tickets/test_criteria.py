"""Acceptance criteria by their words: the references of plans, and digests."""

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.tickets.criteria import (
    CriterionRef,
    criteria_digests,
    find_criteria,
    name_criteria,
    normal_refs,
    read_refs,
)
from tests.support.tables import each_row

LONG = f"A page of results is shown for {'each word that a user types ' * 8}at once"
CRITERIA = (
    "A user can log in",
    "A user can log out with `logout`",
    "AC-3: Logout works",
    "The title is “Welcome”",
    "A page of results\n  has 20 rows",
    LONG,
    "404 - the page is not found",
    "A user can log out with `logout`",
    "Cafe\u0301 is spelled right",
)


@each_row(
    ("ref", "place"),
    [
        (1, 1),
        (9, 9),
        (0, None),
        (10, None),
        ("A user can log in", 1),
        ("a USER can  log in.", 1),
        ('"A user can log in"', 1),
        ("**A user** can `log in`", 1),
        ("AC-1: A user can log in", 1),
        ("Criterion 7: A user can log in", 1),
        ("1. A user can log in", 1),
        ("A user can log in …", 1),
        ("A user can log i...", 1),
        # two criteria, both of which begin so
        ("A user can log …", None),
        # the same words at two places are one criterion
        ("A user can log out with logout", 2),
        ("A user can log out …", 2),
        ("Logout works", 3),
        ("AC-3: Logout works", 3),
        ("ac 9: logout works", 3),
        ("Logout wor…", 3),
        ('The title is "Welcome"', 4),
        ("A page of results has 20 rows", 5),
        ("A page of results …", None),
        ("A page of results is …", 6),
        ("404 - the page is not found", 7),
        ("500 - the page is not found", None),
        ("the page is not found", None),
        ("Café is spelled right", 9),
        ("A user can log", None),
        ("A user can log in and out", None),
        ("…", None),
        ("all", None),
        ("", None),
    ],
)
def test_a_plan_names_a_criterion_by_its_place_or_its_words(
    ref: CriterionRef, place: int | None
) -> None:
    expected = {} if place is None else {ref: place}
    assert find_criteria([ref], CRITERIA) == expected


@each_row(
    ("text", "refs"),
    [
        ("1, 3-5 and AC8", (1, 3, 4, 5, 8)),
        ("Criteria 1 and 3", (1, 3)),
        ("1 (login)", (1,)),
        ("none", ()),
        ("-", ()),
        ("1-9999999", (1, 9999999)),
        ("1 of 2 pages", ("1 of 2 pages",)),
        ("**A user** logs in", ("**A user** logs in",)),
        ("**A user logs in**", ("A user logs in",)),
        ("`a` and `b`", ("`a` and `b`",)),
        ("`` `a` is b ``", ("`a` is b",)),
        ('"Save" shows "ok"', ('"Save" shows "ok"',)),
        ("« on enregistre »", ("on enregistre",)),
    ],
)
def test_a_text_is_a_list_of_places_or_else_words(
    text: str, refs: tuple[CriterionRef, ...]
) -> None:
    assert read_refs(text) == refs


def test_a_criterion_is_named_by_as_few_words_as_name_it_alone() -> None:
    criteria = (*CRITERIA, f"{LONG}, too", "1 and 2", "none", "")
    names = name_criteria(range(1, len(criteria) + 1), criteria)
    assert names[:5] == (
        "A user can log in",
        "A user can log out with `logout`",
        "AC-3: Logout works",
        "The title is “Welcome”",
        "A page of results has 20 rows",
    )
    # a beginning would name two
    assert names[5] == LONG
    # the eighth has the words of the second, so only its place names it
    assert names[7] == 8
    assert names[9:] == (f"{LONG}, too", 11, 12, 13)
    (short,) = name_criteria([6], CRITERIA)
    assert len(str(short)) <= 102
    assert str(short).endswith(" …")


@given(st.lists(st.text(max_size=150) | st.sampled_from(CRITERIA), max_size=6))
def test_names_name_the_criteria_that_they_were_made_for(criteria: list[str]) -> None:
    for place in range(1, len(criteria) + 1):
        (name,) = name_criteria([place], criteria)
        assert find_criteria([name], criteria) == {name: place}
        assert normal_refs([name]) == (name,)


@each_row(
    ("former", "now", "is_same"),
    [
        ("Logout works", "  Logout\n works ", True),
        ("Logout works", "AC-3: Logout works", True),
        ("AC 3 - Logout works", "AC4: Logout works", True),
        ("Café", "Cafe\u0301", True),
        ("Logout works", "logout works", False),
        ("Logout works", "Logout works.", False),
        ("404 - it is shown", "500 - it is shown", False),
        ("Logout works", "Log out works", False),
        ("AC-1:", "AC-2:", False),
    ],
)
def test_a_digest_is_of_the_words_without_white_space_and_label(
    former: str, now: str, is_same: bool
) -> None:
    first, second = criteria_digests((former, now))
    assert (first == second) is is_same
