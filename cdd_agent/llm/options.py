"""Settings of a model in the same words for all providers; adapters translate."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import field

from cdd_agent.values.partly_shown import PartlyShown


class Effort(StrEnum):
    """The amount of thinking. Providers get the nearest level that they know."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    MAX = "max"


class ModelOptions(PartlyShown, frozen=True):
    """None: the provider's default."""

    hidden_fields = ("body", "headers")

    effort: Effort | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request's JSON. They override the adapter's."""
    headers: Mapping[str, str] = field(default_factory=dict)
    sees: bool | None = None
    """Overrides the known facts about pictures."""
    watched: bool = False
    """True if the user watches: request readable thoughts."""
    window: int | None = None
    """Tokens of the context window, for servers with this setting."""


NO_OPTIONS = ModelOptions()
