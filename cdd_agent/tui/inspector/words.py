from __future__ import annotations

from datetime import datetime

from cdd_agent.events.step_summary import StepSummary
from cdd_agent.wording.step_signs import step_glyph, step_remark


def count_of(number: int, noun: str) -> str:
    """Return `1 test` or `2,000 tests`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def span(seconds: float) -> str:
    """Return a duration, such as `2.3 s`, `45 s` or `4 min 12 s`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def moment(time: datetime) -> str:
    """Return a time of day, with the date if it is not today."""
    local = time.astimezone()
    if local.date() == datetime.now().astimezone().date():
        return f"{local:%H:%M}"
    return f"{local:%Y-%m-%d %H:%M}"


def step_name(step: StepSummary) -> str:
    """Return a step's sign, label, title, and remark."""
    remark = step_remark(step)
    ending = f" ({remark})" if remark else ""
    return f"{step_glyph(step)} {step.label}. {step.title}{ending}"


def step_look(step: StepSummary) -> str:
    if step_remark(step):
        return "warning"
    return {
        "completed": "good",
        "failed": "error",
        "skipped": "warning",
        "pending": "muted",
    }.get(step.status.value, "strong")
