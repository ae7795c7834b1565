"""`/context` and `cdd context`: the parts of the last prompt, code for some words, and
pinned or excluded files.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cdd_agent.context.choosing import ChosenCode, choose_code
from cdd_agent.context.code_text import CodeReader
from cdd_agent.context.finder import CodeFinder
from cdd_agent.context.places import RankedFile
from cdd_agent.context.query import Query
from cdd_agent.engine.choices import Choices
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.events.dialogue_events import PromptMade
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.files.read import file_mode, locate
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.session import Session
from cdd_agent.text.redaction import Redactor
from cdd_agent.text.sanitize import sanitize_for_display

_MOST_NEXT = 10
"""Maximum files that are listed but not shown."""


class FoundCode(Struct, frozen=True):
    query: str
    most: int
    """In tokens."""
    ranked: Sequence[RankedFile]
    chosen: ChosenCode

    def to_json(self) -> dict[str, Any]:
        shown = {code.path: code for code in self.chosen.files}
        files = []
        for file in self.ranked:
            code = shown.get(file.path)
            lines = code.lines if code and code.lines else ()
            files.append(
                {
                    "path": file.path,
                    "reasons": list(file.reasons),
                    "named": file.is_named,
                    "shown": code.form if code else "no",
                    "lines": [list(pair) for pair in lines],
                    "tokens": code.tokens if code else 0,
                    "text": code.text if code else "",
                }
            )
        return {
            "query": self.query,
            "most_tokens": self.most,
            "tokens": self.chosen.tokens,
            "files": files,
        }

    def as_text(self) -> str:
        if not self.ranked:
            return "No code in the project matches these words.\n"
        reasons = {file.path: "; ".join(file.reasons) for file in self.ranked}
        parts = [f"{self.most:,} tokens are too few to show any of the matches."]
        if self.chosen.files:
            heading = (
                f"## Shown: about {self.chosen.tokens:,} of {self.most:,} tokens\n"
            )
            lines = [heading]
            for code in self.chosen.files:
                lines.append(
                    f"- {code.name}: {code.tokens:,} tokens; {reasons.pop(code.path)}"
                )
            parts = ["\n".join(lines)]
        following = [f"- {path}: {why}" for path, why in reasons.items()]
        if following:
            parts.append("## Not shown\n\n" + "\n".join(following[:_MOST_NEXT]))
        if self.chosen.files:
            parts.append("## As a model sees it")
            parts += [code.text for code in self.chosen.files]
        return "\n\n".join(parts) + "\n"


def find_code(
    root: Path,
    finder: CodeFinder,
    words: str,
    tokens: int,
    pinned: Sequence[str] = (),
) -> FoundCode:
    """Return the code for `words`, in at most `tokens` tokens. Files and folders in
    `pinned` come first. This takes long: call it in a thread. Raises `CddError` for a
    path outside the project, or hidden from models.
    """
    places = dict.fromkeys(_find_place_to_pin(root, path) for path in pinned)
    ranked = finder.rank(Query(words, pinned=frozenset(places)))
    paths = {file.path for file in ranked}
    unsearched = []
    for path in places:
        if path not in paths and (root / path).is_file():
            unsearched.append(RankedFile(path, ("pinned",), True, ()))
    ranked = [*unsearched, *ranked]
    chosen = choose_code(CodeReader(root), ranked, finder.outline, tokens)
    return FoundCode(words, tokens, ranked, chosen)


def is_words(root: Path, typed: str) -> bool:
    """True if an argument is not a path: no such file exists, and the text has a space,
    or neither a dot nor a slash.
    """
    try:
        exists = (root / typed).exists() or Path(typed).exists()
    except (OSError, ValueError):
        exists = False
    if exists:
        return False
    return any(map(str.isspace, typed)) or not any(mark in typed for mark in "./\\")


def _find_place(root: Path, typed: str) -> str:
    place = locate(root, typed)
    if not place.parts:
        raise BadInput(
            "The whole project cannot be pinned or left out",
            hint="Name a file or a folder.",
        )
    # This raises if the file does not exist.
    file_mode(root, place)
    return str(place)


def _find_place_to_pin(root: Path, typed: str, *, shows_hidden: bool = False) -> str:
    """Return the path of a file or folder to pin. `shows_hidden` allows single hidden
    files: by naming them, the user shows them to models.
    """
    path = _find_place(root, typed)
    is_folder = (root / path).is_dir()
    if shows_hidden and not is_folder:
        return path
    if why := HiddenFiles(root).why(path):
        hint = "Name its files one by one." if shows_hidden else ""
        raise BadInput(
            f"{path} is hidden from models: {why}",
            hint=hint,
            refusal=Refusal.HIDDEN_FILE,
        )
    return path


def record_choices(session: Session, typed: Sequence[str]) -> str:
    """Save the user's choices with the run of the open ticket: `+src/app.py` pins,
    `-docs/` excludes, and the other sign undoes it. Return a message. Raises `CddError`
    for a path outside the project.
    """
    ticket = session.find_ticket(None)
    if ticket is None:
        raise BadInput(
            "No ticket is open; files are pinned to the run of a ticket",
            hint="Open one with `/exec SLUG`.",
        )
    root = session.project.root
    record = RunRecord.of_ticket(ticket, Redactor())
    choices = record.choices
    for word in typed:
        sign, path = word[0], word[1:]
        if sign == "+":
            choices = choices.pin(_find_place_to_pin(root, path, shows_hidden=True))
        else:
            choices = choices.leave_out(_find_place(root, path))
    record.prepare()
    record.save_choices(choices)
    sentences = [f"Saved for the next prompts of {ticket.slug}."]
    sentences.append(_describe_choices(choices))
    hidden = HiddenFiles(root)
    for path in choices.pinned:
        if why := hidden.why(path):
            sentences.append(f"Models see {path} now, although {why}.")
    return " ".join(sentences)


def describe_last_prompt(session: Session) -> str:
    """Return the parts of the last prompt, of this session or of the open ticket's run,
    and the user's choices, in Markdown; empty if there are none.
    """
    prompt = session.last_prompt
    parts = []
    choices = Choices()
    ticket = session.find_ticket(None)
    if ticket is not None:
        record = RunRecord.of_ticket(ticket, Redactor())
        choices = record.choices
        if prompt is None:
            prompt = LoggedRun.read(record.log).last_prompt
    if prompt is not None:
        parts.append(_describe_parts(prompt))
        if prompt.left_out:
            names = ", ".join(map(sanitize_for_display, prompt.left_out))
            parts.append(f"Left out for lack of room: {names}.")
    if choices.pinned or choices.without:
        parts.append(_describe_choices(choices))
    return "\n\n".join(parts)


def _describe_parts(prompt: PromptMade) -> str:
    receiver = "to the model" if prompt.step is None else f"of step {prompt.label}"
    total = sum(part.tokens for part in prompt.parts)
    lines = [
        f"The last prompt {receiver} had about {total:,} tokens:",
        "",
        "| part | tokens | why |",
        "|---|---:|---|",
    ]
    for part in prompt.parts:
        name, why = _escape_cell(part.name), _escape_cell(part.why)
        lines.append(f"| {name} | {part.tokens:,} | {why} |")
    return "\n".join(lines)


def _describe_choices(choices: Choices) -> str:
    if not choices.pinned and not choices.without:
        return "Nothing is pinned or left out."
    sentences = []
    for verb, paths in (("Pinned", choices.pinned), ("Left out", choices.without)):
        if paths:
            names = ", ".join(f"`{path}`" for path in paths)
            sentences.append(f"{verb}: {names}.")
    return " ".join([*sentences, "Type the other sign to undo one."])


def _escape_cell(text: str) -> str:
    return sanitize_for_display(text).replace("|", "\\|")
