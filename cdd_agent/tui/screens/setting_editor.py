"""Changes a setting: asks for the value, then where to save it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdd_agent.commands.completing import find_models
from cdd_agent.commands.settings import Setting, SettingOrigin
from cdd_agent.tui.screens.setting_places import ResetDialog, SaveDialog
from cdd_agent.tui.screens.setting_values import OTHER, ChoiceList, ValueField
from cdd_agent.tui.screens.theme_list import ThemeList

if TYPE_CHECKING:
    from cdd_agent.session.session import Session
    from cdd_agent.tui.app import Shell

_TEMPORARY = (
    SettingOrigin.SESSION,
    SettingOrigin.COMMAND_LINE,
    SettingOrigin.ENVIRONMENT,
)
"""Origins of values that the user may want to save unchanged."""


async def edit_setting(app: Shell, session: Session, setting: Setting) -> str:
    """Ask for a value and where to save it. Return the outcome as text; empty if the
    user cancels.
    """
    value = await _ask_for_value(app, session, setting)
    is_new = value != setting.value or setting.origin in _TEMPORARY
    outcome = ""
    if value and is_new:
        outcome = await app.push_screen_wait(SaveDialog(session, setting, value))
    app.apply_settings()
    return outcome


async def confirm_reset(
    app: Shell, session: Session, setting: Setting, inherited: str
) -> str:
    """Reset a setting if the user agrees. Return the outcome as text; empty if the user
    cancels.
    """
    outcome = await app.push_screen_wait(ResetDialog(session, setting, inherited))
    app.apply_settings()
    return outcome


async def _ask_for_value(app: Shell, session: Session, setting: Setting) -> str:
    title, choices = setting.description.title, setting.choices
    if setting.name == "theme":
        return await app.push_screen_wait(ThemeList(setting.value, app.fitting_theme))
    if setting.name == "model":
        # Models of local servers also need the address: `/model` sets both.
        local = {offer.name for offer in session.offers}
        models = {
            name: words
            for name, words in find_models(session).items()
            if name not in local
        }
        if models:
            screen = ChoiceList(title, models, setting.value, has_other=True)
            chosen = await app.push_screen_wait(screen)
            if chosen != OTHER:
                return chosen
    elif choices:
        return await app.push_screen_wait(ChoiceList(title, choices, setting.value))
    return await app.push_screen_wait(ValueField(setting))
