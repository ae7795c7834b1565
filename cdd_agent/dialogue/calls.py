import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from msgspec import Struct

from cdd_agent.dialogue import text_tools
from cdd_agent.llm.port import Message, ToolCall
from cdd_agent.llm.token_estimates import estimate_tokens
from cdd_agent.tools.base import Answer, Tool

LONGEST_ANSWER = 40_000
"""Characters of one answer that the model sees: its beginning and its end."""
MOST_IN_A_ROUND = 100_000
"""Characters of all answers of a round."""
SHORTEST_ANSWER = 1_000
"""Minimum characters of an answer, even if the window is nearly full: the model must
know what the tool did.
"""
_MOST_REPEATS = 3
_ASK_FOR_LESS = "ask for less"
_ASK_FOR_LESS_AT_ONCE = (
    f"all answers of a round have {MOST_IN_A_ROUND:,} together; ask for less at once"
)


class AnswerRoom(Struct):
    characters: int
    tokens: int | None
    """Tokens that remain in the model's window. None if its size is unknown."""

    @classmethod
    def after(cls, messages: Sequence[Message], tokens: int | None) -> "AnswerRoom":
        """Return the room after `messages`, which may end with answers of the same
        round.
        """
        earlier = sum(len(answer.content) for answer in _last_answers(messages))
        return cls(MOST_IN_A_ROUND - earlier, tokens)

    def add(self, answer: str) -> str:
        """Reserve room for an answer, at most half of the remaining window. Return the
        part that fits. A shortened answer is no longer valid JSON.
        """
        longest = min(LONGEST_ANSWER, self.characters)
        if self.tokens is not None:
            share = len(answer) * self.tokens // (2 * estimate_tokens(answer))
            longest = min(longest, share)
        text = self._cut(answer, max(longest, SHORTEST_ANSWER))
        self.characters -= len(text)
        if self.tokens is not None:
            self.tokens -= estimate_tokens(text)
        return text

    def _cut(self, answer: str, longest: int) -> str:
        if len(answer) <= longest:
            return answer
        half = longest // 2
        advice = _ASK_FOR_LESS
        if self.characters < LONGEST_ANSWER:
            advice = _ASK_FOR_LESS_AT_ONCE
        omitted = f"{len(answer) - 2 * half:,} characters left out"
        return f"{answer[:half]}\n… {omitted}; {advice} …\n{answer[-half:]}"


class Tools:
    """The tools of a turn. A call that was made too often is refused, unless the
    project may have changed since.
    """

    def __init__(self, tools: Sequence[Tool[Any]]) -> None:
        self._tools = tools
        self._times: dict[ToolCall, int] = {}

    def get(self, call: ToolCall) -> Tool[Any] | None:
        for tool in self._tools:
            if tool.name == call.name:
                return tool
        return None

    async def answer(self, call: ToolCall) -> Answer:
        """Make a call. An impossible call is answered with an error."""
        tool = self.get(call)
        if tool is None:
            problem = "That is not a call as described"
            if call.name:
                problem = f"There is no tool {call.name!r}"
            names = ", ".join(tool.name for tool in self._tools)
            return {"error": f"{problem}. The tools are {names}."}
        if self._is_repeated(call, tool):
            return {
                "error": (
                    f"This call was made {_MOST_REPEATS} times already. Its answer is"
                    " above; continue from it."
                )
            }
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError) as error:
            return {
                "error": f"The arguments of {call.name} are not valid JSON: {error}."
            }
        if not isinstance(arguments, dict):
            return {"error": f"The arguments of {call.name} are not a JSON object."}
        return await tool.execute(**arguments)

    def _is_repeated(self, call: ToolCall, tool: Tool[Any]) -> bool:
        """Count a call. True if it was made too often."""
        key = ToolCall("", call.name, call.arguments)
        times = self._times.get(key, 0) + 1
        if tool.acts:
            self._times.clear()
        self._times[key] = times
        return times > _MOST_REPEATS


def answer_messages(
    answers: Sequence[tuple[ToolCall, str]], *, is_native: bool, note: str = ""
) -> tuple[Message, ...]:
    if not is_native:
        paragraphs = [text_tools.answer_text(answers)]
        if note:
            paragraphs.append(note)
        return (Message("user", "\n\n".join(paragraphs)),)
    messages = [
        Message("tool", answer, tool_call_id=call.id) for call, answer in answers
    ]
    if note:
        messages.append(Message("user", note))
    return tuple(messages)


def find_open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """Return the calls at the end of a conversation that have no answers yet."""
    answers = len(_last_answers(messages))
    if answers == len(messages):
        return ()
    return messages[-answers - 1].tool_calls[answers:]


def finished_rounds(messages: Sequence[Message]) -> int:
    """Return the number of rounds of native calls that have all their answers."""
    begun = sum(bool(message.tool_calls) for message in messages)
    return begun - bool(find_open_calls(messages))


def _last_answers(messages: Sequence[Message]) -> list[Message]:
    return list(takewhile(lambda message: message.role == "tool", reversed(messages)))
