"""Words about small faults and the tests that notice them."""

from cdd_agent.events.notices import Tone
from cdd_agent.events.strength_events import (
    CriterionStrength,
    FaultTried,
    StepStrength,
    Strength,
    StrengthFinished,
    StrengthStarted,
    UnnoticedFault,
)
from cdd_agent.wording.describe import describe

FAULT = UnnoticedFault("age.py", 2, "`>=` became `>`", "return age >= 18")


def lines(*steps: StepStrength, **more: object) -> list[str]:
    event = StrengthFinished("feature-x", steps, **more)  # type: ignore[arg-type]
    return [text for text, _ in describe(event)]


def test_the_beginning() -> None:
    first = StrengthStarted("feature-x", 30)
    assert describe(first)[0][0] == (
        "feature-x: trying 30 faults in the lines that its steps changed. The faults are put into a copy of your files."
    )
    known = StrengthStarted("feature-x", 30, 30)
    assert describe(known)[0][0] == (
        "feature-x: trying 30 faults in the lines that its steps changed, 30"
        " already measured"
    )
    again = StrengthStarted("feature-x", 30, 12)
    assert describe(again)[0][0] == (
        "feature-x: trying 30 faults in the lines that its steps changed, 12 already measured. The faults are put into a copy of your files."
    )


def test_progress() -> None:
    noticed = FaultTried(2, "a.py", 3, "`<` became `<=`", "noticed", 7, 30, 6)
    assert describe(noticed)[0][0] == "step 2: 7 of 30 faults, 6 noticed"
    other = FaultTried(2, "a.py", 3, "`<` became `<=`", "not_noticed", 8, 30, 6)
    assert describe(other)[0][0] == (
        "step 2: 8 of 30 faults, 6 noticed; not noticed: a.py:3 `<` became `<=`"
    )


def test_scores_of_steps() -> None:
    assert lines(
        StepStrength(1, "A", Strength(3, 3)),
        StepStrength(2, "B", Strength(1, 2), (FAULT,), 1, label="1b"),
        StepStrength(3, "C", Strength(1, 1), untried=5),
        StepStrength(4, "D", problem="it has no check"),
        StepStrength(5, "E"),
        StepStrength(6, "F", no_result=2),
        StepStrength(7, "G", untried=3),
    ) == [
        "step 1. A: 100 % (3 of 3 faults noticed)",
        "step 1b. B: 50 % (1 of 2 faults noticed)",
        "    age.py:2 `>=` became `>`: return age >= 18",
        "    no result for 1 fault: the code does not compile",
        "step 3. C: 100 % (1 of 1 fault noticed)",
        "    5 faults not tried yet",
        "step 4. D cannot be measured: it has no check",
        "step 5. E: its changed lines offer no fault to try",
        "step 6. F: no result for 2 faults: the code does not compile",
        "step 7. G: not measured yet",
    ]


def test_a_weak_score_is_a_warning() -> None:
    weak = Strength(1, 2, is_weak=True)
    step = StepStrength(1, "A", weak)
    criterion = CriterionStrength(3, "It adds", ("1",), weak)
    event = StrengthFinished("feature-x", (step,), (criterion,), threshold=60)
    assert describe(event) == [
        ("step 1. A: 50 % (1 of 2 faults noticed), weak", Tone.WARNING),
        ("criterion 3. It adds: 50 % (1 of 2 faults noticed), weak", Tone.WARNING),
    ]


def test_a_measurement_that_was_stopped() -> None:
    assert lines(StepStrength(1, "A"), was_stopped=True)[-1] == (
        "Stopped. The results so far are saved. Run it again to try the rest."
    )
