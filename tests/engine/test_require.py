"""Steps that no tests have shown to be done are named at the end; with
`require: verified` they fail the run.
"""

import json
import re
from typing import Any

import pytest

from cdd_agent.cli.main import main
from cdd_agent.commands.registry import handle
from cdd_agent.events.notices import Tone
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event, to_json
from cdd_agent.tickets.status import RunStatus, StepStatus, Verification
from cdd_agent.tickets.step_tally import StepTally
from cdd_agent.wording.describe import describe
from tests.engine.calculator import CALC, FIXED, calculator, gives
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row

VERIFIED, LOOSE, LAST = (
    Step("a.txt", tested="good"),
    Step("b.txt", "none"),
    Step("c.txt", tested="good"),
)
BY_EXIT_CODE = Step("a.txt", check("a.txt"))
GOOD = [says("a.txt", "good"), says("b.txt", "good"), says("c.txt", "good")]
RULE = "`require: verified`"


def finished(events: list[Event]) -> RunFinished:
    return next(event for event in events if isinstance(event, RunFinished))


def required(sandbox: Sandbox, rule: str = "verified") -> Sandbox:
    sandbox.flags = {**sandbox.flags, "require": rule}
    return sandbox


# --- The summary ----------------------------------------------------------------------


async def test_the_summary_names_the_steps_that_no_tests_have_shown_to_be_done(
    sandbox: Sandbox,
) -> None:
    calculator(sandbox, Step("notes.txt"), Step("calc.py"), LOOSE, Step("d.txt"))
    sandbox.replies(
        says("notes.txt", "x"), gives(calc_dot_py=FIXED), says("b.txt", "good")
    )
    await run_all(sandbox)
    engine = sandbox.engine()
    last = engine.run.next_step
    assert last
    await collect(engine.skip(last, "not now", keep=False))
    summary = engine.run.summary()
    engine.close()

    assert summary.status is RunStatus.COMPLETED
    assert [(step.step, step.why) for step in summary.unproven] == [
        (1, Verification.BASELINE),
        (3, Verification.NONE),
        (4, StepStatus.SKIPPED),
    ]
    assert to_json(summary)["unproven"][2] == {
        "step": 4,
        "title": "Make d.txt",
        "why": "skipped",
        "label": "4",
    }
    said = [text for text, _ in describe(summary)]
    assert re.findall(r"(\d)\. Make", "\n".join(said)) == ["1", "3", "4"]


async def test_where_all_is_verified_there_is_nothing_to_add(sandbox: Sandbox) -> None:
    sandbox.write(VERIFIED, LAST).replies(GOOD[0], GOOD[2])
    summary = finished(await run_all(sandbox))
    assert (summary.unproven, summary.require) == ((), None)
    assert [tone for _, tone in describe(summary)] == [Tone.GOOD, Tone.PLAIN]


# --- The rule -------------------------------------------------------------------------


async def test_a_run_whose_steps_are_all_verified_keeps_the_rule_and_says_so(
    sandbox: Sandbox,
) -> None:
    required(sandbox.write(VERIFIED, LAST)).replies(GOOD[0], GOOD[2])
    summary = finished(await run_all(sandbox))
    assert (summary.status, summary.unproven, summary.require) == (
        RunStatus.COMPLETED,
        (),
        "verified",
    )
    assert any(RULE in text for text, _ in describe(summary))


async def test_an_unverified_step_fails_at_once_and_nothing_is_built_on_it(
    sandbox: Sandbox,
) -> None:
    required(sandbox.write(VERIFIED, LOOSE, LAST)).replies(*GOOD)

    events = await run_all(sandbox, attempts=3)

    assert sandbox.statuses() == ["completed", "failed", "pending"]
    assert len(sandbox.model.requests) == 2  # it was not the model's fault
    assert [
        event.will_retry for event in events if isinstance(event, AttemptFailed)
    ] == [False]
    error = [event.error for event in events if isinstance(event, StepFinished)][-1]
    assert RULE in (error or "")
    summary = finished(events)
    assert (summary.status, summary.require) == (RunStatus.FAILED, "verified")
    assert [(step.step, step.why) for step in summary.unproven] == [
        (2, Verification.NONE)
    ]
    assert RULE in describe(summary)[-1][0]
    assert sandbox.text("b.txt") == "good\n"  # to be looked at


async def test_so_does_a_step_that_is_only_unharmed(sandbox: Sandbox) -> None:
    required(calculator(sandbox, Step("notes.txt"), LAST)).replies(
        says("notes.txt", "x")
    )
    events = await run_all(sandbox, attempts=3)
    assert sandbox.statuses() == ["failed", "pending"]
    assert "step 1" in sandbox.state()["step_executions"]["1"]["error"]
    assert [(step.step, step.why) for step in finished(events).unproven] == [
        (1, Verification.BASELINE)
    ]
    assert len(sandbox.model.requests) == 1


async def test_checked_accepts_old_failures(sandbox: Sandbox) -> None:
    required(calculator(sandbox, Step("notes.txt")), "checked").replies(
        says("notes.txt", "x")
    )
    summary = finished(await run_all(sandbox))
    assert (summary.status, summary.require) == (RunStatus.COMPLETED, "checked")
    assert summary.tally == StepTally(old_failures=1)
    (held,) = [text for text, _ in describe(summary) if "`require: checked`" in text]
    assert "step 1" in held


async def test_checked_accepts_an_exit_code_and_verified_does_not(
    sandbox: Sandbox,
) -> None:
    required(sandbox.write(BY_EXIT_CODE), "checked").replies(GOOD[0])
    summary = finished(await run_all(sandbox))
    assert summary.tally == StepTally(exit_code=1)
    assert summary.status is RunStatus.COMPLETED
    (held,) = [text for text, _ in describe(summary) if "`require: checked`" in text]
    assert "tests have passed" not in held

    summary = finished(await run_all(required(sandbox)))
    assert summary.status is RunStatus.FAILED


async def test_checked_does_not_accept_an_unverified_step(sandbox: Sandbox) -> None:
    required(sandbox.write(LOOSE, LAST), "checked").replies(GOOD[1], GOOD[2])
    summary = finished(await run_all(sandbox, attempts=3))
    assert (summary.status, sandbox.statuses()) == (
        RunStatus.FAILED,
        ["failed", "pending"],
    )
    assert len(sandbox.model.requests) == 1


async def test_checked_does_not_accept_a_skipped_step(sandbox: Sandbox) -> None:
    required(sandbox.write(VERIFIED, LAST), "checked").replies(GOOD[2])
    session = sandbox.session()
    for line in (f"/exec {SLUG}", "skip because I looked", "continue"):
        events = await collect(handle(session, line))
    assert sandbox.statuses() == ["skipped", "completed"]
    assert finished(events).status is RunStatus.FAILED


async def test_without_the_rule_the_step_goes_on_from_the_reply_that_was_paid_for(
    sandbox: Sandbox,
) -> None:
    required(sandbox.write(VERIFIED, LOOSE, LAST)).replies(*GOOD)
    await run_all(sandbox)

    sandbox.flags = {}
    events = await run_all(sandbox.replies(GOOD[2]))

    assert sandbox.statuses() == ["completed", "completed", "completed"]
    assert [
        step["attempts"] for step in sandbox.state()["step_executions"].values()
    ] == [1, 1, 1]
    assert (finished(events).status, finished(events).require) == (
        RunStatus.COMPLETED,
        None,
    )
    engine = sandbox.engine()
    await collect(engine.undo(2))
    engine.close()
    assert [(sandbox.root / name).exists() for name in ("a.txt", "b.txt", "c.txt")] == [
        True,
        False,
        False,
    ]


async def test_a_reply_that_changed_what_the_model_was_shown_is_not_asked_for_again(
    sandbox: Sandbox,
) -> None:
    required(calculator(sandbox, Step("calc.py", "none"))).replies(
        gives(calc_dot_py=FIXED)
    )
    await run_all(sandbox)
    assert sandbox.statuses() == ["failed"]

    sandbox.flags = {}
    await run_all(sandbox.replies())

    assert sandbox.statuses() == ["completed"]
    assert sandbox.text("calc.py") == FIXED


async def test_with_tests_that_show_it_the_same_reply_completes_the_step(
    sandbox: Sandbox,
) -> None:
    required(calculator(sandbox, Step("notes.txt"))).replies(says("notes.txt", "x"))
    await run_all(sandbox)
    assert sandbox.statuses() == ["failed"]

    (sandbox.root / "calc.py").write_text(FIXED)  # by hand
    await run_all(sandbox.replies(says("notes.txt", "x")))

    assert sandbox.state()["step_executions"]["1"]["verification"] == "passed"


async def test_a_persons_edit_of_the_failed_steps_file_is_kept_and_shown(
    sandbox: Sandbox,
) -> None:
    required(calculator(sandbox, Step("calc.py", "none"))).replies(
        gives(calc_dot_py=FIXED)
    )
    await run_all(sandbox)
    (sandbox.root / "calc.py").write_text(CALC + "# mine\n")

    sandbox.flags = {}
    await run_all(sandbox.replies(gives(calc_dot_py=FIXED + "# mine\n")))

    assert "# mine" in sandbox.prompt()
    assert sandbox.statuses() == ["completed"]


@each_row("how", ["unverified", "skipped"])
async def test_nothing_is_run_on_top_of_an_earlier_step_that_the_rule_does_not_accept(
    sandbox: Sandbox, how: str
) -> None:
    sandbox.write(LOOSE if how == "unverified" else VERIFIED, LAST).replies(GOOD[1])
    engine = sandbox.engine()
    first = engine.run.next_step
    assert first
    await collect(
        engine.run_step(first)
        if how == "unverified"
        else engine.skip(first, "not now", keep=False)
    )
    engine.close()

    engine = required(sandbox).replies(GOOD[2]).engine()
    events = await collect(engine.run_all())
    engine.close()

    assert not sandbox.model.requests
    assert sandbox.statuses()[1] == "pending"
    assert engine.stopped_by
    assert RULE in engine.stopped_by.message
    assert "Step 1" in engine.stopped_by.message
    assert f"cdd undo {SLUG} --step 1" in engine.stopped_by.hint
    assert finished(events).status is RunStatus.FAILED


async def test_a_person_may_go_on_step_by_step_and_the_end_says_that_the_run_has_failed(
    sandbox: Sandbox,
) -> None:
    sandbox.write(LOOSE, LAST)
    session = required(sandbox.replies(GOOD[1], GOOD[2])).session()
    for line in (f"/exec {SLUG}", "continue", "skip keep because I looked", "continue"):
        events = await collect(handle(session, line))
    assert sandbox.statuses() == ["skipped", "completed"]
    summary = finished(events)
    assert (summary.status, summary.require) == (RunStatus.FAILED, "verified")


# --- Exit codes, JSON, the report, settings -------------------------------------------


def cdd(sandbox: Sandbox, *arguments: str) -> int:
    (sandbox.root / "script.json").write_text(
        json.dumps(
            {
                "replies": [
                    {"when": f"# Step {n} of", "reply": reply}
                    for n, reply in enumerate(GOOD, 1)
                ]
            }
        )
    )
    return main([*arguments, "-C", str(sandbox.root)])


def exec_json(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], *flags: str
) -> tuple[int, dict[str, Any]]:
    code = cdd(sandbox, "exec", SLUG, "--json", "--model", "script:script.json", *flags)
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["event"] == "run_finished"
    return code, last


@pytest.mark.story
def test_the_exit_code_the_event_and_the_report_say_which_rule_held(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(VERIFIED, LOOSE, LAST)

    code, last = exec_json(sandbox, capsys, "--require", "verified")

    assert (code, last["status"], last["require"]) == (1, "failed", "verified")
    assert last["unproven"] == [
        {"step": 2, "title": "Make b.txt", "why": "none", "label": "2"}
    ]
    folder = sandbox.root / ".cdd/runs" / SLUG
    report = json.loads((folder / "report.json").read_text())
    assert (report["status"], report["require"], report["unproven"]) == (
        "failed",
        "verified",
        last["unproven"],
    )
    page = (folder / "report.md").read_text()
    assert RULE in page
    assert "- unverified: step 2" in page

    code, last = exec_json(sandbox, capsys)

    assert (code, last["status"], last["require"]) == (0, "completed", None)
    assert [step["step"] for step in last["unproven"]] == [2]
    assert "- unverified: step 2" in (folder / "report.md").read_text()

    # all steps are over
    code, last = exec_json(sandbox, capsys, "--require", "verified")

    assert (code, last["status"], last["require"]) == (1, "failed", "verified")


def test_the_summary_in_words_names_the_rule(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(LOOSE)
    code = cdd(
        sandbox, "exec", SLUG, "--model", "script:script.json", "--require", "verified"
    )
    out = capsys.readouterr().out
    assert code == 1
    assert out.splitlines()[-1].count(RULE) == 1
    assert "`require: off`" in out


@each_row(
    ("setting", "variable", "flags", "code"),
    [
        ("verified", None, (), 1),
        (None, "verified", (), 1),
        ("off", "verified", (), 1),
        ("verified", "off", (), 0),
        ("verified", "verified", ("--require", "off"), 0),
        (None, None, (), 0),
    ],
)
def test_it_is_a_setting_a_variable_and_a_flag_and_the_later_wins(
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    setting: str | None,
    variable: str | None,
    flags: tuple[str, ...],
    code: int,
) -> None:
    sandbox.write(LOOSE)
    if setting:
        (sandbox.root / ".cdd/config.yaml").write_text(f"require: {setting}\n")
    if variable:
        monkeypatch.setenv("CDD_REQUIRE", variable)
    assert cdd(sandbox, "exec", SLUG, "--model", "script:script.json", *flags) == code


def test_another_rule_is_refused(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(LOOSE)
    (sandbox.root / ".cdd/config.yaml").write_text("require: tested\n")
    assert cdd(sandbox, "exec", SLUG) == 2
    told = capsys.readouterr().err
    assert "config.yaml:1: `require` is not one of" in told
    assert "`verified`" in told
