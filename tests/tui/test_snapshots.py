"""How the shell looks: one picture for each look.

The states are shown event by event, so that no time and no path varies. How the screens
look in other sizes and themes is in `tests/tui/screens`.
"""

from collections.abc import Awaitable, Callable
from math import inf
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import OptionList

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.changes.review import Review
from cdd_agent.cost import NO_COST, Cost
from cdd_agent.engine.step_details import AttemptDetails, SeenTest, StepDetails
from cdd_agent.events.dialogue_events import (
    ReplyDelta,
    ReplyFinished,
    ThinkingDelta,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.shell_events import OwnCommandFinished, OwnCommandStarted
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    CommandOutput,
    FailedTest,
    StepDiff,
    StepsRedone,
    StepStarted,
    StepsUndone,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.stream import Event
from cdd_agent.frontend import REST
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.tickets.plan import AffectedFile, PlanStep
from cdd_agent.tickets.status import Evidence, RunStatus, StepStatus, Verification
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.tui.answering import Answering
from cdd_agent.tui.app import Shell
from cdd_agent.tui.inspector.source import InspectorTab
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.find_bar import FindInput
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import ActivityBar
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.verification.outcomes import Result
from tests.agents.asking import TEMPLATE, asks, looks
from tests.support.projects import SPEC, Sandbox
from tests.support.reviews import review_of
from tests.tui.inspector.examples import (
    FakeRun,
    inspection_of,
    inspector,
    timeline_of,
)
from tests.tui.person import FingerTime, opened, shell

Compare = Callable[..., bool]
SLUG = "feature-monthly-report"
TITLES = (
    "Read the expenses",
    "Add them up",
    "Write the report",
    "Print it from the command line",
)
REPLY = """\
Each month is a block, and each category a line in it. \
The amounts are set **flush right**.

```python:tally/report.py
from collections.abc import Iterable

from tally.totals import by_category, by_month


def report(entries: Iterable[Entry]) -> str:
    \"\"\"The report, the latest month first.\"\"\"
    blocks = [block(month, group) for month, group in by_month(entries)]
    return "\\n\\n".join(blocks) or "No expenses."
```

- the command line comes in step 4
- `by_category` is used as it is
"""
OUTPUT = """\
collected 6 items

tests/test_report.py ....F.                                              [100%]

E       AssertionError: assert 'food   12.5' == 'food  12.50'
1 failed, 5 passed
"""
OPENING = (
    Notice(
        "Ask anything. `/new TYPE NAME` makes a ticket, `/exec SLUG` carries out its"
        " plan, `/help` says more."
    ),
)


SEEN = {
    1: Evidence("", 3, new=3),
    2: Evidence("", 5, fixed=1, new=1),
    3: Evidence("", 5, failed=1),
}


def step(
    number: int, status: StepStatus, error: str | None = None, done: int = 0
) -> StepFinished:
    verification = Verification.PASSED if status is StepStatus.COMPLETED else None
    ended = StepFinished(
        number,
        TITLES[number - 1],
        status,
        verification,
        error,
        None,
        (),
        (),
        done=done,
        total=len(TITLES),
    )
    return replace(
        ended,
        attempts=max(number - 1, 1),
        seconds=12.0 * number,
        evidence=SEEN.get(number),
    )


DIFF = """\
diff --git a/tally/totals.py b/tally/totals.py
index 5d0c5f1..61e3fc1 100644
--- a/tally/totals.py
+++ b/tally/totals.py
@@ -1,4 +1,4 @@ from collections import defaultdict
 def by_month(entries):
-    return sorted(entries)
+    \"\"\"The entries of each month.\"\"\"
+    return dict(sorted(groups(entries)))
"""
CHECK = "pytest tests/test_report.py"
FAILED_RUN: tuple[Event, ...] = (
    step(1, StepStatus.COMPLETED, done=1),
    step(2, StepStatus.COMPLETED, done=2),
    StepStarted(3, TITLES[2], 1),
    ReplyDelta(3, REPLY),
    ChangesApplied(
        3, ("tally/report.py",), ("tally/__init__.py",), ("tally/__init__.py",)
    ),
    TestsStarted(3, CHECK),
    CommandOutput(3, OUTPUT),
    TestsFinished(3, None, f"`{CHECK}` failed (exit code 1)", 0.1),
    AttemptFailed(3, 1, f"`{CHECK}` failed (exit code 1)", will_retry=False),
    step(3, StepStatus.FAILED, f"`{CHECK}` failed (exit code 1)", done=2),
    RunFinished(
        *(SLUG, RunStatus.FAILED, 2, 0, 0, 4, None),
        ("tally/totals.py", "tally/report.py"),
        tally=StepTally(passed=2, failed=1, open=1),
    ),
    Notice("`retry`, `skip`, or say what to do differently."),
)


@pytest.fixture
def shop(tmp_path: Path) -> Sandbox:
    """A project whose folder has the same name everywhere; not a git repository."""
    root = tmp_path / "shop"
    for slug in ("bug-rounding", "feature-login", SLUG):
        (root / "tickets" / slug).mkdir(parents=True)
        (root / "tickets" / slug / "spec.yaml").write_text(
            SPEC.replace("Say words", "Monthly expense report")
        )
    (root / ".cdd").mkdir()
    depends = ("None", "None", "Step 2", "All previous steps")
    sections = "\n\n".join(
        f"### Step {number}: {title}\n\n**Dependencies:** {on}"
        for number, (title, on) in enumerate(zip(TITLES, depends, strict=True), 1)
    )
    plan = (
        "# Implementation Plan: Monthly expense report\n\n"
        "## Implementation Steps\n\n"
        f"{sections}\n"
    )
    (root / "tickets" / SLUG / "plan.md").write_text(plan)
    return Sandbox(root)


REPORT = FileDiff.compare(
    "tally/report.py",
    b'def line(category, amount):\n    return f"{category:<10}{amount:>8}"\n',
    b'def line(category, amount):\n    return f"{category:<10}{amount:>8.2f}"\n',
)
TOTALS = FileDiff.compare(
    "tally/totals.py",
    b"""from collections import defaultdict


def by_month(entries):
    return sorted(entries)


def by_category(entries):
    groups = defaultdict(list)
    for entry in entries:
        groups[entry.category].append(entry)
    return groups
""",
    b'''from collections import defaultdict
from datetime import date


def by_month(entries: list[Entry]) -> dict[date, list[Entry]]:
    """The entries of each month, the latest first."""
    groups = defaultdict(list)
    for entry in entries:
        groups[entry.date.replace(day=1)].append(entry)
    return dict(sorted(groups.items(), reverse=True))


def by_category(entries: list[Entry]) -> dict[str, list[Entry]]:
    groups = defaultdict(list)
    for entry in entries:
        groups[entry.category].append(entry)
    return dict(groups)
''',
)
FAILURE = FailedTest(
    "tests/test_report.py::test_amounts",
    "AssertionError: assert 'food   12.5' == 'food  12.50'",
    "tests/test_report.py:31",
    ">   assert line('food', 12.5) == 'food  12.50'\n"
    "E   AssertionError: assert 'food   12.5' == 'food  12.50'",
    is_old=False,
)
DONE: tuple[Event, ...] = (
    StepStarted(3, TITLES[2], 1),
    ToolFinished(
        3,
        "",
        tool="read_file",
        target="tests/test_report.py",
        first_line=1,
        last_line=40,
        output="import",
    ),
    ToolFinished(
        3,
        "",
        tool="grep_files",
        target="def by_",
        output="tally/totals.py:4: def by_month(entries):",
    ),
    ToolFinished(3, "", tool="edit_file", target="tally/totals.py", files=(TOTALS,)),
    ToolFinished(3, "", tool="edit_file", target="tally/report.py", files=(REPORT,)),
    ToolFinished(
        3,
        "",
        "exit code 1",
        "execute_command",
        "ruff check .",
        None,
        None,
        0.3,
        1,
        "Found 1 error.\n",
    ),
    ToolFinished(
        3,
        "",
        tool="execute_command",
        target="ruff format .",
        seconds=2.3,
        exit_code=0,
        output="1 left\n",
    ),
    ChangesApplied(
        3, (), ("tally/totals.py", "tally/report.py"), (), (), (TOTALS, REPORT)
    ),
    TestsStarted(3, CHECK),
    CommandOutput(3, OUTPUT),
    TestsFinished(
        3, None, f"`{CHECK}` failed (exit code 1)", 3.1, (), CHECK, 5, 1, 0, (FAILURE,)
    ),
    AttemptFailed(3, 1, f"`{CHECK}` failed (exit code 1)", will_retry=True),
    TestsStarted(3, CHECK),
    CommandOutput(3, "......\n6 passed\n"),
    TestsFinished(3, Verification.PASSED, f"`{CHECK}` passed", 3.1, (), CHECK, 6, 0, 0),
)


def showing(
    *events: Event, theme: str = "textual-dark"
) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Done with the shell before it is looked at: it shows these events, as at the end
    of a turn.
    """

    async def run(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Shell)
        await opened(app, pilot)
        app.theme = theme
        app.animation_level = "none"
        app.query_one(Prompt).area.cursor_blink = False
        app.home.bar.branch = "main"
        for event in events:
            app.show(event)
        app.query_one(ActivityBar).rest()
        await pilot.pause()

    return run


def test_the_first_screen_with_models_on_this_computer(
    shop: Sandbox, snap_compare: Compare
) -> None:
    async def find_servers() -> tuple[LocalServer, ...]:
        return (
            LocalServer(
                "Ollama",
                "http://127.0.0.1:11434/v1",
                ("qwen3-coder:30b", "gpt-oss:20b", "llama3.2"),
            ),
            LocalServer(
                "LM Studio",
                "http://127.0.0.1:1234/v1",
                ("mistralai/devstral-small-2507",),
            ),
        )

    assert snap_compare(
        shell(shop, opening=(), find_servers=find_servers, helps_to_begin=True),
        run_before=showing(),
    )


@pytest.mark.parametrize(
    ("size", "theme"),
    [((80, 24), "textual-dark"), ((120, 40), "textual-light")],
    ids=["narrow, dark", "wide, light"],
)
def test_a_run_with_a_failed_step(
    shop: Sandbox, snap_compare: Compare, size: tuple[int, int], theme: str
) -> None:
    shop.flags = {"model": "anthropic/claude-sonnet-4-5"}
    app = shell(shop, f"/exec {SLUG}", opening=OPENING)
    assert snap_compare(
        app, run_before=showing(*FAILED_RUN, theme=theme), terminal_size=size
    )


PLAN_STEP = PlanStep(
    3,
    TITLES[2],
    "Each month is a block, and each category a line in it.\n\n"
    "The amounts are set **flush right**.",
    dependencies=(2,),
    files_affected=(
        AffectedFile("tally/report.py"),
        AffectedFile("tests/test_report.py"),
    ),
    checks=(CHECK,),
)
TEST = "tests/test_report.py::test_"
ATTEMPT = AttemptDetails(
    1,
    "Two digits after the point.",
    "# The step",
    REPLY,
    f"`{CHECK}` failed (exit code 1)",
    DIFF,
    OUTPUT,
    (
        SeenTest(f"{TEST}digits", Result.FAILED, Result.PASSED),
        SeenTest(f"{TEST}blocks", Result.PASSED, None),
        SeenTest(f"{TEST}order", Result.PASSED, Result.FAILED),
        SeenTest(f"{TEST}old", Result.FAILED, Result.FAILED),
        SeenTest(f"{TEST}empty", Result.PASSED, Result.PASSED),
    ),
)


@pytest.mark.parametrize("tab", ["step", "timeline"])
def test_the_inspector(shop: Sandbox, snap_compare: Compare, tab: str) -> None:
    views = [
        StepSummary(
            n,
            TITLES[n - 1],
            StepStatus.COMPLETED,
            Verification.PASSED,
            evidence=SEEN.get(n),
        )
        for n in (1, 2)
    ]
    failed = StepSummary(
        3,
        TITLES[2],
        StepStatus.FAILED,
        error=f"`{CHECK}` failed (exit code 1)",
        attempts=2,
        seconds=36.0,
        evidence=SEEN[3],
        cost=Cost(8_900, 0.0412),
    )
    details = StepDetails(SLUG, PLAN_STEP, failed, (ATTEMPT, ATTEMPT), ("2",))
    events: list[Event] = []
    for view in views:
        events += [
            StepStarted(view.number, view.title, 1),
            StepFinished(**asdict(view), done=view.number, total=4),
        ]
    error = f"`{CHECK}` failed (exit code 1)"
    events += [
        StepStarted(3, TITLES[2], 1),
        AttemptFailed(3, 1, error, will_retry=True, last_attempt=2),
        StepStarted(3, TITLES[2], 2),
        StepFinished(**asdict(failed), done=2, total=4),
    ]
    run = FakeRun(
        inspection_of([*views, failed]), lambda _: details, timeline_of(*events)
    )

    async def look(pilot: Pilot[None]) -> None:
        await showing(*FAILED_RUN)(pilot)
        await pilot.app.push_screen(inspector(run, InspectorTab(tab)))
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    app = shell(shop, f"/exec {SLUG}", opening=OPENING)
    assert snap_compare(app, run_before=look, terminal_size=(100, 30))


def test_going_back(shop: Sandbox, snap_compare: Compare) -> None:
    events = (
        Notice("diff 2"),
        StepDiff(2, TITLES[1], DIFF),
        Notice("undo 2"),
        StepsUndone(
            (2, 3),
            ("tally/report.py", "tally/totals.py"),
            ("README.md",),
            ("0123456789abcdef",),
        ),
        Notice("redo"),
        StepsRedone((2, 3), ("tally/report.py",), ("tally/totals.py",)),
    )
    app = shell(shop, f"/exec {SLUG}", opening=OPENING)
    assert snap_compare(app, run_before=showing(*events), terminal_size=(100, 40))


BEFORE = """\
from collections import defaultdict


def total(amounts: list[float]) -> float:
    result = 0.0
    for amount in amounts:
        result += amount
    return result


def count(amounts: list[float]) -> int:
    return len(amounts)


def by_month(entries):
    return sorted(entries)
"""
LOOP = (
    "    result = 0.0\n"
    "    for amount in amounts:\n"
    "        result += amount\n"
    "    return result\n"
)
AFTER = BEFORE.replace(LOOP, "    return sum(amounts)\n").replace(
    "sorted(entries)", "dict(sorted(groups(entries)))"
)
REVIEW = review_of(
    3,
    {
        "tally/totals.py": (BEFORE, AFTER),
        "tests/test_report.py": (
            None,
            "def test_empty() -> None:\n    assert total([]) == 0\n",
        ),
        "notes.txt": ("to be gone\n", None),
    },
)


async def asked_about(review: Review, app: Shell, pilot: Pilot[None]) -> None:
    app.run_worker(app.asking.review(review))
    await until_seen(app, pilot)


async def until_seen(
    app: Shell, pilot: Pilot[None], *, instead_of: Answering | None = None
) -> None:
    while (
        app.asking.open is instead_of
        or app.asking.open is None
        or app.asking.open.seen_at == inf
    ):
        await pilot.pause(0.01)
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (160, 40)], ids=["unified", "split"])
def test_the_question(
    shop: Sandbox, snap_compare: Compare, size: tuple[int, int]
) -> None:
    async def ask(pilot: Pilot[None]) -> None:
        await showing(*FAILED_RUN[:4])(pilot)
        app = pilot.app
        assert isinstance(app, Shell)
        await asked_about(REVIEW, app, pilot)

    app = shell(shop, f"/exec {SLUG}", opening=OPENING)
    assert snap_compare(app, run_before=ask, terminal_size=size)


@pytest.mark.parametrize(
    "keys",
    [("h",), ("h", "left", "right", "right", "right")],
    ids=["a part", "the chosen parts"],
)
def test_a_review_part_by_part(
    shop: Sandbox, snap_compare: Compare, keys: tuple[str, ...]
) -> None:
    time = FingerTime()

    async def go_through(pilot: Pilot[None]) -> None:
        await showing(*FAILED_RUN[:4])(pilot)
        app = pilot.app
        assert isinstance(app, Shell)
        await asked_about(REVIEW, app, pilot)
        for key in keys:
            asked = app.asking.open
            time.pass_by(REST)
            await pilot.press(key)
            time.pass_by(REST)
            await until_seen(app, pilot, instead_of=asked)

    app = shell(shop, f"/exec {SLUG}", opening=OPENING, time=time)
    assert snap_compare(app, run_before=go_through)


CHAT: tuple[Event | str, ...] = (
    "why does @tally/report.py print 12.5?",
    Notice("Sent with your message: tally/report.py (31 lines).", Tone.QUIET),
    ReplyDelta(None, "I look at the test first."),
    ReplyFinished(None, None),
    ToolStarted(None, "read_file(path=tests/test_report.py)"),
    ToolFinished(
        None,
        "read_file(path=tests/test_report.py)",
        "",
        "read_file",
        "tests/test_report.py",
    ),
    ToolStarted(None, "execute_command(command=rm -r build)"),
    ToolFinished(
        None,
        "execute_command(…)",
        "Command 'rm' is not allowed",
        "execute_command",
        "rm -r build",
    ),
    ReplyDelta(
        None,
        "`amount` is formatted with `{:>8}`, which **does not pad** the cents:\n\n",
    ),
    ReplyDelta(None, '```python\nf"{category:<10}{amount:>8.2f}"\n```\n'),
    ReplyFinished(None, None),
)


def test_a_chat_with_tools(shop: Sandbox, snap_compare: Compare) -> None:
    async def talk(pilot: Pilot[None]) -> None:
        await saying(*CHAT)(pilot)
        await saying(
            ToolStarted(None, "edit_file(file_path=tally/report.py, find={amount:>8})"),
            ToolFinished(
                None,
                "edit_file(…)",
                "",
                "edit_file",
                "tally/report.py",
                files=(REPORT,),
            ),
            ChangesApplied(None, (), ("tally/report.py",), (), files=(REPORT,)),
            ReplyDelta(None, "It prints the cents now."),
            ReplyFinished(None, None),
            "!git status --short",
            OwnCommandStarted("git status --short"),
            CommandOutput(None, " M tally/report.py\n"),
            OwnCommandFinished("git status --short", ""),
        )(pilot)

    assert snap_compare(shell(shop, opening=()), run_before=talk)


def saying(*items: Event | str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """As `showing`, with what a person types in between."""

    async def run(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        for item in items:
            if isinstance(item, str):
                pilot.app.query_one(Transcript).add(BlockKind.USER, item)
            else:
                await showing(item)(pilot)

    return run


def test_path_completions(shop: Sandbox, snap_compare: Compare) -> None:
    for name in ("report.py", "totals.py", "read me.md"):
        (shop.root / "tally").mkdir(exist_ok=True)
        (shop.root / "tally" / name).touch()

    async def mention(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        await pilot.press(*"explain @tally/")
        # names are read in a thread
        while pilot.app.query_one(Prompt).query_one(OptionList).option_count < 3:
            await pilot.pause(0.01)

    assert snap_compare(
        shell(shop, opening=OPENING), press=("down",), run_before=mention
    )


def test_all_commands_on_offer(shop: Sandbox, snap_compare: Compare) -> None:
    assert snap_compare(
        shell(shop, opening=OPENING), press=("/",), run_before=showing()
    )


def test_a_search_in_the_history(shop: Sandbox, snap_compare: Compare) -> None:
    async def search(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        for line in (
            "why does @tally/report.py print 12.5?",
            f"/plan {SLUG}",
            "the amounts are set flush right\nand the cents are shown",
            f"/exec {SLUG}",
            "print the totals of each month",
        ):
            pilot.app.query_one(Prompt).accepted(line)
        await pilot.press("ctrl+r", *"th", "down")

    assert snap_compare(shell(shop, opening=OPENING), run_before=search)


def test_something_long_is_pasted(shop: Sandbox, snap_compare: Compare) -> None:
    async def paste(pilot: Pilot[None]) -> None:
        await showing()(pilot)
        await pilot.press(*"why does this fail? ")
        pilot.app.post_message(Paste("E  assert 12.5 == 12.50\n" * 42))
        await pilot.pause()
        await pilot.press("ctrl+j", *"and this?")

    assert snap_compare(shell(shop, opening=OPENING), run_before=paste)


def test_coming_back(shop: Sandbox, snap_compare: Compare) -> None:
    async def come_back(pilot: Pilot[None]) -> None:
        await showing(*FAILED_RUN)(pilot)
        app = pilot.app
        assert isinstance(app, Shell)
        app.show(
            Notice(
                "While you were away (0:12:05): 2 steps passed, 1 failed · 34,102"
                " tokens, $0.0812"
            )
        )
        app.query_one(Prompt).bring_back(["use two digits"], is_typing=True)
        await pilot.pause()

    assert snap_compare(
        shell(shop, f"/exec {SLUG}", opening=OPENING), run_before=come_back
    )


ASKED = (
    looks("tally/totals.py", "I look at how the amounts are kept today."),
    asks(
        "Who reads the report, and what do they do with it?",
        words=(
            "`tally/totals.py` adds up cents as whole numbers, by category and month;"
            " nothing prints them yet.\n\n"
            "1. Who reads the report, and what do they do with it?"
        ),
    ),
    asks(
        "How many expenses may there be, and how long may it take then?",
        "Is an empty month left out, or shown as 0.00?",
        words=(
            "So it is for your own evening, on a terminal. Two things:\n\n"
            "1. You say *fast*: how many expenses may there be, and how long may it"
            " take then?\n"
            "2. Is an empty month left out, or shown as `0.00`?"
        ),
        title="Monthly expense report",
        description=(
            "Whoever keeps a list of expenses sees what each month cost, by category,"
            " without a spreadsheet."
        ),
        acceptance_criteria=[
            {
                "text": "Each month is a block, the latest first",
                "check": "pytest tests/test_report.py",
            },
            {"text": "The report is fast"},
        ],
        implementation_scope=[
            {"area": "report", "text": "text on standard output"},
            {"area": "out_of_scope", "text": "files"},
            {"area": "out_of_scope", "text": "charts"},
        ],
        answered=["q1"],
    ),
)


def test_a_dialogue_with_socrates(shop: Sandbox, snap_compare: Compare) -> None:
    (shop.root / "tickets" / SLUG / "spec.yaml").write_text(TEMPLATE)
    (shop.root / "tally").mkdir()
    (shop.root / "tally" / "totals.py").write_text("def by_month(entries): ...\n")
    shop.replies(*ASKED)

    async def answer(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Shell)
        await opened(app, pilot)
        app.on_prompt_submitted(
            Prompt.Submitted("I do, every evening. It has to be fast.")
        )
        await pilot.pause()
        await opened(app, pilot)
        await showing()(pilot)
        app.home.bar.cost = NO_COST
        await pilot.pause()
        app.home.transcript.vertical_scrollbar.refresh()  # it may be a frame behind
        await pilot.pause()

    app = shell(shop, f"/socrates {SLUG}", opening=OPENING)
    assert snap_compare(app, run_before=answer, terminal_size=(100, 30))


def test_a_tiny_window(shop: Sandbox, snap_compare: Compare) -> None:
    app = shell(shop, f"/exec {SLUG}", opening=OPENING)
    assert snap_compare(app, run_before=showing(*FAILED_RUN), terminal_size=(30, 10))


THOUGHTS = (
    "They want cents. `{:>8}` pads the text, not the number.\n"
    "So the format has to say `.2f`."
)
THINKING: tuple[Event | str, ...] = (
    "why does @tally/report.py print 12.5?",
    ThinkingDelta(None, "They want ", 0.0, 4),
    ThinkingDelta(None, THOUGHTS.removeprefix("They want "), 6.2, 31),
)
ANSWERED: tuple[Event | str, ...] = (
    ReplyDelta(
        None, "`amount` is formatted with `{:>8}`, which **does not pad** the cents."
    ),
    ThinkingFinished(None, 6.2, 1_234, estimated=False),
    ReplyFinished(None, None),
)


def test_opened_thoughts(shop: Sandbox, snap_compare: Compare) -> None:
    async def look(pilot: Pilot[None]) -> None:
        await saying(*THINKING, *ANSWERED)(pilot)
        await pilot.press("ctrl+t")

    assert snap_compare(shell(shop, opening=()), run_before=look)


def test_what_was_done(shop: Sandbox, snap_compare: Compare) -> None:
    assert snap_compare(shell(shop, opening=()), run_before=showing(*DONE))


def test_diffs_side_by_side(shop: Sandbox, snap_compare: Compare) -> None:
    assert snap_compare(
        shell(shop, opening=()), run_before=showing(*DONE), terminal_size=(170, 40)
    )


@pytest.mark.parametrize(
    "keys",
    [("ctrl+up", "enter"), ("ctrl+f", *"entries"), ("pageup",)],
    ids=["a check is opened", "found", "new lines below"],
)
def test_moving_in_what_was_done(
    shop: Sandbox, snap_compare: Compare, keys: tuple[str, ...]
) -> None:
    async def move(pilot: Pilot[None]) -> None:
        await showing(*DONE)(pilot)
        await pilot.press(*keys)
        for bar in pilot.app.query(FindInput):
            bar.cursor_blink = False
        await pilot.pause()
        if keys == ("pageup",):
            await showing(Notice("Something new."))(pilot)

    assert snap_compare(
        shell(shop, opening=()), run_before=move, terminal_size=(100, 30)
    )
