"""The report is text that people like to read."""

from tally.entries import read_entries
from tally.money import format_cents
from tally.report import report

HEADER = "date,category,note,amount\n"
MARCH = "2026-03-01,rent,March,650.00\n2026-03-04,food,Tea,2.80\n2026-03-15,fun,Concert,52.00\n"
MARCH_REPORT = """\
March 2026
  rent            650.00  ####################
  fun              52.00  ##
  food              2.80
  total           704.80"""


def test_an_amount_has_two_decimals():
    assert format_cents(650) == "6.50"
    assert format_cents(5) == "0.05"
    assert format_cents(123456) == "1,234.56"


def test_a_refund_keeps_its_cents():
    assert format_cents(-4550) == "-45.50"


def test_a_month_has_a_bar_for_each_category_and_a_total():
    assert report(read_entries(HEADER + MARCH)) == MARCH_REPORT


def test_months_are_set_apart_by_an_empty_line():
    text = report(read_entries(HEADER + MARCH + "2026-01-10,fun,Skates,7.00\n"))

    assert text.startswith("January 2026\n  fun               7.00  ####")
    assert text.endswith("\n\n" + MARCH_REPORT)


def test_a_category_of_refunds_has_no_bar():
    text = report(read_entries(HEADER + "2026-02-12,clothes,Jumper sent back,-45.00\n"))

    assert text == "February 2026\n  clothes         -45.00\n  total           -45.00"


def test_no_entries_are_said_to_be_none():
    assert report([]) == "No expenses."
