"""`/undo`, `/redo` and `/diff` without a name: the newest change of the session,
whatever made it.
"""

import json
import stat
import subprocess
from collections.abc import Iterable, Mapping
from itertools import permutations, product
from pathlib import Path, PurePosixPath

import pytest
from msgspec import Struct

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.commands.registry import handle, read_line
from cdd_agent.engine.outside import OutsideChanges
from cdd_agent.engine.outside_work import OutsideWork
from cdd_agent.engine.record import GoingBack, RunRecord
from cdd_agent.errors import BadInput, NotApproved
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.outside_events import (
    OutsideDiff,
    OutsideListed,
    OutsideRedone,
    OutsideUndone,
)
from cdd_agent.events.question_events import Choice, Proposal, UndoProposed
from cdd_agent.events.step_events import StepDiff, StepsRedone, StepsUndone
from cdd_agent.events.stream import Event, ignore_event
from cdd_agent.files.json_file import Damaged
from cdd_agent.frontend import Nobody
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from cdd_agent.text.redaction import Redactor
from tests.support.examples import cover_pairs
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, noticed, run_all, says
from tests.support.tables import each_row
from tests.support.undo_user import UndoUser

TEXT = "one\ntwo\nthree\nfour\nfive\n"


def call(tool: str, **arguments: str) -> ScriptedReply:
    name = f"{tool}-{arguments}"
    return ScriptedReply(tool_calls=(ToolCall(name, tool, json.dumps(arguments)),))


def edits(path: str, find: str, replace: str) -> ScriptedReply:
    return call("edit_file", file_path=path, find=find, replace=replace)


@pytest.fixture
def user() -> UndoUser:
    return UndoUser()


@pytest.fixture
def project(sandbox: Sandbox, user: UndoUser) -> Sandbox:
    (sandbox.root / "notes.txt").write_text(TEXT)
    sandbox.frontend = user
    bad = Step("bad.txt", check("bad.txt"))
    return sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"), bad)


def asked(project: Sandbox) -> list[UndoProposed]:
    assert isinstance(project.frontend, UndoUser)
    return project.frontend.asked


async def say(session: Session, line: str) -> list[Event]:
    return await collect(handle(session, line))


def kinds(events: list[Event]) -> set[type[Event]]:
    return {type(event) for event in events}


def words(events: list[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Notice))


State = Mapping[str, tuple[int, bytes]]


def state(root: Path) -> State:
    """All files of the project, except those of this program and of tickets."""
    files: dict[str, tuple[int, bytes]] = {}
    for place in sorted(root.rglob("*")):
        path = place.relative_to(root)
        if path.parts[0] in (".cdd", ".git", "tickets") or not place.is_file():
            continue
        files[path.as_posix()] = (
            stat.S_IMODE(place.stat().st_mode),
            place.read_bytes(),
        )
    return files


# One order over all kinds of changes


class Kind(Struct, frozen=True):
    """A kind of change: the replies that it takes, and the lines that make it."""

    replies: tuple[str | ScriptedReply, ...] = ()
    lines: tuple[str, ...] = ()
    title: str = ""
    elsewhere: bool = False
    """Another process makes it."""


KINDS = {
    "a turn of chat": Kind(
        (edits("notes.txt", "two", "TWO"), "Done."),
        ("write it large",),
        'the chat turn "write it large"',
    ),
    "a turn of chat with a command": Kind(
        (
            edits("notes.txt", "two", "TWO"),
            call("execute_command", command="echo more >> notes.txt"),
            "Done.",
        ),
        ("write it large",),
        'the chat turn "write it large"',
    ),
    "a completed step": Kind(
        (says("a.txt", "x"),), (f"/exec {SLUG}", "c"), f"step 1 of {SLUG}, Make a.txt"
    ),
    "a failed step": Kind(
        (says("bad.txt", "x"),),
        (f"/exec {SLUG}", "skip", "skip", "c"),
        f"step 3 of {SLUG}, Make bad.txt",
    ),
    "a skipped step": Kind(
        (), (f"/exec {SLUG}", "skip because no"), f"step 1 of {SLUG}, Make a.txt"
    ),
    "work in another terminal": Kind(title="`cdd run plan.yaml`", elsewhere=True),
}


def opened(project: Sandbox, names: Iterable[str]) -> Session:
    """Return a session whose model replies as these kinds of changes need."""
    project.frontend = UndoUser()
    replies = [reply for name in names for reply in KINDS[name].replies]
    return project.replies(*replies).session()


async def make(project: Sandbox, session: Session, name: str) -> State:
    """Make a change, and return the state of the files before its last line."""
    kind = KINDS[name]
    before = state(project.root)
    if kind.elsewhere:
        write_elsewhere(project.root, PurePosixPath("else.txt"), b"else\r\n")
    if "chat" in name and session.agent is not None:
        await say(session, "/chat")
    for line in kind.lines:
        before = state(project.root)
        await say(session, line)
    return before


def write_elsewhere(root: Path, path: PurePosixPath, content: bytes) -> None:
    """Write a file as `cdd run` does in another terminal."""
    changes = OutsideChanges.open(root, Redactor())
    work = OutsideWork(changes, ignore_event, "cdd run plan.yaml")
    place = root / path
    before = place.read_bytes() if place.exists() else None
    with work.writing(ChangeSet((FileChange(path, before, content),)), "create"):
        place.write_bytes(content)
    work.close()


@each_row("name", KINDS, ids=str)
async def test_each_kind_of_change_goes_back_and_forth(
    project: Sandbox, name: str
) -> None:
    session = opened(project, [name])
    before = await make(project, session, name)
    after = state(project.root)
    for count in (1, 2):
        undone = kinds(await say(session, "/undo"))
        assert undone & {StepsUndone, OutsideUndone}
        assert [each.title for each in asked(project)] == [KINDS[name].title] * count
        assert state(project.root) == before
        assert kinds(await say(session, "/redo")) & {StepsRedone, OutsideRedone}
        assert state(project.root) == after
    assert noticed(await say(session, "/redo")) == [NoticeKind.NOT_DONE]
    assert state(project.root) == after


ORDERED = ("a turn of chat", "a completed step", "work in another terminal")


@each_row("order", [*permutations(ORDERED)], ids=str)
async def test_undos_walk_back_and_redos_forward(
    project: Sandbox, order: tuple[str, ...]
) -> None:
    session = opened(project, order)
    states = [state(project.root)]
    for name in order:
        await make(project, session, name)
        states.append(state(project.root))
    for name, expected in zip(reversed(order), reversed(states[:-1]), strict=True):
        await say(session, "/undo")
        assert asked(project)[-1].title == KINDS[name].title
        assert state(project.root) == expected
    assert noticed(await say(session, "/undo")) == [NoticeKind.NOT_DONE]
    for expected in states[1:]:
        await say(session, "/redo")
        assert state(project.root) == expected
    assert noticed(await say(session, "/redo")) == [NoticeKind.NOT_DONE]


@each_row("name", ORDERED, ids=str)
async def test_a_new_change_of_any_kind_ends_the_redo(
    project: Sandbox, name: str
) -> None:
    edit = edits("notes.txt", "five", "FIVE")
    session = project.replies(edit, "Done.", *KINDS[name].replies).session()
    await say(session, "write five large")
    await say(session, "/undo")
    await make(project, session, name)
    after = state(project.root)
    assert noticed(await say(session, "/redo")) == [NoticeKind.NOT_DONE]
    assert state(project.root) == after


async def test_a_redo_of_a_step_ends_when_chat_changes_something(
    project: Sandbox,
) -> None:
    names = ("a completed step", "a turn of chat")
    session = opened(project, names)
    await make(project, session, names[0])
    await say(session, "/undo")
    await say(session, "/chat")
    await make(project, session, names[1])
    assert noticed(await say(session, "/redo")) == [NoticeKind.NOT_DONE]
    assert StepsRedone in kinds(await say(session, f"/redo {SLUG}"))


# The question


@each_row("name", ORDERED, ids=str)
async def test_without_a_yes_nothing_is_undone(project: Sandbox, name: str) -> None:
    session = opened(project, [name])
    await make(project, session, name)
    after = state(project.root)
    assert isinstance(project.frontend, UndoUser)
    project.frontend.choice = Choice.NO
    events = await say(session, "/undo")
    assert noticed(events) == [NoticeKind.NOT_DONE]
    assert not kinds(events) & {StepsUndone, OutsideUndone}
    session.frontend = Nobody()
    with pytest.raises(NotApproved):
        await say(session, "/undo")
    assert state(project.root) == after
    assert noticed(await say(session, "/redo")) == [NoticeKind.NOT_DONE]
    assert kinds(await say(session, "/undo --yes")) & {StepsUndone, OutsideUndone}
    assert len(asked(project)) == 1


NAMED = {
    "a turn of chat": "/undo change-1",
    "work in another terminal": "/undo change-1",
    "a completed step": f"/undo {SLUG} 1",
}


@each_row("name", NAMED, ids=str)
async def test_a_change_that_the_user_names_is_undone_at_once(
    project: Sandbox, name: str
) -> None:
    session = opened(project, [name])
    before = await make(project, session, name)
    after = state(project.root)
    later = project.session()
    text = words(await say(later, "/undo"))
    assert KINDS[name].title in text
    assert f"`{NAMED[name]}`" in text
    session.leave()  # lets another session have the ticket
    await say(later, NAMED[name])
    assert not asked(project)
    assert state(project.root) == before
    await say(later, "/redo")
    assert state(project.root) == after
    await say(later, "/undo")
    assert state(project.root) == before


async def test_the_question_says_what_stays(project: Sandbox) -> None:
    session = project.replies(
        edits("notes.txt", "two", "TWO"),
        call("create_file", file_path="new.txt", content="new"),
        call("execute_command", command="python -c \"open('made.txt', 'w')\""),
        "Done.",
    ).session()
    session.approval.change("auto")
    await say(session, "write it large")
    notes = project.root / "notes.txt"
    notes.write_text(notes.read_text().replace("five", "FIVE"))
    (project.root / "new.txt").write_text("mine")
    await say(session, "/undo")
    (proposal,) = asked(project)
    assert proposal.restored == ()
    assert proposal.merged == ("notes.txt",)
    assert proposal.kept == ("new.txt",)
    assert [*proposal.commands] == ["python -c \"open('made.txt', 'w')\""]
    assert notes.read_text() == TEXT.replace("five", "FIVE")


LATER = {
    "nothing": lambda place: None,
    "edited elsewhere": lambda place: place.write_bytes(
        place.read_bytes().replace(b"five", b"FIVE")
    ),
    "deleted": lambda place: place.unlink(),
    "of another mode": lambda place: place.chmod(0o700),
}
CONTENTS = {
    "text": TEXT.encode(),
    "CRLF": TEXT.replace("\n", "\r\n").encode(),
    "Latin-1": TEXT.encode() + "gar\u00e7on\n".encode("latin-1"),
}


@each_row(
    ("content", "later", "by"),
    cover_pairs(list(product(CONTENTS, LATER, ("chat", "step"))), 3),
    ids=str,
)
async def test_contents_and_later_edits(
    project: Sandbox, content: str, later: str, by: str
) -> None:
    place = project.root / "a.txt"
    first = CONTENTS[content]
    place.write_bytes(first)
    if by == "chat":
        session = project.replies(edits("a.txt", "two", "TWO"), "Done.").session()
        await say(session, "write it large")
    else:
        block = "a.txt\n<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n"
        session = project.replies(block).session()
        await say(session, f"/exec {SLUG}")
        await say(session, "c")
    changed = place.read_bytes()
    assert changed == first.replace(b"two", b"TWO")
    LATER[later](place)
    edited = state(project.root).get("a.txt")
    await say(session, "/undo")
    if later == "deleted":
        assert not place.exists()
    else:
        five = b"FIVE" if later == "edited elsewhere" else b"five"
        assert place.read_bytes() == first.replace(b"five", five)
    await say(session, "/redo")
    assert state(project.root).get("a.txt") == edited


def nest(root: Path) -> None:
    folder = root / "lib" / "core"
    folder.mkdir(parents=True)
    for place in (root, folder):
        subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    (folder / "calc.txt").write_text(TEXT)


def run_by_users(root: Path) -> None:
    (root / "run.sh").write_text(TEXT)
    (root / "run.sh").chmod(0o755)


def in_a_folder(root: Path) -> None:
    (root / "deep").mkdir()
    (root / "deep" / "old.txt").write_text(TEXT)


class Patch(Struct, frozen=True):
    """A change of a step that is no plain edit."""

    path: str
    reply: str
    also: tuple[str, ...] = ()


EDIT_OF = "{path}\n<<<<<<< SEARCH\ntwo\n=======\nTWO\n>>>>>>> REPLACE\n"
PLACES = {
    "in a nested repository": (nest, Patch("lib/core/calc.txt", EDIT_OF)),
    "executable": (run_by_users, Patch("run.sh", EDIT_OF)),
    "deleted": (
        in_a_folder,
        Patch(
            "deep/old.txt",
            "*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n",
            ("`deep/old.txt` (deleted)",),
        ),
    ),
    "renamed": (
        in_a_folder,
        Patch(
            "deep/old.txt",
            "*** Begin Patch\n*** Update File: {path}\n*** Move to: deep/new.txt\n"
            "@@\n one\n-two\n+TWO\n*** End Patch\n",
            ("`deep/new.txt`",),
        ),
    ),
}


@each_row("kind", PLACES, ids=str)
async def test_files_of_all_kinds_go_back_and_forth(
    project: Sandbox, kind: str
) -> None:
    prepare, patch = PLACES[kind]
    prepare(project.root)
    project.frontend = UndoUser()
    project.write(Step(patch.path, "none", also=patch.also))
    replies: list[str | ScriptedReply] = [patch.reply.format(path=patch.path)]
    by_chat = patch.reply is EDIT_OF
    if by_chat:
        replies += [edits(patch.path, "four", "FOUR"), "Done."]
    session = project.replies(*replies).session()
    states = [state(project.root)]
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    assert project.statuses() == ["completed"]
    states.append(state(project.root))
    if by_chat:
        await say(session, "write four large")
        states.append(state(project.root))
    assert len({str(each) for each in states}) == len(states)
    for expected in reversed(states[:-1]):
        await say(session, "/undo")
        assert state(project.root) == expected
    for expected in states[1:]:
        await say(session, "/redo")
        assert state(project.root) == expected


# Sessions


async def test_changes_of_an_earlier_session_belong_to_it_again_once_resumed(
    project: Sandbox,
) -> None:
    session = opened(project, ["a turn of chat"])
    before = await make(project, session, "a turn of chat")
    later = project.session()
    assert noticed(await say(later, "/undo")) == [NoticeKind.NOT_DONE]
    await say(later, "/resume")
    await say(later, "/undo")
    assert state(project.root) == before
    last = project.session()
    await say(last, "/resume")
    await say(last, "/redo")
    assert project.text("notes.txt") == TEXT.replace("two", "TWO")


async def test_a_resumed_run_brings_its_steps(project: Sandbox) -> None:
    session = opened(project, ["a completed step"])
    before = await make(project, session, "a completed step")
    session.leave()
    later = project.session()
    await say(later, f"/exec {SLUG}")
    assert NAMED["a completed step"] in words(await say(later, "/undo"))
    later.leave()
    await say(later, f"/resume {SLUG}")
    await say(later, "/undo")
    assert state(project.root) == before


async def test_a_resumed_planner_brings_the_steps_of_its_ticket(
    project: Sandbox,
) -> None:
    session = opened(project, ["a completed step"])
    before = await make(project, session, "a completed step")
    session.leave()
    planning = project.session()
    await say(planning, f"/plan {SLUG}")
    planning.leave()
    later = project.session()
    await say(later, "/resume")
    later.leave()
    await say(later, "/undo")
    assert state(project.root) == before


async def test_two_shells_undo_their_own_turns(project: Sandbox) -> None:
    first = project.replies(edits("notes.txt", "two", "TWO"), "Done.").session()
    second = project.session()
    await say(first, "write two large")
    project.model.script += project.replies(
        edits("notes.txt", "four", "FOUR"), "Done."
    ).model.script
    second = project.session()
    await say(second, "write four large")
    await say(first, "/undo")
    assert project.text("notes.txt") == TEXT.replace("four", "FOUR")
    assert noticed(await say(first, "/undo")) == [NoticeKind.NOT_DONE]
    await say(second, "/undo")
    assert project.text("notes.txt") == TEXT
    await say(first, "/redo")
    assert project.text("notes.txt") == TEXT.replace("two", "TWO")


async def test_the_list_has_steps_and_changes_outside_of_tickets(
    project: Sandbox,
) -> None:
    session = opened(project, ORDERED)
    for name in ORDERED:
        await make(project, session, name)
    await say(session, "/undo")
    (listed,) = await say(session, "/undo --list")
    assert isinstance(listed, OutsideListed)
    assert [(view.name, view.files, view.is_undone) for view in listed.changes] == [
        ("change-2", ("else.txt",), True),
        (f"{SLUG} 1", ("a.txt",), False),
        ("change-1", ("notes.txt",), False),
    ]


async def test_the_words_without_a_run_are_about_the_newest_change(
    project: Sandbox,
) -> None:
    session = opened(project, ["a turn of chat"])
    before = await make(project, session, "a turn of chat")
    meaning = session.meaning("undo")
    assert meaning is not None
    assert "ask" in meaning.hint
    assert OutsideDiff in kinds(await say(session, "diff"))
    await say(session, "undo")
    assert state(project.root) == before
    assert OutsideRedone in kinds(await say(session, "redo"))


async def test_a_diff_without_a_name_shows_the_newest_change(project: Sandbox) -> None:
    session = opened(project, ("a completed step", "a turn of chat"))
    assert noticed(await say(session, "/diff")) == [NoticeKind.NOT_DONE]
    await make(project, session, "a completed step")
    assert StepDiff in kinds(await say(session, "/diff"))
    await say(session, "/chat")
    await make(project, session, "a turn of chat")
    assert OutsideDiff in kinds(await say(session, "/diff"))
    await say(session, "/undo")
    assert StepDiff in kinds(await say(session, "/diff"))
    assert OutsideDiff in kinds(await say(session, "/diff change-1"))


async def test_a_step_without_a_ticket_and_an_unknown_change_are_refused(
    project: Sandbox,
) -> None:
    for line in ("/undo 1", "/undo change-1", "/redo change-1", "/diff change-1"):
        with pytest.raises(BadInput):
            await say(project.session(), line)
    session = opened(project, ["a turn of chat"])
    await make(project, session, "a turn of chat")
    after = state(project.root)
    for word in ("undo", "redo", "diff"):
        with pytest.raises(BadInput):
            await say(session, f"/{word} change-1 2")
    assert state(project.root) == after


async def test_the_hint_of_a_named_change_says_what_enter_does(
    project: Sandbox,
) -> None:
    session = opened(project, ["a turn of chat"])
    await make(project, session, "a turn of chat")
    for word in ("diff", "undo", "redo"):
        meaning = read_line(session, f"/{word} change-1")
        assert meaning.hint == f"Enter: {word} change-1"
    meaning = read_line(session, "/status change-1")
    assert meaning.hint.startswith("Enter does nothing")


@each_row(
    "line",
    ("/undo 1 2", "/diff 1 2", "/redo 1", f"/redo {SLUG} 1", f"/undo {SLUG} 1 2"),
    ids=str,
)
async def test_more_than_one_step_is_refused(project: Sandbox, line: str) -> None:
    session = opened(project, ["a completed step"])
    await make(project, session, "a completed step")
    after, asked = state(project.root), len(project.model.requests)
    with pytest.raises(BadInput):
        await say(session, line)
    assert state(project.root) == after
    assert len(project.model.requests) == asked


async def test_a_damaged_change_does_not_keep_the_steps_of_a_ticket_from_an_undo(
    project: Sandbox,
) -> None:
    session = opened(project, ["a turn of chat", "a completed step"])
    await make(project, session, "a turn of chat")
    before = await make(project, session, "a completed step")
    ledger = project.root / ".cdd/runs/.changes/0001/step-01/ledger.jsonl"
    ledger.write_text("nothing that a ledger has\n")
    with pytest.raises(Damaged):
        await say(session, "/undo")
    assert StepsUndone in kinds(await say(session, f"/undo {SLUG}"))
    assert state(project.root) == before
    events = await say(session, f"/undo {SLUG}")
    assert noticed(events) == [NoticeKind.NOT_DONE]
    assert SLUG in words(events)


# Interruptions and other processes


@each_row("word", ("undo", "redo"), ids=str)
async def test_an_undo_that_was_killed_is_finished_without_a_question(
    project: Sandbox, word: str
) -> None:
    """The note is there, and no file was changed yet."""
    for name in ("a turn of chat", "a completed step"):
        session = opened(project, [name])
        before = await make(project, session, name)
        after = state(project.root)
        if word == "redo":
            await say(session, "/undo")
        slug = SLUG if name == "a completed step" else ".changes/0001"
        record = RunRecord.of(project.root, slug, Redactor())
        noted = GoingBack(id="20261127T000000000000", steps=(1,))
        if word == "redo":
            undone = record.attempt(1, 1).ledger.entries()[-1]
            noted = GoingBack(id=undone.by, steps=(1,), again=True)
        count = len(asked(project))
        record.save_going_back(noted)
        await say(session, f"/{word}")
        assert len(asked(project)) == count
        assert state(project.root) == (before if word == "undo" else after)
        assert record.going_back is None
        session.leave()


async def test_work_under_way_is_not_undone(project: Sandbox) -> None:
    session = project.session()
    changes = OutsideChanges.open(project.root, Redactor())
    work = OutsideWork(changes, ignore_event, "cdd run plan.yaml")
    path = PurePosixPath("new.txt")
    with work.writing(ChangeSet((FileChange(path, None, b"x"),)), "create"):
        (project.root / path).write_bytes(b"x")
    with pytest.raises(BadInput, match="under way"):
        await say(session, "/undo")
    assert not asked(project)
    work.close()
    await say(session, "/undo")
    assert not (project.root / path).exists()


async def test_a_run_that_another_process_holds_is_not_undone(
    project: Sandbox,
) -> None:
    session = opened(project, ["a completed step"])
    await make(project, session, "a completed step")
    session.leave()
    after = state(project.root)
    other = project.session()
    await say(other, f"/exec {SLUG}")
    with pytest.raises(BadInput):
        await say(session, "/undo")
    assert not asked(project)
    assert state(project.root) == after


async def test_a_change_that_another_shell_undid_meanwhile_is_not_undone_again(
    project: Sandbox,
) -> None:
    """The question is open in one shell, and the other one undoes the change."""
    session = opened(project, ["work in another terminal"])
    before = await make(project, session, "work in another terminal")

    class Slow(UndoUser):
        async def approve(self, proposal: Proposal) -> Choice:
            await say(other, "/undo change-1")
            return await super().approve(proposal)

    other = project.session()
    session.frontend = Slow()
    assert NoticeKind.NOT_DONE in noticed(await say(session, "/undo"))
    assert state(project.root) == before
    await say(session, "/redo")
    assert "else.txt" in state(project.root)


async def test_a_step_that_ended_while_the_change_was_chosen_is_not_undone(
    project: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question would name one step, and the undo cover two."""
    session = opened(project, ["a completed step"])
    await make(project, session, "a completed step")
    session.leave()
    changes = session.undoing.history.read()
    await run_all(project.replies(says("b.txt", "x"), says("bad.txt", "good")))
    after = state(project.root)
    undoing = session.undoing
    monkeypatch.setattr(type(undoing.history), "read", lambda _: changes)
    with pytest.raises(BadInput, match="no longer the last step"):
        await undoing.undo()
    assert state(project.root) == after


async def test_a_step_and_chat_change_the_same_file(project: Sandbox) -> None:
    project.write(Step("notes.txt", "none"))
    text = TEXT.replace("one", "ONE").strip()
    edit = edits("notes.txt", "five", "FIVE")
    session = project.replies(says("notes.txt", text), edit, "Done.").session()
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    await say(session, "write it large")
    (undone,) = [
        event
        for event in await say(session, f"/undo {SLUG} 1")
        if isinstance(event, StepsUndone)
    ]
    assert undone.merged == ("notes.txt",)
    assert project.text("notes.txt") == TEXT.replace("five", "FIVE")
    (back,) = [
        event
        for event in await say(session, "/undo")
        if isinstance(event, OutsideUndone)
    ]
    assert back.merged == ("notes.txt",)
    assert project.text("notes.txt") == TEXT


async def test_a_damaged_ticket_does_not_hide_other_changes(project: Sandbox) -> None:
    session = opened(project, ["a turn of chat"])
    before = await make(project, session, "a turn of chat")
    (project.ticket / "execution-state.json").write_text("{")
    await say(session, "/undo")
    assert state(project.root) == before
