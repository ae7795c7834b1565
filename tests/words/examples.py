"""A run from its plan to its end, event by event, for the catalogues of what is said of
it.
"""

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.dialogue_events import ReplyFinished, ReplyStarted, ToolFinished
from cdd_agent.events.run_events import BaselineTaken, RunFinished
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    ChangesPutBack,
    FailedTest,
    StepCommitted,
    StepStarted,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.llm.port import Usage
from cdd_agent.tickets.status import (
    RunStatus,
    StepOutcome,
    StepStatus,
    Unproven,
    Verification,
)

SLUG = "bug-login"
PLAN = PlanOpened(
    SLUG,
    "Login fails",
    (StepSummary(1, "Test it"), StepSummary(2, "Fix it")),
    resumed=False,
)
BASELINE = BaselineTaken(
    1, "pytest", 1, passed=4, failed=1, skipped=0, seconds=2.0, problem=""
)
OLD_FAILURE = "failed before too: tests/test_old.py::test_old"
EDIT = FileDiff(
    "login.py",
    1,
    1,
    "--- login.py\n+++ login.py\n@@ -1 +1 @@\n-def login(): ...\n+def login(user): ...\n",
)
FAILED_TEST = FailedTest(
    "tests/test_login.py::test_it",
    "assert 1 == 2",
    "tests/test_login.py:3",
    "E  assert 1 == 2",
    False,
)
RUN: tuple[Event, ...] = (
    PLAN,
    BASELINE,
    StepStarted(1, "Test it", 1),
    ReplyStarted(1, "any/model"),
    ToolFinished(
        1,
        "read_file(path=login.py)",
        "",
        "read_file",
        "login.py",
        1,
        40,
        output="def login(): ...",
    ),
    ToolFinished(
        1, "read_file(path=lost.py)", "lost.py does not exist", "read_file", "lost.py"
    ),
    ToolFinished(1, "edit_file(…)", "", "edit_file", "login.py", files=(EDIT,)),
    ToolFinished(
        1,
        "execute_command(…)",
        "exit code 1",
        "execute_command",
        "ruff check .",
        seconds=0.3,
        exit_code=1,
        output="Found 1 error.\n",
    ),
    ReplyFinished(1, Usage(1200, 300)),
    ChangesApplied(
        1, ("tests/test_login.py",), ("login.py",), ("notes.txt",), ("old.py",)
    ),
    TestsStarted(1, "pytest"),
    TestsFinished(
        1,
        None,
        "`pytest` failed (exit code 1)",
        1.5,
        (),
        "pytest",
        4,
        1,
        0,
        (FAILED_TEST,),
    ),
    AttemptFailed(1, 1, "`pytest` failed (exit code 1).", will_retry=True),
    ChangesPutBack(1, ("login.py",), ("tests/test_login.py",), ("README.md",)),
    StepStarted(1, "Test it", 2),
    TestsStarted(1, "pytest"),
    TestsFinished(
        1, Verification.PASSED, "`pytest` passed", 1.25, (), "pytest", 5, 0, 0
    ),
    StepFinished(
        1,
        "Test it",
        StepStatus.COMPLETED,
        Verification.PASSED,
        None,
        None,
        ("a",),
        (),
        done=1,
        total=2,
    ),
    StepCommitted(1, "0123456789abcdef", {"lib/core": "89abcdef0123"}),
    TestsFinished(
        2,
        Verification.BASELINE,
        "`pytest`: 5 passed, 1 failed as before step 1",
        1.0,
        (OLD_FAILURE,),
    ),
    StepFinished(
        2,
        "Fix it",
        StepStatus.COMPLETED,
        Verification.BASELINE,
        None,
        None,
        ("b",),
        (),
        done=2,
        total=2,
    ),
    RunFinished(
        SLUG,
        RunStatus.COMPLETED,
        2,
        0,
        0,
        2,
        75.0,
        ("a", "b"),
        1,
        (Unproven(2, "Fix it", StepOutcome.OLD_FAILURES),),
        None,
        ("0123456789abcdef",),
        (2,),
    ),
)
"""A run as a face is told of it."""
