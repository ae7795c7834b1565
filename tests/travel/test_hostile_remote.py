"""What a remote sends is judged before anything of it is used: nothing of it goes to
the project then.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest

from cdd_agent.engine.whereabouts import load_whereabouts
from cdd_agent.git.command import Git
from cdd_agent.git.content_store import hash_content
from cdd_agent.git.remote import Address, Remote
from cdd_agent.travel import reference, unpacking
from cdd_agent.travel.arrival import Arrival
from cdd_agent.travel.reference import NotARun, RunReference
from tests.support.projects import SLUG, Sandbox
from tests.travel.copies import REFERENCE, Copies, cdd, files, git, many_processes

Tamper = Callable[["Files"], None]
ATTEMPT = "record/step-01/attempt-1"
LEDGER = "record/step-01/ledger.jsonl"
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""The name of the content of an empty file."""


class Files(Protocol):
    """The files of the commit in the remote, about to be changed."""

    def read(self, path: str) -> str: ...

    def put(self, path: str, content: str | bytes, mode: str = "100644") -> None: ...

    def remove(self, path: str) -> None: ...


def change_json(content: Files, path: str, change: Callable[[Any], None]) -> None:
    """Change a file of JSON."""
    value = json.loads(content.read(path))
    change(value)
    content.put(path, json.dumps(value))


class Imported:
    """Commits beside the one in the remote, all made by one process of git."""

    def __init__(self, remote: Path) -> None:
        self.remote = remote
        self._count = 0
        self._known = dict[str, str]()
        self._stream = bytearray()

    def begin(self) -> str:
        """Begin another commit; return its name."""
        self._count += 1
        name = f"refs/tampered/{self._count}"
        self._stream += f"commit {name}\ncommitter Eve <eve@example.org> now\n".encode()
        self._stream += f"data 0\nfrom {REFERENCE}^0\n".encode()
        return name

    def read(self, path: str) -> str:
        if path not in self._known:
            self._known[path] = git(self.remote, "show", f"{REFERENCE}:{path}")
        return self._known[path]

    def put(self, path: str, content: str | bytes, mode: str = "100644") -> None:
        data = content if isinstance(content, bytes) else content.encode()
        self._stream += f"M {mode} inline {path}\ndata {len(data)}\n".encode()
        self._stream += data + b"\n"

    def remove(self, path: str) -> None:
        self._stream += f"D {path}\n".encode()

    def make(self) -> None:
        words = ("fast-import", "--quiet", "--date-format=now")
        git(self.remote, *words, data=bytes(self._stream))


class Tampered:
    """The commit in the remote, about to be replaced by another one."""

    def __init__(self, copies: Copies) -> None:
        self.remote = copies.remote
        self.index = {"GIT_INDEX_FILE": str(copies.folder / "index")}
        self.git("read-tree", REFERENCE)

    def git(self, *words: str, data: bytes | None = None) -> str:
        command = [
            "git",
            "-c",
            "user.name=Eve",
            "-c",
            "user.email=eve@example.org",
            *words,
        ]
        env = {**os.environ, **self.index}
        return subprocess.run(
            command,
            cwd=self.remote,
            env=env,
            input=data,
            check=True,
            capture_output=True,
        ).stdout.decode(errors="replace")

    def read(self, path: str) -> str:
        return self.git("show", f":{path}")

    def put(self, path: str, content: str | bytes, mode: str = "100644") -> None:
        data = content if isinstance(content, bytes) else content.encode()
        name = self.git("hash-object", "-w", "--stdin", data=data).strip()
        self.git("update-index", "--add", "--cacheinfo", f"{mode},{name},{path}")

    @property
    def tree(self) -> str:
        return self.git("write-tree").strip()

    def remove(self, path: str) -> None:
        self.git("rm", "-r", "--quiet", "--cached", path)

    def publish(self, tree: str | None = None) -> None:
        commit = self.git(
            "commit-tree", "-m", "x", "-p", REFERENCE, tree or self.tree
        ).strip()
        self.git("update-ref", REFERENCE, commit)


def entry(number: int, **fields: object) -> Tamper:
    """Change an entry of the ledger."""

    def change(it: Files) -> None:
        lines = it.read(LEDGER).splitlines()
        lines[number] = json.dumps(json.loads(lines[number]) | fields)
        it.put(LEDGER, "\n".join((*lines, "")))

    return change


def tree(**fields: object) -> Tamper:
    """Change the checkpoint before the attempt."""

    def change(it: Files) -> None:
        begin = json.loads(it.read(LEDGER).splitlines()[1])
        entry(1, tree=begin["tree"] | fields)(it)

    return change


def changed(path: str, **fields: object) -> Tamper:
    """Let the reply have changed this file. By default it is an empty one."""
    file = {"mode": "100644", "content": EMPTY, "permissions": None} | fields
    return entry(2, changes=[{"path": path, "before": file, "after": None}])


def link(target: str) -> Tamper:
    """Let the reply have removed a link."""
    content = target.encode()
    name = hash_content([content], len(content), "sha1")

    def put(it: Files) -> None:
        it.put(f"record/versions/{name}", content)
        changed("link", mode="120000", content=name)(it)

    return put


def span(**fields: object) -> Tamper:
    """Add a record of version 0.1."""
    before = {"name": "step-01/attempt-1/before", "id": "0" * 40}
    text = json.dumps({"before": before, "after": None} | fields)
    return lambda it: it.put(f"{ATTEMPT}/span.json", text)


def calls(value: dict[str, Any]) -> Tamper:
    return lambda it: it.put(f"{ATTEMPT}/call-1.json", json.dumps({"files": value}))


def state(change: Callable[[Any], None]) -> Tamper:
    return lambda it: change_json(it, "ticket/execution-state.json", change)


def put_journal(content: Files, path: str) -> None:
    entry = {"path": path, "before": None, "after": None}
    content.put(f"{ATTEMPT}/changes.json", json.dumps({"files": [entry]}))


def saved(path: str) -> dict[str, Any]:
    return {path: {"mode": "100644", "content": "0" * 40, "permissions": None}}


def hostile_note(change: Callable[[Any], None]) -> Tamper:
    return lambda it: change_json(it, "run.json", lambda run: change(run["notes"][0]))


def put_link(tampered: Tampered, target: str) -> None:
    tampered.put("project/links/away", target, "120000")
    project = tampered.git("write-tree", "--prefix=project/").strip()
    change_json(tampered, "run.json", lambda it: it.update(project=project))


TAMPERED: dict[str, Tamper] = {
    "a file of another name": lambda it: it.put("record/holder.json", "{}"),
    "a file that is run": lambda it: it.put(f"{ATTEMPT}/reply.md", "x", "100755"),
    "a link": lambda it: it.put(f"{ATTEMPT}/reply.md", "/etc/passwd", "120000"),
    "a folder elsewhere": lambda it: it.put("record/step-01/other/reply.md", "x"),
    "a file of another ticket": lambda it: it.put("ticket/notes.md", "x"),
    "no manifest": lambda it: it.remove("run.json"),
    "no project": lambda it: it.remove("project"),
    "no checkpoints": lambda it: it.remove("checkpoints"),
    "a torn manifest": lambda it: it.put("run.json", "{"),
    "another run": lambda it: change_json(
        it, "run.json", lambda it: it.update(slug="feature-other")
    ),
    "a newer form": lambda it: change_json(
        it, "run.json", lambda it: it.update(version=99)
    ),
    "a name that goes up": lambda it: change_json(
        it, "run.json", lambda it: it["checkpoints"].update({"a/../b": "0" * 40})
    ),
    "a broken name": lambda it: change_json(
        it, "run.json", lambda it: it.update(left_out=["\0zz"])
    ),
    "an id that is an option": lambda it: change_json(
        it, "run.json", lambda it: it.update(project="--output=/tmp/x")
    ),
    "notes with a broken name": hostile_note(lambda it: it.update(unseen=["\0zz"])),
    "a torn lease": lambda it: it.put("lease.json", '{"holder": 1}'),
    "a torn state": lambda it: it.put("ticket/execution-state.json", "{"),
    "a state of another ticket": state(
        lambda it: it.update(ticket_slug="feature-other")
    ),
    "an undo that is a path": state(
        lambda it: it.update(undone=[{"id": "../../HEAD", "steps": []}])
    ),
    "a torn copy of the state": lambda it: it.put("record/state.json", "[]"),
    "a torn spec": lambda it: it.put("ticket/spec.yaml", "title: [\n"),
    "a spec that is not text": lambda it: it.put("ticket/spec.yaml", b"\xff\xfe\x00"),
    "a torn baseline": lambda it: it.put("record/baseline.json", "{"),
    "a torn ledger": lambda it: it.put(LEDGER, '{"ledger":1}\n{\n'),
    "a ledger without a version": lambda it: it.put(LEDGER, "{}\n"),
    "a ledger of a later version": lambda it: it.put(LEDGER, '{"ledger":99}\n'),
    "a checkpoint that is an option": tree(id="--output=/tmp/x"),
    "a checkpoint of another name": tree(name="step-01/attempt-1/other"),
    "a checkpoint that is not part of it": tree(id="0" * 40),
    "a checkpoint with other notes": tree(also=["other"]),
    "a changed file that goes up": changed("../x"),
    "a changed file elsewhere": changed("/tmp/x"),
    "a changed hook": changed(".git/hooks/post-commit"),
    "a changed hook of a submodule": changed("lib/.GIT/hooks/post-commit"),
    "a changed record": changed(f".cdd/runs/{SLUG}/state.json"),
    "changed settings": changed(".cdd/config.yaml"),
    "a changed file that runs as its owner": changed("x", permissions=0o4755),
    "a changed folder": changed("x", mode="040000"),
    "another's file that goes up": entry(
        2, others=[{"path": "../x", "before": None, "after": None}]
    ),
    "a kept file that goes up": entry(2, kept=["../x"]),
    "a removed link that leads elsewhere": link("/etc/passwd"),
    "a removed link that goes up": link("../x"),
    "a content of another name": lambda it: it.put(f"record/versions/{EMPTY}", "x"),
    "a content that is no id": lambda it: it.put("record/versions/x", "x"),
    "a private content": lambda it: it.put(f"record/contents/{EMPTY}", ""),
    "a kept content": lambda it: it.put("record/kept/a.txt", ""),
    "commands that are none": lambda it: it.put(f"{ATTEMPT}/beside.jsonl", "x\n"),
    "an old checkpoint that is not part of it": span(),
    "notes of another checkpoint": hostile_note(lambda it: it.update(id="0" * 40)),
    "notes that go up": hostile_note(lambda it: it.update(modes={"../x": 420})),
    "notes with contents": hostile_note(lambda it: it.update(saved=saved("x"))),
    "notes with a repository": hostile_note(lambda it: it.update(inner={"x": "0"})),
    "a saved file elsewhere": tree(saved=saved("../x")),
    "a saved hook": tree(saved=saved(".git/hooks/post-checkout")),
    "old paths that go up": span(paths=["../x"]),
    "a torn old span": lambda it: it.put(f"{ATTEMPT}/span.json", "{"),
    "a shown file elsewhere": lambda it: change_json(
        it,
        f"{ATTEMPT}/shown.json",
        lambda it: it["files"].update({"/etc/passwd": None}),
    ),
    "a call's copy from elsewhere": calls(
        {"a.txt": {"name": "../../../../etc/passwd", "permissions": 420}}
    ),
    "a call's file elsewhere": calls(
        {"/tmp/x": {"name": "call-1-0", "permissions": 420}}
    ),
    "a journal with a path that goes up": lambda it: put_journal(it, "../x"),
    "a journal with an absolute path": lambda it: put_journal(it, "/tmp/x"),
    "a dialogue that is none": lambda it: it.put(
        f"{ATTEMPT}/dialogue.json", '{"messages": 1}'
    ),
}


LINKS_OUT: dict[str, Callable[[Tampered], None]] = {
    "an absolute link": lambda it: put_link(it, "/etc"),
    "a link that goes up": lambda it: put_link(it, "../../x"),
    "a link to a folder above": lambda it: put_link(it, "../.."),
}
"""Out of the project."""
WHOLE = ("no manifest", "a torn lease", "a torn ledger")
"""Of each kind one is pulled as a person would; the others are only read."""


@pytest.fixture(scope="module")
def sent(prepared_pushed: Copies, tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Copies whose remote each test puts back as it was."""
    return prepared_pushed.copy_to(tmp_path_factory.mktemp("sent").resolve() / "copies")


@pytest.fixture
def second(sent: Copies, request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A clone. Afterwards the remote is as it was."""
    tip = sent.tip()
    yield sent.clone(f"clone-{abs(hash(request.node.name))}")
    git(sent.remote, "update-ref", REFERENCE, tip)


def check_refused(second: Sandbox, remote: Path) -> None:
    before, tip = files(second.root), git(remote, "rev-parse", REFERENCE)
    assert cdd(second, "pull", SLUG) in (1, 2)
    assert files(second.root) == before
    record = second.root / ".cdd" / "runs" / SLUG
    assert load_whereabouts(record) is None
    assert not [
        *record.glob("step-*"),
        *record.glob("arriving"),
        *record.glob("travel.git/incoming/pack/*.pack"),
    ]
    assert git(remote, "rev-parse", REFERENCE) == tip, "the lease was taken"


async def test_what_is_no_run_is_not_taken_for_one(
    sent: Copies, tmp_path: Path
) -> None:
    """As it is read before anything else is done."""
    git_there = Git(sent.remote, {"GIT_DIR": str(sent.remote)})
    there = RunReference(
        SLUG,
        Remote(Address("origin", "", ""), git_there),
        tmp_path,
        lambda: datetime.now(UTC),
    )
    imported = Imported(sent.remote)
    commits = dict[str, str]()
    for name, tamper in TAMPERED.items():
        if name not in WHOLE:
            commits[name] = imported.begin()
            tamper(imported)
    imported.make()
    taken = []
    for name, commit in commits.items():
        try:
            await Arrival.read(there, f"{commit}^{{tree}}", tmp_path / "arriving")
            taken.append(name)
        except NotARun:
            assert not (tmp_path / "arriving").exists(), name
    assert taken == []


@many_processes
def test_a_pull_of_what_is_no_run_changes_nothing(
    sent: Copies, second: Sandbox
) -> None:
    check_all_refused([TAMPERED[name] for name in WHOLE], sent, second)


def test_a_link_out_of_the_project_is_refused(sent: Copies, second: Sandbox) -> None:
    check_all_refused(LINKS_OUT.values(), sent, second)


def check_all_refused(tampers: Iterable[Tamper], sent: Copies, second: Sandbox) -> None:
    tip = sent.tip()
    for tamper in tampers:
        tampered = Tampered(sent)
        tamper(tampered)
        tampered.publish()
        check_refused(second, sent.remote)
        git(sent.remote, "update-ref", REFERENCE, tip)


def publish_folder_named(name: str, tampered: Tampered) -> None:
    """Publish a project with a folder of that name, which git itself refuses."""
    blob = tampered.git("hash-object", "-w", "--stdin", data=b"[core]\n").strip()
    inner = tampered.git(
        "mktree", data=f"100644 blob {blob}\tconfig\n".encode()
    ).strip()
    raw = b"40000 " + name.encode() + b"\0" + bytes.fromhex(inner)
    bad = tampered.git(
        "hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=raw
    ).strip()
    project = tampered.git(
        "mktree", data=f"040000 tree {bad}\tfiles\n".encode()
    ).strip()
    change_json(tampered, "run.json", lambda it: it.update(project=project))
    top = tampered.git("write-tree").strip()
    lines = [
        line
        for line in tampered.git("ls-tree", top).splitlines()
        if not line.endswith("\tproject")
    ]
    tree = tampered.git(
        "mktree",
        data="\n".join([*lines, f"040000 tree {project}\tproject", ""]).encode(),
    ).strip()
    tampered.publish(tree)


@many_processes
def test_names_that_git_keeps_are_refused(sent: Copies, second: Sandbox) -> None:
    tip = sent.tip()
    for name in (".git", "..", ".GIT"):
        publish_folder_named(name, Tampered(sent))
        check_refused(second, sent.remote)
        git(sent.remote, "update-ref", REFERENCE, tip)


def test_more_than_there_is_room_for_is_refused(
    sent: Copies, second: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "MOST_BYTES", 1000)
    tampered = Tampered(sent)
    tampered.put("project/large", os.urandom(30_000))
    tampered.publish()
    check_refused(second, sent.remote)


def test_a_file_that_is_too_large_is_refused(
    sent: Copies, second: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "LARGEST_FILE", 10_000)
    tampered = Tampered(sent)
    tampered.put(f"{ATTEMPT}/output.txt", "x" * 10_001)
    tampered.publish()
    check_refused(second, sent.remote)


def test_no_other_spelling_of_the_folder_of_settings_arrives(
    sent: Copies, second: Sandbox
) -> None:
    def put(path: str) -> Tamper:
        def tamper(content: Files) -> None:
            assert isinstance(content, Tampered)
            content.remove("project/.cdd/.gitignore")
            content.put(f"project/{path}", "commands: {mode: unsafe}\n")
            project = content.git("write-tree", "--prefix=project/").strip()
            change_json(content, "run.json", lambda it: it.update(project=project))

        return tamper

    check_all_refused(map(put, (".CDD/config.yaml", ".Cdd", ".cdd")), sent, second)


def test_settings_of_the_project_are_each_copys_own(
    sent: Copies, second: Sandbox
) -> None:
    (second.root / ".cdd" / "config.yaml").write_text("commands: {mode: safe}\n")
    tampered = Tampered(sent)
    tampered.put("project/.cdd/config.yaml", "commands: {mode: unsafe}\n")
    project = tampered.git("write-tree", "--prefix=project/").strip()
    change_json(tampered, "run.json", lambda it: it.update(project=project))
    tampered.publish()
    assert cdd(second, "pull", SLUG) == 0
    assert second.text(".cdd/config.yaml") == "commands: {mode: safe}\n"
