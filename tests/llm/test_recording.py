"""A recorded run is the same run again, without a network and without
anybody's secrets.
"""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from cdd_agent.errors import BadInput
from cdd_agent.llm.port import (
    BadAnswer,
    ConnectionFailed,
    Done,
    Message,
    Model,
    ModelError,
    ModelEvent,
    OnEvent,
    ProviderData,
    RateLimited,
    Request,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from cdd_agent.llm.recording import RecordingModel
from cdd_agent.llm.request_comparison import hide_folder
from cdd_agent.llm.script_file import read_script
from cdd_agent.llm.scripted import NoReplyLeft, ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.text.redaction import Redactor
from tests.files.test_kept_files import spoilt
from tests.support.replies import all_of, stopped
from tests.support.tables import each_row
from tests.support.time_of_loops import leap

KEPT = Path(__file__).parent / "kept" / "record.jsonl"
SECRET = "hunter2-hunter2-42"
REDACTOR = Redactor({SECRET: "SERVICE_TOKEN"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records" / "run.jsonl"


def ask(text: str) -> Request:
    return Request((Message("system", "Be brief."), Message("user", text)))


async def heard(model: Model, text: str) -> list[ModelEvent | Done]:
    return await all_of(model, ask(text))


def recorded(path: Path, *script: str | ModelError | ScriptedReply) -> RecordingModel:
    return RecordingModel(ScriptedModel(script), path, REDACTOR)


def replayed(path: Path) -> ScriptedModel:
    return ScriptedModel.from_file(path, REDACTOR)


async def test_recorded_calls_are_replayed_in_any_order(path: Path) -> None:
    model = recorded(path, "first words", "second words")
    first, second = await heard(model, "one"), await heard(model, "two")

    again = replayed(path)

    assert await heard(again, "two") == second
    assert await heard(again, "one") == first


async def test_a_recorded_error_is_raised_again_and_then_the_next_reply_follows(
    path: Path,
) -> None:
    limit = RateLimited("Slow down.", hint="Wait.", retry_after=2.0)
    model = recorded(path, limit, ScriptedReply("Hello there", cut=6), "Hi")
    with pytest.raises(RateLimited):
        await heard(model, "one")
    with pytest.raises(ConnectionFailed):
        await heard(model, "one")
    good = await heard(model, "one")

    again = replayed(path)

    with pytest.raises(RateLimited, match="Slow down") as raised:
        await heard(again, "one")
    assert (raised.value.hint, raised.value.retry_after) == ("Wait.", 2.0)
    pieces: list[ModelEvent] = []
    with pytest.raises(ConnectionFailed):
        await again.reply(ask("one"), pieces.append)
    assert pieces == [TextDelta("Hello ")]
    assert await heard(again, "one") == good


async def test_a_record_with_the_older_name_for_thoughts_is_replayed(
    path: Path,
) -> None:
    first = await heard(
        recorded(path, ScriptedReply("Hello.", thinking="Hm, well.")), "one"
    )
    path.write_text(path.read_text().replace("thinking_tokens", "reasoning_tokens"))

    assert await heard(replayed(path), "one") == first
    assert isinstance(first[-1], Done)
    assert first[-1].usage is not None
    assert first[-1].usage.thinking_tokens == 2


async def test_a_cancelled_reply_is_not_recorded(path: Path) -> None:
    model = recorded(path, "first words")
    await stopped(model, ask("one"))
    assert not path.exists()


async def test_the_file_holds_no_secret_even_if_it_came_in_pieces(path: Path) -> None:
    class InPieces(ScriptedModel):
        async def reply(self, request: Request, on_event: OnEvent) -> Done:
            def spell(event: ModelEvent) -> None:
                for piece in (
                    map(TextDelta, event.text)
                    if isinstance(event, TextDelta)
                    else (event,)
                ):
                    on_event(piece)

            return await super().reply(request, spell)

    model = RecordingModel(
        InPieces([f"It is {SECRET}, keep it.", RateLimited(f"{SECRET}?")]),
        path,
        REDACTOR,
    )
    passed_on = await heard(model, f"What is {SECRET}?")
    with pytest.raises(RateLimited):
        await heard(model, "and?")

    assert SECRET in "".join(
        event.text for event in passed_on if isinstance(event, TextDelta)
    )
    assert SECRET not in path.read_text()
    first = json.loads(path.read_text().splitlines()[0])
    assert SECRET not in "".join(
        fields.get("text", "") for _, _, fields in first["events"]
    )
    words = "".join(
        e.text
        for e in await heard(replayed(path), f"What is {SECRET}?")
        if isinstance(e, TextDelta)
    )
    assert "[redacted: SERVICE_TOKEN]," in words


async def test_a_request_beyond_the_recorded_ones_has_no_reply(
    path: Path,
) -> None:
    await heard(recorded(path, "Hello"), "one")
    again = replayed(path)
    with pytest.raises(NoReplyLeft) as raised:
        await heard(again, "two")
    assert not raised.value.is_transient
    await heard(again, "one")
    with pytest.raises(NoReplyLeft):
        await heard(again, "one")


async def test_durations_in_test_output_do_not_change_the_match(path: Path) -> None:
    await heard(
        recorded(path, "Hello"), "1 failed in 0.03s at <A object at 0x7f0ea3dc9f80>"
    )
    assert await heard(
        replayed(path), "1 failed in 12.5s at <A object at 0x7fffffffff00>"
    )


async def test_a_torn_line_is_skipped_and_later_lines_are_read(path: Path) -> None:
    await heard(recorded(path, "Hello"), "one")
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert await heard(replayed(path), "one")

    await heard(recorded(path, "Good evening"), "two")

    assert await heard(replayed(path), "two")


@each_row(
    ("text", "words"),
    [
        (None, "does not exist"),
        ("", ":1: `replies` is missing"),
        ('{"a": 1}\n', ":1: `a` is unknown"),
        (
            '{"request": {"messages": []}, "events": [], "error": null}\n',
            ":1: a call must end with `done` or an error",
        ),
        (
            (
                '{"model": "m", "request": {"messages": [{"role": "boss"}]}, "events":'
                ' [[0, "done", {}]], "error": null}\n'
            ),
            ":1: `request.messages.0.role` is not one of",
        ),
        (
            (
                '{"model": "m", "request": {"messages": []}, "events": [[0, "text",'
                ' {}]], "error": null}\n'
            ),
            ":1: `text` is missing",
        ),
    ],
)
def test_a_file_that_is_no_script_is_refused(
    tmp_path: Path, text: str | None, words: str
) -> None:
    path = tmp_path / "run.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadInput, match=words) as raised:
        replayed(path)
    assert raised.value.hint


def test_a_record_that_an_earlier_version_recorded_is_read() -> None:
    calls = read_script(KEPT).replies
    assert [type(call.done or call.error) for call in calls] == [
        Done,
        Done,
        RateLimited,
        Done,
        ConnectionFailed,
        BadAnswer,
    ]
    first, _, limit, *_ = calls
    requests = [call.request for call in calls if call.request is not None]

    picture = requests[0].messages[1].pictures[0]
    assert (picture.width, len(picture.data)) == (2, 32)
    assert requests[0].tools[0].parameters["required"] == ["path"]
    assert requests[1].messages[2].tool_calls == (
        ToolCall("c1", "read_file", '{"path": "a.py"}'),
    )
    assert requests[1].messages[2].provider_data == ProviderData(
        "m https://a", '{"x": 1}'
    )
    usage = Usage(
        12,
        3,
        usd=0.5,
        cached_tokens=4,
        cache_write_tokens=1,
        thinking_tokens=2,
        saved_usd=-0.25,
    )
    assert first.done == Done(
        StopReason.STOP, usage, ProviderData("m https://a", '{"x": 1}')
    )
    assert isinstance(limit.error, RateLimited)
    assert (limit.error.hint, limit.error.retry_after) == ("Wait.", 2.0)

    for line, call in zip(KEPT.read_text().splitlines(), calls, strict=True):
        assert convert(json.loads(line)["request"], Request) == call.request


@st.composite
def damaged_calls(draw: st.DrawFn) -> str:
    line = draw(st.sampled_from(KEPT.read_text().splitlines()))
    return json.dumps(spoilt(draw, json.loads(line)))


@given(damaged_calls())
def test_any_damaged_record_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, line: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "run.jsonl"
    path.write_text(line)
    with suppress(BadInput):
        read_script(path)


async def test_the_form_of_a_record_is_stable(path: Path) -> None:
    usage = Usage(
        12,
        3,
        usd=0.5,
        cached_tokens=4,
        cache_write_tokens=1,
        thinking_tokens=2,
        saved_usd=-0.25,
    )
    call = ToolCall("c1", "read_file", '{"path": "a.py"}')

    class Full(ScriptedModel):
        async def reply(self, request: Request, on_event: OnEvent) -> Done:
            await super().reply(request, on_event)
            return Done(StopReason.STOP, usage, ProviderData("m https://a", '{"x": 1}'))

    await heard(
        RecordingModel(
            Full([ScriptedReply("I look.", tool_calls=(call,), thinking="Hm, well.")]),
            path,
            REDACTOR,
        ),
        "?",
    )
    new = json.loads(path.read_text())
    old = json.loads(KEPT.read_text().splitlines()[0])
    assert [event[1:] for event in new["events"]] == [
        event[1:] for event in old["events"]
    ]
    added = {"is_typed": False}
    assert new["request"]["messages"][0] == old["request"]["messages"][0] | added


async def test_a_call_without_an_end_is_ignored(path: Path) -> None:
    await heard(recorded(path, "Hello"), "one")
    line = json.loads(path.read_text())
    assert line["events"].pop()[1] == "done"
    path.write_text(json.dumps(line))

    with pytest.raises(BadInput, match=":1: ") as raised:
        replayed(path)
    assert "done" in raised.value.message


async def test_a_disk_error_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match=r"run\.jsonl"):
        await heard(recorded(tmp_path / "file" / "run.jsonl", "Hello"), "one")


async def test_a_script_may_mix_recorded_calls_and_written_replies(
    path: Path,
) -> None:
    await heard(recorded(path, ScriptedReply("Recorded.", thinking="Hm.")), "one")
    call = json.loads(path.read_text())
    path.write_text(json.dumps({"replies": [{"reply": "Written."}, call]}))

    model = replayed(path)

    assert TextDelta("Recorded.") in await heard(model, "one")
    assert TextDelta("Written.") in await heard(model, "one")


async def test_a_replayed_call_keeps_its_speed_only_if_the_user_watches(
    path: Path,
) -> None:
    await heard(recorded(path, ScriptedReply("Hello.", slow=0.2)), "one")
    call = json.loads(path.read_text())
    assert call["events"][0][0] >= 0.2
    call["events"] = [[600.0 + at, *event] for at, *event in call["events"]]
    path.write_text(json.dumps(call))

    async with asyncio.timeout(60):
        await heard(ScriptedModel.from_file(path, REDACTOR, in_time=False), "one")
    in_time = asyncio.create_task(heard(replayed(path), "one"))
    await asyncio.sleep(0.1)
    assert not in_time.done()
    leap(601)
    assert TextDelta("Hello.") in await in_time


async def test_a_cancelled_replay_can_be_repeated(path: Path) -> None:
    first = await heard(recorded(path, ScriptedReply("Hello.", slow=0.2)), "one")
    again = replayed(path)
    call = asyncio.create_task(heard(again, "one"))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert await heard(again, "one") == first


async def test_a_short_folder_in_a_longer_path_stays_in_a_record(path: Path) -> None:
    text = "src/app.py, ./app, /application, web/app/x, /app-b, **/app, (a)/app "
    arguments = json.dumps({"path": "src/app.py", "content": "\n/app/b"})
    call = ToolCall("c1", "create_file", arguments)
    reply = ScriptedReply(f"{text}/app/a '/app' file:///app/b", tool_calls=(call,))
    redactor = hide_folder(REDACTOR, Path("/app"))
    await heard(RecordingModel(ScriptedModel([reply]), path, redactor), "one")

    second = Path('/home/a "b')
    events = await heard(ScriptedModel.from_file(path, REDACTOR, second), "one")

    texts = [event.text for event in events if isinstance(event, TextDelta)]
    expected = f"{text}{second}/a '{second}' file://{second}/b"
    assert "".join(texts) == expected
    (again,) = [event for event in events if isinstance(event, ToolCall)]
    expected_call = {"path": "src/app.py", "content": f"\n{second}/b"}
    assert json.loads(again.arguments) == expected_call


async def test_a_record_does_not_name_the_folder_of_its_project(
    tmp_path: Path, path: Path
) -> None:
    first, second = tmp_path / "my own first", tmp_path / "second"
    call = ToolCall("c1", "read_file", json.dumps({"path": f"{first}/a.py"}))
    reply = ScriptedReply(
        f"It is {first}/a.py.", thinking=f"In {first}?", tool_calls=(call,)
    )
    model = RecordingModel(ScriptedModel([reply]), path, hide_folder(REDACTOR, first))
    await heard(model, f"rootdir: {first} and more")
    assert str(first) not in path.read_text()

    again = ScriptedModel.from_file(path, REDACTOR, second)
    events = await heard(again, f"rootdir: {second} and more")

    texts = [event.text for event in events if isinstance(event, TextDelta)]
    thoughts = [event.text for event in events if isinstance(event, ThoughtDelta)]
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert "".join(texts) == f"It is {second}/a.py."
    assert "".join(thoughts) == f"In {second}?"
    assert json.loads(calls[0].arguments) == {"path": f"{second}/a.py"}
