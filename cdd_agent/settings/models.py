"""Which model is asked, and how: the model of a role, and the models to ask where a
provider is down.
"""

from msgspec.structs import replace

from cdd_agent.model_names import is_hosted_model, provider_of
from cdd_agent.settings.config import Config, Models, ModelSettings, OwnRequest, Role
from cdd_agent.web_address import is_local_server

SERVER_DEFAULTS = {
    "api_base": None,
    "context_window": None,
    "pictures": None,
    "request": OwnRequest(),
}
"""The settings that are meant for one server, with their defaults."""


def with_settings(config: Config, choice: ModelSettings) -> Config:
    """Return the settings for another model. Those that are meant for one server stay
    only if the provider and the address stay the same.
    """
    given = choice.given
    is_same = not choice.model or is_same_server(
        config.model, config.api_base, choice.model
    )
    if is_same and given.get("api_base", config.api_base) == config.api_base:
        return replace(config, **given)
    return replace(config, **(SERVER_DEFAULTS | given))


def is_same_server(model: str | None, api_base: str | None, other: str) -> bool:
    """True if another model may be asked at the address that was given with `model`.

    A hosted model is not asked at a local server, unless that was given with a hosted
    model: then it is a gateway.
    """
    if provider_of(other) != provider_of(model):
        return False
    if api_base is None or not is_local_server(api_base):
        return True
    return is_hosted_model(model or "") or not is_hosted_model(other)


def of_role(config: Config, role: Role) -> Config:
    """Return the settings of one role, without those of roles."""
    return replace(with_settings(config, getattr(config.models, role)), models=Models())


def fallbacks_of(config: Config) -> list[Config]:
    """Return the settings for each model to ask where the one before it cannot be."""
    asked = config.model, config.api_base
    choices = [with_settings(config, choice) for choice in config.fallbacks]
    return [choice for choice in choices if (choice.model, choice.api_base) != asked]
