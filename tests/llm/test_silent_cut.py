"""Every request that Ollama cuts is noticed, and no request that it has read."""

import re
from collections.abc import Iterator

from msgspec import Struct

from cdd_agent.llm.direct.silent_cut import is_cut
from cdd_agent.llm.port import Message, Picture, Request, ToolCall, Usage
from cdd_agent.llm.token_estimates import estimate_prompt
from tests.support.tables import each_row

_PART = re.compile(
    r"[\u3400-\u9fff]{1,2}|[^\r\n\w]?[^\W\d_\u3400-\u9fff]{1,8}|\d{1,3}|_"
    r"| ?[^\s\w]+|\s+"
)
"""A token, much as the models that Ollama runs have them: a word with the sign before
it, three digits, signs in a row, white space.
"""


def tokens(text: str) -> int:
    return len(_PART.findall(text))


TEXTS = {
    "English": "The quick brown fox jumps over a lazy dog. ",
    "code": "    def add(self, left, right):\n        return self.total + left[0]\n",
    "dense code": "a.b(c[d],e=-1);",
    "German": "Die Bürgermeisterin prüft Rechnungen während der Sitzung. ",
    "Russian": "Быстрая лиса прыгает через ленивую собаку. ",
    "Chinese": "模型需要读取整个请求。",
    "digits": '{"id": 20461973, "hash": "5f2e13e9"},\n',
    "indented": "\n" + " " * 40 + "x = 1",
    "blanks": " " * 60,
    "a rule": "=" * 60,
}
WINDOWS = (2_048, 8_192)
SYSTEM = Message("system", "The password is ANANAS. Say it when you are asked.")


def of_size(text: str, size: int) -> str:
    """A text repeated to about so many tokens, and no more than 60,000 characters."""
    times = size * 9 // tokens(text * 9)
    return text * max(1, min(times, 60_000 // len(text)))


def in_one_message(text: str, size: int) -> Request:
    return Request((SYSTEM, Message("user", of_size(text, size))))


def in_a_conversation(text: str, size: int) -> Request:
    """A loop with tools, whose answers are most of it."""
    messages = [SYSTEM, Message("user", "Which password?")]
    for number in range(4):
        call = ToolCall(f"call_{number}", "read_file", f'{{"path": "{number}.txt"}}')
        answer = of_size(text, size // 4)
        messages += [
            Message("assistant", "I look.", (call,)),
            Message("tool", answer, tool_call_id=call.id),
        ]
    return Request(tuple(messages))


SHAPES = (in_one_message, in_a_conversation)


def sizes(request: Request) -> list[int]:
    """The real tokens of its messages, with those of the template."""
    return [
        4 + tokens(message.content + "".join(c.arguments for c in message.tool_calls))
        for message in request.messages
    ]


class Read(Struct, frozen=True):
    """What Ollama read of a request."""

    how: str
    usage: Usage


def reads(request: Request, window: int) -> Iterator[Read]:
    """The ways in which Ollama's versions read a request that is longer."""
    completion = 20
    half = window // 2 + 2
    yield Read("keeps half of the window", Usage(half, completion))
    yield Read("fills the window", Usage(window - completion, completion))
    system, *others = sizes(request)
    while len(others) > 1 and system + sum(others) > window:
        del others[0]
    rest = system + sum(others)
    if rest <= window:
        yield Read("drops the oldest messages", Usage(rest, completion))


@each_row("text", TEXTS.values(), ids=TEXTS)
def test_a_cut_is_noticed(text: str) -> None:
    unnoticed = []
    for window in WINDOWS:
        for shape in SHAPES:
            for times in (1.4, 3):
                request = shape(text, int(window * times))
                if sum(sizes(request)) <= window:
                    continue
                unnoticed += [
                    (window, shape.__name__, times, read)
                    for read in reads(request, window)
                    if not is_cut(request, read.usage, window)
                ]
    assert unnoticed == []


@each_row("text", TEXTS.values(), ids=TEXTS)
def test_a_request_that_was_read_is_no_cut(text: str) -> None:
    accused = []
    for window in (*WINDOWS, None):
        for shape in SHAPES:
            for times in (0.01, 0.5, 0.9):
                request = shape(text, int((window or 4_096) * times))
                usage = Usage(sum(sizes(request)), 20)
                if is_cut(request, usage, window):
                    accused.append((window, shape.__name__, times, usage))
    assert accused == []


def test_a_count_without_cached_tokens_is_no_cut() -> None:
    request = in_a_conversation(TEXTS["code"], 3_000)
    assert estimate_prompt(request) <= 8_192

    assert not is_cut(request, Usage(40, 20), 8_192)
    assert not is_cut(request, Usage(0, 20), None)


def test_a_picture_with_few_tokens_is_no_cut() -> None:
    picture = Picture("shot.png", "image/png", 8_000, 8_000, b"")
    message = Message("user", "What is this?", pictures=(picture,))
    request = Request((SYSTEM, message))

    for window in (*WINDOWS, None):
        assert not is_cut(request, Usage(256, 20), window)
