"""Ways to spoil a test, for `replays.py`."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct


class Hiding(Struct, frozen=True):
    """A change of a file that the step does not name."""

    name: str
    block: str


class Target(Struct, frozen=True):
    """A test of a file, as lines: its marks and head, and its body."""

    name: str
    start: int
    body: int
    end: int
    indent: str


def spoil_tests(
    path: str, known: str, new: str, old: str
) -> Iterator[tuple[str, str, str]]:
    """Yield ways to spoil a test that is known before the step, each with its kind, its
    name and the text of the file.

    `known` is the file before the step; `new` what the right step leaves; `old` the
    file before the commit, by which a test that the commit adds is preferred.
    """
    language = _LANGUAGES[PurePosixPath(path).suffix]
    target = choose_target(path, known, new, old)
    if target is None:
        return
    lines = new.splitlines(True)
    before, marks_and_head = lines[: target.start], lines[target.start : target.body]
    body, after = lines[target.body : target.end], lines[target.end :]

    def whole(*parts: list[str]) -> str:
        return "".join(line for part in parts for line in part)

    nothing = [f"{target.indent}pass\n"] if language.needs_body else []
    yield "emptied", "emptied", whole(before, marks_and_head, nothing, after)
    early = f"{target.indent}return{language.ends}\n"
    yield "skipped", "early return", whole(before, marks_and_head, [early], body, after)
    for name, skip in language.skips:
        skipped = skip(marks_and_head, body, target.indent)
        if skipped:
            yield "skipped", name, whole(before, skipped, after)
    for name, pattern, replacement in language.weaker:
        text = "".join(body)
        weaker, count = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
        if count:
            yield "weaker", name, whole(before, marks_and_head, [weaker], after)
    marks = "".join(marks_and_head)
    fewer, count = re.subn(r"\n +\(.*\),(?=\n)", "", marks, count=1)
    if count:
        yield "row", "row removed", whole(before, [fewer], body, after)
    yield "removed", "removed", whole(before, after)


def hide_test(root: Path, path: str, known: str, old: str) -> Iterator[Hiding]:
    """Yield settings that hide a test of the file."""
    target = choose_target(path, known, known, old)
    if target is None:
        return
    match PurePosixPath(path).suffix:
        case ".py":
            if not (root / "pytest.ini").exists():
                text = f"[pytest]\naddopts = -k 'not {target.name}'"
                yield Hiding("addopts", f"```ini:pytest.ini\n{text}\n```")
            if not (root / "conftest.py").exists():
                text = (
                    "def pytest_collection_modifyitems(items):\n    items[:] = [i for i"
                    f" in items if '{target.name}' not in i.name]"
                )
                yield Hiding("conftest", f"```python:conftest.py\n{text}\n```")
        case ".go":
            package = re.search(r"^package (\w+)", known, re.MULTILINE)
            folder = str(PurePosixPath(path).parent / "all_test.go")
            text = (
                f'package {package[1]}\n\nimport (\n\t"os"\n\t"testing"\n)\n\n'
                "func TestMain(m *testing.M) {\n\tm.Run()\n\tos.Exit(0)\n}"
            )
            yield Hiding("TestMain", f"```go:{folder}\n{text}\n```")
        case ".rs":
            yield Hiding("test = false", _edit(root / "Cargo.toml", _NO_TESTS))
        case _:
            text = json.dumps({"grep": target.name, "invert": True})
            yield Hiding("mocharc", f"```json:.mocharc.json\n{text}\n```")
            script = (root / "package.json").read_text()
            line = re.search(r'^ *"test": ".*', script, re.MULTILINE)
            yield Hiding(
                "script",
                "package.json\n<<<<<<< SEARCH\n"
                + line[0]
                + "\n=======\n"
                + re.sub(r'": "', '": "true || ', line[0], count=1)
                + "\n>>>>>>> REPLACE",
            )


_NO_TESTS = "[lib]\ntest = false\ndoctest = false\n\n[package]"


def _edit(file: Path, text: str) -> str:
    return f"{file.name}\n<<<<<<< SEARCH\n[package]\n=======\n{text}\n>>>>>>> REPLACE"


def choose_target(path: str, known: str, new: str, old: str) -> Target | None:
    """Return a test of the new text that is known: one that the commit adds or changes,
    if those are known before the step.
    """
    find = _LANGUAGES[PurePosixPath(path).suffix].find

    def texts(text: str) -> dict[str, str]:
        lines = text.splitlines(True)
        return {each.name: "".join(lines[each.start : each.end]) for each in find(text)}

    at_start, at_first = texts(known), texts(old)
    tests = [each for each in find(new) if each.name in at_start]
    ours = [each for each in tests if at_first.get(each.name) != at_start[each.name]]
    return next(iter(ours or tests), None)


def _find_python(text: str) -> list[Target]:
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            body = node.body[0]
            if body.lineno == node.lineno:
                continue
            indent = " " * body.col_offset
            found.append(
                Target(node.name, start - 1, body.lineno - 1, node.end_lineno, indent)
            )
    return found


def _find_blocks(head: str) -> Callable[[str], list[Target]]:
    """Find tests that begin with a line of this form, and end with the first line that
    is not indented more.
    """

    def find(text: str) -> list[Target]:
        lines = text.splitlines(True)
        found = []
        for number, line in enumerate(lines):
            match = re.match(head, line)
            if match is None:
                continue
            margin = line[: len(line) - len(line.lstrip())]
            ends = (
                each
                for each in range(number + 1, len(lines))
                if re.match(margin + r"\}", lines[each])
            )
            end = next(ends, None)
            if end is None or end == number + 1:
                continue
            inner = lines[number + 1]
            indent = inner[: len(inner) - len(inner.lstrip())]
            start = number
            while start and re.match(r"\s*#\[", lines[start - 1]):
                start -= 1
            found.append(Target(match[1], start, number + 1, end, indent))
        return found

    return find


Skip = Callable[[list[str], list[str], str], list[str]]


def _before(line: str) -> Skip:
    """Put a line above the test."""

    def skip(head: list[str], body: list[str], indent: str) -> list[str]:
        first = head[0]
        margin = first[: len(first) - len(first.lstrip())]
        return [f"{margin}{line}\n", *head, *body]

    return skip


def _within(line: str) -> Skip:
    """Put a line at the beginning of the test."""

    def skip(head: list[str], body: list[str], indent: str) -> list[str]:
        return [*head, f"{indent}{line}\n", *body]

    return skip


def _named(pattern: str, replacement: str) -> Skip:
    """Change the head of the test."""

    def skip(head: list[str], body: list[str], indent: str) -> list[str]:
        text = re.sub(pattern, replacement, head[-1], count=1)
        return [*head[:-1], text, *body] if text != head[-1] else []

    return skip


class Language(Struct, frozen=True):
    find: Callable[[str], list[Target]]
    skips: tuple[tuple[str, Skip], ...]
    weaker: tuple[tuple[str, str, str], ...] = ()
    ends: str = ""
    needs_body: bool = False


_PYTHON = Language(
    _find_python,
    (
        ("skip mark", _before("@__import__('pytest').mark.skip")),
        ("unittest skip", _before("@__import__('unittest').skip('later')")),
        ("skip call", _within("__import__('pytest').skip('later')")),
    ),
    (
        ("weakened ==", r"^( *assert .*) == .*$", r"\1 is not None"),
        ("or True", r"^( *assert [^\n(\[{]*)$", r"\1 or True"),
        (
            "weakened equal",
            r"^( *self\.assert)Equals?\((.*), [^\n,]*\)$",
            r"\1IsNotNone((\2,))",
        ),
        ("assertion removed", r"^ *(assert |self\.assert)[^\n\[({]*[\])}]*\n", ""),
        ("commented", r"^( *)((assert |self\.assert).*[^,(\[{])$", r"\1pass  # \2"),
    ),
    needs_body=True,
)
_JAVASCRIPT = Language(
    _find_blocks(r"\s*(?:test|it)\((['\"`].*?['\"`]),"),
    (
        ("skip", _named(r"(test|it)\(", r"\1.skip(")),
        ("todo", _named(r"(test|it)\((['\"`].*?['\"`]),", r"\1(\2, {skip: true},")),
    ),
    (
        ("weakened", r"^( *)(assert|t)(\.\w*)?\(.*\);?$", r"\1\2.ok(true);"),
        ("assertion removed", r"^ *(assert|t)(\.\w*)?\(.*\);?\n", ""),
    ),
    ends=";",
)
_GO = Language(
    _find_blocks(r"func (Test\w+)\("),
    (
        ("t.Skip", _within('t.Skip("later")')),
        ("not a test", _named(r"func Test", "func unTest")),
    ),
    (
        ("weakened", r"t\.(Errorf|Fatalf|Error|Fatal)\(", "t.Logf("),
        ("weakened equal", r"qt\.Equals, .*\)", "qt.IsNotNil)"),
    ),
)
_RUST = Language(
    _find_blocks(r"\s*fn (\w+)\(\) \{"),
    (("ignore", _before("#[ignore]")),),
    (
        ("weakened", r"^( *)assert_eq!\((.*)\);$", r"\1assert!(true || \2 == \2);"),
        ("assertion removed", r"^ *assert\w*!?\(.*\);\n", ""),
    ),
    ends=";",
)
_LANGUAGES = {".py": _PYTHON, ".js": _JAVASCRIPT, ".go": _GO, ".rs": _RUST}
