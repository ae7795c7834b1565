"""Settings of how a model works, in the same words for every provider; adapters
translate.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import field

from cdd_agent.partly_shown import PartlyShown


class Effort(StrEnum):
    """How much a model thinks. What a provider does not know becomes the nearest that
    it knows.
    """

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    MAX = "max"


class ModelOptions(PartlyShown, frozen=True):
    """None: whatever the provider does by itself."""

    hidden_fields = ("body", "headers")

    effort: Effort | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request's JSON, over what an adapter writes there."""
    headers: Mapping[str, str] = field(default_factory=dict)
    sees: bool | None = None
    """It takes pictures, whatever is known of it."""
    watched: bool = False
    """A person reads along: where thoughts come only if they are asked for, they are.
    """
    window: int | None = None
    """How many tokens the server is to take in, where it can be told."""


NO_OPTIONS = ModelOptions()
