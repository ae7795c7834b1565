"""Scripted replies of a forked `cdd` that pause until the test lets them continue."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from cdd_agent.llm.port import ModelEvent, TextDelta
from cdd_agent.llm.scripted_reply import ScriptedReply

VARIABLE = "HOLD_REPLIES_AT"
"""Names a file. While it exists, a reply pauses once it contains the file's words."""
_POLL = 0.02  # seconds

Timeline = Iterator[tuple[float, ModelEvent | None]]


def hold_replies() -> None:
    """Make the replies of this process pause, if the environment names a file."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return
    file = Path(path)
    original = ScriptedReply.timeline

    def timeline(reply: ScriptedReply, pace: Callable[[], float]) -> Timeline:
        text = ""
        for seconds, event in original(reply, pace):
            yield seconds, event
            if isinstance(event, TextDelta):
                text += event.text
                while file.exists() and file.read_text(encoding="utf-8") in text:
                    yield _POLL, None

    ScriptedReply.timeline = timeline  # type: ignore[method-assign]
