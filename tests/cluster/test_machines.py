"""A run that is carried out on another machine: what comes back, what is not paid
again, who is not listened to.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cdd_agent.cluster.equipment import ENVIRONMENT
from cdd_agent.cluster.messages import ClientFailed, WorkerEnd
from cdd_agent.cluster.project_cache import ProjectCache
from cdd_agent.cluster.sent_facts import settings_to_send
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.fleet.board import Row
from cdd_agent.fleet.job import TicketJob
from cdd_agent.travel.came_back import CameBack
from tests.cluster.machines import Machine, Question, good, made_project, opened_desk
from tests.llm.server import Answer, LoopbackServer, failure
from tests.support.projects import SLUG, Sandbox, says
from tests.support.settings import load_config
from tests.travel.copies import STEPS, cdd, files, git

KEY = "key-of-the-worker-0123456789"


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(good) as server:
        yield server


@pytest.fixture
def client(
    tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> Sandbox:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    sandbox = made_project(tmp_path / "client")
    sandbox.flags |= {"model": "openai/any", "api_base": server.url, "max_attempts": 1}
    return sandbox


def content(sandbox: Sandbox) -> dict[str, str]:
    """What the run's branch has."""
    names = git(sandbox.root, "ls-tree", "-r", "--name-only", f"cdd/{SLUG}").split()
    return {
        name: git(sandbox.root, "show", f"cdd/{SLUG}:{name}")
        for name in names
        if name.endswith(".txt")
    }


DONE = {"a.txt": "good", "b.txt": "good", "c.txt": "good"}


@pytest.mark.story
def test_what_was_done_elsewhere_is_on_a_branch_here_and_lands(
    client: Sandbox, server: LoopbackServer, tmp_path: Path
) -> None:
    client.write(STEPS[0])
    before, told = files(client.root), list[Question]()

    async def elsewhere() -> WorkerEnd | None:
        desk = await opened_desk(client, told.append)
        over = await Machine(tmp_path / "one", desk).works()
        await desk.close()
        return over

    over = asyncio.run(elsewhere())
    assert over is not None
    assert over.exit_code == ExitCode.DONE
    assert files(client.root) == before
    assert content(client) == {"a.txt": "good"}
    log = git(client.root, "log", "--oneline", "main..cdd/feature-words")
    assert len(log.splitlines()) == 1
    ends = [event["step"] for event in told if event["event"] == "step_finished"]
    assert ends == [1]
    assert len(server.requests) == 1
    assert not list((tmp_path / "one").iterdir())
    assert git(client.root, "for-each-ref", "refs/cdd/cluster") == ""

    assert cdd(client, "land", SLUG) == 0
    assert client.statuses() == ["completed"]
    report = json.loads(
        (client.root / ".cdd" / "runs" / SLUG / "report.json").read_text()
    )
    assert report["model_calls"] == 1
    assert cdd(client, "undo", SLUG, "--step", "1") == 0
    assert not (client.root / "a.txt").exists()


def questions(number: int) -> Callable[[Question], bool]:
    """Cuts a line at the so-maniest question, not counting signs of life."""
    seen = 0

    def cut(question: Question) -> bool:
        nonlocal seen
        seen += question["kind"] in ("begin", "piece", "saved")
        return seen > number

    return cut


SAMPLE = (2, 4)
"""While the first step and the last step are saved."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "last" in metafunc.fixturenames:
        every = "CDD_TEST_KILLS" in os.environ
        metafunc.parametrize("last", range(1, 5) if every else SAMPLE)


@pytest.mark.cluster
async def test_a_machine_dies_and_another_goes_on_without_paying_again(
    last: int, client: Sandbox, server: LoopbackServer, tmp_path: Path
) -> None:
    desk = await opened_desk(client)
    assert await Machine(tmp_path / "one", desk, questions(last)).works() is None
    paid = len(server.requests)
    kept = max(last - 2, 0)
    assert paid <= kept + 1
    over = await Machine(tmp_path / "two", desk).works()
    await desk.close()
    assert over is not None
    assert over.exit_code == ExitCode.DONE
    assert content(client) == DONE
    assert len(server.requests) == paid + 3 - kept


@pytest.mark.cluster
async def test_the_client_dies_and_the_same_command_goes_on(
    client: Sandbox, server: LoopbackServer, tmp_path: Path
) -> None:
    desk = await opened_desk(client)
    await Machine(tmp_path / "one", desk, questions(4)).works()
    desk._locks.close()  # its process is gone, and its locks with it
    desk = await opened_desk(client)
    over = await Machine(tmp_path / "two", desk).works()
    await desk.close()
    assert over is not None
    assert over.exit_code == ExitCode.DONE
    assert content(client) == DONE
    assert len(server.requests) == 4  # the one that was on its way came to nobody


async def come_or_over(event: asyncio.Event, work: asyncio.Task[Any]) -> None:
    """Wait for a moment of the work; that it is over before is a failure, and no reason
    to wait for ever.
    """
    moment = asyncio.ensure_future(event.wait())
    await asyncio.wait([moment, work], return_when=asyncio.FIRST_COMPLETED)
    assert event.is_set(), work.result()


@pytest.mark.cluster
async def test_a_machine_that_was_taken_for_dead_changes_nothing(
    client: Sandbox, server: LoopbackServer, tmp_path: Path
) -> None:
    """It is stopped when its first reply has come, and goes on when another one is
    done.
    """
    desk, asleep, awake = await opened_desk(client), asyncio.Event(), asyncio.Event()

    class Sleeper(Machine):
        async def ask(self, question: Question) -> Any:
            if question["kind"] == "saved" and not awake.is_set():
                asleep.set()
                await awake.wait()
            return await super().ask(question)

    sleeper = Sleeper(tmp_path / "one", desk)
    work = asyncio.create_task(sleeper.works())
    await come_or_over(asleep, work)
    other = await Machine(tmp_path / "two", desk).works()
    assert other is not None
    assert other.exit_code == ExitCode.DONE
    kept = desk.came_back
    awake.set()
    assert await work is None
    assert sleeper.said[-1] == {"gone": True}
    assert desk.came_back == kept
    await desk.close()
    assert content(client) == DONE
    assert len(server.requests) == 4


@pytest.mark.cluster
async def test_neither_keys_nor_secrets_nor_folders_are_sent(
    client: Sandbox,
    server: LoopbackServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that goes over the line, and all that is in the bundles, is looked at."""
    monkeypatch.setenv("CLIENTS_API_KEY", "the-clients-own-0123456789")
    (client.root / ".cdd" / "config.yaml").write_text(
        "request: {headers: {X-Key: a-header-0123456789}}\n"
    )
    (client.root / ".env").write_text("PASSWORD=in-the-dotenv-0123456789\n")
    desk = await opened_desk(client)
    machine = Machine(tmp_path / "one", desk)
    await machine.works()
    await desk.close()
    sent = everything(machine, tmp_path / "looked-at")
    assert b"Make a.txt" in sent
    assert b"good" in sent
    for word in (
        KEY,
        "clients-own",
        "a-header",
        "in-the-dotenv",
        str(client.root),
        str(tmp_path / "one"),
        str(Path.home()),
    ):
        assert word.encode() not in sent, word


def everything(machine: Machine, folder: Path) -> bytes:
    """All that went over a machine's line, with the contents of the bundles."""
    git(folder.parent, "init", "--quiet", "--bare", str(folder))
    bundles, plain = [b""], list[object]()
    for said in machine.said:
        if "data" in said:
            bundles[-1] += said["data"]
            if said.get("is_last"):
                bundles.append(b"")
        else:
            if said.get("kind") == "saved" or (
                bundles[-1] and said.get("kind") != "piece"
            ):
                bundles.append(b"")
            plain.append(said)
    for number, bundle in enumerate(filter(None, bundles)):
        (folder / "bundle").write_bytes(bundle)
        git(
            folder,
            "fetch",
            "--quiet",
            str(folder / "bundle"),
            f"refs/travel/out:refs/looked-at/{number}",
        )
    names = "".join(
        f"{line.split()[0]}\n"
        for line in git(folder, "rev-list", "--objects", "--all").splitlines()
    )
    batch = ["git", "cat-file", "--batch", "--buffer"]
    done = subprocess.run(
        batch, cwd=folder, input=names.encode(), check=True, capture_output=True
    )
    assert done.stdout.count(b" commit ") >= 5
    return done.stdout + repr(plain).encode()


@pytest.mark.cluster
async def test_stopping_keeps_what_was_paid_for(
    client: Sandbox, tmp_path: Path
) -> None:
    waiting, may_answer = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(request: Any) -> Answer:
        answer = good(request)
        if "b.txt" in answer.text:
            loop.call_soon_threadsafe(waiting.set)
            may_answer.wait(60)
        return answer

    with LoopbackServer(slow) as server:
        client.flags |= {"api_base": server.url}
        desk = await opened_desk(client)
        work = asyncio.create_task(Machine(tmp_path / "one", desk).works(patience=2.0))
        await come_or_over(waiting, work)
        desk.is_stopping = True
        over = await work
        may_answer.set()
        await desk.close()
        assert over is not None
        assert over.exit_code == ExitCode.INTERRUPTED
        assert content(client) == {"a.txt": "good"}
    with LoopbackServer(good) as server:
        client.flags |= {"api_base": server.url}
        desk = await opened_desk(client)
        over = await Machine(tmp_path / "two", desk).works()
        await desk.close()
        assert over is not None
        assert over.exit_code == ExitCode.DONE
        assert len(server.requests) == 2


@pytest.mark.cluster
@pytest.mark.parametrize("is_cut", [False, True])
def test_it_goes_on_here_with_what_came_back(
    client: Sandbox, server: LoopbackServer, tmp_path: Path, is_cut: bool
) -> None:
    """Without a cluster, when the client was killed before it had put anything into the
    run's own tree, or when git was about to and the power was cut.
    """

    async def elsewhere() -> None:
        desk = await opened_desk(client)
        await Machine(tmp_path / "one", desk, questions(4)).works()
        desk._locks.close()

    asyncio.run(elsewhere())
    if is_cut:
        record = client.root / ".cdd" / "runs" / SLUG
        replace(CameBack.of(record), arriving=True).keep(record)
        lock = git(
            record / "tree",
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "index.lock",
        )
        Path(lock).touch()
    flags = ("--model", "openai/any", "--api-base", server.url)
    assert cdd(client, "exec", SLUG, "--worktree", *flags) == 0
    assert content(client) == DONE
    assert len(server.requests) == 4


@pytest.mark.cluster
async def test_a_budget_of_all_runs_is_asked_for_before_each_call(
    client: Sandbox, server: LoopbackServer, tmp_path: Path
) -> None:
    (client.root / ".cdd" / "config.yaml").write_text("budget: {tokens: 9500}\n")
    desk = await opened_desk(client)
    over = await Machine(tmp_path / "one", desk).works()
    await desk.close()
    assert over is not None
    assert over.exit_code == ExitCode.NOT_APPROVED
    assert desk.ending(over).budget_used_up
    assert len(server.requests) == 2
    assert desk.purse.tally.spent.tokens > 0


async def test_another_version_does_not_take_it(
    client: Sandbox, server: LoopbackServer, tmp_path: Path
) -> None:
    desk = await opened_desk(client)
    machine = Machine(tmp_path / "one", desk)
    over = await machine.works(version="0.0.1")
    assert over is not None
    assert over.is_unfit
    assert "0.0.1" in over.reason
    assert not machine.said
    assert not server.requests


@pytest.mark.cluster
async def test_a_full_disk_of_the_client_is_not_the_workers(
    client: Sandbox, server: LoopbackServer, tmp_path: Path
) -> None:
    class NoRoom(Machine):
        async def ask(self, question: Question) -> Any:
            if question["kind"] == "saved":
                raise ClientFailed(
                    "coming.bundle could not be written: No space left on device"
                )
            return await super().ask(question)

    desk = await opened_desk(client)
    over = await NoRoom(tmp_path / "one", desk).works()
    await desk.close()
    assert over is not None
    assert over.exit_code == ExitCode.BAD_INPUT
    assert not over.is_unfit
    assert len(server.requests) == 1


@pytest.mark.cluster
async def test_workers_of_one_machine_make_its_cache_at_once(client: Sandbox) -> None:
    caches = await asyncio.gather(*(ProjectCache.open("project") for _ in range(4)))
    assert [await cache.received_commits() for cache in caches] == [()] * 4


def test_without_the_extra_the_command_that_installs_it_is_named(
    client: Sandbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name in ("place", "dask_task"):
        monkeypatch.delitem(sys.modules, f"cdd_agent.cluster.{name}", raising=False)
    assert cdd(client, "exec", SLUG, "--on", "local") == ExitCode.BAD_INPUT
    assert 'pip install "cdd-shell[cluster]"' in capsys.readouterr().err


@pytest.mark.cluster
async def test_a_failed_step_is_an_end_and_its_words_come_back(
    client: Sandbox, tmp_path: Path
) -> None:
    with LoopbackServer(lambda request: Answer(says("a.txt", "bad"))) as server:
        client.flags |= {"api_base": server.url}
        told = list[Question]()
        desk = await opened_desk(client, told.append)
        over = await Machine(tmp_path / "one", desk).works()
        await desk.close()
    assert over == WorkerEnd(attempt=1, exit_code=ExitCode.FAILED, worker="one")
    assert any(event["event"] == "attempt_failed" for event in told)
    tree = Sandbox(client.root / ".cdd" / "runs" / SLUG / "tree")
    assert tree.state()["step_executions"]["1"]["status"] == "failed"


@pytest.mark.cluster
async def test_edits_in_the_runs_tree_are_not_lost(
    client: Sandbox, tmp_path: Path
) -> None:
    desk = await opened_desk(client)
    await Machine(tmp_path / "one", desk).works()
    (desk.own.root / "README").write_text("mine\n")
    with pytest.raises(BadInput):
        await desk.close()
    assert (desk.own.root / "README").read_text() == "mine\n"
    assert git(client.root, "for-each-ref", "refs/cdd/cluster") != ""

    (desk.own.root / "README").write_text("words\n")
    desk = await opened_desk(client)
    over = await Machine(tmp_path / "two", desk).works()
    await desk.close()
    assert over is not None
    assert over.exit_code == ExitCode.DONE
    assert content(client) == DONE


@pytest.mark.cluster
async def test_edits_in_a_tree_into_which_the_run_came_half_are_kept(
    client: Sandbox, tmp_path: Path
) -> None:
    desk = await opened_desk(client)
    await Machine(tmp_path / "one", desk).works()
    # killed while it was put there
    replace(desk.came_back, arriving=True).keep(desk.own.record.folder)
    (desk.own.root / "README").write_text("mine\n")
    await desk.close()
    assert content(client) == DONE
    (kept,) = [
        name
        for name in git(client.root, "for-each-ref", "--format=%(refname)").split()
        if "/found-" in name
    ]
    assert git(client.root, "show", f"{kept}:README") == "mine"


@pytest.mark.parametrize(
    "model", ["script:{root}/replies.yaml", "replay:/home/nobody/x"]
)
def test_files_of_this_machine_are_named_before_anything_is_sent(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/nobody")
    config = load_config(tmp_path, {"model": model.format(root=tmp_path)})
    with pytest.raises(BadInput):
        settings_to_send(config, tmp_path)


async def test_every_question_is_answered_whatever_is_wrong_with_it_or_here(
    client: Sandbox,
) -> None:
    """A machine that hears nothing would wait until it takes the client for dead."""
    row = Row(TicketJob(SLUG))

    def tell(event: Question) -> None:
        row.after_event(event)

    desk = await opened_desk(client, tell)
    attempt = (await desk.answer({"kind": "begin", "worker": "one"}))["attempt"]
    desk._sent_bundle.unlink()
    assert "error" in await desk.answer(
        {"kind": "piece", "attempt": attempt, "offset": 0}
    )
    for event in (
        "1",
        '["a"]',
        "{",
        '{"event": "plan_opened", "steps": [1]}',
        '{"event": "reply_finished", "step": 1, "usage": {}}',
    ):
        assert "error" in await desk.answer(
            {"kind": "printed", "attempt": attempt, "lines": [event]}
        )
    assert "input" in await desk.answer({"kind": "printed", "attempt": attempt})
    await desk.close()


@pytest.mark.cluster
async def test_what_tests_need_is_linked_and_the_link_does_not_come_back(
    client: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To git, `node_modules/` is about a folder, and not about a link."""
    (client.root / ".gitignore").write_text("node_modules/\n")
    git(client.root, "commit", "--quiet", "--all", "--message=Ignore")
    for place in (client.root, tmp_path / "srv"):
        (place / "node_modules").mkdir(parents=True)
        (place / "node_modules" / "words.js").write_text("")
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "srv"))
    desk = await opened_desk(client)
    over = await Machine(tmp_path / "one", desk).works()
    await desk.close()
    assert over is not None
    assert over.exit_code == ExitCode.DONE
    assert content(client) == DONE
    assert (desk.own.root / "node_modules").readlink() == client.root / "node_modules"


@pytest.mark.cluster
async def test_a_wait_that_one_worker_is_asked_for_delays_the_others(
    client: Sandbox, server: LoopbackServer, tmp_path: Path
) -> None:
    """The provider sends one machine away for some seconds. The other one, which has
    not called yet, does not call before.
    """
    seconds, times = 8.0, list[float]()
    refused = asyncio.Event()
    loop = asyncio.get_running_loop()

    def answer(request: Any) -> Answer:
        times.append(loop.time())
        if len(times) > 1:
            return good(request)
        loop.call_soon_threadsafe(refused.set)
        return failure(429, "Too many.", headers={"Retry-After": str(seconds)})

    other = made_project(tmp_path / "other")
    with LoopbackServer(answer) as provider:
        for sandbox in (client, other):
            sandbox.write(STEPS[0])
            sandbox.flags |= {"model": "openai/any", "api_base": provider.url}
        waits = tmp_path / "waits.json"
        desks = [await opened_desk(one, waits=waits) for one in (client, other)]
        first = asyncio.create_task(Machine(tmp_path / "one", desks[0]).works())
        await come_or_over(refused, first)
        while not waits.exists():
            await asyncio.wait([first], timeout=0.1)
        ends = [await Machine(tmp_path / "two", desks[1]).works(), await first]
        for desk in desks:
            await desk.close()
    assert [end and end.exit_code for end in ends] == [0, 0]
    assert len(times) == 3
    assert min(times[1:]) - times[0] >= seconds


@pytest.mark.cluster
async def test_a_worker_without_git_is_unfit(
    client: Sandbox,
    server: LoopbackServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = await opened_desk(client)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "new"))
        machine = Machine(tmp_path / "one", desk)
        end = await machine.works(project="0")
    await desk.close()
    assert end is not None
    assert end.is_unfit
    assert "git" in end.reason
    assert not machine.said


@pytest.mark.cluster
async def test_settings_of_the_worker_do_not_count(
    client: Sandbox,
    server: LoopbackServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = tmp_path / "worker.yaml"
    settings.write_text("model: anthropic/other\n")
    desk = await opened_desk(client)
    monkeypatch.setenv("CDD_USER_CONFIG", str(settings))
    monkeypatch.setenv("CDD_API_BASE", "http://127.0.0.1:1/v1")
    end = await Machine(tmp_path / "one", desk).works()
    await desk.close()
    assert end is not None
    assert end.exit_code == ExitCode.DONE
    assert len(server.requests) == 3
