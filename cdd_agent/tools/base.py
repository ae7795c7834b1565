"""Tools: what a model can call, each described by its types. See docs/tool_interface_design.md.

The read-only ones are in `read_only.py`, those that change something or ask somebody in `acting.py`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from inspect import cleandoc
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from cdd_agent.errors import CddError

Answer = dict[str, Any]
"""The answer of a tool, as a JSON object: its findings, or `error` with words that a model can act on."""


class Arguments(BaseModel):
    """The arguments of a call. A field has a description, for the model, only where its name and type leave a doubt."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=BaseModel)


class Tool(ABC, Generic[A]):
    """One thing that a model can do. The class's docstring is for the model: what it does, and when to use it."""

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
        """The purpose and the answer, for a model that has no tool calls of its own: it is told once, in words."""
        return f"{self.purpose}\n\nAnswer: {self.returns}"

    @property
    def purpose(self) -> str:
        """Its use, and when to use it: the docstring of its class. With tool calls this is all that a model is told: it
        pays for each word in every round, and an answer shows what is in it."""
        return cleandoc(type(self).__doc__ or "")

    @property
    def parameters_schema(self) -> dict[str, Any]:
        """The arguments as a JSON Schema object, derived from their type."""
        schema = _schema_of(self.arguments)
        properties = {name: _simple(field) for name, field in schema["properties"].items()}
        required = schema.get("required", [])
        return {"type": "object", "properties": properties, "required": required}

    @property
    def schema_to_send(self) -> dict[str, Any]:
        """The same without defaults: who leaves an argument out has no need to know."""
        schema = self.parameters_schema
        fields = schema["properties"].items()
        said = {name: {key: value for key, value in field.items() if key != "default"} for name, field in fields}
        return {**schema, "properties": said}

    async def execute(self, **kwargs: object) -> Answer:
        """Do it. Wrong arguments and whatever goes wrong are answers with an `error`."""
        try:
            return await self.run(self.arguments.model_validate(kwargs))
        except ValidationError as error:
            problems = "; ".join(_problem(detail) for detail in error.errors()[:5])
            required = set(self.parameters_schema["required"])
            parameters = ", ".join(
                f"`{name}` ({_type(field)}{', required' if name in required else ''})"
                for name, field in self.parameters_schema["properties"].items()
            )
            return {"error": f"{self.name} was called wrongly: {problems}. Its parameters: {parameters or 'none'}."}
        except CddError as error:
            return {"error": error.in_a_line}

    @abstractmethod
    async def run(self, arguments: A) -> Answer:
        """Do it, with valid arguments. May raise `CddError`."""

    def get_ai_prompt_instructions(self) -> str:
        """How to use it, for the prompt of a model that has no tool calls of its own."""
        schema = self.parameters_schema
        parameters = []
        for name, field in schema["properties"].items():
            need = f"default {json.dumps(field['default'])}" if "default" in field else "optional"
            need = "required" if name in schema["required"] else need
            said = f": {field['description']}" if "description" in field else ""
            parameters.append(f"- `{name}` ({_type(field)}, {need}){said}")
        calls = [json.dumps({"tool": self.name, "arguments": example}, ensure_ascii=False) for example in self.examples]
        parts = [
            f"## {self.name}\n\n{self.description}\n\nParameters:",
            *(parameters or ["- none"]),
            "\nExamples:",
            *calls,
        ]
        return "\n".join(parts)

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """The function form of OpenAI's chat completions, which OpenRouter and litellm take too."""
        function = {"name": self.name, "description": self.purpose, "parameters": self.schema_to_send}
        return {"type": "function", "function": function}


@cache
def _schema_of(arguments: type[BaseModel]) -> Mapping[str, Any]:
    """It is asked for many times, and takes a while to make."""
    return arguments.model_json_schema()


def _simple(field: Mapping[str, Any]) -> dict[str, Any]:
    """A field without what a model can do without: titles, what stands for "left out", and limits, which a call that
    passes them is told."""
    kinds = [kind for kind in field.get("anyOf", ()) if kind.get("type") != "null"]
    merged = {**field, **(kinds[0] if kinds else {})}
    unsaid = {"title", "anyOf", "minimum", "maximum", "minItems", "pattern"}
    unsaid |= set() if merged.get("default") else {"default"}
    return {key: value for key, value in merged.items() if key not in unsaid}


def _type(field: Mapping[str, Any]) -> str:
    kind = str(field.get("type", "any"))
    return f"list of {field['items'].get('type', 'any')}s" if kind == "array" else kind


def _problem(detail: Any) -> str:
    name = ".".join(map(str, detail["loc"])) or "it"
    match detail["type"]:
        case "missing":
            return f"`{name}` is missing"
        case "extra_forbidden":
            return f"there is no parameter `{name}`"
        case "tuple_type":
            return f"`{name}` is a list"
        case "string_pattern_mismatch":
            return f"`{name}` is empty"
        case _:
            return f"`{name}`: {str(detail['msg'])[:1].lower()}{str(detail['msg'])[1:]}"
