"""Words of the events of changes outside of tickets."""

from cdd_agent.engine.named_files import named
from cdd_agent.events.notices import Tone
from cdd_agent.events.outside_events import (
    OutsideDiff,
    OutsideListed,
    OutsideRedone,
    OutsideUndone,
    OutsideView,
)
from cdd_agent.wording.registry import Lines, words_of
from cdd_agent.wording.step_words import describe_restored


@words_of.register
def describe_outside_undone(event: OutsideUndone) -> Lines:
    text = f"Undone: `{event.what}` ({event.at}). Type `/redo` to restore it."
    tone = Tone.WARNING if event.kept else Tone.GOOD
    files = describe_restored("Reverted:", event.restored, event.kept, event.merged)
    lines = [(text, tone), *files]
    if event.others:
        names = named(event.others)
        lines.append((f"changed by commands, left unchanged: {names}", Tone.WARNING))
    return lines


@words_of.register
def describe_outside_redone(event: OutsideRedone) -> Lines:
    how = "Restored:"
    return [
        (f"Redone: `{event.what}` ({event.at}).", Tone.GOOD),
        *describe_restored(how, event.restored, event.kept, event.merged),
    ]


@words_of.register
def describe_outside_diff(event: OutsideDiff) -> Lines:
    if not event.diff:
        return [(f"`{event.what}` changed no files itself.", Tone.PLAIN)]
    return [(event.diff.rstrip("\n"), Tone.PLAIN)]


@words_of.register
def describe_outside_listed(event: OutsideListed) -> Lines:
    if not event.changes:
        return [("No changes that can be undone.", Tone.PLAIN)]
    return [_describe_view(view) for view in event.changes]


def _describe_view(view: OutsideView) -> tuple[str, Tone]:
    state = ""
    if view.is_under_way:
        state = " (under way)"
    elif view.is_undone:
        state = " (undone)"
    files = ", ".join(view.files) or "no files itself"
    others = f"; by commands: {', '.join(view.others)}" if view.others else ""
    tone = Tone.QUIET if view.is_undone else Tone.PLAIN
    return f"{view.at}  {view.name}  {view.what}{state}: {files}{others}", tone
