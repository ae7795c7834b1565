"""Agents as the session knows them: plain text goes to them, and they say beforehand
what they will do with it.
"""

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import ClassVar, Literal, Protocol, TypeVar

from msgspec import Struct

from cdd_agent.agents.words import FOR_THE_MODEL, command_meant, shell_name
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.steering import Take
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.shell_events import SessionView
from cdd_agent.events.stream import Emit, Event

_SHOWN = 50
"""Characters of the user's line that an answer repeats."""


class Meaning(Struct, frozen=True):
    """An agent's use of a line, known before it is sent: shown below the prompt, and
    then done.

    Two that are equal do the same: a line that had to wait is sent by itself only if it
    still means what it meant.
    """

    name: str
    hint: str
    """The effect of Enter, in a few words."""
    act: Callable[[], Awaitable[None]]
    about: object = None
    """The step or the proposal that it is about, if that can change before Enter."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meaning) and (self.name, self.about) == (
            other.name,
            other.about,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.about))


class Agent(Protocol):
    """An agent at work on a ticket."""

    name: str
    ticket_slug: str
    emit: Emit
    after_a_failure: str
    """`placeholder` once a step has failed, where that is different."""

    @property
    def placeholder(self) -> str:
        """The most usual of what can be typed, in a few words."""
        ...

    @property
    def done(self) -> bool:
        """Its work is over; the session goes back to chat."""
        ...

    @property
    def lock(self) -> TicketLock:
        """The ticket's, which it holds."""
        ...

    async def begin(self) -> None:
        """Report what the user sees first."""
        ...

    def meaning(self, line: str) -> Meaning:
        """Return the effect that `say` would have with this line now. Nothing is
        done, read or
        written for it.
        """
        ...

    async def say(self, line: str) -> None:
        """Handle the user's line. Raises `CddError` for what the user or the model
        must fix.
        """
        ...

    def steer(self, line: str, take: Take) -> bool:
        """Handle a line that came while the agent is at work. Return True if the
        model can still receive it: then `take` is called just before, which returns
        whether the line still waits, and `GuidanceTaken` is emitted.
        """
        ...

    def view(self) -> list[Event]:
        """Return the ticket's progress, as `/status` shows it."""
        ...

    def closing(self) -> list[Event]:
        """Return what the user sees when the agent's work is over."""
        ...

    def close(self) -> None:
        """Release what it holds. The ticket's files do not change."""
        ...


class Word(Struct, frozen=True):
    """A line that an agent understands by itself, declared with `word` at what it
    does.
    """

    names: tuple[str, ...]
    """As it is typed, the usual one first; "" is Enter alone."""
    act: Callable[..., Awaitable[None]]
    """A method; it gets what was typed behind the name, and so do `hint` and `about`.
    """
    does: str
    """For the help, which has no row for a word without it."""
    typed: str
    hint: Callable[..., str]
    about: Callable[..., object]
    step: Literal["next", "any"] | None
    """A step's number may follow: that of the step to come, or any."""


Act = TypeVar("Act", bound=Callable[..., Awaitable[None]])


def word(
    *names: str,
    hint: str | Callable[..., str],
    does: str = "",
    typed: str = "",
    about: Callable[..., object] = lambda *_: None,
    step: Literal["next", "any"] | None = None,
) -> Callable[[Act], Act]:
    """Make a method what an agent does when one of `names` is typed; see `Word`.
    `typed` is for the help where that has more than the names. The others are as in
    `Meaning`.
    """
    as_typed = typed or ", ".join(f"`{name}`" if name else "Enter" for name in names)

    def declare(act: Act) -> Act:
        says = hint if callable(hint) else lambda *_: hint
        vars(act)["word"] = Word(names, act, does, as_typed, says, about, step)
        return act

    return declare


class ReadsWords:
    """Reads a line as every agent on a ticket does: the agent's commands first, then
    those of any shell, then lines that need a question; the rest is for the model.
    """

    after_a_failure = ""
    OTHERS: ClassVar[tuple[tuple[str, str], ...]]
    """The last rows of the help: lines that are not commands, and their effect.
    """
    NEAR: ClassVar[float]
    """The least similarity of a mistyped command, from 0 to 1."""
    HELP: ClassVar[str]
    WORDS: ClassVar[dict[str, Word]]
    """The agent's commands, by name."""
    slash: Collection[str]
    """The names of the shell's commands."""
    emit: Emit

    def __init_subclass__(cls) -> None:
        own = [
            known
            for act in vars(cls).values()
            if isinstance(known := getattr(act, "word", None), Word)
        ]
        cls.WORDS = {name: known for known in own for name in known.names}
        rows = [
            *((known.typed, known.does) for known in own if known.does),
            *cls.OTHERS,
        ]
        cls.HELP = "| typed | does |\n|---|---|\n" + "".join(
            f"| {typed} | {does} |\n" for typed, does in rows
        )

    def meaning(self, line: str) -> Meaning:
        text = line.strip()
        name = shell_name(text)
        own = self.command(text)
        if own is not None:
            return own
        if name == "help":
            return Meaning(
                name,
                "Enter: show the commands",
                partial(self.answer_with, Answer(self.HELP)),
            )
        if name in self.slash:
            return self._asked_about(text, f"Use `/{name}` for that.")
        if text.startswith(FOR_THE_MODEL) and (
            rest := text.removeprefix(FOR_THE_MODEL).strip()
        ):
            return self.words(rest)
        why = self.doubt(text)
        return self._asked_about(text, why) if why else self.words(text)

    def command(self, text: str) -> Meaning | None:
        """Return the meaning of one of the agent's commands."""
        known = self.WORDS.get(text.lower())
        return self.meaning_of(known) if known is not None else None

    def meaning_of(self, known: Word, *typed: object) -> Meaning:
        """`typed` is what followed the name."""
        act, about = partial(known.act, self, *typed), known.about(self, *typed)
        return Meaning(known.names[0], known.hint(self, *typed), act, about)

    def words(self, text: str) -> Meaning:
        """The meaning of any other text."""
        raise NotImplementedError

    @property
    def placeholder(self) -> str:
        """The most usual of what can be typed, in a few words."""
        raise NotImplementedError

    @property
    def to_the_model(self) -> str:
        """The use of words for the model, as the end of a sentence."""
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        """The single words that its own are made of."""
        return [name for names in self.WORDS for name in names.split()]

    def doubt(self, text: str) -> str:
        """Return why this may not be meant for the model; empty without a doubt."""
        meant = command_meant(
            text, (*self.names, "help", "exit"), self.is_command, near=self.NEAR
        )
        return f"Did you mean `{meant}`?" if meant is not None else ""

    def is_command(self, line: str) -> bool:
        return self.command(line) is not None or shell_name(line) in ("help", "exit")

    def _asked_about(self, text: str, why: str) -> Meaning:
        first, *more = text.splitlines()
        shown = f"{first[:_SHOWN]}…" if more or len(first) > _SHOWN else first
        return self.nothing_for(
            why, f"Type `{FOR_THE_MODEL} {shown}` to {self.to_the_model}."
        )

    def nothing_for(self, why: str, more: str = "") -> Meaning:
        """Return a meaning that does nothing but answer."""
        answer = Notice(f"{why} {more}".rstrip(), kind=NoticeKind.NOT_DONE)
        return Meaning(
            "nothing", f"Enter does nothing. {why}", partial(self.answer_with, answer)
        )

    def closing(self) -> list[Event]:
        return []

    async def answer_with(self, event: Event) -> None:
        """A `Meaning.act` that only emits an event."""
        self.emit(event)

    def steer(self, line: str, take: Take) -> bool:
        """Refuse the line: the agent handles one line after another."""
        del line, take
        return False

    def tell(self, *events: Event) -> None:
        for event in events:
            self.emit(event)


class GeneralAgent(Protocol):
    """The agent that gets plain text while no other agent is active."""

    async def say(self, line: str) -> None:
        """Handle the user's line. Raises `CddError` for what the user or the model
        must fix.
        """
        ...

    def hear(self, text: str) -> None:
        """Add a text that the model gets with the next line."""
        ...

    def begin_anew(self) -> None:
        """Begin a new conversation; what was said so far stays saved."""
        ...

    def resume(self, key: str = "", *, in_short: bool = False) -> bool:
        """Continue the conversation with this key, or the last one if nothing was
        said yet. Show it, or `in_short` only its end. Return False if there is none.
        """
        ...

    @property
    def conversations(self) -> frozenset[str]:
        """The names of the conversations that this session held or resumed."""
        ...

    def describe(self) -> str:
        """Return what the model gets in place of the older part of the conversation;
        empty if it gets all of the conversation.
        """
        ...

    def earlier(self) -> tuple[SessionView, ...]:
        """The conversations that there are, but for the present one. Reads files: to be
        called in a thread.
        """
        ...
