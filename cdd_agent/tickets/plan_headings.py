"""Finds the headings of a plan that begin a step, or resemble one.

Steps may also begin with a heading without a space (`###Step 2`) or a bold line
(`**Step 2: Sign in**`).
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.text.misspelling import is_misspelt
from cdd_agent.tickets.markdown import Document
from cdd_agent.tickets.plan import ID_COMMENT, STEP_ID, STEP_LABEL
from cdd_agent.tickets.plan_labels import has_label
from cdd_agent.tickets.step_reader import StepHeading

LINE_DEPTH = 7
"""The depth of bold lines: below every heading."""

_LABEL = rf"(?P<label>{STEP_LABEL.pattern})(?!\w|\.[0-9])"
_STEP = Pattern(
    rf"""
    \W{{0,9}} (?:\[[ xX~-]\]\W{{0,9}})? (?:[0-9]+(?:\.[0-9]+)*[.)]?\s+)?
    (?P<before> [(\[]? \boptional\b [)\]]? [:,]? )? \W{{0,9}}
    (?P<word>step|task) \s{{0,9}} (?:no\.?|number)? \s{{0,9}} \#? \s{{0,9}}
    [\[(]? \s{{0,9}} {_LABEL} \s{{0,9}} [\])]? \s{{0,9}}
    (?P<behind> [(\[]? \boptional\b [)\]]? )? \s{{0,9}}
    [:：.,，、)\-–—|]? \s{{0,9}} (?P<title>.*)
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_TAG = Pattern(r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?>", re.IGNORECASE)
_STRUCK = Pattern(r"~~.*~~", re.DOTALL)
_BOLD_START = Pattern(r"(\*\*|__)(.*?)\1")
_BOLD_LINE = Pattern(r"(?P<marks>\*\*|__)(?=\S)(?P<text>.+?)(?P=marks)(?P<rest>.*)")
_STEP_LINE = Pattern(
    rf"\W*(?:\[[ xX]\]\s*)?(?:step|task)\s*{_LABEL}\s*[:.)–—-]", re.IGNORECASE
)
_STRUCK_LINE = Pattern(r"~~(?:#{1,6}\s|\*\*|__)\s*(?P<text>.+?)(?:\*\*|__)?~~\s*")
_CLOSE_HEADING = Pattern(
    r" {0,3}(?P<marks>#{1,6})[\u00a0\u3000]*(?P<text>[^#\s].*?)[ \t]*#*[ \t]*"
)

_STEP_WORD = Pattern(
    r"\W*(?:\[[ xX~-]\]\s*)?(?:[0-9.]+[.)]?\s+)?"
    r"(?:(?:steps?|tasks?)\b\s*[#\[(]?\s*[0-9]"
    r"|(?:step|task)(?:\s*[:–—]|\s+(?:[a-z]|one|two|three|four|five|six|seven|eight"
    r"|nine|ten)\b))",
    re.IGNORECASE,
)
_OTHER_WORD = Pattern(
    r"\W*(?:phase|stage|milestone|part|sprint|iteration|schritt|aufgabe|etappe|étape"
    r"|tâche|paso|tarea|etapa|passo|passaggio|fase|stap|taak|steg|trin|krok|zadanie"
    r"|шаг|задача|этап|步骤|任务|阶段|ステップ|タスク|단계)\s*[#\[(]?\s*[0-9一二三四五六七八九十]+\s*(?:[\])]?\s*[:：.)–—-]|$)"
    r"|\W*第\s*[0-9一二三四五六七八九十]+\s*[步阶階]",
    re.IGNORECASE,
)
_NUMBERED_WORD = Pattern(
    r"\W*(?:\[[ xX~-]\]\s*)?(?:[0-9.]+[.)]?\s+)?(?P<word>[a-z]+)\s*[#\[(]?\s*[0-9]",
    re.IGNORECASE,
)
_NUMBER = Pattern(
    r"\W*[0-9]{1,3}(?:(?:\.[0-9]{1,3})+[a-z]?[.:)]?\s+"
    r"|[a-z]?(?:[.:)\]]\s*|\s+[-–—]\s+))\S"
    # T012 and T1: are task numbers, S3 and UTF-8 names
    r"|\W*[A-Z]{1,4}-?(?:0[0-9]{1,3}\b|[0-9]{1,4}-[0-9]{1,3}\b"
    r"|[0-9]{1,4}(?=\s*[.:：)\]]|\s+[-–—]\s))"
)


class Title(Enum):
    """A heading with a meaning, except steps."""

    OVERVIEW = auto()
    RISKS = auto()
    STEPS = auto()
    NOTES = auto()


_TITLES = {
    Title.OVERVIEW: Pattern(
        r"(?:plan |implementation )?(?:overview|summary)", re.IGNORECASE
    ),
    Title.RISKS: Pattern(
        r"(?:potential |known )?risks?(?:\W.*)?", re.IGNORECASE | re.DOTALL
    ),
    Title.STEPS: Pattern(r"(?:implementation |plan )?(?:steps|tasks)", re.IGNORECASE),
    Title.NOTES: Pattern(r"(?:plan )?notes", re.IGNORECASE),
}


class PlanHeading(Struct, frozen=True):
    line: int
    end: int
    depth: int
    text: str

    @property
    def plain_text(self) -> str:
        """Without an id and leading bold marks."""
        text = ID_COMMENT.sub("", self.text)
        if text.startswith(("**", "__")):
            text = _BOLD_START.sub(r"\2", text, count=1)
        return text.strip()

    @property
    def title(self) -> Title | None:
        text = re.sub(r"^[0-9]+[.)]\s+", "", self.plain_text).rstrip(": ")
        for title, words in _TITLES.items():
            if words.fullmatch(text):
                return title
        return None

    @property
    def is_struck(self) -> bool:
        match = _STEP.fullmatch(self.plain_text)
        if match is None:
            return False
        texts = (self.plain_text, match["title"].strip())
        return any(_STRUCK.fullmatch(text) for text in texts)

    @property
    def wrong_id(self) -> str | None:
        """The text of an invalid id."""
        match = ID_COMMENT.search(self.text)
        if match is None or STEP_ID.fullmatch(match["id"]):
            return None
        return match["id"]

    @property
    def resembles_step(self) -> bool:
        """True if the heading names a step but is not read as one."""
        text = self.plain_text
        if _STEP_WORD.match(text) or _OTHER_WORD.match(text):
            return True
        numbered = _NUMBERED_WORD.match(text)
        return numbered is not None and any(
            is_misspelt(numbered["word"].lower(), word) for word in ("step", "task")
        )

    @property
    def has_step_word(self) -> bool:
        return _STEP_WORD.match(self.plain_text) is not None

    @property
    def is_numbered(self) -> bool:
        return _NUMBER.match(self.plain_text) is not None

    @property
    def number(self) -> str:
        """The leading number, such as `2` in `2. Do it`."""
        match = re.match(r"\W*([0-9]+)", self.plain_text)
        return match[1] if match else ""

    def to_step(self) -> StepHeading | None:
        match = _STEP.fullmatch(self.plain_text)
        if match is None or self.is_struck:
            return None
        title = match["title"].strip()
        if match["before"] or match["behind"]:
            title = f"{title} (optional)".strip()
        comment = ID_COMMENT.search(self.text)
        step_id = comment["id"] if comment and not self.wrong_id else ""
        word = match["word"].lower()
        return StepHeading(self.line, word, match["label"], title, step_id)


def read_step_line(line: str) -> StepHeading | None:
    """Return the step that a list item or line would begin as a heading."""
    text = re.sub(r"^\s*(?:[-*+•]|[0-9]+[.)])\s+", "", _TAG.sub("", line))
    text = re.sub(r"[*_]{2}", "", text)
    heading = PlanHeading(0, 1, LINE_DEPTH, text.strip())
    step = heading.to_step()
    return step if step and step.title and _STEP_LINE.match(text) else None


def find_headings(document: Document, lines: range) -> list[PlanHeading]:
    headings = {}
    for number in lines:
        heading = document.headings.get(number)
        if heading is None:
            for line_heading in _line_headings(document, number):
                headings[number] = line_heading
        elif not _is_paragraph(document, number):
            headings[number] = PlanHeading(
                number, heading.end, heading.depth, heading.text
            )
    return [headings[number] for number in sorted(headings)]


def _line_headings(document: Document, number: int) -> Iterator[PlanHeading]:
    """Yield headings that CommonMark does not recognise."""
    line = document.lines[number]
    if line.is_code:
        return
    struck = _STRUCK_LINE.fullmatch(line.text)
    if struck:
        heading = PlanHeading(number, number + 1, LINE_DEPTH, f"~~{struck['text']}~~")
        if heading.is_struck:
            yield heading
        return
    close = _CLOSE_HEADING.fullmatch(line.text)
    if close:
        heading = PlanHeading(number, number + 1, len(close["marks"]), close["text"])
        if heading.to_step() or heading.title or heading.is_struck:
            yield heading
        return
    bold = _BOLD_LINE.fullmatch(line.text.strip())
    if bold and not line.text.startswith((" ", "\t")):
        text = f"{bold['text']}{bold['rest']}"
        heading = PlanHeading(number, number + 1, LINE_DEPTH, text)
        if heading.to_step() or heading.is_struck:
            yield heading


def _is_paragraph(document: Document, number: int) -> bool:
    """True if text above `---` is a heading only for lack of a blank line."""
    heading = document.headings[number]
    length = heading.end - heading.line
    return length > 2 or (length == 2 and has_label(document.lines[number].text))
