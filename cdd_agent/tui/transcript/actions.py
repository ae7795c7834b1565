"""Actions as blocks that fold: tool calls, written files, checks, failed tests."""

from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatchmethod

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.events.dialogue_events import ToolFinished
from cdd_agent.events.notices import Tone
from cdd_agent.events.shell_events import OwnCommandStarted
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    CommandOutput,
    FailedTest,
    StepDiff,
    StepStarted,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.stream import Event
from cdd_agent.text.sanitize import remove_escapes, sanitize_for_display
from cdd_agent.tickets.outcome_words import OUTCOME_WORDS
from cdd_agent.tickets.status import StepOutcome, Verification
from cdd_agent.tui.transcript.blocks import BLOCKS, BlockKind
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
"""Initial lines of a diff."""
_NET_LINES = 200
"""Initial lines of a file's changes in a step."""
_LAST_LINES = 8
"""Lines of a partly opened output."""
_LONG_COMMAND = 60
"""Characters of a command from which it is repeated below its header."""
_GLIMPSE = 4
"""Lines of a running check's output."""
_MOST_ROWS, _MOST_CHARACTERS = 40, 4_000
"""Lines and characters of the user's lines; longer ones are folded."""
_SHOWN_ROWS = 10
"""Initial lines of a folded line."""
_OWN_LINES = 20
"""Lines of the output of a user's command, which the user wants to see."""


class ActionBlocks:
    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._check: FoldHeader | None = None
        self._shown_paths: set[str] = set()
        """Files whose changes were shown with their tool calls."""
        self._folds: list[Fold] = []

    @singledispatchmethod
    def show(self, event: Event) -> bool:
        """Show an event. False if it is not an action, and needs only text."""
        del event
        return False

    @show.register
    def _show_tool(self, event: ToolFinished) -> bool:
        self._shown_paths |= {file.path for file in event.files}
        blocks = list(tool_blocks(event, self._layout))
        if event.files:
            self._folds += [block.header.fold for block in blocks]
        self._add(blocks)
        return True

    @show.register
    def _show_changes(self, event: ChangesApplied) -> bool:
        if not event.files:
            self._say(event, Tone.PLAIN)
        elif event.step is not None:
            self._show_net(written_blocks(event, self._layout))
        elif not self._shown_paths.issuperset(file.path for file in event.files):
            self._add(written_blocks(event, self._layout))
        self._shown_paths.clear()
        self._say(event, Tone.WARNING)
        return True

    @show.register
    def _show_diff(self, event: StepDiff) -> bool:
        self._add(diff_blocks(event, self._layout))
        return True

    @show.register
    def _show_own_command(self, event: OwnCommandStarted) -> bool:
        header = command_header(event.command, Opening.SOME)
        self._transcript.begin_output(header, glimpse=_OWN_LINES, sample=-_OWN_LINES)
        return True

    @show.register
    def _show_start_of_check(self, event: TestsStarted) -> bool:
        self._check = command_header(event.command)
        self._transcript.begin_output(
            self._check, glimpse=_GLIMPSE, sample=-_LAST_LINES
        )
        return True

    @show.register
    def _show_output(self, event: CommandOutput) -> bool:
        # Another block may have come in between.
        if not self._transcript.is_growing:
            self._transcript.begin(BlockKind.OUTPUT)
        self._transcript.write(event.text)
        return True

    @show.register
    def _show_end_of_check(self, event: TestsFinished) -> bool:
        self._add(failure_blocks(event), above_live=True)
        if (check := self._check) is not None:
            check.remark, check.remark_ink = check_remark(event)
            self._transcript.settle()
            self._transcript.lay_out(check)
            self._check = None
        is_plain_pass = (
            event.verification is Verification.PASSED
            and event.reason == f"`{event.command}` passed"
        )
        if is_plain_pass:
            self._say(event, Tone.WARNING)
        else:
            self._say(event, Tone.GOOD, Tone.WARNING)
        return True

    @show.register
    def _fold_attempt(self, event: StepStarted | AttemptFailed) -> bool:
        if isinstance(event, AttemptFailed):
            self._transcript.fold_replies(in_words=True)
            self._transcript.fold(self._folds)
        self._folds.clear()
        self._transcript.forget_replies()
        return False

    def show_restored(self, event: StepDiff) -> None:
        self._show_net(diff_blocks(event, self._layout))

    def _show_net(self, blocks: Iterable[Foldable]) -> None:
        self._transcript.fold_replies()
        self._transcript.fold(self._folds)
        shown = list(blocks)
        self._folds = [block.header.fold for block in shown]
        self._add(shown)

    @property
    def _layout(self) -> DiffLayout:
        return self._transcript.diff_layout

    def _add(self, blocks: Iterable[Foldable], *, above_live: bool = False) -> None:
        for block in blocks:
            self._transcript.add_foldable(block, above_live=above_live)

    def _say(self, event: Event, *tones: Tone) -> None:
        for text, tone in describe(event, Face.SHELL):
            if tone in tones:
                self._transcript.add(BLOCKS[tone], text)


def show_diff(
    transcript: Transcript, diff: str, opening: Opening = Opening.ALL
) -> None:
    for block in diff_blocks(StepDiff(0, "", diff), transcript.diff_layout):
        block.header.fold.opening = opening
        transcript.add_foldable(block)


def show_line(transcript: Transcript, line: str) -> None:
    """Show the user's line. A long one is folded after its beginning."""
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


def text_block(text: str, what: str) -> Foldable:
    """Return a long text, folded to its first line."""
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


def reply_block(text: str, transcript: Transcript) -> Foldable:
    reply = transcript.make_reply()
    body = [*reply.feed(text.strip("\n")), *reply.finish()]
    return Foldable(reply.make_header(), body, text)


def tool_blocks(event: ToolFinished, layout: DiffLayout) -> Iterator[Foldable]:
    """Return a tool call: its files' diffs, or its output."""
    title = _one_line(tool_use(event))
    if not event.files:
        yield _output_block(event, title)
    elif len(event.files) == 1:
        yield _file_block(title, event.files[0], layout)
    else:
        for file in event.files:
            yield _file_block(f"edit {_one_line(file.path)}", file, layout)


def _output_block(event: ToolFinished, title: str) -> Foldable:
    is_command = event.tool == "execute_command"
    parts = []
    # The header may cut a long command off.
    if is_command and _is_long_command(event.target):
        parts.append((event.target, _words(event.target, "action")))
    # An exit code explains itself.
    if event.problem and not event.exit_code:
        parts.append((event.problem, _words(event.problem, "problem")))
    if event.output:
        parts.append((event.output, _output(event.output)))
    text, body = title, list[TranscriptLine]()
    for part_text, part_lines in parts:
        text += f"\n{part_text}"
        body += part_lines
    header = FoldHeader(
        fold=Fold(Opening.SOME if event.problem else Opening.HEADER),
        title=title,
        remark=_tool_remark(event),
        remark_ink="problem" if event.problem else "remark",
        title_marks=_verb(title),
        ink="action",
    )
    sample = -_LAST_LINES if is_command else _LAST_LINES
    return Foldable(header, body, text, sample=sample)


def _is_long_command(command: str) -> bool:
    return len(command) > _LONG_COMMAND or "\n" in command.strip()


def _tool_remark(event: ToolFinished) -> str:
    remarks = []
    if event.exit_code:
        remarks.append(f"exit code {event.exit_code}")
    elif event.problem:
        remarks.append("failed")
    if event.exit_code is not None or event.seconds >= 1:
        remarks.append(_in_seconds(event.seconds))
    return " · ".join(remarks)


def written_blocks(event: ChangesApplied, layout: DiffLayout) -> Iterator[Foldable]:
    verbs = dict.fromkeys(event.created, "create") | dict.fromkeys(
        event.deleted, "delete"
    )
    for file in event.files:
        title = f"{verbs.get(file.path, 'edit')} {_one_line(file.path)}"
        yield _file_block(title, file, layout, _NET_LINES)


def diff_blocks(event: StepDiff, layout: DiffLayout) -> Iterator[Foldable]:
    """Return the changes of a step, with an open block for each file."""
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
    """Return a folded question about changes. An empty answer means there was none."""
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
    """Yield a block for each failed test: the assertion, and the report when opened."""
    for failure in event.failures:
        yield _failure_block(failure)


def command_header(command: str, opening: Opening = Opening.HEADER) -> FoldHeader:
    """Return the header of a running command. `opening` applies when it ends."""
    return FoldHeader(
        fold=Fold(opening),
        title=_one_line(f"$ {command}"),
        ink="action",
        title_marks=_verb("$ "),
        is_over=False,
    )


def check_remark(event: TestsFinished) -> tuple[str, Ink]:
    """Return the end of a check, such as `✗ 1 failed, 44 passed · 3 s`, and its ink."""
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


def _in_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"


def _file_block(
    title: str, file: FileDiff, layout: DiffLayout, sample: int = _DIFF_LINES
) -> Foldable:
    """Return a file's diff, open to its first `sample` lines."""
    parsed = diff_files(file.diff, layout)
    header = FoldHeader(
        fold=Fold(Opening.SOME),
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
        sample,
    )


def _failure_block(failure: FailedTest) -> Foldable:
    title = f"✗ {_one_line(failure.test)}" + (
        " (also failed before)" if failure.is_old else ""
    )
    words = _words(failure.message, "problem") if failure.message else []
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
    first = [*words, *where]
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
