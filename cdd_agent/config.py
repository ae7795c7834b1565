"""Settings: the user's own file, then the project's `.cdd/config.yaml`, then `CDD_*` variables, then flags.

The later wins, key by key. A wrong key or value is an error that names the file, the line and what is allowed.
"""

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from cdd_agent.errors import BadInput

PROJECT_FILE = Path(".cdd") / "config.yaml"
_LARGEST = 1_000_000  # bytes
_DEEPEST = 20  # a stream and a document are two of them

Approval = Literal["ask", "edits", "auto"]
_YamlOff = BeforeValidator(lambda value: "off" if value is False else value)  # YAML 1.1 reads `off` as false


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Commands(_Section):
    """Commands that a model asks for. This version runs none, so only the defaults are accepted."""

    mode: Literal["safe"] = "safe"
    allow: Annotated[tuple[str, ...], Field(max_length=0)] = ()
    timeout: Literal[60] = 60


class Budget(_Section):
    """What a run may cost. This version cannot watch a budget, so it accepts none."""

    usd: None = None
    tokens: None = None


class Config(_Section):
    """All settings, with their defaults. Times are in seconds."""

    model: str | None = None
    """Any litellm model string, or `script:FILE` for a scripted model."""
    api_base: str | None = None
    tickets_dir: str = "tickets"
    test_command: str | None = None
    """None: found by what the project holds."""
    test_timeout: float = Field(300, gt=0, le=86_400)
    max_attempts: int = Field(3, ge=1, le=100)
    approval: Approval = "edits"
    commit: Annotated[Literal["off"], _YamlOff] = "off"
    commands: Commands = Commands()
    budget: Budget = Budget()


_ALLOWED = {
    "test_timeout": "a number of seconds over 0, at most 86400",
    "max_attempts": "a whole number from 1 to 100",
    "commands": "a mapping with mode, allow, timeout",
    "budget": "a mapping with usd, tokens",
}
_FROM_ENVIRONMENT = (
    "model",
    "api_base",
    "tickets_dir",
    "test_command",
    "test_timeout",
    "max_attempts",
    "approval",
)


def load_config(root: Path, flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Config:
    """The settings that hold in a project. `flags` whose value is None were not given."""
    environment = os.environ if environment is None else environment
    merged: dict[str, Any] = {}
    for file in (user_file(), root / PROJECT_FILE):
        merged |= _from_file(file)
    for key in _FROM_ENVIRONMENT:
        if value := environment.get(f"CDD_{key.upper()}"):
            merged |= _checked({key: value}, lambda _, key=key: f"CDD_{key.upper()}")
    given = {key: value for key, value in flags.items() if value is not None}
    merged |= _checked(given, lambda path: f"--{path[0].replace('_', '-')}")
    return Config(**merged)


def user_file() -> Path:
    """The user's own settings, for all projects, where the platform keeps such files."""
    from platformdirs import user_config_path

    return user_config_path("cdd-agent") / "config.yaml"


def _from_file(path: Path) -> dict[str, Any]:
    """The keys that a file sets, valid ones. A missing or empty file sets none."""
    import yaml

    try:
        data = path.read_bytes()
        if len(data) > _LARGEST:
            raise BadInput(f"{path} is too large for a config: {len(data)} bytes")
        text = data.decode("utf-8-sig")
        _refuse_hostile(path, yaml.parse(text, Loader=yaml.SafeLoader))
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise BadInput(f"{path} could not be read: {error.strerror or error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f":{mark.line + 1}" if mark else ""
        raise BadInput(f"{path}{where}: not valid YAML: {getattr(error, 'problem', None) or error}") from error
    except ValueError as error:  # a date or number that is none, as in `2024-13-45`
        raise BadInput(f"{path}: not valid YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadInput(f"{path}:1: a config is a list of `key: value` lines")
    lines = _lines(node)
    return _checked(content, lambda key: f"{path}:{_line(lines, key)}")


def _refuse_hostile(path: Path, events: Iterable[Any]) -> None:
    """A config has no use for deep nesting and aliases, which cost a parser dearly. Events are read one by one."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if kind == "AliasEvent" or depth > _DEEPEST:
            where = f"{path}:{event.start_mark.line + 1}"
            raise BadInput(f"{where}: a config has no use for {'aliases' if kind == 'AliasEvent' else 'such nesting'}")


def _checked(content: dict[Any, Any], where: Any) -> dict[str, Any]:
    """The given keys, valid; `where(path of keys)` names the place of a wrong one."""
    try:
        valid = Config.model_validate({str(key): value for key, value in content.items()})
    except ValidationError as error:
        raise BadInput("\n".join(_complaint(detail, where) for detail in error.errors())) from error
    return {key: getattr(valid, key) for key in valid.model_fields_set}


def _complaint(detail: Any, where: Any) -> str:
    path = tuple(detail["loc"])
    name = ".".join(map(str, path))
    if detail["type"] == "extra_forbidden":
        section: Any = Config if len(path) == 1 else Config.model_fields[str(path[0])].annotation
        near = difflib.get_close_matches(str(path[-1]), section.model_fields, n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        return f"{where(path)}: there is no setting `{name}`; {hint}allowed are {', '.join(section.model_fields)}"
    match detail["type"]:
        case "none_required":
            allowed = "allowed: null (this version cannot watch a budget)"
        case "too_long":
            allowed = "allowed: [] (this version runs no commands for a model)"
        case "literal_error":
            allowed = f"allowed: {detail['ctx']['expected']}"
        case _:
            allowed = f"allowed: {_ALLOWED.get(name, 'a text')}"
    return f"{where(path)}: `{name}: {str(detail['input'])[:60]}` is not allowed; {allowed}"


def _lines(node: Any) -> dict[tuple[str, ...], int]:
    """The line, from 1, of every key of a composed YAML mapping, by its path of keys."""
    found: dict[tuple[str, ...], int] = {}
    for key, value in node.value if node is not None and node.id == "mapping" else ():
        found[str(key.value),] = key.start_mark.line + 1
        found |= {(str(key.value), *path): line for path, line in _lines(value).items()}
    return found


def _line(lines: dict[tuple[str, ...], int], path: tuple[str | int, ...]) -> int:
    names = tuple(map(str, path))
    return next((lines[names[:end]] for end in range(len(names), 0, -1) if names[:end] in lines), 1)
