"""How each ink looks, as CSS of the transcript's component classes."""

LOOKS = {
    # Blocks: their glyphs, their text
    "user": "color: $text-accent; text-style: bold;",
    "user-text": "text-style: bold;",
    "note-text": "",
    "good": "color: $text-success; text-style: bold;",
    "good-text": "",
    "warning": "color: $text-warning;",
    "warning-text": "color: $text-warning;",
    "error": "color: $text-error;",
    "error-text": "color: $text-error;",
    "heading": "color: $primary;",
    "heading-text": "color: $text-primary; text-style: bold;",
    "output": "color: $text-muted;",
    "action": "",
    "verb": "color: $text-muted;",
    "problem": "color: $text-error;",
    "remark": "color: $text-muted;",
    "hit": "color: $background; background: $warning;",
    "current": "color: $background; background: $success; text-style: bold underline;",
    "place": "text-style: underline;",
    "news": "color: $background; background: $primary; text-style: bold;",
    "thoughts": "color: $text-muted; text-style: italic;",
    "left-out": "color: $text-muted;",
    # Markdown
    "title": "text-style: bold;",
    "h1": "color: $text-primary; text-style: bold underline;",
    "h2": "color: $text-primary;",
    "h3": "",
    "h4": "",
    "h5": "",
    "h6": "",
    "strong": "text-style: bold;",
    "em": "text-style: italic;",
    "strike": "text-style: strike;",
    "link": "color: $text-primary; text-style: underline;",
    "address": "color: $text-muted;",
    "verbatim": "color: $text-warning; background: $surface;",
    "quote": "color: $text-muted;",
    "bullet": "color: $text-accent;",
    "bar": "color: $foreground 35%;",
    "rule": "color: $foreground 35%;",
    # Code blocks
    "code": "background: $surface;",
    "wrapped": "color: $foreground 35%;",
    "path": "color: $text-muted; text-style: italic;",
    "comment": "color: $text-muted; text-style: italic;",
    "keyword": "color: $text-accent;",
    "string": "color: $text-success;",
    "number": "color: $text-warning;",
    "name": "color: $text-primary; text-style: bold;",
    "builtin": "color: $text-secondary;",
    "deleted": "color: $text-error;",
    "inserted": "color: $text-success;",
    # Diffs
    "diff": "",
    "removed": "background: $error 15%;",
    "added": "background: $success 15%;",
    "removed-word": "background: $error 40%; text-style: bold;",
    "added-word": "background: $success 40%; text-style: bold;",
    "line-number": "color: $foreground 50%;",
    "hunk": "color: $text-muted; text-style: italic;",
}

LOOKS_CSS = "".join(f"Transcript > .transcript--{ink} {{ {look} }}\n" for ink, look in LOOKS.items() if look)


def component_class(ink: str) -> str:
    """The class of one ink."""
    return f"transcript--{ink}"
