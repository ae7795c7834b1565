"""The rows of the first screen: by what there is, and which is highlighted first."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.agents.store import LastActive
from cdd_agent.commands.model_setup import (
    NO_MODEL,
    SUGGESTED,
    AddressSource,
    DemoSource,
    HostedSource,
    LocalSource,
    MoreSource,
    Source,
    describe_model,
    find_model_problem,
    find_sources,
    how_to_set_up,
    model_line,
)
from cdd_agent.commands.registry import handle
from cdd_agent.commands.welcome import find_beginning
from cdd_agent.commands.welcome_rows import Beginning, RowAction
from cdd_agent.engine.lock import TicketLock
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.session.open_project import open_project
from cdd_agent.settings.config import Config
from tests.llm.model_lists import LIST, server
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, says

CONTINUE, MODEL, NEW, TICKETS, DEMO, HELP = RowAction
Prepare = Callable[[Sandbox], None]


def nothing(sandbox: Sandbox) -> None:
    """An empty folder."""


def empty_spec(sandbox: Sandbox) -> None:
    sandbox.ticket.mkdir(parents=True)
    (sandbox.ticket / "spec.yaml").write_text("")


def spec(sandbox: Sandbox) -> None:
    planned(sandbox)
    (sandbox.ticket / "plan.md").unlink()


def planned(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))


STATES: tuple[tuple[Prepare, str, list[RowAction], RowAction, str, str], ...] = (
    (nothing, NO_MODEL, [MODEL, NEW, DEMO, HELP], MODEL, "", ""),
    (nothing, "", [NEW, DEMO, HELP], NEW, "", ""),
    (
        planned,
        "no key",
        [CONTINUE, MODEL, NEW, TICKETS, DEMO, HELP],
        MODEL,
        "planned, 0 of 2 steps done",
        f"/exec {SLUG}",
    ),
    (
        planned,
        "",
        [CONTINUE, NEW, TICKETS, HELP],
        NEW,
        "planned, 0 of 2 steps done",
        f"/exec {SLUG}",
    ),
    (spec, "", [CONTINUE, NEW, TICKETS, HELP], NEW, "spec", f"/plan {SLUG}"),
    (empty_spec, "", [CONTINUE, NEW, TICKETS, HELP], NEW, "empty", f"/socrates {SLUG}"),
)


async def test_the_rows_by_what_there_is(sandbox: Sandbox) -> None:
    wrong = []
    for number, (prepare, problem, rows, first, progress, line) in enumerate(STATES):
        root = sandbox.root / str(number)
        root.mkdir()
        there = sandbox.at(root)
        prepare(there)
        found = find_beginning(there.project, None, problem)
        got = (
            [row.action for row in found.rows],
            found.rows[found.first].action,
            *continued(found),
        )
        if got != (rows, first, progress, line, False) and line:
            wrong.append((prepare.__name__, problem, got))
        if got[:2] != (rows, first):
            wrong.append((prepare.__name__, problem, got))
    assert wrong == []


def continued(beginning: Beginning) -> tuple[str, str, bool]:
    for row in beginning.rows:
        if row.action is CONTINUE:
            return row.detail, row.line, row.is_sent
    return "", "", False


async def test_an_interrupted_run_comes_first_with_how_far_it_is(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"model": "script:none.yaml"}
    planned(sandbox)
    sandbox.replies(says("a.txt", "good"), says("b.txt", "bad"))
    for lines, progress in (
        (["c"], "1 of 2 steps done"),
        (["c"], "step 2 of 2 failed"),
        (["skip"], ""),
    ):
        session = sandbox.session()
        for line in (f"/exec {SLUG}", *lines):
            await collect(handle(session, line))
        session.leave()
        beginning = find_beginning(sandbox.project, session.find_unfinished(), "")
        line = f"/resume {SLUG}" if progress else ""
        assert continued(beginning) == (progress, line, bool(progress))
        first = CONTINUE if progress else NEW
        assert beginning.rows[beginning.first].action is first


def damaged_tree(sandbox: Sandbox) -> None:
    planned(sandbox)
    record = sandbox.project.tickets.find(SLUG).record
    record.mkdir(parents=True)
    (record / "tree.json").write_text("{")


def damaged_state(sandbox: Sandbox) -> None:
    planned(sandbox)
    (sandbox.ticket / "execution-state.json").write_text("[")


def tickets_in_a_file(sandbox: Sandbox) -> None:
    (sandbox.root / "tickets").write_text("")


@pytest.mark.parametrize("damage", [damaged_tree, damaged_state, tickets_in_a_file])
def test_the_rows_are_there_whatever_is_damaged(
    sandbox: Sandbox, damage: Prepare
) -> None:
    damage(sandbox)
    beginning = find_beginning(sandbox.project, None, NO_MODEL)
    actions = {row.action for row in beginning.rows}
    assert actions >= {MODEL, NEW, DEMO, HELP}
    assert CONTINUE not in actions
    assert ("cannot be listed" in beginning.place) is (damage is tickets_in_a_file)


def test_a_ticket_that_another_process_has_is_not_called_interrupted(
    sandbox: Sandbox,
) -> None:
    planned(sandbox)
    record = sandbox.project.tickets.find(SLUG).record
    record.mkdir(parents=True)
    lock = TicketLock.take(record, SLUG, "2026-01-01T00:00:00+00:00")
    lock.holder.write_text('{"pid": 1}')
    left = LastActive(agent="planner", ticket=SLUG)
    beginning = find_beginning(sandbox.project, left, "")
    lock.release()
    detail, _, is_sent = continued(beginning)
    assert "another process" in detail
    assert not is_sent
    assert beginning.rows[beginning.first].action is NEW


@pytest.mark.parametrize(
    ("agent", "progress"), [("socrates", "writing the spec"), ("planner", "planning")]
)
def test_work_of_another_agent_is_continued(
    sandbox: Sandbox, agent: str, progress: str
) -> None:
    planned(sandbox)
    left = LastActive(agent=agent, ticket=SLUG)
    beginning = find_beginning(sandbox.project, left, "")
    assert continued(beginning) == (progress, f"/resume {SLUG}", True)
    assert beginning.first == 0


def test_a_folder_that_is_no_project_is_named(sandbox: Sandbox) -> None:
    place = find_beginning(sandbox.project, None, "").place
    assert "isn't a cdd project yet" in place
    assert "/init" in place
    (sandbox.root / ".cdd").mkdir()
    assert find_beginning(sandbox.project, None, "").place == ""


def test_a_folder_that_cannot_be_a_project_does_not_offer_init() -> None:
    home = Path.home()
    place = find_beginning(open_project(home, {}), None, "").place
    assert "home folder" in place
    assert "/init" not in place


async def test_a_model_that_cannot_be_asked_is_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "")
    with server({"/v1/models": (200, LIST)}) as (host, _):
        living = Config(model="openai/one", api_base=f"http://{host}/v1")
        assert await find_model_problem(living) == ""
    for config, problem in (
        (Config(), NO_MODEL),
        (Config(model="mistral/any"), "MISTRAL_API_KEY is not set"),
        (living, "No server answers"),
        (Config(model="script:x.yaml"), ""),
        (Config(model="bedrock/any"), ""),
    ):
        found = await find_model_problem(config)
        assert bool(found) == bool(problem), config
        assert problem in found
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-x")
    assert await find_model_problem(Config(model="mistral/any")) == ""


def test_sources_stand_in_their_sections_and_no_key_is_shown() -> None:
    offers = [
        OfferedModel("my model", "LM Studio", "http://127.0.0.1:1234/v1"),
        OfferedModel("a", "Ollama", "http://127.0.0.1:11434"),
        OfferedModel("b", "Ollama", "http://127.0.0.1:11434"),
    ]
    environment = {
        "CEREBRAS_API_KEY": "csk-secret",
        "GOOGLE_API_KEY": "secret",
        "XAI_API_KEY": " ",
    }
    rows = find_sources(offers, environment)
    assert [kind(row.source) for row in rows] == [
        "1 here",
        "2 here",
        "gemini with GOOGLE_API_KEY",
        "cerebras with CEREBRAS_API_KEY",
        "anthropic",
        "openai",
        "openrouter",
        "mistral",
        "deepseek",
        "xai",
        "more",
        "address",
        "demo",
    ]
    assert "secret" not in str(rows)
    assert len({row.title for row in rows}) == len(rows)
    more = next(row.source for row in rows if isinstance(row.source, MoreSource))
    everything = {
        row.source.provider for row in rows if isinstance(row.source, HostedSource)
    }
    everything |= {source.provider for source in more.providers}
    assert everything == {name for name, row in PROVIDERS.items() if row.needs_key}


def kind(source: Source) -> str:
    match source:
        case LocalSource(models=models):
            return f"{len(models)} here"
        case HostedSource(provider=provider, key=None):
            return provider
        case HostedSource(provider=provider, key=key):
            assert key is not None
            return f"{provider} with {key.variable}"
        case MoreSource():
            return "more"
        case AddressSource():
            return "address"
        case DemoSource():
            return "demo"


def test_each_suggested_model_is_known_and_its_provider_needs_a_key() -> None:
    for provider, model in SUGGESTED.items():
        assert PROVIDERS[provider].needs_key, provider
        if provider != "openrouter":  # no table has its models
            facts = known_model(f"{provider}/{model}")
            assert facts.window, provider
            assert facts.calls_tools, provider
        assert "suggested" in describe_model(provider, f"{provider}/{model}")


def test_the_line_that_sets_a_model_is_one_command() -> None:
    assert model_line("openai/my model", "http://h/v1") == (
        "/model 'openai/my model' http://h/v1 --save"
    )
    assert model_line("mistral/x") == "/model mistral/x --save"


def test_both_faces_without_a_screen_begin_with_the_same_words() -> None:
    shell, terminal = how_to_set_up(in_shell=True), how_to_set_up(in_shell=False)
    assert shell.splitlines()[0] == terminal.splitlines()[0]
    assert "/model" in shell
    assert ".cdd/config.yaml" in terminal
