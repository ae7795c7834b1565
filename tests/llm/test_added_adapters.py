"""Adapters of models that other packages add."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.llm import added_adapters
from cdd_agent.llm.added_adapters import adapter_for
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.options import ModelOptions
from cdd_agent.llm.port import (
    ConnectionFailed,
    Done,
    Message,
    Model,
    ModelError,
    ModelEvent,
    Request,
    StopReason,
    TextDelta,
    Usage,
)
from cdd_agent.settings.config import Config
from cdd_agent.wiring.models import added_adapter, make_model
from tests.llm.test_check import server
from tests.support.commandline import STEPS, cdd
from tests.support.packages import read_example, write_package
from tests.support.projects import Sandbox
from tests.support.replies import all_of, stopped
from tests.support.tables import each_row

HEAD = """\
import asyncio
from cdd_agent.llm.model_adapter import BasicModel, ModelAdapter
from cdd_agent.llm.port import Done, StopReason, TextDelta, Usage
class Shrimp(BasicModel):
    calls_tools, window = True, 100
    async def reply(self, request, on_event):
        on_event(TextDelta(request.messages[-1].content))
        return Done(StopReason.LENGTH, Usage(1, 2))
class Shrimps(ModelAdapter):
    name = "shrimps"
    def claims(self, model): return model.startswith(("shrimp/", "bedrock/", "openai/"))
    def make(self, model, api_base, options): return Shrimp(model)
"""
NAME = "shrimp of shrimp-tests"
REQUEST = Request((Message("user", "Say hello."),))
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with a module that has a class `Shrimps`."""
    folder = tmp_path / "site"
    write_package(folder, "cdd_agent.model_adapters", "shrimp = shrimp_models:Shrimps")
    monkeypatch.syspath_prepend(str(folder))

    def write(text: str) -> None:
        (folder / "shrimp_models.py").write_text(text)
        forget()

    yield write
    monkeypatch.undo()
    forget()


def forget() -> None:
    sys.modules.pop("shrimp_models", None)
    added_adapters.added_adapters.cache_clear()
    added_adapters.left_out.clear()


def model_of(name: str, adapter: str = "auto", **settings: object) -> Model:
    config = Config(model=name, model_adapter=adapter, **settings)  # type: ignore[arg-type]
    return make_model(config, Path(), watched=False)


async def events_of(model: Model) -> list[ModelEvent | Done]:
    return await all_of(model, REQUEST)


async def test_the_adapter_of_the_page_asks_a_server(install: Install) -> None:
    install(f"{read_example('A model adapter')}\nShrimps = TextServers\n")

    async with server(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nYes") as (url, _):
        model = model_of("text/x", api_base=url)
        assert await events_of(model) == [TextDelta("Yes"), Done()]
    with pytest.raises(ConnectionFailed, match="text/x"):
        await events_of(model)
    assert added_adapters.left_out == {}


async def test_a_model_of_another_package_is_asked_as_it_is(install: Install) -> None:
    install(HEAD)
    model = model_of("shrimp/x")

    assert (model.name, model.calls_tools, model.window) == ("shrimp/x", True, 100)
    assert (model.sees, model.price) == (None, None)
    assert model_of("shrimp/x", pictures=False).sees is False
    await model.check(connect=True)
    assert await events_of(model) == [
        TextDelta("Say hello."),
        Done(StopReason.LENGTH, Usage(1, 2)),
    ]


def test_an_adapter_makes_only_models_that_it_claims_and_nobody_asks_directly(
    install: Install,
) -> None:
    install(HEAD)
    for name, adapter, kind in (
        ("openai/gpt-5", "auto", DirectModel),
        ("bedrock/m", "litellm", LitellmModel),
        ("vertex_ai/m", "auto", LitellmModel),
    ):
        assert type(model_of(name, adapter)) is kind, name
    assert model_of("bedrock/m").window == 100
    with pytest.raises(BadInput):
        model_of("shrimp/x", "direct")
    assert added_adapter(Config(model="shrimp/x", model_adapter="litellm")) is None
    assert added_adapter(Config(model="prawn/x")) is None


@each_row(
    "fault",
    [
        "raise RuntimeError('no')",
        "import nothing_here",
        "Shrimps = 3",
        "Shrimps = object",
        "Shrimps.name = 3",
        "Shrimps.__init__ = lambda self, more: None",
        "del Shrimps.make; Shrimps.__abstractmethods__ = frozenset({'make'})",
        "Shrimps.claims = lambda self, model: 1 / 0",
        "Shrimps.claims = lambda self, model: 'yes'",
        "Shrimps.claims = lambda self, model: None",
        "Shrimps.claims = lambda self: True",
    ],
)
def test_an_adapter_that_cannot_be_used_is_named_and_left_out(
    install: Install, fault: str
) -> None:
    install(f"{HEAD}\n{fault}\n")
    assert type(model_of("bedrock/m")) is LitellmModel
    assert list(added_adapters.left_out) == [NAME]
    assert adapter_for("shrimp/x") is None


@each_row(
    "fault",
    [
        "Shrimps.make = lambda self, model, api_base, options: 1 / 0",
        "Shrimps.make = lambda self, model, api_base, options: None",
        "Shrimps.make = lambda self: None",
        "Shrimp.calls_tools = 'yes'",
        "Shrimp.window = 'large'",
        "Shrimp.price = 3",
    ],
)
def test_a_model_that_an_adapter_cannot_make_is_refused_with_its_name(
    install: Install, fault: str
) -> None:
    install(f"{HEAD}\n{fault}\n")
    with pytest.raises(BadInput, match=NAME):
        model_of("shrimp/x")
    assert list(added_adapters.left_out) == [NAME]
    assert adapter_for("shrimp/x") is None


def test_an_adapter_may_refuse_a_setting(install: Install) -> None:
    install(
        f"{HEAD}\nfrom cdd_agent.errors import BadInput\ndef refuse(*_): raise"
        " BadInput('No address')\nShrimps.make = refuse\n"
    )
    with pytest.raises(BadInput, match="No address"):
        model_of("shrimp/x")
    assert added_adapters.left_out == {}


@each_row(
    "fault",
    [
        "async def fail(*_): raise ValueError('odd')",
        "async def fail(*_): return None",
        "async def fail(*_): return 'a reply'",
        "def fail(*_): return None",
        "async def fail(self): pass",
        "async def fail(*_): return Done('because')",
        "async def fail(*_): return Done(usage=(1, 2))",
        "async def fail(*_): return Done(usage=Usage('1', 2))",
        "def fail(_, request, hear): hear('a reply'); return done()",
        "def fail(_, request, hear): hear(TextDelta(None)); return done()",
        "def fail(_, request, hear): hear(Done()); return done()",
    ],
)
async def test_a_fault_in_a_call_is_a_model_error_with_the_adapter_s_name(
    install: Install, fault: str
) -> None:
    done = "async def done(): return Done()"
    install(f"{HEAD}\n{done}\n{fault}\nShrimp.reply = fail\n")
    with pytest.raises(ModelError, match=NAME) as raised:
        await events_of(model_of("shrimp/x"))
    assert not raised.value.is_transient
    assert raised.value.hint


async def test_a_call_can_be_cancelled_and_its_listener_may_fail(
    install: Install,
) -> None:
    install(
        f"{HEAD}\nasync def reply(self, request, on_event):\n"
        "    on_event(TextDelta('a'))\n    await asyncio.sleep(60)\n"
        "Shrimp.reply = reply\n"
    )
    model = model_of("shrimp/x")
    assert await stopped(model, REQUEST) == [TextDelta("a")]

    def fail(event: ModelEvent) -> None:
        raise LookupError(event)

    with pytest.raises(LookupError):
        await model.reply(REQUEST, fail)


def test_doctor_names_the_adapter_of_a_model_and_one_that_is_left_out(
    sandbox: Sandbox, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    settings = sandbox.root / ".cdd" / "config.yaml"
    settings.write_text("model: shrimp/x\n")
    install(HEAD)
    cdd(sandbox, "doctor")
    assert "shrimp/x, asked by the model adapter shrimps" in capsys.readouterr().out
    settings.write_text("")
    install("raise RuntimeError('broken')")
    cdd(sandbox, "doctor")
    lines = capsys.readouterr().out.splitlines()
    assert any(NAME in line and "broken" in line for line in lines)


def test_the_options_reach_the_adapter(install: Install) -> None:
    install(
        f"{HEAD}\nmade = []\nShrimps.make = lambda self, *given: made.append(given) or"
        " Shrimp('x')\n"
    )
    model_of("shrimp/x", temperature=0.5, api_base="http://127.0.0.1:9")
    ((name, api_base, options),) = sys.modules["shrimp_models"].made
    assert (name, api_base) == ("shrimp/x", "http://127.0.0.1:9")
    assert options == ModelOptions(temperature=0.5)
