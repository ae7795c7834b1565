"""A spec is called complete only if nothing is missing, each criterion has a check, and
no question is open: by Socrates, in the panel, and by the commands that show a ticket.
"""

import re
from collections.abc import Awaitable, Callable

from cdd_agent.agents.added_lines import GO_DEEPER
from cdd_agent.commands.overview import overviews
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import SpecOpened, SpecShown
from cdd_agent.session.session import Session
from cdd_agent.wording.describe import describe
from cdd_agent.wording.spec_words import spec_in_full, spec_in_short
from tests.agents.asking import COMPLETE, TEMPLATE, asks, open_questions
from tests.agents.test_words import say
from tests.support.projects import SLUG, SPEC, Sandbox, notice, noticed
from tests.support.tables import each_row
from tests.tui.test_spec import panel_of, rows

OPEN = f"/socrates {SLUG}"
VAGUE = {"text": "It is fast", "check": ""}
CLEAR = {"text": "a.txt says good", "check": "grep good a.txt"}
QUESTION = "How many seconds?"
Arrange = Callable[[Sandbox], Awaitable[None]]


async def talked(sandbox: Sandbox, *turns: str, then: tuple[str, ...] = ()) -> None:
    session = sandbox.write(spec=TEMPLATE).replies(*turns).session()
    (sandbox.ticket / "plan.md").unlink()
    await say(session, OPEN, *then)
    session.leave()


async def nothing_said(sandbox: Sandbox) -> None:
    sandbox.write(spec=TEMPLATE)
    (sandbox.ticket / "plan.md").unlink()


async def written_by_hand(sandbox: Sandbox) -> None:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()


async def question_open(sandbox: Sandbox) -> None:
    await talked(sandbox, asks(QUESTION, **COMPLETE), then=("approve anyway",))


async def criterion_unchecked(sandbox: Sandbox) -> None:
    vague = COMPLETE | {"acceptance_criteria": [CLEAR, VAGUE]}
    await talked(sandbox, *[asks(**vague)] * 3, then=("approve anyway",))


async def criterion_unchecked_and_asked_about(sandbox: Sandbox) -> None:
    vague = COMPLETE | {"acceptance_criteria": [VAGUE]}
    await talked(sandbox, asks(QUESTION, **vague), then=("approve anyway",))


async def question_open_and_not_written(sandbox: Sandbox) -> None:
    await talked(sandbox, asks(QUESTION, **COMPLETE), then=("close",))


async def criterion_added_by_hand(sandbox: Sandbox) -> None:
    await complete(sandbox)
    spec = sandbox.ticket / "spec.yaml"
    text = spec.read_text()
    added = text.replace("  - a.txt says good\n", "  - a.txt says good\n  - More\n")
    assert added != text
    spec.write_text(added)


async def complete(sandbox: Sandbox) -> None:
    await talked(sandbox, asks(**COMPLETE), then=("approve",))


async def answered(sandbox: Sandbox) -> None:
    turns = (asks(QUESTION, **COMPLETE), asks(answered=["q1"]))
    await talked(sandbox, *turns, then=("Two.", "approve"))


IS_COMPLETE: dict[Arrange, bool] = {
    nothing_said: False,
    written_by_hand: False,
    question_open: False,
    criterion_unchecked: False,
    criterion_unchecked_and_asked_about: False,
    question_open_and_not_written: False,
    criterion_added_by_hand: False,
    complete: True,
    answered: True,
}


def says_complete(text: str) -> bool:
    return re.search(r"(?<!not )\b(?:complete|ready)\b", text) is not None


def words(events: list[Event]) -> str:
    return "\n".join(text for event in events for text, _ in describe(event))


@each_row("arrange", IS_COMPLETE, ids=lambda arrange: arrange.__name__)
async def test_socrates_says_complete_only_if_it_is(
    sandbox: Sandbox, arrange: Arrange
) -> None:
    await arrange(sandbox)
    session = sandbox.replies(*[asks(QUESTION)] * 4).session()
    events = await say(session, OPEN)
    assert (NoticeKind.SPEC_COMPLETE in noticed(events)) == IS_COMPLETE[arrange]
    assert says_complete(words(events)) == IS_COMPLETE[arrange]
    assert not says_complete(words(await say(session, "summary")))
    await say(session, "continue")
    assert (GO_DEEPER in sandbox.prompt()) == IS_COMPLETE[arrange]
    assert not says_complete(words(await say(session, "approve")))
    session.leave()


@each_row("arrange", IS_COMPLETE, ids=lambda arrange: arrange.__name__)
async def test_the_panel_is_full_only_if_it_is(
    sandbox: Sandbox, arrange: Arrange
) -> None:
    await arrange(sandbox)
    spec = await spec_shown(sandbox)
    async with panel_of(spec) as (panel, _):
        done, total = re.findall(r"\d+", rows(panel)[0])
        assert (done == total) == IS_COMPLETE[arrange]
        assert ("╌" not in rows(panel)[0]) == IS_COMPLETE[arrange]
    assert not says_complete(spec_in_full(spec))
    assert spec_in_short(spec)
    assert not says_complete(spec_in_short(spec))


async def spec_shown(sandbox: Sandbox) -> SpecShown:
    session = sandbox.replies(asks(QUESTION)).session()
    events = await say(session, OPEN)
    session.leave()
    return next(event for event in events if isinstance(event, SpecShown))


@each_row("arrange", IS_COMPLETE, ids=lambda arrange: arrange.__name__)
async def test_status_and_the_list_of_tickets_say_so_only_if_it_is(
    sandbox: Sandbox, arrange: Arrange
) -> None:
    await arrange(sandbox)
    # without Socrates nobody has asked how a criterion is checked
    is_complete = IS_COMPLETE[arrange] or arrange is written_by_hand
    session = sandbox.session()
    events = await say(session, f"/status {SLUG}")
    (opened,) = [event for event in events if isinstance(event, SpecOpened)]
    assert says_complete(words(events)) == is_complete
    assert f"/{'plan' if is_complete else 'socrates'} {SLUG}" in words(events)
    assert (opened.missing + opened.open_points == ()) == is_complete
    (ticket,) = overviews(sandbox.project)
    expected = "/plan" if is_complete else "/socrates"
    assert ticket.next_line == f"{expected} {SLUG}"
    assert not says_complete(words(await say(session, "/list")))


@each_row(
    ("arrange", "named"),
    [
        (question_open, QUESTION),
        (criterion_unchecked, VAGUE["text"]),
        (criterion_added_by_hand, "More"),
    ],
)
async def test_status_names_what_is_open(
    sandbox: Sandbox, arrange: Arrange, named: str
) -> None:
    await arrange(sandbox)
    assert named in words(await say(sandbox.session(), f"/status {SLUG}"))


@each_row("arrange", [question_open, criterion_unchecked])
async def test_a_spec_that_is_written_all_the_same_names_what_is_open(
    sandbox: Sandbox, arrange: Arrange
) -> None:
    await arrange(sandbox)
    session = sandbox.replies(asks(QUESTION)).session()
    events = await say(session, OPEN, "approve anyway")
    assert "open" in notice(events, NoticeKind.SPEC_WRITTEN).lower()


async def test_a_spec_that_cannot_be_read_in_its_notebook_is_shown_by_its_fields(
    sandbox: Sandbox,
) -> None:
    await question_open(sandbox)
    (sandbox.root / ".cdd/runs" / SLUG / "socrates.json").write_text("{")
    events = await say(sandbox.session(), f"/status {SLUG}")
    (opened,) = [event for event in events if isinstance(event, SpecOpened)]
    assert (opened.missing, opened.open_points) == ((), ())


async def test_while_socrates_is_at_work_nothing_is_called_complete(
    sandbox: Sandbox,
) -> None:
    session: Session = sandbox.write(spec=TEMPLATE).session()
    sandbox.replies(asks(QUESTION, **COMPLETE), asks())
    (sandbox.ticket / "plan.md").unlink()
    events = await say(session, OPEN, "/status", f"/status {SLUG}", "/list")
    assert not says_complete(words([e for e in events if isinstance(e, Notice)]))
    assert open_questions(events) == (QUESTION,)
    session.leave()
