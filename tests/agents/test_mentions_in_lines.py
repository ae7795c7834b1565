"""Every agent reads the mentions of a line: a file goes with it, or is reported."""

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import ContextTooLong
from cdd_agent.session.session import Session
from tests.agents.asking import TEMPLATE, asks
from tests.agents.test_planner import changes, plan, step
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.tables import each_row

LINE = "see @src/(auth)/page.tsx:2-3 and @src/(auth)/nothing.tsx"
SENT = "2  two\n3  three\n"


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    folder = sandbox.root / "src" / "(auth)"
    folder.mkdir(parents=True)
    (folder / "page.tsx").write_text("one\ntwo\nthree\nfour\n")
    return sandbox


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


def not_sent(events: list[Event]) -> list[str]:
    notices = [event for event in events if isinstance(event, Notice)]
    return [each.text for each in notices if each.kind is NoticeKind.NOT_SENT]


def expect_reported(events: list[Event]) -> None:
    assert any("nothing.tsx does not exist" in text for text in not_sent(events))


async def test_chat_sends_a_mentioned_file(project: Sandbox) -> None:
    events = await say(project.replies("Yes.").session(), LINE)
    assert SENT in project.prompt()
    expect_reported(events)


async def test_socrates_sends_a_mentioned_file_once(project: Sandbox) -> None:
    project.write(spec=TEMPLATE)
    session = project.replies(*(asks(f"What {one}?") for one in "ABC")).session()
    await say(session, f"/socrates {SLUG}")
    events = await say(session, LINE)
    assert SENT in project.prompt()
    expect_reported(events)
    await say(session, "Something else.")
    assert SENT not in project.prompt()
    assert LINE in project.prompt()
    session.leave()


async def test_socrates_drops_a_file_that_makes_the_prompt_too_long(
    project: Sandbox,
) -> None:
    (project.root / "long.txt").write_text("word " * 400)
    project.flags = {"context_window": 3_000, "tool_calls": "off"}
    too_long = ContextTooLong("It is too long.")
    project.write(spec=TEMPLATE).replies(asks("Who?"), too_long, asks("What?"))
    session = project.session()
    await say(session, f"/socrates {SLUG}")
    with pytest.raises(ContextTooLong) as error:
        await say(session, "see @long.txt")
    assert "the files you mentioned" in error.value.hint
    assert "word word" in project.prompt()
    await say(session, "")
    assert "see @long.txt" in project.prompt()
    assert "word word" not in project.prompt()
    session.leave()


@each_row("line", [LINE, f"> {LINE}"])
async def test_the_planner_sends_a_mentioned_file(project: Sandbox, line: str) -> None:
    spec = "title: T\ndescription: D\nacceptance_criteria:\n  - a.txt says good\n"
    project.write(spec=spec)
    (project.ticket / "plan.md").unlink()
    replies = plan(step(1, "a.txt")), changes(steps=[step(1, "a.txt", title="Y")])
    session = project.replies(*replies).session()
    await say(session, f"/plan {SLUG}")
    events = await say(session, line)
    assert SENT in project.prompt()
    expect_reported(events)
    session.leave()


async def test_a_question_in_the_executor_sends_a_mentioned_file(
    project: Sandbox,
) -> None:
    project.write(Step("a.txt")).replies("Yes.")
    session = project.session()
    events = await say(session, f"/exec {SLUG}", f"{LINE} ?")
    assert SENT in project.prompt()
    expect_reported(events)
    session.leave()


async def test_guidance_shows_a_mentioned_file_to_the_step(project: Sandbox) -> None:
    project.write(Step("a.txt")).replies(says("a.txt", "good"))
    session = project.session()
    events = await say(session, f"/exec {SLUG}", f"Write good, {LINE}")
    assert "three" in project.prompt()
    expect_reported(events)
    session.leave()


@each_row("word", ["@src/(auth)/page.tsx", "@'src/(auth)/page.tsx'"])
async def test_the_context_command_takes_a_mention(project: Sandbox, word: str) -> None:
    events = await say(project.session(), f'/context "{word}"')
    (answer,) = [event for event in events if isinstance(event, Answer)]
    assert "three" in answer.text
