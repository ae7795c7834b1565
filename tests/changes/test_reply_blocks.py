"""What became of each block of a reply: nothing that could be a file is lost."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdd_agent.changes.formats.project_names import NO_PROJECT_NAMES, ProjectNames
from cdd_agent.changes.model import (
    BlockFate,
    EditProblem,
    ModeChange,
    ReplyBlock,
    ReplyRefused,
)
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.reply.fates import refused
from tests.support.examples import count_examples
from tests.support.tables import each_row

APPLIED, REFUSED, EXPLANATION, IGNORED = BlockFate
SEARCH = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"
DIFF = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def blocks_of(
    text: str, known: ProjectNames = NO_PROJECT_NAMES
) -> tuple[ReplyBlock, ...]:
    try:
        return parse_reply(text, known).blocks
    except ReplyRefused as refusal:
        return refusal.blocks


ROWS: dict[str, tuple[str, list[tuple[int, int, str, BlockFate, str]]]] = {
    "words": ("I do it.\n", []),
    "a file": (
        "So:\n\n```python:a.py\nx\n```\n",
        [(3, 5, "code block", APPLIED, "a.py")],
    ),
    "a file below its name": (
        "**a.py**\n\n```python\nx\n```\n",
        [(3, 5, "code block", APPLIED, "a.py")],
    ),
    "commands": (
        "Run:\n```bash\nmake\n```\n",
        [(2, 4, "code block", EXPLANATION, "")],
    ),
    "a title": (
        "### NEWS\n```\nx\n```\n",
        [(2, 4, "code block", EXPLANATION, "NEWS")],
    ),
    "a file between tags": (
        'So:\n<file path="a.py">\nx\n</file>\n',
        [(2, 4, "file between tags", REFUSED, "a.py")],
    ),
    "a file between tags, beside a block": (
        '```python:b.py\nx\n```\n<document name="docs/a.md">x\n\n</document>\nDone.\n',
        [
            (1, 3, "code block", REFUSED, "b.py"),
            (4, 6, "file between tags", REFUSED, "docs/a.md"),
        ],
    ),
    "a file between tags, cut": (
        '<boltAction type="file" filePath="a.py">\nx\n',
        [(1, 3, "file between tags", REFUSED, "a.py")],
    ),
    "a code block between tags": (
        '<file path="a.py">\n```python\nx\n```\n</file>\n',
        [(2, 4, "code block", APPLIED, "a.py")],
    ),
    "a diff between tags": (
        f'<file path="a.py">\n{DIFF.format("a.py")}</file>\n',
        [(2, 6, "diff", APPLIED, "a.py")],
    ),
    "a file with a code block between tags": (
        '<file path="a.md">\n# A\n\n```bash\nmake\n```\n</file>\n',
        [(1, 7, "file between tags", REFUSED, "a.md")],
    ),
    "tags in a file": (
        '```xml:a.xml\n<file path="b.py">\nx\n</file>\n```\n',
        [(1, 5, "code block", APPLIED, "a.xml")],
    ),
    "tags in a sentence": ('The tag <file path="b.py"> is closed by </file>.\n', []),
    "a tag that begins a line": ('<file path="b.py"> is a tag.\nAnd so on.\n', []),
    "a block in prose": (
        f"a.py\n{SEARCH}",
        [(2, 6, "search/replace block", APPLIED, "a.py")],
    ),
    "two blocks in a fence": (
        f"a.py\n```\n{SEARCH}\n{SEARCH}```\n",
        [
            (2, 7, "search/replace block", APPLIED, "a.py"),
            (8, 14, "search/replace block", APPLIED, "a.py"),
        ],
    ),
    "a block in a fence without its first mark": (
        "```css\na {\n=======\nb {\n>>>>>>> REPLACE\n```\n",
        [(1, 6, "search/replace block", REFUSED, "")],
    ),
    "a block without its first mark": (
        "a.css\na {\n=======\nb {\n>>>>>>> REPLACE\n",
        [(5, 5, "line of a search/replace block", REFUSED, "")],
    ),
    "other lines after a block": (
        f"```a.py\n{SEARCH}x = 3\n```\n",
        [(1, 8, "search/replace block", REFUSED, "a.py")],
    ),
    "dots after a block": (
        f"```a.py\n{SEARCH}\n# ...\n```\n",
        [(1, 9, "search/replace block", APPLIED, "a.py")],
    ),
    "a file to create": (
        "**File to create:** `src/a.py`\n\n```python\nx\n```\n",
        [(3, 5, "code block", APPLIED, "src/a.py")],
    ),
    "a file to modify": (
        "- **File to modify: src/a.py**\n```python\nx\n```\n",
        [(2, 4, "code block", APPLIED, "src/a.py")],
    ),
    "a block of no file": (SEARCH, [(1, 5, "search/replace block", REFUSED, "")]),
    "a block without its end": (
        "a.py\n<<<<<<< SEARCH\nx\n=======\ny\n",
        [(2, 6, "search/replace block", REFUSED, "a.py")],
    ),
    "a block below words about another file": (
        f"a.py\n{SEARCH}\nIn `b.py` it is the same:\n\n{SEARCH}",
        [
            (2, 6, "search/replace block", REFUSED, "a.py"),
            (10, 14, "search/replace block", REFUSED, ""),
        ],
    ),
    "a block below words about its file": (
        f"a.py\n{SEARCH}\nIn `a.py` it is there again:\n\n{SEARCH}",
        [
            (2, 6, "search/replace block", APPLIED, "a.py"),
            (10, 14, "search/replace block", APPLIED, "a.py"),
        ],
    ),
    "a refused block and a good one": (
        f"```python:a.py\nx\n```\n\nSo:\n\n{SEARCH}",
        [
            (1, 3, "code block", REFUSED, "a.py"),
            (7, 11, "search/replace block", REFUSED, ""),
        ],
    ),
    "a diff of two files": (
        f"```diff\n{DIFF.format('a.py')}{DIFF.format('b.py')}```\n",
        [(1, 12, "diff", APPLIED, "a.py"), (1, 12, "diff", APPLIED, "b.py")],
    ),
    "a diff in prose": (
        f"So:\n\n{DIFF.format('a.py')}\nDone.\n",
        [(3, 7, "diff", APPLIED, "a.py")],
    ),
    "a diff of no file": (
        "```diff\n- x = 1\n+ x = 2\n```\n",
        [(1, 4, "diff", EXPLANATION, "")],
    ),
    "a mode": (
        "diff --git a/a.sh b/a.sh\nold mode 100644\nnew mode 100755\n",
        [(1, 3, "diff", EXPLANATION, "a.sh")],
    ),
    "a patch": (
        "*** Begin Patch\n*** Delete File: a.py\n*** End Patch\n",
        [(1, 3, "patch", APPLIED, "a.py")],
    ),
    "a patch without its end": (
        "*** Begin Patch\n*** Delete File: a.py\n*** Delete File: b.py\n\nDone.\n",
        [(1, 5, "line of a patch", REFUSED, "")],
    ),
    "actions": (
        "```yaml\n- create_file: a.py\n  content: x\n- create_file: b.py\n```\n",
        [
            (1, 5, "list of actions", APPLIED, "a.py"),
            (1, 5, "list of actions", APPLIED, "b.py"),
        ],
    ),
    "another action": (
        "```yaml\n- execute: make\n```\n",
        [(1, 3, "list of actions", REFUSED, "")],
    ),
    "a fence that is cut": (
        "```python:a.py\nx = (\n",
        [(1, 2, "code block", REFUSED, "a.py")],
    ),
    "two versions": (
        "```text:a\nx\n```\n```text:a\ny\n```\n",
        [(1, 3, "code block", REFUSED, "a"), (4, 6, "code block", REFUSED, "a")],
    ),
    "one version twice": (
        "```text:a\nx\n```\n```text:a\nx\n```\n",
        [(1, 3, "code block", APPLIED, "a"), (4, 6, "code block", APPLIED, "a")],
    ),
    "thoughts": (
        "<think>\n```text:a\nx\n```\n</think>\n```text:b\ny\n```\n",
        [
            (1, 5, "thoughts", IGNORED, ""),
            (6, 8, "code block", APPLIED, "b"),
        ],
    ),
    "thoughts without their end": (
        "<think>\n```text:a\nx\n```\n",
        [(1, 5, "thoughts", REFUSED, "")],
    ),
    "a reply in a fence": (
        "````markdown\n```text:b\ny\n```\n````\n",
        [(2, 4, "code block", APPLIED, "b")],
    ),
    "a name in a fence of its own": (
        "```\na.py\n```\n```python\nx\n```\n",
        [(1, 3, "code block", EXPLANATION, ""), (4, 6, "code block", APPLIED, "a.py")],
    ),
    "a block between tags": (
        f"a.py\n<source>python\n{SEARCH}</source>\n",
        [(2, 8, "search/replace block", APPLIED, "a.py")],
    ),
    "a file with fences between tags": (
        "a.md\n<source>markdown\n```\nx\n```\n</source>\n",
        [(2, 6, "code block", APPLIED, "a.md")],
    ),
    "a tag without its end": (
        "a.md\n<source>\n```sh\nx\n```\n",
        [(3, 5, "code block", EXPLANATION, "")],
    ),
    "a null character": ("a\n\0\n", [(2, 2, "null character", REFUSED, "")]),
}


@each_row(("text", "expected"), ROWS.values(), ids=ROWS.keys())
def test_what_became_of_each_block(
    text: str, expected: list[tuple[int, int, str, BlockFate, str]]
) -> None:
    blocks = blocks_of(text)
    found = [
        (block.line, block.end, block.kind, block.fate, block.path) for block in blocks
    ]
    assert found == expected
    assert all(block.reason for block in blocks if block.fate is not APPLIED)


DOUBTFUL = {
    "Change `a.py` as follows:\n```python\nx\n```\n": "a.py",
    "### 2. Add a timer to `a.py`\n\n```python\nx\n```\n": "a.py",
    "**Step 1: Add a timer to a.py**\n```python\nx\n```\n": "a.py",
    "Ignore it in `.gitignore`:\n\n```\n*.tmp\n```\n": ".gitignore",
    "Ignore it in `.gitignore`:\n\n```\n# for .gitignore\n*.tmp\n```\n": ".gitignore",
    "The chart in `docs/a.md`:\n```javascript\nx\n```\n": "docs/a.md",
    "Add to `.env`:\n```env\nA=1\n```\n": ".env",
    "**For TODO.md:**\n```markdown\nx\n```\n": "TODO.md",
    "Looking at the a.py:\n```python\nx\n```\n": "a.py",
    "```csharp\n// Update Core/Ship.cs\nx\n```\n": "Core/Ship.cs",
    "```typescript\napp/a.ts\nx\n```\n": "app/a.ts",
    "```csharp\n// In Ship.cs, change the speed\nx\n```\n": "Ship.cs",
    "**In TODO.md, change:**\n```\n- [ ] x\n```\n": "TODO.md",
    "With no errors in build.log, change TODO.md:\n```markdown\nx\n```\n": "TODO.md",
    "In `a.py`, the end of `src/a.py`:\n```python\nx\n```\n": "src/a.py",
    "```diff\n- x\n+ y\n```\n": "",
}
PLAIN = [
    "Run `a.py`:\n```bash\npython a.py\n```\n",
    "Run `a.py`:\n```\npython a.py\n```\n",
    "The output of `pytest tests/a.py`:\n```\nx\n```\n",
    "If:\n```\nx\n```\n",
    "Update:\n```\nx\n```\n",
    "</Section>\n```\nx\n```\n",
    "PowerShell:\n```powershell\nx\n```\n",
    "@enduml\n```\nx\n```\n",
    "Build it:\n```bash\n./build.sh\n```\n",
    "Call it:\n```python\n# a remark\nx\n```\n",
    "`a.py` and `b.py` share this:\n```python\nx\n```\n",
    "I have changed `a.py`.\n```python\nx\n```\n",
    "```text\napp.py\ntests/\n```\n",
]


@each_row(("text", "path"), DOUBTFUL.items())
def test_a_block_that_could_be_a_change_is_doubtful(text: str, path: str) -> None:
    (block,) = parse_reply(text).doubts
    assert block.path == path


@each_row("text", PLAIN)
def test_a_block_that_is_hardly_a_change_is_listed_without_a_doubt(text: str) -> None:
    reply = parse_reply(text)
    assert (len(reply.blocks), reply.doubts) == (1, ())


def test_what_the_project_has_and_what_another_block_changes_is_not_doubtful(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text("x = 1\ny = 2\n")
    known = ProjectNames.collect(tmp_path)
    shown = "In `a.py` there is:\n```python\ny = 2\n```\n"
    (block,) = blocks_of(shown, known)
    assert (block.fate, block.path, block.is_doubtful) == (EXPLANATION, "a.py", False)
    changed = "Change `a.py`:\n```python\ny = 3\n```\n\n```python:a.py\ny = 3\n```\n"
    first, second = blocks_of(changed, known)
    assert (first.fate, first.is_doubtful) == (EXPLANATION, False)
    assert second.fate is APPLIED


def test_all_reasons_are_given_at_once() -> None:
    with pytest.raises(ReplyRefused) as refused_reply:
        parse_reply(f"{SEARCH}\nAnd:\n\n```yaml\n- execute: ls\n```\n")
    assert len(refused_reply.value.problems) == 2
    assert "search/replace" in refused_reply.value.message
    assert "execute" in refused_reply.value.message


def test_blocks_of_a_reply_that_is_refused_later() -> None:
    blocks = blocks_of("```text:a\nx\n```\n```text:./b\ny\n```\n```sh\nz\n```\n")
    first, second, third = refused(blocks, [EditProblem("b", "It is a folder.")])
    assert (first.fate, second.fate, third.fate) == (REFUSED, REFUSED, EXPLANATION)
    assert second.reason == "It is a folder."
    assert first.reason not in ("", second.reason)


Piece = list[tuple[str, bool]]
"""Lines, each with whether it is words or a name: only these may be in no block."""
NAMES = ["src/app.py", "a.txt", "NEWS", "bin/deploy", "notes.md", "Makefile", ".env"]
ABOVE = ["{}", "**{}**", "### {}", "`{}`:", "File: {}", "Change `{}` as follows:"]
LANGUAGES = ["", "python", "text", "bash", "json", "markdown", "diff"]
MARKS = ["```", "````", "~~~"]


def words(*lines: str) -> Piece:
    return [(line, True) for line in lines]


def block(*lines: str) -> Piece:
    return [(line, False) for line in lines]


@st.composite
def pieces(draw: st.DrawFn, number: int, *, is_last: bool = False) -> Piece:
    """A piece of a reply. Each line of a block that could be of a file is unique. The
    last one may be unfinished.
    """
    name, mark = draw(st.sampled_from(NAMES)), draw(st.sampled_from(MARKS))
    language = draw(st.sampled_from(LANGUAGES))
    line, other = f"value = {number}", f"value = {number}0"
    above = words(draw(st.sampled_from(ABOVE)).format(name), *draw(blank))
    search = ("<<<<<<< SEARCH", line, "=======", other, ">>>>>>> REPLACE")
    diff = (f"--- a/{name}", f"+++ b/{name}", "@@ -1 +1 @@", f"-{line}", f"+{other}")
    patch = (f"*** Update File: {name}", "@@", f"-{line}", f"+{other}")
    action = (
        "- action: edit",
        f"  file_path: {name}",
        f"  find: {line}",
        "  replace: y",
    )
    creation = (
        f'{{"name": "create_file", "arguments": {{"file_path": "{name}",'
        f' "content": "{line}"}}}}'
    )
    command = '{"name": "execute_command", "arguments": {"command": "make"}}'
    finished = [
        words("I do it.", "- a point", "> a quote"),
        [*above, *block(f"{mark}{language}", line, mark)],
        block(f"{mark}{language}:{name}", line, mark),
        block(f"{mark}{language} {name}", line, mark),
        block(f'{mark}{language} file="{name}"', line, mark),
        block(f"{mark}{language}", line, mark),
        block(f"{mark}{language}", f"# {name}", line, mark),
        block(mark, name, mark, f"{mark}{language}", line, mark),
        [*above, *block(*search)],
        [*above, *block(f"{mark}{language}", *search, *search, mark)],
        block(f"{mark}{language}:{name}", *search, mark),
        block(f"{mark}{language}", name, *search, mark),
        block(*search),
        [*above, *block(f"<source>{language}", *search, "</source>")],
        [*above, *block(f"<source>{language}", line, "</source>")],
        block(f"{mark}diff", *diff, mark),
        block(f"{mark}diff", *diff[3:], mark),
        block(f"{mark}diff", *diff[2:], mark),
        [*block(*diff), *words("", "That is all.")],
        block("*** Begin Patch", *patch, "*** End Patch"),
        block(f"{mark}{language}", *patch, mark),
        block(f"{mark}yaml", *action, "  replace: y", mark),
        block("<tool_call>", creation, "</tool_call>"),
        block("<tool_call>", command, "</tool_call>"),
        block(
            "<write_to_file>",
            f"<path>{name}</path>",
            *("<content>", line, "</content>"),
            "</write_to_file>",
        ),
        block(f"{mark}bash", f"cat > {name} <<'EOF'", line, "EOF", mark),
        block(f"{mark}text", "<tool_call>", creation, "</tool_call>", mark),
    ]
    unfinished = [
        block("<tool_call>", creation),
        block("<write_to_file>", f"<path>{name}</path>", "<content>", line),
        block(f"{mark}{language}:{name}", line),
        [*above, *block(f"{mark}{language}", line)],
        [*above, *block(*search[:3])],
        [*above, *block(*search[:2], search[4])],
        block("*** Begin Patch", *patch),
        block(*action),
        block(mark),
    ]
    return draw(st.sampled_from(finished + unfinished * is_last))


blank = st.sampled_from([(), ("",)])
replies = st.integers(1, 6).flatmap(
    lambda count: st.tuples(
        *(pieces(number) for number in range(11, 10 + count)),
        pieces(10 + count, is_last=True),
    )
)


@each_row(
    "line",
    ["Here is src/app.py:", "This is src/app.py", "That was src/app.py:"],
)
def test_a_sentence_that_ends_with_a_file_could_name_it(line: str) -> None:
    known = ProjectNames(listed=frozenset({"src/app.py"}))
    (block,) = blocks_of(f"{line}\n```python\nx\n```\n", known)
    assert (block.path, block.is_doubtful) == ("src/app.py", True)
    assert block.is_requested
    assert block.is_requested


@settings(max_examples=count_examples(150))
@given(replies, st.sampled_from(["", "<think>\nx\n</think>"]))
@example((block("```text:a.txt", "value = 1"),), "")
def test_nothing_that_could_be_a_file_is_lost(
    made: tuple[Piece, ...], thoughts: str
) -> None:
    lines: Piece = [(line, False) for line in thoughts.splitlines()]
    # without a word, a reply in a fence is one without it
    lines += words("Here it is.", "")
    for piece in made:
        lines += [*piece, ("", True)]
    text = "\n".join(line for line, _ in lines)
    edited: set[str] | None = None
    try:
        reply = parse_reply(text)
        blocks = reply.blocks
        edited = {edit.path for edit in reply.edits if not isinstance(edit, ModeChange)}
    except ReplyRefused as refusal:
        blocks = refusal.blocks
        assert any(block.fate is REFUSED for block in blocks)
    covered = {
        number for block in blocks for number in range(block.line, block.end + 1)
    }
    lost = [
        line
        for number, (line, is_words) in enumerate(lines, 1)
        if number not in covered and not is_words
    ]
    assert lost == []
    # what is applied is what the edits change, and a refused reply applies nothing
    applied = {block.path for block in blocks if block.fate is APPLIED}
    assert applied == (edited or set())
    assert all(block.reason for block in blocks if block.fate is not APPLIED)
    assert [block.line for block in blocks] == sorted(block.line for block in blocks)
