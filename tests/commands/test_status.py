"""`/status SLUG` for a ticket that has no plan yet: what its spec needs, and what comes next."""

import json

import pytest

from cdd_agent.cli import main
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events import PlanOpened, SpecOpened
from cdd_agent.tickets.spec import TicketType
from cdd_agent.wording import described
from tests.listening import collect
from tests.projects import SLUG, SPEC, Sandbox, Step


async def status(sandbox: Sandbox, slug: str) -> list[str]:
    (event,) = await collect(handle(sandbox.session(), f"/status {slug}"))
    assert isinstance(event, SpecOpened)
    return [text for text, _ in described(event)]


def spec(sandbox: Sandbox, text: str) -> None:
    sandbox.ticket.mkdir(parents=True)
    (sandbox.ticket / "spec.yaml").write_text(text)


@pytest.mark.parametrize("kind", TicketType)
async def test_a_new_ticket_misses_everything(sandbox: Sandbox, kind: str) -> None:
    slug = sandbox.project.tickets.create(kind, "a").slug
    assert await status(sandbox, slug) == [
        slug,
        f"tickets/{slug}/spec.yaml is not complete. Missing:",
        "  title: one line that says what is wanted",
        "  description: what is wanted, and why",
        "  acceptance_criteria: at least one thing to check when the work is done",
        f"Next: write them in tickets/{slug}/spec.yaml, or let Socrates ask: `/socrates {slug}` in the shell.",
    ]


async def test_what_is_written_is_not_missing(sandbox: Sandbox) -> None:
    spec(sandbox, "title: Say words\ndescription: The files say the right words.\n")
    assert await status(sandbox, SLUG) == [
        f"{SLUG}: Say words",
        f"tickets/{SLUG}/spec.yaml is not complete. Missing:",
        "  acceptance_criteria: at least one thing to check when the work is done",
        f"Next: write it in tickets/{SLUG}/spec.yaml, or let Socrates ask: `/socrates {SLUG}` in the shell.",
    ]


async def test_an_empty_file_misses_everything(sandbox: Sandbox) -> None:
    spec(sandbox, "# nothing\n")
    assert len(await status(sandbox, SLUG)) == 6


async def test_after_a_complete_spec_comes_the_plan(sandbox: Sandbox) -> None:
    spec(sandbox, SPEC)
    assert await status(sandbox, SLUG) == [
        f"{SLUG}: Say words",
        "The spec is complete.",
        f"Next: the plan. `/plan {SLUG}` in the shell makes it with you.",
    ]


async def test_a_spec_that_cannot_be_read_is_told_with_its_place(sandbox: Sandbox) -> None:
    spec(sandbox, "title: x\ntype: story\n")
    with pytest.raises(BadInput, match=rf"tickets/{SLUG}/spec.yaml:2: the type 'story'"):
        await status(sandbox, SLUG)


async def test_with_a_plan_it_shows_the_steps(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    (event,) = await collect(handle(sandbox.session(), f"/status {SLUG}"))
    assert isinstance(event, PlanOpened)


def test_scripts_get_the_same_as_json(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    spec(sandbox, "title: Say words\n")
    assert main(["status", SLUG, "--json", "-C", str(sandbox.root)]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert (seen["event"], seen["title"], len(seen["missing"])) == ("spec_opened", "Say words", 2)
