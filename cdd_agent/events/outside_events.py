"""Events of changes outside of tickets: undo, redo and diff."""

from msgspec import Struct

from cdd_agent.events.base_event import BaseEvent


class OutsideUndone(BaseEvent, frozen=True):
    """A change was undone."""

    what: str
    """The command that made the change, such as `cdd apply reply.md`."""
    at: str
    """The local date and time of the change."""
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were edited since, and are unchanged."""
    merged: tuple[str, ...] = ()
    """Files that were edited since. The change is removed, the edit is kept."""
    others: tuple[str, ...] = ()
    """Files that the change's commands changed. They are not restored."""


class OutsideRedone(BaseEvent, frozen=True):
    """The undo was reversed. The fields have the same meaning as in `OutsideUndone`."""

    what: str
    at: str
    restored: tuple[str, ...]
    kept: tuple[str, ...]
    merged: tuple[str, ...] = ()


class OutsideDiff(BaseEvent, frozen=True):
    """A change as a unified diff."""

    what: str
    at: str
    diff: str


class OutsideView(Struct, frozen=True):
    """A change in a list: a step, or a change outside of tickets."""

    what: str
    """The step, or the command or chat turn that made the change."""
    at: str
    files: tuple[str, ...]
    others: tuple[str, ...] = ()
    is_undone: bool = False
    is_under_way: bool = False
    name: str = ""
    """The name after `undo`, such as `change-7` or `feature-a 2`."""


class OutsideListed(BaseEvent, frozen=True):
    """The last changes, with those of steps, the newest first."""

    changes: tuple[OutsideView, ...]


OutsideEvent = OutsideUndone | OutsideRedone | OutsideDiff | OutsideListed
