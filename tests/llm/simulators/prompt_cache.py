"""Claude's cache of prompts: only prefixes that end at a mark are written and read.

The rules are those of platform.claude.com/docs (prompt caching).
"""

import json
from dataclasses import dataclass, field

from tests.llm.simulators.base import Json, expect

_MOST_MARKS = 4
_POSITIONS = 20
"""Positions that a mark looks at: its own block, and those before it."""


@dataclass
class PromptCache:
    """The written prefixes. A character of JSON is a token here."""

    least: int = 512
    """Tokens of the shortest prefix that is written. Shorter ones are ignored."""
    _written: set[int] = field(default_factory=set)
    """Hashes of prefixes."""

    def check(self, blocks: list[Json]) -> None:
        """Raises `Refused`."""
        marked = [block for block in blocks if "cache_control" in block]
        expect(
            len(marked) <= _MOST_MARKS,
            f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided."
            f" Found {len(marked)}.",
        )
        for block in marked:
            kind = block.get("type", "")
            expect(
                kind not in ("thinking", "redacted_thinking"),
                f"cache_control cannot be set for `{kind}` blocks",
            )
            expect(
                kind != "text" or block["text"],
                "cache_control cannot be set for empty text blocks",
            )
            expect(
                block["cache_control"] == {"type": "ephemeral"},
                "cache_control: Input tag does not match any of the expected tags",
            )

    def use(self, blocks: list[Json]) -> tuple[int, int, int]:
        """The tokens of a prompt that are neither read nor written, those that are
        read, and those that are written.
        """
        prefixes, sizes = [hash(())], [0]
        for block in blocks:
            text = _unmarked(block)
            prefixes.append(hash((prefixes[-1], text)))
            sizes.append(sizes[-1] + len(text))
        marks = [
            end for end, block in enumerate(blocks, start=1) if "cache_control" in block
        ]
        read = max(
            (
                end
                for mark in marks
                for end in range(max(1, mark - _POSITIONS + 1), mark + 1)
                if prefixes[end] in self._written
            ),
            default=0,
        )
        large = [mark for mark in marks if sizes[mark] >= self.least]
        self._written |= {prefixes[mark] for mark in large}
        last = max([read, *large])
        return sizes[-1] - sizes[last], sizes[read], sizes[last] - sizes[read]


def _unmarked(block: Json) -> str:
    return json.dumps(
        {name: value for name, value in block.items() if name != "cache_control"}
    )
