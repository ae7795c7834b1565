"""What is typed by mistake starts no step, leaves none out and approves nothing, unless
the line below the prompt has said so: with each agent, before anything was done and
after a step has failed.
"""

import re
from collections.abc import Awaitable, Callable

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.planner import PlannerAgent
from cdd_agent.agents.socrates import SocratesAgent
from cdd_agent.commands.registry import commands, handle, read_line
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.step_events import StepsRedone, StepStarted, StepsUndone
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.session.session import Session
from tests.agents.asking import COMPLETE, asks
from tests.agents.test_planner import plan as planned
from tests.agents.test_words import (
    HALF_AND_TALK,
    NEAR_A_COMMAND,
    SHELL_WORDS,
    THREE,
    cases,
    say,
)
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, says
from tests.support.tables import each_row

BY_OTHERS = {
    *(
        "git status",
        "ls",
        "cd ..",
        "rm -rf build",
        "make",
        "y",
        "yes",
        "yes please",
        "ok",
        "no",
        "go",
        "do it",
    ),
    *(
        "run it",
        "maybe you should",
        "use the",
        "thanks",
        "wait",
        "1",
        "..",
        "approve",
        "aprove",
        "lgtm",
        "looks good",
    ),
}


def slips(word: str) -> set[str]:
    """A letter left out, doubled, swapped with the next one; a word too many, a sign
    behind it.
    """
    places = range(len(word))
    left_out = {word[:at] + word[at + 1 :] for at in places}
    doubled = {word[:at] + word[at] + word[at:] for at in places}
    swapped = {
        word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1]
    }
    return (
        left_out
        | doubled
        | swapped
        | {f"{word} it", f"{word} now please", f"{word};", f"{word}/"}
    ) - {word, ""}


def mistakes() -> list[str]:
    """Of the words of all agents and of the names of all commands, with a slash and
    without; and what people type into any prompt. The words themselves are none.
    """
    agents = (ExecutorAgent, PlannerAgent, SocratesAgent)
    words = {word for agent in agents for word in agent.WORDS if len(word) > 2}
    of_words = {slip for word in words for slip in slips(word)}
    of_commands = {f"/{slip}" for name in commands() for slip in slips(name)} | set(
        commands()
    )
    others = {
        line
        for text in (SHELL_WORDS, NEAR_A_COMMAND, HALF_AND_TALK)
        for line in cases(text)
    }
    meant = {word for agent in agents for word in agent.WORDS} | {
        f"/{name}" for name in commands()
    }
    found = (of_words | of_commands | others | BY_OTHERS) - meant
    # a mistaken name of a model imports litellm, which takes seconds; see
    # tests/commands/test_model.py
    return sorted(line for line in found if not line.startswith("/model "))


STARTS_OR_WRITES = re.compile(
    r"Enter: (?:run|resume|apply|skip|undo|redo|write|add instructions)\b|your own"
)
DONE = (StepStarted, StepFinished, StepsUndone, StepsRedone)
APPROVED = (NoticeKind.SPEC_WRITTEN, NoticeKind.PLAN_WRITTEN)


def below(session: Session, line: str) -> str:
    """The line below the prompt, before Enter."""
    return read_line(session, line).hint


async def in_chat(sandbox: Sandbox) -> Session:
    return sandbox.write(*THREE).session()


async def with_socrates(sandbox: Sandbox) -> Session:
    session = sandbox.write(*THREE).replies(asks("Who?", **COMPLETE)).session()
    await say(session, f"/socrates {SLUG}", "")
    return session


async def with_the_planner(sandbox: Sandbox) -> Session:
    session = (
        sandbox.write(*THREE)
        .replies(*[planned(overview=f"Number {n}.") for n in range(4)])
        .session()
    )
    (sandbox.ticket / "plan.md").unlink()
    await say(session, f"/plan {SLUG}")
    return session


async def with_the_executor(sandbox: Sandbox) -> Session:
    session = sandbox.write(*THREE).session()
    await say(session, f"/exec {SLUG}")
    return session


async def after_a_failure(sandbox: Sandbox) -> Session:
    session = sandbox.write(*THREE).replies(says("a.txt", "bad")).session()
    await say(session, f"/exec {SLUG}", "continue")
    assert sandbox.statuses()[0] == "failed"
    return session


OPENED: tuple[Callable[[Sandbox], Awaitable[Session]], ...] = (
    *(in_chat, with_socrates, with_the_planner, with_the_executor, after_a_failure),
)


def test_the_list_of_mistakes_is_long() -> None:
    assert len(mistakes()) > 900


def is_for_the_model(session: Session, line: str) -> bool:
    """In chat that is whatever is no command: nothing that chat can do is about a
    step.
    """
    return read_line(session, line).name in ("words", "question", "chat")


async def told_by(session: Session, line: str) -> list[Event]:
    try:
        return await collect(handle(session, line))
    except CddError:
        return []  # there is no such command


@each_row("opened", OPENED, ids=lambda opened: opened.__name__)
async def test_no_mistake_starts_a_step_or_approves_anything(
    sandbox: Sandbox, opened: Callable[[Sandbox], Awaitable[Session]]
) -> None:
    """Try a fifth of the mistakes with each agent. Those that go to the model as words
    are not sent.
    """
    session = await opened(sandbox)
    agent, before, asked = session.agent, files(sandbox), len(sandbox.model.requests)
    announced, sent = list[str](), 0
    for line in mistakes()[OPENED.index(opened) :: 5]:
        said = below(session, line)
        if STARTS_OR_WRITES.search(said):
            announced.append(line)
        elif not is_for_the_model(session, line):
            events = await told_by(session, line)
            sent += 1
            assert not [event for event in events if isinstance(event, DONE)], line
            assert not [
                event
                for event in events
                if isinstance(event, Notice) and event.kind in APPROVED
            ], line
            assert len(sandbox.model.requests) == asked, line
            if session.agent is not agent:
                assert "Enter: leave" in said, line
                session = await opened(sandbox)
                agent, asked = session.agent, len(sandbox.model.requests)
    session.leave()
    assert files(sandbox) == before
    assert sent > 70
    assert len(announced) < 10, announced


def files(sandbox: Sandbox) -> dict[str, str]:
    """What there is of the ticket, and of its work."""
    found = [*sandbox.ticket.iterdir(), *sandbox.root.glob("*.txt")]
    return {
        path.name: path.read_text()
        for path in found
        if path.suffix in (".yaml", ".md", ".json", ".txt")
    }
