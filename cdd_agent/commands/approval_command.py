"""`/approval`: show or change the approval mode."""

from cdd_agent.commands.setting_changes import save_setting
from cdd_agent.engine.approval_mode import MEANINGS, MODES, describe_limits
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.session.session import Session


async def choose_approval(
    session: Session, typed: str = "", *, save: bool = False
) -> None:
    """Show the approval mode, or change it for this session; `save` also changes the
    project's settings. Raises `BadInput`.
    """
    limits = describe_limits(session.project.config.commands)
    if not typed and not save:
        current = session.approval.value
        session.emit(Notice(f"The approval mode is `{current}`: {MEANINGS[current]}"))
        session.emit(Notice(limits))
        return
    value = next((mode for mode in MODES if mode == typed.lower()), None)
    if value is None:
        raise BadInput(
            f"There is no approval mode {typed!r}" if typed else "Which approval mode?",
            hint=f"Type one of: {', '.join(MODES)}.",
        )
    remark = ""
    if save:
        # This changes the session's mode, too.
        remark = await save_setting(session, "approval", value)
    else:
        session.change_approval(value)
    session.emit(Notice(limits))
    if remark:
        session.emit(Notice(remark, Tone.WARNING))
