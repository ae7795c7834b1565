"""The style of each ink, in Textual's syntax, with the variables of themes.

Not by component classes: for each of those Textual applies its whole stylesheet
whenever a widget starts.
"""

LOOKS = {
    # Blocks: their glyphs, their text
    "user": "bold $text-accent",
    "user-text": "bold",
    "note-text": "",
    "good": "bold $text-success",
    "good-text": "",
    "warning": "$text-warning",
    "warning-text": "$text-warning",
    "error": "$text-error",
    "error-text": "$text-error",
    "heading": "$primary",
    "heading-text": "bold $text-primary",
    "output": "$text-muted",
    "action": "",
    "verb": "$text-muted",
    "problem": "$text-error",
    "remark": "$text-muted",
    "hit": "$background on $warning",
    "current": "bold underline $background on $success",
    "place": "underline",
    "news": "bold $background on $primary",
    "thoughts": "italic $text-muted",
    "left-out": "$text-muted",
    # Markdown
    "title": "bold",
    "h1": "bold underline $text-primary",
    "h2": "$text-primary",
    "h3": "",
    "h4": "",
    "h5": "",
    "h6": "",
    "strong": "bold",
    "em": "italic",
    "strike": "strike",
    "link": "underline $text-primary",
    "address": "$text-muted",
    "verbatim": "$text-warning on $surface",
    "quote": "$text-muted",
    "bullet": "$text-accent",
    "bar": "$foreground 35%",
    "rule": "$foreground 35%",
    # Code blocks
    "code": "on $surface",
    "wrapped": "$foreground 35%",
    "path": "italic $text-muted",
    "comment": "italic $text-muted",
    "keyword": "$text-accent",
    "string": "$text-success",
    "number": "$text-warning",
    "name": "bold $text-primary",
    "builtin": "$text-secondary",
    "deleted": "$text-error",
    "inserted": "$text-success",
    # Diffs
    "diff": "",
    "removed": "on $error 15%",
    "added": "on $success 15%",
    "removed-word": "bold on $error 40%",
    "added-word": "bold on $success 40%",
    "line-number": "$foreground 50%",
    "hunk": "italic $text-muted",
}

WITHOUT_COLOURS = {
    "hit": "reverse",
    "news": "reverse",
    "current": "reverse bold underline",
}
"""Styles for terminals without colours."""
