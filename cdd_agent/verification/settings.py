"""Files that several runners of tests go by."""

import json
from typing import Any

_OF_PACKAGE_JSON = ("scripts", "jest", "vitest", "mocha", "ava", "tap", "c8", "nyc")


def package_json(text: str) -> object:
    """The keys of a `package.json` that decide how tests are run."""
    try:
        content: Any = json.loads(text or "{}")
        return {key: content[key] for key in _OF_PACKAGE_JSON if key in content}
    except (ValueError, TypeError, RecursionError):
        return text
