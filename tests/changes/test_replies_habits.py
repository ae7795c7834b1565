"""Habits that models have beside the forms: what is meant is done, and what is not
clear is refused with the reason.
"""

import re
from pathlib import Path

import pytest

from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.parse import parse_reply
from tests.changes.applying import PROJECT, Refused, apply, expected, tree, write
from tests.support.tables import each_row

Outcome = dict[str, str | None] | Refused
AREA = "class Shape:\n    def area(self):\n        x = 1\n        return x\n"
SHAPES = AREA + "\n    def name(self):\n        return 'shape'\n"
FILES = PROJECT | {
    "shapes.py": SHAPES,
    "t.rst": "Title\n=====\n\nWords.\n",
    "u.md": "Calc\n=======\n\nWords.\n",
}


def block(find: str, new: str) -> str:
    return f"<<<<<<< SEARCH\n{find}=======\n{new}>>>>>>> REPLACE\n"


GONE = {"shapes.py": SHAPES.replace("        x = 1\n", "")}
TWO = {"shapes.py": SHAPES.replace("x = 1", "x = 2")}
BOTH = {"shapes.py": SHAPES.replace("x = 1", "x = 2").replace("'shape'", "'s'")}
ONE, NAME = (
    block("        x = 1\n", "        x = 2\n"),
    block("        return 'shape'\n", "        return 's'\n"),
)

CASES: dict[str, tuple[str, Outcome]] = {
    "a divider twice": ("shapes.py\n" + block("        x = 1\n", "=======\n"), GONE),
    "a divider twice, a blank line between": (
        "shapes.py\n" + block("        x = 1\n", "\n=======\n"),
        GONE,
    ),
    "a divider twice, in a fence": (
        "```python:shapes.py\n" + block("        x = 1\n", "=======\n") + "```\n",
        GONE,
    ),
    "a divider twice, the first one is the file's": (
        "u.md\n" + block("Calc\n", "=======\n"),
        {"u.md": "\nWords.\n"},
    ),
    "a divider twice, then text": (
        "shapes.py\n" + block("        x = 1\n", "=======\n    y\n"),
        Refused("more than one"),
    ),
    "a divider twice, not there": (
        "shapes.py\n" + block("        z = 1\n", "=======\n"),
        Refused("not in the file"),
    ),
    "a path in a fence of its own": (
        f"```\nshapes.py\n```\n```python\n{ONE}```\n",
        TWO,
    ),
    "a path in a fence of its own, blocks without one": (
        f"```\nshapes.py\n```\n\n{ONE}",
        TWO,
    ),
    "a path in a fence of its own, with a language": (
        f"```text\nshapes.py\n```\n\n```\n{ONE}```\n",
        TWO,
    ),
    "a path in a fence of its own, of a new file": (
        "```\nsrc/n.py\n```\n\n```python\nx = 1\n```\n",
        {"src/n.py": "x = 1\n"},
    ),
    "a path in a fence of its own, then words": (
        f"```\nshapes.py\n```\n\nSo:\n\n```python\n{ONE}```\n",
        Refused("no file"),
    ),
    "dots between blocks": (f"shapes.py\n```python\n{ONE}...\n{NAME}```\n", BOTH),
    "dots in a comment between blocks": (
        f"```python:shapes.py\n{ONE}\n# ...\n\n{NAME}```\n",
        BOTH,
    ),
    "a remark between blocks": (
        f"```python:shapes.py\n{ONE}# ... existing code ...\n{NAME}```\n",
        BOTH,
    ),
    "dots around blocks": (f"```python:shapes.py\n...\n{ONE}…\n{NAME}```\n", BOTH),
    "code between blocks": (
        f"```python:shapes.py\n{ONE}x = 1\ny = 2\n{NAME}```\n",
        Refused("other lines"),
    ),
    "no indentation, a blank first line": (
        "shapes.py\n" + block("\nx = 1\nreturn x\n", "\nx = 2\nreturn x\n"),
        TWO,
    ),
    "no indentation, blank lines around, of which the new text has none": (
        "shapes.py\n" + block("\n\nx = 1\nreturn x\n\n", "x = 2\nreturn x\n"),
        TWO,
    ),
    "a blank line that is there": (
        "shapes.py\n" + block("\n    def name(self):\n", "    def name(self):\n"),
        {"shapes.py": SHAPES.replace("\n\n    def name", "\n    def name")},
    ),
    "blank lines and a text that is there twice": (
        "shapes.py\n" + block("\nreturn\n", "x\n"),
        Refused("not in the file"),
    ),
    "a list of actions that is broken": (
        (
            "```yaml\n"
            "- action: edit\n"
            "  file_path: README.md\n"
            "  find: adds\n"
            " replace: sums\n"
            "```\n"
        ),
        Refused("not YAML"),
    ),
    "an unknown action": (
        "```yaml\n- action: delete_file\n  file_path: README.md\n```\n",
        Refused("unknown action `delete_file`"),
    ),
    "an unknown action, short": (
        "```yaml\n- write_file:\n    file_path: R.md\n```\n",
        Refused("`write_file`"),
    ),
    "an unknown action among known ones": (
        "```yaml\n- create_file: n.txt\n- action: patch\n  file_path: README.md\n```\n",
        Refused("unknown action `patch`"),
    ),
    "an action that is in no list": (
        "```yaml\naction: edit\nfile_path: README.md\nfind: adds\nreplace: x\n```\n",
        Refused("is a list of actions"),
    ),
    "a dash without its space": (
        "```yaml\n-action: edit\n file_path: README.md\n```\n",
        Refused("not YAML"),
    ),
    "actions as JSON": (
        (
            "```json\n"
            '[{"action": "edit", "file_path": "README.md", "find": "adds", "replace":'
            ' "sums"}]\n'
            "```\n"
        ),
        {"README.md": "# Calc\n\nIt sums.\n"},
    ),
    "actions below ---": (
        "```yaml\n---\n- edit: README.md\n  find: adds\n  replace: sums\n```\n",
        {"README.md": "# Calc\n\nIt sums.\n"},
    ),
    "actions in a block of text": (
        (
            "```text\n"
            "- action: edit\n"
            "  file_path: README.md\n"
            "  find: adds\n"
            "  replace: sums\n"
            "```\n"
        ),
        {"README.md": "# Calc\n\nIt sums.\n"},
    ),
    "actions in no block": (
        "- action: edit\n  file_path: README.md\n  find: adds\n  replace: x\n",
        Refused("outside of a code block"),
    ),
    "another program's list": (
        "```yaml\n- run: ls\n- name: x\n- action: light.turn_on\n```\n",
        {},
    ),
    "a file and a folder of one name": (
        "```text:a\nx\n```\n```text:a/b\ny\n```\n",
        Refused("gives a and a/b"),
    ),
    "a folder and a file of one name": (
        "```text:a/b\nx\n```\n```text:a\ny\n```\n",
        Refused("both a file and a folder"),
    ),
    "a file and a folder of one name but for case": (
        "```text:a\nx\n```\n```text:A/b\ny\n```\n",
        Refused("both a file"),
    ),
    "a file and a folder of one name, deeper": (
        "```py:a.py\nx\n```\n```py:a.py/b/c.py\ny\n```\n",
        Refused("both a file"),
    ),
    "a file and a folder, an accent written in two ways": (
        "```text:gr\u00fcn\nx\n```\n```text:gru\u0308n/b\ny\n```\n",
        Refused("both a file"),
    ),
    "a file that is there as a folder": (
        "```text:README.md/b\ny\n```\n",
        Refused("README.md is a file, not a folder"),
    ),
    "a folder that is there as a file": (
        "```text:src\ny\n```\n",
        Refused("src is a folder"),
    ),
    "a mode, and a change of another file": (
        (
            "```diff\n"
            "diff --git a/README.md b/README.md\n"
            "old mode 100644\n"
            "new mode 100755\n"
            "diff --git a/config.toml b/config.toml\n"
            "--- a/config.toml\n"
            "+++ b/config.toml\n"
            "@@ -1 +1 @@\n"
            '-name = "calc"\n'
            '+name = "sum"\n'
            "```\n"
        ),
        {"config.toml": 'name = "sum"\n'},
    ),
    "a mode alone": (
        "diff --git a/README.md b/README.md\nold mode 100644\nnew mode 100755\n",
        {},
    ),
    "a mode of a file that is not there": (
        "diff --git a/n.sh b/n.sh\nold mode 100644\nnew mode 100755\n",
        Refused("no file n.sh"),
    ),
    "lines of dashes and pluses in a bare diff": (
        (
            "--- a/t.rst\n+++ b/t.rst\n@@ -1,4 +1,4 @@\n Title\n =====\n \n-Words.\n"
            "+-- Words.\n\n--- a/u.md\n+++ b/u.md\n@@ -1,4 +1,4 @@\n Calc\n =======\n"
            " \n-Words.\n+++ x\n"
        ),
        {"t.rst": "Title\n=====\n\n-- Words.\n", "u.md": "Calc\n=======\n\n++ x\n"},
    ),
}


@each_row(("reply", "outcome"), CASES.values(), ids=CASES.keys())
def test_habits(tmp_path: Path, reply: str, outcome: Outcome) -> None:
    write(tmp_path, FILES)
    if isinstance(outcome, Refused):
        with pytest.raises(ReplyRefused, match=outcome.why):
            apply(tmp_path, reply)
        assert tree(tmp_path) == FILES
    else:
        apply(tmp_path, reply)
        assert tree(tmp_path) == expected(outcome, FILES)


ELSEWHERE = [
    "/etc/x",
    "//etc/x",
    "/etc/x.py",
    "//etc/x.py",
    "///etc/x.py",
    "C:\\x",
    "C:/x",
    "c:\\x\\y.py",
    "\\\\host\\x",
    "\\\\host\\x.py",
    "//host/x",
    "file:///etc/x",
    "file:///x.py",
    "file:/etc/x",
    "file://host/x.py",
    "FILE:///x.py",
    "~/.x",
    "~root/x",
    "~/x.py",
    "$HOME/.x",
    "${HOME}/x.py",
    "%APPDATA%\\x",
    "../x.py",
]
FORMS = {
    "language:path": "```text:{}\nhello\n```\n",
    "path": "```{}\nhello\n```\n",
    "language path": "```text {}\nhello\n```\n",
    "file=path": "```text file={}\nhello\n```\n",
    'file="path"': '```text file="{}"\nhello\n```\n',
    "title": '```text title="{}"\nhello\n```\n',
    "File: path": "File: {}\n```\nhello\n```\n",
    "a heading": "### {}\n```\nhello\n```\n",
    "bold": "**{}**\n\n```\nhello\n```\n",
    "backticks": "`{}`\n```\nhello\n```\n",
    "a line": "{}\n```\nhello\n```\n",
    "a tag": '<file path="{}">\n```\nhello\n```\n',
    "a fence of its own": "```\n{}\n```\n```python\nhello\n```\n",
    "search/replace blocks": "{}\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n",
    "after SEARCH": "<<<<<<< SEARCH {}\n=======\nx\n>>>>>>> REPLACE\n",
    "a patch": "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n",
    "a diff": "```diff\n--- /dev/null\n+++ {}\n@@ -0,0 +1 @@\n+x\n```\n",
    "a diff of git": "```diff\n--- /dev/null\n+++ b/{}\n@@ -0,0 +1 @@\n+x\n```\n",
    "a bare diff": "--- {0}\n+++ {0}\n@@ -1 +1 @@\n-x\n+y\n",
    "an action": "```yaml\n- create_file: '{}'\n  content: x\n```\n",
}


@each_row("path", ELSEWHERE)
def test_a_path_out_of_the_project_is_refused_with_its_name_and_never_made_one_of_it(
    tmp_path: Path, path: str
) -> None:
    write(tmp_path, {"etc/x": "x\n", "x.py": "x\n"})
    before = tree(tmp_path)
    answers = dict.fromkeys(FORMS, "not refused")
    for form, reply in FORMS.items():
        try:
            apply(tmp_path, reply.format(path))
        except ReplyRefused as refused:
            answers[form] = str(refused)
        assert tree(tmp_path) == before, form
    assert {
        form: why
        for form, why in answers.items()
        if not re.search(r"absolute|leaves the project", why)
    } == {}


@each_row(
    "comment", ["# /etc/x.py", "//etc/x.js", "// /etc/x.js", "//etc/x", "# ~/x.py"]
)
def test_a_first_comment_that_leads_elsewhere_is_refused(
    tmp_path: Path, comment: str
) -> None:
    with pytest.raises(ReplyRefused, match="absolute"):
        apply(tmp_path, f"```\n{comment}\nhello\n```\n")
    assert tree(tmp_path) == {}


@each_row("line", ["### /users", "`/api/login`:", "**/users/{id}**"])
def test_an_address_of_a_server_is_no_path_to_refuse(tmp_path: Path, line: str) -> None:
    write(tmp_path, PROJECT)
    apply(tmp_path, f"```py:n.py\nx = 1\n```\n\n{line}\n\n```json\n{{}}\n```\n")
    assert tree(tmp_path) == expected({"n.py": "x = 1\n"})


CRLF = {
    "a block": "Here:\n\n```text:n.txt\na\r\nb\r\n```\nDone.\n",
    "a block after thoughts": (
        "<think>\n1\n2\n</think>\nHere:\n\n```text:n.txt\na\r\nb\r\n```\n"
    ),
    "a reply in a block": "````markdown\nHere:\n\n```text:n.txt\na\r\nb\r\n```\n````\n",
    "an empty search": "n.txt\n<<<<<<< SEARCH\n=======\na\r\nb\r\n>>>>>>> REPLACE\n",
    "a diff": "```diff\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1,2 @@\n+a\r\n+b\r\n```\n",
    "a patch": "*** Begin Patch\n*** Add File: n.txt\n+a\r\n+b\r\n*** End Patch\n",
    "an action": '```yaml\n- create_file: n.txt\n  content: "a\\r\\nb\\r\\n"\n```\n',
}


@each_row("reply", CRLF.values(), ids=CRLF.keys())
def test_a_new_file_with_crlf_keeps_it(tmp_path: Path, reply: str) -> None:
    apply(tmp_path, reply)
    assert tree(tmp_path) == {"n.txt": "a\r\nb\r\n"}


def test_line_ends_of_the_whole_reply_are_not_those_of_its_files(
    tmp_path: Path,
) -> None:
    apply(tmp_path, CRLF["a block"].replace("\r", "").replace("\n", "\r\n"))
    assert tree(tmp_path) == {"n.txt": "a\nb\n"}


def test_only_the_file_whose_lines_end_so_has_crlf(tmp_path: Path) -> None:
    write(tmp_path, {"old.txt": "a\nb\n"})
    apply(
        tmp_path,
        "```text:n.txt\na\r\n```\n\n```text:m.txt\na\nb\n```\n\n```text:old.txt\na\r\nc\r\n```\n",
    )
    assert tree(tmp_path) == {"n.txt": "a\r\n", "m.txt": "a\nb\n", "old.txt": "a\nc\n"}


def test_a_mode_is_told(tmp_path: Path) -> None:
    write(tmp_path, PROJECT)
    reply = "diff --git a/README.md b/README.md\nold mode 100644\nnew mode 100755\n"
    (note,) = apply(tmp_path, reply)
    assert note.startswith("README.md ")
    assert not parse_reply(reply).changes_files
