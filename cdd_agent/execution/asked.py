"""What a step asks for in its own words: the tests it removes or skips, the files it names.

Read narrowly. Who removes a test has to say so in a sentence that names it, or beside its file in the plan.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from cdd_agent.tickets.plan import PlanStep

_REMOVED = re.compile(
    r"\b(remov(e|es|ed|ing)|delet(e|es|ed|ing)|renam(e|es|ed|ing)|mov(e|es|ed|ing)|replac(e|es|ed|ing))\b",
    re.IGNORECASE,
)
_SKIPPED = re.compile(r"\b(skip(s|ped|ping)?|skipif|xfail(s|ed)?|expected to fail)\b", re.IGNORECASE)
_DENIED = re.compile(r"\b(not|never|cannot|without|instead of|rather than)\b|n['’]t\b", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)")


@dataclass(frozen=True)
class Asked:
    """The words of a step and of the person who guides it."""

    sentences: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    """Of each affected file, what the plan says beside it."""

    @classmethod
    def by(cls, step: PlanStep, guidance: str = "") -> Self:
        text = f"{step.title}\n\n{step.description}\n\n{guidance}"
        notes = {file.path.removeprefix("./"): file.note for file in step.files_affected}
        return cls(tuple(_sentences(text)), notes)

    def to_remove(self, test: str) -> bool:
        return self._allows(_REMOVED, test)

    def to_skip(self, test: str) -> bool:
        return self._allows(_SKIPPED, test)

    def names_file(self, path: str) -> bool:
        """Whether the step is about this file at all."""
        return path in self.notes or any(_names(sentence, (path, _last(path))) for sentence in self.sentences)

    def _allows(self, verb: re.Pattern[str], test: str) -> bool:
        file, _, inside = test.partition("[")[0].partition("::")
        names = (file, _last(file), *filter(None, inside.split("::")))
        return verb.search(self.notes.get(file, "")) is not None or any(
            verb.search(sentence) and not _DENIED.search(sentence) and _names(sentence, names)
            for sentence in self.sentences
        )


def _sentences(text: str) -> list[str]:
    """Sentences, and items of lists; an item belongs to the line above the list if that ends with a colon."""
    found: list[str] = []
    introduction = ""
    for sentence in filter(None, map(str.strip, _SENTENCES.split(text))):
        is_item = re.match(r"([-*+]|\d+[.)])\s", sentence) is not None
        introduction = introduction if is_item else sentence if sentence.endswith(":") else ""
        found.append(f"{introduction} {sentence}" if is_item else sentence)
    return found


def _names(sentence: str, names: tuple[str, ...]) -> bool:
    return any(re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w/]|\.\w)", sentence) for name in names)


def _last(path: str) -> str:
    return path.rpartition("/")[2]
