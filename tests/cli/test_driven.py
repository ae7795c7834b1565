"""A run that another program drives: its questions, the answers, the budget, and its
end.
"""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cdd_agent.cli import driven
from cdd_agent.cli.driven import (
    DrivenPrinter,
    Driver,
    DriverAccount,
    DriverAnswers,
)
from cdd_agent.cli.working import Output
from cdd_agent.cost import Cost
from cdd_agent.errors import BudgetExhausted
from cdd_agent.events.driven_events import (
    Alive,
    AnswerNeeded,
    AnswerTaken,
    BudgetSpent,
    CallEnded,
    InputRefused,
    QuestionKind,
)
from cdd_agent.events.question_events import (
    ActionProposed,
    Choice,
    CommandProposed,
    LostTest,
    TestLossProposed,
)
from cdd_agent.events.stream import Event
from cdd_agent.fleet.answers import NOBODY
from cdd_agent.frontend import NobodyHere
from cdd_agent.llm.budget import CEILING, Budgeted, Limit
from cdd_agent.llm.port import Done, Message, OnEvent, Request, Usage
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.wrapper import ModelWrapper
from cdd_agent.session.open_project import (
    AcceptThese,
    NotTrusted,
    TrustAnswer,
    TrustQuestion,
)
from cdd_agent.text.redaction import Redactor
from tests.support.replies import all_of
from tests.support.reviews import review_of
from tests.support.tables import each_row

SECRET = "s3cr3t" * 4
COMMAND = CommandProposed("rm -r build", "`rm` is not on the list")
REQUEST = Request((Message("user", "Say hello."),))
REVIEW = review_of(1, {"a.txt": (None, "good\n")})


class Lines(DrivenPrinter):
    """Keeps what is printed, and hands each event to the test's driver."""

    def __init__(self) -> None:
        super().__init__()
        self.events = list[Event]()
        self.react: Callable[[Event], None] = lambda event: None

    def show(self, event: Event) -> None:
        self.events.append(event)
        self.react(event)

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Drive:
    """A driven run, and the pipe that its driver writes to."""

    def __init__(self) -> None:
        self.lines = Lines()
        read, self.stdin = os.pipe()
        self.stopped = threading.Event()
        self.times_stopped = 0
        self.driver = Driver(Output(self.lines), read, self._stop)
        self.driver.start()
        self.person = DriverAnswers(self.driver, Redactor({SECRET: "TOKEN"}))

    def _stop(self) -> None:
        self.times_stopped += 1
        self.stopped.set()

    def write(self, text: str) -> None:
        os.write(self.stdin, f"{text}\n".encode())

    def answer(self, **fields: Any) -> None:
        """Answer each question in this way."""

        def react(event: Event) -> None:
            if isinstance(event, AnswerNeeded):
                line = {"command": "answer", "id": event.id, **fields}
                self.write(json.dumps(line))

        self.lines.react = react

    def close(self) -> None:
        if self.stdin:
            os.close(self.stdin)
            self.stdin = 0


@pytest.fixture
def drive() -> Iterator[Drive]:
    drive = Drive()
    yield drive
    drive.close()
    assert drive.stopped.wait(60)


ACTION = ActionProposed(1, 1, "Write a.txt")
LOSS = TestLossProposed(1, "1", (LostTest("test_a", "is skipped"),))


@each_row(
    ("proposal", "kind", "choice", "expected"),
    [
        (COMMAND, QuestionKind.COMMAND, "yes", Choice.YES),
        (COMMAND, QuestionKind.COMMAND, "always", Choice.ALWAYS),
        (COMMAND, QuestionKind.COMMAND, "no", Choice.NO),
        (ACTION, QuestionKind.ACTION, "quit", Choice.QUIT),
        (LOSS, QuestionKind.TEST_LOSS, "yes", Choice.YES),
    ],
)
async def test_a_proposal_waits_for_the_answer_of_the_driver(
    drive: Drive, proposal: Any, kind: QuestionKind, choice: str, expected: Choice
) -> None:
    drive.answer(choice=choice)
    assert await drive.person.approve(proposal) is expected
    asked, taken = drive.lines.events[-2:]
    assert isinstance(asked, AnswerNeeded)
    assert asked.kind is kind
    assert taken == AnswerTaken(asked.id, choice)


@each_row(
    ("choice", "expected"),
    [("yes", Choice.YES), ("always", Choice.ALWAYS), ("no", Choice.NO)],
)
async def test_changes_are_reviewed_with_a_reason(
    drive: Drive, choice: str, expected: Choice
) -> None:
    drive.answer(choice=choice, text="not so")
    reviewed = await drive.person.review(REVIEW)
    assert (reviewed.choice, reviewed.reason) == (expected, "not so")
    assert "a.txt" in drive.lines.of(AnswerNeeded)[-1].text


async def test_a_question_in_words_gets_words(drive: Drive) -> None:
    drive.answer(text="in the evening")
    assert await drive.person.ask("When?") == "in the evening"


async def test_questions_have_no_secrets(drive: Drive) -> None:
    drive.answer(choice="no")
    command = CommandProposed(f"curl {SECRET}", "`curl` is not on the list")
    await drive.person.approve(command)
    await drive.person.review(review_of(1, {"a.txt": (None, f"{SECRET}\n")}))
    await drive.person.ask(f"Is it {SECRET}?")
    questions = drive.lines.of(AnswerNeeded)
    assert len(questions) == 3
    assert all(SECRET not in question.text for question in questions)


async def test_without_a_user_the_run_stops_as_without_a_driver(drive: Drive) -> None:
    drive.answer(choice=NOBODY)
    person = drive.person
    for asking in (person.approve(COMMAND), person.review(REVIEW), person.ask("When?")):
        with pytest.raises(NobodyHere):
            await asking


async def test_answers_find_their_questions_in_any_order(drive: Drive) -> None:
    person = drive.person
    asking = asyncio.gather(*(person.ask(f"{number}?") for number in range(5)))
    await asyncio.sleep(0)
    for question in reversed(drive.lines.of(AnswerNeeded)):
        answer = {"command": "answer", "id": question.id, "text": question.text}
        drive.write(json.dumps(answer))
    assert await asking == ["0?", "1?", "2?", "3?", "4?"]


BAD_LINES = (
    "no json",
    "{",
    "[]",
    "null",
    '"cancel"',
    "{}",
    '{"command": "dance"}',
    '{"command": "answer"}',
    '{"command": "answer", "id": "1"}',
    '{"command": "answer", "id": 1, "chioce": "yes"}',
    '{"command": "answer", "id": 1, "choice": "perhaps"}',
    '{"command": "answer", "id": 99, "choice": "yes"}',
    "\udcff".encode(errors="surrogateescape").decode("latin-1"),
    "[" * 100_000,
    "x" * 3_000_000,
)


async def test_a_line_that_makes_no_sense_is_refused_and_the_question_waits(
    drive: Drive,
) -> None:
    asking = asyncio.ensure_future(drive.person.approve(COMMAND))
    await asyncio.sleep(0)
    for line in BAD_LINES:
        await asyncio.to_thread(drive.write, line)
    await asyncio.to_thread(drive.write, "")  # an empty line is nothing
    drive.write('{"command": "answer", "id": 1, "choice": "yes"}')
    assert await asking is Choice.YES
    assert len(drive.lines.of(InputRefused)) == len(BAD_LINES)


async def test_a_question_that_is_given_up_takes_no_answer(drive: Drive) -> None:
    asking = asyncio.ensure_future(drive.person.ask("When?"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    drive.write('{"command": "answer", "id": 1, "text": "now"}')
    async with asyncio.timeout(60):
        while not drive.lines.of(InputRefused):
            await asyncio.sleep(0.001)


def test_cancel_and_the_end_of_input_stop_the_run_once(drive: Drive) -> None:
    drive.write('{"command": "cancel"}')
    drive.write('{"command": "cancel"}')
    drive.close()
    assert drive.stopped.wait(60)
    for thread in threading.enumerate():
        if thread.name == "stdin":
            thread.join(60)
    assert drive.times_stopped == 1


def test_signs_of_life_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = threading.Event()
    monkeypatch.setattr(driven, "ALIVE_EVERY", 0.001)
    drive = Drive()
    drive.lines.react = lambda event: seen.set() if event == Alive() else None
    assert seen.wait(60)
    monkeypatch.undo()
    drive.close()


@each_row(
    ("answer", "expected"),
    [
        ({"choice": "all"}, TrustAnswer.ONCE),
        ({"choice": "none"}, TrustAnswer.DEFAULTS),
        (
            {"choice": "some", "settings": ["a", "b"]},
            AcceptThese(frozenset({"a", "b"})),
        ),
    ],
)
def test_the_driver_decides_about_trust(
    drive: Drive, answer: dict[str, Any], expected: Any, tmp_path: Any
) -> None:
    drive.answer(**answer)
    question = TrustQuestion(tmp_path, (), {}, "")
    assert drive.driver.decide_about_trust(question) == expected


def test_without_a_user_nothing_is_trusted(drive: Drive, tmp_path: Any) -> None:
    drive.answer(choice=NOBODY)
    with pytest.raises(NotTrusted):
        drive.driver.decide_about_trust(TrustQuestion(tmp_path, (), {}, ""))


class Counting(ModelWrapper):
    """Takes 100 tokens for each reply."""

    def __init__(self) -> None:
        super().__init__(ScriptedModel(["x"] * 20))
        self.asked = 0

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        self.asked += 1
        return Done(usage=Usage(90, 10))


def budgeted(drive: Drive, limit: Limit, spent: int) -> tuple[Budgeted, Counting]:
    model, account = Counting(), DriverAccount(drive.driver, limit, Cost(spent))
    return Budgeted(model, limit, account=account), model


async def test_each_call_is_asked_for_and_what_it_took_is_shown(drive: Drive) -> None:
    drive.answer(choice="yes", tokens_left=CEILING + 500)
    model, _ = budgeted(drive, Limit(tokens=CEILING + 1_000), 100)
    await all_of(model, REQUEST)
    asked, _, spent, ended = drive.lines.events
    assert isinstance(asked, AnswerNeeded)
    assert asked.kind is QuestionKind.CALL
    assert CEILING < (asked.tokens or 0) < CEILING + 100
    assert spent == BudgetSpent(100, None, False, CEILING + 400)
    assert ended == CallEnded(asked.id)


@each_row(
    ("answer", "spent"),
    [
        ({"choice": "no"}, 0),
        ({"choice": NOBODY}, 0),
        ({"choice": "yes", "tokens_left": 5}, 0),
        # the run keeps its own limit, whatever the driver says
        ({"choice": "yes"}, 1_000),
    ],
)
async def test_a_call_without_room_is_not_made(
    drive: Drive, answer: dict[str, Any], spent: int
) -> None:
    drive.answer(**answer)
    model, counting = budgeted(drive, Limit(tokens=CEILING + 1_000), spent)
    with pytest.raises(BudgetExhausted):
        await all_of(model, REQUEST)
    assert counting.asked == 0
    assert drive.lines.of(CallEnded)
    assert not drive.lines.of(BudgetSpent)


async def test_without_a_budget_calls_are_asked_for_if_the_driver_wants_that(
    drive: Drive,
) -> None:
    drive.answer(choice="yes")
    model = Counting()
    account = DriverAccount(drive.driver, Limit(), Cost(), always_asks=True)
    await all_of(Budgeted(model, Limit(), account=account), REQUEST)
    asked, _, spent, ended = drive.lines.events
    assert isinstance(asked, AnswerNeeded)
    assert asked.kind is QuestionKind.CALL
    assert spent == BudgetSpent(100, None, False)
    assert ended == CallEnded(asked.id)


async def test_without_a_budget_nothing_is_asked_and_all_is_shown(drive: Drive) -> None:
    model, counting = budgeted(drive, Limit(), 0)
    await all_of(model, REQUEST)
    assert counting.asked == 1
    assert drive.lines.events == [BudgetSpent(100, None, False)]
