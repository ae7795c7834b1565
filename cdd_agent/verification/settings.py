"""Settings shared by several test runners."""

from cdd_agent.files.manifests import ManifestUnreadable, parse_manifest

_OF_PACKAGE_JSON = ("scripts", "jest", "vitest", "mocha", "ava", "tap", "c8", "nyc")


def package_json(text: str) -> object:
    """Return the keys of `package.json` that decide how tests run."""
    try:
        content = parse_manifest("package.json", text)
    except ManifestUnreadable:
        return text
    return {key: content[key] for key in _OF_PACKAGE_JSON if key in content}
