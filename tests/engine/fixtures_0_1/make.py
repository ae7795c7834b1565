"""Make `runs.tar.xz`: projects with runs of version 0.1, for `test_old_records.py`.

    git clone . OLD && cd OLD && git checkout 21f96a19 && make .venv/.ready
    PYTHONPATH=. .venv/bin/python .../fixtures_0_1/make.py .../runs.tar.xz

It runs the code of that commit, the last one that kept a journal and checkpoints
instead of a ledger. Each folder of the archive is a project: with its repository, so
also with the objects of the checkpoints, its ticket and its record. A kill is a copy
that is made while the run is at work.
"""

import asyncio
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from cdd_agent.engine.history import History

from cdd_agent.cli.main import main
from cdd_agent.engine.engine import Engine
from cdd_agent.events.step_events import ChangesApplied, CheckpointStarted, StepStarted
from cdd_agent.events.stream import Event
from tests.engine.together import WithTools
from tests.engine.tool_steps import calls, create, execute, stopped_after
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import Sandbox, Step, says
from tests.travel.copies import git

CHECK = """\
import sys
text = open(sys.argv[1]).read()
open('report.txt', 'a').write(f'{sys.argv[1]}: {text}')
sys.exit('good' not in text)
"""
WORK = """\
open('a.txt', 'a').write('formatted\\n')
open('made.txt', 'w').write('made\\n')
open('old.txt', 'a').write('more\\n')
"""
SLOW = """\
import os, shutil
open('half.txt', 'w').write('half\\n')
if os.path.isdir('../killed'):
    shutil.copytree('.', '../killed/project', symlinks=True)
"""


def step(path: str, *also: str, depends: str = "None") -> Step:
    return Step(path, f"python -S check.py {path}", depends, also=also)


ONE = step("a.txt")
TWO = step("b.txt", "`local/c.txt`", depends="Step 1")
GOOD = says("a.txt", "good")
GOOD_B = says("b.txt", "good") + says("local/c.txt", "ignored", "")
WITH_TOOLS = (
    calls(create("a.txt", "good\n")),
    calls(execute("python -S work.py")),
    calls(execute("python -S slow.py")),
)


def begin(root: Path) -> Sandbox:
    root.mkdir(parents=True)
    git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    (root / ".gitignore").write_text("execution-state*.json\nlocal/\n")
    for name, text in {
        "old.txt": "old\n",
        "report.txt": "report\n",
        "check.py": CHECK,
        "work.py": WORK,
        "slow.py": SLOW,
    }.items():
        (root / name).write_text(text)
    sandbox = Sandbox(root.resolve()).write(ONE, TWO)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    return sandbox


async def run(sandbox: Sandbox, attempts: int = 1) -> None:
    engine = sandbox.engine()
    await collect(engine.recover())
    await collect(engine.run_all(attempts=attempts))
    engine.close()


async def with_engine(
    sandbox: Sandbox, act: Callable[[Engine], Awaitable[object]]
) -> None:
    engine = sandbox.engine()
    await collect(act(engine))
    engine.close()


async def killed_at(sandbox: Sandbox, kind: type[Event]) -> None:
    """Leave the project as a kill leaves it when the first such event is emitted."""
    killed = sandbox.root.with_name("killed")

    def copy(event: Event) -> None:
        if isinstance(event, kind) and not killed.exists():
            shutil.copytree(sandbox.root, killed, symlinks=True)

    with told_to(copy):
        await run(sandbox)
    shutil.rmtree(sandbox.root)
    killed.rename(sandbox.root)


async def completed(sandbox: Sandbox) -> None:
    await run(sandbox.replies(GOOD, GOOD_B))


async def failed(sandbox: Sandbox) -> None:
    await run(sandbox.replies(GOOD, says("b.txt", "bad")))


async def killed_before_it_wrote(sandbox: Sandbox) -> None:
    await killed_at(sandbox.replies(GOOD, GOOD_B), CheckpointStarted)


async def killed_after_it_wrote(sandbox: Sandbox) -> None:
    await killed_at(sandbox.replies(GOOD, GOOD_B), ChangesApplied)


async def stopped_after_it_wrote(sandbox: Sandbox) -> None:
    sandbox.replies(GOOD, GOOD_B)
    engine = sandbox.engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, ChangesApplied))
    engine.close()


async def killed_in_a_command(sandbox: Sandbox) -> None:
    killed = sandbox.root.with_name("killed")
    killed.mkdir()
    await run(sandbox.replies(*WITH_TOOLS, "Done.", GOOD_B))
    shutil.rmtree(sandbox.root)
    (killed / "project").rename(sandbox.root)


async def stopped_after_a_command(sandbox: Sandbox) -> None:
    engine = sandbox.replies(*WITH_TOOLS, "Done.").engine()
    await stopped_after(engine, "slow.py")
    engine.close()


async def completed_with_tools(sandbox: Sandbox) -> None:
    await run(sandbox.replies(*WITH_TOOLS, "Done.", GOOD_B))


async def several_attempts(sandbox: Sandbox) -> None:
    bad = says("a.txt", "bad")
    await run(
        sandbox.replies(bad, GOOD, says("b.txt", "bad"), says("b.txt", "worse")), 2
    )


async def skipped(sandbox: Sandbox) -> None:
    await run(sandbox.replies(says("a.txt", "bad")))
    await with_engine(
        sandbox, lambda engine: engine.skip(engine.run.plan.steps[0], "no", keep=False)
    )


async def undone(sandbox: Sandbox) -> None:
    await completed(sandbox)
    await with_engine(sandbox, lambda engine: engine.undo(1))


async def killed_in_an_undo(sandbox: Sandbox) -> None:
    await completed(sandbox)
    killed = sandbox.root.with_name("killed")
    restore = History.restore

    async def restore_half(self: History, net: object) -> object:
        (sandbox.root / "b.txt").unlink()
        shutil.copytree(sandbox.root, killed, symlinks=True)
        return await restore(self, net)

    History.restore = restore_half
    await with_engine(sandbox, lambda engine: engine.undo(1))
    History.restore = restore
    shutil.rmtree(sandbox.root)
    killed.rename(sandbox.root)


async def made_in_a_side_tree(sandbox: Sandbox) -> None:
    """Step 1 was made in a tree of its own, with tools, and nothing of it is in the
    user's tree yet.
    """
    sandbox.write(ONE, step("b.txt"))
    sandbox.flags = {"jobs": 2}
    rounds = [message.tool_calls[0] for message in WITH_TOOLS]
    answers = {1: "Done.", 2: says("b.txt", "good")}
    sandbox.real_model = WithTools(answers, rounds={1: rounds}, after={2: 1})
    engine = sandbox.engine()
    await stop_at(
        engine.run_all(),
        lambda event: isinstance(event, StepStarted) and not event.side_tree,
    )
    engine.close()


CASES = (
    completed,
    failed,
    killed_before_it_wrote,
    killed_after_it_wrote,
    stopped_after_it_wrote,
    killed_in_a_command,
    stopped_after_a_command,
    completed_with_tools,
    several_attempts,
    skipped,
    undone,
    killed_in_an_undo,
    made_in_a_side_tree,
)


def push(folder: Path) -> Path:
    """Push a run of which step 1 is completed. Returns the bare remote."""
    sandbox = begin(folder / "project")
    remote = folder / "remote.git"
    git(folder, "init", "--quiet", "--bare", "--template=", str(remote))
    git(sandbox.root, "remote", "add", "origin", str(remote))
    git(sandbox.root, "push", "--quiet", "origin", "HEAD:main")
    asyncio.run(run(sandbox.replies(GOOD)))
    code = main(["push", sandbox.slug, "-C", str(sandbox.root)])
    assert code == 0
    return remote


def shrink(root: Path) -> None:
    """Remove what no run needs."""
    git(root, "pack-refs", "--all")
    for place in (root / ".git" / "hooks", root / ".git" / "info"):
        shutil.rmtree(place, ignore_errors=True)


def make(target: str) -> None:
    os.environ["CDD_TRUST"] = "1"
    with tempfile.TemporaryDirectory() as name, tarfile.open(target, "w:xz") as archive:
        for case in CASES:
            sandbox = begin(Path(name) / case.__name__ / "project")
            asyncio.run(case(sandbox))
            sys.stdout.write(f"{case.__name__}: {sandbox.statuses()}\n")
            shrink(sandbox.root)
            archive.add(sandbox.root, case.__name__)
        archive.add(push(Path(name) / "pushed"), "remote.git")


if __name__ == "__main__":
    make(sys.argv[1])
