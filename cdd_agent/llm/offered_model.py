"""A model that a server on this computer offers."""

from msgspec import Struct


class OfferedModel(Struct, frozen=True):
    """A model of a server, and the two settings that choose it: `model` and
    `api_base`.
    """

    name: str
    server: str
    api_base: str

    @property
    def model(self) -> str:
        """The model string. Ollama's own API is at another address than the compatible
        one.
        """
        if self.server == "Ollama" and not self.api_base.endswith("/v1"):
            return f"ollama/{self.name}"
        return f"openai/{self.name}"
