"""The line of keys at the bottom of a screen."""

from textual.content import Content
from textual.widgets import Static

from cdd_agent.tui.hints import fit_hint


class KeyLine(Static):
    """Shows as many of its parts as the row has room for."""

    def render(self) -> Content:
        text = self.content
        plain = text.plain if isinstance(text, Content) else str(text)
        return Content(fit_hint(plain, self.size.width))
