"""Settings: the user's own file, then the project's `.cdd/config.yaml`, then `CDD_*`
variables, then flags.

The later wins, key by key; an address stays with its model. A wrong key or value is an
error that names the file, the line and what is allowed.
"""

import contextlib
import difflib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.forms import Fault, NotOfForm, Respelled, read
from cdd_agent.guarded_yaml import YamlEntry, read_file, read_mapping
from cdd_agent.model_names import is_hosted_model, provider_of
from cdd_agent.partly_shown import PartlyShown
from cdd_agent.user_folders import config_folder
from cdd_agent.web_address import is_local_server, web_address

PROJECT_FILE = Path(".cdd") / "config.yaml"

Approval = Literal["ask", "edits", "auto"]
# YAML 1.1 reads `off` as false
_YAML_OFF = Respelled(lambda value: "off" if value is False else value)
_YAML_ON = Respelled(lambda value: "on" if value is True else value)


class _Settings(
    PartlyShown, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Settings that stand together. What is not allowed is found by `forms.read`."""


def runs_others(program: str) -> bool:
    """Its arguments name what is run: where it may run, anything may."""
    return re.sub(r"\.(exe|com|bat|cmd)$", "", program.lower()) in _RUN_OTHERS


def _allowed_program(name: str) -> str:
    if not re.fullmatch(r"\w[\w.+@-]*", name):
        raise ValueError(
            "allowed: names of programs, without a folder, spaces or arguments"
        )
    if runs_others(name):
        raise ValueError(
            f"`{name}` runs whatever it is given, so everything would be allowed; use"
            " `commands.mode: ask`"
        )
    return name


def _variable_name(name: str) -> str:
    if not re.fullmatch(r"[^=\s\0]+", name):
        raise ValueError("allowed: names of variables, also with `*` and `?`")
    return name


def _model_string(text: str) -> str:
    if not text.strip():
        raise ValueError("give a model string, as anthropic/claude-sonnet-4-5")
    return text


def _header_name(name: str) -> str:
    if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII):
        raise ValueError("allowed: names of HTTP headers")
    return name


def _header_value(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError("allowed: a text of ASCII characters on one line")
    return value


def _finite(number: float) -> float:
    if math.isinf(number):
        raise ValueError(f"allowed: {_ALLOWED['budget.usd']}")
    return number


def _own_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Fields for a request's JSON that do not take its content away."""
    if taken := sorted(body.keys() & _CONTENT):
        raise ValueError(
            f"cdd itself writes {', '.join(taken)}; allowed are all other fields of the"
            " provider's"
        )
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"allowed: what JSON can say ({error})") from error
    return body


_CONTENT = frozenset(
    {"model", "messages", "input", "system", "instructions", "tools", "stream"}
)
"""The fields of a request that say what is asked, and of whom."""
VariableNames = tuple[Annotated[str, _variable_name], ...]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class Commands(_Settings, frozen=True):
    """Which commands may run: those that a model asks for, and the checks that a plan
    names.
    """

    mode: Literal["safe", "ask", "unsafe"] = "safe"
    """For a program that is not on the list, and a text that needs a shell: it is
    refused, a person is asked, or a real shell runs everything.
    """
    allow: tuple[Annotated[str, _allowed_program], ...] = ()
    """Names of programs, beside those that are always on the list."""
    timeout: Seconds = 60
    hide_env: VariableNames = ()
    """Variables that no command sees, beside those that look like secrets."""
    pass_env: VariableNames = ()
    """Variables that commands see although they look like secrets."""


class Web(_Settings, frozen=True):
    """Pages that are read for a model."""

    private: bool = False
    """Also those of this machine and its network."""


class Notifications(_Settings, frozen=True):
    """How the shell calls a person who looks at something else."""

    bell: bool = True
    desktop: Annotated[Literal["auto", "osc9", "osc777", "off"], _YAML_OFF] = "auto"
    """A notification, and by which sequence; `auto`: by the one that the terminal is
    known to understand, if any.
    """
    title: bool = True
    """The terminal's title says how far a run is."""
    progress: Annotated[Literal["auto", "on", "off"], _YAML_OFF, _YAML_ON] = "auto"
    """So does the taskbar; `auto`: where the terminal is known to understand that."""


class Budget(_Settings, frozen=True):
    """The limits of a run, over all processes that it goes on in. It stops before the
    call that could pass one.
    """

    usd: Annotated[float, Meta(gt=0), _finite] | None = None
    tokens: Annotated[int, Meta(gt=0)] | None = None


class OwnRequest(_Settings, frozen=True):
    """Additions to every request of a model, for options that this program does not
    know.
    """

    unshown = ("body", "headers")

    body: Annotated[dict[str, Any], _own_fields] = field(default_factory=dict)
    """Fields of its JSON, over those of the same name."""
    headers: dict[Annotated[str, _header_name], Annotated[str, _header_value]] = field(
        default_factory=dict
    )


ModelName = Annotated[str, _model_string] | None
"""Any litellm model string, `script:FILE` for a scripted model, or `replay:FILE` for a
recorded one.
"""
Address = Annotated[str, web_address] | None
Window = Annotated[int, Meta(ge=1_000)] | None
"""How many tokens the model takes in; None: what is known of it."""
Effort = Literal["none", "low", "medium", "high", "max"] | None
"""How much it thinks."""
Temperature = Annotated[float, Meta(ge=0, le=2)] | None
LongestReply = Annotated[int, Meta(ge=1)] | None
"""Tokens, thoughts included."""


class ModelSettings(_Settings, frozen=True):
    """Which model is asked, and how, as far as that is given."""

    model: ModelName | UnsetType = UNSET
    api_base: Address | UnsetType = UNSET
    context_window: Window | UnsetType = UNSET
    pictures: bool | UnsetType | None = UNSET
    effort: Effort | UnsetType = UNSET
    temperature: Temperature | UnsetType = UNSET
    max_output_tokens: LongestReply | UnsetType = UNSET
    request: OwnRequest | UnsetType = UNSET

    @property
    def given(self) -> dict[str, Any]:
        """Those of them that are, by name."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not UNSET}


ModelChoice = Annotated[
    ModelSettings,
    Respelled(lambda said: {"model": said} if isinstance(said, str) else said),
]
"""A model string, or a mapping with more."""


def _with_names(choices: tuple[ModelSettings, ...]) -> tuple[ModelSettings, ...]:
    if not all(choice.model for choice in choices):
        raise ValueError("each of them names a `model`")
    return choices


class Models(_Settings, frozen=True):
    """The settings that one role has instead of everyone's."""

    planner: ModelChoice = ModelSettings()
    executor: ModelChoice = ModelSettings()
    chat: ModelChoice = ModelSettings()
    socrates: ModelChoice = ModelSettings()


Role = Literal["planner", "executor", "chat", "socrates"]
ROLES: tuple[Role, ...] = get_args(Role)


class Config(_Settings, frozen=True):
    """All settings, with their defaults. Times are in seconds. Of how a model is asked,
    None means whatever the provider does by itself.
    """

    model: ModelName = None
    api_base: Address = None
    context_window: Window = None
    pictures: bool | None = None
    """Whether the model takes pictures; None: what is known of it."""
    effort: Effort = None
    temperature: Temperature = None
    max_output_tokens: LongestReply = None
    request: OwnRequest = OwnRequest()
    models: Models = Models()
    """By role, where one has a model or settings of its own."""
    fallbacks: Annotated[tuple[ModelChoice, ...], _with_names] = ()
    """Asked in this order where a model's provider is down, or has no quota left."""
    model_adapter: Literal["auto", "litellm", "direct"] = "auto"
    """The way to the model: `direct` for servers whose protocol the program speaks,
    `litellm` for all; `auto` prefers `direct`.
    """
    tickets_dir: str = "tickets"
    test_command: str | None = None
    """None: found by what the project holds."""
    test_timeout: Seconds = 300
    tool_calls: Annotated[Literal["auto", "on", "off"], _YAML_OFF, _YAML_ON] = "auto"
    """Whether a model is offered tools: `auto` to those that are known to call them."""
    max_attempts: Annotated[int, Meta(ge=1, le=100)] = 3
    jobs: Annotated[int, Meta(ge=1, le=64)] = 1
    """How many steps of a plan run at once, where it is carried out to its end."""
    approval: Approval = "edits"
    commit: Annotated[Literal["off", "step"], _YAML_OFF] = "off"
    require: Annotated[Literal["off", "checked", "verified"], _YAML_OFF] = "off"
    """`verified`: a step fails the run unless its tests have passed. `checked`: a step
    fails the run if it is unverified or was skipped.
    """
    strength: Annotated[int, Meta(ge=0, le=100)] | None = None
    """The percentage of noticed faults below which tests are weak; None: any is
    enough.
    """
    strength_faults: Annotated[int, Meta(ge=1, le=1_000)] = 30
    """Faults of a step that are tried at most."""
    strength_seconds: Seconds = 300
    """For the faults of a step."""
    commands: Commands = Commands()
    web: Web = Web()
    notifications: Notifications = Notifications()
    budget: Budget = Budget()
    record: str | None = None
    """A file that keeps what the model is asked and answers, to be played with
    `replay:FILE`.
    """


_NO_SERVER = {
    "api_base": None,
    "context_window": None,
    "pictures": None,
    "request": OwnRequest(),
}
"""The settings that are meant for one server, where none is given."""

# Shells, and programs whose arguments are a command. A list of strings would be a
# screen long.
_RUN_OTHERS = frozenset(
    """
    sh ash bash csh dash elvish fish ksh ksh93 mksh nu osh pwsh powershell rbash tcsh
    xonsh yash zsh cmd wsl . at batch builtin busybox bwrap cgexec chroot chrt command
    coproc crontab dbus-run-session doas entr env eval exec expect fakeroot firejail
    flock ionice ltrace nice nohup nsenter parallel pkexec prlimit proot rlwrap runas
    runuser script setpriv setsid source start stdbuf strace su sudo systemd-run taskset
    time timeout toybox trap unbuffer unshare watch xargs xvfb-run
    """.split()  # noqa: SIM905
)
_UNSAFE_SWITCHES = ("CDD_ENABLE_UNSAFE_COMMANDS", "HIVE_ENABLE_UNSAFE_COMMANDS")

_ALLOWED = {
    "test_timeout": "a number of seconds over 0, at most 86400",
    "context_window": "a whole number of tokens from 1000, or null",
    "pictures": "true, false, or null",
    "temperature": "a number from 0 to 2, or null",
    "max_output_tokens": "a whole number of tokens over 0, or null",
    "request": "a mapping with body, headers",
    "request.body": "a mapping of fields",
    "request.headers": "a mapping of names to texts",
    "max_attempts": "a whole number from 1 to 100",
    "jobs": "a whole number from 1 to 64",
    "strength": "a whole number from 0 to 100, or null",
    "strength_faults": "a whole number from 1 to 1000",
    "strength_seconds": "a number of seconds over 0, at most 86400",
    "models": f"a mapping with {', '.join(ROLES)}",
    **{
        f"models.{role}": (
            "a model string, or a mapping with model, effort, temperature, ..."
        )
        for role in ROLES
    },
    "fallbacks": (
        "a list of model strings, or of mappings with model, effort, temperature, ..."
    ),
    "commands": f"a mapping with {', '.join(Commands.__struct_fields__)}",
    "commands.allow": "a list of names of programs",
    "commands.timeout": "a number of seconds over 0, at most 86400",
    "commands.hide_env": "a list of names of variables",
    "commands.pass_env": "a list of names of variables",
    "web": "a mapping with private",
    "web.private": "true or false",
    "notifications": f"a mapping with {', '.join(Notifications.__struct_fields__)}",
    "notifications.bell": "true or false",
    "notifications.title": "true or false",
    "budget": "a mapping with usd, tokens",
    "budget.usd": "a number of dollars over 0, or null",
    "budget.tokens": "a whole number over 0, or null",
}
_FROM_ENVIRONMENT = (
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
USER_CONFIG = "CDD_USER_CONFIG"
"""The variable that names another file than the platform's for the user's own settings.
"""
_INTERNAL = (
    "CDD_COMMAND",
    "CDD_WORKSPACES",
    "CDD_CLUSTER_PATIENCE",
    "CDD_WORKER_ENVIRONMENT",
)
"""Variables that are read elsewhere, and are no settings."""
TRUST = "CDD_TRUST"
"""The variable by which a script accepts all settings of a project."""
VARIABLES = (
    USER_CONFIG,
    TRUST,
    *_UNSAFE_SWITCHES,
    *(f"CDD_{key.upper()}" for key in _FROM_ENVIRONMENT),
)
"""All variables that settings come from."""
_LIKE = 0.73
"""The likeness from which on a variable is taken for a misspelling: `CDD_MODULE` for
`CDD_MODEL` is not.
"""


class SettingsFile(PartlyShown, frozen=True):
    """The settings that a file sets, valid ones, and their lines. It was read once."""

    unshown = ("text", "values", "_entries")

    path: Path
    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    _entries: Mapping[Any, YamlEntry] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "SettingsFile":
        """A missing or empty file sets none. Raises `BadInput`."""
        text = read_file(path)
        return cls(path) if text is None else cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: Path) -> "SettingsFile":
        """Read the text of a file. Raises `BadInput`."""
        source = str(path)
        entries = read_mapping(text, source, "a config")
        content = {key: entry.value(source) for key, entry in entries.items()}
        values = _checked(
            content, lambda keys: f"{path}:{_line(entries, keys, source)}"
        )
        return cls(path, text, values, entries)

    def line(self, *keys: str) -> int:
        """Return the line, from 1, of the innermost of `keys` that the file has."""
        return _line(self._entries, keys, str(self.path))


class SettingsLayers(PartlyShown, frozen=True):
    """The settings of a project by their origin. The files were read once: what is
    shown of them is what is used.
    """

    unshown = ("user", "environment", "flags")

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
        """Read the other layers. `flags` whose value is None were not given. Raises
        `BadInput`.
        """
        environment = os.environ if environment is None else environment
        of_user = existing_user_file()
        in_environment = {
            key: value
            for key in _FROM_ENVIRONMENT
            if (value := environment.get(f"CDD_{key.upper()}"))
        }
        wrong = misspelt(environment).values()
        given = {key: value for key, value in flags.items() if value is not None}
        return cls(
            SettingsFile.read(of_user).values if of_user else {},
            project,
            _checked(in_environment, lambda path: f"CDD_{path[0].upper()}", *wrong),
            _checked(given, lambda path: f"--{path[0].replace('_', '-')}"),
            _is_switched(environment),
        )

    def without(self, leave_out: Iterable[tuple[str, ...]]) -> "SettingsLayers":
        """Return the layers without some settings of the project's file, each named by
        its keys.
        """
        values = without_settings(self.project.values, leave_out)
        return replace(self, project=replace(self.project, values=values))

    @property
    def config(self) -> Config:
        """The settings that hold."""
        return self._merged(self.project.values)

    @property
    def own_config(self) -> Config:
        """The settings that hold without the project's file."""
        return self._merged({})

    def _merged(self, project: dict[str, Any]) -> Config:
        layers = _Layers()
        layers.add(self.user)
        layers.add(project)
        layers.add(self.environment, is_for_any_model="model" not in self.environment)
        if self.is_unsafe:
            layers.add({"commands": {"mode": "unsafe"}})
        layers.add(self.flags)
        return _with(Config(), layers.merged)


def without_settings(
    values: dict[str, Any], leave_out: Iterable[tuple[str, ...]]
) -> dict[str, Any]:
    """Return the settings of a file without some, each named by its keys."""
    for name, *keys in leave_out:
        section = values.get(name)
        rest = {key: value for key, value in values.items() if key != name}
        if not keys:
            values = rest
        elif isinstance(section, ModelSettings):
            kept = {key: v for key, v in section.given.items() if key != keys[0]}
            values = rest | {name: ModelSettings(**kept)}
        elif isinstance(section, dict):
            values = rest | {name: without_settings(section, [tuple(keys)])}
    return values


class _Layers(Struct):
    """The settings of the layers so far. The later layer wins, key by key."""

    merged: dict[str, Any] = field(default_factory=dict)
    _address_model: str | None = None
    """The model that `api_base` was given with; None if it is for any model."""

    def add(self, layer: dict[str, Any], *, is_for_any_model: bool = False) -> None:
        """Put a layer over the others. A model without an address is not asked at the
        server of another model. `is_for_any_model`: the layer's `api_base` is for
        whatever model a later layer names.
        """
        model = layer.get("model")
        if (
            model
            and self._address_model
            and not is_same_server(
                self._address_model, self.merged.get("api_base"), model
            )
        ):
            self.merged = {
                name: value
                for name, value in self.merged.items()
                if name not in _NO_SERVER
            }
            self._address_model = None
        self.merged = _merged(self.merged, layer)
        if "api_base" in layer:
            self._address_model = None if is_for_any_model else self.merged.get("model")


def misspelt(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are none of ours, but look like it, each with words for it.
    One that is like none may be another program's.
    """
    given = [
        name for name, value in environment.items() if value and name.startswith("CDD_")
    ]
    found = dict[str, str]()
    for name in (name for name in given if name not in (*VARIABLES, *_INTERNAL)):
        key = name.removeprefix("CDD_")
        if setting := next(
            (one for one in all_settings() if one.replace(".", "_").upper() == key), ""
        ):
            found[name] = (
                f"{name}: there is no such variable; `{setting}` is set in a settings"
                " file"
            )
        elif near := _near(
            key, {known.partition("_")[2] for known in VARIABLES}, _LIKE
        ):
            names = " or ".join(f"CDD_{one}" for one in near)
            found[name] = f"{name}: there is no such variable; did you mean {names}?"
    return found


def all_settings() -> Iterator[str]:
    """Yield the names of all settings, those in sections as `budget.usd`."""
    defaults = Config()
    for name in Config.__struct_fields__:
        yield name
        if isinstance(section := getattr(defaults, name), _Settings):
            yield from (f"{name}.{key}" for key in section.__struct_fields__)


def set_in_file(path: Path) -> frozenset[str]:
    """The names of the settings that a file sets, those in sections as `budget.usd`.
    Raises `BadInput`.
    """
    text = read_file(path)
    entries = read_mapping(text, str(path), "a config") if text is not None else {}
    names = set(map(str, entries))
    for name, entry in entries.items():
        node: Any = entry.node
        if node.id == "mapping":
            names |= {f"{name}.{key}" for key in entry.entries(str(path))}
    return frozenset(names)


def set_in_environment(
    name: str, environment: Mapping[str, str] = os.environ
) -> str | None:
    """The variable that sets this setting, if there is one."""
    if name == "commands.mode":
        return next(
            (switch for switch in _UNSAFE_SWITCHES if environment.get(switch)), None
        )
    variable = f"CDD_{name.upper()}"
    return variable if name in _FROM_ENVIRONMENT and environment.get(variable) else None


def with_setting(config: Config, name: str, value: object) -> Config:
    """The settings with another value for one of them, also in a section. Raises
    `BadInput`, which says what is allowed.
    """
    section, _, key = name.rpartition(".")
    return _with(
        config,
        _checked(
            {section: {key: value}} if section else {key: value}, lambda _: "The value"
        ),
    )


def with_model(
    config: Config,
    model: str,
    api_base: str | None,
    where: str,
    role: Role | None = None,
) -> Config:
    """The settings with another model, for all that have none of their own or for one
    role. Raises `BadInput`, which names `where` it was chosen.
    """
    chosen = ModelSettings(
        **_checked({"model": model, "api_base": api_base}, lambda _: where)
    )
    if role is None:
        return with_settings(config, chosen)
    return _with_role(config, role, chosen.given)


def only_model(config: Config, model: str, api_base: str | None) -> Config:
    """The settings where this model is the one that is asked, by every role and without
    fallbacks.
    """
    chosen = {"model": model, "api_base": api_base} if api_base else {"model": model}
    settings = ModelSettings(
        **_checked(chosen, lambda path: f"--{path[0].replace('_', '-')}")
    )
    return replace(with_settings(config, settings), models=Models(), fallbacks=())


def without_own_model(config: Config, role: Role) -> Config:
    """The settings where a role asks the model of all, at its address."""
    return _with_role(config, role, {})


def _with_role(config: Config, role: Role, settings: dict[str, Any]) -> Config:
    """The settings with others of a role. How it asks stays."""
    now: ModelSettings = getattr(config.models, role)
    kept = {
        name: now.given[name]
        for name in now.given.keys() & {"effort", "temperature", "max_output_tokens"}
    }
    return _with(config, {"models": {role: ModelSettings(**(settings | kept))}})


def with_settings(config: Config, other: ModelSettings) -> Config:
    """The settings as they are for another model.

    What is meant for one server (`api_base`, `context_window`, `pictures`, `request`)
    is no other's: it holds where the provider stays the same, and the address.
    """
    given = other.given
    is_same = not other.model or is_same_server(
        config.model, config.api_base, other.model
    )
    if is_same and given.get("api_base", config.api_base) == config.api_base:
        return replace(config, **given)
    return replace(config, **(_NO_SERVER | given))


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
    """The settings as they are for one role, and no other."""
    return replace(with_settings(config, getattr(config.models, role)), models=Models())


def fallbacks_of(config: Config) -> list[Config]:
    """The settings as they are for each model that is asked where the one before it
    cannot be.
    """
    others = (with_settings(config, choice) for choice in config.fallbacks)
    return [
        other
        for other in others
        if (other.model, other.api_base) != (config.model, config.api_base)
    ]


def changed_text(text: str, source: str, changes: Mapping[str, object]) -> str:
    """A settings file with other values for some of its keys, of a section those that
    are given; all else, comments too, stays as it is.

    A key that the file does not have comes after the comment that shows it, or at the
    end. Raises `BadInput`, which says which lines to write, where the file is written
    in a way in which that cannot be done line by line.
    """
    before = {
        key: entry.value(source)
        for key, entry in read_mapping(text, source, "a config").items()
    }
    wanted, changed = dict(before), text
    try:
        for key, value in changes.items():
            was = before.get(key)
            wanted[key] = (
                was | value
                if isinstance(was, dict) and isinstance(value, dict)
                else value
            )
            entry = read_mapping(changed, source, "a config").get(key)
            node: Any = entry.node if entry else None
            # a key on each line
            if (
                isinstance(value, dict)
                and node
                and node.id == "mapping"
                and not node.flow_style
            ):
                changed = _with_section(changed, source, key, value)
            else:
                changed = _with_line(changed, source, key, wanted[key])
        after = {
            key: entry.value(source)
            for key, entry in read_mapping(changed, source, "a config").items()
        }
    except BadInput:
        after = {}
    if after != wanted:
        hint = f"Write into it:\n{as_lines({key: wanted[key] for key in changes})}"
        raise BadInput(
            f"{source} is not written line by line, and was left as it was", hint=hint
        )
    return changed


def as_lines(settings: Mapping[str, object]) -> str:
    """Settings as a file has them, one a line."""
    return "\n".join(f"{key}: {_as_yaml(value)}" for key, value in settings.items())


def _with_section(text: str, source: str, key: str, changes: Any) -> str:
    """With other values for some keys of a section that has a key on each line; new
    ones become its first.
    """
    for name, value in changes.items():
        section = read_mapping(text, source, "a config")[key]
        if entry := section.entries(source).get(name):
            text = _with_value(text, entry.node, value)
        else:
            start = section.node.start_mark
            margin = text[start.index - start.column : start.index]
            end = "\r\n" if "\r\n" in text else "\n"
            text = (
                f"{text[: start.index]}{name}:"
                f" {_as_yaml(value)}{end}{margin}{text[start.index :]}"
            )
    return text


def _with_line(text: str, source: str, key: str, value: object) -> str:
    if entry := read_mapping(text, source, "a config").get(key):
        return _with_value(text, entry.node, value)
    lines = text.split("\n")
    carriage_return = "\r" * ("\r\n" in text)
    shown = [
        number
        for number, line in enumerate(lines)
        if re.match(rf"#\s*{re.escape(key)}:", line)
    ]
    if not shown and lines[-1]:
        lines += [""]  # the last line had no end
    lines.insert(
        shown[0] + 1 if shown else len(lines) - 1,
        f"{key}: {_as_yaml(value)}{carriage_return}",
    )
    return "\n".join(lines)


def _with_value(text: str, node: Any, value: object) -> str:
    """With another value in a place, if that is on one line."""
    start, end = node.start_mark, node.end_mark
    if start.line != end.line:
        return text
    before = text[: start.index]
    return before + " " * before.endswith(":") + _as_yaml(value) + text[end.index :]


def _as_yaml(value: object) -> str:
    """A value on one line, in quotes where YAML could take it for something else."""
    if value is None:
        return "null"
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    is_plain = re.fullmatch(r"[A-Za-z][\w.+-]*[/:][\w./:@+-]*[\w/]", value, re.ASCII)
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def switched(commands: Commands, environment: Mapping[str, str]) -> Commands:
    """Unsafe where a switch in the environment says so, whatever the files say."""
    return replace(commands, mode="unsafe") if _is_switched(environment) else commands


def _is_switched(environment: Mapping[str, str]) -> bool:
    return any(
        environment.get(name, "").strip().lower() in ("true", "1", "yes")
        for name in _UNSAFE_SWITCHES
    )


def user_file() -> Path | None:
    """Return the path of the user's settings for all projects, or None without a home.

    It is the file that `CDD_USER_CONFIG` names, or `config.yaml` in the platform's
    folder. The file may not exist.
    """
    if chosen := os.environ.get(USER_CONFIG):
        return Path(chosen)
    folder = config_folder()
    return folder / "config.yaml" if folder else None


def existing_user_file() -> Path | None:
    """Return the file of the user's settings, or None if there is none.

    A container often has a `HOME` that its user must not enter, so a folder that
    cannot be entered has no settings. A file that the user named is always returned.
    """
    file = user_file()
    if file is None or os.environ.get(USER_CONFIG):
        return file
    try:
        file.stat()
    except OSError:
        return None
    return file


def _merged(first: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """The later wins, key by key, also inside sections."""
    both = first | later
    for name in first.keys() & later.keys():
        if isinstance(section := later[name], dict):
            both[name] = first[name] | section
    return both


def _with(config: Config, given: Mapping[str, Any]) -> Config:
    """The settings with others, of a section those that are given."""
    sections = {
        name: replace(getattr(config, name), **own)
        for name, own in given.items()
        if isinstance(own, dict)
    }
    return replace(config, **{**given, **sections})


def _checked(content: dict[Any, Any], where: Any, *wrong: str) -> dict[str, Any]:
    """The given keys, also of sections, with valid values; `where(path of keys)` names
    the place of a wrong one. Raises `BadInput`, also where something was `wrong`
    before.
    """
    content = {str(key): value for key, value in content.items()}
    try:
        valid, faults = read(Config, content), list[Fault]()
    except NotOfForm as error:
        faults = error.faults
    if complaints := [*wrong, *(_complaint(fault, content, where) for fault in faults)]:
        raise BadInput("\n".join(complaints))
    given = dict[str, Any]()
    for name in content:
        value = getattr(valid, name)
        is_section = isinstance(value, _Settings)
        given[name] = (
            {key: getattr(value, key) for key in content[name]} if is_section else value
        )
    return given


def _complaint(fault: Fault, content: Any, where: Any) -> str:
    name = ".".join(key for key in fault.place if isinstance(key, str))
    if fault.kind == "unknown":
        *section, key = fault.place  # YAML has keys of other kinds, too
        name = ".".join(
            (*(part for part in section if isinstance(part, str)), str(key))
        )
        near = " or ".join(f"`{one}`" for one in _near(str(key), fault.allowed))
        names = (
            f"allowed are {', '.join(fault.allowed)}"
            if section
            else "the settings are listed in docs/settings.md"
        )
        hint = f"did you mean {near}? {names[:1].upper()}{names[1:]}" if near else names
        return f"{where(fault.place)}: there is no setting `{name}`; {hint}"
    # a model's name may stand for its settings
    with contextlib.suppress(LookupError, TypeError):
        for key in fault.place:
            content = content[key]
    if fault.kind == "rule":
        allowed = fault.why
    elif fault.allowed:
        *others, last = map(repr, fault.allowed)
        allowed = f"allowed: {', '.join(others)} or {last}"
    else:
        of_all = re.sub(r"^(models\.\w+|fallbacks)\.", "", name)
        allowed = f"allowed: {_ALLOWED.get(name) or _ALLOWED.get(of_all, 'a text')}"
    # of a header: it may be a key
    value = "…" if "headers" in fault.place else str(content)[:60]
    if isinstance(content, bool):
        value, allowed = (
            value.lower(),
            f"{allowed} (in YAML, yes and on mean true, no and off mean false)",
        )
    return f"{where(fault.place)}: `{name}: {value}` is not allowed; {allowed}"


def _near(name: str, known: Iterable[str], likeness: float = 0.6) -> list[str]:
    """The names that it may be a misspelling of, the likeliest first; two at most."""
    return difflib.get_close_matches(name, sorted(known), n=2, cutoff=likeness)


def _line(entries: Mapping[Any, Any], keys: tuple[str | int, ...], source: str) -> int:
    """The line of the innermost of `keys` that the file has."""
    line = 1
    for key in keys:
        entry = next(
            (entry for name, entry in entries.items() if str(name) == str(key)), None
        )
        if entry is None:
            break
        line = entry.line
        entries = entry.entries(source) if entry.node.id == "mapping" else {}
    return line
