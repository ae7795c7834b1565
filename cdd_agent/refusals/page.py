"""The explanations of refusals, in Markdown."""

from cdd_agent.refusals.kinds import Refusal, RefusalGroup


def explain(refusal: Refusal) -> str:
    text = refusal.text
    return f"*{text.message}*\n\n{text.reason}\n\n**What to do:** {text.remedy}"


def explain_all() -> str:
    parts = []
    for group in RefusalGroup:
        parts.append(f"## {group}")
        for refusal in Refusal:
            if refusal.text.group is group:
                parts.append(f"### {refusal.id}")
                parts.append(explain(refusal))
    return "\n\n".join(parts) + "\n"
