"""Open questions as a state machine, for screens and for lines: the words that are
possible now, their effect, and the user's decision.

A review first asks about all changes. The user can then decide file by file or hunk by
hunk; after the last part, cdd asks about all changes again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import Protocol

from msgspec import Struct

from cdd_agent.changes.review import FileReview, Review
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.question_events import Choice, Proposal
from cdd_agent.frontend import Decision
from cdd_agent.pattern import Pattern
from cdd_agent.process.editor import copies, editor_argv, read_back
from cdd_agent.process.run import run_in_foreground
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.wording.question_words import answers, part_in_words, question

YES, NO, FILES, HUNKS, EDIT, ALL, BACK, QUIT = (
    "yes",
    "no",
    "files",
    "hunks",
    "edit",
    "all",
    "back",
    "quit",
)

_LINE = Pattern(r"(\w+)(?:[\s,:]\s*(.*))?", re.DOTALL)


class Stage(Enum):
    WHOLE = auto()
    """The question is about all changes."""
    PART = auto()
    """The question is about one part."""
    EDITING = auto()
    DECIDED = auto()


class _Word(Struct, frozen=True):
    label: str
    """The word as shown among the answers."""
    effect: str


_WORDS: Mapping[tuple[Stage, str], _Word] = {
    (Stage.WHOLE, YES): _Word("apply", "apply the changes"),
    (Stage.WHOLE, NO): _Word(
        "reject (n REASON)",
        "reject; `n REASON` sends the model your reason, and it tries again",
    ),
    (Stage.WHOLE, FILES): _Word("per file", "choose file by file"),
    (Stage.WHOLE, HUNKS): _Word("per hunk", "choose hunk by hunk"),
    (Stage.WHOLE, EDIT): _Word(
        "edit", "edit the result in $EDITOR before it is applied"
    ),
    (Stage.WHOLE, ALL): _Word(
        "accept all in this run",
        "apply it, and all further changes of this run without asking",
    ),
    (Stage.PART, YES): _Word("apply", "apply this part"),
    (Stage.PART, NO): _Word(
        "leave out (n REASON)", "leave it out; `n REASON` sends the model your reason"
    ),
    (Stage.PART, EDIT): _Word("edit", "edit the resulting file in $EDITOR"),
    (Stage.PART, BACK): _Word("back", "the previous part"),
    (Stage.PART, QUIT): _Word("all changes", "back to all changes"),
}


class OpenQuestion(Protocol):
    """A question until the user has decided."""

    decision: Decision | None

    @property
    def stage(self) -> Stage: ...

    @property
    def choices(self) -> Mapping[str, Choice]:
        """The possible words now and their choices. The first letter of a word is its
        key.
        """
        ...

    @property
    def takes_reason(self) -> bool:
        """True if a reason may follow "no"."""
        ...

    @property
    def offered(self) -> str: ...

    def choose(self, word: str, reason: str = "") -> None:
        """Continue with one of the words."""
        ...


class AskedProposal:
    """A question with one stage, such as the question before a command runs."""

    takes_reason = False

    def __init__(self, proposal: Proposal) -> None:
        self.text = question(proposal)
        self.choices = answers(proposal)
        self.decision: Decision | None = None

    @property
    def stage(self) -> Stage:
        return Stage.WHOLE if self.decision is None else Stage.DECIDED

    @property
    def offered(self) -> str:
        return "  ".join(f"[{word[0]}] {word}" for word in self.choices)

    def choose(self, word: str, reason: str = "") -> None:
        self.decision = Decision(self.choices[word], reason=reason)


class Reviewing:
    """A review of changes in progress."""

    takes_reason = True

    def __init__(self, review: Review, *, may_edit: bool) -> None:
        self.review = review
        self.decision: Decision | None = None
        self._may_edit = may_edit
        self._is_editing = False
        self._parts: tuple[tuple[int, tuple[int, ...]], ...] = ()
        """The parts to ask about: the index of a file, and the indexes of its hunks."""
        self._place = 0
        self._drafts: dict[str, bytes] = {}
        """Unusable edits, by path: the next edit starts from them."""

    @property
    def stage(self) -> Stage:
        if self.decision is not None:
            return Stage.DECIDED
        if self._is_editing:
            return Stage.EDITING
        return Stage.PART if self._parts else Stage.WHOLE

    @property
    def text(self) -> str:
        if not self._parts:
            return question(self.review, diff=False)
        place, hunks = self._parts[self._place]
        part = part_in_words(self.review.files[place], hunks)
        return f"{self._place + 1} of {len(self._parts)}: {part}"

    @property
    def diff(self) -> str:
        """The diff of the part, or of all accepted changes."""
        if self._parts:
            place, hunks = self._parts[self._place]
            return self.review.files[place].diff(hunks)
        diffs = []
        for file in self.review.files:
            accepted = set(range(len(file.hunks))) - set(file.left_out)
            if accepted:
                diffs.append(file.diff(accepted))
        return "".join(diffs)

    @property
    def words(self) -> tuple[str, ...]:
        if self._parts:
            return self._words_of_part()
        files = self.review.files
        words = [NO]
        if not self.review.is_empty:
            words.insert(0, YES)
        if len(files) > 1:
            words.append(FILES)
        if len(self.review.parts) > len(files):
            words.append(HUNKS)
        if self._editable_places:
            words.append(EDIT)
        if self.review.step is not None and not self.review.is_empty:
            words.append(ALL)
        return tuple(words)

    def _words_of_part(self) -> tuple[str, ...]:
        words = [YES, NO]
        if self._parts[self._place][0] in self._editable_places:
            words.append(EDIT)
        if self._place:
            words.append(BACK)
        return (*words, QUIT)

    @property
    def choices(self) -> dict[str, Choice]:
        agreeing = {YES: Choice.YES, ALL: Choice.ALWAYS}
        return {word: agreeing.get(word, Choice.NO) for word in self.words}

    @property
    def offered(self) -> str:
        labels = [
            f"[{word[0]}] {_WORDS[self.stage, word].label}" for word in self.words
        ]
        return "   ".join(labels)

    @property
    def keys(self) -> str:
        """Further keys, for screens."""
        if not self._parts:
            return "PgUp PgDn scroll · F6 side by side · Esc reject"
        back = " · Ctrl+↑ back" if self._place else ""
        return f"→ apply · ← leave out{back} · Esc all changes"

    @property
    def legend(self) -> str:
        """The effect of each word."""
        lines = [
            f"  {word[0]}  {_WORDS[self.stage, word].effect}" for word in self.words
        ]
        return "\n".join(lines)

    @property
    def editable(self) -> dict[str, bytes]:
        """The contents for the editor, by path."""
        places = [self._parts[self._place][0]] if self._parts else self._editable_places
        contents = {}
        for place in places:
            file = self.review.files[place]
            content = file.copy_for_editor
            if content is not None:
                contents[file.path] = self._drafts.get(file.path, content)
        return contents

    def choose(self, word: str, reason: str = "") -> None:
        """Continue with one of `words`. After `edit`, call `end_edit` or
        `cancel_edit`.
        """
        _MOVES[self.stage, word](self, reason)

    def end_edit(self, contents: Mapping[str, bytes]) -> None:
        """Propose the contents that the user saved. Raises `BadInput` or `TextNotHeld`,
        and restores the question then.
        """
        self._is_editing = False
        for place, file in enumerate(self.review.files):
            if file.path in contents:
                self._drafts[file.path] = contents[file.path]
                edited = file.edit_copy(contents[file.path])
                del self._drafts[file.path]
                self.review = self.review.with_file(place, edited)
        # The hunks have changed.
        self._ask_about_all()

    def cancel_edit(self) -> None:
        """Return to the question before the edit."""
        self._is_editing = False

    def _accept_all(self, reason: str = "") -> None:
        self.decision = Decision(Choice.YES, self.review)

    def _accept_run(self, reason: str = "") -> None:
        self.decision = Decision(Choice.ALWAYS, self.review)

    def _reject_all(self, reason: str = "") -> None:
        """If the user rejected every part, the reasons of the parts apply."""
        reasons = []
        for file in self.review.files:
            reasons += [text for text in file.left_out.values() if text]
        if not reason and self.review.is_empty and reasons:
            self.decision = Decision(Choice.YES, self.review)
        else:
            self.decision = Decision(Choice.NO, self.review, reason)

    def _ask_by_file(self, reason: str = "") -> None:
        parts = []
        for place, file in enumerate(self.review.files):
            if file.hunks:
                parts.append((place, tuple(range(len(file.hunks)))))
        self._parts = tuple(parts)

    def _ask_by_hunk(self, reason: str = "") -> None:
        self._parts = tuple((place, (hunk,)) for place, hunk in self.review.parts)

    def _ask_about_all(self, reason: str = "") -> None:
        self._parts, self._place = (), 0

    def _go_back(self, reason: str = "") -> None:
        self._place -= 1

    def _open_editor(self, reason: str = "") -> None:
        self._is_editing = True

    def _accept_part(self, reason: str = "") -> None:
        self._mark_part(lambda file, hunks: file.accept(hunks))

    def _leave_part_out(self, reason: str = "") -> None:
        self._mark_part(lambda file, hunks: file.leave(hunks, reason))

    def _mark_part(
        self, mark: Callable[[FileReview, tuple[int, ...]], FileReview]
    ) -> None:
        place, hunks = self._parts[self._place]
        marked = mark(self.review.files[place], hunks)
        self.review = self.review.with_file(place, marked)
        self._place += 1
        if self._place == len(self._parts):
            self._ask_about_all()

    @property
    def _editable_places(self) -> list[int]:
        if not self._may_edit:
            return []
        return [
            place
            for place, file in enumerate(self.review.files)
            if file.changes and file.result is not None
        ]


_MOVES: Mapping[tuple[Stage, str], Callable[[Reviewing, str], None]] = {
    (Stage.WHOLE, YES): Reviewing._accept_all,
    (Stage.WHOLE, ALL): Reviewing._accept_run,
    (Stage.WHOLE, NO): Reviewing._reject_all,
    (Stage.WHOLE, FILES): Reviewing._ask_by_file,
    (Stage.WHOLE, HUNKS): Reviewing._ask_by_hunk,
    (Stage.WHOLE, EDIT): Reviewing._open_editor,
    (Stage.PART, YES): Reviewing._accept_part,
    (Stage.PART, NO): Reviewing._leave_part_out,
    (Stage.PART, EDIT): Reviewing._open_editor,
    (Stage.PART, BACK): Reviewing._go_back,
    (Stage.PART, QUIT): Reviewing._ask_about_all,
}
"""The moves of each stage. Any other word raises `KeyError`."""


def describe_decision(decision: Decision) -> str:
    if decision.choice not in (Choice.YES, Choice.ALWAYS):
        return f"no: {decision.reason}" if decision.reason else "no"
    review = decision.review
    parts = len(review.parts)
    accepted = parts - sum(len(file.left_out) for file in review.files)
    words = ["yes"]
    if decision.choice is Choice.ALWAYS:
        words = ["yes, and all further changes of this run"]
    if accepted < parts:
        words.append(f"{accepted} of {parts} parts")
    if review.edited:
        words.append("edited")
    return ", ".join(words)


def parse_line(line: str, open_question: OpenQuestion) -> tuple[str, str]:
    """Return the word of a line, typed as its letter or in full, and the reason after
    "no". Both are empty if the line is not an answer.
    """
    text = line.strip()
    reason = ""
    if open_question.takes_reason:
        match = _LINE.fullmatch(text)
        if match is None:
            return "", ""
        text, reason = match[1], (match[2] or "").strip()
    for word in open_question.choices:
        if text.lower() in (word, word[0]):
            return ("", "") if reason and word != NO else (word, reason)
    return "", ""


async def approve_in_words(
    proposal: Proposal,
    say: Callable[[str], None],
    answer: Callable[[str], Awaitable[str]],
) -> Choice:
    """Ask about a proposal whose text was printed, by lines. `answer` shows a prompt
    and returns the next line.
    """
    asked = AskedProposal(proposal)
    while asked.decision is None:
        word, _ = parse_line(await answer(f"{asked.offered} > "), asked)
        if word:
            asked.choose(word)
        else:
            say("Type one of the letters.")
    return asked.decision.choice


async def review_in_words(
    review: Review,
    say: Callable[[str], None],
    answer: Callable[[str], Awaitable[str]],
    *,
    may_edit: bool,
) -> Decision:
    """Review changes by lines. `answer` shows a prompt and returns the next line.
    `may_edit`: an editor can open, because the user is at the terminal.
    """
    reviewing = Reviewing(review, may_edit=may_edit)
    is_new = True
    while reviewing.decision is None:
        if is_new:
            parts = (reviewing.text, reviewing.diff.rstrip("\n"), reviewing.legend)
            say("\n".join(parts))
        line = await answer(f"{reviewing.offered} > ")
        word, reason = parse_line(line, reviewing)
        is_new = bool(word)
        if not word:
            say("Type one of the letters. Only `n` can be followed by a reason.")
            continue
        reviewing.choose(word, reason)
        if reviewing.stage is Stage.EDITING:
            try:
                reviewing.end_edit(await _edit(reviewing.editable))
            except CddError as error:
                reviewing.cancel_edit()
                say(" ".join(filter(None, (error.message, error.hint))))
    return reviewing.decision


async def _edit(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Raise `BadInput` if the editor cannot start or fails."""
    argv = editor_argv(os.environ)
    with copies(files) as places:
        command = [*argv, *map(str, places.values())]
        try:
            code = await in_thread(lambda: run_in_foreground(command), name="editor")
        except OSError as error:
            raise BadInput(
                f"{argv[0]} could not be started: {error.strerror or error}",
                refusal=Refusal.NO_EDITOR,
            ) from error
        if code:
            raise BadInput(
                f"{argv[0]} ended with exit code {code}, so your edit was not used",
                refusal=Refusal.NO_EDITOR,
            )
        return read_back(places)
