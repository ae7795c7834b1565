"""What several processes that ask models share: one budget, and the waits that
providers ask for. Files in a folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from msgspec import Struct

from cdd_agent.errors import BadInput, BudgetExhausted
from cdd_agent.files.shared_json import json_changed, json_read
from cdd_agent.llm.budget import Limit, Spent
from cdd_agent.llm.port import Usage

_LOOK = 0.3
"""Seconds between two looks at whether there is room for a call by now."""
_PATIENCE = 30.0
_locks = list["FileLock"]()
"""A lock is let go of when nobody has its object any more."""


class Shared(Struct, frozen=True):
    """A folder that several runs share, as one of them."""

    folder: Path
    name: str

    @classmethod
    def begin(cls, folder: Path, limit: Limit, spent: dict[str, Spent]) -> None:
        """Make the budget of all these runs, which have spent this before. Raises
        `BadInput` when the disk refuses.
        """
        with json_changed(folder / "budget.json") as budget:
            budget.clear()
            budget["limit"] = {"tokens": limit.tokens, "usd": limit.usd}
            budget["runs"] = {name: _as_json(each) for name, each in spent.items()}

    @property
    def limit(self) -> Limit:
        limit = json_read(self._budget).get("limit", {})
        return Limit(limit.get("tokens"), limit.get("usd"))

    def account(self, spent: Spent) -> SharedAccount:
        """The account of this run, which has spent this before."""
        with json_changed(self._budget) as budget:
            budget.setdefault("runs", {})[self.name] = _as_json(spent)
        return SharedAccount(self._budget, self.name)

    @property
    def its_account(self) -> SharedAccount:
        """That of this run, as it is."""
        return SharedAccount(self._budget, self.name)

    def hold(self) -> None:
        """For as long as this process lives, no other is this run. One that has just
        lost whoever began it may take a moment to end. Raises `BadInput` where it does
        not.
        """
        lock = FileLock(self.folder / f"{self.name}.run", timeout=_PATIENCE)
        try:
            lock.acquire()
        except Timeout as error:
            raise BadInput(
                f"Another process carries out {self.name} here, and does not end"
            ) from error
        _locks.append(lock)

    def settle(self) -> bool:
        """This run's process has ended: a call that it had begun holds nothing any
        more. Returns whether it was refused one for want of budget.
        """
        if self.limit == Limit():
            return False
        with json_changed(self._budget) as budget:
            own = budget.get("runs", {}).get(self.name, {})
            own.pop("held", None)
            return bool(own.pop("refused", False))

    def waits(self, provider: str) -> SharedWaits:
        return SharedWaits(self.folder / "waits.json", provider)

    @property
    def _budget(self) -> Path:
        return self.folder / "budget.json"


class SharedAccount(Struct, frozen=True):
    """What one run took of a budget that it shares. A call begins only where it would
    fit beside those that others have begun, at their worst; where it would fit but for
    these, it waits for their end.
    """

    path: Path
    name: str

    @property
    def spent(self) -> Spent:
        """By all runs."""
        return _sum(json_read(self.path).get("runs", {}).values())

    def add(self, usage: Usage) -> None:
        with json_changed(self.path) as budget:
            own = self._own(budget)
            own |= _as_json(_sum([own]) + usage)

    @asynccontextmanager
    async def holding(
        self, worst: Usage, expect: Callable[[Spent], None]
    ) -> AsyncIterator[Callable[[], Spent]]:
        """See `Account`."""
        held = [worst.prompt_tokens + worst.completion_tokens, worst.usd or 0.0]
        # other processes cannot wake this one
        while not self._hold(held, expect):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK)
        try:
            yield self._with_others
        finally:
            with json_changed(self.path) as budget:
                all_held = self._own(budget).get("held", [])
                if held in all_held:
                    all_held.remove(held)

    def _with_others(self) -> Spent:
        runs = json_read(self.path).get("runs", {})
        return _sum(runs.values()) + _held(
            run for name, run in runs.items() if name != self.name
        )

    def _own(self, budget: dict[str, Any]) -> dict[str, Any]:
        """The entry of this run; who has begun anew without it has none."""
        own: dict[str, Any] = budget.setdefault("runs", {}).setdefault(
            self.name, _as_json(Spent())
        )
        return own

    def _hold(self, held: list[float], expect: Callable[[Spent], None]) -> bool:
        """Whether there is room now. Raises `BudgetExhausted` where there will be
        none.
        """
        with json_changed(self.path) as budget:
            own, runs = self._own(budget), budget["runs"]
            spent = _sum(runs.values())
            refused = _refusal(expect, spent)
            own["refused"] = refused is not None
            if refused is None:
                if _refusal(expect, spent + _held(runs.values())) is not None:
                    return False
                own.setdefault("held", []).append(held)
        if refused is not None:
            raise refused
        return True


class SharedWaits(Struct, frozen=True):
    """When a provider may be asked again; in Unix time, as the processes that share it
    are on one machine.
    """

    path: Path
    provider: str

    @property
    def until(self) -> tuple[float, str]:
        """The time, and why not before."""
        found = json_read(self.path).get(self.provider, {})
        return float(found.get("until", 0.0)), str(found.get("reason", ""))

    def extend(self, until: float, reason: str) -> None:
        """Nobody asks before that."""
        with json_changed(self.path) as waits:
            if until > waits.get(self.provider, {}).get("until", 0.0):
                waits[self.provider] = {"until": until, "reason": reason}


def _as_json(spent: Spent) -> dict[str, Any]:
    return {"tokens": spent.tokens, "usd": spent.usd, "estimated": spent.estimated}


def _sum(runs: Iterable[dict[str, Any]]) -> Spent:
    runs = tuple(runs)
    return Spent(
        sum(run["tokens"] for run in runs),
        sum(run["usd"] for run in runs),
        any(run["estimated"] for run in runs),
    )


def _refusal(expect: Callable[[Spent], None], spent: Spent) -> BudgetExhausted | None:
    try:
        expect(spent)
    except BudgetExhausted as error:
        return error
    return None


def _held(runs: Iterable[dict[str, Any]]) -> Usage:
    held = [each for run in runs for each in run.get("held", ())]
    return Usage(sum(tokens for tokens, _ in held), 0, usd=sum(usd for _, usd in held))
