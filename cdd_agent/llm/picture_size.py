"""Read the size of a picture from its complete file."""

import struct
from collections.abc import Callable

Size = tuple[int, int]
"""Width and height in pixels."""
_GIF_EXTENSION, _GIF_IMAGE, _GIF_END = 0x21, 0x2C, 0x3B
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The segments that have the size."""
_JPEG_SCAN = 0xDA
"""The last segment."""


def read_size(media_type: str, data: bytes) -> Size | None:
    """Return the size of a picture; None if the file is cut or damaged."""
    try:
        size = _READERS[media_type](data)
    except (struct.error, IndexError):
        return None
    return size if size is not None and all(size) else None


def _read_png(data: bytes) -> Size | None:
    is_whole = data[12:16] == b"IHDR" and b"IEND\xaeB`\x82" in data
    width, height = struct.unpack_from(">II", data, 16)
    return (width, height) if is_whole else None


def _read_gif(data: bytes) -> Size | None:
    position = 13 + _palette_bytes(data[10])
    has_image = False
    while position < len(data) and data[position] != _GIF_END:
        if data[position] == _GIF_EXTENSION:
            position += 2
        elif data[position] == _GIF_IMAGE:
            position += 11 + _palette_bytes(data[position + 9])
            has_image = True
        else:
            return None
        while data[position] != 0:
            position += 1 + data[position]
        position += 1
    width, height = struct.unpack_from("<HH", data, 6)
    return (width, height) if has_image else None


def _palette_bytes(flags: int) -> int:
    if not flags & 0x80:
        return 0
    return 3 << (flags & 7) + 1


def _read_jpeg(data: bytes) -> Size | None:
    """One segment has the size. The pixels are between the last segment and the end
    mark.
    """
    position, size = 2, None
    while data[position] == 0xFF:
        kind, length = struct.unpack_from(">BH", data, position + 1)
        if kind == 0xFF:  # a filling byte
            position += 1
            continue
        if kind in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, position + 5)
            size = width, height
        position += 2 + length
        if kind == _JPEG_SCAN:
            is_whole = data.find(b"\xff\xd9", position) >= 0
            return size if is_whole else None
    return None


def _read_webp(data: bytes) -> Size | None:
    if len(data) < 8 + struct.unpack_from("<I", data, 4)[0]:
        return None
    match data[12:16]:
        case b"VP8X":
            width = 1 + int.from_bytes(data[24:27], "little")
            height = 1 + int.from_bytes(data[27:30], "little")
            return width, height
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
    return None


_READERS: dict[str, Callable[[bytes], Size | None]] = {
    "image/png": _read_png,
    "image/jpeg": _read_jpeg,
    "image/gif": _read_gif,
    "image/webp": _read_webp,
}
