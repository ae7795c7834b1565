"""The values of settings as users type them."""

import json
import re
from typing import Any

from msgspec import to_builtins

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import Config
from cdd_agent.settings.writing import with_setting
from cdd_agent.values.guarded_yaml import read_mapping
from cdd_agent.values.value_schemas import Schema, describe_values, find_schema

NULL = "null"


def check_value(name: str, typed: str) -> None:
    """Raise `BadInput` with the allowed values."""
    with_setting(Config(), name, read_typed(name, typed))


def read_typed(name: str, typed: str) -> object:
    """Return a typed value as in YAML. Raises `BadInput`."""
    typed = typed.strip()
    schema = schema_of_setting(name)
    if typed in ("", NULL) and schema.get("nullable"):
        return None
    if not typed and schema.get("type") != "array":
        raise BadInput(
            f"`{name}` needs a value: {describe_values(schema)}",
            refusal=Refusal.SETTINGS_INVALID,
        )
    if schema.get("type") == "string" or "enum" in schema:
        return typed
    if schema.get("type") == "array" and not typed.startswith("["):
        return [part for part in re.split(r"[,\s]+", typed) if part]
    return read_mapping(f"value: {typed}", name, "a setting")["value"].value(name)


def schema_of_setting(name: str) -> Schema:
    return find_schema(Config, name.split("."))


def as_typed(value: Any) -> str:
    plain = to_builtins(value)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, float) and plain.is_integer():
        return str(int(plain))
    if isinstance(plain, list | tuple) and all(isinstance(one, str) for one in plain):
        return ", ".join(plain)
    return json.dumps(plain, ensure_ascii=False)


def find_value(config: Config, name: str) -> Any:
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value
