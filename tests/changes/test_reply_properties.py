"""Any text is a reply or refused; and a change written in any form gives the same
files.
"""

import difflib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.policy import EditPolicy
from tests.changes.applying import PROJECT, apply, tree, write
from tests.support.examples import count_examples

PIECES = [
    "```",
    "````",
    "~~~",
    "```python",
    "```python:a.py",
    "```diff",
    "```yaml",
    "src/calc.py",
    "../x.py",
    ".git/config",
    "<<<<<<< SEARCH",
    "=======",
    ">>>>>>> REPLACE",
    "    return a + b",
    "    return 1",
    "def add(a, b):",
    "",
    "  ",
    "--- a/src/calc.py",
    "+++ b/src/calc.py",
    "+++ /dev/null",
    "--- /dev/null",
    "@@ -1,2 +1,2 @@",
    "@@",
    "-    return a + b",
    "+    return 1",
    " def add(a, b):",
    "diff --git a/README.md b/R.md",
    "rename from README.md",
    "rename to R.md",
    "*** Begin Patch",
    "*** End Patch",
    "*** Update File: src/calc.py",
    "*** Add File: n.py",
    "*** Delete File: README.md",
    "- action: edit",
    "  file_path: README.md",
    "  find: adds",
    "  replace: sums",
    "- create_file: n.txt",
    "> ",
    "- x",
    "1. x",
    "deleted file mode 100644",
    "\\ No newline at end of file",
    "*** Move to: ../y",
    "\ue000",
    "\ud800",
]
lines = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=25).map(
    "\n".join
)


@settings(max_examples=count_examples(200))
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
    fence = "`" * (
        max((len(run) for run in re.findall("`+", text_of(after))), default=0) + 3
    )
    return f"{fence}text:{path}\n{text_of(after)}{fence}\n"


def as_block(path: str, before: list[str], after: list[str]) -> str:
    return (
        f"{path}\n"
        "<<<<<<<<< SEARCH\n"
        f"{text_of(before)}=========\n"
        f"{text_of(after)}>>>>>>>>> REPLACE\n"
    )


def as_diff(path: str, before: list[str], after: list[str]) -> str:
    body = difflib.unified_diff(
        before, after, f"a/{path}", f"b/{path}", lineterm="", n=99
    )
    return "\n".join([f"diff --git a/{path} b/{path}", *body]) + "\n"


def as_patch(path: str, before: list[str], after: list[str]) -> str:
    body = list(difflib.unified_diff(before, after, lineterm="", n=99))[3:]
    return (
        "\n".join(
            [
                "*** Begin Patch",
                f"*** Update File: {path}",
                "@@",
                *body,
                "*** End Patch",
            ]
        )
        + "\n"
    )


@settings(max_examples=count_examples(100))
@given(contents, contents)
@example(["```"], ["```", ""])
@example(["~~~", "x", "```py", "y"], ["~~~", "", "```py", "z"])
def test_a_change_gives_the_same_file_in_every_form(
    before: list[str], after: list[str]
) -> None:
    before, after = ["first: 1", *before, "last: 1"], ["first: 2", *after, "last: 1"]
    for form in (as_whole_file, as_block, as_diff, as_patch):
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), {"a.txt": text_of(before)})
            apply(
                Path(name),
                form("a.txt", before, after),
                EditPolicy(seen=None, may_shrink=lambda path: True),
            )
            assert tree(Path(name)) == {"a.txt": text_of(after)}, form.__name__


containers = st.lists(
    st.sampled_from(
        [
            "",
            " ",
            "   ",
            "    ",
            "\t",
            "- ",
            "-   ",
            "+ ",
            "+  ",
            "* ",
            "1. ",
            "> ",
            "@@ ",
            "-- ",
            "++ ",
        ]
    ),
    max_size=2,
).map("".join)
inner = st.sampled_from(
    [
        "```",
        "```sh",
        "````",
        "~~~",
        "~~~ py",
        "````md",
        "x",
        "y = 1",
        "",
        "a.py",
        "# b.py",
    ]
)
lines_with_fences = st.lists(
    st.tuples(containers, inner).map("".join).map(str.rstrip), max_size=9
)


@settings(max_examples=count_examples(100))
@given(
    lines_with_fences,
    lines_with_fences,
    lines_with_fences,
    st.sampled_from(["{}", "Here:\n\n{}\nDone.\n"]),
)
@example(["1. Do:", "", "-   ```sh"], ["    old"], ["    new"], "{}")
@example(["+ ```", "+ x"], [], ["", "   ```"], "{}")
@example(["\ue000", "```"], ["a"], ["b"], "{}")
@example([], ["-- ```"], ["++ ```"], "{}")
def test_a_text_with_fences_at_any_depth_is_changed_in_every_form(
    around: list[str], old: list[str], new: list[str], words: str
) -> None:
    before = ["first: 1", *around, "here", *old, "there", *around[::-1], "last: 1"]
    after = ["first: 1", *around, "here", *new, "there", *around[::-1], "last: 2"]
    for form in (as_whole_file, as_block, as_diff, as_patch):
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), {"a.txt": text_of(before)})
            apply(
                Path(name),
                words.format(form("a.txt", before, after)),
                EditPolicy(seen=None, may_shrink=lambda path: True),
            )
            assert tree(Path(name)) == {"a.txt": text_of(after)}, form.__name__


pieces = st.text(st.sampled_from("abcxyz =()#`*<>."), max_size=10).map(str.strip)
indented = st.tuples(st.sampled_from(["", "    ", "        ", "\t"]), pieces).map(
    "".join
)


@dataclass(frozen=True)
class Noise:
    """Things that models do to an edit, and that are tolerated."""

    trailing: str
    shift: str
    numbers: str
    loses_space: bool
    name: str
    around: str
    line_end: str

    def of(self, text: str) -> str:
        return self.around.format(text).replace("\n", self.line_end)

    def block(self, path: str, before: list[str], after: list[str]) -> str:
        old = [self.shift + line + self.trailing if line else line for line in before]
        new = [self.shift + line if line else line for line in after]
        return self.of(
            f"{self.name.format(path)}\n" + as_block("", old, new).removeprefix("\n")
        )

    def diff(self, path: str, before: list[str], after: list[str]) -> str:
        body = list(
            difflib.unified_diff(
                before, after, f"a/{path}", f"b/{path}", lineterm="", n=3
            )
        )
        lines = [self.numbers if line.startswith("@@") else line for line in body]
        lines = [
            (
                line + self.trailing
                if line[:1] in " -" and not line.startswith("---")
                else line
            )
            for line in lines
        ]
        if self.loses_space:
            lines = [
                line[1:] if re.match(r" [\w(=.]", line) else line for line in lines
            ]
        fence = "`" * (
            max((len(run) for run in re.findall("`+", text_of(lines))), default=0) + 3
        )
        return self.of(f"{fence}diff\n{text_of(lines)}{fence}\n")

    def whole(self, path: str, before: list[str], after: list[str]) -> str:
        fence = "`" * (
            max((len(run) for run in re.findall("`+", text_of(after))), default=0) + 3
        )
        return self.of(
            f"{self.name.format(path)}\n{fence}text\n{text_of(after)}{fence}\n"
        )


noises = st.builds(
    Noise,
    trailing=st.sampled_from(["", "  ", "\t"]),
    shift=st.sampled_from(["", "  ", "    "]),
    numbers=st.sampled_from(
        ["@@", "@@ @@", "@@ ... @@", "@@ -70,2 +90,1 @@", "@@ -1 +1 @@ def f():"]
    ),
    loses_space=st.booleans(),
    name=st.sampled_from(
        [
            "{}",
            "**{}**",
            "### `{}`",
            "File: {}",
            "1. `{}` (updated)",
            "📄 {}:",
            "=== {} ===",
        ]
    ),
    around=st.sampled_from(
        [
            "{}",
            "Sure.\n\n{}\n\n- I changed it.\n",
            "<think>\na.txt\n```text\nx\n```\n</think>\n\n{}",
            "<answer>\n\n{}\n</answer>",
        ]
    ),
    line_end=st.sampled_from(["\n", "\r\n"]),
)


@settings(max_examples=count_examples(60))
@given(
    st.lists(indented, min_size=4, max_size=14),
    st.data(),
    noises,
    st.booleans(),
    st.booleans(),
)
def test_noise_does_not_change_what_a_reply_does(
    words: list[str], data: st.DataObject, noise: Noise, is_crlf: bool, is_ended: bool
) -> None:
    # each line is there once
    before = [f"{line}{number}" for number, line in enumerate(words, 100)]
    place = data.draw(st.integers(0, len(before) - 2))
    new = data.draw(st.lists(indented.map(lambda line: f"{line}7x"), max_size=3))
    after = [*before[:place], *new, *before[place + data.draw(st.integers(0, 1)) :]]
    end = "\r\n" if is_crlf else "\n"
    old_text, new_text = (end.join(lines) + end * is_ended for lines in (before, after))
    for form in (noise.whole, noise.block, noise.diff):
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), {"a.txt": old_text})
            apply(
                Path(name),
                form("a.txt", before, after),
                EditPolicy(seen=None, may_shrink=lambda path: True),
            )
            assert tree(Path(name)) == {"a.txt": new_text}, form.__name__
