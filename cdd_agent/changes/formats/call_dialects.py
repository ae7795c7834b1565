"""Dialects in which models write tool calls as text, if no server has parsed them.

The forms follow the models' chat templates, as the parsers of vLLM
(https://github.com/vllm-project/vllm), SGLang (https://github.com/sgl-project/sglang)
and llama.cpp (https://github.com/ggml-org/llama.cpp) read them, and the XML of Cline
(https://github.com/cline/cline).
"""

import re
from collections.abc import Callable

from msgspec import Struct

from cdd_agent.changes.formats.call_meanings import TAGS
from cdd_agent.changes.formats.call_readers import (
    LIST_KEYS,
    NAME_KEYS,
    OTHER_KEYS,
    Calls,
    TagReader,
    place_after,
    read_attributes,
    read_body,
    read_code,
    read_gemma,
    read_harmony,
    read_json_alone,
    read_json_calls,
    read_named_json,
    read_python_line,
    read_python_list,
    read_react,
)
from cdd_agent.pattern import Pattern

Reader = Callable[[str, re.Match[str]], Calls]


class CallDialect(Struct, frozen=True):
    """The beginning of calls, and their reader."""

    name: str
    begin: Pattern[str]
    """A group `fence` opens a code block around the arguments."""
    read: Reader
    has_mark: bool = True
    """True if the beginning is unambiguous."""


_PREFIX = r"(?:[\w-]+:|｜\w+｜)?"
"""A namespace before a tag: `antml:`, `minimax:`, `｜DSML｜`."""
_AROUND = rf"{_PREFIX}(?:\w+_)?(?:tool_calls?|function_?calls?|tool_use)"
_OPENING = (
    rf"<{_AROUND}>|<\|(?:tool_calls?|tool_call_start|START_ACTION|action_start|plugin"
    r"|python_tag|python_start|tool_calls?_section_begin)\|>"
    r"|<｜tool[▁_]calls?[▁_]begin｜>(?:function<｜tool_sep｜>)?|\[TOOL_CALLS\]"
)
_CLOSING = (
    rf"</{_AROUND}>|<\|/tool_calls?\|>|<\|(?:tool_call_end|END_ACTION|action_end"
    r"|python_end|tool_calls?_section_end)\|>|<｜tool[▁_]calls?[▁_]end｜>"
)
_END_OF_TURN = (
    r"</s>|<\|(?:eom_id|eot_id|im_end|end|call|return)\|>|<｜end▁of▁sentence｜>"
)
_REST = Pattern(rf"(?:\s*(?:{_CLOSING}|{_END_OF_TURN}))*")
_OPENINGS = rf"(?:(?:{_OPENING})\s*){{0,4}}"
_NAME = r"(?P<name>[\w./:-]+?)"
_FENCE = r"(?:(?P<fence>```)(?:json)?\s*)?"
_END_OF_FENCE = Pattern(r"\s*```")
_RECIPIENT = r"[ \t]{0,4}to=(?:functions\.)?"
_FIRST_KEY = rf"\s*\"(?:{'|'.join((*NAME_KEYS, *LIST_KEYS, *OTHER_KEYS))})\"\s*:"
_CURSOR = TagReader(
    open_key=r"<｜tool▁sep｜>(?P<key>\w+)(?=\n)",
    close_key=r"(?=<｜tool▁sep｜>|<｜tool▁call▁end｜>)",
    open_call=r"<｜tool▁call▁begin｜>",
    close_call=r"<｜tool▁call▁end｜>",
    is_on_lines=True,
)
_TAGS = "|".join(sorted(TAGS))
_INVOKE = TagReader(
    open_key=rf"<{_PREFIX}parameter\s+name=[\"'](?P<key>[^\"'>]+)[\"'][^<>]*>",
    close_key=rf"</{_PREFIX}parameter>",
    open_call=rf"<{_PREFIX}invoke\s+name=",
    close_call=rf"</{_PREFIX}invoke>",
)
_FUNCTION = TagReader(
    open_key=r"<parameter=(?P<key>[^<>\s]+)>",
    close_key=r"</parameter>",
    open_call=r"<function=",
    close_call=r"</function>",
    is_on_lines=True,
)
_GLM = TagReader(
    open_key=r"<arg_key>\s*(?P<key>[^<>]+?)\s*</arg_key>\s*<arg_value>",
    close_key=r"</arg_value>",
    open_call=r"<tool_call>",
    close_call=r"</tool_call>",
)
_CLINE = TagReader(
    open_key=r"<(?P<key>\w+)>",
    close_key=r"</{key}>",
    open_call=r"<{name}>",
    close_call=r"</{name}>",
    # other tags may be file content
    next_key=r"<(?:\w*path|\w+_\w+|content|diff|search|replace|command|regex|recursive)>",
    is_on_lines=True,
)


def _row(name: str, read: Reader, *begin: str, has_mark: bool = True) -> CallDialect:
    return CallDialect(name, Pattern("".join(begin), re.MULTILINE), read, has_mark)


DIALECTS: tuple[CallDialect, ...] = (
    _row(
        "JSON after a mark: Hermes, Qwen, Granite, Phi, Mistral, Llama, Command R",
        read_json_calls,
        rf"(?:(?:{_OPENING})\s*{_OPENINGS}|\bfunctools(?=\[)){_FENCE}(?=\{{|\[\s*\{{)",
    ),
    _row(
        "Mistral 11 and later",
        read_named_json,
        rf"\[TOOL_CALLS\]\s*{_NAME}\s*(?:\[CALL_ID\]\w+)?\s*(?:\[ARGS\])?\s*(?=\{{)",
    ),
    _row(
        "Kimi",
        read_named_json,
        rf"{_OPENINGS}<\|tool_call_begin\|>\s*{_NAME}\s*",
        r"<\|tool_call_argument_begin\|>\s*(?=\{)",
    ),
    _row(
        "DeepSeek",
        read_named_json,
        rf"{_OPENINGS}<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?{_NAME}",
        rf"\s*(?:<｜tool▁sep｜>)?\s*{_FENCE}(?=\{{)",
    ),
    _row(
        "Cursor",
        _CURSOR.read,
        rf"{_OPENINGS}<｜tool▁call▁begin｜>\s*(?P<name>[\w./:-]+)",
        r"(?=\s*(?:<｜tool▁sep｜>\w+\n|<｜tool▁call▁end｜>|<?\Z))",
    ),
    _row(
        "harmony",
        read_harmony,
        rf"(?:<\|start\|>)?(?:assistant)?(?:{_RECIPIENT}(?P<before>[\w.-]+))?[ \t]?",
        rf"<\|channel\|>(?:commentary|analysis)(?:{_RECIPIENT}(?P<name>[\w.-]+))?",
        r"[^<>\n{]{0,40}(?:<\|constrain\|>\s*\w*\s*)?<\|message\|>\s*",
    ),
    _row(
        "harmony without its marks",
        read_named_json,
        rf"(?:assistant)?(?:commentary|analysis)\s*to=functions\.{_NAME}",
        r"\s*(?:json|code)?\s*(?=\{)",
    ),
    _row(
        "Claude, MiniMax, DeepSeek's DSML, Step",
        _INVOKE.read,
        rf"{_OPENINGS}<{_PREFIX}invoke\s+name=[\"'](?P<name>[^\"'<>]+)[\"']\s*>",
        rf"(?=\s*(?:<{_PREFIX}parameter\s|</{_PREFIX}invoke>|\{{|<?\Z))",
    ),
    _row(
        "Qwen coder, Llama's function tags",
        _FUNCTION.read,
        rf"{_OPENINGS}<function=(?P<name>[\w./:-]+)>?",
        r"(?=\s*(?:<parameter=|</function>|\{|<?\Z))",
    ),
    _row(
        "GLM",
        _GLM.read,
        r"<tool_call>\s*(?P<name>[\w./:-]+)(?=\s*(?:<arg_key>|</tool_call>|<?\Z))",
    ),
    _row(
        "Cline, Roo",
        _CLINE.read,
        rf"<(?P<name>{_TAGS})>(?=\s*(?:<\w+>|</(?P=name)>|\{{|<?\Z))",
    ),
    _row("a shell in a tag", read_body, r"^[ \t]*<(?P<name>bash|shell|terminal)>"),
    _row(
        "tags with attributes",
        read_attributes,
        rf"<(?P<name>{_TAGS})(?P<given>(?:\s+\w+\s*=\s*(?:\"[^\"]*\"|'[^']*'))+)",
        r"\s*(?P<closed>/)?>",
    ),
    _row(
        "LFM, Llama 4",
        read_python_list,
        rf"(?:{_OPENING})\s*{_OPENINGS}(?=\[\s*[A-Za-z_][\w.]*\()",
    ),
    _row(
        "Llama 4 without its marks",
        read_python_line,
        r"^[ \t]*(?=\[[A-Za-z_][\w.]*\((?:\w+\s*=\s*[\"']|\)))",
        has_mark=False,
    ),
    _row("Llama's interpreter", read_code, r"<\|python_tag\|>\s*(?=[^\s\[{])"),
    _row(
        "Gemma",
        read_gemma,
        r"(?:<\|tool_call>|(?P<older><start_function_call>))\s*",
        r"call:(?P<name>[\w./:-]+)\s*\{",
    ),
    _row(
        "Command R in words",
        read_json_calls,
        r"^[ \t]*\**Action:\**\s*(?P<fence>```)(?:json)?\s*(?=[\[{])",
    ),
    _row(
        "ReAct",
        read_react,
        r"^[ \t]*\**Action:\**[ \t]*(?P<name>[\w./:-]+)[ \t]*\n\s*",
        rf"\**Action Input:\**\s*{_FENCE}",
    ),
    _row(
        "JSON without a mark",
        read_json_alone,
        rf"^[ \t]*(?=\{{{_FIRST_KEY}|\[\s*\{{{_FIRST_KEY})",
        has_mark=False,
    ),
)
"""The first dialect wins if two begin at the same place."""


_LONE_TAGS = rf"(?:{_TAGS}|arg_key|arg_value|function)"
LONE_OPENING = Pattern(
    rf"{_OPENING}|<{_LONE_TAGS}>|<{_PREFIX}(?:invoke|parameter)\s[^<>]*>"
    r"|<(?:function|parameter)=[^<>]*>"
)
LONE_CLOSING = Pattern(rf"{_CLOSING}|</{_LONE_TAGS}>|</{_PREFIX}(?:invoke|parameter)>")
"""Marks that occur only in calls."""


def read_calls(dialect: CallDialect, text: str, begin: re.Match[str]) -> Calls:
    """Return the calls and their end, after closing marks. No calls: the text only
    resembles one. Raises `CutCall` or `BrokenCall`.
    """
    calls, place = dialect.read(text, begin)
    if not calls:
        return [], place
    if begin.groupdict().get("fence"):
        place = place_after(_END_OF_FENCE, text, place)
    return calls, place_after(_REST, text, place)
