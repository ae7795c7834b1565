"""Forms of edits that other packages add."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdd_agent.changes.formats import added
from cdd_agent.changes.formats.all_forms import all_forms
from cdd_agent.changes.model import BlockFate, ReplyRefused, WholeFile
from cdd_agent.changes.parse import parse_reply
from tests.support.commandline import STEPS, cdd
from tests.support.packages import read_example, write_package
from tests.support.projects import Sandbox
from tests.support.tables import each_row

HEAD = """\
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.model import ReplyRefused, WholeFile
class Shrimps(Form):
    kind = "shrimp"
    def marked(self, lines, project_names):
        return [
            Span(n, n + 1, self.edits, names_files=True)
            for n, line in enumerate(lines) if line.startswith("shrimp ")
        ]
    def edits(self, path): return [WholeFile("shrimp.txt", "x")]
"""
NAME = "shrimp of shrimp-tests"
REPLY = "Here:\n\nshrimp now\n\n```text:a.txt\nx\n```\n"
OTHER = WholeFile("a.txt", "x\n")
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with a module that has a class `Shrimps`."""
    folder = tmp_path / "site"
    write_package(folder, "cdd_agent.reply_forms", "shrimp = shrimp_form:Shrimps")
    monkeypatch.syspath_prepend(str(folder))

    def write(text: str) -> None:
        (folder / "shrimp_form.py").write_text(text)
        forget()

    yield write
    monkeypatch.undo()
    forget()


def forget() -> None:
    sys.modules.pop("shrimp_form", None)
    all_forms.cache_clear()
    added.left_out.clear()


def test_the_form_of_the_page_reads_files(install: Install) -> None:
    install(f"{read_example('A reply form')}\nShrimps = PercentFiles\n")
    reply = parse_reply("So be it:\n\n%%% a.md\n```sh\nls\n```\n%%%\n\nThat is all.\n")
    assert reply.edits == (WholeFile("a.md", "```sh\nls\n```\n"),)
    assert reply.explanation == "So be it:\n\nThat is all."
    (block,) = reply.blocks
    assert (block.line, block.end, block.kind) == (3, 7, "percent file")
    with pytest.raises(ReplyRefused, match="no end") as refused:
        parse_reply("%%% a.md\n```sh\nls\n```\n")
    (block,) = refused.value.blocks
    assert (block.line, block.end, block.fate) == (1, 5, BlockFate.REFUSED)
    assert added.left_out == {}


def test_a_form_of_another_package_is_read_with_the_built_in_ones(
    install: Install,
) -> None:
    install(HEAD)
    assert parse_reply(REPLY).edits == (WholeFile("shrimp.txt", "x"), OTHER)


@each_row(
    "fault",
    [
        "raise RuntimeError('no')",
        "import nothing_here",
        "Shrimps = 3",
        "Shrimps = object",
        "Shrimps.kind = 3",
        "Shrimps.__init__ = lambda self, more: None",
        "Shrimps.marked = lambda self, lines, project_names: 1 / 0",
        "Shrimps.marked = lambda self, lines, project_names: [1]",
        "Shrimps.marked = lambda self, lines, project_names: None",
        "Shrimps.marked = lambda self, lines, project_names: [Span(0, 99, self.edits)]",
        "Shrimps.marked = lambda self, lines, project_names: [Span(2, 2, self.edits)]",
        "Shrimps.in_prose = lambda self, lines, occupied, ends: 1 / 0",
        "Shrimps.accepts = lambda self, fence: 1 / 0",
        "Shrimps.accepts = lambda self, fence: 'yes'",
        "Shrimps.refuse_loose = lambda self, line, number: 1 / 0",
        "Shrimps.marked = lambda self, lines, project_names: lines.append('x') or []",
    ],
)
def test_a_form_that_cannot_be_used_is_named_and_left_out(
    install: Install, fault: str
) -> None:
    install(f"{HEAD}\n{fault}\n")
    assert OTHER in parse_reply(REPLY).edits
    assert list(added.left_out) == [NAME]
    assert parse_reply(REPLY).edits == (OTHER,)


@each_row(
    "read",
    ["1 / 0", "None", "['x']", "[WholeFile]", "open('/nothing/here').read()"],
)
def test_a_block_in_which_a_form_fails_is_refused(install: Install, read: str) -> None:
    install(f"{HEAD}\nShrimps.edits = lambda self, path: {read}\n")
    with pytest.raises(ReplyRefused, match=NAME) as refused:
        parse_reply(REPLY)
    fates = [(block.line, block.fate) for block in refused.value.blocks]
    assert fates == [(3, BlockFate.REFUSED), (5, BlockFate.REFUSED)]
    assert list(added.left_out) == [NAME]
    assert parse_reply(REPLY).edits == (OTHER,)


def test_doctor_names_a_form_that_is_left_out(
    sandbox: Sandbox, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    install("raise RuntimeError('broken')")
    cdd(sandbox, "doctor")
    lines = capsys.readouterr().out.splitlines()
    assert any(NAME in line and "broken" in line for line in lines)
