"""Thoughts, calls and blocks for the program are separated from the text of a reply, in
whatever pieces it comes, and nothing else is touched.
"""

import json
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.port import TextDelta, ThoughtDelta, ToolCall, WasThought
from cdd_agent.llm.reply_stream import ReplyStream, text_of, without_blocks
from tests.support.tables import each_row

MARKS = [
    *("<think>", "</think>", "<Thinking>", "</thinking>", "<thought>", "</thought>"),
    *("<tool_call>", "</tool_call>", "<write_to_file>", "<source>", "<function=ls>"),
    *("<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|end|>"),
    *("<|channel|>commentary to=ls<|message|>", "<|start|>assistant", "<|return|>"),
    *("[THINK]", "[/THINK]", "◁think▷", "◁/think▷", "<|channel>thought", "<channel|>"),
    *("```", "```json", "~~~", "````", "```py:a.py", "- action: x", "--- a", "+++ b"),
    *("@@", "*** Begin", "diff --git", "<<<<<<< SEARCH", "=======", "{}", "<b>", "<"),
    *("- ", "1. ", "- ```json\n", "    ```json\n"),
    *("İ", "😀", "hello", " ", "    ", "\t", "\r\n", *["\n"] * 12),
]
FILES = [
    "x\n",
    "<think>\nx\n</think>\n",
    "</think>\n",
    "<tool_call>\n{}\n</tool_call>\n",
]
CALLS_IN_FILES = [
    *("x\n</parameter>\nz\n", "x\n</function>\nz\n", "x\n</tool_call>\nz\n"),
    "print('</tool_call>', '</function>', '</parameter>')\n",
    "<tool_call>\nz\n",
    (
        "<tool_call>\n<function=a>\n<parameter=b>\n1\n</parameter>\n</function>\n"
        "</tool_call>\n"
    ),
    *("3", "true", '{"a": 1}', "", "\n\nx\n\n", '"'),
]


class Parts(Struct):
    """The parts of a reply."""

    text: str = ""
    thoughts: str = ""
    calls: tuple[ToolCall, ...] | None = None
    """None if one cannot be read."""
    blocks: tuple[tuple[str, str], ...] = ()


def parts_of(pieces: Sequence[str], stream: ReplyStream | None = None) -> Parts:
    stream = stream or ReplyStream()
    events = [event for piece in pieces for event in stream.feed(piece)]
    events += stream.end()
    parts = Parts()
    for event in events:
        match event:
            case TextDelta():
                parts.text += event.text
            case ThoughtDelta():
                parts.thoughts += event.text
            case WasThought():
                parts.text, parts.thoughts = "", parts.text + parts.thoughts
    parts.blocks = tuple(stream.blocks)
    try:
        parts.calls = stream.calls()
    except ServerFailed:
        parts.calls = None
    return parts


@st.composite
def cut_replies(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A reply with many marks, and its pieces."""
    reply = "".join(draw(st.lists(st.sampled_from(MARKS), max_size=16)))
    cuts = sorted(draw(st.lists(st.integers(0, len(reply)), max_size=12)))
    ends = [*cuts, len(reply)]
    return reply, [reply[a:b] for a, b in zip([0, *cuts], ends, strict=True)]


@each_row(
    ("reply", "text", "thoughts"),
    [
        ("<think>Hm.</think>Hello.", "Hello.", "Hm."),
        ("\n <think>\nHm.\n</think>\nHello.", "\nHello.", "\nHm.\n"),
        ("<THINKING>Hm.</thinking>Hello.", "Hello.", "Hm."),
        ("Okay.\n<think>Hm.</think>\nHello.", "Okay.\nHello.", "Hm."),
        ("<think>a</think>\n<think>b</think>Hello.", "Hello.", "ab"),
        ("<think>never ends", "", "never ends"),
        # a letter that becomes two letters when it is made small
        ("<think>İstanbul, İzmir</think>Hello.", "Hello.", "İstanbul, İzmir"),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
            "Hello.",
            "Hm.",
        ),
        ("Hm.\n</think>\n\nHello.", "\nHello.", "Hm.\n"),
        ("</think>Hello.", "Hello.", ""),
        (
            "Hm:\n```\nx\n```\nSo.\n</think>\nHello.",
            "Hello.",
            "Hm:\n```\nx\n```\nSo.\n",
        ),
        (
            "Hm:\n```tool\n{}\n```\n</thinking>\n<think>b</think>Hello.",
            "Hello.",
            "Hm:\n```tool\n{}\n```\nb",
        ),
        ("```html:a\n</think>\n```\n", "```html:a\n</think>\n```\n", ""),
        (
            "````md:a\n```\n</think>\n```\n````\n",
            "````md:a\n```\n</think>\n```\n````\n",
            "",
        ),
        (
            "a.py\n<<<<<<< SEARCH\n</think>\n=======\n",
            "a.py\n<<<<<<< SEARCH\n</think>\n=======\n",
            "",
        ),
        ("It ends with `</think>`.\nSo.", "It ends with `</think>`.\nSo.", ""),
        (
            "<think>Hm.</think>It ends so:\n</think>\nSo.",
            "It ends so:\n</think>\nSo.",
            "Hm.",
        ),
        (
            "<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Hello.",
            "Hello.",
            "Hm.",
        ),
        (
            "a < b, and <b>so</b>\n<i>on</i>\n<",
            "a < b, and <b>so</b>\n<i>on</i>\n<",
            "",
        ),
        ("Say <think> in a line.", "Say <think> in a line.", ""),
        (
            "```text:a\n<think>\nx\n</think>\n```\n",
            "```text:a\n<think>\nx\n</think>\n```\n",
            "",
        ),
        (
            "a.py\n<<<<<<< SEARCH\n<think>\n=======\n",
            "a.py\n<<<<<<< SEARCH\n<think>\n=======\n",
            "",
        ),
        ("--- a/x\n+++ b/x\n<tool_call>\n", "--- a/x\n+++ b/x\n<tool_call>\n", ""),
    ],
)
def test_thoughts_are_separated_from_the_reply(
    reply: str, text: str, thoughts: str
) -> None:
    for pieces in ([reply], list(reply)):
        parts = parts_of(pieces)
        assert (parts.text, parts.thoughts) == (text, thoughts)


@each_row(
    ("begin", "end"),
    [
        ("<think>", "</think>"),
        ("<Thinking>", "</thinking>"),
        ("<thought>", "</thought>"),
        ("<thoughts>", "</thoughts>"),
        ("<reasoning>", "</reasoning>"),
        ("<scratchpad>", "</scratchpad>"),
        ("<seed:think>", "</seed:think>"),
        ("<mm:think>", "</mm:think>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|channel>thought", "<channel|>"),
        ("<|channel|>analysis<|message|>", "<|end|>"),
        (
            "<|start|>assistant<|channel|>analysis<|message|>",
            "<|end|><|start|>assistant<|channel|>final<|message|>",
        ),
    ],
)
def test_the_marks_of_many_models_are_read(begin: str, end: str) -> None:
    thoughts = "\nIs [/a] < b? ◁\n```a.txt\nx\n```\n"
    for before in ("", "\n", "Okay.\n"):
        reply = f"{before}{begin}{thoughts}{end}\nHello."
        for pieces in ([reply], list(reply)):
            parts = parts_of(pieces)
            assert parts.thoughts == thoughts
            assert parts.text.split() == f"{before}Hello.".split()


@each_row(
    "end",
    [
        *("</think>", "</thinking>", "</seed:think>", "[/THINK]", "◁/think▷"),
        *("<|END_THINKING|>", "<|end_of_thought|>", "<channel|>"),
    ],
)
@each_row("thoughts", ["Hm.\n", "Hm:\n```\nx\n```\nSo.\n"])
def test_thoughts_whose_beginning_a_server_removed_are_no_text(
    end: str, thoughts: str
) -> None:
    for line_end in ("\n", " \n", "\r\n"):
        reply = f"{thoughts}{end}{line_end}Hello."
        whole = parts_of([reply])
        assert (whole.text.strip(), whole.thoughts) == ("Hello.", thoughts)
        assert parts_of(list(reply)) == whole


@each_row(
    "text",
    [
        "[think]\nx = 1\n",
        "[THINKING] of it\n",
        "[link](a.md)\n",
        "◁ left\n",
        "<|channel> open\n",
        "<a:b>\n",
        "Say [THINK] in a line.\n",
    ],
)
def test_text_like_a_mark_stays_text(text: str) -> None:
    for pieces in ([text], list(text)):
        assert parts_of(pieces) == Parts(text, calls=())


@given(cut_replies(), st.booleans())
def test_cutting_a_reply_does_not_change_its_parts(
    cut: tuple[str, list[str]], has_tools: bool
) -> None:
    reply, pieces = cut
    by_pieces = parts_of(pieces, ReplyStream(has_tools=has_tools))
    assert by_pieces == parts_of([reply], ReplyStream(has_tools=has_tools))


@given(cut_replies())
def test_cutting_a_reply_does_not_change_what_is_hidden(
    cut: tuple[str, list[str]],
) -> None:
    reply, pieces = cut
    by_pieces = parts_of(pieces, ReplyStream(has_marks=False, hidden_blocks=("json",)))
    assert by_pieces.text == without_blocks(reply, "json")
    assert "".join(by_pieces.thoughts) == ""


@each_row(
    ("before", "after"),
    [
        ("a.html:\n```html\n", "```\n"),
        ("```html:a.html\n", "```\n"),
        ("~~~~html:a.html\n", "~~~~\n"),
        (f"```html:{'x' * 300}.html\n", "```\n"),
        ("- ```html:a.html\n", "  ```\n"),
        ("12. ```html:a.html\n", "    ```\n"),
        ("1. So:\n\n    ```html:a.html\n", "    ```\n"),
        ("So:\n\t```html:a.html\n", "\t```\n"),
        ("    a.html\n    <<<<<<< SEARCH\n", "    =======\n    >>>>>>> REPLACE\n"),
        ('<|python_tag|>create_file(path=\'a.html\', content="""\n', '""")\n'),
        ("a.html\n<source>\n", "</source>\n"),
        ("a.html\n<code>html\n", "</code>\n"),
        ("a.html\n<<<<<<< SEARCH\n", "=======\nx\n>>>>>>> REPLACE\n"),
        ("--- a/a.html\n+++ b/a.html\n@@ -1 +1 @@\n", ""),
        ("diff --git a/a.html b/a.html\n", ""),
        ("*** Begin Patch\n*** Add File: a.html\n", "*** End Patch\n"),
        ("- action: create_file\n  content: |\n", ""),
        ("<write_to_file>\n<path>a.html</path>\n<content>\n", "</content>\n"),
        ('<invoke name="create_file">\n', "</invoke>\n"),
        ("<function=create_file>\n", "</function>\n"),
    ],
)
@each_row("thoughts", ["", "<think>Hm.</think>\n"])
def test_no_line_of_a_file_is_hidden(before: str, after: str, thoughts: str) -> None:
    for content in FILES:
        answer = f"Here it is.\n{before}{content}{after}"
        for pieces in ([thoughts + answer], list(thoughts + answer)):
            assert parts_of(pieces).text == answer


@given(st.text(alphabet="<>|/x`~ \nabco_{}-@", max_size=60))
def test_text_without_markup_is_unchanged(reply: str) -> None:
    assert parts_of([reply]) == Parts(reply, calls=())


@each_row(
    ("written", "call"),
    [
        (
            '{"name": "read_file", "arguments": {"path": "a"}}',
            ("read_file", '{"path": "a"}'),
        ),
        ('{"name": "read_file", "arguments": "{}"}', ("read_file", "{}")),
        ('{"name": "git_status"}', ("git_status", "{}")),
        (
            (
                "<function=read_file>\n"
                "<parameter=path>\n"
                "a b.txt\n"
                "</parameter>\n"
                "<parameter=line>3</parameter></function>"
            ),
            ("read_file", '{"path": "a b.txt", "line": "3"}'),
        ),
        ('{"name": "ls", "parameters": {"path": "a"}}', ("ls", '{"path": "a"}')),
        ('{"name": "ls", "arguments": null}', ("ls", "{}")),
        ('{"name": "ls", "arguments": {"path": "a\nb"}}', ("ls", '{"path": "a\\nb"}')),
    ],
)
def test_a_tool_call_in_the_text_is_a_call(written: str, call: tuple[str, str]) -> None:
    parts = parts_of([f"I look.\n<tool_call>\n{written}\n</tool_call>"])

    assert parts == Parts("I look.\n", calls=(ToolCall("call_1", *call),))


@each_row("content", CALLS_IN_FILES)
def test_a_value_of_a_call_may_hold_the_marks_of_calls(content: str) -> None:
    arguments = {"content": content, "path": "a"}
    tags = (
        f"<function=create>\n<parameter=content>\n{content}\n</parameter>\n"
        "<parameter=path>\na\n</parameter>\n</function>"
    )
    for written in (tags, json.dumps({"name": "create", "arguments": arguments})):
        reply = f"<tool_call>\n{written}\n</tool_call>\nHello."
        call = ToolCall("call_1", "create", json.dumps(arguments))
        for pieces in ([reply], list(reply)):
            assert parts_of(pieces) == Parts("Hello.", calls=(call,)), written


@each_row(
    "written",
    [
        *("", "{", "[]", '{"arguments": {}}', "read_file(a)"),
        "<function=ls>\n<parameter=path>\na",
        "<function=ls>\n<parameter=path>\na\n</parameter>\nb\n</function>",
        "<function=ls>\n<parameter=path>\n<function=a>\n</parameter>\n</function>",
    ],
)
def test_an_unreadable_tool_call_is_an_error(written: str) -> None:
    stream = ReplyStream()
    assert not stream.feed(f"<tool_call>{written}</tool_call>")
    assert not stream.end()

    with pytest.raises(ServerFailed):
        stream.calls()


@each_row(
    "call",
    [
        '<tool_call>\n{"name": "read_file", "arguments": {}}\n</tool_call>',
        "<tool_call>\n<function=read_file>\n</function>\n</tool_call>",
        '<tool_call>{"name": "read_',
    ],
)
def test_without_tools_a_call_stays_in_the_text(call: str) -> None:
    for text in (call, f"I look.\n{call}\n"):
        reply = f"<think>Hm.</think>\n{text}"
        for pieces in ([reply], list(reply)):
            parts = parts_of(pieces, ReplyStream(has_tools=False))
            assert parts == Parts(text, "Hm.", calls=())


@each_row(
    "call",
    [
        "<tool_call>",
        "<write_to_file>",
        "<function_calls>",
        '<invoke name="write">',
        "<function=write>",
        "<｜DSML｜function_calls>",
        "<|tool_calls_section_begin|>",
        "<|channel|>commentary to=functions.write<|message|>{",
    ],
)
def test_what_looks_like_thoughts_in_a_call_is_its_text(call: str) -> None:
    text = f"{call}\n<think>\nx\n</think>\n"
    reply = f"<think>Hm.</think>\n{text}"
    for pieces in ([reply], list(reply)):
        parts = parts_of(pieces, ReplyStream(has_tools=False))
        assert parts == Parts(text, "Hm.", calls=())


@each_row(
    "call",
    [
        '<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{"a": 1}',
        '<|channel|>commentary to=functions.ls<|message|>{"a": 1}<|call|>',
        '<|channel|>analysis to=functions.ls code<|message|>{"a": 1}<|call|>',
    ],
)
def test_a_message_to_a_tool_is_no_thought(call: str) -> None:
    reply = f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{call}"
    for pieces in ([reply], list(reply)):
        assert parts_of(pieces) == Parts(call, "Hm.", calls=())


def test_an_end_of_thoughts_is_text_below_thoughts_outside_the_text() -> None:
    stream = ReplyStream()
    assert stream.think("Hm.") == [ThoughtDelta("Hm.")]

    assert parts_of(["It ends so:\n</think>\n"], stream).text.endswith("</think>\n")


def test_half_a_character_waits_for_its_other_half() -> None:
    stream = ReplyStream()
    assert stream.feed("\ud83d") == []
    assert stream.feed("\ude00") == [TextDelta("😀")]
    assert stream.think("\ud83d") == []
    assert stream.think("\ude00") == [ThoughtDelta("😀")]


def test_the_reply_is_kept_with_its_thoughts() -> None:
    stream = ReplyStream()
    parts_of(["<think>Hm.</thi", "nk>Hello"], stream)

    assert "".join(stream.written) == "<think>Hm.</think>Hello"


@each_row(
    ("text", "seen", "blocks"),
    [
        ("Hello.", "Hello.", []),
        ("Hello.\n```json\n{}\n```\n", "Hello.\n", ["{}\n"]),
        ("```json\n{}\n```\nBye.", "Bye.", ["{}\n"]),
        ("---\n```json\n{}\n```\nBye.", "---\nBye.", ["{}\n"]),
        ("```json\n{}", "", ["{}"]),
        ("```json", "", [""]),
        ("~~~json\n{}\n~~~", "", ["{}\n"]),
        ("````json\n```\n````", "", ["```\n"]),
        ("```json\n{}\n        ```", "", ["{}\n"]),
        ("```JSON\n{}\n```", "", ["{}\n"]),
        ("```json\r\n{}\r\n```\r\n", "", ["{}\r\n"]),
        ("``` json\n{}\n```", "", ["{}\n"]),
        ("  ```json\n{}\n  ```", "", ["{}\n"]),
        ("```python\nx = 1\n```\n", "```python\nx = 1\n```\n", []),
        ("````md\n```json\n{}\n```\n````\n", "````md\n```json\n{}\n```\n````\n", []),
        ("Use `json` and ``x``\n", "Use `json` and ``x``\n", []),
        ("`json`", "`json`", []),
        ("```json `x` ```\nb", "```json `x` ```\nb", []),
        ("```jsonc\n{}\n```", "```jsonc\n{}\n```", []),
        ("a ```json\nb", "a ```json\nb", []),
        ("<think>\n", "<think>\n", []),
        ("```json\n{}\n```\n```json\n[]\n```", "", ["{}\n", "[]\n"]),
        ("", "", []),
    ],
)
@each_row("size", [1, 3, 1000])
def test_only_blocks_for_the_program_are_hidden(
    text: str, seen: str, blocks: list[str], size: int
) -> None:
    stream = ReplyStream(has_marks=False, hidden_blocks=("json",))
    pieces = [text[start : start + size] for start in range(0, len(text), size)]

    assert parts_of(pieces, stream).text == seen
    assert list(stream.blocks_of("json")) == blocks


def test_words_are_shown_as_they_arrive() -> None:
    for stream in (ReplyStream(), ReplyStream(has_marks=False, hidden_blocks=["json"])):
        for word in ("No line", " end `yet` ", "< 3"):
            assert text_of(stream.feed(word)) == word


@each_row("size", [1, 7, 10_000])
def test_a_long_line_ends_no_hidden_block(size: int) -> None:
    content = f"```{' ' * 300}\n"
    text = f"```json\n{content}```\nBye."
    stream = ReplyStream(has_marks=False, hidden_blocks=["json"])
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert parts_of(pieces, stream).text == "Bye."
    assert stream.blocks_of("json") == (content,)


@each_row("length", [199, 200, 201, 202, 300])
@each_row("end", ["\n", "\r\n"])
def test_a_long_line_begins_no_hidden_block(length: int, end: str) -> None:
    line = "```json ".ljust(length - len(end) + 1, "x") + end
    for size in (1, 7, 10_000):
        stream = ReplyStream(has_marks=False, hidden_blocks=["json"])
        text = f"{line}{{}}\n```\n"
        parts_of([text[at : at + size] for at in range(0, len(text), size)], stream)
        assert bool(stream.blocks) is (length <= 200)


@each_row("text", ["x", "`", " ", "<", "word\n"])
@each_row("opening", ["", "```json\n"])
def test_the_time_of_a_long_reply_grows_with_its_length(
    text: str, opening: str
) -> None:
    reply = opening + text * (50_000 // len(text))
    pieces = [reply[at : at + 16] for at in range(0, len(reply), 16)]
    for stream in (ReplyStream(), ReplyStream(has_marks=False, hidden_blocks=["json"])):
        began = time.process_time()
        parts_of(pieces, stream)
        # a hundredth of it is enough on a machine that is not busy
        assert time.process_time() - began < 1
