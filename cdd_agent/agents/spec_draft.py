"""The draft of a spec: the content of spec.yaml with the unwritten changes of a
conversation.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.agents.spec_items import Clean, Item, ItemChange, ItemList, SpecLine
from cdd_agent.agents.spec_losses import lost_words
from cdd_agent.agents.spec_proposal import Proposal
from cdd_agent.events.ticket_events import CriterionView, QuestionView, SpecShown
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.placeholders import is_placeholder
from cdd_agent.tickets.spec import FIELDS, TicketSpec
from cdd_agent.tickets.spec_file import MAX_BYTES
from cdd_agent.tickets.writable_text import one_line, plain_text

TEXTS = ("title", "priority", "description", "technical_notes")
_NEEDED_TEXTS = ("title", "description")
_ITEM_MARK = len("  - \n")
_MOST_QUESTIONS = 3


class SpecQuestion(Struct, frozen=True):
    id: str
    """Never reused in this draft."""
    text: str


class DroppedChange(Struct, frozen=True):
    """A change of the draft that was dropped because the user changed the same place in
    spec.yaml.
    """

    text: str
    """The text in the draft; for a removal, the text to remove."""
    is_removal: bool = False


class RebasedDraft(Struct, frozen=True):
    draft: "Draft"
    edited: tuple[str, ...] = ()
    """Fields in which the user's edits have changed the draft."""
    dropped: tuple[DroppedChange, ...] = ()


class Draft(Struct, frozen=True):
    """An immutable value: each change returns another draft."""

    file: TicketSpec
    """The last read content of spec.yaml."""
    criteria: ItemList
    scope: ItemList
    texts: Mapping[str, str] = field(default_factory=dict)
    questions: tuple[SpecQuestion, ...] = ()
    last_question: int = 0
    """The number in the last question's id."""
    dropped_questions: tuple[str, ...] = ()
    """Questions that the user declined."""
    facts: tuple[str, ...] = ()

    @classmethod
    def over(cls, spec: TicketSpec) -> "Draft":
        """Return a draft without changes."""
        criteria = ItemList("c", "criterion")
        scope = ItemList("s", "item of the scope", default_area="scope")
        return cls(
            spec,
            criteria.rebase(_criteria_lines(spec)).items,
            scope.rebase(_scope_lines(spec)).items,
        )

    @property
    def spec(self) -> TicketSpec:
        """The spec that approval writes."""
        scope: dict[str, tuple[str, ...]] = {}
        for line in self.scope.lines:
            scope[line.area] = (*scope.get(line.area, ()), line.text)
        return replace(
            self.file,
            acceptance_criteria=tuple(line.text for line in self.criteria.lines),
            implementation_scope=scope,
            **self.texts,
        )

    @property
    def real_criteria(self) -> tuple[Item, ...]:
        return tuple(
            item for item in self.criteria.present if not is_placeholder(item.line.text)
        )

    @property
    def unchecked(self) -> tuple[str, ...]:
        return tuple(item.line.text for item in self.real_criteria if not item.check)

    @property
    def open_points(self) -> tuple[str, ...]:
        return describe_open_points(self.unchecked, self.questions)

    @property
    def is_complete(self) -> bool:
        return not self.spec.missing() and not self.open_points

    @property
    def size(self) -> int:
        """The approximate bytes of the texts in the file."""
        spec = self.spec
        texts = [getattr(spec, name) for name in TEXTS]
        texts += [line.text for line in (*self.criteria.lines, *self.scope.lines)]
        return sum(len(text.encode()) + _ITEM_MARK for text in texts)

    # Changes by the user

    def rebase(self, now: TicketSpec) -> RebasedDraft:
        """Rebase the draft on the current file. Where both changed, the file wins: for
        a list, item by item; for a text, as a whole.
        """
        if now == self.file:
            return RebasedDraft(self)
        criteria = self.criteria.rebase(_criteria_lines(now))
        scope = self.scope.rebase(_scope_lines(now))
        texts = dict[str, str]()
        dropped = [
            DroppedChange(item.line.text, item.is_removed)
            for item in (*criteria.dropped, *scope.dropped)
        ]
        for name, text in self.texts.items():
            if getattr(now, name) == text:
                continue
            if getattr(now, name) == getattr(self.file, name):
                texts[name] = text
            else:
                dropped.append(DroppedChange(text))
        rebased = replace(
            self, file=now, criteria=criteria.items, scope=scope.items, texts=texts
        )
        edited = [
            name
            for name in FIELDS
            if getattr(now, name) != getattr(self.file, name)
            and getattr(rebased.spec, name) != getattr(self.spec, name)
        ]
        return RebasedDraft(rebased, tuple(edited), tuple(dropped))

    def drop(self, places: Collection[int]) -> "Draft":
        """Drop the questions at these positions, from 1. The prompt asks the model not
        to ask them again.
        """
        remaining = []
        dropped = []
        for place, question in enumerate(self.questions, 1):
            if place in places:
                dropped.append(question.text)
            else:
                remaining.append(question)
        return replace(
            self,
            questions=tuple(remaining),
            dropped_questions=(*self.dropped_questions, *dropped),
        )

    # Changes by the model

    def with_proposal(
        self, proposal: Proposal, redactor: Redactor, *, is_answer: bool
    ) -> "Draft":
        """Apply a proposal. `is_answer`: the user wrote something in this turn.

        Changes that `problems` refuses have no effect. If the result is too large for
        spec.yaml, the spec does not change at all.
        """
        clean = _cleaning(redactor)
        noted = self._with_notes(proposal, clean, is_answer=is_answer)
        changed = noted._with_changes(proposal, clean)
        return noted if changed._is_too_large_for(self) else changed

    def _with_changes(self, proposal: Proposal, clean: Clean) -> "Draft":
        criteria = self.criteria
        for change in _criterion_changes(proposal):
            criteria = criteria.apply(change, clean)
        scope = self.scope
        for change in _scope_changes(proposal):
            scope = scope.apply(change, clean)
        texts = self._new_texts(proposal, clean)
        return replace(self, criteria=criteria, scope=scope, texts=texts)

    def _is_too_large_for(self, before: "Draft") -> bool:
        return MAX_BYTES < self.size > before.size

    def _new_texts(self, proposal: Proposal, clean: Clean) -> dict[str, str]:
        texts = dict(self.texts)
        for name in TEXTS:
            text = clean(getattr(proposal, name) or "")
            if name in ("title", "priority"):
                text = one_line(text)
            if is_placeholder(text) or text == clean(getattr(self.spec, name)):
                continue
            texts[name] = text
            if text == getattr(self.file, name):
                del texts[name]
        return texts

    def _with_notes(
        self, proposal: Proposal, clean: Clean, *, is_answer: bool
    ) -> "Draft":
        answered = set(map(str.strip, proposal.answered)) if is_answer else set()
        questions = [each for each in self.questions if each.id not in answered]
        known_texts = {plain_words(each.text) for each in questions}
        known_texts |= set(map(plain_words, self.dropped_questions))
        number = self.last_question
        for text in map(clean, proposal.questions):
            if text and plain_words(text) not in known_texts:
                number += 1
                known_texts.add(plain_words(text))
                questions.append(SpecQuestion(f"q{number}", text))
        facts = tuple(filter(None, map(clean, proposal.facts)))
        return replace(
            self,
            questions=tuple(questions),
            last_question=number,
            facts=facts or self.facts,
        )

    def problems(self, proposal: Proposal, *, is_answer: bool) -> Iterator[str]:
        """Yield the problems of a proposal, for the model. `is_answer`: the user wrote
        something in this turn.
        """
        clean = _cleaning(Redactor())
        after = self.with_proposal(proposal, Redactor(), is_answer=is_answer)
        for name in _NEEDED_TEXTS:
            yield from self._problems_of_text(name, getattr(proposal, name))
        for change in _criterion_changes(proposal):
            yield from self.criteria.problems(change, clean)
        for change in _scope_changes(proposal):
            yield from self.scope.problems(change, clean)
        yield from self._problems_of_list(after)
        yield from self._problems_of_questions(proposal, after, is_answer=is_answer)
        if proposal.approved and not is_answer:
            yield "`approved` is true, but the person has said nothing in this turn."
        whole = self._with_changes(proposal, clean)
        if whole._is_too_large_for(self):
            yield (
                f"The spec would have about {whole.size:,} bytes, and the file may have"
                f" {MAX_BYTES:,}. Write less, and remove nothing for it."
            )

    def _problems_of_text(self, name: str, text: str | None) -> Iterator[str]:
        if text is None or not is_placeholder(text):
            return
        if not is_placeholder(getattr(self.spec, name)):
            yield (
                f"`{name}` was written and would be gone. Leave the field out to keep"
                " it as it is."
            )
        elif text.strip():
            yield f"`{name}` is a placeholder. Leave the field out until it is known."

    def _problems_of_list(self, after: "Draft") -> Iterator[str]:
        counts = Counter(after.criteria.lines)
        new = counts - Counter(self.criteria.lines)
        for line in new:
            if counts[line] > 1:
                yield f"The criterion is there twice: {line.text}"
        if after.unchecked and not after.questions:
            yield (
                "Nothing says how these criteria are checked, and no open question is"
                f" about that: {'; '.join(after.unchecked)}. Name the check, or ask for"
                " the number or the example that is missing."
            )

    def _problems_of_questions(
        self, proposal: Proposal, after: "Draft", *, is_answer: bool
    ) -> Iterator[str]:
        known_ids = {f"q{number}" for number in range(1, self.last_question + 1)}
        for answered in proposal.answered:
            if answered.strip() not in known_ids:
                yield f"`answered`: there is no question with the id `{answered}`."
        if proposal.answered and not is_answer:
            yield "`answered` names questions, but the person has said nothing."
        if len(proposal.questions) > _MOST_QUESTIONS:
            yield (
                f"You ask {len(proposal.questions)} questions at once. Ask at most"
                f" {_MOST_QUESTIONS}."
            )
        dropped = set(map(plain_words, self.dropped_questions))
        for text in proposal.questions:
            if plain_words(text) in dropped:
                yield f"The person does not want to answer this: {text}"
        if proposal.questions or proposal.approved:
            return
        if after.spec.missing() or after.questions:
            yield (
                "You ask nothing, although something is open. Ask one to three"
                " questions, also in `questions`."
            )

    # Showing

    def shown(self, slug: str) -> SpecShown:
        spec = self.spec
        return SpecShown(
            ticket_slug=slug,
            title=_without_placeholder(spec.title),
            type=spec.type.value,
            priority=spec.priority,
            description=_without_placeholder(spec.description),
            criteria=tuple(
                CriterionView(item.line.text, item.check) for item in self.real_criteria
            ),
            scope=tuple(
                (area, tuple(items))
                for area, items in spec.implementation_scope.items()
            ),
            technical_notes=_without_placeholder(spec.technical_notes),
            missing=tuple(spec.missing()),
            open_questions=tuple(
                QuestionView(number, each.text)
                for number, each in enumerate(self.questions, 1)
            ),
            not_written=tuple(
                name
                for name in FIELDS
                if getattr(spec, name) != getattr(self.file, name)
            ),
            lost=lost_words(self.file, spec),
        )


def describe_open_points(
    unchecked: Iterable[str], questions: Iterable[SpecQuestion]
) -> tuple[str, ...]:
    return (
        *(f"no check yet: {text}" for text in unchecked),
        *(
            f"open question {number}: {each.text}"
            for number, each in enumerate(questions, 1)
        ),
    )


def _criteria_lines(spec: TicketSpec) -> list[SpecLine]:
    return [SpecLine(text) for text in spec.acceptance_criteria]


def _scope_lines(spec: TicketSpec) -> list[SpecLine]:
    lines = []
    for area, items in spec.implementation_scope.items():
        lines += [SpecLine(text, area) for text in items or ("",)]
    return lines


def _criterion_changes(proposal: Proposal) -> Iterator[ItemChange]:
    for change in proposal.acceptance_criteria:
        yield ItemChange(
            id=change.id or "",
            text=change.text or "",
            check=change.check or "",
            remove=change.remove,
        )


def _scope_changes(proposal: Proposal) -> Iterator[ItemChange]:
    for change in proposal.implementation_scope:
        yield ItemChange(
            id=change.id or "",
            text=change.text or "",
            area=one_line(change.area or ""),
            remove=change.remove,
        )


def _cleaning(redactor: Redactor) -> Clean:
    # Each change is compared with each item.
    @cache
    def clean(text: str) -> str:
        lines = [line.rstrip() for line in text.expandtabs(4).splitlines()]
        return redactor.redact(plain_text("\n".join(lines)))

    return clean


def plain_words(text: str) -> str:
    """Return the words of a text without punctuation, to compare questions."""
    return " ".join(re.findall(r"\w+", text.casefold())) or text.strip()


def _without_placeholder(text: str) -> str:
    return "" if is_placeholder(text) else text
