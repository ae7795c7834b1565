"""The code that a model sees, and why: what a text is about, the last prompt, a
person's choice of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cdd_agent.context.finder import CodeFinder
from cdd_agent.context.places import RankedFile
from cdd_agent.context.query import Query
from cdd_agent.dialogue.code_context import CodeContext, packed
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.files.read import file_mode, locate
from cdd_agent.redaction import Redactor
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.session import Session

_NEXT = 10
"""Files that are named as those that rank next."""


class FoundCode(Struct, frozen=True):
    """The code that a text is about, as a model would see it."""

    query: str
    most: int
    ranked: Sequence[RankedFile]
    shown: CodeContext

    @property
    def used(self) -> int:
        return sum(code.tokens for code in self.shown.files)

    def to_json(self) -> dict[str, Any]:
        seen = {code.path: code for code in self.shown.files}
        files = []
        for file in self.ranked:
            code = seen.get(file.path)
            files.append(
                {
                    "path": file.path,
                    "reasons": list(file.reasons),
                    "named": file.is_named,
                    "shown": "no" if code is None else code.form,
                    "lines": (
                        [list(lines) for lines in code.lines or ()] if code else []
                    ),
                    "tokens": code.tokens if code else 0,
                    "text": code.text if code else "",
                }
            )
        return {
            "query": self.query,
            "most_tokens": self.most,
            "tokens": self.used,
            "files": files,
        }

    def as_text(self) -> str:
        """All of it in Markdown: which files and why, then what a model would see of
        them.
        """
        reasons = {file.path: "; ".join(file.reasons) for file in self.ranked}
        if not self.ranked:
            return "Nothing in the project is about that.\n"
        lines = [
            f"- {code.name}: {code.tokens:,} tokens; {reasons[code.path]}"
            for code in self.shown.files
        ]
        seen = {code.path for code in self.shown.files}
        more = [
            f"- {file.path}: {reasons[file.path]}"
            for file in self.ranked
            if file.path not in seen
        ][:_NEXT]
        shown = (
            f"## Shown: about {self.used:,} of {self.most:,} tokens\n\n"
            + "\n".join(lines)
        )
        none = f"No part of what was found has room in so few tokens: {self.most:,}."
        parts = [shown if lines else none]
        parts += ["## Next, and not shown\n\n" + "\n".join(more)] if more else []
        parts += (
            [
                "## As a model sees it\n\n"
                + "\n\n".join(code.text for code in self.shown.files)
            ]
            if lines
            else []
        )
        return "\n\n".join(parts) + "\n"


def find_code(
    root: Path, finder: CodeFinder, words: str, tokens: int, typed: Sequence[str] = ()
) -> FoundCode:
    """The code that `words` are about, in so many tokens; the files and folders that
    were `typed` beside them first. It takes its time: to be called in a thread. Raises
    `CddError` for what is not in the project.
    """
    pinned = [_to_pin(root, path) for path in typed]
    ranked = finder.rank(Query(words, pinned=frozenset(pinned)))
    known = {file.path for file in ranked}
    unknown = [
        path
        for path in dict.fromkeys(pinned)
        if path not in known and (root / path).is_file()
    ]
    ranked = [*(RankedFile(path, ("pinned",), True, ()) for path in unknown), *ranked]
    return FoundCode(
        words, tokens, ranked, packed(root, ranked, finder.outline, tokens)
    )


def is_words(root: Path, typed: str) -> bool:
    """Whether an argument is not meant as a path: nothing is there of this name, and it
    has a space, or neither a dot nor a slash.
    """
    try:
        is_there = (root / typed).exists() or Path(typed).exists()
    except (OSError, ValueError):
        is_there = False
    return not is_there and (
        any(map(str.isspace, typed)) or not any(mark in typed for mark in "./\\")
    )


def chosen(root: Path, now: Choices, typed: Sequence[str]) -> Choices:
    """A person's choice with `+src/app.py` and `-docs/` taken into account, each once
    more with the other sign to take it back. Raises `CddError` for what is not in the
    project.
    """
    for word in typed:
        now = (
            now.pin(_expect_no_hidden_folder(root, word[1:]))
            if word[0] == "+"
            else now.leave_out(_known(root, word[1:]))
        )
    return now


def _known(root: Path, typed: str) -> str:
    place = locate(root, typed)
    if not place.parts:
        raise BadInput(
            "All of the project is neither pinned nor left out",
            hint="Name a file or a folder.",
        )
    file_mode(root, place)
    return str(place)


def _to_pin(root: Path, typed: str) -> str:
    path = _known(root, typed)
    if why := HiddenFiles(root).why(path):
        raise BadInput(f"{path} is hidden from models: {why}")
    return path


def _expect_no_hidden_folder(root: Path, typed: str) -> str:
    """Return the path of a file or folder to pin. A hidden file may be pinned: the user
    names it, and so shows it to models.
    """
    path = _known(root, typed)
    why = HiddenFiles(root).why_by_name(path)
    if why and (root / path).is_dir():
        raise BadInput(
            f"{path} is hidden from models: {why}", hint="Name its files one by one."
        )
    return path


def last_prompt(session: Session) -> str:
    """The parts of the prompt that was made last, here or for the ticket that is worked
    on, with the person's choice; in Markdown. Empty where there is neither.
    """
    made, parts = session.last_prompt, list[str]()
    slug, choices = session.last_ticket, None
    if slug is not None:
        record = RunRecord.of_ticket(session.project.tickets.find(slug), Redactor())
        choices = record.choices
        if made is None:
            made = LoggedRun.read(record.log).last_prompt
    if made is not None:
        whose = f"of step {made.label}" if made.step is not None else "to the model"
        rows = [
            f"| {_cell(part.name)} | {part.tokens:,} | {_cell(part.why)} |"
            for part in made.parts
        ]
        total = sum(part.tokens for part in made.parts)
        head = (
            f"The last prompt {whose} had about {total:,} tokens:\n\n| part | tokens |"
            " why |\n|---|---:|---|"
        )
        parts.append("\n".join((head, *rows)))
        if made.left_out:
            parts.append(
                "Left out, for want of room:"
                f" {', '.join(map(sanitize_for_display, made.left_out))}."
            )
    if choices is not None and (choices.pinned or choices.without):
        parts.append(choices_in_words(choices))
    return "\n\n".join(parts)


def choices_in_words(choices: Choices) -> str:
    if not choices.pinned and not choices.without:
        return "Nothing is pinned or left out."
    pinned = (
        f"Pinned: {', '.join(f'`{path}`' for path in choices.pinned)}."
        if choices.pinned
        else ""
    )
    without = (
        f"Left out: {', '.join(f'`{path}`' for path in choices.without)}."
        if choices.without
        else ""
    )
    return " ".join(filter(None, (pinned, without, "The other sign takes one back.")))


def record_choices(session: Session, typed: Sequence[str]) -> str:
    """Keep a person's choice with the run that is worked on; what it is now, in words.
    Raises `CddError`.
    """
    if session.last_ticket is None:
        raise BadInput(
            "No ticket is open: files are pinned for its run",
            hint="`/exec SLUG` opens one.",
        )
    root, ticket = (
        session.project.root,
        session.project.tickets.find(session.last_ticket),
    )
    record = RunRecord.of_ticket(ticket, Redactor())
    choices = chosen(root, record.choices, typed)
    record.prepare()
    record.save_choices(choices)
    words = f"For the prompts of {ticket.slug} from now on. {choices_in_words(choices)}"
    hidden = HiddenFiles(root)
    for path in choices.pinned:
        if why := hidden.why(path):
            words += f" Models see {path} now, although {why}."
    return words


def _cell(text: str) -> str:
    return sanitize_for_display(text).replace("|", "\\|")
