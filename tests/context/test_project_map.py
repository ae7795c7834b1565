from pathlib import Path

from cdd_agent.context.places import sort_places
from cdd_agent.context.project_map import ProjectMap
from cdd_agent.context.query import Query
from tests.context.projects import committed, made, paths, ranked
from tests.support.tables import each_row

PARSER = """\
import re


def parse_range(text):
    return text.split('-')


class Header:
    def dump(self):
        return ''
"""
MAIL = "def send(letter):\n    return letter\n"


def test_what_a_text_speaks_of_comes_first(tmp_path: Path) -> None:
    root = made(tmp_path, {"http.py": PARSER, "mail.py": MAIL})

    assert paths(root, "Parsing of a range that has no end fails")[0] == "http.py"


def test_what_defines_a_name_says_so(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "http.py": PARSER,
            "use.py": "from http import parse_range\nparse_range('')\n",
            "mail.py": MAIL,
        },
    )

    first = ranked(root, "An empty text is a mistake for parse_range")[0]

    assert first.path == "http.py"
    assert first.reasons[0] == "defines `parse_range`, named in the text"
    assert first.places[0].name == "parse_range"


@each_row(
    "name",
    [
        *(".flake8", "a b.py", "a-b.py", 'say "x".py', "it's.py", "(auth).py", "ü.py"),
        *("a.b.c.py", "...", "-.py", "@types.ts", "100%.py", "a,b.py", "NEAR.py"),
    ],
)
def test_a_file_with_any_name_is_ranked(tmp_path: Path, name: str) -> None:
    root = made(tmp_path, {name: "x = 1\n", "use.py": "import a\n"})

    assert name in paths(root, Query(f"Remove `{name}`.", pinned=frozenset([name])))


def test_what_uses_a_name_is_found_by_it(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "a.py": "from b import extract_i64\n\nextract_i64(1)\n",
            "c.py": "extract = 64\n",
            "d.py": "extract = 1\n",
        },
    )

    first = ranked(root, "Remove extract_i64")[0]

    assert first.path == "a.py"
    assert first.reasons[0] == "uses `extract_i64`"


def test_a_named_file_comes_first_whatever_it_holds(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {"http.py": PARSER, "lib/mail.py": MAIL, "lib/post/office.py": "x = 1\n"},
    )

    for text in (
        "The range in mail.py",
        "The range in lib/mail",
        "The range in lib.mail",
        "The range in `lib/mail.py`",
    ):
        first = ranked(root, text)[0]
        assert (first.path, first.is_named) == ("lib/mail.py", True), text
        assert "is named in the text" in first.reasons[0]
    assert paths(root, "The range in post/office")[0] == "lib/post/office.py"


def test_a_name_that_two_files_have_names_neither(tmp_path: Path) -> None:
    root = made(tmp_path, {"a/mail.py": MAIL, "b/mail.py": MAIL})

    assert not any(file.is_named for file in ranked(root, "The letter in mail.py"))


def test_what_is_left_out_is_not_found(tmp_path: Path) -> None:
    root = made(tmp_path, {"docs/range.py": "range = 1\n", "range.py": "range = 1\n"})

    assert paths(
        root, Query("the range in docs/range.py", without=frozenset({"docs"}))
    ) == ["range.py"]


def test_what_is_pinned_comes_first(tmp_path: Path) -> None:
    root = made(tmp_path, {"http.py": PARSER, "lib/mail.py": MAIL})

    first = ranked(root, Query("the range", pinned=frozenset({"lib/"})))[0]

    assert (first.path, first.is_named, first.reasons[0]) == (
        "lib/mail.py",
        True,
        "pinned",
    )


def test_tests_and_pages_come_after_the_source(tmp_path: Path) -> None:
    page = "# Ranges\n\nA range is parsed by parse_range: range, range, range.\n"
    test = (
        "from http import parse_range\n\n\n"
        "def test_parse_range():\n"
        "    assert parse_range('range')\n"
    )
    root = made(
        tmp_path, {"tests/test_http.py": test, "docs/range.md": page, "http.py": PARSER}
    )

    found = ranked(root, "parse_range and a range")

    assert found[0].path == "http.py"
    assert "test of `http.py`" in next(
        file.reasons for file in found if file.path == "tests/test_http.py"
    )


def test_imports_lead_to_neighbours_in_both_directions(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "shop/till.py": (
                "from shop import money\n"
                "from .paper import roll\n\n\n"
                "def receipt():\n"
                "    return roll\n"
            ),
            "shop/paper.py": "roll = 1\n",
            "shop/money.py": "coin = 1\n",
            "shop/door.py": "from shop.till import receipt\n",
            "shop/roof.py": "slate = 1\n",
        },
    )

    found = {file.path: file.reasons for file in ranked(root, "The receipt is wrong")}

    assert "imported by `shop/till.py`" in found["shop/paper.py"]
    assert "imported by `shop/till.py`" in found["shop/money.py"]
    assert "imports `shop/till.py`" in found["shop/door.py"]
    assert "shop/roof.py" not in found


def test_the_past_tells_what_changes_together_and_what_messages_mean(
    tmp_path: Path,
) -> None:
    committed(
        tmp_path,
        "Start",
        {"till.py": "a = 1\n", "drawer.py": "b = 1\n", "roof.py": "c = 1\n"},
    )
    committed(
        tmp_path, "Rounding of halves", {"till.py": "a = 2\n", "drawer.py": "b = 2\n"}
    )
    committed(tmp_path, "Slates", {"roof.py": "c = 2\n"})
    committed(tmp_path, "Halves again", {"till.py": "a = 3\n", "drawer.py": "b = 3\n"})

    found = ranked(tmp_path, "Halves are rounded to even numbers")

    assert {file.path for file in found[:2]} == {"till.py", "drawer.py"}
    assert "changed with `drawer.py` in 3 commits" in next(
        file.reasons for file in found if file.path == "till.py"
    )
    assert "changed by past commits with similar messages" in found[0].reasons


def test_words_that_are_in_any_text_lead_nowhere(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "money.py": "coins = 1\n",
            "talk.py": "# Which of them should be there, and why?\n",
        },
    )

    assert paths(root, "Which coins should be there?") == ["money.py"]
    assert paths(root, "Which should there be?") == ["talk.py"]


def test_a_word_of_many_messages_says_little(tmp_path: Path) -> None:
    others = {f"part_{number}.py": f"n = {number}\n" for number in range(20)}
    committed(
        tmp_path,
        "Start",
        {
            "glue.py": "repair = 1\n",
            "till.py": "coins = 1\n",
            "purse.py": "coins = 2\n",
            **others,
        },
    )
    assert paths(tmp_path, "repair coins")[0] == "glue.py"

    for number in range(20):
        committed(tmp_path, "Repair it", {f"part_{number}.py": f"n = {number + 1}\n"})

    assert "glue.py" not in paths(tmp_path, "repair coins")[:2]


def test_a_failure_leads_to_the_lines_that_it_names(tmp_path: Path) -> None:
    body = "".join(
        f"def part_{number}():\n    one = {number}\n    two = one\n    return two\n\n\n"
        for number in range(40)
    )
    root = made(tmp_path, {"app/deep.py": body, "app/other.py": "range = 1\n"})
    failure = (
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/json/decoder.py", line 9, in decode\n'
        f'  File "{root}/app/deep.py", line 104, in part_17\n'
        "ValueError: no range\n"
    )

    first = ranked(root, Query("make the range work", failure=failure))[0]

    assert first.path == "app/deep.py"
    assert first.reasons[0] == "the failure names line 104"
    assert first.places[0].first <= 104 <= first.places[0].last
    assert first.places[0].why == "the failure names line 104"


def test_a_file_without_a_name_has_no_tests(tmp_path: Path) -> None:
    made(tmp_path, {"_.py": "range = 1\n", "b.py": "slate = 1\n"})

    assert paths(tmp_path, "range") == ["_.py"]


def test_what_earlier_steps_changed_is_near(tmp_path: Path) -> None:
    root = made(tmp_path, {"a.py": "x = 1\n", "b.py": "y = 1\n", "c.py": "z = 1\n"})

    found = ranked(root, Query("Go on", touched=("b.py", "gone.py")))

    assert [(file.path, file.reasons) for file in found] == [
        ("b.py", ("changed by an earlier step",))
    ]


def test_places_come_sort_places_across_files(tmp_path: Path) -> None:
    root = made(
        tmp_path,
        {
            "http.py": PARSER,
            "other.py": "def dump_header():\n    return 1\n",
            "mail.py": MAIL,
        },
    )

    order = list(sort_places(ranked(root, "parse_range of a range")))

    assert order[0][0].path == "http.py"
    assert [place.use for _, place in order] == sorted(
        (place.use for _, place in order), reverse=True
    )


def test_an_outline_has_signatures_with_what_is_said_of_them(tmp_path: Path) -> None:
    said = 'class Till:\n    """Takes money."""\n\n'
    text = (
        f"{said}    def take(self, coin: int) -> None:\n"
        "        # In cents.\n"
        "        self.coin = coin\n"
    )
    found = ProjectMap(made(tmp_path, {"till.py": text, "notes.txt": "Till\n"}))

    assert (
        found.outline("till.py") == "    1  class Till:  # Takes money.\n"
        "    4      def take(self, coin: int) -> None:  # In cents.\n"
    )
    assert found.outline("notes.txt") == found.outline("missing.py") == ""


def test_a_closed_map_opens_again(tmp_path: Path) -> None:
    found = ProjectMap(made(tmp_path, {"http.py": PARSER}))
    found.update()
    found.close()
    found.close()

    assert [file.path for file in found.rank(Query("parse range"))] == ["http.py"]


def test_nothing_is_found_in_nothing(tmp_path: Path) -> None:
    assert ranked(tmp_path, "anything") == []
    assert ranked(made(tmp_path, {"a.py": "x = 1\n"}), "") == []
