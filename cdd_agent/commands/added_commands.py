"""Slash commands of other packages, from entry points. They are imported in a thread,
so that the shell does not wait for them.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.commands.declaration import Command, Group, Parameter, SlashFront
from cdd_agent.commands.extension import CommandExtension
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Answer, Notice
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.extensions import Extensions, require_type

if TYPE_CHECKING:
    from cdd_agent.events.stream import Event
    from cdd_agent.session.open_project import Project

_log = logging.getLogger(__name__)
_NAME = Pattern(r"[a-z][a-z0-9-]*")
_NOTICE_DELAY = 1.0
"""Seconds of loading before a notice."""


class CommandFailed(CddError):
    refusal = Refusal.EXTENSION_FAILED


class AddedCommands:
    def __init__(self) -> None:
        self.extensions = Extensions("cdd_agent.commands", "command")
        self._commands: dict[str, Command] = {}
        self.full_names: dict[str, str] = {}
        """The commands' names with their packages: `todo of my-commands`."""
        self._thread: threading.Thread | None = None

    @property
    def loaded(self) -> dict[str, Command]:
        return dict(self._commands)

    def is_expected(self, name: str) -> bool:
        """True if a command of this name is not loaded yet."""
        waiting = [each.partition(" of ")[0] for each in self.extensions.waiting]
        return name in waiting

    def begin_loading(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._load, name="added commands", daemon=True
            )
            self._thread.start()

    async def finish_loading(self, emit: Callable[[Event], None]) -> None:
        """Wait until all commands are loaded. If that takes long, show which one is
        loading.
        """
        self.begin_loading()
        assert self._thread is not None
        await asyncio.to_thread(self._thread.join, _NOTICE_DELAY)
        while self._thread.is_alive():
            emit(Notice(f"Loading the command {self.extensions.loading} …"))
            await asyncio.to_thread(self._thread.join, 10 * _NOTICE_DELAY)

    def wait(self) -> None:
        self.begin_loading()
        assert self._thread is not None
        self._thread.join()

    def explain_missing(self, name: str) -> str:
        """Return why a command of another package is not used; empty if there is none
        of this name.
        """
        for full_name, problem in self.extensions.left_out.items():
            if full_name.partition(" of ")[0] == name:
                return f"The command {full_name} is not used: {problem}"
        return ""

    def _load(self) -> None:
        for command in self.extensions.load_each(self._declare):
            self._commands[command.name] = command

    def _declare(self, full_name: str, value: object) -> Command:
        """Raise an error if the extension is not valid."""
        extension = require_type(value, CommandExtension)
        name, _, package = full_name.partition(" of ")
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot be the name of a command")
        if name in CATALOGUE:
            raise ValueError(f"cdd itself has a command /{name}")
        if name in self._commands:
            raise ValueError(f"another package adds a command /{name}, too")
        summary = require_type(extension.summary, str)
        for parameter in extension.parameters:
            require_type(parameter, Parameter)
            if parameter.offers:
                # It would be called at each key.
                raise ValueError(f"{parameter.name} has `offers`, which is cdd's own")
        self.full_names[name] = full_name
        sentences = require_type(extension.help, str) or f"{summary}."
        front = SlashFront(f"{sentences} Added by the package {package}.", f"/{name}")
        return Command(
            name,
            Group.ADDED,
            summary,
            tuple(extension.parameters),
            front,
            events=_GuardedRun(full_name, extension),
        )


class _GuardedRun:
    """Runs a command of another package. Its errors name the package."""

    def __init__(self, full_name: str, extension: CommandExtension) -> None:
        self._full_name = full_name
        self._extension = extension

    def __call__(
        self, project: Project, *arguments: str, **flags: bool
    ) -> Iterator[Event]:
        try:
            texts = self._extension.run(project.root, *arguments, **flags)
            if isinstance(texts, str):
                raise TypeError("run returned a text instead of yielding texts")
            for text in texts:
                yield Answer(require_type(text, str))
        except (CddError, GeneratorExit):
            raise
        # This includes `sys.exit`, which would end the shell.
        except BaseException as error:
            _log.exception("The command %s failed", self._full_name)
            raise CommandFailed(
                f"The command {self._full_name} failed: {type(error).__name__}:"
                f" {error}",
                hint="The log has the traceback.",
            ) from error


ADDED = AddedCommands()
