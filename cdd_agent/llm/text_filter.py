"""Markup that some servers leave in a reply's text and is none of it: thoughts in tags
or channels, calls of tools.

Such markup is looked for where prose is: before the first line that looks like code or
an edit. From there on nothing is touched, so that no file that a reply brings can lose
a line that only looks like it.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress

from cdd_agent.llm.port import TextDelta, ThoughtDelta, ToolCall, WasThought

_OPENING = re.compile(
    r" {0,3}(?:"
    r"<(?P<tag>think|thinking|thoughts?|reasoning|scratchpad)>"
    r"|<\|channel\|>(?P<channel>analysis|commentary|final)[^<\n]*<\|message\|>"
    r"|(?P<role><\|start\|>assistant)"
    r"|(?P<call><tool_call>)"
    r"|(?P<orphan></(?:think|thinking)>)"
    r")",
    re.IGNORECASE,
)
_LONGEST_OPENING = 80
_CODE = re.compile(
    r" {0,3}(?:`{3}|~{3}|<{5}|-{3}|\+{3}|@@|\*{3} |diff |- action|actions:)"
)
_CALL = re.compile(
    r" {0,3}(?:<(?:[\w-]+:)?(?:function_calls?>|invoke\s|tool_calls>|function=)"
    r"|<(?:[\w-]+:)?\w+_\w+>|<[｜|](?:tool|DSML)|<\|channel\|>\w+ to=)(?<!<tool_call>)"
)
"""The beginning of a call: a file that it writes may look like thoughts, too."""
_CODE_BEGINS = (
    "```",
    "~~~",
    "---",
    "+++",
    "@@",
    "*** ",
    "diff ",
    "- action",
    "actions:",
)
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})")
_ORPHAN = re.compile(r"</(?:think|thinking)>[ \t]*\n", re.IGNORECASE)
_CHANNEL_ENDS = ("<|end|>", "<|start|>", "<|channel|>", "<|return|>", "<|call|>")
_CALL_END = "</tool_call>"
_FUNCTION = re.compile(
    r"<function=(?P<name>[^>\s]+)>(?P<body>.*?)(?:</function>|\Z)", re.DOTALL
)
_PARAMETER = re.compile(
    r"<parameter=(?P<name>[^>\s]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL
)


class UnreadableCall(Exception):
    """A call of a tool in the text that cannot be made sense of."""


class TextFilter:
    """Takes the text of one reply in pieces, and gives it with thoughts apart. What may
    become markup waits.
    """

    def __init__(self, *, has_tools: bool = True) -> None:
        """`has_tools`: calls are taken out of the text. Otherwise they stay in it."""
        self._has_tools = has_tools
        self._waiting = ""
        self._ends: tuple[str, ...] = ()
        """The marks that end the thoughts or the call that the text is in; none: it is
        in the reply.
        """
        self._call: list[str] | None = None
        """The call that the text is in."""
        self._is_line_start = True
        self._ends_line = False
        """A line break that comes now ends the line of what was hidden."""
        self._is_code = False
        """All that comes is an edit, to its very end."""
        self._has_code = False
        """A code block has begun: from there on only the end of thoughts is looked for,
        outside of such blocks.
        """
        self._fence = ""
        """Of the block that the text is in."""
        self.has_thought = False
        """Thoughts have come with a beginning of their own: an end alone is text."""
        self._calls: list[str] = []

    def feed(self, piece: str) -> Iterator[TextDelta | ThoughtDelta | WasThought]:
        """The parts that are known by now to be text or thought."""
        self._waiting += piece
        while (
            self._waiting
            and (step := self._hidden() if self._ends else self._shown()) is not None
        ):
            yield from step

    def end(self) -> Iterator[TextDelta | ThoughtDelta | WasThought]:
        """The rest, when no more will come."""
        rest, self._waiting = self._waiting, ""
        if self._call is not None:
            self._calls.append("".join([*self._call, rest]))
        elif rest:
            yield ThoughtDelta(rest) if self._ends else TextDelta(rest)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that were in the text. Raises `UnreadableCall`."""
        return tuple(_call(text, number) for number, text in enumerate(self._calls, 1))

    def _shown(self) -> list[TextDelta | ThoughtDelta | WasThought] | None:
        """The next part of the reply's own text; None: it has to wait for more."""
        if self._ends_line:
            self._waiting, self._ends_line = self._waiting.removeprefix("\n"), False
            return []
        if not self._is_line_start or self._is_code:
            line, newline, rest = self._waiting.partition("\n")
            text, self._waiting = (
                (self._waiting, "") if self._is_code else (line + newline, rest)
            )
            self._is_line_start = bool(newline)
            return [TextDelta(text)]
        if self._fence:
            return self._in_block()
        if fence := _FENCE.match(self._waiting):
            if fence.end() == len(self._waiting):
                return None
            self._fence, self._has_code, self._is_line_start = (
                fence["mark"],
                True,
                False,
            )
            return []
        if _CODE.match(self._waiting) or _CALL.match(self._waiting):
            self._is_code = True
            return []
        if self._has_code:
            return self._after_a_block()
        if found := _OPENING.match(self._waiting):
            if found["call"] and not self._has_tools:
                self._is_code = True
                return []
            if found["orphan"] and self.has_thought:
                self._is_line_start = False
                return []
            self._waiting = self._waiting[found.end() :]
            if found["orphan"]:
                self._ends_line = True
                return self._end_unbegun()
            self.has_thought = self.has_thought or not found["call"]
            if found["tag"]:
                self._ends = (f"</{found['tag'].lower()}>",)
            elif found["call"]:
                self._ends, self._call = (_CALL_END,), []
            elif (found["channel"] or "final").lower() != "final":
                self._ends = _CHANNEL_ENDS
            return []
        if self._may_open():
            return None
        self._is_line_start = False
        return []

    def _in_block(self) -> list[TextDelta | ThoughtDelta | WasThought] | None:
        line, newline, _ = self._waiting.partition("\n")
        mark = line.strip()
        may_close = not mark or set(mark) == {self._fence[0]}
        if may_close and not newline:
            return None
        if may_close and len(mark) >= len(self._fence):
            self._fence = ""
        self._is_line_start = False
        return []

    def _after_a_block(self) -> list[TextDelta | ThoughtDelta | WasThought] | None:
        line, newline, _ = self._waiting.partition("\n")
        if not self.has_thought and (found := _ORPHAN.match(self._waiting)):
            self._waiting, self._has_code = self._waiting[found.end() :], False
            return self._end_unbegun()
        if not newline and len(line) < _LONGEST_OPENING and self._may_open():
            return None
        self._is_line_start = False
        return []

    def _end_unbegun(self) -> list[TextDelta | ThoughtDelta | WasThought]:
        """Some servers keep the tag that begins thoughts to themselves: all that came
        was thought.
        """
        self.has_thought = True
        self._calls.clear()
        return [WasThought()]

    def _may_open(self) -> bool:
        """Whether the line that waits could still become markup, or the beginning of
        code.
        """
        line = self._waiting.lstrip(" ")
        is_short = "\n" not in line and len(line) < _LONGEST_OPENING
        could_be_code = any(start.startswith(line) for start in _CODE_BEGINS)
        return is_short and (could_be_code or line.startswith("<"))

    def _hidden(self) -> list[TextDelta | ThoughtDelta | WasThought] | None:
        lower = self._waiting.lower()
        places = [(place, end) for end in self._ends if (place := lower.find(end)) >= 0]
        if places:
            place, end = min(places)
            text, rest = self._waiting[:place], self._waiting[place:]
            # A mark that begins what comes next is read again.
            self._ends_line = end not in ("<|start|>", "<|channel|>")
            self._waiting = rest[len(end) :] if self._ends_line else rest
            self._ends, self._is_line_start = (), True
            told = self._keep(text)
            if self._call is not None:
                self._calls.append("".join(self._call))
                self._call = None
            return told
        cut = lower.rfind("<")
        sure = (
            len(lower)
            if cut < 0 or not any(end.startswith(lower[cut:]) for end in self._ends)
            else cut
        )
        if not sure:
            return None
        text, self._waiting = self._waiting[:sure], self._waiting[sure:]
        return self._keep(text)

    def _keep(self, text: str) -> list[TextDelta | ThoughtDelta | WasThought]:
        if self._call is not None:
            self._call.append(text)
            return []
        return [ThoughtDelta(text)] if text else []


def _call(text: str, number: int) -> ToolCall:
    """A call as Qwen's models write it: JSON with name and arguments, or tags."""
    if found := _FUNCTION.search(text):
        values: dict[str, object] = {}
        for match in _PARAMETER.finditer(found["body"]):
            values[match["name"]] = match["value"]
            # numbers, lists and the like are written as JSON
            with suppress(ValueError, RecursionError):
                value: object = json.loads(match["value"])
                values[match["name"]] = (
                    match["value"] if isinstance(value, str) else value
                )
        return ToolCall(
            f"call_{number}", found["name"], json.dumps(values, ensure_ascii=False)
        )
    try:
        written = json.loads(text)
        name, arguments = written["name"], written.get("arguments", {})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableCall(text) from error
    return ToolCall(
        f"call_{number}",
        str(name),
        arguments if isinstance(arguments, str) else json.dumps(arguments),
    )
