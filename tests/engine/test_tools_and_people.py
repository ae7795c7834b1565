"""A step with tools among people and commands: whose a change is, and what is there
when the step goes on.
"""

import asyncio
import json
import os
import stat
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.changes.change_set import build_changed_refusal
from cdd_agent.events.question_events import Choice, Proposal
from cdd_agent.events.step_events import StepsUndone
from cdd_agent.frontend import Nobody
from cdd_agent.llm.budget import CEILING
from cdd_agent.llm.port import ConnectionFailed, ContextTooLong
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.tickets.status import StepStatus
from tests.crash.story import git
from tests.engine.tool_steps import (
    FORMAT,
    STEP,
    calls,
    create,
    execute,
    finished,
    leave_out,
    problems,
    read,
    replace,
    run,
    run_with,
    stopped_after,
)
from tests.support.listening import collect
from tests.support.projects import Sandbox, Step, says
from tests.support.tables import each_row

LONG = "a line of it\n" * 5_000

GONE = [ConnectionFailed("gone")] * 9
EXECUTABLE = "python -c \"import os; os.chmod('a.txt', 0o755)\""


async def test_an_edit_between_two_calls_is_not_taken_for_a_commands(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")),
        calls(execute("cat a.txt")),
        calls(replace("a.txt", "", "bad\n")),
        "Done.",
    )
    mine = sandbox.root / "a.txt"
    events = await run_with(sandbox, "create_file", lambda: mine.write_text("mine\n"))
    assert build_changed_refusal(PurePosixPath("a.txt")).message in problems(events)[-1]
    assert finished(events).status is StepStatus.FAILED
    await leave_out(sandbox)
    assert mine.read_text() == "mine\n"


async def test_what_a_command_of_a_lost_round_made_is_not_made_again(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n\n\n")), calls(execute(FORMAT)), "never said"
    )
    engine = sandbox.engine()
    await stopped_after(engine, "execute_command")
    engine.close()
    await run(sandbox.replies(calls(create("b.txt", "b\n")), *GONE))
    await run(
        sandbox.replies(calls(replace("a.txt", "go\n\n\n", "good\n\n\n")), "Done.")
    )
    assert sandbox.statuses() == ["completed"]
    assert (sandbox.text("a.txt"), sandbox.text("b.txt")) == ("good\n\n\n", "b\n")


async def test_what_commands_of_a_dropped_dialogue_made_is_not_made_again(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n\n\n")),
        calls(execute(FORMAT)),
        ContextTooLong("too long"),
    )
    await run(sandbox)
    await run(
        sandbox.replies(
            calls(create("c.txt", "c\n")), calls(create("b.txt", "b\n")), *GONE
        )
    )
    await run(sandbox.replies(calls(create("a.txt", "good\n")), "Done."))
    assert sandbox.statuses() == ["completed"]
    assert (sandbox.text("a.txt"), sandbox.text("b.txt")) == ("good\n", "b\n")


async def test_a_command_that_is_stopped_leaves_nothing_of_the_steps_files(
    sandbox: Sandbox,
) -> None:
    slow = (
        "python -c \"import time; open('a.txt', 'a').write('half'); print('now',"
        ' flush=True); time.sleep(60)"'
    )
    sandbox.write(STEP).replies(calls(create("a.txt", "go\n")), calls(execute(slow)))
    engine = sandbox.engine()
    running = asyncio.ensure_future(collect(engine.run_all()))
    while not (sandbox.root / "a.txt").exists() or "half" not in sandbox.text("a.txt"):
        await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    engine.close()
    assert not (sandbox.root / "a.txt").exists()


async def test_permissions_that_a_command_gives_are_put_back_and_given_again(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")), calls(execute(EXECUTABLE)), *GONE
    )
    await run(sandbox)
    assert not (sandbox.root / "a.txt").exists()
    await run(sandbox.replies(calls(replace("a.txt", "go", "good")), "Done."))
    assert sandbox.statuses() == ["completed"]
    assert sandbox.text("a.txt") == "good\n"
    assert stat.S_IMODE((sandbox.root / "a.txt").stat().st_mode) & stat.S_IXUSR


@each_row(
    "made",
    [
        "os.mkdir('a.txt'); open('a.txt/x', 'w').write('x')",
        "os.symlink('outside', 'a.txt')",
        "os.mkfifo('a.txt')",
    ],
)
async def test_what_a_command_makes_in_the_place_of_a_file_does_not_stop_the_step(
    sandbox: Sandbox, made: str
) -> None:
    sandbox.write(Step("a.txt", 'python -c "raise SystemExit(1)"')).replies(
        calls(create("a.txt", "go\n"), create("b.txt", "go\n")),
        calls(
            execute(
                f"python -c \"import os; os.unlink('a.txt'); {made}; open('b.txt',"
                " 'w').write('by command')\""
            )
        ),
        calls(create("c.txt", "c\n")),
        calls(execute("python -c \"print('still runs')\"")),
        "Done.",
    )
    events = await run(sandbox)
    assert problems(events) == [""] * 5
    assert finished(events).status is StepStatus.FAILED
    await leave_out(sandbox)
    # a link is a file of the step; what is no file is nobody's to remove
    assert os.path.lexists(sandbox.root / "a.txt") is ("symlink" not in made)
    assert not (sandbox.root / "b.txt").exists()
    assert not (sandbox.root / "c.txt").exists()


async def test_a_long_refusal_is_no_obstacle_to_going_on(sandbox: Sandbox) -> None:
    (sandbox.root / "long.txt").write_text("a line of it\n" * 5_000)
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n"), create("long.txt", "other\n")), *GONE
    )
    await run(sandbox)
    await run(sandbox.replies(calls(replace("a.txt", "go", "good")), "Done."))
    assert len(sandbox.model.requests[0].messages) == 5
    assert sandbox.text("a.txt") == "good\n"


async def test_what_a_refusal_showed_is_known_when_the_step_goes_on(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n\n\n")),
        calls(execute(FORMAT), create("a.txt", "bad\n"), replace("a.txt", "", "bad\n")),
        *GONE,
    )
    await run(sandbox)
    await run(sandbox.replies(calls(replace("a.txt", "bad", "good")), "Done."))
    assert len(sandbox.model.requests[0].messages) == 8
    assert sandbox.text("a.txt") == "good\n"


async def test_a_file_whose_middle_was_not_seen_is_not_replaced(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "long.txt").write_text(LONG)
    sandbox.write(STEP).replies(
        calls(read("long.txt")),
        calls(replace("long.txt", "", "all new\n" * 4_000), create("a.txt", "good\n")),
        "Done.",
    )
    events = await run(sandbox)
    assert "long.txt" in problems(events)[1]
    assert sandbox.text("long.txt") == LONG


@each_row(
    ("before", "after"),
    [
        (b"one\r\ntwo\r\n", b"three\r\nfour\r\n"),
        (b"\xef\xbb\xbfone\r\ntwo\r\n", b"\xef\xbb\xbfthree\r\nfour\r\n"),
        (b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbfthree\nfour\n"),
        (b"one\ntwo", b"three\nfour"),
    ],
)
async def test_a_file_keeps_its_habits_when_it_is_replaced(
    sandbox: Sandbox, before: bytes, after: bytes
) -> None:
    (sandbox.root / "b.txt").write_bytes(before)
    sandbox.write(STEP).replies(
        calls(
            read("b.txt"),
            replace("b.txt", "", "three\nfour\n"),
            create("a.txt", "good\n"),
        ),
        "Done.",
    )
    events = await run(sandbox)
    assert problems(events) == [""] * 3
    assert (sandbox.root / "b.txt").read_bytes() == after
    engine = sandbox.engine()
    assert [
        event
        for event in await collect(engine.undo())
        if isinstance(event, StepsUndone)
    ]
    engine.close()
    assert (sandbox.root / "b.txt").read_bytes() == before


async def test_a_file_in_another_encoding_is_replaced_in_it(sandbox: Sandbox) -> None:
    (sandbox.root / "b.txt").write_bytes(b"caf\xe9\n")
    sandbox.write(STEP).replies(
        calls(
            read("b.txt"),
            replace("b.txt", "", "le café\n"),
            replace("b.txt", "le café", "un café"),
            replace("b.txt", "un café", "文"),
            create("a.txt", "good\n"),
        ),
        "Done.",
    )
    events = await run(sandbox)
    reasons = problems(events)
    assert reasons[:3] == [""] * 3
    assert "U+6587" in reasons[3]
    assert (sandbox.root / "b.txt").read_bytes() == b"un caf\xe9\n"


async def test_a_file_that_git_ignores_is_the_steps_from_the_first_call_on(
    sandbox: Sandbox,
) -> None:
    """Declared or not, its content is saved before it is changed."""
    git(sandbox.root, "init", "--quiet")
    (sandbox.root / ".gitignore").write_text("*.log\n")
    (sandbox.root / "old.log").write_text("old\n")
    sandbox.write(STEP).replies(
        calls(read("old.log"), create("run.log", "x")),
        calls(replace("old.log", "old", "new"), create("a.txt", "good\n")),
        "Done.",
    )
    events = await run(sandbox)
    assert problems(events) == [""] * 4
    engine = sandbox.engine()
    (undone,) = [
        event
        for event in await collect(engine.undo())
        if isinstance(event, StepsUndone)
    ]
    engine.close()
    assert undone.restored == ("a.txt", "old.log", "run.log")
    assert not (sandbox.root / "run.log").exists()
    assert sandbox.text("old.log") == "old\n"


async def test_a_file_that_came_and_went_in_a_step_is_not_put_back(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(
        calls(create("b.txt", "b\n"), create("a.txt", "bad\n")),
        "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\n",
    )
    events = await run(sandbox)
    assert finished(events).status is StepStatus.FAILED
    assert sandbox.state()["step_executions"]["1"]["files_created"] == ["a.txt"]
    engine = sandbox.engine()
    told = await collect(engine.skip(engine.run.plan.steps[0], "no", keep=False))
    engine.close()
    assert [event.restored for event in told if hasattr(event, "restored")] == [
        ("a.txt",)
    ]


async def test_an_argument_with_half_a_character_is_refused_and_harms_nothing(
    sandbox: Sandbox,
) -> None:
    half = "\ud83d"
    wrong = (
        ("create_file", {"file_path": "b.txt", "content": half}),
        ("create_file", {"file_path": f"{half}.txt", "content": "x"}),
        ("read_file", {"path": half}),
        ("execute_command", {"command": f"echo {half}"}),
        ("execute_command", {"command": "echo x", "env": {"A": half}}),
        ("read_file", {"path": "a", half: 1}),
    )
    sandbox.write(STEP).replies(calls(*wrong, create("a.txt", "good\n")), "Done.")
    events = await run(sandbox)
    assert all(problems(events)[:-1])
    assert finished(events).status is StepStatus.COMPLETED
    for message in sandbox.model.requests[1].messages:
        json.dumps(message.content, ensure_ascii=False).encode()


@pytest.mark.skipif(os.name == "nt", reason="there every name is Unicode")
async def test_names_that_are_no_text_can_be_looked_at(sandbox: Sandbox) -> None:
    git(sandbox.root, "init", "--quiet")
    for name in (b"caf\xe9.txt", b"b\xff.py"):
        (sandbox.root / os.fsdecode(name)).write_text("alpha\n")
    looks = [
        ("read_file", {"path": "**/*"}),
        ("grep_files", {"pattern": "alpha"}),
        ("git_status", {}),
        ("read_file", {"path": "cafe.txt"}),
        ("read_file", {"path": "."}),
        execute(
            'python -c "import os; print(os.listdir()); raise'
            " SystemExit(os.listdir(b'.'))\""
        ),
    ]
    sandbox.write(STEP).replies(calls(*looks, create("a.txt", "good\n")), "Done.")
    await run(sandbox)
    assert sandbox.statuses() == ["completed"]


async def test_a_budget_that_ends_in_a_dialogue_leaves_nothing_and_the_step_goes_on(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"tool_calls": "on"}
    await run(sandbox.write(STEP).replies(*GONE))
    first_call = estimate_prompt(sandbox.model.requests[0]) + CEILING
    sandbox.replies(
        calls(create("a.txt", "go\n")), calls(create("b.txt", "b\n")), "Done."
    )
    sandbox.flags = {"budget": {"tokens": first_call + 1}}
    events = await run(sandbox)
    assert finished(events).status is StepStatus.PENDING
    assert len(sandbox.model.requests) == 1
    assert not (sandbox.root / "a.txt").exists()
    sandbox.flags = {}
    await run(
        sandbox.replies(
            calls(create("b.txt", "b\n")),
            calls(replace("a.txt", "go", "good")),
            "Done.",
        )
    )
    assert sandbox.statuses() == ["completed"]
    assert (sandbox.text("a.txt"), sandbox.text("b.txt")) == ("good\n", "b\n")


async def test_many_calls_in_a_round_are_one_transaction(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(
        calls(
            *(create(f"many/{number}.txt", "x" * 10_000) for number in range(30)),
            create("a.txt", "go\n"),
        ),
        *GONE,
    )
    await run(sandbox)
    assert not (sandbox.root / "many").exists()
    await run(sandbox.replies(calls(replace("a.txt", "go", "good")), "Done."))
    assert len(list((sandbox.root / "many").iterdir())) == 30
    engine = sandbox.engine()
    await collect(engine.undo())
    engine.close()
    assert not (sandbox.root / "many").exists()


async def test_a_file_of_megabytes_is_one_call(sandbox: Sandbox) -> None:
    long = "a line of it\n" * 100_000
    sandbox.write(STEP).replies(
        calls(create("long.txt", long), create("a.txt", "bad\n")), "Done.", *GONE
    )
    events = await run(sandbox, attempts=2)
    assert all(len(str(event)) < 10_000 for event in events)
    await leave_out(sandbox)
    assert not (sandbox.root / "long.txt").exists()


@each_row("setting", ["off", "on", "auto"])
async def test_the_setting_may_change_while_a_step_is_interrupted(
    sandbox: Sandbox, setting: str
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n\n"), execute(FORMAT), create("b.txt", "b\n")), *GONE
    )
    await run(sandbox)
    sandbox.flags = {"tool_calls": setting}
    if setting == "off":
        await run(sandbox.replies(says("a.txt", "good")))
        assert not (sandbox.root / "b.txt").exists()
    else:
        await run(sandbox.replies(calls(replace("a.txt", "go", "good")), "Done."))
        assert sandbox.text("b.txt") == "b\n"
    assert sandbox.statuses() == ["completed"]
    assert sandbox.text("a.txt") == "good\n"
    engine = sandbox.engine()
    await collect(engine.undo())
    engine.close()
    assert not (sandbox.root / "a.txt").exists()
    assert not (sandbox.root / "b.txt").exists()


async def test_renamed_created_again_and_deleted_a_file_is_as_it_was_after_undo(
    sandbox: Sandbox,
) -> None:
    script = sandbox.root / "b.sh"
    script.write_text("one\ntwo\nthree\n")
    script.chmod(0o755)
    sandbox.write(Step("a.txt", "python -c pass", also=("b.sh", "c.sh"))).replies(
        calls(
            read("b.sh"),
            replace("b.sh", "two", "2"),
            execute("python -c \"import os; os.rename('b.sh', 'c.sh')\""),
        ),
        calls(create("b.sh", "again\n"), create("a.txt", "good\n")),
        "*** Begin Patch\n*** Delete File: b.sh\n*** End Patch\n",
    )
    events = await run(sandbox)
    assert finished(events).status is StepStatus.COMPLETED, finished(events).error
    assert not script.exists()
    assert sandbox.text("c.sh") == "one\n2\nthree\n"
    engine = sandbox.engine()
    await collect(engine.undo())
    await collect(engine.redo())
    assert not script.exists()
    await collect(engine.undo())
    engine.close()
    assert script.read_text() == "one\ntwo\nthree\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert not (sandbox.root / "c.sh").exists()


class Editor(Nobody):
    """Says what is wanted, and edits the step's file before."""

    def __init__(self, path: Path, choice: Choice) -> None:
        self._path, self._choice = path, choice

    async def approve(self, proposal: Proposal) -> Choice:
        self._path.write_text("mine\n")
        return self._choice


@each_row("choice", [Choice.YES, Choice.NO])
async def test_what_a_person_edits_while_they_are_asked_is_not_taken_for_the_commands(
    sandbox: Sandbox, choice: Choice
) -> None:
    sandbox.flags = {"commands": {"mode": "ask"}}
    sandbox.frontend = Editor(sandbox.root / "a.txt", choice)
    sandbox.write(STEP).replies(
        calls(create("a.txt", "bad\n")), calls(execute("sh -c true")), "Done."
    )
    await run(sandbox)
    assert sandbox.statuses() == ["failed"]
    await leave_out(sandbox)
    assert sandbox.text("a.txt") == "mine\n"
