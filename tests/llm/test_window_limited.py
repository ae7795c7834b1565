"""A server that ends without a word where a request is too long, as some on people's
own computers do.
"""

import pytest

from cdd_agent.events.notices import NoticeKind
from cdd_agent.llm.port import ContextTooLong, Message, NotAReply, Request
from cdd_agent.llm.window_limited import WindowLimited
from tests.llm.server import Answer, LoopbackServer
from tests.llm.test_direct import model_at
from tests.support.projects import Sandbox, Step, notice, run_all
from tests.support.replies import all_of

NOTHING = Answer(raw="", content_type="text/event-stream")
LONG = Request((Message("user", "a word " * 1_000),))


async def test_a_request_longer_than_the_window_is_an_error() -> None:
    with LoopbackServer([NOTHING]) as server:
        model = WindowLimited(model_at(server.url), 2_000)
        with pytest.raises(
            ContextTooLong,
            match=r"about 2,3\d\d tokens, and the model's window has 2,000",
        ):
            await all_of(model, LONG)


async def test_a_request_that_fits_failed_for_another_reason() -> None:
    with LoopbackServer([NOTHING]) as server:
        model = WindowLimited(model_at(server.url), 4_000)
        with pytest.raises(NotAReply):
            await all_of(model, LONG)


async def test_a_request_that_is_too_long_is_not_sent_again(sandbox: Sandbox) -> None:
    """A chat of a step grows past the window: a second time it would not fit either."""
    sandbox.flags = {"context_window": 9_000, "tool_calls": "off"}
    sandbox.write(Step("a.txt"))
    with LoopbackServer([NOTHING, "never"]) as server:
        # too small for anything
        sandbox.real_model = WindowLimited(model_at(server.url), 1)
        events = await run_all(sandbox)
        assert len(server.requests) == 1
    assert "openai/test-model" in notice(events, NoticeKind.MODEL_FAILED)
