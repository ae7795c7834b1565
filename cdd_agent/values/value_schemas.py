"""JSON schemas of types, for prompts and for messages about wrong values."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

Schema = dict[str, Any]

_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "over {}",
    "maximum": "at most {}",
    "minLength": "not empty",
    "maxLength": "at most {} characters",
    "minItems": "not empty",
    "maxItems": "at most {} items",
}
_TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "mapping": "a mapping",
    "date-time": "a time",
    "null": "null",
}
_MAX_NAMES = 12
_NULL = {"type": "null"}
_REF = "#/$defs/"


def schema_of(kind: Any) -> Schema:
    """Return the schema of a type without titles, patterns, empty defaults, and null
    for optional values.
    """
    schema = msgspec.json.schema(kind)
    definitions = schema.pop("$defs", {})
    if "$ref" in schema:
        schema = definitions.pop(schema["$ref"].removeprefix(_REF))
    if definitions:
        schema = {"$defs": definitions, **schema}
    plain: Schema = _simplify(schema)
    return plain


def _simplify(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_simplify(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != _NULL]
    if len(kinds) == 1:
        schema = {**schema, **kinds[0]}
        del schema["anyOf"]
    simple = {}
    for key, value in schema.items():
        # a field may be called `title` or `pattern`; then the value is a schema
        is_title = key in ("title", "pattern") and isinstance(value, str)
        is_empty = key in ("default", "required") and value in (None, [], (), "")
        if not is_title and not is_empty:
            simple[key] = _simplify(value)
    return simple


def find_schema(kind: Any, place: Sequence[str | int]) -> Schema:
    """Return the schema of the values at a place, or an empty one."""
    try:
        schema = msgspec.json.schema(kind)
    except TypeError:
        return {}
    definitions = schema.get("$defs", {})
    schema = _resolve(schema, definitions)
    for step in place:
        schema = _resolve(_find_inner(schema, step), definitions)
    return schema


def _find_inner(schema: Schema, step: str | int) -> Schema:
    inner = schema.get("items")
    if isinstance(step, str):
        inner = schema.get("properties", {}).get(step)
    return inner if isinstance(inner, dict) else {}


def _resolve(schema: Schema, definitions: Schema) -> Schema:
    """Resolve a schema's reference. An optional one is marked as `nullable`."""
    options = schema.get("anyOf", [])
    if _NULL in options and len(options) == 2:
        optional = next(option for option in options if option != _NULL)
        return {**_resolve(optional, definitions), "nullable": True}
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix(_REF)]
    return schema


def describe_values(schema: Schema) -> str:
    """Describe the allowed values. A title names a kind of text, such as "the name of a
    program".
    """
    options = schema.get("anyOf")
    if options:
        return " or ".join(map(_name_kind, options))
    limits = []
    item = schema.get("items") or schema.get("additionalProperties")
    if item:
        limits.append(f"each {_name_kind(item)}")
    for key, words in _LIMITS.items():
        if key in schema:
            limits.append(words.format(f"{schema[key]:,}"))
    description = _name_kind(schema)
    if limits:
        description += f" ({', '.join(limits)})"
    if schema.get("properties"):
        description += f" with {list_names(schema['properties'])}"
    return f"{description} or null" if schema.get("nullable") else description


def _name_kind(schema: Schema) -> str:
    if "enum" in schema:
        return f"one of {list_names(schema['enum'])}"
    kind = schema.get("format") or schema.get("type", "object")
    if kind == "string" and "title" in schema:
        return str(schema["title"])
    if schema.get("additionalProperties"):
        kind = "mapping"
    return _TYPES.get(kind, "an object")


def list_names(names: Iterable[object]) -> str:
    shown = [f"`{name}`" for name in names]
    if len(shown) > _MAX_NAMES:
        shown[_MAX_NAMES:] = ["…"]
    return ", ".join(shown)
