"""Names of files and what only looks like them: headings, captions, lines of snippets,
first comments.
"""

from pathlib import Path

from cdd_agent.changes.parse import parse_reply
from tests.changes.applying import CALC, PROJECT, apply, expected, tree, write
from tests.support.tables import each_row

CHANGED = CALC.replace("return a + b", "return b + a")
FILE = f"```python:src/calc.py\n{CHANGED}```\n"


def paths(text: str) -> list[str]:
    return [
        edit.path.removeprefix("./").replace("\\", "/")
        for edit in parse_reply(text).edits
    ]


@each_row("language", ["", "js", "python"])
@each_row(
    "line",
    [
        "Input/Output",
        "**Before/After**",
        "### CI/CD",
        "### Request/Response",
        "TCP/IP:",
        "`and/or`",
        "Read/write:",
        "### Express.js",
        "### example.com",
        "### Calculator.add",
        "`os.environ`",
        "**Socket.io**",
        "`GET /users`",
        "src/calc.py:1-2",
        "`src/calc.py` (lines 1-2)",
        "### src/calc.py (excerpt)",
        "src/calc.py:10:",
        "`src/calc.py` (before)",
        "### `src/calc.py` (current)",
        "### src/calc.py (existing)",
        "src/calc.py (existing code)",
        "`src/calc.py` [existing]",
        "src/calc.py (changed lines only)",
        "src/calc.py (modified section)",
        "`src/calc.py` (updated part)",
        "src/calc.py (new method)",
        "### README",
        "**CHANGELOG**",
        "VERSION:",
    ],
)
def test_a_line_that_names_no_whole_file_makes_none(
    tmp_path: Path, line: str, language: str
) -> None:
    write(tmp_path, PROJECT)
    apply(tmp_path, f"I do.\n\n{line}\n```{language}\nx = 1\n```\n\n{FILE}")
    assert tree(tmp_path) == expected({"src/calc.py": CHANGED})


@each_row(
    "info",
    [
        "bash:Terminal",
        "text:Output",
        "shell:Run tests",
        "js:no-line-numbers",
        "bash:ターミナル",
        "python:12-20",
        'http title="GET /users"',
        'text title="Before/After"',
        "python name=example",
        "js:line-numbers {1}",
        "python:src/calc.py:1-2",
        "python:src/calc.py#L1-L2",
        "python:src/calc.py:10",
        "python:src/calc.py L1-L2",
        "python:src/calc.py (lines 1-2)",
        "python:src/calc.py, lines 1-2",
        "diff:changes",
    ],
)
def test_an_info_string_that_names_no_whole_file_makes_none(info: str) -> None:
    assert paths(f"```{info}\nx = 1\n```\n\n{FILE}") == ["src/calc.py"]


@each_row(
    "comment",
    [
        "# I/O",
        "# Input/Output",
        "# Before/After",
        "# GET/POST",
        "# 1/2",
        "# n/a",
        "# os.path",
        "# Calculator.add",
    ],
)
def test_a_first_comment_that_only_looks_like_a_path_makes_no_file(
    comment: str,
) -> None:
    assert paths(f"```python\n{comment}\nx = 1\n```\n\n{FILE}") == ["src/calc.py"]


@each_row(
    "line",
    [
        "### File 1: src/new.py",
        "#### 1. `src/new.py` — updated",
        "### 📄 src/new.py",
        "📄 **src/new.py**",
        "✅ `src/new.py`",
        "### Updated src/new.py",
        "### Modified: `src/new.py`",
        "src/new.py (updated):",
        "### `src/new.py` – full content",
        "**Update `src/new.py`:**",
        "## `src/new.py` (complete)",
        "# src/new.py",
        "### 1) `src/new.py`",
        "**1. src/new.py**",
        "- **src/new.py**:",
        "<!-- src/new.py -->",
        "=== src/new.py ===",
        "--- src/new.py ---",
        "// src/new.py",
        "[src/new.py](src/new.py)",
        "### `src\\new.py`",
        "### Step 2 - Create `src/new.py`",
        "<src/new.py>",
        "**File: src/new.py (new)**",
        "src/new.py\u200b",
        "***src/new.py***",
        "__src/new.py__",
        "FILE: src/new.py",
        "### File: src/new.py (NEW FILE)",
        "> src/new.py",
        "### `src/new.py` (full code)",
    ],
)
def test_more_lines_that_name_the_file(line: str) -> None:
    assert paths(f"I do.\n\n{line}\n```python\nx = 1\n```\n") == ["src/new.py"]


@each_row(
    "info",
    [
        "python {file: src/new.py}",
        "python\tsrc/new.py",
        "python // src/new.py",
        "python # src/new.py",
        "python (src/new.py)",
        "python [src/new.py]",
        'python:"src/new.py"',
        "python file:src/new.py",
        "python {path=src/new.py}",
        "python:src\\new.py",
        "PYTHON:src/new.py",
        "file:src/new.py",
        "python:file=src/new.py",
    ],
)
def test_more_info_strings_that_name_the_file(info: str) -> None:
    assert paths(f"```{info}\nx = 1\n```\n") == ["src/new.py"]


@each_row(
    ("language", "comment", "path"),
    [
        ("dockerfile", "# Dockerfile", "Dockerfile"),
        ("makefile", "# Makefile", "Makefile"),
        ("text", "# requirements.txt", "requirements.txt"),
        ("gitignore", "# .gitignore", ".gitignore"),
        ("vue", "<!-- src/App.vue -->", "src/App.vue"),
        ("python", "# === src/new.py ===", "src/new.py"),
        ("scss", "/* main.scss */", "main.scss"),
        ("nginx", "# nginx.conf", "nginx.conf"),
        ("lua", "-- init.lua", "init.lua"),
        ("bash", "# scripts/run.sh", "scripts/run.sh"),
    ],
)
def test_more_first_comments_that_name_the_file(
    language: str, comment: str, path: str
) -> None:
    assert paths(f"I do.\n\n```{language}\n{comment}\nx = 1\n```\n") == [path]


def test_a_script_without_a_suffix_and_output_below_the_name_of_code() -> None:
    assert paths("`bin/deploy`\n```bash\necho hi\n```\n") == []
    assert paths("File: bin/deploy\n```bash\necho hi\n```\n") == ["bin/deploy"]
    assert (
        paths("`README`\n```\nHi\n```\n")
        == paths("File: README\n```\nHi\n```\n")
        == ["README"]
    )
    assert paths("`src/app.js`:\n```text\nTypeError: x\n```\n") == []


NAMED = [
    "info:{language}:{path}",
    "info:{language} filename={path}",
    'info:{language} title="{path}"',
    "{path}",
    "**{path}**",
    "### `{path}`",
    "File: {path}",
    "**Create** `{path}`:",
    "1.2 `{path}`",
]


@each_row("form", NAMED)
@each_row(
    ("language", "path"),
    [
        ("nix", "flake.nix"),
        ("elm", "Main.elm"),
        ("dockerfile", "Dockerfile.dev"),
        ("ruby", "config.ru"),
        ("ruby", "Podfile"),
        ("dockerfile", "Containerfile"),
        ("json", "schema.avsc"),
        ("text", "LICENSE"),
        ("gherkin", "login.feature"),
        ("unknown", "a.unknown"),
        ("python", "src/gro\u0308\u00dfe.py"),
        ("markdown", "docs/\u0939\u093f\u0928\u094d\u0926\u0940.md"),
        ("python", "{{cookiecutter.name}}/setup.py"),
    ],
)
def test_a_file_with_a_rarer_name_is_named_in_every_way(
    form: str, language: str, path: str
) -> None:
    named = form.format(language=language, path=path)
    opening = (
        f"```{named.removeprefix('info:')}"
        if named.startswith("info:")
        else f"{named}\n```{language}"
    )
    assert paths(f"I do.\n\n{opening}\nx = 1\n```\n") == [path]


@each_row(
    "opening",
    [
        "```js:express.js",
        "```js file=express.js",
        "`express.js`\n```js",
        "File: express.js\n```js",
    ],
)
def test_a_file_that_is_called_like_a_library_is_named_by_what_a_heading_is_not(
    opening: str,
) -> None:
    assert paths(f"I do.\n\n{opening}\nlet x;\n```\n") == ["express.js"]
    assert paths(
        "I do.\n\n"
        "```node.js\n"
        "let x;\n"
        "```\n\n"
        "**express.js**\n"
        "```js\n"
        "let x;\n"
        "```\n\n"
        f"{FILE}"
    ) == ["src/calc.py"]


@each_row(
    "note",
    [
        "updated with the new function",
        "changed to call the method only once",
        "new",
        "modify",
    ],
)
def test_a_note_on_what_is_new_in_a_whole_file(note: str) -> None:
    assert paths(f"I do.\n\n**src/new.py** ({note})\n```python\nx = 1\n```\n") == [
        "src/new.py"
    ]


@each_row(
    "line",
    [
        '<file path="src/new.py">',
        '<file path="src/new.py" language="python">',
        '<file name="src/new.py" />',
        "<file_path>src/new.py</file_path>",
        "<path>src/new.py</path>",
        '<write_file path="src/new.py">',
        '<artifact id="1" title="src/new.py">',
        "_src/new.py_",
        "[new.py](src/new.py)",
        "[`new.py`](./src/new.py)",
        '<document name="src/new.py">',
        "[src/new.py](file:///home/me/src/new.py)",
    ],
)
def test_a_tag_a_link_or_emphasis_that_names_the_file(line: str) -> None:
    assert paths(f"I do.\n\n{line}\n```python\nx = 1\n```\n") == ["src/new.py"]


def test_a_tag_is_as_certain_as_a_label() -> None:
    assert paths('<file path="VERSION">\n```\n1.0\n```\n</file>\n') == ["VERSION"]


def test_a_link_to_a_place_that_is_not_in_the_project_names_no_file() -> None:
    assert paths(
        f"[new.py](file:///home/me/src/new.py)\n```python\nx = 1\n```\n\n{FILE}"
    ) == ["src/calc.py"]


def test_a_name_with_spaces_in_an_info_string_is_read_as_a_whole() -> None:
    for info in (
        "src/my notes.py",
        "python:src/my notes.py",
        "python filename=src/my notes.py",
        'py file="src/my notes.py"',
    ):
        assert paths(f"```{info}\nx = 1\n```\n") == ["src/my notes.py"], info
