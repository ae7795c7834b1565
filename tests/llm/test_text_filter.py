"""Thoughts and calls that servers leave in the text: found however the text is cut, and
nothing else is touched.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.llm.port import TextDelta, ThoughtDelta, ToolCall, WasThought
from cdd_agent.llm.text_filter import TextFilter, UnreadableCall
from tests.support.tables import each_row


def filtered(*pieces: str, has_tools: bool = True) -> tuple[str, str, TextFilter]:
    """The text, the thoughts, and the filter."""
    text_filter = TextFilter(has_tools=has_tools)
    events = [event for piece in pieces for event in text_filter.feed(piece)]
    events += text_filter.end()
    text = thoughts = ""
    for event in events:
        match event:
            case TextDelta():
                text += event.text
            case ThoughtDelta():
                thoughts += event.text
            case WasThought():
                text, thoughts = "", text + thoughts
    return text, thoughts, text_filter


@each_row(
    ("reply", "text", "thoughts"),
    [
        ("<think>Hm.</think>Hello.", "Hello.", "Hm."),
        ("\n <think>\nHm.\n</think>\nHello.", "\nHello.", "\nHm.\n"),
        ("<THINKING>Hm.</thinking>Hello.", "Hello.", "Hm."),
        ("Okay.\n<think>Hm.</think>\nHello.", "Okay.\nHello.", "Hm."),
        ("<think>a</think>\n<think>b</think>Hello.", "Hello.", "ab"),
        ("<think>never ends", "", "never ends"),
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
    assert filtered(reply)[:2] == (text, thoughts)


@given(st.text(alphabet="<>|/think`~ \nabcol_{}-@", max_size=60), st.data())
def test_cutting_the_text_does_not_change_the_result(
    reply: str, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(reply)), max_size=6)))
    pieces = [
        reply[start:end]
        for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True)
    ]

    assert filtered(*pieces)[:2] == filtered(reply)[:2]


@given(st.text(alphabet="<>|/x`~ \nabco_{}-@", max_size=60))
def test_text_without_markup_is_unchanged(reply: str) -> None:
    assert filtered(reply)[:2] == (reply, "")


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
            ("read_file", '{"path": "a b.txt", "line": 3}'),
        ),
    ],
)
def test_a_tool_call_in_the_text_is_a_call(written: str, call: tuple[str, str]) -> None:
    text, _, found = filtered(f"I look.\n<tool_call>\n{written}\n</tool_call>")

    assert (text, found.calls()) == ("I look.\n", (ToolCall("call_1", *call),))


@each_row("written", ["", "{", "[]", '{"arguments": {}}', "read_file(a)"])
def test_an_unreadable_tool_call_is_an_error(written: str) -> None:
    _, _, found = filtered(f"<tool_call>{written}</tool_call>")

    with pytest.raises(UnreadableCall):
        found.calls()


@each_row(
    "call",
    [
        '<tool_call>\n{"name": "read_file", "arguments": {}}\n</tool_call>',
        "<tool_call>\n<function=read_file>\n</function>\n</tool_call>",
        '<tool_call>{"name": "read_',
    ],
)
def test_without_tools_a_call_stays_in_the_text(call: str) -> None:
    for reply in (call, f"I look.\n{call}\n", f"<think>Hm.</think>\n{call}"):
        for pieces in ([reply], list(reply)):
            text, _, found = filtered(*pieces, has_tools=False)
            assert text.endswith((call, f"{call}\n"))
            assert not found.calls()


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
    ],
)
def test_what_looks_like_thoughts_in_a_call_is_its_text(call: str) -> None:
    reply = f"<think>Hm.</think>\n{call}\n<think>\nx\n</think>\n"
    for pieces in ([reply], list(reply)):
        text, thoughts, _ = filtered(*pieces, has_tools=False)
        assert (text, thoughts) == (f"{call}\n<think>\nx\n</think>\n", "Hm.")


@each_row(
    "call",
    [
        '<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{"a": 1}',
        '<|channel|>commentary to=functions.ls<|message|>{"a": 1}<|call|>',
        '<|channel|>analysis to=functions.ls code<|message|>{"a": 1}<|call|>',
    ],
)
def test_a_message_to_a_tool_is_no_thought(call: str) -> None:
    thought = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    for pieces in ([thought + call], list(thought + call)):
        text, thoughts, _ = filtered(*pieces)
        assert (text, thoughts) == (call, "Hm.")
