"""The waits of providers, transferred between machines: times in files, seconds in
messages.
"""

import time
from collections.abc import Mapping
from pathlib import Path

from cdd_agent.cluster.messages import ProviderWait
from cdd_agent.files.shared_json import read_json
from cdd_agent.llm.shared_waits import SharedWaits
from cdd_agent.text.redaction import Redactor

_TOLERANCE = 1.0
"""Seconds. A wait that returns to its origin must not grow."""


def read_waits(path: Path, redactor: Redactor) -> dict[str, ProviderWait]:
    """Return the waits in a file that are not over, by provider. The reasons are
    redacted, because a provider may repeat a secret.
    """
    waits = dict[str, ProviderWait]()
    for provider in read_json(path):
        until, reason = SharedWaits(path, provider).until
        seconds = until - time.time()
        if seconds > 0:
            waits[provider] = ProviderWait(seconds, redactor.redact(reason))
    return waits


def add_waits(path: Path, waits: Mapping[str, ProviderWait]) -> None:
    """Add waits to a file. Raises `BadInput` if the disk refuses."""
    for provider, wait in waits.items():
        shared, until = SharedWaits(path, provider), time.time() + wait.seconds
        if until > shared.until[0] + _TOLERANCE:
            path.parent.mkdir(parents=True, exist_ok=True)
            shared.extend(until, wait.reason)
