"""Values with fields that must not be in logs and tracebacks."""

from typing import Any, ClassVar

from msgspec import Struct


class PartlyShown(Struct, frozen=True):
    """A value that is shown without some of its fields: keys, and long texts."""

    hidden_fields: ClassVar[tuple[str, ...]] = ()

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the shown fields, for rich's tracebacks."""
        shown = [f for f in self.__struct_fields__ if f not in self.hidden_fields]
        return [(name, getattr(self, name)) for name in shown]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"
