"""`execute_command_tool`: each session in its own folder, and an answer whatever
happens.
"""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.process.policy import ALWAYS_ALLOWED
from cdd_agent.process.session import execute_command_tool
from tests.support.promised import NOT_ALLOWED
from tests.support.tables import each_row

posix = pytest.mark.skipif(os.name != "posix", reason="a POSIX shell and its programs")
WRITE = 'python -c \'open("a.txt", "w").write("x")\''


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CDD_WORKSPACES", str(tmp_path / "spaces"))
    monkeypatch.delenv("HIVE_ENABLE_UNSAFE_COMMANDS", raising=False)
    return tmp_path / "spaces"


def run(
    command: str, workspace: Any = "w", agent: Any = "a", session: Any = "s", **how: Any
) -> dict[str, object]:
    return execute_command_tool(command, workspace, agent, session, **how)


def test_a_command_runs_in_the_sessions_own_folder(base: Path) -> None:
    assert run(WRITE)["success"] is True
    assert run(WRITE, session="other")["success"] is True
    assert sorted(base.rglob("a.txt")) == [
        base / "w/a/other/a.txt",
        base / "w/a/s/a.txt",
    ]


def test_the_answer_has_the_promised_form() -> None:
    command = "python -c 'import sys; print(1); sys.exit(3)'"
    assert run(command) == {
        "success": True,
        "command": command,
        "return_code": 3,
        "stdout": "1\n",
        "stderr": "",
        "cwd": ".",
    }


@posix
def test_a_folder_inside_is_made_and_told_as_it_was_given(base: Path) -> None:
    answer = run("pwd", cwd="deep/er")
    assert (answer["stdout"], answer["cwd"]) == (
        f"{base / 'w/a/s/deep/er'}\n",
        "deep/er",
    )
    assert run("pwd", cwd=".")["stdout"] == f"{base / 'w/a/s'}\n"


OUTSIDE = (
    "..",
    "../other",
    "/",
    "/tmp",
    "C:\\",
    "C:x",
    "\\\\a\\b",
    "~",
    "a/../..",
    "link",
    "link/x",
)
NO_IDS = (
    *(
        "",
        ".",
        "..",
        ".hidden",
        "a/b",
        "/a",
        "a/",
        "../a",
        "a\\b",
        "C:",
        "C:\\a",
        "a:b",
        "~",
        "a\0b",
        "a\nb",
        "a\n",
    ),
    *(
        " ",
        " a",
        "a ",
        "a.",
        "x" * 129,
        "ä" * 200,
        "a*",
        "$HOME",
        None,
        3,
        b"a",
        Path("a"),
    ),
)
IDS = (
    "a",
    "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "user@example.org",
    "v1.2_x",
    "_",
    "ä b",
)


def test_a_folder_outside_is_refused(base: Path) -> None:
    run("ls", session="other")
    run("ls")
    (base / "w/a/s/link").symlink_to(base / "w/a/other")
    before = sorted(base.rglob("*"))
    for cwd in OUTSIDE:
        assert list(run(WRITE, cwd=cwd)) == ["error"], cwd
        assert sorted(base.rglob("*")) == before, cwd


@each_row("wrong", NO_IDS)
@each_row("place", ["workspace", "agent", "session"])
def test_an_id_is_one_plain_name(base: Path, place: str, wrong: Any) -> None:
    answer = run(WRITE, **{place: wrong})
    assert answer["error"]
    assert f"{wrong}"[:20] in str(answer["error"]) or repr(wrong)[:20] in str(
        answer["error"]
    )
    assert not base.exists()


def test_ordinary_ids_are_fine(base: Path) -> None:
    for right in IDS:
        assert run(WRITE, session=right)["success"] is True, right
        assert (base / "w/a" / right / "a.txt").exists(), right


def test_a_session_that_is_a_way_out_is_refused(base: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (base / "w/a").mkdir(parents=True)
    (base / "w/a/s").symlink_to(tmp_path / "outside")
    assert list(run(WRITE)) == ["error"]
    assert not list((tmp_path / "outside").iterdir())


def test_a_folder_that_cannot_be_made_is_an_answer(base: Path) -> None:
    base.write_text("in the way")
    assert list(run(WRITE)) == ["error"]
    # longer than a name on most disks
    assert list(run(WRITE, session="x" * 128, agent="ä" * 128)) == ["error"]


def test_refusals_and_empty_commands_are_answers() -> None:
    assert run("rm -rf /") == {
        "error": NOT_ALLOWED.format("rm"),
        "allowed_commands": sorted(ALWAYS_ALLOWED),
    }
    for command in ("", "ls; rm x"):
        answer = run(command)
        assert answer.keys() == {"error", "allowed_commands"}
    assert answer["allowed_commands"] == sorted(ALWAYS_ALLOWED)
    assert "`;`" in answer["error"]


@posix
@pytest.mark.parametrize(
    "switch", ["CDD_ENABLE_UNSAFE_COMMANDS", "HIVE_ENABLE_UNSAFE_COMMANDS"]
)
def test_the_switches_give_a_shell(
    switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(switch, "TRUE")
    assert run("echo a | tr a b > c")["stdout"] == ""
    assert run("cat c")["stdout"] == "b\n"
    monkeypatch.setenv(switch, "false")
    assert "error" in run("echo a | tr a b")


async def test_it_works_where_a_loop_runs_and_in_threads() -> None:
    assert run("echo 1")["stdout"] == "1\n"
    answers = await asyncio.gather(
        *(asyncio.to_thread(run, f"echo {number}") for number in range(4))
    )
    assert [answer["stdout"] for answer in answers] == ["0\n", "1\n", "2\n", "3\n"]


def test_it_works_in_a_plain_thread() -> None:
    answers: list[dict[str, object]] = []
    thread = threading.Thread(target=lambda: answers.append(run("echo 1")))
    thread.start()
    thread.join()
    assert answers[0]["stdout"] == "1\n"


def test_without_a_setting_the_folders_are_where_the_platform_keeps_such_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CDD_WORKSPACES")
    monkeypatch.setenv("XDG_DATA_HOME", str(Path.home() / "data"))
    folder = Path(
        str(run("python -c 'import os; print(os.getcwd())'")["stdout"]).strip()
    )
    assert folder.parts[-4:] == ("workspaces", "w", "a", "s")
    assert "cdd-agent" in folder.parts
