"""A review of changes as a conversation: what is shown now, by which words it goes on,
and the answer at its end.

The same in every face: the shell shows it with its diffs and takes letters, without a
screen it is printed and takes lines. First all is asked about at once; by file or by
hunk, each part is taken or left out, and then all once more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping

from cdd_agent.changes.review import Review
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.question_events import Choice
from cdd_agent.frontend import Decision
from cdd_agent.process.editor import copies, editor_argv, read_back
from cdd_agent.process.run import run_in_foreground
from cdd_agent.threads import in_thread
from cdd_agent.wording.question_words import part_in_words, question

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

_LINE = re.compile(r"(\w+)(?:[\s,:]\s*(.*))?", re.DOTALL)
_LABELS = {
    YES: "apply",
    NO: "reject (n REASON)",
    FILES: "per file",
    HUNKS: "per hunk",
    EDIT: "edit",
    ALL: "accept all in this run",
}
_LABELS_OF_PART = {
    YES: "apply",
    NO: "leave out (n REASON)",
    EDIT: "edit",
    BACK: "back",
    QUIT: "all changes",
}
_LEGEND = {
    YES: "apply the changes",
    NO: "reject; `n REASON` sends the model your reason, and it tries again",
    FILES: "choose file by file",
    HUNKS: "choose hunk by hunk",
    EDIT: "edit the result in $EDITOR before it is applied",
    ALL: "apply it, and all further changes of this run without asking",
}
_LEGEND_OF_PART = {
    YES: "apply this part",
    NO: "leave it out; `n REASON` sends the model your reason",
    EDIT: "edit the resulting file in $EDITOR",
    BACK: "the previous part",
    QUIT: "back to all changes",
}


def answer_in_words(answer: Decision) -> str:
    """A person's answer, in short."""
    if answer.choice not in (Choice.YES, Choice.ALWAYS):
        return f"no: {answer.reason}" if answer.reason else "no"
    parts = len(answer.review.parts)
    taken = parts - sum(len(file.left_out) for file in answer.review.files)
    words = [
        "yes"
        if answer.choice is Choice.YES
        else "yes, and all further changes of this run"
    ]
    words += [f"{taken} of {parts} parts"] if taken < parts else []
    words += ["edited"] if answer.review.edited else []
    return ", ".join(words)


class Reviewing:
    """One review under way."""

    def __init__(self, review: Review, *, may_edit: bool) -> None:
        self.review = review
        self.answer: Decision | None = None
        """When it is over."""
        self._may_edit = may_edit
        self._parts: tuple[tuple[int, tuple[int, ...]], ...] = ()
        """Those that are gone through one by one: the place of a file, and of its
        hunks.
        """
        self._place = 0
        self._drafts: dict[str, bytes] = {}
        """What the editor wrote and could not be taken, by path."""

    @property
    def is_part(self) -> bool:
        """One part is asked about, not all of it."""
        return bool(self._parts)

    @property
    def text(self) -> str:
        """The question, without the diff."""
        if not self._parts:
            return question(self.review, diff=False)
        place, hunks = self._parts[self._place]
        return (
            f"{self._place + 1} of {len(self._parts)}:"
            f" {part_in_words(self.review.files[place], hunks)}"
        )

    @property
    def diff(self) -> str:
        """Its subject: one part, or all that is taken."""
        if self._parts:
            place, hunks = self._parts[self._place]
            return self.review.files[place].diff(hunks)
        taken = [
            (file, set(range(len(file.hunks))) - set(file.left_out))
            for file in self.review.files
        ]
        return "".join(file.diff(hunks) for file, hunks in taken if hunks)

    @property
    def words(self) -> tuple[str, ...]:
        """The answers that make sense now; the first letter of each is its key."""
        if self._parts:
            place, _ = self._parts[self._place]
            edit = (EDIT,) if place in self._editable else ()
            return (YES, NO, *edit, *((BACK,) if self._place else ()), QUIT)
        files = self.review.files
        words = [NO] if self.review.is_empty else [YES, NO]
        words += [FILES] if len(files) > 1 else []
        words += [HUNKS] if len(self.review.parts) > len(files) else []
        words += [EDIT] if self._editable else []
        words += (
            [ALL] if self.review.step is not None and not self.review.is_empty else []
        )
        return tuple(words)

    @property
    def choices(self) -> dict[str, Choice]:
        """The words, and which of them agree to what is shown."""
        agreeing = {YES: Choice.YES, ALL: Choice.ALWAYS}
        return {word: agreeing.get(word, Choice.NO) for word in self.words}

    @property
    def offered(self) -> str:
        """The words with their keys, in a line."""
        labels = _LABELS_OF_PART if self._parts else _LABELS
        return "   ".join(f"[{word[0]}] {labels[word]}" for word in self.words)

    @property
    def keys(self) -> str:
        """The other keys that work on a screen."""
        if self._parts:
            return (
                f"→ apply · ← leave out{' · Ctrl+↑ back' * bool(self._place)} · Esc"
                " all changes"
            )
        return "PgUp PgDn scroll · F6 side by side · Esc reject"

    @property
    def legend(self) -> str:
        """The effect of each of the words."""
        meanings = _LEGEND_OF_PART if self._parts else _LEGEND
        return "\n".join(f"  {word[0]}  {meanings[word]}" for word in self.words)

    @property
    def editable(self) -> dict[str, bytes]:
        """The results that the editor gets now, by their paths."""
        places = [self._parts[self._place][0]] if self._parts else self._editable
        files = [self.review.files[place] for place in places]
        return {
            file.path: self._drafts.get(file.path, content)
            for file in files
            if (content := file.copy_for_editor) is not None
        }

    def say(self, word: str, reason: str = "") -> None:
        """Go on by one of the words, but `edit`, whose end is `edited`."""
        match word:
            case "files":
                whole = (
                    (place, tuple(range(len(file.hunks))))
                    for place, file in enumerate(self.review.files)
                )
                self._parts = tuple(part for part in whole if part[1])
            case "hunks":
                self._parts = tuple(
                    (place, (hunk,)) for place, hunk in self.review.parts
                )
            case "quit":
                self._parts, self._place = (), 0
            case "back":
                self._place -= 1
            case "yes" | "no" if self._parts:
                place, hunks = self._parts[self._place]
                file = self.review.files[place]
                marked = (
                    file.accept(hunks) if word == YES else file.leave(hunks, reason)
                )
                self.review = self.review.with_file(place, marked)
                self._place += 1
                if self._place == len(self._parts):
                    self._parts, self._place = (), 0
            case "no":
                self.answer = self._refused(reason)
            case _:
                self.answer = Decision(
                    Choice.ALWAYS if word == ALL else Choice.YES, self.review
                )

    def edited(self, contents: Mapping[str, bytes]) -> None:
        """The person has left the editor; what they made of a result is proposed in its
        place. Raises `BadInput` or `TextNotHeld`.
        """
        for place, file in enumerate(self.review.files):
            if file.path in contents:
                self._drafts[file.path] = contents[file.path]
                edited = file.edit_copy(contents[file.path])
                del self._drafts[file.path]
                self.review = self.review.with_file(place, edited)
        if self._parts:  # the hunks are others now
            self._parts, self._place = (), 0

    def _refused(self, reason: str) -> Decision:
        """Where all was left out part by part, the reasons are those of the parts."""
        reasons = [
            why for file in self.review.files for why in file.left_out.values() if why
        ]
        if not reason and self.review.is_empty and reasons:
            return Decision(Choice.YES, self.review)
        return Decision(Choice.NO, self.review, reason)

    @property
    def _editable(self) -> list[int]:
        """The places of the files that the editor can have."""
        files = self.review.files if self._may_edit else ()
        return [
            place
            for place, file in enumerate(files)
            if file.changes and file.result is not None
        ]


def parsed(line: str, words: tuple[str, ...]) -> tuple[str, str]:
    """A line as one of the words, by its letter or in full, and the reason behind a no;
    no word where it is none.
    """
    found = _LINE.fullmatch(line.strip())
    typed, reason = (found[1].lower(), (found[2] or "").strip()) if found else ("", "")
    word = next((word for word in words if typed in (word, word[0])), "")
    return ("", "") if reason and word != NO else (word, reason)


async def review_in_words(
    review: Review,
    say: Callable[[str], None],
    answer: Callable[[str], Awaitable[str]],
    *,
    may_edit: bool,
) -> Decision:
    """A review by lines: `say` prints, `answer` gives a prompt and returns the line
    that comes. Where the terminal is a person's, they `may_edit` in it.
    """
    reviewing = Reviewing(review, may_edit=may_edit)
    is_new = True
    while reviewing.answer is None:
        words = reviewing.words
        if is_new:
            say(
                "\n".join(
                    (reviewing.text, reviewing.diff.rstrip("\n"), reviewing.legend)
                )
            )
        word, reason = parsed(await answer(f"{reviewing.offered} > "), words)
        is_new = bool(word)
        if word == EDIT:
            try:
                reviewing.edited(await _edited(reviewing.editable))
            except CddError as error:
                say(" ".join(filter(None, (error.message, error.hint))))
        elif word:
            reviewing.say(word, reason)
        else:
            say("Type one of the letters. Only `n` can be followed by a reason.")
    return reviewing.answer


async def _edited(files: Mapping[str, bytes]) -> dict[str, bytes]:
    argv = editor_argv(os.environ)
    with copies(files) as places:
        try:
            code = await in_thread(
                lambda: run_in_foreground([*argv, *map(str, places.values())]),
                name="editor",
            )
        except OSError as error:
            raise BadInput(
                f"{argv[0]} could not be started: {error.strerror or error}"
            ) from error
        if code:
            raise BadInput(
                f"{argv[0]} ended with exit code {code}, so your edit was not used"
            )
        return read_back(places)
