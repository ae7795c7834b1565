"""`cdd apply`: one saved reply, all of it or nothing."""

import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Protocol

import pytest

from cdd_agent.changes import change_set
from cdd_agent.cli.main import main
from cdd_agent.errors import BadInput
from cdd_agent.files.text import lines_of
from tests.changes.applying import CALC, PROJECT, tree, write
from tests.support.encoded_files import ENCODED, Encoded
from tests.support.tables import each_row

EXPLANATION = "I sum, and add notes."

REPLY = """\
I sum, and add notes.

src/calc.py
<<<<<<< SEARCH
    return a + b
=======
    return sum((a, b))
>>>>>>> REPLACE

```text:notes.txt
Done.
```

*** Begin Patch
*** Delete File: README.md
*** End Patch
"""
WRONG = REPLY.replace("return a + b", "return a * b")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "my project"
    write(root, PROJECT)
    return root


@dataclass(frozen=True)
class Done:
    """The output of a command, and how it ended."""

    returncode: int
    stdout: str
    stderr: str


class Apply(Protocol):
    def __call__(
        self, root: Path, *arguments: str, given: str | None = None
    ) -> Done: ...


@pytest.fixture
def cdd(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Apply:
    """`cdd apply`, in this process."""

    def apply(root: Path, *arguments: str, given: str | None = None) -> Done:
        monkeypatch.setattr(
            sys, "stdin", TextIOWrapper(BytesIO((given or "").encode()))
        )
        code = main(["apply", *arguments, "--root", str(root)])
        return Done(code, *capsys.readouterr())

    return apply


def saved(root: Path, reply: str) -> str:
    file = root.parent / "reply.md"
    file.write_text(reply)
    return str(file)


def outcome(done: Done) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_a_reply_is_applied_and_told_to_scripts(cdd: Apply, root: Path) -> None:
    done = cdd(root, saved(root, REPLY), "--json")
    assert done.returncode == 0
    told = outcome(done)
    assert [told[name] for name in ("created", "modified", "deleted")] == [
        ["notes.txt"],
        ["src/calc.py"],
        ["README.md"],
    ]
    assert (told["failed"], told["explanation"]) == ([], EXPLANATION)
    assert tree(root) == {
        "src/calc.py": CALC.replace("a + b", "sum((a, b))"),
        "config.toml": PROJECT["config.toml"],
        "notes.txt": "Done.\n",
    }


def fates(done: Done) -> list[tuple[int, str, str, str]]:
    return [
        (block["line"], block["kind"], block["fate"], block["path"])
        for block in outcome(done)["blocks"]
    ]


def test_each_block_of_a_reply_is_listed(cdd: Apply, root: Path) -> None:
    more = f"{REPLY}\n```sh\nmake\n```\n\n### NEWS\n\n```\nNew.\n```\n"
    done = cdd(root, saved(root, more), "--json", "--dry-run")
    assert fates(done) == [
        (4, "search/replace block", "applied", "src/calc.py"),
        (10, "code block", "applied", "notes.txt"),
        (14, "patch", "applied", "README.md"),
        (18, "code block", "explanation", ""),
        (24, "code block", "explanation", "NEWS"),
    ]
    assert {"line", "end", "kind", "fate", "path", "reason"} == set(
        outcome(done)["blocks"][0]
    )


@pytest.mark.parametrize("reply", [WRONG, REPLY.replace("=======\n", "")])
def test_no_block_of_a_refused_reply_is_applied(
    cdd: Apply, root: Path, reply: str
) -> None:
    done = cdd(root, saved(root, reply), "--json")
    assert [fate for _, _, fate, _ in fates(done)] == ["refused"] * 3
    reasons = [block["reason"] for block in outcome(done)["blocks"]]
    assert outcome(done)["failed"][0]["reason"].split("\n")[0] in reasons[0]
    assert all(reasons)


def test_what_was_not_applied_is_said(cdd: Apply, root: Path) -> None:
    more = f"{REPLY}\n```sh\nmake\n```\n\n### NEWS\n\n```\nNew.\n```\n"
    lines = cdd(root, saved(root, more)).stderr.splitlines()
    assert any("line 24" in line and "NEWS" in line for line in lines)
    assert any("line 18" in line for line in lines)


def test_one_wrong_edit_and_nothing_is_written(cdd: Apply, root: Path) -> None:
    done = cdd(root, saved(root, WRONG), "--json")
    told = outcome(done)
    assert (done.returncode, told["created"], told["modified"], told["deleted"]) == (
        1,
        [],
        [],
        [],
    )
    (failed,) = told["failed"]
    assert failed["path"] == "src/calc.py"
    assert " return a" in failed["reason"]
    assert told["explanation"] == EXPLANATION
    assert tree(root) == PROJECT


def test_words_go_to_standard_error(cdd: Apply, root: Path) -> None:
    done = cdd(root, "-", given=REPLY)
    assert (done.returncode, done.stdout) == (0, "")
    assert [line.split()[-1] for line in done.stderr.splitlines()] == [
        "notes.txt",
        "src/calc.py",
        "README.md",
        "project'`.",
    ]


def test_a_dry_run_writes_nothing_and_shows_what_git_would_apply(
    cdd: Apply, root: Path
) -> None:
    done = cdd(root, saved(root, REPLY), "--dry-run")
    assert (done.returncode, tree(root)) == (0, PROJECT)
    assert {"-    return a + b", "+    return sum((a, b))"} <= set(
        done.stdout.splitlines()
    )
    assert "README.md" in done.stderr
    subprocess.run(
        ["git", "apply", "-"], input=done.stdout, text=True, cwd=root, check=True
    )
    assert (root / "notes.txt").read_text() == "Done.\n"
    assert not (root / "README.md").exists()


@each_row("encoded", ENCODED)
def test_the_diff_of_a_dry_run_has_the_bytes_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoded: Encoded
) -> None:
    place = encoded.write(tmp_path)
    line = next(line for line in lines_of(encoded.text) if encoded.word in line)
    reply = (
        f"{encoded.path}\n<<<<<<< SEARCH\n{line.rstrip()}\n=======\n"
        f"{line.rstrip()} # {encoded.word}\n>>>>>>> REPLACE\n"
    )
    output = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(output))
    file = saved(tmp_path, reply)
    assert main(["apply", file, "--root", str(tmp_path), "--dry-run"]) == 0
    assert place.read_bytes() == encoded.data
    subprocess.run(
        ["git", "apply", "-"], input=output.getvalue(), cwd=tmp_path, check=True
    )
    applied = place.read_bytes()
    place.write_bytes(encoded.data)
    assert main(["apply", file, "--root", str(tmp_path)]) == 0
    assert place.read_bytes() == applied
    assert applied.decode(encoded.codec).count(encoded.word) == (
        encoded.text.count(encoded.word) + 1
    )


@pytest.mark.parametrize("reply", ["", "Just words.\n", "```python\nprint(1)\n```\n"])
def test_a_reply_without_edits_changes_nothing(
    cdd: Apply, root: Path, reply: str
) -> None:
    done = cdd(root, "-", "--json", given=reply)
    assert (done.returncode, tree(root)) == (0, PROJECT)
    assert outcome(done)["explanation"] == reply.strip()


def test_bad_input_is_told(cdd: Apply, root: Path) -> None:
    assert cdd(root, "nowhere.md").returncode == 2
    assert cdd(root / "nowhere", saved(root, REPLY)).returncode == 2
    (root.parent / "bin.md").write_bytes(b"\xff\xfe\x00")
    done = cdd(root, str(root.parent / "bin.md"))
    assert done.returncode == 2
    assert "not UTF-8" in done.stderr


def test_the_tickets_own_files_are_not_written(cdd: Apply, root: Path) -> None:
    write(root, {"tickets/feature-x/spec.yaml": "title: x\n"})
    done = cdd(
        root, "-", "--json", given="```md:tickets/feature-x/plan.md\n# Plan\n```\n"
    )
    assert done.returncode == 1
    (failed,) = outcome(done)["failed"]
    assert failed["path"] == "tickets/feature-x/plan.md"
    assert not (root / "tickets/feature-x/plan.md").exists()


def test_a_renamed_file_keeps_its_permissions(cdd: Apply, root: Path) -> None:
    write(root, {"run.sh": "ls\n"})
    (root / "run.sh").chmod(0o755)
    reply = (
        "```diff\n"
        "diff --git a/run.sh b/bin/run.sh\n"
        "rename from run.sh\n"
        "rename to bin/run.sh\n"
        "```\n"
    )
    assert cdd(root, "-", given=reply).returncode == 0
    assert stat.S_IMODE((root / "bin/run.sh").stat().st_mode) == 0o755
    assert not (root / "run.sh").exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows has other limits")
def test_when_the_disk_refuses_what_was_written_is_taken_back(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(place: Path) -> None:
        raise BadInput(f"{place} could not be removed: disk error")

    monkeypatch.setattr(change_set, "remove", full)  # the last thing that is done
    assert main(["apply", saved(root, REPLY), "--root", str(root)]) == 1
    assert tree(root) == PROJECT


def test_a_block_that_could_be_a_file_is_told(cdd: Apply, root: Path) -> None:
    reply = "```text:n.txt\nx\n```\n\n### NEWS\n\n```text\nNew.\n```\n"
    done = cdd(root, "-", given=reply)
    assert done.stderr.splitlines()[0] == "created n.txt"
    assert "line 7" in done.stderr
    assert "NEWS" in done.stderr
    assert not (root / "NEWS").exists()
    (root / "NEWS").write_text("Old.\n")
    assert outcome(cdd(root, "-", "--json", given=reply))["modified"] == ["NEWS"]


CALL = (
    "<tool_call>\n"
    '{"name": "create_file", "arguments": {"path": "NOTES.md", "content": "# N\\n"}}\n'
    "</tool_call>\n"
)


def test_a_call_that_makes_a_file_is_applied(cdd: Apply, root: Path) -> None:
    done = cdd(root, "-", "--json", given=f"{REPLY}\n{CALL}")
    assert done.returncode == 0
    assert outcome(done)["created"] == ["notes.txt", "NOTES.md"]
    assert (root / "NOTES.md").read_text() == "# N\n"


def test_another_call_refuses_the_reply(cdd: Apply, root: Path) -> None:
    for other in (
        CALL.replace("create_file", "read_file"),
        CALL.replace("create_file", "execute_command"),
        CALL.replace("</tool_call>", "").replace('"}}', ""),
        "```bash\nrm README.md\n```\n",
    ):
        done = cdd(root, "-", "--json", given=f"{REPLY.partition('***')[0]}\n{other}")
        assert done.returncode == 1, other
        assert outcome(done)["failed"], other
        assert tree(root) == PROJECT, other
