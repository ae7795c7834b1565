"""A real Dask scheduler and real workers, as processes on this machine, and what
happens when they die.

One story by default, as each takes seconds to start; all with CDD_TEST_KILLS=1.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from cdd_agent.llm.port import Request
from tests.cluster.machines import good, made_project
from tests.llm.server import Answer, LoopbackServer
from tests.support.projects import SLUG, Sandbox, Step, plan
from tests.travel.copies import STEPS, git

pytestmark = pytest.mark.cluster
GENEROUS = 180.0
"""Seconds: a machine may be busy."""
DONE = {"a.txt": "good", "b.txt": "good", "c.txt": "good"}


def until(what: Callable[[], Any]) -> Any:
    end = time.monotonic() + GENEROUS
    while not (found := what()):
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)
    return found


@dataclass
class Cluster:
    """A scheduler and workers, each a process whose words are in a file."""

    folder: Path
    env: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    address: str = ""

    def start(
        self, name: str, *words: str, folder: Path | None = None, **env: str
    ) -> subprocess.Popen[bytes]:
        if name in self.processes:
            self.end_of(name)
        with (self.folder / f"{name}.log").open("wb") as log:
            program = [sys.executable, *words]
            given = {
                "cwd": folder or self.folder,
                "env": {**self.env, **env},
                "stdin": subprocess.DEVNULL,
                "start_new_session": True,
            }
            out = (self.folder / f"{name}.out").open("wb")
            with out:
                self.processes[name] = subprocess.Popen(  # type: ignore[call-overload]
                    program, stdout=out, stderr=log, **given
                )
        return self.processes[name]

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def scheduler(self, host: str = "127.0.0.1") -> None:
        words = ("scheduler", "--host", host, "--port", "0", "--no-dashboard")
        self.start("scheduler", "-m", "dask", *words)
        found = until(
            lambda: re.search(
                r"Scheduler at:\s+((?:tcp|tls)://127\S+)", self.said("scheduler")
            )
        )
        self.address = found[1]

    def worker(
        self, name: str, *words: str, before: tuple[str, ...] = (), **env: str
    ) -> str:
        """Start one; its address."""
        scratch = self.folder / f"scratch-{name}"
        scratch.mkdir(exist_ok=True)
        how = (
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            str(scratch),
        )
        self.start(
            name, *before, "-m", "dask", "worker", self.address, *how, *words, **env
        )
        found = until(
            lambda: re.search(r"Start worker at:\s+(t\w+://127\S+)", self.said(name))
        )
        until(lambda: re.search(r"Registered to:\s+t", self.said(name)))
        return str(found[1])

    def client(
        self, sandbox: Sandbox, server: LoopbackServer, name: str = "client"
    ) -> None:
        words = (
            "-m",
            "cdd_agent",
            "-C",
            str(sandbox.root),
            "exec",
            SLUG,
            "--on",
            self.address,
            "--json",
        )
        self.start(
            name,
            *words,
            "--model",
            "openai/any",
            "--api-base",
            server.url,
            "--max-attempts",
            "1",
        )

    def events(self, name: str = "client") -> list[dict[str, Any]]:
        found = []
        for line in (self.folder / f"{name}.out").read_text().splitlines():
            with contextlib.suppress(ValueError):  # it is being written
                found.append(json.loads(line))
        return found

    def at(self) -> list[str]:
        """The workers who took the ticket, one after the other."""
        told = [event for event in self.events() if event.get("kind") == "run_moved"]
        return [re.findall(r"t\w+://[\d.:]+\d", event["text"])[-1] for event in told]

    def end_of(self, name: str = "client") -> int:
        process = self.processes[name]
        until(lambda: process.poll() is not None)
        return process.returncode

    def close(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                for one in (
                    *psutil.Process(process.pid).children(recursive=True),
                    process,
                ):
                    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                        one.kill()
            process.wait()


@dataclass
class Model:
    """Answers at once, but for the file that it is to think about until it may
    `answer`.
    """

    slow: str = ""
    thinks: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __call__(self, request: Request) -> Answer:
        answer = good(request)
        if (
            self.slow
            and f"text:{self.slow}\n" in answer.text
            and not self.may_answer.is_set()
        ):
            self.thinks.set()
            self.may_answer.wait(GENEROUS)
        return answer


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[LoopbackServer]:
    with LoopbackServer(model) as server:
        yield server
        model.may_answer.set()


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return made_project(tmp_path / "project")


@pytest.fixture
def cluster(tmp_path: Path, story: Callable[..., None]) -> Iterator[Cluster]:
    is_hasty = story in (
        the_scheduler_is_killed,
        the_client_is_killed,
        stopped_for_too_long,
    )
    """Somebody is to be taken for dead who does not answer. Nobody else is, on however
    slow a machine.
    """
    folder = tmp_path / "cluster"
    folder.mkdir()
    env = {
        **os.environ,
        "OPENAI_API_KEY": "key",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "5s" if is_hasty else "120s",
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s" if is_hasty else "60s",
        "CDD_CLUSTER_PATIENCE": "15" if is_hasty else "60",
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "ann@example.org",
    }
    cluster = Cluster(folder, env)
    try:
        cluster.scheduler()
        yield cluster
    finally:
        cluster.close()


def content(sandbox: Sandbox) -> dict[str, str]:
    names = git(sandbox.root, "ls-tree", "-r", "--name-only", f"cdd/{SLUG}").split()
    return {
        name: git(sandbox.root, "show", f"cdd/{SLUG}:{name}")
        for name in names
        if name.endswith(".txt")
    }


def the_one_at_work(cluster: Cluster, workers: dict[str, str]) -> str:
    """The name of the worker that has the ticket."""
    return workers[until(cluster.at)[-1]]


def killed_in_a_reply(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    model.slow = "b.txt"
    workers = {cluster.worker(name): name for name in ("one", "two")}
    cluster.client(sandbox, server)
    until(model.thinks.is_set)
    cluster.processes[the_one_at_work(cluster, workers)].kill()
    model.may_answer.set()
    assert cluster.end_of() == 0
    assert len(cluster.at()) == 2
    assert content(sandbox) == DONE
    # the one that was on its way is asked for again, and no other
    assert len(server.requests) == 4


def killed_in_a_check(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    signs = sandbox.root.parent
    code = f"import os, time; open('{signs}/in-check', 'a').write('x'); "
    code += (
        f"[time.sleep(0.1) for _ in range(1200) if not os.path.exists('{signs}/go-on')]"
    )
    slow = Step("b.txt", f'python -c "{code}"', "Step 1")
    (sandbox.ticket / "plan.md").write_text(plan((STEPS[0], slow, STEPS[2])))
    workers = {cluster.worker(name): name for name in ("one", "two")}
    cluster.client(sandbox, server)
    until((signs / "in-check").exists)
    cluster.processes[the_one_at_work(cluster, workers)].kill()
    (signs / "go-on").touch()
    assert cluster.end_of() == 0
    assert content(sandbox) == DONE
    # only the step that ran is asked for again
    assert len(server.requests) == 4
    assert (signs / "in-check").read_text() == "xx"


def killed_while_the_run_is_saved(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    """While the client receives the run after its last step."""
    workers = {cluster.worker(name): name for name in ("one", "two")}
    cluster.client(sandbox, server)
    coming = sandbox.root / ".cdd" / "runs" / SLUG / "coming.bundle"
    until(lambda: coming.exists() and len(server.requests) == 3)
    cluster.processes[the_one_at_work(cluster, workers)].kill()
    assert cluster.end_of() == 0
    assert content(sandbox) == DONE
    assert len(server.requests) <= 4


def the_scheduler_is_killed(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    model.slow = "c.txt"
    cluster.worker("one")
    cluster.client(sandbox, server)
    until(model.thinks.is_set)
    cluster.processes["scheduler"].kill()
    assert cluster.end_of() == 1
    assert content(sandbox) == {"a.txt": "good", "b.txt": "good"}
    model.may_answer.set()
    asked = len(server.requests)
    assert asked == 3
    cluster.end_of("one")
    cluster.scheduler()
    cluster.worker("two")
    cluster.client(sandbox, server)
    assert cluster.end_of() == 0
    assert content(sandbox) == DONE
    assert len(server.requests) == asked + 1


def the_client_is_killed(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    model.slow = "c.txt"
    cluster.worker("one")
    cluster.client(sandbox, server)
    until(model.thinks.is_set)
    cluster.processes["client"].kill()
    cluster.end_of()
    model.may_answer.set()
    cluster.client(sandbox, server)
    assert cluster.end_of() == 0
    assert content(sandbox) == DONE
    assert len(server.requests) == 4


def stopped_for_too_long(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    model.slow = "b.txt"
    workers = {cluster.worker(name): name for name in ("one", "two")}
    cluster.client(sandbox, server)
    until(model.thinks.is_set)
    sleeper = cluster.processes[the_one_at_work(cluster, workers)]
    sleeper.send_signal(signal.SIGSTOP)
    model.may_answer.set()
    try:
        assert cluster.end_of() == 0
        assert len(cluster.at()) == 2
        before = git(sandbox.root, "rev-parse", f"cdd/{SLUG}")
        assert content(sandbox) == DONE
    finally:
        sleeper.send_signal(signal.SIGCONT)
    time.sleep(3)  # what it would do, it would do now
    assert git(sandbox.root, "rev-parse", f"cdd/{SLUG}") == before
    assert len(server.requests) == 4


def a_full_disk(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    """A worker that can write no file of more than so many bytes; the other one comes
    later.
    """
    (sandbox.root / "large").write_bytes(os.urandom(80_000))
    git(sandbox.root, "add", "large")
    git(sandbox.root, "commit", "--quiet", "--message=Something large")
    limited = (
        "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE,"
        " (50_000, 50_000)); "
    )
    limited += (
        "sys.argv = ['dask', *sys.argv[3:]]; runpy.run_module('dask',"
        " run_name='__main__')"
    )
    full = cluster.worker("full", before=("-c", limited))
    cluster.client(sandbox, server)
    until(
        lambda: (
            '"no_worker"' in json.dumps(cluster.events())
            or cluster.processes["client"].poll() is not None
        )
    )
    other = cluster.worker("other")
    if cluster.end_of():  # it was the only one
        cluster.client(sandbox, server)
        assert cluster.end_of() == 0
    assert cluster.at()[-1] == other != full
    assert content(sandbox) == DONE
    assert len(server.requests) == 3


def killed_before_the_call(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    workers = {cluster.worker(name): name for name in ("one", "two")}
    cluster.client(sandbox, server)
    cluster.processes[the_one_at_work(cluster, workers)].kill()
    assert cluster.end_of() == 0
    assert content(sandbox) == DONE
    assert len(server.requests) <= 4


def a_worker_without_git(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    poor = cluster.worker("poor", PATH=str(cluster.folder))
    cluster.client(sandbox, server)
    assert cluster.end_of() == 2
    events = json.dumps(cluster.events())
    assert poor in events
    assert "git was not found" in events
    other = cluster.worker("other")
    cluster.client(sandbox, server)
    assert cluster.end_of() == 0
    assert cluster.at() == [other]
    assert content(sandbox) == DONE


def a_cluster_with_certificates(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    """A client without a certificate of the cluster's authority is refused, and one
    with a certificate of another authority.
    """
    cluster.processes["scheduler"].kill()
    plain = dict(cluster.env)
    ours = certificates(cluster.folder / "ours")
    theirs = certificates(cluster.folder / "theirs")
    cluster.env.update(ours)
    cluster.scheduler("tls://127.0.0.1")
    address = cluster.worker("one")
    assert address.startswith("tls://")
    for name, env in (("without", plain), ("stranger", {**plain, **theirs})):
        cluster.env = env
        cluster.client(sandbox, server, name)
        assert cluster.end_of(name) == 2
        assert "No Dask scheduler answers" in cluster.said(name)
        assert not server.requests
    cluster.env = {**plain, **ours}
    cluster.client(sandbox, server)
    assert cluster.end_of() == 0
    assert content(sandbox) == DONE


def certificates(folder: Path) -> dict[str, str]:
    """Make an authority and a certificate; return Dask's settings for them."""
    folder.mkdir()
    common = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-batch")
    openssl(
        folder,
        "req",
        *common,
        "-subj",
        "/CN=authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    )
    openssl(
        folder,
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-batch",
        "-subj",
        "/CN=machine",
        "-keyout",
        "me.key",
        "-out",
        "me.csr",
    )
    openssl(
        folder,
        "x509",
        "-req",
        "-in",
        "me.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-out",
        "me.pem",
    )
    prefix = "DASK_DISTRIBUTED__COMM"
    settings = {
        f"{prefix}__REQUIRE_ENCRYPTION": "true",
        f"{prefix}__TLS__CA_FILE": str(folder / "ca.pem"),
    }
    for who in ("CLIENT", "SCHEDULER", "WORKER"):
        settings[f"{prefix}__TLS__{who}__CERT"] = str(folder / "me.pem")
        settings[f"{prefix}__TLS__{who}__KEY"] = str(folder / "me.key")
    return settings


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def another_version(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    older = cluster.folder / "older.py"
    older.write_text("import cdd_agent.version\ncdd_agent.version.VERSION = '0.0.1'\n")
    cluster.worker("old", "--preload", str(older))
    cluster.client(sandbox, server)
    assert cluster.end_of() == 2
    assert "0.0.1" in json.dumps(cluster.events())
    good_one = cluster.worker("new")
    cluster.client(sandbox, server)
    assert cluster.end_of() == 0
    assert cluster.at() == [good_one]
    assert content(sandbox) == DONE


def ctrl_c_on_this_machine(
    cluster: Cluster, sandbox: Sandbox, server: LoopbackServer, model: Model
) -> None:
    """With workers that share the client's terminal."""
    model.slow = "b.txt"
    cluster.address = "local"
    cluster.client(sandbox, server)
    until(model.thinks.is_set)
    os.killpg(cluster.processes["client"].pid, signal.SIGINT)
    assert cluster.end_of() == 130
    assert "Traceback" not in cluster.said("client")
    assert content(sandbox) == {"a.txt": "good"}
    model.may_answer.set()
    cluster.client(sandbox, server)
    assert cluster.end_of() == 0
    assert content(sandbox) == DONE
    assert len(server.requests) == 4


STORIES = (
    killed_in_a_reply,
    killed_before_the_call,
    killed_in_a_check,
    killed_while_the_run_is_saved,
    the_scheduler_is_killed,
    the_client_is_killed,
    stopped_for_too_long,
    a_full_disk,
    a_worker_without_git,
    a_cluster_with_certificates,
    another_version,
    ctrl_c_on_this_machine,
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = "CDD_TEST_KILLS" in os.environ
    metafunc.parametrize(
        "story", STORIES if every else STORIES[:1], ids=lambda story: story.__name__
    )


def test_nothing_is_lost_and_at_most_one_step_is_paid_twice(
    story: Callable[..., None],
    cluster: Cluster,
    sandbox: Sandbox,
    server: LoopbackServer,
    model: Model,
) -> None:
    story(cluster, sandbox, server, model)
