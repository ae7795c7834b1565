"""Forms of edits that are in each other, or in one reply."""

from pathlib import Path

from tests.changes.applying import apply, tree, write

PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-{}\n+{}\n*** End Patch\n"
BLOCK = "{}\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"


def test_a_form_that_is_a_part_of_an_edited_text_is_no_edit(tmp_path: Path) -> None:
    example = PATCH.format("src/app.py", "x", "y").rstrip()
    write(tmp_path, {"docs/replies.md": "# Replies\n", "src/app.py": "x\n"})
    apply(
        tmp_path,
        BLOCK.format("docs/replies.md", "# Replies", f"# Replies\n\n{example}"),
    )
    assert tree(tmp_path) == {
        "docs/replies.md": f"# Replies\n\n{example}\n",
        "src/app.py": "x\n",
    }


def test_two_forms_may_stand_in_one_reply_and_in_one_code_block(tmp_path: Path) -> None:
    both = BLOCK.format("a.txt", "one", "1") + PATCH.format("b.txt", "two", "2")
    for reply in (both, f"```\n{both}```\n"):
        write(tmp_path, {"a.txt": "one\n", "b.txt": "two\n"})
        apply(tmp_path, reply)
        assert tree(tmp_path) == {"a.txt": "1\n", "b.txt": "2\n"}
