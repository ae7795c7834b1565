"""What a model or a person wrote, as a `Struct` of ours, or everything that is wrong
with it; and the schema of one.

msgspec itself stops at the first fault, and a model that is told one at a time needs a
call for each. It reads numbers that are written as text, too, but not in all the
spellings that models use.
"""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, structs

T = TypeVar("T")

Written = Annotated[str, Meta(pattern=r"\S")]
"""A text that says something: not empty, not only white space."""

_WHOLE = re.compile(r"\s*([+-]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?\s*")
_MOST_DIGITS = 4_000
"""Python itself refuses to read somewhat longer ones."""
_ANSWERS: dict[object, bool] = {
    **dict.fromkeys((1, "true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys((0, "false", "f", "no", "n", "off", "0"), False),
}
_HALF = re.compile("[\ud800-\udfff]")
_MOST_FAULTS = 50
_LONGEST_PATH = 100
"""Characters of a place that are told: keys may be anything."""
_LIMITS = {
    "minimum": "at least {}",
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
}
"""In words, by the names of JSON schemas."""


class Respelled(Struct, frozen=True):
    """In a kind's `Annotated`: what is read is not the value but what this makes of it,
    another spelling of the same.

    A plain function there is a rule: it is given a value that is of the kind, and
    returns it, or raises `ValueError`.
    """

    spelled: Callable[[Any], Any]


class Fault(Struct, frozen=True):
    """One thing that is wrong; as a text a sentence without its full stop."""

    place: tuple[str | int, ...]
    """The keys, and numbers in lists, that lead to it; none for the whole."""
    why: str
    """The end of the sentence: "missing", "not a text", ...; of a rule all of it."""
    kind: Literal["value", "missing", "unknown", "rule"] = "value"
    """A wrong value, none, a key that must not be there, or what a form's own
    `__post_init__` refuses.
    """
    allowed: tuple[str, ...] = ()
    """The keys that may be where one is unknown or missing; the words that a wrong
    value may be.
    """

    @property
    def path(self) -> str:
        path = ".".join(map(str, self.place)).encode(errors="backslashreplace").decode()
        return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"

    def __str__(self) -> str:
        if self.kind == "rule":
            return f"`{self.path}`: {self.why}" if self.place else self.why
        return f"`{self.path}` is {self.why}" if self.place else f"it is {self.why}"


class NotOfForm(ValueError):
    """A value that is not of the form that was asked for. `faults` are all of them,
    unless they are very many; in each part unknown keys come first.
    """

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


def read(form: type[T], value: object) -> T:
    """A value, as JSON and YAML have them, as one of a form. Whole numbers, and yes and
    no, may be written as text.

    Raises `NotOfForm`.
    """
    faults: list[Fault] = []
    made: T = _made(form, value, (), faults)
    if faults:
        raise NotOfForm(faults)
    return made


def read_json(form: type[T], text: str | bytes) -> T:
    """The same of a text in JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotOfForm([Fault((), f"not valid JSON: {error}")]) from error
    return read(form, value)


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a form or a field, without what says little and takes room:
    the names of forms, the null of what can be left out, empty defaults, and that a
    text must not be blank.
    """
    (schema,), forms = msgspec.json.schema_components(
        [kind], ref_template="#/$defs/{name}"
    )
    if "$ref" in schema:
        schema = forms.pop(bare(kind).__name__)
    plain: dict[str, Any] = _plain({"$defs": forms, **schema} if forms else schema)
    return plain


def _plain(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        schema = {**schema, **kinds[0]}
        del schema["anyOf"]
    # others are names of fields
    unsaid = {key for key in ("title", "pattern") if isinstance(schema.get(key), str)}
    unsaid |= {
        key
        for key in ("default", "required")
        if schema.get(key, ...) in (None, [], (), "")
    }
    return {key: _plain(value) for key, value in schema.items() if key not in unsaid}


def _made(
    kind: Any, value: Any, place: tuple[str | int, ...], faults: list[Fault]
) -> Any:
    """The value as one of its kind, or None and its faults."""
    so_far, its = len(faults), bare(kind)
    if so_far >= _MOST_FAULTS:
        return None
    for each in _added(kind):
        value = each.spelled(value) if isinstance(each, Respelled) else value
    if isinstance(value, str) and _HALF.search(value):
        faults.append(
            Fault(
                place,
                "no text that can be written: it has half of a character (a lone"
                " surrogate)",
            )
        )
    elif isinstance(its, msgspec.StructMeta) and isinstance(value, dict):
        fields = _fields(its)
        if its.__struct_config__.forbid_unknown_fields:
            unknown = itertools.islice(
                (key for key in value if key not in fields), _MOST_FAULTS
            )
            faults += [
                Fault((*place, key), "unknown", "unknown", tuple(fields))
                for key in unknown
            ]
        needed = (
            name
            for name, field in fields.items()
            if field.required and name not in value
        )
        faults += [
            Fault((*place, name), "missing", "missing", tuple(fields))
            for name in needed
        ]
        given = ((name, field.type) for name, field in fields.items() if name in value)
        value = {
            name: _made(its_kind, value[name], (*place, name), faults)
            for name, its_kind in given
        }
    elif get_origin(its) is tuple and isinstance(value, list | tuple):
        if any(
            isinstance(one, Meta) and len(value) > (one.max_length or len(value))
            for one in _added(kind)
        ):
            # whatever is wrong with the items
            faults.append(Fault(place, f"not {_described(schema_of(kind))}"))
        value = tuple(
            _made(get_args(its)[0], item, (*place, i), faults)
            for i, item in enumerate(value)
        )
    elif get_origin(its) is dict and isinstance(value, dict):
        key, item = get_args(its)
        value = {
            _made(key, k, (*place, k), faults): _made(item, v, (*place, k), faults)
            for k, v in value.items()
        }
    elif its is int:
        value = _as_number(value)
    elif its is float and isinstance(value, str | bool):
        with contextlib.suppress(ValueError):
            value = float(value)
    elif its is bool and isinstance(value, str | int | float):
        value = _ANSWERS.get(value.lower() if isinstance(value, str) else value, value)
    if len(faults) > so_far:
        return None
    try:
        made = msgspec.convert(value, kind)
        for rule in filter(callable, _added(kind)):
            made = rule(made) if made is not None else None
        return made
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ValueError):
            faults.append(Fault(place, str(error.__cause__), "rule"))
        elif value == () or (
            its is str and isinstance(value, str) and not value.strip()
        ):
            faults.append(Fault(place, "empty"))
        else:
            words = get_args(its) if get_origin(its) is Literal else ()
            faults.append(
                Fault(place, f"not {_described(schema_of(kind))}", allowed=words)
            )
        return None
    except ValueError as error:
        faults.append(Fault(place, str(error), "rule"))
        return None


@cache
def _fields(form: msgspec.StructMeta) -> dict[str, structs.FieldInfo]:
    """By their names. msgspec finds them out anew each time, which takes longer than
    all the rest of reading a form.
    """
    return {field.name: field for field in structs.fields(cast("type[Struct]", form))}


def _as_number(value: Any) -> Any:
    """The whole number that is meant, or the value itself."""
    if isinstance(value, str):
        found = _WHOLE.fullmatch(value) if len(value) < _MOST_DIGITS else None
        return int(found[1]) if found else value
    is_whole = isinstance(value, bool) or (
        isinstance(value, float) and value.is_integer() and abs(value) < 2**63
    )
    return int(value) if is_whole else value


def _described(schema: dict[str, Any]) -> str:
    """The values that a schema allows, in words."""
    if "enum" in schema:
        return f"one of {', '.join(f'`{value}`' for value in schema['enum'])}"
    each = schema.get("items") or schema.get("additionalProperties")
    limits = [f"each {_described(each).partition(' (')[0]}"] if each else []
    limits += [
        words.format(f"{schema[key]:,}")
        for key, words in _LIMITS.items()
        if key in schema
    ]
    name = "mapping" if schema.get("additionalProperties") else str(schema.get("type"))
    return _TYPES.get(name, "an object") + (f" ({', '.join(limits)})" if limits else "")


def bare(kind: Any) -> Any:
    """Without null and what `Annotated` adds."""
    if get_origin(kind) is Annotated:
        return bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return next(bare(one) for one in get_args(kind) if one is not NoneType)
    return kind


def _added(kind: Any) -> Iterator[Any]:
    """What `Annotated` adds to a kind, or to those of a union."""
    if get_origin(kind) is Annotated:
        yield from _added(get_args(kind)[0])
        yield from kind.__metadata__
    elif get_origin(kind) in (Union, UnionType):
        for one in get_args(kind):
            yield from _added(one)
