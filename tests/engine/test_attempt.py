"""The record of an attempt: as it was where it is used again, without secrets where it
is only looked at.
"""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.engine.attempt import Attempt, AttemptFailure, Shown
from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry
from cdd_agent.llm.port import Message, ToolCall

REPLY = "of a run whose state is gone"

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    return Attempt(tmp_path, tmp_path / ".cdd/runs/x/step-01/attempt-1")


def test_of_what_was_not_saved_there_is_nothing(attempt: Attempt) -> None:
    assert (attempt.guidance, attempt.dialogue, attempt.said) == ("", (), "")
    assert [
        attempt.reply,
        attempt.shown,
        attempt.tests,
        attempt.failure,
    ] == [None] * 4
    assert (attempt.entries, attempt.all_entries) == ((), ())


def test_texts_are_kept_without_secrets_and_the_reply_word_for_word(
    attempt: Attempt,
) -> None:
    attempt.begin(f"use {KEY}")
    attempt.save_request(f"prompt with {KEY}", Shown(step="1", files={}))
    attempt.save_partial(KEY)
    attempt.save_outputs([KEY])
    attempt.save_diff(KEY)
    attempt.save_failure(AttemptFailure(detail=KEY))
    assert [
        path.name for path in attempt.folder.iterdir() if KEY in path.read_text()
    ] == []
    attempt.save_reply(f"key = {KEY}")
    assert attempt.reply == f"key = {KEY}"


def test_an_existing_one_is_set_aside_and_one_that_was_only_begun_is_begun_again(
    attempt: Attempt,
) -> None:
    attempt.begin("first")
    attempt.begin("second")
    assert [path.name for path in attempt.folder.parent.iterdir()] == ["attempt-1"]
    attempt.begin("")
    assert attempt.guidance == ""
    attempt.save_reply(REPLY)
    attempt.begin("third")
    assert (attempt.guidance, attempt.reply) == ("third", None)
    (aside,) = attempt.folder.parent.glob("attempt-1.aside-*")
    assert (aside / "reply.md").read_text() == REPLY


def test_entries_of_an_attempt_whose_state_is_gone_are_set_aside(
    attempt: Attempt,
) -> None:
    """Those of earlier attempts stay."""
    later = Attempt(attempt.root, attempt.folder.with_name("attempt-2"))
    attempt.begin("")
    first = attempt.ledger.append(LedgerEntry(EntryKind.BEGIN, 1))
    later.begin("")
    later.ledger.append(LedgerEntry(EntryKind.BEGIN, 2))
    whole = later.ledger.path.read_bytes()
    later.begin("")
    assert (attempt.entries, later.entries) == ((first,), ())
    (aside,) = attempt.folder.parent.glob("ledger*.aside-*")
    assert aside.read_bytes() == whole
    attempt.begin("")
    assert attempt.entries == ()


def test_what_was_done_beside_is_an_attempts_too_and_in_the_order_of_time(
    attempt: Attempt,
) -> None:
    beside = replace(attempt, side=attempt.folder.parent / "side")
    beside.ledger.append(LedgerEntry(EntryKind.TOOL, 1, at="1", call=0))
    attempt.ledger.append(LedgerEntry(EntryKind.BEGIN, 1, at="2"))
    Attempt(attempt.root, attempt.folder.with_name("attempt-2")).ledger.append(
        LedgerEntry(EntryKind.BEGIN, 2, at="3")
    )
    assert [entry.at for entry in attempt.all_entries] == ["1", "2"]
    assert [entry.at for entry in attempt.entries] == ["2"]
    assert beside.all_entries == beside.entries != attempt.entries
    attempt.drop_dialogue()
    assert [entry.at for entry in attempt.all_entries] == ["2"]


def test_what_the_model_said_is_its_words_its_calls_and_its_reply(
    attempt: Attempt,
) -> None:
    call = ToolCall("1", "read_file", '{"path": "a"}')
    attempt.save_dialogue(
        [Message("user", "Do it."), Message("assistant", REPLY, tool_calls=(call,))],
        0.0,
    )
    attempt.save_reply("Done.")
    assert attempt.said.split("\n\n") == [
        REPLY,
        f"→ {call.name} {call.arguments}",
        "Done.",
    ]
    attempt.drop_dialogue()
    assert attempt.said == ""
    assert len(list(attempt.folder.glob("*.aside-*"))) == 2


def test_what_an_older_version_kept_is_read(attempt: Attempt) -> None:
    attempt.folder.mkdir(parents=True)
    (attempt.folder / "shown.json").write_text('{"step": "1", "files": {"a": null}}')
    (attempt.folder / "dialogue.json").write_text(
        '{"messages": [{"role": "user", "content": "Do it.", "tool_calls": [],'
        ' "tool_call_id": null}]}'
    )
    assert attempt.shown is not None
    assert attempt.shown.all_files == {"a": None}
    assert (
        [message.content for message in attempt.dialogue],
        attempt.dialogue_seconds,
    ) == (["Do it."], 0.0)
