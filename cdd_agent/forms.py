"""Values that check themselves, and values that are read from what models and users
write.

One mechanism, `_Check`, compares a value with the annotations of a `Struct`. `Checked`
uses it when a value is made, `read` when one is decoded. It reports all faults at once,
since a model that receives one fault at a time needs a call for each. msgspec itself
stops at the first.
"""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, structs

T = TypeVar("T")


class _AnyCharacters:
    """Marks a text that may hold halves of characters (lone surrogates)."""


Written = Annotated[str, Meta(pattern=r"\S")]
"""A text that is not empty and not only white space."""
Captured = Annotated[str, _AnyCharacters()]
"""A text from outside, such as a command's output, with any characters."""
CapturedName = Annotated[Written, _AnyCharacters()]
"""A name from outside, such as the path of a folder, with any characters."""

_WHOLE = re.compile(r"\s*([+-]?[0-9]+(?:_[0-9]+)*)(?:\.0+)?\s*")
_MOST_DIGITS = 4_000
"""Python refuses to read numbers that are somewhat longer."""
_ANSWERS: dict[object, bool] = {
    **dict.fromkeys((1, "true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys((0, "false", "f", "no", "n", "off", "0"), False),
}
_HALF = re.compile("[\ud800-\udfff]")
_MOST_FAULTS = 50
_LONGEST_PATH = 100
"""Characters of a fault's path that are shown: keys may be anything."""
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
    "date-time": "a time",
}
"""In words, by the names of JSON schemas."""
_WITH_ANY_PARTS: dict[Any, Any] = {
    list: list[Any],
    tuple: tuple[Any, ...],
    dict: dict[Any, Any],
}


class Respelled(Struct, frozen=True):
    """In a field's `Annotated`: `spelled` turns a decoded value into the form that is
    checked.

    A plain function there is a rule. It receives a value of the right type, and returns
    it or raises `ValueError`.
    """

    spelled: Callable[[Any], Any]


class Fault(Struct, frozen=True):
    """One thing that is wrong. As a text it is a sentence without its full stop."""

    place: tuple[str | int, ...]
    """The keys and list indexes that lead to the value; empty for the whole."""
    why: str
    """The end of the sentence: "missing", "not a text", ...; for a rule, all of it."""
    kind: Literal["value", "missing", "unknown", "rule"] = "value"
    """A wrong value, a missing key, a key that is not allowed, or what a rule refuses.
    """
    allowed: tuple[str, ...] = ()
    """The allowed keys where one is unknown or missing; the allowed words for a wrong
    value.
    """

    @property
    def path(self) -> str:
        path = ".".join(map(str, self.place)).encode(errors="backslashreplace").decode()
        return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"

    def __str__(self) -> str:
        if self.kind == "rule":
            return f"`{self.path}`: {self.why}" if self.place else self.why
        return f"`{self.path}` is {self.why}" if self.place else f"it is {self.why}"


class NotOfForm(ValueError, TypeError):
    """A value that does not have the form of its type. `faults` are all of them, up to
    a limit; in each part unknown keys come first.

    It is a `TypeError` too, since wrong types are among the faults.
    """

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class Checked(Struct, frozen=True):
    """A value that checks its fields against their annotations when it is made.

    Lists and mappings are copied; a list becomes a tuple where the field is one. Raises
    `NotOfForm`, also when it is decoded.
    """

    def __post_init__(self) -> None:
        check = _Check(is_decoded=False)
        for name, field in _fields(type(self)).items():
            given = getattr(self, name)
            value = check.value(field.type, given, (name,))
            if value is not given:
                structs.force_setattr(self, name, value)
        check.finish()


def read(form: type[T], value: object) -> T:
    """Return a value from JSON or YAML as one of a type. Whole numbers, yes and no may
    be written as text.

    Raises `NotOfForm`.
    """
    check = _Check(is_decoded=True)
    made: T = check.value(form, value, ())
    check.finish()
    return made


def read_json(form: type[T], text: str | bytes) -> T:
    """Return a JSON text as a value of a type. Raises `NotOfForm`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotOfForm([Fault((), f"not valid JSON: {error}")]) from error
    return read(form, value)


def check_argument(name: str, kind: Any, value: object) -> Any:
    """Return an argument of a call as one of its type. Raises `NotOfForm`."""
    check = _Check(is_decoded=False)
    checked = check.value(kind, value, (name,))
    check.finish()
    return checked


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type, without the parts that take room and say
    little: titles, null for optional values, empty defaults, and the pattern of
    `Written`.
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
    # a field may be called `title` or `pattern`; then the value is a schema
    unsaid = {key for key in ("title", "pattern") if isinstance(schema.get(key), str)}
    unsaid |= {
        key
        for key in ("default", "required")
        if schema.get(key, ...) in (None, [], (), "")
    }
    return {key: _plain(value) for key, value in schema.items() if key not in unsaid}


Place = tuple[str | int, ...]


class _Check(Struct):
    """Compares values with their types and collects the faults.

    Each method returns the value as one of its type. Its result has no meaning once
    there are faults.
    """

    is_decoded: bool
    """The value comes from JSON or YAML: mappings stand for `Struct`s, and numbers, yes
    and no may be written as text. Else the value must be of its type already.
    """
    faults: list[Fault] = msgspec.field(default_factory=list)

    def finish(self) -> None:
        """Raise `NotOfForm` if there are faults."""
        if self.faults:
            raise NotOfForm(self.faults)

    def value(self, kind: Any, value: Any, place: Place) -> Any:
        if len(self.faults) >= _MOST_FAULTS:
            return None
        if self.is_decoded:
            for each in _added(kind):
                if isinstance(each, Respelled):
                    value = each.spelled(value)
        if (
            isinstance(value, str)
            and _HALF.search(value)
            and not any(isinstance(each, _AnyCharacters) for each in _added(kind))
        ):
            why = "no text that can be written: it has half of a character"
            self.faults.append(Fault(place, f"{why} (a lone surrogate)"))
            return None
        count = len(self.faults)
        value = self._with_parts(kind, value, place)
        if len(self.faults) > count:
            return None
        return self._converted(kind, value, place)

    def _with_parts(self, kind: Any, value: Any, place: Place) -> Any:
        """Check the parts of a value, and return it with its parts as of their types.
        A value that can have none is returned, as its type spells it.
        """
        form = bare(kind)
        origin = get_origin(form)
        if isinstance(form, msgspec.StructMeta):
            if self.is_decoded and isinstance(value, dict):
                return self._struct(form, value, place)
        elif origin in (list, tuple):
            if isinstance(value, list | tuple):
                return self._items(kind, value, place)
        elif origin is dict:
            if isinstance(value, dict):
                return self._entries(form, value, place)
        elif self.is_decoded:
            return _respelled(form, value)
        return value

    def _struct(
        self, form: msgspec.StructMeta, value: dict[Any, Any], place: Place
    ) -> Any:
        fields = _fields(form)
        names = tuple(fields)
        count = len(self.faults)
        if form.__struct_config__.forbid_unknown_fields:
            unknown = (key for key in value if key not in fields)
            for key in itertools.islice(unknown, _MOST_FAULTS):
                self.faults.append(Fault((*place, key), "unknown", "unknown", names))
        for name, field in fields.items():
            if field.required and name not in value:
                self.faults.append(Fault((*place, name), "missing", "missing", names))
        arguments = {}
        for name, field in fields.items():
            if name in value:
                argument = self.value(field.type, value[name], (*place, name))
                arguments[name] = argument
        if len(self.faults) > count:
            return None
        try:
            return form(**arguments)
        except NotOfForm as error:
            for fault in error.faults:
                self.faults.append(structs.replace(fault, place=(*place, *fault.place)))
        except ValueError as error:
            self.faults.append(Fault(place, str(error), "rule"))
        return None

    def _items(
        self, kind: Any, value: list[Any] | tuple[Any, ...], place: Place
    ) -> tuple[Any, ...]:
        for meta in _added(kind):
            if isinstance(meta, Meta) and len(value) > (meta.max_length or len(value)):
                # reported first, whatever is wrong with the items
                self._report_type(kind, place)
        item_kind = get_args(bare(kind))[0]
        items = []
        for index, item in enumerate(value):
            items.append(self.value(item_kind, item, (*place, index)))
        return tuple(items)

    def _entries(
        self, form: Any, value: dict[Any, Any], place: Place
    ) -> dict[Any, Any]:
        key_kind, item_kind = get_args(form)
        entries = {}
        for key, item in value.items():
            checked_key = self.value(key_kind, key, (*place, key))
            entries[checked_key] = self.value(item_kind, item, (*place, key))
        return entries

    def _converted(self, kind: Any, value: Any, place: Place) -> Any:
        """Compare a value with its type and its rules. Its parts have no faults."""
        if not any(self._fits(form, value) for form in _alternatives(kind)):
            self._report_type(kind, place)
            return None
        try:
            if isinstance(value, list | tuple | dict):
                value = msgspec.convert(value, _shallow(kind))
            elif not isinstance(value, Struct):
                value = msgspec.convert(value, kind)
            for rule in _added(kind):
                if callable(rule) and value is not None:
                    value = rule(value)
        except msgspec.ValidationError:
            is_blank = isinstance(value, str) and not value.strip()
            if value == () or (is_blank and bare(kind) is str):
                self.faults.append(Fault(place, "empty"))
            else:
                self._report_type(kind, place)
        except ValueError as error:
            self.faults.append(Fault(place, str(error), "rule"))
        return value

    def _fits(self, form: Any, value: Any) -> bool:
        """False for values that msgspec would take for one of the type, although they
        are not. None is left to msgspec.
        """
        if value is None:
            return True
        if get_origin(form) in (list, tuple):
            return isinstance(value, list | tuple)
        if isinstance(form, msgspec.StructMeta):
            return isinstance(value, form)
        if self.is_decoded or not isinstance(form, type) or issubclass(form, Enum):
            return True
        if form is int:
            return type(value) is int
        if form is float:
            return type(value) in (int, float)
        return isinstance(value, form)

    def _report_type(self, kind: Any, place: Place) -> None:
        form = bare(kind)
        words = get_args(form) if get_origin(form) is Literal else ()
        if isinstance(form, msgspec.StructMeta) and not self.is_decoded:
            description = f"of type `{form.__name__}`"
        elif isinstance(form, type) and issubclass(form, Exception):
            description = "an exception"
        else:
            description = _described(schema_of(kind))
        self.faults.append(Fault(place, f"not {description}", allowed=words))


@cache
def _fields(form: msgspec.StructMeta) -> dict[str, structs.FieldInfo]:
    """The fields of a type by name. msgspec itself does not keep them, and finding them
    takes longer than the rest of reading a value.
    """
    return {field.name: field for field in structs.fields(cast("type[Struct]", form))}


def _respelled(form: Any, value: Any) -> Any:
    """Return the number, or the yes or no, that a decoded value means, or the value."""
    if form is int:
        return _as_number(value)
    if form is float and isinstance(value, str | bool):
        with contextlib.suppress(ValueError):
            return float(value)
    if form is bool and isinstance(value, str | int | float):
        word = value.lower() if isinstance(value, str) else value
        return _ANSWERS.get(word, value)
    return value


def _as_number(value: Any) -> Any:
    """Return the whole number that is meant, or the value itself."""
    if isinstance(value, str):
        found = _WHOLE.fullmatch(value) if len(value) < _MOST_DIGITS else None
        return int(found[1]) if found else value
    is_whole = isinstance(value, bool) or (
        isinstance(value, float) and value.is_integer() and abs(value) < 2**63
    )
    return int(value) if is_whole else value


def _shallow(kind: Any) -> Any:
    """Return the type of a list or mapping with any parts, for parts that were compared
    with their types before. Other types are returned unchanged.
    """
    origin = get_origin(bare(kind))
    if origin not in _WITH_ANY_PARTS:
        return kind
    shallow = _WITH_ANY_PARTS[origin]
    for meta in _added(kind):
        if isinstance(meta, Meta):
            shallow = Annotated[shallow, meta]
    return shallow


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
    name = schema.get("format", name)
    return _TYPES.get(name, "an object") + (f" ({', '.join(limits)})" if limits else "")


def bare(kind: Any) -> Any:
    """Return the type without null and without what `Annotated` adds."""
    return _alternatives(kind)[0]


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself, each as `bare` does."""
    if get_origin(kind) is Annotated:
        return _alternatives(get_args(kind)[0])
    if get_origin(kind) not in (Union, UnionType):
        return (kind,)
    alternatives: list[Any] = []
    for one in get_args(kind):
        if one is not NoneType:
            alternatives += _alternatives(one)
    return tuple(alternatives)


def _added(kind: Any) -> Iterator[Any]:
    """Yield what `Annotated` adds to a type, or to those of a union."""
    if get_origin(kind) is Annotated:
        yield from _added(get_args(kind)[0])
        yield from kind.__metadata__
    elif get_origin(kind) in (Union, UnionType):
        for one in get_args(kind):
            yield from _added(one)
