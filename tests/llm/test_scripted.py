"""The scripted model: which reply goes to which request, and the file form of a
script.
"""

import asyncio
import http.client
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.llm.port import (
    BadAnswer,
    ConnectionFailed,
    Done,
    Message,
    ModelError,
    ModelEvent,
    RateLimited,
    Request,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
)
from cdd_agent.llm.script_file import ERRORS
from cdd_agent.llm.scripted import NoReplyLeft, ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from tests.support.replies import all_of
from tests.support.tables import each_row
from tests.support.time_of_loops import leap

SCRIPT = """\
pace: 0
replies:
  - when: "Step 2"
    reply: |
      second
  - reply: first
  - error: rate_limited
  - reply: cut
    stop: length
"""


def ask(text: str, *earlier: Message) -> Request:
    return Request((Message("system", "Be brief."), *earlier, Message("user", text)))


async def reply_to(model: ScriptedModel, request: Request) -> str:
    return "".join(
        [
            event.text
            for event in await all_of(model, request)
            if isinstance(event, TextDelta)
        ]
    )


async def test_replies_are_played_in_order_and_requests_are_kept() -> None:
    model = ScriptedModel(["one", "two"])

    assert await reply_to(model, ask("a")) == "one"
    assert await reply_to(model, ask("b")) == "two"
    assert model.requests == [ask("a"), ask("b")]


async def test_a_scripted_error_is_raised_and_the_next_reply_follows() -> None:
    model = ScriptedModel([RateLimited("Later."), "two"])

    with pytest.raises(RateLimited, match="Later"):
        await reply_to(model, ask("a"))
    assert await reply_to(model, ask("a")) == "two"


async def test_a_reply_with_a_matching_when_comes_first() -> None:
    model = ScriptedModel(
        [
            "any",
            ScriptedReply("for two", when="Step 2"),
            ScriptedReply("again", when="Step 2"),
        ]
    )

    assert await reply_to(model, ask("Do Step 2.")) == "for two"
    assert await reply_to(model, ask("Do Step 2.")) == "again"
    assert await reply_to(model, ask("Do Step 2.")) == "any"


async def test_when_matches_the_last_user_message_only() -> None:
    model = ScriptedModel([ScriptedReply("for one", when="Step 1"), "any"])
    history = (Message("user", "Do Step 1."), Message("assistant", "Step 1 is done."))

    assert await reply_to(model, ask("Do Step 2.", *history)) == "any"


async def test_an_exhausted_script_raises_an_error() -> None:
    model = ScriptedModel(["one", ScriptedReply("never", when="Step 9")])
    await reply_to(model, ask("a"))

    with pytest.raises(NoReplyLeft, match="request 2") as raised:
        await reply_to(model, ask("b"))
    assert not raised.value.is_transient
    assert "`when`" in raised.value.hint


async def test_words_count_as_tokens() -> None:
    *_, last = await all_of(ScriptedModel(["three small words"]), ask("Hello there"))

    assert last == Done(StopReason.STOP, Usage(prompt_tokens=4, completion_tokens=3))


async def test_an_empty_when_answers_only_what_no_other_reply_fits() -> None:
    model = ScriptedModel(
        [ScriptedReply("whatever", when=""), ScriptedReply("first", when="Step 1")]
    )
    asked = ("Step 1", "Step 1", "Why?", "Step 1", "Why?")
    answers = [await reply_to(model, ask(text)) for text in asked]
    assert answers == ["first", "first", "whatever", "first", "whatever"]


async def test_a_step_may_repeat_if_no_other_reply_matches() -> None:
    model = ScriptedModel(
        [
            ScriptedReply("again", when="it failed"),
            ScriptedReply("first", when="Step 1"),
            "other",
        ]
    )
    asked = (
        "Step 1",
        "Step 1, it failed",
        "Step 1, it failed",
        "Step 1",
        "Step 1, it failed",
    )
    assert [await reply_to(model, ask(text)) for text in asked] == [
        "first",
        "again",
        "other",
        "first",
        "again",
    ]


def looking(path: str, when: str | None = "Step 1") -> ScriptedReply:
    call = ToolCall(f"call_{path}", "read_file", f'{{"path": "{path}"}}')
    return ScriptedReply(f"I look into {path}.", when=when, tool_calls=(call,))


def after(*rounds: ScriptedReply, text: str = "Step 1") -> Request:
    """A request in which the replies of these rounds were given since the question."""
    messages = list(ask(text).messages)
    for reply in rounds:
        messages.append(Message("assistant", reply.text, reply.tool_calls))
        messages.append(Message("tool", "{}", tool_call_id=reply.tool_calls[0].id))
    return Request(tuple(messages))


A, B, LAST = looking("a"), looking("b"), ScriptedReply("Done.", when="Step 1")


async def test_a_new_process_continues_in_the_middle_of_a_turn_with_tools() -> None:
    for rounds, text in (((), A.text), ((A,), B.text), ((A, B), LAST.text)):
        assert await reply_to(ScriptedModel([A, B, LAST]), after(*rounds)) == text


async def test_a_turn_that_was_broken_off_begins_again() -> None:
    model = ScriptedModel([A, B, LAST, ScriptedReply("Second.", when="Step 1")])
    rounds: tuple[ScriptedReply, ...]
    for rounds, text in (
        *(((), A.text), ((A,), B.text)),
        # its attempt was stopped here
        *(((), A.text), ((A,), B.text), ((A, B), LAST.text)),
        ((), "Second."),
        # played again
        *(((), A.text), ((A,), B.text), ((A, B), LAST.text)),
    ):
        assert await reply_to(model, after(*rounds)) == text


async def test_an_error_in_a_turn_is_raised_once_in_its_place() -> None:
    error = ScriptedReply(when="Step 1", error=RateLimited("Later."))
    cut = ScriptedReply("Well, well.", when="Step 1", cut=4)
    model = ScriptedModel([error, A, cut, error, LAST])
    with pytest.raises(RateLimited):
        await reply_to(model, after())
    assert await reply_to(model, after()) == A.text
    with pytest.raises(ConnectionFailed):
        await reply_to(model, after(A))
    with pytest.raises(RateLimited):
        await reply_to(model, after(A))
    assert await reply_to(model, after(A)) == LAST.text
    assert await reply_to(model, after()) == A.text


async def test_an_interrupted_reply_is_given_again_in_its_place() -> None:
    model = ScriptedModel([ScriptedReply("one", slow=60), "two", "three"])
    call = asyncio.create_task(reply_to(model, ask("a")))
    await asyncio.sleep(0.01)
    assert await reply_to(model, ask("b")) == "two"
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    again = asyncio.create_task(reply_to(model, ask("c")))
    await asyncio.sleep(0.01)
    assert await reply_to(model, ask("d")) == "three"
    leap(61)
    assert await again == "one"


async def test_a_script_can_misbehave_as_written(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("""\
replies:
  - reply: Hello there
    cut: 8
  - error: rate_limited
    retry_after: 2
  - empty: true
  - reply: at last
    slow: 0.1
""")
    model = ScriptedModel.from_file(path)
    pieces: list[ModelEvent] = []
    with pytest.raises(ConnectionFailed):
        await model.reply(ask("a"), pieces.append)
    assert pieces == [TextDelta("Hello "), TextDelta("th")]
    with pytest.raises(RateLimited) as raised:
        await reply_to(model, ask("a"))
    assert raised.value.retry_after == 2.0
    assert await reply_to(model, ask("a")) == ""
    started = time.monotonic()
    assert await reply_to(model, ask("a")) == "at last"
    assert time.monotonic() - started >= 0.1


async def test_an_error_may_follow_a_text(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("replies:\n- reply: Hello\n  error: bad_answer\n")
    pieces: list[ModelEvent] = []
    with pytest.raises(BadAnswer):
        await ScriptedModel.from_file(path).reply(ask("a"), pieces.append)
    assert pieces == [TextDelta("Hello")]


async def test_pace_is_in_characters_per_second() -> None:
    started = time.monotonic()
    await reply_to(ScriptedModel(["ten chars " * 5], pace=500), ask("a"))

    assert time.monotonic() - started >= 0.1


async def test_a_script_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT, encoding="utf-8")
    model = ScriptedModel.from_file(path)

    assert await reply_to(model, ask("Do Step 2.")) == "second\n"
    assert await reply_to(model, ask("Do Step 1.")) == "first"
    with pytest.raises(RateLimited):
        await reply_to(model, ask("Do Step 1."))
    *_, last = await all_of(model, ask("Do Step 1."))
    assert last == Done(StopReason.LENGTH, Usage(5, 1))


@each_row("name", list(ERRORS))
async def test_a_script_can_name_every_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(f"replies:\n  - error: {name}\n")
    model = ScriptedModel.from_file(path)

    with pytest.raises(ModelError) as raised:
        await reply_to(model, ask("a"))
    assert type(raised.value) is ERRORS[name]


@each_row(
    ("text", "line", "problem"),
    [
        ("", 1, "`replies` is missing"),
        ("- reply: a", 1, "a script is a mapping of keys"),
        ("replies: []\nspeed: 4", 2, "`speed` is unknown"),
        ("pace: 4", 1, "`replies` is missing"),
        ("replies:\n  reply: a", 1, "`replies` is not a list"),
        ("replies: []\npace: fast", 2, "`pace` is not a number"),
        ("replies: []\npace: -1", 2, "`pace` is not a number (at least 0)"),
        ("replies:\n- reply: a\n- just text", 3, "it is not an object with `when`"),
        ("replies:\n- reply: a\n- when: b", 3, "`reply`: an entry has `reply`"),
        ("replies:\n- reply: 5", 2, "`reply` is not a text"),
        ("replies:\n- when: 2\n  reply: a", 2, "`when` is not a text"),
        ("replies:\n- reply: a\n  unless: b", 2, "`unless` is unknown"),
        ("replies:\n- reply: a\n  stop: never", 2, "`stop` is not one of `length`"),
        (
            "replies:\n- error: boredom",
            2,
            "`error` is 'boredom'; there are authentication_failed, ",
        ),
        (
            "replies:\n- tool_calls: [{name: a, args: {}}]",
            2,
            "`tool_calls.0.args` is unknown",
        ),
        (
            "replies:\n- reply: a\n  cut: -1",
            2,
            "`cut` is not a whole number",
        ),
        ("replies:\n- reply: a\n  slow: ages", 2, "`slow` is not a number"),
        (
            "replies:\n- reply: a\n  slow: 3601",
            2,
            "`slow` is not a number (at",
        ),
        ("replies:\n- empty: maybe", 2, "`empty` is not true or false"),
        ("replies:\n- empty: true\n  reply: a", 2, "`empty`: an empty reply has no"),
        (
            "replies:\n- error: rate_limited\n  retry_after: soon",
            2,
            "`retry_after` is not a number",
        ),
        (
            "replies:\n- error: bad_answer\n  retry_after: 2",
            2,
            "`retry_after`: it belongs to `rate_limited` alone",
        ),
        ("replies:\n- reply: 'a", 2, "not YAML"),
        ("replies: [}", 1, "not YAML"),
    ],
)
def test_a_wrong_script_is_refused_with_the_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(BadInput) as raised:
        ScriptedModel.from_file(path)
    assert raised.value.message.startswith(f"{path}:{line}:")
    assert problem in raised.value.message
    assert raised.value.hint


def test_the_faults_of_all_entries_are_named_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    wrong = (
        "- {replay: a, slow: ages}",
        "- reply: right",
        "- error: boredom",
        "- {error: x, hint: y}",
    )
    path.write_text("\n".join(("replies:", *wrong, "speed: 4", "pace: -1")))

    with pytest.raises(BadInput) as raised:
        ScriptedModel.from_file(path)

    told = [line.removeprefix(f"{path}:") for line in raised.value.message.splitlines()]
    assert [line.partition(" is ")[0] for line in told] == [
        "6: `speed`",
        "2: `replay`",
        "4: `error`",
        "5: `hint`",
    ]


def test_of_many_faults_in_a_script_the_first_are_named(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text("replies:\n" + "- replay: a\n" * 500)
    with pytest.raises(BadInput) as raised:
        ScriptedModel.from_file(path)
    assert len(raised.value.message.splitlines()) < 30
    assert "480 more" in raised.value.message


def test_an_unreadable_script_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"replies: [{reply: caf\xe9}]")

    with pytest.raises(BadInput, match="does not exist"):
        ScriptedModel.from_file(tmp_path / "none.yaml")
    with pytest.raises(BadInput, match="not UTF-8"):
        ScriptedModel.from_file(tmp_path / "latin.yaml")


@pytest.mark.fork
def test_the_loopback_server_plays_a_script_file(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.llm.server", "--script", path],
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().removeprefix("http://").partition("/")[0]
            answers = [
                _post(address, "Do Step 2."),
                _post(address, "a"),
                _post(address, "b"),
            ]
        finally:
            server.terminate()

    assert answers[0][1]["choices"][0]["message"]["content"] == "second\n"
    assert [status for status, _ in answers] == [200, 200, 429]


def _post(
    address: str, text: str
) -> tuple[int, dict[str, list[dict[str, dict[str, str]]]]]:
    connection = http.client.HTTPConnection(address, timeout=60)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})
    connection.request("POST", "/v1/chat/completions", body)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer
