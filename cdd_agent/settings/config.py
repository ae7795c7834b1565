"""All settings, with their types, defaults and descriptions."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs

from cdd_agent.network.web_address import web_address
from cdd_agent.settings.descriptions import (
    SettingDescription,
    SettingGroup,
    described,
    find_description,
)
from cdd_agent.values.partly_shown import PartlyShown
from cdd_agent.values.typed_values import RuleBroken, Written

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
    """True if the arguments of a program name another program to run."""
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
ThemeName = Annotated[
    str, Meta(pattern=r"\A[a-z][a-z0-9-]*\Z", title="the name of a theme")
]


class Section(PartlyShown, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings that belong together."""


class Commands(Section, frozen=True):
    mode: Annotated[
        Literal["safe", "ask", "unsafe"],
        described(
            "Other commands",
            SettingGroup.APPROVAL,
            "commands whose program is not on the list",
            choices={
                "safe": "only programs on the list",
                "ask": "ask about others",
                "unsafe": "a real shell",
            },
        ),
    ] = "safe"
    allow: Annotated[
        tuple[ProgramName, ...],
        described(
            "Allowed programs",
            SettingGroup.APPROVAL,
            "programs to add to the list (ls, cat, python, pytest, ...)",
        ),
    ] = ()
    timeout: Annotated[
        Seconds,
        described(
            "Command timeout",
            SettingGroup.APPROVAL,
            "seconds after which a command is stopped",
        ),
    ] = 60
    hide_env: Annotated[
        tuple[VariableName, ...],
        described(
            "Hidden variables",
            SettingGroup.FILES,
            "more variables to hide from commands, as secrets are",
        ),
    ] = ()
    pass_env: Annotated[
        tuple[VariableName, ...],
        described(
            "Visible variables",
            SettingGroup.FILES,
            "variables to show to commands although they look secret",
        ),
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
        described(
            "Private pages",
            SettingGroup.FILES,
            "pages of this computer and its network",
            choices={
                "true": "models may read pages of this computer and its network",
                "false": "models may read public pages only",
            },
        ),
    ] = False


class Notifications(Section, frozen=True):
    """Signals while the terminal does not have the focus."""

    bell: Annotated[
        bool,
        described(
            "Bell",
            SettingGroup.SHELL,
            "the terminal's bell, while the terminal is not in focus",
            choices={"true": "ring the terminal's bell", "false": "no sound"},
        ),
    ] = True
    desktop: Annotated[
        Literal["auto", "osc9", "osc777", "off"],
        described(
            "Desktop notifications",
            SettingGroup.SHELL,
            "notifications while the terminal is not in focus",
            choices={
                "auto": "if the terminal supports them",
                "osc9": "in the way of iTerm2",
                "osc777": "in the way of urxvt",
                "off": "never",
            },
        ),
    ] = "auto"
    title: Annotated[
        bool,
        described(
            "Terminal title",
            SettingGroup.SHELL,
            "the title of the terminal's window",
            choices={
                "true": "show the progress in the title",
                "false": "leave the title alone",
            },
        ),
    ] = True
    progress: Annotated[
        Literal["auto", "on", "off"],
        described(
            "Taskbar progress",
            SettingGroup.SHELL,
            "the progress of a run in the taskbar",
            choices={
                "auto": "if the terminal supports it",
                "on": "always",
                "off": "never",
            },
        ),
    ] = "auto"


class Budget(Section, frozen=True):
    """The limits of a run, over all its processes."""

    usd: Annotated[
        Annotated[float, Meta(gt=0, le=1_000_000_000)] | None,
        described(
            "Dollars",
            SettingGroup.BUDGET,
            "dollars of a run, over all its processes; needs a model with a known"
            " price",
            unset="no limit",
        ),
    ] = None
    tokens: Annotated[
        Annotated[int, Meta(gt=0)] | None,
        described(
            "Tokens",
            SettingGroup.BUDGET,
            "tokens of all prompts and replies of a run together",
            unset="no limit",
        ),
    ] = None


class OwnRequest(Section, frozen=True):
    """Additions to every request, for options that this program does not know."""

    hidden_fields = ("body", "headers")

    body: Annotated[
        dict[str, Any],
        described(
            "Request fields",
            SettingGroup.MODEL,
            "JSON fields to add to each request, or to replace in it",
        ),
    ] = field(default_factory=dict)
    headers: Annotated[
        dict[HeaderName, HeaderValue],
        described(
            "Request headers",
            SettingGroup.MODEL,
            "HTTP headers to add to each request",
        ),
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
        described(
            "Model",
            SettingGroup.MODEL,
            "a litellm model string",
            example="anthropic/claude-sonnet-5-5",
        ),
    ] = None
    """Also `script:FILE` for a scripted model, and `replay:FILE` for a recorded one."""
    api_base: Annotated[
        str | None,
        described(
            "Server address",
            SettingGroup.MODEL,
            "your own server, e.g. http://127.0.0.1:8080/v1",
        ),
    ] = None
    model_adapter: Annotated[
        Literal["auto", "litellm", "direct"],
        described(
            "Adapter",
            SettingGroup.MODEL,
            "the code that talks to the server",
            choices={
                "auto": "direct if cdd speaks the protocol",
                "direct": "cdd's own code",
                "litellm": "the litellm library",
            },
        ),
    ] = "auto"
    tool_calls: Annotated[
        Literal["auto", "on", "off"],
        described(
            "Tool calls",
            SettingGroup.MODEL,
            "whether steps use tools",
            choices={
                "auto": "if the model is known to call tools",
                "on": "always",
                "off": "never",
            },
        ),
    ] = "auto"
    context_window: Annotated[
        Window | None,
        described(
            "Context window",
            SettingGroup.MODEL,
            "size of the context window in tokens",
            unset="look it up",
        ),
    ] = None
    pictures: Annotated[
        bool | None,
        described(
            "Pictures",
            SettingGroup.MODEL,
            "whether the model accepts pictures",
            choices={
                "true": "the model accepts pictures",
                "false": "the model accepts text only",
            },
            unset="look it up",
        ),
    ] = None
    effort: Annotated[
        Effort | None,
        described(
            "Effort",
            SettingGroup.MODEL,
            "how much the model thinks",
            choices={
                "none": "no thoughts",
                "low": "few thoughts",
                "medium": "some thoughts",
                "high": "many thoughts",
                "max": "as many as possible",
            },
            unset="the model's default",
        ),
    ] = None
    temperature: Annotated[
        Temperature | None,
        described(
            "Temperature",
            SettingGroup.MODEL,
            "0 (always the likeliest reply) to 2",
            unset="the provider's default",
        ),
    ] = None
    max_output_tokens: Annotated[
        ReplyLimit | None,
        described(
            "Longest reply",
            SettingGroup.MODEL,
            "longest reply in tokens, with thoughts",
            unset="the model's limit",
        ),
    ] = None
    request: OwnRequest = OwnRequest()
    models: Annotated[
        Models,
        described(
            "Models of roles",
            SettingGroup.MODEL,
            "other models for planner, executor, chat or socrates",
        ),
    ] = Models()
    fallbacks: Annotated[
        tuple[ModelSettings, ...],
        described(
            "Fallbacks",
            SettingGroup.MODEL,
            "models to use when the provider is down or out of quota",
        ),
    ] = ()
    tickets_dir: Annotated[
        str,
        described(
            "Tickets",
            SettingGroup.FILES,
            "folder of the tickets, inside the project",
        ),
    ] = "tickets"
    test_command: Annotated[
        str | None,
        described(
            "Test command",
            SettingGroup.CHECKS,
            "command that runs the tests",
            unset="detect it",
        ),
    ] = None
    test_timeout: Annotated[
        Seconds,
        described(
            "Test timeout",
            SettingGroup.CHECKS,
            "seconds after which a test command is stopped",
        ),
    ] = 300
    max_attempts: Annotated[
        Annotated[int, Meta(ge=1, le=100)],
        described(
            "Attempts",
            SettingGroup.CHECKS,
            "attempts for each step; the shell asks you after each one",
        ),
    ] = 3
    jobs: Annotated[
        Annotated[int, Meta(ge=1, le=64)],
        described(
            "Steps at once",
            SettingGroup.CHECKS,
            "independent steps that may run at once",
        ),
    ] = 1
    approval: Annotated[
        Approval,
        described(
            "Approval mode",
            SettingGroup.APPROVAL,
            "what cdd does without asking",
            choices={
                "ask": "ask before files change",
                "edits": "change files without asking",
                "auto": "change files and run commands without asking",
            },
        ),
    ] = "edits"
    require: Annotated[
        Literal["off", "checked", "verified"],
        described(
            "Required proof",
            SettingGroup.CHECKS,
            "what a step needs, so that it does not fail the run",
            choices={
                "off": "nothing is required",
                "checked": "a check that passed",
                "verified": "tests that passed",
            },
        ),
    ] = "off"
    strength: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | None,
        described(
            "Test strength",
            SettingGroup.CHECKS,
            "percent; `cdd verify --strength` calls a lower score weak",
            unset="call no score weak",
        ),
    ] = None
    strength_faults: Annotated[
        Annotated[int, Meta(ge=1, le=1_000)],
        described(
            "Faults to try",
            SettingGroup.CHECKS,
            "at most this many small faults for each step",
        ),
    ] = 30
    strength_seconds: Annotated[
        Seconds,
        described(
            "Time for faults",
            SettingGroup.CHECKS,
            "seconds of `cdd verify --strength` for each step",
        ),
    ] = 300
    commit: Annotated[
        Literal["off", "step"],
        described(
            "Commits",
            SettingGroup.FILES,
            "git commits of a run",
            choices={
                "off": "none",
                "step": "commit the files of each completed step",
            },
        ),
    ] = "off"
    budget: Budget = Budget()
    record: Annotated[
        str | None,
        described(
            "Recording",
            SettingGroup.FILES,
            "file that records all prompts and replies, for replay:FILE",
            unset="none",
        ),
    ] = None
    commands: Commands = Commands()
    web: Web = Web()
    theme: Annotated[
        ThemeName,
        described(
            "Theme",
            SettingGroup.SHELL,
            "colours of the shell; `auto` follows the terminal's background",
        ),
    ] = "auto"
    notifications: Notifications = Notifications()

    def __post_init__(self) -> None:
        structs.force_setattr(self, "api_base", _checked_address(self.api_base))
        if not all(choice.model for choice in self.fallbacks):
            raise RuleBroken("fallbacks", "each fallback needs a `model`")


def with_values(config: Config, given: Mapping[str, Any]) -> Config:
    """Replace settings. For a section, only the given ones."""
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
    description: SettingDescription | None
    """None for a section."""


def declared_settings() -> Iterator[DeclaredSetting]:
    """Yield all sections and settings. `models` counts as one setting."""
    return _declared(Config(), "")


def find_group(name: str) -> SettingGroup | None:
    """Return the group of a setting; None for a section."""
    for setting in declared_settings():
        if setting.name == name and setting.description is not None:
            return setting.description.group
    return None


def _declared(section: Section, prefix: str) -> Iterator[DeclaredSetting]:
    for declared in structs.fields(section):
        name, default = f"{prefix}{declared.name}", getattr(section, declared.name)
        is_section = isinstance(default, Section) and not isinstance(default, Models)
        description = find_description(declared.type)
        yield DeclaredSetting(name, default, is_section, description)
        if is_section:
            yield from _declared(default, f"{name}.")
