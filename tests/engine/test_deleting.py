"""Steps that delete and rename files: told, recorded, and restored."""

from pathlib import Path, PurePosixPath

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.changes.review import Review
from cdd_agent.events.step_events import AttemptFailed, ChangesApplied
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.wording.question_words import question
from tests.engine.test_engine import of
from tests.support.projects import Sandbox, Step, run_all
from tests.support.tables import each_row

DELETE = "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n"


async def test_a_step_deletes_a_file_that_it_names(sandbox: Sandbox) -> None:
    sandbox.write(Step("old.txt", "none")).replies(DELETE)
    (sandbox.root / "old.txt").write_text("old\n")
    events = await run_all(sandbox)
    assert not (sandbox.root / "old.txt").exists()
    gone = FileDiff(
        "old.txt", 0, 1, "--- old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
    )
    assert of(ChangesApplied, events) == [
        ChangesApplied(1, (), (), (), ("old.txt",), (gone,))
    ]
    assert of(StepFinished, events)[0].files_deleted == ("old.txt",)
    found = sandbox.state()["step_executions"]["1"]
    assert (found["status"], found["files_modified"], found["files_deleted"]) == (
        "completed",
        [],
        ["old.txt"],
    )


async def test_a_file_that_nobody_showed_or_named_is_not_deleted(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none")).replies(DELETE, DELETE)
    (sandbox.root / "old.txt").write_text("old\n")
    events = await run_all(sandbox, attempts=2)
    assert "old.txt" in of(AttemptFailed, events)[0].error
    assert "old.txt:\n```txt\nold\n```" in sandbox.prompt()
    assert not (sandbox.root / "old.txt").exists()  # the second attempt was shown it


@each_row(
    ("path", "words"),
    [
        (".flake8", "Remove `.flake8`."),
        ("assets/logo.png", "Delete `assets/logo.png`."),
        ("assets/logo.png", "Drop logo.png"),
        ("data/huge.csv", "Remove `data/huge.csv`, it is of no use."),
        ("legacy/old/a.py", "Remove the `legacy/` folder."),
    ],
)
async def test_what_the_step_says_goes_need_not_be_seen(
    sandbox: Sandbox, path: str, words: str
) -> None:
    content = {".png": b"\x89PNG\xff", ".csv": b"1,2\n" * 100_000}.get(
        Path(path).suffix, b"x = 1\n"
    )
    (sandbox.root / path).parent.mkdir(parents=True, exist_ok=True)
    (sandbox.root / path).write_bytes(content)
    sandbox.write(Step(None, "none", description=words)).replies(
        DELETE.replace("old.txt", path)
    )
    await run_all(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert not (sandbox.root / path).exists()


async def test_what_it_does_not_name_has_to_be(sandbox: Sandbox) -> None:
    (sandbox.root / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    sandbox.write(Step(None, "none", description="Remove the logo, and old/logo.png."))
    events = await run_all(sandbox.replies(DELETE.replace("old.txt", "logo.png")))
    assert "logo.png" in of(AttemptFailed, events)[0].error
    assert (sandbox.root / "logo.png").exists()


async def test_a_deletion_is_taken_back_with_a_failed_attempt(sandbox: Sandbox) -> None:
    sandbox.write(Step("old.txt", 'python -c "raise SystemExit(1)"')).replies(
        DELETE, "Nothing.\n```text:b.txt\nx\n```"
    )
    (sandbox.root / "old.txt").write_text("old\n")
    await run_all(sandbox, attempts=2)
    assert sandbox.text("old.txt") == "old\n"


async def test_search_and_replace_may_change_what_was_not_shown(
    sandbox: Sandbox,
) -> None:
    block = "other.txt\n<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n"
    sandbox.write(Step("a.txt", "none")).replies(f"```text:a.txt\nx\n```\n\n{block}")
    (sandbox.root / "other.txt").write_text("one\ntwo\n")
    await run_all(sandbox)
    assert sandbox.text("other.txt") == "1\ntwo\n"


async def test_but_not_what_holds_secrets_by_its_name(sandbox: Sandbox) -> None:
    block = ".env\n<<<<<<< SEARCH\nA=1\n=======\nA=2\n>>>>>>> REPLACE\n"
    sandbox.write(Step("a.txt", "none")).replies(f"```text:a.txt\nx\n```\n\n{block}")
    (sandbox.root / ".env").write_text("A=1\n")
    events = await run_all(sandbox)
    assert ".env" in of(AttemptFailed, events)[0].error
    assert sandbox.text(".env") == "A=1\n"


def test_a_person_is_asked_about_deletions_first() -> None:
    changes = [("a", None, b"x\n"), ("b", b"x\n", b"y\n"), ("c", b"x\n", None)]
    asked = question(
        Review.from_changes(
            1,
            ChangeSet(
                tuple(FileChange(PurePosixPath(path), *was) for path, *was in changes)
            ),
        )
    )
    assert [line.split()[:2] for line in asked.splitlines()[1:4]] == [
        ["delete", "c"],
        ["create", "a"],
        ["change", "b"],
    ]
