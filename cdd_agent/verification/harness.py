"""Find the changes of a step that decide how tests run, rather than what they test.

Such a change can produce any outcome: a hook in `conftest.py` may drop tests or rewrite
results, a setting may select other tests. No comparison of outcomes notices that, so
the files are compared. The list has the usual ways and cannot be complete: tests run
the project's own code, which can do what its user can.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from cdd_agent.edits.changes import FileChange
from cdd_agent.verification.invocation import Invocation
from cdd_agent.verification.runner import Matters, whole
from cdd_agent.verification.runners import all_runners
from cdd_agent.verification.settings import package_json

_CODE = (".py", ".js", ".cjs", ".mjs", ".ts", ".go")
_OF_ANY_COMMAND = re.compile(
    r"""
      GNUmakefile | [Mm]akefile | tox\.ini | noxfile\.py
    | (jest|vitest|karma|playwright|cypress|ava|wdio)\.(config|conf)\.\w+
    | \.mocharc(\.\w+)? | [Jj]ustfile | \.justfile | Taskfile\.ya?ml | tox\.toml
    """,
    re.VERBOSE,
)
"""Settings that matter if it is not known what runs the tests."""


def changes_of_harness(
    changes: Iterable[FileChange], invocation: Invocation | None, script: str = ""
) -> tuple[str, ...]:
    """Return the changed files that decide how tests run. If the runner is known, only
    its settings count.

    `script` is the file that the check's command itself runs. A step may create it.
    """

    def decides(change: FileChange) -> bool:
        matters = (
            invocation.what_matters(change.path)
            if invocation and not invocation.may_start_anything
            else _what_may_matter(change.path)
        )
        own_script = str(change.path) == script and change.before is not None
        if own_script or matters is None or matters is whole:
            return own_script or matters is whole  # also an empty one that is new
        before, after = (
            (data or b"").decode("utf-8", errors="replace")
            for data in (change.before, change.after)
        )
        return matters(before) != matters(after)

    return tuple(str(change.path) for change in changes if decides(change))


def first_settings(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Return the new files of settings. A project without tests begins with these."""
    return tuple(
        str(change.path)
        for change in changes
        if change.before is None
        and change.path.suffix not in _CODE
        and _what_may_matter(change.path)
    )


def conftests(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Return the changed `conftest.py` files, also those with fixtures only."""
    return tuple(
        str(change.path) for change in changes if change.path.name == "conftest.py"
    )


def _what_may_matter(path: PurePosixPath) -> Matters | None:
    """Return what to compare of a file of this name if any runner may run the tests."""
    if _OF_ANY_COMMAND.fullmatch(path.name) or path.parts[0] == ".cargo":
        return whole
    if path.name == "package.json":
        return package_json
    return next(
        filter(None, (runner.what_matters(path) for runner in all_runners())), None
    )
