"""Reply forms that other packages add as entry points."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import Edit, ReplyRefused
from cdd_agent.settings.extensions import Extensions, require_type

_Value = TypeVar("_Value")
_FORMS = Extensions("cdd_agent.reply_forms", "reply form")
left_out = _FORMS.left_out
"""Forms that failed to load, with the reasons."""


def load_added() -> tuple[Form, ...]:
    return _FORMS.load(_Guarded)


class _Guarded(Form):
    """A form of another package. After its first error it finds nothing more, and the
    block where it failed is refused.
    """

    def __init__(self, full_name: str, form: object) -> None:
        self._full_name = full_name
        self._form = require_type(form, Form)
        self.kind = require_type(self._form.kind, str)

    def marked(self, lines: Sequence[str], project_names: ProjectNames) -> list[Span]:
        return self._spans(
            lambda: self._form.marked(tuple(lines), project_names), len(lines)
        )

    def in_prose(
        self, lines: Sequence[str], occupied: set[int], ends: set[int]
    ) -> list[Span]:
        return self._spans(
            lambda: self._form.in_prose(tuple(lines), set(occupied), set(ends)),
            len(lines),
        )

    def accepts(self, fence: Fence) -> bool:
        return self._try(False, lambda: require_type(self._form.accepts(fence), bool))

    def read(self, fence: Fence) -> list[Edit]:
        return self._edits(lambda: self._form.read(fence))

    def refuse_loose(self, line: str, number: int) -> None:
        self._try(None, lambda: self._form.refuse_loose(line, number))

    def _spans(self, find: Callable[[], Sequence[Span]], end: int) -> list[Span]:
        nothing: list[Span] = []
        return self._try(nothing, lambda: [self._checked(span, end) for span in find()])

    def _checked(self, span: Span, end: int) -> Span:
        require_type(span, Span)
        if not 0 <= span.start < span.end <= end:
            raise ValueError(f"lines {span.start} to {span.end} are not in the reply")
        return replace(
            span,
            read=lambda path: self._edits(lambda: span.read(path)),
            kind=span.kind or self.kind,
        )

    def _edits(self, read: Callable[[], list[Edit]]) -> list[Edit]:
        try:
            return [_require_edit(edit) for edit in read()]
        except ReplyRefused:
            raise
        except Exception as error:
            _FORMS.leave_out(self._full_name, error)
            reason = f"The reply form {self._full_name} failed: {error}"
            raise ReplyRefused(reason) from error

    def _try(self, otherwise: _Value, call: Callable[[], _Value]) -> _Value:
        if self._full_name in left_out:
            return otherwise
        try:
            return call()
        except ReplyRefused:
            raise
        except Exception as error:  # noqa: BLE001
            _FORMS.leave_out(self._full_name, error)
            return otherwise


def _require_edit(edit: Edit) -> Edit:
    if not isinstance(edit, Edit):
        raise TypeError(f"{edit!r:.80} is not an edit")
    return edit
