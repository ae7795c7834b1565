"""Small pictures for tests, in their file formats."""

import struct
import zlib


def png(width: int = 6, height: int = 4) -> bytes:
    """Return a red picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\xff\0\0" * width) * height
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def gif(width: int = 6, height: int = 4) -> bytes:
    """Return two colours, an extension, one image."""
    size = struct.pack("<HH", width, height)
    extension = b"\x21\xf9\x04\0\0\0\0\0"
    image = b"\x2c\0\0\0\0" + size + b"\0" + b"\x02\x03\x84\x8f\x59\0"
    return b"GIF89a" + size + b"\x80\0\0" + b"\xff\0\0\0\0\0" + extension + image + b";"


def jpeg(width: int = 6, height: int = 4) -> bytes:
    """Return a picture with a preview inside, which has its own end mark."""
    preview = b"\xff\xd8\xff\xd9"
    exif = b"\xff\xe1" + struct.pack(">H", 2 + len(preview)) + preview
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    scan = (
        b"\xff\xff\xda"
        + struct.pack(">H", 8)
        + b"\x01\x01\0\0\x3f\0"
        + b"\x12\x34\xff\0\x56"
    )
    return b"\xff\xd8" + exif + frame + scan + b"\xff\xd9"


def webp(kind: bytes, width: int = 6, height: int = 4) -> bytes:
    """Return a picture of one of the three kinds."""
    match kind:
        case b"VP8X":
            head = (
                b"\0\0\0\0"
                + (width - 1).to_bytes(3, "little")
                + (height - 1).to_bytes(3, "little")
            )
        case b"VP8L":
            head = b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14)
        case _:
            head = b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    content = b"WEBP" + kind + struct.pack("<I", len(head)) + head
    return b"RIFF" + struct.pack("<I", len(content)) + content


ALL = {
    "image/png": png(),
    "image/gif": gif(),
    "image/jpeg": jpeg(),
    "image/webp": webp(b"VP8 "),
}
