"""Actions as blocks that fold: a tool's call, files that were written, a check and the
tests that failed.
"""

from collections.abc import Iterable, Iterator, Sequence

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.notices import Tone
from cdd_agent.events.shell_events import OwnCommandStarted
from cdd_agent.events.step_events import (
    ChangesApplied,
    CommandOutput,
    FailedTest,
    StepDiff,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.stream import Event
from cdd_agent.sanitize import remove_escapes, sanitize_for_display
from cdd_agent.tickets.outcome_words import OUTCOME_WORDS
from cdd_agent.tickets.status import StepOutcome, Verification
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.diff import DiffLayout
from cdd_agent.tui.transcript.diff_reading import DiffOfFile, diff_files
from cdd_agent.tui.transcript.folds import Fold, Foldable, FoldHeader, Opening
from cdd_agent.tui.transcript.lines import Ink, Mark, TranscriptLine
from cdd_agent.tui.transcript.output import OutputLines
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.wording.describe import describe
from cdd_agent.wording.dialogue_words import lines_changed, tool_use
from cdd_agent.wording.faces import Face

_DIFF_LINES = 12
"""Shown lines of a diff before it is opened."""
_LAST_LINES = 8
"""Shown lines of output that is opened a little."""
_LONG_COMMAND = 60
"""Characters from which on a command stands below its header, too: there the end may be
cut.
"""
_GLIMPSE = 4
"""Lines that are shown of a check's output while it comes."""
_MOST_ROWS, _MOST_CHARACTERS = 40, 4_000
"""Lines and characters of a user's line that is not folded."""
_SHOWN_ROWS = 10
"""Lines of a longer one that are shown."""
_OWN_LINES = 20
"""Shown lines of the output of a user's command, while it runs and later: the user
wants to see it.
"""


Shown = (
    ToolFinished
    | ChangesApplied
    | OwnCommandStarted
    | TestsStarted
    | CommandOutput
    | TestsFinished
    | StepDiff
)


class ActionBlocks:
    """Shows in a transcript what is done."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._check: FoldHeader | None = None
        """The block of the running check."""
        self._told: set[str] = set()
        """Files whose changes were shown with the calls that made them."""

    def show(self, event: Shown) -> None:
        transcript, layout = self._transcript, self._transcript.diff_layout
        match event:
            case ToolFinished():
                self._told |= {file.path for file in event.files}
                self._add(tool_blocks(event, layout))
            case ChangesApplied():
                if not event.files:
                    self._say(event, Tone.PLAIN)
                elif not self._told.issuperset(file.path for file in event.files):
                    self._add(written_blocks(event, layout))
                elif event.step is not None:
                    self._add([net_block(event, layout)])
                self._told.clear()
                self._say(event, Tone.WARNING)
            case OwnCommandStarted(command=command):
                header = command_header(command, Opening.SOME)
                transcript.begin_output(header, glimpse=_OWN_LINES, sample=-_OWN_LINES)
            case TestsStarted(command=command):
                self._check = command_header(command)
                transcript.begin_output(
                    self._check, glimpse=_GLIMPSE, sample=-_LAST_LINES
                )
            case CommandOutput(text=text):
                if not transcript.is_growing:  # another block came in between
                    transcript.begin(BlockKind.OUTPUT)
                transcript.write(text)
            case TestsFinished():
                self._add(failure_blocks(event), above_live=True)
                if (check := self._check) is not None:
                    check.remark, check.remark_ink = check_remark(event)
                    transcript.settle()
                    transcript.lay_out(check)
                    self._check = None
                if (
                    event.verification is not Verification.PASSED
                    or event.reason != f"`{event.command}` passed"
                ):
                    self._say(event, Tone.GOOD, Tone.WARNING)
                else:
                    self._say(event, Tone.WARNING)
            case StepDiff():
                self._add(diff_blocks(event, layout))

    def _add(self, blocks: Iterable[Foldable], *, above_live: bool = False) -> None:
        for block in blocks:
            self._transcript.add_foldable(block, above_live=above_live)

    def _say(self, event: Event, *tones: Tone) -> None:
        """Say of an event what it says in one of these tones."""
        kinds = {
            Tone.PLAIN: BlockKind.NOTE,
            Tone.GOOD: BlockKind.GOOD,
            Tone.WARNING: BlockKind.WARNING,
        }
        for text, tone in describe(event, Face.SHELL):
            if tone in tones:
                self._transcript.add(kinds[tone], text)


def show_diff(
    transcript: Transcript, diff: str, opening: Opening = Opening.ALL
) -> None:
    """A unified diff as blocks, one a file."""
    for block in diff_blocks(StepDiff(0, "", diff), transcript.diff_layout):
        block.header.fold.opening = opening
        transcript.add_foldable(block)


def show_line(transcript: Transcript, line: str) -> None:
    """Show a line of the user; of a long one the beginning, and the rest folded."""
    count = line.strip().count("\n") + 1
    if count <= _MOST_ROWS and len(line) <= _MOST_CHARACTERS:
        transcript.add(BlockKind.USER, line)
        return
    header = FoldHeader(
        fold=Fold(opening=Opening.SOME),
        title=f"❯ {_one_line(line.strip()[:_MOST_CHARACTERS])}",
        remark=f"{count:,} line{'s' * (count != 1)}",
        remark_ink="remark",
        ink="user-text",
    )
    body = _output(line.strip())
    transcript.add_foldable(Foldable(header, body, line, sample=_SHOWN_ROWS))


def reply_block(text: str, what: str = "reply") -> Foldable:
    """A model's reply, or another text, folded to its first line."""
    first, _, rest = text.strip().partition("\n")
    count = text.strip().count("\n") + 1
    header = FoldHeader(
        fold=Fold(),
        title=_one_line(first),
        remark=f"{what}, {count:,} line{'s' * (count != 1)}",
        remark_ink="remark",
        ink="action",
    )
    return Foldable(header, _output(rest), text)


def tool_blocks(event: ToolFinished, layout: DiffLayout) -> Iterator[Foldable]:
    """The result of a tool's call."""
    use = _one_line(tool_use(event))
    if event.files:
        for file in event.files:
            yield _file_block(
                use if len(event.files) == 1 else f"edit {_one_line(file.path)}",
                file,
                layout,
            )
        return
    is_command = event.tool == "execute_command"
    remarks = [f"exit code {event.exit_code}"] if event.exit_code else []
    if event.problem and not event.exit_code:
        remarks.append("failed")
    if event.exit_code is not None or event.seconds >= 1:
        remarks.append(_in_seconds(event.seconds))
    body, texts = list[TranscriptLine](), list[str]()
    if is_command and (
        len(event.target) > _LONG_COMMAND or "\n" in event.target.strip()
    ):
        texts.append(event.target)
        body += _words(event.target, "action")
    if event.problem and not event.exit_code:
        texts.append(event.problem)
        body += _words(event.problem, "problem")
    if event.output:
        texts.append(event.output)
        body += _output(event.output)
    fold = Fold(Opening.SOME if event.problem else Opening.HEADER)
    header = FoldHeader(
        fold=fold,
        title=use,
        remark=" · ".join(remarks),
        remark_ink="problem" if event.problem else "remark",
        title_marks=_verb(use),
        ink="action",
    )
    yield Foldable(
        header,
        body,
        "\n".join((use, *texts)),
        sample=-_LAST_LINES if is_command else _LAST_LINES,
    )


def written_blocks(event: ChangesApplied, layout: DiffLayout) -> Iterator[Foldable]:
    """The files that were written, each with what is different in it: folded, as the
    reply has just shown its code.
    """
    verbs = dict.fromkeys(event.created, "create") | dict.fromkeys(
        event.deleted, "delete"
    )
    for file in event.files:
        title = f"{verbs.get(file.path, 'edit')} {_one_line(file.path)}"
        yield _file_block(title, file, layout, Opening.HEADER)


def net_block(event: ChangesApplied, layout: DiffLayout) -> Foldable:
    """All that a step wrote, where the calls by which it did were shown before."""
    files = [parsed for file in event.files for parsed in diff_files(file.diff, layout)]
    body = list[TranscriptLine]()
    for file in files:
        body += [*_words(f"{file.path}  {_counts(file)}", "action"), *file.lines]
    count = len(event.files)
    title = f"written: {count} file{'s' * (count != 1)}"
    header = FoldHeader(
        fold=Fold(),
        title=title,
        remark=lines_changed(event.files),
        remark_ink="remark",
        ink="action",
    )
    return Foldable(header, body, "\n".join([title, *(file.source for file in files)]))


def diff_blocks(event: StepDiff, layout: DiffLayout) -> Iterator[Foldable]:
    """The changes of a step, file by file, opened."""
    for file in diff_files(event.diff, layout):
        title = file.path or event.title
        header = FoldHeader(
            fold=Fold(Opening.ALL),
            title=title,
            remark=_counts(file),
            remark_ink="remark",
            ink="action strong",
        )
        yield Foldable(header, file.lines, file.source)


def review_block(text: str, diff: str, answer: str, layout: DiffLayout) -> Foldable:
    """Return a folded question about changes, with the user's answer; an empty answer
    means none.
    """
    asked, *about = text.split("\n")
    remark = f"Your answer: {_one_line(answer)}" if answer else "Not answered"
    body = _words("\n".join(about), "remark") if about else []
    for file in diff_files(diff, layout):
        body += [*_words(f"{file.path}  {_counts(file)}", "action"), *file.lines]
    title = _one_line(asked)
    header = FoldHeader(
        fold=Fold(),
        title=f"{title}  {remark}",
        title_marks=[
            (
                len(title) + 2,
                len(title) + 2 + len(remark),
                "remark" if answer else "warning",
            )
        ],
        ink="action strong",
    )
    return Foldable(header, body, f"{text}\n{diff}{remark}")


def failure_blocks(event: TestsFinished) -> Iterator[Foldable]:
    """The tests that failed, each with the failed assertion, and what its report says
    when it is opened.
    """
    for failure in event.failures:
        yield _failure_block(failure)


def command_header(command: str, opening: Opening = Opening.HEADER) -> FoldHeader:
    """Return the block of a running command. `opening` applies when it ends."""
    return FoldHeader(
        fold=Fold(opening),
        title=_one_line(f"$ {command}"),
        ink="action",
        title_marks=_verb("$ "),
        is_over=False,
    )


def check_remark(event: TestsFinished) -> tuple[str, Ink]:
    """Return the end of a check, `✗ 1 failed, 44 passed · 3 s`, and its ink."""
    outcome, ink = StepOutcome.FAILED, "problem"
    if event.verification is not None:
        outcome, ink = StepOutcome.from_verification(event.verification), "warning"
    if outcome is StepOutcome.PASSED:
        ink = "good"
    counts = {"failed": event.failed, "passed": event.passed, "skipped": event.skipped}
    words = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    words = words or _WITHOUT_TESTS[outcome]
    sign = OUTCOME_WORDS[outcome].sign
    return f"{sign} {words} · {_in_seconds(event.seconds)}", ink


_WITHOUT_TESTS = {
    StepOutcome.PASSED: "passed",
    StepOutcome.EXIT_CODE: "exit code 0",
    StepOutcome.OLD_FAILURES: "also failed before",
    StepOutcome.UNVERIFIED: "unverified",
    StepOutcome.FAILED: "failed",
}
"""The end of a check that reports no tests."""


def _in_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"


def _file_block(
    title: str, file: FileDiff, layout: DiffLayout, opening: Opening = Opening.SOME
) -> Foldable:
    parsed = diff_files(file.diff, layout)
    header = FoldHeader(
        fold=Fold(opening),
        title=title,
        remark=lines_changed([file]),
        remark_ink="remark",
        title_marks=_verb(title),
        ink="action",
    )
    return Foldable(
        header,
        [line for part in parsed for line in part.lines],
        f"{title}\n{file.diff}",
        _DIFF_LINES,
    )


def _failure_block(failure: FailedTest) -> Foldable:
    title = f"✗ {_one_line(failure.test)}" + (
        " (also failed before)" if failure.is_old else ""
    )
    said = _words(failure.message, "problem") if failure.message else []
    where = (
        _words(failure.place, "remark")
        if failure.place and failure.place not in failure.message
        else []
    )
    header = FoldHeader(
        fold=Fold(Opening.SOME),
        title=title,
        title_marks=[(0, 1, "problem")],
        ink="action" if failure.is_old else "action strong",
    )
    first = [*said, *where]
    return Foldable(
        header,
        [*first, *_output(failure.text)],
        f"{title}\n{failure.text or failure.message}",
        len(first),
    )


def _counts(file: DiffOfFile) -> str:
    return lines_changed([FileDiff(file.path, file.added, file.removed, "")])


def _one_line(text: str) -> str:
    return sanitize_for_display(" ".join(remove_escapes(text).split()))


def _verb(title: str) -> Sequence[Mark]:
    """The first word of a title is not what is looked for."""
    return [(0, len(title.partition(" ")[0]), "verb")]


def _words(text: str, ink: str) -> list[TranscriptLine]:
    gutter = (("    ", ""),)
    return [
        TranscriptLine(
            text=sanitize_for_display(remove_escapes(line)),
            ink=ink,
            gutter=gutter,
            hang=gutter,
        )
        for line in text.strip("\n").split("\n")
    ]


def _output(text: str) -> list[TranscriptLine]:
    lines = OutputLines()
    return [*lines.feed(text.rstrip("\n")), *lines.finish()] if text.strip() else []
