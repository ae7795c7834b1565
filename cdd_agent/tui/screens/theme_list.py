"""The list of themes. The shell behind it shows the highlighted theme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdd_agent.tui.screens.setting_values import ChoiceList
from cdd_agent.tui.themes import AUTOMATIC, THEMES, describe_theme, use_theme

if TYPE_CHECKING:
    from textual.widgets import OptionList


class ThemeList(ChoiceList):
    """The result is a theme's name. If the user cancels, the caller restores the
    theme.
    """

    KEYS = "Enter: next · Esc: cancel"

    def __init__(self, current: str, fitting: str) -> None:
        """`fitting` is the theme that `auto` means now."""
        names = {AUTOMATIC: "by the background"}
        names |= {name: describe_theme(name) for name in THEMES}
        super().__init__("Theme", names, current)
        self._fitting = fitting

    def on_option_list_option_highlighted(
        self, event: OptionList.OptionHighlighted
    ) -> None:
        event.stop()
        row = self.highlighted
        if row is not None:
            use_theme(self.app, self._fitting if row.key == AUTOMATIC else row.key)
