from pathlib import Path

from cdd_agent.context.project_map import ProjectMap
from cdd_agent.context.query import Query


def ranked(root: Path, query: Query) -> list[str]:
    found = ProjectMap(root)
    found.update()
    return [file.path for file in found.rank(query)]


def project(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_what_a_text_speaks_of_comes_first(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        {
            "http.py": "def parse_range(text):\n    return text.split('-')\n",
            "mail.py": "def send(letter):\n    return letter\n",
        },
    )

    assert ranked(root, Query("Parsing of a range that has no end fails"))[0] == "http.py"


def test_a_file_that_is_named_comes_first_whatever_it_holds(tmp_path: Path) -> None:
    root = project(tmp_path, {"http.py": "range = 1\n", "lib/mail.py": "x = 1\n"})

    assert ranked(root, Query("The range in mail.py"))[0] == "lib/mail.py"


def test_what_is_left_out_is_not_found(tmp_path: Path) -> None:
    root = project(tmp_path, {"docs/range.py": "range = 1\n", "range.py": "range = 1\n"})

    assert ranked(root, Query("range", without=frozenset({"docs"}))) == ["range.py"]
