"""A step carried out by tools: the same transaction, whatever the model calls and
whenever it ends.
"""

import json
from pathlib import Path

import pytest

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.changes.model import ReplyFault
from cdd_agent.changes.review import Review
from cdd_agent.engine import prompt
from cdd_agent.engine.prompt import LAST_FAILED
from cdd_agent.engine.step_tools import refused_calls
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.question_events import Choice
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    StepDiff,
    StepsUndone,
)
from cdd_agent.files.json_file import Damaged
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.llm.port import (
    ConnectionFailed,
    ContextTooLong,
    Message,
    ModelError,
    RateLimited,
    RequestRejected,
    StopReason,
    ToolCall,
)
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tickets.status import StepStatus, Verification
from tests.crash.story import git
from tests.engine.tool_steps import (
    FORMAT,
    STEP,
    answers,
    calls,
    create,
    execute,
    finished,
    problems,
    read,
    replace,
    run,
    stopped_after,
)
from tests.support.listening import collect, stop_at
from tests.support.projects import Sandbox, Step, check, noticed, says
from tests.support.tables import each_row

WITH_TOOLS = Path(prompt.__file__).with_name("tools.md").read_text().strip()


async def test_a_model_looks_edits_tries_and_says_that_it_is_done(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("bad\n")
    sandbox.write(STEP).replies(
        calls(read("a.txt"), text="I look."),
        calls(replace("a.txt", "bad", "good")),
        calls(execute("cat a.txt")),
        "It says good now.",
    )
    events = await run(sandbox)
    assert finished(events).status is StepStatus.COMPLETED
    assert finished(events).verification is Verification.EXIT_CODE
    change = FileDiff("a.txt", 1, 1, "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-bad\n+good\n")
    assert [event for event in events if isinstance(event, ChangesApplied)] == [
        ChangesApplied(1, (), ("a.txt",), (), files=(change,))
    ]
    told = {event.tool: event for event in events if isinstance(event, ToolFinished)}
    assert told["edit_file"].files == (change,)
    assert (told["execute_command"].exit_code, told["execute_command"].output) == (
        0,
        "good\n",
    )
    assert answers(sandbox, 3)[0]["stdout"] == "good\n"
    assert sandbox.text("a.txt") == "good\n"
    assert sandbox.state()["step_executions"]["1"]["files_modified"] == ["a.txt"]
    assert WITH_TOOLS in sandbox.model.requests[0].messages[0].content


async def test_files_that_only_the_last_reply_gives_count_too(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt"), also=("b.txt",)))
    sandbox.replies(calls(create("a.txt", "good\n")), says("b.txt", "too"))
    await run(sandbox)
    assert (sandbox.text("a.txt"), sandbox.text("b.txt")) == ("good\n", "too\n")
    assert sandbox.state()["step_executions"]["1"]["files_created"] == [
        "a.txt",
        "b.txt",
    ]


async def test_a_model_that_can_use_tools_may_also_just_reply(sandbox: Sandbox) -> None:
    sandbox.write(STEP, Step("b.txt", check("b.txt")))
    sandbox.replies(says("a.txt", "good"), calls(create("b.txt", "good\n")), "Done.")
    await run(sandbox)
    assert sandbox.statuses() == ["completed", "completed"]


async def test_when_the_check_fails_the_next_attempt_starts_from_the_beginning(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "b.txt").write_text("mine\n")
    sandbox.write(STEP).replies(
        calls(
            create("a.txt", "bad\n"),
            create("new/c.txt", "c"),
            replace("b.txt", "mine", "yours"),
        ),
        calls(replace("a.txt", "bad", "worse")),
        "Done!",
        calls(create("a.txt", "good\n")),
        "Now it is.",
    )
    events = await run(sandbox, attempts=2)
    assert [event.error for event in events if isinstance(event, AttemptFailed)]
    assert finished(events).status is StepStatus.COMPLETED
    assert sandbox.text("a.txt") == "good\n"
    assert sandbox.text("b.txt") == "mine\n"
    assert not (sandbox.root / "new").exists()
    retried = sandbox.model.requests[3].messages[-1].content
    assert LAST_FAILED in retried
    assert "→ edit_file" in retried
    assert "says worse" in retried


async def test_saying_that_it_is_done_is_not_enough(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(
        calls(read("plan.md")), "I have made a.txt, it is all done."
    )
    events = await run(sandbox)
    assert finished(events).status is StepStatus.FAILED
    assert ReplyFault.NO_FILES.words in str(finished(events).error)
    assert not (sandbox.root / "a.txt").exists()


@each_row(
    ("call", "problem"),
    [
        (replace("a.txt", "not there", "x"), "the lines to find are not in the file"),
        (create("a.txt", "other\n"), "exists already"),
        (replace("a.txt", "", "all new\n"), "was not shown"),
        (create("../out.txt", "x"), "leaves the project"),
        (create(".git/hooks/x", "x"), "belongs to git"),
        (create(".cdd/config.yaml", "x"), "belongs to git or to the program"),
        (
            create("tickets/feature-words/plan.md", "x"),
            "belongs to git or to the program",
        ),
        (create("b.py", "def broken(:\n"), "b.py"),
        (execute("rm -rf ."), "not allowed"),
        (("edit_file", '{"file_path": "a.txt"'), "not valid JSON"),
    ],
)
async def test_what_is_refused_is_answered_and_changes_nothing(
    sandbox: Sandbox, call: tuple[str, object], problem: str
) -> None:
    (sandbox.root / "a.txt").write_text("as-it-was\n")
    (sandbox.root / "b.py").write_text("x = 1\n")
    sandbox.write(Step("good.txt", check("good.txt")))
    sandbox.replies(calls(call), calls(create("good.txt", "good\n")), "Done.")
    events = await run(sandbox)
    assert problem in problems(events)[0]
    assert finished(events).status is StepStatus.COMPLETED
    assert sandbox.text("a.txt") == "as-it-was\n"
    assert sandbox.state()["step_executions"]["1"]["files_modified"] == []


async def test_after_it_was_read_a_file_may_be_replaced(sandbox: Sandbox) -> None:
    (sandbox.root / "other.txt").write_text("one\n")
    sandbox.write(STEP).replies(
        calls(
            read("other.txt"),
            replace("other.txt", "", "two\n"),
            create("a.txt", "good\n"),
        ),
        "Done.",
    )
    await run(sandbox)
    assert sandbox.text("other.txt") == "two\n"


async def test_what_there_was_no_room_to_read_whole_may_not_be_replaced(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP)
    (sandbox.root / "other.txt").write_text("a line\n" * 1_500)
    sandbox.flags = {"context_window": 8_000, "tool_calls": "on"}
    script = (
        calls(read("other.txt")),
        calls(replace("other.txt", "", "two\n"), create("a.txt", "good\n")),
        "Done.",
    )
    await run(sandbox.replies(*script))
    assert len(sandbox.model.requests[1].messages[-1].content) < 1_500 * len("a line\n")
    assert "other.txt" in sandbox.model.requests[2].messages[-2].content
    assert sandbox.text("other.txt").startswith("a line")


@each_row("interrupted", [False, True])
async def test_who_has_changed_a_part_of_a_file_has_not_seen_the_rest(
    sandbox: Sandbox, interrupted: bool
) -> None:
    (sandbox.root / "long.txt").write_text("one\ntwo\nthree\n")
    blind = calls(
        create("a.txt", "good"), replace("long.txt", "", "other\nwords\nhere\n")
    )
    script = [
        calls(replace("long.txt", "two", "zwei")),
        *([ConnectionFailed("gone")] * 9 if interrupted else []),
    ]
    sandbox.write(STEP).replies(*script, blind, "Done.")
    if interrupted:
        await run(sandbox)
        assert sandbox.text("long.txt") == "one\ntwo\nthree\n"
        sandbox.replies(blind, "Done.")
    assert "long.txt" in problems(await run(sandbox))[-1]
    assert sandbox.text("long.txt") == "one\nzwei\nthree\n"


async def test_a_file_that_calls_had_changed_has_to_be_as_it_was_to_go_on(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "long.txt").write_text("one\ntwo\nthree\n")
    sandbox.write(STEP).replies(
        calls(replace("long.txt", "two", "zwei")), *[ConnectionFailed("gone")] * 9
    )
    await run(sandbox)
    (sandbox.root / "long.txt").write_text("one\ntwo\nthree\nmine\n")
    await run(sandbox.replies(says("a.txt", "good")))
    assert len(sandbox.model.requests[0].messages) == 2
    assert sandbox.text("long.txt") == "one\ntwo\nthree\nmine\n"


async def test_a_persons_edit_in_between_is_not_lost(sandbox: Sandbox) -> None:
    by_hand = f"python -c \"open('{sandbox.root}/mine.txt', 'a').write('by hand\\n')\""
    (sandbox.root / "mine.txt").write_text("mine\n")
    sandbox.write(STEP).replies(
        calls(execute(by_hand)), calls(create("a.txt", "bad\n")), "Done."
    )
    await run(sandbox)
    assert sandbox.statuses() == ["failed"]
    (sandbox.root / "a.txt").write_text("bad, edited\n")
    await run(sandbox.replies(calls(read("a.txt")), "I leave it."))
    assert sandbox.text("a.txt") == "bad, edited\n"
    assert sandbox.text("mine.txt").endswith("\nby hand\n")


async def test_what_a_command_makes_of_the_steps_files_is_put_back_with_them(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("first\n")
    sandbox.write(STEP).replies(
        calls(replace("a.txt", "first", "bad  \n\n\n")),
        calls(execute(FORMAT)),
        "Done.",
        says("a.txt", "good"),
    )
    await run(sandbox)
    assert sandbox.text("a.txt") == "bad\n"
    engine = sandbox.engine()
    await collect(engine.skip(engine.run.plan.steps[0], "no", keep=False))
    engine.close()
    assert sandbox.text("a.txt") == "first\n"


async def test_edits_and_commands_can_take_turns(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n\n\n\n")),
        calls(execute(FORMAT)),
        calls(replace("a.txt", "go\n", "good\n\n\n")),
        calls(execute(FORMAT)),
        "Done.",
    )
    events = await run(sandbox)
    assert problems(events) == [""] * 4
    assert sandbox.text("a.txt") == "good\n"
    engine = sandbox.engine()
    undone = [
        event
        for event in await collect(engine.undo())
        if isinstance(event, StepsUndone)
    ]
    engine.close()
    assert undone[0].restored == ("a.txt",)
    assert not (sandbox.root / "a.txt").exists()


async def test_a_file_that_is_replaced_after_a_command_changed_it_must_be_read_again(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n\n")),
        calls(execute(FORMAT), replace("a.txt", "", "good\n")),
        calls(read("a.txt"), replace("a.txt", "", "good\n")),
        "Done.",
    )
    events = await run(sandbox)
    assert [bool(problem) for problem in problems(events)] == [
        False,
        False,
        True,
        False,
        False,
    ]
    assert finished(events).status is StepStatus.COMPLETED


async def test_undo_and_diff_know_what_tools_did(sandbox: Sandbox) -> None:
    git(sandbox.root, "init", "--quiet")
    (sandbox.root / ".gitignore").write_text("*.log\nlocal/\n")
    (sandbox.root / "gone.txt").write_text("old\n")
    declared = ("local/x.txt", "made.txt")
    sandbox.write(Step("a.txt", check("a.txt"), also=declared)).replies(
        calls(create("b.txt", "b\n")),
        calls(execute("python -c \"open('by-command.txt', 'w').write('c')\"")),
        calls(
            create("local/x.txt", "declared, and ignored\n"),
            create("a.txt", "good\n"),
            create("run.log", "log\n"),
        ),
        "*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch\n",
    )
    events = await run(sandbox)
    assert problems(events) == [""] * 5
    assert sandbox.text("run.log") == "log\n"
    # gone.txt was neither shown nor named
    assert finished(events).status is StepStatus.FAILED
    made = execute("python -c \"open('made.txt', 'w').write('2nd')\"")
    again = calls(
        read("gone.txt"), create("a.txt", "good\n"), create("local/x.txt", "x\n"), made
    )
    await run(sandbox.replies(again, "Ok."))
    assert (sandbox.text("by-command.txt"), sandbox.text("made.txt")) == ("c", "2nd")
    assert not (sandbox.root / "run.log").exists()  # the first attempt was restored
    engine = sandbox.engine()
    (diff,) = [
        event for event in await collect(engine.diff(1)) if isinstance(event, StepDiff)
    ]
    changed = ["a.txt", "local/x.txt", "made.txt"]
    assert (
        sorted(
            line.split(" b/")[1]
            for line in diff.diff.splitlines()
            if line.startswith("diff ")
        )
        == changed
    )
    (undone,) = [
        event
        for event in await collect(engine.undo(1))
        if isinstance(event, StepsUndone)
    ]
    engine.close()
    assert [path for path in changed if (sandbox.root / path).exists()] == []
    # a command made it beside the step's own files: it may be the user's
    assert undone.others == ("by-command.txt",)
    assert sandbox.text("by-command.txt") == "c"
    assert not (sandbox.root / "local").exists()
    assert sandbox.text("gone.txt") == "old\n"


class Person(Nobody):
    """Answers what is proposed, in this order."""

    def __init__(self, *choices: Choice) -> None:
        self.asked: list[Review] = []
        self._choices = list(choices)

    async def review(self, review: Review) -> Decision:
        self.asked.append(review)
        return Decision(self._choices.pop(0), review)

    @property
    def changes(self) -> list[tuple[str, str]]:
        """What was asked about."""
        return [
            (file.verb, file.path) for review in self.asked for file in review.files
        ]


async def test_every_change_is_asked_about_where_the_settings_say_so(
    sandbox: Sandbox,
) -> None:
    sandbox.flags, person = {"approval": "ask"}, Person(Choice.YES, Choice.NO)
    sandbox.frontend = person
    sandbox.write(STEP).replies(
        calls(create("a.txt", "good\n")), calls(create("b.txt", "b\n")), "Done."
    )
    events = await run(sandbox)
    assert person.changes == [("create", "a.txt"), ("create", "b.txt")]
    assert [review.diff().splitlines()[-1] for review in person.asked] == [
        "+good",
        "+b",
    ]
    assert finished(events).status is StepStatus.PENDING
    assert len(sandbox.model.requests) == 2
    assert not (sandbox.root / "a.txt").exists()

    # a.txt was approved already: it is not asked about again
    person = Person(Choice.YES)
    sandbox.frontend = person
    await run(sandbox.replies(calls(create("b.txt", "b\n")), "Done."))
    assert person.changes == [("create", "b.txt")]
    assert sandbox.statuses() == ["completed"]
    assert (sandbox.text("a.txt"), sandbox.text("b.txt")) == ("good\n", "b\n")


@each_row("error", [ConnectionFailed("gone"), RateLimited("later", retry_after=9e5)])
async def test_after_a_failed_call_the_step_goes_on_where_it_was(
    sandbox: Sandbox, error: ModelError
) -> None:
    (sandbox.root / "b.txt").write_text("old\n")
    sandbox.write(STEP).replies(
        calls(read("b.txt"), create("a.txt", "half\n")),
        calls(replace("b.txt", "", "new\n")),
        *[error] * 9,
    )
    events = await run(sandbox)
    assert finished(events).status in (StepStatus.FAILED, StepStatus.PENDING)
    assert not (sandbox.root / "a.txt").exists()
    assert sandbox.text("b.txt") == "old\n"

    await run(sandbox.replies(calls(replace("a.txt", "half", "good")), "Done."))
    assert sandbox.statuses() == ["completed"]
    assert [message.role for message in sandbox.model.requests[0].messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    assert (sandbox.text("a.txt"), sandbox.text("b.txt")) == ("good\n", "new\n")


async def test_an_interrupted_step_goes_on_and_asks_nothing_twice(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")), calls(create("b.txt", "b\n")), "never said"
    )
    engine = sandbox.engine()
    await stopped_after(engine, "b.txt")
    engine.close()
    assert not (sandbox.root / "a.txt").exists()
    assert not (sandbox.root / "b.txt").exists()

    sandbox.replies(calls(replace("a.txt", "go", "good")), "Done.")
    await run(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert sandbox.text("a.txt") == "good\n"
    # the round was answered, so its call is made without asking again
    assert sandbox.text("b.txt") == "b\n"
    assert len(sandbox.model.requests) == 2


async def test_a_finished_dialogue_is_not_asked_for_again(sandbox: Sandbox) -> None:
    sandbox.write(
        Step(
            "a.txt",
            "python -c \"open('a.txt').read().index('good'); import time;"
            ' time.sleep(30)"',
        )
    )
    sandbox.replies(calls(create("a.txt", "good\n")), "Done.")
    engine = sandbox.engine()
    await stop_at(engine.run_all(), lambda event: isinstance(event, ChangesApplied))
    engine.close()
    assert not (sandbox.root / "a.txt").exists()

    sandbox.replies(calls())
    sandbox.flags = {"test_timeout": 0.05}
    await run(sandbox)
    assert sandbox.model.requests == []
    # left to be looked at: the check took too long
    assert sandbox.text("a.txt") == "good\n"


async def test_what_cannot_be_done_again_begins_anew(sandbox: Sandbox) -> None:
    (sandbox.root / "b.txt").write_text("old\n")
    first = calls(replace("b.txt", "old", "new"), create("a.txt", "half\n"))
    await run(sandbox.write(STEP).replies(first, *[ConnectionFailed("gone")] * 9))
    (sandbox.root / "b.txt").write_text("a person's\n")
    sandbox.replies(calls(create("a.txt", "good\n")), "Done.")
    await run(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert len(sandbox.model.requests[0].messages) == 2
    assert sandbox.text("b.txt") == "a person's\n"


async def test_a_dialogue_that_is_too_long_begins_anew(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "half\n")), ContextTooLong("too long")
    )
    assert finished(await run(sandbox)).status is StepStatus.PENDING
    sandbox.replies(calls(create("a.txt", "good\n")), "Done.")
    await run(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert len(sandbox.model.requests[0].messages) == 2


async def test_a_server_that_takes_no_tools_is_asked_without(sandbox: Sandbox) -> None:
    unused = calls(read("a.txt"))
    sandbox.write(STEP).replies(
        RequestRejected("no tools here"), says("a.txt", "good"), unused
    )
    events = await run(sandbox)
    assert finished(events).status is StepStatus.COMPLETED
    assert [bool(request.tools) for request in sandbox.model.requests] == [True, False]
    assert NoticeKind.NO_TOOLS in noticed(events)
    assert WITH_TOOLS not in sandbox.model.requests[1].messages[0].content


async def test_what_goes_with_every_round_is_short(sandbox: Sandbox) -> None:
    await run(sandbox.write(STEP).replies(calls(create("a.txt", "good\n")), "Done."))
    request = sandbox.model.requests[0]
    definitions = [
        (tool.name, tool.description, dict(tool.parameters)) for tool in request.tools
    ]
    assert len(json.dumps(definitions, separators=(",", ":"))) < 2_400
    assert len(WITH_TOOLS) < 900
    # the forms of a reply are not needed where there are tools
    assert "SEARCH" not in request.messages[0].content


@each_row(
    ("words", "offered"),
    [
        ("Make it.", False),
        ("Make the 2 digits legit: “a”.", False),
        ("As it was before the last commit.", True),
        ("Stelle die frühere Fassung wieder her.", True),
        ("恢复以前的行为。", True),
    ],
)
async def test_history_can_be_looked_at_where_the_steps_words_are_about_it(
    sandbox: Sandbox, words: str, offered: bool
) -> None:
    git(sandbox.root, "init", "--quiet")
    step = Step("a.txt", check("a.txt"), description=words)
    await run(sandbox.write(step).replies(calls(create("a.txt", "good\n")), "Done."))
    names = {tool.name for tool in sandbox.model.requests[0].tools}
    assert ({"git_status", "git_log", "git_diff"} <= names) is offered
    assert names >= {
        "read_file",
        "grep_files",
        "create_file",
        "edit_file",
        "execute_command",
    }


def test_a_look_in_vain_is_no_refused_work_also_without_a_repository() -> None:
    made = (
        ToolCall("1", "git_log", "{}"),
        ToolCall("2", "execute_command", '{"command": "curl x"}'),
    )
    answers = (
        Message("tool", '{"error": "no"}', tool_call_id=call.id) for call in made
    )
    (told,) = refused_calls((Message("assistant", "", tool_calls=made), *answers))
    assert "curl x" in told


REFUSED = execute("rm -rf .")


@each_row(
    ("made", "verification"),
    [
        ([REFUSED], None),
        ([REFUSED, execute("python -S looks.py")], Verification.EXIT_CODE),
        ([], Verification.EXIT_CODE),
    ],
)
async def test_a_check_does_not_complete_a_step_whose_only_action_was_refused(
    sandbox: Sandbox,
    made: list[tuple[str, object]],
    verification: Verification | None,
) -> None:
    (sandbox.root / "looks.py").write_text("print('all is well')\n")
    sandbox.write(Step(None, "python -S looks.py"))
    rounds = [calls(*made)] if made else []
    sandbox.replies(*rounds, "I did it.")
    events = await run(sandbox)
    assert finished(events).verification is verification
    if verification is None:
        assert "nothing was done" in finished(events).error


@each_row(("setting", "offered"), [("off", False), ("on", True), ("auto", False)])
async def test_the_setting_decides_whether_tools_are_offered(
    sandbox: Sandbox, setting: str, offered: bool
) -> None:
    sandbox.flags = {"tool_calls": setting}
    await run(sandbox.write(STEP).replies(says("a.txt", "good")))
    assert bool(sandbox.model.requests[0].tools) is offered


async def test_a_model_that_never_ends_fails_the_attempt(sandbox: Sandbox) -> None:
    rounds = [calls(("list_files", {"limit": number})) for number in range(1, 40)]
    events = await run(sandbox.write(STEP).replies(*rounds))
    assert finished(events).status is StepStatus.FAILED
    assert finished(events).error
    assert len(sandbox.model.requests) == 26


async def test_a_last_reply_that_is_cut_is_not_used(sandbox: Sandbox) -> None:
    cut = ScriptedReply(says("a.txt", "good")[:-6], stop=StopReason.LENGTH)
    sandbox.write(STEP).replies(calls(create("b.txt", "b\n")), cut)
    events = await run(sandbox)
    assert finished(events).status is StepStatus.FAILED
    assert not (sandbox.root / "a.txt").exists()
    # until it is tried again, or skipped
    assert sandbox.state()["step_executions"]["1"]["files_created"] == ["b.txt"]
    engine = sandbox.engine()
    await collect(engine.skip(engine.run.plan.steps[0], "no", keep=False))
    engine.close()
    assert not (sandbox.root / "b.txt").exists()


async def test_what_took_place_is_in_the_record(sandbox: Sandbox) -> None:
    await run(
        sandbox.write(STEP).replies(
            calls(create("a.txt", "good\n"), text="I write."), "Done."
        )
    )
    attempt = sandbox.root / ".cdd/runs/feature-words/step-01/attempt-1"
    dialogue = json.loads((attempt / "dialogue.json").read_text())
    assert [message["role"] for message in dialogue["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert (attempt / "reply.md").read_text() == "Done."


async def test_a_damaged_dialogue_is_told(sandbox: Sandbox) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "half\n")), *[ConnectionFailed("gone")] * 9
    )
    await run(sandbox)
    attempt = sandbox.root / ".cdd/runs/feature-words/step-01/attempt-1"
    (attempt / "dialogue.json").write_text("{")
    with pytest.raises(Damaged, match=r"dialogue\.json"):
        await run(sandbox.replies(calls(create("a.txt", "good\n")), "Done."))


async def test_where_the_server_takes_no_tools_a_reply_may_do_what_every_reply_may(
    sandbox: Sandbox,
) -> None:
    git(sandbox.root, "init", "--quiet")
    (sandbox.root / ".gitignore").write_text("*.log\n")
    sandbox.write(STEP).replies(
        RequestRejected("no tools here"),
        says("a.txt", "good") + says("run.log", "x"),
        calls(read("a.txt")),
    )
    events = await run(sandbox)
    assert finished(events).status is StepStatus.COMPLETED, finished(events).error
    engine = sandbox.engine()
    await collect(engine.undo())
    engine.close()
    assert not (sandbox.root / "run.log").exists()
