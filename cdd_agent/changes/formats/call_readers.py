"""Readers of tool calls that are written as text.

A reader begins after the match of a call's beginning, and returns the calls and their
end. No calls: the text only resembles one.
"""

import ast
import json
import re
from collections.abc import Mapping

from msgspec import Struct

from cdd_agent.pattern import Pattern


class WrittenCall(Struct, frozen=True):
    name: str
    arguments: Mapping[str, object] | None
    """None if unreadable."""
    is_raw: bool = False
    """True if the arguments are raw text between marks."""
    is_on_lines: bool = False
    """True if the dialect puts each mark on its own line."""


class CutCall(Exception):
    """The text ends within the call."""


class BrokenCall(Exception):
    """The text begins as a call, but does not continue as one."""


Calls = tuple[list[WrittenCall], int]
"""Calls, and the offset after the last."""
NAME_KEYS = ("name", "tool", "tool_name", "function_name", "recipient_name")
LIST_KEYS = ("tool_calls", "tool_uses", "function_call", "function")
"""Keys that hold a call or a list of calls."""
OTHER_KEYS = ("id", "type", "tool_call_id", "index", "thoughts", "explanation")
_ARGUMENT_KEYS = (
    *("arguments", "parameters", "args", "input", "tool_input", "action_input"),
    *("params", "kwargs"),
)
_HAS_ARGUMENTS = Pattern(rf'"(?:{"|".join(_ARGUMENT_KEYS)})"\s*:')
_DECODER = json.JSONDecoder(strict=False)
"""Accepts line breaks within strings, which models write."""
_SEMICOLON = Pattern(r"\s*;\s*(?=\{)")
_SPACE = Pattern(r"\s*")
_END_OF_MESSAGE = Pattern(r"<\|(?:call|end)\|>")
_CDATA = Pattern(r"\s*<!\[CDATA\[(?P<text>.*?)\]\]>\s*", re.DOTALL)
_ATTRIBUTE = Pattern(r"(\w+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_FENCE = Pattern(r"\s*(?:```|~~~)")
_PYTHON_TOKEN = Pattern(
    r"'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\""
    r"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|[\[\]]",
    re.DOTALL,
)
"""A string or a bracket."""
_END_OF_CODE = Pattern(r"<\|eo[mt]_id\|>")
_MOST_ENDS = 20
"""Most end marks to try: a string in the code may contain one."""
_GEMMA_END = Pattern(r"\}\s*(?:<tool_call\|>|<end_function_call>)")
_GEMMA_KEY = Pattern(r"(^|[{,])\s*([\w-]+)\s*:")


def place_after(pattern: Pattern[str], text: str, place: int) -> int:
    """Return the end of a match at `place`, or `place`."""
    match = pattern.match(text, place)
    return match.end() if match else place


def read_json_calls(text: str, begin: re.Match[str]) -> Calls:
    """Llama separates calls with semicolons."""
    calls: list[WrittenCall] = []
    place = begin.end()
    while True:
        value, place = _read_json(text, place)
        calls_of_value = _calls_in(value)
        if not calls_of_value:
            raise BrokenCall
        calls += calls_of_value
        another = _SEMICOLON.match(text, place)
        if another is None:
            return calls, place
        place = another.end()


def read_json_alone(text: str, begin: re.Match[str]) -> Calls:
    """Without a mark, calls must be alone on their lines and have arguments."""
    try:
        value, place = _read_json(text, begin.end())
    except CutCall:
        if _HAS_ARGUMENTS.search(text, begin.end()):
            raise
        return [], begin.end()
    except BrokenCall as error:
        # args[0] is the place of the fault
        if _HAS_ARGUMENTS.search(text, begin.end(), error.args[0]):
            raise
        return [], begin.end()
    is_alone = not text[place:].partition("\n")[0].strip()
    items = value if isinstance(value, list) else [value]
    keys = {*_ARGUMENT_KEYS, *LIST_KEYS}
    has_shape = all(isinstance(item, dict) and keys & item.keys() for item in items)
    if not is_alone or not has_shape:
        return [], place
    return _calls_in(value), place


def read_named_json(text: str, begin: re.Match[str]) -> Calls:
    value, place = _read_json(text, begin.end())
    return [WrittenCall(begin["name"], _as_arguments(value))], place


def read_harmony(text: str, begin: re.Match[str]) -> Calls:
    """Messages without a recipient are not calls."""
    name = begin["before"] or begin["name"]
    if name is None:
        return [], begin.end()
    if text.startswith("{", begin.end()):
        value, place = _read_json(text, begin.end())
        return [WrittenCall(name, _as_arguments(value))], place
    end = _END_OF_MESSAGE.search(text, begin.end())
    if end is None:
        raise CutCall
    arguments = {"input": text[begin.end() : end.start()]}
    return [WrittenCall(name, arguments, is_raw=True)], end.end()


def read_react(text: str, begin: re.Match[str]) -> Calls:
    """The input may be JSON or plain words."""
    if text.startswith(("{", "["), begin.end()):
        return read_named_json(text, begin)
    line = text[begin.end() :].partition("\n")[0]
    return [WrittenCall(begin["name"], None)], begin.end() + len(line)


def _read_json(text: str, place: int) -> tuple[object, int]:
    try:
        value, end = _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        is_at_end = not text[error.pos :].strip()
        if is_at_end or error.msg.startswith("Unterminated"):
            raise CutCall from error
        raise BrokenCall(error.pos) from error
    except RecursionError as error:
        raise BrokenCall(len(text)) from error
    return value, end


def _calls_in(value: object) -> list[WrittenCall]:
    """Return no calls if any part is not a call."""
    if isinstance(value, list):
        calls: list[WrittenCall] = []
        for item in value:
            inner = _calls_in(item)
            if not inner:
                return []
            calls += inner
        return calls
    if not isinstance(value, dict):
        return []
    for key in LIST_KEYS:
        if isinstance(value.get(key), dict | list):
            return _calls_in(value[key])
    name_keys = [key for key in NAME_KEYS if isinstance(value.get(key), str)]
    if not name_keys:
        return []
    name = value[name_keys[0]]
    for key in _ARGUMENT_KEYS:
        if key in value:
            return [WrittenCall(name, _as_arguments(value[key]))]
    others = {*OTHER_KEYS, name_keys[0]}
    arguments = {key: each for key, each in value.items() if key not in others}
    return [WrittenCall(name, arguments)]


def _as_arguments(value: object) -> dict[str, object] | None:
    if isinstance(value, str):  # nested JSON, as in OpenAI's API
        try:
            value = _DECODER.decode(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


class TagReader(Struct, frozen=True):
    """Reads calls whose arguments are raw text between tags.

    The fields are patterns. Closing tags may contain `{name}` of the call and `{key}`
    of the argument.
    """

    open_key: str
    """The tag before an argument, with a group `key`."""
    close_key: str
    open_call: str
    close_call: str
    next_key: str = ""
    """Narrower than `open_key`, for what may follow an argument of several lines: the
    text may itself have tags.
    """
    is_on_lines: bool = False

    def read(self, text: str, begin: re.Match[str]) -> Calls:
        name = begin["name"]
        close = re.compile(self.close_call.format(name=re.escape(name)))
        open_key = re.compile(self.open_key)
        arguments: dict[str, object] = {}
        place = begin.end()
        while True:
            place = place_after(_SPACE, text, place)
            if end := close.match(text, place):
                call = WrittenCall(name, arguments, True, self.is_on_lines)
                return [call], end.end()
            opening = open_key.match(text, place)
            if opening is None:
                break
            if opening["key"] in arguments:
                raise BrokenCall
            value, place = self._read_value(text, opening, name)
            arguments[opening["key"]] = value
        if text.startswith("{", place) and not arguments:
            return self._read_json_inside(text, place, name, close)
        raise CutCall if _is_cut(text, place) else BrokenCall

    def _read_json_inside(
        self, text: str, place: int, name: str, close: re.Pattern[str]
    ) -> Calls:
        value, place = _read_json(text, place)
        place = place_after(_SPACE, text, place)
        end = close.match(text, place)
        if end is None:
            raise CutCall if _is_cut(text, place) else BrokenCall
        return [WrittenCall(name, _as_arguments(value))], end.end()

    def _read_value(
        self, text: str, opening: re.Match[str], name: str
    ) -> tuple[str, int]:
        """Return an argument's text and the offset after its closing tag.

        The text may quote calls, so a closing tag counts only if every call before it
        is closed, and an argument or the end of the call follows. Raises `BrokenCall`
        if there is none.
        """
        start = opening.end()
        close_key = re.compile(self.close_key.format(key=re.escape(opening["key"])))
        quoted = _CDATA.match(text, start)
        end = close_key.match(text, quoted.end()) if quoted else None
        if quoted and end:
            return quoted["text"], end.end()
        open_call = self.open_call.format(name=re.escape(name))
        close_call = self.close_call.format(name=re.escape(name))
        calls = re.compile(rf"(?P<open>{open_call})|{close_call}")
        depth, place, has_end = 0, start, False
        for end in close_key.finditer(text, start):
            for call in calls.finditer(text, place, end.start()):
                depth += 1 if call["open"] else -1
            place = end.start()
            is_long = text.find("\n", start + 1, place - 1) >= 0
            key = self.next_key if is_long and self.next_key else self.open_key
            if not re.compile(rf"\s*(?:{key}|{close_call}|\Z)").match(text, end.end()):
                continue
            if depth == 0:
                return text[start:place], end.end()
            has_end = True
        raise BrokenCall if has_end else CutCall


def _is_cut(text: str, place: int) -> bool:
    rest = text[place:].rstrip()
    return not rest or (rest.startswith("<") and not re.search(r"[>\n]", rest))


def read_attributes(text: str, begin: re.Match[str]) -> Calls:
    """Read arguments from attributes; the element's text is the content. Without an
    end, the tag may only name the code block below.
    """
    arguments: dict[str, object] = {}
    for key, one, other in _ATTRIBUTE.findall(begin["given"]):
        arguments[key] = one or other
    name = begin["name"]
    if begin["closed"]:
        return [WrittenCall(name, arguments, is_raw=True)], begin.end()
    tags = re.compile(rf"<(?P<end>/)?{re.escape(name)}\b[^<>]*>")
    depth = 1
    for tag in tags.finditer(text, begin.end()):
        depth += -1 if tag["end"] else 1
        if depth == 0:
            arguments["content"] = text[begin.end() : tag.start()]
            return [WrittenCall(name, arguments, is_raw=True)], tag.end()
    if _FENCE.match(text, begin.end()):
        return [], begin.end()
    raise CutCall


def read_body(text: str, begin: re.Match[str]) -> Calls:
    """Read a tag that holds one unnamed argument."""
    end = text.find(f"</{begin['name']}>", begin.end())
    if end < 0:
        return [], begin.end()
    return [WrittenCall(begin["name"], None)], end + len(begin["name"]) + 3


def python_calls(code: str) -> list[WrittenCall]:
    """Return the calls in Python code; none if it has other statements."""
    calls: list[WrittenCall] = []
    for statement in _parse_python(code) or []:
        if not isinstance(statement, ast.Expr | ast.Assign):
            return []
        value = statement.value
        for item in value.elts if isinstance(value, ast.List) else [value]:
            call = _as_call(item)
            if call is None:
                return []
            calls.append(call)
    return calls


def _parse_python(code: str) -> list[ast.stmt] | None:
    try:
        return ast.parse(code.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _as_call(value: ast.expr) -> WrittenCall | None:
    if not isinstance(value, ast.Call):
        return None
    match value.func:
        case ast.Name(id="print") if len(value.args) == 1:
            return _as_call(value.args[0])
        case ast.Name(id=name) | ast.Attribute(attr=name):
            pass
        case _:
            return None
    if value.args:  # positional: names unknown
        return WrittenCall(name, None)
    arguments: dict[str, object] = {}
    for keyword in value.keywords:
        try:
            arguments[keyword.arg or ""] = ast.literal_eval(keyword.value)
        except ValueError:
            return WrittenCall(name, None)
    return WrittenCall(name, arguments)


def read_python_list(text: str, begin: re.Match[str]) -> Calls:
    depth = 0
    for token in _PYTHON_TOKEN.finditer(text, begin.end()):
        depth += {"[": 1, "]": -1}.get(token[0], 0)
        if depth == 0:
            calls = python_calls(text[begin.end() : token.end()])
            if not calls:
                raise BrokenCall
            return calls, token.end()
    raise CutCall


def read_python_line(text: str, begin: re.Match[str]) -> Calls:
    """Accepts calls with keyword arguments only."""
    line = text[begin.end() :].partition("\n")[0]
    end = begin.end() + len(line)
    calls = python_calls(line)
    if not calls and not text[end:].strip() and not line.rstrip().endswith("]"):
        raise CutCall
    if any(call.arguments is None for call in calls):
        return [], end
    return calls, end


def read_code(text: str, begin: re.Match[str]) -> Calls:
    """Read Python for an interpreter, or calls written in it."""
    ends = [mark.start() for mark in _END_OF_CODE.finditer(text, begin.end())]
    for end in (*ends[:_MOST_ENDS], len(text)):
        calls = python_calls(text[begin.end() : end])
        if calls:
            return calls, end
    if not ends and _parse_python(text[begin.end() :]) is None:
        raise CutCall
    return [WrittenCall("python", None)], ends[0] if ends else len(text)


def read_gemma(text: str, begin: re.Match[str]) -> Calls:
    """Strings are between marks instead of quotes."""
    mark = "<escape>" if begin["older"] else '<|"|>'
    end = _end_of_gemma(text, begin.end(), mark)
    parts = text[begin.end() : end.start()].split(mark)
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = json.dumps(part)
        else:
            parts[place] = _GEMMA_KEY.sub(r'\1"\2":', part)
    try:
        arguments = _as_arguments(json.loads(f"{{{''.join(parts)}}}"))
    except (ValueError, RecursionError) as error:
        raise BrokenCall from error
    return [WrittenCall(begin["name"], arguments)], end.end()


def _end_of_gemma(text: str, start: int, mark: str) -> re.Match[str]:
    is_in_text = False
    place = start
    for end in _GEMMA_END.finditer(text, start):
        if text.count(mark, place, end.start()) % 2:
            is_in_text = not is_in_text
        place = end.start()
        if not is_in_text:
            return end
    raise CutCall
