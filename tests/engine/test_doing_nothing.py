"""A step of which everything was refused is not done, whatever the model says; one that
is answered in words is.
"""

import pytest

from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.tickets.status import Verification
from tests.engine.tool_steps import (
    calls,
    create,
    execute,
    finished,
    read,
    replace,
    run,
    stopped_after,
)
from tests.support.pictures import png
from tests.support.projects import Sandbox, Step, run_all, says
from tests.support.tables import each_row

RESEARCH = Step(None, "none")


@pytest.fixture
def tools(sandbox: Sandbox) -> Sandbox:
    sandbox.flags["tool_calls"] = "on"
    return sandbox.write(RESEARCH)


REFUSED = {
    "a path outside": create("../x.txt", "x"),
    "a path of the program's own": create(".cdd/config.yaml", "x"),
    "an absolute path": create("/etc/x", "x"),
    "an unknown tool": ("write_file", {"path": "a.txt", "content": "x"}),
    "a tool without a name": ("", {}),
    "wrong arguments": ("create_file", {"path": "a.txt", "text": "x"}),
    "no JSON": ("create_file", "{"),
    "no object": ("create_file", "[]"),
    "a text that is not there": replace("a.txt", "b", "c"),
    "a command that is not allowed": execute("rm -rf /"),
    "no command": execute(""),
}
each_refusal = each_row("refused", REFUSED.values(), ids=REFUSED)


@each_refusal
async def test_a_step_of_which_every_call_was_refused_has_failed(
    tools: Sandbox, refused: tuple[str, object]
) -> None:
    tools.replies(
        calls(refused), "Done.", calls(refused, read("spec.txt")), "All done, as said!"
    )

    events = await run(tools, attempts=2)

    assert finished(events).status == "failed"
    assert finished(events).error
    assert refused[0] in tools.model.requests[2].messages[-1].content
    assert [
        event.will_retry for event in events if isinstance(event, AttemptFailed)
    ] == [True, False]


@each_refusal
async def test_what_was_refused_can_be_done_otherwise(
    tools: Sandbox, refused: tuple[str, object]
) -> None:
    tools.replies(calls(refused), calls(create("b.txt", "x")), "Done.")
    assert finished(await run(tools)).status == "completed"


async def test_the_next_attempt_may_do_it(tools: Sandbox) -> None:
    tools.replies(
        calls(create("../a.txt", "x")), "Done.", calls(create("a.txt", "x")), "Done."
    )
    await run(tools, attempts=2)
    assert (tools.statuses(), tools.text("a.txt")) == (["completed"], "x")


async def test_the_next_attempt_may_answer_in_words(tools: Sandbox) -> None:
    tools.replies(
        calls(create("../a.txt", "x")),
        "Done.",
        "There is nothing to be changed, because …",
    )
    assert finished(await run(tools, attempts=2)).verification is Verification.NONE


@each_row(
    "script",
    [
        ["There are two ways; take the second."],
        [
            calls(read("no-such.txt"), ("grep_files", {"pattern": 1})),
            "It is not there.",
        ],
        [calls(execute("python -c 1")), "It runs."],
        [calls(execute("python -c 'raise SystemExit(1)'")), "It fails."],
    ],
)
async def test_a_step_that_is_answered_in_words_is_completed_unverified(
    tools: Sandbox, script: list[str | ScriptedReply]
) -> None:
    last = finished(await run(tools.replies(*script)))
    assert (last.status, last.verification) == ("completed", Verification.NONE)


async def test_a_command_that_only_looks_is_not_doing(tools: Sandbox) -> None:
    tools.replies(calls(create("../a.txt", "x"), execute("python -c 1")), "Done.")
    assert finished(await run(tools)).status == "failed"


async def test_a_command_that_changes_something_is(tools: Sandbox) -> None:
    made = execute("python -c \"open('b.txt', 'w').write('x')\"")
    tools.replies(calls(create("../a.txt", "x"), made), "Done.")
    assert finished(await run(tools)).status == "completed"


async def test_files_in_the_reply_are_doing_too(tools: Sandbox) -> None:
    tools.replies(calls(create("../a.txt", "x")), says("a.txt", "good"))
    assert (finished(await run(tools)).status, tools.text("a.txt")) == (
        "completed",
        "good\n",
    )


async def test_a_reply_that_is_refused_after_calls_that_were_is_nothing(
    tools: Sandbox,
) -> None:
    tools.replies(calls(create("../a.txt", "x")), says("../a.txt", "good"))
    assert finished(await run(tools)).status == "failed"


async def test_the_steps_own_check_decides_where_there_is_one(sandbox: Sandbox) -> None:
    sandbox.flags["tool_calls"] = "on"
    sandbox.write(Step(None, "python -c 1")).replies("It was right already.")
    assert finished(await run(sandbox)).verification is Verification.EXIT_CODE


async def test_a_check_does_not_complete_a_step_whose_only_action_was_refused(
    sandbox: Sandbox,
) -> None:
    sandbox.flags["tool_calls"] = "on"
    sandbox.write(Step(None, "python -c 1")).replies(
        calls(create("../a.txt", "x")), "It was right already."
    )
    assert finished(await run(sandbox)).status == "failed"


@each_row(
    ("step", "status"),
    [
        (Step(None, "none"), "completed"),
        # the plan does not say that nothing has to be done
        (Step(None), "failed"),
        (Step("a.png", "none"), "failed"),
        (Step("a.txt", "none"), "failed"),
    ],
)
async def test_words_alone_complete_a_step_that_is_for_nothing_else(
    sandbox: Sandbox, step: Step, status: str
) -> None:
    (sandbox.root / "a.png").write_bytes(png())
    sandbox.write(step).replies("Take the second way.")
    assert finished(await run_all(sandbox)).status == status


async def test_a_step_that_names_files_is_told_what_was_refused(
    sandbox: Sandbox,
) -> None:
    sandbox.flags["tool_calls"] = "on"
    sandbox.write(Step("a.txt")).replies(
        calls(create("../a.txt", "x")), "Done.", calls(create("a.txt", "x")), "Done."
    )
    await run(sandbox, attempts=2)
    assert sandbox.statuses() == ["completed"]
    assert "create_file" in sandbox.prompt(2)
    assert "../a.txt" in sandbox.prompt(2)


async def test_it_is_known_after_an_interruption_too(tools: Sandbox) -> None:
    tools.replies(
        calls(create("../a.txt", "x")), calls(read("spec.txt")), "never asked for"
    )
    engine = tools.engine()
    try:
        await stopped_after(engine, "read_file")
    finally:
        engine.close()
    last = finished(await run(tools.replies("Done.")))
    assert (last.status, bool(last.error)) == ("failed", True)


@each_row(
    "reply",
    [
        says("../x.txt", "good"),
        says(".cdd/config.yaml", "good"),
        "```yaml\n- action: execute\n  command: ls\n```\nDone.",
        (
            "```yaml\n"
            "- action: create_file\n"
            "  file_path: ../x.txt\n"
            "  content: x\n"
            "```\n"
            "Done."
        ),
        "```yaml\n- action: create_file\n  file: x.txt\n```\nDone.",
        "a.txt\n<<<<<<< SEARCH\nnot there\n=======\nx\n>>>>>>> REPLACE\n",
    ],
)
async def test_a_reply_of_which_everything_is_refused_has_failed(
    sandbox: Sandbox, reply: str
) -> None:
    sandbox.write(RESEARCH).replies(reply, reply)
    await run_all(sandbox, attempts=2)
    assert sandbox.statuses() == ["failed"]


async def test_a_reply_in_words_is_completed_unverified(sandbox: Sandbox) -> None:
    last = finished(
        await run_all(sandbox.write(RESEARCH).replies("Take the second way."))
    )
    assert (last.status, last.verification) == ("completed", Verification.NONE)
