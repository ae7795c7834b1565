"""What calls mean for the files, by the names that agents give to tools and to their
arguments; and text that only speaks of calls.
"""

from html import escape
from pathlib import Path

import pytest

from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import (
    Deletion,
    Edit,
    Renaming,
    Replacement,
    ReplyRefused,
    TextReplacement,
    WholeFile,
)
from cdd_agent.changes.parse import parse_reply
from tests.changes.applying import PROJECT, apply, expected, tree, write
from tests.changes.written_calls import DIALECTS, as_json
from tests.support.tables import each_row

MADE = WholeFile("a.py", "x = 1\n", must_be_new=True)
WRITTEN = WholeFile("a.py", "x = 1\n")
CHANGED = TextReplacement("a.py", "x = 1", "x = 2")
BLOCK = "------- SEARCH\nx = 1\n=======\nx = 2\n+++++++ REPLACE\n"
ESCAPED = BLOCK.replace("-------", "<<<<<<<").replace("+++++++", ">>>>>>>")
ROO = "<<<<<<< SEARCH\n:start_line:1\n-------\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE"
PATCH = (
    "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n"
    "*** Delete File: b.py\n*** End Patch"
)
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
Call = tuple[str, dict[str, object]]

MEANINGS: dict[str, tuple[Call, tuple[Edit, ...]]] = {
    "this program's creation": (
        ("create_file", {"file_path": "a.py", "content": "x = 1\n"}),
        (MADE,),
    ),
    "this program's edit": (
        ("edit_file", {"file_path": "a.py", "find": "x = 1", "replace": "x = 2"}),
        (CHANGED,),
    ),
    "VS Code's creation": (
        ("create_file", {"filePath": "a.py", "content": "x = 1\n"}),
        (MADE,),
    ),
    "VS Code's edit": (
        (
            "replace_string_in_file",
            {"filePath": "a.py", "oldString": "x = 1", "newString": "x = 2"},
        ),
        (CHANGED,),
    ),
    "Claude Code's Write": (
        ("Write", {"file_path": "a.py", "content": "x = 1\n"}),
        (WRITTEN,),
    ),
    "Claude Code's Edit": (
        ("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}),
        (CHANGED,),
    ),
    "Claude Code's Edit of all": (
        (
            "Edit",
            {
                "file_path": "a.py",
                "old_string": "x = 1",
                "new_string": "x = 2",
                "replace_all": False,
            },
        ),
        (CHANGED,),
    ),
    "Claude Code's MultiEdit": (
        (
            "MultiEdit",
            {
                "file_path": "a.py",
                "edits": [
                    {"old_string": "x = 1", "new_string": "x = 2"},
                    {"old_string": "y", "new_string": "z"},
                ],
            },
        ),
        (CHANGED, TextReplacement("a.py", "y", "z")),
    ),
    "a list of edits as a text": (
        (
            "multi_edit",
            {"path": "a.py", "edits": '[{"old_text": "x = 1", "new_text": "x = 2"}]'},
        ),
        (CHANGED,),
    ),
    "an edit without old text": (
        ("Edit", {"file_path": "a.py", "old_string": "", "new_string": "x = 1\n"}),
        (MADE,),
    ),
    "MCP's write": (
        ("mcp__filesystem__write_file", {"path": "a.py", "content": "x = 1\n"}),
        (WRITTEN,),
    ),
    "MCP's edit": (
        (
            "filesystem.edit_file",
            {"path": "a.py", "edits": [{"oldText": "x = 1", "newText": "x = 2"}]},
        ),
        (CHANGED,),
    ),
    "a namespace": (
        ("functions.create_file", {"path": "a.py", "content": "x = 1\n"}),
        (MADE,),
    ),
    "Anthropic's editor creates": (
        (
            "str_replace_based_edit_tool",
            {"command": "create", "path": "a.py", "file_text": "x = 1\n"},
        ),
        (MADE,),
    ),
    "Anthropic's editor replaces": (
        (
            "str_replace_editor",
            {
                "command": "str_replace",
                "path": "a.py",
                "old_str": "x = 1",
                "new_str": "x = 2",
            },
        ),
        (CHANGED,),
    ),
    "Gemini's replace": (
        (
            "replace",
            {
                "file_path": "a.py",
                "old_string": "x = 1",
                "new_string": "x = 2",
                "instruction": "Count up.",
            },
        ),
        (CHANGED,),
    ),
    "Gemini's write_file": (
        ("write_file", {"file_path": "a.py", "content": "x = 1\n"}),
        (WRITTEN,),
    ),
    "Cline's write": (
        ("write_to_file", {"path": "a.py", "content": "x = 1\n", "line_count": 1}),
        (WRITTEN,),
    ),
    "Cline's diff": (
        ("replace_in_file", {"path": "a.py", "diff": BLOCK}),
        (Replacement("a.py", ("x = 1",), ("x = 2",)),),
    ),
    "Roo's search": (
        ("search_and_replace", {"path": "a.py", "search": "x = 1", "replace": "x = 2"}),
        (CHANGED,),
    ),
    "a diff by its sides and lines": (
        (
            "apply_diff",
            {"path": "a.py", "search": "x = 1", "replace": "x = 2", "start_line": 1},
        ),
        (CHANGED,),
    ),
    "a diff with its lines": (
        (
            "apply_diff",
            {"path": "a.py", "diff": BLOCK, "start_line": 1, "end_line": 1},
        ),
        (Replacement("a.py", ("x = 1",), ("x = 2",)),),
    ),
    "a diff with escaped marks": (
        (
            "apply_diff",
            {"path": "a.py", "diff": escape(ESCAPED)},
        ),
        (Replacement("a.py", ("x = 1",), ("x = 2",)),),
    ),
    "a unified diff": (
        ("apply_diff", {"path": "a.py", "diff": DIFF}),
        (),
    ),
    "Codex's patch": (("apply_patch", {"input": PATCH}), ()),
    "a deletion": (("delete_file", {"target_file": "a.py"}), (Deletion("a.py"),)),
    "a renaming": (
        ("rename_file", {"old_path": "a.py", "new_path": "b.py"}),
        (Renaming("a.py", "b.py"),),
    ),
    "a move": (
        ("move_file", {"source": "a.py", "destination": "b.py"}),
        (Renaming("a.py", "b.py"),),
    ),
    "camel case": (
        ("createFile", {"fileName": "a.py", "contents": "x = 1\n"}),
        (MADE,),
    ),
    "dashes": (("save-file", {"path": "a.py", "text": "x = 1\n"}), (WRITTEN,)),
    "the end of a conversation": (("attempt_completion", {"result": "Done."}), ()),
    "a list of work": (("TodoWrite", {"todos": [{"content": "x"}]}), ()),
}
BY_TEXT = ("a unified diff", "Codex's patch")
"""Rows whose edits another form reads."""


@each_row("row", MEANINGS)
def test_a_call_means_edits(row: str) -> None:
    (name, arguments), edits = MEANINGS[row]
    call = as_json(name, arguments)
    for reply in (f"<tool_call>{call}</tool_call>", f"```json\n{call}\n```"):
        found = parse_reply(reply).edits
        if row in BY_TEXT:
            found, edits = found[:1], (Replacement("a.py", ("x = 1",), ("x = 2",)),)
            found = tuple(
                Replacement(edit.path, edit.find, edit.replace)
                for edit in found
                if isinstance(edit, Replacement)
            )
        assert found == edits


def test_roos_diff_keeps_its_line() -> None:
    reply = DIALECTS["Cline"].write("apply_diff", {"path": "a.py", "diff": ROO})
    (edit,) = parse_reply(reply).edits
    assert isinstance(edit, Replacement)
    assert (edit.find, edit.replace, edit.hint.line) == (("x = 1",), ("x = 2",), 1)


REFUSED: dict[str, tuple[Call, str]] = {
    "no path": (("create_file", {"content": "x"}), "`path`"),
    "an empty path": (("create_file", {"path": " ", "content": "x"}), "`path`"),
    "no content": (("create_file", {"path": "a.py"}), "`content`"),
    "content that is no text": (
        ("create_file", {"path": "a.json", "content": {"a": 1}}),
        "`content`",
    ),
    "a part of a file by its lines": (
        ("edit_file", {"path": "a.py", "content": "x", "start_line": 3}),
        "`start_line`",
    ),
    "an end that is appended": (
        ("write_file", {"path": "a.py", "content": "x", "append": True}),
        "`append`",
    ),
    "old text without new": (
        ("Edit", {"path": "a.py", "old_string": "x"}),
        "`new_string`",
    ),
    "an insertion by line": (
        ("str_replace_editor", {"command": "insert", "path": "a.py", "new_str": "x"}),
        "insert",
    ),
    "a look": (("str_replace_editor", {"command": "view", "path": "a.py"}), "view"),
    "a diff that is none": (("apply_diff", {"path": "a.py", "diff": "x"}), "diff"),
    "a search block of no file": (("apply_diff", {"diff": BLOCK}), "names no file"),
    "an empty list of edits": (("multi_edit", {"path": "a.py", "edits": []}), "list"),
    "two paths": (
        ("create_file", {"path": "a.py", "file_path": "b.py", "content": "x"}),
        "twice",
    ),
    "a deletion with content": (
        ("delete_file", {"path": "a.py", "content": "x"}),
        "content",
    ),
    "arguments that are no object": (("create_file", {}), "`path`"),
}


@each_row("row", REFUSED)
def test_a_file_action_that_is_not_understood_refuses_the_reply(row: str) -> None:
    (name, arguments), why = REFUSED[row]
    with pytest.raises(ReplyRefused) as caught:
        parse_reply(f"I do.\n\n<tool_call>{as_json(name, arguments)}</tool_call>")
    assert why in f"{caught.value.message} {caught.value.hint}"


@each_row(
    "call",
    [
        '<tool_call>{"name": "create_file", "arguments": {"path": "a"</tool_call>',
        '<tool_call>\n{"name": "create_file", "content": "say "x""}\n</tool_call>',
        "<tool_call>\nI do it.\n</tool_call>",
        "<tool_call>\n</tool_call>",
        '<invoke name="create_file">',
        "<function_calls>\n</function_calls>",
        "<create_file>\nThe file.\n</create_file>",
        "</invoke>",
        "I end.\n</function_calls>",
        'I do <tool_call>{"name": "write", "arguments": {}}</tool_call> there.',
        "[TOOL_CALLS]",
        "<|tool_calls_section_begin|>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>\nStrReplace",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        "<function=create_file>\n<parameter=filepath> test.txt\n<parameter=text> hi",
        "<bash>\npytest -q\n</bash>",
        "```tool_code\nfor x in y:\n    write_file(x)\n```",
        "```tool_code\n```",
    ],
)
def test_marks_of_a_call_without_a_whole_call_refuse_the_reply(call: str) -> None:
    with pytest.raises(ReplyRefused, match="call"):
        parse_reply(f"I do.\n\n{call}\n")


@each_row(
    "text",
    [
        "Hermes writes `<tool_call>` before its JSON, and `</tool_call>` after it.",
        'A call is <tool_call>{"name": "ls", "arguments": {}}</tool_call> in one line.',
        "They are like <tool_call>{...}</tool_call> there.",
        "The parser looks for <tool_call> and reads what follows.",
        "I removed the handling of <function_calls> from the parser.",
        'It finds <invoke name="x"> at once.',
        '> <tool_call>{"name": "ls", "arguments": {}}</tool_call>',
        'Its answer is `{"name": "ls", "arguments": {}}`.',
        "Action: restart the server\nThen look.",
        "The [TOOL_CALLS] mark is Mistral's.",
        '```json\n{"name": "calc", "version": "1"}\n```',
        '```json\n{"name": "Ada", "arguments": {"x": 1}}\n```',
        '```json\n{"tool": "ruff", "version": "1"}\n```',
        '{"name": "calc", "version": "1.0"}',
        "```python\ncreate_file(path='a', content='b')\n```",
        "```xml\n<project>\n<path>a</path>\n</project>\n```",
        "```html\n<div>Use <tool_call> here.</div>\n```",
        "```python\nTAG = '<tool_call>'\nprint(TAG)\n```",
        "[create_file](docs/tools.md) makes a file.",
        "<details>\n<summary>Why</summary>\nWell.\n</details>",
        "<path>src/a.py</path> is the path.",
        '<div>\n<parameter name="x">y</parameter> in XML, and so on.\n</div>',
    ],
)
def test_text_about_calls_is_explanation(text: str) -> None:
    reply = parse_reply(f"{text}\n\n```python:src/sum.py\nadd = sum\n```\n")
    assert reply.edits == (WholeFile("src/sum.py", "add = sum\n"),)


def test_edits_of_other_forms_may_speak_of_calls(tmp_path: Path) -> None:
    call = DIALECTS["Hermes, Qwen"].write("read_file", {"path": "x"})
    block = (
        "README.md\n<<<<<<< SEARCH\nIt adds.\n=======\n"
        f"It adds.\n\n{call}\n>>>>>>> REPLACE\n"
    )
    patch = "".join(f"+{line}\n" for line in call.split("\n"))
    diff = f"```diff\n--- a/README.md\n+++ b/README.md\n@@\n It adds.\n+\n{patch}```\n"
    added = (
        "*** Begin Patch\n*** Update File: README.md\n@@\n It adds.\n"
        f"+\n{patch}*** End Patch\n"
    )
    for place, reply in enumerate((block, diff, added)):
        root = tmp_path / str(place)
        write(root, PROJECT)
        apply(root, reply)
        text = PROJECT["README.md"] + f"\n{call}\n"
        assert tree(root) == expected({"README.md": text})


def test_a_patch_and_search_blocks_in_a_call_are_its_text(tmp_path: Path) -> None:
    write(tmp_path, PROJECT)
    text = f"# Forms\n\n{PATCH}\n\nsrc/calc.py\n{BLOCK}\n```python:x.py\nx\n```\n"
    for dialect in ("Claude", "Cline", "GLM", "Hermes, Qwen"):
        call = DIALECTS[dialect].write("write_file", {"path": "F.md", "content": text})
        assert parse_reply(f"I do.\n\n{call}\n").edits == (WholeFile("F.md", text),)


def test_a_call_in_a_call_is_its_text() -> None:
    """A file about calls, written by a call of the same dialect."""
    for dialect, form in DIALECTS.items():
        inner = form.write("read_file", {"path": "x"})
        text = f"# Calls\n\n{inner}\n\nThat is all.\n"
        reply = (
            f"I do.\n\n{form.write('write_file', {'path': 'C.md', 'content': text})}\n"
        )
        try:
            edits = parse_reply(reply).edits
        except ReplyRefused:
            assert dialect in ("xml fence", "Gemma 4"), dialect
            continue
        assert edits == (WholeFile("C.md", text),), dialect


def test_the_content_of_a_call_may_be_in_a_code_block() -> None:
    content = "```python\nx = 1\n```"
    arguments = {"path": "a.py", "content": content}
    for dialect in ("Claude", "Cline on lines", "Qwen coder"):
        reply = DIALECTS[dialect].write("create_file", arguments)
        assert parse_reply(reply).edits == (MADE,)
    tag = f'<create_file path="a.py">\n{content}\n</create_file>\n'
    assert parse_reply(tag).edits == (MADE,)
    assert parse_reply(tag.replace("```python\n", "").replace("\n```", "")).edits == (
        MADE,
    )
    assert parse_reply(tag.replace("</create_file>\n", "")).edits == (WRITTEN,)


def test_content_may_have_tags_that_look_like_arguments() -> None:
    atom = "<entry>\n<content>x</content>\n<author>y</author>\n</entry>\n"
    page = "<div>\n<path d='M0'/>\n<search></search>\n</div>\n"
    data = f"<![CDATA[{atom}]]>"
    for content, expected_text in ((atom, atom), (page, page), (data, atom)):
        for dialect in ("Cline", "Claude", "Qwen coder", "GLM"):
            arguments = {"path": "a.xml", "content": content}
            reply = DIALECTS[dialect].write("write_file", arguments)
            assert parse_reply(reply).edits == (WholeFile("a.xml", expected_text),)


def test_a_list_with_something_that_is_no_call_refuses_the_reply() -> None:
    call = as_json("delete_file", {"path": "a.py"})
    for other in ("1", '{"x": 1}', '{"name": 1}'):
        with pytest.raises(ReplyRefused):
            parse_reply(f"[TOOL_CALLS] [{call}, {other}]")


def test_other_namespaces_of_tags() -> None:
    for prefix in ("antml:", "", "steptml:", "｜DSML｜"):
        for around in ("function_calls", "tool_calls"):
            call = (
                f'<{prefix}{around}>\n<{prefix}invoke name="delete_file">\n'
                f'<{prefix}parameter name="path">a.py</{prefix}parameter>\n'
                f"</{prefix}invoke>\n</{prefix}{around}>"
            )
            assert parse_reply(call).edits == (Deletion("a.py"),)


def test_a_reply_that_is_one_code_block_of_a_call() -> None:
    call = DIALECTS["Claude"].write("delete_file", {"path": "a.py"})
    for language in ("", "xml"):
        reply = f"```{language}\n{call}\n```\n"
        assert parse_reply(reply).edits == (Deletion("a.py"),)
    other = DIALECTS["Claude"].write("read_file", {"path": "a.py"})
    with pytest.raises(ReplyRefused, match="read_file"):
        parse_reply(f"```xml\n{other}\n```\n")


def test_with_tools_the_hint_is_to_call_them() -> None:
    call = DIALECTS["Claude"].write("read_file", {"path": "a.py"})
    hints = []
    for has_tools in (False, True):
        with pytest.raises(ReplyRefused) as caught:
            parse_reply(call, ProjectNames(has_tools=has_tools))
        hints.append(caught.value.hint)
    assert "search/replace" in hints[0]
    assert "tool interface" in hints[1]
