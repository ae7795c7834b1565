"""Edits that are found in a reply, and replies that are too uncertain to use."""

import contextlib
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cdd_agent.changes.model import Edit, ReplyRefused, WholeFile
from cdd_agent.changes.parse import parse_reply
from tests.support.tables import each_row


def edits(text: str) -> tuple[Edit, ...]:
    return parse_reply(text).edits


def test_files_are_taken_exactly_and_the_rest_is_not() -> None:
    files = edits(
        "I add a model.\n\n"
        "```python:src/user.py\n"
        "class User:\n\n"
        "    name: str  \n"
        "```\n\n"
        "And an example:\n\n"
        "```python\n"
        "User()\n"
        "```\n\n"
        "~~~toml:my app.toml\n"
        "[a]\n"
        "~~~\n"
        "Done."
    )
    assert files == (
        WholeFile("src/user.py", "class User:\n\n    name: str  \n"),
        WholeFile("my app.toml", "[a]\n"),
    )


@each_row(
    "text",
    [
        "",
        "Just words.",
        "```python\nprint(1)\n```",
        "    ```python:a.py\n    x\n    ```",
    ],
)
def test_a_reply_may_have_no_files(text: str) -> None:
    assert edits(text) == ()


def test_a_block_in_a_list_or_quote_is_a_file_too() -> None:
    assert edits("1. First:\n\n   ```py:a.py\n   x = 1\n   ```\n") == (
        WholeFile("a.py", "x = 1\n"),
    )
    assert edits("> ```py:a.py\n> x = 1\n> ```\n") == (WholeFile("a.py", "x = 1\n"),)


def test_an_empty_block_is_an_empty_file() -> None:
    assert edits("```python:pkg/__init__.py\n```\n") == (
        WholeFile("pkg/__init__.py", ""),
    )


def test_a_longer_fence_may_hold_fences() -> None:
    text = "````markdown:README.md\n# Hi\n```bash\nls\n```\n````\n"
    assert edits(text) == (WholeFile("README.md", "# Hi\n```bash\nls\n```\n"),)


@each_row(
    ("text", "reason"),
    [
        ("```python:a.py\nx = (1,\n", "never closed"),
        ("```text:a.txt\nx = 1\n", "never closed"),
        ("```python:a.py", "never closed"),
        ("````python:a.py\nx = 1\n```", "never closed"),
        ("```python:a.py\nx = 1\n`y`\n", "never closed"),
        ("```markdown:R.md\n# Hi\n```bash\nls\n```\nmore\n```\n", "unclear where"),
        ("```py:a.py\n1\n```\n```py:a.py\n2\n```\n", "twice"),
        ("```markdown:R.md\n# Hi\n```\nls\n```\nmore\n```\n", "unclear where"),
        ("```markdown:R.md\n# Hi\n```\nls\n```\nmore\n", "unclear where"),
    ],
)
def test_an_uncertain_reply_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ReplyRefused, match=reason):
        edits(text)


def test_the_same_block_twice_is_one_file() -> None:
    assert len(edits("```py:a.py\n1\n```\n```py:a.py\n1\n```\n")) == 1


@given(st.text())
def test_any_text_is_a_reply_or_refused(text: str) -> None:
    with contextlib.suppress(ReplyRefused):
        assert edits(text) is not None


@given(st.text(st.characters(exclude_characters="\r\0", exclude_categories=("Cs",))))
@example("*** Begin Patch")
@example("--- a\n+++ b\n")
def test_any_content_comes_back_exactly_from_a_fence_longer_than_its_own(
    content: str,
) -> None:
    content = f"A text, and no other form:\n{content}"
    # a block that begins in it has to end in it
    assume(not re.search("<{5}|-{5}", content))
    content = content if not content or content.endswith("\n") else content + "\n"
    fence = "`" * (max((len(run) for run in re.findall("`+", content)), default=0) + 3)
    assert edits(f"Words.\n\n{fence}txt:a.txt\n{content}{fence}\n") == (
        WholeFile("a.txt", content),
    )
