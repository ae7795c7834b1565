"""Detects checks that fail because a run's separate tree lacks files that git does not
have. This is reported before the model is asked: no code change would help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from msgspec import Struct

from cdd_agent.engine.named_files import named
from cdd_agent.engine.private_tree import private_tree
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Emit
from cdd_agent.process.policy import CommandRunner
from cdd_agent.project.tree_needs import add_files, load_tree_needs
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun, run_check
from cdd_agent.verification.outcomes import Result

JudgeAgain = Callable[[CommandRunner], Check | None]
"""Returns the check as another runner would start it."""


class LacksFiles(BadInput):
    """Tests need files that the run's tree lacks."""

    refusal = Refusal.CHECK_UNUSABLE

    def __init__(self, what: str, missing: Iterable[str], root: Path) -> None:
        self.missing = tuple(missing)
        super().__init__(
            f"{what} in the run's tree, but not in yours. Files that only your"
            f" tree has: {named(self.missing)}",
            hint=f"Copy the files that the tests need to {root}, or run in your"
            " own tree, without `--worktree`.",
        )


class TreeComparison(Struct, frozen=True):
    """Tries checks in copies of a run's tree, with and without the user's other
    files.
    """

    commands: CommandRunner
    limit: float
    """Seconds for a check."""
    emit: Emit

    @property
    def is_needed(self) -> bool:
        """True if the project is a run's separate tree that lacks files."""
        return bool(load_tree_needs(self.commands.root).missing)

    async def expect_files_for(
        self, command: str, again: JudgeAgain, run: CheckRun | None = None
    ) -> None:
        """Raise `LacksFiles` if a check fails in the run's tree, but not with the
        user's ignored files and submodules. `run` is the result in the tree; by default
        the check runs in the copy first. `again` makes the check there.
        """
        needs = load_tree_needs(self.commands.root)
        if not needs.missing or (run is not None and not _has_failed(run)):
            return
        text = f"Trying `{command}` with the files that only your tree has."
        self.emit(Notice(text))
        env = self.commands.env
        async with private_tree(self.commands.root, env=env) as copy:
            runner = copy.commands(self.commands)
            check = again(runner)
            if check is None:
                return
            if run is None:
                run = await run_check(check, runner, self.limit, copy.folder)
                if not _has_failed(run):
                    return
            add = partial(add_files, Path(needs.top), copy.top, needs.missing)
            await in_thread(add, name="missing")
            run_in_copy = await run_check(check, runner, self.limit, copy.folder)
        fixed = _find_fixed(run, run_in_copy)
        if not fixed and _has_failed(run_in_copy):
            return
        what = f"{named(fixed)} failed" if fixed else f"`{command}` fails"
        raise LacksFiles(
            what, _by_mention(needs.missing, run.output), self.commands.root
        )


def _by_mention(paths: Iterable[str], output: str) -> list[str]:
    return sorted(paths, key=lambda path: Path(path).name not in output)


def _has_failed(run: CheckRun) -> bool:
    if run.tests is not None and run.tests.having(Result.FAILED):
        return True
    return bool(run.problem) or (bool(run.return_code) and not run.ran_no_test)


def _find_fixed(run: CheckRun, run_in_copy: CheckRun) -> list[str]:
    if run.tests is None or run_in_copy.tests is None:
        return []
    passed = set(run_in_copy.tests.having(Result.PASSED))
    return [test for test in run.tests.having(Result.FAILED) if test in passed]
