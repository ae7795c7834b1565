"""Who holds a run: any order of pushes, pulls, renewals, deaths and late answers, and
never two that go on.
"""

import random
from collections.abc import Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from msgspec.structs import replace

from cdd_agent.engine.whereabouts import MARGIN, Phase, RunElsewhere, Whereabouts
from cdd_agent.git.command import GitUnusable
from cdd_agent.git.remote import PushRefused
from cdd_agent.travel.lease import DURATION, Claim, Lease, Moved

NOON = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Turn:
    """Somebody else may be at work here."""

    def __await__(self) -> Generator[None]:
        yield


@dataclass
class Swap:
    """A push that is on its way: it may arrive when whoever sent it is dead."""

    expected: str | None
    new: str
    arrived: bool | None = None
    is_lost: bool = False


@dataclass
class World:
    """The remote, and the true time."""

    now: datetime = NOON
    tip: str | None = None
    leases: dict[str, Lease | None] = field(default_factory=dict)
    under_way: list[Swap] = field(default_factory=list)

    def commit(self, lease: Lease | None) -> str:
        name = f"commit-{len(self.leases)}"
        self.leases[name] = lease
        return name

    def arrive(self, swap: Swap) -> None:
        self.under_way.remove(swap)
        swap.arrived = self.tip == swap.expected
        if swap.arrived:
            self.tip = swap.new


@dataclass
class Ref:
    """The reference as one machine sees it."""

    world: World

    async def tip(self) -> str | None:
        await Turn()
        seen = self.world.tip
        await Turn()  # an answer takes its time, too
        return seen

    async def lease(self, tip: str) -> Lease | None:
        await Turn()
        return self.world.leases[tip]

    async def leased(self, tip: str, lease: Lease) -> str:
        await Turn()
        return self.world.commit(lease)

    async def swap(self, expected: str | None, new: str) -> bool:
        swap = Swap(expected, new)
        self.world.under_way.append(swap)
        while swap.arrived is None and not swap.is_lost:
            await Turn()
        if swap.arrived is None:
            raise GitUnusable("The network is down")
        return swap.arrived


@dataclass
class Machine:
    """One copy of the project; its clock is off by `skew`."""

    name: str
    world: World
    skew: timedelta
    reference: Ref = field(init=False)
    has_run: bool = False
    known: Whereabouts | None = None
    doing: Coroutine[Any, Any, None] | None = None
    looked: tuple[int, datetime] | None = None
    found: bool = False

    def __post_init__(self) -> None:
        self.reference = Ref(self.world)

    @property
    def now(self) -> datetime:
        return self.world.now + self.skew

    @property
    def claim(self) -> Claim:
        return Claim(
            "words", self.reference, self.name, self.name, lambda: self.now, self.save
        )

    def save(self, known: Whereabouts | None) -> None:
        self.known, self.looked = known, None

    @property
    def goes_on(self) -> bool:
        """Whether a step could be under way here."""
        if self.known is None or not self.has_run:
            return self.has_run
        if self.looked != (id(self.known), self.now):  # most events change neither
            self.looked = (id(self.known), self.now)
            try:
                self.known.expect_here("words", self.name, self.now)
                self.found = True
            except RunElsewhere:
                self.found = False
        return self.found

    async def push(self) -> None:
        if not self.has_run:
            return
        claim = self.claim
        tip = await claim.find_replaceable(self.known)
        await Turn()  # the run is packed
        leaving = Whereabouts(
            phase=Phase.LEAVING,
            remote="origin",
            holder=self.name,
            tip=tip,
            content=self.world.commit(None),
        )
        await claim.hand_over(self.known, leaving)

    async def pull(self) -> None:
        claim = self.claim
        tip = await claim.shared.tip()
        if tip is None:
            return
        new, lease = await claim.take(tip)
        arriving = Whereabouts(
            phase=Phase.ARRIVING,
            remote="origin",
            holder=self.name,
            tip=new,
            content=tip,
            until=lease.until,
        )
        self.save(arriving)
        await Turn()
        self.has_run = True
        self.save(replace(arriving, phase=Phase.HERE))

    async def keep(self) -> None:
        if self.known is not None and self.known.phase is Phase.HERE:
            await self.claim.keep(self.known)

    def go(self) -> None:
        """One turn of what it is doing."""
        if self.doing is None:
            return
        try:
            self.doing.send(None)
        except (StopIteration, RunElsewhere, GitUnusable):
            self.doing = None

    def die(self) -> None:
        if self.doing is not None:
            self.doing.close()
            self.doing = None


EVENTS = {
    "begin": 6,
    "turn": 8,
    "on": 12,
    "arrive": 8,
    "lost": 1,
    "die": 2,
    "soon": 3,
    "late": 1,
}
"""What may happen next, and how often."""


def interleave(seed: int) -> int:
    """Three machines in some order, where any of them may die and any push be late. How
    often one held the run.
    """
    chance = random.Random(seed)
    world = World()
    machines = [
        Machine(f"m{n}", world, timedelta(seconds=chance.randint(-240, 240)))
        for n in range(3)
    ]
    machines[0].has_run = True
    held = list[str]()
    for _ in range(300):
        machine = chance.choice(machines)
        match chance.choices([*EVENTS], [*EVENTS.values()])[0]:
            case "begin" if machine.doing is None:
                machine.doing = chance.choice(
                    (machine.push, machine.pull, machine.keep)
                )()
            case "turn":
                machine.go()
            case "on":
                while machine.doing is not None and not world.under_way:
                    machine.go()
            case "arrive" if world.under_way:
                world.arrive(chance.choice(world.under_way))
            case "lost" if world.under_way:
                lost = chance.choice(world.under_way)
                world.under_way.remove(lost)
                lost.is_lost = True
            case "die":
                machine.die()
            case "soon":
                world.now += chance.randint(1, 40) * MINUTE
            case "late":
                world.now += DURATION + chance.randint(-15, 15) * MINUTE
        going_on = [machine.name for machine in machines if machine.goes_on]
        assert len(going_on) <= 1, f"seed {seed}: {going_on} go on at once"
        if going_on and going_on != held[-1:]:
            held += going_on
    for machine in machines:
        machine.die()
    return len(held)


def test_never_two_go_on() -> None:
    seeds = 2 * settings().max_examples
    times = [interleave(seed) for seed in range(seeds)]
    assert sum(held > 2 for held in times) > 0.3 * seeds, (
        "in too few of them the run went from one to another"
    )


def pair() -> tuple[World, Machine, Machine]:
    world = World()
    return (
        world,
        Machine("first", world, timedelta(), has_run=True),
        Machine("second", world, timedelta()),
    )


def done(world: World, work: Coroutine[Any, Any, Any]) -> Any:
    """To its end, with nobody in between."""
    try:
        while True:
            work.send(None)
            for swap in [*world.under_way]:
                world.arrive(swap)
    except StopIteration as end:
        return end.value


def test_who_pushed_goes_on_only_when_it_was_pulled_back() -> None:
    world, first, second = pair()
    done(world, first.push())
    assert not first.goes_on
    done(world, second.pull())
    assert (first.goes_on, second.goes_on) == (False, True)
    with pytest.raises(RunElsewhere, match="second"):
        done(world, first.pull())
    done(world, second.push())
    done(world, first.pull())
    assert (first.goes_on, second.goes_on) == (True, False)


def test_a_lease_is_renewed_at_half_of_it_and_taken_over_when_it_is_over() -> None:
    world, first, second = pair()
    done(world, first.push())
    done(world, first.pull())
    until = first.known and first.known.until
    world.now += DURATION / 2 - MINUTE
    done(world, first.keep())
    assert first.known
    assert first.known.until == until
    world.now += 2 * MINUTE
    done(world, first.keep())
    assert first.known.until == world.now + DURATION

    world.now += DURATION + MARGIN
    assert not first.goes_on
    with pytest.raises(RunElsewhere):
        done(world, second.pull())
    world.now += MINUTE
    done(world, second.pull())
    assert second.goes_on
    with pytest.raises(RunElsewhere, match="second"):
        done(world, first.keep())


def test_who_lost_it_by_word_finds_out_and_cannot_push() -> None:
    world, first, second = pair()
    done(world, first.push())
    done(world, first.pull())
    assert world.tip is not None
    done(world, second.claim.take(world.tip, force=True))
    with pytest.raises(RunElsewhere, match="second"):
        done(world, first.keep())
    with pytest.raises(RunElsewhere, match="second"):
        done(world, first.push())


def test_a_renewal_whose_answer_was_lost_is_found_again() -> None:
    world, first, _ = pair()
    done(world, first.push())
    done(world, first.pull())
    world.now += DURATION / 2 + MINUTE
    known, renewal = first.known, first.keep()
    while not world.under_way:
        renewal.send(None)
    renewal.close()
    world.arrive(world.under_way[0])
    assert first.known == known
    done(world, first.keep())
    assert first.known
    assert first.known.tip == world.tip


def test_a_remote_that_does_not_take_a_push_leaves_the_run_here() -> None:
    world, first, _ = pair()

    @dataclass
    class Refusing(Ref):
        async def swap(self, expected: str | None, new: str) -> bool:
            raise PushRefused("a hook says no")

    first.reference = Refusing(world)
    with pytest.raises(PushRefused):
        done(world, first.push())
    assert first.goes_on
    assert first.known is None


def test_a_push_that_may_have_arrived_leaves_the_run_nowhere_until_known() -> None:
    world, first, second = pair()
    first.doing = first.push()
    while not world.under_way:
        first.go()
    first.die()
    assert not first.goes_on
    late = world.under_way[0]
    with suppress(Moved):
        done(world, first.push())
    assert late.arrived is True
    done(world, first.push())
    done(world, second.pull())
    assert (first.goes_on, second.goes_on) == (False, True)
