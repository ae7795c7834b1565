"""The tickets' screen: what there is of each, and the way on with one."""

import json
from datetime import UTC, datetime, timedelta

from cdd_agent.tui.screens.tickets import TicketsScreen, ago
from tests.support.projects import SLUG, SPEC, Sandbox, Step, says
from tests.tui.person import Person, person_at
from tests.tui.screens.reading import has_read


async def tickets(person: Person) -> TicketsScreen:
    await person.press("f4")
    await person.until(
        lambda: isinstance(person.app.screen, TicketsScreen) and has_read(person)
    )
    assert isinstance(person.app.screen, TicketsScreen)
    return person.app.screen


def more(sandbox: Sandbox) -> Sandbox:
    """A ticket whose spec is complete, one that is empty, and one that cannot be
    read.
    """
    for slug, spec in (
        ("bug-rounding", SPEC),
        ("spike-search", ""),
        ("feature-broken", "title: ["),
    ):
        (sandbox.root / "tickets" / slug).mkdir(parents=True)
        (sandbox.root / "tickets" / slug / "spec.yaml").write_text(spec)
    return sandbox


NEXT = {
    "words": f"/exec {SLUG}",
    "rounding": "/plan bug-rounding",
    "empty": "/socrates spike-search",
    "unreadable": "/status feature-broken",
    "new": "/new ",
}


async def test_enter_puts_the_next_command_for_a_ticket_into_the_prompt(
    sandbox: Sandbox,
) -> None:
    more(sandbox).write(Step("a.txt"))
    async with person_at(sandbox) as person:
        for typed, line in NEXT.items():
            screen = await tickets(person)
            screen.type(typed)
            await person.press("enter")
            await person.until(lambda: person.app.screen is person.app.home)
            assert person.prompt.text == line
            assert not person.is_waiting
        for key in ("ctrl+n", "end"):
            await tickets(person)
            await person.press(key)
            if key == "end":
                await person.press("enter")
            await person.until(lambda: person.app.screen is person.app.home)
            assert person.prompt.text == "/new "


async def test_a_row_shows_the_progress_and_the_cost_of_a_run(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", "none"), Step("b.txt", "none")).replies(
        says("a.txt", "good")
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("continue")
        await person.say("close")
        report = sandbox.root / ".cdd" / "runs" / SLUG / "report.json"
        report.write_text(json.dumps(json.loads(report.read_text()) | {"usd": 0.126}))
        await tickets(person)
        row = next(line for line in person.screen.splitlines() if SLUG in line)
        assert row.strip("│ ").split() == [
            "◐",
            SLUG,
            "in",
            "progress",
            "1/2",
            "$0.13",
            "just",
            "now",
            "/exec",
        ]


async def test_enter_begins_a_ticket_where_there_is_none(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        screen = await tickets(person)
        assert "Tickets: 0" in person.screen
        assert screen.highlighted is not None
        await person.press("enter")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.prompt.text == "/new "


async def test_three_hundred_tickets_are_read_and_filtered(sandbox: Sandbox) -> None:
    for number in range(300):
        folder = sandbox.root / "tickets" / f"feature-number-{number:03}"
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(SPEC)
    async with person_at(sandbox) as person:
        await person.say("/tickets")
        await person.until(lambda: isinstance(person.app.screen, TicketsScreen))
        await person.until(lambda: "Tickets: 300" in person.screen)
        screen = person.app.screen
        assert isinstance(screen, TicketsScreen)
        screen.type("number-217")
        assert screen.highlighted is not None
        assert screen.highlighted.key == "/plan feature-number-217"


def test_the_age_of_a_ticket_is_shown_in_one_unit() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    ages = {
        -5: "just now",
        59: "just now",
        60: "1 min ago",
        7200: "2 h ago",
        90_000: "1 d ago",
    }
    assert {s: ago(now - timedelta(seconds=s), now) for s in ages} == ages
