"""Which settings of a project's file need the user's trust before they take effect.

A cloned repository contains its `.cdd/config.yaml`. A setting needs trust if it changes
where keys or code are sent, what runs, which questions are asked, or where cdd writes,
unless the user's own settings, variables or flags have the same effect.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from cdd_agent.errors import BadInput
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.pattern import Pattern
from cdd_agent.process.policy import ALWAYS_ALLOWED
from cdd_agent.settings.config import PROJECT_FILE, ROLES, Config, ModelSettings, Role
from cdd_agent.settings.model_names import provider_of
from cdd_agent.settings.models import of_role, with_settings
from cdd_agent.settings.reading import SettingsLayers
from cdd_agent.settings.writing import as_lines
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import TicketStore
from cdd_agent.verification.checks import runs_usual_program

CHECK = "check"
"""The name of a plan's check among the settings."""
_SCRIPTED = ("script:", "replay:")
_HIDDEN = "…"
_USER_IN_ADDRESS = Pattern(r"(?<=https://|.http://)[^/?#\\@\s\"]+(?=@)", re.IGNORECASE)


class ProjectSetting(Struct, frozen=True):
    """A setting, or a plan's check, that needs trust."""

    name: str
    """Includes the section: `commands.mode`."""
    shown: str
    """As in a settings file, without secrets."""
    why: str
    """Its effect."""
    file: str
    line: int
    digest: str
    """Identifies the name and the value."""
    keys: tuple[str, ...] = ()
    """Its path in the settings file: `commands`, `mode`. Empty for a check."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class Case(Struct, frozen=True, dict=True):
    """The settings with the project's file (`full`) and without it (`own`)."""

    own: Config
    full: Config
    root: Path

    def is_chosen(self, config: Config) -> bool:
        """True if the user chose the address to which these settings send a model's
        calls.
        """
        model = config.model
        if model is None:
            # a model set later would use this address
            return config.api_base in self._own_addresses
        if _destination(config) in self._own_destinations:
            return True
        if self._own_destinations or model.startswith(_SCRIPTED):
            return False
        if config.api_base is not None:
            return config.api_base in self._own_addresses
        # a known provider is not used without the user's key
        return provider_of(model) in PROVIDERS

    @property
    def leads_elsewhere(self) -> bool:
        """True if the calls of the main model, or of a user's model that depends on it,
        are sent to an address that the user did not choose.
        """
        asked = [self.full]
        for role in ROLES:
            if getattr(self.full.models, role) == getattr(self.own.models, role):
                asked.append(of_role(self.full, role))
        if self.full.fallbacks == self.own.fallbacks:
            asked += [with_settings(self.full, c) for c in self.full.fallbacks]
        return not all(map(self.is_chosen, asked))

    @cached_property
    def _own_configs(self) -> list[Config]:
        configs = [self.own, *(of_role(self.own, role) for role in ROLES)]
        return configs + [with_settings(self.own, c) for c in self.own.fallbacks]

    @cached_property
    def _own_destinations(self) -> set[tuple[str, str | None]]:
        return {_destination(config) for config in self._own_configs if config.model}

    @cached_property
    def _own_addresses(self) -> set[str | None]:
        return {None, *(config.api_base for config in self._own_configs)}


def _destination(config: Config) -> tuple[str, str | None]:
    model = config.model or ""
    scripted = model.startswith(_SCRIPTED)
    return model if scripted else provider_of(model), config.api_base


class NeedsTrust(Struct, frozen=True):
    """A setting needs trust if it `loosens` the user's own settings. Only a value that
    takes effect, and differs from the user's own, counts.
    """

    why: str
    loosens: Callable[[Case], bool] = lambda case: True


_APPROVALS = ("ask", "edits", "auto")
_MODES = ("safe", "ask", "unsafe")
_HOW_MODELS_ANSWER = "it affects how a model answers, not where your code goes"
_LIMIT = "it limits time or attempts, not what runs or where"

SETTINGS: Mapping[str, NeedsTrust | str] = {
    "model": NeedsTrust(
        "your code goes to this model", lambda case: case.leads_elsewhere
    ),
    "api_base": NeedsTrust("your code and your key go to this address"),
    "context_window": _HOW_MODELS_ANSWER,
    "pictures": _HOW_MODELS_ANSWER,
    "effort": _HOW_MODELS_ANSWER,
    "temperature": _HOW_MODELS_ANSWER,
    "max_output_tokens": _HOW_MODELS_ANSWER,
    "request": "each of its keys needs trust",
    "request.body": NeedsTrust("every request to a model has these fields"),
    "request.headers": NeedsTrust("every request to a model has these headers"),
    "models": "each setting of a role needs the same trust as the general one",
    "fallbacks": NeedsTrust(
        "your code goes to these models if yours is not available",
        lambda case: bool(case.full.fallbacks),
    ),
    "model_adapter": "both adapters send requests to the same model and address",
    "tickets_dir": "it is always a folder inside the project",
    "test_command": NeedsTrust(
        "this command runs to check steps",
        lambda case: not _is_usual(case, case.full.test_command),
    ),
    "test_timeout": _LIMIT,
    "tool_calls": "tools have the same limits as replies",
    "max_attempts": _LIMIT,
    "jobs": _LIMIT,
    "approval": NeedsTrust(
        "you are asked less before files change and commands run",
        lambda case: _is_later(_APPROVALS, case.full.approval, case.own.approval),
    ),
    "commit": NeedsTrust(
        "cdd makes git commits", lambda case: case.full.commit != "off"
    ),
    "require": "it defines what counts as done; nothing else runs",
    "strength": "it defines which scores are weak; nothing else runs",
    "strength_faults": _LIMIT,
    "strength_seconds": _LIMIT,
    "commands": "each of its keys stands for itself",
    "commands.mode": NeedsTrust(
        "more commands may run",
        lambda case: _is_later(_MODES, case.full.commands.mode, case.own.commands.mode),
    ),
    "commands.allow": NeedsTrust(
        "these programs run without asking you",
        lambda case: bool(
            {*case.full.commands.allow} - {*case.own.commands.allow, *ALWAYS_ALLOWED}
        ),
    ),
    "commands.timeout": _LIMIT,
    "commands.hide_env": NeedsTrust(
        "commands see variables that you hide from them",
        lambda case: bool(
            {*case.own.commands.hide_env} - {*case.full.commands.hide_env}
        ),
    ),
    "commands.pass_env": NeedsTrust(
        "commands see these variables, though they may hold secrets",
        lambda case: bool(
            {*case.full.commands.pass_env} - {*case.own.commands.pass_env}
        ),
    ),
    "web": "its key stands for itself",
    "web.private": NeedsTrust(
        "models may read pages of this machine and its network",
        lambda case: case.full.web.private,
    ),
    "theme": "it sets how the shell looks",
    "notifications": "its keys set how the shell notifies you",
    **dict.fromkeys(
        (f"notifications.{key}" for key in ("bell", "desktop", "title", "progress")),
        "it sets how the shell notifies you",
    ),
    "budget": "each of its keys stands for itself",
    "budget.usd": NeedsTrust(
        "it raises your limit",
        lambda case: _is_raised(case.own.budget.usd, case.full.budget.usd),
    ),
    "budget.tokens": NeedsTrust(
        "it raises your limit",
        lambda case: _is_raised(case.own.budget.tokens, case.full.budget.tokens),
    ),
    "record": NeedsTrust(
        "all prompts and replies are written to this file",
        lambda case: case.full.record is not None,
    ),
}
"""The rule of every setting, or the reason why it needs no trust."""


def _is_later(order: tuple[str, ...], value: str, own_value: str) -> bool:
    return order.index(value) > order.index(own_value)


def _is_raised(own_value: float | None, value: float | None) -> bool:
    return own_value is not None and (value is None or value > own_value)


def _is_usual(case: Case, command: str | None) -> bool:
    allowed = {*ALWAYS_ALLOWED, *case.own.commands.allow}
    return command is None or runs_usual_program(command, allowed, case.root)


def settings_in_need(layers: SettingsLayers, root: Path) -> list[ProjectSetting]:
    """Return the settings of the project's file that need trust: those with a rule that
    take effect and differ from the user's own.
    """
    case = Case(layers.own_config, layers.config, root)
    return [s for s in settings_with_rule(layers, root) if _needs_trust(case, s.keys)]


def settings_with_rule(layers: SettingsLayers, root: Path) -> list[ProjectSetting]:
    """Return the settings of the project's file with a rule, in the order of their
    lines. With other settings of the user, they may need trust.
    """
    values = layers.project.values
    case = Case(layers.own_config, layers.config, root)
    redactor = Redactor.of_environment(case.own.commands.hide_env)
    settings = []
    for keys in _given_keys(values):
        rule = _rule(keys)
        if isinstance(rule, str):
            continue
        name, value = ".".join(keys), _value(values, keys)
        settings.append(
            ProjectSetting(
                name,
                _as_shown(name, value, redactor),
                rule.why,
                PROJECT_FILE.as_posix(),
                layers.project.line(*keys),
                _digest(name, _identity(case, keys, value)),
                keys,
            )
        )
    return sorted(settings, key=lambda setting: setting.line)


def checks_in_need(config: Config, tickets: TicketStore) -> list[ProjectSetting]:
    """Return the checks of plans that need trust. In the other modes of commands, the
    policy refuses programs that are not allowed, or asks the user.
    """
    if config.commands.mode != "unsafe":
        return []
    redactor = Redactor.of_environment(config.commands.hide_env)
    checks: dict[str, ProjectSetting] = {}
    for ticket in tickets.list():
        try:
            plan = ticket.read_plan()
        except BadInput:
            # Commands that need the plan report the error.
            continue
        for step in plan.steps:
            for check in step.checks or ():
                if is_usual_check(config, check, tickets.root):
                    continue
                setting = ProjectSetting(
                    CHECK,
                    redactor.redact(f"check of step {step.label}: {check}"),
                    "this command runs in a shell to check the step",
                    ticket.shown(ticket.plan_path),
                    step.line,
                    check_digest(check),
                )
                checks.setdefault(setting.digest, setting)
    return [*checks.values()]


def is_usual_check(config: Config, check: str, root: Path) -> bool:
    """True if a check needs no trust: its program is allowed, or runs the tests."""
    allowed = {*ALWAYS_ALLOWED, *config.commands.allow}
    return check == config.test_command or runs_usual_program(check, allowed, root)


def check_digest(check: str) -> str:
    return _digest(CHECK, check)


def leave_out_untrusted(
    layers: SettingsLayers, root: Path, trusted: Collection[str]
) -> tuple[SettingsLayers, list[ProjectSetting]]:
    """Return the layers without the settings that need trust and whose digests are not
    in `trusted`, and those settings. This repeats until no more is found, because a
    setting may need trust only after another is left out.
    """
    left_out: list[ProjectSetting] = []
    while untrusted := [
        setting
        for setting in settings_in_need(layers, root)
        if setting.digest not in trusted
    ]:
        # without its address, a model may be a trusted one
        first = [
            setting for setting in untrusted if setting.keys[-1] != "model"
        ] or untrusted
        layers = layers.without(setting.keys for setting in first)
        alone = _models_without_address(layers, root, untrusted, first, trusted)
        layers = layers.without(setting.keys for setting in alone)
        left_out += [*first, *alone]
    return layers, sorted(left_out, key=lambda setting: setting.line)


def _models_without_address(
    layers: SettingsLayers,
    root: Path,
    settings: Iterable[ProjectSetting],
    left_out: Iterable[ProjectSetting],
    trusted: Collection[str],
) -> list[ProjectSetting]:
    """Return the untrusted models whose addresses were left out. Their calls would be
    sent to an address that neither the project nor the user chose.
    """
    case = Case(layers.own_config, layers.config, root)
    left_out_keys = {setting.keys for setting in left_out}
    models = []
    for setting in settings:
        *section, last = setting.keys
        if last == "model" and (*section, "api_base") in left_out_keys:
            value = _value(layers.project.values, setting.keys)
            identity = _identity(case, setting.keys, value)
            if _digest(setting.name, identity) not in trusted:
                models.append(setting)
    return models


def _given_keys(values: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        section = value.given if isinstance(value, ModelSettings) else value
        if isinstance(section, dict) and name not in ("body", "headers"):
            yield from ((name, *keys) for keys in _given_keys(section))
        else:
            yield (name,)


def _rule(keys: tuple[str, ...]) -> NeedsTrust | str:
    name = ".".join(keys[2:] if keys[0] == "models" else keys)
    if name == "request":
        name = "request.body"
    return SETTINGS[name]


def _role(keys: tuple[str, ...]) -> Role:
    """Return the role of a setting in `models`."""
    return next(role for role in ROLES if role == keys[1])


def _needs_trust(case: Case, keys: tuple[str, ...]) -> bool:
    rule = _rule(keys)
    if isinstance(rule, str):
        return False
    *_, last = keys
    if keys[0] == "models" and last in ("model", "api_base"):
        # A role's settings replace the user's as a whole, so equal values may have
        # another effect.
        return not case.is_chosen(of_role(case.full, _role(keys)))
    if _value(case.full, keys) == _value(case.own, keys):
        # also if a variable or a flag replaces the file's value
        return False
    return keys[0] == "models" or rule.loosens(case)


def _identity(case: Case, keys: tuple[str, ...], value: Any) -> object:
    """Return the trusted value of a setting. For a model, it includes the address."""
    if keys == ("model",):
        return [value, case.full.api_base]
    if keys == ("fallbacks",):
        asked = [with_settings(case.full, choice) for choice in value]
        return [value, [config.api_base for config in asked]]
    if keys[0] == "models" and keys[2:] == ("model",):
        return [value, of_role(case.full, _role(keys)).api_base]
    return value


def _value(values: Any, keys: Iterable[str]) -> Any:
    for key in keys:
        values = values[key] if isinstance(values, dict) else getattr(values, key)
    return values


def _digest(name: str, value: object) -> str:
    text = json.dumps([name, to_builtins(value)], sort_keys=True)
    return sha256(text.encode()).hexdigest()


def _as_shown(name: str, value: Any, redactor: Redactor) -> str:
    plain = _without_headers(to_builtins(value), is_headers=name.endswith("headers"))
    text = redactor.redact(as_lines({name: plain}))
    return _USER_IN_ADDRESS.sub(_HIDDEN, text)


def _without_headers(value: Any, *, is_headers: bool = False) -> Any:
    if isinstance(value, list | tuple):
        return [_without_headers(item) for item in value]
    if not isinstance(value, dict):
        return _HIDDEN if is_headers else value
    shown = {}
    for key, item in value.items():
        inner = is_headers or key == "headers"
        shown[key] = _without_headers(item, is_headers=inner)
    return shown
