"""Valid files that are newer than this program's parsers: the project's own Python is
asked, and where none is at hand, nothing is refused that could be right.
"""

import sys
from pathlib import Path

import pytest

from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.readability import NEWEST_PYTHON
from cdd_agent.files.kinds import FileKind
from cdd_agent.files.syntax import find_fault
from cdd_agent.project.interpreters import OURS
from tests.changes.applying import apply
from tests.project.test_interpreters import stand_in
from tests.support.tables import each_row

NEXT = f"3.{OURS[1] + 1}"
NEW = "try:\n    pass\nexcept A, B:\n    pass\n"
TOO_NEW = "def f(x):\n    return x\n\n\nx = <- newer than all that is known\n"
NEWER = [
    "type X = int\n",
    "type X[T: (int, str) = int] = list[T]\n",
    "if True:\n    type X[*Ts, **P] = dict[P, tuple[*Ts]]\n",
    "type = 3\ntype X = int\n",
    "def f[T](x: T) -> T:\n    return x\n",
    "def f[T: int = bool](x: T) -> T: ...\n",
    "class C[T = int, *Ts = *tuple[int]](B): pass\n",
    "class C[T, *Ts, **P](Base[T]): pass\n",
    "class C:\n    async def g[\n        T: int,  # one\n    ](self): ...\n",
    'x = f"{d["a"]}"\n',
    "x = f'{a['b']:>{w['c']}} {x!r} {x=} {x!=y} {{}}' 'more'\n",
    'x = f"{"\\n".join(a)}"\n',
    "x = f'{f'{f'{1}'}'}'\n",
    'x = f"{\n    a  # why\n}"\n',
    'x = f"{d["]"]} {d["("]!r:>{w}}" + "("\n',
    'x = rf"\\{d["a"]}\\d {{"\n',
    'x = f"""{d["""a"""]}\n"""\n',
    'x = f"\\N{EM DASH} {d["a"]:%H:%M}"\n',
    'async def f():\n    return f"{await g("a", [b["c"] for b in x])}"\n',
    'x = t"a {b}"\n',
    'x = tr"\\{b["c"]!s}" t"d"\n',
    "try:\n    pass\nexcept A, B:\n    pass\n",
    "try:\n    pass\nexcept* A, b.C, (D):\n    pass\n",
]
WRONG = [
    "x = (\n",
    "x = )\n",
    'x = f"{d["a"]}"\nprint(\n',
    "type X = int\n)\n",
    "type X =\n",
    "def f[](x): pass\n",
    "class C[T:\n    pass\n",
    "def f(:\n    pass\n",
    "def f[T](x: T) -> T\n    return x\n",
    'x = f"{x +}"\n',
    'x = f"{}"\n',
    'x = f"{d["a"]"\n',
    'x = t"{a b}"\n',
    'x = "abc\n',
    "try:\n    pass\nexcept A,:\n    return return\n",
    "x = 1 +\n",
    "retrun x\n",
    'print "x"\n',
    "return 1\n",
    "if x:\ny\n",
    "x = 1\n  y = 2\n",
    "def f():\n\tx\n        y\n",
    "def f(a, a): pass\n",
    "for x in y:\n    pass\nbreak\n",
    "f" + '"{f' * 40 + "\n",
]
TOML = [
    "a = {\n  b = 1, # one\n  c = [\n    1,\n    2,\n  ],\n}\n",
    'a = "\\e[0m \\x41 \\\\e"\n',
    "t = 07:32\nd = 1979-05-27T07:32\ne = 1979-05-27 07:32Z\nf = 07:32:01\n",
    "a = { b = { c = \"}\", }, }\n[x]\ny = \"{\"\nz = '''\n\\e'''\n",
    'a = {x = """\n\\e""",\n}\n',
]
LEFT_TO_THE_CHECK = [
    'x = f"{d["a"]!z}"\n',
    "try:\n    pass\nexcept A, B as e:\n    pass\n",
    "f(a=1, b)\n",
]
"""Wrong in all versions, but not for the grammar."""
if OURS < (3, 12):
    # later versions know the statement, and find the fault
    LEFT_TO_THE_CHECK.append("type X = int\n  y\n")
WRONG_TOML = [
    "a = {\n b = 1\n c = 2\n}\n",
    "a = [1\n",
    'a = "x\n',
    "a =\n",
    "a = { b = 1,, }\n",
    "a = 1\na = 2\n",
    'a = "\\q"\n',
]
pytestmark = pytest.mark.skipif(
    OURS >= NEWEST_PYTHON, reason="this Python reads all that is known"
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
    return bool(find_fault(FileKind.PYTHON, source))


@pytest.mark.parametrize(
    "source", [source for source in (*NEWER, *LEFT_TO_THE_CHECK) if is_new(source)]
)
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
    newest = f"{NEWEST_PYTHON[0]}.{NEWEST_PYTHON[1]}"
    stand_in(tmp_path / "programs", newest, wrong="line 1: not even so")
    with pytest.raises(ReplyRefused, match=f"Python {newest}"):
        apply(root, block("a.py", NEW))


@pytest.mark.skipif(
    f"{NEWEST_PYTHON[0]}.{NEWEST_PYTHON[1]}" == NEXT, reason="there is none between"
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


@each_row("before", ["x = 1\n", None])
@each_row("text", TOML)
def test_toml_may_be_newer_too(root: Path, before: str | None, text: str) -> None:
    if before:
        (root / "a.toml").write_text(before)
    (note,) = apply(root, block("a.toml", text))
    assert note.startswith("a.toml ")
    assert " 1.1" in note


@each_row("before", ["x = 1\n", None])
@each_row("text", WRONG_TOML)
def test_toml_that_is_wrong_in_every_version_is_refused(
    root: Path, before: str | None, text: str
) -> None:
    if before:
        (root / "a.toml").write_text(before)
    with pytest.raises(ReplyRefused):
        apply(root, block("a.toml", text))


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
        ("a.json5", "{a: 'b', c: +.5,}\n"),
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
