"""The message with which the terminal's driver reports the background colour."""

from textual.message import Message


class BackgroundTold(Message):
    """The terminal's background, as it names it: `rgb:1e1e/1e1e/1e1e`."""

    def __init__(self, colour: str) -> None:
        super().__init__()
        self.colour = colour
