"""Plans whose steps have several `**Verify:**` lines."""

import re

import pytest
from msgspec.structs import replace

from cdd_agent.tickets import store
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep


@pytest.fixture
def plans_with_several_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all `**Verify:**` lines of a step."""
    read = store.read_plan_once

    def add_checks(step: PlanStep, text: str) -> PlanStep:
        found = re.findall(r"^\*\*Verify:\*\* `(.*)`$", text, re.MULTILINE)
        return replace(step, checks=tuple(found)) if found else step

    def read_all(text: str) -> ImplementationPlan:
        plan = read(text)
        _, *parts = re.split(r"^### ", text, flags=re.MULTILINE)
        steps = map(add_checks, plan.steps, parts)
        return replace(plan, steps=tuple(steps), findings=())

    monkeypatch.setattr(store, "read_plan_once", read_all)
