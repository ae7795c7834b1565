"""Any text is a reply or refused; and a change written in any form gives the same files."""

import difflib
import re
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdd_agent.actions.edits import ReplyRefused
from cdd_agent.actions.judging import Terms
from tests.actions.applying import PROJECT, apply, tree, write

PIECES = [
    "```", "````", "~~~", "```python", "```python:a.py", "```diff", "```yaml", "src/calc.py", "../x.py",
    ".git/config", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "    return a + b", "    return 1",
    "def add(a, b):", "", "  ", "--- a/src/calc.py", "+++ b/src/calc.py", "+++ /dev/null", "--- /dev/null",
    "@@ -1,2 +1,2 @@", "@@", "-    return a + b", "+    return 1", " def add(a, b):",
    "diff --git a/README.md b/R.md", "rename from README.md", "rename to R.md", "*** Begin Patch",
    "*** End Patch", "*** Update File: src/calc.py", "*** Add File: n.py", "*** Delete File: README.md",
    "- action: edit", "  file_path: README.md", "  find: adds", "  replace: sums", "- create_file: n.txt",
    "> ", "- x", "1. x", "deleted file mode 100644", "\\ No newline at end of file", "*** Move to: ../y",
    "\ue000", "\ud800",
]  # fmt: skip
lines = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=25).map("\n".join)


@settings(max_examples=400)
@given(lines | st.text(max_size=300))
def test_any_text_is_applied_as_a_whole_or_refused_as_a_whole(reply: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "project"
        write(root, PROJECT)
        try:
            apply(root, reply)
        except ReplyRefused:
            assert tree(root) == PROJECT
        assert [path.name for path in Path(name).iterdir()] == ["project"]
        assert not (root / ".git").exists()


words = st.text(st.sampled_from("abcxyz =+-()#`*<>\t."), max_size=12).map(str.rstrip)
contents = st.lists(words, min_size=1, max_size=12)


def text_of(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def as_whole_file(path: str, before: list[str], after: list[str]) -> str:
    fence = "`" * (max((len(run) for run in re.findall("`+", text_of(after))), default=0) + 3)
    return f"{fence}text:{path}\n{text_of(after)}{fence}\n"


def as_block(path: str, before: list[str], after: list[str]) -> str:
    return f"{path}\n<<<<<<<<< SEARCH\n{text_of(before)}=========\n{text_of(after)}>>>>>>>>> REPLACE\n"


def as_diff(path: str, before: list[str], after: list[str]) -> str:
    body = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}", lineterm="", n=99)
    return "\n".join([f"diff --git a/{path} b/{path}", *body]) + "\n"


def as_patch(path: str, before: list[str], after: list[str]) -> str:
    body = list(difflib.unified_diff(before, after, lineterm="", n=99))[3:]
    return "\n".join(["*** Begin Patch", f"*** Update File: {path}", "@@", *body, "*** End Patch"]) + "\n"


@settings(max_examples=200)
@given(contents, contents)
@example(["```"], ["```", ""])
@example(["~~~", "x", "```py", "y"], ["~~~", "", "```py", "z"])
def test_a_change_gives_the_same_file_in_every_form(before: list[str], after: list[str]) -> None:
    before, after = ["first: 1", *before, "last: 1"], ["first: 2", *after, "last: 1"]
    for form in (as_whole_file, as_block, as_diff, as_patch):
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), {"a.txt": text_of(before)})
            apply(Path(name), form("a.txt", before, after), Terms(seen=None, may_shrink=lambda path: True))
            assert tree(Path(name)) == {"a.txt": text_of(after)}, form.__name__
