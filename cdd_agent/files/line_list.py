from msgspec import Struct


class LineList(Struct, frozen=True):
    lines: tuple[str, ...]
    cut: bool = False
    note: str = ""
    """A clause about what is missing."""

    def as_text(self) -> str:
        lines = list(self.lines) or ["Nothing found."]
        notes = []
        if self.cut:
            notes.append(f"only the first {len(self.lines):,}")
        if self.note:
            notes.append(self.note)
        if notes:
            lines.append(f"… ({'; '.join(notes)})")
        return "\n".join(lines) + "\n"
