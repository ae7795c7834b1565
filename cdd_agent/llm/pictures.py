"""Pictures that go with a message: known by their content, and no larger than providers
take them.

Anthropic takes 5 MiB of base64 and 8,000 pixels a side, and as many tokens as there are
pixels divided by 750 after it has scaled a picture down
(platform.claude.com/docs/en/build-with-claude/vision); the others that are known take
as much or more. Five pictures at once are what Groq takes, the fewest
(console.groq.com/docs/vision).
"""

import struct
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.read import read_bytes
from cdd_agent.llm.port import Model, Picture, Request

LARGEST = 5 * 2**20 * 3 // 4
"""Bytes of a file, of which base64 makes a third more."""
MOST = 5
"""Pictures in one message."""
_WIDEST = 8_000
_PIXELS_OF_A_TOKEN = 750
_MOST_TOKENS = 4_800
"""Of a picture that was scaled down."""
_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})
_HEAD = 16
"""Bytes by which a picture is known."""


class PictureUnusable(BadInput):
    """A file that is meant as a picture, or is one, and cannot be sent to any model."""


def media_type(data: bytes) -> str | None:
    """The kind of a picture whose file begins so; None: none that models take."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def is_meant_as_picture(name: str) -> bool:
    """By its name alone."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower() in _SUFFIXES


def is_picture(root: Path, name: str) -> bool:
    """Whether a project's file is one, by its content."""
    try:
        head = read_bytes(root, name, _HEAD)
    except CddError:
        return False
    return head is not None and media_type(head) is not None


def picture_at(root: Path, name: str) -> Picture | None:
    """A project's file as a picture; None for what neither is one nor is called like
    one.

    Raises `PictureUnusable`, and for what is not shown at all what `read_source`
    raises.
    """
    head = read_bytes(root, name, _HEAD)
    if head is None or not (media_type(head) or is_meant_as_picture(name)):
        return None
    return picture_of(name, read_bytes(root, name, LARGEST + 1) or b"")


def picture_of(name: str, data: bytes) -> Picture:
    """A file's content as a picture. Raises `PictureUnusable`."""
    kind = media_type(data)
    if not data:
        raise PictureUnusable(f"{name} is empty: there is no picture in it")
    if kind is None:
        raise PictureUnusable(
            f"{name} is no picture: its content is not that of a png, jpeg, gif or webp"
            " file"
        )
    if len(data) > LARGEST:
        hint = "Make it smaller, or cut out what matters."
        raise PictureUnusable(
            f"{name} is too large: models take pictures of at most {LARGEST:,} bytes",
            hint=hint,
        )
    try:
        size = _SIZES[kind](data)
    except (struct.error, IndexError):
        size = None
    if size is None or not all(size):
        raise PictureUnusable(
            f"{name} is cut or damaged: it does not hold the whole picture"
        )
    if max(size) > _WIDEST:
        raise PictureUnusable(
            f"{name} is too large: {size[0]:,} × {size[1]:,} pixels, and models take"
            f" {_WIDEST:,} a side at most",
            hint="Make it smaller, or cut out what matters.",
        )
    return Picture(name, kind, *size, data)


def picture_tokens(picture: Picture) -> int:
    """How many tokens a picture has at most, as a rule."""
    return min(-(-picture.width * picture.height // _PIXELS_OF_A_TOKEN), _MOST_TOKENS)


def in_base64(picture: Picture) -> str:
    return b64encode(picture.data).decode("ascii")


def data_url(picture: Picture) -> str:
    return f"data:{picture.media_type};base64,{in_base64(picture)}"


def names_of(pictures: tuple[Picture, ...]) -> str:
    return ", ".join(picture.name for picture in pictures)


def has_pictures(request: Request) -> bool:
    return any(message.pictures for message in request.messages)


def as_seen_by(model: Model, request: Request) -> Request:
    """The request with its pictures; for a model that is known to see none, with a word
    in their place.
    """
    if not has_pictures(request) or model.sees is not False:
        return request
    messages = []
    for message in request.messages:
        words = (
            "(You cannot see pictures, so these were not sent to you:"
            f" {names_of(message.pictures)}.)"
        )
        in_words = replace(
            message, content=f"{message.content}\n\n{words}", pictures=()
        )
        messages.append(in_words if message.pictures else message)
    return replace(request, messages=tuple(messages))


Size = tuple[int, int]
"""Width and height in pixels."""


def _png(data: bytes) -> Size | None:
    width, height = struct.unpack_from(">II", data, 16)
    return (
        (width, height)
        if data[12:16] == b"IHDR" and b"IEND\xaeB`\x82" in data
        else None
    )


def _gif(data: bytes) -> Size | None:
    """By its blocks, up to the mark of the end, which some leave out."""
    at, has_image = 13 + _palette(data[10]), False
    while at < len(data) and data[at] != 0x3B:
        if data[at] == 0x21:  # an extension
            at += 2
        elif data[at] == 0x2C:  # an image
            at += 11 + _palette(data[at + 9])
            has_image = True
        else:
            return None
        while length := data[at]:
            at += 1 + length
        at += 1
    width, height = struct.unpack_from("<HH", data, 6)
    return (width, height) if has_image else None


def _palette(flags: int) -> int:
    """Bytes of a GIF's table of colours."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _jpeg(data: bytes) -> Size | None:
    """By its segments: one of them has the size, and after the last one come the pixels
    up to the mark of the end.
    """
    at, size = 2, None
    while data[at] == 0xFF:
        kind, length = struct.unpack_from(">BH", data, at + 1)
        if kind == 0xFF:  # a filling byte
            at += 1
            continue
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            size = width, height
        at += 2 + length
        if kind == 0xDA:
            return size if data.find(b"\xff\xd9", at) >= 0 else None
    return None


def _webp(data: bytes) -> Size | None:
    if len(data) < 8 + struct.unpack_from("<I", data, 4)[0]:
        return None
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(
                data[27:30], "little"
            )
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
    return None


_SIZES: dict[str, Callable[[bytes], Size | None]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
"""Readers of a picture's size; they return None where it is not whole."""
