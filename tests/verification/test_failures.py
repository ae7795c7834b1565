"""Failed tests as people are told of them: the assertion first."""

from cdd_agent.verification.failures import failed_tests
from cdd_agent.verification.outcomes import Result, SuiteRun
from tests.support.tables import each_row

PYTEST = """\
self = <tests.test_auth.TestAuth object>

    def test_duplicate(self):
>       assert register("a").status == 409
E       AssertionError: assert 500 == 409
E        +  where 500 = Response().status

src/auth.py:12: KeyError
tests/test_auth.py:31: AssertionError
"""
UNITTEST = """\
Traceback (most recent call last):
  File "/home/me/shop/tests/test_auth.py", line 8, in test_it
    self.assertEqual(f(), 2)
AssertionError: 1 != 2
"""
GO = """\
    auth_test.go:14: got 500, want 409
"""
JEST = """\
Error: expect(received).toBe(expected) // Object.is equality

Expected: 409
Received: 500
    at Object.<anonymous> (/home/me/shop/src/auth.test.js:5:20)
"""


@each_row(
    ("test", "text", "message", "place"),
    [
        (
            "tests/test_auth.py::T::test_duplicate",
            PYTEST,
            "AssertionError: assert 500 == 409",
            "tests/test_auth.py:31",
        ),
        (
            "tests/test_auth.py::T::test_it",
            UNITTEST,
            "AssertionError: 1 != 2",
            "tests/test_auth.py:8",
        ),
        (
            "auth_test.go::TestIt",
            GO,
            "auth_test.go:14: got 500, want 409",
            "auth_test.go:14",
        ),
        (
            "src/auth.test.js::it",
            JEST,
            "Error: expect(received).toBe(expected) // Object.is equality",
            "src/auth.test.js:5",
        ),
        ("a.py::test_a", "", "", ""),
        ("a.py::test_a", "E   " + "x" * 900, "x" * 300, ""),
    ],
)
def test_the_failed_assertion_and_its_line(
    test: str, text: str, message: str, place: str
) -> None:
    (failure,) = failed_tests(
        SuiteRun(results={test: Result.FAILED}, texts={test: text}), [test]
    )
    assert (failure.message, failure.place, failure.text, failure.is_old) == (
        message,
        place,
        text,
        False,
    )


def test_those_that_count_come_first_and_not_too_many_are_told() -> None:
    results = {f"a.py::test_{number}": Result.FAILED for number in range(30)} | {
        "a.py::test_ok": Result.PASSED
    }
    told = failed_tests(SuiteRun(results=results), ["a.py::test_29", "a.py::test_7"])
    assert [failure.test for failure in told][:3] == [
        "a.py::test_7",
        "a.py::test_29",
        "a.py::test_0",
    ]
    assert [failure.is_old for failure in told][:3] == [False, False, True]
    assert len(told) == 20
