from collections.abc import Sequence

from msgspec import Struct


class OfferedModel(Struct, frozen=True):
    """A model of a server, with its two settings: `model` and `api_base`."""

    name: str
    server: str
    api_base: str

    @property
    def model(self) -> str:
        """The model string. Ollama's own API has another address than the compatible
        one.
        """
        if self.server == "Ollama" and not self.api_base.endswith("/v1"):
            return f"ollama/{self.name}"
        return f"openai/{self.name}"


def list_in_words(offers: Sequence[OfferedModel], more: int = 0) -> str:
    width = max(len(offer.name) for offer in offers)
    rows = ["Models on this computer:"]
    for number, offer in enumerate(offers, 1):
        rows.append(f"  {number}  {offer.name:<{width}}  {offer.server}")
    if more:
        rows.append(f"  and {more} more: type `/model` to list them")
    return "\n".join(rows)
