"""Locks on files, and what their import leaves out, and from whom."""

import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.files.file_lock import FileLock, Timeout


def test_a_file_is_locked_once(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock"), pytest.raises(Timeout):
        FileLock(tmp_path / "lock", timeout=0).acquire()


def test_locking_imports_no_database_and_whoever_wants_one_gets_it_afterwards() -> None:
    code = (
        "import sys, cdd_agent.files.file_lock\n"
        "print('sqlite3' in sys.modules)\n"
        "import sqlite3; print(sqlite3.connect(':memory:').execute('select"
        " 1').fetchone())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n(1,)\n"


def test_a_thread_that_wants_a_database_meanwhile_gets_it(tmp_path: Path) -> None:
    (tmp_path / "filelock").mkdir()
    (tmp_path / "filelock" / "__init__.py").write_text(
        "import threading\n"
        "def look():\n"
        "    import sqlite3\n"
        "    print(sqlite3.connect(':memory:').execute('select 1').fetchone())\n"
        "thread = threading.Thread(target=look)\n"
        "thread.start()\n"
        "thread.join()\n"
        "FileLock = Timeout = None\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import"
        " cdd_agent.files.file_lock"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("(1,)\n", "")
