"""A model that plays a script: for demos, tests, bug reports and recorded runs."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from cdd_agent.llm.pictures import has_pictures
from cdd_agent.llm.port import (
    FREE,
    BadAnswer,
    Done,
    ModelError,
    ModelEvent,
    OnEvent,
    Price,
    Request,
)
from cdd_agent.llm.request_comparison import (
    ComparedRequest,
    as_recorded,
    hide_folder,
    show_folder,
)
from cdd_agent.llm.script_file import read_script
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor


class NoReplyLeft(BadAnswer):
    """A script has no reply for a request. Retrying is useless."""

    refusal = Refusal.SCRIPT_ENDED

    is_transient = False


class ScriptedModel:
    """Plays a script, and keeps the requests.

    The order is: the recorded reply to the same request, the next reply whose `when`
    fits, the next reply without a `when`. Each is played once. After that, a reply with
    a `when` is played again, or a recorded one whose request has more or fewer lines.
    An empty `when` answers all other requests.
    """

    def __init__(
        self,
        script: Iterable[str | ModelError | ScriptedReply],
        *,
        pace: float = 0.0,
        name: str = "scripted",
        window: int | None = None,
        sees: bool | None = True,
        redactor: Redactor | None = None,
        root: Path | None = None,
    ) -> None:
        """`redactor` removes from a request what it removed in the recording. `root` is
        the project's folder, which records do not name.
        """
        self.name = name
        self.window = window
        self.sees = sees
        self.pace = pace
        """Characters per second of written replies; 0: without delay."""
        self.script = [_as_reply(entry) for entry in script]
        self.requests: list[Request] = []
        self._redactor = redactor or Redactor()
        self._root = root
        if root is not None:
            self._redactor = hide_folder(self._redactor, root)
        self._turns: list[_Turn] = []
        for reply in self.script:
            self._add(reply)

    @classmethod
    def from_file(
        cls,
        path: Path,
        redactor: Redactor | None = None,
        root: Path | None = None,
        *,
        in_time: bool = True,
    ) -> Self:
        """Load a script. `in_time`: replies keep their pace. Raises `BadInput`."""
        script = read_script(path)
        replies, pace = script.replies, script.pace
        if not in_time:
            replies, pace = tuple(reply.at_once() for reply in replies), 0.0
        requests = [reply.request for reply in replies if reply.request is not None]
        sees = not requests or any(map(has_pictures, requests))
        name = "replay" if requests else "scripted"
        return cls(
            replies, pace=pace, name=name, sees=sees, redactor=redactor, root=root
        )

    @property
    def calls_tools(self) -> bool:
        """True if a reply calls tools, or had some when recorded."""
        return any(reply.uses_tools for reply in self.script)

    @property
    def price(self) -> Price:
        return FREE

    def warm_up(self) -> None:
        """Nothing is slow here."""

    async def check(self, *, connect: bool) -> None:
        """A script needs no key and no server."""

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        turn, place = self._choose(request)
        reply = turn.replies[place]
        is_complete = False
        turn.played.add(place)
        try:
            for seconds, event in reply.timeline(lambda: self.pace):
                await asyncio.sleep(seconds)
                if event is not None:
                    on_event(self._show(event))
            is_complete = True
        finally:
            # an interrupted reply is played again
            if not is_complete:
                turn.played.discard(place)
        end = reply.end(request)
        if isinstance(end, ModelError):
            raise end
        return end

    def next_reply(self, request: Request) -> ScriptedReply:
        """Return the reply to a request, and mark it as played. Raises
        `NoReplyLeft`.
        """
        turn, place = self._choose(request)
        turn.played.add(place)
        return turn.replies[place]

    def _show(self, event: ModelEvent) -> ModelEvent:
        return event if self._root is None else show_folder(event, self._root)

    def _add(self, reply: ScriptedReply) -> None:
        """Add a reply to the last turn with its `when`, or as a new turn."""
        same = [turn for turn in self._turns if turn.is_written_for(reply.when)]
        if reply.request is None and same and same[-1].is_open:
            same[-1].replies.append(reply)
        else:
            self._turns.append(_Turn(reply))

    def _choose(self, request: Request) -> "tuple[_Turn, int]":
        """Raises `NoReplyLeft`."""
        self.requests.append(request)
        asked = _Asked(request, self._redactor)
        # comparing lines is slow and seldom necessary
        turn = self._find_lowest(asked, _Turn.rank)
        if turn is None:
            turn = self._find_lowest(asked, _Turn.rank_by_lines)
        if turn is None:
            raise self._no_reply(asked)
        return turn, turn.place_after(asked.rounds) or 0

    def _find_lowest(self, asked: "_Asked", rank: "_Rank") -> "_Turn | None":
        best: _Turn | None = None
        lowest: tuple[int, int] | None = None
        for turn in self._turns:
            current = rank(turn, asked)
            if current is not None and (lowest is None or current < lowest):
                best, lowest = turn, current
        return best

    def _no_reply(self, asked: "_Asked") -> NoReplyLeft:
        recorded = [turn for turn in self._turns if turn.compared is not None]
        if not recorded:
            return NoReplyLeft(
                f"The script has no reply for request {len(self.requests)}.",
                hint="Add a reply to the script, or a `when` that fits the request.",
            )
        is_repeated = any(turn.fits(asked) for turn in recorded)
        unplayed = [turn.compared for turn in recorded if not turn.is_played]
        why = "all recorded replies have been used"
        if is_repeated:
            why = "all recorded replies to it have been used"
        elif unplayed and unplayed[0] is not None:
            why = unplayed[0].describe_difference(asked.compared)
        return NoReplyLeft(
            f"The record has no reply to this request: {why}.",
            hint="Record the run again. The files, the plan and the settings must be"
            " the same.",
        )


class _Asked:
    def __init__(self, request: Request, redactor: Redactor) -> None:
        self._request, self._redactor = request, redactor
        self._compared: ComparedRequest | None = None
        self.question = ""
        self.rounds = 0
        """The replies after it, which called tools."""
        for message in reversed(request.messages):
            if message.role == "user":
                self.question = message.content
                break
            if message.role == "assistant":
                self.rounds += 1

    @property
    def compared(self) -> ComparedRequest:
        # lazily: a written script does not need it
        if self._compared is None:
            request = as_recorded(self._request, self._redactor)
            self._compared = ComparedRequest(request)
        return self._compared


class _Turn:
    """Replies that belong together: replies with the same `when` that call tools or
    fail belong to the next one. Every other turn is one reply.
    """

    def __init__(self, reply: ScriptedReply) -> None:
        self.when = reply.when
        self.replies = [reply]
        self.played: set[int] = set()
        """Indexes of replies that were played, or are being played."""
        self.compared: ComparedRequest | None = None
        """The request of a recorded reply."""
        if reply.request is not None:
            self.compared = ComparedRequest(reply.request)

    @property
    def is_played(self) -> bool:
        return len(self.replies) - 1 in self.played

    @property
    def is_open(self) -> bool:
        """True if the next reply with the same `when` belongs to the turn."""
        last = self.replies[-1]
        return bool(self.when) and (bool(last.calls) or not last.is_whole)

    def is_written_for(self, when: str | None) -> bool:
        return self.compared is None and self.when == when

    def fits(self, asked: _Asked) -> bool:
        if self.compared is not None:
            return self.compared.matches(asked.compared)
        return self.when is None or self.when in asked.question

    def rank(self, asked: _Asked) -> tuple[int, int] | None:
        """Return how well the turn fits, lowest first; None if it does not."""
        if not self.fits(asked) or self.place_after(asked.rounds) is None:
            return None
        if self.compared is not None and not self.is_played:
            return 0, -self.compared.count_equal_lines(asked.compared)
        if self.when == "":
            return 4, 0
        if self.when:
            return (3, 0) if self.is_played else (1, 0)
        return None if self.is_played else (2, 0)

    def rank_by_lines(self, asked: _Asked) -> tuple[int, int] | None:
        if self.compared is None or self.is_played:
            return None
        if not self.compared.has_more_or_fewer_lines(asked.compared):
            return None
        return 0, -self.compared.count_equal_lines(asked.compared)

    def place_after(self, rounds: int) -> int | None:
        """Return the index of the reply after a number of tool rounds. It depends only
        on the conversation, so a new process continues within a turn.
        """
        if not self.when:
            return 0
        for place, reply in enumerate(self.replies):
            if reply.is_whole:
                if rounds == 0:
                    return place
                rounds -= 1
            elif rounds == 0 and place not in self.played:
                return place
        last = len(self.replies) - 1
        if rounds == 0 and not self.replies[last].is_whole:
            return last
        return None


_Rank = Callable[[_Turn, _Asked], tuple[int, int] | None]


def _as_reply(entry: str | ModelError | ScriptedReply) -> ScriptedReply:
    if isinstance(entry, str):
        return ScriptedReply(entry)
    if isinstance(entry, ModelError):
        return ScriptedReply(error=entry)
    return entry
