"""Action plans in YAML: every spelling, and every way to get one wrong."""

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.actions.model import (
    Action,
    ChatWithUserAction,
    CreateFileAction,
    EditAction,
    ExecuteAction,
    ReadAction,
    ResearchAction,
)
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.errors import BadInput, ExitCode
from tests.support.examples import fewer
from tests.support.tables import each_row


def actions(text: str) -> list[Action]:
    return list(ActionPlan.from_yaml(text).actions)


def test_all_six_kinds_are_read() -> None:
    text = """\
- action: execute
  command: "poetry run pytest"
  cwd: "packages/executor"
  env: {MODE: "production"}
- action: create_file
  file_path: "hello.txt"
  content: "hi"
- action: edit
  file_path: "hello.txt"
  find: "hi"
  replace: "hello"
- action: read
  source: "hello.txt"
- action: chat_with_user
  prompt: "Which database?"
- action: research
  queries: ["textual markdown stream"]
"""
    assert actions(text) == [
        ExecuteAction(
            command="poetry run pytest",
            cwd="packages/executor",
            env={"MODE": "production"},
        ),
        CreateFileAction(file_path="hello.txt", content="hi"),
        EditAction(file_path="hello.txt", find="hi", replace="hello"),
        ReadAction(source="hello.txt"),
        ChatWithUserAction(prompt="Which database?"),
        ResearchAction(queries=("textual markdown stream",)),
    ]


@each_row(
    "text",
    [
        "- ls -la",
        '- execute: "ls -la"',
        "- action: execute\n  command: ls -la",
        "- action: execute\n  params:\n    command: ls -la",
        "- execute:\n    command: ls -la",
        "- action: execute\n  command: ls -la\n  cwd:\n  env: null",
        "\ufeff- execute: ls -la\r\n",
        "---\n- execute: ls -la\n...\n",
    ],
)
def test_a_command_alone_can_be_written_in_every_old_way(text: str) -> None:
    assert actions(text) == [ExecuteAction(command="ls -la")]


def test_the_short_form_takes_the_other_keys_beside_it() -> None:
    short = actions("- execute: ls\n  cwd: src\n  env: {A: b}")
    assert short == [ExecuteAction(command="ls", cwd="src", env={"A": "b"})]
    short = actions("- read: a.txt\n- research: [a, b]\n- chat_with_user: Why?")
    assert short == [
        ReadAction(source="a.txt"),
        ResearchAction(queries=("a", "b")),
        ChatWithUserAction(prompt="Why?"),
    ]
    short = actions("- edit:\n    file_path: a\n    find: b\n    replace: c")
    assert short == [EditAction(file_path="a", find="b", replace="c")]


def test_a_merge_brings_keys_that_the_item_can_override() -> None:
    text = (
        "- &base {action: execute, command: ls, cwd: src}\n- {<<: *base, command: pwd}"
    )
    assert actions(text)[1] == ExecuteAction(command="pwd", cwd="src")


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        actions("- action: fly\n- ls\n- action: read")
    assert [line.split(": ")[0] for line in caught.value.message.splitlines()] == [
        "plan.yaml:1",
        "plan.yaml:3",
    ]


def test_values_stay_the_text_that_was_written() -> None:
    text = (
        "- action: edit\n"
        "  file_path: 2024\n"
        "  find: no\n"
        "  replace: 1.10\n"
        "- execute: date\n"
        "  env: {PORT: 8080, ON: yes}"
    )
    assert actions(text) == [
        EditAction(file_path="2024", find="no", replace="1.10"),
        ExecuteAction(command="date", env={"PORT": "8080", "ON": "yes"}),
    ]


def test_an_empty_text_is_a_text_where_it_means_something() -> None:
    empty = actions('- action: edit\n  file_path: a\n  find: ""\n  replace: ""')
    assert empty == [EditAction(file_path="a", find="", replace="")]
    empty = actions("- action: create_file\n  file_path: a\n  content:")
    assert empty == [CreateFileAction(file_path="a")]


@each_row(
    ("text", "message"),
    [
        ("", "p.yaml: the plan is empty"),
        ("# nothing\n", "p.yaml: the plan is empty"),
        ("null", "p.yaml: the plan is empty"),
        ("[]", "p.yaml:1: the plan has no actions"),
        (
            "\naction: execute\n",
            "p.yaml:2: a plan is a list of actions; this is a mapping",
        ),
        ("just words", "p.yaml:1: a plan is a list of actions; this is plain text"),
        ("- execute: ls\n- {", "p.yaml:3:1: not YAML"),
        ("- a: b\n c: d", "p.yaml:2"),
        (
            "- execute: ls\n- action: exekute\n  command: ls",
            "p.yaml:2: unknown action `exekute` (did you mean `execute`?)",
        ),
        (
            "- action: parse_plan",
            "p.yaml:1: unknown action `parse_plan`; allowed are `execute`, ",
        ),
        ("- action: [execute]", "p.yaml:1: unknown action of that form"),
        ("- command: ls", "p.yaml:1: an action names its kind"),
        ("- {}", "p.yaml:1: an action names its kind"),
        ("- execute: ls\n  read: a", "p.yaml:1: `execute` and `read` are two actions"),
        ("- execute: ls\n-\n- execute: ls", "p.yaml:2: an action is empty"),
        ("- [execute, ls]", "p.yaml:1: an action is a mapping of keys; this is a list"),
        (
            "- action: execute\n  command: ls\n  cmd: x",
            "p.yaml:3: execute: `cmd` is unknown",
        ),
        (
            "- action: execute\n  comand: ls",
            "p.yaml:2: execute: `comand` is unknown (did you mean `command`?)",
        ),
        (
            '- python -c "for x in y: print(x)"',
            "a command with `: ` in it needs quotes",
        ),
        ("```yaml\n- ls\n```", "p.yaml:1: the plan is in a code fence"),
        (
            "- action: execute\n  command: [ls]",
            "p.yaml:2: execute: `command` is not a text",
        ),
        ("- action: execute\n  command: ''", "p.yaml:2: execute: `command` is empty"),
        (
            "- action: execute\n  command: ls\n  env: [A]",
            "p.yaml:3: execute: `env` is not a mapping (each a text)",
        ),
        (
            "- action: execute\n  command: ls\n  env: {A: [b]}",
            "p.yaml:3: execute: `env` has a value that is not a text",
        ),
        (
            "- action: execute\n  command: ls\n  cwd: {a: b}",
            "p.yaml:3: execute: `cwd` is not a text",
        ),
        (
            "- action: execute\n  params: ls",
            "p.yaml:2: `params` is a mapping; this is plain text",
        ),
        (
            "- action: execute\n  command: a\n  params: {command: b}",
            "p.yaml:3: `command` is given twice, first in line 2",
        ),
        (
            "- action: execute\n  command: a\n  command: b",
            "p.yaml:3:3: the key command appears twice",
        ),
        (
            "- action: research\n  queries: one",
            "p.yaml:2: research: `queries` is not a list (each a text, not empty)",
        ),
        ("- action: research\n  queries: []", "p.yaml:2: research: `queries` is empty"),
        (
            "- action: research\n  queries: [[a]]",
            "p.yaml:2: research: `queries.0` is not a text",
        ),
        ("- action: read", "p.yaml:1: read: `source` is missing"),
        (
            "- action: edit\n  file_path: a\n  find: b",
            "p.yaml:1: edit: `replace` is missing",
        ),
        ("- execute: \x00", "p.yaml: not YAML"),
        ("- execute: *x", "p.yaml:1:12: not YAML: found undefined alias"),
        ("- &a [*a]", "p.yaml:1: the value *a contains itself"),
        ("- a\n---\n- b", "p.yaml:2"),
        ("- x" * 2_000_000, "p.yaml: more than 5,000,000 bytes"),
        ("[" * 50_000, "p.yaml:1: nested more than"),
        ("- " * 50_000, "p.yaml:1: nested more than"),
        ("- " + "{a: " * 50_000, "p.yaml:1: nested more than"),
        (
            "- &a [x, x, x]\n"
            + "".join(
                f"- &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n"
                for n in range(20)
            ),
            "the aliases make",
        ),
    ],
    ids=lambda value: repr(value)[1:40],
)
def test_a_wrong_plan_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        ActionPlan.from_yaml(text, "p.yaml")
    assert message in caught.value.message
    assert caught.value.exit_code == ExitCode.BAD_INPUT


def test_python_objects_are_never_made() -> None:
    text = (
        "- !!python/object/apply:os.system ['touch canary']\n"
        "- execute: !!python/name:os.system ''"
    )
    with pytest.raises(BadInput):
        ActionPlan.from_yaml(text)


def test_a_plan_of_nothing_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="`actions` is empty"):
        ActionPlan(())


@fewer(2)
@given(st.text())
def test_any_text_is_a_plan_or_refused(text: str) -> None:
    with suppress(BadInput):
        assert ActionPlan.from_yaml(text).actions


TREES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "action",
                    "execute",
                    "params",
                    "command",
                    "env",
                    "queries",
                    "read",
                    "source",
                    "x",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(TREES, max_size=4) | TREES)
def test_any_yaml_is_a_plan_or_refused(tree: Any) -> None:
    with suppress(BadInput):
        assert ActionPlan.from_yaml(yaml.safe_dump(tree, allow_unicode=True)).actions


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1
).filter(str.strip)


@fewer(2)
@given(
    st.lists(
        st.builds(
            ExecuteAction,
            command=TEXT,
            cwd=st.none() | TEXT,
            env=st.none() | st.dictionaries(TEXT, TEXT),
        )
        | st.builds(CreateFileAction, file_path=TEXT, content=TEXT)
        | st.builds(EditAction, file_path=TEXT, find=TEXT, replace=TEXT)
        | st.builds(ReadAction, source=TEXT)
        | st.builds(ResearchAction, queries=st.lists(TEXT, min_size=1).map(tuple)),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_written_as_yaml_is_read_back(written: list[Action]) -> None:
    text = yaml.safe_dump([action.to_json() for action in written], allow_unicode=True)
    assert actions(text) == written
