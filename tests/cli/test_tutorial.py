"""The story of docs/tutorial.md, from an empty folder to a finished ticket: typed into
the real shell, with every way of leaving it on the way; and without a screen.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import sleep

import pytest

from cdd_agent.cli.main import main
from cdd_agent.tui.quiet_enter import QUIET
from tests.support.forked import ran
from tests.support.held_replies import VARIABLE
from tests.support.screens import Screen
from tests.support.terminals import CDD, Terminal

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "docs/tutorial/script.yaml"
SLUG = "feature-reading-time"
SIZE = 120, 120
"""Nothing that is told in one sitting goes out of sight."""

COUNT = "200 words a minute, and a started minute counts. On a command line."
MISSING = "One line on standard error and exit code 2. An empty file takes 0 minutes."
ONE_MODULE = "Yes, one module."
README = "Show the command in a README, too."
LINES = [
    *("/init", "/new feature reading-time"),
    *(f"/socrates {SLUG}", COUNT, MISSING, "approve"),
    *(f"/plan {SLUG}", ONE_MODULE, README, "approve"),
    *(f"/exec {SLUG}", "continue", "continue", "retry"),
]
"""The lines that a person types in the tutorial."""


def test_the_tutorial_says_to_type_what_is_typed_here() -> None:
    text = (REPOSITORY / "docs/tutorial.md").read_text(encoding="utf-8")
    assert re.findall(r"^❯ (.+)$", text, re.MULTILINE) == LINES


def test_the_pictures_of_the_tutorial_are_there() -> None:
    text = (REPOSITORY / "docs/tutorial.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"\]\(tutorial/([\w-]+\.svg)\)", text))
    assert shown == {path.name for path in SCRIPT.parent.glob("*.svg")}


class Shell:
    """The shell in a terminal, and somebody who types, and reads what is new on the
    screen.
    """

    def __init__(self, terminal: Terminal, hold: Path) -> None:
        self._terminal = terminal
        self._hold = hold
        self._screen = Screen(terminal, *SIZE)
        self._before = ""
        self._wait_for("❯")

    def say(self, line: str, *told: str) -> None:
        """Send a line, and wait until the shell has told all of this and is at rest."""
        self.begin(line, *told)
        self._terminal.until(self._is_at_rest)

    def begin(self, line: str, *told: str) -> None:
        """Send a line, and come back as soon as all of this was told. An empty line
        counts once its effect could be read.
        """
        if not line:
            sleep(2 * QUIET)
        self._before = self._screen.text
        self._terminal.type(line)
        self._wait_for(*told)

    def begin_reply(self, line: str, words: str) -> None:
        """Send a line, and return once the model's reply has shown these words. The
        reply then waits until the shell is stopped.
        """
        self._hold.write_text(words, encoding="utf-8")
        self.begin(line, words)

    def leave(self) -> None:
        """With Ctrl+D, whoever is active."""
        os.write(self._terminal.master, b"\x04")
        self._terminal.until(self._terminal.has_ended)
        assert self._terminal.code == 0

    def resume(self) -> None:
        """Resume the agent that was killed, and wait until it takes a line. A line that
        is typed before the shell is open waits with the next one, and is not sent.
        """
        self._terminal.until(lambda: "Ask anything" in self._screen.text)
        self.begin("/resume")
        self._terminal.until(lambda: "Ask anything" not in self._screen.text)
        self._terminal.until(self._is_at_rest)

    def escape(self) -> None:
        """Stop the reply, and wait until the shell is at rest."""
        os.write(self._terminal.master, b"\x1b")
        self._terminal.until(self._is_at_rest)
        self._hold.unlink()

    def kill(self) -> None:
        os.kill(self._terminal.pid, 9)
        self._terminal.until(self._terminal.has_ended)
        assert self._terminal.code == -9
        self._hold.unlink()

    def _wait_for(self, *told: str) -> None:
        """Wait until all of this is new on the screen.

        A line that equals a suggestion of less than half a second ago is not sent: the
        shell asks for another Enter.
        """
        has_pressed_again = False

        def is_told() -> bool:
            nonlocal has_pressed_again
            text = self._screen.text
            if "Too soon, ignored" in text and not has_pressed_again:
                sleep(2 * QUIET)
                self._terminal.type("")
                has_pressed_again = True
            return all(text.count(words) > self._before.count(words) for words in told)

        try:
            self._terminal.until(is_told)
        except AssertionError as error:
            raise AssertionError(f"{told} in:\n{self._screen.text}") from error

    def _is_at_rest(self) -> bool:
        """The line above the status line says what Enter does, and not what is being
        waited for; and the prompt does not say that lines wait.
        """
        text = self._screen.text
        hint = "\n".join(text.rstrip().split("\n")[-2:])
        is_waiting = "Esc stops" in hint or "lines are queued" in text
        return ("Enter" in hint or "@: files" in hint) and not is_waiting


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty project under git."""
    root = tmp_path / "reading-time"
    root.mkdir()
    (root / ".gitignore").write_text("__pycache__/\n")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


@contextmanager
def shell_in(root: Path, *options: str) -> Iterator[Shell]:
    """The real program. The model writes at once, except for held replies."""
    script = root.with_name("at-once.yaml")
    text = SCRIPT.read_text(encoding="utf-8")
    script.write_text(re.sub(r"^pace: \d+", "pace: 0", text, flags=re.MULTILINE))
    hold = root.with_name("hold")
    terminal = Terminal(
        root,
        CDD,
        *("--model", f"script:{script}", *options),
        size=SIZE,
        env={VARIABLE: str(hold)},
    )
    try:
        yield Shell(terminal, hold)
    finally:
        terminal.end()


def cdd(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return ran(*words, cwd=root, env={**os.environ, "CDD_MODEL": f"script:{SCRIPT}"})


def outcome_of_tests(root: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-q"]
    return subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=120
    ).stdout


def statuses(root: Path) -> list[str]:
    state = json.loads((root / "tickets" / SLUG / "execution-state.json").read_text())
    return [
        f"{step['status']} {step['verification']}"
        for step in state["step_executions"].values()
    ]


def files_of_project(root: Path) -> set[str]:
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    paths = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=True
    ).stdout.split()
    return {path for path in paths if not path.startswith((".cdd/", "tickets/"))}


@pytest.mark.pty
def test_the_whole_way_with_leaving_and_kills_in_each_phase(root: Path) -> None:
    ticket = root / "tickets" / SLUG
    with shell_in(root) as shell:
        shell.say("/init", "Created AGENTS.md")
        shell.say("/new feature reading-time", "in your editor, then run")
        template = (ticket / "spec.yaml").read_text()
        shell.say(f"/socrates {SLUG}", "▸ list", "How is the time counted?", "Spec 1/4")
        shell.say("close", "to resume")
        shell.say("/resume", "Resuming", "How is the time counted?")
        shell.leave()
    with shell_in(root) as shell:
        shell.say("/resume", "How is the time counted?")
        shell.begin_reply(COUNT, "Then a text")
        shell.kill()  # in the middle of a reply of Socrates
    with shell_in(root) as shell:
        shell.say("/resume", "has no answer yet")
        shell.say("", "Then a text of 400 words", "Spec 2/4", "? A missing file")
        shell.say(MISSING, "That settles it", "✓ A missing file")
        assert (ticket / "spec.yaml").read_text() == template
        shell.say("approve", "spec.yaml. Next:")
        spec = (ticket / "spec.yaml").read_text()
        assert "\n  - An empty " in spec
        assert (
            next(line for line in template.splitlines() if line.startswith("# Which"))
            in spec
        )

        shell.say(f"/plan {SLUG}", "▸ find", "1. May the command line be")
        shell.say("close", "planning session is saved")
        shell.say("/resume", "1. May the command line be")
        shell.leave()
    with shell_in(root) as shell:
        shell.say("/resume", "1. May the command line be")
        shell.begin_reply(ONE_MODULE, "One module it is")
        shell.kill()  # in the middle of a reply of the Planner
    with shell_in(root) as shell:
        shell.say("/resume", "planning session was interrupted")
        shell.say(
            "continue",
            "The model's answer has a problem",
            "Plan check passed",
        )
        shell.say("close", "planning session is saved")
        shell.say(
            "/resume",
            "Step 2: Make it a command",
            "approve to write the plan",
        )
        shell.say(
            README,
            "Step 2 also writes a README",
            "~ 2. Make it a command, and show it",
        )
        assert not (ticket / "plan.md").exists()
        shell.say("approve", "Wrote tickets")
        assert "### Step 2: " in (ticket / "plan.md").read_text()
        assert "README" in (ticket / "plan.md").read_text()

        shell.say(f"/exec {SLUG}", "Next: step 1")
        shell.leave()
    with shell_in(root) as shell:
        shell.say("/resume", "Next: step 1")
        shell.begin_reply("continue", "Now the code")
        assert (root / "test_minutes.py").exists()
        shell.kill()  # in the middle of a step, which has written a file
    with shell_in(root) as shell:
        shell.say("/resume", "Next: step 1")
        # the step was restored
        assert files_of_project(root) == {".gitignore", "AGENTS.md"}
        shell.say("continue", "Step 1 completed")
        shell.say("close", "Left feature-reading-time")
        shell.say("/resume", "1 of 2 steps done")
        shell.say("continue", "Step 2 of 2 failed")
        assert statuses(root) == ["completed passed", "failed None"]
        shell.leave()
    with shell_in(root) as shell:
        shell.say("/resume", "Type retry, skip")
        shell.say("retry", "Step 2 completed", "2/2 steps passed")
        shell.say("/list", "done")
        shell.say("/resume", "Nothing to resume")
        shell.leave()

    assert statuses(root) == ["completed passed", "completed passed"]
    code = {"README.md", "reading_time.py", "test_command.py", "test_minutes.py"}
    assert files_of_project(root) == {".gitignore", "AGENTS.md", *code}
    assert "8 passed" in outcome_of_tests(root)


INTERRUPTED = [
    (f"/socrates {SLUG}", "How is the time counted?", "2. Where do you need"),
    (COUNT, "Then a text", "how long does an empty"),
    (MISSING, "That settles it", "approve"),
    ("approve", "", "spec.yaml. Next:"),
    (f"/plan {SLUG}", "There is no code yet", "1. May the command"),
    (ONE_MODULE, "One module it is", "Plan check passed"),
    (README, "That belongs to", "~ 2. Make it a command"),
    ("approve", "", "Wrote tickets"),
    (f"/exec {SLUG}", "", "Next: step 1"),
    ("continue", "Now the code", "Step 1 completed"),
    ("continue", "A thin", "Step 2 of 2 failed"),
    ("retry", "The test is right", "Step 2 completed"),
]
"""Lines, the words of the reply at which it is interrupted, and what is told at the
end. Lines without a reply have no such words.
"""


@pytest.mark.pty
def test_each_reply_is_given_again_after_escape_and_continue(root: Path) -> None:
    with shell_in(root) as shell:
        shell.say("/init", "Created AGENTS.md")
        shell.say("/new feature reading-time", "in your editor, then run")
        for line, interrupted_at, end in INTERRUPTED:
            if not interrupted_at:
                shell.say(line, end)
                continue
            shell.begin_reply(line, interrupted_at)
            shell.escape()
            shell.say("continue", end)
        shell.leave()
    assert statuses(root) == ["completed passed", "completed passed"]
    assert "8 passed" in outcome_of_tests(root)


@pytest.mark.pty
def test_each_reply_is_given_again_after_a_kill_and_continue(root: Path) -> None:
    with ExitStack() as shells:
        shell = shells.enter_context(shell_in(root))
        shell.say("/init", "Created AGENTS.md")
        shell.say("/new feature reading-time", "in your editor, then run")
        for line, interrupted_at, end in INTERRUPTED:
            if not interrupted_at:
                shell.say(line, end)
                continue
            shell.begin_reply(line, interrupted_at)
            shell.kill()
            shell = shells.enter_context(shell_in(root))
            shell.resume()
            shell.say("continue", end)
        shell.leave()
    assert statuses(root) == ["completed passed", "completed passed"]
    assert "8 passed" in outcome_of_tests(root)


@pytest.mark.pty
def test_a_record_with_stopped_replies_plays_in_another_folder(
    root: Path, tmp_path: Path
) -> None:
    record = tmp_path / "run.jsonl"
    with shell_in(root, "--record", str(record)) as shell:
        shell.say("/init", "Created AGENTS.md")
        shell.say("/new feature reading-time", "in your editor, then run")
        for line, reply, end in INTERRUPTED:
            if reply not in ("Then a text", "Now the code"):
                shell.say(line, end)
                continue
            shell.begin_reply(line, reply)
            shell.escape()
            shell.say("continue", end)
        shell.leave()

    # a new project's AGENTS.md has the name of its folder
    elsewhere = tmp_path / "another place" / root.name
    elsewhere.mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet"], cwd=elsewhere, check=True)
    (elsewhere / ".gitignore").write_text("__pycache__/\n")
    with shell_in(elsewhere, "--model", f"replay:{record}") as shell:
        shell.say("/init", "Created AGENTS.md")
        shell.say("/new feature reading-time", "in your editor, then run")
        for line, _, end in INTERRUPTED:
            shell.say(line, end)
        shell.leave()
    assert statuses(elsewhere) == ["completed passed", "completed passed"]
    assert "8 passed" in outcome_of_tests(elsewhere)


@pytest.mark.fork
def test_the_same_without_a_screen(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert main(["init"]) == 0
    assert main(["new", "feature", "reading-time"]) == 0
    capsys.readouterr()
    assert main(["plan", SLUG, "--yes", "--model", f"script:{SCRIPT}"]) == 2
    assert "acceptance_criteria" in capsys.readouterr().err

    (root / "tickets" / SLUG / "spec.yaml").write_text(
        "# Written by hand.\n"
        "title: Say how long a text takes to read\n"
        "description: In minutes.\n"
        "acceptance_criteria:\n"
        "  - 401 words take 3 minutes\n"
        "  - No words take 0\n"
        "  - A command prints it\n"
        "  - A missing file is reported\n"
    )
    planned = cdd(root, "plan", SLUG, "--yes")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "`risks`" in planned.stdout
    assert main(["plan", "check", SLUG]) == 0

    run = cdd(root, "exec", SLUG, "--json")
    assert run.returncode == 0, run.stdout + run.stderr
    events = [json.loads(line) for line in run.stdout.splitlines()]
    assert [
        event["step"] for event in events if event["event"] == "attempt_failed"
    ] == [2]
    assert events[-1]["completed"] == 2
    assert statuses(root) == ["completed passed", "completed passed"]
    assert "8 passed" in outcome_of_tests(root)
    capsys.readouterr()
    assert main(["list", "done"]) == 0
    assert capsys.readouterr().out.startswith(SLUG)
