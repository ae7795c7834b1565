"""A model with tools: rounds, answers, bounds, and what is kept when it is stopped."""

import json
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.dialogue.call_events import shown_call
from cdd_agent.dialogue.calls import LONGEST_ANSWER, MOST_IN_A_ROUND
from cdd_agent.dialogue.limits import Limits, Used
from cdd_agent.dialogue.turns import Dialogue, ToolCalls
from cdd_agent.errors import NotApproved
from cdd_agent.events.dialogue_events import (
    ReplyRestarted,
    ReplyStarted,
    ThinkingDelta,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.llm import port
from cdd_agent.llm.port import (
    ConnectionFailed,
    ContextTooLong,
    Done,
    Message,
    ModelError,
    OnEvent,
    ProviderData,
    Request,
    RequestRejected,
    StopReason,
    TextDelta,
    ToolCall,
    Usage,
    WasThought,
)
from cdd_agent.llm.retrying import Retrying
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.process.policy import CommandRunner
from cdd_agent.tools.acting import acting_tools
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.tools.base import parse_answer
from cdd_agent.tools.read_only import read_only_tools
from cdd_agent.web.pages import PageReader
from cdd_agent.web.search import ScriptedSearcher
from tests.dialogue.talking import ASKED, heard
from tests.support.tables import each_row

LOOKS = "Let me look."
SAYS = "It says alpha."
THAT = "That is all."
THOUGHTS = "They want ```tool\n{}\n``` it short."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("alpha\n")
    (tmp_path / "b.txt").write_text("beta\n")
    return tmp_path


def calls(*made: tuple[str, object], text: str = "") -> ScriptedReply:
    return ScriptedReply(
        text,
        tool_calls=tuple(
            ToolCall(
                f"call-{number}",
                name,
                arguments if isinstance(arguments, str) else json.dumps(arguments),
            )
            for number, (name, arguments) in enumerate(made)
        ),
    )


def in_words(name: str, **arguments: object) -> str:
    return (
        f"{LOOKS}\n```tool\n{json.dumps({'tool': name, 'arguments': arguments})}\n```\n"
    )


def dialogue(
    root: Path,
    *script: str | ScriptedReply | ModelError,
    tool_calls: ToolCalls = "auto",
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
) -> tuple[Dialogue, ScriptedModel]:
    model = ScriptedModel(script)
    return Dialogue(model, read_only_tools(root), tool_calls, limits), model


async def test_a_model_calls_tools_and_then_replies(root: Path) -> None:
    talk, model = dialogue(
        root, calls(("read_file", {"path": "a.txt"}), text="I look."), SAYS
    )
    result = await heard(talk)
    assert result.turn.text == SAYS
    assert result.of(ToolStarted) == [
        ToolStarted(None, "read_file(path=a.txt)", "read_file", "a.txt")
    ]
    (finished,) = result.of(ToolFinished)
    assert isinstance(finished, ToolFinished)
    assert (finished.call, finished.problem, finished.tool, finished.target) == (
        *("read_file(path=a.txt)", "", "read_file", "a.txt"),
    )
    assert finished.output.strip() == "alpha"
    assert [message.role for message in result.added] == [
        "assistant",
        "tool",
        "assistant",
    ]
    assert "alpha" in model.requests[1].messages[-1].content
    assert model.requests[1].messages[-1].tool_call_id == "call-0"
    assert [tool.name for tool in model.requests[0].tools][:2] == [
        "read_file",
        "list_files",
    ]
    assert (*ASKED, *result.added[:2]) == model.requests[1].messages


async def test_several_calls_of_one_round_are_all_answered(root: Path) -> None:
    both = calls(("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"}))
    talk, model = dialogue(root, both, "Both.")
    await heard(talk)
    assert [
        parse_answer(answer.content)["output"].strip()
        for answer in model.requests[1].messages[-2:]
    ] == [
        "alpha",
        "beta",
    ]


async def test_a_model_without_tool_calls_uses_the_same_tools_in_words(
    root: Path,
) -> None:
    talk, model = dialogue(root, in_words("read_file", path="a.txt"), SAYS)
    result = await heard(talk)
    assert result.turn.text == SAYS
    assert result.seen == f"{LOOKS}\n{SAYS}"
    assert [
        (event.call, event.problem)
        for event in result.of(ToolFinished)
        if isinstance(event, ToolFinished)
    ] == [("read_file(path=a.txt)", "")]
    assert not model.requests[0].tools
    assert "```tool" in model.requests[0].messages[0].content
    assert "## grep_files" in model.requests[0].messages[0].content
    assert model.requests[1].messages[-1].role == "user"
    assert "alpha" in model.requests[1].messages[-1].content


async def test_code_blocks_without_a_language_are_for_people(root: Path) -> None:
    text = "Run this:\n```\nmake\n```\nand\n```tool\nhammer\n```\n"
    talk = Dialogue(ScriptedModel([text]))
    result = await heard(talk)
    assert result.turn.text == result.seen == text
    assert not result.turn.blocks


async def test_tool_calls_can_be_switched_off_and_on(root: Path) -> None:
    talk, model = dialogue(
        root, calls(("read_file", {"path": "a.txt"}), text="Ready."), tool_calls="off"
    )
    assert (await heard(talk)).turn.text == "Ready."
    assert not model.requests[0].tools
    talk, model = dialogue(root, "Ready.", tool_calls="on")
    await heard(talk)
    assert model.requests[0].tools


async def test_a_server_without_tools_is_asked_in_words(root: Path) -> None:
    refusal = RequestRejected("tools are not supported")
    talk, model = dialogue(
        root,
        refusal,
        in_words("read_file", path="a.txt"),
        "Alpha.",
        calls(("list_files", {})),
    )
    assert (await heard(talk)).turn.text == "Alpha."
    assert [bool(request.tools) for request in model.requests] == [True, False, False]


@each_row(
    ("error", "tool_calls"),
    [
        (ContextTooLong("too long"), "auto"),
        (RequestRejected("no such parameter"), "on"),
    ],
)
async def test_other_refusals_are_raised(
    root: Path, error: ModelError, tool_calls: ToolCalls
) -> None:
    talk, model = dialogue(
        root, error, calls(("list_files", {})), tool_calls=tool_calls
    )
    with pytest.raises(type(error)) as raised:
        await heard(talk)
    assert "`tool_calls:" in raised.value.hint
    assert len(model.requests) == 1


@each_row(
    ("name", "arguments", "problem"),
    [
        (
            "read_files",
            {"path": "a.txt"},
            "There is no tool 'read_files'. The tools are read_file, list_files",
        ),
        ("read_file", '{"path": ', "The arguments of read_file are not valid JSON"),
        ("read_file", "[1]", "The arguments of read_file are not a JSON object"),
        ("read_file", {"file": "a.txt"}, "`file` is unknown; allowed are `path`"),
        ("read_file", {"path": "../secret"}, "leaves the project"),
        ("read_file", "[" * 100_000, "not valid JSON"),
        ("grep_files", {"pattern": "("}, "pattern"),
    ],
)
async def test_a_wrong_call_is_answered_with_its_fault(
    root: Path, name: str, arguments: object, problem: str
) -> None:
    talk, model = dialogue(root, calls((name, arguments)), "I see.")
    result = await heard(talk)
    finished = result.of(ToolFinished)[0]
    assert isinstance(finished, ToolFinished)
    assert problem in finished.problem
    assert problem in parse_answer(model.requests[1].messages[-1].content)["error"]
    assert result.turn.text == "I see."


@each_row(
    "block",
    ["not json", "[]", '"text"', '{"name": "read_file"}', "null", "[" * 100_000],
)
async def test_a_block_that_is_not_a_call_is_answered_too(
    root: Path, block: str
) -> None:
    talk, model = dialogue(root, f"```tool\n{block}\n```", "I see.")
    assert (await heard(talk)).turn.text == "I see."
    answered = model.requests[1].messages
    assert [message.role for message in answered[len(ASKED) :]] == ["assistant", "user"]


async def test_an_answer_that_is_too_long_is_cut_in_the_middle(root: Path) -> None:
    (root / "big.txt").write_text("begin\n" + "x" * 60 * LONGEST_ANSWER + "\nend\n")
    talk, model = dialogue(root, calls(("read_file", {"path": "big.txt"})), "Big.")
    await heard(talk)
    answer = model.requests[1].messages[-1].content
    assert len(answer) < LONGEST_ANSWER + 100
    assert "begin" in answer
    assert "left out" in answer


async def test_the_answers_of_a_round_are_bounded_together(root: Path) -> None:
    for number in range(5):
        (root / f"{number}.txt").write_text(f"{number}" * (LONGEST_ANSWER - 100))
    reads = [("read_file", {"path": f"{number}.txt"}) for number in range(5)]
    talk, model = dialogue(root, calls(*reads), "Much.")
    result = await heard(talk)
    first, second, third, *others = (
        message.content
        for message in model.requests[1].messages
        if message.role == "tool"
    )
    assert parse_answer(first)["output"].startswith("000")
    assert parse_answer(second)["output"].startswith("111")
    assert f"{MOST_IN_A_ROUND:,}" in third
    assert all("alone" in other for other in others)
    assert sum(map(len, (first, second, third, *others))) < MOST_IN_A_ROUND + 1_000
    assert len(result.of(ToolFinished)) == 5


async def test_a_round_of_many_short_answers_is_not_cut(root: Path) -> None:
    talk, model = dialogue(
        root,
        calls(
            *(("read_file", {"path": "a.txt", "end_line": n}) for n in range(1, 301))
        ),
        "Much.",
    )
    await heard(talk)
    answers = [
        message.content
        for message in model.requests[1].messages
        if message.role == "tool"
    ]
    assert all("error" not in parse_answer(answer) for answer in answers)


async def test_the_caller_receives_all_added_messages(
    root: Path,
) -> None:
    (root / "big.txt").write_text("x" * 2 * LONGEST_ANSWER)
    told: list[str] = []

    async def record_answer(call: ToolCall, answer: str) -> None:
        told.append(answer)

    talk, model = dialogue(
        root,
        calls(("read_file", {"path": "a.txt"}), ("read_file", {"path": "big.txt"})),
        "Seen.",
    )
    await heard(replace(talk, on_answer=record_answer))
    assert told == [
        message.content
        for message in model.requests[1].messages
        if message.role == "tool"
    ]


async def test_a_resumed_turn_has_its_remaining_rounds(root: Path) -> None:
    looks = [calls(("read_file", {"path": path})) for path in ("a.txt", "b.txt")]
    talk, model = dialogue(root, *looks, THAT, limits=Limits(rounds=3))
    result = await heard(talk, used=Used(rounds=1))
    assert result.turn.text == THAT
    assert " 3 rounds " in model.requests[2].messages[-1].content

    talk, model = dialogue(root, looks[0], limits=Limits(rounds=3))
    assert (await heard(talk, used=Used(rounds=3))).turn.problem
    assert len(model.requests) == 1


async def test_a_resumed_turn_has_its_remaining_time(root: Path) -> None:
    now = iter(range(0, 1_000, 10))
    talk, model = dialogue(
        root, calls(("list_files", {})), "Late.", limits=Limits(seconds=80)
    )
    result = await heard(
        replace(talk, clock=lambda: float(next(now))), used=Used(seconds=55)
    )
    assert " 80 seconds " in model.requests[1].messages[-1].content
    (used,) = set(result.used)
    assert used == Used(1, 85.0)


async def test_the_model_replies_after_the_last_round(root: Path) -> None:
    looks = [calls(("read_file", {"path": path})) for path in ("a.txt", "b.txt")]
    talk, model = dialogue(root, *looks, THAT, limits=Limits(rounds=2))
    result = await heard(talk)
    assert result.turn.text == THAT
    assert not result.turn.problem
    last = model.requests[2].messages
    assert [message.role for message in last[-2:]] == ["tool", "user"]
    assert " 2 rounds " in last[-1].content


async def test_a_model_that_never_stops_calling_is_stopped(root: Path) -> None:
    looks = [
        calls(("list_files", {"limit": number}), text=f"Look {number}.")
        for number in range(1, 9)
    ]
    talk, model = dialogue(root, *looks, limits=Limits(rounds=3))
    result = await heard(talk)
    assert len(model.requests) == 4
    assert result.turn.text == "Look 4."
    assert result.turn.problem
    # no call in it is left without its answer
    assert result.added[-1] == Message("assistant", "Look 4.")


async def test_time_bounds_a_turn_too(root: Path) -> None:
    talk, model = dialogue(
        root, calls(("list_files", {})), "Late.", limits=Limits(seconds=0.0)
    )
    assert (await heard(talk)).turn.text == "Late."
    assert " seconds " in model.requests[1].messages[-1].content


async def test_an_identical_call_is_not_repeated_endlessly(root: Path) -> None:
    talk, _ = dialogue(
        root, *(calls(("read_file", {"path": "a.txt"})) for _ in range(5)), "Enough."
    )
    result = await heard(talk)
    problems = [
        event.problem
        for event in result.of(ToolFinished)
        if isinstance(event, ToolFinished)
    ]
    assert [bool(problem) for problem in problems] == [False, False, False, True, True]
    assert " 3 times" in problems[3]


@each_row("stop", [StopReason.LENGTH, StopReason.REFUSED])
async def test_an_incomplete_reply_is_marked_and_makes_no_calls(
    root: Path, stop: StopReason
) -> None:
    text = in_words("read_file", path="a.txt")
    talk, model = dialogue(root, ScriptedReply(text, stop=stop))
    result = await heard(talk)
    assert result.turn.problem
    assert not result.of(ToolStarted)
    assert len(model.requests) == 1


async def test_a_broken_reply_does_not_count(root: Path) -> None:
    call = ToolCall("1", "read_file", '{"path": "a.txt"}')
    script = [
        ScriptedReply("```tool\nHalf of", cut=12),
        ScriptedReply("Looking.", tool_calls=(call,)),
        "Alpha.",
    ]
    model = ScriptedModel(script)
    talk = Dialogue(Retrying(model), read_only_tools(root))
    result = await heard(talk)
    assert len(result.of(ReplyRestarted)) == 1
    assert result.added[0] == Message("assistant", "Looking.", (call,))
    assert result.turn.text == "Alpha."


class _Breaks:
    """A model that calls a tool, and whose endpoint is gone after that."""

    name, calls_tools, window = "breaks", True, None

    def __init__(self) -> None:
        self._inner = ScriptedModel([calls(("read_file", {"path": "a.txt"}))])

    async def check(self, *, connect: bool) -> None: ...

    def warm_up(self) -> None:
        pass

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        if len(request.messages) > len(ASKED):
            raise ConnectionFailed("gone")
        return await self._inner.reply(request, on_event)


async def test_a_stopped_turn_keeps_its_messages_and_can_resume(
    root: Path,
) -> None:
    added: list[Message] = []
    with pytest.raises(ConnectionFailed):
        await Dialogue(_Breaks(), read_only_tools(root)).turn(
            ASKED, keep=lambda round_: added.extend(round_.messages)
        )
    assert [message.role for message in added] == ["assistant", "tool"]
    again, model = dialogue(root, "Alpha, then.", tool_calls="on")
    result = await heard(again, (*ASKED, *added))
    assert result.turn.text == "Alpha, then."
    assert "alpha" in model.requests[0].messages[-1].content


async def test_events_carry_the_step_they_are_about(root: Path) -> None:
    talk, _ = dialogue(root, calls(("list_files", {})), "Done.")
    result = await heard(talk, step=7)
    assert {getattr(event, "step", None) for event in result.events} == {7}
    assert len(result.of(ReplyStarted)) == 2


async def _nobody(prompt: str) -> str:
    raise NotApproved(prompt)


async def test_a_call_may_be_repeated_after_an_action(
    root: Path,
) -> None:
    rounds: list[str | ScriptedReply] = []
    for number in range(6):
        rounds += [
            calls(("execute_command", {"command": "cat a.txt"})),
            calls(
                (
                    "edit_file",
                    {"file_path": "a.txt", "find": "", "replace": f"{number}\n"},
                )
            ),
        ]
    rounds += [calls(("execute_command", {"command": "cat a.txt"})) for _ in range(4)]
    commands = CommandRunner(root)
    runner = ActionRunner(root, commands, PageReader(), ScriptedSearcher([]), _nobody)
    tools = acting_tools(runner, commands)
    talk = Dialogue(ScriptedModel([*rounds, "Enough."]), tools, "on")
    result = await heard(talk)
    problems = [
        event.problem
        for event in result.of(ToolFinished)
        if isinstance(event, ToolFinished)
    ]
    assert problems[:-1] == [""] * 15
    assert " 3 times" in problems[-1]


async def test_time_bounds_the_calls_of_a_round(root: Path) -> None:
    many = [("read_file", {"path": "a.txt", "end_line": n}) for n in range(1, 201)]
    talk, model = dialogue(root, calls(*many), "Late.", limits=Limits(seconds=0.0))
    result = await heard(talk)
    problems = [
        event.problem
        for event in result.of(ToolFinished)
        if isinstance(event, ToolFinished)
    ]
    assert problems[0] == ""
    (refusal,) = set(problems[1:])
    assert refusal
    assert (
        len(
            [
                message
                for message in model.requests[1].messages
                if message.role == "tool"
            ]
        )
        == 200
    )


async def test_answers_belong_to_calls_by_their_order_not_by_their_ids(
    root: Path,
) -> None:
    made = (
        ToolCall("0", "read_file", '{"path": "a.txt"}'),
        ToolCall("0", "list_files", "{}"),
    )
    answers = (
        Message("tool", "alpha", tool_call_id="0"),
        Message("tool", "a.txt", tool_call_id="0"),
    )
    talk, model = dialogue(root, "I see.", tool_calls="off")
    await heard(talk, (*ASKED, Message("assistant", "I look.", made), *answers))
    told = model.requests[0].messages[-1].content
    first, alpha, second = map(told.index, ("read_file", "alpha", "list_files"))
    assert first < alpha < second


async def test_native_calls_without_offered_tools_are_not_sent_back(root: Path) -> None:
    reply = ScriptedReply(
        in_words("read_file", path="a.txt"),
        tool_calls=(ToolCall("7", "read_file", "{}"),),
    )
    talk, model = dialogue(root, reply, "Alpha.", tool_calls="off")
    result = await heard(talk)
    assert len(result.of(ToolFinished)) == 1
    assert not any(message.tool_calls for message in result.added)
    assert model.requests[1].messages[-2].content.count("```tool") == 1


@each_row(
    "call",
    [
        ToolCall("1", "x" * 1_000_000, "{}"),
        ToolCall("1", "x" * 1_000_000, "["),
        ToolCall("1", "read_file", json.dumps({"x" * 1_000_000: "y" * 1_000_000})),
        ToolCall(
            "1",
            "read_file",
            json.dumps({f"key-{number}": number for number in range(10_000)}),
        ),
    ],
    ids=["name", "damaged", "long", "many"],
)
def test_a_call_is_shown_in_a_line(call: ToolCall) -> None:
    assert len(shown_call(call)) < 1_200


SIGNED = ProviderData("scripted", '[{"type": "thinking", "signature": "abc"}]')


async def test_provider_data_stays_with_its_message(
    root: Path,
) -> None:
    looks = replace(calls(("read_file", {"path": "a.txt"})), provider_data=SIGNED)
    model = ScriptedModel(
        [looks, ScriptedReply(SAYS, provider_data=ProviderData("scripted", "[]"))]
    )

    result = await heard(Dialogue(model, read_only_tools(root)))

    assert [
        message.provider_data
        for message in model.requests[1].messages
        if message.role == "assistant"
    ] == [SIGNED]
    assert [message.provider_data for message in result.added] == [
        SIGNED,
        None,
        ProviderData("scripted", "[]"),
    ]


async def test_a_reply_whose_calls_were_not_made_has_no_provider_data(
    root: Path,
) -> None:
    cut = replace(
        calls(("read_file", {"path": "a.txt"})),
        stop=StopReason.LENGTH,
        provider_data=SIGNED,
    )
    late = replace(calls(("read_file", {"path": "a.txt"})), provider_data=SIGNED)

    for limits, reply in ((Limits(), cut), (Limits(rounds=0), late)):
        result = await heard(
            Dialogue(ScriptedModel([reply]), read_only_tools(root), limits=limits)
        )

        assert [
            (message.tool_calls, message.provider_data) for message in result.added
        ] == [((), None)]


async def test_thoughts_are_reported_and_not_part_of_the_reply(root: Path) -> None:
    model = ScriptedModel([ScriptedReply("Done.", thinking=THOUGHTS)])

    result = await heard(Dialogue(model, read_only_tools(root), "off"))

    thoughts = "".join(
        event.text for event in result.events if isinstance(event, ThinkingDelta)
    )
    assert thoughts == THOUGHTS
    assert (result.seen, result.turn.text, result.added) == (
        "Done.",
        "Done.",
        [Message("assistant", "Done.")],
    )


async def test_text_replaced_as_a_thought_is_neither_shown_nor_executed(
    root: Path,
) -> None:
    class LateToTell(ScriptedModel):
        async def reply(self, request: Request, on_event: OnEvent) -> Done:
            for event in (
                TextDelta("Look:\n```tool\n{}\n```\n"),
                WasThought(),
                TextDelta("Done."),
            ):
                on_event(event)
            return Done()

    result = await heard(Dialogue(LateToTell([]), read_only_tools(root), "off"))

    assert result.of(ReplyRestarted) == [ReplyRestarted(None, was_thought=True)]
    assert (result.turn.text, result.added) == (
        "Done.",
        [Message("assistant", "Done.")],
    )


async def test_the_provider_s_count_of_thoughts_overrides_the_estimate(
    root: Path,
) -> None:
    class Thinker(ScriptedModel):
        usage: Usage | None = None

        async def reply(self, request: Request, on_event: OnEvent) -> Done:
            for event in (
                port.ThoughtDelta("Hm, so. "),
                TextDelta("Well: "),
                port.ThoughtDelta("Yes."),
                TextDelta("1"),
            ):
                on_event(event)
            return Done(usage=self.usage)

    model, ticks = Thinker([]), count()
    estimated = await heard(Dialogue(model, clock=lambda: float(next(ticks))))
    model.usage = Usage(10, 90, thinking_tokens=80)
    counted = await heard(Dialogue(model, clock=lambda: float(next(ticks))))

    assert [(event.seconds, event.tokens) for event in estimated.of(ThinkingDelta)] == [
        (0.0, 3),
        (1.0, 4),
    ]
    assert estimated.of(ThinkingFinished) == [
        ThinkingFinished(None, 2.0, 4, estimated=True)
    ]
    assert counted.of(ThinkingFinished) == [
        ThinkingFinished(None, 2.0, 80, estimated=False)
    ]


async def test_counted_thoughts_are_reported_even_if_hidden(
    root: Path,
) -> None:
    class Hidden(ScriptedModel):
        thoughts = 80

        async def reply(self, request: Request, on_event: OnEvent) -> Done:
            on_event(TextDelta("1"))
            return Done(usage=Usage(10, 90, thinking_tokens=self.thoughts))

    model = Hidden([])
    assert (await heard(Dialogue(model))).of(ThinkingFinished) == [
        ThinkingFinished(None, None, 80, False)
    ]
    model.thoughts = 0
    assert (await heard(Dialogue(model))).of(ThinkingFinished) == []


async def test_a_reply_with_an_unknown_stop_reason_is_incomplete(
    root: Path,
) -> None:
    model = ScriptedModel([ScriptedReply("Half a", stop=StopReason.UNKNOWN)])

    assert "unknown reason" in (await heard(Dialogue(model))).turn.problem
