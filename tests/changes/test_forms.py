"""Forms of edits: what a new one has to be, and how several get along."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from cdd_agent.changes import parse
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.known import KnownNames
from cdd_agent.changes.model import Edit, ReplyRefused, WholeFile
from cdd_agent.changes.parse import parse_reply
from tests.changes.applying import apply, tree, write

OPENING = re.compile(r"<write path=(?P<path>\S+)>")


class Tags(Form):
    """`<write path=NAME>`, the file's lines, `</write>`."""

    def marked(self, lines: Sequence[str], known: KnownNames) -> list[Span]:
        starts = [place for place, line in enumerate(lines) if OPENING.fullmatch(line)]
        ends = [lines.index("</write>", start) + 1 for start in starts]
        return [
            Span(start, end, partial(self.written, lines[start:end]), names_files=True)
            for start, end in zip(starts, ends, strict=True)
        ]

    def refuse_loose(self, line: str, number: int) -> None:
        if line == "</write>":
            raise ReplyRefused(f"Line {number} ends what was never begun.")

    @staticmethod
    def written(lines: Sequence[str], path: str | None) -> list[Edit]:
        assert path is None
        begun = OPENING.fullmatch(lines[0])
        assert begun
        return [WholeFile(begun["path"], "".join(f"{line}\n" for line in lines[1:-1]))]


def test_a_new_form_is_one_class_and_a_name_in_the_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parse, "FORMS", (*parse.FORMS, Tags()))
    reply = parse_reply(
        "So be it:\n\n<write path=a.md>\n```sh\nls\n```\n</write>\n\nThat is all.\n"
    )
    assert reply.edits == (WholeFile("a.md", "```sh\nls\n```\n"),)
    assert reply.explanation == "So be it:\n\nThat is all."
    with pytest.raises(ReplyRefused, match="Line 3"):
        parse_reply("Here:\n\n</write>\n")


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
