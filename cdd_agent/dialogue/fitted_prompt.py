"""A prompt as a model's window has room for it: its parts by what matters, each as
whole as it can be.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.dialogue.token_budget import MARGIN, TokenBudget, for_answers
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.events.dialogue_events import PromptMade
from cdd_agent.llm.port import Message, PromptShare
from cdd_agent.llm.token_estimates import estimated_tokens

Form = str | tuple[Message, ...]
"""A paragraph of the system's message, or messages of the conversation."""


class PromptPart(Struct, frozen=True):
    """A piece of a prompt."""

    whole: Form
    name: str = ""
    """As it is told where it is left out, or not whole."""
    rank: int = 0
    """1 goes before 2 where there is not room for both; 0 is said in any case, in its
    smallest form at least.
    """
    smaller: Sequence[Form] = ()
    """In its place, the largest of these that there is room for."""
    brief: Form | None = None
    """The same in fewer words: by this nothing is left out."""

    @property
    def title(self) -> str:
        """Its name for people, also where it is never left out."""
        if self.name or not isinstance(self.whole, str):
            return self.name or "what is said"
        first, _, _ = self.whole.partition("\n")
        return first.removeprefix("# ") if first.startswith("# ") else "how to answer"

    @property
    def least(self) -> Form:
        """Its form where there is no room at all."""
        forms: list[Form] = [self.whole, *self.smaller]
        return self.whole[:0] if self.rank else forms[-1]


class FittedPrompt(Struct, frozen=True):
    """A conversation to be had, and with which tools."""

    dialogue: Dialogue
    messages: tuple[Message, ...]
    """The system's first."""
    left_out: tuple[str, ...]
    """The parts that there was no room for."""
    shares: tuple[PromptShare, ...] = ()
    """The tokens of each of the others."""

    @property
    def made(self) -> PromptMade:
        return PromptMade(None, self.shares, self.left_out, self.dialogue.model.window)


def fit(
    dialogue: Dialogue, parts: Sequence[PromptPart], *, tools: int, beside: int = 0
) -> FittedPrompt:
    """Make a prompt of `parts`, which come in the order in which they are read. `tools`
    is the rank of the dialogue's tools: they go before the parts of the same rank.
    `beside` are the tokens of what will be said besides.
    """
    bare, window = replace(dialogue, tools=()), dialogue.model.window

    def size(form: Form) -> int:
        if isinstance(form, str):
            return estimated_tokens(form)
        return bare.size(form) if form else 0

    budget = TokenBudget(
        window, beside + MARGIN + sum(size(part.least) for part in parts)
    )

    def chosen(part: PromptPart) -> Form:
        """Room is taken for it, beside that for the least."""
        forms: list[Form] = [
            form for form in (part.whole, part.brief, *part.smaller) if form
        ]
        fitting = (
            form
            for form in forms
            if form is part.least or budget.takes(size(form) - size(part.least))
        )
        form = next(fitting, part.least)
        if form not in (part.whole, part.brief):
            budget.leave_out(part.name)
        return form

    offered = sorted(range(len(parts)), key=lambda place: parts[place].rank)
    said = {
        place: chosen(parts[place]) for place in offered if parts[place].rank < tools
    }
    equipped = dialogue.with_tools_that_fit(budget, for_answers(window))
    said |= {
        place: chosen(parts[place]) for place in offered if parts[place].rank >= tools
    }
    forms = [said[place] for place in range(len(parts))]
    paragraphs = [form for form in forms if isinstance(form, str)]
    system = Message("system", "\n\n".join(filter(None, (*paragraphs, budget.note()))))
    messages = [
        message for form in forms if not isinstance(form, str) for message in form
    ]
    shares = [
        PromptShare(part.title, size(form))
        for part, form in zip(parts, forms, strict=True)
        if form
    ]
    if equipped.tools:
        shares.append(
            PromptShare("the tools", equipped.size((system,)) - bare.size((system,)))
        )
    return FittedPrompt(
        equipped, (system, *messages), tuple(budget.left_out), tuple(shares)
    )
