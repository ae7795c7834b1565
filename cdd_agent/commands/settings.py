"""The settings in words: the value of each, where it comes from, and how to change it
for the session, for the project or for the user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from cdd_agent.commands.initialise import initialise
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import write_atomic
from cdd_agent.files.paths import confine
from cdd_agent.guarded_yaml import read_file, read_mapping
from cdd_agent.llm.model_search import expect_no_secret
from cdd_agent.open_project import Project, stored_layers, trust_written
from cdd_agent.redaction import Redactor
from cdd_agent.session import Session
from cdd_agent.settings.config import (
    PROJECT_FILE,
    Config,
    ModelSettings,
    declared_settings,
)
from cdd_agent.settings.descriptions import SettingDescription, SettingGroup
from cdd_agent.settings.models import is_same_server, with_settings
from cdd_agent.settings.reading import (
    SettingsFile,
    SettingsLayers,
    find_variable,
    given_names,
    user_file,
    without_settings,
)
from cdd_agent.settings.writing import changed_text, with_setting, without_setting
from cdd_agent.threads import to_its_end
from cdd_agent.trust import SETTINGS as TRUST_RULES
from cdd_agent.trust import NeedsTrust
from cdd_agent.trust_store import TrustStore
from cdd_agent.user_folders import home_folder
from cdd_agent.value_schemas import Schema, describe_values, find_schema

_SECRET = ("request.headers", "request.body", "models", "fallbacks")
"""Settings that may hold a key. Their values are not shown, and the user changes them
in the file.
"""
_HIDDEN = "set, not shown"
_ONLY_IN_FILES = ("tickets_dir",)
"""Settings that are read once, at the start."""
_NULL = "null"
_EMPTY = ("", "[]", "{}")


class Origin(StrEnum):
    """The places where the value of a setting comes from."""

    BUILT_IN = "built in"
    USER = "user file"
    PROJECT = "project file"
    UNTRUSTED = "not trusted"
    """The project's file has a value that needs trust and is not used."""
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"
    SESSION = "this session"


class Place(StrEnum):
    """The places where a setting can be saved."""

    SESSION = "this session"
    PROJECT = "project"
    USER = "user"


class Source(Struct, frozen=True):
    """The origin of a value, and the file, variable or flag that has it."""

    origin: Origin
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.origin} {self.detail}".rstrip()


class Setting(Struct, frozen=True):
    """One setting with its current value."""

    name: str
    """With its section: `budget.usd`."""
    description: SettingDescription
    value: str
    """The value as a user types it. A value that may be secret is not shown."""
    source: Source
    can_be_changed: bool = True

    @property
    def origin(self) -> Origin:
        return self.source.origin

    @property
    def shown(self) -> str:
        """The value in words."""
        if self.value == _NULL:
            return f"not set: {self.description.unset}".removesuffix(": ")
        return "none" if self.value in _EMPTY else self.value

    @property
    def allowed(self) -> str:
        """The kinds of values, such as "a number (at least 0, at most 2)"."""
        return describe_values(_schema(self.name))

    @property
    def choices(self) -> Mapping[str, str]:
        """A line about each value of a choice; empty for numbers and texts."""
        choices = dict(self.description.choices)
        if choices and self.description.unset:
            choices[_NULL] = self.description.unset
        return choices


class SavePlace(Struct, frozen=True):
    """A place that a setting can be saved in."""

    place: Place
    path: str = ""
    note: str = ""


# reading


def read_settings(project: Project) -> list[Setting]:
    """Return all settings, by their groups. Raises `BadInput` if a file cannot be
    read.
    """
    sources = _Sources.read(project)
    settings = []
    for declared in declared_settings():
        if declared.description is not None:
            setting = sources.setting(declared.name, declared.description)
            settings.append(setting)
    groups = list(SettingGroup)
    return sorted(settings, key=lambda one: groups.index(one.description.group))


def find_setting(project: Project, name: str) -> Setting:
    """Return one setting. Raises `BadInput` if a file cannot be read."""
    return next(one for one in read_settings(project) if one.name == name)


def session_project(session: Session) -> Project:
    """Return the project with the session's approval mode."""
    config = replace(session.project.config, approval=session.approval.value)
    return replace(session.project, config=config)


def list_settings(settings: Sequence[Setting]) -> str:
    """Return the settings in groups, one in a line."""
    lines = []
    for group, members in groupby(settings, key=lambda one: one.description.group):
        lines += ["", group.value]
        for one in members:
            title = f"{one.description.title} ({one.name})"
            lines.append(f"  {title:<44} {one.shown}  [{one.source}]")
    return "\n".join(lines).strip()


class _Sources(Struct, frozen=True):
    """The files, variables and flags that set the settings of a project."""

    project: Project
    layers: SettingsLayers
    stored: Config
    """The values of the files and variables, without the session's."""

    @classmethod
    def read(cls, project: Project) -> _Sources:
        layers = stored_layers(project)
        return cls(project, layers, layers.config)

    def setting(self, name: str, description: SettingDescription) -> Setting:
        value = _find_value(self.project.config, name)
        text = _as_typed(value)
        redactor = Redactor.of_environment(self.project.config.commands.hide_env)
        shown = redactor.redact(text)
        if name in _SECRET and value != _find_value(Config(), name):
            shown = _HIDDEN
        can_be_changed = name not in _SECRET and shown == text
        return Setting(name, description, shown, self.source(name), can_be_changed)

    def source(self, name: str) -> Source:
        """Return the source of the current value."""
        value = _find_value(self.project.config, name)
        if value == _find_value(self.stored, name):
            return self.stored_source(name)
        flag = self.project.flags.get(name)
        if flag is not None and _as_typed(flag) == _as_typed(value):
            return Source(Origin.COMMAND_LINE, f"--{name.replace('_', '-')}")
        return Source(Origin.SESSION)

    def stored_source(self, name: str) -> Source:
        """Return the source of the value without the session's."""
        variable = find_variable(name)
        if variable:
            return Source(Origin.ENVIRONMENT, variable)
        left_out = [f"{one.name}." for one in self.project.trust.left_out]
        if any(one.startswith(f"{name}.") for one in left_out):
            return Source(Origin.UNTRUSTED, PROJECT_FILE.as_posix())
        if name in self.layers.project.names:
            line = self.layers.project.line(*name.split("."))
            return Source(Origin.PROJECT, f"{PROJECT_FILE.as_posix()}:{line}")
        if name in given_names(self.layers.user):
            return Source(Origin.USER, _shown_path(user_file()))
        return Source(Origin.BUILT_IN)

    def without(self, origin: Origin, name: str) -> _Sources:
        """Return the sources after a reset of a setting."""
        keys = [tuple(name.split("."))]
        layers = self.layers
        if origin in (Origin.PROJECT, Origin.UNTRUSTED):
            layers = layers.without(keys)
        elif origin is Origin.USER:
            layers = replace(layers, user=without_settings(layers.user, keys))
        trust = self.project.trust
        left_out = [one for one in trust.left_out if one.name != name]
        project = replace(
            self.project,
            config=layers.config,
            trust=replace(trust, left_out=tuple(left_out)),
        )
        return _Sources(project, layers, layers.config)


# values


def check_value(name: str, typed: str) -> None:
    """Raises `BadInput` with the allowed values."""
    with_setting(Config(), name, _read_value(name, typed))


def _read_value(name: str, typed: str) -> object:
    """Return a typed value as YAML has it. Raises `BadInput`."""
    typed = typed.strip()
    schema = _schema(name)
    if typed in ("", _NULL) and schema.get("nullable"):
        return None
    if not typed and schema.get("type") != "array":
        raise BadInput(f"`{name}` needs a value: {describe_values(schema)}")
    if schema.get("type") == "string" or "enum" in schema:
        return typed
    if schema.get("type") == "array" and not typed.startswith("["):
        return [part for part in re.split(r"[,\s]+", typed) if part]
    return read_mapping(f"value: {typed}", name, "a setting")["value"].value(name)


def _schema(name: str) -> Schema:
    return find_schema(Config, name.split("."))


def _as_typed(value: Any) -> str:
    """Return a value as a user types it."""
    plain = to_builtins(value)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, float) and plain.is_integer():
        return str(int(plain))
    if isinstance(plain, list | tuple) and all(isinstance(one, str) for one in plain):
        return ", ".join(plain)
    return json.dumps(plain, ensure_ascii=False)


def _find_value(config: Config, name: str) -> Any:
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


# saving


def save_places(setting: Setting) -> list[SavePlace]:
    """Return the places in which a setting can be saved."""
    places = []
    if setting.name not in _ONLY_IN_FILES:
        places.append(SavePlace(Place.SESSION))
    rule = TRUST_RULES[setting.name]
    needs_trust = isinstance(rule, NeedsTrust)
    if not needs_trust or TrustStore.open().file is not None:
        note = ""
        if isinstance(rule, NeedsTrust):
            note = f"others who use the project must trust it: {rule.why}"
        places.append(SavePlace(Place.PROJECT, PROJECT_FILE.as_posix(), note))
    path = user_file()
    if path is not None:
        note = "project files that set it go first"
        places.append(SavePlace(Place.USER, _shown_path(path), note))
    return places


def usual_place(setting: Setting) -> Place:
    """Return the place that the value came from; of a built-in value, the user's file
    for the looks of the shell, and the project's for everything else.
    """
    match setting.origin:
        case Origin.USER:
            return Place.USER
        case Origin.SESSION | Origin.COMMAND_LINE:
            return Place.SESSION
        case Origin.PROJECT | Origin.UNTRUSTED:
            return Place.PROJECT
    is_personal = setting.description.group is SettingGroup.SHELL
    return Place.USER if is_personal and user_file() else Place.PROJECT


async def save_setting(
    session: Session,
    name: str,
    typed: str,
    place: Place = Place.PROJECT,
    seen: Setting | None = None,
) -> str:
    """Save a setting, and use it from now on. Return a remark for the user, or nothing.

    Raises `BadInput`, and then changes nothing: for a value that is not allowed, a file
    that cannot be changed, and a value other than the one that the user has `seen`.
    """
    if seen is not None:
        _expect_unchanged(session, seen)
    if name == "api_base":
        expect_no_secret(typed)
    now = session.project.config
    config, changes = _changed(now, name, _read_value(name, typed))
    if name == "tickets_dir":
        confine(session.project.root, config.tickets_dir)
    if place is Place.SESSION:
        await _use(session, name, config)
        return ""
    path = _file_of(place, session.project)
    if place is Place.PROJECT and not path.exists():
        for notice in initialise(session.project):
            session.emit(notice)
    text = changed_text(_read_writable(path), str(path), changes)
    await _use_and_write(session, name, config, path, text)
    if place is Place.PROJECT:
        # of a section, the other keys in the file are not the user's choice
        names = {name, *(changes.keys() & {"api_base"})}
        session.project = trust_written(session.project, text, names)
    if name == "tickets_dir":
        return "Restart cdd to use it."
    if name == "model" and "api_base" in changes:
        return f"Removed `api_base`: {now.api_base} was the server of {now.model}."
    return _name_override(session.project, name, place)


async def reset_setting(session: Session, setting: Setting) -> str:
    """Remove the value of a setting from the place that it came from, and use the
    inherited one. Return the inherited value in words. Raises `BadInput`, and then
    changes nothing.
    """
    _expect_unchanged(session, setting)
    inherited = find_inherited(session, setting)
    value = _inherited_value(session, setting)
    config = with_setting(session.project.config, setting.name, value)
    place = {Origin.USER: Place.USER, Origin.SESSION: Place.SESSION}.get(
        setting.origin, Place.PROJECT
    )
    if setting.origin in (Origin.SESSION, Origin.COMMAND_LINE):
        await _use(session, setting.name, config)
    else:
        path = _file_of(place, session.project)
        text = without_setting(_read_writable(path), str(path), setting.name)
        await _use_and_write(session, setting.name, config, path, text)
    if setting.origin is Origin.UNTRUSTED:
        session.project = trust_written(session.project, "", {setting.name})
    return inherited


def find_inherited(session: Session, setting: Setting) -> str:
    """Return the value that applies after a reset, and its source, in words. Raises
    `BadInput` if a setting cannot be reset.
    """
    match setting.origin:
        case Origin.BUILT_IN:
            raise BadInput(f"{setting.description.title} has its built-in value")
        case Origin.ENVIRONMENT:
            variable = setting.source.detail
            raise BadInput(
                f"{variable} is set in the environment",
                hint="Unset the variable and restart cdd.",
            )
    if not setting.can_be_changed:
        raise BadInput(f"{setting.name} may hold secrets: edit it in the file")
    sources = _Sources.read(session_project(session))
    rest = sources.without(setting.origin, setting.name)
    inherited = rest.setting(setting.name, setting.description)
    return f"{inherited.shown} ({inherited.source})"


def _inherited_value(session: Session, setting: Setting) -> Any:
    sources = _Sources.read(session_project(session))
    rest = sources.without(setting.origin, setting.name)
    return to_builtins(_find_value(rest.stored, setting.name))


def _expect_unchanged(session: Session, seen: Setting) -> None:
    """Raises `BadInput` if a setting is no longer as the user has seen it."""
    current = find_setting(session_project(session), seen.name)
    if current.value != seen.value or current.origin is not seen.origin:
        raise BadInput(
            f"{seen.name} has changed: it is now {current.shown} ({current.source})",
            hint="Nothing was saved. Open it again to change it.",
        )


def _file_of(place: Place, project: Project) -> Path:
    if place is Place.PROJECT:
        return project.root / PROJECT_FILE
    path = user_file()
    if path is None:
        raise BadInput("There is no home folder for your own settings")
    return path


def _read_writable(path: Path) -> str:
    """Return the text of a settings file. Raises `BadInput` if the file is damaged or
    must not be written.
    """
    text = read_file(path)
    if text is None:
        return ""
    SettingsFile.parse(text, path)
    if not path.stat().st_mode & 0o222:
        raise BadInput(
            f"{path} is read-only, so it was not changed",
            hint="Make it writable, or save the setting in another place.",
        )
    return text


async def _use(session: Session, name: str, config: Config) -> None:
    """Use other settings from now on. Raises `BadInput`, and then changes nothing."""
    if _group_of(name) is SettingGroup.SHELL:
        # no model depends on it, so none is made again
        session.project = replace(session.project, config=config)
        return
    await to_its_end(lambda: session.use(config), name="settings")
    if name == "approval":
        session.change_approval(config.approval)


async def _use_and_write(
    session: Session, name: str, config: Config, path: Path, text: str
) -> None:
    """Use other settings and write the file. Raises `BadInput`, and then changes
    nothing.
    """
    before, approval = session.project.config, session.approval.value
    await _use(session, name, config)
    try:
        _make_folder(path.parent)
        write_atomic(path, text.encode())
    except BadInput:
        await _use(session, name, replace(before, approval=approval))
        raise


def _group_of(name: str) -> SettingGroup | None:
    for declared in declared_settings():
        if declared.name == name and declared.description is not None:
            return declared.description.group
    return None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"{folder} could not be created: {reason}") from error


def _changed(now: Config, name: str, value: object) -> tuple[Config, dict[str, Any]]:
    """Return the changed settings, and the changes in the file. A model of another
    server drops the address.
    """
    changed = with_setting(now, name, value)
    if name != "model" or changed.model is None:
        section, _, key = name.rpartition(".")
        return changed, {section: {key: value}} if section else {key: value}
    changes: dict[str, Any] = {"model": changed.model}
    if is_same_server(now.model, now.api_base, changed.model):
        return changed, changes
    if now.api_base is not None:
        changes["api_base"] = None
    return with_settings(now, ModelSettings(model=changed.model)), changes


def _name_override(project: Project, name: str, place: Place) -> str:
    """Return a warning if another source goes before the file at the next start."""
    source = _Sources.read(project).stored_source(name)
    if source.origin is Origin.ENVIRONMENT:
        return (
            f"{source.detail} is set in the environment and overrides the file at the"
            " next start."
        )
    if place is Place.USER and source.origin is Origin.PROJECT:
        return f"{source.detail} overrides it at the next start."
    return ""


def _shown_path(path: Path | None) -> str:
    """Return a path with `~` for the user's home."""
    home = home_folder()
    if path is None:
        return ""
    if home is not None and path.is_relative_to(home):
        return f"~/{path.relative_to(home).as_posix()}"
    return str(path)
