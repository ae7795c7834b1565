"""A ticket is planned by typing."""

from tests.agents.test_planner import SPEC, changes, plan, step
from tests.projects import SLUG, Sandbox
from tests.tui.person import person_at


async def test_a_plan_is_proposed_changed_and_approved(sandbox: Sandbox) -> None:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    sandbox.replies(plan(), changes(steps=[step(2, "b.txt", title="Write b.txt well", dependencies=[1])]))
    async with person_at(sandbox) as person:
        await person.say(f"/plan {SLUG}")
        assert f"planner · {SLUG}" in person.title
        assert "Step 2: Write b.txt" in person.told
        assert "The proposed plan can be carried out." in person.told
        assert person.prompt.area.placeholder.startswith("approve, keep")

        await person.say("step 2 has to be better")
        assert "Changed as asked." in person.told
        assert "Step 2: Write b.txt well" in person.told
        assert not (sandbox.ticket / "plan.md").exists()

        await person.say("approve")
        assert f"Wrote tickets/{SLUG}/plan.md" in person.told
        assert "chat" in person.title
        assert "### Step 2: Write b.txt well" in (sandbox.ticket / "plan.md").read_text()


async def test_a_plan_that_becomes_unreadable_meanwhile_is_told(sandbox: Sandbox) -> None:
    sandbox.write(spec=SPEC)
    async with person_at(sandbox, f"/plan {SLUG}") as person:
        (sandbox.ticket / "plan.md").write_text("### Step 1: A\n**Dependencies:** whatever is done\n")
        await person.say("check")
        assert "dependencies that cannot be read" in person.told
        await person.say("/status")
        assert person.told.count("dependencies that cannot be read") == 2
        await person.say("exit")
        assert "chat" in person.title
