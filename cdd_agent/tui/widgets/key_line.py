from textual.content import Content
from textual.widgets import Static

from cdd_agent.tui.faults import GuardedWidget
from cdd_agent.tui.hints import fit_hint


class KeyLine(GuardedWidget, Static):
    """Shows the parts that fit."""

    def render(self) -> Content:
        text = self.content
        plain = text.plain if isinstance(text, Content) else str(text)
        return Content(fit_hint(plain, self.size.width))
