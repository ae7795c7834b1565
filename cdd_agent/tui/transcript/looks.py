"""The style of each ink, in Textual's syntax and with theme variables. `contrast.py`
makes text colours readable.

Component classes would be slower: for each one, Textual applies its whole stylesheet
whenever a widget starts.
"""

LOOKS = {
    # Blocks: signs and text
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
    "hit": "$on-warning on $warning",
    "current": "bold underline $on-success on $success",
    "place": "underline",
    "news": "bold $on-primary on $primary",
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
    "wrapped": "$code-quiet",
    "path": "italic $code-quiet",
    "comment": "italic $code-quiet",
    "keyword": "$code-keyword",
    "string": "$code-string",
    "number": "$code-number",
    "name": "bold $code-name",
    "builtin": "$code-builtin",
    "deleted": "$code-removed",
    "inserted": "$code-added",
    # Diffs
    "diff": "",
    "removed": "on $diff-removed",
    "added": "on $diff-added",
    "removed-word": "bold $foreground on $diff-removed-word",
    "added-word": "bold $foreground on $diff-added-word",
    "line-number": "$code-quiet",
    "hunk": "italic $code-quiet",
}

WITHOUT_COLOURS = {
    "hit": "reverse",
    "news": "reverse",
    "current": "reverse bold underline",
}
"""Styles for terminals without colours."""
