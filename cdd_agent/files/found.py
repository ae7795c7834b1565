"""An answer in lines: files that were found, lines of a search, what git says."""

from msgspec import Struct


class Found(Struct, frozen=True):
    """Lines that were found."""

    lines: tuple[str, ...]
    cut: bool = False
    """There is more, or there may be."""
    note: str = ""
    """Says what was not looked at, or is left out on purpose."""

    def as_text(self) -> str:
        notes = [f"only the first {len(self.lines):,}"] if self.cut else []
        notes += [self.note] if self.note else []
        lines = [
            *(self.lines or ["Nothing found."]),
            *([f"… ({'; '.join(notes)})"] if notes else []),
        ]
        return "\n".join(lines) + "\n"
