"""The first words of a session, on what was left in the middle."""

from cdd_agent.commands.registry import handle
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Event
from cdd_agent.session.session import Session
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, says


async def first_words(session: Session) -> str:
    return "\n".join(
        event.text
        for event in await collect(session.first_look())
        if isinstance(event, Notice)
    )


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


async def test_an_unfinished_run_is_offered_until_it_is_over(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"model": "script:none.yaml"}
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    sandbox.replies(says("a.txt", "good"), says("b.txt", "good"))
    assert "/resume" not in await first_words(sandbox.session())
    first = sandbox.session()
    await say(first, f"/exec {SLUG}", "c")
    assert "/resume" not in await first_words(first)  # it knows what it is doing
    first.leave()
    second = sandbox.session()
    left = await first_words(second)
    assert not await collect(second.first_look(first_line="/resume"))
    assert "`/resume`" in left
    assert SLUG in left
    await say(second, "/resume", "c")
    assert "/resume" not in await first_words(sandbox.session())


async def test_words_for_the_executor_are_not_sent_to_a_model(sandbox: Sandbox) -> None:
    sandbox.flags = {"model": "script:none.yaml"}
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    session = sandbox.session()
    await say(session, f"/exec {SLUG}", "c")
    session = sandbox.session()
    for line, hint in (
        ("undo 2", f"`/undo {SLUG} 2`"),
        ("diff", f"`/diff {SLUG} 1`"),
        ("retry", f"`/undo {SLUG}`"),
    ):
        (told,) = [
            event for event in await say(session, line) if isinstance(event, Notice)
        ]
        assert hint in told.text
    assert len(sandbox.model.requests) == 1
