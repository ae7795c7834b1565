"""`cdd apply`: apply a saved model reply to a folder, completely or not at all, without
a model or a run.
"""

import difflib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.build import change_set
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import (
    BlockFate,
    EditProblem,
    Reply,
    ReplyBlock,
    ReplyRefused,
)
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.changes.reply.fates import refused
from cdd_agent.cli.invocation import Invocation
from cdd_agent.cli.outside import undo_command
from cdd_agent.cli.without_screen import print_json
from cdd_agent.engine.outside import OutsideChanges
from cdd_agent.engine.outside_work import OutsideWork
from cdd_agent.errors import BadInput, CddError, ExitCode
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Event
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.charsets import Charsets
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import Project, open_project
from cdd_agent.text.redaction import Redactor
from cdd_agent.text.sanitize import sanitize_for_display

_LARGEST = 50_000_000
_NONE = ChangeSet(())


class Outcome(Struct, frozen=True):
    changes: ChangeSet = _NONE
    failed: tuple[EditProblem, ...] = ()
    explanation: str = ""
    blocks: tuple[ReplyBlock, ...] = ()
    notices: tuple[str, ...] = ()
    """About an interrupted earlier change, and about undo."""

    def to_json(self) -> dict[str, object]:
        return {
            "created": list(self.changes.created),
            "modified": list(self.changes.modified),
            "deleted": list(self.changes.deleted),
            "failed": [
                {"path": problem.path, "reason": problem.reason}
                for problem in self.failed
            ],
            "explanation": self.explanation,
            "blocks": [
                {
                    "line": block.line,
                    "end": block.end,
                    "kind": block.kind,
                    "fate": block.fate,
                    "path": block.path,
                    "reason": block.reason,
                }
                for block in self.blocks
            ],
        }


def apply(
    invocation: Invocation,
    *,
    reply: str,
    root: Path | None,
    dry_run: bool,
    as_json: bool,
) -> ExitCode:
    project = open_project(root or invocation.project, {}, exactly=root is not None)
    return apply_reply(project, reply, dry_run=dry_run, as_json=as_json)


def apply_reply(
    project: Project, source: str, *, dry_run: bool, as_json: bool
) -> ExitCode:
    """Apply a reply, from a file or `-` for standard input, and print the outcome.
    Raises `BadInput` if the file does not exist.

    All rules of a step apply, except that the model need not have seen the files.
    """
    reply = Reply(())
    text = _read_reply(source)
    try:
        reply = parse_reply(text, ProjectNames.collect(project.root))
        changes = change_set(
            project.root, reply.edits, EditPolicy(seen=None), project.tickets.owns
        )
        outcome = Outcome(changes, (), reply.explanation, reply.blocks)
    except ReplyRefused as refusal:
        outcome = _failed_outcome(reply, refusal.problems, refusal.blocks)
    if outcome.changes.changes and not dry_run:
        notices: list[str] = []
        try:
            with _recording(project, source, outcome.changes, notices):
                outcome.changes.check_still_valid(project.root)
                outcome.changes.apply(project.root)
            outcome = replace(outcome, notices=tuple(notices))
        except CddError as error:
            outcome = _failed_outcome(reply, (EditProblem("", error.in_a_line),))
    if as_json:
        print_json(outcome.to_json())
    elif dry_run:
        _print_diff(outcome.changes, project.root)
    lines = _words(outcome, dry_run=dry_run)
    if not as_json:
        lines += outcome.notices
    for line in lines:
        sys.stderr.write(sanitize_for_display(line) + "\n")
    return ExitCode.FAILED if outcome.failed else ExitCode.DONE


def _failed_outcome(
    reply: Reply,
    problems: tuple[EditProblem, ...],
    blocks: tuple[ReplyBlock, ...] = (),
) -> Outcome:
    """Return the outcome of a reply that was not written. `blocks` are those of an
    unreadable reply.
    """
    return Outcome(
        failed=problems,
        explanation=reply.explanation,
        blocks=blocks or refused(reply.blocks, problems),
    )


@contextmanager
def _recording(
    project: Project, source: str, changes: ChangeSet, notices: list[str]
) -> Iterator[None]:
    def keep(event: Event) -> None:
        assert isinstance(event, Notice)
        notices.append(event.text)

    redactor = Redactor.of_environment(project.config.commands.hide_env)
    what = f"cdd apply {source}"
    work = OutsideWork(OutsideChanges.open(project.root, redactor), keep, what)
    try:
        with work.writing(changes, what):
            yield
    finally:
        done = work.close()
        if done is not None:
            for notice in done.notices(undo_command(project.root)):
                keep(notice)


def _print_diff(changes: ChangeSet, root: Path) -> None:
    """Print sanitized text to a terminal, and bytes for `git apply` to a pipe or a
    file.
    """
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(_diff_of_bytes(changes)))
        return
    for file in changes.files(Charsets(root)):
        for line in file.diff.splitlines():
            sys.stdout.write(f"{sanitize_for_display(line)}\n")


def _diff_of_bytes(changes: ChangeSet) -> Iterator[bytes]:
    for change in changes.changes:
        old_name = "/dev/null" if change.before is None else f"a/{change.path}"
        new_name = "/dev/null" if change.after is None else f"b/{change.path}"
        lines = difflib.diff_bytes(
            difflib.unified_diff,
            _lines(change.before),
            _lines(change.after),
            os.fsencode(old_name),
            os.fsencode(new_name),
        )
        for line in lines:
            is_whole = line.endswith(b"\n")
            yield line if is_whole else line + b"\n\\ No newline at end of file\n"


def _lines(data: bytes | None) -> list[bytes]:
    """Split at line feeds only, as git does."""
    return re.findall(rb"[^\n]*\n|[^\n]+", data or b"")


def _read_reply(source: str) -> str:
    if source == "-":
        data: bytes | None = sys.stdin.buffer.read(_LARGEST + 1)
    else:
        data = read_bytes(Path(source)) if source else None
    if data is None:
        raise BadInput(
            f"There is no file {source!r}",
            hint="Name a file with a reply, or - for standard input.",
        )
    if len(data) > _LARGEST:
        raise BadInput(
            f"{source}: more than {_LARGEST:,} bytes, which is too much for a reply"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{source} is not UTF-8 text: {error.reason} at byte {error.start}",
            hint="Save it as UTF-8.",
            refusal=Refusal.WRONG_ENCODING,
        ) from error


def _words(outcome: Outcome, *, dry_run: bool) -> list[str]:
    changes = outcome.changes
    if outcome.failed:
        reasons = list(dict.fromkeys(problem.reason for problem in outcome.failed))
        return [*"\n".join(reasons).split("\n"), "Nothing was written."]
    would = "would be " if dry_run else ""
    lines = [f"{would}created {path}" for path in changes.created]
    lines += [f"{would}changed {path}" for path in changes.modified]
    lines += [f"{would}deleted {path}" for path in changes.deleted]
    lines += [f"{note}." for note in changes.notes]
    return [*(lines or ["The reply changes no file."]), *_not_applied(outcome)]


def _not_applied(outcome: Outcome) -> Iterator[str]:
    others: list[str] = []
    for block in outcome.blocks:
        if block.is_doubtful:
            yield f"{block}."
        elif block.fate is BlockFate.EXPLANATION:
            others.append(str(block.line))
    if len(others) == 1:
        yield f"1 block was read as an explanation: line {others[0]}."
    elif others:
        lines = ", ".join(others)
        yield f"{len(others)} blocks were read as explanations: lines {lines}."
