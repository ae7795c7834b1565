"""What every model adapter keeps: the same script, played by each of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    Done,
    Message,
    Model,
    ModelError,
    ModelEvent,
    ModelNotFound,
    RateLimited,
    Request,
    RequestRejected,
    StopReason,
    TextDelta,
    Usage,
)
from cdd_agent.llm.scripted import ScriptedModel, ScriptedReply
from tests.llm.server import LoopbackServer

# litellm silences this warning itself, at import; pytest puts its own filters back for every test.
pytestmark = [  # litellm's and OpenAI's own; pytest forgets the adapter's filters with each test
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning"),
]

MakeModel = Callable[[Sequence[str | ModelError | ScriptedReply]], Model]
REQUEST = Request((Message("system", "Be brief."), Message("user", "Say hello.")))


@pytest.fixture(params=["scripted", "litellm"])
def model(request: pytest.FixtureRequest) -> Iterator[MakeModel]:
    """Make a model that plays a script."""
    with ExitStack() as servers:

        def scripted(script: Sequence[str | ModelError | ScriptedReply]) -> Model:
            return ScriptedModel(script)

        def litellm(script: Sequence[str | ModelError | ScriptedReply]) -> Model:
            server = servers.enter_context(LoopbackServer(ScriptedModel(script)))
            return LitellmModel("openai/test-model", server.url)

        yield {"scripted": scripted, "litellm": litellm}[request.param]


async def events_of(model: Model, request: Request = REQUEST) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_text_arrives_in_pieces_and_one_done_is_last(model: MakeModel) -> None:
    events = await events_of(model(["Hello there, you."]))

    assert events[:-1] == [TextDelta("Hello "), TextDelta("there, "), TextDelta("you.")]
    assert isinstance(events[-1], Done)


async def test_usage_is_what_the_provider_counted(model: MakeModel) -> None:
    *_, last = await events_of(model(["Hello there."]))

    assert last == Done(StopReason.STOP, Usage(prompt_tokens=4, completion_tokens=2))


@pytest.mark.parametrize("reason", list(StopReason))
async def test_says_why_the_model_stopped(model: MakeModel, reason: StopReason) -> None:
    *_, last = await events_of(model([ScriptedReply("Hello", stop=reason)]))

    assert isinstance(last, Done)
    assert last.stop_reason is reason


async def test_an_empty_reply_is_just_done(model: MakeModel) -> None:
    events = await events_of(model([""]))

    assert [type(event) for event in events] == [Done]


@pytest.mark.parametrize(
    "reply",
    ["Grüße, 世界! \N{ROCKET}\n", "  indented\n\n\ttabs  and  spaces \r\n", f"{'=' * 79}\n" * 2_500],
    ids=["not ASCII", "white space", "200 kB"],
)
async def test_a_reply_arrives_as_it_was_written(model: MakeModel, reply: str) -> None:
    assert text_of(await events_of(model([reply]))) == reply


@pytest.mark.parametrize(
    "error",
    [AuthenticationFailed, ModelNotFound, RequestRejected, RateLimited, ConnectionFailed, BadAnswer],
)
async def test_a_failure_is_a_model_error_with_a_hint(model: MakeModel, error: type[ModelError]) -> None:
    with pytest.raises(ModelError) as raised:
        await events_of(model([error("Scripted.", hint="Do something.")]))

    assert type(raised.value) is error
    assert raised.value.message
    assert raised.value.hint


async def test_a_model_answers_again_after_a_failure(model: MakeModel) -> None:
    tried = model([RateLimited("Later."), "Hello"])
    with pytest.raises(RateLimited):
        await events_of(tried)

    assert text_of(await events_of(tried)) == "Hello"


async def test_closing_early_ends_the_stream(model: MakeModel) -> None:
    tried = model(["one two three", "one two three"])
    stream = tried.stream(REQUEST)
    assert await anext(stream) == TextDelta("one ")
    await stream.aclose()

    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert text_of(await events_of(tried)) == "one two three"
