"""Widgets that survive internal errors. The user sees a line, a file gets the
traceback, and the session continues.

Textual ends the program at an uncaught exception. So each method that Textual calls is
guarded: handlers, actions, watchers, drawing, composition, callbacks and workers.
"""

from __future__ import annotations

import inspect
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, runtime_checkable

from textual.actions import SkipAction
from textual.strip import Strip

from cdd_agent.pattern import Pattern

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator

    from textual.dom import DOMNode
    from textual.events import Event
    from textual.geometry import Region
    from textual.timer import Timer
    from textual.widget import Widget
    from textual.worker import Worker, WorkType
else:
    # As mixins they precede Textual's classes. A second widget class in the hierarchy
    # would hide that class's styles.
    DOMNode = Widget = object

_CALLED_BY_TEXTUAL = Pattern(
    r"on_\w+|action_\w+|watch_\w+|check_action|compose|render|get_content_\w+"
)
_RESULTS: dict[str, object] = {
    "check_action": True,
    "render": "",
    "get_content_height": 1,
    "get_content_width": 1,
}


Method = TypeVar("Method", bound="Callable[..., Any]")


@runtime_checkable
class FaultReporter(Protocol):
    def report_fault(self, error: Exception) -> None: ...


class Guarded(DOMNode):
    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and _CALLED_BY_TEXTUAL.fullmatch(name):
                setattr(cls, name, guarded(method))

    async def on_event(self, event: Event) -> None:
        # Textual's own handlers may fail, too.
        try:
            await super().on_event(event)
        except Exception as error:  # noqa: BLE001
            report_fault(self, error)

    def call_later(
        self, callback: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> bool:
        return super().call_later(self._guard_callback(callback, *args, **kwargs))

    def call_next(
        self, callback: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> None:
        super().call_next(self._guard_callback(callback, *args, **kwargs))

    def call_after_refresh(
        self, callback: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> bool:
        return super().call_after_refresh(
            self._guard_callback(callback, *args, **kwargs)
        )

    def set_timer(
        self, delay: float, callback: Callable[[], Any] | None = None, **options: Any
    ) -> Timer:
        if callback is not None:
            callback = self._guard_callback(callback)
        return super().set_timer(delay, callback, **options)

    def set_interval(
        self, interval: float, callback: Callable[[], Any] | None = None, **options: Any
    ) -> Timer:
        if callback is not None:
            callback = self._guard_callback(callback)
        return super().set_interval(interval, callback, **options)

    def run_worker(
        self,
        work: WorkType[Any],
        name: str | None = "",
        group: str = "default",
        description: str = "",
        exit_on_error: bool = True,
        start: bool = True,
        exclusive: bool = False,
        thread: bool = False,
    ) -> Worker[Any]:
        """Run work. An error is reported, stays the worker's error, and does not end
        the app.
        """
        if exit_on_error and not thread:
            work = partial(_run_reported, self, work)
        return super().run_worker(
            work,
            name=name,
            group=group,
            description=description,
            exit_on_error=exit_on_error and thread,
            start=start,
            exclusive=exclusive,
            thread=thread,
        )

    def _guard_callback(
        self, callback: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Callable[[], Awaitable[None]]:
        async def run_callback() -> None:
            try:
                result = callback(*args, **kwargs)
                if inspect.isawaitable(result):
                    await result
            except Exception as error:  # noqa: BLE001
                report_fault(self, error)

        return run_callback


class GuardedWidget(Guarded, Widget):
    """A widget that stays blank where drawing fails."""

    def render_lines(self, crop: Region) -> list[Strip]:
        try:
            return super().render_lines(crop)
        except Exception as error:  # noqa: BLE001
            report_fault(self, error)
            return [Strip.blank(crop.width)] * crop.height

    def seen(self) -> Hashable:
        """Return everything that a key can change. If it stays equal on all widgets,
        the shell says that the key does nothing.
        """
        return None


def report_fault(node: DOMNode, error: Exception) -> None:
    """Report an error to the app. Raise it if the app cannot report it."""
    try:
        app = node.app
    except RuntimeError:  # there is no app
        raise error from None
    if not isinstance(app, FaultReporter):
        raise error
    app.report_fault(error)


def guarded(method: Method) -> Method:
    """Return a method that reports its errors instead of raising them."""
    if inspect.isgeneratorfunction(method):

        @wraps(method)
        def guard_generator(self: DOMNode, *args: Any) -> Iterator[Any]:
            try:
                yield from method(self, *args)
            except Exception as error:  # noqa: BLE001
                report_fault(self, error)

        return cast("Method", guard_generator)
    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def guard_coroutine(self: DOMNode, *args: Any, **kwargs: Any) -> Any:
            try:
                return await method(self, *args, **kwargs)
            except SkipAction:
                raise
            except Exception as error:  # noqa: BLE001
                report_fault(self, error)

        return cast("Method", guard_coroutine)
    result = _RESULTS.get(method.__name__)

    @wraps(method)
    def guard_call(self: DOMNode, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except SkipAction:
            raise
        except Exception as error:  # noqa: BLE001
            report_fault(self, error)
            return result

    return cast("Method", guard_call)


async def _run_reported(node: DOMNode, work: WorkType[Any]) -> Any:
    try:
        result = work() if callable(work) else work
        return await result
    except Exception as error:
        report_fault(node, error)
        raise
