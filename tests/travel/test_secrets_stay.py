"""What may hold secrets is not sent, and is listed before anything is sent."""

import os
import subprocess
from pathlib import Path

import pytest

from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry, LedgerFile
from cdd_agent.engine.whereabouts import load_whereabouts
from cdd_agent.errors import BadInput
from cdd_agent.git.content_store import hash_content
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.travel.manifest import PROJECT
from cdd_agent.travel.packing import PackedRun
from cdd_agent.travel.secret_files import Reason
from cdd_agent.wiring.runs import open_travel
from tests.support.listening import tell
from tests.support.projects import SLUG, Sandbox
from tests.support.tables import each_row
from tests.travel.copies import (
    GOOD,
    Copies,
    cdd,
    events,
    files,
    git,
    many_processes,
    run,
)

KINDS = {
    "token": ("ghp_" + "a1B2c3D4e5" * 4,) * 2,
    "variable": ("9f8e7d6c5b4a39281706",) * 2,
    "key": (
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqh\n-----END PRIVATE KEY-----",
        "MIIEvQIBADANBgkqh",
    ),
    "address": ("postgres://shop:hunter2hunter2@db.example.org/x", "hunter2hunter2"),
    "anthropic": ("sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789",) * 2,
}
"""Texts with a secret, and the secret."""
READ_AGAIN = ("reply.md", "dialogue.json", "guidance.md", "meanwhile.json")
ONLY_READ = ("request.md", "output.txt", "reply-partial.md", "failure.json")
SECRET_NAMES = (".env", "keys/id_rsa", "a/b/.npmrc")
ODD_NAMES = ("two\nlines", os.fsdecode(b"caf\xe9.txt"), 'a "quote"\\')


def record_of(sandbox: Sandbox) -> Path:
    return sandbox.root / ".cdd" / "runs" / SLUG


def write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", KINDS["variable"][1])


async def pack(sandbox: Sandbox) -> tuple[PackedRun, str]:
    """Pack the run as a push does; return it with its commit."""
    ticket = sandbox.project.tickets.find(SLUG)
    async with open_travel(sandbox.project, ticket, tell).connect("origin") as link:
        project = await link.here.checkpoints.take(PROJECT)
        packed = await link.here.start_packing(link.reference.head).pack(project)
        return packed, await packed.commit(link.here.checkpoints, None)


def contents(sandbox: Sandbox, commit: str) -> bytes:
    archive = ["git", "archive", commit]
    return subprocess.run(
        archive, cwd=sandbox.root, check=True, capture_output=True
    ).stdout


def add_change(sandbox: Sandbox, path: str, text: str, *, is_ignored: bool) -> None:
    """Add a change of step 1 to its ledger, and the content before it."""
    content = text.encode()
    content_id = hash_content([content], len(content), "sha1")
    record = record_of(sandbox)
    write(record / "versions" / content_id, text)
    entry = LedgerEntry(
        kind=EntryKind.REPLY,
        attempt=1,
        changes=(Change(path, TreeEntry("100644", content_id), None),),
        private=(path,) if is_ignored else (),
    )
    LedgerFile(record / "step-01" / "ledger.jsonl").append(entry)


async def test_each_secret_stays_wherever_it_is(begun: Copies) -> None:
    first = begun.first
    left_out = dict.fromkeys(SECRET_NAMES, Reason.NAME)
    left_out |= dict.fromkeys(ODD_NAMES, Reason.CONTENT)
    left_out[".cdd/config.yaml"] = Reason.SETTINGS
    stayed = {}
    for name in (*SECRET_NAMES, ".cdd/config.yaml", "fine.txt"):
        write(first.root / name, f"# {name}\n")
    for name in ODD_NAMES:
        write(first.root / name, KINDS["token"][0])
    for number, (kind, (text, _)) in enumerate(KINDS.items(), start=2):
        tracked = first.root / f"tracked-{kind}.txt"
        write(tracked, "nothing yet\n")
        git(first.root, "add", tracked.name)
        git(first.root, "commit", "--quiet", f"--message={kind}")
        for path in (tracked.name, f"new-{kind}.txt", f"in/a/folder/{kind}"):
            write(first.root / path, f"It is {text}.\n")
            left_out[path] = Reason.CONTENT
        add_change(first, f"conf-{kind}.txt", text, is_ignored=False)
        stayed[f"conf-{kind}.txt"] = Reason.CONTENT
        attempt = record_of(first) / "step-01" / f"attempt-{number}"
        for name in (*READ_AGAIN, *ONLY_READ):
            write(attempt / name, f"It is {text}.\n")
        for name in READ_AGAIN:
            path = (attempt / name).relative_to(first.root).as_posix()
            left_out[path] = Reason.CONTENT
        with (record_of(first) / "events.jsonl").open("a") as log:
            log.write(f"It is {text}.\n")
    add_change(first, "local/b.txt", "ignored", is_ignored=True)
    add_change(first, "id_ed25519", "a key", is_ignored=False)
    add_change(first, "lib/x.txt", "a submodule's", is_ignored=False)
    stayed |= {"local/b.txt": Reason.IGNORED, "id_ed25519": Reason.NAME}
    stayed["lib/x.txt"] = Reason.INNER
    git(first.root, "init", "--quiet", "--template=", "lib")
    write(first.root / "lib" / "x.txt", "a submodule's")
    git(first.root / "lib", "add", "x.txt")
    git(first.root / "lib", "commit", "--quiet", "--message=A library")

    packed, commit = await pack(first)

    assert packed.left_out == left_out
    assert packed.stayed == stayed
    sent = contents(first, commit)
    assert [
        kind for kind, (_, secret) in KINDS.items() if secret.encode() in sent
    ] == []
    assert b"# fine.txt" in sent
    names = {entry.path for entry in packed.entries}
    for number, _ in enumerate(KINDS, start=2):
        for name in ONLY_READ:
            assert f"record/step-01/attempt-{number}/{name}" in names


@each_row("text", [text for text, _ in KINDS.values()], ids=list(KINDS))
async def test_a_spec_or_plan_with_a_secret_is_not_packed(
    begun: Copies, text: str
) -> None:
    for place in (begun.first.ticket / "plan.md", begun.first.ticket / "spec.yaml"):
        before = place.read_text()
        place.write_text(f"{before}\n{text}\n")
        with pytest.raises(BadInput, match=place.name):
            await pack(begun.first)
        place.write_text(before)


async def test_committed_contents_are_sent_also_under_other_names(
    begun: Copies,
) -> None:
    first = begun.first
    write(first.root / "example", KINDS["token"][0])
    write(first.root / ".env", "A=1\n")
    git(first.root, "add", "--all")
    git(first.root, "commit", "--quiet", "--message=Examples")
    (first.root / "example").rename(first.root / "renamed")
    packed, commit = await pack(first)
    assert packed.left_out == {}
    assert KINDS["token"][1].encode() in contents(first, commit)


@many_processes
def test_a_dry_run_lists_what_is_sent_and_sends_nothing(
    begun: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    first = begun.first
    for name in (".env", "mine.txt"):
        write(first.root / name, "mine\n")
    before = files(first.root)
    begun.remote.rename(begun.folder / "away.git")  # no remote is needed
    capsys.readouterr()
    assert cdd(first, "push", SLUG, "--dry-run", "--json") == 0
    printed = {event["kind"]: event["text"] for event in read_events(capsys)}
    assert printed.keys() == {"not_sent", "sent"}
    assert ".env" in printed["not_sent"]
    assert "mine.txt" in printed["sent"]
    assert ".env" not in printed["sent"]
    (begun.folder / "away.git").rename(begun.remote)
    assert git(begun.remote, "for-each-ref", "refs/cdd") == ""
    assert load_whereabouts(record_of(first)) is None
    assert files(first.root) == before
    assert run(first, *GOOD[1:]) == 0


@many_processes
def test_a_dry_run_leaves_no_record_of_a_ticket_without_a_run(copies: Copies) -> None:
    first = copies.first
    assert cdd(first, "push", SLUG, "--dry-run") == 0
    assert not (first.root / ".cdd" / "runs").exists()
    assert git(first.root, "for-each-ref", "refs/cdd") == ""


@many_processes
def test_a_dry_run_keeps_what_the_last_push_needs(pushed: Copies) -> None:
    before = git(pushed.first.root, "for-each-ref", "refs/cdd")
    assert cdd(pushed.first, "push", SLUG, "--dry-run") == 0
    assert git(pushed.first.root, "for-each-ref", "refs/cdd") == before
    assert cdd(pushed.first, "pull", SLUG) == 0


@many_processes
def test_the_list_is_printed_before_anything_is_sent(
    begun: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    first = begun.first
    for number in range(12):  # none is abbreviated
        write(first.root / f"env-{number}" / ".env", "mine\n")
    hook = begun.remote / "hooks" / "pre-receive"
    write(hook, "#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    capsys.readouterr()
    assert cdd(first, "push", SLUG, "--json") == 1
    (listed,) = read_events(capsys)
    assert listed["kind"] == "not_sent"
    for number in range(12):
        assert f"env-{number}/.env" in listed["text"]


@many_processes
def test_files_of_any_name_stay_and_come_to_no_harm(begun: Copies) -> None:
    first, second = begun.first, begun.second
    for name in ODD_NAMES:
        write(first.root / name, KINDS["token"][0])
    assert cdd(first, "push", SLUG) == 0
    assert KINDS["token"][1].encode() not in begun.everything_sent()
    assert cdd(second, "pull", SLUG) == 0
    assert not files(second.root).keys() & set(ODD_NAMES)
    assert run(second, *GOOD[1:]) == 0
    assert cdd(second, "push", SLUG) == 0
    assert cdd(first, "pull", SLUG) == 0
    for name in ODD_NAMES:
        assert (first.root / name).read_text() == KINDS["token"][0]


def read_events(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    return [event for event in events(capsys.readouterr().out) if "kind" in event]
