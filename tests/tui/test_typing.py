"""Typing something else answers no question, and none of the text is lost."""

import asyncio
import json
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from math import inf
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.worker import Worker

from cdd_agent.changes.review import Review
from cdd_agent.events.question_events import (
    ActionProposed,
    Choice,
    CommandProposed,
    Proposal,
)
from cdd_agent.frontend import REST
from cdd_agent.tui.answering import Answering, KeyClock, KeyKind, Timing
from cdd_agent.tui.widgets.question import Question
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.reviews import review_of
from tests.tui.person import FingerTime, Person, person_at, shell
from tests.tui.person import opened as session_opened

DRAFT = "maybe you should "
LINE = "also add tests"

CHANGES = review_of(1, {"a.txt": (None, "a\n"), "b.txt": ("b\n", "c\n")})
COMMAND = CommandProposed("rm -rf build", "`rm` is not on the list")
ACTION = ActionProposed(1, 2, "Write it", "text")
PROPOSALS = (CHANGES, COMMAND, ACTION)
WORDS = ("yes", "no", "always", "all", "quit")
SENTENCES = (
    "yes but use tabs",
    "no idea",
    "actually, why not sed?",
    "all right, first the tests",
    "quite good",
    "y y",
)


def opened(person: Person, proposal: Proposal | Review) -> Worker[Choice]:
    async def asked() -> Choice:
        if isinstance(proposal, Review):
            return (await person.app.asking.review(proposal)).choice
        return await person.app.asking.approve(proposal)

    return person.app.run_worker(asked(), exit_on_error=False)


async def test_a_fast_typist_answers_no_question_and_loses_no_letter(
    sandbox: Sandbox,
) -> None:
    """Ten keys a second, and questions that come and go at any moment."""
    chance = random.Random(0)
    text = "".join(chance.choice(" ".join((*WORDS, *SENTENCES))) for _ in range(30))
    asked: list[Worker[Choice]] = []
    async with person_at(sandbox) as person:
        for character in text:
            if not person.app.query(Question) and chance.random() < 0.5:
                asked.append(opened(person, chance.choice(PROPOSALS)))
                if chance.random() < 0.5:
                    await person.until_asked()
            elif person.app.query(Question) and chance.random() < 0.2:
                asked[-1].cancel()
                await person.until(lambda: not person.app.query(Question))
            await person.type(character)
        await person.rest(60)
        assert len(asked) > 3
        assert not any(
            worker.is_finished and not worker.is_cancelled for worker in asked
        )
        assert person.prompt.text == text


async def test_a_question_can_be_cancelled_while_it_is_being_mounted(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        for moments in range(12):
            asked = asyncio.create_task(person.app.asking.approve(COMMAND))
            for _ in range(moments):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait([asked])
        assert not person.app.query(Question)
        asked = asyncio.create_task(person.app.asking.approve(COMMAND))
        await person.answer("y")
        assert await asked is Choice.YES


@dataclass
class StampedTime(FingerTime):
    """Each key has the time at which it was pressed, however late it is handled."""

    @property
    def clock(self) -> KeyClock:
        return KeyClock(lambda: self.now, lambda event: event.time, self.sleep)


async def test_keys_that_arrive_late_answer_no_question(sandbox: Sandbox) -> None:
    """The questions come and go before, while and after the keys are handled."""
    chance, time = random.Random(1), StampedTime()
    letters = " ".join((*WORDS, *SENTENCES)) + "\n" * 12
    app = shell(sandbox, time=time)
    async with app.run_test() as pilot:
        await session_opened(app, pilot)
        for number in range(25):
            proposal = chance.choice(PROPOSALS)
            if number % 5:
                asking: Coroutine[Any, Any, object] = app.asking.ask("Which?")
            elif isinstance(proposal, Review):
                asking = app.asking.review(proposal)
            else:
                asking = app.asking.approve(proposal)
            asked = asyncio.create_task(asking)
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(0)
            is_seen = number % 10 == 0
            if is_seen:
                while app.asking.open is None or app.asking.open.seen_at == inf:
                    assert not asked.done(), f"question {number}: {asked}"
                    await asyncio.sleep(0.001)
            for _ in range(chance.randrange(1, 4)):
                time.pass_by(0.1)
                character = chance.choice(letters)
                key = pressed(character)
                key.time = time.now
                app.post_message(key)
                await asyncio.sleep(0)
            if is_seen:
                await pilot.pause(0)
            assert not asked.done(), f"question {number}: {asked}"
            asked.cancel()
            await asyncio.wait([asked])
            assert asked.cancelled()
            app.home.transcript.clear()
        assert not app.query(Question)


def pressed(character: str) -> events.Key:
    if character == "\n":
        return events.Key("enter", "\r")
    return events.Key(character, character)


GAPS = st.floats(0, REST, exclude_max=True)


@given(
    keys=st.lists(
        st.tuples(st.sampled_from("ynaqleso \n"), GAPS), min_size=1, max_size=40
    ),
    seen=st.integers(0, 39),
    words=st.sampled_from(
        [("yes", "no"), ("yes", "no", "always"), ("yes", "no", "all", "quit"), ()]
    ),
    lag=st.integers(0, 3),
)
async def test_no_rhythm_without_a_rest_is_an_answer(
    keys: list[tuple[str, float]], seen: int, words: tuple[str, ...], lag: int
) -> None:
    """Whatever is typed, and whenever in it the question comes, also where the prompt
    shows keys some keys later: where no key comes after a rest, there is no answer.
    """
    answering, typed, now, last = Answering(words), "", 0.0, 0.0
    shown = [""] * (lag + 1)
    for number, (character, gap) in enumerate(keys):
        now += gap
        if number == seen:
            answering.seen_at = now
        timing = Timing.SEEN if now >= answering.seen_at else Timing.UNSEEN
        if now - max(last, answering.seen_at) >= REST:
            timing = Timing.RESTED
        last = now
        answer = answering.receive_key(
            KeyKind.ENTER if character == "\n" else KeyKind.TEXT,
            timing,
            character=character,
            is_empty=not shown[-lag - 1],
        )
        assert answer is None
        if character == "\n":
            assert answering.receive_line(typed) is None
        typed = "" if character == "\n" else typed + character
        shown.append(typed)


@given(answer=st.sampled_from(["y", "yes", "no", "a", "Always"]), lag=st.integers(0, 9))
async def test_an_answer_that_begins_after_a_rest_counts_at_any_speed(
    answer: str, lag: int
) -> None:
    answering = Answering(("yes", "no", "always"))
    shown = [""] * (lag + 1)
    for number, character in enumerate(answer):
        answering.receive_key(
            KeyKind.TEXT,
            Timing.SEEN if number else Timing.RESTED,
            character=character,
            is_empty=not shown[-lag - 1],
        )
        shown.append(answer[: number + 1])
    answering.receive_key(KeyKind.ENTER, Timing.SEEN, is_empty=not shown[-lag - 1])
    assert answering.receive_line(answer) == answering.find_word(answer)


async def test_a_sentence_whose_first_letter_is_an_answer_answers_nothing(
    sandbox: Sandbox,
) -> None:
    proposals = (CHANGES, COMMAND, COMMAND, ACTION)
    async with person_at(sandbox) as person:
        for sentence, proposal in zip(SENTENCES, proposals, strict=False):
            asked = opened(person, proposal)
            await person.until_asked()
            await person.rest(60)
            await person.type(sentence[:6])
            await person.rest(60)
            assert not asked.is_finished, sentence
            assert person.prompt.text == sentence[:6]
            await withdrawn(person, asked)


async def withdrawn(person: Person, asked: Worker[Choice]) -> None:
    """Withdraw the question, and empty the prompt for the next one."""
    asked.cancel()
    await person.until(lambda: not person.app.query(Question))
    person.prompt.replace("")


async def test_a_letter_answers_once_the_question_was_seen_and_the_keyboard_rested(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        for letter in "yn":
            asked = opened(person, COMMAND)
            await person.until_asked()
            await person.rest(REST / 2)
            await person.type(letter, gap=0)
            await person.rest(60)
            assert not asked.is_finished
            await person.press("backspace")

            await person.rest()
            await person.type(letter, gap=0)
            await person.rest(REST / 2)
            assert not asked.is_finished
            await person.rest()
            assert (await asked.wait()).value.startswith(letter)
            assert person.prompt.text == ""


async def test_a_letter_soon_after_another_key_needs_an_enter_after_a_rest(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        asked = opened(person, COMMAND)
        await person.until_asked()
        await person.rest()
        await person.type("z", gap=0)
        await person.press("backspace")
        await person.type("y", gap=0)
        await person.rest(60)
        assert not asked.is_finished
        assert "yes …" in person.screen

        await person.press("enter")
        assert await asked.wait() is Choice.YES


async def test_a_word_from_before_the_question_is_stashed_and_comes_back(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.type("yes", gap=0)
        asked = opened(person, COMMAND)
        await person.until_asked()
        await person.rest(60)
        await person.press("enter")
        await person.rest(60)
        assert not asked.is_finished
        assert "↩ yes" in person.screen

        await person.press("escape")
        assert await asked.wait() is Choice.NO
        assert person.prompt.text == "yes"


async def test_a_letter_or_a_word_with_enter_answers_at_once(sandbox: Sandbox) -> None:
    answers = {"y": "yes", "YES": "yes", " no": "no", "always": "always"}
    async with person_at(sandbox) as person:
        for text, answer in answers.items():
            asked = opened(person, COMMAND)
            await person.until_asked()
            await person.rest()
            await person.type(f"{text}\n", gap=0)
            await person.until(lambda asked=asked: asked.is_finished)
            assert await asked.wait() is Choice(answer)
            assert person.prompt.text == ""


async def test_tab_stashes_the_draft_to_make_room_for_the_answer(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.type(DRAFT)
        asked = opened(person, COMMAND)
        await person.until_asked()
        assert "Tab, then" in person.screen
        await person.rest(60)
        # a draft with an answer behind it is no answer
        await person.type("yes\n", gap=1)
        assert not asked.is_finished
        assert f"↩ {DRAFT}yes" in person.screen

        await person.type("also ")
        assert "Tab, then" in person.screen
        await person.press("tab")
        assert person.prompt.text == ""
        assert "Tab, then" not in person.screen
        await person.answer("n")

        assert await asked.wait() is Choice.NO
        assert person.prompt.text == f"{DRAFT}yes"
        await person.press("up")
        assert person.prompt.text == "also "


async def test_escape_answers_no_unless_the_question_has_just_come_up(
    sandbox: Sandbox,
) -> None:
    """An Escape at that moment was meant for something else."""
    async with person_at(sandbox) as person:
        for proposal, draft in zip(PROPOSALS, ("", "maybe", ""), strict=True):
            await person.type(draft)
            asked = opened(person, proposal)
            await person.until_asked()
            await person.rest(REST / 2)
            await person.press("escape", "escape")
            assert not asked.is_finished
            await person.rest()
            await person.press("escape")
            assert await asked.wait() is Choice.NO
            assert person.prompt.text == draft
            person.prompt.replace("")


async def test_pasted_text_answers_nothing(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        asked = opened(person, COMMAND)
        await person.until_asked()
        for text in ("y", "yes\n", "yes"):
            await person.rest(60)
            person.app.post_message(events.Paste(text))
            await person.rest(60)
            assert not asked.is_finished
        await person.press("enter")
        await person.rest(60)
        assert not asked.is_finished
        assert "↩ yyes yes" in person.screen
        asked.cancel()


async def test_an_earlier_line_from_the_history_answers_nothing(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/y")
        person.prompt.accepted("y")
        asked = opened(person, COMMAND)
        await person.until_asked()
        await person.rest()
        await person.press("up")
        assert person.prompt.text == "y"
        await person.rest(60)
        await person.press("enter")
        await person.rest(60)
        assert not asked.is_finished
        asked.cancel()


async def test_simultaneous_questions_are_asked_one_after_the_other(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        first, second = opened(person, COMMAND), opened(person, CHANGES)
        await person.until_asked()
        assert len(person.app.query(Question)) == 1
        await person.answer("y")
        assert await first.wait() is Choice.YES
        assert not second.is_finished
        await person.answer("n")
        assert await second.wait() is Choice.NO


# --- questions in words


async def wanting(
    person: Person, sent: Callable[[Person], None] | None = None
) -> Worker[str]:
    asked = person.app.run_worker(
        person.app.asking.ask("Which colour?"), exit_on_error=False
    )
    if sent is not None:
        sent(person)
    await person.until_asked()
    return asked


async def test_a_line_that_begins_after_a_question_in_words_is_its_answer(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        asked = await wanting(person)
        await person.rest()
        await person.type("y", gap=0)
        await person.rest(60)
        # a letter is no answer by itself where words are wanted
        assert not asked.is_finished
        await person.type("ellow\n")
        await person.until(lambda: asked.is_finished)
        assert await asked.wait() == "yellow"
        assert person.told.index("Which colour?") < person.told.index("yellow")


async def test_a_line_from_before_a_question_in_words_must_be_sent_twice(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.type(LINE[:-3])
        asked = await wanting(person)
        await person.type(f"{LINE[-3:]}\n\n\n")
        assert not asked.is_finished
        assert person.prompt.text == LINE
        assert "Enter: send it" in person.activity
        await person.rest()
        await person.press("enter")
        await person.until(lambda: asked.is_finished)
        assert await asked.wait() == LINE


# --- transcript and log


async def test_the_transcript_and_the_log_keep_the_question_and_its_answer(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"approval": "ask"}
    sandbox.write(Step("a.txt", "none")).replies(says("a.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("")
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
        for text in ("create a.txt", "+good", "Your answer: yes"):
            assert text in person.told
    log = (sandbox.root / ".cdd" / "runs" / SLUG / "events.jsonl").read_text()
    answers = [
        entry["answer"]
        for entry in map(json.loads, log.splitlines())
        if entry["event"] == "person_answered"
    ]
    assert answers == ["yes"]


async def test_the_transcript_shows_a_question_without_an_answer(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        asked = opened(person, COMMAND)
        await person.until_asked()
        await withdrawn(person, asked)
        assert COMMAND.command in person.told
        assert "Not answered" in person.told
