"""Words about a run besides its steps: what coming back to it finds, what a person has
changed, and why it is refused.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.engine.lock import TicketLock
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Event
from tests.support.listening import collect
from tests.support.projects import Sandbox, Step, check, run_all, says
from tests.support.tables import each_row

FIRST, SECOND = Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1")


async def half_done(sandbox: Sandbox) -> None:
    await run_all(sandbox.write(FIRST).replies(says("a.txt", "good")))
    sandbox.write(FIRST, SECOND)


@pytest.fixture
async def half(sandbox: Sandbox) -> Sandbox:
    """The first of two steps is done."""
    await half_done(sandbox)
    return sandbox


async def recovered(sandbox: Sandbox, *, start_over: bool = False) -> list[Event]:
    engine = sandbox.engine(start_over=start_over)
    try:
        return await collect(engine.recover())
    finally:
        engine.close()


def sentences(events: list[Event]) -> list[str]:
    """Without what is another time or place each time."""
    texts = [event.text for event in events if isinstance(event, Notice)]
    return [
        re.sub(r"\d{8}T\d+", "TIME", re.sub(r"\S+(?=/tickets)", "ROOT", text))
        for text in texts
    ]


async def gone(half: Sandbox) -> list[Event]:
    (half.ticket / "execution-state.json").unlink()
    return await recovered(half)


async def foreign(half: Sandbox) -> list[Event]:
    state = half.ticket / "execution-state.json"
    state.write_text(state.read_text().replace("feature-words", "bug-other"))
    return await recovered(half)


async def older(half: Sandbox) -> list[Event]:
    state = half.ticket / "execution-state.json"
    before = state.read_bytes()
    await run_all(half.replies(says("b.txt", "good")))
    state.write_bytes(before)
    return await recovered(half)


async def changed(half: Sandbox) -> list[Event]:
    return await recovered(
        half.write(Step("a.txt", check("a.txt"), description="Make it blue."), SECOND)
    )


async def removed(half: Sandbox) -> list[Event]:
    await run_all(half.replies(says("b.txt", "good")))
    return await recovered(half.write(FIRST))


async def renumbered(half: Sandbox) -> list[Event]:
    return await recovered(half.write(Step("z.txt"), FIRST, SECOND))


async def started_over(half: Sandbox) -> list[Event]:
    return await recovered(half, start_over=True)


async def skipped(half: Sandbox) -> list[Event]:
    engine = half.write(Step("c.txt", check("c.txt")), SECOND).engine(start_over=True)
    try:
        await collect(engine.recover())
        return await collect(
            engine.skip(engine.run.plan.steps[0], "not now", keep=False)
        )
    finally:
        engine.close()


async def undone_twice(half: Sandbox) -> list[Event]:
    engine = half.engine()
    try:
        return [
            *await collect(engine.undo(1)),
            *await collect(engine.undo()),
            *await collect(engine.diff()),
        ]
    finally:
        engine.close()


async def unsafe(half: Sandbox) -> list[Event]:
    half.flags = {"commands": {"mode": "unsafe"}}
    return await recovered(half)


async def unfilled(half: Sandbox) -> list[Event]:
    return await recovered(
        half.write(FIRST, SECOND, spec="title: Say words\ndescription: In files.\n")
    )


async def narrow(half: Sandbox) -> list[Event]:
    (half.root / "big.py").write_text("x = 1\n" * 3_000)
    half.flags = {"context_window": 9_000}
    half.write(FIRST, Step("b.txt", "none", description="See `big.py`."))
    return await run_all(half.replies(says("b.txt", "x")))


async def in_folder(half: Sandbox) -> list[Event]:
    (half.root / "many").mkdir()
    (half.root / "many/0.bin").write_bytes(b"\0")
    for number in range(302):
        (half.root / f"many/{number:03}.txt").write_text("x\n" * 2_000)
    half.write(FIRST, Step("many/", "none"))
    return await run_all(half.replies(says("many/a.txt", "x")))


@each_row(
    ("happens", "said"),
    [
        (
            gone,
            [
                "tickets/feature-words/execution-state.json was missing. Restored it from the run's record: 1 of 2 steps done. To start from scratch instead, add `--start-over`."
            ],
        ),
        (
            foreign,
            [
                "ROOT/tickets/feature-words/execution-state.json is the state of another ticket, bug-other. The file was renamed to execution-state.aside-TIME.json and restored from the run's record: 1 of 2 steps done."
            ],
        ),
        (
            older,
            [
                "tickets/feature-words/execution-state.json is older than the run's record (2 of 2 steps done). cdd uses the file. To use the record instead, delete the file."
            ],
        ),
        (
            changed,
            [
                "The plan's text of step 1 has changed since it was completed. The step stays completed. To run it again, undo it."
            ],
        ),
        (
            removed,
            [
                "Step 2 (completed) is no longer in the plan. Its changes and its record stay unless you undo step 2."
            ],
        ),
        (
            renumbered,
            ["The steps in the plan were renumbered: 1 is 2 now."],
        ),
        (
            started_over,
            [
                "Starting over. Your files stay unchanged. The previous run is recorded in .cdd/runs/feature-words/earlier-TIME."
            ],
        ),
        (skipped, ["Step 2 depends on it and will run without its result."]),
        (
            undone_twice,
            ["No step has run yet.", "No step has run yet."],
        ),
        (
            unsafe,
            [
                "`commands.mode` is `unsafe`: checks run in a real shell without restrictions."
            ],
        ),
        (
            unfilled,
            [
                "tickets/feature-words/spec.yaml is not complete: acceptance_criteria: at least one thing to check when the work is done"
            ],
        ),
        (
            narrow,
            [
                "big.py is shown only in part (lines 1 to 1480): there is no room for more."
            ],
        ),
        (
            in_folder,
            [
                "1 file of the step is not shown to the model (not text, or too large): many/0.bin.",
                "262 files of the step are not shown to the model (too many): many/037.txt, many/038.txt, many/039.txt, many/040.txt, many/041.txt and 257 more.",
                "3 more files match what the step declares. They are not listed; name fewer files in the step.",
            ],
        ),
    ],
)
async def test_what_is_found(
    half: Sandbox, happens: Callable[[Sandbox], Awaitable[list[Event]]], said: list[str]
) -> None:
    assert sentences(await happens(half)) == said


@each_row(
    ("plan", "why"),
    [
        (
            (Step("x.txt", check("x.txt")), SECOND),
            (
                "The saved state belongs to another plan: step 1 was 'Make a.txt', and is 'Make x.txt' in plan.md",
                "To run the plan from its first step, use `--start-over`; the old run's record is kept.",
            ),
        ),
        (
            (FIRST, Step("b.txt", "ls | wc")),
            (
                "Step 2: The check `ls | wc` cannot be run: `|` needs a shell, and commands run without one",
                "Put it into a script or a Makefile target that an allowed program runs, or set `commands.mode: ask` in .cdd/config.yaml.",
            ),
        ),
        (
            (FIRST, Step("b.txt", "foo x")),
            (
                "Step 2: The check `foo x` cannot be run: `foo` is not on the list of allowed commands",
                "Add the program to `commands.allow` in .cdd/config.yaml, set `commands.mode: ask`, or put it into a script or a Makefile target that an allowed program runs.",
            ),
        ),
        (
            (Step("a.txt", depends="Step 2"), Step("b.txt", depends="Step 1")),
            (
                "tickets/feature-words/plan.md:7: dependency cycle: 1 → 2 → 1",
                "Fix tickets/feature-words/plan.md by hand, or with `/plan`.",
            ),
        ),
    ],
    ids=["another plan", "a shell", "another program", "a cycle"],
)
async def test_why_it_is_refused(
    half: Sandbox, plan: tuple[Step, ...], why: tuple[str, str]
) -> None:
    with pytest.raises(CddError) as refused:
        half.write(*plan).engine()
    assert (refused.value.message, refused.value.hint) == why


@each_row(
    ("count", "sentence"),
    [
        (1, "Ended a running command of the killed run."),
        (2, "Ended 2 running commands of the killed run."),
    ],
)
def test_commands_of_a_killed_run_are_counted(
    tmp_path: Path, count: int, sentence: str
) -> None:
    lock = TicketLock.take(tmp_path, "feature-x", "now")
    try:
        assert lock.news == ()
        assert [notice.text for notice in replace(lock, ended=count).news] == [sentence]
    finally:
        lock.release()
