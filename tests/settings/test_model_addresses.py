"""An address belongs to the model that it was given with: no hosted model is asked at a
local server that was set for another model, by whatever way both were chosen.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.commands.setting_changes import save_setting
from cdd_agent.events.shell_events import ModelChosen
from cdd_agent.frontend import Nobody
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.session.session import Session
from cdd_agent.settings.config import ROLES, Config
from cdd_agent.settings.model_names import provider_of
from cdd_agent.settings.models import fallbacks_of, of_role
from cdd_agent.settings.writing import only_model
from cdd_agent.wiring.root import Wiring
from tests.support.listening import collect, tell
from tests.support.projects import Sandbox
from tests.support.settings import load_config
from tests.support.tables import each_row

FILE = ".cdd/config.yaml"
LOCAL = (
    "http://127.0.0.1:8080/v1",
    "http://localhost:1234/v1",
    "http://[::1]:8000/v1",
    "http://0.0.0.0:8000/v1",
    "http://192.168.1.20:8080/v1",
    "http://10.0.0.7:8080/v1",
    "http://box.local:8080/v1",
    "http://host.docker.internal:8080/v1",
    "http://llama:8080/v1",
)
GATEWAYS = ("https://llm.shop.example/v1", "http://8.8.8.8:8080/v1")
LOCAL_MODELS = (
    "openai/qwen3-coder",
    "openai/gpt-oss-20b",
    "openai/openai/gpt-oss-120b",
    "openai/SmolLM2 135M.gguf",
    "openai/opus-mini",
    "anthropic/qwen3-coder",
)
HOSTED_MODELS = (
    "openai/gpt-5",
    "openai/gpt-4o-mini",
    "openai/o3",
    "openai/responses/gpt-5.6",
    "openai/chatgpt-4o-latest",
    "openai/ft:gpt-4o:shop::abc",
    "anthropic/claude-sonnet-4-5",
    "gpt-5",
    "o4-mini",
    "claude-opus-4-1",
    "gemini/gemini-2.5-pro",
    "openrouter/anthropic/claude-sonnet-4",
    "deepseek/deepseek-chat",
    "mistral/mistral-large-latest",
    "xai/grok-4",
)


def configured(tmp_path: Path, **settings: object) -> Config:
    (tmp_path / ".cdd").mkdir(exist_ok=True)
    (tmp_path / FILE).write_text(json.dumps(settings))
    return load_config(tmp_path, {}, {})


def test_no_hosted_model_of_a_role_or_a_fallback_goes_to_a_local_server(
    tmp_path: Path,
) -> None:
    wrong = []
    for main, hosted in product(LOCAL_MODELS, HOSTED_MODELS):
        config = configured(
            tmp_path,
            model=main,
            api_base=LOCAL[0],
            models=dict.fromkeys(ROLES, hosted),
            fallbacks=[hosted],
        )
        asked = [
            *(of_role(config, role) for role in ROLES),
            *fallbacks_of(config),
            only_model(config, hosted, None),
        ]
        wrong += [(main, hosted) for other in asked if other.api_base is not None]
        assert (config.model, config.api_base) == (main, LOCAL[0])
    assert wrong == []


@each_row("address", LOCAL)
def test_every_address_of_this_computer_and_its_network_is_local(
    tmp_path: Path, address: str
) -> None:
    models = {"chat": "openai/gpt-5", "planner": "openai/other-local"}
    config = configured(tmp_path, model="openai/qwen", api_base=address, models=models)
    assert of_role(config, "chat").api_base is None
    assert of_role(config, "planner").api_base == address


@each_row(
    ("main", "address", "other", "is_kept"),
    [
        # another model of the same local server
        *(("openai/qwen", address, "openai/llama", True) for address in LOCAL),
        ("anthropic/qwen", LOCAL[0], "anthropic/llama", True),
        ("ollama/qwen", "http://gpu:11434", "ollama/llama", True),
        # a gateway, wherever it is: it was given with a hosted model, or is remote
        ("openai/gpt-4o", LOCAL[0], "openai/gpt-5", True),
        ("gpt-4o", LOCAL[0], "openai/gpt-5", True),
        ("openai/gpt-4o", LOCAL[0], "o3", True),
        ("openai/gpt-4o", LOCAL[0], "openai/house-model", True),
        *(("openai/house", address, "openai/gpt-5", True) for address in GATEWAYS),
        # another provider
        ("openai/qwen", LOCAL[0], "anthropic/qwen", False),
        ("openai/qwen", LOCAL[0], "ollama/qwen", False),
        ("openai/gpt-5", GATEWAYS[0], "claude-opus-4-1", False),
        ("openai/gpt-5", GATEWAYS[0], "openrouter/openai/gpt-5", False),
    ],
)
def test_a_model_of_the_same_server_keeps_its_address(
    tmp_path: Path, main: str, address: str, other: str, is_kept: bool
) -> None:
    config = configured(
        tmp_path, model=main, api_base=address, models={"planner": other}
    )
    assert of_role(config, "planner").api_base == (address if is_kept else None)


@each_row(
    "settings",
    [
        {"context_window": 9000},
        {"pictures": True},
        {"request": {"headers": {"X-Key": "secret"}}},
    ],
)
def test_what_is_meant_for_the_local_server_stays_there_too(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    config = configured(
        tmp_path,
        model="openai/qwen",
        api_base=LOCAL[0],
        models={"chat": "openai/gpt-5"},
        **settings,
    )
    chat = of_role(config, "chat")
    assert (chat.context_window, chat.pictures, chat.request) == (
        Config().context_window,
        Config().pictures,
        Config().request,
    )


HERE, THERE = LOCAL[0], GATEWAYS[0]
QWEN, GPT, CLAUDE = "openai/qwen", "openai/gpt-5", "anthropic/claude-sonnet-4-5"
Layer = Mapping[str, str]


@each_row(
    ("user", "project", "environment", "flags", "asked"),
    [
        # the address of an earlier layer's model
        ({"model": QWEN, "api_base": HERE}, {"model": GPT}, {}, {}, (GPT, None)),
        ({"model": QWEN, "api_base": HERE}, {"model": CLAUDE}, {}, {}, (CLAUDE, None)),
        ({"model": QWEN, "api_base": HERE}, {}, {"model": GPT}, {}, (GPT, None)),
        ({"model": QWEN, "api_base": HERE}, {}, {}, {"model": GPT}, (GPT, None)),
        ({}, {"model": QWEN, "api_base": HERE}, {"model": GPT}, {}, (GPT, None)),
        ({}, {"model": QWEN, "api_base": HERE}, {}, {"model": CLAUDE}, (CLAUDE, None)),
        ({}, {"model": QWEN, "api_base": HERE}, {}, {"model": GPT}, (GPT, None)),
        ({}, {}, {"model": QWEN, "api_base": HERE}, {"model": GPT}, (GPT, None)),
        ({"model": QWEN}, {"api_base": HERE}, {"model": GPT}, {}, (GPT, None)),
        # another model of that server
        (
            {"model": QWEN, "api_base": HERE},
            {"model": "openai/llama"},
            {},
            {},
            ("openai/llama", HERE),
        ),
        (
            {},
            {"model": QWEN, "api_base": HERE},
            {},
            {"model": "openai/llama"},
            ("openai/llama", HERE),
        ),
        ({"model": QWEN, "api_base": THERE}, {"model": GPT}, {}, {}, (GPT, THERE)),
        # an address that is given alone is for whatever is asked
        ({"api_base": HERE}, {"model": QWEN}, {}, {}, (QWEN, HERE)),
        ({"api_base": THERE}, {"model": CLAUDE}, {}, {}, (CLAUDE, THERE)),
        ({}, {"model": GPT}, {"api_base": HERE}, {}, (GPT, HERE)),
        ({}, {"model": QWEN}, {"api_base": HERE}, {"model": GPT}, (GPT, HERE)),
        ({}, {"model": QWEN}, {}, {"api_base": HERE}, (QWEN, HERE)),
        # both together
        (
            {"model": QWEN, "api_base": HERE},
            {"model": GPT, "api_base": THERE},
            {},
            {},
            (GPT, THERE),
        ),
        ({}, {"model": QWEN, "api_base": HERE}, {"model": QWEN}, {}, (QWEN, HERE)),
    ],
)
def test_a_later_layer_s_model_is_not_asked_at_an_earlier_model_s_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    user: Layer,
    project: Layer,
    environment: Layer,
    flags: Layer,
    asked: tuple[str, str | None],
) -> None:
    monkeypatch.setenv("CDD_USER_CONFIG", str(tmp_path / "user.yaml"))
    (tmp_path / "user.yaml").write_text(json.dumps(user))
    (tmp_path / ".cdd").mkdir()
    (tmp_path / FILE).write_text(json.dumps(project))
    variables = {f"CDD_{name.upper()}": value for name, value in environment.items()}
    config = load_config(tmp_path, flags, variables)
    assert (config.model, config.api_base) == asked


def test_headers_for_an_earlier_layer_s_server_are_not_sent_elsewhere(
    tmp_path: Path,
) -> None:
    configured(
        tmp_path,
        model=QWEN,
        api_base=HERE,
        context_window=9000,
        request={"headers": {"X-Key": "secret"}},
    )
    config = load_config(tmp_path, {"model": CLAUDE}, {})
    assert (config.request, config.context_window) == (Config().request, None)


def session_in(sandbox: Sandbox, *servers: LocalServer) -> Session:
    async def find_servers() -> Sequence[LocalServer]:
        return servers

    return Wiring(sandbox.project, Nobody(), tell, find_servers).session


@each_row(
    ("role", "name", "saved", "where"),
    [
        (role, name, saved, where)
        for role in ("", "planner", "chat")
        for name in (GPT, CLAUDE, "gpt-5", "openai/o3")
        for saved in (False, True)
        for where in ("project", "role", "environment", "session")
    ],
)
async def test_a_hosted_model_that_is_chosen_is_asked_at_its_provider(
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    name: str,
    saved: bool,
    where: str,
) -> None:
    local = {"model": QWEN, "api_base": HERE}
    (sandbox.root / ".cdd").mkdir()
    of_all = f"model: {QWEN}\napi_base: {HERE}\n"
    of_role_too = f"{of_all}models:\n  {role or 'executor'}: {json.dumps(local)}\n"
    content = {"project": of_all, "role": of_role_too}.get(where, "")
    (sandbox.root / FILE).write_text(content)
    if where == "environment":
        monkeypatch.setenv("CDD_MODEL", QWEN)
        monkeypatch.setenv("CDD_API_BASE", HERE)
    session = session_in(sandbox)
    if where == "session":
        await collect(handle(session, f"/model {QWEN} {HERE}"))

    line = " ".join(filter(None, ("/model", role, name, "--save" * saved)))
    events = await collect(handle(session, line))

    (chosen,) = [event for event in events if isinstance(event, ModelChosen)]
    assert (chosen.model, chosen.api_base) == (name, None)
    later = load_config(sandbox.root, {})
    for config in [session.project.config] + [later] * saved:
        if role:
            assert where == "session" or config.api_base == HERE
            asked = of_role(config, role)  # type: ignore[arg-type]
        elif config is later and where == "environment":
            continue  # the environment goes before the file, and that is said
        else:
            asked = config
        assert (asked.model, asked.api_base) == (name, None)


@each_row("role", ROLES)
async def test_a_saved_role_stays_at_its_provider_when_a_local_model_is_chosen_for_all(
    sandbox: Sandbox, role: str
) -> None:
    session = session_in(sandbox)
    await collect(handle(session, f"/model {CLAUDE} --save"))
    await collect(handle(session, f"/model {role} {GPT} --save"))
    await collect(handle(session, f"/model {QWEN} {HERE} --save"))
    for config in (session.project.config, load_config(sandbox.root, {})):
        assert of_role(config, role).api_base is None  # type: ignore[arg-type]
        assert (config.model, config.api_base) == (QWEN, HERE)


async def test_a_model_chosen_among_the_settings_leaves_the_local_server(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / FILE).write_text(f"model: {QWEN}\napi_base: {HERE}\n")
    session = session_in(sandbox)
    assert await save_setting(session, "model", "openai/llama") == ""
    assert session.project.config.api_base == HERE
    assert "`api_base`" in await save_setting(session, "model", GPT)
    for config in (session.project.config, load_config(sandbox.root, {})):
        assert (config.model, config.api_base) == (GPT, None)


@each_row(
    ("model", "provider"),
    [
        ("openai/gpt-5", "openai"),
        ("gpt-5", "openai"),
        ("o3-mini", "openai"),
        ("claude-opus-4-1", "anthropic"),
        ("script:a/b.yaml", "script:a"),
        ("mystery", "mystery"),
        (None, ""),
    ],
)
def test_the_provider_of_a_model_string(model: str | None, provider: str) -> None:
    assert provider_of(model) == provider
