"""Values that check themselves, and values from models' and users' texts. msgspec finds
the first fault; `WrongValue` describes it.
"""

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, ValidationError, convert, structs

from cdd_agent.pattern import Pattern
from cdd_agent.values.value_schemas import (
    Schema,
    describe_values,
    find_schema,
    list_names,
)

T = TypeVar("T")

Written = Annotated[str, Meta(pattern=r"\S")]
_LIKENESS = 0.65
_MAX_PATH = 100
"""Keys may be any text, also a very long one."""
_FAULT = Pattern(
    r"(?P<problem>.*?)( - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL
)
_STEP = Pattern(r"\.(?P<name>\w+)|\[(?P<index>\d+)\]|\[\.\.\.\]")
_FIELD_FAULT = Pattern(
    r"Object (?P<problem>contains unknown|missing required) field `(?P<name>.*)`",
    re.DOTALL,
)

Place = tuple[str | int, ...]
"""The keys and indexes that lead to a value; empty for the whole."""


class WrongValue(ValueError, TypeError):
    """A value does not fit its type. The message has no full stop."""

    def __init__(
        self,
        place: Place,
        problem: str,
        *,
        value: object = None,
        is_rule: bool = False,
    ) -> None:
        """`problem` is the end of a sentence, or the whole one for a rule."""
        path = ".".join(map(str, place)).encode(errors="backslashreplace").decode()
        if len(path) > _MAX_PATH:
            path = f"{path[:_MAX_PATH]}…"
        subject = f"`{path}`" if place else "it"
        message = f"{subject} {problem}"
        if is_rule:
            message = f"{subject}: {problem}" if place else problem
        super().__init__(message)
        self.place = place
        self.value = value


class RuleBroken(ValueError):
    """A value breaks a rule of its `field` that msgspec does not know. Raised in
    `__post_init__`.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Checked(Struct, frozen=True):
    """A value whose constructor checks the types of its fields, and copies lists and
    mappings. Raises `WrongValue`.
    """

    def __post_init__(self) -> None:
        for name, kind in _field_types(type(self)):
            value = check_argument(name, kind, getattr(self, name))
            structs.force_setattr(self, name, value)


@cache
def _field_types(kind: type[Struct]) -> list[tuple[str, Any]]:
    # cached, because it takes longer than the rest together
    return [(field.name, field.type) for field in structs.fields(kind)]


def check_argument(name: str, kind: Any, value: object) -> Any:
    """Raises `WrongValue`."""
    try:
        return convert(value, kind)
    except ValidationError as error:
        raise explain(error, kind, value, name) from error


def read(kind: type[T], value: object) -> T:
    """Convert a value from JSON or YAML to a type. Texts may stand for numbers, true
    and false. Raises `WrongValue`.
    """
    try:
        # files and commands cannot contain lone surrogates
        json.dumps(value, ensure_ascii=False, skipkeys=True, default=str).encode()
        return convert(value, kind, strict=False)
    except ValidationError as error:
        raise explain(error, kind, value) from error
    except UnicodeEncodeError as error:
        problem = "has half of a character (a lone surrogate)"
        raise WrongValue((), problem) from error
    except RecursionError as error:
        raise WrongValue((), "is nested too deeply") from error


def read_json(kind: type[T], text: str | bytes) -> T:
    """Raises `WrongValue`."""
    return read(kind, parse_json(text))


def parse_json(text: str | bytes) -> Any:
    """Raises `WrongValue`."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise WrongValue((), f"is not valid JSON: {error}") from error


def explain(
    error: ValidationError, kind: Any, value: object, name: str = ""
) -> WrongValue:
    """Return msgspec's error in cdd's words. `name` is the argument with the value."""
    match = _FAULT.fullmatch(str(error))
    assert match
    inner = _parse_path(match["path"] or "")
    place = (name, *inner) if name else inner
    rule = error.__cause__
    if rule is not None:
        if isinstance(rule, RuleBroken):
            place = (*place, rule.field)
        return WrongValue(place, str(rule), is_rule=True)
    schema = find_schema(kind, inner)
    field = _FIELD_FAULT.fullmatch(match["problem"])
    if field:
        place = (*place, field["name"])
        if field["problem"] == "missing required":
            return WrongValue(place, "is missing")
        suggestion = suggest(field["name"], schema.get("properties", ()))
        return WrongValue(place, f"is unknown{suggestion}")
    if match["key"]:
        keys = {"type": "string", **schema.get("propertyNames", {})}
        return WrongValue(place, f"has a key that is not {describe_values(keys)}")
    if (match["path"] or "").endswith("[...]"):
        values = schema.get("additionalProperties", {})
        return WrongValue(place, f"has a value that is not {describe_values(values)}")
    wrong = _find_value(value, inner)
    if _is_empty(wrong, schema):
        return WrongValue(place, "is empty")
    return WrongValue(place, f"is not {describe_values(schema)}", value=wrong)


def suggest(name: str, allowed: Iterable[str]) -> str:
    """Return a hint with names similar to an unknown one, or with all names."""
    names = [*allowed]
    similar = difflib.get_close_matches(name[:_MAX_PATH], names, 2, _LIKENESS)
    if similar:
        quoted = [f"`{one}`" for one in similar]
        return f" (did you mean {' or '.join(quoted)}?)"
    return f"; allowed are {list_names(names)}"


def _parse_path(path: str) -> Place:
    place: list[str | int] = []
    for step in _STEP.finditer(path):
        if step["name"]:
            place.append(step["name"])
        elif step["index"]:
            place.append(int(step["index"]))
        else:
            break
    return tuple(place)


def _find_value(value: Any, place: Place) -> object:
    try:
        for step in place:
            value = value[step]
    except (LookupError, TypeError):
        return None
    return value


def _is_empty(value: object, schema: Schema) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, Sequence) and not value and "minItems" in schema
