"""Commands in a project whose settings are not trusted: who is asked, where no key
goes, and what the processes that cdd begins inherit.
"""

import asyncio
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdd_agent.cli.trusting import ask_at
from cdd_agent.commands.registry import handle
from cdd_agent.demo.sample import copy_sample
from cdd_agent.errors import CddError
from cdd_agent.frontend import Nobody
from cdd_agent.session.open_project import (
    NotTrusted,
    TrustAnswer,
    TrustQuestion,
    accept_once,
    open_project,
)
from cdd_agent.session.session import Session
from cdd_agent.trust.store import TrustStore
from cdd_agent.wiring.root import Wiring
from tests.fleet.tickets import GOOD, ONE_STEP, project, tree
from tests.llm.listing import HEAD, answering
from tests.support.commandline import STEPS, cdd, events, script, started
from tests.support.listening import tell
from tests.support.projects import SLUG, Sandbox, Step, no_servers, says

pytestmark = pytest.mark.usefixtures("untrusting")
KEY = "sk-" + "K" * 40
WORK = (
    ("exec", SLUG),
    ("exec", SLUG, "--yes"),
    ("exec", SLUG, "--yes", "--json"),
    ("exec", SLUG, "--worktree", "--yes"),
    ("exec", "--all", "planned", "--yes"),
    ("plan", SLUG, "--yes"),
    ("land", SLUG, "--yes"),
    ("compare", SLUG, "--models", "openai/x", "--yes"),
    ("run", "actions.yaml", "--yes"),
)
"""Commands that would use the settings."""
READ_ONLY = (
    ("list",),
    ("status", SLUG),
    ("criteria", SLUG),
    ("board",),
    ("plan", "show", SLUG),
    ("plan", "check", SLUG),
    ("context", "README.md"),
    ("trust",),
    ("init",),
)


def write(root: Path, text: str) -> None:
    (root / ".cdd").mkdir(exist_ok=True)
    (root / ".cdd" / "config.yaml").write_text(text)


@pytest.fixture
def hostile(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """A project whose settings use an address of its own."""
    sandbox.write(*STEPS)
    (sandbox.root / "actions.yaml").write_text("- execute: echo hi\n")
    (sandbox.root / "README.md").write_text("words\n")
    monkeypatch.chdir(sandbox.root)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return sandbox


@pytest.fixture
def server(hostile: Sandbox) -> Iterator[list[str]]:
    """The heads of the requests to the address that the project names."""
    with answering(HEAD + b"{}") as (port, heads):
        address = f"http://127.0.0.1:{port}/v1"
        write(
            hostile.root,
            f"model: openai/x\napi_base: {address}\napproval: auto\n"
            f"models:\n  planner: &m {{model: openai/y, api_base: {address}}}\n"
            "  chat: *m\nfallbacks: [*m]\n",
        )
        yield heads


def test_work_without_a_terminal_ends_with_3_and_names_settings_and_flag(
    hostile: Sandbox, server: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for line in WORK:
        assert cdd(hostile, *line) == 3, line
        printed = capsys.readouterr()
        assert printed.out == "", line
        for words in (".cdd/config.yaml:2: api_base: http", "--trust"):
            assert words in printed.err, line
    assert server == []
    assert not (hostile.ticket / "execution-state.json").exists()


def test_read_only_commands_go_on_without_the_settings(
    hostile: Sandbox, server: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for line in READ_ONLY:
        assert cdd(hostile, *line) == 0, line
    assert "api_base" not in capsys.readouterr().err
    assert cdd(hostile, "doctor") == 2  # there is no model
    assert server == []


async def test_a_key_never_reaches_a_server_that_only_the_project_named(
    hostile: Sandbox, server: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with answering(HEAD + b"{}") as (port, own):
        settings = tmp_path / "own.yaml"
        settings.write_text(f"model: openai/x\napi_base: http://127.0.0.1:{port}/v1\n")
        monkeypatch.setenv("CDD_USER_CONFIG", str(settings))
        project = open_project(hostile.root, {})
        wiring = Wiring(project, Nobody(), tell, no_servers, clock=hostile.clock)
        await ask(wiring.session)
        assert [head for head in own if KEY in head]
        assert server == []
        project = open_project(hostile.root, {}, decide=accept_once)
        wiring = Wiring(project, Nobody(), tell, no_servers, clock=hostile.clock)
        await ask(wiring.session)
        assert [head for head in server if KEY in head]


async def ask(session: Session) -> None:
    """Ask the model; the answer of the test's server is no reply."""
    with pytest.raises(CddError):
        await handle(session, "What is this?")


def test_trust_lets_the_key_go_there(hostile: Sandbox, server: list[str]) -> None:
    assert cdd(hostile, "doctor", "--trust") == 0
    assert [head for head in server if KEY in head]
    assert TrustStore.open().read(hostile.root) == {}


def test_a_given_trust_holds_until_it_is_revoked(hostile: Sandbox) -> None:
    write(hostile.root, "approval: auto\n")
    for words, code in (
        (("run", "actions.yaml", "--yes"), 3),
        (("trust", "--give"), 0),
        (("run", "actions.yaml", "--yes"), 0),
        (("trust", "--revoke"), 0),
        (("run", "actions.yaml", "--yes"), 3),
        (("run", "actions.yaml", "--yes", "--trust"), 0),
        (("run", "actions.yaml", "--yes"), 3),
    ):
        assert cdd(hostile, *words) == code, words


@pytest.mark.story
def test_a_run_with_trust_can_be_seen_and_undone_without(hostile: Sandbox) -> None:
    write(hostile.root, "commands: {mode: unsafe}\n")
    hostile.write(Step("a.txt", "ls | wc"))
    model = script(hostile, says("a.txt", "good"))
    run = ("exec", SLUG, "--yes", "--model", model)
    assert cdd(hostile, *run, "--trust") == 0
    assert cdd(hostile, "diff", SLUG) == 0
    assert cdd(hostile, "undo", SLUG) == 0
    assert not (hostile.root / "a.txt").exists()
    assert cdd(hostile, "redo", SLUG) == 0
    assert (hostile.root / "a.txt").exists()
    asyncio.run(tell_and_undo(hostile.session()))
    assert not (hostile.root / "a.txt").exists()
    # a step that runs is still judged
    assert cdd(hostile, *run) == 3


async def tell_and_undo(session: Session) -> None:
    ticket = session.project.tickets.find(SLUG)
    await session.send_to_run(ticket, "diff", is_look=True)
    await session.send_to_run(ticket, "undo")


@pytest.mark.story
def test_the_copy_that_the_demo_leaves_opens_without_a_question() -> None:
    folder = copy_sample()
    try:
        config = open_project(folder, {}).config
        assert config.model is not None
        assert config.model.startswith("script:")
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def question(tmp_path: Path) -> TrustQuestion:
    write(tmp_path, "approval: auto\n")
    asked: list[TrustQuestion] = []

    def decide(question: TrustQuestion) -> TrustAnswer:
        asked.append(question)
        return TrustAnswer.DEFAULTS

    open_project(tmp_path, {}, decide=decide)
    return asked[0]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("t\n", TrustAnswer.TRUST),
        ("Trust\n", TrustAnswer.TRUST),
        ("c\n", TrustAnswer.DEFAULTS),
        ("continue with defaults\n", TrustAnswer.DEFAULTS),
    ],
)
def test_an_answer_is_a_letter_or_its_words(
    question: TrustQuestion, typed: str, answer: TrustAnswer
) -> None:
    assert ask_at(pipe(typed), question) is answer


def test_no_answer_and_other_words_are_no_yes(question: TrustQuestion) -> None:
    with pytest.raises(NotTrusted):
        ask_at(pipe(""), question)
    with pytest.raises(NotTrusted):
        ask_at(pipe("y\n"), question)


def pipe(text: str) -> int:
    """The number of a file that gives a line, and then ends."""
    reads, writes = os.pipe()
    os.write(writes, text.encode())
    os.close(writes)
    return reads


@pytest.mark.fork
def test_the_shell_without_a_terminal_ends_with_3(
    hostile: Sandbox, server: list[str]
) -> None:
    for words in ((), ("--plain",)):
        ended = started(hostile, *words)
        assert ended.returncode == 3
        assert "--trust" in ended.stderr
    assert server == []


# processes and trees that cdd begins itself


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two planned tickets, whose own settings name a script."""
    root = project(tmp_path, {"bug-a": ONE_STEP, "bug-b": ONE_STEP}, monkeypatch)
    (tmp_path / "script.yaml").write_text(
        f"pace: 0\nreplies: [{{reply: {json.dumps(GOOD)}}}]\n"
    )
    write(root, f"model: script:{tmp_path / 'script.yaml'}\n")
    return root


@pytest.mark.story
def test_a_run_in_its_own_tree_inherits_the_answer(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("exec", "bug-a", "--worktree", "--yes")
    assert cdd(Sandbox(fleet), *line) == 3
    assert cdd(Sandbox(fleet), *line, "--trust") == 0
    assert (tree(fleet, "bug-a") / "a.txt").read_text() == "good\n"
    assert cdd(Sandbox(fleet), "diff", "bug-a") == 0
    assert cdd(Sandbox(fleet), "land", "bug-a", "--trust") == 0
    assert capsys.readouterr()


@pytest.mark.long
@pytest.mark.story
def test_runs_that_are_carried_out_together_inherit_the_answer(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("exec", "bug-a", "bug-b", "--yes", "--json")
    assert cdd(Sandbox(fleet), *line) == 3
    assert cdd(Sandbox(fleet), *line, "--trust") == 0
    for slug in ("bug-a", "bug-b"):
        assert (tree(fleet, slug) / "a.txt").read_text() == "good\n"
    assert events(capsys)


if os.name != "nt":
    from tests.support.terminals import CDD, Terminal

    OFFERED = "[t] trust  [s] show the file  [c] continue with defaults > "

    @pytest.fixture
    def terminals() -> Iterator[list[Terminal]]:
        opened = list[Terminal]()
        yield opened
        for terminal in opened:
            terminal.end()

    @pytest.mark.pty
    def test_a_terminal_asks_once_and_then_goes_on(
        hostile: Sandbox, terminals: list[Terminal]
    ) -> None:
        write(hostile.root, "approval: auto\ncommit: step\n")
        line = (CDD, "run", "actions.yaml", "--yes")
        first = Terminal(hostile.root, *line)
        terminals.append(first)
        first.until(lambda: OFFERED in first.text)
        assert ".cdd/config.yaml:2: commit" in first.text
        assert "1 of 1" not in first.text
        first.type("s")
        first.until(lambda: first.text.count(OFFERED) == 2)
        assert "    1  approval: auto" in first.text
        first.type("y")
        first.until(lambda: first.text.count(OFFERED) == 3)
        first.type("t")
        first.until_ended()
        assert first.code == 0
        assert "1 of 1" in first.text

        second = Terminal(hostile.root, *line)
        terminals.append(second)
        second.until_ended()
        assert second.code == 0
        assert OFFERED not in second.text

    @pytest.mark.pty
    def test_the_shell_asks_on_a_screen_before_it_works(
        hostile: Sandbox, terminals: list[Terminal]
    ) -> None:
        write(hostile.root, "approval: auto\n")
        shell = Terminal(hostile.root, CDD, size=(80, 24))
        terminals.append(shell)
        shell.until(lambda: "Do you trust" in shell.text)
        shell.press(b"\x11")
        shell.until_ended()
        assert shell.code == 0
        assert open_project(hostile.root, {}).config.approval == "edits"
