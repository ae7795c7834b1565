"""Which steps may run side by side, by the files that they declare and name."""

from pathlib import Path

from cdd_agent.engine.side_claim import SideClaim
from cdd_agent.tickets.plan import AffectedFile, PlanStep
from tests.engine.together import Together, carried_out, project_in
from tests.support.projects import Step, check, says
from tests.support.tables import each_row

DECLARED = ("src/app.py", "docs/guide/", "data/*.json", "Makefile", "bin/run")


def claim(root: Path, step: PlanStep) -> SideClaim:
    return SideClaim.of_step(root, step)


def step_with(text: str = "", check_line: str = "", title: str = "") -> PlanStep:
    checks = (check_line,) if check_line else None
    own = (AffectedFile("tests/test_own.py"), AffectedFile("own/mod.py"))
    return PlanStep(2, title=title, description=text, files_affected=own, checks=checks)


@each_row(
    ("text", "names"),
    [
        ("Call the new function of src/app.py.", True),
        ("Call the new function of `src/app.py`", True),
        ("See [the application](src/app.py).", True),
        ("See ./src/app.py, lines 3-9", True),
        ("See src\\app.py", True),
        ("See `src/app.py:12`", True),
        ("See src/app.py#L12", True),
        ("See @src/app.py", True),
        ("(src/app.py)", True),
        ("Like app.py does it", True),
        ("Like `app.py::main`", True),
        ("List it in docs/guide/start.md", True),
        ("List it in `docs/guide/`", True),
        ("Read data/prices.json", True),
        ("Read `data/*.json`", True),
        ("Add a target to the Makefile", True),
        ("Call `bin/run`", True),
        ("Call `run`", True),
        # what is no path that the other step declares
        ("Run it and see how the app does", False),
        ("See src/apps.py and my_app.py", False),
        ("See other/app.py", False),
        ("The package src.app", False),
        ("All of src/ is typed", False),
        ("Read data/prices.yaml, docs/guide.md", False),
        ("https://example.org/src/app.py", False),
        ("As in tests/test_own.py and mod.py", False),
        ("", False),
    ],
)
def test_a_step_collides_with_the_one_that_declares_a_path_of_its_text(
    tmp_path: Path, text: str, names: bool
) -> None:
    other = PlanStep(1, files_affected=tuple(map(AffectedFile, DECLARED)))
    for step in (step_with(text), step_with(title=text)):
        assert claim(tmp_path, step).collides(claim(tmp_path, other)) is names
        assert claim(tmp_path, other).collides(claim(tmp_path, step)) is names


@each_row(
    ("command", "names"),
    [
        ("python src/app.py", True),
        ("python -m pytest src/app.py::test_it -q", True),
        ("ruff check --config=src/app.py .", True),
        ("sh bin/run --all", True),
        ("make -f Makefile", True),
        ("node --test data/prices.json", True),
        ("ls docs/guide/", True),
        # a folder that only has files of the other step, a module, all tests
        ("python -m pytest src/ tests", False),
        ("python -m src.app", False),
        ("make test", False),
        ("pytest tests/test_own.py", False),
    ],
)
def test_a_step_collides_with_the_one_that_declares_a_path_of_its_check(
    tmp_path: Path, command: str, names: bool
) -> None:
    other = PlanStep(1, files_affected=tuple(map(AffectedFile, DECLARED)))
    step = step_with(check_line=command)
    assert claim(tmp_path, step).collides(claim(tmp_path, other)) is names


def test_a_name_that_means_a_file_of_the_step_itself_means_no_other(
    tmp_path: Path,
) -> None:
    one = PlanStep(
        1, description="In mod.rs", files_affected=(AffectedFile("a/mod.rs"),)
    )
    two = PlanStep(
        2, description="In mod.rs", files_affected=(AffectedFile("b/mod.rs"),)
    )
    assert not claim(tmp_path, one).collides(claim(tmp_path, two))


async def test_a_step_that_names_the_file_of_another_waits_for_it(
    tmp_path: Path,
) -> None:
    sandbox = project_in(tmp_path)
    sandbox.write(
        Step("a.txt", check("a.txt")),
        Step("b.txt", check("a.txt")),
        Step("c.txt", check("c.txt"), description="Not like d.txt."),
        Step("d.txt", check("d.txt")),
    )
    answers = {n: says(f"{name}.txt", "good") for n, name in enumerate("abcd", 1)}
    model = Together(answers, at_once=2)
    await carried_out(sandbox, model)
    assert sandbox.statuses() == ["completed"] * 4
    # beside step 1, step 2 would have failed and been asked for again
    assert sorted(model.asked) == [1, 2, 3, 4]
    assert sorted(model.asked[:2]) == [1, 3]
