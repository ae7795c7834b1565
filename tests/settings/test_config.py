"""Settings: which wins, and what is said about wrong ones."""

import contextlib
import json
import re
import sys
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, to_builtins
from msgspec.structs import replace
from platformdirs import user_config_path
from rich.pretty import pretty_repr

from cdd_agent.errors import BadInput
from cdd_agent.llm.direct.protocol import Call
from cdd_agent.llm.options import ModelOptions
from cdd_agent.settings.config import Commands, Config, OwnRequest, runs_others
from cdd_agent.settings.models import of_role
from cdd_agent.settings.reading import user_file
from cdd_agent.settings.writing import changed_text, with_setting
from cdd_agent.values.guarded_yaml import read_mapping
from cdd_agent.values.typed_values import read
from tests.support.settings import load_config
from tests.support.tables import each_row

ALL = """\
model: anthropic/claude-sonnet-4-5
api_base: null
tickets_dir: tickets
test_command: null
test_timeout: 300
max_attempts: 3
approval: edits
commit: off
require: off
commands: {mode: safe, allow: [], timeout: 60, hide_env: [], pass_env: []}
budget: {usd: null, tokens: null}
effort: null
temperature: null
max_output_tokens: null
request: {body: {}, headers: {}}
models: {planner: {}, executor: {}, chat: {}, socrates: {}}
"""


def write(root: Path, text: str) -> Path:
    (root / ".cdd").mkdir(parents=True, exist_ok=True)
    (root / ".cdd/config.yaml").write_text(text)
    return root


def test_without_any_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_config(tmp_path, {}) == Config()


def test_every_documented_key_is_accepted(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, ALL), {}) == Config(
        model="anthropic/claude-sonnet-4-5"
    )


@each_row("text", ["", "# nothing\n", "---\n", "\ufeffmodel: x\n"])
def test_an_empty_file_or_a_byte_order_mark_is_fine(tmp_path: Path, text: str) -> None:
    assert load_config(write(tmp_path, text), {}).max_attempts == 3


def test_the_later_layer_wins_key_by_key(tmp_path: Path) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(
        "model: users\napproval: auto\ntest_timeout: 1\nmax_attempts: 9\n"
    )
    write(tmp_path, "model: projects\ntest_timeout: 2\nmax_attempts: 8\n")
    environment = {
        "CDD_MODEL": "environments",
        "CDD_MAX_ATTEMPTS": "7",
        "CDD_API_BASE": "",
    }

    config = load_config(tmp_path, {"model": "flags", "api_base": None}, environment)

    assert config == Config(
        model="flags", approval="auto", test_timeout=2, max_attempts=7
    )


def test_how_a_model_is_asked_comes_from_variables_too(tmp_path: Path) -> None:
    environment = {
        "CDD_EFFORT": "high",
        "CDD_TEMPERATURE": "0.5",
        "CDD_MAX_OUTPUT_TOKENS": "9000",
    }
    config = load_config(tmp_path, {}, environment)
    assert (config.effort, config.temperature, config.max_output_tokens) == (
        "high",
        0.5,
        9000,
    )
    with pytest.raises(BadInput, match=r"^CDD_EFFORT: `effort` is not one of"):
        load_config(tmp_path, {}, {"CDD_EFFORT": "much"})


def test_a_header_that_is_refused_is_not_shown_as_it_may_be_a_key(
    tmp_path: Path,
) -> None:
    write(tmp_path, 'request: {headers: {X-Key: "hidden\\nhidden"}}\n')
    with pytest.raises(BadInput) as caught:
        load_config(tmp_path, {})
    assert "hidden" not in caught.value.message


OF_ALL = Config(
    model="openai/a",
    api_base="http://127.0.0.1:1/v1",
    effort="low",
    context_window=9000,
    request=OwnRequest(headers={"X-Key": "secret"}),
)


@each_row(
    ("own", "what_differs"),
    [
        ({}, {}),
        ({"effort": "high"}, {"effort": "high"}),
        ("openai/b", {"model": "openai/b"}),
        (
            "anthropic/c",
            {
                "model": "anthropic/c",
                "api_base": None,
                "context_window": None,
                "request": OwnRequest(),
            },
        ),
        (
            {"api_base": "http://127.0.0.1:2/v1", "context_window": 5000},
            {
                "api_base": "http://127.0.0.1:2/v1",
                "context_window": 5000,
                "request": OwnRequest(),
            },
        ),
        (
            {"model": "openai/b", "api_base": None, "effort": None},
            {"model": "openai/b", "api_base": None, "effort": None}
            | {"context_window": None, "request": OwnRequest()},
        ),
    ],
)
def test_a_role_has_the_settings_of_all_but_for_its_own_and_for_those_of_another_server(
    own: object, what_differs: dict[str, object]
) -> None:
    config = with_setting(OF_ALL, "models.planner", own)
    planner = of_role(config, "planner")
    assert planner == replace(OF_ALL, **what_differs)
    assert of_role(planner, "planner") == planner
    assert of_role(config, "executor") == OF_ALL


def test_sections_too_are_merged_key_by_key_and_of_lists_the_later_wins(
    tmp_path: Path,
) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text(
        "commands: {allow: [npm, go], timeout: 5, hide_env: ['AWS_*']}\n"
    )
    write(tmp_path, "commands: {mode: ask, allow: [cargo]}\n")
    assert load_config(tmp_path, {}, {}).commands == Commands(
        mode="ask", allow=("cargo",), timeout=5, hide_env=("AWS_*",)
    )


@each_row(
    "address",
    [
        "localhost:1234",
        "http//foo",
        "foo",
        "ftp://foo/",
        "http://",
        "http:///v1",
        "http://[::1",
        "http://foo:99999/v1",
        "http://foo:port/v1",
        "http://a..b/v1",
        "http://foo/a b",
        # these look as if the second host was asked
        "https://evil.example?@api.openai.com/v1",
        "https://evil.example#@api.openai.com/v1",
        "https://evil.example:443?@api.openai.com/v1",
        "https://evil.example\\@api.openai.com/v1",
        "http://foo/\x07",
    ],
)
def test_an_api_base_that_is_no_address_is_refused_wherever_it_stands(
    tmp_path: Path, address: str
) -> None:
    write(tmp_path, f"model: openai/x\napi_base: {json.dumps(address)}\n")
    with pytest.raises(
        BadInput,
        match=r"config\.yaml:2: `api_base`: .* begins with http://",
    ):
        load_config(tmp_path, {})
    write(tmp_path, "")
    with pytest.raises(BadInput, match=r"^CDD_API_BASE: "):
        load_config(tmp_path, {}, {"CDD_API_BASE": address})
    with pytest.raises(BadInput, match=r"^--api-base: "):
        load_config(tmp_path, {"api_base": address}, {})


@each_row(
    "address",
    ["http://127.0.0.1:11434/v1", "https://models.example", "http://[::1]:8000/v1/"],
)
def test_an_api_base_may_be_any_web_address(tmp_path: Path, address: str) -> None:
    assert load_config(tmp_path, {"api_base": f" {address} "}, {}).api_base == address


def test_a_host_with_letters_that_look_alike_is_named_as_it_is_asked(
    tmp_path: Path,
) -> None:
    address = "https://me:x@\u0430pi.openai.com:444/v1"
    config = load_config(tmp_path, {"api_base": address}, {})
    assert config.api_base == "https://me:x@xn--pi-6kc.openai.com:444/v1"


@each_row("name", ["CDD_ENABLE_UNSAFE_COMMANDS", "HIVE_ENABLE_UNSAFE_COMMANDS"])
@each_row(
    ("value", "mode"),
    [
        ("true", "unsafe"),
        ("TRUE", "unsafe"),
        ("1", "unsafe"),
        ("yes", "unsafe"),
        (" true ", "unsafe"),
    ]
    + [(value, "ask") for value in ("", "false", "0", "no", "on", "truee")],
)
def test_a_switch_makes_commands_unsafe_whatever_the_files_say(
    tmp_path: Path, name: str, value: str, mode: str
) -> None:
    write(tmp_path, "commands: {mode: ask, timeout: 5}\n")
    commands = load_config(tmp_path, {}, {name: value}).commands
    assert (commands.mode, commands.timeout) == (mode, 5)


def test_a_switch_that_is_off_leaves_an_unsafe_file_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, "commands: {mode: unsafe}\n")
    assert (
        load_config(tmp_path, {}, {"CDD_ENABLE_UNSAFE_COMMANDS": "false"}).commands.mode
        == "unsafe"
    )


RUN_OTHERS = """
    env xargs sudo doas nohup nice ionice time timeout stdbuf setsid exec eval command
    builtin busybox chroot unshare script watch parallel strace sh bash dash zsh ksh
    fish csh tcsh cmd powershell pwsh Bash bash.exe CMD.EXE pwsh.exe
"""


@each_row("name", RUN_OTHERS.split())
def test_what_runs_anything_may_not_be_on_the_list(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=f"`{name}`"):
        load_config(write(tmp_path, f"commands: {{allow: [npm, {name}]}}\n"), {})


@each_row(
    "name",
    [
        "npm",
        "g++",
        "clang-format",
        "php8.2",
        "go",
        "7z",
        "git",
        "cargo.exe",
        "shellcheck",
    ],
)
def test_ordinary_programs_may_be_on_the_list(tmp_path: Path, name: str) -> None:
    assert load_config(
        write(tmp_path, f"commands: {{allow: [{name}]}}\n"), {}
    ).commands.allow == (name,)
    assert not runs_others(name)


@each_row(
    ("text", "line", "words"),
    [
        (
            "model: x\nmodle: y\n",
            2,
            "`modle` is unknown (did you mean `model` or `models`?)",
        ),
        ("x: y\n", 1, "`x` is unknown; allowed are `model`, `api_base`, "),
        (
            "budget:\n  eur: 3\n",
            2,
            "`budget.eur` is unknown; allowed are `usd`, `tokens`",
        ),
        ("\n\napproval: maybe\n", 3, "not one of `ask`, `auto`, `edits`"),
        (
            "max_attempts: 0\n",
            1,
            "`max_attempts` is not a whole number (at least 1, at most 100)",
        ),
        ("test_timeout: soon\n", 1, "`test_timeout` is not a number (over 0"),
        ("model: [a]\n", 1, "a text"),
        (
            "commands:\n  mode: safe\n  alow: []\n",
            3,
            "`commands.alow` is unknown (did you mean `allow`?)",
        ),
        (
            "approval: yes\n",
            1,
            "`approval` is not one of `ask`, `auto`, `edits` (in YAML, yes and on mean",
        ),
        (
            "commands: 3\n",
            1,
            "`commands` is not an object with `mode`, `allow`, `timeout`, `hide_env`",
        ),
        ("commands:\n  mode: yolo\n", 2, "not one of `ask`, `safe`, `unsafe`"),
        (
            "commands:\n  timeout: 0\n",
            2,
            "`commands.timeout` is not a number (over 0, at most 86,400)",
        ),
        ("commands:\n  timeout: 86401\n", 2, "at most 86,400"),
        ("commands:\n  allow: ls\n", 2, "the name of a program"),
        ("commands:\n  allow: [3]\n", 2, "the name of a program"),
        (
            "commands:\n  allow: [npm, ./run.sh]\n",
            2,
            "`commands.allow.1` is not the name of a program, without a folder",
        ),
        (
            "commands:\n  allow: [npm test]\n",
            2,
            "without a folder, spaces or arguments",
        ),
        ("commands:\n  allow: ['']\n", 2, "`commands.allow.0` is empty"),
        (
            "commands:\n  allow: [bash]\n",
            2,
            "so every command would be allowed; use `commands.mode: ask`",
        ),
        ("commands:\n  hide_env: SEAL\n", 2, "the name of a variable"),
        ("commands:\n  pass_env: ['A=1']\n", 2, "the name of a variable"),
        ("commit: all\n", 1, "not one of `off`, `step`"),
        (
            "budget:\n  usd: 0\n",
            2,
            "`budget.usd` is not a number (over 0, at most 1,000,000,000) or null",
        ),
        (
            "budget:\n  usd: .inf\n",
            2,
            "`budget.usd` is not a number (over 0, at most 1,000,000,000) or null",
        ),
        ("budget:\n  tokens: many\n", 2, "a whole number (over 0) or null"),
        (
            "effort: maximal\n",
            1,
            "not one of `high`, `low`, `max`, `medium`, `none` or null",
        ),
        (
            "fallbacks:\n- {model: a/b, effort: much}\n",
            1,
            "not one of `high`, `low`, `max`, `medium`, `none` or null",
        ),
        ("temperature: 3\n", 1, "a number (at least 0, at most 2) or null"),
        ("temperature: .nan\n", 1, "a number (at least 0, at most 2) or null"),
        ("max_output_tokens: 0\n", 1, "a whole number (at least 1) or null"),
        (
            "request:\n  bodies: {}\n",
            2,
            "`request.bodies` is unknown; allowed are `body`, `headers`",
        ),
        ("request:\n  body: 3\n", 2, "`request.body` is not an object"),
        ("request:\n  body: {messages: []}\n", 2, "cdd writes messages itself"),
        ("request:\n  body: {day: 2026-11-22}\n", 2, "the value must be JSON"),
        ("request:\n  body: {top_p: .inf}\n", 2, "the value must be JSON"),
        (
            "request:\n  headers: {X-Team: 3}\n",
            2,
            "a text of ASCII characters on one line",
        ),
        (
            "request:\n  headers:\n    X Team: a\n",
            2,
            "`request.headers` has a key that is not the name of an HTTP header",
        ),
        ('request:\n  headers:\n    X-Team: "a\\nb"\n', 2, "on one line"),
        (
            "models: big\n",
            1,
            "an object with `planner`, `executor`, `chat`, `socrates`",
        ),
        ("commands: {1: a}\n", 1, "`commands.1` is unknown; allowed are `mode`"),
        (
            "models:\n  planer: x\n",
            2,
            "`models.planer` is unknown (did you mean `planner`?)",
        ),
        ("models:\n  chat: 3\n", 2, "`models.chat` is not an object with `model`, "),
        ("models:\n  chat: ''\n", 2, "`models.chat.model` is empty"),
        (
            "models:\n  chat:\n    efort: low\n",
            3,
            "`models.chat.efort` is unknown (did you mean `effort`?)",
        ),
        (
            "models:\n  chat:\n    temperature: 9\n",
            3,
            "a number (at least 0, at most 2) or null",
        ),
        (
            "models:\n  chat:\n    request:\n      body: 1\n",
            4,
            "`models.chat.request.body` is not an object",
        ),
        ("a: [\n", 2, "not YAML"),
        ("- a\n", 1, "a config is a mapping of keys"),
        ("model: *nothing\n", 1, "undefined alias"),
    ],
)
def test_a_wrong_setting_names_file_line_and_what_is_allowed(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        load_config(write(tmp_path, text), {})
    assert f"config.yaml:{line}" in caught.value.message
    assert words in caught.value.message


def test_the_faults_of_all_settings_are_named_at_once_a_line_each(
    tmp_path: Path,
) -> None:
    write(
        tmp_path,
        "modle: y\njobs: 0\ncommands:\n  alow: []\n  allow: [npm, bash, ./x]\n",
    )
    with pytest.raises(BadInput) as caught:
        load_config(tmp_path, {})
    places = [
        line.partition("config.yaml:")[2].partition(" is not")[0]
        for line in caught.value.message.splitlines()
    ]
    assert sorted(re.split("[;(]", place)[0].strip() for place in places) == [
        "1: `modle` is unknown",
        "2: `jobs`",
        "4: `commands.alow` is unknown",
        "5: `commands.allow.2`",
    ]


@each_row(
    ("key", "text", "value"),
    [
        ("max_attempts", "7", 7),
        ("max_attempts", "7.0", 7),
        ("test_timeout", "30", 30.0),
        ("test_timeout", "0.5", 0.5),
        ("test_timeout", "1e2", 100.0),
        ("pictures", "true", True),
        ("pictures", "off", False),
        ("tool_calls", "off", "off"),
    ],
)
def test_numbers_and_yes_and_no_may_be_texts_as_variables_and_flags_are(
    tmp_path: Path, key: str, text: str, value: object
) -> None:
    for config in (
        load_config(tmp_path, {}, {f"CDD_{key.upper()}": text}),
        load_config(tmp_path, {key: text}, {}),
        load_config(write(tmp_path, f'{key}: "{text}"\n'), {}, {}),
    ):
        assert getattr(config, key) == value
        assert type(getattr(config, key)) is type(value)


@each_row(
    ("text", "setting", "value"),
    [
        ("commit: off\n", "commit", "off"),
        ("require: no\n", "require", "off"),
        ("tool_calls: on\n", "tool_calls", "on"),
        ("notifications: {desktop: off}\n", "notifications.desktop", "off"),
        ("notifications: {progress: yes}\n", "notifications.progress", "on"),
        ("test_timeout: 5\n", "test_timeout", 5.0),
        ("max_attempts: 5.0\n", "max_attempts", 5),
    ],
)
def test_what_yaml_takes_for_something_else_is_what_was_meant(
    tmp_path: Path, text: str, setting: str, value: object
) -> None:
    assert attrgetter(setting)(load_config(write(tmp_path, text), {}, {})) == value


def test_a_wrong_variable_or_flag_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="CDD_MAX_ATTEMPTS"):
        load_config(tmp_path, {}, {"CDD_MAX_ATTEMPTS": "many"})
    with pytest.raises(BadInput, match="--max-attempts"):
        load_config(tmp_path, {"max_attempts": 0}, {})


def test_what_a_request_has_besides_is_in_no_traceback(tmp_path: Path) -> None:
    content, secret = {"X-Team": "a-secret-word"}, "a-secret-word"
    text = json.dumps(
        {"model": "openai/x", "request": {"headers": content, "body": content}}
    )
    config = load_config(write(tmp_path, text), {}, {})
    for value in (
        config,
        config.request,
        ModelOptions(body=content, headers=content),
        Call({}, content),
    ):
        assert secret not in repr(value) + pretty_repr(value)
    assert "model='openai/x'" in repr(config)


def test_all_wrong_variables_are_named(tmp_path: Path) -> None:
    environment = {
        "CDD_MAX_ATTEMPTS": "many",
        "CDD_MODEL": "right",
        "CDD_APPROVAL": "perhaps",
    }
    with pytest.raises(BadInput) as refused:
        load_config(tmp_path, {}, environment)
    complaints = refused.value.message.splitlines()
    assert [line.partition(":")[0] for line in complaints] == [
        "CDD_MAX_ATTEMPTS",
        "CDD_APPROVAL",
    ]


@each_row(
    ("name", "meant"),
    [
        ("CDD_MODLE", "did you mean CDD_MODEL?"),
        ("CDD_TEST_CMD", "did you mean CDD_TEST_COMMAND?"),
        ("CDD_MAX_TOKENS", "did you mean CDD_MAX_OUTPUT_TOKENS?"),
        ("CDD_USERCONFIG", "did you mean CDD_USER_CONFIG?"),
        ("CDD_UNSAFE_COMMANDS", "did you mean CDD_ENABLE_UNSAFE_COMMANDS?"),
        ("CDD_COMMIT", "set `commit` in a settings file instead"),
        ("CDD_BUDGET_USD", "set `budget.usd` in a settings file instead"),
    ],
)
def test_a_misspelt_variable_is_told(tmp_path: Path, name: str, meant: str) -> None:
    with pytest.raises(BadInput) as refused:
        load_config(tmp_path, {}, {name: "x", "CDD_APPROVAL": "perhaps"})
    complaints = refused.value.message.splitlines()
    assert complaints[0] == f"{name} is not a variable of cdd; {meant}"
    assert complaints[1].startswith("CDD_APPROVAL: ")
    assert load_config(tmp_path, {}, {name: ""}) == Config()


@each_row(
    "name", ["CDD_HOME", "CDD_MODULE", "CDD_VERSION", "CDDMODEL", "CDD_", "CDD_DEBUG"]
)
def test_a_variable_that_is_like_none_may_be_another_programs(
    tmp_path: Path, name: str
) -> None:
    assert load_config(tmp_path, {}, {name: "x"}) == Config()


def test_every_variable_that_is_read_anywhere_is_known(tmp_path: Path) -> None:
    code = "".join(
        path.read_text()
        for path in (Path(__file__).parents[2] / "cdd_agent").rglob("*.py")
    )
    names = dict.fromkeys(re.findall(r'"(CDD_[A-Z_]+)"', code), "1")
    assert len(names) > 4
    assert load_config(tmp_path, {}, names).commands.mode == "unsafe"


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    write(tmp_path, "")
    (tmp_path / ".cdd/config.yaml").write_bytes(b"model: \xff\n")
    with pytest.raises(BadInput, match="not UTF-8"):
        load_config(tmp_path, {})


@given(st.text(max_size=60))
def test_any_text_is_a_config_or_bad_input(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    root = write(tmp_path_factory.mktemp("any"), "")
    (root / ".cdd/config.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(BadInput):
        assert isinstance(load_config(root, {}, {}), Config)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.text(max_size=9)
    | st.just("\ud83d"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def settings(draw: st.DrawFn) -> dict[object, object]:
    """Something for some of the settings, of sections too, and perhaps for others that
    there are not.
    """
    chosen = dict[object, object]()
    for name in draw(
        st.sets(st.sampled_from(Config.__struct_fields__), min_size=1, max_size=4)
    ):
        section = getattr(Config(), name)
        own = section.__struct_fields__ if isinstance(section, Struct) else ()
        within = st.dictionaries(
            st.sampled_from(own) if own else st.text(max_size=5), VALUES, max_size=3
        )
        chosen[name] = draw(within | VALUES if own else VALUES)
    return chosen | draw(
        st.dictionaries(
            VALUES.filter(lambda key: isinstance(key, str | int)), VALUES, max_size=1
        )
    )


@given(settings())
def test_any_value_of_any_setting_is_taken_or_told_with_its_name(
    chosen: dict[object, object],
) -> None:
    for name, value in chosen.items():
        section = getattr(Config(), str(name), None)
        inside = (
            value if isinstance(section, Struct) and isinstance(value, dict) else {}
        )
        for whole, each in (
            [(str(name), value)]
            if not inside
            else [(f"{name}.{key}", inside[key]) for key in inside]
        ):
            with contextlib.suppress(BadInput):
                config = with_setting(Config(), whole, each)
                assert read(Config, to_builtins(config)) == config


DIGITS = f"0x{'f' * 6_000}"
HOSTILE = {
    "lists": "[" * 50_000,
    "maps": "{a: " * 5_000,
    "huge": "a: b\n" * 300_000,
    "a number that Python does not print": f"max_attempts: {DIGITS}",
    "and one within": f"request: {{body: {{a: {DIGITS}}}}}",
}


@each_row("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_quickly(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=r"config\.yaml"):
        load_config(write(tmp_path, text), {})


@each_row(
    ("before", "after"),
    [
        ("", "model: openai/a:1\n"),
        ("# mine\nmax_attempts: 2", "# mine\nmax_attempts: 2\nmodel: openai/a:1\n"),
        (
            "model: x/y  # why\nrecord: null\n",
            "model: openai/a:1  # why\nrecord: null\n",
        ),
        ('model: "x/y"\n', "model: openai/a:1\n"),
        ("model:\n", "model: openai/a:1\n"),
        ("model: null # none\n", "model: openai/a:1 # none\n"),
        ("#model: x\nrecord: null\n", "#model: x\nmodel: openai/a:1\nrecord: null\n"),
        (
            "# model: x\r\nrecord: a\r\n",
            "# model: x\r\nmodel: openai/a:1\r\nrecord: a\r\n",
        ),
        ("{model: x, record: a}\n", "{model: openai/a:1, record: a}\n"),
        ("record: 'ä 🚀'\nmodel: x\n", "record: 'ä 🚀'\nmodel: openai/a:1\n"),
        (
            "record: a # \u2028 \x85\rmodel: x # mine\r",
            "record: a # \u2028 \x85\rmodel: openai/a:1 # mine\r",
        ),
    ],
)
def test_a_setting_is_changed_in_its_line_and_nothing_else(
    before: str, after: str
) -> None:
    assert changed_text(before, "config.yaml", {"model": "openai/a:1"}) == after


@each_row(
    "text",
    [
        "{record: a}\n",
        "record: a\n...\n",
        "model: >\n  x/y\n",
        "record: 'a\n# model: x\n  b'\n",
    ],
)
def test_a_file_that_cannot_be_changed_line_by_line_is_told_what_to_write(
    text: str,
) -> None:
    with pytest.raises(BadInput, match="was not changed") as refused:
        changed_text(text, "config.yaml", {"model": "openai/a:1"})
    assert refused.value.hint.splitlines()[1:] == ["model: openai/a:1"]


@given(
    value=st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1),
    text=st.sampled_from(["", "model: a\n"]),
)
def test_any_name_is_written_so_that_it_is_read_as_itself(
    value: str, text: str
) -> None:
    written = changed_text(text, "config.yaml", {"model": value, "api_base": None})
    entries = read_mapping(written, "config.yaml", "a config")
    assert {key: entry.value("config.yaml") for key, entry in entries.items()} == {
        "model": value,
        "api_base": None,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it is asked itself")
@each_row("told", ["", "  ", "relative/folder", "/somewhere/else"])
@each_row("home", ["/home/ada", "", "relative"])
def test_the_users_own_settings_are_where_platformdirs_has_them(
    told: str, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CDD_USER_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", told)
    monkeypatch.setenv("HOME", home)
    assert user_file() == user_config_path("cdd-agent") / "config.yaml"
