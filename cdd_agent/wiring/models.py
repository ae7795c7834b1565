"""Makes a model from the settings: the adapter with its fallbacks, budget and retries.
Adapters are imported when they are first needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cdd_agent.commands.model_setup import NO_MODEL
from cdd_agent.cost import Cost
from cdd_agent.errors import BadInput
from cdd_agent.llm.added_adapters import AddedAdapter, adapter_for
from cdd_agent.llm.budget import (
    Account,
    Budgeted,
    Limit,
    TalliedModel,
    Tally,
    Wait,
    call_at_once,
)
from cdd_agent.llm.fallbacks import WithFallbacks
from cdd_agent.llm.options import Effort, ModelOptions
from cdd_agent.llm.port import Model, Usage
from cdd_agent.llm.providers import PROVIDERS, Endpoint, endpoint_of
from cdd_agent.llm.purse import SharedCalls
from cdd_agent.llm.recording import RecordingModel
from cdd_agent.llm.request_comparison import hide_folder
from cdd_agent.llm.retrying import Clock, Retrying, wait_for_provider
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.shared_waits import SharedWaits
from cdd_agent.llm.window_limited import WindowLimited
from cdd_agent.llm.wrapper import RejectEmpty
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import Config
from cdd_agent.settings.model_names import provider_of
from cdd_agent.settings.models import REPLAY, SCRIPT, fallbacks_of
from cdd_agent.wiring.projects import make_redactor


class NoModel(BadInput):
    refusal = Refusal.NO_MODEL

    def __init__(self) -> None:
        super().__init__(
            NO_MODEL,
            hint=(
                "Choose one with `/model`, or set `model: NAME` in .cdd/config.yaml."
                " `cdd doctor` shows what is missing."
            ),
        )


def equip_model(
    model: Model,
    config: Config,
    tally: Tally,
    *,
    spent: Cost | None = None,
    lost: Callable[[Usage], None] = lambda usage: None,
    clock: Clock | None = None,
    shared: SharedCalls | None = None,
) -> Model:
    """Return an adapter with fallbacks, budget and retries. An empty reply is an error.
    Each call is counted at the price of its model. Retries are outermost, so the budget
    checks each of them. Raises `BadInput` for an unknown price.
    """
    limit = Limit(config.budget.tokens, config.budget.usd)
    account: Account = Tally(spent or Cost())
    if shared:
        limit, account = shared.limit, shared.account(spent or Cost())

    def with_patience(adapter: Model, asked: Config) -> Model:
        waits: SharedWaits | None = None
        wait: Wait = call_at_once
        if shared:
            provider = f"{provider_of(asked.model)} {asked.api_base or ''}"
            waits = shared.waits_for(provider.strip())
            wait = partial(wait_for_provider, waits, clock or Clock())
        budgeted = Budgeted(
            RejectEmpty(adapter),
            limit,
            account=account,
            price=lambda: adapter.price,
            spend=tally.add,
            lost=lost,
            wait=wait,
        )
        return Retrying(TalliedModel(budgeted, tally), clock, waits)

    if isinstance(model, WithFallbacks):
        asked = fallbacks_of(config) if shared else [config] * len(model.others)
        others = [
            with_patience(*other) for other in zip(model.others, asked, strict=True)
        ]
        return WithFallbacks(
            with_patience(_limit_window(model.inner, config), config), others, clock
        )
    return with_patience(_limit_window(model, config), config)


def _limit_window(model: Model, config: Config) -> Model:
    return (
        WindowLimited(model, config.context_window) if config.context_window else model
    )


def make_model(config: Config, root: Path, *, watched: bool) -> Model:
    """Return the configured model. `watched`: a script keeps its natural pace, and
    optional thoughts are requested. A recording contains all calls of the adapter, with
    failed calls and retries. Raises `BadInput`.
    """
    model = _adapter(config, root, watched=watched)
    if config.record is None:
        return model
    redactor = hide_folder(make_redactor(config), root)
    return RecordingModel(model, root / config.record, redactor)


def add_fallbacks(model: Model, config: Config, root: Path, *, watched: bool) -> Model:
    """Return the model with its fallbacks. Raises `BadInput`."""
    if not config.fallbacks:
        return model
    # The recording contains the replies of the fallbacks.
    if config.model and config.model.startswith(REPLAY):
        return WithFallbacks(model, [model for _ in fallbacks_of(config)])
    others = []
    for other in fallbacks_of(config):
        made = make_model(other, root, watched=watched)
        others.append(_limit_window(made, other))
    return WithFallbacks(model, others)


def _adapter(config: Config, root: Path, *, watched: bool) -> Model:
    if config.model is None:
        raise NoModel
    if config.model.startswith((SCRIPT, REPLAY)):
        script = root / config.model.removeprefix(SCRIPT).removeprefix(REPLAY)
        scripted = ScriptedModel.from_file(
            script, make_redactor(config), root, in_time=watched
        )
        scripted.sees = scripted.sees if config.pictures is None else config.pictures
        return scripted
    if endpoint := direct_endpoint(config):
        # late: httpx takes 50 ms to import
        from cdd_agent.llm.direct.model import DirectModel  # noqa: PLC0415

        return DirectModel(config.model, endpoint, _options(config, watched=watched))
    options = _options(config, watched=watched)
    if adapter := added_adapter(config):
        return adapter.make(config.model, config.api_base, options)
    # late: litellm takes seconds to import
    from cdd_agent.llm.litellm_adapter import (  # noqa: PLC0415
        LitellmModel,
        expect_provider,
    )

    expect_provider(config.model, config.api_base)
    return LitellmModel(config.model, config.api_base, options)


def _options(config: Config, *, watched: bool) -> ModelOptions:
    return ModelOptions(
        effort=Effort(config.effort) if config.effort else None,
        temperature=config.temperature,
        max_output_tokens=config.max_output_tokens,
        body=config.request.body,
        headers=config.request.headers,
        sees=config.pictures,
        watched=watched,
        window=config.context_window,
    )


def added_adapter(config: Config) -> AddedAdapter | None:
    """Return the configured adapter of another package; None if cdd has its own for the
    model.
    """
    if config.model is None or config.model_adapter != "auto":
        return None
    return adapter_for(config.model)


def direct_endpoint(config: Config) -> Endpoint | None:
    """Return the endpoint of the direct adapter; None if litellm is used. Raises
    `BadInput`.
    """
    if config.model is None or config.model_adapter == "litellm":
        return None
    endpoint = endpoint_of(config.model, config.api_base)
    if endpoint is None and config.model_adapter == "direct":
        raise BadInput(
            f"The direct adapter does not support {config.model}",
            hint=(
                f"It knows {', '.join(PROVIDERS)}, and any server of chat completions"
                " as openai/NAME with `api_base`, of Responses as"
                " openai/responses/NAME; `model_adapter: auto` leaves the others to"
                " litellm."
            ),
            refusal=Refusal.NO_MODEL,
        )
    return endpoint
