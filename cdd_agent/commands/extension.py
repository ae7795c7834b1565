"""A slash command of another package: see docs/how-to/extend.md."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from cdd_agent.commands.declaration import Parameter, Times, ValueKind, argument, switch

__all__ = ["CommandExtension", "Parameter", "Times", "ValueKind", "argument", "switch"]


class CommandExtension:
    """A slash command. The name of its entry point is the command's name."""

    summary: ClassVar[str]
    """An imperative line for lists, such as "List the open questions"."""
    help: ClassVar[str] = ""
    """Sentences for `/help NAME`; by default the summary."""
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    """Made by `argument` and `switch`, in the order of typing."""

    def run(self, root: Path, *arguments: str, **flags: bool) -> Iterable[str]:
        """Yield Markdown for the transcript. cdd calls this in a thread. `root` is the
        project's folder. A `CddError` is shown as a message.
        """
        raise NotImplementedError
