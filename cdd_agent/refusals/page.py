"""The explanations of refusals, as Markdown: one for the help, all for the docs."""

from cdd_agent.refusals.kinds import Refusal, RefusalGroup


def explain(refusal: Refusal) -> str:
    """Return the message, its reason and what to do."""
    text = refusal.text
    return f"*{text.message}*\n\n{text.reason}\n\n**What to do:** {text.remedy}"


def explain_all() -> str:
    """Return all explanations under their ids, in groups."""
    parts = []
    for group in RefusalGroup:
        parts.append(f"## {group}")
        for refusal in Refusal:
            if refusal.text.group is group:
                parts.append(f"### {refusal.id}")
                parts.append(explain(refusal))
    return "\n\n".join(parts) + "\n"
