"""Marks that some servers leave in a reply's text: thoughts in tags, the channels of
gpt-oss (harmony), and tool calls.
"""

import json
import re
from collections.abc import Iterable

from cdd_agent.llm.port import ToolCall
from cdd_agent.pattern import Pattern

_THOUGHT_MARKS = {
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel>thought": "<channel|>",
}
"""Marks around thoughts that are not tags: Magistral, Kimi, Command A, OpenThinker and
Gemma 4.
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
"""The beginning of a channel. With `to=` it is a call."""
_ANSWER = r"<\|start\|>assistant|<\|START_(?:RESPONSE|TEXT)\|>"
_LATE_END = rf"(?:</{_PREFIX}(?:think|thinking)>|{_any_of(_THOUGHT_MARKS.values())})"
"""The end of thoughts. Some servers remove only the opening mark."""

OPENING = Pattern(
    rf" {{0,3}}(?:{_THOUGHTS}|{_CHANNEL}|(?P<answer>{_ANSWER})|(?P<call><tool_call>)"
    rf"|(?P<late_end>{_LATE_END}))",
    re.IGNORECASE,
)
"""A mark at the beginning of a line, while a reply streams."""
LONGEST_OPENING = 80
"""Characters at the start of a line to search for a mark."""
LATE_END_LINE = Pattern(rf"{_LATE_END}[ \t]*\r?\n", re.IGNORECASE)
"""The end of thoughts on a separate line, after a code block in the thoughts."""

THOUGHTS_BEGIN = Pattern(
    rf"^\s*(?:{_ANSWER})?(?:{_THOUGHTS}|{_CHANNEL})", re.IGNORECASE
)
"""The same in the lines of a whole reply."""
THOUGHTS_END = Pattern(rf"^\s*{_LATE_END}\s*$", re.IGNORECASE)
LAST_MARK = Pattern(r"(?:<\|(?:return|end|END_RESPONSE|END_TEXT)\|>\s*)+$")
_CHANNEL_END = Pattern(r"<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)")
"""The next message's opening mark also ends a channel, and is read again."""
CALL_END = Pattern("</tool_call>", re.IGNORECASE)
PARTIAL_END = Pattern(r"[<\[◁][^\s>\]▷]{0,20}\Z")
"""The end of a text that may continue as the end mark of thoughts or a call."""

EDIT_BEGINS = Pattern(
    r"[ \t]*<{5}| {0,3}(?:-{3}|\+{3}|@@|\*{3} |diff |- action|actions:"
    r"|<(?:source|sourcecode|code|codeblock|pre)>[\w+#-]*\r?\n"
    r"|<(?:[\w-]+:)?(?:function_calls?>|invoke\s|tool_calls>|function=)"
    r"|<(?:[\w-]+:)?\w+_\w+>|<[｜|](?:tool|python_tag|DSML)|<\|channel\|>\w+ to=)"
    r"(?<!<tool_call>)"
)
"""The beginning of an edit, or of a call that stays in the text. Its file may contain
marks.
"""
_EDIT_WORDS = ("---", "+++", "@@", "*** ", "diff ", "- action", "actions:")

_FUNCTION = Pattern(r"\s*<function=(?P<name>[^>\s]+)>\s*")
_PARAMETER = Pattern(r"<parameter=(?P<name>[^>\s]+)>\n?")
_PARAMETER_END = Pattern(
    r"\n?</parameter>(?=\s*(?:<parameter=|</function>\s*\Z|\Z))\s*"
)
"""Must precede the next parameter or the end of the call."""
_REST_OF_FUNCTION = Pattern(r"(?:</function>)?\s*")
_JSON = json.JSONDecoder(strict=False)
"""Accepts line ends in strings, which models write."""


def may_begin(start: str) -> bool:
    """True if the beginning of a line may become a mark or an edit."""
    # blanks may be between a late end and the end of its line
    word = start.lstrip(" \t").rstrip(" \t\r")
    words = (*_EDIT_WORDS, *_THOUGHT_MARKS, *_THOUGHT_MARKS.values())
    return word.startswith("<") or any(whole.startswith(word) for whole in words)


def end_of_thoughts(opening: re.Match[str]) -> Pattern[str]:
    """Return the closing mark for an opening mark of thoughts."""
    if opening["tag"]:
        return Pattern(f"</{opening['tag']}>", re.IGNORECASE)
    if opening["mark"]:
        return Pattern(re.escape(_THOUGHT_MARKS[opening["mark"]]))
    return _CHANNEL_END


def read_call(text: str, id_: str) -> ToolCall:
    """Parse a call in Qwen's format: JSON with name and arguments, or tags with text
    values. Raises `ValueError`.
    """
    function = _FUNCTION.match(text)
    if function is not None:
        parameters = _read_parameters(text, function.end())
        return ToolCall(
            id_, function["name"], json.dumps(parameters, ensure_ascii=False)
        )
    try:
        written = _JSON.decode(text)
        name = written["name"]
        arguments = written.get("arguments") or written.get("parameters") or {}
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(text) from error
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    return ToolCall(id_, str(name), arguments)


def ends_in_a_value(text: str) -> bool:
    """True if the text ends within a value of the call, so that a following mark is
    part of the value.
    """
    function = _FUNCTION.match(text)
    try:
        if function is None:
            _JSON.decode(text)
        else:
            _read_parameters(text, function.end())
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return _PARAMETER.search(text) is not None
    return False


def _read_parameters(text: str, place: int) -> dict[str, str]:
    """Raises `ValueError` if anything else is there."""
    values: dict[str, str] = {}
    while parameter := _PARAMETER.match(text, place):
        end = _end_of_value(text, parameter.end())
        if parameter["name"] in values:
            raise ValueError(text)
        values[parameter["name"]] = text[parameter.end() : end.start()]
        place = end.end()
    if _REST_OF_FUNCTION.fullmatch(text, place) is None:
        raise ValueError(text)
    return values


def _end_of_value(text: str, start: int) -> re.Match[str]:
    """Return the end of a parameter. A call in its value must be whole. Raises
    `ValueError`.
    """
    for end in _PARAMETER_END.finditer(text, start):
        calls = text.count("<function=", start, end.start())
        if calls <= text.count("</function>", start, end.start()):
            return end
    raise ValueError(text)
