"""Values that check themselves, and values that are read from what models and users
write.

`_Check` compares values with annotations, for the constructor (`Checked`) and for
decoding (`read`). It reports all faults, where msgspec stops at the first: a model that
receives one fault at a time needs a call for each.
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


Written = Annotated[str, Meta(pattern=r"\S")]
"""A text that is not empty and not only white space."""
_ANY_CHARACTERS = object()
"""Marks a text that may hold halves of characters (lone surrogates)."""
Captured = Annotated[str, _ANY_CHARACTERS]
"""A text from outside, such as a command's output."""
CapturedName = Annotated[Written, _ANY_CHARACTERS]
"""A name from outside, such as the path of a folder."""

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
_EXACT = {int: (int,), float: (int, float)}
"""The classes of values for types of which subclasses, such as enums, do not count."""


class Respelled(Struct, frozen=True):
    """In an `Annotated`: `spelled` returns the value that a decoded one stands for.

    A plain function there is a rule. It receives a value of the type, and returns it or
    raises `ValueError`.
    """

    spelled: Callable[[Any], Any]


class Fault(Struct, frozen=True):
    """One thing that is wrong. As a text it is a sentence without its full stop."""

    place: tuple[str | int, ...]
    """The keys and indexes that lead to the value; empty for the whole."""
    why: str
    """The end of the sentence: "missing", "not a text", ...; for a rule, all of it."""
    kind: Literal["value", "missing", "unknown", "rule"] = "value"
    allowed: tuple[str, ...] = ()
    """The allowed keys, or the allowed words for a value."""

    @property
    def path(self) -> str:
        path = ".".join(map(str, self.place)).encode(errors="backslashreplace").decode()
        return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"

    def __str__(self) -> str:
        if self.kind == "rule":
            return f"`{self.path}`: {self.why}" if self.place else self.why
        return f"`{self.path}` is {self.why}" if self.place else f"it is {self.why}"


class NotOfForm(ValueError, TypeError):
    """A value that its type does not allow. `faults` has all faults, up to a limit; in
    each part unknown keys come first.
    """

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


class Checked(Struct, frozen=True):
    """A value that compares its fields with their annotations, and copies lists and
    mappings. The constructor raises `NotOfForm`.
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
    """Return a value from JSON or YAML as one of a type. Raises `NotOfForm`."""
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
    """Return the JSON schema of a type, without titles, null for optional values,
    empty defaults, and the pattern of `Written`.
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
    """Compares values with their types and collects the faults. A returned value has
    its type if there are none.
    """

    is_decoded: bool
    """Values come from JSON or YAML: a mapping may stand for a `Struct`, and a text for
    a number, or for yes or no.
    """
    faults: list[Fault] = msgspec.field(default_factory=list)

    def finish(self) -> None:
        """Raise `NotOfForm` if there are faults."""
        if self.faults:
            raise NotOfForm(self.faults)

    def value(self, kind: Any, value: Any, place: Place) -> Any:
        count, added = len(self.faults), list(_added(kind))
        if count >= _MOST_FAULTS:
            return None
        if self.is_decoded:
            for each in added:
                if isinstance(each, Respelled):
                    value = each.spelled(value)
        is_limited = isinstance(value, str) and _ANY_CHARACTERS not in added
        if is_limited and _HALF.search(value):
            why = "no text that can be written: it has half of a character"
            self.faults.append(Fault(place, f"{why} (a lone surrogate)"))
            return None
        value = self._of_type(kind, value, place)
        if value is not None and len(self.faults) == count:
            with self._collecting(place):
                for rule in filter(callable, added):
                    value = rule(value)
        return value

    def _of_type(self, kind: Any, value: Any, place: Place) -> Any:
        form = bare(kind)
        origin = get_origin(form)
        if origin in (list, tuple) and isinstance(value, list | tuple):
            return origin(self._items(kind, value, place))
        if origin is dict and isinstance(value, dict):
            return self._entries(form, value, place)
        is_struct = isinstance(form, msgspec.StructMeta)
        if is_struct and isinstance(value, form):
            return value
        if is_struct and self.is_decoded and isinstance(value, dict):
            return self._struct(form, value, place)
        return self._converted(kind, value, place)

    def _converted(self, kind: Any, value: Any, place: Place) -> Any:
        form = bare(kind)
        if self.is_decoded:
            value = _respelled(form, value)
        if self._is_exact(form, value):
            with contextlib.suppress(msgspec.ValidationError):
                return msgspec.convert(value, kind)
        if form is str and isinstance(value, str) and not value.strip():
            self.faults.append(Fault(place, "empty"))
        else:
            self._report_type(kind, place)
        return None

    def _is_exact(self, form: Any, value: Any) -> bool:
        """False for a value that msgspec would take for another one."""
        if isinstance(value, set | frozenset):
            return False
        if self.is_decoded or value is None:
            return True
        if form in _EXACT:
            return type(value) in _EXACT[form]
        if not isinstance(form, type) or issubclass(form, Enum):
            return True
        return isinstance(value, form)

    def _items(
        self, kind: Any, value: list[Any] | tuple[Any, ...], place: Place
    ) -> list[Any]:
        for meta in _added(kind):
            if not isinstance(meta, Meta):
                continue
            is_long = len(value) > (meta.max_length or len(value))
            is_short = len(value) < (meta.min_length or 0)
            if is_short and not value:
                self.faults.append(Fault(place, "empty"))
            elif is_short or is_long:
                self._report_type(kind, place)
        item_kind = get_args(bare(kind))[0]
        if item_kind is Any:
            return list(value)
        items = []
        for index, item in enumerate(value):
            items.append(self.value(item_kind, item, (*place, index)))
        return items

    def _entries(
        self, form: Any, value: dict[Any, Any], place: Place
    ) -> dict[Any, Any]:
        key_kind, item_kind = get_args(form)
        entries = {}
        for key, item in value.items():
            checked_key = self.value(key_kind, key, (*place, key))
            entries[checked_key] = self.value(item_kind, item, (*place, key))
        return entries

    def _struct(
        self, form: msgspec.StructMeta, value: dict[Any, Any], place: Place
    ) -> Any:
        count, fields = len(self.faults), _fields(form)
        names = tuple(fields)
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
                checked = self.value(field.type, value[name], (*place, name))
                arguments[name] = checked
        if len(self.faults) == count:
            with self._collecting(place):
                return form(**arguments)
        return None

    @contextlib.contextmanager
    def _collecting(self, place: Place) -> Iterator[None]:
        """Collect the fault of a rule, or the faults of a `Checked` value."""
        try:
            yield
        except NotOfForm as error:
            for fault in error.faults:
                inner = (*place, *fault.place)
                self.faults.append(structs.replace(fault, place=inner))
        except ValueError as error:
            self.faults.append(Fault(place, str(error), "rule"))

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
    # msgspec does not keep them; finding them takes longer than all the rest
    return {field.name: field for field in structs.fields(cast("type[Struct]", form))}


def _respelled(form: Any, value: Any) -> Any:
    """Return the number, the yes or the no that a text or number means."""
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
    if get_origin(kind) is Annotated:
        return bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return next(bare(one) for one in get_args(kind) if one is not NoneType)
    return kind


def _added(kind: Any) -> Iterator[Any]:
    """Yield what `Annotated` adds to a type, or to those of a union."""
    if get_origin(kind) is Annotated:
        yield from _added(get_args(kind)[0])
        yield from kind.__metadata__
    elif get_origin(kind) in (Union, UnionType):
        for one in get_args(kind):
            yield from _added(one)
