"""Parse a model string: the provider, and whether the model is hosted."""

from cdd_agent.pattern import Pattern

NAMES_WITHOUT_PROVIDER = {
    "openai": Pattern(
        r"(?:ft:)?(?:gpt-(?:\d|daybreak|rosalind)|chatgpt-|codex-|computer-use-"
        r"|o[1-9](?:-|$))"
    ),
    "anthropic": Pattern(r"claude-"),
}
_OTHER_HOSTED_NAMES = Pattern(
    r"gemini-\d|grok-\d|deepseek-(?:chat|reasoner)$"
    r"|(?:codestral|devstral|magistral|ministral|mistral|pixtral)-[\w-]*latest$"
)


def provider_of(model: str | None) -> str:
    """Return the provider of a model string: its prefix, or the one that offers the
    name.
    """
    prefix, slash, _ = (model or "").partition("/")
    if slash:
        return prefix
    for provider, names in NAMES_WITHOUT_PROVIDER.items():
        if names.match(prefix):
            return provider
    return prefix


def is_hosted_model(model: str) -> bool:
    """True if only the model's provider runs it."""
    name = model.rpartition("/")[2]
    patterns = (*NAMES_WITHOUT_PROVIDER.values(), _OTHER_HOSTED_NAMES)
    return any(names.match(name) for names in patterns)
