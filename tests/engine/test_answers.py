"""A person's answers are in the log of the run: what was asked, all that they saw of
it, and what they said.
"""

import pytest

from cdd_agent.changes.review import Review
from cdd_agent.commands.registry import handle
from cdd_agent.events.question_events import Choice, PersonAnswered, Proposal
from cdd_agent.events.stream import to_json
from cdd_agent.frontend import Decision, Nobody
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.tables import each_row


class Person(Nobody):
    """Gives one answer to everything."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice

    async def approve(self, proposal: Proposal) -> Choice:
        return self.choice

    async def review(self, review: Review) -> Decision:
        return Decision(self.choice, review)


def answers(sandbox: Sandbox) -> list[PersonAnswered]:
    engine = sandbox.engine()
    try:
        events = [entry.event for entry in engine.run.record.log.entries()]
    finally:
        engine.close()
    return [event for event in events if isinstance(event, PersonAnswered)]


async def run(sandbox: Sandbox, *lines: str) -> None:
    session = sandbox.session()
    for line in (f"/exec {SLUG}", *(lines or ("c",))):
        await collect(handle(session, line))
    session.leave()


@each_row("choice", [Choice.YES, Choice.NO])
async def test_an_answer_about_changes_is_logged_with_the_diff(
    sandbox: Sandbox, choice: Choice
) -> None:
    sandbox.flags, sandbox.frontend = {"approval": "ask"}, Person(choice)
    (sandbox.root / "a.txt").write_text("before\n")
    await run(
        sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    )

    (answer,) = answers(sandbox)
    assert to_json(answer) == {
        "v": 1,
        "event": "person_answered",
        "question": answer.question,
        "answer": choice.value,
    }
    assert "change a.txt" in answer.question
    assert "-before\n+good" in answer.question
    assert sandbox.text("a.txt") == ("good\n" if choice is Choice.YES else "before\n")


@each_row("choice", [Choice.YES, Choice.NO, Choice.ALWAYS])
async def test_an_answer_about_a_command_is_logged_and_always_is_asked_once(
    sandbox: Sandbox, choice: Choice
) -> None:
    sandbox.flags, sandbox.frontend = {"commands": {"mode": "ask"}}, Person(choice)
    test = "test -f a.txt"
    await run(
        sandbox.write(Step("a.txt", test), Step("b.txt", test)).replies(
            says("a.txt", "x"), says("b.txt", "x")
        )
    )

    (answer,) = answers(sandbox)
    assert answer.answer == choice.value
    assert test in answer.question


async def test_always_holds_for_the_session_and_not_only_for_the_run(
    sandbox: Sandbox,
) -> None:
    sandbox.flags, sandbox.frontend = (
        {"commands": {"mode": "ask"}},
        Person(Choice.ALWAYS),
    )
    sandbox.write(Step("a.txt", "test -f a.txt"), Step("b.txt", "test -f a.txt"))
    sandbox.replies(says("a.txt", "x"), says("b.txt", "x"))
    await run(sandbox, "c", "close", f"/exec {SLUG}", "c")
    assert len(answers(sandbox)) == 1
    assert sandbox.statuses() == ["completed", "completed"]


async def test_an_answer_is_kept_without_secrets(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "d3ploy-4cc3ss-t0k3n-9f8e7d")
    sandbox.flags, sandbox.frontend = {"commands": {"mode": "ask"}}, Person(Choice.NO)
    await run(
        sandbox.write(Step("a.txt", "deploy d3ploy-4cc3ss-t0k3n-9f8e7d")).replies(
            says("a.txt", "x")
        )
    )
    (answer,) = answers(sandbox)
    assert "d3ploy" not in answer.question
    assert "DEPLOY_TOKEN" in answer.question
