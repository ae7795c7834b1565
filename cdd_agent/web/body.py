"""The body of a response, unpacked while it arrives."""

import zlib

_PIECE = 16 * 1024
"""Compressed bytes to unpack at once."""


class Body:
    """Memory stays within the limit, even for a zip bomb."""

    def __init__(self, limit: int, *, gzipped: bool) -> None:
        self._limit = limit
        self._gzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if gzipped else None
        self._arrived = 0
        self._content = bytearray()

    def add(self, data: bytes) -> None:
        """Raises `zlib.error` for wrong compression."""
        self._arrived += len(data)
        if self._gzip is None:
            self._content += data[: self._room]
            return
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            while piece and self._room:
                # consecutive compressed bodies are one
                if self._gzip.eof:
                    self._gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
                self._content += self._gzip.decompress(piece, self._room)
                piece = self._gzip.unconsumed_tail or self._gzip.unused_data

    @property
    def _room(self) -> int:
        return self._limit + 1 - len(self._content)

    @property
    def cut(self) -> bool:
        """True if the body exceeds the limit."""
        return self._arrived > self._limit or len(self._content) > self._limit

    def content(self) -> bytes:
        """Return the body up to the limit. Raises `zlib.error` if a compressed body is
        incomplete.
        """
        if self._gzip and self._arrived and not self._gzip.eof and not self.cut:
            raise zlib.error("the compressed data ends too early")
        return bytes(self._content[: self._limit])
