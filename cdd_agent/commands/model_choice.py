"""`/model`: which model is asked from now on, among those that this computer's servers
offer or any other.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from msgspec import to_builtins

from cdd_agent.commands.initialise import initialise
from cdd_agent.commands.model_setup import NO_MODEL, SUGGESTED, how_to_set_up
from cdd_agent.commands.slash_call import WrongUsage
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.shell_events import ModelChosen, ModelsFound, ScreenAsked
from cdd_agent.files.atomic import write_atomic
from cdd_agent.guarded_yaml import read_file, read_mapping
from cdd_agent.llm.known_models import has_provider
from cdd_agent.llm.local_servers import USUAL_PORTS
from cdd_agent.llm.model_search import expect_no_secret
from cdd_agent.llm.offered_model import list_in_words
from cdd_agent.llm.providers import endpoint_of
from cdd_agent.open_project import stored_config, trust_written
from cdd_agent.session import Session
from cdd_agent.settings.config import PROJECT_FILE, ROLES, Config, ModelSettings, Role
from cdd_agent.settings.models import is_same_server, of_role
from cdd_agent.settings.writing import changed_text, with_model, without_own_model
from cdd_agent.threads import to_its_end

_ABOUT_MODELS = f"""\
`/model MODEL [API_BASE]` switches the model for this session; add `--save` to keep it \
for the project. MODEL is a number or a name of the list, or any model string such as \
`anthropic/{SUGGESTED["anthropic"]}`. `/model planner MODEL` sets the Planner's \
model alone; so do `executor`, `chat` and `socrates`. `/model planner project` returns \
to the project's model."""
_PROJECT = "project"
_NO_SERVERS = (
    "No model server found on this computer. Looked for "
    + ", ".join(f"{name} at port {port}" for name, port in USUAL_PORTS.items())
    + "."
)


async def choose_model(session: Session, *words: str, save: bool = False) -> None:
    """Show the models and what there is, or change one as the words say. Raises
    `BadInput`.
    """
    role = next((role for role in ROLES if words[:1] == (role,)), None)
    given = words if role is None else words[1:]
    if len(given) > 2 or (save and not given):
        raise WrongUsage("model [ROLE] [MODEL] [API_BASE] [--save]", hint=_ABOUT_MODELS)
    if save and len(given) == 2:
        expect_no_secret(given[1])
    if not given:
        found = await session.look_for_models()
        text = "\n".join(_describe_choice(session.project.config, found))
        session.emit(ScreenAsked("model", text))
        return
    if role is not None and given == (_PROJECT,):
        choice = without_own_model(session.project.config, role)
        own = of_role(choice, role)
        if own.model is None:
            raise BadInput(
                f"{NO_MODEL}, so {role} has none to return to", hint=_ABOUT_MODELS
            )
        model, api_base = own.model, own.api_base
    else:
        model, api_base = await _meant(session, role, *given)
        choice = with_model(session.project.config, model, api_base, "/model", role)
    is_known = (
        has_provider(model)
        or endpoint_of(model, api_base)
        or model.startswith(("script:", "replay:"))
    )
    if not is_known:  # then litellm is asked, whose import is slow
        session.emit(
            Notice(
                f"Looking for the provider of {model}. This takes a few seconds.",
                Tone.QUIET,
            )
        )
    if not save:
        await _use(session, choice)
        session.emit(ModelChosen(model, api_base, role=role))
        return
    path = session.project.root / PROJECT_FILE
    if not path.exists():
        for notice in initialise(session.project):
            session.emit(notice)
    text = _with_model_set(path, session.project.config, choice, role)
    await _use(session, choice)
    write_atomic(path, text.encode())
    names = ("model", "api_base") if role is None else (f"models.{role}",)
    session.project = trust_written(session.project, text, names)
    session.emit(ModelChosen(model, api_base, PROJECT_FILE.as_posix(), role))
    later, now = (
        _settings_of(stored_config(session.project), role),
        _settings_of(choice, role),
    )
    if (later.model, later.api_base) != (model, api_base):
        text = "CDD_MODEL or CDD_API_BASE in the environment overrides the file."
        session.emit(Notice(text, Tone.WARNING))
    elif _of_one_server(later) != _of_one_server(now):
        text = (
            "`request`, `context_window` and `pictures` were set for another server."
            " Check that they fit this one: they apply to it from the next start."
        )
        session.emit(Notice(text, Tone.WARNING))


def _of_one_server(config: Config) -> tuple[object, ...]:
    return config.request, config.context_window, config.pictures


def _settings_of(config: Config, role: Role | None) -> Config:
    return config if role is None else of_role(config, role)


def _describe_choice(config: Config, found: ModelsFound) -> Iterator[str]:
    """Yield the model that is asked now, and those to choose from."""
    if config.model is None:
        yield how_to_set_up(in_shell=True)
    yield from _asked_now(config)
    if found.models:
        yield list_in_words(found.models)
    for server in found.without_models:
        yield f"{server} is running on this computer but has no model yet."
    if not found.models and not found.without_models:
        yield _NO_SERVERS
    yield _ABOUT_MODELS


def _asked_now(config: Config) -> Iterator[str]:
    """The model, and for each role with another what that is, as sentences."""
    where = f" at {config.api_base}" if config.api_base else ""
    if config.model:
        yield f"The model is {config.model}{where}."
    for role in ROLES:
        own = of_role(config, role)
        if (own.model, own.api_base) != (config.model, config.api_base):
            yield (
                f"The {role} model is"
                f" {own.model}{f' at {own.api_base}' if own.api_base else ''}."
            )


async def _use(session: Session, choice: Config) -> None:
    """Use the chosen settings. This runs in a thread, because only litellm may know the
    provider, and its import takes seconds.
    """
    await to_its_end(partial(session.use, choice), name="model")


async def _meant(
    session: Session, role: Role | None, typed: str, api_base: str | None = None
) -> tuple[str, str | None]:
    """Return the model string and the API base of a typed model: a number or a name of
    the found models, or any model string.
    """
    if api_base is not None:
        return typed, api_base
    if not session.offers:
        await session.look_for_models()
    offers = session.offers
    if typed.isdecimal():
        if not 1 <= int(typed) <= len(offers):
            many = (
                f"Those found have the numbers 1 to {len(offers)}."
                if offers
                else _NO_SERVERS
            )
            raise BadInput(f"There is no model {typed}", hint=many)
        return offers[int(typed) - 1].model, offers[int(typed) - 1].api_base
    for offer in offers:
        if typed in (offer.name, offer.model):
            return offer.model, offer.api_base
    now = _settings_of(session.project.config, role)
    is_same = is_same_server(now.model, now.api_base, typed)
    return typed, now.api_base if is_same else None


def _with_model_set(path: Path, now: Config, chosen: Config, role: Role | None) -> str:
    """The project's settings file with the chosen model. `api_base` is in it where
    there is one, or was.
    """
    settings: Config | ModelSettings = (
        chosen if role is None else getattr(chosen.models, role)
    )
    changes: dict[str, object] = {"model": settings.model or None}
    text = read_file(path) or ""
    # also where it is left out: the user has chosen another
    in_file = "api_base" in read_mapping(text, str(path), "a config")
    if settings.api_base or now.api_base or in_file:
        changes["api_base"] = settings.api_base or None
    if role is None:
        return changed_text(text, str(path), changes)
    kept = {
        name: value
        for name, value in to_builtins(settings).items()
        if name not in ("model", "api_base")
    }
    if not settings.model:
        return changed_text(text, str(path), {"models": {role: kept}})
    return changed_text(
        text,
        str(path),
        {
            "models": {
                role: changes | kept if kept or len(changes) > 1 else settings.model
            }
        },
    )
