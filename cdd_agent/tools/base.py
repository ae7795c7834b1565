"""Tools: what a model can call, each described by its types. See
docs/tool_interface_design.md.

The read-only ones are in `read_only.py`, those that change something or ask somebody in
`acting.py`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import NODEFAULT, Struct, structs

from cdd_agent.errors import CddError
from cdd_agent.forms import NotOfForm, read, schema_of

Answer = dict[str, Any]
"""The answer of a tool, as a JSON object: its findings, or `error` with words that a
model can act on.
"""


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a call. A field has a description, for the model, only where its
    name and type leave a doubt.
    """


A = TypeVar("A", bound=Struct)
_MOST_NAMED = 10
_UNSENT = {"default", "minimum", "maximum", "minItems"}


class Tool(ABC, Generic[A]):
    """One thing that a model can do. The class's docstring is for the model: what it
    does, and when to use it.
    """

    name: ClassVar[str]
    category: ClassVar[str]
    tags: ClassVar[tuple[str, ...]]
    returns: str
    """The content of the answer, in a line or two."""
    examples: tuple[Mapping[str, object], ...]
    """Arguments of typical calls."""
    arguments: type[A]
    main_argument: ClassVar[str] = "path"
    """The one that says what it is used on."""
    acts: ClassVar[bool] = True
    """It may change what other calls find."""

    @property
    def description(self) -> str:
        """The purpose and the answer, for a model that has no tool calls of its own: it
        is told once, in words.
        """
        return f"{self.purpose}\n\nAnswer: {self.returns}"

    @property
    def purpose(self) -> str:
        """Its use, and when to use it: the docstring of its class. With tool calls this
        is all that a model is told: it pays for each word in every round, and an answer
        shows what is in it.
        """
        return " ".join((type(self).__doc__ or "").split())

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The arguments as a JSON Schema object, derived from their type."""
        return _schema_of(self.arguments)

    @property
    def schema_to_send(self) -> dict[str, Any]:
        """The same without defaults and limits: a call that passes one is told so."""
        return _schema_to_send(self.arguments)

    async def execute(self, /, **kwargs: object) -> Answer:
        """Do it. Wrong arguments and whatever goes wrong are answers with an
        `error`.
        """
        try:
            return await self.run(read(self.arguments, kwargs))
        except NotOfForm as error:
            problems = "; ".join(map(str, error.faults[:_MOST_NAMED]))
            required = set(self.parameters_schema["required"])
            parameters = ", ".join(
                f"`{name}` ({_type(field)}{', required' if name in required else ''})"
                for name, field in self.parameters_schema["properties"].items()
            )
            return {
                "error": (
                    f"{self.name} was called wrongly: {problems}. Its parameters:"
                    f" {parameters or 'none'}."
                )
            }
        except CddError as error:
            return {"error": error.in_a_line}

    @abstractmethod
    async def run(self, arguments: A) -> Answer:
        """Do it, with valid arguments. May raise `CddError`."""

    def get_ai_prompt_instructions(self) -> str:
        """How to use it, for the prompt of a model that has no tool calls of its
        own.
        """
        schema = self.parameters_schema
        parameters = []
        for name, field in schema["properties"].items():
            need = (
                f"default {json.dumps(field['default'])}"
                if "default" in field
                else "optional"
            )
            need = "required" if name in schema["required"] else need
            said = f": {field['description']}" if "description" in field else ""
            parameters.append(f"- `{name}` ({_type(field)}, {need}){said}")
        calls = [
            json.dumps({"tool": self.name, "arguments": example}, ensure_ascii=False)
            for example in self.examples
        ]
        parts = [
            f"## {self.name}\n\n{self.description}\n\nParameters:",
            *(parameters or ["- none"]),
            "\nExamples:",
            *calls,
        ]
        return "\n".join(parts)

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """The function form of OpenAI's chat completions, which OpenRouter and litellm
        take too.
        """
        function = {
            "name": self.name,
            "description": self.purpose,
            "parameters": self.schema_to_send,
        }
        return {"type": "function", "function": function}


@cache
def _schema_of(arguments: type[Struct]) -> dict[str, Any]:
    """It is asked for many times, and takes a while to make."""
    fields = structs.fields(arguments)
    properties = {field.name: schema_of(field.type) for field in fields}
    for field in fields:
        if field.default is not NODEFAULT and field.default is not None:
            properties[field.name]["default"] = field.default
    required = [field.name for field in fields if field.required]
    return {"type": "object", "properties": properties, "required": required}


@cache
def _schema_to_send(arguments: type[Struct]) -> dict[str, Any]:
    schema, sent = _schema_of(arguments), dict[str, Any]()
    for name, field in schema["properties"].items():
        sent[name] = {key: value for key, value in field.items() if key not in _UNSENT}
    return {**schema, "properties": sent}


def _type(field: Mapping[str, Any]) -> str:
    kind = str(field.get("type", "any"))
    return f"list of {field['items'].get('type', 'any')}s" if kind == "array" else kind
