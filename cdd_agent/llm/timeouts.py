"""Limits for how long the adapters wait for a server, in seconds."""

from cdd_agent.llm.known_models import KnownModel

CONNECT_TIMEOUT = 30.0
"""Until the server accepts the connection."""
SILENCE_TIMEOUT = 300.0
"""Without a byte, at the beginning of an answer or within it."""
THINKING_TIMEOUT = 1_800.0
"""Without a byte from a model that thinks: some providers send nothing meanwhile. The
user sees the seconds and can stop it.
"""
KEEP_ALIVE_TIMEOUT = THINKING_TIMEOUT
"""Without a piece of the answer, while keep-alives arrive."""
AFTER_END_TIMEOUT = 10.0
"""For the rest of the answer, such as its usage, after a reply is complete."""
COMPLAINT_TIMEOUT = 10.0
"""For the body of a refusal."""
FACTS_TIMEOUT = 3.0
"""Until a server has answered a question about its model."""
LOCAL_FACTS_TIMEOUT = 1.0
"""The same for a server on this computer. Requests do not need its answer."""
SERVER_CHECK_TIMEOUT = 5.0
"""Until a server has answered the check before a call."""
LOCAL_SERVERS_TIMEOUT = 1.0
"""For the whole list of models of a server on this computer."""


def silence_timeout(model: KnownModel) -> float:
    return THINKING_TIMEOUT if model.thinks else SILENCE_TIMEOUT
