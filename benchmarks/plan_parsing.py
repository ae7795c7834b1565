"""Measure the parsing of a plan against the Markdown parser alone: `python -m
benchmarks.plan_parsing`.

The aim: a plan of 10,000 steps within twice the time of
`MarkdownIt("commonmark").parse`.
"""

import time
from collections.abc import Callable

from markdown_it import MarkdownIt

from cdd_agent.tickets.plan import AffectedFile, ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import write_plan

STEPS = 10_000
ROUNDS = 5


def plan_of(steps: int) -> ImplementationPlan:
    return ImplementationPlan(
        ticket_slug="feature-user-auth",
        ticket_title="User authentication",
        overview="Users sign in with a password.",
        steps=tuple(
            PlanStep(
                number=number,
                title=f"Create part {number}",
                description=(
                    f"Write part {number}.\n\n"
                    "- with its fields\n"
                    "- with its tests\n\n"
                    "```python\n"
                    "x = 1\n"
                    "```"
                ),
                complexity="simple",
                estimated_time="30 min",
                dependencies=(number - 1,) if number > 1 else (),
                files_affected=(AffectedFile(f"src/part_{number}.py", "new"),),
                checks=(f"pytest tests/test_part_{number}.py",),
            )
            for number in range(1, steps + 1)
        ),
        risks=("Passwords are kept as hashes only.",),
    )


def seconds(work: Callable[[], object]) -> float:
    """Return the best of a few rounds, so that a busy machine does not count."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    text = write_plan(plan_of(STEPS))
    markdown = MarkdownIt("commonmark")
    parser = seconds(lambda: markdown.parse(text))
    reading = seconds(lambda: read_plan(text).check())
    print(f"{STEPS} steps, {len(text) / 1e6:.1f} MB")
    print(f"the Markdown parser alone: {parser:.2f} s")
    print(
        f"from_markdown and check:   {reading:.2f} s, {reading / parser:.2f} times the"
        " parser"
    )


if __name__ == "__main__":
    main()
