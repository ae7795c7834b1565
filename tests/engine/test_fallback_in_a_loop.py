"""A provider that fails in the middle of a step's rounds with tools: another goes on
with them, and that is told.
"""

import json
from dataclasses import dataclass

import pytest

from cdd_agent.cli.main import main
from cdd_agent.commands.registry import handle
from cdd_agent.events.dialogue_events import ModelReplaced
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.providers import endpoint_of
from tests.llm.simulators.anthropic import Anthropic
from tests.llm.simulators.base import Said, Sent, Simulator, expect
from tests.llm.simulators.chat import DeepSeek
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check
from tests.support.tables import each_row

FIRST, SECOND = "deepseek/deepseek-v4", "anthropic/claude-opus-5"
LOOKS = Said("I look.", "Perhaps it is there.", (("read_file", {"path": "notes.txt"}),))
CREATES = Said(
    "", "It is not.", (("create_file", {"file_path": "a.txt", "content": "good\n"}),)
)


@dataclass
class OutOfService(DeepSeek):
    """Answers once, and then no more."""

    status: int = 402

    def check(self, sent: Sent) -> None:
        super().check(sent)
        expect(not self.bills, "Try another day.", self.status)


@pytest.fixture
def step(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    for provider in ("DEEPSEEK", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "a-key")
    sandbox.write(Step("a.txt", check("a.txt")))
    (sandbox.root / "notes.txt").write_text("Nothing.\n")
    return sandbox


def settings(first: Simulator, second: Simulator) -> dict[str, object]:
    other = {"model": SECOND, "api_base": second.url}
    return {
        "model": FIRST,
        "api_base": first.url,
        "fallbacks": [other],
        "tool_calls": "on",
    }


@each_row(("status", "calls"), [(402, 2), (503, 8)])
async def test_another_model_goes_on_with_the_rounds_of_a_step(
    step: Sandbox, status: int, calls: int
) -> None:
    with (
        OutOfService([LOOKS], status=status) as first,
        Anthropic([CREATES, Said("Done.")]) as second,
    ):
        step.flags = settings(first, second)
        endpoint = endpoint_of(FIRST, first.url)
        assert endpoint is not None
        step.real_model = DirectModel(FIRST, endpoint)
        session = step.session()
        await collect(session.engage("executor", step.project.tickets.find(SLUG)))
        events = await collect(handle(session, "c"))
        session.leave()

    assert step.statuses() == ["completed"]
    assert (len(first.sent), second.refusals, len(second.bills)) == (calls, [], 2)
    (told,) = [event for event in events if isinstance(event, ModelReplaced)]
    assert (told.step, told.model, told.instead_of) == (1, SECOND, FIRST)
    taken_over = json.dumps(second.sent[0].body["messages"])
    assert "Nothing." in taken_over  # what the first has read
    assert LOOKS.thinking not in taken_over
    (report,) = step.root.rglob("report.json")
    assert json.loads(report.read_text())["steps"][0]["models"] == [FIRST, SECOND]


def test_a_run_that_was_recorded_with_a_fallback_is_played_again(
    step: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    record = tmp_path_factory.mktemp("record") / "run.jsonl"
    with OutOfService([LOOKS]) as first, Anthropic([CREATES, Said("Done.")]) as second:
        config = json.dumps(settings(first, second))
        (step.root / ".cdd/config.yaml").write_text(config)
        assert main(["exec", SLUG, "--record", str(record), "-C", str(step.root)]) == 0
    assert len(record.read_text().splitlines()) == 4  # with the one that was refused

    again = Sandbox(tmp_path_factory.mktemp("again")).write(
        Step("a.txt", check("a.txt"))
    )
    (again.root / "notes.txt").write_text("Nothing.\n")
    (again.root / ".cdd/config.yaml").write_text(config)
    assert (
        main(["exec", SLUG, "--model", f"replay:{record}", "-C", str(again.root)]) == 0
    )

    assert (again.text("a.txt"), again.statuses()) == ("good\n", ["completed"])
    (log,) = again.root.rglob("events.jsonl")
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()].count(
        "model_replaced"
    ) == 1
