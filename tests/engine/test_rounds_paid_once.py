"""A round of tool calls that the model has answered is not paid for a second time,
wherever the run was killed or stopped.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.changes.review import Review
from cdd_agent.events.question_events import Choice
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.llm.port import Done, OnEvent, Request, TextDelta
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.process.run import CommandResult
from cdd_agent.tools.base import parse_answer
from tests.engine.tool_steps import STEP, calls, create, execute, read, replace, run
from tests.support.fake_programs import FakePrograms
from tests.support.listening import told_to
from tests.support.projects import Sandbox

APPEND = "python -c \"open('log.txt', 'a').write('ran ')\""
ROUNDS = [
    calls(read("old.txt"), create("b.txt", "b\n"), execute(APPEND), text="I begin."),
    calls(create("a.txt", "go\n"), replace("a.txt", "go", "good")),
]


class Rounds(ScriptedModel):
    """A model that answers by how many of its messages a request has."""

    def __init__(self, rounds: list[ScriptedReply]) -> None:
        super().__init__(rounds)
        self._rounds = rounds

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        self.requests.append(request)
        number = sum(message.role == "assistant" for message in request.messages)
        if number == len(self._rounds):
            on_event(TextDelta("Done."))
            return Done()
        on_event(TextDelta(self._rounds[number].text))
        for call in self._rounds[number].tool_calls:
            on_event(call)
        return Done()


def answers_of(request: Request) -> dict[str, str]:
    """The calls of the first round by their answers' errors; empty for none."""
    (first, *_) = [m for m in request.messages if m.tool_calls]
    place = request.messages.index(first)
    told = request.messages[place + 1 : place + 1 + len(first.tool_calls)]
    return {
        call.name: parse_answer(answer.content).get("error", "")
        for call, answer in zip(first.tool_calls, told, strict=True)
    }


async def events_of_a_run(
    sandbox: Sandbox, folder: Path
) -> list[tuple[Event, Path, int]]:
    """Run the step; each event, with the disk as a kill at it leaves it, and the number
    of calls of the model that had begun.
    """
    kills: list[tuple[Event, Path, int]] = []
    model = Rounds(ROUNDS)
    sandbox.model = model

    def copy(event: Event) -> None:
        place = folder / str(len(kills))
        shutil.copytree(sandbox.root, place, symlinks=True)
        kills.append((event, place, len(model.requests)))

    with told_to(copy):
        await run(sandbox)
    return kills


async def test_after_a_kill_no_answered_round_is_paid_for_again(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (sandbox.root / "old.txt").write_text("old\n")
    sandbox.write(STEP)
    kills = await events_of_a_run(sandbox, tmp_path_factory.mktemp("kills"))
    paid = len(sandbox.model.requests)
    assert paid == len(ROUNDS) + 1
    kinds = [type(event).__name__ for event, _, _ in kills]
    assert kinds.count("ToolFinished") == 5
    wrong = list[str]()
    for number, (event, place, begun) in enumerate(kills):
        killed = sandbox.at(place)
        killed.model = Rounds(ROUNDS)
        await run(killed)
        again = len(killed.model.requests)
        # a call that was under way is lost, and has to be made again
        is_under_way = (
            "reply" in type(event).__name__.lower()
            and type(event).__name__ != "ReplyFinished"
        )
        at_most = paid - begun + is_under_way
        row = f"killed at {number}, {kinds[number]} {event}"
        if again > at_most:
            wrong.append(f"{row}: {again} calls more after {begun}")
        if killed.statuses() != ["completed"]:
            wrong.append(f"{row}: {killed.statuses()}")
        if (killed.root / "a.txt").read_text() != "good\n":
            wrong.append(f"{row}: a.txt is wrong")
        runs = (killed.root / "log.txt").read_text()
        if runs != "ran " and "StepFinished" not in kinds[: number + 1]:
            wrong.append(f"{row}: the command ran as {runs!r}")
    assert not wrong, "\n".join(wrong)


class KilledPrograms(FakePrograms):
    """Copies the disk when a command has ended and nothing knows it yet, as a kill of
    the run and its command leaves it.
    """

    def __init__(self, root: Path, copy: Path) -> None:
        super().__init__()
        self._root, self._copy = root, copy

    async def __call__(self, argv: Sequence[str], **how: Any) -> CommandResult:
        result = await super().__call__(argv, **how)
        if "log.txt" in " ".join(argv) and not self._copy.exists():
            shutil.copytree(self._root, self._copy, symlinks=True)
        return result


async def test_a_command_that_was_cut_is_not_run_again_and_the_model_is_told(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (sandbox.root / "old.txt").write_text("old\n")
    copy = tmp_path_factory.mktemp("killed") / "project"
    sandbox.write(STEP).model = Rounds(ROUNDS)
    sandbox.run_program = KilledPrograms(sandbox.root, copy)
    await run(sandbox)

    killed = sandbox.at(copy)
    killed.run_program = FakePrograms()
    killed.model = Rounds(ROUNDS)
    await run(killed)

    assert killed.statuses() == ["completed"]
    assert len(killed.model.requests) == len(ROUNDS)
    told = answers_of(killed.model.requests[0])
    assert "interrupted" in told["execute_command"]
    assert (told["read_file"], told["create_file"]) == ("", "")
    assert (killed.text("log.txt"), killed.text("b.txt")) == ("ran ", "b\n")


async def test_a_command_that_the_model_repeats_after_it_was_cut_runs(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("killed") / "project"
    rounds = [calls(execute(APPEND)), calls(execute(APPEND), create("a.txt", "good\n"))]
    sandbox.write(STEP).model = Rounds(rounds)
    sandbox.run_program = KilledPrograms(sandbox.root, copy)
    await run(sandbox)

    killed = sandbox.at(copy)
    killed.run_program = FakePrograms()
    killed.model = Rounds(rounds)
    await run(killed)

    assert killed.statuses() == ["completed"]
    assert killed.text("log.txt") == "ran ran "


async def test_an_answer_of_the_user_holds_for_a_call_of_an_unfinished_round(
    sandbox: Sandbox,
) -> None:
    """The second call is refused without a reason, so the run stops there."""
    sandbox.flags = {"approval": "ask"}
    rounds = [calls(create("a.txt", "good\n"), create("b.txt", "b\n"))]
    sandbox.write(STEP).model = Rounds(rounds)
    sandbox.frontend = Answers([Choice.YES, Choice.NO])
    await run(sandbox)
    assert sandbox.statuses() == ["pending"]

    sandbox.model = Rounds(rounds)
    sandbox.frontend = Answers([Choice.YES])
    await run(sandbox)
    assert sandbox.statuses() == ["completed"]
    # only the reply after the round is paid for
    assert len(sandbox.model.requests) == 1


class Answers(Nobody):
    """A user who answers what is proposed, in this order."""

    def __init__(self, choices: list[Choice]) -> None:
        self._choices = choices

    async def review(self, review: Review) -> Decision:
        return Decision(self._choices.pop(0), review)
