"""Random plans whose steps get in each other's way: what they leave is what they would
leave one after the other.

A step writes into files what it has read in others; most of these the plan does not
declare. More runs: `pytest --hypothesis-profile many`.
"""

import asyncio
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.together import Together, carried_out, project_in
from tests.support.projects import Step, says

RUNS = max(3, settings().max_examples // 25)
THERE, NEW = ("w", "x", "y"), ("z",)
"""Files that steps share; those that are new are not named in any step's text."""


@dataclass(frozen=True)
class Part:
    """A step; each has a file of its own besides."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    depends: tuple[int, ...]

    def step(self, number: int) -> Step:
        named = " and ".join(
            f"{name}.txt" for name in sorted({*self.reads, *self.writes} - {*NEW})
        )
        depends = ", ".join(f"Step {other}" for other in self.depends) or "None"
        return Step(
            f"own-{number}.txt",
            "none",
            depends,
            description=f"Look at {named}." if named else "Write it.",
        )

    def result(self, number: int, known: Mapping[str, str]) -> dict[str, str]:
        """What it writes, by what it has read."""
        told = f"{number}({'+'.join(known[name].strip() for name in self.reads)})"
        return dict.fromkeys((f"own-{number}", *self.writes), f"{told}\n")


@st.composite
def plans(draw: st.DrawFn) -> list[Part]:
    reads = st.lists(st.sampled_from(THERE), unique=True, max_size=2).map(tuple)
    writes = st.lists(st.sampled_from(THERE + NEW), unique=True, max_size=2).map(tuple)
    count = draw(st.integers(2, 4))
    return [
        Part(
            draw(reads),
            draw(writes),
            tuple(draw(st.sets(st.integers(1, number), max_size=1))) if number else (),
        )
        for number in range(count)
    ]


def answer(number: int, part: Part, prompt: str) -> str:
    shown = dict(re.findall(r"\n(\w)\.txt:\n```\w*\n(.*?)```", prompt, re.DOTALL))
    return "\n".join(
        says(f"{name}.txt", text.strip())
        for name, text in part.result(number, shown).items()
    )


async def files_after(
    parts: Sequence[Part], folder: Path
) -> tuple[list[int], dict[str, str]]:
    """The steps in the order in which they were completed, and what they left."""
    sandbox = project_in(folder, **{name: f"{name}\n" for name in THERE})
    sandbox.write(*(part.step(number) for number, part in enumerate(parts, 1)))
    model = Together(
        {number: partial(answer, number, part) for number, part in enumerate(parts, 1)}
    )
    await carried_out(sandbox, model, attempts=3)
    steps = sorted(
        sandbox.state()["step_executions"].values(), key=lambda step: int(step["place"])
    )
    assert [step["status"] for step in steps] == ["completed"] * len(parts)
    return [step["step_number"] for step in steps], {
        path.stem: path.read_text() for path in sandbox.root.glob("*.txt")
    }


@settings(max_examples=RUNS, deadline=None)
@given(plans())
def test_the_files_are_those_of_the_steps_in_the_order_in_which_they_were_completed(
    parts: list[Part],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        order, left = asyncio.run(files_after(parts, Path(folder)))
    expected = {name: f"{name}\n" for name in THERE}
    for number in order:
        assert set(parts[number - 1].depends) <= set(order[: order.index(number)])
        expected |= parts[number - 1].result(number, expected)
    assert left == expected
