"""OpenAI's Responses, Anthropic's Messages and Ollama's chat as the loopback server
speaks them: requests read, replies written.
"""

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from cdd_agent.llm.pictures import media_type
from cdd_agent.llm.port import Message, Picture, Request, ToolCall, ToolDefinition

Json = dict[str, Any]


def request_of(path: str, body: Json) -> Request:
    """A request, whichever protocol it was made in."""
    if path.endswith("/responses"):
        system = (
            [Message("system", body["instructions"])] if "instructions" in body else []
        )
        tools = [
            (tool["name"], tool["description"], tool["parameters"])
            for tool in body.get("tools", [])
        ]
        messages = [*system, *_messages_of_items(body["input"])]
    elif path.endswith("/messages"):
        system = [Message("system", block["text"]) for block in body.get("system", [])]
        tools = [
            (tool["name"], tool["description"], tool["input_schema"])
            for tool in body.get("tools", [])
        ]
        messages = [
            *system,
            *(one for said in body["messages"] for one in _messages_of_blocks(said)),
        ]
    elif path.endswith("/api/chat"):
        functions = [tool["function"] for tool in body.get("tools", [])]
        tools = [
            (one["name"], one["description"], one["parameters"]) for one in functions
        ]
        messages = [_message_of_ollama(said) for said in body["messages"]]
    else:
        functions = [tool["function"] for tool in body.get("tools", [])]
        tools = [
            (one["name"], one["description"], one["parameters"]) for one in functions
        ]
        messages = [_message(said) for said in body.get("messages", [])]
    return Request(tuple(messages), tuple(ToolDefinition(*tool) for tool in tools))


def _message(sent: Json) -> Message:
    calls = (
        ToolCall(call["id"], **call["function"]) for call in sent.get("tool_calls", [])
    )
    text, pictures = _content(sent["content"])
    return Message(
        sent["role"], text, tuple(calls), sent.get("tool_call_id"), pictures=pictures
    )


def _content(content: str | list[Json]) -> tuple[str, tuple[Picture, ...]]:
    """The words and the pictures of a message, whichever protocol it is in; a picture
    has no name and no size there.
    """
    if isinstance(content, str):
        return content, ()
    text = "".join(
        part["text"] for part in content if part["type"] in ("text", "input_text")
    )
    sent = [
        _picture(part)
        for part in content
        if part["type"] in ("image_url", "input_image", "image")
    ]
    return text, tuple(
        Picture("", kind, 0, 0, b64decode(data, validate=True)) for kind, data in sent
    )


def _picture(part: Json) -> tuple[str, str]:
    if part["type"] == "image":
        return part["source"]["media_type"], part["source"]["data"]
    url = (
        part["image_url"] if part["type"] == "input_image" else part["image_url"]["url"]
    )
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return kind, data


def _message_of_ollama(sent: Json) -> Message:
    functions = [(call["id"], call["function"]) for call in sent.get("tool_calls", [])]
    calls = (
        ToolCall(id_, one["name"], json.dumps(one["arguments"]))
        for id_, one in functions
    )
    sent_pictures = (b64decode(data, validate=True) for data in sent.get("images", []))
    pictures = tuple(
        Picture("", media_type(data) or "", 0, 0, data) for data in sent_pictures
    )
    return Message(
        sent["role"],
        sent["content"],
        tuple(calls),
        sent.get("tool_call_id"),
        pictures=pictures,
    )


def _messages_of_items(items: list[Json]) -> list[Message]:
    messages: list[Message] = []
    for item in items:
        match item.get("type", "message"):
            case "function_call":
                call = ToolCall(item["call_id"], item["name"], item["arguments"])
                last = (
                    messages.pop()
                    if messages and messages[-1].role == "assistant"
                    else Message("assistant", "")
                )
                messages.append(
                    Message("assistant", last.content, (*last.tool_calls, call))
                )
            case "function_call_output":
                messages.append(
                    Message("tool", item["output"], tool_call_id=item["call_id"])
                )
            case _:
                text, pictures = _content(item["content"])
                messages.append(Message(item["role"], text, pictures=pictures))
    return messages


def _messages_of_blocks(said: Json) -> Iterator[Message]:
    blocks = said["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    if said["role"] == "assistant":
        calls = [block for block in blocks if block["type"] == "tool_use"]
        yield Message(
            "assistant",
            text,
            tuple(
                ToolCall(one["id"], one["name"], json.dumps(one["input"]))
                for one in calls
            ),
        )
        return
    results = (block for block in blocks if block["type"] == "tool_result")
    yield from (
        Message("tool", block["content"], tool_call_id=block["tool_use_id"])
        for block in results
    )
    if text:
        yield Message("user", text, pictures=_content(blocks)[1])


def response_piece(piece: str) -> Json:
    return {"type": "response.output_text.delta", "output_index": 0, "delta": piece}


def response_end(
    calls: tuple[ToolCall, ...], reason: str | None, prompt: Any, completion: Any
) -> Iterator[Json]:
    """`reason`: a word of chat completions; what means no whole reply there makes an
    incomplete response here.
    """
    for place, call in enumerate(calls, start=1):
        item = {
            "type": "function_call",
            "id": f"fc_{place}",
            "call_id": call.id,
            "name": call.name,
        }
        for half in _halves(call.arguments):
            yield {
                "type": "response.function_call_arguments.delta",
                "output_index": place,
                "delta": half,
            }
        whole = {**item, "arguments": call.arguments}
        yield {
            "type": "response.output_item.done",
            "output_index": place,
            "item": whole,
        }
    if reason is None:
        return
    usage = {"input_tokens": prompt, "output_tokens": completion}
    state = "completed" if reason in ("stop", "tool_calls") else "incomplete"
    details = (
        {"reason": {"length": "max_output_tokens"}.get(reason, reason)}
        if state == "incomplete"
        else None
    )
    response = {
        "object": "response",
        "status": state,
        "output": [],
        "incomplete_details": details,
        "usage": usage,
    }
    yield {"type": f"response.{state}", "response": response}


def message_piece(piece: str) -> Json:
    return {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": piece},
    }


def message_end(
    calls: tuple[ToolCall, ...], reason: str | None, prompt: Any, completion: Any
) -> Iterator[Json]:
    for index, call in enumerate(calls, start=1):
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": block}
    for part in range(2):
        for index, call in enumerate(calls, start=1):
            delta = {
                "type": "input_json_delta",
                "partial_json": _halves(call.arguments)[part],
            }
            yield {"type": "content_block_delta", "index": index, "delta": delta}
    if reason is None:
        return
    words = {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "content_filter": "refusal",
    }
    usage = {"input_tokens": prompt, "output_tokens": completion}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": words.get(reason, reason)},
        "usage": usage,
    }
    yield {"type": "message_stop"}


def chat_piece(piece: str) -> Json:
    return {
        "model": "m",
        "message": {"role": "assistant", "content": piece},
        "done": False,
    }


def chat_end(
    calls: tuple[ToolCall, ...], reason: str | None, prompt: Any, completion: Any
) -> Iterator[Json]:
    """Calls come whole, their arguments as objects. After them, too, the reason is
    `stop`.
    """
    for index, call in enumerate(calls):
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            arguments = call.arguments  # as no Ollama sends it
        function = {"index": index, "name": call.name, "arguments": arguments}
        made = [{"id": call.id, "function": function}]
        yield {
            "message": {"role": "assistant", "content": "", "tool_calls": made},
            "done": False,
        }
    if reason is None:
        return
    counted = {"prompt_eval_count": prompt, "eval_count": completion}
    word = "stop" if reason == "tool_calls" else reason
    yield {
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": word,
        **counted,
    }


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]
