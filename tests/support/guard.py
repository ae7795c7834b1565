"""A `pytest` for projects in unit tests: it runs nothing, and makes its caller fail.

Only tests of another kind may start the real one. A unit test uses
`Sandbox.in_process`, or gets the marker `story`.
"""

import os
import sys
from pathlib import Path

_REFUSES = """\
#!{python} -IS
import os, sys

test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
with open({notes!r}, "a") as notes:
    notes.write(test + "\\n")
sys.stderr.write("A unit test may not start pytest.\\n")
sys.exit(4)
"""


class PytestGuard:
    """Puts the refusing `pytest` into a folder, and records which tests started it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._notes = folder / "started"
        program = folder / "pytest"
        program.write_text(
            _REFUSES.format(python=sys.executable, notes=str(self._notes))
        )
        program.chmod(0o755)

    @property
    def path(self) -> str:
        """The PATH of unit tests."""
        return os.pathsep.join([str(self.folder), os.environ["PATH"]])

    def was_started_by(self, test: str) -> bool:
        try:
            return test in self._notes.read_text().splitlines()
        except FileNotFoundError:
            return False
