"""Which of many names a typed text may mean."""

from cdd_agent.text.completion import find_matches
from tests.support.tables import each_row

NAMES = ("exec", "exit", "context", "status", "feature-user-auth", "bug-auth-token")


@each_row(
    ("typed", "best", "good"),
    [
        ("ex", ["exec", "exit"], ["exec", "exit", "context"]),
        ("EX", ["exec", "exit"], ["exec", "exit", "context"]),
        (
            "auth",
            ["feature-user-auth", "bug-auth-token"],
            ["feature-user-auth", "bug-auth-token"],
        ),
        ("fua", ["feature-user-auth"], ["feature-user-auth"]),
        ("at", ["status", "feature-user-auth"], ["status", "feature-user-auth"]),
        ("exce", ["exec"], ["exec"]),
        ("exxec", ["exec"], ["exec"]),
        ("ezec", ["exec"], ["exec"]),
        ("xit", ["exit"], ["exit"]),
        ("zeex", [], []),
        ("ezxc", [], []),
        ("uesr", ["feature-user-auth"], ["feature-user-auth"]),
        ("faeture", ["feature-user-auth"], ["feature-user-auth"]),
        ("zz", [], []),
        ("a.*", [], []),
    ],
)
def test_a_name_fits_by_its_beginning_a_part_or_its_letters(
    typed: str, best: list[str], good: list[str]
) -> None:
    found = find_matches(typed, NAMES)
    assert list(found.best) == best
    assert list(found.good) == good


def test_letters_that_are_close_together_come_first() -> None:
    assert list(find_matches("ab", ["a-long-way-b", "xa-b"]).best) == [
        "xa-b",
        "a-long-way-b",
    ]


def test_of_nothing_typed_all_fit_in_their_order() -> None:
    assert list(find_matches("", NAMES).best) == list(NAMES)


def test_many_equal_letters_take_no_time() -> None:
    assert find_matches("a" * 40 + "bb", ["a" * 80] * 100).best == []
