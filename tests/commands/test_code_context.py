"""`/context`: the last prompt's parts, code that words are about, files that a person
pins or leaves out.
"""

import pytest

from cdd_agent.commands.code_context import is_words
from cdd_agent.commands.registry import handle
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Answer, NoticeKind
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, notice, says
from tests.support.tables import each_row
from tests.support.typed_lines import command_hint

LIMITS = "class RateLimiter:\n    def allows(self, client):\n        return True\n"


@pytest.fixture
def service(sandbox: Sandbox) -> Sandbox:
    for path, text in {
        "src/limits.py": LIMITS,
        "src/mail.py": "def send():\n    pass\n",
        "docs/a.md": "# A\n",
    }.items():
        (sandbox.root / path).parent.mkdir(exist_ok=True)
        (sandbox.root / path).write_text(text)
    return sandbox.write(
        Step("a.txt", "none"),
        Step(None, "none", description="The rate limiter allows too much."),
    )


async def answer(sandbox: Sandbox, *lines: str) -> str:
    """The last answer after these lines."""
    session = sandbox.session()
    events = [event for line in lines for event in await collect(handle(session, line))]
    session.leave()
    return [event.text for event in events if isinstance(event, Answer)][-1]


async def test_the_last_prompts_parts_are_listed_with_tokens(service: Sandbox) -> None:
    service.replies(says("a.txt", "good"), "Nothing to do.")
    told = await answer(service, f"/exec {SLUG}", "c", "c", "/context")
    rows = {
        row.split(" | ")[0].strip("| "): row
        for row in told.splitlines()
        if row.startswith("| ")
    }
    assert "step 2" in told
    assert rows.keys() >= {
        "how to reply",
        "the ticket and the plan",
        "the step",
        "src/limits.py",
    }
    assert int(rows["how to reply"].split(" | ")[1].replace(",", "")) > 500
    assert "limiter" in rows["src/limits.py"]


async def test_after_a_restart_context_shows_the_ticket_s_run(service: Sandbox) -> None:
    service.replies(says("a.txt", "good"))
    await answer(service, f"/exec {SLUG}", "c", "/context")
    assert "| the step |" in await answer(service, f"/exec {SLUG}", "/context")


async def test_context_shows_chat_or_before_any_prompt_the_project(
    service: Sandbox,
) -> None:
    service.replies("Hello.")
    told = await answer(service, "hello", "/context")
    assert "| the conversation |" in told
    assert "| the tools |" in told
    assert "## Environment" in await answer(service, "/context")


async def test_words_find_code(service: Sandbox) -> None:
    told = await answer(service, "/context where is the rate limit handled?")
    assert "- src/limits.py" in told
    assert LIMITS in told
    assert (
        "- src/mail.py"
        not in told.partition("## As a model")[0].partition("## Next")[0]
    )


async def test_files_are_pinned_and_excluded_for_the_run(service: Sandbox) -> None:
    session = service.replies(
        says("a.txt", "good"), says("a.txt", "good"), "Nothing to do."
    ).session()
    await collect(handle(session, f"/exec {SLUG}"))
    told = notice(
        await collect(handle(session, "/context +src/mail.py -src/limits.py -docs/")),
        NoticeKind.SENT,
    )
    assert "`src/mail.py`" in told.partition("Left out")[0]
    session.leave()
    session = service.session()
    for line in (f"/exec {SLUG}", "c", "c"):
        await collect(handle(session, line))
    assert "def send():" in service.prompt(0)
    assert LIMITS not in service.prompt(1)
    (shown,) = await collect(handle(session, "/context"))
    assert isinstance(shown, Answer)
    assert "| src/mail.py | " in shown.text
    assert "Pinned: `src/mail.py`. Left out: `docs`, `src/limits.py`." in shown.text
    told = notice(
        await collect(handle(session, "/context -src/mail.py +src/limits.py +docs")),
        NoticeKind.SENT,
    )
    assert "Nothing is pinned" in told
    session.leave()


@each_row(
    "line",
    [
        "/context +nothing.py",
        "/context +../x",
        "/context +src/mail.py words",
        "/context +/etc",
    ],
)
async def test_unusable_paths_are_not_pinned(service: Sandbox, line: str) -> None:
    session = service.session()
    await collect(handle(session, f"/exec {SLUG}"))
    with pytest.raises(CddError):
        await collect(handle(session, line))
    session.leave()


async def test_pinning_needs_a_ticket(service: Sandbox) -> None:
    with pytest.raises(CddError, match="ticket"):
        await collect(handle(service.session(), "/context +src/mail.py"))


def test_words_and_paths_are_distinguished(service: Sandbox) -> None:
    (service.root / "two words.txt").write_text("x")
    (service.root / "Makefile").write_text("x")
    for path in ("src", "Makefile", "two words.txt", "none.txt", "src/none", "."):
        assert not is_words(service.root, path)
    for words in ("rate limit", "parse_range", "where is a.txt read?"):
        assert is_words(service.root, words)
    assert command_hint("/context rate limit").startswith("Enter")
