"""Syntax newer than that of the Python that runs this: known by sight, and told from
what is wrong everywhere.
"""

import ast
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdd_agent
from cdd_agent.changes.newer_syntax import older_python, older_toml
from tests.support.tables import each_row

NEWER = [
    "type X = int\n",
    "type X[T: (int, str) = int] = list[T]\n",
    "if True:\n    type X[*Ts, **P] = dict[P, tuple[*Ts]]\n",
    "type = 3\ntype X = int\n",
    "def f[T](x: T) -> T:\n    return x\n",
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
    "type X = int\n  y\n",
    "def f[](x): pass\n",
    "class C[T:\n    pass\n",
    "def f(:\n    pass\n",
    "def f[T](x: T) -> T\n    return x\n",
    'x = f"{x +}"\n',
    'x = f"{}"\n',
    'x = f"{d["a"]"\n',
    'x = f"{d["a"]!z}"\n',
    'x = t"{a b}"\n',
    'x = "abc\n',
    "try:\n    pass\nexcept A, B as e:\n    pass\n",
    "try:\n    pass\nexcept A,:\n    return return\n",
    "x = 1 +\n",
    "retrun x\n",
    'print "x"\n',
    "f" + '"{f' * 40 + "\n",
]


def reads(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


@each_row("source", NEWER)
def test_newer_python_is_read_when_it_is_spelled_as_it_was_before(source: str) -> None:
    assert reads(older_python(source))


@each_row("source", WRONG)
def test_what_is_wrong_in_every_version_stays_wrong(source: str) -> None:
    assert not reads(older_python(source))


@each_row("source", NEWER)
@each_row(
    "more", ["\nx = (\n", "\n)\n", '\nx = "\n', "\n  x\n", "\ndef f(:\n    pass\n"]
)
def test_beside_newer_syntax_a_fault_is_still_one(source: str, more: str) -> None:
    assert not reads(older_python(source + more))


def test_code_that_can_be_read_already_stays_readable() -> None:
    ours = [*Path(cdd_agent.__file__).parent.rglob("*.py")]
    assert len(ours) > 100
    assert [path for path in ours if not reads(older_python(path.read_text()))] == []


@given(st.text("{}[]()\"'\\ftr\n:!=# axN.,", max_size=60) | st.text(max_size=40))
def test_any_text_is_taken(text: str) -> None:
    older_python(text)
    older_python(f'f"{{{text}')
    older_toml(text)


TOML = [
    "a = {\n  b = 1, # one\n  c = [\n    1,\n    2,\n  ],\n}\n",
    'a = "\\e[0m \\x41 \\\\e"\n',
    "t = 07:32\nd = 1979-05-27T07:32\ne = 1979-05-27 07:32Z\nf = 07:32:01\n",
    "a = { b = { c = \"}\", }, }\n[x]\ny = \"{\"\nz = '''\n\\e'''\n",
    'a = {x = """\n\\e""",\n}\n',
]


@each_row("text", TOML)
def test_newer_toml_is_read_when_it_is_spelled_as_it_was_before(text: str) -> None:
    assert tomllib.loads(older_toml(text))


def test_and_says_the_same() -> None:
    assert tomllib.loads(older_toml(TOML[0])) == {"a": {"b": 1, "c": [1, 2]}}
    assert tomllib.loads(older_toml(TOML[1])) == {"a": "\x1b[0m A \\e"}


@each_row(
    "text",
    [
        "a = {\n b = 1\n c = 2\n}\n",
        "a = [1\n",
        'a = "x\n',
        "a =\n",
        "a = { b = 1,, }\n",
        "a = 1\na = 2\n",
        'a = "\\q"\n',
    ],
)
def test_wrong_toml_stays_wrong(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(older_toml(text))
