"""Makes prompts that fit into a model's window. The most important parts come first,
each as complete as possible.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.dialogue.token_budget import MARGIN, TokenBudget, tokens_for_answers
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.events.dialogue_events import PromptMade
from cdd_agent.llm.port import Message, PromptShare
from cdd_agent.llm.token_estimates import estimate_tokens

Form = str | tuple[Message, ...]


class PromptPart(Struct, frozen=True):
    whole: Form
    name: str = ""
    """Shown to the user and the model if the part is omitted or shortened."""
    rank: int = 0
    """Parts of rank 1 get room before parts of rank 2. A part of rank 0 is always in
    the prompt, at least in its smallest form.
    """
    smaller: Sequence[Form] = ()
    """Shortened forms, the largest first."""
    brief: Form | None = None
    """The same content in fewer words."""

    @property
    def title(self) -> str:
        """The name for the user, also if `name` is empty."""
        if self.name:
            return self.name
        if not isinstance(self.whole, str):
            return "the conversation"
        first_line, _, _ = self.whole.partition("\n")
        if first_line.startswith("# "):
            return first_line.removeprefix("# ")
        return "the instructions"

    @property
    def least(self) -> Form:
        if self.rank:
            return self.whole[:0]
        return self.smaller[-1] if self.smaller else self.whole

    @property
    def forms(self) -> list[Form]:
        """The non-empty forms, the best first."""
        forms = [self.whole, self.brief, *self.smaller]
        return [form for form in forms if form]


class FittedPrompt(Struct, frozen=True):
    dialogue: Dialogue
    messages: tuple[Message, ...]
    """The system message first."""
    left_out: tuple[str, ...]
    shares: tuple[PromptShare, ...] = ()

    @property
    def made(self) -> PromptMade:
        return PromptMade(None, self.shares, self.left_out, self.dialogue.model.window)


def fit(
    dialogue: Dialogue, parts: Sequence[PromptPart], *, tools: int, reserved: int = 0
) -> FittedPrompt:
    """Make a prompt of `parts`, which are in the order of the prompt. `tools` is the
    rank of the tools: they get room before the parts of the same rank. `reserved` is
    the number of tokens that the caller adds.
    """
    window = dialogue.model.window
    bare = replace(dialogue, tools=())
    least = sum(_size(bare, part.least) for part in parts)
    budget = TokenBudget(window, reserved + MARGIN + least)
    forms = [part.least for part in parts]
    places = sorted(range(len(parts)), key=lambda place: parts[place].rank)
    for place in places:
        if parts[place].rank < tools:
            forms[place] = _choose_form(bare, parts[place], budget)
    equipped = dialogue.with_tools_that_fit(budget, tokens_for_answers(window))
    for place in places:
        if parts[place].rank >= tools:
            forms[place] = _choose_form(bare, parts[place], budget)
    system, messages = _messages_of(forms, budget.describe_omitted())
    shares = []
    for part, form in zip(parts, forms, strict=True):
        if form:
            shares.append(PromptShare(part.title, _size(bare, form)))
    if equipped.tools:
        size = equipped.size((system,)) - bare.size((system,))
        shares.append(PromptShare("the tools", size))
    return FittedPrompt(
        equipped, (system, *messages), tuple(budget.left_out), tuple(shares)
    )


def _choose_form(bare: Dialogue, part: PromptPart, budget: TokenBudget) -> Form:
    """Return the best form that fits, and reserve room for it. The budget already
    contains the smallest form.
    """
    chosen = least = part.least
    for form in part.forms:
        if form is least or budget.take(_size(bare, form) - _size(bare, least)):
            chosen = form
            break
    if chosen not in (part.whole, part.brief):
        budget.omit(part.name)
    return chosen


def _messages_of(forms: Sequence[Form], note: str) -> tuple[Message, Sequence[Message]]:
    paragraphs: list[str] = []
    messages: list[Message] = []
    for form in forms:
        if not form:
            continue
        if isinstance(form, str):
            paragraphs.append(form)
        else:
            messages += form
    if note:
        paragraphs.append(note)
    return Message("system", "\n\n".join(paragraphs)), messages


def _size(bare: Dialogue, form: Form) -> int:
    if isinstance(form, str):
        return estimate_tokens(form)
    return bare.size(form) if form else 0
