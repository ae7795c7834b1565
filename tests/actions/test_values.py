"""Values of actions, results and reports check themselves when they are made."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs

from cdd_agent.actions.model import (
    KINDS,
    Action,
    ActionResult,
    ActionStatus,
    BaseAction,
    ChatWithUserAction,
    CreateFileAction,
    EditAction,
    ExecuteAction,
    ExecutionReport,
    FileAlreadyExistsError,
    MultipleMatchesFoundError,
    ParsePlanAction,
    ReadAction,
    ResearchAction,
    RunEnvironment,
    RunSummary,
    SearchTextNotFoundError,
)
from cdd_agent.actions.plan import ActionPlan
from cdd_agent.files.hidden_from_models import HiddenFile
from cdd_agent.process.policy import Refused
from cdd_agent.process.run import CommandResult
from cdd_agent.project.context import ContextResult, Environment, FileContext
from cdd_agent.values.typed_values import WrongValue, read
from cdd_agent.web.search import QueryResult, SearchResult, SERPReport, WebSearchError
from tests.support.tables import each_row

NO_TEXTS: list[Any] = [1, 1.5, True, b"a", ["a"], ("a",), {"a": "b"}, {"a"}, object()]
BLANK: list[Any] = ["", " ", "\n\t", "\u00a0"]
TEXT = [None, *NO_TEXTS]
WRITTEN = [*TEXT, *BLANK]
NO_NUMBERS: list[Any] = [None, "1", b"1", [1], {}, True, 1 + 0j]
WHOLE = [*NO_NUMBERS, 1.0]
NUMBER: list[Any] = [None, "1", b"1", [1], {}, True, 1 + 0j]
FLAG: list[Any] = [None, 0, 1, "yes", "true", []]
STATUS: list[Any] = [None, "success", "DONE", "", 1, ["SUCCESS"]]
NO_LISTS: list[Any] = [None, "one", 1, {"a": "b"}, b"ab"]
TEXTS = [*NO_LISTS, *([each] for each in (None, 1, True, b"a", ["a"]))]
LOG = ActionResult(ReadAction("a"), ActionStatus.SUCCESS)
SUMMARY = RunSummary(ActionStatus.SUCCESS, datetime(2026, 11, 21, 10, tzinfo=UTC), 1.25)
HERE = RunEnvironment("Linux 6", "/srv/shop")
PLACE = Environment("Linux", "3.11", "sh", "/srv", "branch main")
FOUND = SearchResult("A title", "https://a.example", "words")

WRONG: dict[type[Struct], tuple[dict[str, Any], dict[str, list[Any]]]] = {
    ExecuteAction: (
        {"command": "ls", "cwd": "src", "env": {"A": "b"}},
        {
            "command": [*WRITTEN],
            "cwd": [*NO_TEXTS],
            "env": ["A=b", 1, ["A"], {"A": 1}, {"A": None}, {1: "a"}],
        },
    ),
    CreateFileAction: (
        {"file_path": "a.py", "content": "x = 1\n"},
        {"file_path": [*WRITTEN], "content": [*TEXT]},
    ),
    EditAction: (
        {"file_path": "a.py", "find": "1", "replace": "2"},
        {
            "file_path": [*WRITTEN],
            "find": [*TEXT],
            "replace": [*TEXT],
        },
    ),
    ReadAction: ({"source": "a.py"}, {"source": [*WRITTEN]}),
    ChatWithUserAction: ({"prompt": "Why?"}, {"prompt": [*WRITTEN]}),
    ResearchAction: (
        {"queries": ("a", "b")},
        {"queries": [*TEXTS, [], (), [""], ["a", " "]]},
    ),
    ActionPlan: (
        {"actions": (ReadAction("a"),)},
        {"actions": [*NO_LISTS, [], (), ["ls"], [None], [{"action": "read"}], [LOG]]},
    ),
    ActionResult: (
        {
            "action": ReadAction("a"),
            "status": ActionStatus.FAILURE,
            "output": "text \ud800",
            "error": "why",
            "return_code": 3,
        },
        {
            "action": [None, "read", {"action": "read"}, LOG, ReadAction],
            "status": STATUS,
            "output": TEXT,
            "error": TEXT,
            "return_code": [one for one in WHOLE if one is not None],
        },
    ),
    RunSummary: (
        structs.asdict(SUMMARY),
        {
            "status": STATUS,
            "start_time": [None, "today", 0, [SUMMARY.start_time]],
            "duration": [*NUMBER, -0.1, float("nan")],
        },
    ),
    RunEnvironment: (structs.asdict(HERE), {"os": WRITTEN, "cwd": WRITTEN}),
    ExecutionReport: (
        {"run_summary": SUMMARY, "environment": HERE, "action_logs": [LOG]},
        {
            "run_summary": [None, "SUCCESS", {"status": "SUCCESS"}, HERE],
            "environment": [None, "Linux", SUMMARY, {"os": "Linux"}],
            "action_logs": [*NO_LISTS, LOG, ["log"], [None], [LOG, {}], [[LOG]]],
        },
    ),
    CommandResult: (
        {"stdout": "a \ud800", "stderr": "", "return_code": -9, "seconds": 0.5},
        {
            "stdout": TEXT,
            "stderr": TEXT,
            "return_code": WHOLE,
            "seconds": NUMBER,
            "timed_out": FLAG,
            "cut": FLAG,
            "started": FLAG,
            "refused": FLAG,
            "limit": NUMBER,
        },
    ),
    Refused: (
        {"stdout": "", "stderr": "no", "return_code": 126, "allowed": ("ls",)},
        {"return_code": WHOLE, "program": TEXT, "allowed": TEXTS, "hint": TEXT},
    ),
    SearchResult: (
        structs.asdict(FOUND),
        {"title": TEXT, "url": WRITTEN, "snippet": TEXT},
    ),
    QueryResult: (
        {"query": "a", "search_results": (FOUND,)},
        {"query": WRITTEN, "search_results": [*NO_LISTS, [None], ["a"], [HERE]]},
    ),
    SERPReport: (
        {"results": (QueryResult("a"),)},
        {"results": [*NO_LISTS, [None], ["a"], [FOUND]]},
    ),
    FileContext: (
        {"file_path": "a.py", "content": "x", "status": "found", "problem": ""},
        {
            "file_path": WRITTEN,
            "content": NO_TEXTS,
            "status": [None, "FOUND", "missing", "", 1, ["found"]],
            "problem": TEXT,
        },
    ),
    Environment: (structs.asdict(PLACE), dict.fromkeys(structs.asdict(PLACE), TEXT)),
    ContextResult: (
        {
            "repo_tree": "a.py\n",
            "environment_info": PLACE,
            "gitignore_content": "",
            "file_contexts": (FileContext("a", None, "not_found"),),
            "hidden_files": (HiddenFile(".env", "by name"),),
        },
        {
            "repo_tree": TEXT,
            "environment_info": [None, "Linux", {}, HERE],
            "gitignore_content": TEXT,
            "file_contexts": [*NO_LISTS, [None], ["a.py"], [HERE]],
            "hidden_files": [*NO_LISTS, [None], [".env"], [HERE]],
        },
    ),
}
"""By type: valid arguments, and for each of its fields the values that are refused."""
ACTIONS = [*KINDS.values(), ParsePlanAction]
EXAMPLES: dict[type[Struct], dict[str, Any]] = {
    ParsePlanAction: {},
    **{kind: arguments for kind, (arguments, _) in WRONG.items()},
}


def wrong_arguments() -> Iterator[tuple[type[Struct], str, Any]]:
    for kind, (_, by_field) in WRONG.items():
        for name, values in by_field.items():
            for value in values:
                yield kind, name, value


@each_row(("kind", "name", "value"), wrong_arguments())
def test_a_wrong_argument_is_refused_by_its_name(
    kind: type[Struct], name: str, value: Any
) -> None:
    with pytest.raises(WrongValue) as caught:
        kind(**{**EXAMPLES[kind], name: value})
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, TypeError)
    assert caught.value.place[0] == name
    assert str(caught.value).startswith((f"`{name}` ", f"`{name}."))


def test_every_field_has_wrong_values() -> None:
    inherited = {*CommandResult.__struct_fields__} - {"return_code"}
    for kind, (_, by_field) in WRONG.items():
        fields = {*kind.__struct_fields__}
        fields -= inherited if kind is Refused else set()
        assert by_field.keys() == fields, kind


@each_row("kind", EXAMPLES)
def test_valid_values_stay_as_they_are_and_are_frozen(kind: type[Struct]) -> None:
    arguments = EXAMPLES[kind]
    value = kind(**arguments)
    assert {name: getattr(value, name) for name in arguments} == arguments
    if [*arguments] == [*kind.__struct_fields__][: len(arguments)]:
        assert kind(*arguments.values()) == value
    for name in (*arguments, "anything"):
        with pytest.raises(AttributeError):
            setattr(value, name, None)


@each_row("kind", EXAMPLES)
def test_missing_and_unknown_arguments_are_refused(kind: type[Struct]) -> None:
    with pytest.raises(TypeError, match="anything"):
        kind(**EXAMPLES[kind], anything=1)
    for field in structs.fields(kind):
        if field.required:
            others = {**EXAMPLES[kind]}
            del others[field.name]
            with pytest.raises(TypeError, match=field.name):
                kind(**others)


@each_row(
    ("kind", "name", "value"),
    [row for row in wrong_arguments() if row[0] in ACTIONS],
)
def test_decoding_gives_the_fault_of_the_constructor(
    kind: type[Struct], name: str, value: Any
) -> None:
    arguments = {**EXAMPLES[kind], name: value}
    with pytest.raises(WrongValue) as made:
        kind(**arguments)
    with pytest.raises(WrongValue) as decoded:
        read(kind, arguments)
    assert str(decoded.value) == str(made.value)


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from([" ", b"a"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.sampled_from(ACTIONS), st.data())
def test_constructor_and_decoder_agree_about_any_arguments(
    kind: type[Action], data: st.DataObject
) -> None:
    arguments = dict(EXAMPLES[kind])
    for name in arguments:
        if data.draw(st.booleans()):
            arguments[name] = data.draw(ANYTHING)
    assert outcome(lambda: kind(**arguments)) == outcome(lambda: read(kind, arguments))


def outcome(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except WrongValue as error:
        return error.place[:1]


@each_row("kind", [kind for kind in EXAMPLES if kind in ACTIONS])
def test_decoding_gives_the_value_of_the_constructor(kind: type[Struct]) -> None:
    assert read(kind, EXAMPLES[kind]) == kind(**EXAMPLES[kind])


@each_row("kind", ACTIONS)
def test_the_type_of_an_action_is_fixed(kind: type[Action]) -> None:
    action = kind(**EXAMPLES[kind])
    assert action.action_type == action.to_json()["action"]
    assert kind is ParsePlanAction or KINDS[action.action_type] is kind
    with pytest.raises(AttributeError):
        action.action_type = "other"  # type: ignore[misc]


def test_an_action_is_one_of_the_kinds() -> None:
    assert len({kind(**EXAMPLES[kind]).action_type for kind in ACTIONS}) == 7
    with pytest.raises(TypeError, match="abstract"):
        BaseAction()  # type: ignore[abstract]


def test_values_keep_copies_of_what_they_were_given() -> None:
    env, queries, logs = {"A": "b"}, ["a"], [LOG]
    action = ExecuteAction("ls", env=env)
    result = ActionResult(action, ActionStatus.SUCCESS)
    research = ResearchAction(queries)  # type: ignore[arg-type]
    report = ExecutionReport(SUMMARY, HERE, logs)
    env["A"] = "changed"
    queries.append("b")
    logs.append(LOG)
    assert action.env == {"A": "b"}
    assert action.env is not None
    action.env["A"] = "changed"
    assert result.action == ExecuteAction("ls", env={"A": "b"})
    assert research == ResearchAction(("a",))
    assert report.action_logs == [LOG]


@each_row("status", ActionStatus)
def test_a_status_may_be_given_by_its_name(status: ActionStatus) -> None:
    assert ActionResult(ReadAction("a"), str(status)).status is status  # type: ignore[arg-type]
    assert RunSummary(str(status), SUMMARY.start_time, 1).status is status  # type: ignore[arg-type]


ERRORS: list[tuple[Callable[[Any], Exception], str, list[Any]]] = [
    (FileAlreadyExistsError, "file_path", WRITTEN),
    (SearchTextNotFoundError, "content", TEXT),
    (lambda value: SearchTextNotFoundError("a", value), "closest", TEXT),
    (MultipleMatchesFoundError, "content", TEXT),
    (
        lambda value: MultipleMatchesFoundError("a", value),
        "lines",
        [None, "1", 1, ["1"], [True], [1.5]],
    ),
    (WebSearchError, "original_exception", [None, "no network", OSError, 1]),
]


@each_row(
    ("make", "name", "value"),
    [(make, name, value) for make, name, values in ERRORS for value in values],
)
def test_an_error_without_what_it_is_about_cannot_be_made(
    make: Callable[[Any], Exception], name: str, value: Any
) -> None:
    with pytest.raises(WrongValue, match=name):
        make(value)
