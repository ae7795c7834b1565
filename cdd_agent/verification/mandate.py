"""The mandate of a step, by its own words: the tests it removes or skips, the files and
tests it names.

Read narrowly: a test may go where a sentence says so of that test, its class or its
file ("Remove `test_old`", "`tests/test_old.py` is replaced by …"), or the plan does
beside its file.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Self

from msgspec import Struct, field

from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.test_id import TestId

_REMOVE = re.compile(
    r"(remov|delet|renam|mov|replac)(e|es|ed|ing)|drop(s|ped|ping)?", re.IGNORECASE
)
_SHORTEN = re.compile(
    r"\b(remov|delet|renam|mov|replac|reduc|simplif|trim|strip|shorten|shrink|split"
    r"|extract|rewrit|rewrot|empt|clean|drop"
    r"|start(s|ed)? over|from scratch)",
    re.IGNORECASE,
)
_SKIP = re.compile(r"skip(s|ped|ping)?|skipif|xfail(s|ed)?", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(not|never|cannot|without|instead of|rather than)\b|n['’]t\b", re.IGNORECASE
)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)")
_AROUND = "`'\"*()[]{},;:!?"
"""Signs that only set words off."""
_IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
_TEST_FILE = re.compile(r"\.(?:py|go|rs|[cm]?[jt]sx?)(?:::|$)")
"""At the end of a word that names a file, perhaps with a test in it."""
_ITEM = re.compile(r"([-*+]|\d+[.)])\s")
_ANOTHER_THING = re.compile(
    r"""
      so | that | which | to | until | because
    | in | from | by | with | as | for | when | where | while
    | add | adapt | change | check | extend | fix | keep | let | make | run | see
    | update | use
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""A word after which a sentence is no longer about what its verb is done to."""
_IS = re.compile(r"is|are|as|be|gets|was|were|will|with", re.IGNORECASE)
_FAR = 12
"""How many words an enumeration may have."""
_UNTIL_STEP = re.compile(
    r"(?:\b(?:fail\w*|red|broken)\b|(?:\bnot|n['’]t)\s(?:\w+\s){0,2}?"
    r"(?:pass|green)).{0,200}?\b(?:until|till)\b.{0,200}?\bstep\s(\d{1,9})\b",
    re.IGNORECASE | re.DOTALL,
)
_MAY_FAIL = re.compile(
    r"""
      \b(?:is|are)\sallowed\sto\sfail
    | \bmay\s(?:still\sfail|(?:keep|go\son)\sfailing
      |(?:stay|remain)\s(?:red|broken)|continue\sto\sfail)
    | \bneeds?\snot\s(?:yet\s)?(?:pass|be\sgreen)
    | (?:\bnot|n['’]t)\s(?:yet\s)?(?:have|need|required|expected)\sto\s
      (?:pass|be\sgreen)
    | \b(?:must|should|shall|will|(?:has|have|is|are|expected|supposed|meant)\sto)\s
      (?:(?:still|first|then|all)\s)*(?:fail|be\sred|(?:stay|remain)\sred)\b
      (?!\s(?:with|on|if|when|for|to|because|as|in|at|by)\b)
    | \b(?:write|add|create|extend|start\swith)\b.{0,200}?\b(?:failing|red)\b
    | \bleav(?:e|ing)\b.{0,200}?\b(?:failing|red)\b
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""Said of a test that is written before what it tests, or that is another step's
concern.
"""


class StepMandate(Struct, frozen=True, dict=True):
    """The words of a step and of the person who guides it."""

    sentences: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    """Of each affected file, what the plan says beside it."""

    @classmethod
    def by(cls, step: PlanStep, guidance: str = "") -> Self:
        text = f"{step.title}\n\n{step.description}\n\n{guidance}"
        notes = {
            file.path.removeprefix("./"): file.note for file in step.files_affected
        }
        return cls(tuple(_sentences(text)), notes)

    @classmethod
    def in_text(cls, text: str) -> Self:
        """The same of other words than a step's."""
        return cls(tuple(_sentences(text)))

    def to_remove(self, test: TestId) -> bool:
        return self._allows(_REMOVE, test)

    def to_skip(self, test: TestId) -> bool:
        return self._allows(_SKIP, test)

    def names_file(self, path: str) -> bool:
        """Whether the step is about this file at all."""
        names = {_as_word(path), _as_word(_last(path))}
        said = (sentence for sentence in self.sentences if not _DENIED.search(sentence))
        return path in self.notes or any(
            not names.isdisjoint(_words(sentence)) for sentence in said
        )

    def names_test(self, test: TestId, defined: Collection[str] = ()) -> bool:
        """Whether the step names this test, its class or its file. What could not be
        collected is named by any of the tests that are `defined` in it, too.
        """
        name = _Name.of(test, defined)
        if name.spellings.isdisjoint(self._vocabulary) and not name.is_sentence:
            return False
        return any(name.is_said(sentence, words) for sentence, words in self._told)

    def lets_fail(
        self, test: TestId, defined: Collection[str], later: Collection[int]
    ) -> bool:
        """Whether a sentence that names this test says that it may fail, or will until
        one of the `later` steps.
        """
        name = _Name.of(test, defined)
        return any(
            name.is_said(sentence, words) and _may_fail(sentence, later)
            for sentence, words in self._told
        )

    def lets_tests_fail(self, later: Collection[int]) -> bool:
        """Whether a sentence says that tests may fail, or will until one of the `later`
        steps, whichever they are.
        """
        return any(_may_fail(sentence, later) for sentence, _ in self._told)

    @cached_property
    def _told(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """Sentences, each with the names that are in it: without parameters, and
        numbers of lines.
        """

        def name(word: str) -> str:
            return re.sub(r":\d+$", "", word.partition("[")[0])

        return tuple(
            (sentence, frozenset(map(name, _words(sentence))))
            for sentence in self.sentences
        )

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        """All names at once: most tests are not among them."""
        return frozenset[str]().union(*(words for _, words in self._told))

    def to_shorten(self, path: str) -> bool:
        """Whether the step is about this file, and about taking something away: much of
        the file may go then.
        """
        takes_away = any(
            _SHORTEN.search(text)
            for text in (self.notes.get(path, ""), *self.sentences)
        )
        return takes_away and self.names_file(path)

    def _allows(self, verb: re.Pattern[str], test: TestId) -> bool:
        names = _names(test.file, test.parts) | _folders(test.file)
        note = self.notes.get(test.file, "")
        beside = _words(note)
        if (
            beside
            and verb.fullmatch(beside[0])
            and (len(beside) == 1 or beside[0].lower().endswith("ed"))
        ):
            # said of the whole file beside which it stands: "deleted", "moved to
            # tests/unit"
            return True
        for text in (note, *self.sentences):
            said = text
            # which may be a sentence of its own
            for name in sorted(test.parts, key=len, reverse=True):
                said = said.replace(name, _as_word(name))
            if not _DENIED.search(said) and _is_done_to(verb, names, _words(said)):
                return True
        return False


def _sentences(text: str) -> Iterator[str]:
    """Sentences, and items of lists; an item belongs to the line above the list if that
    ends with a colon.
    """
    introduction = ""
    for sentence in filter(None, map(str.strip, _SENTENCES.split(text))):
        if _ITEM.match(sentence):
            yield f"{introduction} {sentence}"
        else:
            introduction = sentence if sentence.endswith(":") else ""
            yield sentence


def _words(sentence: str) -> list[str]:
    """Without what only sets them off: quotes, brackets, the full stop. Several in
    backticks are also one.
    """
    sentence = _IN_BACKTICKS.sub(
        lambda found: (
            f"{_as_word(found[1])} {found[0]}" if " " in found[1] else found[0]
        ),
        sentence,
    )
    found: list[str] = []
    for raw in filter(None, re.split(r"[\s,]+", sentence)):
        word = raw.strip(_AROUND).rstrip(".").removesuffix("()").strip("`'\"*")
        is_path = "/" in word or "." in word
        # emphasis, and not the beginning of `__init__.py`
        if word.endswith("_") or not is_path:
            word = word.strip("_")
        if word:
            # paths as the engine has them
            found.append(word.replace("\\", "/").removeprefix("./"))
    return found


def _as_word(name: str) -> str:
    """A name, where it has spaces as one word."""
    return (
        re.sub(r"[\s,]+", "␣", name).strip(_AROUND).rstrip(".") if " " in name else name
    )


def _names(file: str, inside: Sequence[str]) -> set[str]:
    """The names that people may call a test by: its file, class or function, or several
    of these.
    """
    file, *inside = map(_as_word, (file, *inside))
    places = [file, _last(file), *inside]
    paths = [
        "::".join((start, *inside[:end]))
        for start in (file, _last(file))
        for end in range(1, len(inside) + 1)
    ]
    # the last as Go has it
    joined = [between.join(inside) for between in ("::", ".", "/")]
    return {*places, *paths, *joined} - {""}


def _folders(file: str) -> set[str]:
    """The names of the folders that a file is in: who removes one removes what is in
    it.
    """
    folders = [str(folder) for folder in PurePosixPath(file).parents][:-1]
    return {
        _as_word(name)
        for folder in folders
        for name in (f"{folder}/", folder)
        if "/" in name
    }


class _Name(Struct, frozen=True):
    """The names of one test."""

    file: str
    spellings: frozenset[str]
    own: str
    """Its own name; of a file, none."""

    @classmethod
    def of(cls, test: TestId, defined: Collection[str]) -> Self:
        spellings = _names(test.file, test.parts)
        own = test.parts[-1] if test.name else ""
        return cls(
            test.file, frozenset(spellings.union([] if test.name else defined)), own
        )

    @property
    def is_sentence(self) -> bool:
        """Its own name is several words: "adds two numbers"."""
        return " " in self.own

    def is_said(self, sentence: str, words: frozenset[str]) -> bool:
        """By its file; or by its own name, unless that is said of another file."""
        said = self.spellings & words
        file = _as_word(self.file)
        if any(spelling.startswith((file, _last(file))) for spelling in said):
            return True
        is_named = bool(said) or (self.is_sentence and self.own in sentence)
        return is_named and not any(
            _TEST_FILE.search(word) and word not in self.spellings for word in words
        )


def _may_fail(sentence: str, later: Collection[int]) -> bool:
    until = _UNTIL_STEP.search(sentence)
    return (
        _MAY_FAIL.search(sentence) is not None
        if until is None
        else int(until[1]) in later
    )


def _is_done_to(
    verb: re.Pattern[str], names: Collection[str], words: Sequence[str]
) -> bool:
    """Whether a sentence says that it is done to one of these: "Remove the old
    `test_a`", "`test_a` is removed".
    """
    for place, word in enumerate(words):
        if verb.fullmatch(word):
            for other in words[place + 1 : place + 1 + _FAR]:
                if other in names:
                    return True
                if _ANOTHER_THING.fullmatch(other):
                    break
        elif word in names:
            after = words[place + 1 : place + 5]
            if after and _IS.fullmatch(after[0]) and any(map(verb.fullmatch, after)):
                return True
    return False


def _last(path: str) -> str:
    return path.rpartition("/")[2]
