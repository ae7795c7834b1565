"""Replies as many models write them, untidy ones above all: the right change, or a
refusal that helps, or nothing.
"""

from pathlib import Path

import pytest

from cdd_agent.changes.model import ReplyRefused
from tests.changes.applying import CALC, PROJECT, Refused, apply, expected, tree, write
from tests.changes.test_replies_edits import ADD, HUNK, NAMES, SUM, block
from tests.support.tables import each_row

Outcome = dict[str, str | None] | Refused
Case = tuple[str, Outcome] | tuple[str, Outcome, dict[str, str]]
CHANGED = CALC.replace("return a + b", "return b + a")
FILE = f"```python:src/calc.py\n{CHANGED}```\n"
DRAFT = "```python:src/calc.py\nx = 1\n```\n"
IS_CHANGED: Outcome = {"src/calc.py": CHANGED}
IS_SUM: Outcome = {"src/calc.py": SUM}
TAGGED = "a\n</think>\nb\n"
LONG = "".join(f"line {number}\n" for number in range(1, 31))

THOUGHTS: dict[str, Case] = {
    "a draft of a file": (
        f"<think>\nMaybe:\n{DRAFT}No.\n</think>\n\n{FILE}",
        IS_CHANGED,
    ),
    "a draft of a block": (
        "<think>\nconfig.toml\n"
        + block('name = "calc"', 'name = "x"')
        + f"But no.\n</think>\nsrc/calc.py\n{ADD}",
        IS_SUM,
    ),
    "the first tag is not sent": (f"A draft:\n{DRAFT}\n</think>\n\n{FILE}", IS_CHANGED),
    "another tag": (f"<thinking>\n{DRAFT}</thinking>\n{FILE}", IS_CHANGED),
    "a tag in a namespace": (f"<seed:think>\n{DRAFT}</seed:think>\n{FILE}", IS_CHANGED),
    "marks of Magistral": (f"[THINK]\n{DRAFT}[/THINK]\n{FILE}", IS_CHANGED),
    "marks of Kimi": (f"◁think▷\n{DRAFT}◁/think▷\n{FILE}", IS_CHANGED),
    "the last mark of Kimi alone": (f"{DRAFT}◁/think▷\n{FILE}", IS_CHANGED),
    "marks of Gemma": (f"<|channel>thought\n{DRAFT}<channel|>\n{FILE}", IS_CHANGED),
    "marks of Command A": (
        (
            f"<|START_THINKING|>\n{DRAFT}<|END_THINKING|><|START_RESPONSE|>\n{FILE}"
            "<|END_RESPONSE|>"
        ),
        IS_CHANGED,
    ),
    "twice": (f"<think></think>\n<thinking>{DRAFT}</thinking>{FILE}", IS_CHANGED),
    "a fence left open": (
        f"<think>\nI write\n```python\nx\n</think>\n{FILE}",
        IS_CHANGED,
    ),
    "never ended": (
        f"<think>\nFirst I write\n{FILE}then",
        Refused("within its thoughts"),
    ),
    "in a file": (
        "```text:p.txt\nx\n<think>\na\n</think>\ny\n```\n",
        {"p.txt": "x\n<think>\na\n</think>\ny\n"},
    ),
    "the last tag in a file": (
        "```text:p.txt\nx\n</think>\ny\n```\n",
        {"p.txt": "x\n</think>\ny\n"},
    ),
    "the last tag in a diff": (
        (
            f"{FILE}\n```diff\n--- a/t.html\n+++ b/t.html\n@@ -1,3 +1,3 @@\n"
            " a\n </think>\n-b\n+c\n```\n"
        ),
        {"src/calc.py": CHANGED, "t.html": "a\n</think>\nc\n"},
        {"t.html": TAGGED},
    ),
    "the last tag in a diff in prose": (
        f"{FILE}\n--- a/t.html\n+++ b/t.html\n@@ -1,3 +1,3 @@\n a\n </think>\n-b\n+c\n",
        {"src/calc.py": CHANGED, "t.html": "a\n</think>\nc\n"},
        {"t.html": TAGGED},
    ),
    "the last tag in a patch": (
        (
            f"{FILE}\n*** Begin Patch\n*** Update File: t.html\n@@\n a\n </think>\n"
            "-b\n+c\n*** End Patch\n"
        ),
        {"src/calc.py": CHANGED, "t.html": "a\n</think>\nc\n"},
        {"t.html": TAGGED},
    ),
    "the last tag in a block": (
        f"{FILE}\nt.html\n" + block(TAGGED.strip(), "a\n</think>\nc"),
        {"src/calc.py": CHANGED, "t.html": "a\n</think>\nc\n"},
        {"t.html": TAGGED},
    ),
    "the last tag in a call": (
        (
            f"{FILE}\n<write_to_file>\n<path>p.txt</path>\n<content>\n{TAGGED}"
            "</content>\n</write_to_file>\n"
        ),
        {"src/calc.py": CHANGED, "p.txt": TAGGED},
    ),
    "the last tag in an example": (
        f"{FILE}\nThe server prints:\n\n```html\n{TAGGED}```\n",
        IS_CHANGED,
    ),
    "a block left open": (
        f"Perhaps\nsrc/calc.py\n<<<<<<< SEARCH\nx\n</think>\n{FILE}",
        IS_CHANGED,
    ),
    "a call left open": (
        f"Perhaps <write_to_file>\n<path>p.txt</path>\n</think>\n{FILE}",
        IS_CHANGED,
    ),
    "an answer in tags": (f"<answer>\n{FILE}</answer>", IS_CHANGED),
    "a byte order mark": (f"\ufeff{FILE}", IS_CHANGED),
    "a null character": ("```text:a.txt\na\0b\n```\n", Refused("null character")),
}

FENCES: dict[str, Case] = {
    "wrapped after a word": (
        (
            "Sure!\n\n"
            "```markdown\n"
            "**a.py**\n"
            "```python\n"
            "x = 1\n"
            "```\n\n"
            "**b.py**\n"
            "```python\n"
            "y = 2\n"
            "```\n"
            "```\n"
        ),
        Refused("unclear where"),
    ),
    "commands that never end": (
        (
            "Run\n"
            "```bash\n"
            "pytest\n\n"
            "**a.py**\n"
            "```python\n"
            "x = 1\n"
            "```\n\n"
            "**b.py**\n"
            "```python\n"
            "y = 2\n"
            "```\n"
        ),
        Refused("unclear where the code block in line 2"),
    ),
    "a file that never ends": (
        "```python:a.py\nx = 1\n\n```python:b.py\ny = 2\n```\n",
        Refused("unclear where"),
    ),
    "less indented than its fence": (
        "1. Do:\n   ```python:a.py\ndef f():\n    return 1\n   ```\n2. And\n",
        {"a.py": "def f():\n    return 1\n"},
    ),
    "less indented than its fence, which is in no list": (
        "Do:\n\n  ```python:a.py\ndef f():\n    return 1\n  ```\n\nDone.\n",
        {"a.py": "def f():\n    return 1\n"},
    ),
    "less indented than its fence, in a list of lists": (
        (
            "- Do:\n  - this\n\n    ```python:a.py\ndef f():\n    return 1\n    ```\n\n"
            "  - `b.py`\n    ~~~\n    x = 1\n    ~~~\n"
        ),
        {"a.py": "def f():\n    return 1\n", "b.py": "x = 1\n"},
    ),
    "an example with a fence, at the end": (
        f"{FILE}\nIn a README:\n\n```markdown\n## Use\n\n```bash\ncalc\n```\n```\n",
        IS_CHANGED,
    ),
    "an example with a fence, then a file": (
        f"In a README:\n\n```markdown\n## Use\n\n```bash\ncalc\n```\n```\n\n{FILE}",
        Refused("unclear where"),
    ),
    "a Makefile in a list": (
        "1. Do:\n\n   ```make:Makefile\n   all:\n   \techo\n   ```\n",
        {"Makefile": "all:\n\techo\n"},
    ),
    "the file has a byte order mark": (
        "```text:w.txt\n\ufeffone\nthree\n```\n",
        {"w.txt": "\ufeffone\nthree\n"},
        {"w.txt": "\ufeffone\ntwo\n"},
    ),
    "numbered lines": (
        "```text:w.txt\n1 | one\n2 | two\n3 | four\n```\n",
        Refused("numbers of its lines"),
        {"w.txt": "one\ntwo\nx\n"},
    ),
    "numbered by cat": (
        "```md:README.md\n     1\t# Calc\n     2\t\n     3\tIt sums.\n```\n",
        Refused("numbers of its lines"),
    ),
    "a table of numbers": (
        "```text:w.tsv\n1\tc\n2\tb\n3\td\n```\n",
        {"w.tsv": "1\tc\n2\tb\n3\td\n"},
        {"w.tsv": "1\ta\n2\tb\n3\td\n"},
    ),
    "in details": (
        f"<details><summary>calc</summary>\n\n{FILE}</details>",
        IS_CHANGED,
    ),
    "unusual characters": (
        "```text:a.txt\na\u2028b\x0cc\x85d\n```\n",
        {"a.txt": "a\u2028b\x0cc\x85d\n"},
    ),
}

COUNTED = (
    "--- a/b.txt\n"
    "+++ b/b.txt\n"
    "@@ -3,3 +3,3 @@\n"
    " line 3\n"
    "-line 4\n"
    "+LINE 4\n"
    " line 5\n"
    "-line 6\n"
    "+LINE 6\n"
    " line 7\n"
)
IN_CAPITALS: Outcome = {
    "b.txt": LONG.replace("line 4\n", "LINE 4\n").replace("line 6\n", "LINE 6\n")
}
QUOTED = '# a\n"""\n```\nx\n```\n"""\nz = 1\n'
OLD_SQL = {"q.sql": "select 1;\n-- old\nselect 2;\n"}
GIT = "diff --git a/x.png b/x.png\nnew file mode 100644\nindex 000..111\n"

DIFFS: dict[str, Case] = {
    "in prose, counts too small": (
        f"Here:\n\n{COUNTED}\nDone.\n",
        IN_CAPITALS,
        {"b.txt": LONG},
    ),
    "in prose, counts too small, then a list": (
        f"{COUNTED}\n- it adds\n\n---\n\n+ more\n",
        IN_CAPITALS,
        {"b.txt": LONG},
    ),
    "in prose, counts too small by added lines": (
        (
            "--- a/b.txt\n"
            "+++ b/b.txt\n"
            "@@ -3,2 +3,3 @@\n"
            " line 3\n"
            " line 4\n"
            "+a\n"
            "+b\n"
            "+c\n\n"
            "Done."
        ),
        {"b.txt": LONG.replace("line 4\n", "line 4\na\nb\nc\n")},
        {"b.txt": LONG},
    ),
    "in prose, counts too small before a blank line": (
        "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-x\n+y\n\n z\n-v\n+w\n\nDone.",
        {"b.txt": "y\n\nz\nw\n"},
        {"b.txt": "x\n\nz\nv\n"},
    ),
    "in prose, two hunks": (
        f"{COUNTED}@@ -10,1 +10,1 @@\n line 10\n-line 11\n+LINE 11\n",
        {"b.txt": str(IN_CAPITALS["b.txt"]).replace("line 11\n", "LINE 11\n")},
        {"b.txt": LONG},
    ),
    "fences of the file": (
        (
            '```diff\n--- a/d.py\n+++ b/d.py\n@@ -1,7 +1,7 @@\n-# a\n+# A\n """\n ```\n'
            ' x\n ```\n """\n-z = 1\n+z = 2\n```'
        ),
        {"d.py": QUOTED.replace("# a", "# A").replace("z = 1", "z = 2")},
        {"d.py": QUOTED},
    ),
    "fences of the file, without their space": (
        (
            "```diff\n--- a/d.py\n+++ b/d.py\n@@ -1,7 +1,7 @@\n-# a\n+# A\n"
            ' """\n```\n+x\n```\n """\n-z = 1\n+z = 2\n```\n'
        ),
        Refused("unclear where"),
        {"d.py": QUOTED},
    ),
    "fences of the file, then another file": (
        (
            "```diff\n--- a/d.md\n+++ b/d.md\n@@ @@\n-# a\n+# A\n ```\n"
            " ```\n```\n\n```python:n.py\nx = 1\n```\n"
        ),
        {"d.md": "# A\n```\n```\n", "n.py": "x = 1\n"},
        {"d.md": "# a\n```\n```\n"},
    ),
    "lines of dashes": (
        (
            "```diff\n"
            "--- a/q.sql\n"
            "+++ b/q.sql\n"
            "@@ -1,3 +1,3 @@\n"
            " select 1;\n"
            "--- old\n"
            "+-- new\n"
            " select 2;\n"
            "```\n"
        ),
        {"q.sql": "select 1;\n-- new\nselect 2;\n"},
        OLD_SQL,
    ),
    "lines of dashes and pluses": (
        (
            "```diff\n"
            "--- a/q.sql\n"
            "+++ b/q.sql\n"
            "@@ -1,3 +1,3 @@\n"
            " select 1;\n"
            "--- old\n"
            "+++ new\n"
            " select 2;\n"
            "```\n"
        ),
        {"q.sql": "select 1;\n++ new\nselect 2;\n"},
        OLD_SQL,
    ),
    "front matter goes": (
        (
            "```diff\n--- a/p.md\n+++ b/p.md\n@@ -1,4 +1,1 @@\n----\n-title: a\n----\n"
            " x\n```\n"
        ),
        {"p.md": "x\n"},
        {"p.md": "---\ntitle: a\n---\nx\n"},
    ),
    "a line of @@ stays": (
        (
            "```diff\n--- a/p.txt\n+++ b/p.txt\n@@ -1,3 +1,3 @@\n @@ -1 +1 @@\n-a\n+b\n"
            " @@@\n```\n"
        ),
        {"p.txt": "@@ -1 +1 @@\nb\n@@@\n"},
        {"p.txt": "@@ -1 +1 @@\na\n@@@\n"},
    ),
    "a folder that is called a": (
        f"```diff\n{NAMES}{HUNK}```\n",
        IS_SUM,
        {"a/src/calc.py": CALC},
    ),
    "a folder that is called a, no prefixes": (
        f"```diff\n{NAMES.replace('+++ b', '+++ a')}{HUNK}```\n",
        {"a/src/calc.py": SUM},
        {"a/src/calc.py": CALC},
    ),
    "./ in names": (f"```diff\n{NAMES.replace('/src', '/./src')}{HUNK}```\n", IS_SUM),
    "only its new name": (
        f"```diff\n+++ b/src/calc.py\n{HUNK}```\n",
        Refused("names no file"),
    ),
    "only its old name": (
        f"```diff\n--- a/src/calc.py\n{HUNK}```\n",
        Refused("names no file"),
    ),
    "no name": (f"```diff\n{HUNK}```\n", Refused("line 1 of the reply names no file")),
    "words before it": (f"```diff\nThis is the change:\n{NAMES}{HUNK}```\n", IS_SUM),
    "names alone": (f"```diff\n{NAMES}```\n", Refused("no hunk")),
    "binary": (
        f"```diff\n{GIT}Binary files /dev/null and b/x.png differ\n```\n",
        Refused("binary"),
    ),
    "binary, in prose": (
        f"{GIT}Binary files /dev/null and b/x.png differ\n",
        Refused("binary"),
    ),
    "binary, with data": (
        f"{GIT}GIT binary patch\nliteral 1\nIcmZ\n",
        Refused("binary"),
    ),
    "a mode": (
        (
            "```diff\n"
            "diff --git a/src/calc.py b/src/calc.py\n"
            "old mode 100644\n"
            "new mode 100755\n"
            f"{NAMES}{HUNK}```\n"
        ),
        IS_SUM,
    ),
    "renamed, with names and no hunk": (
        (
            "```diff\n"
            "diff --git a/README.md b/R.md\n"
            "rename from README.md\n"
            "rename to R.md\n"
            "--- a/README.md\n"
            "+++ b/R.md\n"
            "```\n"
        ),
        {"README.md": None, "R.md": "# Calc\n\nIt adds.\n"},
    ),
    "a mode alone, with names": (
        (
            "```diff\n"
            "diff --git a/src/calc.py b/src/calc.py\n"
            "old mode 100644\n"
            "new mode 100755\n"
            f"{NAMES}```\n"
        ),
        {},
    ),
    "an empty hunk": (f"```diff\n{NAMES}@@ -1,2 +1,2 @@\n```\n", {}),
    "a mail": (
        (
            "From 12 Mon Sep 17\n"
            "Subject: x\n\n"
            "---\n"
            " calc.py | 2 +-\n\n"
            "diff --git a/src/calc.py b/src/calc.py\n"
            "index 1..2 100644\n"
            f"{NAMES}{HUNK}-- \n"
            "2.40.1\n"
        ),
        IS_SUM,
    ),
    "escaped for HTML": (
        "```diff\n--- a/h.txt\n+++ b/h.txt\n@@ -1 +1 @@\n-a &lt; b\n+a &gt; b\n```\n",
        Refused("closest.*\n +1  a < b"),
        {"h.txt": "a < b\nzz\n"},
    ),
    "hunks out of order": (
        (
            "```diff\n"
            "--- a/t.txt\n"
            "+++ b/t.txt\n"
            "@@ -8 +8,4 @@\n"
            "-end\n"
            "+end\n"
            "+1\n"
            "+2\n"
            "+3\n"
            "@@ -1 +1 @@\n"
            "-x\n"
            "+y\n"
            "```\n"
        ),
        {"t.txt": "y\na\nb\nx\nc\nd\ne\nend\n1\n2\n3\n"},
        {"t.txt": "x\na\nb\nx\nc\nd\ne\nend\n"},
    ),
    "lines that are gone already": (
        (
            "```diff\n"
            f"{NAMES}@@ -1,3 +1,2 @@\n"
            " def add(a, b):\n"
            "-    print(a)\n"
            "     return a + b\n"
            "```\n"
        ),
        {},
    ),
    "renamed and changed": (
        (
            "```diff\n"
            "diff --git a/README.md b/R.md\n"
            "similarity index 90%\n"
            "rename from README.md\n"
            "rename to R.md\n"
            "--- a/README.md\n"
            "+++ b/R.md\n"
            "@@ -3 +3 @@\n"
            "-It adds.\n"
            "+It sums.\n"
            "```\n"
        ),
        {"README.md": None, "R.md": "# Calc\n\nIt sums.\n"},
    ),
    "CRLF": (
        f"```diff\n{NAMES}{HUNK}```\n".replace("\n", "\r\n"),
        {"src/calc.py": SUM.replace("\n", "\r\n")},
        {"src/calc.py": CALC.replace("\n", "\r\n")},
    ),
}

IMPORTS = {"other.py": "import os\n\nx = 1\n", "third.py": "import os\n"}
OTHER = "other.py\n" + block("x = 1", "x = 2")
JS = {"o.js": "let x\n"}

BLOCKS: dict[str, Case] = {
    "words name another file": (
        f"{OTHER}\nThen in third.py, too:\n\n" + block("import os", "import sys"),
        Refused("names no file"),
        IMPORTS,
    ),
    "words name no file": (
        f"{OTHER}\nAnd the import:\n" + block("import os", "import sys"),
        {"other.py": "import sys\n\nx = 2\n"},
        IMPORTS,
    ),
    "words name the same file": (
        f"{OTHER}\nAnd in `other.py`, the import:\n" + block("import os", "import sys"),
        {"other.py": "import sys\n\nx = 2\n"},
        IMPORTS,
    ),
    "small letters": (
        "o.js\n<<<<<<< search\nlet x\n=======\nlet y\n>>>>>>> replace\n",
        {"o.js": "let y\n"},
        JS,
    ),
    "marks of a merge": (
        "```js:o.js\n<<<<<<< HEAD\nlet x\n=======\nlet y\n>>>>>>> new\n```\n",
        Refused("<<<<<<< SEARCH"),
        JS,
    ),
    "marks of a merge in a new file": (
        "```js:n.js\n<<<<<<< HEAD\nlet x\n=======\nlet y\n>>>>>>> new\n```\n",
        Refused("<<<<<<< HEAD"),
    ),
    "four marks": (
        "```js:o.js\n<<<< SEARCH\nlet x\n====\nlet y\n>>>> REPLACE\n```\n",
        Refused("seven marks"),
        JS,
    ),
    "ten marks": (
        (
            "```js:o.js\n"
            "<<<<<<<<<< SEARCH\n"
            "let x\n"
            "==========\n"
            "let y\n"
            ">>>>>>>>>> REPLACE\n"
            "```\n"
        ),
        Refused("seven marks"),
        JS,
    ),
    "fewer marks at the end": (
        f"src/calc.py\n{ADD}".replace(">>>>>>>", ">>>>>>"),
        IS_SUM,
    ),
    "numbers of its lines": (
        "src/calc.py\n" + block("2 |     return a + b", "2 |     return b + a"),
        IS_CHANGED,
    ),
    "numbers of other lines": (
        "src/calc.py\n" + block("3 |     return a + b", "3 |     return 1"),
        Refused("closest.*\n +2      return a"),
    ),
    "other quotes": (
        "q.py\n" + block("x = \u2018a\u2019", "x = 'b'"),
        {"q.py": "x = 'b'\n"},
        {"q.py": "x = 'a'\n"},
    ),
    "lines that are gone already": (
        "src/calc.py\n"
        + block(
            "def add(a, b):\n    print(a)\n    return a + b",
            "def add(a, b):\n    return a + b",
        ),
        {},
    ),
    "a part, then the whole of something else": (
        f"src/calc.py\n{ADD}\n```python:src/calc.py\n{CALC.replace('a - b', 'b')}```\n",
        Refused("either the parts"),
    ),
    "in a block of text": ("`src/calc.py`\n\n```text\n" + ADD + "```\n", IS_SUM),
    "in a block of commands": (
        "**File: src/calc.py**\n```bash\n" + ADD + "```\n",
        IS_SUM,
    ),
    "a part, then the whole": (
        f"src/calc.py\n{ADD}\n```python:src/calc.py\n{SUM}```\n",
        IS_SUM,
    ),
}


def patch(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch\n"


PATCHES: dict[str, Case] = {
    "another word": (
        patch("*** Modify File: src/calc.py\n-    return a + b\n+    return 1\n"),
        Refused("which file"),
    ),
    "no file": (patch("-    return a + b\n+    return 1\n"), Refused("which file")),
    "nothing": (patch(""), Refused("which file")),
    "no begin": (
        "*** Update File: README.md\n@@\n-It adds.\n+It sums.\n",
        Refused("in no patch"),
    ),
    "deleted, then given anew": (
        patch("*** Delete File: README.md\n") + "```md:README.md\n# New\n```\n",
        {"README.md": "# New\n"},
    ),
    "deleted, then a part of it": (
        patch("*** Delete File: b.txt\n*** Add File: b.txt\n+line 1\n+line 2\n"),
        Refused("never shortened"),
        {"b.txt": LONG},
    ),
    "deleted, then a remark": (
        patch("*** Delete File: b.txt\n")
        + "```text:b.txt\nline 1\n... rest unchanged\n```\n",
        Refused("left out"),
        {"b.txt": LONG},
    ),
    "moved, then a short one instead": (
        patch(
            "*** Update File: b.txt\n*** Move to: c.txt\n*** Add File: b.txt\n+see c\n"
        ),
        {"c.txt": LONG, "b.txt": "see c\n"},
        {"b.txt": LONG},
    ),
}


@each_row(
    "case",
    [
        pytest.param(case, id=f"{form}: {name}")
        for form, cases in {
            "thoughts": THOUGHTS,
            "fences": FENCES,
            "diffs": DIFFS,
            "blocks": BLOCKS,
            "patches": PATCHES,
        }.items()
        for name, case in cases.items()
    ],
)
def test_replies_of_models(tmp_path: Path, case: Case) -> None:
    reply, outcome, *files = case
    project = {**PROJECT, **(files[0] if files else {})}
    write(tmp_path, project)
    if isinstance(outcome, Refused):
        with pytest.raises(ReplyRefused, match=f"(?s){outcome.why}"):
            apply(tmp_path, reply)
        assert tree(tmp_path) == project
    else:
        apply(tmp_path, reply)
        assert tree(tmp_path) == expected(outcome, project)


@each_row(
    "remark",
    [
        "# ... (rest of the code remains the same)",
        "# ... other methods ...",
        "# [rest of the file unchanged]",
        "# Rest of the code remains unchanged",
        "# (existing code)",
        "# existing imports",
        "# ...existing code...",
        "# your existing code here",
        "# remaining code stays the same",
        "# --- rest of file unchanged ---",
        "# <rest of file>",
        "# (No changes to the rest of this file)",
        "# ...same as before",
        "# rest of the functions",
        "# other functions unchanged",
        "# [...]",
        "# ...",
        "# Other existing functions",
        "# [existing code]",
        "# Previous code remains unchanged",
        "# snip",
        "# [omitted for brevity]",
        "# code continues",
        "# Keep existing code",
        "# ===== existing code =====",
        "# unchanged code",
        "# same as original",
        "# implementation unchanged",
        "# [previous implementation]",
        "# ... [rest of implementation]",
        "#...",
    ],
)
def test_a_remark_that_stands_for_lines_is_refused(tmp_path: Path, remark: str) -> None:
    write(tmp_path, PROJECT)
    with pytest.raises(ReplyRefused, match="left out"):
        apply(
            tmp_path,
            "```python:src/calc.py\n"
            "def add(a, b):\n"
            "    return b + a\n\n\n"
            f"{remark}\n"
            "```\n",
        )


@each_row(
    "remark",
    [
        "{/* ... existing JSX ... */}",
        "// ... existing code",
        "/* ... rest ... */",
        "<!-- existing content -->",
        "...",
        "[... rest of file ...]",
        "/* existing styles */",
        "  // Existing code here",
        "// ...",
    ],
)
def test_a_remark_in_another_language_is_refused(tmp_path: Path, remark: str) -> None:
    write(tmp_path, {"o.jsx": "let x\nlet z\n"})
    with pytest.raises(ReplyRefused, match="left out"):
        apply(tmp_path, f"```jsx:o.jsx\nlet y\n{remark}\n```\n")


@each_row(
    "remark",
    [
        "# Existing rows stay as they are",
        "# The other keys are unchanged",
        "# keep existing entries first",
    ],
)
def test_where_no_line_goes_no_remark_stands_for_one(
    tmp_path: Path, remark: str
) -> None:
    write(tmp_path, PROJECT)
    apply(tmp_path, f"```python:src/calc.py\n{remark}\n{CALC}```\n")
    assert tree(tmp_path) == expected({"src/calc.py": f"{remark}\n{CALC}"})


@each_row(
    "line",
    [
        "# existing file",
        "# remaining lines",
        "# unchanged",
        "# No changes needed",
        "# remaining tests",
        "'unchanged',",
        "'omitted',",
        "'existing content',",
        "'rest of the file',",
    ],
)
def test_a_line_is_no_remark_where_no_fewer_lines_come_than_go(
    tmp_path: Path, line: str
) -> None:
    before = "x = [\n    'a',\n    'b',\n]\n"
    after = before.replace("    'b',\n", f"    {line}\n    'c',\n")
    for name, reply in (
        ("one", "one.py\n" + block("    'b',", f"    {line}\n    'c',")),
        ("two", f"```python:two.py\n{after}```\n"),
        (
            "three",
            (
                "```yaml\n"
                "- edit: three.py\n"
                "  find: \"    'b',\\n\"\n"
                f"  replace: \"    {line}\\n    'c',\\n\"\n"
                "```\n"
            ),
        ),
    ):
        write(tmp_path, {f"{name}.py": before})
        apply(tmp_path, reply)
        assert tree(tmp_path)[f"{name}.py"] == after


@each_row("remark", ["# existing file", "# unchanged", "# remaining lines"])
def test_a_remark_in_a_block_is_one_where_more_lines_go_than_come(
    tmp_path: Path, remark: str
) -> None:
    write(tmp_path, PROJECT)
    with pytest.raises(ReplyRefused, match=r"(?s)left out.*Word a comment"):
        apply(
            tmp_path,
            "src/calc.py\n"
            + block(CALC, f"def add(a, b):\n    return b + a\n{remark}"),
        )


@each_row("head", ["old mode 100644\nnew mode 100755\n", "new file mode 100755\n"])
def test_a_diff_that_changes_permissions_is_told_that_they_stay(
    tmp_path: Path, head: str
) -> None:
    is_new = head.startswith("new file")
    write(tmp_path, {} if is_new else {"run.sh": "a\n"})
    names = (
        "--- /dev/null\n+++ b/run.sh\n" if is_new else "--- a/run.sh\n+++ b/run.sh\n"
    )
    hunk = names + ("@@ -0,0 +1 @@\n+b\n" if is_new else "@@ -1 +1 @@\n-a\n+b\n")
    notes = apply(tmp_path, f"```diff\ndiff --git a/run.sh b/run.sh\n{head}{hunk}```\n")
    assert tree(tmp_path) == {"run.sh": "b\n"}
    (note,) = notes
    assert note.startswith("run.sh ")
