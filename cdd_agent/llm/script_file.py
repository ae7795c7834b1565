"""The file form of a script (`scripted.py`)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdd_agent.errors import BadInput
from cdd_agent.guarded_yaml import constructed, list_items, read_file, read_mapping
from cdd_agent.llm.port import RateLimited, StopReason, ToolCall
from cdd_agent.llm.scripted import ERRORS, ScriptedReply

_SLOWEST = 3_600.0


class ScriptFile:
    """The file form of a script. Every refusal names the file, the line and what is allowed."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def at(cls, path: Path) -> tuple[float, list[ScriptedReply]]:
        """As `read`. Raises `BadInput` for a file that is not there, too."""
        text = read_file(path)
        if text is None:
            raise BadInput(f"The script {path} is not there.", hint="Check the path of the script.")
        return cls(str(path)).read(text)

    def read(self, text: str) -> tuple[float, list[ScriptedReply]]:
        """Return the pace and the entries."""
        entries = read_mapping(text, self.name, "a script")
        self._check_keys(1, {str(key): "" for key in entries}, required={"replies"}, optional={"pace"})
        replies = list_items(entries["replies"].node)
        if replies is None:
            line = entries["replies"].line
            raise self._refusal(line, "`replies` is not a list", "Write each reply as `- reply: ...`.")
        pace = self._pace(entries["pace"].line, entries["pace"].value(self.name)) if "pace" in entries else 0.0
        lines = [(node.start_mark.line + 1, node) for node in replies]
        return pace, [self._reply(line, constructed(node, f"{self.name}:{line}")) for line, node in lines]

    def _pace(self, line: int, pace: object) -> float:
        if isinstance(pace, bool) or not isinstance(pace, int | float) or pace < 0:
            raise self._refusal(line, f"`pace` is {pace!r}", "Give characters a second; 0 is at once.")
        return float(pace)

    def _reply(self, line: int, entry: Any) -> ScriptedReply:
        if isinstance(entry, dict) and "error" in entry:
            return self._failure(line, entry)
        if isinstance(entry, dict) and "empty" in entry:
            self._check_keys(line, entry, required={"empty"}, optional={"when", "slow"})
            if entry["empty"] is not True:
                raise self._refusal(line, f"`empty` is {entry['empty']!r}", "Write `empty: true`, or a `reply`.")
            return ScriptedReply(when=self._when(line, entry), slow=self._slow(line, entry))
        needed = "tool_calls" if isinstance(entry, dict) and "tool_calls" in entry else "reply"
        optional = {"reply", "tool_calls", "when", "stop", "cut", "slow", "thinking"}
        self._check_keys(line, entry, required={needed}, optional=optional)
        stop = self._one_of(line, "stop", entry.get("stop", "stop"), list(StopReason))
        cut = entry.get("cut")
        if cut is not None and (isinstance(cut, bool) or not isinstance(cut, int) or cut < 0):
            raise self._refusal(line, f"`cut` is {cut!r}", "Give a number of characters.")
        return ScriptedReply(
            self._text(line, "reply", entry.get("reply", "")),
            when=self._when(line, entry),
            stop=StopReason(stop),
            tool_calls=self._tool_calls(line, entry.get("tool_calls", [])),
            cut=cut,
            slow=self._slow(line, entry),
            thinking=self._text(line, "thinking", entry.get("thinking", "")),
        )

    def _tool_calls(self, line: int, calls: object) -> tuple[ToolCall, ...]:
        """Their ids are made of the line of the entry, so that no two are the same."""
        if not isinstance(calls, list):
            raise self._refusal(line, "`tool_calls` is not a list", "Write each as `- {name: ..., arguments: {...}}`.")
        for call in calls:
            self._check_keys(line, call, required={"name"}, optional={"arguments"})
        return tuple(
            ToolCall(
                f"call_{line}_{number}",
                self._text(line, "name", call["name"]),
                _arguments(call.get("arguments", {})),
            )
            for number, call in enumerate(calls, start=1)
        )

    def _failure(self, line: int, entry: dict[str, Any]) -> ScriptedReply:
        limited = {"retry_after"} if entry["error"] == "rate_limited" else set()
        self._check_keys(line, entry, required={"error"}, optional={"when", "slow", *limited})
        kind = self._one_of(line, "error", entry["error"], list(ERRORS))
        error = ERRORS[kind](f"Scripted error: {kind}.")
        if isinstance(error, RateLimited) and "retry_after" in entry:
            error.retry_after = self._seconds(line, "retry_after", entry["retry_after"], longest=10**6)
        return ScriptedReply(when=self._when(line, entry), error=error, slow=self._slow(line, entry))

    def _slow(self, line: int, entry: dict[str, Any]) -> float:
        return self._seconds(line, "slow", entry["slow"], longest=_SLOWEST) if "slow" in entry else 0.0

    def _seconds(self, line: int, key: str, value: object, *, longest: float) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= longest:
            raise self._refusal(line, f"`{key}` is {value!r}", f"Give seconds, at most {longest:,.0f}.")
        return float(value)

    def _when(self, line: int, entry: dict[str, Any]) -> str | None:
        return self._text(line, "when", entry["when"]) if "when" in entry else None

    def _text(self, line: int, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise self._refusal(line, f"`{key}` is {value!r}", f"Give `{key}` a text; quote it if need be.")
        return value

    def _one_of(self, line: int, key: str, value: object, allowed: Sequence[str]) -> str:
        if value not in allowed:
            raise self._refusal(line, f"`{key}` is {value!r}", f"Allowed: {', '.join(allowed)}.")
        return str(value)

    def _check_keys(self, line: int, entry: object, *, required: set[str], optional: set[str]) -> None:
        allowed = f"Allowed: {', '.join(sorted(required | optional, key=str))}; needed: {', '.join(required)}."
        if not isinstance(entry, dict):
            raise self._refusal(line, "not a mapping of keys to values", allowed)
        if wrong := sorted(str(key) for key in entry.keys() - required - optional):
            raise self._refusal(line, f"`{wrong[0]}` is not a key here", allowed)
        if missing := sorted(required - entry.keys()):
            raise self._refusal(line, f"`{missing[0]}` is missing", allowed)

    def _refusal(self, line: int, problem: str, hint: str) -> BadInput:
        return BadInput(f"{self.name}:{line}: {problem}.", hint=hint)


def _arguments(written: object) -> str:
    """A text stays as it is, so that a script can also play broken JSON."""
    return written if isinstance(written, str) else json.dumps(written, ensure_ascii=False, default=str)
