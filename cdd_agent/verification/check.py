from collections.abc import Collection
from functools import cached_property
from pathlib import PurePosixPath

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.process.command_folder import split_folder
from cdd_agent.process.policy import JudgedCommand, split
from cdd_agent.process.run import CommandResult
from cdd_agent.verification.invocation import RunnerInvocation, invocation
from cdd_agent.verification.outcomes import Statement
from cdd_agent.verification.scripts import find_started
from cdd_agent.verification.statements import find_watch_word

_INTERPRETERS = Pattern(r"(python|node|ruby|perl|bash|sh)[\d.]*")


class Check(Struct, frozen=True, dict=True):
    """A command that decides about a step."""

    command: JudgedCommand
    found: bool = False
    """True if the command was derived from the project's files. It may find no tests
    yet.
    """
    folder: str = ""
    """The working folder, relative to the project's root; empty for the root."""

    @property
    def argv(self) -> tuple[str, ...]:
        return self.command.argv

    @property
    def shown(self) -> str:
        """As the user writes it."""
        return self.command.text

    @property
    def script(self) -> str:
        """The project's script that the command runs; empty if it runs none."""
        if self.command.in_shell or self.invocation:
            return ""
        program, *words = split(split_folder(self.shown)[1]).argv
        if words and _INTERPRETERS.fullmatch(program):
            program = words[0]
        return str(PurePosixPath(self.folder, program))

    @cached_property
    def invocation(self) -> RunnerInvocation | None:
        """The test runner that the command starts; None if unknown."""
        if self.command.in_shell:
            return None
        return invocation(self.argv, self.command.folder, self.folder)

    @cached_property
    def watches(self) -> Statement | None:
        """The statement that the command watches files, by its words or those of its
        scripts.
        """
        if self.command.in_shell:
            return None
        for started in find_started(self.argv, self.command.folder):
            statement = find_watch_word(started.words)
            if statement is not None:
                return statement
        return None

    @property
    def always_reports(self) -> bool:
        """True if a run without a report was cut short."""
        if self.invocation is None or not self.asks_for_report:
            return False
        return self.invocation.runner.always_reports

    @cached_property
    def asks_for_report(self) -> bool:
        """True if the command can report each test."""
        if self.invocation is None:
            return False
        return self.invocation.reporting(self.command.folder) is not None

    @property
    def only_runs_tests(self) -> bool:
        """True if the command starts only a test runner that reports. A make target may
        do anything.
        """
        return (
            self.asks_for_report
            and self.invocation is not None
            and not self.invocation.runner.starts_anything
        )

    def names_any(self, paths: Collection[str]) -> bool:
        """True if the command names one of these files, or a test in it."""
        for word in self.argv:
            if word.partition("::")[0].removeprefix("./") in paths:
                return True
        return False

    def came_to_its_end(self, result: CommandResult) -> bool:
        """True if the exit code says that every chosen test ran."""
        if self.invocation is None:
            return False
        return result.return_code in self.invocation.runner.ends_with

    def says_nothing_ran(self, result: CommandResult) -> bool:
        """True if the exit code says that there was no test."""
        if self.invocation is None:
            return False
        return result.return_code == self.invocation.runner.nothing_ran
