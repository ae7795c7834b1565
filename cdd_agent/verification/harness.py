"""Finds changes that decide how tests run, instead of what they test.

Such a change can produce any result: a hook in `conftest.py` can drop tests or rewrite
results, a setting can select other tests. Results do not show it, so the files are
compared. Only the usual ways are covered: tests run project code, which can do
anything.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from cdd_agent.changes.change_set import FileChange
from cdd_agent.pattern import Pattern
from cdd_agent.verification.invocation import RunnerInvocation
from cdd_agent.verification.runner import Matters, whole
from cdd_agent.verification.runners import all_runners

_CODE = (".py", ".js", ".cjs", ".mjs", ".ts", ".go")
_SETTINGS_OF_OTHERS = Pattern(
    r"""
      GNUmakefile | [Mm]akefile | tox\.ini | noxfile\.py
    | (jest|vitest|karma|playwright|cypress|ava|wdio)\.(config|conf)\.\w+
    | [Jj]ustfile | \.justfile | Taskfile\.ya?ml | tox\.toml
    """,
    re.VERBOSE,
)
"""Settings of other runners, which count if the runner is unknown."""


def changes_of_harness(
    changes: Iterable[FileChange], invocation: RunnerInvocation | None, script: str = ""
) -> tuple[str, ...]:
    """Return the changed files that decide how tests run. A known runner limits them to
    its settings.

    `script` is the file that the check itself runs. A step may create it, but not
    change it.
    """
    paths = []
    for change in changes:
        path = str(change.path)
        is_changed_script = path == script and change.before is not None
        if is_changed_script or _changes_how_tests_run(change, invocation):
            paths.append(path)
    return tuple(paths)


def _changes_how_tests_run(
    change: FileChange, invocation: RunnerInvocation | None
) -> bool:
    if invocation is None or invocation.may_start_anything:
        part_of = _matters_to_any_runner(change.path)
    else:
        part_of = invocation.what_matters(change.path)
    if part_of is None:
        return False
    # even a new empty file
    if part_of is whole:
        return True
    return part_of(_text(change.before)) != part_of(_text(change.after))


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", errors="replace")


def first_settings(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Return new settings files. A project without tests may begin with these."""
    paths = []
    for change in changes:
        is_new_data = change.before is None and change.path.suffix not in _CODE
        if is_new_data and _matters_to_any_runner(change.path) is not None:
            paths.append(str(change.path))
    return tuple(paths)


def conftests(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Return changed `conftest.py` files, even with fixtures only."""
    return tuple(
        str(change.path) for change in changes if change.path.name == "conftest.py"
    )


def _matters_to_any_runner(path: PurePosixPath) -> Matters | None:
    if _SETTINGS_OF_OTHERS.fullmatch(path.name):
        return whole
    for runner in all_runners():
        part_of = runner.what_matters(path)
        if part_of is not None:
            return part_of
    return None
