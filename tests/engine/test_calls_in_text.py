"""Calls that a model writes into the text of its reply to a step: they are edits like
others, or the reply is refused and the model is told how to do it.
"""

import pytest

from tests.changes.written_calls import DIALECTS
from tests.engine.tool_steps import finished, run
from tests.support.projects import Sandbox, Step, check, says
from tests.support.tables import each_row

GOOD = says("a.txt", "good")
NOTES = {"file_path": "NOTES.md", "content": "# Notes\n"}
DIALECTS_OF_CALLS = (
    "Hermes, Qwen",
    "Claude",
    "Cline",
    "harmony",
    "Mistral",
    "tool_code",
)
NOT_MADE = {
    "a command": ("execute_command", {"command": "pytest"}),
    "reading": ("read_file", {"path": "a.txt"}),
    "research": ("web_search", {"query": "x"}),
}


def written(dialect: str, name: str, arguments: dict[str, str]) -> str:
    return DIALECTS[dialect].write(name, arguments)


@pytest.fixture(params=["off", "on"])
def step(request: pytest.FixtureRequest, sandbox: Sandbox) -> Sandbox:
    sandbox.flags["tool_calls"] = request.param
    return sandbox.write(Step("a.txt", check("a.txt"), also=("NOTES.md",)))


@each_row("dialect", DIALECTS_OF_CALLS)
async def test_a_file_by_call_and_one_by_code_block_are_written(
    dialect: str, step: Sandbox
) -> None:
    call = written(dialect, "create_file", NOTES)
    step.replies(f"{GOOD}\n{call}\n")
    assert finished(await run(step)).status == "completed"
    assert (step.text("a.txt"), step.text("NOTES.md")) == ("good\n", "# Notes\n")


@each_row(
    ("dialect", "call"),
    [*zip(DIALECTS_OF_CALLS, 2 * [*NOT_MADE.values()], strict=True)],
)
async def test_other_calls_refuse_the_reply_and_the_model_is_told(
    dialect: str, call: tuple[str, dict[str, str]], step: Sandbox
) -> None:
    step.replies(f"{GOOD}\n{written(dialect, *call)}\n", GOOD)
    await run(step, attempts=2)
    assert (step.statuses(), step.text("a.txt")) == (["completed"], "good\n")
    prompt = step.model.requests[1].messages[-1].content
    assert f"`{call[0]}`" in prompt
    assert "not seen" in prompt
    assert ("tool interface" in prompt) == (step.flags["tool_calls"] == "on")


async def test_a_call_that_is_cut_refuses_the_reply(step: Sandbox) -> None:
    call = written("Claude", "create_file", NOTES)
    step.replies(f"{GOOD}\n{call[: call.index('# Notes')]}")
    assert finished(await run(step)).status == "failed"
    assert not (step.root / "a.txt").exists()


@each_row("name", ["create_file", "write_to_file"])
async def test_a_file_that_was_not_shown_is_not_replaced_by_a_call(
    name: str, step: Sandbox
) -> None:
    (step.root / "other.txt").write_text("old\n")
    call = written("Hermes, Qwen", name, {"path": "other.txt", "content": "new\n"})
    step.replies(f"{GOOD}\n{call}\n")
    assert finished(await run(step)).status == "failed"
    assert (step.root / "other.txt").read_text() == "old\n"


async def test_shell_commands_refuse_the_reply_only_without_tools(
    step: Sandbox,
) -> None:
    shell = "```bash\ncat > b.txt <<'EOF'\nx\nEOF\n```\n"
    step.replies(f"{GOOD}\n{shell}")
    has_tools = step.flags["tool_calls"] == "on"
    expected = "completed" if has_tools else "failed"
    assert finished(await run(step)).status == expected
