"""Tools as a model meets them: definitions, instructions, calls right and wrong."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import NODEFAULT, structs

from cdd_agent.context.finder import CodeFinder
from cdd_agent.dialogue.turns import definitions
from cdd_agent.process.policy import (
    ALWAYS_ALLOWED,
    CommandRunner,
    IShellExecutor,
    Permission,
    RunProgram,
)
from cdd_agent.process.run import CommandResult, run_command
from cdd_agent.settings.config import Commands
from cdd_agent.tools.acting import ExecuteCommandTool, acting_tools
from cdd_agent.tools.action_runner import ActionRunner
from cdd_agent.tools.base import Tool, format_answer, parse_answer
from cdd_agent.tools.read_only import read_only_tools
from cdd_agent.web.pages import PageReader
from cdd_agent.web.search import ScriptedSearcher, SearchResult
from tests.support.encoded_files import ENCODED
from tests.support.examples import count_examples
from tests.support.promised import NOT_ALLOWED, NOT_FOUND, NOT_STARTED, TIMED_OUT
from tests.support.tables import each_row

READ_ONLY = [
    "read_file",
    "list_files",
    "glob_files",
    "grep_files",
    "find_code",
    "git_status",
    "git_log",
    "git_diff",
]
ACTING = ["create_file", "edit_file", "execute_command", "chat_with_user", "research"]


async def says_blue(prompt: str) -> str:
    return f"{prompt} Blue."


async def runs_nothing(argv: Sequence[str], **how: Any) -> CommandResult:
    del argv, how
    return CommandResult("", "", 0)


def commands_in(
    root: Path, run_program: RunProgram = run_command, **more: Any
) -> CommandRunner:
    settings = Commands(**{"timeout": 20, **more})
    return CommandRunner(root, settings, run_program=run_program)


def runner(root: Path, executor: IShellExecutor | None = None) -> ActionRunner:
    found = [SearchResult("A title", "https://a.example", "A snippet")]
    return ActionRunner(
        root,
        executor or commands_in(root),
        PageReader(),
        ScriptedSearcher([found] * 9),
        says_blue,
    )


def command_tool(commands: CommandRunner) -> ExecuteCommandTool:
    return ExecuteCommandTool(
        commands, commands.settings, commands.allowed, commands.root
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("# Shop\n\nWords.\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.py").write_text("def login():\n    return 'TODO'\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "noise.log").write_text("login\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


@pytest.fixture
def tools(root: Path) -> dict[str, Tool[Any]]:
    return all_tools(root, run_command)


def all_tools(root: Path, run_program: RunProgram) -> dict[str, Tool[Any]]:
    commands = commands_in(root, run_program)
    return {
        tool.name: tool
        for tool in (
            *read_only_tools(root, CodeFinder(root)),
            *acting_tools(runner(root, commands), commands),
        )
    }


async def test_code_is_found_by_its_subject(
    root: Path, tools: dict[str, Tool[Any]]
) -> None:
    (root / "src/limits.py").write_text(
        "class RateLimiter:\n    def allows(self, client):\n        return True\n"
    )
    found = (await tools["find_code"].execute(query="where is the rate limited?"))[
        "output"
    ].splitlines()
    assert found[0].startswith("src/limits.py: ")
    assert found[1].startswith("  lines 1-")
    assert found[1].endswith("class RateLimiter:")
    assert "src/app.py" not in "".join(found)
    (root / "src/limits.py").rename(root / "src/quota.py")
    assert (
        "src/quota.py"
        in (await tools["find_code"].execute(query="rate limit"))["output"]
    )
    assert (
        "Nothing"
        in (await tools["find_code"].execute(query="zebra xylophone"))["output"]
    )


def test_find_code_is_offered_if_there_is_an_index() -> None:
    assert "find_code" not in {tool.name for tool in read_only_tools(Path())}


def test_git_tools_are_offered_in_a_repository(
    root: Path, tools: dict[str, Tool[Any]]
) -> None:
    assert any(tool.category == "Git" for tool in tools.values())
    (root / ".git").rename(root / "was-git")
    assert not any(tool.category == "Git" for tool in read_only_tools(root))


def test_there_are_the_promised_tools(tools: dict[str, Tool[Any]]) -> None:
    assert list(tools) == READ_ONLY + ACTING


@each_row("name", READ_ONLY + ACTING)
def test_a_definition_is_complete_and_short(
    tools: dict[str, Tool[Any]], name: str
) -> None:
    tool = tools[name]
    definition = tool.get_openrouter_tool_definition()
    assert definition["type"] == "function"
    assert definition["function"]["name"] == name
    assert definition["function"]["description"] == tool.description
    schema = definition["function"]["parameters"]
    assert schema == tool.parameters_schema
    assert schema["type"] == "object"
    assert tool.category
    assert tool.tags
    # paid for in every round
    assert not re.search(r"\$ref|anyOf|\btitle\b|\\\\S", json.dumps(schema))


@each_row("name", READ_ONLY + ACTING)
def test_every_parameter_has_a_type_a_description_and_its_default(
    tools: dict[str, Tool[Any]], name: str
) -> None:
    schema = tools[name].parameters_schema
    fields = {field.name: field for field in structs.fields(tools[name].arguments)}
    assert schema["properties"].keys() == fields.keys()
    assert schema["required"] == [
        name for name, field in fields.items() if field.required
    ]
    for name, described in schema["properties"].items():
        assert described["type"] in (
            "string",
            "integer",
            "boolean",
            "array",
            "object",
        ), name
        assert described["description"].endswith("."), name
        assert described["description"][0].isupper(), name
        default = fields[name].default
        has_default = default is not NODEFAULT and default is not None
        assert described.get("default", NODEFAULT) == (
            default if has_default else NODEFAULT
        ), name


@each_row("name", READ_ONLY + ACTING)
def test_a_description_mentions_the_answer_and_its_errors(
    tools: dict[str, Tool[Any]], name: str
) -> None:
    sent = tools[name].get_openrouter_tool_definition()["function"]["description"]
    assert sent.startswith(tools[name].purpose)
    assert "`error`" in sent
    assert re.search(r"Returns .*`(output|success|returncode)`", sent)


@each_row("name", READ_ONLY + ACTING)
async def test_the_examples_are_accepted_calls(root: Path, name: str) -> None:
    tool = all_tools(root, runs_nothing)[name]
    for example in tool.examples:
        answer = await tool.execute(**example)
        assert "called wrongly" not in str(answer.get("error"))


@each_row("name", READ_ONLY + ACTING)
def test_the_instructions_read_well_without_tool_calls(
    tools: dict[str, Tool[Any]], name: str
) -> None:
    words = tools[name].get_ai_prompt_instructions()
    assert words.startswith(f"## {name}\n\n{tools[name].description}")
    for part in ("Parameters:", "Examples:"):
        assert words.count(f"\n{part}") == 1
    calls = [
        json.loads(line) for line in words.partition("Examples:\n")[2].splitlines()
    ]
    assert [call["arguments"] for call in calls] == list(tools[name].examples)
    assert all(call["tool"] == name for call in calls)


@each_row("name", READ_ONLY + ACTING)
def test_the_instructions_describe_the_result(
    tools: dict[str, Tool[Any]], name: str
) -> None:
    assert f" {tools[name].returns}\n" in tools[name].get_ai_prompt_instructions()
    (sent,) = definitions([tools[name]])
    assert sent.description == tools[name].description
    assert sent.parameters == tools[name].parameters_schema


MODES = ["safe", "ask", "unsafe"]


@each_row("mode", MODES)
def test_execute_command_has_its_promised_description(root: Path, mode: str) -> None:
    tool = command_tool(commands_in(root, mode=mode, timeout=7))
    for promised in (
        "`stdout`",
        "`stderr`",
        "`returncode`",
        "exit code",
        "127",
        "`error`",
        "`cwd`",
        "limit: 7 s",
    ):
        assert promised in tool.description
    schema = tool.parameters_schema
    assert (tool.category, tool.tags) == (
        "System",
        ("cli", "command", "execute", "system"),
    )
    assert schema["required"] == ["command"]
    assert schema["properties"]["command"]["type"] == "string"
    cwd = schema["properties"]["cwd"]
    assert (cwd["type"], cwd["default"]) == ("string", ".")
    assert len(tool.examples) == 3
    words = tool.get_ai_prompt_instructions()
    assert "- `cwd` (string," in words
    assert len(words.partition("Examples:\n")[2].splitlines()) == 3


@each_row("mode", MODES)
async def test_the_description_of_the_shell_is_true_in_every_mode(
    root: Path, mode: str
) -> None:
    asked: list[str] = []

    async def yes(command: str, reason: str) -> Permission:
        asked.append(command)
        return Permission.YES

    commands = CommandRunner(root, Commands(mode=mode, allow=("git",)), yes)  # type: ignore[arg-type]
    tool = command_tool(commands)
    piped, other = "printf one | wc -c", "uname"
    answers = [await tool.execute(command=command) for command in (piped, other)]
    assert (
        ("no shell:" in tool.description)
        == (mode == "safe")
        == all("error" in one for one in answers)
    )
    assert (
        ("is asked" in tool.description) == (mode == "ask") == (asked == [piped, other])
    )
    assert ("any program" in tool.description) == (mode == "unsafe")
    assert (", ".join(commands.allowed) in tool.description) == (mode != "unsafe")
    assert mode == "safe" or answers[0]["stdout"].strip() == "3"
    assert [
        commands.judge(str(example["command"])).in_shell for example in tool.examples
    ][2] == (mode != "safe")


async def test_a_program_that_cannot_start_has_the_promised_code(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "broken").write_bytes(b"\x7fELF, but not really")
    (root / "broken").chmod(0o755)
    monkeypatch.setenv("PATH", str(root), prepend=os.pathsep)
    answer = await command_tool(commands_in(root, allow=("broken",))).execute(
        command="broken"
    )
    assert (answer["return_code"], answer["returncode"], answer["stdout"]) == (1, 1, "")
    assert answer["stderr"].startswith(NOT_STARTED)


@each_row(
    ("name", "arguments", "words"),
    [
        ("read_file", {}, "`path` is missing"),
        ("read_file", {"file": "README.md"}, "`file` is unknown"),
        ("read_file", {"path": ["a"]}, "`path` is not a text"),
        ("read_file", {"path": ""}, "`path` is empty"),
        (
            "read_file",
            {"path": "README.md", "start_line": 0},
            "`start_line` is not a whole number (at least 1)",
        ),
        (
            "grep_files",
            {"pattern": "x", "limit": 10**9},
            "`limit` is not a whole number (at least 1, at most 1,000)",
        ),
        ("execute_command", {"command": ""}, "`command` is empty"),
        ("execute_command", {"command": "ls", "shell": True}, "`shell` is unknown"),
        ("create_file", {"content": "x"}, "`file_path` is missing"),
        (
            "research",
            {"queries": "one"},
            "`queries` is not a list (each a text, not empty)",
        ),
        (
            "execute_command",
            {"command": "ls", "env": "A=b"},
            "`env` is not a mapping (each a text)",
        ),
        ("list_files", {"path": "\ud800"}, "half of a character"),
        ("read_file", {"path": "a", "self": 1}, "`self` is unknown"),
        ("git_status", {"path": "."}, "`path` is unknown"),
    ],
)
async def test_wrong_arguments_are_an_error_with_the_right_parameters(
    tools: dict[str, Tool[Any]], name: str, arguments: dict[str, object], words: str
) -> None:
    answer = await tools[name].execute(**arguments)
    assert list(answer) == ["error"]
    assert answer["error"].startswith(f"{name} ")
    assert words in answer["error"]
    assert "Its parameters: " in answer["error"]


@each_row(
    ("name", "values", "arguments", "words"),
    [
        ("execute_command", ("ls",), {"command": "ls"}, "`command` is given twice"),
        ("execute_command", ("ls", ".", None, 1), {}, "4 positional arguments"),
        ("execute_command", (["ls"],), {}, "`command` is not a text"),
        ("git_status", (".",), {}, "1 positional arguments"),
    ],
)
async def test_wrong_positional_arguments_are_an_error(
    tools: dict[str, Tool[Any]],
    name: str,
    values: tuple[object, ...],
    arguments: dict[str, object],
    words: str,
) -> None:
    answer = await tools[name].execute(*values, **arguments)
    assert words in answer["error"]


@each_row(
    ("name", "arguments", "as_text"),
    [
        ("research", {"queries": ["a", "b"]}, {"queries": '["a", "b"]'}),
        (
            "execute_command",
            {"command": "[1]", "env": {"A": "b"}},
            {"command": "[1]", "env": '{"A": "b"}'},
        ),
        (
            "create_file",
            {"file_path": "a.json", "content": "[1]"},
            {"file_path": "a.json", "content": "[1]"},
        ),
    ],
)
async def test_lists_and_mappings_may_be_texts(
    root: Path, name: str, arguments: dict[str, object], as_text: dict[str, object]
) -> None:
    tool = all_tools(root, runs_nothing)[name]
    received: list[object] = []

    async def record(arguments: object) -> dict[str, Any]:
        received.append(arguments)
        return {}

    tool.run = record  # type: ignore[method-assign]
    await tool.execute(**arguments)
    assert await tool.execute(**as_text) == {}
    assert received[0] == received[1]


@each_row("name", [*READ_ONLY, *ACTING])
async def test_arguments_may_be_positional(root: Path, name: str) -> None:
    tool = all_tools(root, runs_nothing)[name]
    received: list[object] = []

    async def record(arguments: object) -> dict[str, Any]:
        received.append(arguments)
        return {}

    tool.run = record  # type: ignore[method-assign]
    for example in tool.examples:
        names = [name for name in tool.arguments.__struct_fields__ if name in example]
        in_order = names == [*tool.arguments.__struct_fields__][: len(names)]
        await tool.execute(**example)
        if in_order:
            await tool.execute(*[example[name] for name in names])
            assert received[-1] == received[-2]
    assert received


@each_row(
    ("name", "arguments", "output"),
    [
        (
            "read_file",
            {"path": "README.md", "start_line": "3", "end_line": 3.0},
            "Words.",
        ),
        (
            "grep_files",
            {"pattern": "(?i)LOGIN", "limit": "5"},
            "src/app.py:1",
        ),
        ("read_file", {"path": "README.md"}, "# Shop\n\nWords."),
        ("read_file", {"path": "README.md", "start_line": 3, "end_line": 3}, "Words."),
        ("read_file", {"path": "src"}, "app.py"),
        ("read_file", {"path": "**/*.py"}, "src/app.py"),
        ("read_file", {"path": "src/{app,other}.py"}, "src/app.py"),
        ("list_files", {}, "src/app.py"),
        ("glob_files", {"pattern": "**/*.py"}, "src/app.py"),
        ("grep_files", {"pattern": "log.n"}, "src/app.py:1"),
    ],
)
async def test_the_read_only_tools_answer(
    tools: dict[str, Tool[Any]], name: str, arguments: dict[str, object], output: str
) -> None:
    answer = await tools[name].execute(**arguments)
    assert output in answer["output"]
    assert "cut" not in answer
    assert "noise.log" not in answer["output"]


async def test_a_cut_result_is_marked(tools: dict[str, Tool[Any]], root: Path) -> None:
    (root / "huge.txt").write_text("a line\n" * 100_000)
    read = await tools["read_file"].execute(path="huge.txt")
    assert read["cut"] is True
    assert "700,000 bytes" in read["note"]
    for number in range(201):
        (root / f"{number}.txt").write_text("")
    for answer in (
        await tools["grep_files"].execute(pattern="line", limit=5),
        await tools["list_files"].execute(),
        await tools["glob_files"].execute(pattern="*.txt"),
        await tools["read_file"].execute(path="*.txt"),
    ):
        assert answer["cut"] is True
        assert "…" in answer["output"].splitlines()[-1]


async def test_a_file_is_read_as_it_is_and_its_encoding_is_named(
    tools: dict[str, Tool[Any]], root: Path
) -> None:
    for number, encoded in enumerate(ENCODED):
        (root / str(number)).mkdir()
        encoded.write(root / str(number))
        answer = await tools["read_file"].execute(path=f"{number}/{encoded.path}")
        assert answer["output"] == encoded.text
        assert answer.get("note", "") == encoded.note


@each_row("path", ["../x", "/etc/passwd", "missing", "C:\\x"])
@each_row("name", ["read_file", "list_files", "git_diff", "git_log"])
async def test_reading_outside_the_project_or_nothing_is_an_error(
    tools: dict[str, Tool[Any]], name: str, path: str
) -> None:
    answer = await tools[name].execute(path=path)
    assert answer.get("error") or (path == "missing" and name.startswith("git"))
    assert "root:" not in str(answer)


async def test_git_tools_show_status_log_and_diff(
    tools: dict[str, Tool[Any]], root: Path
) -> None:
    git = ["git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "First words"], check=True)
    (root / "README.md").write_text("# Shop\n\nOther words.\n")
    assert "README.md" in (await tools["git_status"].execute())["output"]
    assert "First words" in (await tools["git_log"].execute())["output"]
    assert "+Other words." in (await tools["git_diff"].execute())["output"]
    assert "Other" not in (await tools["git_diff"].execute(staged=True))["output"]
    assert "+Words." in (await tools["git_diff"].execute(commit="HEAD"))["output"]
    assert (
        "is not a commit"
        in (await tools["git_diff"].execute(commit="--output=x"))["error"]
    )


async def test_execute_command_answers_in_the_promised_forms(
    tools: dict[str, Tool[Any]], root: Path
) -> None:
    run = tools["execute_command"].execute
    failing = 'python -c "print(1); exit(3)"'
    answer = await run(command=failing, cwd="src")
    assert answer.pop("success") is True
    assert answer == {
        "command": failing,
        "return_code": 3,
        "returncode": 3,
        "stdout": "1\n",
        "stderr": "",
        "cwd": "src",
    }
    sent = format_answer({"success": True, **answer}, tools["execute_command"].unsent)
    assert sent == '{"stderr": "", "returncode": 3}\nstdout:\n1\n'
    assert await run(command="rm -rf .") == {
        "error": NOT_ALLOWED.format("rm"),
        "allowed_commands": sorted(ALWAYS_ALLOWED),
    }
    assert "needs a shell" in (await run(command="ls | wc"))["error"]
    assert "absolute" in (await run(command="ls", cwd="/tmp"))["error"]
    missing = await command_tool(commands_in(root, allow=("no-such-program",))).execute(
        command="no-such-program"
    )
    assert (missing["return_code"], missing["stderr"]) == (
        127,
        NOT_FOUND.format("no-such-program"),
    )
    slow = command_tool(commands_in(root, timeout=0.5))
    answer = await slow.execute(command='python -c "import time; time.sleep(60)"')
    assert answer == {"error": TIMED_OUT.format(0.5)}


async def test_a_failed_action_answers_with_facts_for_the_next_try(
    tools: dict[str, Tool[Any]],
) -> None:
    assert await tools["create_file"].execute(file_path="new.txt", content="one") == {
        "success": True
    }
    exists = await tools["create_file"].execute(file_path="new.txt", content="two")
    assert exists["content"] == "one"
    assert "new.txt" in exists["error"]
    missing = await tools["edit_file"].execute(
        file_path="new.txt", find="two", replace="three"
    )
    assert missing["content"] == "one"
    assert "error" in missing
    assert await tools["chat_with_user"].execute(prompt="Colour?") == {
        "success": True,
        "output": "Colour? Blue.",
    }
    assert (
        "https://a.example"
        in (await tools["research"].execute(queries=["q"]))["output"]
    )


TEXTS = st.text(max_size=9) | st.sampled_from(['{"a": 1}\n', "output:\n", "a\n\nb"])


@given(
    st.dictionaries(
        st.sampled_from(["output", "content", "stdout", "stderr", "error", "note"]),
        TEXTS,
    ),
    st.dictionaries(st.sampled_from(["cut", "success"]), st.booleans()),
)
def test_an_answer_can_be_read_from_what_the_model_receives(
    texts: dict[str, str], flags: dict[str, bool]
) -> None:
    answer = {**texts, **flags}
    assert parse_answer(format_answer(answer)) == answer
    assert parse_answer(json.dumps(answer, ensure_ascii=False)) == answer


@each_row("text", ["", "{", "[1]", '{"error": "cut …', "No answer.", "output: none"])
def test_a_text_that_is_no_answer_has_no_fields(text: str) -> None:
    assert parse_answer(text) == {}


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=count_examples(60),
)
@given(
    st.sampled_from(
        [
            "read_file",
            "list_files",
            "glob_files",
            "create_file",
            "edit_file",
            "execute_command",
        ]
    ),
    st.dictionaries(
        st.sampled_from(
            [
                "path",
                "pattern",
                "limit",
                "command",
                "cwd",
                "env",
                "file_path",
                "content",
                "find",
                "replace",
            ]
        )
        | st.sampled_from(["self", "kwargs", "\ud800"])
        | st.text(max_size=5),
        ANYTHING,
        max_size=4,
    ),
)
async def test_any_arguments_get_an_answer(
    root: Path, name: str, arguments: dict[str, Any]
) -> None:
    answer = await all_tools(root, run_command)[name].execute(**arguments)
    assert json.dumps(answer, ensure_ascii=False).encode()
