"""Widgets that survive errors of the program: each error is a line for the user and a
traceback in a file, and the session continues. Textual ends the program at an uncaught
exception, after the widget whose handler raised it. Here, a handler that fails stops,
and its widget continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Hashable

    from textual.geometry import Region
    from textual.message import Message
    from textual.message_pump import MessagePump
    from textual.widget import Widget
else:
    # they are mixed in before Textual's own class; a second widget class would hide
    # that one's styles
    MessagePump = Widget = object


class Guarded(MessagePump):
    """Outlives its own handlers."""

    async def _dispatch_message(self, message: Message) -> None:
        try:
            await super()._dispatch_message(message)
        # at any, Textual would end the widget
        except Exception as error:  # noqa: BLE001
            self.app._handle_exception(error)


class GuardedWidget(Guarded, Widget):
    """Outlives its own handlers, and is left blank where it cannot be drawn."""

    def render_lines(self, crop: Region) -> list[Strip]:
        try:
            return super().render_lines(crop)
        # at any, Textual would draw nothing at all
        except Exception as error:  # noqa: BLE001
            self.app._handle_exception(error)
            return [Strip.blank(crop.width)] * crop.height

    def seen(self) -> Hashable:
        """Everything that a key can change. If it is the same everywhere after a key,
        the shell says that the key does nothing.
        """
        return None
