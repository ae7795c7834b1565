"""The cost of model calls: the one sum that budgets, states, events and reports use."""

from msgspec import Struct


class Cost(Struct, frozen=True):
    """The cost of model calls, including failed attempts."""

    tokens: int = 0
    usd: float | None = None
    """The cost of the calls with a known price; None without such calls."""
    estimated: bool = False
    """True if a provider did not count the tokens of a call."""
    cached_tokens: int = 0
    """Tokens among them that were read from a cache."""
    saved_usd: float | None = None
    """The money that caches saved; negative if they cost more. None if no call with a
    known price used one.
    """

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.tokens + other.tokens,
            add_known(self.usd, other.usd),
            self.estimated or other.estimated,
            self.cached_tokens + other.cached_tokens,
            add_known(self.saved_usd, other.saved_usd),
        )

    @property
    def about(self) -> str:
        """`~` if the cost is partly an estimate, else empty."""
        return "~" if self.estimated else ""

    def in_full(self) -> str:
        """Return tokens and, if a price is known, money: `1,200 tokens, $0.0100`."""
        text = f"{self.about}{self.tokens:,} tokens"
        if self.cached_tokens:
            text += f" ({self.cached_tokens:,} cached)"
        if self.usd:
            text += f", {self.about}${self.usd:.4f}"
        return text

    def in_short(self, unit: str = "tok") -> str:
        """Return a few characters: the money, or without a known price the tokens;
        empty if nothing was spent.
        """
        if self.usd:
            if self.usd >= 0.00995:
                return f"{self.about}${self.usd:.2f}"
            return f"{self.about}${max(self.usd, 0.0001):.4f}"
        if not self.tokens:
            return ""
        if self.tokens < 999.5:
            return f"{self.about}{self.tokens} {unit}"
        amount, factor = self.tokens / 1e3, "k"
        if self.tokens >= 999_500:
            amount, factor = self.tokens / 1e6, "M"
        digits = 1 if amount < 9.95 else 0
        return f"{self.about}{amount:.{digits}f}{factor} {unit}"

    def effect_of_cache(self) -> str:
        """Return the savings of caches: in money if a price is known, else in tokens;
        empty if they had no effect.
        """
        saved = self.saved_usd or 0.0
        if saved < 0:
            return (
                f"writing to the cache has cost ${-saved:.4f} more than"
                " reading from it saved"
            )
        if saved > 0:
            return f"the cache saved ${saved:.4f}"
        if self.cached_tokens:
            return f"{self.cached_tokens:,} tokens came from the cache"
        return ""


NO_COST = Cost()


def add_known(one: float | None, other: float | None) -> float | None:
    """Add two amounts. An unknown one counts as zero; two unknown ones stay unknown."""
    if one is None:
        return other
    return one + (other or 0)
