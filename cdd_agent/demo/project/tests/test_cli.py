"""The report on the command line: `python -m tally expenses.csv`."""

from pathlib import Path

from tally.cli import main

SAMPLE = str(Path(__file__).parent.parent / "expenses.csv")


def test_it_prints_a_report_of_every_month(capsys):
    assert main([SAMPLE]) == 0

    printed = capsys.readouterr().out
    assert "January 2026" in printed
    assert "clothes         -45.50" in printed
    assert "total           787.50" in printed


def test_it_prints_the_month_that_is_asked_for(capsys):
    assert main([SAMPLE, "--month", "2026-02"]) == 0

    printed = capsys.readouterr().out
    assert printed.startswith("February 2026")
    assert "March" not in printed


def test_a_month_without_expenses_is_no_error(capsys):
    assert main([SAMPLE, "--month", "1999-12"]) == 0
    assert capsys.readouterr().out == "No expenses.\n"


def test_a_missing_file_is_said_in_one_line(capsys):
    assert main(["missing.csv"]) == 2

    said = capsys.readouterr().err
    assert said.startswith("tally: ")
    assert "missing.csv" in said


def test_a_bad_line_is_said_in_one_line(capsys, tmp_path):
    expenses = tmp_path / "bad.csv"
    expenses.write_text("date,category,note,amount\n2026-03-04,food,Tea,a lot\n", encoding="utf-8")

    assert main([str(expenses)]) == 2
    assert capsys.readouterr().err == "tally: line 2: not an amount: 'a lot'\n"
