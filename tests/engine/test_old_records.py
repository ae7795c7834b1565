"""Runs that version 0.1 began are resumed, undone and redone by their old records. See
`fixtures_0_1/make.py`.
"""

import shutil
import tarfile
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from cdd_agent.engine import old_records
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.ledger_file import LedgerEntry, LedgerFile
from cdd_agent.engine.old_records import OldRecordUnreadable
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import StepDiff
from cdd_agent.events.stream import Event
from cdd_agent.llm.scripted_reply import ScriptedReply
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, noticed, says
from tests.support.tables import each_row
from tests.travel.copies import git

ARCHIVE = Path(__file__).parent / "fixtures_0_1" / "runs.tar.xz"
NAMES = (
    "a.txt",
    "b.txt",
    "local/c.txt",
    "half.txt",
    "made.txt",
    "old.txt",
    "report.txt",
)
GOOD = says("a.txt", "good")
GOOD_B = says("b.txt", "good") + says("local/c.txt", "ignored", "")

BASE = {"old.txt": "old\n", "report.txt": "report\n"}
FIRST = {**BASE, "a.txt": "good\n", "report.txt": "report\na.txt: good\n"}
BOTH = {
    **FIRST,
    "b.txt": "good\n",
    "local/c.txt": "ignored\n",
    "report.txt": "report\na.txt: good\nb.txt: good\n",
}
FAILED = {
    **FIRST,
    "b.txt": "bad\n",
    "report.txt": "report\na.txt: good\nb.txt: bad\n",
}
BY_COMMANDS = {
    "a.txt": "good\nformatted\n",
    "half.txt": "half\n",
    "made.txt": "made\n",
    "old.txt": "old\nmore\n",
}
FIRST_WITH_TOOLS = {
    **BY_COMMANDS,
    "report.txt": "report\na.txt: good\nformatted\n",
}
BOTH_WITH_TOOLS = {
    **FIRST_WITH_TOOLS,
    "b.txt": "good\n",
    "local/c.txt": "ignored\n",
    "report.txt": "report\na.txt: good\nformatted\nb.txt: good\n",
}
TWO_TRIES = {**FIRST, "report.txt": "report\na.txt: bad\na.txt: good\n"}


@pytest.fixture(scope="module")
def old_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="fully_trusted")
    return folder


@pytest.fixture
def old(old_runs: Path, tmp_path: Path) -> Callable[[str], Sandbox]:
    def copy(case: str) -> Sandbox:
        root = tmp_path / str(len([*tmp_path.iterdir()]))
        shutil.copytree(old_runs / case, root, symlinks=True)
        return Sandbox(root.resolve())

    return copy


def texts(sandbox: Sandbox) -> dict[str, str]:
    found = {}
    for name in NAMES:
        if (sandbox.root / name).exists():
            found[name] = sandbox.text(name)
    return found


Act = Callable[[Engine], Awaitable[object]]


async def do(sandbox: Sandbox, *acts: Act) -> list[Event]:
    """Do each in a process of its own."""
    events = []
    for act in acts:
        with closing(sandbox.engine()) as engine:
            events += await collect(act(engine))
    return events


async def go_on(engine: Engine) -> None:
    await engine.recover()
    await engine.run_all()


def skip(number: int, *, keep: bool = False) -> Act:
    async def act(engine: Engine) -> None:
        await engine.skip(engine.run.plan.steps[number - 1], "no", keep=keep)

    return act


def undo(number: int) -> Act:
    return lambda engine: engine.undo(number)


async def redo(engine: Engine) -> None:
    await engine.redo()


async def undo_nothing(engine: Engine) -> None:
    await engine.undo()


@dataclass(frozen=True)
class Row:
    case: str
    acts: tuple[Act, ...]
    files: dict[str, str]
    statuses: str
    replies: tuple[str | ScriptedReply, ...] = ()


ROWS = (
    Row("completed", (go_on,), BOTH, "completed completed"),
    Row("completed", (undo(2),), FIRST, "completed pending"),
    Row("completed", (undo(1),), BASE, "pending pending"),
    Row("completed", (undo(2), undo(1)), BASE, "pending pending"),
    Row("completed", (undo(1), redo), BOTH, "completed completed"),
    Row("failed", (go_on,), BOTH, "completed completed", (GOOD_B,)),
    Row("failed", (skip(2),), FIRST, "completed skipped"),
    Row("failed", (skip(2, keep=True),), FAILED, "completed skipped"),
    Row("failed", (undo(2),), FIRST, "completed pending"),
    Row("failed", (undo(1),), BASE, "pending pending"),
    Row("failed", (undo(1), redo), FAILED, "completed failed"),
    Row("killed_before_it_wrote", (go_on,), BOTH, "completed completed", (GOOD_B,)),
    Row("killed_before_it_wrote", (skip(1),), BASE, "skipped pending"),
    Row("killed_before_it_wrote", (undo_nothing,), BASE, "pending pending"),
    Row("killed_after_it_wrote", (go_on,), BOTH, "completed completed", (GOOD_B,)),
    Row("killed_after_it_wrote", (skip(1),), BASE, "skipped pending"),
    Row("killed_after_it_wrote", (undo_nothing,), BASE, "pending pending"),
    Row("stopped_after_it_wrote", (go_on,), BOTH, "completed completed", (GOOD_B,)),
    Row("stopped_after_it_wrote", (skip(1),), BASE, "skipped pending"),
    Row(
        "killed_in_a_command",
        (go_on,),
        BOTH_WITH_TOOLS,
        "completed completed",
        ("Done.", GOOD_B),
    ),
    Row(
        "killed_in_a_command",
        (skip(1),),
        {**BASE, "half.txt": "half\n"},
        "skipped pending",
    ),
    Row(
        "killed_in_a_command",
        (go_on, undo(1)),
        {
            **BASE,
            "half.txt": "half\n",
            "report.txt": BOTH_WITH_TOOLS["report.txt"],
        },
        "pending pending",
        ("Done.", GOOD_B),
    ),
    Row(
        "stopped_after_a_command",
        (go_on,),
        BOTH_WITH_TOOLS,
        "completed completed",
        ("Done.", GOOD_B),
    ),
    Row("stopped_after_a_command", (skip(1),), BASE, "skipped pending"),
    Row(
        "stopped_after_a_command",
        (go_on, undo(1)),
        # what the checks of version 0.2 write elsewhere is kept
        {**BASE, "report.txt": BOTH_WITH_TOOLS["report.txt"]},
        "pending pending",
        ("Done.", GOOD_B),
    ),
    Row("completed_with_tools", (undo(1),), BASE, "pending pending"),
    Row(
        "completed_with_tools",
        (undo(1), redo),
        BOTH_WITH_TOOLS,
        "completed completed",
    ),
    Row(
        "several_attempts",
        (go_on,),
        {**BOTH, "report.txt": TWO_TRIES["report.txt"] + "b.txt: good\n"},
        "completed completed",
        (GOOD_B,),
    ),
    Row("several_attempts", (skip(2),), TWO_TRIES, "completed skipped"),
    Row("several_attempts", (undo(2),), TWO_TRIES, "completed pending"),
    Row("several_attempts", (undo(1),), BASE, "pending pending"),
    Row("skipped", (undo(1),), BASE, "pending pending"),
    Row(
        "skipped",
        (go_on,),
        {
            **BASE,
            "b.txt": "good\n",
            "local/c.txt": "ignored\n",
            "report.txt": "report\na.txt: bad\nb.txt: good\n",
        },
        "skipped completed",
        (GOOD_B,),
    ),
    Row("undone", (redo,), BOTH, "completed completed"),
    Row("undone", (redo, undo(1)), BASE, "pending pending"),
    Row("undone", (go_on,), BOTH, "completed completed", (GOOD, GOOD_B)),
    Row("killed_in_an_undo", (undo_nothing,), BASE, "pending pending"),
    Row("killed_in_an_undo", (undo_nothing, redo), BOTH, "completed completed"),
    Row(
        "made_in_a_side_tree",
        (go_on,),
        {**BOTH_WITH_TOOLS, "local/c.txt": ""},
        "completed completed",
        (says("b.txt", "good"),),
    ),
    Row("made_in_a_side_tree", (skip(1),), BASE, "skipped pending"),
)


@pytest.mark.story
@pytest.mark.parametrize("case", sorted({row.case for row in ROWS}))
async def test_a_run_of_version_0_1_goes_on_and_goes_back(
    case: str, old: Callable[[str], Sandbox]
) -> None:
    wrong = {}
    for number, row in enumerate(ROWS):
        if row.case != case:
            continue
        sandbox = old(case).replies(*row.replies)
        sandbox.flags = {"tool_calls": "on" if "command" in case else "auto"}
        await do(sandbox, *row.acts)
        expected = {name: text for name, text in row.files.items() if text}
        found = (texts(sandbox), " ".join(sandbox.statuses()))
        asked = len(sandbox.model.requests)
        if (*found, asked) != (expected, row.statuses, len(row.replies)):
            wrong[number] = (*found, asked)
    assert wrong == {}


@pytest.mark.story
async def test_the_changes_of_a_step_of_version_0_1_are_shown(
    old: Callable[[str], Sandbox],
) -> None:
    rows = {
        ("completed", 1): {"a.txt", "report.txt"},
        ("completed", 2): {"b.txt", "local/c.txt", "report.txt"},
        ("failed", 2): {"b.txt", "report.txt"},
        ("several_attempts", 1): {"a.txt", "report.txt"},
        ("skipped", 1): {"a.txt", "report.txt"},
        ("completed_with_tools", 1): {*BY_COMMANDS, "report.txt"},
    }
    found = {}
    for case, number in rows:
        (shown,) = await do(old(case), lambda engine, step=number: engine.diff(step))
        assert isinstance(shown, StepDiff)
        found[case, number] = {
            line.split(" b/")[1]
            for line in shown.diff.splitlines()
            if line.startswith("diff --git")
        }
    assert found == rows


@pytest.mark.story
async def test_what_a_user_edited_since_version_0_1_is_kept_or_merged(
    old: Callable[[str], Sandbox],
) -> None:
    sandbox = old("completed")
    (sandbox.root / "b.txt").write_text("mine\n")
    report = sandbox.text("report.txt")
    (sandbox.root / "report.txt").write_text(f"mine\n\n\n\n{report}")
    await do(sandbox, undo(1))
    assert sandbox.text("b.txt") == "mine\n"
    assert sandbox.text("report.txt") == "mine\n\n\n\nreport\n"


@pytest.mark.story
async def test_a_run_of_version_0_1_is_started_over(
    old: Callable[[str], Sandbox],
) -> None:
    """What an interrupted step had written is restored before."""
    for case, left in {
        "killed_after_it_wrote": {},
        "killed_in_a_command": {
            name: BY_COMMANDS[name] for name in ("half.txt", "made.txt", "old.txt")
        },
    }.items():
        sandbox = old(case)
        with closing(sandbox.engine(start_over=True)):
            assert texts(sandbox) == {**BASE, **left}


def remove_checkpoints(record: Path) -> None:
    """As `git gc` does when somebody has removed their references."""
    root = record.parents[2]
    names = git(root, "for-each-ref", "--format=%(refname)", "refs/cdd").split()
    for name in names:
        git(root, "update-ref", "-d", name)
    git(root, "gc", "--quiet", "--prune=now")


def damage(name: str, text: str = "{") -> Callable[[Path], None]:
    def write(record: Path) -> None:
        for place in record.glob(f"step-*/attempt-*/{name}"):
            place.write_text(text)

    return write


def remove(name: str) -> Callable[[Path], None]:
    def unlink(record: Path) -> None:
        for place in record.glob(f"step-*/attempt-*/{name}"):
            place.unlink()

    return unlink


ESCAPE = '{"files": [{"path": "../x", "before": null, "after": null}]}'
DAMAGE: dict[str, Callable[[Path], None]] = {
    "checkpoints that are gone": remove_checkpoints,
    "torn checkpoints": damage("span.json"),
    "no checkpoints": remove("span.json"),
    "a torn journal": damage("changes.json"),
    "a journal with a path that goes up": damage("changes.json", ESCAPE),
}


@pytest.mark.story
@each_row("break_record", DAMAGE.values(), ids=DAMAGE)
async def test_a_damaged_record_of_version_0_1_is_refused_and_nothing_is_changed(
    break_record: Callable[[Path], None], old: Callable[[str], Sandbox]
) -> None:
    for case, acts in {
        "failed": (go_on, skip(2), undo(1), undo(2), lambda engine: engine.diff(1)),
        "killed_in_a_command": (skip(1),),
    }.items():
        sandbox = old(case)
        break_record(sandbox.root / ".cdd" / "runs" / SLUG)
        before = texts(sandbox), sandbox.statuses()
        for act in acts:
            with pytest.raises(OldRecordUnreadable, match=r"version 0\.1"):
                await do(sandbox, act)
            assert (texts(sandbox), sandbox.statuses()) == before
        number = len(before[1]) if case == "failed" else 1
        await do(sandbox, skip(number, keep=True))
        assert texts(sandbox) == before[0]
        assert sandbox.statuses()[number - 1] == "skipped"


@pytest.mark.story
async def test_an_interrupted_step_with_a_damaged_record_waits_or_is_started_over(
    old: Callable[[str], Sandbox],
) -> None:
    sandbox = old("killed_after_it_wrote").replies(GOOD)
    damage("changes.json")(sandbox.root / ".cdd" / "runs" / SLUG)
    before = texts(sandbox)
    with closing(sandbox.engine()) as engine:
        await collect(engine.carry_out())
        assert isinstance(engine.stopped_by, OldRecordUnreadable)
    assert texts(sandbox) == before
    assert not sandbox.model.requests
    with closing(sandbox.engine(start_over=True)) as engine:
        events = await collect(engine.recover())
    assert NoticeKind.LEFT_AS_IS in noticed(events)
    assert texts(sandbox) == before


@pytest.mark.long
@pytest.mark.story
@each_row("allowed", range(3))
async def test_a_kill_while_a_run_is_taken_over_loses_nothing(
    allowed: int, old: Callable[[str], Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many ledgers were written."""
    write = LedgerFile.write
    written = list[Path]()

    def die_later(self: LedgerFile, entries: Iterable[LedgerEntry]) -> None:
        if len(written) == allowed:
            raise KeyboardInterrupt
        written.append(self.path)
        write(self, entries)

    for case, acts, files in (
        ("undone", (redo,), BOTH),
        ("completed", (undo(1),), BASE),
        ("killed_in_an_undo", (undo_nothing, redo), BOTH),
        ("made_in_a_side_tree", (go_on,), {**BOTH_WITH_TOOLS, "local/c.txt": ""}),
    ):
        sandbox = old(case).replies(says("b.txt", "good"))
        written.clear()
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(LedgerFile, "write", die_later)
            sandbox.engine().close()
        await do(sandbox, *acts)
        expected = {name: text for name, text in files.items() if text}
        assert texts(sandbox) == expected, case


async def test_a_run_is_taken_over_once(
    old: Callable[[str], Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = old("several_attempts")
    sandbox.engine().close()

    async def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(old_records.Ledger, "open", never)
    sandbox.engine().close()


async def test_contents_of_ignored_files_are_taken_over_into_the_private_store(
    old: Callable[[str], Sandbox],
) -> None:
    sandbox = old("completed")
    sandbox.engine().close()
    record = sandbox.root / ".cdd" / "runs" / SLUG
    found = {
        folder: {file.read_text() for file in (record / folder).iterdir()}
        for folder in ("versions", "contents")
    }
    assert "ignored\n" in found["contents"]
    assert "ignored\n" not in found["versions"]
    assert "good\n" in found["versions"]
