"""Read settings: the user's own file, then the project's `.cdd/config.yaml`, then
`CDD_*` variables, then flags. The later layer wins, key by key; an address stays with
its model.
"""

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import (
    Commands,
    Config,
    ModelSettings,
    Section,
    declared_settings,
    with_values,
)
from cdd_agent.settings.models import SERVER_DEFAULTS, is_same_server
from cdd_agent.settings.user_folders import config_folder
from cdd_agent.values.guarded_yaml import YamlEntry, read_file, read_mapping
from cdd_agent.values.partly_shown import PartlyShown
from cdd_agent.values.typed_values import Place, WrongValue, read
from cdd_agent.values.value_schemas import find_schema

USER_CONFIG = "CDD_USER_CONFIG"
TRUST = "CDD_TRUST"
"""The variable with which a script accepts all settings of a project."""
_UNSAFE_SWITCHES = ("CDD_ENABLE_UNSAFE_COMMANDS", "HIVE_ENABLE_UNSAFE_COMMANDS")
FROM_ENVIRONMENT = (
    "model",
    "api_base",
    "model_adapter",
    "tool_calls",
    "context_window",
    "pictures",
    "effort",
    "temperature",
    "max_output_tokens",
    "tickets_dir",
    "test_command",
    "test_timeout",
    "max_attempts",
    "jobs",
    "approval",
    "require",
)
VARIABLES = (
    USER_CONFIG,
    TRUST,
    *_UNSAFE_SWITCHES,
    *(f"CDD_{name.upper()}" for name in FROM_ENVIRONMENT),
)
_OTHER_VARIABLES = (
    "CDD_COMMAND",
    "CDD_WORKSPACES",
    "CDD_CLUSTER_PATIENCE",
    "CDD_WORKER_ENVIRONMENT",
)
"""Variables that are read elsewhere and are no settings."""
_MIN_LIKENESS = 0.73
"""The minimum likeness of a misspelt variable. `CDD_MODULE` is below it for
`CDD_MODEL`.
"""
_YES_NO = {"yes": True, "on": True, "no": False, "off": False}
_YAML_NOTE = "in YAML, yes and on mean true, no and off mean false"


class SettingsFile(PartlyShown, frozen=True):
    """The valid settings of a file, with their lines."""

    hidden_fields = ("text", "values", "_entries")

    path: Path
    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    _entries: Mapping[Any, YamlEntry] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """Read a file, which may be missing. Raises `BadInput`."""
        text = read_file(path)
        return cls(path) if text is None else cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: Path) -> "SettingsFile":
        """Raises `BadInput`."""
        source = str(path)
        entries = read_mapping(text, source, "a config")
        content = {key: entry.value(source) for key, entry in entries.items()}
        file = cls(path, text, {}, entries)
        values = check_settings(content, lambda place: f"{path}:{file.line(*place)}")
        return replace(file, values=values)

    def line(self, *place: str | int) -> int:
        """Return the line of the last key of `place` that the file has."""
        line, entries = 1, self._entries
        for key in place:
            entry = {str(name): entry for name, entry in entries.items()}.get(str(key))
            if entry is None:
                break
            line = entry.line
            entries = {}
            if entry.is_mapping:
                entries = entry.entries(str(self.path))
        return line

    @property
    def names(self) -> set[str]:
        """The given settings, such as `budget.usd`."""
        return given_names(self.values)


class SettingsLayers(PartlyShown, frozen=True):
    """The settings of a project by origin. The files are read once, so that the user
    sees the settings in use.
    """

    hidden_fields = ("user", "environment", "flags")

    user: dict[str, Any]
    project: SettingsFile
    environment: dict[str, Any]
    flags: dict[str, Any]
    is_unsafe: bool
    """True if a variable switches all limits of commands off."""

    @classmethod
    def read(
        cls,
        project: SettingsFile,
        flags: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
    ) -> "SettingsLayers":
        """Read the other layers. `flags` with the value None were not given. Raises
        `BadInput`.
        """
        environment = os.environ if environment is None else environment
        user_settings = existing_user_file()
        variables = {}
        for name in FROM_ENVIRONMENT:
            value = environment.get(f"CDD_{name.upper()}")
            if value:
                variables[name] = value.strip()
        given = {name: value for name, value in flags.items() if value is not None}
        return cls(
            SettingsFile.read(user_settings).values if user_settings else {},
            project,
            check_settings(
                variables,
                lambda place: f"CDD_{str(place[0]).upper()}",
                list(misspelt_variables(environment).values()),
            ),
            check_settings(given, lambda place: f"--{str(place[0]).replace('_', '-')}"),
            _is_switched(environment),
        )

    def without(self, leave_out: Iterable[tuple[str, ...]]) -> "SettingsLayers":
        """Leave out settings of the project's file, each given by its keys."""
        values = without_settings(self.project.values, leave_out)
        return replace(self, project=replace(self.project, values=values))

    @property
    def config(self) -> Config:
        return self._merge(self.project.values)

    @property
    def own_config(self) -> Config:
        """The settings without the project's file."""
        return self._merge({})

    def _merge(self, project: dict[str, Any]) -> Config:
        layers = _Layers()
        layers.add(self.user)
        layers.add(project)
        layers.add(self.environment, is_for_any_model="model" not in self.environment)
        if self.is_unsafe:
            layers.add({"commands": {"mode": "unsafe"}})
        layers.add(self.flags)
        return with_values(Config(), layers.merged)


class _Layers(Struct):
    merged: dict[str, Any] = field(default_factory=dict)
    _address_model: str | None = None
    """The model that came with `api_base`; None if it is for any model."""

    def add(self, layer: dict[str, Any], *, is_for_any_model: bool = False) -> None:
        """Put a layer over the others. A model without an address is not called at
        another model's server, unless that address `is_for_any_model`.
        """
        model, address = layer.get("model"), self.merged.get("api_base")
        if (
            model
            and self._address_model
            and not is_same_server(self._address_model, address, model)
        ):
            for name in SERVER_DEFAULTS:
                self.merged.pop(name, None)
            self._address_model = None
        for name, value in layer.items():
            section = self.merged.get(name)
            is_section = isinstance(section, dict) and isinstance(value, dict)
            self.merged[name] = section | value if is_section else value
        if "api_base" in layer:
            self._address_model = None if is_for_any_model else self.merged.get("model")


def given_names(values: Mapping[str, Any]) -> set[str]:
    """Return the names of settings, such as `budget`, `budget.usd`."""
    names = set(values)
    for name, value in values.items():
        if isinstance(value, dict):
            names |= {f"{name}.{key}" for key in value}
    return names


def without_settings(
    values: dict[str, Any], leave_out: Iterable[tuple[str, ...]]
) -> dict[str, Any]:
    """Return settings without some, each given by its keys."""
    for name, *keys in leave_out:
        section = values.get(name)
        rest = {key: value for key, value in values.items() if key != name}
        if not keys:
            values = rest
        elif isinstance(section, ModelSettings):
            given = {key: v for key, v in section.given.items() if key != keys[0]}
            values = rest | {name: ModelSettings(**given)}
        elif isinstance(section, dict):
            values = rest | {name: without_settings(section, [tuple(keys)])}
    return values


def misspelt_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that look misspelt, with messages. Other unknown variables
    may belong to other programs.
    """
    unknown = [
        variable
        for variable, value in environment.items()
        if value and variable.startswith("CDD_")
        if variable not in VARIABLES and variable not in _OTHER_VARIABLES
    ]
    if not unknown:
        return {}
    settings = {
        setting.name.replace(".", "_").upper(): setting.name
        for setting in declared_settings()
    }
    names = sorted({name.partition("_")[2] for name in VARIABLES})
    messages = {}
    for variable in unknown:
        name = variable.removeprefix("CDD_")
        similar = difflib.get_close_matches(name, names, n=2, cutoff=_MIN_LIKENESS)
        advice = ""
        if name in settings:
            advice = f"set `{settings[name]}` in a settings file instead"
        elif similar:
            advice = f"did you mean {' or '.join(f'CDD_{one}' for one in similar)}?"
        if advice:
            messages[variable] = f"{variable} is not a variable of cdd; {advice}"
    return messages


def find_variable(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    variables: Sequence[str] = ()
    if name == "commands.mode":
        variables = _UNSAFE_SWITCHES
    elif name in FROM_ENVIRONMENT:
        variables = [f"CDD_{name.upper()}"]
    return next((one for one in variables if environment.get(one)), None)


def use_switches(commands: Commands, environment: Mapping[str, str]) -> Commands:
    return replace(commands, mode="unsafe") if _is_switched(environment) else commands


def _is_switched(environment: Mapping[str, str]) -> bool:
    values = [environment.get(name, "").strip().lower() for name in _UNSAFE_SWITCHES]
    return any(value in ("true", "1", "yes") for value in values)


def user_file() -> Path | None:
    """Return the path of the user's own settings, or None without a home. The file may
    not exist.
    """
    chosen = os.environ.get(USER_CONFIG)
    if chosen:
        return Path(chosen)
    folder = config_folder()
    return folder / "config.yaml" if folder else None


def existing_user_file() -> Path | None:
    """Return the user's settings file, if it exists or the user named it. In a
    container, the user may have no access to `HOME`.
    """
    file = user_file()
    if file is None or os.environ.get(USER_CONFIG):
        return file
    try:
        file.stat()
    except OSError:
        return None
    return file


def check_settings(
    content: Mapping[Any, Any],
    where: Callable[[Place], str],
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """Return settings as values of their types. `where` names a place in messages.
    Raises `BadInput` with the first fault of each setting, after other `problems`.
    """
    valid: dict[str, Any] = {}
    faults = [*problems]
    hint = ""
    for key, value in _split_sections(content):
        try:
            setting = getattr(read(Config, {key: _respell((key,), value)}), key)
        except WrongValue as error:
            place = error.place or (key,)
            note = f" ({_YAML_NOTE})" if isinstance(error.value, bool) else ""
            faults.append(f"{where(place)}: {error}{note}")
            if key not in Config.__struct_fields__:
                hint = "See docs/reference/settings.md for all settings."
            continue
        if isinstance(setting, Section):
            given = {name: getattr(setting, name) for name in value}
            valid[key] = valid.get(key, {}) | given
        else:
            valid[key] = setting
    if faults:
        raise BadInput(
            "\n".join(dict.fromkeys(faults)),
            hint=hint,
            refusal=Refusal.SETTINGS_INVALID,
        )
    return valid


def _split_sections(content: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield a mapping once for each of its keys."""
    for key, value in content.items():
        if isinstance(value, dict) and value:
            for name, item in value.items():
                yield str(key), {str(name): item}
        else:
            yield str(key), value


def _respell(place: Place, value: Any) -> Any:
    """Convert a value's spelling to its type. YAML reads `on` and `off` as booleans,
    and variables use these words for booleans. A model string stands for a mapping.
    """
    if isinstance(value, list):
        return [_respell((*place, number), item) for number, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _respell((*place, key), item) for key, item in value.items()}
    if len(place) == 2 and place[0] in ("models", "fallbacks"):
        return {"model": value} if isinstance(value, str) else value
    return _respell_word(place, value)


def _respell_word(place: Place, value: Any) -> Any:
    is_word = isinstance(value, str) and value.lower() in _YES_NO
    if not is_word and not isinstance(value, bool):
        return value
    schema = find_schema(Config, place)
    if is_word and schema.get("type") == "boolean":
        return _YES_NO[value.lower()]
    word = "on" if value else "off"
    return word if not is_word and word in schema.get("enum", ()) else value
