"""What is known of the tests is the same whether it grew with the steps, or was read
anew from the record.
"""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.engine.accepted import KnownTests
from cdd_agent.engine.record import RunRecord
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.state import NO_FILES, ExecutionState
from cdd_agent.tickets.status import StepStatus, Verification
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.outcomes import Reference, Result, SuiteRun

STEPS = (1, 2, 3)
NOW = datetime(2026, 1, 1, tzinfo=UTC)

runs = st.dictionaries(
    st.sampled_from(["test_a.py::a", "test_a.py::b", "test_b.py::c"]),
    st.sampled_from(Result),
).map(lambda results: SuiteRun(results=results))


@dataclass(frozen=True)
class Checked:
    """A step is completed, or done once more, and its check saw these tests."""

    step: int
    tests: SuiteRun


@dataclass(frozen=True)
class Undone:
    step: int


@dataclass(frozen=True)
class Begun:
    """The run has another baseline, in which an attempt's work may be there already."""

    tests: SuiteRun
    already: tuple[tuple[int, int], ...]


deeds = st.one_of(
    st.builds(Checked, st.sampled_from(STEPS), runs),
    st.builds(Undone, st.sampled_from(STEPS)),
    st.builds(
        Begun,
        runs,
        st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 2)), max_size=2).map(
            tuple
        ),
    ),
)


@given(st.lists(deeds, max_size=7))
def test_what_is_kept_is_what_would_be_read(
    done: list[Checked | Undone | Begun],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        record = RunRecord.of(Path(folder), "feature-x", Redactor())
        record.prepare()
        state = ExecutionState(ticket_slug="feature-x").with_steps(STEPS)
        known = KnownTests(record)
        for deed in done:
            match deed:
                case Checked(number, tests):
                    attempt = state.step(number).attempts + 1
                    state = state.started(
                        PlanStep(number=number, title="t"), NOW, attempt=attempt
                    )
                    record.attempt(number, attempt).folder.mkdir(parents=True)
                    run = CheckRun("pytest", 0, tests=tests)
                    record.attempt(number, attempt).save_checks([run], Reference())
                    state = state.completed(number, NOW, Verification.PASSED, NO_FILES)
                case Undone(number):
                    if state.step(number).status is StepStatus.COMPLETED:
                        state = state.undo([state.step(number)], "u")
                case Begun(tests, already):
                    run = CheckRun("pytest", 0, tests=tests)
                    record.save_baseline(Baseline(step=1).add(1, run, already))
            for before in (None, state.step(2)):
                assert known.so_far(state, before=before) == KnownTests(record).so_far(
                    state, before=before
                )
