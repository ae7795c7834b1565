"""Search/replace blocks, diffs, patches and lists of actions: what each becomes, and
why one is refused.
"""

from pathlib import Path

import pytest

from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.parse import parse_reply
from tests.changes.applying import CALC, PROJECT, Refused, apply, expected, tree, write
from tests.support.tables import each_row

Outcome = dict[str, str | None] | Refused
SUM = CALC.replace("return a + b", "return sum((a, b))")
BOTH = SUM.replace("return a - b", "return sum((a, -b))")


def block(find: str, new: str, marks: int = 7) -> str:
    end = "" if not new else "\n"
    return (
        f"{'<' * marks} SEARCH\n"
        f"{find}\n"
        f"{'=' * marks}\n"
        f"{new}{end}{'>' * marks} REPLACE\n"
    )


ADD = block("    return a + b", "    return sum((a, b))")
SUB = block("    return a - b", "    return sum((a, -b))")
NAME = block('name = "calc"', 'name = "sum"')

BLOCKS: dict[str, tuple[str, Outcome]] = {
    "path before, no fence": (f"src/calc.py\n{ADD}", {"src/calc.py": SUM}),
    "path in backticks": (f"`src/calc.py`\n\n{ADD}", {"src/calc.py": SUM}),
    "path as a heading": (f"### src/calc.py\n\n{ADD}", {"src/calc.py": SUM}),
    "fence, path before": (f"src/calc.py\n```python\n{ADD}```", {"src/calc.py": SUM}),
    "fence, path bold before": (
        f"**src/calc.py**\n\n```python\n{ADD}```",
        {"src/calc.py": SUM},
    ),
    "fence, path inside": (f"```python\nsrc/calc.py\n{ADD}```", {"src/calc.py": SUM}),
    "fence, path in a comment inside": (
        f"```python\n# src/calc.py\n{ADD}```",
        {"src/calc.py": SUM},
    ),
    "fence, path in the info": (
        f"```python:src/calc.py\n{ADD}```",
        {"src/calc.py": SUM},
    ),
    "fence, path alone in the info": (
        f"```src/calc.py\n{ADD}```",
        {"src/calc.py": SUM},
    ),
    "fence diff": (f"src/calc.py\n```diff\n{ADD}```", {"src/calc.py": SUM}),
    "bare fence": (f"src/calc.py\n```\n{ADD}```", {"src/calc.py": SUM}),
    "path after the mark": (
        ADD.replace("SEARCH", "SEARCH src/calc.py"),
        {"src/calc.py": SUM},
    ),
    "five marks": (
        "src/calc.py\n" + block("    return a + b", "    return sum((a, b))", 5),
        {"src/calc.py": SUM},
    ),
    "nine marks": (
        "src/calc.py\n" + block("    return a + b", "    return sum((a, b))", 9),
        {"src/calc.py": SUM},
    ),
    "a shorter divider": (
        f"src/calc.py\n{ADD}".replace("=======", "====="),
        {"src/calc.py": SUM},
    ),
    "ORIGINAL and UPDATED": (
        f"src/calc.py\n{ADD}".replace("SEARCH", "ORIGINAL").replace(
            "REPLACE", "UPDATED"
        ),
        {"src/calc.py": SUM},
    ),
    "minus and plus marks": (
        f"src/calc.py\n{ADD}".replace("<<<<<<<", "-------").replace(
            ">>>>>>>", "+++++++"
        ),
        {"src/calc.py": SUM},
    ),
    "a line number": (
        f"src/calc.py\n{ADD}".replace("SEARCH\n", "SEARCH\n:start_line:2\n-------\n"),
        {"src/calc.py": SUM},
    ),
    "CRLF": (f"src/calc.py\n{ADD}".replace("\n", "\r\n"), {"src/calc.py": SUM}),
    "two in one fence": (
        f"src/calc.py\n```python\n{ADD}\n{SUB}```",
        {"src/calc.py": BOTH},
    ),
    "two without a fence": (f"src/calc.py\n{ADD}\n{SUB}", {"src/calc.py": BOTH}),
    "two fences": (
        f"src/calc.py\n```\n{ADD}```\n\nsrc/calc.py\n```\n{SUB}```",
        {"src/calc.py": BOTH},
    ),
    "two files in one fence": (
        f"```\nsrc/calc.py\n{ADD}\nconfig.toml\n{NAME}```",
        {"src/calc.py": SUM, "config.toml": 'name = "sum"\n'},
    ),
    "a fence that is not closed": (
        f"src/calc.py\n```python\n{ADD}",
        {"src/calc.py": SUM},
    ),
    "in a list": (
        "1. Change:\n\n   src/calc.py\n"
        + "".join(f"   {line}\n" for line in ADD.splitlines()),
        {"src/calc.py": SUM},
    ),
    "a new file": (
        "new.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n",
        {"new.py": "x = 1\n"},
    ),
    "a new file, blank search": (
        "new.py\n<<<<<<< SEARCH\n\n=======\nx = 1\n>>>>>>> REPLACE\n",
        {"new.py": "x = 1\n"},
    ),
    "an empty search of an old file": (
        "src/calc.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n",
        Refused("exists already"),
    ),
    "lines that go": (
        "src/calc.py\n" + block("def sub(a, b):\n    return a - b", ""),
        {"src/calc.py": "def add(a, b):\n    return a + b\n\n\n"},
    ),
    "fences within": (
        "README.md\n" + block("It adds.", "It adds.\n\n```sh\nadd 1 2\n```\n\nMore."),
        {"README.md": "# Calc\n\nIt adds.\n\n```sh\nadd 1 2\n```\n\nMore.\n"},
    ),
    "fences within, in a fence": (
        "README.md\n```md\n" + block("It adds.", "It adds.\n```\nadd 1 2\n```") + "```",
        {"README.md": "# Calc\n\nIt adds.\n```\nadd 1 2\n```\n"},
    ),
    "trailing white space": (
        "src/calc.py\n" + block("    return a + b  ", "    return 1"),
        {
            "src/calc.py": CALC.replace("return a + b", "return 1"),
        },
    ),
    "without its indentation": (
        "src/calc.py\n" + block("return a + b", "c = a + b\nreturn c"),
        {
            "src/calc.py": CALC.replace(
                "    return a + b", "    c = a + b\n    return c"
            ),
        },
    ),
    "done already": ("src/calc.py\n" + block("    return 0", "    return a + b"), {}),
    "not there": (
        "src/calc.py\n" + block("    return a * b", "    return 0"),
        Refused("(?s)block 1.*return a . b"),
    ),
    "part of a line": (
        "src/calc.py\n" + block("a + b", "a"),
        Refused("not in the file"),
    ),
    "there twice": (
        "src/calc.py\n" + block("(a, b):", "x") + block("", "x"),
        Refused("."),
    ),
    "one of two is not there": (
        f"src/calc.py\n{ADD}{block('    return 7', '    return 8')}",
        Refused("block 2"),
    ),
    "no path": (ADD, Refused("names no file")),
    "no such file": (f"src/none.py\n{ADD}", Refused("There is no file src/none.py")),
    "never closed": (
        f"src/calc.py\n{ADD}".replace(">>>>>>> REPLACE", ""),
        Refused("never closed"),
    ),
    "no divider": (
        f"src/calc.py\n{ADD}".replace("=======\n", ""),
        Refused("no line of"),
    ),
    "two dividers": (
        "README.md\n" + block("Calc\n=======", "x"),
        Refused("more than one line"),
    ),
    "a divider among nine": (
        "README.md\n" + block("# Calc", "Calc\n=======", 9),
        {"README.md": "Calc\n=======\n\nIt adds.\n"},
    ),
    "code beside the blocks": (
        f"```python:src/calc.py\nx = 1\ny = 2\n{ADD}```",
        Refused("other lines beside"),
    ),
    "a remark in the new text": (
        "src/calc.py\n" + block("    return a + b", "    # ... existing code ..."),
        Refused("left out"),
    ),
    "what does not parse": (
        "src/calc.py\n" + block("    return a + b", "    return ("),
        Refused("would not be valid"),
    ),
    "outside": (f"../calc.py\n{ADD}", Refused("leaves the project")),
    "a text about blocks": (
        f"````markdown:docs/edits.md\n# Edits\n\nLike this:\n\n{ADD}````",
        {"docs/edits.md": f"# Edits\n\nLike this:\n\n{ADD}"},
    ),
}

HUNK = "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a + b\n+    return sum((a, b))\n"
BODY = HUNK.partition("@@\n")[2]
NAMES = "--- a/src/calc.py\n+++ b/src/calc.py\n"
GIT = "diff --git a/src/calc.py b/src/calc.py\nindex 83db48f..bf269f4 100644\n"
OLD_README = "--- a/README.md\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-# Calc\n-\n-It adds.\n"

DIFFS: dict[str, tuple[str, Outcome]] = {
    "in a fence": (f"```diff\n{NAMES}{HUNK}```", {"src/calc.py": SUM}),
    "of git": (f"```diff\n{GIT}{NAMES}{HUNK}```", {"src/calc.py": SUM}),
    "patch": (f"```patch\n{NAMES}{HUNK}```", {"src/calc.py": SUM}),
    "a fence without a language": (f"```\n{NAMES}{HUNK}```", {"src/calc.py": SUM}),
    "no fence": (
        f"Here it is.\n\n{GIT}{NAMES}{HUNK}\nThat is all.\n",
        {"src/calc.py": SUM},
    ),
    "no fence, and a list after it": (
        f"{NAMES}{HUNK}\n- it adds\n- it is tested\n",
        {"src/calc.py": SUM},
    ),
    "no prefixes": (
        f"```diff\n{NAMES.replace('a/src', 'src').replace('b/src', 'src')}{HUNK}```",
        {"src/calc.py": SUM},
    ),
    "one prefix": (
        f"```diff\n{NAMES.replace('b/src', 'src')}{HUNK}```",
        {"src/calc.py": SUM},
    ),
    "times": (
        (
            "```diff\n"
            "--- a/src/calc.py\t2026-01-01 10:00:00\n"
            "+++ b/src/calc.py\t2026-01-02 10:00:00\n"
            f"{HUNK}```"
        ),
        {"src/calc.py": SUM},
    ),
    "an .orig": (
        f"```diff\n--- src/calc.py.orig\n+++ src/calc.py\n{HUNK}```",
        {"src/calc.py": SUM},
    ),
    "wrong numbers": (
        f"```diff\n{NAMES}{HUNK.replace('-1,2 +1,2', '-70,9 +71,4')}```",
        {"src/calc.py": SUM},
    ),
    "no numbers": (
        f"```diff\n{NAMES}{HUNK.replace(' -1,2 +1,2 @@', '')}```",
        {"src/calc.py": SUM},
    ),
    "dots for numbers": (
        f"```diff\n{NAMES}{HUNK.replace('-1,2 +1,2', '...')}```",
        {"src/calc.py": SUM},
    ),
    "no head at all": (f"```diff\n{NAMES}{BODY}```", {"src/calc.py": SUM}),
    "a heading": (
        f"```diff\n{NAMES}{HUNK.replace('+1,2 @@', '+1,2 @@ module calc')}```",
        {"src/calc.py": SUM},
    ),
    "a path in the info": (f"```diff:src/calc.py\n{HUNK}```", {"src/calc.py": SUM}),
    "a path before": (f"**src/calc.py**\n\n```diff\n{HUNK}```", {"src/calc.py": SUM}),
    "a lost space": (
        f"```diff\n{NAMES}{HUNK.replace(' def', 'def')}```",
        {"src/calc.py": SUM},
    ),
    "lost spaces before indentation": (
        (
            "```diff\n"
            f"{NAMES}@@ @@\n"
            "def sub(a, b):\n"
            "-    return a - b\n"
            "+    return b\n"
            "```"
        ),
        {"src/calc.py": CALC.replace("return a - b", "return b")},
    ),
    "a blank line without its space": (
        (
            "```diff\n"
            f"{NAMES}@@\n"
            "-    return a + b\n"
            "+    return sum((a, b))\n\n\n"
            " def sub(a, b):\n"
            "```"
        ),
        {"src/calc.py": SUM},
    ),
    "two hunks": (
        (
            "```diff\n"
            f"{NAMES}{HUNK}@@ -5,2 +5,2 @@\n"
            " def sub(a, b):\n"
            "-    return a - b\n"
            "+    return sum((a, -b))\n"
            "```"
        ),
        {"src/calc.py": BOTH},
    ),
    "two files": (
        (
            "```diff\n"
            f"{NAMES}{HUNK}--- a/config.toml\n"
            "+++ b/config.toml\n"
            "@@ -1 +1 @@\n"
            '-name = "calc"\n'
            '+name = "sum"\n'
            "```"
        ),
        {"src/calc.py": SUM, "config.toml": 'name = "sum"\n'},
    ),
    "a new file": (
        "```diff\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n```",
        {"new.py": "x = 1\ny = 2\n"},
    ),
    "a new file of git": (
        (
            "```diff\n"
            "diff --git a/n.py b/n.py\n"
            "new file mode 100644\n"
            "--- /dev/null\n"
            "+++ b/n.py\n"
            "@@ @@\n"
            "+x\n"
            "```"
        ),
        {"n.py": "x\n"},
    ),
    "a new file without a final newline": (
        (
            "```diff\n"
            "--- /dev/null\n"
            "+++ b/n.txt\n"
            "@@ -0,0 +1 @@\n"
            "+x\n"
            "\\ No newline at end of file\n"
            "```"
        ),
        {"n.txt": "x"},
    ),
    "a deletion": (f"```diff\n{OLD_README}```", {"README.md": None}),
    "a deletion of git": (
        (
            "```diff\n"
            "diff --git a/README.md b/README.md\n"
            "deleted file mode 100644\n"
            "index 1..0\n"
            "```"
        ),
        {"README.md": None},
    ),
    "a deletion of something else": (
        f"```diff\n{OLD_README.replace('adds', 'sums')}```",
        Refused("not what is in it"),
    ),
    "a renaming": (
        (
            "```diff\n"
            "diff --git a/README.md b/docs/README.md\n"
            "rename from README.md\n"
            "rename to docs/README.md\n"
            "```"
        ),
        {"README.md": None, "docs/README.md": PROJECT["README.md"]},
    ),
    "a renaming with a change": (
        (
            "```diff\n"
            "diff --git a/README.md b/R\n"
            "rename from README.md\n"
            "rename to R\n"
            "@@ @@\n"
            "-It adds.\n"
            "+It sums.\n"
            "```"
        ),
        {"README.md": None, "R": "# Calc\n\nIt sums.\n"},
    ),
    "a renaming onto a file": (
        (
            "```diff\n"
            "diff --git a/README.md b/config.toml\n"
            "rename from README.md\n"
            "rename to config.toml\n"
            "```"
        ),
        Refused("exists already"),
    ),
    "two names": (
        "```diff\n--- a/README.md\n+++ b/R.md\n@@ @@\n-It adds.\n+It sums.\n```",
        Refused("two files"),
    ),
    "a binary": (
        "```diff\ndiff --git a/x.png b/x.png\nGIT binary patch\nliteral 3\n```",
        Refused("binary"),
    ),
    "removed SQL comments": (
        (
            "```diff\n--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n # Calc\n"
            " \n-It adds.\n+-- It sums.\n```"
        ),
        {"README.md": "# Calc\n\n-- It sums.\n"},
    ),
    "added lines alone": (
        f"```diff\n{NAMES}@@ -3,0 +4,1 @@\n+x = 1\n```",
        Refused("unclear where they go"),
    ),
    "lines that are not there": (
        f"```diff\n{NAMES}{HUNK.replace('a + b', 'b + a')}```",
        Refused("not in the file"),
    ),
    "done already": (
        (
            f"```diff\n{NAMES}"
            f"{HUNK.replace('a + b', '7').replace('sum((a, b))', 'a + b')}```"
        ),
        {},
    ),
    "a signature of a mail": (
        f"```diff\n{NAMES}{HUNK}-- \n2.43.0\n```",
        {"src/calc.py": SUM},
    ),
    "its end is missing": (f"```diff\n{NAMES}{HUNK}", Refused("never closed")),
    "a diff as a file": (
        f"```diff:fix.patch\n{NAMES}{HUNK}```",
        {"fix.patch": NAMES + HUNK},
    ),
    "a new file that is there": (
        "```diff\n--- /dev/null\n+++ b/README.md\n@@ -0,0 +1 @@\n+x\n```",
        Refused("exists already"),
    ),
    "outside": (
        "```diff\n--- /dev/null\n+++ b/../n.py\n@@ -0,0 +1 @@\n+x\n```",
        Refused("leaves the project"),
    ),
}


def patch(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch\n"


UPDATE = (
    "*** Update File: src/calc.py\n"
    "@@\n"
    " def add(a, b):\n"
    "-    return a + b\n"
    "+    return sum((a, b))\n"
)
TWINS = (
    "class A:\n"
    "    def f(self):\n"
    "        return 1\n\n\n"
    "class B:\n"
    "    def f(self):\n"
    "        return 1\n"
)

PATCHES: dict[str, tuple[str, Outcome]] = {
    "no fence": (f"Done.\n\n{patch(UPDATE)}", {"src/calc.py": SUM}),
    "in a fence": (f"```\n{patch(UPDATE)}```", {"src/calc.py": SUM}),
    "in a fence with a language": (
        f"```diff\n{patch(UPDATE)}```",
        {"src/calc.py": SUM},
    ),
    "as a command": (
        f"```bash\napply_patch <<'EOF'\n{patch(UPDATE)}EOF\n```",
        {"src/calc.py": SUM},
    ),
    "no marks at its ends": (f"```\n{UPDATE}```", {"src/calc.py": SUM}),
    "no @@": (patch(UPDATE.replace("@@\n", "")), {"src/calc.py": SUM}),
    "@@ with a line": (
        patch(UPDATE.replace("@@\n def add(a, b):\n", "@@ def add(a, b):\n")),
        {"src/calc.py": SUM},
    ),
    "@@ with numbers": (
        patch(UPDATE.replace("@@\n", "@@ -1,2 +1,2 @@\n")),
        {"src/calc.py": SUM},
    ),
    "the end of the file": (
        patch(
            "*** Update File: src/calc.py\n"
            "@@\n"
            "-    return a - b\n"
            "+    return b\n"
            "*** End of File\n"
        ),
        {"src/calc.py": CALC.replace("a - b", "b")},
    ),
    "a new file": (
        patch("*** Add File: docs/n.md\n+# N\n+\n+x\n"),
        {"docs/n.md": "# N\n\nx\n"},
    ),
    "a new file with fences": (
        patch("*** Add File: n.md\n+```sh\n+ls\n+```\n"),
        {"n.md": "```sh\nls\n```\n"},
    ),
    "a deletion": (patch("*** Delete File: README.md\n"), {"README.md": None}),
    "a move": (
        patch(
            "*** Update File: README.md\n"
            "*** Move to: docs/R.md\n"
            "@@\n"
            "-It adds.\n"
            "+It sums.\n"
        ),
        {"README.md": None, "docs/R.md": "# Calc\n\nIt sums.\n"},
    ),
    "several": (
        patch(UPDATE + "*** Add File: n.py\n+x = 1\n*** Delete File: README.md\n"),
        {"src/calc.py": SUM, "n.py": "x = 1\n", "README.md": None},
    ),
    "a class named by @@": (
        f"```py:t.py\n{TWINS}```\n"
        + patch(
            "*** Update File: t.py\n@@ class B:\n-        return 1\n+        return 2\n"
        ),
        {
            "t.py": (
                TWINS[: TWINS.index("class B")]
                + "class B:\n    def f(self):\n        return 2\n"
            )
        },
    ),
    "two places": (
        f"```py:t.py\n{TWINS}```\n"
        + patch("*** Update File: t.py\n@@\n-        return 1\n+        return 2\n"),
        Refused("more than once, beginning in lines 3, 8"),
    ),
    "cut": (f"*** Begin Patch\n{UPDATE}", Refused("never closed")),
    "a new file without +": (
        patch("*** Add File: n.py\nx = 1\n"),
        Refused("begins with"),
    ),
    "added lines alone": (
        patch("*** Update File: src/calc.py\n+x = 1\n"),
        Refused("unclear where"),
    ),
}

ACTIONS: dict[str, tuple[str, Outcome]] = {
    "create": (
        "```yaml\n- action: create_file\n  file_path: n.txt\n  content: hi\n```",
        {"n.txt": "hi"},
    ),
    "edit": (
        (
            "```yaml\n"
            "- action: edit\n"
            "  file_path: README.md\n"
            "  find: adds\n"
            "  replace: sums\n"
            "```"
        ),
        {"README.md": "# Calc\n\nIt sums.\n"},
    ),
    "both, short": (
        (
            "```yaml\n"
            "- create_file: n.txt\n"
            "  content: |\n"
            "    hi\n"
            "- edit: README.md\n"
            "  find: adds\n"
            "  replace: sums\n"
            "```"
        ),
        {"n.txt": "hi\n", "README.md": "# Calc\n\nIt sums.\n"},
    ),
    "yml, with a key above": (
        "```yml\nactions:\n- action: create_file\n  file_path: n.txt\n```",
        {"n.txt": ""},
    ),
    "a command": (
        "```yaml\n- action: execute\n  command: pytest\n```",
        Refused("only changes files"),
    ),
    "a question": (
        "```yaml\n- action: chat_with_user\n  prompt: Which?\n```",
        Refused("only changes files"),
    ),
    "a wrong key": (
        "```yaml\n- action: edit\n  file: a\n```",
        Refused("`file` is unknown"),
    ),
    "not found": (
        (
            "```yaml\n"
            "- action: edit\n"
            "  file_path: README.md\n"
            "  find: nowhere\n"
            "  replace: x\n"
            "```"
        ),
        Refused("not in the file"),
    ),
    "created and there": (
        "```yaml\n- action: create_file\n  file_path: README.md\n  content: x\n```",
        Refused("exists"),
    ),
    "a file of actions": (
        "```yaml:plan.yaml\n- execute: ls\n```",
        {"plan.yaml": "- execute: ls\n"},
    ),
}

MIXED: dict[str, tuple[str, Outcome]] = {
    "a file, a block, a deletion": (
        (
            "```py:n.py\n"
            "x = 1\n"
            "```\n\n"
            "src/calc.py\n"
            f"{ADD}\n"
            f"{patch('*** Delete File: README.md' + chr(10))}"
        ),
        {"n.py": "x = 1\n", "src/calc.py": SUM, "README.md": None},
    ),
    "a block and a diff of one file": (
        f"src/calc.py\n{SUB}\n```diff\n{NAMES}{HUNK}```",
        {"src/calc.py": BOTH},
    ),
    "a file, and a block of it": (
        "```py:n.py\nx = 1\n```\n\nn.py\n" + block("x = 1", "x = 3"),
        {"n.py": "x = 3\n"},
    ),
    "one of three is wrong": (
        (
            "```py:n.py\n"
            "x = 1\n"
            "```\n\n"
            "src/calc.py\n"
            f"{ADD}\n"
            "```diff\n"
            f"{OLD_README.replace('adds', 'x')}```"
        ),
        Refused("not what is in it"),
    ),
    "actions and a file": (
        "```yaml\n- create_file: a.txt\n```\n```py:n.py\nx\n```",
        {"a.txt": "", "n.py": "x\n"},
    ),
    "the same block twice": (f"src/calc.py\n{ADD}\n{ADD}", {"src/calc.py": SUM}),
}


@each_row(
    ("reply", "outcome"),
    [
        pytest.param(*case, id=f"{form}: {name}")
        for form, cases in {
            "blocks": BLOCKS,
            "diffs": DIFFS,
            "patches": PATCHES,
            "actions": ACTIONS,
            "mixed": MIXED,
        }.items()
        for name, case in cases.items()
    ],
)
def test_edits(tmp_path: Path, reply: str, outcome: Outcome) -> None:
    write(tmp_path, PROJECT)
    if isinstance(outcome, Refused):
        with pytest.raises(ReplyRefused, match=outcome.why):
            apply(tmp_path, reply)
        assert tree(tmp_path) == PROJECT
    else:
        apply(tmp_path, reply)
        assert tree(tmp_path) == expected(outcome)


def test_what_was_done_already_is_told(tmp_path: Path) -> None:
    write(tmp_path, PROJECT)
    reply = f"src/calc.py\n{ADD}\n{patch('*** Delete File: README.md' + chr(10))}"
    assert apply(tmp_path, reply) == ()
    block, deletion = apply(tmp_path, reply)
    assert block.startswith("src/calc.py, ")
    assert deletion.startswith("README.md ")


def test_the_words_around_the_edits_are_the_explanation(tmp_path: Path) -> None:
    text = (
        "First.\n\n"
        "src/calc.py\n"
        f"{ADD}\n"
        "**n.py**\n\n"
        "```python\n"
        "x = 1\n"
        "```\n\n"
        "Run:\n\n"
        "```bash\n"
        "pytest\n"
        "```\n"
    )
    assert parse_reply(text).explanation == "First.\n\nRun:\n\n```bash\npytest\n```"
