"""Names of files in a text are those that the project has: whatever they are called,
however they are written.
"""

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.files.named import NamedFile, named_files, names_in
from tests.support.tables import each_row

PATHS = (
    *(
        ".flake8",
        ".gitignore",
        "CHANGES",
        "Dockerfile",
        "LICENSE",
        "LICENSE-MIT",
        "Makefile",
        "README.md",
        "gradlew",
    ),
    *(
        "run",
        "setup.cfg",
        "my file (1).txt",
        "docs/index.rst",
        "bin/deploy",
        ".github/workflows/ci.yml",
    ),
    *(
        "src/shop/__init__.py",
        "src/shop/models/__init__.py",
        "src/shop/models/user.py",
        "src/shop/cart.py",
    ),
    *(
        "lib/cart.py",
        "web/pages/[slug].tsx",
        "tests/test_cart.py",
        "a.tar.gz",
        "packages/app/Makefile",
    ),
)


def paths_in(text: str) -> list[str]:
    """Those that a text names and that can only be meant."""
    return [file.paths[0] for file in named_files(text, PATHS) if len(file.paths) == 1]


@each_row("path", PATHS)
@each_row(
    "form", ["Change `{}`.", "Change `./{}`, please", "`{}`", "``{}``: all of it\nnext"]
)
def test_every_file_can_be_named_in_back_ticks(form: str, path: str) -> None:
    assert paths_in(form.format(path)) == [path]


@each_row(
    "path",
    [path for path in PATHS if " " not in path and path not in ("gradlew", "run")],
)
@each_row(
    "form",
    ["Remove {}.", "Move {}, then test", "**{}**: more", '"{}"', "- see {}:12", "{}"],
)
def test_most_can_be_named_in_plain_words(form: str, path: str) -> None:
    if "[" not in path:
        assert paths_in(form.format(path)) == [path]


@each_row(
    ("text", "named"),
    [
        ("Add a field to `user.py`.", ["src/shop/models/user.py"]),
        ("Add a field to models/user.py", ["src/shop/models/user.py"]),
        ("`tests/test_cart.py::test_total` has to pass", ["tests/test_cart.py"]),
        ("Run `pytest tests/test_cart.py -q`.", ["tests/test_cart.py"]),
        ("See [the notes](docs/index.rst).", ["docs/index.rst"]),
        ("as in src\\shop\\models\\user.py", ["src/shop/models/user.py"]),
        ("Use `deploy`, then `run`.", ["bin/deploy", "run"]),
        ("Split Makefile; then LICENSE (again: Makefile).", ["Makefile", "LICENSE"]),
        ("CHANGES: one line. .flake8 goes.", ["CHANGES", ".flake8"]),
    ],
)
def test_a_part_is_enough_where_it_is_the_only_one(text: str, named: list[str]) -> None:
    assert paths_in(text) == named


@each_row(
    "text",
    [
        *(
            "Run the tests, run. Then deploy.",
            "os.path and example.com, e.g. 1.0",
            "`not-there.py`",
            "src/shop",
            "art.py",
        ),
        *(
            "`../setup.cfg`",
            "/etc/setup.cfg",
            "`",
            "",
            "makefile",
            "ser.py",
            "hop/cart.py",
            "``` ```",
            "...",
        ),
    ],
)
def test_words_are_no_files(text: str) -> None:
    assert named_files(text, PATHS) == []


def test_a_name_that_several_have_says_which() -> None:
    carts = NamedFile("cart.py", ("lib/cart.py", "src/shop/cart.py"))
    of_the_shop = NamedFile("shop/cart.py", ("src/shop/cart.py",))
    text = "`cart.py`, `shop/cart.py`"
    assert named_files(text, PATHS) == [carts, of_the_shop]
    # the whole path comes first
    assert named_files("Makefile", PATHS) == [NamedFile("Makefile", ("Makefile",))]


NAMES = st.text("abcXYZ019._-+@ ()[]é", min_size=1, max_size=12).filter(
    lambda name: (
        name.strip() == name and name.strip(".") != "" and not name.startswith("./")
    )
)


@given(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.sets(NAMES, max_size=5)
)
def test_whatever_it_is_called_its_path_in_back_ticks_names_it(
    path: str, others: set[str]
) -> None:
    text = f"Do it in `{path}` now."
    assert path in {
        at for file in named_files(text, {path, *others}) for at in file.paths
    }


@given(st.text("`.aA/ \n*[]()", max_size=200) | st.text())
def test_any_text_is_read(text: str) -> None:
    assert all(isinstance(name, str) for name in names_in(text))
    named_files(text, PATHS)
