"""The settings as text: values and sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.commands.typed_settings import (
    NULL,
    as_typed,
    find_value,
    schema_of_setting,
)
from cdd_agent.session.open_project import Project, stored_layers
from cdd_agent.session.session import Session
from cdd_agent.settings.config import PROJECT_FILE, Config, declared_settings
from cdd_agent.settings.descriptions import SettingDescription, SettingGroup
from cdd_agent.settings.reading import (
    SettingsLayers,
    find_variable,
    given_names,
    user_file,
    without_settings,
)
from cdd_agent.settings.user_folders import home_folder
from cdd_agent.text.redaction import Redactor
from cdd_agent.values.value_schemas import describe_values

_SECRET = ("request.headers", "request.body", "models", "fallbacks")
"""Settings that may contain a key. Their values are not shown, and are changed only in
the file.
"""
_HIDDEN = "set, not shown"
_EMPTY = ("", "[]", "{}")


class SettingOrigin(StrEnum):
    BUILT_IN = "built in"
    USER = "user file"
    PROJECT = "project file"
    UNTRUSTED = "not trusted"
    """The project's file has a value that needs trust, and is not used."""
    ENVIRONMENT = "environment"
    COMMAND_LINE = "command line"
    SESSION = "this session"


class SettingSource(Struct, frozen=True):
    """The origin of a value, and its file, variable or flag."""

    origin: SettingOrigin
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.origin} {self.detail}".rstrip()


class Setting(Struct, frozen=True):
    name: str
    """Includes the section: `budget.usd`."""
    description: SettingDescription
    value: str
    """As a user types it; a possible secret is not shown."""
    source: SettingSource
    can_be_changed: bool = True

    @property
    def origin(self) -> SettingOrigin:
        return self.source.origin

    @property
    def shown(self) -> str:
        if self.value == NULL:
            return f"not set: {self.description.unset}".removesuffix(": ")
        return "none" if self.value in _EMPTY else self.value

    @property
    def allowed(self) -> str:
        """The allowed values, such as "a number (at least 0, at most 2)"."""
        return describe_values(schema_of_setting(self.name))

    @property
    def choices(self) -> Mapping[str, str]:
        """A description of each choice; empty for numbers and texts."""
        choices = dict(self.description.choices)
        if choices and self.description.unset:
            choices[NULL] = self.description.unset
        return choices


def read_settings(project: Project) -> list[Setting]:
    """Return all settings by group. Raises `BadInput` if a file cannot be read."""
    sources = SettingSources.read(project)
    settings = []
    for declared in declared_settings():
        if declared.description is not None:
            setting = sources.setting(declared.name, declared.description)
            settings.append(setting)
    groups = list(SettingGroup)
    return sorted(settings, key=lambda one: groups.index(one.description.group))


def find_setting(project: Project, name: str) -> Setting:
    """Raise `BadInput` if a file cannot be read."""
    return next(one for one in read_settings(project) if one.name == name)


def session_project(session: Session) -> Project:
    """Return the project with the session's approval mode."""
    config = replace(session.project.config, approval=session.approval.value)
    return replace(session.project, config=config)


def list_settings(settings: Sequence[Setting]) -> str:
    lines = []
    for group, members in groupby(settings, key=lambda one: one.description.group):
        lines += ["", group.value]
        for one in members:
            title = f"{one.description.title} ({one.name})"
            lines.append(f"  {title:<44} {one.shown}  [{one.source}]")
    return "\n".join(lines).strip()


class SettingSources(Struct, frozen=True):
    """The files, variables and flags that set a project's settings."""

    project: Project
    layers: SettingsLayers
    stored: Config
    """The values of files and variables, without the session's."""

    @classmethod
    def read(cls, project: Project) -> SettingSources:
        layers = stored_layers(project)
        return cls(project, layers, layers.config)

    def setting(self, name: str, description: SettingDescription) -> Setting:
        value = find_value(self.project.config, name)
        text = as_typed(value)
        redactor = Redactor.of_environment(self.project.config.commands.hide_env)
        shown = redactor.redact(text)
        if name in _SECRET and value != find_value(Config(), name):
            shown = _HIDDEN
        can_be_changed = name not in _SECRET and shown == text
        return Setting(name, description, shown, self.source(name), can_be_changed)

    def source(self, name: str) -> SettingSource:
        value = find_value(self.project.config, name)
        if value == find_value(self.stored, name):
            return self.stored_source(name)
        flag = self.project.flags.get(name)
        if flag is not None and as_typed(flag) == as_typed(value):
            return SettingSource(
                SettingOrigin.COMMAND_LINE, f"--{name.replace('_', '-')}"
            )
        return SettingSource(SettingOrigin.SESSION)

    def stored_source(self, name: str) -> SettingSource:
        """Return the source of the value in files and variables."""
        variable = find_variable(name)
        if variable:
            return SettingSource(SettingOrigin.ENVIRONMENT, variable)
        left_out = [f"{one.name}." for one in self.project.trust.left_out]
        if any(one.startswith(f"{name}.") for one in left_out):
            return SettingSource(SettingOrigin.UNTRUSTED, PROJECT_FILE.as_posix())
        if name in self.layers.project.names:
            line = self.layers.project.line(*name.split("."))
            return SettingSource(
                SettingOrigin.PROJECT, f"{PROJECT_FILE.as_posix()}:{line}"
            )
        if name in given_names(self.layers.user):
            return SettingSource(SettingOrigin.USER, show_path(user_file()))
        return SettingSource(SettingOrigin.BUILT_IN)

    def without(self, origin: SettingOrigin, name: str) -> SettingSources:
        """Return the sources after a reset of a setting."""
        keys = [tuple(name.split("."))]
        layers = self.layers
        if origin in (SettingOrigin.PROJECT, SettingOrigin.UNTRUSTED):
            layers = layers.without(keys)
        elif origin is SettingOrigin.USER:
            layers = replace(layers, user=without_settings(layers.user, keys))
        trust = self.project.trust
        left_out = [one for one in trust.left_out if one.name != name]
        project = replace(
            self.project,
            config=layers.config,
            trust=replace(trust, left_out=tuple(left_out)),
        )
        return SettingSources(project, layers, layers.config)


def show_path(path: Path | None) -> str:
    """Return a path with `~` for the user's home."""
    home = home_folder()
    if path is None:
        return ""
    if home is not None and path.is_relative_to(home):
        return f"~/{path.relative_to(home).as_posix()}"
    return str(path)
