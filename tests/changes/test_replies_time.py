"""No reply, however odd, takes time that grows with its square."""

import contextlib
import time
from pathlib import Path

import pytest

from cdd_agent.changes.model import ReplyRefused
from tests.changes.applying import apply, write
from tests.support.tables import each_row

SPACES = "a" + " " * 200_000 + "b"
LINES = "".join(f"line {number} of words\n" for number in range(5_000))
SAME = "foo bar baz\n"


def blocks(*pairs: tuple[str, str]) -> str:
    return "a.txt\n" + "".join(
        f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"
        for old, new in pairs
    )


WIDE = " " * 480
"""As long as a line can be that names a file."""
BLOCK = "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"


def above(line: str) -> str:
    return f"{line}\n```\ny\n```\n" * 60


CASES: dict[str, tuple[str, str]] = {
    "spaces before a fence": (f"{SPACES}\n```\nx\n```", ""),
    "spaces in a comment": (f"```\n# {SPACES}\nx\n```", ""),
    "spaces in an info string": (f"```python {SPACES}\nx\n```", ""),
    "spaces after a mark": (f"<<<<<<< SEARCH {SPACES}\n=======\n>>>>>>> REPLACE\n", ""),
    "spaces in a diff's names": (f"--- {SPACES}\n+++ a\n@@\n-x\n", ""),
    "a long hunk in prose": (
        "--- a/x\n+++ b/x\n@@ -1,90000 +1,90000 @@\n" + "+ab\n" * 40_000,
        "",
    ),
    "names in a hunk": (
        "--- a/x\n+++ b/x\n@@ -1,90000 +1,90000 @@\n" + "--- a\n+++ b\n" * 10_000,
        "",
    ),
    "diffs with fences": ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n ```\n+a\n" * 3_000, ""),
    "blocks in fences": (
        "".join(
            f"```\n{blocks((f'line {place} of words', 'x'))}```\n"
            for place in range(1_500)
        ),
        LINES,
    ),
    "blocks that are not there": (
        blocks(*((f"line {place} of wordz", "x") for place in range(600))),
        LINES,
    ),
    "one line many times": (blocks((SAME * 400, (SAME + "x\n") * 400)), SAME * 3_000),
    "one line many times, nearly": (
        blocks((SAME * 40 + "foo bar baq\n" * 40, "y")),
        SAME * 3_000,
    ),
    "two lines by turns": (
        blocks(("a\nb\n" * 900, "b\nc\na\n" * 600)),
        "a\nb\n" * 900 + "\n",
    ),
    "underscores": ("```json:b.json\n" + "_" * 150_000 + "\n```\n", ""),
    "dots between blocks": (f"```a.py\n{'…' * 2_000}x\n{BLOCK}```\n", ""),
    "short dots between blocks": (f"```a.py\n{'.' * 100_000}x\n{BLOCK}```\n", ""),
    "blank lines below a program's name": (
        "Makefile\n```text\n" + "\n" * 30_000 + "x\n```\n",
        "",
    ),
    "blank lines before actions": (
        "```yaml\n" + "\n" * 60 + "- action: create_file\n```\n",
        "",
    ),
    "remarks before actions": (
        "```yaml\n" + "#\n\n" * 60 + "- action: create_file\n```\n",
        "",
    ),
    "spaces before actions": (f"```yaml\n{' ' * 200_000}x\n```\n", ""),
    "spaces in a patch's hunk": (
        (
            "*** Begin Patch\n"
            "*** Update File: a.txt\n"
            f"@@ {SPACES}\n"
            "-x\n"
            "+y\n"
            "*** End Patch\n"
        ),
        "",
    ),
    "spaces in a patch's name": (
        f"*** Begin Patch\n*** Delete File: {SPACES}\n*** End Patch\n",
        "",
    ),
    "rules above blocks": (above("=" * 400 + "x x"), ""),
    "tags above blocks": (above(f"<file name={WIDE[:450]}!"), ""),
    "spaces above blocks": (above(f"a.py{WIDE}b"), ""),
    "comments in blocks": (f"```\n# a{WIDE}b\ny\n```\n" * 60, ""),
    "info strings": (f"```python a{' ' * 2_400}b\nx\n```\n" * 60, ""),
    "spaces after except": (f"```python:b.py\nexcept{' ' * 200_000}\n```\n", ""),
    "spaces in a new line": (
        f"```text:a.txt\n{' ' * 100_000}x\n#{' ' * 100_000}x\n```\n",
        "a\n",
    ),
    "marks of calls": ("<tool_call>\n" * 20_000, ""),
    "calls that are not closed": (
        '<invoke name="a">\n<parameter name="b">\n' * 5_000,
        "",
    ),
    "calls in a call that is not closed": (
        '<invoke name="a">\n<parameter name="b">\n' * 5_000 + "</parameter></invoke>",
        "",
    ),
    "half JSON": ('{"name": "a"\n' * 10_000 + '"arguments": {', ""),
    "brackets in a call": (
        "<|tool_call_start|>[" + "f(a=[]), " * 10_000 + "<|tool_call_end|>",
        "",
    ),
    "many calls with fences": (
        "<write_file>\n<path>a</path>\n<content>\n```\n</content>\n</write_file>\n"
        * 200,
        "",
    ),
    "many calls with pairs of fences": (
        "".join(
            f"<write_file>\n<path>a{number}</path>\n<content>\n```py\nx\n```\n"
            "</content>\n</write_file>\n"
            for number in range(1_500)
        ),
        "",
    ),
    "tags of files": ('<file path="a.py">\nx\n' * 20_000 + "```\nx\n```\n", ""),
    "names of calls in one line": (
        "See `<tool_call>` and <read_file> now. " * 15_000,
        "",
    ),
    "marks of calls in one line": ('<invoke name="a">' * 20_000, ""),
    "commands between blocks": (
        "".join(
            f"a{number}\n{BLOCK}```bash\ntouch a{number}\n```\n"
            for number in range(1_500)
        ),
        "",
    ),
    "calls in words": ('It is <function=a>{"a": 1}</function> there.\n' * 3_000, ""),
    "spaces before marks": (f"{SPACES}<|channel|>commentary to=a<|message|>", ""),
    "accents": (
        blocks(("e" + "\u0323\u0301" * 100_000, "x")),
        "e" + "\u0301\u0323" * 100_000 + "\nb\n",
    ),
    "deep YAML": ("```yaml:b.yaml\n" + "[" * 60_000 + "\n```\n", ""),
}


@pytest.mark.long
@each_row(("reply", "file"), CASES.values(), ids=CASES.keys())
def test_time_does_not_explode(tmp_path: Path, reply: str, file: str) -> None:
    write(tmp_path, {"a.txt": file, "b.yaml": "a: 1\n"})
    begun = time.process_time()
    with contextlib.suppress(ReplyRefused):
        apply(tmp_path, reply)
    assert time.process_time() - begun < 10
