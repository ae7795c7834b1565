"""The bytes of an answer, as they arrive: decompressed, and never more than a limit."""

import zlib

_PIECE = 16 * 1024
"""Compressed bytes that are looked at together."""


class Body:
    """As much as has arrived. Memory stays within the limit, whatever a server sends or
    a bomb unfolds to.
    """

    def __init__(self, limit: int, *, gzipped: bool) -> None:
        self._limit = limit
        self._gzip = zlib.decompressobj(zlib.MAX_WBITS | 16) if gzipped else None
        self._arrived = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Take the next bytes. Raises `zlib.error` when they are not what they say."""
        self._arrived += len(data)
        if self._gzip is None:
            self._kept += data[: self._room]
            return
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            while piece and self._room:
                if self._gzip.eof:  # a body may be several compressed ones in a row
                    self._gzip = zlib.decompressobj(zlib.MAX_WBITS | 16)
                self._kept += self._gzip.decompress(piece, self._room)
                piece = self._gzip.unconsumed_tail or self._gzip.unused_data

    @property
    def _room(self) -> int:
        return self._limit + 1 - len(self._kept)

    @property
    def cut(self) -> bool:
        """There is more than the limit: nothing further needs to be read."""
        return self._arrived > self._limit or len(self._kept) > self._limit

    def content(self) -> bytes:
        """All of it, or what the limit allows. Raises `zlib.error` when a compressed
        body has no end.
        """
        if self._gzip and self._arrived and not self._gzip.eof and not self.cut:
            raise zlib.error("the compressed data ends too early")
        return bytes(self._kept[: self._limit])
