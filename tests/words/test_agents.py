"""Agents and commands in sentences: what is typed, and every notice, error and hint
that follows.
"""

from collections.abc import Sequence

from cdd_agent.commands.registry import handle
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Nobody
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.llm.port import PicturesRefused, StopReason
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from cdd_agent.wiring.root import Wiring
from tests.agents.asking import COMPLETE, TEMPLATE, asks
from tests.agents.test_planner import SPEC, plan
from tests.support.listening import tell, told_to
from tests.support.pictures import png
from tests.support.projects import SLUG, Sandbox, Step, check, says

TWO = (Step("a.txt", check("a.txt")), Step("b.txt", "none", "Step 1"))
Typed = tuple[str, list[str]]
"""A line, and what is said to it."""


async def heard(session: Session, line: str) -> list[str]:
    said: list[str] = []

    def hear(event: Event) -> None:
        if isinstance(event, Notice):
            said.append(event.text)

    try:
        with told_to(hear):
            await handle(session, line)
    except CddError as error:
        said += [error.message, *filter(None, [error.hint])]
    return said


async def is_said(session: Session, *story: Typed) -> None:
    for line, sentences in story:
        assert await heard(session, line) == sentences, line
    session.leave()


TURNS = (
    asks("Who?"),
    asks(**COMPLETE, answered=["q1"]),
    asks(title="Other", approved=True),
)


async def no_servers() -> Sequence[LocalServer]:
    return ()


def planned(sandbox: Sandbox) -> Sandbox:
    """A ticket with a complete spec and no plan."""
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    return sandbox


async def test_the_executor(sandbox: Sandbox) -> None:
    await is_said(
        sandbox.write(*TWO)
        .replies(says("a.txt", "bad"), says("a.txt", "good"), says("b.txt", "x"))
        .session(),
        (
            "/resume",
            ["Nothing to resume: no unfinished run and no earlier conversation."],
        ),
        ("/undo", ["There is nothing to undo in this session."]),
        ("/undo 1", ["Which ticket? Usage: /undo [SLUG] [STEP] [--list] [--yes]"]),
        (
            f"/exec {SLUG}",
            [
                "Next: step 1, Make a.txt. Type `continue`, `all`, `skip` or `close`, or add instructions."
            ],
        ),
        (
            "retry",
            [
                "There is nothing to retry: no step failed.",
                "Next: step 1, Make a.txt. Type `continue`, `all`, `skip` or `close`, or add instructions.",
            ],
        ),
        (
            "c",
            [
                "Step 1 failed. Type `retry`, `skip` or `close`, or say what to do differently."
            ],
        ),
        (
            "c",
            [
                "Step 1 failed. Type `retry`, `skip` or `close`, or say what to do differently."
            ],
        ),
        (
            "staus",
            ["Did you mean `status`? Type `> staus` to send it to step 1 anyway."],
        ),
        (
            "skip 7",
            ["Step 7 is not the next one. The next step is 1. Nothing was done."],
        ),
        (
            "retry",
            [
                "Next: step 2, Make b.txt. Type `continue`, `all`, `skip` or `close`, or add instructions."
            ],
        ),
        (
            "c",
            [
                "All steps done. Review: `/diff feature-words`. Undo: `/undo feature-words`."
            ],
        ),
        (f"/exec {SLUG}", ["All steps are done, so no step ran."]),
        (
            "continue",
            [
                "All steps are done, so no step ran. Review: `/diff feature-words`. Undo: `/undo feature-words`."
            ],
        ),
        (
            f"/undo {SLUG} 9",
            ["There is no step 9. The steps are 1, 2. Nothing was done."],
        ),
    )
    await is_said(
        sandbox.session(),
        (
            "undo 1",
            [
                "No ticket is open. Type `/undo feature-words 1`. Type `/resume` to return to your last session."
            ],
        ),
        (
            f"/undo {SLUG} --yes",
            ["Next: step 2, Make b.txt. Type `/exec feature-words` to resume."],
        ),
        (
            f"/exec {SLUG}",
            [
                "Resuming: 1 of 2 steps done.",
                "Next: step 2, Make b.txt. Type `continue`, `all`, `skip` or `close`, or add instructions.",
            ],
        ),
        (
            "/chat",
            ["Left feature-words. Type `/exec feature-words` to resume."],
        ),
        ("/chat", ["No agent is active: this is chat."]),
        (
            "approve",
            [
                "No question is open. To continue with the ticket, type `/socrates feature-words` or `/plan feature-words`."
            ],
        ),
        ("bye", ["Type `/exit` instead."]),
        (
            "continue",
            ["No run is open. Type `/exec feature-words` to open one."],
        ),
        (
            "undo 1",
            ["Next: step 1, Make a.txt. Type `/exec feature-words` to resume."],
        ),
        (
            "redo",
            ["Next: step 2, Make b.txt. Type `/exec feature-words` to resume."],
        ),
        (
            "/exec nothing",
            ["There is no ticket 'nothing'.", "List the tickets: `cdd list`."],
        ),
        (
            "/plan",
            [
                "Usage: /plan SLUG",
                "Open the Planner on a ticket. It proposes a plan, or changes the existing one; nothing is written before you approve. Example: `/plan feature-user-auth`",
            ],
        ),
        (
            "/new bug",
            [
                "Usage: /new TYPE [KIND] NAME [--slug=SLUG]",
                "Create a ticket of a TYPE: feature, bug, enhancement, spike or refactor. `/new documentation guide NAME` creates a page. Example: `/new feature user-auth`",
            ],
        ),
        (
            "/nothing",
            ["There is no command /nothing", "Type `/help` for the commands."],
        ),
    )


async def test_the_planner(sandbox: Sandbox) -> None:
    await is_said(
        planned(sandbox).replies(plan()).session(),
        (
            f"/plan {SLUG}",
            [
                (
                    "Type `approve` to write the plan, `discard` to drop the"
                    " proposal, or say what to change."
                )
            ],
        ),
        (
            "close",
            ["Left the Planner for feature-words. Your planning session is saved."],
        ),
    )
    await is_said(
        sandbox.session(),
        (
            f"/plan {SLUG}",
            [
                "You have not approved this proposed plan yet.",
                (
                    "Type `approve` to write the plan, `discard` to drop the"
                    " proposal, or say what to change."
                ),
            ],
        ),
        (
            "approve",
            [
                "Wrote tickets/feature-words/plan.md. Next: `/exec feature-words` runs it."
            ],
        ),
        (
            f"/plan {SLUG}",
            [
                "Type `keep`, `regenerate`, `show` or `check`, or say what to change in the plan."
            ],
        ),
        (
            "keep",
            [
                "tickets/feature-words/plan.md is unchanged. Next: `/exec feature-words` runs it."
            ],
        ),
        (
            f"/plan {SLUG}",
            [
                "Type `keep`, `regenerate`, `show` or `check`, or say what to change in the plan."
            ],
        ),
        ("approve", ["There is no proposed plan to approve"]),
        (
            "discard",
            [
                "Proposal discarded; plan.md unchanged.",
                "Type `keep`, `regenerate`, `show` or `check`, or say what to change in the plan.",
            ],
        ),
    )
    await is_said(
        Wiring(sandbox.project, Nobody(), tell).session,
        (
            "hello",
            [
                "No model set up yet",
                "Choose one with `/model`, or set `model: NAME` in .cdd/config.yaml. `cdd doctor` shows what is missing.",
            ],
        ),
        (
            f"/plan {SLUG}",
            [
                "Type `keep`, `regenerate`, `show` or `check`, or say what to change in the plan."
            ],
        ),
        (
            "regenerate",
            [
                "No model set up yet. Choose one with `/model`, or set `model: NAME` in .cdd/config.yaml. `cdd doctor` shows what is missing.",
                "Type `basic` for a plan without a model: one step for each acceptance criterion.",
            ],
        ),
    )


async def test_socrates(sandbox: Sandbox) -> None:
    await is_said(
        sandbox.write(spec=TEMPLATE).replies(*TURNS).session(),
        (f"/socrates {SLUG}", []),
        (
            "approve",
            [
                "Not written yet. Still open:\n- title: one line that says what is wanted\n- description: what is wanted, and why\n- acceptance_criteria: at least one thing to check when the work is done\n- open question 1: Who?",
                "Answer these points, or type `approve anyway` to write the spec without them. Type `drop 1` to drop the first question.",
            ],
        ),
        (
            "drop",
            ["Type `drop 1` to drop it."],
        ),
        (
            "drop 2",
            [("There is no open question 2. Type `drop` to list the open questions.")],
        ),
        ("Readers.", ["No longer open:\n- Who?"]),
        ("drop 1", ["There is no open question."]),
        ("close", ["Left feature-words. Type `/socrates feature-words` to resume."]),
    )
    await is_said(
        sandbox.session(),
        (
            f"/socrates {SLUG}",
            [
                "Resuming your saved conversation. Not written to tickets/feature-words/spec.yaml yet: title, description, acceptance_criteria.",
                "The spec is complete. Type `approve` to write it, `summary` to read it, or press Enter for deeper questions.",
            ],
        ),
        (
            "Yes.",
            [
                "This answer removed or reworded text of the spec:",
                "Your last message changed the spec. Type `summary` to read it, or `approve` to write it.",
            ],
        ),
        (
            "approve",
            ["Wrote tickets/feature-words/spec.yaml. Next: `/plan feature-words`."],
        ),
        (
            "approve",
            [
                "No question is open. To continue with the ticket, type `/socrates feature-words` or `/plan feature-words`."
            ],
        ),
    )


async def test_socrates_with_words_that_would_be_lost(sandbox: Sandbox) -> None:
    reworded = {"id": "c1", "text": "a.txt says bad", "check": "grep bad a.txt"}
    sandbox.write(spec=SPEC).replies(
        asks(acceptance_criteria=[reworded, {"id": "c2", "check": "grep"}]),
        asks(title="Other"),
        asks(words="Is that all?"),
    )
    spec = sandbox.ticket / "spec.yaml"
    await is_said(
        sandbox.session(),
        (
            f"/socrates {SLUG}",
            [
                "tickets/feature-words/spec.yaml is filled in, but it does not say how to check 2 criteria. Press Enter to let Socrates ask, say what to clarify, or type `close`."
            ],
        ),
        ("It says bad.", ["This answer removed or reworded text of the spec:"]),
        (
            "approve",
            [
                "Not written yet. This would remove or reword text of tickets/feature-words/spec.yaml:",
                "Type `approve` again to write this, or say what to keep.",
            ],
        ),
        ("Another title.", ["This answer removed or reworded text of the spec:"]),
        ("close", ["Left feature-words. Type `/socrates feature-words` to resume."]),
    )
    spec.write_text(SPEC.replace("title: Say words", "title: Mine"))
    await is_said(
        sandbox.session(),
        (
            f"/socrates {SLUG}",
            [
                "tickets/feature-words/spec.yaml has changed (title). Your edits are kept. These changes of the draft conflict with them and were dropped:\n- Other",
                "Resuming your saved conversation. Not written to tickets/feature-words/spec.yaml yet: acceptance_criteria.",
                "The spec is complete. Type `approve` to write it, `summary` to read it, or press Enter for deeper questions.",
            ],
        ),
        ("So?", []),
        ("close", ["Left feature-words. Type `/socrates feature-words` to resume."]),
    )
    await is_said(
        sandbox.session(),
        (
            f"/socrates {SLUG}",
            [
                "Resuming your saved conversation. Not written to tickets/feature-words/spec.yaml yet: acceptance_criteria.",
                "The spec has no open question. Answer anyway, press Enter for deeper questions, or type `approve` to write the spec.",
            ],
        ),
    )


async def test_chat_and_what_makes_a_project(sandbox: Sandbox) -> None:
    await is_said(
        sandbox.replies(
            ScriptedReply("Half", stop=StopReason.LENGTH), "Two."
        ).session(),
        (
            "/init",
            [
                f"The project is {sandbox.root}.",
                "Created .cdd/.gitignore",
                "Created .cdd/config.yaml",
                "Created tickets/.gitkeep",
                "Created AGENTS.md",
                "Fill in the <…> placeholders in AGENTS.md. Until you do, those lines are left out of prompts.",
                "Next: set up a model with `/model`, then create a ticket with `/new feature NAME`.",
            ],
        ),
        (
            "/init",
            [
                f"The project is {sandbox.root}.",
                "Already set up; nothing was changed.",
                "Next: set up a model with `/model`, then create a ticket with `/new feature NAME`.",
            ],
        ),
        (
            "hi @nothing.py",
            [
                "nothing.py does not exist. Only the name is sent.",
                "The reply was cut off by the model's length limit.",
            ],
        ),
        ("ho", []),
        (
            "/new bug x",
            [
                "Created tickets/bug-x/spec.yaml. Complete it with `/socrates bug-x` or in your editor, then run `/plan bug-x`."
            ],
        ),
        (
            "/new bug x",
            ["The ticket bug-x already exists.", "It is in tickets/bug-x."],
        ),
        ("/new documentation guide x", ["Created docs/guides/x.md. Fill it in."]),
        (
            "/new documentation recipe y",
            ["Unknown kind of documentation: 'recipe'.", "Allowed: guide, feature."],
        ),
        (
            "/new epic y",
            [
                "There is no ticket type 'epic'.",
                "Allowed: feature, bug, enhancement, spike, refactor, and `documentation guide NAME` for a page.",
            ],
        ),
    )
    await is_said(
        sandbox.session(),
        (
            "/resume",
            [("Resuming the last conversation (2 messages from you). It ended with:")],
        ),
    )


async def test_pictures(sandbox: Sandbox) -> None:
    (sandbox.root / "shot.png").write_bytes(png(60, 40))
    sandbox.write(spec=TEMPLATE)
    await is_said(
        sandbox.replies(
            "Red.",
            asks("Who?"),
            PicturesRefused("No pictures.", hint="Use another model."),
        ).session(),
        ("see @shot.png", ["Sent as a picture: shot.png (60 × 40)."]),
        (f"/socrates {SLUG}", []),
        (
            "@shot.png",
            [
                "Sent as a picture: shot.png (60 × 40).",
                "No pictures.",
                "Use another model. The picture is left out now. Press Enter to continue without it.",
            ],
        ),
    )
    sandbox.replies("I cannot.").model.sees = False
    await is_said(
        sandbox.session(),
        (
            "see @shot.png",
            [
                "scripted cannot see pictures, so the text is sent without shot.png. If it can, set `pictures: true`."
            ],
        ),
    )
