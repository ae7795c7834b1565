"""Calls of tools that a model has written into the text of its reply: which of them
are carried out, and which refuse the reply.
"""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import (
    Deletion,
    ReplyRefused,
    TextReplacement,
    WholeFile,
)
from cdd_agent.changes.parse import parse_reply
from tests.changes.applying import CALC, PROJECT, apply, expected, tree, write
from tests.changes.written_calls import DIALECTS, Text
from tests.support.tables import each_row

NOTES = "# Notes\n\nIt says \"1 + 1\", C:\\new\\table and ä.\n\n    x = 'y'\n"
GOOD = "```python:src/sum.py\nadd = sum\n```\n"
CREATE = ("create_file", {"file_path": "NOTES.md", "content": NOTES})
EDIT = (
    "edit_file",
    {"path": "src/calc.py", "old_string": "a + b", "new_string": "sum((a, b))"},
)
DELETE = ("delete_file", {"path": "README.md"})
MOVE = ("move_file", {"source": "README.md", "destination": "docs/README.md"})
EXECUTE = ("execute_command", {"command": "pytest -q"})
READ = ("read_file", {"path": "src/calc.py"})
UNKNOWN = ("ask_oracle", {"question": "why?"})
SUM = CALC.replace("a + b", "sum((a, b))")
CARRIED_OUT: dict[str, tuple[tuple[str, dict[str, str]], dict[str, str | None]]] = {
    "create": (CREATE, {"NOTES.md": NOTES}),
    "edit": (EDIT, {"src/calc.py": SUM}),
    "delete": (DELETE, {"README.md": None}),
    "move": (MOVE, {"README.md": None, "docs/README.md": PROJECT["README.md"]}),
}
NOT_CARRIED_OUT = {"execute": EXECUTE, "read": READ, "unknown": UNKNOWN}
ONLY_KNOWN_TOOLS = (
    *(
        "JSON in Cline's tag",
        "Cline",
        "Cline on lines",
        "xml fence",
        "json fence",
        "json fence of a tool",
    ),
)
"""Dialects that look like other text: there only known names are tools."""


def reason(reply: str, known: ProjectNames | None = None) -> str:
    """Why the reply is refused, with the hint."""
    with pytest.raises(ReplyRefused) as caught:
        parse_reply(reply, known or ProjectNames())
    return f"{caught.value.message}\n{caught.value.hint}"


@each_row("dialect", DIALECTS)
def test_file_actions_are_carried_out(dialect: str, tmp_path: Path) -> None:
    for what, (call, changed) in CARRIED_OUT.items():
        root = tmp_path / what
        write(root, PROJECT)
        apply(root, f"I do it.\n\n{DIALECTS[dialect].write(*call)}\n")
        assert tree(root) == expected(changed), what


@each_row("dialect", DIALECTS)
def test_calls_and_code_blocks_are_one_list_in_the_order_of_the_reply(
    dialect: str,
) -> None:
    form = DIALECTS[dialect]
    create = form.write(*CREATE)
    edit = form.write(*EDIT)
    reply = f"First:\n\n{create}\n\nThen:\n\n{GOOD}\nAnd:\n\n{edit}\n\nDone.\n"
    assert parse_reply(reply).edits == (
        WholeFile("NOTES.md", NOTES, must_be_new=True),
        WholeFile("src/sum.py", "add = sum\n"),
        TextReplacement("src/calc.py", "a + b", "sum((a, b))"),
    )
    assert parse_reply(reply).explanation == "First:\n\nThen:\n\nAnd:\n\nDone."


@each_row("dialect", DIALECTS)
def test_two_calls_follow_each_other(dialect: str) -> None:
    form = DIALECTS[dialect]
    for between in ("\n\n", "\n"):
        reply = form.write(*CREATE) + between + form.write(*DELETE) + "\n"
        assert parse_reply(reply).edits == (
            WholeFile("NOTES.md", NOTES, must_be_new=True),
            Deletion("README.md"),
        )


@each_row("dialect", DIALECTS)
def test_any_other_call_refuses_the_whole_reply(dialect: str) -> None:
    for name, arguments in NOT_CARRIED_OUT.values():
        if name == "ask_oracle" and dialect in ONLY_KNOWN_TOOLS:
            continue
        call = DIALECTS[dialect].write(name, arguments)
        for before, after in (("", ""), (GOOD + "\n", ""), ("", f"\n\n{GOOD}")):
            words = reason(before + call + after)
            number = before.count("\n") + 1
            assert f"Line {number} " in words or f"line {number} " in words
            assert f"`{name}`" in words
            assert "search/replace" in words


@each_row("dialect", DIALECTS)
def test_a_call_in_a_named_file_is_its_content(dialect: str) -> None:
    for call in (CREATE, EXECUTE):
        content = f"# Calls\n\n{DIALECTS[dialect].write(*call)}\n"
        for info in ("markdown:docs/calls.md", "python:tests/calls.py"):
            reply = f"I tell of calls.\n\n````{info}\n{content}````\n"
            path = info.partition(":")[2]
            assert parse_reply(reply).edits == (WholeFile(path, content),)
        content = f"{DIALECTS[dialect].write(*call)}\n"
        for path in ("call.json", "call.xml", "call.txt"):
            reply = f"I tell of calls.\n\n````{path[5:]}:{path}\n{content}````\n"
            assert parse_reply(reply).edits == (WholeFile(path, content),)


@each_row("dialect", DIALECTS)
def test_a_call_in_a_text_block_or_in_backticks_is_an_explanation(
    dialect: str,
) -> None:
    call = DIALECTS[dialect].write(*CREATE)
    reply = f"A call is\n\n````text\n{call}\n````\n\n{GOOD}"
    assert parse_reply(reply).edits == (WholeFile("src/sum.py", "add = sum\n"),)
    if "\n" not in call and "`" not in call:
        reply = f"A call is `{call}` there.\n\n{GOOD}"
        assert parse_reply(reply).edits == (WholeFile("src/sum.py", "add = sum\n"),)


@each_row("dialect", DIALECTS)
def test_a_call_in_thoughts_is_none(dialect: str) -> None:
    call = DIALECTS[dialect].write(*EXECUTE)
    reply = f"<think>\nPerhaps:\n{call}\n</think>\n{GOOD}"
    assert parse_reply(reply).edits == (WholeFile("src/sum.py", "add = sum\n"),)


@each_row("dialect", DIALECTS)
def test_a_call_in_the_thoughts_of_gpt_oss_is_none(dialect: str) -> None:
    draft = DIALECTS[dialect].write(*EXECUTE)
    if "<|" in draft:  # which ends the channel
        return
    thoughts = f"<|channel|>analysis<|message|>Perhaps:\n{draft}\n<|end|>"
    answer = f"<|start|>assistant<|channel|>final<|message|>I do.\n\n{GOOD}<|return|>"
    assert parse_reply(thoughts + answer).edits == (
        WholeFile("src/sum.py", "add = sum\n"),
    )
    call = DIALECTS["harmony"].write(*DELETE)
    assert parse_reply(thoughts + call).edits == (Deletion("README.md"),)


@each_row("dialect", DIALECTS)
def test_an_unfinished_call_is_a_cut_reply(dialect: str) -> None:
    call = DIALECTS[dialect].write(*CREATE)
    for place in (call.index("NOTES.md") + 9, call.index("1 + 1"), call.index("C:")):
        words = reason(f"I do.\n\n{GOOD}\n{call[:place]}")
        assert "line 7 " in words.lower(), place
        assert "cut" in words, place


@given(
    dialect=st.sampled_from(sorted(DIALECTS)),
    content=st.lists(
        st.one_of(
            st.text(
                st.characters(
                    blacklist_categories=("Cs", "Cc"), whitelist_characters="\t"
                )
            ),
            st.sampled_from(
                [
                    *("", "```", "````", "~~~", "```python:a.py", "`x`", "# x", "- y"),
                    *(
                        "<html>",
                        "</div>",
                        "<content>",
                        '"',
                        "'''",
                        "\\n",
                        "{",
                        "}",
                        "]",
                    ),
                    *(
                        "<tool_call>",
                        "</tool_call>",
                        "[TOOL_CALLS]",
                        "<think>",
                        "$ rm x",
                    ),
                    *("diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "+x"),
                ]
            ),
        ),
        min_size=1,
    ).map(lambda lines: "".join(f"{line}\n" for line in lines)),
)
def test_an_argument_may_be_any_text(dialect: str, content: str) -> None:
    """Where the text has marks of the very dialect, it may be refused, but it never
    becomes another text. Raw text may begin on the line after its mark.
    """
    arguments = {"file_path": "a.txt", "content": content}
    reply = f"I do.\n\n{DIALECTS[dialect].write('write_file', arguments)}\n"
    try:
        edits = parse_reply(reply).edits
    except ReplyRefused:
        assert DIALECTS[dialect].text is Text.RAW
        assert any(mark in content for mark in ("<", "`", "~~~"))
        return
    if DIALECTS[dialect].text is Text.RAW:
        (edit,) = edits
        assert isinstance(edit, WholeFile)
        assert edit.content.strip("\n") == content.strip("\n")
        return
    assert edits == (WholeFile("a.txt", content),)


WHOLE = st.builds(
    lambda dialect, call: DIALECTS[dialect].write(*call),
    st.sampled_from(sorted(DIALECTS)),
    st.sampled_from([CREATE, EDIT, DELETE, EXECUTE, UNKNOWN]),
)
CUT = st.builds(
    lambda call, start, end: call[start : len(call) - end],
    WHOLE,
    st.integers(0, 80),
    st.integers(0, 80),
)
WORDS = st.sampled_from(
    [
        *(
            "I do it.",
            "",
            "```",
            "```python:a.py",
            "````text",
            "> quoted",
            "`",
            "{",
            "]",
        ),
        *("<think>", "</think>", "Action: x", "$ rm x", "```bash", "<tool_call>"),
        *("src/calc.py", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "--- a/x"),
    ]
)


@given(
    st.lists(
        st.tuples(st.one_of(WHOLE, CUT, WORDS), st.sampled_from("\n ")), max_size=6
    )
)
def test_any_mixture_of_calls_is_read_or_refused(pieces: list[tuple[str, str]]) -> None:
    """Each call that was found is applied, refused or an explanation."""
    reply = "".join(piece + end for piece, end in pieces)
    with suppress(ReplyRefused):
        assert all(block.line <= block.end for block in parse_reply(reply).blocks)


@given(
    WHOLE,
    st.sampled_from(["", "Words.\n\n", GOOD + "\n"]),
    st.sampled_from(["", "\n\nWords.\n"]),
)
def test_no_whole_call_is_passed_over(call: str, before: str, after: str) -> None:
    try:
        blocks = parse_reply(before + call + after).blocks
    except ReplyRefused as refusal:
        blocks = refusal.blocks
    line = before.count("\n") + 1
    is_unknown = UNKNOWN[0] in call
    assert is_unknown or any(
        block.kind.startswith("call of") and block.line == line for block in blocks
    )
