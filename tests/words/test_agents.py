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
from cdd_agent.session import Session
from cdd_agent.wiring import Wiring
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
            [
                "No run was left before its end, and there is no earlier conversation to go back to."
            ],
        ),
        ("/undo", ["Which ticket? Usage: /undo [SLUG] [STEP] [--list]"]),
        (
            f"/exec {SLUG}",
            [
                "Next is step 1: Make a.txt. `continue`, `all`, `skip`, `exit`, or say what matters for it."
            ],
        ),
        (
            "retry",
            [
                "No step has failed.",
                "Next is step 1: Make a.txt. `continue`, `all`, `skip`, `exit`, or say what matters for it.",
            ],
        ),
        (
            "c",
            [
                "Step 1 has failed: `retry`, `skip`, `exit`, or say what to do differently."
            ],
        ),
        (
            "c",
            [
                "Step 1 has failed: `retry`, `skip`, `exit`, or say what to do differently."
            ],
        ),
        (
            "staus",
            [
                "Did you mean `status`? Nothing was done. `> staus` makes it guidance for step 1, and runs the step."
            ],
        ),
        ("skip 7", ["Step 7 is not the next one, step 1 is. Nothing was done."]),
        (
            "retry",
            [
                "Next is step 2: Make b.txt. `continue`, `all`, `skip`, `exit`, or say what matters for it."
            ],
        ),
        (
            "c",
            [
                "The Executor is closed. `/diff feature-words` shows what was done, `/undo feature-words` goes back."
            ],
        ),
        (f"/exec {SLUG}", ["All steps are over; nothing was run."]),
        (
            "continue",
            [
                "All steps are over; nothing was run. `/diff feature-words` shows what was done, `/undo feature-words` goes back."
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
            "undo",
            [
                "No agent is active, and chat cannot do that. `/undo feature-words` does it. `/resume` goes back to where you were last."
            ],
        ),
        (
            f"/undo {SLUG}",
            ["Next is step 2: Make b.txt. `/exec feature-words` goes on with it."],
        ),
        (
            f"/exec {SLUG}",
            [
                "Going on: 1 of 2 steps are over already.",
                "Next is step 2: Make b.txt. `continue`, `all`, `skip`, `exit`, or say what matters for it.",
            ],
        ),
        (
            "/exit",
            [
                "Left feature-words. `/exec feature-words` goes on from here.",
                "`/exit` once more leaves the shell.",
            ],
        ),
        ("/exit", []),
        (
            "approve",
            [
                "No question is open. To continue with the ticket, type `/socrates feature-words` or `/plan feature-words`."
            ],
        ),
        ("exit", ["This is chat; no other agent is active. `/exit` leaves the shell."]),
        ("help", ["Type `/help` instead."]),
        (
            "continue",
            ["No run is open. `/exec feature-words` opens one."],
        ),
        (
            "undo",
            ["Next is step 1: Make a.txt. `/exec feature-words` goes on with it."],
        ),
        (
            "redo",
            ["Next is step 2: Make b.txt. `/exec feature-words` goes on with it."],
        ),
        (
            "/exec nothing",
            ["There is no ticket 'nothing'.", "To see the tickets, run `cdd list`."],
        ),
        (
            "/plan",
            [
                "Usage: /plan SLUG",
                "Turn a ticket's spec into a plan, or change the plan that is there; nothing is written before you approve.",
            ],
        ),
        (
            "/new bug",
            [
                "Usage: /new TYPE [KIND] NAME [--slug=SLUG]",
                "Make a ticket: feature, bug, enhancement, spike or refactor; or a page: `/new documentation guide NAME`. `--slug` sets the name of the ticket's folder.",
            ],
        ),
        ("/nothing", ["There is no command /nothing", "/help lists them."]),
    )


async def test_the_planner(sandbox: Sandbox) -> None:
    await is_said(
        planned(sandbox).replies(plan()).session(),
        (
            f"/plan {SLUG}",
            ["`approve` writes it, `discard` drops it; or say what to change in it."],
        ),
        (
            "exit",
            [
                "Left the planning of feature-words. What was proposed or learnt is kept."
            ],
        ),
    )
    await is_said(
        sandbox.session(),
        (
            f"/plan {SLUG}",
            [
                "A plan was proposed here, and not approved yet.",
                "`approve` writes it, `discard` drops it; or say what to change in it.",
            ],
        ),
        (
            "approve",
            [
                "Wrote tickets/feature-words/plan.md. `/exec feature-words` carries it out."
            ],
        ),
        (
            f"/plan {SLUG}",
            [
                "`keep` the plan, `regenerate` it, or say what to change in it; `show` prints it, `check` its problems."
            ],
        ),
        (
            "keep",
            [
                "tickets/feature-words/plan.md is unchanged. `/exec feature-words` carries it out."
            ],
        ),
        (
            f"/plan {SLUG}",
            [
                "`keep` the plan, `regenerate` it, or say what to change in it; `show` prints it, `check` its problems."
            ],
        ),
        ("approve", ["There is no proposal to approve"]),
        (
            "discard",
            [
                "Dropped what was proposed and learnt; plan.md is unchanged.",
                "`keep` the plan, `regenerate` it, or say what to change in it; `show` prints it, `check` its problems.",
            ],
        ),
    )
    await is_said(
        Wiring(sandbox.project, Nobody(), tell).session,
        (
            "hello",
            [
                "No model is configured",
                "In the shell `/model NAME --save` sets one; or put `model: NAME` into .cdd/config.yaml. `cdd doctor` says which ones there are, and what is missing.",
            ],
        ),
        (
            f"/plan {SLUG}",
            [
                "`keep` the plan, `regenerate` it, or say what to change in it; `show` prints it, `check` its problems."
            ],
        ),
        (
            "regenerate",
            [
                "No model is configured. In the shell `/model NAME --save` sets one; or put `model: NAME` into .cdd/config.yaml. `cdd doctor` says which ones there are, and what is missing.",
                "`basic` proposes a plan without a model: a step for each acceptance criterion.",
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
                "Nothing is written yet:\n- title: one line that says what is wanted\n- description: what is wanted, and why\n- acceptance_criteria: at least one thing to check when the work is done\n- open question 1: Who?",
                "Answer what is open, or `approve anyway` to write it as it is. `drop 1` drops the first question.",
            ],
        ),
        (
            "drop",
            ["`drop 1` drops it."],
        ),
        (
            "drop 2",
            ["No open question has the number 2. `drop` shows those that are open."],
        ),
        ("Readers.", ["Not open any more:\n- Who?"]),
        ("drop 1", ["No question is open."]),
        ("exit", ["Left feature-words. `/socrates feature-words` goes on from here."]),
    )
    await is_said(
        sandbox.session(),
        (
            f"/socrates {SLUG}",
            [
                "Going on: what was said is kept; not written to tickets/feature-words/spec.yaml yet: title, description, acceptance_criteria.",
                "The spec is complete. Enter goes deeper, `summary` shows it, `approve` writes it.",
            ],
        ),
        (
            "Yes.",
            [
                "This turn removed or reworded words of the spec:",
                "The spec has changed with your last words. `summary` shows it, `approve` writes it.",
            ],
        ),
        (
            "approve",
            [
                "tickets/feature-words/spec.yaml is written. Next is the plan: `/plan feature-words`."
            ],
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
                "tickets/feature-words/spec.yaml is filled in; how to check 2 criteria is open. Press Enter to have Socrates ask, or say what to look at; `exit` leaves."
            ],
        ),
        ("It says bad.", ["This turn removed or reworded words of the spec:"]),
        (
            "approve",
            [
                "Nothing is written yet. These words of tickets/feature-words/spec.yaml would be removed or reworded:",
                "Type `approve` again to write this, or say what must stay.",
            ],
        ),
        ("Another title.", ["This turn removed or reworded words of the spec:"]),
        ("exit", ["Left feature-words. `/socrates feature-words` goes on from here."]),
    )
    spec.write_text(SPEC.replace("title: Say words", "title: Mine"))
    await is_said(
        sandbox.session(),
        (
            f"/socrates {SLUG}",
            [
                "tickets/feature-words/spec.yaml has changed: title. What the file says is kept. These changes of the draft are dropped:\n- Other",
                "Going on: what was said is kept; not written to tickets/feature-words/spec.yaml yet: acceptance_criteria.",
                "The spec is complete. Enter goes deeper, `summary` shows it, `approve` writes it.",
            ],
        ),
        ("So?", []),
        ("exit", ["Left feature-words. `/socrates feature-words` goes on from here."]),
    )
    await is_said(
        sandbox.session(),
        (
            f"/socrates {SLUG}",
            [
                "Going on: what was said is kept; not written to tickets/feature-words/spec.yaml yet: acceptance_criteria.",
                "Socrates noted no open question. Answer anyway, or press Enter to go deeper; `approve` writes the spec.",
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
                "Made .cdd/.gitignore",
                "Made .cdd/config.yaml",
                "Made tickets/.gitkeep",
                "Made AGENTS.md",
                "AGENTS.md describes the project to coding agents and newcomers. Replace each <…>: models do not see lines that have one.",
            ],
        ),
        (
            "/init",
            [
                f"The project is {sandbox.root}.",
                "It was set up already; nothing was changed.",
            ],
        ),
        (
            "hi @nothing.py",
            [
                "nothing.py does not exist; only the name is sent.",
                "The reply was cut by the model's length limit.",
            ],
        ),
        ("ho", []),
        (
            "/new bug x",
            [
                "Made tickets/bug-x/spec.yaml. `/socrates bug-x` fills it in with you, or you do by hand; then `/plan bug-x` makes the plan."
            ],
        ),
        (
            "/new bug x",
            ["The ticket bug-x already exists.", "It is in tickets/bug-x."],
        ),
        ("/new documentation guide x", ["Made docs/guides/x.md: fill it in."]),
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
            ["Back in the last conversation: 2 messages of yours. It ended with:"],
        ),
    )
    await is_said(
        Wiring(sandbox.project, Nobody(), tell, no_servers).session,
        (
            "/model",
            [
                "No model is configured.",
                "No model server was found on this computer, where they usually are: Ollama at port 11434, LM Studio at port 1234, llama.cpp at port 8080, vLLM at port 8000.",
                "`/model MODEL [API_BASE]` asks another from now on; `--save` after it sets it for the project. MODEL is a number or a name of the list, or any model string, as `anthropic/claude-sonnet-4-5`. `/model planner MODEL` sets that of the Planner alone; so do `executor`, `chat` and `socrates`. `/model planner project` goes back to the project's.",
            ],
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
                "Use another model. The picture is left out now: press Enter to go on without it.",
            ],
        ),
    )
    sandbox.replies("I cannot.").model.sees = False
    await is_said(
        sandbox.session(),
        (
            "see @shot.png",
            [
                "scripted cannot see pictures: the text is sent without shot.png. If it can, set `pictures: true`."
            ],
        ),
    )
