"""What every file of a project must be, by a plain model that knows nothing of the
engine.

Each path has a stack of versions, the newest on top, with who made each. Restoring or
undoing steps takes their versions off the stack. Where a version of the user is above
one of the step, the step's change is merged out of it, or the user's version stays and
is named.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise, product

from tests.engine.histories_tree import Conflict, Entry, Tree, merge


class Who(StrEnum):
    """Who made a version."""

    START = "start"
    REPLY = "reply"
    TOOL = "tool"
    COMMAND = "command"
    CHECK = "check"
    USER = "user"

    @property
    def is_program(self) -> bool:
        return self in (Who.COMMAND, Who.CHECK)


class Owned(StrEnum):
    """True if a version belongs to its step, so that `undo` discards it."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"
    """The rules leave it open, for example after a kill while a command ran."""


@dataclass(frozen=True)
class Version:
    """One version of a file."""

    entry: Entry | None
    who: Who = Who.START
    life: int | None = None
    """The life of the step that was at work."""
    attempt: int = 0
    owned: Owned = Owned.NO


Stack = tuple[Version, ...]


@dataclass(frozen=True)
class Outcome:
    """What a path may be after the engine did something."""

    entry: Entry | None
    stack: Stack
    must_be_named: bool = False
    discarded: Version | None = None
    """The version that was on the disk and is discarded."""
    tag: str = ""
    """Outcomes of one reply that must come together."""
    must_hold: bytes | None = None
    """Text of the user that must not be lost; any entry with it will do."""


_MOST_OPEN = 5
"""Versions of a path of which nobody knows whose they are: of so many, each may be."""
Gone = Callable[[Version], Owned]


def outcomes_without(stack: Stack, gone: Gone, *, strict: bool) -> list[Outcome]:
    """Return what a path may be once the versions that are `gone` are discarded.

    Not `strict`: the user's version may also stay where a merge would be clean.
    """
    verdicts = [Owned.NO, *(gone(version) for version in stack[1:])]
    open_ones = [i for i, verdict in enumerate(verdicts) if verdict is Owned.MAYBE]
    choices = []
    for taken in product((True, False), repeat=len(open_ones[-_MOST_OPEN:])):
        choice = [verdict is Owned.YES for verdict in verdicts]
        for place, is_gone in zip(reversed(open_ones), taken, strict=False):
            choice[place] = is_gone
        choices.append(choice)
    strict = strict and not open_ones
    found: list[Outcome] = []
    for choice in choices:
        found += _discard(stack, choice, strict=strict)
    if open_ones:
        found += _discard_to_known(stack, gone)
        # as an edit of the user's, or as a change of the step's: nobody knows
        found = [replace(outcome, must_be_named=False) for outcome in found]
    return found


def _discard_to_known(stack: Stack, gone: Gone) -> list[Outcome]:
    """If the file is as a step had left it earlier, it may lead back as it did then."""
    for place in range(len(stack) - 2, 0, -1):
        version = stack[place]
        if version.entry == stack[-1].entry and gone(version) is not Owned.NO:
            shorter = stack[: place + 1]
            choice = [False, *(gone(one) is not Owned.NO for one in shorter[1:])]
            return _discard(shorter, choice, strict=False)
    return []


def _discard(stack: Stack, gone: Sequence[bool], *, strict: bool) -> list[Outcome]:
    """Discard versions from the newest on, as far as possible."""
    if not any(gone):
        return [Outcome(stack[-1].entry, stack)]
    entry, position, depth, is_exact = stack[-1].entry, len(stack) - 1, 0, True
    steps: list[Outcome] = []
    remaining = list(stack)
    while position > 0:
        if not gone[position]:
            is_exact, position = False, position - 1
            continue
        first = position
        while gone[first - 1]:
            first -= 1
        base, other = stack[position].entry, stack[first - 1].entry
        if not is_exact:
            steps.append(Outcome(entry, tuple(remaining), must_be_named=True))
        try:
            entry = merge(entry, base, other)
        except Conflict:
            return _with_discarded(stack, gone, steps)
        depth += 1
        del remaining[first : position + 1]
        if remaining[-1].entry != entry:
            remaining.append(Version(entry, Who.USER))
        position = first - 1
    last = Outcome(entry, tuple(remaining))
    is_simple = depth == 1 and _have_one_mode(stack)
    if is_exact or (strict and is_simple) or not steps:
        return _with_discarded(stack, gone, [last])
    return _with_discarded(stack, gone, [last, *steps])


def _have_one_mode(stack: Stack) -> bool:
    return len({version.entry.mode for version in stack if version.entry}) == 1


def _with_discarded(
    stack: Stack, gone: Sequence[bool], found: Iterable[Outcome]
) -> list[Outcome]:
    top = stack[-1]
    return [
        Outcome(
            one.entry,
            one.stack,
            one.must_be_named and one.entry != stack[0].entry,
            top if gone[-1] and one.entry != top.entry else None,
        )
        for one in found
    ]


@dataclass
class Undone:
    """An undo that may be undone."""

    lives: dict[int, int]
    """By step."""
    before: dict[str, Stack]
    """The stacks that it changed, as they were."""
    after: Tree
    """What it made of those; a file that is gone is absent."""


@dataclass
class Model:
    """All versions of all files."""

    stacks: dict[str, Stack]
    lives: dict[int, int] = field(default_factory=dict)
    """The life of each step that was begun and not undone."""
    undone: list[Undone] = field(default_factory=list)
    made: dict[tuple[str, Entry | None], int] = field(default_factory=dict)
    """The last life that made a path this entry."""
    between: set[str] = field(default_factory=set)
    """Paths that others changed before a step did: an undo may go no further back."""
    _next_life: int = 0

    @classmethod
    def of_tree(cls, tree: Tree) -> "Model":
        return cls({path: (Version(entry),) for path, entry in tree.items()})

    @property
    def tree(self) -> Tree:
        return {
            path: stack[-1].entry
            for path, stack in self.stacks.items()
            if stack[-1].entry is not None
        }

    def stack(self, path: str) -> Stack:
        return self.stacks.get(path, (Version(None),))

    def entry(self, path: str) -> Entry | None:
        return self.stack(path)[-1].entry

    def push(self, path: str, version: Version) -> None:
        """A version that changes nothing is none. A file that others make as a step
        had left it may count as the step's.
        """
        if version.entry == self.entry(path):
            return
        life = self.made.get((path, version.entry))
        if version.owned is Owned.NO and life is not None:
            version = replace(version, life=life, owned=Owned.MAYBE)
        self.set_stack(path, (*self.stack(path), version))

    def set_stack(self, path: str, stack: Stack) -> None:
        self.stacks[path] = stack
        for below, version in pairwise((*stack[:1], *stack)):
            if version.owned is Owned.NO or version.life is None:
                continue
            self.made[path, version.entry] = version.life
            if below.owned is Owned.NO and below.who is not Who.START:
                self.between.add(path)

    def begin(self, step: int) -> int:
        """Return the life of a step; it begins here if it has none."""
        if step not in self.lives:
            self.lives[step] = self._next_life
            self._next_life += 1
        return self.lives[step]

    def unchanged(self) -> dict[str, list[Outcome]]:
        return {
            path: [Outcome(stack[-1].entry, stack)]
            for path, stack in self.stacks.items()
        }

    def gone_with(self, lives: Iterable[int], path: str) -> Gone:
        """Return which versions of a path are discarded together with these lives."""
        lives = frozenset(lives)
        wrote = {
            version.life
            for version in self.stack(path)
            if version.owned is not Owned.NO and version.who in (Who.REPLY, Who.TOOL)
        }

        def gone(version: Version) -> Owned:
            if version.life not in lives:
                return Owned.NO
            # the step wrote the file after its command had changed it
            if version.owned is Owned.NO and version.life in wrote:
                return Owned.MAYBE
            return version.owned

        return gone

    def without(
        self, lives: Iterable[int], *, strict: bool
    ) -> dict[str, list[Outcome]]:
        """Return what each path may be without the changes of these lives."""
        lives = tuple(lives)
        found = {}
        for path, stack in self.stacks.items():
            is_strict = strict and path not in self.between
            gone = self.gone_with(lives, path)
            found[path] = outcomes_without(stack, gone, strict=is_strict)
        return found

    def foreign(self, lives: Iterable[int]) -> list[str]:
        """Return the paths that commands of these lives changed, that belong to no
        step, and that are still as they were left.
        """
        lives = frozenset(lives)
        found = []
        for path, stack in self.stacks.items():
            top = stack[-1]
            is_foreign = top.owned is Owned.NO and top.life in lives
            if is_foreign and top.who.is_program and top.entry != stack[-2].entry:
                found.append(path)
        return found

    def redone(self, undone: Undone) -> dict[str, list[Outcome]]:
        """Return what each path may be once an undo is undone."""
        found = self.unchanged()
        for path, before in undone.before.items():
            now, left = self.entry(path), undone.after.get(path)
            # where it was merged, the way back need not be exact
            was_exact = not any(version.who is Who.USER for version in before[1:])
            try:
                entry = merge(now, left, before[-1].entry)
            except Conflict:
                found[path] = [self._kept(path, before)]
                continue
            stack = before
            if entry != before[-1].entry:
                stack = (*before, Version(entry, Who.USER))
            found[path] = [Outcome(entry, stack)]
            if not was_exact and now == left:
                found[path] += [self._kept(path, before)]
                found[path] += [Outcome(before[-1].entry, before)]
            elif now != left and not _have_one_mode((*before, Version(now))):
                found[path] += [self._kept(path, before)]
        return found

    def _kept(self, path: str, before: Stack) -> Outcome:
        now = self.entry(path)
        is_named = now != before[-1].entry
        return Outcome(now, (*before, Version(now, Who.USER)), must_be_named=is_named)
