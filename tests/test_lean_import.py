"""Importing without what is not needed, in several threads at once."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import ModuleType

import pytest

from cdd_agent.lean_import import import_without

_UNUSED = "a_module_that_nobody_has"


class _SeenByBoth(list[str]):
    """Names that both threads have looked up before either goes on."""

    both = Barrier(2)

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        self.both.wait(60)


def test_two_threads_that_do_without_the_same_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = ModuleType("a_meeting")
    vars(meeting)["both"] = Barrier(2)
    monkeypatch.setitem(sys.modules, "a_meeting", meeting)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("one_wanted", "other_wanted"):
        (tmp_path / f"{name}.py").write_text(
            "import a_meeting\na_meeting.both.wait(10)\n"
        )

    unused = _SeenByBoth([_UNUSED])
    with ThreadPoolExecutor(2) as threads:
        list(
            threads.map(
                lambda wanted: import_without(unused, wanted),
                ("one_wanted", "other_wanted"),
            )
        )
    assert _UNUSED not in sys.modules
