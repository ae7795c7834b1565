"""Changes by `cdd apply`, `cdd run` and chat: recorded, undone, done again."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

import pytest

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.cli.main import main
from cdd_agent.commands.registry import handle
from cdd_agent.engine import outside
from cdd_agent.engine.change_history import ChangeHistory, list_changes
from cdd_agent.engine.lock import TicketTaken
from cdd_agent.engine.outside import OutsideChanges
from cdd_agent.engine.outside_undo import OutsideUndoing
from cdd_agent.engine.outside_work import OutsideWork
from cdd_agent.engine.record import GoingBack
from cdd_agent.errors import BadInput
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.outside_events import (
    OutsideDiff,
    OutsideListed,
    OutsideRedone,
    OutsideUndone,
)
from cdd_agent.events.stream import Event, ignore_event
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import TicketStore
from tests.support.listening import collect
from tests.support.projects import Sandbox, noticed
from tests.support.tables import each_row

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\n"
NEW = "brand new\n"
Cause = Literal["apply", "run", "chat"]
Word = Literal["undo", "redo", "diff"]
CAUSES: tuple[Cause, ...] = ("apply", "run", "chat")
PLACES = {
    "created": "src/new.txt",
    "modified": "a.txt",
    "deleted": "a.txt",
    "ignored": "ignored.txt",
    "ignored and new": "new.ignored",
    "in a submodule": "lib/core/calc.txt",
    "in an ignored clone": "clones/other/calc.txt",
    "through a link": "shortcut/linked.txt",
    "of unusual permissions": "script.sh",
}
"""What happens to which file."""
State = dict[str, tuple[int, str]]
E = TypeVar("E", bound=Event)


def git(folder: Path, *words: str) -> None:
    settings = ("-c", "user.name=x", "-c", "user.email=x@y.z")
    allowed = ("-c", "protocol.file.allow=always")
    subprocess.run(
        ["git", *settings, *allowed, *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def repository(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")
    return folder


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    above = tmp_path_factory.mktemp("outside")
    core = repository(above / "core", calc__txt=TEXT)
    root = repository(above / "project", a__txt=TEXT, b__txt=TEXT)
    git(root, "submodule", "add", "-q", str(core), "lib/core")
    (root / "link").symlink_to("a.txt")
    (root / "folder").mkdir()
    (root / "folder" / "linked.txt").write_text(TEXT)
    (root / "shortcut").symlink_to("folder")
    (root / "script.sh").write_text(TEXT)
    (root / "script.sh").chmod(0o700)
    (root / ".gitignore").write_text("ignored.txt\n*.ignored\nclones/\n.cdd/\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "y")
    (root / "ignored.txt").write_text(TEXT)
    repository(root / "clones" / "other", calc__txt=TEXT)
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "project"
    subprocess.run(["cp", "-a", str(template), str(copy)], check=True)
    return copy


def state(root: Path) -> State:
    """All files of the project that are not git's or this program's."""
    found: State = {}
    for place in sorted(root.rglob("*")):
        path = place.relative_to(root).as_posix()
        if path.startswith(".cdd/") or ".git" in path.split("/"):
            continue
        if place.is_symlink():
            found[path] = (0, str(place.readlink()))
        elif place.is_file():
            found[path] = (stat.S_IMODE(place.stat().st_mode), place.read_text())
    return found


# The ways to change something


def apply(root: Path, reply: str) -> None:
    file = root.parent / "reply.md"
    file.write_text(reply)
    assert main(["apply", str(file), "--root", str(root), "--json"]) == 0


def carry_out(root: Path, *actions: dict[str, str]) -> int:
    file = root.parent / "plan.yaml"
    file.write_text(json.dumps(actions))
    return main(["run", str(file), "--root", str(root), "--yes", "--json"])


def talk(root: Path, *calls: tuple[str, dict[str, str]]) -> list[Event]:
    script = [
        ScriptedReply(tool_calls=(ToolCall(f"call-{n}", name, json.dumps(arguments)),))
        for n, (name, arguments) in enumerate(calls)
    ]
    session = Sandbox(root).replies(*script, "Done.").session()
    return asyncio.run(collect(handle(session, "do it")))


def edit(root: Path, cause: Cause, path: str, find: str, replace: str) -> None:
    """Change a text in a file; with nothing to find, make a new one."""
    arguments = {"file_path": path, "content": replace}
    name = "create_file"
    if find:
        arguments = {"file_path": path, "find": find, "replace": replace}
        name = "edit_file"
    if cause == "chat":
        talk(root, (name, arguments))
    elif cause == "run":
        action = "edit" if find else "create_file"
        assert carry_out(root, {"action": action, **arguments}) == 0
    elif find:
        block = f"<<<<<<< SEARCH\n{find}\n=======\n{replace}\n>>>>>>> REPLACE"
        apply(root, f"{path}\n{block}\n")
    else:
        apply(root, f"```text:{path}\n{replace}```\n")


def command(root: Path, cause: Cause, code: str) -> None:
    text = f'python -S -c "{code}"'
    if cause == "chat":
        talk(root, ("execute_command", {"command": text}))
    else:
        assert carry_out(root, {"action": "execute", "command": text}) == 0


# The way back


def undoing(root: Path, told: list[Event]) -> OutsideUndoing:
    return OutsideUndoing(OutsideChanges.open(root, Redactor()), told.append)


def go(root: Path, word: Word) -> list[Event]:
    told: list[Event] = []
    asyncio.run(getattr(undoing(root, told), word)())
    return told


def only(kind: type[E], events: list[Event]) -> E:
    (event,) = (event for event in events if isinstance(event, kind))
    return event


def undo(root: Path) -> OutsideUndone:
    return only(OutsideUndone, go(root, "undo"))


def redo(root: Path) -> OutsideRedone:
    return only(OutsideRedone, go(root, "redo"))


def listed(root: Path) -> OutsideListed:
    tickets = TicketStore(root)
    changes = OutsideChanges.open(root, Redactor())
    return list_changes(ChangeHistory(tickets, changes, Redactor()))


EDITS = [
    (cause, kind)
    for cause in CAUSES
    for kind in PLACES
    # no action removes a file
    if kind != "deleted" or cause == "apply"
]


def do_edit(root: Path, cause: Cause, kind: str) -> None:
    path = PLACES[kind]
    if kind == "deleted":
        apply(root, f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n")
    elif kind in ("created", "ignored and new"):
        edit(root, cause, path, "", NEW)
    else:
        edit(root, cause, path, "two", "TWO")


@each_row(("cause", "kind"), EDITS, ids=str)
def test_an_edit_goes_back_and_forth(root: Path, cause: Cause, kind: str) -> None:
    before = state(root)
    do_edit(root, cause, kind)
    after = state(root)
    assert before != after
    path = PLACES[kind].replace("shortcut", "folder")
    assert listed(root).changes[0].files == (path,)
    assert path in only(OutsideDiff, go(root, "diff")).diff
    for _ in range(2):
        assert undo(root).restored == (path,)
        assert state(root) == before
        assert redo(root).restored == (path,)
        assert state(root) == after
    assert noticed(go(root, "redo")) == [NoticeKind.NOT_DONE]
    undo(root)
    assert noticed(go(root, "undo")) == [NoticeKind.NOT_DONE]
    assert state(root) == before


@pytest.mark.long
@each_row(("cause", "kind"), EDITS, ids=str)
def test_later_edits_of_the_user_stay(root: Path, cause: Cause, kind: str) -> None:
    do_edit(root, cause, kind)
    path = PLACES[kind].replace("shortcut", "folder")
    place = root / path
    if kind not in ("created", "deleted", "ignored and new"):
        place.write_text(place.read_text().replace("six", "SIX"))
        assert undo(root).merged == (path,)
        assert place.read_text() == TEXT.replace("six", "SIX")
        place.write_text(place.read_text().replace("four", "FOUR"))
        assert redo(root).merged == (path,)
        merged = TEXT.replace("six", "SIX").replace("four", "FOUR")
        assert place.read_text() == merged.replace("two", "TWO")
        undo(root)
        assert place.read_text() == merged
        place.write_text(TEXT)
        do_edit(root, cause, kind)
    place.write_text("mine\n")
    assert undo(root).kept == (path,)
    assert place.read_text() == "mine\n"
    assert redo(root).restored == ()
    assert place.read_text() == "mine\n"


@each_row("first", CAUSES)
def test_one_undo_after_the_other(root: Path, first: Cause) -> None:
    before = state(root)
    texts = [TEXT]
    for cause, word in zip((first, *CAUSES), TEXT.split(), strict=False):
        edit(root, cause, "a.txt", word, word.upper())
        texts.append((root / "a.txt").read_text())
    assert len({*texts}) == 5
    for text in reversed(texts[:-1]):
        undo(root)
        assert (root / "a.txt").read_text() == text
    assert state(root) == before
    for text in texts[1:3]:
        redo(root)
        assert (root / "a.txt").read_text() == text
    edit(root, first, "b.txt", "one", "ONE")
    assert noticed(go(root, "redo")) == [NoticeKind.NOT_DONE]
    assert [change.is_undone for change in listed(root).changes] == [
        False,
        True,
        True,
        False,
        False,
    ]


COMMANDS = {
    "created": ("new.txt", "open('new.txt', 'w').write('x')"),
    "modified": ("a.txt", "open('a.txt', 'a').write('x')"),
    "deleted": ("a.txt", "import os; os.remove('a.txt')"),
    "in a submodule": ("lib/core/calc.txt", "open('lib/core/calc.txt','a').write('x')"),
    "a link": ("link", "import os; os.remove('link'); os.symlink('b.txt', 'link')"),
}


@each_row("cause", ("run", "chat"))
@each_row("kind", COMMANDS, is_sparse=True)
def test_what_a_command_changes_is_named_and_stays(
    root: Path, cause: Cause, kind: str
) -> None:
    path, code = COMMANDS[kind]
    edit(root, "apply", "b.txt", "one", "ONE")
    command(root, cause, code)
    after = state(root)
    assert listed(root).changes[0].others == (path,)
    undone = undo(root)
    assert (undone.restored, undone.others) == ((), (path,))
    assert state(root) == after
    assert undo(root).restored == ("b.txt",)


@each_row("cause", ("run", "chat"))
def test_an_ignored_file_that_a_command_changes_is_named(
    root: Path, cause: Cause
) -> None:
    text = "python -S -c \"open('ignored.txt', 'a').write('x')\""
    if cause == "run":
        new = {"action": "create_file", "file_path": "new.txt", "content": NEW}
        carry_out(root, new, {"action": "execute", "command": text})
    else:
        new = {"file_path": "new.txt", "content": NEW}
        talk(root, ("create_file", new), ("execute_command", {"command": text}))
    undone = undo(root)
    assert (undone.restored, undone.others) == (("new.txt",), ("ignored.txt",))
    assert (root / "ignored.txt").read_text() == TEXT + "x"


OWN = {
    "changes": "open('new.txt', 'a').write('x')",
    "deletes": "import os; os.remove('new.txt')",
    "links": "import os; os.remove('new.txt'); os.symlink('b.txt', 'new.txt')",
}


@each_row("is_known", (True, False))
@each_row("kind", OWN)
@each_row("cause", ("run", "chat"), is_sparse=True)
def test_what_a_command_makes_of_a_file_of_the_same_work_goes_back_with_it(
    root: Path, cause: Cause, kind: str, is_known: bool
) -> None:
    """Also in a folder without a repository."""
    if not is_known:
        for place in (root / ".git", root / "lib" / "core" / ".git"):
            place.rename(root.parent / f"git-{place.parent.name}")
    before = state(root)
    text = f'python -S -c "{OWN[kind]}"'
    new = {"file_path": "new.txt", "content": NEW}
    if cause == "run":
        actions = ({"action": "create_file", **new}, {"action": "execute"})
        actions[1]["command"] = text
        assert carry_out(root, *actions) == 0
    else:
        (root / ".cdd").mkdir(exist_ok=True)
        talk(root, ("create_file", new), ("execute_command", {"command": text}))
    after = state(root)
    if kind == "deletes":
        assert after == before
        assert noticed(go(root, "undo")) == [NoticeKind.NOT_DONE]
        return
    assert undo(root).restored == ("new.txt",)
    assert state(root) == before
    redo(root)
    assert state(root) == after


# What is recorded, and what is not


def test_who_caused_what_is_in_the_ledger(root: Path) -> None:
    edit(root, "apply", "a.txt", "one", "ONE")
    new = {"action": "create_file", "file_path": "new.txt", "content": NEW}
    carry_out(root, new, {"action": "execute", "command": "echo x"})
    talk(root, ("edit_file", {"file_path": "b.txt", "find": "one", "replace": "ONE"}))
    causes = [
        [entry.by for entry in change.entries if entry.by]
        for change in OutsideChanges.open(root, Redactor()).all()
    ]
    reply = f"cdd apply {root.parent / 'reply.md'}"
    plan = f"cdd run {root.parent / 'plan.yaml'}"
    assert causes == [
        [reply, reply],
        [plan, "create new.txt (1 line)", "echo x", "echo x"],
        ["chat: do it", "chat"],
    ]


def test_work_that_changes_nothing_leaves_no_trace(tmp_path: Path) -> None:
    root = repository(tmp_path / "plain", a__txt=TEXT)
    assert carry_out(root, {"action": "execute", "command": "echo x"}) == 0
    missing = {"file_path": "a.txt", "find": "nowhere", "replace": "x"}
    assert carry_out(root, {"action": "edit", **missing}) == 1
    assert not (root / ".cdd").exists()
    assert noticed(go(root, "undo")) == [NoticeKind.NOT_DONE]
    assert not (root / ".cdd").exists()
    git(root, "diff", "--exit-code")


def test_no_look_at_the_project_outlives_its_work(root: Path) -> None:
    command(root, "run", "open('new.txt', 'w').write('x')")
    listed = subprocess.run(
        ["git", "for-each-ref", "refs/cdd"], cwd=root, capture_output=True, check=True
    )
    assert listed.stdout == b""


def test_a_command_may_remove_the_record(root: Path) -> None:
    code = "import shutil; shutil.rmtree('.cdd')"
    command(root, "run", code)
    edit(root, "run", "a.txt", "two", "TWO")
    undo(root)
    assert (root / "a.txt").read_text() == TEXT


@each_row("cause", CAUSES)
def test_nothing_is_written_that_could_not_be_undone(root: Path, cause: Cause) -> None:
    before = state(root)
    (root / ".cdd").write_text("")
    if cause == "apply":
        (root.parent / "reply.md").write_text(f"```text:new.txt\n{NEW}```\n")
        reply = str(root.parent / "reply.md")
        assert main(["apply", reply, "--root", str(root)]) == 1
        assert main(["apply", reply, "--root", str(root), "--dry-run"]) == 0
    elif cause == "run":
        new = {"action": "create_file", "file_path": "new.txt", "content": NEW}
        assert carry_out(root, new) == 1
    else:
        events = talk(root, ("create_file", {"file_path": "new.txt", "content": NEW}))
        assert only(ToolFinished, events).problem
    (root / ".cdd").unlink()
    assert state(root) == before


def test_a_command_runs_without_a_record(root: Path) -> None:
    (root / ".cdd").write_text("")
    command(root, "run", "open('new.txt', 'w').write('x')")
    assert (root / "new.txt").read_text() == "x"


def test_the_oldest_records_are_removed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "MOST", 2)
    for text in ("one", "two", "three"):
        edit(root, "apply", "a.txt", text, text.upper())
    assert len(listed(root).changes) == 2
    for _ in range(2):
        undo(root)
    assert noticed(go(root, "undo")) == [NoticeKind.NOT_DONE]
    assert (root / "a.txt").read_text() == TEXT.replace("one", "ONE")


def test_a_content_that_is_gone_is_an_error_with_the_folder(root: Path) -> None:
    edit(root, "apply", "a.txt", "one", "ONE")
    (change,) = OutsideChanges.open(root, Redactor()).all()
    for content in (change.record.folder / "versions").iterdir():
        content.unlink()
    with pytest.raises(BadInput) as caught:
        go(root, "undo")
    assert ".cdd/runs/.changes/0001" in caught.value.message
    assert "ONE" in (root / "a.txt").read_text()


# Several processes


def write_new(work: OutsideWork, root: Path, path: str) -> None:
    changes = ChangeSet((FileChange(PurePosixPath(path), None, NEW.encode()),))
    with work.writing(changes, "test"):
        changes.apply(root)


def test_work_at_the_same_time_has_records_of_its_own(root: Path) -> None:
    def do(number: int) -> None:
        changes = OutsideChanges.open(root, Redactor())
        work = OutsideWork(changes, ignore_event, f"work {number}")
        write_new(work, root, f"new-{number}.txt")
        assert work.close() is not None

    before = state(root)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(do, range(12)))
    changes = listed(root).changes
    assert {change.what for change in changes} == {f"work {n}" for n in range(12)}
    for change in changes:
        assert undo(root).what == change.what
    assert state(root) == before


async def test_two_that_look_at_the_project_do_not_disturb_each_other(
    root: Path,
) -> None:
    changes = OutsideChanges.open(root, Redactor())
    works = [OutsideWork(changes, ignore_event, name) for name in ("first", "second")]
    states = []
    for work in works:
        await work.begin_inspecting()
        states.append(work.start_command("make"))
    (root / "made.txt").write_text("x")
    for work, own in zip(works, states, strict=True):
        assert own is not None
        await work.enter_command(own, "make", ())
        outcome = await work.finish()
        assert outcome is not None
        assert outcome.others == ("made.txt",)


def test_work_under_way_is_not_undone(root: Path) -> None:
    work = OutsideWork(OutsideChanges.open(root, Redactor()), ignore_event, "cdd run x")
    write_new(work, root, "new.txt")
    assert listed(root).changes[0].is_under_way
    with pytest.raises(TicketTaken):
        go(root, "undo")
    work.close()
    assert undo(root).restored == ("new.txt",)


def test_one_undo_at_a_time(root: Path) -> None:
    edit(root, "apply", "a.txt", "two", "TWO")
    lock = OutsideChanges.open(root, Redactor()).take_lock()
    words: tuple[Word, ...] = ("undo", "redo")
    for word in words:
        with pytest.raises(TicketTaken):
            go(root, word)
    lock.release()
    undo(root)


# Kills


@each_row("is_begun", (False, True))
def test_an_undo_that_was_killed_is_finished_by_the_next(
    root: Path, is_begun: bool
) -> None:
    for cause in CAUSES[:2]:
        edit(root, cause, f"{cause}.txt", "", NEW)
    last = OutsideChanges.open(root, Redactor()).all()[-1]
    if is_begun:
        undo(root)
        redo(root)
        entry = last.attempt.ledger.entries()[-2]
        last.record.save_going_back(GoingBack(entry.by, (1,)))
        (root / "run.txt").unlink()
    else:
        last.record.save_going_back(GoingBack("20990101T000000000000", (1,)))
    assert undo(root).what == last.what
    assert not (root / "run.txt").exists()
    assert (root / "apply.txt").exists()


DYING = """
import os, sys
from cdd_agent.changes import change_set
create = change_set.create_exclusive
def die(*arguments):
    create(*arguments)
    if arguments[0].name == "second.txt":
        os._exit(9)
change_set.create_exclusive = die
from cdd_agent.cli.main import main
main(["apply", sys.argv[1], "--root", sys.argv[2]])
"""
HALF = """```text:first.txt
1
```

```text:second.txt
2
```

```text:third.txt
3
```
"""


def die_in_the_middle(root: Path, python: Callable[..., int]) -> None:
    (root.parent / "reply.md").write_text(HALF)
    assert python(DYING, root.parent / "reply.md", root) == 9
    assert (root / "second.txt").exists()
    assert not (root / "third.txt").exists()


@pytest.fixture
def python() -> Callable[..., int]:
    def run(code: str, *arguments: Path) -> int:
        words = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(
            words, cwd=Path(__file__).parents[2], env={**os.environ}, timeout=300
        ).returncode

    return run


@pytest.mark.fork
def test_an_apply_that_was_killed_is_undone(
    root: Path, python: Callable[..., int]
) -> None:
    before = state(root)
    die_in_the_middle(root, python)
    assert undo(root).restored == ("first.txt", "second.txt")
    assert state(root) == before


@pytest.mark.fork
def test_work_that_was_killed_is_reported_once(
    root: Path, python: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    die_in_the_middle(root, python)
    reply = root.parent / "next.md"
    told = []
    for name in ("a", "b"):
        reply.write_text(f"```text:{name}.md\n{NEW}```\n")
        capsys.readouterr()
        assert main(["apply", str(reply), "--root", str(root)]) == 0
        told.append("first.txt, second.txt" in capsys.readouterr().err)
    assert told == [True, False]
    for _ in range(2):
        undo(root)
    assert undo(root).restored == ("first.txt", "second.txt")
