"""The vocabulary: what an action is, and what a report may hold."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdd_agent.actions.model import (
    KINDS,
    ActionResult,
    ActionStatus,
    ChatWithUserAction,
    CreateFileAction,
    ExecuteAction,
    ExecutionReport,
    FileAlreadyExistsError,
    MultipleMatchesFoundError,
    ParsePlanAction,
    ReadAction,
    RunEnvironment,
    RunSummary,
    SearchTextNotFoundError,
)
from tests.support.tables import each_row

SUMMARY = RunSummary(ActionStatus.SUCCESS, datetime(2026, 11, 21, 10, tzinfo=UTC), 1.25)
ENVIRONMENT = RunEnvironment("Linux 6", "/srv/shop")


def test_every_kind_has_its_own_type_that_nobody_changes() -> None:
    assert list(KINDS) == [
        "execute",
        "create_file",
        "edit",
        "read",
        "chat_with_user",
        "research",
    ]
    assert ParsePlanAction().action_type == "parse_plan"
    with pytest.raises(AttributeError):
        ExecuteAction(command="ls").action_type = "read"  # type: ignore[misc]


def test_what_is_not_said_has_its_default() -> None:
    assert (ExecuteAction(command="ls").cwd, ExecuteAction(command="ls").env) == (
        None,
        None,
    )
    assert CreateFileAction(file_path="a").content == ""
    assert ParsePlanAction().to_json() == {"action": "parse_plan"}


@each_row(
    ("source", "remote"),
    [
        ("http://a.b", True),
        ("https://a.b/c", True),
        (" HTTPS://A.b", True),
        ("a.txt", False),
        ("httpx.py", False),
        ("ftp://a", False),
    ],
)
def test_a_source_is_remote_when_it_is_an_address_of_the_web(
    source: str, remote: bool
) -> None:
    assert ReadAction(source=source).is_remote() is remote


def test_a_report_has_the_promised_form() -> None:
    log = ActionResult(
        ExecuteAction(command="ls", env={"A": "b"}), ActionStatus.FAILURE, "out", "no"
    )
    assert ExecutionReport(SUMMARY, ENVIRONMENT, [log]).to_json() == {
        "run_summary": {
            "status": "SUCCESS",
            "start_time": "2026-11-21T10:00:00+00:00",
            "duration": 1.25,
        },
        "environment": {"os": "Linux 6", "cwd": "/srv/shop"},
        "action_logs": [
            {
                "action": {"action": "execute", "command": "ls", "env": {"A": "b"}},
                "status": "FAILURE",
                "output": "out",
                "error": "no",
            }
        ],
    }


def test_a_run_failed_if_one_action_failed() -> None:
    good, bad = (
        ActionResult(ReadAction(source="a"), ActionStatus.SUCCESS),
        ActionResult(ReadAction(source="b"), ActionStatus.FAILURE),
    )
    asked = ActionResult(ChatWithUserAction(prompt="?"), ActionStatus.COMPLETED)
    now = datetime.now(UTC)
    assert (
        ExecutionReport.from_logs(Path("/x"), [good, asked], now, 1).run_summary.status
        is ActionStatus.SUCCESS
    )
    assert (
        ExecutionReport.from_logs(Path("/x"), [good, bad], now, 1).run_summary.status
        is ActionStatus.FAILURE
    )


def test_errors_carry_what_is_needed_to_do_better() -> None:
    assert FileAlreadyExistsError("a/b.py").file_path == "a/b.py"
    assert SearchTextNotFoundError("content").content == "content"
    assert MultipleMatchesFoundError("content", [3, 9]).content == "content"
    assert "lines 3, 9" in MultipleMatchesFoundError("content", [3, 9]).message
