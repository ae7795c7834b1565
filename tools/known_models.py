"""Make cdd_agent/llm/known_models.json from the tables of the installed litellm: `make
models`, before a release.

It has the facts that cdd needs about each model that writes text. For the columns see
`cdd_agent/llm/known_models.py`, which reads it.
"""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parents[1] / "cdd_agent" / "llm" / "known_models.json"
MODES = {"chat", "responses", "completion"}
FLAGS = {
    "t": "supports_function_calling",
    "v": "supports_vision",
    "r": "supports_reasoning",
    "a": "supports_adaptive_thinking",
    "o": "supports_output_config",
    "n": "supports_none_reasoning_effort",
    "m": "supports_minimal_reasoning_effort",
    "x": "supports_xhigh_reasoning_effort",
    "M": "supports_max_reasoning_effort",
}
PRICES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")


def main() -> None:
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0])
    table = _read(folder / "model_prices_and_context_window_backup.json")
    models = {
        name: _row(entry)
        for name, entry in sorted(table.items())
        if entry.get("mode") in MODES
    }
    offered = _read(folder / "provider_endpoints_support_backup.json")["providers"]
    providers = sorted({*offered, *(row[0] for row in models.values())})
    OUTPUT.write_text(_as_lines(providers, models), encoding="utf-8")


def _row(entry: dict[str, Any]) -> list[Any]:
    flags = "".join(flag for flag, key in FLAGS.items() if entry.get(key) is True)
    flags += "s" if entry.get("supports_sampling_params") is False else ""
    flags += "R" if entry["mode"] == "responses" else ""
    tier = next((match for match in map(_TIER.fullmatch, entry) if match), None)
    above = _prices(entry, f"_above_{tier[1]}k_tokens") if tier else None
    tokens = [_tokens(entry, "max_input_tokens"), _tokens(entry, "max_output_tokens")]
    row = [
        entry["litellm_provider"],
        *tokens,
        flags,
        _prices(entry),
        tier and above and [int(tier[1]) * 1000, *above],
    ]
    while not row[-1]:
        row.pop()
    return row


def _prices(entry: dict[str, Any], suffix: str = "") -> list[float | None] | None:
    prices = [entry.get(f"{key}{suffix}") for key in PRICES]
    prices[2] = (
        prices[2]
        if prices[2] is not None
        else entry.get(f"input_cost_per_token_cache_hit{suffix}")
    )
    if not all(isinstance(price, int | float) for price in prices[:2]):
        return None
    while prices[-1] is None:
        prices.pop()
    return prices


def _tokens(entry: dict[str, Any], key: str) -> int | None:
    tokens = entry.get(key)
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def _as_lines(providers: list[str], models: dict[str, list[Any]]) -> str:
    """Write one line per model, so that two tables differ only where models do."""
    lines = (
        f"{json.dumps(name)}:{json.dumps(row, separators=(',', ':'))}"
        for name, row in models.items()
    )
    return (
        f'{{"providers":{json.dumps(providers)},\n"models":{{\n'
        + ",\n".join(lines)
        + "}}\n"
    )


def _read(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


if __name__ == "__main__":
    main()
