"""All settings with their values, origins and descriptions; and changing one in the
file of the project.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct, to_builtins

from cdd_agent.commands.initialise import initialise
from cdd_agent.files.atomic import write_atomic
from cdd_agent.files.paths import confine
from cdd_agent.guarded_yaml import read_file, read_mapping
from cdd_agent.open_project import Project, stored_config, trust_written
from cdd_agent.redaction import Redactor
from cdd_agent.session import Session
from cdd_agent.settings.config import (
    PROJECT_FILE,
    Config,
    ModelSettings,
    declared_settings,
)
from cdd_agent.settings.models import is_same_server, with_settings
from cdd_agent.settings.reading import SettingsFile, existing_user_file, find_variable
from cdd_agent.settings.writing import changed_text, with_setting
from cdd_agent.threads import to_its_end

_SECRET = ("request.headers", "request.body", "models", "fallbacks")
"""Settings that may hold a key. Their values are not shown, and the user changes them
in the file.
"""


class Setting(Struct, frozen=True):
    """One setting with its current value."""

    name: str
    """With its section: `budget.usd`."""
    value: str
    """The value as in a settings file. A value that may be secret is not shown."""
    origin: str
    """`default`, `user`, `project`, the name of a variable, `session` (a flag or
    `/model`), or `untrusted` (in the project's file, but not used).
    """
    words: str
    """The purpose and the possible values."""
    can_be_changed: bool = True


def settings_of(project: Project) -> list[Setting]:
    """Return all settings in the order of the settings file. Raises `BadInput` if a
    file cannot be read.
    """
    stored = stored_config(project)
    user_file = existing_user_file()
    of_user = SettingsFile.read(user_file).names if user_file else set()
    of_project = SettingsFile.read(project.root / PROJECT_FILE).names
    left_out = [f"{setting.name}." for setting in project.trust.left_out]
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    settings = []
    for declared in declared_settings():
        name = declared.name
        if declared.is_section:
            continue
        value = _value(project.config, name)
        origin = "default"
        if value != _value(stored, name):
            origin = "session"
        elif variable := find_variable(name):
            origin = variable
        elif any(left.startswith(f"{name}.") for left in left_out):
            origin = "untrusted"
        elif name in of_project:
            origin = "project"
        elif name in of_user:
            origin = "user"
        text = (
            json.dumps(_plain(value), ensure_ascii=False)
            if not isinstance(value, str)
            else value
        )
        shown = redactor.redact(text)
        if name in _SECRET and value != _value(Config(), name):
            shown = "set, not shown"
        can_be_changed = name not in _SECRET and shown == text
        settings.append(
            Setting(name, shown, origin, declared.description, can_be_changed)
        )
    return settings


async def change(session: Session, name: str, typed: str) -> str:
    """Set a setting in the project's file and use it from now on. `typed` is YAML;
    empty means the default. Return a remark for the user, or nothing. Raises `BadInput`
    with the allowed values, and then changes nothing.
    """
    value = _plain(_value(Config(), name))
    if typed.strip():
        value = read_mapping(f"value: {typed}", name, "a setting")["value"].value(name)
    now = session.project.config
    changed, changes = _changed(now, name, value)
    if name == "tickets_dir":
        confine(session.project.root, changed.tickets_dir)
    path = session.project.root / PROJECT_FILE
    if not path.exists():
        for notice in initialise(session.project):
            session.emit(notice)
    text = changed_text(read_file(path) or "", str(path), changes)
    await to_its_end(lambda: session.use(changed), name="settings")
    write_atomic(path, text.encode())
    # of a section, the other keys in the file are not the user's choice
    names = {name, *(changes.keys() & {"api_base"})}
    session.project = trust_written(session.project, text, names)
    if name == "approval":
        session.change_approval(changed.approval)
    if name == "tickets_dir":
        return "Restart cdd to use it."
    if name == "model" and "api_base" in changes:
        return f"Removed `api_base`: {now.api_base} was the server of {now.model}."
    variable = find_variable(name)
    return (
        f"{variable} is set in the environment and overrides the file at the next"
        " start."
        if variable
        else ""
    )


def _changed(now: Config, name: str, value: Any) -> tuple[Config, dict[str, Any]]:
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


def _value(config: Config, name: str) -> Any:
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _plain(value: Any) -> Any:
    """Return a value as YAML and JSON have it."""
    return to_builtins(value)
