"""The board's screen: runs of other processes, as they go on."""

from dataclasses import replace

from cdd_agent.engine.lock import TicketLock
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.known import folder_of, save_board
from cdd_agent.fleet.place import TicketJob
from cdd_agent.tui.screens.board import BoardScreen
from tests.projects import Sandbox, Step
from tests.tui.person import person_at


async def test_it_follows_what_another_process_saves_and_fits_a_narrow_terminal(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    folder = folder_of(sandbox.root)
    folder.mkdir(parents=True)
    lock = TicketLock.take(folder, folder.name, "2026-11-21T10:00:00+00:00")
    row = replace(Row(TicketJob("feature-words")), state=RunState.RUNNING, done=1, total=3, steps={2: "Make [b]it"})
    save_board(folder, Board({row.job.name: row}))
    async with person_at(sandbox, size=(40, 20)) as person:
        await person.say("/board")
        await person.until(lambda: isinstance(person.app.screen, BoardScreen) and "Make [b]it" in person.screen)
        assert "◐ feature-words" in person.screen
        assert "1/3" in person.screen
        save_board(folder, Board({row.job.name: replace(row, state=RunState.DONE, done=3)}))
        await person.until(lambda: "✓ feature-words" in person.screen)
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
    lock.release()
