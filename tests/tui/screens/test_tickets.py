"""The tickets' screen: what there is of each, and the way on with one."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from cdd_agent.tui.screens.tickets import TicketsScreen, ago
from tests.support.projects import SLUG, SPEC, Sandbox, Step, check, says
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


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("words", f"/exec {SLUG}"),
        ("rounding", "/plan bug-rounding"),
        ("empty", "/socrates spike-search"),
        ("unreadable", "/status feature-broken"),
    ],
)
async def test_enter_puts_what_is_next_for_a_ticket_into_the_prompt(
    sandbox: Sandbox, typed: str, line: str
) -> None:
    more(sandbox).write(Step("a.txt"))
    async with person_at(sandbox) as person:
        await tickets(person)
        assert "Tickets: 4 · 1 planned" in person.screen
        await person.press(*typed, "enter")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.prompt.text == line
        assert not person.is_waiting


async def test_it_shows_how_far_a_run_is_and_what_it_cost(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"))).replies(
        says("a.txt", "good")
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("continue")
        await person.say("exit")
        report = sandbox.root / ".cdd" / "runs" / SLUG / "report.json"
        report.write_text(json.dumps(json.loads(report.read_text()) | {"usd": 0.126}))
        await tickets(person)
        row = next(line for line in person.screen.splitlines() if SLUG in line)
        assert row.split() == [
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


async def test_a_new_ticket_is_begun_by_its_key_and_by_its_row(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    for keys in (("ctrl+n",), (*"new", "enter"), ("end", "enter")):
        async with person_at(sandbox) as person:
            await tickets(person)
            await person.press(*keys)
            await person.until(
                lambda person=person: person.app.screen is person.app.home
            )
            assert person.prompt.text == "/new "


async def test_where_there_is_no_ticket_enter_begins_one(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        screen = await tickets(person)
        assert "Tickets: 0" in person.screen
        assert screen.highlighted is not None
        await person.press("enter")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.prompt.text == "/new "


async def test_three_hundred_tickets_are_read_and_found_by_typing(
    sandbox: Sandbox,
) -> None:
    for number in range(300):
        folder = sandbox.root / "tickets" / f"feature-number-{number:03}"
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(SPEC)
    async with person_at(sandbox) as person:
        await person.press("f4")
        await person.until(lambda: isinstance(person.app.screen, TicketsScreen))
        await person.until(lambda: "Tickets: 300" in person.screen)
        await person.press(*"number-217")
        screen = person.app.screen
        assert isinstance(screen, TicketsScreen)
        assert screen.highlighted is not None
        assert screen.highlighted.key == "/plan feature-number-217"


async def test_the_command_opens_it_too(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        await person.say("/tickets")
        await person.until(lambda: isinstance(person.app.screen, TicketsScreen))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 min ago"),
        (7200, "2 h ago"),
        (90_000, "1 d ago"),
    ],
)
def test_when_is_told_in_one_unit(seconds: int, words: str) -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    assert ago(now - timedelta(seconds=seconds), now) == words
