"""The rounds of a whole job with Claude: each reads from the cache all that the round
before has sent, whichever provider passes it on.
"""

from itertools import pairwise

import pytest

from cdd_agent.cli.main import main
from tests.llm.simulators.anthropic import Anthropic
from tests.llm.simulators.base import Said, Simulator
from tests.llm.simulators.chat import ClaudeBehindOpenRouter
from tests.support.projects import SLUG, Sandbox, Step, check
from tests.support.tables import each_row

STEPS = ("a.txt", "b.txt")
ROUNDS = 4


def rounds_of(path: str) -> list[Said]:
    """The rounds of a step; one has more calls than a mark looks back."""
    looks = tuple(("read_file", {"path": f"notes-{n}.txt"}) for n in range(25))
    return [
        Said("I look.", "What is there?", (("read_file", {"path": "notes-1.txt"}),)),
        Said("", "And the others?", looks),
        Said("", "", (("create_file", {"file_path": path, "content": "good\n"}),)),
        Said("It is there."),
    ]


@each_row(
    ("model", "kind"),
    [
        ("anthropic/claude-opus-5", Anthropic),
        ("openrouter/anthropic/claude-opus-5", ClaudeBehindOpenRouter),
        ("openrouter/anthropic/claude-opus-9", ClaudeBehindOpenRouter),
    ],
)
def test_claude_reads_earlier_rounds_of_a_step_from_the_cache(
    sandbox: Sandbox,
    model: str,
    kind: type[Simulator],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for provider in ("OPENROUTER", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "a-key")
    sandbox.write(*(Step(path, check(path)) for path in STEPS))
    for number in range(25):
        (sandbox.root / f"notes-{number}.txt").write_text(f"Note {number}.\n")
    with kind([said for path in STEPS for said in rounds_of(path)]) as simulator:
        (sandbox.root / ".cdd/config.yaml").write_text(
            f"model: {model}\napi_base: {simulator.url}\n"
        )
        code = main(["exec", SLUG, "-C", str(sandbox.root)])

    assert (code, simulator.refusals) == (0, [])
    assert len(simulator.bills) == len(STEPS) * ROUNDS
    for first in range(0, len(simulator.bills), ROUNDS):
        bills = simulator.bills[first : first + ROUNDS]
        assert [later.cached for _, later in pairwise(bills)] == [
            earlier.prompt for earlier, _ in pairwise(bills)
        ]
