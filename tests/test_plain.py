"""The shell a line at a time: from a pipe, and on a terminal that draws no screen."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

import pytest
import yaml

from cdd_agent.agents.chat import ChatAgent
from cdd_agent.agents.meaning import Meaning
from cdd_agent.changes.review import Review
from cdd_agent.cli import plain
from cdd_agent.cli.plain import PlainShell
from cdd_agent.errors import ExitCode
from cdd_agent.events.question_events import (
    ActionProposed,
    Choice,
    CommandProposed,
    Proposal,
)
from cdd_agent.faces.printer import PlainPrinter
from cdd_agent.frontend import REST
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.session.session import Session
from cdd_agent.tickets.store import TicketStore
from tests.engine.calculator import FIXED, SUB, TEST_SUB, TESTS, calculator, gives
from tests.support.forked import ran
from tests.support.injecting import fail_once
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.reviews import review_of
from tests.support.tables import each_row

TWO = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))


def scripted(
    sandbox: Sandbox, *replies: str | dict[str, object], **settings: object
) -> Sandbox:
    """A project whose model plays these."""
    entries = [
        {"reply": reply} if isinstance(reply, str) else reply for reply in replies
    ]
    sandbox.write(*TWO)
    (sandbox.root / ".cdd/script.yaml").write_text(yaml.safe_dump({"replies": entries}))
    (sandbox.root / ".cdd/config.yaml").write_text(
        yaml.safe_dump({"model": "script:.cdd/script.yaml", **settings})
    )
    return sandbox


def piped(sandbox: Sandbox, *lines: str) -> subprocess.CompletedProcess[str]:
    """What the program itself does with lines from a pipe."""
    return ran(cwd=sandbox.root, typed="".join(f"{line}\n" for line in lines))


@dataclass
class Ended:
    """The end of a shell, and what it printed."""

    code: ExitCode
    printed: str


TypeLines = Callable[..., Awaitable[Ended]]


@pytest.fixture
def type_lines(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> TypeLines:
    """A shell of this process reads the lines from a pipe."""
    sandbox.in_process()

    async def type_them(*lines: str) -> Ended:
        keyboard, typing = os.pipe()
        os.write(typing, "".join(f"{line}\n" for line in lines).encode())
        os.close(typing)
        shell = PlainShell(PlainPrinter(), keyboard, is_terminal=False)
        sandbox.frontend = shell
        try:
            code = await shell.run(sandbox.session(shell.emit), ())
        finally:
            os.close(keyboard)
        return Ended(code, capsys.readouterr().out)

    return type_them


@pytest.mark.fork
def test_a_run_from_a_pipe(sandbox: Sandbox) -> None:
    scripted(sandbox, says("a.txt", "good", "Here is a."), says("b.txt", "good"))
    ended = piped(
        sandbox, f"/exec {SLUG}", "continue", "/status", "all", "!echo from me"
    )
    assert ended.returncode == 0, ended.stderr
    assert sandbox.statuses() == ["completed", "completed"]
    assert "Here is a." in ended.stdout
    assert "│ from me" in ended.stdout
    assert "\x1b" not in ended.stdout
    assert " > " not in ended.stdout


async def test_the_first_line_that_fails_is_the_last_and_gives_the_code(
    sandbox: Sandbox, type_lines: TypeLines
) -> None:
    sandbox.write(*TWO)
    ended = await type_lines("/nonsense", f"/exec {SLUG}")
    assert ended.code == 2
    assert "/nonsense" in ended.printed
    assert "Make a.txt" not in ended.printed


async def test_words_of_the_executor_after_the_last_step_reach_no_model(
    sandbox: Sandbox, type_lines: TypeLines
) -> None:
    sandbox.write(*TWO).replies(says("a.txt", "good"), says("b.txt", "good"))
    lines = ("continue", "c", "n", "all", "skip", "status")
    ended = await type_lines(f"/exec {SLUG}", "all", *lines, "undo", "redo")
    assert ended.code == ExitCode.DONE
    assert ended.printed.count(f"/undo {SLUG}") == 1 + len(lines)
    assert sandbox.statuses() == ["completed", "completed"]
    assert len(sandbox.model.requests) == 2


async def test_the_next_line_answers_a_question(
    sandbox: Sandbox, type_lines: TypeLines
) -> None:
    sandbox.write(*TWO).replies(*[says("a.txt", "good")] * 2)
    sandbox.flags = {"approval": "ask"}
    ended = await type_lines(f"/exec {SLUG}", "continue", "perhaps", "n", "/status")
    assert ended.code == 1
    assert not (sandbox.root / "a.txt").exists()
    assert (await type_lines(f"/exec {SLUG}", "continue", "y")).code == 0
    assert sandbox.text("a.txt") == "good\n"


async def test_no_line_of_a_script_answers_whether_tests_may_go(
    sandbox: Sandbox, type_lines: TypeLines
) -> None:
    step = Step("calc.py", also=("`tests/test_calc.py`",))
    reply = gives(
        calc_dot_py=FIXED, tests__test_calc_dot_py=TESTS.replace(TEST_SUB, "")
    )
    calculator(sandbox, step).replies(reply)
    sandbox.flags = {"max_attempts": 1}
    ended = await type_lines(f"/exec {SLUG}", "continue", "y")
    assert (ended.code, sandbox.statuses()) == (1, ["failed"])
    assert f"`**Removes tests:** {SUB}`" in ended.printed


async def test_nothing_is_done_without_an_answer(
    sandbox: Sandbox, type_lines: TypeLines
) -> None:
    sandbox.write(*TWO).replies(says("a.txt", "good"))
    sandbox.flags = {"approval": "ask"}
    assert (await type_lines(f"/exec {SLUG}", "continue")).code == 1
    assert not (sandbox.root / "a.txt").exists()


OLD = "".join(f"line {number}\n" for number in range(1, 31))
EDIT = "a.txt\n<<<<<<< SEARCH\nline 2\n=======\ngood\n>>>>>>> REPLACE\n"
EDIT += "<<<<<<< SEARCH\nline 28\n=======\nunwanted\n>>>>>>> REPLACE\n"


async def test_changes_are_reviewed_in_words(
    sandbox: Sandbox, type_lines: TypeLines
) -> None:
    sandbox.write(*TWO).replies(EDIT)
    sandbox.flags = {"approval": "ask"}
    (sandbox.root / "a.txt").write_text(OLD)
    lines = ("h", "perhaps", "y", "b", "y", "n not that", "y")
    ended = await type_lines(f"/exec {SLUG}", "continue", *lines)
    assert ended.code == 0, ended.printed
    assert sandbox.text("a.txt") == OLD.replace("line 2\n", "good\n")
    for said in (
        "change a.txt  +2 −2",
        "  h  choose hunk by hunk",
        "1 of 2: change a.txt, line 2  +1 −1",
        "2 of 2: change a.txt, line 28  +1 −1",
        "Apply 1 of 2 parts of step 1?",
        "left out: a.txt, line 28: not that",
    ):
        assert said in ended.printed
    assert "e  edit" not in ended.printed  # a pipe has no terminal to lend


async def test_a_reason_and_the_whole_run_from_a_pipe(
    sandbox: Sandbox, type_lines: TypeLines
) -> None:
    sandbox.write(*TWO).replies(
        says("a.txt", "bad"), says("a.txt", "good"), says("b.txt", "good")
    )
    sandbox.flags = {"approval": "ask"}
    ended = await type_lines(f"/exec {SLUG}", "continue", "n say good", "a", "continue")
    assert ended.code == 0, ended.printed
    assert sandbox.statuses() == ["completed", "completed"]
    assert "asks before it changes files again" in ended.printed


async def test_an_empty_pipe_ends_the_shell(type_lines: TypeLines) -> None:
    assert (await type_lines()).code == 0


@pytest.mark.fork
def test_unfinished_lines_and_invalid_bytes_are_lines(sandbox: Sandbox) -> None:
    scripted(sandbox)
    ended = subprocess.run(
        [sys.executable, "-m", "cdd_agent"],
        input=b"/stat\xffus\r\n",
        capture_output=True,
        cwd=sandbox.root,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert piped(sandbox, "/status").stdout == piped(sandbox, "/status\r").stdout


if os.name != "nt":
    from tests.support.terminals import CDD, PATIENCE, Terminal

    @pytest.fixture
    def terminal(sandbox: Sandbox) -> Iterator[Callable[..., Terminal]]:
        opened = list[Terminal]()

        def at(*flags: str) -> Terminal:
            opened.append(Terminal(sandbox.root, CDD, *(flags or ("--plain",))))
            opened[-1].until(lambda: "chat > " in opened[-1].text)
            return opened[-1]

        yield at
        for one in opened:
            one.end()

    @pytest.mark.pty
    def test_a_terminal_shows_what_enter_does_and_runs_it(
        sandbox: Sandbox, terminal: Callable[..., Terminal]
    ) -> None:
        scripted(sandbox, says("a.txt", "good"), says("b.txt", "good"))
        shell = terminal()
        shell.type(f"/exec {SLUG}")
        shell.until(lambda: "(Enter: run step 1, Make a.txt)" in shell.text)
        shell.type("")
        shell.until(lambda: "(Enter: run step 2, Make b.txt)" in shell.text)
        assert "\x1b[?1049h" not in shell.seen.decode()  # no screen of its own
        shell.type("/chat")
        shell.until(lambda: shell.text.rstrip().endswith("chat >"))
        shell.type("exit")
        shell.until(shell.has_ended)
        assert shell.code == 0
        assert sandbox.statuses() == ["completed", "pending"]

    @pytest.mark.pty
    @pytest.mark.parametrize("words", [("--resume",), ("socrates", SLUG), ("model",)])
    def test_a_session_that_continues_after_its_first_line_greets(
        sandbox: Sandbox,
        terminal: Callable[..., Terminal],
        words: tuple[str, ...],
    ) -> None:
        sandbox.write()
        shell = terminal("--plain", *words)
        assert "Ask anything" in shell.text
        assert shell.text.count("No model set up yet. Choose one") == 1

    def answer(shell: Terminal, line: str, come: Callable[[], bool]) -> None:
        """Read the question that is seen, answer it, and wait for what comes of that.
        Where the machine stalls, the time to read it begins later for the shell than
        here; when it says that a line came too early, it has begun.
        """
        for _ in range(2):
            refused = shell.text.count("Ignored as an answer")
            sleep(REST)
            shell.type(line)
            shell.until(
                lambda: come() or shell.text.count("Ignored as an answer") > refused  # noqa: B023
            )
            if come():
                return
        pytest.fail(f"{line} is no answer, however late it comes: {shell.text}")

    @pytest.mark.pty
    def test_a_read_only_command_breaks_no_line_of_the_reply(
        sandbox: Sandbox, terminal: Callable[..., Terminal]
    ) -> None:
        words = "beginning of " + "a long line " * 40
        scripted(sandbox)
        script = {"pace": 100, "replies": [{"reply": says("a.txt", "good", words)}]}
        (sandbox.root / ".cdd/script.yaml").write_text(yaml.safe_dump(script))
        shell = terminal()
        shell.type(f"/exec {SLUG}")
        shell.until(lambda: "(Enter: run step 1" in shell.text)
        shell.type("continue")
        shell.until(lambda: "asking script" in shell.text)
        shell.type("/cost")
        shell.until(lambda: "This session" in shell.text)
        shell.until(lambda: "Step 1 completed" in shell.text)
        assert words.strip() in shell.text

    @dataclass
    class Watch:
        """The time by which lines are judged. It passes only when a test says so, and
        is looked at when one is read.
        """

        now: float = 0.0
        is_looked_at: threading.Event = field(default_factory=threading.Event)

        def __call__(self) -> float:
            self.is_looked_at.set()
            return self.now

    @dataclass
    class AtTerminal:
        """A shell of this process that takes a pipe for a terminal, and a user."""

        shell: PlainShell
        watch: Watch
        typing: int
        capsys: pytest.CaptureFixture[str]
        seen: str = ""

        def type(self, line: str) -> None:
            os.write(self.typing, f"{line}\n".encode())

        async def until(self, come: Callable[[str], bool]) -> None:
            """Wait for something among what was told since the last time."""
            end = monotonic() + PATIENCE
            told = ""
            while not come(told):
                assert monotonic() < end, self.seen
                await asyncio.sleep(0.01)
                told += (new := self.capsys.readouterr().out)
                self.seen += new

    @asynccontextmanager
    async def at_terminal(
        sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> AsyncIterator[AtTerminal]:
        keyboard, typing = os.pipe()
        watch = Watch()
        shell = PlainShell(PlainPrinter(), keyboard, is_terminal=True, now=watch)
        sandbox.in_process().frontend = shell
        running = asyncio.create_task(shell.run(sandbox.session(shell.emit), ()))
        person = AtTerminal(shell, watch, typing, capsys)
        await person.until(lambda told: "chat > " in told)
        try:
            yield person
            person.type("/exit")
            assert await asyncio.wait_for(running, PATIENCE) == ExitCode.DONE
        finally:
            running.cancel()
            os.close(typing)
            await asyncio.to_thread(
                lambda: [t.join() for t in threading.enumerate() if t.name == "lines"]
            )
            os.close(keyboard)

    @each_row(
        ("where", "name", "line"),
        [
            (ChatAgent, "say", "hello"),
            (Session, "meaning", "hello"),
            (PlainPrinter, "show", "/list"),
            (TicketStore, "list", "/list"),
            (Session, "carry_out", "hello"),
        ],
    )
    async def test_a_fault_prints_one_line_and_the_session_continues(
        sandbox: Sandbox,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        where: type,
        name: str,
        line: str,
    ) -> None:
        async with at_terminal(sandbox, capsys) as person:
            fail_once(monkeypatch, where, name)
            person.type(line)
            await person.until(lambda told: "errors.log" in told)
            (said,) = [
                row
                for row in person.seen.splitlines()
                if "Internal error in cdd" in row
            ]
            assert "Injected" in said
            assert "Traceback (most recent" not in person.seen
            log = sandbox.root / said.rpartition(" ")[2]
            assert "Injected" in log.read_text()
            person.type("/cost")
            await person.until(lambda told: "This session" in told)

    @pytest.mark.parametrize("word", ["exit", ":q", "/exit"])
    async def test_a_word_that_quits_stops_the_turn_and_its_question(
        sandbox: Sandbox, capsys: pytest.CaptureFixture[str], word: str
    ) -> None:
        sandbox.write(*TWO)
        sandbox.flags = {"approval": "ask"}
        sandbox.model = ScriptedModel([says("a.txt", "good")])
        async with at_terminal(sandbox, capsys) as person:
            person.type(f"/exec {SLUG}")
            await person.until(lambda told: "(Enter: run step 1" in told)
            person.type("continue")
            await person.until(lambda told: "[y] apply" in told)
            person.type(word)
            await person.until(lambda told: "Stopped" in told)
        assert not (sandbox.root / "a.txt").exists()

    async def test_a_fault_in_a_read_only_command_stops_nothing(
        sandbox: Sandbox,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        sandbox.model = ScriptedModel(["One " + "long " * 1000], pace=40)
        async with at_terminal(sandbox, capsys) as person:
            person.type("hello")
            await person.until(lambda told: "asking" in told)
            fail_once(monkeypatch, TicketStore, "list")
            person.type("/list")
            await person.until(lambda told: "errors.log" in told)
            person.type("/cost")
            await person.until(lambda told: "This session" in told)
            assert person.seen.count("chat > ") == 1  # the turn still runs
            sandbox.model.pace = 0
            await person.until(lambda told: "chat > " in told)
            assert "long long" in person.seen

    async def test_ctrl_c_as_a_turn_ends_shows_the_prompt_once(
        sandbox: Sandbox,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        handlers: list[Callable[[], None]] = []
        monkeypatch.setattr(
            plain, "handle_signals", lambda names, handler: handlers.append(handler)
        )
        carry_out = plain.carry_out

        async def interrupt_at_end(session: Session, meaning: Meaning) -> None:
            await carry_out(session, meaning)
            if meaning.line == "/list":
                asyncio.get_running_loop().call_soon(handlers[0])

        monkeypatch.setattr(plain, "carry_out", interrupt_at_end)
        async with at_terminal(sandbox, capsys) as person:
            prompts = person.seen.count("chat > ")
            person.type("/list")
            await person.until(lambda told: "Ctrl+C again" in told)
            person.type("/cost")
            await person.until(lambda told: "This session" in told)
            assert person.seen.partition("This session")[0].count("chat > ") == (
                prompts + 1
            )

    @pytest.mark.parametrize("letter", ["q", "h", "x"])
    async def test_a_letter_that_is_no_answer_leaves_nothing(
        sandbox: Sandbox, capsys: pytest.CaptureFixture[str], letter: str
    ) -> None:
        sandbox.write(*TWO).replies(says("a.txt", "good"))
        sandbox.flags = {"approval": "ask"}
        async with at_terminal(sandbox, capsys) as person:
            person.type(f"/exec {SLUG}")
            await person.until(lambda told: "executor" in told and " > " in told)
            person.type("continue")
            await person.until(lambda told: "[y] apply" in told)
            person.watch.now += REST
            person.type(letter)
            await person.until(lambda told: "Type one of the letters" in told)
            person.watch.now += REST
            person.type("y")
            await person.until(lambda told: "> " in told and "a.txt" in told)

    async def test_lines_that_come_at_once_are_one_text_that_enter_sends(
        sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        sandbox.model = ScriptedModel(["One.", "Two.", "Three."])
        async with at_terminal(sandbox, capsys) as person:
            person.type("hello")
            await person.until(lambda told: "One." in told and "chat > " in told)
            person.type("\x1b[31mFAILED\x1b[0m test_a\r\n\n\tmore")
            await person.until(
                lambda told: "Pasted 3 lines" in told and "chat > " in told
            )
            assert len(sandbox.model.requests) == 1
            person.type("")
            await person.until(lambda told: "Two." in told and "chat > " in told)
            person.type("a\nb")
            await person.until(lambda told: "Pasted 2 lines" in told)
            person.type("c")
            await person.until(lambda told: "Three." in told and "chat > " in told)
        sent = [request.messages[-1].content for request in sandbox.model.requests]
        assert "FAILED test_a\n\n\tmore" in sent[1]
        assert "a\nb\nc" in sent[2]

    async def test_a_paste_answers_no_question_and_is_still_there_behind_it(
        sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        sandbox.model = ScriptedModel(["One."])
        async with at_terminal(sandbox, capsys) as person:
            person.type("a\nb")
            await person.until(lambda told: "Pasted 2 lines" in told)
            answer = asyncio.create_task(person.shell.approve(QUESTIONS[0]))
            await person.until(lambda told: "[y] yes" in told)
            person.watch.now += REST
            person.type("y\ny")
            await person.until(lambda told: "Pasted 2 lines" in told)
            assert not answer.done()
            person.type("")
            await person.until(lambda told: "Type one of the letters" in told)
            person.watch.now += REST
            person.type("y")
            assert await answer is Choice.YES
            person.type("")
            await person.until(lambda told: "One." in told)
        assert "a\nb" in sandbox.model.requests[0].messages[-1].content

    QUESTIONS = (
        CommandProposed("rm -rf build", "`rm` is not on the list"),
        review_of(1, {"a.txt": (None, "a\n"), "b.txt": ("b\n", "c\n")}),
        ActionProposed(1, 2, "Write it", "text"),
    )

    async def asked_while_typing(
        person: AtTerminal, question: Proposal | Review | str, line: str
    ) -> str:
        """The line is read, and before anybody could take it there is the question."""
        person.watch.is_looked_at.clear()
        person.type(line)
        assert person.watch.is_looked_at.wait(PATIENCE)
        if isinstance(question, str):
            return await person.shell.ask(question)
        if isinstance(question, Review):
            return (await person.shell.review(question)).choice
        return await person.shell.approve(question)

    @each_row(
        "question",
        [*QUESTIONS, "Which port?"],
        ids=lambda question: type(question).__name__,
    )
    @each_row("line", ["y", "yes", "Y", "n", "8080"])
    async def test_a_line_typed_before_the_question_was_readable_is_no_answer(
        sandbox: Sandbox,
        capsys: pytest.CaptureFixture[str],
        question: Proposal | Review | str,
        line: str,
    ) -> None:
        async with at_terminal(sandbox, capsys) as person:
            answer = asyncio.create_task(asked_while_typing(person, question, line))
            await person.until(lambda told: "Ignored as an answer" in told)
            person.type(line)  # at once
            await person.until(lambda told: "Ignored as an answer" in told)
            assert not answer.done()
            person.watch.now += REST
            person.type("y")
            assert await answer in ("y", Choice.YES)

    async def test_a_question_is_not_answered_by_earlier_lines(
        sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
    ) -> None:
        sandbox.write(*TWO)
        sandbox.flags = {"approval": "ask"}
        sandbox.model = ScriptedModel([says("a.txt", "good", "long " * 1000)], pace=40)
        async with at_terminal(sandbox, capsys) as person:
            person.type(f"/exec {SLUG}")
            await person.until(lambda told: "(Enter: run step 1" in told)
            person.type("continue")
            await person.until(lambda told: "asking" in told)
            person.type("y")
            await person.until(lambda told: "Queued" in told)
            sandbox.model.pace = 0
            await person.until(lambda told: "[y] apply" in told)
            person.watch.now += REST
            person.type("n")
            await person.until(lambda told: "Not sent: y" in told)
            person.type("/chat")
            await person.until(lambda told: "chat > " in told)
        assert not (sandbox.root / "a.txt").exists()

    @pytest.mark.pty
    def test_the_editor_has_the_terminal_to_itself(
        sandbox: Sandbox,
        terminal: Callable[..., Terminal],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        script = sandbox.root / "editor.py"
        script.write_text(
            "import pathlib, sys\n"
            "pathlib.Path(sys.argv[1]).write_text(input('what instead? ') + ' and"
            " good\\n')\n"
        )
        monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
        scripted(sandbox, says("a.txt", "as proposed"), approval="ask")
        shell = terminal()
        shell.type(f"/exec {SLUG}")
        shell.until(lambda: "(Enter: run step 1" in shell.text)
        shell.type("continue")
        shell.until(lambda: "[e] edit" in shell.text)
        answer(shell, "e", lambda: "what instead?" in shell.text)
        shell.type("mine")
        shell.until(
            lambda: "[e] edit" in shell.text.partition("create a.txt (edited)")[2]
        )
        answer(shell, "y", lambda: "Step 1 completed" in shell.text)
        assert sandbox.text("a.txt") == "mine and good\n"
        shell.type("/status")  # what is typed is read again
        shell.until(lambda: "Plan" in shell.text or "2. Make b.txt" in shell.text)

    @pytest.mark.pty
    def test_ctrl_c_stops_the_turn_and_then_leaves(
        sandbox: Sandbox, terminal: Callable[..., Terminal]
    ) -> None:
        scripted(sandbox, {"reply": says("a.txt", "good"), "slow": 60})
        shell = terminal()
        shell.type(f"/exec {SLUG}")
        shell.until(lambda: "(Enter: run step 1" in shell.text)
        shell.type("continue")
        shell.until(lambda: "asking script" in shell.text)
        shell.type("all")  # it is not sent: the turn that it waited for was stopped
        shell.until(lambda: "Queued" in shell.text)
        os.kill(shell.pid, signal.SIGINT)
        shell.until(lambda: "Not sent: all" in shell.text)
        assert sandbox.statuses() == ["pending", "pending"]
        os.kill(shell.pid, signal.SIGINT)
        shell.until(lambda: "Ctrl+C again" in shell.text)
        for _ in range(9):  # the second has to come within three seconds of the first
            offered = shell.text.count("Ctrl+C again")
            os.kill(shell.pid, signal.SIGINT)
            shell.until(
                lambda: (
                    shell.has_ended() or shell.text.count("Ctrl+C again") > offered  # noqa: B023
                )
            )
            if shell.has_ended():
                break
        assert shell.code == 0

    @pytest.mark.pty
    def test_closing_the_terminal_ends_the_shell(
        sandbox: Sandbox, terminal: Callable[..., Terminal]
    ) -> None:
        scripted(sandbox, {"reply": says("a.txt", "good"), "slow": 60})
        shell = terminal()
        os.write(shell.master, b"\x04")
        shell.until(shell.has_ended)
        assert shell.code == 0
        shell = terminal()
        shell.type(f"/exec {SLUG}")
        shell.until(lambda: "(Enter: run step 1" in shell.text)
        shell.type("continue")
        shell.until(lambda: "asking script" in shell.text)
        shell.close()
        shell.until(shell.has_ended)
        assert sandbox.statuses() == ["pending", "pending"]


async def test_input_that_cannot_be_read_is_empty_input(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    """As under `nohup` at a terminal."""
    with (tmp_path / "write-only").open("w") as file:
        shell = PlainShell(PlainPrinter(), file.fileno(), is_terminal=False)
        sandbox.in_process().frontend = shell
        assert await shell.run(sandbox.session(shell.emit), ()) == ExitCode.DONE


@pytest.mark.fork
def test_a_dumb_terminal_gets_the_plain_shell(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(sandbox)
    Path(sandbox.root / "x").touch()
    monkeypatch.setenv("TERM", "dumb")
    assert "Say words" not in piped(sandbox, "/list").stdout
    assert SLUG in piped(sandbox, "/list").stdout


async def test_earlier_sessions_are_listed_and_resumed(
    sandbox: Sandbox, type_lines: TypeLines
) -> None:
    sandbox.write(*TWO).replies(says("a.txt", "good", "Here is a."), "Hello.")
    begun = await type_lines(f"/exec {SLUG}", "continue", "close", "hi there")
    assert begun.code == 0
    listed = await type_lines("/resume list")
    run, chat = (
        next(line for line in listed.printed.splitlines() if f"  {word}" in line)
        for word in (SLUG, "chat-")
    )
    assert "1/2 in progress" in run
    assert "Hello." in chat

    again = await type_lines(f"/resume {SLUG}")
    assert again.code == 0
    assert "> continue" in again.printed
    assert "│ Here is a." in again.printed
    assert "1 of 2 steps" in again.printed


@pytest.mark.fork
@pytest.mark.parametrize(
    ("words", "is_greeted"),
    [
        ((), True),
        (("resume", "list"), False),
        (("--resume", "list"), False),
        (("model",), False),
        (("model", "openai/m", "http://127.0.0.1:9/v1", "--save"), False),
    ],
)
def test_a_single_line_prints_its_result_alone(
    sandbox: Sandbox, words: tuple[str, ...], is_greeted: bool
) -> None:
    sandbox.write()
    printed = ran(*words, cwd=sandbox.root).stdout
    assert ("Ask anything" in printed) is is_greeted
    needs_setup = words in [(), ("model",)]
    assert ("No model set up yet" in printed) is needs_setup


@pytest.mark.fork
def test_the_flag_resumes_the_last_session(sandbox: Sandbox) -> None:
    scripted(sandbox, says("a.txt", "good"), says("b.txt", "good"))
    assert piped(sandbox, f"/exec {SLUG}", "continue").returncode == 0

    def begun(*flags: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return ran(*flags, cwd=sandbox.root, typed=typed)

    assert SLUG in begun("--resume", "list").stdout
    assert begun("--resume", "no-such-thing").returncode == 2
    (sandbox.root / ".cdd/script.yaml").write_text(
        yaml.safe_dump({"replies": [{"reply": says("b.txt", "good")}]})
    )
    ended = begun("--resume", typed="all\n")
    assert ended.returncode == 0, ended.stdout
    assert sandbox.statuses() == ["completed", "completed"]
