"""Slash commands, without a screen."""

import re

import pytest
from msgspec.structs import replace

from cdd_agent.commands.registry import commands, handle, read_line
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.shell_events import Cleared, ExitRequested, ScreenAsked
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened, TicketsListed
from cdd_agent.faces.printer import TextPrinter
from cdd_agent.llm.port import Done, OnEvent, Price, Request, Usage
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.wrapper import ModelWrapper
from cdd_agent.session.session import Session
from tests.commands.completions import completions
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, notice, noticed, says
from tests.support.tables import each_row


async def say(session: Session, line: str) -> list[Event]:
    return await collect(handle(session, line))


async def test_new_creates_a_ticket_that_list_shows(sandbox: Sandbox) -> None:
    session = sandbox.session()
    await say(session, '/new bug "Login fails"')
    (listed,) = await say(session, "/list")
    assert isinstance(listed, TicketsListed)
    assert [(ticket.slug, ticket.state) for ticket in listed.tickets] == [
        ("bug-login-fails", "empty")
    ]
    assert (sandbox.root / "tickets/bug-login-fails/spec.yaml").is_file()


async def test_list_shows_each_ticket_s_progress_even_with_a_broken_one(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt"))
    broken = sandbox.root / "tickets" / "bug-broken"
    broken.mkdir()
    (broken / "plan.md").write_text("")
    session = sandbox.replies(says("a.txt", "good")).session()
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    (listed,) = await say(session, "/list")
    assert isinstance(listed, TicketsListed)
    rows = {
        ticket.slug: (ticket.state, ticket.done, ticket.total)
        for ticket in listed.tickets
    }
    assert rows == {"bug-broken": ("unreadable", 0, 0), SLUG: ("in progress", 1, 2)}
    session.leave()


async def test_status_names_one_ticket_or_lists_all(sandbox: Sandbox) -> None:
    session = sandbox.write(Step("a.txt")).session()
    assert isinstance((await say(session, "/status feature-w"))[0], PlanOpened)
    assert isinstance((await say(session, "/status"))[0], TicketsListed)


async def test_cost_shows_the_usage_of_the_run_and_the_session(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"budget": {"tokens": 50_000}}
    sandbox.write(Step("a.txt", "none"), Step("b.txt", "none")).replies(
        says("a.txt", "good")
    )
    session = sandbox.session()
    assert re.search(
        r"\b0 tokens", notice(await say(session, "/cost"), NoticeKind.COST)
    )
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    run, now = await say(session, "/cost")
    assert isinstance(run, Notice)
    assert run.text.startswith(f"{SLUG}: ")
    assert re.search(r"\b1 model call\b.*\b50,000\b", run.text)
    assert isinstance(now, Notice)
    assert (
        re.findall(r"\d+ tokens", now.text) == re.findall(r"\d+ tokens", run.text)[:1]
    )
    session.leave()

    run, now = await say(sandbox.session(), "/cost feature-w")
    assert isinstance(run, Notice)
    assert re.search(r"\b1 model call\b", run.text)
    assert re.search(r"\b0 tokens", notice([now], NoticeKind.COST))


class Caching(ModelWrapper):
    """A provider that has most of each request in a cache."""

    def __init__(self, reply: str, price: Price | None) -> None:
        super().__init__(ScriptedModel([reply]))
        self._price = price

    @property
    def price(self) -> Price | None:
        return self._price

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        usage = Usage(
            5_000, 100, cached_tokens=4_500, cache_write_tokens=250, thinking_tokens=50
        )
        return replace(await self.inner.reply(request, on_event), usage=usage)


@each_row(
    ("price", "says_of_run"),
    [
        (
            Price(1e-5, 1e-4, 1e-6, 2e-5),
            (
                "5,100 tokens (4,500 cached), $0.0220, in 1 model call; the cache"
                " saved $0.0380"
            ),
        ),
        (
            None,
            (
                "5,100 tokens (4,500 cached), in 1 model call; 4,500 tokens came from"
                " the cache"
            ),
        ),
    ],
)
async def test_cost_shows_the_cache_savings(
    sandbox: Sandbox,
    price: Price | None,
    says_of_run: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sandbox.write(Step("a.txt", "none"))
    sandbox.real_model = Caching(says("a.txt", "good"), price)
    session = sandbox.session()
    await say(session, f"/exec {SLUG}")
    events = await say(session, "c")
    run, now = await say(session, "/cost")

    assert notice([run], NoticeKind.COST) == f"{SLUG}: {says_of_run}"
    figures = re.compile(r"\$?[\d,.]*\d")
    assert figures.findall(now.text) == [
        figure for figure in figures.findall(says_of_run) if figure != "1"
    ]
    printer = TextPrinter()
    for event in events:
        printer.show(event)
    assert "4,500" in capsys.readouterr().out
    session.leave()


@each_row(
    ("agent", "word"),
    [
        ("socrates", "`summary`"),
        ("planner", "`regenerate`"),
        ("Executor", "`retry`, `r`"),
        ("chat", "`!git status`"),
    ],
)
async def test_help_has_the_words_of_each_agent(
    sandbox: Sandbox, agent: str, word: str
) -> None:
    (all_of_it,) = await say(sandbox.session(), "/help")
    assert isinstance(all_of_it, ScreenAsked)
    assert f"`/help {agent.lower()}`" in all_of_it.instead

    (shown,) = await say(sandbox.session(), f"/help {agent}")
    assert isinstance(shown, ScreenAsked)
    assert (shown.screen, shown.choice) == ("help", agent.lower())
    assert word in shown.instead


async def test_exec_without_a_plan_is_an_error(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    (sandbox.ticket / "plan.md").unlink()
    with pytest.raises(BadInput, match=r"plan\.md") as caught:
        await say(sandbox.session(), f"/exec {SLUG}")
    assert f"/plan {SLUG}" in caught.value.hint


async def test_help_lists_every_command(sandbox: Sandbox) -> None:
    (answer,) = await say(sandbox.session(), "/help")
    assert isinstance(answer, ScreenAsked)
    assert all(f"/{name}" in answer.instead for name in commands())


async def test_help_on_keys_depends_on_the_interface(sandbox: Sandbox) -> None:
    (answer,) = await say(sandbox.session(), "/help keys")
    assert isinstance(answer, ScreenAsked)
    assert (answer.screen, answer.choice) == ("help", "keys")
    assert "Ctrl+D" in answer.instead
    assert not any(
        key in answer.instead for key in ("Ctrl+F", "Ctrl+R", "F2", "Escape")
    )


async def test_clear_and_exit(sandbox: Sandbox) -> None:
    session = sandbox.session()
    assert await say(session, "/clear") == [Cleared()]
    assert await say(session, "/exit") == [ExitRequested()]


@each_row("word", ["help", "?", ":h", "/help"])
async def test_words_for_help_show_the_help_in_chat(
    sandbox: Sandbox, word: str
) -> None:
    (shown,) = await say(sandbox.session(), word)
    assert isinstance(shown, ScreenAsked)
    assert shown.screen == "help"


async def test_chat_closes_the_agent_and_exit_leaves_the_shell(
    sandbox: Sandbox,
) -> None:
    session = sandbox.write(Step("a.txt")).session()
    await say(session, f"/exec {SLUG}")
    events = await say(session, "/chat")
    assert ExitRequested() not in events
    left = notice(events, NoticeKind.AGENT_LEFT)
    assert f"`/exec {SLUG}`" in left
    await say(session, f"/exec {SLUG}")
    assert await say(session, "/exit") == [ExitRequested()]
    session.leave()


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("/exce x", "no command /exce", "/exec"),
        ("/", "no command /", "/help"),
        ("/doctor", "no command /doctor", "`!cdd doctor`"),
        ("/help nobody", "no help on 'nobody'", "`/help`"),
        ("/exec", "Usage: /exec SLUG", "Example: `/exec feature-user-auth`"),
        ("/exec a --again", "/exec has no flag '--again'", "Usage: /exec SLUG"),
        ("/exec a b c", "Usage: /exec SLUG", "quotation marks"),
        ("/settings theme", "Usage: /settings", "`/settings` takes no arguments."),
        ("/undo 1", "Which ticket?", ""),
        ("/new feature", "Usage: /new TYPE [KIND] NAME", ""),
        ("/new feature two words", "Usage: /new TYPE NAME", "quotation marks"),
        (
            "/new documentation x",
            "Usage: /new documentation guide|feature NAME",
            "quotation marks",
        ),
        ('/new feature "x', "quotation", "Close"),
        ("/new story x", "no ticket type", "feature"),
        ("/exec feature-nothing", "no ticket", ""),
    ],
)
async def test_a_wrong_line_is_an_error_with_a_correction(
    sandbox: Sandbox, line: str, message: str, hint: str
) -> None:
    with pytest.raises(BadInput) as caught:
        await say(sandbox.session(), line)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_the_reason_of_an_ambiguous_ticket_fits_60_columns(sandbox: Sandbox) -> None:
    for number in range(12):
        folder = sandbox.root / "tickets" / f"feature-a-rather-long-name-{number}"
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text("title: x\n")
    hint = read_line(sandbox.session(), "/exec rather").hint
    assert hint == "Enter does nothing · 12 tickets match; type more of the name"
    assert len(hint) <= 60


def test_a_narrow_window_drops_the_correction_before_the_reason(
    sandbox: Sandbox,
) -> None:
    session = sandbox.session()
    for line, hint in (
        ("/exec x --c", "/exec has no flag '--c' · Usage: /exec SLUG [--start-over]"),
        ("/doctor", "There is no command /doctor · Run it in a terminal"),
        ("/exec a b c", "Usage: /exec SLUG [--start-over]"),
    ):
        shown = read_line(session, line).hint
        assert shown.startswith(f"Enter does nothing · {hint}"), shown


def test_completion_offers_commands_then_slugs(sandbox: Sandbox) -> None:
    session = sandbox.write(Step("a.txt")).session()
    assert completions(session, "/e") == ["/exec", "/exit"]
    assert completions(session, "/exec ") == [f"/exec {SLUG}"]
    assert completions(session, "/exec words") == [f"/exec {SLUG}"]
    assert completions(session, f"/exec {SLUG}") == []
    assert completions(session, "/new fe") == ["/new feature"]
    for typed, completed in (
        ("/list bug fa", ["/list bug failed"]),
        ("/list failed bu", ["/list failed bug"]),
        ("/new feature fe", []),
        ("/list bug fe", []),
        ("/list nothing fa", []),
        ("/list bug failed ", []),
    ):
        assert completions(session, typed) == completed, typed
    assert completions(session, "/list bu") == ["/list bug"]
    assert completions(session, "hello") == []
    assert completions(session, "/nothing x") == []


async def test_context_shows_the_tree_and_the_named_files(
    sandbox: Sandbox,
) -> None:
    sandbox.write()
    (sandbox.root / "a b.txt").write_text("words\n")
    (sandbox.root / "c.txt").write_text("more\n")
    events = await collect(
        handle(sandbox.session(), "/context 'a b.txt' c.txt none.txt")
    )
    assert isinstance(events[0], Answer)
    assert "spec.yaml" in events[0].text
    assert "words" in events[0].text
    assert "more" in events[0].text
    assert "none.txt" in events[0].text


async def test_resume_continues_the_last_run(sandbox: Sandbox) -> None:
    session = (
        sandbox.write(Step("a.txt", check("a.txt")))
        .replies(says("a.txt", "bad"))
        .session()
    )
    assert noticed(await say(session, "/resume")) == [NoticeKind.NOT_DONE]
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    session.leave()
    await say(session, "/resume")
    assert session.agent is not None
    assert session.agent.ticket_slug == SLUG
    session.leave()


@each_row("word", ["undo", "redo", "diff"])
async def test_a_wrong_step_number_is_refused(sandbox: Sandbox, word: str) -> None:
    session = (
        sandbox.write(Step("a.txt", check("a.txt")))
        .replies(says("a.txt", "good"))
        .session()
    )
    await say(session, f"/exec {SLUG}")
    await say(session, "c")

    for step in ("abc", "-1", "two", "1 x", "x 1"):
        with pytest.raises(BadInput):
            await say(session, f"/{word} {SLUG} {step}")
        assert sandbox.text("a.txt") == "good\n", step
    if word == "redo":  # it takes no step
        return
    for label in ("2", "2x", "1.5"):
        assert noticed(await say(session, f"/{word} {SLUG} {label}")) == [
            NoticeKind.NOT_DONE
        ]
        assert sandbox.text("a.txt") == "good\n", label


async def test_undo_without_a_slug_is_for_the_latest_ticket(
    sandbox: Sandbox,
) -> None:
    session = (
        sandbox.write(Step("a.txt", check("a.txt")))
        .replies(says("a.txt", "good"))
        .session()
    )
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    assert session.agent is None  # all is done, and it is back in chat
    assert "+good" in str(await say(session, "/diff"))
    assert session.agent is None
    await say(session, "/undo 1")
    assert session.agent is None
    assert not (sandbox.root / "a.txt").exists()
    await say(session, "/redo")
    assert sandbox.text("a.txt") == "good\n"


async def test_a_command_finds_its_ticket_by_any_part_of_the_slug(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    part = SLUG.partition("-")[2]
    (opened, *_) = await say(sandbox.session(), f"/status {part}")
    assert isinstance(opened, PlanOpened)
    assert opened.ticket_slug == SLUG


@pytest.mark.parametrize(
    "line", ["/undo 1", "/diff 1", "/criteria", "/verify", "/cost"]
)
async def test_a_command_without_a_ticket_never_turns_to_another_one(
    sandbox: Sandbox, line: str
) -> None:
    session = sandbox.session()
    await say(session, "/new bug login")
    folder = sandbox.root / "tickets" / "bug-login"
    folder.rename(folder.with_name("bug-login-slow"))
    with pytest.raises(BadInput, match="There is no ticket"):
        await say(session, line)
