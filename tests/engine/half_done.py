"""A run of two steps that stopped half way."""

from tests.support.projects import Sandbox, Step, check, run_all, says

TWO = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))


async def half_done(sandbox: Sandbox) -> None:
    await run_all(
        sandbox.write(*TWO).replies(says("a.txt", "good"), says("b.txt", "bad"))
    )
    assert sandbox.statuses() == ["completed", "failed"]
