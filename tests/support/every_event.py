"""An example of each type of event, with words if it has any."""

from cdd_agent.changes.file_diff import FileDiff, LeftOut
from cdd_agent.events.action_events import (
    ActionFinished,
    ActionOutput,
    ActionsFinished,
    ActionStarted,
)
from cdd_agent.events.dialogue_events import (
    ConversationShortened,
    ModelReplaced,
    PromptMade,
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyLost,
    ReplyRestarted,
    ReplyStarted,
    ThinkingDelta,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.events.driven_events import (
    Alive,
    AnswerNeeded,
    AnswerTaken,
    BudgetSpent,
    CallEnded,
    InputRefused,
    QuestionKind,
)
from cdd_agent.events.notices import Answer, Notice, NoticeKind, Tone
from cdd_agent.events.outside_events import (
    OutsideDiff,
    OutsideListed,
    OutsideRedone,
    OutsideUndone,
    OutsideView,
)
from cdd_agent.events.question_events import (
    AcceptingAll,
    ActionProposed,
    ApprovalChanged,
    ChangesProposed,
    ChangesReviewed,
    Choice,
    CommandProposed,
    LostTest,
    PersonAnswered,
    TestLossProposed,
    UndoProposed,
)
from cdd_agent.events.run_events import (
    BaselineStarted,
    BaselineTaken,
    QuestionAnswered,
    QuestionAsked,
    RunFinished,
)
from cdd_agent.events.shell_events import (
    AgentChanged,
    Cleared,
    ExitRequested,
    ModelChosen,
    ModelsFound,
    OwnCommandFinished,
    OwnCommandStarted,
    PersonSaid,
    ScreenAsked,
    SessionsListed,
    SessionView,
)
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    ChangesPutBack,
    CheckpointStarted,
    CommandOutput,
    FailedTest,
    GuidanceTaken,
    StepCommitted,
    StepDiff,
    StepsRedone,
    StepStarted,
    StepsUndone,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.stream import Event, SessionRestored
from cdd_agent.events.strength_events import (
    CriterionStrength,
    FaultTried,
    StepStrength,
    Strength,
    StrengthFinished,
    StrengthStarted,
    UnnoticedFault,
)
from cdd_agent.events.ticket_events import (
    CriteriaShown,
    CriterionProof,
    CriterionView,
    PlanChecked,
    PlanOpened,
    PlanProposed,
    ProposedStep,
    QuestionView,
    SpecOpened,
    SpecShown,
    SpecWords,
    TicketsListed,
    TicketView,
)
from cdd_agent.events.verify_events import (
    StepResult,
    VerifiedCheck,
    VerifiedStep,
    VerifyFinished,
    VerifyStarted,
)
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.port import PromptShare, Usage
from cdd_agent.tickets.plan import Problem
from cdd_agent.tickets.plan_comparison import (
    FieldChange,
    PlanComparison,
    StepChange,
    StepChangeKind,
    ValueEdit,
)
from cdd_agent.tickets.status import (
    CriterionEdit,
    EditedCriterion,
    Evidence,
    MissingWork,
    RunStatus,
    StepOutcome,
    StepStatus,
    Unproven,
    Verification,
)

_SLUG = "feature-x"
_FILE = FileDiff("a.py", 1, 1, "@@ -1 +1 @@\n-a\n+b\n")
_EVIDENCE = Evidence("`pytest` passed", passed=3, fixed=1, new=1)
_STEP = StepSummary(
    1,
    "Add it",
    StepStatus.COMPLETED,
    Verification.PASSED,
    files_created=("a.py",),
    attempts=1,
    evidence=_EVIDENCE,
    depends_on=(2,),
    label="1b",
)
_EDITED = EditedCriterion(1, "It adds", CriterionEdit.NEW)
_UNNOTICED = UnnoticedFault("a.py", 3, "`<` became `<=`", "if a < b:")
EXAMPLES: tuple[Event, ...] = (
    Notice("Done.", Tone.GOOD, NoticeKind.ALL_DONE, 1),
    Answer("*Yes*"),
    Cleared(),
    ExitRequested(),
    ScreenAsked("help", "No such screen here."),
    PersonSaid("go on"),
    SessionsListed(
        (SessionView("chat-1", "chat", "2026-11-22T10:00:00+00:00", "", "Hello"),)
    ),
    SessionRestored("chat-1", (Notice("Hello"), Answer("Hi"))),
    AgentChanged("executor", _SLUG),
    ModelsFound((OfferedModel("m", "Ollama", "http://127.0.0.1:1"),), ("LM Studio",)),
    ModelChosen("ollama/m", None, "config.yaml", "planner"),
    OwnCommandStarted("make"),
    OwnCommandFinished("make", "exit code 2"),
    TicketsListed((TicketView(_SLUG, "done", 1, 1, type="feature"),), "done"),
    SpecOpened(_SLUG, "X", "tickets/x/spec.yaml", ("title",)),
    SpecShown(
        _SLUG,
        "X",
        "feature",
        "high",
        "d",
        (CriterionView("It adds", "a test"),),
        (("in scope", ("a",)),),
        "",
        ("description",),
        (QuestionView(1, "Why?"),),
        ("title",),
        (SpecWords("title", "Y"),),
    ),
    PlanOpened(_SLUG, "X", (_STEP,), resumed=True, edited_criteria=(_EDITED,)),
    PlanProposed(
        _SLUG,
        "X",
        "# Implementation Plan: X",
        (
            ProposedStep(
                "1b", "Add it", ("a.py (new)",), ("`pytest`",), kind=StepChangeKind.NEW
            ),
        ),
        PlanComparison(
            (
                StepChange(
                    StepChangeKind.CHANGED,
                    "1b",
                    "Add it",
                    (FieldChange("title", (ValueEdit("Add", "Add it"),)),),
                    is_completed=True,
                ),
            ),
            2,
            (ValueEdit("2", "3"),),
            (FieldChange("risks", (ValueEdit("", "It is late."),)),),
        ),
        "As you say.",
    ),
    CriteriaShown(
        _SLUG, "X", (CriterionProof(1, "It adds", (_STEP,), ("t",), ("a.py",)),)
    ),
    PlanChecked(_SLUG, "plan.md", (Problem("cycle", 1, 3, "A cycle."),)),
    ConversationShortened(12, 3, False, "They want tabs.", ""),
    PromptMade(1, (PromptShare("rules", 100, "AGENTS.md"),), ("map",), 8000),
    ReplyStarted(1, "any/model", prompt_tokens=100),
    ReplyDelta(1, "Here"),
    ThinkingDelta(1, "Hm", 0.5, 1),
    ThinkingFinished(1, 1.5, 20, estimated=True),
    ReplyDelayed(1, 3.0, "busy"),
    ReplyRestarted(1),
    ModelReplaced(1, "b", "a", "busy"),
    ReplyLost(Usage(100, 0, estimated=True), 1),
    ReplyFinished(1, Usage(100, 20, usd=0.01)),
    ToolStarted(1, "read_file(a.py)", "read_file", "a.py", 1, 3),
    ToolFinished(1, "edit_file(a.py)", "", "edit_file", "a.py", files=(_FILE,)),
    ChangesProposed(1, ("a.py",), ()),
    ChangesReviewed(1, Choice.YES, "", (LeftOut("a.py", "line 1"),), ("b.py",)),
    AcceptingAll(True),
    ApprovalChanged("ask"),
    CommandProposed("rm a", "`rm` is not allowed"),
    ActionProposed(1, 2, "Create a.py", "text"),
    TestLossProposed(1, "1b", (LostTest("t", "is skipped"),)),
    UndoProposed("step 1 of feature-a, Add", ("a.py",)),
    PersonAnswered("May it?", "yes"),
    BaselineStarted(1, "pytest"),
    BaselineTaken(1, "pytest", 0, 3, 0, 0, 1.0, ""),
    QuestionAsked(1, "Why?"),
    QuestionAnswered(1),
    RunFinished(
        _SLUG,
        RunStatus.COMPLETED,
        1,
        0,
        0,
        1,
        2.0,
        ("a.py",),
        unproven=(Unproven(1, "Add it", StepOutcome.UNVERIFIED),),
        require="verified",
        commits=("0123456789abcdef",),
        to_commit=(1,),
        edited_criteria=(_EDITED,),
        missing=(MissingWork(1, "Add it", ("a.py",)),),
    ),
    CheckpointStarted(1),
    StepStarted(1, "Add it", 1),
    GuidanceTaken(1, "Use b"),
    ChangesApplied(1, ("a.py",), ("b.py",), ("b.py",), ("c.py",), (_FILE,)),
    ChangesPutBack(1, ("a.py",), ("b.py",)),
    TestsStarted(1, "pytest"),
    CommandOutput(1, "1 passed"),
    TestsFinished(
        1,
        Verification.PASSED,
        "`pytest` passed",
        1.0,
        ("an old failure",),
        "pytest",
        3,
        0,
        0,
        (FailedTest("t", "no", "a.py:1", "text", is_old=True),),
        _EVIDENCE,
        ("make lint",),
    ),
    AttemptFailed(1, 1, "no", will_retry=True),
    StepFinished(
        1, "Add it", StepStatus.COMPLETED, Verification.PASSED, done=1, total=2
    ),
    StepCommitted(1, "0123456789abcdef"),
    StepsUndone((1,), ("a.py",), ("b.py",), ("0123456789abcdef",), ("c.py",)),
    StepsRedone((1,), ("a.py",), ()),
    StepDiff(1, "Add it", "+a\n"),
    OutsideUndone("cdd apply x.md", "2026-11-26 10:00", ("a.py",), ("b.py",)),
    OutsideRedone("cdd apply x.md", "2026-11-26 10:00", ("a.py",), ()),
    OutsideDiff("cdd apply x.md", "2026-11-26 10:00", "+a\n"),
    OutsideListed((OutsideView("cdd apply x.md", "2026-11-26 10:00", ("a.py",)),)),
    ActionStarted(1, 2, "Create a.py"),
    ActionOutput(1, "text"),
    ActionFinished(1, 2, "Create a.py", "SUCCESS", ""),
    ActionsFinished(1, 0, 0, 1.0, "/project"),
    AnswerNeeded(1, QuestionKind.CALL, "May it?", ("yes", "no"), 100, 0.1),
    AnswerTaken(1, "yes"),
    CallEnded(1),
    BudgetSpent(100, 0.1, True, 900),
    Alive(),
    InputRefused("no JSON"),
    VerifyStarted(_SLUG, ("pytest",)),
    VerifyFinished(
        _SLUG,
        (
            VerifiedStep(1, "Add it", StepResult.HOLDS, label="1b"),
            VerifiedStep(
                2,
                "Test it",
                StepResult.BROKEN,
                checks=("make test",),
                failed=("test_a.py::test_a",),
                lost=("test_a.py::test_b",),
                missing=MissingWork(2, "Test it", missing=("b.py",)),
            ),
        ),
        (VerifiedCheck("pytest", ("1b", "2"), True, "`pytest` failed", 1.5),),
        other_failures=("test_c.py::test_c",),
        edited_criteria=(_EDITED,),
        missing=("data/",),
    ),
    StrengthStarted(_SLUG, 30, 4),
    FaultTried(1, "a.py", 3, "`<` became `<=`", "not_noticed", 7, 30, 6, label="1b"),
    StrengthFinished(
        _SLUG,
        (
            StepStrength(1, "Add it", Strength(6, 7), (_UNNOTICED,), 2, 21, label="1b"),
            StepStrength(2, "Test it", problem="it has no check"),
        ),
        (
            CriterionStrength(
                1, "It adds", ("1b",), Strength(6, 7, True), (_UNNOTICED,)
            ),
        ),
        threshold=90,
        was_stopped=True,
    ),
)
