"""All settings, with their types, defaults and descriptions."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from cdd_agent.network.web_address import web_address
from cdd_agent.partly_shown import PartlyShown
from cdd_agent.typed_values import RuleBroken, Written

PROJECT_FILE = Path(".cdd") / "config.yaml"

# Shells, and programs whose arguments are a command.
_COMMAND_RUNNERS = frozenset(
    """
    sh ash bash csh dash elvish fish ksh ksh93 mksh nu osh pwsh powershell rbash tcsh
    xonsh yash zsh cmd wsl . at batch builtin busybox bwrap cgexec chroot chrt command
    coproc crontab dbus-run-session doas entr env eval exec expect fakeroot firejail
    flock ionice ltrace nice nohup nsenter parallel pkexec prlimit proot rlwrap runas
    runuser script setpriv setsid source start stdbuf strace su sudo systemd-run taskset
    time timeout toybox trap unbuffer unshare watch xargs xvfb-run
    """.split()  # noqa: SIM905
)
_CONTENT_FIELDS = frozenset(
    {"model", "messages", "input", "system", "instructions", "tools", "stream"}
)


def runs_others(program: str) -> bool:
    """True if the arguments of a program name what it runs."""
    return re.sub(r"\.(exe|com|bat|cmd)$", "", program.lower()) in _COMMAND_RUNNERS


ProgramName = Annotated[
    str,
    Meta(
        pattern=r"\A\w[\w.+@-]*\Z",
        title="the name of a program, without a folder, spaces or arguments",
    ),
]
VariableName = Annotated[
    str,
    Meta(
        pattern=r"\A[^=\s\0]+\Z",
        title="the name of a variable, in which `*` and `?` may stand for others",
    ),
]
HeaderName = Annotated[
    str,
    Meta(
        pattern=r"\A[A-Za-z0-9_!#$%&'*+.^`|~-]+\Z", title="the name of an HTTP header"
    ),
]
HeaderValue = Annotated[
    str,
    Meta(pattern=r"\A[ -~]*\Z", title="a text of ASCII characters on one line"),
]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Approval = Literal["ask", "edits", "auto"]


class Section(PartlyShown, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings that belong together."""


class Commands(Section, frozen=True):
    mode: Annotated[
        Literal["safe", "ask", "unsafe"],
        Meta(
            description="safe: refuse what is not on the list | ask | unsafe: a real"
            " shell"
        ),
    ] = "safe"
    allow: Annotated[
        tuple[ProgramName, ...],
        Meta(description="programs beside ls, cat, python, pytest, ruff, make, ..."),
    ] = ()
    timeout: Annotated[Seconds, Meta(description="seconds")] = 60
    hide_env: Annotated[
        tuple[VariableName, ...],
        Meta(
            description="variables that no command sees, beside those that look like"
            " secrets"
        ),
    ] = ()
    pass_env: Annotated[
        tuple[VariableName, ...],
        Meta(description="variables that commands see although they look like secrets"),
    ] = ()

    def __post_init__(self) -> None:
        for name in self.allow:
            if runs_others(name):
                raise RuleBroken(
                    "allow",
                    f"`{name}` runs any command, so everything would be allowed; use"
                    " `commands.mode: ask`",
                )


class Web(Section, frozen=True):
    private: Annotated[
        bool,
        Meta(description="true: pages of this machine and its network may be read"),
    ] = False


class Notifications(Section, frozen=True):
    bell: Annotated[bool, Meta(description="the terminal's bell rings")] = True
    desktop: Annotated[
        Literal["auto", "osc9", "osc777", "off"],
        Meta(
            description="auto: where the terminal is known to show them | osc9 | osc777"
            " | off"
        ),
    ] = "auto"
    title: Annotated[
        bool, Meta(description="the terminal's title shows the progress of a run")
    ] = True
    progress: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="the taskbar shows it, too: auto | on | off"),
    ] = "auto"


class Budget(Section, frozen=True):
    """The limits of a run, over all its processes."""

    usd: Annotated[
        Annotated[float, Meta(gt=0, le=1_000_000_000)] | None,
        Meta(description="dollars, where the model's price is known"),
    ] = None
    tokens: Annotated[
        Annotated[int, Meta(gt=0)] | None,
        Meta(description="tokens of all prompts and replies"),
    ] = None


class OwnRequest(Section, frozen=True):
    """Additions to every request, for options that this program does not know."""

    hidden_fields = ("body", "headers")

    body: Annotated[
        dict[str, Any],
        Meta(description="fields of the JSON; they replace those of the same name"),
    ] = field(default_factory=dict)
    headers: Annotated[
        dict[HeaderName, HeaderValue], Meta(description="HTTP headers")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        content = sorted(self.body.keys() & _CONTENT_FIELDS)
        if content:
            raise RuleBroken(
                "body",
                f"cdd sets {', '.join(content)} itself; use other fields of the"
                " provider",
            )
        try:
            json.dumps(self.body, allow_nan=False)
        except (TypeError, ValueError) as error:
            reason = f"use values that JSON allows ({error})"
            raise RuleBroken("body", reason) from error


Window = Annotated[int, Meta(ge=1_000)]
Effort = Literal["none", "low", "medium", "high", "max"]
Temperature = Annotated[float, Meta(ge=0, le=2)]
ReplyLimit = Annotated[int, Meta(ge=1)]


def _checked_address(api_base: str | UnsetType | None) -> str | UnsetType | None:
    if not isinstance(api_base, str):
        return api_base
    try:
        return web_address(api_base)
    except ValueError as error:
        raise RuleBroken("api_base", str(error)) from error


class ModelSettings(Section, frozen=True):
    """A model and its options, as far as they are given."""

    model: Written | UnsetType | None = UNSET
    api_base: str | UnsetType | None = UNSET
    context_window: Window | UnsetType | None = UNSET
    pictures: bool | UnsetType | None = UNSET
    effort: Effort | UnsetType | None = UNSET
    temperature: Temperature | UnsetType | None = UNSET
    max_output_tokens: ReplyLimit | UnsetType | None = UNSET
    request: OwnRequest | UnsetType = UNSET

    def __post_init__(self) -> None:
        structs.force_setattr(self, "api_base", _checked_address(self.api_base))

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are given, by name."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value is not UNSET}


class Models(Section, frozen=True):
    """The settings of roles, where they differ from those of all models."""

    planner: ModelSettings = ModelSettings()
    executor: ModelSettings = ModelSettings()
    chat: ModelSettings = ModelSettings()
    socrates: ModelSettings = ModelSettings()


Role = Literal["planner", "executor", "chat", "socrates"]
ROLES: tuple[Role, ...] = get_args(Role)


class Config(Section, frozen=True):
    """The descriptions are shown by `/settings`, and in the file that `/init` makes."""

    model: Annotated[
        Written | None,
        Meta(
            description="any litellm model string",
            examples=["anthropic/claude-sonnet-4-5"],
        ),
    ] = None
    """Also `script:FILE` for a scripted model, and `replay:FILE` for a recorded one."""
    api_base: Annotated[
        str | None,
        Meta(description="a server of your own, e.g. http://127.0.0.1:8080/v1"),
    ] = None
    model_adapter: Annotated[
        Literal["auto", "litellm", "direct"],
        Meta(
            description="auto: directly where the protocol is spoken | direct | litellm"
        ),
    ] = "auto"
    tool_calls: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="auto: to models that are known to call tools | on | off"),
    ] = "auto"
    context_window: Annotated[
        Window | None,
        Meta(description="tokens of the model's window; null: what is known of it"),
    ] = None
    pictures: Annotated[
        bool | None,
        Meta(
            description="true, false: whether the model takes pictures; null: what is"
            " known of it"
        ),
    ] = None
    effort: Annotated[
        Effort | None,
        Meta(
            description="how much the model thinks: none | low | medium | high | max;"
            " null: its default"
        ),
    ] = None
    temperature: Annotated[
        Temperature | None,
        Meta(description="0 to 2; null: the provider's default"),
    ] = None
    max_output_tokens: Annotated[
        ReplyLimit | None,
        Meta(
            description="the longest reply, thoughts included; null: the model's own"
            " limit"
        ),
    ] = None
    request: Annotated[
        OwnRequest,
        Meta(description="additions to every request, as the provider calls them"),
    ] = OwnRequest()
    models: Annotated[
        Models,
        Meta(
            description="by role: planner, executor, chat, socrates; a model, or a"
            " mapping of the above"
        ),
    ] = Models()
    fallbacks: Annotated[
        tuple[ModelSettings, ...],
        Meta(
            description="models to ask where the provider is down, or has no quota left"
        ),
    ] = ()
    tickets_dir: Annotated[
        str, Meta(description="the folder of tickets, inside the project")
    ] = "tickets"
    test_command: Annotated[
        str | None, Meta(description="null: found by the project's files")
    ] = None
    test_timeout: Annotated[Seconds, Meta(description="seconds")] = 300
    max_attempts: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="model attempts a step without a screen, the first included",
        ),
    ] = 3
    jobs: Annotated[
        int,
        Meta(ge=1, le=64, description="steps that run at once, where they can"),
    ] = 1
    approval: Annotated[
        Approval,
        Meta(
            description="ask: before files change | edits: without asking | auto: edits"
            " and commands"
        ),
    ] = "edits"
    require: Annotated[
        Literal["off", "checked", "verified"],
        Meta(
            description="verified: a step fails unless its tests passed | checked:"
            " unless it was checked | off"
        ),
    ] = "off"
    strength: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | None,
        Meta(
            description="a percentage: `cdd verify --strength` calls a lower score weak"
        ),
    ] = None
    strength_faults: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="small faults that it tries for a step, at most",
        ),
    ] = 30
    strength_seconds: Annotated[
        Seconds, Meta(description="and the time for a step")
    ] = 300
    commit: Annotated[
        Literal["off", "step"],
        Meta(
            description="step: one git commit for each completed step, of its files"
            " alone"
        ),
    ] = "off"
    budget: Annotated[
        Budget,
        Meta(description="of a run: it stops before the call that could pass it"),
    ] = Budget()
    record: Annotated[
        str | None,
        Meta(description="a file that keeps what the model is asked and answers"),
    ] = None
    commands: Commands = Commands()
    web: Web = Web()
    notifications: Annotated[
        Notifications,
        Meta(description="while the terminal of the shell is not in focus"),
    ] = Notifications()

    def __post_init__(self) -> None:
        structs.force_setattr(self, "api_base", _checked_address(self.api_base))
        if not all(choice.model for choice in self.fallbacks):
            raise RuleBroken("fallbacks", "each of them names a `model`")


def with_values(config: Config, given: Mapping[str, Any]) -> Config:
    """Return the settings with other values; of a section, those that are given."""
    changes = dict(given)
    for name, value in given.items():
        if isinstance(value, dict):
            changes[name] = structs.replace(getattr(config, name), **value)
    return structs.replace(config, **changes)


class DeclaredSetting(Struct, frozen=True):
    """A setting, or a section of settings."""

    name: str
    """With its section: `budget.usd`."""
    default: Any
    is_section: bool
    description: str = ""
    example: str = ""


def declared_settings() -> Iterator[DeclaredSetting]:
    """Yield all sections and settings. `models` counts as one setting."""
    return _declared(Config(), "")


def _declared(section: Section, prefix: str) -> Iterator[DeclaredSetting]:
    for declared in structs.fields(section):
        name, default = f"{prefix}{declared.name}", getattr(section, declared.name)
        is_section = isinstance(default, Section) and not isinstance(default, Models)
        setting = DeclaredSetting(name, default, is_section)
        for meta in getattr(declared.type, "__metadata__", ()):
            if isinstance(meta, Meta) and meta.description:
                example = str(meta.examples[0]) if meta.examples else ""
                setting = structs.replace(
                    setting, description=meta.description, example=example
                )
        yield setting
        if is_section:
            yield from _declared(default, f"{name}.")
