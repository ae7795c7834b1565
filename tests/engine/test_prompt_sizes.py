"""Tokens of the prompts of a whole run, and the beginning that providers can cache."""

import json
from pathlib import Path

import pytest

from benchmarks import job
from cdd_agent.engine.prompt import FailedAttempt
from cdd_agent.llm.port import Message, Request, ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.llm.token_estimates import estimate_prompt
from tests.crash.story import git
from tests.engine.test_prompt import prompt_of
from tests.engine.tool_steps import calls, create
from tests.support.listening import collect
from tests.support.projects import Sandbox, Step

BEFORE = 4_323
"""Estimated tokens of the five-step job before its prompt asked for imports, error
handling, docstrings and the project's practices.
"""


def as_reply(number: int, entry: str | job.Call) -> str | ScriptedReply:
    if isinstance(entry, str):
        return entry
    name, arguments = entry
    call = ToolCall(f"call-{number}", name, json.dumps(arguments))
    return ScriptedReply("", tool_calls=(call,))


async def requests_of_job(root: Path, *, with_tools: bool) -> list[Request]:
    """Carry out the job of `benchmarks.job`, and return what the model was asked."""
    calls, script = "off", job.one_reply(job.STEPS)
    if with_tools:
        calls, script = "on", job.with_tools(job.STEPS)
    job.project(root, job.STEPS, calls=calls)
    sandbox = Sandbox(root, slug="feature-stock").in_process()
    sandbox.flags = {"approval": "auto", "tool_calls": calls}
    sandbox.replies(*[as_reply(*entry) for entry in enumerate(script)])
    engine = sandbox.engine()
    try:
        await collect(engine.run_all(attempts=1))
    finally:
        engine.close()
    assert sandbox.statuses() == ["completed"] * job.STEPS
    return sandbox.model.requests


async def test_the_prompts_of_the_five_step_job_are_short(tmp_path: Path) -> None:
    requests = await requests_of_job(tmp_path, with_tools=False)
    assert len(requests) == 5
    assert sum(map(estimate_prompt, requests)) <= 1.05 * BEFORE


async def test_with_tools_the_prompts_of_the_five_step_job_are_short(
    tmp_path: Path,
) -> None:
    requests = await requests_of_job(tmp_path, with_tools=True)
    assert len(requests) == 12
    assert sum(map(estimate_prompt, requests)) < 18_000


@pytest.mark.parametrize("tool_calls", ["on", "off"])
async def test_all_requests_of_a_run_begin_with_the_same_bytes(
    sandbox: Sandbox, tool_calls: str
) -> None:
    git(sandbox.root, "init", "--quiet")
    (sandbox.root / "AGENTS.md").write_text("Use tabs.\n")
    sandbox.flags = {"tool_calls": tool_calls}
    sandbox.write(
        Step("a.txt", "none", description="Make it."),
        Step("b.txt", "none", description="As it was before the last commit."),
        Step(None, "none", description="Wherever it belongs."),
    )
    script = [calls(create(f"{name}.txt", f"{name}\n")) for name in "abc"]
    if tool_calls == "on":
        sandbox.replies(*[part for call in script for part in (call, "It is done.")])
    else:
        sandbox.replies(*[f"```text:{name}.txt\n{name}\n```\n" for name in "abc"])
    engine = sandbox.engine()
    await collect(engine.run_all(attempts=1))
    engine.close()
    assert sandbox.statuses() == ["completed"] * 3
    first, *others = sandbox.model.requests
    for place, request in enumerate(others):
        assert request.tools == first.tools
        assert request.messages[0] == first.messages[0]
        before = sandbox.model.requests[place].messages
        if len(request.messages) > 2:
            assert request.messages[: len(before)] == before


@pytest.mark.parametrize("with_tools", [True, False])
def test_a_step_is_asked_for_complete_code_in_the_projects_practices(
    sandbox: Sandbox, with_tools: bool
) -> None:
    prompt = prompt_of(sandbox.write(Step("a.txt")), with_tools=with_tools)
    rules = prompt.request.messages[0].content
    for promised in ("imports", "error handling", "docstrings", "style", "libraries"):
        assert promised in rules


def test_what_is_new_in_an_attempt_comes_last(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt"))
    first = prompt_of(sandbox).request.messages
    failed = FailedAttempt("It failed.", "A reply.")
    retried = prompt_of(sandbox, failed=failed, guidance="Be brief.").request.messages
    assert retried[0] == first[0]
    assert isinstance(retried[1], Message)
    assert retried[1].content.startswith(first[1].content)
