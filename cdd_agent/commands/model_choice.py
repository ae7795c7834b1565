"""`/model`: show the models, choose one for the session, and save the choice."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import to_builtins

from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.commands.initialise import initialise
from cdd_agent.commands.model_setup import NO_MODEL, SUGGESTED, how_to_set_up
from cdd_agent.commands.slash_call import WrongUsage
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.shell_events import ModelChosen, ModelsFound, ScreenAsked
from cdd_agent.files.atomic import write_atomic
from cdd_agent.llm.known_models import has_provider
from cdd_agent.llm.local_servers import USUAL_PORTS
from cdd_agent.llm.model_search import expect_no_secret
from cdd_agent.llm.offered_model import list_in_words
from cdd_agent.llm.providers import endpoint_of
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import stored_config, trust_written
from cdd_agent.session.session import Session
from cdd_agent.settings.config import PROJECT_FILE, ROLES, Config, ModelSettings, Role
from cdd_agent.settings.models import is_same_server, of_role
from cdd_agent.settings.writing import changed_text, with_model, without_own_model
from cdd_agent.threads import to_its_end
from cdd_agent.values.guarded_yaml import read_file, read_mapping

_ABOUT_MODELS = f"""\
`/model MODEL [API_BASE]` switches the model for this session; add `--save` to keep it \
for the project. MODEL is a number or a name in the list, or any model string such as \
`anthropic/{SUGGESTED["anthropic"]}`. `/model planner MODEL` sets the Planner's \
model alone; so do `executor`, `chat` and `socrates`. `/model planner project` returns \
to the project's model."""
_PROJECT = "project"
_NO_SERVERS = (
    "No model server found on this computer. Looked for "
    + ", ".join(f"{name} at port {port}" for name, port in USUAL_PORTS.items())
    + "."
)


class _ChosenModel(NamedTuple):
    model: str
    api_base: str | None
    config: Config


async def choose_model(session: Session, *words: str, save: bool = False) -> None:
    """Show the models, or switch to the model in `words`. Raises `BadInput`."""
    role = next((role for role in ROLES if words[:1] == (role,)), None)
    names = words if role is None else words[1:]
    if len(names) > 2 or (save and not names):
        raise WrongUsage(CATALOGUE["model"].usage, hint=_ABOUT_MODELS)
    if not names:
        models = await session.look_for_models()
        text = "\n".join(_describe_choice(session.project.config, models))
        session.emit(ScreenAsked("model", text))
        return
    if save and len(names) == 2:
        expect_no_secret(names[1])
    choice = await _choose(session, role, names)
    if not _is_known(choice):
        text = f"Looking for the provider of {choice.model}. This takes a few seconds."
        session.emit(Notice(text, Tone.QUIET))
    if save:
        await _save(session, choice, role)
    else:
        await _use(session, choice.config)
        session.emit(ModelChosen(choice.model, choice.api_base, role=role))


async def _choose(
    session: Session, role: Role | None, names: Sequence[str]
) -> _ChosenModel:
    config = session.project.config
    if role is None or tuple(names) != (_PROJECT,):
        model, api_base = await _find_model(session, role, *names)
        chosen = with_model(config, model, api_base, "/model", role)
        return _ChosenModel(model, api_base, chosen)
    chosen = without_own_model(config, role)
    settings = of_role(chosen, role)
    if settings.model is None:
        raise BadInput(
            f"{NO_MODEL}, so {role} has none to return to",
            hint=_ABOUT_MODELS,
            refusal=Refusal.NO_MODEL,
        )
    return _ChosenModel(settings.model, settings.api_base, chosen)


def _is_known(choice: _ChosenModel) -> bool:
    """False if the provider must be looked up in litellm, whose import is slow."""
    if has_provider(choice.model) or choice.model.startswith(("script:", "replay:")):
        return True
    return endpoint_of(choice.model, choice.api_base) is not None


async def _save(session: Session, choice: _ChosenModel, role: Role | None) -> None:
    path = session.project.root / PROJECT_FILE
    if not path.exists():
        for notice in initialise(session.project):
            session.emit(notice)
    text = _with_model_set(path, session.project.config, choice.config, role)
    await _use(session, choice.config)
    write_atomic(path, text.encode())
    names = ("model", "api_base") if role is None else (f"models.{role}",)
    session.project = trust_written(session.project, text, names)
    session.emit(
        ModelChosen(choice.model, choice.api_base, PROJECT_FILE.as_posix(), role)
    )
    warning = _warn_of_next_start(session, choice, role)
    if warning:
        session.emit(Notice(warning, Tone.WARNING))


def _warn_of_next_start(
    session: Session, choice: _ChosenModel, role: Role | None
) -> str:
    stored = _settings_of(stored_config(session.project), role)
    if (stored.model, stored.api_base) != (choice.model, choice.api_base):
        return "CDD_MODEL or CDD_API_BASE in the environment overrides the file."
    if _of_one_server(stored) != _of_one_server(_settings_of(choice.config, role)):
        return (
            "`request`, `context_window` and `pictures` were set for another server."
            " Check that they fit this one: they apply to it from the next start."
        )
    return ""


def _of_one_server(config: Config) -> tuple[object, ...]:
    return config.request, config.context_window, config.pictures


def _settings_of(config: Config, role: Role | None) -> Config:
    return config if role is None else of_role(config, role)


def _describe_choice(config: Config, models: ModelsFound) -> Iterator[str]:
    if config.model is None:
        yield how_to_set_up(in_shell=True)
    yield from _asked_now(config)
    if models.models:
        yield list_in_words(models.models)
    for server in models.without_models:
        yield f"{server} is running on this computer but has no model yet."
    if not models.models and not models.without_models:
        yield _NO_SERVERS
    yield _ABOUT_MODELS


def _asked_now(config: Config) -> Iterator[str]:
    where = f" at {config.api_base}" if config.api_base else ""
    if config.model:
        yield f"The model is {config.model}{where}."
    for role in ROLES:
        settings = of_role(config, role)
        if (settings.model, settings.api_base) != (config.model, config.api_base):
            address = f" at {settings.api_base}" if settings.api_base else ""
            yield f"The {role} model is {settings.model}{address}."


async def _use(session: Session, choice: Config) -> None:
    """Use the chosen settings. This runs in a thread: an unknown provider needs
    litellm, whose import takes seconds.
    """
    await to_its_end(partial(session.use, choice), name="model")


async def _find_model(
    session: Session, role: Role | None, typed: str, api_base: str | None = None
) -> tuple[str, str | None]:
    if api_base is not None:
        return typed, api_base
    if not session.offers:
        await session.look_for_models()
    offers = session.offers
    if typed.isdecimal():
        if not 1 <= int(typed) <= len(offers):
            hint = f"Type a number from 1 to {len(offers)}."
            raise BadInput(
                f"There is no model {typed}",
                hint=hint if offers else _NO_SERVERS,
                refusal=Refusal.NO_MODEL,
            )
        offer = offers[int(typed) - 1]
        return offer.model, offer.api_base
    for offer in offers:
        if typed in (offer.name, offer.model):
            return offer.model, offer.api_base
    current = _settings_of(session.project.config, role)
    if is_same_server(current.model, current.api_base, typed):
        return typed, current.api_base
    return typed, None


def _with_model_set(
    path: Path, current: Config, chosen: Config, role: Role | None
) -> str:
    """Return the project's settings file with the chosen model. `api_base` is written
    if it has, or had, a value.
    """
    settings: Config | ModelSettings = chosen
    if role is not None:
        settings = getattr(chosen.models, role)
    changes: dict[str, object] = {"model": settings.model or None}
    text = read_file(path) or ""
    # Also if it is ignored, because the user has chosen another.
    in_file = "api_base" in read_mapping(text, str(path), "a config")
    if settings.api_base or current.api_base or in_file:
        changes["api_base"] = settings.api_base or None
    if role is None:
        return changed_text(text, str(path), changes)
    other_settings = to_builtins(settings)
    other_settings.pop("model", None)
    other_settings.pop("api_base", None)
    of_one_role: object = settings.model
    if not settings.model:
        of_one_role = other_settings
    elif other_settings or len(changes) > 1:
        of_one_role = changes | other_settings
    return changed_text(text, str(path), {"models": {role: of_one_role}})
