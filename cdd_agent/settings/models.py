"""The settings of one model: for a role, or as a fallback."""

from pathlib import Path

from msgspec.structs import replace

from cdd_agent.network.web_address import is_local_server
from cdd_agent.settings.config import (
    ROLES,
    Config,
    Models,
    ModelSettings,
    OwnRequest,
    Role,
)
from cdd_agent.settings.model_names import is_hosted_model, provider_of

SCRIPT, REPLAY = "script:", "replay:"
"""Beginnings of the names of models that are files."""
SERVER_DEFAULTS = {
    "api_base": None,
    "context_window": None,
    "pictures": None,
    "request": OwnRequest(),
}
"""Settings for one server, with their defaults."""


def with_settings(config: Config, choice: ModelSettings) -> Config:
    """Return the settings for another model. Settings for one server stay only with
    that server.
    """
    given = choice.given
    is_same = not choice.model or is_same_server(
        config.model, config.api_base, choice.model
    )
    if is_same and given.get("api_base", config.api_base) == config.api_base:
        return replace(config, **given)
    return replace(config, **(SERVER_DEFAULTS | given))


def is_same_server(model: str | None, api_base: str | None, other: str) -> bool:
    """True if the model `other` may be called at the address for `model`. A hosted
    model is not called at a local server, unless the address came with a hosted model:
    then it is a gateway.
    """
    if provider_of(other) != provider_of(model):
        return False
    if api_base is None or not is_local_server(api_base):
        return True
    return is_hosted_model(model or "") or not is_hosted_model(other)


def of_role(config: Config, role: Role) -> Config:
    return replace(with_settings(config, getattr(config.models, role)), models=Models())


def fallbacks_of(config: Config) -> list[Config]:
    asked = config.model, config.api_base
    choices = [with_settings(config, choice) for choice in config.fallbacks]
    return [choice for choice in choices if (choice.model, choice.api_base) != asked]


def list_script_files(config: Config, root: Path) -> list[str]:
    """Return the scripts and recordings in the project that play a model, relative to
    the root. A prompt that shows one contains the words of its `when` conditions.
    """
    configs = [config, *(of_role(config, role) for role in ROLES)]
    models = [each.model or "" for each in configs]
    for each in configs:
        models += [other.model or "" for other in fallbacks_of(each)]
    paths = []
    for model in dict.fromkeys(models):
        if not model.startswith((SCRIPT, REPLAY)):
            continue
        file = (root / model.removeprefix(SCRIPT).removeprefix(REPLAY)).resolve()
        if file.is_relative_to(root.resolve()):
            paths.append(file.relative_to(root.resolve()).as_posix())
    return paths
