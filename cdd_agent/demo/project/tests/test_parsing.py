"""An expense list is read into entries."""

from datetime import date

import pytest

from tally.entries import BadLine, Entry, read_entries

HEADER = "date,category,note,amount\n"


def test_a_line_becomes_an_entry():
    entries = read_entries(HEADER + "2026-03-04,food,Croissants,6.40\n")

    assert entries == [Entry(date(2026, 3, 4), "food", "Croissants", 640)]


def test_the_oldest_entry_comes_first():
    entries = read_entries(HEADER + "2026-03-28,travel,Repair,35.00\n2026-03-01,rent,March,650.00\n")

    assert [entry.note for entry in entries] == ["March", "Repair"]


def test_a_refund_is_negative():
    entries = read_entries(HEADER + '2026-02-12,clothes,"Jumper, too small",-45.50\n')

    assert entries[0].cents == -4550


@pytest.mark.parametrize(
    "line",
    ["yesterday,food,Tea,2.80", "2026-03-04,food,Tea,a lot", "2026-03-04,food,Tea,2.8", "2026-03-04,food"],
)
def test_a_line_that_cannot_be_read_is_named(line):
    with pytest.raises(BadLine, match="line 3"):
        read_entries(HEADER + "2026-03-01,rent,March,650.00\n" + line)


def test_a_list_without_its_header_is_refused():
    with pytest.raises(BadLine, match="line 1"):
        read_entries("2026-03-04,food,Croissants,6.40\n")
