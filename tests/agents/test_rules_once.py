"""Every prompt has a project's rules once, and no blanks of AGENTS.md. A step that
edits the file sees it unchanged, once.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from cdd_agent.commands.agents_file import agents_file
from cdd_agent.llm.port import Request
from cdd_agent.project.unfilled import COMMANDS, CONVENTIONS, DESCRIPTION, FOLDER
from tests.agents.asking import COMPLETE, asks
from tests.agents.test_planner import SPEC as FOUR_CRITERIA
from tests.agents.test_planner import changes
from tests.agents.test_planner import plan as planned
from tests.agents.test_words import say
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.tables import each_row

RULE = "Every word of the report is looked up in the pirate's own dictionary."
WORDS = (
    "Update the rules so that every word of the report in the pirate's own dictionary."
)
PLACES = (DESCRIPTION, *COMMANDS.values(), FOLDER, *CONVENTIONS)
Arrange = Callable[[Path, str], None]
Ask = Callable[[Sandbox], Awaitable[object]]


def new_file(sandbox: Sandbox) -> str:
    """AGENTS.md of `cdd init`, of which the user has filled in one rule."""
    text, _ = agents_file(sandbox.project)
    return text.replace(CONVENTIONS[0], RULE)


def alone(root: Path, text: str) -> None:
    (root / "AGENTS.md").write_text(text)


def linked(root: Path, text: str) -> None:
    alone(root, text)
    (root / "CLAUDE.md").symlink_to("AGENTS.md")


def linked_from_a_folder(root: Path, text: str) -> None:
    (root / "docs").mkdir()
    (root / "docs/rules.md").write_text(text)
    (root / "AGENTS.md").symlink_to("docs/rules.md")


def copied(root: Path, text: str) -> None:
    for name in ("AGENTS.md", "CLAUDE.md", "CDD.md"):
        (root / name).write_text(text)


def copied_with_other_line_ends(root: Path, text: str) -> None:
    (root / "AGENTS.md").write_bytes(text.replace("\n", "\r\n").encode())
    (root / "CLAUDE.md").write_text(f"\ufeff{text}\n\n", encoding="utf-8")


def by_a_name_of_claude_alone(root: Path, text: str) -> None:
    (root / "CLAUDE.md").write_text(text)


def beside_one_that_is_not_filled_in(root: Path, text: str) -> None:
    alone(root, text)
    (root / "CLAUDE.md").write_text(f"# Shop\n\n{DESCRIPTION}\n")


ARRANGED: tuple[Arrange, ...] = (
    alone,
    linked,
    linked_from_a_folder,
    copied,
    copied_with_other_line_ends,
    by_a_name_of_claude_alone,
    beside_one_that_is_not_filled_in,
)


def sent(request: Request) -> str:
    return "\n\n".join(message.content for message in request.messages)


def has_rules_once(text: str) -> None:
    plain = " ".join(text.split())
    assert text.count(RULE) == 1
    assert [place for place in (*PLACES, "`<folder>`") if place in plain] == []


async def chat(sandbox: Sandbox, line: str = "hello") -> None:
    await say(sandbox.write().replies("Aye.").session(), line)


async def chat_about_a_file(sandbox: Sandbox) -> None:
    await chat(sandbox, f"{WORDS} @AGENTS.md")


async def chat_about_its_copy(sandbox: Sandbox) -> None:
    await chat(sandbox, f"{WORDS} @CLAUDE.md @AGENTS.md")


async def chat_about_a_folder(sandbox: Sandbox) -> None:
    await chat(sandbox, f"{WORDS} @docs @docs/rules.md @.")


async def chat_on_and_on(sandbox: Sandbox) -> None:
    session = sandbox.write().replies("Aye.", "Aye aye.").session()
    await say(session, f"{WORDS} @AGENTS.md", "and now? @AGENTS.md")


async def socrates(sandbox: Sandbox) -> None:
    spec = FOUR_CRITERIA.replace("Say words", WORDS, 1)
    session = (
        sandbox.write(spec=spec).replies(*[asks("Who?", **COMPLETE)] * 2).session()
    )
    await say(session, f"/socrates {SLUG}", "", f"{WORDS} @AGENTS.md")
    session.leave()


async def planner(sandbox: Sandbox) -> None:
    spec = FOUR_CRITERIA.replace("Say words", WORDS, 1)
    session = sandbox.write(spec=spec).replies(planned(), changes()).session()
    (sandbox.ticket / "plan.md").unlink()
    await say(session, f"/plan {SLUG}", f"{WORDS} @AGENTS.md")
    session.leave()


async def step_of(sandbox: Sandbox, step: Step, *lines: str) -> None:
    session = sandbox.write(step).replies(says("a.txt", "good")).session()
    await say(session, f"/exec {SLUG}", *(lines or ("c",)))
    session.leave()


async def step(sandbox: Sandbox) -> None:
    await step_of(sandbox, Step("a.txt", check("a.txt"), description=WORDS))


async def step_without_files(sandbox: Sandbox) -> None:
    await step_of(sandbox, Step(None, check("a.txt"), description=WORDS))


async def step_that_names_the_file(sandbox: Sandbox) -> None:
    description = "Follow `AGENTS.md`, @CLAUDE.md and docs/rules.md."
    await step_of(sandbox, Step("a.txt", check("a.txt"), description=description))


async def step_whose_check_names_the_file(sandbox: Sandbox) -> None:
    await step_of(sandbox, Step("a.txt", f"{check('a.txt')} AGENTS.md CLAUDE.md"))


async def step_with_guidance(sandbox: Sandbox) -> None:
    line = "Follow the rules in @AGENTS.md and in CLAUDE.md"
    await step_of(sandbox, Step("a.txt", check("a.txt")), line)


async def step_with_pinned_files(sandbox: Sandbox) -> None:
    session = sandbox.write(Step("a.txt", check("a.txt"))).session()
    sandbox.replies(says("a.txt", "good"))
    await say(session, f"/exec {SLUG}")
    for name in ("AGENTS.md", "CLAUDE.md", "docs"):
        if (sandbox.root / name).exists():
            await say(session, f"/context +{name}")
    await say(session, "c")
    session.leave()


async def step_with_tools(sandbox: Sandbox) -> None:
    sandbox.flags = {"tool_calls": "on"}
    await step_of(sandbox, Step("a.txt", check("a.txt"), description=WORDS))


async def step_after_a_failure(sandbox: Sandbox) -> None:
    step = Step("a.txt", check("a.txt"), description="As in AGENTS.md.")
    session = sandbox.write(step).session()
    sandbox.replies(says("a.txt", "bad"), says("a.txt", "good"))
    await say(session, f"/exec {SLUG}", "c", "retry")
    session.leave()


ASKED: tuple[Ask, ...] = (
    chat,
    chat_about_a_file,
    chat_about_its_copy,
    chat_about_a_folder,
    chat_on_and_on,
    socrates,
    planner,
    step,
    step_without_files,
    step_that_names_the_file,
    step_whose_check_names_the_file,
    step_with_guidance,
    step_with_pinned_files,
    step_with_tools,
    step_after_a_failure,
)


@each_row("ask", ASKED, ids=lambda function: function.__name__)
@each_row("arrange", ARRANGED, ids=lambda function: function.__name__, is_sparse=True)
async def test_a_prompt_has_the_rules_once_and_no_place_that_waits(
    sandbox: Sandbox, ask: Ask, arrange: Arrange
) -> None:
    sandbox.in_process()
    arrange(sandbox.root, new_file(sandbox))
    await ask(sandbox)
    assert sandbox.model.requests
    for request in sandbox.model.requests:
        has_rules_once(sent(request))


@each_row(
    ("arrange", "declared"),
    [
        (alone, ("AGENTS.md",)),
        (linked, ("AGENTS.md",)),
        (linked, ("CLAUDE.md",)),
        (linked, ("AGENTS.md", "CLAUDE.md")),
        (linked_from_a_folder, ("docs/rules.md",)),
        (linked_from_a_folder, ("AGENTS.md",)),
        (linked, ("CLAUDE.md", "AGENTS.md")),
        (copied, ("AGENTS.md", "CLAUDE.md")),
        (copied, ("CLAUDE.md", "AGENTS.md")),
        (copied, ("CDD.md",)),
        (by_a_name_of_claude_alone, ("CLAUDE.md",)),
    ],
)
async def test_a_step_that_edits_the_file_sees_it_once_as_it_is(
    sandbox: Sandbox, arrange: Arrange, declared: tuple[str, ...]
) -> None:
    text = new_file(sandbox)
    arrange(sandbox.root, text)
    first, *others = declared
    step = Step(first, check("a.txt"), description=WORDS, also=tuple(others))
    await step_of(sandbox.in_process(), step)
    for request in sandbox.model.requests:
        prompt = sent(request)
        assert prompt.count(text.strip()) == 1
        assert prompt.count(RULE) == 1
        assert [
            place for place in PLACES if prompt.count(place) != text.count(place)
        ] == []
        for name in declared:
            assert f"\n{name}" in prompt


async def test_a_filled_in_file_that_a_step_names_is_shown_as_a_file(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "AGENTS.md").write_text(f"# Shop\n\n- {RULE}\n")
    step = Step("a.txt", check("a.txt"), description="Extend AGENTS.md.")
    await step_of(sandbox.in_process(), step)
    (request,) = sandbox.model.requests
    assert f"AGENTS.md:\n```md\n# Shop\n\n- {RULE}\n" in sent(request)
    assert sent(request).count(RULE) == 1


async def test_a_rules_file_that_an_attempt_missed_is_shown_to_the_next(
    sandbox: Sandbox,
) -> None:
    alone(sandbox.root, new_file(sandbox))
    step = Step("a.txt", check("a.txt"), description="As the rules say.")
    sandbox.write(step).in_process()
    sandbox.replies(
        f"{says('a.txt', 'good')}\n\n{says('AGENTS.md', 'Be brief.')}",
        says("a.txt", "good"),
    )
    session = sandbox.session()
    await say(session, f"/exec {SLUG}", "c", "retry")
    session.leave()
    first, second = map(sent, sandbox.model.requests)
    has_rules_once(first)
    assert second.count(new_file(sandbox).strip()) == 1
    assert second.count(RULE) == 1
