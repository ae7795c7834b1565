"""`/status SLUG` for a ticket that has no plan yet: what its spec needs, and what comes
next.
"""

import json

import pytest

from cdd_agent.cli.main import main
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events.ticket_events import PlanOpened, SpecOpened
from cdd_agent.tickets.spec import TicketType
from cdd_agent.wording.describe import describe
from tests.support.listening import collect
from tests.support.projects import SLUG, SPEC, Sandbox, Step
from tests.support.tables import each_row


async def spec_opened(sandbox: Sandbox, slug: str) -> SpecOpened:
    (event,) = await collect(handle(sandbox.session(), f"/status {slug}"))
    assert isinstance(event, SpecOpened)
    return event


def missing(opened: SpecOpened) -> list[str]:
    return [line.partition(":")[0] for line in opened.missing]


async def status(sandbox: Sandbox, slug: str) -> list[str]:
    return [text for text, _ in describe(await spec_opened(sandbox, slug))]


def spec(sandbox: Sandbox, text: str) -> None:
    sandbox.ticket.mkdir(parents=True)
    (sandbox.ticket / "spec.yaml").write_text(text)


@each_row("kind", TicketType)
async def test_a_new_ticket_misses_all_but_its_title(
    sandbox: Sandbox, kind: str
) -> None:
    slug = sandbox.project.tickets.create(kind, "a").slug
    opened = await spec_opened(sandbox, slug)
    assert (opened.ticket_slug, opened.title, opened.path) == (
        slug,
        "A",
        f"tickets/{slug}/spec.yaml",
    )
    assert missing(opened) == ["description", "acceptance_criteria"]
    assert f"`/socrates {slug}`" in (await status(sandbox, slug))[-1]


async def test_written_fields_are_not_missing(sandbox: Sandbox) -> None:
    spec(sandbox, "title: Say words\ndescription: The files say the right words.\n")
    opened = await spec_opened(sandbox, SLUG)
    assert opened.title == "Say words"
    assert missing(opened) == ["acceptance_criteria"]
    assert f"`/socrates {SLUG}`" in (await status(sandbox, SLUG))[-1]


async def test_an_empty_file_misses_everything(sandbox: Sandbox) -> None:
    spec(sandbox, "# nothing\n")
    assert len(await status(sandbox, SLUG)) == 6


async def test_a_complete_spec_needs_a_plan_next(sandbox: Sandbox) -> None:
    spec(sandbox, SPEC)
    opened = await spec_opened(sandbox, SLUG)
    assert missing(opened) == []
    assert f"`/plan {SLUG}`" in (await status(sandbox, SLUG))[-1]


async def test_an_unreadable_spec_is_an_error_with_its_line(
    sandbox: Sandbox,
) -> None:
    spec(sandbox, "title: x\ntype: story\n")
    with pytest.raises(
        BadInput, match=rf"tickets/{SLUG}/spec.yaml:2: unknown type 'story'"
    ):
        await status(sandbox, SLUG)


async def test_status_shows_the_steps_of_a_plan(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    (event,) = await collect(handle(sandbox.session(), f"/status {SLUG}"))
    assert isinstance(event, PlanOpened)


def test_scripts_get_the_same_as_json(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    spec(sandbox, "title: Say words\n")
    assert main(["status", SLUG, "--json", "-C", str(sandbox.root)]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert (seen["event"], seen["title"], len(seen["missing"])) == (
        "spec_opened",
        "Say words",
        2,
    )
