"""Answers as JSON: kept from the screen, checked, and asked for again."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta, Struct

from cdd_agent.dialogue.structured import NoUsableAnswer, describe_form
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.events.notices import Notice
from cdd_agent.llm.port import StopReason, ToolCall
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tools.read_only import read_only_tools
from tests.dialogue.talking import answered
from tests.support.tables import each_row


class Finding(Struct, forbid_unknown_fields=True):
    title: str
    count: Annotated[int, Meta(ge=1)]


GOOD = json.dumps({"title": "files", "count": 2})


def block(text: str, words: str = "Two files.") -> str:
    return f"{words}\n\n```json\n{text}\n```\n"


def plural(value: Finding) -> Sequence[str]:
    return () if value.count > 1 else ("One is not enough.",)


async def test_the_value_comes_with_the_words_before_it() -> None:
    model = ScriptedModel([block(GOOD)])
    result = await answered(Dialogue(model), Finding)
    assert result.structured.value == Finding(title="files", count=2)
    assert result.structured.text == "Two files."
    assert result.seen == "Two files.\n\n"
    assert '"count"' in model.requests[0].messages[0].content


@each_row(
    "reply",
    [
        GOOD,
        f"Two files.\n{GOOD}",
        f"```\n{GOOD}\n```",
        f"```json\n{GOOD}",
        f"```json\n{{}}\n```\nNo, rather:\n```json\n{GOOD}\n```",
    ],
)
async def test_small_faults_of_form_are_ignored(reply: str) -> None:
    result = await answered(Dialogue(ScriptedModel([reply])), Finding)
    assert result.structured.value == Finding(title="files", count=2)


@each_row(
    ("wrong", "reason"),
    [
        ("No JSON at all.", "There is no code block of `json`"),
        (block("{"), "not valid JSON"),
        (block('{"title": "files"}'), "`count` is missing"),
        (
            block('{"title": "files", "count": 0}'),
            "`count` is not a whole number (at least 1)",
        ),
        (
            block('{"title": "files", "count": 2, "x": 1}'),
            "`x` is unknown; allowed are `title`, `count`",
        ),
        (block('{"title": "files", "count": 1}'), "One is not enough."),
        (block("[" * 5_000), "not valid JSON"),
        (
            ScriptedReply(block(GOOD), stop=StopReason.LENGTH),
            "cut off by the model's length limit",
        ),
    ],
)
async def test_a_wrong_answer_is_requested_again_with_the_reason(
    wrong: str | ScriptedReply, reason: str
) -> None:
    model = ScriptedModel([wrong, block(GOOD)])
    result = await answered(Dialogue(model), Finding, check=plural)
    assert result.structured.value.count == 2
    assert reason in model.requests[1].messages[-1].content
    assert reason.rstrip(".") in str(result.of(Notice))
    assert [message.role for message in result.added] == [
        "assistant",
        "user",
        "assistant",
    ]


async def test_a_form_that_stays_wrong_is_an_error() -> None:
    model = ScriptedModel(["No."] * 9)
    with pytest.raises(NoUsableAnswer, match="in 3 tries"):
        await answered(Dialogue(model), Finding)
    assert len(model.requests) == 3


async def test_problems_that_remain_come_with_the_value() -> None:
    wrong = block('{"title": "files", "count": 1}')
    result = await answered(Dialogue(ScriptedModel([wrong] * 9)), Finding, check=plural)
    assert result.structured.value.count == 1
    assert result.structured.problems == tuple(plural(result.structured.value))


async def test_a_readable_value_is_kept_over_a_later_unreadable_one() -> None:
    script = [block('{"title": "files", "count": 1}'), "No.", "No."]
    result = await answered(Dialogue(ScriptedModel(script)), Finding, check=plural)
    assert result.structured.value.count == 1


@each_row("is_native", [True, False])
async def test_tools_can_be_used_before_the_answer(
    tmp_path: Path, is_native: bool
) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    call = {"path": "a.txt"}
    native = ScriptedReply(
        "I look.", tool_calls=(ToolCall("1", "read_file", json.dumps(call)),)
    )
    written = json.dumps({"tool": "read_file", "arguments": call})
    worded = f"I look.\n```tool\n{written}\n```\n"
    model = ScriptedModel(
        [native if is_native else worded, block(GOOD, "Alpha, then.")]
    )
    result = await answered(Dialogue(model, read_only_tools(tmp_path)), Finding)
    assert result.structured.text == "Alpha, then."
    assert "alpha" in model.requests[1].messages[-1].content
    assert "tool" not in result.seen


def test_the_schema_in_the_prompt_keeps_properties_that_are_called_title() -> None:
    words = describe_form(Finding)
    schema = json.loads(words.partition("```json\n")[2].partition("\n```")[0])
    assert set(schema["properties"]) == {"title", "count"}
    assert "Finding" not in words


@each_row(
    "hostile",
    [
        '{"title": "files", "count": NaN}',
        '{"title": "files", "count": 1e999}',
        '{"title": "files", "count": 2, "' + "x" * 1_000_000 + '": 1}',
        '{"title": "' + "x" * 10_000_000,
        '{"a":' * 100_000,
        "{" * 1_000_000,
        "{" + "}{" * 500_000,
        '{"title": "\\ud800", "count": 2}',
    ],
    ids=lambda text: text[:30],
)
@each_row("is_fenced", [True, False])
async def test_hostile_json_is_a_wrong_answer_with_a_brief_reason(
    hostile: str, is_fenced: bool
) -> None:
    model = ScriptedModel([block(hostile) if is_fenced else hostile, block(GOOD)])
    began = time.process_time()
    result = await answered(Dialogue(model), Finding)
    assert result.structured.value.count == 2
    assert len(model.requests[1].messages[-1].content) < 1_000
    assert len(str(result.of(Notice))) < 1_000
    assert time.process_time() - began < 20


async def test_the_last_of_two_equal_keys_counts() -> None:
    model = ScriptedModel([block('{"title": "one", "title": "two", "count": 2}')])
    assert (await answered(Dialogue(model), Finding)).structured.value.title == "two"
