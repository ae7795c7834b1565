"""A window that is small: nothing is sent that does not fit, and what tools answer has
to fit, too.
"""

from pathlib import Path

import pytest
from msgspec import Struct

from cdd_agent.dialogue.structured import Structured, describe_form
from cdd_agent.dialogue.token_budget import TokenBudget, largest_request
from cdd_agent.dialogue.turns import Dialogue, ToolCalls
from cdd_agent.llm.port import ContextTooLong, Message, ToolCall
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.tools.read_only import read_only_tools
from tests.dialogue.talking import ASKED, answered, heard
from tests.support.tables import each_row


class Fruit(Struct):
    name: str
    count: int | None = None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "long.txt").write_text("0123456789\n" * 2_000)
    (tmp_path / "short.txt").write_text("brief\n")
    return tmp_path


def talking(
    root: Path,
    window: int,
    *script: str | ScriptedReply,
    tool_calls: ToolCalls = "auto",
) -> tuple[Dialogue, ScriptedModel]:
    model = ScriptedModel(script, window=window)
    return Dialogue(model, read_only_tools(root), tool_calls), model


def reads(*paths: str) -> ScriptedReply:
    calls = (
        ToolCall(str(place), "read_file", f'{{"path": "{path}"}}')
        for place, path in enumerate(paths)
    )
    return ScriptedReply("I look.", tool_calls=tuple(calls))


async def test_a_request_that_does_not_fit_is_refused_without_a_call(
    root: Path,
) -> None:
    talk, model = talking(root, 2_000, "Never said.")
    asked = (*ASKED, Message("user", "word " * 1_200))
    with pytest.raises(ContextTooLong, match="2,000") as error:
        await heard(talk, asked)
    assert "`context_window`" in error.value.hint
    assert model.requests == []


@each_row("tool_calls", ["on", "off"])
async def test_a_tool_result_takes_at_most_half_of_the_remaining_room(
    root: Path, tool_calls: ToolCalls
) -> None:
    in_words = '```tool\n{"tool": "read_file", "arguments": {"path": "long.txt"}}\n```'
    reply = reads("long.txt") if tool_calls == "on" else in_words
    talk, model = talking(root, 8_000, reply, "Digits.", tool_calls=tool_calls)
    result = await heard(talk)
    answer = model.requests[1].messages[-1].content
    assert "left out" in answer
    assert 3_000 < len(answer) < 10_000
    assert estimate_prompt(model.requests[1]) <= largest_request(8_000)
    assert result.turn.text == "Digits."


async def test_a_short_tool_result_stays_complete(
    root: Path,
) -> None:
    talk, model = talking(root, 2_000, reads("short.txt"), "Brief.")
    await heard(talk)
    assert "left out" not in model.requests[1].messages[-1].content


async def test_a_full_window_ends_with_the_model_s_last_reply(
    root: Path,
) -> None:
    talk, model = talking(
        root, 3_000, *(reads("long.txt", "long.txt") for _ in range(9)), "All digits."
    )
    result = await heard(talk)
    assert "window" in model.requests[-1].messages[-1].content
    assert len(model.requests) < 9
    assert all(estimate_prompt(request) <= 3_000 for request in model.requests)
    assert result.turn.text
    assert "window" in result.turn.problem


def test_tools_are_offered_if_they_fit(root: Path) -> None:
    talk, _ = talking(root, 8_000, tool_calls="on")
    assert len(talk.with_tools_that_fit(TokenBudget(None, 0), 1_000).tools) == 4
    room = TokenBudget(1_800, 1_000)
    some = talk.with_tools_that_fit(room, 100)
    assert [tool.name for tool in some.tools] == ["read_file", "list_files"]
    assert any("grep_files" in name for name in room.left_out)
    assert room.remaining is not None
    assert room.remaining >= 100
    assert (
        some.size(ASKED) - Dialogue(talk.model).size(ASKED)
        <= largest_request(1_800) - 1_000 - room.remaining
    )


@each_row("tool_calls", ["on", "off"])
def test_no_tool_is_offered_without_room(root: Path, tool_calls: ToolCalls) -> None:
    talk, _ = talking(root, 8_000, tool_calls=tool_calls)
    none = talk.with_tools_that_fit(TokenBudget(1_000, 700), 0)
    assert none.tools == ()
    assert none.size(ASKED) == Dialogue(talk.model).size(ASKED)


async def test_a_repeated_request_drops_tool_results(root: Path) -> None:
    good = '```json\n{"name": "fig", "count": 2}\n```'
    talk, model = talking(root, 5_000, reads("long.txt"), "No JSON. " * 350, good)
    result = await answered(talk, Fruit)
    assert isinstance(result.end, Structured)
    assert result.end.value.count == 2
    assert estimate_prompt(model.requests[-1]) <= 5_000


def test_the_form_of_an_answer_is_described_briefly() -> None:
    form = describe_form(Fruit)
    assert '"null"' not in form
    assert "\n " not in form
