from textual.message import Message


class BackgroundReported(Message):
    """The terminal reported its background colour, such as `rgb:1e1e/1e1e/1e1e`."""

    def __init__(self, colour: str) -> None:
        super().__init__()
        self.colour = colour


class InputEnded(Message):
    def __init__(self, *, is_gone: bool) -> None:
        """`is_gone`: the terminal is closed and cannot be written to."""
        super().__init__()
        self.is_gone = is_gone


class PageAttached(Message):
    """A browser page shows the shell, and is still empty."""
