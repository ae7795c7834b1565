"""The lines that the parser names are those that say what it read."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_labels import Field
from cdd_agent.tickets.plan_reader import ParsedPlan, parse_plan
from cdd_agent.tickets.plan_writer import write_plan
from tests.tickets.test_plan import NASTY, PLAN, PLANS


def text_of(parsed: ParsedPlan, lines: range | None) -> str:
    assert lines is not None
    return "".join(parsed.source[lines.start : lines.stop])


def without_dependencies(step: PlanStep) -> PlanStep:
    return replace(step, number=1, dependencies=(), missing_dependencies=())


def test_each_part_of_a_plan_has_its_lines() -> None:
    parsed = parse_plan(PLAN)
    assert text_of(parsed, parsed.overview_lines) == "Users sign in.\n\n- with a name\n"
    assert text_of(parsed, parsed.risk_lines) == "- Passwords\n- Two\n  lines\n"
    assert (
        parsed.source[parsed.field_lines[Field.COMPLEXITY]]
        == "**Complexity:** medium\n"
    )
    assert parsed.source[parsed.top_end] == "## Overview\n"
    assert text_of(parsed, parsed.steps[1].written).endswith(
        "**Dependencies:** Step 1\n"
    )
    assert text_of(parsed, parsed.steps[1].section).endswith(
        "**Dependencies:** Step 1\n\n"
    )


def test_the_lines_of_a_wrapped_plan_are_those_of_the_whole_text() -> None:
    alone, wrapped = parse_plan(PLAN), parse_plan(f"Sure!\n\n```markdown\n{PLAN}```\n")
    assert text_of(wrapped, wrapped.lines) == PLAN
    assert [text_of(wrapped, step.section) for step in wrapped.steps] == [
        text_of(alone, step.section) for step in alone.steps
    ]


@settings(deadline=None)
@given(PLANS)
def test_the_lines_of_a_step_say_that_step_by_themselves(
    plan: ImplementationPlan,
) -> None:
    parsed = parse_plan(write_plan(plan))
    for found, step in zip(parsed.steps, plan.steps, strict=True):
        (alone,) = parse_plan(text_of(parsed, found.written)).steps
        assert without_dependencies(alone.step) == without_dependencies(step)


@settings(deadline=None)
@given(
    st.lists(
        NASTY | st.just("\n### Step 1: A\n") | st.just("\n## Risks\n"), max_size=8
    ).map("".join)
)
def test_sections_follow_each_other_in_any_text(text: str) -> None:
    try:
        parsed = parse_plan(text)
    except BadInput:
        return
    assert "".join(parsed.source) == text
    end = parsed.lines.start
    for found in parsed.steps:
        assert (
            end
            <= found.section.start
            < found.written.stop
            <= found.section.stop
            <= parsed.lines.stop
        )
        assert found.step.line == found.section.start + 1
        end = found.section.stop
