"""Completions of a line, and what is said of them."""

import asyncio

import pytest

from cdd_agent.commands.completing import complete
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.text.completion import CompletionKind
from cdd_agent.tui.themes import THEME_NAMES
from tests.commands.completions import completions
from tests.support.projects import SLUG, SPEC, Sandbox, Step
from tests.support.tables import each_row


@pytest.fixture(autouse=True)
def _without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for key in provider.keys:
            monkeypatch.delenv(key, raising=False)


@pytest.fixture
def tickets(sandbox: Sandbox) -> Sandbox:
    sandbox.write(Step("a.txt"))
    for slug, spec in (
        ("bug-auth-token", SPEC.replace("Say words", '"Tokens: they expire"')),
        ("feature-user-auth", SPEC.replace("title: Say words", "description: x")),
    ):
        (sandbox.root / "tickets" / slug).mkdir()
        (sandbox.root / "tickets" / slug / "spec.yaml").write_text(spec)
    return sandbox


def helps(sandbox: Sandbox, line: str) -> dict[str, str]:
    return {offer.shown: offer.help for offer in complete(sandbox.session(), line)}


def test_a_command_is_offered_with_its_arguments_and_what_it_does(
    sandbox: Sandbox,
) -> None:
    offered = helps(sandbox, "/")
    assert offered["/exec SLUG"].startswith("Carry out a ticket's plan")
    assert all(offered.values())


@each_row(
    ("typed", "offered"),
    [
        ("/ex", ["/exec", "/exit"]),
        ("/exec", ["/exec"]),
        ("/STATUS", ["/status"]),
        ("/tus", ["/status"]),
        ("/cst", ["/cost", "/conversation"]),
    ],
)
def test_commands_are_found_by_parts_and_by_letters(
    sandbox: Sandbox, typed: str, offered: list[str]
) -> None:
    assert completions(sandbox.session(), typed) == offered


def test_a_command_says_whether_it_needs_an_argument(sandbox: Sandbox) -> None:
    offers = complete(sandbox.session(), "/")
    kinds = {offer.line: offer.kind for offer in offers}
    for name in ("/exec", "/plan", "/new"):
        assert kinds[name] is CompletionKind.OPENING
    for name in ("/list", "/exit", "/status", "/model"):
        assert kinds[name] is CompletionKind.COMMAND


def test_before_the_session_is_open_commands_flags_and_fixed_words_are_completed() -> (
    None
):
    for line, completed in (
        ("/exe", ["/exec"]),
        ("/exec x --wor", ["/exec x --worktree"]),
        ("/list bu", ["/list bug"]),
        ("/exec ", []),
        ("/model ", []),
        ("/context +", []),
        ("see @a", []),
    ):
        assert [offer.line for offer in complete(None, line)] == completed, line


def test_tickets_are_offered_with_title_and_state(tickets: Sandbox) -> None:
    assert helps(tickets, "/exec ") == {
        "bug-auth-token": "Tokens: they expire · no plan yet",
        "feature-user-auth": "no plan yet",
        SLUG: "Say words · planned",
    }


def test_tickets_are_found_by_letters(tickets: Sandbox) -> None:
    assert completions(tickets.session(), "/plan fua") == ["/plan feature-user-auth"]


def test_words_are_offered_with_their_kind(sandbox: Sandbox) -> None:
    assert helps(sandbox, "/list bu") == {"bug": "type"}
    assert helps(sandbox, "/list bug fa") == {"failed": "state"}


def test_a_switch_is_completed_once_it_is_begun(tickets: Sandbox) -> None:
    assert completions(tickets.session(), f"/exec {SLUG} ") == []
    assert completions(tickets.session(), f"/exec {SLUG} --s") == [
        f"/exec {SLUG} --start-over"
    ]
    assert completions(tickets.session(), f"/exec {SLUG} --start-over") == []
    for typed, completed in (
        (f"/exec {SLUG} --w", [f"/exec {SLUG} --worktree"]),
        ("/exec --w", ["/exec --worktree"]),
        (f"/exec {SLUG} --worktree --s", [f"/exec {SLUG} --worktree --start-over"]),
        (f"/exec {SLUG} --worktree --w", []),
        ("/trust --g", ["/trust --give"]),
        ("/model a/b --", ["/model a/b --save"]),
        ("/exec --nothing", []),
    ):
        assert completions(tickets.session(), typed) == completed, typed


async def test_local_models_are_offered_before_those_of_providers_with_a_key(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sandbox.session()

    async def find_servers() -> tuple[LocalServer, ...]:
        return (
            LocalServer("Ollama", "http://127.0.0.1:11434/v1", ("qwen3-coder:30b",)),
        )

    session.find_servers = find_servers
    await session.look_for_models()
    assert completions(session, "/model sonnet-4-5") == []

    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    offered = {
        offer.line: offer.help for offer in complete(session, "/model sonnet-4-5")
    }
    assert "per million" in offered["/model anthropic/claude-sonnet-4-5"]
    assert "/model planner anthropic/claude-sonnet-4-5" in completions(
        session, "/model planner clsonn45"
    )
    assert completions(session, "/model ") == ["/model qwen3-coder:30b"]
    assert completions(session, "/model qw") == ["/model qwen3-coder:30b"]


async def test_files_are_offered_as_soon_as_they_are_known(sandbox: Sandbox) -> None:
    (sandbox.root / "src" / "deep").mkdir(parents=True)
    (sandbox.root / "src" / "deep" / "wanted.py").write_text("x" * 12_000)
    session, known = sandbox.session(), asyncio.Event()
    assert complete(session, "see @wan", known.set) == []
    await asyncio.wait_for(known.wait(), 20)
    (offer,) = complete(session, "see @wan", pytest.fail)
    path = "@src/deep/wanted.py"
    assert offer[:3] == (f"see {path}", path, "12 kB")


def test_every_theme_is_offered(sandbox: Sandbox) -> None:
    offered = completions(sandbox.session(), "/theme ")
    assert offered == [f"/theme {name}" for name in THEME_NAMES]
    assert completions(sandbox.session(), "/theme nor") == ["/theme nord"]


def test_help_on_the_keys_is_offered(sandbox: Sandbox) -> None:
    assert completions(sandbox.session(), "/help k") == ["/help keys"]


async def test_files_to_pin_and_exclude_are_offered_as_they_are_typed(
    sandbox: Sandbox,
) -> None:
    for path in (
        "src/deep/wanted.py",
        "src/my notes/wanted too.py",
        "src/it's wanted.py",
        ".env",
    ):
        (sandbox.root / path).parent.mkdir(parents=True, exist_ok=True)
        (sandbox.root / path).write_text("x")
    session = sandbox.session()
    session.files.build()

    assert completions(session, "/context +src/") == [
        "/context +src/deep/",
        "/context '+src/my notes/",
    ]
    assert completions(session, "/context -sr") == ["/context -src/"]
    assert completions(session, "/context +a.txt -wanted.p") == [
        "/context +a.txt -src/deep/wanted.py"
    ]
    assert completions(session, "/context '+src/my notes/w") == [
        "/context '+src/my notes/wanted too.py'"
    ]
    assert completions(session, "/context +src/deep/wanted.py") == []
    assert completions(session, "/context where is a-sr") == []
    assert completions(session, "/context +../") == []
    assert completions(session, "/context +.en") == []
