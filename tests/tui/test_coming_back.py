"""The user comes back to a conversation about a spec or a plan."""

from itertools import pairwise

import pytest

from cdd_agent.agents.added_lines import BEGIN
from cdd_agent.events.stream import SessionRestored
from cdd_agent.tui.transcript.widget import Transcript
from tests.agents.asking import TEMPLATE, asks
from tests.agents.test_planner import SPEC, asking, changes, plan, step
from tests.support.examples import long_rows
from tests.support.projects import SLUG, Sandbox
from tests.tui.person import Person, person_at

QUESTION, ANSWER = "Which database is it?", "The small one."
WISH = "Call step 2 better."
BETTER = "Better"


def restored(person: Person) -> list[SessionRestored]:
    return [event for event in person.shown if isinstance(event, SessionRestored)]


@pytest.fixture
async def planned(sandbox: Sandbox) -> Sandbox:
    """A question, its answer, a proposal and its change, in a session that is over."""
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    change = changes(steps=[step(2, "b.txt", title=BETTER, dependencies=[1])])
    sandbox.replies(asking(QUESTION), plan(), change)
    async with person_at(sandbox) as person:
        for line in (f"/plan {SLUG}", ANSWER, WISH):
            await person.say(line)
    return sandbox


@pytest.mark.parametrize(
    "line", [f"/plan {SLUG}", "/resume", *long_rows(f"/resume {SLUG}")]
)
async def test_a_planning_session_shows_the_conversation_so_far(
    planned: Sandbox, line: str
) -> None:
    async with person_at(planned, line, size=(100, 40)) as person:
        told = person.told
        places = [
            told.index(words)
            for words in (
                f"Earlier in {SLUG}",
                QUESTION,
                f"\n{ANSWER}\n",
                "Proposed plan, not approved yet: 2 steps",
                f"\n{WISH}\n",
                "You have not approved this proposed plan yet.",
                f"Step 2: {BETTER}",
            )
        ]
        assert places == sorted(places)
        assert told.count(QUESTION) == 1
        assert len(planned.model.requests) == 3
        assert person.prompt.area.placeholder.startswith("approve")
        assert person.app.home.proposal.display
        await person.say("close")
        await person.say(f"/plan {SLUG}")
        # the conversation is in the transcript already
        assert len(restored(person)) == 1
        await person.say("discard")
        assert not person.app.home.proposal.display
    async with person_at(planned, f"/plan {SLUG}") as person:
        assert not restored(person)


async def test_open_questions_follow_the_conversation(sandbox: Sandbox) -> None:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    sandbox.replies(asking("Which one?"), asking(QUESTION))
    async with person_at(sandbox) as person:
        await person.say(f"/plan {SLUG}")
        await person.say(ANSWER)
    async with person_at(sandbox, f"/plan {SLUG}") as person:
        assert len(restored(person)) == 1
        told = person.told
        assert told.index("Which one?") < told.index(ANSWER) < told.index(QUESTION)
        assert told.count(QUESTION) == 1
        assert person.prompt.area.placeholder == "your answer …"


async def test_a_question_about_a_proposal_stays_in_sight(planned: Sandbox) -> None:
    planned.replies(asking(QUESTION))
    async with person_at(planned, f"/plan {SLUG}") as person:
        await person.say("and something else")
    async with person_at(planned, f"/plan {SLUG}", size=(100, 30)) as person:
        rows = person.screen.split("\n")
        assert any(f"1. {QUESTION}" in row for row in rows)
        assert person.app.query_one(Transcript).is_following
        assert person.app.home.proposal.display


async def test_a_dialogue_with_socrates_shows_the_conversation_so_far(
    sandbox: Sandbox,
) -> None:
    lines = [f"answer {number}" for number in range(8)]
    questions = [f"Question {number}?" for number in range(9)]
    sandbox.write(spec=TEMPLATE).replies(*map(asks, questions))
    async with person_at(sandbox) as person:
        for line in (f"/socrates {SLUG}", *lines):
            await person.say(line)
    async with person_at(sandbox, f"/socrates {SLUG}", size=(100, 40)) as person:
        assert len(sandbox.model.requests) == 9
        told = person.told
        for earlier, later in pairwise([*lines, questions[-1]]):
            assert told.index(earlier) < told.index(later), later
        assert BEGIN not in told
        # the older part is folded, the rest ends with the open question
        assert "6 earlier entries" in person.screen
        assert lines[0] not in person.screen
        assert lines[-1] in person.screen
        assert questions[-1] in person.screen


async def test_a_damaged_conversation_is_reported_and_the_dialogue_continues(
    planned: Sandbox,
) -> None:
    record = planned.root / ".cdd" / "runs" / SLUG
    (record / "planning.jsonl").write_bytes(b"\xff{torn\n")
    async with person_at(planned, f"/plan {SLUG}") as person:
        assert "You have not approved this proposed plan yet." in person.told
    (record / "planning.json").write_text("{torn")
    planned.replies(plan())
    async with person_at(planned, f"/plan {SLUG}") as person:
        assert "is damaged" in person.told
        assert "Step 2: Write b.txt" in person.told
