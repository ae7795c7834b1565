"""Claude reads from its cache all that the request before has sent, whoever passes the
request on.
"""

import json
from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from cdd_agent.llm.direct.anthropic_messages import AnthropicMessages
from cdd_agent.llm.direct.chat_completions import ChatCompletions
from cdd_agent.llm.direct.wire_protocol import WireProtocol
from cdd_agent.llm.known_models import UNKNOWN
from cdd_agent.llm.options import NO_OPTIONS
from cdd_agent.llm.port import Message, ProviderData, Request, ToolCall, ToolDefinition
from cdd_agent.llm.providers import Endpoint, endpoint_of
from tests.llm.simulators.anthropic import Anthropic
from tests.llm.simulators.base import Bill, Json, Said
from tests.llm.simulators.chat import ClaudeBehindOpenRouter

READ = ToolDefinition("read_file", "Read a file.", {"type": "object"})
BEGIN = (Message("system", "You carry out steps. " * 40), Message("user", "Go on."))
DIRECT = "anthropic/claude-opus-5"
BEHIND_OPENROUTER = "openrouter/anthropic/claude-opus-5"


class Round(Struct, frozen=True):
    """What one round adds to a conversation."""

    calls: int = 1
    text: str = ""
    thought: str = ""
    note: str = ""
    """The user's words after the answers of the tools."""


def endpoint(model: str) -> Endpoint:
    found = endpoint_of(model, None, {})
    assert found is not None
    return found


def messages_of(number: int, added: Round) -> list[Message]:
    """A round without calls is a reply, and the user's answer to it."""
    calls = tuple(
        ToolCall(f"call_{number}_{n}", "read_file", json.dumps({"path": f"{n}.py"}))
        for n in range(added.calls)
    )
    data = None
    if added.thought:
        thought = {"type": "thinking", "thinking": added.thought, "signature": "s"}
        text = [{"type": "text", "text": added.text}] if added.text else []
        used = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            for call in calls
        ]
        data = ProviderData(
            endpoint(DIRECT).origin(), json.dumps([thought, *text, *used])
        )
    said = Message("assistant", added.text, calls, provider_data=data)
    answers = [
        Message("tool", f"content of {call.id}", tool_call_id=call.id) for call in calls
    ]
    note = added.note
    if not calls:
        note = note or "And then?"
    return [said, *answers, *([Message("user", note)] if note else [])]


def bills_of(
    protocol: WireProtocol, bill: Callable[[Json, Said], Bill], rounds: list[Round]
) -> list[Bill]:
    """The bills of a conversation, one for each of its requests."""
    conversation, bills = list(BEGIN), []
    for number, added in enumerate([*rounds, Round()]):
        body = protocol.call(Request(tuple(conversation), (READ,))).body
        bills.append(bill(dict(body), Said("Yes.")))
        conversation += messages_of(number, added)
    return bills


rounds = st.lists(
    st.builds(
        Round,
        calls=st.integers(0, 45),
        text=st.sampled_from(["", "I look."]),
        thought=st.sampled_from(["", "Perhaps."]),
        note=st.sampled_from(["", "Be quick."]),
    ),
    min_size=1,
    max_size=5,
)


def unread(bills: list[Bill]) -> list[int]:
    """Tokens that were sent before and are not read, for each request after the
    first.
    """
    return [earlier.prompt - later.cached for earlier, later in pairwise(bills)]


@given(rounds)
def test_claude_reads_all_that_was_sent_before(rounds: list[Round]) -> None:
    simulator = Anthropic([])
    protocol = AnthropicMessages(DIRECT, endpoint(DIRECT))

    assert not any(unread(bills_of(protocol, simulator.bill, rounds)))


@given(rounds)
def test_claude_behind_openrouter_reads_all_that_was_sent_before(
    rounds: list[Round],
) -> None:
    simulator = ClaudeBehindOpenRouter([])
    protocol = ChatCompletions(endpoint(BEHIND_OPENROUTER), NO_OPTIONS, lambda: UNKNOWN)

    assert not any(unread(bills_of(protocol, simulator.bill, rounds)))
