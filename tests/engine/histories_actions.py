"""Histories as data: what a seed stands for. Nothing here depends on what happens while
one is played, so that actions can be left out of it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tests.engine.histories_project import NEW, VARIANTS

MOST_KILLS = 400
"""A kill is at one of so many points; one that is not reached does nothing."""


class Moment(StrEnum):
    """When a file is changed, and by whom."""

    REPLY = "reply"
    TOOL = "tool"
    COMMAND = "command"
    CHECK = "check"
    ANSWERING = "user while the model answers"
    IN_COMMAND = "user during a command"
    IN_CHECK = "user during the check"
    USER = "user"


class Op(StrEnum):
    """What happens to a file."""

    TOP = "edit the top"
    BOTTOM = "edit the bottom"
    WHOLE = "replace"
    DELETE = "delete"
    DELETE_FOLDER = "delete the folder"
    CHMOD = "chmod"
    FORMAT = "format"
    RENAME = "rename"
    GIT_MV = "git mv"
    LINK = "make a link"
    BINARY = "make binary"


_BY_MODEL = (Op.TOP, Op.TOP, Op.BOTTOM, Op.WHOLE, Op.DELETE)
_BY_TOOL = (Op.TOP, Op.TOP, Op.BOTTOM, Op.WHOLE)
_BY_PROGRAM = (
    *(Op.TOP, Op.BOTTOM, Op.WHOLE, Op.FORMAT, Op.FORMAT),
    *(Op.DELETE, Op.CHMOD, Op.RENAME, Op.GIT_MV, Op.LINK, Op.BINARY),
    Op.DELETE_FOLDER,
)
_BY_USER = (
    *(Op.TOP, Op.TOP, Op.BOTTOM, Op.BOTTOM, Op.WHOLE),
    *(Op.DELETE, Op.CHMOD, Op.RENAME, Op.LINK, Op.BINARY, Op.DELETE_FOLDER),
)


@dataclass(frozen=True)
class Touch:
    """One change of one file. Numbers are taken modulo the possibilities."""

    moment: Moment
    op: Op
    pick: int
    is_declared: bool
    joins: bool = False
    """A tool call that is made in the same round as the one before."""


class End(StrEnum):
    """How the model ends its part of an attempt."""

    REPLY = "reply"
    NO_ANSWER = "no answer"
    LATER = "come back later"


@dataclass(frozen=True)
class Attempt:
    """A script for one attempt at a step."""

    touches: tuple[Touch, ...]
    with_tools: bool
    passes: bool
    end: End = End.REPLY
    stop_at: Moment | None = None
    """Stopped as by Escape: while the model answers, or in a command or the check."""

    def at(self, *moments: Moment) -> list[Touch]:
        return [touch for touch in self.touches if touch.moment in moments]

    @property
    def rounds(self) -> list[list[Touch]]:
        """The tool calls, by the round that they are made in."""
        rounds: list[list[Touch]] = []
        for touch in self.at(Moment.TOOL, Moment.COMMAND):
            if touch.joins and rounds:
                rounds[-1].append(touch)
            else:
                rounds.append([touch])
        return rounds if self.with_tools else []

    def call(self, number: int, place: int) -> list[Touch]:
        """The call at a place of a round, if there is one."""
        if number >= len(self.rounds):
            return []
        return self.rounds[number][place : place + 1]


@dataclass(frozen=True)
class Action:
    """One thing that the user does, or that happens."""

    kill: int = 0
    """Killed just before this point of the work, if it comes to that; 0: not killed."""
    cuts_power: bool = False
    """The kill is a power cut: what was not synced is lost by half."""
    edit_after_kill: Touch | None = None
    reopens: bool = False
    """A new process does it."""


@dataclass(frozen=True)
class Run(Action):
    """The next step, with one attempt after the other as far as they fail."""

    attempts: tuple[Attempt, ...] = ()
    guidance: str = ""


@dataclass(frozen=True)
class Skip(Action):
    keep: bool = False


@dataclass(frozen=True)
class Undo(Action):
    back: int = 1
    """How many steps, or as many as there are."""


@dataclass(frozen=True)
class Redo(Action):
    pass


@dataclass(frozen=True)
class Edit(Action):
    touch: Touch = Touch(Moment.USER, Op.TOP, 0, is_declared=False)


class GitOp(StrEnum):
    """What the user does with git."""

    ADD = "add"
    INTEND = "add -N"
    COMMIT = "commit"


@dataclass(frozen=True)
class UseGit(Action):
    op: GitOp = GitOp.ADD
    pick: int = 0


@dataclass(frozen=True)
class Diff(Action):
    pick: int = 0


@dataclass(frozen=True)
class SwitchCommits(Action):
    """Turns `commit: step` on or off."""


@dataclass(frozen=True)
class History:
    """A project, a plan, and what happens."""

    seed: int
    variant: str
    declared: tuple[tuple[str, ...], ...]
    """The files of each step."""
    pool: tuple[str, ...]
    """The files that anything happens to."""
    actions: tuple[Action, ...] = field(default=())

    def shorter(self) -> Iterator["History"]:
        """Return the histories that have one action, or a part of one, less."""
        for place in range(len(self.actions)):
            rest = (*self.actions[:place], *self.actions[place + 1 :])
            yield replace(self, actions=rest)
        for place, action in enumerate(self.actions):
            for smaller in _smaller(action):
                rest = (*self.actions[:place], smaller, *self.actions[place + 1 :])
                yield replace(self, actions=rest)


def _smaller(action: Action) -> Iterator[Action]:
    if action.kill:
        yield replace(action, kill=0)
    if action.cuts_power:
        yield replace(action, cuts_power=False)
    if action.edit_after_kill:
        yield replace(action, edit_after_kill=None)
    if action.reopens:
        yield replace(action, reopens=False)
    if not isinstance(action, Run):
        return
    if len(action.attempts) > 1:
        for place in range(len(action.attempts)):
            rest = (*action.attempts[:place], *action.attempts[place + 1 :])
            yield replace(action, attempts=rest)
    for place, attempt in enumerate(action.attempts):
        for index in range(len(attempt.touches)):
            touches = (*attempt.touches[:index], *attempt.touches[index + 1 :])
            less = replace(attempt, touches=touches)
            rest = (*action.attempts[:place], less, *action.attempts[place + 1 :])
            yield replace(action, attempts=rest)


LONGEST = 7
"""Actions of a history."""


def history_of(seed: int, longest: int = LONGEST) -> History:
    """Return the history that a seed stands for, with its first actions alone."""
    chance = random.Random(seed)
    # those with fewer repositories are faster, and have the most histories
    names = (*VARIANTS, *("submodule", "plain") * 5)
    variant = VARIANTS[chance.choice(names)]
    existing = [f"{variant.main}{path}" for path in _existing()]
    if variant.name == "above":
        existing += ["top.txt", "top folder/link", "two/core.txt", "two/core.sh"]
    new = [f"{variant.main}{path}" for path in NEW]
    lacks = _LACKS.get(variant.name, ())
    pool = chance.sample([path for path in existing if not path.startswith(lacks)], 6)
    pool += chance.sample([path for path in new if not path.startswith(lacks)], 3)
    chance.shuffle(pool)
    declared = tuple(
        tuple(chance.sample(pool, chance.randint(1, min(4, len(pool)))))
        for _ in range(chance.randint(2, 4))
    )
    # whatever comes first has something to work on
    first = _action(chance, Run if chance.random() < 0.8 else None)
    rest = [_action(chance) for _ in range(chance.randint(2, LONGEST - 1))]
    actions = (first, *rest)
    return History(seed, variant.name, declared, tuple(pool), actions[:longest])


_LACKS = {
    "plain": ("lib/", "tools/", "cache/"),
    "submodule": ("tools/", "cache/"),
}


def _existing() -> list[str]:
    from_inner = [
        *("lib/core/core.txt", "lib/core/core.sh", "lib/core/fresh.txt"),
        *("lib/core/core.tmp", "lib/core/sub/core.txt"),
        *("tools/vendor/core.txt", "tools/vendor/fresh.txt", "tools/vendor/core.sh"),
        *("cache/clone/core.txt", "cache/clone/fresh.txt"),
    ]
    own = [
        *("app.txt", "start.sh", "private.txt", "docs/two words.txt"),
        *("docs/größe.txt", "win.txt", "auto.bat", "latin.txt", "data.bin"),
        *("empty.txt", "link-file", "link-folder", "link-dangling", "notes.txt"),
        *("deep/er/loose.txt", "small.log", "build/out.txt", "build/big.log"),
    ]
    return [*own, *from_inner]


def _action(chance: random.Random, kind: type[Action] | None = None) -> Action:
    if kind is None:
        kind = chance.choices(
            (Run, Edit, Undo, Redo, Skip, UseGit, Diff, SwitchCommits),
            (12, 5, 4, 3, 2, 2, 1, 0.5),
        )[0]
    action = _action_of(chance, kind)
    action = replace(action, reopens=chance.random() < 0.3)
    if kind not in (Run, Undo, Redo, Skip) or chance.random() > 0.15:
        return action
    kill = int(MOST_KILLS ** chance.random())
    action = replace(action, kill=kill, cuts_power=chance.random() < 0.4)
    if chance.random() < 0.3:
        op, is_declared = chance.choice((Op.TOP, Op.BOTTOM)), chance.random() < 0.7
        edit = Touch(Moment.USER, op, chance.randrange(99), is_declared)
        action = replace(action, edit_after_kill=edit)
    return action


def _action_of(chance: random.Random, kind: type[Action]) -> Action:
    if kind is Run:
        count = chance.choices((1, 2, 3), (6, 3, 1))[0]
        attempts = tuple(_attempt(chance) for _ in range(count))
        guidance = "Do it well." if chance.random() < 0.15 else ""
        return Run(attempts=attempts, guidance=guidance)
    if kind is Edit:
        return Edit(touch=_touch(chance, Moment.USER, 0.6))
    if kind is Undo:
        return Undo(back=chance.choices((1, 2, 3), (6, 3, 1))[0])
    if kind is Skip:
        return Skip(keep=chance.random() < 0.4)
    if kind is UseGit:
        return UseGit(op=chance.choice(tuple(GitOp)), pick=chance.randrange(99))
    if kind is Diff:
        return Diff(pick=chance.randrange(99))
    return kind()


def _attempt(chance: random.Random) -> Attempt:
    with_tools = chance.random() < 0.45
    touches: list[Touch] = []
    if with_tools:
        for _ in range(chance.randint(1, 4)):
            moment = chance.choice((Moment.TOOL, Moment.COMMAND, Moment.COMMAND))
            touch = _touch(chance, moment, 0.7)
            touches.append(replace(touch, joins=chance.random() < 0.25))
        if chance.random() < 0.2:
            touches.append(_touch(chance, Moment.IN_COMMAND, 0.6))
    if not with_tools or chance.random() < 0.1:
        for _ in range(chance.randint(1, 3)):
            touches.append(_touch(chance, Moment.REPLY, 0.8))
    if chance.random() < 0.4:
        for _ in range(chance.randint(1, 2)):
            touches.append(_touch(chance, Moment.CHECK, 0.6))
    if chance.random() < 0.12:
        touches.append(_touch(chance, Moment.ANSWERING, 0.6))
    if chance.random() < 0.12:
        touches.append(_touch(chance, Moment.IN_CHECK, 0.6))
    end, stop = End.REPLY, None
    if chance.random() < 0.06:
        end = chance.choice((End.NO_ANSWER, End.LATER))
    elif chance.random() < 0.08:
        stop = chance.choice((Moment.ANSWERING, Moment.COMMAND, Moment.CHECK))
    return Attempt(tuple(touches), with_tools, chance.random() < 0.55, end, stop)


def _touch(chance: random.Random, moment: Moment, share: float) -> Touch:
    ops = {Moment.REPLY: _BY_MODEL, Moment.TOOL: _BY_TOOL}.get(moment)
    if ops is None:
        is_program = moment in (Moment.COMMAND, Moment.CHECK)
        ops = _BY_PROGRAM if is_program else _BY_USER
    return Touch(
        moment, chance.choice(ops), chance.randrange(99), chance.random() < share
    )
