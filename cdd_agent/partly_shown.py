"""Values that hold what is not for logs and tracebacks."""

from typing import Any, ClassVar

from msgspec import Struct


class PartlyShown(Struct, frozen=True):
    """A value that is shown without some of its fields: keys, and what is too long."""

    unshown: ClassVar[tuple[str, ...]] = ()

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """For tracebacks that rich prints."""
        return [
            (name, getattr(self, name))
            for name in self.__struct_fields__
            if name not in self.unshown
        ]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"
