"""Tools: functions that a model can call, described by the types of their arguments.
See docs/reference/replies.md.

The read-only tools are in `read_only.py`, those that change something or ask the user
in `acting.py`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import NODEFAULT, Struct, structs

from cdd_agent.errors import CddError
from cdd_agent.values.typed_values import Checked, WrongValue, parse_json, read
from cdd_agent.values.value_schemas import schema_of

Answer = dict[str, Any]
"""A tool's answer as a JSON object: its result, or `error` with a message that a model
can act on.
"""


class Arguments(Checked, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call. Each field has a description for the model."""


A = TypeVar("A", bound=Struct)

_TEXTS = ("output", "content", "stdout", "stderr")
"""Keys of answers that may have long texts."""
_LIMITS = ("minimum", "maximum", "minItems")
"""Schema keys that models do not receive: they cost tokens in every request, and the
error for a wrong call names the limits.
"""


class Tool(ABC, Generic[A]):
    """A function that a model can call. The class's docstring is for the model: the
    purpose of the tool, and when to use it.
    """

    name: ClassVar[str]
    category: ClassVar[str]
    tags: ClassVar[tuple[str, ...]]
    returns: str
    """The answer and its errors, in a sentence."""
    examples: tuple[Mapping[str, object], ...]
    arguments: type[A]
    main_argument: ClassVar[str] = "path"
    """The argument that names the object of the call."""
    acts: ClassVar[bool] = True
    """True if a call may change the answers of other calls."""
    unsent: ClassVar[frozenset[str]] = frozenset()
    """Keys of the answer that are useless for a model, such as a repeated argument."""

    @property
    def purpose(self) -> str:
        """The docstring of the class."""
        return " ".join((type(self).__doc__ or "").split())

    @property
    def description(self) -> str:
        """The purpose and the answer, as every model receives them."""
        return f"{self.purpose} {self.returns}"

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The arguments as a JSON Schema object, derived from their type."""
        return _make_schema(self.arguments)

    async def execute(self, /, *values: object, **kwargs: object) -> Answer:
        """Call the tool. `values` are the first positional arguments.

        Wrong arguments and all failures are answers with an `error`.
        """
        try:
            given = _name_arguments(self.arguments, values, kwargs)
            fields = self.parameters_schema["properties"]
            return await self.run(read(self.arguments, _parse_texts(fields, given)))
        except WrongValue as error:
            parameters = ", ".join(self._list_parameters()) or "none"
            message = f"{self.name} was called wrongly: {error}. Its parameters:"
            return {"error": f"{message} {parameters}."}
        except CddError as error:
            return {"error": error.in_a_line}

    @abstractmethod
    async def run(self, arguments: A) -> Answer:
        """Carry out a call with valid arguments. May raise `CddError`."""

    def _list_parameters(self) -> list[str]:
        schema = self.parameters_schema
        parameters = []
        for name, field in schema["properties"].items():
            need = "optional"
            if name in schema["required"]:
                need = "required"
            elif "default" in field:
                need = f"default {json.dumps(field['default'])}"
            parameters.append(f"`{name}` ({_type_name(field)}, {need})")
        return parameters

    def get_ai_prompt_instructions(self) -> str:
        """Return the instructions for the prompt of a model without tool calls."""
        lines = [f"## {self.name}\n\n{self.description}\n\nParameters:"]
        fields = self.parameters_schema["properties"].values()
        for parameter, field in zip(self._list_parameters(), fields, strict=True):
            lines.append(f"- {parameter}: {field['description']}")
        if not fields:
            lines.append("- none")
        lines.append("\nExamples:")
        for example in self.examples:
            call = {"tool": self.name, "arguments": example}
            lines.append(json.dumps(call, ensure_ascii=False))
        return "\n".join(lines)

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """Return the function in the format of OpenAI's chat completions, which
        OpenRouter and litellm accept too.
        """
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters_schema,
        }
        return {"type": "function", "function": function}


def format_answer(answer: Answer, unsent: Collection[str] = ()) -> str:
    """Return an answer as a model receives it, without the keys in `unsent`: a line of
    JSON, and the longest text below it. Inside JSON, code takes a sixth more tokens,
    and models copy its escapes into their edits.
    """
    fields = {key: value for key, value in answer.items() if key not in unsent}
    texts = {key: fields[key] for key in _TEXTS if fields.get(key)}
    if not texts:
        return _to_json(fields)
    longest = max(texts, key=lambda key: len(texts[key]))
    text = fields.pop(longest)
    header = f"{_to_json(fields)}\n" if fields else ""
    return f"{header}{longest}:\n{text}"


def _to_json(fields: Answer) -> str:
    return json.dumps(fields, ensure_ascii=False, default=str)


def parse_answer(text: str) -> Answer:
    """Parse the output of `format_answer`. Empty for any other text."""
    fields: Answer = {}
    if text.startswith("{"):
        try:
            fields, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            return {}
        text = text[end + 1 :]
    key, _, content = text.partition(":\n")
    if key in _TEXTS:
        fields[key] = content
    return fields


def _name_arguments(
    arguments: type[Struct], values: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    names = arguments.__struct_fields__
    if len(values) > len(names):
        raise WrongValue((), f"has {len(values)} positional arguments")
    given = dict(zip(names, values, strict=False))
    for name in given.keys() & kwargs.keys():
        raise WrongValue((name,), "is given twice")
    return {**given, **kwargs}


def _parse_texts(
    fields: Mapping[str, Mapping[str, Any]], given: Mapping[str, object]
) -> dict[str, object]:
    """Parse lists and mappings that models write as JSON texts. A text that is not JSON
    is unchanged.
    """
    arguments = dict(given)
    for name, value in given.items():
        kind = fields.get(name, {}).get("type")
        if kind in ("array", "object") and isinstance(value, str):
            with suppress(WrongValue):
                arguments[name] = parse_json(value)
    return arguments


@cache
def _make_schema(arguments: type[Struct]) -> dict[str, Any]:
    # cached, because each request needs all schemas, and making one is slow
    properties: dict[str, Any] = {}
    required = []
    for field in structs.fields(arguments):
        schema = schema_of(field.type)
        for limit in _LIMITS:
            schema.pop(limit, None)
        properties[field.name] = schema
        if field.required:
            required.append(field.name)
        elif field.default is not NODEFAULT and field.default is not None:
            schema["default"] = field.default
    return {"type": "object", "properties": properties, "required": required}


def _type_name(field: Mapping[str, Any]) -> str:
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"list of {field['items'].get('type', 'any')}s"
    return kind
