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
        title="the name of a variable, perhaps with `*` and `?` as wildcards",
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
            description="safe: only programs on the list | ask: ask about others |"
            " unsafe: a real shell"
        ),
    ] = "safe"
    allow: Annotated[
        tuple[ProgramName, ...],
        Meta(description="programs to add to the list (ls, cat, python, pytest, ...)"),
    ] = ()
    timeout: Annotated[
        Seconds, Meta(description="seconds after which a command is stopped")
    ] = 60
    hide_env: Annotated[
        tuple[VariableName, ...],
        Meta(description="more variables to hide from commands, as secrets are"),
    ] = ()
    pass_env: Annotated[
        tuple[VariableName, ...],
        Meta(description="variables to show to commands although they look secret"),
    ] = ()

    def __post_init__(self) -> None:
        for name in self.allow:
            if runs_others(name):
                raise RuleBroken(
                    "allow",
                    f"`{name}` runs the command in its arguments, so every command"
                    " would be allowed; use `commands.mode: ask`",
                )


class Web(Section, frozen=True):
    private: Annotated[
        bool,
        Meta(
            description="true: models may read pages of this computer and its network"
        ),
    ] = False


class Notifications(Section, frozen=True):
    bell: Annotated[bool, Meta(description="true: ring the terminal's bell")] = True
    desktop: Annotated[
        Literal["auto", "osc9", "osc777", "off"],
        Meta(description="auto: if the terminal supports them | osc9 | osc777 | off"),
    ] = "auto"
    title: Annotated[
        bool, Meta(description="true: show the progress in the title of the terminal")
    ] = True
    progress: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="show the progress in the taskbar: auto | on | off"),
    ] = "auto"


class Budget(Section, frozen=True):
    """The limits of a run, over all its processes."""

    usd: Annotated[
        Annotated[float, Meta(gt=0, le=1_000_000_000)] | None,
        Meta(description="dollars; needs a model with a known price"),
    ] = None
    tokens: Annotated[
        Annotated[int, Meta(gt=0)] | None,
        Meta(description="tokens of all prompts and replies together"),
    ] = None


class OwnRequest(Section, frozen=True):
    """Additions to every request, for options that this program does not know."""

    hidden_fields = ("body", "headers")

    body: Annotated[
        dict[str, Any],
        Meta(description="JSON fields to add to each request, or to replace in it"),
    ] = field(default_factory=dict)
    headers: Annotated[
        dict[HeaderName, HeaderValue],
        Meta(description="HTTP headers to add to each request"),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        content = sorted(self.body.keys() & _CONTENT_FIELDS)
        if content:
            raise RuleBroken(
                "body",
                f"cdd writes {', '.join(content)} itself; set only other fields of the"
                " provider",
            )
        try:
            json.dumps(self.body, allow_nan=False)
        except (TypeError, ValueError) as error:
            reason = f"the value must be JSON ({error})"
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
    """The given settings of a model. Settings that are not given are `UNSET`."""

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
    """All settings. `/settings` and the file of `/init` show their descriptions."""

    model: Annotated[
        Written | None,
        Meta(
            description="a litellm model string",
            examples=["anthropic/claude-sonnet-5-5"],
        ),
    ] = None
    """Also `script:FILE` for a scripted model, and `replay:FILE` for a recorded one."""
    api_base: Annotated[
        str | None,
        Meta(description="your own server, e.g. http://127.0.0.1:8080/v1"),
    ] = None
    model_adapter: Annotated[
        Literal["auto", "litellm", "direct"],
        Meta(description="auto: direct if cdd speaks the protocol | direct | litellm"),
    ] = "auto"
    tool_calls: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="auto: if the model is known to call tools | on | off"),
    ] = "auto"
    context_window: Annotated[
        Window | None,
        Meta(description="size of the context window in tokens; null: look it up"),
    ] = None
    pictures: Annotated[
        bool | None,
        Meta(description="true: the model accepts pictures | false; null: look it up"),
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
        Meta(description="longest reply in tokens, with thoughts; null: the model's"),
    ] = None
    request: Annotated[
        OwnRequest,
        Meta(description="extra fields and headers that your provider needs"),
    ] = OwnRequest()
    models: Annotated[
        Models,
        Meta(description="other models for planner, executor, chat or socrates"),
    ] = Models()
    fallbacks: Annotated[
        tuple[ModelSettings, ...],
        Meta(description="models to use when the provider is down or out of quota"),
    ] = ()
    tickets_dir: Annotated[
        str, Meta(description="folder of the tickets, inside the project")
    ] = "tickets"
    test_command: Annotated[
        str | None, Meta(description="command that runs the tests; null: detect it")
    ] = None
    test_timeout: Annotated[
        Seconds, Meta(description="seconds after which a test command is stopped")
    ] = 300
    max_attempts: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="attempts for each step, unless you are asked",
        ),
    ] = 3
    jobs: Annotated[
        int,
        Meta(ge=1, le=64, description="independent steps that may run at once"),
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
        Meta(description="verified: a step needs passed tests | checked | off"),
    ] = "off"
    strength: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | None,
        Meta(description="percent; `cdd verify --strength` calls a lower score weak"),
    ] = None
    strength_faults: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000,
            description="at most this many small faults for each step",
        ),
    ] = 30
    strength_seconds: Annotated[
        Seconds, Meta(description="seconds of `cdd verify --strength` for each step")
    ] = 300
    commit: Annotated[
        Literal["off", "step"],
        Meta(description="step: commit the files of each completed step | off"),
    ] = "off"
    budget: Annotated[
        Budget,
        Meta(description="limits of a run; it stops before it exceeds one"),
    ] = Budget()
    record: Annotated[
        str | None,
        Meta(description="file that records all prompts and replies, for replay:FILE"),
    ] = None
    commands: Commands = Commands()
    web: Web = Web()
    notifications: Annotated[
        Notifications,
        Meta(description="while the terminal does not have the focus"),
    ] = Notifications()

    def __post_init__(self) -> None:
        structs.force_setattr(self, "api_base", _checked_address(self.api_base))
        if not all(choice.model for choice in self.fallbacks):
            raise RuleBroken("fallbacks", "each fallback needs a `model`")


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
