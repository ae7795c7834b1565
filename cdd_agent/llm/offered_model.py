"""A model that a server on this computer offers."""

from msgspec import Struct


class OfferedModel(Struct, frozen=True):
    """One model of a server, and the two settings that choose it."""

    name: str
    server: str
    api_base: str

    @property
    def model(self) -> str:
        """Ollama's own API is not at the address of the compatible one."""
        is_ollama = self.server == "Ollama" and not self.api_base.endswith("/v1")
        return f"{'ollama' if is_ollama else 'openai'}/{self.name}"
