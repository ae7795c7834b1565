"""The board's screen: runs of other processes, as they go on."""

from collections.abc import Callable

from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Static

from cdd_agent.cost import Cost
from cdd_agent.engine.lock import TicketLock
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.job import TicketJob
from cdd_agent.fleet.local_runs import folder_of, save_board
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.tui.screens.board import BoardScreen
from tests.support.projects import Sandbox, Step
from tests.tui.person import person_at, shell
from tests.tui.test_snapshots import OPENING, shop, showing

__all__ = ["shop"]


async def test_it_follows_what_another_process_saves_and_fits_a_narrow_terminal(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    folder = folder_of(sandbox.root)
    folder.mkdir(parents=True)
    lock = TicketLock.take(folder, folder.name, "2026-11-21T10:00:00+00:00")
    row = replace(
        Row(TicketJob("feature-words")),
        state=RunState.RUNNING,
        tally=StepTally(passed=1, open=2),
        steps={2: "Make [b]it"},
    )
    save_board(folder, Board({row.job.name: row}))
    async with person_at(sandbox, size=(40, 20)) as person:
        await person.say("/board")
        await person.until(
            lambda: (
                isinstance(person.app.screen, BoardScreen)
                and "Make [b]it" in person.screen
            )
        )
        assert "◐ feature-words" in person.screen
        assert "1/3" in person.screen
        row = replace(row, state=RunState.DONE, tally=StepTally(passed=3))
        save_board(folder, Board({row.job.name: row}))
        await person.until(lambda: "✓ feature-words" in person.screen)
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
    lock.release()


ROWS = (
    Row(
        TicketJob("feature-user-auth"),
        RunState.DONE,
        StepTally(passed=7),
        tests=(44, 0),
        costs={1: Cost(120_300, 0.412)},
        earlier=312,
    ),
    Row(
        TicketJob("feature-monthly-report"),
        RunState.NEEDS_YOU,
        StepTally(passed=2, open=3),
        {3: "Write the report"},
        question="`npm install left-pad`",
        costs={1: Cost(8_100, 0.02)},
        earlier=41,
    ),
    Row(
        TicketJob("bug-rounding"),
        RunState.FAILED,
        StepTally(failed=1, open=1),
        {1: "Round half to even"},
        why="1 test failed",
        earlier=9,
    ),
    Row(TicketJob("chore-names"), tally=StepTally(open=3)),
)


def test_the_board(shop: Sandbox, snap_compare: Callable[..., bool]) -> None:
    folder = folder_of(shop.root)
    folder.mkdir(parents=True)
    save_board(folder, Board({row.job.name: row for row in ROWS}))
    lock = TicketLock.take(folder, folder.name, "2026-11-21T10:00:00+00:00")

    async def look(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        screen = BoardScreen(shop.project)
        await pilot.app.push_screen(screen)
        while "chore-names" not in str(screen.query_one("#runs", Static).content):
            await pilot.pause(0.01)
        await pilot.pause()

    assert snap_compare(shell(shop, opening=OPENING), run_before=look)
    lock.release()
