"""Which files a test file is for, by what it imports and what it is called."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.project.subjects import TestFile, is_test_file
from tests.support.tables import each_row


def tie(
    root: Path, test: str, text: str, path: str, before: bytes | None = None
) -> str:
    (root / test).parent.mkdir(parents=True, exist_ok=True)
    (root / test).write_text(text)
    return TestFile.read(root, test, before).tie(root, PurePosixPath(path))


@each_row(
    ("test", "text", "path"),
    [
        ("tests/test_it.py", "import calc", "calc.py"),
        ("tests/test_it.py", "import calc as c, json", "calc.py"),
        ("tests/test_it.py", "from calc import add", "calc.py"),
        ("tests/test_it.py", "from calc import *", "calc.py"),
        ("tests/test_it.py", "def test_x():\n    from calc import add\n", "calc.py"),
        (
            "tests/test_it.py",
            "try:\n    import calc\nexcept ImportError:\n    calc = None\n",
            "calc.py",
        ),
        ("tests/test_it.py", "import shop.cart.items", "shop/cart/items.py"),
        ("tests/test_it.py", "from shop.cart import items", "shop/cart/items.py"),
        (
            "tests/test_it.py",
            "from shop.cart.items import Item",
            "src/shop/cart/items.py",
        ),
        ("tests/test_it.py", "from shop import Item", "lib/shop/__init__.py"),
        (
            "tests/unit/deep/test_it.py",
            "from shop.cart import total",
            "src/shop/cart.py",
        ),
        (
            "packages/shop/tests/test_it.py",
            "from shop import cart",
            "packages/shop/src/shop/cart.py",
        ),
        (
            "packages/shop/tests/test_it.py",
            "from packages.shop import cart",
            "packages/shop/cart.py",
        ),
        ("tests/test_it.py", "from .helpers import make", "tests/helpers.py"),
        ("shop/tests/test_it.py", "from .. import cart", "shop/cart.py"),
        ("shop/tests/test_it.py", "from ..cart import total", "shop/cart.py"),
        ("shop/tests/test_it.py", "from ..models import *", "shop/models/__init__.py"),
        ("test_it.py", "from helpers import make", "helpers.py"),
    ],
)
def test_a_test_is_for_what_it_imports(
    tmp_path: Path, test: str, text: str, path: str
) -> None:
    assert tie(tmp_path, test, text, path) == f"it imports {path}"


@each_row(
    ("test", "text", "path"),
    [
        ("tests/test_it.py", "import json", "src/app/json.py"),
        ("tests/test_it.py", "import calculator", "calc.py"),
        ("tests/test_it.py", "import calc", "other/calc.py"),
        ("tests/test_it.py", "import calc", "calc.pyi"),
        ("tests/test_it.py", "# import calc\nTEXT = 'import calc'", "calc.py"),
        ("tests/test_it.py", "import shop", "shop/cart.py"),
        ("tests/test_it.py", "import calc this is no Python", "calc.py"),
        ("tests/test_it.py", "from ...... import calc", "calc.py"),
        ("services/a/tests/test_it.py", "from utils import x", "services/b/utils.py"),
        ("tests/test_it.py", "", "tests/test_it.py"),
    ],
)
def test_and_for_nothing_that_only_looks_like_it(
    tmp_path: Path, test: str, text: str, path: str
) -> None:
    assert tie(tmp_path, test, text, path) == ""


@each_row(
    ("test", "path"),
    [
        ("tests/test_parser.py", "parser.py"),
        ("tests/test_parser.py", "src/shop/parser.py"),
        ("tests/unit/test_parser.py", "src/shop/_parser.py"),
        ("tests/test_shop.py", "src/shop/__init__.py"),
        ("tests/test_main.py", "shop/__main__.py"),
        ("parser_test.py", "parser.py"),
        ("shop/parser_test.py", "shop/parser.py"),
        ("src/parser.test.js", "src/parser.js"),
        ("src/__tests__/parser.spec.js", "src/parser.tsx"),
        ("src/parser_test.go", "src/parser.go"),
    ],
)
def test_a_test_is_for_what_it_is_named_after(
    tmp_path: Path, test: str, path: str
) -> None:
    assert tie(tmp_path, test, "", path).endswith(f" {path}")


@each_row(
    ("test", "path"),
    [
        ("tests/test_parser.py", "parsers.py"),
        ("tests/test_parser.py", "parser.txt"),
        ("tests/test_parser.py", "native/parser.rs"),
        ("tests/test_parser.py", "src/test_parser.py"),
        ("services/a/tests/test_utils.py", "services/b/utils.py"),
        ("shop/parser_test.py", "other/parser.py"),
        ("tests/parser.py", "parser.py"),
        ("tests/conftest.py", "conftest.py"),
    ],
)
def test_another_name_or_another_part_of_the_project_is_none(
    tmp_path: Path, test: str, path: str
) -> None:
    assert tie(tmp_path, test, "", path) == ""


def test_of_two_files_with_its_name_a_test_is_for_the_one_that_it_imports(
    tmp_path: Path,
) -> None:
    for path in ("a/utils.py", "b/utils.py"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text("")
    text = "from a.utils import x"
    assert tie(tmp_path, "tests/test_utils.py", text, "a/utils.py").endswith(
        " a/utils.py"
    )
    assert tie(tmp_path, "tests/test_utils.py", text, "b/utils.py") == ""


def test_a_doctest_is_for_the_file_that_it_is_in(tmp_path: Path) -> None:
    assert tie(tmp_path, "calc.py", "", "calc.py").endswith(" calc.py")


def test_taking_the_import_away_hides_nothing(tmp_path: Path) -> None:
    now = "def test_x(): assert 0"
    assert tie(tmp_path, "tests/test_it.py", now, "calc.py", b"import calc").endswith(
        " calc.py"
    )


@given(
    st.binary(max_size=80) | st.text("from import .x*\n ", max_size=40).map(str.encode)
)
def test_any_text_can_be_looked_into(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    root = tmp_path_factory.getbasetemp()
    assert TestFile.read(root, "tests/test_none_there.py", text).path == PurePosixPath(
        "tests/test_none_there.py"
    )


@each_row(
    ("path", "is_one"),
    [
        ("tests/test_a.py", True),
        ("tests/data/words.txt", True),
        ("src/a_test.py", True),
        ("a.spec.ts", True),
        ("conftest.py", True),
        ("src/contest.py", False),
        ("src/latest.py", False),
        ("testing/a.py", False),
        ("test.py", True),
    ],
)
def test_what_belongs_to_tests(path: str, is_one: bool) -> None:
    assert is_test_file(PurePosixPath(path)) is is_one
