"""Marks that some servers leave in the text of a reply: thoughts in tags, the channels
of gpt-oss (harmony), and calls of tools.
"""

import json
import re
from collections.abc import Iterable
from contextlib import suppress

from cdd_agent.llm.port import ToolCall

_THOUGHT_MARKS = {
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel>thought": "<channel|>",
}
"""Marks around thoughts that are no tags, of Magistral, Kimi, Command A, OpenThinker
and Gemma 4.
"""


def _any_of(marks: Iterable[str]) -> str:
    return f"(?-i:{'|'.join(map(re.escape, marks))})"


_PREFIX = r"(?:\w+:)?"
"""A namespace, as in Seed-OSS's `<seed:think>`."""
_THOUGHTS = (
    rf"<(?P<tag>{_PREFIX}(?:think|thinking|thoughts?|reasoning|scratchpad))>"
    rf"|(?P<mark>{_any_of(_THOUGHT_MARKS)})"
)
_CHANNEL = (
    r"<\|channel\|>(?P<channel>analysis|commentary|final)"
    r"(?![^<\n]*\bto=)[^<\n]*<\|message\|>"
)
"""The beginning of a channel. One with `to=` is a call."""
_ANSWER = r"<\|start\|>assistant|<\|START_(?:RESPONSE|TEXT)\|>"
_LATE_END = rf"(?:</{_PREFIX}(?:think|thinking)>|{_any_of(_THOUGHT_MARKS.values())})"
"""The end of thoughts. Some servers remove only the mark that begins them."""

OPENING = re.compile(
    rf" {{0,3}}(?:{_THOUGHTS}|{_CHANNEL}|(?P<answer>{_ANSWER})|(?P<call><tool_call>)"
    rf"|(?P<late_end>{_LATE_END}))",
    re.IGNORECASE,
)
"""A mark at the beginning of a line, while a reply streams."""
LONGEST_OPENING = 80
"""Characters of a line in which such a mark is looked for."""
LATE_END_LINE = re.compile(rf"{_LATE_END}[ \t]*\r?\n", re.IGNORECASE)
"""The end of thoughts on a separate line, below a code block in the thoughts."""

THOUGHTS_BEGIN = re.compile(
    rf"^\s*(?:{_ANSWER})?(?:{_THOUGHTS}|{_CHANNEL})", re.IGNORECASE
)
"""The same in the lines of a whole reply."""
THOUGHTS_END = re.compile(rf"^\s*{_LATE_END}\s*$", re.IGNORECASE)
LAST_MARK = re.compile(r"(?:<\|(?:return|end|END_RESPONSE|END_TEXT)\|>\s*)+$")
"""A mark behind an answer."""
_CHANNEL_END = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)")
"""A mark that begins the next message ends a channel, too, and is read again."""
CALL_END = re.compile("</tool_call>", re.IGNORECASE)
PARTIAL_END = re.compile(r"[<\[◁][^\s>\]▷]{0,20}\Z")
"""The end of a text that may continue as a mark that ends thoughts or a call."""

EDIT_BEGINS = re.compile(
    r" {0,3}(?:<{5}|-{3}|\+{3}|@@|\*{3} |diff |- action|actions:"
    r"|<(?:source|sourcecode|code|codeblock|pre)>[\w+#-]*\r?\n"
    r"|<(?:[\w-]+:)?(?:function_calls?>|invoke\s|tool_calls>|function=)"
    r"|<(?:[\w-]+:)?\w+_\w+>|<[｜|](?:tool|DSML)|<\|channel\|>\w+ to=)(?<!<tool_call>)"
)
"""The beginning of an edit, or of a call that stays in the text. Its file may hold
marks.
"""
_EDIT_WORDS = ("---", "+++", "@@", "*** ", "diff ", "- action", "actions:")

_FUNCTION = re.compile(
    r"<function=(?P<name>[^>\s]+)>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL
)
_PARAMETER = re.compile(
    r"<parameter=(?P<name>[^>\s]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL
)


def may_begin(start: str) -> bool:
    """True if a mark or an edit may begin with the beginning of a line."""
    word = start.lstrip(" ")
    words = (*_EDIT_WORDS, *_THOUGHT_MARKS, *_THOUGHT_MARKS.values())
    return word.startswith("<") or any(whole.startswith(word) for whole in words)


def end_of_thoughts(opening: re.Match[str]) -> re.Pattern[str]:
    """Return the mark that ends thoughts, from the mark that began them."""
    if opening["tag"]:
        return re.compile(f"</{opening['tag']}>", re.IGNORECASE)
    if opening["mark"]:
        return re.compile(re.escape(_THOUGHT_MARKS[opening["mark"]]))
    return _CHANNEL_END


def read_call(text: str, id_: str) -> ToolCall:
    """Read a call as Qwen's models write it: JSON with name and arguments, or tags.

    Raises `ValueError`.
    """
    function = _FUNCTION.search(text)
    if function is not None:
        parameters = _read_parameters(function["body"])
        return ToolCall(
            id_, function["name"], json.dumps(parameters, ensure_ascii=False)
        )
    try:
        written = json.loads(text)
        name, arguments = written["name"], written.get("arguments", {})
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(text) from error
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ToolCall(id_, str(name), arguments)


def _read_parameters(body: str) -> dict[str, object]:
    values: dict[str, object] = {}
    for match in _PARAMETER.finditer(body):
        values[match["name"]] = match["value"]
        # numbers, lists and the like are written as JSON
        with suppress(ValueError, RecursionError):
            value = json.loads(match["value"])
            if not isinstance(value, str):
                values[match["name"]] = value
    return values
