"""Each example of the docs is read by what would read it, or is executed."""

import ast
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from cdd_agent.actions.plan import ActionPlan
from cdd_agent.changes.parse import parse_reply
from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.errors import CddError
from cdd_agent.llm.script_file import read_script
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.spec import TicketSpec
from tests.docs.examples import Example, prepare, run_example
from tests.docs.pages import (
    ROOT,
    TESTED_ELSEWHERE,
    Block,
    Page,
    all_pages,
    blocks_of,
)
from tests.support.settings import load_config
from tests.support.tables import each_row

RUN = blocks_of("console", "bash")
"""Blocks that a user types."""
PARSED = ("yaml", "json", "jsonl", "python", "toml", "markdown", "diff")
PLAIN = ("", "text")
"""Languages of blocks that show something and have no reader."""
LEAST_SHARE = 0.85
"""The share of commands that are executed, here or by another test."""
WIDEST = 80
LISTS = ("docs/reference/", "docs/contributing/")
"""Pages that show records and events, one a line."""


def test_each_block_has_a_language_that_is_tested() -> None:
    languages = {*PARSED, *PLAIN, "console", "bash"}
    unknown = [
        str(block)
        for page in all_pages()
        for block in page.blocks
        if block.language not in languages
    ]
    assert unknown == []


def wide_lines(page: Page) -> Iterator[str]:
    for block in page.blocks:
        for number, line in enumerate(block.text.splitlines(), start=block.line + 1):
            if len(line) > WIDEST:
                yield f"{page.path}:{number}: {len(line)} characters"


def test_a_reader_sees_whole_lines_of_code() -> None:
    """The site shows this many characters in a window of 1,280 pixels."""
    pages = [page for page in all_pages() if not page.path.startswith(LISTS)]
    assert [line for page in pages for line in wide_lines(page)] == []


def test_a_wide_line_of_code_is_found() -> None:
    block = Block("page.md", 7, "text", f"short\n{'x' * 81}\n")
    assert list(wide_lines(Page("page.md", (), (block,)))) == [
        "page.md:9: 81 characters"
    ]


# --- Blocks that are read -------------------------------------------------------------


@each_row("block", blocks_of("python"))
def test_python_can_be_compiled(block: Block) -> None:
    if not block.skip:
        ast.parse(block.text, filename=str(block))


@each_row("block", blocks_of("json", "jsonl"))
def test_json_can_be_read(block: Block) -> None:
    if block.skip:
        return
    try:
        json.loads(block.text)
    except ValueError:
        # one value a line
        for line in block.text.splitlines():
            json.loads(line)


def read_settings(text: str, folder: Path) -> None:
    (folder / ".cdd").mkdir()
    (folder / ".cdd" / "config.yaml").write_text(text)
    load_config(folder, {}, {})


def read_spec(text: str, folder: Path) -> None:
    del folder
    TicketSpec.from_yaml(text, "spec.yaml", slug="feature-x")


def read_model_script(text: str, folder: Path) -> None:
    (folder / "script.yaml").write_text(text)
    read_script(folder / "script.yaml")


def read_actions(text: str, folder: Path) -> None:
    del folder
    ActionPlan.from_yaml(text)


def read_workflow(text: str, folder: Path) -> None:
    """Check the commands of a workflow of a CI service."""
    del folder
    for run in re.findall(r"run: (.+)$", text, re.MULTILINE):
        assert list(wrong_commands(run)) == []


def reader_of(text: str) -> Callable[[str, Path], None]:
    """Return the reader of a YAML example, by its keys."""
    value = yaml.safe_load(text)
    if isinstance(value, list):
        is_of_workflow = any(
            isinstance(item, dict) and {"run", "uses"} & item.keys() for item in value
        )
        return read_workflow if is_of_workflow else read_actions
    if "replies" in value:
        return read_model_script
    is_workflow = isinstance(value.get("jobs"), dict)
    if is_workflow or {"steps", "permissions", "concurrency"} & value.keys():
        return read_workflow
    if value.keys() & {"title", "ticket", "acceptance_criteria"}:
        return read_spec
    return read_settings


@each_row("block", blocks_of("yaml"))
def test_yaml_is_read_by_its_reader(block: Block, tmp_path: Path) -> None:
    if not block.skip:
        reader_of(block.text)(block.text, tmp_path)


@each_row("block", blocks_of("markdown"))
def test_markdown_is_a_plan_or_a_reply(block: Block) -> None:
    if block.skip:
        return
    if "### Step" in block.text:
        plan = read_plan(block.text)
        assert plan.steps
    else:
        parse_reply(block.text)


# --- Blocks that are executed ---------------------------------------------------------


@pytest.mark.fork
@pytest.mark.parametrize("block", [each for each in RUN if not each.skip], ids=str)
def test_a_block_for_a_terminal_runs(block: Block, tmp_path: Path) -> None:
    if "jq " in block.text and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    example = Example.read(block.text)
    printed, failures = run_example(tmp_path, example)
    assert failures == [], f"{block} failed"
    missing = [line for line in example.patterns if not line.search(printed)]
    assert missing == [], f"{block} printed:\n{printed}"


def test_most_commands_are_executed() -> None:
    executed = count = 0
    for block in RUN:
        for command in Example.read(block.text).commands:
            count += 1
            is_skipped = block.skip not in ("", *TESTED_ELSEWHERE.values())
            executed += not (is_skipped or command.reason)
    assert executed >= LEAST_SHARE * count


def test_each_target_of_make_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for block in RUN:
        for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", block.text, re.MULTILINE):
            assert target in targets, str(block)


def wrong_commands(text: str) -> Iterator[str]:
    """Yield the commands of cdd in a text that cannot be typed."""
    for match in re.finditer(r"(?:^|[|;&(\s])cdd +([a-z]+)((?: +[^\s|;&#`]+)*)", text):
        command = CATALOGUE.get(match[1])
        if match[1] in ("help", "completion"):
            continue
        if command is None or command.terminal is None:
            yield match[0].strip()
            continue
        names = {name for each in command.parameters for name in each.names.split()}
        flags = set(re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", match[2]))
        if flags - names - COMMON:
            yield match[0].strip()


COMMON = {"-C", "--trust", "--debug", "--plain", "--help", "--model", "--api-base"} | {
    "--record"
}


def spans() -> Iterator[tuple[str, str]]:
    for page in all_pages():
        for number, line in page.prose:
            for span in re.findall(r"`(cdd [^`]+)`", line):
                yield f"{page.path}:{number}", span


def test_each_command_in_the_text_can_be_typed() -> None:
    wrong = [(place, span) for place, span in spans() if [*wrong_commands(span)]]
    assert wrong == []


def test_a_wrong_command_is_found() -> None:
    assert list(wrong_commands("cdd exec A --yse | cat; cdd exce A")) == [
        "cdd exec A --yse",
        "cdd exce A",
    ]
    assert list(wrong_commands("X=1 cdd exec A B --yes --jobs 3 # all")) == []


def test_a_wrong_example_is_refused(tmp_path: Path) -> None:
    for text in ("modle: x\n", "- action: fly\n", "replies:\n- answer: x\n"):
        with pytest.raises(CddError):
            reader_of(text)(text, tmp_path)


def test_examples_see_no_key_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-user")
    printed = prepare(tmp_path, "").run("env").stdout
    assert "sk-user" not in printed
    assert re.findall(r"^HOME=(.*)$", printed, re.MULTILINE) == [str(tmp_path)]
