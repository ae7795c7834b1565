"""No plain word runs a step that was not meant to: what each agent makes of a line, and
that it does just that.
"""

import json
import re
import string
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.meaning import Meaning
from cdd_agent.commands.registry import commands, handle, read_line
from cdd_agent.engine.lock import TicketTaken
from cdd_agent.errors import BadInput
from cdd_agent.events.dialogue_events import ReplyStarted
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.shell_events import AgentChanged, ExitRequested
from cdd_agent.events.step_events import StepStarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.session.session import Session
from cdd_agent.wiring.root import Wiring
from cdd_agent.wording.describe import describe
from tests.agents.asking import COMPLETE, asks
from tests.agents.test_planner import plan as planned
from tests.support.listening import collect, tell
from tests.support.projects import SLUG, Sandbox, Step, check, notice, noticed, says
from tests.support.tables import each_row
from tests.support.typed_lines import command_hint

WHY = "it can wait"

THREE = (
    Step("a.txt", check("a.txt")),
    Step("b.txt", check("b.txt"), "Step 1"),
    Step("c.txt", check("c.txt"), "Step 2"),
)
RUNS_OR_SKIPS = ("continue", "all", "retry", "skip", "guidance")

SHELL_WORDS = """
help|?|??|h|man|quit|exit|q|:q|:q!|:wq|bye|logout|leave|clear|cls|reset|model|models
cost|list|tickets|init|new|plan|exec|resume|context|socrates|ls|ll|la|ls -la|ls src|cd
cd ..|cd src|cd ~|pwd|git|git status|git diff|git log --oneline -5|git add -A
git push origin main|git push to origin|git commit -m "step one done"|git checkout main
npm test|npm run build|npm install --save express|pytest|pytest -x|pytest tests/unit -q
python main.py|python -m pytest -q|make|make test|make -j4 install|docker ps
docker compose up -d|cat a.txt|cat src/app.py src/main.py|rm -rf build|rm a.txt
vim a.txt|vi|nano|code .|touch b.txt|mkdir -p src/app|cp a.txt b.txt|mv a.txt b.txt
echo hi|grep -rn TODO src|find . -name test.py|sudo reboot|curl localhost|$ git status
$ ls|./run.sh --fast now|../bin/run all things|~/bin/tool x y|FOO=bar npm test
export FOO=bar|source .venv/bin/activate|ps aux|kill 123|kill -9 123|top|htop|whoami
which python|env|cat a.txt \\| grep good \\| wc|pytest -q && git push origin main
ssh host|uv run pytest -q|tmux|history|fg|bg|jobs|alias
"""
NEAR_A_COMMAND = """
staus|stauts|statsu|status?|status.|show status|show me the status|status please
what's the status|st.|status 2|contineu|contnue|continue please|please continue
continue.|continue!|cont|go on|go ahead|proceed|keep going|carry on|go|next please
next step|nxt|next!|run|run it|run step 2|run the next step|run all|run everything
all of them|all steps|do it|do all|start|start step 2|begin|skpi|sikp|skip it|skip this
skip this step|skip that one please|please skip|skip this because it is slow
skip it because nobody needs it|sikp because it is slow|skop because of the network
skip, we do it later with the client|skip!|skip?|skip 30|skip step 30|skip 2|skip keep 3
skip 30 because it is slow|skipp|retyr|rety|retry 2|retry step 2|retry 99|retry!
retry please|try again|again|once more|rerun|rerun the last step|retry it|udno|undo that
undo it|undo the last step|undo everything|undo because it broke the tests
undo, it broke the tests|undo!|undo feature-words 3|redoo|redo it|diff please
show the diff|show me the last diff|dif|diff feature-words 3|diff it|ext|exot
exit please|exit the shell|exit the executor|quit the session|leave now|stop|stop it
stop the run now|abort|cancel|cancel everything right now|halt|kill|continue 3|next 2
n 3|all 3|hlep|help me|help me please|new feature login|exec feature-x|undo all|revert
roll back|back|go back|go back to step 1|again please|resume please|pause|break
continue;|"continue"|`skip`|'retry'|(status)|- skip|* continue|1|2|step 2|step 1|#2
"""
HALF_AND_TALK = """
y|yes|no|ok|okay|yes please|yep|sure|k|nope|no thanks|never mind|nevermind|wait
wait a minute|wait a second please|hold on|hold on please|hang on a moment|one moment
let me think|let me see|let me think about it|hm|hmm|um|oh|oops|sorry|wow|cool|nice
great|perfect|lgtm|looks good|looks good to me|that looks great, thanks|thanks
thank you very much|hi|hello|hello there|maybe|maybe you|maybe you should|i think
i think we should|i think that|what about|what about the|how about bcrypt
could you please|can you use bcrypt|can you explain this|what is this|what does this do
why did it fail|how does this work|who wrote that|where is the file|when does it run
is it done|is this ok|are we there yet|should we use bcrypt|use|use the|use bcrypt and
use bcrypt instead of|use bcrypt,|make it|make sure that the|do not use|don't
please add a|add tests for|add tests for the|the function should|because|because of the
and then|and then use|if the file is|but not the|it must be|instead of md5 use
rename the class to|use a table (with|use `bcrypt|put it in "src/app|first do this:
and...|the user model must have an|not yet|not yet please|do nothing|nothing
do nothing yet|forget it|forget about it|i don't know|no idea|whatever|bcrypt|faster|x
asdf|asdf jkl|.|..|...|-|!?!|;|123|1 2 3|:)|:-(|👍|\\o/|äöü|über|続けて|继续|停止
doch nicht
"""
GUIDANCE = """
use bcrypt instead of md5|use a table|leave the header out please
write it in lower case.
please use the csv module|exit code must be 2 when the file is missing
status codes must be 404 for unknown users|all tests should use fixtures
continue to use the existing API of the parser|next to the parser, add a lexer
diff output must be ignored by the parser|the retry limit has to be configurable
help texts must be short|clear the cache after the last test|model the user as a class
list only the names of the users|new users get no mail|plan for failures of the network
git must be optional|python must be 3.11 or later|make the function async
make it shorter and simpler|find a better name for the class|test the edge cases, too
sort the rows by date|text must be shorter|do not touch a.txt in this step
don't use globals here|keep the old function, and call it from the new one
when the file is missing, return an empty list|where possible, use pathlib
nimm bcrypt statt md5|utilise bcrypt au lieu de md5|用bcrypt代替md5来保存密码
the tests fail because the fixture is missing
Put the tests into tests/test_user.py, one per method.|rename foo to bar
no global state in this module, please!
"""
FORCED = "> bcrypt|> use|>faster|> status|> git status|> maybe you should|> quit"


def cases(text: str) -> list[str]:
    lines = "|".join(text.strip().splitlines()).replace("\\|", "\0").split("|")
    return [line.replace("\0", "|") for line in lines]


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


def told(events: list[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Notice))


@contextmanager
def at_step_two(sandbox: Sandbox) -> Iterator[ExecutorAgent]:
    """An Executor whose first step is done."""
    sandbox.write(*THREE)
    times = {"started_at": "2026-11-21T10:00:00+00:00", "completed_at": None}
    done = {
        "step_number": 1,
        "status": "completed",
        **times,
        "error": None,
        "files_created": [],
        "files_modified": [],
    }
    state = {
        "ticket_slug": SLUG,
        "current_step": 2,
        "status": "in_progress",
        **times,
        "step_executions": {"1": done},
    }
    (sandbox.ticket / "execution-state.json").write_text(json.dumps(state))
    agent = ExecutorAgent(sandbox.engine(), commands())
    try:
        yield agent
    finally:
        agent.close()


def test_the_table_of_lines_is_long() -> None:
    lines = [
        line
        for text in (SHELL_WORDS, NEAR_A_COMMAND, HALF_AND_TALK)
        for line in cases(text)
    ]
    assert len(lines) == len(set(lines)) > 300


def test_no_mistaken_line_starts_or_skips_a_step(
    sandbox: Sandbox,
) -> None:
    with at_step_two(sandbox) as agent:
        lines = [
            line
            for text in (SHELL_WORDS, NEAR_A_COMMAND, HALF_AND_TALK)
            for line in cases(text)
        ]
        meanings = {line: agent.meaning(line) for line in lines}
    meant = {line: meaning.name for line, meaning in meanings.items()}
    # all of it is seen
    assert [
        meaning.hint for meaning in meanings.values() if len(meaning.hint) > 78
    ] == []
    right = {"skip 2", "retry 2", "retry step 2", "next 2"}  # the step to come is named
    assert {
        line: name
        for line, name in meant.items()
        if name in RUNS_OR_SKIPS and line not in right
    } == {}
    assert [line for line, name in meant.items() if name == "question"] == []


def test_sentences_are_guidance_and_the_hint_says_so(sandbox: Sandbox) -> None:
    with at_step_two(sandbox) as agent:
        meant = {line: agent.meaning(line) for line in cases(GUIDANCE) + cases(FORCED)}
    assert {
        line: meaning.name
        for line, meaning in meant.items()
        if meaning.name != "guidance"
    } == {}
    (hint,) = {meaning.hint for meaning in meant.values()}
    assert "step 2" in hint


def slips(word: str) -> list[str]:
    """The words that one slip of a key makes of a word."""
    places = range(len(word))
    left_out = [word[:at] + word[at + 1 :] for at in places]
    twice = [word[:at] + word[at] + word[at:] for at in places]
    swapped = [
        word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in places[:-1]
    ]
    other = [
        word[:at] + letter + word[at + 1 :]
        for at in places
        for letter in string.ascii_lowercase
    ]
    return sorted({*left_out, *twice, *swapped, *other} - {word, ""})


WORDS = (
    "continue",
    "next",
    "retry",
    "skip",
    "status",
    "all",
    "undo",
    "redo",
    "diff",
    "close",
    "exit",
    "help",
    "clear",
)


@each_row(
    "around",
    ["{}", "{} please", "{} 30", "please {} this step", "{} because nobody needs it"],
)
def test_no_typing_slip_starts_or_skips_a_step(sandbox: Sandbox, around: str) -> None:
    with at_step_two(sandbox) as agent:
        lines = [
            around.format(slip)
            for word in WORDS
            # all of them alone, and a fifth of them among other words
            for slip in slips(word)[:: 1 if around == "{}" else 5]
            if len(slip) > 1
        ]
        names = {line: agent.meaning(line).name for line in lines}
    known = {"skip because nobody needs it"}
    wrong = {
        line: name
        for line, name in names.items()
        if name in RUNS_OR_SKIPS and line not in known
    }
    # of other words there are sentences with a reason: `exits because nobody needs it`
    if "because" in around:
        wrong = {line: name for line, name in wrong.items() if name != "guidance"}
    assert wrong == {}


def test_one_or_two_words_start_a_step_only_as_commands(sandbox: Sandbox) -> None:
    known = {"", "c", "n", "r", "s", "continue", "next", "retry", "skip", "all"}

    @settings(deadline=None)
    @given(st.lists(st.text(string.printable, min_size=1, max_size=12), max_size=2))
    def check_it(words: list[str]) -> None:
        line = " ".join(" ".join(words).split()[:2])
        is_forced = line.startswith(">") and line != ">"
        if agent.meaning(line).name in RUNS_OR_SKIPS and not is_forced:
            assert line.lower().partition(" ")[0] in known

    with at_step_two(sandbox) as agent:
        check_it()


@each_row(
    "line",
    [
        "status\nskip because it is slow",
        "Use a table for the rows.\n\ncontinue",
        "ls\nall",
    ],
)
def test_several_lines_with_a_command_among_them_run_nothing(
    sandbox: Sandbox, line: str
) -> None:
    with at_step_two(sandbox) as agent:
        assert agent.meaning(line).name == "nothing"


def test_a_long_paste_is_guidance(sandbox: Sandbox) -> None:
    with at_step_two(sandbox) as agent:
        pasted = "Make this work:\n\n" + "def f(x):\n    return (x\n" * 20_000
        assert agent.meaning(pasted).name == "guidance"


@each_row(
    ("line", "meant"),
    [
        ("staus", "`status`"),
        ("sikp because it is slow", "`skip because it is slow`"),
        (
            "please skip this because nobody who pays for it has ever asked for it",
            "`skip`",
        ),
        ("please continue", "`continue`"),
        ("undo, it broke the tests", "`undo`"),
        ("hlep", "`help`"),
    ],
)
async def test_a_line_close_to_a_command_is_asked_about(
    sandbox: Sandbox, line: str, meant: str
) -> None:
    session = sandbox.write(*THREE).session()
    events = await say(session, f"/exec {SLUG}", line)
    asked = notice(events, NoticeKind.NOT_DONE)
    assert meant in asked
    assert f"`> {line[:50]}" in asked
    assert sandbox.model.requests == []
    session.leave()


@each_row(
    "word", ["quit", "exit", "q", ":q", ":wq", "Quit", " exit ", "/exit", "/quit", "/q"]
)
async def test_every_word_for_leaving_leaves_the_shell_from_everywhere(
    sandbox: Sandbox, word: str
) -> None:
    session = sandbox.write(*THREE).replies(asks("Who?", **COMPLETE)).session()
    assert await say(session, word) == [ExitRequested()]
    for line in (f"/exec {SLUG}", f"/socrates {SLUG}", f"/plan {SLUG}"):
        await say(session, line)
        meaning = read_line(session, word)
        assert meaning.leaves
        assert meaning.runs_beside
        assert meaning.hint == command_hint("/exit")
        assert await say(session, word) == [ExitRequested()]
        assert session.agent is not None
    session.leave()


@each_row("word", ["close", "Close", "/chat"])
async def test_close_returns_to_chat(sandbox: Sandbox, word: str) -> None:
    session = sandbox.write(*THREE).replies(asks("Who?", **COMPLETE)).session()
    for line in (f"/exec {SLUG}", f"/socrates {SLUG}", f"/plan {SLUG}"):
        events = await say(session, line, word)
        assert events[-1] == AgentChanged(None)
        assert NoticeKind.AGENT_LEFT in noticed(events)


@each_row("word", ["help", "?", "HELP"])
async def test_words_for_help_show_the_agents_words(
    sandbox: Sandbox, word: str
) -> None:
    session = sandbox.write(*THREE).replies(asks("Who?", **COMPLETE)).session()
    for line in (f"/exec {SLUG}", f"/socrates {SLUG}", f"/plan {SLUG}"):
        await say(session, line)
        asked = len(sandbox.model.requests)
        (answer,) = await say(session, word)
        assert isinstance(answer, Answer)
        assert answer.text == session.agent.HELP  # type: ignore[union-attr]
        assert len(sandbox.model.requests) == asked
    session.leave()


async def test_words_of_shell_commands_name_the_slash_command(
    sandbox: Sandbox,
) -> None:
    session = sandbox.write(*THREE).session()
    await say(session, f"/exec {SLUG}")
    for word in ("clear", "model", "cost", "list"):
        assert f"Use `/{word}` for that." in told(await say(session, word))
    assert sandbox.model.requests == []
    session.leave()


async def test_a_step_that_is_not_next_is_refused(
    sandbox: Sandbox,
) -> None:
    session = (
        sandbox.write(*THREE)
        .replies(says("a.txt", "good"), says("b.txt", "bad"))
        .session()
    )
    await say(session, f"/exec {SLUG}", "c", "c")
    for word in ("skip", "retry", "continue", "s", "r", "n"):
        for number in (1, 3, 30):
            events = await say(session, f"{word} {number}")
            assert re.search(
                rf"\b{number}\b.*\b2\b", notice(events, NoticeKind.NOT_DONE)
            ), (
                word,
                number,
            )
            assert sandbox.statuses() == ["completed", "failed", "pending"], (
                word,
                number,
            )
            assert len(sandbox.model.requests) == 2, (word, number)
    session.leave()


async def test_the_next_step_can_be_named(sandbox: Sandbox) -> None:
    session = (
        sandbox.write(*THREE)
        .replies(says("a.txt", "bad"), says("a.txt", "good"))
        .session()
    )
    await say(
        session, f"/exec {SLUG}", "continue 1", "retry step 1", f"skip 2 because {WHY}"
    )
    assert sandbox.statuses() == ["completed", "skipped", "pending"]
    assert sandbox.state()["step_executions"]["2"]["reason"] == WHY
    session.leave()


async def test_the_hint_says_what_the_line_does(sandbox: Sandbox) -> None:
    """For each kind of line: the meaning, and then what came of the line."""
    session = (
        sandbox.write(*THREE)
        .replies(says("a.txt", "bad"), "Because.", says("a.txt", "good"))
        .session()
    )
    await say(session, f"/exec {SLUG}")
    seen = []
    lines = (
        "continue",
        "continue",
        "staus",
        "why?",
        "use a good word",
        "diff",
        "skip",
        "status",
        "undo",
        "close",
    )
    for line in lines:
        meaning = session.meaning(line)
        assert meaning is not None
        events = await say(session, line)
        kinds = {type(event).__name__ for event in events}
        seen.append((meaning.hint, kinds))
    hints = [hint for hint, _ in seen]
    assert "Make a.txt" in hints[0]
    assert "`status`" in hints[2]
    assert ["nothing" in hint for hint in hints[:5]] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert "model" in hints[3]
    assert "step 1" in hints[4]
    assert "Make b.txt" in hints[6]
    assert len(set(hints)) > 6
    ran = [StepStarted.__name__ in kinds for _, kinds in seen]
    assert ran == [True, False, False, False, True, False, False, False, False, False]
    asked = [ReplyStarted.__name__ in kinds for _, kinds in seen]
    assert asked == [True, False, False, True, True, False, False, False, False, False]
    finished = [StepFinished.__name__ in kinds for _, kinds in seen]
    assert finished == [
        True,
        False,
        False,
        False,
        True,
        False,
        True,
        False,
        False,
        False,
    ]


async def test_guidance_for_a_step_that_is_no_longer_next_runs_nothing(
    sandbox: Sandbox,
) -> None:
    session = sandbox.write(*THREE).replies(says("z.txt", "good")).session()
    await say(session, f"/exec {SLUG}")
    sandbox.write(Step("z.txt", check("z.txt")), *THREE[1:])
    events = await say(session, "use a good word")
    assert "Make a.txt" in notice(events, NoticeKind.NOT_DONE)
    assert "Make z.txt" in notice(events, NoticeKind.WHAT_NEXT)
    assert sandbox.model.requests == []
    session.leave()


async def test_no_line_does_anything_after_all_steps_are_over(sandbox: Sandbox) -> None:
    """As after a redo from the shell, which leaves the agent active."""
    lines = (
        "skip",
        "retry",
        "continue",
        "all",
        "use a good word",
        "why?",
        "status",
        "> x",
        "staus",
        "redo",
    )
    session = sandbox.write(THREE[0]).replies(says("a.txt", "good")).session()
    await say(session, f"/exec {SLUG}", "c")
    for line in lines:
        await say(session, f"/undo {SLUG} --yes", f"/exec {SLUG}", f"/redo {SLUG}")
        assert session.agent is not None
        events = await say(session, line)
        assert noticed(events)[-1] is NoticeKind.AGENT_LEFT
        assert session.agent is None
        assert sandbox.statuses() == ["completed"]
    assert len(sandbox.model.requests) == 1


async def test_after_each_step_the_possible_words_are_offered(
    sandbox: Sandbox,
) -> None:
    session = (
        sandbox.write(*THREE)
        .replies(says("a.txt", "good"), says("b.txt", "bad"))
        .session()
    )
    await say(session, f"/exec {SLUG}")
    assert "`continue`, `all`" in told(await say(session, "c"))
    assert "`retry`, `skip`" in told(await say(session, "c"))
    session.leave()


@each_row("last", ["c", "skip", "all"])
async def test_the_end_of_a_run_names_the_next_command(
    sandbox: Sandbox, last: str
) -> None:
    session = (
        sandbox.write(*THREE[:2])
        .replies(says("a.txt", "good"), says("b.txt", "good"))
        .session()
    )
    events = await say(session, f"/exec {SLUG}", "c", last)
    (ended,) = [event for event in events if isinstance(event, RunFinished)]
    assert "Review" in str(describe(ended))


# --------------------------------------------------------------------- the other agents


Opened = Callable[[Sandbox], Awaitable[Session]]
SOCRATES = [
    ("aprove", "approve"),
    ("approve it", "approve"),
    ("approved", "approve"),
    ("approve it anyway", "approve anyway"),
    ("sumary", "summary"),
    ("continue please", "continue"),
    ("eixt", "exit"),
]
PLANNER = [
    ("aprove", "approve"),
    ("approve the plan please", None),
    ("yes please", "yes"),
    ("keep it", "keep"),
    ("regenrate", "regenerate"),
    ("chekc", "check"),
    ("exit!", "exit"),
]
ANSWERS = (
    "Readers.",
    "one",
    "two",
    "Postgres",
    "git",
    "pytest tests/unit -q",
    "npm test",
    "no",
    "Go on.",
    "Yes, one module.",
)


async def with_socrates(sandbox: Sandbox) -> Session:
    session = (
        sandbox.write(*THREE)
        .replies(asks("Who?", **COMPLETE), *[asks("What?")] * 20)
        .session()
    )
    await say(session, f"/socrates {SLUG}", "")
    return session


async def with_planner(sandbox: Sandbox) -> Session:
    session = (
        sandbox.write(*THREE)
        .replies(*[planned(overview=f"Number {n}.") for n in range(20)])
        .session()
    )
    (sandbox.ticket / "plan.md").unlink()
    await say(session, f"/plan {SLUG}")
    return session


@each_row(
    ("opened", "line", "meant"),
    [(with_socrates, *case) for case in SOCRATES]
    + [(with_planner, *case) for case in PLANNER],
)
async def test_a_line_close_to_a_word_of_an_agent_makes_no_model_call(
    sandbox: Sandbox, opened: Opened, line: str, meant: str | None
) -> None:
    session = await opened(sandbox)
    asked = len(sandbox.model.requests)
    meaning = session.meaning(line)
    assert isinstance(meaning, Meaning)
    if meant is None:  # more than a slip
        assert meaning.name == "words"
    else:
        assert f"`{meant}`" in notice(await say(session, line), NoticeKind.NOT_DONE)
        assert len(sandbox.model.requests) == asked
        others = session.meaning("Some words, and more of them.")
        assert session.meaning(f"> {line}") == others
    session.leave()


@each_row("opened", [with_socrates, with_planner])
async def test_answers_in_a_word_go_to_the_model(
    sandbox: Sandbox, opened: Opened
) -> None:
    session = await opened(sandbox)
    meant = {line: session.meaning(line) for line in ANSWERS}
    assert {
        line: meaning.name for line, meaning in meant.items() if meaning
    } == dict.fromkeys(ANSWERS, "words")
    session.leave()


async def test_an_approval_applies_to_the_proposal_when_it_was_typed(
    sandbox: Sandbox,
) -> None:
    session = await with_planner(sandbox)
    before = session.meaning("approve")
    assert before == session.meaning("approve")
    await say(session, "regenerate")
    assert session.meaning("approve") != before
    assert session.meaning("show") == session.meaning("show")
    session.leave()


# -------------------------------------------------------------- looking changes nothing


@pytest.fixture
def done(sandbox: Sandbox) -> Sandbox:
    """A ticket with two of three steps done, and another ticket beside it."""
    other = sandbox.root / "tickets" / "bug-other"
    sandbox.write(*THREE)
    other.mkdir()
    for name in ("spec.yaml", "plan.md"):
        (other / name).write_text(
            (sandbox.ticket / name).read_text().replace(SLUG, "bug-other")
        )
    return sandbox.replies(says("a.txt", "good"), says("b.txt", "good"))


LOOKS = [
    f"/diff {SLUG}",
    f"/diff {SLUG} 2",
    f"/diff {SLUG} 99",
    "/diff",
    f"/status {SLUG}",
    "/status",
    f"/cost {SLUG}",
    "/cost",
    "/help",
    "/help executor",
    "/list",
    "/context",
    "/diff nothing-like-it",
]
GOES_BACK = [
    f"/undo {SLUG} --yes",
    f"/redo {SLUG}",
    f"/undo {SLUG} 99",
    f"/redo {SLUG}",
    f"/undo {SLUG} 1",
    f"/redo {SLUG}",
]
ACTIVE = {
    "chat": None,
    "the Executor of another ticket": "/exec bug-other",
    "the Executor of this ticket": f"/exec {SLUG}",
    "Socrates of this ticket": f"/socrates {SLUG}",
    "Socrates of another ticket": "/socrates bug-other",
    "the Planner of this ticket": f"/plan {SLUG}",
}


@each_row("active", ACTIVE)
async def test_commands_with_a_slug_leave_the_active_agent_unchanged(
    done: Sandbox, active: str
) -> None:
    session = done.session()
    await say(session, f"/exec {SLUG}", "c", "c", "close")
    if (line := ACTIVE[active]) is not None:
        await say(session, line)
    agent, asked = session.agent, len(done.model.requests)
    for line in (*LOOKS, *GOES_BACK, LOOKS[0], LOOKS[-1]):
        try:
            events = await say(session, line)
        except BadInput:
            assert "99" in line or "nothing-like-it" in line
            events = []
        assert session.agent is agent, line
        assert not [
            event for event in events if isinstance(event, AgentChanged | StepStarted)
        ]
    assert done.statuses() == ["completed", "completed", "pending"]
    assert done.text("b.txt") == "good\n"
    assert len(done.model.requests) == asked
    if agent is None:
        done.engine().close()  # nobody holds the ticket
    elif agent.ticket_slug == SLUG:
        with pytest.raises(TicketTaken):
            done.engine()
        await say(session, "close")
        done.engine().close()
    session.leave()


async def test_a_sentence_after_a_diff_goes_to_chat(done: Sandbox) -> None:
    session = done.session()
    await say(session, f"/exec {SLUG}", "c", "close", f"/diff {SLUG} 1")
    done.replies("It says good.")
    await say(session, "explain this change to me")
    assert done.statuses() == ["completed", "pending", "pending"]
    assert len(done.model.requests) == 1


async def test_an_undo_from_chat_names_the_next_step(done: Sandbox) -> None:
    session = done.session()
    await say(session, f"/exec {SLUG}", "c", "c", "close")
    events = await say(session, f"/undo {SLUG} --yes")
    told_next = notice(events, NoticeKind.WHAT_NEXT)
    assert "Make b.txt" in told_next
    assert f"`/exec {SLUG}`" in told_next
    assert (
        "done again" in str(await say(session, "/redo"))
        or done.statuses()[1] == "completed"
    )


async def test_the_active_executor_notices_an_undo_by_slug(
    done: Sandbox,
) -> None:
    session = done.session()
    await say(session, f"/exec {SLUG}", "c", "c", f"/undo {SLUG} 1")
    (opened,) = [
        event for event in await say(session, "status") if isinstance(event, PlanOpened)
    ]
    assert [step.status for step in opened.steps] == ["pending"] * 3
    assert "step 1" in notice(await say(session, "status"), NoticeKind.WHAT_NEXT)
    session.leave()


async def test_diff_and_undo_need_no_model(done: Sandbox) -> None:
    session = done.session()
    await say(session, f"/exec {SLUG}", "c", "close")
    without = Wiring(
        done.project,
        done.frontend,
        tell,
        run_program=done.run_program,
        open_checkpoints=done.open_checkpoints,
    ).session
    assert "+good" in str(await say(without, f"/diff {SLUG} 1"))
    await say(without, f"/undo {SLUG} --yes")
    assert done.statuses()[0] == "pending"


async def test_a_read_only_command_reports_a_damaged_state_too(
    done: Sandbox,
) -> None:
    session = done.session()
    await say(session, f"/exec {SLUG}", "c", "close")
    (done.ticket / "execution-state.json").write_text("{ torn")
    assert NoticeKind.STATE_RECOVERED in noticed(await say(session, f"/diff {SLUG} 1"))
