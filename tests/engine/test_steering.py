"""Words to a running step reach its model between two calls, once, or nobody."""

from collections.abc import Coroutine
from dataclasses import dataclass, field

import pytest

from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.step_events import GuidanceTaken
from cdd_agent.events.stream import Event
from cdd_agent.llm.scripted_reply import ScriptedReply
from tests.engine.tool_steps import STEP, calls, create, finished, read, replace
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import Sandbox, says
from tests.support.tables import each_row

WORDS = "Say it in lower case."


@dataclass
class Talk:
    """Somebody who says these words when the first call is done, and hears what
    happens.
    """

    sandbox: Sandbox
    words: tuple[str, ...]
    take: bool = True
    heard: list[bool] = field(default_factory=list)
    seen: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = self.sandbox.engine()

    async def until(self, work: Coroutine[object, object, object]) -> None:
        with told_to(self._listen):
            await work
        self.engine.close()

    def _listen(self, event: Event) -> None:
        self.seen.append(event)
        if isinstance(event, ToolFinished) and not self.heard:
            self.heard += [
                self.engine.runner.steering.say(text, lambda: self.take)
                for text in self.words
            ]


async def test_it_comes_with_the_answers_to_the_calls(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "Good")), calls(create("b.txt", "x")), "Done."
    )
    talk = Talk(sandbox, (WORDS, "And shortly."))
    await talk.until(talk.engine.run_all())
    assert talk.heard == [True, True]
    first, second, third = sandbox.model.requests
    assert not any(WORDS in message.content for message in first.messages)
    assert [message.role for message in second.messages][-2:] == ["tool", "user"]
    assert second.messages[-1].content == f"{WORDS}\n\nAnd shortly."
    assert sum(WORDS in message.content for message in third.messages) == 1
    assert [
        (event.step, event.text)
        for event in talk.seen
        if isinstance(event, GuidanceTaken)
    ] == [
        (1, WORDS),
        (1, "And shortly."),
    ]
    attempt = talk.engine.run.attempt(1, 1)
    assert WORDS in attempt.all_guidance
    assert attempt.guidance == ""


async def test_what_was_taken_back_is_not_heard(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(calls(create("a.txt", "good")), "Done.")
    talk = Talk(sandbox, (WORDS,), take=False)
    await talk.until(talk.engine.run_all())
    assert talk.heard == [True]
    assert not any(
        WORDS in message.content
        for request in sandbox.model.requests
        for message in request.messages
    )
    assert not any(isinstance(event, GuidanceTaken) for event in talk.seen)


async def test_where_no_round_follows_nobody_hears_it(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(calls(create("a.txt", "good")), "Done.")
    engine = sandbox.engine()
    assert not engine.runner.steering.say(WORDS, lambda: True)  # nothing runs
    await engine.run_all()
    assert not engine.runner.steering.say(WORDS, lambda: True)
    assert engine.runner.steering.take() == ()
    engine.close()


async def test_a_step_without_tools_hears_nothing(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(says("a.txt", "good"))
    sandbox.flags = {"tool_calls": "off"}
    heard, engine = list[bool](), sandbox.engine()
    with told_to(
        lambda event: heard.append(engine.runner.steering.say(WORDS, lambda: True))
    ):
        await engine.run_all()
    engine.close()
    assert heard
    assert not any(heard)


async def test_after_a_kill_it_is_heard_no_second_time(sandbox: Sandbox) -> None:
    better = calls(replace("a.txt", "Good", "good"))
    sandbox.write(STEP).replies(
        calls(create("a.txt", "Good")), calls(read("a.txt")), better, "Done."
    )
    talk = Talk(sandbox, (WORDS,))
    await talk.until(
        stop_at(
            talk.engine.run_all(),
            lambda event: isinstance(event, ToolFinished) and "read" in event.call,
        )
    )
    engine = sandbox.engine()
    events = [*await collect(engine.recover()), *await collect(engine.run_all())]
    engine.close()
    assert finished(events).status == "completed"
    assert (
        sum(WORDS in message.content for message in sandbox.model.requests[-1].messages)
        == 1
    )


@each_row("secret", ["sk-ant-REDACTED", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"])
async def test_a_secret_in_it_stays_here(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    sandbox.write(STEP).replies(calls(create("a.txt", "good")), "Done.")
    talk = Talk(sandbox, (f"Use {secret} there.",))
    await talk.until(talk.engine.run_all())
    assert not any(
        secret in message.content for message in sandbox.model.requests[-1].messages
    )
    assert all(
        secret not in event.text
        for event in talk.seen
        if isinstance(event, GuidanceTaken)
    )
    assert (
        secret
        not in (talk.engine.run.attempt(1, 1).folder / "meanwhile.json").read_text()
    )


async def test_what_it_allows_is_allowed_from_then_on(sandbox: Sandbox) -> None:
    (sandbox.root / "old.py").write_text("x = 1\n")
    gone = ScriptedReply(
        "```diff\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x = 1\n```\n"
    )
    sandbox.write(STEP).replies(calls(create("a.txt", "good")), gone)
    talk = Talk(sandbox, ("Delete `old.py`, too.",))
    await talk.until(talk.engine.run_all())
    assert sandbox.statuses() == ["completed"]
    assert not (sandbox.root / "old.py").exists()
