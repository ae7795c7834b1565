"""Entries are added up."""

from datetime import date

from tally.entries import Entry
from tally.totals import by_category, by_month

RENT = Entry(date(2026, 3, 1), "rent", "March", 65000)
TEA = Entry(date(2026, 3, 4), "food", "Tea", 280)
CAKE = Entry(date(2026, 3, 4), "food", "Cake", 420)
SKATES = Entry(date(2026, 1, 10), "fun", "Skates", 700)


def test_months_are_in_order():
    assert by_month([RENT, SKATES, TEA]) == {"2026-01": [SKATES], "2026-03": [RENT, TEA]}
    assert list(by_month([RENT, SKATES, TEA])) == ["2026-01", "2026-03"]


def test_a_category_is_the_sum_of_its_entries():
    assert by_category([TEA, CAKE]) == {"food": 700}


def test_a_refund_counts_against_its_category():
    refund = Entry(date(2026, 3, 5), "food", "Cake was stale", -420)

    assert by_category([TEA, CAKE, refund]) == {"food": 280}


def test_the_largest_category_comes_first():
    assert list(by_category([TEA, RENT])) == ["rent", "food"]


def test_equal_categories_are_in_alphabetical_order():
    assert list(by_category([SKATES, TEA, CAKE])) == ["food", "fun"]
