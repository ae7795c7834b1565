"""Before an undo it is known, file by file, what it will do; and nothing is changed by
looking.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.engine.undo import NotCarriedOut
from cdd_agent.events.step_events import StepsUndone
from tests.support.listening import collect
from tests.support.projects import Begin, Copied, Sandbox, Step, run_all, says

STEPS = (Step("a.txt"), Step("a.txt", also=("b.txt",)), Step("c.txt"))
REPLIES = (
    says("a.txt", "one\n1\n1\n1"),
    says("a.txt", "two\n1\n1\n1") + says("b.txt", "b"),
    says("c.txt", "c"),
)
Edit = Callable[[Path], object]


def nothing(root: Path) -> None:
    del root


def of(name: str, text: str) -> Edit:
    return lambda root: (root / name).write_text(text)


def gone(name: str) -> Edit:
    return lambda root: (root / name).unlink()


async def carried_out(sandbox: Sandbox, between: Edit = nothing) -> None:
    await run_all(sandbox.write(*STEPS[:1]).replies(*REPLIES))
    between(sandbox.root)
    await run_all(sandbox.write(*STEPS))


async def carried_out_around_an_edit(sandbox: Sandbox) -> None:
    await carried_out(sandbox, of("a.txt", "mine in between\n1\n1\n1"))


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "after",
    [
        nothing,
        of("a.txt", "mine"),
        of("a.txt", "two\n1\n1\nmine"),
        of("c.txt", "mine"),
        gone("b.txt"),
        of("new.txt", "mine"),
    ],
)
@pytest.mark.parametrize("begin", [carried_out, carried_out_around_an_edit])
async def test_it_says_what_the_undo_then_does(
    copied: Copied, number: int, after: Edit, begin: Begin
) -> None:
    sandbox = await copied(begin)
    after(sandbox.root)
    engine = sandbox.engine()
    await collect(engine.recover())
    files = {path: path.read_bytes() for path in sandbox.root.glob("*.txt")}
    preview = await engine.preview_undo(number)
    assert {path: path.read_bytes() for path in sandbox.root.glob("*.txt")} == files
    (undone,) = [
        event
        for event in await collect(engine.undo(number))
        if isinstance(event, StepsUndone)
    ]
    engine.close()
    assert preview.steps == undone.steps
    assert (preview.restored, preview.kept, preview.edited, preview.merged) == (
        undone.restored,
        undone.kept,
        undone.edited,
        undone.merged,
    )


async def test_a_step_that_was_not_carried_out_has_none(sandbox: Sandbox) -> None:
    sandbox.write(*STEPS).replies(REPLIES[0])
    await run_all(sandbox)
    engine = sandbox.engine()
    with pytest.raises(NotCarriedOut):
        await engine.preview_undo(7)
    engine.close()
