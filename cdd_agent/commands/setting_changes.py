"""Saves a setting for the session, the project or the user, and resets it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from cdd_agent.commands.initialise import initialise
from cdd_agent.commands.settings import (
    Setting,
    SettingOrigin,
    SettingSources,
    find_setting,
    session_project,
    show_path,
)
from cdd_agent.commands.typed_settings import find_value, read_typed
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import write_atomic
from cdd_agent.files.paths import confine
from cdd_agent.llm.model_search import expect_no_secret
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import Project, trust_written
from cdd_agent.session.session import Session
from cdd_agent.settings.config import (
    PROJECT_FILE,
    Config,
    ModelSettings,
    find_group,
)
from cdd_agent.settings.descriptions import SettingGroup
from cdd_agent.settings.models import is_same_server, with_settings
from cdd_agent.settings.reading import SettingsFile, user_file
from cdd_agent.settings.writing import changed_text, with_setting, without_setting
from cdd_agent.threads import to_its_end
from cdd_agent.trust.rules import SETTINGS as TRUST_RULES
from cdd_agent.trust.rules import NeedsTrust
from cdd_agent.trust.store import TrustStore
from cdd_agent.values.guarded_yaml import read_file

_ONLY_IN_FILES = ("tickets_dir",)
"""Settings that are read only at the start."""


class SettingPlace(StrEnum):
    SESSION = "this session"
    PROJECT = "project"
    USER = "user"


class SavePlace(Struct, frozen=True):
    place: SettingPlace
    path: str = ""
    note: str = ""


def save_places(setting: Setting) -> list[SavePlace]:
    places = []
    if setting.name not in _ONLY_IN_FILES:
        places.append(SavePlace(SettingPlace.SESSION))
    rule = TRUST_RULES[setting.name]
    needs_trust = isinstance(rule, NeedsTrust)
    if not needs_trust or TrustStore.open().file is not None:
        note = ""
        if isinstance(rule, NeedsTrust):
            note = f"others who use the project must trust it: {rule.why}"
        places.append(SavePlace(SettingPlace.PROJECT, PROJECT_FILE.as_posix(), note))
    path = user_file()
    if path is not None:
        note = "a value in a project's file overrides it"
        places.append(SavePlace(SettingPlace.USER, show_path(path), note))
    return places


def usual_place(setting: Setting) -> SettingPlace:
    """Return the place of the current value. For built-in values: the user's file for
    the shell's looks, the project's file for others.
    """
    match setting.origin:
        case SettingOrigin.USER:
            return SettingPlace.USER
        case SettingOrigin.SESSION | SettingOrigin.COMMAND_LINE:
            return SettingPlace.SESSION
        case SettingOrigin.PROJECT | SettingOrigin.UNTRUSTED:
            return SettingPlace.PROJECT
    is_personal = setting.description.group is SettingGroup.SHELL
    return SettingPlace.USER if is_personal and user_file() else SettingPlace.PROJECT


async def save_setting(
    session: Session,
    name: str,
    typed: str,
    place: SettingPlace = SettingPlace.PROJECT,
    seen: Setting | None = None,
) -> str:
    """Save a setting, and use it from now on. Return a remark for the user, or nothing.

    Raises `BadInput`, and changes nothing then: for a value that is not allowed, a file
    that cannot be changed, or a value other than the user has `seen`.
    """
    if seen is not None:
        _expect_unchanged(session, seen)
    if name == "api_base":
        expect_no_secret(typed)
    current = session.project.config
    config, changes = _changed_config(current, name, read_typed(name, typed))
    if name == "tickets_dir":
        confine(session.project.root, config.tickets_dir)
    if place is SettingPlace.SESSION:
        await _use(session, name, config)
        return ""
    path = _file_of(place, session.project)
    if place is SettingPlace.PROJECT and not path.exists():
        for notice in initialise(session.project):
            session.emit(notice)
    text = changed_text(_read_writable(path), str(path), changes)
    await _use_and_write(session, name, config, path, text)
    if place is SettingPlace.PROJECT:
        # Other keys of the same section are not the user's choice.
        names = {name, *(changes.keys() & {"api_base"})}
        session.project = trust_written(session.project, text, names)
    if name == "tickets_dir":
        return "Restart cdd to use it."
    if name == "model" and "api_base" in changes:
        return (
            f"Removed `api_base`: {current.api_base} was the server of {current.model}."
        )
    return _name_override(session.project, name, place)


async def reset_setting(session: Session, setting: Setting) -> str:
    """Remove a setting's value from its source, and use the inherited value. Return
    that value as text. Raises `BadInput`, and changes nothing then.
    """
    _expect_unchanged(session, setting)
    inherited = find_inherited(session, setting)
    value = _inherited_value(session, setting)
    config = with_setting(session.project.config, setting.name, value)
    place = {
        SettingOrigin.USER: SettingPlace.USER,
        SettingOrigin.SESSION: SettingPlace.SESSION,
    }.get(setting.origin, SettingPlace.PROJECT)
    if setting.origin in (SettingOrigin.SESSION, SettingOrigin.COMMAND_LINE):
        await _use(session, setting.name, config)
    else:
        path = _file_of(place, session.project)
        text = without_setting(_read_writable(path), str(path), setting.name)
        await _use_and_write(session, setting.name, config, path, text)
    if setting.origin is SettingOrigin.UNTRUSTED:
        session.project = trust_written(session.project, "", {setting.name})
    return inherited


def find_inherited(session: Session, setting: Setting) -> str:
    """Return the value after a reset, and its source, as text. Raises `BadInput` if the
    setting cannot be reset.
    """
    match setting.origin:
        case SettingOrigin.BUILT_IN:
            raise BadInput(
                f"{setting.description.title} has its built-in value",
                refusal=Refusal.SETTINGS_INVALID,
            )
        case SettingOrigin.ENVIRONMENT:
            variable = setting.source.detail
            raise BadInput(
                f"{variable} is set in the environment",
                hint="Unset the variable and restart cdd.",
                refusal=Refusal.SETTINGS_INVALID,
            )
    if not setting.can_be_changed:
        raise BadInput(
            f"{setting.name} may hold secrets: edit it in the file",
            refusal=Refusal.SETTINGS_INVALID,
        )
    sources = SettingSources.read(session_project(session))
    rest = sources.without(setting.origin, setting.name)
    inherited = rest.setting(setting.name, setting.description)
    return f"{inherited.shown} ({inherited.source})"


def _inherited_value(session: Session, setting: Setting) -> Any:
    sources = SettingSources.read(session_project(session))
    rest = sources.without(setting.origin, setting.name)
    return to_builtins(find_value(rest.stored, setting.name))


def _expect_unchanged(session: Session, seen: Setting) -> None:
    """Raise `BadInput` if a setting has changed since the user saw it."""
    current = find_setting(session_project(session), seen.name)
    if current.value != seen.value or current.origin is not seen.origin:
        raise BadInput(
            f"{seen.name} has changed: it is now {current.shown} ({current.source})",
            hint="Nothing was saved. Open it again to change it.",
            refusal=Refusal.SETTINGS_INVALID,
        )


def _file_of(place: SettingPlace, project: Project) -> Path:
    if place is SettingPlace.PROJECT:
        return project.root / PROJECT_FILE
    path = user_file()
    if path is None:
        raise BadInput(
            "There is no home folder for your own settings",
            refusal=Refusal.SETTINGS_INVALID,
        )
    return path


def _read_writable(path: Path) -> str:
    """Raise `BadInput` if the file is damaged or read-only."""
    text = read_file(path)
    if text is None:
        return ""
    SettingsFile.parse(text, path)
    if not path.stat().st_mode & 0o222:
        raise BadInput(
            f"{path} is read-only, so it was not changed",
            hint="Make it writable, or save the setting in another place.",
            refusal=Refusal.DISK,
        )
    return text


async def _use(session: Session, name: str, config: Config) -> None:
    """Raise `BadInput`, and change nothing then."""
    if find_group(name) is SettingGroup.SHELL:
        # No model depends on it.
        session.project = replace(session.project, config=config)
        return
    await to_its_end(lambda: session.use(config), name="settings")
    if name == "approval":
        session.change_approval(config.approval)


async def _use_and_write(
    session: Session, name: str, config: Config, path: Path, text: str
) -> None:
    """Raise `BadInput`, and change nothing then."""
    former_config, approval = session.project.config, session.approval.value
    await _use(session, name, config)
    try:
        _make_folder(path.parent)
        write_atomic(path, text.encode())
    except BadInput:
        await _use(session, name, replace(former_config, approval=approval))
        raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(
            f"{folder} could not be created: {reason}", refusal=Refusal.DISK
        ) from error


def _changed_config(
    config: Config, name: str, value: object
) -> tuple[Config, dict[str, Any]]:
    """Return the changed settings, and the changes in the file. A model of another
    server drops the address.
    """
    changed = with_setting(config, name, value)
    if name != "model" or changed.model is None:
        section, _, key = name.rpartition(".")
        return changed, {section: {key: value}} if section else {key: value}
    changes: dict[str, Any] = {"model": changed.model}
    if is_same_server(config.model, config.api_base, changed.model):
        return changed, changes
    if config.api_base is not None:
        changes["api_base"] = None
    return with_settings(config, ModelSettings(model=changed.model)), changes


def _name_override(project: Project, name: str, place: SettingPlace) -> str:
    source = SettingSources.read(project).stored_source(name)
    if source.origin is SettingOrigin.ENVIRONMENT:
        return (
            f"{source.detail} is set in the environment and overrides the file at the"
            " next start."
        )
    if place is SettingPlace.USER and source.origin is SettingOrigin.PROJECT:
        return f"{source.detail} overrides it at the next start."
    return ""
