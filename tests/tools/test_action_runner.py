"""Doing actions: real files and commands; every action ends in a result."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.actions.model import (
    Action,
    ActionResult,
    ActionStatus,
    ChatWithUserAction,
    CreateFileAction,
    EditAction,
    ExecuteAction,
    ParsePlanAction,
    ReadAction,
    ResearchAction,
)
from cdd_agent.changes import build as judging
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.errors import NotApproved
from cdd_agent.process.policy import CommandRunner
from cdd_agent.settings.config import Commands
from cdd_agent.tools import action_runner as run
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.web.pages import PageReader
from cdd_agent.web.search import ScriptedSearcher, SearchResult, WebSearchError
from tests.support.examples import count_examples
from tests.support.promised import NOT_FOUND, TIMED_OUT
from tests.support.tables import each_row
from tests.support.time_of_loops import leap
from tests.web.server import Answer, PageServer

SUCCESS, FAILURE, COMPLETED = (
    ActionStatus.SUCCESS,
    ActionStatus.FAILURE,
    ActionStatus.COMPLETED,
)
FOUND = [SearchResult("A title", "https://a.example", "A snippet")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    root.mkdir()
    (tmp_path / "app-evil").mkdir()
    return root


async def says_blue(prompt: str) -> str:
    return f"{prompt} Blue."


def runner(
    root: Path, ask: Callable[[str], Awaitable[str]] = says_blue
) -> ActionRunner:
    return ActionRunner(
        root,
        CommandRunner(root, Commands(timeout=20)),
        PageReader(allow_private=True),
        ScriptedSearcher([FOUND]),
        ask,
    )


async def done(
    root: Path, action: Action, runs: ActionRunner | None = None
) -> ActionResult:
    result = await (runs or runner(root)).run(action)
    assert result.action == action
    return result


def python(code: str) -> str:
    return f'python -c "{code}"'


# ------------------------------------------------------------------------------ execute


async def test_a_command_runs_in_the_project_by_default(root: Path) -> None:
    result = await done(
        root, ExecuteAction(command=python("import os; print(os.getcwd())"))
    )
    assert (result.status, result.output.strip(), result.error) == (
        SUCCESS,
        str(root.resolve()),
        "",
    )


async def test_a_folder_and_variables_apply_to_one_command(root: Path) -> None:
    (root / "src").mkdir()
    code = "import os; print(os.path.basename(os.getcwd()), os.environ.get('MODE'))"
    first = await done(
        root, ExecuteAction(command=python(code), cwd="src", env={"MODE": "production"})
    )
    second = await done(root, ExecuteAction(command=python(code)))
    assert first.output == "src production\n"
    assert second.output == "app None\n"
    assert "MODE" not in os.environ


async def test_a_missing_folder_is_created(root: Path) -> None:
    assert (
        await done(root, ExecuteAction(command="pwd", cwd="new/deep"))
    ).status is SUCCESS
    assert (root / "new/deep").is_dir()


@each_row(
    "cwd",
    [
        "/",
        "/tmp",
        "C:\\Windows",
        "C:/Windows",
        "c:",
        "\\\\server\\share",
        "//server/share",
        "~",
        "..",
        "../..",
        "../app-evil",
        "src/../../app-evil",
        "..\\app-evil",
        "link",
        "link/deeper",
    ],
)
async def test_a_folder_outside_the_project_fails_before_anything_runs(
    root: Path, cwd: str
) -> None:
    (root / "link").symlink_to(root.parent / "app-evil")
    result = await done(
        root, ExecuteAction(command="touch canary", cwd=cwd), allowing(root, "touch")
    )
    assert result.status is FAILURE
    assert result.error
    assert not list(root.parent.rglob("canary"))


def allowing(root: Path, *programs: str) -> ActionRunner:
    commands = CommandRunner(root, Commands(allow=programs, timeout=20))
    return ActionRunner(root, commands, PageReader(), ScriptedSearcher([]), says_blue)


async def test_a_failed_command_reports_its_end(root: Path) -> None:
    code = "import sys; print('out'); print('why', file=sys.stderr); sys.exit(3)"
    result = await done(root, ExecuteAction(command=python(code)))
    assert (result.status, result.output) == (FAILURE, "out\n")
    assert result.return_code == 3
    assert result.error.endswith("\nwhy")


async def test_standard_error_is_reported_even_on_success(
    root: Path,
) -> None:
    for code, status, error in (
        (0, SUCCESS, "a warning\n"),
        (3, FAILURE, "Exit code 3\na warning"),
    ):
        text = (
            "import sys; print('fine'); print('a warning', file=sys.stderr);"
            f" sys.exit({code})"
        )
        result = await done(root, ExecuteAction(command=python(text)))
        assert (result.status, result.output, result.error) == (status, "fine\n", error)
        assert result.to_json()["return_code"] == code


async def test_only_a_command_has_a_return_code(root: Path) -> None:
    assert (
        "return_code"
        not in (await done(root, CreateFileAction(file_path="a"))).to_json()
    )


async def test_refused_missing_and_slow_commands_are_failures(
    root: Path,
) -> None:
    refused = await done(root, ExecuteAction(command="rm -rf ."))
    assert "`rm`" in refused.error
    missing = await done(
        root,
        ExecuteAction(command="no-such-program-here"),
        allowing(root, "no-such-program-here"),
    )
    assert missing.error == NOT_FOUND.format("no-such-program-here")
    hasty = ActionRunner(
        root,
        CommandRunner(root, Commands(timeout=40), on_output=lambda chunk: leap(40)),
        PageReader(),
        ScriptedSearcher([]),
        says_blue,
    )
    slow = await done(
        root,
        ExecuteAction(
            command=python("import os, time; os.write(1, b'1'); time.sleep(60)")
        ),
        hasty,
    )
    assert (slow.status, slow.output, slow.error) == (
        FAILURE,
        "1",
        TIMED_OUT.format(40),
    )


async def test_output_arrives_while_the_command_runs(root: Path) -> None:
    code = (
        "import os, time\n"
        "print('first', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)"
    )
    (root / "wait.py").write_text(code)
    async with asyncio.timeout(60):
        commands = CommandRunner(
            root, Commands(timeout=20), on_output=lambda chunk: (root / "go").touch()
        )
        result = await replace(runner(root), executor=commands).run(
            ExecuteAction(command="python wait.py")
        )
    assert result.status is SUCCESS


# -------------------------------------------------------------------------- create_file


async def test_a_file_is_created_with_the_folders_it_needs(root: Path) -> None:
    assert (
        await done(
            root, CreateFileAction(file_path="a/b c/ä.txt", content="hi\r\nthere")
        )
    ).status is SUCCESS
    assert (root / "a/b c/ä.txt").read_bytes() == b"hi\r\nthere"
    assert (await done(root, CreateFileAction(file_path="empty"))).status is SUCCESS
    assert (root / "empty").read_bytes() == b""


async def test_an_existing_file_is_kept_and_its_content_reported(root: Path) -> None:
    (root / "a.txt").write_text("mine\n")
    result = await done(root, CreateFileAction(file_path="a.txt", content="yours"))
    assert (result.status, result.output) == (FAILURE, "mine\n")
    assert "a.txt" in result.error
    assert (root / "a.txt").read_text() == "mine\n"


async def test_an_existing_path_that_is_not_a_file_is_kept(root: Path) -> None:
    (root / "folder").mkdir()
    (root / "dangling").symlink_to(root / "nowhere")
    os.mkfifo(root / "pipe")
    async with asyncio.timeout(60):
        for path in ("folder", "dangling", "pipe"):
            assert (
                await done(root, CreateFileAction(file_path=path, content="x"))
            ).status is FAILURE
            assert (
                await done(root, EditAction(file_path=path, find="", replace="x"))
            ).status is FAILURE
    assert not (root / "nowhere").exists()


OUTSIDE = [
    "/etc/cdd-canary",
    "../app-evil/x",
    "a/../../x",
    "link/x",
    "C:\\x",
    "\\\\server\\share\\x",
    "~/x",
    ".git/hooks/pre-commit",
    ".GIT/config",
    ".git./config",
    ".g\u200cit/config",
    "git~1/config",
    ".git::$INDEX_ALLOCATION/config",
    "sub/.git/config",
    ".cdd/config.yaml",
    ".CDD/config.yaml",
    ".Cdd./config.yaml",
    ".cdd /config.yaml",
    ".c\u200cdd/config.yaml",
    ".cdd::$INDEX_ALLOCATION/config.yaml",
    ".cdd/runs/feature-x/state.json",
    "settings/config.yaml",
    "settings/new/file",
    "src/runs/x",
    ".",
    "a\0b",
]


@each_row("path", OUTSIDE)
async def test_nothing_is_written_outside_the_project_into_git_or_the_programs_files(
    root: Path, path: str
) -> None:
    (root / "link").symlink_to(root.parent / "app-evil")
    (root / ".git").mkdir()
    (root / ".git/config").write_text("[core]\n")
    (root / ".cdd/runs").mkdir(parents=True)
    (root / "settings").symlink_to(".cdd")
    (root / "src").mkdir()
    (root / "src/runs").symlink_to("../.cdd/runs")
    before = everything(root.parent)
    for action in (
        CreateFileAction(file_path=path, content="x"),
        EditAction(file_path=path, find="", replace="x"),
    ):
        assert (await done(root, action)).status is FAILURE
    assert everything(root.parent) == before


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


# --------------------------------------------------------------------------------- edit


async def edited(
    root: Path, before: bytes, find: str, replace: str
) -> tuple[ActionResult, bytes]:
    (root / "a.txt").write_bytes(before)
    result = await done(root, EditAction(file_path="a.txt", find=find, replace=replace))
    return result, (root / "a.txt").read_bytes()


@each_row(
    ("before", "find", "replace", "after"),
    [
        (b"one two three", "two", "2", b"one 2 three"),
        (b"one\ntwo\n", "two\n", "", b"one\n"),
        (b"one\r\ntwo\r\nthree\r\n", "one\ntwo", "1\n2", b"1\r\n2\r\nthree\r\n"),
        (b"one\r\ntwo\r\n", "two", "2", b"one\r\n2\r\n"),
        (b"\xef\xbb\xbfone", "one", "two", b"\xef\xbb\xbftwo"),
        (b"caf\xe9 one", "one", "two", b"caf\xe9 two"),
        ("größe".encode(), "ö", "oe", "groeße".encode()),
        (b"no end", "end", "end\n", b"no end\n"),
        (b"one\r\ntwo\r\n", "two", "two\nthree", b"one\r\ntwo\r\nthree\r\n"),
        (b"old\n", "", "new\n", b"new\n"),
        (b"old\r\n\r\n", "", "new\nfile\n", b"new\r\nfile\r\n"),
    ],
)
async def test_an_edit_replaces_the_one_match_and_nothing_else(
    root: Path, before: bytes, find: str, replace: str, after: bytes
) -> None:
    result, content = await edited(root, before, find, replace)
    assert (result.status, content) == (SUCCESS, after)


@each_row(
    ("before", "find", "words"),
    [
        (b"one", "two", "not in the file"),
        (b"One", "one", "not in the file"),
        (b"one two\nthree one\n", "one", "more than once (lines 1, 2)"),
        (b"aaa", "aa", "more than once"),
    ],
)
async def test_an_edit_without_one_match_changes_nothing_and_reports_the_content(
    root: Path, before: bytes, find: str, words: str
) -> None:
    result, content = await edited(root, before, find, "x")
    assert (result.status, content, result.output) == (FAILURE, before, before.decode())
    assert words in result.error


async def test_a_failed_edit_reveals_no_secret_file(
    root: Path,
) -> None:
    (root / ".env").write_text("KEY=s3cret")
    (root / "a.bin").write_bytes(b"\0\1\2")
    for path in (".env", "a.bin"):
        result = await done(
            root, EditAction(file_path=path, find="nowhere", replace="x")
        )
        assert result.status is FAILURE
        assert "s3cret" not in result.output + result.error
        assert "\0" not in result.output


@each_row("replace", ["", "  \n", "first\n// ... rest of the file unchanged\n"])
async def test_a_file_is_not_replaced_by_a_part_of_it(root: Path, replace: str) -> None:
    result, content = await edited(root, b"first\nsecond\n", "", replace)
    assert (result.status, content) == (FAILURE, b"first\nsecond\n")


@each_row("find", ["", "second\n"])
async def test_merge_markers_are_not_written(root: Path, find: str) -> None:
    marked = "<<<<<<< HEAD\nfirst\n=======\nthird\n>>>>>>> new\n"
    (root / "old.js").write_text("first\nsecond\n")
    result = await done(root, EditAction(file_path="old.js", find=find, replace=marked))
    assert (result.status, (root / "old.js").read_text()) == (
        FAILURE,
        "first\nsecond\n",
    )
    assert "<<<<<<< HEAD" in result.error
    result = await done(root, CreateFileAction(file_path="new.js", content=marked))
    assert (result.status, (root / "new.js").exists()) == (FAILURE, False)


@each_row(
    "name, before, find, new",
    [
        ("a.json", '{"a": 1, "b": 2}\n', "1,", "1"),
        ("n.ipynb", '{"cells": [], "nbformat": 4}\n', ", ", " "),
        ("uv.lock", "version = 1\n", "version = 1", "version ="),
        ("run", "#!/usr/bin/env python3\nprint(1)\n", "print(1)", "print(1"),
        ("a.json", '{"a": 1}\n', "", '{"a": \n'),
    ],
)
async def test_an_edit_that_breaks_a_file_is_refused(
    root: Path, name: str, before: str, find: str, new: str
) -> None:
    place = root / name
    place.write_text(before)
    result = await done(root, EditAction(file_path=name, find=find, replace=new))
    assert "would not be valid" in result.error
    assert place.read_text() == before


async def test_a_part_is_not_replaced_by_a_remark(root: Path) -> None:
    new = "first\n// ... rest unchanged\n"
    result, content = await edited(
        root, b"first\nsecond\nthird\n", "first\nsecond\n", new
    )
    assert (result.status, content) == (FAILURE, b"first\nsecond\nthird\n")


async def test_a_missing_or_protected_file_fails(root: Path) -> None:
    assert (
        "a.txt"
        in (
            await done(root, EditAction(file_path="a.txt", find="x", replace="y"))
        ).error
    )
    (root / "a.txt").mkdir()
    assert (
        "folder"
        in (
            await done(root, EditAction(file_path="a.txt", find="x", replace="y"))
        ).error
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
async def test_a_read_only_file_is_not_changed(root: Path) -> None:
    (root / "a.txt").write_text("x")
    (root / "a.txt").chmod(0o400)
    assert (
        "read-only"
        in (
            await done(root, EditAction(file_path="a.txt", find="x", replace="y"))
        ).error
    )


async def test_the_mode_of_a_file_is_kept(root: Path) -> None:
    (root / "a.sh").write_text("echo one\n")
    (root / "a.sh").chmod(0o755)
    await done(root, EditAction(file_path="a.sh", find="one", replace="two"))
    assert (root / "a.sh").stat().st_mode & 0o777 == 0o755


# ----------------------------------------------------------------- read, chat, research


async def test_a_file_and_a_folder_are_read(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src/a.py").write_text("print('hi')\n")
    assert "print('hi')" in (await done(root, ReadAction(source="src/a.py"))).output
    assert "a.py" in (await done(root, ReadAction(source="src"))).output


@each_row(
    "source",
    ["missing.txt", "/etc/passwd", "../app-evil", "link/secret", "file:///etc/passwd"],
)
async def test_missing_and_outside_paths_are_not_read(root: Path, source: str) -> None:
    (root.parent / "app-evil/secret").write_text("canary")
    (root / "link").symlink_to(root.parent / "app-evil")
    result = await done(root, ReadAction(source=source))
    assert result.status is FAILURE
    assert "canary" not in result.output + result.error


async def test_a_page_is_read_as_text(root: Path) -> None:
    async with PageServer({"/": Answer(b"<title>T</title><h1>Hi</h1>")}) as server:
        result = await done(root, ReadAction(source=server.url("/")))
    assert (result.status, result.output) == (SUCCESS, "Title: T\n\n# Hi")


async def test_a_page_of_a_private_network_needs_a_setting(
    root: Path,
) -> None:
    result = await done(root, ReadAction(source="http://127.0.0.1:9/"), allowing(root))
    assert result.status is FAILURE
    assert "127.0.0.1" in result.error


async def test_an_answer_completes_a_chat(root: Path) -> None:
    result = await done(root, ChatWithUserAction(prompt="Which colour?"))
    assert (result.status, result.output.split()) == (
        COMPLETED,
        ["Which", "colour?", "Blue."],
    )


async def test_a_chat_fails_without_a_user(root: Path) -> None:
    async def nobody(prompt: str) -> str:
        raise NotApproved(f"Nobody: {prompt}")

    result = await done(root, ChatWithUserAction(prompt="Why?"), runner(root, nobody))
    assert (result.status, result.error) == (FAILURE, "Nobody: Why?")


async def test_research_reports_the_results_of_each_query(root: Path) -> None:
    result = await done(root, ResearchAction(queries=("q",)))
    assert result.status is SUCCESS
    assert "https://a.example" in result.output


async def test_a_search_that_fails_is_a_failed_action(root: Path) -> None:
    searcher = ScriptedSearcher([WebSearchError(OSError("no network"))])
    runs = ActionRunner(root, CommandRunner(root), PageReader(), searcher, says_blue)
    result = await done(root, ResearchAction(queries=("q",)), runs)
    assert result.status is FAILURE
    assert "no network" in result.error


async def test_running_an_action_that_only_reports_is_a_bug(root: Path) -> None:
    with pytest.raises(TypeError, match="parse_plan"):
        await done(root, ParsePlanAction())


# ------------------------------------------------------------------------ any path text

_opened: list[str] = []
_watching = False


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if (
        _watching
        and event in ("open", "os.listdir", "os.scandir")
        and isinstance(arguments[0], str | bytes | os.PathLike)
    ):
        _opened.append(os.fsdecode(arguments[0]))


sys.addaudithook(_note)
PATHS = st.text(st.sampled_from("./\\~:aA \0\n-é"), max_size=20) | st.sampled_from(
    [
        "../app-evil/secret",
        "/etc/passwd",
        "link/secret",
        "link",
        "deep/../../app-evil/secret",
        "..\\app-evil\\secret",
        "//etc/passwd",
        "loop",
        "loop/a",
        "file",
    ]
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=count_examples(150),
)
@given(PATHS)
def test_no_path_opens_a_file_outside_the_project(root: Path, path: str) -> None:
    global _watching  # noqa: PLW0603
    if not (root / "link").is_symlink():
        (root / "link").symlink_to(root.parent / "app-evil")
        (root / "loop").symlink_to("loop")
        (root / "file").write_text("inside")
        (root.parent / "app-evil/secret").write_text("canary")

    async def all_of_them() -> None:
        global _watching  # noqa: PLW0603
        actions: list[Action] = (
            [ReadAction(source=path), EditAction(file_path=path, find="x", replace="y")]
            if path.strip()
            else []
        )
        actions += (
            [CreateFileAction(file_path=path, content="canary")] if path.strip() else []
        )
        runs = runner(root)
        _watching = True
        for action in actions:
            await done(root, action, runs)

    _opened.clear()
    try:
        asyncio.run(all_of_them())
    finally:
        _watching = False
    outside = [
        opened
        for opened in _opened
        if str(root.parent) in opened
        and not Path(opened).resolve().is_relative_to(root.resolve())
    ]
    assert not outside
    assert not [opened for opened in _opened if opened.startswith("/etc/")]
    assert (root.parent / "app-evil/secret").read_text() == "canary"
    assert [path.name for path in (root.parent / "app-evil").iterdir()] == ["secret"]


async def test_a_change_is_checked_outside_the_event_loop(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up: list[bool] = []

    def noted(judge: Callable[..., ChangeSet]) -> Callable[..., ChangeSet]:
        def judged(*args: object) -> ChangeSet:
            held_up.append(asyncio._get_running_loop() is not None)
            return judge(*args)

        return judged

    monkeypatch.setattr(run, "creation", noted(judging.creation))
    monkeypatch.setattr(run, "edit", noted(judging.edit))
    await done(root, CreateFileAction(file_path="a.py", content="x = 1\n"))
    assert (
        await done(root, EditAction(file_path="a.py", find="x = 1", replace="x = 2"))
    ).status is SUCCESS
    assert held_up == [False, False]
