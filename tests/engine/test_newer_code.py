"""Code that is newer than the Python that runs this program, in a step: it is written,
told, and left to the check.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest

from cdd_agent.changes.readability import NEWEST_PYTHON
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.project.interpreters import OURS
from tests.engine.test_engine import of
from tests.support.projects import Sandbox, Step, check, run_all, says

pytestmark = pytest.mark.skipif(
    OURS >= NEWEST_PYTHON, reason="this Python reads all that is known"
)
NEW = "try:\n    good = 1\nexcept A, B:\n    pass"


@pytest.fixture(autouse=True)
def _no_other_python(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path_factory.mktemp("programs")
    (programs / "git").symlink_to(str(shutil.which("git")))
    monkeypatch.setenv(
        "PATH", os.pathsep.join((str(Path(sys.executable).parent), str(programs)))
    )


async def test_the_check_decides_and_people_are_told(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.py", check("a.py"))).replies(says("a.py", NEW))
    events = await run_all(sandbox)
    assert sandbox.statuses() == ["completed"]
    assert [
        notice.text.split()[0]
        for notice in of(Notice, events)
        if notice.kind is NoticeKind.FILE_NOTE
    ] == ["a.py"]


async def test_where_the_check_cannot_run_it_nothing_of_it_stays(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.py", "python a.py")).replies(
        says("a.py", NEW), says("a.py", "x = 1")
    )
    await run_all(sandbox, attempts=2)
    assert sandbox.statuses() == ["completed"]
    assert sandbox.text("a.py") == "x = 1\n"
    assert "parenthesized" in sandbox.prompt(1)


async def test_what_is_wrong_in_every_version_does_not_come_to_the_check(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.py", check("a.py"))).replies(says("a.py", f"{NEW}\ngood = ("))
    events = await run_all(sandbox)
    assert "a.py" in of(AttemptFailed, events)[0].error
    assert not (sandbox.root / "a.py").exists()
