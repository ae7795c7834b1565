"""Valid files that are newer than this program's parsers: the project's own Python is
asked, and where none is at hand, nothing is refused that could be right.
"""

import sys
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.newer_syntax import KNOWN_PYTHON
from cdd_agent.changes.validators import complaint
from cdd_agent.project.interpreters import OURS
from tests.changes.applying import apply
from tests.changes.test_newer_syntax import NEWER, TOML, WRONG
from tests.project.test_interpreters import stand_in

NEXT = f"3.{OURS[1] + 1}"
NEW = "try:\n    pass\nexcept A, B:\n    pass\n"
TOO_NEW = "def f(x):\n    return x\n\n\nx = <- newer than all that is known\n"
pytestmark = pytest.mark.skipif(
    OURS >= KNOWN_PYTHON, reason="this Python reads all that is known"
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without an environment, where there is no other Python."""
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    (tmp_path / "programs").mkdir()
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def block(path: str, content: str) -> str:
    return f"~~~~text:{path}\n{content}~~~~\n"


def is_new(source: str) -> bool:
    """Whether the Python that runs this cannot read it."""
    return bool(complaint(PurePosixPath("a.py"), source.encode()))


@pytest.mark.parametrize("source", [source for source in NEWER if is_new(source)])
@pytest.mark.parametrize("before", ["x = 1\n", None])
def test_where_nobody_can_tell_it_is_taken_and_said(
    root: Path, before: str | None, source: str
) -> None:
    if before:
        (root / "a.py").write_text(before)
    (note,) = apply(root, block("a.py", source))
    assert note.startswith("a.py ")
    assert f" {OURS[0]}.{OURS[1]} " in note
    assert (root / "a.py").read_text() == source


@pytest.mark.parametrize("source", [*WRONG, *(new + "\nx = (\n" for new in NEWER)])
def test_what_is_wrong_in_every_version_is_refused_all_the_same(
    root: Path, source: str
) -> None:
    with pytest.raises(ReplyRefused, match="would not be valid"):
        apply(root, block("a.py", source))
    assert not (root / "a.py").exists()


def test_a_file_of_newer_syntax_is_not_broken_either(root: Path) -> None:
    (root / "a.py").write_text(f"{NEW}x = f(1)\n")
    with pytest.raises(ReplyRefused, match="would not be valid"):
        apply(root, block("a.py", f"{NEW}x = f(1\n"))
    assert apply(root, block("a.py", f"{NEW}x = f(2)\n"))


def test_a_newer_python_that_can_read_it_is_believed(
    root: Path, tmp_path: Path
) -> None:
    stand_in(tmp_path / "programs", NEXT)
    assert apply(root, block("a.py", TOO_NEW)) == ()
    assert (root / "a.py").read_text() == TOO_NEW


def test_one_that_knows_more_than_this_program_is_believed_when_it_denies(
    root: Path, tmp_path: Path
) -> None:
    newest = f"{KNOWN_PYTHON[0]}.{KNOWN_PYTHON[1]}"
    stand_in(tmp_path / "programs", newest, wrong="line 1: not even so")
    with pytest.raises(ReplyRefused, match=f"Python {newest}"):
        apply(root, block("a.py", NEW))


@pytest.mark.skipif(
    f"{KNOWN_PYTHON[0]}.{KNOWN_PYTHON[1]}" == NEXT, reason="there is none between"
)
def test_one_that_knows_less_leaves_it_open(root: Path, tmp_path: Path) -> None:
    stand_in(
        tmp_path / "programs",
        NEXT,
        wrong="line 3: multiple exception types must be parenthesized",
    )
    assert apply(root, block("a.py", NEW))


def test_the_projects_own_python_decides(root: Path, tmp_path: Path) -> None:
    stand_in(tmp_path / "programs", NEXT)
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to(sys.executable)
    with pytest.raises(
        ReplyRefused, match=rf"line 3: .*\(Python {OURS[0]}.{OURS[1]}\)"
    ):
        apply(root, block("a.py", NEW))
    (root / ".venv/bin/python").unlink()
    (root / ".venv/bin/python").symlink_to(stand_in(tmp_path, "3.99"))
    assert apply(root, block("a.py", NEW)) == ()


def test_a_project_that_runs_on_no_newer_python_has_no_newer_syntax(root: Path) -> None:
    (root / "pyproject.toml").write_text(
        f'[project]\nrequires-python = ">=3.8,<{NEXT}"\n'
    )
    with pytest.raises(ReplyRefused, match="would not be valid"):
        apply(root, block("a.py", NEW))


def test_a_block_that_is_known_to_be_whole_may_be_newer(root: Path) -> None:
    assert apply(root, f"~~~~python:a.py\n{NEW}")
    with pytest.raises(ReplyRefused):
        apply(root, f"~~~~python:b.py\n{NEW}x = (\n")


@pytest.mark.parametrize("text", TOML)
def test_toml_may_be_newer_too(root: Path, text: str) -> None:
    (note,) = apply(root, block("a.toml", text))
    assert note.startswith("a.toml ")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        *[
            (name, '{\n  // why\n  "a": [1, 2,], /* b */\n}\n')
            for name in ("tsconfig.json", ".vscode/settings.json")
        ],
        *[
            (name, '{"a": 1, // b\n}\n')
            for name in (
                "app/tsconfig.build.json",
                "deno.json",
                "biome.json",
                "x.jsonc",
            )
        ],
        ("a.json5", "{a: 'b', +1: .5,}\n"),
        (
            "a.yaml",
            "--- !Tag\na: !Ref b\nc: !<tag:x,2000:y> [1]\n...\n---\nb: !!binary YQ==\n",
        ),
        (
            "stack.yml",
            "%YAML 1.2\n---\nA: !Sub '${B}'\nC: !GetAtt D.E\nF: &x {<<: *x}\n",
        ),
        ("ci.yaml", "a: !reference [.b, script]\n? complex\n: value\n"),
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_other_languages_have_more_than_their_plainest_form(
    root: Path, path: str, content: str, is_there: bool
) -> None:
    if is_there:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("{}\n")
    assert apply(root, block(path, content)) == ()


@pytest.mark.parametrize(
    "path", ["package.json", "data/denominations.json", "turbocharged.json"]
)
def test_json_that_programs_read_has_no_comments(root: Path, path: str) -> None:
    with pytest.raises(ReplyRefused, match="would not be valid"):
        apply(root, block(path, '{"a": 1, // b\n}\n'))
