"""Adapters of models that other packages add (docs/how-to/extend.md)."""

from abc import ABC, abstractmethod

from cdd_agent.llm.options import ModelOptions
from cdd_agent.llm.port import Model, Price


class BasicModel:
    """A `Model` of which only the name is known. A subclass adds `reply`."""

    calls_tools: bool = False
    sees: bool | None = None
    window: int | None = None
    price: Price | None = None

    def __init__(self, name: str, api_base: str | None = None) -> None:
        self.name = name
        self.api_base = api_base

    def warm_up(self) -> None:
        """Nothing is slow before the first reply."""

    async def check(self, *, connect: bool) -> None:
        """There is no key and no server to check."""
        del connect


class ModelAdapter(ABC):
    name: str

    @abstractmethod
    def claims(self, model: str) -> bool:
        """True if this adapter makes the model for a model string."""

    @abstractmethod
    def make(self, model: str, api_base: str | None, options: ModelOptions) -> Model:
        """Return the model. Raises `BadInput` if the user must change a setting."""
