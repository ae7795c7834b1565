"""The shell calls a user who looks elsewhere, and later says what happened."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import convert
from textual import events

from cdd_agent.cost import Cost
from cdd_agent.events.shell_events import AgentChanged
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.settings.config import Notifications
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.tui.attention import Attention, TerminalKind
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.tui.person import FingerTime, Person, opened, shell

KNOWS_ALL = TerminalKind(titles=True, desktop="osc777", progress=True)
KNOWS_NOTHING = TerminalKind(titles=False, desktop="", progress=False)


class Called:
    """An `Attention` and what it has written."""

    def __init__(self, terminal: TerminalKind = KNOWS_ALL, **settings: object) -> None:
        self.written = ""
        self.spent = Cost()
        self.attention = Attention(self._write, terminal, "shop")
        self.attention.open(convert(settings, Notifications), lambda: self.spent)

    def _write(self, text: str) -> None:
        self.written += text

    def writes(self, act: Callable[[], object]) -> str:
        self.written = ""
        act()
        return self.written

    def run(self, total: int = 3) -> None:
        """A run is opened, and a turn begins."""
        self.attention.receive(AgentChanged("executor", "feature-x"))
        steps = tuple(
            StepSummary(number, f"Step {number}") for number in range(1, total + 1)
        )
        self.attention.receive(PlanOpened("feature-x", "X", steps, resumed=False))
        self.attention.begin()

    def finish(
        self,
        step: int,
        status: StepStatus = StepStatus.COMPLETED,
        title: str = "Write it",
    ) -> None:
        done = step if status is StepStatus.COMPLETED else step - 1
        self.attention.receive(
            StepFinished(
                *(step, title, status, Verification.PASSED),
                done=done,
                total=3,
            )
        )


def test_the_title_and_the_taskbar_follow_a_run_and_are_restored() -> None:
    called = Called()
    assert called.written == "\x1b[22;0t\x1b]2;shop · cdd\x07"
    assert called.writes(called.run).endswith(
        "\x1b]2;… 0/3 · feature-x · cdd\x07\x1b]9;4;1;0\x07"
    )
    assert (
        called.writes(lambda: called.finish(1))
        == "\x1b]2;… 1/3 · feature-x · cdd\x07\x1b]9;4;1;33\x07"
    )
    assert (
        called.writes(lambda: called.attention.ask("May it?"))
        == "\x1b]2;? 1/3 · feature-x · cdd\x07\x1b]9;4;4;33\x07"
    )
    called.attention.answered()
    called.finish(2, StepStatus.FAILED)
    assert (
        called.writes(called.attention.end)
        == "\x1b]2;✗ 1/3 · feature-x · cdd\x07\x1b]9;4;2;33\x07"
    )
    assert called.writes(called.attention.close) == "\x1b]9;4;0\x07\x1b[23;0t"
    assert called.writes(called.run) == ""


def test_a_lent_terminal_gets_no_output_and_has_everything_again_after() -> None:
    called = Called()
    called.run()
    called.attention.look_away()
    assert called.writes(called.attention.lend) == "\x1b]9;4;0\x07\x1b[23;0t"
    assert called.writes(lambda: called.finish(1)) == ""
    assert called.writes(called.attention.end) == ""
    assert (
        called.writes(called.attention.take_back)
        == "\x1b[22;0t\x1b]2;1/3 · feature-x · cdd\x07"
    )


def test_a_user_who_looks_is_not_called() -> None:
    called = Called(title=False, progress="off")
    called.run()
    called.attention.ask("May it?")
    called.attention.end()
    assert called.written == ""


CALLS: tuple[tuple[Callable[[Called], object], str], ...] = (
    (
        lambda called: called.attention.ask("May step 2 write this?\n  create a"),
        "answer: May step 2 write this?",
    ),
    (
        lambda called: (called.finish(1), called.attention.end()),
        "Step 1 of 3 finished: Write it",
    ),
    (
        lambda called: (called.finish(3), called.attention.end()),
        "All 3 steps finished",
    ),
    (
        lambda called: (
            called.finish(1, StepStatus.FAILED),
            called.attention.end(),
        ),
        "Step 1 failed: Write it",
    ),
    (lambda called: called.attention.end("No budget left"), "No budget left"),
    (lambda called: called.attention.end(), "It is your turn"),
)


def test_the_user_is_called_when_looking_away() -> None:
    for act, text in CALLS:
        called = Called(title=False, progress="off")
        called.run()
        called.attention.look_away()
        written = called.writes(lambda act=act, called=called: act(called))  # type: ignore[misc]
        assert written.startswith("\x07\x1b]777;notify;cdd · shop;"), text
        assert written.endswith(f"{text}\x07"), text


def test_a_user_who_stopped_the_run_is_not_called() -> None:
    called = Called(title=False, progress="off")
    called.run()
    called.attention.look_away()
    assert called.writes(lambda: called.attention.end(stopped=True)) == ""


def test_all_can_be_turned_off() -> None:
    called = Called(bell=False, desktop="off", title=False, progress="off")
    called.run()
    called.attention.look_away()
    called.attention.ask("May it?")
    called.finish(1)
    called.attention.end()
    called.attention.close()
    assert called.written == ""


def test_a_terminal_that_knows_nothing_gets_the_bell_alone() -> None:
    called = Called(KNOWS_NOTHING)
    called.run()
    called.attention.look_away()
    called.attention.ask("May it?")
    called.attention.close()
    assert called.written == "\x07"


def test_settings_take_precedence_over_the_kind_of_terminal() -> None:
    called = Called(KNOWS_NOTHING, bell=False, desktop="osc9", progress="on")
    called.run()
    called.attention.look_away()
    assert "\x1b]9;cdd · shop: It is your turn\x07" in called.writes(
        called.attention.end
    )


def test_tmux_is_asked_to_pass_a_notification_on() -> None:
    terminal = TerminalKind(titles=False, desktop="", progress=False, is_tmux=True)
    called = Called(terminal, bell=False, desktop="osc9")
    called.attention.look_away()
    assert (
        called.writes(called.attention.end)
        == "\x1bPtmux;\x1b\x1b]9;cdd · shop: It is your turn\x07\x1b\\"
    )


def test_the_title_of_a_step_cannot_steer_the_terminal() -> None:
    for title in (
        "a\x07\x1b]2;owned\x07",
        "a\x1b[2J",
        "a\x9c\x9b2J",
        "a\nb\u202ec;d",
        "x" * 500,
    ):
        called = Called()
        called.run()
        called.attention.look_away()
        called.written = ""
        called.finish(1, title=title)
        called.attention.end()
        (note,) = [part for part in called.written.split("\x07") if "notify" in part]
        assert note.count("\x1b") == 1, title
        assert note.count(";") == 3, title
        assert note.removeprefix("\x1b]777").isprintable(), title
        assert len(note) < 250, title


TERMINALS: tuple[tuple[dict[str, str], tuple[bool, str, bool]], ...] = (
    ({"TERM": "xterm-256color"}, (True, "", False)),
    ({"TERM": "xterm-ghostty", "TERM_PROGRAM": "ghostty"}, (True, "osc777", True)),
    (
        {
            "TERM": "xterm-256color",
            "TERM_PROGRAM": "iTerm.app",
            "TERM_PROGRAM_VERSION": "3.5.2",
        },
        (True, "osc9", False),
    ),
    (
        {
            "TERM": "xterm-256color",
            "TERM_PROGRAM": "iTerm.app",
            "TERM_PROGRAM_VERSION": "3.6.9",
        },
        (True, "osc9", True),
    ),
    ({"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}, (True, "osc777", False)),
    ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, (True, "osc777", False)),
    ({"TERM": "xterm-256color", "VTE_VERSION": "8201"}, (True, "osc777", True)),
    (
        {
            "TERM": "xterm-256color",
            "TERM_PROGRAM": "WezTerm",
            "TERM_PROGRAM_VERSION": "20240203-1108",
        },
        (True, "osc777", False),
    ),
    ({"WT_SESSION": "x"}, (True, "", True)),
    (
        {"TERM": "tmux-256color", "TMUX": "x", "VTE_VERSION": "8201"},
        (True, "", False),
    ),
    ({"TERM": "linux"}, (False, "", False)),
    ({"TERM": "vt100"}, (False, "", False)),
    ({}, (False, "", False)),
)


def test_a_terminal_is_sent_only_what_it_is_known_to_understand() -> None:
    for environment, kind in TERMINALS:
        found = TerminalKind.of(environment)
        assert (found.titles, found.desktop, found.progress) == kind, environment


def test_a_user_who_returns_reads_what_happened() -> None:
    called = Called()
    called.run()
    called.attention.look_away()
    called.finish(1)
    called.finish(2, StepStatus.FAILED)
    called.spent = Cost(tokens=12_345, usd=0.08)
    called.attention.end("The budget is used up")
    told = called.attention.look_back()
    assert re.match(
        r"While you were away \(0:\d\d:\d\d\): 1 step passed, 1 failed · 12,345 tokens,"
        r" \$0\.0800",
        told,
    )
    assert told.endswith("error: The budget is used up · it is your turn")


def test_a_user_who_returns_to_a_question_reads_so() -> None:
    called = Called()
    called.run()
    called.attention.look_away()
    called.attention.ask("May it?")
    assert called.attention.look_back().endswith("1 question · one needs your answer")


def test_a_user_who_missed_nothing_reads_nothing() -> None:
    called = Called()
    called.run()
    called.attention.look_away()
    called.spent = Cost(tokens=10)
    assert called.attention.look_back() == ""
    called.finish(1)
    assert called.attention.look_back() == ""


async def away(person: Person) -> None:
    person.app.post_message(events.AppBlur())
    await person.until(lambda: not person.app.app_focus)


async def back(person: Person) -> None:
    person.app.post_message(events.AppFocus())
    await person.until(lambda: person.app.app_focus)


@asynccontextmanager
async def called_at(sandbox: Sandbox) -> AsyncIterator[tuple[Person, list[str]]]:
    """A shell at a terminal that understands all it is sent, and what is written."""
    written = list[str]()
    app = shell(sandbox, f"/exec {SLUG}", time=(time := FingerTime()))
    app.attention = Attention(written.append, KNOWS_ALL, "shop")
    async with app.run_test() as pilot:
        await opened(app, pilot)
        yield Person(app, pilot, time), written


async def test_a_user_who_walks_away_is_called_and_later_reads_what_happened(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"approval": "ask", "max_attempts": 1}
    sandbox.write(Step("a.txt"), Step("b.txt", depends="Step 1"))
    sandbox.replies(says("a.txt", "good"), "I cannot.")
    async with called_at(sandbox) as (person, written):
        await away(person)
        await person.begin("all")
        await person.until_asked()
        assert any(
            "Needs your answer: Apply these changes of step 1?" in text
            for text in written
        )
        await back(person)
        assert "one needs your answer" in " ".join(person.told.split())
        await away(person)
        await person.answer("y")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["completed", "failed"]
        assert "\x07" in written
        assert any("notify;" in text and "Step 2 failed" in text for text in written)
        assert any("1/2" in text for text in written)
        assert person.told.count("While you were away") == 1

        await back(person)
        assert person.told.count("While you were away") == 2
        assert "1 step unverified, 1 failed" in person.told
        await away(person)
        await back(person)
        assert person.told.count("While you were away") == 2
