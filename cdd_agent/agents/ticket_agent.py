"""How an agent on a ticket reads a line. Its words are declared at the methods that
carry them out.
"""

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import ClassVar, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.agents.line_guesses import FOR_THE_MODEL, guess_command, shell_name
from cdd_agent.agents.meaning import LineKind, Meaning
from cdd_agent.engine.steering import Take
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.stream import Emit, Event

_MOST_QUOTED = 50


class AgentWord(Struct, frozen=True):
    """A line that an agent handles without its model. Its functions receive the agent
    and the text after the name.
    """

    names: tuple[str, ...]
    """The lines, the usual one first; "" is Enter alone."""
    act: Callable[..., Awaitable[None]]
    hint: Callable[..., str]
    about: Callable[..., object]
    help_text: str
    """The effect in the help; an empty text hides the word."""
    shown_names: str
    step: Literal["next", "any"] | None
    """The step whose number may follow."""


Act = TypeVar("Act", bound=Callable[..., Awaitable[None]])


def word(
    *names: str,
    hint: str | Callable[..., str],
    does: str = "",
    typed: str = "",
    about: Callable[..., object] = lambda *_: None,
    step: Literal["next", "any"] | None = None,
) -> Callable[[Act], Act]:
    """Declare the method that carries out `names`. `does` and `typed` are its row in
    the help; the other arguments are as in `Meaning` and `AgentWord`.
    """
    shown_names = typed
    if not typed:
        shown_names = ", ".join(f"`{name}`" if name else "Enter" for name in names)

    def fixed_hint(*_: object) -> str:
        assert isinstance(hint, str)
        return hint

    def declare(act: Act) -> Act:
        vars(act)["word"] = AgentWord(
            names=names,
            act=act,
            hint=hint if callable(hint) else fixed_hint,
            about=about,
            help_text=does,
            shown_names=shown_names,
            step=step,
        )
        return act

    return declare


class TicketAgent:
    """Reads a line in this order: the agent's words, words of any shell, doubtful
    lines, text for the model.
    """

    after_a_failure = ""
    OTHERS: ClassVar[tuple[tuple[str, str], ...]]
    """The last rows of the help: other lines and their effects."""
    NEAR: ClassVar[float]
    """Minimum similarity of a mistyped word, from 0 to 1."""
    HELP: ClassVar[str]
    WORDS: ClassVar[dict[str, AgentWord]]
    slash: Collection[str]
    emit: Emit

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = []
        for member in vars(cls).values():
            declaration = getattr(member, "word", None)
            if isinstance(declaration, AgentWord):
                declared.append(declaration)
        # Abstract agents declare no words.
        if not declared:
            return
        cls.WORDS = {name: each for each in declared for name in each.names}
        rows = [
            (each.shown_names, each.help_text) for each in declared if each.help_text
        ]
        cls.HELP = "| typed | does |\n|---|---|\n"
        for shown_names, help_text in (*rows, *cls.OTHERS):
            cls.HELP += f"| {shown_names} | {help_text} |\n"

    # Reading a line

    def meaning(self, line: str) -> Meaning:
        return replace(self._read_line(line.strip()), line=line, agent=self)

    def _read_line(self, text: str) -> Meaning:
        meaning = self.read_word(text)
        if meaning is not None:
            return meaning
        name = shell_name(text)
        if name == "help":
            show_help = partial(self._answer_with, Answer(self.HELP))
            return Meaning(LineKind.WORD, name, "Enter: show the commands", show_help)
        if name in self.slash:
            return self._ask_about(text, f"Use `/{name}` for that.")
        marked_text = text.removeprefix(FOR_THE_MODEL).strip()
        if text.startswith(FOR_THE_MODEL) and marked_text:
            return self.read_text(marked_text)
        doubt = self.doubt(text)
        return self._ask_about(text, doubt) if doubt else self.read_text(text)

    def read_word(self, text: str) -> Meaning | None:
        declaration = self.WORDS.get(text.lower())
        return None if declaration is None else self.meaning_of(declaration)

    def read_text(self, text: str) -> Meaning:
        raise NotImplementedError

    @property
    def to_the_model(self) -> str:
        """The effect of text for the model, as the end of a sentence."""
        raise NotImplementedError

    def meaning_of(self, declaration: AgentWord, *typed: object) -> Meaning:
        return Meaning(
            LineKind.WORD,
            declaration.names[0],
            declaration.hint(self, *typed),
            partial(declaration.act, self, *typed),
            about=declaration.about(self, *typed),
        )

    def nothing_for(self, reason: str, advice: str = "") -> Meaning:
        """Return a meaning that only shows a reason and advice."""
        answer = Notice(f"{reason} {advice}".rstrip(), kind=NoticeKind.NOT_DONE)
        return Meaning(
            LineKind.NOTHING,
            "nothing",
            f"Enter does nothing. {reason}",
            partial(self._answer_with, answer),
        )

    def doubt(self, text: str) -> str:
        """Return why a text may not be for the model; empty without doubt."""
        names = (*self.names, "help", "exit")
        command = guess_command(text, names, self.is_command, near=self.NEAR)
        return f"Did you mean `{command}`?" if command is not None else ""

    @property
    def names(self) -> list[str]:
        return [name for names in self.WORDS for name in names.split()]

    def is_command(self, line: str) -> bool:
        return self.read_word(line) is not None or shell_name(line) in ("help", "exit")

    def _ask_about(self, text: str, doubt: str) -> Meaning:
        first_line, *other_lines = text.splitlines()
        quote = first_line
        if other_lines or len(first_line) > _MOST_QUOTED:
            quote = f"{first_line[:_MOST_QUOTED]}…"
        return self.nothing_for(
            doubt, f"Type `{FOR_THE_MODEL} {quote}` to {self.to_the_model}."
        )

    # Acting

    async def _answer_with(self, event: Event) -> None:
        self.emit(event)

    def report(self, *events: Event) -> None:
        for event in events:
            self.emit(event)

    def steer(self, meaning: Meaning, take: Take) -> bool:
        """Refuse the line: the agent handles one line at a time."""
        del meaning, take
        return False

    def closing(self) -> list[Event]:
        return []
