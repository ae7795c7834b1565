"""Calls of tools as models write them into their text, one writer a dialect."""

import json
from collections.abc import Callable, Mapping
from enum import Enum

from msgspec import Struct

Arguments = Mapping[str, str]


class Text(Enum):
    """How a dialect holds the text of an argument."""

    ESCAPED = "as JSON or as Python"
    RAW = "as it is, between marks"


class Dialect(Struct, frozen=True):
    write: Callable[[str, Arguments], str]
    text: Text = Text.ESCAPED


def as_json(name: str, arguments: Arguments, key: str = "arguments") -> str:
    return json.dumps({"name": name, key: arguments}, ensure_ascii=False)


def dumps(arguments: Arguments) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def parameters(arguments: Arguments, begin: str, end: str) -> str:
    return "".join(
        f"{begin.format(key)}{value}{end}\n" for key, value in arguments.items()
    )


def lines_of(arguments: Arguments, begin: str, end: str) -> str:
    """Each argument on lines of its own."""
    return "".join(
        f"{begin.format(key)}\n{value}\n{end.format(key)}\n"
        for key, value in arguments.items()
    )


def invoke(prefix: str, name: str, arguments: Arguments) -> str:
    begin = f'<{prefix}parameter name="{{}}">'
    inner = parameters(arguments, begin, f"</{prefix}parameter>")
    return f'<{prefix}invoke name="{name}">\n{inner}</{prefix}invoke>'


def claude(name: str, arguments: Arguments) -> str:
    call = invoke("antml:", name, arguments)
    return f"<function_calls>\n{call}\n</function_calls>"


def minimax(name: str, arguments: Arguments) -> str:
    return f"<minimax:tool_call>\n{invoke('', name, arguments)}\n</minimax:tool_call>"


def dsml(name: str, arguments: Arguments) -> str:
    begin = '<｜DSML｜parameter name="{}" string="true">'
    inner = parameters(arguments, begin, "</｜DSML｜parameter>")
    return (
        f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="{name}">\n{inner}'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    )


def step3(name: str, arguments: Arguments) -> str:
    return (
        "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"
        f"{invoke('steptml:', name, arguments)}<｜tool_call_end｜>\n"
        "<｜tool_calls_end｜>"
    )


def glm(name: str, arguments: Arguments) -> str:
    inner = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"
        for key, value in arguments.items()
    )
    return f"<tool_call>{name}\n{inner}</tool_call>"


def qwen_coder(name: str, arguments: Arguments) -> str:
    inner = lines_of(arguments, "<parameter={}>", "</parameter>")
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def cline(name: str, arguments: Arguments) -> str:
    inner = "".join(f"<{key}>{value}</{key}>\n" for key, value in arguments.items())
    return f"<{name}>\n{inner}</{name}>"


def cline_on_lines(name: str, arguments: Arguments) -> str:
    return f"<{name}>\n{lines_of(arguments, '<{}>', '</{}>')}</{name}>"


def kimi(name: str, arguments: Arguments) -> str:
    return (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0"
        f"<|tool_call_argument_begin|>{dumps(arguments)}<|tool_call_end|>"
        "<|tool_calls_section_end|>"
    )


def deepseek(name: str, arguments: Arguments) -> str:
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n"
        f"```json\n{dumps(arguments)}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        "<｜end▁of▁sentence｜>"
    )


def deepseek31(name: str, arguments: Arguments) -> str:
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>"
        f"{dumps(arguments)}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )


def cursor(name: str, arguments: Arguments) -> str:
    inner = "".join(
        f"<｜tool▁sep｜>{key}\n{value}\n" for key, value in arguments.items()
    )
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>\n{name}\n{inner}"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )


def harmony(name: str, arguments: Arguments) -> str:
    return (
        f"<|start|>assistant<|channel|>commentary to=functions.{name} "
        f"<|constrain|>json<|message|>{dumps(arguments)}<|call|>"
    )


def harmony_recipient_first(name: str, arguments: Arguments) -> str:
    return (
        f"<|start|>assistant to=functions.{name}<|channel|>commentary json"
        f"<|message|>{dumps(arguments)}<|call|>"
    )


def python(name: str, arguments: Arguments) -> str:
    inner = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({inner})"


def gemma(name: str, arguments: Arguments) -> str:
    inner = ",".join(f'{key}:<|"|>{value}<|"|>' for key, value in arguments.items())
    return f"<|tool_call>call:{name}{{{inner}}}<tool_call|>"


def around(begin: str, end: str = "", key: str = "arguments") -> Dialect:
    return Dialect(lambda name, given: f"{begin}{as_json(name, given, key)}{end}")


DIALECTS: dict[str, Dialect] = {
    "Hermes, Qwen": around("<tool_call>\n", "\n</tool_call>"),
    "Hermes in one line": around("<tool_call>", "</tool_call>"),
    "Granite": around("<|tool_call|>[", "]"),
    "Phi": around("functools[", "]"),
    "Phi 4": around("<|tool_call|>", "<|/tool_call|>"),
    "Jamba, Hunyuan": around("<tool_calls>[\n", "\n]</tool_calls>"),
    "function_call": around("<function_call>", "</function_call>"),
    "Longcat": around("<longcat_tool_call>", "</longcat_tool_call>"),
    "InternLM": around("<|action_start|><|plugin|>\n", "<|action_end|>", "parameters"),
    "Mistral": around("[TOOL_CALLS] [", "]"),
    "Mistral 11": Dialect(lambda name, given: f"[TOOL_CALLS]{name}{dumps(given)}"),
    "Mistral 13": Dialect(
        lambda name, given: f"[TOOL_CALLS]{name}[CALL_ID]aB3dE6gH9[ARGS]{dumps(given)}"
    ),
    "Llama": around("<|python_tag|>", key="parameters"),
    "Llama without its mark": around("", key="parameters"),
    "Llama in Python": Dialect(
        lambda name, given: f"<|python_tag|>{python(name, given)}<|eom_id|>"
    ),
    "Llama 4": Dialect(lambda name, given: f"[{python(name, given)}]"),
    "LFM 2": Dialect(
        lambda name, given: (
            f"<|tool_call_start|>[{python(name, given)}]<|tool_call_end|>"
        )
    ),
    "Llama's function tag": Dialect(
        lambda name, given: f"<function={name}>{dumps(given)}</function>"
    ),
    "Qwen coder": Dialect(qwen_coder, Text.RAW),
    "Qwen coder without tool_call": Dialect(
        lambda name, given: (
            f"<function={name}>\n"
            f"{lines_of(given, '<parameter={}>', '</parameter>')}</function>"
        ),
        Text.RAW,
    ),
    "Claude": Dialect(claude, Text.RAW),
    "invoke alone": Dialect(lambda name, given: invoke("", name, given), Text.RAW),
    "MiniMax": Dialect(minimax, Text.RAW),
    "DSML": Dialect(dsml, Text.RAW),
    "DSML with JSON": Dialect(
        lambda name, given: (
            f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="{name}">\n'
            f"{dumps(given)}\n"
            "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
        )
    ),
    "Step 3": Dialect(step3, Text.RAW),
    "GLM": Dialect(glm, Text.RAW),
    "Cline": Dialect(cline, Text.RAW),
    "Cline on lines": Dialect(cline_on_lines, Text.RAW),
    "JSON in Cline's tag": Dialect(
        lambda name, given: f"<{name}>{dumps(given)}</{name}>"
    ),
    "Kimi": Dialect(kimi),
    "DeepSeek": Dialect(deepseek),
    "DeepSeek 3.1": Dialect(deepseek31),
    "Cursor": Dialect(cursor, Text.RAW),
    "harmony": Dialect(harmony),
    "harmony, recipient first": Dialect(harmony_recipient_first),
    "harmony without its marks": Dialect(
        lambda name, given: (
            f"assistantcommentary to=functions.{name} json{dumps(given)}"
        )
    ),
    "Command R7B": Dialect(
        lambda name, given: (
            '<|START_ACTION|>[\n{"tool_call_id": "0", "tool_name": '
            f'"{name}", "parameters": {dumps(given)}}}\n]<|END_ACTION|>'
        )
    ),
    "Command R": Dialect(
        lambda name, given: (
            'Action: ```json\n[\n{"tool_name": '
            f'"{name}", "parameters": {dumps(given)}}}\n]\n```'
        )
    ),
    "ReAct": Dialect(
        lambda name, given: f"Action: {name}\nAction Input: {dumps(given)}"
    ),
    "Gemma 4": Dialect(gemma),
    "tool_code": Dialect(
        lambda name, given: (
            f"```tool_code\nprint(default_api.{python(name, given)})\n```"
        )
    ),
    "json fence": Dialect(lambda name, given: f"```json\n{as_json(name, given)}\n```"),
    "json fence of a tool": Dialect(
        lambda name, given: (
            f'```json\n{{"tool": "{name}", "arguments": {dumps(given)}}}\n```'
        )
    ),
    "tool fence": Dialect(
        lambda name, given: (
            f'```tool\n{{"tool": "{name}", "arguments": {dumps(given)}}}\n```'
        )
    ),
    "xml fence": Dialect(
        lambda name, given: f"```xml\n{cline(name, given)}\n```", Text.RAW
    ),
    "OpenAI": Dialect(
        lambda name, given: json.dumps(
            {
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": name, "arguments": dumps(given)},
                    }
                ]
            }
        )
    ),
}
