"""Whole files: the ways in which models name them, and the fences that they put around
them.
"""

from contextlib import nullcontext
from pathlib import Path

import pytest

from cdd_agent.changes.model import ReplyRefused, WholeFile
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.policy import EditPolicy
from tests.changes.applying import PROJECT, Refused, apply, expected, tree, write
from tests.support.tables import each_row

NEW = "VALUE = 1\n"


@each_row(
    "info",
    [
        "python:src/new.py",
        "py:src/new.py",
        "python: src/new.py",
        "python:./src/new.py",
        "python:src/new.py (new)",
        "python:src/new.py (new file)",
        "python src/new.py",
        "python  src/new.py",
        "Python src/new.py",
        "src/new.py",
        "./src/new.py",
        "python filename=src/new.py",
        'python filename="src/new.py"',
        "python file=src/new.py",
        "python path=src/new.py",
        'python title="src/new.py"',
        "python title='src/new.py'",
        'title="src/new.py"',
        "python file_path=src/new.py",
        "python filepath: src/new.py",
        "{.python file=src/new.py}",
        '{.python filename="src/new.py"}',
        "{python, file=src/new.py}",
        'python {title="src/new.py"}',
        'python showLineNumbers title="src/new.py"',
        ":src/new.py",
    ],
)
def test_the_info_string_names_the_file(info: str) -> None:
    assert parse_reply(f"Here:\n\n```{info}\n{NEW}```\n").edits in (
        (WholeFile("src/new.py", NEW),),
        (WholeFile("./src/new.py", NEW),),
    )


@each_row(
    "line",
    [
        "src/new.py",
        "src/new.py:",
        "`src/new.py`",
        "`src/new.py`:",
        "**src/new.py**",
        "**src/new.py:**",
        "**`src/new.py`**",
        "**`src/new.py`**:",
        "*src/new.py*",
        "### src/new.py",
        "### `src/new.py`",
        "#### **src/new.py**",
        "## File: src/new.py",
        "### File: `src/new.py`",
        "File: src/new.py",
        "**File:** `src/new.py`",
        "**File: `src/new.py`**",
        "Filename: src/new.py",
        "Path: `src/new.py`",
        "File path: src/new.py",
        "Create `src/new.py`:",
        "Create file `src/new.py`:",
        "New file: src/new.py",
        "### 1. src/new.py",
        "1. `src/new.py`",
        "1. **src/new.py**",
        "- `src/new.py`",
        "* src/new.py",
        "### Step 1: Create `src/new.py`",
        "**src/new.py** (new)",
        "`src/new.py` (new file):",
        "### `src/new.py` (created)",
        "`src/new.py` - new file",
        "'src/new.py'",
        '"src/new.py"',
    ],
)
@each_row("between", ["\n", "\n\n"])
def test_the_line_before_names_the_file(line: str, between: str) -> None:
    text = f"I make it.\n\n{line}{between}```python\n{NEW}```\n"
    assert parse_reply(text).edits == (WholeFile("src/new.py", NEW),)


@each_row(
    ("language", "comment"),
    [
        ("python", "# src/new.py"),
        ("python", "# File: src/new.py"),
        ("python", "# filepath: src/new.py"),
        ("python", "# filename: new.py"),
        ("python", "# new.py"),
        ("", "# src/new.py"),
        ("typescript", "// src/new.ts"),
        ("javascript", "// filepath: src/new.js"),
        ("css", "/* src/new.css */"),
        ("html", "<!-- src/new.html -->"),
        ("sql", "-- src/new.sql"),
        ("ini", "; src/new.ini"),
    ],
)
def test_a_first_line_that_is_only_a_path_names_the_file_and_stays(
    language: str, comment: str
) -> None:
    (edit,) = parse_reply(f"```{language}\n{comment}\nx\n```\n").edits
    assert isinstance(edit, WholeFile)
    assert edit.path in comment
    assert edit.content == f"{comment}\nx\n"


def test_json_has_no_comments_so_the_name_is_not_its_content() -> None:
    assert parse_reply('```json\n// pkg/a.json\n{"a": 1}\n```\n').edits == (
        WholeFile("pkg/a.json", '{"a": 1}\n'),
    )


@each_row(
    "text",
    [
        "```\nls\n```",
        "```python\nprint(1)\n```",
        "```python 3.11\nprint(1)\n```",
        '```python title="Example"\nprint(1)\n```',
        "```js {1,3-5}\nx\n```",
        "```python {.line-numbers}\nx\n```",
        "```c++\nint x;\n```",
        "```asp.net\nx\n```",
        "```Dockerfile\nFROM x\n```",
        "```12:20:src/calc.py\nreturn a + b\n```",
        "```json5\n{}\n```",
        "In `src/calc.py`, the function is:\n\n```python\nreturn a + b\n```",
        "See src/calc.py for how it adds.\n```python\nreturn a + b\n```",
        "**src/calc.py**\n```bash\npytest src/calc.py\n```",
        "`tests/test_a.py`:\n```console\n$ pytest\n```",
        "Run:\n\n```bash\npython src/calc.py\n```",
        "```python\n# This is src/calc.py\nx\n```",
        "```python\n# see https://example.org/a.py\nx\n```",
        "```python\n# 3.11\nx\n```",
        "```yaml\non:\n  push: {}\n```",
        "```yaml\n- run: ls\n- name: x\n```",
        "```diff\n- old\n+ new\n```",
        "The steps:\n\n1. first\n2. second\n",
        "Version 1.2.3:\n```text\nx\n```",
        "e.g.\n```text\nx\n```",
    ],
)
def test_a_block_without_a_path_is_explanation(text: str) -> None:
    reply = parse_reply(text)
    assert reply.edits == ()
    assert reply.explanation == text.strip()


FENCES: dict[str, tuple[str, dict[str, str | None] | Refused]] = {
    "four backticks": (f"````python:a.py\n{NEW}````", {"a.py": NEW}),
    "seven backticks": (f"```````python:a.py\n{NEW}```````", {"a.py": NEW}),
    "a longer closing fence": (f"```python:a.py\n{NEW}`````", {"a.py": NEW}),
    "tildes": (f"~~~python:a.py\n{NEW}~~~", {"a.py": NEW}),
    "long tildes around backticks": (
        "~~~~md:a.md\n```sh\nls\n```\n~~~~",
        {"a.md": "```sh\nls\n```\n"},
    ),
    "in a list": (
        "- First:\n\n  ```py:a.py\n  if 1:\n      x = 1\n  ```",
        {"a.py": "if 1:\n    x = 1\n"},
    ),
    "in a deep list": (
        "1. A\n   - B\n\n     ```py:a.py\n     x = 1\n     ```",
        {"a.py": "x = 1\n"},
    ),
    "named in a list": (
        "1. **a.py**\n\n   ```python\n   x = 1\n   ```",
        {"a.py": "x = 1\n"},
    ),
    "in a quote": ("> ```py:a.py\n> x = 1\n> ```", {"a.py": "x = 1\n"}),
    "CRLF": (
        "Hi\r\n\r\n```py:a.py\r\nx = 1\r\n\r\ny = 2\r\n```\r\n",
        {"a.py": "x = 1\n\ny = 2\n"},
    ),
    "an empty file": ("```python:pkg/__init__.py\n```", {"pkg/__init__.py": ""}),
    "blank lines at both ends": ("```text:a.txt\n\nx\n\n```", {"a.txt": "\nx\n\n"}),
    "white space is kept": (
        "```text:a.txt\n\tx  \n   \n```",
        {"a.txt": "\tx  \n   \n"},
    ),
    "not closed, and whole by its language": (f"```python:a.py\n{NEW}", {"a.py": NEW}),
    "JSON that is not closed": ('```json:a.json\n{"a": 1}\n', {"a.json": '{"a": 1}\n'}),
    "not closed, and cut": ("```python:a.py\ndef f(\n", Refused("never closed")),
    "not closed, and nobody knows": ("```js:a.js\nlet x\n", Refused("never closed")),
    "cut in a line": ("```python:a.py\nx = 1", Refused("never closed")),
    "wrapped": (f"```markdown\nHere:\n\n```python:a.py\n{NEW}```\n```", {"a.py": NEW}),
    "wrapped in four": (
        f"````markdown\nHere:\n\n```python:a.py\n{NEW}```\n````",
        {"a.py": NEW},
    ),
    "wrapped without a language": (
        f"```\n```python:a.py\n{NEW}```\n```",
        {"a.py": NEW},
    ),
    "two files": (
        f"```py:a.py\n{NEW}```\nand\n```py:b.py\nx = 2\n```",
        {"a.py": NEW, "b.py": "x = 2\n"},
    ),
    "two named files in bare fences": (
        f"**a.py**\n```\n{NEW}```\n\n**b.js**\n```\nlet x\n```",
        {"a.py": NEW, "b.js": "let x\n"},
    ),
    "commands after a file of code": (
        f"```py:a.py\n{NEW}```\n\nRun:\n\n```\npytest\n```",
        {"a.py": NEW},
    ),
    "a bare fence after Markdown": (
        "```md:a.md\n# A\n```\nls\n```\nx\n```",
        Refused("unclear where"),
    ),
    "a name within Markdown": (
        "```md:a.md\n# A\n\n```\nsrc/x.py\n```\nmore\n```",
        Refused("unclear where"),
    ),
    "an opening within Markdown": (
        "```md:a.md\n# A\n```sh\nls\n```\nx\n```",
        Refused("unclear where"),
    ),
    "a docstring with a fence": (
        '```py:a.py\n"""\n```\nx\n```\n"""\n```',
        Refused("unclear where"),
    ),
    "twice the same": (f"```py:a.py\n{NEW}```\n```py:a.py\n{NEW}```", {"a.py": NEW}),
    "two versions": (
        "```py:a.py\nx = 1\n```\n```py:a.py\nx = 2\n```",
        Refused("twice"),
    ),
    "two spellings of one file": (
        "```py:a.py\nx = 1\n```\n```py:./a.py\nx = 2\n```",
        Refused("twice"),
    ),
    "an absolute path": (f"```py:/etc/a.py\n{NEW}```", Refused("absolute")),
    "a path upwards": (f"```py:../a.py\n{NEW}```", Refused("leaves the project")),
    "git's own": ("```text:.git/config\nx\n```", Refused("belongs to git")),
    "the program's own": (
        "```yaml:.cdd/config.yaml\nmodel: x\n```",
        Refused("belongs to git or to the program"),
    ),
    "good beside bad": (
        f"```py:a.py\n{NEW}```\n```py:../b.py\n{NEW}```",
        Refused("leaves the project"),
    ),
    "new Python that does not parse": ("```py:a.py\ndef f(:\n```", Refused("line 1")),
    "new JSON that does not parse": ('```json:a.json\n{"a": }\n```', Refused("line 1")),
    "new TOML that does not parse": (
        "```toml:a.toml\na = \n```",
        Refused("not be valid"),
    ),
    "a template": (
        "```python:a.py\nimport {{ package }}\n```",
        {"a.py": "import {{ package }}\n"},
    ),
    "meant to be wrong": (
        "```python:tests/bad_syntax.py\ndef f(:\n```",
        {"tests/bad_syntax.py": "def f(:\n"},
    ),
    "comments in tsconfig": (
        '```json:tsconfig.json\n{"a": 1, // x\n}\n```',
        {"tsconfig.json": '{"a": 1, // x\n}\n'},
    ),
    "an existing file": (
        "```toml:config.toml\nname = 'x'\n```",
        {"config.toml": "name = 'x'\n"},
    ),
    "what parsed and does not now": (
        "```toml:config.toml\nname = \n```",
        Refused("would not be valid"),
    ),
    "a remark instead of lines": (
        "```md:README.md\n# Calc\n... rest unchanged ...\n```",
        Refused("left out"),
    ),
    "emptied": ("```md:README.md\n```", Refused("emptied")),
}


@each_row(("reply", "outcome"), FENCES.values(), ids=FENCES.keys())
def test_fences(
    tmp_path: Path, reply: str, outcome: dict[str, str | None] | Refused
) -> None:
    write(tmp_path, PROJECT)
    if isinstance(outcome, Refused):
        with pytest.raises(ReplyRefused, match=outcome.why):
            apply(tmp_path, reply)
        assert tree(tmp_path) == PROJECT
    else:
        apply(tmp_path, reply)
        assert tree(tmp_path) == expected(outcome)


def test_the_final_newline_follows_the_habit_of_the_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "one", "b.txt": "one\n"})
    apply(tmp_path, "```text:a.txt\ntwo\n```\n```text:b.txt\ntwo\n```")
    assert tree(tmp_path) == {"a.txt": "two", "b.txt": "two\n"}


@each_row(
    ("before", "after", "is_refused"),
    [
        (20, 10, False),
        (20, 9, True),
        (11, 6, False),
        (11, 5, True),
        (10, 1, False),
        (200, 99, True),
    ],
)
def test_a_file_of_more_than_ten_lines_keeps_half_of_them(
    tmp_path: Path, before: int, after: int, is_refused: bool
) -> None:
    """Blank lines are no lines there: neither do they make a file long, nor do they
    fill up what is left of it.
    """
    lines = [f"line {number}\n\n" for number in range(before)]
    write(tmp_path, {"a.txt": "".join(lines)})
    given = "".join(lines[:after]) + "\n" * before
    with (
        pytest.raises(ReplyRefused, match="never shortened")
        if is_refused
        else nullcontext()
    ):
        apply(tmp_path, f"```text:a.txt\n{given}```")
    left = (tmp_path / "a.txt").read_text().split("\n")
    assert sum(bool(line) for line in left) == (before if is_refused else after)


def test_what_was_broken_before_may_stay_so(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "def f(:\n    pass\n", "b.py": "def f():\n    pass\n"})
    apply(tmp_path, "```python:a.py\ndef g(:\n    pass\n```")
    with pytest.raises(ReplyRefused, match=r"b\.py would not be valid"):
        apply(tmp_path, "```python:b.py\ndef g(:\n    pass\n```")
    assert tree(tmp_path) == {
        "a.py": "def g(:\n    pass\n",
        "b.py": "def f():\n    pass\n",
    }


def test_most_of_a_file_does_not_go_unless_the_task_says_so(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "".join(f"line {number}\n" for number in range(20))})
    with pytest.raises(ReplyRefused, match="never shortened"):
        apply(tmp_path, "```text:a.txt\nline 1\nline 2\n```")
    apply(
        tmp_path,
        "```text:a.txt\nline 1\nline 2\n```",
        EditPolicy(seen=None, may_shrink=lambda path: path == "a.txt"),
    )
    assert tree(tmp_path) == {"a.txt": "line 1\nline 2\n"}
