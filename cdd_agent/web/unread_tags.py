"""HTML tags whose content nobody reads."""

UNREAD = frozenset(
    {
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "nav",
        "iframe",
        "object",
        "canvas",
    }
)
