"""A ticket is planned by typing."""

from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.ticket_events import PlanChecked
from tests.agents.test_planner import (
    BETTER,
    SPEC,
    SUMMARY,
    WISH,
    changes,
    heading,
    plan,
    step,
)
from tests.support.projects import SLUG, Sandbox, notice
from tests.tui.person import person_at

UNREADABLE = "whatever is done"


async def test_a_plan_is_proposed_changed_and_approved(sandbox: Sandbox) -> None:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    sandbox.replies(
        plan(), changes(steps=[step(2, "b.txt", title=BETTER, dependencies=[1])])
    )
    async with person_at(sandbox) as person:
        await person.say(f"/plan {SLUG}")
        assert f"planner · {SLUG}" in person.title
        assert heading(2).lstrip("# ") in person.told
        (checked,) = [event for event in person.shown if isinstance(event, PlanChecked)]
        assert not checked.problems
        assert "<!--" not in person.told
        assert person.prompt.area.placeholder.startswith("approve, discard")
        assert "open questions" not in person.activity

        await person.say(WISH)
        assert SUMMARY in person.told
        assert heading(2, BETTER).lstrip("# ") in person.told
        assert not (sandbox.ticket / "plan.md").exists()

        await person.say("approve")
        assert f"tickets/{SLUG}/plan.md" in notice(
            person.shown, NoticeKind.PLAN_WRITTEN
        )
        assert "chat" in person.title
        assert heading(2, BETTER) in (sandbox.ticket / "plan.md").read_text()


async def test_a_plan_that_becomes_unreadable_is_reported(
    sandbox: Sandbox,
) -> None:
    sandbox.write(spec=SPEC)
    async with person_at(sandbox, f"/plan {SLUG}") as person:
        (sandbox.ticket / "plan.md").write_text(
            f"### Step 1: A\n**Dependencies:** {UNREADABLE}\n"
        )
        await person.say("check")
        told = person.told.count(UNREADABLE)
        assert told
        await person.say("/status")
        assert person.told.count(UNREADABLE) > told
        await person.say("close")
        assert "chat" in person.title
