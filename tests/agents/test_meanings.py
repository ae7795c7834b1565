"""What the line below the prompt said is what Enter does, for any line in any state."""

import asyncio
from collections.abc import Awaitable, Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.meaning import LineKind, Meaning
from cdd_agent.agents.planner import PlannerAgent
from cdd_agent.agents.socrates import SocratesAgent
from cdd_agent.commands.registry import carry_out, commands, read_line
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.stream import Event
from cdd_agent.session.session import Session
from tests.agents.test_slips import OPENED, files
from tests.agents.test_words import THREE, say
from tests.support.examples import count_examples
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, notice
from tests.support.tables import each_row

Open = Callable[[Sandbox], Awaitable[Session]]


async def after_leaving_a_run(sandbox: Sandbox) -> Session:
    session = sandbox.write(*THREE).session()
    await say(session, f"/exec {SLUG}", "close")
    return session


STATES: tuple[Open, ...] = (after_leaving_a_run, *OPENED)
WORDS = {
    name
    for agent in (ExecutorAgent, PlannerAgent, SocratesAgent)
    for name in agent.WORDS
}
LINES = st.one_of(
    st.sampled_from(sorted(WORDS)),
    st.sampled_from([f"/{name}" for name in commands()]),
    st.builds(
        "{} {}".format,
        st.sampled_from(sorted(WORDS | {f"/{name}" for name in commands()})),
        st.sampled_from(
            ["2", "9", "step 2", "because it hangs", SLUG, "--x", "'a", "?"]
        ),
    ),
    st.sampled_from(["", "help", "?", "quit", "clear", "git status", "> skip", "why?"]),
    st.text(max_size=30),
    st.text(st.characters(codec="ascii", categories=("L", "Z", "P")), max_size=40),
)
MANY = settings(
    deadline=None,
    max_examples=count_examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


async def events_of(session: Session, meaning: Meaning) -> list[Event]:
    """Carry a line out. An error that the user sees is a notice."""
    events: list[Event] = []

    async def work() -> None:
        try:
            await carry_out(session, meaning)
        except CddError as error:
            events.append(Notice(error.message, kind=NoticeKind.NOT_DONE))

    return [*(await collect(work())), *events]


@each_row("opened", STATES, ids=lambda opened: opened.__name__)
def test_a_line_of_which_enter_does_nothing_only_gets_an_answer(
    sandbox: Sandbox, opened: Open
) -> None:
    with asyncio.Runner() as runner:
        session = runner.run(opened(sandbox))
        before = files(sandbox)
        asked = len(sandbox.model.requests)

        @MANY
        @given(LINES)
        def check_line(line: str) -> None:
            meaning = read_line(session, line)
            assert meaning == read_line(session, line)
            assert meaning.line == line
            does_nothing = meaning.hint.startswith("Enter does nothing")
            if meaning.kind is LineKind.NOTHING and line.strip():
                assert does_nothing
            if not does_nothing:
                return
            agent = session.agent
            events = runner.run(events_of(session, meaning))
            assert events
            assert all(isinstance(event, Notice | Answer) for event in events)
            assert session.agent is agent
            assert files(sandbox) == before
            assert len(sandbox.model.requests) == asked

        check_line()
        session.leave()


@each_row("opened", STATES, ids=lambda opened: opened.__name__)
async def test_what_a_line_meant_before_the_agent_changed_is_not_done(
    sandbox: Sandbox, opened: Open
) -> None:
    session = await opened(sandbox)
    lines = ("continue", "approve", "Some words, and more of them.", "close")
    sent = [read_line(session, line) for line in lines]
    if session.agent is None:
        await say(session, f"/exec {SLUG}")
    else:
        session.leave()
    before = files(sandbox)
    asked = len(sandbox.model.requests)
    for meaning in sent:
        events = await events_of(session, meaning)
        assert meaning.line in notice(events, NoticeKind.NOT_DONE)
        assert len(events) == 1
    assert files(sandbox) == before
    assert len(sandbox.model.requests) == asked
    session.leave()


async def test_guidance_for_a_step_that_is_over_is_not_done(sandbox: Sandbox) -> None:
    session = sandbox.write(*THREE).session()
    await say(session, f"/exec {SLUG}")
    guidance = read_line(session, "Make the file short, please.")
    assert "step 1" in guidance.hint
    await say(session, "skip")
    events = await events_of(session, guidance)
    assert guidance.line in notice(events, NoticeKind.NOT_DONE)
    assert sandbox.statuses() == ["skipped", "pending", "pending"]
    assert sandbox.model.requests == []
    session.leave()


def test_text_for_the_model_and_commands_are_told_apart(sandbox: Sandbox) -> None:
    session = sandbox.write(*THREE).session()
    rows = [
        ("Hello there", LineKind.TEXT),
        ("!ls", LineKind.SHELL),
        ("/list", LineKind.SLASH),
        ("quit", LineKind.SLASH),
        ("help", LineKind.SLASH),
        ("/nothing-like-it", LineKind.SLASH),
        ("close", LineKind.NOTHING),
        ("", LineKind.NOTHING),
    ]
    for line, kind in rows:
        assert read_line(session, line).kind is kind, line
