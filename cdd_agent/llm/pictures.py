"""Pictures of messages, within the limits of all known providers.

Anthropic limits the size: 5 MiB of base64, 8,000 pixels a side, and about a token per
750 pixels after it has scaled down a large picture
(platform.claude.com/docs/en/build-with-claude/vision). Groq limits the number to five
(console.groq.com/docs/vision).
"""

import math
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec.structs import replace

from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.read import read_bytes
from cdd_agent.llm.picture_size import read_size
from cdd_agent.llm.port import Message, Model, Picture, Request
from cdd_agent.refusals.kinds import Refusal

LARGEST = 5 * 2**20 * 3 // 4
"""Bytes of a file. Base64 adds a third."""
MOST = 5
"""Pictures in one message."""
_WIDEST = 8_000
_PIXELS_OF_A_TOKEN = 750
_MOST_TOKENS = 4_800
"""Tokens of a scaled-down picture."""
_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_HEAD = 16
"""Bytes that show the kind of a picture."""


class PictureUnusable(BadInput):
    """No model accepts a picture, or a file named like one."""

    refusal = Refusal.PICTURE_UNUSABLE


def media_type(data: bytes) -> str | None:
    """Return the media type from the beginning of a file. None: models do not accept
    it.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def is_meant_as_picture(name: str) -> bool:
    return PurePosixPath(name.replace("\\", "/")).suffix.lower() in _SUFFIXES


def is_picture(root: Path, name: str) -> bool:
    """True if the content of a project's file is a picture."""
    try:
        head = read_bytes(root, name, _HEAD)
    except CddError:
        return False
    return head is not None and media_type(head) is not None


def picture_at(root: Path, name: str) -> Picture | None:
    """Return a project's file as a picture, or None if neither content nor name
    suggests one.

    Raises `PictureUnusable`, and the errors of `read_source` for a file that is never
    shown.
    """
    head = read_bytes(root, name, _HEAD)
    if head is None or not (media_type(head) or is_meant_as_picture(name)):
        return None
    return picture_of(name, read_bytes(root, name, LARGEST + 1) or b"")


def picture_of(name: str, data: bytes) -> Picture:
    """Return the content of a file as a picture. Raises `PictureUnusable`."""
    kind = media_type(data)
    if not data:
        raise PictureUnusable(f"{name} is empty")
    if kind is None:
        raise PictureUnusable(f"{name} is not a png, jpeg, gif or webp picture")
    if len(data) > LARGEST:
        hint = "Make it smaller, or crop it."
        raise PictureUnusable(
            f"{name} is too large: models accept pictures of at most {LARGEST:,} bytes",
            hint=hint,
        )
    size = read_size(kind, data)
    if size is None:
        raise PictureUnusable(f"{name} is incomplete or damaged")
    if max(size) > _WIDEST:
        raise PictureUnusable(
            f"{name} is too large: {size[0]:,} × {size[1]:,} pixels, and models"
            f" accept at most {_WIDEST:,} on each side",
            hint="Make it smaller, or crop it.",
        )
    return Picture(name, kind, *size, data)


def picture_tokens(picture: Picture) -> int:
    """Return a high estimate of a picture's tokens."""
    tokens = math.ceil(picture.width * picture.height / _PIXELS_OF_A_TOKEN)
    return min(tokens, _MOST_TOKENS)


def in_base64(picture: Picture) -> str:
    return b64encode(picture.data).decode("ascii")


def data_url(picture: Picture) -> str:
    return f"data:{picture.media_type};base64,{in_base64(picture)}"


def parts_with_pictures(
    message: Message, text_type: str, image_part: Callable[[Picture], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a message as JSON. Models work best with pictures before the text, each
    after its name.
    """
    parts: list[dict[str, Any]] = []
    for picture in message.pictures:
        parts.append({"type": text_type, "text": f"{picture.name}:"})
        parts.append(image_part(picture))
    return [*parts, {"type": text_type, "text": message.content}]


def names_of(pictures: tuple[Picture, ...]) -> str:
    return ", ".join(picture.name for picture in pictures)


def has_pictures(request: Request) -> bool:
    return any(message.pictures for message in request.messages)


def as_seen_by(model: Model, request: Request) -> Request:
    """Replace pictures by a sentence if the model sees none."""
    if not has_pictures(request) or model.sees is not False:
        return request
    messages = []
    for message in request.messages:
        if message.pictures:
            note = (
                "(You cannot see pictures, so these were not sent to you:"
                f" {names_of(message.pictures)}.)"
            )
            content = f"{message.content}\n\n{note}"
            message = replace(message, content=content, pictures=())  # noqa: PLW2901
        messages.append(message)
    return replace(request, messages=tuple(messages))
