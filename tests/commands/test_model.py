"""/model: what is asked now, what else there is, and choosing it, for the session or
for the project.
"""

import json
import re
from collections.abc import Sequence

import pytest

from cdd_agent.commands.model_setup import CHOOSE_ONE
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events.dialogue_events import ReplyDelta
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.shell_events import ModelChosen, ModelsFound, ScreenAsked
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.frontend import Nobody
from cdd_agent.llm.local_servers import USUAL_PORTS, LocalServer
from cdd_agent.session.session import Session
from cdd_agent.settings.models import of_role
from cdd_agent.wiring.root import Wiring
from cdd_agent.wording.describe import describe
from tests.commands.completions import completions
from tests.support.listening import collect, tell, told_to
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.settings import load_config
from tests.support.tables import each_row

ODD = "SmolLM2 135M.gguf"
OWN = "max_attempts: 5  # mine"
OLLAMA = LocalServer(
    "Ollama", "http://127.0.0.1:11434/v1", ("qwen3-coder:30b", "llama3.2")
)
LLAMA_CPP = LocalServer("llama.cpp", "http://127.0.0.1:8080/v1", (ODD,))
FILE = ".cdd/config.yaml"


def session_in(sandbox: Sandbox, *servers: LocalServer) -> Session:
    async def find_servers() -> Sequence[LocalServer]:
        return servers

    return Wiring(sandbox.project, Nobody(), tell, find_servers).session


async def say(session: Session, line: str) -> list[Event]:
    return await collect(handle(session, line))


async def overview(session: Session) -> str:
    """The text of `/model` for a face without a screen."""
    (asked,) = await say(session, "/model")
    assert isinstance(asked, ScreenAsked)
    assert asked.screen == "model"
    return asked.instead


def told(events: list[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Notice))


async def test_model_without_arguments_shows_the_current_and_local_models(
    sandbox: Sandbox,
) -> None:
    session = session_in(
        sandbox, OLLAMA, LocalServer("vLLM", "http://127.0.0.1:8000/v1", ())
    )
    shown = await overview(session)
    assert session.project.config.model is None
    assert CHOOSE_ONE in shown
    assert re.search(r"1  qwen3-coder:30b  Ollama\n  2  llama3.2 +Ollama", shown)
    assert "vLLM" in shown
    await say(session, "/model openai/any http://127.0.0.1:9/v1")
    shown = await overview(session)
    assert {"openai/any", "http://127.0.0.1:9/v1."} <= set(shown.split())
    assert CHOOSE_ONE not in shown


async def test_model_names_the_places_searched_if_no_server_runs(
    sandbox: Sandbox,
) -> None:
    looked = await overview(session_in(sandbox))
    assert all(f"{name} at port {port}" in looked for name, port in USUAL_PORTS.items())


@each_row("typed", ["2", "llama3.2", "openai/llama3.2"])
async def test_a_local_model_is_chosen_by_number_or_name(
    sandbox: Sandbox, typed: str
) -> None:
    session = session_in(sandbox, OLLAMA, LLAMA_CPP)
    assert await say(session, f"/model {typed}") == [
        ModelChosen("openai/llama3.2", OLLAMA.api_base)
    ]
    assert session.project.config.model == "openai/llama3.2"
    assert session.project.config.api_base == OLLAMA.api_base
    assert not (sandbox.root / FILE).exists()


async def test_another_provider_s_model_does_not_use_the_old_address(
    sandbox: Sandbox,
) -> None:
    session = session_in(sandbox, OLLAMA)
    await say(session, "/model 1")
    other, claude = "openai/other", "anthropic/claude"
    assert await say(session, f"/model {other}") == [
        ModelChosen(other, OLLAMA.api_base)
    ]
    assert await say(session, f"/model {claude}") == [ModelChosen(claude, None)]


@each_row(
    ("line", "words"),
    [
        ("/model 3", "no model 3"),
        ("/model 0", "no model 0"),
        ("/model openai/x localhost:1234", "begins with http://"),
        ("/model --save", "Usage"),
        ("/model x --keep", "--keep"),
        ("/model ''", "`model` is empty"),
        ("/model ' '", "`model` is empty"),
        ("/model a b c", "Usage"),
        ("/model script:nothing.yaml", "nothing.yaml"),
    ],
)
async def test_an_unusable_choice_changes_nothing(
    sandbox: Sandbox, line: str, words: str
) -> None:
    session = session_in(sandbox, OLLAMA)
    with pytest.raises(BadInput, match=words):
        await say(session, line)
    assert session.project.config.model is None
    assert not (sandbox.root / FILE).exists()


# which alone knows what it does not know, and takes seconds to import
@pytest.mark.xdist_group("litellm")
@each_row("name", ["nix", "nix/foo", "nix http://127.0.0.1:9/v1"])
async def test_an_unknown_name_is_refused_at_once(sandbox: Sandbox, name: str) -> None:
    session = session_in(sandbox, OLLAMA)
    await say(session, "/model 1")
    events: list[Event] = []
    with (
        pytest.raises(BadInput, match=rf"\b{name.split()[0]}\b") as refused,
        told_to(events.append),
    ):
        await handle(session, f"/model {name} --save")
    assert "provider/model" in refused.value.hint
    assert name.split()[0] in told(events)  # that somebody has to be asked first
    assert session.project.config.model == "openai/qwen3-coder:30b"
    assert "nix" not in (sandbox.root / FILE).read_text()


async def test_an_open_run_continues_with_the_new_model(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    for name in ("a", "b"):
        reply = json.dumps({"reply": says(f"{name}.txt", "good")})
        (sandbox.root / f"{name}.yaml").write_text(f"replies: [{reply}]")
    sandbox.flags = {"model": "script:a.yaml"}
    session = session_in(sandbox)
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    await say(session, "/model script:b.yaml")
    events = await say(session, "c")

    assert [event.status for event in events if isinstance(event, StepFinished)] == [
        "completed"
    ]
    assert sandbox.text("b.txt") == "good\n"


def scripts(sandbox: Sandbox, **texts: str) -> None:
    """A script in a file for each name, with one reply."""
    for name, text in texts.items():
        (sandbox.root / f"{name}.yaml").write_text(
            f"replies: [{json.dumps({'reply': text})}]"
        )


async def test_a_role_has_its_own_model_and_the_others_keep_theirs(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    scripts(sandbox, all="For all.", executor=says("a.txt", "good"))
    sandbox.flags = {
        "model": "script:all.yaml",
        "models": {"executor": "script:executor.yaml"},
    }
    session = session_in(sandbox)
    answer = [
        event.text
        for event in await say(session, "Hello?")
        if isinstance(event, ReplyDelta)
    ]
    events = [*await say(session, f"/exec {SLUG}"), *await say(session, "c")]

    assert "".join(answer) == "For all."
    assert [event.status for event in events if isinstance(event, StepFinished)] == [
        "completed"
    ]


async def test_an_open_run_continues_with_the_role_s_new_model(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    scripts(
        sandbox, a=says("a.txt", "good"), b=says("b.txt", "good"), chat="Still here."
    )
    sandbox.flags = {"model": "script:a.yaml"}
    session = session_in(sandbox)
    await say(session, f"/exec {SLUG}")
    await say(session, "c")
    events = await say(session, "/model executor script:b.yaml")
    assert events == [ModelChosen("script:b.yaml", None, role="executor")]
    await say(session, "/model script:chat.yaml")
    events = await say(session, "c")

    assert [event.status for event in events if isinstance(event, StepFinished)] == [
        "completed"
    ]
    words = await overview(session)
    assert "script:chat.yaml" in words
    assert any(
        "executor" in line and "script:b.yaml" in line for line in words.splitlines()
    )


@each_row(
    ("before", "after"),
    [
        ("", 'models: {"planner": "script:b.yaml"}\n'),
        (
            "models: {chat: x/y} # mine\n",
            'models: {"chat": "x/y", "planner": "script:b.yaml"} # mine\n',
        ),
        (
            "models:\n  chat: x/y  # mine\n",
            "models:\n  planner: script:b.yaml\n  chat: x/y  # mine\n",
        ),
        (
            "models:\n  # slow\n  planner: x/y  # mine\n",
            "models:\n  # slow\n  planner: script:b.yaml  # mine\n",
        ),
        (
            "models:\n  chat: x/y\n  planner: z\n",
            "models:\n  chat: x/y\n  planner: script:b.yaml\n",
        ),
    ],
)
async def test_a_role_s_model_is_saved_and_the_file_keeps_what_it_holds(
    sandbox: Sandbox, before: str, after: str
) -> None:
    scripts(sandbox, b="Hello.")
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / FILE).write_text(before)
    events = await say(session_in(sandbox), "/model planner script:b.yaml --save")
    assert events == [ModelChosen("script:b.yaml", None, FILE, "planner")]
    assert (sandbox.root / FILE).read_text() == after
    assert load_config(sandbox.root, {}).models.planner.model == "script:b.yaml"


async def test_other_settings_of_a_role_are_saved_with_its_model(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / FILE).write_text(
        "models:\n  planner: {model: openai/a, effort: high}\n"
    )
    await say(session_in(sandbox, OLLAMA), "/model planner 2 --save")
    planner = of_role(load_config(sandbox.root, {}), "planner")
    assert (planner.model, planner.api_base, planner.effort) == (
        "openai/llama3.2",
        OLLAMA.api_base,
        "high",
    )


async def test_a_role_returns_to_the_project_s_model_and_address(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"model": "openai/a", "models": {"planner": {"effort": "high"}}}
    session = session_in(sandbox, OLLAMA)
    await say(session, "/model planner openai/b http://127.0.0.1:9/v1")
    events = await say(session, "/model planner project")

    assert events == [ModelChosen("openai/a", None, role="planner")]
    planner = of_role(session.project.config, "planner")
    assert (planner.model, planner.api_base, planner.effort) == (
        "openai/a",
        None,
        "high",
    )
    (chosen,) = await say(session, "/model planner openai/c")
    assert chosen == ModelChosen("openai/c", None, role="planner")


@each_row(
    "before",
    [
        "planner: openai/b",
        "planner: {model: openai/b, api_base: http://127.0.0.1:9/v1}",
    ],
)
async def test_the_return_of_a_role_to_the_default_is_saved(
    sandbox: Sandbox, before: str
) -> None:
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / FILE).write_text(
        f"model: openai/a  # mine\nmodels:\n  {before}\n  chat: x/y\n"
    )
    events = await say(session_in(sandbox), "/model planner project --save")

    assert events == [ModelChosen("openai/a", None, FILE, "planner")]
    config = load_config(sandbox.root, {})
    assert (of_role(config, "planner").model, of_role(config, "planner").api_base) == (
        "openai/a",
        None,
    )
    assert config.models.chat.model == "x/y"
    assert "model: openai/a  # mine" in (sandbox.root / FILE).read_text()


async def test_a_role_cannot_return_to_a_missing_model(sandbox: Sandbox) -> None:
    session = session_in(sandbox)
    await say(session, "/model planner openai/b")
    with pytest.raises(BadInput, match="planner"):
        await say(session, "/model planner project")
    assert of_role(session.project.config, "planner").model == "openai/b"


async def test_settings_for_one_server_are_not_sent_to_another(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {
        "model": "openai/a",
        "request": {"headers": {"X-Key": "secret"}},
        "context_window": 9000,
    }
    session = session_in(sandbox, OLLAMA)
    await say(session, "/model openai/b")
    assert session.project.config.request.headers == {"X-Key": "secret"}
    await say(session, "/model 1")
    assert (
        session.project.config.request.headers,
        session.project.config.context_window,
    ) == ({}, None)


async def test_a_budget_in_dollars_refuses_a_model_without_a_price(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"budget": {"usd": 1.0}}
    session = session_in(sandbox, OLLAMA)
    with pytest.raises(BadInput, match=r"`budget.usd`"):
        await say(session, "/model 1")
    assert session.project.config.model is None


async def test_a_saved_model_is_the_project_s_and_the_file_keeps_its_content(
    sandbox: Sandbox,
) -> None:
    session = session_in(sandbox, OLLAMA)
    await say(session, "/init")
    path = sandbox.root / FILE
    before = path.read_text()
    path.write_text(before + f"{OWN}\n")

    events = await say(session, "/model 1 --save")

    assert events == [ModelChosen("openai/qwen3-coder:30b", OLLAMA.api_base, FILE)]
    after = path.read_text()
    added = ["model: openai/qwen3-coder:30b", "api_base: http://127.0.0.1:11434/v1"]
    assert [line for line in after.splitlines() if line not in added] == [
        *before.splitlines(),
        OWN,
    ]
    assert (
        after.index("# model:")
        < after.index("\nmodel:")
        < after.index("# api_base:")
        < after.index("\napi_base:")
    )
    config = load_config(sandbox.root, {})
    assert (config.model, config.api_base, config.max_attempts) == (
        "openai/qwen3-coder:30b",
        OLLAMA.api_base,
        5,
    )

    await say(session, "/model anthropic/claude --save")

    config = load_config(sandbox.root, {})
    assert (config.model, config.api_base, config.max_attempts) == (
        "anthropic/claude",
        None,
        5,
    )
    assert path.read_text().count("\nmodel:") == 1


async def test_saving_creates_a_project_if_there_is_none(sandbox: Sandbox) -> None:
    await say(session_in(sandbox, LLAMA_CPP), "/model 1 --save")
    assert load_config(sandbox.root, {}).model == f"openai/{ODD}"
    assert "# max_attempts: 3" in (sandbox.root / FILE).read_text()


async def test_a_settings_file_that_cannot_be_edited_stays_unchanged(
    sandbox: Sandbox,
) -> None:
    text = "max_attempts: 5\n...\n"
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / FILE).write_text(text)
    session = session_in(sandbox, OLLAMA)
    with pytest.raises(BadInput, match="was not changed") as refused:
        await say(session, "/model 2 --save")
    written = ["model: openai/llama3.2", f"api_base: {OLLAMA.api_base}"]
    assert refused.value.hint.splitlines()[-2:] == written
    assert (sandbox.root / FILE).read_text() == text
    assert session.project.config.model is None


async def test_a_variable_that_overrides_the_file_is_reported(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDD_MODEL", "openai/from-the-environment")
    assert "CDD_MODEL" in told(
        await say(session_in(sandbox, OLLAMA), "/model 2 --save")
    )


async def test_settings_for_another_server_are_reported(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    text = "model: openai/a\napi_base: http://127.0.0.1:9/v1\ncontext_window: 9000\n"
    (sandbox.root / FILE).write_text(text)

    events = await say(session_in(sandbox), "/model anthropic/claude-opus-5 --save")

    chosen, warning = events
    assert chosen == ModelChosen("anthropic/claude-opus-5", None, FILE)
    assert isinstance(warning, Notice)
    assert (warning.tone, "`context_window`" in warning.text) == (Tone.WARNING, True)
    config = load_config(sandbox.root, {})
    assert (config.model, config.api_base, config.context_window) == (
        "anthropic/claude-opus-5",
        None,
        9000,
    )


async def test_a_model_of_the_same_server_keeps_its_settings_silently(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / FILE).write_text(
        "model: openai/a\napi_base: http://127.0.0.1:9/v1\ncontext_window: 9000\n"
    )

    events = await say(session_in(sandbox), "/model openai/b --save")

    assert events == [ModelChosen("openai/b", "http://127.0.0.1:9/v1", FILE)]


async def test_names_are_completed_as_they_must_be_typed(sandbox: Sandbox) -> None:
    session = session_in(sandbox, OLLAMA, LLAMA_CPP)
    await say(session, "/model")
    assert completions(session, "/model q")[0].endswith(" qwen3-coder:30b")
    assert completions(session, "/model '") == [f"/model '{ODD}'"]
    await say(session, f"/model '{ODD}'")
    assert session.project.config.api_base == LLAMA_CPP.api_base


async def test_the_first_notice_shows_a_few_models_with_their_numbers(
    sandbox: Sandbox,
) -> None:
    session = session_in(
        sandbox,
        LocalServer(
            "Ollama", OLLAMA.api_base, tuple(f"model-{n}" for n in range(1, 41))
        ),
    )
    (found,) = await collect(session.first_look())
    assert isinstance(found, ModelsFound)
    assert len(found.models) == 6
    assert " 34 " in describe(found)[0][0]
    assert await say(session, "/model 40") == [
        ModelChosen("openai/model-40", OLLAMA.api_base)
    ]


async def test_the_first_notice_appears_only_without_a_model(sandbox: Sandbox) -> None:
    session = session_in(sandbox, OLLAMA)
    assert [type(event) for event in await collect(session.first_look())] == [
        ModelsFound
    ]
    assert await collect(session_in(sandbox).first_look()) == []
    sandbox.flags = {"model": "openai/any"}
    assert await collect(session_in(sandbox, OLLAMA).first_look()) == []


async def test_an_address_with_a_password_is_not_saved(sandbox: Sandbox) -> None:
    session = session_in(sandbox)
    with pytest.raises(BadInput, match="user name and the password"):
        await say(session, "/model any http://me:hunter2@127.0.0.1:1/v1 --save")
    assert not (sandbox.root / FILE).exists()
    assert session.project.config.model is None
