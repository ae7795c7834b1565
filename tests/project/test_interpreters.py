"""Other Pythons that are asked about a text: which of them counts, and that nothing but
reading is done.
"""

import sys
from pathlib import Path

import pytest

from cdd_agent.project import interpreters
from cdd_agent.project.interpreters import OURS, Opinion, allows, opinion

NEXT, LATER = f"3.{OURS[1] + 1}", f"3.{OURS[1] + 2}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def stand_in(
    folder: Path, version: str, *, wrong: str = "", name: str = "", code: str = ""
) -> Path:
    """A program that answers like a Python of a version."""
    program = folder / (name or f"python{version}")
    program.write_text(
        f"#!{sys.executable}\n"
        + (code or f"print('Python {version}')\nprint({wrong!r})\n")
    )
    program.chmod(0o755)
    return program


def version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def test_without_another_there_is_no_opinion(root: Path, path: Path) -> None:
    assert opinion(root, b"x = 1\n") is None


def test_a_newer_one_on_the_path_says_that_it_can_be_read(
    root: Path, path: Path
) -> None:
    stand_in(path, LATER, wrong="line 1: no")
    stand_in(path, NEXT)
    assert opinion(root, b"x\n") == Opinion(version(NEXT), "")


def test_where_all_deny_it_the_newest_is_quoted(root: Path, path: Path) -> None:
    stand_in(path, NEXT, wrong="line 1: so")
    stand_in(path, LATER, wrong="line 1: or")
    assert opinion(root, b"x\n") == Opinion(version(LATER), "line 1: or")


@pytest.mark.parametrize("name", ["python", "python3"])
def test_one_without_its_number_is_asked_which_it_is(
    root: Path, path: Path, name: str
) -> None:
    stand_in(path, "3.4", name=name)
    assert opinion(root, b"x\n") is None  # an older one knows nothing that we do not
    stand_in(path, NEXT, name=name)
    assert opinion(root, b"x\n") == Opinion(version(NEXT), "")


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(127)",
        "print('Python 3.x')",
        "print('hello')",
        "import os\nos.abort()",
        "import time\ntime.sleep(60)",
    ],
)
def test_one_that_gives_no_answer_is_passed_over(
    root: Path, path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(path, LATER, code=code)
    if "sleep" in code:
        monkeypatch.setattr(interpreters, "_SECONDS", 1.0)
        assert opinion(root, b"x\n") is None
    else:
        stand_in(path, NEXT)
        assert opinion(root, b"x\n") == Opinion(version(NEXT), "")


def test_that_of_the_projects_own_environment_decides(root: Path, path: Path) -> None:
    stand_in(path, NEXT)
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to(sys.executable)
    said = opinion(root, b"x = (\n")
    assert said is not None
    assert (said.version, said.is_of_project) == (OURS, True)
    assert said.wrong.startswith("line 1: ")
    assert opinion(root, b"x = 1\n") == Opinion(OURS, "", is_of_project=True)


def test_nothing_of_a_project_is_run(
    root: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = root / "was-run"
    touch = f"open({str(mark)!r}, 'w').close()\n"
    for name in ("sitecustomize.py", "usercustomize.py", "sys.py", "encodings.py"):
        (root / name).write_text(touch)
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to(sys.executable)
    site = root / ".venv/lib" / f"python3.{OURS[1]}" / "site-packages"
    site.mkdir(parents=True)
    (site / "evil.pth").write_text(f"import os; {touch}")
    (root / ".venv/pyvenv.cfg").write_text(
        f"home = {Path(sys.executable).resolve().parent}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv("PYTHONSTARTUP", str(root / "sys.py"))
    monkeypatch.chdir(root)
    assert opinion(root, touch.encode()) == Opinion(OURS, "", is_of_project=True)
    (root / ".venv/bin/python").unlink()
    # a file of the project that says it is a Python
    stand_in(root / ".venv/bin", NEXT, name="python", code=touch)
    stand_in(root / ".venv/bin", NEXT, code=touch)
    # as in an environment that was activated
    monkeypatch.setenv("PATH", str(root / ".venv/bin"))
    assert opinion(root, b"x\n") is None
    assert not mark.exists()


def test_requires_python_says_which_count(root: Path, path: Path) -> None:
    stand_in(path, NEXT)
    (root / "pyproject.toml").write_text(
        f'[project]\nname = "a"\nrequires-python = ">=3.8,<{NEXT}"\n'
    )
    assert opinion(root, b"x\n") is None


@pytest.mark.parametrize(
    ("wanted", "fitting"),
    [
        (">=3.11", [11, 12, 13, 14]),
        (">=3.9, <3.13", [10, 11, 12]),
        (">= 3.9,<3.13.2", [10, 11, 12, 13]),
        ("<=3.12", [10, 11, 12]),
        ("==3.12.*", [12]),
        ("~=3.12.1", [12]),
        ("~=3.12", [12, 13, 14]),
        (">3.11,!=3.13.*,<4", [11, 12, 13, 14]),
        ("whatever", [10, 11, 12, 13, 14]),
    ],
)
def test_ranges_are_read(root: Path, wanted: str, fitting: list[int]) -> None:
    (root / "pyproject.toml").write_text(f'[project]\nrequires-python = "{wanted}"\n')
    assert [minor for minor in range(10, 15) if allows(root, (3, minor))] == fitting


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[project]\n",
        "project = 3\n",
        "[project]\nrequires-python = []\n",
        "[\n",
        "\xff",
    ],
)
def test_a_range_that_cannot_be_read_forbids_nothing(root: Path, text: str) -> None:
    (root / "pyproject.toml").write_bytes(text.encode("latin-1"))
    assert allows(root, (3, 99))
